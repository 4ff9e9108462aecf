/*
 * scenario_priority.c - priority queues: histories judged for linearizability, and a thread that is
 * stopped anywhere.
 *
 * Histories: threads enqueue and dequeue at random, with few keys, so that there are equal keys.
 * The results "full" and "empty" are recorded, too. "Full" may be reported early during a put
 * (weir/priority_queue.h), so it is judged only if no put overlaps it. Items with equal keys leave
 * in FIFO order.
 */
#include <weir/multi_queue.h>
#include <weir/priority_queue.h>

#include "burst_values.h"
#include "harness.h"
#include "scenarios.h"
#include "stop.h"
#include "stopping.h"

enum { NUMBERS = 100000, KEYS = 4 };

static struct {
	struct history_priority expected;
	weir_priority_queue *queue;
} under_test;

static weir_priority_queue *create(size_t capacity)
{
	weir_priority_queue *queue;
	enum weir_status status = weir_priority_queue_create(capacity, NULL, &queue, NULL);

	STRESS_CHECK(status == WEIR_OK, "weir_priority_queue_create: %s", weir_status_name(status));
	return queue;
}

/* -- histories --------------------------------------------------------------------------------- */

static void set_up(struct stress_thread *self, void *context)
{
	uint64_t capacity = burst_draw_capacity(self);

	(void)context;
	under_test.expected = (struct history_priority){{.capacity = capacity}, HISTORY_EQUALS_FIFO};
	under_test.queue = create((size_t)capacity);
}

static void tear_down(struct stress_thread *self, void *context)
{
	(void)self;
	(void)context;
	weir_priority_queue_destroy(under_test.queue, NULL);
}

static void put_one(struct stress_thread *self, struct history_log *log, uint64_t number)
{
	/* Differs for each thread and number, and is never 0. */
	uint64_t value = (uint64_t)log->thread * NUMBERS + number + 1, called;
	int64_t key = (int64_t)stress_below(self, KEYS);
	enum weir_status status;

	called = history_call(log);
	status = weir_priority_queue_try_enqueue(under_test.queue, key, value);
	STRESS_CHECK(status == WEIR_OK || status == WEIR_WOULD_BLOCK, "a put returned %s", weir_status_name(status));
	history_note(log, status == WEIR_OK ? HISTORY_PUT : HISTORY_PUT_FULL, value,
	             status == WEIR_OK ? (uint64_t)key : HISTORY_NONE, called, history_return(log));
}

static void take_one(struct history_log *log)
{
	uint64_t value = HISTORY_NONE, called = history_call(log);
	enum weir_status status = weir_priority_queue_try_dequeue(under_test.queue, NULL, &value);
	uint64_t returned = history_return(log);

	STRESS_CHECK(status == WEIR_OK || status == WEIR_WOULD_BLOCK, "a take returned %s", weir_status_name(status));
	history_note(log, status == WEIR_OK ? HISTORY_TAKE : HISTORY_TAKE_EMPTY, HISTORY_NONE, value, called, returned);
}

static void act(struct stress_thread *self, struct history_log *log, uint64_t number, void *context)
{
	(void)context;
	stress_begin(self, "priority");
	if (stress_one_in(self, 2))
		put_one(self, log, number);
	else
		take_one(log);
}

static void drop_weak_refusals(struct history *history, void *context)
{
	(void)context;
	burst_drop_weak(history, 1u << HISTORY_PUT_FULL, 1u << HISTORY_PUT);
}

static enum history_verdict check(const struct history *history, void *context, struct history_finding *finding)
{
	(void)context;
	return history_check_priority(history, &under_test.expected.bounds, under_test.expected.equals, finding);
}

static void units(const struct history *history, const struct history_finding *finding, void *context, uint32_t unit[])
{
	(void)context;
	history_units_of_values(history, &under_test.expected.bounds, finding, unit);
}

static const void *expected(void *context)
{
	(void)context;
	return &under_test.expected;
}

void scenario_history_priority(void)
{
	const struct burst burst = {.set_up = set_up,
	                            .act = act,
	                            .tear_down = tear_down,
	                            .prepare = drop_weak_refusals,
	                            .check = check,
	                            .units = units,
	                            .model = &history_model_priority,
	                            .model_context = expected};

	burst_run(&burst);
}

/* -- stops ------------------------------------------------------------------------------------- */

enum { WORKERS = 4, STOPS = 1000, CAPACITY = 64 };

static weir_multi_queue *relaxed; /* NULL: under_test.queue is used */

static enum weir_status put_any(int64_t key)
{
	return relaxed != NULL ? weir_multi_queue_try_enqueue(relaxed, key, 1)
	                       : weir_priority_queue_try_enqueue(under_test.queue, key, 1);
}

static enum weir_status take_any(uint64_t *value)
{
	return relaxed != NULL ? weir_multi_queue_try_dequeue(relaxed, NULL, value)
	                       : weir_priority_queue_try_dequeue(under_test.queue, NULL, value);
}

static int work(struct stress_thread *self, unsigned worker)
{
	uint64_t value;

	(void)worker;
	if (stress_one_in(self, 2)) {
		int64_t key = (int64_t)stress_below(self, CAPACITY);

		stress_begin(self, "try_enqueue");
		return put_any(key) == WEIR_OK ? 0 : -1;
	}
	stress_begin(self, "try_dequeue");
	return take_any(&value) == WEIR_OK ? 1 : -1;
}

void scenario_priority_stopped(void)
{
	static const struct stopping strict = {"priority", WORKERS, {"enqueue", "dequeue"}, 2, 0, work, 1000},
								 spread = {"multi", WORKERS, {"enqueue", "dequeue"}, 2, 0, work, 1000};
	struct weir_multi_queue_options options = {WEIR_MULTI_QUEUE_OPTIONS_INIT, .lanes = 4};

	stress_stop_prepare();
	under_test.queue = create(CAPACITY);
	(void)stopping_must_go_on(stress_self(), &strict, stress_scaled(STOPS), stopping_part_end(2));
	weir_priority_queue_destroy(under_test.queue, NULL);
	STRESS_CHECK(weir_multi_queue_create(CAPACITY, &options, &relaxed, NULL) == WEIR_OK, "no memory");
	(void)stopping_must_go_on(stress_self(), &spread, stress_scaled(STOPS), stopping_part_end(1));
	weir_multi_queue_destroy(relaxed, NULL);
	relaxed = NULL;
}
