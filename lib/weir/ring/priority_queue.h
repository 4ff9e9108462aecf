/*
 * priority_queue.h - what the queues that are built on the priority queue need beyond
 * <weir/priority_queue.h>.
 */
#ifndef WEIRI_RING_PRIORITY_QUEUE_H
#define WEIRI_RING_PRIORITY_QUEUE_H

#include <weir/priority_queue.h>

/* As try_enqueue. `admitted`: may enqueue into a closed queue. */
enum weir_status weiri_priority_queue_put(weir_priority_queue *queue, int64_t key, uint64_t value, bool admitted);
/* Something outside the queue that may have to leave before the queue's first item. */
struct weiri_priority_beside {
	const _Atomic(void *) *place;
	const void *expected;
	const int64_t *below; /* NULL: no key is too large */
};
/*
 * As try_dequeue; `beside` may be NULL, `key` may not. With `beside` it takes an item only if the
 * smallest key is below *below and *place is `expected`. It returns WEIR_WOULD_BLOCK if the key is
 * not below, and WEIR_ABORTED if *place differs. Every answer except WEIR_ABORTED is true at one
 * moment of the call (for an empty queue, *place is read after the queue).
 */
enum weir_status weiri_priority_queue_take(weir_priority_queue *queue, const struct weiri_priority_beside *beside,
                                           int64_t *key, uint64_t *value);
/* Returns true if at some moment of the call a put would have found room. */
bool weiri_priority_queue_has_room(const weir_priority_queue *queue);
/* Returns true if it is closed and no put is under way; only admitted puts can still come. */
bool weiri_priority_queue_is_ended(weir_priority_queue *queue);
/*
 * How many items went in (with the puts under way) and came out: the counts of layout.h, modulo
 * 2^39 (modulo more in small queues).
 */
void weiri_priority_queue_counts(const weir_priority_queue *queue, uint64_t *in, uint64_t *out);
/*
 * Returns true if one of the last `count` items that went in has a number with none of the bits of
 * `mask`, which is one less than a power of two.
 */
bool weiri_priority_queue_passed(const weir_priority_queue *queue, uint64_t mask, size_t count);
/*
 * Returns true if *key was the smallest at some moment of the call, false if the queue was empty.
 */
bool weiri_priority_queue_peek(const weir_priority_queue *queue, int64_t *key);

#endif
