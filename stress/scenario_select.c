/*
 * scenario_select.c - selects over several queues, in both directions, crossed, abandoned and
 * closed at any moment: each item that a select reports as enqueued is dequeued once, and no other
 * item is dequeued.
 */
#include <stdlib.h>
#include <string.h>
#include <weir/select.h>

#include "harness.h"
#include "scenarios.h"

enum { QUEUES = 3, MOST_CASES = 4, WORKERS = 6, ROOM = 1 << 15 };
enum { OFFERED = 1, IN = 2, OUT = 4 };

static struct {
	weir_queue *queues[QUEUES];
	_Atomic(uint32_t) *items; /* the state of each item; an item is its index, from 1 */
	void *memory;             /* the memory of `items` */
	size_t limit;             /* number of items per worker */
	weir_cancel *token;
	_Atomic(uint32_t) closed; /* number of closed queues */
	_Atomic(uint64_t) in, out, selects, refused;
} yard;

static void set(size_t item, uint32_t what)
{
	/* [acq_rel] returns the earlier state, for the check. */
	uint32_t before = weiri_fetch_or_acq_rel(&yard.items[item], what);

	STRESS_CHECK((before & what) == 0, "item %zu %s twice", item, what == OUT ? "came out" : "went in");
	/* It may be dequeued before its producer's call has returned. */
	STRESS_CHECK((before & OFFERED) != 0, "item %zu was never offered", item);
}

static size_t fill(struct stress_thread *self, struct weir_select_case cases[], size_t count, size_t next)
{
	for (size_t i = 0; i < count; i++) {
		cases[i] =
			(struct weir_select_case){.queue = yard.queues[stress_below(self, QUEUES)], .kind = WEIR_SELECT_DEQUEUE};
		if (stress_one_in(self, 2)) {
			cases[i].kind = WEIR_SELECT_ENQUEUE;
			cases[i].item = (void *)(uintptr_t)next;
			/* [relaxed] the queue carries it */
			weiri_store_relaxed(&yard.items[next++], (uint32_t)OFFERED);
		}
	}
	return next;
}

static void settle(const struct weir_select_case *one)
{
	size_t item = (size_t)(uintptr_t)one->item;

	if (one->status != WEIR_OK) {
		STRESS_CHECK(weir_queue_closed(one->queue), "a case of an open queue returned %s",
		             weir_status_name(one->status));
		(void)weiri_fetch_add_relaxed(&yard.refused, 1u);
		return;
	}
	set(item, one->kind == WEIR_SELECT_ENQUEUE ? IN : OUT);
	(void)weiri_fetch_add_relaxed(one->kind == WEIR_SELECT_ENQUEUE ? &yard.in : &yard.out, 1u);
}

static uint64_t some_deadline(struct stress_thread *self)
{
	switch (stress_below(self, 4)) {
	case 0: return 0;
	case 1: return WEIR_NO_DEADLINE; /* a close ends it */
	default: return weir_deadline_in(stress_below(self, 200000));
	}
}

/* -- asynchronous selects: the worker goes on when they have ended ----------------------------- */

struct pending {
	_Atomic(uint32_t) ended;
	size_t chosen;
	enum weir_status status;
};

static void ended(void *context, enum weir_status status, const weir_error *error, struct weir_select_case cases[],
                  size_t chosen)
{
	struct pending *pending = context;

	(void)error, (void)cases;
	pending->status = status;
	pending->chosen = chosen;
	/* [acq_rel] the outcome; pairs with select_async(). */
	STRESS_CHECK(weiri_fetch_add_acq_rel(&pending->ended, 1u) == 0, "a select completed twice");
}

static enum weir_status select_async(struct stress_thread *self, struct weir_select_case cases[], size_t count,
                                     size_t *chosen)
{
	struct pending pending = {.status = WEIR_INTERNAL};
	weir_pending *op;
	unsigned spins = 0;

	STRESS_CHECK(weir_select_start(cases, count, ended, &pending, &op, NULL) == WEIR_OK, "a select did not start");
	stress_let_pass(stress_below(self, 3000));
	weir_pending_cancel(op, NULL);
	while (weiri_load_acquire(&pending.ended) == 0)
		stress_back_off(&spins);
	weir_pending_release(op);
	*chosen = pending.chosen;
	return pending.status;
}

static void work(struct stress_thread *self, void *context)
{
	size_t next = 1 + (size_t)(uintptr_t)context * yard.limit, end = next + yard.limit;
	unsigned spins = 0;

	while (next + MOST_CASES < end && weiri_load_relaxed(&yard.closed) != QUEUES) {
		struct weir_select_case cases[MOST_CASES];
		size_t count = 1 + (size_t)stress_below(self, MOST_CASES), chosen = MOST_CASES;
		enum weir_status status;

		next = fill(self, cases, count, next);
		stress_begin(self, "select");
		if (stress_one_in(self, 3))
			status = select_async(self, cases, count, &chosen);
		else if (stress_one_in(self, 3))
			status = weir_try_select(cases, count, &chosen, NULL);
		else
			status = weir_select(cases, count, some_deadline(self), stress_one_in(self, 2) ? yard.token : NULL, &chosen,
			                     NULL);
		stress_end(self, 1);
		(void)weiri_fetch_add_relaxed(&yard.selects, 1u);
		STRESS_CHECK(status == WEIR_OK || status == WEIR_CANCELLED || status == WEIR_DEADLINE_EXCEEDED ||
		                 status == WEIR_WOULD_BLOCK,
		             "a select returned %s", weir_status_name(status));
		if (status == WEIR_OK)
			settle(&cases[chosen]);
		else
			stress_back_off(&spins);
	}
}

/* -- rounds ------------------------------------------------------------------------------------ */

static void open_queues(struct stress_thread *self)
{
	for (size_t i = 0; i < QUEUES; i++) {
		struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .capacity = 1 + (size_t)stress_below(self, 4),
		                                     .order = stress_one_in(self, 3) ? WEIR_QUEUE_SHUFFLE : WEIR_QUEUE_FIFO,
		                                     .flags = stress_one_in(self, 3) ? WEIR_QUEUE_FAIR : 0};

		STRESS_CHECK(weir_queue_create(&options, &yard.queues[i], NULL) == WEIR_OK, "no queue");
	}
}

static void take_what_is_left(weir_queue *queue)
{
	void *item;

	while (weir_queue_try_dequeue(queue, &item) == WEIR_OK) {
		set((size_t)(uintptr_t)item, OUT);
		(void)weiri_fetch_add_relaxed(&yard.out, 1u);
	}
	STRESS_CHECK(weir_queue_destroy(queue, NULL) == WEIR_OK, "a select still waits in its queue");
}

static void check_items(void)
{
	for (size_t i = 1; i <= yard.limit * WORKERS; i++) {
		uint32_t what = weiri_load_relaxed(&yard.items[i]) & (IN | OUT);

		STRESS_CHECK(what == 0 || what == (IN | OUT), "item %zu %s", i,
		             what == IN ? "was lost" : "came out but never went in");
	}
	STRESS_CHECK(weiri_load_relaxed(&yard.in) == weiri_load_relaxed(&yard.out), "%llu items went in, but %llu came out",
	             (unsigned long long)weiri_load_relaxed(&yard.in), (unsigned long long)weiri_load_relaxed(&yard.out));
}

static void run_round(struct stress_thread *self)
{
	open_queues(self);
	STRESS_CHECK(weir_cancel_create(NULL, &yard.token, NULL) == WEIR_OK, "no token");
	memset(yard.memory, 0, (yard.limit * WORKERS + 1) * sizeof(yard.items[0]));
	weiri_store_relaxed(&yard.closed, 0u);
	for (size_t i = 0; i < WORKERS; i++)
		(void)stress_start("worker", work, (void *)(uintptr_t)i);
	stress_let_pass(1000000 + stress_below(self, 5000000));
	(void)weir_cancel_fire(yard.token, NULL);
	for (size_t i = 0; i < QUEUES; i++) {
		stress_let_pass(stress_below(self, 300000));
		/* CANCEL ends the last selects, because no thread makes room any longer. */
		if (stress_one_in(self, 2))
			(void)weir_queue_close(yard.queues[i], WEIR_CLOSE_DRAIN, NULL);
		(void)weir_queue_close(yard.queues[i], WEIR_CLOSE_CANCEL, NULL);
		(void)weiri_fetch_add_relaxed(&yard.closed, 1u);
	}
	stress_join();
	for (size_t i = 0; i < QUEUES; i++)
		take_what_is_left(yard.queues[i]);
	weir_cancel_release(yard.token);
	check_items();
}

void scenario_queue_select(void)
{
	uint64_t rounds = 0;

	yard.limit = ROOM / WORKERS;
	yard.memory = calloc(yard.limit * WORKERS + 1, sizeof(yard.items[0]));
	STRESS_CHECK(yard.memory != NULL, "no memory");
	yard.items = yard.memory;
	stress_disturb();
	for (; rounds == 0 || stress_goes_on(); rounds++)
		run_round(stress_self());
	free(yard.memory);
	stress_note("rounds", rounds);
	stress_note("selects", weiri_load_relaxed(&yard.selects));
	stress_note("items", weiri_load_relaxed(&yard.out));
	stress_note("told of a close", weiri_load_relaxed(&yard.refused));
}
