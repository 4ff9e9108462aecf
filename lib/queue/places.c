/*
 * places.c - see places.h.
 */
#include "queue/places.h"

#include "base/atomic.h"
#include "base/compiler.h"

enum {
	FAN = 64,        /* words of a count, counts of a count, bits of a word */
	SIZE_BITS = 24,  /* of a number, and a bit more than what a total can be too large by */
	BLIND_DRAWS = 4, /* of any number, set or not: quick while one in so many is set: */
	DENSE = 4,
	COUNTED_DRAWS = 8 /* by the counts, before it goes by the words alone */
};

static size_t up(size_t value)
{
	return (value + FAN - 1) / FAN;
}

/* Nodes of a level: 0 is the words. */
static size_t nodes_of(const struct weiri_places *places, unsigned level)
{
	size_t nodes = places->words;

	for (unsigned l = 0; l < level; l++)
		nodes = up(nodes);
	return nodes;
}

/* Bits of word `i` that stand for numbers. */
static uint64_t valid_bits(const struct weiri_places *places, size_t i)
{
	size_t beyond = (i + 1) * FAN > places->limit ? (i + 1) * FAN - places->limit : 0;

	return UINT64_MAX >> beyond;
}

static unsigned levels_for(size_t words)
{
	unsigned levels = 0;

	for (; words > FAN; words = up(words))
		levels++;
	return levels;
}

size_t weiri_places_size(size_t limit)
{
	size_t words = up(limit), counts = 0;

	for (size_t nodes = words; nodes > FAN;) {
		nodes = up(nodes);
		counts += nodes;
	}
	return words * sizeof(uint64_t) + (counts + (counts & 1)) * sizeof(uint32_t);
}

/* [relaxed] not shared yet. */
static void fill(struct weiri_places *places)
{
	for (size_t i = 0; i < places->words; i++) {
		uint64_t bits = valid_bits(places, i);
		size_t node = i;

		weiri_store_relaxed(&places->bits[i], bits);
		for (unsigned l = 0; l < places->levels; l++) {
			node /= FAN;
			(void)weiri_fetch_add_relaxed(&places->counts[l][node], (uint32_t)__builtin_popcountll(bits));
		}
	}
}

void weiri_places_init(struct weiri_places *places, void *memory, size_t limit, int full)
{
	_Atomic(uint32_t) *counts;

	*places =
		(struct weiri_places){.limit = limit, .words = up(limit), .levels = levels_for(up(limit)), .bits = memory};
	counts = (void *)((char *)memory + places->words * sizeof(uint64_t));
	for (unsigned l = 0; l < places->levels; l++) {
		places->counts[l] = counts;
		counts += nodes_of(places, l + 1);
	}
	if (full)
		fill(places);
}

/* -- adding and taking one ---------------------------------------------------------------------------------------------------- */

void weiri_places_add(struct weiri_places *places, size_t place)
{
	size_t node = place / FAN;

	/* [relaxed] S2, but for who sees the bit and not the counts: he draws again. */
	for (unsigned l = 0; l < places->levels; l++) {
		node /= FAN;
		(void)weiri_fetch_add_relaxed(&places->counts[l][node], 1u);
	}
	/* [P1 release] pairs with take(). */
	(void)weiri_fetch_or_release(&places->bits[place / FAN], UINT64_C(1) << place % FAN);
}

/* The counts of a number that was taken. */
static void lower(struct weiri_places *places, size_t place)
{
	size_t node = place / FAN;

	for (unsigned l = 0; l < places->levels; l++) {
		node /= FAN;
		/* [relaxed] comes after the raise, which the bit brought along; so none falls below 0. */
		(void)weiri_fetch_sub_relaxed(&places->counts[l][node], 1u);
	}
}

/* 0: it was not there. */
static int take(struct weiri_places *places, size_t place)
{
	uint64_t bit = UINT64_C(1) << place % FAN;

	/* [P1 acquire] pairs with weiri_places_add(). */
	if ((weiri_fetch_and_acquire(&places->bits[place / FAN], ~bit) & bit) == 0)
		return 0;
	lower(places, place);
	return 1;
}

/* -- near --------------------------------------------------------------------------------------------------------------------- */

/* Any of the words from `first` to `end`. */
static int take_from_words(struct weiri_places *places, size_t first, size_t end, size_t *place)
{
	for (size_t i = first; i < end; i++) {
		uint64_t word = weiri_load_relaxed(&places->bits[i]); /* [relaxed] a look; take() decides */

		while (word != 0) {
			*place = i * FAN + (size_t)__builtin_ctzll(word);
			if (take(places, *place))
				return 1;
			word &= word - 1;
		}
	}
	return 0;
}

/* By the counts, the first node that is not empty, level for level. */
static int take_by_counts(struct weiri_places *places, size_t *place)
{
	size_t first = 0, end = nodes_of(places, places->levels);

	for (unsigned l = places->levels; l != 0; l--) {
		size_t node = first, below = nodes_of(places, l - 1);

		/* [relaxed] a look */
		while (node < end && weiri_load_relaxed(&places->counts[l - 1][node]) == 0)
			node++;
		if (node == end)
			return 0;
		first = node * FAN;
		end = first + FAN < below ? first + FAN : below;
	}
	return take_from_words(places, first, end, place);
}

size_t weiri_places_take_near(struct weiri_places *places, size_t near)
{
	size_t first = near / FAN, block = first / FAN * FAN, place;
	size_t end = block + FAN < places->words ? block + FAN : places->words;

	if (WEIRI_LIKELY(take_from_words(places, first, end, &place)) || take_from_words(places, block, first, &place))
		return place;
	for (int i = 0; i < COUNTED_DRAWS && places->levels != 0; i++) {
		if (take_by_counts(places, &place))
			return place;
	}
	while (!take_from_words(places, 0, places->words, &place))
		; /* others took */
	return place;
}

#define SPLIT_MIX_STEP UINT64_C(0x9E3779B97F4A7C15)

/* -- at random ---------------------------------------------------------------------------------------------------------------- */

static uint64_t mixed(uint64_t z)
{
	z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
	return z ^ z >> 31;
}

/* A take's row begins. */
static uint64_t begin_row(struct weiri_draws *draws)
{
	/* [relaxed] a number of its own for each take; nothing travels with it. */
	uint64_t number = weiri_fetch_add_relaxed(&draws->takes, 1u) + 1;

	return mixed(draws->seed + number * SPLIT_MIX_STEP);
}

static uint64_t next_random(uint64_t *row)
{
	return mixed(*row += SPLIT_MIX_STEP);
}

/* 0 .. below - 1, for below <= 2^25: the high bits of a product of 39 random bits and 25; no number is off by more than 2^-39. */
static size_t random_below(uint64_t *row, size_t below)
{
	return (size_t)((next_random(row) >> (SIZE_BITS + 1)) * below >> (64 - (SIZE_BITS + 1)));
}

/* The place of the k-th set bit (k from 0) of a word that has more than k. */
static unsigned select_bit(uint64_t word, size_t k)
{
	while (k-- != 0)
		word &= word - 1;
	return (unsigned)__builtin_ctzll(word);
}

/* What the words from `first` to `end` hold. */
static size_t count_words(const struct weiri_places *places, size_t first, size_t end)
{
	size_t count = 0;

	for (size_t i = first; i < end; i++)
		count += (size_t)__builtin_popcountll(weiri_load_relaxed(&places->bits[i])); /* [relaxed] a look */
	return count;
}

/* The k-th bit of the words from `first` to `end`, if it is still there. */
static int take_rank(struct weiri_places *places, size_t first, size_t end, size_t k, size_t *place)
{
	for (size_t i = first; i < end; i++) {
		uint64_t word = weiri_load_relaxed(&places->bits[i]); /* [relaxed] a look; take() decides */
		size_t here = (size_t)__builtin_popcountll(word);

		if (k < here) {
			*place = i * FAN + select_bit(word, k);
			return take(places, *place);
		}
		k -= here;
	}
	return 0;
}

/* A random bit, by the counts. */
static int take_rank_by_counts(struct weiri_places *places, uint64_t *row, size_t *place)
{
	size_t first = 0, end = nodes_of(places, places->levels), k = 0;

	for (size_t node = first; node < end; node++)
		k += weiri_load_relaxed(&places->counts[places->levels - 1][node]); /* [relaxed] a look, here and below */
	if (k == 0)
		return 0;
	k = random_below(row, k);
	for (unsigned l = places->levels; l != 0; l--) {
		size_t node = first, below = nodes_of(places, l - 1), here = 0;

		for (; node < end && k >= (here = weiri_load_relaxed(&places->counts[l - 1][node])); node++)
			k -= here;
		if (node == end)
			return 0;
		first = node * FAN;
		end = first + FAN < below ? first + FAN : below;
	}
	return take_rank(places, first, end, k, place);
}

size_t weiri_places_take_random(struct weiri_places *places, struct weiri_draws *draws, size_t about)
{
	uint64_t row = begin_row(draws);
	size_t place, count;

	for (int i = 0; i < BLIND_DRAWS && about >= places->limit / DENSE; i++) {
		place = random_below(&row, places->limit);
		/* [relaxed] a look that spares the line. */
		if ((weiri_load_relaxed(&places->bits[place / FAN]) >> place % FAN & 1) != 0 && take(places, place))
			return place;
	}
	for (int i = 0; i < COUNTED_DRAWS && places->levels != 0; i++) {
		if (take_rank_by_counts(places, &row, &place))
			return place;
	}
	for (;;) { /* each round that fails, another take or add went on */
		count = count_words(places, 0, places->words);
		if (count != 0 && take_rank(places, 0, places->words, random_below(&row, count), &place))
			return place;
	}
}
