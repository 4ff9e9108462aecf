/*
 * test_conformance_fifo.c - the rows of FIFO queues (conformance_rows.tsv) that need no graph.
 */
#include "conformance_queue.h"

/* -- creating ---------------------------------------------------------------------------------- */

static void expect_component(const weir_tensor_queue *queue, size_t i, enum weir_dtype dtype, const weir_shape *shape,
                             const char *name)
{
	struct weir_tensor_component got;

	cr_assert_eq(weir_tensor_queue_component(queue, i, &got), WEIR_OK);
	cr_expect_eq(got.dtype, dtype);
	cr_expect_eq(got.shape != NULL, shape != NULL);
	cr_expect(shape == NULL || weir_shape_equal(got.shape, shape));
	cr_expect_eq(got.name != NULL, name != NULL);
	cr_expect(name == NULL || strcmp(got.name, name) == 0);
}

Test(conformance_fifo, FIFO_001_what_a_queue_was_made_with_is_read_back)
{
	weir_tensor_queue *queue = queue_of(&fifo_kind, 10, &(struct weir_tensor_component){WEIR_F32, NULL, NULL}, 1);

	cr_expect_eq(weir_tensor_queue_capacity(queue), 10);
	cr_expect_eq(weir_tensor_queue_component_count(queue), 1);
	expect_component(queue, 0, WEIR_F32, NULL, NULL);
	cr_expect_str_eq(weir_tensor_queue_name(queue), "test");
	end_queue(queue);
}

Test(conformance_fifo, FIFO_002_two_dtypes_are_read_back)
{
	weir_tensor_queue *queue =
		queue_of(&fifo_kind, 5, (struct weir_tensor_component[]){{WEIR_I32, NULL, NULL}, {WEIR_F32, NULL, NULL}}, 2);

	cr_expect_eq(weir_tensor_queue_component_count(queue), 2);
	expect_component(queue, 0, WEIR_I32, NULL, NULL);
	expect_component(queue, 1, WEIR_F32, NULL, NULL);
	end_queue(queue);
}

Test(conformance_fifo, FIFO_003_shapes_are_read_back)
{
	weir_shape matrix = {.rank = 3, .dims = {1, 1, 2}}, vector = vector_shape(8);
	weir_tensor_queue *queue = queue_of(
		&fifo_kind, 5, (struct weir_tensor_component[]){{WEIR_I32, &matrix, NULL}, {WEIR_F32, &vector, NULL}}, 2);

	expect_component(queue, 0, WEIR_I32, &matrix, NULL);
	expect_component(queue, 1, WEIR_F32, &vector, NULL);
	end_queue(queue);
}

Test(conformance_fifo, FIFO_076_names_are_read_back)
{
	weir_tensor_queue *queue =
		queue_of(&fifo_kind, 5, (struct weir_tensor_component[]){{WEIR_I32, NULL, "i"}, {WEIR_F32, NULL, "j"}}, 2);

	expect_component(queue, 0, WEIR_I32, NULL, "i");
	expect_component(queue, 1, WEIR_F32, NULL, "j");
	end_queue(queue);
}

Test(conformance_fifo, FIFO_077_names_and_shapes_are_read_back)
{
	weir_shape matrix = {.rank = 3, .dims = {1, 1, 2}}, vector = vector_shape(8);
	weir_tensor_queue *queue = queue_of(
		&fifo_kind, 5, (struct weir_tensor_component[]){{WEIR_I32, &matrix, "i"}, {WEIR_F32, &vector, "f"}}, 2);

	expect_component(queue, 0, WEIR_I32, &matrix, "i");
	expect_component(queue, 1, WEIR_F32, &vector, "f");
	end_queue(queue);
}

/* -- items ------------------------------------------------------------------------------------- */

Test(conformance_fifo, FIFO_004_enqueue)
{
	enqueue_makes_size_one(&fifo_kind);
}

static weir_tensor *half(uint16_t bits)
{
	weir_tensor *tensor = NULL;

	cr_assert_eq(weir_tensor_copy_of(WEIR_F16, &scalar_shape, &bits, NULL, &tensor), WEIR_OK);
	return tensor;
}

Test(conformance_fifo, FIFO_005_enqueue_half)
{
	weir_tensor_queue *queue = queue_of(&fifo_kind, 10, &(struct weir_tensor_component){WEIR_F16, NULL, NULL}, 1);

	put_tuple(queue, half(0x4900), NULL);
	cr_expect_eq(weir_tensor_queue_size_approx(queue), 1);
	end_queue(queue);
}

Test(conformance_fifo, FIFO_013_dequeue_half)
{
	weir_tensor_queue *queue =
		queue_of(&fifo_kind, 10, &(struct weir_tensor_component){WEIR_F16, &scalar_shape, NULL}, 1);

	for (uint16_t i = 0; i < 3; i++)
		put_tuple(queue, half((uint16_t)(0x4900 + i)), NULL);
	for (uint16_t i = 0; i < 3; i++) {
		weir_tensor *got;

		cr_assert_eq(weir_tensor_queue_dequeue(queue, &got, 1, 0, NULL, NULL), WEIR_OK);
		cr_expect_eq(*(const uint16_t *)weir_tensor_data(got), 0x4900 + i);
		weir_tensor_release(got);
	}
	end_queue(queue);
}

Test(conformance_fifo, FIFO_007_enqueue_many_with_shape)
{
	rows_of_two_components_are_counted(&fifo_kind);
}

Test(conformance_fifo, FIFO_009_two_queues_share_nothing)
{
	weir_tensor_queue *one = numbers_queue(&fifo_kind, 10), *other = numbers_queue(&fifo_kind, 10);

	put_numbers(one, 10, 1);
	put_numbers(other, 20, 2);
	cr_expect_eq(weir_tensor_queue_size_approx(one), 1);
	cr_expect_eq(weir_tensor_queue_size_approx(other), 2);
	expect_next_numbers(one, 10, 1);
	expect_next_numbers(other, 20, 2);
	destroy_tensors(one);
	end_queue(other);
}

Test(conformance_fifo, FIFO_012_dequeue)
{
	three_come_out(&fifo_kind);
}

Test(conformance_fifo, FIFO_014_multi_enqueue_and_dequeue)
{
	pairs_stay_together(&fifo_kind);
}

Test(conformance_fifo, FIFO_015_queue_size_empty)
{
	a_new_queue_is_empty(&fifo_kind);
}

Test(conformance_fifo, FIFO_016_queue_size_after_enqueue_and_dequeue)
{
	size_follows_enqueue_and_dequeue(&fifo_kind);
}

Test(conformance_fifo, FIFO_017_enqueue_many)
{
	rows_come_out_singly(&fifo_kind);
}

Test(conformance_fifo, FIFO_018_empty_enqueue_many)
{
	no_rows_leave_nothing(&fifo_kind);
}

Test(conformance_fifo, FIFO_020_empty_dequeue_up_to)
{
	a_batch_of_none_is_empty(&fifo_kind, DEQUEUE_UP_TO);
}

Test(conformance_fifo, FIFO_021_empty_dequeue_many_with_no_shape)
{
	batches_need_shapes(&fifo_kind, DEQUEUE_MANY);
}

Test(conformance_fifo, FIFO_022_multi_enqueue_many)
{
	rows_of_pairs_come_out_singly(&fifo_kind);
}

Test(conformance_fifo, FIFO_023_dequeue_many)
{
	batches_partition_ten(&fifo_kind, DEQUEUE_MANY, 4);
}

Test(conformance_fifo, FIFO_024_dequeue_up_to_no_blocking)
{
	batches_partition_ten(&fifo_kind, DEQUEUE_UP_TO, 4);
}

Test(conformance_fifo, FIFO_025_multi_dequeue_many)
{
	batches_of_pairs_partition_ten(&fifo_kind, DEQUEUE_MANY);
}

Test(conformance_fifo, FIFO_026_multi_dequeue_up_to_no_blocking)
{
	batches_of_pairs_partition_ten(&fifo_kind, DEQUEUE_UP_TO);
}

Test(conformance_fifo, FIFO_029_enqueue_many_empty_type_conversion)
{
	no_rows_of_another_dtype_are_refused(&fifo_kind);
}

Test(conformance_fifo, FIFO_040_dtypes)
{
	each_dtype_round_trips(&fifo_kind);
}

Test(conformance_fifo, FIFO_043_batch_size_mismatch)
{
	unequal_rows_are_refused(&fifo_kind);
}

Test(conformance_fifo, FIFO_044_enqueue_wrong_shape_at_runtime)
{
	weir_tensor_queue *queue = two_shapes_queue(&fifo_kind, matrix_shape(3, 3));

	expect_wrong_shape(queue, matrix_shape(3, 4), "must be [3,3]", "got [3,4]");
	end_queue(queue);
}

Test(conformance_fifo, FIFO_045_enqueue_dequeue_many_wrong_shape)
{
	weir_tensor_queue *queue = two_shapes_queue(&fifo_kind, (weir_shape){.rank = 3, .dims = {2, 3, 3}});

	expect_wrong_shape(queue, (weir_shape){.rank = 4, .dims = {2, 2, 3, 4}}, "[n] + [2,3,3]", "got [2,2,3,4]");
	end_queue(queue);
}

/* -- names ------------------------------------------------------------------------------------- */

static void expect_no_arrangement(const weir_tensor_queue *queue, const struct weir_named_tensor named[], size_t count,
                                  const char *why)
{
	weir_tensor *tuple[WEIR_TENSOR_QUEUE_MAX_COMPONENTS] = {NULL};
	weir_error error = {0};

	cr_expect_eq(
		weir_tensor_queue_arrange(queue, named, count, tuple, weir_tensor_queue_component_count(queue), &error),
		WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, why), "%s", error.message);
	cr_expect_null(tuple[0]);
}

Test(conformance_fifo, FIFO_011_named_tensors_need_a_queue_with_names)
{
	weir_tensor_queue *queue =
		queue_of(&fifo_kind, 5, &(struct weir_tensor_component){WEIR_I32, &scalar_shape, NULL}, 1);
	weir_tensor *one = number(1);

	expect_no_arrangement(queue, (struct weir_named_tensor[]){{"number", one}}, 1, "component 0 has no name");
	weir_tensor_release(one);
	end_queue(queue);
}

Test(conformance_fifo, FIFO_041_one_component_by_name)
{
	weir_tensor_queue *queue = numbers_queue(&fifo_kind, 10);
	weir_tensor *one = number(40), *rows = numbers_of(vector_shape(2), 41), *tuple[1];
	struct weir_tensor_component component;

	expect_no_arrangement(queue, (struct weir_named_tensor[]){{"other", one}}, 1, "no component is named \"other\"");
	expect_no_arrangement(queue, (struct weir_named_tensor[]){{"number", one}, {"other", one}}, 2,
	                      "no component is named \"other\"");
	expect_no_arrangement(queue, (struct weir_named_tensor[]){{"number", one}, {"number", one}}, 2, "given twice");
	expect_no_arrangement(queue, (struct weir_named_tensor[]){{"number", one}}, 0, "\"number\" is missing");
	cr_assert_eq(weir_tensor_queue_arrange(queue, &(struct weir_named_tensor){"number", one}, 1, tuple, 1, NULL),
	             WEIR_OK);
	cr_expect_eq(weir_tensor_queue_enqueue(queue, tuple, 1, 0, NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_tensor_queue_arrange(queue, &(struct weir_named_tensor){"number", rows}, 1, tuple, 1, NULL),
	             WEIR_OK);
	cr_expect_eq(weir_tensor_queue_enqueue_many(queue, tuple, 1, 0, NULL, NULL, NULL), WEIR_OK);
	/* The queue knows the name of a dequeued tensor. */
	cr_assert_eq(weir_tensor_queue_component(queue, 0, &component), WEIR_OK);
	cr_expect_str_eq(component.name, "number");
	expect_next_numbers(queue, 40, 3);
	weir_tensor_release(one);
	weir_tensor_release(rows);
	end_queue(queue);
}

Test(conformance_fifo, FIFO_042_several_components_by_name_in_any_order)
{
	weir_tensor_queue *queue = queue_of(&fifo_kind, 10,
	                                    (struct weir_tensor_component[]){{WEIR_I32, &scalar_shape, "number"},
	                                                                     {WEIR_BYTES, &scalar_shape, "text"},
	                                                                     {WEIR_I32, &scalar_shape, "other"}},
	                                    3);
	weir_tensor *n = number(1), *other = number(2), *text, *tuple[3], *got[3];

	cr_assert_eq(weir_tensor_copy_of(WEIR_BYTES, &scalar_shape, &(weir_bytes){"weir", 4}, NULL, &text), WEIR_OK);
	expect_no_arrangement(queue, (struct weir_named_tensor[]){{"number", n}, {"other", other}}, 2,
	                      "\"text\" is missing");
	expect_no_arrangement(
		queue, (struct weir_named_tensor[]){{"number", n}, {"text", text}, {"other", other}, {"one more", n}}, 4,
		"no component is named \"one more\"");
	cr_assert_eq(
		weir_tensor_queue_arrange(queue, (struct weir_named_tensor[]){{"other", other}, {"number", n}, {"text", text}},
	                              3, tuple, 3, NULL),
		WEIR_OK);
	cr_assert_eq(weir_tensor_queue_enqueue(queue, tuple, 3, 0, NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_tensor_queue_dequeue(queue, got, 3, 0, NULL, NULL), WEIR_OK);
	cr_expect_eq(got[0], n);
	cr_expect_eq(got[1], text);
	cr_expect_eq(got[2], other);
	for (size_t i = 0; i < 3; i++) {
		weir_tensor_release(tuple[i]);
		weir_tensor_release(got[i]);
	}
	end_queue(queue);
}

/* -- calls that wait --------------------------------------------------------------------------- */

Test(conformance_fifo, FIFO_048_enqueue_and_blocking_dequeue)
{
	blocked_dequeues_are_served(&fifo_kind);
}

Test(conformance_fifo, FIFO_049_big_dequeue_many)
{
	a_batch_larger_than_the_capacity_waits_for_all(&fifo_kind, DEQUEUE_MANY);
}

Test(conformance_fifo, FIFO_050_big_enqueue_many)
{
	rows_beyond_the_capacity_wait_for_room(&fifo_kind);
}

Test(conformance_fifo, FIFO_063_blocking_enqueue_to_full_queue)
{
	a_blocked_enqueue_gets_the_room_of_a_dequeue(&fifo_kind);
}

Test(conformance_fifo, FIFO_064_blocking_enqueue_many_to_full_queue)
{
	blocked_rows_go_in_as_room_appears(&fifo_kind);
}

Test(conformance_fifo, FIFO_073_blocking_dequeue_many)
{
	a_blocked_batch_is_served(&fifo_kind, DEQUEUE_MANY);
}

Test(conformance_fifo, FIFO_074_blocking_dequeue_up_to)
{
	a_blocked_batch_is_served(&fifo_kind, DEQUEUE_UP_TO);
}

/* -- closing ----------------------------------------------------------------------------------- */

Test(conformance_fifo, FIFO_034_dequeue_from_closed_queue)
{
	a_closed_queue_is_drained(&fifo_kind);
}

Test(conformance_fifo, FIFO_052_blocking_dequeue_from_closed_queue)
{
	a_close_ends_the_dequeue_after_the_last(&fifo_kind);
}

Test(conformance_fifo, FIFO_053_blocking_dequeue_from_closed_empty_queue)
{
	a_close_ends_a_blocked_dequeue(&fifo_kind, DEQUEUE);
}

Test(conformance_fifo, FIFO_054_blocking_dequeue_many_from_closed_queue)
{
	a_close_ends_the_second_batch(&fifo_kind, 4);
}

Test(conformance_fifo, FIFO_055_blocking_dequeue_many_but_not_all_from_closed_queue)
{
	a_close_ends_the_second_batch(&fifo_kind, 3);
}

Test(conformance_fifo, FIFO_056_dequeue_up_to_from_closed_queue_returns_remainder)
{
	up_to_gets_the_remainder(&fifo_kind);
}

Test(conformance_fifo, FIFO_057_enqueue_many_larger_than_capacity_with_concurrent_dequeue_many)
{
	rows_larger_than_the_capacity_meet_batches(&fifo_kind);
}

Test(conformance_fifo, FIFO_059_blocking_dequeue_many_from_closed_empty_queue)
{
	a_close_ends_a_blocked_dequeue(&fifo_kind, DEQUEUE_MANY);
}

Test(conformance_fifo, FIFO_060_blocking_dequeue_up_to_from_closed_empty_queue)
{
	a_close_ends_a_blocked_dequeue(&fifo_kind, DEQUEUE_UP_TO);
}

Test(conformance_fifo, FIFO_061_enqueue_to_closed_queue)
{
	a_closed_queue_refuses(&fifo_kind, ENQUEUE);
}

Test(conformance_fifo, FIFO_062_enqueue_many_to_closed_queue)
{
	a_closed_queue_refuses(&fifo_kind, ENQUEUE_MANY);
}

Test(conformance_fifo, FIFO_065_blocking_enqueue_before_close)
{
	what_waited_before_the_close_goes_in(&fifo_kind, ENQUEUE);
}

/* -- many threads ------------------------------------------------------------------------------ */

Test(conformance_fifo, FIFO_046_parallel_enqueue)
{
	threads_put(&fifo_kind, 1);
}

Test(conformance_fifo, FIFO_047_parallel_dequeue)
{
	threads_take_equal_parts(&fifo_kind, DEQUEUE, 1);
}

Test(conformance_fifo, FIFO_067_parallel_enqueue_many)
{
	threads_put(&fifo_kind, 100);
}

Test(conformance_fifo, FIFO_068_parallel_dequeue_many)
{
	threads_take_equal_parts(&fifo_kind, DEQUEUE_MANY, 100);
}

/* A thread that enqueues into a queue that is nearly full, or dequeues from it. */
struct traffic {
	weir_tensor_queue *queue;
	weir_tensor *item; /* NULL: this thread dequeues */
	enum weir_status status;
};

static void *drive(void *context)
{
	struct traffic *traffic = context;

	for (int i = 0; i < 100 && traffic->status == WEIR_OK; i++) {
		weir_tensor *got = NULL;

		if (traffic->item != NULL)
			traffic->status = weir_tensor_queue_enqueue(traffic->queue, &traffic->item, 1, in_good_time(), NULL, NULL);
		else
			traffic->status = weir_tensor_queue_dequeue(traffic->queue, &got, 1, in_good_time(), NULL, NULL);
		weir_tensor_release(got);
	}
	return NULL;
}

Test(conformance_fifo, FIFO_070_parallel_enqueue_and_dequeue)
{
	weir_tensor_queue *queue = numbers_queue(&fifo_kind, 50);
	struct traffic sides[2 * KIT_THREADS];
	pthread_t threads[2 * KIT_THREADS];
	weir_tensor *item = number(49);

	put_numbers(queue, 0, 49);
	for (size_t i = 0; i < 2 * KIT_THREADS; i++) {
		sides[i] = (struct traffic){queue, i % 2 == 0 ? item : NULL, WEIR_OK};
		cr_assert_eq(pthread_create(&threads[i], NULL, drive, &sides[i]), 0);
	}
	for (size_t i = 0; i < 2 * KIT_THREADS; i++) {
		cr_assert_eq(pthread_join(threads[i], NULL), 0);
		cr_expect_eq(sides[i].status, WEIR_OK);
	}
	cr_expect_eq(weir_tensor_queue_size_approx(queue), 49);
	weir_tensor_release(item);
	end_queue(queue);
}

Test(conformance_fifo, FIFO_071_mixture_of_enqueue_and_enqueue_many)
{
	mixed_enqueues_keep_their_order(&fifo_kind);
}

Test(conformance_fifo, FIFO_072_mixture_of_dequeue_and_dequeue_many)
{
	weir_tensor_queue *queue = numbers_queue(&fifo_kind, 10);
	struct errand putter;
	struct taken taken = {.count = 0};
	unsigned seed = 5;

	begin_errand(&putter, ENQUEUE_MANY, queue, 0, 250);
	while (taken.count < 250) {
		size_t left = 250 - taken.count, n = (size_t)(rand_r(&seed) % 21);

		if (rand_r(&seed) % 10 < 5)
			take(queue, &taken);
		else
			(void)take_batch(queue, DEQUEUE_MANY, n < left ? n : left, &taken);
	}
	end_errand(&putter, WEIR_OK);
	expect_taken(&fifo_kind, &taken, 0, 250);
	cr_expect_eq(weir_tensor_queue_size_approx(queue), 0);
	end_queue(queue);
}
