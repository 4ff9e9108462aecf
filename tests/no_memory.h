/*
 * no_memory.h - an allocator that has no memory when the test says so, for records.
 *
 * Records come from the default allocator, which uses the sized calls of jemalloc if the process has
 * them. A program that includes this file defines these calls. The low bits of flags are the
 * logarithm of the alignment.
 */
#ifndef NO_MEMORY_H
#define NO_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/atomic.h"

static _Atomic(uint32_t) no_memory;

void *mallocx(size_t size, int flags);
void sdallocx(void *memory, size_t size, int flags);

void *mallocx(size_t size, int flags)
{
	size_t alignment = (size_t)1 << (flags & 63);
	void *memory = NULL;

	/* [relaxed] a setting */
	if (weiri_load_relaxed(&no_memory) != 0)
		return NULL;
	return posix_memalign(&memory, alignment < sizeof(void *) ? sizeof(void *) : alignment, size) == 0 ? memory : NULL;
}

void sdallocx(void *memory, size_t size, int flags)
{
	(void)size, (void)flags;
	free(memory);
}

#endif
