/*
 * magazine.h - blocks of versions and commits, and the freed ones that a thread keeps for its next
 * writes.
 *
 * Algorithm. A block is a number of cache lines. A thread keeps the blocks that its collections
 * free in its *magazine*: a list for each number of lines, from which it takes the newest first.
 * Only the owner of the record touches the lists. So taking and giving a block is a few loads and
 * stores, and where a thread collects what it retired itself, its writes need the allocator only
 * until the magazine has a collection's worth of blocks.
 * Only blocks of the default allocator are kept. Those of another allocator go back to it at once:
 * its owner may end it as soon as the objects are gone (weir/alloc.h).
 *
 * Source. The magazines of the slab allocator (Bonwick and Adams, USENIX 2001), one for each thread
 * instead of each processor, and without a depot: what does not fit goes back to the allocator.
 *
 * How much a magazine may keep is its *grant*. A thread whose magazine is full asks for another
 * unit, and gets it if all magazines then have no more than an eighth of the budget, and what is left
 * of this eighth is no less than what the thread has. So one thread gets up to half of it, and n
 * threads that want more than there is get an (n + 1)th each (the dynamic threshold of Choudhury and
 * Hahne, IEEE/ACM Transactions on Networking 1998). A thread that has more than is left, because
 * others came, gives units back after its next collection, until it has not. Grants count in the
 * budget (budget.h). A writer that finds the budget spent gives its own back before it waits.
 *
 * Invariants
 *   M1  a kept block is on one list of one magazine, and the lists of a magazine have at most
 *       `magazine_bytes` in all, which is at most `magazine_grant`
 *   M2  the grants of all records are counted in the budget
 * Pairs
 *   P1  keep(owner), and P2 and P3 of record.c -> take(next owner): the links of the lists
 * Threads that end. The record's next owner, or the thread that vacates the record, frees the lists
 * or goes on with them. A thread may have ended, or a fork may have left it behind, between any two
 * instructions of this file. Each list is consistent at every instant: a block's link is stored
 * before the block is on the list, and a block that was taken is no longer reached. Such a block is
 * lost, and `magazine_bytes` may be too large by it, until the record is vacated. A unit that was
 * asked for or given back at that moment may stay counted (budget.h).
 * A fork. The child has the magazines of threads that it does not have, with their grants. Its first
 * collection frees them: an allocator might not serve the handler of a fork.
 * Signal handlers do not use magazines: they neither write variables nor free versions.
 * Progress: wait-free but for the allocator, and for asking, which is lock-free.
 * Memory: a magazine keeps at most weiri_magazine_most bytes, and all of them an eighth of the retire
 * budget. After the budget was lowered they keep more, until their threads collect, or end.
 * weir_reclaim_stats counts what all of them keep.
 * Under AddressSanitizer, ThreadSanitizer and MemorySanitizer nothing is kept, so that they see
 * each use of a freed block.
 * Checked: tests/test_magazine.c, stress/model/check_value.c, stress scenario value.
 */
#ifndef WEIRI_RECLAIM_MAGAZINE_H
#define WEIRI_RECLAIM_MAGAZINE_H

#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/memory.h"
#include "reclaim/collect.h"
#include "reclaim/record.h"

enum {
	WEIRI_MAGAZINES_SHARE = 8, /* of the budget: 1/8 for all magazines */
#if defined(WEIRI_UNDER_MODEL)
	WEIRI_MAGAZINE_UNIT = 512
#else
	WEIRI_MAGAZINE_UNIT = 16 << 10
#endif
};

/* At the beginning of a kept block. */
struct weiri_kept_block {
	struct weiri_kept_block *next;
	size_t depth; /* of the list from here on: 1 without a next */
};

/* The most bytes that a magazine keeps. 0: none. Constant, except in tests. */
extern uint64_t weiri_magazine_most;

/* Rounds up to whole lines, of which a block consists. */
static inline size_t weiri_block_size(size_t bytes)
{
	return (bytes + WEIRI_LINE - 1) / WEIRI_LINE * WEIRI_LINE;
}

/* Returns true if blocks of this kind may be kept. */
static inline bool weiri_block_fits(const weir_allocator *allocator, size_t size)
{
	return allocator->allocate == weiri_default_allocate && allocator->release == weiri_default_release &&
	       size <= (size_t)WEIRI_MAGAZINE_LISTS * WEIRI_LINE;
}

/*
 * Returns a block of `size` bytes, a multiple of a line; NULL if there is no memory. `record` is
 * this thread's, or NULL.
 */
static inline void *weiri_block_allocate(struct weiri_record *record, const weir_allocator *allocator, size_t size)
{
	struct weiri_kept_block *block = NULL;
	size_t list = size / WEIRI_LINE - 1;

	/* [relaxed] Own fields, here and below; P1 orders them for the next owner. */
	if (WEIRI_LIKELY(record != NULL && weiri_block_fits(allocator, size)))
		block = weiri_load_relaxed(&record->magazine[list]);
	if (WEIRI_UNLIKELY(block == NULL))
		return weiri_allocate(allocator, size, WEIRI_LINE);
	weiri_store_relaxed(&record->magazine[list], block->next);
	weiri_store_relaxed(&record->magazine_bytes, weiri_load_relaxed(&record->magazine_bytes) - (uint32_t)size);
	return block;
}

/* The slow half of weiri_block_release(): makes room in the magazine, or frees the block. */
void weiri_block_release_slowly(const weir_allocator *allocator, void *block, size_t size);

/* For assertions: M1 holds. */
void weiri_magazine_assert_within(const struct weiri_record *record);

/* Puts a block into the magazine, which has room for it. */
static inline void weiri_block_keep(struct weiri_record *record, void *memory, size_t size)
{
	struct weiri_kept_block *block = memory;
	size_t list = size / WEIRI_LINE - 1;

	/* [relaxed] Own fields, here and below. Counted first: M1. */
	weiri_store_relaxed(&record->magazine_bytes, weiri_load_relaxed(&record->magazine_bytes) + (uint32_t)size);
	block->next = weiri_load_relaxed(&record->magazine[list]);
	block->depth = block->next != NULL ? block->next->depth + 1 : 1;
	/* [P1 release] The link is stored before the block is on the list, also for the child of a fork. */
	weiri_store_release(&record->magazine[list], block);
	WEIR_ASSERT_WALK(weiri_magazine_assert_within(record));
}

/* Returns true if the magazine has room for so many more bytes. */
static inline bool weiri_magazine_has_room(const struct weiri_record *record, size_t size)
{
	/* [relaxed] own fields, both. */
	return weiri_load_relaxed(&record->magazine_bytes) + size <= weiri_load_relaxed(&record->magazine_grant);
}

/* Gives a block back. `record` is this thread's, or NULL. *allocator may lie in the block. */
static inline void weiri_block_release_by(struct weiri_record *record, const weir_allocator *allocator, void *block,
                                          size_t size)
{
	if (WEIRI_LIKELY(record != NULL && weiri_block_fits(allocator, size) && weiri_magazine_has_room(record, size)))
		weiri_block_keep(record, block, size);
	else
		weiri_block_release_slowly(allocator, block, size);
}

/* The same on any thread. */
static inline void weiri_block_release(const weir_allocator *allocator, void *block, size_t size)
{
	weiri_block_release_by(weiri_record_mine, allocator, block, size);
}

/* Frees what the record keeps. The caller owns the record, or has found its owner ended. */
void weiri_magazine_end(struct weiri_record *record);

/* Called by the owner: gives back what it has more than is left. */
void weiri_magazine_after_collection(struct weiri_record *record);

/* Called in the child of a fork. */
void weiri_magazines_after_fork(void);

#endif
