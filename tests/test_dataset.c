/*
 * test_dataset.c - datasets read by one thread without a pool: what each kind gives, errors in the
 * place of elements, bad input, memory that is missing.
 */
#include "dataset_kit.h"

#include <stdio.h>
#include <weir/weir.h>

#include "data/elements.h"
#include "failing_allocator.h"

static enum weir_status twice(void *context, weir_tensor *const in[], weir_tensor *out[], weir_error *error)
{
	(void)context, (void)error;
	return weir_tensor_scalar_i64(2 * data_number(in[0]), &out[0]);
}

/* -- sources ----------------------------------------------------------------------------------- */

Test(dataset, rows_of_tensors_come_one_by_one_without_a_copy)
{
	weir_shape shape = {2, {3, 2}}, flat = {1, {3}};
	const int64_t numbers[6] = {1, 2, 3, 4, 5, 6};
	const float more[3] = {0.5f, 1.5f, 2.5f};
	weir_tensor *tensors[2] = {NULL, NULL}, *parts[2];
	weir_error error;
	weir_dataset *dataset = NULL;
	weir_iterator *iterator;

	cr_assert_eq(weir_tensor_copy_of(WEIR_I64, &shape, numbers, NULL, &tensors[0]), WEIR_OK);
	cr_assert_eq(weir_tensor_copy_of(WEIR_F32, &flat, more, NULL, &tensors[1]), WEIR_OK);
	cr_assert_eq(weir_dataset_from_slices(tensors, 2, NULL, &dataset, NULL), WEIR_OK);
	cr_expect_eq(weir_dataset_width(dataset), 2);
	iterator = data_iterate(dataset, NULL);
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(weir_iterator_next(iterator, 0, NULL, parts, 2, &error), WEIR_OK);
		cr_expect_eq(weir_tensor_data(parts[0]), (const char *)weir_tensor_data(tensors[0]) + i * 16);
		cr_expect_eq(weir_tensor_shape(parts[0])->rank, 1);
		cr_expect_eq(((const float *)weir_tensor_data(parts[1]))[0], more[i]);
		weir_tensor_release(parts[0]);
		weir_tensor_release(parts[1]);
	}
	cr_expect_eq(weir_iterator_next(iterator, 0, NULL, parts, 2, &error), WEIR_OUT_OF_RANGE);
	cr_expect_str_eq(error.message, "iterator \"slices\": the end, after 3 elements");
	cr_expect_eq(weir_iterator_next(iterator, 0, NULL, parts, 1, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "iterator \"slices\": asked for 1 component, an element has 2");
	weir_tensor_release(tensors[0]);
	weir_tensor_release(tensors[1]);
	weir_dataset_release(dataset);
	cr_expect_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
}

/* A view that nobody else has becomes that of the next row; one that was kept does not. */
Test(dataset, rows_that_are_kept_stay_what_they_were)
{
	static const int64_t numbers[7] = {0, 1, 2, 3, 4, 5, 6};
	weir_dataset *dataset = data_of_numbers(numbers, 7);
	weir_iterator *iterator = data_iterate(dataset, NULL);
	weir_tensor *kept[7] = {NULL};

	weir_dataset_release(dataset);
	for (int i = 0; i < 7; i++) {
		cr_assert_eq(weir_iterator_next(iterator, 0, NULL, &kept[i], 1, NULL), WEIR_OK);
		cr_expect_eq(data_number(kept[i]), i);
		if (i % 3 != 1)
			continue;
		weir_tensor_release(kept[i]);
		kept[i] = NULL;
	}
	cr_expect_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
	for (int i = 0; i < 7; i++) {
		cr_expect(kept[i] == NULL || data_number(kept[i]) == i);
		weir_tensor_release(kept[i]);
	}
}

Test(dataset, rows_that_do_not_fit_are_refused)
{
	weir_shape two = {1, {2}}, three = {1, {3}}, none = {1, {0}};
	weir_tensor *tensors[3] = {NULL, NULL, NULL};
	weir_dataset *dataset = NULL;
	weir_error error;
	struct data_list list;

	cr_assert_eq(weir_tensor_copy_of(WEIR_I64, &two, (int64_t[2]){0}, NULL, &tensors[0]), WEIR_OK);
	cr_assert_eq(weir_tensor_copy_of(WEIR_I64, &three, (int64_t[3]){0}, NULL, &tensors[1]), WEIR_OK);
	cr_assert_eq(weir_tensor_copy_of(WEIR_I64, &none, NULL, NULL, &tensors[2]), WEIR_OK);
	cr_expect_eq(weir_dataset_from_slices(tensors, 2, NULL, &dataset, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "slices: tensor 1 has 3 rows, tensor 0 has 2");
	cr_expect_eq(weir_dataset_from_slices(tensors, 0, NULL, &dataset, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_dataset_from_slices(tensors, WEIR_DATASET_MAX_WIDTH + 1, NULL, &dataset, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_dataset_from_slices(NULL, 1, NULL, &dataset, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_dataset_from_slices(tensors, 1, NULL, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_dataset_from_slices((weir_tensor *[]){NULL}, 1, NULL, &dataset, &error), WEIR_INVALID_ARGUMENT);
	weir_tensor_release(tensors[1]);
	tensors[1] = data_i64(1);
	cr_expect_eq(weir_dataset_from_slices(tensors, 2, NULL, &dataset, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "slices: tensor 1 is a scalar, which has no rows");
	cr_expect_null(dataset);
	cr_assert_eq(weir_dataset_from_slices(&tensors[2], 1, NULL, &dataset, NULL), WEIR_OK);
	data_read(dataset, NULL, &list);
	cr_expect_eq(list.count, 0, "no rows: the end at once");
	for (size_t i = 0; i < 3; i++)
		weir_tensor_release(tensors[i]);
}

static void expect_range(int64_t first, int64_t last, int64_t step, size_t count, int64_t end)
{
	weir_dataset *dataset = NULL;
	struct data_list list;

	cr_assert_eq(weir_dataset_range(first, last, step, NULL, &dataset, NULL), WEIR_OK);
	data_read(data_take(dataset, 100), NULL, &list);
	cr_assert_eq(list.count, count);
	if (count != 0) {
		cr_expect_eq(list.at[0], first);
		cr_expect_eq(list.at[count - 1], end);
	}
}

Test(dataset, a_range_stops_before_its_end)
{
	weir_dataset *dataset = NULL;
	weir_error error;

	expect_range(0, 10, 1, 10, 9);
	expect_range(0, 10, 3, 4, 9);
	expect_range(0, 9, 3, 3, 6);
	expect_range(5, -5, -4, 3, -3);
	expect_range(5, 5, 1, 0, 0);
	expect_range(6, 5, 1, 0, 0);
	expect_range(5, 6, -1, 0, 0);
	expect_range(INT64_MIN, INT64_MAX, INT64_MAX, 3, INT64_MAX - 1);
	expect_range(INT64_MAX, INT64_MIN, INT64_MIN, 2, -1);
	cr_expect_eq(weir_dataset_range(0, 1, 0, NULL, &dataset, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "range: step is 0");
}

struct source {
	int64_t next, last, bad, opened, closed;
	enum weir_status open_with, bad_with;
	enum weir_dtype gives;
};

static enum weir_status source_open(void *context, void **state, weir_error *error)
{
	struct source *source = context;

	(void)error;
	if (source->open_with != WEIR_OK)
		return source->open_with;
	source->opened++;
	source->next = 0;
	*state = source;
	return WEIR_OK;
}

static enum weir_status source_next(void *context, void *state, weir_tensor *out[], weir_error *error)
{
	struct source *source = state;
	int64_t number = source->next++;

	(void)context;
	if (number == source->last)
		return WEIR_OUT_OF_RANGE;
	if (number == source->bad && source->bad_with != WEIR_OK) {
		(void)snprintf(error->message, sizeof(error->message), "line %lld is torn", (long long)number);
		return source->bad_with;
	}
	if (number == source->bad)
		return source->gives == WEIR_F32 ? weir_tensor_scalar_f32(0, &out[0]) : WEIR_OK;
	return weir_tensor_scalar_i64(number, &out[0]);
}

static void source_close(void *context, void *state)
{
	(void)context;
	((struct source *)state)->closed++;
}

static weir_dataset *generate(struct source *source)
{
	struct weir_dataset_generator generator = {WEIR_DATASET_GENERATOR_INIT, source_open, source_next, source_close,
	                                           source};
	enum weir_dtype dtype = WEIR_I64;
	struct weir_dataset_options options = {WEIR_DATASET_OPTIONS_INIT, .dtypes = &dtype, .width = 1};
	weir_dataset *dataset = NULL;

	cr_assert_eq(weir_dataset_generate(&generator, &options, &dataset, NULL), WEIR_OK);
	return dataset;
}

Test(dataset, a_generator_is_opened_and_closed_once_for_each_pass)
{
	struct source source = {.last = 5, .bad = -1};
	weir_dataset *dataset = data_repeat(generate(&source), 3);
	struct data_list list;

	data_read(weir_dataset_retain(dataset), NULL, &list);
	cr_expect_eq(list.count, 15);
	cr_expect_eq(source.opened, 3);
	cr_expect_eq(source.closed, 3);
	data_read(data_take(dataset, 7), NULL, &list);
	cr_expect_eq(list.count, 7);
	cr_expect_eq(source.opened, 5);
	cr_expect_eq(source.closed, 5, "a pass that ends early is closed, too");
}

Test(dataset, an_error_of_a_generator_takes_the_place_of_an_element)
{
	struct source source = {.last = 4, .bad = 1, .bad_with = WEIR_DATA_LOSS};
	weir_dataset *dataset = generate(&source);
	weir_iterator *iterator = data_iterate(dataset, NULL);
	weir_error error;
	int64_t number = 0;

	weir_dataset_release(dataset);
	cr_expect_eq(data_next(iterator, &number, &error), WEIR_OK);
	cr_expect_eq(data_next(iterator, &number, &error), WEIR_DATA_LOSS);
	cr_expect_str_eq(error.message, "generate: line 1 is torn");
	cr_expect_eq(data_next(iterator, &number, &error), WEIR_OK);
	cr_expect_eq(number, 2);
	cr_expect_eq(weir_iterator_position(iterator), 3);
	cr_expect_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
	cr_expect_eq(source.closed, 1);
}

Test(dataset, a_generator_that_does_not_open_has_one_error_and_ends)
{
	struct source source = {.last = 4, .bad = -1, .open_with = WEIR_NOT_FOUND};
	weir_dataset *dataset = generate(&source);
	weir_iterator *iterator = data_iterate(dataset, NULL);
	weir_error error;
	int64_t number;

	weir_dataset_release(dataset);
	cr_expect_eq(data_next(iterator, &number, &error), WEIR_NOT_FOUND);
	cr_expect_str_eq(error.message, "generate: the function failed with WEIR_NOT_FOUND");
	cr_expect_eq(data_next(iterator, &number, &error), WEIR_OUT_OF_RANGE);
	cr_expect_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
	cr_expect_eq(source.closed, 0);
}

Test(dataset, a_generator_that_breaks_its_word_is_refused_in_place)
{
	struct source source = {.last = 3, .bad = 1};
	weir_iterator *iterator;
	weir_error error;
	int64_t number;
	weir_dataset *dataset = generate(&source);

	for (int i = 0; i < 2; i++) {
		source.gives = i == 0 ? WEIR_I64 : WEIR_F32;
		iterator = data_iterate(dataset, NULL);
		cr_expect_eq(data_next(iterator, &number, &error), WEIR_OK);
		cr_expect_eq(data_next(iterator, &number, &error), WEIR_INVALID_ARGUMENT);
		cr_expect_str_eq(error.message, i == 0 ? "generate: component 0: the function gave nothing, expected i64"
		                                       : "generate: component 0: the function gave f32, expected i64");
		cr_expect_eq(data_next(iterator, &number, &error), WEIR_OK);
		cr_expect_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
	}
	weir_dataset_release(dataset);
}

/* -- options ----------------------------------------------------------------------------------- */

Test(dataset, options_that_a_kind_does_not_have_are_refused_by_name)
{
	weir_dataset *range = data_range(0, 3), *out = NULL;
	const uint64_t seed = 1;
	const enum weir_dtype dtype = WEIR_I64, none = (enum weir_dtype)99;
	struct weir_dataset_options plain = {WEIR_DATASET_OPTIONS_INIT}, options;
	weir_error error;

	options = plain;
	options.at_once = 2;
	cr_expect_eq(weir_dataset_batch(range, 2, &options, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "batch: option at_once is set, which this dataset does not have");
	options = plain;
	options.seed = &seed;
	cr_expect_eq(weir_dataset_map(range, twice, NULL, &options, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "map: option seed is set, which this dataset does not have");
	options = plain;
	options.block = 2;
	cr_expect_eq(weir_dataset_map(range, twice, NULL, &options, &out, &error), WEIR_INVALID_ARGUMENT);
	options = plain;
	options.dtypes = &dtype;
	cr_expect_eq(weir_dataset_take(range, 2, &options, &out, &error), WEIR_INVALID_ARGUMENT);
	options = plain;
	options.dispose = free;
	cr_expect_eq(weir_dataset_take(range, 2, &options, &out, &error), WEIR_INVALID_ARGUMENT);
	options = plain;
	options.flags = WEIR_DATASET_SAME_EACH_TIME;
	cr_expect_eq(weir_dataset_take(range, 2, &options, &out, &error), WEIR_INVALID_ARGUMENT);
	options = plain;
	options.at_once = WEIR_DATASET_MAX_AHEAD + 1;
	cr_expect_eq(weir_dataset_map(range, twice, NULL, &options, &out, &error), WEIR_INVALID_ARGUMENT);
	options = plain;
	options.width = 1;
	cr_expect_eq(weir_dataset_map(range, twice, NULL, &options, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "map: width is 1 and dtypes is NULL");
	options.dtypes = &none;
	cr_expect_eq(weir_dataset_map(range, twice, NULL, &options, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "map: component 0: 99 is no dtype");
	options = plain;
	options.struct_size = 1;
	cr_expect_eq(weir_dataset_take(range, 2, &options, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_null(out);
	weir_dataset_release(range);
}

Test(dataset, numbers_and_pointers_that_mean_nothing_are_refused)
{
	weir_dataset *range = data_range(0, 3), *out = NULL;
	weir_iterator *iterator = NULL;
	weir_tensor *part;
	uint64_t seed;
	weir_error error;

	cr_expect_eq(weir_dataset_batch(range, 0, NULL, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "batch: the size is 0, expected at least 1");
	cr_expect_eq(weir_dataset_padded_batch(range, 0, NULL, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_dataset_shuffle(range, 0, NULL, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "shuffle: the buffer is 0, expected at least 1");
	cr_expect_eq(weir_dataset_prefetch(range, WEIR_DATASET_MAX_AHEAD + 1, NULL, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_dataset_repeat(range, -2, NULL, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_dataset_zip(&range, 0, NULL, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "zip: no inputs");
	cr_expect_eq(weir_dataset_zip(NULL, 1, NULL, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "zip: inputs is NULL");
	cr_expect_eq(weir_dataset_zip(&range, 1, NULL, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "zip: out is NULL");
	cr_expect_eq(weir_dataset_concatenate((weir_dataset *[]){range, NULL}, 2, NULL, &out, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "concatenate: input 1 is NULL");
	cr_expect_eq(weir_dataset_map(NULL, twice, NULL, NULL, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "map: input is NULL");
	cr_expect_eq(weir_dataset_map(range, NULL, NULL, NULL, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_dataset_filter(range, NULL, NULL, NULL, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_dataset_interleave(range, NULL, NULL, NULL, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_dataset_cache(NULL, NULL, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_dataset_take(NULL, 1, NULL, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_dataset_take(range, 1, NULL, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_dataset_generate(NULL, NULL, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_iterator_create(NULL, NULL, &iterator, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_iterator_next(NULL, 0, NULL, &part, 1, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_dataset_seed(range, &seed), WEIR_NOT_FOUND);
	cr_expect_eq(weir_iterator_destroy(NULL, NULL), WEIR_OK);
	cr_expect_eq(weir_iterator_position(NULL), 0);
	cr_expect_eq(weir_dataset_width(NULL), 0);
	weir_dataset_release(NULL);
	cr_expect_null(weir_dataset_retain(NULL));
	cr_expect_null(out);
	weir_dataset_release(range);
}

static void count_disposals(void *context)
{
	++*(int *)context;
}

Test(dataset, dispose_is_called_once_when_the_last_user_is_gone)
{
	int disposed = 0;
	struct weir_dataset_options options = {WEIR_DATASET_OPTIONS_INIT, .dispose = count_disposals};
	weir_dataset *range = data_range(0, 3), *out = NULL;
	weir_iterator *iterator;

	options.flags = 1u << 30;
	cr_expect_eq(weir_dataset_map(range, twice, &disposed, &options, &out, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(disposed, 0, "a context that was refused is the caller's");
	options.flags = 0;
	cr_assert_eq(weir_dataset_map(range, twice, &disposed, &options, &out, NULL), WEIR_OK);
	weir_dataset_release(range);
	iterator = data_iterate(out, NULL);
	weir_dataset_release(out);
	cr_expect_eq(disposed, 0);
	cr_expect_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
	cr_expect_eq(disposed, 1);
}

Test(dataset, its_text_names_the_stages)
{
	weir_dataset *dataset = data_batch(data_map(data_range(0, 4), twice, NULL, 3, 0), 2, 0);
	char text[WEIR_DATASET_TEXT_SIZE], shorter[24], least[4];

	cr_expect_str_eq(weir_dataset_text(dataset, text, sizeof(text)), "batch(2) of map(3) of range");
	cr_expect_str_eq(weir_dataset_text(dataset, shorter, sizeof(shorter)), "batch(2) of ...");
	cr_expect_str_eq(weir_dataset_text(dataset, least, sizeof(least)), "");
	for (int i = 0; i < 40; i++)
		dataset = data_take(dataset, 5);
	cr_expect_lt(strlen(weir_dataset_text(dataset, text, sizeof(text))), sizeof(text));
	cr_expect_str_eq(text + strlen(text) - 3, "...");
	weir_dataset_release(dataset);
}

/* -- joins, takes, skips, caches --------------------------------------------------------------- */

Test(dataset, zip_ends_with_the_shortest_and_fails_as_a_whole)
{
	int64_t every = 2;
	weir_dataset *inputs[2] = {data_range(0, 9), data_map(data_range(1, 5), data_fail_at_multiples, &every, 0, 0)},
				 *zip = NULL;
	weir_tensor *parts[2];
	weir_iterator *iterator;

	cr_assert_eq(weir_dataset_zip(inputs, 2, NULL, &zip, NULL), WEIR_OK);
	iterator = data_iterate(zip, NULL);
	for (int64_t i = 0; i < 4; i++) {
		if (i % 2 == 1) {
			cr_expect_eq(weir_iterator_next(iterator, 0, NULL, parts, 2, NULL), WEIR_ABORTED);
			continue;
		}
		cr_assert_eq(weir_iterator_next(iterator, 0, NULL, parts, 2, NULL), WEIR_OK);
		cr_expect_eq(data_number(parts[0]), i);
		cr_expect_eq(data_number(parts[1]), i + 1);
		weir_tensor_release(parts[0]);
		weir_tensor_release(parts[1]);
	}
	cr_expect_eq(weir_iterator_next(iterator, 0, NULL, parts, 2, NULL), WEIR_OUT_OF_RANGE);
	weir_dataset_release(inputs[0]);
	weir_dataset_release(inputs[1]);
	weir_dataset_release(zip);
	cr_expect_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
}

Test(dataset, too_many_components_do_not_zip)
{
	weir_dataset *inputs[WEIR_DATASET_MAX_WIDTH + 1], *zip = NULL;
	weir_error error;

	for (size_t i = 0; i <= WEIR_DATASET_MAX_WIDTH; i++)
		inputs[i] = data_range(0, 1);
	cr_expect_eq(weir_dataset_zip(inputs, WEIR_DATASET_MAX_WIDTH + 1, NULL, &zip, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "zip: 17 components, expected at most 16");
	cr_assert_eq(weir_dataset_zip(inputs, WEIR_DATASET_MAX_WIDTH, NULL, &zip, &error), WEIR_OK);
	weir_dataset_release(zip);
	for (size_t i = 0; i <= WEIR_DATASET_MAX_WIDTH; i++)
		weir_dataset_release(inputs[i]);
}

static enum weir_status as_float(void *context, weir_tensor *const in[], weir_tensor *out[], weir_error *error)
{
	(void)context, (void)error;
	return weir_tensor_scalar_f32((float)data_number(in[0]), &out[0]);
}

Test(dataset, concatenate_reads_one_input_after_the_other)
{
	const enum weir_dtype f32 = WEIR_F32;
	struct weir_dataset_options options = {WEIR_DATASET_OPTIONS_INIT, .dtypes = &f32, .width = 1};
	weir_dataset *inputs[3] = {data_range(0, 2), data_range(2, 2), data_range(2, 5)}, *all = NULL, *other = NULL;
	struct data_list list;
	weir_error error;

	cr_assert_eq(weir_dataset_concatenate(inputs, 3, NULL, &all, NULL), WEIR_OK);
	data_read(all, NULL, &list);
	data_expect_range(&list, 0, 5);
	weir_dataset_release(inputs[1]);
	cr_assert_eq(weir_dataset_map(inputs[0], as_float, NULL, &options, &inputs[1], NULL), WEIR_OK);
	cr_expect_eq(weir_dataset_concatenate(inputs, 3, NULL, &other, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "concatenate: component 0 of input 1 is f32, that of input 0 is i64");
	for (size_t i = 0; i < 3; i++)
		weir_dataset_release(inputs[i]);
}

Test(dataset, take_and_skip_divide_a_dataset)
{
	struct data_list list;

	data_read(data_take(data_range(0, 9), 4), NULL, &list);
	data_expect_range(&list, 0, 4);
	data_read(data_take(data_range(0, 3), 4), NULL, &list);
	data_expect_range(&list, 0, 3);
	data_read(data_take(data_range(0, 3), 0), NULL, &list);
	cr_expect_eq(list.count, 0);
	data_read(data_skip(data_range(0, 9), 4), NULL, &list);
	data_expect_range(&list, 4, 9);
	data_read(data_skip(data_range(0, 3), 4), NULL, &list);
	cr_expect_eq(list.count, 0);
}

Test(dataset, a_cache_reads_its_input_once)
{
	struct source source = {.last = 4, .bad = -1};
	weir_dataset *dataset = data_cache(generate(&source));
	struct data_list list;

	data_read(data_take(weir_dataset_retain(dataset), 2), NULL, &list);
	cr_expect_eq(source.opened, 1, "a pass that does not reach the end keeps nothing");
	data_read(data_repeat(weir_dataset_retain(dataset), 2), NULL, &list);
	cr_expect_eq(list.count, 8);
	cr_expect_eq(source.opened, 2);
	data_read(dataset, NULL, &list);
	data_expect_range(&list, 0, 4);
	cr_expect_eq(source.opened, 2);
}

Test(dataset, a_pass_with_an_error_is_not_cached)
{
	struct source source = {.last = 4, .bad = 1, .bad_with = WEIR_DATA_LOSS};
	struct data_list list;

	data_read(data_repeat(data_cache(generate(&source)), 2), NULL, &list);
	cr_expect_eq(list.count, 8);
	cr_expect_eq(source.opened, 2);
}

/* -- interleaving ------------------------------------------------------------------------------ */

/* A dataset of the number, as often as the number says. */
static enum weir_status repeated(void *context, weir_tensor *const in[], weir_dataset **out, weir_error *error)
{
	int64_t number = data_number(in[0]);
	weir_dataset *one = NULL;
	enum weir_status status;

	(void)context;
	if (number == 13) {
		(void)snprintf(error->message, sizeof(error->message), "unlucky");
		return WEIR_ABORTED;
	}
	status = weir_dataset_range(number, number + 1, 1, NULL, &one, error);
	if (status == WEIR_OK)
		status = weir_dataset_repeat(one, number, NULL, out, error);
	weir_dataset_release(one);
	return status;
}

/* The elements of `inputs`, each repeated as often as it says, in the order of the definition. */
static void interleave_by_hand(const int64_t inputs[], size_t count, size_t cycle, size_t block, struct data_list *list)
{
	int64_t left[16] = {0}, number[16] = {0};
	size_t next = 0, turn = 0, given = 0, open = 0;

	list->count = 0;
	while (next < count || open > 0) {
		if (number[turn] == 0 && next < count) {
			if (inputs[next] == 13) {
				list->at[list->count++] = DATA_ERROR;
				next++;
				turn = (turn + 1) % cycle;
				continue;
			}
			left[turn] = inputs[next];
			number[turn] = inputs[next++] + 1;
			open++;
		}
		if (number[turn] != 0 && left[turn] > 0) {
			list->at[list->count++] = number[turn] - 1;
			left[turn]--;
			if (++given < block)
				continue;
		} else if (number[turn] != 0) {
			number[turn] = 0;
			open--;
		}
		turn = (turn + 1) % cycle;
		given = 0;
	}
}

Test(dataset, interleave_takes_turns_as_defined)
{
	static const int64_t inputs[] = {4, 5, 0, 6, 13, 4, 0, 0, 5, 6, 13};

	for (size_t cycle = 1; cycle <= 12; cycle++) {
		for (size_t block = 1; block <= 7; block += 2) {
			struct data_list expected, list;

			interleave_by_hand(inputs, 11, cycle, block, &expected);
			data_read(data_interleave(data_of_numbers(inputs, 11), repeated, NULL, cycle, block, 1, 0), NULL, &list);
			cr_expect(data_equal(&expected, &list), "cycle %zu, block %zu", cycle, block);
		}
	}
}

static enum weir_status give_floats(void *context, weir_tensor *const in[], weir_dataset **out, weir_error *error)
{
	const enum weir_dtype f32 = WEIR_F32;
	struct weir_dataset_options options = {WEIR_DATASET_OPTIONS_INIT, .dtypes = &f32, .width = 1};

	(void)in, (void)error;
	return context == NULL ? WEIR_OK : weir_dataset_map(context, as_float, NULL, &options, out, NULL);
}

Test(dataset, interleave_refuses_a_dataset_of_other_types)
{
	weir_dataset *inner = data_range(0, 2), *dataset;
	weir_error error;
	int64_t number;

	for (int i = 0; i < 2; i++) {
		weir_iterator *iterator;

		dataset = data_interleave(data_range(0, 1), give_floats, i == 0 ? NULL : inner, 2, 1, 1, 0);
		iterator = data_iterate(dataset, NULL);
		cr_expect_eq(data_next(iterator, &number, &error), WEIR_INVALID_ARGUMENT);
		cr_expect_str_eq(error.message,
		                 i == 0
		                     ? "interleave(2) of range: the function gave no dataset"
		                     : "interleave(2) of range: component 0: the function gave a dataset of f32, expected i64");
		cr_expect_eq(data_next(iterator, &number, &error), WEIR_OUT_OF_RANGE);
		cr_expect_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
		weir_dataset_release(dataset);
	}
	weir_dataset_release(inner);
}

/* -- lists of elements ------------------------------------------------------------------------- */

Test(dataset, a_list_of_elements_grows_only_when_it_is_full)
{
	struct weiri_elements elements = {.width = 1};

	for (size_t i = 0; i < 40; i++) {
		cr_assert(weiri_elements_make_room(&elements, 50, weir_default_allocator()));
		cr_assert_eq(elements.room, i < 16 ? 16 : i < 32 ? 32 : 50, "the room of %zu", i + 1);
		*weiri_elements_at(&elements, elements.count++) = data_i64(1);
	}
	weiri_elements_fini(&elements, weir_default_allocator());
}

/* -- shuffles ---------------------------------------------------------------------------------- */

Test(dataset, no_element_is_shuffled_too_early_and_none_is_lost)
{
	const uint64_t seed = 11;

	for (size_t buffer = 1; buffer <= 64; buffer *= 2) {
		struct data_list list;

		data_read(data_shuffle(data_range(0, 100), buffer, &seed, 0), NULL, &list);
		for (size_t i = 0; i < list.count; i++)
			cr_expect_lt(list.at[i], (int64_t)(i + buffer));
		data_sort(&list);
		data_expect_range(&list, 0, 100);
	}
}

/*
 * By a program of its own from the papers that the header names. A process that begins again where another one
 * stopped needs the same order, also on another machine.
 */
Test(dataset, the_order_of_a_seed_is_that_of_the_papers)
{
	static const int64_t alone[] = {2, 1, 0, 7, 4, 6, 9, 5, 8, 12, 14, 11, 3, 13, 15, 10};
	static const int64_t third[] = {2, 1, 6, 3, 8, 0, 9, 5, 7, 13, 10, 15, 14, 11, 12, 4};
	struct weir_iterator_options options = {WEIR_ITERATOR_OPTIONS_INIT, .iteration = 3};
	const uint64_t seed = 11;
	weir_dataset *dataset = data_shuffle(data_range(0, 16), 5, &seed, 0);
	weir_iterator *iterator = NULL;
	struct data_list list;

	cr_assert_eq(weir_iterator_create(dataset, &options, &iterator, NULL), WEIR_OK);
	data_take_some(iterator, 17, &list);
	cr_assert_eq(list.count, 16);
	cr_expect_eq(memcmp(list.at, third, sizeof(third)), 0);
	cr_expect_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
	weir_dataset_release(dataset);
	data_read(data_shuffle(data_range(0, 16), 5, &seed, WEIR_DATASET_SAME_EACH_TIME), NULL, &list);
	cr_assert_eq(list.count, 16);
	cr_expect_eq(memcmp(list.at, alone, sizeof(alone)), 0);
}

/* The chance of each element to be first is 1/8: chi-squared with 7 degrees of freedom, 0.01 % above 29.9. */
Test(dataset, each_element_is_equally_likely)
{
	int counts[8] = {0};
	double chi = 0;

	for (uint64_t seed = 0; seed < 8000; seed++) {
		weir_dataset *dataset = data_shuffle(data_range(0, 8), 8, &seed, 0);
		weir_iterator *iterator = data_iterate(dataset, NULL);
		int64_t number = 0;

		cr_assert_eq(data_next(iterator, &number, NULL), WEIR_OK);
		counts[number]++;
		cr_assert_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
		weir_dataset_release(dataset);
	}
	for (int i = 0; i < 8; i++)
		chi += (counts[i] - 1000.0) * (counts[i] - 1000.0) / 1000.0;
	cr_expect_lt(chi, 29.9, "chi-squared is %g", chi);
}

Test(dataset, seed_iteration_and_position_give_the_same_rest)
{
	weir_dataset *dataset = data_repeat(data_shuffle(data_range(0, 20), 7, NULL, 0), 3);
	struct data_list whole, rest;
	struct weir_iterator_options options = {WEIR_ITERATOR_OPTIONS_INIT};
	weir_iterator *first = data_iterate(dataset, NULL), *second = NULL;

	data_take_some(first, 60, &whole);
	options.iteration = weir_iterator_iteration(first);
	options.position = 33;
	cr_assert_eq(weir_iterator_create(dataset, &options, &second, NULL), WEIR_OK);
	cr_expect_eq(weir_iterator_position(second), 33);
	data_take_some(second, 60, &rest);
	cr_expect_eq(weir_iterator_position(second), 60);
	cr_assert_eq(rest.count, 27);
	cr_expect_eq(memcmp(rest.at, whole.at + 33, 27 * sizeof(rest.at[0])), 0);
	cr_expect_eq(weir_iterator_destroy(first, NULL), WEIR_OK);
	cr_expect_eq(weir_iterator_destroy(second, NULL), WEIR_OK);
	weir_dataset_release(dataset);
}

/* -- memory ------------------------------------------------------------------------------------ */

/* Everything at once: each failing allocation is a status, nothing leaks, and no element is lost. */
static enum weir_status read_all(const weir_allocator *allocator, void *context)
{
	const uint64_t seed = 3;
	struct weir_dataset_options plain = {WEIR_DATASET_OPTIONS_INIT, .allocator = allocator}, options = plain;
	struct weir_iterator_options reading = {WEIR_ITERATOR_OPTIONS_INIT, .pool = context, .allocator = allocator};
	weir_dataset *stage[8] = {NULL};
	weir_iterator *iterator = NULL;
	enum weir_status status = weir_dataset_range(0, 40, 1, &plain, &stage[0], NULL), first = WEIR_OK;
	int64_t sum = 0;
	size_t rows = 0;

	options.seed = &seed;
	if (status == WEIR_OK)
		status = weir_dataset_shuffle(stage[0], 20, &options, &stage[1], NULL);
	options = plain;
	options.at_once = 3;
	if (status == WEIR_OK)
		status = weir_dataset_map(stage[1], twice, NULL, &options, &stage[2], NULL);
	if (status == WEIR_OK)
		status = weir_dataset_prefetch(stage[2], 2, &plain, &stage[3], NULL);
	if (status == WEIR_OK)
		status = weir_dataset_batch(stage[3], 7, &plain, &stage[4], NULL);
	if (status == WEIR_OK)
		status = weir_dataset_repeat(stage[4], 2, &plain, &stage[5], NULL);
	if (status == WEIR_OK)
		status = weir_dataset_zip(&stage[5], 1, &plain, &stage[6], NULL);
	if (status == WEIR_OK)
		status = weir_dataset_concatenate(&stage[6], 1, &plain, &stage[7], NULL);
	if (status == WEIR_OK)
		status = weir_iterator_create(stage[7], &reading, &iterator, NULL);
	while (status == WEIR_OK) {
		weir_tensor *part = NULL;
		enum weir_status got = weir_iterator_next(iterator, WEIR_NO_DEADLINE, NULL, &part, 1, NULL);

		if (got == WEIR_OUT_OF_RANGE)
			break;
		if (got == WEIR_OK) {
			for (int64_t i = 0; i < weir_tensor_element_count(part); i++, rows++)
				sum += ((const int64_t *)weir_tensor_data(part))[i];
		} else {
			first = first == WEIR_OK ? got : first;
		}
		weir_tensor_release(part);
	}
	if (status == WEIR_OK) {
		cr_expect_eq(rows, 80);
		cr_expect_eq(sum, 2 * 2 * 39 * 40 / 2);
	}
	cr_expect_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
	for (size_t i = 0; i < 8; i++)
		weir_dataset_release(stage[i]);
	return status == WEIR_OK ? first : status;
}

/* Memory is missing for a batch of one input: no pair is torn, and a take counts no element. */
static enum weir_status read_pairs(const weir_allocator *allocator, void *context)
{
	struct weir_dataset_options plain = {WEIR_DATASET_OPTIONS_INIT, .allocator = allocator};
	struct weir_iterator_options reading = {WEIR_ITERATOR_OPTIONS_INIT, .allocator = allocator};
	weir_dataset *range = data_range(0, 12), *batches[2] = {NULL, NULL}, *zip = NULL, *some = NULL;
	weir_iterator *iterator = NULL;
	enum weir_status first = WEIR_OK, status = weir_dataset_batch(range, 2, &plain, &batches[0], NULL);
	int64_t pairs = 0;

	(void)context;
	if (status == WEIR_OK)
		status = weir_dataset_batch(range, 2, &plain, &batches[1], NULL);
	if (status == WEIR_OK)
		status = weir_dataset_zip(batches, 2, &plain, &zip, NULL);
	if (status == WEIR_OK)
		status = weir_dataset_take(zip, 5, &plain, &some, NULL);
	if (status == WEIR_OK)
		status = weir_iterator_create(some, &reading, &iterator, NULL);
	while (status == WEIR_OK) {
		weir_tensor *parts[2] = {NULL, NULL};
		enum weir_status got = weir_iterator_next(iterator, WEIR_NO_DEADLINE, NULL, parts, 2, NULL);

		if (got == WEIR_OUT_OF_RANGE)
			break;
		first = first == WEIR_OK ? got : first;
		if (got == WEIR_OK) {
			cr_expect_eq(data_number(parts[0]), 2 * pairs);
			cr_expect_eq(data_number(parts[1]), 2 * pairs);
			pairs++;
			cr_expect_eq(weir_iterator_position(iterator), (uint64_t)pairs);
		}
		weir_tensor_release(parts[0]);
		weir_tensor_release(parts[1]);
	}
	if (status == WEIR_OK)
		cr_expect_eq(pairs, 5);
	cr_expect_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
	weir_dataset_release(range);
	weir_dataset_release(batches[0]);
	weir_dataset_release(batches[1]);
	weir_dataset_release(zip);
	weir_dataset_release(some);
	return status == WEIR_OK ? first : status;
}

Test(dataset, memory_that_is_missing_tears_no_pair)
{
	cr_expect_gt(fail_each_allocation(read_pairs, NULL), 10);
}

Test(dataset, each_allocation_that_fails_loses_nothing)
{
	cr_expect_gt(fail_each_allocation(read_all, NULL), 20);
}
