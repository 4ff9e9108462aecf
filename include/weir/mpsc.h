/*
 * mpsc.h - bounded lock-free FIFO of 64-bit values with one consumer: an inbox.
 *
 * Use it if one thread at a time receives what many send: the inbox of an executor, an actor or an
 * event loop. It is weir/ring.h with a dequeue that needs no compare-and-swap and never retries.
 * With a second consumer, even occasionally, use weir/ring.h: two dequeues at a time corrupt the
 * queue. To sleep until a value arrives, use weir/queue.h. For one producer, use weir/spsc.h.
 *
 * | call                     | threads      | progress      | blocks on | allocates | signal-safe |
 * |--------------------------|--------------|---------------|-----------|-----------|-------------|
 * | weir_mpsc_create         | one          | allocator     | allocator | yes       | no          |
 * | weir_mpsc_memsize, _init | one          | wait-free     | nothing   | no        | yes         |
 * | weir_mpsc_destroy        | one, last    | allocator     | allocator | no        | no          |
 * | weir_mpsc_try_enqueue[_many] | any      | lock-free (1) | nothing   | no        | yes         |
 * | weir_mpsc_try_dequeue[_many] | the consumer | wait-free (2) | nothing | no      | no          |
 * | weir_mpsc_close          | any          | wait-free     | nothing   | no        | yes         |
 * | weir_mpsc_closed, _size_approx, _capacity | any | wait-free | nothing | no      | yes         |
 *
 * (1) In the LTQ64 format an enqueue waits while 64 threads are stalled inside enqueues of the same
 *     queue.
 * (2) Lock-free once the queue is closed.
 *
 * A stalled producer delays no other thread: the values that other producers enqueue can be
 * dequeued. (In Vyukov's queue, and in any other that exchanges its tail first and links
 * afterwards, a stalled producer hides everything enqueued after it.)
 *
 * Ordering. What a thread wrote before it enqueued a value is visible to the consumer that dequeues
 * it. What a thread wrote before it closed the queue is visible to every thread that finds it
 * closed. All calls are linearizable, "full" and "empty" included, with respect to the
 * happens-before relation of C11. With respect to real time, a producer may get "full" for the
 * nanoseconds that the store of a dequeue takes to leave its processor. A dequeue runs a fence
 * before it returns "empty", if values were dequeued since the last one. A batch dequeue that got
 * fewer values than requested, but at least one, ran no fence. So it does not say that the queue is
 * empty; only the next call can say so.
 *
 * The role of consumer may move to another thread if the handover itself synchronizes the two.
 *
 * Source: LTQ (ours); lib/weir/ring/algorithm.h and lib/weir/ring/mpsc.c describe and prove it.
 */
#ifndef WEIR_MPSC_H
#define WEIR_MPSC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/ring.h>
#include <weir/status.h>

WEIR_BEGIN_DECLS

typedef struct weir_mpsc weir_mpsc;

/*
 * Creates a queue that holds exactly `capacity` values, 1 .. WEIR_RING_MAX_CAPACITY. Powers of two
 * are the fastest. The options, which may be NULL, and the errors are those of weir_ring_create().
 * @since 0.1
 */
WEIR_API enum weir_status weir_mpsc_create(size_t capacity, const struct weir_ring_options *options,
                                           weir_mpsc **out, weir_error *error);

/*
 * Creates a queue in memory of the caller, aligned to WEIR_RING_ALIGNMENT: see weir_ring_memsize()
 * and weir_ring_init().
 * @since 0.1
 */
WEIR_API size_t weir_mpsc_memsize(size_t capacity, const struct weir_ring_options *options);
WEIR_API enum weir_status weir_mpsc_init(void *memory, size_t size, size_t capacity,
                                         const struct weir_ring_options *options, weir_mpsc **out,
                                         weir_error *error);

/*
 * Destroys the queue and drops the values in it. No other thread may use it. Accepts NULL. Never
 * fails.
 * @since 0.1
 */
WEIR_API enum weir_status weir_mpsc_destroy(weir_mpsc *mpsc, weir_error *error);

/*
 * Any thread: enqueues `value`, which may be any 64 bits.
 *
 * Errors: WEIR_WOULD_BLOCK if the queue held `capacity` values, WEIR_CANCELLED if it is closed,
 * WEIR_INVALID_ARGUMENT if mpsc is NULL. Linearizes at the successful CAS of the slot, or at the
 * load that found the slot full.
 * @since 0.1
 */
WEIR_API enum weir_status weir_mpsc_try_enqueue(weir_mpsc *mpsc, uint64_t value);

/*
 * Consumer: dequeues the oldest value into *value.
 *
 * Errors: WEIR_WOULD_BLOCK if the queue is empty, WEIR_OUT_OF_RANGE if it is drained,
 * WEIR_INVALID_ARGUMENT if an argument is NULL. On an error *value is untouched.
 * @since 0.1
 */
WEIR_API enum weir_status weir_mpsc_try_dequeue(weir_mpsc *mpsc, uint64_t *value);

/*
 * Enqueues as many of values[0 .. count-1] as fit, in order, and stores their number in *done.
 * Returns WEIR_OK if at least one was enqueued or count is 0, else the status of
 * weir_mpsc_try_enqueue(). Each value is one linearizable enqueue; enqueues of other threads may
 * come between them.
 * @since 0.1
 */
WEIR_API enum weir_status weir_mpsc_try_enqueue_many(weir_mpsc *mpsc, const uint64_t values[],
                                                     size_t count, size_t *done);

/*
 * Consumer: dequeues up to `count` values and stores their number in *done. Returns WEIR_OK if at
 * least one was dequeued or count is 0, else the status of weir_mpsc_try_dequeue(). A number below
 * `count`, but not 0, does not mean that the queue is empty (see above).
 * @since 0.1
 */
WEIR_API enum weir_status weir_mpsc_try_dequeue_many(weir_mpsc *mpsc, uint64_t values[],
                                                     size_t count, size_t *done);

/*
 * Closes the queue, as weir_ring_close(). Later enqueues fail; the stored values can still be
 * dequeued. Idempotent. Accepts NULL.
 * @since 0.1
 */
WEIR_API void weir_mpsc_close(weir_mpsc *mpsc);
/* Returns true after weir_mpsc_close(), else false. @since 0.1 */
WEIR_API bool weir_mpsc_closed(const weir_mpsc *mpsc);

/* The capacity that the queue was created with; 0 for NULL. @since 0.1 */
WEIR_API size_t weir_mpsc_capacity(const weir_mpsc *mpsc);

/*
 * The number of stored values, 0 .. capacity. Exact while no other thread uses the queue, else
 * approximate.
 * @since 0.1
 */
WEIR_API size_t weir_mpsc_size_approx(const weir_mpsc *mpsc);

WEIR_END_DECLS

#endif
