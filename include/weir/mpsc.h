/*
 * mpsc.h - bounded lock-free FIFO of 64-bit values for any number of producers and one consumer: an inbox.
 *
 * Use it where one thread at a time takes what many send: the inbox of an executor, of an actor, of an event loop. It is
 * weir/ring.h with a dequeue that needs no compare-and-swap and never retries. With a second consumer, even now and then, use
 * weir/ring.h: here two dequeues at a time break the queue. To sleep until something comes use weir/queue.h; for one producer
 * use weir/spsc.h.
 *
 * | call                          | threads      | progress  | blocks on | allocates | signal-safe |
 * |-------------------------------|--------------|-----------|-----------|-----------|-------------|
 * | weir_mpsc_create              | one          | allocator | allocator | yes       | no          |
 * | weir_mpsc_memsize, _init      | one          | wait-free | nothing   | no        | yes         |
 * | weir_mpsc_destroy             | one, last    | allocator | allocator | no        | no          |
 * | weir_mpsc_try_enqueue[_many]  | any          | lock-free | nothing   | no        | yes         |
 * | weir_mpsc_try_dequeue[_many]  | the consumer | wait-free while open, then lock-free | nothing | no | no |
 * | weir_mpsc_close               | any          | wait-free | nothing   | no        | yes         |
 * | weir_mpsc_closed, _size_approx, _capacity | any | wait-free | nothing | no      | yes         |
 *
 * A producer that is stopped anywhere, for ever, holds up nobody: what others enqueue comes out. (In Vyukov's queue, and in
 * every other that exchanges its tail first and links behind, all that comes after the stopped one is out of reach.) In the
 * LTQ64 format an enqueue waits while 64 threads are stopped inside enqueues of the same queue.
 *
 * Ordering: what a thread wrote before enqueueing a value is visible to the consumer that dequeues it, and what it wrote before
 * closing to whoever is told that the queue is closed. Linearizable, "full" and "empty" included, where "before" is what C11's
 * happens-before says; by the clock a producer may be told "full" for the nanoseconds that a dequeue's store takes to leave its
 * processor. A dequeue that says "empty" first runs a fence, if values came out since the last one. "The consumer"
 * may change from one thread to another if the change itself orders them. The algorithm (LTQ, ours) and its argument head
 * lib/ring/walk.h and lib/ring/mpsc.c.
 */
#ifndef WEIR_MPSC_H
#define WEIR_MPSC_H

#include <stddef.h>
#include <stdint.h>
#include <weir/ring.h>
#include <weir/status.h>

WEIR_BEGIN_DECLS

typedef struct weir_mpsc weir_mpsc;

/*
 * A queue that holds exactly `capacity` values, 1 .. WEIR_RING_MAX_CAPACITY (powers of two are the fastest). options, which may
 * be NULL, and statuses are those of weir_ring_create(). @since 0.1
 */
WEIR_API enum weir_status weir_mpsc_create(size_t capacity, const struct weir_ring_options *options, weir_mpsc **out);
/* In memory of the caller's, WEIR_RING_ALIGNMENT aligned: as weir_ring_memsize() and weir_ring_init(). @since 0.1 */
WEIR_API size_t weir_mpsc_memsize(size_t capacity, const struct weir_ring_options *options);
WEIR_API enum weir_status weir_mpsc_init(void *memory, size_t size, size_t capacity,
                                         const struct weir_ring_options *options, weir_mpsc **out);
/* Values left inside are dropped. No other thread may be using the queue. Accepts NULL. @since 0.1 */
WEIR_API void weir_mpsc_destroy(weir_mpsc *mpsc);

/*
 * Any thread. WEIR_OK: the value, any of 64 bits, is in. WEIR_WOULD_BLOCK: the queue held `capacity` values. WEIR_CANCELLED:
 * closed. WEIR_INVALID_ARGUMENT: mpsc NULL. Linearizes at the successful CAS on the slot, or at the load that found it full.
 * @since 0.1
 */
WEIR_API enum weir_status weir_mpsc_try_enqueue(weir_mpsc *mpsc, uint64_t value);
/*
 * The consumer. WEIR_OK: *value is the oldest value, which is out. WEIR_WOULD_BLOCK: empty. WEIR_OUT_OF_RANGE: closed and empty
 * for ever. WEIR_INVALID_ARGUMENT: a NULL argument. *value is untouched unless WEIR_OK. @since 0.1
 */
WEIR_API enum weir_status weir_mpsc_try_dequeue(weir_mpsc *mpsc, uint64_t *value);
/*
 * As many of values[0 .. count-1] as go in, in order; *done says how many. WEIR_OK when at least one did (or count is 0), else
 * the status of weir_mpsc_try_enqueue. Each value is one linearizable enqueue; other threads' may fall between. @since 0.1
 */
WEIR_API enum weir_status weir_mpsc_try_enqueue_many(weir_mpsc *mpsc, const uint64_t values[], size_t count,
                                                     size_t *done);
/* The consumer. Up to `count` values; *done says how many. Statuses as above, with those of weir_mpsc_try_dequeue. @since 0.1 */
WEIR_API enum weir_status weir_mpsc_try_dequeue_many(weir_mpsc *mpsc, uint64_t values[], size_t count, size_t *done);

/* As weir_ring_close(): later enqueues are refused; what is inside stays to be dequeued. Idempotent. Accepts NULL. @since 0.1 */
WEIR_API void weir_mpsc_close(weir_mpsc *mpsc);
/* 1 after weir_mpsc_close, else 0. @since 0.1 */
WEIR_API int weir_mpsc_closed(const weir_mpsc *mpsc);

/* As it was made; 0 for NULL. @since 0.1 */
WEIR_API size_t weir_mpsc_capacity(const weir_mpsc *mpsc);
/* The number of values at some moment during the call if nobody is using the queue, else near it; 0 .. capacity. @since 0.1 */
WEIR_API size_t weir_mpsc_size_approx(const weir_mpsc *mpsc);

WEIR_END_DECLS

#endif
