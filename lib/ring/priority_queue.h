/*
 * priority_queue.h - what queues built on the priority queue need beyond <weir/priority_queue.h>.
 */
#ifndef WEIRI_RING_PRIORITY_QUEUE_H
#define WEIRI_RING_PRIORITY_QUEUE_H

#include <weir/priority_queue.h>

/* As try_enqueue; `admitted`: also into a closed queue. */
enum weir_status weiri_priority_queue_put(weir_priority_queue *queue, int64_t key, uint64_t value, int admitted);
/*
 * As try_dequeue, if the smallest key is below *below (NULL: whatever it is); WEIR_WOULD_BLOCK when it is not, at some moment of the
 * call. key is not NULL.
 */
enum weir_status weiri_priority_queue_take(weir_priority_queue *queue, const int64_t *below, int64_t *key,
                                           uint64_t *value);
/* 1: a put would have found room. */
int weiri_priority_queue_has_room(const weir_priority_queue *queue);
/* 1: closed, and no put is under way; only admitted ones could still come. */
int weiri_priority_queue_is_ended(weir_priority_queue *queue);
/* 1: *key was the smallest at some moment of the call; 0: the queue was empty. */
int weiri_priority_queue_peek(const weir_priority_queue *queue, int64_t *key);

#endif
