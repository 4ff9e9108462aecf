/*
 * priority_queue.h - what queues built on the priority queue need beyond <weir/priority_queue.h>.
 */
#ifndef WEIRI_RING_PRIORITY_QUEUE_H
#define WEIRI_RING_PRIORITY_QUEUE_H

#include <weir/priority_queue.h>

/* As try_enqueue; `admitted`: also into a closed queue. */
enum weir_status weiri_priority_queue_put(weir_priority_queue *queue, int64_t key, uint64_t value, int admitted);
/* What may go before the queue's first item. */
struct weiri_priority_beside {
	const _Atomic(void *) *place;
	const void *expected;
	const int64_t *below; /* NULL: no item of the queue is too large */
};
/*
 * As try_dequeue. With `beside`, which may be NULL, only if the smallest key is below *below and
 * *place is `expected`: WEIR_WOULD_BLOCK if the key is not, WEIR_ABORTED if *place is not. All
 * answers but WEIR_ABORTED hold at one moment of the call (for an empty queue, *place is read after
 * the queue). key is not NULL.
 */
enum weir_status weiri_priority_queue_take(weir_priority_queue *queue, const struct weiri_priority_beside *beside,
                                           int64_t *key, uint64_t *value);
/* 1: at some moment of the call a put would have found room. */
int weiri_priority_queue_has_room(const weir_priority_queue *queue);
/* 1: closed, and no put is running; only admitted puts can still come. */
int weiri_priority_queue_is_ended(weir_priority_queue *queue);
/*
 * How many items went in (running puts included) and came out: the counts of layout.h, modulo 2^39
 * (more in small queues).
 */
void weiri_priority_queue_counts(const weir_priority_queue *queue, uint64_t *in, uint64_t *out);
/*
 * 1: among the last `count` items that went in is one whose number has none of the bits of `mask`,
 * which is one less than a power of two.
 */
int weiri_priority_queue_passed(const weir_priority_queue *queue, uint64_t mask, size_t count);
/* 1: *key was the smallest at some moment of the call; 0: the queue was empty. */
int weiri_priority_queue_peek(const weir_priority_queue *queue, int64_t *key);

#endif
