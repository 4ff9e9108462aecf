/*
 * test_value.c - variables of bytes and of pointers: what they hold, what they refuse and say, who
 * owns a pointer when, and that each allocation may fail.
 */
#include <criterion/criterion.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <weir/flow/checkpoint.h>
#include <weir/flow/op.h>
#include <weir/read_section.h>
#include <weir/scatter.h>
#include <weir/value.h>
#include <weir/var_cache.h>
#include <weir/watch.h>

#include "variables.h"

struct pair {
	int64_t left, right;
};

static struct weir_var_options inline_options(const char *name, size_t size)
{
	return (struct weir_var_options){WEIR_VAR_OPTIONS_INIT, .name = name, .kind = WEIR_VAR_INLINE, .size = size,
	                                 .allocator = &variables_memory};
}

static weir_var *pair_variable(int64_t left, int64_t right)
{
	struct weir_var_options options = inline_options("pair", sizeof(struct pair));
	struct pair first = {left, right};
	weir_var *var = NULL;

	cr_assert_eq(weir_var_create_value(WEIR_VALUE_OF(first), &options, &var, NULL), WEIR_OK);
	return var;
}

static enum weir_status assign_pair(weir_var *var, int64_t left, int64_t right)
{
	struct pair next = {left, right};

	return weir_var_assign_value(var, WEIR_VALUE_OF(next), WEIR_NO_DEADLINE, NULL, NULL);
}

static const struct pair *pair_of(const weir_read *read)
{
	return read->data;
}

static int64_t left_in(weir_var *var)
{
	struct pair pair = {0, 0};

	cr_assert_eq(weir_var_read_into(var, &pair, sizeof(pair), NULL, NULL), WEIR_OK);
	return pair.left;
}

/* An object that a pointer variable holds; it must be released once. */
struct thing {
	_Atomic(int) released;
	int64_t value;
};

static void release_thing(void *context, void *pointer)
{
	struct thing *thing = pointer;

	cr_assert_eq(context, &variables_state, "the context is that of the options");
	weiri_fetch_add_relaxed(&thing->released, 1);
}

static size_t measure_thing(void *context, const void *pointer)
{
	(void)context;
	return (size_t)((const struct thing *)pointer)->value;
}

static weir_var *thing_variable(const char *name)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT,         .name = name,
	                                   .kind = WEIR_VAR_POINTER,      .size = 100,
	                                   .release = release_thing,      .context = &variables_state,
	                                   .allocator = &variables_memory};
	weir_var *var = NULL;

	cr_assert_eq(weir_var_create(NULL, &options, &var, NULL), WEIR_OK);
	return var;
}

static enum weir_status assign_thing(weir_var *var, struct thing *thing)
{
	return weir_var_assign_value(var, weir_value_pointer(thing), WEIR_NO_DEADLINE, NULL, NULL);
}

static void end(weir_var *var)
{
	cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
	expect_nothing_left();
}

static int releases_of(const struct thing *thing)
{
	return weiri_load_relaxed(&thing->released);
}

/* -- bytes ------------------------------------------------------------------------------------- */

Test(value, bytes_are_copied_in_and_out)
{
	weir_var *var = pair_variable(1, 2);
	struct pair copy = {0, 0};
	uint64_t version = 0;
	weir_read read;

	cr_expect_eq(weir_var_kind(var), WEIR_VAR_INLINE);
	cr_expect_eq(weir_var_size(var), sizeof(struct pair));
	cr_expect_eq((int)weir_var_dtype(var), 0);
	cr_assert_eq(assign_pair(var, 3, 4), WEIR_OK);
	cr_assert_eq(weir_var_read(var, &read), WEIR_OK);
	cr_expect_eq(pair_of(&read)->left, 3);
	cr_expect_eq(pair_of(&read)->right, 4);
	cr_expect_eq(read.version, 2);
	cr_expect_eq((uintptr_t)read.data % 16, 0);
	cr_assert_eq(assign_pair(var, 5, 6), WEIR_OK);
	cr_assert_eq(weir_var_read_into(var, &copy, sizeof(copy), &version, NULL), WEIR_OK);
	cr_expect_eq(copy.left, 5);
	cr_expect_eq(version, 3);
	collect_now();
	cr_expect_eq(pair_of(&read)->right, 4, "the handle keeps its version");
	weir_read_release(&read);
	end(var);
}

/* A value of each size fills its block to the last byte and no further. */
Test(value, every_size_is_kept_whole)
{
	for (size_t size = 1; size <= WEIR_VAR_MAX_INLINE; size++) {
		struct weir_var_options options = inline_options("bytes", size);
		unsigned char bytes[WEIR_VAR_MAX_INLINE], copy[WEIR_VAR_MAX_INLINE] = {0};
		weir_var *var = NULL;

		memset(bytes, (int)size, sizeof(bytes));
		cr_assert_eq(weir_var_create_value(weir_value_inline(bytes, size), &options, &var, NULL), WEIR_OK);
		bytes[size - 1] = 7;
		cr_assert_eq(weir_var_assign_value(var, weir_value_inline(bytes, size), WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
		cr_assert_eq(weir_var_read_into(var, copy, size, NULL, NULL), WEIR_OK);
		cr_expect_arr_eq(copy, bytes, size);
		cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
	}
	expect_nothing_left();
}

Test(value, a_variable_without_a_first_value_is_not_initialized)
{
	struct weir_var_options options = inline_options("later", sizeof(struct pair));
	weir_error error = {WEIR_OK, ""};
	struct pair pair = {42, 42};
	weir_var *var = NULL;
	weir_read read;

	cr_assert_eq(weir_var_create(NULL, &options, &var, NULL), WEIR_OK);
	cr_expect_eq(weir_var_read(var, &read), WEIR_FAILED_PRECONDITION);
	cr_expect_eq(weir_var_read_into(var, &pair, sizeof(pair), NULL, &error), WEIR_FAILED_PRECONDITION);
	cr_expect_str_eq(error.message, "variable \"later\" is not initialized");
	cr_expect_eq(pair.left, 42);
	cr_assert_eq(weir_var_compare_assign_value(var, 0, WEIR_VALUE_OF(pair), WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	cr_expect_eq(left_in(var), 42);
	end(var);
}

Test(value, writes_of_bytes_give_handles)
{
	weir_var *var = pair_variable(1, 1);
	struct pair next = {2, 2};
	weir_read published = {.version = 42}, replaced;
	weir_error error;

	cr_assert_eq(weir_var_assign_value(var, WEIR_VALUE_OF(next), WEIR_NO_DEADLINE, &published, NULL), WEIR_OK);
	cr_expect_eq(published.version, 2);
	cr_assert_eq(assign_pair(var, 3, 3), WEIR_OK);
	collect_now();
	cr_expect_eq(pair_of(&published)->left, 2);
	weir_read_release(&published);
	cr_expect_eq(weir_var_compare_assign_value(var, 2, WEIR_VALUE_OF(next), WEIR_NO_DEADLINE, &published, &error),
	             WEIR_ABORTED);
	cr_expect_str_eq(error.message, "variable \"pair\" is at version 3, expected 2");
	cr_expect_eq(published.version, 3);
	cr_expect_null(published.data);
	cr_assert_eq(weir_var_exchange_value(var, WEIR_VALUE_OF(next), WEIR_NO_DEADLINE, &replaced, NULL), WEIR_OK);
	cr_expect_eq(pair_of(&replaced)->left, 3);
	weir_read_release(&replaced);
	end(var);
}

static enum weir_status add_one(void *context, const weir_read *current, weir_value *next, weir_error *error)
{
	struct pair *pair = next->room;

	(void)error;
	cr_expect_eq(pair->left, pair_of(current)->left, "the room begins as a copy");
	pair->left++;
	++*(int *)context;
	return pair->left == 100 ? WEIR_OUT_OF_RANGE : WEIR_OK;
}

static enum weir_status change_kind(void *context, const weir_read *current, weir_value *next, weir_error *error)
{
	(void)context, (void)current, (void)error;
	*next = weir_value_pointer(next);
	return WEIR_OK;
}

static enum weir_status move_room(void *context, const weir_read *current, weir_value *next, weir_error *error)
{
	(void)current, (void)error;
	next->data = context;
	return WEIR_OK;
}

Test(value, an_update_changes_bytes_where_they_stay)
{
	weir_var *var = pair_variable(1, 5);
	struct pair elsewhere = {0, 0};
	weir_error error;
	weir_read published;
	int calls = 0;

	cr_assert_eq(weir_var_update_value(var, add_one, &calls, WEIR_NO_DEADLINE, &published, NULL), WEIR_OK);
	cr_expect_eq(published.version, 2);
	cr_expect_eq(pair_of(&published)->left, 2);
	cr_expect_eq(pair_of(&published)->right, 5);
	weir_read_release(&published);
	cr_expect_eq(weir_var_update_value(var, change_kind, NULL, WEIR_NO_DEADLINE, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "variable \"pair\": takes inline values of 16 bytes, got a pointer");
	cr_expect_eq(weir_var_update_value(var, move_room, &elsewhere, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "variable \"pair\": the update moved the room for its bytes");
	cr_assert_eq(assign_pair(var, 99, 0), WEIR_OK);
	cr_expect_eq(weir_var_update_value(var, add_one, &calls, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OUT_OF_RANGE);
	cr_expect_eq(left_in(var), 99);
	end(var);
}

struct refusal {
	int status, calls;
};

static enum weir_status refuse(void *context, const weir_read *current, weir_value *next, weir_error *error)
{
	struct refusal *refusal = context;

	(void)current, (void)next, (void)error;
	refusal->calls++;
	return (enum weir_status)refusal->status;
}

/* Whatever number that is: to Weir none of them means that it should call the function again. */
Test(value, an_update_returns_what_its_function_returned)
{
	static const int statuses[] = {-1, -2, WEIR_ABORTED, 1000};
	weir_var *var = pair_variable(1, 5);

	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
		struct refusal in_place = {statuses[i], 0}, in_general = in_place;
		weir_read published = {.version = 42};

		cr_expect_eq((int)weir_var_update_value(var, refuse, &in_place, WEIR_NO_DEADLINE, NULL, NULL), statuses[i]);
		cr_expect_eq(in_place.calls, 1);
		cr_expect_eq((int)weir_var_update_value(var, refuse, &in_general, WEIR_NO_DEADLINE, &published, NULL),
		             statuses[i]);
		cr_expect_eq(in_general.calls, 1);
		cr_expect_eq(published.version, 42, "untouched");
	}
	cr_expect_eq(weir_var_version(var), 1);
	end(var);
}

/* What an update's function leaves in its error, which is never NULL. */
struct said {
	enum weir_status code;
	const char *message; /* NULL: it leaves nothing */
};

static enum weir_status say(const struct said *said, weir_error *error)
{
	cr_assert_not_null(error);
	if (said->message != NULL) {
		error->code = said->code;
		(void)snprintf(error->message, sizeof(error->message), "%s", said->message);
	}
	return WEIR_DATA_LOSS;
}

static enum weir_status say_of_value(void *context, const weir_read *current, weir_value *next, weir_error *error)
{
	(void)current, (void)next;
	return say(context, error);
}

static enum weir_status say_of_tensor(void *context, const weir_read *current, weir_tensor **next, weir_error *error)
{
	(void)current, (void)next;
	return say(context, error);
}

static void expect_explained(enum weir_status status, const weir_error *error, const char *message)
{
	cr_expect_eq(status, WEIR_DATA_LOSS);
	cr_expect_eq(error->code, WEIR_DATA_LOSS);
	cr_expect_str_eq(error->message, message);
}

Test(value, an_update_that_fails_has_a_message_whatever_its_function_left)
{
	static const struct {
		struct said said;
		const char *of_pair, *of_tensor;
	} cases[] = {
		{{WEIR_DATA_LOSS, "torn"}, "torn", "torn"},
		{{WEIR_OK, "torn"}, "torn", "torn"}, /* without a code */
		{{WEIR_OK, NULL},
	     "variable \"pair\": the function of the update returned WEIR_DATA_LOSS",
	     "variable \"v\": the function of the update returned WEIR_DATA_LOSS"},
		/* of a call that failed before, and does not matter */
		{{WEIR_NOT_FOUND, "no such file"},
	     "variable \"pair\": the function of the update returned WEIR_DATA_LOSS",
	     "variable \"v\": the function of the update returned WEIR_DATA_LOSS"},
	};
	weir_var *pair = pair_variable(1, 5), *tensors = variable(1);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct said said = cases[i].said;
		weir_read published;
		weir_error error = {WEIR_ABORTED, "of an earlier call"};

		expect_explained(weir_var_update_value(pair, say_of_value, &said, 0, NULL, &error), &error, cases[i].of_pair);
		error = (weir_error){WEIR_ABORTED, "of an earlier call"};
		expect_explained(weir_var_update_value(pair, say_of_value, &said, 0, &published, &error), &error,
		                 cases[i].of_pair);
		error = (weir_error){WEIR_ABORTED, "of an earlier call"};
		expect_explained(weir_var_update(tensors, say_of_tensor, &said, 0, NULL, &error), &error, cases[i].of_tensor);
		cr_expect_eq(weir_var_update_value(pair, say_of_value, &said, 0, NULL, NULL), WEIR_DATA_LOSS);
		cr_expect_eq(weir_var_update(tensors, say_of_tensor, &said, 0, NULL, NULL), WEIR_DATA_LOSS);
	}
	weir_var_destroy(tensors, NULL);
	end(pair);
}

/* -- an error for each attempt ----------------------------------------------------------------- */

struct attempts {
	weir_var *var;
	int calls;
};

/* Returns true in the first attempt, which another write is to overtake. */
static bool leave_an_error(struct attempts *attempts, weir_error *error)
{
	cr_expect_eq(error->code, WEIR_OK);
	cr_expect_str_eq(error->message, "");
	*error = (weir_error){WEIR_NOT_FOUND, "no such file"};
	return attempts->calls++ == 0;
}

static enum weir_status lose_a_value_once(void *context, const weir_read *current, weir_value *next, weir_error *error)
{
	struct attempts *attempts = context;

	(void)current, (void)next;
	if (leave_an_error(attempts, error))
		cr_assert_eq(assign_pair(attempts->var, 7, 7), WEIR_OK);
	return WEIR_OK;
}

static enum weir_status lose_a_tensor_once(void *context, const weir_read *current, weir_tensor **next,
                                           weir_error *error)
{
	struct attempts *attempts = context;

	(void)current;
	if (leave_an_error(attempts, error))
		assign(attempts->var, 7);
	*next = number(8);
	return WEIR_OK;
}

Test(value, each_attempt_of_an_update_gets_an_empty_error)
{
	struct attempts of_pair = {.var = pair_variable(1, 5)}, in_general = of_pair, of_tensor = {.var = variable(1)};
	weir_read published;

	cr_assert_eq(weir_var_update_value(of_pair.var, lose_a_value_once, &of_pair, 0, NULL, NULL), WEIR_OK);
	cr_expect_eq(of_pair.calls, 2);
	cr_assert_eq(weir_var_update_value(of_pair.var, lose_a_value_once, &in_general, 0, &published, NULL), WEIR_OK);
	cr_expect_eq(in_general.calls, 2);
	weir_read_release(&published);
	cr_assert_eq(weir_var_update(of_tensor.var, lose_a_tensor_once, &of_tensor, 0, NULL, NULL), WEIR_OK);
	cr_expect_eq(of_tensor.calls, 2);
	weir_var_destroy(of_tensor.var, NULL);
	end(of_pair.var);
}

enum { ADDERS = 3, ADDITIONS = 2000 };

static void *add_often(void *var)
{
	int calls = 0;

	for (int i = 0; i < ADDITIONS; i++)
		cr_assert_eq(weir_var_update_value(var, add_one, &calls, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	return NULL;
}

Test(value, no_update_of_bytes_is_lost)
{
	weir_var *var = pair_variable(1000, 0);
	pthread_t threads[ADDERS];

	for (int i = 0; i < ADDERS; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, add_often, var), 0);
	for (int i = 0; i < ADDERS; i++)
		cr_assert_eq(pthread_join(threads[i], NULL), 0);
	cr_expect_eq(left_in(var), 1000 + ADDERS * ADDITIONS);
	cr_expect_eq(weir_var_version(var), 1 + ADDERS * ADDITIONS);
	end(var);
}

/* -- pointers ---------------------------------------------------------------------------------- */

Test(value, a_pointer_is_released_once_when_no_reader_has_it)
{
	weir_var *var = thing_variable("thing");
	struct thing things[2] = {{0, 1}, {0, 2}};
	weir_read read;

	cr_assert_eq(assign_thing(var, &things[0]), WEIR_OK);
	cr_assert_eq(weir_var_read(var, &read), WEIR_OK);
	cr_expect_eq(read.pointer, &things[0]);
	cr_assert_eq(assign_thing(var, &things[1]), WEIR_OK);
	collect_now();
	cr_expect_eq(releases_of(&things[0]), 0, "a handle is on it");
	weir_read_release(&read);
	collect_now();
	cr_expect_eq(releases_of(&things[0]), 1);
	cr_expect_eq(releases_of(&things[1]), 0);
	end(var);
	cr_expect_eq(releases_of(&things[1]), 1);
}

Test(value, a_failed_write_leaves_the_pointer_with_its_caller)
{
	weir_var *a = thing_variable("a"), *b = thing_variable("b");
	struct thing first = {0, 1}, second = {0, 2};
	struct weir_value_part parts[2] = {{a, 1, weir_value_pointer(&second)}, {b, 7, weir_value_pointer(&second)}};
	weir_error error;

	cr_assert_eq(assign_thing(a, &first), WEIR_OK);
	cr_expect_eq(weir_var_compare_assign_value(a, 5, weir_value_pointer(&second), WEIR_NO_DEADLINE, NULL, NULL),
	             WEIR_ABORTED);
	cr_expect_eq(weir_var_commit_values(parts, 2, WEIR_NO_DEADLINE, NULL, &error), WEIR_ABORTED);
	parts[1].var = a;
	cr_expect_eq(weir_var_commit_values(parts, 2, WEIR_NO_DEADLINE, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "commit: variable \"a\" occurs twice");
	collect_now();
	cr_expect_eq(releases_of(&second), 0);
	cr_assert_eq(weir_var_destroy(a, NULL), WEIR_OK);
	end(b);
	cr_expect_eq(releases_of(&first), 1);
}

/* The commit installs its part of `a` before it finds that `b` has moved. */
Test(value, an_aborted_commit_that_was_seen_releases_no_pointer)
{
	weir_var *vars[2] = {thing_variable("a"), thing_variable("b")};
	struct thing first = {0, 1}, second = {0, 2};
	struct weiri_record *record = weiri_record_get();
	struct weir_value_part parts[2] = {{vars[0], 0, weir_value_pointer(&first)},
	                                   {vars[1], 0, weir_value_pointer(&first)}};
	weir_read read;

	/* the second write of `vars[1]` comes between the two parts of another thread's commit in check_value.c */
	cr_assert_eq(assign_thing(vars[1], &second), WEIR_OK);
	cr_expect_eq(weir_var_commit_values(parts, 2, WEIR_NO_DEADLINE, NULL, NULL), WEIR_ABORTED);
	cr_expect_eq(weir_var_read(vars[0], &read), WEIR_FAILED_PRECONDITION);
	cr_assert_not_null(record);
	collect_now();
	cr_expect_eq(releases_of(&first), 0);
	cr_assert_eq(weir_var_destroy(vars[0], NULL), WEIR_OK);
	end(vars[1]);
	cr_expect_eq(releases_of(&first), 0);
}

static enum weir_status next_thing(void *context, const weir_read *current, weir_value *next, weir_error *error)
{
	struct thing *thing = context;

	(void)error;
	cr_expect_null(next->pointer);
	next->pointer = thing;
	return ((const struct thing *)current->pointer)->value > thing->value ? WEIR_OUT_OF_RANGE : WEIR_OK;
}

Test(value, an_update_that_fails_releases_the_pointer_it_made)
{
	weir_var *var = thing_variable("thing");
	struct thing things[3] = {{0, 5}, {0, 6}, {0, 4}};

	cr_assert_eq(assign_thing(var, &things[0]), WEIR_OK);
	cr_assert_eq(weir_var_update_value(var, next_thing, &things[1], WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	cr_expect_eq(weir_var_update_value(var, next_thing, &things[2], WEIR_NO_DEADLINE, NULL, NULL), WEIR_OUT_OF_RANGE);
	cr_expect_eq(releases_of(&things[2]), 1);
	end(var);
	for (int i = 0; i < 3; i++)
		cr_expect_eq(releases_of(&things[i]), 1);
}

static uint64_t retired_bytes(void)
{
	struct weir_reclaim_stats stats = {WEIR_RECLAIM_STATS_INIT};

	cr_assert_eq(weir_reclaim_get_stats(&stats), WEIR_OK);
	return stats.retired_bytes;
}

Test(value, a_pointer_counts_in_the_budget_what_it_measures)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .name = "big", .kind = WEIR_VAR_POINTER,
	                                   .measure = measure_thing, .allocator = &variables_memory};
	struct thing big = {0, 8 << 20}, small = {0, 1};
	weir_var *var = NULL;
	weir_read read;
	uint64_t before;

	cr_assert_eq(weir_var_create_value(weir_value_pointer(&big), &options, &var, NULL), WEIR_OK);
	cr_assert_eq(weir_var_read(var, &read), WEIR_OK);
	before = retired_bytes();
	cr_assert_eq(weir_var_assign_value(var, weir_value_pointer(&small), WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	/* Threads of other tests may have freed something that is not reported yet: collect.c, I5. */
	cr_expect_geq(retired_bytes() - before, (8u << 20) - (1u << 20));
	cr_expect_lt(retired_bytes() - before, (8u << 20) + (1u << 20));
	weir_read_release(&read);
	end(var);
}

/* More handles than slots: the others have references of the value in the block of its version. */
Test(value, handles_without_a_slot_keep_the_block)
{
	enum { HANDLES = WEIRI_SLOTS + 4 };
	weir_var *bytes = pair_variable(1, 2), *pointer = thing_variable("thing");
	struct thing things[2] = {{0, 1}, {0, 2}};
	weir_read reads[2][HANDLES];

	cr_assert_eq(assign_thing(pointer, &things[0]), WEIR_OK);
	for (int i = 0; i < HANDLES; i++) {
		cr_assert_eq(weir_var_read(bytes, &reads[0][i]), WEIR_OK);
		cr_assert_eq(weir_var_read(pointer, &reads[1][i]), WEIR_OK);
	}
	cr_assert_eq(assign_pair(bytes, 3, 4), WEIR_OK);
	cr_assert_eq(assign_thing(pointer, &things[1]), WEIR_OK);
	for (int i = 0; i < HANDLES; i++) {
		collect_now();
		cr_expect_eq(pair_of(&reads[0][i])->left, 1);
		cr_expect_eq(releases_of(&things[0]), 0);
		weir_read_release(&reads[0][i]);
		weir_read_release(&reads[1][i]);
	}
	cr_assert_eq(weir_var_destroy(bytes, NULL), WEIR_OK);
	end(pointer);
	cr_expect_eq(releases_of(&things[0]), 1);
	cr_expect_eq(releases_of(&things[1]), 1);
}

/* -- kinds together ---------------------------------------------------------------------------- */

struct three {
	weir_var *vars[3]; /* a tensor, bytes, a pointer */
	struct thing things[3];
};

static void begin_three(struct three *three)
{
	memset(three, 0, sizeof(*three));
	three->vars[0] = variable(1);
	three->vars[1] = pair_variable(1, 1);
	three->vars[2] = thing_variable("thing");
	cr_assert_eq(assign_thing(three->vars[2], &three->things[0]), WEIR_OK);
}

static void end_three(struct three *three, int assigned)
{
	for (int i = 0; i < 3; i++)
		cr_assert_eq(weir_var_destroy(three->vars[i], NULL), WEIR_OK);
	expect_nothing_left();
	for (int i = 0; i < assigned; i++)
		cr_expect_eq(releases_of(&three->things[i]), 1);
}

/* All are at value 2. */
static void expect_three_in_a_section(const struct three *three)
{
	weir_read_section section = {WEIR_READ_SECTION_INIT};
	const weir_read *shown[3];

	cr_assert_eq(weir_read_section_begin(&section), WEIR_OK);
	cr_assert_eq(weir_read_section_snapshot(&section, three->vars, 3, shown, NULL), WEIR_OK);
	cr_expect_eq(value_of(shown[0]), 2);
	cr_expect_eq(pair_of(shown[1])->left, 2);
	cr_expect_eq(shown[2]->pointer, &three->things[1]);
	cr_assert_eq(weir_read_section_end(&section), WEIR_OK);
}

Test(value, a_commit_and_a_snapshot_mix_kinds)
{
	struct three three;
	struct pair next = {2, 2};
	weir_tensor *two = number(2);
	weir_read published[3], reads[3];

	begin_three(&three);
	struct weir_value_part parts[3] = {{three.vars[2], 1, weir_value_pointer(&three.things[1])},
	                                   {three.vars[0], 1, weir_value_tensor(two)},
	                                   {three.vars[1], 1, WEIR_VALUE_OF(next)}};

	cr_assert_eq(weir_var_commit_values(parts, 3, WEIR_NO_DEADLINE, published, NULL), WEIR_OK);
	weir_tensor_release(two);
	cr_assert_eq(weir_var_snapshot(three.vars, 3, reads, NULL), WEIR_OK);
	cr_expect_eq(published[0].pointer, &three.things[1]);
	cr_expect_eq(value_of(&published[1]), 2);
	cr_expect_eq(pair_of(&published[2])->left, 2);
	cr_expect_eq(value_of(&reads[0]), 2);
	cr_expect_eq(pair_of(&reads[1])->left, 2);
	cr_expect_eq(reads[2].pointer, &three.things[1]);
	for (int i = 0; i < 3; i++)
		cr_expect(published[i].version == 2 && reads[i].version == 2);
	expect_three_in_a_section(&three);
	weir_read_release_many(published, 3);
	weir_read_release_many(reads, 3);
	end_three(&three, 2);
}

Test(value, a_transaction_mixes_kinds)
{
	struct three three;
	struct pair next = {7, 7};
	weir_value found;
	weir_txn *txn;

	begin_three(&three);
	cr_assert_eq(weir_txn_begin(&variables_memory, &txn, NULL), WEIR_OK);
	cr_assert_eq(weir_txn_read_value(txn, three.vars[0], &found, NULL), WEIR_OK);
	cr_expect_eq(found.kind, WEIR_VAR_TENSOR);
	cr_assert_eq(weir_txn_assign_value(txn, three.vars[1], WEIR_VALUE_OF(next), NULL), WEIR_OK);
	next.left = 8; /* was copied */
	cr_assert_eq(weir_txn_read_value(txn, three.vars[1], &found, NULL), WEIR_OK);
	cr_expect_eq(((const struct pair *)found.data)->left, 7);
	cr_expect_eq(found.size, sizeof(struct pair));
	cr_assert_eq(weir_txn_assign_value(txn, three.vars[1], WEIR_VALUE_OF(next), NULL), WEIR_OK);
	cr_assert_eq(weir_txn_assign_value(txn, three.vars[2], weir_value_pointer(&three.things[1]), NULL), WEIR_OK);
	cr_assert_eq(weir_txn_assign_value(txn, three.vars[2], weir_value_pointer(&three.things[2]), NULL), WEIR_OK);
	cr_expect_eq(releases_of(&three.things[1]), 1, "it was assigned over");
	cr_assert_eq(weir_txn_commit(txn, WEIR_NO_DEADLINE, NULL), WEIR_OK);
	cr_expect_eq(left_in(three.vars[1]), 8);
	cr_expect_eq(releases_of(&three.things[2]), 0);
	cr_assert_eq(weir_txn_begin(&variables_memory, &txn, NULL), WEIR_OK);
	cr_assert_eq(weir_txn_read_value(txn, three.vars[2], &found, NULL), WEIR_OK);
	cr_expect_eq(found.pointer, &three.things[2]);
	weir_txn_abort(txn);
	end_three(&three, 3);
}

/* A mark keeps the block of its base, whose value it repeats. */
Test(value, a_transaction_marks_variables_of_each_kind)
{
	struct three three;
	weir_value found;
	weir_txn *txn;

	begin_three(&three);
	for (int written = 0; written < 3; written++) {
		struct pair next = {20 + written, 0};
		weir_tensor *tensor = number(2);

		cr_assert_eq(weir_txn_begin(&variables_memory, &txn, NULL), WEIR_OK);
		for (int i = 0; i < 3; i++)
			cr_assert_eq(weir_txn_read_value(txn, three.vars[i], &found, NULL), WEIR_OK);
		if (written == 0)
			cr_assert_eq(weir_txn_assign(txn, three.vars[0], tensor, NULL), WEIR_OK);
		else if (written == 1)
			cr_assert_eq(weir_txn_assign_value(txn, three.vars[1], WEIR_VALUE_OF(next), NULL), WEIR_OK);
		else
			cr_assert_eq(weir_txn_assign_value(txn, three.vars[2], weir_value_pointer(&three.things[1]), NULL),
			             WEIR_OK);
		weir_tensor_release(tensor);
		cr_assert_eq(weir_txn_commit(txn, WEIR_NO_DEADLINE, NULL), WEIR_OK);
		collect_now();
		cr_expect_eq(left_in(three.vars[1]), written == 0 ? 1 : 21);
		cr_expect_eq(releases_of(&three.things[0]), written == 2);
	}
	end_three(&three, 2);
}

Test(value, an_aborted_transaction_releases_its_pointers)
{
	struct three three;
	weir_value found;
	weir_txn *txn;

	begin_three(&three);
	cr_assert_eq(weir_txn_begin(&variables_memory, &txn, NULL), WEIR_OK);
	cr_assert_eq(weir_txn_read_value(txn, three.vars[1], &found, NULL), WEIR_OK);
	cr_assert_eq(weir_txn_assign_value(txn, three.vars[2], weir_value_pointer(&three.things[1]), NULL), WEIR_OK);
	cr_assert_eq(assign_pair(three.vars[1], 9, 9), WEIR_OK);
	cr_expect_eq(weir_txn_commit(txn, WEIR_NO_DEADLINE, NULL), WEIR_ABORTED);
	cr_expect_eq(releases_of(&three.things[1]), 1);
	end_three(&three, 2);
}

Test(value, history_watch_and_cache_show_each_kind)
{
	struct weir_var_options options = inline_options("kept", sizeof(struct pair));
	struct pair first = {1, 1};
	weir_var *var = NULL;
	weir_var_cache cache;
	weir_watch *watch;
	weir_read read;

	options.history = 2;
	cr_assert_eq(weir_var_create_value(WEIR_VALUE_OF(first), &options, &var, NULL), WEIR_OK);
	weir_var_cache_init(&cache, var);
	cr_assert_eq(weir_watch_create(var, 1, &watch, NULL), WEIR_OK);
	cr_expect_eq(pair_of(weir_var_cache_read(&cache))->left, 1);
	for (int64_t i = 2; i <= 4; i++)
		cr_assert_eq(assign_pair(var, i, i), WEIR_OK);
	cr_expect_eq(pair_of(weir_var_cache_read(&cache))->left, 4);
	cr_assert_eq(weir_watch_try_take(watch, &read), WEIR_OK);
	cr_expect_eq(pair_of(&read)->left, 4);
	weir_read_release(&read);
	cr_assert_eq(weir_var_read_version(var, 2, &read), WEIR_OK);
	cr_expect_eq(pair_of(&read)->left, 2);
	weir_read_release(&read);
	cr_assert_eq(weir_var_wait(var, 3, 0, NULL, &read, NULL), WEIR_OK);
	cr_expect_eq(pair_of(&read)->left, 4);
	weir_read_release(&read);
	cr_assert_eq(weir_watch_destroy(watch, NULL), WEIR_OK);
	weir_var_cache_release(&cache);
	end(var);
}

/* -- what is refused --------------------------------------------------------------------------- */

static void expect_refused(enum weir_status status, weir_error *error, const char *message)
{
	cr_expect_eq(status, WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error->message, message);
	*error = (weir_error){WEIR_OK, ""};
}

Test(value, a_write_of_another_kind_or_size_is_refused)
{
	struct three three;
	weir_tensor *two = number(2);
	struct pair next = {2, 2};
	weir_value strange = {(enum weir_var_kind)7, 0, {.pointer = two}};
	struct weir_value_part part;
	weir_error error;

	begin_three(&three);
	part = (struct weir_value_part){three.vars[1], 1, WEIR_VALUE_OF(next)};
	expect_refused(weir_var_commit_values(&part, 0, 0, NULL, &error), &error, "commit: 0 parts, must be 1 to 1024");
	expect_refused(weir_var_commit_values(NULL, 1, 0, NULL, &error), &error, "commit: parts is NULL");
	expect_refused(weir_var_assign(three.vars[1], two, 0, NULL, &error), &error,
	               "variable \"pair\": takes inline values of 16 bytes, got a tensor");
	expect_refused(weir_var_assign_value(three.vars[1], weir_value_inline(&next, 8), 0, NULL, &error), &error,
	               "variable \"pair\": takes inline values of 16 bytes, got 8 inline bytes");
	expect_refused(weir_var_assign_value(three.vars[1], weir_value_inline(NULL, 16), 0, NULL, &error), &error,
	               "variable \"pair\": value is NULL");
	expect_refused(weir_var_assign_value(three.vars[0], WEIR_VALUE_OF(next), 0, NULL, &error), &error,
	               "variable \"v\": takes tensors, got 16 inline bytes");
	expect_refused(weir_var_assign_value(three.vars[2], strange, 0, NULL, &error), &error,
	               "variable \"thing\": takes pointers, got a value of kind 7");
	expect_refused(weir_var_compare_assign_value(three.vars[2], UINT64_MAX, strange, 0, NULL, &error), &error,
	               "expected version is not a version number");
	expect_refused(weir_var_assign_value(NULL, strange, 0, NULL, &error), &error, "variable is NULL");
	expect_refused(weir_var_exchange_value(three.vars[2], strange, 0, NULL, &error), &error,
	               "exchange: replaced is NULL");
	expect_refused(weir_var_read_into(three.vars[1], &next, 8, NULL, &error), &error,
	               "variable \"pair\" has inline values of 16 bytes, and 8 are to be read");
	expect_refused(weir_var_read_into(three.vars[0], &next, 16, NULL, &error), &error,
	               "variable \"v\" has tensors: weir_var_read_into() needs inline values");
	expect_refused(weir_var_read_into(three.vars[1], NULL, 16, NULL, &error), &error, "read: to is NULL");
	expect_refused(weir_var_read_into(NULL, &next, 16, NULL, &error), &error, "read: variable is NULL");
	weir_tensor_release(two);
	end_three(&three, 1);
}

static enum weir_status no_update(void *context, const weir_read *current, weir_tensor **next, weir_error *error)
{
	(void)context, (void)current, (void)next, (void)error;
	cr_assert_fail("not called");
	return WEIR_OK;
}

Test(value, calls_for_tensors_refuse_other_kinds_by_name)
{
	struct three three;
	weir_tensor *two = number(2), *out = NULL;
	weir_txn *txn;
	weir_error error;
	weir_graph *graph;
	weir_output output;

	begin_three(&three);
	expect_refused(weir_var_update(three.vars[1], no_update, NULL, 0, NULL, &error), &error,
	               "variable \"pair\" has inline values of 16 bytes: weir_var_update() needs tensors");
	expect_refused(weir_var_assign_add(three.vars[2], two, 0, NULL, &error), &error,
	               "variable \"thing\" has pointers: a sum needs tensors");
	expect_refused(weir_var_scatter(three.vars[1], WEIR_SCATTER_UPDATE, two, two, 0, NULL, &error), &error,
	               "variable \"pair\" has inline values of 16 bytes: scatter needs tensors");
	expect_refused(weir_var_gather(three.vars[2], two, NULL, &out, &error), &error,
	               "variable \"thing\" has pointers: gather needs tensors");
	expect_refused(weir_var_commit(&(struct weir_commit_part){three.vars[1], 1, two}, 1, 0, NULL, &error), &error,
	               "variable \"pair\": takes inline values of 16 bytes, got a tensor");
	cr_assert_eq(weir_txn_begin(&variables_memory, &txn, NULL), WEIR_OK);
	expect_refused(weir_txn_read(txn, three.vars[1], &out, &error), &error,
	               "variable \"pair\" has inline values of 16 bytes: weir_txn_read() needs tensors");
	expect_refused(weir_txn_assign(txn, three.vars[1], two, &error), &error,
	               "variable \"pair\": takes inline values of 16 bytes, got a tensor");
	weir_txn_abort(txn);
	expect_refused(
		weir_checkpoint_save(&(struct weir_checkpoint_part){.var = three.vars[1]}, 1, "/nowhere/at/all", NULL, &error),
		&error, "checkpoint /nowhere/at/all: variable \"pair\" has inline values, not tensors");
	cr_assert_eq(weir_graph_create(NULL, &graph, NULL), WEIR_OK);
	expect_refused(weir_op_read(graph, "r", three.vars[1], &output, &error), &error,
	               "read \"r\": variable \"pair\" has inline values, not tensors");
	expect_refused(weir_op_snapshot(graph, "s", three.vars, 3, &output, &error), &error,
	               "snapshot \"s\": variable \"pair\" has inline values, not tensors");
	weir_graph_destroy(graph, NULL);
	weir_tensor_release(two);
	end_three(&three, 1);
}

static void expect_options_refused(struct weir_var_options options, const char *message)
{
	weir_error error = {WEIR_OK, ""};
	weir_var *var = NULL;

	expect_refused(weir_var_create(NULL, &options, &var, &error), &error, message);
}

Test(value, options_that_do_not_suit_the_kind_are_refused)
{
	struct weir_var_options options = inline_options("x", 0);
	struct pair first = {1, 1};
	weir_error error;
	weir_var *var = NULL;

	expect_options_refused(options, "variable \"x\": inline values of 0 bytes, must be 1 to 256");
	options.size = 257;
	expect_options_refused(options, "variable \"x\": inline values of 257 bytes, must be 1 to 256");
	options.size = 8;
	options.dtype = WEIR_I64;
	expect_options_refused(options, "variable \"x\": inline values have no dtype");
	options.dtype = 0;
	options.shape = &(weir_shape){.rank = 0};
	expect_options_refused(options, "variable \"x\": inline values have no shape");
	options.shape = NULL;
	options.release = release_thing;
	expect_options_refused(options, "variable \"x\": inline values have no function release");
	options.release = NULL;
	options.context = &first;
	expect_options_refused(options, "variable \"x\": inline values have no context");
	options.context = NULL;
	options.kind = (enum weir_var_kind)4;
	expect_options_refused(options, "variable \"x\": 4 is not a kind");
	options.kind = WEIR_VAR_TENSOR;
	options.dtype = WEIR_I64;
	expect_options_refused(options, "variable \"x\": size is 8, but tensors have no fixed size");
	options = inline_options("x", 8);
	expect_refused(weir_var_create_value(WEIR_VALUE_OF(first), &options, &var, &error), &error,
	               "variable \"x\": takes inline values of 8 bytes, got 16 inline bytes");
	expect_refused(weir_var_create_value(weir_value_inline(NULL, 8), &options, &var, &error), &error,
	               "variable \"x\": the initial value is NULL");
	cr_expect_null(var);
	expect_nothing_left();
}

/* -- by name ----------------------------------------------------------------------------------- */

Test(value, a_variable_is_found_by_name_and_its_kind_must_agree)
{
	struct weir_var_options options = inline_options("named", sizeof(struct pair));
	struct weir_store_options none = {WEIR_STORE_OPTIONS_INIT};
	weir_resource *found, *again;
	weir_error error;
	weir_store *store;

	cr_assert_eq(weir_store_create(&none, &store, NULL), WEIR_OK);
	cr_assert_eq(weir_var_find_or_create(store, "", "named", NULL, &options, &found, NULL), WEIR_OK);
	cr_assert_eq(weir_var_find_or_create(store, "", "named", NULL, &options, &again, NULL), WEIR_OK);
	cr_expect_eq(weir_resource_object(found), weir_resource_object(again));
	weir_resource_release(again);
	options.size = 8;
	expect_refused(weir_var_find_or_create(store, "", "named", NULL, &options, &again, &error), &error,
	               "variable \"named\": has inline values of 16 bytes, asked for inline values of 8 bytes");
	options.kind = WEIR_VAR_POINTER;
	expect_refused(weir_var_find_or_create(store, "", "named", NULL, &options, &again, &error), &error,
	               "variable \"named\": has inline values of 16 bytes, asked for pointers");
	weir_resource_release(found);
	cr_assert_eq(weir_store_destroy(store, NULL), WEIR_OK);
	expect_nothing_left();
}

/* -- allocations that fail --------------------------------------------------------------------- */

static struct thing failing_things[8];

static void count_release(void *context, void *pointer)
{
	(void)context;
	weiri_fetch_add_relaxed(&((struct thing *)pointer)->released, 1);
}

static enum weir_status use_each_write(const weir_allocator *allocator, void *context)
{
	struct weir_var_options bytes = inline_options("bytes", sizeof(struct pair));
	struct weir_var_options pointer = {WEIR_VAR_OPTIONS_INIT, .kind = WEIR_VAR_POINTER, .release = count_release};
	struct pair pair = {1, 1};
	weir_var *vars[2] = {NULL, NULL};
	weir_txn *txn = NULL;
	enum weir_status status;
	int calls = 0;

	(void)context;
	bytes.allocator = pointer.allocator = allocator;
	memset(failing_things, 0, sizeof(failing_things));
	status = weir_var_create_value(WEIR_VALUE_OF(pair), &bytes, &vars[0], NULL);
	if (status == WEIR_OK)
		status = weir_var_create_value(weir_value_pointer(&failing_things[0]), &pointer, &vars[1], NULL);
	if (status == WEIR_OK)
		status = weir_var_update_value(vars[0], add_one, &calls, WEIR_NO_DEADLINE, NULL, NULL);
	if (status == WEIR_OK) {
		struct weir_value_part parts[2] = {{vars[0], 2, WEIR_VALUE_OF(pair)},
		                                   {vars[1], 1, weir_value_pointer(&failing_things[1])}};

		status = weir_var_commit_values(parts, 2, WEIR_NO_DEADLINE, NULL, NULL);
	}
	if (status == WEIR_OK)
		status = weir_txn_begin(allocator, &txn, NULL);
	if (status == WEIR_OK) {
		status = weir_txn_assign_value(txn, vars[0], WEIR_VALUE_OF(pair), NULL);
		if (status == WEIR_OK)
			status = weir_txn_assign_value(txn, vars[1], weir_value_pointer(&failing_things[2]), NULL);
		if (status == WEIR_OK)
			status = weir_txn_commit(txn, WEIR_NO_DEADLINE, NULL);
		else
			weir_txn_abort(txn);
	}
	for (int i = 0; i < 2; i++) {
		if (vars[i] != NULL)
			cr_assert_eq(weir_var_destroy(vars[i], NULL), WEIR_OK);
	}
	cr_assert_eq(weir_reclaim_flush(weir_deadline_in(variables_patience_ns)), WEIR_OK);
	for (int i = 0; i < 8; i++)
		cr_expect_leq(releases_of(&failing_things[i]), 1);
	return status;
}

Test(value, each_write_survives_each_allocation_failing)
{
	cr_expect_gt(fail_each_allocation(use_each_write, NULL), 10);
	cr_expect_eq(live_versions(), 0);
}
