/*
 * op.h - an operation of a queue that may wait.
 *
 * One state machine serves blocking and asynchronous calls: a blocking call is an operation whose completion wakes its owner.
 * Whoever makes progress possible claims a waiting operation and carries on with it, on his own thread; so an asynchronous
 * operation needs no thread, and a blocked thread finds its work done when it wakes.
 *
 *   CLAIMED            one thread works on it (at first: its starter)
 *   CLAIMED | AGAIN    somebody changed the store meanwhile: look again before giving up the claim
 *   CLAIMED | CANCEL   end it instead; the state also says why (WEIRI_OP_FOR_*)
 *   0                  waits; on its list; anybody may claim it
 *   CANCEL             the same, to be ended by who claims it: its canceller had no memory to do so
 *   DONE               completed, for ever
 *
 *   CLAIMED -> 0 -> CLAIMED     CLAIMED -> CLAIMED | AGAIN, CANCEL     0 -> CANCEL -> CLAIMED | CANCEL     CLAIMED* -> DONE
 *
 * Invariants
 *   O1  fields marked "claim" are touched by the claimer only
 *   O2  an event is never lost: who changes the store then finds each operation of the other list either waiting (and claims it), or
 *       claimed (and leaves AGAIN), or not yet on the list (and then its starter looks at the store after it posted that; where that
 *       fails, which is not expected once it was granted, the owner of a blocking call looks again every millisecond)
 *   O3  an operation completes exactly once: by the thread that holds the claim
 *   O4  who cancels an operation touches the queue only with the claim, and completes it last: with the completion of the last
 *       operation a queue may be destroyed, though the thread that fired a token is still at work
 *       Others that complete one and go on with the queue visit it meanwhile (sync/delivery.h): a completion on their thread may destroy it.
 *       But no queue is destroyed between an operation that waited in it and its completion: that is counted until its owner is told
 *   O5  an operation is cancelled by one change of its state, reason included: no canceller waits for another, which may be stopped
 *   O6  a select (select.c) is one operation, its leader, with an entry on the list of each of its cases. The leader's state is the only one:
 *       who comes to any of the entries claims the leader, and tries the cases. So one case proceeds, by O3; an item leaves its
 *       store, or enters one, only together with the decision. Nobody waits for a claim, so selects that cross do not deadlock
 * Progress: everything but the waiting itself is lock-free. A thread stopped while it holds a claim delays that one operation (its
 *   items may be in the caller's array, so not even its deadline can end it), and, if that is the batch that collects, the batch
 *   dequeues that wait for its turn and the end of a closed queue. A canceller serves others before it completes its own: it delays two.
 *   So do those who complete selects: pump.c.
 */
#ifndef WEIRI_QUEUE_OP_H
#define WEIRI_QUEUE_OP_H

#include "queue/queue.h"
#include "sync/delivery.h"

enum { WEIRI_OP_CLAIMED = 1, WEIRI_OP_AGAIN = 2, WEIRI_OP_CANCEL = 4, WEIRI_OP_DONE = 8, WEIRI_OP_WHY = 7 * 16 };

/* Why it is cancelled; part of the state with CANCEL. */
enum weiri_op_why {
	WEIRI_OP_FOR_CLOSE = 0 * 16,
	WEIRI_OP_FOR_DEADLINE = 1 * 16,
	WEIRI_OP_FOR_TOKEN = 2 * 16,
	WEIRI_OP_FOR_MEMORY = 3 * 16,  /* there was none to watch the token */
	WEIRI_OP_FOR_CALLER = 4 * 16,  /* weir_queue_op_cancel() without a cause */
	WEIRI_OP_FOR_A_CAUSE = 5 * 16, /* with the one in caller_cause */
};

/* The futex word of a blocking call. Who finds WAITS there need not wake its owner: he looks again before he sleeps. */
enum {
	WEIRI_OP_WAITS = 0,
	WEIRI_OP_FINISHED = 1,
	WEIRI_OP_ALARMED = 2, /* its owner is to cancel it, and may sleep */
	WEIRI_OP_ASLEEP = 3,  /* or is about to be: to be woken */
};

struct weir_queue_op {
	struct weiri_list_node node;
	_Atomic(uint32_t) state;
	_Atomic(uint32_t) references;  /* completion, list, handle, cancellers under way */
	_Atomic(uint32_t) cause_taken; /* the first canceller with a cause writes caller_cause */
	_Atomic(uint32_t) finished;    /* WEIRI_OP_WAITS, ... */
	/* Constant. */
	weir_queue_op *leader; /* itself; of a case, its select */
	weir_queue_op *cases;  /* of a select, behind it; NULL: it stands alone */
	size_t case_count;
	weir_queue *queue;
	enum weir_queue_op_kind kind;
	void **items;
	size_t count;
	const int64_t *keys; /* of an enqueue into a queue that has keys, asked for when it was made; NULL: of none */
	weir_queue_done_fn *callback; /* NULL: a blocking call */
	void *context;
	weir_cancel *token; /* of a blocking call, which holds it; or NULL */
	/* Starter: when it began to wait, for who looks from outside (scripts/gdb/weir.py); 0: it does not. */
	uint64_t began_ns;
	uint32_t thread;          /* starter, with began_ns: the kernel's number of the thread */
	struct weiri_visit visit; /* starter, of a case */
	int blind;                /* starter: the heavy fence failed, so an event may overlook us */
	weir_allocator allocator;
	/* claim */
	int listed;
	int admitted;
	int holds_turn;
	size_t done;
	struct weiri_segment *partial; /* a batch dequeue collects here */
	size_t first_case;             /* of a select: where to begin */
	size_t chosen;                 /* of a select: the case that proceeded; case_count: none */
	weir_queue_op *next;           /* of a select: see pump.c */
	struct weiri_delivery delivery;
	int counted; /* in `waiting` of its queue; a case in that of its own */
	enum weir_status status;
	/* status != OK: why */
	weir_error error;
	weir_error caller_cause;
	int64_t only_key; /* of one item */
};

/* The kind of a select. */
enum { WEIRI_OP_SELECT = 4 };
/* The kind of an entry that stands on a list only to keep it occupied (readiness.c): DONE from the beginning, so nobody claims it. */
enum { WEIRI_OP_BELL = 0 };

/*
 * Claimed by the caller, one reference for the completion and one for the caller; the first `done` items of an enqueue are in. NULL: no
 * memory. Not in a section: it asks for keys; so does weiri_op_set_case().
 */
weir_queue_op *weiri_op_create(weir_queue *queue, enum weir_queue_op_kind kind, void *items[], size_t count,
                               size_t done, weir_queue_done_fn *callback, void *context);
/* A select of `count` operations on one item each, which the caller describes: weiri_op_set_case(). Otherwise the same. */
weir_queue_op *weiri_op_create_select(weir_queue *queue, size_t count, weir_queue_done_fn *callback, void *context);
void weiri_op_set_case(weir_queue_op *op, size_t i, weir_queue *queue, enum weir_queue_op_kind kind, void **item);
/* A bell, with one reference for the list and one for the caller. NULL: no memory. */
weir_queue_op *weiri_op_create_bell(weir_queue *queue);
void weiri_op_retain(weir_queue_op *op);
void weiri_op_release(weir_queue_op *op);

/* Tries at once, then puts the operation on its list. It may complete inside. */
void weiri_op_start(struct weiri_record *record, weir_queue_op *op);
/*
 * Ends it, unless it completes first. Touches the queue only while the operation is incomplete: one that ended may have outlived its
 * queue. Without a record for this thread it wakes the owner of a blocking call, who does it himself; another
 * operation is then ended by whoever comes to claim it.
 */
void weiri_op_cancel(weir_queue_op *op, enum weiri_op_why why);
/* With a cause to tell (may be NULL): WEIR_CANCELLED. The cause is told unless another is. */
void weiri_op_cancel_for(weir_queue_op *op, const weir_error *cause);

enum weiri_op_outcome {
	WEIRI_OP_COMPLETE, /* status is set; the claim is kept: weiri_op_finish, then weiri_op_complete */
	WEIRI_OP_STUCK,    /* waits: the store has nothing (or no room) */
	WEIRI_OP_NO_TURN   /* waits: for the batch that collects, which may stand behind it */
};

/*
 * 1 when another operation than own (a leader; may be NULL) is first on the list, bells left out. One that has ended may still be linked,
 * when its thread was stopped there: unlinked here.
 */
int weiri_op_others_first(struct weiri_scope *scope, struct weiri_list *list, const weir_queue_op *own);
/* By its starter, who waits: lets those go on who wait in its queues, and tells what is due. */
void weiri_op_pump(struct weiri_record *record, weir_queue_op *op);
/* The owner of a blocking call, until it completes; which the deadline or the token (may be NULL) makes it do. */
void weiri_op_wait(struct weiri_record *record, weir_queue_op *op, uint64_t deadline_ns, weir_cancel *cancel);
int weiri_op_claim(weir_queue_op *op);
/* With the claim: carries on until the operation is complete or waits. *moved is set when items moved. */
enum weiri_op_outcome weiri_op_drive(struct weiri_scope *scope, weir_queue_op *op, int *moved);
/* In the scope: takes a complete operation off its list; gives back what it holds. */
void weiri_op_finish(struct weiri_scope *scope, weir_queue_op *op);
/*
 * Tells the owner. A blocking one's in any scope, a callback outside of scopes; if one runs on this thread, later (sync/delivery.h). The
 * operation may be gone afterwards, and the queue.
 */
void weiri_op_complete(weir_queue_op *op);

static inline const char *weiri_op_verb(enum weir_queue_op_kind kind)
{
	return kind == WEIR_QUEUE_OP_ENQUEUE ? "enqueue" : "dequeue";
}

static inline enum weiri_side weiri_op_side(const weir_queue_op *op)
{
	return op->kind == WEIR_QUEUE_OP_ENQUEUE ? WEIRI_SIDE_ENQUEUE : WEIRI_SIDE_DEQUEUE;
}

static inline struct weiri_waiters *weiri_op_waiters(const weir_queue_op *op)
{
	return op->kind == WEIR_QUEUE_OP_ENQUEUE ? &op->queue->producers : &op->queue->consumers;
}

#endif
