/*
 * dataset_kit.h - for tests of datasets: numbers in, numbers out.
 */
#ifndef DATASET_KIT_H
#define DATASET_KIT_H

#include <criterion/criterion.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/dataset.h>

#include "base/atomic.h"

enum { DATA_MOST = 4096 };

/* What an iterator gave. An error stands as DATA_ERROR. */
struct data_list {
	size_t count;
	int64_t at[DATA_MOST];
};
#define DATA_ERROR INT64_MIN

static inline void data_ok(enum weir_status status, const weir_error *error)
{
	cr_assert_eq(status, WEIR_OK, "%s: %s", weir_status_name(status), error->message);
}

static inline weir_dataset *data_range(int64_t first, int64_t last)
{
	weir_error error = {.message = ""};
	weir_dataset *dataset = NULL;

	data_ok(weir_dataset_range(first, last, 1, NULL, &dataset, &error), &error);
	return dataset;
}

/* Each of these releases the input: a test builds a pipeline from the inside outwards. */
#define DATA_STAGE(call_, input_) \
	do { \
		weir_error error_ = {.message = ""}; \
		weir_dataset *out_ = NULL; \
		data_ok(call_, &error_); \
		weir_dataset_release(input_); \
		return out_; \
	} while (0)

static inline weir_dataset *data_batch(weir_dataset *input, size_t size, uint32_t flags)
{
	struct weir_dataset_options options = {WEIR_DATASET_OPTIONS_INIT, .flags = flags};

	DATA_STAGE(weir_dataset_batch(input, size, &options, &out_, &error_), input);
}

static inline weir_dataset *data_shuffle(weir_dataset *input, size_t buffer, const uint64_t *seed, uint32_t flags)
{
	struct weir_dataset_options options = {WEIR_DATASET_OPTIONS_INIT, .flags = flags, .seed = seed};

	DATA_STAGE(weir_dataset_shuffle(input, buffer, &options, &out_, &error_), input);
}

static inline weir_dataset *data_repeat(weir_dataset *input, int64_t times)
{
	DATA_STAGE(weir_dataset_repeat(input, times, NULL, &out_, &error_), input);
}

static inline weir_dataset *data_take(weir_dataset *input, uint64_t count)
{
	DATA_STAGE(weir_dataset_take(input, count, NULL, &out_, &error_), input);
}

static inline weir_dataset *data_skip(weir_dataset *input, uint64_t count)
{
	DATA_STAGE(weir_dataset_skip(input, count, NULL, &out_, &error_), input);
}

static inline weir_dataset *data_prefetch(weir_dataset *input, size_t size)
{
	DATA_STAGE(weir_dataset_prefetch(input, size, NULL, &out_, &error_), input);
}

static inline weir_dataset *data_cache(weir_dataset *input)
{
	DATA_STAGE(weir_dataset_cache(input, NULL, &out_, &error_), input);
}

static inline weir_dataset *data_map(weir_dataset *input, weir_dataset_map_fn *fn, void *context, size_t at_once,
                                     uint32_t flags)
{
	struct weir_dataset_options options = {WEIR_DATASET_OPTIONS_INIT, .flags = flags, .at_once = at_once};

	DATA_STAGE(weir_dataset_map(input, fn, context, &options, &out_, &error_), input);
}

static inline weir_dataset *data_filter(weir_dataset *input, weir_dataset_filter_fn *fn, void *context)
{
	DATA_STAGE(weir_dataset_filter(input, fn, context, NULL, &out_, &error_), input);
}

static inline weir_dataset *data_interleave(weir_dataset *input, weir_dataset_flat_fn *fn, void *context, size_t cycle,
                                            size_t block, size_t at_once, uint32_t flags)
{
	struct weir_dataset_options options = {WEIR_DATASET_OPTIONS_INIT, .flags = flags, .at_once = at_once,
	                                       .cycle = cycle, .block = block};

	DATA_STAGE(weir_dataset_interleave(input, fn, context, &options, &out_, &error_), input);
}

static inline weir_iterator *data_iterate(weir_dataset *dataset, weir_pool *pool)
{
	struct weir_iterator_options options = {WEIR_ITERATOR_OPTIONS_INIT, .pool = pool};
	weir_error error = {.message = ""};
	weir_iterator *iterator = NULL;

	data_ok(weir_iterator_create(dataset, &options, &iterator, &error), &error);
	return iterator;
}

/* The first number of the first component. */
static inline int64_t data_number(const weir_tensor *tensor)
{
	int64_t number;

	memcpy(&number, weir_tensor_data(tensor), sizeof(number));
	return number;
}

/* Takes one element of one component. Returns the status. */
static inline enum weir_status data_next(weir_iterator *iterator, int64_t *number, weir_error *error)
{
	weir_tensor *part = NULL;
	enum weir_status status = weir_iterator_next(iterator, WEIR_NO_DEADLINE, NULL, &part, 1, error);

	if (status != WEIR_OK)
		return status;
	*number = data_number(part);
	weir_tensor_release(part);
	return status;
}

/* Takes up to `most` elements or errors. */
static inline void data_take_some(weir_iterator *iterator, size_t most, struct data_list *list)
{
	list->count = 0;
	while (list->count < most && list->count < DATA_MOST) {
		int64_t number = DATA_ERROR;

		if (data_next(iterator, &number, NULL) == WEIR_OUT_OF_RANGE)
			return;
		list->at[list->count++] = number;
	}
}

/* Reads a dataset to its end, and releases it. The end must stay. */
static inline void data_read(weir_dataset *dataset, weir_pool *pool, struct data_list *list)
{
	weir_iterator *iterator = data_iterate(dataset, pool);
	int64_t number;

	weir_dataset_release(dataset);
	data_take_some(iterator, DATA_MOST, list);
	cr_assert_lt(list->count, (size_t)DATA_MOST, "it does not end");
	for (int i = 0; i < 2; i++)
		cr_expect_eq(data_next(iterator, &number, NULL), WEIR_OUT_OF_RANGE, "the end stays");
	cr_expect_eq(weir_iterator_position(iterator), list->count);
	cr_assert_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
}

static inline int data_compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static inline void data_sort(struct data_list *list)
{
	qsort(list->at, list->count, sizeof(list->at[0]), data_compare);
}

static inline bool data_equal(const struct data_list *a, const struct data_list *b)
{
	return a->count == b->count && memcmp(a->at, b->at, a->count * sizeof(a->at[0])) == 0;
}

/* Expects first, first + 1, ... up to last - 1. */
static inline void data_expect_range(const struct data_list *list, int64_t first, int64_t last)
{
	cr_assert_eq(list->count, (size_t)(last - first), "%zu elements, expected %lld", list->count,
	             (long long)(last - first));
	for (size_t i = 0; i < list->count; i++)
		cr_expect_eq(list->at[i], first + (int64_t)i, "element %zu is %lld", i, (long long)list->at[i]);
}

static inline weir_tensor *data_i64(int64_t number)
{
	weir_tensor *tensor = NULL;

	cr_assert_eq(weir_tensor_scalar_i64(number, &tensor), WEIR_OK);
	return tensor;
}

static inline weir_dataset *data_of_numbers(const int64_t numbers[], size_t count)
{
	weir_shape shape = {1, {(int64_t)count}};
	weir_tensor *tensor = NULL;
	weir_dataset *dataset = NULL;

	cr_assert_eq(weir_tensor_copy_of(WEIR_I64, &shape, numbers, NULL, &tensor), WEIR_OK);
	cr_assert_eq(weir_dataset_from_slices(&tensor, 1, NULL, &dataset, NULL), WEIR_OK);
	weir_tensor_release(tensor);
	return dataset;
}

/* Fails for multiples of *context. */
static inline enum weir_status data_fail_at_multiples(void *context, weir_tensor *const in[], weir_tensor *out[],
                                                      weir_error *error)
{
	int64_t number = data_number(in[0]), every = *(const int64_t *)context;

	if (number % every != 0)
		return weir_tensor_scalar_i64(number, &out[0]);
	out[0] = weir_tensor_retain(in[0]); /* released by the stage */
	(void)snprintf(error->message, sizeof(error->message), "%lld is a multiple of %lld", (long long)number,
	               (long long)every);
	return WEIR_ABORTED;
}

/* A map that changes nothing. */
static inline enum weir_status data_same(void *context, weir_tensor *const in[], weir_tensor *out[], weir_error *error)
{
	(void)context, (void)error;
	out[0] = weir_tensor_retain(in[0]);
	return WEIR_OK;
}

static inline weir_pool *data_pool(size_t threads)
{
	struct weir_pool_options options = {WEIR_POOL_OPTIONS_INIT, .threads = threads,
	                                    .flags = threads == 0 ? WEIR_POOL_NO_THREADS : 0};
	weir_pool *pool = NULL;

	cr_assert_eq(weir_pool_create(&options, &pool, NULL), WEIR_OK);
	return pool;
}

/* -- several threads ------------------------------------------------------------------------------ */

struct data_taker {
	weir_iterator *iterator;
	pthread_t thread;
	enum weir_status status;
	struct data_list list;
};

static inline void *data_take_all(void *context)
{
	struct data_taker *taker = context;

	taker->list.count = 0;
	for (;;) {
		int64_t number = DATA_ERROR;

		taker->status = data_next(taker->iterator, &number, NULL);
		if (taker->status == WEIR_OUT_OF_RANGE || taker->status == WEIR_CANCELLED)
			return NULL;
		taker->list.at[taker->list.count++] = number;
	}
}

/* Threads that take from one iterator get each of the numbers 0 to count - 1 once. Releases the dataset. */
static inline void data_each_once(size_t threads, weir_dataset *dataset, size_t count, weir_pool *pool)
{
	weir_iterator *iterator = data_iterate(dataset, pool);
	struct data_taker *takers = calloc(threads, sizeof(*takers));
	struct data_list all = {.count = 0};

	weir_dataset_release(dataset);
	for (size_t i = 0; i < threads; i++) {
		takers[i].iterator = iterator;
		cr_assert_eq(pthread_create(&takers[i].thread, NULL, data_take_all, &takers[i]), 0);
	}
	for (size_t i = 0; i < threads; i++) {
		(void)pthread_join(takers[i].thread, NULL);
		cr_expect_eq(takers[i].status, WEIR_OUT_OF_RANGE);
		memcpy(all.at + all.count, takers[i].list.at, takers[i].list.count * sizeof(all.at[0]));
		all.count += takers[i].list.count;
		for (size_t k = 1; k < takers[i].list.count; k++)
			cr_expect_gt(takers[i].list.at[k], takers[i].list.at[k - 1], "a thread's elements come in order");
	}
	data_sort(&all);
	data_expect_range(&all, 0, (int64_t)count);
	free(takers);
	cr_assert_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
}

#endif
