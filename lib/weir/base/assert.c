/*
 * assert.c - ends a test build that found a broken invariant. The model checker has its own
 * weiri_assert_failed(), which ends the execution.
 */
#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>

#if WEIR_ASSERT_LEVEL > 0 /* without assertions, the library does not even import abort() */

void weiri_assert_failed(const char *invariant, const char *condition, const char *file, int line)
{
	(void)fprintf(stderr, "%s:%d: invariant %s broken: %s\n", file, line, invariant, condition);
	abort();
}

#endif
