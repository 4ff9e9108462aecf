/*
 * tensor_queue_kit.h - tensor queues for tests, tensors of consecutive numbers, and a count of the
 * living tensors.
 */
#ifndef TENSOR_QUEUE_KIT_H
#define TENSOR_QUEUE_KIT_H

#include <stdlib.h>
#include <weir/reclaim.h>
#include <weir/flow/tensor_queue.h>

#include "tuples/tuple.h"
#include "queue_kit.h"

static const weir_shape scalar_shape = {.rank = 0};

static inline weir_shape vector_shape(int64_t length)
{
	return (weir_shape){.rank = 1, .dims = {length}};
}

static inline weir_shape matrix_shape(int64_t rows, int64_t columns)
{
	return (weir_shape){.rank = 2, .dims = {rows, columns}};
}

/* -- tensors ----------------------------------------------------------------------------------- */

/* The number of living tensors of numbers_of(). They wrap memory, whose release is counted. */
static _Atomic(int64_t) living_tensors;

static inline void numbers_released(void *context, void *data)
{
	(void)context;
	free(data);
	(void)weiri_fetch_sub_relaxed(&living_tensors, 1);
}

/* An i32 tensor whose elements are first, first + 1, ... */
static inline weir_tensor *numbers_of(weir_shape shape, int32_t first)
{
	weir_tensor *tensor = NULL;
	int64_t elements = 0;
	int32_t *data;

	cr_assert_eq(weir_shape_element_count(&shape, &elements), WEIR_OK);
	data = malloc((size_t)(elements + 1) * sizeof(*data));
	cr_assert_not_null(data);
	for (int64_t i = 0; i < elements; i++)
		data[i] = first + (int32_t)i;
	(void)weiri_fetch_add_relaxed(&living_tensors, 1);
	cr_assert_eq(weir_tensor_wrap(WEIR_I32, &shape, data, numbers_released, NULL, NULL, &tensor), WEIR_OK);
	return tensor;
}

/* An i32 scalar. */
static inline weir_tensor *number(int32_t value)
{
	return numbers_of(scalar_shape, value);
}

/* The first element of an i32 tensor. */
static inline int32_t value_of(const weir_tensor *tensor)
{
	return *(const int32_t *)weir_tensor_data(tensor);
}

static inline void expect_values(const weir_tensor *tensor, weir_shape shape, const int32_t values[])
{
	char expected[WEIR_SHAPE_TEXT_SIZE], got[WEIR_SHAPE_TEXT_SIZE];
	int64_t elements = weir_tensor_element_count(tensor);

	cr_assert(weir_shape_equal(weir_tensor_shape(tensor), &shape), "shape %s, not %s",
	          weir_shape_text(weir_tensor_shape(tensor), got, sizeof(got)),
	          weir_shape_text(&shape, expected, sizeof(expected)));
	for (int64_t i = 0; i < elements; i++)
		cr_assert_eq(((const int32_t *)weir_tensor_data(tensor))[i], values[i], "element %lld", (long long)i);
}

/* -- queues ------------------------------------------------------------------------------------ */

static inline weir_tensor_queue *tensor_queue_with(struct weir_tensor_queue_options options)
{
	weir_tensor_queue *queue = NULL;
	weir_error error = {0};

	options.struct_size = sizeof(options);
	cr_assert_eq(weir_tensor_queue_create(&options, &queue, &error), WEIR_OK, "%s", error.message);
	return queue;
}

/* A queue with one component, an i32 scalar. */
static inline weir_tensor_queue *scalar_queue(size_t capacity)
{
	struct weir_tensor_component component = {WEIR_I32, &scalar_shape, "label"};

	return tensor_queue_with((struct weir_tensor_queue_options){
		.capacity = capacity, .components = &component, .component_count = 1, .name = "test"});
}

/* A queue with two components: "image" of shape [2], and "label", a scalar. Both are i32. */
static inline weir_tensor_queue *pair_queue(size_t capacity, enum weir_queue_order order)
{
	weir_shape image = vector_shape(2);
	struct weir_tensor_component components[] = {{WEIR_I32, &image, "image"}, {WEIR_I32, &scalar_shape, "label"}};

	return tensor_queue_with((struct weir_tensor_queue_options){.capacity = capacity,
	                                                            .order = order,
	                                                            .seed = 3,
	                                                            .components = components,
	                                                            .component_count = 2,
	                                                            .name = "test"});
}

static inline void destroy_tensors(weir_tensor_queue *queue)
{
	weir_error error = {0};

	cr_assert_eq(weir_tensor_queue_destroy(queue, &error), WEIR_OK, "%s", error.message);
}

static inline void expect_no_tensor_left(void)
{
	/* If a section was left open, the flush would not end in time. */
	cr_expect_eq(weir_reclaim_flush(in_good_time()), WEIR_OK);
	cr_expect_eq(weiri_load_relaxed(&living_tensors), 0);
}

/* Enqueues a tuple without waiting, and releases the references of the caller. */
static inline void put_tuple(weir_tensor_queue *queue, weir_tensor *first, weir_tensor *second)
{
	weir_tensor *tuple[] = {first, second};
	weir_error error = {0};

	cr_assert_eq(weir_tensor_queue_enqueue(queue, tuple, second != NULL ? 2 : 1, 0, NULL, &error), WEIR_OK, "%s",
	             error.message);
	weir_tensor_release(first);
	weir_tensor_release(second);
}

static inline void put_numbers(weir_tensor_queue *queue, int32_t first, int32_t count)
{
	for (int32_t i = 0; i < count; i++)
		put_tuple(queue, number(first + i), NULL);
}

/* The next tuples of a queue of scalars are first, first + 1, ... */
static inline void expect_next_numbers(weir_tensor_queue *queue, int32_t first, int32_t count)
{
	for (int32_t i = first; i < first + count; i++) {
		weir_tensor *got = NULL;

		cr_assert_eq(weir_tensor_queue_dequeue(queue, &got, 1, 0, NULL, NULL), WEIR_OK, "tuple %d", i);
		cr_assert_eq(value_of(got), i);
		weir_tensor_release(got);
	}
}

#endif
