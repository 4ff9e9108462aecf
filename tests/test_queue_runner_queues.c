/*
 * test_queue_runner_queues.c - loops that move items between queues: closes, stops and errors pass
 * along a chain.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <weir/flow/tensor_queue.h>

#include "queue_runner_kit.h"

/* -- with real queues -------------------------------------------------------------------------- */

static weir_queue *create_queue(const char *name, size_t capacity)
{
	struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .capacity = capacity, .name = name};
	weir_queue *queue = NULL;

	cr_assert_eq(weir_queue_create(&options, &queue, NULL), WEIR_OK);
	return queue;
}

struct pipe {
	weir_queue *from;
	weir_queue *to;
};

/* Does what a step of a pipeline does: takes, works, and puts. */
static enum weir_status move_one(void *context, weir_cancel *cancel, weir_error *error)
{
	struct pipe *pipe = context;
	void *item;
	enum weir_status status = weir_queue_dequeue(pipe->from, &item, WEIR_NO_DEADLINE, cancel, error);

	return status == WEIR_OK ? weir_queue_enqueue(pipe->to, item, WEIR_NO_DEADLINE, cancel, error) : status;
}

static weir_queue_runner *create_mover(struct pipe *pipe, size_t threads)
{
	struct weir_queue_runner_step step = {move_one, pipe, "move"};
	struct weir_queue_runner_options options = {WEIR_QUEUE_RUNNER_OPTIONS_INIT, .steps = &step, .step_count = 1,
	                                            .threads_per_step = threads};
	weir_queue_runner *runner = NULL;

	weir_queue_runner_bind(&options, pipe->to);
	cr_expect_str_eq(options.name, weir_queue_name(pipe->to));
	cr_assert_eq(weir_queue_runner_create(&options, &runner, NULL), WEIR_OK);
	return runner;
}

static int items[1000];

Test(queue_runner_queues, QR_004_a_closed_source_is_drained_and_closes_the_next_queue)
{
	struct pipe pipe = {create_queue("q0", 10), create_queue("q1", 10)};
	weir_queue_runner *runner = create_mover(&pipe, 1);
	uint64_t deadline = weir_deadline_in(long_ns);
	weir_error error;
	void *item;

	start(runner, NULL);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(weir_queue_enqueue(pipe.from, &items[i], deadline, NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_queue_close(pipe.from, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(weir_queue_dequeue(pipe.to, &item, deadline, NULL, NULL), WEIR_OK);
		cr_expect_eq(item, &items[i]);
	}
	cr_expect_eq(weir_queue_dequeue(pipe.to, &item, deadline, NULL, &error), WEIR_OUT_OF_RANGE);
	cr_assert_eq(weir_queue_runner_join(runner, deadline), WEIR_OK);
	cr_expect_eq(weir_queue_runner_error_count(runner), 0);
	end(runner);
	cr_assert_eq(weir_queue_destroy(pipe.from, NULL), WEIR_OK);
	cr_assert_eq(weir_queue_destroy(pipe.to, NULL), WEIR_OK);
}

Test(queue_runner_queues, QR_007_a_stop_frees_a_step_that_waits_for_room)
{
	struct pipe pipe = {create_queue("source", 100), create_queue("full", 1)};
	weir_queue_runner *runner = create_mover(&pipe, 2);
	weir_coordinator *coordinator = create_coordinator();
	uint64_t deadline = weir_deadline_in(long_ns);
	void *item;

	start(runner, coordinator);
	for (int i = 0; i < 10; i++)
		cr_assert_eq(weir_queue_enqueue(pipe.from, &items[i], deadline, NULL, NULL), WEIR_OK);
	/* One item is inside, and two threads hold one each and wait. */
	while (weir_queue_size_approx(pipe.from) != 7 && weir_now_ns() < deadline)
		(void)sched_yield();
	cr_assert_eq(weir_queue_size_approx(pipe.from), 7);
	cr_expect_eq(weir_coordinator_request_stop(coordinator, NULL), WEIR_OK);
	cr_expect_eq(join_coordinator(coordinator, NULL), WEIR_OK);
	cr_expect(weir_queue_closed(pipe.to));
	cr_expect_eq(weir_queue_dequeue(pipe.to, &item, deadline, NULL, NULL), WEIR_OK);
	cr_expect_eq(weir_queue_dequeue(pipe.to, &item, deadline, NULL, NULL), WEIR_OUT_OF_RANGE);
	end(runner);
	cr_assert_eq(weir_coordinator_destroy(coordinator, NULL), WEIR_OK);
	cr_assert_eq(weir_queue_destroy(pipe.from, NULL), WEIR_OK);
	cr_assert_eq(weir_queue_destroy(pipe.to, NULL), WEIR_OK);
}

/*
 * An allocator of a queue. It ends the second thread that uses it, once that thread is the last of
 * its runner.
 */
struct fatal_allocator {
	/* NULL: every thread survives. */
	weir_queue_runner *runner;
	_Atomic(int) uses;
	_Atomic(int) ends;
};

static void *allocate_or_end(void *context, size_t size, size_t alignment)
{
	struct fatal_allocator *fatal = context;
	uint64_t deadline = weir_deadline_in(long_ns);
	void *memory = NULL;

	if (fatal->runner != NULL && weiri_fetch_add_relaxed(&fatal->uses, 1) == 1) {
		weiri_store_release(&fatal->ends, 1);
		while (weir_queue_runner_running_count(fatal->runner) != 1 && weir_now_ns() < deadline)
			(void)sched_yield();
		pthread_exit(NULL);
	}
	return posix_memalign(&memory, alignment, size) == 0 ? memory : NULL;
}

static void release_memory(void *context, void *memory, size_t size, size_t alignment)
{
	(void)context, (void)size, (void)alignment;
	free(memory);
}

/* Fails once the other thread is inside its announcement. */
static enum weir_status fail_beside_the_end(void *context, weir_cancel *cancel, weir_error *error)
{
	struct fatal_allocator *fatal = context;

	(void)cancel;
	*error = error_with(WEIR_INTERNAL, reaches(&fatal->ends, 1) ? "the step failed" : "no other thread announced");
	return WEIR_INTERNAL;
}

Test(queue_runner_queues, the_last_thread_closes_the_queue_even_if_it_ends_inside_its_announcement)
{
	struct fatal_allocator fatal = {.runner = NULL};
	weir_allocator allocator = {allocate_or_end, release_memory, &fatal};
	struct weir_queue_options of_queue = {WEIR_QUEUE_OPTIONS_INIT, .capacity = 1, .name = "fed",
	                                      .allocator = &allocator};
	struct weir_queue_runner_step step = {fail_beside_the_end, &fatal, NULL};
	struct weir_queue_runner_options options = {WEIR_QUEUE_RUNNER_OPTIONS_INIT, .steps = &step, .step_count = 1,
	                                            .threads_per_step = 2};
	weir_queue_runner *runner = NULL;
	weir_queue *queue = NULL;
	weir_error error = {WEIR_OK, ""};
	void *item;

	cr_assert_eq(weir_queue_create(&of_queue, &queue, NULL), WEIR_OK);
	weir_queue_runner_bind(&options, queue);
	cr_assert_eq(weir_queue_runner_create(&options, &runner, NULL), WEIR_OK);
	fatal.runner = runner;
	start(runner, NULL);
	cr_assert_eq(weir_queue_runner_join(runner, weir_deadline_in(long_ns)), WEIR_OK);
	fatal.runner = NULL;
	cr_expect_eq(weir_queue_runner_error_count(runner), 2);
	for (size_t i = 0; i < 2; i++)
		cr_expect_eq(weir_queue_runner_error(runner, i, NULL), WEIR_INTERNAL);
	cr_expect(weir_queue_closed(queue));
	cr_expect_eq(weir_queue_dequeue(queue, &item, 0, NULL, &error), WEIR_OUT_OF_RANGE, "%s", error.message);
	end(runner);
	cr_assert_eq(weir_queue_destroy(queue, NULL), WEIR_OK);
}

Test(queue_runner_queues, a_closed_sink_is_no_error)
{
	struct pipe pipe = {create_queue("source", 10), create_queue("sink", 1)};
	weir_queue_runner *runner = create_mover(&pipe, 1);
	weir_coordinator *coordinator = create_coordinator();
	uint64_t deadline = weir_deadline_in(long_ns);

	cr_assert_eq(weir_queue_close(pipe.to, WEIR_CLOSE_CANCEL, NULL), WEIR_OK);
	start(runner, coordinator);
	cr_assert_eq(weir_queue_enqueue(pipe.from, &items[0], deadline, NULL, NULL), WEIR_OK);
	cr_expect_eq(join_coordinator(coordinator, NULL), WEIR_OK);
	cr_expect_not(weir_coordinator_should_stop(coordinator));
	end(runner);
	cr_assert_eq(weir_coordinator_destroy(coordinator, NULL), WEIR_OK);
	cr_assert_eq(weir_queue_destroy(pipe.from, NULL), WEIR_OK);
	cr_assert_eq(weir_queue_destroy(pipe.to, NULL), WEIR_OK);
}

Test(queue_runner_queues, the_consumer_learns_why_its_producer_failed)
{
	struct source source = {.limit = 0, .then = WEIR_NOT_FOUND, .message = "no such file: digits"};
	struct weir_queue_runner_step step = {count_to_limit, &source, "read"};
	struct weir_queue_runner_options options = {WEIR_QUEUE_RUNNER_OPTIONS_INIT, .steps = &step, .step_count = 1};
	weir_queue *queue = create_queue("batches", 4);
	weir_queue_runner *runner = NULL;
	weir_error error;
	void *item;

	weir_queue_runner_bind(&options, queue);
	cr_assert_eq(weir_queue_runner_create(&options, &runner, NULL), WEIR_OK);
	start(runner, NULL);
	cr_expect_eq(weir_queue_dequeue(queue, &item, weir_deadline_in(long_ns), NULL, &error), WEIR_OUT_OF_RANGE);
	cr_expect_not_null(strstr(error.message, "no such file: digits"), "%s", error.message);
	end(runner);
	cr_assert_eq(weir_queue_destroy(queue, NULL), WEIR_OK);
}

Test(queue_runner_queues, a_chain_of_runners_passes_every_item_and_ends_in_order)
{
	enum { STAGES = 3, ITEMS = 1000 };
	weir_queue *queues[STAGES + 1];
	weir_queue_runner *runners[STAGES];
	struct pipe pipes[STAGES];
	weir_coordinator *coordinator = create_coordinator();
	weir_queue_runner *feeder;
	uint64_t deadline = weir_deadline_in(long_ns);
	struct pipe feed;
	int seen = 0;
	int sum = 0;
	void *item;

	for (int i = 0; i <= STAGES; i++)
		queues[i] = create_queue("stage", 4);
	for (int i = 0; i < STAGES; i++) {
		pipes[i] = (struct pipe){queues[i], queues[i + 1]};
		runners[i] = create_mover(&pipes[i], 2);
		start(runners[i], coordinator);
	}
	feed = (struct pipe){create_queue("feed", ITEMS), queues[0]};
	for (int i = 0; i < ITEMS; i++)
		cr_assert_eq(weir_queue_enqueue(feed.from, &items[i], deadline, NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_queue_close(feed.from, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
	feeder = create_mover(&feed, 1);
	start(feeder, coordinator);
	while (weir_queue_dequeue(queues[STAGES], &item, deadline, NULL, NULL) == WEIR_OK) {
		seen++;
		sum += (int)((int *)item - items);
	}
	cr_expect_eq(seen, ITEMS);
	cr_expect_eq(sum, ITEMS * (ITEMS - 1) / 2);
	cr_expect_eq(join_coordinator(coordinator, NULL), WEIR_OK);
	end(feeder);
	for (int i = 0; i < STAGES; i++)
		end(runners[i]);
	cr_assert_eq(weir_coordinator_destroy(coordinator, NULL), WEIR_OK);
	cr_assert_eq(weir_queue_destroy(feed.from, NULL), WEIR_OK);
	for (int i = 0; i <= STAGES; i++)
		cr_assert_eq(weir_queue_destroy(queues[i], NULL), WEIR_OK);
}

/* -- over a queue of tensors ------------------------------------------------------------------- */

static enum weir_status put_a_tensor(void *context, weir_cancel *cancel, weir_error *error)
{
	weir_tensor *tensor = NULL;
	enum weir_status status;

	cr_assert_eq(weir_tensor_scalar_f32(1, &tensor), WEIR_OK);
	/* The enqueue ends by the close alone, because this step does not look at its token. */
	(void)cancel;
	status = weir_tensor_queue_enqueue(context, &tensor, 1, WEIR_NO_DEADLINE, NULL, error);
	weir_tensor_release(tensor);
	return status;
}

Test(queue_runner_queues, a_stop_frees_a_step_that_waits_for_room_in_a_tensor_queue)
{
	weir_tensor_queue *queue = NULL;
	struct weir_tensor_component component = {.dtype = WEIR_F32};
	struct weir_tensor_queue_options made = {WEIR_TENSOR_QUEUE_OPTIONS_INIT, .capacity = 1, .name = "tensors",
	                                         .components = &component, .component_count = 1};
	struct weir_queue_runner_step step;
	struct weir_queue_runner_options options = {WEIR_QUEUE_RUNNER_OPTIONS_INIT, .steps = &step, .step_count = 1};
	weir_queue_runner *runner = NULL;
	weir_coordinator *coordinator = create_coordinator();
	uint64_t deadline = weir_deadline_in(long_ns);

	cr_assert_eq(weir_tensor_queue_create(&made, &queue, NULL), WEIR_OK);
	step = (struct weir_queue_runner_step){put_a_tensor, queue, NULL};
	weir_tensor_queue_bind_runner(queue, &options);
	cr_expect_str_eq(options.name, "tensors");
	cr_assert_eq(weir_queue_runner_create(&options, &runner, NULL), WEIR_OK);
	start(runner, coordinator);
	while (weir_tensor_queue_size_approx(queue) != 1 && weir_now_ns() < deadline)
		(void)sched_yield();
	cr_expect_eq(weir_coordinator_request_stop(coordinator, NULL), WEIR_OK);
	cr_expect_eq(join_coordinator(coordinator, NULL), WEIR_OK);
	cr_expect(weir_tensor_queue_closed(queue));
	end(runner);
	cr_assert_eq(weir_coordinator_destroy(coordinator, NULL), WEIR_OK);
	cr_assert_eq(weir_tensor_queue_destroy(queue, NULL), WEIR_OK);
}
