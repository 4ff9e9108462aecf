/*
 * test_session.c - what a session runs and what not, from how many threads, and how it ends.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <weir/reclaim.h>

#include "session/session.h"
#include "graph_kit.h"
#include "late_failure.h"

Test(session, only_ancestors_run)
{
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 2);
	weir_var *asked = kit_var("asked", kit_f32(0));
	weir_var *other = kit_var("other", kit_f32(0));
	weir_output one = kit_constant(graph, kit_f32(1));
	weir_output add_asked, add_other, successor;

	cr_assert_eq(weir_op_assign_add(graph, NULL, asked, one, &add_asked, NULL), WEIR_OK);
	cr_assert_eq(weir_op_assign_add(graph, NULL, other, one, &add_other, NULL), WEIR_OK);
	cr_assert_eq(weir_op_assign_add(graph, NULL, other, add_asked, &successor, NULL), WEIR_OK);
	cr_assert_eq(kit_run_target(session, add_asked.node, NULL), WEIR_OK);
	cr_expect_eq(kit_var_f32(asked, 0), 1.0f);
	cr_expect_eq(kit_var_f32(other, 0), 0.0f);
	kit_end(session, graph);
	weir_var_destroy(asked, NULL);
	weir_var_destroy(other, NULL);
}

Test(session, a_feed_cuts_its_producer_off)
{
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 1);
	weir_var *var = kit_var("v", kit_f32(0));
	weir_output one = kit_constant(graph, kit_f32(1));
	weir_output add, square;
	weir_tensor *four = kit_f32(4);
	struct weir_feed feed;
	weir_output fetches[2];
	weir_tensor *results[2];

	cr_assert_eq(weir_op_assign_add(graph, NULL, var, one, &add, NULL), WEIR_OK);
	cr_assert_eq(weir_op_square(graph, NULL, add, &square, NULL), WEIR_OK);
	feed = (struct weir_feed){add, four};
	fetches[0] = square;
	/* A fed output may be fetched. */
	fetches[1] = add;
	cr_assert_eq(weir_session_run(session, &feed, 1, fetches, 2, results, NULL, 0, WEIR_NO_DEADLINE, NULL, NULL),
	             WEIR_OK);
	cr_expect_eq(kit_f32_at(results[0], 0), 16.0f);
	cr_expect_eq(results[1], four);
	cr_expect_eq(kit_var_f32(var, 0), 0.0f);
	weir_tensor_release(results[0]);
	weir_tensor_release(results[1]);
	weir_tensor_release(four);
	kit_end(session, graph);
	weir_var_destroy(var, NULL);
}

/* The node still runs, for its other output. */
Test(session, feeding_one_output_leaves_the_others_to_the_node)
{
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	weir_var *var = kit_var("v", kit_f32(2));
	weir_output value, version, square;
	weir_tensor *seven = kit_f32(7);
	struct weir_feed feed;
	weir_output fetches[2];
	weir_tensor *results[2];

	cr_assert_eq(weir_op_read(graph, NULL, var, &value, NULL), WEIR_OK);
	cr_assert_eq(weir_node_output(value.node, 1, &version, NULL), WEIR_OK);
	cr_assert_eq(weir_op_square(graph, NULL, value, &square, NULL), WEIR_OK);
	feed = (struct weir_feed){value, seven};
	fetches[0] = square;
	fetches[1] = version;
	cr_assert_eq(weir_session_run(session, &feed, 1, fetches, 2, results, NULL, 0, WEIR_NO_DEADLINE, NULL, NULL),
	             WEIR_OK);
	cr_expect_eq(kit_f32_at(results[0], 0), 49.0f);
	cr_expect_eq(kit_i64_at(results[1], 0), 1);
	weir_tensor_release(results[0]);
	weir_tensor_release(results[1]);
	weir_tensor_release(seven);
	kit_end(session, graph);
	weir_var_destroy(var, NULL);
}

Test(session, the_same_fetch_twice_is_computed_once)
{
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 1);
	weir_var *var = kit_var("v", kit_f32(0));
	weir_output one = kit_constant(graph, kit_f32(1));
	weir_output fetches[2];
	weir_node *targets[2];
	weir_tensor *results[2];

	cr_assert_eq(weir_op_assign_add(graph, NULL, var, one, &fetches[0], NULL), WEIR_OK);
	fetches[1] = fetches[0];
	targets[0] = targets[1] = fetches[0].node;
	cr_assert_eq(weir_session_run(session, NULL, 0, fetches, 2, results, targets, 2, WEIR_NO_DEADLINE, NULL, NULL),
	             WEIR_OK);
	cr_expect_eq(results[0], results[1]);
	cr_expect_eq(kit_var_f32(var, 0), 1.0f);
	weir_tensor_release(results[0]);
	weir_tensor_release(results[1]);
	kit_end(session, graph);
	weir_var_destroy(var, NULL);
}

Test(session, asking_for_nothing_runs_nothing)
{
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 1);

	(void)kit_constant(graph, kit_f32(5));
	cr_expect_eq(weir_session_run(session, NULL, 0, NULL, 0, NULL, NULL, 0, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	kit_end(session, graph);
}

Test(session, a_constant_can_be_fetched_and_run)
{
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	weir_output five = kit_constant(graph, kit_f32(5));
	weir_output six = kit_constant(graph, kit_f32(6));

	cr_expect_eq(kit_fetch_f32(session, five), 5.0f);
	cr_expect_eq(kit_run_target(session, five.node, NULL), WEIR_OK);
	cr_assert_eq(weir_graph_add_control(graph, five.node, six.node, NULL), WEIR_OK);
	cr_expect_eq(kit_fetch_f32(session, six), 6.0f, "a constant with a control edge");
	kit_end(session, graph);
}

Test(session, an_unfed_placeholder_is_named)
{
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 1);
	weir_output x = kit_placeholder(graph, "images", WEIR_F32, kit_shape(2, -1, 64));
	weir_output square;
	weir_tensor *result = NULL;
	weir_error error;

	cr_assert_eq(weir_op_square(graph, NULL, x, &square, NULL), WEIR_OK);
	cr_expect_eq(weir_session_run(session, NULL, 0, &square, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "placeholder \"images\" (f32 [?,64])"), "%s", error.message);
	cr_expect_null(result);
	kit_end(session, graph);
}

Test(session, feeds_are_checked)
{
	weir_graph *graph = kit_graph();
	weir_graph *other = kit_graph();
	weir_session *session = kit_session(graph, 1);
	weir_output x = kit_placeholder(graph, "x", WEIR_F32, kit_shape(1, 2));
	weir_output foreign = kit_placeholder(other, "foreign", WEIR_F32, kit_shape(1, 2));
	weir_tensor *right = kit_tensor(WEIR_F32, kit_shape(1, 2), (const float[]){1, 2});
	weir_tensor *longer = kit_tensor(WEIR_F32, kit_shape(1, 3), (const float[]){1, 2, 3});
	weir_tensor *integer = kit_tensor(WEIR_I64, kit_shape(1, 2), (const int64_t[]){1, 2});
	weir_tensor *result = NULL;
	struct weir_feed twice[2] = {{x, right}, {x, right}};
	struct weir_feed feed = {x, longer};
	weir_error error;

	cr_expect_eq(weir_session_run(session, &feed, 1, &x, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "\"x\" must be f32 [2], got f32 [3]"), "%s", error.message);
	feed.value = integer;
	cr_expect_eq(weir_session_run(session, &feed, 1, &x, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	feed.value = NULL;
	cr_expect_eq(weir_session_run(session, &feed, 1, &x, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_session_run(session, twice, 2, &x, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "fed twice"), "%s", error.message);
	feed = (struct weir_feed){foreign, right};
	cr_expect_eq(weir_session_run(session, &feed, 1, NULL, 0, NULL, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	feed = (struct weir_feed){{NULL, 0}, right};
	cr_expect_eq(weir_session_run(session, &feed, 1, NULL, 0, NULL, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_null(result);
	feed = (struct weir_feed){x, right};
	cr_expect_eq(weir_session_run(session, &feed, 1, &x, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, &error), WEIR_OK);
	weir_tensor_release(result);
	weir_tensor_release(right);
	weir_tensor_release(longer);
	weir_tensor_release(integer);
	kit_end(session, graph);
	cr_assert_eq(weir_graph_destroy(other, NULL), WEIR_OK);
}

Test(session, run_refuses_bad_arguments)
{
	weir_graph *graph = kit_graph();
	weir_graph *other = kit_graph();
	weir_session *session = kit_session(graph, 1);
	weir_output x = kit_constant(graph, kit_f32(1));
	weir_output foreign = kit_constant(other, kit_f32(1));
	weir_output beyond = {x.node, 3};
	weir_node *no_target = NULL;
	weir_tensor *result = NULL;
	weir_error error;

	cr_expect_eq(weir_session_run(NULL, NULL, 0, NULL, 0, NULL, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_session_run(session, NULL, 1, NULL, 0, NULL, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_session_run(session, NULL, 0, NULL, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_session_run(session, NULL, 0, &x, 1, NULL, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_session_run(session, NULL, 0, NULL, 0, NULL, NULL, 1, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_session_run(session, NULL, 0, &beyond, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_session_run(session, NULL, 0, &foreign, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(kit_run_target(session, no_target, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(kit_run_target(session, foreign.node, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_null(result);
	kit_end(session, graph);
	cr_assert_eq(weir_graph_destroy(other, NULL), WEIR_OK);
}

Test(session, create_refuses_bad_options)
{
	struct weir_session_options options = {WEIR_SESSION_OPTIONS_INIT};
	weir_graph *graph = kit_graph();
	weir_session *session = NULL;
	weir_pool *pool = NULL;
	weir_error error;

	cr_assert_eq(weir_pool_create(&(struct weir_pool_options){WEIR_POOL_OPTIONS_INIT, .threads = 1}, &pool, NULL),
	             WEIR_OK);
	cr_expect_eq(weir_session_create(NULL, &options, &session, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_session_create(graph, &options, NULL, &error), WEIR_INVALID_ARGUMENT);
	options.flags = 8;
	cr_expect_eq(weir_session_create(graph, &options, &session, &error), WEIR_INVALID_ARGUMENT);
	options.flags = WEIR_SESSION_NO_THREADS;
	options.threads = 2;
	cr_expect_eq(weir_session_create(graph, &options, &session, &error), WEIR_INVALID_ARGUMENT);
	options.flags = 0;
	options.pool = pool;
	cr_expect_eq(weir_session_create(graph, &options, &session, &error), WEIR_INVALID_ARGUMENT);
	options.pool = NULL;
	options.threads = WEIR_POOL_MAX_THREADS + 1;
	cr_expect_eq(weir_session_create(graph, &options, &session, &error), WEIR_INVALID_ARGUMENT);
	options.struct_size = 3;
	cr_expect_eq(weir_session_create(graph, &options, &session, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_null(session);
	cr_expect_eq(weir_session_close(NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_session_destroy(NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK, "a refused session keeps the graph in use");
	cr_assert_eq(weir_pool_destroy(pool, NULL), WEIR_OK);
}

Test(session, sessions_may_share_a_pool_of_the_caller)
{
	struct weir_pool_options pool_options = {WEIR_POOL_OPTIONS_INIT, .threads = 2};
	struct weir_session_options options = {WEIR_SESSION_OPTIONS_INIT};
	weir_graph *graph = kit_graph();
	weir_output five = kit_constant(graph, kit_f32(5));
	weir_session *sessions[2];

	cr_assert_eq(weir_pool_create(&pool_options, &options.pool, NULL), WEIR_OK);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(weir_session_create(graph, &options, &sessions[i], NULL), WEIR_OK);
	for (int i = 0; i < 2; i++)
		cr_expect_eq(kit_fetch_f32(sessions[i], five), 5.0f);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(weir_session_destroy(sessions[i], NULL), WEIR_OK);
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
	cr_assert_eq(weir_pool_destroy(options.pool, NULL), WEIR_OK);
}

Test(session, a_graph_may_grow_between_runs_and_see_existing_state)
{
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 1);
	weir_var *var = kit_var("v", kit_f32(0));
	weir_output one = kit_constant(graph, kit_f32(1));
	weir_output add, read, square;

	cr_assert_eq(weir_op_assign_add(graph, NULL, var, one, &add, NULL), WEIR_OK);
	cr_expect_eq(kit_fetch_f32(session, add), 1.0f);
	cr_expect_eq(kit_fetch_f32(session, add), 2.0f);
	cr_assert_eq(weir_op_read(graph, NULL, var, &read, NULL), WEIR_OK);
	cr_assert_eq(weir_op_square(graph, NULL, read, &square, NULL), WEIR_OK);
	cr_expect_eq(kit_fetch_f32(session, square), 4.0f);
	cr_expect_eq(kit_fetch_f32(session, add), 3.0f, "an older plan stays valid");
	kit_end(session, graph);
	weir_var_destroy(var, NULL);
}

Test(session, a_wide_graph_gives_the_same_result_on_any_number_of_threads)
{
	enum { WIDTH = 8, SIZE = 130 };
	static float values[SIZE * SIZE];
	const char *preloaded = getenv("LD_PRELOAD");
	/* valgrind takes half a second for each, and runs one thread at a time. */
	int repeats = preloaded != NULL && strstr(preloaded, "vgpreload") != NULL ? 2 : 20;
	float expected = 0;

	for (size_t i = 0; i < SIZE * SIZE; i++)
		values[i] = (float)(i % 7);
	for (size_t threads = 0; threads <= 3; threads++) {
		weir_graph *graph = kit_graph();
		weir_session *session = kit_session(graph, threads);
		weir_output x = kit_constant(graph, kit_tensor(WEIR_F32, kit_shape(2, SIZE, SIZE), values));
		weir_output total = kit_constant(graph, kit_f32(0));
		weir_output product, sum;
		float got;

		for (int i = 0; i < WIDTH; i++) {
			cr_assert_eq(weir_op_matmul(graph, NULL, x, x, (uint32_t)i % 4, &product, NULL), WEIR_OK);
			cr_assert_eq(weir_op_reduce_mean(graph, NULL, product, &sum, NULL), WEIR_OK);
			cr_assert_eq(weir_op_add(graph, NULL, total, sum, &total, NULL), WEIR_OK);
		}
		for (int repeat = 0; repeat < repeats; repeat++) {
			got = kit_fetch_f32(session, total);
			if (expected == 0)
				expected = got;
			cr_expect_float_eq(got, expected, 1e-2f, "%zu threads", threads);
		}
		kit_end(session, graph);
	}
}

enum { CALLERS = 8, RUNS = 300 };

struct caller {
	weir_session *session;
	weir_output x, out;
	float number;
	int wrong;
	enum weir_status last;
};

/* Feeds its own number, and must get its own square back. */
static void *call_often(void *context)
{
	struct caller *caller = context;
	weir_shape scalar = {.rank = 0};

	for (int i = 0; i < RUNS; i++) {
		float number = caller->number + (float)i;
		/* In a variable, so that a machine's excess precision is dropped. */
		float square = number * number;
		weir_tensor *value;
		weir_tensor *result;
		struct weir_feed feed;

		caller->last = weir_tensor_copy_of(WEIR_F32, &scalar, &number, NULL, &value);
		if (caller->last != WEIR_OK)
			break;
		feed = (struct weir_feed){caller->x, value};
		caller->last = weir_session_run(caller->session, &feed, 1, &caller->out, 1, &result, NULL, 0, WEIR_NO_DEADLINE,
		                                NULL, NULL);
		weir_tensor_release(value);
		if (caller->last != WEIR_OK)
			break;
		caller->wrong += *(const float *)weir_tensor_data(result) != square;
		weir_tensor_release(result);
	}
	return NULL;
}

enum { PRODUCTS = 2, SIDE = 100, PRODUCT_BYTES = SIDE * SIDE * (int)sizeof(float) };

struct computing {
	_Atomic(int) products;
	pthread_t by[PRODUCTS];
};

/* A thread that computes a product takes the memory for it first. */
static void *allocate_a_product(void *context, size_t size, size_t alignment)
{
	struct computing *computing = context;
	void *memory = NULL;

	if (size >= PRODUCT_BYTES) {
		int i = weiri_fetch_add_acq_rel(&computing->products, 1);

		cr_assert_lt(i, PRODUCTS);
		computing->by[i] = pthread_self();
	}
	return posix_memalign(&memory, alignment, size) == 0 ? memory : NULL;
}

static void release_a_product(void *context, void *memory, size_t size, size_t alignment)
{
	(void)context, (void)size, (void)alignment;
	free(memory);
}

Test(session, two_large_products_are_computed_on_two_threads)
{
	static float values[SIDE * SIDE];
	struct computing computing = {.products = 0};
	weir_allocator allocator = {allocate_a_product, release_a_product, &computing};
	struct weir_session_options options = {WEIR_SESSION_OPTIONS_INIT, .threads = 1, .allocator = &allocator};
	weir_graph *graph = kit_graph();
	weir_output x = kit_constant(graph, kit_tensor(WEIR_F32, kit_shape(2, SIDE, SIDE), values)), products[PRODUCTS];
	weir_session *session = NULL;
	weir_tensor *results[PRODUCTS];
	weir_error error;

	for (int i = 0; i < PRODUCTS; i++)
		cr_assert_eq(weir_op_matmul(graph, NULL, x, x, 0, &products[i], NULL), WEIR_OK);
	cr_assert_eq(weir_session_create(graph, &options, &session, NULL), WEIR_OK);
	cr_assert_eq(
		weir_session_run(session, NULL, 0, products, PRODUCTS, results, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
		WEIR_OK, "%s", error.message);
	cr_assert_eq(weiri_load_acquire(&computing.products), PRODUCTS);
	cr_expect_not(pthread_equal(computing.by[0], computing.by[1]), "one thread computed both");
	for (int i = 0; i < PRODUCTS; i++)
		weir_tensor_release(results[i]);
	kit_end(session, graph);
}

Test(session, many_threads_run_the_same_step_without_mixing_their_values)
{
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 2);
	weir_output x = kit_placeholder(graph, "x", WEIR_F32, kit_shape(0));
	struct caller callers[CALLERS];
	pthread_t threads[CALLERS];
	weir_output square;

	cr_assert_eq(weir_op_square(graph, NULL, x, &square, NULL), WEIR_OK);
	for (int i = 0; i < CALLERS; i++) {
		callers[i] = (struct caller){session, x, square, (float)i * 1000, 0, WEIR_OK};
		cr_assert_eq(pthread_create(&threads[i], NULL, call_often, &callers[i]), 0);
	}
	for (int i = 0; i < CALLERS; i++) {
		cr_assert_eq(pthread_join(threads[i], NULL), 0);
		cr_expect_eq(callers[i].wrong, 0);
		cr_expect_eq(callers[i].last, WEIR_OK);
	}
	kit_end(session, graph);
}

struct grower {
	weir_graph *graph;
	weir_session *session;
	weir_output one;
	enum weir_status status;
	int wrong;
};

/* Builds nodes of its own while other threads build and run, and runs each node at once. */
static void *build_and_run(void *context)
{
	struct grower *grower = context;
	weir_output x = grower->one;
	float expected = 1;

	for (int i = 0; i < 60 && grower->status == WEIR_OK; i++) {
		weir_tensor *result = NULL;

		grower->status = weir_op_add(grower->graph, NULL, x, grower->one, &x, NULL);
		expected += 1;
		if (grower->status == WEIR_OK)
			grower->status =
				weir_session_run(grower->session, NULL, 0, &x, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, NULL);
		if (grower->status == WEIR_OK)
			grower->wrong += *(const float *)weir_tensor_data(result) != expected;
		weir_tensor_release(result);
	}
	return NULL;
}

Test(session, threads_build_and_run_one_graph_at_once)
{
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 1);
	weir_output one = kit_constant(graph, kit_f32(1));
	struct grower growers[CALLERS];
	pthread_t threads[CALLERS];

	for (int i = 0; i < CALLERS; i++) {
		growers[i] = (struct grower){graph, session, one, WEIR_OK, 0};
		cr_assert_eq(pthread_create(&threads[i], NULL, build_and_run, &growers[i]), 0);
	}
	for (int i = 0; i < CALLERS; i++) {
		cr_assert_eq(pthread_join(threads[i], NULL), 0);
		cr_expect_eq(growers[i].status, WEIR_OK);
		cr_expect_eq(growers[i].wrong, 0);
	}
	kit_end(session, graph);
}

Test(session, the_first_error_names_its_op_and_successors_do_not_run)
{
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 2);
	weir_var *var = kit_var("v", kit_f32(0));
	weir_output one = kit_constant(graph, kit_f32(1));
	weir_output x, y, sum, add;
	weir_tensor *two = kit_tensor(WEIR_F32, kit_shape(1, 2), (const float[]){1, 2});
	weir_tensor *three = kit_tensor(WEIR_F32, kit_shape(1, 3), (const float[]){1, 2, 3});
	struct weir_feed feeds[2];
	weir_node *target;
	weir_error error;

	cr_assert_eq(weir_op_placeholder(graph, "x", WEIR_F32, NULL, &x, NULL), WEIR_OK);
	cr_assert_eq(weir_op_placeholder(graph, "y", WEIR_F32, NULL, &y, NULL), WEIR_OK);
	cr_assert_eq(weir_op_add(graph, "bad", x, y, &sum, NULL), WEIR_OK);
	cr_assert_eq(weir_op_assign_add(graph, "after", var, one, &add, NULL), WEIR_OK);
	cr_assert_eq(weir_graph_add_control(graph, sum.node, add.node, NULL), WEIR_OK);
	feeds[0] = (struct weir_feed){x, two};
	feeds[1] = (struct weir_feed){y, three};
	target = add.node;
	cr_expect_eq(weir_session_run(session, feeds, 2, NULL, 0, NULL, &target, 1, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(error.code, WEIR_INVALID_ARGUMENT);
	cr_expect_eq(strncmp(error.message, "add \"bad\": ", 11), 0, "%s", error.message);
	cr_expect_eq(kit_var_f32(var, 0), 0.0f);
	weir_tensor_release(two);
	weir_tensor_release(three);
	kit_end(session, graph);
	weir_var_destroy(var, NULL);
}

Test(session, a_closed_session_runs_no_more)
{
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 1);
	weir_output five = kit_constant(graph, kit_f32(5));
	weir_error why = {WEIR_DATA_LOSS, "the disk is gone"};
	weir_tensor *result = NULL;
	weir_error error;

	cr_expect_eq(kit_fetch_f32(session, five), 5.0f);
	cr_expect_eq(weir_session_close(session, &why), WEIR_OK);
	cr_expect_eq(weir_session_close(session, NULL), WEIR_OK, "closing is idempotent");
	cr_expect_eq(weir_session_run(session, NULL, 0, &five, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_FAILED_PRECONDITION);
	cr_expect_str_eq(error.message,
	                 "weir_session_run: the session was closed because of WEIR_DATA_LOSS: the disk is gone");
	cr_expect_null(result);
	kit_end(session, graph);
}

Test(session, a_token_that_has_fired_or_a_deadline_that_has_passed_runs_nothing)
{
	struct kit_bounds options = {WEIR_NO_DEADLINE, NULL};
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 1);
	weir_var *var = kit_var("v", kit_f32(0));
	weir_output one = kit_constant(graph, kit_f32(1));
	weir_error cause = {WEIR_ABORTED, "the user pressed Ctrl-C"};
	weir_output add;
	weir_node *target;
	weir_error error;

	cr_assert_eq(weir_op_assign_add(graph, NULL, var, one, &add, NULL), WEIR_OK);
	target = add.node;
	for (options.deadline_ns = 0; options.deadline_ns <= 1; options.deadline_ns++) {
		cr_expect_eq(weir_session_run(session, NULL, 0, NULL, 0, NULL, &target, 1, options.deadline_ns, NULL, &error),
		             WEIR_DEADLINE_EXCEEDED);
		cr_expect_str_eq(error.message,
		                 "the deadline had passed when the run began (a deadline is a moment: weir_deadline_in())");
	}
	options.deadline_ns = WEIR_NO_DEADLINE;
	cr_assert_eq(weir_cancel_create(NULL, &options.cancel, NULL), WEIR_OK);
	(void)weir_cancel_fire(options.cancel, &cause);
	cr_expect_eq(
		weir_session_run(session, NULL, 0, NULL, 0, NULL, &target, 1, options.deadline_ns, options.cancel, &error),
		WEIR_ABORTED);
	cr_expect_str_eq(error.message, "the run was cancelled by its token; WEIR_ABORTED: the user pressed Ctrl-C");
	cr_expect_eq(kit_var_f32(var, 0), 0.0f);
	weir_cancel_release(options.cancel);
	kit_end(session, graph);
	weir_var_destroy(var, NULL);
}

struct survivor {
	weir_graph *graph;
	weir_output product;
	weir_node *target;
};

static enum weir_status run_something(const weir_allocator *allocator, void *context)
{
	struct weir_session_options options = {WEIR_SESSION_OPTIONS_INIT, .threads = 1, .allocator = allocator};
	struct survivor *survivor = context;
	weir_session *session;
	weir_tensor *result = NULL;
	enum weir_status status = weir_session_create(survivor->graph, &options, &session, NULL);

	if (status != WEIR_OK)
		return status;
	status = weir_session_run(session, NULL, 0, &survivor->product, 1, &result, &survivor->target, 1, WEIR_NO_DEADLINE,
	                          NULL, NULL);
	weir_tensor_release(result);
	(void)weir_session_destroy(session, NULL);
	/* Hooks of cancel tokens are freed when no thread can be looking at them. */
	cr_assert_eq(weir_reclaim_flush(weir_deadline_in(KIT_PATIENCE_NS)), WEIR_OK);
	return status;
}

static enum weir_status do_nothing(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	(void)context;
	(void)call;
	(void)error;
	return WEIR_OK;
}

/*
 * Plans are kept as long as the session. So a second plan of one kind would stay until the end of
 * the session.
 */
Test(session, the_same_step_again_keeps_no_more_memory)
{
	struct failing_allocator memory = {0};
	weir_allocator allocator = failing_allocator_hooks(&memory);
	struct weir_session_options options = {WEIR_SESSION_OPTIONS_INIT, .flags = WEIR_SESSION_NO_THREADS,
	                                       .allocator = &allocator};
	weir_graph *graph = kit_graph();
	weir_output x = kit_placeholder(graph, "x", WEIR_F32, kit_shape(0)), y = kit_constant(graph, kit_f32(1)), out;
	weir_node *target;
	struct weir_feed feed = {.output = x, .value = kit_f32(2)};
	weir_session *session = NULL;
	size_t kept = 0;

	cr_assert_eq(weir_op_add(graph, NULL, x, y, &out, NULL), WEIR_OK);
	cr_assert_eq(
		weir_op_kernel(graph, NULL, KIT_KERNEL(do_nothing), NULL, NULL, 0, NULL, 0, NULL, 0, NULL, &target, NULL),
		WEIR_OK);
	cr_assert_eq(weir_session_create(graph, &options, &session, NULL), WEIR_OK);
	for (int i = 0; i < 5; i++) {
		weir_tensor *sum = NULL;

		cr_assert_eq(weir_session_run(session, &feed, 1, &out, 1, &sum, &target, 1, WEIR_NO_DEADLINE, NULL, NULL),
		             WEIR_OK);
		cr_expect_eq(kit_f32_at(sum, 0), 3.0f);
		weir_tensor_release(sum);
		if (i == 0)
			kept = weiri_load_relaxed(&memory.outstanding);
		cr_expect_eq(weiri_load_relaxed(&memory.outstanding), kept, "run %d", i);
	}
	weir_tensor_release(feed.value);
	kit_end(session, graph);
	cr_expect_str_eq(failing_allocator_verdict(&memory), "balanced");
}

/* Looks at the session whenever some of its memory is released. */
struct observed_memory {
	struct failing_allocator memory;
	/* NULL: it does not look. */
	const weir_session *session;
	int returned;
	/* The number of releases when no step was left in the session. */
	int too_late;
};

static void *observed_allocate(void *context, size_t size, size_t alignment)
{
	struct observed_memory *observed = context;

	return failing_allocate(&observed->memory, size, alignment);
}

static void observed_release(void *context, void *memory, size_t size, size_t alignment)
{
	struct observed_memory *observed = context;

	if (observed->session != NULL) {
		observed->returned++;
		observed->too_late += weiri_load_relaxed(&observed->session->gate.word) == 0;
	}
	failing_release(&observed->memory, memory, size, alignment);
}

/*
 * Once the last step has left, the destroy on another thread returns, and the allocator may end
 * with the session.
 */
Test(session, a_step_gives_its_memory_back_before_it_leaves_its_session)
{
	struct observed_memory observed = {.session = NULL};
	weir_allocator allocator = {observed_allocate, observed_release, &observed};
	struct weir_session_options options = {WEIR_SESSION_OPTIONS_INIT, .flags = WEIR_SESSION_NO_THREADS,
	                                       .allocator = &allocator};
	weir_graph *graph = kit_graph();
	weir_output x = kit_constant(graph, kit_f32(1)), out;
	weir_session *session = NULL;

	cr_assert_eq(weir_op_add(graph, NULL, x, x, &out, NULL), WEIR_OK);
	cr_assert_eq(weir_session_create(graph, &options, &session, NULL), WEIR_OK);
	cr_assert_eq(kit_run_target(session, out.node, NULL), WEIR_OK);
	observed.session = session;
	cr_assert_eq(kit_run_target(session, out.node, NULL), WEIR_OK);
	observed.session = NULL;
	cr_expect_gt(observed.returned, 0);
	cr_expect_eq(observed.too_late, 0);
	kit_end(session, graph);
	cr_expect_str_eq(failing_allocator_verdict(&observed.memory), "balanced");
}

/*
 * An enqueue into an empty queue and a dequeue from it, in one step. The node of the target that is
 * named last starts first.
 */
struct exchange {
	weir_graph *graph;
	weir_node *targets[2];
};

/* An allocation fails in the first run of a plan. A later run has all memory already. */
static enum weir_status run_exchange(const weir_allocator *failing, void *context)
{
	struct exchange *exchange = context;
	struct late_failure late = {.under_test = NULL};
	weir_allocator allocator = late_failure_hooks(&late);
	struct weir_session_options options = {WEIR_SESSION_OPTIONS_INIT, .flags = WEIR_SESSION_NO_THREADS,
	                                       .allocator = &allocator};
	weir_session *session = NULL;
	weir_callable *callable;
	enum weir_status status;

	cr_assert_eq(weir_session_create(exchange->graph, &options, &session, NULL), WEIR_OK);
	cr_assert_eq(weir_session_compile(session, NULL, 0, NULL, 0, exchange->targets, 2, NULL, &callable, NULL), WEIR_OK);
	late.under_test = failing;
	status = weir_callable_run(callable, NULL, NULL, WEIR_NO_DEADLINE, NULL, NULL, NULL);
	late.under_test = NULL;
	weir_callable_release(callable);
	cr_assert_eq(weir_session_destroy(session, NULL), WEIR_OK);
	cr_assert_str_eq(failing_allocator_verdict(failing->context), "balanced");
	late_failure_end(&late);
	return status;
}

Test(session, a_step_that_cannot_wait_for_lack_of_memory_ends_and_says_so)
{
	weir_tensor_queue *queue = kit_queue("q", 1, WEIR_F32, NULL);
	struct exchange exchange = {.graph = kit_graph()};
	weir_output one = kit_constant(exchange.graph, kit_f32(1)), taken;
	size_t waiting, at_once;
	weir_node *put;

	cr_assert_eq(weir_op_enqueue(exchange.graph, NULL, queue, &one, 1, &put, NULL), WEIR_OK);
	cr_assert_eq(weir_op_dequeue(exchange.graph, NULL, queue, &taken, 1, NULL, NULL), WEIR_OK);
	exchange.targets[0] = taken.node;
	exchange.targets[1] = put;
	at_once = fail_each_allocation(run_exchange, &exchange);
	exchange.targets[0] = put;
	exchange.targets[1] = taken.node;
	waiting = fail_each_allocation(run_exchange, &exchange);
	cr_expect_gt(waiting, at_once, "the take did not wait");
	cr_assert_eq(weir_graph_destroy(exchange.graph, NULL), WEIR_OK);
	kit_queue_end(queue);
}

/*
 * Refuses the first block that a step allocates while its enqueue waits. It may close the queue
 * before that.
 */
struct refusal {
	/* NULL: it refuses nothing. */
	weir_tensor_queue *queue;
	int closes;
	int refused;
};

static int an_enqueue_waits(weir_tensor_queue *queue)
{
	struct weir_queue_stats stats = {WEIR_QUEUE_STATS_INIT};

	cr_assert_eq(weir_tensor_queue_get_stats(queue, &stats), WEIR_OK);
	return stats.enqueue_waits != 0;
}

static void *refuse_while_an_enqueue_waits(void *context, size_t size, size_t alignment)
{
	struct refusal *refusal = context;
	void *memory = NULL;

	if (refusal->queue != NULL && !refusal->refused && an_enqueue_waits(refusal->queue)) {
		const weir_error cause = {WEIR_OUT_OF_RANGE, "that was the last epoch"};

		refusal->refused = 1;
		if (refusal->closes)
			cr_assert_eq(weir_tensor_queue_close(refusal->queue, WEIR_CLOSE_CANCEL, &cause), WEIR_OK);
		return NULL;
	}
	return posix_memalign(&memory, alignment, size) == 0 ? memory : NULL;
}

static void release_what_was_not_refused(void *context, void *memory, size_t size, size_t alignment)
{
	(void)context, (void)size, (void)alignment;
	free(memory);
}

/* A step that enqueues into a full queue. Returns the status with which it ends. */
static enum weir_status enqueue_without_memory(int closes, weir_error *error)
{
	weir_tensor_queue *queue = kit_queue("q", 1, WEIR_F32, NULL);
	struct refusal refusal = {.queue = NULL, .closes = closes};
	weir_allocator allocator = {refuse_while_an_enqueue_waits, release_what_was_not_refused, &refusal};
	struct weir_session_options options = {WEIR_SESSION_OPTIONS_INIT, .flags = WEIR_SESSION_NO_THREADS,
	                                       .allocator = &allocator};
	struct kit_bounds patience = {.deadline_ns = weir_deadline_in(KIT_PATIENCE_NS)};
	weir_graph *graph = kit_graph();
	weir_output one = kit_constant(graph, kit_f32(1));
	weir_session *session = NULL;
	enum weir_status status;
	weir_node *put;

	cr_assert_eq(weir_op_enqueue(graph, NULL, queue, &one, 1, &put, NULL), WEIR_OK);
	cr_assert_eq(weir_session_create(graph, &options, &session, NULL), WEIR_OK);
	cr_assert_eq(kit_run_target(session, put, NULL), WEIR_OK);
	refusal.queue = queue;
	status = weir_session_run(session, NULL, 0, NULL, 0, NULL, &put, 1, patience.deadline_ns, patience.cancel, error);
	cr_expect(refusal.refused, "the enqueue did not wait");
	refusal.queue = NULL;
	kit_end(session, graph);
	kit_queue_end(queue);
	return status;
}

Test(session, a_step_that_cannot_wait_for_lack_of_memory_tells_the_close_that_came_first)
{
	weir_error error = {WEIR_OK, ""};

	cr_expect_eq(enqueue_without_memory(0, &error), WEIR_RESOURCE_EXHAUSTED, "%s", error.message);
	cr_expect_not_null(strstr(error.message, "no memory to watch the cancel token"), "%s", error.message);
	cr_expect_eq(enqueue_without_memory(1, &error), WEIR_CANCELLED, "%s", error.message);
	cr_expect_not_null(strstr(error.message, "that was the last epoch"), "%s", error.message);
}

/* A step that computes, moves an item through a queue, and runs a kernel. */
Test(session, running_survives_every_allocation_failing)
{
	weir_var *var = kit_var("v", kit_tensor(WEIR_F32, kit_shape(2, 2, 2), (const float[]){1, 2, 3, 4}));
	weir_tensor_queue *queue = kit_queue("q", 10000, WEIR_F32, NULL);
	struct survivor survivor;
	weir_output read, taken;
	weir_node *put;

	survivor.graph = kit_graph();
	cr_assert_eq(weir_op_read(survivor.graph, NULL, var, &read, NULL), WEIR_OK);
	cr_assert_eq(weir_op_enqueue(survivor.graph, NULL, queue, &read, 1, &put, NULL), WEIR_OK);
	cr_assert_eq(weir_op_dequeue(survivor.graph, NULL, queue, &taken, 1, NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_graph_add_control(survivor.graph, put, taken.node, NULL), WEIR_OK);
	cr_assert_eq(weir_op_matmul(survivor.graph, NULL, read, taken, 0, &survivor.product, NULL), WEIR_OK);
	cr_assert_eq(weir_op_kernel(survivor.graph, NULL, KIT_KERNEL(do_nothing), NULL, NULL, 0, NULL, 0, NULL, 0, NULL,
	                            &survivor.target, NULL),
	             WEIR_OK);
	cr_expect_gt(fail_each_allocation_in_time(run_something, &survivor), 8);
	cr_assert_eq(weir_graph_destroy(survivor.graph, NULL), WEIR_OK);
	kit_queue_end(queue);
	weir_var_destroy(var, NULL);
}

/* -- by name ----------------------------------------------------------------------------------- */

/* out = x * x + v, as "out"; "add" adds x to v. */
static weir_session *open_named(weir_graph *graph, weir_var *var)
{
	weir_output x = kit_placeholder(graph, "x", WEIR_F32, weir_shape_scalar), square, read, out;

	cr_assert_eq(weir_op_square(graph, "square", x, &square, NULL), WEIR_OK);
	cr_assert_eq(weir_op_read(graph, "read", var, &read, NULL), WEIR_OK);
	cr_assert_eq(weir_op_add(graph, "out", square, read, &out, NULL), WEIR_OK);
	cr_assert_eq(weir_op_assign_add(graph, "add", var, x, &out, NULL), WEIR_OK);
	return kit_session(graph, 1);
}

Test(session, runs_by_name)
{
	weir_graph *graph = kit_graph();
	weir_var *var = kit_var("v", kit_f32(1));
	weir_session *session = open_named(graph, var);
	struct weir_named_feed feeds[] = {{"x", kit_f32(3)}};
	const char *const fetches[] = {"out", "read:1", "x:0"}, *const targets[] = {"add"};
	weir_tensor *results[3];
	weir_error error;

	cr_assert_eq(
		weir_session_run_named(session, feeds, 1, fetches, 3, results, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
		WEIR_OK, "%s", error.message);
	cr_expect_eq(kit_f32_at(results[0], 0), 10.0f);
	cr_expect_eq(kit_i64_at(results[1], 0), 1);
	cr_expect_eq(results[2], feeds[0].value);
	for (int i = 0; i < 3; i++)
		weir_tensor_release(results[i]);
	cr_assert_eq(weir_session_run_named(session, feeds, 1, NULL, 0, NULL, targets, 1, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_OK, "%s", error.message);
	cr_expect_eq(kit_var_f32(var, 0), 4.0f);
	cr_expect_eq(weir_session_run_named(session, NULL, 0, NULL, 0, NULL, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_OK);
	cr_assert_eq(weir_session_close(session, NULL), WEIR_OK);
	cr_expect_eq(weir_session_run_named(session, feeds, 1, NULL, 0, NULL, targets, 1, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_FAILED_PRECONDITION);
	weir_tensor_release(feeds[0].value);
	kit_end(session, graph);
	weir_var_destroy(var, NULL);
}

Test(session, a_wrong_name_is_said_and_nothing_runs)
{
	weir_graph *graph = kit_graph();
	weir_var *var = kit_var("v", kit_f32(1));
	weir_session *session = open_named(graph, var);
	weir_tensor *three = kit_f32(3), *untouched = three, *results[2] = {three, three};
	struct weir_named_feed good[] = {{"x", three}}, wrong[] = {{"x", three}, {"y", three}}, unnamed[] = {{NULL, three}},
						   empty[] = {{"x", NULL}};
	const char *const fetches[] = {"out", "out:1"}, *const targets[] = {"add", "ad"}, *const none[] = {NULL};
	weir_error error;

	cr_expect_eq(weir_session_run_named(session, wrong, 2, NULL, 0, NULL, targets, 1, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_NOT_FOUND);
	cr_expect_str_eq(error.message, "weir_session_run_named: feed 1: the graph has no node \"y\"");
	cr_expect_eq(
		weir_session_run_named(session, good, 1, fetches, 2, results, targets, 1, WEIR_NO_DEADLINE, NULL, &error),
		WEIR_OUT_OF_RANGE);
	cr_expect_str_eq(error.message, "weir_session_run_named: fetch 1: \"out\" has 1 output, there is no output 1");
	cr_expect_eq(weir_session_run_named(session, good, 1, NULL, 0, NULL, targets, 2, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_NOT_FOUND);
	cr_expect_str_eq(error.message, "weir_session_run_named: target 1: the graph has no node \"ad\"");
	cr_expect_eq(weir_session_run_named(session, unnamed, 1, NULL, 0, NULL, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(
		weir_session_run_named(session, empty, 1, fetches, 1, results, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
		WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_session_run_named(session, good, 1, none, 1, results, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "weir_session_run_named: fetch 0: the name is NULL");
	cr_expect_eq(weir_session_run_named(session, good, 1, NULL, 0, NULL, none, 1, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "weir_session_run_named: target 0: the name is NULL");
	cr_expect_eq(weir_session_run_named(NULL, good, 1, NULL, 0, NULL, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_session_run_named(session, NULL, 1, NULL, 0, NULL, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_session_run_named(session, NULL, 0, NULL, 1, results, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_session_run_named(session, NULL, 0, fetches, 1, NULL, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_session_run_named(session, NULL, 0, NULL, 0, NULL, NULL, 1, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect(results[0] == untouched && results[1] == untouched);
	cr_expect_eq(kit_var_f32(var, 0), 1.0f, "nothing ran");
	weir_tensor_release(three);
	kit_end(session, graph);
	weir_var_destroy(var, NULL);
}

static enum weir_status run_read_named(const weir_allocator *failing, void *graph)
{
	struct late_failure late = {.under_test = NULL};
	weir_allocator allocator = late_failure_hooks(&late);
	struct weir_session_options options = {WEIR_SESSION_OPTIONS_INIT, .flags = WEIR_SESSION_NO_THREADS,
	                                       .allocator = &allocator};
	const char *const fetch = "read";
	weir_session *session = NULL;
	weir_tensor *result = NULL;
	enum weir_status status;

	cr_assert_eq(weir_session_create(graph, &options, &session, NULL), WEIR_OK);
	late.under_test = failing;
	status = weir_session_run_named(session, NULL, 0, &fetch, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, NULL);
	weir_tensor_release(result);
	late.under_test = NULL;
	cr_assert_eq(weir_session_destroy(session, NULL), WEIR_OK);
	late_failure_end(&late);
	return status;
}

Test(session, names_need_memory_and_give_it_back)
{
	weir_graph *graph = kit_graph();
	weir_var *var = kit_var("v", kit_f32(1));
	weir_output read;

	cr_assert_eq(weir_op_read(graph, "read", var, &read, NULL), WEIR_OK);
	cr_expect_geq(fail_each_allocation(run_read_named, graph), 3, "for the names, the plan and the step");
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
	weir_var_destroy(var, NULL);
}
