/*
 * test_dataset_map.c - maps and filters: what their functions give, and what is made of it if it is wrong.
 */
#include "dataset_kit.h"

#include <stdio.h>
#include <weir/weir.h>

Test(dataset_map, an_error_of_a_map_comes_in_its_place)
{
	int64_t every = 3;
	weir_dataset *dataset = data_map(data_range(1, 6), data_fail_at_multiples, &every, 0, 0);
	weir_iterator *iterator = data_iterate(dataset, NULL);
	const int64_t expected[] = {1, 2, DATA_ERROR, 4, 5};
	weir_error error;

	weir_dataset_release(dataset);
	for (size_t i = 0; i < 5; i++) {
		int64_t number = 0;

		if (expected[i] != DATA_ERROR) {
			cr_expect_eq(data_next(iterator, &number, &error), WEIR_OK);
			cr_expect_eq(number, expected[i]);
			continue;
		}
		cr_expect_eq(data_next(iterator, &number, &error), WEIR_ABORTED);
		cr_expect_str_eq(error.message, "map of range: 3 is a multiple of 3");
	}
	cr_expect_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
}

static enum weir_status end_at_once(void *context, weir_tensor *const in[], weir_tensor *out[], weir_error *error)
{
	(void)context, (void)in, (void)out, (void)error;
	return WEIR_OUT_OF_RANGE;
}

Test(dataset_map, a_function_cannot_end_a_dataset)
{
	weir_dataset *dataset = data_map(data_range(0, 2), end_at_once, NULL, 0, 0);
	weir_iterator *iterator = data_iterate(dataset, NULL);
	weir_error error;
	int64_t number;

	weir_dataset_release(dataset);
	cr_expect_eq(data_next(iterator, &number, &error), WEIR_FAILED_PRECONDITION);
	cr_expect_str_eq(error.message,
	                 "map of range: the function returned WEIR_OUT_OF_RANGE, which means nothing for one element");
	cr_expect_eq(data_next(iterator, &number, &error), WEIR_FAILED_PRECONDITION);
	cr_expect_eq(data_next(iterator, &number, &error), WEIR_OUT_OF_RANGE);
	cr_expect_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
}

static enum weir_status split_sign(void *context, weir_tensor *const in[], weir_tensor *out[], weir_error *error)
{
	int64_t number = data_number(in[0]);

	(void)context, (void)error;
	out[0] = weir_tensor_retain(in[0]);
	return weir_tensor_scalar_bool(number < 0, &out[1]);
}

static enum weir_status drop_sign(void *context, weir_tensor *const in[], weir_tensor *out[], weir_error *error)
{
	(void)context, (void)error;
	out[0] = weir_tensor_retain(in[0]);
	return WEIR_OK;
}

Test(dataset_map, a_map_may_change_the_number_of_components)
{
	const enum weir_dtype dtypes[2] = {WEIR_I64, WEIR_BOOL};
	struct weir_dataset_options wide = {WEIR_DATASET_OPTIONS_INIT, .dtypes = dtypes, .width = 2};
	struct weir_dataset_options narrow = {WEIR_DATASET_OPTIONS_INIT, .dtypes = dtypes, .width = 1};
	weir_dataset *range = data_range(-2, 2), *split = NULL, *dropped = NULL;
	struct data_list list;

	cr_assert_eq(weir_dataset_map(range, split_sign, NULL, &wide, &split, NULL), WEIR_OK);
	cr_assert_eq(weir_dataset_map(split, drop_sign, NULL, &narrow, &dropped, NULL), WEIR_OK);
	cr_expect_eq(weir_dataset_width(split), 2);
	data_read(dropped, NULL, &list);
	data_expect_range(&list, -2, 2);
	weir_dataset_release(split);
	weir_dataset_release(range);
}

/* Element n has one fault, or none: what it gives tells which. */
enum fault { NONE, NO_FIRST, NO_SECOND, OTHER_TYPE, FAILED, TOO_WIDE };

static enum weir_status give_with_a_fault(void *context, weir_tensor *const in[], weir_tensor *out[], weir_error *error)
{
	int64_t fault = data_number(in[0]);

	(void)context, (void)error;
	if (fault != NO_FIRST)
		out[0] = weir_tensor_retain(in[0]);
	if (fault == OTHER_TYPE)
		out[1] = weir_tensor_retain(in[0]);
	else if (fault != NO_SECOND && weir_tensor_scalar_bool(true, &out[1]) != WEIR_OK)
		return WEIR_RESOURCE_EXHAUSTED;
	if (fault >= TOO_WIDE)
		out[2 + fault - TOO_WIDE] = weir_tensor_retain(in[0]);
	return fault == FAILED ? WEIR_ABORTED : WEIR_OK;
}

static void expect_refused(weir_iterator *iterator, const char *message)
{
	weir_tensor *parts[2] = {NULL, NULL};
	weir_error error;

	cr_expect_eq(weir_iterator_next(iterator, 0, NULL, parts, 2, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, message);
	cr_expect(parts[0] == NULL && parts[1] == NULL);
}

Test(dataset_map, what_a_map_gives_is_checked_and_released)
{
	const enum weir_dtype dtypes[2] = {WEIR_I64, WEIR_BOOL};
	struct weir_dataset_options wide = {WEIR_DATASET_OPTIONS_INIT, .dtypes = dtypes, .width = 2};
	weir_dataset *range = data_range(NONE, (int64_t)TOO_WIDE + WEIR_DATASET_MAX_WIDTH - 2), *map = NULL;
	weir_tensor *parts[2] = {NULL, NULL};
	weir_iterator *iterator;
	char message[128];

	cr_assert_eq(weir_dataset_map(range, give_with_a_fault, NULL, &wide, &map, NULL), WEIR_OK);
	iterator = data_iterate(map, NULL);
	cr_assert_eq(weir_iterator_next(iterator, 0, NULL, parts, 2, NULL), WEIR_OK);
	cr_expect_eq(data_number(parts[0]), NONE);
	weir_tensor_release(parts[0]);
	weir_tensor_release(parts[1]);
	expect_refused(iterator, "map of range: component 0: the function gave nothing, expected i64");
	expect_refused(iterator, "map of range: component 1: the function gave nothing, expected bool");
	expect_refused(iterator, "map of range: component 1: the function gave i64, expected bool");
	cr_expect_eq(weir_iterator_next(iterator, 0, NULL, parts, 2, NULL), WEIR_ABORTED);
	for (int given = 3; given <= WEIR_DATASET_MAX_WIDTH; given++) {
		(void)snprintf(message, sizeof(message), "map of range: the function gave %d components, expected 2", given);
		expect_refused(iterator, message);
	}
	cr_expect_eq(weir_iterator_next(iterator, 0, NULL, parts, 2, NULL), WEIR_OUT_OF_RANGE);
	weir_dataset_release(map);
	weir_dataset_release(range);
	cr_expect_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
}

static enum weir_status give_all(void *context, weir_tensor *const in[], weir_tensor *out[], weir_error *error)
{
	(void)context, (void)error;
	for (size_t i = 0; i < WEIR_DATASET_MAX_WIDTH; i++)
		out[i] = weir_tensor_retain(in[0]);
	return WEIR_OK;
}

Test(dataset_map, a_map_may_give_as_many_components_as_an_element_may_have)
{
	enum weir_dtype dtypes[WEIR_DATASET_MAX_WIDTH];
	struct weir_dataset_options wide = {WEIR_DATASET_OPTIONS_INIT, .dtypes = dtypes, .width = WEIR_DATASET_MAX_WIDTH};
	weir_dataset *range = data_range(7, 8), *map = NULL;
	weir_tensor *parts[WEIR_DATASET_MAX_WIDTH];
	weir_iterator *iterator;

	for (size_t i = 0; i < WEIR_DATASET_MAX_WIDTH; i++)
		dtypes[i] = WEIR_I64;
	cr_assert_eq(weir_dataset_map(range, give_all, NULL, &wide, &map, NULL), WEIR_OK);
	iterator = data_iterate(map, NULL);
	cr_assert_eq(weir_iterator_next(iterator, 0, NULL, parts, WEIR_DATASET_MAX_WIDTH, NULL), WEIR_OK);
	for (size_t i = 0; i < WEIR_DATASET_MAX_WIDTH; i++) {
		cr_expect_eq(data_number(parts[i]), 7);
		weir_tensor_release(parts[i]);
	}
	weir_dataset_release(map);
	weir_dataset_release(range);
	cr_expect_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
}

static enum weir_status keep_even(void *context, weir_tensor *const in[], bool *keep, weir_error *error)
{
	(void)context, (void)error;
	*keep = data_number(in[0]) % 2 == 0;
	return data_number(in[0]) == 5 ? WEIR_DATA_LOSS : WEIR_OK;
}

Test(dataset_map, a_filter_drops_what_it_does_not_keep)
{
	struct data_list list;

	data_read(data_filter(data_range(0, 9), keep_even, NULL), NULL, &list);
	cr_assert_eq(list.count, 6);
	cr_expect_eq(list.at[0], 0);
	cr_expect_eq(list.at[1], 2);
	cr_expect_eq(list.at[2], 4);
	cr_expect_eq(list.at[3], DATA_ERROR);
	cr_expect_eq(list.at[4], 6);
	cr_expect_eq(list.at[5], 8);
}
