/*
 * queue.h - the parts of a queue and how they look at each other.
 *
 *   store.c     what is inside: ring or bag, what batches put back, and when the end is reached
 *   bag.c       stores that are no ring: shuffled, and by priority
 *   op.c        an operation that may wait: one state machine for blocking and asynchronous calls
 *   pump.c      letting the operations that wait go on
 *   select.c    one operation of several, on different queues
 *   readiness.c file descriptors that say whether a call would wait
 *   calls.c     the public calls that move items
 *   queue.c     creating, destroying, closing
 *   stats.c     what was counted
 *   announce.c  which threads feed it and drain it
 *   registry.c  all queues that there are
 *   dump.c      what can be said of all of them
 */
#ifndef WEIRI_QUEUE_QUEUE_H
#define WEIRI_QUEUE_QUEUE_H

#include <weir/queue.h>

#include "queue/bag.h"
#include "queue/putback.h"
#include "queue/shuffle.h"
#include "queue/tally.h"
#include "ring/priority_queue.h"
#include "ring/ring.h"
#include "sync/waiters.h"

/*
 * The gate: closed, and how many enqueues wait that were admitted before that. Once CLOSED the count only falls. The store is closed before
 * the gate, so that nobody sees "closed" and then an enqueue that begins later succeed.
 */
#define WEIRI_GATE_CLOSED (UINT64_C(1) << 63)
#define WEIRI_GATE_CANCEL (UINT64_C(1) << 62)
#define WEIRI_GATE_PENDING (WEIRI_GATE_CANCEL - 1)

struct weiri_readiness;
struct weiri_registered;

/* flags, beside the public ones: its one item is the right to be inside of a critical section (run/critical_section.c). */
enum { WEIRI_QUEUE_OF_SECTION = 1 << 30 };

struct weir_queue {
	/* Constant. */
	enum weir_queue_order order;
	uint32_t flags;
	size_t capacity;
	uint64_t seed;
	size_t level_mask; /* of the high-water mark: a sample when the number of an item has none of these bits */
	weir_ring *ring;   /* FIFO */
	const struct weiri_bag *bag;   /* NULL: FIFO */
	struct weiri_shuffle *shuffle; /* shuffle */
	weir_priority_queue *priority; /* priority, as the next two */
	weir_queue_key_fn *key;
	void *key_context;
	char *name;
	size_t name_size;
	weir_queue_drop_fn *drop;
	void *drop_context;
	weir_allocator allocator;
	struct weiri_registered *registered; /* NULL: not yet */

	/* Read by every call, written by those that wait, put back or close. */
	WEIRI_ALIGNED_APART struct weiri_waiters producers;
	struct weiri_waiters consumers;
	struct weiri_list announced; /* threads that feed or drain it: announce.h */
	struct weiri_putback putback;
	_Atomic(uint64_t) gate;
	_Atomic(uint64_t) turn;  /* odd: a batch collects; + 1 at each change */
	_Atomic(size_t) waiting; /* operations on the lists */
	/* Of the descriptors, the newest; NULL: nobody asked for one. */
	_Atomic(struct weiri_readiness *) readable;
	_Atomic(struct weiri_readiness *) writable;
	_Atomic(uint32_t) cause_taken; /* the first closer that gave one */
	_Atomic(uint32_t) cause_ready;
	weir_error cause;

	/* Written by calls that wait, or let others go on; and now and then by enqueues. */
	WEIRI_ALIGNED_APART struct weiri_tally tally;
	_Atomic(uint32_t) occupant; /* of a critical section: the thread that is inside; 0: no one in particular */
};

/* -- store.c ------------------------------------------------------------------------------------------------------------------ */

/* The item's, of a queue that has keys. It runs user code: not in a section. */
static inline int64_t weiri_queue_key(const weir_queue *queue, void *item)
{
	return queue->key != NULL ? queue->key(queue->key_context, item) : 0;
}

/*
 * Puts up to count items; returns how many. *status: WEIR_OK, else why it stopped: WEIR_WOULD_BLOCK (full), WEIR_CANCELLED (closed and
 * not admitted). keys: theirs, which who is in a section has asked for before; NULL: are asked for.
 */
size_t weiri_queue_put(weir_queue *queue, void *const items[], const int64_t keys[], size_t count, int admitted,
                       enum weir_status *status);
/*
 * Takes up to count items; returns how many. *status: WEIR_OK, else why it stopped: WEIR_WOULD_BLOCK (nothing may leave now),
 * WEIR_OUT_OF_RANGE (nothing will ever come). holds_turn: the caller is the batch that collects. What was unlinked is retired with
 * `scope`, which need not be entered: see weiri_queue_unentered().
 */
size_t weiri_queue_take(struct weiri_scope *scope, weir_queue *queue, uint64_t items[], size_t count, int holds_turn,
                        enum weir_status *status);
/* The same; keys, if not NULL, get what the items went in with, of a queue that has keys. */
size_t weiri_queue_take_with_keys(struct weiri_scope *scope, weir_queue *queue, uint64_t items[], int64_t keys[],
                                  size_t count, int holds_turn, enum weir_status *status);
/* Puts a batch, of which keys are not at hand, in the order in which it leaves: by key, for queues that have one. Not in a section. */
void weiri_queue_sort_batch(const weir_queue *queue, struct weiri_segment *segment, size_t count);
/* Items inside, put back ones included. */
size_t weiri_queue_size(const weir_queue *queue);
/* How many items went into the store and came out of it: `out` was right at an earlier moment than `in`. */
struct weiri_ring_counts weiri_queue_counts(const weir_queue *queue);
int weiri_queue_turn_take(weir_queue *queue);
/* 1 while a batch collects. */
int weiri_queue_turn_held(const weir_queue *queue);
void weiri_queue_turn_give(weir_queue *queue);
/*
 * 1 when, at some moment of the call, a dequeue (an enqueue) would not have waited: an item, room, or an end to tell of. Every change
 * of the answer is followed by weiri_queue_settle() on the thread that made it.
 */
int weiri_queue_can_give(struct weiri_record *record, weir_queue *queue);
int weiri_queue_can_take_in(const weir_queue *queue);
/* 1 once closed: what closed() says, and what every enqueue that begins afterwards meets. */
int weiri_queue_store_closed(const weir_queue *queue);
/* "...: <cause>" of the close into text. */
void weiri_queue_cause(const weir_queue *queue, char *text, size_t size);
/* Fills *error (may be NULL) for an enqueue (WEIR_CANCELLED) or dequeue (WEIR_OUT_OF_RANGE) that the close ended; returns status. */
enum weir_status weiri_queue_fail_closed(const weir_queue *queue, enum weir_status status, size_t count, size_t done,
                                         weir_error *error);
/* The same for a call on the queue (verb) that a token ended, fired with `cause`. */
enum weir_status weiri_queue_fail_cancelled(const weir_queue *queue, const char *verb, const weir_error *cause,
                                            weir_error *error);

/* -- stats.c ------------------------------------------------------------------------------------------------------------------ */

/* Samples how full it is, for the high-water mark. */
void weiri_queue_note_level(weir_queue *queue);
/* An enqueue found no room. */
void weiri_queue_note_full(weir_queue *queue);
/* All of it. */
void weiri_queue_read_stats(weir_queue *queue, struct weir_queue_stats *stats);

/* After `count` items went in; of a queue with a ring. */
static WEIRI_ALWAYS_INLINE void weiri_queue_count_in_ring(weir_queue *queue, size_t count)
{
#if !defined(WEIRI_UNDER_MODEL) /* stress/model: see tally.h */
	if (WEIRI_UNLIKELY(weiri_ring_passed(queue->ring, queue->level_mask, count)))
		weiri_queue_note_level(queue);
#else
	(void)queue, (void)count;
#endif
}

/* Of any queue. */
void weiri_queue_count_in(weir_queue *queue, size_t count);

/* -- queue.c ------------------------------------------------------------------------------------------------------------------ */

/* As weir_queue_create(), with options that make sense. */
enum weir_status weiri_queue_create(const struct weir_queue_options *options, weir_queue **out, weir_error *error);
/* Of a queue that nobody uses or finds any more; not in a section. */
void weiri_queue_free(weir_queue *queue);

/* -- pump.c ------------------------------------------------------------------------------------------------------------------- */

/* Lets operations that wait go on until none can. Runs completions. Not in a section. */
void weiri_queue_pump(struct weiri_record *record, weir_queue *queue);

/* -- readiness.c -------------------------------------------------------------------------------------------------------------- */

/* After the store changed: makes the descriptors, if there are any, agree with it. Not in a section. */
void weiri_queue_settle(struct weiri_record *record, weir_queue *queue);
/* Closes them; with the queue. */
void weiri_queue_put_out(weir_queue *queue);

/* A scope for a caller outside of sections, who rarely needs one. */
static inline struct weiri_scope weiri_queue_unentered(struct weiri_record *record)
{
	return (struct weiri_scope){record, 0, NULL};
}

/* Retires what such a scope has gathered. */
static inline void weiri_queue_retire_gathered(struct weiri_scope *scope)
{
	if (WEIRI_UNLIKELY(scope->garbage != NULL))
		weiri_scope_leave(scope);
}

/* Room for a batch; NULL: no memory. */
static inline struct weiri_segment *weiri_queue_segment(const weir_queue *queue, size_t room)
{
	return weiri_segment_create(room, queue->key != NULL ? WEIRI_SEGMENT_KEYED : WEIRI_SEGMENT_PLAIN,
	                            &queue->allocator);
}

static inline void *weiri_item_pointer(uint64_t item)
{
	return (void *)(uintptr_t)item;
}

static inline uint64_t weiri_item_bits(void *item)
{
	return (uint64_t)(uintptr_t)item;
}

#endif
