/*
 * block_pile.h - free blocks of one size, which threads pass on to each other a pile at a time.
 *
 * A thread that needs blocks takes all that are there, uses some, and puts the rest back. So it
 * pays two read-modify-writes for any number of blocks. A second thread meanwhile finds none and
 * asks the allocator.
 *
 * Structure. The piles form a Treiber stack that is only ever taken whole, so there is no ABA
 * problem. A pile is a list of blocks, linked through their first words. The first block of a pile
 * also has the link to the next pile and the number of blocks. The block freed last is on top: it
 * is most likely in a cache.
 *
 * Invariants
 *   F1  a free block is in one pile, and a pile is on one stack or belongs to one thread
 * Pairs
 *   P1  put -> take: the links, and all uses of the blocks before
 * Progress: take is wait-free; put is lock-free, and fails only if another thread has put or taken.
 * A thread that stops with piles in hand keeps them; they are no more than it may put back.
 * Checked: stress/model/check_table.c, tests/test_table.c.
 */
#ifndef WEIRI_RECLAIM_BLOCK_PILE_H
#define WEIRI_RECLAIM_BLOCK_PILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"

/* The head of a free block. Only the first block of a pile uses the last two fields. */
struct weiri_block {
	struct weiri_block *next;
	struct weiri_block *next_pile;
	size_t count; /* of the blocks of the pile */
};

/* Piles that belong to one thread. Zeros: none. */
struct weiri_blocks {
	struct weiri_block *first; /* of the pile in use; its head is not up to date */
	size_t first_count;
	struct weiri_block *piles; /* the others */
	size_t count;              /* blocks of all piles */
};

typedef _Atomic(struct weiri_block *) weiri_block_stack;

/*
 * The blocks on all stacks take at most this share of the budget (weir/reclaim.h): 1 / share. 0:
 * none, so that a sanitizer sees each block end. Tests change it.
 */
extern uint64_t weiri_blocks_share;

/* Takes all blocks of a stack. `mine` had none. `bytes` is the size of a block. */
WEIRI_SHARED void weiri_blocks_take(struct weiri_blocks *mine, weiri_block_stack *stack, size_t bytes);
/*
 * Counts the blocks as kept. Returns how many of them are too many: the caller releases these, and
 * then puts the others on the stack.
 */
WEIRI_SHARED size_t weiri_blocks_count_kept(const struct weiri_blocks *mine, size_t bytes);
/* Puts all blocks on the stack. */
WEIRI_SHARED void weiri_blocks_put(struct weiri_blocks *mine, weiri_block_stack *stack);

/* Returns a block, or NULL if there is none. */
static inline struct weiri_block *weiri_blocks_pop(struct weiri_blocks *mine)
{
	struct weiri_block *block = mine->first;

	if (block == NULL) {
		block = mine->piles;
		if (block == NULL)
			return NULL;
		mine->piles = block->next_pile;
		mine->first_count = block->count;
	}
	mine->first = block->next;
	/* The next call reads its link. It may have been freed long ago. */
	__builtin_prefetch(mine->first, 1);
	mine->first_count--;
	mine->count--;
	return block;
}

static inline void weiri_blocks_push(struct weiri_blocks *mine, void *memory)
{
	struct weiri_block *block = memory;

	block->next = mine->first;
	mine->first = block;
	mine->first_count++;
	mine->count++;
}

#endif
