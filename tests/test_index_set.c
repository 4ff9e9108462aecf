/*
 * test_index_set.c - sets of numbers: an added number can be taken once, near an index or at
 * random, whatever the counts say.
 */
#include <criterion/criterion.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "queue/index_set.h"

/*
 * Limits for no counts, one level of counts, and two. The last word and the last nodes are full in
 * some of them.
 */
static const size_t limits[] = {1, 63, 64, 65, 4096, 4097, 5000, 262144, 262145, 300000};
enum { LIMITS = sizeof(limits) / sizeof(limits[0]) };

static void *make(struct weiri_index_set *set, size_t limit, int full)
{
	void *memory = calloc(1, weiri_index_set_size(limit));

	cr_assert_not_null(memory);
	weiri_index_set_init(set, memory, limit, full);
	return memory;
}

static void expect_counts(const struct weiri_index_set *set, size_t members)
{
	for (unsigned l = 0; l < set->levels; l++) {
		size_t sum = 0, words = l == 0 ? 64 : 4096;

		for (size_t i = 0; i < (set->words + words - 1) / words; i++)
			sum += weiri_load_relaxed(&set->counts[l][i]);
		cr_assert_eq(sum, members, "level %u of %zu", l, set->limit);
	}
}

enum how { NEAR, RANDOM };
enum { DRAWS = 1000 };

/*
 * Takes all numbers of a full set, and adds them again in the order in which they came out, twice.
 */
static void take_all(size_t limit, enum how how)
{
	struct weiri_draws draws = {.seed = 7};
	struct weiri_index_set set;
	void *memory = make(&set, limit, 1);
	size_t *taken = malloc(limit * sizeof(*taken));
	char *seen = malloc(limit);

	cr_assert(taken != NULL && seen != NULL);
	for (int round = 0; round < 2; round++) {
		memset(seen, 0, limit);
		for (size_t i = 0; i < limit; i++) {
			taken[i] = how == NEAR ? weiri_index_set_take_near(&set, i * 7919 % limit)
			                       : weiri_index_set_take_random(&set, &draws, limit - i);
			cr_assert(taken[i] < limit && !seen[taken[i]], "%zu of %zu", taken[i], limit);
			seen[taken[i]] = 1;
		}
		expect_counts(&set, 0);
		for (size_t i = 0; i < limit; i++)
			weiri_index_set_add(&set, taken[i]);
		expect_counts(&set, limit);
	}
	free(taken);
	free(seen);
	free(memory);
}

Test(index_set, a_full_set_gives_each_number_once)
{
	for (size_t i = 0; i < LIMITS; i++) {
		take_all(limits[i], NEAR);
		take_all(limits[i], RANDOM);
	}
}

Test(index_set, near_is_in_the_same_word_when_there_is_one)
{
	struct weiri_index_set set;
	void *memory = make(&set, 300000, 0);

	weiri_index_set_add(&set, 10);
	weiri_index_set_add(&set, 128005);
	weiri_index_set_add(&set, 128020);
	cr_expect_eq(weiri_index_set_take_near(&set, 128000) / 64, 128000 / 64);
	cr_expect_eq(weiri_index_set_take_near(&set, 128063) / 64, 128000 / 64);
	cr_expect_eq(weiri_index_set_take_near(&set, 128000), 10, "a number far away is found by the counts");
	free(memory);
}

/*
 * As if threads were stopped between a count and its bit: every part of the set seems to contain
 * something.
 */
Test(index_set, counts_that_are_too_large_mislead_nobody_for_long)
{
	for (size_t i = 0; i < LIMITS; i++) {
		struct weiri_draws draws = {.seed = 1};
		struct weiri_index_set set;
		void *memory = make(&set, limits[i], 0);

		for (size_t word = 0; word < set.words; word++) {
			size_t node = word;

			for (unsigned l = 0; l < set.levels; l++)
				(void)weiri_fetch_add_relaxed(&set.counts[l][node /= 64], 3u);
		}
		for (size_t n = 0; n < 40; n++) {
			size_t index = n * 104729 % limits[i];

			weiri_index_set_add(&set, index);
			cr_assert_eq(weiri_index_set_take_random(&set, &draws, 1), index);
			weiri_index_set_add(&set, index);
			cr_assert_eq(weiri_index_set_take_near(&set, 0), index);
		}
		free(memory);
	}
}

/* As if the counts missed a bit, as a thread may see them for a while. */
Test(index_set, counts_that_are_too_small_hide_nothing)
{
#if WEIR_ASSERT_LEVEL > 0
	cr_skip("S2 of index_set.h is asserted, and the take lowers counts that are 0");
#endif
	for (size_t i = 0; i < LIMITS; i++) {
		struct weiri_draws draws = {.seed = 1};
		struct weiri_index_set set;
		void *memory = make(&set, limits[i], 0);
		size_t index = limits[i] - 1;

		weiri_index_set_add(&set, index);
		for (unsigned l = 0, node = (unsigned)(index / 64); l < set.levels; l++)
			(void)weiri_fetch_sub_relaxed(&set.counts[l][node /= 64], 1u);
		cr_assert_eq(weiri_index_set_take_random(&set, &draws, 0), index);
		free(memory);
	}
}

/*
 * Draws one of two numbers, again and again. Returns how often it was the first. The counts are
 * right, or as a stopped take left them.
 */
static size_t times_first(size_t limit, const size_t two[2], size_t stale_node, uint32_t stale)
{
	struct weiri_draws draws = {.seed = 3};
	struct weiri_index_set set;
	void *memory = make(&set, limit, 0);
	size_t first = 0;

	for (int i = 0; i < 2; i++)
		weiri_index_set_add(&set, two[i]);
	if (stale != 0)
		(void)weiri_fetch_add_relaxed(&set.counts[set.levels - 1][stale_node], stale);
	for (size_t i = 0; i < DRAWS; i++) {
		size_t drawn = weiri_index_set_take_random(&set, &draws, 2);

		cr_assert(drawn == two[0] || drawn == two[1], "%zu of %zu", drawn, limit);
		first += drawn == two[0];
		weiri_index_set_add(&set, drawn);
	}
	free(memory);
	return first;
}

static void expect_about_half(size_t first, size_t limit)
{
	cr_expect(first > DRAWS * 4 / 10 && first < DRAWS * 6 / 10, "%zu of %d draws, of %zu", first, DRAWS, limit);
}

Test(index_set, each_of_two_is_as_likely_as_the_other_wherever_they_are)
{
	for (size_t i = 1; i < LIMITS; i++) {
		expect_about_half(times_first(limits[i], (size_t[]){0, limits[i] - 1}, 0, 0), limits[i]);
		expect_about_half(times_first(limits[i], (size_t[]){limits[i] - 1, limits[i] / 2}, 0, 0), limits[i]);
	}
}

/*
 * A take that was stopped had lowered the count of its words, but not yet the one above. No number
 * becomes more likely by that.
 */
Test(index_set, each_of_two_is_as_likely_as_the_other_beside_a_take_that_was_stopped)
{
	expect_about_half(times_first(300000, (size_t[]){266240, 286720}, 0, 1), 300000);
	expect_about_half(times_first(300000, (size_t[]){266240, 286720}, 0, 3), 300000);
	expect_about_half(times_first(300000, (size_t[]){0, 200000}, 1, 3), 300000);
}

enum { THREADS = 4, ROUNDS = 20000, LIMIT = 9000, MEMBERS = 40 };

struct crew {
	struct weiri_index_set set;
	struct weiri_draws draws;
	int holder[LIMIT]; /* plain: the add and the take of the number publish it */
};

static void *move_about(void *context)
{
	struct crew *crew = context;

	for (int i = 0; i < ROUNDS; i++) {
		size_t index = (i & 1) != 0 ? weiri_index_set_take_random(&crew->set, &crew->draws, MEMBERS)
		                            : weiri_index_set_take_near(&crew->set, (size_t)i * 31 % LIMIT);

		if (crew->holder[index]++ != 0)
			return crew;
		crew->holder[index] = 0;
		weiri_index_set_add(&crew->set, index);
	}
	return NULL;
}

Test(index_set, whoever_takes_a_number_has_it_alone)
{
	static struct crew crew;
	void *memory = make(&crew.set, LIMIT, 0), *wrong;
	pthread_t threads[THREADS];

	for (size_t i = 0; i < MEMBERS; i++)
		weiri_index_set_add(&crew.set, i * 211 % LIMIT);
	for (int i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, move_about, &crew), 0);
	for (int i = 0; i < THREADS; i++) {
		cr_assert_eq(pthread_join(threads[i], &wrong), 0);
		cr_expect_null(wrong);
	}
	expect_counts(&crew.set, MEMBERS);
	free(memory);
}
