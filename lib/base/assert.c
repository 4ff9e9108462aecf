/*
 * assert.c - the end of a test build that found a broken invariant.
 */
#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>

#if WEIR_ASSERT_LEVEL > 0 /* a library without assertions does not even import what ends a process */

void weiri_assert_failed(const char *invariant, const char *condition, const char *file, int line)
{
	(void)fprintf(stderr, "%s:%d: invariant %s broken: %s\n", file, line, invariant, condition);
	abort();
}

#endif
