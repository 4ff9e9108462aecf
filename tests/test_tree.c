/*
 * test_tree.c - sorted collections with immutable versions: an edit is right, leaves the old
 * version as it was, and releases all memory.
 */
#include <criterion/criterion.h>

#include <stdint.h>
#include <stdlib.h>
#include <weir/reclaim.h>

#include "failing_allocator.h"
#include "base/compiler.h"
#include "areas/tree.h"

enum { NUMBERS = 200 };

static int numbers[NUMBERS];

static int compare(const void *key, const void *item)
{
	int a = *(const int *)key, b = *(const int *)item;

	return a < b ? -1 : a > b;
}

/* The version has exactly the numbers of `in`, in order. */
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

struct state {
	struct weiri_retired retired;
	struct weiri_tree *tree;
};

static _Atomic(struct weiri_retired *) current;

static void state_reclaim(struct weiri_retired *retired)
{
	free(WEIRI_CONTAINER_OF(retired, struct state, retired));
}

static struct weiri_retired *state_with(struct weiri_tree *tree)
{
	struct state *state = malloc(sizeof(*state));

	cr_assert_not_null(state);
	weiri_retired_init(&state->retired, sizeof(*state), state_reclaim);
	state->tree = tree;
	return &state->retired;
}

static struct weiri_tree *tree_now(void)
{
	return WEIRI_CONTAINER_OF(weiri_load_relaxed(&current), struct state, retired)->tree;
}

/*
 * Adds or removes each of `count` numbers. Returns 0 and changes nothing if there is no memory.
 */
static int change(const weir_allocator *allocator, const int which[], size_t count, char in[static NUMBERS])
{
	struct weiri_scope scope = weiri_scope_enter(weiri_record_get());
	struct weiri_tree_edit edit = weiri_tree_edit_begin(allocator);
	struct weiri_tree *next = tree_now();
	enum weir_status status;

	for (size_t i = 0; i < count && !edit.failed; i++) {
		int n = which[i];

		next = in[n] ? weiri_tree_remove(&edit, next, compare, &n)
		             : weiri_tree_insert(&edit, next, compare, &n, (uint64_t)n, &numbers[n]);
		in[n] = !in[n];
	}
	cr_assert(weiri_tree_publish(&edit, &scope, &current, weiri_load_relaxed(&current), state_with(next), &status));
	weiri_scope_leave(&scope);
	return status == WEIR_OK;
}

static void set_up(void)
{
	for (int i = 0; i < NUMBERS; i++)
		numbers[i] = i;
	weiri_store_relaxed(&current, state_with(NULL));
}

static void end(struct failing_allocator *state)
{
	weiri_tree_end(tree_now(), NULL, NULL, NULL);
	state_reclaim(weiri_load_relaxed(&current));
	cr_assert_eq(weir_reclaim_flush(0), WEIR_OK);
	cr_assert_str_eq(failing_allocator_verdict(state), "balanced");
}

Test(tree, edits_of_many_keys_are_right_and_balanced, .init = set_up)
{
	struct failing_allocator state = {0};
	weir_allocator allocator = failing_allocator_hooks(&state);
	char in[NUMBERS] = {0};
	unsigned random = 12345;

	for (int round = 0; round < 300; round++) {
		int which[12];

		for (int i = 0; i < 12; i++) {
			random = random * 1664525 + 1013904223;
			/* A number that is drawn twice comes and goes in one edit. */
			which[i] = (int)(random >> 8) % NUMBERS;
		}
		cr_assert(change(&allocator, which, (size_t)(1 + round % 12), in));
		expect(tree_now(), in);
	}
	end(&state);
}

/* The content of a version never changes while a section pins it. */
Test(tree, an_old_version_stays_as_it_was, .init = set_up)
{
	struct failing_allocator state = {0};
	weir_allocator allocator = failing_allocator_hooks(&state);
	struct weiri_tree *old;
	struct weiri_scope scope;
	char in[NUMBERS] = {0}, then[NUMBERS];
	const int first[] = {5, 1, 9, 3, 7}, second[] = {3, 4, 9, 20, 1};

	cr_assert(change(&allocator, first, 5, in));
	scope = weiri_scope_enter(weiri_record_get());
	old = tree_now();
	memcpy(then, in, sizeof(in));
	cr_assert(change(&allocator, second, 5, in));
	(void)weir_reclaim_flush(0);
	expect(old, then);
	expect(tree_now(), in);
	weiri_scope_leave(&scope);
	end(&state);
}

Test(tree, an_edit_without_memory_changes_nothing, .init = set_up)
{
	struct failing_allocator state = {0};
	weir_allocator allocator = failing_allocator_hooks(&state);
	char in[NUMBERS] = {0};
	const int first[] = {5, 1, 9, 3, 7, 11, 2}, second[] = {3, 4, 9, 20, 1, 4};
	int done = 0;

	cr_assert(change(&allocator, first, 7, in));
	for (size_t failing = 1; !done; failing++) {
		char trial[NUMBERS];

		memcpy(trial, in, sizeof(in));
		state.fail_at = state.asked + failing;
		done = change(&allocator, second, 6, trial);
		memcpy(in, done ? trial : in, sizeof(in));
		expect(tree_now(), in);
		cr_assert_lt(failing, 100);
	}
	state.fail_at = 0;
	end(&state);
}

Test(tree, a_change_of_a_version_that_was_replaced_does_nothing, .init = set_up)
{
	struct failing_allocator state = {0};
	weir_allocator allocator = failing_allocator_hooks(&state);
	struct weiri_scope scope = weiri_scope_enter(weiri_record_get());
	struct weiri_retired *old = weiri_load_relaxed(&current);
	struct weiri_tree_edit edit = weiri_tree_edit_begin(&allocator);
	struct weiri_tree *late = weiri_tree_insert(&edit, NULL, compare, &numbers[1], 1, &numbers[1]);
	char in[NUMBERS] = {0};
	enum weir_status status;

	cr_assert(change(&allocator, &numbers[2], 1, in));
	cr_assert_not(weiri_tree_publish(&edit, &scope, &current, old, state_with(late), &status));
	weiri_scope_leave(&scope);
	expect(tree_now(), in);
	end(&state);
}

Test(tree, an_item_is_replaced_in_its_place, .init = set_up)
{
	struct failing_allocator state = {0};
	weir_allocator allocator = failing_allocator_hooks(&state);
	const int first[] = {5, 1, 9, 3, 7};
	struct weiri_tree_edit edit = weiri_tree_edit_begin(&allocator);
	struct weiri_scope scope;
	char in[NUMBERS] = {0};
	enum weir_status status;
	int other = 9;

	cr_assert(change(&allocator, first, 5, in));
	scope = weiri_scope_enter(weiri_record_get());
	cr_assert(weiri_tree_publish(&edit, &scope, &current, weiri_load_relaxed(&current),
	                             state_with(weiri_tree_replace(&edit, tree_now(), compare, &other, &other)), &status));
	weiri_scope_leave(&scope);
	cr_assert_eq(weiri_tree_find(tree_now(), compare, &numbers[9]), &other);
	cr_assert_eq(weiri_tree_at(tree_now(), 4), &other);
	cr_assert_eq(weiri_tree_count(tree_now()), 5);
	end(&state);
}

/* Each removal copies a path. If the tree were a chain, a path would have a hundred nodes. */
Test(tree, keys_in_order_do_not_make_a_chain, .init = set_up)
{
	struct failing_allocator state = {0};
	weir_allocator allocator = failing_allocator_hooks(&state);
	char in[NUMBERS] = {0};
	size_t before;

	for (int i = 0; i < NUMBERS; i++)
		cr_assert(change(&allocator, &i, 1, in));
	before = state.asked;
	for (int i = NUMBERS - 1; i >= NUMBERS - 10; i--)
		cr_assert(change(&allocator, &i, 1, in));
	cr_assert_lt(state.asked - before, 10 * 30, "%zu nodes for 10 removals", state.asked - before);
	end(&state);
}
