/*
 * spsc.h - bounded wait-free FIFO of 64-bit values for one producer and one consumer.
 *
 * Use it between exactly two threads: each operation is a few plain instructions, and a batch is
 * one copy and one store. With a second producer or consumer, even occasionally, use weir/ring.h:
 * two producers (or two consumers) at a time lose values silently.
 *
 * | call                         | threads      | progress  | blocks on | allocates | signal-safe |
 * |------------------------------|--------------|-----------|-----------|-----------|-------------|
 * | weir_spsc_create             | any          | allocator | allocator | yes       | no          |
 * | weir_spsc_destroy            | one, last    | allocator | allocator | no        | no          |
 * | weir_spsc_try_enqueue[_many] | the producer | wait-free | nothing   | no        | no          |
 * | weir_spsc_try_dequeue[_many] | the consumer | wait-free | nothing   | no        | no          |
 * | weir_spsc_size_approx, _capacity | any      | wait-free | nothing   | no        | yes         |
 *
 * Ordering. What the producer wrote before it enqueued a value is visible to the consumer that
 * dequeues it. All calls are linearizable, "full" and "empty" included, with respect to the
 * happens-before relation of C11. With respect to real time, "full" or "empty" may be returned for
 * the nanoseconds that a store of the other thread takes to leave its processor. A call runs a
 * fence before it returns "full" ("empty"), if anything was enqueued (dequeued) since the last one.
 * A batch call that moved at least one value returns neither. The order is one of the calls of one
 * queue. Calls of two queues have no common order: if each of two threads enqueues in the queue of
 * the other, both may find their own queue empty then.
 *
 * Contention. On x86-64 a call of one value that would return "full" ("empty") pauses once, for 128 pauses of the
 * processor (3 us), and looks again, if the same happened within the 2 to 4 us before and the other thread
 * has moved values since. Otherwise two threads in step would exchange the lines of the queue for each
 * value. If the pause changes nothing, there is no other one for 60 us or more.
 * Such a call reads the time stamp counter: a thread that may not (strict seccomp, PR_TSC_SIGSEGV) uses
 * the _many calls.
 *
 * The role of producer may move to another thread if the handover itself synchronizes the two; so
 * may the role of consumer.
 *
 * Source: Lamport's ring of two indices (TOPLAS 1983), with copies of the index of the other side
 * as in MCRingBuffer (Lee, Bu, Chandranmenon, IPDPS 2010); lib/weir/ring/spsc.c describes and
 * proves it.
 */
#ifndef WEIR_SPSC_H
#define WEIR_SPSC_H

#include <stddef.h>
#include <stdint.h>
#include <weir/alloc.h>
#include <weir/status.h>

WEIR_BEGIN_DECLS

typedef struct weir_spsc weir_spsc;

enum weir_spsc_limits { WEIR_SPSC_MAX_CAPACITY = 1073741824 /* 2^30 */ };

struct weir_spsc_options {
	size_t struct_size;              /* WEIR_SPSC_OPTIONS_INIT sets it */
	uint32_t flags;                  /* must be 0 */
	const weir_allocator *allocator; /* NULL: the default allocator */
};
#define WEIR_SPSC_OPTIONS_INIT WEIR_STRUCT_SIZE(struct weir_spsc_options)

/*
 * Creates a queue that holds exactly `capacity` values, 1 .. WEIR_SPSC_MAX_CAPACITY. options may be
 * NULL.
 *
 * Errors: WEIR_INVALID_ARGUMENT if out is NULL, the capacity is out of bounds, a flag is unknown,
 * or struct_size is wrong. WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_spsc_create(size_t capacity, const struct weir_spsc_options *options,
                                           weir_spsc **out, weir_error *error);

/*
 * Destroys the queue and drops the values in it. No other thread may use it. Accepts NULL. Never
 * fails.
 * @since 0.1
 */
WEIR_API enum weir_status weir_spsc_destroy(weir_spsc *spsc, weir_error *error);

/*
 * Producer: enqueues `value`. Errors: WEIR_WOULD_BLOCK if the queue held `capacity` values,
 * WEIR_INVALID_ARGUMENT (NULL).
 * @since 0.1
 */
WEIR_API enum weir_status weir_spsc_try_enqueue(weir_spsc *spsc, uint64_t value);

/*
 * Consumer: dequeues the oldest value into *value. Errors: WEIR_WOULD_BLOCK if the queue is empty,
 * WEIR_INVALID_ARGUMENT (NULL). On an error *value is untouched.
 * @since 0.1
 */
WEIR_API enum weir_status weir_spsc_try_dequeue(weir_spsc *spsc, uint64_t *value);

/*
 * Producer: enqueues as many of values[0 .. count-1] as fit, in order, and stores their number in
 * *done. Returns WEIR_OK if at least one was enqueued or count is 0.
 * @since 0.1
 */
WEIR_API enum weir_status weir_spsc_try_enqueue_many(weir_spsc *spsc, const uint64_t values[],
                                                     size_t count, size_t *done);

/*
 * Consumer: dequeues up to `count` values and stores their number in *done. Returns WEIR_OK if at
 * least one was dequeued or count is 0.
 * @since 0.1
 */
WEIR_API enum weir_status weir_spsc_try_dequeue_many(weir_spsc *spsc, uint64_t values[],
                                                     size_t count, size_t *done);

/*
 * The number of stored values, 0 .. capacity, for any thread. Exact while no other thread uses the
 * queue, else approximate.
 * @since 0.1
 */
WEIR_API size_t weir_spsc_size_approx(const weir_spsc *spsc);
/* The capacity that the queue was created with; 0 for NULL. @since 0.1 */
WEIR_API size_t weir_spsc_capacity(const weir_spsc *spsc);

WEIR_END_DECLS

#endif
