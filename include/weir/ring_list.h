/*
 * ring_list.h - unbounded lock-free FIFO of 64-bit values for many producers and consumers.
 *
 * Use it if an enqueue must not be refused and memory may grow with the backlog. A bound is usually
 * better: weir/ring.h reports "full", and weir/queue.h waits for room. Values are stored in rings
 * of a fixed size, linked one after the other. An emptied ring is freed, so memory shrinks with the
 * backlog too.
 *
 * | call                 | threads   | progress            | blocks on | allocates  | signal-safe |
 * |----------------------|-----------|---------------------|-----------|------------|-------------|
 * | weir_ring_list_create | one      | allocator           | allocator | yes        | no          |
 * | weir_ring_list_destroy | one, last | allocator         | allocator | no         | no          |
 * | weir_ring_list_enqueue[_many] | any | lock-free + allocator | allocator | a ring (1) | no     |
 * | weir_ring_list_try_dequeue[_many] | any | lock-free + allocator | allocator | record (2) | no |
 * | weir_ring_list_close | any       | lock-free           | nothing   | record (2) | no          |
 * | weir_ring_list_closed, _size_approx | any | wait-free  | nothing   | record (2) | no          |
 *
 * (1) When the last ring is full.
 * (2) A thread's first call of Weir allocates its record.
 *
 * A stalled thread delays no other thread. If it is stalled inside a call, the rings that existed
 * then are not freed (docs/memory.md); later rings are.
 *
 * Ordering. What a thread wrote before it enqueued a value is visible to the thread that dequeues
 * it. All calls are linearizable; lib/weir/ring/ring_list.c has the proof.
 *
 * Sources: linking rings that can be closed is the idea of LCRQ (Morrison, Afek, PPoPP 2013); the
 * list is Michael and Scott's (PODC 1996); the rings are those of weir/ring.h.
 */
#ifndef WEIR_RING_LIST_H
#define WEIR_RING_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/alloc.h>
#include <weir/ring.h>
#include <weir/status.h>

WEIR_BEGIN_DECLS

typedef struct weir_ring_list weir_ring_list;

enum weir_ring_list_defaults { WEIR_RING_LIST_DEFAULT_SEGMENT = 1024 };

struct weir_ring_list_options {
	size_t struct_size;           /* WEIR_RING_LIST_OPTIONS_INIT sets it */
	enum weir_ring_format format; /* of the rings; 0: best */
	uint32_t flags;               /* must be 0 */
	/* values per ring, 1 .. WEIR_RING_MAX_CAPACITY; 0: WEIR_RING_LIST_DEFAULT_SEGMENT */
	size_t segment;
	/*
	 * NULL: the default allocator. It may get memory back after the list is destroyed:
	 * weir/reclaim.h
	 */
	const weir_allocator *allocator;
};
#define WEIR_RING_LIST_OPTIONS_INIT WEIR_STRUCT_SIZE(struct weir_ring_list_options)

/*
 * Creates an empty list. options may be NULL.
 *
 * Errors: WEIR_INVALID_ARGUMENT if out is NULL, segment is out of bounds, the format or a flag is
 * unknown, or struct_size is wrong. WEIR_UNIMPLEMENTED if the machine does not support LTQ16 and
 * the options ask for it. WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_ring_list_create(const struct weir_ring_list_options *options,
                                                weir_ring_list **out, weir_error *error);

/*
 * Destroys the list and drops the values in it. No other thread may use it. Accepts NULL. Never
 * fails.
 * @since 0.1
 */
WEIR_API enum weir_status weir_ring_list_destroy(weir_ring_list *list, weir_error *error);

/*
 * Enqueues `value`, which may be any 64 bits.
 *
 * Errors: WEIR_CANCELLED if the list is closed, WEIR_INVALID_ARGUMENT if it is NULL,
 * WEIR_RESOURCE_EXHAUSTED if there is no memory for another ring or for this thread's record; the
 * list is then unchanged.
 * @since 0.1
 */
WEIR_API enum weir_status weir_ring_list_enqueue(weir_ring_list *list, uint64_t value);

/*
 * Dequeues the oldest value into *value.
 *
 * Errors: WEIR_WOULD_BLOCK if the list is empty, WEIR_OUT_OF_RANGE if it is drained,
 * WEIR_RESOURCE_EXHAUSTED if there is no memory for this thread's record, WEIR_INVALID_ARGUMENT if
 * an argument is NULL. On an error *value is untouched.
 * @since 0.1
 */
WEIR_API enum weir_status weir_ring_list_try_dequeue(weir_ring_list *list, uint64_t *value);

/*
 * Enqueues all of values[0 .. count-1] in order, or, if the status is not WEIR_OK, the first *done
 * of them. Each value is one linearizable enqueue; enqueues of other threads may come between them.
 * Errors as for weir_ring_list_enqueue().
 * @since 0.1
 */
WEIR_API enum weir_status weir_ring_list_enqueue_many(weir_ring_list *list, const uint64_t values[],
                                                      size_t count, size_t *done);

/*
 * Dequeues up to `count` values into values[] and stores their number in *done. Returns WEIR_OK if
 * at least one was dequeued or count is 0, else the status of weir_ring_list_try_dequeue().
 * @since 0.1
 */
WEIR_API enum weir_status weir_ring_list_try_dequeue_many(weir_ring_list *list, uint64_t values[],
                                                          size_t count, size_t *done);

/*
 * Closes the list. An enqueue that starts afterwards fails; one that is under way succeeds or finds
 * the list closed. The stored values can still be dequeued. After a dequeue has returned
 * WEIR_OUT_OF_RANGE, no enqueue ever succeeds again. Idempotent.
 *
 * Errors: WEIR_RESOURCE_EXHAUSTED if there is no memory for this thread's record; then nothing was
 * done. WEIR_INVALID_ARGUMENT (NULL).
 * @since 0.1
 */
WEIR_API enum weir_status weir_ring_list_close(weir_ring_list *list);
/* Returns true after weir_ring_list_close(), else false; false for NULL. @since 0.1 */
WEIR_API bool weir_ring_list_closed(const weir_ring_list *list);

/*
 * The number of stored values. Exact while no other thread uses the list, else approximate. 0 for
 * NULL, and if there is no memory for this thread's record.
 * @since 0.1
 */
WEIR_API size_t weir_ring_list_size_approx(const weir_ring_list *list);

WEIR_END_DECLS

#endif
