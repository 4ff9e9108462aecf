/*
 * test_queue_list.c - several tensor queues, one of which is chosen by an index.
 */
#include "tensor_queue_kit.h"

#include "failing_allocator.h"
#include "graph_kit.h"

static weir_tensor_queue *named_queue(const char *name, const struct weir_tensor_component components[], size_t count)
{
	return tensor_queue_with((struct weir_tensor_queue_options){
		.capacity = 4, .components = components, .component_count = count, .name = name});
}

static void expect_no_list(weir_tensor_queue *const queues[], size_t count, const char *why)
{
	weir_tensor_queue_list *list = NULL;
	weir_error error = {0};

	cr_expect_eq(weir_tensor_queue_list_create(queues, count, NULL, &list, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_null(list);
	cr_expect_not_null(strstr(error.message, why), "%s", error.message);
}

Test(queue_list, queues_that_do_not_agree_are_refused_by_name)
{
	struct weir_tensor_component components[2] = {{WEIR_I32, NULL, "x"}, {WEIR_F32, NULL, "y"}};
	weir_tensor_queue *base = named_queue("base", components, 2), *fewer = named_queue("fewer", components, 1), *typed,
					  *other, *unnamed;

	components[1].dtype = WEIR_F64;
	typed = named_queue("typed", components, 2);
	components[1] = (struct weir_tensor_component){WEIR_F32, NULL, "z"};
	other = named_queue("other", components, 2);
	components[1].name = NULL;
	unnamed = named_queue("unnamed", components, 2);
	expect_no_list((weir_tensor_queue *[]){base, base, fewer}, 3,
	               "queue 0 (\"base\") has 2 components, queue 2 (\"fewer\") has 1");
	expect_no_list((weir_tensor_queue *[]){base, typed}, 2,
	               "component 1 has dtype f32 in queue 0 (\"base\"), f64 in queue 1 (\"typed\")");
	expect_no_list((weir_tensor_queue *[]){base, other}, 2,
	               "component 1 has the name y in queue 0 (\"base\"), z in queue 1 (\"other\")");
	expect_no_list((weir_tensor_queue *[]){base, unnamed}, 2, "(none) in queue 1 (\"unnamed\")");
	expect_no_list((weir_tensor_queue *[]){base, NULL}, 2, "queue 1 is NULL");
	expect_no_list(NULL, 1, "0 queues");
	expect_no_list((weir_tensor_queue *[]){base}, 0, "0 queues");
	expect_no_list((weir_tensor_queue *[]){base}, WEIR_TENSOR_QUEUE_LIST_MAX + 1, "65537 queues");
	cr_expect_eq(weir_tensor_queue_list_create(&base, 1, NULL, NULL, NULL), WEIR_INVALID_ARGUMENT);
	destroy_tensors(base);
	destroy_tensors(fewer);
	destroy_tensors(typed);
	destroy_tensors(other);
	destroy_tensors(unnamed);
}

Test(queue_list, the_array_is_copied_and_null_is_refused)
{
	weir_tensor_queue *one = scalar_queue(1), *other = scalar_queue(1), *queues[] = {one, other}, *got = NULL;
	struct weir_tensor_component component;
	weir_tensor_queue_list *list = NULL;

	cr_assert_eq(weir_tensor_queue_list_create(queues, 2, NULL, &list, NULL), WEIR_OK);
	queues[0] = queues[1] = NULL;
	cr_expect_eq(weir_tensor_queue_list_at(list, 1, &got, NULL), WEIR_OK);
	cr_expect_eq(got, other);
	cr_expect_eq(weir_tensor_queue_list_at(list, INT64_MIN, &got, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_queue_list_at(NULL, 0, &got, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_queue_list_at(list, 0, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(got, other);
	cr_expect_eq(weir_tensor_queue_list_component_count(list), 1);
	cr_expect_eq(weir_tensor_queue_list_component_count(NULL), 0);
	cr_expect_eq(weir_tensor_queue_list_component(list, 0, &component), WEIR_OK);
	cr_expect_str_eq(component.name, "label");
	cr_expect_eq(weir_tensor_queue_list_component(list, 1, &component), WEIR_OUT_OF_RANGE);
	cr_expect_eq(weir_tensor_queue_list_component(NULL, 0, &component), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_queue_list_component(list, 0, NULL), WEIR_INVALID_ARGUMENT);
	weir_tensor_queue_list_destroy(list, NULL);
	weir_tensor_queue_list_destroy(NULL, NULL);
	destroy_tensors(one);
	destroy_tensors(other);
}

/* A name that equals a component's number counts as a name, and a scalar has a shape. */
Test(queue_list, a_number_for_a_name_and_a_scalar_are_something)
{
	struct weir_tensor_component component = {WEIR_I32, &scalar_shape, "0"};
	weir_tensor_queue *named = named_queue("named", &component, 1), *unnamed, *shapeless;
	weir_tensor_queue_list *list = NULL;

	component.name = NULL;
	unnamed = named_queue("unnamed", &component, 1);
	expect_no_list((weir_tensor_queue *[]){named, unnamed}, 2,
	               "component 0 has the name 0 in queue 0 (\"named\"), (none) in queue 1 (\"unnamed\")");
	component.shape = NULL;
	shapeless = named_queue("shapeless", &component, 1);
	for (int round = 0; round < 2; round++) {
		weir_tensor_queue *queues[] = {round == 0 ? unnamed : shapeless, round == 0 ? shapeless : unnamed};

		cr_assert_eq(weir_tensor_queue_list_create(queues, 2, NULL, &list, NULL), WEIR_OK);
		cr_assert_eq(weir_tensor_queue_list_component(list, 0, &component), WEIR_OK);
		cr_expect_null(component.shape);
		cr_expect_null(component.name);
		weir_tensor_queue_list_destroy(list, NULL);
	}
	destroy_tensors(named);
	destroy_tensors(unnamed);
	destroy_tensors(shapeless);
}

/* There are more names than a message has room for, so the list is cut. */
Test(queue_list, many_queues_of_long_names_make_a_list)
{
	enum { COUNT = 40 };
	struct weir_tensor_component component = {WEIR_I32, &scalar_shape, NULL};
	weir_tensor_queue *queue = named_queue("a name that is not short at all", &component, 1), *queues[COUNT], *got;
	weir_tensor_queue_list *list = NULL;
	weir_error error = {0};

	for (size_t i = 0; i < COUNT; i++)
		queues[i] = queue;
	cr_assert_eq(weir_tensor_queue_list_create(queues, COUNT, NULL, &list, NULL), WEIR_OK);
	cr_expect_eq(weir_tensor_queue_list_at(list, COUNT, &got, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "short at all|a name"), "%s", error.message);
	cr_expect_not_null(strstr(error.message, "index 40 is not in [0, 40)"), "%s", error.message);
	weir_tensor_queue_list_destroy(list, NULL);
	destroy_tensors(queue);
}

static enum weir_status create_list(const weir_allocator *allocator, void *context)
{
	weir_tensor_queue_list *list = NULL;
	enum weir_status status =
		weir_tensor_queue_list_create((weir_tensor_queue *[]){context, context}, 2, allocator, &list, NULL);

	cr_assert_eq(list != NULL, status == WEIR_OK);
	weir_tensor_queue_list_destroy(list, NULL);
	return status;
}

Test(queue_list, create_survives_each_allocation_failing)
{
	weir_tensor_queue *queue = scalar_queue(1);

	cr_expect_eq(fail_each_allocation(create_list, queue), 1);
	destroy_tensors(queue);
}

Test(queue_list, the_builders_check_against_the_list)
{
	weir_graph *graph = kit_graph();
	weir_tensor_queue *queue = scalar_queue(1);
	weir_output index = kit_placeholder(graph, "index", WEIR_I64, kit_shape(0));
	weir_output number = kit_placeholder(graph, "number", WEIR_I32, kit_shape(0));
	weir_output real = kit_placeholder(graph, "real", WEIR_F32, kit_shape(0)), nothing = {NULL, 0}, outs[2];
	weir_output both[] = {number, number};
	weir_tensor_queue_list *list = NULL;
	weir_node *node;
	weir_error error;

	cr_assert_eq(weir_tensor_queue_list_create(&queue, 1, NULL, &list, NULL), WEIR_OK);
	cr_expect_eq(weir_op_enqueue_at(graph, NULL, list, real, &number, 1, &node, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "expected index as an i32 or i64 scalar, got f32"), "%s", error.message);
	cr_expect_eq(weir_op_enqueue_at(graph, NULL, list, index, &real, 1, &node, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "expects i32 [] as component 0 (label), got f32 []"), "%s", error.message);
	cr_expect_eq(weir_op_enqueue_at(graph, NULL, list, index, both, 2, &node, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_enqueue_at(graph, NULL, NULL, index, &number, 1, &node, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_enqueue_at(graph, NULL, list, index, NULL, 1, &node, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_enqueue_at(graph, NULL, list, nothing, &number, 1, &node, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_enqueue_at(graph, NULL, list, index, &nothing, 1, &node, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_enqueue_many_at(graph, NULL, list, index, &number, 1, &node, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_dequeue_at(graph, NULL, list, index, outs, 2, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_dequeue_at(NULL, NULL, list, index, outs, 1, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_dequeue_many_at(graph, NULL, list, index, real, outs, 1, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "expected n as an i32 or i64 scalar, got f32"), "%s", error.message);
	cr_expect_eq(weir_op_dequeue_up_to_at(graph, NULL, list, real, index, outs, 1, NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_dequeue_at(graph, NULL, list, index, outs, 1, NULL, &error), WEIR_OK);
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
	weir_tensor_queue_list_destroy(list, NULL);
	destroy_tensors(queue);
}

/* Rows go into the second of two queues, and batches come out of it. */
Test(queue_list, batches_go_to_the_chosen_queue)
{
	weir_graph *graph = kit_graph();
	weir_tensor_queue *queues[] = {scalar_queue(8), scalar_queue(8)};
	weir_output one = kit_constant(graph, kit_i64(1)), two = kit_constant(graph, kit_i64(2));
	weir_output rows = kit_constant(graph, numbers_of(vector_shape(5), 10)), many, up_to;
	weir_tensor_queue_list *list = NULL;
	weir_session *session;
	weir_tensor *got;
	weir_node *put;

	cr_assert_eq(weir_tensor_queue_list_create(queues, 2, NULL, &list, NULL), WEIR_OK);
	cr_assert_eq(weir_op_enqueue_many_at(graph, NULL, list, one, &rows, 1, &put, NULL), WEIR_OK);
	cr_assert_eq(weir_op_dequeue_many_at(graph, NULL, list, one, two, &many, 1, NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_op_dequeue_up_to_at(graph, NULL, list, one, two, &up_to, 1, NULL, NULL), WEIR_OK);
	session = kit_session(graph, 1);
	cr_assert_eq(kit_run_target(session, put, NULL), WEIR_OK);
	cr_expect_eq(weir_tensor_queue_size_approx(queues[0]), 0);
	cr_expect_eq(weir_tensor_queue_size_approx(queues[1]), 5);
	got = kit_fetch(session, many);
	expect_values(got, vector_shape(2), (int32_t[]){10, 11});
	weir_tensor_release(got);
	got = kit_fetch(session, up_to);
	expect_values(got, vector_shape(2), (int32_t[]){12, 13});
	weir_tensor_release(got);
	cr_assert_eq(weir_tensor_queue_close(queues[1], WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
	got = kit_fetch(session, up_to);
	expect_values(got, vector_shape(1), (int32_t[]){14});
	weir_tensor_release(got);
	kit_end(session, graph);
	weir_tensor_queue_list_destroy(list, NULL);
	destroy_tensors(queues[0]);
	destroy_tensors(queues[1]);
	expect_no_tensor_left();
}
