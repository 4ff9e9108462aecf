/*
 * test_tree.c - sorted collections with immutable versions: an edit is right, leaves the old version as it was, and gives all memory back.
 */
#include <criterion/criterion.h>

#include <stdint.h>
#include <stdlib.h>
#include <weir/reclaim.h>

#include "failing_allocator.h"
#include "queue/tree.h"

enum { NUMBERS = 200 };

static int numbers[NUMBERS];

static int compare(const void *key, const void *item)
{
	int a = *(const int *)key, b = *(const int *)item;

	return a < b ? -1 : a > b;
}

/* The version shows exactly the numbers of `in`, in order. */
static void expect(const struct weiri_tree *tree, const char in[static NUMBERS])
{
	size_t rank = 0;

	for (int i = 0; i < NUMBERS; i++) {
		cr_assert_eq(weiri_tree_find(tree, compare, &i), in[i] ? (void *)&numbers[i] : NULL);
		if (in[i])
			cr_assert_eq(weiri_tree_at(tree, rank++), &numbers[i]);
	}
	cr_assert_eq(weiri_tree_count(tree), rank);
	cr_assert_null(weiri_tree_at(tree, rank));
}

/* Adds or removes each of `count` numbers; NULL in *tree is a version, too. 0: no memory, and nothing was done. */
static int change(const weir_allocator *allocator, struct weiri_tree **tree, const int which[], size_t count,
                  char in[static NUMBERS])
{
	struct weiri_scope scope = weiri_scope_enter(weiri_record_get());
	struct weiri_tree_edit edit = weiri_tree_edit_begin(allocator);
	struct weiri_tree *next = *tree;

	for (size_t i = 0; i < count && !edit.failed; i++) {
		int n = which[i];

		next = in[n] ? weiri_tree_remove(&edit, next, compare, &n)
		             : weiri_tree_insert(&edit, next, compare, &n, (uint64_t)n, &numbers[n]);
		in[n] = !in[n];
	}
	if (edit.failed) {
		weiri_tree_edit_discard(&edit);
	} else {
		weiri_tree_edit_seal(&edit, &scope);
		*tree = next;
		weiri_tree_edit_published(&edit, &scope);
	}
	weiri_scope_leave(&scope);
	return !edit.failed;
}

static void set_up(void)
{
	for (int i = 0; i < NUMBERS; i++)
		numbers[i] = i;
}

static void end(struct weiri_tree *tree, struct failing_allocator *state)
{
	weiri_tree_end(tree, NULL, NULL, NULL);
	cr_assert_eq(weir_reclaim_flush(0), WEIR_OK);
	cr_assert_str_eq(failing_allocator_verdict(state), "balanced");
}

Test(tree, edits_of_many_keys_are_right_and_balanced, .init = set_up)
{
	struct failing_allocator state = {0};
	weir_allocator allocator = failing_allocator_hooks(&state);
	struct weiri_tree *tree = NULL;
	char in[NUMBERS] = {0};
	unsigned random = 12345;

	for (int round = 0; round < 300; round++) {
		int which[12];

		for (int i = 0; i < 12; i++) {
			random = random * 1664525 + 1013904223;
			which[i] = (int)(random >> 8) % NUMBERS; /* the same one twice comes and goes in one edit */
		}
		cr_assert(change(&allocator, &tree, which, (size_t)(1 + round % 12), in));
		expect(tree, in);
	}
	end(tree, &state);
}

/* What a version shows never changes, as long as a section keeps it. */
Test(tree, an_old_version_stays_as_it_was, .init = set_up)
{
	struct failing_allocator state = {0};
	weir_allocator allocator = failing_allocator_hooks(&state);
	struct weiri_tree *tree = NULL, *old;
	struct weiri_scope scope;
	char in[NUMBERS] = {0}, then[NUMBERS];
	const int first[] = {5, 1, 9, 3, 7}, second[] = {3, 4, 9, 20, 1};

	cr_assert(change(&allocator, &tree, first, 5, in));
	scope = weiri_scope_enter(weiri_record_get());
	old = tree;
	memcpy(then, in, sizeof(in));
	cr_assert(change(&allocator, &tree, second, 5, in));
	(void)weir_reclaim_flush(0);
	expect(old, then);
	expect(tree, in);
	weiri_scope_leave(&scope);
	end(tree, &state);
}

Test(tree, an_edit_without_memory_changes_nothing, .init = set_up)
{
	struct failing_allocator state = {0};
	weir_allocator allocator = failing_allocator_hooks(&state);
	struct weiri_tree *tree = NULL;
	char in[NUMBERS] = {0};
	const int first[] = {5, 1, 9, 3, 7, 11, 2}, second[] = {3, 4, 9, 20, 1, 4};
	int done = 0;

	cr_assert(change(&allocator, &tree, first, 7, in));
	for (size_t failing = 1; !done; failing++) {
		char trial[NUMBERS];

		memcpy(trial, in, sizeof(in));
		state.fail_at = state.asked + failing;
		done = change(&allocator, &tree, second, 6, trial);
		memcpy(in, done ? trial : in, sizeof(in));
		expect(tree, in);
		cr_assert_lt(failing, 100);
	}
	state.fail_at = 0;
	end(tree, &state);
}

/* Each removal copies a path; a chain's would be a hundred long. */
Test(tree, keys_in_order_do_not_make_a_chain, .init = set_up)
{
	struct failing_allocator state = {0};
	weir_allocator allocator = failing_allocator_hooks(&state);
	struct weiri_tree *tree = NULL;
	char in[NUMBERS] = {0};
	size_t before;

	for (int i = 0; i < NUMBERS; i++)
		cr_assert(change(&allocator, &tree, &i, 1, in));
	before = state.asked;
	for (int i = NUMBERS - 1; i >= NUMBERS - 10; i--)
		cr_assert(change(&allocator, &tree, &i, 1, in));
	cr_assert_lt(state.asked - before, 10 * 30, "%zu nodes for 10 removals", state.asked - before);
	end(tree, &state);
}
