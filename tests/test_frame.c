/*
 * test_frame.c - the values of a step: when each is released, which ops write in place, and what
 * memory steps use again.
 */
#include <weir/reclaim.h>

#include "failing_allocator.h"
#include "graph_kit.h"
#include "session/session.h"

enum { ELEMENTS = 1000 };

static weir_session *a_session(weir_graph *graph, const weir_allocator *allocator, uint64_t seed)
{
	struct weir_session_options options = {WEIR_SESSION_OPTIONS_INIT, .flags = WEIR_SESSION_NO_THREADS,
	                                       .allocator = allocator, .shuffle_seed = seed};
	weir_session *session = NULL;

	cr_assert_eq(weir_session_create(graph, &options, &session, NULL), WEIR_OK);
	return session;
}

static weir_tensor *ones(void)
{
	float values[ELEMENTS];

	for (int i = 0; i < ELEMENTS; i++)
		values[i] = 1;
	return kit_tensor(WEIR_F32, kit_shape(1, ELEMENTS), values);
}

static void expect_all(const weir_tensor *tensor, float value, const char *what)
{
	int wrong = 0;

	for (size_t i = 0; i < ELEMENTS; i++)
		wrong += kit_f32_at(tensor, i) != value;
	cr_expect_eq(wrong, 0, "%s: %d elements differ from %g, the first is %g", what, wrong, (double)value,
	             (double)kit_f32_at(tensor, 0));
}

/* -- in place ---------------------------------------------------------------------------------- */

static weir_output add(weir_graph *graph, weir_output a, weir_output b)
{
	weir_output out;
	weir_error error;

	cr_assert_eq(weir_op_add(graph, NULL, a, b, &out, &error), WEIR_OK, "%s", error.message);
	return out;
}

static weir_output square(weir_graph *graph, weir_output x)
{
	weir_output out;

	cr_assert_eq(weir_op_square(graph, NULL, x, &out, NULL), WEIR_OK);
	return out;
}

/* The first op makes a tensor, since nobody may write over a constant. The others write over it. */
Test(frame, a_chain_of_elementwise_ops_makes_one_tensor)
{
	struct failing_allocator memory = {0};
	weir_allocator allocator = failing_allocator_hooks(&memory);
	weir_graph *graph = kit_graph();
	weir_session *session = a_session(graph, &allocator, 0);
	weir_output one = kit_constant(graph, ones()), x = one;
	weir_tensor *result;
	size_t asked;

	for (int i = 0; i < 20; i++)
		x = add(graph, i % 2 == 0 ? x : one, i % 2 == 0 ? one : x); /* either operand may be the one */
	x = add(graph, x, x);
	cr_assert_eq(weir_op_sub(graph, NULL, x, one, &x, NULL), WEIR_OK);
	cr_assert_eq(weir_op_mul(graph, NULL, x, x, &x, NULL), WEIR_OK);
	x = square(graph, x);
	weir_tensor_release(kit_fetch(session, x));
	asked = weiri_load_relaxed(&memory.asked);
	result = kit_fetch(session, x);
	cr_expect_eq(weiri_load_relaxed(&memory.asked), asked + 1, "the second run allocates the result, and no more");
	expect_all(result, 41.0f * 41.0f * 41.0f * 41.0f, "the chain");
	weir_tensor_release(result);
	kit_end(session, graph);
	cr_expect_str_eq(failing_allocator_verdict(&memory), "balanced");
}

/* Where shapes are known only at run time. A scalar or a row is repeated, so it is not written over. */
Test(frame, an_operand_of_another_shape_is_not_written_over)
{
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	weir_output rows = kit_placeholder(graph, "rows", WEIR_F32, kit_shape(2, -1, 2));
	weir_output row = kit_placeholder(graph, "row", WEIR_F32, kit_shape(1, 2));
	weir_tensor *values[] = {kit_tensor(WEIR_F32, kit_shape(2, 2, 2), (const float[]){1, 2, 3, 4}),
	                         kit_tensor(WEIR_F32, kit_shape(1, 2), (const float[]){10, 20})};
	struct weir_feed feeds[] = {{rows, values[0]}, {row, values[1]}};
	weir_output out = add(graph, square(graph, row), square(graph, rows)); /* both are of the step */
	const float expected[] = {101, 404, 109, 416};
	weir_tensor *result;

	cr_assert_eq(weir_session_run(session, feeds, 2, &out, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	for (size_t i = 0; i < 4; i++)
		cr_expect_eq(kit_f32_at(result, i), expected[i]);
	for (size_t i = 0; i < 4; i++)
		cr_expect_eq(kit_f32_at(values[0], i), (float)i + 1);
	weir_tensor_release(result);
	weir_tensor_release(values[0]);
	weir_tensor_release(values[1]);
	kit_end(session, graph);
}

/* The result's shape is known when the graph is built, but not that of each operand. */
Test(frame, an_operand_whose_shape_is_open_is_checked_when_it_runs)
{
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	weir_output open = kit_placeholder(graph, "open", WEIR_F32, kit_shape(1, -1)), out;
	weir_output two = kit_constant(graph, kit_tensor(WEIR_F32, kit_shape(1, 2), (const float[]){1, 2}));
	struct weir_feed feed = {open, kit_tensor(WEIR_F32, kit_shape(1, 3), (const float[]){1, 2, 3})};
	weir_tensor *result = NULL;
	weir_error error;

	out = add(graph, open, two);
	cr_expect_eq(weir_session_run(session, &feed, 1, &out, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "got f32 [3] and f32 [2]"), "%s", error.message);
	cr_expect_null(result);
	weir_tensor_release(feed.value);
	kit_end(session, graph);
}

Test(frame, a_value_that_is_fetched_twice_has_two_references)
{
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	weir_output two = add(graph, kit_constant(graph, ones()), kit_constant(graph, ones()));
	weir_output fetches[] = {two, square(graph, two), two};
	weir_tensor *results[3];

	cr_assert_eq(weir_session_run(session, NULL, 0, fetches, 3, results, NULL, 0, WEIR_NO_DEADLINE, NULL, NULL),
	             WEIR_OK);
	cr_expect_eq(results[0], results[2]);
	weir_tensor_release(results[0]);
	expect_all(results[2], 2, "the second reference");
	expect_all(results[1], 4, "the square");
	weir_tensor_release(results[1]);
	weir_tensor_release(results[2]);
	kit_end(session, graph);
}

/* What a value of 1 that others hold is worth after square(v + v) was computed from it. */
static void expect_untouched(weir_graph *graph, weir_output v, const struct weir_feed *feed, const char *what)
{
	for (uint64_t seed = 0; seed < 20; seed++) {
		weir_session *session = a_session(graph, NULL, seed);
		weir_output out = square(graph, add(graph, v, v)), fetches[] = {out, v};
		weir_tensor *results[2];

		cr_assert_eq(weir_session_run(session, feed, feed != NULL ? 1 : 0, fetches, 2, results, NULL, 0,
		                              WEIR_NO_DEADLINE, NULL, NULL),
		             WEIR_OK);
		expect_all(results[0], 4, what);
		expect_all(results[1], 1, what);
		weir_tensor_release(results[0]);
		weir_tensor_release(results[1]);
		cr_assert_eq(weir_session_run(session, feed, feed != NULL ? 1 : 0, &out, 1, results, NULL, 0, WEIR_NO_DEADLINE,
		                              NULL, NULL),
		             WEIR_OK);
		expect_all(results[0], 4, what);
		weir_tensor_release(results[0]);
		cr_assert_eq(weir_session_destroy(session, NULL), WEIR_OK);
	}
}

static weir_output identity(weir_graph *graph, weir_output x)
{
	weir_output out;

	cr_assert_eq(weir_op_identity(graph, NULL, x, &out, NULL), WEIR_OK);
	return out;
}

Test(frame, what_others_hold_is_not_written_over)
{
	weir_graph *graph = kit_graph();
	weir_tensor *held = ones();
	weir_output constant, fed = kit_placeholder(graph, "fed", WEIR_F32, kit_shape(1, ELEMENTS)), read;
	struct weir_feed feed = {fed, held};
	weir_var *var = kit_var("v", ones());
	weir_read before;

	cr_assert_eq(weir_op_constant(graph, NULL, held, &constant, NULL), WEIR_OK);
	expect_untouched(graph, constant, NULL, "a constant");
	expect_untouched(graph, identity(graph, constant), NULL, "the identity of a constant");
	expect_untouched(graph, fed, &feed, "a feed");
	expect_untouched(graph, identity(graph, fed), &feed, "the identity of a feed");
	expect_all(held, 1, "the caller's tensor");
	cr_assert_eq(weir_op_read(graph, NULL, var, &read, NULL), WEIR_OK);
	expect_untouched(graph, read, NULL, "a variable");
	expect_untouched(graph, identity(graph, read), NULL, "the identity of a variable's value");
	cr_assert_eq(weir_var_read(var, &before), WEIR_OK);
	expect_all(before.tensor, 1, "the variable");
	weir_read_release(&before);
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
	weir_var_destroy(var, NULL);
	weir_tensor_release(held);
}

/* The variable keeps the value that it was assigned. */
Test(frame, what_a_variable_was_assigned_is_not_written_over)
{
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	weir_output one = kit_constant(graph, ones()), assigned, out;
	weir_var *var = kit_var("v", ones());
	weir_tensor *result;
	weir_read read;

	cr_assert_eq(weir_op_assign(graph, NULL, var, add(graph, one, one), &assigned, NULL), WEIR_OK);
	out = square(graph, assigned);
	result = kit_fetch(session, out);
	expect_all(result, 4, "the square");
	weir_tensor_release(result);
	cr_assert_eq(weir_var_read(var, &read), WEIR_OK);
	expect_all(read.tensor, 2, "the variable");
	weir_read_release(&read);
	kit_end(session, graph);
	weir_var_destroy(var, NULL);
}

/* Two nodes that no edge orders use one value. Whichever comes last, neither writes over it. */
Test(frame, a_value_with_two_uses_is_whole_for_both)
{
	for (uint64_t seed = 0; seed < 40; seed++) {
		weir_graph *graph = kit_graph();
		weir_session *session = a_session(graph, NULL, seed);
		weir_output one = kit_constant(graph, ones()), two = add(graph, one, one);
		weir_output fetches[] = {add(graph, two, one), square(graph, two)};
		weir_tensor *results[2];

		cr_assert_eq(weir_session_run(session, NULL, 0, fetches, 2, results, NULL, 0, WEIR_NO_DEADLINE, NULL, NULL),
		             WEIR_OK);
		expect_all(results[0], 3, "the sum");
		expect_all(results[1], 4, "the square");
		weir_tensor_release(results[0]);
		weir_tensor_release(results[1]);
		kit_end(session, graph);
	}
}

/* -- kernels ----------------------------------------------------------------------------------- */

/* A kernel that gives out its own tensor, and perhaps a view of it. */
struct giver {
	weir_tensor *tensor;
	bool view;
	bool gives_all; /* without a reference of its own */
};

static enum weir_status give(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	struct giver *giver = context;

	(void)error;
	if (giver->view)
		return weir_tensor_slice(giver->tensor, 0, ELEMENTS, &call->outputs[0]);
	call->outputs[0] = giver->gives_all ? giver->tensor : weir_tensor_retain(giver->tensor);
	return WEIR_OK;
}

static weir_output giving(weir_graph *graph, struct giver *giver)
{
	weir_shape shape = kit_shape(1, ELEMENTS);
	struct weir_output_type type = {WEIR_F32, &shape};
	weir_output out;

	cr_assert_eq(weir_op_kernel(graph, NULL, KIT_KERNEL(give), giver, NULL, 0, &type, 1, NULL, 0, &out, NULL, NULL),
	             WEIR_OK);
	return out;
}

static void forget(void *context, void *data)
{
	(void)data;
	++*(int *)context;
}

static void square_what_is_given(struct giver *giver)
{
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	weir_tensor *result = kit_fetch(session, square(graph, add(graph, giving(graph, giver), giving(graph, giver))));

	expect_all(result, 4, "the square");
	weir_tensor_release(result);
	kit_end(session, graph);
}

Test(frame, what_a_kernel_keeps_is_not_written_over)
{
	struct giver kept = {.tensor = ones()}, viewed = {.tensor = ones(), .view = true};

	square_what_is_given(&kept);
	expect_all(kept.tensor, 1, "the kernel's tensor");
	square_what_is_given(&viewed);
	expect_all(viewed.tensor, 1, "the owner of the view");
	weir_tensor_release(kept.tensor);
	weir_tensor_release(viewed.tensor);
}

/* Even if the step has the only reference: the memory may not be writable. */
Test(frame, foreign_memory_is_not_written_over)
{
	static float values[ELEMENTS];
	weir_shape shape = kit_shape(1, ELEMENTS);
	struct giver giver = {.gives_all = true};
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	weir_tensor *result;
	int forgotten = 0;

	for (int i = 0; i < ELEMENTS; i++)
		values[i] = 1;
	cr_assert_eq(weir_tensor_wrap(WEIR_F32, &shape, values, forget, &forgotten, NULL, &giver.tensor), WEIR_OK);
	result = kit_fetch(session, square(graph, giving(graph, &giver)));
	expect_all(result, 1, "the square");
	cr_expect_eq(forgotten, 1);
	cr_expect_eq(values[0], 1.0f);
	weir_tensor_release(result);
	kit_end(session, graph);
}

/* -- when a value is released ------------------------------------------------------------------ */

/* Gives out a wrapped tensor, and later tells whether that was released. */
struct watched {
	float value;
	int released;
	int seen; /* by look() */
};

static enum weir_status make_watched(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	struct watched *watched = context;
	weir_shape scalar = kit_shape(0);

	(void)error;
	return weir_tensor_wrap(WEIR_F32, &scalar, &watched->value, forget, &watched->released, NULL, &call->outputs[0]);
}

static enum weir_status look(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	struct watched *watched = context;

	(void)call, (void)error;
	watched->seen = watched->released;
	return WEIR_OK;
}

static enum weir_status look_and_fail(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	(void)look(context, call, error);
	return WEIR_ABORTED;
}

struct scene {
	struct watched watched;
	weir_graph *graph;
	weir_output made;
	weir_node *looks;
};

static void set_scene(struct scene *scene, weir_kernel_fn *looks)
{
	weir_shape scalar = kit_shape(0);
	struct weir_output_type type = {WEIR_F32, &scalar};

	*scene = (struct scene){.watched = {.value = 3}, .graph = kit_graph()};
	cr_assert_eq(weir_op_kernel(scene->graph, NULL, KIT_KERNEL(make_watched), &scene->watched, NULL, 0, &type, 1, NULL,
	                            0, &scene->made, NULL, NULL),
	             WEIR_OK);
	cr_assert_eq(weir_op_kernel(scene->graph, NULL, KIT_KERNEL(looks), &scene->watched, NULL, 0, NULL, 0, NULL, 0, NULL,
	                            &scene->looks, NULL),
	             WEIR_OK);
}

static void look_after(struct scene *scene, weir_node *node)
{
	cr_assert_eq(weir_graph_add_control(scene->graph, node, scene->looks, NULL), WEIR_OK);
}

/* Runs the look. Returns how often the value had been released when it ran. */
static int released_before_the_look(struct scene *scene, size_t threads, enum weir_status expected)
{
	weir_session *session = kit_session(scene->graph, threads);

	scene->watched.released = 0;
	cr_expect_eq(kit_run_target(session, scene->looks, NULL), expected);
	cr_assert_eq(weir_session_destroy(session, NULL), WEIR_OK);
	cr_expect_eq(scene->watched.released, 1, "it is released once");
	return scene->watched.seen;
}

Test(frame, a_value_is_released_at_its_last_use)
{
	for (size_t threads = 0; threads < 3; threads++) {
		struct scene one, two, none, kept;

		set_scene(&one, look);
		look_after(&one, square(one.graph, one.made).node);
		cr_expect_eq(released_before_the_look(&one, threads, WEIR_OK), 1, "one use");
		set_scene(&two, look);
		look_after(&two, square(two.graph, two.made).node);
		look_after(&two, add(two.graph, two.made, two.made).node);
		cr_expect_eq(released_before_the_look(&two, threads, WEIR_OK), 1, "two uses");
		set_scene(&none, look);
		look_after(&none, none.made.node);
		cr_expect_eq(released_before_the_look(&none, threads, WEIR_OK), 1, "no use");
		set_scene(&kept, look);
		look_after(&kept, kept.made.node);
		look_after(&kept, add(kept.graph, kept.made, square(kept.graph, kept.made)).node);
		cr_expect_eq(released_before_the_look(&kept, threads, WEIR_OK), 1, "two uses, one after the other");
		cr_assert_eq(weir_graph_destroy(one.graph, NULL), WEIR_OK);
		cr_assert_eq(weir_graph_destroy(two.graph, NULL), WEIR_OK);
		cr_assert_eq(weir_graph_destroy(none.graph, NULL), WEIR_OK);
		cr_assert_eq(weir_graph_destroy(kept.graph, NULL), WEIR_OK);
	}
}

/* The square, which would have been its last use, is skipped. */
Test(frame, a_step_that_fails_releases_what_is_left)
{
	for (size_t threads = 0; threads < 3; threads++) {
		struct scene scene;
		weir_output late;

		set_scene(&scene, look_and_fail);
		look_after(&scene, scene.made.node);
		late = square(scene.graph, scene.made);
		cr_assert_eq(weir_graph_add_control(scene.graph, scene.looks, late.node, NULL), WEIR_OK);
		scene.looks = late.node;
		cr_expect_eq(released_before_the_look(&scene, threads, WEIR_ABORTED), 0);
		cr_assert_eq(weir_graph_destroy(scene.graph, NULL), WEIR_OK);
	}
}

struct replacing {
	struct watched watched;
	weir_var *var;
};

/* Replaces the value of the variable, and looks whether the old one was released. */
static enum weir_status replace(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	struct replacing *replacing = context;
	weir_tensor *four = kit_f32(4);
	enum weir_status status = weir_var_assign(replacing->var, four, WEIR_NO_DEADLINE, NULL, error);

	weir_tensor_release(four);
	(void)weir_reclaim_flush(0);
	return status == WEIR_OK ? look(&replacing->watched, call, error) : status;
}

/* A frame that is used again finds its handles cleared (F2). */
Test(frame, a_handle_is_released_at_the_last_use_of_its_value)
{
	struct replacing replacing = {.watched = {.value = 3}};
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_F32};
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	weir_output read, out;
	weir_tensor *first;
	weir_node *kernel;

	cr_assert_eq(weir_tensor_wrap(WEIR_F32, &weir_shape_scalar, &replacing.watched.value, forget,
	                              &replacing.watched.released, NULL, &first),
	             WEIR_OK);
	cr_assert_eq(weir_var_create(first, &options, &replacing.var, NULL), WEIR_OK);
	weir_tensor_release(first);
	cr_assert_eq(weir_op_read(graph, NULL, replacing.var, &read, NULL), WEIR_OK);
	out = add(graph, square(graph, read), read);
	cr_assert_eq(
		weir_op_kernel(graph, NULL, KIT_KERNEL(replace), &replacing, NULL, 0, NULL, 0, NULL, 0, NULL, &kernel, NULL),
		WEIR_OK);
	cr_assert_eq(weir_graph_add_control(graph, out.node, kernel, NULL), WEIR_OK);
	for (int i = 0; i < 3; i++) {
		cr_expect_eq(kit_run_target(session, kernel, NULL), WEIR_OK);
		cr_expect_eq(replacing.watched.seen, 1, "the step held the version until its end");
		cr_expect_eq(kit_fetch_f32(session, out), 20.0f);
		cr_expect_eq(kit_fetch_f32(session, read), 4.0f);
		cr_expect_eq(kit_run_target(session, read.node, NULL), WEIR_OK, "a value without a use");
	}
	kit_end(session, graph);
	weir_var_destroy(replacing.var, NULL);
}

/* -- memory that is used again ----------------------------------------------------------------- */

Test(frame, steps_one_after_the_other_use_the_same_memory)
{
	struct failing_allocator memory = {0};
	weir_allocator allocator = failing_allocator_hooks(&memory);
	weir_graph *graph = kit_graph();
	weir_session *session = a_session(graph, &allocator, 0);
	weir_output x = kit_placeholder(graph, "x", WEIR_F32, weir_shape_scalar), out = identity(graph, x);
	weir_output failing;
	weir_var *empty = NULL;
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_F32};
	weir_tensor *result;
	size_t asked;

	cr_assert_eq(weir_var_create(NULL, &options, &empty, NULL), WEIR_OK);
	cr_assert_eq(weir_op_read(graph, NULL, empty, &failing, NULL), WEIR_OK);
	for (int i = 0; i < 5; i++) {
		struct weir_feed feed = {x, kit_f32((float)i)};

		cr_assert_eq(weir_session_run(session, &feed, 1, &out, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, NULL),
		             WEIR_OK);
		cr_expect_eq(result, feed.value);
		weir_tensor_release(result);
		weir_tensor_release(feed.value);
		cr_expect_eq(kit_run_target(session, failing.node, NULL), WEIR_FAILED_PRECONDITION);
		asked = i == 0 ? weiri_load_relaxed(&memory.asked) : asked;
	}
	cr_expect_eq(weiri_load_relaxed(&memory.asked), asked);
	kit_end(session, graph);
	weir_var_destroy(empty, NULL);
	cr_expect_str_eq(failing_allocator_verdict(&memory), "balanced");
}

/* A session keeps a bounded number of plans. The runs of others work too. */
Test(frame, a_session_keeps_a_bounded_number_of_plans)
{
	enum { MORE = 50 };
	struct failing_allocator memory = {0};
	weir_allocator allocator = failing_allocator_hooks(&memory);
	weir_graph *graph = kit_graph();
	weir_session *session = a_session(graph, &allocator, 0);
	size_t bytes = 0;

	for (int i = 0; i < WEIRI_SESSION_MOST_PLANS + MORE; i++) {
		weir_output constant = kit_constant(graph, kit_f32((float)i));

		cr_expect_eq(kit_fetch_f32(session, identity(graph, constant)), (float)i);
		if (i == WEIRI_SESSION_MOST_PLANS)
			bytes = weiri_load_relaxed(&memory.bytes);
	}
	cr_expect_eq(weiri_load_relaxed(&memory.bytes), bytes, "the plans after the bound are freed");
	kit_end(session, graph);
	cr_expect_str_eq(failing_allocator_verdict(&memory), "balanced");
}

/* -- stopping ---------------------------------------------------------------------------------- */

/* Fires a token when the session allocates the memory of a value. */
struct firing {
	struct failing_allocator memory;
	weir_cancel *token; /* NULL: it does not fire */
};

static void *allocate_and_fire(void *context, size_t size, size_t alignment)
{
	struct firing *firing = context;

	if (firing->token != NULL)
		(void)weir_cancel_fire(firing->token, NULL);
	return failing_allocate(&firing->memory, size, alignment);
}

static void release_fired(void *context, void *memory, size_t size, size_t alignment)
{
	failing_release(&((struct firing *)context)->memory, memory, size, alignment);
}

/* A step without user code that does not wait reads the token now and then, not before each node. */
Test(frame, a_long_chain_notices_a_token_soon)
{
	enum { ADDS = 1000 };
	struct firing firing = {.token = NULL};
	weir_allocator allocator = {allocate_and_fire, release_fired, &firing};
	weir_graph *graph = kit_graph();
	weir_session *session = a_session(graph, &allocator, 0);
	weir_var *var = kit_var("v", kit_f32(0));
	weir_output one = kit_constant(graph, kit_f32(1)), x = add(graph, one, one), adding;
	weir_node *last = x.node;
	weir_cancel *token;
	weir_error error;

	for (int i = 0; i < ADDS; i++) {
		cr_assert_eq(weir_op_assign_add(graph, NULL, var, one, &adding, NULL), WEIR_OK);
		cr_assert_eq(weir_graph_add_control(graph, last, adding.node, NULL), WEIR_OK);
		last = adding.node;
	}
	cr_assert_eq(kit_run_target(session, last, NULL), WEIR_OK);
	cr_expect_eq(kit_var_f32(var, 0), (float)ADDS);
	cr_assert_eq(weir_cancel_create(NULL, &token, NULL), WEIR_OK);
	firing.token = token;
	cr_expect_eq(weir_session_run(session, NULL, 0, NULL, 0, NULL, &last, 1, WEIR_NO_DEADLINE, token, &error),
	             WEIR_CANCELLED);
	cr_expect_leq(kit_var_f32(var, 0), (float)(ADDS + WEIRI_LOOK_WEIGHT));
	firing.token = NULL;
	cr_expect_eq(weir_session_run(session, NULL, 0, NULL, 0, NULL, &last, 1, WEIR_NO_DEADLINE, token, &error),
	             WEIR_CANCELLED);
	cr_expect_leq(kit_var_f32(var, 0), (float)(ADDS + WEIRI_LOOK_WEIGHT),
	              "a token that had fired before: nothing runs");
	weir_cancel_release(token);
	kit_end(session, graph);
	weir_var_destroy(var, NULL);
	cr_expect_str_eq(failing_allocator_verdict(&firing.memory), "balanced");
}

/* -- many -------------------------------------------------------------------------------------- */

/* Both feeds of a node, and a control edge that occurs twice. */
Test(frame, edges_that_occur_twice_count_once)
{
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	weir_var *var = kit_var("v", kit_f32(0));
	weir_output one = kit_constant(graph, kit_f32(1)), first, second;

	cr_assert_eq(weir_op_assign_add(graph, NULL, var, one, &first, NULL), WEIR_OK);
	cr_assert_eq(weir_op_assign_add(graph, NULL, var, add(graph, first, first), &second, NULL), WEIR_OK);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(weir_graph_add_control(graph, first.node, second.node, NULL), WEIR_OK);
	cr_expect_eq(kit_fetch_f32(session, second), 3.0f);
	kit_end(session, graph);
	weir_var_destroy(var, NULL);
}

Test(frame, many_feeds_of_one_run)
{
	enum { FEEDS = 500 };
	static struct weir_feed feeds[FEEDS + 1];
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	weir_output sum = kit_constant(graph, kit_f32(0));
	weir_tensor *result;
	weir_error error;

	for (int i = 0; i < FEEDS; i++) {
		weir_output out;

		cr_assert_eq(weir_op_placeholder(graph, NULL, WEIR_F32, &weir_shape_scalar, &out, NULL), WEIR_OK);
		feeds[i] = (struct weir_feed){out, kit_f32((float)i)};
		sum = add(graph, sum, out);
	}
	cr_assert_eq(weir_session_run(session, feeds, FEEDS, &sum, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_OK, "%s", error.message);
	cr_expect_eq(kit_f32_at(result, 0), (float)(FEEDS * (FEEDS - 1) / 2));
	weir_tensor_release(result);
	feeds[FEEDS] = feeds[FEEDS / 2];
	cr_expect_eq(weir_session_run(session, feeds, FEEDS + 1, &sum, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "fed twice"), "%s", error.message);
	for (int i = 0; i < FEEDS; i++)
		weir_tensor_release(feeds[i].value);
	kit_end(session, graph);
}
