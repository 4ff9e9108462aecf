/*
 * test_conformance_variable.c - the rows of conformance_rows.tsv about variables, one test for each
 * id.
 */
#include <criterion/criterion.h>

#include <string.h>
#include <weir/scatter.h>
#include <weir/store.h>

#include "rows_kit.h"

/* -- variables and their values ---------------------------------------------------------------- */

/* A variable without a value. Dims may be -1. */
static weir_var *variable_of(enum weir_dtype dtype, weir_shape shape)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = dtype, .name = "v", .shape = &shape,
	                                   .allocator = &variables_memory};
	weir_var *var = NULL;

	cr_assert_eq(weir_var_create(NULL, &options, &var, NULL), WEIR_OK);
	return var;
}

static weir_shape vector(int64_t length)
{
	return (weir_shape){.rank = 1, .dims = {length}};
}

/* Releases the tensor. */
static enum weir_status assign_and_release(weir_var *var, weir_tensor *value, weir_error *error)
{
	enum weir_status status = weir_var_assign(var, value, WEIR_NO_DEADLINE, NULL, error);

	weir_tensor_release(value);
	return status;
}

static void expect_elements(const weir_tensor *tensor, const int64_t values[], size_t count)
{
	cr_assert_eq(weir_tensor_element_count(tensor), (int64_t)count);
	for (size_t i = 0; i < count; i++)
		cr_expect_eq(((const int64_t *)weir_tensor_data(tensor))[i], values[i], "element %zu", i);
}

static void expect_value(weir_var *var, const int64_t values[], size_t count)
{
	weir_read read;

	cr_assert_eq(weir_var_read(var, &read), WEIR_OK);
	expect_elements(read.tensor, values, count);
	weir_read_release(&read);
}

static void end(weir_var *var)
{
	cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
	expect_nothing_left();
}

/* -- values and their dtypes ------------------------------------------------------------------- */

Test(conformance_variable, VAR_001_a_value_of_another_dtype_or_shape_is_refused)
{
	weir_var *var = variable_of(WEIR_I64, vector(1));
	weir_error error;

	cr_expect_eq(assign_and_release(var, tensor_of(WEIR_F32, vector(1), (float[]){1}), &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "variable \"v\": dtype must be i64, got f32");
	cr_expect_eq(assign_and_release(var, tensor_of(WEIR_I64, vector(2), (int64_t[]){1, 2}), &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "variable \"v\": shape must fit [1], got [2]");
	cr_expect_eq(assign_and_release(var, tensor_of(WEIR_I64, vector(1), (int64_t[]){7}), &error), WEIR_OK);
	expect_value(var, (int64_t[]){7}, 1);
	end(var);
}

Test(conformance_variable, VAR_004_variables_of_one_name_have_values_of_their_own)
{
	weir_var *first = named_variable("same", 1), *second = named_variable("same", 2);

	assign(first, 3);
	cr_expect_eq(value_in(first), 3);
	cr_expect_eq(value_in(second), 2);
	cr_assert_eq(weir_var_destroy(first, NULL), WEIR_OK);
	end(second);
}

Test(conformance_variable, VAR_006_the_initial_value_can_be_read_once_it_is_created)
{
	weir_var *vars[3] = {variable(10), variable(20), variable(30)};

	for (int64_t i = 0; i < 3; i++) {
		cr_expect_eq(value_in(vars[i]), 10 * (i + 1));
		cr_expect_eq(weir_var_version(vars[i]), 1);
	}
	for (int i = 0; i < 2; i++)
		cr_assert_eq(weir_var_destroy(vars[i], NULL), WEIR_OK);
	end(vars[2]);
}

Test(conformance_variable, VAR_008_what_was_read_does_not_change_with_the_variable)
{
	weir_var *var = variable(1);
	weir_read before;

	cr_assert_eq(weir_var_read(var, &before), WEIR_OK);
	assign(var, 2);
	cr_expect_eq(value_of(&before), 1);
	cr_expect_eq(value_in(var), 2);
	weir_read_release(&before);
	end(var);
}

Test(conformance_variable, a_value_read_before_an_addition_is_the_old_one)
{
	weir_var *var = variable(0);
	weir_tensor *one = number(1);
	weir_read before, sum;

	cr_assert_eq(weir_var_read(var, &before), WEIR_OK);
	cr_assert_eq(weir_var_assign_add(var, one, WEIR_NO_DEADLINE, &sum, NULL), WEIR_OK);
	cr_expect_eq(value_of(&before), 0);
	cr_expect_eq(value_of(&sum), 1);
	weir_read_release(&before);
	weir_read_release(&sum);
	weir_tensor_release(one);
	end(var);
}

Test(conformance_variable, VAR_017_a_variable_without_a_value_can_be_assigned_and_read)
{
	weir_var *var = empty_variable("late");
	weir_read read;

	cr_expect_eq(weir_var_version(var), 0, "not initialized");
	cr_expect_eq(weir_var_read(var, &read), WEIR_FAILED_PRECONDITION);
	assign(var, 1);
	cr_expect_eq(weir_var_version(var), 1);
	cr_expect_eq(value_in(var), 1);
	end(var);
}

Test(conformance_variable, each_read_sees_the_assign_before_it)
{
	weir_var *var = empty_variable("v");

	for (int64_t i = 1; i <= 2; i++) {
		assign(var, i);
		cr_expect_eq(value_in(var), i);
	}
	end(var);
}

Test(conformance_variable, VAR_019_additions_and_subtractions_give_what_they_published)
{
	weir_var *var = variable(1);
	weir_tensor *one = number(1);
	weir_read sum, difference;

	cr_assert_eq(weir_var_assign_add(var, one, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	cr_expect_eq(value_in(var), 2);
	cr_assert_eq(weir_var_assign_add(var, one, WEIR_NO_DEADLINE, &sum, NULL), WEIR_OK);
	cr_assert_eq(weir_var_assign_sub(var, one, WEIR_NO_DEADLINE, &difference, NULL), WEIR_OK);
	cr_assert_eq(weir_var_assign_sub(var, one, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	cr_expect_eq(value_of(&sum), 3);
	cr_expect_eq(value_of(&difference), 2);
	cr_expect_eq(value_in(var), 1);
	weir_read_release(&sum);
	weir_read_release(&difference);
	weir_tensor_release(one);
	end(var);
}

Test(conformance_variable, an_assign_says_which_version_it_published)
{
	weir_var *var = variable(1);
	weir_tensor *two = number(2);
	weir_read published;

	cr_assert_eq(weir_var_assign(var, two, WEIR_NO_DEADLINE, &published, NULL), WEIR_OK);
	cr_expect_eq(published.version, 2);
	cr_expect_eq(published.tensor, two);
	weir_read_release(&published);
	cr_assert_eq(weir_var_assign(var, two, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	cr_expect_eq(value_in(var), 2);
	weir_tensor_release(two);
	end(var);
}

Test(conformance_variable, VAR_042_a_value_is_loaded_from_memory_of_the_program)
{
	weir_var *var = variable_of(WEIR_I64, vector(3));
	int64_t memory[3] = {4, 5, 6};

	cr_assert_eq(assign_and_release(var, tensor_of(WEIR_I64, vector(3), memory), NULL), WEIR_OK);
	memory[0] = 9;
	expect_value(var, (int64_t[]){4, 5, 6}, 3);
	end(var);
}

Test(conformance_variable, VAR_050_a_dim_that_is_unknown_takes_any_length)
{
	weir_var *var = variable_of(WEIR_I64, vector(-1));

	cr_expect_eq(assign_and_release(var, tensor_of(WEIR_I64, vector(1), (int64_t[]){1}), NULL), WEIR_OK);
	cr_expect_eq(assign_and_release(var, tensor_of(WEIR_I64, vector(3), (int64_t[]){1, 2, 3}), NULL), WEIR_OK);
	expect_value(var, (int64_t[]){1, 2, 3}, 3);
	end(var);
}

Test(conformance_variable, VAR_064_an_addition_of_another_shape_is_refused)
{
	weir_var *var = variable_of(WEIR_I64, vector(3));
	weir_tensor *scalar = number(1);
	weir_error error;

	cr_assert_eq(assign_and_release(var, tensor_of(WEIR_I64, vector(3), (int64_t[]){1, 2, 3}), NULL), WEIR_OK);
	cr_expect_eq(weir_var_assign_add(var, scalar, WEIR_NO_DEADLINE, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "variable \"v\": i64 [3] cannot be changed by i64 []");
	expect_value(var, (int64_t[]){1, 2, 3}, 3);
	weir_tensor_release(scalar);
	end(var);
}

Test(conformance_variable, dtype_and_shape_are_known_without_a_value)
{
	weir_var *var = variable_of(WEIR_F32, (weir_shape){2, {-1, 4}});

	cr_expect_eq(weir_var_dtype(var), WEIR_F32);
	cr_expect_eq(weir_var_shape(var)->rank, 2);
	cr_expect_eq(weir_var_shape(var)->dims[0], -1);
	cr_expect_eq(weir_var_shape(var)->dims[1], 4);
	end(var);
}

/* -- rows -------------------------------------------------------------------------------------- */

/* The value is the column {1, second}. Row 1 is combined with 3, and is `expected` then. */
static void expect_row_combined(enum weir_scatter how, int64_t second, int64_t expected)
{
	weir_var *var = variable_of(WEIR_I64, (weir_shape){2, {2, 1}});
	weir_tensor *index = indices_of((int64_t[]){1}, 1);
	weir_tensor *row = tensor_of(WEIR_I64, (weir_shape){2, {1, 1}}, (int64_t[]){3}), *scalar = number(3);

	for (int by_scalar = 0; by_scalar < 2; by_scalar++) {
		cr_assert_eq(
			assign_and_release(var, tensor_of(WEIR_I64, (weir_shape){2, {2, 1}}, (int64_t[]){1, second}), NULL),
			WEIR_OK);
		cr_assert_eq(weir_var_scatter(var, how, index, by_scalar ? scalar : row, WEIR_NO_DEADLINE, NULL, NULL),
		             WEIR_OK);
		expect_value(var, (int64_t[]){1, expected}, 2);
	}
	weir_tensor_release(index);
	weir_tensor_release(row);
	weir_tensor_release(scalar);
	end(var);
}

Test(conformance_variable, VAR_010_one_element_of_many_is_assigned)
{
	weir_var *var = variable_of(WEIR_I64, vector(3));
	weir_tensor *index = indices_of((int64_t[]){1}, 1), *value = tensor_of(WEIR_I64, vector(1), (int64_t[]){9});

	cr_assert_eq(assign_and_release(var, tensor_of(WEIR_I64, vector(3), (int64_t[]){1, 2, 3}), NULL), WEIR_OK);
	cr_assert_eq(weir_var_scatter(var, WEIR_SCATTER_UPDATE, index, value, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	expect_value(var, (int64_t[]){1, 9, 3}, 3);
	weir_tensor_release(index);
	weir_tensor_release(value);
	end(var);
}

Test(conformance_variable, VAR_020_a_row_is_added_to)
{
	expect_row_combined(WEIR_SCATTER_ADD, 2, 5);
}

Test(conformance_variable, VAR_021_a_row_is_subtracted_from)
{
	expect_row_combined(WEIR_SCATTER_SUB, 2, -1);
}

Test(conformance_variable, VAR_022_a_row_is_multiplied)
{
	expect_row_combined(WEIR_SCATTER_MUL, 5, 15);
}

Test(conformance_variable, VAR_023_a_row_is_divided)
{
	expect_row_combined(WEIR_SCATTER_DIV, 6, 2);
}

Test(conformance_variable, VAR_025_a_row_becomes_the_larger_or_smaller)
{
	expect_row_combined(WEIR_SCATTER_MAX, 6, 6);
	expect_row_combined(WEIR_SCATTER_MAX, 2, 3);
	expect_row_combined(WEIR_SCATTER_MIN, 6, 3);
}

Test(conformance_variable, VAR_028_rows_of_truth_values_are_set)
{
	weir_var *var = variable_of(WEIR_BOOL, vector(3));
	weir_tensor *indices = indices_of((int64_t[]){0, 2}, 2);
	weir_tensor *updates = tensor_of(WEIR_BOOL, vector(2), (uint8_t[]){1, 0});
	weir_read read;

	cr_assert_eq(assign_and_release(var, tensor_of(WEIR_BOOL, vector(3), (uint8_t[]){0, 1, 1}), NULL), WEIR_OK);
	cr_assert_eq(weir_var_scatter(var, WEIR_SCATTER_UPDATE, indices, updates, WEIR_NO_DEADLINE, &read, NULL), WEIR_OK);
	cr_expect_eq(memcmp(weir_tensor_data(read.tensor), (uint8_t[]){1, 1, 0}, 3), 0);
	weir_read_release(&read);
	weir_tensor_release(indices);
	weir_tensor_release(updates);
	end(var);
}

Test(conformance_variable, VAR_045_rows_are_gathered)
{
	weir_var *var = variable_of(WEIR_I64, vector(4));
	weir_tensor *indices = indices_of((int64_t[]){3, 0, 3}, 3), *rows = NULL;

	cr_assert_eq(assign_and_release(var, tensor_of(WEIR_I64, vector(4), (int64_t[]){10, 20, 30, 40}), NULL), WEIR_OK);
	cr_assert_eq(weir_var_gather(var, indices, &variables_memory, &rows, NULL), WEIR_OK);
	expect_elements(rows, (int64_t[]){40, 10, 40}, 3);
	weir_tensor_release(rows);
	weir_tensor_release(indices);
	end(var);
}

Test(conformance_variable, VAR_062_rows_are_set_and_a_bad_index_changes_nothing)
{
	weir_var *var = variable_of(WEIR_I64, vector(3));
	weir_tensor *good = indices_of((int64_t[]){2, 0}, 2), *bad = indices_of((int64_t[]){1, 3}, 2);
	weir_tensor *updates = tensor_of(WEIR_I64, vector(2), (int64_t[]){7, 8});

	cr_assert_eq(assign_and_release(var, tensor_of(WEIR_I64, vector(3), (int64_t[]){1, 2, 3}), NULL), WEIR_OK);
	cr_expect_eq(weir_var_scatter(var, WEIR_SCATTER_UPDATE, bad, updates, WEIR_NO_DEADLINE, NULL, NULL),
	             WEIR_INVALID_ARGUMENT);
	expect_value(var, (int64_t[]){1, 2, 3}, 3);
	cr_expect_eq(weir_var_scatter(var, WEIR_SCATTER_UPDATE, good, updates, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	expect_value(var, (int64_t[]){8, 2, 7}, 3);
	weir_tensor_release(good);
	weir_tensor_release(bad);
	weir_tensor_release(updates);
	end(var);
}

/* -- shared by name ---------------------------------------------------------------------------- */

static void destroy_var(void *object)
{
	cr_assert_eq(weir_var_destroy(object, NULL), WEIR_OK);
}

static const struct weir_resource_type shared_variables = {"variable", destroy_var};

static weir_store *store_with(const char *const containers[], const char *const names[], size_t count)
{
	struct weir_store_options options = {WEIR_STORE_OPTIONS_INIT, .allocator = &variables_memory};
	weir_store *store = NULL;

	cr_assert_eq(weir_store_create(&options, &store, NULL), WEIR_OK);
	for (size_t i = 0; i < count; i++)
		cr_assert_eq(
			weir_store_add(store, containers[i], names[i], &shared_variables, variable((int64_t)i + 1), NULL, NULL),
			WEIR_OK);
	return store;
}

static void expect_shared(weir_store *store, const char *container, const char *name, int64_t value)
{
	weir_resource *resource = NULL;

	cr_assert_eq(weir_store_find(store, container, name, &shared_variables, &resource, NULL), WEIR_OK);
	cr_expect_eq(value_in(weir_resource_object(resource)), value);
	weir_resource_release(resource);
}

Test(conformance_variable, VAR_049_a_variable_that_was_removed_is_not_found)
{
	weir_store *store = store_with((const char *const[]){NULL}, (const char *const[]){"v"}, 1);
	weir_resource *resource = NULL;

	expect_shared(store, NULL, "v", 1);
	cr_expect_eq(weir_store_remove(store, NULL, "v", NULL), WEIR_OK);
	cr_expect_eq(weir_store_find(store, NULL, "v", &shared_variables, &resource, NULL), WEIR_NOT_FOUND);
	cr_expect_eq(weir_store_remove(store, NULL, "v", NULL), WEIR_NOT_FOUND);
	cr_expect_eq(weir_var_destroy(NULL, NULL), WEIR_OK);
	weir_store_destroy(store, NULL);
	expect_nothing_left();
}

Test(conformance_variable, VAR_054_who_knows_the_name_gets_the_same_variable)
{
	weir_store *store = store_with((const char *const[]){NULL, NULL}, (const char *const[]){"var4", "foo/var4"}, 2);
	weir_resource *resource = NULL;

	expect_shared(store, NULL, "var4", 1);
	expect_shared(store, NULL, "foo/var4", 2);
	cr_expect_eq(weir_store_find(store, NULL, "var5", &shared_variables, &resource, NULL), WEIR_NOT_FOUND);
	weir_store_destroy(store, NULL);
	expect_nothing_left();
}

Test(conformance_variable, VAR_060_containers_keep_equal_names_apart)
{
	weir_store *store = store_with((const char *const[]){NULL, "one", "two"}, (const char *const[]){"v", "v", "v"}, 3);

	expect_shared(store, NULL, "v", 1);
	expect_shared(store, "one", "v", 2);
	expect_shared(store, "two", "v", 3);
	weir_store_destroy(store, NULL);
	expect_nothing_left();
}
