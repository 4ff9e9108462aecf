/*
 * assert.h - invariants, asserted by name.
 *
 * WEIR_ASSERT_LEVEL: 0 none (the default), 1 cheap, 2 reads shared state, 3 walks structures. A failed assertion traps, so only
 * test builds set a level: a release build never aborts its host.
 */
#ifndef WEIRI_ASSERT_H
#define WEIRI_ASSERT_H

#ifndef WEIR_ASSERT_LEVEL
#define WEIR_ASSERT_LEVEL 0
#endif

void weiri_assert_failed(const char *invariant, const char *condition, const char *file, int line)
	__attribute__((noreturn, cold));

#define WEIRI_ASSERT_AT(level, invariant, condition) \
	do { \
		if (WEIR_ASSERT_LEVEL >= (level) && !(condition)) \
			weiri_assert_failed(#invariant, #condition, __FILE__, __LINE__); \
	} while (0)

#define WEIR_ASSERT1(invariant, condition) WEIRI_ASSERT_AT(1, invariant, condition)
#define WEIR_ASSERT2(invariant, condition) WEIRI_ASSERT_AT(2, invariant, condition)
#define WEIR_ASSERT3(invariant, condition) WEIRI_ASSERT_AT(3, invariant, condition)

#endif
