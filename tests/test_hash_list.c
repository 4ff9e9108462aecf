/*
 * test_hash_list.c - the list below the stores and registries: marks, comparisons, hashes. What a
 * user sees of it is tested by test_named_store.c.
 */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "store/text_hash.h"
#include "sync/hash_list.h"

/* Numbers that are their own hashes. */
struct number {
	struct weiri_hash_node node;
	uint64_t value;
};

static struct number *number_of(struct weiri_hash_node *node)
{
	return node != NULL ? WEIRI_CONTAINER_OF(node, struct number, node) : NULL;
}

static size_t comparisons;

static int compare_numbers(const void *value, struct weiri_hash_node *node)
{
	uint64_t asked = *(const uint64_t *)value, there = number_of(node)->value;

	comparisons++;
	return (asked > there) - (asked < there);
}

static void end_nothing(struct weiri_hash_node *node)
{
	(void)node;
}

static void never_ended(struct weiri_retired *retired)
{
	(void)retired;
}

enum { NUMBERS = 256, SHOWN = 2 };

static void insert_numbers(struct weiri_scope *scope, struct weiri_hash_list *list, struct number numbers[NUMBERS])
{
	for (uint64_t i = 0; i < NUMBERS; i++) {
		numbers[i].value = i;
		weiri_hash_node_init(&numbers[i].node, i, sizeof(numbers[i]), never_ended);
		cr_assert_null(weiri_hash_list_insert(scope, list, &numbers[i].node, i, &i));
	}
}

static size_t marks_shown(struct weiri_hash_list *list)
{
	size_t shown = 0;

	for (unsigned segment = 1; segment <= WEIRI_HASH_MOST_BITS; segment++) {
		struct weiri_hash_link *marks = weiri_load_relaxed(&list->marks[segment]);

		for (size_t i = 0; marks != NULL && i < (size_t)1 << (segment - 1); i++)
			shown += (weiri_load_relaxed(&marks[i].order) & SHOWN) != 0;
	}
	return shown;
}

/*
 * Each bucket has its mark once it was asked for, so that a look-up begins there. Where `long` has
 * 32 bits, marks were once looked for beyond the table, and never made.
 */
Test(hash_list, a_look_up_makes_the_mark_of_its_bucket)
{
	static struct number numbers[NUMBERS];
	struct weiri_scope scope = weiri_scope_enter(weiri_record_get());
	static struct weiri_hash_list list;

	weiri_hash_list_init(&list, compare_numbers, weir_default_allocator());
	insert_numbers(&scope, &list, numbers);
	cr_assert_leq(marks_shown(&list), NUMBERS - 1);
	for (uint64_t i = 0; i < NUMBERS; i++)
		cr_assert_eq(number_of(weiri_hash_list_find(&scope, &list, i, &i)), &numbers[i]);
	cr_assert_eq(marks_shown(&list), NUMBERS - 1, "of every bucket but the first, whose mark is the list's beginning");
	weiri_scope_leave(&scope);
	weiri_hash_list_fini(&list, end_nothing);
}

/* A look-up compares keys only where the whole hash agrees, and each key once. */
Test(hash_list, a_key_is_compared_once)
{
	static struct number numbers[NUMBERS];
	struct weiri_scope scope = weiri_scope_enter(weiri_record_get());
	static struct weiri_hash_list list;
	uint64_t other = 7 + ((uint64_t)1 << 40);

	weiri_hash_list_init(&list, compare_numbers, weir_default_allocator());
	insert_numbers(&scope, &list, numbers);
	comparisons = 0;
	for (uint64_t i = 0; i < NUMBERS; i++)
		cr_assert_eq(number_of(weiri_hash_list_find(&scope, &list, i, &i)), &numbers[i]);
	cr_assert_eq(comparisons, NUMBERS);
	cr_assert_null(weiri_hash_list_find(&scope, &list, other, &other));
	cr_assert_eq(comparisons, NUMBERS, "the hash is in the same bucket, and another");
	weiri_scope_leave(&scope);
	weiri_hash_list_fini(&list, end_nothing);
}

/* The hash that a node gives back finds it, though the node does not keep all of it. */
Test(hash_list, a_node_gives_its_hash_back)
{
	struct weiri_scope scope = weiri_scope_enter(weiri_record_get());
	static struct weiri_hash_list list;
	static struct number number = {.value = UINT64_MAX - 5};

	weiri_hash_list_init(&list, compare_numbers, weir_default_allocator());
	weiri_hash_node_init(&number.node, number.value, sizeof(number), never_ended);
	cr_assert_null(weiri_hash_list_insert(&scope, &list, &number.node, number.value, &number.value));
	cr_assert_eq(weiri_hash_of_node(&number.node) & 0xffffff, number.value & 0xffffff);
	cr_assert_eq(number_of(weiri_hash_list_find(&scope, &list, weiri_hash_of_node(&number.node), &number.value)),
	             &number);
	weiri_scope_leave(&scope);
	weiri_hash_list_fini(&list, end_nothing);
}

/* -- the hash of texts -------------------------------------------------------------------------- */

static uint64_t hash_of(const char *text)
{
	return weiri_text_hash_end(weiri_text_hash_add(WEIRI_TEXT_HASH_BEGIN, text, strlen(text)));
}

static const char *const families[][2] = {{"", ""},
                                          {"variable/", ""},
                                          {"layer", "/weights"},
                                          {"", "/a/long/suffix/of/many/characters"},
                                          {"a/long/prefix/of/many/characters/", ""}};

enum { FAMILY = 4096 };

/*
 * Names as programs make them fall into the buckets about as evenly as by chance. By chance, the
 * sum of the squares is 2 * FAMILY if there are as many buckets as names.
 */
Test(hash_list, names_of_usual_patterns_spread)
{
	for (size_t f = 0; f < sizeof(families) / sizeof(families[0]); f++) {
		static unsigned in_bucket[FAMILY];
		size_t squares = 0;
		char name[64];

		memset(in_bucket, 0, sizeof(in_bucket));
		for (size_t i = 0; i < FAMILY; i++) {
			(void)snprintf(name, sizeof(name), "%s%zu%s", families[f][0], i, families[f][1]);
			in_bucket[hash_of(name) % FAMILY]++;
		}
		for (size_t i = 0; i < FAMILY; i++)
			squares += (size_t)in_bucket[i] * in_bucket[i];
		cr_assert_leq(squares, 5 * FAMILY / 2, "%s...%s: %zu", families[f][0], families[f][1], squares);
	}
}

/* Every byte counts, at each place and in each size; so does the boundary between two texts. */
Test(hash_list, every_byte_of_a_text_counts)
{
	char one[41], other[41];

	for (size_t size = 1; size < sizeof(one); size++) {
		for (size_t place = 0; place < size; place++) {
			memset(one, 'x', size);
			memset(other, 'x', size);
			other[place] = 'y';
			one[size] = other[size] = '\0';
			cr_assert(weiri_texts_are_equal(one, one, size));
			cr_assert(!weiri_texts_are_equal(one, other, size), "%zu of %zu", place, size);
			cr_assert_neq(hash_of(one), hash_of(other), "%zu of %zu", place, size);
			cr_assert_neq(hash_of(one), hash_of(one + 1));
		}
	}
	cr_assert_neq(weiri_text_hash_add(weiri_text_hash_add(WEIRI_TEXT_HASH_BEGIN, "ab", 2), "c", 1),
	              weiri_text_hash_add(weiri_text_hash_add(WEIRI_TEXT_HASH_BEGIN, "a", 1), "bc", 2));
}
