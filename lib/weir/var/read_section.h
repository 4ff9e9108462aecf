/*
 * read_section.h - the record of a section that a program has begun (read_section.c).
 */
#ifndef WEIRI_VAR_READ_SECTION_H
#define WEIRI_VAR_READ_SECTION_H

#include <weir/read_section.h>

#include "reclaim/record.h"

/* Returns true if the section is open, on whichever thread: R2 of read_section.c. */
static inline bool weiri_read_section_is_open(const weir_read_section *section)
{
	const struct weiri_record *record = section->record;

	return record != NULL && section->reserved != &record->shut;
}

/* Returns the record in which the section is open, or NULL if it is not open on this thread. */
static inline struct weiri_record *weiri_read_section_record(const weir_read_section *section)
{
	struct weiri_record *mine = weiri_record_mine;

	return section->record == mine && weiri_read_section_is_open(section) ? mine : NULL;
}

#endif
