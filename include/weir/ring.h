/*
 * ring.h - bounded lock-free FIFO of 64-bit values for any number of producers and consumers.
 *
 * Use it to hand values between threads when nobody may ever wait for a stopped thread. It never waits: a full or empty ring
 * is a status. When threads should sleep until there is room or an item, use weir/queue.h, which is this ring with waiting on
 * top; for exactly one producer and one consumer use weir/spsc.h.
 *
 * | call                          | threads | progress  | blocks on | allocates | signal-safe |
 * |-------------------------------|---------|-----------|-----------|-----------|-------------|
 * | weir_ring_create              | one     | allocator | allocator | yes       | no          |
 * | weir_ring_memsize, _init      | one     | wait-free | nothing   | no        | yes         |
 * | weir_ring_destroy             | one, last | allocator | allocator | no      | no          |
 * | weir_ring_try_enqueue[_many]  | any     | lock-free | nothing   | no        | yes         |
 * | weir_ring_try_dequeue[_many]  | any     | lock-free | nothing   | no        | yes         |
 * | weir_ring_close               | any     | wait-free | nothing   | no        | yes         |
 * | weir_ring_closed, _size_approx, _capacity, _format | any | wait-free | nothing | no | yes  |
 *
 * In the LTQ64 format an enqueue waits while 64 threads are stopped inside enqueues of the same ring; LTQ16 has no such limit.
 *
 * Ordering: what a thread wrote before enqueueing a value is visible to the thread that dequeues it, and what it wrote before
 * closing to whoever is told that the ring is closed. Linearizable in C11, "full" and "empty" included; the algorithm (LTQ,
 * ours) and its argument head lib/ring/walk.h. Closing is no single moment: see weir_ring_close().
 */
#ifndef WEIR_RING_H
#define WEIR_RING_H

#include <stddef.h>
#include <stdint.h>
#include <weir/alloc.h>
#include <weir/status.h>

WEIR_BEGIN_DECLS

typedef struct weir_ring weir_ring;

enum weir_ring_format {
	WEIR_RING_FORMAT_BEST = 0,  /* LTQ16 where the machine has a lock-free 16-byte CAS, else LTQ64 */
	WEIR_RING_FORMAT_LTQ16 = 1, /* 16-byte slots: one CAS16 to enqueue, one CAS64 to dequeue */
	WEIR_RING_FORMAT_LTQ64 = 2  /* single-width C11 atomics only: slots that name cells */
};

enum { WEIR_RING_MAX_CAPACITY = 1 << 30, WEIR_RING_ALIGNMENT = 128 };

struct weir_ring_options {
	size_t struct_size;              /* sizeof(struct weir_ring_options) */
	enum weir_ring_format format;    /* 0: best */
	uint32_t flags;                  /* must be 0 */
	const weir_allocator *allocator; /* NULL: the default one */
};

/*
 * A ring that holds exactly `capacity` values, 1 .. WEIR_RING_MAX_CAPACITY (powers of two are the fastest).
 * options may be NULL. WEIR_INVALID_ARGUMENT (out NULL, capacity out of bounds, unknown format or flag, bad struct_size),
 * WEIR_UNIMPLEMENTED (LTQ16 on a machine without it), WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_ring_create(size_t capacity, const struct weir_ring_options *options, weir_ring **out);
/*
 * A ring in memory of the caller's: shared with nothing else, WEIR_RING_ALIGNMENT aligned, at least weir_ring_memsize() bytes,
 * in use until the ring is destroyed, which leaves the memory alone. options->allocator is not used. weir_ring_memsize() is 0
 * for what weir_ring_create() would refuse. Statuses of weir_ring_init(): those of weir_ring_create(), and
 * WEIR_INVALID_ARGUMENT for memory that is NULL, too small or not aligned. The ring holds addresses: it works in one address
 * space only. @since 0.1
 */
WEIR_API size_t weir_ring_memsize(size_t capacity, const struct weir_ring_options *options);
WEIR_API enum weir_status weir_ring_init(void *memory, size_t size, size_t capacity,
                                         const struct weir_ring_options *options, weir_ring **out);
/* Values left inside are dropped. No other thread may be using the ring. Accepts NULL. @since 0.1 */
WEIR_API void weir_ring_destroy(weir_ring *ring);

/*
 * WEIR_OK: the value, any of 64 bits, is in. WEIR_WOULD_BLOCK: the ring held `capacity` values. WEIR_CANCELLED: closed.
 * WEIR_INVALID_ARGUMENT: ring NULL. Linearizes at the successful CAS on the slot, or at the load that found it full.
 * @since 0.1
 */
WEIR_API enum weir_status weir_ring_try_enqueue(weir_ring *ring, uint64_t value);
/*
 * WEIR_OK: *value is the oldest value, which is out. WEIR_WOULD_BLOCK: empty. WEIR_OUT_OF_RANGE: closed and empty for ever.
 * WEIR_INVALID_ARGUMENT: a NULL argument. *value is untouched unless WEIR_OK.
 * @since 0.1
 */
WEIR_API enum weir_status weir_ring_try_dequeue(weir_ring *ring, uint64_t *value);

/*
 * As many of values[0 .. count-1] as go in, in order; *done says how many. WEIR_OK when at least one did (or count is 0),
 * else the status of weir_ring_try_enqueue. Each value is one linearizable enqueue; other threads' may fall between.
 * @since 0.1
 */
WEIR_API enum weir_status weir_ring_try_enqueue_many(weir_ring *ring, const uint64_t values[], size_t count,
                                                     size_t *done);
/* Up to `count` values into values[]; *done says how many. Statuses as above, with those of weir_ring_try_dequeue. @since 0.1 */
WEIR_API enum weir_status weir_ring_try_dequeue_many(weir_ring *ring, uint64_t values[], size_t count, size_t *done);

/*
 * No enqueue that starts afterwards succeeds; one that is under way succeeds or finds the ring closed. What is inside stays
 * to be dequeued. Once a dequeue has answered WEIR_OUT_OF_RANGE no enqueue ever succeeds again. Idempotent.
 * @since 0.1
 */
WEIR_API void weir_ring_close(weir_ring *ring);
/* 1 after weir_ring_close, else 0. @since 0.1 */
WEIR_API int weir_ring_closed(const weir_ring *ring);

/* As it was made; 0 for NULL. @since 0.1 */
WEIR_API size_t weir_ring_capacity(const weir_ring *ring);
/* The number of values at some moment during the call if nobody is using the ring, else near it; 0 .. capacity. @since 0.1 */
WEIR_API size_t weir_ring_size_approx(const weir_ring *ring);
/* The format in use, never WEIR_RING_FORMAT_BEST. @since 0.1 */
WEIR_API enum weir_ring_format weir_ring_format(const weir_ring *ring);

WEIR_END_DECLS

#endif
