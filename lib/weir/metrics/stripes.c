/*
 * stripes.c - memory for stripes.
 */
#include "metrics/stripes.h"

#include "base/error.h"
#include "base/memory.h"

struct weiri_stripes *weiri_stripes_create(const char *what, size_t threads, size_t words,
                                           const weir_allocator *allocator, enum weir_status *status, weir_error *error)
{
	weir_allocator from = weiri_allocator_or_default(allocator);
	size_t own = threads != 0 ? threads : WEIR_METRICS_DEFAULT_THREADS;
	size_t stride = (words * sizeof(uint64_t) + WEIRI_APART - 1) / WEIRI_APART * WEIRI_APART, size;
	struct weiri_stripes *stripes = NULL;

	if (own > WEIR_METRICS_MAX_THREADS) {
		*status = weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: %zu threads, expected at most %d", what, own,
		                     WEIR_METRICS_MAX_THREADS);
		return NULL;
	}
	if (weiri_multiply(stride, own + WEIRI_SHARED_STRIPES, &size) && weiri_add(size, sizeof(*stripes), &size))
		stripes = weiri_allocate_zeroed(&from, size, WEIRI_APART);
	if (stripes == NULL) {
		*status = weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "%s: no memory for %zu lines of %zu bytes", what,
		                     own + WEIRI_SHARED_STRIPES, stride);
		return NULL;
	}
	*stripes = (struct weiri_stripes){.stride = stride, .size = size, .own = (uint32_t)own, .allocator = from};
	return stripes;
}

void weiri_stripes_destroy(struct weiri_stripes *stripes)
{
	if (stripes != NULL) {
		weir_allocator allocator = stripes->allocator;

		weiri_release(&allocator, stripes, stripes->size, WEIRI_APART);
	}
}

#if WEIR_ASSERT_LEVEL >= 2

WEIRI_UNSEEN void weiri_stripe_assert_own(const _Atomic(uint64_t) *word, uint64_t written)
{
	WEIR_ASSERT2(S1, weiri_peek(word) == written);
}

#endif
