/*
 * inbox.h - the pool's unbounded queue of tasks that come from threads without a deque of their
 * own.
 *
 * Any number of threads put and take. Lock-free rings hold the tasks; each ring is four times as
 * large as the one before. A ring is created when the backlog first needs it, and kept. So a
 * stalled thread strands at most the one task that it is moving. If there is no memory for the next
 * ring, put pushes the task onto an intrusive stack, which take removes as a whole.
 *
 * | call             | threads | progress              | blocks on | allocates             |
 * |------------------|---------|-----------------------|-----------|-----------------------|
 * | weiri_inbox_put  | any     | lock-free + allocator | allocator | if the backlog grows  |
 * | weiri_inbox_take | any     | lock-free             | nothing   | no                    |
 *
 * Order: FIFO within one ring. Ordering: what was written before put is visible to the thread that
 *   takes the task.
 */
#ifndef WEIRI_INBOX_H
#define WEIRI_INBOX_H

#include <stddef.h>
#include <stdint.h>
#include <weir/alloc.h>
#include <weir/pool.h>
#include <weir/ring.h>

#include "base/atomic.h"

#if defined(WEIRI_UNDER_MODEL) /* stress/model: full after few tasks, so that the next steps are explored */
enum { WEIRI_INBOX_RINGS = 2, WEIRI_INBOX_FIRST_CAPACITY = 1 };
#else
enum { WEIRI_INBOX_RINGS = 10, WEIRI_INBOX_FIRST_CAPACITY = 1024 };
#endif

struct weiri_inbox {
	/* rings[i] has WEIRI_INBOX_FIRST_CAPACITY << 2i slots; NULL: not created yet */
	_Atomic(weir_ring *) rings[WEIRI_INBOX_RINGS];
	_Atomic(weir_task *) chain;      /* tasks that found no room, newest first */
	const weir_allocator *allocator; /* constant */
};

/* The inbox keeps the address of the allocator. Returns false if there is no memory. */
bool weiri_inbox_init(struct weiri_inbox *inbox, const weir_allocator *allocator);
/* The inbox must be empty, and no other thread may use it. */
void weiri_inbox_fini(struct weiri_inbox *inbox);

/* Always succeeds. */
void weiri_inbox_put(struct weiri_inbox *inbox, weir_task *task);
/*
 * Returns a task or NULL. NULL means that every task whose put ended before this call began has
 * been taken by another thread, or another thread is moving it. `turn` (any number, such as the
 * number of calls of the caller) selects where to look first: a ring, or the tasks that found no room
 * in one; so none of them starves. *moved
 * becomes 1 if the call put tasks again; the caller must then announce them like new tasks.
 * Otherwise *moved does not change.
 */
weir_task *weiri_inbox_take(struct weiri_inbox *inbox, unsigned turn, bool *moved);
/*
 * Returns true if a take would have found a task at some moment of the call; false if at some moment
 * each ring was empty, and at some moment the chain. A task that another thread moves from the chain
 * into a ring may be missed; that thread has not finished its take.
 */
bool weiri_inbox_has_task(struct weiri_inbox *inbox);

#endif
