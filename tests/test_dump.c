/*
 * test_dump.c - what a dump says of each queue and critical section, while other threads use them,
 * and into any kind of descriptor.
 *
 * If all tests share a process, there may be queues of other tests. So the tests find their queues
 * by name.
 */
#include <weir/critical_section.h>
#include <weir/announce.h>
#include <weir/dump.h>
#include <weir/flow/tensor_queue.h>
#include <weir/queue_runner.h>
#include <weir/select.h>

#include "queue_kit.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>

#include "dump_kit.h"
#include "failing_allocator.h"
#include "sync/registry.h"
#include "sandbox.h"
#include "stepped.h"

static weir_queue *named(const char *name, struct weir_queue_options options)
{
	options.name = name;
	if (options.capacity == 0)
		options.capacity = 3;
	return queue_with(options);
}

/* -- step by step ------------------------------------------------------------------------------ */

/*
 * These tests are the first, because a dump walks over what all earlier queues of the process have
 * left behind.
 */

enum { STAY = 3, GO = 3, STRIDE = 40 };

static void dump_into(void *context)
{
	(void)weir_dump(*(const int *)context);
}

/* Returns how often `announced` occurs. */
static size_t times_in(const char *text, const char *announced)
{
	size_t times = 0;

	for (const char *at = text; (at = strstr(at, announced)) != NULL; at++)
		times++;
	return times;
}

/*
 * Stops a dump before instruction number `at`, while the announced consumers withdraw. Returns how
 * many of them the dump shows.
 */
static size_t dump_while_some_withdraw(weir_queue *queue, size_t at)
{
	weir_queue_announcement *stay[STAY], *go[GO];
	int file = file_for_a_dump();
	struct stepped call = {.call = dump_into, .context = &file};
	size_t shown;
	char *text;

	for (int i = 0; i < STAY; i++)
		cr_assert_eq(weir_queue_announce(queue, WEIR_QUEUE_PRODUCER, "stays", &stay[i], NULL), WEIR_OK);
	for (int i = 0; i < GO; i++)
		cr_assert_eq(weir_queue_announce(queue, WEIR_QUEUE_CONSUMER, "goes", &go[i], NULL), WEIR_OK);
	cr_assert_eq(stepped_start(&call, at), 1);
	for (int i = 0; i < GO; i++)
		weir_queue_withdraw(go[i]);
	stepped_finish(&call);
	text = text_of(file);
	cr_expect_eq(times_in(text, ", as \"stays\"\n"), STAY, "stopped at %zu:\n%s", at, text);
	shown = times_in(text, ", as \"goes\"\n");
	free(text);
	for (int i = 0; i < STAY; i++)
		weir_queue_withdraw(stay[i]);
	return shown;
}

/* A walk that has lost its place begins again, and meets announcements that it has already seen. */
Test(dump, shows_each_participant_once_while_others_withdraw)
{
	weir_queue *queue;
	size_t shown;

	stepped_or_skip();
	queue = named("served", (struct weir_queue_options){.capacity = 1});
	for (size_t at = 0; (shown = dump_while_some_withdraw(queue, at)) < GO; at += stepped_stride(STRIDE))
		;
	cr_expect_eq(shown, GO, "each of them was seen before it withdrew");
	destroy(queue);
}

/*
 * Stops a dump before instruction number `at`, while the queue is destroyed. Returns 0 if the dump
 * ended before. Sets *frees if the dump then holds the queue, and so must free it.
 */
static int dump_while_it_is_destroyed(size_t at, int *frees)
{
	struct failing_allocator memory = {0};
	weir_allocator hooks = failing_allocator_hooks(&memory);
	weir_queue *queue = named("doomed", (struct weir_queue_options){.capacity = 1, .allocator = &hooks});
	int file = file_for_a_dump(), stands;
	struct stepped call = {.call = dump_into, .context = &file};
	char *text;

	stands = stepped_start(&call, at);
	destroy(queue);
	*frees = weiri_load_relaxed(&memory.outstanding) != 0;
	stepped_finish(&call);
	cr_assert_eq(weir_reclaim_flush(in_good_time()), WEIR_OK);
	cr_expect_str_eq(failing_allocator_verdict(&memory), "balanced", "stopped at %zu", at);
	text = text_of(file);
	cr_expect(!*frees || strstr(text, "queue \"doomed\" (number ") != NULL, "stopped at %zu:\n%s", at, text);
	free(text);
	return stands;
}

Test(dump, frees_a_queue_that_is_destroyed_while_it_is_read)
{
	size_t freed = 0;
	int frees;

	stepped_or_skip();
	for (size_t at = 0; dump_while_it_is_destroyed(at, &frees); at += stepped_stride(STRIDE))
		freed += (size_t)frees;
	cr_expect_neq(freed, (size_t)0);
	cr_expect_eq(frees, 0, "a dump that has ended holds nothing");
}

/* -- what a dump says -------------------------------------------------------------------------- */

static int64_t key_of(void *context, void *any)
{
	(void)context;
	return (int64_t)number_of(any);
}

Test(dump, says_what_a_queue_is_and_how_full)
{
	weir_queue *fifo_queue = named("a fifo", (struct weir_queue_options){.flags = WEIR_QUEUE_FAIR});
	weir_queue *shuffled = named("a shuffle", (struct weir_queue_options){.order = WEIR_QUEUE_SHUFFLE, .seed = 1});
	weir_queue *sorted = named("by key", (struct weir_queue_options){.order = WEIR_QUEUE_PRIORITY, .key = key_of});

	put(fifo_queue, 1, 3);
	expect_next(fifo_queue, 1, 2);
	put(shuffled, 1, 1);
	cr_assert_eq(weir_queue_close(sorted, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
	expect_line("a fifo", "^queue \"a fifo\" \\(number [0-9]+\\): FIFO, fair, 1 of 3 inside, open$");
	expect_line("a fifo", "^  3 in, 2 out, at most 3 inside; waits: 0 of enqueues \\(the ended ones 0.000 s\\), 0 of "
	                      "dequeues \\(0.000 s\\); 0 wakes, 0 retries$");
	expect_line("a shuffle", "^queue \"a shuffle\" \\(number [0-9]+\\): shuffle, 1 of 3 inside, open$");
	expect_line("by key", "^queue \"by key\" \\(number [0-9]+\\): priority, 0 of 3 inside, closed$");
	destroy(fifo_queue);
	destroy(shuffled);
	destroy(sorted);
}

Test(dump, says_who_waits_by_number_and_name_of_the_thread)
{
	weir_queue *empty = named("empty", (struct weir_queue_options){.capacity = 3});
	weir_queue *full = named("full", (struct weir_queue_options){.capacity = 1});
	struct call eater = {.kind = DEQUEUE, .queue = empty}, batch = {.kind = DEQUEUE_MANY, .queue = empty, .count = 2},
				feeder = {.kind = ENQUEUE, .queue = full, .items = {item(2)}};
	char lines[3][128];
	const char *patterns[3] = {lines[0], lines[1], "open, a batch collects$"};

	put(full, 1, 1);
	begin_waiting_call(&eater, 1);
	(void)pthread_setname_np(eater.thread, "eater");
	begin_waiting_call(&batch, 2);
	(void)pthread_setname_np(batch.thread, "a \"batch\"");
	begin_waiting_call(&feeder, 1);
	(void)snprintf(lines[0], sizeof(lines[0]),
	               "^  waits for an item: thread %d \"eater\", dequeue of 1, for [0-9.]+ s$",
	               weiri_load_relaxed(&eater.number_of_thread));
	(void)snprintf(lines[1], sizeof(lines[1]),
	               "^  waits for an item: thread %d \"a .batch.\", dequeue of 2, for [0-9.]+ s$",
	               weiri_load_relaxed(&batch.number_of_thread));
	expect_lines("empty", patterns, 3);
	(void)snprintf(lines[2], sizeof(lines[2]), "^  waits for room: thread %d \".*\", enqueue of 1, for [0-9.]+ s$",
	               weiri_load_relaxed(&feeder.number_of_thread));
	expect_line("full", lines[2]);
	put(empty, 1, 3);
	cr_assert_eq(end_call(&eater), WEIR_OK);
	cr_assert_eq(end_call(&batch), WEIR_OK);
	expect_next(full, 1, 1);
	cr_assert_eq(end_call(&feeder), WEIR_OK);
	expect_next(full, 2, 1);
	destroy(empty);
	destroy(full);
}

static void ended(void *context, enum weir_status status, const weir_error *error, void **items, size_t done)
{
	(void)context, (void)status, (void)error, (void)items, (void)done;
}

static void select_ended(void *context, enum weir_status status, const weir_error *error,
                         struct weir_select_case cases[], size_t chosen)
{
	(void)context, (void)status, (void)error, (void)cases, (void)chosen;
}

Test(dump, says_what_no_thread_waits_for)
{
	weir_queue *queue = named("async", (struct weir_queue_options){.capacity = 3});
	struct weir_select_case cases[2] = {{.queue = queue, .kind = WEIR_SELECT_DEQUEUE},
	                                    {.queue = queue, .kind = WEIR_SELECT_DEQUEUE}};
	weir_pending *ops[2];
	char lines[2][128];
	void *got[2];
	int fd;

	/* A descriptor is not a waiter. */
	cr_assert_eq(weir_queue_readable_fd(queue, &fd, NULL), WEIR_OK);
	cr_assert_eq(weir_queue_start(queue, WEIR_QUEUE_OP_DEQUEUE_UP_TO, got, 2, ended, NULL, &ops[0], NULL), WEIR_OK);
	cr_assert_eq(weir_select_start(cases, 2, select_ended, NULL, &ops[1], NULL), WEIR_OK);
	(void)snprintf(lines[0], sizeof(lines[0]),
	               "^  waits for an item: dequeue of up to 2, asynchronous, begun by thread %d \".*\", for [0-9.]+ s$",
	               gettid());
	(void)snprintf(lines[1], sizeof(lines[1]),
	               "^  waits for an item: select of 2 cases, asynchronous, begun by thread %d \".*\", for [0-9.]+ s$",
	               gettid());
	expect_line("async", lines[0]);
	expect_line("async", lines[1]);
	for (int i = 0; i < 2; i++) {
		weir_pending_cancel(ops[i], NULL);
		weir_pending_release(ops[i]);
	}
	expect_line("async",
	            "^  0 in, 0 out, at most 0 inside; waits: 0 of enqueues \\(the ended ones 0.000 s\\), 3 of dequeues ");
	expect_no_line("async", "waits for");
	destroy(queue);
}

static void execution_ended(void *context, enum weir_status status, const weir_error *error)
{
	(void)context, (void)status, (void)error;
}

static enum weir_status nothing(void *context, weir_error *error)
{
	(void)context, (void)error;
	return WEIR_OK;
}

struct press {
	weir_critical_section *section;
	weir_pool *pool;
};

static enum weir_status look_from_inside(void *context, weir_error *error)
{
	struct press *press = context;
	char taken[128], waits[128];

	cr_assert_eq(weir_critical_section_start(press->section, press->pool, nothing, NULL, execution_ended, NULL, error),
	             WEIR_OK);
	(void)snprintf(taken, sizeof(taken), "^critical section \"press\" \\(number [0-9]+\\): taken by thread %d \".*\"$",
	               gettid());
	(void)snprintf(waits, sizeof(waits),
	               "^  waits to enter: execute, asynchronous, begun by thread %d \".*\", for [0-9.]+ s$", gettid());
	expect_line("press", taken);
	expect_line("press", waits);
	return WEIR_OK;
}

Test(dump, says_who_is_in_a_critical_section_and_who_waits)
{
	struct weir_critical_section_options options = {WEIR_CRITICAL_SECTION_OPTIONS_INIT, .name = "press"};
	struct weir_pool_options no_threads = {WEIR_POOL_OPTIONS_INIT, .flags = WEIR_POOL_NO_THREADS};
	struct press press;

	cr_assert_eq(weir_critical_section_create(&options, &press.section, NULL), WEIR_OK);
	cr_assert_eq(weir_pool_create(&no_threads, &press.pool, NULL), WEIR_OK);
	expect_line("press", "^critical section \"press\" \\(number [0-9]+\\): free$");
	cr_assert_eq(weir_critical_section_execute(press.section, look_from_inside, &press, 0, NULL, NULL), WEIR_OK);
	expect_line("press", ": taken, by no thread in particular$");
	cr_assert_eq(weir_pool_help(press.pool, 1), 1);
	expect_line("press", ": free$");
	expect_line("press", "^  entered 2 times; 1 waited [0-9.]+ s; ");
	expect_no_line("press", "waits to enter");
	cr_assert_eq(weir_pool_destroy(press.pool, NULL), WEIR_OK);
	cr_assert_eq(weir_critical_section_destroy(press.section, NULL), WEIR_OK);
	expect_no_line("press", "press");
}

Test(dump, says_how_many_more_wait_than_it_shows)
{
	enum { MANY = 50 };
	weir_queue *queue = named("many", (struct weir_queue_options){.capacity = 3});
	weir_pending *ops[MANY];
	void *got[MANY];
	char *part;
	size_t shown = 0;

	for (int i = 0; i < MANY; i++)
		cr_assert_eq(weir_queue_start(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, &got[i], 1, ended, NULL, &ops[i], NULL),
		             WEIR_OK);
	part = part_dumped("many");
	for (const char *at = part; (at = strstr(at, "waits for")) != NULL; at++)
		shown++;
	cr_expect_eq(shown, 32);
	cr_expect(matches(part, "^  and others, of 50 on both sides$"), "%s", part);
	free(part);
	for (int i = 0; i < MANY; i++) {
		weir_pending_cancel(ops[i], NULL);
		weir_pending_release(ops[i]);
	}
	destroy(queue);
}

/* The first file that is opened then has the number 0. */
Test(dump, names_threads_where_standard_input_is_closed)
{
	weir_queue *queue = named("async", (struct weir_queue_options){.capacity = 1});
	int file = file_for_a_dump(), before = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3), left_open;
	char name[32] = "", begun[64], *text;
	enum weir_status status;
	weir_pending *op;
	void *got;

	cr_assert_eq(pthread_getname_np(pthread_self(), name, sizeof(name)), 0);
	cr_assert_eq(weir_queue_start(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, &got, 1, ended, NULL, &op, NULL), WEIR_OK);
	(void)close(STDIN_FILENO);
	status = weir_dump(file);
	left_open = fcntl(STDIN_FILENO, F_GETFD) != -1;
	if (before != -1)
		(void)dup2(before, STDIN_FILENO);
	(void)close(before);
	cr_expect_eq(status, WEIR_OK);
	cr_expect_not(left_open, "the descriptor for the name is closed again");
	text = text_of(file);
	(void)snprintf(begun, sizeof(begun), "begun by thread %d \"%s\", for ", gettid(), name);
	cr_expect_not_null(strstr(text, begun), "no %s in:\n%s", begun, text);
	free(text);
	weir_pending_cancel(op, NULL);
	weir_pending_release(op);
	destroy(queue);
}

Test(dump, makes_names_printable_and_cuts_them)
{
	char name[200] = "bad\n\"name\"\x01 ", shown[128];
	weir_queue *queue;
	char *text;

	memset(name + strlen(name), 'x', sizeof(name) - 1 - strlen(name));
	queue = named(name, (struct weir_queue_options){.capacity = 1});
	text = dumped();
	(void)snprintf(shown, sizeof(shown), "^queue \"bad\\?\\?name\\?\\? x+\\.\\.\\.\" \\(number [0-9]+\\): ");
	cr_expect(matches(text, shown), "%s", text);
	free(text);
	destroy(queue);
}

/*
 * Expects that all lines with this beginning differ only in their numbers: nothing is lost or added
 * where a long text is written in pieces.
 */
static void expect_alike(const char *text, const char *beginning)
{
	char first[256] = "", line[256];

	for (const char *at = strstr(text, beginning); at != NULL; at = strstr(at + 1, beginning)) {
		size_t length = 0;

		for (const char *c = at; *c != '\n' && *c != '\0' && length < sizeof(line) - 1; c++) {
			if (!isdigit((unsigned char)*c))
				line[length++] = *c;
		}
		line[length] = '\0';
		if (first[0] == '\0')
			(void)memcpy(first, line, length + 1);
		cr_assert_str_eq(line, first);
	}
	cr_expect_neq(first[0], '\0', "no line begins with %s", beginning);
}

Test(dump, shows_each_queue_once_while_it_lives)
{
	enum { MANY = 300 };
	weir_queue *queues[MANY];
	char name[32], *text;
	unsigned long count = 0;

	for (int i = 0; i < MANY; i++) {
		(void)snprintf(name, sizeof(name), "q%d.", i);
		queues[i] = named(name, (struct weir_queue_options){.capacity = 1});
	}
	for (int i = 0; i < MANY; i += 3)
		destroy(queues[i]);
	text = dumped();
	for (int i = 0; i < MANY; i++) {
		char *part;

		(void)snprintf(name, sizeof(name), "q%d.", i);
		part = part_of(text, name);
		cr_expect_eq(part[0] == '\0', i % 3 == 0, "%s: \"%s\"", name, part);
		free(part);
	}
	expect_alike(text, "queue \"q");
	cr_expect_eq(sscanf(strrchr(text, '"') + 1, "%*[^\n]\n%*[^\n]\n%lu queues", &count), 1, "%s", strrchr(text, '"'));
	cr_expect_geq(count, MANY - MANY / 3);
	free(text);
	for (int i = 0; i < MANY; i++) {
		if (i % 3 != 0)
			destroy(queues[i]);
	}
}

/* -- announced producers and consumers --------------------------------------------------------- */

Test(dump, says_who_announced_itself_until_it_withdraws)
{
	weir_queue *queue = named("served", (struct weir_queue_options){.capacity = 1});
	weir_queue_announcement *feeds, *drains;
	weir_error error = {0};
	char line[128];

	cr_assert_eq(weir_queue_announce(queue, WEIR_QUEUE_PRODUCER, "reader of files", &feeds, &error), WEIR_OK);
	cr_assert_eq(weir_queue_announce(queue, WEIR_QUEUE_CONSUMER, NULL, &drains, NULL), WEIR_OK);
	(void)snprintf(line, sizeof(line), "^  fed by: thread %d \".*\", as \"reader of files\"$", gettid());
	expect_line("served", line);
	(void)snprintf(line, sizeof(line), "^  drained by: thread %d \".*\"$", gettid());
	expect_line("served", line);
	weir_queue_withdraw(feeds);
	expect_no_line("served", "fed by");
	expect_line("served", line);
	cr_expect_eq(weir_queue_destroy(queue, &error), WEIR_FAILED_PRECONDITION);
	cr_expect_not_null(strstr(error.message, "queue \"served\": 1 announced producer or consumer thread;"), "%s",
	                   error.message);
	weir_queue_withdraw(drains);
	weir_queue_withdraw(NULL);
	destroy(queue);
}

Test(dump, announcements_are_refused_where_they_say_nothing)
{
	weir_queue *queue = named("served", (struct weir_queue_options){.capacity = 1});
	weir_queue_announcement *out = NULL;
	weir_error error = {0};

	cr_expect_eq(weir_queue_announce(NULL, WEIR_QUEUE_PRODUCER, NULL, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_queue_announce(NULL, WEIR_QUEUE_PRODUCER, NULL, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_queue_announce(queue, WEIR_QUEUE_PRODUCER, NULL, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_queue_announce(queue, (enum weir_queue_role)3, NULL, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "queue \"served\": 3 is not a role");
	cr_expect_null(out);
	destroy(queue);
}

static enum weir_status announce_once(const weir_allocator *allocator, void *context)
{
	struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .capacity = 1, .allocator = allocator};
	weir_queue_announcement *out = NULL;
	weir_queue *queue;
	enum weir_status status = weir_queue_create(&options, &queue, NULL);

	(void)context;
	if (status != WEIR_OK)
		return status;
	status = weir_queue_announce(queue, WEIR_QUEUE_CONSUMER, "one", &out, NULL);
	weir_queue_withdraw(out);
	destroy(queue);
	(void)weir_reclaim_flush(in_good_time());
	return status;
}

Test(dump, an_announcement_survives_each_allocation_failing)
{
	(void)fail_each_allocation(announce_once, NULL);
}

/*
 * A thread that serves one queue after the other announces itself to each of them, any number of
 * times.
 */
Test(dump, announcements_that_were_withdrawn_take_no_memory)
{
	struct failing_allocator state = {0};
	weir_allocator allocator = failing_allocator_hooks(&state);
	weir_queue *queue = named("visited", (struct weir_queue_options){.capacity = 1, .allocator = &allocator});
	weir_queue_announcement *one;
	size_t before = weiri_load_relaxed(&state.bytes);

	for (int i = 0; i < 100; i++) {
		cr_assert_eq(weir_queue_announce(queue, WEIR_QUEUE_PRODUCER, "again", &one, NULL), WEIR_OK);
		weir_queue_withdraw(one);
	}
	cr_assert_eq(weir_reclaim_flush(in_good_time()), WEIR_OK);
	cr_expect_eq(weiri_load_relaxed(&state.bytes), before);
	destroy(queue);
	cr_expect_str_eq(failing_allocator_verdict(&state), "balanced");
}

static enum weir_status wait_for_room(void *context, weir_cancel *cancel, weir_error *error)
{
	return weir_queue_enqueue(context, item(1), WEIR_NO_DEADLINE, cancel, error);
}

Test(dump, threads_of_a_queue_runner_announce_themselves)
{
	weir_queue *queue = named("run", (struct weir_queue_options){.capacity = 2});
	struct weir_queue_runner_step step = {.run = wait_for_room, .context = queue, .name = "fill"};
	struct weir_queue_runner_options options = {WEIR_QUEUE_RUNNER_OPTIONS_INIT, .steps = &step, .step_count = 1,
	                                            .threads_per_step = 2, .name = "files"};
	weir_queue_runner *runner;

	weir_queue_runner_bind(&options, queue);
	cr_assert_eq(weir_queue_runner_create(&options, &runner, NULL), WEIR_OK);
	cr_assert_eq(weir_queue_runner_start(runner, NULL, NULL), WEIR_OK);
	await(idle_in(queue) == 2);
	expect_line("run", "^  fed by: thread [0-9]+ \"files-fill\", as \"files\"$");
	expect_line("run", "^  waits for room: thread [0-9]+ \"files-fill\", enqueue of 1, for [0-9.]+ s$");
	cr_assert_eq(weir_queue_runner_request_stop(runner, NULL), WEIR_OK);
	cr_assert_eq(weir_queue_runner_join(runner, in_good_time()), WEIR_OK);
	expect_no_line("run", "fed by");
	cr_assert_eq(weir_queue_runner_destroy(runner, NULL), WEIR_OK);
	destroy(queue);
}

/* -- descriptors ------------------------------------------------------------------------------- */

Test(dump, refuses_what_it_cannot_write_to)
{
	int ends[2];

	cr_assert_eq(pipe(ends), 0);
	errno = 77;
	cr_expect_eq(weir_dump(-1), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_dump(ends[0]), WEIR_INVALID_ARGUMENT, "for reading");
	(void)close(ends[0]);
	(void)close(ends[1]);
	errno = 77;
	cr_expect_eq(weir_dump(ends[1]), WEIR_INVALID_ARGUMENT, "closed");
	cr_expect_eq(errno, 77);
}

Test(dump, tells_that_writing_failed)
{
	int full = open("/dev/full", O_WRONLY | O_CLOEXEC);

	cr_assert_geq(full, 0);
	errno = 77;
	cr_expect_eq(weir_dump(full), WEIR_DATA_LOSS);
	cr_expect_eq(errno, 77);
	(void)close(full);
}

/* A driver may return 0 each time. If the dump tried again and again, it would not end. */
static int dump_where_writes_take_nothing(void)
{
	int file = file_for_a_dump();

	if (!sandbox_makes_nothing_of(SYS_write, file))
		return SANDBOX_NOT_HERE;
	return weir_dump(file) == WEIR_DATA_LOSS ? SANDBOX_HELD : 1;
}

Test(dump, gives_up_where_nothing_is_taken_and_no_reason_given)
{
	in_a_sandbox(dump_where_writes_take_nothing);
}

/* As if another thread closed the descriptor after the dump had checked it. */
static int dump_into_what_is_closed_meanwhile(void)
{
	int file = file_for_a_dump();

	if (!sandbox_refuses(SYS_write, EBADF))
		return SANDBOX_NOT_HERE;
	return weir_dump(file) == WEIR_INVALID_ARGUMENT ? SANDBOX_HELD : 1;
}

Test(dump, says_that_its_descriptor_was_closed_meanwhile)
{
	in_a_sandbox(dump_into_what_is_closed_meanwhile);
}

struct dumper {
	int fd;
	enum weir_status status;
	_Atomic(int) number_of_thread;
	_Atomic(int) ended;
	pthread_t thread;
};

static void *dumper_main(void *argument)
{
	struct dumper *dumper = argument;

	weiri_store_relaxed(&dumper->number_of_thread, gettid());
	dumper->status = weir_dump(dumper->fd);
	(void)close(dumper->fd);
	weiri_store_release(&dumper->ended, 1);
	return NULL;
}

/* Makes a pipe with room for one page. The dump needs several. */
static void make_pipe(int ends[2], int flags)
{
	cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
	cr_assert_geq(fcntl(ends[1], F_SETPIPE_SZ, 4096), 0);
	cr_assert_eq(fcntl(ends[1], F_SETFL, flags), 0);
}

enum { ENOUGH = 100 };

static void make_many(weir_queue *queues[ENOUGH])
{
	char name[32];

	for (int i = 0; i < ENOUGH; i++) {
		(void)snprintf(name, sizeof(name), "n%d.", i);
		queues[i] = named(name, (struct weir_queue_options){.capacity = 1});
	}
}

static void expect_all(const char *text)
{
	char name[32];

	for (int i = 0; i < ENOUGH; i++) {
		char *part;

		(void)snprintf(name, sizeof(name), "n%d.", i);
		part = part_of(text, name);
		cr_expect(matches(part, "open\n  0 in, 0 out, .* 0 retries$"), "%s: %s", name, part);
		free(part);
	}
	cr_expect(matches(text, "^[0-9]+ queues$"));
}

/* Reads some bytes at a time, so that writes are cut anywhere. */
static char *read_slowly(int fd, size_t at_a_time)
{
	size_t length = 0, room = 1 << 20;
	char *text = calloc(room, 1);
	ssize_t more;

	while ((more = read(fd, text + length, at_a_time)) > 0) {
		length += (size_t)more;
		cr_assert_lt(length + at_a_time, room);
	}
	return text;
}

static int sleeps(struct dumper *dumper)
{
	struct call call;

	weiri_store_relaxed(&call.number_of_thread, weiri_load_relaxed(&dumper->number_of_thread));
	return weiri_load_relaxed(&dumper->number_of_thread) != 0 && is_asleep(&call);
}

/* A dump of many queues into a pipe, on a thread that soon sleeps. */
struct piped {
	weir_queue *queues[ENOUGH];
	struct dumper dumper;
	int from;
};

static void begin_piped(struct piped *piped, int flags)
{
	int ends[2];

	memset(piped, 0, sizeof(*piped));
	make_many(piped->queues);
	make_pipe(ends, flags);
	piped->from = ends[0];
	piped->dumper.fd = ends[1];
	cr_assert_eq(pthread_create(&piped->dumper.thread, NULL, dumper_main, &piped->dumper), 0);
	await(sleeps(&piped->dumper)); /* the pipe is full */
}

static void expect_all_piped(struct piped *piped, size_t at_a_time)
{
	char *text = read_slowly(piped->from, at_a_time);

	cr_assert_eq(pthread_join(piped->dumper.thread, NULL), 0);
	cr_expect_eq(piped->dumper.status, WEIR_OK);
	expect_all(text);
	free(text);
	(void)close(piped->from);
	for (int i = 0; i < ENOUGH; i++)
		destroy(piped->queues[i]);
}

static void write_through_a_pipe(int flags)
{
	struct piped piped;

	begin_piped(&piped, flags);
	expect_all_piped(&piped, 1021);
}

Test(dump, waits_for_a_reader_that_is_slow)
{
	write_through_a_pipe(0);
}

Test(dump, goes_on_after_partial_writes)
{
	write_through_a_pipe(O_NONBLOCK);
}

Test(dump, gives_up_on_a_descriptor_that_takes_nothing)
{
	weir_queue *queues[ENOUGH];
	int ends[2];

	make_many(queues);
	make_pipe(ends, O_NONBLOCK);
	cr_expect_eq(weir_dump(ends[1]), WEIR_DEADLINE_EXCEEDED);
	(void)close(ends[0]);
	(void)close(ends[1]);
	for (int i = 0; i < ENOUGH; i++)
		destroy(queues[i]);
}

static _Atomic(int) interruptions;

static void interrupt(int number)
{
	(void)number;
	(void)weiri_fetch_add_relaxed(&interruptions, 1);
}

Test(dump, goes_on_after_a_signal)
{
	struct sigaction action = {.sa_handler = interrupt}; /* without SA_RESTART */
	struct piped piped;

	cr_assert_eq(sigaction(SIGUSR1, &action, NULL), 0);
	begin_piped(&piped, 0);
	for (int i = 1; i <= 5; i++) {
		await(sleeps(&piped.dumper));
		cr_assert_eq(pthread_kill(piped.dumper.thread, SIGUSR1), 0);
		await(weiri_load_relaxed(&interruptions) == i);
	}
	expect_all_piped(&piped, 4096);
}

/*
 * What a signal handler has read from the pipe: it interrupts the dump's wait for room, and makes
 * room.
 */
static struct {
	int from;
	_Atomic(size_t) length;
	char text[1 << 20];
} drained;

static void drain(int number)
{
	int errno_before = errno;
	size_t length = weiri_load_relaxed(&drained.length);
	ssize_t more;

	(void)number;
	while ((more = read(drained.from, drained.text + length, sizeof(drained.text) - 1 - length)) > 0)
		length += (size_t)more;
	weiri_store_relaxed(&drained.length, length);
	errno = errno_before;
}

Test(dump, goes_on_after_a_signal_in_its_wait_for_room)
{
	struct sigaction action = {.sa_handler = drain}, before;
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	struct itimerspec often = {.it_interval = {.tv_nsec = 5000000}, .it_value = {.tv_nsec = 5000000}};
	weir_queue *queues[ENOUGH];
	/* MemorySanitizer does not know that timer_create() writes it. */
	timer_t timer = NULL;
	int ends[2];

	make_many(queues);
	make_pipe(ends, O_NONBLOCK);
	cr_assert_eq(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
	drained.from = ends[0];
	cr_assert_eq(sigaction(SIGUSR1, &action, &before), 0);
	cr_assert_eq(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
	cr_assert_eq(timer_settime(timer, 0, &often, NULL), 0);
	cr_expect_eq(weir_dump(ends[1]), WEIR_OK);
	(void)timer_delete(timer);
	(void)sigaction(SIGUSR1, &before, NULL);
	drain(SIGUSR1);
	expect_all(drained.text);
	(void)close(ends[0]);
	(void)close(ends[1]);
	for (int i = 0; i < ENOUGH; i++)
		destroy(queues[i]);
}

/* Returns how many bytes of this process can be both written and executed. */
static size_t writable_and_executable(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	size_t bytes = 0, from, to;
	char line[4200], rights[5];

	cr_assert_not_null(maps);
	while (fgets(line, sizeof(line), maps) != NULL) {
		if (sscanf(line, "%zx-%zx %4s", &from, &to, rights) == 3 && rights[1] == 'w' && rights[2] == 'x')
			bytes += to - from;
	}
	(void)fclose(maps);
	return bytes;
}

/* Hardened systems refuse memory that can be both written and executed. */
Test(dump, works_in_memory_that_is_not_executable)
{
	const char *preloaded = getenv("LD_PRELOAD");
	struct piped piped;
	size_t before;

	if (preloaded != NULL && strstr(preloaded, "vgpreload") != NULL)
		cr_skip_test("valgrind generates code at run time");
	before = writable_and_executable();
	begin_piped(&piped, 0);
	cr_expect_leq(writable_and_executable(), before);
	expect_all_piped(&piped, 4096);
}

/* -- beside others ----------------------------------------------------------------------------- */

static struct weiri_registered *hold(weir_queue *queue)
{
	struct weiri_scope scope = weiri_scope_enter(weiri_record_get());
	struct weiri_registry_place place = {0};
	struct weiri_registered *entry;

	while ((entry = weiri_registry_next(&scope, &place)) != NULL && weiri_registered_object(entry) != queue)
		(void)weiri_registry_let_go(entry);
	weiri_scope_leave(&scope);
	return entry;
}

/* The hold of the walk keeps the queue, and the walk then frees it. */
Test(dump, a_queue_that_is_destroyed_while_it_is_looked_at_goes_with_the_look)
{
	struct failing_allocator memory = {0};
	weir_allocator hooks = failing_allocator_hooks(&memory);
	weir_queue *queue = named("held", (struct weir_queue_options){.capacity = 3, .allocator = &hooks});
	struct weiri_registered *entry = hold(queue);
	struct weiri_scope scope = weiri_scope_enter(weiri_record_get());
	char *part;

	cr_assert_not_null(entry);
	put(queue, 1, 2);
	destroy(queue);
	cr_expect_neq(weiri_load_relaxed(&memory.outstanding), (size_t)0, "the walk still holds it");
	cr_expect_str_eq(weir_queue_name(queue), "held");
	part = part_dumped("held");
	cr_expect_str_eq(part, "", "a later dump does not find the queue");
	free(part);
	cr_expect_eq(weiri_registry_let_go(entry), 1);
	weiri_scope_leave(&scope);
	weiri_queue_free(queue);
	cr_expect_str_eq(failing_allocator_verdict(&memory), "balanced");
}

Test(dump, a_look_that_ends_first_leaves_the_queue_to_its_owner)
{
	weir_queue *queue = named("held", (struct weir_queue_options){.capacity = 3});
	struct weiri_registered *entry = hold(queue);

	cr_assert_not_null(entry);
	cr_expect_eq(weiri_registry_let_go(entry), 0);
	destroy(queue);
}

enum { BUSY = 3, ROUNDS = 300 };

/* Creates queues, waits in them, and destroys them. */
static void *come_and_go(void *context)
{
	for (int i = 0; i < ROUNDS; i++) {
		weir_queue *queue = NULL;
		struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .capacity = 2, .name = "busy"};
		weir_queue_announcement *announcement;
		weir_pending *op;
		void *got[1];

		if (weir_queue_create(&options, &queue, NULL) != WEIR_OK ||
		    weir_queue_announce(queue, WEIR_QUEUE_CONSUMER, "busy", &announcement, NULL) != WEIR_OK ||
		    weir_queue_start(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, got, 1, ended, NULL, &op, NULL) != WEIR_OK ||
		    weir_queue_dequeue(queue, got, weir_deadline_in(1000), NULL, NULL) == WEIR_OK ||
		    weir_queue_try_enqueue(queue, item(1)) != WEIR_OK || weir_queue_try_enqueue(queue, item(2)) != WEIR_OK)
			return context;
		weir_queue_withdraw(announcement);
		weir_pending_release(op);
		if (weir_queue_destroy(queue, NULL) != WEIR_OK)
			return context;
	}
	return NULL;
}

Test(dump, may_be_called_beside_anything)
{
	pthread_t busy[BUSY];
	void *failed;
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	for (int i = 0; i < BUSY; i++)
		cr_assert_eq(pthread_create(&busy[i], NULL, come_and_go, &null), 0);
	for (int i = 0; i < ROUNDS; i++)
		cr_assert_eq(weir_dump(null), WEIR_OK);
	for (int i = 0; i < BUSY; i++) {
		cr_assert_eq(pthread_join(busy[i], &failed), 0);
		cr_expect_null(failed);
	}
	(void)close(null);
	expect_no_line("busy", ".");
}

/* -- stack ------------------------------------------------------------------------------------- */

/* Sanitizers have stack frames of another size, and valgrind reports reads below the stack. */
#if !defined(CRITERION_IN_PROCESS)
enum { STACK = 256 << 10, MOST_STACK = 4 << 10, PAINT = 0xa5 };

static unsigned char *bottom;
static size_t used;

/* Dumps on a painted stack, and measures how far down the paint was overwritten. */
static void *dump_and_measure(void *context)
{
	unsigned char here, *at;

	(void)weir_reclaim_prepare_thread();
	memset(bottom, PAINT, (size_t)(&here - bottom) - MOST_STACK / 4);
	(void)weir_dump(*(const int *)context);
	for (at = bottom; *at == PAINT; at++)
		;
	used = (size_t)(&here - at);
	return NULL;
}

Test(dump, fits_on_a_small_stack)
{
	weir_queue *queue = fifo(1);
	weir_queue_announcement *announcement = NULL;
	int file = open("/dev/null", O_WRONLY | O_CLOEXEC);
	void *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_t attributes;
	pthread_t thread;

	cr_assert(stack != MAP_FAILED && file >= 0);
	cr_assert_eq(weir_queue_announce(queue, WEIR_QUEUE_PRODUCER, "a test", &announcement, NULL), WEIR_OK);
	bottom = stack;
	cr_assert_eq(pthread_attr_init(&attributes), 0);
	cr_assert_eq(pthread_attr_setstack(&attributes, stack, STACK), 0);
	cr_assert_eq(pthread_create(&thread, &attributes, dump_and_measure, &file), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_log_info("a dump took %zu bytes of stack", used);
	cr_expect_leq(used, MOST_STACK, "%zu bytes", used);
	weir_queue_withdraw(announcement);
	destroy(queue);
	(void)pthread_attr_destroy(&attributes);
	(void)close(file);
	(void)munmap(stack, STACK);
}
#endif
