/*
 * mean.c - a mean: the number of added values and their sum, read so that both are of the same
 * values.
 *
 * Algorithm. An own stripe (stripes.h) holds the count n and the last SUMS sums: the sum of the
 * first n values is at n % SUMS. The owner writes the next sum, then the count. A reader reads the
 * count, the sum that belongs to it, and the count again. If the count has advanced by less than
 * SUMS - 1, the sum has not been overwritten. So a reader does not wait for an owner that is
 * stalled between its two stores, as it would with a sequence lock. A read fails only if the owner
 * adds SUMS - 1 values between two loads.
 * Threads beyond the own stripes share some stripes. There, a CAS loop updates the sum, and then
 * the count is incremented. Nothing ensures that a reader sees both as of the same moment.
 * Source: a sequence counter over several copies is known from Linux (seqcount_latch_t).
 *
 *     own       | n | sum of n % SUMS == 0 | == 1 | ... |
 *     shared    | n | sum | unused ...
 *
 * Pairs
 *   P1  count(add) -> count(read): the sum of this many values, or a later sum in its place
 *   P2  sum(add) -> sum(read): the counts before it, so that the second read of the count reveals a
 *       sum that is too new
 * Why a pair that passes the check is consistent. The first read sees n, so the place holds the sum
 * of n values or a later one (P1). The first later one is of n + SUMS values. If the reader sees
 * that sum or a later one, then by P2 its second read of the count sees at least n + SUMS - 1, and
 * the check fails.
 * Progress: adding is wait-free on an own stripe (4 accesses), lock-free on a shared one. Reading
 * is wait-free: it makes at most ATTEMPTS times 3 loads for each stripe. If no attempt succeeds, it
 * uses the last sum that it read, which is of more values than the count.
 * Checked: stress/model/check_metrics.c (SUMS is 2 there), tests/test_metrics.c (an owner stopped
 * at each instruction).
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

enum weir_status weir_mean_destroy(weir_mean *mean, weir_error *error)
{
	(void)error; /* it never fails */
	weiri_stripes_destroy(mean != NULL ? &mean->stripes : NULL);
	return WEIR_OK;
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
	/* [relaxed] only this thread writes while it has the record (S1). */
	uint64_t n = weiri_load_relaxed(&words[COUNT]);
	double sum = double_of(weiri_load_relaxed(&words[FIRST_SUM + n % SUMS])) + value;

	/* [P2 release] pairs with read_alone(). */
	weiri_store_release(&words[FIRST_SUM + (n + 1) % SUMS], bits_of(sum));
	/* [P1 release] pairs with read_alone(). */
	weiri_store_release(&words[COUNT], n + 1);
}

static WEIRI_COLD void add_shared(_Atomic(uint64_t) *words, double value)
{
	/* [relaxed] a number; the CAS checks it. */
	uint64_t sum = weiri_load_relaxed(&words[FIRST_SUM]);

	/* [relaxed] published by the count. */
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
		/* [relaxed] ordered after that acquire: see above. */
		if (weiri_load_relaxed(&words[COUNT]) - read.count < SUMS - 1)
			break;
	}
	return read;
}

static struct weir_mean_value read_shared(const _Atomic(uint64_t) *words)
{
	struct weir_mean_value read;

	read.count = weiri_load_acquire(&words[COUNT]); /* [P1 acquire] pairs with add_shared() */
	/*
	 * [relaxed] By P1 the sum contains the counted values, since each CAS keeps the sum that it
	 * replaces.
	 */
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
