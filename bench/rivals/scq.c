/*
 * scq.c - SCQ, the scalable circular queue, written anew from its paper: Nikolaev, "A Scalable,
 * Portable, and Memory-Efficient Lock-Free FIFO Queue", DISC 2019.
 *
 * Kept: two rings of indices, of which one names the free places of an array, and the other the
 * used ones in FIFO order. A ring of n indices has 2n entries {cycle, is safe, index}. An operation
 * draws a ticket by fetch-and-add and then tries the entry of that ticket; if the entry is of no
 * use, it draws another one. A dequeue that comes too early marks the entry, so that its enqueue
 * goes elsewhere. The threshold, 3n - 1, bounds how many tickets a dequeue may waste before it says
 * "empty", which is what makes the queue lock-free. Neighbouring tickets lie in different cache
 * lines.
 *
 * Left out: the form with a pointer in each entry and a compare-and-swap of two words, and lists of
 * such rings. The capacity is rounded up to a power of two.
 *
 * Progress: lock-free. A thread that is stopped between the two rings keeps one place, so "full" is
 * not exact beside it.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "rivals.h"

enum { LINE = 64, PER_LINE_BITS = 3 /* entries of a line */ };

#define NO_INDEX UINT64_MAX

struct entry {
	_Atomic(uint64_t) word;
};

struct indices {
	_Alignas(LINE) _Atomic(uint64_t) head;
	_Alignas(LINE) _Atomic(int64_t) threshold;
	_Alignas(LINE) _Atomic(uint64_t) tail;
	_Alignas(LINE) unsigned order; /* 2n is 1 << order */
	struct entry *entries;
};

struct scq {
	struct indices used, free;
	uint64_t *values;
};

/* An entry: the cycle above the bit "is safe" above the index. All ones: no index. */
static inline uint64_t no_index(const struct indices *ring)
{
	return (UINT64_C(1) << ring->order) - 1;
}

static inline uint64_t safe_bit(const struct indices *ring)
{
	return UINT64_C(1) << ring->order;
}

static inline uint64_t cycle_of_entry(const struct indices *ring, uint64_t entry)
{
	return entry >> (ring->order + 1);
}

static inline uint64_t cycle_of(const struct indices *ring, uint64_t ticket)
{
	return ticket >> ring->order;
}

static inline _Atomic(uint64_t) *entry_of(const struct indices *ring, uint64_t ticket)
{
	uint64_t at = ticket & no_index(ring);

	if (ring->order > PER_LINE_BITS)
		at = (at << PER_LINE_BITS & no_index(ring)) | at >> (ring->order - PER_LINE_BITS);
	return &ring->entries[at].word;
}

static inline int64_t full_threshold(const struct indices *ring)
{
	return (int64_t)(UINT64_C(3) << ring->order >> 1) - 1;
}

static void put_index(struct indices *ring, uint64_t index)
{
	for (;;) {
		uint64_t ticket = atomic_fetch_add_explicit(&ring->tail, 1, memory_order_seq_cst);
		_Atomic(uint64_t) *place = entry_of(ring, ticket);
		uint64_t entry = atomic_load_explicit(place, memory_order_seq_cst);
		uint64_t ours = cycle_of(ring, ticket) << (ring->order + 1) | safe_bit(ring) | index;

		while (cycle_of_entry(ring, entry) < cycle_of(ring, ticket) && (entry & no_index(ring)) == no_index(ring) &&
		       ((entry & safe_bit(ring)) != 0 || atomic_load_explicit(&ring->head, memory_order_seq_cst) <= ticket)) {
			if (!atomic_compare_exchange_strong_explicit(place, &entry, ours, memory_order_seq_cst,
			                                             memory_order_seq_cst))
				continue;
			if (atomic_load_explicit(&ring->threshold, memory_order_seq_cst) != full_threshold(ring))
				atomic_store_explicit(&ring->threshold, full_threshold(ring), memory_order_seq_cst);
			return;
		}
	}
}

/* The heads have overtaken the tail: moves it, so that enqueues need not try each ticket. */
static void catch_up(struct indices *ring, uint64_t tail, uint64_t head)
{
	while (!atomic_compare_exchange_strong_explicit(&ring->tail, &tail, head, memory_order_seq_cst,
	                                                memory_order_seq_cst)) {
		head = atomic_load_explicit(&ring->head, memory_order_seq_cst);
		if (tail >= head)
			break;
	}
}

/* Tries the entry of a ticket. Returns its index, or NO_INDEX after it has marked the entry. */
static inline uint64_t take_or_mark(struct indices *ring, uint64_t ticket)
{
	_Atomic(uint64_t) *place = entry_of(ring, ticket);
	uint64_t entry = atomic_load_explicit(place, memory_order_seq_cst), marked;

	do {
		if (cycle_of_entry(ring, entry) == cycle_of(ring, ticket)) {
			atomic_fetch_or_explicit(place, no_index(ring), memory_order_seq_cst);
			return entry & no_index(ring);
		}
		if (cycle_of_entry(ring, entry) > cycle_of(ring, ticket))
			break;
		if ((entry & no_index(ring)) == no_index(ring)) {
			marked = cycle_of(ring, ticket) << (ring->order + 1) | (entry & safe_bit(ring)) | no_index(ring);
		} else {
			marked = entry & ~safe_bit(ring);
		}
	} while (
		!atomic_compare_exchange_strong_explicit(place, &entry, marked, memory_order_seq_cst, memory_order_seq_cst));
	return NO_INDEX;
}

static uint64_t take_index(struct indices *ring)
{
	if (atomic_load_explicit(&ring->threshold, memory_order_seq_cst) < 0)
		return NO_INDEX;
	for (;;) {
		uint64_t ticket = atomic_fetch_add_explicit(&ring->head, 1, memory_order_seq_cst);
		uint64_t index = take_or_mark(ring, ticket), tail;

		if (index != NO_INDEX)
			return index;
		tail = atomic_load_explicit(&ring->tail, memory_order_seq_cst);
		if (tail <= ticket + 1) {
			catch_up(ring, tail, ticket + 1);
			(void)atomic_fetch_sub_explicit(&ring->threshold, 1, memory_order_seq_cst);
			return NO_INDEX;
		}
		if (atomic_fetch_sub_explicit(&ring->threshold, 1, memory_order_seq_cst) <= 0)
			return NO_INDEX;
	}
}

/* Cycle 0 is before the first: all entries are free. */
static void indices_init(struct indices *ring, unsigned order)
{
	size_t entries = (size_t)1 << order, bytes = entries * sizeof(struct entry);

	ring->order = order;
	ring->entries = aligned_alloc(LINE, bytes < LINE ? LINE : bytes);
	if (ring->entries == NULL)
		exit(3);
	for (size_t i = 0; i < entries; i++)
		atomic_init(&ring->entries[i].word, safe_bit(ring) | no_index(ring));
	atomic_init(&ring->head, entries);
	atomic_init(&ring->tail, entries);
	atomic_init(&ring->threshold, -1);
}

static void *create(size_t capacity)
{
	struct scq *scq = aligned_alloc(LINE, sizeof(*scq));
	unsigned order = 1;

	while ((size_t)1 << order < 2 * capacity)
		order++;
	if (scq == NULL || (scq->values = calloc((size_t)1 << order >> 1, sizeof(uint64_t))) == NULL)
		exit(3);
	indices_init(&scq->used, order);
	indices_init(&scq->free, order);
	for (uint64_t i = 0; i < UINT64_C(1) << order >> 1; i++)
		put_index(&scq->free, i);
	return scq;
}

static void destroy(void *self)
{
	struct scq *scq = self;

	free(scq->used.entries);
	free(scq->free.entries);
	free(scq->values);
	free(scq);
}

static int enqueue(void *self, uint64_t value)
{
	struct scq *scq = self;
	uint64_t index = take_index(&scq->free);

	if (index == NO_INDEX)
		return 0;
	scq->values[index] = value;
	put_index(&scq->used, index);
	return 1;
}

static int dequeue(void *self, uint64_t *value)
{
	struct scq *scq = self;
	uint64_t index = take_index(&scq->used);

	if (index == NO_INDEX)
		return 0;
	*value = scq->values[index];
	put_index(&scq->free, index);
	return 1;
}

static uint64_t pairs(void *self, uint64_t count)
{
	return bench_pairs(self, count, enqueue, dequeue);
}

const struct ring_contender scq_ring_contender = {
	.about = {.name = "SCQ (by the book)",
              .version = "Nikolaev 2019",
              .lacks = "other capacities than powers of two",
              .lock_free = 1},
	.create = create,
	.destroy = destroy,
	.enqueue = enqueue,
	.dequeue = dequeue,
	.pairs = pairs,
};
