/*
 * linear.h - the model of the listings 000_1 and 000_2: y = x w + b, its mean squared error, and a step of
 * Adam, in one graph.
 */
#ifndef LINEAR_H
#define LINEAR_H

#include "listing.h"

enum { FEATURES = 10, ROWS = 100 };

struct linear {
	weir_var *variables[2]; /* weights f32 [10,1], bias f32 [1] */
	weir_optimizer *optimizer;
	weir_graph *graph;
	weir_session *session;
	weir_output x, y; /* fed: f32 [n,10], f32 [n,1] */
	weir_output loss, step;
	weir_output read_version; /* of the weights from which the loss was computed */
	/* data to learn: x is random, y = x (1, 2, ..., 10)' + 3 and some noise */
	weir_output data_x, data_y;
};

static inline weir_tensor *f32_tensor(weir_shape shape, const float values[])
{
	weir_tensor *tensor;

	must(weir_tensor_copy_of(WEIR_F32, &shape, values, NULL, &tensor));
	return tensor;
}

static inline void linear_add_data(struct linear *model)
{
	weir_shape x_shape = {2, {ROWS, FEATURES}}, y_shape = {2, {ROWS, 1}};
	float slope[FEATURES];
	weir_output slopes, product, noise;
	weir_error *e = &listing_error;

	for (int i = 0; i < FEATURES; i++)
		slope[i] = (float)(i + 1) / (float)FEATURES;
	slopes = constant(model->graph, f32_tensor((weir_shape){2, {FEATURES, 1}}, slope));
	must(weir_op_random_normal(model->graph, NULL, WEIR_F32, &x_shape, 0, 1, 1, &model->data_x, e));
	must(weir_op_random_normal(model->graph, NULL, WEIR_F32, &y_shape, 3, 0.01, 2, &noise, e));
	must(weir_op_matmul(model->graph, NULL, model->data_x, slopes, 0, &product, e));
	must(weir_op_add(model->graph, NULL, product, noise, &model->data_y, e));
}

static inline void linear_add_training(struct linear *model)
{
	weir_shape x_shape = {2, {-1, FEATURES}}, y_shape = {2, {-1, 1}};
	weir_output now[3], product, prediction, gradients[2];
	weir_graph *graph = model->graph;
	weir_error *e = &listing_error;

	must(weir_op_placeholder(graph, "x", WEIR_F32, &x_shape, &model->x, e));
	must(weir_op_placeholder(graph, "y", WEIR_F32, &y_shape, &model->y, e));
	must(weir_op_snapshot(graph, "now", model->variables, 2, now, e));
	must(weir_op_matmul(graph, NULL, model->x, now[0], 0, &product, e));
	must(weir_op_add(graph, "prediction", product, now[1], &prediction, e));
	must(weir_op_mean_squared_error(graph, "loss", prediction, model->y, &model->loss, e));
	must(weir_gradients(graph, &model->loss, 1, now, 2, gradients, e));
	must(weir_op_apply(graph, "train", model->optimizer, model->variables, gradients, 2, &model->step, NULL, e));
	/* The versions are [weights, bias], and steps change both. */
	must(weir_op_reduce_max(graph, "read_version", now[2], &model->read_version, e));
}

static inline void linear_create(struct linear *model)
{
	struct weir_optimizer_options adam = {WEIR_OPTIMIZER_OPTIONS_INIT, .kind = WEIR_OPTIMIZER_ADAM, .rate = 0.05};
	float zeros[FEATURES] = {0};

	model->variables[0] = variable("weights", f32_tensor((weir_shape){2, {FEATURES, 1}}, zeros));
	model->variables[1] = variable("bias", f32_tensor((weir_shape){1, {1}}, zeros));
	must(weir_optimizer_create(&adam, &model->optimizer, &listing_error));
	must(weir_graph_create(NULL, &model->graph, &listing_error));
	linear_add_data(model);
	linear_add_training(model);
	must(weir_session_create(model->graph, NULL, &model->session, &listing_error));
}

static inline void linear_destroy(struct linear *model)
{
	end_session(model->session, model->graph);
	must(weir_optimizer_destroy(model->optimizer, &listing_error));
	for (int i = 0; i < 2; i++)
		weir_var_destroy(model->variables[i], NULL);
}

/* Draws the data that belong to this number: the same for each run of the program. */
static inline void linear_data(const struct linear *model, uint64_t number, weir_tensor **x, weir_tensor **y)
{
	struct weir_run_options options = {WEIR_RUN_OPTIONS_INIT, .random_step = number};
	weir_output fetches[] = {model->data_x, model->data_y};
	weir_callable *callable;
	weir_tensor *results[2];

	must(weir_session_compile(model->session, NULL, 0, fetches, 2, NULL, 0, NULL, &callable, &listing_error));
	must(weir_callable_run(callable, NULL, results, WEIR_NO_DEADLINE, NULL, &options, &listing_error));
	weir_callable_release(callable);
	*x = results[0];
	*y = results[1];
}

/* The loss of these data; makes no step. */
static inline double linear_loss(const struct linear *model, weir_tensor *x, weir_tensor *y)
{
	struct weir_feed feeds[] = {{model->x, x}, {model->y, y}};
	weir_tensor *result;
	double loss;

	must(weir_session_run(model->session, feeds, 2, &model->loss, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL,
	                      &listing_error));
	loss = (double)*(const float *)weir_tensor_data(result);
	weir_tensor_release(result);
	return loss;
}

#endif
