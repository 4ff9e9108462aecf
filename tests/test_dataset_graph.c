/*
 * test_dataset_graph.c - nodes that take from an iterator, and maps of datasets by functions.
 */
#include "dataset_kit.h"

#include <pthread.h>
#include <weir/flow/dataset.h>

#include "failing_allocator.h"
#include "graph_kit.h"
#include "run/countdown.h"

/* A graph with a node that takes i64 scalars. */
struct taking {
	weir_dataset *dataset;
	weir_iterator *iterator;
	weir_pool *pool;
	weir_graph *graph;
	weir_session *session;
	weir_output element;
	weir_node *node;
};

static void begin(struct taking *t, weir_dataset *dataset, size_t pool_threads, size_t session_threads)
{
	weir_error error;

	t->dataset = dataset;
	t->pool = data_pool(pool_threads);
	t->iterator = data_iterate(dataset, t->pool);
	t->graph = kit_graph();
	cr_assert_eq(weir_op_next(t->graph, "take", t->iterator, &t->element, 1, &t->node, &error), WEIR_OK, "%s",
	             error.message);
	t->session = kit_session(t->graph, session_threads);
}

static void end(struct taking *t)
{
	kit_end(t->session, t->graph);
	weir_dataset_release(t->dataset);
	cr_assert_eq(weir_iterator_destroy(t->iterator, NULL), WEIR_OK);
	cr_assert_eq(weir_pool_destroy(t->pool, NULL), WEIR_OK);
}

Test(dataset_graph, each_step_takes_one_element_and_the_end_fails_the_step)
{
	for (size_t threads = 0; threads < 3; threads++) {
		struct taking t;
		weir_error error;

		begin(&t, data_prefetch(data_map(data_range(0, 10), data_same, NULL, 2, 0), 2), threads + 1, threads);
		for (int64_t i = 0; i < 10; i++)
			cr_expect_eq(kit_fetch_i64(t.session, t.element), i);
		cr_expect_eq(kit_run_target(t.session, t.node, &error), WEIR_OUT_OF_RANGE);
		cr_expect_str_eq(error.message,
		                 "next \"take\": iterator \"prefetch(2) of map(2) of range\": the end, after 10 elements");
		end(&t);
	}
}

static enum weir_status nothing(void *context, weir_error *error)
{
	(void)context, (void)error;
	return WEIR_OK;
}

/* With a deadline, so that a build without the refusal fails, and does not hang. */
static enum weir_status enter_section(void *section, weir_tensor *const in[], weir_tensor *out[], weir_error *error)
{
	out[0] = weir_tensor_retain(in[0]);
	return weir_critical_section_execute(section, nothing, NULL, weir_deadline_in(10000000), NULL, error);
}

Test(dataset_graph, a_function_that_a_node_in_a_section_runs_is_refused_to_enter_it_again)
{
	struct taking t;
	weir_critical_section *section = NULL;
	weir_node *whole = NULL;
	weir_error error;

	cr_assert_eq(weir_critical_section_create(NULL, &section, NULL), WEIR_OK);
	begin(&t, data_map(data_range(0, 3), enter_section, section, 1, WEIR_DATASET_SHORT), 1, 1);
	cr_expect_eq(kit_fetch_i64(t.session, t.element), 0, "outside of the section");
	kit_end(t.session, t.graph);
	t.graph = kit_graph();
	cr_assert_eq(weir_op_next(t.graph, "take", t.iterator, &t.element, 1, &t.node, NULL), WEIR_OK);
	t.session = kit_session(t.graph, 1);
	cr_assert_eq(weir_op_critical_section(t.graph, NULL, section, 0, &t.node, 1, NULL, 0, NULL, &whole, NULL), WEIR_OK);
	cr_expect_eq(kit_run_target(t.session, whole, &error), WEIR_FAILED_PRECONDITION, "%s", error.message);
	end(&t);
	cr_assert_eq(weir_critical_section_destroy(section, NULL), WEIR_OK);
}

static enum weir_status wait_for_latch(void *context, weir_tensor *const in[], weir_tensor *out[], weir_error *error)
{
	(void)error;
	while (!weiri_latch_is_set(context))
		(void)sched_yield();
	out[0] = weir_tensor_retain(in[0]);
	return WEIR_OK;
}

Test(dataset_graph, a_step_that_is_cancelled_while_it_waits_loses_no_element)
{
	struct weiri_latch let_go;
	struct taking t;
	weir_tensor *result = NULL;
	weir_error error;

	weiri_latch_init(&let_go);
	begin(&t, data_map(data_range(7, 9), wait_for_latch, &let_go, 1, 0), 1, 1);
	cr_expect_eq(
		weir_session_run(t.session, NULL, 0, &t.element, 1, &result, NULL, 0, weir_deadline_in(2000000), NULL, &error),
		WEIR_DEADLINE_EXCEEDED);
	cr_expect(strstr(error.message, "take") != NULL, "%s", error.message);
	weiri_latch_set(&let_go);
	cr_expect_eq(kit_fetch_i64(t.session, t.element), 7);
	cr_expect_eq(kit_fetch_i64(t.session, t.element), 8);
	end(&t);
}

static enum weir_status note_thread(void *context, weir_tensor *const in[], weir_tensor *out[], weir_error *error)
{
	(void)error;
	cr_expect_not(pthread_equal(pthread_self(), *(const pthread_t *)context), "a step with a limit ran it");
	out[0] = weir_tensor_retain(in[0]);
	return WEIR_OK;
}

/* The caller helps, as a worker would. A deadline could not interrupt the function, whose length nobody knows. */
Test(dataset_graph, a_step_with_a_deadline_runs_no_function_of_unknown_length)
{
	pthread_t me = pthread_self();
	struct taking t;

	begin(&t, data_map(data_range(0, 1000), note_thread, &me, 4, 0), 2, 0);
	for (int64_t i = 0; i < 100; i++) {
		weir_tensor *result = NULL;

		cr_assert_eq(weir_session_run(t.session, NULL, 0, &t.element, 1, &result, NULL, 0,
		                              weir_deadline_in(KIT_PATIENCE_NS), NULL, NULL),
		             WEIR_OK);
		cr_expect_eq(kit_i64_at(result, 0), i);
		weir_tensor_release(result);
	}
	end(&t);
}

Test(dataset_graph, a_bad_next_is_refused)
{
	weir_dataset *dataset = data_range(0, 3);
	weir_iterator *iterator = data_iterate(dataset, NULL);
	weir_graph *graph = kit_graph();
	weir_output outs[2];
	weir_error error;

	cr_expect_eq(weir_op_next(graph, "n", NULL, outs, 1, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "next \"n\": iterator is NULL");
	cr_expect_eq(weir_op_next(graph, "n", iterator, NULL, 1, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "next \"n\": outs is NULL");
	cr_expect_eq(weir_op_next(graph, "n", iterator, outs, 2, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "next \"n\": iterator \"range\" gives 1 component, got 2");
	cr_expect_eq(weir_op_next(NULL, "n", iterator, outs, 1, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
	weir_dataset_release(dataset);
	cr_assert_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
}

/* -- functions --------------------------------------------------------------------------------- */

static enum weir_status build_twice(void *context, weir_graph *body, const struct weir_argument arguments[],
                                    weir_output results[], weir_error *error)
{
	(void)context;
	return weir_op_add(body, "twice", arguments[0].output, arguments[0].output, &results[0], error);
}

static weir_function *function_of(weir_function_fn *build, void *context, const char *name)
{
	static const struct weir_parameter number = {"x", WEIR_PARAMETER_TENSOR, WEIR_I64, NULL};

	return kit_function(name, build, context, &number, 1, 1);
}

Test(dataset_graph, a_dataset_is_mapped_by_a_function)
{
	weir_function *function = function_of(build_twice, NULL, "twice");
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	weir_pool *pool = data_pool(2);

	for (size_t at_once = 1; at_once <= 4; at_once += 3) {
		struct weir_dataset_options options = {WEIR_DATASET_OPTIONS_INIT, .at_once = at_once};
		weir_dataset *numbers = data_range(0, 50), *mapped = NULL;
		struct data_list list;
		weir_error error;

		cr_assert_eq(weir_dataset_map_function(numbers, function, session, &options, &mapped, &error), WEIR_OK, "%s",
		             error.message);
		weir_dataset_release(numbers);
		data_read(mapped, pool, &list);
		cr_assert_eq(list.count, 50);
		for (size_t i = 0; i < 50; i++)
			cr_expect_eq(list.at[i], (int64_t)(2 * i));
	}
	cr_expect_eq(weir_function_body_count(function), 1);
	kit_end(session, graph);
	cr_assert_eq(weir_function_destroy(function, NULL), WEIR_OK);
	cr_assert_eq(weir_pool_destroy(pool, NULL), WEIR_OK);
}

Test(dataset_graph, a_map_by_a_function_that_does_not_fit_is_refused)
{
	static const enum weir_dtype types[2] = {WEIR_I64, WEIR_I64};
	weir_function *function = function_of(build_twice, NULL, "twice");
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	weir_dataset *numbers = data_range(0, 5), *pair[2] = {numbers, numbers}, *pairs = NULL, *out = NULL, *floats = NULL;
	struct weir_dataset_options wide = {WEIR_DATASET_OPTIONS_INIT, .dtypes = types, .width = 2};
	float values[2] = {1, 2};
	weir_tensor *tensor = kit_tensor(WEIR_F32, kit_shape(1, 2), values);
	weir_error error;

	cr_assert_eq(weir_dataset_zip(pair, 2, NULL, &pairs, NULL), WEIR_OK);
	cr_assert_eq(weir_dataset_from_slices(&tensor, 1, NULL, &floats, NULL), WEIR_OK);
	cr_expect_eq(weir_dataset_map_function(NULL, function, session, NULL, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "map: input is NULL");
	cr_expect_eq(weir_dataset_map_function(pairs, function, session, NULL, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "map: function \"twice\" has 1 parameter, an element has 2");
	cr_expect_eq(weir_dataset_map_function(numbers, function, session, &wide, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "map: function \"twice\" has 1 result, expected 2");
	cr_expect_eq(weir_dataset_map_function(floats, function, session, NULL, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "map: parameter \"x\" of function \"twice\" is i64, component 0 is f32");
	cr_expect_null(out);
	weir_tensor_release(tensor);
	weir_dataset_release(numbers);
	weir_dataset_release(pairs);
	weir_dataset_release(floats);
	kit_end(session, graph);
	cr_assert_eq(weir_function_destroy(function, NULL), WEIR_OK);
}

struct mapping {
	weir_function *function;
	weir_session *session;
};

static enum weir_status map_one(const weir_allocator *allocator, void *context)
{
	const struct mapping *mapping = context;
	struct weir_dataset_options plain = {WEIR_DATASET_OPTIONS_INIT, .allocator = allocator};
	weir_dataset *numbers = NULL, *mapped = NULL;
	enum weir_status status = weir_dataset_range(0, 1, 1, &plain, &numbers, NULL);

	if (status == WEIR_OK)
		status = weir_dataset_map_function(numbers, mapping->function, mapping->session, &plain, &mapped, NULL);
	weir_dataset_release(numbers);
	weir_dataset_release(mapped);
	return status;
}

Test(dataset_graph, each_allocation_that_fails_is_a_status)
{
	weir_graph *graph = kit_graph();
	struct mapping mapping = {function_of(build_twice, NULL, "twice"), kit_session(graph, 0)};

	cr_expect_eq(fail_each_allocation(map_one, &mapping), 3);
	kit_end(mapping.session, graph);
	cr_assert_eq(weir_function_destroy(mapping.function, NULL), WEIR_OK);
}

/* -- a loop of a function that takes ----------------------------------------------------------- */

static enum weir_status build_goes_on(void *context, weir_graph *body, const struct weir_argument arguments[],
                                      weir_output results[], weir_error *error)
{
	(void)context;
	return weir_op_less(body, "less", arguments[0].output, kit_constant(body, kit_i64(10)), &results[0], error);
}

static enum weir_status build_count(void *context, weir_graph *body, const struct weir_argument arguments[],
                                    weir_output results[], weir_error *error)
{
	weir_output element;
	enum weir_status status = weir_op_next(body, "next", context, &element, 1, NULL, error);

	return status != WEIR_OK
	           ? status
	           : weir_op_add(body, "count", arguments[0].output, kit_constant(body, kit_i64(1)), &results[0], error);
}

Test(conformance_dataset, DAT_010_a_loop_of_a_function_counts_the_ten_elements_of_a_shuffle)
{
	weir_pool *pool = data_pool(1);
	weir_dataset *dataset = data_prefetch(data_shuffle(data_range(0, 10), 10, NULL, 0), 2);
	weir_iterator *iterator = data_iterate(dataset, pool);
	weir_function *condition = function_of(build_goes_on, NULL, "goes on");
	weir_function *body = function_of(build_count, iterator, "count");
	weir_graph *graph = kit_graph();
	struct weir_argument zero = {.output = kit_constant(graph, kit_i64(0))};
	weir_session *session;
	weir_output out;
	weir_error error;
	int64_t number;

	cr_assert_eq(weir_op_while(graph, "loop", condition, body, &zero, 1, NULL, &out, NULL, &error), WEIR_OK, "%s",
	             error.message);
	session = kit_session(graph, 1);
	cr_expect_eq(kit_fetch_i64(session, out), 10);
	cr_expect_eq(weir_iterator_position(iterator), 10);
	cr_expect_eq(data_next(iterator, &number, NULL), WEIR_OUT_OF_RANGE);
	kit_end(session, graph);
	cr_assert_eq(weir_function_destroy(condition, NULL), WEIR_OK);
	cr_assert_eq(weir_function_destroy(body, NULL), WEIR_OK);
	weir_dataset_release(dataset);
	cr_assert_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
	cr_assert_eq(weir_pool_destroy(pool, NULL), WEIR_OK);
}
