/*
 * assert.h - invariants, asserted by name.
 *
 * WEIR_ASSERT_LEVEL: 0 none (the default), 1 cheap, 2 reads shared state, 3 walks structures. A
 * failed assertion aborts, so only test builds set a level: a release build never ends its host.
 *
 * An assertion that reads shared state is no step of the algorithm. It stands in a function that is
 * WEIRI_UNSEEN and named assert_..., which reads atomics by weiri_peek(). The model checker does
 * not see the accesses of such a function. So the assertion adds no executions, and each peek finds
 * the newest value. In other builds a peek is a relaxed load. There, a caller may follow a pointer
 * that a peek found only if it has synchronized with the thread that wrote it.
 *
 * scripts/check_invariants compares the names with those of the essays.
 */
#ifndef WEIRI_ASSERT_H
#define WEIRI_ASSERT_H

#include "base/compiler.h"

#ifndef WEIR_ASSERT_LEVEL
#define WEIR_ASSERT_LEVEL 0
#endif

WEIRI_SHARED_BY_ASSERTIONS void weiri_assert_failed(const char *invariant, const char *condition, const char *file,
                                                    int line) __attribute__((noreturn, cold));

/*
 * `said` is the text of the condition, made by the outer macro: here the argument has been
 * expanded.
 */
#define WEIRI_ASSERT_AT(level, invariant, condition, said) \
	do { \
		if (WEIR_ASSERT_LEVEL >= (level) && !(condition)) \
			weiri_assert_failed(invariant, said, __FILE__, __LINE__); \
	} while (0)
#define WEIRI_ASSERT_CALL(level, call) \
	do { \
		if (WEIR_ASSERT_LEVEL >= (level)) \
			call; \
	} while (0)

#define WEIR_ASSERT1(invariant, condition) WEIRI_ASSERT_AT(1, #invariant, condition, #condition)
#define WEIR_ASSERT2(invariant, condition) WEIRI_ASSERT_AT(2, #invariant, condition, #condition)
#define WEIR_ASSERT3(invariant, condition) WEIRI_ASSERT_AT(3, #invariant, condition, #condition)
/*
 * Call a function that asserts. A look makes a few reads. A walk goes through a structure that no
 * other thread changes meanwhile.
 */
#define WEIR_ASSERT_LOOK(call) WEIRI_ASSERT_CALL(2, call)
#define WEIR_ASSERT_WALK(call) WEIRI_ASSERT_CALL(3, call)
/*
 * The same for a walk over words that other threads may be changing. Such a walk must read all
 * words at one instant. Only the model checker allows that: there, no other thread runs during the
 * walk.
 */
#if defined(WEIRI_UNDER_MODEL)
#define WEIR_ASSERT_INSTANT(call) WEIRI_ASSERT_CALL(3, call)
#define WEIRI_UNSEEN __attribute__((noinline, no_sanitize("thread")))
#else
#define WEIR_ASSERT_INSTANT(call) WEIRI_ASSERT_CALL(4, call)
#define WEIRI_UNSEEN
#endif

#endif
