/*
 * blocks.h - a lock-free allocator over one arena, for scenarios in which a thread may be stopped, or the process forked, anywhere.
 *
 * malloc may hold a lock at that moment, and then it is malloc that stops the others. Freed blocks come back last in, first out, so
 * addresses are used again at once: what confuses an old object with a new one at its place shows.
 */
#ifndef STRESS_BLOCKS_H
#define STRESS_BLOCKS_H

#include <weir/alloc.h>

/* NULL from it when 64 MiB are in use, or for more than 128 KiB or an alignment above 1024. */
const weir_allocator *stress_blocks(void);
/* Bytes given out, in whole blocks. */
unsigned long long stress_blocks_bytes(void);

#endif
