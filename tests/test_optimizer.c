/*
 * test_optimizer.c - optimizers: the rules, steps of many threads, slots, and what is refused.
 */
#include <math.h>
#include <pthread.h>

#include <weir/flow.h>

#include "failing_allocator.h"
#include "graph_kit.h"
#include "stepped.h"
#include "var/version.h"

#define OK(call) cr_assert_eq((call), WEIR_OK, "%s: %s", #call, error.message)

enum { WIDTH = 3 };

static weir_optimizer *optimizer_of(enum weir_optimizer_kind kind)
{
	struct weir_optimizer_options options = {WEIR_OPTIMIZER_OPTIONS_INIT, .kind = kind, .rate = 0.125, .momentum = 0.5};
	weir_optimizer *optimizer;
	weir_error error;

	OK(weir_optimizer_create(&options, &optimizer, &error));
	return optimizer;
}

static void destroy_optimizer(weir_optimizer *optimizer)
{
	weir_error error;

	OK(weir_optimizer_destroy(optimizer, &error));
}

static double element(const weir_tensor *tensor, size_t i)
{
	const void *data = weir_tensor_data(tensor);

	return weir_tensor_dtype(tensor) == WEIR_F32 ? (double)((const float *)data)[i] : ((const double *)data)[i];
}

static double var_element(weir_var *var, size_t i)
{
	weir_read read;
	double value;

	cr_assert_eq(weir_var_read(var, &read), WEIR_OK);
	value = element(read.tensor, i);
	weir_read_release(&read);
	return value;
}

static int64_t steps_of(const weir_optimizer *optimizer)
{
	weir_read read;
	int64_t steps;

	cr_assert_eq(weir_var_read(weir_optimizer_step(optimizer), &read), WEIR_OK);
	steps = kit_i64_at(read.tensor, 0);
	weir_read_release(&read);
	return steps;
}

/* -- the rules ------------------------------------------------------------------------------------- */

/* The same by definition, in double. */
static void expect_rule(enum weir_optimizer_kind kind, double g, double w[], double a[], double b[], int t)
{
	switch (kind) {
	case WEIR_OPTIMIZER_DESCENT: *w -= 0.125 * g; break;
	case WEIR_OPTIMIZER_MOMENTUM:
		*a = 0.5 * *a + g;
		*w -= 0.125 * *a;
		break;
	case WEIR_OPTIMIZER_ADAM:
		*a = 0.9 * *a + (1 - 0.9) * g;
		*b = 0.999 * *b + (1 - 0.999) * g * g;
		*w -= 0.125 * sqrt(1 - pow(0.999, t)) / (1 - pow(0.9, t)) * *a / (sqrt(*b) + 1e-8);
		break;
	}
}

static void check_rule(enum weir_optimizer_kind kind, enum weir_dtype dtype)
{
	const double start[WIDTH] = {1, -2, 0.5}, gradients[WIDTH] = {0.5, 4, -1};
	const float start32[WIDTH] = {1, -2, 0.5f}, gradients32[WIDTH] = {0.5f, 4, -1};
	bool single = dtype == WEIR_F32;
	weir_optimizer *optimizer = optimizer_of(kind);
	weir_var *var =
		kit_var("w", kit_tensor(dtype, kit_shape(1, WIDTH), single ? (const void *)start32 : (const void *)start));
	weir_graph *graph = kit_graph();
	weir_output g = kit_constant(
		graph, kit_tensor(dtype, kit_shape(1, WIDTH), single ? (const void *)gradients32 : (const void *)gradients));
	double w[WIDTH] = {1, -2, 0.5}, a[WIDTH] = {0}, b[WIDTH] = {0};
	weir_session *session;
	weir_output step;
	weir_error error;

	OK(weir_op_apply(graph, NULL, optimizer, &var, &g, 1, &step, NULL, &error));
	session = kit_session(graph, 0);
	for (int t = 1; t <= 3; t++) {
		cr_expect_eq(kit_fetch_i64(session, step), t);
		for (size_t i = 0; i < WIDTH; i++) {
			expect_rule(kind, gradients[i], &w[i], &a[i], &b[i], t);
			cr_expect_float_eq(var_element(var, i), w[i], single ? 1e-5 : 1e-12, "kind %d, step %d, element %zu", kind,
			                   t, i);
		}
	}
	cr_expect_eq(steps_of(optimizer), 3);
	kit_end(session, graph);
	destroy_optimizer(optimizer);
	weir_var_destroy(var, NULL);
}

Test(optimizer, each_rule_is_as_it_is_defined)
{
	for (int kind = WEIR_OPTIMIZER_DESCENT; kind <= WEIR_OPTIMIZER_ADAM; kind++) {
		check_rule((enum weir_optimizer_kind)kind, WEIR_F32);
		check_rule((enum weir_optimizer_kind)kind, WEIR_F64);
	}
}

Test(optimizer, the_rate_may_be_an_output)
{
	weir_optimizer *optimizer = optimizer_of(WEIR_OPTIMIZER_DESCENT);
	weir_var *var = kit_var("w", kit_f32(1));
	weir_graph *graph = kit_graph();
	weir_output g = kit_constant(graph, kit_f32(2)), rate = kit_constant(graph, kit_f32(0.25f)), step;
	weir_session *session;
	weir_error error;

	OK(weir_op_apply_at(graph, NULL, optimizer, rate, &var, &g, 1, &step, NULL, &error));
	session = kit_session(graph, 0);
	cr_expect_eq(kit_fetch_i64(session, step), 1);
	cr_expect_float_eq(kit_var_f32(var, 0), 0.5f, 1e-6f);
	kit_end(session, graph);
	destroy_optimizer(optimizer);
	weir_var_destroy(var, NULL);
}

/* Gives what was released last, if the size is the same. */
struct reuse {
	void *block;
	size_t size;
};

static void *reuse_allocate(void *context, size_t size, size_t align)
{
	struct reuse *reuse = context;
	void *block = reuse->block;

	if (block == NULL || reuse->size != size)
		return aligned_alloc(align, (size + align - 1) / align * align);
	reuse->block = NULL;
	return block;
}

static void reuse_release(void *context, void *block, size_t size, size_t align)
{
	struct reuse *reuse = context;

	(void)align;
	if (size != reuse->size || reuse->block != NULL)
		free(block);
	else
		reuse->block = block;
}

static weir_var *var_by(const weir_allocator *allocator, weir_tensor *initial)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .name = "w", .dtype = WEIR_F32, .allocator = allocator};
	weir_var *var = NULL;

	cr_assert_eq(weir_var_create(initial, &options, &var, NULL), WEIR_OK);
	weir_tensor_release(initial);
	return var;
}

static void step_once(weir_optimizer *optimizer, weir_var *var, weir_tensor *gradient)
{
	weir_graph *graph = kit_graph();
	weir_output g = kit_constant(graph, gradient), step;
	weir_session *session;
	weir_error error;

	OK(weir_op_apply(graph, NULL, optimizer, &var, &g, 1, &step, NULL, &error));
	session = kit_session(graph, 0);
	(void)kit_fetch_i64(session, step);
	kit_end(session, graph);
}

/* The slots of the first variable, which is gone, have another shape and another past. */
Test(optimizer, a_variable_at_the_address_of_an_earlier_one_has_its_own_slots)
{
	const float two[2] = {1, 2};
	struct reuse reuse = {NULL, sizeof(struct weir_var)};
	weir_allocator allocator = {.allocate = reuse_allocate, .release = reuse_release, .context = &reuse};
	weir_optimizer *optimizer = optimizer_of(WEIR_OPTIMIZER_MOMENTUM);
	weir_var *first = var_by(&allocator, kit_f32(1)), *second;

	step_once(optimizer, first, kit_f32(2));
	weir_var_destroy(first, NULL);
	cr_assert_eq(weir_reclaim_flush(weir_deadline_in(KIT_PATIENCE_NS)), WEIR_OK);
	second = var_by(&allocator, kit_tensor(WEIR_F32, kit_shape(1, 2), two));
	cr_assert_eq(second, first);
	step_once(optimizer, second, kit_tensor(WEIR_F32, kit_shape(1, 2), two));
	cr_expect_float_eq(kit_var_f32(second, 1), 2 - 0.125f * 2, 1e-6f);
	cr_expect_eq(weir_optimizer_variable_count(optimizer), 3);
	destroy_optimizer(optimizer);
	weir_var_destroy(second, NULL);
	cr_assert_eq(weir_reclaim_flush(weir_deadline_in(KIT_PATIENCE_NS)), WEIR_OK);
	free(reuse.block);
}

Test(optimizer, slots_are_variables_with_names_and_shared_by_all_steps)
{
	weir_optimizer *optimizer = optimizer_of(WEIR_OPTIMIZER_ADAM);
	weir_var *vars[2] = {kit_var("weights", kit_f32(1)), kit_var("bias", kit_f32(2))}, *all[5] = {NULL};
	const char *const names[5] = {"adam/step", "bias/adam/m", "bias/adam/v", "weights/adam/m", "weights/adam/v"};
	weir_graph *graph = kit_graph();
	weir_output g[2] = {kit_constant(graph, kit_f32(1)), kit_constant(graph, kit_f32(1))}, step;
	weir_error error;

	cr_expect_eq(weir_optimizer_variable_count(optimizer), 1);
	OK(weir_op_apply(graph, NULL, optimizer, vars, g, 2, &step, NULL, &error));
	OK(weir_op_apply(graph, NULL, optimizer, vars, g, 2, &step, NULL, &error));
	cr_assert_eq(weir_optimizer_variable_count(optimizer), 5);
	cr_expect_eq(weir_optimizer_variables(optimizer, all, 4, &error), WEIR_OUT_OF_RANGE);
	OK(weir_optimizer_variables(optimizer, all, 5, &error));
	for (int i = 0; i < 5; i++)
		cr_expect_str_eq(weir_var_name(all[i]), names[i]);
	cr_expect_eq(weir_optimizer_destroy(optimizer, &error), WEIR_FAILED_PRECONDITION);
	cr_expect_str_eq(error.message, "weir_optimizer_destroy: a graph still has a step of optimizer \"adam\"");
	OK(weir_graph_destroy(graph, &error));
	destroy_optimizer(optimizer);
	for (int i = 0; i < 2; i++)
		weir_var_destroy(vars[i], NULL);
}

/* Room for what one variable needs, and one more, which stays NULL. */
struct listing {
	weir_optimizer *optimizer;
	weir_var *all[4];
	enum weir_status status;
};

static void list_three(void *context)
{
	struct listing *listing = context;

	listing->status = weir_optimizer_variables(listing->optimizer, listing->all, 3, NULL);
}

/* Wherever the list stands still while another step adds slots, it writes no more than it was asked for. */
Test(optimizer, a_list_beside_a_new_step_stays_in_its_room)
{
	struct listing listing;
	struct stepped call = {.call = list_three, .context = &listing};
	weir_var *vars[2] = {kit_var("weights", kit_f32(1)), kit_var("bias", kit_f32(2))};

	stepped_or_skip();
	for (size_t at = 0, stands = 1; stands != 0; at += stepped_stride(1)) {
		weir_graph *graph = kit_graph();
		weir_output g = kit_constant(graph, kit_f32(1)), step;
		weir_error error;

		listing = (struct listing){.optimizer = optimizer_of(WEIR_OPTIMIZER_ADAM)};
		OK(weir_op_apply(graph, NULL, listing.optimizer, &vars[0], &g, 1, &step, NULL, &error));
		stands = (size_t)stepped_start(&call, at);
		OK(weir_op_apply(graph, NULL, listing.optimizer, &vars[1], &g, 1, &step, NULL, &error));
		stepped_finish(&call);
		cr_expect(listing.status == WEIR_OK || listing.status == WEIR_OUT_OF_RANGE);
		cr_expect(listing.status != WEIR_OK || listing.all[2] != NULL);
		cr_expect_null(listing.all[3], "stopped at %zu", at);
		OK(weir_graph_destroy(graph, &error));
		destroy_optimizer(listing.optimizer);
	}
	for (int i = 0; i < 2; i++)
		weir_var_destroy(vars[i], NULL);
}

/* -- many threads ---------------------------------------------------------------------------------- */

enum { THREADS = 8, STEPS = 40, LOOKS = 60 };

/*
 * The gradient is 1 everywhere, the rate is a power of two and the momentum 1/2: so after n steps of
 * MOMENTUM, w and a are known exactly, whoever made the steps, in whatever order.
 */
struct crowd {
	weir_optimizer *optimizer;
	weir_var *var, *vars[3]; /* number of steps, slot, variable */
	weir_session *session;
	weir_output step;
	weir_callable *callable;
	double a[THREADS * STEPS + 1], w[THREADS * STEPS + 1];
	int64_t seen[THREADS * STEPS + 1]; /* by step: how many threads made it */
	_Atomic(int) failures;
};

static void *make_steps(void *context)
{
	struct crowd *crowd = context;

	for (int i = 0; i < STEPS; i++) {
		weir_tensor *result;

		if (weir_callable_run(crowd->callable, NULL, &result, WEIR_NO_DEADLINE, NULL, NULL, NULL) != WEIR_OK) {
			weiri_fetch_add_relaxed(&crowd->failures, 1);
			return NULL;
		}
		/* Each step has one maker. */
		crowd->seen[*(const int64_t *)weir_tensor_data(result)]++;
		weir_tensor_release(result);
	}
	return NULL;
}

/* Returns false if the snapshot has values that are not of one step. */
static bool is_whole(const struct crowd *crowd, weir_read reads[])
{
	int64_t step = *(const int64_t *)weir_tensor_data(reads[0].tensor);

	for (size_t i = 0; i < (size_t)weir_tensor_element_count(reads[1].tensor); i += 37) {
		if (((const double *)weir_tensor_data(reads[1].tensor))[i] != crowd->a[step] ||
		    ((const double *)weir_tensor_data(reads[2].tensor))[i] != crowd->w[step])
			return false;
	}
	return true;
}

static void look(struct crowd *crowd)
{
	weir_read reads[3];

	cr_assert_eq(weir_var_snapshot(crowd->vars, 3, reads, NULL), WEIR_OK);
	cr_expect(is_whole(crowd, reads), "a step was seen half");
	weir_read_release_many(reads, 3);
}

static void begin_crowd(struct crowd *crowd, weir_graph *graph, int64_t elements)
{
	weir_shape shape = {1, {elements}};
	weir_tensor_builder *builder;
	weir_tensor *ones, *zeros;
	weir_output g;
	weir_error error;

	for (int n = 1; n <= THREADS * STEPS; n++) {
		crowd->a[n] = 0.5 * crowd->a[n - 1] + 1;
		crowd->w[n] = crowd->w[n - 1] - 0.125 * crowd->a[n];
	}
	OK(weir_tensor_builder_create(WEIR_F64, &shape, NULL, &builder, &error));
	OK(weir_tensor_builder_finish(builder, &zeros));
	OK(weir_tensor_builder_create(WEIR_F64, &shape, NULL, &builder, &error));
	for (int64_t i = 0; i < elements; i++)
		((double *)weir_tensor_builder_data(builder))[i] = 1;
	OK(weir_tensor_builder_finish(builder, &ones));
	crowd->optimizer = optimizer_of(WEIR_OPTIMIZER_MOMENTUM);
	crowd->var = kit_var("w", zeros);
	g = kit_constant(graph, ones);
	OK(weir_op_apply(graph, "apply", crowd->optimizer, &crowd->var, &g, 1, &crowd->step, NULL, &error));
	OK(weir_optimizer_variables(crowd->optimizer, crowd->vars, 2, &error));
	crowd->vars[2] = crowd->var;
	crowd->session = kit_session(graph, 0);
	OK(weir_session_compile(crowd->session, NULL, 0, &crowd->step, 1, NULL, 0, NULL, &crowd->callable, &error));
}

static void end_crowd(struct crowd *crowd, weir_graph *graph)
{
	weir_callable_release(crowd->callable);
	kit_end(crowd->session, graph);
	destroy_optimizer(crowd->optimizer);
	weir_var_destroy(crowd->var, NULL);
}

static void run_crowd(int64_t elements)
{
	static struct crowd crowd;
	weir_graph *graph = kit_graph();
	pthread_t threads[THREADS];

	crowd = (struct crowd){.optimizer = NULL};
	begin_crowd(&crowd, graph, elements);
	for (int i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, make_steps, &crowd), 0);
	for (int i = 0; i < LOOKS; i++)
		look(&crowd);
	for (int i = 0; i < THREADS; i++)
		(void)pthread_join(threads[i], NULL);
	look(&crowd);
	cr_expect_eq(crowd.failures, 0);
	cr_expect_eq(steps_of(crowd.optimizer), THREADS * STEPS, "%d steps were lost",
	             THREADS * STEPS - (int)steps_of(crowd.optimizer));
	for (int n = 1; n <= THREADS * STEPS; n++)
		cr_expect_eq(crowd.seen[n], 1, "step %d was made %d times", n, (int)crowd.seen[n]);
	end_crowd(&crowd, graph);
}

Test(optimizer, eight_threads_lose_no_step_and_show_none_half)
{
	run_crowd(5);
}

/*
 * So large that steps take turns; and the budget of retired bytes is less than one step replaces. If a
 * step waited for it while it held the values from which it computed, it would wait for itself, as soon as
 * another step replaces them.
 */
Test(optimizer, eight_threads_that_take_turns_lose_no_step)
{
	uint64_t budget = weir_reclaim_budget();

	weir_reclaim_set_budget(UINT64_C(64) << 10);
	run_crowd(40 << 10);
	weir_reclaim_set_budget(budget);
}

/* Another writer of the variable: no step fails, and none of its writes is lost either. */
static void *add_to_it(void *context)
{
	struct crowd *crowd = context;
	weir_tensor *change = NULL;
	double sixteen[5] = {16, 16, 16, 16, 16};

	if (weir_tensor_copy_of(WEIR_F64, &(weir_shape){1, {5}}, sixteen, NULL, &change) != WEIR_OK)
		return NULL;
	for (int i = 0; i < STEPS; i++) {
		if (weir_var_assign_add(crowd->var, change, WEIR_NO_DEADLINE, NULL, NULL) != WEIR_OK)
			weiri_fetch_add_relaxed(&crowd->failures, 1);
	}
	weir_tensor_release(change);
	return NULL;
}

Test(optimizer, steps_begin_again_beside_other_writers)
{
	static struct crowd crowd;
	weir_graph *graph = kit_graph();
	pthread_t threads[2];

	crowd = (struct crowd){.optimizer = NULL};
	begin_crowd(&crowd, graph, 5);
	cr_assert_eq(pthread_create(&threads[0], NULL, make_steps, &crowd), 0);
	cr_assert_eq(pthread_create(&threads[1], NULL, add_to_it, &crowd), 0);
	for (int i = 0; i < 2; i++)
		(void)pthread_join(threads[i], NULL);
	cr_expect_eq(crowd.failures, 0);
	cr_expect_float_eq(var_element(crowd.var, 0), crowd.w[STEPS] + 16 * STEPS, 1e-9);
	end_crowd(&crowd, graph);
}

/* -- refusals -------------------------------------------------------------------------------------- */

static void refuse_options(struct weir_optimizer_options options, const char *message)
{
	weir_optimizer *optimizer = NULL;
	weir_error error;

	options.struct_size = sizeof(options);
	cr_expect_eq(weir_optimizer_create(&options, &optimizer, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, message);
	cr_expect_null(optimizer);
}

Test(optimizer, bad_options_are_refused)
{
	refuse_options((struct weir_optimizer_options){.kind = 0}, "weir_optimizer_create: 0 is not a kind");
	refuse_options((struct weir_optimizer_options){.kind = WEIR_OPTIMIZER_ADAM, .rate = -1},
	               "weir_optimizer_create: rate is -1");
	refuse_options((struct weir_optimizer_options){.kind = WEIR_OPTIMIZER_ADAM, .beta2 = 1},
	               "weir_optimizer_create: beta2 is 1");
	cr_expect_eq(weir_optimizer_create(NULL, &(weir_optimizer *){NULL}, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_optimizer_destroy(NULL, NULL), WEIR_OK);
}

Test(optimizer, what_cannot_fit_is_refused_by_name)
{
	struct weir_var_options open = {WEIR_VAR_OPTIONS_INIT, .name = "open", .dtype = WEIR_F32};
	weir_optimizer *optimizer = optimizer_of(WEIR_OPTIMIZER_ADAM);
	weir_var *w = kit_var("w", kit_f32(1)), *count = kit_var("count", kit_i64(0)), *empty, *pair[2] = {w, w};
	weir_graph *graph = kit_graph();
	weir_output one = kit_constant(graph, kit_f32(1)), whole = kit_constant(graph, kit_i64(1)), step = {NULL, 0};
	weir_output row = kit_constant(graph, kit_tensor(WEIR_F32, kit_shape(1, 2), (const float[]){1, 2}));
	weir_output ones[2] = {one, one};
	weir_error error;

	OK(weir_var_create(NULL, &open, &empty, &error));
	cr_expect_eq(weir_op_apply(graph, "a", optimizer, &w, &row, 1, &step, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "apply \"a\": variable \"w\" is f32 [], and its gradient is f32 [2]");
	cr_expect_eq(weir_op_apply(graph, "a", optimizer, &count, &whole, 1, &step, NULL, &error), WEIR_UNIMPLEMENTED);
	cr_expect_str_eq(error.message, "apply \"a\": variable \"count\" is i64, expected f32 or f64");
	cr_expect_eq(weir_op_apply(graph, "a", optimizer, pair, ones, 2, &step, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "apply \"a\": variable \"w\" occurs twice");
	cr_expect_eq(weir_op_apply(graph, "a", optimizer, &empty, &one, 1, &step, NULL, &error), WEIR_FAILED_PRECONDITION);
	cr_expect_str_eq(error.message, "apply \"a\": variable \"open\" has no value, and so its slots no shape");
	cr_expect_eq(weir_op_apply_at(graph, "a", optimizer, whole, &w, &one, 1, &step, NULL, &error), WEIR_UNIMPLEMENTED);
	cr_expect_eq(weir_op_apply(graph, "a", optimizer, &w, &one, 0, &step, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_apply(graph, "a", NULL, &w, &one, 1, &step, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_apply(graph, "a", optimizer, &w, &one, 1, NULL, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_apply(NULL, "a", optimizer, &w, &one, 1, &step, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_null(step.node);
	OK(weir_graph_destroy(graph, &error));
	destroy_optimizer(optimizer);
	weir_var_destroy(w, NULL);
	weir_var_destroy(count, NULL);
	weir_var_destroy(empty, NULL);
}

/* As after the restore of another model. */
Test(optimizer, a_slot_of_another_shape_fails_the_step_and_changes_nothing)
{
	struct weir_var_options open = {WEIR_VAR_OPTIONS_INIT, .name = "w", .dtype = WEIR_F32};
	weir_optimizer *optimizer = optimizer_of(WEIR_OPTIMIZER_MOMENTUM);
	weir_tensor *two = kit_tensor(WEIR_F32, kit_shape(1, 2), (const float[]){1, 2}), *one = kit_f32(5), *result = NULL;
	weir_graph *graph = kit_graph();
	weir_output g, step;
	weir_var *w, *all[2];
	weir_session *session;
	weir_error error;

	OK(weir_var_create(two, &open, &w, &error));
	OK(weir_op_constant(graph, NULL, two, &g, &error));
	OK(weir_op_apply(graph, "a", optimizer, &w, &g, 1, &step, NULL, &error));
	OK(weir_optimizer_variables(optimizer, all, 2, &error));
	OK(weir_var_assign(all[1], one, WEIR_NO_DEADLINE, NULL, &error));
	session = kit_session(graph, 0);
	cr_expect_eq(weir_session_run(session, NULL, 0, &step, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "apply \"a\": variable \"w\" is f32 [2], and its w/momentum/a is f32 []"),
	                   "%s", error.message);
	cr_expect_eq(steps_of(optimizer), 0);
	cr_expect_eq(weir_var_version(w), 1);
	kit_end(session, graph);
	destroy_optimizer(optimizer);
	weir_var_destroy(w, NULL);
	weir_tensor_release(two);
	weir_tensor_release(one);
}

/* -- failing allocations ------------------------------------------------------------------------------ */

static enum weir_status make_a_step(const weir_allocator *allocator, void *context)
{
	struct weir_optimizer_options options = {WEIR_OPTIMIZER_OPTIONS_INIT, .kind = WEIR_OPTIMIZER_ADAM,
	                                         .allocator = allocator};
	struct weir_graph_options graph_options = {WEIR_GRAPH_OPTIONS_INIT, .allocator = allocator};
	struct weir_session_options session_options = {WEIR_SESSION_OPTIONS_INIT, .flags = WEIR_SESSION_NO_THREADS,
	                                               .allocator = allocator};
	weir_optimizer *optimizer = NULL;
	weir_session *session = NULL;
	weir_tensor *result = NULL;
	weir_graph *graph = NULL;
	weir_output g, step;
	weir_var *var = kit_var("w", kit_f32(1));
	enum weir_status status = weir_optimizer_create(&options, &optimizer, NULL);

	(void)context;
	if (status == WEIR_OK)
		status = weir_graph_create(&graph_options, &graph, NULL);
	if (status == WEIR_OK)
		status = weir_op_random_uniform(graph, NULL, WEIR_F32, &weir_shape_scalar, 0, 1, 0, &g, NULL);
	if (status == WEIR_OK)
		status = weir_op_apply(graph, NULL, optimizer, &var, &g, 1, &step, NULL, NULL);
	if (status == WEIR_OK)
		status = weir_session_create(graph, &session_options, &session, NULL);
	if (status == WEIR_OK)
		status = weir_session_run(session, NULL, 0, &step, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, NULL);
	cr_expect_eq(weir_var_version(var), status == WEIR_OK ? 2 : 1, "a step that fails must change nothing");
	weir_tensor_release(result);
	(void)weir_session_destroy(session, NULL);
	(void)weir_graph_destroy(graph, NULL);
	cr_expect_eq(weir_optimizer_destroy(optimizer, NULL), WEIR_OK);
	weir_var_destroy(var, NULL);
	(void)weir_reclaim_flush(weir_deadline_in(KIT_PATIENCE_NS));
	return status;
}

/* The newest values of the variable are of the optimizer's allocator. */
Test(optimizer, a_step_survives_every_allocation_failing)
{
	cr_expect_gt(fail_each_allocation(make_a_step, NULL), 20);
}
