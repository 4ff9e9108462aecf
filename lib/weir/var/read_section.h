/*
 * read_section.h - the record of a section that a program has begun (read_section.c).
 */
#ifndef WEIRI_VAR_READ_SECTION_H
#define WEIRI_VAR_READ_SECTION_H

#include <weir/read_section.h>

#include "reclaim/record.h"

/* Returns the record in which the section is open, or NULL if it is not open on this thread. */
static inline struct weiri_record *weiri_read_section_record(const weir_read_section *section)
{
	struct weiri_record *record = section->record;

	return record != NULL && record == weiri_record_mine ? record : NULL;
}

#endif
