/*
 * test_conformance_queue_graph.c - the rows of queues (conformance_rows.tsv) that concern ops,
 * feeds and sessions.
 */
#include "conformance_queue.h"
#include "graph_kit.h"

static void open_line(struct kit_line *line, const struct kind *kind, size_t capacity)
{
	kit_open_line(line, numbers_queue(kind, capacity), WEIR_I32, 2);
}

static void close_line(struct kit_line *line)
{
	kit_end(line->session, line->graph);
	end_queue(line->queue);
}

static enum weir_status feed(struct kit_line *line, int32_t value, weir_error *error)
{
	weir_tensor *tensor = number(value);
	struct weir_feed fed = {line->x, tensor};
	enum weir_status status =
		weir_session_run(line->session, &fed, 1, NULL, 0, NULL, &line->put, 1, WEIR_NO_DEADLINE, NULL, error);

	weir_tensor_release(tensor);
	return status;
}

static int32_t fetch_number(struct kit_line *line, weir_output output)
{
	weir_tensor *tensor = kit_fetch(line->session, output);
	int32_t value = value_of(tensor);

	weir_tensor_release(tensor);
	return value;
}

/* -- runs -------------------------------------------------------------------------------------- */

Test(conformance_queue_graph, FIFO_008_three_dequeues_of_one_run)
{
	struct taken taken = {.count = 0};
	weir_output outs[3];
	weir_tensor *got[3];
	struct kit_line line;
	weir_error error;

	open_line(&line, &fifo_kind, 10);
	for (size_t i = 0; i < 3; i++)
		cr_assert_eq(weir_op_dequeue(line.graph, NULL, line.queue, &outs[i], 1, NULL, NULL), WEIR_OK);
	for (int32_t i = 10; i < 13; i++)
		cr_assert_eq(feed(&line, i, NULL), WEIR_OK);
	cr_assert_eq(weir_session_run(line.session, NULL, 0, outs, 3, got, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_OK, "%s", error.message);
	for (size_t i = 0; i < 3; i++)
		note_taken(&taken, got[i]);
	expect_all(&taken, 10, 3);
	close_line(&line);
}

Test(conformance_queue_graph, FIFO_035_does_not_lose_value)
{
	struct kit_line line;

	open_line(&line, &fifo_kind, 10);
	cr_assert_eq(feed(&line, 5, NULL), WEIR_OK);
	for (int i = 0; i < 500; i++)
		cr_assert_eq(kit_fetch_i64(line.session, line.size), 1);
	cr_expect_eq(fetch_number(&line, line.taken), 5);
	close_line(&line);
}

/* 100 batches, whose sizes come from another queue. */
static void sizes_come_from_another_queue(const struct kind *kind, enum call_kind how)
{
	enum { BATCHES = 100 };
	weir_tensor_queue *sizes = numbers_queue(&fifo_kind, BATCHES);
	struct taken taken = {.count = 0};
	int32_t size[BATCHES], sum = 0;
	unsigned seed = 9;
	weir_output n, batch;
	struct kit_line line;

	for (size_t i = 0; i < BATCHES; i++) {
		size[i] = (int32_t)(rand_r(&seed) % 10);
		put_numbers(sizes, size[i], 1);
		sum += size[i];
	}
	open_line(&line, kind, KIT_MOST_TAKEN);
	put_rows(line.queue, 0, sum);
	cr_assert_eq(weir_op_dequeue(line.graph, NULL, sizes, &n, 1, NULL, NULL), WEIR_OK);
	if (how == DEQUEUE_MANY)
		cr_assert_eq(weir_op_dequeue_many(line.graph, NULL, line.queue, n, &batch, 1, NULL, NULL), WEIR_OK);
	else
		cr_assert_eq(weir_op_dequeue_up_to(line.graph, NULL, line.queue, n, &batch, 1, NULL, NULL), WEIR_OK);
	for (size_t i = 0; i < BATCHES; i++) {
		weir_tensor *got = kit_fetch(line.session, batch);

		cr_assert_eq(weir_tensor_element_count(got), size[i]);
		note_taken(&taken, got);
	}
	expect_taken(kind, &taken, 0, (size_t)sum);
	close_line(&line);
	end_queue(sizes);
}

Test(conformance_queue_graph, FIFO_033_dequeue_many_with_tensor_parameter)
{
	sizes_come_from_another_queue(&fifo_kind, DEQUEUE_MANY);
}

Test(conformance_queue_graph, PAD_044_dequeue_many_with_tensor_parameter)
{
	sizes_come_from_another_queue(&padding_kind, DEQUEUE_MANY);
}

Test(conformance_queue_graph, RSQ_031_dequeue_up_to_with_tensor_parameter)
{
	sizes_come_from_another_queue(&shuffle_kind, DEQUEUE_UP_TO);
}

/* -- building ---------------------------------------------------------------------------------- */

/* A wrong shape is refused when the node is built. So is a scalar in place of rows. */
static void wrong_shapes_are_refused_by_the_builder(const struct kind *kind)
{
	weir_graph *graph = kit_graph();
	weir_shape shape = matrix_shape(3, 2);
	weir_tensor_queue *queue = queue_of(kind, 10, &(struct weir_tensor_component){WEIR_I32, &shape, "matrix"}, 1);
	weir_output wrong = kit_placeholder(graph, "wrong", WEIR_I32, kit_shape(2, 4, 2));
	weir_output scalar = kit_placeholder(graph, "scalar", WEIR_I32, kit_shape(0));
	weir_output rows = kit_placeholder(graph, "rows", WEIR_I32, kit_shape(3, -1, 3, 2));
	weir_node *node = NULL;
	weir_error error = {0};

	cr_expect_eq(weir_op_enqueue(graph, NULL, queue, &wrong, 1, &node, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "expects i32 [3,2] as component 0 (matrix), got i32 [4,2]"), "%s",
	                   error.message);
	cr_expect_eq(weir_op_enqueue_many(graph, NULL, queue, &scalar, 1, &node, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "got i32 []"), "%s", error.message);
	cr_expect_null(node);
	cr_expect_eq(weir_op_enqueue_many(graph, NULL, queue, &rows, 1, &node, &error), WEIR_OK, "%s", error.message);
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
	end_queue(queue);
}

Test(conformance_queue_graph, FIFO_028_enqueue_wrong_shape)
{
	wrong_shapes_are_refused_by_the_builder(&fifo_kind);
}

Test(conformance_queue_graph, PAD_030_enqueue_wrong_shape)
{
	wrong_shapes_are_refused_by_the_builder(&padding_kind);
}

/* -- ends -------------------------------------------------------------------------------------- */

/* A run on a thread of its own. */
struct run {
	weir_session *session;
	weir_node *target;
	weir_error error;
	enum weir_status status;
	pthread_t thread;
};

static void *run_main(void *context)
{
	struct run *run = context;

	run->status = kit_run_target(run->session, run->target, &run->error);
	return NULL;
}

/* Starts the run, and returns when `waiting` operations wait in the queue. */
static void begin_run(struct run *run, weir_session *session, weir_node *target, weir_tensor_queue *queue,
                      size_t waiting)
{
	*run = (struct run){.session = session, .target = target};
	cr_assert_eq(pthread_create(&run->thread, NULL, run_main, run), 0);
	await(idle_in(queue->queue) == waiting);
}

static void expect_cancelled(struct run *run)
{
	cr_assert_eq(pthread_join(run->thread, NULL), 0);
	cr_expect_eq(run->status, WEIR_CANCELLED, "%s", run->error.message);
	cr_expect_not_null(strstr(run->error.message, "closed"), "%s", run->error.message);
}

/*
 * Operations of all five kinds wait, in an empty queue and in a full one. Closing the session ends
 * them all.
 */
static void closing_the_session_ends_what_waits(const struct kind *kind)
{
	weir_tensor_queue *empty = numbers_queue(kind, 5), *full = numbers_queue(kind, 1);
	weir_graph *graph = kit_graph();
	weir_output two = kit_constant(graph, kit_i64(2)), one = kit_constant(graph, number(1));
	weir_output rows = kit_constant(graph, numbers_of(vector_shape(2), 1)), outs[3];
	weir_session *session;
	weir_node *puts[2];
	struct run runs[5];

	put_numbers(full, 0, 1);
	cr_assert_eq(weir_op_dequeue(graph, NULL, empty, &outs[0], 1, NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_op_dequeue_many(graph, NULL, empty, two, &outs[1], 1, NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_op_dequeue_up_to(graph, NULL, empty, two, &outs[2], 1, NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_op_enqueue(graph, NULL, full, &one, 1, &puts[0], NULL), WEIR_OK);
	cr_assert_eq(weir_op_enqueue_many(graph, NULL, full, &rows, 1, &puts[1], NULL), WEIR_OK);
	session = kit_session(graph, 1);
	for (size_t i = 0; i < 3; i++)
		begin_run(&runs[i], session, outs[i].node, empty, i + 1);
	for (size_t i = 0; i < 2; i++)
		begin_run(&runs[3 + i], session, puts[i], full, i + 1);
	cr_expect_eq(weir_session_close(session, NULL), WEIR_OK);
	for (size_t i = 0; i < 5; i++)
		expect_cancelled(&runs[i]);
	cr_expect_eq(weir_tensor_queue_size_approx(full), 1);
	kit_end(session, graph);
	destroy_tensors(empty);
	end_queue(full);
}

Test(conformance_queue_graph, FIFO_051_reset_of_blocking_operation)
{
	closing_the_session_ends_what_waits(&fifo_kind);
}

Test(conformance_queue_graph, PAD_066_reset_of_blocking_operation)
{
	closing_the_session_ends_what_waits(&padding_kind);
}

Test(conformance_queue_graph, RSQ_052_reset_of_blocking_operation)
{
	closing_the_session_ends_what_waits(&shuffle_kind);
}

/* A kernel that fails while the dequeue of its step waits. */
static enum weir_status fail_beside_a_waiter(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	weir_tensor_queue *queue = context;
	uint64_t until_ns = in_good_time();

	(void)call;
	while (idle_in(queue->queue) == 0 && weir_now_ns() < until_ns)
		(void)sched_yield();
	*error = (weir_error){WEIR_INVALID_ARGUMENT, "the assertion does not hold"};
	return WEIR_INVALID_ARGUMENT;
}

Test(conformance_queue_graph, FIFO_075_a_failure_elsewhere_cancels_a_blocked_dequeue)
{
	weir_node *assertion, *targets[2];
	weir_output one;
	struct kit_line line;
	weir_error error;

	open_line(&line, &fifo_kind, 10);
	one = kit_constant(line.graph, number(1));
	cr_assert_eq(weir_op_kernel(line.graph, "assertion", KIT_KERNEL(fail_beside_a_waiter), line.queue, NULL, 0, NULL, 0,
	                            NULL, 0, NULL, &assertion, NULL),
	             WEIR_OK);
	cr_assert_eq(weir_op_enqueue(line.graph, NULL, line.queue, &one, 1, &targets[1], NULL), WEIR_OK);
	cr_assert_eq(weir_graph_add_control(line.graph, assertion, targets[1], NULL), WEIR_OK);
	targets[0] = line.taken.node;
	cr_expect_eq(weir_session_run(line.session, NULL, 0, NULL, 0, NULL, targets, 2, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "the assertion does not hold"), "%s", error.message);
	/* The cancelled dequeue takes no item that comes later. */
	cr_expect_eq(weir_tensor_queue_size_approx(line.queue), 0);
	cr_assert_eq(feed(&line, 7, NULL), WEIR_OK);
	cr_expect_eq(fetch_number(&line, line.taken), 7);
	close_line(&line);
}

Test(conformance_queue_graph, FIFO_079_a_queue_is_as_before_after_timeouts)
{
	struct kit_bounds options = {WEIR_NO_DEADLINE, NULL};
	struct kit_line line;

	open_line(&line, &fifo_kind, 10);
	for (int i = 0; i < 2; i++) {
		weir_error error;

		options.deadline_ns = weir_deadline_in(5000000);
		cr_expect_eq(weir_session_run(line.session, NULL, 0, NULL, 0, NULL, &line.taken.node, 1, options.deadline_ns,
		                              options.cancel, &error),
		             WEIR_DEADLINE_EXCEEDED);
	}
	cr_assert_eq(feed(&line, 37, NULL), WEIR_OK);
	cr_expect_eq(fetch_number(&line, line.taken), 37);
	close_line(&line);
}

/* -- one of several queues --------------------------------------------------------------------- */

enum { CHOICES = 3 };

/* A graph in which a fed index chooses one of the queues. */
struct choice {
	weir_graph *graph;
	weir_session *session;
	weir_tensor_queue *queues[CHOICES];
	weir_tensor_queue_list *list;
	weir_output index, x, taken;
	weir_node *put;
};

static void open_choice(struct choice *choice, const struct kind *kind)
{
	weir_error error = {0};

	choice->graph = kit_graph();
	for (size_t i = 0; i < CHOICES; i++)
		choice->queues[i] = numbers_queue(kind, 10);
	cr_assert_eq(weir_tensor_queue_list_create(choice->queues, CHOICES, NULL, &choice->list, &error), WEIR_OK, "%s",
	             error.message);
	choice->index = kit_placeholder(choice->graph, "index", WEIR_I32, kit_shape(0));
	choice->x = kit_placeholder(choice->graph, "x", WEIR_I32, kit_shape(0));
	cr_assert_eq(
		weir_op_enqueue_at(choice->graph, "put", choice->list, choice->index, &choice->x, 1, &choice->put, &error),
		WEIR_OK, "%s", error.message);
	cr_assert_eq(
		weir_op_dequeue_at(choice->graph, "take", choice->list, choice->index, &choice->taken, 1, NULL, &error),
		WEIR_OK, "%s", error.message);
	choice->session = kit_session(choice->graph, 1);
}

static void close_choice(struct choice *choice)
{
	kit_end(choice->session, choice->graph);
	weir_tensor_queue_list_destroy(choice->list, NULL);
	for (size_t i = 0; i < CHOICES; i++)
		destroy_tensors(choice->queues[i]);
	expect_no_tensor_left();
}

/* Enqueues x into queue `index`, or dequeues from it if `got` is not NULL. */
static enum weir_status run_choice(struct choice *choice, int32_t index, int32_t x, weir_tensor **got,
                                   weir_error *error)
{
	weir_tensor *fed[] = {number(index), number(x)};
	struct weir_feed feeds[] = {{choice->index, fed[0]}, {choice->x, fed[1]}};
	enum weir_status status = got != NULL ? weir_session_run(choice->session, feeds, 1, &choice->taken, 1, got, NULL, 0,
	                                                         WEIR_NO_DEADLINE, NULL, error)
	                                      : weir_session_run(choice->session, feeds, 2, NULL, 0, NULL, &choice->put, 1,
	                                                         WEIR_NO_DEADLINE, NULL, error);

	weir_tensor_release(fed[0]);
	weir_tensor_release(fed[1]);
	return status;
}

static void the_index_chooses_the_queue(const struct kind *kind)
{
	struct choice choice;
	unsigned seed = 4;

	open_choice(&choice, kind);
	for (int32_t i = 0; i < 30; i++) {
		int32_t index = (int32_t)(rand_r(&seed) % CHOICES);
		struct taken taken = {.count = 0};
		weir_tensor *got = NULL;

		cr_assert_eq(run_choice(&choice, index, i, NULL, NULL), WEIR_OK);
		cr_expect_eq(weir_tensor_queue_size_approx(choice.queues[index]), 1);
		if (i % 2 == 0) {
			cr_assert_eq(run_choice(&choice, index, 0, &got, NULL), WEIR_OK);
			note_taken(&taken, got);
		} else {
			take(choice.queues[index], &taken);
		}
		expect_all(&taken, i, 1);
	}
	close_choice(&choice);
}

Test(conformance_queue_graph, FIFO_038_select_queue)
{
	the_index_chooses_the_queue(&fifo_kind);
}

Test(conformance_queue_graph, PAD_064_select_queue)
{
	the_index_chooses_the_queue(&padding_kind);
}

Test(conformance_queue_graph, RSQ_050_select_queue)
{
	the_index_chooses_the_queue(&shuffle_kind);
}

static void an_index_beyond_the_list_fails_the_step(const struct kind *kind)
{
	struct choice choice;

	open_choice(&choice, kind);
	for (int32_t index = -1; index <= CHOICES; index += CHOICES + 1) {
		weir_error error = {0};
		weir_tensor *got = NULL;

		cr_expect_eq(run_choice(&choice, index, 1, NULL, &error), WEIR_INVALID_ARGUMENT);
		cr_expect_not_null(strstr(error.message, "is not in [0, 3)"), "%s", error.message);
		cr_expect_eq(run_choice(&choice, index, 1, &got, &error), WEIR_INVALID_ARGUMENT);
		cr_expect_not_null(strstr(error.message, "is not in [0, 3)"), "%s", error.message);
		cr_expect_null(got);
	}
	close_choice(&choice);
}

Test(conformance_queue_graph, FIFO_039_select_queue_out_of_range)
{
	an_index_beyond_the_list_fails_the_step(&fifo_kind);
}

Test(conformance_queue_graph, PAD_065_select_queue_out_of_range)
{
	an_index_beyond_the_list_fails_the_step(&padding_kind);
}

Test(conformance_queue_graph, RSQ_051_select_queue_out_of_range)
{
	an_index_beyond_the_list_fails_the_step(&shuffle_kind);
}

/*
 * Makes a list of two queues that pad, and expects these shapes of its components. NULL means any
 * shape.
 */
static void expect_merged(const weir_shape *const ones[], const weir_shape *const others[],
                          const weir_shape *const expected[], size_t components)
{
	struct weir_tensor_component given[2][2], got;
	weir_tensor_queue *queues[2];
	weir_tensor_queue_list *list = NULL;

	for (size_t i = 0; i < components; i++) {
		given[0][i] = (struct weir_tensor_component){WEIR_I32, ones[i], NULL};
		given[1][i] = (struct weir_tensor_component){WEIR_I32, others[i], NULL};
	}
	for (size_t q = 0; q < 2; q++)
		queues[q] = queue_of(&padding_kind, 10, given[q], components);
	cr_assert_eq(weir_tensor_queue_list_create(queues, 2, NULL, &list, NULL), WEIR_OK);
	for (size_t i = 0; i < components; i++) {
		cr_assert_eq(weir_tensor_queue_list_component(list, i, &got), WEIR_OK);
		cr_assert_eq(got.shape != NULL, expected[i] != NULL, "component %zu", i);
		cr_assert(expected[i] == NULL || weir_shape_equal(got.shape, expected[i]), "component %zu", i);
	}
	weir_tensor_queue_list_destroy(list, NULL);
	destroy_tensors(queues[0]);
	destroy_tensors(queues[1]);
}

#define SHAPE(...) (&(weir_shape){sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), {__VA_ARGS__}})
#define SHAPES(...) ((const weir_shape *const[]){__VA_ARGS__})

Test(conformance_queue_graph, PAD_071_a_list_knows_what_its_queues_have_in_common)
{
	expect_merged(SHAPES(SHAPE(5, 8)), SHAPES(SHAPE(5, 8)), SHAPES(SHAPE(5, 8)), 1);
	expect_merged(SHAPES(SHAPE(5, 8)), SHAPES(SHAPE(5, 9)), SHAPES(SHAPE(5, -1)), 1);
	expect_merged(SHAPES(SHAPE(5, 8)), SHAPES(SHAPE(-1, 8)), SHAPES(SHAPE(-1, 8)), 1);
	expect_merged(SHAPES(SHAPE(-1, 8)), SHAPES(SHAPE(5, 8)), SHAPES(SHAPE(-1, 8)), 1);
	expect_merged(SHAPES(SHAPE(5, 8)), SHAPES(SHAPE(5)), SHAPES(NULL), 1);
}

Test(conformance_queue_graph, PAD_072_what_is_in_common_is_known_per_component)
{
	expect_merged(SHAPES(SHAPE(5, 8), SHAPE(5)), SHAPES(SHAPE(5, -1), SHAPE(5, 1)), SHAPES(SHAPE(5, -1), NULL), 2);
	expect_merged(SHAPES(SHAPE(5, 8), &scalar_shape), SHAPES(SHAPE(5, 8), &scalar_shape),
	              SHAPES(SHAPE(5, 8), &scalar_shape), 2);
}
