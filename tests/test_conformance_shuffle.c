/*
 * test_conformance_shuffle.c - the rows of shuffle queues (conformance_rows.tsv) that need no
 * graph.
 */
#include "conformance_queue.h"

static weir_tensor_queue *shuffled_numbers(size_t capacity, size_t min_after_dequeue, uint64_t seed)
{
	struct weir_tensor_component component = {WEIR_I32, &scalar_shape, "number"};

	return tensor_queue_with((struct weir_tensor_queue_options){.capacity = capacity,
	                                                            .order = WEIR_QUEUE_SHUFFLE,
	                                                            .min_after_dequeue = min_after_dequeue,
	                                                            .seed = seed,
	                                                            .components = &component,
	                                                            .component_count = 1,
	                                                            .name = "test"});
}

/* -- items ------------------------------------------------------------------------------------- */

Test(conformance_shuffle, RSQ_001_enqueue)
{
	enqueue_makes_size_one(&shuffle_kind);
}

Test(conformance_shuffle, RSQ_002_enqueue_with_shape)
{
	shape_is_checked(&shuffle_kind);
}

Test(conformance_shuffle, RSQ_003_enqueue_many_with_shape)
{
	shape_is_checked(&shuffle_kind);
	rows_of_two_components_are_counted(&shuffle_kind);
}

Test(conformance_shuffle, RSQ_007_dequeue)
{
	three_come_out(&shuffle_kind);
}

Test(conformance_shuffle, RSQ_009_multi_enqueue_and_dequeue)
{
	pairs_stay_together(&shuffle_kind);
}

Test(conformance_shuffle, RSQ_010_queue_size_empty)
{
	a_new_queue_is_empty(&shuffle_kind);
}

Test(conformance_shuffle, RSQ_011_queue_size_after_enqueue_and_dequeue)
{
	size_follows_enqueue_and_dequeue(&shuffle_kind);
}

Test(conformance_shuffle, RSQ_012_enqueue_many)
{
	rows_come_out_singly(&shuffle_kind);
}

Test(conformance_shuffle, RSQ_013_empty_enqueue_many)
{
	no_rows_leave_nothing(&shuffle_kind);
}

Test(conformance_shuffle, RSQ_015_empty_dequeue_up_to)
{
	a_batch_of_none_is_empty(&shuffle_kind, DEQUEUE_UP_TO);
}

Test(conformance_shuffle, RSQ_016_empty_dequeue_many_with_no_shape)
{
	batches_need_shapes(&shuffle_kind, DEQUEUE_MANY);
}

Test(conformance_shuffle, RSQ_017_empty_dequeue_up_to_with_no_shape)
{
	batches_need_shapes(&shuffle_kind, DEQUEUE_UP_TO);
}

Test(conformance_shuffle, RSQ_018_multi_enqueue_many)
{
	rows_of_pairs_come_out_singly(&shuffle_kind);
}

Test(conformance_shuffle, RSQ_019_dequeue_many)
{
	batches_partition_ten(&shuffle_kind, DEQUEUE_MANY, 5);
}

Test(conformance_shuffle, RSQ_020_dequeue_up_to_no_blocking)
{
	batches_partition_ten(&shuffle_kind, DEQUEUE_UP_TO, 5);
}

Test(conformance_shuffle, RSQ_021_multi_dequeue_many)
{
	batches_of_pairs_partition_ten(&shuffle_kind, DEQUEUE_MANY);
}

Test(conformance_shuffle, RSQ_022_multi_dequeue_up_to_no_blocking)
{
	batches_of_pairs_partition_ten(&shuffle_kind, DEQUEUE_UP_TO);
}

Test(conformance_shuffle, RSQ_023_high_dimension)
{
	items_of_rank_four_come_in_batches(&shuffle_kind);
}

/* -- calls that wait --------------------------------------------------------------------------- */

Test(conformance_shuffle, RSQ_008_enqueue_and_blocking_dequeue)
{
	blocked_dequeues_are_served(&shuffle_kind);
}

Test(conformance_shuffle, RSQ_028_blocking_dequeue_many)
{
	a_blocked_batch_is_served(&shuffle_kind, DEQUEUE_MANY);
}

Test(conformance_shuffle, RSQ_029_blocking_dequeue_up_to)
{
	a_blocked_batch_is_served(&shuffle_kind, DEQUEUE_UP_TO);
}

Test(conformance_shuffle, RSQ_043_blocking_enqueue_to_full_queue)
{
	a_blocked_enqueue_gets_the_room_of_a_dequeue(&shuffle_kind);
}

Test(conformance_shuffle, RSQ_044_blocking_enqueue_many_to_full_queue)
{
	blocked_rows_go_in_as_room_appears(&shuffle_kind);
}

Test(conformance_shuffle, RSQ_056_big_enqueue_many)
{
	rows_beyond_the_capacity_wait_for_room(&shuffle_kind);
}

Test(conformance_shuffle, RSQ_057_big_dequeue_many)
{
	a_batch_larger_than_the_capacity_waits_for_all(&shuffle_kind, DEQUEUE_MANY);
}

/* -- closing ----------------------------------------------------------------------------------- */

Test(conformance_shuffle, RSQ_033_the_minimum_stays_until_the_close)
{
	weir_tensor_queue *queue = shuffled_numbers(10, 2, 0);
	struct taken taken = {.count = 0};
	struct errand blocked;

	put_rows(queue, 10, 4);
	take(queue, &taken);
	take(queue, &taken);
	begin_blocked(&blocked, DEQUEUE, queue, 0, 0, 1);
	cr_expect_eq(weir_tensor_queue_size_approx(queue), 2);
	close_queue(queue);
	end_errand(&blocked, WEIR_OK);
	taken.values[taken.count++] = blocked.taken.values[0];
	take(queue, &taken);
	expect_all(&taken, 10, 4);
	expect_exhausted(queue);
	end_queue(queue);
}

/*
 * The batch collects two items at once. A third would go below the minimum, until the close lifts
 * it.
 */
Test(conformance_shuffle, RSQ_037_up_to_waits_for_the_close_to_lift_the_minimum)
{
	weir_tensor_queue *queue = shuffled_numbers(10, 2, 0);
	struct taken taken = {.count = 0};
	struct errand blocked;

	put_rows(queue, 10, 4);
	begin_blocked(&blocked, DEQUEUE_UP_TO, queue, 0, 3, 1);
	cr_expect_eq(weir_tensor_queue_size_approx(queue), 2, "two are collected");
	close_queue(queue);
	end_errand(&blocked, WEIR_OK);
	cr_expect_eq(blocked.taken.count, 3);
	taken = blocked.taken;
	cr_expect_eq(take_batch(queue, DEQUEUE_UP_TO, 3, &taken), 1);
	expect_all(&taken, 10, 4);
	expect_exhausted(queue);
	end_queue(queue);
}

Test(conformance_shuffle, RSQ_034_blocking_dequeue_from_closed_empty_queue)
{
	a_close_ends_a_blocked_dequeue(&shuffle_kind, DEQUEUE);
}

Test(conformance_shuffle, RSQ_035_blocking_dequeue_many_from_closed_queue)
{
	a_close_ends_the_second_batch(&shuffle_kind, 4);
}

Test(conformance_shuffle, RSQ_036_blocking_dequeue_up_to_from_closed_queue_returns_remainder)
{
	up_to_gets_the_remainder(&shuffle_kind);
}

Test(conformance_shuffle, RSQ_038_blocking_dequeue_many_from_closed_queue_with_elements_remaining)
{
	a_failed_batch_gives_back(&shuffle_kind);
}

Test(conformance_shuffle, RSQ_039_blocking_dequeue_many_from_closed_empty_queue)
{
	a_close_ends_a_blocked_dequeue(&shuffle_kind, DEQUEUE_MANY);
}

Test(conformance_shuffle, RSQ_040_blocking_dequeue_up_to_from_closed_empty_queue)
{
	a_close_ends_a_blocked_dequeue(&shuffle_kind, DEQUEUE_UP_TO);
}

Test(conformance_shuffle, RSQ_041_enqueue_to_closed_queue)
{
	a_closed_queue_refuses(&shuffle_kind, ENQUEUE);
}

Test(conformance_shuffle, RSQ_042_enqueue_many_to_closed_queue)
{
	a_closed_queue_refuses(&shuffle_kind, ENQUEUE_MANY);
}

Test(conformance_shuffle, RSQ_045_blocking_enqueue_to_closed_queue)
{
	what_waited_before_the_close_goes_in(&shuffle_kind, ENQUEUE);
}

/* -- many threads ------------------------------------------------------------------------------ */

Test(conformance_shuffle, RSQ_006_parallel_dequeue)
{
	threads_take_equal_parts(&shuffle_kind, DEQUEUE, 1);
}

Test(conformance_shuffle, RSQ_024_parallel_enqueue_many)
{
	threads_put(&shuffle_kind, 100);
}

Test(conformance_shuffle, RSQ_025_parallel_dequeue_many)
{
	threads_take_equal_parts(&shuffle_kind, DEQUEUE_MANY, 100);
}

Test(conformance_shuffle, RSQ_027_parallel_up_to_of_random_sizes_partitions)
{
	int64_t sizes[KIT_THREADS];
	unsigned seed = 3;

	for (size_t i = 0; i < KIT_THREADS; i++)
		sizes[i] = 1 + (int64_t)(rand_r(&seed) % 99);
	threads_take(&shuffle_kind, DEQUEUE_UP_TO, sizes);
}

/* -- orders ------------------------------------------------------------------------------------ */

/* The order in which the numbers 0 .. 99 leave. The second half goes in when the first has left. */
static void order_of(struct taken *order, uint64_t seed, enum call_kind how)
{
	weir_tensor_queue *queue = shuffled_numbers(100, 0, seed);

	order->count = 0;
	for (int32_t half = 0; half < 2; half++) {
		put_rows(queue, 50 * half, 50);
		if (how == DEQUEUE)
			for (int i = 0; i < 50; i++)
				take(queue, order);
		else
			(void)take_batch(queue, how, 50, order);
	}
	expect_all(order, 0, 100);
	end_queue(queue);
}

/*
 * Two seeds and both halves give four orders. They must differ: two of them agree by chance once in
 * 50!. The order of one seed must be the same each time.
 */
static void orders_differ(enum call_kind how)
{
	struct taken one, other, again;
	size_t agree_halves[2] = {0}, agree_seeds[2] = {0};

	order_of(&one, 98, how);
	order_of(&other, 99, how);
	order_of(&again, 98, how);
	for (size_t i = 0; i < 50; i++) {
		agree_halves[0] += one.values[i] == one.values[i + 50] - 50;
		agree_halves[1] += other.values[i] == other.values[i + 50] - 50;
		agree_seeds[0] += one.values[i] == other.values[i];
		agree_seeds[1] += one.values[i + 50] == other.values[i + 50];
	}
	for (size_t i = 0; i < 2; i++) {
		cr_expect_lt(agree_halves[i], 50);
		cr_expect_lt(agree_seeds[i], 50);
	}
	cr_expect_arr_eq(one.values, again.values, 100 * sizeof(one.values[0]));
}

Test(conformance_shuffle, RSQ_053_dequeue_many_in_different_orders)
{
	orders_differ(DEQUEUE_MANY);
}

Test(conformance_shuffle, RSQ_054_dequeue_up_to_in_different_orders)
{
	orders_differ(DEQUEUE_UP_TO);
}

Test(conformance_shuffle, RSQ_055_dequeue_in_different_orders)
{
	orders_differ(DEQUEUE);
}
