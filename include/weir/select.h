/*
 * select.h - one of several queue operations, whichever can proceed first.
 *
 * Use it for a thread that waits for any of several queues, in either direction, like select in Go.
 * One case proceeds, or none; the queues of the other cases do not change. To wait for sockets as
 * well, use weir_queue_readable_fd() (weir/queue.h). For one queue, use its own calls, which cost
 * less.
 *
 * | call           | threads | progress           | blocks on          | allocates  | signal-safe |
 * |----------------|---------|--------------------|--------------------|------------|-------------|
 * | weir_try_select | any    | lock-free          | nothing            | record (1) | no          |
 * | weir_select    | any  | lock-free if a case can proceed | any of the cases (2) | to wait | no |
 * | weir_select_start | any  | lock-free + allocator | nothing         | yes        | no          |
 *
 * (1) A thread's first call of Weir allocates its record.
 * (2) Up to the deadline.
 *
 * Closed queues. The case of a closed queue can proceed: it is chosen with the status
 * WEIR_CANCELLED (enqueue) or, once the queue is drained, WEIR_OUT_OF_RANGE (dequeue). An enqueue
 * that already waits when the queue is closed with WEIR_CLOSE_DRAIN still succeeds, if room appears
 * first.
 *
 * Order. If several cases can proceed, one is drawn: each call begins its search at a different
 * case. While a select waits, it has a place in arrival order among the waiters of each of its
 * queues, like any operation. In a fair queue it bypasses no waiter.
 *
 * Stalled threads. As described in weir/queue.h; in addition, a thread stalled inside a call may
 * delay the selects that it was completing, and in a fair queue the selects that stand behind an
 * operation that it delays.
 */
#ifndef WEIR_SELECT_H
#define WEIR_SELECT_H

#include <weir/pending.h>
#include <weir/queue.h>

WEIR_BEGIN_DECLS

enum weir_select_kind {
	WEIR_SELECT_ENQUEUE = 1, /* enqueues item */
	WEIR_SELECT_DEQUEUE = 2  /* dequeues into item */
};

struct weir_select_case {
	weir_queue *queue; /* the same queue may occur in several cases */
	enum weir_select_kind kind;
	/*
	 * Enqueue: given by the caller. Dequeue: the outcome, if this case was chosen with status
	 * WEIR_OK.
	 */
	void *item;
	/*
	 * The outcome, if this case was chosen: WEIR_OK, WEIR_CANCELLED (closed), WEIR_OUT_OF_RANGE
	 * (drained).
	 */
	enum weir_status status;
};

/*
 * Carries out one case that can proceed now. WEIR_OK means that case *chosen proceeded. Its own
 * status is in the case; if that is not WEIR_OK, *error explains it.
 *
 * Errors, after which nothing has happened: WEIR_WOULD_BLOCK if no case could proceed.
 * WEIR_INVALID_ARGUMENT if there are no cases, a queue is NULL, a kind is unknown, or chosen is
 * NULL. WEIR_RESOURCE_EXHAUSTED if there is no memory for this thread's record.
 * @since 0.1
 */
WEIR_API enum weir_status weir_try_select(struct weir_select_case cases[], size_t count,
                                          size_t *chosen, weir_error *error);

/*
 * Like weir_try_select(), but waits until a case can proceed, until deadline_ns (absolute; 0: tries
 * once), or until `cancel` (may be NULL) fires.
 *
 * Errors: as for weir_try_select(), with WEIR_DEADLINE_EXCEEDED or WEIR_CANCELLED (the token)
 * instead of WEIR_WOULD_BLOCK, and WEIR_RESOURCE_EXHAUSTED also if there is no memory to wait with.
 * On an error no case proceeded, the caller still owns the items of enqueues, and *chosen and the
 * cases are untouched.
 * @since 0.1
 */
WEIR_API enum weir_status weir_select(struct weir_select_case cases[], size_t count,
                                      uint64_t deadline_ns, weir_cancel *cancel, size_t *chosen,
                                      weir_error *error);

/*
 * The completion of an asynchronous select. The rules of weir_queue_done_fn apply. WEIR_OK means
 * that cases[chosen] proceeded; `error` is not NULL if the status of that case is not WEIR_OK.
 * WEIR_CANCELLED means that the select was cancelled and no case proceeded.
 */
typedef void weir_select_done_fn(void *context, enum weir_status status, const weir_error *error,
                                 struct weir_select_case cases[], size_t chosen);

/*
 * Starts a select that holds no thread while it waits. cases[] must stay valid until `done` has
 * been called. That happens exactly once, unless this call itself fails (WEIR_INVALID_ARGUMENT,
 * WEIR_RESOURCE_EXHAUSTED). *handle (may be NULL) is a handle for weir_pending_cancel(); the caller
 * gives it back with weir_pending_release().
 * @since 0.1
 */
WEIR_API enum weir_status weir_select_start(struct weir_select_case cases[], size_t count,
                                            weir_select_done_fn *done, void *context,
                                            weir_pending **handle, weir_error *error);

WEIR_END_DECLS

#endif
