/*
 * test_tensor.c - building, copying, counting and stacking tensors.
 */
#include <criterion/criterion.h>

#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <weir/tensor.h>

#include "failing_allocator.h"
#include "tensor/object.h"

#define SHAPE(...) (&(weir_shape){sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), {__VA_ARGS__}})

static const weir_shape rank_nine = {.rank = WEIR_MAX_RANK + 1};

/* What an out parameter holds before a call that fails. */
static int64_t marker;
static void *const untouched = &marker;

static weir_tensor *copy_of(enum weir_dtype dtype, const weir_shape *shape, const void *data)
{
	weir_tensor *tensor = NULL;

	cr_assert_eq(weir_tensor_copy_of(dtype, shape, data, NULL, &tensor), WEIR_OK);
	return tensor;
}

static weir_tensor_builder *builder_of(enum weir_dtype dtype, const weir_shape *shape)
{
	weir_tensor_builder *builder = NULL;

	cr_assert_eq(weir_tensor_builder_create(dtype, shape, NULL, &builder, NULL), WEIR_OK);
	return builder;
}

static weir_tensor *finish(weir_tensor_builder *builder)
{
	weir_tensor *tensor = NULL;

	cr_assert_eq(weir_tensor_builder_finish(builder, &tensor), WEIR_OK);
	return tensor;
}

static void expect_string(const weir_tensor *tensor, int64_t index, const char *expected)
{
	const weir_bytes *strings = weir_tensor_data(tensor);

	cr_assert_eq(strings[index].size, strlen(expected), "element %d", (int)index);
	if (strings[index].size != 0)
		cr_expect_arr_eq(strings[index].data, expected, strlen(expected), "element %d", (int)index);
	else
		cr_expect_null(strings[index].data);
}

static void set_string(weir_tensor_builder *builder, int64_t index, const char *text)
{
	cr_assert_eq(weir_tensor_builder_set_bytes(builder, index, text, strlen(text)), WEIR_OK);
}

/* ---- builder ---- */

Test(tensor, a_new_builder_is_zero_and_aligned)
{
	for (int dtype = WEIR_BOOL; dtype < WEIR_BYTES; dtype++) {
		weir_tensor_builder *builder = builder_of((enum weir_dtype)dtype, SHAPE(5, 7));
		const unsigned char *data = weir_tensor_builder_data(builder);
		unsigned char any = 0;

		cr_assert_not_null(data);
		cr_expect_eq((uintptr_t)data % WEIR_TENSOR_ALIGNMENT, 0);
		for (size_t i = 0; i < 35 * weir_dtype_size((enum weir_dtype)dtype); i++)
			any |= data[i];
		cr_expect_eq(any, 0, "%s", weir_dtype_name((enum weir_dtype)dtype));
		weir_tensor_builder_discard(builder);
	}
}

/* Gives memory that is not clean. */
static void *allocate_used(void *context, size_t size, size_t alignment)
{
	void *memory = weir_default_allocator()->allocate(weir_default_allocator()->context, size, alignment);

	(void)context;
	if (memory != NULL)
		(void)memset(memory, 0xa5, size);
	return memory;
}

static void release_used(void *context, void *memory, size_t size, size_t alignment)
{
	(void)context;
	weir_default_allocator()->release(weir_default_allocator()->context, memory, size, alignment);
}

static const weir_allocator used_memory = {allocate_used, release_used, NULL};

Test(tensor, an_unfilled_builder_does_not_write_to_its_data)
{
	weir_tensor_builder *builder;
	const unsigned char *data;

	cr_assert_eq(weir_tensor_builder_create_unfilled(WEIR_F32, SHAPE(5, 7), &used_memory, &builder, NULL), WEIR_OK);
	data = weir_tensor_builder_data(builder);
	cr_expect_eq((uintptr_t)data % WEIR_TENSOR_ALIGNMENT, 0);
	for (size_t i = 0; i < 35 * sizeof(float); i++)
		cr_expect_eq(data[i], 0xa5, "byte %zu", i);
	weir_tensor_builder_discard(builder);
}

Test(tensor, an_unfilled_builder_of_strings_has_empty_strings)
{
	weir_tensor_builder *builder;
	weir_tensor *tensor;

	cr_assert_eq(weir_tensor_builder_create_unfilled(WEIR_BYTES, SHAPE(2), &used_memory, &builder, NULL), WEIR_OK);
	tensor = finish(builder);
	expect_string(tensor, 0, "");
	expect_string(tensor, 1, "");
	weir_tensor_release(tensor);
}

Test(tensor, finishing_keeps_what_was_written)
{
	weir_tensor_builder *builder = builder_of(WEIR_I32, SHAPE(2, 3));
	int32_t *data = weir_tensor_builder_data(builder);
	weir_tensor *tensor;

	for (int32_t i = 0; i < 6; i++)
		data[i] = i * i;
	tensor = finish(builder);
	cr_expect_eq(weir_tensor_dtype(tensor), WEIR_I32);
	cr_expect_eq(weir_tensor_element_count(tensor), 6);
	cr_expect_eq(weir_tensor_byte_count(tensor), 24);
	cr_expect(weir_shape_equal(weir_tensor_shape(tensor), SHAPE(2, 3)));
	cr_expect_eq((uintptr_t)weir_tensor_data(tensor) % WEIR_TENSOR_ALIGNMENT, 0);
	cr_expect_arr_eq(weir_tensor_data(tensor), ((int32_t[]){0, 1, 4, 9, 16, 25}), 24);
	weir_tensor_release(tensor);
}

Test(tensor, dims_past_the_rank_are_not_copied)
{
	weir_shape shape = {1, {2, 111, 222}};
	weir_tensor *tensor = copy_of(WEIR_U8, &shape, "ab");

	cr_expect_eq(weir_tensor_shape(tensor)->dims[1], 0);
	cr_expect_eq(weir_tensor_shape(tensor)->dims[2], 0);
	weir_tensor_release(tensor);
}

Test(tensor, finishing_with_a_null_leaves_the_builder)
{
	weir_tensor_builder *builder = builder_of(WEIR_F32, SHAPE(4));
	weir_tensor *tensor = untouched;

	cr_expect_eq(weir_tensor_builder_finish(builder, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_builder_finish(NULL, &tensor), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(tensor, untouched);
	weir_tensor_release(finish(builder));
}

static void expect_no_builder(enum weir_dtype dtype, const weir_shape *shape)
{
	weir_tensor_builder *builder = untouched;
	weir_tensor *tensor = untouched;

	cr_expect_eq(weir_tensor_builder_create(dtype, shape, NULL, &builder, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_builder_create_unfilled(dtype, shape, NULL, &builder, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(builder, untouched);
	cr_expect_eq(weir_tensor_copy_of(dtype, shape, "x", NULL, &tensor), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_wrap(dtype, shape, untouched, NULL, NULL, NULL, &tensor), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(tensor, untouched);
}

Test(tensor, bad_types_and_shapes_are_refused)
{
	expect_no_builder((enum weir_dtype)0, SHAPE(1));
	expect_no_builder((enum weir_dtype)15, SHAPE(1));
	expect_no_builder(WEIR_F32, NULL);
	expect_no_builder(WEIR_F32, &rank_nine);
	expect_no_builder(WEIR_F32, SHAPE(2, -1));
	expect_no_builder(WEIR_U8, SHAPE(INT64_MAX, 3));
	expect_no_builder(WEIR_U8, SHAPE(INT64_MAX));
	expect_no_builder(WEIR_F64, SHAPE(INT64_C(1) << 61));
	expect_no_builder(WEIR_BYTES, SHAPE(INT64_C(1) << 60));
	cr_expect_eq(weir_tensor_builder_create(WEIR_F32, SHAPE(1), NULL, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_builder_create_unfilled(WEIR_F32, SHAPE(1), NULL, NULL, NULL), WEIR_INVALID_ARGUMENT);
}

Test(tensor, the_header_counts_in_the_largest_object)
{
	const int64_t most = (int64_t)(PTRDIFF_MAX - sizeof(weir_tensor));
	int64_t elements = 0;
	size_t bytes = 0;

	cr_expect_eq(weiri_tensor_measure(WEIR_U8, SHAPE(most), &elements, &bytes), WEIR_OK);
	cr_expect(elements == most && bytes == (size_t)most);
	cr_expect_eq(weiri_tensor_measure(WEIR_U8, SHAPE(most + 1), &elements, &bytes), WEIR_INVALID_ARGUMENT);
}

/*
 * The allocator itself refuses so much memory, because the malloc of a sanitizer would end the
 * program.
 */
Test(tensor, more_memory_than_there_is_is_a_status)
{
	struct failing_allocator state = {0};
	weir_allocator allocator = failing_allocator_hooks(&state);
	weir_tensor_builder *builder = untouched;

	cr_expect_eq(weir_tensor_builder_create(WEIR_U8, SHAPE(PTRDIFF_MAX / 2), &allocator, &builder, NULL),
	             WEIR_RESOURCE_EXHAUSTED);
	cr_expect_eq(weir_tensor_builder_create_unfilled(WEIR_U8, SHAPE(PTRDIFF_MAX / 2), &allocator, &builder, NULL),
	             WEIR_RESOURCE_EXHAUSTED);
	cr_expect_eq(builder, untouched);
	cr_expect_str_eq(failing_allocator_verdict(&state), "balanced");
}

Test(tensor, a_tensor_without_elements_works)
{
	for (int dtype = WEIR_BOOL; dtype <= WEIR_BF16; dtype++) {
		weir_tensor_builder *builder = builder_of((enum weir_dtype)dtype, SHAPE(3, 0, 2));
		weir_tensor *tensor = finish(builder);
		weir_tensor *copy = copy_of((enum weir_dtype)dtype, SHAPE(0, INT64_MAX, INT64_MAX), NULL);

		cr_expect_eq(weir_tensor_element_count(tensor), 0);
		cr_expect_eq(weir_tensor_byte_count(tensor), 0);
		cr_expect_not_null(weir_tensor_data(tensor));
		cr_expect_eq(weir_tensor_element_count(copy), 0);
		weir_tensor_release(tensor);
		weir_tensor_release(copy);
	}
}

Test(tensor, null_is_accepted_where_the_header_says_so)
{
	weir_tensor_release(NULL);
	weir_tensor_builder_discard(NULL);
	cr_expect_null(weir_tensor_retain(NULL));
	cr_expect_null(weir_tensor_builder_data(NULL));
}

/* ---- byte strings ---- */

Test(tensor, a_new_builder_of_strings_holds_empty_ones)
{
	weir_tensor_builder *builder = builder_of(WEIR_BYTES, SHAPE(2));
	weir_tensor *tensor;

	cr_expect_null(weir_tensor_builder_data(builder), "strings are written by _set_bytes only");
	tensor = finish(builder);
	expect_string(tensor, 0, "");
	expect_string(tensor, 1, "");
	cr_expect_eq(weir_tensor_byte_count(tensor), 2 * sizeof(weir_bytes));
	weir_tensor_release(tensor);
}

Test(tensor, strings_are_copied_and_counted)
{
	weir_tensor_builder *builder = builder_of(WEIR_BYTES, SHAPE(2, 2));
	char text[] = "weir";
	weir_tensor *tensor;

	set_string(builder, 0, text);
	set_string(builder, 3, "regulates");
	memset(text, 'x', sizeof(text));
	cr_expect_eq(weir_tensor_builder_set_bytes(builder, 2, "a\0b", 3), WEIR_OK);
	tensor = finish(builder);
	expect_string(tensor, 0, "weir");
	expect_string(tensor, 1, "");
	cr_expect_arr_eq(((const weir_bytes *)weir_tensor_data(tensor))[2].data, "a\0b", 3);
	expect_string(tensor, 3, "regulates");
	cr_expect_eq(weir_tensor_byte_count(tensor), 4 * sizeof(weir_bytes) + 4 + 3 + 9);
	weir_tensor_release(tensor);
}

Test(tensor, a_string_replaces_the_one_before)
{
	weir_tensor_builder *builder = builder_of(WEIR_BYTES, SHAPE(3));
	weir_tensor *tensor;

	set_string(builder, 0, "first");
	set_string(builder, 1, "neighbour");
	set_string(builder, 2, "gone");
	set_string(builder, 0, "one");
	set_string(builder, 0, "longer than first");
	cr_expect_eq(weir_tensor_builder_set_bytes(builder, 2, NULL, 0), WEIR_OK);
	tensor = finish(builder);
	expect_string(tensor, 0, "longer than first");
	expect_string(tensor, 1, "neighbour");
	expect_string(tensor, 2, "");
	cr_expect_eq(weir_tensor_byte_count(tensor),
	             3 * sizeof(weir_bytes) + strlen("longer than first") + strlen("neighbour"));
	weir_tensor_release(tensor);
}

Test(tensor, strings_of_every_size_survive_in_one_builder)
{
	enum { COUNT = 600 };
	static char text[100 * COUNT];
	weir_tensor_builder *builder = builder_of(WEIR_BYTES, SHAPE(COUNT));
	weir_tensor *tensor;
	const weir_bytes *strings;

	for (size_t i = 0; i < COUNT; i++) {
		memset(text, (int)('a' + i % 26), 100 * i);
		cr_assert_eq(weir_tensor_builder_set_bytes(builder, (int64_t)i, text, 100 * i), WEIR_OK);
	}
	tensor = finish(builder);
	strings = weir_tensor_data(tensor);
	for (size_t i = 0; i < COUNT; i++) {
		memset(text, (int)('a' + i % 26), 100 * i);
		cr_assert_eq(strings[i].size, 100 * i);
		cr_assert(i == 0 || memcmp(strings[i].data, text, 100 * i) == 0, "string %zu", i);
	}
	weir_tensor_release(tensor);
}

Test(tensor, setting_strings_checks_its_arguments)
{
	weir_tensor_builder *numbers = builder_of(WEIR_U8, SHAPE(4));
	weir_tensor_builder *strings = builder_of(WEIR_BYTES, SHAPE(4));

	cr_expect_eq(weir_tensor_builder_set_bytes(NULL, 0, "x", 1), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_builder_set_bytes(numbers, 0, "x", 1), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_builder_set_bytes(strings, 0, NULL, 1), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_builder_set_bytes(strings, -1, "x", 1), WEIR_OUT_OF_RANGE);
	cr_expect_eq(weir_tensor_builder_set_bytes(strings, 4, "x", 1), WEIR_OUT_OF_RANGE);
	cr_expect_eq(weir_tensor_builder_set_bytes(strings, 0, "x", SIZE_MAX), WEIR_RESOURCE_EXHAUSTED);
	cr_expect_eq(weir_tensor_builder_set_bytes(strings, 0, "x", SIZE_MAX / 2), WEIR_RESOURCE_EXHAUSTED);
	weir_tensor_builder_discard(numbers);
	weir_tensor_builder_discard(strings);
}

Test(tensor, no_memory_for_a_string_leaves_the_one_before)
{
	struct failing_allocator state = {.fail_at = 3};
	weir_allocator allocator = failing_allocator_hooks(&state);
	static const char large[100000];
	weir_tensor_builder *builder = NULL;
	weir_tensor *tensor;

	cr_assert_eq(weir_tensor_builder_create(WEIR_BYTES, SHAPE(1), &allocator, &builder, NULL), WEIR_OK);
	set_string(builder, 0, "kept");
	cr_expect_eq(weir_tensor_builder_set_bytes(builder, 0, large, sizeof(large)), WEIR_RESOURCE_EXHAUSTED);
	tensor = finish(builder);
	expect_string(tensor, 0, "kept");
	cr_expect_eq(weir_tensor_byte_count(tensor), sizeof(weir_bytes) + 4);
	weir_tensor_release(tensor);
	cr_expect_str_eq(failing_allocator_verdict(&state), "balanced");
}

/* ---- copies and scalars ---- */

Test(tensor, a_copy_does_not_follow_its_source)
{
	double source[] = {1.5, 2.5, 3.5};
	weir_tensor *tensor = copy_of(WEIR_F64, SHAPE(3), source);

	source[1] = 0;
	cr_expect_arr_eq(weir_tensor_data(tensor), ((double[]){1.5, 2.5, 3.5}), sizeof(source));
	weir_tensor_release(tensor);
}

Test(tensor, a_copy_of_strings_owns_them)
{
	char text[] = "flow";
	weir_tensor *tensor = copy_of(WEIR_BYTES, SHAPE(3), (weir_bytes[]){{text, 4}, {NULL, 0}, {"x", 1}});

	text[0] = '#';
	expect_string(tensor, 0, "flow");
	expect_string(tensor, 1, "");
	expect_string(tensor, 2, "x");
	cr_expect_eq(weir_tensor_byte_count(tensor), 3 * sizeof(weir_bytes) + 5);
	weir_tensor_release(tensor);
}

Test(tensor, a_copy_of_nothing_is_refused)
{
	weir_tensor *tensor = untouched;

	cr_expect_eq(weir_tensor_copy_of(WEIR_F64, SHAPE(3), NULL, NULL, &tensor), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_copy_of(WEIR_BYTES, SHAPE(3), NULL, NULL, &tensor), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_copy_of(WEIR_BYTES, SHAPE(2), (weir_bytes[]){{"x", 1}, {NULL, 1}}, NULL, &tensor),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_copy_of(WEIR_BYTES, SHAPE(2), (weir_bytes[]){{"x", SIZE_MAX}, {"y", 1}}, NULL, &tensor),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_copy_of(WEIR_U8, SHAPE(1), "x", NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(tensor, untouched);
}

static void expect_scalar(weir_tensor *tensor, enum weir_dtype dtype, const void *value)
{
	cr_expect_eq(weir_tensor_dtype(tensor), dtype);
	cr_expect_eq(weir_tensor_shape(tensor)->rank, 0);
	cr_expect_eq(weir_tensor_element_count(tensor), 1);
	cr_expect_arr_eq(weir_tensor_data(tensor), value, weir_dtype_size(dtype));
	weir_tensor_release(tensor);
}

Test(tensor, scalars_hold_their_value)
{
	weir_tensor *tensor = NULL;

	cr_assert_eq(weir_tensor_scalar_bool(2, &tensor), WEIR_OK);
	expect_scalar(tensor, WEIR_BOOL, &(uint8_t){1});
	cr_assert_eq(weir_tensor_scalar_u8(UINT8_MAX, &tensor), WEIR_OK);
	expect_scalar(tensor, WEIR_U8, &(uint8_t){UINT8_MAX});
	cr_assert_eq(weir_tensor_scalar_u16(UINT16_MAX, &tensor), WEIR_OK);
	expect_scalar(tensor, WEIR_U16, &(uint16_t){UINT16_MAX});
	cr_assert_eq(weir_tensor_scalar_u32(UINT32_MAX, &tensor), WEIR_OK);
	expect_scalar(tensor, WEIR_U32, &(uint32_t){UINT32_MAX});
	cr_assert_eq(weir_tensor_scalar_u64(UINT64_MAX, &tensor), WEIR_OK);
	expect_scalar(tensor, WEIR_U64, &(uint64_t){UINT64_MAX});
	cr_assert_eq(weir_tensor_scalar_bf16(0x3F80, &tensor), WEIR_OK);
	expect_scalar(tensor, WEIR_BF16, &(uint16_t){0x3F80});
	cr_assert_eq(weir_tensor_scalar_i8(INT8_MIN, &tensor), WEIR_OK);
	expect_scalar(tensor, WEIR_I8, &(int8_t){INT8_MIN});
	cr_assert_eq(weir_tensor_scalar_i16(INT16_MIN, &tensor), WEIR_OK);
	expect_scalar(tensor, WEIR_I16, &(int16_t){INT16_MIN});
	cr_assert_eq(weir_tensor_scalar_i32(INT32_MIN, &tensor), WEIR_OK);
	expect_scalar(tensor, WEIR_I32, &(int32_t){INT32_MIN});
	cr_assert_eq(weir_tensor_scalar_i64(INT64_MAX, &tensor), WEIR_OK);
	expect_scalar(tensor, WEIR_I64, &(int64_t){INT64_MAX});
	cr_assert_eq(weir_tensor_scalar_f16(0x3C00, &tensor), WEIR_OK);
	expect_scalar(tensor, WEIR_F16, &(uint16_t){0x3C00});
	cr_assert_eq(weir_tensor_scalar_f32(1.25F, &tensor), WEIR_OK);
	expect_scalar(tensor, WEIR_F32, &(float){1.25F});
	cr_assert_eq(weir_tensor_scalar_f64(-2.5, &tensor), WEIR_OK);
	expect_scalar(tensor, WEIR_F64, &(double){-2.5});
}

Test(tensor, a_scalar_of_bytes_owns_its_string)
{
	char text[] = "weir";
	weir_tensor *tensor = NULL;

	cr_assert_eq(weir_tensor_scalar_bytes(text, 4, &tensor), WEIR_OK);
	text[0] = '#';
	cr_expect(weir_shape_equal(weir_tensor_shape(tensor), &weir_shape_scalar));
	expect_string(tensor, 0, "weir");
	weir_tensor_release(tensor);
	cr_assert_eq(weir_tensor_scalar_bytes(NULL, 0, &tensor), WEIR_OK);
	expect_string(tensor, 0, "");
	weir_tensor_release(tensor);
	tensor = untouched;
	cr_expect_eq(weir_tensor_scalar_bytes(NULL, 1, &tensor), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(tensor, untouched);
}

Test(tensor, the_scalar_shape_has_one_element)
{
	int64_t elements = 0;
	char text[WEIR_SHAPE_TEXT_SIZE];

	cr_assert_eq(weir_shape_element_count(&weir_shape_scalar, &elements), WEIR_OK);
	cr_expect_eq(elements, 1);
	cr_expect_str_eq(weir_shape_text(&weir_shape_scalar, text, sizeof(text)), "[]");
}

Test(tensor, a_scalar_needs_a_place_to_go)
{
	cr_expect_eq(weir_tensor_scalar_f32(1, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_scalar_f64(1, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_scalar_i32(1, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_scalar_i64(1, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_scalar_bool(1, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_scalar_u8(1, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_scalar_i8(1, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_scalar_i16(1, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_scalar_f16(1, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_scalar_bytes("x", 1, NULL), WEIR_INVALID_ARGUMENT);
}

/* ---- references ---- */

Test(tensor, lives_until_its_last_reference_goes)
{
	struct failing_allocator state = {0};
	weir_allocator allocator = failing_allocator_hooks(&state);
	weir_tensor *tensor = NULL;

	cr_assert_eq(weir_tensor_copy_of(WEIR_U8, SHAPE(4), "weir", &allocator, &tensor), WEIR_OK);
	for (int i = 0; i < 10; i++)
		cr_expect_eq(weir_tensor_retain(tensor), tensor);
	for (int i = 0; i < 10; i++)
		weir_tensor_release(tensor);
	cr_expect_arr_eq(weir_tensor_data(tensor), "weir", 4);
	cr_expect_eq(weiri_load_relaxed(&state.outstanding), 1);
	weir_tensor_release(tensor);
	cr_expect_str_eq(failing_allocator_verdict(&state), "balanced");
}

static void *retain_read_release(void *argument)
{
	weir_tensor *tensor = argument; /* with a reference, which this thread releases */

	for (int i = 0; i < 2000; i++) {
		weir_tensor *again = weir_tensor_retain(tensor);

		cr_assert_eq(((const unsigned char *)weir_tensor_data(again))[i % 64], 7);
		weir_tensor_release(again);
	}
	weir_tensor_release(tensor);
	return NULL;
}

/*
 * The allocator overwrites what is released with plain stores. If the release lacked an order, that
 * would be a data race.
 */
Test(tensor, every_use_of_every_thread_comes_before_the_end)
{
	enum { THREADS = 4, ROUNDS = 20 };
	struct failing_allocator state = {0};
	weir_allocator allocator = failing_allocator_hooks(&state);
	unsigned char data[64];

	memset(data, 7, sizeof(data));
	for (int round = 0; round < ROUNDS; round++) {
		pthread_t threads[THREADS];
		weir_tensor *tensor = NULL;

		cr_assert_eq(weir_tensor_copy_of(WEIR_U8, SHAPE(64), data, &allocator, &tensor), WEIR_OK);
		for (int i = 0; i < THREADS; i++)
			cr_assert_eq(pthread_create(&threads[i], NULL, retain_read_release, weir_tensor_retain(tensor)), 0);
		weir_tensor_release(tensor);
		for (int i = 0; i < THREADS; i++)
			cr_assert_eq(pthread_join(threads[i], NULL), 0);
		cr_assert_str_eq(failing_allocator_verdict(&state), "balanced");
	}
}

/* ---- stack ---- */

Test(tensor, stacking_puts_tensors_one_behind_the_other)
{
	weir_tensor *parts[3];
	weir_tensor *batch = NULL;

	for (int32_t i = 0; i < 3; i++)
		parts[i] = copy_of(WEIR_I32, SHAPE(1, 2), (int32_t[]){2 * i, 2 * i + 1});
	cr_assert_eq(weir_tensor_stack(parts, 3, NULL, &batch), WEIR_OK);
	for (int i = 0; i < 3; i++)
		weir_tensor_release(parts[i]);
	cr_expect(weir_shape_equal(weir_tensor_shape(batch), SHAPE(3, 1, 2)));
	cr_expect_eq((uintptr_t)weir_tensor_data(batch) % WEIR_TENSOR_ALIGNMENT, 0);
	cr_expect_arr_eq(weir_tensor_data(batch), ((int32_t[]){0, 1, 2, 3, 4, 5}), 24);
	weir_tensor_release(batch);
}

Test(tensor, stacking_scalars_makes_a_vector)
{
	weir_tensor *five = copy_of(WEIR_F32, &weir_shape_scalar, &(float){5});
	weir_tensor *batch = NULL;

	cr_assert_eq(weir_tensor_stack((weir_tensor *[]){five, five}, 2, NULL, &batch), WEIR_OK);
	cr_expect(weir_shape_equal(weir_tensor_shape(batch), SHAPE(2)));
	cr_expect_arr_eq(weir_tensor_data(batch), ((float[]){5, 5}), 2 * sizeof(float));
	weir_tensor_release(five);
	weir_tensor_release(batch);
}

Test(tensor, stacked_strings_outlive_their_sources)
{
	weir_tensor *a = copy_of(WEIR_BYTES, SHAPE(2), (weir_bytes[]){{"dam", 3}, {NULL, 0}});
	weir_tensor_builder *builder = builder_of(WEIR_BYTES, SHAPE(2));
	weir_tensor *b;
	weir_tensor *batch = NULL;

	set_string(builder, 0, "lock");
	set_string(builder, 1, "gate");
	b = finish(builder);
	cr_assert_eq(weir_tensor_stack((weir_tensor *[]){a, b, a}, 3, NULL, &batch), WEIR_OK);
	weir_tensor_release(a);
	weir_tensor_release(b);
	expect_string(batch, 0, "dam");
	expect_string(batch, 1, "");
	expect_string(batch, 2, "lock");
	expect_string(batch, 3, "gate");
	expect_string(batch, 4, "dam");
	expect_string(batch, 5, "");
	cr_expect_eq(weir_tensor_byte_count(batch), 6 * sizeof(weir_bytes) + 3 + 8 + 3);
	weir_tensor_release(batch);
}

Test(tensor, stacking_tensors_without_elements_keeps_their_shape)
{
	weir_tensor *none = NULL;
	weir_tensor *batch = NULL;

	cr_assert_eq(weir_tensor_wrap(WEIR_F32, SHAPE(0, 5), NULL, NULL, NULL, NULL, &none), WEIR_OK);
	cr_assert_eq(weir_tensor_stack((weir_tensor *[]){none, none}, 2, NULL, &batch), WEIR_OK);
	cr_expect(weir_shape_equal(weir_tensor_shape(batch), SHAPE(2, 0, 5)));
	cr_expect_eq(weir_tensor_element_count(batch), 0);
	weir_tensor_release(none);
	weir_tensor_release(batch);
}

static void expect_no_stack(weir_tensor *const tensors[], size_t count)
{
	weir_tensor *batch = untouched;

	cr_expect_eq(weir_tensor_stack(tensors, count, NULL, &batch), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(batch, untouched);
}

Test(tensor, stacking_what_differs_is_refused)
{
	weir_tensor *a = copy_of(WEIR_I32, SHAPE(2), (int32_t[]){1, 2});
	weir_tensor *other_type = copy_of(WEIR_F32, SHAPE(2), (float[]){1, 2});
	weir_tensor *other_shape = copy_of(WEIR_I32, SHAPE(2, 1), (int32_t[]){1, 2});
	weir_tensor *rank_eight = copy_of(WEIR_U8, SHAPE(1, 1, 1, 1, 1, 1, 1, 1), "x");

	expect_no_stack((weir_tensor *[]){a, other_type}, 2);
	expect_no_stack((weir_tensor *[]){a, other_shape}, 2);
	expect_no_stack((weir_tensor *[]){a, NULL}, 2);
	expect_no_stack((weir_tensor *[]){NULL, a}, 2);
	expect_no_stack((weir_tensor *[]){rank_eight}, 1);
	expect_no_stack((weir_tensor *[]){a}, 0);
	expect_no_stack(NULL, 1);
	cr_expect_eq(weir_tensor_stack((weir_tensor *[]){a}, 1, NULL, NULL), WEIR_INVALID_ARGUMENT);
	weir_tensor_release(a);
	weir_tensor_release(other_type);
	weir_tensor_release(other_shape);
	weir_tensor_release(rank_eight);
}

/* ---- out of memory ---- */

static enum weir_status build_strings(const weir_allocator *allocator, void *context)
{
	static const char text[1000];
	weir_tensor_builder *builder = NULL;
	enum weir_status status = weir_tensor_builder_create(WEIR_BYTES, SHAPE(5), allocator, &builder, NULL);

	(void)context;
	for (int64_t i = 0; i < 5 && status == WEIR_OK; i++)
		status = weir_tensor_builder_set_bytes(builder, i, text, sizeof(text));
	if (status != WEIR_OK)
		weir_tensor_builder_discard(builder);
	else
		weir_tensor_release(finish(builder));
	return status;
}

static enum weir_status copy_strings(const weir_allocator *allocator, void *context)
{
	weir_tensor *tensor = NULL;
	enum weir_status status =
		weir_tensor_copy_of(WEIR_BYTES, SHAPE(2), (weir_bytes[]){{"a", 1}, {"bc", 2}}, allocator, &tensor);

	(void)context;
	weir_tensor_release(tensor);
	return status;
}

static enum weir_status stack_twice(const weir_allocator *allocator, void *context)
{
	weir_tensor *batch = NULL;
	enum weir_status status = weir_tensor_stack((weir_tensor *[]){context, context}, 2, allocator, &batch);

	weir_tensor_release(batch);
	return status;
}

Test(tensor, every_allocation_may_fail_and_nothing_leaks)
{
	weir_tensor *part = copy_of(WEIR_BYTES, SHAPE(1), (weir_bytes[]){{"part", 4}});

	cr_expect_eq(fail_each_allocation(copy_strings, NULL), 1, "header, elements and strings are one allocation");
	cr_expect_eq(fail_each_allocation(stack_twice, part), 1, "header, elements and strings are one allocation");
	cr_expect_eq(fail_each_allocation(build_strings, NULL), 4, "one for the tensor, and chunks that grow");
	weir_tensor_release(part);
}
