/*
 * block_pile.c - see block_pile.h.
 */
#include "reclaim/block_pile.h"

#include <weir/reclaim.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
#define KEEPS_NOTHING
#endif
#endif
#if defined(KEEPS_NOTHING) || defined(__SANITIZE_ADDRESS__) || defined(WEIRI_UNDER_MODEL)
uint64_t weiri_blocks_share = 0;
#else
uint64_t weiri_blocks_share = 8;
#endif

static _Atomic(uint64_t) kept_bytes; /* on all stacks */

void weiri_blocks_take(struct weiri_blocks *mine, weiri_block_stack *stack, size_t bytes)
{
	/* [P1 acquire] pairs with put. [relaxed] The load only avoids a write. */
	struct weiri_block *pile = weiri_load_relaxed(stack) != NULL ? weiri_exchange_acquire(stack, NULL) : NULL;

	*mine = (struct weiri_blocks){.piles = pile};
	for (; pile != NULL; pile = pile->next_pile)
		mine->count += pile->count;
	if (mine->count != 0)
		weiri_fetch_sub_relaxed(&kept_bytes, (uint64_t)mine->count * bytes); /* [relaxed] a sum */
}

size_t weiri_blocks_count_kept(const struct weiri_blocks *mine, size_t bytes)
{
	uint64_t most = weiri_blocks_share != 0 ? weir_reclaim_budget() / weiri_blocks_share : 0;
	uint64_t more = (uint64_t)mine->count * bytes, excess;

	if (more == 0)
		return 0;
	/* [relaxed] a sum */
	excess = weiri_fetch_add_relaxed(&kept_bytes, more) + more;
	if (excess <= most)
		return 0;
	excess = (excess - most - 1) / bytes + 1;
	if (excess > mine->count)
		excess = mine->count;
	weiri_fetch_sub_relaxed(&kept_bytes, excess * bytes); /* [relaxed] a sum */
	return (size_t)excess;
}

void weiri_blocks_put(struct weiri_blocks *mine, weiri_block_stack *stack)
{
	if (mine->first != NULL) {
		mine->first->count = mine->first_count;
		mine->first->next_pile = mine->piles;
		mine->piles = mine->first;
	}
	for (struct weiri_block *pile = mine->piles, *next; pile != NULL; pile = next) {
		next = pile->next_pile;
		pile->next_pile = weiri_load_relaxed(stack); /* [relaxed] a guess, which the CAS checks */
		/* [P1 release] pairs with take. */
		while (!weiri_cas_release(stack, &pile->next_pile, pile))
			;
	}
	*mine = (struct weiri_blocks){NULL, 0, NULL, 0};
}
