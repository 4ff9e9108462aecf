/*
 * stall.h - which threads keep memory from being freed, and for how long: handles on replaced
 * objects, sections that do not end.
 *
 * Only a collector may look at the object that a slot names: while the collector holds the object,
 * no other thread frees it. So this search is a collection of what all threads have retired. It
 * records the objects that it could not free. It misses those that other collectors hold meanwhile.
 */
#ifndef WEIRI_RECLAIM_STALL_H
#define WEIRI_RECLAIM_STALL_H

#include "reclaim/collect.h"

enum { WEIRI_MOST_STALLS = 64 };

struct weiri_stall {
	bool is_section;
	bool is_host;    /* the section is that of a host; `thread` is 0 */
	uint32_t thread; /* the owner of the slot or section; 0: it has ended */
	uint64_t age_ns; /* a lower bound */
	uint64_t bytes;  /* of the object; 0: a section */
	/* of a section: how many read sections are open on its thread; 0: it belongs to a call */
	uint32_t read_sections;
	uint64_t what[2]; /* filled in by weiri_stall_describe */
};

struct weiri_stalls {
	size_t found; /* the first WEIRI_MOST_STALLS of them are in stall[] */
	struct weiri_stall stall[WEIRI_MOST_STALLS];
};

/* Adds what the layer above knows about the object. Called while a collector holds the object. */
typedef void weiri_stall_describe(struct weiri_retired *object, struct weiri_stall *stall);

/*
 * Collects what all threads have retired, and records which objects have been held, and which
 * sections have lasted, for limit_ns. Must not be called while this thread collects. Lock-free.
 */
void weiri_stalls_look(struct weiri_record *record, uint64_t limit_ns, weiri_stall_describe *describe,
                       struct weiri_stalls *stalls);

/* Searches for the stalls and reports them. */
typedef void weiri_stalls_due(struct weiri_record *record, uint64_t limit_ns);
/*
 * From now on, calls due() on a thread that has collected, at most once in limit_ns. A limit_ns of
 * 0 turns this off.
 */
void weiri_stalls_set_due(uint64_t limit_ns, weiri_stalls_due *due);
/* Called by collect() at its end. */
void weiri_stalls_after_collection(struct weiri_record *record);

#endif
