/*
 * queue_u64.h - the calls of weir/queue.h for items that are numbers.
 *
 * For bindings whose items are handles or indices: a language that checks pointers (Go's vet, Rust's
 * provenance) has no honest way to put a number into a void *. Each call does what its twin without
 * _u64 does. Both kinds work on the same queue: an item is the pointer (void *)(uintptr_t)number.
 * They are exported, not inline, so that they can be loaded by name. Machines whose pointers have
 * fewer than 64 bits do not have them.
 *
 *     status = weir_queue_enqueue_u64(queue, handle, WEIR_NO_DEADLINE, NULL, &error);
 *     status = weir_queue_dequeue_u64(queue, &handle, WEIR_NO_DEADLINE, NULL, &error);
 *
 * | call                 | threads | progress              | blocks on | allocates  | signal-safe |
 * |----------------------|---------|-----------------------|-----------|------------|-------------|
 * | weir_queue_try_enqueue_u64, _try_dequeue_u64 | any | lock-free | nothing | record (1) | no  |
 * | weir_queue_try_enqueue_many_u64, _try_dequeue_many_u64 | any | lock-free | nothing | record (1) | no |
 * | weir_queue_enqueue_u64, _enqueue_many_u64 | any | lock-free if there is room | room (2) | to wait | no |
 * | weir_queue_dequeue_u64 | any   | lock-free if there is an item | items (2) | to wait | no   |
 * | weir_queue_dequeue_many_u64, _dequeue_up_to_u64 | any | lock-free if there are items | items (2) | yes | no |
 *
 * (1) A thread's first call of Weir allocates its record.
 * (2) Up to the deadline.
 */
#ifndef WEIR_QUEUE_U64_H
#define WEIR_QUEUE_U64_H

#include <stddef.h>
#include <stdint.h>
#include <weir/queue.h>

WEIR_BEGIN_DECLS

#if UINTPTR_MAX >= UINT64_MAX

/* As weir_queue_try_enqueue(). @since 0.1 */
WEIR_API enum weir_status weir_queue_try_enqueue_u64(weir_queue *queue, uint64_t item);

/* As weir_queue_try_dequeue(). @since 0.1 */
WEIR_API enum weir_status weir_queue_try_dequeue_u64(weir_queue *queue, uint64_t *item);

/* As weir_queue_try_enqueue_many(). `done` must not be NULL. @since 0.1 */
WEIR_API enum weir_status weir_queue_try_enqueue_many_u64(weir_queue *queue, const uint64_t items[],
                                                          size_t count, size_t *done);

/* As weir_queue_try_dequeue_many(). `done` must not be NULL. @since 0.1 */
WEIR_API enum weir_status weir_queue_try_dequeue_many_u64(weir_queue *queue, uint64_t items[],
                                                          size_t count, size_t *done);

/* As weir_queue_enqueue(). `cancel` may be NULL. @since 0.1 */
WEIR_API enum weir_status weir_queue_enqueue_u64(weir_queue *queue, uint64_t item,
                                                 uint64_t deadline_ns, weir_cancel *cancel,
                                                 weir_error *error);

/* As weir_queue_enqueue_many(). `cancel` and *done may be NULL. @since 0.1 */
WEIR_API enum weir_status weir_queue_enqueue_many_u64(weir_queue *queue, const uint64_t items[],
                                                      size_t count, uint64_t deadline_ns,
                                                      weir_cancel *cancel, size_t *done,
                                                      weir_error *error);

/* As weir_queue_dequeue(). `cancel` may be NULL. @since 0.1 */
WEIR_API enum weir_status weir_queue_dequeue_u64(weir_queue *queue, uint64_t *item,
                                                 uint64_t deadline_ns, weir_cancel *cancel,
                                                 weir_error *error);

/* As weir_queue_dequeue_many(). `cancel` may be NULL. @since 0.1 */
WEIR_API enum weir_status weir_queue_dequeue_many_u64(weir_queue *queue, uint64_t items[],
                                                      size_t count, uint64_t deadline_ns,
                                                      weir_cancel *cancel, weir_error *error);

/* As weir_queue_dequeue_up_to(). `cancel` may be NULL; `done` must not be NULL. @since 0.1 */
WEIR_API enum weir_status weir_queue_dequeue_up_to_u64(weir_queue *queue, uint64_t items[],
                                                       size_t count, uint64_t deadline_ns,
                                                       weir_cancel *cancel, size_t *done,
                                                       weir_error *error);

#endif

WEIR_END_DECLS

#endif
