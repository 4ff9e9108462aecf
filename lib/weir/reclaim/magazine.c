/*
 * magazine.c - see magazine.h.
 */
#include "reclaim/magazine.h"

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
}

/* Takes the newest block off a list, which is not empty. */
static void *take(struct weiri_record *record, size_t list)
{
	struct weiri_kept_block *block = weiri_load_relaxed(&record->magazine[list]); /* [relaxed] own fields, all */

	weiri_store_relaxed(&record->magazine[list], block->next);
	weiri_store_relaxed(&record->magazine_bytes, weiri_load_relaxed(&record->magazine_bytes) - (list + 1) * WEIRI_LINE);
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

/*
 * Makes room for a block of the list, at the cost of the list with the most bytes: what a thread
 * has most of, it needs least. Returns false if that is this list.
 */
static bool make_room(struct weiri_record *record, size_t list)
{
	while (!weiri_magazine_has_room(record, (list + 1) * WEIRI_LINE)) {
		size_t longest = longest_list(record);

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
}
