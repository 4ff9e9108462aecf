/*
 * ring.h - bounded lock-free FIFO of 64-bit values for any number of producers and consumers.
 *
 * Use it to hand values between threads when a stalled thread must never delay another. A ring
 * never waits: "full" and "empty" are statuses. If threads should sleep until there is room or an
 * item, use weir/queue.h, which adds waiting to this ring. For exactly one producer and one
 * consumer, use weir/spsc.h. Where the call of a function counts, use weir/ring_port.h.
 *
 * | call                        | threads   | progress      | blocks on | allocates | signal-safe |
 * |-----------------------------|-----------|---------------|-----------|-----------|-------------|
 * | weir_ring_create            | one       | allocator     | allocator | yes       | no          |
 * | weir_ring_memsize, _init    | one       | wait-free     | nothing   | no        | yes         |
 * | weir_ring_destroy           | one, last | allocator     | allocator | no        | no          |
 * | weir_ring_try_enqueue[_many] | any      | lock-free (1) | nothing   | no        | yes         |
 * | weir_ring_try_dequeue[_many] | any      | lock-free     | nothing   | no        | yes         |
 * | weir_ring_close             | any       | wait-free     | nothing   | no        | yes         |
 * | weir_ring_closed, _size_approx | any    | wait-free     | nothing   | no        | yes         |
 * | weir_ring_capacity, _format | any       | wait-free     | nothing   | no        | yes         |
 *
 * (1) In the LTQ64 format an enqueue waits while 64 threads are stalled inside enqueues of the same
 *     ring. The other formats have no such limit.
 *
 * Formats. LTQ16 and LTQ64 are the same ring in two forms: LTQ64 does without a 16-byte
 * compare-and-swap. SPAN16 is a ring of its own for batches. A batch of up to 256 values goes in by
 * one compare-and-swap (and an exchange on a line that is mostly the thread's own), and comes out by
 * one, where the others need one for each value; the values of a batch of up to 256 become visible
 * together. Single values are as fast on one thread, and slower between threads at full speed. It
 * needs the same machine as LTQ16, and about 100 bytes for each value of the capacity, and up to 40
 * KiB, instead of 16 bytes.
 *
 * Contention. A call that another call has overtaken pauses before it tries again: 32 pauses of the
 * processor (about 0.7 us on x86-64), and up to 16 times as long if it is overtaken again. Without
 * that, threads that want the same slot take its cache line from each other all the time
 * (docs/profiling.md). The pause ends whatever other threads do, and a call that nobody overtakes
 * makes none. On x86-64 a call of one value that finds the ring empty, or full,
 * pauses once for 64 pauses and looks again, if the same happened within the 2 to 4 us before and
 * there was progress between: each side would otherwise wait for the line of the other at each
 * item. If the pause changes nothing, there is no other one for 60 us or more.
 * Such a call reads the time stamp counter: a thread that may not (strict seccomp, PR_TSC_SIGSEGV) uses
 * a _many call.
 *
 * Ordering. What a thread wrote before it enqueued a value is visible to the thread that dequeues
 * the value. What a thread wrote before it closed the ring is visible to every thread that finds
 * the ring closed. All calls are linearizable in C11, and so are the answers "full" and "empty".
 * A close does not take effect at a single instant: see weir_ring_close().
 *
 * Source: LTQ, the lazy-index ticket ring; lib/weir/ring/algorithm.h describes and proves it, and
 * compares it with NBLFQ (Denis and Goedefroit, IPDPS 2025), its closest published relative.
 */
#ifndef WEIR_RING_H
#define WEIR_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/alloc.h>
#include <weir/status.h>

WEIR_BEGIN_DECLS

typedef struct weir_ring weir_ring;

enum weir_ring_format {
	WEIR_RING_FORMAT_BEST = 0,  /* LTQ16 if the machine has a lock-free 16-byte CAS, else LTQ64 */
	WEIR_RING_FORMAT_LTQ16 = 1, /* 16-byte slots: one CAS16 to enqueue, one CAS64 to dequeue */
	WEIR_RING_FORMAT_LTQ64 = 2, /* single-width C11 atomics only; slots refer to cells */
	WEIR_RING_FORMAT_SPAN16 = 3 /* for batches: one publication for all values of a batch */
};

enum weir_ring_limits {
	WEIR_RING_MAX_CAPACITY = 1073741824, /* 2^30 */
	WEIR_RING_ALIGNMENT = 128
};

struct weir_ring_options {
	size_t struct_size;              /* WEIR_RING_OPTIONS_INIT sets it */
	enum weir_ring_format format;    /* 0: best */
	uint32_t flags;                  /* must be 0 */
	const weir_allocator *allocator; /* NULL: the default allocator */
};
#define WEIR_RING_OPTIONS_INIT WEIR_STRUCT_SIZE(struct weir_ring_options)

/*
 * Creates a ring that holds exactly `capacity` values, 1 .. WEIR_RING_MAX_CAPACITY. Powers of two
 * are the fastest. options may be NULL, and error may be NULL, here and everywhere.
 *
 * Errors: WEIR_INVALID_ARGUMENT if out is NULL, the capacity is out of bounds, the format or a flag
 * is unknown, or struct_size is wrong. WEIR_UNIMPLEMENTED if the options ask for LTQ16 or SPAN16 and
 * the machine has no lock-free 16-byte compare-and-swap. WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_ring_create(size_t capacity, const struct weir_ring_options *options,
                                           weir_ring **out, weir_error *error);

/*
 * weir_ring_init() creates a ring in memory of the caller. The memory must be aligned to
 * WEIR_RING_ALIGNMENT, hold at least weir_ring_memsize() bytes, and contain nothing else. It is in
 * use until weir_ring_destroy(), which does not free it. options->allocator is ignored. The ring
 * contains addresses, so it works in one address space only.
 *
 * weir_ring_memsize() returns 0 for arguments that weir_ring_create() would refuse.
 *
 * Errors of weir_ring_init(): those of weir_ring_create(), and WEIR_INVALID_ARGUMENT if the memory
 * is NULL, too small or misaligned.
 * @since 0.1
 */
WEIR_API size_t weir_ring_memsize(size_t capacity, const struct weir_ring_options *options);
WEIR_API enum weir_status weir_ring_init(void *memory, size_t size, size_t capacity,
                                         const struct weir_ring_options *options, weir_ring **out,
                                         weir_error *error);

/*
 * Destroys the ring and drops the values in it. No other thread may use the ring. Accepts NULL.
 * Never fails.
 * @since 0.1
 */
WEIR_API enum weir_status weir_ring_destroy(weir_ring *ring, weir_error *error);

/*
 * Enqueues `value`, which may be any 64 bits.
 *
 * Errors: WEIR_WOULD_BLOCK if the ring held `capacity` values, WEIR_CANCELLED if it is closed,
 * WEIR_INVALID_ARGUMENT if ring is NULL. Linearizes at the successful CAS of the slot, or at the
 * load that found the slot full.
 * @since 0.1
 */
WEIR_API enum weir_status weir_ring_try_enqueue(weir_ring *ring, uint64_t value);

/*
 * Dequeues the oldest value into *value.
 *
 * Errors: WEIR_WOULD_BLOCK if the ring is empty, WEIR_OUT_OF_RANGE if it is drained,
 * WEIR_INVALID_ARGUMENT if an argument is NULL. On an error *value is untouched.
 * @since 0.1
 */
WEIR_API enum weir_status weir_ring_try_dequeue(weir_ring *ring, uint64_t *value);

/*
 * Enqueues as many of values[0 .. count-1] as fit, in order, and stores their number in *done.
 * Returns WEIR_OK if at least one was enqueued or count is 0, else the status of
 * weir_ring_try_enqueue(). Each value is one linearizable enqueue; enqueues of other threads may
 * come between them (in the SPAN16 format: only behind each 256th, or where the ring was full, or
 * while 8 threads are inside this call).
 * @since 0.1
 */
WEIR_API enum weir_status weir_ring_try_enqueue_many(weir_ring *ring, const uint64_t values[],
                                                     size_t count, size_t *done);

/*
 * Dequeues up to `count` values into values[] and stores their number in *done. Returns WEIR_OK if
 * at least one was dequeued or count is 0, else the status of weir_ring_try_dequeue(). All of
 * values[] may be overwritten.
 * @since 0.1
 */
WEIR_API enum weir_status weir_ring_try_dequeue_many(weir_ring *ring, uint64_t values[],
                                                     size_t count, size_t *done);

/*
 * Closes the ring. An enqueue that starts afterwards fails; one that is under way succeeds or finds
 * the ring closed. The stored values can still be dequeued. After a dequeue has returned
 * WEIR_OUT_OF_RANGE, no enqueue ever succeeds again. Idempotent.
 * @since 0.1
 */
WEIR_API void weir_ring_close(weir_ring *ring);
/* Returns true after weir_ring_close(), else false. @since 0.1 */
WEIR_API bool weir_ring_closed(const weir_ring *ring);

/* The capacity that the ring was created with; 0 for NULL. @since 0.1 */
WEIR_API size_t weir_ring_capacity(const weir_ring *ring);

/*
 * The number of stored values, 0 .. capacity. Exact while no other thread uses the ring, else
 * approximate.
 * @since 0.1
 */
WEIR_API size_t weir_ring_size_approx(const weir_ring *ring);
/* The format in use, never WEIR_RING_FORMAT_BEST. @since 0.1 */
WEIR_API enum weir_ring_format weir_ring_format(const weir_ring *ring);

WEIR_END_DECLS

#endif
