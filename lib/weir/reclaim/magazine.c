/*
 * magazine.c - see magazine.h.
 */
#include "reclaim/magazine.h"

#include <weir/reclaim.h>

#include "reclaim/budget.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define KEEPS_NOTHING
#endif
#endif
/* Nor does the model checker's build, but for scopes that set the limit. */
#if defined(KEEPS_NOTHING) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
uint64_t weiri_magazine_most = 0;
#else
uint64_t weiri_magazine_most = 256 << 10; /* some collections' worth of blocks of four lines */
#endif

WEIRI_UNSEEN void weiri_magazine_assert_within(const struct weiri_record *record)
{
	uint64_t bytes = 0;

	for (size_t list = 0; list < WEIRI_MAGAZINE_LISTS; list++) {
		const struct weiri_kept_block *block = weiri_peek(&record->magazine[list]);

		for (; block != NULL; block = block->next)
			bytes += (list + 1) * WEIRI_LINE;
	}
	WEIR_ASSERT3(M1, bytes <= weiri_peek(&record->magazine_bytes));
	WEIR_ASSERT3(M1, weiri_peek(&record->magazine_bytes) <= weiri_peek(&record->magazine_grant));
	WEIR_ASSERT3(M2, weiri_peek(&record->magazine_grant) <= weiri_peek(&weiri_budget.of_kind[WEIRI_KEPT_MAGAZINES]));
}

/* -- blocks ------------------------------------------------------------------------------------ */

/* Takes the newest block off a list, which is not empty. */
static void *take(struct weiri_record *record, size_t list)
{
	struct weiri_kept_block *block = weiri_load_relaxed(&record->magazine[list]); /* [relaxed] own fields, all */
	uint32_t size = (uint32_t)(list + 1) * WEIRI_LINE;

	weiri_store_relaxed(&record->magazine[list], block->next);
	weiri_store_relaxed(&record->magazine_bytes, weiri_load_relaxed(&record->magazine_bytes) - size);
	return block;
}

/* Frees the newest block of a list, if there is one. Returns true if there was. */
static bool free_one(struct weiri_record *record, size_t list)
{
	/* [relaxed] own field */
	if (weiri_load_relaxed(&record->magazine[list]) == NULL)
		return false;
	weiri_release(weir_default_allocator(), take(record, list), (list + 1) * WEIRI_LINE, WEIRI_LINE);
	return true;
}

static uint64_t bytes_on(const struct weiri_record *record, size_t list)
{
	const struct weiri_kept_block *block = weiri_load_relaxed(&record->magazine[list]); /* [relaxed] own field */

	return block != NULL ? block->depth * (list + 1) * WEIRI_LINE : 0;
}

static size_t longest_list(const struct weiri_record *record)
{
	size_t longest = 0;

	for (size_t list = 1; list < WEIRI_MAGAZINE_LISTS; list++) {
		if (bytes_on(record, list) > bytes_on(record, longest))
			longest = list;
	}
	return longest;
}

/* -- grants ------------------------------------------------------------------------------------ */

static uint64_t share(void)
{
	return weir_reclaim_budget() / WEIRI_MAGAZINES_SHARE;
}

/* Asks for another unit. Returns true if the record has got it. */
static bool grow(struct weiri_record *record)
{
	/* [relaxed] own field, both. */
	uint32_t grant = weiri_load_relaxed(&record->magazine_grant) + WEIRI_MAGAZINE_UNIT;
	uint64_t all = share();

	if (grant > weiri_magazine_most || grant > all ||
	    !weiri_budget_keep(WEIRI_KEPT_MAGAZINES, WEIRI_MAGAZINE_UNIT, all - grant))
		return false;
	weiri_store_relaxed(&record->magazine_grant, grant);
	return true;
}

/* Frees blocks until the rest of the grant holds the others, and gives the difference back. */
static void shrink_to(struct weiri_record *record, uint32_t grant)
{
	/* [relaxed] own fields, all. */
	uint32_t less = weiri_load_relaxed(&record->magazine_grant) - grant;

	while (weiri_load_relaxed(&record->magazine_bytes) > grant && free_one(record, longest_list(record)))
		;
	weiri_store_relaxed(&record->magazine_grant, grant);
	if (less != 0)
		weiri_budget_give(WEIRI_KEPT_MAGAZINES, less);
}

/* Returns true if the record has a grant that is more than is left of the share of all. */
static bool has_too_much(const struct weiri_record *record)
{
	/* [relaxed] An own field, and a threshold. */
	int64_t grant = weiri_load_relaxed(&record->magazine_grant);

	return grant != 0 && grant > (int64_t)share() - weiri_load_relaxed(&weiri_budget.of_kind[WEIRI_KEPT_MAGAZINES]);
}

/* 1: in this child of a fork, records have magazines whose owners are not here. */
static _Atomic(uint32_t) any_left_behind;

void weiri_magazine_after_collection(struct weiri_record *record)
{
	while (WEIRI_UNLIKELY(has_too_much(record)))
		shrink_to(record, weiri_load_relaxed(&record->magazine_grant) - WEIRI_MAGAZINE_UNIT); /* [relaxed] own field */
	/* [relaxed] a flag, which the forking thread has set. */
	if (WEIRI_UNLIKELY(weiri_load_relaxed(&any_left_behind)) && weiri_exchange_relaxed(&any_left_behind, 0u))
		weiri_record_clear_vacant();
}

void weiri_magazines_after_fork(void)
{
	uint64_t grants = 0;

	/* [relaxed] the only thread. */
	for (struct weiri_record *record = weiri_load_relaxed(&weiri_records); record != NULL; record = record->next)
		grants += weiri_load_relaxed(&record->magazine_grant);
	weiri_budget_after_fork(grants);
	weiri_store_relaxed(&any_left_behind, 1u);
}

/* -- giving and ending ------------------------------------------------------------------------- */

/*
 * Makes room for a block of the list: by a larger grant, or else at the cost of the list with the most bytes. What a
 * thread has most of, it needs least. Returns false if that is this list.
 */
static bool make_room(struct weiri_record *record, size_t list)
{
	while (!weiri_magazine_has_room(record, (list + 1) * WEIRI_LINE)) {
		size_t longest;

		if (grow(record))
			continue;
		longest = longest_list(record);
		if (longest == list || !free_one(record, longest))
			return false;
	}
	return true;
}

void weiri_block_release_slowly(const weir_allocator *allocator, void *block, size_t size)
{
	struct weiri_record *record = weiri_record_mine;

	if (record != NULL && weiri_block_fits(allocator, size) && make_room(record, size / WEIRI_LINE - 1))
		weiri_block_keep(record, block, size);
	else
		weiri_release(allocator, block, size, WEIRI_LINE);
}

void weiri_magazine_end(struct weiri_record *record)
{
	for (size_t list = 0; list < WEIRI_MAGAZINE_LISTS; list++) {
		while (free_one(record, list))
			;
	}
	weiri_store_relaxed(&record->magazine_bytes, 0u); /* [relaxed] the caller owns the record */
	shrink_to(record, 0);
}
