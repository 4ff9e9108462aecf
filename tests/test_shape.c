/*
 * test_shape.c - element types and shapes.
 */
#include <criterion/criterion.h>

#include <stdint.h>
#include <string.h>
#include <weir/tensor.h>

#define SHAPE(...) (&(weir_shape){sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), {__VA_ARGS__}})

static const weir_shape scalar_shape = {.rank = 0};
static const weir_shape rank_nine = {.rank = WEIR_MAX_RANK + 1};

static int64_t elements_of(const weir_shape *shape)
{
	int64_t elements = -1;

	cr_assert_eq(weir_shape_element_count(shape, &elements), WEIR_OK);
	return elements;
}

static void expect_no_elements_for(const weir_shape *shape)
{
	int64_t elements = 77;

	cr_expect_eq(weir_shape_element_count(shape, &elements), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(elements, 77, "the out parameter was written");
}

Test(dtype, sizes_are_those_of_the_c_types)
{
	cr_expect_eq(weir_dtype_size(WEIR_BOOL), 1);
	cr_expect_eq(weir_dtype_size(WEIR_U8), sizeof(uint8_t));
	cr_expect_eq(weir_dtype_size(WEIR_I8), sizeof(int8_t));
	cr_expect_eq(weir_dtype_size(WEIR_I16), sizeof(int16_t));
	cr_expect_eq(weir_dtype_size(WEIR_I32), sizeof(int32_t));
	cr_expect_eq(weir_dtype_size(WEIR_I64), sizeof(int64_t));
	cr_expect_eq(weir_dtype_size(WEIR_F16), 2);
	cr_expect_eq(weir_dtype_size(WEIR_F32), sizeof(float));
	cr_expect_eq(weir_dtype_size(WEIR_F64), sizeof(double));
	cr_expect_eq(weir_dtype_size(WEIR_BYTES), sizeof(weir_bytes));
	cr_expect_eq(weir_dtype_size(WEIR_U16), sizeof(uint16_t));
	cr_expect_eq(weir_dtype_size(WEIR_U32), sizeof(uint32_t));
	cr_expect_eq(weir_dtype_size(WEIR_U64), sizeof(uint64_t));
	cr_expect_eq(weir_dtype_size(WEIR_BF16), 2);
}

Test(dtype, every_dtype_has_a_name_of_its_own)
{
	for (int a = WEIR_BOOL; a <= WEIR_BF16; a++) {
		cr_expect_str_neq(weir_dtype_name((enum weir_dtype)a), "unknown");
		for (int b = a + 1; b <= WEIR_BF16; b++)
			cr_expect_str_neq(weir_dtype_name((enum weir_dtype)a), weir_dtype_name((enum weir_dtype)b));
	}
	cr_expect_str_eq(weir_dtype_name(WEIR_F32), "f32");
	cr_expect_str_eq(weir_dtype_name(WEIR_BYTES), "bytes");
}

Test(dtype, a_number_that_is_none_has_no_size_and_no_name)
{
	/*
	 * These numbers are within the range of the enum's bits, as that of an uninitialized field may
	 * be.
	 */
	static const int numbers[] = {0, WEIR_BF16 + 1};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		cr_expect_eq(weir_dtype_size((enum weir_dtype)numbers[i]), 0, "%d", numbers[i]);
		cr_expect_str_eq(weir_dtype_name((enum weir_dtype)numbers[i]), "unknown", "%d", numbers[i]);
	}
	cr_expect_eq(weir_dtype_size((enum weir_dtype)INT32_MAX), 0);
	cr_expect_eq(weir_dtype_size((enum weir_dtype)INT32_MIN), 0);
	cr_expect_eq(weir_dtype_size((enum weir_dtype) - 1), 0);
}

Test(shape, elements_are_the_product_of_the_dims)
{
	cr_expect_eq(elements_of(&scalar_shape), 1);
	cr_expect_eq(elements_of(SHAPE(7)), 7);
	cr_expect_eq(elements_of(SHAPE(2, 3, 4)), 24);
	cr_expect_eq(elements_of(SHAPE(2, 2, 2, 2, 2, 2, 2, 2)), 256);
	cr_expect_eq(elements_of(SHAPE(INT64_MAX)), INT64_MAX);
}

Test(shape, a_dim_of_zero_means_no_elements_wherever_it_stands)
{
	cr_expect_eq(elements_of(SHAPE(0)), 0);
	cr_expect_eq(elements_of(SHAPE(0, INT64_MAX, INT64_MAX)), 0);
	cr_expect_eq(elements_of(SHAPE(INT64_MAX, INT64_MAX, 0)), 0);
}

Test(shape, bad_shapes_have_no_elements)
{
	expect_no_elements_for(NULL);
	expect_no_elements_for(&rank_nine);
	expect_no_elements_for(SHAPE(-1));
	expect_no_elements_for(SHAPE(0, -1));
	expect_no_elements_for(SHAPE(INT64_MAX, 2));
	expect_no_elements_for(SHAPE(INT64_C(1) << 32, INT64_C(1) << 31));
	cr_expect_eq(weir_shape_element_count(SHAPE(1), NULL), WEIR_INVALID_ARGUMENT);
}

Test(shape, equality_reads_only_the_dims_that_there_are)
{
	weir_shape a = {2, {3, 4, 5}};
	weir_shape b = {2, {3, 4, 6}};

	cr_expect(weir_shape_equal(&a, &b));
	cr_expect(weir_shape_equal(&scalar_shape, &scalar_shape));
	cr_expect_not(weir_shape_equal(&a, SHAPE(3)));
	cr_expect_not(weir_shape_equal(&a, SHAPE(3, 5)));
	cr_expect_not(weir_shape_equal(&a, NULL));
	cr_expect_not(weir_shape_equal(NULL, NULL));
	cr_expect_not(weir_shape_equal(&rank_nine, &rank_nine));
}

Test(shape, an_unknown_dim_fits_anything_known)
{
	cr_expect(weir_shape_fits(SHAPE(-1, 3), SHAPE(7, 3)));
	cr_expect(weir_shape_fits(SHAPE(-1, 3), SHAPE(0, 3)));
	cr_expect(weir_shape_fits(SHAPE(7, 3), SHAPE(7, 3)));
	cr_expect(weir_shape_fits(&scalar_shape, &scalar_shape));
	cr_expect_not(weir_shape_fits(SHAPE(-1, 3), SHAPE(7, 4)));
	cr_expect_not(weir_shape_fits(SHAPE(-1, 3), SHAPE(7)));
	cr_expect_not(weir_shape_fits(SHAPE(-1), SHAPE(-1)), "a value has known dims only");
	cr_expect_not(weir_shape_fits(SHAPE(-1), NULL));
	cr_expect_not(weir_shape_fits(NULL, SHAPE(1)));
	cr_expect_not(weir_shape_fits(&rank_nine, &rank_nine));
}

Test(shape, text_shows_unknown_dims_as_question_marks)
{
	char text[WEIR_SHAPE_TEXT_SIZE];

	cr_expect_str_eq(weir_shape_text(SHAPE(2, -1, 3), text, sizeof(text)), "[2,?,3]");
	cr_expect_str_eq(weir_shape_text(SHAPE(0), text, sizeof(text)), "[0]");
	cr_expect_str_eq(weir_shape_text(&scalar_shape, text, sizeof(text)), "[]");
	cr_expect_str_eq(weir_shape_text(NULL, text, sizeof(text)), "invalid");
	cr_expect_str_eq(weir_shape_text(&rank_nine, text, sizeof(text)), "invalid");
}

Test(shape, the_longest_text_fits_its_announced_size)
{
	weir_shape longest = {.rank = WEIR_MAX_RANK};
	char text[WEIR_SHAPE_TEXT_SIZE];

	for (int i = 0; i < WEIR_MAX_RANK; i++)
		longest.dims[i] = INT64_MAX;
	(void)weir_shape_text(&longest, text, sizeof(text));
	cr_expect_eq(strlen(text), 8 * 19 + 7 + 2);
	cr_expect_eq(text[strlen(text) - 1], ']');
}

Test(shape, text_is_cut_to_the_room_and_terminated)
{
	static const char whole[] = "[2,?,3]";
	char text[sizeof(whole) + 1];

	for (size_t size = 1; size <= sizeof(whole); size++) {
		memset(text, '#', sizeof(text));
		cr_expect_eq(weir_shape_text(SHAPE(2, -1, 3), text, size), text);
		cr_expect_eq(strlen(text), size - 1);
		cr_expect_eq(strncmp(text, whole, size - 1), 0);
		cr_expect_eq(text[size], '#', "%zu bytes were overrun", size);
	}
	text[0] = '#';
	cr_expect_eq(weir_shape_text(SHAPE(1), text, 0), text);
	cr_expect_eq(text[0], '#');
	cr_expect_null(weir_shape_text(SHAPE(1), NULL, 10));
}
