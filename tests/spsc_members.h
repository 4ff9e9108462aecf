/*
 * spsc_members.h - the members of a ring for one producer and one consumer, those of lib/weir/ring/spsc.c.
 */
#ifndef SPSC_MEMBERS_H
#define SPSC_MEMBERS_H

#include <weir/alloc.h>

#include "base/atomic.h"
#include "base/memory.h"

struct spsc_side {
	_Atomic(size_t) index;
	size_t seen, fenced;
	_Atomic(uint64_t) refused;
};
struct spsc {
	size_t capacity, mask, memory_size;
	weir_allocator allocator;
	WEIRI_ALIGNED_APART struct spsc_side producer;
	WEIRI_ALIGNED_APART struct spsc_side consumer;
};

#endif
