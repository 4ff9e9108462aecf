/*
 * mean.c - how many values were added, and their sum, so that both are of the same values.
 *
 * Algorithm. An own stripe (stripes.h) holds the count n and the last SUMS sums: that of the first n values at n % SUMS. The owner writes the
 * next sum, then the count. A reader reads the count, the sum that belongs to it, and the count again: when that has moved by less
 * than SUMS - 1, the sum has not been overwritten. So nobody waits for an owner that is stopped between its two stores, as with a
 * sequence lock, and a read fails only if the owner adds SUMS - 1 values between two loads.
 * Threads beyond the own stripes share some; there the sum is a CAS loop, then the count is added to: nothing holds them together.
 *
 *     own       | n | sum of n % SUMS == 0 | == 1 | ... |
 *     shared    | n | sum | unused ...
 *
 * Pairs
 *   P1  count(add) -> count(read): the sum of so many values, or a later one in its place
 *   P2  sum(add) -> sum(read): the counts before it, so that the second look at the count shows a sum that came too late
 * Why a pair that passes belongs together. The first look sees n, so the sum of n values is there, or a later one in its place (P1). The first
 * later one is of n + SUMS values; if the reader sees it or one after it, then by P2 its second look sees at least n + SUMS - 1.
 * Progress: adding is wait-free on an own stripe (4 accesses), lock-free on a shared one. Reading is wait-free: ATTEMPTS times 3 loads for
 * each stripe; after that it takes the sum as it is: of more values than the count.
 * Checked: stress/model/check_metrics.c (SUMS is 2 there), tests/test_metrics.c (an owner stopped at each instruction).
 */
#include <string.h>
#include <weir/metrics.h>

#include "metrics/options.h"
#include "metrics/stripes.h"

#ifdef WEIRI_UNDER_MODEL
enum { SUMS = 2, ATTEMPTS = 4 };
#else
enum { SUMS = 8, ATTEMPTS = 64 };
#endif
enum { COUNT = 0, FIRST_SUM = 1, WORDS = FIRST_SUM + SUMS };

struct weir_mean {
	struct weiri_stripes stripes;
};

enum weir_status weir_mean_create(const struct weir_metrics_options *options, weir_mean **out, weir_error *error)
{
	struct weiri_stripes *stripes;
	enum weir_status status = weiri_metrics_create("mean", options, WORDS, out, &stripes, error);

	if (status == WEIR_OK)
		*out = WEIRI_CONTAINER_OF(stripes, weir_mean, stripes);
	return status;
}

void weir_mean_destroy(weir_mean *mean)
{
	weiri_stripes_destroy(mean != NULL ? &mean->stripes : NULL);
}

static double double_of(uint64_t bits)
{
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static uint64_t bits_of(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static void add_alone(_Atomic(uint64_t) *words, double value)
{
	/* [relaxed] by nobody but this thread since it has the record (S1). */
	uint64_t n = weiri_load_relaxed(&words[COUNT]);
	double sum = double_of(weiri_load_relaxed(&words[FIRST_SUM + n % SUMS])) + value;

	weiri_store_release(&words[FIRST_SUM + (n + 1) % SUMS], bits_of(sum)); /* [P2 release] pairs with read_alone() */
	weiri_store_release(&words[COUNT], n + 1);                             /* [P1 release] pairs with read_alone() */
}

static WEIRI_COLD void add_shared(_Atomic(uint64_t) *words, double value)
{
	/* [relaxed] a number; the CAS checks it. */
	uint64_t sum = weiri_load_relaxed(&words[FIRST_SUM]);

	/* [relaxed] it is published by the count. */
	while (!weiri_cas_relaxed(&words[FIRST_SUM], &sum, bits_of(double_of(sum) + value)))
		;
	(void)weiri_fetch_add_release(&words[COUNT], 1u); /* [P1 release] pairs with read_shared() */
}

void weir_mean_add(weir_mean *mean, double value)
{
	struct weiri_stripe mine = weiri_stripe_mine(&mean->stripes);

	if (WEIRI_LIKELY(!mine.shared))
		add_alone(mine.words, value);
	else
		add_shared(mine.words, value);
}

static struct weir_mean_value read_alone(const _Atomic(uint64_t) *words)
{
	struct weir_mean_value read;

	for (int i = 0; i < ATTEMPTS; i++) {
		read.count = weiri_load_acquire(&words[COUNT]); /* [P1 acquire] pairs with add_alone() */
		/* [P2 acquire] pairs with add_alone(). */
		read.sum = double_of(weiri_load_acquire(&words[FIRST_SUM + read.count % SUMS]));
		/* [relaxed] after that acquire: above. */
		if (weiri_load_relaxed(&words[COUNT]) - read.count < SUMS - 1)
			break;
	}
	return read;
}

static struct weir_mean_value read_shared(const _Atomic(uint64_t) *words)
{
	struct weir_mean_value read;

	read.count = weiri_load_acquire(&words[COUNT]); /* [P1 acquire] pairs with add_shared() */
	/* [relaxed] at least what those so many added: P1, and a CAS keeps what it replaces. */
	read.sum = double_of(weiri_load_relaxed(&words[FIRST_SUM]));
	return read;
}

struct weir_mean_value weir_mean_read(const weir_mean *mean)
{
	const struct weiri_stripes *stripes = &mean->stripes;
	struct weir_mean_value all = {0, 0.0};

	for (uint32_t i = 0; i < weiri_stripes_count(stripes); i++) {
		const _Atomic(uint64_t) *words = weiri_stripe_at(stripes, i);
		struct weir_mean_value one = i < stripes->own ? read_alone(words) : read_shared(words);

		all.count += one.count;
		all.sum += one.sum;
	}
	return all;
}
