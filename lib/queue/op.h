/*
 * op.h - an operation of a queue that may wait.
 *
 * One state machine serves blocking and asynchronous calls: a blocking call is an operation whose completion wakes its owner.
 * Whoever makes progress possible claims a waiting operation and carries on with it, on his own thread; so an asynchronous
 * operation needs no thread, and a blocked thread finds its work done when it wakes.
 *
 *   CLAIMED            one thread works on it (at first: its starter)
 *   CLAIMED | AGAIN    somebody changed the store meanwhile: look again before giving up the claim
 *   CLAIMED | CANCEL   end it instead
 *   0                  waits; on its list; anybody may claim it
 *   DONE               completed, for ever
 *
 *   CLAIMED -> 0 -> CLAIMED     CLAIMED -> CLAIMED | AGAIN, CANCEL     CLAIMED* -> DONE
 *
 * Invariants
 *   O1  fields marked "claim" are touched by the claimer only
 *   O2  an event is never lost: who changes the store then finds each operation of the other list either waiting (and claims it), or
 *       claimed (and leaves AGAIN), or not yet on the list (and then its starter looks at the store after the heavy fence)
 *   O3  an operation completes exactly once: by the thread that holds the claim
 *   O4  who cancels an operation touches the queue only with the claim, and completes it last: with the completion of the last
 *       operation a queue may be destroyed, though the thread that fired a token is still at work
 * Progress: everything but the waiting itself is lock-free. A thread stopped while it holds a claim delays that one operation.
 */
#ifndef WEIRI_QUEUE_OP_H
#define WEIRI_QUEUE_OP_H

#include "queue/queue.h"

enum { WEIRI_OP_CLAIMED = 1, WEIRI_OP_AGAIN = 2, WEIRI_OP_CANCEL = 4, WEIRI_OP_DONE = 8 };

struct weir_queue_op {
	struct weiri_list_node node;
	_Atomic(uint32_t) state;
	_Atomic(uint32_t) references;   /* completion, list, handle, cancellers under way */
	_Atomic(uint32_t) cancel_taken; /* the first canceller writes cancel_error */
	_Atomic(uint32_t) finished;     /* futex word of a blocking call */
	/* Constant. */
	weir_queue *queue;
	enum weir_queue_op_kind kind;
	void **items;
	size_t count;
	weir_queue_done_fn *callback; /* NULL: a blocking call */
	void *context;
	weir_allocator allocator;
	/* claim */
	int listed;
	int admitted;
	int holds_turn;
	size_t done;
	struct weiri_segment *partial; /* a batch dequeue collects here */
	enum weir_status status;
	struct weir_queue_op *next_completed;
	/* status != OK: why */
	weir_error error;
	weir_error cancel_error; /* without the queue's name: its writer has no claim */
};

/* Claimed by the caller, one reference for the completion and one for the caller. NULL: no memory. */
weir_queue_op *weiri_op_create(weir_queue *queue, enum weir_queue_op_kind kind, void *items[], size_t count,
                               weir_queue_done_fn *callback, void *context);
void weiri_op_retain(weir_queue_op *op);
void weiri_op_release(weir_queue_op *op);

/* Tries at once, then puts the operation on its list. It may complete inside. */
void weiri_op_start(struct weiri_record *record, weir_queue_op *op);
/*
 * Ends it with `cause`, to which the queue's name is added, unless it completes first. Touches the queue only while the operation is
 * incomplete: one that ended may have outlived its queue.
 */
void weiri_op_cancel(weir_queue_op *op, const weir_error *cause);

enum weiri_op_outcome {
	WEIRI_OP_COMPLETE, /* status is set; the claim is kept: weiri_op_finish, then weiri_op_complete */
	WEIRI_OP_STUCK,    /* waits: the store has nothing (or no room) */
	WEIRI_OP_NO_TURN   /* waits: for the batch that collects, which may stand behind it */
};

int weiri_op_claim(weir_queue_op *op);
/* With the claim: carries on until the operation is complete or waits. *moved is set when items moved. */
enum weiri_op_outcome weiri_op_drive(struct weiri_scope *scope, weir_queue_op *op, int *moved);
/* In the scope: takes a complete operation off its list; gives back what it holds. */
void weiri_op_finish(struct weiri_scope *scope, weir_queue_op *op);
/* Outside of scopes: tells the owner. The operation may be gone afterwards. */
void weiri_op_complete(weir_queue_op *op);

static inline struct weiri_list *weiri_op_list(weir_queue_op *op)
{
	return op->kind == WEIR_QUEUE_OP_ENQUEUE ? &op->queue->producers : &op->queue->consumers;
}

#endif
