/*
 * test_history_tools.c - recording, shrinking and printing of histories, and the rest of the
 * general checker.
 */
#include "history_kit.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

/* -- recording --------------------------------------------------------------------------------- */

enum { THREADS = 3, EACH = 500 };

struct worker {
	struct history_log *log;
	_Atomic(uint64_t) *shared;
	pthread_t thread;
};

/*
 * fetch_add on one counter is a register whose versions are its values. The thread that makes the
 * next version has seen the last.
 */
static void *work(void *argument)
{
	struct worker *worker = argument;

	for (unsigned i = 0; i < EACH; i++) {
		uint64_t called = history_call(worker->log);
		uint64_t before = atomic_fetch_add_explicit(worker->shared, 1, memory_order_seq_cst);
		uint64_t returned = history_return(worker->log);
		struct history_part part = {0, before, before + 1, before + 1};

		history_note_parts(worker->log, HISTORY_WRITE, &part, 1, HISTORY_NONE, called, returned);
	}
	return NULL;
}

static void record(enum history_clock clock)
{
	struct history_recorder *recorder = history_recorder_create(THREADS, EACH, EACH, clock);
	struct worker worker[THREADS];
	_Atomic(uint64_t) shared;
	struct history history;
	struct history_finding finding;

	atomic_init(&shared, 1);
	cr_assert(recorder != NULL);
	for (unsigned i = 0; i < THREADS; i++) {
		worker[i] = (struct worker){.log = history_recorder_log(recorder, i), .shared = &shared};
		cr_assert(pthread_create(&worker[i].thread, NULL, work, &worker[i]) == 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		(void)pthread_join(worker[i].thread, NULL);
	history_init(&history);
	cr_assert(history_recorder_collect(recorder, &history));
	cr_assert(history.count == THREADS * EACH && history.part_count == THREADS * EACH);
	cr_assert(history_check_register(&history, 1, &finding) == HISTORY_HOLDS, "%s", finding.what);
	cr_assert(history_check_serial(&history, 1, NULL, &finding) == HISTORY_HOLDS, "%s", finding.what);
	/* The check can fail: it finds that the last write was moved ahead of all others. */
	history.op[history.count - 1].called = history.op[history.count - 1].returned = 0;
	cr_assert(history_check_register(&history, 1, &finding) == HISTORY_VIOLATED);
	history_fini(&history);
	history_recorder_destroy(recorder);
}

Test(history_tools, each_clock_agrees_with_real_time)
{
	record(HISTORY_CLOCK_BEST);
	record(HISTORY_CLOCK_COUNTER);
	record(HISTORY_CLOCK_SYSTEM);
}

Test(history_tools, the_best_clock_is_one_that_agrees)
{
	enum history_clock clock = history_clock_best();

	cr_assert(clock == HISTORY_CLOCK_CYCLES || clock == HISTORY_CLOCK_COUNTER);
	cr_assert(history_clock_agrees(HISTORY_CLOCK_COUNTER, 2, 1000), "tickets cannot go back");
}

Test(history_tools, a_log_that_is_full_counts_what_it_lost)
{
	struct history_recorder *recorder = history_recorder_create(1, 1, 0, HISTORY_CLOCK_COUNTER);
	struct history_log *log;
	struct history history;

	cr_assert(recorder != NULL);
	log = history_recorder_log(recorder, 0);
	history_note(log, HISTORY_PUT, 1, HISTORY_NONE, 1, 2);
	history_init(&history);
	cr_assert(history_recorder_collect(recorder, &history) && history.count == 1);
	history_note(log, HISTORY_PUT, 2, HISTORY_NONE, 3, 4);
	cr_assert(log->lost == 1 && !history_recorder_collect(recorder, &history),
	          "a history with lost operations must not be judged");
	history_recorder_reset(recorder);
	cr_assert(log->lost == 0 && log->count == 0);
	history_fini(&history);
	history_recorder_destroy(recorder);
}

/* -- the general checker ----------------------------------------------------------------------- */

static void add(struct history *history, uint32_t thread, uint64_t called, uint64_t returned, enum history_kind kind,
                uint64_t number)
{
	int calls_with_it = kind == HISTORY_PUT || kind == HISTORY_PUT_FULL || kind == HISTORY_CLOSE;
	struct history_op op = {.called = called,
	                        .returned = returned,
	                        .kind = (uint16_t)kind,
	                        .thread = thread,
	                        .argument = calls_with_it ? number : HISTORY_NONE,
	                        .result = calls_with_it ? HISTORY_NONE : number};

	cr_assert(history_add(history, &op, NULL));
}

/*
 * A structure of the user's own: a stack. The state is the number of values, followed by the
 * values.
 */
static size_t stack_size(const struct history *history, const void *context)
{
	(void)context;
	return (history->count + 1) * sizeof(uint64_t);
}

static void stack_start(const struct history *history, const void *context, void *state)
{
	memset(state, 0, stack_size(history, context));
}

static int stack_step(const struct history *history, const struct history_op *op, const void *context, void *state)
{
	uint64_t *stack = state;

	(void)history;
	(void)context;
	if (op->kind == HISTORY_PUT) {
		stack[++stack[0]] = op->argument;
		return 1;
	}
	if (op->kind == HISTORY_TAKE_EMPTY)
		return stack[0] == 0;
	if (stack[0] == 0 || stack[stack[0]] != op->result)
		return 0;
	stack[stack[0]--] = 0;
	return 1;
}

static const struct history_model stack_model = {stack_size, stack_start, stack_step};

Test(history_tools, a_model_of_ones_own_is_judged)
{
	struct history history;
	struct history_finding finding;
	uint32_t order[4];

	history_init(&history);
	add(&history, 0, 0, 1, HISTORY_PUT, 1);
	add(&history, 0, 2, 9, HISTORY_PUT, 2);
	add(&history, 1, 3, 8, HISTORY_TAKE, 2);
	add(&history, 1, 9, 10, HISTORY_TAKE, 1);
	cr_assert(history_check_general(&history, &stack_model, NULL, 1000, order, &finding) == HISTORY_HOLDS);
	cr_assert(order[0] == 0 && order[1] == 1 && order[2] == 2 && order[3] == 3);
	history.op[1].called = history.op[1].returned = 9;
	cr_assert(history_check_general(&history, &stack_model, NULL, 1000, NULL, &finding) == HISTORY_VIOLATED);
	cr_assert(finding.witnesses == 1 && finding.witness[0] == 2, "no order has a place for the take of 2");
	history_fini(&history);
}

/*
 * Two threads each make a put and then a take, and nothing is known across threads. No times can
 * express that: the put that returns first also comes before the take of the other thread.
 */
Test(history_tools, sets_order_what_no_times_could)
{
	struct history history;
	struct history_finding finding;
	struct history_bounds none = {0, 0};
	uint32_t order[4];
	uint64_t before[4] = {0, 1, 0, 4};

	history_init(&history);
	add(&history, 0, 0, 1, HISTORY_PUT, 1);
	add(&history, 0, 2, 3, HISTORY_TAKE_EMPTY, 0);
	add(&history, 1, 4, 5, HISTORY_PUT, 2);
	add(&history, 1, 6, 7, HISTORY_TAKE, 1);
	history.before = before;
	cr_assert(history_check_general(&history, &history_model_fifo, &none, 1000, order, &finding) == HISTORY_VIOLATED,
	          "2 is inside from its put on");
	cr_assert_str_eq(finding.pattern, "none fits");
	history.op[1].kind = HISTORY_TAKE;
	history.op[1].result = 2;
	cr_assert(history_check_general(&history, &history_model_fifo, &none, 1000, order, &finding) == HISTORY_HOLDS);
	cr_assert(order[0] < 4 && order[1] < 4 && order[0] % 2 == 0, "a put comes first");
	before[2] = 1; /* 1 goes in first, so it comes out first */
	before[3] = 6;
	cr_assert(history_check_general(&history, &history_model_fifo, &none, 1000, order, &finding) == HISTORY_VIOLATED);
	before[1] = 8; /* each operation waits for the other */
	cr_assert(history_check_general(&history, &history_model_fifo, &none, 1000, order, &finding) == HISTORY_VIOLATED);
	history.before = NULL;
	history_fini(&history);
}

static enum history_verdict judge(struct history *history, uint64_t capacity)
{
	struct history_bounds bounds = {capacity, 0};
	struct history_finding finding;

	return history_check_general(history, &history_model_fifo, &bounds, 1000, NULL, &finding);
}

Test(history_tools, after_a_close_returned_nothing_goes_in)
{
	struct history history;

	history_init(&history);
	add(&history, 0, 0, 1, HISTORY_PUT, 1);
	add(&history, 1, 2, 3, HISTORY_CLOSE, 0);
	add(&history, 1, 4, 5, HISTORY_TAKE, 1);
	add(&history, 0, 2, 9, HISTORY_PUT, 2);
	add(&history, 1, 10, 11, HISTORY_TAKE, 2);
	add(&history, 1, 12, 13, HISTORY_TAKE_ENDED, 0);
	add(&history, 0, 14, 15, HISTORY_PUT_CLOSED, 3);
	cr_assert(judge(&history, 1) == HISTORY_HOLDS, "a put that was called before may find room later");
	history.op[3].called = 4;
	cr_assert(judge(&history, 0) == HISTORY_VIOLATED, "called after the close had returned");
	history.op[3].called = 2;
	history.op[5].called = 1;
	history.op[5].returned = 16;
	cr_assert(judge(&history, 0) == HISTORY_HOLDS);
	history.op[4].kind = HISTORY_TAKE_ENDED;
	history.op[5].kind = HISTORY_TAKE;
	history.op[5].argument = 2;
	cr_assert(judge(&history, 0) == HISTORY_VIOLATED, "the value is still inside");
	history_fini(&history);
}

Test(history_tools, a_close_that_cancels_empties)
{
	struct history history;

	history_init(&history);
	add(&history, 0, 0, 1, HISTORY_PUT, 1);
	add(&history, 0, 2, 3, HISTORY_CLOSE, HISTORY_CANCELS);
	add(&history, 0, 4, 5, HISTORY_TAKE_ENDED, 0);
	cr_assert(judge(&history, 0) == HISTORY_HOLDS);
	history.op[1].argument = 0;
	cr_assert(judge(&history, 0) == HISTORY_VIOLATED);
	add(&history, 1, 0, 1, HISTORY_LOOK_CLOSED, 0);
	history.op[1].argument = HISTORY_CANCELS;
	cr_assert(judge(&history, 0) == HISTORY_HOLDS);
	history.op[3].called = history.op[3].returned = 6;
	cr_assert(judge(&history, 0) == HISTORY_VIOLATED, "the queue was closed by then");
	history_fini(&history);
}

Test(history_tools, a_budget_that_is_used_up_decides_nothing)
{
	struct history history;
	struct history_finding finding;
	struct history_bounds none = {0, 0};

	history_init(&history);
	for (uint64_t i = 0; i < 12; i++)
		add(&history, (uint32_t)i, 0, 10, HISTORY_PUT, i);
	add(&history, 0, 20, 21, HISTORY_TAKE, 99);
	cr_assert(history_check_general(&history, &history_model_fifo, &none, 100, NULL, &finding) == HISTORY_UNDECIDED);
	cr_assert(history_check_general(&history, &history_model_multiset, &none, 1 << 20, NULL, &finding) ==
	          HISTORY_VIOLATED);
	history_fini(&history);
}

/* -- shrinking and printing -------------------------------------------------------------------- */

static int fifo_fails(const struct history *history, void *context)
{
	struct history_finding finding;

	return history_check_fifo(history, context, &finding) == HISTORY_VIOLATED;
}

/* A long run of a queue by two threads, with one swap in the middle. */
static void make_long(struct history *history, uint64_t values)
{
	for (uint64_t i = 0; i < values; i++) {
		uint64_t out = i == values / 2 ? i + 1 : i == values / 2 + 1 ? i - 1 : i;

		add(history, 0, 10 * i, 10 * i + 1, HISTORY_PUT, i);
		add(history, 1, 10 * i + 25, 10 * i + 26, HISTORY_TAKE, out);
	}
	add(history, 1, 0, 0, HISTORY_TAKE_EMPTY, HISTORY_NONE);
	history_sort(history);
}

Test(history_tools, a_failure_shrinks_to_its_reason)
{
	struct history history, small;
	struct history_finding finding;
	struct history_bounds none = {0, 0};
	uint32_t unit[401];

	history_init(&history);
	make_long(&history, 200);
	cr_assert(history.count == 401);
	cr_assert(history_check_fifo(&history, &none, &finding) == HISTORY_VIOLATED);
	history_units_of_values(&history, &none, &finding, unit);
	cr_assert(history_shrink(&history, unit, fifo_fails, &none, &small));
	cr_assert(small.count == 4, "two values are enough, %zu operations are left", small.count);
	cr_assert(fifo_fails(&small, &none));
	history_fini(&small);
	history_fini(&history);
}

/*
 * If items must be inside for an answer, their operations stay. Otherwise the small history would
 * fail only because they are missing.
 */
static int fifo_says_full(const struct history *history, void *context)
{
	struct history_finding finding;

	return history_check_fifo(history, context, &finding) == HISTORY_VIOLATED && strcmp(finding.pattern, "full") == 0;
}

Test(history_tools, what_fills_a_queue_stays_while_it_shrinks)
{
	struct history history, small;
	struct history_finding finding;
	struct history_bounds two = {.capacity = 2};
	uint32_t unit[5];

	history_init(&history);
	add(&history, 0, 0, 1, HISTORY_PUT, 1);
	add(&history, 0, 2, 3, HISTORY_PUT, 2);
	add(&history, 0, 4, 5, HISTORY_PUT_FULL, 3);
	add(&history, 0, 6, 7, HISTORY_TAKE, 1);
	for (uint32_t i = 0; i < history.count; i++)
		unit[i] = i + 1;
	cr_assert(!history_shrink(&history, unit, fifo_says_full, &two, &small), "nothing fails, nothing shrinks");
	add(&history, 0, 8, 9, HISTORY_PUT_FULL, 4);
	cr_assert(history_check_fifo(&history, &two, &finding) == HISTORY_VIOLATED);
	history_units_of_values(&history, &two, &finding, unit);
	cr_assert(history_shrink(&history, unit, fifo_says_full, &two, &small));
	cr_assert(small.count == 2, "2 was inside, 1 was not; %zu operations are left", small.count);
	cr_assert(small.op[0].argument == 2 && small.op[1].argument == 4);
	history_fini(&small);
	history_fini(&history);
}

static int serial_fails(const struct history *history, void *context)
{
	struct history_finding finding;

	(void)context;
	return history_check_serial(history, 1, NULL, &finding) == HISTORY_VIOLATED;
}

Test(history_tools, a_torn_snapshot_shrinks_to_two_operations)
{
	struct history history, small;
	uint32_t unit[201];

	history_init(&history);
	for (uint64_t v = 2; v < 202; v++) {
		struct history_part both[2] = {{0, v - 1, v, v}, {1, v - 1, v, v}};
		struct history_op op = {.called = 10 * v, .returned = 10 * v + 5, .kind = HISTORY_WRITE, .parts = 2};

		cr_assert(history_add(&history, &op, both));
		if (v == 100) {
			struct history_part torn[2] = {{0, v, HISTORY_NONE, v}, {1, v - 1, HISTORY_NONE, v - 1}};

			op.kind = HISTORY_READ;
			op.thread = 1;
			cr_assert(history_add(&history, &op, torn));
		}
	}
	history_units_of_versions(&history, unit);
	cr_assert(history_shrink(&history, unit, serial_fails, NULL, &small));
	cr_assert(small.count == 2 && small.partial, "%zu are left", small.count);
	history_fini(&small);
	history_fini(&history);
}

Test(history_tools, a_failure_is_printed_in_columns)
{
	static const char expected[] = "        time  thread 0    thread 2\n"
								   "           0  *[ put 1\n"
								   "           5  *] ok\n"
								   "          10  *[ put 2\n"
								   "          15   |          *[ take\n"
								   "          20  *] ok        |\n"
								   "          25              *] 2\n"
								   "          30               [ take\n"
								   "          35               ] empty\n";
	struct history history;
	struct history_finding finding;
	struct history_bounds none = {0, 0};
	char *text = NULL;
	size_t size = 0;
	FILE *file;

	history_init(&history);
	add(&history, 0, 100, 105, HISTORY_PUT, 1);
	add(&history, 0, 110, 120, HISTORY_PUT, 2);
	add(&history, 2, 115, 125, HISTORY_TAKE, 2);
	add(&history, 2, 130, 135, HISTORY_TAKE_EMPTY, HISTORY_NONE);
	cr_assert(history_check_fifo(&history, &none, &finding) == HISTORY_VIOLATED);
	file = open_memstream(&text, &size);
	cr_assert(file != NULL);
	history_print(file, &history, &finding, NULL);
	(void)fclose(file);
	cr_assert(strcmp(text, expected) == 0, "\n%s", text);
	free(text);
	history_fini(&history);
}

/* -- a structure that is broken ---------------------------------------------------------------- */

/*
 * A ring that gives a slot away before it is filled. A put that stops in between makes every later
 * "empty" wrong. The halves of a put are called one by one, so the test does not depend on chance.
 */
struct hasty_ring {
	uint64_t slot[8];
	unsigned head, tail;
};

static unsigned begin_put(struct hasty_ring *ring)
{
	return ring->tail++;
}

static void end_put(struct hasty_ring *ring, unsigned slot, uint64_t value)
{
	ring->slot[slot] = value;
}

/* Returns 0 if the ring is empty. */
static uint64_t try_take(struct hasty_ring *ring)
{
	uint64_t value = ring->slot[ring->head];

	ring->head += value != 0;
	return value;
}

static void take_and_note(struct hasty_ring *ring, struct history_log *log)
{
	uint64_t called = history_call(log), value = try_take(ring), returned = history_return(log);

	history_note(log, value != 0 ? HISTORY_TAKE : HISTORY_TAKE_EMPTY, HISTORY_NONE, value != 0 ? value : HISTORY_NONE,
	             called, returned);
}

/* The slow put spans the put and the take of the other thread, and all three are recorded. */
static void interleave(struct hasty_ring *ring, struct history_recorder *recorder)
{
	struct history_log *slow = history_recorder_log(recorder, 0), *quick = history_recorder_log(recorder, 1);
	uint64_t slow_call = history_call(slow), quick_call;
	unsigned slot = begin_put(ring);

	quick_call = history_call(quick);
	end_put(ring, begin_put(ring), 2);
	history_note(quick, HISTORY_PUT, 2, HISTORY_NONE, quick_call, history_return(quick));
	take_and_note(ring, quick);
	end_put(ring, slot, 1);
	history_note(slow, HISTORY_PUT, 1, HISTORY_NONE, slow_call, history_return(slow));
	take_and_note(ring, slow);
	take_and_note(ring, quick);
}

Test(history_tools, a_ring_that_promises_before_it_keeps_is_caught)
{
	struct history_recorder *recorder = history_recorder_create(2, 8, 0, HISTORY_CLOCK_COUNTER);
	struct hasty_ring ring = {{0}, 0, 0};
	struct history history;
	struct history_finding finding;
	struct history_bounds none = {0, 0};

	cr_assert(recorder != NULL);
	interleave(&ring, recorder);
	history_init(&history);
	cr_assert(history_recorder_collect(recorder, &history) && history.count == 5);
	cr_assert(history_check_fifo(&history, &none, &finding) == HISTORY_VIOLATED);
	cr_assert(strcmp(finding.pattern, "empty") == 0, "%s", finding.what);
	cr_assert(history_check_general(&history, &history_model_fifo, &none, 1000, NULL, &finding) == HISTORY_VIOLATED);
	history_fini(&history);
	history_recorder_destroy(recorder);
}
