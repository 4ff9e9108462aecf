/*
 * queue.h - the parts of a queue and their relations.
 *
 *   store.h     the interface of the stores
 *   store_*.c   the stores: ring (FIFO), shuffle, priority; and the right of a critical section
 *   contents.c  what all stores share: items that batches returned, and the end of the queue
 *   operation.c the operations that may wait (sync/pending.h)
 *   pump.c      completing the operations that wait
 *   select.c    an operation that carries out one of several cases on different queues
 *   readiness.c file descriptors that tell whether a call would wait
 *   calls.c     the public calls that move items
 *   queue.c     creating, destroying, closing
 *   stats.c     counters
 *   announce.c  the threads that announced themselves as producers or consumers
 *
 * sync/registry.c lists all existing queues; inspect/dump.c reports on them.
 */
#ifndef WEIRI_QUEUE_QUEUE_H
#define WEIRI_QUEUE_QUEUE_H

#include <weir/priority_queue.h>
#include <weir/queue.h>

#include "base/compiler.h"
#include "queue/putback.h"
#include "queue/store.h"
#include "queue/counters.h"
#include "ring/ring.h"
#include "sync/waiters.h"

/*
 * The admission word: whether the queue is closed, whether the close cancels waiting enqueues, and
 * how many enqueues that were admitted before the close still wait. Once CLOSED is set, this number
 * only falls. A close closes the store before it sets CLOSED. So no enqueue succeeds that begins
 * after a thread has seen "closed".
 */
#define WEIRI_ADMISSION_CLOSED (UINT64_C(1) << 63)
#define WEIRI_ADMISSION_CANCEL (UINT64_C(1) << 62)
#define WEIRI_ADMISSION_PENDING (WEIRI_ADMISSION_CANCEL - 1)

struct weiri_readiness;
struct weiri_registered;
struct weiri_registered_kind;
struct weiri_served;
struct weiri_right;

/* What a walk of the registry needs of queues. */
extern const struct weiri_registered_kind weiri_queue_registered;

struct weir_queue {
	/* Constant. */
	uint32_t flags;
	size_t capacity;
	uint64_t seed;
	size_t min_left;   /* shuffle: items that stay inside while the queue is open */
	size_t level_mask; /* the level is sampled at each item whose number has none of these bits */
	const struct weiri_store_kind *store;
	/* Where the store keeps its items. Only the field for its kind is set; the others are NULL. */
	weir_ring *ring;
	weir_ring *drawn; /* shuffle: a ring of draws (ring/draw.h) */
	weir_priority_queue *priority;
	struct weiri_right *right; /* of a critical section (run/critical_section.c) */
	/* Of queues with keys. */
	weir_queue_key_fn *key;
	void *key_context;
	char *name;
	size_t name_size;
	weir_queue_drop_fn *drop;
	void *drop_context;
	weir_allocator allocator;
	struct weiri_registered *registered; /* NULL: not yet */

	/* Read by every call; written by calls that wait, return items, or close. */
	WEIRI_ALIGNED_APART struct weiri_waiters producers;
	struct weiri_waiters consumers;
	struct weiri_list announced; /* announcements: announce.h */
	struct weiri_putback putback;
	_Atomic(uint64_t) admission;
	_Atomic(uint64_t) turn;  /* odd while a batch collects; each change adds 1 */
	_Atomic(size_t) waiting; /* operations on the lists */
	/* The newest descriptors; NULL: none was requested. */
	_Atomic(struct weiri_readiness *) readable;
	_Atomic(struct weiri_readiness *) writable;
	_Atomic(uint32_t) cause_taken; /* 1: a closer has given a cause, and no later closer can */
	_Atomic(uint32_t) cause_ready;
	weir_error cause;

	/* Written by calls that wait or complete waiting operations, and sometimes by enqueues. */
	WEIRI_ALIGNED_APART struct weiri_queue_counters counters;
};

/* -- contents.c -------------------------------------------------------------------------------- */

/*
 * Returns the item's key, or 0 if the queue has no keys. Runs user code, so it must not be called
 * in a section.
 */
static inline int64_t weiri_queue_key(const weir_queue *queue, void *item)
{
	return queue->key != NULL ? queue->key(queue->key_context, item) : 0;
}

/*
 * Puts up to count items, and returns how many went in. *status is WEIR_OK, or tells why it
 * stopped: WEIR_WOULD_BLOCK (full), WEIR_CANCELLED (closed and not admitted). keys: the keys of the
 * items, for a caller in a section, which must have computed them before. NULL: this call computes
 * them.
 */
static inline size_t weiri_queue_put(weir_queue *queue, void *const items[], const int64_t keys[], size_t count,
                                     bool admitted, enum weir_status *status)
{
	return queue->store->put(queue, items, keys, count, admitted, status);
}

/*
 * Takes up to count items, and returns how many it took. *status is WEIR_OK, or tells why it
 * stopped: WEIR_WOULD_BLOCK (no item may leave now), WEIR_OUT_OF_RANGE (no item will ever come).
 * holds_turn: the caller is the batch that collects. Unlinked objects are retired with `scope`,
 * which need not be entered: see weiri_queue_unentered().
 */
size_t weiri_queue_take(struct weiri_scope *scope, weir_queue *queue, uint64_t items[], size_t count, bool holds_turn,
                        enum weir_status *status);
/*
 * As weiri_queue_take(). If the queue has keys and `keys` is not NULL, keys[] gets the keys with
 * which the items were enqueued.
 */
size_t weiri_queue_take_with_keys(struct weiri_scope *scope, weir_queue *queue, uint64_t items[], int64_t keys[],
                                  size_t count, bool holds_turn, enum weir_status *status);
/*
 * Continues a dequeue of one item after the ring alone gave it no item; `status` is the ring's
 * reason. Returns WEIR_OK with an item, or the reason why there is none.
 */
enum weir_status weiri_queue_take_on(struct weiri_record *record, weir_queue *queue, uint64_t *item,
                                     enum weir_status status);
/*
 * Brings a batch into the order in which its items leave. If the queue has keys, this computes the
 * keys of the batch and sorts it by key. Not in a section.
 */
WEIRI_SHARED void weiri_queue_sort_batch(const weir_queue *queue, struct weiri_segment *segment, size_t count);
/* Returns the number of stored items, including returned ones. */
size_t weiri_queue_size(const weir_queue *queue);
/*
 * Returns how many items were enqueued into the store (`in`) and dequeued from it (`out`). `out`
 * was exact at an earlier moment than `in`.
 */
struct weiri_ring_counts weiri_queue_counts(const weir_queue *queue);
/* Returns true if the caller now has the turn; false: another batch has it. */
bool weiri_queue_turn_take(weir_queue *queue);
/* Returns true while a batch collects. */
bool weiri_queue_turn_held(const weir_queue *queue);
void weiri_queue_turn_give(weir_queue *queue);
/*
 * can_give returns true if a dequeue would not have waited at some moment of the call: there was an
 * item, or the end to report. can_take_in returns the same for an enqueue: there was room, or a
 * close to report. The thread that changes an answer calls weiri_queue_settle() afterwards.
 */
bool weiri_queue_can_give(struct weiri_record *record, weir_queue *queue);
bool weiri_queue_can_take_in(const weir_queue *queue);
/* Returns true once the store is closed. From then on every enqueue that begins is refused. */
bool weiri_queue_store_closed(const weir_queue *queue);
/*
 * Writes the cause of the close into text, as "; closed because of <status>: <message>". Without a
 * cause, text becomes empty.
 */
void weiri_queue_cause(const weir_queue *queue, char *text, size_t size);
/*
 * Returns status. Fills *error (may be NULL) for an operation that the close ended: an enqueue
 * (WEIR_CANCELLED) or a dequeue (WEIR_OUT_OF_RANGE).
 */
WEIRI_SHARED enum weir_status weiri_queue_fail_closed(const weir_queue *queue, enum weir_status status, size_t count,
                                                      size_t done, weir_error *error);
/* The same for a call that a token ended, which was fired with `cause`; `verb` names the call. */
enum weir_status weiri_queue_fail_cancelled(const weir_queue *queue, const char *verb, const weir_error *cause,
                                            weir_error *error);

/* -- stats.c ----------------------------------------------------------------------------------- */

/* Samples the level of the queue, for the high-water mark. */
void weiri_queue_note_level(weir_queue *queue);
/* Samples the level for the high-water mark, after an enqueue found no room. */
void weiri_queue_note_full(weir_queue *queue);
/* Reads all counters. */
void weiri_queue_read_stats(weir_queue *queue, struct weir_queue_stats *stats);

/*
 * Samples the level if it is due after `count` more items were enqueued. For a queue with a ring.
 */
static WEIRI_ALWAYS_INLINE void weiri_queue_count_in_ring(weir_queue *queue, size_t count)
{
#if !defined(WEIRI_UNDER_MODEL) /* stress/model: see counters.h */
	if (WEIRI_UNLIKELY(weiri_ring_passed(queue->ring, queue->level_mask, count)))
		weiri_queue_note_level(queue);
#else
	(void)queue, (void)count;
#endif
}

/* The same for any queue. */
void weiri_queue_count_in(weir_queue *queue, size_t count);

/* -- queue.c ----------------------------------------------------------------------------------- */

/* As weir_queue_create(), around a store of kind `store`. The options are checked already. */
enum weir_status weiri_queue_create(const struct weir_queue_options *options, const struct weiri_store_kind *store,
                                    weir_queue **out, weir_error *error);
/* Frees a queue that no thread uses or can find any longer; not in a section. */
void weiri_queue_free(weir_queue *queue);

/* -- calls.c ----------------------------------------------------------------------------------- */

/*
 * As weir_queue_start(), but does not begin the operation: the same thread must pass it to
 * weiri_pending_begin(). So the caller can store *pending where the callback will read it.
 */
WEIRI_SHARED enum weir_status weiri_queue_prepare(weir_queue *queue, enum weir_queue_op_kind kind, void *items[],
                                                  size_t count, weir_queue_done_fn *done, void *context,
                                                  weir_pending **pending, weir_error *error);

/* -- pump.c ------------------------------------------------------------------------------------ */

/* Completes waiting operations until none can proceed. Runs completions. Not in a section. */
WEIRI_SHARED void weiri_queue_pump(struct weiri_record *record, weir_queue *queue);
/* What a pump does for this queue: a weiri_serve_fn (sync/pending.h). */
void weiri_queue_serve(struct weiri_record *record, void *object, struct weiri_served *served);

/* -- readiness.c ------------------------------------------------------------------------------- */

/*
 * Makes the descriptors, if there are any, agree with the store after it changed. Not in a section.
 */
void weiri_queue_settle(struct weiri_record *record, weir_queue *queue);
/*
 * The same for a caller that found FOLLOWED (sync/waiters.h) after it put items in, or took some
 * out, and that did nothing else.
 */
void weiri_queue_settle_after_put(struct weiri_record *record, weir_queue *queue);
void weiri_queue_settle_after_take(struct weiri_record *record, weir_queue *queue);
/* Returns true if the readable descriptor is lit, and a dequeue would wait. */
bool weiri_queue_shows_too_much(struct weiri_record *record, weir_queue *queue);
/*
 * The same for a call that changed nothing, because it found no item or no room. A poller whose
 * thread makes this call does not find the descriptor readable for nothing again, unless a taker
 * (sync/ready_fd.h) is stopped before its system call.
 */
void weiri_queue_settle_found_empty(struct weiri_record *record, weir_queue *queue);
void weiri_queue_settle_found_full(struct weiri_record *record, weir_queue *queue);
/* Closes the descriptors, when the queue is freed. */
void weiri_queue_put_out(weir_queue *queue);

/* Returns a scope without a section, for a caller that rarely retires an object. */
static inline struct weiri_scope weiri_queue_unentered(struct weiri_record *record)
{
	return (struct weiri_scope){record, 0, NULL};
}

/* Retires the objects that were unlinked with such a scope. */
static inline void weiri_queue_retire_gathered(struct weiri_scope *scope)
{
	if (WEIRI_UNLIKELY(scope->garbage != NULL))
		weiri_scope_leave(scope);
}

/* Allocates room for a batch; NULL: no memory. */
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
