/*
 * iterator.c - one reading of a dataset, from which any number of threads take.
 *
 * Algorithm. The stages of a pipeline are polled by one thread at a time: the one that has the turn
 * (turn.h). A thread that takes an element takes the turn, polls the root, and gives the turn up.
 * A thread that finds the turn taken leaves a request with it, an operation that waits (as for
 * queues, sync/request.h): whoever gives the turn up completes the first one. A poll that finds
 * that its element is still being computed leaves the turn stuck, and waits in the same way, until
 * the task that finishes the element resumes the turn. So a thread that waits keeps its deadline
 * and its token in both cases, and holds nothing that another one needs.
 *
 * Inside a task of the pool a thread that waited would hold a worker, perhaps the only one. There,
 * and if the pool has no workers, the thread runs tasks instead, and sleeps for a millisecond at a
 * time when it finds none.
 *
 * Invariants
 *   D1  the stages between the root and the first windows are polled and closed only with the turn
 *   D2  the iterator outlives its windows: each keeps `windows` open, and calls on it keep `calls`
 *       open. destroy() closes both, and frees when both are drained
 *   D3  a request completes with the turn or with an error, never with both
 * Pairs: those of turn.h; the gates' (run/gate.h).
 * Linearization: an element is given at the poll that returns it, with the turn.
 * Progress: a call without contention is wait-free, apart from the stages. See (1) of dataset.h for
 *   a thread that stops inside a stage.
 * Memory: the iterator; for each call that waits one operation.
 * Checked: stress/model/check_window.c; tests/test_dataset.c, test_dataset_ahead.c; weir-stress
 *   "dataset".
 */
#include <stdalign.h>
#include <sched.h>
#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "data/guard.h"
#include "data/stage.h"
#include "data/turn.h"
#include "run/gate.h"
#include "run/worker.h"
#include "sync/request.h"

enum { NAP_NS = 1000000 };

struct weir_iterator {
	struct weiri_reading reading; /* constant */
	char name[WEIR_DATASET_TEXT_SIZE];
	weir_dataset *dataset;
	struct weiri_consumer consumer;
	struct weiri_waitable waitable;
	struct weiri_gate calls, windows;
	_Atomic(uint32_t) ends; /* 1: destroy() has begun */
	WEIRI_ALIGNED_APART struct weiri_turn turn;
	_Atomic(uint64_t) position; /* with the turn; read by any thread */
	/* With the turn. */
	struct weiri_stage *root;
	uint64_t to_drop; /* elements before options.position */
};

/* -- the turn, for threads that may wait ------------------------------------------------------- */

struct request {
	weir_iterator *iterator;
};

static bool is_ending(const weir_iterator *iterator)
{
	/* [acquire] pairs with weir_iterator_destroy() */
	return weiri_load_acquire(&iterator->ends) != 0;
}

static enum weir_status fail_ending(const weir_iterator *iterator, weir_error *error)
{
	return weiri_fail(error, WEIR_CANCELLED, "iterator \"%s\": it is being destroyed", iterator->name);
}

static enum weir_status attempt(struct weiri_scope *scope, void *asked, weir_error *error)
{
	weir_iterator *iterator = ((struct request *)asked)->iterator;

	(void)scope;
	if (is_ending(iterator))
		return fail_ending(iterator, error);
	return weiri_turn_take(&iterator->turn) ? WEIR_OK : WEIR_WOULD_BLOCK; /* D3 */
}

static enum weir_status fail_at_once(const void *asked, weir_error *error)
{
	const struct request *request = asked;

	return weiri_fail(error, WEIR_DEADLINE_EXCEEDED, "iterator \"%s\": the next element is not ready",
	                  request->iterator->name);
}

static const char *verb_of(const void *asked)
{
	(void)asked;
	return "next";
}

/* Whoever has the turn lets no other request go on. */
static bool changes_nothing(const void *asked)
{
	(void)asked;
	return true;
}

static const struct weiri_request_kind request_kind = {sizeof(struct request), attempt, fail_at_once, verb_of,
                                                       changes_nothing,        NULL};

/* The thread's record. Retried without memory, because a thread that resumes must wake the waiters. */
static struct weiri_record *my_record(void)
{
	struct weiri_record *record;

	while (WEIRI_UNLIKELY((record = weiri_record_get()) == NULL))
		(void)sched_yield();
	return record;
}

static void give(weir_iterator *iterator)
{
	weiri_turn_give(&iterator->turn);
	if (WEIRI_UNLIKELY(weiri_waiters_posted(&iterator->waitable.waiters)))
		weiri_waitable_pump(my_record(), &iterator->waitable);
}

/* -- the iterator as a consumer ---------------------------------------------------------------- */

static weir_iterator *iterator_of(struct weiri_consumer *consumer)
{
	return WEIRI_CONTAINER_OF(consumer, weir_iterator, consumer);
}

static void wake(struct weiri_consumer *consumer)
{
	weir_iterator *iterator = iterator_of(consumer);

	if (weiri_turn_resume(&iterator->turn, WEIRI_TURN_FREE) && weiri_waiters_posted(&iterator->waitable.waiters))
		weiri_waitable_pump(my_record(), &iterator->waitable);
}

static void retain(struct weiri_consumer *consumer)
{
	bool is_open = weiri_gate_enter(&iterator_of(consumer)->windows);

	(void)is_open;
	WEIR_ASSERT1(D2, is_open);
}

static void release(struct weiri_consumer *consumer)
{
	weiri_gate_leave(&iterator_of(consumer)->windows);
}

/* -- helping the pool -------------------------------------------------------------------------- */

/* Returns true if this thread must not leave the tasks to others: it is a worker, or there are none. */
static bool must_help(const weir_iterator *iterator)
{
	weir_pool *pool = iterator->reading.pool;

	return pool != NULL && (weir_pool_thread_count(pool) == 0 || weiri_pool_place_here(pool) != NULL);
}

static uint64_t nap(uint64_t deadline_ns)
{
	uint64_t end = weir_deadline_in(NAP_NS);

	return end < deadline_ns ? end : deadline_ns;
}

static enum weir_status wait_for_turn(weir_iterator *iterator, uint64_t deadline_ns, weir_cancel *cancel,
                                      weir_error *error)
{
	struct request request = {iterator};
	struct weiri_record *record = weiri_record_get();

	if (record == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED,
		                  "iterator \"%s\": no memory for this thread's record; try again", iterator->name);
	return weiri_request_run(record, &iterator->waitable, &request_kind, &request, deadline_ns, cancel,
	                         &iterator->reading.allocator, error);
}

/* Refuses to wait where the tasks that this thread would run could wait for the thread itself. */
static enum weir_status check_help(const weir_iterator *iterator, weir_error *error)
{
	if (weiri_guard_count(WEIRI_MARK_ITERATOR) != 0)
		return weiri_fail(
			error, WEIR_FAILED_PRECONDITION,
			"iterator \"%s\": a function of another pipeline would wait for it inside a task of their pool",
			iterator->name);
	if (weiri_guard_count(WEIRI_MARK_TAKER) >= WEIRI_GUARD_MOST_HELPERS)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED,
		                  "iterator \"%s\": %d calls wait on this thread, each in a task of the one before; try again",
		                  iterator->name, WEIRI_GUARD_MOST_HELPERS);
	return WEIR_OK;
}

static size_t help_once(weir_iterator *iterator)
{
	struct weiri_guard guard;
	size_t helped;

	weiri_guard_begin_helping(&guard, iterator);
	helped = weir_pool_help(iterator->reading.pool, 1);
	weiri_guard_end(&guard);
	return helped;
}

static enum weir_status help_until_turn(weir_iterator *iterator, uint64_t deadline_ns, weir_cancel *cancel,
                                        weir_error *error)
{
	for (;;) {
		bool is_last = deadline_ns <= weir_now_ns();
		enum weir_status status = wait_for_turn(iterator, 0, cancel, error);

		if (status != WEIR_DEADLINE_EXCEEDED || is_last)
			return status;
		status = check_help(iterator, error);
		if (status != WEIR_OK)
			return status;
		if (help_once(iterator) != 0)
			continue;
		status = wait_for_turn(iterator, nap(deadline_ns), cancel, error);
		if (status != WEIR_DEADLINE_EXCEEDED)
			return status;
	}
}

static enum weir_status take_turn(weir_iterator *iterator, uint64_t deadline_ns, weir_cancel *cancel, weir_error *error)
{
	/* A call with a token asks it first: nothing is taken after it has fired. */
	if (WEIRI_LIKELY(cancel == NULL && weiri_turn_take(&iterator->turn)))
		return WEIR_OK;
	if (deadline_ns != 0 && must_help(iterator))
		return help_until_turn(iterator, deadline_ns, cancel, error);
	if (cancel == NULL && deadline_ns != 0 && weiri_turn_take_soon(&iterator->turn))
		return WEIR_OK;
	return wait_for_turn(iterator, deadline_ns, cancel, error);
}

/* -- next -------------------------------------------------------------------------------------- */

/* [relaxed] written with the turn; other threads only look. */
static void advance(weir_iterator *iterator)
{
	weiri_store_relaxed(&iterator->position, weiri_load_relaxed(&iterator->position) + 1);
}

/* Polls the root, with the turn. Drops the elements before the position at which to begin. */
static enum weir_status poll_root(weir_iterator *iterator, weir_tensor *parts[], weir_error *error)
{
	for (;;) {
		enum weir_status status = weiri_stage_poll(iterator->root, parts, error);

		if (status == WEIR_WOULD_BLOCK || status == WEIR_OUT_OF_RANGE || status == WEIRI_POLL_AGAIN)
			return status;
		if (WEIRI_LIKELY(iterator->to_drop == 0)) {
			advance(iterator);
			return status;
		}
		iterator->to_drop--;
		if (status == WEIR_OK)
			weiri_parts_release(parts, iterator->dataset->width);
	}
}

/* Returns WEIR_WOULD_BLOCK if the turn is stuck, else the outcome; the turn is then given up. */
static enum weir_status poll_with_turn(weir_iterator *iterator, bool lingers, weir_tensor *parts[], weir_error *error)
{
	weir_tensor *element[WEIR_DATASET_MAX_WIDTH] = {NULL}; /* so that a failed call leaves parts as they are */
	struct weiri_guard guard;
	enum weir_status status;

	weiri_guard_begin(&guard, iterator);
	do {
		status = poll_root(iterator, element, error);
		if (status == WEIR_WOULD_BLOCK && lingers)
			(void)weiri_turn_linger(&iterator->turn);
	} while (status == WEIR_WOULD_BLOCK && !weiri_turn_stick(&iterator->turn));
	weiri_guard_end(&guard);
	if (status == WEIR_WOULD_BLOCK)
		return status;
	give(iterator);
	if (status == WEIRI_POLL_AGAIN)
		return WEIR_RESOURCE_EXHAUSTED;
	if (status == WEIR_OK)
		memcpy(parts, element, iterator->dataset->width * sizeof(parts[0]));
	return status;
}

static enum weir_status next(weir_iterator *iterator, uint64_t deadline_ns, weir_cancel *cancel, weir_tensor *parts[],
                             weir_error *error)
{
	bool lingers = deadline_ns != 0 && !must_help(iterator);

	for (;;) {
		enum weir_status status = take_turn(iterator, deadline_ns, cancel, error);

		if (status != WEIR_OK)
			return status;
		status = poll_with_turn(iterator, lingers, parts, error);
		if (status == WEIR_OUT_OF_RANGE)
			return weiri_fail(error, status, "iterator \"%s\": the end, after %llu elements", iterator->name,
			                  (unsigned long long)weir_iterator_position(iterator));
		if (status != WEIR_WOULD_BLOCK)
			return status;
	}
}

static enum weir_status check_next(const weir_iterator *iterator, weir_tensor *parts[], size_t count, weir_error *error)
{
	if (iterator == NULL || parts == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "weir_iterator_next: %s is NULL",
		                  iterator == NULL ? "iterator" : "parts");
	if (WEIRI_UNLIKELY(count != iterator->dataset->width))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT,
		                  "iterator \"%s\": asked for %zu component%s, an element has %zu", iterator->name, count,
		                  WEIRI_S(count), iterator->dataset->width);
	if (WEIRI_UNLIKELY(weiri_record_get() == NULL)) /* before the turn is taken: to give it up needs a record */
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED,
		                  "iterator \"%s\": no memory for this thread's record; try again", iterator->name);
	if (WEIRI_UNLIKELY(weiri_guard_is_inside(iterator)))
		return weiri_fail(
			error, WEIR_FAILED_PRECONDITION,
			"iterator \"%s\": next was called by a function of its own pipeline, which would wait for itself",
			iterator->name);
	return WEIR_OK;
}

enum weir_status weir_iterator_next(weir_iterator *iterator, uint64_t deadline_ns, weir_cancel *cancel,
                                    weir_tensor *parts[], size_t count, weir_error *error)
{
	enum weir_status status = check_next(iterator, parts, count, error);
	weir_error ours;

	if (status != WEIR_OK)
		return status;
	if (!weiri_gate_enter(&iterator->calls))
		return fail_ending(iterator, error);
	status = next(iterator, deadline_ns, cancel, parts, error != NULL ? error : &ours);
	weiri_gate_leave(&iterator->calls);
	return status;
}

uint64_t weir_iterator_position(const weir_iterator *iterator)
{
	/* [relaxed] a look */
	return iterator != NULL ? weiri_load_relaxed(&iterator->position) : 0;
}

uint64_t weir_iterator_iteration(const weir_iterator *iterator)
{
	return iterator != NULL ? iterator->reading.iteration : 0;
}

/* -- creating and destroying ------------------------------------------------------------------- */

static void free_iterator(weir_iterator *iterator)
{
	weir_allocator allocator = iterator->reading.allocator;
	weir_dataset *dataset = iterator->dataset;

	weiri_release(&allocator, iterator, sizeof(*iterator), alignof(weir_iterator));
	weir_dataset_release(dataset);
}

static void fill(weir_iterator *iterator, weir_dataset *dataset, const struct weir_iterator_options *options,
                 const weir_allocator *allocator)
{
	iterator->dataset = weir_dataset_retain(dataset);
	iterator->reading = (struct weiri_reading){iterator, options->pool, options->iteration, *allocator};
	/* [relaxed] a number of its own is all that is needed */
	if (options->iteration == 0)
		iterator->reading.iteration = weiri_fetch_add_relaxed(&dataset->iterations, UINT64_C(1)) + 1;
	iterator->to_drop = options->position;
	weiri_store_relaxed(&iterator->position, options->position);
	iterator->consumer = (struct weiri_consumer){wake, retain, release, 0};
	if (options->name != NULL)
		memcpy(iterator->name, options->name, strnlen(options->name, sizeof(iterator->name) - 1));
	else
		(void)weir_dataset_text(dataset, iterator->name, sizeof(iterator->name));
	weiri_waitable_init(&iterator->waitable, "iterator", iterator->name);
	weiri_gate_init(&iterator->calls);
	weiri_gate_init(&iterator->windows);
	weiri_turn_init(&iterator->turn, WEIRI_TURN_FREE);
}

enum weir_status weir_iterator_create(weir_dataset *dataset, const struct weir_iterator_options *given,
                                      weir_iterator **out, weir_error *error)
{
	struct weir_iterator_options options;
	enum weir_status status;
	weir_allocator allocator;
	weir_iterator *iterator;
	weir_error ours;

	if (dataset == NULL || out == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "weir_iterator_create: %s is NULL",
		                  dataset == NULL ? "dataset" : "out");
	status = weiri_options_read("weir_iterator_create", given, &options, sizeof(options), error);
	if (status != WEIR_OK)
		return status;
	allocator = weiri_allocator_or_default(options.allocator);
	iterator = weiri_allocate_zeroed(&allocator, sizeof(*iterator), alignof(weir_iterator));
	if (iterator == NULL)
		return weiri_dataset_fail(dataset, error, WEIR_RESOURCE_EXHAUSTED, "no memory for an iterator");
	fill(iterator, dataset, &options, &allocator);
	status = weiri_stage_open(dataset, &iterator->reading, &iterator->consumer, 0, &iterator->root,
	                          error != NULL ? error : &ours);
	if (status == WEIR_OK)
		*out = iterator;
	else
		free_iterator(iterator);
	return status;
}

/* Waits until nobody is inside. A thread that must help runs tasks meanwhile. */
static void drain(weir_iterator *iterator, struct weiri_gate *gate)
{
	(void)weiri_gate_close(gate);
	while (must_help(iterator) && !weiri_gate_is_drained(gate)) {
		if (weir_pool_help(iterator->reading.pool, 1) == 0)
			(void)sched_yield();
	}
	weiri_gate_wait(gate);
}

/* D1: no call is left, so nobody takes the turn. */
static void close_root(weir_iterator *iterator)
{
	struct weiri_guard guard;

	weiri_guard_begin(&guard, iterator);
	weiri_stage_close(iterator->root);
	weiri_guard_end(&guard);
}

enum weir_status weir_iterator_destroy(weir_iterator *iterator, weir_error *error)
{
	if (iterator == NULL)
		return WEIR_OK;
	if (weiri_guard_is_inside(iterator))
		return weiri_fail(error, WEIR_FAILED_PRECONDITION,
		                  "iterator \"%s\": destroy was called by a function of its own pipeline", iterator->name);
	if (weiri_guard_is_helping(iterator))
		return weiri_fail(error, WEIR_FAILED_PRECONDITION,
		                  "iterator \"%s\": destroy was called by a task inside a call that takes from it",
		                  iterator->name);
	/* [release] pairs with is_ending(); then all that wait are attempted, and end. */
	weiri_store_release(&iterator->ends, 1);
	weiri_store_relaxed(&iterator->consumer.over, 1u); /* [relaxed] a hint */
	weiri_waitable_pump(my_record(), &iterator->waitable);
	drain(iterator, &iterator->calls);
	close_root(iterator);
	drain(iterator, &iterator->windows);
	free_iterator(iterator);
	return WEIR_OK;
}
