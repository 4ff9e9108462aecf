/*
 * test_tensor_queue_async.c - operations on tensor queues that hold no thread, and calls that wait
 * for one.
 */
#include "tensor_queue_kit.h"

#include "late_failure.h"

/* The arguments of the completion. A tuple of at most two tensors is kept. */
struct started {
	weir_pending *op;
	_Atomic(int) completions;
	enum weir_status status;
	weir_error error;
	weir_tensor *tuple[2];
	size_t count;
	int had_tuple;
};

static void note(void *context, enum weir_status status, const weir_error *error, weir_tensor *const tuple[],
                 size_t count)
{
	struct started *started = context;

	started->status = status;
	if (error != NULL)
		started->error = *error;
	started->had_tuple = tuple != NULL;
	started->count = count;
	for (size_t i = 0; i < count && i < 2; i++)
		started->tuple[i] = tuple[i];
	/* [release] the outcome; it is read after an acquire of this */
	(void)weiri_fetch_add_release(&started->completions, 1);
}

static void expect_end(struct started *started, enum weir_status status, size_t count)
{
	/* [acquire] pairs with note() */
	cr_assert_eq(weiri_load_acquire(&started->completions), 1);
	cr_assert_eq(started->status, status, "%s: %s", weir_status_name(started->status), started->error.message);
	cr_assert_eq(started->count, count);
	cr_assert_eq(started->had_tuple, count != 0);
	if (status != WEIR_OK)
		cr_assert_eq(started->error.code, status);
	weir_pending_release(started->op);
	for (size_t i = 0; i < 2; i++)
		weir_tensor_release(started->tuple[i]);
}

/* -- completing at once ------------------------------------------------------------------------ */

Test(tensor_queue_async, what_can_be_done_at_once_completes_inside_the_start)
{
	weir_tensor_queue *queue = pair_queue(8, WEIR_QUEUE_FIFO);
	struct started starts[5] = {{0}};
	weir_tensor *rows[2] = {numbers_of(matrix_shape(3, 2), 0), numbers_of(vector_shape(3), 5)};
	weir_tensor *one[2] = {numbers_of(vector_shape(2), 90), number(8)};

	cr_expect_eq(weir_tensor_queue_start_enqueue_many(queue, rows, 2, note, &starts[0], &starts[0].op, NULL), WEIR_OK);
	expect_end(&starts[0], WEIR_OK, 0);
	cr_expect_eq(weir_tensor_queue_start_enqueue(queue, one, 2, note, &starts[1], &starts[1].op, NULL), WEIR_OK);
	expect_end(&starts[1], WEIR_OK, 0);
	for (size_t i = 0; i < 2; i++) {
		weir_tensor_release(rows[i]);
		weir_tensor_release(one[i]);
	}
	cr_expect_eq(weir_tensor_queue_start_dequeue(queue, note, &starts[2], &starts[2].op, NULL), WEIR_OK);
	cr_expect_eq(value_of(starts[2].tuple[1]), 5);
	expect_end(&starts[2], WEIR_OK, 2);
	cr_expect_eq(weir_tensor_queue_start_dequeue_many(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, 3, note, &starts[3],
	                                                  &starts[3].op, NULL),
	             WEIR_OK);
	expect_values(starts[3].tuple[0], matrix_shape(3, 2), (int32_t[]){2, 3, 4, 5, 90, 91});
	expect_values(starts[3].tuple[1], vector_shape(3), (int32_t[]){6, 7, 8});
	expect_end(&starts[3], WEIR_OK, 2);
	cr_expect_eq(weir_tensor_queue_start_dequeue_many(queue, WEIR_QUEUE_OP_DEQUEUE_UP_TO, 0, note, &starts[4],
	                                                  &starts[4].op, NULL),
	             WEIR_OK);
	cr_expect_eq(weir_tensor_shape(starts[4].tuple[0])->dims[0], 0);
	expect_end(&starts[4], WEIR_OK, 2);
	destroy_tensors(queue);
	expect_no_tensor_left();
}

Test(tensor_queue_async, a_start_that_fails_completes_nothing_and_keeps_nothing)
{
	struct weir_tensor_component component = {WEIR_I32, NULL, NULL};
	weir_tensor_queue *queue = scalar_queue(2), *shapeless = tensor_queue_with((struct weir_tensor_queue_options){
													.capacity = 2, .components = &component, .component_count = 1});
	struct started started = {0};
	weir_tensor *wrong = numbers_of(vector_shape(2), 0), *right = number(1);
	weir_pending **op = &started.op;
	weir_error error = {0};

	cr_expect_eq(weir_tensor_queue_start_enqueue(NULL, &right, 1, note, &started, op, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_queue_start_enqueue(queue, &wrong, 1, note, &started, op, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "(label)"), "%s", error.message);
	cr_expect_eq(weir_tensor_queue_start_enqueue(queue, &right, 1, NULL, &started, op, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "done"), "%s", error.message);
	cr_expect_eq(weir_tensor_queue_start_enqueue_many(NULL, &wrong, 1, note, &started, op, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_queue_start_enqueue_many(queue, &right, 1, note, &started, op, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_queue_start_enqueue_many(queue, &wrong, 1, NULL, &started, op, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_queue_start_dequeue(NULL, note, &started, op, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_queue_start_dequeue(queue, NULL, &started, op, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_queue_start_dequeue_many(NULL, WEIR_QUEUE_OP_DEQUEUE_MANY, 1, note, &started, op, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_queue_start_dequeue_many(queue, WEIR_QUEUE_OP_ENQUEUE, 1, note, &started, op, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "kind"), "%s", error.message);
	cr_expect_eq(
		weir_tensor_queue_start_dequeue_many(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, SIZE_MAX, note, &started, op, &error),
		WEIR_INVALID_ARGUMENT);
	cr_expect_eq(
		weir_tensor_queue_start_dequeue_many(shapeless, WEIR_QUEUE_OP_DEQUEUE_MANY, 0, note, &started, op, &error),
		WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "specified shapes"), "%s", error.message);
	cr_expect_eq(started.completions, 0);
	cr_expect_null(started.op);
	weir_tensor_release(wrong);
	weir_tensor_release(right);
	expect_no_tensor_left();
	destroy_tensors(queue);
	destroy_tensors(shapeless);
}

/* -- waiting ----------------------------------------------------------------------------------- */

Test(tensor_queue_async, a_batch_completes_when_its_last_row_comes)
{
	weir_tensor_queue *queue = scalar_queue(2);
	struct started started = {0};

	cr_expect_eq(
		weir_tensor_queue_start_dequeue_many(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, 5, note, &started, &started.op, NULL),
		WEIR_OK);
	put_numbers(queue, 1, 4);
	cr_expect_eq(started.completions, 0);
	put_numbers(queue, 5, 1);
	expect_values(started.tuple[0], vector_shape(5), (int32_t[]){1, 2, 3, 4, 5});
	expect_end(&started, WEIR_OK, 1);
	destroy_tensors(queue);
	expect_no_tensor_left();
}

Test(tensor_queue_async, a_cancelled_dequeue_has_no_tuple_and_a_cancelled_enqueue_no_reference)
{
	weir_tensor_queue *queue = scalar_queue(2);
	struct started out = {0}, in = {0};
	weir_tensor *rows = numbers_of(vector_shape(5), 10);
	weir_error cause = {WEIR_ABORTED, "the step failed"};

	put_numbers(queue, 1, 2);
	cr_expect_eq(weir_tensor_queue_start_dequeue_many(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, 3, note, &out, &out.op, NULL),
	             WEIR_OK);
	weir_pending_cancel(out.op, &cause);
	cr_expect_not_null(strstr(out.error.message, "the step failed"), "%s", out.error.message);
	expect_end(&out, WEIR_CANCELLED, 0);
	expect_next_numbers(queue, 1, 2);
	cr_expect_eq(weir_tensor_queue_start_enqueue_many(queue, &rows, 1, note, &in, &in.op, NULL), WEIR_OK);
	weir_tensor_release(rows);
	expect_next_numbers(queue, 10, 1);
	weir_pending_cancel(in.op, NULL);
	expect_end(&in, WEIR_CANCELLED, 0);
	expect_next_numbers(queue, 11, 2);
	expect_no_tensor_left();
	destroy_tensors(queue);
}

Test(tensor_queue_async, a_close_tells_the_cause)
{
	weir_tensor_queue *queue = scalar_queue(4);
	struct started many = {0}, up_to = {0};
	weir_error cause = {WEIR_DATA_LOSS, "line 3"};

	put_numbers(queue, 1, 2);
	cr_expect_eq(
		weir_tensor_queue_start_dequeue_many(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, 3, note, &many, &many.op, NULL),
		WEIR_OK);
	cr_expect_eq(
		weir_tensor_queue_start_dequeue_many(queue, WEIR_QUEUE_OP_DEQUEUE_UP_TO, 3, note, &up_to, &up_to.op, NULL),
		WEIR_OK);
	cr_expect_eq(weir_tensor_queue_destroy(queue, NULL), WEIR_FAILED_PRECONDITION);
	cr_expect_eq(weir_tensor_queue_close(queue, WEIR_CLOSE_DRAIN, &cause), WEIR_OK);
	cr_expect_not_null(strstr(many.error.message, "line 3"), "%s", many.error.message);
	expect_end(&many, WEIR_OUT_OF_RANGE, 0);
	expect_values(up_to.tuple[0], vector_shape(2), (int32_t[]){1, 2});
	expect_end(&up_to, WEIR_OK, 1);
	destroy_tensors(queue);
	expect_no_tensor_left();
}

/* -- threads ----------------------------------------------------------------------------------- */

enum { ROWS = 3000 };

static void *feed_rows(void *argument)
{
	weir_tensor_queue *queue = argument;

	for (int32_t i = 0; i < ROWS; i += 10) {
		weir_shape shape = vector_shape(10);
		int32_t values[10];
		weir_tensor *rows;

		for (int32_t k = 0; k < 10; k++)
			values[k] = i + k;
		if (weir_tensor_copy_of(WEIR_I32, &shape, values, NULL, &rows) != WEIR_OK)
			break;
		(void)weir_tensor_queue_enqueue_many(queue, &rows, 1, in_good_time(), NULL, NULL, NULL);
		weir_tensor_release(rows);
	}
	(void)weir_tensor_queue_close(queue, WEIR_CLOSE_DRAIN, NULL);
	return NULL;
}

Test(tensor_queue_async, rows_of_one_thread_reach_another_in_batches)
{
	weir_tensor_queue *queue = scalar_queue(16);
	int32_t next = 0;
	weir_tensor *got;
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, feed_rows, queue), 0);
	while (weir_tensor_queue_dequeue_up_to(queue, 7, &got, 1, in_good_time(), NULL, NULL) == WEIR_OK) {
		for (int64_t i = 0; i < weir_tensor_element_count(got); i++)
			cr_assert_eq(((const int32_t *)weir_tensor_data(got))[i], next++);
		weir_tensor_release(got);
	}
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_expect_eq(next, ROWS);
	destroy_tensors(queue);
}

/* -- allocations that fail --------------------------------------------------------------------- */

/*
 * The last row of a batch comes when memory is short. The batch fails, its rows are put back, and
 * the row that came is behind them.
 */
static enum weir_status complete_a_batch(const weir_allocator *allocator, void *context)
{
	struct late_failure late = {0};
	weir_allocator memory = late_failure_hooks(&late);
	struct weir_tensor_component component = {WEIR_I32, &scalar_shape, NULL};
	weir_tensor_queue *queue = tensor_queue_with((struct weir_tensor_queue_options){
		.capacity = 4, .components = &component, .component_count = 1, .allocator = &memory});
	struct started started = {0};
	struct weiri_tuple *last;
	weir_tensor *row = number(3);

	(void)context;
	put_numbers(queue, 1, 2);
	cr_assert_eq(
		weir_tensor_queue_start_dequeue_many(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, 3, note, &started, &started.op, NULL),
		WEIR_OK);
	last = weiri_tuple_create(queue, &row);
	cr_assert_not_null(last);
	weir_tensor_release(row);
	late.under_test = allocator;
	cr_assert_eq(weir_queue_try_enqueue(queue->queue, last), WEIR_OK);
	late.under_test = NULL;
	if (started.status != WEIR_OK)
		expect_next_numbers(queue, 1, 3);
	expect_end(&started, started.status, started.status == WEIR_OK);
	destroy_tensors(queue);
	cr_assert_eq(weir_reclaim_flush(in_good_time()), WEIR_OK);
	late_failure_end(&late);
	expect_no_tensor_left();
	return started.status;
}

Test(tensor_queue_async, a_batch_that_cannot_be_stacked_completes_with_that_and_is_back_in_order)
{
	cr_expect_eq(fail_each_allocation(complete_a_batch, NULL), 2, "a column, a tensor");
}

/* Waiting operations get what such a batch puts back. */
Test(tensor_queue_async, what_cannot_be_stacked_goes_to_those_who_wait)
{
	struct failing_allocator state = {0};
	weir_allocator memory = failing_allocator_hooks(&state);
	struct weir_tensor_component component = {WEIR_I32, &scalar_shape, NULL};
	weir_tensor_queue *queue = tensor_queue_with((struct weir_tensor_queue_options){
		.capacity = 4, .components = &component, .component_count = 1, .allocator = &memory});
	struct started batch = {0}, single = {0};
	weir_tensor *row = number(2);
	struct weiri_tuple *last = weiri_tuple_create(queue, &row);

	weir_tensor_release(row);
	put_numbers(queue, 1, 1);
	cr_assert_eq(
		weir_tensor_queue_start_dequeue_many(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, 2, note, &batch, &batch.op, NULL),
		WEIR_OK);
	cr_assert_eq(weir_tensor_queue_start_dequeue(queue, note, &single, &single.op, NULL), WEIR_OK);
	state.fail_at = weiri_load_relaxed(&state.asked) + 1;
	state.fail_count = SIZE_MAX;
	cr_assert_eq(weir_queue_try_enqueue(queue->queue, last), WEIR_OK);
	state.fail_at = 0;
	expect_end(&batch, WEIR_RESOURCE_EXHAUSTED, 0);
	cr_expect_eq(value_of(single.tuple[0]), 1);
	expect_end(&single, WEIR_OK, 1);
	expect_next_numbers(queue, 2, 1);
	destroy_tensors(queue);
	cr_assert_eq(weir_reclaim_flush(in_good_time()), WEIR_OK);
	cr_expect_str_eq(failing_allocator_verdict(&state), "balanced");
	expect_no_tensor_left();
}
