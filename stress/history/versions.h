/*
 * versions.h - what was read and published, sorted by variable and version.
 */
#ifndef HISTORY_VERSIONS_H
#define HISTORY_VERSIONS_H

#include "history/order.h"

/*
 * One part of an operation, seen from the version that it published or read. An operation that does
 * both has two entries.
 */
struct history_entry {
	uint64_t object, version, value;
	uint32_t op;
	uint32_t reads; /* 0: it published the version; sorts before the reads of the version */
};

struct history_versions {
	struct history_entry *entry; /* by object, version, reads */
	size_t count;
};

/*
 * Sorts what HISTORY_READ and HISTORY_WRITE did. HISTORY_VIOLATED: "version twice", "version
 * missing", "value", "not based". history_versions_fini() must be called in any case.
 */
enum history_verdict history_versions_init(struct history_versions *versions, const struct history *history,
                                           uint64_t initial, struct history_finding *finding);
void history_versions_fini(struct history_versions *versions);
/* Returns the first entry after this object's version; versions->count: there is none. */
size_t history_versions_behind(const struct history_versions *versions, uint64_t object, uint64_t version);

#endif
