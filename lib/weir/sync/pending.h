/*
 * pending.h - an operation that may wait: one state machine for all waits in Weir.
 *
 * A queue operation, a select, a wait for a variable, a watch, a take from an area: each is a
 * struct weir_pending with an *attempt*, which succeeds or says that the operation must wait. An
 * operation that must wait stands on the list of each object that it waits for, with one entry on
 * each. A thread that changes an object walks the object's list, claims each operation there, and
 * attempts it on behalf of its owner. So an asynchronous operation needs no thread of its own, and
 * a blocked thread finds its operation done when it wakes. A blocking call is an operation whose
 * completion wakes its owner.
 *
 * States
 *   CLAIMED            one thread works on the operation (at first: its starter)
 *   CLAIMED | AGAIN    an object has changed meanwhile: attempt once more before giving up the claim
 *   CLAIMED | CANCEL   end it instead; the state also says why (WEIRI_PENDING_FOR_*)
 *   0                  it waits, on its lists; any thread may claim it
 *   CANCEL             the same, to be ended by the next claimer: its canceller had no record
 *   DONE               completed, for ever
 *
 *   CLAIMED -> 0 -> CLAIMED     CLAIMED -> CLAIMED | AGAIN, CANCEL
 *   0 -> CANCEL -> CLAIMED | CANCEL     CLAIMED* -> DONE
 *
 * Invariants
 *   O1  only the claimer accesses the fields marked "claim", and those of the operation's kind
 *   O2  no change is lost. A thread that has changed an object walks the object's list. There are
 *       three cases for each operation. It waits on the list, and the thread claims it. It is
 *       claimed, and the thread leaves AGAIN. Or it is not on the list yet; then its starter
 *       attempts it after it has posted the entry (sync/waiters.h). The post can fail, which is not
 *       expected once membarrier was granted. The owner of a blocking call then looks again every
 *       millisecond
 *   O3  an operation completes exactly once: by the thread that holds the claim
 *   O4  a canceller touches the objects only while it holds the claim, and completes the operation
 *       last. So an object may be destroyed once its last operation has completed, even if the
 *       thread that fired a token still runs. Another thread that completes an operation and then
 *       continues with the object visits the object (sync/delivery.h), because a callback on the
 *       same thread may destroy it. No object is destroyed between the wait of an operation and the
 *       end of its completion: the operation is counted in `waiting` until its owner is told
 *   O5  one change of the state cancels an operation, reason included. So no canceller waits for
 *       another canceller, which may be stalled
 *   O6  an operation with several entries has one state. A thread that comes to any of its entries
 *       claims the whole operation. By O3 one thread decides what the operation does. No thread
 *       waits for a claim, so operations whose lists cross do not deadlock
 *   O7  a call that must not wait (deadline 0) never stands on a list, so no other thread can claim
 *       its operation and stall
 * Pairs
 *   P1  give up the claim, or leave AGAIN or CANCEL -> claim (drive): O1, what the other thread
 *       changed, and a canceller's cause
 *   P2  complete (finished) -> owner, or weir_pending_wait, _try_wait: the outcome
 *   P3  token fires (finished) -> weir_pending_wait: that the token has fired. Without this pair a
 *       waiter could read the new word, still find the token unfired, and sleep on that word
 * Linearization: an operation at that of its successful attempt; a cancel at its CAS of the state.
 * Progress: all but the waiting is lock-free, as far as the attempts are. A thread that stalls
 *   while it holds a claim delays that one operation. Not even the deadline ends the operation
 *   meanwhile, because the attempt may have written to the caller's memory. A canceller serves
 *   other operations before it completes the cancelled one, so a stalled canceller delays two. A
 *   stalled thread that completes operations with several entries delays the operations that it is
 *   completing (weiri_pending_pump). A thread may also stall after a change that lets several
 *   operations go on. It delays the operations that its walk has not reached, until the next walk.
 * Memory: one block for each operation, until its owner, its callback and its lists have released
 *   it. A list releases an entry when no walk can see it any longer (reclaim/section.h).
 * Source. To complete waiting operations on behalf of their owners is the idea of flat combining
 *   (Hendler, Incze, Shavit, Tzafrir, SPAA 2010), here with a list in place of slots. CLAIMED, as
 *   an intermediate state of a choice, is known from Parallel Concurrent ML (Reppy, Russo, Xiao,
 *   ICFP 2009), where a thread that finds it spins. We know of no publication of AGAIN.
 * Checked: stress/model/check_pending.c, check_queue.c, check_select.c, check_watch.c,
 *   check_staging.c, check_keyed_join.c; tests/test_pending.c, tests/test_queue_operation.c;
 *   weir-stress "queue_stopped", "keyed_join_stopped".
 */
#ifndef WEIRI_SYNC_PENDING_H
#define WEIRI_SYNC_PENDING_H

#include <stddef.h>
#include <weir/pending.h>
#include <weir/time.h>

#include "base/compiler.h"
#include "sync/delivery.h"
#include "sync/waiters.h"

enum {
	WEIRI_PENDING_CLAIMED = 1,
	WEIRI_PENDING_AGAIN = 2,
	WEIRI_PENDING_CANCEL = 4,
	WEIRI_PENDING_DONE = 8,
	WEIRI_PENDING_WHY = 7 * 16
};

/* Why an operation is cancelled; part of the state, with CANCEL. */
enum weiri_pending_why {
	WEIRI_PENDING_FOR_CLOSE = 0 * 16,
	WEIRI_PENDING_FOR_DEADLINE = 1 * 16,
	WEIRI_PENDING_FOR_TOKEN = 2 * 16,
	WEIRI_PENDING_FOR_MEMORY = 3 * 16,   /* there was no memory to watch the token */
	WEIRI_PENDING_FOR_CALLER = 4 * 16,   /* weir_pending_cancel() without a cause */
	WEIRI_PENDING_FOR_A_CAUSE = 5 * 16,  /* weir_pending_cancel() with a cause: caller_cause */
	WEIRI_PENDING_FOR_INTERRUPT = 6 * 16 /* of the waiting thread: weir/thread.h */
};

enum weiri_pending_outcome {
	WEIRI_PENDING_COMPLETE, /* status and error are set; the claim is kept */
	WEIRI_PENDING_STUCK,    /* it waits, and so would each operation behind it on the list */
	WEIRI_PENDING_WAITS     /* it waits; an operation behind it may succeed */
};

/* What an operation waits for: an object, and the list on which to stand. */
struct weiri_wait_place {
	struct weiri_waiters *waiters;
	_Atomic(size_t) *waiting; /* operations that wait for the object, or whose owner is still to be told */
	void *object;
	weiri_serve_fn *serve;
};

/* One entry of an operation; the first member of whatever a kind keeps for each entry. */
struct weiri_pending_entry {
	struct weiri_list_node node;
	weir_pending *pending;
	struct weiri_wait_place place;
	struct weiri_visit visit; /* starter, if there are several entries */
	/* claim */
	bool listed, counted;
};

/* What differs from one kind of operation to another. */
struct weiri_pending_kind {
	size_t entry_size;
	/*
	 * Called in the scope, with the claim. Sets *moved if it changed an object. Before it returns
	 * COMPLETE it sets status and error.
	 */
	enum weiri_pending_outcome (*attempt)(struct weiri_scope *scope, weir_pending *pending, bool *moved);
	/*
	 * Called in the scope, after a change, by a thread without the claim. Returns true if an attempt
	 * would do nothing: the thread then passes the operation by, unless it is cancelled. NULL: always false.
	 */
	bool (*needs_nothing)(const weir_pending *pending);
	/*
	 * Returns true if the starter may attempt before the operation stands on a list. NULL: always
	 * true.
	 */
	bool (*may_barge)(struct weiri_scope *scope, weir_pending *pending);
	/*
	 * Calls weiri_pending_stand() for the entry. Returns false if it refuses the operation; status
	 * and error are then set. NULL: the kind needs that call and no more.
	 */
	bool (*join)(struct weiri_scope *scope, weir_pending *pending, struct weiri_pending_entry *entry);
	/*
	 * The operation is complete. settle() gives back what it holds; then left() runs for each
	 * entry.
	 */
	void (*settle)(struct weiri_scope *scope, weir_pending *pending);                           /* may be NULL */
	void (*left)(weir_pending *pending, struct weiri_pending_entry *entry, uint64_t waited_ns); /* may be NULL */
	/* Called when the owner of a blocking call sleeps and is about to be woken; may be NULL. */
	void (*wakes)(weir_pending *pending);
	/* Fills the error of a cancelled operation. Returns the status. */
	enum weir_status (*describe)(weir_pending *pending, enum weiri_pending_why why, const weir_error *cause);
	/*
	 * Called outside of sections. Runs the callback, and then, or later, calls
	 * weiri_pending_told().
	 */
	void (*tell)(weir_pending *pending);
	/* Releases what the kind has allocated for the operation; may be NULL. */
	void (*dispose)(weir_pending *pending);
	/* 1: `tell` runs no user code, so it is called at once, even inside a callback. */
	bool is_quiet;
};

/*
 * The futex word. A change from UNFINISHED needs no wake: the waiter looks again before it sleeps.
 */
enum {
	WEIRI_PENDING_UNFINISHED = 0,
	WEIRI_PENDING_FINISHED = 1,
	WEIRI_PENDING_ALARMED = 2, /* a blocking call's owner is to cancel it, and may sleep */
	WEIRI_PENDING_ASLEEP = 3,  /* a thread sleeps, or is about to, and must be woken */
	WEIRI_PENDING_TURN = 4     /* of a handle: added to wake all that wait, weir_pending_wait() */
};

/* The first member of each kind's operation. */
struct weir_pending {
	_Atomic(uint32_t) state;
	_Atomic(uint32_t) references;  /* completion, entries, handle, cancellers under way */
	_Atomic(uint32_t) cause_taken; /* the first canceller with a cause writes caller_cause */
	_Atomic(uint32_t) finished;
	/* Constant. */
	const struct weiri_pending_kind *kind;
	struct weiri_pending_entry *entries; /* the first one; each has kind->entry_size bytes */
	size_t entry_count;
	size_t size; /* of its block */
	weir_allocator allocator;
	bool is_blocking; /* its owner waits for it in a call */
	bool has_handle;
	bool in_order;      /* operations that waited before it go first */
	weir_cancel *token; /* of a blocking call, which holds it; or NULL */
	/* Starter, for dumps: when the wait began (0: no wait), and Linux's number of the thread. */
	uint64_t began_ns;
	uint32_t thread;
	bool blind; /* starter: the heavy fence failed, so a change may overlook the operation */
	/* claim */
	enum weir_status status;
	bool is_deferred;
	weir_pending *next; /* of a complete operation: see weiri_pending_pump() */
	struct weiri_delivery delivery;
	weir_error error; /* status != WEIR_OK: why */
	weir_error caller_cause;
};

static inline struct weiri_pending_entry *weiri_pending_entry(const weir_pending *pending, size_t i)
{
	return (struct weiri_pending_entry *)(void *)((char *)pending->entries + i * pending->kind->entry_size);
}

static inline struct weiri_pending_entry *weiri_pending_entry_of(const struct weiri_list_node *node)
{
	return (struct weiri_pending_entry *)(void *)((char *)(uintptr_t)node - offsetof(struct weiri_pending_entry, node));
}

/* [relaxed] a look. Returns true if it has completed; only its memory may still be on a list. */
static inline bool weiri_pending_over(const weir_pending *pending)
{
	return (weiri_load_relaxed(&pending->state) & WEIRI_PENDING_DONE) != 0;
}

/* -- creating ---------------------------------------------------------------------------------- */

/*
 * Fills the head of a zeroed block of `size` bytes from the allocator. The operation is then
 * claimed by the caller and has two references: one for the completion, one for the caller.
 */
void weiri_pending_init(weir_pending *pending, const struct weiri_pending_kind *kind,
                        struct weiri_pending_entry *entries, size_t entry_count, size_t size,
                        const weir_allocator *allocator);
/* To be called for each entry. */
void weiri_pending_entry_init(weir_pending *pending, struct weiri_pending_entry *entry, struct weiri_wait_place place);
void weiri_pending_retain(weir_pending *pending);
void weiri_pending_release(weir_pending *pending);

/* -- running ----------------------------------------------------------------------------------- */

/* Attempts it, and leaves it on its lists if it must wait. It may complete inside the call. */
void weiri_pending_start(struct weiri_record *record, weir_pending *pending);
/*
 * Starts an asynchronous operation. The caller's reference becomes *handle, or is released if
 * `handle` is NULL.
 */
WEIRI_SHARED void weiri_pending_begin(struct weiri_record *record, weir_pending *pending, weir_pending **handle);
/*
 * O7: attempts it once, for a call that must not wait; no other thread sees the operation. Sets its
 * status. The caller keeps its reference. Afterwards other operations may be able to go on:
 * weiri_pending_pump().
 */
void weiri_pending_try(struct weiri_record *record, weir_pending *pending);
/*
 * A blocking call: starts the operation and waits until it completes, which the deadline or the
 * token (may be NULL) can bring about. Returns its status, and copies its message to *error (may be
 * NULL). The caller keeps its reference.
 */
enum weir_status weiri_pending_run(struct weiri_record *record, weir_pending *pending, uint64_t deadline_ns,
                                   weir_cancel *cancel, weir_error *error);
/*
 * Ends the operation, unless it completes first. The call touches objects only while the operation
 * is incomplete: a complete operation may have outlived them. If this thread can get no record, the
 * call wakes the owner of a blocking call, which then cancels; any other operation is ended by the
 * next thread that claims it.
 */
WEIRI_SHARED void weiri_pending_cancel(weir_pending *pending, enum weiri_pending_why why);

/* For kinds, in join: puts the entry on its list. */
void weiri_pending_stand(struct weiri_scope *scope, weir_pending *pending, struct weiri_pending_entry *entry);
/* For kinds, with the claim: cancels the operation; the drive that follows sees it. */
void weiri_pending_cancel_claimed(weir_pending *pending, enum weiri_pending_why why);
/* For kinds, in tell: sets another outcome than the attempt did. error may be NULL. */
WEIRI_SHARED void weiri_pending_set_outcome(weir_pending *pending, enum weir_status status, const weir_error *error);
/* For kinds, when the callback has returned. The operation may be gone afterwards. */
void weiri_pending_told(weir_pending *pending);
/*
 * For a callback of Weir's own with which the operation has not yet ended for its owner. It ends
 * with weiri_pending_told_later(), on any thread.
 */
void weiri_pending_defer(weir_pending *pending);
void weiri_pending_told_later(weir_pending *pending);

/* -- steps of serving, which tests take one at a time ------------------------------------------ */

/*
 * Returns true if the caller now has the claim; false if the operation is complete, or its claimer
 * attempts it again.
 */
bool weiri_pending_claim(weir_pending *pending);
/* With the claim: attempts until it is complete (the claim is kept) or waits again (given up). */
enum weiri_pending_outcome weiri_pending_drive(struct weiri_scope *scope, weir_pending *pending, bool *moved);
/*
 * In the scope, with the claim: takes a complete operation off its lists; gives back what it holds.
 */
void weiri_pending_finish(struct weiri_scope *scope, weir_pending *pending);
/*
 * Tells the owner. For a blocking call it may run in any scope; for an asynchronous operation only
 * outside of scopes. The operation and its objects may be gone afterwards.
 */
void weiri_pending_complete(weir_pending *pending);

/* -- serving ----------------------------------------------------------------------------------- */

/* Operations that a walk has finished and not completed yet. */
struct weiri_served {
	weir_pending *asynchronous; /* to be completed outside of the section; NULL: none */
	weir_pending *several;      /* with several entries, linked by `next` */
	weir_pending *leaving;      /* one taken off `several`, while the objects that it leaves are served */
	uint64_t fruitless;         /* attempts after which the operation still waits */
};

/*
 * In the scope: walks a list in arrival order, claims the operations that wait there and attempts
 * them. Returns true if an operation changed an object or completed. The walk stops at an
 * asynchronous operation that it has finished; weiri_served_tell() completes that one.
 */
bool weiri_pending_serve(struct weiri_scope *scope, struct weiri_list *list, struct weiri_served *served);
/* Outside of sections: completes the asynchronous operation at which a walk has stopped, if any. */
void weiri_served_tell(struct weiri_served *served);
/*
 * Serves an object. When an operation with several entries completes, it leaves several objects and
 * may have changed any of them. So all its objects are served, one after the other and not nested,
 * before its owner is told: the owner may then destroy them.
 */
WEIRI_SHARED void weiri_pending_pump(struct weiri_record *record, void *object, weiri_serve_fn *serve);
/*
 * For the owner of a blocking call, outside of sections: serves all objects of its operation,
 * except those that a callback destroys meanwhile.
 */
void weiri_pending_pump_all(struct weiri_record *record, weir_pending *pending);
/*
 * Returns true if an operation other than `own` (may be NULL) stands first on the list. If the
 * thread that removed an entry stalled, the entry of an operation that has ended may still be linked;
 * the call unlinks such entries.
 */
bool weiri_pending_others_first(struct weiri_scope *scope, struct weiri_list *list, const weir_pending *own);

#endif
