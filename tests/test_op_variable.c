/*
 * test_op_variable.c - variables as nodes: reads, updates, snapshots, commits.
 */
#include <pthread.h>

#include <weir/reclaim.h>

#include "failing_allocator.h"
#include "graph_kit.h"

static weir_output version_of(weir_output value)
{
	weir_output version;

	cr_assert_eq(weir_node_output(value.node, 1, &version, NULL), WEIR_OK);
	return version;
}

Test(op_variable, read_gives_value_and_version)
{
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	weir_var *var = kit_var("v", kit_f32(5));
	weir_output read;

	cr_assert_eq(weir_op_read(graph, "read", var, &read, NULL), WEIR_OK);
	cr_expect_eq(kit_fetch_f32(session, read), 5.0f);
	cr_expect_eq(kit_fetch_i64(session, version_of(read)), 1);
	kit_end(session, graph);
	weir_var_destroy(var, NULL);
}

Test(op_variable, updates_give_the_value_they_published)
{
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	weir_var *var = kit_var("v", kit_f32(5));
	weir_output three = kit_constant(graph, kit_f32(3));
	weir_output add, sub, assign;

	cr_assert_eq(weir_op_assign_add(graph, NULL, var, three, &add, NULL), WEIR_OK);
	cr_assert_eq(weir_op_assign_sub(graph, NULL, var, three, &sub, NULL), WEIR_OK);
	cr_assert_eq(weir_op_assign(graph, NULL, var, three, &assign, NULL), WEIR_OK);
	cr_expect_eq(kit_fetch_f32(session, add), 8.0f);
	cr_expect_eq(kit_fetch_f32(session, add), 11.0f);
	cr_expect_eq(kit_fetch_f32(session, sub), 8.0f);
	cr_expect_eq(kit_fetch_f32(session, assign), 3.0f);
	cr_expect_eq(kit_fetch_i64(session, version_of(assign)), 6);
	cr_expect_eq(kit_fetch_i64(session, version_of(add)), 7);
	cr_expect_eq(kit_var_f32(var, 0), 6.0f);
	kit_end(session, graph);
	weir_var_destroy(var, NULL);
}

/* No node keeps a version that it published, or read, or its value, beyond its step. */
Test(op_variable, all_versions_are_freed_after_the_variable)
{
	struct failing_allocator memory = {.fail_at = 0};
	weir_allocator allocator = failing_allocator_hooks(&memory);
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .name = "v", .dtype = WEIR_F32, .allocator = &allocator};
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	weir_tensor *first = kit_f32(5);
	const float number = 3;
	weir_output three, assigned, added, read;
	weir_tensor *tensor;
	weir_var *var = NULL;

	cr_assert_eq(weir_var_create(first, &options, &var, NULL), WEIR_OK);
	weir_tensor_release(first);
	cr_assert_eq(weir_tensor_copy_of(WEIR_F32, &(weir_shape){.rank = 0}, &number, &allocator, &tensor), WEIR_OK);
	three = kit_constant(graph, tensor);
	cr_assert_eq(weir_op_assign(graph, NULL, var, three, &assigned, NULL), WEIR_OK);
	cr_assert_eq(weir_op_assign_add(graph, NULL, var, three, &added, NULL), WEIR_OK);
	cr_assert_eq(weir_op_read(graph, NULL, var, &read, NULL), WEIR_OK);
	cr_expect_eq(kit_fetch_f32(session, assigned), 3.0f);
	cr_expect_eq(kit_fetch_f32(session, added), 6.0f);
	cr_expect_eq(kit_fetch_f32(session, read), 6.0f);
	kit_end(session, graph);
	cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
	cr_expect_eq(weir_reclaim_flush(weir_deadline_in(UINT64_C(5000000000))), WEIR_OK);
	cr_expect_str_eq(failing_allocator_verdict(&memory), "balanced", "%s", failing_allocator_verdict(&memory));
}

Test(op_variable, reading_one_that_has_no_value_names_it)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .name = "empty", .dtype = WEIR_F32};
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	weir_var *var = NULL;
	weir_output read;
	weir_error error;

	cr_assert_eq(weir_var_create(NULL, &options, &var, NULL), WEIR_OK);
	cr_assert_eq(weir_op_read(graph, "r", var, &read, NULL), WEIR_OK);
	cr_expect_eq(kit_run_target(session, read.node, &error), WEIR_FAILED_PRECONDITION);
	cr_expect_not_null(strstr(error.message, "read \"r\": variable \"empty\""), "%s", error.message);
	kit_end(session, graph);
	weir_var_destroy(var, NULL);
}

Test(op_variable, a_value_that_cannot_fit_is_refused_when_built)
{
	weir_graph *graph = kit_graph();
	weir_var *var = kit_var("v", kit_f32(5));
	weir_output vector = kit_placeholder(graph, "vector", WEIR_F32, kit_shape(1, 2));
	weir_output integer = kit_constant(graph, kit_i64(1));
	weir_output nothing = {NULL, 0};
	weir_output out;
	weir_error error;

	cr_expect_eq(weir_op_assign(graph, "a", var, vector, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "assign \"a\": variable \"v\" expects f32 [], got f32 [2]"), "%s",
	                   error.message);
	cr_expect_eq(weir_op_assign_add(graph, NULL, var, integer, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_assign_sub(graph, NULL, var, nothing, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_assign(graph, NULL, NULL, vector, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_assign(NULL, NULL, var, vector, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_read(graph, NULL, NULL, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_read(graph, NULL, var, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
	weir_var_destroy(var, NULL);
}

Test(op_variable, a_control_edge_orders_two_updates)
{
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 2);
	weir_var *var = kit_var("v", kit_f32(1));
	weir_output ten = kit_constant(graph, kit_f32(10));
	weir_output one = kit_constant(graph, kit_f32(1));
	weir_output assign, add, read;

	cr_assert_eq(weir_op_read(graph, NULL, var, &read, NULL), WEIR_OK);
	cr_assert_eq(weir_op_assign_add(graph, NULL, var, one, &add, NULL), WEIR_OK);
	cr_assert_eq(weir_op_assign(graph, NULL, var, ten, &assign, NULL), WEIR_OK);
	cr_assert_eq(weir_graph_add_control(graph, assign.node, add.node, NULL), WEIR_OK);
	cr_assert_eq(weir_graph_add_control(graph, add.node, read.node, NULL), WEIR_OK);
	for (int i = 0; i < 100; i++)
		cr_assert_eq(kit_fetch_f32(session, read), 11.0f);
	kit_end(session, graph);
	weir_var_destroy(var, NULL);
}

struct pair {
	weir_graph *graph;
	weir_session *session;
	weir_var *vars[2];
	weir_output snapshot[3];
	weir_output committed;
};

/* A step that adds 1 to both variables as one commit. */
static void open_pair(struct pair *p, size_t threads)
{
	weir_output values[2];
	weir_output one;

	p->graph = kit_graph();
	p->vars[0] = kit_var("a", kit_f32(0));
	p->vars[1] = kit_var("b", kit_f32(0));
	one = kit_constant(p->graph, kit_f32(1));
	cr_assert_eq(weir_op_snapshot(p->graph, "snapshot", p->vars, 2, p->snapshot, NULL), WEIR_OK);
	cr_assert_eq(weir_op_add(p->graph, NULL, p->snapshot[0], one, &values[0], NULL), WEIR_OK);
	cr_assert_eq(weir_op_add(p->graph, NULL, p->snapshot[1], one, &values[1], NULL), WEIR_OK);
	cr_assert_eq(weir_op_commit(p->graph, "commit", p->vars, values, 2, p->snapshot[2], &p->committed, NULL), WEIR_OK);
	p->session = kit_session(p->graph, threads);
}

static void close_pair(struct pair *p)
{
	kit_end(p->session, p->graph);
	weir_var_destroy(p->vars[0], NULL);
	weir_var_destroy(p->vars[1], NULL);
}

Test(op_variable, snapshot_then_commit_publishes_both)
{
	struct pair p;
	weir_tensor *versions;

	open_pair(&p, 1);
	versions = kit_fetch(p.session, p.committed);
	cr_expect_eq(weir_tensor_element_count(versions), 2);
	cr_expect_eq(kit_i64_at(versions, 0), 2);
	cr_expect_eq(kit_i64_at(versions, 1), 2);
	cr_expect_eq(kit_var_f32(p.vars[0], 0), 1.0f);
	cr_expect_eq(kit_var_f32(p.vars[1], 0), 1.0f);
	weir_tensor_release(versions);
	close_pair(&p);
}

Test(op_variable, a_commit_from_old_versions_is_aborted_and_changes_nothing)
{
	struct pair p;
	weir_tensor *old = kit_tensor(WEIR_I64, kit_shape(1, 2), (const int64_t[]){1, 7});
	weir_tensor *short_one = kit_tensor(WEIR_I64, kit_shape(1, 1), (const int64_t[]){1});
	struct weir_feed feed;
	weir_node *target;
	weir_error error;

	open_pair(&p, 1);
	target = p.committed.node;
	feed = (struct weir_feed){p.snapshot[2], old};
	cr_expect_eq(weir_session_run(p.session, &feed, 1, NULL, 0, NULL, &target, 1, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_ABORTED);
	cr_expect_not_null(strstr(error.message, "commit \"commit\""), "%s", error.message);
	cr_expect_eq(kit_var_f32(p.vars[0], 0), 0.0f);
	cr_expect_eq(kit_var_f32(p.vars[1], 0), 0.0f);
	feed.value = short_one;
	cr_expect_eq(weir_session_run(p.session, &feed, 1, NULL, 0, NULL, &target, 1, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	weir_tensor_release(old);
	weir_tensor_release(short_one);
	close_pair(&p);
}

enum { TRAINERS = 4, STEPS = 300 };

struct trainer {
	struct pair *pair;
	int aborted;
	enum weir_status failure;
};

static void *train(void *context)
{
	struct trainer *trainer = context;
	weir_node *target = trainer->pair->committed.node;

	for (int done = 0; done < STEPS;) {
		enum weir_status status =
			weir_session_run(trainer->pair->session, NULL, 0, NULL, 0, NULL, &target, 1, WEIR_NO_DEADLINE, NULL, NULL);

		if (status == WEIR_OK)
			done++;
		else if (status == WEIR_ABORTED)
			trainer->aborted++;
		else {
			trainer->failure = status;
			break;
		}
	}
	return NULL;
}

Test(op_variable, retried_commits_lose_no_update_and_snapshots_are_never_torn)
{
	struct trainer trainers[TRAINERS];
	pthread_t threads[TRAINERS];
	struct pair p;
	int torn = 0;

	open_pair(&p, 2);
	for (int i = 0; i < TRAINERS; i++) {
		trainers[i] = (struct trainer){&p, 0, WEIR_OK};
		cr_assert_eq(pthread_create(&threads[i], NULL, train, &trainers[i]), 0);
	}
	for (int i = 0; i < STEPS; i++) {
		weir_tensor *values[2];

		cr_assert_eq(weir_session_run(p.session, NULL, 0, p.snapshot, 2, values, NULL, 0, WEIR_NO_DEADLINE, NULL, NULL),
		             WEIR_OK);
		torn += kit_f32_at(values[0], 0) != kit_f32_at(values[1], 0);
		weir_tensor_release(values[0]);
		weir_tensor_release(values[1]);
	}
	for (int i = 0; i < TRAINERS; i++) {
		cr_assert_eq(pthread_join(threads[i], NULL), 0);
		cr_expect_eq(trainers[i].failure, WEIR_OK);
	}
	cr_expect_eq(torn, 0);
	cr_expect_eq(kit_var_f32(p.vars[0], 0), (float)(TRAINERS * STEPS));
	cr_expect_eq(kit_var_f32(p.vars[1], 0), (float)(TRAINERS * STEPS));
	close_pair(&p);
}

Test(op_variable, snapshot_and_commit_refuse_bad_arguments)
{
	weir_graph *graph = kit_graph();
	weir_var *a = kit_var("a", kit_f32(0));
	weir_var *b = kit_var("b", kit_f32(0));
	weir_var *both[2] = {a, b};
	weir_var *twice[2] = {a, a};
	weir_var *missing[2] = {a, NULL};
	weir_output x = kit_placeholder(graph, "x", WEIR_F32, kit_shape(0));
	weir_output i = kit_placeholder(graph, "i", WEIR_I64, kit_shape(0));
	weir_output versions = kit_placeholder(graph, "versions", WEIR_I64, kit_shape(1, 2));
	weir_output values[2] = {x, x};
	weir_output wrong[2] = {x, i};
	weir_output outs[3];
	weir_error error;

	cr_expect_eq(weir_op_snapshot(graph, NULL, NULL, 2, outs, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_snapshot(graph, NULL, both, 0, outs, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_snapshot(graph, NULL, both, WEIR_COMMIT_MAX_PARTS + 1, outs, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_snapshot(graph, NULL, missing, 2, outs, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_snapshot(graph, NULL, both, 2, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_snapshot(NULL, NULL, both, 2, outs, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_commit(graph, "c", twice, values, 2, versions, outs, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "\"a\" occurs twice"), "%s", error.message);
	cr_expect_eq(weir_op_commit(graph, NULL, both, wrong, 2, versions, outs, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_commit(graph, NULL, both, values, 2, x, outs, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_commit(graph, NULL, both, NULL, 2, versions, outs, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_commit(graph, NULL, both, values, 2, versions, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_commit(graph, NULL, both, values, 0, versions, outs, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_commit(NULL, NULL, both, values, 2, versions, outs, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
	weir_var_destroy(a, NULL);
	weir_var_destroy(b, NULL);
}

Test(op_variable, more_variables_than_fit_on_the_stack_of_a_commit)
{
	enum { MANY = 40 };
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	weir_output one = kit_constant(graph, kit_f32(1));
	weir_output outs[MANY + 1];
	weir_output values[MANY];
	weir_output committed;
	weir_var *vars[MANY];
	weir_tensor *versions;

	for (int i = 0; i < MANY; i++)
		vars[i] = kit_var(NULL, kit_f32((float)i));
	cr_assert_eq(weir_op_snapshot(graph, NULL, vars, MANY, outs, NULL), WEIR_OK);
	for (int i = 0; i < MANY; i++)
		cr_assert_eq(weir_op_add(graph, NULL, outs[i], one, &values[i], NULL), WEIR_OK);
	cr_assert_eq(weir_op_commit(graph, NULL, vars, values, MANY, outs[MANY], &committed, NULL), WEIR_OK);
	versions = kit_fetch(session, committed);
	cr_expect_eq(weir_tensor_element_count(versions), MANY);
	for (int i = 0; i < MANY; i++) {
		cr_expect_eq(kit_i64_at(versions, (size_t)i), 2);
		cr_expect_eq(kit_var_f32(vars[i], 0), (float)i + 1);
	}
	weir_tensor_release(versions);
	kit_end(session, graph);
	for (int i = 0; i < MANY; i++)
		weir_var_destroy(vars[i], NULL);
}

/* -- rows -------------------------------------------------------------------------------------- */

/*
 * A variable f32 [3,2] of 10, 20, ... 60. The indices name rows 2 and 0, with the updates 1, 2 and
 * 3, 4.
 */
struct rows {
	weir_graph *graph;
	weir_session *session;
	weir_var *var;
	weir_output indices, updates;
};

static void begin_rows(struct rows *rows)
{
	float values[] = {10, 20, 30, 40, 50, 60}, updates[] = {1, 2, 3, 4};
	int32_t indices[] = {2, 0};

	rows->graph = kit_graph();
	rows->session = kit_session(rows->graph, 0);
	rows->var = kit_var("v", kit_tensor(WEIR_F32, kit_shape(2, 3, 2), values));
	rows->indices = kit_constant(rows->graph, kit_tensor(WEIR_I32, kit_shape(1, 2), indices));
	rows->updates = kit_constant(rows->graph, kit_tensor(WEIR_F32, kit_shape(2, 2, 2), updates));
}

static void end_rows(struct rows *rows)
{
	kit_end(rows->session, rows->graph);
	weir_var_destroy(rows->var, NULL);
}

static void expect_f32(const weir_tensor *tensor, const float values[], size_t count)
{
	for (size_t i = 0; i < count; i++)
		cr_expect_float_eq(kit_f32_at(tensor, i), values[i], 1e-6, "%zu: %f", i, (double)kit_f32_at(tensor, i));
}

Test(op_variable, scatters_change_rows_and_give_what_they_published)
{
	static const struct {
		enum weir_scatter how;
		const char *op;
		float values[6];
	} cases[] = {
		{WEIR_SCATTER_UPDATE, "scatter_update", {3, 4, 30, 40, 1, 2}},
		{WEIR_SCATTER_ADD, "scatter_add", {13, 24, 30, 40, 51, 62}},
		{WEIR_SCATTER_SUB, "scatter_sub", {7, 16, 30, 40, 49, 58}},
		{WEIR_SCATTER_MUL, "scatter_mul", {30, 80, 30, 40, 50, 120}},
		{WEIR_SCATTER_DIV, "scatter_div", {10.0f / 3, 5, 30, 40, 50, 30}},
		{WEIR_SCATTER_MIN, "scatter_min", {3, 4, 30, 40, 1, 2}},
		{WEIR_SCATTER_MAX, "scatter_max", {10, 20, 30, 40, 50, 60}},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		weir_tensor *published;
		struct rows rows;
		weir_output out;
		weir_error error;

		begin_rows(&rows);
		cr_assert_eq(
			weir_op_scatter(rows.graph, NULL, rows.var, cases[i].how, rows.indices, rows.updates, &out, &error),
			WEIR_OK, "%s", error.message);
		cr_expect_str_eq(weir_node_op(out.node), cases[i].op);
		published = kit_fetch(rows.session, out);
		expect_f32(published, cases[i].values, 6);
		weir_tensor_release(published);
		cr_expect_eq(kit_fetch_i64(rows.session, version_of(out)), 3);
		end_rows(&rows);
	}
}

Test(op_variable, a_scalar_is_scattered_to_each_element)
{
	weir_tensor *published;
	struct rows rows;
	weir_output out;

	begin_rows(&rows);
	cr_assert_eq(weir_op_scatter(rows.graph, NULL, rows.var, WEIR_SCATTER_ADD, rows.indices,
	                             kit_constant(rows.graph, kit_f32(1)), &out, NULL),
	             WEIR_OK);
	published = kit_fetch(rows.session, out);
	expect_f32(published, (float[]){11, 21, 30, 40, 51, 61}, 6);
	weir_tensor_release(published);
	end_rows(&rows);
}

Test(op_variable, gather_gives_the_rows_that_are_named)
{
	int64_t square[] = {1, 0, 2, 2};
	weir_tensor *got;
	struct rows rows;
	weir_output out;
	weir_shape shape;
	enum weir_dtype dtype;

	begin_rows(&rows);
	cr_assert_eq(weir_op_gather(rows.graph, "rows", rows.var,
	                            kit_constant(rows.graph, kit_tensor(WEIR_I64, kit_shape(2, 2, 2), square)), &out, NULL),
	             WEIR_OK);
	cr_assert_eq(weir_output_spec(out, &dtype, &shape, NULL), WEIR_OK);
	cr_expect_eq(dtype, WEIR_F32);
	cr_expect_eq(shape.rank, 3);
	cr_expect_eq(shape.dims[2], 2);
	got = kit_fetch(rows.session, out);
	cr_expect_eq(weir_tensor_shape(got)->rank, 3);
	expect_f32(got, (float[]){30, 40, 10, 20, 50, 60, 50, 60}, 8);
	weir_tensor_release(got);
	end_rows(&rows);
}

Test(op_variable, rows_that_cannot_be_are_refused)
{
	int32_t beyond[] = {0, 3};
	struct rows rows;
	weir_output bad, out;
	weir_var *scalar = kit_var("scalar", kit_f32(1));
	weir_error error;

	begin_rows(&rows);
	/* It is refused when the node is built. */
	cr_expect_eq(
		weir_op_scatter(rows.graph, NULL, rows.var, (enum weir_scatter)8, rows.indices, rows.updates, &out, &error),
		WEIR_INVALID_ARGUMENT);
	cr_expect_eq(
		weir_op_scatter(rows.graph, NULL, rows.var, WEIR_SCATTER_ADD, rows.updates, rows.updates, &out, &error),
		WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "indices"), "%s", error.message);
	cr_expect_eq(
		weir_op_scatter(rows.graph, NULL, rows.var, WEIR_SCATTER_ADD, rows.indices, rows.indices, &out, &error),
		WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "f32 [2,2]"), "%s", error.message);
	cr_expect_eq(weir_op_gather(rows.graph, NULL, scalar, rows.indices, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_gather(rows.graph, NULL, NULL, rows.indices, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_gather(rows.graph, NULL, rows.var, rows.indices, NULL, &error), WEIR_INVALID_ARGUMENT);
	/* It is refused when the node runs, and nothing is published. */
	bad = kit_constant(rows.graph, kit_tensor(WEIR_I32, kit_shape(1, 2), beyond));
	cr_assert_eq(weir_op_scatter(rows.graph, "bad", rows.var, WEIR_SCATTER_ADD, bad, rows.updates, &out, NULL),
	             WEIR_OK);
	cr_expect_eq(kit_run_target(rows.session, out.node, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "is 3, expected one of [0, 3)"), "%s", error.message);
	cr_expect_not_null(strstr(error.message, "scatter_add \"bad\""), "%s", error.message);
	cr_expect_eq(kit_var_f32(rows.var, 0), 10.0f);
	end_rows(&rows);
	weir_var_destroy(scalar, NULL);
}
