/*
 * test_op_kernel.c - functions of the user as nodes: their arguments, their obligations, and how a
 * step leaves one of them behind.
 */
#include <pthread.h>
#include <stdio.h>

#include "graph_kit.h"
#include "run/countdown.h"

static const weir_shape scalar = {.rank = 0, .dims = {0}};
static const struct weir_output_type f32_scalar = {WEIR_F32, &scalar};

/* Adds one to its input and counts its calls. */
static enum weir_status increment(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	struct weiri_serial *calls = context;
	float value = *(const float *)weir_tensor_data(call->inputs[0]) + 1;

	(void)error;
	if (calls != NULL)
		(void)weiri_serial_take(calls);
	return weir_tensor_scalar_f32(value, &call->outputs[0]);
}

Test(op_kernel, a_kernel_computes_from_its_inputs)
{
	for (size_t threads = 0; threads <= 2; threads++) {
		weir_graph *graph = kit_graph();
		weir_session *session = kit_session(graph, threads);
		weir_output x = kit_constant(graph, kit_f32(1));
		struct weiri_serial calls;
		weir_output out[2];
		weir_output sum;

		weiri_serial_init(&calls);
		for (int i = 0; i < 2; i++)
			cr_assert_eq(weir_op_kernel(graph, NULL, KIT_KERNEL(increment), &calls, &x, 1, &f32_scalar, 1, NULL, 0,
			                            &out[i], NULL, NULL),
			             WEIR_OK);
		cr_assert_eq(weir_op_add(graph, NULL, out[0], out[1], &sum, NULL), WEIR_OK);
		for (int i = 0; i < 100; i++)
			cr_assert_eq(kit_fetch_f32(session, sum), 4.0f);
		cr_expect_eq(weiri_serial_take(&calls), 200);
		kit_end(session, graph);
	}
}

static enum weir_status note_the_name(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	(void)error;
	(void)snprintf(context, 32, "%s", call->node);
	return WEIR_OK;
}

Test(op_kernel, a_kernel_is_told_the_name_of_its_node)
{
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	weir_node *node;
	char name[32] = "";

	cr_assert_eq(
		weir_op_kernel(graph, "measure", KIT_KERNEL(note_the_name), name, NULL, 0, NULL, 0, NULL, 0, NULL, &node, NULL),
		WEIR_OK);
	cr_assert_eq(kit_run_target(session, node, NULL), WEIR_OK);
	cr_expect_str_eq(name, "measure");
	kit_end(session, graph);
}

static enum weir_status fail(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	(void)context;
	cr_assert_eq(weir_tensor_scalar_f32(1, &call->outputs[0]), WEIR_OK);
	error->code = WEIR_DATA_LOSS;
	(void)strcpy(error->message, "line 7 has 63 columns");
	return WEIR_DATA_LOSS;
}

static enum weir_status forget_the_output(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	(void)context;
	(void)call;
	(void)error;
	return WEIR_OK;
}

static enum weir_status give_an_integer(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	(void)context;
	(void)error;
	return weir_tensor_scalar_i64(1, &call->outputs[0]);
}

static enum weir_status fail_without_a_word(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	(void)context;
	(void)call;
	(void)error;
	return WEIR_NOT_FOUND;
}

static void expect_failure(weir_kernel_fn *fn, enum weir_status status, const char *message)
{
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 1);
	weir_output out;
	weir_tensor *result = NULL;
	weir_error error;

	cr_assert_eq(
		weir_op_kernel(graph, "reader", KIT_KERNEL(fn), NULL, NULL, 0, &f32_scalar, 1, NULL, 0, &out, NULL, NULL),
		WEIR_OK);
	cr_expect_eq(weir_session_run(session, NULL, 0, &out, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, &error), status);
	cr_expect_str_eq(error.message, message);
	cr_expect_null(result);
	kit_end(session, graph);
}

Test(op_kernel, a_failing_kernel_fails_the_step_by_name)
{
	expect_failure(fail, WEIR_DATA_LOSS, "kernel \"reader\": line 7 has 63 columns");
	expect_failure(fail_without_a_word, WEIR_NOT_FOUND, "kernel \"reader\": WEIR_NOT_FOUND");
}

Test(op_kernel, a_kernel_that_breaks_its_word_fails_the_step)
{
	expect_failure(forget_the_output, WEIR_INVALID_ARGUMENT, "kernel \"reader\": the kernel did not set output 0");
	expect_failure(give_an_integer, WEIR_INVALID_ARGUMENT,
	               "kernel \"reader\": the kernel promised f32 [] as output 0, and gave i64 []");
}

Test(op_kernel, builders_refuse_bad_arguments)
{
	weir_graph *graph = kit_graph();
	weir_shape rank9 = {.rank = 9};
	struct weir_output_type no_dtype = {(enum weir_dtype)0, NULL};
	struct weir_output_type bad_rank = {WEIR_F32, &rank9};
	weir_output nothing = {NULL, 0};
	weir_output out;
	weir_node *node = NULL;
	weir_error error;

	cr_expect_eq(weir_op_kernel(graph, NULL, NULL, NULL, NULL, 0, NULL, 0, NULL, 0, NULL, &node, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_kernel(NULL, NULL, KIT_KERNEL(fail), NULL, NULL, 0, NULL, 0, NULL, 0, NULL, &node, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_kernel(graph, NULL, KIT_KERNEL(fail), NULL, NULL, 1, NULL, 0, NULL, 0, NULL, &node, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(
		weir_op_kernel(graph, NULL, KIT_KERNEL(fail), NULL, &nothing, 1, NULL, 0, NULL, 0, NULL, &node, &error),
		WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_kernel(graph, NULL, KIT_KERNEL(fail), NULL, NULL, 0, NULL, 1, NULL, 0, &out, &node, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(
		weir_op_kernel(graph, NULL, KIT_KERNEL(fail), NULL, NULL, 0, &f32_scalar, 1, NULL, 0, NULL, &node, &error),
		WEIR_INVALID_ARGUMENT);
	cr_expect_eq(
		weir_op_kernel(graph, NULL, KIT_KERNEL(fail), NULL, NULL, 0, &no_dtype, 1, NULL, 0, &out, &node, &error),
		WEIR_INVALID_ARGUMENT);
	cr_expect_eq(
		weir_op_kernel(graph, NULL, KIT_KERNEL(fail), NULL, NULL, 0, &bad_rank, 1, NULL, 0, &out, &node, &error),
		WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_kernel(graph, NULL, KIT_KERNEL(fail), NULL, NULL, 0, &f32_scalar, WEIR_KERNEL_MAX_OUTPUTS + 1,
	                            NULL, 0, &out, &node, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_null(node);
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
}

/* A kernel that runs until the test releases it, or until it sees that its token has fired. */
struct stubborn {
	int looks_at_the_token;
	struct weiri_latch started;
	struct weiri_latch let_go;
	struct weiri_latch ended;
};

static void init_stubborn(struct stubborn *s, int looks_at_the_token)
{
	s->looks_at_the_token = looks_at_the_token;
	weiri_latch_init(&s->started);
	weiri_latch_init(&s->let_go);
	weiri_latch_init(&s->ended);
}

static enum weir_status be_stubborn(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	struct stubborn *s = context;
	enum weir_status status = WEIR_OK;

	weiri_latch_set(&s->started);
	while (status == WEIR_OK && !weiri_latch_is_set(&s->let_go)) {
		if (s->looks_at_the_token)
			status = weir_cancel_cause(call->cancel, error);
		(void)sched_yield();
	}
	if (status == WEIR_OK)
		status = weir_tensor_scalar_f32(*(const float *)weir_tensor_data(call->inputs[0]), &call->outputs[0]);
	weiri_latch_set(&s->ended);
	return status;
}

static int is_set(void *context)
{
	return weiri_latch_is_set(context);
}

static int was_left_behind(const weir_error *error)
{
	return strstr(error->message, "left to end by themselves") != NULL;
}

Test(op_kernel, a_deadline_leaves_a_kernel_that_ignores_its_token_behind)
{
	struct kit_bounds options = {WEIR_NO_DEADLINE, NULL};
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 1);
	weir_output x = kit_placeholder(graph, "x", WEIR_F32, kit_shape(0));
	weir_tensor *value = kit_f32(7);
	struct weir_feed feed = {x, value};
	weir_tensor *result = NULL;
	struct stubborn stubborn;
	weir_output out;
	weir_error error = {.message = ""};

	init_stubborn(&stubborn, 0);
	cr_assert_eq(weir_op_kernel(graph, "stubborn", KIT_KERNEL(be_stubborn), &stubborn, &x, 1, &f32_scalar, 1, NULL, 0,
	                            &out, NULL, NULL),
	             WEIR_OK);
	/*
	 * The deadline may pass before the kernel has begun. Then the kernel is left out, and the test tries
	 * a later deadline.
	 */
	for (uint64_t length_ns = 20000000; !was_left_behind(&error) || !weiri_latch_is_set(&stubborn.started);
	     length_ns *= 2) {
		cr_assert(length_ns < KIT_PATIENCE_NS, "%s", error.message);
		options.deadline_ns = weir_deadline_in(length_ns);
		cr_expect_eq(
			weir_session_run(session, &feed, 1, &out, 1, &result, NULL, 0, options.deadline_ns, options.cancel, &error),
			WEIR_DEADLINE_EXCEEDED);
	}
	/* The kernel still reads the feed, so the session keeps it. */
	weir_tensor_release(value);
	cr_expect_not(weiri_latch_is_set(&stubborn.ended));
	cr_expect_null(result);
	kit_wait_for(is_set, &stubborn.started, "the kernel to start");
	weiri_latch_set(&stubborn.let_go);
	kit_end(session, graph);
	cr_expect(weiri_latch_is_set(&stubborn.ended), "destroy waits for kernels that were left behind");
}

struct firing {
	weir_cancel *token;
	struct stubborn *stubborn;
};

static void *fire_once_started(void *context)
{
	struct firing *firing = context;

	while (!weiri_latch_is_set(&firing->stubborn->started))
		(void)sched_yield();
	(void)weir_cancel_fire(firing->token, NULL);
	return NULL;
}

static void cancel_a_kernel(int looks_at_the_token)
{
	struct kit_bounds options = {WEIR_NO_DEADLINE, NULL};
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 1);
	weir_output x = kit_constant(graph, kit_f32(7));
	struct stubborn stubborn;
	struct firing firing;
	pthread_t thread;
	weir_tensor *result = NULL;
	weir_output out;

	init_stubborn(&stubborn, looks_at_the_token);
	cr_assert_eq(weir_op_kernel(graph, "kernel", KIT_KERNEL(be_stubborn), &stubborn, &x, 1, &f32_scalar, 1, NULL, 0,
	                            &out, NULL, NULL),
	             WEIR_OK);
	cr_assert_eq(weir_cancel_create(NULL, &options.cancel, NULL), WEIR_OK);
	firing = (struct firing){options.cancel, &stubborn};
	cr_assert_eq(pthread_create(&thread, NULL, fire_once_started, &firing), 0);
	cr_expect_eq(
		weir_session_run(session, NULL, 0, &out, 1, &result, NULL, 0, options.deadline_ns, options.cancel, NULL),
		WEIR_CANCELLED);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	weir_cancel_release(options.cancel);
	if (!looks_at_the_token)
		weiri_latch_set(&stubborn.let_go);
	kit_end(session, graph);
	cr_expect(weiri_latch_is_set(&stubborn.ended));
}

Test(op_kernel, a_cancel_reaches_a_kernel_through_its_token)
{
	cancel_a_kernel(1);
}

Test(op_kernel, a_cancel_leaves_a_kernel_that_ignores_it_behind)
{
	cancel_a_kernel(0);
}

/* A kernel that runs a step of the same session and waits for it. */
struct nested {
	weir_session *session;
	weir_output out;
	struct weiri_latch destroyed;
};

static enum weir_status run_nested(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	struct nested *nested = context;

	if (weir_session_destroy(nested->session, NULL) != WEIR_FAILED_PRECONDITION)
		weiri_latch_set(&nested->destroyed);
	return weir_session_run(nested->session, NULL, 0, &nested->out, 1, &call->outputs[0], NULL, 0, WEIR_NO_DEADLINE,
	                        NULL, error);
}

Test(op_kernel, kernels_that_run_the_session_do_not_exhaust_its_workers)
{
	enum { OUTER = 4 };

	for (size_t threads = 0; threads <= 2; threads++) {
		weir_graph *graph = kit_graph();
		struct nested nested = {.session = kit_session(graph, threads)};
		weir_output x = kit_constant(graph, kit_f32(1));
		weir_output total = kit_constant(graph, kit_f32(0));
		weir_output inner[2];
		weir_output outer;

		weiri_latch_init(&nested.destroyed);
		for (int i = 0; i < 2; i++)
			cr_assert_eq(weir_op_kernel(graph, NULL, KIT_KERNEL(increment), NULL, &x, 1, &f32_scalar, 1, NULL, 0,
			                            &inner[i], NULL, NULL),
			             WEIR_OK);
		cr_assert_eq(weir_op_add(graph, NULL, inner[0], inner[1], &nested.out, NULL), WEIR_OK);
		for (int i = 0; i < OUTER; i++) {
			cr_assert_eq(weir_op_kernel(graph, NULL, KIT_KERNEL(run_nested), &nested, NULL, 0, &f32_scalar, 1, NULL, 0,
			                            &outer, NULL, NULL),
			             WEIR_OK);
			cr_assert_eq(weir_op_add(graph, NULL, total, outer, &total, NULL), WEIR_OK);
		}
		for (int i = 0; i < 10; i++)
			cr_assert_eq(kit_fetch_f32(nested.session, total), 16.0f);
		cr_expect_not(weiri_latch_is_set(&nested.destroyed), "a kernel cannot destroy its session");
		kit_end(nested.session, graph);
	}
}

/* -- where a kernel runs ----------------------------------------------------------------------- */

struct place {
	pthread_t thread;
};

static enum weir_status note_place(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	(void)call;
	(void)error;
	((struct place *)context)->thread = pthread_self();
	return WEIR_OK;
}

/* Runs a kernel of that kind `times` times. Returns true if the last run was on this thread. */
static bool ends_here(const struct weir_kernel *kernel, int times, uint64_t deadline_ns)
{
	struct place place = {.thread = pthread_self()};
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 1);
	weir_node *node;

	cr_assert_eq(weir_op_kernel(graph, NULL, kernel, &place, NULL, 0, NULL, 0, NULL, 0, NULL, &node, NULL), WEIR_OK);
	for (int i = 0; i < times; i++)
		cr_assert_eq(weir_session_run(session, NULL, 0, NULL, 0, NULL, &node, 1, deadline_ns, NULL, NULL), WEIR_OK);
	kit_end(session, graph);
	return pthread_equal(place.thread, pthread_self()) != 0;
}

Test(op_kernel, a_kernel_runs_where_its_cost_says)
{
	struct weir_kernel kernel = {WEIR_KERNEL_INIT, .name = "kernel", .run = note_place};

	cr_expect_not(ends_here(&kernel, 1, WEIR_NO_DEADLINE), "nobody knows what it costs");
	kernel.cost_ns = 100;
	cr_expect(ends_here(&kernel, 1, WEIR_NO_DEADLINE));
	cr_expect(ends_here(&kernel, 1, weir_deadline_in(KIT_PATIENCE_NS)));
	kernel.cost_ns = 1000000;
	cr_expect_not(ends_here(&kernel, 20, WEIR_NO_DEADLINE), "what is declared counts, not what is measured");
}

/* On a busy machine a short run may take long, and then the next runs are elsewhere. */
Test(op_kernel, a_kernel_whose_runs_were_short_runs_here_unless_there_is_a_limit)
{
	struct weir_kernel kernel = {WEIR_KERNEL_INIT, .name = "kernel", .run = note_place};
	bool here = false;

	for (int i = 0; !here && i < 50; i++)
		here = ends_here(&kernel, 50, WEIR_NO_DEADLINE);
	cr_expect(here);
	cr_expect_not(ends_here(&kernel, 50, weir_deadline_in(KIT_PATIENCE_NS)));
}
