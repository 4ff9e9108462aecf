/*
 * check_readiness.c - descriptors that tell whether a call on a queue would wait. The ready
 * descriptor is checked by itself, and in queues.
 *
 * A scope gives each thread a row of calls, a letter each; READY_FD_LETTERS and QUEUE_LETTERS say
 * what each letter does. `start` is such a row, which runs before the threads begin. For a ready
 * descriptor, the condition is a counter above 0.
 *
 * Required of every execution:
 * - At the end each descriptor is readable if the call would not wait, and not readable if it
 *   would.
 * - A poller wakes. (The checker reports a failure if all threads sleep.)
 * - If the condition only rises meanwhile, the call after a poll succeeds.
 * - After a rise from which the condition holds for good, the descriptor is readable at once.
 * - No count is taken below 0.
 * - Concurrent requests get the same descriptor.
 *
 * If one thread is stopped at any step, a poller still wakes for the changes of the other threads.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <weir/pool.h>
#include <weir/queue.h>
#include <weir/reclaim.h>
#include <weir/time.h>

#include "base/atomic.h"
#include "model/eventfd.h"
#include "model/scope.h"
#include "sync/ready_fd.h"

enum { THREADS = 3 };

/* A bit for each order. */
enum { FIFO = 1 << WEIR_QUEUE_FIFO, ALL = FIFO | 1 << WEIR_QUEUE_SHUFFLE | 1 << WEIR_QUEUE_PRIORITY };

struct scope {
	const char *name;
	const char *start;
	const char *calls[THREADS];
	int orders; /* the orders of a queue */
	size_t capacity;
	uint32_t flags;
	int stops; /* the scope is also run with each thread stopped */
};

static const struct scope ready_fds[] = {
	{.name = "rise_beside_rise", .calls = {"+", "+"}, .stops = 1},
	{.name = "rise_beside_fall", .start = "+", .calls = {"+", "-"}, .stops = 1},
	{.name = "fall_beside_fall", .start = "++", .calls = {"-", "-"}, .stops = 1},
	{.name = "rise_beside_the_fall_from_it", .calls = {"+", "-"}, .stops = 1},
	{.name = "fall_beside_rise_then_look", .start = "+", .calls = {"-", "+l"}, .stops = 1},
	{.name = "fall_beside_rise_and_fall_beside_rise_then_look", .start = "+", .calls = {"-", "+-", "+l"}},
	{.name = "2_rises_then_look_beside_fall_beside_rise", .calls = {"++l", "-", "+"}},
	{.name = "rise_and_fall_beside_settle", .calls = {"+-", "s"}, .stops = 1},
	{.name = "fall_and_rise_beside_settle", .start = "+", .calls = {"-+", "s"}, .stops = 1},
	{.name = "rise_and_fall_of_2_threads", .calls = {"+-", "+-"}},
	{.name = "poll_beside_rise", .calls = {"p", "+"}},
	{.name = "poll_beside_2_rises", .calls = {"p", "+", "+"}, .stops = 1},
	{.name = "fall_then_poll_beside_rise_and_settle", .start = "+", .calls = {"-p", "+", "s"}},
};

static const struct scope queues[] = {
	{.name = "n1_request_beside_enqueue", .calls = {"r", "e"}, .orders = ALL, .capacity = 1, .stops = 1},
	{.name = "n1_request_beside_dequeue_of_nothing", .calls = {"r", "d"}, .orders = FIFO, .capacity = 1, .stops = 1},
	{.name = "n1_request_then_poll_beside_enqueue", .calls = {"rp", "e"}, .orders = ALL, .capacity = 1},
	{.name = "n1_request_then_poll_writable_beside_dequeue",
     .start = "e",
     .calls = {"wP", "d"},
     .orders = ALL,
     .capacity = 1},
	{.name = "n1_2_requests", .start = "e", .calls = {"r", "r"}, .orders = FIFO, .capacity = 1, .stops = 1},
	{.name = "n1_enqueue_beside_dequeue", .start = "rw", .calls = {"e", "d"}, .orders = ALL, .capacity = 1, .stops = 1},
	{.name = "n2_enqueue_beside_dequeue_1_inside", .start = "erw", .calls = {"e", "d"}, .orders = ALL, .capacity = 2},
	{.name = "n1_enqueue_waits_beside_dequeue", .start = "er", .calls = {"E", "d"}, .orders = ALL, .capacity = 1},
	{.name = "n1_request_beside_close", .calls = {"r", "c"}, .orders = ALL, .capacity = 1, .stops = 1},
	{.name = "n1_poll_beside_enqueue", .start = "r", .calls = {"p", "e"}, .orders = ALL, .capacity = 1},
	{.name = "n1_poll_writable_beside_dequeue", .start = "ew", .calls = {"P", "d"}, .orders = ALL, .capacity = 1},
	{.name = "n2_2_polls_beside_2_enqueues", .start = "r", .calls = {"pp", "ee"}, .orders = FIFO, .capacity = 2},
	{.name = "n1_poll_beside_close", .start = "r", .calls = {"p", "c"}, .orders = ALL, .capacity = 1},
	{.name = "n1_poll_writable_beside_close", .start = "ew", .calls = {"P", "c"}, .orders = ALL, .capacity = 1},
	{.name = "n1_poll_beside_enqueue_and_close",
     .start = "r",
     .calls = {"pp", "e", "c"},
     .orders = FIFO,
     .capacity = 1},
	{.name = "n1_batch_with_1_of_2_poll_beside_cancel",
     .start = "Ber",
     .calls = {"p", "k"},
     .orders = ALL,
     .capacity = 1},
	{.name = "n1_batch_with_1_of_2_poll_beside_close",
     .start = "rBe",
     .calls = {"p", "c"},
     .orders = ALL,
     .capacity = 1},
	{.name = "n1_fair_enqueue_beside_dequeue",
     .start = "rw",
     .calls = {"e", "d"},
     .orders = FIFO,
     .capacity = 1,
     .flags = WEIR_QUEUE_FAIR},
};

static struct scene {
	const struct scope *scope;
	enum weir_queue_order order;
	/* For a ready descriptor. */
	struct weiri_ready_fd ready_fd;
	_Atomic(int) counter;
	/* For a queue. */
	weir_queue *queue;
	weir_pending *op;
	void *batch[2];
	int fds[THREADS + 1][2]; /* [by][readable, writable] + 1; the last row: of `start` */
} scene;

/*
 * Returns 1 if the scope polls once. If the condition also only rises, no earlier action of another
 * thread can have left the descriptor readable for no reason.
 */
static int polls_once(void)
{
	int polls = 0;

	for (size_t i = 0; i < THREADS && scene.scope->calls[i] != NULL; i++) {
		for (const char *at = scene.scope->calls[i]; (at = strpbrk(at, "pP")) != NULL; at++)
			polls++;
	}
	return polls == 1;
}

/* -- a ready descriptor ------------------------------------------------------------------------ */

/*
 * The accesses to the counter order nothing. That a settle sees a change of the counter depends on
 * the fences alone.
 */
static bool above_0(void *context)
{
	(void)context;
	return weiri_load_relaxed(&scene.counter) > 0;
}

static void settle(void)
{
	weiri_fence_seq_cst(); /* F1 of ready_fd.h */
	weiri_ready_fd_settle(&scene.ready_fd, above_0, NULL);
}

static void one_less(void)
{
	int counter = weiri_load_relaxed(&scene.counter);

	while (counter > 0 && !weiri_cas_relaxed(&scene.counter, &counter, counter - 1))
		;
}

static void rise(void)
{
	(void)weiri_fetch_add_relaxed(&scene.counter, 1);
	settle();
}

static void fall(void)
{
	one_less();
	settle();
}

static void poll_above_0(void)
{
	weiri_model_poll(scene.ready_fd.event.fd);
	/* The poll does not order the counter; a read-modify-write sees the newest value. */
	weir_model_assert(weiri_fetch_add_relaxed(&scene.counter, 0) > 0);
}

static void look_above_0(void)
{
	weir_model_assert(weiri_eventfd_is_readable(scene.ready_fd.event));
}

#define READY_FD_LETTERS(LETTER) \
	LETTER('+', "one more, settle", rise()) \
	LETTER('-', "one less if the counter is above 0, settle", fall()) \
	LETTER('s', "settle", settle()) \
	LETTER('l', "look: it is readable, because the counter stays above 0", look_above_0()) \
	LETTER('p', "poll; then the counter is above 0", poll_above_0())

static void call_ready_fd(size_t me, char what)
{
	(void)me;
	switch (what) {
		READY_FD_LETTERS(LETTER_CASE)
	default: weir_model_assert(!"a letter of the table");
	}
}

static void setup_ready_fd(void *context)
{
	(void)context;
	weiri_ready_fd_init(&scene.ready_fd);
	if (scene.scope->start != NULL)
		scope_calls(THREADS, scene.scope->start, call_ready_fd);
}

static void thread_ready_fd(void *context, size_t me)
{
	(void)context;
	scope_calls(me, scene.scope->calls[me], call_ready_fd);
}

static void finish_ready_fd(void *context)
{
	(void)context;
	weir_model_assert((weiri_model_eventfd_count(scene.ready_fd.event.fd) > 0) ==
	                  (weiri_load_relaxed(&scene.counter) > 0));
	weiri_ready_fd_fini(&scene.ready_fd);
}

/* -- a queue ----------------------------------------------------------------------------------- */

static void ended(void *context, enum weir_status status, const weir_error *error, void **items, size_t done)
{
	(void)context, (void)status, (void)error, (void)items, (void)done;
}

static void request(size_t me, int writable)
{
	int fd = -1;

	weir_model_assert((writable ? weir_queue_writable_fd : weir_queue_readable_fd)(scene.queue, &fd, NULL) == WEIR_OK);
	scene.fds[me][writable] = fd + 1;
}

/* Returns the descriptor, or -1 if it was not requested as far as this thread knows. */
static int fd_of(size_t me, int writable)
{
	return (scene.fds[me][writable] != 0 ? scene.fds[me][writable] : scene.fds[THREADS][writable]) - 1;
}

/*
 * All keys are equal. An item that was returned leaves first, then the item that was enqueued
 * first.
 */
static int64_t key_of(void *context, void *item)
{
	(void)context, (void)item;
	return 7;
}

static enum weir_status try_enqueue(void)
{
	return weir_queue_try_enqueue(scene.queue, &scene);
}

static enum weir_status try_dequeue(void)
{
	void *item;

	return weir_queue_try_dequeue(scene.queue, &item);
}

static void enqueue_waiting(void)
{
	weir_model_assert(weir_queue_enqueue(scene.queue, &scene, WEIR_NO_DEADLINE, NULL, NULL) == WEIR_OK);
}

static void start_batch(void)
{
	weir_model_assert(weir_queue_start(scene.queue, WEIR_QUEUE_OP_DEQUEUE_MANY, scene.batch, 2, ended, NULL, &scene.op,
	                                   NULL) == WEIR_OK);
}

static void poll_readable(size_t me)
{
	weiri_model_poll(fd_of(me, 0));
	weir_model_assert(try_dequeue() != WEIR_WOULD_BLOCK || !polls_once());
}

static void poll_writable(size_t me)
{
	weiri_model_poll(fd_of(me, 1));
	weir_model_assert(try_enqueue() != WEIR_WOULD_BLOCK || !polls_once());
}

#define QUEUE_LETTERS(LETTER) \
	LETTER('e', "enqueue", (void)try_enqueue()) \
	LETTER('E', "enqueue, waiting", enqueue_waiting()) \
	LETTER('d', "dequeue", (void)try_dequeue()) \
	LETTER('c', "close, drain", (void)weir_queue_close(scene.queue, WEIR_CLOSE_DRAIN, NULL)) \
	LETTER('B', "start a dequeue of 2", start_batch()) \
	LETTER('k', "cancel what was started", weir_pending_cancel(scene.op, NULL)) \
	LETTER('r', "request the readable descriptor", request(me, 0)) \
	LETTER('w', "request the writable descriptor", request(me, 1)) \
	LETTER('p', "poll the readable descriptor, then dequeue", poll_readable(me)) \
	LETTER('P', "poll the writable descriptor, then enqueue", poll_writable(me))

static void call_queue(size_t me, char what)
{
	switch (what) {
		QUEUE_LETTERS(LETTER_CASE)
	default: weir_model_assert(!"a letter of the table");
	}
}

static void setup_queue(void *context)
{
	struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT,
	                                     .capacity = scene.scope->capacity,
	                                     .order = scene.order,
	                                     .flags = scene.scope->flags,
	                                     .seed = 1,
	                                     .key = scene.order == WEIR_QUEUE_PRIORITY ? key_of : NULL};

	(void)context;
	weir_model_assert(weir_queue_create(&options, &scene.queue, NULL) == WEIR_OK);
	if (scene.scope->start != NULL)
		scope_calls(THREADS, scene.scope->start, call_queue);
}

static void thread_queue(void *context, size_t me)
{
	(void)context;
	scope_calls(me, scene.scope->calls[me], call_queue);
}

/* Returns the descriptor that was requested; all threads got the same. -1: it was not requested. */
static int requested(int writable)
{
	int fd = -1;

	for (size_t i = 0; i <= THREADS; i++) {
		if (scene.fds[i][writable] == 0)
			continue;
		weir_model_assert(fd == -1 || fd == scene.fds[i][writable] - 1);
		fd = scene.fds[i][writable] - 1;
	}
	return fd;
}

static void check_fd(int writable, enum weir_status (*call)(void))
{
	int fd = requested(writable);

	if (fd >= 0) {
		bool readable = weiri_model_eventfd_count(fd) > 0;

		weir_model_assert(readable == (call() != WEIR_WOULD_BLOCK));
	}
}

static void finish_queue(void *context)
{
	(void)context;
	check_fd(1, try_enqueue);
	check_fd(0, try_dequeue);
	while (try_dequeue() == WEIR_OK)
		;
	check_fd(0, try_dequeue);
	(void)weir_queue_close(scene.queue, WEIR_CLOSE_DRAIN, NULL);
	weir_pending_release(scene.op);
	check_fd(0, try_dequeue);
	check_fd(1, try_enqueue);
	weir_model_assert(weir_queue_destroy(scene.queue, NULL) == WEIR_OK);
	weir_model_assert(weir_reclaim_flush(0) == WEIR_OK);
}

/* -- a pool without workers -------------------------------------------------------------------- */

static struct basin {
	weir_pool *pool;
	weir_task tasks[THREADS];
	const char *calls;    /* a letter for each thread */
	int fds[THREADS + 1]; /* + 1; the last one is requested at the end */
} basin;

static void run_nothing(weir_task *task)
{
	(void)task;
}

static void request_of_pool(size_t me)
{
	int fd = -1;

	weir_model_assert(weir_pool_readable_fd(basin.pool, &fd, NULL) == WEIR_OK);
	basin.fds[me] = fd + 1;
}

static void submit(size_t me)
{
	basin.tasks[me].run = run_nothing;
	weir_model_assert(weir_pool_submit(basin.pool, &basin.tasks[me]) == WEIR_OK);
}

static void setup_pool(void *context)
{
	const struct weir_pool_options options = {WEIR_POOL_OPTIONS_INIT, .flags = WEIR_POOL_NO_THREADS};

	(void)context;
	weir_model_assert(weir_pool_create(&options, &basin.pool, NULL) == WEIR_OK);
}

/* r: requests the descriptor. s: submits a task. h: runs a task, if there is one. */
static void use_pool(void *context, size_t me)
{
	(void)context;
	switch (basin.calls[me]) {
	case 'r': request_of_pool(me); break;
	case 's': submit(me); break;
	default: (void)weir_pool_help(basin.pool, 1); break;
	}
}

/* The descriptor was settled by the calls of the threads alone. */
static void finish_pool(void *context)
{
	bool readable;

	(void)context;
	for (size_t i = 0; i < THREADS; i++) {
		if (basin.fds[i] == 0)
			continue;
		readable = weiri_model_eventfd_count(basin.fds[i] - 1) > 0;
		request_of_pool(THREADS);
		weir_model_assert(basin.fds[THREADS] == basin.fds[i]);
		weir_model_assert(readable == (weiri_model_eventfd_count(basin.fds[i] - 1) > 0));
	}
	while (weir_pool_help(basin.pool, 1) != 0)
		;
	for (size_t i = 0; i < THREADS; i++)
		weir_model_assert(basin.fds[i] == 0 || weiri_model_eventfd_count(basin.fds[i] - 1) == 0);
	weir_model_assert(weir_pool_destroy(basin.pool, NULL) == WEIR_OK);
}

static int check_pool(const char *name, const char *calls)
{
	static const uint32_t bounds[WEIR_MODEL_CALLS] = {0};
	struct weir_model_program program = {name, strlen(calls), &basin, sizeof(basin), setup_pool, use_pool, finish_pool};

	basin = (struct basin){.calls = calls};
	return scope_as_far_as(&program, scope_long() ? 0 : 5000) |
	       (strlen(calls) == 2 ? scope_stops(&program, scope_long() ? 0 : 30, NULL, bounds) : 0);
}

static int check_pools(void)
{
	return check_pool("readiness_pool_request_beside_submit", "rs") |
	       check_pool("readiness_pool_2_requests_beside_submit", "rrs") |
	       check_pool("readiness_pool_request_beside_submit_and_help", "rsh");
}

/* -- all --------------------------------------------------------------------------------------- */

static struct weir_model_program prepare(const struct scope *scope, const char *kind, char name[static SCOPE_NAME])
{
	(void)snprintf(name, SCOPE_NAME, "readiness_%s_%s", kind, scope->name);
	scene = (struct scene){.scope = scope};
	return (struct weir_model_program){name, scope_threads(scope->calls, THREADS), &scene, sizeof(scene), NULL, NULL,
	                                   NULL};
}

static int check(struct weir_model_program *program, uint64_t executions, uint64_t stopped)
{
	static const uint32_t bounds[WEIR_MODEL_CALLS] = {0};
	int bad = scope_as_far_as(program, scope_long() ? 0 : executions);

	if (stopped != 0 && scene.scope->stops)
		bad |= scope_stops(program, scope_long() ? 0 : stopped, NULL, bounds);
	return bad;
}

static int check_ready_fds(void)
{
	char name[SCOPE_NAME];
	int bad = 0;

	for (size_t i = 0; i < sizeof(ready_fds) / sizeof(ready_fds[0]); i++) {
		struct weir_model_program program = prepare(&ready_fds[i], "ready_fd", name);

		program.setup = setup_ready_fd, program.thread = thread_ready_fd, program.finish = finish_ready_fd;
		bad |= check(&program, 60000, 500);
	}
	return bad;
}

static int check_queues(enum weir_queue_order order, uint64_t executions, uint64_t stopped)
{
	static const char *const kinds[] = {"fifo", "shuffle", "priority"};
	char name[SCOPE_NAME];
	int bad = 0;

	for (size_t i = 0; i < sizeof(queues) / sizeof(queues[0]); i++) {
		struct weir_model_program program = prepare(&queues[i], kinds[order], name);

		if ((queues[i].orders & 1 << order) == 0)
			continue;
		scene.order = order;
		program.setup = setup_queue, program.thread = thread_queue, program.finish = finish_queue;
		bad |= check(&program, executions, stopped);
	}
	return bad;
}

int main(int argc, char **argv)
{
	static const struct scope_letter letters[] = {READY_FD_LETTERS(LETTER_ROW) QUEUE_LETTERS(LETTER_ROW){0, NULL}};
	int bad;

	scope_letters(argc, argv, letters);
	scope_arguments(argc, argv);
	bad = check_ready_fds();
	bad |= check_pools();
	bad |= check_queues(WEIR_QUEUE_FIFO, 2000, 30);
	scope_symmetric(1);
	bad |= check_pools();
	bad |= check_queues(WEIR_QUEUE_FIFO, 500, 0);
	scope_symmetric(0);
	return bad | check_queues(WEIR_QUEUE_SHUFFLE, 1000, 30) | check_queues(WEIR_QUEUE_PRIORITY, 1000, 30);
}
