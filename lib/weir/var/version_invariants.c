/*
 * version_invariants.c - checks that a version obeys the invariants of version.h.
 */
#include "var/version.h"

#include "base/assert.h"

#if WEIR_ASSERT_LEVEL >= 2

/* The caller, or the thread that gave it the version, has resolved `base`. */
WEIRI_UNSEEN void weiri_version_assert_fits(const struct weiri_version *version, const struct weiri_version *base)
{
	WEIR_ASSERT2(V2, weiri_stamp_is_committed(weiri_peek(&base->stamp)));
	WEIR_ASSERT2(V2, version->base == base);
	WEIR_ASSERT2(V2, version->number == base->number + !version->is_mark);
	WEIR_ASSERT2(V2, version->position == base->position + 1);
}

WEIRI_UNSEEN void weiri_version_assert_first_time(const struct weiri_version *version)
{
	WEIR_ASSERT3(V1, weiri_peek(&version->seen_at_head) == 0);
}

WEIRI_UNSEEN void weiri_version_assert_stamped(const struct weiri_version *version)
{
	WEIR_ASSERT2(V5, weiri_stamp_is_committed(weiri_peek(&version->stamp)));
}

WEIRI_UNSEEN void weiri_stamp_assert_near(uint64_t stamp)
{
	WEIR_ASSERT2(V3, !weiri_stamp_is_committed(stamp) || stamp - 1 <= weiri_peek(&weiri_clock));
}

#else
typedef int weiri_version_asserts_nothing;
#endif
