/*
 * test_replicas.c - replicated calls and all-reduce: shards, threads, sums, ranks, and steps that end
 * early.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <weir/flow/replicas.h>
#include <weir/reclaim.h>

#include "graph_kit.h"
#include "late_failure.h"

enum { N = 3 };

static const weir_shape scalar = {.rank = 0, .dims = {0}};

static weir_mirrors *mirrors_of(weir_tensor *initial, size_t n)
{
	struct weir_mirrored variable = {"w", initial, NULL};
	struct weir_mirrors_options options = {WEIR_MIRRORS_OPTIONS_INIT, .variables = &variable, .variable_count = 1};
	weir_mirrors *mirrors = NULL;
	weir_error error;

	cr_assert_eq(weir_mirrors_create(n, &options, &mirrors, &error), WEIR_OK, "%s", error.message);
	weir_tensor_release(initial);
	return mirrors;
}

static void end_objects(weir_function *function, weir_mirrors *mirrors)
{
	weir_error error;

	cr_assert_eq(weir_function_destroy(function, &error), WEIR_OK, "%s", error.message);
	cr_assert_eq(weir_mirrors_destroy(mirrors, &error), WEIR_OK, "%s", error.message);
}

static const struct weir_parameter rows_and_var[] = {{"rows", WEIR_PARAMETER_TENSOR, WEIR_F32, NULL},
                                                     {"w", WEIR_PARAMETER_VAR, WEIR_F32, &scalar}};

/* Results: w * the sum of the rows; and the rows. */
static enum weir_status weigh(void *context, weir_graph *body, const struct weir_argument arguments[],
                              weir_output results[], weir_error *error)
{
	weir_output w, sum;

	(void)context;
	results[1] = arguments[0].output;
	if (weir_op_read(body, NULL, arguments[1].var, &w, error) ||
	    weir_op_reduce_sum(body, NULL, arguments[0].output, &sum, error))
		return error->code;
	return weir_op_mul(body, NULL, w, sum, &results[0], error);
}

static weir_tensor *counted_rows(int count)
{
	float values[16];

	for (int i = 0; i < 16; i++)
		values[i] = (float)(i + 1);
	return kit_tensor(WEIR_F32, kit_shape(1, count), values);
}

/* -- replicate --------------------------------------------------------------------------------- */

Test(replicas, each_mirror_gets_its_shard)
{
	weir_graph *graph = kit_graph();
	weir_output rows = kit_placeholder(graph, "rows", WEIR_F32, kit_shape(1, -1)), outs[2 * N], all[N];
	weir_mirrors *mirrors = mirrors_of(kit_f32(10), N);
	weir_function *function = kit_function("work", weigh, NULL, rows_and_var, 2, 2);
	weir_session *session = kit_session(graph, 2);
	struct weir_feed feed = {rows, counted_rows(7)};
	weir_tensor *results[2 * N + 1];
	weir_node *node = NULL, *found = NULL;
	weir_output fetches[2 * N + 1];
	weir_error error;
	const float sums[N] = {10 * (1 + 2 + 3), 10 * (4 + 5), 10 * (6 + 7)};
	const int64_t lengths[N] = {3, 2, 2};

	cr_assert_eq(weir_op_replicate(graph, "forward", function, mirrors, &rows, 1, outs, &node, &error), WEIR_OK, "%s",
	             error.message);
	cr_assert_eq(weir_op_all_reduce(graph, "sum", WEIR_REDUCE_SUM, outs, N, NULL, all, &error), WEIR_OK, "%s",
	             error.message);
	cr_expect_eq(weir_graph_find(graph, "forward/2", &found, NULL), WEIR_OK);
	cr_expect_str_eq(weir_node_name(node), "forward");
	cr_expect_eq(weir_function_body_count(function), N, "a body for each mirror");
	memcpy(fetches, outs, sizeof(outs));
	fetches[2 * N] = all[1];
	cr_assert_eq(
		weir_session_run(session, &feed, 1, fetches, 2 * N + 1, results, &node, 1, WEIR_NO_DEADLINE, NULL, &error),
		WEIR_OK, "%s", error.message);
	for (size_t i = 0; i < N; i++) {
		float sum = kit_f32_at(results[i], 0);

		cr_expect_eq(sum, sums[i]);
		cr_expect_eq(weir_tensor_shape(results[N + i])->dims[0], lengths[i]);
	}
	cr_expect_eq(kit_f32_at(results[2 * N], 0), 280.0f);
	for (size_t i = 0; i < 2 * N + 1; i++)
		weir_tensor_release(results[i]);
	weir_tensor_release(feed.value);

	feed.value = counted_rows(2);
	cr_expect_eq(weir_session_run(session, &feed, 1, all, 1, results, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "there are 2 rows for 3 mirrors"), "%s", error.message);
	weir_tensor_release(feed.value);
	kit_end(session, graph);
	end_objects(function, mirrors);
}

/* Calls that wait for each other end only if each has a thread. */
struct meeting {
	_Atomic(int) here;
	int expected;
};

static enum weir_status meet(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	struct meeting *meeting = context;
	uint64_t deadline_ns = weir_deadline_in(KIT_PATIENCE_NS);

	atomic_fetch_add_explicit(&meeting->here, 1, memory_order_acq_rel);
	while (atomic_load_explicit(&meeting->here, memory_order_acquire) < meeting->expected) {
		if (weir_now_ns() >= deadline_ns) {
			(void)snprintf(error->message, sizeof(error->message), "the others have no threads");
			return WEIR_INTERNAL;
		}
		(void)sched_yield();
	}
	call->outputs[0] = weir_tensor_retain(call->inputs[0]);
	return WEIR_OK;
}

static enum weir_status meeting_body(void *context, weir_graph *body, const struct weir_argument arguments[],
                                     weir_output results[], weir_error *error)
{
	static const struct weir_kernel kernel = {WEIR_KERNEL_INIT, .name = "meet", .run = meet,
	                                          .flags = WEIR_KERNEL_SHORT};
	struct weir_output_type type = {WEIR_F32, NULL};

	return weir_op_kernel(body, NULL, &kernel, context, &arguments[0].output, 1, &type, 1, NULL, 0, results, NULL,
	                      error);
}

Test(replicas, each_call_has_a_thread_of_its_own)
{
	struct meeting meeting = {.expected = N};
	weir_graph *graph = kit_graph();
	weir_output rows = kit_constant(graph, counted_rows(N)), outs[N];
	weir_mirrors *mirrors = mirrors_of(kit_f32(1), N);
	weir_function *function = kit_function("work", meeting_body, &meeting, rows_and_var, 2, 1);
	weir_session *session = kit_session(graph, N);
	weir_node *node = NULL;
	weir_error error;

	cr_assert_eq(weir_op_replicate(graph, NULL, function, mirrors, &rows, 1, outs, &node, &error), WEIR_OK, "%s",
	             error.message);
	cr_expect_eq(kit_run_target(session, node, &error), WEIR_OK, "%s", error.message);
	kit_end(session, graph);
	end_objects(function, mirrors);
}

Test(replicas, replicate_refuses)
{
	static const struct weir_parameter with_queue[] = {{"rows", WEIR_PARAMETER_TENSOR, WEIR_F32, NULL},
	                                                   {"q", WEIR_PARAMETER_QUEUE, 0, NULL}};
	weir_graph *graph = kit_graph();
	weir_output rows = kit_constant(graph, counted_rows(N)), one = kit_constant(graph, kit_f32(1)), outs[2 * N];
	weir_output few = kit_constant(graph, counted_rows(2)), both[2] = {rows, rows};
	weir_mirrors *mirrors = mirrors_of(kit_f32(1), N);
	weir_function *function = kit_function("work", weigh, NULL, rows_and_var, 2, 2);
	weir_function *queues = kit_function("work", weigh, NULL, with_queue, 2, 2);
	weir_error error;

	cr_expect_eq(weir_op_replicate(graph, NULL, function, mirrors, &one, 1, outs, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "is a scalar"), "%s", error.message);
	cr_expect_eq(weir_op_replicate(graph, NULL, function, mirrors, &few, 1, outs, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_replicate(graph, NULL, function, mirrors, both, 2, outs, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "1 variable and 1 tensor; got mirrors of 1 variable, and 2 inputs"), "%s",
	                   error.message);
	cr_expect_eq(weir_op_replicate(graph, NULL, queues, mirrors, &rows, 1, outs, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_replicate(graph, NULL, NULL, mirrors, &rows, 1, outs, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_replicate(graph, NULL, function, NULL, &rows, 1, outs, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_replicate(graph, NULL, function, mirrors, &rows, 1, NULL, NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_replicate(NULL, NULL, function, mirrors, &rows, 1, outs, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
	cr_expect_eq(weir_function_destroy(queues, NULL), WEIR_OK);
	end_objects(function, mirrors);
}

/* -- all-reduce within a graph ------------------------------------------------------------------ */

Test(replicas, sums_are_by_pairs_and_means_divide)
{
	const float values[4] = {1e8f, 3.0f, -1e8f, 5.0f};
	weir_graph *graph = kit_graph();
	weir_output inputs[4], sums[4], means[4], alone;
	weir_session *session = kit_session(graph, 0);
	float mean, sum, same;
	weir_error error;

	for (int i = 0; i < 4; i++)
		inputs[i] = kit_constant(graph, kit_f32(values[i]));
	cr_assert_eq(weir_op_all_reduce(graph, NULL, WEIR_REDUCE_SUM, inputs, 4, NULL, sums, &error), WEIR_OK);
	cr_assert_eq(weir_op_all_reduce(graph, NULL, WEIR_REDUCE_MEAN, inputs, 3, NULL, means, &error), WEIR_OK);
	cr_assert_eq(weir_op_all_reduce(graph, NULL, WEIR_REDUCE_MEAN, inputs, 1, NULL, &alone, &error), WEIR_OK);
	sum = kit_fetch_f32(session, sums[3]);
	mean = kit_fetch_f32(session, means[0]);
	same = kit_fetch_f32(session, alone);
	cr_expect_eq(sum, (values[0] + values[1]) + (values[2] + values[3]));
	cr_expect_eq(mean, ((values[0] + values[1]) + values[2]) / 3.0f);
	cr_expect_eq(same, values[0]);
	kit_end(session, graph);
}

/* The square of an input is used by nothing else, so the sum is written over it. */
Test(replicas, sums_are_written_over_values_that_nobody_needs)
{
	weir_graph *graph = kit_graph();
	weir_output x = kit_placeholder(graph, "x", WEIR_F32, kit_shape(1, 1000)), squares[2], sums[2];
	weir_session *session = kit_session(graph, 0);
	struct weir_feed feed = {x, NULL};
	static float values[1000];
	weir_tensor *results[2];
	weir_error error;

	for (int i = 0; i < 1000; i++)
		values[i] = (float)i;
	feed.value = kit_tensor(WEIR_F32, kit_shape(1, 1000), values);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(weir_op_square(graph, NULL, x, &squares[i], &error), WEIR_OK);
	cr_assert_eq(weir_op_all_reduce(graph, NULL, WEIR_REDUCE_SUM, squares, 2, NULL, sums, &error), WEIR_OK);
	cr_assert_eq(weir_session_run(session, &feed, 1, sums, 2, results, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_OK, "%s", error.message);
	cr_expect_eq(results[0], results[1], "all outputs are one tensor");
	cr_expect_eq(kit_f32_at(results[0], 999), 2 * 999.0f * 999.0f);
	cr_expect_eq(kit_f32_at(feed.value, 999), 999.0f);
	for (int i = 0; i < 2; i++)
		weir_tensor_release(results[i]);
	weir_tensor_release(feed.value);
	kit_end(session, graph);
}

/* One value three times, which nobody else needs. */
Test(replicas, one_value_may_be_several_inputs)
{
	weir_graph *graph = kit_graph();
	weir_output x = kit_placeholder(graph, "x", WEIR_F32, kit_shape(0)), square, sums[3];
	weir_session *session = kit_session(graph, 0);
	struct weir_feed feed = {x, kit_f32(3)};
	weir_tensor *result = NULL;
	weir_error error;

	cr_assert_eq(weir_op_square(graph, NULL, x, &square, &error), WEIR_OK);
	cr_assert_eq(weir_op_all_reduce(graph, NULL, WEIR_REDUCE_SUM, (weir_output[]){square, square, square}, 3, NULL,
	                                sums, &error),
	             WEIR_OK);
	cr_assert_eq(weir_session_run(session, &feed, 1, &sums[0], 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_OK, "%s", error.message);
	cr_expect_eq(kit_f32_at(result, 0), 27.0f);
	weir_tensor_release(result);
	weir_tensor_release(feed.value);
	kit_end(session, graph);
}

Test(replicas, all_reduce_refuses)
{
	weir_graph *graph = kit_graph();
	weir_output f = kit_constant(graph, kit_f32(1)), i = kit_constant(graph, kit_i64(1)), outs[65];
	weir_output rows = kit_constant(graph, counted_rows(3)), mixed[2] = {f, i}, shapes[2] = {f, rows};
	weir_output open = kit_placeholder(graph, "open", WEIR_F32, kit_shape(1, -1)), opens[2] = {open, rows};
	weir_transport bad = {WEIR_TRANSPORT_INIT, .name = "bad", .size = 1};
	struct weir_all_reduce_options options = {WEIR_ALL_REDUCE_OPTIONS_INIT, .transport = &bad};
	weir_session *session = kit_session(graph, 0);
	struct weir_feed feed = {open, counted_rows(2)};
	weir_tensor *result;
	weir_error error;

	cr_expect_eq(weir_op_all_reduce(graph, NULL, 3, &f, 1, NULL, outs, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_all_reduce(graph, NULL, WEIR_REDUCE_SUM, &f, 0, NULL, outs, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_all_reduce(graph, NULL, WEIR_REDUCE_SUM, &f, 65, NULL, outs, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_all_reduce(graph, NULL, WEIR_REDUCE_SUM, &f, 1, NULL, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_all_reduce(NULL, NULL, WEIR_REDUCE_SUM, &f, 1, NULL, outs, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_all_reduce(graph, NULL, WEIR_REDUCE_SUM, mixed, 2, NULL, outs, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_all_reduce(graph, NULL, WEIR_REDUCE_SUM, shapes, 2, NULL, outs, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_all_reduce(graph, NULL, WEIR_REDUCE_MEAN, &i, 1, NULL, outs, &error), WEIR_UNIMPLEMENTED);
	cr_expect_eq(weir_op_all_reduce(graph, NULL, WEIR_REDUCE_SUM, &f, 1, &options, outs, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "needs a name"), "%s", error.message);
	cr_expect_eq(weir_op_all_reduce(graph, "r", WEIR_REDUCE_SUM, &f, 1, &options, outs, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "lacks a function"), "%s", error.message);

	cr_assert_eq(weir_op_all_reduce(graph, "late", WEIR_REDUCE_SUM, opens, 2, NULL, outs, &error), WEIR_OK);
	cr_expect_eq(weir_session_run(session, &feed, 1, outs, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "input 0 is f32 [2], and input 1 f32 [3]"), "%s", error.message);
	weir_tensor_release(feed.value);
	kit_end(session, graph);
}

/* -- across ranks ------------------------------------------------------------------------------- */

/* One rank: w += the mean of all ranks' x, by a commit. */
struct rank {
	weir_graph *graph;
	weir_session *session;
	weir_var *w;
	weir_output x, mean, published;
	weir_error error;
	enum weir_status status;
	float x_value;
	uint64_t deadline_ns;
	int steps;
};

static weir_ranks *two_ranks(const weir_allocator *allocator)
{
	struct weir_ranks_options options = {WEIR_RANKS_OPTIONS_INIT, .allocator = allocator};
	weir_ranks *ranks = NULL;

	cr_assert_eq(weir_ranks_create(2, &options, &ranks, NULL), WEIR_OK);
	return ranks;
}

static void open_rank(struct rank *rank, weir_transport *transport, size_t threads, const weir_allocator *allocator)
{
	struct weir_all_reduce_options options = {WEIR_ALL_REDUCE_OPTIONS_INIT, .transport = transport};
	struct weir_session_options session = {WEIR_SESSION_OPTIONS_INIT, .threads = threads,
	                                       .flags = threads == 0 ? WEIR_SESSION_NO_THREADS : 0, .allocator = allocator};
	weir_graph *graph = kit_graph();
	weir_error *error = &rank->error;

	*rank = (struct rank){.graph = graph, .deadline_ns = WEIR_NO_DEADLINE, .steps = 1};
	rank->w = kit_var("w", kit_f32(0));
	rank->x = kit_placeholder(graph, "x", WEIR_F32, kit_shape(0));
	cr_assert_eq(weir_op_all_reduce(graph, "mean", WEIR_REDUCE_MEAN, &rank->x, 1, &options, &rank->mean, error),
	             WEIR_OK, "%s", error->message);
	cr_assert_eq(weir_op_assign_add(graph, "w", rank->w, rank->mean, &rank->published, error), WEIR_OK);
	cr_assert_eq(weir_session_create(graph, &session, &rank->session, error), WEIR_OK);
}

static void close_rank(struct rank *rank)
{
	kit_end(rank->session, rank->graph);
	cr_assert_eq(weir_var_destroy(rank->w, NULL), WEIR_OK);
}

static void *run_rank(void *context)
{
	struct rank *rank = context;

	rank->status = WEIR_OK;
	for (int i = 0; rank->status == WEIR_OK && i < rank->steps; i++) {
		struct weir_feed feed = {rank->x, NULL};

		rank->status = weir_tensor_scalar_f32(rank->x_value + (float)i, &feed.value);
		if (rank->status == WEIR_OK)
			rank->status = weir_session_run(rank->session, &feed, 1, NULL, 0, NULL, &rank->published.node, 1,
			                                rank->deadline_ns, NULL, &rank->error);
		weir_tensor_release(feed.value);
	}
	return NULL;
}

static void run_both(struct rank ranks[2])
{
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, run_rank, &ranks[1]), 0);
	(void)run_rank(&ranks[0]);
	cr_assert_eq(pthread_join(thread, NULL), 0);
}

Test(replicas, ranks_hold_the_same_bits_after_each_step)
{
	weir_ranks *group = two_ranks(NULL);
	struct rank ranks[2];

	for (size_t i = 0; i < 2; i++) {
		open_rank(&ranks[i], weir_ranks_transport(group, i), i, NULL);
		ranks[i].x_value = i == 0 ? 0.1f : 0.7f;
		ranks[i].steps = 50;
	}
	run_both(ranks);
	for (size_t i = 0; i < 2; i++)
		cr_expect_eq(ranks[i].status, WEIR_OK, "%s", ranks[i].error.message);
	cr_expect_eq(kit_var_f32(ranks[0].w, 0), kit_var_f32(ranks[1].w, 0));
	cr_expect_eq(weir_var_version(ranks[0].w), 51);
	for (size_t i = 0; i < 2; i++)
		close_rank(&ranks[i]);
	cr_expect_eq(weir_ranks_destroy(group, NULL), WEIR_OK);
}

Test(replicas, a_step_that_ends_early_changes_nothing_and_can_be_run_again)
{
	weir_ranks *group = two_ranks(NULL);
	struct rank ranks[2];

	for (size_t i = 0; i < 2; i++) {
		open_rank(&ranks[i], weir_ranks_transport(group, i), 0, NULL);
		ranks[i].x_value = 1.0f;
	}
	ranks[0].deadline_ns = weir_deadline_in(1000000);
	(void)run_rank(&ranks[0]);
	cr_expect_eq(ranks[0].status, WEIR_DEADLINE_EXCEEDED);
	cr_expect_not_null(strstr(ranks[0].error.message, "mean"), "%s", ranks[0].error.message);
	cr_expect_eq(weir_var_version(ranks[0].w), 1);
	ranks[0].deadline_ns = WEIR_NO_DEADLINE;
	run_both(ranks);
	for (size_t i = 0; i < 2; i++) {
		cr_expect_eq(ranks[i].status, WEIR_OK, "%s", ranks[i].error.message);
		cr_expect_eq(kit_var_f32(ranks[i].w, 0), 1.0f);
		close_rank(&ranks[i]);
	}
	cr_expect_eq(weir_ranks_destroy(group, NULL), WEIR_OK);
}

static void *close_session(void *context)
{
	struct rank *rank = context;
	weir_error cause = {WEIR_CANCELLED, "enough"};

	(void)weir_session_close(rank->session, &cause);
	return NULL;
}

/* Closes of a session beside its start and its end, many times. */
Test(replicas, a_close_beside_a_reduction)
{
	for (int round = 0; round < 60; round++) {
		weir_ranks *group = two_ranks(NULL);
		struct rank ranks[2];
		pthread_t threads[2];

		for (size_t i = 0; i < 2; i++)
			open_rank(&ranks[i], weir_ranks_transport(group, i), 0, NULL);
		cr_assert_eq(pthread_create(&threads[0], NULL, run_rank, &ranks[0]), 0);
		cr_assert_eq(pthread_create(&threads[1], NULL, close_session, &ranks[0]), 0);
		ranks[1].deadline_ns = weir_deadline_in(round % 2 == 0 ? 0 : 100000);
		(void)run_rank(&ranks[1]);
		for (size_t i = 0; i < 2; i++)
			cr_assert_eq(pthread_join(threads[i], NULL), 0);
		/* A sum that was made was made for both. Whether a rank then still stopped is its own affair. */
		cr_expect(ranks[0].status == WEIR_OK || ranks[0].status == WEIR_CANCELLED ||
		              ranks[0].status == WEIR_FAILED_PRECONDITION,
		          "%s", ranks[0].error.message);
		cr_expect(ranks[1].status == WEIR_OK || ranks[1].status == WEIR_DEADLINE_EXCEEDED, "%s",
		          ranks[1].error.message);
		for (size_t i = 0; i < 2; i++) {
			cr_expect_eq(weir_var_version(ranks[i].w), ranks[i].status == WEIR_OK ? 2 : 1);
			close_rank(&ranks[i]);
		}
		cr_expect_eq(weir_ranks_destroy(group, NULL), WEIR_OK);
	}
}

Test(replicas, ranks_that_built_other_graphs_are_told)
{
	struct weir_all_reduce_options options[2] = {{WEIR_ALL_REDUCE_OPTIONS_INIT, NULL},
	                                             {WEIR_ALL_REDUCE_OPTIONS_INIT, NULL}};
	weir_ranks *group = two_ranks(NULL);
	weir_graph *graph = kit_graph();
	weir_output x = kit_constant(graph, kit_f32(1)), sums[2];
	weir_session *session = kit_session(graph, 0);
	weir_tensor *results[2];
	weir_error error;

	for (size_t i = 0; i < 2; i++) {
		options[i].transport = weir_ranks_transport(group, i);
		cr_assert_eq(
			weir_op_all_reduce(graph, i == 0 ? "a" : "b", WEIR_REDUCE_SUM, &x, 1, &options[i], &sums[i], &error),
			WEIR_OK);
	}
	cr_expect_eq(weir_op_all_reduce(graph, "a", WEIR_REDUCE_SUM, &x, 1, &options[0], &sums[0], &error),
	             WEIR_ALREADY_EXISTS);
	cr_expect_eq(weir_session_run(session, NULL, 0, sums, 2, results, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "rank 0 is at \"a\" in this channel, and rank 1 at \"b\""), "%s",
	                   error.message);
	cr_expect_eq(weir_ranks_destroy(group, NULL), WEIR_FAILED_PRECONDITION);
	kit_end(session, graph);
	cr_expect_eq(weir_ranks_destroy(group, NULL), WEIR_OK);
}

/* What the test itself does as rank 1: it comes first, and leaves if nobody came. */
static void told(void *context, enum weir_status status, const weir_error *error, weir_tensor *sum)
{
	(void)error;
	*(enum weir_status *)context = status;
	weir_tensor_release(sum);
}

static void come_as(weir_transport *rank, enum weir_status *outcome, weir_transfer **transfer)
{
	struct weir_channel what = {"r", WEIR_F32, NULL};
	struct weir_reduction reduction = {.input = kit_f32(1), .divisor = 1, .done = told, .context = outcome};

	*outcome = WEIR_UNIMPLEMENTED;
	cr_assert_eq(rank->open(rank, &what, &reduction.channel, NULL), WEIR_OK);
	cr_assert_eq(rank->start(rank, &reduction, transfer, NULL), WEIR_OK);
	weir_tensor_release(reduction.input);
}

static enum weir_status reduce_once(const weir_allocator *failing, void *context)
{
	struct late_failure late = {0};
	weir_allocator allocator = late_failure_hooks(&late);
	struct weir_session_options options = {WEIR_SESSION_OPTIONS_INIT, .flags = WEIR_SESSION_NO_THREADS,
	                                       .allocator = &allocator};
	weir_ranks *group = two_ranks(NULL);
	weir_transport *other = weir_ranks_transport(group, 1);
	struct weir_all_reduce_options reduce = {WEIR_ALL_REDUCE_OPTIONS_INIT, weir_ranks_transport(group, 0)};
	weir_graph *graph = kit_graph();
	weir_output x = kit_constant(graph, kit_f32(1)), both[2] = {x, x}, sums[2];
	weir_session *session = NULL;
	weir_tensor *result = NULL;
	weir_transfer *transfer = NULL;
	enum weir_status status, outcome;

	(void)context;
	cr_assert_eq(weir_op_all_reduce(graph, "r", WEIR_REDUCE_SUM, both, 2, &reduce, sums, NULL), WEIR_OK);
	cr_assert_eq(weir_session_create(graph, &options, &session, NULL), WEIR_OK);
	come_as(other, &outcome, &transfer);
	late.under_test = failing;
	status = weir_session_run(session, NULL, 0, &sums[1], 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, NULL);
	late.under_test = NULL;
	other->cancel(other, transfer, NULL);
	cr_assert(status != WEIR_OK || outcome == WEIR_OK);
	cr_assert(outcome != WEIR_UNIMPLEMENTED);
	other->release(other, transfer);
	other->close(other, 0);
	weir_tensor_release(result);
	kit_end(session, graph);
	cr_assert_eq(weir_ranks_destroy(group, NULL), WEIR_OK);
	(void)weir_reclaim_flush(weir_deadline_in(KIT_PATIENCE_NS));
	late_failure_end(&late);
	return status;
}

/* A step whose hooks find no memory is stopped; it still ends well if its last node had ended by then. */
Test(replicas, each_allocation_of_a_step_may_fail)
{
	size_t failures = fail_each_allocation_in_time(reduce_once, NULL);

	cr_expect(failures >= 6, "%zu", failures);
}

/* Rank 1 never comes, and the memory ends at each place of the step in turn: in the end, where the step would wait. */
Test(replicas, a_step_without_memory_to_wait_for_other_ranks_says_so)
{
	struct failing_allocator failing = {.fail_count = SIZE_MAX};
	weir_allocator allocator = failing_allocator_hooks(&failing);
	struct weir_session_options options = {WEIR_SESSION_OPTIONS_INIT, .flags = WEIR_SESSION_NO_THREADS,
	                                       .allocator = &allocator};
	weir_ranks *group = two_ranks(NULL);
	struct weir_all_reduce_options reduce = {WEIR_ALL_REDUCE_OPTIONS_INIT, weir_ranks_transport(group, 0)};
	weir_graph *graph = kit_graph();
	weir_output x = kit_constant(graph, kit_f32(1)), sum;
	weir_session *session = NULL;
	weir_callable *callable = NULL;
	bool told_so = false;
	weir_error error;

	cr_assert_eq(weir_op_all_reduce(graph, "r", WEIR_REDUCE_SUM, &x, 1, &reduce, &sum, NULL), WEIR_OK);
	cr_assert_eq(weir_session_create(graph, &options, &session, NULL), WEIR_OK);
	cr_assert_eq(weir_session_compile(session, NULL, 0, &sum, 1, NULL, 0, NULL, &callable, NULL), WEIR_OK);
	for (size_t more = 1; !told_so; more++) {
		weir_tensor *result = NULL;

		failing.fail_at = failing.asked + more;
		cr_assert_eq(weir_callable_run(callable, NULL, &result, weir_deadline_in(KIT_PATIENCE_NS), NULL, NULL, &error),
		             WEIR_RESOURCE_EXHAUSTED, "%s", error.message);
		failing.fail_at = 0;
		told_so = strcmp(error.message, "all_reduce \"r\": no memory to wait for the other ranks") == 0;
	}
	weir_callable_release(callable);
	kit_end(session, graph);
	cr_assert_eq(weir_ranks_destroy(group, NULL), WEIR_OK);
	(void)weir_reclaim_flush(weir_deadline_in(KIT_PATIENCE_NS));
	cr_expect_str_eq(failing_allocator_verdict(&failing), "balanced");
}

/* -- a step of replicas is one commit ----------------------------------------------------------- */

static _Atomic(bool) fails;

static enum weir_status fail_sometimes(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	(void)context;
	if (atomic_load_explicit(&fails, memory_order_relaxed) && kit_f32_at(call->inputs[0], 0) == 2.0f) {
		(void)snprintf(error->message, sizeof(error->message), "no gradient today");
		return WEIR_DATA_LOSS;
	}
	call->outputs[0] = weir_tensor_retain(call->inputs[0]);
	return WEIR_OK;
}

static enum weir_status gradient(void *context, weir_graph *body, const struct weir_argument arguments[],
                                 weir_output results[], weir_error *error)
{
	static const struct weir_kernel kernel = {WEIR_KERNEL_INIT, .name = "gradient", .run = fail_sometimes};
	struct weir_output_type type = {WEIR_F32, NULL};
	weir_output mean;

	if (weir_op_kernel(body, "it", &kernel, context, &arguments[0].output, 1, &type, 1, NULL, 0, &mean, NULL, error))
		return error->code;
	return weir_op_reduce_mean(body, NULL, mean, &results[0], error);
}

Test(replicas, a_replica_that_fails_leaves_all_mirrors_as_they_were)
{
	weir_graph *graph = kit_graph();
	weir_output rows = kit_constant(graph, counted_rows(N)), before[N + 1], gradients[N], means[N], next[N], out;
	weir_mirrors *mirrors = mirrors_of(kit_f32(1), N);
	weir_function *function = kit_function("work", gradient, NULL, rows_and_var, 2, 1);
	weir_session *session = kit_session(graph, 2);
	weir_error error;

	cr_assert_eq(weir_op_snapshot(graph, NULL, weir_mirrors_vars(mirrors), N, before, &error), WEIR_OK);
	cr_assert_eq(weir_op_replicate(graph, "step", function, mirrors, &rows, 1, gradients, NULL, &error), WEIR_OK, "%s",
	             error.message);
	cr_assert_eq(weir_op_all_reduce(graph, NULL, WEIR_REDUCE_MEAN, gradients, N, NULL, means, &error), WEIR_OK);
	for (int i = 0; i < N; i++)
		cr_assert_eq(weir_op_sub(graph, NULL, before[i], means[i], &next[i], &error), WEIR_OK);
	cr_assert_eq(weir_op_commit(graph, NULL, weir_mirrors_vars(mirrors), next, N, before[N], &out, &error), WEIR_OK);
	for (int step = 0; step < 4; step++) {
		atomic_store_explicit(&fails, step % 2 == 0, memory_order_relaxed);
		cr_expect_eq(kit_run_target(session, out.node, &error), step % 2 == 0 ? WEIR_DATA_LOSS : WEIR_OK, "%s",
		             error.message);
		if (step == 0)
			cr_expect_not_null(strstr(error.message, "step/1/"), "%s", error.message);
		for (size_t i = 0; i < N; i++) {
			cr_expect_eq(weir_var_version(weir_mirrors_var(mirrors, i, 0)), (uint64_t)(1 + (step + 1) / 2));
			cr_expect_eq(kit_var_f32(weir_mirrors_var(mirrors, i, 0), 0), (float)(1 - 2 * ((step + 1) / 2)));
		}
	}
	kit_end(session, graph);
	end_objects(function, mirrors);
}
