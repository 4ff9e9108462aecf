/*
 * test_session_order.c - the order of nodes that no edge orders, with a seed and without one.
 */
#include <pthread.h>

#include "graph_kit.h"

enum { NODES = 4, ORDERS = 24 };

/* The order of a step: the numbers of the nodes that ran, as digits, from first to last. */
struct trace {
	int order;
};

struct tracer {
	struct trace *trace;
	int number;
};

static enum weir_status note(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	struct tracer *tracer = context;

	(void)call, (void)error;
	tracer->trace->order = tracer->trace->order * 10 + tracer->number;
	return WEIR_OK;
}

/* Short, so that it runs where its inputs ended, whatever was measured. */
static const struct weir_kernel short_note = {WEIR_KERNEL_INIT, .name = "note", .flags = WEIR_KERNEL_SHORT,
                                              .run = note};

/* NODES kernels, and one that runs before all of them. */
struct bench {
	weir_graph *graph;
	struct trace trace;
	struct tracer tracers[NODES];
	weir_node *first;
	weir_node *nodes[NODES];
};

static void open_bench(struct bench *bench)
{
	bench->graph = kit_graph();
	cr_assert_eq(weir_op_no_op(bench->graph, "first", &bench->first, NULL), WEIR_OK);
	for (int i = 0; i < NODES; i++) {
		bench->tracers[i] = (struct tracer){&bench->trace, i + 1};
		cr_assert_eq(weir_op_kernel(bench->graph, NULL, &short_note, &bench->tracers[i], NULL, 0, NULL, 0, NULL, 0,
		                            NULL, &bench->nodes[i], NULL),
		             WEIR_OK);
	}
}

static void put_first(struct bench *bench)
{
	for (int i = 0; i < NODES; i++)
		cr_assert_eq(weir_graph_add_control(bench->graph, bench->first, bench->nodes[i], NULL), WEIR_OK);
}

static weir_session *a_session(weir_graph *graph, uint64_t seed, size_t threads)
{
	struct weir_session_options options = {WEIR_SESSION_OPTIONS_INIT, .threads = threads,
	                                       .flags = threads == 0 ? WEIR_SESSION_NO_THREADS : 0, .shuffle_seed = seed};
	weir_session *session = NULL;
	weir_error error;

	cr_assert_eq(weir_session_create(graph, &options, &session, &error), WEIR_OK, "%s", error.message);
	return session;
}

static int order_of_step(struct bench *bench, weir_session *session)
{
	weir_error error;

	bench->trace.order = 0;
	cr_assert_eq(weir_session_run(session, NULL, 0, NULL, 0, NULL, bench->nodes, NODES, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_OK, "%s", error.message);
	return bench->trace.order;
}

Test(session_order, without_a_seed_every_step_has_the_same_order)
{
	struct bench bench;
	weir_session *session;

	open_bench(&bench);
	session = a_session(bench.graph, 0, 0);
	for (int i = 0, first = order_of_step(&bench, session); i < 20; i++)
		cr_expect_eq(order_of_step(&bench, session), first);
	kit_end(session, bench.graph);
}

Test(session_order, a_seed_gives_one_thread_the_same_orders_again)
{
	enum { STEPS = 50 };
	struct bench bench;
	int orders[STEPS];

	open_bench(&bench);
	put_first(&bench);
	for (int round = 0; round < 2; round++) {
		weir_session *session = a_session(bench.graph, 7, 0);

		for (int i = 0; i < STEPS; i++) {
			int order = order_of_step(&bench, session);

			cr_expect(round == 0 || order == orders[i], "step %d: %d, then %d", i, orders[i], order);
			orders[i] = order;
		}
		cr_assert_eq(weir_session_destroy(session, NULL), WEIR_OK);
	}
	cr_assert_eq(weir_graph_destroy(bench.graph, NULL), WEIR_OK);
}

static void add_to_set(int set[ORDERS], int order)
{
	int i = 0;

	while (i < ORDERS && set[i] != 0 && set[i] != order)
		i++;
	cr_assert_lt(i, ORDERS, "%d is not an order of %d nodes", order, NODES);
	set[i] = order;
}

/*
 * All 24 orders of 4 nodes occur, whether the nodes are ready at the start or after another node,
 * over the steps and over the seeds.
 */
Test(session_order, a_shuffle_reaches_every_order)
{
	enum { STEPS = 400 };
	for (int variant = 0; variant < 4; variant++) {
		int after_another = variant & 1, over_seeds = variant >> 1;
		struct bench bench;
		int found[ORDERS] = {0};
		weir_session *session;

		open_bench(&bench);
		if (after_another)
			put_first(&bench);
		session = a_session(bench.graph, 1, 0);
		for (uint64_t i = 0; i < STEPS; i++) {
			if (over_seeds) {
				cr_assert_eq(weir_session_destroy(session, NULL), WEIR_OK);
				session = a_session(bench.graph, i + 1, 0);
			}
			add_to_set(found, order_of_step(&bench, session));
		}
		cr_expect_neq(found[ORDERS - 1], 0, "variant %d does not reach all %d orders", variant, ORDERS);
		kit_end(session, bench.graph);
	}
}

/* The edge that would make the read see the sum is missing. Without a seed no step shows that. */
Test(session_order, a_seed_shows_that_an_edge_is_missing)
{
	for (uint64_t seed = 0; seed <= 1; seed++) {
		weir_graph *graph = kit_graph();
		weir_session *session = a_session(graph, seed, 0);
		weir_var *var = kit_var("v", kit_f32(0));
		weir_output sum, seen;
		int before = 0, after = 0;

		cr_assert_eq(weir_op_read(graph, "read", var, &seen, NULL), WEIR_OK);
		cr_assert_eq(weir_op_assign_add(graph, "add", var, kit_constant(graph, kit_f32(1)), &sum, NULL), WEIR_OK);
		for (int step = 1; step <= 50; step++) {
			weir_tensor *result = NULL;
			weir_error error;

			cr_assert_eq(
				weir_session_run(session, NULL, 0, &seen, 1, &result, &sum.node, 1, WEIR_NO_DEADLINE, NULL, &error),
				WEIR_OK, "%s", error.message);
			if (kit_f32_at(result, 0) == (float)step)
				after++;
			else
				before++;
			weir_tensor_release(result);
		}
		cr_expect_eq(before + after, 50);
		cr_expect_eq(before > 0 && after > 0, seed != 0, "seed %d: %d reads before the sum, %d after it", (int)seed,
		             before, after);
		kit_end(session, graph);
		weir_var_destroy(var, NULL);
	}
}

Test(session_order, a_shuffle_keeps_the_edges)
{
	for (uint64_t seed = 1; seed <= 50; seed++) {
		struct bench bench;
		weir_session *session;

		open_bench(&bench);
		cr_assert_eq(weir_graph_add_control(bench.graph, bench.nodes[2], bench.nodes[0], NULL), WEIR_OK);
		cr_assert_eq(weir_graph_add_control(bench.graph, bench.nodes[0], bench.nodes[3], NULL), WEIR_OK);
		cr_assert_eq(weir_graph_add_control(bench.graph, bench.nodes[3], bench.nodes[1], NULL), WEIR_OK);
		session = a_session(bench.graph, seed, 0);
		cr_expect_eq(order_of_step(&bench, session), 3142);
		kit_end(session, bench.graph);
	}
}

enum { THREADS = 3, STEPS_OF_A_THREAD = 60, SUMS = 8 };

struct caller {
	weir_session *session;
	weir_node **targets;
	enum weir_status status;
};

static void *run_steps(void *context)
{
	struct caller *caller = context;

	for (int i = 0; i < STEPS_OF_A_THREAD && caller->status == WEIR_OK; i++)
		caller->status = weir_session_run(caller->session, NULL, 0, NULL, 0, NULL, caller->targets, SUMS,
		                                  WEIR_NO_DEADLINE, NULL, NULL);
	return NULL;
}

Test(session_order, steps_of_several_threads_and_workers_run_each_node_once)
{
	for (size_t workers = 0; workers <= 2; workers++) {
		weir_graph *graph = kit_graph();
		weir_session *session = a_session(graph, 5, workers);
		weir_var *var = kit_var("v", kit_f32(0));
		weir_output one = kit_constant(graph, kit_f32(1)), sum;
		weir_node *targets[SUMS];
		struct caller callers[THREADS];
		pthread_t threads[THREADS];

		for (int i = 0; i < SUMS; i++) {
			cr_assert_eq(weir_op_assign_add(graph, NULL, var, one, &sum, NULL), WEIR_OK);
			targets[i] = sum.node;
		}
		for (int i = 0; i < THREADS; i++) {
			callers[i] = (struct caller){session, targets, WEIR_OK};
			cr_assert_eq(pthread_create(&threads[i], NULL, run_steps, &callers[i]), 0);
		}
		for (int i = 0; i < THREADS; i++) {
			cr_assert_eq(pthread_join(threads[i], NULL), 0);
			cr_expect_eq(callers[i].status, WEIR_OK);
		}
		cr_expect_eq(kit_var_f32(var, 0), (float)(THREADS * STEPS_OF_A_THREAD * SUMS));
		kit_end(session, graph);
		weir_var_destroy(var, NULL);
	}
}

/* The nodes of a chain run as a loop, but not in a session that shuffles: 1, 2 and 3, 4 may mix. */
Test(session_order, a_shuffle_mixes_two_chains)
{
	bool mixed = false, apart = false;

	for (uint64_t seed = 1; seed <= 100; seed++) {
		struct bench bench;
		weir_session *session;
		int order;

		open_bench(&bench);
		for (int i = 0; i < NODES; i += 2)
			cr_assert_eq(weir_graph_add_control(bench.graph, bench.nodes[i], bench.nodes[i + 1], NULL), WEIR_OK);
		session = a_session(bench.graph, seed, 0);
		order = order_of_step(&bench, session);
		apart |= order == 1234 || order == 3412;
		mixed |= order == 1324 || order == 1342 || order == 3124 || order == 3142;
		kit_end(session, bench.graph);
	}
	cr_expect(mixed, "no order mixes the chains");
	cr_expect(apart, "each order mixes the chains");
}
