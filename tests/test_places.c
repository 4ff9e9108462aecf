/*
 * test_places.c - sets of numbers: what is added can be taken, once, near a place or at random, whatever the counts say.
 */
#include <criterion/criterion.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "queue/places.h"

/* No counts; one level of them; two. The last word and the last nodes are full, or are not. */
static const size_t limits[] = {1, 63, 64, 65, 4096, 4097, 5000, 262144, 262145, 300000};
enum { LIMITS = sizeof(limits) / sizeof(limits[0]) };

static void *make(struct weiri_places *places, size_t limit, int full)
{
	void *memory = calloc(1, weiri_places_size(limit));

	cr_assert_not_null(memory);
	weiri_places_init(places, memory, limit, full);
	return memory;
}

static void expect_counts(const struct weiri_places *places, size_t members)
{
	for (unsigned l = 0; l < places->levels; l++) {
		size_t sum = 0, words = l == 0 ? 64 : 4096;

		for (size_t i = 0; i < (places->words + words - 1) / words; i++)
			sum += weiri_load_relaxed(&places->counts[l][i]);
		cr_assert_eq(sum, members, "level %u of %zu", l, places->limit);
	}
}

enum how { NEAR, RANDOM };

/* Takes all that a full set has; adds them again in the order in which they came; and so on. */
static void take_all(size_t limit, enum how how)
{
	struct weiri_draws draws = {.seed = 7};
	struct weiri_places places;
	void *memory = make(&places, limit, 1);
	size_t *taken = malloc(limit * sizeof(*taken));
	char *seen = malloc(limit);

	cr_assert(taken != NULL && seen != NULL);
	for (int round = 0; round < 2; round++) {
		memset(seen, 0, limit);
		for (size_t i = 0; i < limit; i++) {
			taken[i] = how == NEAR ? weiri_places_take_near(&places, i * 7919 % limit)
			                       : weiri_places_take_random(&places, &draws, limit - i);
			cr_assert(taken[i] < limit && !seen[taken[i]], "%zu of %zu", taken[i], limit);
			seen[taken[i]] = 1;
		}
		expect_counts(&places, 0);
		for (size_t i = 0; i < limit; i++)
			weiri_places_add(&places, taken[i]);
		expect_counts(&places, limit);
	}
	free(taken);
	free(seen);
	free(memory);
}

Test(places, a_full_set_gives_each_number_once)
{
	for (size_t i = 0; i < LIMITS; i++) {
		take_all(limits[i], NEAR);
		take_all(limits[i], RANDOM);
	}
}

Test(places, near_is_in_the_same_word_when_there_is_one)
{
	struct weiri_places places;
	void *memory = make(&places, 300000, 0);

	weiri_places_add(&places, 10);
	weiri_places_add(&places, 128005);
	weiri_places_add(&places, 128020);
	cr_expect_eq(weiri_places_take_near(&places, 128000) / 64, 128000 / 64);
	cr_expect_eq(weiri_places_take_near(&places, 128063) / 64, 128000 / 64);
	cr_expect_eq(weiri_places_take_near(&places, 128000), 10, "far, by the counts");
	free(memory);
}

/* As from threads that were stopped between a count and its bit: everywhere there seems to be something. */
Test(places, counts_that_are_too_large_mislead_nobody_for_long)
{
	for (size_t i = 0; i < LIMITS; i++) {
		struct weiri_draws draws = {.seed = 1};
		struct weiri_places places;
		void *memory = make(&places, limits[i], 0);

		for (size_t word = 0; word < places.words; word++) {
			size_t node = word;

			for (unsigned l = 0; l < places.levels; l++)
				(void)weiri_fetch_add_relaxed(&places.counts[l][node /= 64], 3u);
		}
		for (size_t n = 0; n < 40; n++) {
			size_t place = n * 104729 % limits[i];

			weiri_places_add(&places, place);
			cr_assert_eq(weiri_places_take_random(&places, &draws, 1), place);
			weiri_places_add(&places, place);
			cr_assert_eq(weiri_places_take_near(&places, 0), place);
		}
		free(memory);
	}
}

/* And counts that do not know of a bit, as they may look to a thread for a while. */
Test(places, counts_that_are_too_small_hide_nothing)
{
	for (size_t i = 0; i < LIMITS; i++) {
		struct weiri_draws draws = {.seed = 1};
		struct weiri_places places;
		void *memory = make(&places, limits[i], 0);
		size_t place = limits[i] - 1;

		weiri_places_add(&places, place);
		for (unsigned l = 0, node = (unsigned)(place / 64); l < places.levels; l++)
			(void)weiri_fetch_sub_relaxed(&places.counts[l][node /= 64], 1u);
		cr_assert_eq(weiri_places_take_random(&places, &draws, 0), place);
		free(memory);
	}
}

enum { THREADS = 4, ROUNDS = 20000, LIMIT = 9000, MEMBERS = 40 };

struct crew {
	struct weiri_places places;
	struct weiri_draws draws;
	int holder[LIMIT]; /* plain: the number brings it along */
};

static void *move_about(void *context)
{
	struct crew *crew = context;

	for (int i = 0; i < ROUNDS; i++) {
		size_t place = (i & 1) != 0 ? weiri_places_take_random(&crew->places, &crew->draws, MEMBERS)
		                            : weiri_places_take_near(&crew->places, (size_t)i * 31 % LIMIT);

		if (crew->holder[place]++ != 0)
			return crew;
		crew->holder[place] = 0;
		weiri_places_add(&crew->places, place);
	}
	return NULL;
}

Test(places, whoever_takes_a_number_has_it_alone)
{
	static struct crew crew;
	void *memory = make(&crew.places, LIMIT, 0), *wrong;
	pthread_t threads[THREADS];

	for (size_t i = 0; i < MEMBERS; i++)
		weiri_places_add(&crew.places, i * 211 % LIMIT);
	for (int i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, move_about, &crew), 0);
	for (int i = 0; i < THREADS; i++) {
		cr_assert_eq(pthread_join(threads[i], &wrong), 0);
		cr_expect_null(wrong);
	}
	expect_counts(&crew.places, MEMBERS);
	free(memory);
}
