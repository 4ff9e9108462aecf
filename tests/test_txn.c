/*
 * test_txn.c - transactions: what they see, what they refuse and say, and what an aborted one
 * leaves. Many run at once, and one is stopped at each of its instructions.
 */
#include <criterion/criterion.h>

#include <pthread.h>
#include <string.h>
#include <weir/txn.h>

#include "stepped.h"
#include "variables.h"

static weir_txn *begin(void)
{
	weir_txn *txn = NULL;

	cr_assert_eq(weir_txn_begin(&variables_memory, &txn, NULL), WEIR_OK);
	return txn;
}

static int64_t read_in(weir_txn *txn, weir_var *var)
{
	weir_tensor *tensor = NULL;
	weir_error error = {WEIR_OK, ""};

	cr_assert_eq(weir_txn_read(txn, var, &tensor, &error), WEIR_OK, "%s", error.message);
	return *(const int64_t *)weir_tensor_data(tensor);
}

static void assign_in(weir_txn *txn, weir_var *var, int64_t value)
{
	weir_tensor *tensor = number(value);

	cr_assert_eq(weir_txn_assign(txn, var, tensor, NULL), WEIR_OK);
	weir_tensor_release(tensor);
}

static enum weir_status commit(weir_txn *txn, weir_error *error)
{
	return weir_txn_commit(txn, WEIR_NO_DEADLINE, error);
}

static void destroy_all(weir_var *const vars[], size_t count)
{
	for (size_t i = 0; i < count; i++)
		weir_var_destroy(vars[i], NULL);
	expect_nothing_left();
}

/* -- what a transaction sees ------------------------------------------------------------------- */

/* The variable did not exist when the value that was read first was the newest. */
Test(txn, a_variable_that_was_created_after_a_read_has_moved_agrees_with_no_instant)
{
	weir_var *vars[2] = {variable(1), NULL};
	weir_txn *txn = begin();
	weir_tensor *tensor;

	cr_expect_eq(read_in(txn, vars[0]), 1);
	assign(vars[0], 2);
	vars[1] = variable(2);
	cr_expect_eq(weir_txn_read(txn, vars[1], &tensor, NULL), WEIR_ABORTED);
	weir_txn_abort(txn);
	destroy_all(vars, 2);
}

Test(txn, sees_its_own_assigns_and_nobody_else_does_before_the_commit)
{
	weir_var *vars[2] = {variable(1), variable(2)};
	weir_txn *txn = begin();

	cr_expect_eq(read_in(txn, vars[0]), 1);
	assign_in(txn, vars[0], 10);
	assign_in(txn, vars[1], 20);
	assign_in(txn, vars[1], 30);
	cr_expect_eq(read_in(txn, vars[0]), 10);
	cr_expect_eq(read_in(txn, vars[1]), 30);
	cr_expect_eq(value_in(vars[0]), 1);
	cr_expect_eq(value_in(vars[1]), 2);
	cr_assert_eq(commit(txn, NULL), WEIR_OK);
	cr_expect_eq(value_in(vars[0]), 10);
	cr_expect_eq(value_in(vars[1]), 30);
	cr_expect_eq(weir_var_version(vars[1]), 2, "one version for two assigns");
	destroy_all(vars, 2);
}

/* The transaction holds the only reference to the value. */
Test(txn, a_value_that_it_assigned_may_be_read_and_assigned_again)
{
	weir_var *vars[1] = {variable(1)};
	weir_txn *txn = begin();
	weir_tensor *value = NULL;

	assign_in(txn, vars[0], 10);
	cr_assert_eq(weir_txn_read(txn, vars[0], &value, NULL), WEIR_OK);
	cr_assert_eq(weir_txn_assign(txn, vars[0], value, NULL), WEIR_OK);
	cr_expect_eq(read_in(txn, vars[0]), 10);
	cr_assert_eq(commit(txn, NULL), WEIR_OK);
	cr_expect_eq(value_in(vars[0]), 10);
	destroy_all(vars, 1);
}

Test(txn, reads_the_same_though_the_variable_moved_on)
{
	weir_var *vars[1] = {variable(1)};
	weir_txn *txn = begin();

	cr_expect_eq(read_in(txn, vars[0]), 1);
	assign(vars[0], 2);
	collect_now();
	cr_expect_eq(read_in(txn, vars[0]), 1);
	cr_expect_eq(commit(txn, NULL), WEIR_OK, "the transaction read one instant and wrote nothing");
	destroy_all(vars, 1);
}

/*
 * The instant moves on to include what changed meanwhile, as long as what was read has not changed.
 */
Test(txn, takes_what_is_newer_when_all_that_it_read_is_still_there)
{
	weir_var *vars[3] = {variable(1), variable(2), variable(3)};
	weir_txn *txn = begin();

	cr_expect_eq(read_in(txn, vars[0]), 1);
	assign(vars[1], 22);
	cr_expect_eq(weir_txn_version(txn, vars[1]), 0, "not read yet");
	cr_expect_eq(read_in(txn, vars[1]), 22);
	cr_expect_eq(weir_txn_version(txn, vars[1]), 2);
	cr_expect_eq(weir_txn_version(NULL, vars[1]), 0);
	assign(vars[2], 33);
	cr_expect_eq(read_in(txn, vars[2]), 33);
	assign_in(txn, vars[0], 11);
	cr_expect_eq(commit(txn, NULL), WEIR_OK);
	cr_expect_eq(value_in(vars[0]), 11);
	destroy_all(vars, 3);
}

Test(txn, never_reads_two_values_that_were_not_there_together)
{
	weir_var *vars[2] = {named_variable("left", 1), variable(1)};
	weir_txn *txn = begin();
	weir_tensor *untouched = NULL, *two = number(2);
	weir_error error;

	cr_expect_eq(read_in(txn, vars[0]), 1);
	cr_assert_eq(commit_all(vars, 2, 1, 2, NULL), WEIR_OK);
	cr_expect_eq(weir_txn_read(txn, vars[1], &untouched, &error), WEIR_ABORTED);
	cr_expect_str_eq(error.message, "transaction of 1 variable: variable \"left\" is at version 2 and was read at 1");
	cr_expect_null(untouched);
	/* From then on every call returns that status. */
	cr_expect_eq(weir_txn_read(txn, vars[0], &untouched, &error), WEIR_ABORTED);
	cr_expect_eq(weir_txn_assign(txn, vars[1], two, &error), WEIR_ABORTED);
	cr_expect_eq(commit(txn, &error), WEIR_ABORTED);
	cr_expect_str_eq(error.message, "transaction of 1 variable: variable \"left\" is at version 2 and was read at 1");
	cr_expect_eq(value_in(vars[1]), 2);
	weir_tensor_release(two);
	destroy_all(vars, 2);
}

Test(txn, variables_that_are_read_only_keep_their_versions)
{
	weir_var *vars[2] = {variable(1), variable(2)};
	weir_read before, after;

	cr_assert_eq(weir_var_read(vars[0], &before), WEIR_OK);
	for (int64_t i = 0; i < 3; i++) {
		weir_txn *txn = begin();

		assign_in(txn, vars[1], read_in(txn, vars[0]) + i);
		cr_assert_eq(commit(txn, NULL), WEIR_OK);
	}
	cr_expect_eq(weir_var_version(vars[0]), 1);
	cr_expect_eq(weir_var_version(vars[1]), 4);
	cr_assert_eq(weir_var_read(vars[0], &after), WEIR_OK);
	cr_expect_eq(after.tensor, before.tensor, "not even a copy");
	cr_expect_eq(weir_var_try_read_newer(vars[0], 1, &after), WEIR_WOULD_BLOCK);
	weir_read_release(&before);
	weir_read_release(&after);
	assign(vars[0], 5);
	cr_expect_eq(weir_var_version(vars[0]), 2);
	destroy_all(vars, 2);
}

/* -- which one wins ---------------------------------------------------------------------------- */

Test(txn, a_variable_that_was_read_and_moved_aborts_the_commit)
{
	weir_var *vars[2] = {named_variable("rate", 1), variable(2)};
	weir_txn *txn = begin();
	weir_error error;

	assign_in(txn, vars[1], read_in(txn, vars[0]) + 1);
	assign(vars[0], 7);
	cr_expect_eq(commit(txn, &error), WEIR_ABORTED);
	cr_expect_str_eq(error.message, "transaction of 2 variables: variable \"rate\" is at version 2 and was read at 1");
	cr_expect_eq(value_in(vars[1]), 2);
	destroy_all(vars, 2);
}

Test(txn, a_variable_that_was_only_assigned_may_move)
{
	weir_var *vars[2] = {variable(1), variable(2)};
	weir_txn *pair = begin(), *one = begin();

	assign_in(pair, vars[0], 10);
	assign_in(pair, vars[1], 20);
	assign_in(one, vars[0], 15);
	assign(vars[0], 7);
	cr_expect_eq(commit(pair, NULL), WEIR_OK);
	cr_expect_eq(commit(one, NULL), WEIR_OK);
	cr_expect_eq(value_in(vars[0]), 15);
	cr_expect_eq(weir_var_version(vars[0]), 4);
	destroy_all(vars, 2);
}

/*
 * Each of the two reads both variables and writes one. If both succeeded, that would be write skew.
 */
Test(txn, of_two_that_read_what_the_other_writes_one_is_aborted)
{
	weir_var *vars[2] = {variable(0), variable(0)};
	weir_txn *first = begin(), *second = begin();

	for (size_t i = 0; i < 2; i++) {
		cr_expect_eq(read_in(first, vars[i]), 0);
		cr_expect_eq(read_in(second, vars[i]), 0);
	}
	assign_in(first, vars[0], 1);
	assign_in(second, vars[1], 1);
	cr_expect_eq(commit(first, NULL), WEIR_OK);
	cr_expect_eq(commit(second, NULL), WEIR_ABORTED);
	cr_expect_eq(value_in(vars[1]), 0);
	destroy_all(vars, 2);
}

Test(txn, two_that_read_the_same_and_write_others_both_commit)
{
	weir_var *vars[3] = {variable(0), variable(0), variable(0)};
	weir_txn *first = begin(), *second = begin();

	assign_in(first, vars[1], read_in(first, vars[0]) + 1);
	assign_in(second, vars[2], read_in(second, vars[0]) + 2);
	cr_expect_eq(commit(first, NULL), WEIR_OK);
	cr_expect_eq(commit(second, NULL), WEIR_OK);
	cr_expect_eq(value_in(vars[1]) + value_in(vars[2]), 3);
	destroy_all(vars, 3);
}

/* -- what a transaction refuses ---------------------------------------------------------------- */

Test(txn, bad_arguments_are_named_and_change_nothing)
{
	weir_var *vars[1] = {named_variable("count", 1)};
	weir_txn *txn = begin();
	weir_tensor *wrong = NULL, *value = NULL;
	weir_error error;

	cr_assert_eq(weir_tensor_scalar_f32(1, &wrong), WEIR_OK);
	cr_expect_eq(weir_txn_assign(txn, vars[0], wrong, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "variable \"count\": dtype must be i64, got f32");
	cr_expect_eq(weir_txn_assign(txn, vars[0], NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_txn_assign(txn, NULL, wrong, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "transaction: the variable to assign is NULL");
	cr_expect_eq(weir_txn_read(txn, NULL, &value, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "transaction: the variable to read is NULL");
	cr_expect_eq(weir_txn_read(txn, vars[0], NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_txn_read(NULL, vars[0], &value, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_txn_commit(NULL, 0, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_txn_begin(NULL, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_txn_run(NULL, NULL, NULL, 0, &error), WEIR_INVALID_ARGUMENT);
	weir_txn_abort(NULL);
	cr_expect_eq(commit(txn, NULL), WEIR_OK, "nothing was assigned");
	cr_expect_eq(weir_var_version(vars[0]), 1);
	weir_tensor_release(wrong);
	destroy_all(vars, 1);
}

/* That a variable has no value also counts as read. */
Test(txn, a_variable_without_a_value_says_so_and_counts_as_read)
{
	weir_var *vars[2] = {empty_variable("late"), variable(1)};
	weir_txn *txn = begin(), *other = begin();
	weir_tensor *value = NULL;
	weir_error error;

	cr_expect_eq(weir_txn_read(txn, vars[0], &value, &error), WEIR_FAILED_PRECONDITION);
	cr_expect_str_eq(error.message, "variable \"late\" is not initialized");
	cr_expect_eq(weir_txn_read(other, vars[0], &value, &error), WEIR_FAILED_PRECONDITION);
	assign_in(txn, vars[0], 3);
	cr_expect_eq(read_in(txn, vars[0]), 3);
	cr_expect_eq(commit(txn, NULL), WEIR_OK);
	assign_in(other, vars[1], 9);
	cr_expect_eq(commit(other, &error), WEIR_ABORTED);
	cr_expect_str_eq(error.message, "transaction of 2 variables: variable \"late\" is at version 1 and was read at 0");
	cr_expect_eq(value_in(vars[0]), 3);
	destroy_all(vars, 2);
}

/* The variable stays without a value, and can get one afterwards. */
Test(txn, a_variable_without_a_value_stays_so_when_it_was_only_read)
{
	weir_var *vars[2] = {empty_variable("late"), variable(1)};
	weir_txn *txn = begin();
	weir_tensor *value = NULL;
	weir_read read;

	cr_expect_eq(weir_txn_read(txn, vars[0], &value, NULL), WEIR_FAILED_PRECONDITION);
	assign_in(txn, vars[1], 9);
	cr_expect_eq(commit(txn, NULL), WEIR_OK);
	cr_expect_eq(weir_var_version(vars[0]), 0);
	cr_expect_eq(weir_var_read(vars[0], &read), WEIR_FAILED_PRECONDITION);
	assign(vars[0], 4);
	cr_expect_eq(weir_var_version(vars[0]), 1);
	destroy_all(vars, 2);
}

Test(txn, takes_as_many_variables_as_it_says)
{
	static weir_var *vars[WEIR_TXN_MAX_VARIABLES + 1];
	weir_txn *txn = begin();
	weir_tensor *value = number(1), *read = NULL;
	weir_error error;

	for (size_t i = 0; i <= WEIR_TXN_MAX_VARIABLES; i++)
		vars[i] = named_variable(i < WEIR_TXN_MAX_VARIABLES ? "v" : "last", (int64_t)i);
	for (size_t i = 0; i < WEIR_TXN_MAX_VARIABLES; i++) {
		if (i % 3 != 0)
			cr_assert_eq(read_in(txn, vars[i]), (int64_t)i);
		if (i % 3 != 1)
			assign_in(txn, vars[i], 2 * (int64_t)i);
	}
	cr_expect_eq(weir_txn_read(txn, vars[WEIR_TXN_MAX_VARIABLES], &read, &error), WEIR_RESOURCE_EXHAUSTED);
	cr_expect_not_null(strstr(error.message, "variable \"last\""), "%s", error.message);
	cr_expect_eq(weir_txn_assign(txn, vars[WEIR_TXN_MAX_VARIABLES], value, &error), WEIR_RESOURCE_EXHAUSTED);
	for (size_t i = 0; i < WEIR_TXN_MAX_VARIABLES; i++)
		cr_assert_eq(read_in(txn, vars[i]), (int64_t)(i % 3 != 1 ? 2 * i : i));
	cr_assert_eq(commit(txn, NULL), WEIR_OK);
	for (size_t i = 0; i < WEIR_TXN_MAX_VARIABLES; i++) {
		cr_assert_eq(value_in(vars[i]), (int64_t)(i % 3 != 1 ? 2 * i : i));
		cr_assert_eq(weir_var_version(vars[i]), i % 3 != 1 ? 2 : 1);
	}
	weir_tensor_release(value);
	destroy_all(vars, WEIR_TXN_MAX_VARIABLES + 1);
}

/* -- memory ------------------------------------------------------------------------------------ */

Test(txn, what_it_held_is_let_go_when_it_is_aborted)
{
	weir_var *vars[100];
	weir_txn *txn = begin();

	for (size_t i = 0; i < 100; i++) {
		vars[i] = variable((int64_t)i);
		cr_assert_eq(read_in(txn, vars[i]), (int64_t)i);
		assign_in(txn, vars[i], -1);
	}
	weir_txn_abort(txn);
	cr_expect_eq(value_in(vars[7]), 7);
	destroy_all(vars, 100);
}

/*
 * The transaction has more variables than its first arrays hold, so each kind of allocation occurs.
 * Everything is freed when this returns.
 */
static enum weir_status transact_with(const weir_allocator *allocator, void *context)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I64, .allocator = allocator};
	weir_tensor *value = context, *read;
	weir_var *vars[9] = {NULL};
	weir_txn *txn = NULL;
	enum weir_status status = weir_txn_begin(allocator, &txn, NULL);

	for (size_t i = 0; i < 9 && status == WEIR_OK; i++) {
		status = weir_var_create(value, &options, &vars[i], NULL);
		if (status == WEIR_OK)
			status = weir_txn_read(txn, vars[i], &read, NULL);
		if (status == WEIR_OK && i < 2)
			status = weir_txn_assign(txn, vars[i], value, NULL);
	}
	if (status == WEIR_OK) {
		status = weir_txn_commit(txn, WEIR_NO_DEADLINE, NULL);
		cr_assert_eq(weir_var_version(vars[0]), status == WEIR_OK ? 2 : 1);
	} else {
		weir_txn_abort(txn);
	}
	for (size_t i = 0; i < 9; i++)
		weir_var_destroy(vars[i], NULL);
	return weir_reclaim_flush(weir_deadline_in(variables_patience_ns)) == WEIR_OK ? status : WEIR_INTERNAL;
}

Test(txn, survives_every_allocation_failing)
{
	weir_tensor *value = number(3);

	/*
	 * The transaction, and its arrays twice; nine variables with three allocations each; the parts
	 * and the cell; nine versions.
	 */
	cr_assert_eq(fail_each_allocation(transact_with, value), 1 + 4 + 27 + 2 + 9);
	weir_tensor_release(value);
	expect_nothing_left();
}

/*
 * A mark takes over the tensor of the version below, so that a variable that is read often does not
 * retire its value again and again.
 */
Test(txn, reading_a_large_variable_retires_no_large_ones)
{
	weir_shape large = {1, {100000}};
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_U8, .name = "large",
	                                   .allocator = &variables_memory};
	weir_tensor_builder *builder;
	weir_tensor *value = NULL, *read;
	weir_var *vars[2] = {NULL, variable(0)};
	weir_read handle;
	weir_error error = {WEIR_OK, ""};
	weir_txn *txn;

	cr_assert_eq(weir_tensor_builder_create(WEIR_U8, &large, &variables_memory, &builder, NULL), WEIR_OK);
	memset(weir_tensor_builder_data(builder), 7, 100000);
	cr_assert_eq(weir_tensor_builder_finish(builder, &value), WEIR_OK);
	cr_assert_eq(weir_var_create(value, &options, &vars[0], NULL), WEIR_OK);
	/* What the handle pins cannot be freed. */
	cr_assert_eq(weir_var_read(vars[0], &handle), WEIR_OK);
	weir_reclaim_set_budget(90000);
	for (int64_t i = 0; i < 20; i++) {
		txn = begin();
		cr_assert_eq(weir_txn_read(txn, vars[0], &read, NULL), WEIR_OK);
		cr_assert_eq(read, value);
		assign_in(txn, vars[1], i);
		cr_assert_eq(weir_txn_commit(txn, 0, &error), WEIR_OK, "%d: %s", (int)i, error.message);
	}
	/*
	 * Once it is replaced for good while a handle is on the last mark, it counts. The next writer
	 * waits until its deadline and changes nothing.
	 */
	weir_read_release(&handle);
	cr_assert_eq(weir_var_read(vars[0], &handle), WEIR_OK);
	cr_assert_eq(weir_var_assign(vars[0], value, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	txn = begin();
	assign_in(txn, vars[1], read_in(txn, vars[1]) + 1);
	cr_assert_eq(weir_txn_read(txn, vars[0], &read, NULL), WEIR_OK);
	cr_expect_eq(weir_txn_commit(txn, weir_deadline_in(3000000), &error), WEIR_RESOURCE_EXHAUSTED);
	cr_expect_not_null(strstr(error.message, "budget"), "%s", error.message);
	cr_expect_eq(value_in(vars[1]), 19);
	weir_read_release(&handle);
	weir_reclaim_set_budget(0);
	weir_tensor_release(value);
	destroy_all(vars, 2);
}

/* -- threads ----------------------------------------------------------------------------------- */

static void *end_elsewhere(void *context)
{
	weir_txn *txn = context;

	return commit(txn, NULL) == WEIR_OK ? txn : NULL;
}

/* The handles are in the slots of the thread that read. */
Test(txn, may_be_carried_on_by_another_thread)
{
	weir_var *vars[2] = {variable(1), variable(2)};
	weir_txn *txn = begin();
	pthread_t thread;
	void *ended = NULL;

	assign_in(txn, vars[1], read_in(txn, vars[0]) + 5);
	cr_assert_eq(pthread_create(&thread, NULL, end_elsewhere, txn), 0);
	cr_assert_eq(pthread_join(thread, &ended), 0);
	cr_expect_not_null(ended);
	cr_expect_eq(value_in(vars[1]), 6);
	destroy_all(vars, 2);
}

enum { ACCOUNTS = 4, MOVERS = 3, TRANSFERS = 300, BALANCE = 100 };

struct bank {
	weir_var *accounts[ACCOUNTS];
	size_t from, to; /* of a thread that transfers */
	int64_t amount;
	uint32_t random;
};

static uint32_t draw(struct bank *bank, uint32_t below)
{
	bank->random = bank->random * 1664525 + 1013904223;
	return (bank->random >> 16) % below;
}

/*
 * The body also looks at all variables. If it sees another sum than there ever was, the test ends.
 */
static enum weir_status transfer(void *context, weir_txn *txn, weir_error *error)
{
	const struct bank *bank = context;
	weir_tensor *balances[ACCOUNTS], *next;
	int64_t sum = 0, amounts[2];
	enum weir_status status = WEIR_OK;

	for (size_t i = 0; i < ACCOUNTS && status == WEIR_OK; i++) {
		status = weir_txn_read(txn, bank->accounts[i], &balances[i], error);
		if (status == WEIR_OK)
			sum += *(const int64_t *)weir_tensor_data(balances[i]);
	}
	if (status != WEIR_OK)
		return status;
	cr_assert_eq(sum, ACCOUNTS * BALANCE, "torn: %" PRId64, sum);
	amounts[0] = *(const int64_t *)weir_tensor_data(balances[bank->from]) - bank->amount;
	amounts[1] = *(const int64_t *)weir_tensor_data(balances[bank->to]) + bank->amount;
	for (size_t i = 0; i < 2 && status == WEIR_OK; i++) {
		next = number(amounts[i]);
		status = weir_txn_assign(txn, bank->accounts[i == 0 ? bank->from : bank->to], next, error);
		weir_tensor_release(next);
	}
	return status;
}

static void *move_money(void *context)
{
	struct bank *bank = context;

	for (int i = 0; i < TRANSFERS; i++) {
		weir_error error = {WEIR_OK, ""};

		bank->from = draw(bank, ACCOUNTS);
		bank->to = (bank->from + 1 + draw(bank, ACCOUNTS - 1)) % ACCOUNTS;
		bank->amount = (int64_t)draw(bank, 10);
		cr_assert_eq(weir_txn_run(&variables_memory, transfer, bank, WEIR_NO_DEADLINE, &error), WEIR_OK, "%s",
		             error.message);
	}
	return NULL;
}

Test(txn, transfers_by_many_threads_keep_the_sum_at_every_look)
{
	struct bank banks[MOVERS];
	pthread_t threads[MOVERS];
	weir_var *accounts[ACCOUNTS];
	int64_t sum = 0;

	for (size_t i = 0; i < ACCOUNTS; i++)
		accounts[i] = variable(BALANCE);
	for (size_t i = 0; i < MOVERS; i++) {
		banks[i] = (struct bank){.random = (uint32_t)i + 1};
		memcpy(banks[i].accounts, accounts, sizeof(accounts));
		cr_assert_eq(pthread_create(&threads[i], NULL, move_money, &banks[i]), 0);
	}
	for (size_t i = 0; i < MOVERS; i++)
		cr_assert_eq(pthread_join(threads[i], NULL), 0);
	for (size_t i = 0; i < ACCOUNTS; i++)
		sum += value_in(accounts[i]);
	cr_expect_eq(sum, ACCOUNTS * BALANCE);
	destroy_all(accounts, ACCOUNTS);
}

/* -- run --------------------------------------------------------------------------------------- */

struct body {
	weir_var *var;
	/* The number of calls, and of those whose commit is made to abort. */
	unsigned calls, aborts;
	enum weir_status status;
};

static enum weir_status interfere(void *context, weir_txn *txn, weir_error *error)
{
	struct body *body = context;
	weir_tensor *value;
	enum weir_status status = weir_txn_read(txn, body->var, &value, error);

	if (status != WEIR_OK)
		return status;
	if (body->calls++ < body->aborts)
		/* Moves what was read. */
		assign(body->var, 100);
	value = number(*(const int64_t *)weir_tensor_data(value) + 1);
	status = weir_txn_assign(txn, body->var, value, error);
	weir_tensor_release(value);
	return status == WEIR_OK ? body->status : status;
}

Test(txn, run_begins_again_until_it_commits)
{
	struct body body = {.var = variable(1), .aborts = 5};

	cr_assert_eq(weir_txn_run(&variables_memory, interfere, &body, WEIR_NO_DEADLINE, NULL), WEIR_OK);
	cr_expect_eq(body.calls, 6);
	cr_expect_eq(value_in(body.var), 101);
	destroy_all(&body.var, 1);
}

/* Each attempt gets an empty error, whatever the attempt before left there. */
static enum weir_status fail_once(void *context, weir_txn *txn, weir_error *error)
{
	int *calls = context;

	(void)txn;
	cr_expect_eq(error->code, WEIR_OK);
	cr_expect_str_eq(error->message, "");
	if ((*calls)++ > 0)
		return WEIR_OK;
	*error = (weir_error){WEIR_ABORTED, "somebody was faster"};
	return WEIR_ABORTED;
}

Test(txn, run_gives_each_attempt_an_empty_error)
{
	int calls = 0;

	cr_assert_eq(weir_txn_run(&variables_memory, fail_once, &calls, WEIR_NO_DEADLINE, NULL), WEIR_OK);
	cr_expect_eq(calls, 2);
}

Test(txn, run_ends_with_what_its_function_says_and_changes_nothing)
{
	struct body body = {.var = variable(1), .status = WEIR_NOT_FOUND};
	weir_error error;

	cr_expect_eq(weir_txn_run(&variables_memory, interfere, &body, WEIR_NO_DEADLINE, &error), WEIR_NOT_FOUND);
	cr_expect_eq(error.code, WEIR_NOT_FOUND);
	cr_expect_str_eq(error.message, "transaction: its function returned WEIR_NOT_FOUND");
	cr_expect_eq(body.calls, 1);
	cr_expect_eq(weir_var_version(body.var), 1);
	destroy_all(&body.var, 1);
}

static enum weir_status fail_and_explain(void *context, weir_txn *txn, weir_error *error)
{
	(void)txn;
	*error = (weir_error){WEIR_DATA_LOSS, "torn"};
	return *(const enum weir_status *)context;
}

/* If what its function says is of another status, it is of a call that failed before. */
Test(txn, run_keeps_what_its_function_says_of_its_status)
{
	enum weir_status status = WEIR_DATA_LOSS;
	weir_error error;

	cr_expect_eq(weir_txn_run(&variables_memory, fail_and_explain, &status, WEIR_NO_DEADLINE, &error), status);
	cr_expect_eq(error.code, status);
	cr_expect_str_eq(error.message, "torn");
	status = WEIR_NOT_FOUND;
	cr_expect_eq(weir_txn_run(&variables_memory, fail_and_explain, &status, WEIR_NO_DEADLINE, &error), status);
	cr_expect_eq(error.code, status);
	cr_expect_str_eq(error.message, "transaction: its function returned WEIR_NOT_FOUND");
}

Test(txn, run_gives_up_at_its_deadline_and_says_what_the_last_attempt_met)
{
	struct body body = {.var = named_variable("hot", 1), .aborts = UINT32_MAX};
	weir_error error;

	cr_expect_eq(weir_txn_run(&variables_memory, interfere, &body, 0, &error), WEIR_DEADLINE_EXCEEDED);
	cr_expect_eq(body.calls, 1, "there is always one attempt");
	cr_expect_str_eq(error.message,
	                 "the deadline passed after 1 attempt; the last: variable \"hot\" is at version 2, expected 1");
	cr_expect_eq(weir_txn_run(&variables_memory, interfere, &body, weir_deadline_in(2000000), NULL),
	             WEIR_DEADLINE_EXCEEDED);
	cr_expect_gt(body.calls, 2);
	destroy_all(&body.var, 1);
}

/* -- stopped at each instruction --------------------------------------------------------------- */

enum { COST = 29 };

/* Our transaction reads all three variables, and writes the sum of the first two into the third. */
struct scene {
	weir_var *vars[3];
	enum weir_status status;
};

static void sum_up(void *context)
{
	struct scene *scene = context;
	weir_txn *txn = begin();
	weir_tensor *values[3], *sum;

	scene->status = WEIR_ABORTED;
	for (size_t i = 0; i < 3; i++) {
		if (weir_txn_read(txn, scene->vars[i], &values[i], NULL) != WEIR_OK) {
			weir_txn_abort(txn);
			return;
		}
	}
	sum = number(*(const int64_t *)weir_tensor_data(values[0]) + *(const int64_t *)weir_tensor_data(values[1]));
	cr_assert_eq(weir_txn_assign(txn, scene->vars[2], sum, NULL), WEIR_OK);
	weir_tensor_release(sum);
	scene->status = commit(txn, NULL);
}

/* `meanwhile` completes wherever our transaction is stopped. */
static void stop_everywhere(void (*meanwhile)(struct scene *scene), void (*judge)(struct scene *scene, size_t at))
{
	struct scene scene;
	struct stepped ours = {.prepare = meet_weir, .call = sum_up, .context = &scene};
	int stands = 1;

	stepped_or_skip();
	for (size_t at = 0; stands; at += stepped_stride(COST)) {
		scene = (struct scene){.vars = {variable(1), variable(2), variable(0)}};
		stands = stepped_start(&ours, at);
		meanwhile(&scene);
		collect_now();
		stepped_finish(&ours);
		judge(&scene, at);
		destroy_all(scene.vars, 3);
	}
}

static void assign_first(struct scene *scene)
{
	assign(scene->vars[0], 10);
}

static void expect_old_or_new_sum(struct scene *scene, size_t at)
{
	int64_t sum = value_in(scene->vars[2]);

	if (scene->status == WEIR_OK)
		cr_assert(sum == 3 || sum == 12, "stopped at %zu: %" PRId64, at, sum);
	else
		cr_assert_eq(sum, 0, "stopped at %zu", at);
	cr_assert_eq(value_in(scene->vars[0]), 10);
	cr_assert_eq(weir_var_version(scene->vars[0]), 2);
	cr_assert_eq(weir_var_version(scene->vars[1]), 1);
}

Test(txn, stopped_anywhere_a_write_goes_on)
{
	stop_everywhere(assign_first, expect_old_or_new_sum);
}

/* Reads what our transaction reads, so that marks meet, and also writes what it reads. */
static enum weir_status swap_first_two(void *context, weir_txn *txn, weir_error *error)
{
	struct scene *scene = context;
	weir_tensor *values[2];

	(void)error;
	for (size_t i = 0; i < 2; i++) {
		if (weir_txn_read(txn, scene->vars[i], &values[i], NULL) != WEIR_OK)
			return WEIR_ABORTED;
	}
	for (size_t i = 0; i < 2; i++)
		cr_assert_eq(weir_txn_assign(txn, scene->vars[i], values[1 - i], NULL), WEIR_OK);
	return WEIR_OK;
}

static void swap(struct scene *scene)
{
	cr_assert_eq(weir_txn_run(&variables_memory, swap_first_two, scene, WEIR_NO_DEADLINE, NULL), WEIR_OK);
}

static void expect_swapped_and_the_sum(struct scene *scene, size_t at)
{
	cr_assert_eq(value_in(scene->vars[0]), 2);
	cr_assert_eq(value_in(scene->vars[1]), 1);
	cr_assert_eq(value_in(scene->vars[2]), scene->status == WEIR_OK ? 3 : 0, "stopped at %zu", at);
}

Test(txn, stopped_anywhere_another_transaction_goes_on)
{
	stop_everywhere(swap, expect_swapped_and_the_sum);
}
