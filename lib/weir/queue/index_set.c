/*
 * index_set.c - see index_set.h.
 */
#include "queue/index_set.h"

#include "base/assert.h"
#include "base/atomic.h"
#include "base/compiler.h"

enum {
	FAN = 64,         /* words per count, counts per count, bits per word */
	SIZE_BITS = 24,   /* of a number; one bit more leaves room for a total that is too large */
	BLIND_DRAWS = 4,  /* draws of any number, in the set or not */
	DENSE = 4,        /* blind draws are quick while one number in so many is in the set */
	COUNTED_DRAWS = 8 /* draws by the counts; after them a take uses only the words */
};

static size_t up(size_t value)
{
	return (value + FAN - 1) / FAN;
}

/* Returns the number of nodes of a level; level 0 is the words. */
static size_t nodes_of(const struct weiri_index_set *set, unsigned level)
{
	size_t nodes = set->words;

	for (unsigned l = 0; l < level; l++)
		nodes = up(nodes);
	return nodes;
}

/* Returns the bits of word `i` that stand for numbers. */
static uint64_t valid_bits(const struct weiri_index_set *set, size_t i)
{
	size_t beyond = (i + 1) * FAN > set->limit ? (i + 1) * FAN - set->limit : 0;

	return UINT64_MAX >> beyond;
}

static unsigned levels_for(size_t words)
{
	unsigned levels = 0;

	for (; words > FAN; words = up(words))
		levels++;
	return levels;
}

size_t weiri_index_set_size(size_t limit)
{
	size_t words = up(limit), counts = 0;

	for (size_t nodes = words; nodes > FAN;) {
		nodes = up(nodes);
		counts += nodes;
	}
	return words * sizeof(uint64_t) + (counts + (counts & 1)) * sizeof(uint32_t);
}

/* [relaxed] not shared yet. */
static void fill(struct weiri_index_set *set)
{
	for (size_t i = 0; i < set->words; i++) {
		uint64_t bits = valid_bits(set, i);
		size_t node = i;

		weiri_store_relaxed(&set->bits[i], bits);
		for (unsigned l = 0; l < set->levels; l++) {
			node /= FAN;
			(void)weiri_fetch_add_relaxed(&set->counts[l][node], (uint32_t)__builtin_popcountll(bits));
		}
	}
}

void weiri_index_set_init(struct weiri_index_set *set, void *memory, size_t limit, bool full)
{
	_Atomic(uint32_t) *counts;

	*set =
		(struct weiri_index_set){.limit = limit, .words = up(limit), .levels = levels_for(up(limit)), .bits = memory};
	counts = (void *)((char *)memory + set->words * sizeof(uint64_t));
	for (unsigned l = 0; l < set->levels; l++) {
		set->counts[l] = counts;
		counts += nodes_of(set, l + 1);
	}
	if (full)
		fill(set);
}

/* -- adding and taking one --------------------------------------------------------------------- */

void weiri_index_set_add(struct weiri_index_set *set, size_t index)
{
	size_t node = index / FAN;
	uint64_t before;

	/*
	 * [relaxed] S2 holds for every take but one that sees the bit and not yet the counts. That take
	 * draws again.
	 */
	for (unsigned l = 0; l < set->levels; l++) {
		node /= FAN;
		(void)weiri_fetch_add_relaxed(&set->counts[l][node], 1u);
	}
	/* [P1 release] pairs with take(). */
	before = weiri_fetch_or_release(&set->bits[index / FAN], UINT64_C(1) << index % FAN);
	WEIR_ASSERT1(S1, (before >> index % FAN & 1) == 0);
	(void)before;
}

/* Lowers the counts for a number that was taken. */
static void lower(struct weiri_index_set *set, size_t index)
{
	size_t node = index / FAN;

	for (unsigned l = 0; l < set->levels; l++) {
		uint32_t before;

		node /= FAN;
		/*
		 * [relaxed] P1 made the raise visible, so this comes after it, and no count falls below 0.
		 */
		before = weiri_fetch_sub_relaxed(&set->counts[l][node], 1u);
		WEIR_ASSERT1(S2, before != 0);
		(void)before;
	}
}

/* Returns true if the caller took the number; false: the number was not in the set. */
static bool take(struct weiri_index_set *set, size_t index)
{
	uint64_t bit = UINT64_C(1) << index % FAN;

	/* [P1 acquire] pairs with weiri_index_set_add(). */
	if ((weiri_fetch_and_acquire(&set->bits[index / FAN], ~bit) & bit) == 0)
		return false;
	lower(set, index);
	return true;
}

/* -- near -------------------------------------------------------------------------------------- */

/*
 * Takes the first number that it finds in the words from `first` to `end`. Returns false if it
 * finds none.
 */
static bool take_from_words(struct weiri_index_set *set, size_t first, size_t end, size_t *index)
{
	for (size_t i = first; i < end; i++) {
		uint64_t word = weiri_load_relaxed(&set->bits[i]); /* [relaxed] a look; take() decides */

		while (word != 0) {
			*index = i * FAN + (size_t)__builtin_ctzll(word);
			if (take(set, *index))
				return true;
			word &= word - 1;
		}
	}
	return false;
}

/*
 * Descends by the counts, at each level into the first node that is not empty, and takes a number
 * there. Returns false if it finds none.
 */
static bool take_by_counts(struct weiri_index_set *set, size_t *index)
{
	size_t first = 0, end = nodes_of(set, set->levels);

	for (unsigned l = set->levels; l != 0; l--) {
		size_t node = first, below = nodes_of(set, l - 1);

		/* [relaxed] a look */
		while (node < end && weiri_load_relaxed(&set->counts[l - 1][node]) == 0)
			node++;
		if (node == end)
			return false;
		first = node * FAN;
		end = first + FAN < below ? first + FAN : below;
	}
	return take_from_words(set, first, end, index);
}

size_t weiri_index_set_take_near(struct weiri_index_set *set, size_t near)
{
	size_t first = near / FAN, block = first / FAN * FAN, index;
	size_t end = block + FAN < set->words ? block + FAN : set->words;

	if (WEIRI_LIKELY(take_from_words(set, first, end, &index)) || take_from_words(set, block, first, &index))
		return index;
	for (int i = 0; i < COUNTED_DRAWS && set->levels != 0; i++) {
		if (take_by_counts(set, &index))
			return index;
	}
	while (!take_from_words(set, 0, set->words, &index))
		; /* other threads took the numbers */
	return index;
}

#define SPLIT_MIX_STEP UINT64_C(0x9E3779B97F4A7C15)

/* -- at random --------------------------------------------------------------------------------- */

static uint64_t mixed(uint64_t z)
{
	z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
	return z ^ z >> 31;
}

/* Begins the sequence of one take. */
static uint64_t begin_row(struct weiri_draws *draws)
{
	/* [relaxed] each take gets a number of its own; it publishes nothing. */
	uint64_t number = weiri_fetch_add_relaxed(&draws->takes, 1u) + 1;

	return mixed(draws->seed + number * SPLIT_MIX_STEP);
}

static uint64_t next_random(uint64_t *row)
{
	return mixed(*row += SPLIT_MIX_STEP);
}

/*
 * Returns a random number 0 .. below - 1, for below <= 2^25: the high bits of the product of 39
 * random bits and `below`. No probability is off by more than 2^-39.
 */
static size_t random_below(uint64_t *row, size_t below)
{
	return (size_t)((next_random(row) >> (SIZE_BITS + 1)) * below >> (64 - (SIZE_BITS + 1)));
}

/* Returns the index of the k-th set bit (k from 0). The word has more than k set bits. */
static unsigned select_bit(uint64_t word, size_t k)
{
	while (k-- != 0)
		word &= word - 1;
	return (unsigned)__builtin_ctzll(word);
}

/* Returns how many bits are set in the words from `first` to `end`. */
static size_t count_words(const struct weiri_index_set *set, size_t first, size_t end)
{
	size_t count = 0;

	for (size_t i = first; i < end; i++)
		count += (size_t)__builtin_popcountll(weiri_load_relaxed(&set->bits[i])); /* [relaxed] a look */
	return count;
}

/*
 * Takes the number of the k-th set bit in the words from `first` to `end`. Returns false if the bit
 * is no longer set.
 */
static bool take_rank(struct weiri_index_set *set, size_t first, size_t end, size_t k, size_t *index)
{
	for (size_t i = first; i < end; i++) {
		uint64_t word = weiri_load_relaxed(&set->bits[i]); /* [relaxed] a look; take() decides */
		size_t here = (size_t)__builtin_popcountll(word);

		if (k < here) {
			*index = i * FAN + select_bit(word, k);
			return take(set, *index);
		}
		k -= here;
	}
	return false;
}

/* Takes a random number, found by the counts. Returns false if the draw fails. */
static bool take_rank_by_counts(struct weiri_index_set *set, uint64_t *row, size_t *index)
{
	size_t first = 0, end = nodes_of(set, set->levels), k = 0;

	for (size_t node = first; node < end; node++)
		k += weiri_load_relaxed(&set->counts[set->levels - 1][node]); /* [relaxed] a look, here and below */
	if (k == 0)
		return false;
	k = random_below(row, k);
	for (unsigned l = set->levels; l != 0; l--) {
		size_t node = first, below = nodes_of(set, l - 1), here = 0;

		for (; node < end && k >= (here = weiri_load_relaxed(&set->counts[l - 1][node])); node++)
			k -= here;
		if (node == end)
			return false;
		first = node * FAN;
		end = first + FAN < below ? first + FAN : below;
	}
	return take_rank(set, first, end, k, index);
}

size_t weiri_index_set_take_random(struct weiri_index_set *set, struct weiri_draws *draws, size_t about)
{
	uint64_t row = begin_row(draws);
	size_t index, count;

	for (int i = 0; i < BLIND_DRAWS && about >= set->limit / DENSE; i++) {
		index = random_below(&row, set->limit);
		/* [relaxed] a look: if the bit is clear, the cache line need not be written. */
		if ((weiri_load_relaxed(&set->bits[index / FAN]) >> index % FAN & 1) != 0 && take(set, index))
			return index;
	}
	for (int i = 0; i < COUNTED_DRAWS && set->levels != 0; i++) {
		if (take_rank_by_counts(set, &row, &index))
			return index;
	}
	for (;;) { /* in each round that fails, another take or add succeeded */
		count = count_words(set, 0, set->words);
		if (count != 0 && take_rank(set, 0, set->words, random_below(&row, count), &index))
			return index;
	}
}
