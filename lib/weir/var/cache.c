/*
 * cache.c - handles that follow a variable.
 *
 * Algorithm. A cache holds a hazard slot for the version that it read last, and the address of that
 * version. A read compares the head with this address. While the slot holds the version, its memory
 * is not freed, so no other version can have this address; and a head never returns (V1 of
 * version.h). So if they are equal, the version is still the newest. If they differ, the read takes
 * the newest version in a section, as a snapshot does, and then clears the old slot. The comparison
 * is inlined in programs (weir/var_cache.h).
 *
 * An undecided or aborted version at the head differs from its base, which the cache holds. Such a
 * read takes the base anew.
 *
 * Invariants
 *   D1  if `seen` is not NULL, a slot of the handle holds the version at this address
 * A word is never NULL. So while `seen` is NULL the comparison fails, and no other check is needed.
 * Linearization: the load of the head that finds it unchanged, or the read of the head in the
 * section.
 * Progress: wait-free: the comparison; else the section, resolving the head, and a search of the
 * snapshot slots.
 * Checked: stress/model/check_var.c (var_cache), tests/test_var_cache.c.
 */
#include <weir/var_cache.h>

#include "base/assert.h"
#include "var/hold.h"

/* Returns the version that the slot of the handle holds, or NULL if the handle has a reference. */
static const void *version_in_slot(const weir_read *read)
{
	if (!weiri_hold_has_slot(read))
		return NULL;
	return weiri_load_relaxed(&weiri_hold_slot_of(read)->object); /* [relaxed] this thread has stored it */
}

/* The word of a cache without a variable. */
static const void *const no_head = &no_head;

void weir_var_cache_init(weir_var_cache *cache, weir_var *var)
{
	if (cache == NULL)
		return;
	*cache = (weir_var_cache){.word = &no_head, .var = var};
	if (var != NULL)
		cache->word = (const void *const *)(uintptr_t)&var->head;
}

/* Takes a handle on the newest version. Returns false if the variable is not initialized. */
static bool take(struct weiri_record *record, weir_var *var, weir_read *read)
{
	uint64_t outer = weiri_section_enter(record);
	struct weiri_version *version = weiri_newest(record, var);
	bool has_value = version->shown != NULL;
	size_t next_slot = 0;

	if (has_value)
		weiri_hold_by_snapshot_slot(record, version, &next_slot, read);
	weiri_section_leave(record, outer);
	return has_value;
}

const weir_read *weir_var_cache_refresh(weir_var_cache *cache)
{
	struct weiri_record *record = weiri_record_get();
	weir_read next;

	if (cache == NULL || cache->var == NULL || record == NULL || !take(record, cache->var, &next))
		return NULL;
	WEIR_ASSERT2(D1, cache->seen == NULL || cache->seen == version_in_slot(&cache->read));
	weir_read_release(&cache->read);
	cache->read = next;
	cache->seen = version_in_slot(&next);
	return &cache->read;
}

void weir_var_cache_release(weir_var_cache *cache)
{
	if (cache == NULL)
		return;
	weir_read_release(&cache->read);
	*cache = (weir_var_cache){.word = &no_head};
}
