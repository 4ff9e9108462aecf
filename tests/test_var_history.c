/*
 * test_var_history.c - the older versions that a variable keeps: which exist, which are gone, and
 * what they cost.
 */
#include <criterion/criterion.h>

#include <string.h>
#include <weir/txn.h>
#include <weir/watch.h>

#include "stepped.h"
#include "variables.h"

/* A variable without a value. */
static weir_var *variable_that_keeps(uint32_t history)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I64, .name = "kept", .history = history,
	                                   .allocator = &variables_memory};
	weir_var *var = NULL;

	cr_assert_eq(weir_var_create(NULL, &options, &var, NULL), WEIR_OK);
	return var;
}

static void assign_up_to(weir_var *var, int64_t last)
{
	for (int64_t i = (int64_t)weir_var_version(var) + 1; i <= last; i++)
		assign(var, i);
}

/* The value of a version is its number. */
static void expect_version(weir_var *var, uint64_t number)
{
	weir_read read;

	cr_assert_eq(weir_var_read_version(var, number, &read), WEIR_OK, "version %" PRIu64, number);
	cr_expect_eq(read.version, number);
	cr_expect_eq(value_of(&read), (int64_t)number);
	weir_read_release(&read);
}

static void expect_gone(weir_var *var, uint64_t number)
{
	weir_read read = {.version = 42};

	cr_expect_eq(weir_var_read_version(var, number, &read), WEIR_NOT_FOUND, "version %" PRIu64, number);
	cr_expect_eq(read.version, 42, "untouched");
}

static void destroy(weir_var *var)
{
	cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
	expect_nothing_left();
}

Test(var_history, keeps_the_newest_and_so_many_before_it)
{
	weir_var *var = variable_that_keeps(3);
	weir_read read;

	expect_gone(var, 0);
	cr_expect_eq(weir_var_read_version(var, 1, &read), WEIR_OUT_OF_RANGE);
	for (uint64_t newest = 1; newest <= 10; newest++) {
		assign_up_to(var, (int64_t)newest);
		collect_now();
		for (uint64_t number = newest; number > 0 && number + 3 >= newest; number--)
			expect_version(var, number);
		for (uint64_t number = 0; number + 3 < newest; number++)
			expect_gone(var, number);
		expect_gone(var, 0);
		cr_expect_eq(weir_var_read_version(var, newest + 1, &read), WEIR_OUT_OF_RANGE);
		cr_expect_eq(live_versions(), newest < 4 ? newest + 1 : 4, "no more versions are kept");
	}
	destroy(var);
}

Test(var_history, without_one_only_the_newest_is_found)
{
	weir_var *var = variable_that_keeps(0);

	assign_up_to(var, 2);
	expect_version(var, 2);
	expect_gone(var, 1);
	destroy(var);
}

Test(var_history, a_handle_keeps_a_version_that_leaves_it)
{
	weir_var *var = variable_that_keeps(1);
	weir_read read;

	assign_up_to(var, 2);
	cr_assert_eq(weir_var_read_version(var, 1, &read), WEIR_OK);
	assign_up_to(var, 5);
	collect_now();
	expect_gone(var, 1);
	cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
	collect_now();
	cr_expect_eq(value_of(&read), 1);
	weir_read_release(&read);
	expect_nothing_left();
}

/* Marks stand for the version below them: they push no version out, and they do not accumulate. */
Test(var_history, what_transactions_only_read_takes_no_place_in_it)
{
	weir_var *vars[2] = {variable_that_keeps(2), variable(0)};

	for (int64_t round = 1; round <= 6; round++) {
		assign_up_to(vars[0], round);
		for (int i = 0; i < 3; i++) {
			weir_txn *txn = NULL;
			weir_tensor *value;

			cr_assert_eq(weir_txn_begin(&variables_memory, &txn, NULL), WEIR_OK);
			cr_assert_eq(weir_txn_read(txn, vars[0], &value, NULL), WEIR_OK);
			cr_assert_eq(weir_txn_assign(txn, vars[1], value, NULL), WEIR_OK);
			cr_assert_eq(weir_txn_commit(txn, WEIR_NO_DEADLINE, NULL), WEIR_OK);
		}
		collect_now();
		for (int64_t number = round; number > 0 && number + 2 >= round; number--)
			expect_version(vars[0], (uint64_t)number);
		if (round > 3)
			expect_gone(vars[0], (uint64_t)round - 3);
		cr_expect_eq(live_versions(), (round < 3 ? (uint64_t)round + 1 : 3) + 1, "round %d", (int)round);
	}
	cr_assert_eq(weir_var_destroy(vars[0], NULL), WEIR_OK);
	destroy(vars[1]);
}

Test(var_history, commits_and_what_they_abort_keep_it_right)
{
	weir_var *vars[2] = {variable_that_keeps(2), variable_that_keeps(2)};

	assign_up_to(vars[0], 3);
	assign_up_to(vars[1], 3);
	cr_expect_eq(commit_all(vars, 2, 3, 4, NULL), WEIR_OK);
	cr_expect_eq(commit_all(vars, 2, 3, 9, NULL), WEIR_ABORTED);
	assign(vars[1], 5);
	cr_expect_eq(commit_all(vars, 2, 4, 9, NULL), WEIR_ABORTED);
	collect_now();
	for (uint64_t number = 2; number <= 4; number++)
		expect_version(vars[0], number);
	for (uint64_t number = 3; number <= 5; number++)
		expect_version(vars[1], number);
	expect_gone(vars[0], 1);
	expect_gone(vars[1], 2);
	cr_assert_eq(weir_var_destroy(vars[0], NULL), WEIR_OK);
	destroy(vars[1]);
}

Test(var_history, bad_arguments_are_refused)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I64, .history = WEIR_VAR_MAX_HISTORY + 1};
	weir_var *var = NULL;
	weir_error error;
	weir_read read;

	cr_expect_eq(weir_var_create(NULL, &options, &var, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "variable: history must be at most 1024, got 1025");
	cr_expect_eq(weir_var_read_version(NULL, 1, &read), WEIR_INVALID_ARGUMENT);
	var = variable_that_keeps(WEIR_VAR_MAX_HISTORY);
	cr_expect_eq(weir_var_read_version(var, 1, NULL), WEIR_INVALID_ARGUMENT);
	assign_up_to(var, WEIR_VAR_MAX_HISTORY + 10);
	expect_version(var, 10);
	expect_gone(var, 9);
	destroy(var);
}

/* -- stopped at each instruction --------------------------------------------------------------- */

enum { COST = 29 };

struct scene {
	weir_var *var;
	enum weir_status status;
	int64_t value;
};

static void read_the_second(void *context)
{
	struct scene *scene = context;
	weir_read read;

	scene->status = weir_var_read_version(scene->var, 2, &read);
	if (scene->status == WEIR_OK) {
		scene->value = value_of(&read);
		weir_read_release(&read);
	}
}

static void assign_the_fourth(void *context)
{
	struct scene *scene = context;

	assign(scene->var, 4);
}

/*
 * `call` is stopped anywhere while versions up to `last` are published and everything that may be
 * freed is freed.
 */
static void stop_everywhere(void (*call)(void *context), int64_t last, void (*judge)(struct scene *scene, size_t at))
{
	struct scene scene;
	struct stepped stepped = {.prepare = meet_weir, .call = call, .context = &scene};
	int stands = 1;

	stepped_or_skip();
	for (size_t at = 0; stands; at += stepped_stride(COST)) {
		scene = (struct scene){.var = variable_that_keeps(1), .value = 2};
		assign_up_to(scene.var, 3);
		stands = stepped_start(&stepped, at);
		for (int64_t i = 0; i < last; i++) {
			assign(scene.var, 7);
			collect_now();
		}
		stepped_finish(&stepped);
		judge(&scene, at);
		destroy(scene.var);
	}
}

static void expect_the_second_or_none(struct scene *scene, size_t at)
{
	cr_assert(scene->status == WEIR_OK || scene->status == WEIR_NOT_FOUND, "stopped at %zu", at);
	cr_assert_eq(scene->value, 2, "stopped at %zu", at);
}

Test(var_history, stopped_anywhere_who_reads_an_old_version_gets_it_or_none)
{
	stop_everywhere(read_the_second, 3, expect_the_second_or_none);
}

static void expect_two_versions(struct scene *scene, size_t at)
{
	weir_read read;

	collect_now();
	cr_assert_eq(live_versions(), 2, "stopped at %zu", at);
	for (uint64_t number = 5; number <= 6; number++) {
		cr_assert_eq(weir_var_read_version(scene->var, number, &read), WEIR_OK, "stopped at %zu", at);
		weir_read_release(&read);
	}
	expect_gone(scene->var, 4);
}

Test(var_history, stopped_anywhere_a_writer_leaves_it_whole)
{
	stop_everywhere(assign_the_fourth, 2, expect_two_versions);
}
