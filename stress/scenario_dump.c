/*
 * scenario_dump.c - queues and staging areas that are created, used, waited in and destroyed while
 * other threads dump all of them.
 *
 * Each thread has queues and areas of its own, one after the other, in memory that is poisoned when
 * it is freed. A dump that reads one after its owner has freed it is therefore detected. Some
 * threads dump into a descriptor that accepts everything. Checked:
 *
 *   counts     each owner knows what went in and came out, and the queue or area reports the same
 *   memory     all memory is freed at the end, including what a dump had to free
 *   dumps      each dump succeeds, however many objects are created and destroyed
 */
#include "harness.h"

#include <fcntl.h>
#include <unistd.h>
#include <weir/announce.h>
#include <weir/dump.h>
#include <weir/reclaim.h>
#include <weir/flow/staging.h>
#include <weir/time.h>

#include "poison.h"
#include "scenarios.h"

enum { MOST_CAPACITY = 20, DUMPERS = 2 };

static const uint64_t patience_ns = 100000000000u;

static struct {
	int null;
	_Atomic(uint64_t) dumps, queues;
} now;

static int64_t key_of(void *context, void *item)
{
	(void)context;
	return (int64_t)((uintptr_t)item % 3);
}

static weir_queue *make_queue(struct stress_thread *self)
{
	static const enum weir_queue_order orders[] = {WEIR_QUEUE_FIFO, WEIR_QUEUE_SHUFFLE, WEIR_QUEUE_PRIORITY};
	struct weir_queue_options options = {
		WEIR_QUEUE_OPTIONS_INIT, .capacity = 1 + (size_t)stress_below(self, MOST_CAPACITY),
		.order = orders[stress_below(self, 3)], .name = "one of many", .allocator = stress_poison()};
	weir_queue *queue = NULL;
	weir_error error = {0};

	if (options.order == WEIR_QUEUE_PRIORITY)
		options.key = key_of;
	STRESS_CHECK(weir_queue_create(&options, &queue, &error) == WEIR_OK, "%s", error.message);
	return queue;
}

static void ended(void *context, enum weir_status status, const weir_error *error, void **items, size_t done)
{
	(void)error, (void)items, (void)done;
	*(enum weir_status *)context = status;
}

/*
 * Makes a call that waits for a moment, or an operation that waits until an item arrives. Returns
 * how many items it moved.
 */
static uint64_t wait_in(struct stress_thread *self, weir_queue *queue)
{
	enum weir_status status = WEIR_INTERNAL;
	void *got[1];

	if (stress_one_in(self, 2)) {
		status = weir_queue_dequeue(queue, got, weir_deadline_in(stress_below(self, 100000)), NULL, NULL);
		STRESS_CHECK(status == WEIR_DEADLINE_EXCEEDED, "%s from an empty queue", weir_status_name(status));
		return 0;
	}
	STRESS_CHECK(weir_queue_start(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, got, 1, ended, &status, NULL, NULL) == WEIR_OK,
	             "no memory to wait");
	STRESS_CHECK(weir_queue_try_enqueue(queue, &now) == WEIR_OK, "no room in an empty queue");
	STRESS_CHECK(status == WEIR_OK && got[0] == &now, "the waiting dequeue did not get the item");
	return 1;
}

static void use_queue(struct stress_thread *self, weir_queue *queue)
{
	struct weir_queue_stats stats = {WEIR_QUEUE_STATS_INIT};
	uint64_t in = wait_in(self, queue), out = in;
	weir_queue_announcement *announcement = NULL;
	void *got;

	if (stress_one_in(self, 2))
		STRESS_CHECK(weir_queue_announce(queue, WEIR_QUEUE_PRODUCER, "its owner", &announcement, NULL) == WEIR_OK,
		             "no memory for an announcement");
	for (uint64_t calls = stress_below(self, 3 * (uint64_t)MOST_CAPACITY); calls != 0; calls--) {
		if (stress_one_in(self, 3))
			out += weir_queue_try_dequeue(queue, &got) == WEIR_OK;
		else
			in += weir_queue_try_enqueue(queue, &now) == WEIR_OK;
	}
	STRESS_CHECK(weir_queue_get_stats(queue, &stats) == WEIR_OK, "no statistics");
	STRESS_CHECK(stats.items_in == in && stats.items_out == out,
	             "the queue reports %llu in and %llu out, but %llu and %llu are right",
	             (unsigned long long)stats.items_in, (unsigned long long)stats.items_out, (unsigned long long)in,
	             (unsigned long long)out);
	weir_queue_withdraw(announcement);
}

/* -- staging areas ----------------------------------------------------------------------------- */

static weir_staging *make_staging(void)
{
	static const struct weir_tensor_component component = {WEIR_I64, NULL, NULL};
	struct weir_staging_options options = {WEIR_STAGING_OPTIONS_INIT, .capacity = MOST_CAPACITY,
	                                       .name = "one of many",     .components = &component,
	                                       .component_count = 1,      .allocator = stress_poison()};
	weir_staging *staging = NULL;
	weir_error error = {0};

	STRESS_CHECK(weir_staging_create(&options, &staging, &error) == WEIR_OK, "%s", error.message);
	return staging;
}

static void area_ended(void *context, enum weir_status status, const weir_error *error, weir_tensor **tuple,
                       size_t count)
{
	(void)error;
	*(enum weir_status *)context = status;
	if (count == 1)
		weir_tensor_release(tuple[0]);
}

/*
 * Makes a get that waits until a tuple arrives or is cancelled. Then puts some tuples and leaves a
 * part of them for the destroy.
 */
static void use_staging(struct stress_thread *self, weir_staging *staging)
{
	weir_tensor *tuple = stress_payload(stress_random(self) >> 8, 1);
	enum weir_status status = WEIR_INTERNAL;
	size_t puts = (size_t)stress_below(self, MOST_CAPACITY), size;
	int cancelled = stress_one_in(self, 2);
	weir_pending *op;

	STRESS_CHECK(weir_staging_start_get(staging, area_ended, &status, &op, NULL) == WEIR_OK, "no memory to wait");
	if (cancelled)
		weir_pending_cancel(op, NULL);
	else
		STRESS_CHECK(weir_staging_put(staging, &tuple, 1, 0, NULL, NULL) == WEIR_OK, "no room in an empty area");
	STRESS_CHECK(status == (cancelled ? WEIR_CANCELLED : WEIR_OK), "a get ended with %s", weir_status_name(status));
	weir_pending_release(op);
	for (size_t i = 0; i < puts; i++)
		STRESS_CHECK(weir_staging_put(staging, &tuple, 1, 0, NULL, NULL) == WEIR_OK, "no room");
	STRESS_CHECK(weir_staging_size(staging, &size, NULL) == WEIR_OK && size == puts,
	             "%zu tuples are inside, but %zu went in", size, puts);
	weir_tensor_release(tuple);
}

static void own_staging(struct stress_thread *self)
{
	weir_staging *staging;
	weir_error error = {0};

	stress_begin(self, "using a staging area");
	staging = make_staging();
	use_staging(self, staging);
	STRESS_CHECK(weir_staging_destroy(staging, &error) == WEIR_OK, "%s", error.message);
	stress_end(self, 1);
}

/* -- the threads ------------------------------------------------------------------------------- */

static void own(struct stress_thread *self, void *context)
{
	(void)context;
	while (stress_goes_on()) {
		weir_queue *queue;
		weir_error error = {0};

		if (stress_one_in(self, 3))
			own_staging(self);
		stress_begin(self, "using a queue");
		queue = make_queue(self);
		use_queue(self, queue);
		STRESS_CHECK(weir_queue_destroy(queue, &error) == WEIR_OK, "%s", error.message);
		(void)weiri_fetch_add_relaxed(&now.queues, (uint64_t)1); /* [relaxed] read after the join */
		stress_end(self, 1);
	}
}

static void dump(struct stress_thread *self, void *context)
{
	(void)context;
	while (stress_goes_on()) {
		stress_begin(self, "dump");
		STRESS_CHECK(weir_dump(now.null) == WEIR_OK, "a dump failed");
		(void)weiri_fetch_add_relaxed(&now.dumps, (uint64_t)1); /* [relaxed] read after the join */
		stress_end(self, 1);
	}
}

void scenario_queue_dump(void)
{
	now.null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	STRESS_CHECK(now.null >= 0, "no /dev/null");
	stress_disturb();
	for (unsigned i = 0; i < DUMPERS; i++)
		(void)stress_start("dumper", dump, NULL);
	for (unsigned i = 0; i < stress_threads(2); i++)
		(void)stress_start("owner", own, NULL);
	stress_join();
	(void)close(now.null);
	STRESS_CHECK(weir_reclaim_flush(weir_deadline_in(patience_ns)) == WEIR_OK,
	             "the flush failed: memory is still held");
	stress_poison_check_empty();
	stress_note("dumps", weiri_load_relaxed(&now.dumps));   /* [relaxed] all are joined */
	stress_note("queues", weiri_load_relaxed(&now.queues)); /* [relaxed] as above */
}
