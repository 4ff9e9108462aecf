/*
 * spsc.h - bounded wait-free FIFO of 64-bit values for one producer and one consumer.
 *
 * Use it between exactly two threads: each operation is a few plain instructions. With a second producer or consumer, even now
 * and then, use weir/ring.h: here two producers (or two consumers) at a time lose values silently.
 *
 * | call                         | threads      | progress  | blocks on | allocates | signal-safe |
 * |------------------------------|--------------|-----------|-----------|-----------|-------------|
 * | weir_spsc_create             | any          | allocator | allocator | yes       | no          |
 * | weir_spsc_destroy            | one, last    | allocator | allocator | no        | no          |
 * | weir_spsc_try_enqueue[_many] | the producer | wait-free | nothing   | no        | no          |
 * | weir_spsc_try_dequeue[_many] | the consumer | wait-free | nothing   | no        | no          |
 * | weir_spsc_size_approx, _capacity | any      | wait-free | nothing   | no        | yes         |
 *
 * Ordering: what the producer wrote before enqueueing a value is visible to the consumer that dequeues it. Linearizable, "full"
 * and "empty" included, where "before" is what C11's happens-before says; by the clock either may be answered for the
 * nanoseconds that the other side's store takes to leave its processor. Before "full" ("empty") is said a fence is run, if
 * anything was put (taken) since the last one; a batch of which a part went through says neither. "The producer" may
 * change from one thread to another if the change itself orders them. Source: ck_ring of Concurrency Kit.
 */
#ifndef WEIR_SPSC_H
#define WEIR_SPSC_H

#include <stddef.h>
#include <stdint.h>
#include <weir/alloc.h>
#include <weir/status.h>

WEIR_BEGIN_DECLS

typedef struct weir_spsc weir_spsc;

enum { WEIR_SPSC_MAX_CAPACITY = 1 << 30 };

struct weir_spsc_options {
	size_t struct_size;              /* sizeof(struct weir_spsc_options) */
	uint32_t flags;                  /* must be 0 */
	const weir_allocator *allocator; /* NULL: the default one */
};

/*
 * Holds exactly `capacity` values, 1 .. WEIR_SPSC_MAX_CAPACITY. options may be NULL. WEIR_INVALID_ARGUMENT (out NULL, capacity
 * out of bounds, unknown flag, bad struct_size), WEIR_RESOURCE_EXHAUSTED. @since 0.1
 */
WEIR_API enum weir_status weir_spsc_create(size_t capacity, const struct weir_spsc_options *options, weir_spsc **out);
/* Values left inside are dropped. No other thread may be using it. Accepts NULL. @since 0.1 */
WEIR_API void weir_spsc_destroy(weir_spsc *spsc);

/* Producer. WEIR_OK, WEIR_WOULD_BLOCK (it held `capacity` values), WEIR_INVALID_ARGUMENT (NULL). @since 0.1 */
WEIR_API enum weir_status weir_spsc_try_enqueue(weir_spsc *spsc, uint64_t value);
/* Consumer. WEIR_OK, WEIR_WOULD_BLOCK (empty; *value untouched), WEIR_INVALID_ARGUMENT (NULL). @since 0.1 */
WEIR_API enum weir_status weir_spsc_try_dequeue(weir_spsc *spsc, uint64_t *value);
/*
 * As many of values[0 .. count-1] as go in, in order; *done says how many. WEIR_OK when at least one did or count is 0. @since
 * 0.1
 */
WEIR_API enum weir_status weir_spsc_try_enqueue_many(weir_spsc *spsc, const uint64_t values[], size_t count,
                                                     size_t *done);
/* Up to `count` values; *done says how many. WEIR_OK when at least one came or count is 0. @since 0.1 */
WEIR_API enum weir_status weir_spsc_try_dequeue_many(weir_spsc *spsc, uint64_t values[], size_t count, size_t *done);

/* The number of values at some moment during the call, as the producer or the consumer sees it. @since 0.1 */
WEIR_API size_t weir_spsc_size_approx(const weir_spsc *spsc);
/* As it was made; 0 for NULL. @since 0.1 */
WEIR_API size_t weir_spsc_capacity(const weir_spsc *spsc);

WEIR_END_DECLS

#endif
