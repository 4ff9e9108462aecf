/*
 * deque.h - a work-stealing deque: one owner pushes and takes at the bottom, any thread steals at
 * the top.
 *
 * Use it for the tasks of one worker. The owner's calls write no cache line that thieves write,
 * unless the deque is nearly empty. It has exactly one owner at a time; for many producers use
 * weir/ring.h.
 *
 * | call                    | threads   | progress                        | allocates           |
 * |-------------------------|-----------|---------------------------------|---------------------|
 * | weiri_deque_push        | the owner | wait-free + allocator           | if full, to double  |
 * | weiri_deque_take        | the owner | wait-free                       | no                  |
 * | weiri_deque_steal       | any       | lock-free; one try is wait-free | no                  |
 * | weiri_deque_size_approx | any       | wait-free                       | no                  |
 *
 * Only push can block, on the allocator.
 *
 * Ordering: what the owner wrote before push is visible to the thread that takes or steals the
 *   item.
 */
#ifndef WEIRI_DEQUE_H
#define WEIRI_DEQUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/alloc.h>

#include "base/atomic.h"
#include "base/compiler.h"

struct weiri_deque_array;

struct weiri_deque {
	WEIRI_ALIGNED_APART _Atomic(int64_t) top;    /* written by thieves, and by the owner for the last item */
	WEIRI_ALIGNED_APART _Atomic(int64_t) bottom; /* owner only */
	_Atomic(struct weiri_deque_array *) array;   /* owner only */
	const weir_allocator *allocator;             /* constant */
};

enum weiri_steal {
	WEIRI_STEAL_TAKEN = 0,
	WEIRI_STEAL_EMPTY = 1, /* the deque was empty at some moment of the call */
	WEIRI_STEAL_LOST = 2   /* another thread got the item; try again */
};

/*
 * capacity is a power of two. The deque keeps the address of the allocator. Returns false if there
 * is no memory.
 */
bool weiri_deque_init(struct weiri_deque *deque, size_t capacity, const weir_allocator *allocator);
/* No other thread may use the deque. It does not free the items that are left inside. */
void weiri_deque_fini(struct weiri_deque *deque);

/*
 * item is not NULL. Returns false and changes nothing if the deque is full and there is no memory
 * for a larger array.
 */
bool weiri_deque_push(struct weiri_deque *deque, void *item);
/* Takes the item that was pushed last. Returns NULL if there is none. */
void *weiri_deque_take(struct weiri_deque *deque);
/* Steals the oldest item into *item, which changes only if the result is WEIRI_STEAL_TAKEN. */
enum weiri_steal weiri_deque_steal(struct weiri_deque *deque, void **item);
/* Returns the number of items: exact for the owner while no thread steals. */
size_t weiri_deque_size_approx(const struct weiri_deque *deque);

#endif
