/*
 * bbq.c - BBQ, the block-based bounded queue, written anew from its paper: Wang, Behrens, Fu, Oberhauser,
 * Oberhauser, Lei, Chen, Härtig, Chen, "BBQ: A Block-based Bounded Queue for Exchanging Data and
 * Profiling", USENIX ATC 2022. The form in which a full queue refuses (retry-new).
 *
 * Kept: the array is cut into blocks. A block has four cursors {version, offset}. A producer draws
 * an entry from `allocated` by fetch-and-add, writes it, and counts it in `committed`. A consumer
 * draws an entry from `reserved` by a maximum, if all that was allocated is committed, and counts it
 * in `consumed`. Two heads name the blocks in which producers and consumers are; a thread that finds
 * its block used up opens the next one, by maxima, if it was consumed (filled) whole.
 *
 * Changed: x86-64 has no atomic maximum, so it is a loop with a compare-and-swap. The number of
 * blocks is 2^(log2(capacity) / 4), at least 2, as in public code. Left out: batches, and the form
 * that overwrites the oldest items.
 *
 * Progress: blocking. A producer that is stopped before it counts its entry hides what comes after
 * it in the block; a consumer likewise keeps its block from being used again.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "rivals.h"

enum { LINE = 64, OFFSET_BITS = 32, HEAD_BITS = 16 /* for the number of a block */ };

struct block {
	_Alignas(LINE) _Atomic(uint64_t) allocated;
	_Alignas(LINE) _Atomic(uint64_t) committed;
	_Alignas(LINE) _Atomic(uint64_t) reserved;
	_Alignas(LINE) _Atomic(uint64_t) consumed;
	_Alignas(LINE) uint64_t *entries;
};

struct bbq {
	_Alignas(LINE) _Atomic(uint64_t) producers; /* {version, block} */
	_Alignas(LINE) _Atomic(uint64_t) consumers;
	_Alignas(LINE) uint64_t blocks, size; /* of a block */
	struct block *block;
	uint64_t *entries;
};

enum outcome { DONE, BLOCK_IS_DONE, REFUSED };

static inline uint64_t offset_of(uint64_t cursor)
{
	return cursor & UINT32_MAX;
}

static inline uint64_t version_of(uint64_t cursor)
{
	return cursor >> OFFSET_BITS;
}

static inline uint64_t head_version(const struct bbq *bbq, uint64_t head)
{
	return head / bbq->blocks;
}

static inline uint64_t load(const _Atomic(uint64_t) *cursor)
{
	return atomic_load_explicit(cursor, memory_order_acquire);
}

/* The atomic maximum. Returns the old value. */
static inline uint64_t raise(_Atomic(uint64_t) *cursor, uint64_t to)
{
	uint64_t old = load(cursor);

	while (old < to &&
	       !atomic_compare_exchange_weak_explicit(cursor, &old, to, memory_order_acq_rel, memory_order_acquire))
		;
	return old;
}

static inline enum outcome put_in(const struct bbq *bbq, struct block *block, uint64_t value)
{
	uint64_t old;

	if (offset_of(load(&block->allocated)) >= bbq->size)
		return BLOCK_IS_DONE;
	old = atomic_fetch_add_explicit(&block->allocated, 1, memory_order_acq_rel);
	if (offset_of(old) >= bbq->size)
		return BLOCK_IS_DONE;
	block->entries[offset_of(old)] = value;
	(void)atomic_fetch_add_explicit(&block->committed, 1, memory_order_acq_rel);
	return DONE;
}

/* Opens the block behind `head` for producers. Returns 0 if it was not consumed whole: full. */
static int open_for_producers(struct bbq *bbq, uint64_t head)
{
	struct block *next = &bbq->block[(head + 1) % bbq->blocks];
	uint64_t consumed = load(&next->consumed), version = head_version(bbq, head);

	if (version_of(consumed) < version || (version_of(consumed) == version && offset_of(consumed) != bbq->size))
		return 0;
	(void)raise(&next->committed, (version + 1) << OFFSET_BITS);
	(void)raise(&next->allocated, (version + 1) << OFFSET_BITS);
	(void)raise(&bbq->producers, head + 1);
	return 1;
}

static inline enum outcome take_from(const struct bbq *bbq, struct block *block, uint64_t *value)
{
	for (;;) {
		uint64_t reserved = load(&block->reserved), committed;

		if (offset_of(reserved) >= bbq->size)
			return BLOCK_IS_DONE;
		committed = load(&block->committed);
		if (offset_of(committed) == offset_of(reserved))
			return REFUSED;
		if (offset_of(committed) != bbq->size && offset_of(load(&block->allocated)) != offset_of(committed))
			return REFUSED;
		if (raise(&block->reserved, reserved + 1) != reserved)
			continue;
		*value = block->entries[offset_of(reserved)];
		(void)atomic_fetch_add_explicit(&block->consumed, 1, memory_order_acq_rel);
		return DONE;
	}
}

/* Opens the block behind `head` for consumers. Returns 0 if producers have not come to it: empty. */
static int open_for_consumers(struct bbq *bbq, uint64_t head)
{
	struct block *next = &bbq->block[(head + 1) % bbq->blocks];
	uint64_t version = head_version(bbq, head) + 1;

	if (version_of(load(&next->committed)) != version)
		return 0;
	(void)raise(&next->consumed, version << OFFSET_BITS);
	(void)raise(&next->reserved, version << OFFSET_BITS);
	(void)raise(&bbq->consumers, head + 1);
	return 1;
}

static int enqueue(void *self, uint64_t value)
{
	struct bbq *bbq = self;

	for (;;) {
		uint64_t head = load(&bbq->producers);

		if (put_in(bbq, &bbq->block[head % bbq->blocks], value) == DONE)
			return 1;
		if (!open_for_producers(bbq, head))
			return 0;
	}
}

static int dequeue(void *self, uint64_t *value)
{
	struct bbq *bbq = self;

	for (;;) {
		uint64_t head = load(&bbq->consumers);
		enum outcome outcome = take_from(bbq, &bbq->block[head % bbq->blocks], value);

		if (outcome != BLOCK_IS_DONE)
			return outcome == DONE;
		if (!open_for_consumers(bbq, head))
			return 0;
	}
}

/* Block 0 is open in version 0. The others are as if they had been filled and consumed there. */
static void *create(size_t capacity)
{
	struct bbq *bbq = aligned_alloc(LINE, sizeof(*bbq));
	unsigned order = 2;

	while ((size_t)1 << order < capacity)
		order++;
	if (bbq == NULL)
		exit(3);
	bbq->blocks = UINT64_C(1) << (order / 4 != 0 ? order / 4 : 1);
	bbq->size = (UINT64_C(1) << order) / bbq->blocks;
	bbq->block = aligned_alloc(LINE, (size_t)bbq->blocks * sizeof(struct block));
	bbq->entries = calloc((size_t)1 << order, sizeof(uint64_t));
	if (bbq->block == NULL || bbq->entries == NULL)
		exit(3);
	atomic_init(&bbq->producers, 0);
	atomic_init(&bbq->consumers, 0);
	for (uint64_t i = 0; i < bbq->blocks; i++) {
		uint64_t begin = i == 0 ? 0 : bbq->size;

		bbq->block[i].entries = bbq->entries + i * bbq->size;
		atomic_init(&bbq->block[i].allocated, begin);
		atomic_init(&bbq->block[i].committed, begin);
		atomic_init(&bbq->block[i].reserved, begin);
		atomic_init(&bbq->block[i].consumed, begin);
	}
	return bbq;
}

static void destroy(void *self)
{
	struct bbq *bbq = self;

	free(bbq->block);
	free(bbq->entries);
	free(bbq);
}

static uint64_t pairs(void *self, uint64_t count)
{
	return bench_pairs(self, count, enqueue, dequeue);
}

const struct ring_contender bbq_ring_contender = {
	.about = {.name = "BBQ (by the book)", .version = "Wang et al. 2022", .lacks = "an exact capacity"},
	.create = create,
	.destroy = destroy,
	.enqueue = enqueue,
	.dequeue = dequeue,
	.pairs = pairs,
};
