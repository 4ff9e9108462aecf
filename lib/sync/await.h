/*
 * await.h - operations that wait on an object whose state is changed by atomic attempts: areas, variables.
 *
 * What weir_queue has for its two directions (op.h), for objects where each waiter may want something else: a waiting operation is an
 * attempt that said WEIR_WOULD_BLOCK, on one list in arrival order. Whoever changes the object tries again each that waits, on his own
 * thread; so an operation needs no thread of its own, and a blocked thread finds its work done when it wakes.
 *
 *   CLAIMED            one thread works on it (at first: its starter)
 *   CLAIMED | AGAIN    the object changed meanwhile: attempt once more before giving up the claim
 *   CLAIMED | CANCEL   end it instead; the state also says why
 *   0                  waits; on the list; anybody may claim it
 *   CANCEL             the same, to be ended by who claims it: its canceller had no memory to do so
 *   DONE               completed, for ever
 *
 * Invariants
 *   A1  all but `state`, `references` and `finished` is touched by the claimer only
 *   A2  no change is lost: who changes the object then finds each operation waiting (and claims it), claimed (and leaves AGAIN), or not yet on the
 *       list; then its starter attempts once more after it put it there and posted that (sync/waiters.h)
 *   A3  an operation completes exactly once: by the thread that holds the claim
 *   A4  `done` may destroy the object, if no other operation waits: the call in which it runs looks whether it did (sync/delivery.h, visits)
 * Pairs
 *   P1  give up or leave AGAIN -> claim: A1, and what the other changed
 *   P2  complete(finished) -> owner: the outcome
 * Progress: attempts are lock-free, and so is the rest but for the waiting. A thread stopped while it holds a claim delays that one
 *   operation; its deadline ends it when the thread goes on. A change costs an attempt for each that waits.
 * Checked: tests/test_staging.c, stress/model/check_staging.c.
 */
#ifndef WEIRI_SYNC_AWAIT_H
#define WEIRI_SYNC_AWAIT_H

#include <weir/cancel.h>
#include <weir/status.h>
#include <weir/time.h>

#include "sync/delivery.h"
#include "sync/waiters.h"

/* Of an object. */
struct weiri_awaits {
	struct weiri_waiters waiters;
	_Atomic(size_t) waiting;
	const char *what, *name; /* for messages: staging area "name" */
};

struct weiri_await;

/* In the scope, with the claim. WEIR_WOULD_BLOCK: it must wait; anything else is the outcome, with a message in *error if not WEIR_OK. */
typedef enum weir_status weiri_await_attempt(struct weiri_scope *scope, struct weiri_await *await, weir_error *error);

struct weiri_await {
	struct weiri_list_node node;
	_Atomic(uint32_t) state;
	_Atomic(uint32_t) references; /* completion, list, handle, cancellers under way */
	_Atomic(uint32_t) finished;   /* the futex word of a blocking call */
	/* Constant. */
	struct weiri_awaits *awaits;
	weiri_await_attempt *attempt;
	void (*done)(struct weiri_await *await); /* outside of sections; NULL: a blocking call */
	int is_quiet; /* `done` runs no user code: it is called at once, also inside of a completion */
	const char *verb;
	weir_cancel *token; /* of a blocking call, which holds it */
	size_t size;        /* of its kind's struct, whose first member this is */
	weir_allocator allocator;
	/* Of one that is on the list, constant from then on: for dumps. */
	uint64_t began_ns;
	uint32_t thread;
	/* claim */
	int listed, blind;
	int untold; /* complete, and `done` is due: counted as one that waits */
	struct weiri_delivery delivery;
	enum weir_status status;
	weir_error error;
};

void weiri_awaits_init(struct weiri_awaits *awaits, const char *what, const char *name);
/* 1 when it has completed, and only its memory is still on the list. */
int weiri_await_over(const struct weiri_await *await);
/* WEIR_FAILED_PRECONDITION while an operation waits. */
enum weir_status weiri_awaits_check_idle(const struct weiri_awaits *awaits, weir_error *error);

/*
 * Of a kind of `size`, zero behind the struct weiri_await. Claimed by the caller; one reference for the completion and one for the caller.
 * NULL: no memory to `verb`, and *error says so.
 */
struct weiri_await *weiri_await_create(struct weiri_awaits *awaits, size_t size, const char *verb,
                                       weiri_await_attempt *attempt, void (*done)(struct weiri_await *await),
                                       const weir_allocator *allocator, weir_error *error);
void weiri_await_release(struct weiri_await *await);

/*
 * Attempts, and blocks until it is complete, which deadline or token make it. Its status; *error says what its own says. The caller's
 * reference is left.
 */
enum weir_status weiri_await_run(struct weiri_record *record, struct weiri_await *await, uint64_t deadline_ns,
                                 weir_cancel *cancel, weir_error *error);
/* Attempts, and leaves it on the list if it must wait; it may complete inside. The caller's reference is left if he `keeps` it. */
void weiri_await_begin(struct weiri_record *record, struct weiri_await *await, int keeps);
/* Ends it with WEIR_CANCELLED unless it completes first. */
void weiri_await_cancel(struct weiri_await *await);
/* WEIR_CANCELLED, and the cause, when the token has fired before the call. */
enum weir_status weiri_await_check_token(const struct weiri_awaits *awaits, const char *verb, weir_cancel *cancel,
                                         weir_error *error);

void weiri_await_serve(struct weiri_record *record, struct weiri_awaits *awaits);

/* After a change of the object, outside of sections: lets those who wait go on. */
static inline void weiri_await_pump(struct weiri_record *record, struct weiri_awaits *awaits)
{
	if (WEIRI_UNLIKELY(weiri_waiters_posted(&awaits->waiters)))
		weiri_await_serve(record, awaits);
}

#endif
