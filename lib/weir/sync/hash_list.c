/*
 * hash_list.c - see hash_list.h.
 */
#include "sync/hash_list.h"

#include <stdalign.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/memory.h"

#define REMOVED ((uintptr_t)1)
/* Bits of an order. A mark is before all items of its bucket, SHOWN or not. */
#define ITEM UINT64_C(7)  /* all three are set: the node is an item, and not a mark */
#define SHOWN UINT64_C(2) /* of a mark */

enum {
	MARKS_APART = 64, /* the alignment of a segment: no mark lies on two lines */
	LOAD = 1          /* items for each bucket, on average, above which the number of buckets doubles */
};

static struct weiri_hash_link *link_of(uintptr_t next)
{
	return (struct weiri_hash_link *)(next & ~REMOVED);
}

static struct weiri_hash_node *node_of(struct weiri_hash_link *link)
{
	return WEIRI_CONTAINER_OF(link, struct weiri_hash_node, link);
}

static bool is_item(uint64_t order)
{
	return (order & ITEM) == ITEM;
}

static uint64_t reversed(uint64_t bits)
{
	bits = (bits >> 1 & UINT64_C(0x5555555555555555)) | (bits & UINT64_C(0x5555555555555555)) << 1;
	bits = (bits >> 2 & UINT64_C(0x3333333333333333)) | (bits & UINT64_C(0x3333333333333333)) << 2;
	bits = (bits >> 4 & UINT64_C(0x0F0F0F0F0F0F0F0F)) | (bits & UINT64_C(0x0F0F0F0F0F0F0F0F)) << 4;
	return __builtin_bswap64(bits);
}

/*
 * The order of an item. ITEM replaces the reversed top bits of the hash, which no table has enough
 * buckets to need.
 */
static uint64_t order_of(uint64_t hash)
{
	return reversed(hash) | ITEM;
}

/* [relaxed] An order is published with its node (P1); SHOWN has an acquire of its own. */
static uint64_t order_at(const struct weiri_hash_link *link)
{
	return weiri_load_relaxed(&link->order);
}

void weiri_hash_node_init(struct weiri_hash_node *node, uint64_t hash, size_t bytes,
                          void (*ended)(struct weiri_retired *retired))
{
	/* [relaxed] not inserted yet, both. */
	weiri_store_relaxed(&node->link.next, 0u);
	weiri_store_relaxed(&node->link.order, order_of(hash));
	weiri_retired_init(&node->retired, bytes, ended);
}

uint64_t weiri_hash_of_node(const struct weiri_hash_node *node)
{
	return reversed(order_at(&node->link));
}

/* -- marks ------------------------------------------------------------------------------------- */

/* Returns the bucket from which this one was split: its number without its highest 1 bit. */
static size_t split_from(size_t bucket)
{
	return bucket & ~((size_t)1 << (63 - (unsigned)__builtin_clzll(bucket)));
}

/*
 * Returns the mark of a bucket other than 0, in any state; NULL if its segment does not exist yet.
 */
static struct weiri_hash_link *mark_of(const struct weiri_hash_list *list, size_t bucket)
{
	unsigned segment = 64 - (unsigned)__builtin_clzll(bucket);
	/* [P2 acquire] pairs with grow(). */
	struct weiri_hash_link *marks = weiri_load_acquire(&list->marks[segment]);

	return marks != NULL ? &marks[bucket - ((size_t)1 << (segment - 1))] : NULL;
}

static size_t bucket_of(const struct weiri_hash_list *list, uint64_t hash)
{
	/* [relaxed] an older number of bits gives a larger bucket, which contains the hash too. */
	return (size_t)(hash & ((UINT64_C(1) << weiri_load_relaxed(&list->bits)) - 1));
}

static bool is_shown(const struct weiri_hash_link *mark)
{
	/* [P2 acquire] pairs with make_mark(). */
	return mark != NULL && (weiri_load_acquire(&mark->order) & SHOWN) != 0;
}

/*
 * Returns the nearest mark at or before the bucket. A bucket from which another was split lies
 * before it.
 */
static struct weiri_hash_link *start_of(struct weiri_hash_list *list, size_t bucket)
{
	for (; bucket != 0; bucket = split_from(bucket)) {
		struct weiri_hash_link *mark = mark_of(list, bucket);

		if (WEIRI_LIKELY(is_shown(mark)))
			return mark;
	}
	return &list->first;
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

static int compare(const struct weiri_hash_list *list, const struct target *target, struct weiri_hash_link *link)
{
	uint64_t order = order_at(link);

	if (target->order != order)
		return target->order < order ? -1 : 1;
	return target->key != NULL ? list->compare(target->key, node_of(link)) : 0;
}

static bool walk_ends_at(const struct weiri_hash_list *list, const struct target *target, struct weiri_hash_link *link)
{
	int side = compare(list, target, link);

	return target->beyond ? side < 0 && is_item(order_at(link)) : side <= 0;
}

/* -- assertions -------------------------------------------------------------------------------- */

/* The caller's section protects the node. */
static WEIRI_UNSEEN void assert_marked(const struct weiri_hash_link *link, uintptr_t marked)
{
	WEIR_ASSERT2(H2, weiri_peek(&link->next) == marked);
}

/* Two nodes of the same order can only be items: different keys may have the same hash. */
static WEIRI_UNSEEN void assert_sorted(const struct weiri_hash_list *list)
{
	const struct weiri_hash_link *link = &list->first, *next;

	for (; (next = link_of(weiri_peek(&link->next))) != NULL; link = next) {
		uint64_t order = weiri_peek(&link->order);

		WEIR_ASSERT3(H1, order < weiri_peek(&next->order) || (order == weiri_peek(&next->order) && is_item(order)));
	}
}

static WEIRI_UNSEEN bool is_linked(const struct weiri_hash_list *list, const struct weiri_hash_link *link)
{
	const struct weiri_hash_link *other = &list->first;

	while (other != NULL && other != link)
		other = link_of(weiri_peek(&other->next));
	return other != NULL;
}

static WEIRI_UNSEEN void assert_unlinked(const struct weiri_hash_list *list, const struct weiri_hash_link *link)
{
	WEIR_ASSERT3(H3, !is_linked(list, link));
}

static WEIRI_UNSEEN void assert_shown(const struct weiri_hash_list *list, const struct weiri_hash_link *mark)
{
	WEIR_ASSERT3(H5, is_linked(list, mark));
}

/* Each mark is unused or that of its bucket, and was not removed. */
static WEIRI_UNSEEN void assert_marks(const struct weiri_hash_list *list)
{
	for (unsigned segment = 1; segment <= WEIRI_HASH_MOST_BITS; segment++) {
		const struct weiri_hash_link *marks = weiri_peek(&list->marks[segment]);
		const size_t first = (size_t)1 << (segment - 1);

		for (size_t i = 0; marks != NULL && i < first; i++) {
			uint64_t order = weiri_peek(&marks[i].order);

			WEIR_ASSERT3(H5, order == 0 || (order & ~SHOWN) == reversed(first + i));
			WEIR_ASSERT3(H5, (weiri_peek(&marks[i].next) & REMOVED) == 0);
		}
	}
}

/* Walks from `start` to the target, and unlinks removed nodes on the way. */
static struct place walk(struct weiri_scope *scope, const struct weiri_hash_list *list, struct weiri_hash_link *start,
                         const struct target *target)
{
	struct place at;

restart:
	at.link = &start->next;
	weiri_section_read(scope->record, at.link, &at.here); /* [P1, S] the link of a mark, which never has REMOVED */
	while (link_of(at.here) != NULL) {
		struct weiri_hash_link *link = link_of(at.here);
		uintptr_t next;

		weiri_section_read(scope->record, &link->next, &next); /* [P1, S] */
		if ((next & REMOVED) != 0) {
			/*
			 * [seq_cst S] H3. at.here is without REMOVED, so the CAS fails if the node of the link
			 * was removed meanwhile.
			 */
			if (!weiri_cas_seq_cst(at.link, &at.here, next & ~REMOVED))
				goto restart;
			WEIR_ASSERT_LOOK(assert_marked(link, next));
			WEIR_ASSERT_INSTANT(assert_unlinked(list, link));
			weiri_scope_retire(scope, &node_of(link)->retired);
			at.here = next & ~REMOVED;
			continue;
		}
		if (walk_ends_at(list, target, link))
			break;
		at.link = &link->next;
		at.here = next;
	}
	return at;
}

static struct weiri_hash_link *found_at(const struct weiri_hash_list *list, const struct place *at,
                                        const struct target *target)
{
	struct weiri_hash_link *link = link_of(at->here);

	return link != NULL && compare(list, target, link) == 0 ? link : NULL;
}

/* Returns NULL if `link` was inserted, else the node with its key that is in the list. */
static struct weiri_hash_link *insert(struct weiri_scope *scope, const struct weiri_hash_list *list,
                                      struct weiri_hash_link *start, struct weiri_hash_link *link,
                                      const struct target *target)
{
	struct place at;
	struct weiri_hash_link *there;

	do {
		at = walk(scope, list, start, target);
		there = found_at(list, &at, target);
		if (there != NULL)
			return there;
		/* [relaxed] published by the CAS. */
		weiri_store_relaxed(&link->next, at.here);
		/* [P1 release] pairs with walk(). */
	} while (!weiri_cas_release(at.link, &at.here, (uintptr_t)link));
	WEIR_ASSERT_INSTANT(assert_sorted(list));
	return NULL;
}

/* -- growing ----------------------------------------------------------------------------------- */

/* Links the mark of the bucket, unless another thread has claimed it, or its segment is missing. */
static WEIRI_COLD void make_mark(struct weiri_scope *scope, struct weiri_hash_list *list, size_t bucket)
{
	struct weiri_hash_link *mark = mark_of(list, bucket);
	const struct target target = {reversed(bucket), NULL, false};
	uint64_t unused = 0;

	/* [relaxed] The claim is a right. The order is published with the mark: P1 and P2. */
	if (mark == NULL || order_at(mark) != 0 || !weiri_cas_relaxed(&mark->order, &unused, target.order))
		return;
	(void)insert(scope, list, start_of(list, split_from(bucket)), mark, &target);
	/* [P2 release] pairs with is_shown(). */
	weiri_store_release(&mark->order, target.order | SHOWN);
	WEIR_ASSERT_INSTANT(assert_shown(list, mark));
}

/* Returns where a walk to this hash starts. Makes the mark of its bucket if nobody has. */
static inline struct weiri_hash_link *start_at_mark(struct weiri_scope *scope, struct weiri_hash_list *list,
                                                    uint64_t hash)
{
	size_t bucket = bucket_of(list, hash);
	struct weiri_hash_link *mark;

	if (bucket == 0)
		return &list->first;
	mark = mark_of(list, bucket);
	if (WEIRI_LIKELY(is_shown(mark)))
		return mark;
	make_mark(scope, list, bucket);
	return start_of(list, bucket);
}

static WEIRI_COLD void grow(struct weiri_hash_list *list, uint32_t bits)
{
	size_t size = sizeof(struct weiri_hash_link) << bits;
	struct weiri_hash_link *none = NULL, *marks;

	/* [relaxed] the pointer is compared and not followed. */
	if (weiri_load_relaxed(&list->marks[bits + 1]) == NULL) {
		marks = weiri_allocate_zeroed(&list->allocator, size, MARKS_APART);
		if (marks == NULL)
			return;
		/* [P2 release] pairs with mark_of(). */
		if (!weiri_cas_release(&list->marks[bits + 1], &none, marks))
			weiri_release(&list->allocator, marks, size, MARKS_APART);
	}
	/* [relaxed] publishes nothing: mark_of() acquires the segment by its own pointer. */
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
	weiri_store_relaxed(&list->first.order, 0u);
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
	uintptr_t next = weiri_load_relaxed(&list->first.next);

	WEIR_ASSERT_WALK(assert_sorted(list));
	WEIR_ASSERT_WALK(assert_marks(list));
	while (link_of(next) != NULL) {
		struct weiri_hash_link *link = link_of(next);

		next = weiri_load_relaxed(&link->next);
		if (is_item(order_at(link)))
			end(node_of(link));
	}
	for (unsigned i = 1; i <= WEIRI_HASH_MOST_BITS; i++)
		weiri_release(&list->allocator, weiri_load_relaxed(&list->marks[i]), sizeof(struct weiri_hash_link) << (i - 1),
		              MARKS_APART);
}

/* A look-up that has met a removed node. */
static WEIRI_COLD struct weiri_hash_node *find_by_walk(struct weiri_scope *scope, struct weiri_hash_list *list,
                                                       uint64_t hash, const void *key)
{
	const struct target target = {order_of(hash), key, false};
	struct place at = walk(scope, list, start_of(list, bucket_of(list, hash)), &target);
	struct weiri_hash_link *link = found_at(list, &at, &target);

	return link != NULL ? node_of(link) : NULL;
}

/*
 * The walk of a look-up. It keeps no place for an insert, compares each key once, and leaves
 * removed nodes to walk().
 */
struct weiri_hash_node *weiri_hash_list_find(struct weiri_scope *scope, struct weiri_hash_list *list, uint64_t hash,
                                             const void *key)
{
	struct weiri_record *record = scope->record;
	struct weiri_hash_link *link = start_at_mark(scope, list, hash);
	const uint64_t wanted = order_of(hash);
	uintptr_t next;

	weiri_section_read(record, &link->next, &next); /* [P1, S] as in walk() */
	while ((link = link_of(next)) != NULL) {
		uint64_t order = order_at(link);

		weiri_section_read(record, &link->next, &next); /* [P1, S] H4 */
		if (WEIRI_UNLIKELY((next & REMOVED) != 0))
			return find_by_walk(scope, list, hash, key);
		if (order < wanted)
			continue;
		if (order > wanted)
			return NULL;
		if (WEIRI_LIKELY(list->compare(key, node_of(link)) == 0))
			return node_of(link);
	}
	return NULL;
}

struct weiri_hash_node *weiri_hash_list_insert(struct weiri_scope *scope, struct weiri_hash_list *list,
                                               struct weiri_hash_node *node, uint64_t hash, const void *key)
{
	const struct target target = {order_of(hash), key, false};
	struct weiri_hash_link *there = insert(scope, list, start_at_mark(scope, list, hash), &node->link, &target);

	if (there != NULL)
		return node_of(there);
	count_insert(list);
	return NULL;
}

bool weiri_hash_list_remove(struct weiri_scope *scope, struct weiri_hash_list *list, struct weiri_hash_node *node,
                            uint64_t hash, const void *key)
{
	const struct target target = {order_of(hash), key, false};
	/* [relaxed] the CAS decides. */
	uintptr_t next = weiri_load_relaxed(&node->link.next);

	do {
		if ((next & REMOVED) != 0) /* by another call */
			return false;
		/*
		 * [relaxed] H2. A walk that reads REMOVED learns nothing else from it. The insert of the
		 * successor published the link (P1), and this CAS continues its release sequence.
		 */
	} while (!weiri_cas_relaxed(&node->link.next, &next, next | REMOVED));
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
	struct place at = walk(scope, list, start_of(list, bucket), &target);

	return link_of(at.here) != NULL ? node_of(link_of(at.here)) : NULL;
}

size_t weiri_hash_list_count(const struct weiri_hash_list *list)
{
	size_t count = weiri_load_relaxed(&list->count); /* [relaxed] a count */

	return count <= SIZE_MAX / 2 ? count : 0;
}
