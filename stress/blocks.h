/*
 * blocks.h - a lock-free allocator over one arena, for scenarios in which a thread may be stopped,
 * or the process forked, anywhere.
 *
 * malloc() may hold a lock at that moment, and would then block the other threads. Freed blocks are
 * reused last in, first out, so addresses recur immediately. This reveals code that confuses an old
 * object with a new one at the same address.
 */
#ifndef STRESS_BLOCKS_H
#define STRESS_BLOCKS_H

#include <weir/alloc.h>

/* Returns NULL when 64 MiB are in use, and for more than 128 KiB or an alignment above 1024. */
const weir_allocator *stress_blocks(void);
/* Bytes allocated, in whole blocks. */
unsigned long long stress_blocks_bytes(void);

#endif
