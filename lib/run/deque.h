/*
 * deque.h - a work-stealing deque: one owner pushes and takes at the bottom, any thread steals at the top.
 *
 * Use it for the tasks of one worker: the owner's calls touch no line that thieves write unless the deque is nearly empty. It
 * has exactly one owner at a time; for many producers use weir/ring.h.
 *
 * | call                    | threads     | progress              | blocks on | allocates         |
 * |-------------------------|-------------|-----------------------|-----------|-------------------|
 * | weiri_deque_push        | the owner   | wait-free + allocator | allocator | when full, doubles |
 * | weiri_deque_take        | the owner   | wait-free             | nothing   | no                |
 * | weiri_deque_steal       | any         | lock-free; one try is wait-free | nothing | no        |
 * | weiri_deque_size_approx | any         | wait-free             | nothing   | no                |
 *
 * Ordering: what the owner wrote before push is visible to whoever takes or steals the item.
 */
#ifndef WEIRI_DEQUE_H
#define WEIRI_DEQUE_H

#include <stddef.h>
#include <stdint.h>
#include <weir/alloc.h>

#include "base/atomic.h"
#include "base/compiler.h"

struct weiri_deque_array;

struct weiri_deque {
	WEIRI_ALIGNED_APART _Atomic(int64_t) top;    /* thieves, and the owner for the last item */
	WEIRI_ALIGNED_APART _Atomic(int64_t) bottom; /* owner only */
	_Atomic(struct weiri_deque_array *) array;   /* owner only */
	const weir_allocator *allocator;             /* constant */
};

enum weiri_steal {
	WEIRI_STEAL_TAKEN = 0,
	WEIRI_STEAL_EMPTY = 1, /* there was nothing at some moment during the call */
	WEIRI_STEAL_LOST = 2   /* another thread got the item; try again */
};

/* capacity: a power of two. allocator is kept by address. Returns 0 when there is no memory. */
int weiri_deque_init(struct weiri_deque *deque, size_t capacity, const weir_allocator *allocator);
/* No other thread may be using it. Items left inside are forgotten. */
void weiri_deque_fini(struct weiri_deque *deque);

/* item is not NULL. Returns 0, having done nothing, when the deque is full and there is no memory for a larger one. */
int weiri_deque_push(struct weiri_deque *deque, void *item);
/* The item pushed last, or NULL when there is none. */
void *weiri_deque_take(struct weiri_deque *deque);
/* The oldest item into *item; untouched unless WEIRI_STEAL_TAKEN. */
enum weiri_steal weiri_deque_steal(struct weiri_deque *deque, void **item);
/* Exact for the owner when nobody steals. */
size_t weiri_deque_size_approx(const struct weiri_deque *deque);

#endif
