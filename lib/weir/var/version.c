/*
 * version.c - making, stamping and freeing versions.
 */
#include "var/version.h"

#include "base/assert.h"
#include "reclaim/magazine.h"
#include "var/box.h"
#include "var/commit.h"
#include "var/kind.h"

_Alignas(WEIRI_APART) _Atomic(uint64_t) weiri_clock = 1;

enum { BLOCK = (sizeof(struct weiri_version) + WEIRI_LINE - 1) / WEIRI_LINE * WEIRI_LINE };

static WEIRI_NOINLINE void free_without_box(struct weiri_version *version)
{
	weiri_value_release(version->value);
	weiri_block_release(&version->allocator, version, BLOCK);
}

void weiri_version_reclaim(struct weiri_retired *object)
{
	struct weiri_version *version = WEIRI_CONTAINER_OF(object, struct weiri_version, retired);
	struct weiri_record *record = weiri_record_mine;

	if (WEIRI_LIKELY(record != NULL))
		weiri_count(&record->freed_versions, 1);
	if (WEIRI_LIKELY(version->box_lines != 0))
		weiri_box_release(record, (struct weiri_box *)(void *)version);
	else
		free_without_box(version);
}

struct weiri_version *weiri_version_create(struct weiri_record *record, const weir_var *var, struct weiri_value *value,
                                           void *shown)
{
	struct weiri_version *version = weiri_block_allocate(record, &var->allocator, BLOCK);

	if (version == NULL)
		return NULL;
	weiri_version_init(record, version, var, value, BLOCK + weiri_value_footprint(value));
	version->shown = shown;
	return version;
}

struct weiri_version *weiri_version_of_retired(struct weiri_retired *object)
{
	return object->reclaim == weiri_version_reclaim ? WEIRI_CONTAINER_OF(object, struct weiri_version, retired) : NULL;
}

void weiri_version_discard(struct weiri_version *version)
{
	weiri_version_reclaim(&version->retired);
}

uint64_t weiri_version_resolve_slowly(struct weiri_version *version)
{
	uint64_t stamp;

	if (version->commit == NULL)
		return weiri_stamp_now(&version->stamp, WEIRI_STAMP_NONE);
	/* The caller found no stamp. As long as there is none, the cell exists: S2. */
	stamp = weiri_commit_resolve(version->commit);
	if (stamp != WEIRI_STAMP_NONE)
		/* [P2 release] all threads that resolve write the same value. */
		weiri_store_release(&version->stamp, stamp);
	return stamp;
}
