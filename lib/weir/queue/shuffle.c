/*
 * shuffle.c - see shuffle.h.
 */
#include "queue/shuffle.h"

#include "base/assert.h"
#include "base/atomic.h"
#include "base/compiler.h"
#include "base/memory.h"
#include "queue/index_set.h"

/* The credits word: 24 bits of items, 24 bits of used, 15 bits of puts, 1 bit for closed. */
enum { FIELD_BITS = 24 };
#define FIELD_MASK ((UINT64_C(1) << FIELD_BITS) - 1)
#define ONE_ITEM (UINT64_C(1))
#define ONE_USED (UINT64_C(1) << FIELD_BITS)
#define ONE_PUT (UINT64_C(1) << 2 * FIELD_BITS)
#define PUTS_MASK ((UINT64_C(1) << 15) - 1)
#define CLOSED (UINT64_C(1) << 63)

struct weiri_shuffle {
	/* Constant. */
	size_t capacity;
	size_t min_left;
	size_t memory_size;
	_Atomic(uint64_t) *slots;
	struct weiri_index_set free, full; /* numbers of slots */
	weir_allocator allocator;

	WEIRI_ALIGNED_APART _Atomic(uint64_t) credits;
	WEIRI_ALIGNED_APART struct weiri_draws draws;
	WEIRI_ALIGNED_APART _Atomic(size_t) freed; /* a hint: this slot, or one near it, was free recently */
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

/* -- assertions -------------------------------------------------------------------------------- */

static WEIRI_UNSEEN size_t peek_count(const struct weiri_index_set *set)
{
	size_t count = 0;

	for (size_t i = 0; i < set->words; i++)
		count += (size_t)__builtin_popcountll(weiri_peek(&set->bits[i]));
	return count;
}

static WEIRI_UNSEEN void assert_full_enough(const struct weiri_shuffle *shuffle)
{
	WEIR_ASSERT3(B1, peek_count(&shuffle->full) >= items_of(weiri_peek(&shuffle->credits)));
}

/* The caller holds the credit of a put. */
static WEIRI_UNSEEN void assert_any_free(const struct weiri_shuffle *shuffle)
{
	WEIR_ASSERT3(B2, peek_count(&shuffle->free) != 0);
}

/* A number in both sets would let a put write what a take reads. */
static WEIRI_UNSEEN void assert_disjoint(const struct weiri_shuffle *shuffle)
{
	for (size_t i = 0; i < shuffle->full.words; i++)
		WEIR_ASSERT3(B3, (weiri_peek(&shuffle->full.bits[i]) & weiri_peek(&shuffle->free.bits[i])) == 0);
}

struct weiri_shuffle *weiri_shuffle_create(size_t capacity, size_t min_left, uint64_t seed,
                                           const weir_allocator *allocator)
{
	size_t set_size = weiri_index_set_size(capacity);
	size_t size = sizeof(struct weiri_shuffle) + 2 * set_size + capacity * sizeof(uint64_t);
	struct weiri_shuffle *shuffle = weiri_allocate_zeroed(allocator, size, WEIRI_APART);

	if (shuffle == NULL)
		return NULL;
	shuffle->capacity = capacity;
	shuffle->min_left = min_left;
	shuffle->draws.seed = seed;
	shuffle->memory_size = size;
	shuffle->allocator = *allocator;
	weiri_index_set_init(&shuffle->free, shuffle->end, capacity, true);
	weiri_index_set_init(&shuffle->full, shuffle->end + set_size, capacity, false);
	shuffle->slots = (_Atomic(uint64_t) *)(void *)(shuffle->end + 2 * set_size);
	return shuffle;
}

void weiri_shuffle_destroy(struct weiri_shuffle *shuffle)
{
	if (shuffle != NULL) {
		weir_allocator allocator = shuffle->allocator;

		WEIR_ASSERT_WALK(assert_full_enough(shuffle));
		WEIR_ASSERT_WALK(assert_disjoint(shuffle));
		weiri_release(&allocator, shuffle, shuffle->memory_size, WEIRI_APART);
	}
}

/* -- put --------------------------------------------------------------------------------------- */

static enum weir_status credit_put(struct weiri_shuffle *shuffle, bool admitted)
{
	uint64_t credits;

	do {
		/* [P5 acquire] pairs with the close, for a put that is refused. */
		credits = weiri_load_acquire(&shuffle->credits);
		if ((credits & CLOSED) != 0 && !admitted)
			return WEIR_CANCELLED;
		if (used_of(credits) >= shuffle->capacity || puts_of(credits) == PUTS_MASK)
			return WEIR_WOULD_BLOCK;
		/*
		 * [acquire] B2: sees the slots that became free before `used` fell. The load does not
		 * suffice, because the word may have changed and returned to the value that was loaded.
		 */
	} while (!weiri_cas_acquire(&shuffle->credits, &credits, credits + ONE_USED + ONE_PUT));
	return WEIR_OK;
}

static size_t claim_slot(struct weiri_shuffle *shuffle)
{
	/* [relaxed] a hint, here and below. */
	size_t near = weiri_load_relaxed(&shuffle->freed), slot;

	WEIR_ASSERT_INSTANT(assert_any_free(shuffle));
	slot = weiri_index_set_take_near(&shuffle->free, near); /* P2 */
	if (slot / 64 != near / 64)
		weiri_store_relaxed(&shuffle->freed, slot);
	return slot;
}

enum weir_status weiri_shuffle_put(struct weiri_shuffle *shuffle, uint64_t item, bool admitted)
{
	enum weir_status status = credit_put(shuffle, admitted);
	size_t slot;

	if (status != WEIR_OK)
		return status;
	slot = claim_slot(shuffle);
	/* [relaxed] published together with the slot's number. */
	weiri_store_relaxed(&shuffle->slots[slot], item);
	weiri_index_set_add(&shuffle->full, slot); /* P1 */
	/* [P3 release] pairs with credit_take(). One item more, one put less. */
	(void)weiri_fetch_add_release(&shuffle->credits, ONE_ITEM - ONE_PUT);
	WEIR_ASSERT_INSTANT(assert_full_enough(shuffle));
	WEIR_ASSERT_INSTANT(assert_disjoint(shuffle));
	return WEIR_OK;
}

/* -- take -------------------------------------------------------------------------------------- */

/* Acquires the right to one item. *items becomes the number of items before this take. */
static enum weir_status credit_take(struct weiri_shuffle *shuffle, size_t *items)
{
	/*
	 * [P3, P4, P5 acquire] pairs with put, the CAS below, and close. The result rests on this load
	 * if the bag is empty.
	 */
	uint64_t credits = weiri_load_acquire(&shuffle->credits);

	do {
		size_t keep = (credits & CLOSED) != 0 ? 0 : shuffle->min_left;

		if (items_of(credits) <= keep)
			return (credits & CLOSED) != 0 && puts_of(credits) == 0 ? WEIR_OUT_OF_RANGE : WEIR_WOULD_BLOCK;
		/*
		 * [P3 acquire] pairs with the release of the put, even if the word has returned to the
		 * value that was loaded. [P4 release]
		 */
	} while (!weiri_cas_acq_rel_or_acquire(&shuffle->credits, &credits, credits - ONE_ITEM));
	*items = (size_t)items_of(credits);
	return WEIR_OK;
}

static uint64_t empty_slot(struct weiri_shuffle *shuffle, size_t slot)
{
	/* [relaxed] P1: acquired with the slot's number. */
	uint64_t item = weiri_load_relaxed(&shuffle->slots[slot]);

	weiri_index_set_add(&shuffle->free, slot);  /* P2 */
	weiri_store_relaxed(&shuffle->freed, slot); /* [relaxed] a hint */
	/* [release] B2: after the slot is free. */
	(void)weiri_fetch_sub_release(&shuffle->credits, ONE_USED);
	return item;
}

enum weir_status weiri_shuffle_take(struct weiri_shuffle *shuffle, uint64_t *item)
{
	size_t about = 0;
	enum weir_status status = credit_take(shuffle, &about);

	if (status == WEIR_OK)
		*item = empty_slot(shuffle, weiri_index_set_take_random(&shuffle->full, &shuffle->draws, about)); /* P1 */
	return status;
}

void weiri_shuffle_close(struct weiri_shuffle *shuffle)
{
	/* [P5 release] a thread that sees CLOSED sees what the closer did before. */
	(void)weiri_fetch_or_release(&shuffle->credits, CLOSED);
}

bool weiri_shuffle_closed(const struct weiri_shuffle *shuffle)
{
	/* [P5 acquire] pairs with the close. */
	return (weiri_load_acquire(&shuffle->credits) & CLOSED) != 0;
}

size_t weiri_shuffle_size(const struct weiri_shuffle *shuffle)
{
	/* [relaxed] a count. */
	return (size_t)items_of(weiri_load_relaxed(&shuffle->credits));
}

struct weiri_ring_counts weiri_shuffle_counts(const struct weiri_shuffle *shuffle)
{
	/* [relaxed] a count. */
	uint64_t out = weiri_load_relaxed(&shuffle->draws.takes);

	return (struct weiri_ring_counts){out + weiri_shuffle_size(shuffle), out};
}

bool weiri_shuffle_can_take(const struct weiri_shuffle *shuffle)
{
	/*
	 * [relaxed] a look for a ready descriptor, whose protocol makes visible what the look must see
	 * (readiness.c).
	 */
	uint64_t credits = weiri_load_relaxed(&shuffle->credits);

	return items_of(credits) > ((credits & CLOSED) != 0 ? 0 : shuffle->min_left);
}

bool weiri_shuffle_putting(const struct weiri_shuffle *shuffle)
{
	/* [relaxed] the thread that puts settles the ready descriptor afterwards. */
	return puts_of(weiri_load_relaxed(&shuffle->credits)) != 0;
}

bool weiri_shuffle_can_put(const struct weiri_shuffle *shuffle)
{
	/* [relaxed] as in weiri_shuffle_can_take(). */
	uint64_t credits = weiri_load_relaxed(&shuffle->credits);

	return used_of(credits) < shuffle->capacity && puts_of(credits) < PUTS_MASK;
}
