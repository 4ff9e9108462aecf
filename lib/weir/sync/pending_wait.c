/*
 * pending_wait.c - threads that sleep until an operation ends: the owner of a blocking call, and
 * threads that wait with a handle. See pending.h and weir/pending.h.
 */
#include <limits.h>
#include <pthread.h>

#include "base/error.h"
#include "base/futex.h"
#include "reclaim/interrupt.h"
#include "sync/cancel.h"
#include "sync/park.h"
#include "sync/pending.h"

/* -- blocking calls ---------------------------------------------------------------------------- */

/* How long the owner of a blind operation sleeps at a time: O2. */
static const uint64_t blind_sleep_ns = 1000000;

/* A blocking call under way. */
struct call {
	weir_pending *pending;
	weir_cancel_hook *hook;    /* on its token; NULL: none */
	struct weiri_visit *outer; /* the innermost visit when it began */
};

static void on_token(void *context)
{
	weir_pending *pending = context;

	weiri_pending_cancel(pending, WEIRI_PENDING_FOR_TOKEN);
	weiri_pending_release(pending);
}

static enum weiri_park_result sleep_marked(weir_pending *pending, uint64_t deadline_ns)
{
	return weiri_park_interruptible_marked(&pending->finished, WEIRI_PENDING_UNFINISHED, WEIRI_PENDING_ASLEEP,
	                                       deadline_ns);
}

/*
 * Sleeps and serves alternately, until the word changes, the thread is interrupted, or the deadline
 * is less than one sleep away. Returns how the last sleep ended.
 */
static WEIRI_COLD enum weiri_park_result look_now_and_then(struct weiri_record *record, weir_pending *pending,
                                                           uint64_t deadline_ns)
{
	enum weiri_park_result result = WEIRI_PARK_TIMEOUT;
	uint64_t until;

	while (result == WEIRI_PARK_TIMEOUT && (until = weir_deadline_in(blind_sleep_ns)) < deadline_ns) {
		result = sleep_marked(pending, until);
		if (result != WEIRI_PARK_TIMEOUT)
			break;
		weiri_pending_pump_all(record, pending);
		weiri_deliver_due();
	}
	return result;
}

/* Sleeps without a deadline. */
static void sleep_until_told_or_alarmed(weir_pending *pending)
{
	uint32_t seen;

	/* [P2 acquire] */
	while ((seen = weiri_load_acquire(&pending->finished)) != WEIRI_PENDING_FINISHED) {
		if (seen == WEIRI_PENDING_ALARMED) {
			weiri_pending_cancel(pending, WEIRI_PENDING_FOR_TOKEN);
			(void)weiri_park_wait(&pending->finished, seen, WEIR_NO_DEADLINE);
		} else {
			(void)weiri_park_wait_marked(&pending->finished, seen, WEIRI_PENDING_ASLEEP, WEIR_NO_DEADLINE);
		}
	}
}

/*
 * Sleeps until the operation completes. The deadline, the thread's interrupt or an alarm makes this
 * thread cancel it. A cancelled operation ends without more waiting for others, but for a thread
 * that is just completing it: so that last sleep is not interrupted.
 */
static void sleep_until_finished(struct weiri_record *record, weir_pending *pending, uint64_t deadline_ns)
{
	enum weiri_park_result result = WEIRI_PARK_TIMEOUT;

	weiri_deliver_due(); /* a callback that waits here may wait for what is due behind it */
	if (WEIRI_UNLIKELY(pending->blind))
		result = look_now_and_then(record, pending, deadline_ns);
	if (result == WEIRI_PARK_TIMEOUT)
		result = sleep_marked(pending, deadline_ns);
	if (result == WEIRI_PARK_TIMEOUT)
		weiri_pending_cancel(pending, WEIRI_PENDING_FOR_DEADLINE);
	else if (result == WEIRI_PARK_INTERRUPTED)
		weiri_pending_cancel(pending, WEIRI_PENDING_FOR_INTERRUPT);
	sleep_until_told_or_alarmed(pending);
}

static void watch_token(struct call *call, weir_cancel *cancel)
{
	weir_pending *pending = call->pending;

	weiri_pending_retain(pending); /* the hook's */
	if (weiri_cancel_on_wait(cancel, on_token, pending, &call->hook) == WEIR_OK)
		return;
	/* The token could not cancel the operation, so it ends at once. */
	weiri_pending_cancel(pending, WEIRI_PENDING_FOR_MEMORY);
	weiri_pending_release(pending);
}

static void leave_token(const struct call *call)
{
	if (call->hook != NULL && weir_cancel_off(call->hook))
		weiri_pending_release(call->pending);
}

/*
 * Cleanup handler: a function of the user ends the thread inside the call. The items belong to the
 * caller and often lie on its stack, so no thread may move them later. If this thread has lost
 * claims, it may have lost the operation's, and then nothing will end the operation: the handler
 * does not wait.
 */
static void end_with_thread(void *context)
{
	const struct call *call = context;

	weiri_visits_cut(call->outer);
	weiri_section_abandon(weiri_record_mine); /* an allocator may have ended the thread in one */
	weiri_pending_cancel(call->pending, WEIRI_PENDING_FOR_CALLER);
	if (weiri_deliveries_mine()->has_lost)
		return;
	sleep_until_told_or_alarmed(call->pending);
	leave_token(call);
	weiri_pending_release(call->pending);
}

static void run(struct weiri_record *record, struct call *call, uint64_t deadline_ns, weir_cancel *cancel)
{
	pthread_cleanup_push(end_with_thread, call);
	weiri_pending_start(record, call->pending);
	if (cancel != NULL)
		watch_token(call, cancel);
	sleep_until_finished(record, call->pending, deadline_ns);
	pthread_cleanup_pop(0);
	leave_token(call);
}

enum weir_status weiri_pending_run(struct weiri_record *record, weir_pending *pending, uint64_t deadline_ns,
                                   weir_cancel *cancel, weir_error *error)
{
	struct call call = {pending, NULL, weiri_deliveries_mine()->visits};

	pending->is_blocking = true;
	pending->token = cancel;
	if (deadline_ns == 0) {
		weiri_pending_try(record, pending);
		weiri_pending_pump_all(record, pending);
	} else {
		run(record, &call, deadline_ns, cancel);
	}
	if (pending->status != WEIR_OK)
		(void)weiri_fail(error, pending->status, "%s", pending->error.message);
	return pending->status;
}

/* -- handles ----------------------------------------------------------------------------------- */

enum { STATE = WEIRI_PENDING_TURN - 1 };

static bool has_ended(uint32_t finished)
{
	return (finished & STATE) == WEIRI_PENDING_FINISHED;
}

void weir_pending_cancel(weir_pending *pending, const weir_error *cause)
{
	enum weiri_pending_why why = WEIRI_PENDING_FOR_CALLER;

	if (pending == NULL)
		return;
	/* [relaxed] selects the first canceller that has a cause; the state carries the cause. */
	if (cause != NULL && weiri_exchange_relaxed(&pending->cause_taken, 1u) == 0) {
		pending->caller_cause = weiri_error_kept(cause);
		why = WEIRI_PENDING_FOR_A_CAUSE;
	}
	weiri_pending_cancel(pending, why);
}

void weir_pending_release(weir_pending *pending)
{
	if (pending != NULL)
		weiri_pending_release(pending);
}

enum weir_status weir_pending_try_wait(const weir_pending *pending, weir_error *error)
{
	if (pending == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "pending is NULL");
	/* [P2 acquire] */
	if (!has_ended(weiri_load_acquire(&pending->finished)))
		return weiri_fail(error, WEIR_WOULD_BLOCK, "the operation has not ended");
	if (pending->status != WEIR_OK)
		(void)weiri_fail(error, pending->status, "%s", pending->error.message);
	return pending->status;
}

/* The token of a wait with a handle fired. The word changes, so that no waiter goes to sleep. */
static void on_waiter_token(void *context)
{
	weir_pending *pending = context;

	/* [P3 release] */
	(void)weiri_fetch_add_release(&pending->finished, (uint32_t)WEIRI_PENDING_TURN);
	weiri_futex_wake(&pending->finished, INT_MAX);
	weiri_pending_release(pending);
}

/* Returns WEIR_OK once the operation has ended. */
static enum weir_status sleep_until_told(weir_pending *pending, uint64_t deadline_ns, const weir_cancel *cancel)
{
	enum weiri_park_result result = WEIRI_PARK_WOKEN;

	for (;;) {
		uint32_t seen = weiri_load_acquire(&pending->finished); /* [P2, P3 acquire] */

		if (has_ended(seen))
			return WEIR_OK;
		if (weir_cancel_fired(cancel) || result == WEIRI_PARK_INTERRUPTED)
			return WEIR_CANCELLED;
		if (deadline_ns == 0)
			return WEIR_DEADLINE_EXCEEDED;
		/* [relaxed] the mark carries nothing; weiri_pending_told() exchanges the word. */
		if ((seen & STATE) == WEIRI_PENDING_UNFINISHED &&
		    !weiri_cas_relaxed(&pending->finished, &seen, seen | WEIRI_PENDING_ASLEEP))
			continue;
		result = weiri_park_interruptible(&pending->finished, seen | WEIRI_PENDING_ASLEEP, deadline_ns);
		if (result != WEIRI_PARK_WOKEN)
			deadline_ns = 0; /* one more look */
	}
}

static enum weir_status wait_for_told(weir_pending *pending, uint64_t deadline_ns, weir_cancel *cancel)
{
	weir_cancel_hook *hook = NULL;
	enum weir_status status;

	if (cancel == NULL)
		return sleep_until_told(pending, deadline_ns, cancel);
	weiri_pending_retain(pending); /* the hook's */
	if (weiri_cancel_on_wait(cancel, on_waiter_token, pending, &hook) != WEIR_OK) {
		weiri_pending_release(pending);
		return WEIR_RESOURCE_EXHAUSTED;
	}
	status = sleep_until_told(pending, deadline_ns, cancel);
	if (hook != NULL && weir_cancel_off(hook))
		weiri_pending_release(pending);
	return status;
}

enum weir_status weir_pending_wait(weir_pending *pending, uint64_t deadline_ns, weir_cancel *cancel, weir_error *error)
{
	weir_error cause = weiri_interrupt_cause; /* unless the token fired */
	enum weir_status status;

	if (pending == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "pending is NULL");
	weiri_deliver_due();
	status = wait_for_told(pending, deadline_ns, cancel);
	switch (status) {
	case WEIR_OK: return weir_pending_try_wait(pending, error);
	case WEIR_CANCELLED:
		(void)weir_cancel_cause(cancel, &cause);
		return weiri_fail(error, status, "the wait for an operation was cancelled: %.120s", cause.message);
	case WEIR_DEADLINE_EXCEEDED: return weiri_fail(error, status, "the deadline passed before the operation ended");
	default: return weiri_fail(error, status, "no memory to watch the cancel token");
	}
}
