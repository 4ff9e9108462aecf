/*
 * select.h - one of several queue operations, whichever can proceed first.
 *
 * Use it for a thread that waits for any of several queues, in either direction, as Go's select does. One case proceeds, or
 * none; nothing is taken from, or put into, the queues of the others. To wait for sockets as well use weir_queue_readable_fd()
 * (weir/queue.h); for one queue its own calls, which cost less.
 *
 * | call                           | threads | progress                     | blocks on          | allocates       | signal-safe |
 * |--------------------------------|---------|------------------------------|--------------------|-----------------|-------------|
 * | weir_try_select                | any     | lock-free                    | nothing            | at a thread's first use of Weir | no |
 * | weir_select                    | any     | lock-free while a case can proceed | any of the cases, up to the deadline | when it waits | no |
 * | weir_select_start              | any     | lock-free + allocator        | nothing            | yes             | no          |
 *
 * A closed queue counts as one that can proceed: its case is chosen, with WEIR_CANCELLED (enqueue) or, once drained,
 * WEIR_OUT_OF_RANGE (dequeue) as its status. An enqueue that was waiting when a close that drains came still goes in, if room
 * appears first. When several can proceed, one is drawn: each call begins to look at another place. While it waits, a select
 * stands in the list of each of its queues at the place at which it came, as any operation; in a fair queue it passes nobody. A
 * thread that is stopped inside a call may hold up selects that it was completing, beside what weir/queue.h says.
 */
#ifndef WEIR_SELECT_H
#define WEIR_SELECT_H

#include <weir/queue.h>

WEIR_BEGIN_DECLS

enum weir_select_kind {
	WEIR_SELECT_ENQUEUE = 1, /* item goes in */
	WEIR_SELECT_DEQUEUE = 2  /* item comes out */
};

struct weir_select_case {
	weir_queue *queue; /* the same queue may stand in several cases */
	enum weir_select_kind kind;
	/* Enqueue: given by the caller. Dequeue: the outcome, if this case was chosen and its status is WEIR_OK. */
	void *item;
	/* The outcome, if this case was chosen: WEIR_OK, WEIR_CANCELLED (closed), WEIR_OUT_OF_RANGE (drained). */
	enum weir_status status;
};

/*
 * Does not wait. WEIR_OK: the case *chosen proceeded, see its status; when that is not WEIR_OK, *error says why.
 * WEIR_WOULD_BLOCK: none could. WEIR_INVALID_ARGUMENT (no cases, a queue that is NULL, an unknown kind, chosen NULL),
 * WEIR_RESOURCE_EXHAUSTED (no memory for this thread's record): nothing happened.
 * @since 0.1
 */
WEIR_API enum weir_status weir_try_select(struct weir_select_case cases[], size_t count, size_t *chosen,
                                          weir_error *error);
/*
 * Waits until a case can proceed, until deadline_ns (absolute) or until `cancel` (may be NULL) fires. As above; instead of
 * WEIR_WOULD_BLOCK WEIR_DEADLINE_EXCEEDED (0: looks once) or WEIR_CANCELLED (the token), and WEIR_RESOURCE_EXHAUSTED also when
 * there is no memory to wait with: no case proceeded, items of enqueues are still the caller's, *chosen and the cases are
 * untouched. @since 0.1
 */
WEIR_API enum weir_status weir_select(struct weir_select_case cases[], size_t count, uint64_t deadline_ns,
                                      weir_cancel *cancel, size_t *chosen, weir_error *error);

/*
 * The one completion of an asynchronous select, where and how weir_queue_done_fn says. WEIR_OK: cases[chosen] proceeded;
 * `error` is not NULL if its status is not WEIR_OK. WEIR_CANCELLED: it was cancelled, and no case proceeded.
 */
typedef void weir_select_done_fn(void *context, enum weir_status status, const weir_error *error,
                                 struct weir_select_case cases[], size_t chosen);

/*
 * Starts a select that holds no thread while it waits. cases[] must stay valid until `done` has been called, which happens
 * exactly once unless the call itself fails (WEIR_INVALID_ARGUMENT, WEIR_RESOURCE_EXHAUSTED). *op (out may be NULL) is for
 * weir_queue_op_cancel() and the caller's until weir_queue_op_release().
 * @since 0.1
 */
WEIR_API enum weir_status weir_select_start(struct weir_select_case cases[], size_t count, weir_select_done_fn *done,
                                            void *context, weir_queue_op **out, weir_error *error);

WEIR_END_DECLS

#endif
