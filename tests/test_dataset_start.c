/*
 * test_dataset_start.c - elements that are asked for without a thread that waits, and what a dump says
 * of iterators.
 */
#include "dataset_kit.h"

#include <sched.h>
#include <weir/weir.h>

#include "dump_kit.h"
#include "failing_allocator.h"
#include "run/countdown.h"

static const uint64_t long_ns = 100000000000u;

/* What one operation gave. */
struct given {
	_Atomic(uint32_t) ended;
	enum weir_status status;
	int64_t number;
	size_t count;
	weir_error error;
	weir_iterator *destroys; /* in the completion, which is refused */
	enum weir_status refused;
};

static void note(void *context, enum weir_status status, const weir_error *error, weir_tensor *const parts[],
                 size_t count)
{
	struct given *given = context;

	given->status = status;
	given->count = count;
	if (status == WEIR_OK) {
		given->number = data_number(parts[0]);
		weir_tensor_release(parts[0]);
	} else {
		given->error = *error;
	}
	if (given->destroys != NULL)
		given->refused = weir_iterator_destroy(given->destroys, NULL);
	weiri_store_release(&given->ended, 1u);
}

static weir_pending *start(weir_iterator *iterator, struct given *given)
{
	weir_pending *operation = NULL;
	weir_error error;

	*given = (struct given){.status = WEIR_INTERNAL};
	cr_assert_eq(weir_iterator_start_next(iterator, note, given, &operation, &error), WEIR_OK, "%s", error.message);
	return operation;
}

static bool has_ended(const struct given *given)
{
	return weiri_load_acquire(&given->ended) != 0;
}

static void await(const struct given *given)
{
	uint64_t deadline = weir_deadline_in(long_ns);

	while (!has_ended(given)) {
		cr_assert_lt(weir_now_ns(), deadline, "an operation did not end");
		(void)sched_yield();
	}
}

static void finish(weir_dataset *dataset, weir_iterator *iterator, weir_pool *pool)
{
	weir_dataset_release(dataset);
	cr_assert_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
	cr_assert_eq(weir_pool_destroy(pool, NULL), WEIR_OK);
}

/* The task that polls for an operation is queued, and only the thread that takes could run it. */
Test(dataset_start, a_taker_of_a_pool_without_threads_does_not_wait_for_the_task_of_an_operation)
{
	struct weir_pool_options options = {WEIR_POOL_OPTIONS_INIT, .flags = WEIR_POOL_NO_THREADS};
	weir_pool *pool = NULL;
	weir_dataset *dataset = data_map(data_range(0, 10), data_same, NULL, 1, 0);
	weir_iterator *iterator;
	weir_pending *operation, *other;
	struct given given, last;
	int64_t number = -1;

	cr_assert_eq(weir_pool_create(&options, &pool, NULL), WEIR_OK);
	iterator = data_iterate(dataset, pool);
	operation = start(iterator, &given);
	cr_expect_eq(data_next(iterator, &number, NULL), WEIR_OK);
	cr_expect_eq(number, 0);
	/* The task is queued still, and another operation passes it the turn again. */
	other = start(iterator, &last);
	cr_expect_eq(data_next(iterator, &number, NULL), WEIR_OK);
	(void)weir_pool_help(pool, SIZE_MAX);
	await(&given);
	await(&last);
	cr_expect_eq(number + given.number + last.number, 1 + 2 + 3, "each number is given once");
	weir_pending_release(operation);
	weir_pending_release(other);
	finish(dataset, iterator, pool);
}

/* A function that is held back until it is let go. */
struct hold {
	struct weiri_latch begun, let_go;
};

static enum weir_status hold_back(void *context, weir_tensor *const in[], weir_tensor *out[], weir_error *error)
{
	struct hold *hold = context;

	(void)error;
	weiri_latch_set(&hold->begun);
	while (!weiri_latch_is_set(&hold->let_go))
		(void)sched_yield();
	out[0] = weir_tensor_retain(in[0]);
	return WEIR_OK;
}

static void hold_init(struct hold *hold)
{
	weiri_latch_init(&hold->begun);
	weiri_latch_init(&hold->let_go);
}

Test(dataset_start, gives_each_element_and_then_the_end)
{
	for (size_t kind = 0; kind < 4; kind++) {
		weir_pool *pool = kind == 0 ? NULL : data_pool(2);
		weir_dataset *dataset = data_range(0, 20);
		weir_iterator *iterator;
		struct given given;

		if (kind == 2)
			dataset = data_batch(data_prefetch(dataset, 4), 1, 0);
		if (kind == 3)
			dataset = data_map(data_map(dataset, data_same, NULL, 3, 0), data_same, NULL, 1, 0);
		iterator = data_iterate(dataset, pool);
		for (int64_t i = 0; i < 20; i++) {
			weir_pending *operation = start(iterator, &given);

			cr_expect_eq(weir_pending_wait(operation, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
			cr_expect_eq(given.status, WEIR_OK);
			cr_expect_eq(given.count, 1);
			cr_expect_eq(given.number, i, "kind %zu: %lld, expected %lld", kind, (long long)given.number, (long long)i);
			weir_pending_release(operation);
		}
		cr_expect_eq(weir_iterator_position(iterator), 20);
		weir_pending_release(start(iterator, &given));
		await(&given);
		cr_expect_eq(given.status, WEIR_OUT_OF_RANGE);
		cr_expect(strstr(given.error.message, "the end, after 20 elements") != NULL, "%s", given.error.message);
		finish(dataset, iterator, pool);
	}
}

Test(dataset_start, operations_that_wait_end_in_their_order)
{
	weir_pool *pool = data_pool(1);
	struct hold hold;
	weir_dataset *dataset = data_map(data_range(0, 4), hold_back, &hold, 2, 0);
	weir_iterator *iterator = data_iterate(dataset, pool);
	struct given given[5];

	hold_init(&hold);
	for (size_t i = 0; i < 5; i++)
		weir_pending_release(start(iterator, &given[i]));
	cr_expect_not(has_ended(&given[0]));
	weiri_latch_set(&hold.let_go);
	for (size_t i = 0; i < 4; i++) {
		await(&given[i]);
		cr_expect_eq(given[i].status, WEIR_OK);
		cr_expect_eq(given[i].number, (int64_t)i);
	}
	await(&given[4]);
	cr_expect_eq(given[4].status, WEIR_OUT_OF_RANGE);
	finish(dataset, iterator, pool);
}

/* A reader that is quick, and so is measured to be short, up to the element that it holds back. */
struct reader {
	int64_t next, held;
	struct weiri_latch let_go;
	pthread_t asks;
	bool was_run_by_asker; /* unless it is declared short it must not be: its caller could not be told of a deadline */
};

static enum weir_status read_number(void *context, void *state, weir_tensor *out[], weir_error *error)
{
	struct reader *reader = context;

	(void)state, (void)error;
	reader->was_run_by_asker |= pthread_equal(pthread_self(), reader->asks) != 0;
	if (reader->held >= 0 && reader->next > reader->held)
		return WEIR_OUT_OF_RANGE;
	/* If the asker is here, nobody would let it go. */
	while (reader->next == reader->held && !reader->was_run_by_asker && !weiri_latch_is_set(&reader->let_go))
		(void)sched_yield();
	return weir_tensor_scalar_i64(reader->next++, &out[0]);
}

static weir_dataset *data_reader(struct reader *reader, int64_t held, uint32_t flags)
{
	struct weir_dataset_generator generator = {WEIR_DATASET_GENERATOR_INIT, .next = read_number, .context = reader};
	enum weir_dtype dtype = WEIR_I64;
	struct weir_dataset_options options = {WEIR_DATASET_OPTIONS_INIT, .flags = flags, .dtypes = &dtype, .width = 1};
	weir_dataset *dataset = NULL;

	*reader = (struct reader){.held = held, .asks = pthread_self()};
	weiri_latch_init(&reader->let_go);
	cr_assert_eq(weir_dataset_generate(&generator, &options, &dataset, NULL), WEIR_OK);
	return dataset;
}

/*
 * The operations come back at once, so their window hurries; and as a whole it is short. A call without
 * deadline would read itself. An operation may be cancelled, or end with its step: it leaves all to helpers.
 */
Test(dataset_start, does_not_wait_for_a_reader_of_what_is_read_ahead)
{
	enum { HELD = 100 };

	for (size_t size = 1; size <= 8; size *= 8) {
		/* One thread may be held back in the reader before the others pass on what was read before. */
		weir_pool *pool = data_pool(2);
		struct reader reader;
		weir_dataset *dataset = data_prefetch(data_reader(&reader, HELD, 0), size);
		weir_iterator *iterator = data_iterate(dataset, pool);
		struct given given;

		for (int64_t i = 0; i < HELD; i++) {
			weir_pending_release(start(iterator, &given));
			await(&given);
			cr_expect_eq(given.number, i);
		}
		weir_pending_release(start(iterator, &given));
		cr_expect_not(has_ended(&given), "its reader is held back");
		weiri_latch_set(&reader.let_go);
		await(&given);
		cr_expect_eq(given.number, HELD);
		finish(dataset, iterator, pool);
		cr_expect_not(reader.was_run_by_asker);
	}
}

/* What is of known length is computed where it is asked for, as soon as it was measured to be short. */
Test(dataset_start, a_reader_that_is_declared_short_runs_in_the_call_that_starts)
{
	enum { MOST = 20000 };

	for (size_t kind = 0; kind < 3; kind++) {
		weir_pool *pool = data_pool(0); /* its tasks run below, and so nothing is computed beside this thread */
		struct reader reader;
		weir_dataset *dataset = data_reader(&reader, -1, WEIR_DATASET_SHORT);
		weir_iterator *iterator;
		struct given given;
		bool ran = false;

		if (kind < 2)
			dataset = data_prefetch(dataset, 1 + kind * 3);
		iterator = data_iterate(dataset, pool);
		/* A measurement that the machine disturbed counts until later ones outweigh it. */
		for (int64_t i = 0; i < (ran ? 40 : MOST); i++) {
			reader.was_run_by_asker = false;
			weir_pending_release(start(iterator, &given));
			ran |= reader.was_run_by_asker;
			(void)weir_pool_help(pool, SIZE_MAX);
			await(&given);
			cr_expect_eq(given.number, i);
			cr_expect(kind < 2 || reader.was_run_by_asker, "nothing runs ahead");
		}
		cr_expect(ran, "kind %zu", kind);
		finish(dataset, iterator, pool);
	}
}

static enum weir_status keep_none(void *context, weir_tensor *const in[], bool *keep, weir_error *error)
{
	(void)context, (void)in, (void)error;
	*keep = false;
	return WEIR_OK;
}

/* A poll of these may poll below any number of times, or close what is below. */
Test(dataset_start, what_has_no_known_length_is_left_to_tasks)
{
	for (size_t kind = 0; kind < 4; kind++) {
		weir_pool *pool = data_pool(0);
		struct reader reader;
		weir_dataset *input = data_reader(&reader, 100, WEIR_DATASET_SHORT), *dataset = NULL;
		struct weir_iterator_options options = {WEIR_ITERATOR_OPTIONS_INIT, .pool = pool};
		weir_iterator *iterator;
		struct given given;

		if (kind == 0)
			cr_assert_eq(weir_dataset_filter(input, keep_none, NULL, NULL, &dataset, NULL), WEIR_OK);
		else if (kind == 1)
			cr_assert_eq(weir_dataset_batch(input, 2, NULL, &dataset, NULL), WEIR_OK);
		else if (kind == 2)
			cr_assert_eq(weir_dataset_skip(input, 50, NULL, &dataset, NULL), WEIR_OK);
		else
			dataset = weir_dataset_retain(input);
		options.position = kind == 3 ? 50 : 0;
		weir_dataset_release(input);
		cr_assert_eq(weir_iterator_create(dataset, &options, &iterator, NULL), WEIR_OK);
		weir_pending_release(start(iterator, &given));
		cr_expect_not(reader.was_run_by_asker, "kind %zu", kind);
		(void)weir_pool_help(pool, SIZE_MAX);
		await(&given);
		finish(dataset, iterator, pool);
	}
}

/* The operation "first" gets 0, starts another one in its completion, and then waits for what others take. */
struct long_completion {
	weir_iterator *iterator;
	struct weiri_latch let_go, begun, others_took;
	_Atomic(uint32_t) mapped, ended;
	struct given started;
};

static enum weir_status hold_the_first(void *context, weir_tensor *const in[], weir_tensor *out[], weir_error *error)
{
	struct long_completion *all = context;

	(void)error;
	if (data_number(in[0]) == 0)
		while (!weiri_latch_is_set(&all->let_go))
			(void)sched_yield();
	else
		(void)weiri_fetch_add_relaxed(&all->mapped, 1u);
	out[0] = weir_tensor_retain(in[0]);
	return WEIR_OK;
}

static void start_and_wait(void *context, enum weir_status status, const weir_error *error, weir_tensor *const parts[],
                           size_t count)
{
	struct long_completion *all = context;
	uint64_t deadline = weir_deadline_in(long_ns);

	(void)error, (void)count;
	if (status == WEIR_OK)
		weir_tensor_release(parts[0]);
	weir_pending_release(start(all->iterator, &all->started));
	weiri_latch_set(&all->begun);
	while (!weiri_latch_is_set(&all->others_took) && weir_now_ns() < deadline)
		(void)sched_yield();
	weiri_store_release(&all->ended, 1u);
}

Test(dataset_start, a_completion_that_takes_long_holds_no_turn)
{
	weir_pool *pool = data_pool(3);
	struct long_completion all = {.iterator = NULL};
	weir_dataset *dataset = data_map(data_range(0, 1000), hold_the_first, &all, 8, 0);
	weir_pending *operation = NULL;
	struct given second;
	int64_t number;

	all.iterator = data_iterate(dataset, pool);
	cr_assert_eq(weir_iterator_start_next(all.iterator, start_and_wait, &all, &operation, NULL), WEIR_OK);
	weir_pending_release(operation);
	weir_pending_release(start(all.iterator, &second));
	while (weiri_load_relaxed(&all.mapped) < 7)
		(void)sched_yield();
	weiri_latch_set(&all.let_go);
	while (!weiri_latch_is_set(&all.begun))
		(void)sched_yield();
	cr_expect_eq(data_next(all.iterator, &number, NULL), WEIR_OK);
	weiri_latch_set(&all.others_took);
	while (weiri_load_acquire(&all.ended) == 0)
		(void)sched_yield();
	await(&second);
	await(&all.started);
	finish(dataset, all.iterator, pool);
}

Test(dataset_start, only_functions_are_declared_short)
{
	struct weir_dataset_options options = {WEIR_DATASET_OPTIONS_INIT, .flags = WEIR_DATASET_SHORT};
	weir_dataset *numbers = data_range(0, 3), *out = NULL;

	cr_expect_eq(weir_dataset_batch(numbers, 2, &options, &out, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_dataset_range(0, 3, 1, &options, &out, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_dataset_filter(numbers, keep_none, NULL, &options, &out, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_null(out);
	weir_dataset_release(numbers);
}

/* The only worker goes on with the reader, which is held back, after it has finished what is waited for. */
Test(dataset_start, an_element_does_not_wait_for_the_reading_of_the_next_one)
{
	weir_pool *pool = data_pool(1);
	struct reader reader;
	weir_dataset *dataset = data_prefetch(data_reader(&reader, 2, 0), 3);
	weir_iterator *iterator = data_iterate(dataset, pool);
	struct given given[2];

	for (size_t i = 0; i < 2; i++)
		weir_pending_release(start(iterator, &given[i]));
	for (size_t i = 0; i < 2; i++) {
		await(&given[i]);
		cr_expect_eq(given[i].number, (int64_t)i);
	}
	weiri_latch_set(&reader.let_go);
	finish(dataset, iterator, pool);
}

/* Cancels an operation while the function of the map is held back, which then goes on. */
static void cancel_held_back(weir_iterator *iterator, struct hold *hold)
{
	struct given given;
	weir_pending *operation;

	hold_init(hold);
	operation = start(iterator, &given);
	while (!weiri_latch_is_set(&hold->begun)) /* a task polls for it */
		(void)sched_yield();
	weir_pending_cancel(operation, NULL);
	cr_expect(has_ended(&given));
	cr_expect_eq(given.status, WEIR_CANCELLED);
	weir_pending_release(operation);
	weiri_latch_set(&hold->let_go);
}

Test(dataset_start, a_cancelled_operation_loses_no_element)
{
	weir_pool *pool = data_pool(1);
	struct hold hold;
	weir_dataset *dataset = data_map(data_range(0, 3), hold_back, &hold, 1, 0);
	weir_iterator *iterator = data_iterate(dataset, pool);
	struct data_list list;

	cancel_held_back(iterator, &hold);
	data_take_some(iterator, 4, &list);
	data_expect_range(&list, 0, 3);
	finish(dataset, iterator, pool);
}

static enum weir_status hold_back_and_fail(void *context, weir_tensor *const in[], weir_tensor *out[],
                                           weir_error *error)
{
	enum weir_status status = hold_back(context, in, out, error);

	if (status != WEIR_OK || data_number(in[0]) != 0)
		return status;
	(void)snprintf(error->message, sizeof(error->message), "0 is not wanted");
	return WEIR_ABORTED;
}

Test(dataset_start, a_cancelled_operation_loses_no_error)
{
	weir_pool *pool = data_pool(1);
	struct hold hold;
	weir_dataset *dataset = data_map(data_range(0, 2), hold_back_and_fail, &hold, 1, 0);
	weir_iterator *iterator = data_iterate(dataset, pool);
	weir_error error = {.message = ""};
	int64_t number = 0;

	cancel_held_back(iterator, &hold);
	cr_expect_eq(data_next(iterator, &number, &error), WEIR_ABORTED);
	cr_expect_not_null(strstr(error.message, "0 is not wanted"), "%s", error.message);
	cr_expect_eq(data_next(iterator, &number, &error), WEIR_OK);
	cr_expect_eq(number, 1);
	finish(dataset, iterator, pool);
}

/* Its first call starts two operations, which find the turn taken; its second one ends the first of them. */
struct canceller {
	weir_iterator *iterator;
	weir_pending *operations[2];
	struct given given[2];
	int64_t next;
};

static enum weir_status start_and_cancel(void *context, void *state, weir_tensor *out[], weir_error *error)
{
	struct canceller *all = context;

	(void)state, (void)error;
	for (size_t i = 0; i < 2 && all->next == 0; i++)
		all->operations[i] = start(all->iterator, &all->given[i]);
	if (all->next == 1)
		weir_pending_cancel(all->operations[0], NULL);
	return weir_tensor_scalar_i64(all->next++, &out[0]);
}

/* The thread that gives up the turn polls for them. The completion of the one that ends must not pass this turn on. */
Test(dataset_start, a_function_that_cancels_an_operation_keeps_the_turn)
{
	struct canceller all = {.iterator = NULL};
	struct weir_dataset_generator generator = {WEIR_DATASET_GENERATOR_INIT, .next = start_and_cancel, .context = &all};
	enum weir_dtype dtype = WEIR_I64;
	struct weir_dataset_options options = {WEIR_DATASET_OPTIONS_INIT, .flags = WEIR_DATASET_SHORT, .dtypes = &dtype,
	                                       .width = 1};
	weir_pool *pool = data_pool(0);
	weir_dataset *dataset = NULL;
	int64_t number = -1;

	cr_assert_eq(weir_dataset_generate(&generator, &options, &dataset, NULL), WEIR_OK);
	all.iterator = data_iterate(dataset, pool);
	cr_assert_eq(data_next(all.iterator, &number, NULL), WEIR_OK);
	cr_expect_eq(number, 0);
	cr_expect_eq(weir_pool_help(pool, SIZE_MAX), 0, "a task was given the turn of this thread");
	for (size_t i = 0; i < 2; i++) {
		await(&all.given[i]);
		weir_pending_release(all.operations[i]);
	}
	cr_expect_eq(all.given[0].status, WEIR_CANCELLED);
	cr_expect_eq(all.given[1].status, WEIR_OK);
	cr_expect_eq(all.given[1].number, 1);
	cr_expect_eq(data_next(all.iterator, &number, NULL), WEIR_OK);
	cr_expect_eq(number, 2);
	finish(dataset, all.iterator, pool);
}

Test(dataset_start, destroy_ends_operations_that_wait)
{
	weir_pool *pool = data_pool(0);
	weir_dataset *dataset = data_map(data_range(0, 3), data_same, NULL, 1, 0);
	weir_iterator *iterator = data_iterate(dataset, pool);
	struct given given;

	weir_pending_release(start(iterator, &given));
	cr_expect_not(has_ended(&given)); /* no thread runs the task */
	finish(dataset, iterator, pool);
	cr_expect_eq(given.status, WEIR_CANCELLED);
	cr_expect(strstr(given.error.message, "it is being destroyed") != NULL, "%s", given.error.message);
}

Test(dataset_start, a_completion_cannot_destroy_its_iterator)
{
	weir_dataset *dataset = data_range(0, 3);
	weir_iterator *iterator = data_iterate(dataset, NULL);
	struct given given = {.destroys = iterator};

	cr_assert_eq(weir_iterator_start_next(iterator, note, &given, NULL, NULL), WEIR_OK);
	cr_expect_eq(given.refused, WEIR_FAILED_PRECONDITION);
	cr_expect_eq(given.number, 0);
	finish(dataset, iterator, NULL);
}

/*
 * A queue whose operation is complete once the test has put an item; its completion does what the
 * test says.
 */
struct trigger {
	weir_queue *queue;
	void *item;
	void (*act)(struct trigger *trigger);
	weir_iterator *iterator;
	struct trigger *other;
	struct given given[2];
	enum weir_status destroyed;
	bool has_run;
};

static void act(void *context, enum weir_status status, const weir_error *error, void **items, size_t count)
{
	struct trigger *trigger = context;

	(void)error;
	(void)items;
	cr_expect_eq(status, WEIR_OK);
	cr_expect_eq(count, (size_t)1);
	trigger->act(trigger);
	trigger->has_run = true;
}

static void arm(struct trigger *trigger, void (*what)(struct trigger *trigger), weir_iterator *iterator)
{
	struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .capacity = 1};

	*trigger = (struct trigger){.act = what, .iterator = iterator, .destroyed = WEIR_INTERNAL};
	cr_assert_eq(weir_queue_create(&options, &trigger->queue, NULL), WEIR_OK);
	cr_assert_eq(
		weir_queue_start(trigger->queue, WEIR_QUEUE_OP_DEQUEUE_MANY, &trigger->item, 1, act, trigger, NULL, NULL),
		WEIR_OK);
}

static void pull(struct trigger *trigger)
{
	cr_expect_eq(weir_queue_try_enqueue(trigger->queue, trigger), WEIR_OK);
}

static void disarm(struct trigger *trigger)
{
	cr_expect(trigger->has_run);
	cr_assert_eq(weir_queue_destroy(trigger->queue, NULL), WEIR_OK);
}

static void destroy_in_completion(struct trigger *trigger)
{
	trigger->destroyed = weir_iterator_destroy(trigger->iterator, NULL);
}

static void start_twice_and_destroy(struct trigger *trigger)
{
	for (size_t i = 0; i < 2; i++)
		weir_pending_release(start(trigger->iterator, &trigger->given[i]));
	cr_expect_not(has_ended(&trigger->given[0]), "completions run one after the other");
	destroy_in_completion(trigger);
}

/* What the destroy waits for is told by no other thread. */
Test(dataset_start, a_completion_of_another_object_destroys_an_iterator_with_operations_that_are_due)
{
	weir_dataset *dataset = data_map(data_range(0, 3), data_same, NULL, 1, 0);

	for (int with_pool = 0; with_pool < 2; with_pool++) {
		weir_pool *pool = with_pool ? data_pool(0) : NULL; /* nobody runs its tasks: the operations wait */
		struct trigger trigger;

		arm(&trigger, start_twice_and_destroy, data_iterate(dataset, pool));
		pull(&trigger);
		cr_expect_eq(trigger.destroyed, WEIR_OK);
		for (size_t i = 0; i < 2; i++) {
			cr_expect(has_ended(&trigger.given[i]));
			cr_expect_eq(trigger.given[i].status, with_pool ? WEIR_CANCELLED : WEIR_OK);
		}
		disarm(&trigger);
		cr_assert_eq(weir_pool_destroy(pool, NULL), WEIR_OK);
	}
	weir_dataset_release(dataset);
}

static void pull_in_completion(void *context, enum weir_status status, const weir_error *error,
                               weir_tensor *const parts[], size_t count)
{
	(void)error;
	cr_expect_eq(status, WEIR_OK);
	cr_expect_eq(count, (size_t)1);
	weir_tensor_release(parts[0]);
	pull(context);
}

/* The queue's completion runs when that of the iterator has ended, and its call has not. */
Test(dataset_start, a_completion_inside_a_call_of_the_iterator_cannot_destroy_it)
{
	weir_dataset *dataset = data_range(0, 3);
	weir_iterator *iterator = data_iterate(dataset, NULL);
	struct trigger trigger;

	arm(&trigger, destroy_in_completion, iterator);
	cr_assert_eq(weir_iterator_start_next(iterator, pull_in_completion, &trigger, NULL, NULL), WEIR_OK);
	cr_expect_eq(trigger.destroyed, WEIR_FAILED_PRECONDITION);
	disarm(&trigger);
	finish(dataset, iterator, NULL);
}

static void wait_with_destroy_due(struct trigger *trigger)
{
	int64_t number = -1;

	pull(trigger->other);
	weir_pending_release(start(trigger->iterator, &trigger->given[0])); /* it has the turn, and its completion is due */
	cr_expect_eq(data_next(trigger->iterator, &number, NULL), WEIR_OK);
	cr_expect_eq(trigger->given[0].number, 0);
	cr_expect_eq(number, 1);
}

/* The call that waits delivers what is due. */
Test(dataset_start, a_completion_that_a_call_of_the_iterator_delivers_cannot_destroy_it)
{
	weir_dataset *dataset = data_range(0, 3);
	weir_iterator *iterator = data_iterate(dataset, NULL);
	struct trigger waits, destroys;

	arm(&destroys, destroy_in_completion, iterator);
	arm(&waits, wait_with_destroy_due, iterator);
	waits.other = &destroys;
	pull(&waits);
	cr_expect_eq(destroys.destroyed, WEIR_FAILED_PRECONDITION);
	disarm(&waits);
	disarm(&destroys);
	finish(dataset, iterator, NULL);
}

Test(dataset_start, null_is_refused)
{
	weir_dataset *dataset = data_range(0, 3);
	weir_iterator *iterator = data_iterate(dataset, NULL);
	weir_error error;

	cr_expect_eq(weir_iterator_start_next(NULL, note, NULL, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "iterator: iterator is NULL");
	cr_expect_eq(weir_iterator_start_next(iterator, NULL, NULL, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "iterator: done is NULL");
	cr_expect_null(weir_iterator_dataset(NULL));
	cr_expect_eq(weir_iterator_dataset(iterator), dataset);
	cr_expect_str_eq(weir_iterator_name(iterator), "range");
	cr_expect_eq(weir_dataset_dtype(dataset, 0), WEIR_I64);
	cr_expect_eq((int)weir_dataset_dtype(dataset, 1), 0);
	finish(dataset, iterator, NULL);
}

static enum weir_status start_one(const weir_allocator *allocator, void *pool)
{
	struct weir_dataset_options plain = {WEIR_DATASET_OPTIONS_INIT, .allocator = allocator};
	struct weir_iterator_options reading = {WEIR_ITERATOR_OPTIONS_INIT, .pool = pool, .allocator = allocator};
	weir_dataset *dataset = NULL;
	weir_iterator *iterator = NULL;
	struct given given = {.status = WEIR_INTERNAL};
	enum weir_status status = weir_dataset_range(0, 1, 1, &plain, &dataset, NULL);

	if (status == WEIR_OK)
		status = weir_iterator_create(dataset, &reading, &iterator, NULL);
	if (status == WEIR_OK)
		status = weir_iterator_start_next(iterator, note, &given, NULL, NULL);
	if (status == WEIR_OK)
		cr_expect_eq(given.status, WEIR_OK);
	weir_dataset_release(dataset);
	cr_assert_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
	return status;
}

Test(dataset_start, each_allocation_that_fails_is_a_status)
{
	cr_expect_gt(fail_each_allocation(start_one, NULL), 3);
}

/* -- what a dump says -------------------------------------------------------------------------- */

Test(dataset_start, a_dump_shows_windows_and_who_waits)
{
	weir_pool *pool = data_pool(1);
	struct hold hold;
	weir_dataset *dataset = data_prefetch(data_map(data_range(0, 9), hold_back, &hold, 3, 0), 5);
	struct weir_iterator_options options = {WEIR_ITERATOR_OPTIONS_INIT, .pool = pool, .name = "digits"};
	weir_iterator *iterator = NULL;
	struct given given;

	hold_init(&hold);
	cr_assert_eq(weir_iterator_create(dataset, &options, &iterator, NULL), WEIR_OK);
	expect_line("digits", "^iterator \"digits\" \\(number [0-9]+\\): 0 given; prefetch\\(5\\): 0 of 5 ahead; "
	                      "map\\(3\\): 0 of 6 ahead$");
	weir_pending_release(start(iterator, &given));
	while (!weiri_latch_is_set(&hold.begun))
		(void)sched_yield();
	expect_line("digits", "^iterator \"digits\" \\(number [0-9]+\\): 0 given; prefetch\\(5\\): 0 of 5 ahead.*, "
	                      "consumer waits; map\\(3\\): [1-6] of 6 ahead");
	expect_line("digits", "^  waits: next, asynchronous, begun by thread [0-9]+ \".*\", for [0-9.]+ s$");
	weiri_latch_set(&hold.let_go);
	await(&given);
	finish(dataset, iterator, pool);
}
