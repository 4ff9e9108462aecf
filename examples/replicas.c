/*
 * replicas.c - three mirrors of a model learn a line from shards of each batch, and change together.
 *
 * Each replica computes the gradient of its shard with its own mirror. The gradients are averaged, and
 * one commit gives all mirrors their next version. A snapshot never shows two mirrors that differ.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <weir/flow.h>

enum { REPLICAS = 3, ROWS = 96, STEPS = 200 };

static weir_error error;

static void must(enum weir_status status)
{
	if (status != WEIR_OK) {
		fprintf(stderr, "replicas: %s (%s)\n", error.message, weir_status_name(status));
		exit(1);
	}
}

/* d/dw of the mean of (w x - y)^2 is the mean of 2 x (w x - y). */
static enum weir_status gradient(void *context, weir_graph *body, const struct weir_argument arguments[],
                                 weir_output results[], weir_error *e)
{
	weir_output two, w, product, difference, slope, mean;
	weir_tensor *number = NULL;

	(void)context;
	if (weir_tensor_scalar_f32(2, &number) || weir_op_constant(body, NULL, number, &two, e) ||
	    weir_op_read(body, NULL, arguments[0].var, &w, e) ||
	    weir_op_mul(body, NULL, arguments[1].output, w, &product, e) ||
	    weir_op_sub(body, NULL, product, arguments[2].output, &difference, e) ||
	    weir_op_mul(body, NULL, difference, arguments[1].output, &slope, e) ||
	    weir_op_reduce_mean(body, NULL, slope, &mean, e) || weir_op_mul(body, NULL, mean, two, &results[0], e)) {
		weir_tensor_release(number);
		return e->code;
	}
	weir_tensor_release(number);
	return WEIR_OK;
}

static weir_function *make_function(void)
{
	static const struct weir_parameter parameters[] = {{"w", WEIR_PARAMETER_VAR, WEIR_F32, NULL},
	                                                   {"x", WEIR_PARAMETER_TENSOR, WEIR_F32, NULL},
	                                                   {"y", WEIR_PARAMETER_TENSOR, WEIR_F32, NULL}};
	struct weir_function_options options = {WEIR_FUNCTION_OPTIONS_INIT, .name = "gradient",   .build = gradient,
	                                        .parameters = parameters,   .parameter_count = 3, .result_count = 1};
	weir_function *function;

	must(weir_function_create(&options, &function, &error));
	return function;
}

static weir_mirrors *make_mirrors(void)
{
	struct weir_mirrored w = {.name = "w"};
	struct weir_mirrors_options options = {WEIR_MIRRORS_OPTIONS_INIT, .variables = &w, .variable_count = 1};
	weir_mirrors *mirrors;

	must(weir_tensor_scalar_f32(0, &w.initial));
	must(weir_mirrors_create(REPLICAS, &options, &mirrors, &error));
	weir_tensor_release(w.initial);
	return mirrors;
}

/* Rows of the line y = 3 x. */
static void add_batch(weir_graph *graph, weir_output batch[2])
{
	weir_shape shape = {.rank = 1, .dims = {ROWS}};
	float x[ROWS], y[ROWS];
	weir_tensor *tensors[2];

	for (int i = 0; i < ROWS; i++) {
		x[i] = (float)(i % 17) / 8.0f - 1.0f;
		y[i] = 3.0f * x[i];
	}
	must(weir_tensor_copy_of(WEIR_F32, &shape, x, NULL, &tensors[0]));
	must(weir_tensor_copy_of(WEIR_F32, &shape, y, NULL, &tensors[1]));
	for (int i = 0; i < 2; i++) {
		must(weir_op_constant(graph, NULL, tensors[i], &batch[i], &error));
		weir_tensor_release(tensors[i]);
	}
}

/* Returns the node that commits a step. */
static weir_node *build_step(weir_graph *graph, weir_mirrors *mirrors, weir_function *function)
{
	weir_output now[REPLICAS + 1], batch[2], gradients[REPLICAS], means[REPLICAS], next[REPLICAS], rate, out;
	weir_tensor *number;
	weir_node *calls;

	add_batch(graph, batch);
	must(weir_tensor_scalar_f32(0.2f, &number));
	must(weir_op_constant(graph, "rate", number, &rate, &error));
	weir_tensor_release(number);
	/* The commit below succeeds only if nothing has changed since this snapshot: so all read one version. */
	must(weir_op_snapshot(graph, "now", weir_mirrors_vars(mirrors), REPLICAS, now, &error));
	must(weir_op_replicate(graph, "gradients", function, mirrors, batch, 2, gradients, &calls, &error));
	must(weir_op_all_reduce(graph, "mean", WEIR_REDUCE_MEAN, gradients, REPLICAS, NULL, means, &error));
	for (int i = 0; i < REPLICAS; i++) {
		weir_output change;

		must(weir_op_mul(graph, NULL, means[i], rate, &change, &error));
		must(weir_op_sub(graph, NULL, now[i], change, &next[i], &error));
	}
	must(weir_op_commit(graph, "step", weir_mirrors_vars(mirrors), next, REPLICAS, now[REPLICAS], &out, &error));
	return out.node;
}

/* Returns the value that all mirrors have at one instant. */
static float check_mirrors(weir_mirrors *mirrors)
{
	weir_read reads[REPLICAS];
	float value;

	must(weir_var_snapshot(weir_mirrors_vars(mirrors), REPLICAS, reads, &error));
	value = *(const float *)weir_tensor_data(reads[0].tensor);
	for (int i = 1; i < REPLICAS; i++) {
		if (*(const float *)weir_tensor_data(reads[i].tensor) != value || reads[i].version != reads[0].version) {
			fprintf(stderr, "replicas: mirror %d differs\n", i);
			exit(1);
		}
	}
	weir_read_release_many(reads, REPLICAS);
	return value;
}

int main(void)
{
	struct weir_session_options options = {WEIR_SESSION_OPTIONS_INIT, .threads = REPLICAS};
	weir_mirrors *mirrors = make_mirrors();
	weir_function *function = make_function();
	weir_graph *graph;
	weir_session *session;
	weir_node *step;
	float w = 0;

	must(weir_graph_create(NULL, &graph, &error));
	step = build_step(graph, mirrors, function);
	must(weir_session_create(graph, &options, &session, &error));
	for (int i = 0; i < STEPS; i++) {
		must(weir_session_run(session, NULL, 0, NULL, 0, NULL, &step, 1, WEIR_NO_DEADLINE, NULL, &error));
		w = check_mirrors(mirrors);
	}
	must(weir_session_destroy(session, &error));
	must(weir_graph_destroy(graph, &error));
	must(weir_function_destroy(function, &error));
	must(weir_mirrors_destroy(mirrors, &error));
	printf("%d mirrors learned w = %.3f in %d steps\n", REPLICAS, (double)w, STEPS);
	return fabsf(w - 3.0f) < 0.001f ? 0 : 1;
}
