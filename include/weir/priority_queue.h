/*
 * priority_queue.h - bounded lock-free priority queue: smallest key first, equal keys in order.
 *
 * Use it to hand values between threads by urgency when a stalled thread must never delay another.
 * It never waits: "full" and "empty" are statuses. If threads should sleep until there is room or
 * an item, use weir/queue.h in WEIR_QUEUE_PRIORITY order, which adds waiting to this queue. All
 * dequeues contend for the smallest key. If one of the smallest keys is good enough,
 * weir/multi_queue.h spreads them.
 *
 * | call                            | threads   | progress  | blocks on | allocates | signal-safe |
 * |---------------------------------|-----------|-----------|-----------|-----------|-------------|
 * | weir_priority_queue_create      | one       | allocator | allocator | yes       | no          |
 * | weir_priority_queue_destroy     | one, last | allocator | allocator | no        | no          |
 * | weir_priority_queue_try_enqueue | any       | lock-free | nothing   | no        | yes         |
 * | weir_priority_queue_try_dequeue | any       | lock-free | nothing   | no        | yes         |
 * | weir_priority_queue_close       | any       | wait-free | nothing   | no        | yes         |
 * | weir_priority_queue_closed, _size_approx | any | wait-free | nothing | no       | yes         |
 * | weir_priority_queue_capacity    | any       | wait-free | nothing   | no        | yes         |
 *
 * Memory. All of it is allocated at creation: about 33 bytes per item.
 *
 * Cost. An enqueue takes O(log n) expected steps, a dequeue O(1). A dequeue that another has overtaken
 * pauses before it tries again: 64 pauses of the processor, at most 1,024 (25 to 50 us on x86-64).
 *
 * Stalled threads. A thread that is stalled inside an enqueue delays no other call. It occupies the
 * room for one value, and until it continues a closed queue is not reported as drained. A thread
 * that is stalled inside a dequeue occupies nothing.
 *
 * Ordering. What a thread wrote before it enqueued a value is visible to the thread that dequeues
 * it. What a thread wrote before it closed the queue is visible to every thread that finds it
 * closed. All calls are linearizable, "empty" included. "Full" counts the enqueues that are under
 * way, so it may come early by their number.
 *
 * lib/weir/ring/priority_queue.c describes and proves the algorithm.
 */
#ifndef WEIR_PRIORITY_QUEUE_H
#define WEIR_PRIORITY_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/alloc.h>
#include <weir/status.h>

WEIR_BEGIN_DECLS

typedef struct weir_priority_queue weir_priority_queue;

enum weir_priority_queue_limits { WEIR_PRIORITY_QUEUE_MAX_CAPACITY = 16777214 /* 2^24 - 2 */ };

struct weir_priority_queue_options {
	size_t struct_size;              /* WEIR_PRIORITY_QUEUE_OPTIONS_INIT sets it */
	uint32_t flags;                  /* must be 0 */
	const weir_allocator *allocator; /* NULL: the default allocator */
};
#define WEIR_PRIORITY_QUEUE_OPTIONS_INIT WEIR_STRUCT_SIZE(struct weir_priority_queue_options)

/*
 * Creates a queue that holds exactly `capacity` values, 1 .. WEIR_PRIORITY_QUEUE_MAX_CAPACITY.
 * options may be NULL.
 *
 * Errors: WEIR_INVALID_ARGUMENT if out is NULL, the capacity is out of bounds, a flag is unknown,
 * or struct_size is wrong. WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_priority_queue_create(
	size_t capacity, const struct weir_priority_queue_options *options, weir_priority_queue **out,
	weir_error *error);

/*
 * Destroys the queue and drops the values in it. No other thread may use it. Accepts NULL. Never
 * fails.
 * @since 0.1
 */
WEIR_API enum weir_status weir_priority_queue_destroy(weir_priority_queue *queue,
                                                      weir_error *error);

/*
 * Enqueues `value`, which may be any 64 bits, after the stored values with the same key.
 *
 * Errors: WEIR_WOULD_BLOCK if there is no room, where each enqueue under way counts as a value;
 * WEIR_CANCELLED if the queue is closed; WEIR_INVALID_ARGUMENT if it is NULL.
 * @since 0.1
 */
WEIR_API enum weir_status weir_priority_queue_try_enqueue(weir_priority_queue *queue, int64_t key,
                                                          uint64_t value);

/*
 * Dequeues the oldest value with the smallest key into *value, and that key into *key (may be
 * NULL).
 *
 * Errors: WEIR_WOULD_BLOCK if the queue is empty, WEIR_OUT_OF_RANGE if it is drained,
 * WEIR_INVALID_ARGUMENT if queue or value is NULL. On an error the outputs are untouched.
 * @since 0.1
 */
WEIR_API enum weir_status weir_priority_queue_try_dequeue(weir_priority_queue *queue, int64_t *key,
                                                          uint64_t *value);

/*
 * Closes the queue. An enqueue that starts afterwards fails; one that is under way may succeed. The
 * stored values can still be dequeued. After a dequeue has returned WEIR_OUT_OF_RANGE, no enqueue
 * ever succeeds again. Idempotent. Accepts NULL.
 * @since 0.1
 */
WEIR_API void weir_priority_queue_close(weir_priority_queue *queue);
/* Returns true after weir_priority_queue_close(), else false. @since 0.1 */
WEIR_API bool weir_priority_queue_closed(const weir_priority_queue *queue);
/* The capacity that the queue was created with; 0 for NULL. @since 0.1 */
WEIR_API size_t weir_priority_queue_capacity(const weir_priority_queue *queue);

/*
 * The number of stored values, 0 .. capacity. Exact while no other thread uses the queue, else
 * approximate. 0 for NULL.
 * @since 0.1
 */
WEIR_API size_t weir_priority_queue_size_approx(const weir_priority_queue *queue);

WEIR_END_DECLS

#endif
