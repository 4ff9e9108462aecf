/*
 * shuffle.c - see shuffle.h.
 */
#include "queue/shuffle.h"

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/memory.h"

/* The credits word: 24 bits of items, 24 of used, 15 of puts, closed. */
enum { FIELD_BITS = 24, RANDOM_TRIES = 8 };
#define FIELD_MASK ((UINT64_C(1) << FIELD_BITS) - 1)
#define ONE_ITEM (UINT64_C(1))
#define ONE_USED (UINT64_C(1) << FIELD_BITS)
#define ONE_PUT (UINT64_C(1) << 2 * FIELD_BITS)
#define PUTS_MASK ((UINT64_C(1) << 15) - 1)
#define CLOSED (UINT64_C(1) << 63)

struct weiri_shuffle {
	/* Constant. */
	size_t capacity;
	size_t words; /* of a bitmap */
	size_t min_left;
	uint64_t seed;
	size_t memory_size;
	_Atomic(uint64_t) *slots;
	_Atomic(uint64_t) *busy;
	_Atomic(uint64_t) *full;
	weir_allocator allocator;

	WEIRI_ALIGNED_APART _Atomic(uint64_t) credits;
	WEIRI_ALIGNED_APART _Atomic(uint64_t) draws;    /* random numbers used */
	WEIRI_ALIGNED_APART _Atomic(size_t) freed_hint; /* a word of `busy` that lately had room */
	WEIRI_ALIGNED_APART char end[];
};

static uint64_t items_of(uint64_t credits)
{
	return credits & FIELD_MASK;
}

static uint64_t used_of(uint64_t credits)
{
	return credits / ONE_USED & FIELD_MASK;
}

static uint64_t puts_of(uint64_t credits)
{
	return credits / ONE_PUT & PUTS_MASK;
}

/* Bits of word `i` that stand for slots. */
static uint64_t valid_bits(const struct weiri_shuffle *shuffle, size_t i)
{
	size_t beyond = (i + 1) * 64 > shuffle->capacity ? (i + 1) * 64 - shuffle->capacity : 0;

	return UINT64_MAX >> beyond;
}

struct weiri_shuffle *weiri_shuffle_create(size_t capacity, size_t min_left, uint64_t seed,
                                           const weir_allocator *allocator)
{
	size_t words = (capacity + 63) / 64;
	size_t size = sizeof(struct weiri_shuffle) + (capacity + 2 * words) * sizeof(uint64_t);
	struct weiri_shuffle *shuffle = weiri_allocate_zeroed(allocator, size, WEIRI_APART);

	if (shuffle == NULL)
		return NULL;
	shuffle->capacity = capacity;
	shuffle->words = words;
	shuffle->min_left = min_left;
	shuffle->seed = seed;
	shuffle->memory_size = size;
	shuffle->allocator = *allocator;
	shuffle->busy = (_Atomic(uint64_t) *)(void *)shuffle->end;
	shuffle->full = shuffle->busy + words;
	shuffle->slots = shuffle->full + words;
	return shuffle;
}

void weiri_shuffle_destroy(struct weiri_shuffle *shuffle)
{
	if (shuffle != NULL) {
		weir_allocator allocator = shuffle->allocator;

		weiri_release(&allocator, shuffle, shuffle->memory_size, WEIRI_APART);
	}
}

/* -- put ---------------------------------------------------------------------------------------------------------------------- */

static enum weir_status credit_put(struct weiri_shuffle *shuffle, int admitted)
{
	uint64_t credits;

	do {
		/* [P5 acquire] pairs with the close, for who is refused. */
		credits = weiri_load_acquire(&shuffle->credits);
		if ((credits & CLOSED) != 0 && !admitted)
			return WEIR_CANCELLED;
		if (used_of(credits) >= shuffle->capacity || puts_of(credits) == PUTS_MASK)
			return WEIR_WOULD_BLOCK;
		/* [acquire] B2: sees the busy bits that were cleared before `used` went down. The word may have come back to what was loaded. */
	} while (!weiri_cas_acquire(&shuffle->credits, &credits, credits + ONE_USED + ONE_PUT));
	return WEIR_OK;
}

static int claim_in_word(struct weiri_shuffle *shuffle, size_t i, size_t *slot)
{
	/* [relaxed] the CAS counts. */
	uint64_t word = weiri_load_relaxed(&shuffle->busy[i]), vacant;

	while ((vacant = ~word & valid_bits(shuffle, i)) != 0) {
		uint64_t bit = vacant & (~vacant + 1);

		/* [P2 acquire] pairs with the clear in empty_slot(). */
		if (weiri_cas_acquire(&shuffle->busy[i], &word, word | bit)) {
			*slot = i * 64 + (size_t)__builtin_ctzll(bit);
			return 1;
		}
	}
	return 0;
}

static size_t claim_slot(struct weiri_shuffle *shuffle)
{
	/* [relaxed] a hint. */
	size_t i = weiri_load_relaxed(&shuffle->freed_hint), slot;

	while (!claim_in_word(shuffle, i, &slot)) /* ends by B2 */
		i = i + 1 < shuffle->words ? i + 1 : 0;
	return slot;
}

enum weir_status weiri_shuffle_put(struct weiri_shuffle *shuffle, uint64_t item, int admitted)
{
	enum weir_status status = credit_put(shuffle, admitted);
	size_t slot;

	if (status != WEIR_OK)
		return status;
	slot = claim_slot(shuffle);
	/* [relaxed] published by the bit. */
	weiri_store_relaxed(&shuffle->slots[slot], item);
	/* [P1 release] pairs with try_slot(). */
	(void)weiri_fetch_or_release(&shuffle->full[slot / 64], UINT64_C(1) << slot % 64);
	/* [P3 release] pairs with credit_take(). One more item, one put less. */
	(void)weiri_fetch_add_release(&shuffle->credits, ONE_ITEM - ONE_PUT);
	return WEIR_OK;
}

/* -- take --------------------------------------------------------------------------------------------------------------------- */

static enum weir_status credit_take(struct weiri_shuffle *shuffle)
{
	/* [P3, P4, P5 acquire] pairs with put, the CAS below, close: it may be what was found empty that counts. */
	uint64_t credits = weiri_load_acquire(&shuffle->credits);

	do {
		size_t keep = (credits & CLOSED) != 0 ? 0 : shuffle->min_left;

		if (items_of(credits) <= keep)
			return (credits & CLOSED) != 0 && puts_of(credits) == 0 ? WEIR_OUT_OF_RANGE : WEIR_WOULD_BLOCK;
		/* [P3 acquire] pairs with the release of the put, also if the word has come back to what was loaded. [P4 release] */
	} while (!weiri_cas_acq_rel_or_acquire(&shuffle->credits, &credits, credits - ONE_ITEM));
	return WEIR_OK;
}

static uint64_t next_random(struct weiri_shuffle *shuffle)
{
	/* [relaxed] a number of its own for each draw; nothing travels with it. */
	uint64_t z = shuffle->seed + (weiri_fetch_add_relaxed(&shuffle->draws, 1u) + 1) * UINT64_C(0x9E3779B97F4A7C15);

	z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
	return z ^ z >> 31;
}

/* 0 .. below - 1, for below < 2^24: the high bits of a product of 40 random bits and 24; no place is off by more than 2^-40. */
static size_t random_below(struct weiri_shuffle *shuffle, size_t below)
{
	return (size_t)((next_random(shuffle) >> FIELD_BITS) * below >> (64 - FIELD_BITS));
}

static int try_slot(struct weiri_shuffle *shuffle, size_t slot)
{
	uint64_t bit = UINT64_C(1) << slot % 64;

	/* [relaxed] a look that spares the line. */
	if ((weiri_load_relaxed(&shuffle->full[slot / 64]) & bit) == 0)
		return 0;
	/* [P1 acquire] pairs with the put. */
	return (weiri_fetch_and_acquire(&shuffle->full[slot / 64], ~bit) & bit) != 0;
}

static size_t count_full(const struct weiri_shuffle *shuffle)
{
	size_t count = 0;

	for (size_t i = 0; i < shuffle->words; i++)
		count += (size_t)__builtin_popcountll(weiri_load_relaxed(&shuffle->full[i])); /* [relaxed] a look */
	return count;
}

/* The place of the k-th set bit (k from 0) of a word that has more than k. */
static unsigned select_bit(uint64_t word, size_t k)
{
	while (k-- != 0)
		word &= word - 1;
	return (unsigned)__builtin_ctzll(word);
}

/* Looks for the k-th full slot, counting from the first. 1: it is ours. */
static int try_rank(struct weiri_shuffle *shuffle, size_t k, size_t *slot)
{
	for (size_t i = 0; i < shuffle->words; i++) {
		uint64_t word = weiri_load_relaxed(&shuffle->full[i]); /* [relaxed] a look; try_slot decides */
		size_t here = (size_t)__builtin_popcountll(word);

		if (k < here) {
			*slot = i * 64 + select_bit(word, k);
			return try_slot(shuffle, *slot);
		}
		k -= here;
	}
	return 0;
}

static size_t draw_slot(struct weiri_shuffle *shuffle)
{
	size_t slot, count;

	for (int i = 0; i < RANDOM_TRIES; i++) {
		slot = random_below(shuffle, shuffle->capacity);
		if (try_slot(shuffle, slot))
			return slot;
	}
	for (;;) { /* ends by B1; each round that fails, another take or put went on */
		count = count_full(shuffle);
		if (count != 0 && try_rank(shuffle, random_below(shuffle, count), &slot))
			return slot;
	}
}

static uint64_t empty_slot(struct weiri_shuffle *shuffle, size_t slot)
{
	/* [relaxed] P1 was taken with the bit. */
	uint64_t item = weiri_load_relaxed(&shuffle->slots[slot]);

	/* [P2 release] pairs with claim_in_word(). */
	(void)weiri_fetch_and_release(&shuffle->busy[slot / 64], ~(UINT64_C(1) << slot % 64));
	weiri_store_relaxed(&shuffle->freed_hint, slot / 64); /* [relaxed] a hint */
	/* [release] B2: after the busy bit is clear. */
	(void)weiri_fetch_sub_release(&shuffle->credits, ONE_USED);
	return item;
}

enum weir_status weiri_shuffle_take(struct weiri_shuffle *shuffle, uint64_t *item)
{
	enum weir_status status = credit_take(shuffle);

	if (status == WEIR_OK)
		*item = empty_slot(shuffle, draw_slot(shuffle));
	return status;
}

void weiri_shuffle_close(struct weiri_shuffle *shuffle)
{
	/* [P5 release] whoever sees CLOSED sees what the closer did before. */
	(void)weiri_fetch_or_release(&shuffle->credits, CLOSED);
}

int weiri_shuffle_closed(const struct weiri_shuffle *shuffle)
{
	/* [P5 acquire] pairs with the close. */
	return (weiri_load_acquire(&shuffle->credits) & CLOSED) != 0;
}

size_t weiri_shuffle_size(const struct weiri_shuffle *shuffle)
{
	/* [relaxed] a count. */
	return (size_t)items_of(weiri_load_relaxed(&shuffle->credits));
}

int weiri_shuffle_can_take(const struct weiri_shuffle *shuffle)
{
	/* [P3, P4, P5 acquire] as in credit_take(). */
	uint64_t credits = weiri_load_acquire(&shuffle->credits);

	return items_of(credits) > ((credits & CLOSED) != 0 ? 0 : shuffle->min_left);
}

int weiri_shuffle_putting(const struct weiri_shuffle *shuffle)
{
	/* [relaxed] who puts settles the beacon afterwards. */
	return puts_of(weiri_load_relaxed(&shuffle->credits)) != 0;
}

int weiri_shuffle_can_put(const struct weiri_shuffle *shuffle)
{
	/* [acquire] as in credit_put(). */
	uint64_t credits = weiri_load_acquire(&shuffle->credits);

	return used_of(credits) < shuffle->capacity && puts_of(credits) < PUTS_MASK;
}
