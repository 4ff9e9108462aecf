/*
 * place.h - at which of several equal places a thread begins to search: usually its own.
 */
#ifndef WEIRI_RING_PLACE_H
#define WEIRI_RING_PLACE_H

#include "reclaim/record.h"
#include "ring/layout.h"

enum { WEIRI_PLACE_BITS = 6 };

/* Returns a number below 2^WEIRI_PLACE_BITS that mostly differs from thread to thread. */
#if defined(WEIRI_UNDER_MODEL) /* stress/model: a scope sets which threads begin at the same place */
static inline size_t weiri_first_place(void)
{
	return weiri_ring_first_place;
}
#else
static WEIRI_ALWAYS_INLINE size_t weiri_first_place(void)
{
	/* The address differs from thread to thread. */
	return (size_t)(((uintptr_t)&weiri_record_mine >> 6) * UINT64_C(0x9E3779B97F4A7C15) >> (64 - WEIRI_PLACE_BITS));
}
#endif

#endif
