/*
 * scenario_history_queue.c - histories of rings and queues, judged for linearizability.
 *
 * Threads enqueue and dequeue at random. Each result, including "full" and "empty", is recorded
 * with the times of its call and return. There must be an order of all operations that explains the
 * results and agrees with real time. A batch is one operation per value, all with one interval. An
 * operation that a deadline ended is not recorded: it had no effect, and its result does not belong
 * to one moment.
 */
#include "harness.h"

#include <stdlib.h>
#include <weir/queue.h>
#include <weir/ring.h>
#include <weir/time.h>

#include "burst_values.h"
#include "scenarios.h"

enum { BATCH = 4, NUMBERS = 100000 };

static const uint64_t patience_ns = 50000;

static struct {
	struct history_bounds bounds;
	weir_ring *ring;
	weir_queue *queue;
} under_test;

/* Makes a value that differs for each thread and number and is never 0. */
static uint64_t value_of(const struct history_log *log, uint64_t number)
{
	return (uint64_t)log->thread * NUMBERS * BATCH + number + 1;
}

/* -- rings ------------------------------------------------------------------------------------- */

static void set_up_ring(struct stress_thread *self, void *context)
{
	struct weir_ring_options options = {
		WEIR_RING_OPTIONS_INIT, .format = stress_one_in(self, 2) ? WEIR_RING_FORMAT_LTQ64 : WEIR_RING_FORMAT_BEST};
	enum weir_status status;

	(void)context;
	if (stress_has_ltq16() && stress_one_in(self, 2))
		options.format = WEIR_RING_FORMAT_SPAN16;
	under_test.bounds = (struct history_bounds){.capacity = burst_draw_capacity(self)};
	status = weir_ring_create((size_t)under_test.bounds.capacity, &options, &under_test.ring, NULL);
	STRESS_CHECK(status == WEIR_OK, "a ring: %s", weir_status_name(status));
}

static void tear_down_ring(struct stress_thread *self, void *context)
{
	(void)self;
	(void)context;
	weir_ring_destroy(under_test.ring, NULL);
}

static void note_put(struct history_log *log, enum weir_status status, uint64_t value, uint64_t called,
                     uint64_t returned)
{
	STRESS_CHECK(status == WEIR_OK || status == WEIR_WOULD_BLOCK, "a put returned %s", weir_status_name(status));
	history_note(log, status == WEIR_OK ? HISTORY_PUT : HISTORY_PUT_FULL, value, HISTORY_NONE, called, returned);
}

static void note_take(struct history_log *log, enum weir_status status, uint64_t value, uint64_t called,
                      uint64_t returned)
{
	STRESS_CHECK(status == WEIR_OK || status == WEIR_WOULD_BLOCK, "a take returned %s", weir_status_name(status));
	history_note(log, status == WEIR_OK ? HISTORY_TAKE : HISTORY_TAKE_EMPTY, HISTORY_NONE,
	             status == WEIR_OK ? value : HISTORY_NONE, called, returned);
}

static void put_batch(struct history_log *log, uint64_t number)
{
	uint64_t values[BATCH], called, returned;
	enum weir_status status;
	size_t done = 0;

	for (unsigned i = 0; i < BATCH; i++)
		values[i] = value_of(log, number * BATCH + i);
	called = history_call(log);
	status = weir_ring_try_enqueue_many(under_test.ring, values, BATCH, &done);
	returned = history_return(log);
	for (size_t i = 0; i < (done != 0 ? done : 1); i++)
		note_put(log, status, values[i], called, returned);
}

static void take_batch(struct history_log *log)
{
	uint64_t values[BATCH] = {0}, called, returned;
	enum weir_status status;
	size_t done = 0;

	called = history_call(log);
	status = weir_ring_try_dequeue_many(under_test.ring, values, BATCH, &done);
	returned = history_return(log);
	for (size_t i = 0; i < (done != 0 ? done : 1); i++)
		note_take(log, status, values[i], called, returned);
}

static void put_one(struct history_log *log, uint64_t number)
{
	uint64_t value = value_of(log, number * BATCH), called = history_call(log);
	enum weir_status status = weir_ring_try_enqueue(under_test.ring, value);

	note_put(log, status, value, called, history_return(log));
}

static void take_one(struct history_log *log)
{
	uint64_t value = 0, called = history_call(log);
	enum weir_status status = weir_ring_try_dequeue(under_test.ring, &value);
	uint64_t returned = history_return(log);

	note_take(log, status, value, called, returned);
}

static void act_on_ring(struct stress_thread *self, struct history_log *log, uint64_t number, void *context)
{
	(void)context;
	stress_begin(self, "ring");
	switch (stress_below(self, 16)) {
	case 0: put_batch(log, number); break;
	case 1: take_batch(log); break;
	default:
		if (stress_one_in(self, 2))
			put_one(log, number);
		else
			take_one(log);
	}
}

void scenario_history_ring(void)
{
	burst_run_fifo((struct burst){.set_up = set_up_ring, .act = act_on_ring, .tear_down = tear_down_ring},
	               &under_test.bounds);
}

/* -- queues ------------------------------------------------------------------------------------ */

static void create_queue(const struct weir_queue_options *options)
{
	weir_error error = {WEIR_OK, ""};
	enum weir_status status = weir_queue_create(options, &under_test.queue, &error);

	STRESS_CHECK(status == WEIR_OK, "weir_queue_create: %s", error.message);
	under_test.bounds = (struct history_bounds){options->capacity, options->min_after_dequeue};
}

static void set_up_fifo(struct stress_thread *self, void *context)
{
	struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .capacity = (size_t)burst_draw_capacity(self)};

	(void)context;
	create_queue(&options);
}

static void set_up_shuffle(struct stress_thread *self, void *context)
{
	struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .capacity = 1 + (size_t)burst_draw_capacity(self),
	                                     .order = WEIR_QUEUE_SHUFFLE, .seed = 1 + stress_below(self, 1000000)};

	(void)context;
	options.min_after_dequeue = stress_one_in(self, 2) ? (size_t)stress_below(self, options.capacity) : 0;
	create_queue(&options);
}

static void tear_down_queue(struct stress_thread *self, void *context)
{
	enum weir_status status = weir_queue_destroy(under_test.queue, NULL);

	(void)self;
	(void)context;
	STRESS_CHECK(status == WEIR_OK, "weir_queue_destroy: %s", weir_status_name(status));
}

static void enqueue(struct history_log *log, uint64_t number, int waits)
{
	uint64_t value = value_of(log, number), deadline = weir_deadline_in(patience_ns), called = history_call(log);
	void *item = (void *)(uintptr_t)value;
	enum weir_status status = waits ? weir_queue_enqueue(under_test.queue, item, deadline, NULL, NULL)
	                                : weir_queue_try_enqueue(under_test.queue, item);
	uint64_t returned = history_return(log);

	if (!waits || status != WEIR_DEADLINE_EXCEEDED)
		note_put(log, status, value, called, returned);
}

static void dequeue(struct history_log *log, int waits)
{
	void *item = NULL;
	uint64_t deadline = weir_deadline_in(patience_ns), called = history_call(log);
	enum weir_status status = waits ? weir_queue_dequeue(under_test.queue, &item, deadline, NULL, NULL)
	                                : weir_queue_try_dequeue(under_test.queue, &item);
	uint64_t returned = history_return(log);

	if (!waits || status != WEIR_DEADLINE_EXCEEDED)
		note_take(log, status, (uint64_t)(uintptr_t)item, called, returned);
}

static void act_on_queue(struct stress_thread *self, struct history_log *log, uint64_t number, void *context)
{
	int waits = stress_one_in(self, 16);

	(void)context;
	stress_begin(self, "queue");
	if (stress_one_in(self, 2))
		enqueue(log, number, waits);
	else
		dequeue(log, waits);
}

void scenario_history_queue_fifo(void)
{
	burst_run_fifo((struct burst){.set_up = set_up_fifo, .act = act_on_queue, .tear_down = tear_down_queue},
	               &under_test.bounds);
}

void scenario_history_shuffle(void)
{
	burst_run_multiset((struct burst){.set_up = set_up_shuffle, .act = act_on_queue, .tear_down = tear_down_queue},
	                   &under_test.bounds);
}
