/*
 * stall.h - who keeps memory from being freed, and for how long: handles on what was replaced, sections that do not end.
 *
 * Only a collector may look at what a slot names: while it has the object in its hands nobody frees it. So a look is a collection of what
 * all threads have retired, which notes what it could not free. What other collectors have in their hands meanwhile is missed.
 */
#ifndef WEIRI_RECLAIM_STALL_H
#define WEIRI_RECLAIM_STALL_H

#include "reclaim/collect.h"

enum { WEIRI_MOST_STALLS = 64 };

struct weiri_stall {
	int is_section;
	uint32_t thread;  /* the owner of the slot or section; 0: has ended */
	uint64_t age_ns;  /* at least */
	uint64_t bytes;   /* of the object; 0: a section */
	uint64_t what[2]; /* filled in by weiri_stall_describe */
};

struct weiri_stalls {
	size_t found; /* the first of them, at most WEIRI_MOST_STALLS, are in stall[] */
	struct weiri_stall stall[WEIRI_MOST_STALLS];
};

/* What the layer above knows of the object; called while a collector has it in its hands. */
typedef void weiri_stall_describe(struct weiri_retired *object, struct weiri_stall *stall);

/* Collects for everybody, and notes what has been held for limit_ns. Not while this thread collects. Lock-free. */
void weiri_stalls_look(struct weiri_record *record, uint64_t limit_ns, weiri_stall_describe *describe,
                       struct weiri_stalls *stalls);

/* Looks and tells whoever wants to know. */
typedef void weiri_stalls_due(struct weiri_record *record, uint64_t limit_ns);
/* From now on, on a thread that has collected, at most once in limit_ns: due(). 0: no more. */
void weiri_stalls_set_due(uint64_t limit_ns, weiri_stalls_due *due);
/* By collect(), when it has ended. */
void weiri_stalls_after_collection(struct weiri_record *record);

#endif
