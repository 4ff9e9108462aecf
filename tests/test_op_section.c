/*
 * test_op_section.c - nodes that run in a critical section: the rows of critical sections
 * (conformance_rows.tsv), and behaviours beyond them.
 */
#include <pthread.h>
#include <stdlib.h>
#include <weir/reclaim.h>

#include "base/atomic.h"
#include "graph/section.h"
#include "graph_kit.h"
#include "late_failure.h"

static weir_critical_section *a_section(const char *name)
{
	struct weir_critical_section_options options = {WEIR_CRITICAL_SECTION_OPTIONS_INIT, .name = name};
	weir_critical_section *section = NULL;

	cr_assert_eq(weir_critical_section_create(&options, &section, NULL), WEIR_OK);
	return section;
}

/* Destroys the section, which shows that it is free. */
static void end_section(weir_critical_section *section)
{
	weir_error error;

	cr_assert_eq(weir_critical_section_destroy(section, &error), WEIR_OK, "%s", error.message);
}

/* Adds one execution. The build must succeed. */
static weir_output guarded(weir_graph *graph, const char *name, weir_critical_section *section, weir_node *const body[],
                           size_t count, weir_output result)
{
	weir_output out;
	weir_error error;

	cr_assert_eq(weir_op_critical_section(graph, name, section, 0, body, count, &result, 1, &out, NULL, &error),
	             WEIR_OK, "%s", error.message);
	return out;
}

static void expect_refused(const struct weir_error *error, enum weir_status status, enum weir_status expected,
                           const char *words)
{
	cr_expect_eq(status, expected);
	cr_expect_not_null(strstr(error->message, words), "\"%s\" is not in \"%s\"", words, error->message);
}

/* Reads v and then adds `delta` to it, as two nodes. The result is the value that was read. */
static weir_output read_then_add(weir_graph *graph, weir_critical_section *section, weir_var *var, weir_output delta)
{
	weir_output read, sum, stored;
	weir_node *body[3];

	cr_assert_eq(weir_op_read(graph, NULL, var, &read, NULL), WEIR_OK);
	cr_assert_eq(weir_op_add(graph, NULL, read, delta, &sum, NULL), WEIR_OK);
	cr_assert_eq(weir_op_assign(graph, NULL, var, sum, &stored, NULL), WEIR_OK);
	body[0] = read.node;
	body[1] = sum.node;
	body[2] = stored.node;
	return guarded(graph, NULL, section, body, 3, read);
}

static int compare_floats(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

/* -- rows -------------------------------------------------------------------------------------- */

Test(op_section, CRS_001_executions_of_one_run_are_serialized)
{
	enum { MANY = 100 };
	for (size_t threads = 0; threads <= 2; threads += 2) {
		weir_critical_section *section = a_section("cs");
		weir_graph *graph = kit_graph();
		weir_session *session = kit_session(graph, threads);
		weir_var *var = kit_var("v", kit_f32(0));
		weir_output delta = kit_constant(graph, kit_f32(2)), outs[MANY];
		weir_tensor *results[MANY];
		float values[MANY];
		weir_error error;

		for (int i = 0; i < MANY; i++)
			outs[i] = read_then_add(graph, section, var, delta);
		cr_assert_eq(weir_session_run(session, NULL, 0, outs, MANY, results, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
		             WEIR_OK, "%s", error.message);
		for (int i = 0; i < MANY; i++) {
			values[i] = kit_f32_at(results[i], 0);
			weir_tensor_release(results[i]);
		}
		qsort(values, MANY, sizeof(values[0]), compare_floats);
		for (int i = 0; i < MANY; i++)
			cr_expect_float_eq(values[i], 2.0f * (float)i, 1e-6);
		cr_expect_eq(kit_var_f32(var, 0), 200.0f);
		kit_end(session, graph);
		weir_var_destroy(var, NULL);
		end_section(section);
	}
}

static enum weir_status fail(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	(void)context, (void)call;
	(void)strcpy(error->message, "line 7 has 63 columns");
	return WEIR_DATA_LOSS;
}

Test(op_section, CRS_003_a_body_that_fails_leaves_the_section)
{
	for (size_t threads = 0; threads <= 2; threads++) {
		weir_critical_section *section = a_section("cs");
		weir_graph *graph = kit_graph();
		weir_session *session = kit_session(graph, threads);
		weir_node *kernel, *bad;
		weir_var *var = kit_var("v", kit_f32(0));
		weir_output good = read_then_add(graph, section, var, kit_constant(graph, kit_f32(1)));
		weir_error error;

		cr_assert_eq(
			weir_op_kernel(graph, NULL, KIT_KERNEL(fail), NULL, NULL, 0, NULL, 0, NULL, 0, NULL, &kernel, NULL),
			WEIR_OK);
		cr_assert_eq(weir_op_critical_section(graph, "bad", section, 0, &kernel, 1, NULL, 0, NULL, &bad, &error),
		             WEIR_OK, "%s", error.message);
		for (int i = 0; i < 100; i++) {
			expect_refused(&error, kit_run_target(session, bad, &error), WEIR_DATA_LOSS, "63 columns");
			cr_assert_eq(kit_fetch_f32(session, good), (float)i);
		}
		kit_end(session, graph);
		weir_var_destroy(var, NULL);
		end_section(section);
	}
}

Test(op_section, CRS_004_a_body_without_results)
{
	enum { MANY = 100 };
	weir_critical_section *section = a_section("cs");
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 2);
	weir_var *var = kit_var("v", kit_f32(0));
	weir_output one = kit_constant(graph, kit_f32(1)), added;
	weir_node *targets[MANY];
	weir_error error;

	for (int i = 0; i < MANY; i++) {
		cr_assert_eq(weir_op_assign_add(graph, NULL, var, one, &added, NULL), WEIR_OK);
		cr_assert_eq(
			weir_op_critical_section(graph, NULL, section, 0, &added.node, 1, NULL, 0, NULL, &targets[i], &error),
			WEIR_OK, "%s", error.message);
	}
	cr_assert_eq(weir_session_run(session, NULL, 0, NULL, 0, NULL, targets, MANY, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_OK, "%s", error.message);
	cr_expect_eq(kit_var_f32(var, 0), (float)MANY);
	kit_end(session, graph);
	weir_var_destroy(var, NULL);
	end_section(section);
}

/*
 * Adds a read to `inner`, and puts that execution into `outer`. Returns the status of the latter.
 */
static enum weir_status nest(weir_critical_section *inner, weir_critical_section *outer, weir_error *error)
{
	weir_graph *graph = kit_graph();
	weir_var *var = kit_var("v", kit_f32(0));
	weir_output read, again;
	weir_node *body[2];
	enum weir_status status;

	cr_assert_eq(weir_op_read(graph, NULL, var, &read, NULL), WEIR_OK);
	body[0] = guarded(graph, "inner", inner, &read.node, 1, read).node;
	cr_assert_eq(weir_op_read(graph, NULL, var, &again, NULL), WEIR_OK);
	body[1] = again.node;
	status = weir_op_critical_section(graph, "outer", outer, 0, body, 2, NULL, 0, NULL, NULL, error);
	if (status != WEIR_OK) { /* the inner node as well */
		weir_error other;

		cr_expect_eq(weir_op_critical_section(graph, "outer", outer, 0, &read.node, 1, NULL, 0, NULL, NULL, &other),
		             status);
		/* The refused build tied no node, so the execution runs by itself. */
		cr_expect_eq(weir_op_critical_section(graph, "outer", outer, WEIR_SECTION_SHARES_RESOURCES, &again.node, 1,
		                                      NULL, 0, NULL, NULL, &other),
		             inner == outer ? WEIR_OK : WEIR_INVALID_ARGUMENT);
	}
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
	weir_var_destroy(var, NULL);
	return status;
}

Test(op_section, CRS_006_nested_on_the_same_section_is_refused)
{
	weir_critical_section *section = a_section("cs"), *other = a_section("other");
	weir_error error;

	expect_refused(&error, nest(section, section, &error), WEIR_INVALID_ARGUMENT, "critical section \"cs\"");
	expect_refused(&error, nest(section, other, &error), WEIR_INVALID_ARGUMENT, "do not nest");
	end_section(section);
	end_section(other);
}

Test(op_section, CRS_009_nested_on_the_same_shared_name_is_refused)
{
	weir_resource *one = NULL, *other = NULL;
	weir_store *store = NULL;
	weir_error error;

	cr_assert_eq(weir_store_create(NULL, &store, NULL), WEIR_OK);
	cr_assert_eq(weir_critical_section_find_or_create(store, NULL, "same", NULL, &one, NULL), WEIR_OK);
	cr_assert_eq(weir_critical_section_find_or_create(store, NULL, "same", NULL, &other, NULL), WEIR_OK);
	expect_refused(&error, nest(weir_resource_object(one), weir_resource_object(other), &error), WEIR_INVALID_ARGUMENT,
	               "critical section \"same\"");
	weir_store_destroy(store, NULL);
	weir_resource_release(one);
	weir_resource_release(other);
	cr_assert_eq(weir_reclaim_flush(weir_deadline_in(KIT_PATIENCE_NS)), WEIR_OK);
}

/*
 * Values from outside are ready before the body begins: a feed, a constant, and a value that
 * depends on an earlier execution in the same section.
 */
struct capture {
	weir_graph *graph;
	weir_session *session;
	weir_output x, results[3];
};

enum { RUNS = 250, RUNNERS = 4 };

static void *run_captures(void *context)
{
	struct capture *capture = context;
	weir_tensor *one = kit_f32(1);
	struct weir_feed feed = {capture->x, one};

	for (int i = 0; i < RUNS; i++) {
		weir_tensor *results[3];
		weir_error error;

		cr_assert_eq(weir_session_run(capture->session, &feed, 1, capture->results, 3, results, NULL, 0,
		                              WEIR_NO_DEADLINE, NULL, &error),
		             WEIR_OK, "%s", error.message);
		for (int k = 0; k < 3; k++)
			weir_tensor_release(results[k]);
	}
	weir_tensor_release(one);
	return NULL;
}

Test(op_section, what_comes_from_outside_is_there_before)
{
	weir_critical_section *section = a_section("cs");
	struct capture capture = {.graph = kit_graph()};
	weir_var *var = kit_var("v", kit_f32(0));
	pthread_t threads[RUNNERS];
	weir_output computed;

	capture.session = kit_session(capture.graph, 1);
	capture.x = kit_placeholder(capture.graph, "x", WEIR_F32, kit_shape(0));
	capture.results[0] = read_then_add(capture.graph, section, var, capture.x);
	capture.results[1] = read_then_add(capture.graph, section, var, kit_constant(capture.graph, kit_f32(1)));
	/*
	 * The sum depends on the result of the first execution, which is ready once that execution has
	 * left.
	 */
	cr_assert_eq(weir_op_sub(capture.graph, NULL, capture.results[0], capture.results[0], &computed, NULL), WEIR_OK);
	cr_assert_eq(weir_op_add(capture.graph, NULL, computed, capture.x, &computed, NULL), WEIR_OK);
	capture.results[2] = read_then_add(capture.graph, section, var, computed);
	for (int i = 0; i < RUNNERS; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, run_captures, &capture), 0);
	for (int i = 0; i < RUNNERS; i++)
		cr_assert_eq(pthread_join(threads[i], NULL), 0);
	cr_expect_eq(kit_var_f32(var, 0), (float)(3 * RUNS * RUNNERS));
	kit_end(capture.session, capture.graph);
	weir_var_destroy(var, NULL);
	end_section(section);
}

static enum weir_status use_in(weir_graph *graph, weir_critical_section *section, uint32_t flags, weir_var *var,
                               weir_error *error)
{
	weir_output read;

	cr_assert_eq(weir_op_read(graph, NULL, var, &read, NULL), WEIR_OK);
	return weir_op_critical_section(graph, NULL, section, flags, &read.node, 1, NULL, 0, NULL, NULL, error);
}

Test(op_section, CRS_010_one_resource_in_two_sections)
{
	weir_critical_section *one = a_section("one"), *other = a_section("other");
	weir_graph *graph = kit_graph();
	weir_var *mine = kit_var("mine", kit_f32(0)), *shared = kit_var("shared", kit_f32(0));
	weir_tensor_queue *queue = kit_queue("q", 3, WEIR_F32, NULL);
	weir_output taken;
	weir_error error;

	/*
	 * The section has the resource exclusively. It may use it again. Another section may not,
	 * shared or not.
	 */
	cr_expect_eq(use_in(graph, one, 0, mine, NULL), WEIR_OK);
	cr_expect_eq(use_in(graph, one, 0, mine, NULL), WEIR_OK);
	expect_refused(&error, use_in(graph, other, 0, mine, &error), WEIR_INVALID_ARGUMENT, "\"mine\"");
	expect_refused(&error, use_in(graph, other, WEIR_SECTION_SHARES_RESOURCES, mine, &error), WEIR_INVALID_ARGUMENT,
	               "critical section \"one\"");
	/* The resource is shared. Then no section can have it exclusively. */
	cr_expect_eq(use_in(graph, one, WEIR_SECTION_SHARES_RESOURCES, shared, NULL), WEIR_OK);
	cr_expect_eq(use_in(graph, other, WEIR_SECTION_SHARES_RESOURCES, shared, NULL), WEIR_OK);
	expect_refused(&error, use_in(graph, other, 0, shared, &error), WEIR_INVALID_ARGUMENT, "\"shared\"");
	/* The resource is a queue. */
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(weir_op_dequeue(graph, NULL, queue, &taken, 1, NULL, NULL), WEIR_OK);
		cr_expect_eq(
			weir_op_critical_section(graph, NULL, i == 0 ? one : other, 0, &taken.node, 1, NULL, 0, NULL, NULL, &error),
			i == 0 ? WEIR_OK : WEIR_INVALID_ARGUMENT);
	}
	cr_expect_not_null(strstr(error.message, "queue \"q\""), "%s", error.message);
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
	kit_queue_end(queue);
	weir_var_destroy(mine, NULL);
	weir_var_destroy(shared, NULL);
	end_section(one);
	end_section(other);
}

/* -- building ---------------------------------------------------------------------------------- */

Test(op_section, what_cannot_be_is_refused)
{
	weir_critical_section *section = a_section("cs");
	weir_graph *graph = kit_graph(), *other = kit_graph();
	weir_session *session = kit_session(graph, 0);
	weir_output x = kit_placeholder(graph, "x", WEIR_F32, kit_shape(0));
	weir_output one = kit_constant(graph, kit_f32(1)), a, b, c, out, foreign = kit_constant(other, kit_f32(1));
	weir_node *body[2], *null = NULL, *node = NULL;
	weir_error error;

	cr_assert_eq(weir_op_add(graph, "a", one, one, &a, NULL), WEIR_OK);
	cr_assert_eq(weir_op_add(graph, "b", a, one, &b, NULL), WEIR_OK);
	cr_assert_eq(weir_op_add(graph, "c", b, one, &c, NULL), WEIR_OK);
	body[0] = a.node;
	body[1] = c.node;
	cr_expect_eq(weir_op_critical_section(NULL, NULL, section, 0, body, 2, NULL, 0, NULL, NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_critical_section(graph, NULL, NULL, 0, body, 2, NULL, 0, NULL, NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	expect_refused(&error, weir_op_critical_section(graph, NULL, section, 2, body, 2, NULL, 0, NULL, NULL, &error),
	               WEIR_INVALID_ARGUMENT, "flags");
	expect_refused(&error, weir_op_critical_section(graph, NULL, section, 0, NULL, 0, NULL, 0, NULL, NULL, &error),
	               WEIR_INVALID_ARGUMENT, "no nodes");
	cr_expect_eq(weir_op_critical_section(graph, NULL, section, 0, &null, 1, NULL, 0, NULL, NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_critical_section(graph, NULL, section, 0, &foreign.node, 1, NULL, 0, NULL, NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	expect_refused(&error, weir_op_critical_section(graph, NULL, section, 0, &x.node, 1, NULL, 0, NULL, NULL, &error),
	               WEIR_INVALID_ARGUMENT, "placeholder");
	/* b is outside the section. It runs after a and before c. */
	expect_refused(&error, weir_op_critical_section(graph, NULL, section, 0, body, 2, NULL, 0, NULL, NULL, &error),
	               WEIR_INVALID_ARGUMENT, "\"a\"");
	expect_refused(&error, weir_op_critical_section(graph, NULL, section, 0, body, 1, &b, 1, &out, NULL, &error),
	               WEIR_INVALID_ARGUMENT, "result 0");
	cr_expect_eq(weir_op_critical_section(graph, "a", section, 0, body, 1, NULL, 0, NULL, NULL, &error),
	             WEIR_ALREADY_EXISTS);
	/*
	 * None of these builds has tied a node. Node a may still join a section, and then a control
	 * edge to it from outside is refused.
	 */
	cr_expect_eq(weir_op_critical_section(graph, "good", section, 0, body, 1, &a, 1, &out, &node, &error), WEIR_OK,
	             "%s", error.message);
	cr_expect_eq(node, out.node);
	cr_expect_str_eq(weir_node_name(node), "good");
	cr_expect_str_eq(weir_node_op(node), "critical_section");
	expect_refused(&error, weir_graph_add_control(graph, one.node, a.node, &error), WEIR_INVALID_ARGUMENT,
	               "critical section \"cs\"");
	cr_expect_eq(kit_fetch_f32(session, out), 2.0f);
	kit_end(session, graph);
	cr_assert_eq(weir_graph_destroy(other, NULL), WEIR_OK);
	end_section(section);
}

Test(op_section, a_node_that_has_run_is_refused)
{
	weir_critical_section *section = a_section("cs");
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	weir_var *var = kit_var("v", kit_f32(3));
	weir_output read;
	weir_error error;

	cr_assert_eq(weir_op_read(graph, NULL, var, &read, NULL), WEIR_OK);
	cr_expect_eq(kit_fetch_f32(session, read), 3.0f);
	expect_refused(&error,
	               weir_op_critical_section(graph, NULL, section, 0, &read.node, 1, NULL, 0, NULL, NULL, &error),
	               WEIR_FAILED_PRECONDITION, "part of a run");
	kit_end(session, graph);
	weir_var_destroy(var, NULL);
	end_section(section);
}

Test(op_section, who_needs_one_node_of_a_body_runs_and_leaves_it_all)
{
	weir_critical_section *section = a_section("cs");
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	weir_var *var = kit_var("v", kit_f32(3));
	weir_output read, added, two = kit_constant(graph, kit_f32(2)), right;
	weir_node *body[2], *entrance;
	weir_tensor *one = kit_f32(1), *result;
	struct weir_feed feed;
	weir_error error;

	cr_assert_eq(weir_op_read(graph, NULL, var, &read, NULL), WEIR_OK);
	cr_assert_eq(weir_op_assign_add(graph, NULL, var, two, &added, NULL), WEIR_OK);
	cr_assert_eq(weir_graph_add_control(graph, read.node, added.node, NULL), WEIR_OK);
	body[0] = read.node;
	body[1] = added.node;
	(void)guarded(graph, "both", section, body, 2, read);
	cr_expect_eq(kit_fetch_f32(session, read), 3.0f);
	cr_expect_eq(kit_fetch_f32(session, read), 5.0f);
	/* A run of the entrance alone runs the whole body, and a feed cannot replace the entrance. */
	cr_assert_eq(weir_graph_find(graph, "both/enter", &entrance, NULL), WEIR_OK);
	cr_expect_eq(kit_run_target(session, entrance, &error), WEIR_OK, "%s", error.message);
	cr_expect_eq(kit_var_f32(var, 0), 9.0f);
	cr_assert_eq(weir_node_output(entrance, 0, &right, NULL), WEIR_OK);
	feed = (struct weir_feed){right, one};
	cr_expect_eq(weir_session_run(session, &feed, 1, &read, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	weir_tensor_release(one);
	kit_end(session, graph);
	weir_var_destroy(var, NULL);
	end_section(section);
}

/* -- waiting ----------------------------------------------------------------------------------- */

struct holding {
	weir_critical_section *section;
	_Atomic(int) inside, let_go;
	pthread_t thread;
};

static int is_set(void *context)
{
	return weiri_load_acquire((_Atomic(int) *)context);
}

static enum weir_status hold(void *context, weir_error *error)
{
	struct holding *holding = context;

	(void)error;
	weiri_store_release(&holding->inside, 1);
	kit_wait_for(is_set, &holding->let_go, "the holder to be let go");
	return WEIR_OK;
}

static void *run_holding(void *context)
{
	struct holding *holding = context;

	cr_assert_eq(weir_critical_section_execute(holding->section, hold, holding, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	return NULL;
}

static void begin_holding(struct holding *holding, weir_critical_section *section)
{
	holding->section = section;
	weiri_store_release(&holding->inside, 0);
	weiri_store_release(&holding->let_go, 0);
	cr_assert_eq(pthread_create(&holding->thread, NULL, run_holding, holding), 0);
	kit_wait_for(is_set, &holding->inside, "the holder to be inside");
}

static void end_holding(struct holding *holding)
{
	weiri_store_release(&holding->let_go, 1);
	cr_assert_eq(pthread_join(holding->thread, NULL), 0);
}

Test(op_section, a_step_that_waits_ends_by_its_deadline_and_holds_no_thread)
{
	for (size_t threads = 0; threads <= 1; threads++) {
		struct kit_bounds options = {WEIR_NO_DEADLINE, NULL};
		weir_critical_section *section = a_section("cs");
		weir_graph *graph = kit_graph();
		weir_session *session = kit_session(graph, threads);
		weir_var *var = kit_var("v", kit_f32(0));
		weir_output one = kit_constant(graph, kit_f32(1)), out = read_then_add(graph, section, var, one), sum;
		struct holding holding;
		weir_tensor *result;
		weir_error error = {WEIR_OK, ""};

		cr_assert_eq(weir_op_add(graph, NULL, one, one, &sum, NULL), WEIR_OK);
		begin_holding(&holding, section);
		/* On a busy machine a short deadline may pass before the node begins. */
		for (uint64_t length_ns = 20000000; strstr(error.message, "had waited") == NULL; length_ns *= 2) {
			cr_assert(length_ns < KIT_PATIENCE_NS, "%s", error.message);
			options.deadline_ns = weir_deadline_in(length_ns);
			cr_assert_eq(weir_session_run(session, NULL, 0, &out, 1, &result, NULL, 0, options.deadline_ns,
			                              options.cancel, &error),
			             WEIR_DEADLINE_EXCEEDED);
		}
		cr_expect_not_null(strstr(error.message, "of critical section \"cs\" had waited"), "%s", error.message);
		cr_expect_eq(kit_fetch_f32(session, sum), 2.0f);
		end_holding(&holding);
		cr_expect_eq(kit_fetch_f32(session, out), 0.0f);
		cr_expect_eq(kit_var_f32(var, 0), 1.0f);
		kit_end(session, graph);
		weir_var_destroy(var, NULL);
		end_section(section);
	}
}

Test(op_section, no_node_of_a_body_runs_outside_of_it)
{
	struct kit_bounds options = {WEIR_NO_DEADLINE, NULL};
	weir_critical_section *section = a_section("cs");
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 1);
	weir_var *vars[3] = {kit_var("a", kit_f32(0)), kit_var("b", kit_f32(0)), kit_var("c", kit_f32(0))};
	weir_output added[3], one = kit_constant(graph, kit_f32(1));
	weir_node *body[3], *whole;
	struct holding holding;
	weir_error error;

	/* These are independent of each other. */
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(weir_op_assign_add(graph, NULL, vars[i], one, &added[i], NULL), WEIR_OK);
		body[i] = added[i].node;
	}
	cr_assert_eq(weir_op_critical_section(graph, NULL, section, 0, body, 3, NULL, 0, NULL, &whole, NULL), WEIR_OK);
	begin_holding(&holding, section);
	options.deadline_ns = weir_deadline_in(20000000);
	cr_expect_eq(weir_session_run(session, NULL, 0, added, 3, (weir_tensor *[3]){NULL}, &whole, 1, options.deadline_ns,
	                              options.cancel, &error),
	             WEIR_DEADLINE_EXCEEDED);
	for (int i = 0; i < 3; i++)
		cr_expect_eq(kit_var_f32(vars[i], 0), 0.0f);
	end_holding(&holding);
	cr_expect_eq(kit_run_target(session, whole, &error), WEIR_OK, "%s", error.message);
	for (int i = 0; i < 3; i++)
		cr_expect_eq(kit_var_f32(vars[i], 0), 1.0f);
	kit_end(session, graph);
	for (int i = 0; i < 3; i++)
		weir_var_destroy(vars[i], NULL);
	end_section(section);
}

/*
 * The token fires while the body is under way. The rest of the body is skipped, and the section is
 * left.
 */
static enum weir_status fire(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	(void)call, (void)error;
	(void)weir_cancel_fire(context, NULL);
	return WEIR_OK;
}

Test(op_section, a_step_that_is_cancelled_inside_leaves)
{
	for (size_t threads = 0; threads <= 2; threads++) {
		struct kit_bounds options = {WEIR_NO_DEADLINE, NULL};
		weir_critical_section *section = a_section("cs");
		weir_graph *graph = kit_graph();
		weir_session *session = kit_session(graph, threads);
		weir_var *var = kit_var("v", kit_f32(0));
		weir_output added;
		weir_node *body[2], *whole;
		weir_error error;

		cr_assert_eq(weir_cancel_create(NULL, &options.cancel, NULL), WEIR_OK);
		cr_assert_eq(weir_op_kernel(graph, NULL, KIT_KERNEL(fire), options.cancel, NULL, 0, NULL, 0, NULL, 0, NULL,
		                            &body[0], NULL),
		             WEIR_OK);
		cr_assert_eq(weir_op_assign_add(graph, NULL, var, kit_constant(graph, kit_f32(1)), &added, NULL), WEIR_OK);
		cr_assert_eq(weir_graph_add_control(graph, body[0], added.node, NULL), WEIR_OK);
		body[1] = added.node;
		cr_assert_eq(weir_op_critical_section(graph, NULL, section, 0, body, 2, NULL, 0, NULL, &whole, NULL), WEIR_OK);
		cr_expect_eq(
			weir_session_run(session, NULL, 0, NULL, 0, NULL, &whole, 1, options.deadline_ns, options.cancel, &error),
			WEIR_CANCELLED);
		cr_expect_eq(kit_var_f32(var, 0), 0.0f);
		kit_end(session, graph);
		weir_cancel_release(options.cancel);
		weir_var_destroy(var, NULL);
		end_section(section);
	}
}

static enum weir_status nothing(void *context, weir_error *error)
{
	(void)context, (void)error;
	return WEIR_OK;
}

static enum weir_status execute_the_same(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	(void)call;
	return weir_critical_section_execute(context, nothing, NULL, WEIR_NO_DEADLINE, NULL, error);
}

Test(op_section, a_kernel_inside_is_refused_to_wait_for_itself)
{
	weir_critical_section *section = a_section("cs");
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 1);
	weir_node *kernel, *alone, *whole;
	weir_error error;

	cr_assert_eq(weir_op_kernel(graph, NULL, KIT_KERNEL(execute_the_same), section, NULL, 0, NULL, 0, NULL, 0, NULL,
	                            &kernel, NULL),
	             WEIR_OK);
	cr_assert_eq(weir_op_kernel(graph, NULL, KIT_KERNEL(execute_the_same), section, NULL, 0, NULL, 0, NULL, 0, NULL,
	                            &alone, NULL),
	             WEIR_OK);
	cr_assert_eq(weir_op_critical_section(graph, NULL, section, 0, &kernel, 1, NULL, 0, NULL, &whole, NULL), WEIR_OK);
	expect_refused(&error, kit_run_target(session, whole, &error), WEIR_FAILED_PRECONDITION, "\"cs\"");
	cr_expect_eq(kit_run_target(session, alone, &error), WEIR_OK, "%s", error.message);
	kit_end(session, graph);
	end_section(section);
}

Test(op_section, a_node_that_gets_more_edges_stays_in_its_section)
{
	weir_critical_section *section = a_section("cs");
	weir_graph *graph = kit_graph();
	weir_node *body[2], *outside;
	weir_error error;

	for (int i = 0; i < 2; i++)
		cr_assert_eq(weir_op_no_op(graph, NULL, &body[i], NULL), WEIR_OK);
	cr_assert_eq(weir_op_no_op(graph, NULL, &outside, NULL), WEIR_OK);
	cr_assert_eq(weir_op_critical_section(graph, "whole", section, 0, body, 2, NULL, 0, NULL, NULL, &error), WEIR_OK);
	cr_expect_eq(weir_graph_add_control(graph, body[0], body[1], &error), WEIR_OK, "%s", error.message);
	expect_refused(&error, weir_graph_add_control(graph, outside, body[1], &error), WEIR_INVALID_ARGUMENT,
	               "critical section \"cs\"");
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
	end_section(section);
}

/*
 * Otherwise a section could wait for another one while one of its executions is inside, or contain
 * nodes for which its exit does not wait.
 */
Test(op_section, nothing_else_hangs_on_an_entrance)
{
	weir_critical_section *first = a_section("first"), *second = a_section("second");
	weir_var *var = kit_var("v", kit_f32(1)), *var_of_two = kit_var("w", kit_f32(1));
	weir_graph *graph = kit_graph();
	weir_output a, b, other;
	weir_node *enter, *enter_other;
	weir_error error;

	cr_assert_eq(weir_op_read(graph, "a", var, &a, NULL), WEIR_OK);
	cr_assert_eq(weir_op_read(graph, "b", var_of_two, &b, NULL), WEIR_OK);
	cr_assert_eq(weir_op_read(graph, "other", var, &other, NULL), WEIR_OK);
	(void)guarded(graph, "one", first, &a.node, 1, a);
	(void)guarded(graph, "two", second, &b.node, 1, b);
	cr_assert_eq(weir_graph_find(graph, "one/enter", &enter, NULL), WEIR_OK);
	cr_assert_eq(weir_graph_find(graph, "two/enter", &enter_other, NULL), WEIR_OK);
	expect_refused(&error, weir_graph_add_control(graph, enter, other.node, &error), WEIR_INVALID_ARGUMENT,
	               "\"other\" is not part");
	expect_refused(&error, weir_graph_add_control(graph, enter, enter_other, &error), WEIR_INVALID_ARGUMENT,
	               "\"two/enter\" is not part");
	cr_expect_eq(weir_graph_add_control(graph, enter, a.node, &error), WEIR_OK, "is there already");
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
	weir_var_destroy(var, NULL);
	weir_var_destroy(var_of_two, NULL);
	end_section(first);
	end_section(second);
}

/* Counts the calls, and notes the number of each call under its name. */
struct note {
	int *calls;
	int number;
};

static enum weir_status note_number(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	struct note *note = context;

	(void)call, (void)error;
	note->number = ++*note->calls;
	return WEIR_OK;
}

static weir_node *noting(weir_graph *graph, const char *name, struct note *note)
{
	weir_node *node = NULL;

	cr_assert_eq(
		weir_op_kernel(graph, name, KIT_KERNEL(note_number), note, NULL, 0, NULL, 0, NULL, 0, NULL, &node, NULL),
		WEIR_OK);
	return node;
}

/*
 * The outside node is built once before and once after the section, because without an edge either
 * could run first.
 */
Test(op_section, an_edge_to_the_node_of_a_section_is_kept_before_it_is_entered)
{
	for (int late = 0; late <= 1; late++) {
		weir_critical_section *section = a_section("cs");
		weir_graph *graph = kit_graph();
		weir_session *session = kit_session(graph, 0);
		int calls = 0;
		struct note notes[4] = {{&calls, 0}, {&calls, 0}, {&calls, 0}, {&calls, 0}};
		weir_node *early = late ? NULL : noting(graph, "early", &notes[0]), *body[2], *after, *whole, *entrance;
		weir_error error;

		body[0] = noting(graph, "in", &notes[1]);
		body[1] = noting(graph, "in too", &notes[2]);
		cr_assert_eq(weir_op_critical_section(graph, "whole", section, 0, body, 2, NULL, 0, NULL, &whole, &error),
		             WEIR_OK);
		if (late)
			early = noting(graph, "early", &notes[0]);
		after = noting(graph, "after", &notes[3]);
		cr_assert_eq(weir_graph_add_control(graph, early, whole, &error), WEIR_OK, "%s", error.message);
		cr_assert_eq(weir_graph_add_control(graph, early, whole, &error), WEIR_OK, "%s", error.message);
		cr_assert_eq(weir_graph_add_control(graph, whole, after, &error), WEIR_OK, "%s", error.message);
		cr_expect_eq(weir_graph_add_control(graph, body[0], whole, &error), WEIR_OK, "is there already");
		cr_assert_eq(weir_graph_find(graph, "whole/enter", &entrance, NULL), WEIR_OK);
		cr_expect_eq(weir_graph_add_control(graph, entrance, whole, &error), WEIR_OK, "is there already");
		cr_expect_eq(kit_run_target(session, after, &error), WEIR_OK, "%s", error.message);
		cr_expect_eq(notes[0].number, 1);
		cr_expect_eq(notes[1].number + notes[2].number, 5);
		cr_expect_eq(notes[3].number, 4);
		expect_refused(&error, weir_graph_add_control(graph, noting(graph, NULL, &notes[0]), whole, &error),
		               WEIR_FAILED_PRECONDITION, "has already been part of a run");
		kit_end(session, graph);
		end_section(section);
	}
}

Test(op_section, an_edge_to_the_node_of_a_section_closes_no_cycle)
{
	weir_critical_section *first = a_section("first"), *second = a_section("second");
	weir_graph *graph = kit_graph();
	int calls = 0;
	struct note note = {&calls, 0};
	weir_node *one = noting(graph, "one", &note), *two = noting(graph, "two", &note), *whole, *other, *after;
	weir_error error;

	cr_assert_eq(weir_op_critical_section(graph, "whole", first, 0, &one, 1, NULL, 0, NULL, &whole, NULL), WEIR_OK);
	cr_assert_eq(weir_op_critical_section(graph, "other", second, 0, &two, 1, NULL, 0, NULL, &other, NULL), WEIR_OK);
	after = noting(graph, "after", &note);
	cr_assert_eq(weir_graph_add_control(graph, one, after, &error), WEIR_OK, "%s", error.message);
	expect_refused(&error, weir_graph_add_control(graph, after, whole, &error), WEIR_INVALID_ARGUMENT, "cycle");
	expect_refused(&error, weir_graph_add_control(graph, whole, whole, &error), WEIR_INVALID_ARGUMENT, "cycle");
	expect_refused(&error, weir_graph_add_control(graph, after, two, &error), WEIR_INVALID_ARGUMENT,
	               "end the edge at the section's own node");
	cr_expect_eq(weir_graph_add_control(graph, one, other, &error), WEIR_OK, "%s", error.message);
	expect_refused(&error, weir_graph_add_control(graph, other, whole, &error), WEIR_INVALID_ARGUMENT, "cycle");
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
	end_section(first);
	end_section(second);
}

/* -- allocations that fail --------------------------------------------------------------------- */

struct scarce {
	weir_critical_section *section;
	weir_var *var;
	int tied; /* the number of nodes that failed builds tied */
};

/* Builds an execution and runs it. Whichever allocation fails, the section is left. */
static enum weir_status build_and_run(const weir_allocator *allocator, void *context)
{
	struct weir_graph_options graph_options = {WEIR_GRAPH_OPTIONS_INIT, .allocator = allocator};
	struct weir_session_options options = {WEIR_SESSION_OPTIONS_INIT, .flags = WEIR_SESSION_NO_THREADS,
	                                       .allocator = allocator};
	struct scarce *scarce = context;
	weir_graph *graph;
	weir_session *session = NULL;
	weir_output read, out;
	weir_tensor *result;
	enum weir_status status = weir_graph_create(&graph_options, &graph, NULL);

	if (status != WEIR_OK)
		return status;
	status = weir_op_read(graph, "read", scarce->var, &read, NULL);
	if (status == WEIR_OK)
		status = weir_op_critical_section(graph, "cs", scarce->section, 0, &read.node, 1, &read, 1, &out, NULL, NULL);
	if (status == WEIR_OK)
		status = weir_session_create(graph, &options, &session, NULL);
	if (status == WEIR_OK)
		status = weir_session_run(session, NULL, 0, &out, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, NULL);
	if (status == WEIR_OK)
		weir_tensor_release(result);
	cr_assert_eq(weir_session_destroy(session, NULL), WEIR_OK);
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
	cr_assert_eq(weir_critical_section_execute(scarce->section, nothing, NULL, 0, NULL, NULL), WEIR_OK);
	return status;
}

Test(op_section, building_and_running_survive_every_allocation_failing)
{
	struct scarce scarce = {a_section("cs"), kit_var("v", kit_f32(1)), 0};

	cr_expect_gt(fail_each_allocation(build_and_run, &scarce), 15);
	weir_var_destroy(scarce.var, NULL);
	end_section(scarce.section);
}

/*
 * A step that must wait for a held section and runs out of memory before or as it begins to wait.
 */
static void enter_without_memory(weir_critical_section *section, size_t fail_at, weir_error *error)
{
	struct failing_allocator memory = {.fail_at = fail_at};
	weir_allocator failing = failing_allocator_hooks(&memory);
	struct late_failure late = {0};
	weir_allocator allocator = late_failure_hooks(&late);
	struct weir_session_options options = {WEIR_SESSION_OPTIONS_INIT, .flags = WEIR_SESSION_NO_THREADS,
	                                       .allocator = &allocator};
	weir_graph *graph = kit_graph();
	weir_output one = kit_constant(graph, kit_f32(1)), out = guarded(graph, "cs", section, &one.node, 1, one);
	weir_session *session = NULL;
	weir_tensor *result;

	cr_assert_eq(weir_session_create(graph, &options, &session, NULL), WEIR_OK);
	late.under_test = &failing;
	cr_assert_eq(weir_session_run(session, NULL, 0, &out, 1, &result, NULL, 0, weir_deadline_in(UINT64_C(20000000000)),
	                              NULL, error),
	             WEIR_RESOURCE_EXHAUSTED, "allocation %zu failing: %s", fail_at, error->message);
	late.under_test = NULL;
	kit_end(session, graph);
	cr_assert_str_eq(failing_allocator_verdict(&memory), "balanced", "allocation %zu failing: %s", fail_at,
	                 failing_allocator_verdict(&memory));
	late_failure_end(&late);
}

/* The last allocation before it waits is for the hook that would end the wait. */
Test(op_section, a_step_that_cannot_wait_for_lack_of_memory_says_that_it_did_not_enter)
{
	weir_critical_section *section = a_section("cs");
	weir_error error = {WEIR_OK, ""};
	struct holding holding;

	begin_holding(&holding, section);
	for (size_t at = 1; strstr(error.message, "critical section \"cs\" was not entered") == NULL; at++)
		enter_without_memory(section, at, &error);
	end_holding(&holding);
	end_section(section);
}

/* The section has no memory for the operation that enters it; the session's memory is given back. */
Test(op_section, a_step_of_a_section_without_memory_fails_and_keeps_nothing)
{
	struct failing_allocator scarce = {.fail_count = SIZE_MAX}, counting = {.fail_at = 0};
	weir_allocator of_section = failing_allocator_hooks(&scarce), of_session = failing_allocator_hooks(&counting);
	struct weir_critical_section_options named = {WEIR_CRITICAL_SECTION_OPTIONS_INIT, .name = "cs",
	                                              .allocator = &of_section};
	struct weir_session_options options = {WEIR_SESSION_OPTIONS_INIT, .flags = WEIR_SESSION_NO_THREADS,
	                                       .allocator = &of_session};
	weir_critical_section *section = NULL;
	weir_graph *graph = kit_graph();
	weir_output one = kit_constant(graph, kit_f32(1)), out;
	weir_session *session = NULL;
	weir_tensor *result = NULL;
	weir_error error;

	cr_assert_eq(weir_critical_section_create(&named, &section, NULL), WEIR_OK);
	out = guarded(graph, "cs", section, &one.node, 1, one);
	cr_assert_eq(weir_session_create(graph, &options, &session, NULL), WEIR_OK);
	scarce.fail_at = scarce.asked + 1;
	cr_expect_eq(weir_session_run(session, NULL, 0, &out, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_RESOURCE_EXHAUSTED);
	cr_expect_not_null(strstr(error.message, "critical section \"cs\""), "%s", error.message);
	scarce.fail_at = 0;
	cr_expect_eq(kit_fetch_f32(session, out), 1);
	kit_end(session, graph);
	end_section(section);
	cr_expect_str_eq(failing_allocator_verdict(&counting), "balanced");
}

/* A body that was tied in part runs inside as a whole, or not at all. */
static enum weir_status build_in_part(const weir_allocator *failing, void *context)
{
	struct late_failure late = {0};
	weir_allocator allocator = late_failure_hooks(&late);
	struct weir_graph_options options = {WEIR_GRAPH_OPTIONS_INIT, .allocator = &allocator};
	struct scarce *scarce = context;
	weir_session *session;
	weir_graph *graph;
	weir_output read[3];
	weir_node *body[3];
	enum weir_status status;

	cr_assert_eq(weir_graph_create(&options, &graph, NULL), WEIR_OK);
	for (size_t i = 0; i < 3; i++) {
		cr_assert_eq(weir_op_read(graph, NULL, scarce->var, &read[i], NULL), WEIR_OK);
		body[i] = read[i].node;
	}
	late.under_test = failing;
	status = weir_op_critical_section(graph, "cs", scarce->section, 0, body, 3, NULL, 0, NULL, NULL, NULL);
	late.under_test = NULL;
	session = kit_session(graph, 0);
	for (size_t i = 0; i < 3; i++) {
		int tied = weiri_section_entrance(body[i]) != NULL;
		weir_error error;

		cr_expect_eq(kit_run_target(session, body[i], &error),
		             tied && status != WEIR_OK ? WEIR_FAILED_PRECONDITION : WEIR_OK, "%s", error.message);
		scarce->tied += tied && status != WEIR_OK;
	}
	kit_end(session, graph);
	late_failure_end(&late);
	return status;
}

Test(op_section, what_was_tied_in_part_does_not_run)
{
	struct scarce scarce = {a_section("cs"), kit_var("v", kit_f32(1)), 0};

	cr_expect_gt(fail_each_allocation(build_in_part, &scarce), 10);
	cr_expect_eq(scarce.tied, 1 + 2, "the last two allocations are edges of the body");
	weir_var_destroy(scarce.var, NULL);
	end_section(scarce.section);
}
