/*
 * wide.h - loops for processors with wider vectors than those that the library is compiled for.
 *
 * A function that is marked WEIRI_WIDE is compiled for AVX2, and is called if weiri_is_wide(). The
 * processor is asked at run time, so one library serves all. Only sums and differences of whole
 * values have such loops: they are as fast as their operands come from the cache, and take a tenth
 * less with vectors of 32 bytes. The results are the same bit for bit: each element is one addition,
 * and AVX2 alone brings no fused operations.
 *
 * ThreadSanitizer's builds have none: it instruments each access, so nothing is vectorised there.
 */
#ifndef WEIRI_TENSOR_WIDE_H
#define WEIRI_TENSOR_WIDE_H

#include <stdbool.h>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__SANITIZE_THREAD__)
#define WEIRI_WIDE __attribute__((target("avx2")))

static inline bool weiri_is_wide(void)
{
	return __builtin_cpu_supports("avx2") != 0;
}
#else
#define WEIRI_WIDE

static inline bool weiri_is_wide(void)
{
	return false;
}
#endif

#endif
