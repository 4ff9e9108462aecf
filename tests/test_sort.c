/*
 * test_sort.c - sorting from every order, of few and many elements, whose size is a multiple of a
 * word or is not.
 */
#include <criterion/criterion.h>

#include <stdint.h>
#include <string.h>

#include "base/sort.h"

enum { MOST = 200 };

struct wide {
	uint64_t key, twice, thrice;
};

struct odd {
	uint8_t key, twice, thrice;
};

static uint32_t draw(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 24;
}

static int by_wide_key(const void *a, const void *b)
{
	uint64_t left = ((const struct wide *)a)->key, right = ((const struct wide *)b)->key;

	return (left > right) - (left < right);
}

static int by_odd_key(const void *a, const void *b)
{
	return ((const struct odd *)a)->key - ((const struct odd *)b)->key;
}

Test(sort, elements_of_words)
{
	uint32_t seed = 1;

	for (size_t count = 0; count < MOST; count++) {
		struct wide elements[MOST];
		uint64_t sum = 0, sorted_sum = 0;

		for (size_t i = 0; i < count; i++) {
			uint64_t key = draw(&seed);

			elements[i] = (struct wide){key, 2 * key, 3 * key};
			sum += key;
		}
		weiri_sort(elements, count, sizeof(elements[0]), by_wide_key);
		for (size_t i = 0; i < count; i++) {
			sorted_sum += elements[i].key;
			cr_assert(i == 0 || elements[i - 1].key <= elements[i].key, "%zu of %zu", i, count);
			cr_assert(elements[i].twice == 2 * elements[i].key && elements[i].thrice == 3 * elements[i].key);
		}
		cr_assert_eq(sorted_sum, sum);
	}
}

Test(sort, elements_of_bytes)
{
	uint32_t seed = 2;

	for (size_t count = 0; count < MOST; count++) {
		struct odd elements[MOST];
		uint32_t sum = 0, sorted_sum = 0;

		for (size_t i = 0; i < count; i++) {
			uint8_t key = (uint8_t)draw(&seed);

			elements[i] = (struct odd){key, (uint8_t)(key + 1), (uint8_t)(key + 2)};
			sum += key;
		}
		weiri_sort(elements, count, sizeof(elements[0]), by_odd_key);
		for (size_t i = 0; i < count; i++) {
			sorted_sum += elements[i].key;
			cr_assert(i == 0 || elements[i - 1].key <= elements[i].key, "%zu of %zu", i, count);
			cr_assert(elements[i].twice == (uint8_t)(elements[i].key + 1) &&
			          elements[i].thrice == (uint8_t)(elements[i].key + 2));
		}
		cr_assert_eq(sorted_sum, sum);
	}
}
