/*
 * hash_list.c - see hash_list.h.
 */
#include "sync/hash_list.h"

#include <stdalign.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/memory.h"

#define REMOVED ((uintptr_t)1)
#define ITEM UINT64_C(1) /* bit 0 of an order: the node is an item, and not a mark */

enum { LOAD = 1 }; /* items for each bucket, on average, above which the number of buckets doubles */

static struct weiri_hash_node *node_of(uintptr_t link)
{
	return (struct weiri_hash_node *)(link & ~REMOVED);
}

static uint64_t reversed(uint64_t bits)
{
	bits = (bits >> 1 & UINT64_C(0x5555555555555555)) | (bits & UINT64_C(0x5555555555555555)) << 1;
	bits = (bits >> 2 & UINT64_C(0x3333333333333333)) | (bits & UINT64_C(0x3333333333333333)) << 2;
	bits = (bits >> 4 & UINT64_C(0x0F0F0F0F0F0F0F0F)) | (bits & UINT64_C(0x0F0F0F0F0F0F0F0F)) << 4;
	return __builtin_bswap64(bits);
}

/*
 * The order of an item. ITEM replaces the reversed top bit of the hash, which no table has enough
 * buckets to need.
 */
static uint64_t order_of(uint64_t hash)
{
	return reversed(hash) | ITEM;
}

void weiri_hash_node_init(struct weiri_hash_node *node, uint64_t hash, size_t bytes,
                          void (*ended)(struct weiri_retired *retired))
{
	weiri_store_relaxed(&node->next, 0u); /* [relaxed] not inserted yet */
	node->order = order_of(hash);
	weiri_retired_init(&node->retired, bytes, ended);
}

/* -- marks ------------------------------------------------------------------------------------- */

/*
 * Returns the place of the pointer to a bucket's mark, for a bucket other than 0; NULL if the
 * segment of that place does not exist yet.
 */
static _Atomic(struct weiri_hash_node *) *place_of(struct weiri_hash_list *list, size_t bucket)
{
	unsigned segment = 64 - (unsigned)__builtin_clzll(bucket);
	/* [P2 acquire] pairs with grow(). */
	_Atomic(struct weiri_hash_node *) *marks = weiri_load_acquire(&list->marks[segment]);

	return marks != NULL ? &marks[bucket - ((size_t)1 << (segment - 1))] : NULL;
}

static struct weiri_hash_node *mark_of(struct weiri_hash_list *list, size_t bucket)
{
	_Atomic(struct weiri_hash_node *) *place = bucket != 0 ? place_of(list, bucket) : NULL;

	if (bucket == 0)
		return &list->first;
	/* [P2 acquire] pairs with make_mark(). */
	return place != NULL ? weiri_load_acquire(place) : NULL;
}

static size_t bucket_of(const struct weiri_hash_list *list, uint64_t hash)
{
	/* [relaxed] an older number of bits gives a larger bucket, which contains the hash too. */
	return (size_t)(hash & ((UINT64_C(1) << weiri_load_relaxed(&list->bits)) - 1));
}

/*
 * Returns the nearest mark at or before the bucket. Without its highest 1 bit, the number of a
 * bucket is that of the bucket from which it was split, which lies before it.
 */
static struct weiri_hash_node *start_of(struct weiri_hash_list *list, size_t bucket)
{
	struct weiri_hash_node *mark;

	while ((mark = mark_of(list, bucket)) == NULL)
		bucket &= ~((size_t)1 << (63 - (unsigned)__builtin_clzll(bucket)));
	return mark;
}

/* -- walking ----------------------------------------------------------------------------------- */

/* What a walk looks for. */
struct target {
	uint64_t order;
	const void *key; /* NULL: a mark; no two marks have the same order */
	bool beyond;     /* true: not this node but the first item after it */
};

/*
 * Where a walk ended. *link is a link without REMOVED, and `here` is its value: the first node that
 * is not before the target, or 0 at the end of the list.
 */
struct place {
	_Atomic(uintptr_t) *link;
	uintptr_t here;
};

static int compare(const struct weiri_hash_list *list, const struct target *target, struct weiri_hash_node *node)
{
	if (target->order != node->order)
		return target->order < node->order ? -1 : 1;
	return target->key != NULL ? list->compare(target->key, node) : 0;
}

static bool walk_ends_at(const struct weiri_hash_list *list, const struct target *target, struct weiri_hash_node *node)
{
	int side = compare(list, target, node);

	return target->beyond ? side < 0 && (node->order & ITEM) != 0 : side <= 0;
}

/* -- assertions -------------------------------------------------------------------------------- */

/* The caller's section protects the node. */
static WEIRI_UNSEEN void assert_marked(const struct weiri_hash_node *node, uintptr_t marked)
{
	WEIR_ASSERT2(H2, weiri_peek(&node->next) == marked);
}

/* Two nodes of the same order can only be items: different keys may have the same hash. */
static WEIRI_UNSEEN void assert_sorted(const struct weiri_hash_list *list)
{
	const struct weiri_hash_node *node = &list->first, *next;

	for (; (next = node_of(weiri_peek(&node->next))) != NULL; node = next)
		WEIR_ASSERT3(H1, node->order < next->order || (node->order == next->order && (node->order & ITEM) != 0));
}

static WEIRI_UNSEEN bool is_linked(const struct weiri_hash_list *list, const struct weiri_hash_node *node)
{
	const struct weiri_hash_node *other = &list->first;

	while (other != NULL && other != node)
		other = node_of(weiri_peek(&other->next));
	return other != NULL;
}

static WEIRI_UNSEEN void assert_unlinked(const struct weiri_hash_list *list, const struct weiri_hash_node *node)
{
	WEIR_ASSERT3(H3, !is_linked(list, node));
}

static WEIRI_UNSEEN void assert_shown(const struct weiri_hash_list *list,
                                      const _Atomic(struct weiri_hash_node *) *place)
{
	WEIR_ASSERT3(H5, is_linked(list, weiri_peek(place)));
}

/* Each mark that list->marks shows is the mark of that bucket, and was not removed. */
static WEIRI_UNSEEN void assert_marks(const struct weiri_hash_list *list)
{
	for (unsigned segment = 1; segment <= WEIRI_HASH_MOST_BITS; segment++) {
		const _Atomic(struct weiri_hash_node *) *marks = weiri_peek(&list->marks[segment]);
		const size_t first = (size_t)1 << (segment - 1);

		for (size_t i = 0; marks != NULL && i < first; i++) {
			const struct weiri_hash_node *mark = weiri_peek(&marks[i]);

			WEIR_ASSERT3(H5, mark == NULL || mark->order == reversed(first + i));
			WEIR_ASSERT3(H5, mark == NULL || (weiri_peek(&mark->next) & REMOVED) == 0);
		}
	}
}

/* Walks from `start` to the target, and unlinks removed nodes on the way. */
static struct place walk(struct weiri_scope *scope, const struct weiri_hash_list *list, struct weiri_hash_node *start,
                         const struct target *target)
{
	struct place at;

restart:
	at.link = &start->next;
	weiri_section_read(scope->record, at.link, &at.here); /* [P1, S] the link of a mark, which never has REMOVED */
	while (node_of(at.here) != NULL) {
		struct weiri_hash_node *node = node_of(at.here);
		uintptr_t next;

		weiri_section_read(scope->record, &node->next, &next); /* [P1, S] */
		if ((next & REMOVED) != 0) {
			/*
			 * [seq_cst S] H3. at.here is without REMOVED, so the CAS fails if the node of the link
			 * was removed meanwhile.
			 */
			if (!weiri_cas_seq_cst(at.link, &at.here, next & ~REMOVED))
				goto restart;
			WEIR_ASSERT_LOOK(assert_marked(node, next));
			WEIR_ASSERT_INSTANT(assert_unlinked(list, node));
			weiri_scope_retire(scope, &node->retired);
			at.here = next & ~REMOVED;
			continue;
		}
		if (walk_ends_at(list, target, node))
			break;
		at.link = &node->next;
		at.here = next;
	}
	return at;
}

static struct weiri_hash_node *found_at(const struct weiri_hash_list *list, const struct place *at,
                                        const struct target *target)
{
	struct weiri_hash_node *node = node_of(at->here);

	return node != NULL && compare(list, target, node) == 0 ? node : NULL;
}

/* Returns NULL if `node` was inserted, else the node with its key that is in the list. */
static struct weiri_hash_node *insert(struct weiri_scope *scope, const struct weiri_hash_list *list,
                                      struct weiri_hash_node *start, struct weiri_hash_node *node,
                                      const struct target *target)
{
	struct place at;
	struct weiri_hash_node *there;

	do {
		at = walk(scope, list, start, target);
		there = found_at(list, &at, target);
		if (there != NULL)
			return there;
		/* [relaxed] published by the CAS. */
		weiri_store_relaxed(&node->next, at.here);
		/* [P1 release] pairs with walk(). */
	} while (!weiri_cas_release(at.link, &at.here, (uintptr_t)node));
	WEIR_ASSERT_INSTANT(assert_sorted(list));
	return NULL;
}

/* -- growing ----------------------------------------------------------------------------------- */

/*
 * Inserts the mark of the bucket. Without memory it does nothing: walks then start at a mark
 * further to the left, and take longer.
 */
static WEIRI_COLD void make_mark(struct weiri_scope *scope, struct weiri_hash_list *list, size_t bucket)
{
	_Atomic(struct weiri_hash_node *) *place = place_of(list, bucket);
	const struct target target = {reversed(bucket), NULL, false};
	/*
	 * Another thread may have inserted the mark by now. A walk that started at that mark would
	 * begin behind it, would not find it, and would insert a second one. So this walk starts at the
	 * bucket that is split.
	 */
	const size_t split = bucket & ~((size_t)1 << (63 - (unsigned)__builtin_clzll(bucket)));
	struct weiri_hash_node *mark, *there;

	if (place == NULL)
		return;
	mark = weiri_allocate(&list->allocator, sizeof(*mark), alignof(struct weiri_hash_node));
	if (mark == NULL)
		return;
	weiri_hash_node_init(mark, 0, sizeof(*mark), NULL);
	mark->order = target.order;
	there = insert(scope, list, start_of(list, split), mark, &target);
	if (there != NULL)
		weiri_release(&list->allocator, mark, sizeof(*mark), alignof(struct weiri_hash_node));
	/*
	 * [P2 release] pairs with mark_of(). Every thread that writes here writes the same mark (H1).
	 */
	weiri_store_release(place, there != NULL ? there : mark);
	WEIR_ASSERT_INSTANT(assert_shown(list, place));
}

static WEIRI_COLD void grow(struct weiri_hash_list *list, uint32_t bits)
{
	size_t size = sizeof(_Atomic(struct weiri_hash_node *)) << bits;
	_Atomic(struct weiri_hash_node *) *none = NULL;
	_Atomic(struct weiri_hash_node *) *marks;

	/* [relaxed] the pointer is compared and not followed. */
	if (weiri_load_relaxed(&list->marks[bits + 1]) == NULL) {
		marks = weiri_allocate_zeroed(&list->allocator, size, alignof(_Atomic(struct weiri_hash_node *)));
		if (marks == NULL)
			return;
		/* [P2 release] pairs with place_of(). */
		if (!weiri_cas_release(&list->marks[bits + 1], &none, marks))
			weiri_release(&list->allocator, marks, size, alignof(_Atomic(struct weiri_hash_node *)));
	}
	/* [relaxed] publishes nothing: place_of() acquires the segment by its own pointer. */
	(void)weiri_cas_relaxed(&list->bits, &bits, bits + 1);
}

static void count_insert(struct weiri_hash_list *list)
{
	/* [relaxed] a count, and a number of bits, whose older values are right too. */
	size_t count = weiri_fetch_add_relaxed(&list->count, 1u) + 1;
	uint32_t bits = weiri_load_relaxed(&list->bits);

	if (WEIRI_UNLIKELY(count > ((size_t)LOAD << bits) && count <= SIZE_MAX / 2 && bits < WEIRI_HASH_MOST_BITS))
		grow(list, bits);
}

/* -- the set ----------------------------------------------------------------------------------- */

void weiri_hash_list_init(struct weiri_hash_list *list, weiri_hash_compare *compare_keys,
                          const weir_allocator *allocator)
{
	/* [relaxed] not shared yet. */
	weiri_store_relaxed(&list->first.next, 0u);
	list->first.order = 0;
	for (size_t i = 0; i <= WEIRI_HASH_MOST_BITS; i++)
		weiri_store_relaxed(&list->marks[i], NULL);
	list->allocator = *allocator;
	list->compare = compare_keys;
	weiri_store_relaxed(&list->count, 0u);
	weiri_store_relaxed(&list->bits, 0u);
}

void weiri_hash_list_fini(struct weiri_hash_list *list, void (*end)(struct weiri_hash_node *node))
{
	/* [relaxed] the caller has ordered all calls before this one. */
	uintptr_t link = weiri_load_relaxed(&list->first.next);

	WEIR_ASSERT_WALK(assert_sorted(list));
	WEIR_ASSERT_WALK(assert_marks(list));
	while (node_of(link) != NULL) {
		struct weiri_hash_node *node = node_of(link);

		link = weiri_load_relaxed(&node->next);
		if ((node->order & ITEM) != 0)
			end(node);
		else
			weiri_release(&list->allocator, node, sizeof(*node), alignof(struct weiri_hash_node));
	}
	for (unsigned i = 1; i <= WEIRI_HASH_MOST_BITS; i++)
		weiri_release(&list->allocator, weiri_load_relaxed(&list->marks[i]),
		              sizeof(_Atomic(struct weiri_hash_node *)) << (i - 1), alignof(_Atomic(struct weiri_hash_node *)));
}

struct weiri_hash_node *weiri_hash_list_find(struct weiri_scope *scope, struct weiri_hash_list *list, uint64_t hash,
                                             const void *key)
{
	const struct target target = {order_of(hash), key, false};
	struct place at = walk(scope, list, start_of(list, bucket_of(list, hash)), &target);

	return found_at(list, &at, &target);
}

struct weiri_hash_node *weiri_hash_list_insert(struct weiri_scope *scope, struct weiri_hash_list *list,
                                               struct weiri_hash_node *node, uint64_t hash, const void *key)
{
	const struct target target = {order_of(hash), key, false};
	size_t bucket = bucket_of(list, hash);
	struct weiri_hash_node *there;

	if (bucket != 0 && WEIRI_UNLIKELY(mark_of(list, bucket) == NULL))
		make_mark(scope, list, bucket);
	there = insert(scope, list, start_of(list, bucket), node, &target);
	if (there == NULL)
		count_insert(list);
	return there;
}

bool weiri_hash_list_remove(struct weiri_scope *scope, struct weiri_hash_list *list, struct weiri_hash_node *node,
                            uint64_t hash, const void *key)
{
	const struct target target = {order_of(hash), key, false};
	/* [relaxed] the CAS decides. */
	uintptr_t next = weiri_load_relaxed(&node->next);

	do {
		if ((next & REMOVED) != 0) /* by another call */
			return false;
		/*
		 * [relaxed] H2. A walk that reads REMOVED learns nothing else from it. The insert of the
		 * successor published the link (P1), and this CAS continues its release sequence.
		 */
	} while (!weiri_cas_relaxed(&node->next, &next, next | REMOVED));
	(void)weiri_fetch_sub_relaxed(&list->count, 1u); /* [relaxed] a count */
	/* This walk unlinks the node, unless another one has. */
	(void)walk(scope, list, start_of(list, bucket_of(list, hash)), &target);
	return true;
}

struct weiri_hash_node *weiri_hash_list_after(struct weiri_scope *scope, struct weiri_hash_list *list, uint64_t hash,
                                              const void *key)
{
	const struct target target = {key != NULL ? order_of(hash) : 0, key, true};
	size_t bucket = key != NULL ? bucket_of(list, hash) : 0;

	return node_of(walk(scope, list, start_of(list, bucket), &target).here);
}

size_t weiri_hash_list_count(const struct weiri_hash_list *list)
{
	size_t count = weiri_load_relaxed(&list->count); /* [relaxed] a count */

	return count <= SIZE_MAX / 2 ? count : 0;
}
