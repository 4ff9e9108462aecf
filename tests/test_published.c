/*
 * test_published.c - the list and the tree that only grow: each pushed item is found, a sealed list
 * takes no more items, and no key is in the tree twice; and the spare block.
 */
#include <criterion/criterion.h>

#include <pthread.h>
#include <stddef.h>

#include "base/compiler.h"
#include "run/published.h"
#include "run/published_tree.h"
#include "run/spare.h"

struct number {
	struct weiri_published link;
	int value; /* plain: the push publishes it */
};

static int value_of(struct weiri_published *link)
{
	return WEIRI_CONTAINER_OF(link, struct number, link)->value;
}

static int push(struct weiri_published_list *list, struct number *number)
{
	return weiri_published_push_after(list, &number->link, weiri_published_first(list));
}

Test(published, the_newest_comes_first)
{
	struct number numbers[3] = {{.value = 0}, {.value = 1}, {.value = 2}};
	struct weiri_published_list list;
	struct weiri_published *link;

	weiri_published_init(&list);
	cr_expect_null(weiri_published_first(&list));
	for (int i = 0; i < 3; i++)
		cr_expect(push(&list, &numbers[i]));
	link = weiri_published_first(&list);
	for (int i = 2; i >= 0; i--) {
		cr_assert_not_null(link);
		cr_expect_eq(value_of(link), i);
		link = link->next;
	}
	cr_expect_null(link);
}

Test(published, a_push_behind_the_newest_item_fails)
{
	struct number numbers[2] = {{.value = 0}, {.value = 1}};
	struct weiri_published_list list;

	weiri_published_init(&list);
	cr_expect(push(&list, &numbers[0]));
	cr_expect_not(weiri_published_push_after(&list, &numbers[1].link, NULL));
	cr_expect_eq(weiri_published_first(&list), &numbers[0].link);
}

Test(published, a_sealed_list_takes_no_more_and_can_still_be_read)
{
	struct number numbers[2] = {{.value = 0}, {.value = 1}};
	struct weiri_published_list list;

	weiri_published_init(&list);
	cr_expect(push(&list, &numbers[0]));
	cr_expect_not(weiri_published_sealed(&list));
	cr_expect_eq(weiri_published_seal(&list), &numbers[0].link);
	cr_expect_eq(weiri_published_seal(&list), &numbers[0].link);
	cr_expect(weiri_published_sealed(&list));
	cr_expect_not(push(&list, &numbers[1]));
	cr_expect_eq(weiri_published_first(&list), &numbers[0].link);
}

enum { PUSHERS = 4, EACH = 1000 };

struct pusher {
	struct weiri_published_list *list;
	struct number numbers[EACH];
	int pushed;
};

/* Tries again until the node is in or the list is sealed, and now and then walks over the list. */
static void *push_all(void *context)
{
	struct pusher *pusher = context;
	volatile int sum = 0;

	for (int i = 0; i < EACH; i++) {
		while (!push(pusher->list, &pusher->numbers[i])) {
			if (weiri_published_sealed(pusher->list))
				return NULL;
		}
		pusher->pushed++;
		for (struct weiri_published *link = weiri_published_first(pusher->list); i % 100 == 0 && link != NULL;
		     link = link->next)
			sum = sum + value_of(link);
	}
	return NULL;
}

static void push_from_many_threads(int sealed_on_the_way)
{
	static struct pusher pushers[PUSHERS];
	static int found[PUSHERS * EACH];
	struct weiri_published_list list;
	pthread_t threads[PUSHERS];
	struct weiri_published *sealed_at = NULL;
	int total = 0;

	weiri_published_init(&list);
	for (int p = 0; p < PUSHERS; p++) {
		pushers[p].list = &list;
		pushers[p].pushed = 0;
		for (int i = 0; i < EACH; i++) {
			pushers[p].numbers[i].value = p * EACH + i;
			found[p * EACH + i] = 0;
		}
		cr_assert_eq(pthread_create(&threads[p], NULL, push_all, &pushers[p]), 0);
	}
	if (sealed_on_the_way)
		sealed_at = weiri_published_seal(&list);
	for (int p = 0; p < PUSHERS; p++) {
		cr_assert_eq(pthread_join(threads[p], NULL), 0);
		total += pushers[p].pushed;
	}
	if (sealed_on_the_way)
		cr_expect_eq(weiri_published_first(&list), sealed_at);
	else
		cr_expect_eq(total, PUSHERS * EACH);
	for (struct weiri_published *link = weiri_published_first(&list); link != NULL; link = link->next) {
		cr_expect_eq(found[value_of(link)]++, 0, "%d is there twice", value_of(link));
		total--;
	}
	cr_expect_eq(total, 0, "every pushed node is there");
}

Test(published, no_push_of_many_threads_is_lost)
{
	push_from_many_threads(0);
}

Test(published, what_was_pushed_before_the_seal_stays)
{
	push_from_many_threads(1);
}

/* -- the tree ---------------------------------------------------------------------------------- */

struct leaf {
	struct weiri_branch branch;
	int key; /* plain: the insert publishes it */
};

static int key_of(const struct weiri_branch *branch)
{
	return ((const struct leaf *)(const void *)branch)->key;
}

static bool has_key(const void *key, const struct weiri_branch *branch)
{
	return *(const int *)key == key_of(branch);
}

typedef uint64_t hash_fn(int key);

static uint64_t spread(int key)
{
	return (uint64_t)key * UINT64_C(0x9E3779B97F4A7C15) >> 7;
}

/* Only three hashes, which have their low bits in common: chains. */
static uint64_t clash(int key)
{
	return (uint64_t)(key % 3) << 40;
}

/* Returns NULL if the leaf is in now. */
static struct weiri_branch *insert(struct weiri_published_tree *tree, struct leaf *leaf, int key, hash_fn *hash)
{
	leaf->key = key;
	weiri_branch_init(&leaf->branch, hash(key));
	return weiri_published_tree_insert(tree, &leaf->branch, has_key, &leaf->key);
}

static struct weiri_branch *find_leaf(struct weiri_published_tree *tree, int key, hash_fn *hash)
{
	return weiri_published_tree_find(tree, hash(key), has_key, &key);
}

static void insert_and_find(hash_fn *hash, int count)
{
	static struct leaf leaves[1000], again;
	struct weiri_published_tree tree;

	weiri_published_tree_init(&tree);
	cr_expect_null(find_leaf(&tree, 0, hash));
	for (int i = 0; i < count; i++)
		cr_expect_null(insert(&tree, &leaves[i], i, hash));
	for (int i = 0; i < count; i++) {
		cr_expect_eq(find_leaf(&tree, i, hash), &leaves[i].branch, "%d", i);
		cr_expect_eq(insert(&tree, &again, i, hash), &leaves[i].branch, "%d is there twice", i);
	}
	cr_expect_null(find_leaf(&tree, count, hash));
}

Test(published, a_tree_finds_each_key_and_takes_none_twice)
{
	insert_and_find(spread, 1000);
	insert_and_find(clash, 100);
}

struct gardener {
	struct weiri_published_tree *tree;
	struct leaf leaves[EACH];
	int inserted;
};

/* All threads insert the same keys. */
static void *insert_all(void *context)
{
	struct gardener *gardener = context;

	for (int i = 0; i < EACH; i++) {
		struct weiri_branch *other = insert(gardener->tree, &gardener->leaves[i], i, spread);

		gardener->inserted += other == NULL;
		if (other != NULL && key_of(other) != i)
			return NULL;
	}
	return gardener;
}

Test(published, of_threads_that_insert_one_key_one_succeeds)
{
	static struct gardener gardeners[PUSHERS];
	struct weiri_published_tree tree;
	pthread_t threads[PUSHERS];
	int inserted = 0;

	weiri_published_tree_init(&tree);
	for (int i = 0; i < PUSHERS; i++) {
		gardeners[i].tree = &tree;
		gardeners[i].inserted = 0;
		cr_assert_eq(pthread_create(&threads[i], NULL, insert_all, &gardeners[i]), 0);
	}
	for (int i = 0; i < PUSHERS; i++) {
		void *whole;

		cr_assert_eq(pthread_join(threads[i], &whole), 0);
		cr_expect_not_null(whole, "an item with another key was returned");
		inserted += gardeners[i].inserted;
	}
	cr_expect_eq(inserted, EACH);
	for (int i = 0; i < EACH; i++)
		cr_expect_not_null(find_leaf(&tree, i, spread));
}

/* -- the spare block --------------------------------------------------------------------------- */

Test(published, one_block_is_spare)
{
	struct weiri_spare spare;
	int one, two;

	weiri_spare_init(&spare);
	cr_expect_null(weiri_spare_take(&spare));
	cr_expect(weiri_spare_put(&spare, &one));
	cr_expect_not(weiri_spare_put(&spare, &two));
	cr_expect_eq(weiri_spare_take(&spare), &one);
	cr_expect_null(weiri_spare_take(&spare));
	cr_expect(weiri_spare_put(&spare, &two));
}
