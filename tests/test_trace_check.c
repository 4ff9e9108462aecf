/*
 * test_trace_check.c - weir-trace: traces made by hand, each with one fault, which the check names;
 * and files that are no traces.
 */
#include <stdarg.h>
#include <stdio.h>

#include "trace_kit.h"

/* -- a file, record by record ------------------------------------------------------------------ */

static void add_word(struct trace_file *file, uint64_t word)
{
	char bytes[8];

	for (unsigned i = 0; i < 8; i++)
		bytes[i] = (char)(word >> i * 8 & 0xff);
	(void)trace_file_write(file, bytes, 8, NULL);
}

static void add_record(struct trace_file *file, uint32_t kind, uint32_t argument, size_t words, ...)
{
	va_list arguments;

	add_word(file, kind | (uint64_t)words << 8 | (uint64_t)argument << 32);
	va_start(arguments, words);
	for (size_t i = 1; i < words; i++)
		add_word(file, va_arg(arguments, uint64_t));
	va_end(arguments);
}

static void add_text(struct trace_file *file, const char *text)
{
	size_t size = strlen(text);

	add_word(file, size);
	for (size_t i = 0; i < size; i += 8) {
		uint64_t word = 0;

		for (size_t b = 0; b < 8 && i + b < size; b++)
			word |= (uint64_t)(uint8_t)text[i + b] << b * 8;
		add_word(file, word);
	}
}

static size_t text_words(const char *text)
{
	return 1 + (strlen(text) + 7) / 8;
}

#define NO_NODE UINT32_MAX
#define VARIABLE UINT64_C(0x1000)

/* A node of plan 1 that depends on up to two others. It uses a variable "w". */
static void add_node(struct trace_file *file, uint32_t index, const char *name, uint64_t flags, uint32_t on,
                     uint32_t too)
{
	size_t dependencies = (size_t)(on != NO_NODE) + (size_t)(too != NO_NODE);
	size_t words =
		6 + dependencies + 1 + text_words("variable") + text_words("w") + text_words(name) + text_words("op");

	add_word(file, WEIRI_TRACE_NODE | (uint64_t)words << 8 | (uint64_t)index << 32);
	add_word(file, 1);
	add_word(file, flags);
	add_word(file, dependencies);
	add_word(file, 1);
	add_word(file, 0);
	if (on != NO_NODE)
		add_word(file, on);
	if (too != NO_NODE)
		add_word(file, too);
	add_word(file, VARIABLE);
	add_text(file, "variable");
	add_text(file, "w");
	add_text(file, name);
	add_text(file, name[0] == 'r' ? "reduce" : "op");
}

static struct trace_file new_file(void)
{
	struct trace_file file = {NULL, 0, 0};

	add_word(&file, WEIRI_TRACE_MAGIC);
	add_word(&file, WEIRI_TRACE_VERSION);
	add_word(&file, 0);
	add_word(&file, 0);
	add_record(&file, WEIRI_TRACE_THREAD, 77, 2, UINT64_C(1));
	return file;
}

/* Plan 1: "a", then "b" and "c", then "d", which is wanted. */
static struct trace_file diamond(void)
{
	struct trace_file file = new_file();

	add_record(&file, WEIRI_TRACE_PLAN, 4, 2, UINT64_C(1));
	add_node(&file, 0, "a", 0, NO_NODE, NO_NODE);
	add_node(&file, 1, "b", 0, 0, NO_NODE);
	add_node(&file, 2, "c", 0, 0, NO_NODE);
	add_node(&file, 3, "d", WEIRI_TRACE_NODE_WANTED, 1, 2);
	return file;
}

static void add_frame(struct trace_file *file, uint64_t frame, uint64_t time)
{
	add_record(file, WEIRI_TRACE_FRAME, WEIRI_TRACE_STEP, 6, frame, UINT64_C(1), UINT64_C(0), UINT64_C(0), time);
}

static void add_frame_end(struct trace_file *file, uint64_t frame, bool complete, uint64_t time)
{
	add_record(file, WEIRI_TRACE_FRAME_END, complete, 3, frame, time);
}

/* Node `node` runs as `event`, which saw up to two others; UINT64_MAX: none. */
static void add_start(struct trace_file *file, uint64_t event, uint64_t frame, uint32_t node, uint64_t time,
                      uint64_t saw, uint64_t too)
{
	size_t words = 4 + (size_t)(saw != UINT64_MAX) + (size_t)(too != UINT64_MAX);

	add_record(file, WEIRI_TRACE_START, node, words, event, frame, time, saw, too);
}

static void add_end(struct trace_file *file, uint64_t event, enum weir_status status, uint64_t time)
{
	add_record(file, WEIRI_TRACE_END, (uint32_t)status, 3, event, time);
}

static void add_run(struct trace_file *file, uint64_t event, uint64_t frame, uint32_t node, uint64_t start,
                    uint64_t end, uint64_t saw, uint64_t too)
{
	add_start(file, event, frame, node, start, saw, too);
	add_end(file, event, WEIR_OK, end);
}

static void add_effect(struct trace_file *file, uint64_t event, enum weiri_trace_effect_kind kind, uint64_t object,
                       uint64_t number)
{
	add_record(file, WEIRI_TRACE_EFFECT, kind, 4, event, object, number);
}

#define NONE UINT64_MAX

/* A right run of the diamond: events `first` to `first` + 3. */
static void add_right_run(struct trace_file *file, uint64_t frame, uint64_t first, uint64_t time)
{
	add_frame(file, frame, time);
	add_run(file, first, frame, 0, time + 1, time + 2, NONE, NONE);
	add_run(file, first + 1, frame, 1, time + 3, time + 5, first, NONE);
	add_run(file, first + 2, frame, 2, time + 4, time + 6, first, NONE);
	add_run(file, first + 3, frame, 3, time + 7, time + 8, first + 1, first + 2);
	add_frame_end(file, frame, true, time + 9);
}

static void expect(struct trace_file *file, size_t faults, const char *text)
{
	struct trace_page page;

	trace_kit_check_file(file, &page);
	free(file->bytes);
	cr_expect_eq(page.faults, faults, "%zu faults:\n%s", page.faults, page.text);
	cr_expect_str_eq(page.text, text);
}

/* -- (a) --------------------------------------------------------------------------------------- */

Test(trace_check, a_right_trace_has_no_fault)
{
	struct trace_file file = diamond();

	add_right_run(&file, 1, 10, 100);
	add_right_run(&file, 2, 20, 200);
	expect(&file, 0, "");
}

Test(trace_check, an_op_that_started_early_saw_no_end)
{
	struct trace_file file = diamond();

	add_frame(&file, 1, 0);
	add_run(&file, 10, 1, 0, 1, 2, NONE, NONE);
	add_run(&file, 11, 1, 1, 3, 4, 0, NONE); /* the clocks say that it came later */
	add_run(&file, 12, 1, 2, 3, 4, 10, NONE);
	add_run(&file, 13, 1, 3, 5, 6, 11, 12);
	add_frame_end(&file, 1, true, 7);
	expect(&file, 1, "op \"b\" of frame 1 started and had not seen the end of \"a\"\n");
}

Test(trace_check, a_frame_that_is_used_early_shows_events_of_another)
{
	struct trace_file file = diamond();

	add_right_run(&file, 1, 10, 0);
	add_frame(&file, 2, 20);
	add_run(&file, 20, 2, 0, 21, 22, NONE, NONE);
	add_run(&file, 21, 2, 1, 23, 24, 10, NONE);
	add_run(&file, 22, 2, 2, 25, 26, 20, NONE);
	add_run(&file, 23, 2, 3, 27, 28, 21, 22);
	add_frame_end(&file, 2, true, 29);
	expect(&file, 1, "op \"b\" of frame 2 saw as \"a\" another event: op \"a\" of frame 1\n");
}

Test(trace_check, a_node_runs_once_in_a_frame)
{
	struct trace_file file = diamond();

	add_frame(&file, 1, 0);
	add_run(&file, 10, 1, 0, 1, 2, NONE, NONE);
	add_run(&file, 11, 1, 1, 3, 4, 10, NONE);
	add_run(&file, 12, 1, 2, 3, 4, 10, NONE);
	add_run(&file, 14, 1, 2, 4, 5, 10, NONE);
	add_run(&file, 13, 1, 3, 6, 7, 11, 14);
	add_frame_end(&file, 1, true, 8);
	expect(&file, 1, "op \"c\" of frame 1 ran twice\n");
}

Test(trace_check, a_frame_that_succeeded_has_run_every_node)
{
	struct trace_file file = diamond();

	add_frame(&file, 1, 0);
	add_run(&file, 10, 1, 0, 1, 2, NONE, NONE);
	add_run(&file, 11, 1, 1, 3, 4, 10, NONE);
	add_frame_end(&file, 1, true, 8);
	expect(&file, 1, "frame 1 succeeded, and 2 of its 4 nodes ran\n");
}

Test(trace_check, a_completion_that_is_lost_leaves_op_and_frame_open)
{
	struct trace_file file = diamond();

	add_frame(&file, 1, 0);
	add_start(&file, 10, 1, 0, 1, NONE, NONE);
	expect(&file, 1, "frame 1 has not ended\n");
	file = diamond();
	add_frame(&file, 1, 0);
	add_start(&file, 10, 1, 0, 1, NONE, NONE);
	add_frame_end(&file, 1, false, 8);
	expect(&file, 1, "op \"a\" of frame 1 had not ended when its frame did\n");
	file = diamond();
	add_frame(&file, 1, 0);
	add_run(&file, 10, 1, 0, 1, 9, NONE, NONE);
	add_frame_end(&file, 1, false, 8);
	expect(&file, 1, "op \"a\" of frame 1 ended after its frame\n");
}

Test(trace_check, nothing_runs_after_a_failure_but_what_leaves_a_section)
{
	for (int leaves = 0; leaves < 2; leaves++) {
		struct trace_file file = new_file();

		add_record(&file, WEIRI_TRACE_PLAN, 2, 2, UINT64_C(1));
		add_node(&file, 0, "a", 0, NO_NODE, NO_NODE);
		add_node(&file, 1, "b", WEIRI_TRACE_NODE_WANTED | (leaves ? WEIRI_TRACE_NODE_LEAVES : 0u), 0, NO_NODE);
		add_frame(&file, 1, 0);
		add_start(&file, 10, 1, 0, 1, NONE, NONE);
		add_end(&file, 10, WEIR_ABORTED, 2);
		add_run(&file, 11, 1, 1, 3, 4, 10, NONE);
		add_frame_end(&file, 1, false, 5);
		expect(&file, leaves ? 0 : 1, leaves ? "" : "op \"b\" of frame 1 ran although \"a\" had failed\n");
	}
}

Test(trace_check, a_node_that_nothing_needs_is_named)
{
	struct trace_file file = new_file();

	add_record(&file, WEIRI_TRACE_PLAN, 2, 2, UINT64_C(1));
	add_node(&file, 0, "fed", 0, NO_NODE, NO_NODE);
	add_node(&file, 1, "b", WEIRI_TRACE_NODE_WANTED, NO_NODE, NO_NODE);
	expect(&file, 1, "plan 1 runs op \"fed\", which nothing needs\n");
}

/* Plan 1: an op that runs functions, whose bodies are plans 2 and 3, which have no nodes. */
static struct trace_file outer(enum weiri_trace_frame_kind parts, uint32_t bodies)
{
	struct trace_file file = new_file();
	size_t words = 6 + bodies + text_words("o") + text_words("op");

	add_record(&file, WEIRI_TRACE_PLAN, 1, 2, UINT64_C(1));
	add_word(&file, WEIRI_TRACE_NODE | (uint64_t)words << 8);
	add_word(&file, 1);
	add_word(&file, WEIRI_TRACE_NODE_WANTED | (uint64_t)parts << WEIRI_TRACE_NODE_PARTS_SHIFT);
	add_word(&file, 0);
	add_word(&file, 0);
	add_word(&file, bodies);
	for (uint32_t i = 0; i < bodies; i++)
		add_word(&file, 2 + i);
	add_text(&file, "o");
	add_text(&file, "op");
	for (uint32_t i = 0; i < bodies; i++)
		add_record(&file, WEIRI_TRACE_PLAN, 0, 2, UINT64_C(2) + i);
	add_frame(&file, 1, 0);
	add_run(&file, 10, 1, 0, 1, 90, NONE, NONE);
	add_frame_end(&file, 1, true, 99);
	return file;
}

/* A part of event 10. */
static void add_part(struct trace_file *file, enum weiri_trace_frame_kind kind, uint64_t frame, uint64_t plan,
                     uint64_t number, uint64_t begin, uint64_t end)
{
	add_record(file, WEIRI_TRACE_FRAME, kind, 6, frame, plan, UINT64_C(10), number, begin);
	add_record(file, WEIRI_TRACE_FRAME_END, 1, 3, frame, end);
}

static void add_value(struct trace_file *file, uint64_t frame, uint32_t kind, uint64_t which, uint64_t sum)
{
	add_record(file, WEIRI_TRACE_VALUE, kind, 4, frame, which, sum);
}

Test(trace_check, only_the_branch_that_was_chosen_runs)
{
	struct trace_file file = outer(WEIRI_TRACE_BRANCH, 2);

	add_effect(&file, 10, WEIRI_TRACE_CHOOSE, 0, 1);
	add_part(&file, WEIRI_TRACE_BRANCH, 2, 3, 1, 2, 3);
	expect(&file, 0, "");
	file = outer(WEIRI_TRACE_BRANCH, 2);
	add_effect(&file, 10, WEIRI_TRACE_CHOOSE, 0, 1);
	add_part(&file, WEIRI_TRACE_BRANCH, 2, 3, 1, 2, 3);
	add_part(&file, WEIRI_TRACE_BRANCH, 3, 2, 0, 2, 3);
	expect(&file, 2,
	       "branch 0 of op \"o\" of frame 1 ran and was not chosen\n"
	       "op \"o\" of frame 1 succeeded with 2 frames, expected 1\n");
	file = outer(WEIRI_TRACE_BRANCH, 2);
	add_effect(&file, 10, WEIRI_TRACE_CHOOSE, 0, 1);
	add_part(&file, WEIRI_TRACE_BRANCH, 2, 2, 1, 2, 3);
	expect(&file, 1, "op \"o\" of frame 1 ran plan 2 as its branch 1, expected plan 3\n");
	file = outer(WEIRI_TRACE_BRANCH, 2);
	expect(&file, 1, "op \"o\" of frame 1 succeeded with 0 frames, expected 1\n");
}

/* A loop of one iteration. */
static struct trace_file loop(void)
{
	struct trace_file file = outer(WEIRI_TRACE_ITERATION, 2);

	add_effect(&file, 10, WEIRI_TRACE_TESTED, 0, 1);
	add_effect(&file, 10, WEIRI_TRACE_TESTED, 1, 0);
	add_part(&file, WEIRI_TRACE_TEST, 2, 2, 0, 2, 4);
	add_part(&file, WEIRI_TRACE_TEST, 4, 2, 1, 6, 8);
	return file;
}

Test(trace_check, tests_and_iterations_come_one_after_the_other)
{
	struct trace_file file = loop();

	add_part(&file, WEIRI_TRACE_ITERATION, 3, 3, 0, 4, 6);
	expect(&file, 0, "");
	file = loop();
	add_part(&file, WEIRI_TRACE_ITERATION, 3, 3, 0, 3, 6);
	expect(&file, 1, "iteration 0 of op \"o\" of frame 1 began before test 0 had ended\n");
	file = loop();
	expect(&file, 2,
	       "op \"o\" of frame 1 has test 1 in place of iteration 0\n"
	       "op \"o\" of frame 1 succeeded with 2 frames, expected 3\n");
	file = loop();
	add_part(&file, WEIRI_TRACE_ITERATION, 3, 3, 0, 4, 6);
	add_part(&file, WEIRI_TRACE_ITERATION, 5, 3, 1, 8, 9);
	expect(&file, 2,
	       "iteration 1 of op \"o\" of frame 1 ran, and the test did not say so\n"
	       "op \"o\" of frame 1 succeeded with 4 frames, expected 3\n");
}

Test(trace_check, each_row_runs_once)
{
	struct trace_file file = outer(WEIRI_TRACE_ROW, 1);

	add_effect(&file, 10, WEIRI_TRACE_ROWS, 0, 2);
	add_part(&file, WEIRI_TRACE_ROW, 2, 2, 1, 2, 5);
	add_part(&file, WEIRI_TRACE_ROW, 3, 2, 0, 4, 6);
	expect(&file, 0, "");
	file = outer(WEIRI_TRACE_ROW, 1);
	add_effect(&file, 10, WEIRI_TRACE_ROWS, 0, 2);
	add_part(&file, WEIRI_TRACE_ROW, 2, 2, 0, 2, 5);
	add_part(&file, WEIRI_TRACE_ROW, 3, 2, 0, 4, 95);
	expect(&file, 2,
	       "frame 3 ended after the op that it is part of\n"
	       "op \"o\" of frame 1 made two frames of number 0\n");
	file = outer(WEIRI_TRACE_ROW, 1);
	add_effect(&file, 10, WEIRI_TRACE_ROWS, 0, 2);
	add_part(&file, WEIRI_TRACE_ROW, 2, 2, 1, 2, 5);
	add_part(&file, WEIRI_TRACE_ROW, 3, 2, 2, 0, 6);
	expect(&file, 2,
	       "frame 3 began before the op that it is part of\n"
	       "row 2 of op \"o\" of frame 1 ran, and there is no such row\n");
}

Test(trace_check, an_iteration_gets_what_the_one_before_gave)
{
	for (int wrong = 0; wrong < 3; wrong++) {
		struct trace_file file = loop();

		add_part(&file, WEIRI_TRACE_ITERATION, 3, 3, 0, 4, 6);
		add_effect(&file, 10, WEIRI_TRACE_PASSED, 0, 50);
		add_value(&file, 2, WEIRI_TRACE_GOT, 0, 50);
		add_value(&file, 3, WEIRI_TRACE_GOT, 0, wrong == 1 ? 49 : 50);
		add_value(&file, 3, WEIRI_TRACE_GAVE, 0, 51);
		add_value(&file, 4, WEIRI_TRACE_GOT, 0, wrong == 2 ? 50 : 51);
		add_effect(&file, 10, WEIRI_TRACE_MADE, 0, 51);
		expect(&file, wrong != 0,
		       wrong == 0 ? ""
		       : wrong == 1
		           ? "iteration 0 of op \"o\" of frame 1 got another value as tensor 0 than was passed to it\n"
		           : "test 1 of op \"o\" of frame 1 got another value as tensor 0 than the iteration before gave\n");
	}
}

Test(trace_check, a_frame_is_a_part_of_what_makes_such_frames)
{
	struct trace_file file = diamond();

	add_right_run(&file, 1, 10, 0);
	add_record(&file, WEIRI_TRACE_FRAME, WEIRI_TRACE_ROW, 6, UINT64_C(2), UINT64_C(1), UINT64_C(0), UINT64_C(0),
	           UINT64_C(1));
	add_frame_end(&file, 2, false, 2);
	expect(&file, 1, "frame 2 is a row of no op\n");
	file = outer(WEIRI_TRACE_CALL, 1);
	add_part(&file, WEIRI_TRACE_CALL, 2, 2, 0, 2, 3);
	add_part(&file, WEIRI_TRACE_ROW, 3, 2, 0, 2, 3);
	expect(&file, 2,
	       "op \"o\" of frame 1 made a frame that is a row\n"
	       "op \"o\" of frame 1 succeeded with 2 frames, expected 1\n");
}

/* -- (b) --------------------------------------------------------------------------------------- */

/* Plan 1: nodes that do not depend on each other, "a" to "d". */
static struct trace_file four(void)
{
	struct trace_file file = new_file();
	static const char *const names[] = {"a", "b", "c", "d"};

	add_record(&file, WEIRI_TRACE_PLAN, 4, 2, UINT64_C(1));
	for (uint32_t i = 0; i < 4; i++)
		add_node(&file, i, names[i], WEIRI_TRACE_NODE_WANTED, NO_NODE, NO_NODE);
	add_frame(&file, 1, 0);
	add_frame_end(&file, 1, false, 1000);
	return file;
}

Test(trace_check, a_stale_version_closes_a_cycle)
{
	struct trace_file file = four();

	/* b reads version 1 after a has published version 2, and ended. */
	add_run(&file, 10, 1, 0, 1, 2, NONE, NONE);
	add_effect(&file, 10, WEIRI_TRACE_PUBLISH, VARIABLE, 2);
	add_run(&file, 11, 1, 1, 3, 4, NONE, NONE);
	add_effect(&file, 11, WEIRI_TRACE_READ, VARIABLE, 1);
	expect(&file, 1,
	       "no order explains what these ops saw:\n"
	       "  op \"a\" of frame 1 ended before the start of\n"
	       "  op \"b\" of frame 1 read version 1 of \"w\", before the one that was published by\n"
	       "  op \"a\" of frame 1\n");
	file = four();
	/* The same at the same time is right. */
	add_run(&file, 10, 1, 0, 1, 4, NONE, NONE);
	add_effect(&file, 10, WEIRI_TRACE_PUBLISH, VARIABLE, 2);
	add_run(&file, 11, 1, 1, 3, 5, NONE, NONE);
	add_effect(&file, 11, WEIRI_TRACE_READ, VARIABLE, 1);
	expect(&file, 0, "");
}

Test(trace_check, two_variables_that_were_read_at_different_instants_close_a_cycle)
{
	struct trace_file file = four();

	/* a writes both at one instant. b reads the first before, and the second after. */
	add_run(&file, 10, 1, 0, 1, 9, NONE, NONE);
	add_effect(&file, 10, WEIRI_TRACE_PUBLISH, VARIABLE, 2);
	add_effect(&file, 10, WEIRI_TRACE_PUBLISH, VARIABLE + 1, 2);
	add_run(&file, 11, 1, 1, 1, 9, NONE, NONE);
	add_effect(&file, 11, WEIRI_TRACE_READ, VARIABLE, 1);
	add_effect(&file, 11, WEIRI_TRACE_READ, VARIABLE + 1, 2);
	expect(&file, 1,
	       "no order explains what these ops saw:\n"
	       "  op \"a\" of frame 1 published version 2 of \"?\", which or a later one was read by\n"
	       "  op \"b\" of frame 1 read version 1 of \"w\", before the one that was published by\n"
	       "  op \"a\" of frame 1\n");
}

Test(trace_check, a_lost_update_is_a_version_that_was_published_twice)
{
	struct trace_file file = four();

	add_run(&file, 10, 1, 0, 1, 9, NONE, NONE);
	add_effect(&file, 10, WEIRI_TRACE_PUBLISH, VARIABLE, 2);
	add_run(&file, 11, 1, 1, 1, 9, NONE, NONE);
	add_effect(&file, 11, WEIRI_TRACE_PUBLISH, VARIABLE, 2);
	expect(&file, 1,
	       "no order explains what these ops saw:\n"
	       "  op \"a\" of frame 1 published version 2 of \"w\", as did\n"
	       "  op \"b\" of frame 1 published version 2 of \"w\", as did\n"
	       "  op \"a\" of frame 1\n");
}

Test(trace_check, of_several_cycles_the_shortest_is_printed)
{
	struct trace_file file = four();

	/* a, b, c, d publish 2, 3, 4, 5, and d ended before a started. c and d also read in circles. */
	for (uint64_t i = 0; i < 4; i++) {
		add_run(&file, 10 + i, 1, (uint32_t)i, i == 3 ? 1 : 6, i == 3 ? 5 : 9, NONE, NONE);
		add_effect(&file, 10 + i, WEIRI_TRACE_PUBLISH, VARIABLE, 2 + i);
	}
	expect(&file, 1,
	       "no order explains what these ops saw:\n"
	       "  op \"c\" of frame 1 published the version of \"w\" before 5, which was published by\n"
	       "  op \"d\" of frame 1 ended before the start of\n"
	       "  op \"c\" of frame 1\n");
}

/* -- (c), (d) ---------------------------------------------------------------------------------- */

Test(trace_check, an_item_comes_out_once)
{
	struct trace_file file = four();

	add_run(&file, 10, 1, 0, 1, 2, NONE, NONE);
	add_effect(&file, 10, WEIRI_TRACE_PUT, 7, 0xabc);
	add_run(&file, 11, 1, 1, 3, 4, NONE, NONE);
	add_effect(&file, 11, WEIRI_TRACE_TAKE, 7, 0xabc);
	add_run(&file, 12, 1, 2, 5, 6, NONE, NONE);
	add_effect(&file, 12, WEIRI_TRACE_TAKE, 7, 0xabc);
	add_effect(&file, 12, WEIRI_TRACE_TAKE, 7, 0); /* put by a call that was not recorded */
	add_effect(&file, 12, WEIRI_TRACE_TAKE, 7, 0);
	expect(&file, 1, "item abc came out twice: for op \"b\" of frame 1 and for op \"c\" of frame 1\n");
}

Test(trace_check, an_item_comes_out_of_its_queue_and_after_it_was_put)
{
	struct trace_file file = four();

	add_run(&file, 10, 1, 0, 1, 2, NONE, NONE);
	add_effect(&file, 10, WEIRI_TRACE_TAKE, 7, 0xabc);
	expect(&file, 1, "item abc came out for op \"a\" of frame 1, and was not put\n");
	file = four();
	add_run(&file, 10, 1, 0, 1, 9, NONE, NONE);
	add_effect(&file, 10, WEIRI_TRACE_PUT, 7, 0xabc);
	add_run(&file, 11, 1, 1, 1, 9, NONE, NONE);
	add_effect(&file, 11, WEIRI_TRACE_TAKE, 8, 0xabc);
	expect(&file, 1, "item abc was put by op \"a\" of frame 1 and came out of another queue for op \"b\" of frame 1\n");
	file = four();
	add_run(&file, 10, 1, 0, 5, 6, NONE, NONE);
	add_effect(&file, 10, WEIRI_TRACE_PUT, VARIABLE, 0xabc);
	add_run(&file, 11, 1, 1, 1, 2, NONE, NONE);
	add_effect(&file, 11, WEIRI_TRACE_TAKE, VARIABLE, 0xabc);
	expect(&file, 1,
	       "no order explains what these ops saw:\n"
	       "  op \"a\" of frame 1 put item abc into \"w\", for\n"
	       "  op \"b\" of frame 1 ended before the start of\n"
	       "  op \"a\" of frame 1\n");
}

Test(trace_check, a_tensor_that_changed_is_found)
{
	struct trace_file file = diamond();

	add_right_run(&file, 1, 10, 0);
	add_effect(&file, 10, WEIRI_TRACE_MADE, 0, 111);
	add_effect(&file, 11, WEIRI_TRACE_USED, 0, 111);
	add_effect(&file, 12, WEIRI_TRACE_USED, 0, 111);
	add_effect(&file, 12, WEIRI_TRACE_USED, 0, 112);
	expect(&file, 1, "op \"c\" of frame 1 found another value than op \"a\" of frame 1 had made as output 0\n");
}

Test(trace_check, two_executions_inside_a_section_close_a_cycle)
{
	struct trace_file file = four();

	add_run(&file, 10, 1, 0, 1, 2, NONE, NONE);
	add_run(&file, 11, 1, 1, 3, 4, NONE, NONE);
	add_run(&file, 12, 1, 2, 5, 6, NONE, NONE);
	add_run(&file, 13, 1, 3, 7, 8, NONE, NONE);
	add_effect(&file, 10, WEIRI_TRACE_ENTERED, VARIABLE, 1);
	add_effect(&file, 11, WEIRI_TRACE_LEFT, VARIABLE, 1);
	add_effect(&file, 12, WEIRI_TRACE_ENTERED, VARIABLE, 2);
	add_effect(&file, 13, WEIRI_TRACE_LEFT, VARIABLE, 2);
	expect(&file, 0, "");
	file = four();
	add_run(&file, 10, 1, 0, 1, 2, NONE, NONE);
	add_run(&file, 11, 1, 1, 5, 6, NONE, NONE);
	add_run(&file, 12, 1, 2, 3, 4, NONE, NONE);
	add_run(&file, 13, 1, 3, 7, 8, NONE, NONE);
	add_effect(&file, 10, WEIRI_TRACE_ENTERED, VARIABLE, 1);
	add_effect(&file, 11, WEIRI_TRACE_LEFT, VARIABLE, 1);
	add_effect(&file, 12, WEIRI_TRACE_ENTERED, VARIABLE, 2);
	add_effect(&file, 13, WEIRI_TRACE_LEFT, VARIABLE, 2);
	expect(&file, 1,
	       "no order explains what these ops saw:\n"
	       "  op \"b\" of frame 1 was in section \"w\" before, or together with,\n"
	       "  op \"c\" of frame 1 ended before the start of\n"
	       "  op \"b\" of frame 1\n");
}

/* -- files that are no traces ------------------------------------------------------------------ */

static void expect_refused(struct trace_file *file, enum weir_status status, const char *message)
{
	struct trace trace;
	weir_error error;

	cr_expect_eq(trace_read(file->bytes, file->size, &trace, &error), status);
	cr_expect_str_eq(error.message, message);
	free(file->bytes);
}

static void add_brief(struct trace_file *file, uint32_t node, uint32_t count, uint32_t ns, uint64_t less, uint64_t too)
{
	add_record(file, WEIRI_TRACE_BRIEF, node | count << WEIRI_TRACE_BRIEF_COUNT_SHIFT, 2, ns | less << 32 | too << 48);
}

/* A diamond of which only the first node has a start and an end. */
Test(trace_check, a_brief_record_is_a_start_and_an_end)
{
	struct trace_file file = diamond();
	struct trace back;

	add_frame(&file, 1, 0);
	add_run(&file, 10, 1, 0, 1, 2, NONE, NONE);
	add_brief(&file, 1, 1, 3, 1, 0);
	add_brief(&file, 2, 1, 4, 2, 0);
	add_brief(&file, 3, 2, 5, 2, 1);
	add_frame_end(&file, 1, true, 20);
	cr_assert_eq(trace_read(file.bytes, file.size, &back, NULL), WEIR_OK);
	cr_assert_eq(back.event_count, 4);
	cr_expect_eq(back.events[3].number, 13);
	cr_expect_eq(back.events[3].node, 3);
	cr_expect_eq(back.events[3].frame_number, 1);
	cr_expect_eq(back.events[3].thread, 77);
	cr_expect_eq(back.events[3].start_ns, 9);
	cr_expect_eq(back.events[3].end_ns, 14);
	cr_expect_eq(back.events[3].ends, 1);
	cr_assert_eq(back.events[3].seen_count, 2);
	cr_expect_eq(back.events[3].seen[0], 11);
	cr_expect_eq(back.events[3].seen[1], 12);
	trace_free(&back);
	expect(&file, 0, "");
}

Test(trace_check, a_brief_record_tells_of_an_op_that_started_early)
{
	struct trace_file file = diamond();

	add_frame(&file, 1, 0);
	add_run(&file, 10, 1, 0, 1, 2, NONE, NONE);
	add_brief(&file, 1, 1, 3, 0, 0);
	add_brief(&file, 2, 1, 4, 2, 0);
	add_brief(&file, 3, 2, 5, 2, 1);
	add_frame_end(&file, 1, true, 20);
	expect(&file, 1, "op \"b\" of frame 1 started and had not seen the end of \"a\"\n");
}

Test(trace_check, what_is_no_trace_is_refused)
{
	struct trace_file file = {NULL, 0, 0};

	add_word(&file, 1);
	expect_refused(&file, WEIR_DATA_LOSS, "word 0: 8 bytes are not the words of a trace");
	file = diamond();
	file.bytes[0] = 'X';
	expect_refused(&file, WEIR_DATA_LOSS, "word 0: this is not a trace of Weir");
	file = diamond();
	file.bytes[8] = 1;
	expect_refused(&file, WEIR_UNIMPLEMENTED, "word 0: the trace has version 1, expected 3");
	file = diamond();
	file.size -= 8;
	expect_refused(&file, WEIR_DATA_LOSS, "word 55: the file ends within a record");
	file = new_file();
	add_record(&file, 99, 0, 2, UINT64_C(0));
	expect_refused(&file, WEIR_DATA_LOSS, "word 6: 99 is not a kind of record");
	file = new_file();
	add_record(&file, WEIRI_TRACE_END, 0, 2, UINT64_C(0));
	expect_refused(&file, WEIR_DATA_LOSS, "word 6: a record of kind 7 has 2 words, expected 3");
	file = new_file();
	add_node(&file, 0, "a", 0, NO_NODE, NO_NODE);
	expect_refused(&file, WEIR_DATA_LOSS, "word 6: a node of no plan");
	file = diamond();
	add_brief(&file, 0, 0, 1, 0, 0);
	expect_refused(&file, WEIR_DATA_LOSS, "word 72: a brief record follows no event of its thread that ended");
	file = diamond();
	add_frame(&file, 1, 0);
	add_run(&file, 10, 1, 0, 1, 2, NONE, NONE);
	add_record(&file, WEIRI_TRACE_THREAD, 78, 2, UINT64_C(2));
	add_start(&file, 20, 1, 1, 3, 10, NONE);
	add_brief(&file, 2, 1, 1, 10, 0);
	expect_refused(&file, WEIR_DATA_LOSS, "word 92: a brief record follows no event of its thread that ended");
	file = diamond();
	add_brief(&file, 0, 3, 1, 0, 0);
	expect_refused(&file, WEIR_DATA_LOSS, "word 72: a brief record has 3 dependencies");
	file = diamond();
	add_frame(&file, 1, 0);
	add_frame(&file, 1, 0);
	expect_refused(&file, WEIR_DATA_LOSS, "word 84: frame 1 occurs twice");
}

static void swallow(void *context, const char *text)
{
	*(size_t *)context += strlen(text);
}

Test(trace_check, a_trace_is_drawn_for_chrome)
{
	struct trace_file file = diamond();
	struct trace trace;
	size_t size = 0;

	add_right_run(&file, 1, 10, 0);
	add_effect(&file, 10, WEIRI_TRACE_PUT, VARIABLE, 5);
	trace_kit_read(&file, &trace);
	trace_chrome(&trace, swallow, &size);
	cr_expect_gt(size, 1000);
	trace_free(&trace);
	free(file.bytes);
}

/* Two reductions, 1 to 10 and 20 to 25, beside ops from 2 to 5, 4 to 7 and 9 to 12. */
Test(trace_check, the_time_beside_other_ops_is_added_up)
{
	static const uint64_t times[5][2] = {{1, 10}, {4, 7}, {2, 5}, {9, 12}, {20, 25}};
	struct trace_file file = new_file();
	struct trace_hiding hiding;
	struct trace trace;

	add_record(&file, WEIRI_TRACE_PLAN, 5, 2, UINT64_C(1));
	for (uint32_t i = 0; i < 5; i++)
		add_node(&file, i, i == 0 || i == 4 ? "r" : "a", 0, NO_NODE, NO_NODE);
	add_frame(&file, 1, 0);
	for (uint32_t i = 0; i < 5; i++)
		add_run(&file, 10 + i, 1, i, times[i][0], times[i][1], NONE, NONE);
	trace_kit_read(&file, &trace);
	cr_assert(trace_hidden(&trace, "reduce", &hiding));
	cr_expect_eq(hiding.ops, 2);
	cr_expect_eq(hiding.total_ns, 9 + 5);
	cr_expect_eq(hiding.hidden_ns, 5 + 1);
	cr_assert(trace_hidden(&trace, "none", &hiding));
	cr_expect_eq(hiding.ops + hiding.total_ns, 0);
	trace_free(&trace);
	free(file.bytes);
}
