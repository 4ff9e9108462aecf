/*
 * multi_queue.h - bounded lock-free relaxed priority queue: returns one of the smallest keys.
 *
 * Use it if priorities guide the work and no single one is decisive: shortest paths, branch and
 * bound, task schedulers. Threads that dequeue from weir/priority_queue.h contend for one item.
 * Here a dequeue draws two of several lanes and takes the smaller of their first items, so threads
 * rarely contend. It never waits: "full" and "empty" are statuses. With one thread and one lane the
 * order is strict.
 *
 * | call                            | threads   | progress  | blocks on | allocates | signal-safe |
 * |---------------------------------|-----------|-----------|-----------|-----------|-------------|
 * | weir_multi_queue_create         | one       | allocator | allocator | yes       | no          |
 * | weir_multi_queue_destroy        | one, last | allocator | allocator | no        | no          |
 * | weir_multi_queue_try_enqueue    | any       | lock-free | nothing   | no        | no          |
 * | weir_multi_queue_try_dequeue    | any       | lock-free | nothing   | no        | no          |
 * | weir_multi_queue_close          | any       | wait-free | nothing   | no        | yes         |
 * | weir_multi_queue_closed, _size_approx | any | wait-free | nothing   | no        | yes         |
 * | weir_multi_queue_capacity, _lane_count | any | wait-free | nothing  | no        | yes         |
 *
 * Each lane is a strict queue of weir/priority_queue.h. It has no lock that a stalled thread could
 * hold. A thread that is stalled inside an enqueue occupies the room for one value and hides no
 * value of other threads.
 *
 * On average a dequeue passes over about as many smaller keys as there are lanes, and over more
 * with stickiness. docs/concepts.md has measurements.
 *
 * Ordering. What a thread wrote before it enqueued a value is visible to the thread that dequeues
 * it. "Full" means that each lane was full at some moment of the call; "empty" means that each lane
 * was empty at some moment.
 *
 * Sources: MultiQueues (Rihani, Sanders, Dementiev, SPAA 2015); stickiness: Williams, Sanders,
 * Dementiev (ESA 2021).
 */
#ifndef WEIR_MULTI_QUEUE_H
#define WEIR_MULTI_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/alloc.h>
#include <weir/status.h>

WEIR_BEGIN_DECLS

typedef struct weir_multi_queue weir_multi_queue;

enum weir_multi_queue_limits {
	WEIR_MULTI_QUEUE_MAX_LANES = 1024,
	WEIR_MULTI_QUEUE_LANES_A_PROCESSOR = 4
};

struct weir_multi_queue_options {
	size_t struct_size; /* WEIR_MULTI_QUEUE_OPTIONS_INIT sets it */
	uint32_t flags;     /* must be 0 */
	/* at most the capacity and WEIR_MULTI_QUEUE_MAX_LANES; 0: 4 per processor */
	size_t lanes;
	/* calls for which a thread stays with the lanes that it drew; 0: 1, no stickiness */
	size_t stickiness;
	const weir_allocator *allocator; /* NULL: the default allocator */
};
#define WEIR_MULTI_QUEUE_OPTIONS_INIT WEIR_STRUCT_SIZE(struct weir_multi_queue_options)

/*
 * Creates a queue that holds exactly `capacity` values. The lanes share the capacity; the share of
 * each is at most WEIR_PRIORITY_QUEUE_MAX_CAPACITY. options may be NULL.
 *
 * Errors: WEIR_INVALID_ARGUMENT if out is NULL, the capacity or number of lanes is out of bounds, a
 * flag is unknown, or struct_size is wrong. WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_multi_queue_create(size_t capacity,
                                                  const struct weir_multi_queue_options *options,
                                                  weir_multi_queue **out, weir_error *error);

/*
 * Destroys the queue and drops the values in it. No other thread may use it. Accepts NULL. Never
 * fails.
 * @since 0.1
 */
WEIR_API enum weir_status weir_multi_queue_destroy(weir_multi_queue *queue, weir_error *error);

/*
 * Enqueues `value`, which may be any 64 bits.
 *
 * Errors: WEIR_WOULD_BLOCK if no lane had room, where each enqueue under way counts as a value;
 * WEIR_CANCELLED if the queue is closed; WEIR_INVALID_ARGUMENT if it is NULL.
 * @since 0.1
 */
WEIR_API enum weir_status weir_multi_queue_try_enqueue(weir_multi_queue *queue, int64_t key,
                                                       uint64_t value);

/*
 * Dequeues the value with the smallest key of one lane into *value, and that key into *key (may be
 * NULL).
 *
 * Errors: WEIR_WOULD_BLOCK if all lanes were empty, WEIR_OUT_OF_RANGE if the queue is drained,
 * WEIR_INVALID_ARGUMENT if queue or value is NULL. On an error the outputs are untouched.
 * @since 0.1
 */
WEIR_API enum weir_status weir_multi_queue_try_dequeue(weir_multi_queue *queue, int64_t *key,
                                                       uint64_t *value);

/*
 * Closes the queue. An enqueue fails if it starts after this call, or after any call has found the
 * queue closed. The stored values can still be dequeued. After a dequeue has returned
 * WEIR_OUT_OF_RANGE, no enqueue ever succeeds again. Idempotent. Accepts NULL.
 * @since 0.1
 */
WEIR_API void weir_multi_queue_close(weir_multi_queue *queue);
/* Returns true if the queue is closed, else false. @since 0.1 */
WEIR_API bool weir_multi_queue_closed(const weir_multi_queue *queue);
/* The capacity that the queue was created with; 0 for NULL. @since 0.1 */
WEIR_API size_t weir_multi_queue_capacity(const weir_multi_queue *queue);
/* The number of lanes; 0 for NULL. @since 0.1 */
WEIR_API size_t weir_multi_queue_lane_count(const weir_multi_queue *queue);

/*
 * The number of stored values, 0 .. capacity. Exact while no other thread uses the queue, else
 * approximate. 0 for NULL.
 * @since 0.1
 */
WEIR_API size_t weir_multi_queue_size_approx(const weir_multi_queue *queue);

WEIR_END_DECLS

#endif
