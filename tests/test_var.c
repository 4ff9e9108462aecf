/*
 * test_var.c - variables: versions, handles, snapshots and commits on one thread, allocations that
 * fail, and an update that changes its thread.
 */
#include <criterion/criterion.h>

#include <weir/reclaim.h>
#include <weir/time.h>
#include <weir/value.h>

#include "coroutine.h"
#include "failing_allocator.h"
#include "reclaim/record.h"

static weir_tensor *number(int64_t value)
{
	weir_tensor *tensor;

	cr_assert_eq(weir_tensor_scalar_i64(value, &tensor), WEIR_OK);
	return tensor;
}

static weir_var *variable(int64_t value)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I64, .name = "v"};
	weir_tensor *first = number(value);
	weir_var *var;

	cr_assert_eq(weir_var_create(first, &options, &var, NULL), WEIR_OK);
	weir_tensor_release(first);
	return var;
}

static int64_t value_of(const weir_read *read)
{
	return *(const int64_t *)weir_tensor_data(read->tensor);
}

static void assign(weir_var *var, int64_t value)
{
	weir_tensor *tensor = number(value);

	cr_assert_eq(weir_var_assign(var, tensor, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	weir_tensor_release(tensor);
}

Test(var, a_handle_keeps_its_version_and_outlives_the_variable)
{
	weir_var *var = variable(1);
	weir_read reads[12];

	/* There are more handles than slots. */
	for (int64_t i = 0; i < 12; i++) {
		cr_assert_eq(weir_var_read(var, &reads[i]), WEIR_OK);
		assign(var, i + 2);
	}
	cr_assert_eq(weir_var_version(var), 13);
	weir_var_destroy(var, NULL);
	(void)weir_reclaim_flush(0);
	for (int64_t i = 0; i < 12; i++) {
		cr_assert_eq(reads[i].version, (uint64_t)i + 1);
		cr_assert_eq(value_of(&reads[i]), i + 1);
	}
	weir_read_release_many(reads, 12);
}

static bool is_cleared(const weir_read *read)
{
	return read->data == NULL && read->version == 0 && read->hold == NULL;
}

/* A second release would otherwise free the slot that another handle has got meanwhile. */
Test(var, a_released_handle_is_cleared_and_releasing_it_again_does_nothing)
{
	weir_var *var = variable(1);
	weir_read first, second, both[2];

	cr_assert_eq(weir_var_read(var, &first), WEIR_OK);
	weir_read_release(&first);
	cr_expect(is_cleared(&first));
	cr_assert_eq(weir_var_read(var, &second), WEIR_OK);
	weir_read_release(&first);
	assign(var, 2);
	cr_assert_eq(weir_reclaim_flush(0), WEIR_DEADLINE_EXCEEDED, "the second handle holds its version");
	weir_read_release(&second);
	cr_assert_eq(weir_reclaim_flush(weir_deadline_in(UINT64_C(100000000000))), WEIR_OK);
	cr_assert_eq(weir_var_read(var, &both[0]), WEIR_OK);
	cr_assert_eq(weir_var_read(var, &both[1]), WEIR_OK);
	weir_read_release_many(both, 2);
	cr_expect(is_cleared(&both[0]) && is_cleared(&both[1]));
	weir_read_release_many(both, 2);
	weir_var_destroy(var, NULL);
}

Test(var, compare_assign_takes_the_expected_number_only)
{
	weir_var *var = variable(1);
	weir_tensor *two = number(2);
	weir_read published;

	cr_assert_eq(weir_var_compare_assign(var, 7, two, WEIR_NO_DEADLINE, &published, NULL), WEIR_ABORTED);
	cr_assert_eq(published.version, 1, "what was found");
	cr_assert_null(published.tensor);
	cr_assert_eq(weir_var_compare_assign(var, 1, two, WEIR_NO_DEADLINE, &published, NULL), WEIR_OK);
	cr_assert_eq(published.version, 2);
	cr_assert_eq(published.tensor, two);
	weir_read_release(&published);
	weir_tensor_release(two);
	weir_var_destroy(var, NULL);
}

Test(var, exchange_gives_back_the_version_that_it_replaced)
{
	weir_var *var = variable(1);
	weir_tensor *two = number(2), *wrong = NULL;
	weir_read old, untouched = {.version = 42};

	assign(var, 5);
	cr_assert_eq(weir_var_exchange(var, two, WEIR_NO_DEADLINE, &old, NULL), WEIR_OK);
	cr_expect_eq(old.version, 2);
	assign(var, 3);
	(void)weir_reclaim_flush(0);
	cr_expect_eq(value_of(&old), 5, "the handle keeps it");
	cr_expect_eq(weir_var_version(var), 4);
	weir_read_release(&old);
	cr_assert_eq(weir_tensor_scalar_f32(1, &wrong), WEIR_OK);
	cr_expect_eq(weir_var_exchange(var, wrong, WEIR_NO_DEADLINE, &untouched, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(untouched.version, 42);
	cr_expect_eq(weir_var_exchange(var, two, WEIR_NO_DEADLINE, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_var_exchange(NULL, two, WEIR_NO_DEADLINE, &untouched, NULL), WEIR_INVALID_ARGUMENT);
	weir_tensor_release(wrong);
	weir_tensor_release(two);
	weir_var_destroy(var, NULL);
}

/* There are more handles than slots. The last ones take references, which pin their version too. */
Test(var, exchanges_beyond_the_slots_keep_what_they_replaced)
{
	weir_var *var = variable(0);
	weir_read old[12];

	for (int64_t i = 0; i < 12; i++) {
		weir_tensor *next = number(i + 1);

		cr_assert_eq(weir_var_exchange(var, next, WEIR_NO_DEADLINE, &old[i], NULL), WEIR_OK);
		weir_tensor_release(next);
	}
	weir_var_destroy(var, NULL);
	(void)weir_reclaim_flush(0);
	for (int64_t i = 0; i < 12; i++) {
		cr_expect_eq(value_of(&old[i]), i);
		cr_expect_eq(old[i].version, (uint64_t)i + 1);
	}
	weir_read_release_many(old, 12);
}

Test(var, read_if_newer_says_when_there_is_nothing)
{
	weir_var *var = variable(1);
	weir_read read = {.version = 42};

	cr_expect_eq(weir_var_try_read_newer(var, 1, &read), WEIR_WOULD_BLOCK);
	cr_expect_eq(weir_var_try_read_newer(var, 7, &read), WEIR_WOULD_BLOCK);
	cr_expect_eq(read.version, 42, "untouched");
	cr_assert_eq(weir_var_try_read_newer(var, 0, &read), WEIR_OK);
	cr_expect_eq(read.version, 1);
	weir_read_release(&read);
	assign(var, 2);
	assign(var, 3);
	cr_assert_eq(weir_var_try_read_newer(var, 1, &read), WEIR_OK);
	cr_expect_eq(read.version, 3, "the newest version, not the next one");
	cr_expect_eq(value_of(&read), 3);
	weir_read_release(&read);
	cr_expect_eq(weir_var_try_read_newer(NULL, 0, &read), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_var_try_read_newer(var, 0, NULL), WEIR_INVALID_ARGUMENT);
	weir_var_destroy(var, NULL);
}

Test(var, assign_add_gives_back_the_version_that_it_published)
{
	weir_var *var = variable(10);
	weir_tensor *five = number(5);
	weir_read sum, difference;

	cr_assert_eq(weir_var_assign_add(var, five, WEIR_NO_DEADLINE, &sum, NULL), WEIR_OK);
	cr_assert_eq(weir_var_assign_sub(var, five, WEIR_NO_DEADLINE, &difference, NULL), WEIR_OK);
	cr_assert_eq(value_of(&sum), 15);
	cr_assert_eq(sum.version, 2);
	cr_assert_eq(value_of(&difference), 10);
	cr_assert_eq(difference.version, 3);
	weir_read_release(&sum);
	weir_read_release(&difference);
	weir_tensor_release(five);
	weir_var_destroy(var, NULL);
}

Test(var, commit_is_all_or_nothing_and_an_abort_leaves_the_old_values)
{
	weir_var *vars[2] = {variable(1), variable(2)};
	weir_tensor *nine = number(9);
	struct weir_commit_part parts[2] = {{vars[0], 1, nine}, {vars[1], 4, nine}};
	weir_read reads[2];
	weir_error error;

	cr_assert_eq(weir_var_commit(parts, 2, WEIR_NO_DEADLINE, NULL, &error), WEIR_ABORTED);
	cr_assert_eq(weir_var_snapshot(vars, 2, reads, NULL), WEIR_OK);
	cr_assert_eq(value_of(&reads[0]), 1);
	cr_assert_eq(value_of(&reads[1]), 2);
	weir_read_release_many(reads, 2);
	parts[1].expected = 1;
	cr_assert_eq(weir_var_commit(parts, 2, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_var_snapshot(vars, 2, reads, NULL), WEIR_OK);
	cr_assert_eq(value_of(&reads[0]), 9);
	cr_assert_eq(reads[1].version, 2);
	weir_read_release_many(reads, 2);
	parts[1].var = vars[0];
	cr_assert_eq(weir_var_commit(parts, 2, WEIR_NO_DEADLINE, NULL, &error), WEIR_INVALID_ARGUMENT, "a variable twice");
	weir_tensor_release(nine);
	weir_var_destroy(vars[0], NULL);
	weir_var_destroy(vars[1], NULL);
}

Test(var, bad_arguments_are_refused)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_F32};
	weir_tensor *wrong = number(1);
	weir_var *var = NULL;
	weir_read read;
	weir_error error;

	cr_assert_eq(
		weir_var_create(NULL, &(struct weir_var_options){WEIR_VAR_OPTIONS_INIT, .name = "config"}, &var, &error),
		WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "variable \"config\": dtype is 0, and kind is WEIR_VAR_TENSOR; set dtype, or kind");
	cr_assert_eq(weir_var_create(NULL, NULL, &var, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_var_create(NULL, &options, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_var_create(wrong, &options, &var, NULL), WEIR_INVALID_ARGUMENT, "dtype of the first value");
	options.shape = &(weir_shape){.rank = WEIR_MAX_RANK + 1};
	cr_assert_eq(weir_var_create(NULL, &options, &var, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_null(var);
	options.shape = NULL;
	cr_assert_eq(weir_var_create(NULL, &options, &var, NULL), WEIR_OK);
	cr_assert_eq(weir_var_read(var, &read), WEIR_FAILED_PRECONDITION, "not initialized");
	cr_assert_eq(weir_var_snapshot(&var, 1, &read, NULL), WEIR_FAILED_PRECONDITION);
	cr_assert_eq(weir_var_read(NULL, &read), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_var_read(var, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_var_assign(var, wrong, WEIR_NO_DEADLINE, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_var_assign(var, NULL, WEIR_NO_DEADLINE, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_var_assign(NULL, wrong, WEIR_NO_DEADLINE, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_var_update(var, NULL, NULL, WEIR_NO_DEADLINE, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_var_commit(NULL, 1, WEIR_NO_DEADLINE, NULL, NULL), WEIR_INVALID_ARGUMENT);
	weir_var_destroy(var, NULL);
	weir_var_destroy(NULL, NULL);
	weir_read_release(NULL);
	weir_tensor_release(wrong);
}

/* The context is what the variable gets as its next value. */
static enum weir_status give(void *context, const weir_read *current, weir_tensor **next, weir_error *error)
{
	(void)current, (void)error;
	*next = context;
	return WEIR_OK;
}

Test(var, an_update_is_refused_a_value_that_the_variable_cannot_take)
{
	weir_var *var = variable(1);
	weir_tensor *wrong;
	weir_error error;

	cr_assert_eq(weir_tensor_scalar_f32(1.0F, &wrong), WEIR_OK);
	cr_expect_eq(weir_var_update(var, give, wrong, WEIR_NO_DEADLINE, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "variable \"v\": dtype must be i64, got f32");
	cr_expect_eq(weir_var_update(var, give, NULL, WEIR_NO_DEADLINE, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "variable \"v\": value is NULL");
	cr_expect_eq(weir_var_version(var), 1);
	weir_var_destroy(var, NULL);
}

/* Creates, assigns, adds and commits. All that it made is gone when it returns. */
static enum weir_status use_with(const weir_allocator *allocator, void *context)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I64, .allocator = allocator};
	weir_tensor *value = context;
	weir_var *var;
	enum weir_status status = weir_var_create(value, &options, &var, NULL);

	if (status != WEIR_OK)
		return status;
	status = weir_var_assign(var, value, WEIR_NO_DEADLINE, NULL, NULL);
	if (status == WEIR_OK)
		status = weir_var_assign_add(var, value, WEIR_NO_DEADLINE, NULL, NULL);
	if (status == WEIR_OK) {
		weir_read old;

		status = weir_var_exchange(var, value, WEIR_NO_DEADLINE, &old, NULL);
		if (status == WEIR_OK)
			weir_read_release(&old);
	}
	if (status == WEIR_OK)
		status = weir_var_commit(&(struct weir_commit_part){var, 4, value}, 1, WEIR_NO_DEADLINE, NULL, NULL);
	weir_var_destroy(var, NULL);
	return weir_reclaim_flush(weir_deadline_in(UINT64_C(5000000000))) == WEIR_OK ? status : WEIR_INTERNAL;
}

Test(var, every_call_survives_every_allocation_failing)
{
	weir_tensor *value = number(3);

	cr_assert_geq(fail_each_allocation(use_with, value), 7);
	weir_tensor_release(value);
}

/* -- the variables of the reference: the rows that have a meaning here ------------------------- */

static weir_tensor *vector(enum weir_dtype dtype, int64_t length)
{
	static const int64_t numbers[4] = {1, 2, 3, 4};
	weir_shape shape = {1, {length}};
	weir_tensor *tensor = NULL;

	cr_assert_eq(weir_tensor_copy_of(dtype, &shape, numbers, NULL, &tensor), WEIR_OK);
	return tensor;
}

static weir_var *vector_variable(int64_t length)
{
	weir_shape shape = {1, {length}};
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I64, .name = "w", .shape = &shape};
	weir_var *var = NULL;

	cr_assert_eq(weir_var_create(NULL, &options, &var, NULL), WEIR_OK);
	return var;
}

/*
 * VAR-001, VAR-003, VAR-051: a value of another dtype or shape is refused, and one of the right
 * kind is accepted. The message names both.
 */
Test(var, assign_takes_the_right_dtype_and_shape_only)
{
	weir_var *var = vector_variable(3);
	weir_tensor *right = vector(WEIR_I64, 3), *longer = vector(WEIR_I64, 4), *other = vector(WEIR_F64, 3);
	weir_error error;

	cr_expect_eq(weir_var_assign(var, longer, WEIR_NO_DEADLINE, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "variable \"w\": shape must fit [3], got [4]");
	cr_expect_eq(weir_var_assign(var, other, WEIR_NO_DEADLINE, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "variable \"w\": dtype must be i64, got f64");
	cr_expect_eq(weir_var_version(var), 0, "nothing was published");
	cr_expect_eq(weir_var_assign(var, right, WEIR_NO_DEADLINE, NULL, &error), WEIR_OK);
	cr_expect_eq(weir_var_version(var), 1);
	weir_tensor_release(right);
	weir_tensor_release(longer);
	weir_tensor_release(other);
	weir_var_destroy(var, NULL);
}

/* VAR-050: with an unknown dim, values of different shapes may follow each other. */
Test(var, an_unknown_dim_takes_values_of_any_length)
{
	weir_var *var = vector_variable(-1);

	for (int64_t length = 1; length <= 4; length++) {
		weir_tensor *value = vector(WEIR_I64, length);
		weir_read read;

		cr_expect_eq(weir_var_assign(var, value, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
		cr_assert_eq(weir_var_read(var, &read), WEIR_OK);
		cr_expect_eq(weir_tensor_element_count(read.tensor), length);
		weir_read_release(&read);
		weir_tensor_release(value);
	}
	weir_var_destroy(var, NULL);
}

/* VAR-004: the name is only for messages. Variables with the same name are different variables. */
Test(var, variables_of_one_name_have_values_of_their_own)
{
	weir_var *first = variable(1), *second = variable(2);
	weir_read read;

	cr_expect_str_eq(weir_var_name(first), weir_var_name(second));
	assign(first, 3);
	cr_assert_eq(weir_var_read(second, &read), WEIR_OK);
	cr_expect_eq(value_of(&read), 2);
	weir_read_release(&read);
	weir_var_destroy(first, NULL);
	weir_var_destroy(second, NULL);
}

/*
 * VAR-018: assign 1, read, assign 2, read: 1, 2. A value that was read stays (copy on write in the
 * reference, VAR-008).
 */
Test(var, reads_follow_assigns_and_what_was_read_stays)
{
	weir_var *var = variable(0);
	weir_read first, second;

	assign(var, 1);
	cr_assert_eq(weir_var_read(var, &first), WEIR_OK);
	assign(var, 2);
	cr_assert_eq(weir_var_read(var, &second), WEIR_OK);
	cr_expect_eq(value_of(&first), 1);
	cr_expect_eq(value_of(&second), 2);
	weir_read_release(&first);
	weir_read_release(&second);
	weir_var_destroy(var, NULL);
}

/*
 * VAR-064: assign_add of a scalar to a vector is refused and changes nothing. VAR-047, VAR-048: 1 +
 * 1, then - 1.
 */
Test(var, assign_add_wants_equal_shapes)
{
	weir_var *var = vector_variable(3);
	weir_tensor *value = vector(WEIR_I64, 3), *scalar = number(1);
	weir_error error;
	weir_read sum;

	cr_assert_eq(weir_var_assign(var, value, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	cr_expect_eq(weir_var_assign_add(var, scalar, WEIR_NO_DEADLINE, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "variable \"w\": i64 [3] cannot be changed by i64 []");
	cr_expect_eq(weir_var_version(var), 1);
	cr_assert_eq(weir_var_assign_add(var, value, WEIR_NO_DEADLINE, &sum, NULL), WEIR_OK);
	for (int64_t i = 0; i < 3; i++)
		cr_expect_eq(((const int64_t *)weir_tensor_data(sum.tensor))[i], 2 * (i + 1));
	weir_read_release(&sum);
	cr_assert_eq(weir_var_assign_sub(var, value, WEIR_NO_DEADLINE, &sum, NULL), WEIR_OK);
	for (int64_t i = 0; i < 3; i++)
		cr_expect_eq(((const int64_t *)weir_tensor_data(sum.tensor))[i], i + 1);
	weir_read_release(&sum);
	weir_tensor_release(value);
	weir_tensor_release(scalar);
	weir_var_destroy(var, NULL);
}

/*
 * VAR-017, VAR-033: the variable is not initialized until its first value, and then readable.
 * Updates need a value too.
 */
Test(var, a_variable_without_a_value_says_so_until_it_gets_one)
{
	weir_var *var = vector_variable(3);
	weir_tensor *value = vector(WEIR_I64, 3);
	weir_error error;
	weir_read read;

	cr_expect_eq(weir_var_read(var, &read), WEIR_FAILED_PRECONDITION);
	cr_expect_eq(weir_var_assign_add(var, value, WEIR_NO_DEADLINE, NULL, &error), WEIR_FAILED_PRECONDITION);
	cr_expect_str_eq(error.message, "variable \"w\" is not initialized");
	cr_expect_eq(weir_var_version(var), 0);
	cr_expect_eq(weir_var_try_read_newer(var, 0, &read), WEIR_WOULD_BLOCK);
	cr_expect_eq(weir_var_compare_assign(var, 0, value, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_var_read(var, &read), WEIR_OK);
	cr_expect_eq(read.version, 1);
	weir_read_release(&read);
	weir_tensor_release(value);
	weir_var_destroy(var, NULL);
}

Test(var, exchange_of_a_variable_without_a_value_replaces_none)
{
	weir_var *var = vector_variable(3);
	weir_tensor *value = vector(WEIR_I64, 3);
	weir_read old = {.tensor = value, .version = 42};

	cr_assert_eq(weir_var_exchange(var, value, WEIR_NO_DEADLINE, &old, NULL), WEIR_OK);
	cr_expect_null(old.tensor);
	cr_expect_eq(old.version, 0);
	weir_read_release(&old);
	cr_expect_eq(weir_var_version(var), 1);
	weir_tensor_release(value);
	weir_var_destroy(var, NULL);
}

/* VAR-056: the static shape and dtype are those with which the variable was created. */
Test(var, says_its_dtype_shape_and_name)
{
	weir_var *var = vector_variable(-1), *any = variable(1);

	cr_expect_eq(weir_var_dtype(var), WEIR_I64);
	cr_assert_not_null(weir_var_shape(var));
	cr_expect_eq(weir_var_shape(var)->dims[0], -1);
	cr_expect_null(weir_var_shape(any));
	cr_expect_str_eq(weir_var_name(var), "w");
	cr_expect_str_eq(weir_var_name(NULL), "(null)");
	weir_var_destroy(var, NULL);
	weir_var_destroy(any, NULL);
}

/* -- updates whose function goes on on another thread ------------------------------------------ */

struct moving {
	struct coroutine coroutine;
	weir_var *var;
	weir_read *published;        /* NULL: it stays where it is */
	struct weiri_record *before; /* that of the thread on which it began */
	enum weir_status status;
};

static uint64_t retired_by(const struct weiri_record *record)
{
	return weiri_load_relaxed(&record->since_collection);
}

static enum weir_status add_on_another_thread(void *context, const weir_read *current, weir_value *next,
                                              weir_error *error)
{
	struct moving *moving = context;
	int64_t *number = next->room;

	(void)error;
	coroutine_stop(&moving->coroutine);
	*number = *(const int64_t *)current->data + 1;
	return WEIR_OK;
}

static void update(void *context)
{
	struct moving *moving = context;
	weir_read read;

	moving->before = weiri_record_get();
	/* A read has announced the era: so the update is the common case. */
	cr_assert_eq(weir_var_read(moving->var, &read), WEIR_OK);
	weir_read_release(&read);
	moving->status =
		weir_var_update_value(moving->var, add_on_another_thread, moving, WEIR_NO_DEADLINE, moving->published, NULL);
}

/*
 * The version that the update replaces is retired by the thread on which it ends. The record of the other
 * thread, which has ended, may have another owner by then.
 */
static void expect_update(weir_read *published)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .name = "number", .kind = WEIR_VAR_INLINE,
	                                   .size = sizeof(int64_t)};
	int64_t number = 1;
	uint64_t by_other, by_this;
	static struct moving moving;

	moving = (struct moving){.coroutine = {.call = update, .context = &moving}, .published = published};
	cr_assert_eq(weir_var_create_value(WEIR_VALUE_OF(number), &options, &moving.var, NULL), WEIR_OK);
	coroutine_start(&moving.coroutine);
	coroutine_resume_on_a_thread(&moving.coroutine);
	cr_assert_neq(moving.before, weiri_record_get());
	by_other = retired_by(moving.before);
	by_this = retired_by(weiri_record_mine);
	coroutine_resume(&moving.coroutine);
	cr_expect_eq(moving.status, WEIR_OK);
	cr_expect_eq(retired_by(moving.before), by_other);
	cr_expect_gt(retired_by(weiri_record_mine), by_this);
	cr_assert_eq(weir_var_read_into(moving.var, &number, sizeof(number), NULL, NULL), WEIR_OK);
	cr_expect_eq(number, 2);
	weir_read_release(published);
	coroutine_end(&moving.coroutine);
	cr_assert_eq(weir_var_destroy(moving.var, NULL), WEIR_OK);
	cr_expect_eq(weir_reclaim_flush(0), WEIR_OK);
}

Test(var, an_update_ends_on_another_thread)
{
	weir_read published = {.version = 0};

	coroutine_or_skip();
	expect_update(NULL);
	expect_update(&published);
}
