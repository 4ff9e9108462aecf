/*
 * conformance_queue.h - behaviours that several kinds of tensor queues have, each for any kind.
 *
 * The tests in test_conformance_*.c are the rows. Each calls one of these, or has a body of its
 * own.
 */
#ifndef CONFORMANCE_QUEUE_H
#define CONFORMANCE_QUEUE_H

#include "conformance_kit.h"

/* -- one by one -------------------------------------------------------------------------------- */

static inline void enqueue_makes_size_one(const struct kind *kind)
{
	weir_tensor_queue *queue = numbers_queue(kind, 10);

	cr_expect_eq(weir_tensor_queue_size_approx(queue), 0);
	put_numbers(queue, 10, 1);
	cr_expect_eq(weir_tensor_queue_size_approx(queue), 1);
	end_queue(queue);
}

static inline void a_new_queue_is_empty(const struct kind *kind)
{
	weir_tensor_queue *queue = numbers_queue(kind, 10);

	cr_expect_eq(weir_tensor_queue_size_approx(queue), 0);
	end_queue(queue);
}

static inline void size_follows_enqueue_and_dequeue(const struct kind *kind)
{
	weir_tensor_queue *queue = numbers_queue(kind, 10);
	struct taken taken = {.count = 0};

	put_numbers(queue, 37, 1);
	cr_expect_eq(weir_tensor_queue_size_approx(queue), 1);
	take(queue, &taken);
	cr_expect_eq(weir_tensor_queue_size_approx(queue), 0);
	expect_all(&taken, 37, 1);
	end_queue(queue);
}

static inline void three_come_out(const struct kind *kind)
{
	weir_tensor_queue *queue = numbers_queue(kind, 10);
	struct taken taken = {.count = 0};

	put_numbers(queue, 10, 3);
	for (int i = 0; i < 3; i++)
		take(queue, &taken);
	expect_taken(kind, &taken, 10, 3);
	end_queue(queue);
}

/* An item of shape [3] goes in, singly or as a row. A tensor of another shape is refused. */
static inline void shape_is_checked(const struct kind *kind)
{
	weir_shape shape = vector_shape(3);
	weir_tensor_queue *queue = queue_of(kind, 10, &(struct weir_tensor_component){WEIR_I32, &shape, "vector"}, 1);
	weir_tensor *wrong = numbers_of(matrix_shape(3, 2), 0), *row = numbers_of(matrix_shape(1, 3), 0);

	put_tuple(queue, numbers_of(shape, 1), NULL);
	cr_expect_eq(weir_tensor_queue_enqueue(queue, &wrong, 1, 0, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_queue_enqueue(queue, &row, 1, 0, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_queue_enqueue_many(queue, &wrong, 1, 0, NULL, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_queue_size_approx(queue), 1);
	cr_expect_eq(weir_tensor_queue_enqueue_many(queue, &row, 1, 0, NULL, NULL, NULL), WEIR_OK);
	cr_expect_eq(weir_tensor_queue_size_approx(queue), 2);
	weir_tensor_release(wrong);
	weir_tensor_release(row);
	end_queue(queue);
}

static inline void a_wrong_dtype_is_refused(const struct kind *kind)
{
	weir_tensor_queue *queue = pairs_queue(kind, 10);
	weir_tensor *tuple[2] = {number(1), NULL}, *rows[2] = {numbers_of(vector_shape(1), 1), NULL};
	weir_shape vector = vector_shape(2), matrix = matrix_shape(1, 2);
	weir_error error = {0};

	cr_assert_eq(weir_tensor_copy_of(WEIR_F32, &vector, (float[]){1, 2}, NULL, &tuple[1]), WEIR_OK);
	cr_assert_eq(weir_tensor_copy_of(WEIR_F32, &matrix, (float[]){1, 2}, NULL, &rows[1]), WEIR_OK);
	cr_expect_eq(weir_tensor_queue_enqueue(queue, tuple, 2, 0, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "component 1 (vector): dtype must be i32, got f32"), "%s", error.message);
	cr_expect_eq(weir_tensor_queue_enqueue_many(queue, rows, 2, 0, NULL, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "component 1 (vector): dtype must be i32, got f32"), "%s", error.message);
	cr_expect_eq(weir_tensor_queue_size_approx(queue), 0);
	for (size_t i = 0; i < 2; i++) {
		weir_tensor_release(tuple[i]);
		weir_tensor_release(rows[i]);
	}
	end_queue(queue);
}

/* Enqueues i and [10 i, 10 i + 1]. */
static inline void put_pair(weir_tensor_queue *queue, int32_t i)
{
	put_tuple(queue, number(i), numbers_of(vector_shape(2), 10 * i));
}

/* Checks that the two components belong together, and releases both. */
static inline void note_pair(struct taken *taken, weir_tensor *const got[])
{
	expect_values(got[1], vector_shape(2), (int32_t[]){10 * value_of(got[0]), 10 * value_of(got[0]) + 1});
	note_taken(taken, got[0]);
	weir_tensor_release(got[1]);
}

static inline void take_pair(weir_tensor_queue *queue, struct taken *taken)
{
	weir_tensor *got[2];

	cr_assert_eq(weir_tensor_queue_dequeue(queue, got, 2, in_good_time(), NULL, NULL), WEIR_OK);
	note_pair(taken, got);
}

static inline void pairs_stay_together(const struct kind *kind)
{
	weir_tensor_queue *queue = pairs_queue(kind, 10);
	struct taken taken = {.count = 0};

	for (int32_t i = 5; i < 8; i++)
		put_pair(queue, i);
	for (int32_t i = 5; i < 8; i++)
		take_pair(queue, &taken);
	expect_taken(kind, &taken, 5, 3);
	end_queue(queue);
}

static inline void looking_at_the_size_takes_nothing(const struct kind *kind)
{
	weir_tensor_queue *queue = numbers_queue(kind, 10);

	put_numbers(queue, 5, 1);
	for (int i = 0; i < 500; i++)
		cr_assert_eq(weir_tensor_queue_size_approx(queue), 1);
	expect_next_numbers(queue, 5, 1);
	end_queue(queue);
}

/* -- rows in ----------------------------------------------------------------------------------- */

/* Enqueues the rows first .. first + count - 1 of pairs. */
static inline void put_pair_rows(weir_tensor_queue *queue, int32_t first, int64_t count)
{
	weir_tensor *rows[2] = {numbers_of(vector_shape(count), first), NULL};
	weir_shape shape = matrix_shape(count, 2);
	int32_t vectors[32];

	cr_assert_leq(count, 16);
	for (int64_t i = 0; i < count; i++) {
		vectors[2 * i] = 10 * (first + (int32_t)i);
		vectors[2 * i + 1] = vectors[2 * i] + 1;
	}
	cr_assert_eq(weir_tensor_copy_of(WEIR_I32, &shape, vectors, NULL, &rows[1]), WEIR_OK);
	cr_assert_eq(weir_tensor_queue_enqueue_many(queue, rows, 2, 0, NULL, NULL, NULL), WEIR_OK);
	weir_tensor_release(rows[0]);
	weir_tensor_release(rows[1]);
}

static inline void rows_of_two_components_are_counted(const struct kind *kind)
{
	weir_tensor_queue *queue = pairs_queue(kind, 10);

	put_pair_rows(queue, 1, 4);
	cr_expect_eq(weir_tensor_queue_size_approx(queue), 4);
	end_queue(queue);
}

static inline void rows_come_out_singly(const struct kind *kind)
{
	weir_tensor_queue *queue = numbers_queue(kind, 10);

	for (int round = 0; round < 2; round++) {
		struct taken taken = {.count = 0};

		put_rows(queue, 10, 4);
		put_rows(queue, 14, 4);
		for (int i = 0; i < 8; i++)
			take(queue, &taken);
		expect_taken(kind, &taken, 10, 8);
	}
	end_queue(queue);
}

static inline void no_rows_leave_nothing(const struct kind *kind)
{
	weir_tensor_queue *queue = numbers_queue(kind, 10);

	put_rows(queue, 0, 0);
	cr_expect_eq(weir_tensor_queue_size_approx(queue), 0);
	end_queue(queue);
}

/* A tensor without rows still has a dtype, which is checked. */
static inline void no_rows_of_another_dtype_are_refused(const struct kind *kind)
{
	weir_tensor_queue *queue = pairs_queue(kind, 10);
	weir_shape none = vector_shape(0), none_of_two = matrix_shape(0, 2);
	weir_tensor *rows[2], *other;

	rows[0] = numbers_of(none, 0);
	rows[1] = numbers_of(none_of_two, 0);
	cr_assert_eq(weir_tensor_copy_of(WEIR_F32, &none_of_two, NULL, NULL, &other), WEIR_OK);
	cr_expect_eq(weir_tensor_queue_enqueue_many(queue, rows, 2, 0, NULL, NULL, NULL), WEIR_OK);
	cr_expect_eq(weir_tensor_queue_enqueue_many(queue, (weir_tensor *[]){rows[0], other}, 2, 0, NULL, NULL, NULL),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_queue_size_approx(queue), 0);
	weir_tensor_release(rows[0]);
	weir_tensor_release(rows[1]);
	weir_tensor_release(other);
	end_queue(queue);
}

static inline void rows_of_pairs_come_out_singly(const struct kind *kind)
{
	weir_tensor_queue *queue = pairs_queue(kind, 10);

	for (int round = 0; round < 2; round++) {
		struct taken taken = {.count = 0};

		put_pair_rows(queue, 10, 4);
		put_pair_rows(queue, 14, 4);
		for (int i = 0; i < 8; i++)
			take_pair(queue, &taken);
		expect_taken(kind, &taken, 10, 8);
	}
	end_queue(queue);
}

/* Components with different numbers of rows are refused, and nothing goes in. */
static inline void unequal_rows_are_refused(const struct kind *kind)
{
	weir_tensor_queue *queue =
		queue_of(kind, 10,
	             (struct weir_tensor_component[]){{WEIR_I32, &scalar_shape, NULL}, {WEIR_I32, &scalar_shape, NULL}}, 2);
	weir_tensor *rows[2] = {numbers_of(vector_shape(3), 0), numbers_of(vector_shape(4), 0)};
	weir_error error = {0};

	cr_expect_eq(weir_tensor_queue_enqueue_many(queue, rows, 2, 0, NULL, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "component 1 (1) has 4 rows, component 0 has 3"), "%s", error.message);
	cr_expect_eq(weir_tensor_queue_size_approx(queue), 0);
	weir_tensor_release(rows[0]);
	weir_tensor_release(rows[1]);
	end_queue(queue);
}

/* The message names component 1 and both shapes. */
static inline void expect_wrong_shape(weir_tensor_queue *queue, weir_shape wrong_shape, const char *expected,
                                      const char *got)
{
	int many = wrong_shape.rank == 4;
	weir_tensor *tuple[2] = {numbers_of(many ? (weir_shape){.rank = 3, .dims = {2, 2, 2}} : matrix_shape(2, 2), 0),
	                         numbers_of(wrong_shape, 0)};
	weir_error error = {0};

	if (many)
		cr_expect_eq(weir_tensor_queue_enqueue_many(queue, tuple, 2, 0, NULL, NULL, &error), WEIR_INVALID_ARGUMENT);
	else
		cr_expect_eq(weir_tensor_queue_enqueue(queue, tuple, 2, 0, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "component 1"), "%s", error.message);
	cr_expect_not_null(strstr(error.message, expected), "%s", error.message);
	cr_expect_not_null(strstr(error.message, got), "%s", error.message);
	cr_expect_eq(weir_tensor_queue_size_approx(queue), 0);
	weir_tensor_release(tuple[0]);
	weir_tensor_release(tuple[1]);
}

/* The components are i32 tensors of shapes [2,2] and `second`. */
static inline weir_tensor_queue *two_shapes_queue(const struct kind *kind, weir_shape second)
{
	weir_shape first = matrix_shape(2, 2);

	return queue_of(kind, 10, (struct weir_tensor_component[]){{WEIR_I32, &first, NULL}, {WEIR_I32, &second, NULL}}, 2);
}

static inline void each_dtype_round_trips(const struct kind *kind)
{
	enum { ROWS = 32 };
	static const enum weir_dtype dtypes[] = {WEIR_BOOL, WEIR_U8,  WEIR_I8,    WEIR_I16, WEIR_I32, WEIR_I64, WEIR_F16,
	                                         WEIR_F32,  WEIR_F64, WEIR_BYTES, WEIR_U16, WEIR_U32, WEIR_U64, WEIR_BF16};
	weir_shape rows = vector_shape(ROWS);

	for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++) {
		weir_tensor_queue *queue =
			queue_of(kind, ROWS, &(struct weir_tensor_component){dtypes[i], &scalar_shape, NULL}, 1);
		unsigned char bytes[ROWS * sizeof(double)];
		weir_bytes strings[ROWS];
		weir_tensor *in, *out;

		for (size_t k = 0; k < sizeof(bytes); k++)
			bytes[k] = dtypes[i] == WEIR_BOOL ? k % 2 : (unsigned char)(k * 37);
		for (size_t k = 0; k < ROWS; k++)
			strings[k] = (weir_bytes){(const char *)bytes + k, k};
		cr_assert_eq(
			weir_tensor_copy_of(dtypes[i], &rows, dtypes[i] == WEIR_BYTES ? (void *)strings : bytes, NULL, &in),
			WEIR_OK);
		cr_assert_eq(weir_tensor_queue_enqueue_many(queue, &in, 1, 0, NULL, NULL, NULL), WEIR_OK);
		weir_tensor_release(in);
		cr_assert_eq(weir_tensor_queue_dequeue_many(queue, ROWS, &out, 1, 0, NULL, NULL), WEIR_OK);
		cr_expect_eq(weir_tensor_dtype(out), dtypes[i]);
		cr_expect(weir_shape_equal(weir_tensor_shape(out), &rows));
		if (dtypes[i] != WEIR_BYTES)
			cr_expect_arr_eq(weir_tensor_data(out), bytes, ROWS * weir_dtype_size(dtypes[i]));
		for (size_t k = 0; dtypes[i] == WEIR_BYTES && k < ROWS; k++) {
			const weir_bytes *string = (const weir_bytes *)weir_tensor_data(out) + k;

			cr_assert_eq(string->size, k);
			cr_assert(k == 0 || memcmp(string->data, bytes + k, k) == 0);
		}
		weir_tensor_release(out);
		destroy_tensors(queue);
	}
}

/* -- batches out ------------------------------------------------------------------------------- */

/* Two dequeues of n by `how`, from a queue of 10 items. */
static inline void batches_partition_ten(const struct kind *kind, enum call_kind how, size_t n)
{
	weir_tensor_queue *queue = numbers_queue(kind, 10);
	struct taken taken = {.count = 0};

	put_rows(queue, 0, 10);
	cr_expect_eq(take_batch(queue, how, n, &taken), (size_t)n);
	cr_expect_eq(take_batch(queue, how, n, &taken), (size_t)n);
	if (kind->ordered)
		expect_taken(kind, &taken, 0, 2 * (size_t)n);
	while (weir_tensor_queue_size_approx(queue) != 0)
		take(queue, &taken);
	expect_taken(kind, &taken, 0, 10);
	end_queue(queue);
}

static inline void take_pair_batch(weir_tensor_queue *queue, enum call_kind how, size_t n, struct taken *taken)
{
	weir_tensor *got[2], *row[2];
	weir_shape numbers = vector_shape((int64_t)n), vectors = matrix_shape((int64_t)n, 2);

	if (how == DEQUEUE_MANY)
		cr_assert_eq(weir_tensor_queue_dequeue_many(queue, n, got, 2, 0, NULL, NULL), WEIR_OK);
	else
		cr_assert_eq(weir_tensor_queue_dequeue_up_to(queue, n, got, 2, 0, NULL, NULL), WEIR_OK);
	cr_assert(weir_shape_equal(weir_tensor_shape(got[0]), &numbers));
	cr_assert(weir_shape_equal(weir_tensor_shape(got[1]), &vectors));
	for (int64_t i = 0; i < (int64_t)n; i++) {
		cr_assert_eq(weir_tensor_row(got[0], i, &row[0]), WEIR_OK);
		cr_assert_eq(weir_tensor_row(got[1], i, &row[1]), WEIR_OK);
		note_pair(taken, row);
	}
	weir_tensor_release(got[0]);
	weir_tensor_release(got[1]);
}

/* Two batches of 4, then items one by one. */
static inline void batches_of_pairs_partition_ten(const struct kind *kind, enum call_kind how)
{
	weir_tensor_queue *queue = pairs_queue(kind, 10);
	struct taken taken = {.count = 0};

	put_pair_rows(queue, 0, 10);
	take_pair_batch(queue, how, 4, &taken);
	take_pair_batch(queue, how, 4, &taken);
	take_pair(queue, &taken);
	take_pair(queue, &taken);
	expect_taken(kind, &taken, 0, 10);
	end_queue(queue);
}

/* A batch of 0, from a queue with items and from an empty one. */
static inline void a_batch_of_none_is_empty(const struct kind *kind, enum call_kind how)
{
	weir_tensor_queue *queue = numbers_queue(kind, 10);
	struct taken taken = {.count = 0};

	cr_expect_eq(take_batch(queue, how, 0, &taken), 0);
	put_numbers(queue, 10, 3);
	cr_expect_eq(take_batch(queue, how, 0, &taken), 0);
	cr_expect_eq(weir_tensor_queue_size_approx(queue), 3);
	end_queue(queue);
}

static inline void batches_need_shapes(const struct kind *kind, enum call_kind how)
{
	weir_tensor_queue *queue = queue_of(kind, 10, &(struct weir_tensor_component){WEIR_I32, NULL, NULL}, 1);
	weir_tensor *got = NULL;

	for (int round = 0; round < 2; round++) {
		weir_error error = {0};

		if (how == DEQUEUE_MANY)
			cr_expect_eq(weir_tensor_queue_dequeue_many(queue, 0, &got, 1, 0, NULL, &error), WEIR_INVALID_ARGUMENT);
		else
			cr_expect_eq(weir_tensor_queue_dequeue_up_to(queue, 0, &got, 1, 0, NULL, &error), WEIR_INVALID_ARGUMENT);
		cr_expect_not_null(strstr(error.message, "specified shapes"), "%s", error.message);
		put_numbers(queue, 1, 1);
	}
	cr_expect_null(got);
	end_queue(queue);
}

static inline void items_of_rank_four_come_in_batches(const struct kind *kind)
{
	weir_shape shape = {.rank = 4, .dims = {4, 4, 4, 4}}, batch = {.rank = 5, .dims = {10, 4, 4, 4, 4}};
	weir_tensor_queue *queue = queue_of(kind, 10, &(struct weir_tensor_component){WEIR_I32, &shape, NULL}, 1);
	struct taken firsts = {.count = 0};
	weir_tensor *got, *row;

	for (int32_t i = 0; i < 10; i++)
		put_tuple(queue, numbers_of(shape, 256 * i), NULL);
	cr_assert_eq(weir_tensor_queue_dequeue_many(queue, 10, &got, 1, 0, NULL, NULL), WEIR_OK);
	cr_assert(weir_shape_equal(weir_tensor_shape(got), &batch));
	for (int64_t i = 0; i < 10; i++) {
		cr_assert_eq(weir_tensor_row(got, i, &row), WEIR_OK);
		for (int32_t k = 0; k < 256; k++)
			cr_assert_eq(((const int32_t *)weir_tensor_data(row))[k], value_of(row) + k);
		firsts.values[firsts.count++] = value_of(row) / 256;
		weir_tensor_release(row);
	}
	expect_taken(kind, &firsts, 0, 10);
	weir_tensor_release(got);
	end_queue(queue);
}

/* -- calls that wait --------------------------------------------------------------------------- */

static inline void blocked_dequeues_are_served(const struct kind *kind)
{
	weir_tensor_queue *queue = numbers_queue(kind, 3);
	struct errand takers[3];

	for (size_t i = 0; i < 3; i++)
		begin_blocked(&takers[i], DEQUEUE, queue, 0, 0, i + 1);
	/* Waiting calls are served in order of arrival. */
	for (int32_t i = 0; i < 3; i++) {
		put_numbers(queue, 10 + i, 1);
		end_errand(&takers[i], WEIR_OK);
		expect_all(&takers[i].taken, 10 + i, 1);
	}
	end_queue(queue);
}

/* A batch larger than the capacity takes items as they come, until it is complete. */
static inline void a_batch_larger_than_the_capacity_waits_for_all(const struct kind *kind, enum call_kind how)
{
	weir_tensor_queue *queue = numbers_queue(kind, 2);
	struct errand taker;

	begin_blocked(&taker, how, queue, 0, 4, 1);
	for (int32_t i = 0; i < 4; i++) {
		cr_expect_not(errand_has_ended(&taker));
		put_numbers(queue, 10 + i, 1);
	}
	end_errand(&taker, WEIR_OK);
	expect_taken(kind, &taker.taken, 10, 4);
	cr_expect_eq(weir_tensor_queue_size_approx(queue), 0);
	end_queue(queue);
}

static inline void rows_beyond_the_capacity_wait_for_room(const struct kind *kind)
{
	weir_tensor_queue *queue = numbers_queue(kind, 5);
	struct taken taken = {.count = 0};
	struct errand putter;

	begin_blocked(&putter, ENQUEUE_MANY, queue, 10, 10, 1);
	for (int i = 0; i < 5; i++) {
		/* The row may still be on its way when the take returns: the putter itself may be putting it in. */
		await(weir_tensor_queue_size_approx(queue) == 5);
		cr_expect_not(errand_has_ended(&putter));
		take(queue, &taken);
	}
	end_errand(&putter, WEIR_OK);
	for (size_t left = 5; left > 0; left--) {
		cr_expect_eq(weir_tensor_queue_size_approx(queue), left);
		take(queue, &taken);
	}
	cr_expect_eq(weir_tensor_queue_size_approx(queue), 0);
	expect_taken(kind, &taken, 10, 10);
	end_queue(queue);
}

/* A batch that waits on an open queue is complete only with the fourth item. */
static inline void a_blocked_batch_is_served(const struct kind *kind, enum call_kind how)
{
	weir_tensor_queue *queue = numbers_queue(kind, 10);
	struct errand taker;

	begin_blocked(&taker, how, queue, 0, 4, 1);
	put_rows(queue, 10, 3);
	cr_expect_not(errand_has_ended(&taker), "a batch from an open queue has all four");
	await(idle_in(queue->queue) == 1);
	put_rows(queue, 13, 1);
	end_errand(&taker, WEIR_OK);
	expect_taken(kind, &taker.taken, 10, 4);
	end_queue(queue);
}

/* The item of an enqueue that waits goes in when a dequeue has made room. */
static inline void a_blocked_enqueue_gets_the_room_of_a_dequeue(const struct kind *kind)
{
	weir_tensor_queue *queue = numbers_queue(kind, 4);
	struct taken taken = {.count = 0};
	struct errand putter;

	put_rows(queue, 10, 4);
	begin_blocked(&putter, ENQUEUE, queue, 14, 0, 1);
	take(queue, &taken);
	cr_expect_lt(taken.values[0], 14, "an item that was not inside came out first");
	end_errand(&putter, WEIR_OK);
	for (int i = 0; i < 4; i++)
		take(queue, &taken);
	expect_taken(kind, &taken, 10, 5);
	end_queue(queue);
}

static inline void blocked_rows_go_in_as_room_appears(const struct kind *kind)
{
	weir_tensor_queue *queue = numbers_queue(kind, 4);
	struct taken taken = {.count = 0};
	struct errand putter;

	put_rows(queue, 10, 4);
	begin_blocked(&putter, ENQUEUE_MANY, queue, 14, 2, 1);
	take(queue, &taken);
	cr_expect_lt(taken.values[0], 14, "an old item leaves first");
	await(idle_in(queue->queue) == 1);
	cr_expect_not(errand_has_ended(&putter));
	take(queue, &taken);
	cr_expect_lt(taken.values[1], 15, "there is no room yet for the second new item");
	end_errand(&putter, WEIR_OK);
	for (int i = 0; i < 4; i++)
		take(queue, &taken);
	expect_taken(kind, &taken, 10, 6);
	end_queue(queue);
}

/* -- closing ----------------------------------------------------------------------------------- */

static inline void a_closed_queue_is_drained(const struct kind *kind)
{
	weir_tensor_queue *queue = numbers_queue(kind, 10);
	struct taken taken = {.count = 0};

	put_rows(queue, 10, 4);
	close_queue(queue);
	for (int i = 0; i < 4; i++)
		take(queue, &taken);
	expect_taken(kind, &taken, 10, 4);
	expect_exhausted(queue);
	end_queue(queue);
}

/* A call that waits on an empty queue ends when the queue is closed. */
static inline void a_close_ends_a_blocked_dequeue(const struct kind *kind, enum call_kind how)
{
	weir_tensor_queue *queue = numbers_queue(kind, 10);
	struct errand taker;

	begin_blocked(&taker, how, queue, 0, 4, 1);
	close_queue(queue);
	end_errand(&taker, WEIR_OUT_OF_RANGE);
	cr_expect_not_null(strstr(taker.error.message, "closed"), "%s", taker.error.message);
	cr_expect_eq(taker.taken.count, 0);
	end_queue(queue);
}

static inline void a_close_ends_the_dequeue_after_the_last(const struct kind *kind)
{
	weir_tensor_queue *queue = numbers_queue(kind, 10);
	struct taken taken = {.count = 0};
	struct errand taker;

	put_rows(queue, 10, 4);
	for (int i = 0; i < 4; i++)
		take(queue, &taken);
	expect_taken(kind, &taken, 10, 4);
	begin_blocked(&taker, DEQUEUE, queue, 0, 0, 1);
	close_queue(queue);
	end_errand(&taker, WEIR_OUT_OF_RANGE);
	end_queue(queue);
}

/* dequeue_many(n) from four items succeeds. The next one waits, and the close ends it. */
static inline void a_close_ends_the_second_batch(const struct kind *kind, size_t n)
{
	weir_tensor_queue *queue = numbers_queue(kind, 4);
	struct taken taken = {.count = 0};
	struct errand taker;

	put_rows(queue, 10, 4);
	cr_expect_eq(take_batch(queue, DEQUEUE_MANY, n, &taken), (size_t)n);
	if (kind->ordered)
		expect_taken(kind, &taken, 10, (size_t)n);
	begin_blocked(&taker, DEQUEUE_MANY, queue, 0, n, 1);
	close_queue(queue);
	end_errand(&taker, WEIR_OUT_OF_RANGE);
	cr_expect_eq(weir_tensor_queue_size_approx(queue), (size_t)(4 - n));
	end_queue(queue);
}

static inline void up_to_gets_the_remainder(const struct kind *kind)
{
	weir_tensor_queue *queue = numbers_queue(kind, 4);
	struct taken taken = {.count = 0};
	struct errand taker;

	put_rows(queue, 10, 4);
	cr_expect_eq(take_batch(queue, DEQUEUE_UP_TO, 3, &taken), 3);
	begin_blocked(&taker, DEQUEUE_UP_TO, queue, 0, 3, 1);
	close_queue(queue);
	end_errand(&taker, WEIR_OK);
	cr_expect_eq(taker.taken.count, 1);
	taken.values[taken.count++] = taker.taken.values[0];
	expect_taken(kind, &taken, 10, 4);
	expect_exhausted(queue);
	end_queue(queue);
}

/* The next dequeue gets the item that a failed batch had collected. */
static inline void a_failed_batch_gives_back(const struct kind *kind)
{
	weir_tensor_queue *queue = numbers_queue(kind, 4);
	struct taken taken = {.count = 0};
	struct errand putter, taker;

	begin_errand(&putter, ENQUEUE_MANY, queue, 10, 4);
	end_errand(&putter, WEIR_OK);
	cr_expect_eq(take_batch(queue, DEQUEUE_MANY, 3, &taken), 3);
	begin_blocked(&taker, DEQUEUE_MANY, queue, 0, 3, 1);
	close_queue(queue);
	end_errand(&taker, WEIR_OUT_OF_RANGE);
	cr_expect_eq(weir_tensor_queue_size_approx(queue), 1);
	take(queue, &taken);
	expect_taken(kind, &taken, 10, 4);
	expect_exhausted(queue);
	end_queue(queue);
}

/*
 * More rows than the capacity pass through the queue while a batch takes them. The row that is left
 * comes out at the end.
 */
static inline void rows_larger_than_the_capacity_meet_batches(const struct kind *kind)
{
	weir_tensor_queue *queue = numbers_queue(kind, 2);
	struct taken taken = {.count = 0};
	struct errand putter, taker;

	begin_blocked(&putter, ENQUEUE_MANY, queue, 10, 4, 1);
	cr_expect_eq(take_batch(queue, DEQUEUE_MANY, 3, &taken), 3);
	end_errand(&putter, WEIR_OK);
	begin_blocked(&taker, DEQUEUE_MANY, queue, 0, 3, 1);
	close_queue(queue);
	end_errand(&taker, WEIR_OUT_OF_RANGE);
	take(queue, &taken);
	expect_taken(kind, &taken, 10, 4);
	expect_exhausted(queue);
	end_queue(queue);
}

static inline void a_closed_queue_refuses(const struct kind *kind, enum call_kind how)
{
	weir_tensor_queue *queue = numbers_queue(kind, 10);
	struct errand putter;

	put_numbers(queue, 10, 1);
	close_queue(queue);
	begin_errand(&putter, how, queue, 20, 2);
	end_errand(&putter, WEIR_CANCELLED);
	cr_expect_not_null(strstr(putter.error.message, "closed"), "%s", putter.error.message);
	cr_expect_eq(weir_tensor_queue_size_approx(queue), 1);
	end_queue(queue);
}

/*
 * Enqueues that waited before the close go in as room appears. The close itself does not wait.
 * Later enqueues are refused.
 */
static inline void what_waited_before_the_close_goes_in(const struct kind *kind, enum call_kind how)
{
	weir_tensor_queue *queue = numbers_queue(kind, 4);
	struct taken taken = {.count = 0};
	size_t rows = how == ENQUEUE_MANY ? 4 : 1;
	struct errand putter, late;

	put_rows(queue, 10, 4);
	begin_blocked(&putter, how, queue, 14, rows, 1);
	close_queue(queue);
	cr_expect(weir_tensor_queue_closed(queue));
	cr_expect_not(errand_has_ended(&putter));
	begin_errand(&late, how, queue, 90, rows);
	end_errand(&late, WEIR_CANCELLED);
	for (size_t i = 0; i < rows; i++)
		take(queue, &taken);
	end_errand(&putter, WEIR_OK);
	cr_expect_eq(weir_tensor_queue_size_approx(queue), 4);
	for (int i = 0; i < 4; i++)
		take(queue, &taken);
	expect_taken(kind, &taken, 10, 4 + rows);
	cr_expect_eq(weir_tensor_queue_size_approx(queue), 0);
	expect_exhausted(queue);
	end_queue(queue);
}

/* -- many threads ------------------------------------------------------------------------------ */

/* Joins the threads, and appends what each of them took to *taken. */
static inline void end_all(struct errand errands[], size_t count, struct taken *taken)
{
	for (size_t i = 0; i < count; i++) {
		end_errand(&errands[i], WEIR_OK);
		for (size_t k = 0; k < errands[i].taken.count; k++)
			taken->values[taken->count++] = errands[i].taken.values[k];
	}
}

/* Each thread enqueues `rows` rows in one batch, or one item if `rows` is 1. */
static inline void threads_put(const struct kind *kind, int64_t rows)
{
	weir_tensor_queue *queue = numbers_queue(kind, KIT_THREADS * (size_t)rows);
	struct errand *putters = calloc(KIT_THREADS, sizeof(*putters));
	struct taken taken = {.count = 0};

	cr_assert_not_null(putters);
	for (int32_t i = 0; i < KIT_THREADS; i++)
		begin_errand(&putters[i], rows == 1 ? ENQUEUE : ENQUEUE_MANY, queue, i * (int32_t)rows, (size_t)rows);
	end_all(putters, KIT_THREADS, &taken);
	cr_expect_eq(weir_tensor_queue_size_approx(queue), KIT_THREADS * (size_t)rows);
	for (int64_t i = 0; i < KIT_THREADS * rows; i++)
		take(queue, &taken);
	expect_all(&taken, 0, KIT_THREADS * (size_t)rows);
	free(putters);
	end_queue(queue);
}

/* Thread i takes sizes[i] items in one call. Together the threads take each item once. */
static inline void threads_take(const struct kind *kind, enum call_kind how, const int64_t sizes[KIT_THREADS])
{
	struct errand *takers = calloc(KIT_THREADS, sizeof(*takers));
	struct taken taken = {.count = 0};
	weir_tensor_queue *queue;
	int64_t sum = 0;

	cr_assert_not_null(takers);
	for (size_t i = 0; i < KIT_THREADS; i++)
		sum += sizes[i];
	queue = numbers_queue(kind, (size_t)sum);
	put_rows(queue, 0, sum);
	for (size_t i = 0; i < KIT_THREADS; i++)
		begin_errand(&takers[i], how, queue, 0, (size_t)sizes[i]);
	end_all(takers, KIT_THREADS, &taken);
	expect_all(&taken, 0, (size_t)sum);
	cr_expect_eq(weir_tensor_queue_size_approx(queue), 0);
	for (size_t i = 0; kind->ordered && i < KIT_THREADS; i++) {
		/* The items of a batch are consecutive. */
		for (size_t k = 1; k < takers[i].taken.count; k++)
			cr_assert_eq(takers[i].taken.values[k], takers[i].taken.values[k - 1] + 1);
	}
	free(takers);
	end_queue(queue);
}

static inline void threads_take_equal_parts(const struct kind *kind, enum call_kind how, int64_t each)
{
	int64_t sizes[KIT_THREADS];

	for (size_t i = 0; i < KIT_THREADS; i++)
		sizes[i] = each;
	threads_take(kind, how, sizes);
}

/*
 * Enqueues of one item and of batches of 0 to 20 rows pass through a queue of capacity 10. The
 * items come out in the order in which they went in.
 */
static inline void mixed_enqueues_keep_their_order(const struct kind *kind)
{
	enum { SUM = 250 };
	weir_tensor_queue *queue = numbers_queue(kind, 10);
	struct errand *taker = calloc(1, sizeof(*taker));
	unsigned seed = 11;

	cr_assert_not_null(taker);
	begin_errand(taker, DEQUEUE_MANY, queue, 0, SUM);
	for (int32_t next = 0; next < SUM;) {
		int32_t rows = (int32_t)(rand_r(&seed) % 21);

		rows = rows < SUM - next ? rows : SUM - next;
		if (rand_r(&seed) % 10 < 5) {
			put_rows(queue, next, rows);
			next += rows;
		} else {
			struct errand single;

			begin_errand(&single, ENQUEUE, queue, next++, 0);
			end_errand(&single, WEIR_OK);
		}
	}
	end_errand(taker, WEIR_OK);
	expect_taken(kind, &taker->taken, 0, SUM);
	free(taker);
	end_queue(queue);
}

#endif
