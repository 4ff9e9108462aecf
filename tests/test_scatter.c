/*
 * test_scatter.c - rows of variables that are changed and gathered by index: each way and dtype,
 * order, refusals, at one instant.
 */
#include <criterion/criterion.h>

#include <math.h>
#include <pthread.h>
#include <weir/scatter.h>

#include "late_failure.h"
#include "rows_kit.h"
#include "tensor/row.h"
#include "var/combine.h"

/* Each update runs by itself, as for small values, and together with others, as for large ones. */
#define TEST_BOTH_WAYS(name) \
	static void name(void); \
	Test(scatter, name) \
	{ \
		weiri_combine_from = SIZE_MAX; \
		name(); \
	} \
	Test(scatter, name##_together) \
	{ \
		weiri_combine_from = 1; \
		name(); \
	} \
	static void name(void)

static const enum weir_dtype numbers[] = {WEIR_U8,  WEIR_I8,  WEIR_I16, WEIR_I32, WEIR_I64,
                                          WEIR_U16, WEIR_U32, WEIR_U64, WEIR_F32, WEIR_F64};
enum { NUMBERS = sizeof(numbers) / sizeof(numbers[0]) };

static weir_var *table_var(enum weir_dtype dtype, weir_shape shape, const void *data)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = dtype, .name = "t",
	                                   .allocator = &variables_memory};
	weir_tensor *initial = data != NULL ? tensor_of(dtype, shape, data) : NULL;
	weir_var *var = NULL;

	cr_assert_eq(weir_var_create(initial, &options, &var, NULL), WEIR_OK);
	weir_tensor_release(initial);
	return var;
}

/* -- one row ----------------------------------------------------------------------------------- */

/* The values of the test are small; only unsigned results below 0 wrap. */
static double wrapped(enum weir_dtype dtype, double value)
{
	bool is_unsigned = dtype == WEIR_U8 || dtype == WEIR_U16 || dtype == WEIR_U32 || dtype == WEIR_U64;

	return is_unsigned && value < 0 ? value + ldexp(1.0, 8 * (int)weir_dtype_size(dtype)) : value;
}

/*
 * Every way, dtype and length around that of a block. The values are 1 to 6, so that all results
 * are exact.
 */
Test(scatter, rows_combine_as_their_elements_do)
{
	enum { LONGEST = 140 };
	double x[LONGEST], y[LONGEST];

	for (size_t d = 0; d < NUMBERS; d++) {
		for (enum weir_scatter how = WEIR_SCATTER_UPDATE; how <= WEIR_SCATTER_MAX; how++) {
			for (size_t n = 0; n < LONGEST; n++) {
				for (size_t i = 0; i <= n; i++) {
					set_element(numbers[d], x, i, (double)(i * 7 % 6 + 1));
					set_element(numbers[d], y, i, (double)((i + n) * 5 % 3 + 1));
				}
				weiri_row_combine((enum weiri_combine)how, numbers[d], x, y, n);
				for (size_t i = 0; i <= n; i++) {
					double was = (double)(i * 7 % 6 + 1), with = (double)((i + n) * 5 % 3 + 1);
					double wanted = i < n ? combined(how, was, with) : was, is = element(numbers[d], x, i);

					if (numbers[d] == WEIR_F32)
						wanted = (double)(float)wanted;
					else if (numbers[d] != WEIR_F64)
						wanted = wrapped(numbers[d], trunc(wanted));
					cr_assert_float_eq(is, wanted, 0, "%s, way %d, element %zu of %zu: %g, expected %g",
					                   weir_dtype_name(numbers[d]), (int)how, i, n, is, wanted);
				}
			}
		}
	}
}

Test(scatter, integers_wrap_around)
{
	int64_t x64[4] = {INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN}, one = 1, two = 2, minus = -1;
	int32_t x32 = INT32_MIN, minus32 = -1;
	int8_t x8 = 127, one8 = 1;

	weiri_row_combine(WEIRI_COMBINE_ADD, WEIR_I64, &x64[0], &one, 1);
	weiri_row_combine(WEIRI_COMBINE_SUBTRACT, WEIR_I64, &x64[1], &one, 1);
	weiri_row_combine(WEIRI_COMBINE_MULTIPLY, WEIR_I64, &x64[2], &two, 1);
	weiri_row_combine(WEIRI_COMBINE_DIVIDE, WEIR_I64, &x64[3], &minus, 1);
	cr_expect(x64[0] == INT64_MIN && x64[1] == INT64_MAX && x64[2] == -2 && x64[3] == INT64_MIN);
	weiri_row_combine(WEIRI_COMBINE_DIVIDE, WEIR_I32, &x32, &minus32, 1);
	cr_expect_eq(x32, INT32_MIN);
	weiri_row_combine(WEIRI_COMBINE_ADD, WEIR_I8, &x8, &one8, 1);
	cr_expect_eq(x8, -128);
}

Test(scatter, unsigned_integers_have_no_sign)
{
	uint64_t x64[4] = {UINT64_MAX, UINT64_MAX, 0, UINT64_MAX}, one = 1, two = 2;
	uint32_t x32 = UINT32_MAX, most = UINT32_MAX;
	uint16_t x16 = 3, four = 4;

	weiri_row_combine(WEIRI_COMBINE_DIVIDE, WEIR_U64, &x64[0], &two, 1);
	weiri_row_combine(WEIRI_COMBINE_MINIMUM, WEIR_U64, &x64[1], &one, 1);
	weiri_row_combine(WEIRI_COMBINE_SUBTRACT, WEIR_U64, &x64[2], &one, 1);
	weiri_row_combine(WEIRI_COMBINE_MAXIMUM, WEIR_U64, &x64[3], &one, 1);
	cr_expect(x64[0] == UINT64_MAX / 2 && x64[1] == 1 && x64[2] == UINT64_MAX && x64[3] == UINT64_MAX);
	weiri_row_combine(WEIRI_COMBINE_MULTIPLY, WEIR_U32, &x32, &most, 1);
	cr_expect_eq(x32, 1);
	weiri_row_combine(WEIRI_COMBINE_SUBTRACT, WEIR_U16, &x16, &four, 1);
	cr_expect_eq(x16, UINT16_MAX);
}

Test(scatter, what_is_there_stays_where_one_is_no_number)
{
	float x[2] = {NAN, 3}, y[2] = {1, NAN};

	weiri_row_combine(WEIRI_COMBINE_MINIMUM, WEIR_F32, x, y, 2);
	weiri_row_combine(WEIRI_COMBINE_MAXIMUM, WEIR_F32, x, y, 2);
	cr_expect(isnan(x[0]) && x[1] == 3);
}

/* -- variables --------------------------------------------------------------------------------- */

static void expect_rows(weir_var *var, const double *wanted, size_t n)
{
	weir_read read;

	cr_assert_eq(weir_var_read(var, &read), WEIR_OK);
	for (size_t i = 0; i < n; i++)
		cr_expect_eq(((const double *)weir_tensor_data(read.tensor))[i], wanted[i], "element %zu", i);
	weir_read_release(&read);
}

static bool is_wanted_four_times(void *context)
{
	return ++*(int *)context <= 4;
}

/*
 * One scatter has many more indices than rows, and takes longer than the copy for which the others
 * wait.
 */
Test(scatter, one_that_is_not_wanted_any_more_ends_soon)
{
	enum { MANY = 1 << 16 };
	static int32_t indices[MANY], once[2];
	weir_tensor *before = tensor_of(WEIR_I32, (weir_shape){1, {2}}, once);
	weir_tensor *after = tensor_of(WEIR_I32, (weir_shape){1, {2}}, once);
	weir_tensor *rows = tensor_of(WEIR_I32, (weir_shape){1, {MANY}}, indices);
	struct weiri_change change = {.how = WEIRI_COMBINE_ADD, .is_of_rows = true, .operand = rows, .indices = rows};
	const struct weiri_change *changes[1] = {&change};
	int asked = 0;

	cr_assert_eq(weiri_change_fit(&change, "x", before, &variables_memory, NULL), WEIR_OK);
	cr_expect_eq(weiri_changes_make(changes, 1, before, after, is_wanted_four_times, &asked), false);
	cr_expect_eq(asked, 5);
	weiri_change_fini(&change, &variables_memory);
	weir_tensor_release(before);
	weir_tensor_release(after);
	weir_tensor_release(rows);
}

TEST_BOTH_WAYS(rows_are_changed_in_the_order_of_the_indices)
{
	weir_var *var = table_var(WEIR_F64, (weir_shape){2, {3, 2}}, (double[]){1, 2, 3, 4, 5, 6});
	weir_tensor *indices = indices_of((int64_t[]){2, 0, 2}, 3);
	weir_tensor *updates = tensor_of(WEIR_F64, (weir_shape){2, {3, 2}}, (double[]){10, 20, 30, 40, 50, 60});
	weir_read published;

	cr_assert_eq(weir_var_scatter(var, WEIR_SCATTER_UPDATE, indices, updates, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	expect_rows(var, (double[]){30, 40, 3, 4, 50, 60}, 6);
	cr_assert_eq(weir_var_scatter(var, WEIR_SCATTER_SUB, indices, updates, WEIR_NO_DEADLINE, &published, NULL),
	             WEIR_OK);
	expect_rows(var, (double[]){0, 0, 3, 4, -10, -20}, 6);
	cr_expect_eq(published.version, 3);
	cr_expect_eq(((const double *)weir_tensor_data(published.tensor))[5], -20);
	weir_read_release(&published);
	weir_tensor_release(indices);
	weir_tensor_release(updates);
	weir_var_destroy(var, NULL);
	expect_nothing_left();
}

TEST_BOTH_WAYS(a_scalar_stands_for_each_element)
{
	weir_var *var = table_var(WEIR_F64, (weir_shape){2, {3, 2}}, (double[]){1, 2, 3, 4, 5, 6});
	weir_tensor *indices = tensor_of(WEIR_I32, (weir_shape){2, {2, 1}}, (int32_t[]){1, 2});
	weir_tensor *ten = tensor_of(WEIR_F64, (weir_shape){.rank = 0}, (double[]){10});

	cr_assert_eq(weir_var_scatter(var, WEIR_SCATTER_MUL, indices, ten, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	expect_rows(var, (double[]){1, 2, 30, 40, 50, 60}, 6);
	weir_tensor_release(indices);
	weir_tensor_release(ten);
	weir_var_destroy(var, NULL);
	expect_nothing_left();
}

TEST_BOTH_WAYS(rows_of_one_element_and_a_scalar_for_many_of_them)
{
	weir_var *var = table_var(WEIR_F64, (weir_shape){1, {4}}, (double[]){1, 2, 3, 4});
	weir_tensor *indices = indices_of((int64_t[]){3, 1, 3}, 3), *one = indices_of((int64_t[]){0}, 1);
	weir_tensor *three = tensor_of(WEIR_F64, (weir_shape){1, {3}}, (double[]){10, 20, 30});
	weir_tensor *ten = tensor_of(WEIR_F64, (weir_shape){.rank = 0}, (double[]){10});

	cr_assert_eq(weir_var_scatter(var, WEIR_SCATTER_ADD, indices, three, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	expect_rows(var, (double[]){1, 22, 3, 44}, 4);
	cr_assert_eq(weir_var_scatter(var, WEIR_SCATTER_ADD, indices, ten, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	expect_rows(var, (double[]){1, 32, 3, 64}, 4);
	cr_assert_eq(weir_var_scatter(var, WEIR_SCATTER_MAX, one, ten, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	expect_rows(var, (double[]){10, 32, 3, 64}, 4);
	weir_tensor_release(indices);
	weir_tensor_release(one);
	weir_tensor_release(three);
	weir_tensor_release(ten);
	weir_var_destroy(var, NULL);
	expect_nothing_left();
}

TEST_BOTH_WAYS(no_index_changes_nothing_but_the_version)
{
	weir_var *var = table_var(WEIR_BOOL, (weir_shape){2, {2, 0}}, NULL),
			 *flags = table_var(WEIR_BOOL, (weir_shape){1, {2}}, "\0\1");
	weir_tensor *none = indices_of(NULL, 0), *one = indices_of((int64_t[]){1}, 1);
	weir_tensor *nothing = tensor_of(WEIR_BOOL, (weir_shape){1, {0}}, NULL),
				*no = tensor_of(WEIR_BOOL, (weir_shape){.rank = 0}, "\0");
	weir_tensor *out = NULL;

	cr_assert_eq(weir_var_scatter(flags, WEIR_SCATTER_UPDATE, none, nothing, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	cr_expect_eq(weir_var_version(flags), 2);
	cr_assert_eq(weir_var_scatter(flags, WEIR_SCATTER_UPDATE, one, no, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_var_gather(flags, one, &variables_memory, &out, NULL), WEIR_OK);
	cr_expect_eq(*(const char *)weir_tensor_data(out), 0);
	weir_tensor_release(out);
	cr_expect_eq(weir_var_scatter(var, WEIR_SCATTER_UPDATE, none, nothing, WEIR_NO_DEADLINE, NULL, NULL),
	             WEIR_FAILED_PRECONDITION);
	cr_expect_eq(weir_var_gather(var, none, NULL, &out, NULL), WEIR_FAILED_PRECONDITION);
	weir_tensor_release(none);
	weir_tensor_release(one);
	weir_tensor_release(nothing);
	weir_tensor_release(no);
	weir_var_destroy(var, NULL);
	weir_var_destroy(flags, NULL);
	expect_nothing_left();
}

/*
 * The size of a row overflows as a number of elements, or as a number of bytes, or exceeds only the
 * memory.
 */
TEST_BOTH_WAYS(where_there_are_no_rows_a_row_may_be_too_large_to_count)
{
	const weir_shape shapes[] = {{3, {0, INT64_C(1) << 62, 8}}, {2, {0, INT64_C(1) << 62}}, {2, {0, INT64_C(1) << 50}}};

	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		weir_var *var = table_var(WEIR_I64, (weir_shape){1, {1}}, (int64_t[]){0});
		weir_tensor *none = indices_of(NULL, 0), *value = tensor_of(WEIR_I64, shapes[i], NULL), *out = NULL,
					*one = tensor_of(WEIR_I64, (weir_shape){.rank = 0}, (int64_t[]){1});

		cr_assert_eq(weir_var_assign(var, value, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
		cr_expect_eq(weir_var_scatter(var, WEIR_SCATTER_ADD, none, one, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
		cr_expect_eq(weir_var_scatter(var, WEIR_SCATTER_ADD, none, value, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
		cr_expect_eq(weir_var_version(var), 4);
		cr_assert_eq(weir_var_gather(var, none, &variables_memory, &out, NULL), WEIR_OK);
		cr_expect(weir_shape_equal(weir_tensor_shape(out), &shapes[i]));
		weir_tensor_release(none);
		weir_tensor_release(one);
		weir_tensor_release(value);
		weir_tensor_release(out);
		weir_var_destroy(var, NULL);
	}
	expect_nothing_left();
}

Test(scatter, gather_gives_rows_in_the_shape_of_the_indices)
{
	weir_var *var = table_var(WEIR_I16, (weir_shape){2, {3, 2}}, (int16_t[]){1, 2, 3, 4, 5, 6});
	weir_tensor *indices = tensor_of(WEIR_I32, (weir_shape){2, {2, 2}}, (int32_t[]){2, 0, 0, 1}), *out = NULL;
	char shape[WEIR_SHAPE_TEXT_SIZE];

	cr_assert_eq(weir_var_gather(var, indices, &variables_memory, &out, NULL), WEIR_OK);
	cr_expect_str_eq(weir_shape_text(weir_tensor_shape(out), shape, sizeof(shape)), "[2,2,2]");
	cr_expect_arr_eq(weir_tensor_data(out), ((int16_t[]){5, 6, 1, 2, 1, 2, 3, 4}), 8 * sizeof(int16_t));
	weir_tensor_release(out);
	weir_tensor_release(indices);
	weir_var_destroy(var, NULL);
	expect_nothing_left();
}

/* -- refusals ---------------------------------------------------------------------------------- */

static void expect_refused(weir_var *var, enum weir_scatter how, weir_tensor *indices, weir_tensor *updates,
                           enum weir_status status, const char *message)
{
	weir_error error = {WEIR_OK, ""};

	cr_expect_eq(weir_var_scatter(var, how, indices, updates, WEIR_NO_DEADLINE, NULL, &error), status, "%s",
	             error.message);
	cr_expect_str_eq(error.message, message);
	cr_expect_eq(weir_var_version(var), 1);
	weir_tensor_release(indices);
	weir_tensor_release(updates);
}

TEST_BOTH_WAYS(what_does_not_fit_changes_nothing_and_is_named)
{
	weir_var *var = table_var(WEIR_I32, (weir_shape){2, {3, 2}}, (int32_t[]){1, 2, 3, 4, 5, 6});
	weir_var *scalar = table_var(WEIR_I32, (weir_shape){.rank = 0}, (int32_t[]){1});
	weir_var *half = table_var(WEIR_F16, (weir_shape){1, {2}}, "abcd");
	weir_shape two = {2, {2, 2}}, none = {.rank = 0};
	int32_t four[4] = {1, 1, 0, 1};
	weir_bytes word = {"x", 1};
	weir_var *words = table_var(WEIR_BYTES, (weir_shape){1, {1}}, &word);

	expect_refused(var, WEIR_SCATTER_ADD, indices_of((int64_t[]){0, 3}, 2), tensor_of(WEIR_I32, two, four),
	               WEIR_INVALID_ARGUMENT, "variable \"t\": index 1 is 3, expected one of [0, 3)");
	expect_refused(var, WEIR_SCATTER_ADD, indices_of((int64_t[]){-1, 0}, 2), tensor_of(WEIR_I32, two, four),
	               WEIR_INVALID_ARGUMENT, "variable \"t\": index 0 is -1, expected one of [0, 3)");
	expect_refused(var, WEIR_SCATTER_ADD, NULL, tensor_of(WEIR_I32, two, four), WEIR_INVALID_ARGUMENT,
	               "variable \"t\": indices are NULL");
	expect_refused(var, WEIR_SCATTER_ADD, tensor_of(WEIR_F64, none, (double[]){0}), tensor_of(WEIR_I32, two, four),
	               WEIR_INVALID_ARGUMENT, "variable \"t\": indices are f64, expected i32 or i64");
	expect_refused(var, WEIR_SCATTER_ADD, indices_of((int64_t[]){0}, 1), tensor_of(WEIR_I32, two, four),
	               WEIR_INVALID_ARGUMENT, "variable \"t\": updates have shape [2,2], expected [1,2] or a scalar");
	expect_refused(var, WEIR_SCATTER_ADD, indices_of((int64_t[]){0}, 1), NULL, WEIR_INVALID_ARGUMENT,
	               "variable \"t\": updates are NULL, expected i32");
	expect_refused(var, WEIR_SCATTER_ADD, indices_of((int64_t[]){0}, 1), tensor_of(WEIR_I64, none, (int64_t[]){0}),
	               WEIR_INVALID_ARGUMENT, "variable \"t\": updates are i64, expected i32");
	expect_refused(var, WEIR_SCATTER_DIV, indices_of((int64_t[]){0, 1}, 2), tensor_of(WEIR_I32, two, four),
	               WEIR_INVALID_ARGUMENT, "variable \"t\": updates divide an integer by 0");
	expect_refused(var, (enum weir_scatter)8, indices_of((int64_t[]){0, 1}, 2), tensor_of(WEIR_I32, two, four),
	               WEIR_INVALID_ARGUMENT, "variable \"t\": no scatter number 8 of i32");
	expect_refused(scalar, WEIR_SCATTER_ADD, indices_of((int64_t[]){0}, 1), tensor_of(WEIR_I32, none, four),
	               WEIR_INVALID_ARGUMENT, "variable \"t\" is a scalar, which has no rows");
	expect_refused(half, WEIR_SCATTER_ADD, indices_of((int64_t[]){0}, 1), tensor_of(WEIR_F16, none, "ab"),
	               WEIR_UNIMPLEMENTED, "variable \"t\": no scatter number 2 of f16");
	expect_refused(words, WEIR_SCATTER_UPDATE, indices_of((int64_t[]){0}, 1), tensor_of(WEIR_BYTES, none, &word),
	               WEIR_UNIMPLEMENTED, "variable \"t\" is of bytes, whose rows cannot be scattered or gathered");
	weir_var_destroy(var, NULL);
	weir_var_destroy(scalar, NULL);
	weir_var_destroy(half, NULL);
	weir_var_destroy(words, NULL);
	expect_nothing_left();
}

TEST_BOTH_WAYS(a_rank_that_is_too_large_is_refused)
{
	weir_var *var = table_var(WEIR_U8, (weir_shape){5, {1, 1, 1, 1, 1}}, "a");
	weir_tensor *indices = tensor_of(WEIR_I32, (weir_shape){5, {1, 1, 1, 1, 1}}, (int32_t[]){0}), *out = NULL;

	cr_expect_eq(weir_var_gather(var, indices, NULL, &out, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_var_scatter(var, WEIR_SCATTER_ADD, indices, indices, 0, NULL, NULL), WEIR_INVALID_ARGUMENT);
	weir_tensor_release(indices);
	weir_var_destroy(var, NULL);
	expect_nothing_left();
}

/* -- many at once ------------------------------------------------------------------------------ */

enum { THREADS = 4, TIMES = 300, ROWS = 8 };

static void *add_ones(void *var)
{
	weir_tensor *indices = indices_of((int64_t[]){1, 6, 1}, 3),
				*one = tensor_of(WEIR_I64, (weir_shape){.rank = 0}, (int64_t[]){1});

	for (int i = 0; i < TIMES; i++)
		cr_assert_eq(weir_var_scatter(var, WEIR_SCATTER_ADD, indices, one, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	weir_tensor_release(indices);
	weir_tensor_release(one);
	return NULL;
}

TEST_BOTH_WAYS(no_addition_is_lost_or_seen_in_part)
{
	weir_var *var = table_var(WEIR_I64, (weir_shape){1, {ROWS}}, (int64_t[ROWS]){0});
	int together = weiri_combine_from == 1;
	pthread_t threads[THREADS];
	weir_read read;
	int64_t sum;

	for (size_t i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, add_ones, var), 0);
	do {
		const int64_t *rows;

		cr_assert_eq(weir_var_read(var, &read), WEIR_OK);
		rows = weir_tensor_data(read.tensor);
		sum = rows[6];
		cr_assert_eq(rows[1], 2 * sum);
		cr_assert(together ? read.version <= (uint64_t)sum + 1 : read.version == (uint64_t)sum + 1);
		weir_read_release(&read);
	} while (sum < THREADS * TIMES);
	for (size_t i = 0; i < THREADS; i++)
		(void)pthread_join(threads[i], NULL);
	cr_assert_eq(weir_var_read(var, &read), WEIR_OK);
	cr_expect_eq(((const int64_t *)weir_tensor_data(read.tensor))[6], THREADS * TIMES);
	weir_read_release(&read);
	weir_var_destroy(var, NULL);
	expect_nothing_left();
}

/* -- allocations that fail --------------------------------------------------------------------- */

static enum weir_status double_rows(const weir_allocator *failing, void *context)
{
	const weir_shape shape = {2, {2, 2}};
	struct late_failure late = {0};
	weir_allocator allocator = late_failure_hooks(&late);
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I64, .allocator = &allocator};
	weir_tensor *indices = indices_of((int64_t[]){1}, 1), *two, *first;
	weir_var *var;
	enum weir_status status;

	(void)context;
	cr_assert_eq(weir_tensor_copy_of(WEIR_I64, &shape, (int64_t[]){1, 2, 3, 4}, &allocator, &first), WEIR_OK);
	cr_assert_eq(weir_tensor_copy_of(WEIR_I64, &(weir_shape){.rank = 0}, (int64_t[]){2}, &allocator, &two), WEIR_OK);
	cr_assert_eq(weir_var_create(first, &options, &var, NULL), WEIR_OK);
	late.under_test = failing;
	status = weir_var_scatter(var, WEIR_SCATTER_MUL, indices, two, WEIR_NO_DEADLINE, NULL, NULL);
	late.under_test = NULL;
	cr_expect_eq(weir_var_version(var), status == WEIR_OK ? 2 : 1, "the status says whether it was applied");
	weir_tensor_release(indices);
	weir_tensor_release(two);
	weir_tensor_release(first);
	weir_var_destroy(var, NULL);
	cr_assert_eq(weir_reclaim_flush(weir_deadline_in(variables_patience_ns)), WEIR_OK);
	late_failure_end(&late);
	return status;
}

TEST_BOTH_WAYS(every_allocation_may_fail)
{
	size_t made = fail_each_allocation(double_rows, NULL);

	cr_expect_eq(made, weiri_combine_from == 1 ? 8 : 3,
	             "a row, a value, a version; together also a request, a round, spares, a result and its commit");
	expect_nothing_left();
}
