/*
 * test_conformance_priority.c - the rows of priority queues (conformance_rows.tsv).
 */
#include "conformance_kit.h"
#include "late_failure.h"

enum { PRIORITIES = 10, LOWEST = -5, MOST_TUPLES = 1000 };

/* Tuples of a priority and two strings. Both strings say the number of the tuple. */
static weir_tensor_queue *priority_queue_from(size_t capacity, const weir_allocator *allocator)
{
	struct weir_tensor_component components[] = {{WEIR_I64, &scalar_shape, "priority"},
	                                             {WEIR_BYTES, &scalar_shape, "first"},
	                                             {WEIR_BYTES, &scalar_shape, "second"}};

	return tensor_queue_with((struct weir_tensor_queue_options){.capacity = capacity,
	                                                            .order = WEIR_QUEUE_PRIORITY,
	                                                            .components = components,
	                                                            .component_count = 3,
	                                                            .name = "test",
	                                                            .allocator = allocator});
}

static weir_tensor_queue *priority_queue(size_t capacity)
{
	return priority_queue_from(capacity, NULL);
}

/* The priority of tuple `number` is random, but the same each time. */
static int64_t priority_of(size_t number)
{
	unsigned seed = (unsigned)number * 7919 + 1;

	return LOWEST + (int64_t)(rand_r(&seed) % PRIORITIES);
}

/*
 * Makes the rows first .. first + count - 1, or one tuple if `single`. Asserts nothing, so any
 * thread may call it.
 */
static enum weir_status make_tuples(size_t first, size_t count, int single, weir_tensor *tuple[])
{
	static const weir_shape scalar = {.rank = 0};
	weir_shape rows = vector_shape((int64_t)count);
	const weir_shape *shape = single ? &scalar : &rows;
	int64_t *priorities = calloc(count + 1, sizeof(*priorities));
	weir_bytes *strings = calloc(count + 1, sizeof(*strings));
	char(*texts)[8] = calloc(count + 1, sizeof(*texts));
	enum weir_status status =
		priorities != NULL && strings != NULL && texts != NULL ? WEIR_OK : WEIR_RESOURCE_EXHAUSTED;

	for (size_t i = 0; status == WEIR_OK && i < count; i++) {
		priorities[i] = priority_of(first + i);
		(void)snprintf(texts[i], sizeof(texts[i]), "%u", (unsigned)(first + i) % 10000);
		strings[i] = (weir_bytes){texts[i], strlen(texts[i])};
	}
	tuple[0] = tuple[1] = tuple[2] = NULL;
	if (status == WEIR_OK)
		status = weir_tensor_copy_of(WEIR_I64, shape, priorities, NULL, &tuple[0]);
	if (status == WEIR_OK)
		status = weir_tensor_copy_of(WEIR_BYTES, shape, strings, NULL, &tuple[1]);
	tuple[2] = weir_tensor_retain(tuple[1]);
	free(priorities);
	free(strings);
	free(texts);
	return status;
}

static void release_tuple(weir_tensor *tuple[])
{
	for (size_t i = 0; i < 3; i++)
		weir_tensor_release(tuple[i]);
}

/*
 * The tuples that came out, in order. Any thread may fill it. Only the thread of the test checks
 * it.
 */
struct output {
	int64_t priorities[MOST_TUPLES];
	size_t numbers[MOST_TUPLES];
	size_t count;
	int torn; /* the strings of a tuple differed */
};

static size_t number_in(const weir_bytes *string)
{
	char text[8] = "";

	memcpy(text, string->data, string->size < sizeof(text) ? string->size : sizeof(text) - 1);
	return (size_t)strtoul(text, NULL, 10);
}

/* Appends the tuples, and releases the tensors. */
static void note_tuples(struct output *output, weir_tensor *tuple[])
{
	const int64_t *priorities = weir_tensor_data(tuple[0]);
	const weir_bytes *first = weir_tensor_data(tuple[1]), *second = weir_tensor_data(tuple[2]);

	for (int64_t i = 0; i < weir_tensor_element_count(tuple[0]) && output->count < MOST_TUPLES; i++) {
		output->torn |= number_in(&first[i]) != number_in(&second[i]);
		output->priorities[output->count] = priorities[i];
		output->numbers[output->count++] = number_in(&first[i]);
	}
	release_tuple(tuple);
}

/* The tuples 0 .. count - 1 came out, each once and with its own priority. */
static void expect_each_once(const struct output *output, size_t count)
{
	char seen[MOST_TUPLES] = {0};

	cr_assert_eq(output->count, count);
	cr_assert_not(output->torn);
	for (size_t i = 0; i < count; i++) {
		cr_assert_lt(output->numbers[i], count);
		cr_assert_eq(seen[output->numbers[i]]++, 0, "tuple %zu came twice", output->numbers[i]);
		cr_assert_eq(output->priorities[i], priority_of(output->numbers[i]));
	}
}

static void expect_sorted(const struct output *output)
{
	for (size_t i = 1; i < output->count; i++)
		cr_assert_leq(output->priorities[i - 1], output->priorities[i], "place %zu", i);
}

/* Tuples of equal priority came out in the order of their numbers, in which they went in. */
static void expect_ties_in_order(const struct output *output)
{
	for (size_t i = 1; i < output->count; i++)
		cr_assert(output->priorities[i - 1] != output->priorities[i] || output->numbers[i - 1] < output->numbers[i],
		          "place %zu", i);
}

static void put_tuples(weir_tensor_queue *queue, size_t first, size_t count)
{
	weir_tensor *tuple[3];

	cr_assert_eq(make_tuples(first, count, 0, tuple), WEIR_OK);
	cr_assert_eq(weir_tensor_queue_enqueue_many(queue, tuple, 3, in_good_time(), NULL, NULL, NULL), WEIR_OK);
	release_tuple(tuple);
}

static void take_tuples(weir_tensor_queue *queue, size_t count, struct output *output)
{
	weir_tensor *tuple[3];

	cr_assert_eq(weir_tensor_queue_dequeue_many(queue, count, tuple, 3, in_good_time(), NULL, NULL), WEIR_OK);
	note_tuples(output, tuple);
}

static void take_singly(weir_tensor_queue *queue, size_t count, struct output *output)
{
	for (size_t i = 0; i < count; i++) {
		weir_tensor *tuple[3];

		cr_assert_eq(weir_tensor_queue_dequeue(queue, tuple, 3, 0, NULL, NULL), WEIR_OK);
		note_tuples(output, tuple);
	}
}

/* -- threads ----------------------------------------------------------------------------------- */

/* Enqueues `count` rows from `first` on, or dequeues a batch of `count`. */
struct worker {
	weir_tensor_queue *queue;
	size_t first, count;
	int puts, single;
	enum weir_status status;
	struct output output;
	pthread_t thread;
};

static void *work(void *context)
{
	struct worker *worker = context;
	weir_tensor *tuple[3] = {NULL, NULL, NULL};

	if (!worker->puts) {
		worker->status =
			weir_tensor_queue_dequeue_many(worker->queue, worker->count, tuple, 3, in_good_time(), NULL, NULL);
		if (worker->status == WEIR_OK)
			note_tuples(&worker->output, tuple);
		return NULL;
	}
	worker->status = make_tuples(worker->first, worker->count, worker->single, tuple);
	if (worker->status == WEIR_OK)
		worker->status =
			worker->single ? weir_tensor_queue_enqueue(worker->queue, tuple, 3, in_good_time(), NULL, NULL)
						   : weir_tensor_queue_enqueue_many(worker->queue, tuple, 3, in_good_time(), NULL, NULL, NULL);
	release_tuple(tuple);
	return NULL;
}

static struct worker *workers(size_t count)
{
	struct worker *all = calloc(count, sizeof(*all));

	cr_assert_not_null(all);
	return all;
}

static void begin(struct worker *worker, weir_tensor_queue *queue, int puts, size_t first, size_t count)
{
	worker->queue = queue;
	worker->puts = puts;
	worker->first = first;
	worker->count = count;
	cr_assert_eq(pthread_create(&worker->thread, NULL, work, worker), 0);
}

/* Joins the threads, and appends what they took to *output. */
static void end(struct worker *all, size_t count, struct output *output)
{
	for (size_t i = 0; i < count; i++) {
		cr_assert_eq(pthread_join(all[i].thread, NULL), 0);
		cr_assert_eq(all[i].status, WEIR_OK);
		output->torn |= all[i].output.torn;
		for (size_t k = 0; k < all[i].output.count; k++) {
			output->priorities[output->count] = all[i].output.priorities[k];
			output->numbers[output->count++] = all[i].output.numbers[k];
		}
	}
}

/* -- rows -------------------------------------------------------------------------------------- */

Test(conformance_priority, PRI_001_round_trip_insert_read_once_sorts)
{
	weir_tensor_queue *queue = priority_queue(2000);
	struct output output = {.count = 0};

	for (size_t i = 0; i < 100; i++) {
		weir_tensor *tuple[3];

		cr_assert_eq(make_tuples(i, 1, 1, tuple), WEIR_OK);
		cr_assert_eq(weir_tensor_queue_enqueue(queue, tuple, 3, 0, NULL, NULL), WEIR_OK);
		release_tuple(tuple);
	}
	take_tuples(queue, 100, &output);
	expect_each_once(&output, 100);
	expect_sorted(&output);
	expect_ties_in_order(&output);
	destroy_tensors(queue);
}

Test(conformance_priority, PRI_002_round_trip_insert_multi_threaded_read_once_sorts)
{
	weir_tensor_queue *queue = priority_queue(2000);
	struct worker *putters = workers(100), *taker = workers(1);
	struct output *output = calloc(2, sizeof(*output));

	cr_assert_not_null(output);
	begin(taker, queue, 0, 0, 100);
	await(idle_in(queue->queue) == 1);
	for (size_t i = 0; i < 100; i++) {
		putters[i].single = 1;
		begin(&putters[i], queue, 1, i, 1);
	}
	end(putters, 100, &output[1]);
	end(taker, 1, &output[0]);
	expect_each_once(&output[0], 100);
	expect_sorted(&output[0]);
	free(output);
	free(putters);
	free(taker);
	destroy_tensors(queue);
}

/*
 * 40 producers of 0 to 9 rows and as many consumers share a queue of capacity 10. The batches of
 * the consumers have the same sizes in another order.
 */
Test(conformance_priority, PRI_003_round_trip_fills_capacity_multi_threaded_enqueue_and_dequeue)
{
	enum { EACH = 40 };
	weir_tensor_queue *queue = priority_queue(10);
	struct worker *putters = workers(EACH), *takers = workers(EACH);
	struct output *output = calloc(1, sizeof(*output));
	size_t first = 0;

	cr_assert_not_null(output);
	for (size_t i = 0; i < EACH; i++) {
		size_t rows = i * 7 % 10;

		begin(&putters[i], queue, 1, first, rows);
		first += rows;
	}
	for (size_t i = 0; i < EACH; i++)
		begin(&takers[i], queue, 0, 0, i * 3 % 10);
	end(putters, EACH, output);
	end(takers, EACH, output);
	cr_expect_eq(first, 180);
	expect_each_once(output, first);
	for (size_t i = 0; i < EACH; i++)
		expect_sorted(&takers[i].output);
	cr_expect_eq(weir_tensor_queue_size_approx(queue), 0);
	free(output);
	free(putters);
	free(takers);
	destroy_tensors(queue);
}

Test(conformance_priority, PRI_004_round_trip_insert_many_multi_threaded_read_many_multithreaded_sorts)
{
	enum { EACH = 40, ROWS = 5 };
	weir_tensor_queue *queue = priority_queue(2000);
	struct worker *putters = workers(EACH), *takers = workers(EACH);
	struct output *output = calloc(1, sizeof(*output));

	cr_assert_not_null(output);
	for (size_t i = 0; i < EACH; i++)
		begin(&putters[i], queue, 1, i * ROWS, ROWS);
	end(putters, EACH, output);
	cr_expect_eq(weir_tensor_queue_size_approx(queue), EACH * ROWS);
	for (size_t i = 0; i < EACH; i++)
		begin(&takers[i], queue, 0, 0, ROWS);
	end(takers, EACH, output);
	expect_each_once(output, EACH * ROWS);
	for (size_t i = 0; i < EACH; i++)
		expect_sorted(&takers[i].output);
	free(output);
	free(putters);
	free(takers);
	destroy_tensors(queue);
}

Test(conformance_priority, PRI_005_round_trip_insert_many_multi_threaded_read_once_sorts)
{
	weir_tensor_queue *queue = priority_queue(2000);
	struct worker *putters = workers(20);
	struct output output = {.count = 0};

	for (size_t i = 0; i < 20; i++)
		begin(&putters[i], queue, 1, i * 5, 5);
	end(putters, 20, &output);
	take_tuples(queue, 100, &output);
	expect_each_once(&output, 100);
	expect_sorted(&output);
	free(putters);
	destroy_tensors(queue);
}

Test(conformance_priority, PRI_006_round_trip_insert_once_read_once_sorts)
{
	weir_tensor_queue *queue = priority_queue(2000);
	struct output output = {.count = 0};

	put_tuples(queue, 0, 1000);
	take_tuples(queue, 1000, &output);
	expect_each_once(&output, 1000);
	expect_sorted(&output);
	expect_ties_in_order(&output);
	destroy_tensors(queue);
}

Test(conformance_priority, PRI_008_round_trip_insert_once_read_once_lots_sorts)
{
	weir_tensor_queue *queue = priority_queue(2000);
	struct output output = {.count = 0};

	put_tuples(queue, 0, 1000);
	take_singly(queue, 1000, &output);
	expect_each_once(&output, 1000);
	expect_sorted(&output);
	expect_ties_in_order(&output);
	destroy_tensors(queue);
}

/* A priority that is a vector is refused, both singly and in rows. */
Test(conformance_priority, PRI_010_inserting_non_scalar_fails)
{
	weir_tensor_queue *queue = priority_queue(10);
	weir_shape vector = vector_shape(2), matrix = matrix_shape(3, 2);
	weir_tensor *single[3], *rows[3], *priority;
	weir_error error = {0};

	cr_assert_eq(make_tuples(0, 1, 1, single), WEIR_OK);
	cr_assert_eq(make_tuples(0, 3, 0, rows), WEIR_OK);
	cr_assert_eq(weir_tensor_copy_of(WEIR_I64, &vector, (int64_t[]){1, 2}, NULL, &priority), WEIR_OK);
	weir_tensor_release(single[0]);
	single[0] = priority;
	cr_expect_eq(weir_tensor_queue_enqueue(queue, single, 3, 0, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "component 0 (priority): shape must be [], got [2]"), "%s", error.message);
	cr_assert_eq(weir_tensor_copy_of(WEIR_I64, &matrix, (int64_t[]){1, 2, 3, 4, 5, 6}, NULL, &priority), WEIR_OK);
	weir_tensor_release(rows[0]);
	rows[0] = priority;
	cr_expect_eq(weir_tensor_queue_enqueue_many(queue, rows, 3, 0, NULL, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "component 0 (priority): shape must be [n] + [], got [3,2]"), "%s",
	                   error.message);
	cr_expect_eq(weir_tensor_queue_size_approx(queue), 0);
	release_tuple(single);
	release_tuple(rows);
	destroy_tensors(queue);
}

/* -- beyond the rows --------------------------------------------------------------------------- */

static void expect_no_priority_queue(const struct weir_tensor_component components[], const char *why)
{
	struct weir_tensor_queue_options options = {WEIR_TENSOR_QUEUE_OPTIONS_INIT, .capacity = 10,
	                                            .order = WEIR_QUEUE_PRIORITY, .components = components,
	                                            .component_count = 3};
	weir_tensor_queue *queue = NULL;
	weir_error error = {0};

	cr_expect_eq(weir_tensor_queue_create(&options, &queue, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_null(queue);
	cr_expect_not_null(strstr(error.message, why), "%s", error.message);
}

Test(conformance_priority, component_0_must_be_an_i64_scalar)
{
	weir_shape vector = vector_shape(2);
	struct weir_tensor_component components[3] = {
		{WEIR_I32, &scalar_shape, "priority"}, {WEIR_F32, NULL, NULL}, {WEIR_F32, NULL, NULL}};

	expect_no_priority_queue(components, "must be i64 of shape [], got i32 of []");
	components[0] = (struct weir_tensor_component){WEIR_I64, &vector, "priority"};
	expect_no_priority_queue(components, "must be i64 of shape [], got i64 of [2]");
	components[0].shape = NULL;
	expect_no_priority_queue(components, "must be i64 of shape [], got i64 of any shape");
	components[0].shape = &scalar_shape;
	components[1].shape = &vector;
	expect_no_priority_queue(components, "component 2: all have shapes or none");
	components[0].name = "";
	expect_no_priority_queue(components, "component 0: a name has");
}

/* The other components may have no shapes, and then there are no batches. */
Test(conformance_priority, single_items_of_any_shape_leave_by_priority)
{
	struct weir_tensor_component components[2] = {{WEIR_I64, &scalar_shape, "priority"}, {WEIR_I32, NULL, "payload"}};
	weir_tensor_queue *queue = tensor_queue_with((struct weir_tensor_queue_options){
		.capacity = 3, .order = WEIR_QUEUE_PRIORITY, .components = components, .component_count = 2});
	weir_tensor *got[2];

	for (int32_t i = 3; i > 0; i--) {
		weir_tensor *priority;

		cr_assert_eq(weir_tensor_scalar_i64(i, &priority), WEIR_OK);
		put_tuple(queue, priority, numbers_of(vector_shape(i), i));
	}
	cr_expect_eq(weir_tensor_queue_dequeue_many(queue, 1, got, 2, 0, NULL, NULL), WEIR_INVALID_ARGUMENT);
	for (int32_t i = 1; i <= 3; i++) {
		cr_assert_eq(weir_tensor_queue_dequeue(queue, got, 2, 0, NULL, NULL), WEIR_OK);
		cr_expect_eq(weir_tensor_element_count(got[1]), i);
		cr_expect_eq(value_of(got[1]), i);
		weir_tensor_release(got[0]);
		weir_tensor_release(got[1]);
	}
	destroy_tensors(queue);
	expect_no_tensor_left();
}

/* A batch that a close leaves incomplete goes back. Then the items leave by priority. */
Test(conformance_priority, a_failed_batch_is_back_in_its_places)
{
	weir_tensor_queue *queue = priority_queue(10);
	struct worker *taker = workers(1);
	struct output output = {.count = 0};

	put_tuples(queue, 0, 3);
	begin(taker, queue, 0, 0, 9);
	await(idle_in(queue->queue) == 1 && weir_tensor_queue_size_approx(queue) == 0);
	put_tuples(queue, 3, 3);
	cr_assert_eq(weir_tensor_queue_close(queue, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
	cr_assert_eq(pthread_join(taker->thread, NULL), 0);
	cr_expect_eq(taker->status, WEIR_OUT_OF_RANGE);
	cr_expect_eq(weir_tensor_queue_size_approx(queue), 6);
	take_singly(queue, 6, &output);
	expect_each_once(&output, 6);
	expect_sorted(&output);
	expect_ties_in_order(&output);
	free(taker);
	destroy_tensors(queue);
}

static enum weir_status take_without_memory(const weir_allocator *allocator, void *context)
{
	struct late_failure late = {.under_test = NULL};
	weir_allocator memory = late_failure_hooks(&late);
	weir_tensor_queue *queue = priority_queue_from(10, &memory);
	weir_tensor *tuple[3] = {NULL, NULL, NULL};
	struct output output = {.count = 0};
	enum weir_status status;

	(void)context;
	put_tuples(queue, 0, 6);
	late.under_test = allocator;
	status = weir_tensor_queue_dequeue_many(queue, 6, tuple, 3, 0, NULL, NULL);
	late.under_test = NULL;
	release_tuple(tuple);
	if (status != WEIR_OK) {
		cr_assert_eq(weir_tensor_queue_size_approx(queue), 6);
		/* The returned items still have their keys, also beside new ones. */
		put_tuples(queue, 6, 4);
		take_singly(queue, 10, &output);
		expect_each_once(&output, 10);
		expect_sorted(&output);
		expect_ties_in_order(&output);
	}
	destroy_tensors(queue);
	cr_assert_eq(weir_reclaim_flush(in_good_time()), WEIR_OK);
	late_failure_end(&late);
	return status;
}

Test(conformance_priority, a_batch_that_cannot_be_stacked_is_back_in_its_places)
{
	/*
	 * The items to move and their places to go back to; the operation and its room; a column; three
	 * tensors.
	 */
	cr_expect_eq(fail_each_allocation(take_without_memory, NULL), 8);
}
