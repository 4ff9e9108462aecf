/*
 * ring_list.h - unbounded lock-free FIFO of 64-bit values for any number of producers and consumers.
 *
 * Use it where a producer must not be refused and memory may follow the backlog. A bound is usually wiser: weir/ring.h says
 * "full", and weir/queue.h waits for room. Values sit in rings of a fixed size, linked one behind the other; a ring that has
 * been emptied is given back, so memory follows the backlog down, too.
 *
 * | call                               | threads   | progress              | blocks on | allocates          | signal-safe |
 * |------------------------------------|-----------|-----------------------|-----------|--------------------|-------------|
 * | weir_ring_list_create              | one       | allocator             | allocator | yes                | no          |
 * | weir_ring_list_destroy             | one, last | allocator             | allocator | no                 | no          |
 * | weir_ring_list_enqueue[_many]      | any       | lock-free + allocator | allocator | a ring, when full  | no          |
 * | weir_ring_list_try_dequeue[_many]  | any       | lock-free + allocator | allocator | at a thread's first use of Weir | no |
 * | weir_ring_list_close               | any       | lock-free             | nothing   | at a thread's first use of Weir | no |
 * | weir_ring_list_closed, _size_approx | any      | wait-free             | nothing   | at a thread's first use of Weir | no |
 *
 * A thread that is stopped anywhere stops no other one. It keeps the memory of the rings that existed then, if it was stopped
 * inside a call (docs/memory.md); later ones are freed as ever.
 *
 * Ordering: what a thread wrote before enqueueing a value is visible to the thread that dequeues it. Linearizable; the argument
 * heads lib/ring/ring_list.c. Sources: linking rings that can be closed is LCRQ's idea (Morrison, Afek, PPoPP 2013), the list
 * is Michael and Scott's (PODC 1996), the rings are weir/ring.h.
 */
#ifndef WEIR_RING_LIST_H
#define WEIR_RING_LIST_H

#include <stddef.h>
#include <stdint.h>
#include <weir/alloc.h>
#include <weir/ring.h>
#include <weir/status.h>

WEIR_BEGIN_DECLS

typedef struct weir_ring_list weir_ring_list;

enum { WEIR_RING_LIST_DEFAULT_SEGMENT = 1024 };

struct weir_ring_list_options {
	size_t struct_size;           /* sizeof(struct weir_ring_list_options) */
	enum weir_ring_format format; /* of the rings; 0: best */
	uint32_t flags;               /* must be 0 */
	size_t segment; /* values in one ring, 1 .. WEIR_RING_MAX_CAPACITY; 0: WEIR_RING_LIST_DEFAULT_SEGMENT */
	const weir_allocator
		*allocator; /* NULL: the default one. Its memory may come back after the list is destroyed: weir/reclaim.h */
};

/*
 * An empty list. options may be NULL. WEIR_INVALID_ARGUMENT (out NULL, segment out of bounds, unknown format or flag, bad
 * struct_size), WEIR_UNIMPLEMENTED (LTQ16 on a machine without it), WEIR_RESOURCE_EXHAUSTED. @since 0.1
 */
WEIR_API enum weir_status weir_ring_list_create(const struct weir_ring_list_options *options, weir_ring_list **out);
/* Values left inside are dropped. No other thread may be using the list. Accepts NULL. @since 0.1 */
WEIR_API void weir_ring_list_destroy(weir_ring_list *list);

/*
 * WEIR_OK: the value, any of 64 bits, is in. WEIR_CANCELLED: closed. WEIR_RESOURCE_EXHAUSTED: no memory for another ring, or
 * for this thread's record; the list is as it was. WEIR_INVALID_ARGUMENT: list NULL. @since 0.1
 */
WEIR_API enum weir_status weir_ring_list_enqueue(weir_ring_list *list, uint64_t value);
/*
 * WEIR_OK: *value is the oldest value, which is out. WEIR_WOULD_BLOCK: empty. WEIR_OUT_OF_RANGE: closed and empty for ever.
 * WEIR_RESOURCE_EXHAUSTED: no memory for this thread's record. WEIR_INVALID_ARGUMENT: a NULL argument. *value is untouched unless
 * WEIR_OK. @since 0.1
 */
WEIR_API enum weir_status weir_ring_list_try_dequeue(weir_ring_list *list, uint64_t *value);

/*
 * All of values[0 .. count-1], in order, or, when the status is not WEIR_OK, the first *done of them. Each value is one
 * linearizable enqueue; other threads' may fall between. Statuses as above. @since 0.1
 */
WEIR_API enum weir_status weir_ring_list_enqueue_many(weir_ring_list *list, const uint64_t values[], size_t count,
                                                      size_t *done);
/*
 * Up to `count` values into values[]; *done says how many. WEIR_OK when at least one came or count is 0, else the status of
 * weir_ring_list_try_dequeue. @since 0.1
 */
WEIR_API enum weir_status weir_ring_list_try_dequeue_many(weir_ring_list *list, uint64_t values[], size_t count,
                                                          size_t *done);

/*
 * No enqueue that starts afterwards succeeds; one that is under way succeeds or finds the list closed. What is inside stays to be
 * dequeued. Once a dequeue has answered WEIR_OUT_OF_RANGE no enqueue ever succeeds again. Idempotent. WEIR_RESOURCE_EXHAUSTED: no
 * memory for this thread's record, and nothing was done. WEIR_INVALID_ARGUMENT: NULL. @since 0.1
 */
WEIR_API enum weir_status weir_ring_list_close(weir_ring_list *list);
/* 1 after weir_ring_list_close, else 0 (also for NULL). @since 0.1 */
WEIR_API int weir_ring_list_closed(const weir_ring_list *list);

/* The number of values if nobody is using the list, else near it. 0 for NULL, and without memory for a record. @since 0.1 */
WEIR_API size_t weir_ring_list_size_approx(const weir_ring_list *list);

WEIR_END_DECLS

#endif
