/*
 * commit.h - the cell that decides for several versions at once.
 */
#ifndef WEIRI_VAR_COMMIT_H
#define WEIRI_VAR_COMMIT_H

#include <weir/value.h>

#include "reclaim/scope.h"
#include "var/version.h"

/* States of a cell (commit.c); any other value is its stamp (from 2 on, and below WEIRI_COMMIT_PASSED). */
#define WEIRI_COMMIT_INSTALLING UINT64_C(0)
#define WEIRI_COMMIT_READY UINT64_C(1)
#define WEIRI_COMMIT_PASSED (UINT64_MAX - 1)
#define WEIRI_COMMIT_ABORTED WEIRI_STAMP_ABORTED

struct weiri_commit_part {
	weir_var *var;
	struct weiri_version *version;
	uint64_t expected; /* number of the version on which this part is built, or WEIRI_ANY_VERSION */
};

struct weiri_commit {
	struct weiri_retired retired;
	_Atomic(uint64_t) state;
	_Atomic(size_t) moved; /* when ABORTED: a part whose variable had moved */
	size_t count;
	weir_allocator allocator;
	struct weiri_commit_part parts[]; /* in address order of var */
};

/* What a caller wants to commit: one of the two arrays. */
struct weiri_parts {
	const struct weir_commit_part *of_tensors;
	const struct weir_value_part *of_values;
	size_t count;
};

/* Returns part i, which it makes in *made if the parts have tensors. */
static inline const struct weir_value_part *weiri_part(const struct weiri_parts *parts, size_t i,
                                                       struct weir_value_part *made)
{
	const struct weir_commit_part *part = parts->of_tensors;

	if (part == NULL)
		return &parts->of_values[i];
	*made = (struct weir_value_part){part[i].var, part[i].expected, weir_value_tensor(part[i].value)};
	return made;
}

static inline weir_var *weiri_part_var(const struct weiri_parts *parts, size_t i)
{
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): one of the two arrays is there. */
	return parts->of_tensors != NULL ? parts->of_tensors[i].var : parts->of_values[i].var;
}

static inline bool weiri_part_is_mark(const struct weiri_parts *parts, size_t i)
{
	const void *value = parts->of_tensors != NULL ? parts->of_tensors[i].value : parts->of_values[i].value.data;

	return value == NULL;
}

/* Why a commit failed. */
struct weiri_moved {
	const weir_var *var; /* NULL: the commit did not fail */
	uint64_t expected, found;
};

/*
 * Publishes all parts at one instant, or none of them. A part without a value is a *mark*: it
 * requires that the variable is at the expected version at that instant, and leaves it there. A
 * part that expects WEIRI_ANY_VERSION replaces any version. The caller has checked the values, and
 * the write is admitted. On success published[], if not NULL, are handles on the versions. On
 * failure the pointers in the parts are the caller's. Returns WEIR_ABORTED if a variable was not at its expected version, which
 * *moved then describes; WEIR_INVALID_ARGUMENT if moved->var occurs twice; and
 * WEIR_RESOURCE_EXHAUSTED if there is no memory. Lock-free after its allocations.
 */
enum weir_status weiri_commit(struct weiri_record *record, const struct weiri_parts *parts, weir_read published[],
                              struct weiri_moved *moved);

/*
 * Returns a commit that is not shared yet, or NULL if there is no memory. Its versions have their
 * own references of the values, and no bases yet.
 */
struct weiri_commit *weiri_commit_create(struct weiri_record *record, const struct weir_commit_part parts[],
                                         size_t count);
/*
 * Called in a section by the thread that shared the commit, once, after it was decided. Afterwards
 * no thread needs the cell, which the caller must still retire.
 */
void weiri_commit_end(struct weiri_scope *scope, struct weiri_commit *commit);
/* Retires the cell, not the versions, after weiri_commit_end(). It dies late: S2 of version.h. */
static inline void weiri_commit_retire(struct weiri_scope *scope, struct weiri_commit *commit)
{
	commit->retired.death = WEIRI_DIES_LATE;
	weiri_scope_retire(scope, &commit->retired);
}
/* Frees the cell, not the versions. */
void weiri_commit_free(struct weiri_commit *commit);

/*
 * Called in a section. Returns the stamp of the commit, WEIRI_COMMIT_ABORTED, or WEIRI_STAMP_NONE
 * while its parts are being installed; then its instant comes after this call. Stamps a READY cell.
 * Wait-free.
 */
uint64_t weiri_commit_resolve(struct weiri_commit *commit);

#endif
