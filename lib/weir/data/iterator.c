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
 * and if the pool has no workers, the poll does all that is undone (window.h), so what it waits for
 * is in the hands of threads that run. One thing may then still be left to a task that nobody runs:
 * a filler that such a thread has resumed. So this thread looks again every millisecond.
 *
 * An operation that was started holds no thread, and no function of the user of unknown length runs in the
 * call that starts it. The stages above the windows are *known* if none of them has such a function, and
 * none polls more than once for an element (a filter, a batch) or closes what is below (a repetition), and if
 * nothing is left out before the first element. Then the starter polls at once, and does in the windows what it may (enum weiri_help). A node of a graph does
 * so without an operation (attempt.h). If the element is still under way, the thread that finishes it polls
 * again; if it was finished between the poll and the start, the starter does. Stages that are not known are polled by a task, to which the attempt passes the turn. Each of these
 * *keeps* what came with the iterator, and whoever takes the turn next gets that, at once: an attempt only
 * takes the turn. So an operation that is cancelled meanwhile loses nothing. A thread that must help does
 * not wait for a task that has not begun, since only it may be there to run it: it *steals* the turn, and
 * the task then does nothing. Without a pool, and so without windows, the operation completes with the turn,
 * and its completion polls.
 *
 * Invariants
 *   D1  the stages between the root and the first windows are polled and closed only with the turn
 *   D2  the iterator outlives its windows: each keeps `windows` open. Calls on it, its task, and
 *       operations until their completion has returned keep `calls` open. destroy() closes both, and
 *       frees when both are drained
 *   D3  a request completes with the turn or with an error, never with both
 *   D4  nothing is polled while an element is kept
 *   D5  the task is queued once at most: a turn that is passed to it while it is queued, stolen, is its
 *       again. `lent` says whose the turn is; it changes by read-modify-writes
 * Pairs: those of turn.h; the gates' (run/gate.h).
 *   P3  lend_turn -> steal_turn, run_poll: what the holder did with the turn
 *   P4  run_poll -> lend_turn: the task is not queued any more
 * Linearization: an element is given at the poll that returns it, with the turn.
 * Progress: a call without contention is wait-free, apart from the stages. See (1) of dataset.h for
 *   a thread that stops inside a stage.
 * Memory: the iterator; for each call that waits, and each that was started, one operation.
 * Checked: stress/model/check_window.c, check_iterator.c; tests/test_dataset.c,
 *   test_dataset_ahead.c, test_dataset_start.c; weir-stress "dataset".
 */
#include <sched.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "data/attempt.h"
#include "data/guard.h"
#include "data/stage.h"
#include "data/turn.h"
#include "run/gate.h"
#include "run/worker.h"
#include "sync/delivery.h"
#include "sync/registry.h"
#include "sync/request.h"

enum { NAP_NS = 1000000, UNHURRIED = 64 };

/* What a poll gave, for whoever has the turn next. */
struct kept {
	bool is_there;
	enum weir_status status;
	weir_tensor *parts[WEIR_DATASET_MAX_WIDTH];
	weir_error error;
};

struct weir_iterator {
	struct weiri_reading reading; /* constant */
	char name[WEIR_DATASET_TEXT_SIZE];
	weir_dataset *dataset;
	struct weiri_consumer consumer;
	struct weiri_waitable waitable;
	struct weiri_gate calls, windows;
	struct weiri_registered *registered;
	bool is_known;          /* constant: what is polled above the windows is of known length */
	_Atomic(uint32_t) ends; /* 1: destroy() has begun */
	WEIRI_ALIGNED_APART struct weiri_turn turn;
	_Atomic(uint64_t) position; /* with the turn; read by any thread */
	/* With the turn. */
	struct weiri_stage *root;
	uint64_t to_drop;       /* elements before options.position */
	weir_task task;         /* it polls, with the turn */
	_Atomic(uint32_t) lent; /* enum lent */
	struct kept kept;
	struct weiri_gauge gauges[WEIRI_GAUGES];
};

/* Who has the turn that was passed to the task. */
enum lent {
	LENT_NOT,   /* the task is not queued, or it has begun */
	LENT_TASK,  /* the task, which is queued */
	LENT_STOLEN /* the task is queued still, and a thread that could not wait for it took the turn */
};

/* -- the turn, for threads that may wait ------------------------------------------------------- */

struct request {
	weir_iterator *iterator;
};

static bool is_ending(const weir_iterator *iterator)
{
	/*
	 * [relaxed] it carries nothing. A call that waits has posted before it looks, so destroy() finds the post,
	 * or the call finds the end (F1 of sync/waiters.h); for others the look is a hint, since destroy() waits for them.
	 */
	return weiri_load_relaxed(&iterator->ends) != 0;
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

static void serve(weir_iterator *iterator);

static void give(weir_iterator *iterator)
{
	weiri_turn_give(&iterator->turn);
	if (WEIRI_UNLIKELY(weiri_waiters_posted(&iterator->waitable.waiters)))
		serve(iterator);
}

/* -- the iterator as a consumer ---------------------------------------------------------------- */

static weir_iterator *iterator_of(struct weiri_consumer *consumer)
{
	return WEIRI_CONTAINER_OF(consumer, weir_iterator, consumer);
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

/* -- the turn, in a call that waits ------------------------------------------------------------ */

/* Returns true if this thread must not leave work to others: it is a worker, or there are none. */
static bool must_help(const weir_iterator *iterator)
{
	weir_pool *pool = iterator->reading.pool;

	return pool != NULL && (weir_pool_thread_count(pool) == 0 || weiri_pool_place_here(pool) != NULL);
}

static enum weiri_help help_in_call(const weir_iterator *iterator, uint64_t deadline_ns, const weir_cancel *cancel)
{
	if (deadline_ns == 0)
		return WEIRI_HELP_NEVER;
	if (must_help(iterator))
		return WEIRI_HELP_ALWAYS;
	return deadline_ns == WEIR_NO_DEADLINE && cancel == NULL ? WEIRI_HELP_IF_SHORT : WEIRI_HELP_NEVER;
}

static enum weir_status wait_for_turn(weir_iterator *iterator, uint64_t deadline_ns, weir_cancel *cancel,
                                      weir_error *error)
{
	struct request request = {iterator};
	struct weiri_record *record = weiri_record_get();
	struct weiri_visit visit;
	enum weir_status status;

	if (record == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED,
		                  "iterator \"%s\": no memory for this thread's record; try again", iterator->name);
	/* A completion that is delivered before the wait must not end the iterator. */
	weiri_visit_begin(&visit, &iterator->waitable, NULL);
	status = weiri_request_run(record, &iterator->waitable, &request_kind, &request, deadline_ns, cancel,
	                           &iterator->reading.allocator, error);
	weiri_visit_end(&visit);
	return status;
}

static uint64_t nap(uint64_t deadline_ns)
{
	uint64_t end = weir_deadline_in(NAP_NS);

	return end < deadline_ns ? end : deadline_ns;
}

/*
 * For a thread that must help: it may be the one that would run the task. Returns true if the caller
 * now has the turn.
 */
static bool steal_turn(weir_iterator *iterator)
{
	uint32_t lent = LENT_TASK;

	/* [P3 acquire] pairs with lend_turn(). What this thread does with the turn goes on by its give. */
	return weiri_cas_acquire(&iterator->lent, &lent, LENT_STOLEN);
}

/* For a thread that must help. A turn that is stuck is taken after a while, to look at what is undone. */
static enum weir_status wait_awake(weir_iterator *iterator, uint64_t deadline_ns, weir_cancel *cancel,
                                   weir_error *error)
{
	for (bool freed = false;;) {
		uint64_t end = nap(deadline_ns);
		enum weir_status status;

		if (!is_ending(iterator) && !weir_cancel_fired(cancel) && steal_turn(iterator))
			return WEIR_OK;
		status = wait_for_turn(iterator, end, cancel, error);

		if (status != WEIR_DEADLINE_EXCEEDED || end == deadline_ns) {
			/* The turn that this thread has freed goes to those that wait: nobody resumes it any more. */
			if (freed && status != WEIR_OK)
				serve(iterator);
			return status;
		}
		freed |= weiri_turn_resume(&iterator->turn);
	}
}

/*
 * Looks for the turn before it waits for it. Where its holders take long, a look costs more than a sleep: then
 * this thread does without looks for a while, as before critical sections.
 */
static bool take_turn_soon(weir_iterator *iterator, struct weiri_own *own, uint64_t deadline_ns)
{
	uint64_t position = weir_iterator_position(iterator);
	bool in_vain, has_turn = weiri_turn_take_soon(&iterator->turn, own, deadline_ns, &in_vain);

	if (in_vain && weir_iterator_position(iterator) - position <= 1)
		own->unlooked = UNHURRIED;
	return has_turn;
}

static enum weir_status take_turn(weir_iterator *iterator, enum weiri_help help, uint64_t deadline_ns,
                                  weir_cancel *cancel, weir_error *error)
{
	struct weiri_record *record;

	/* A call with a token asks it first: nothing is taken after it has fired. */
	if (WEIRI_LIKELY(cancel == NULL && weiri_turn_take(&iterator->turn)))
		return WEIR_OK;
	if (help == WEIRI_HELP_ALWAYS)
		return wait_awake(iterator, deadline_ns, cancel, error);
	record = weiri_record_get();
	if (cancel == NULL && deadline_ns != 0 && record != NULL && take_turn_soon(iterator, record->own, deadline_ns))
		return WEIR_OK;
	return wait_for_turn(iterator, deadline_ns, cancel, error);
}

/* -- polling, with the turn -------------------------------------------------------------------- */

/* Polls the root. Drops the elements before the position at which to begin. */
static enum weir_status poll_root(weir_iterator *iterator, weir_tensor *parts[], weir_error *error)
{
	for (;;) {
		enum weir_status status = weiri_stage_poll(iterator->root, parts, error);

		if (WEIRI_LIKELY(iterator->to_drop == 0) || status == WEIR_WOULD_BLOCK || status == WEIR_OUT_OF_RANGE ||
		    status == WEIRI_POLL_AGAIN)
			return status;
		iterator->to_drop--;
		if (status == WEIR_OK)
			weiri_parts_release(parts, iterator->dataset->width);
	}
}

/* Returns WEIR_WOULD_BLOCK if the turn is stuck. */
static enum weir_status poll(weir_iterator *iterator, enum weiri_help help, bool lingers, weir_tensor *parts[],
                             weir_error *error)
{
	struct weiri_guard guard;
	enum weir_status status;

	WEIR_ASSERT1(D4, !iterator->kept.is_there);
	weiri_store_relaxed(&iterator->consumer.help, (uint32_t)help); /* [relaxed] read with the turn, or as a hint */
	weiri_guard_begin(&guard, iterator);
	do {
		status = poll_root(iterator, parts, error);
		if (status == WEIR_WOULD_BLOCK && lingers)
			(void)weiri_turn_linger(&iterator->turn);
	} while (status == WEIR_WOULD_BLOCK && !weiri_turn_stick(&iterator->turn));
	weiri_guard_end(&guard);
	return status;
}

/* [relaxed] written with the turn; other threads only look. */
static void advance(weir_iterator *iterator)
{
	weiri_store_relaxed(&iterator->position, weiri_load_relaxed(&iterator->position) + 1);
}

/* The outcome of a poll, as the caller gets it. Counts the element. */
static enum weir_status outcome(weir_iterator *iterator, enum weir_status status, weir_error *error)
{
	if (WEIRI_UNLIKELY(status == WEIR_OUT_OF_RANGE))
		return weiri_fail(error, status, "iterator \"%s\": the end, after %llu elements", iterator->name,
		                  (unsigned long long)weir_iterator_position(iterator));
	if (WEIRI_UNLIKELY(status == WEIRI_POLL_AGAIN))
		return WEIR_RESOURCE_EXHAUSTED;
	advance(iterator);
	return status;
}

static void keep(weir_iterator *iterator, enum weir_status status)
{
	iterator->kept.status = status;
	iterator->kept.is_there = true;
}

static enum weir_status take_kept(weir_iterator *iterator, weir_tensor *parts[], weir_error *error)
{
	struct kept *kept = &iterator->kept;

	kept->is_there = false;
	if (kept->status == WEIR_OK)
		weiri_parts_move(parts, kept->parts, iterator->dataset->width);
	else
		*error = kept->error;
	return outcome(iterator, kept->status, error);
}

/* Polls, and keeps what came. Returns false if the turn is stuck. */
static bool poll_and_keep(weir_iterator *iterator, enum weiri_help help, bool lingers)
{
	enum weir_status status = poll(iterator, help, lingers, iterator->kept.parts, &iterator->kept.error);

	if (status == WEIR_WOULD_BLOCK)
		return false;
	keep(iterator, status);
	return true;
}

/* -- next -------------------------------------------------------------------------------------- */

/* Returns WEIR_WOULD_BLOCK if the turn is stuck, else the outcome; the turn is then given up. */
static enum weir_status poll_with_turn(weir_iterator *iterator, enum weiri_help help, bool lingers,
                                       weir_tensor *parts[], weir_error *error)
{
	weir_tensor *element[WEIR_DATASET_MAX_WIDTH]; /* so that a failed call leaves parts as they are */
	enum weir_status status;

	if (WEIRI_UNLIKELY(iterator->kept.is_there)) {
		status = take_kept(iterator, element, error);
	} else {
		status = poll(iterator, help, lingers, element, error);
		if (status == WEIR_WOULD_BLOCK)
			return status;
		status = outcome(iterator, status, error);
	}
	give(iterator);
	if (status == WEIR_OK)
		memcpy(parts, element, iterator->dataset->width * sizeof(parts[0]));
	return status;
}

static enum weir_status next(weir_iterator *iterator, uint64_t deadline_ns, weir_cancel *cancel, weir_tensor *parts[],
                             weir_error *error)
{
	enum weiri_help help = help_in_call(iterator, deadline_ns, cancel);
	bool lingers = deadline_ns != 0 && help != WEIRI_HELP_ALWAYS;

	for (;;) {
		enum weir_status status = take_turn(iterator, help, deadline_ns, cancel, error);

		if (status == WEIR_OK)
			status = poll_with_turn(iterator, help, lingers, parts, error);
		if (status != WEIR_WOULD_BLOCK)
			return status;
	}
}

static enum weir_status check_record(const weir_iterator *iterator, weir_error *error)
{
	if (WEIRI_LIKELY(weiri_record_get() != NULL)) /* before the turn is taken: to give it up needs a record */
		return WEIR_OK;
	return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "iterator \"%s\": no memory for this thread's record; try again",
	                  iterator->name);
}

static enum weir_status check_next(const weir_iterator *iterator, weir_tensor *parts[], size_t count, weir_error *error)
{
	if (iterator == NULL || parts == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "iterator: %s is NULL",
		                  iterator == NULL ? "iterator" : "parts");
	if (WEIRI_UNLIKELY(count != iterator->dataset->width))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT,
		                  "iterator \"%s\": asked for %zu component%s, an element has %zu", iterator->name, count,
		                  WEIRI_S(count), iterator->dataset->width);
	if (WEIRI_UNLIKELY(weiri_guard_is_inside(iterator)))
		return weiri_fail(
			error, WEIR_FAILED_PRECONDITION,
			"iterator \"%s\": next was called by a function of its own pipeline, which would wait for itself",
			iterator->name);
	return check_record(iterator, error);
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

/* -- next, asynchronous ------------------------------------------------------------------------ */

/*
 * A thread that wakes the takers of known stages, gives up the turn, or starts an operation, polls for an operation
 * itself, after the walk in which an attempt leaves it the turn: a task might have to wait for a worker, behind a
 * reader that takes long.
 */
struct waker {
	struct weiri_mark mark; /* first */
	bool has_turn;          /* and a part of `calls` */
};

static struct waker *waker_here(const weir_iterator *iterator)
{
	return (struct waker *)(void *)weiri_mark_of(WEIRI_MARK_WAKER, iterator);
}

/* Called with the turn that an attempt left. Returns true if something is kept, and the turn given up. */
static bool poll_for_operation(weir_iterator *iterator, struct waker *waker)
{
	bool is_found;

	/* First: a function of the pipeline may cancel an operation, whose completion would pass the turn on. */
	waker->has_turn = false;
	is_found = poll_and_keep(iterator, WEIRI_HELP_NEVER, false);
	if (is_found)
		weiri_turn_give(&iterator->turn);
	weiri_gate_leave(&iterator->calls); /* `windows`, or the call that starts an operation, keeps the iterator */
	return is_found;
}

static void waker_begin(struct waker *waker, const weir_iterator *iterator)
{
	waker->has_turn = false;
	weiri_mark_begin(&waker->mark, WEIRI_MARK_WAKER, iterator);
}

/* After the first walk. */
static void waker_end(struct waker *waker, weir_iterator *iterator)
{
	while (waker->has_turn && poll_for_operation(iterator, waker))
		weiri_waitable_pump(my_record(), &iterator->waitable);
	weiri_mark_end(&waker->mark);
}

/* Lets waiting requests go on. The caller keeps `calls` or `windows` open. */
static void serve(weir_iterator *iterator)
{
	struct waker waker;

	waker_begin(&waker, iterator);
	weiri_waitable_pump(my_record(), &iterator->waitable);
	waker_end(&waker, iterator);
}

/* Called by a window, which keeps `windows` open. */
static void wake(struct weiri_consumer *consumer)
{
	weir_iterator *iterator = iterator_of(consumer);
	if (weiri_turn_resume(&iterator->turn) && weiri_waiters_posted(&iterator->waitable.waiters))
		serve(iterator);
}

struct start {
	weir_iterator *iterator;
	weir_iterator_done_fn *done;
	void *context;
	bool has_turn; /* the completion polls */
	weir_tensor *parts[WEIR_DATASET_MAX_WIDTH];
};

static void run_poll(weir_task *task)
{
	weir_iterator *iterator = WEIRI_CONTAINER_OF(task, weir_iterator, task);

	/* [P3 acquire] pairs with lend_turn(); [P4 release] the task is not queued any more. */
	if (weiri_exchange_acq_rel(&iterator->lent, (uint32_t)LENT_NOT) == LENT_TASK &&
	    poll_and_keep(iterator, WEIRI_HELP_ALWAYS, false))
		give(iterator);
	weiri_gate_leave(&iterator->calls);
}

/* Called with the turn and a part of `calls`, which go to the task. */
static void lend_turn(weir_iterator *iterator)
{
	/* [P3 release] pairs with steal_turn() and run_poll(); [P4 acquire] pairs with run_poll(). */
	if (weiri_exchange_acq_rel(&iterator->lent, (uint32_t)LENT_TASK) == LENT_STOLEN) {
		weiri_gate_leave(&iterator->calls); /* the task is queued still, and has its part of `calls` */
		return;
	}
	iterator->task.run = run_poll;
	(void)weir_pool_submit(iterator->reading.pool, &iterator->task); /* fails only for invalid arguments */
}

/* Passes the turn to this thread's wake, or to a task: a wake under a completion may go on when that returns. */
static enum weir_status pass_turn(weir_iterator *iterator, weir_error *error)
{
	bool may_wake = iterator->is_known && !weiri_deliveries_mine()->under_way;
	struct waker *waker = may_wake ? waker_here(iterator) : NULL;

	if (!weiri_gate_enter(&iterator->calls)) {
		weiri_turn_give(&iterator->turn);
		return fail_ending(iterator, error);
	}
	if (waker != NULL)
		waker->has_turn = true;
	else
		lend_turn(iterator);
	return WEIR_WOULD_BLOCK;
}

/* A completion of the user takes as long as it likes. The turn does not wait for it. */
static void lend_turn_of_waker(weir_iterator *iterator)
{
	struct waker *waker = waker_here(iterator);

	if (WEIRI_LIKELY(waker == NULL || !waker->has_turn))
		return;
	waker->has_turn = false;
	lend_turn(iterator);
}

static enum weir_status attempt_start(struct weiri_scope *scope, void *asked, weir_error *error)
{
	struct start *start = asked;
	weir_iterator *iterator = start->iterator;
	enum weir_status status;

	(void)scope;
	if (is_ending(iterator))
		return fail_ending(iterator, error);
	if (!weiri_turn_take(&iterator->turn))
		return WEIR_WOULD_BLOCK;
	if (!iterator->kept.is_there && iterator->reading.pool != NULL)
		return pass_turn(iterator, error);
	start->has_turn = !iterator->kept.is_there;
	if (start->has_turn)
		return WEIR_OK;
	status = take_kept(iterator, start->parts, error);
	weiri_turn_give(&iterator->turn); /* the walk goes on, since this operation has succeeded */
	return status;
}

/* The operation's part of `calls` ends here. */
static void answer_start(void *asked, enum weir_status status, const weir_error *error)
{
	struct start *start = asked;
	weir_iterator *iterator = start->iterator;
	struct weiri_guard guard;
	weir_error ours;

	if (start->has_turn) {
		status = poll_with_turn(iterator, WEIRI_HELP_NEVER, false, start->parts, &ours);
		if (status == WEIR_WOULD_BLOCK) /* without windows only because the iterator ends */
			status = fail_ending(iterator, &ours);
		error = status != WEIR_OK ? &ours : NULL;
	}
	lend_turn_of_waker(iterator);
	weiri_guard_begin_telling(&guard, iterator);
	start->done(start->context, status, error, status == WEIR_OK ? start->parts : NULL,
	            status == WEIR_OK ? iterator->dataset->width : 0);
	weiri_guard_end(&guard);
	weiri_gate_leave(&iterator->calls);
}

static const struct weiri_request_kind start_kind = {sizeof(struct start), attempt_start, NULL, verb_of, NULL,
                                                     answer_start};

/* Returns true if the caller now has the turn, and an element or the end is kept. */
static bool find_now(weir_iterator *iterator, enum weiri_help help)
{
	bool is_known = iterator->is_known || iterator->reading.pool == NULL;

	if (!is_known || is_ending(iterator) || !weiri_turn_take(&iterator->turn))
		return false;
	return iterator->kept.is_there || poll_and_keep(iterator, help, true);
}

/* Inside `calls`. */
static bool attempt_next(weir_iterator *iterator, enum weiri_help help, weir_tensor *parts[])
{
	weir_error none;
	bool is_element;

	if (!find_now(iterator, help))
		return false;
	is_element = iterator->kept.status == WEIR_OK;
	if (is_element)
		(void)take_kept(iterator, parts, &none);
	give(iterator);
	return is_element;
}

bool weiri_iterator_attempt(weir_iterator *iterator, bool may_run_functions, weir_tensor *parts[])
{
	bool is_taken;

	if (weiri_guard_is_inside(iterator) || weiri_record_get() == NULL || !weiri_gate_enter(&iterator->calls))
		return false;
	is_taken = attempt_next(iterator, may_run_functions ? WEIRI_HELP_IF_SHORT : WEIRI_HELP_IF_KNOWN, parts);
	weiri_gate_leave(&iterator->calls);
	return is_taken;
}

/* Inside `calls`. */
static enum weir_status start_next(weir_iterator *iterator, const struct start *start, weir_pending **operation,
                                   weir_error *error)
{
	enum weir_status status = WEIR_CANCELLED;
	struct waker waker;

	/* What may take long is left to helpers: a step's deadline and a handle's cancel would not interrupt it. */
	if (iterator->reading.pool != NULL && find_now(iterator, WEIRI_HELP_IF_KNOWN))
		give(iterator);
	if (!weiri_gate_enter(&iterator->calls)) /* for the operation */
		return fail_ending(iterator, error);
	/* The element may be finished since that look, and its wake have found no operation. */
	waker_begin(&waker, iterator);
	status = weiri_request_start(weiri_record_get(), &iterator->waitable, &start_kind, start,
	                             &iterator->reading.allocator, operation, error);
	waker_end(&waker, iterator);
	if (status != WEIR_OK)
		weiri_gate_leave(&iterator->calls);
	return status;
}

enum weir_status weir_iterator_start_next(weir_iterator *iterator, weir_iterator_done_fn *done, void *context,
                                          weir_pending **operation, weir_error *error)
{
	struct start start = {.iterator = iterator, .done = done, .context = context};
	enum weir_status status;

	if (iterator == NULL || done == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "iterator: %s is NULL", iterator == NULL ? "iterator" : "done");
	status = check_record(iterator, error);
	if (status != WEIR_OK)
		return status;
	if (!weiri_gate_enter(&iterator->calls))
		return fail_ending(iterator, error);
	status = start_next(iterator, &start, operation, error);
	weiri_gate_leave(&iterator->calls);
	return status;
}

/* -- looking ----------------------------------------------------------------------------------- */

uint64_t weir_iterator_position(const weir_iterator *iterator)
{
	/* [relaxed] a look */
	return iterator != NULL ? weiri_load_relaxed(&iterator->position) : 0;
}

uint64_t weir_iterator_iteration(const weir_iterator *iterator)
{
	return iterator != NULL ? iterator->reading.iteration : 0;
}

weir_dataset *weir_iterator_dataset(const weir_iterator *iterator)
{
	return iterator != NULL ? iterator->dataset : NULL;
}

const char *weir_iterator_name(const weir_iterator *iterator)
{
	return iterator != NULL ? iterator->name : "(null)";
}

/* Appends to text, as far as there is room. */
static size_t say(char *text, size_t size, size_t used, const char *format, ...) WEIR_PRINTF(4, 5);

static size_t say(char *text, size_t size, size_t used, const char *format, ...)
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(text + used, size - used, format, arguments);
	va_end(arguments);
	if (length < 0)
		return used;
	return used + (size_t)length < size ? used + (size_t)length : size - 1;
}

/* [relaxed] all that is displayed */
static size_t tell_window(const struct weiri_gauge *gauge, const char *name, char *text, size_t size, size_t used)
{
	uint64_t taken = weiri_load_relaxed(&gauge->taken), read = weiri_load_relaxed(&gauge->read);

	return say(text, size, used, "; %s(%llu): %llu of %llu ahead%s%s", name,
	           (unsigned long long)weiri_load_relaxed(&gauge->number),
	           (unsigned long long)(read > taken ? read - taken : 0),
	           (unsigned long long)weiri_load_relaxed(&gauge->size),
	           weiri_load_relaxed(&gauge->stuck) != 0 ? ", filler waits" : "",
	           weiri_load_relaxed(&gauge->asleep) != 0 ? ", consumer waits" : "");
}

static void tell(const struct weiri_scope *scope, const void *object, char *text, size_t size)
{
	const weir_iterator *iterator = object;
	size_t used = say(text, size, 0, "%llu given", (unsigned long long)weir_iterator_position(iterator));

	(void)scope;
	for (size_t i = 0; i < WEIRI_GAUGES; i++) {
		const char *name = weiri_load_relaxed(&iterator->gauges[i].name); /* [relaxed] a literal */

		if (name != NULL)
			used = tell_window(&iterator->gauges[i], name, text, size, used);
	}
}

static struct weiri_waitable *waitable_of(void *iterator)
{
	return &((weir_iterator *)iterator)->waitable;
}

static void free_memory(void *object)
{
	weir_iterator *iterator = object;
	weir_allocator allocator = iterator->reading.allocator;

	weiri_release(&allocator, iterator, sizeof(*iterator), alignof(weir_iterator));
}

static const struct weiri_registered_kind registered_kind = {
	.free = free_memory, .waitable = waitable_of, .tell = tell};

/* -- creating and destroying ------------------------------------------------------------------- */

static void free_iterator(weir_iterator *iterator)
{
	weir_dataset *dataset = iterator->dataset;

	weiri_parts_release(iterator->kept.parts, dataset->width);
	if (iterator->registered == NULL || weiri_registry_remove(my_record(), iterator->registered))
		free_memory(iterator);
	/* Else a dump reads it, and frees it. */
	weir_dataset_release(dataset);
}

static void fill(weir_iterator *iterator, weir_dataset *dataset, const struct weir_iterator_options *options,
                 const weir_allocator *allocator)
{
	iterator->dataset = weir_dataset_retain(dataset);
	iterator->reading =
		(struct weiri_reading){iterator, options->pool, options->iteration, *allocator, iterator->gauges};
	iterator->is_known = weiri_dataset_is_known(dataset, options->pool) && options->position == 0;
	/* [relaxed] a number of its own is all that is needed */
	if (options->iteration == 0)
		iterator->reading.iteration = weiri_fetch_add_relaxed(&dataset->iterations, UINT64_C(1)) + 1;
	iterator->to_drop = options->position;
	weiri_store_relaxed(&iterator->position, options->position);
	iterator->consumer = (struct weiri_consumer){wake, retain, release, 0, WEIRI_HELP_NEVER};
	if (options->name != NULL)
		memcpy(iterator->name, options->name, strnlen(options->name, sizeof(iterator->name) - 1));
	else
		(void)weir_dataset_text(dataset, iterator->name, sizeof(iterator->name));
	weiri_waitable_init(&iterator->waitable, "iterator", iterator->name);
	weiri_gate_init(&iterator->calls);
	weiri_gate_init(&iterator->windows);
	weiri_turn_init(&iterator->turn, WEIRI_TURN_FREE);
}

static enum weir_status enter_registry(weir_iterator *iterator, weir_error *error)
{
	struct weiri_record *record = weiri_record_get();

	if (record != NULL)
		iterator->registered = weiri_registry_add(record, &registered_kind, iterator);
	if (iterator->registered != NULL)
		return WEIR_OK;
	return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "iterator \"%s\": no memory", iterator->name);
}

/* Nothing has run yet. */
static void abandon(weir_iterator *iterator)
{
	weiri_stage_close(iterator->root);
	free_iterator(iterator);
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
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "iterator: %s is NULL", dataset == NULL ? "dataset" : "out");
	status = weiri_options_read("iterator", given, &options, sizeof(options), error);
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
		status = enter_registry(iterator, error);
	if (status == WEIR_OK)
		*out = iterator;
	else
		abandon(iterator);
	return status;
}

/*
 * Waits until nobody is inside. A thread that must help runs tasks meanwhile. If this is in a
 * completion, the completions of what these tasks end are due on this thread, and may be inside.
 */
static void drain(weir_iterator *iterator, struct weiri_gate *gate)
{
	(void)weiri_gate_close(gate);
	while (must_help(iterator) && !weiri_gate_is_drained(gate)) {
		if (weir_pool_help(iterator->reading.pool, 1) == 0)
			(void)sched_yield();
		weiri_deliver_due();
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
	if (weiri_guard_is_telling(iterator))
		return weiri_fail(error, WEIR_FAILED_PRECONDITION,
		                  "iterator \"%s\": destroy was called by a completion of its own", iterator->name);
	if (weiri_visits_any(&iterator->waitable))
		return weiri_fail(error, WEIR_FAILED_PRECONDITION,
		                  "iterator \"%s\": destroy was called by a completion inside a call of the iterator",
		                  iterator->name);
	weiri_deliver_due(); /* in a completion: operations of the iterator may be told only now, on this thread */
	/* [relaxed] see is_ending(). Then all that wait are attempted, and end. */
	weiri_store_relaxed(&iterator->ends, 1);
	weiri_store_relaxed(&iterator->consumer.over, 1u); /* [relaxed] a hint */
	weiri_waitable_pump(my_record(), &iterator->waitable);
	weiri_deliver_due(); /* what the pump has ended */
	drain(iterator, &iterator->calls);
	close_root(iterator);
	drain(iterator, &iterator->windows);
	free_iterator(iterator);
	return WEIR_OK;
}
