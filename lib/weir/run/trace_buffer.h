/*
 * trace_buffer.h - records that many threads write, each into memory of its own, and never wait.
 *
 * A set has a buffer for each thread that has written. A buffer is a list of chunks that only grows;
 * a record is a row of words, and lies in one chunk. Another thread may read the records at any
 * time: it sees those that were complete. If there is no memory for a record, the buffer has reached
 * its limit, or the record is too long for the format, it is dropped, and counted.
 *
 * A thread finds its buffer by its id in Linux. A later thread may get the id of one that has ended,
 * and then goes on with its buffer.
 *
 * Invariants
 *   T1  only the thread of a buffer writes its records, and what lies before `used` never changes
 *   T2  the numbers of the events of a set are unique, and never 0
 * Pairs
 *   P1  commit -> visit: the record
 *   P2  grow -> visit: the new chunk, and that the one before it does not grow any more
 *   P3  rest -> mine: what an earlier thread with this id wrote
 * Progress: all calls are wait-free, but for the allocator, and for `mine` when the thread has no
 *   buffer yet: a failed push means that another thread has pushed its own.
 * Checked: tests/test_trace.c; stress/model/check_trace.c.
 */
#ifndef WEIRI_TRACE_BUFFER_H
#define WEIRI_TRACE_BUFFER_H

#include <stddef.h>
#include <stdint.h>
#include <weir/alloc.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "run/countdown.h"
#include "run/published.h"

struct weiri_trace_chunk {
	_Atomic(struct weiri_trace_chunk *) next;
	_Atomic(size_t) used; /* words */
	size_t size;          /* words */
	uint64_t words[];
};

/* What a brief record leaves out: a reader knows it from the records before. */
struct weiri_trace_known {
	uint64_t event, frame; /* of the last record that began an event */
	uint64_t end_ns;       /* of the last record that ended one */
};

struct weiri_trace_buffer {
	struct weiri_published link; /* in the set */
	uint32_t thread;             /* constant: its id in Linux */
	uint32_t number;             /* constant: of the buffer in its set, from 1 */
	_Atomic(uint32_t) rests;     /* how often the thread has stopped to write */
	_Atomic(uint64_t) dropped;   /* records */
	struct weiri_trace_chunk *first;
	/* this thread only */
	struct weiri_trace_chunk *last;
	uint64_t *at; /* where the next record begins */
	size_t left;  /* words of the last chunk */
	size_t bytes; /* of all chunks */
	uint64_t events;
	struct weiri_trace_known known;
	struct weiri_trace_buffers *set;
};

struct weiri_trace_buffers {
	uint64_t id; /* of no other set of this process */
	weir_allocator allocator;
	size_t most_bytes; /* of a buffer */
	struct weiri_published_list list;
	struct weiri_serial numbers;
	_Atomic(uint64_t) lost; /* records of threads that got no buffer */
};

/* An event that effects are recorded of. */
struct weiri_trace_point {
	struct weiri_trace_buffers *set; /* NULL: nothing is recorded */
	uint64_t event;
};

WEIRI_SHARED void weiri_trace_buffers_init(struct weiri_trace_buffers *set, const weir_allocator *allocator,
                                           size_t most_bytes);
/* No thread writes any more. */
WEIRI_SHARED void weiri_trace_buffers_fini(struct weiri_trace_buffers *set);
/* Returns the buffer of this thread; NULL if there is no memory, and then a record counts as lost. */
WEIRI_SHARED struct weiri_trace_buffer *weiri_trace_buffer_mine(struct weiri_trace_buffers *set);
/* For weiri_trace_reserve(). */
WEIRI_SHARED uint64_t *weiri_trace_grow(struct weiri_trace_buffer *buffer, size_t words);
/*
 * Records that the event had an effect of this kind (run/trace_format.h) on `object`: on the
 * version, item or value `number`.
 */
WEIRI_SHARED void weiri_trace_effect(const struct weiri_trace_point *point, uint32_t kind, const void *object,
                                     uint64_t number);
/* Something cannot be recorded for lack of memory. */
static inline void weiri_trace_lose(struct weiri_trace_buffers *set)
{
	/* [relaxed] a count. */
	(void)weiri_fetch_add_relaxed(&set->lost, 1);
}
/* Returns how many records were dropped. */
WEIRI_SHARED uint64_t weiri_trace_dropped(const struct weiri_trace_buffers *set);

/* Returns room for a record of so many words, which is committed next; NULL: it is dropped. */
static inline uint64_t *weiri_trace_reserve(struct weiri_trace_buffer *buffer, size_t words)
{
	return WEIRI_LIKELY(buffer->left >= words) ? buffer->at : weiri_trace_grow(buffer, words);
}

/* The first word of a record: its kind, its length in words, and an argument. */
static inline uint64_t weiri_trace_head(uint32_t kind, size_t words, uint32_t argument)
{
	return kind | (uint64_t)words << 8 | (uint64_t)argument << 32;
}

/* Makes the record visible that was written to the room that was reserved. */
static inline void weiri_trace_commit(struct weiri_trace_buffer *buffer, size_t words)
{
	buffer->at += words;
	buffer->left -= words;
	/* [P1 release] pairs with weiri_trace_used(). */
	weiri_store_release(&buffer->last->used, buffer->last->size - buffer->left);
}

/* Returns the number of a new event (T2): the buffer, and the events of the buffer so far. */
static inline uint64_t weiri_trace_event(struct weiri_trace_buffer *buffer)
{
	return (uint64_t)buffer->number << 40 | ++buffer->events;
}

/* The thread stops to write, until it looks for its buffer again. */
static inline void weiri_trace_rest(struct weiri_trace_buffer *buffer)
{
	/* [relaxed] only this thread changes it; [P3 release] pairs with weiri_trace_buffer_mine(). */
	weiri_store_release(&buffer->rests, weiri_load_relaxed(&buffer->rests) + 1);
}

static inline size_t weiri_trace_used(const struct weiri_trace_chunk *chunk)
{
	/* [P1 acquire] pairs with weiri_trace_commit(). */
	return weiri_load_acquire(&chunk->used);
}

static inline struct weiri_trace_chunk *weiri_trace_next(const struct weiri_trace_chunk *chunk)
{
	/* [P2 acquire] pairs with weiri_trace_grow(). */
	return weiri_load_acquire(&chunk->next);
}

#endif
