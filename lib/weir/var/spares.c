/*
 * spares.c - see spares.h.
 */
#include "var/spares.h"

#include <stdalign.h>
#include <weir/reclaim.h>

#include "base/assert.h"
#include "base/memory.h"
#include "reclaim/budget.h"
#include "sync/references.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KEEPS_NOTHING
#endif
#endif
#if defined(KEEPS_NOTHING) || defined(__SANITIZE_ADDRESS__)
uint64_t weiri_spares_share = 0;
#else
uint64_t weiri_spares_share = 8;
#endif

/* At the beginning of a kept block. */
struct spare {
	size_t size, alignment;
};

struct weiri_spares {
	_Atomic(struct spare *) kept[WEIRI_SPARES];
	_Atomic(size_t) references; /* K2 */
	_Atomic(int) has_ended;
	size_t least; /* at least the size of a struct spare */
	size_t places;
	bool is_counted; /* among those of all variables: reclaim/budget.h */
	weir_allocator below, above;
};

static void uncount(const struct weiri_spares *spares, size_t size)
{
	if (spares->is_counted)
		weiri_budget_give(WEIRI_KEPT_SPARES, size);
}

/*
 * Counts this many more bytes as kept. Returns true, or false if that would be too much; nothing is
 * then counted.
 */
static bool count(const struct weiri_spares *spares, size_t size)
{
	uint64_t most = weiri_spares_share != 0 ? weir_reclaim_budget() / weiri_spares_share : 0;

	if (!spares->is_counted)
		return weiri_spares_share != 0;
	return weiri_budget_keep(WEIRI_KEPT_SPARES, size, most);
}

static WEIRI_UNSEEN void assert_not_kept(const struct weiri_spares *spares, const struct spare *spare)
{
	for (size_t i = 0; i < WEIRI_SPARES; i++)
		WEIR_ASSERT3(K1, weiri_peek(&spares->kept[i]) != spare);
}

/* Called when the last reference was given back. */
static WEIRI_UNSEEN void assert_empty(const struct weiri_spares *spares)
{
	WEIR_ASSERT2(K2, weiri_peek(&spares->references) == 0);
	for (size_t i = 0; i < WEIRI_SPARES; i++)
		WEIR_ASSERT2(K2, weiri_peek(&spares->kept[i]) == NULL);
}

static void give_back(const struct weiri_spares *spares, struct spare *spare)
{
	weir_allocator below = spares->below;

	below.release(below.context, spare, spare->size, spare->alignment);
}

/* Returns the block that was kept in this place, or NULL if there was none. */
static struct spare *take(const struct weiri_spares *spares, _Atomic(struct spare *) *place)
{
	struct spare *spare;

	/* [relaxed] The first load avoids writing the line. */
	if (weiri_load_relaxed(place) == NULL)
		return NULL;
	spare = weiri_exchange_acquire(place, NULL); /* [S1 acquire] */
	if (spare != NULL)
		uncount(spares, spare->size);
	return spare;
}

static bool put(_Atomic(struct spare *) *place, struct spare *spare)
{
	struct spare *nothing = NULL;

	/* [relaxed] The load avoids writing the line if the place is taken. [S1 release] */
	return weiri_load_relaxed(place) == NULL && weiri_cas_release(place, &nothing, spare);
}

static void give_back_all(struct weiri_spares *spares)
{
	for (size_t i = 0; i < WEIRI_SPARES; i++) {
		struct spare *spare = take(spares, &spares->kept[i]);

		if (spare != NULL)
			give_back(spares, spare);
	}
}

static void drop(struct weiri_spares *spares)
{
	weir_allocator below = spares->below;

	if (!weiri_references_give(&spares->references))
		return;
	give_back_all(spares);
	WEIR_ASSERT_LOOK(assert_empty(spares));
	weiri_release(&below, spares, sizeof(*spares), alignof(struct weiri_spares));
}

/*
 * Returns a kept block of this size, or NULL if there is none. Frees the blocks of another size
 * that it finds: the variable no longer uses that size.
 */
static void *reuse(struct weiri_spares *spares, size_t size, size_t alignment)
{
	for (size_t i = 0; i < WEIRI_SPARES; i++) {
		struct spare *spare = take(spares, &spares->kept[i]);

		if (spare == NULL)
			continue;
		if (spare->size == size && spare->alignment == alignment)
			return spare;
		give_back(spares, spare);
	}
	return NULL;
}

static void *allocate(void *context, size_t size, size_t alignment)
{
	struct weiri_spares *spares = context;
	void *memory = size >= spares->least ? reuse(spares, size, alignment) : NULL;

	if (memory == NULL)
		memory = spares->below.allocate(spares->below.context, size, alignment);
	if (memory != NULL)
		(void)weiri_fetch_add_relaxed(&spares->references, (size_t)1); /* [relaxed] the caller's variable holds one */
	return memory;
}

static bool keep(struct weiri_spares *spares, void *memory, size_t size, size_t alignment)
{
	struct spare *spare = memory;

	/*
	 * [relaxed] The flag only saves memory. A thread that misses it keeps a block until the last
	 * reference is given back, K2.
	 */
	if (weiri_load_relaxed(&spares->has_ended) || size < spares->least || !count(spares, size))
		return false;
	WEIR_ASSERT_INSTANT(assert_not_kept(spares, spare));
	*spare = (struct spare){size, alignment};
	for (size_t i = 0; i < spares->places; i++) {
		if (put(&spares->kept[i], spare))
			return true;
	}
	uncount(spares, size);
	return false;
}

static void release(void *context, void *memory, size_t size, size_t alignment)
{
	struct weiri_spares *spares = context;

	if (!keep(spares, memory, size, alignment))
		spares->below.release(spares->below.context, memory, size, alignment);
	drop(spares);
}

static struct weiri_spares *create(const weir_allocator *below, size_t least, size_t places, bool is_counted)
{
	struct weiri_spares *spares = weiri_allocate_zeroed(below, sizeof(*spares), alignof(struct weiri_spares));

	if (spares == NULL)
		return NULL;
	spares->least = least > sizeof(struct spare) ? least : sizeof(struct spare);
	spares->places = places;
	spares->is_counted = is_counted;
	spares->below = *below;
	spares->above = (weir_allocator){allocate, release, spares};
	weiri_store_relaxed(&spares->references, (size_t)1); /* [relaxed] not shared yet */
	return spares;
}

struct weiri_spares *weiri_spares_create(const weir_allocator *below, size_t least)
{
	return create(below, least, WEIRI_SPARES, true);
}

struct weiri_spares *weiri_spares_create_own(const weir_allocator *below, size_t least, size_t places)
{
	return create(below, least, places < WEIRI_SPARES ? places : WEIRI_SPARES, false);
}

const weir_allocator *weiri_spares_allocator(const struct weiri_spares *spares)
{
	return &spares->above;
}

void weiri_spares_end(struct weiri_spares *spares)
{
	weiri_store_relaxed(&spares->has_ended, 1); /* [relaxed] see keep() */
	give_back_all(spares);
	drop(spares);
}
