/*
 * priority_queue.h - bounded lock-free priority queue: the smallest key leaves first, equal keys in the order they came.
 *
 * Use it to hand values between threads by urgency when nobody may ever wait for a stopped thread. It never waits: full and
 * empty are statuses. When threads should sleep until there is room or an item, use weir/queue.h in WEIR_QUEUE_PRIORITY order,
 * which is this queue with waiting on top. All dequeues meet at the smallest key; where near it is good enough,
 * weir/multi_queue.h spreads them.
 *
 * | call                              | threads   | progress  | blocks on | allocates | signal-safe |
 * |-----------------------------------|-----------|-----------|-----------|-----------|-------------|
 * | weir_priority_queue_create        | one       | allocator | allocator | yes       | no          |
 * | weir_priority_queue_destroy       | one, last | allocator | allocator | no        | no          |
 * | weir_priority_queue_try_enqueue   | any       | lock-free | nothing   | no        | yes         |
 * | weir_priority_queue_try_dequeue   | any       | lock-free | nothing   | no        | yes         |
 * | weir_priority_queue_close         | any       | wait-free | nothing   | no        | yes         |
 * | weir_priority_queue_closed, _size_approx, _capacity | any | wait-free | nothing | no | yes       |
 *
 * All memory is allocated at creation: about 33 bytes an item. An enqueue costs O(log n) steps expected, a dequeue O(1). A
 * thread that is stopped inside an enqueue holds up nobody; it keeps the room for one value, and, until it goes on, the news
 * that a closed queue is drained. One that is stopped inside a dequeue keeps nothing.
 *
 * Ordering: what a thread wrote before enqueueing a value is visible to the thread that dequeues it, and what it wrote before
 * closing to whoever is told that the queue is closed. Linearizable, "empty" included; "full" may come early by the enqueues
 * that are under way at that moment. The algorithm and its argument head lib/ring/priority_queue.c.
 */
#ifndef WEIR_PRIORITY_QUEUE_H
#define WEIR_PRIORITY_QUEUE_H

#include <stddef.h>
#include <stdint.h>
#include <weir/alloc.h>
#include <weir/status.h>

WEIR_BEGIN_DECLS

typedef struct weir_priority_queue weir_priority_queue;

enum { WEIR_PRIORITY_QUEUE_MAX_CAPACITY = (1 << 24) - 2 };

struct weir_priority_queue_options {
	size_t struct_size;              /* sizeof(struct weir_priority_queue_options) */
	uint32_t flags;                  /* must be 0 */
	const weir_allocator *allocator; /* NULL: the default one */
};

/*
 * A queue that holds exactly `capacity` values, 1 .. WEIR_PRIORITY_QUEUE_MAX_CAPACITY. options may be NULL.
 * WEIR_INVALID_ARGUMENT (out NULL, capacity out of bounds, unknown flag, bad struct_size), WEIR_RESOURCE_EXHAUSTED. @since 0.1
 */
WEIR_API enum weir_status weir_priority_queue_create(size_t capacity, const struct weir_priority_queue_options *options,
                                                     weir_priority_queue **out);
/* Values left inside are dropped. No other thread may be using the queue. Accepts NULL. @since 0.1 */
WEIR_API void weir_priority_queue_destroy(weir_priority_queue *queue);

/*
 * WEIR_OK: the value, any of 64 bits, is in, behind those of its key. WEIR_WOULD_BLOCK: no room; each enqueue under way counts
 * as a value. WEIR_CANCELLED: closed. WEIR_INVALID_ARGUMENT: queue NULL. @since 0.1
 */
WEIR_API enum weir_status weir_priority_queue_try_enqueue(weir_priority_queue *queue, int64_t key, uint64_t value);
/*
 * WEIR_OK: *value is out: the oldest of the smallest key, which is *key (may be NULL). WEIR_WOULD_BLOCK: empty.
 * WEIR_OUT_OF_RANGE: closed and empty for ever. WEIR_INVALID_ARGUMENT: queue or value NULL. Outputs are untouched unless
 * WEIR_OK. @since 0.1
 */
WEIR_API enum weir_status weir_priority_queue_try_dequeue(weir_priority_queue *queue, int64_t *key, uint64_t *value);

/*
 * No enqueue that starts afterwards succeeds; one that is under way may. What is inside stays to be dequeued. Once a dequeue has
 * answered WEIR_OUT_OF_RANGE no enqueue ever succeeds again. Idempotent; accepts NULL. @since 0.1
 */
WEIR_API void weir_priority_queue_close(weir_priority_queue *queue);
/* 1 after weir_priority_queue_close, else 0. @since 0.1 */
WEIR_API int weir_priority_queue_closed(const weir_priority_queue *queue);
/* 0 for NULL. @since 0.1 */
WEIR_API size_t weir_priority_queue_capacity(const weir_priority_queue *queue);
/* The number of values if nobody is using the queue, else near it; 0 .. capacity. 0 for NULL. @since 0.1 */
WEIR_API size_t weir_priority_queue_size_approx(const weir_priority_queue *queue);

WEIR_END_DECLS

#endif
