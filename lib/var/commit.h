/*
 * commit.h - the cell that decides for several versions at once.
 */
#ifndef WEIRI_VAR_COMMIT_H
#define WEIRI_VAR_COMMIT_H

#include "var/version.h"

/* States of a cell; any other value is its stamp (stamps are at least 2). */
#define WEIRI_COMMIT_INSTALLING UINT64_C(0)
#define WEIRI_COMMIT_READY UINT64_C(1)
#define WEIRI_COMMIT_ABORTED WEIRI_STAMP_ABORTED

struct weiri_commit_part {
	weir_var *var;
	struct weiri_version *version;
	uint64_t expected; /* number of the version that this part is built on */
};

struct weiri_commit {
	struct weiri_retired retired;
	_Atomic(uint64_t) state;
	_Atomic(size_t) moved; /* when ABORTED: a part whose variable had moved on */
	size_t count;
	weir_allocator allocator;
	struct weiri_commit_part parts[]; /* in address order of var */
};

/* In a section. Its stamp, ABORTED, or WEIRI_STAMP_NONE while parts are being installed. Stamps a READY cell. Wait-free. */
uint64_t weiri_commit_settle(struct weiri_commit *commit);

#endif
