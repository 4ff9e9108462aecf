/*
 * planted_step.c - makes steps of an optimizer, and looks at the moment at which each is published
 * whether all of it is there.
 *
 * usage: planted_NAME whole|half: what the look is expected to see. A completion that waits for the next
 * number of steps runs on the thread that publishes it, right then. Exit status: 0 as expected, 1 not.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/flow.h>

enum { STEPS = 5, STEP = 0, SLOT = 1, WEIGHTS = 2, VARIABLES = 3 };

static weir_var *vars[VARIABLES];
static int looks, halves;

static void must(enum weir_status status, const weir_error *error)
{
	if (status == WEIR_OK)
		return;
	(void)fprintf(stderr, "a call failed: %s\n", error->message);
	exit(1);
}

/* The gradient is 1, the momentum 1/2 and the rate 1/8. */
static bool is_whole(weir_read reads[])
{
	double a = 0, w = 0;

	for (int64_t n = *(const int64_t *)weir_tensor_data(reads[STEP].tensor); n > 0; n--) {
		a = 0.5 * a + 1;
		w -= 0.125 * a;
	}
	return *(const double *)weir_tensor_data(reads[SLOT].tensor) == a &&
	       *(const double *)weir_tensor_data(reads[WEIGHTS].tensor) == w;
}

static void on_step(void *context, enum weir_status status, const weir_error *error, weir_read *read)
{
	weir_read reads[VARIABLES];
	weir_error e;

	(void)context;
	must(status, error);
	weir_read_release(read);
	must(weir_var_snapshot(vars, VARIABLES, reads, &e), &e);
	looks++;
	halves += !is_whole(reads);
	weir_read_release_many(reads, VARIABLES);
}

static weir_tensor *number(double value)
{
	weir_tensor *tensor;

	if (weir_tensor_scalar_f64(value, &tensor) != WEIR_OK)
		exit(1);
	return tensor;
}

static void make_steps(weir_session *session, weir_output step)
{
	weir_error e;

	for (int i = 0; i < STEPS; i++) {
		weir_pending *handle;
		weir_tensor *result;

		must(weir_var_start_wait(vars[STEP], weir_var_version(vars[STEP]), on_step, NULL, &handle, &e), &e);
		must(weir_session_run(session, NULL, 0, &step, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, &e), &e);
		weir_tensor_release(result);
		weir_pending_release(handle);
	}
}

int main(int count, char *words[])
{
	struct weir_optimizer_options options = {WEIR_OPTIMIZER_OPTIONS_INIT, .kind = WEIR_OPTIMIZER_MOMENTUM,
	                                         .rate = 0.125, .momentum = 0.5};
	struct weir_var_options weights = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_F64, .shape = &weir_shape_scalar};
	bool half = count == 2 && strcmp(words[1], "half") == 0;
	weir_tensor *zero = number(0), *one = number(1);
	weir_optimizer *optimizer;
	weir_session *session;
	weir_output g, step;
	weir_graph *graph;
	weir_error e;

	must(weir_var_create(zero, &weights, &vars[WEIGHTS], &e), &e);
	must(weir_optimizer_create(&options, &optimizer, &e), &e);
	must(weir_graph_create(NULL, &graph, &e), &e);
	must(weir_op_constant(graph, NULL, one, &g, &e), &e);
	must(weir_op_apply(graph, NULL, optimizer, &vars[WEIGHTS], &g, 1, &step, NULL, &e), &e);
	must(weir_optimizer_variables(optimizer, vars, 2, &e), &e);
	must(weir_session_create(graph, NULL, &session, &e), &e);
	make_steps(session, step);
	must(weir_session_destroy(session, &e), &e);
	must(weir_graph_destroy(graph, &e), &e);
	must(weir_optimizer_destroy(optimizer, &e), &e);
	must(weir_var_destroy(vars[WEIGHTS], &e), &e);
	weir_tensor_release(zero);
	weir_tensor_release(one);
	(void)printf("%d looks, %d saw a step half\n", looks, halves);
	return looks == STEPS && (halves != 0) == half ? 0 : 1;
}
