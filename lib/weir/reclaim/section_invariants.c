/*
 * section_invariants.c - checks that a thread's section obeys the invariants of section.h.
 */
#include "reclaim/section.h"

#include "base/assert.h"

#if WEIR_ASSERT_LEVEL >= 2

/* Called by the owner, which alone writes lo and hi. */
WEIRI_UNSEEN void weiri_section_assert_entered(const struct weiri_record *record)
{
	WEIR_ASSERT2(I1, weiri_peek(&record->lo) != 0); /* in a section */
	WEIR_ASSERT2(I2, weiri_peek(&record->lo) <= weiri_peek(&record->hi));
	WEIR_ASSERT2(I3, weiri_peek(&record->lo) <= weiri_peek(&weiri_era));
	/* N1 of announce.h */
	WEIR_ASSERT2(N1, weiri_peek(&record->fenced) == 0 || weiri_peek(&record->announced) != 0);
}

#else
typedef int weiri_section_asserts_nothing;
#endif
