/*
 * multi_queue.h - bounded lock-free priority queue that is not quite strict: near the smallest key leaves, and threads seldom
 * meet.
 *
 * Use it where priorities guide and nobody depends on each single one: shortest paths, branch and bound, schedulers of tasks.
 * Many threads that dequeue from weir/priority_queue.h all meet at one item; here each draws two of several lanes and takes the
 * smaller of their first items. It never waits: full and empty are statuses. One thread with one lane has strict order.
 *
 * | call                           | threads   | progress  | blocks on | allocates | signal-safe |
 * |--------------------------------|-----------|-----------|-----------|-----------|-------------|
 * | weir_multi_queue_create        | one       | allocator | allocator | yes       | no          |
 * | weir_multi_queue_destroy       | one, last | allocator | allocator | no        | no          |
 * | weir_multi_queue_try_enqueue   | any       | lock-free | nothing   | no        | no          |
 * | weir_multi_queue_try_dequeue   | any       | lock-free | nothing   | no        | no          |
 * | weir_multi_queue_close         | any       | wait-free | nothing   | no        | yes         |
 * | weir_multi_queue_closed, _size_approx, _capacity, _lanes | any | wait-free | nothing | no | yes  |
 *
 * Each lane is a strict queue of weir/priority_queue.h, so there is no lock whose holder could be stopped: a thread that is
 * stopped inside an enqueue keeps the room for one value and hides nothing of what others put. How far from strict, measured:
 * docs/concepts.md; a dequeue passes over about as many smaller keys as there are lanes, on average, and over more with
 * stickiness.
 *
 * Ordering: what a thread wrote before enqueueing a value is visible to the thread that dequeues it. "Full" says that each lane
 * was full at some moment of the call, "empty" that each was empty at some moment. Sources: MultiQueues (Rihani, Sanders,
 * Dementiev, SPAA 2015); stickiness: Williams, Sanders, Dementiev (ESA 2021).
 */
#ifndef WEIR_MULTI_QUEUE_H
#define WEIR_MULTI_QUEUE_H

#include <stddef.h>
#include <stdint.h>
#include <weir/alloc.h>
#include <weir/status.h>

WEIR_BEGIN_DECLS

typedef struct weir_multi_queue weir_multi_queue;

enum { WEIR_MULTI_QUEUE_MAX_LANES = 1024, WEIR_MULTI_QUEUE_LANES_A_PROCESSOR = 4 };

struct weir_multi_queue_options {
	size_t struct_size;              /* sizeof(struct weir_multi_queue_options) */
	uint32_t flags;                  /* must be 0 */
	uint32_t lanes;                  /* at most WEIR_MULTI_QUEUE_MAX_LANES, and the capacity; 0: 4 a processor */
	uint32_t stickiness;             /* calls for which a thread stays with the lanes it drew; 0: 1, no stickiness */
	const weir_allocator *allocator; /* NULL: the default one */
};

/*
 * A queue that holds exactly `capacity` values, of which each lane holds its share, of at most
 * WEIR_PRIORITY_QUEUE_MAX_CAPACITY. options may be NULL. WEIR_INVALID_ARGUMENT (out NULL, capacity or lanes out of bounds,
 * unknown flag, bad struct_size), WEIR_RESOURCE_EXHAUSTED. @since 0.1
 */
WEIR_API enum weir_status weir_multi_queue_create(size_t capacity, const struct weir_multi_queue_options *options,
                                                  weir_multi_queue **out);
/* Values left inside are dropped. No other thread may be using the queue. Accepts NULL. @since 0.1 */
WEIR_API void weir_multi_queue_destroy(weir_multi_queue *queue);

/*
 * WEIR_OK: the value, any of 64 bits, is in. WEIR_WOULD_BLOCK: no lane had room; each enqueue under way counts as a value.
 * WEIR_CANCELLED: closed. WEIR_INVALID_ARGUMENT: queue NULL. @since 0.1
 */
WEIR_API enum weir_status weir_multi_queue_try_enqueue(weir_multi_queue *queue, int64_t key, uint64_t value);
/*
 * WEIR_OK: *value is out, and *key (may be NULL) is its key: the smallest of one lane. WEIR_WOULD_BLOCK: all lanes were empty.
 * WEIR_OUT_OF_RANGE: closed and empty for ever. WEIR_INVALID_ARGUMENT: queue or value NULL. Outputs are untouched unless WEIR_OK.
 * @since 0.1
 */
WEIR_API enum weir_status weir_multi_queue_try_dequeue(weir_multi_queue *queue, int64_t *key, uint64_t *value);

/*
 * No enqueue that starts after this, or after anybody was told that the queue is closed, succeeds. What is inside stays to be
 * dequeued. Once a dequeue has answered WEIR_OUT_OF_RANGE no enqueue ever succeeds again. Idempotent; accepts NULL. @since 0.1
 */
WEIR_API void weir_multi_queue_close(weir_multi_queue *queue);
/* 1 once closed, else 0. @since 0.1 */
WEIR_API int weir_multi_queue_closed(const weir_multi_queue *queue);
/* 0 for NULL, as the next two. @since 0.1 */
WEIR_API size_t weir_multi_queue_capacity(const weir_multi_queue *queue);
/* How many lanes there are. @since 0.1 */
WEIR_API size_t weir_multi_queue_lanes(const weir_multi_queue *queue);
/* The number of values if nobody is using the queue, else near it; 0 .. capacity. @since 0.1 */
WEIR_API size_t weir_multi_queue_size_approx(const weir_multi_queue *queue);

WEIR_END_DECLS

#endif
