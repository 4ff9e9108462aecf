/*
 * test_conformance_padding.c - the rows of queues that pad (conformance_rows.tsv) that need no
 * graph.
 */
#include "conformance_queue.h"

/* -- creating ---------------------------------------------------------------------------------- */

static void expect_shape(const weir_tensor_queue *queue, size_t i, weir_shape shape)
{
	struct weir_tensor_component got;

	cr_assert_eq(weir_tensor_queue_component(queue, i, &got), WEIR_OK);
	cr_assert(weir_shape_equal(got.shape, &shape));
}

Test(conformance_padding, PAD_001_an_unknown_dim_is_read_back_as_minus_one)
{
	weir_shape shape = vector_shape(-5);
	weir_tensor_queue *queue = queue_of(&padding_kind, 10, &(struct weir_tensor_component){WEIR_F32, &shape, NULL}, 1);

	cr_expect_eq(weir_tensor_queue_capacity(queue), 10);
	expect_shape(queue, 0, vector_shape(-1));
	end_queue(queue);
}

Test(conformance_padding, PAD_002_scalar_shapes_are_read_back)
{
	weir_tensor_queue *queue =
		queue_of(&padding_kind, 5,
	             (struct weir_tensor_component[]){{WEIR_I32, &scalar_shape, NULL}, {WEIR_F32, &scalar_shape, NULL}}, 2);

	cr_expect_eq(weir_tensor_queue_component_count(queue), 2);
	expect_shape(queue, 0, scalar_shape);
	expect_shape(queue, 1, scalar_shape);
	end_queue(queue);
}

Test(conformance_padding, PAD_003_full_shapes_are_read_back)
{
	weir_shape block = {.rank = 3, .dims = {1, 1, 2}}, vector = vector_shape(8);
	weir_tensor_queue *queue = queue_of(
		&padding_kind, 5, (struct weir_tensor_component[]){{WEIR_I32, &block, NULL}, {WEIR_F32, &vector, NULL}}, 2);

	expect_shape(queue, 0, block);
	expect_shape(queue, 1, vector);
	end_queue(queue);
}

static void expect_no_queue(const struct weir_tensor_component components[], const char *why)
{
	struct weir_tensor_queue_options options = {WEIR_TENSOR_QUEUE_OPTIONS_INIT, .capacity = 10,
	                                            .flags = WEIR_TENSOR_QUEUE_PADDING, .components = components,
	                                            .component_count = 2};
	weir_tensor_queue *queue = NULL;
	weir_error error = {0};

	cr_expect_eq(weir_tensor_queue_create(&options, &queue, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_null(queue);
	cr_expect_not_null(strstr(error.message, why), "%s", error.message);
}

Test(conformance_padding, PAD_019_a_queue_without_shapes_is_refused)
{
	expect_no_queue((struct weir_tensor_component[]){{WEIR_I32, NULL, NULL}, {WEIR_F32, NULL, NULL}},
	                "component 0: a queue that pads needs a shape");
}

Test(conformance_padding, PAD_070_an_unknown_rank_is_refused)
{
	expect_no_queue((struct weir_tensor_component[]){{WEIR_I32, &scalar_shape, NULL}, {WEIR_F32, NULL, NULL}},
	                "component 1: a queue that pads needs a shape");
}

/* -- items ------------------------------------------------------------------------------------- */

Test(conformance_padding, PAD_004_enqueue)
{
	enqueue_makes_size_one(&padding_kind);
}

Test(conformance_padding, PAD_005_enqueue_with_shape)
{
	shape_is_checked(&padding_kind);
}

Test(conformance_padding, PAD_006_enqueue_many_with_shape)
{
	rows_of_two_components_are_counted(&padding_kind);
}

Test(conformance_padding, PAD_009_dequeue)
{
	three_come_out(&padding_kind);
}

Test(conformance_padding, PAD_011_multi_enqueue_and_dequeue)
{
	pairs_stay_together(&padding_kind);
}

Test(conformance_padding, PAD_012_queue_size_empty)
{
	a_new_queue_is_empty(&padding_kind);
}

Test(conformance_padding, PAD_013_queue_size_after_enqueue_and_dequeue)
{
	size_follows_enqueue_and_dequeue(&padding_kind);
}

Test(conformance_padding, PAD_014_enqueue_many)
{
	rows_come_out_singly(&padding_kind);
}

Test(conformance_padding, PAD_020_multi_enqueue_many)
{
	rows_of_pairs_come_out_singly(&padding_kind);
}

Test(conformance_padding, PAD_022_dequeue_many)
{
	batches_partition_ten(&padding_kind, DEQUEUE_MANY, 4);
}

Test(conformance_padding, PAD_023_dequeue_up_to_no_blocking)
{
	batches_partition_ten(&padding_kind, DEQUEUE_UP_TO, 4);
}

Test(conformance_padding, PAD_024_multi_dequeue_many)
{
	batches_of_pairs_partition_ten(&padding_kind, DEQUEUE_MANY);
}

Test(conformance_padding, PAD_028_high_dimension)
{
	items_of_rank_four_come_in_batches(&padding_kind);
}

Test(conformance_padding, PAD_031_batch_size_mismatch)
{
	unequal_rows_are_refused(&padding_kind);
}

Test(conformance_padding, PAD_032_enqueue_many_empty_type_conversion)
{
	no_rows_of_another_dtype_are_refused(&padding_kind);
}

Test(conformance_padding, PAD_033_enqueue_wrong_type)
{
	a_wrong_dtype_is_refused(&padding_kind);
}

Test(conformance_padding, PAD_061_does_not_lose_value)
{
	looking_at_the_size_takes_nothing(&padding_kind);
}

Test(conformance_padding, PAD_069_dtypes)
{
	each_dtype_round_trips(&padding_kind);
}

/* -- unknown dims ------------------------------------------------------------------------------ */

/* Items are numbers in a vector of any length, and strings in rows of two. */
static weir_tensor_queue *ragged_queue(void)
{
	weir_shape numbers = vector_shape(-1), strings = matrix_shape(-1, 2);

	return queue_of(
		&padding_kind, 10,
		(struct weir_tensor_component[]){{WEIR_I32, &numbers, "numbers"}, {WEIR_BYTES, &strings, "strings"}}, 2);
}

static weir_tensor *strings_of(int64_t rows, const char *text)
{
	weir_shape shape = matrix_shape(rows, 2);
	weir_bytes strings[8];
	weir_tensor *tensor;

	cr_assert_leq(rows, 4);
	for (int64_t i = 0; i < 2 * rows; i++)
		strings[i] = (weir_bytes){text, strlen(text)};
	cr_assert_eq(weir_tensor_copy_of(WEIR_BYTES, &shape, strings, NULL, &tensor), WEIR_OK);
	return tensor;
}

/* The item has `length` numbers from `first` on, and `length` rows of `text`. */
static void put_ragged(weir_tensor_queue *queue, int64_t length, int32_t first, const char *text)
{
	put_tuple(queue, numbers_of(vector_shape(length), first), strings_of(length, text));
}

/* Expects an empty batch, in which unknown dims are 0. */
static void expect_nothing_of(weir_tensor_queue *queue, enum call_kind how)
{
	weir_shape numbers = matrix_shape(0, 0), strings = {.rank = 3, .dims = {0, 0, 2}};
	weir_tensor *got[2];

	if (how == DEQUEUE_MANY)
		cr_assert_eq(weir_tensor_queue_dequeue_many(queue, 0, got, 2, 0, NULL, NULL), WEIR_OK);
	else
		cr_assert_eq(weir_tensor_queue_dequeue_up_to(queue, 0, got, 2, 0, NULL, NULL), WEIR_OK);
	cr_expect(weir_shape_equal(weir_tensor_shape(got[0]), &numbers));
	cr_expect(weir_shape_equal(weir_tensor_shape(got[1]), &strings));
	weir_tensor_release(got[0]);
	weir_tensor_release(got[1]);
}

static void a_batch_of_none_has_unknown_dims_zero(enum call_kind how)
{
	weir_tensor_queue *queue = ragged_queue();

	expect_nothing_of(queue, how);
	put_ragged(queue, 3, 10, "x");
	expect_nothing_of(queue, how);
	cr_expect_eq(weir_tensor_queue_size_approx(queue), 1);
	close_queue(queue);
	expect_nothing_of(queue, how);
	end_queue(queue);
}

Test(conformance_padding, PAD_017_empty_dequeue_many_with_dynamic_shape)
{
	a_batch_of_none_has_unknown_dims_zero(DEQUEUE_MANY);
}

Test(conformance_padding, PAD_018_empty_dequeue_up_to_with_dynamic_shape)
{
	a_batch_of_none_has_unknown_dims_zero(DEQUEUE_UP_TO);
}

Test(conformance_padding, PAD_021_multi_enqueue_many_with_partially_known_shapes)
{
	weir_tensor_queue *queue = ragged_queue();
	weir_shape strings = {.rank = 3, .dims = {2, 1, 2}};
	weir_tensor *rows[2] = {numbers_of(matrix_shape(2, 3), 10), NULL}, *got[2];

	cr_assert_eq(weir_tensor_copy_of(WEIR_BYTES, &strings, (weir_bytes[]){{"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}}, NULL,
	                                 &rows[1]),
	             WEIR_OK);
	cr_assert_eq(weir_tensor_queue_enqueue_many(queue, rows, 2, 0, NULL, NULL, NULL), WEIR_OK);
	weir_tensor_release(rows[0]);
	weir_tensor_release(rows[1]);
	for (int32_t i = 0; i < 2; i++) {
		weir_shape row = matrix_shape(1, 2);

		cr_assert_eq(weir_tensor_queue_dequeue(queue, got, 2, 0, NULL, NULL), WEIR_OK);
		expect_values(got[0], vector_shape(3), (int32_t[]){10 + 3 * i, 11 + 3 * i, 12 + 3 * i});
		cr_assert(weir_shape_equal(weir_tensor_shape(got[1]), &row));
		cr_expect_eq(((const weir_bytes *)weir_tensor_data(got[1]))[1].data[0], i == 0 ? 'b' : 'd');
		weir_tensor_release(got[0]);
		weir_tensor_release(got[1]);
	}
	end_queue(queue);
}

Test(conformance_padding, PAD_025_equal_lengths_are_not_padded)
{
	weir_tensor_queue *queue = ragged_queue();
	weir_shape strings = {.rank = 3, .dims = {2, 3, 2}};
	weir_tensor *got[2];

	put_ragged(queue, 3, 10, "x");
	put_ragged(queue, 3, 20, "y");
	cr_assert_eq(weir_tensor_queue_dequeue_many(queue, 2, got, 2, 0, NULL, NULL), WEIR_OK);
	expect_values(got[0], matrix_shape(2, 3), (int32_t[]){10, 11, 12, 20, 21, 22});
	cr_assert(weir_shape_equal(weir_tensor_shape(got[1]), &strings));
	for (size_t i = 0; i < 12; i++)
		cr_expect_eq(((const weir_bytes *)weir_tensor_data(got[1]))[i].data[0], i < 6 ? 'x' : 'y');
	weir_tensor_release(got[0]);
	weir_tensor_release(got[1]);
	end_queue(queue);
}

/*
 * Items of lengths 1, 3 and 2 leave in a batch, padded to 3. Then one of length 4 leaves as a
 * single item.
 */
static void ragged_items_are_padded(enum call_kind how)
{
	weir_tensor_queue *queue = ragged_queue();
	weir_shape strings = {.rank = 3, .dims = {3, 3, 2}};
	static const int64_t lengths[] = {1, 3, 2};
	const weir_bytes *texts;
	weir_tensor *got[2];

	put_ragged(queue, 1, 10, "one");
	put_ragged(queue, 3, 20, "three");
	put_ragged(queue, 2, 30, "two");
	put_ragged(queue, 4, 40, "four");
	if (how == DEQUEUE_MANY)
		cr_assert_eq(weir_tensor_queue_dequeue_many(queue, 3, got, 2, 0, NULL, NULL), WEIR_OK);
	else
		cr_assert_eq(weir_tensor_queue_dequeue_up_to(queue, 3, got, 2, 0, NULL, NULL), WEIR_OK);
	expect_values(got[0], matrix_shape(3, 3), (int32_t[]){10, 0, 0, 20, 21, 22, 30, 31, 0});
	cr_assert(weir_shape_equal(weir_tensor_shape(got[1]), &strings));
	texts = weir_tensor_data(got[1]);
	for (size_t row = 0; row < 3; row++) {
		static const size_t sizes[] = {3, 5, 3};

		for (int64_t i = 0; i < 6; i++)
			cr_expect_eq(texts[6 * row + (size_t)i].size, i < 2 * lengths[row] ? sizes[row] : 0);
	}
	weir_tensor_release(got[0]);
	weir_tensor_release(got[1]);
	cr_assert_eq(weir_tensor_queue_dequeue(queue, got, 2, 0, NULL, NULL), WEIR_OK);
	expect_values(got[0], vector_shape(4), (int32_t[]){40, 41, 42, 43});
	weir_tensor_release(got[0]);
	weir_tensor_release(got[1]);
	end_queue(queue);
}

Test(conformance_padding, PAD_026_multi_dequeue_many_of_variable_size_is_padded)
{
	ragged_items_are_padded(DEQUEUE_MANY);
}

Test(conformance_padding, PAD_027_multi_dequeue_up_to_of_variable_size_is_padded)
{
	ragged_items_are_padded(DEQUEUE_UP_TO);
}

/* Two inner dims are unknown: [4,?,4,?]. */
Test(conformance_padding, PAD_029_unknown_inner_dims_of_rank_four)
{
	weir_shape partial = {.rank = 4, .dims = {4, -1, 4, -1}}, batch = {.rank = 5, .dims = {2, 4, 3, 4, 2}};
	weir_tensor_queue *queue =
		queue_of(&padding_kind, 10, &(struct weir_tensor_component){WEIR_I32, &partial, NULL}, 1);
	const int32_t *values;
	weir_tensor *got;

	put_tuple(queue, numbers_of((weir_shape){.rank = 4, .dims = {4, 3, 4, 1}}, 1000), NULL);
	put_tuple(queue, numbers_of((weir_shape){.rank = 4, .dims = {4, 2, 4, 2}}, 2000), NULL);
	cr_assert_eq(weir_tensor_queue_dequeue_many(queue, 2, &got, 1, 0, NULL, NULL), WEIR_OK);
	cr_assert(weir_shape_equal(weir_tensor_shape(got), &batch));
	values = weir_tensor_data(got);
	for (int32_t i = 0; i < 2 * 96; i++) {
		int32_t item = i / 96, a = i / 24 % 4, b = i / 8 % 3, c = i / 2 % 4, d = i % 2;
		int32_t first = d < 1 ? 1000 + (a * 3 + b) * 4 + c : 0,
				second = b < 2 ? 2000 + ((a * 2 + b) * 4 + c) * 2 + d : 0;

		cr_assert_eq(values[i], item == 0 ? first : second, "element %d", i);
	}
	weir_tensor_release(got);
	end_queue(queue);
}

Test(conformance_padding, PAD_034_enqueue_wrong_partially_known_shape_at_runtime)
{
	weir_tensor_queue *queue = two_shapes_queue(&padding_kind, matrix_shape(-1, 3));

	expect_wrong_shape(queue, matrix_shape(3, 4), "must be [?,3]", "got [3,4]");
	end_queue(queue);
}

Test(conformance_padding, PAD_035_enqueue_dequeue_many_wrong_partially_known_shape)
{
	weir_tensor_queue *queue = two_shapes_queue(&padding_kind, (weir_shape){.rank = 3, .dims = {2, -1, 3}});

	expect_wrong_shape(queue, (weir_shape){.rank = 4, .dims = {2, 2, 3, 4}}, "[n] + [2,?,3]", "got [2,2,3,4]");
	end_queue(queue);
}

/* -- calls that wait --------------------------------------------------------------------------- */

Test(conformance_padding, PAD_010_enqueue_and_blocking_dequeue)
{
	blocked_dequeues_are_served(&padding_kind);
}

Test(conformance_padding, PAD_042_blocking_dequeue_many)
{
	a_blocked_batch_is_served(&padding_kind, DEQUEUE_MANY);
}

Test(conformance_padding, PAD_043_blocking_dequeue_up_to)
{
	a_blocked_batch_is_served(&padding_kind, DEQUEUE_UP_TO);
}

Test(conformance_padding, PAD_057_blocking_enqueue_to_full_queue)
{
	a_blocked_enqueue_gets_the_room_of_a_dequeue(&padding_kind);
}

Test(conformance_padding, PAD_067_big_enqueue_many)
{
	rows_beyond_the_capacity_wait_for_room(&padding_kind);
}

Test(conformance_padding, PAD_068_big_dequeue_many)
{
	a_batch_larger_than_the_capacity_waits_for_all(&padding_kind, DEQUEUE_MANY);
}

/* -- closing ----------------------------------------------------------------------------------- */

Test(conformance_padding, PAD_045_dequeue_from_closed_queue)
{
	a_closed_queue_is_drained(&padding_kind);
}

Test(conformance_padding, PAD_047_dequeue_up_to_from_closed_queue_returns_remainder)
{
	up_to_gets_the_remainder(&padding_kind);
}

Test(conformance_padding, PAD_048_blocking_dequeue_from_closed_empty_queue)
{
	a_close_ends_a_blocked_dequeue(&padding_kind, DEQUEUE);
}

Test(conformance_padding, PAD_049_blocking_dequeue_many_from_closed_queue)
{
	a_close_ends_the_second_batch(&padding_kind, 4);
}

Test(conformance_padding, PAD_051_enqueue_many_larger_than_capacity_with_concurrent_dequeue_many)
{
	rows_larger_than_the_capacity_meet_batches(&padding_kind);
}

Test(conformance_padding, PAD_052_closed_blocking_dequeue_many_restores_partial_batch)
{
	a_failed_batch_gives_back(&padding_kind);
}

Test(conformance_padding, PAD_053_blocking_dequeue_many_from_closed_empty_queue)
{
	a_close_ends_a_blocked_dequeue(&padding_kind, DEQUEUE_MANY);
}

Test(conformance_padding, PAD_055_enqueue_to_closed_queue)
{
	a_closed_queue_refuses(&padding_kind, ENQUEUE);
}

Test(conformance_padding, PAD_056_enqueue_many_to_closed_queue)
{
	a_closed_queue_refuses(&padding_kind, ENQUEUE_MANY);
}

Test(conformance_padding, PAD_059_blocking_enqueue_before_close)
{
	what_waited_before_the_close_goes_in(&padding_kind, ENQUEUE);
}

Test(conformance_padding, PAD_060_blocking_enqueue_many_before_close)
{
	what_waited_before_the_close_goes_in(&padding_kind, ENQUEUE_MANY);
}

/* -- many threads ------------------------------------------------------------------------------ */

Test(conformance_padding, PAD_007_parallel_enqueue)
{
	threads_put(&padding_kind, 1);
}

Test(conformance_padding, PAD_008_parallel_dequeue)
{
	threads_take_equal_parts(&padding_kind, DEQUEUE, 1);
}

Test(conformance_padding, PAD_036_parallel_enqueue_many)
{
	threads_put(&padding_kind, 100);
}

Test(conformance_padding, PAD_037_parallel_dequeue_many)
{
	threads_take_equal_parts(&padding_kind, DEQUEUE_MANY, 100);
}

Test(conformance_padding, PAD_038_parallel_dequeue_up_to)
{
	threads_take_equal_parts(&padding_kind, DEQUEUE_UP_TO, 100);
}

Test(conformance_padding, PAD_040_mixture_of_enqueue_and_enqueue_many)
{
	mixed_enqueues_keep_their_order(&padding_kind);
}
