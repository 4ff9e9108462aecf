/*
 * block.h - the memory of versions and commits: blocks of whole cache lines.
 */
#ifndef WEIRI_VAR_BLOCK_H
#define WEIRI_VAR_BLOCK_H

#include "base/compiler.h"
#include "base/memory.h"
#include "reclaim/record.h"

/* Rounds up to whole lines, of which a block consists. */
static inline size_t weiri_block_size(size_t bytes)
{
	return (bytes + WEIRI_LINE - 1) / WEIRI_LINE * WEIRI_LINE;
}

/* Returns a block of `size` bytes, a multiple of a line; NULL if there is no memory. */
static inline void *weiri_block_allocate(struct weiri_record *record, const weir_allocator *allocator, size_t size)
{
	(void)record;
	return weiri_allocate(allocator, size, WEIRI_LINE);
}

/* Gives a block back, on any thread. */
static inline void weiri_block_release(const weir_allocator *allocator, void *block, size_t size)
{
	weiri_release(allocator, block, size, WEIRI_LINE);
}

#endif
