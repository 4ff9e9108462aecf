/*
 * weir_train.c - a step of our optimizer, as a user makes it: a run of a callable.
 */
#include <stdlib.h>
#include <weir/flow.h>

#include "rivals.h"
#include "train_model.h"

struct model {
	weir_var *weights;
	weir_optimizer *optimizer;
	weir_graph *graph;
	weir_session *session;
	weir_callable *callable;
	size_t count;
};

static void must(enum weir_status status)
{
	if (status != WEIR_OK)
		exit(3);
}

static weir_tensor *floats(size_t count, float value)
{
	const weir_shape shape = {1, {(int64_t)count}};
	weir_tensor_builder *builder;
	weir_tensor *tensor;

	must(weir_tensor_builder_create(WEIR_F32, &shape, NULL, &builder, NULL));
	for (size_t i = 0; i < count; i++)
		((float *)weir_tensor_builder_data(builder))[i] = value;
	must(weir_tensor_builder_finish(builder, &tensor));
	return tensor;
}

static void *create(size_t count, unsigned threads)
{
	struct weir_optimizer_options adam = {WEIR_OPTIMIZER_OPTIONS_INIT, .kind = WEIR_OPTIMIZER_ADAM, .rate = TRAIN_RATE};
	struct weir_session_options options = {WEIR_SESSION_OPTIONS_INIT, .flags = WEIR_SESSION_NO_THREADS};
	struct weir_var_options weights = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_F32};
	weir_tensor *first = floats(count, TRAIN_START), *gradient = floats(count, TRAIN_GRADIENT);
	struct model *model = calloc(1, sizeof(*model));
	weir_output g, step;

	(void)threads;
	if (model == NULL)
		exit(3);
	model->count = count;
	must(weir_var_create(first, &weights, &model->weights, NULL));
	must(weir_optimizer_create(&adam, &model->optimizer, NULL));
	must(weir_graph_create(NULL, &model->graph, NULL));
	must(weir_op_constant(model->graph, NULL, gradient, &g, NULL));
	must(weir_op_apply(model->graph, NULL, model->optimizer, &model->weights, &g, 1, &step, NULL, NULL));
	must(weir_session_create(model->graph, &options, &model->session, NULL));
	must(weir_session_compile(model->session, NULL, 0, &step, 1, NULL, 0, NULL, &model->callable, NULL));
	weir_tensor_release(first);
	weir_tensor_release(gradient);
	return model;
}

static void destroy(void *self)
{
	struct model *model = self;

	weir_callable_release(model->callable);
	must(weir_session_destroy(model->session, NULL));
	must(weir_graph_destroy(model->graph, NULL));
	must(weir_optimizer_destroy(model->optimizer, NULL));
	must(weir_var_destroy(model->weights, NULL));
	free(model);
	(void)weir_reclaim_flush(WEIR_NO_DEADLINE);
}

static void step(void *self, unsigned thread)
{
	struct model *model = self;
	weir_tensor *number;

	(void)thread;
	must(weir_callable_run(model->callable, NULL, &number, WEIR_NO_DEADLINE, NULL, NULL, NULL));
	weir_tensor_release(number);
}

static uint64_t steps(void *self)
{
	struct model *model = self;
	weir_var *vars[2] = {weir_optimizer_step(model->optimizer), model->weights};
	weir_read reads[2];
	uint64_t made;

	must(weir_var_snapshot(vars, 2, reads, NULL));
	made = *(const uint64_t *)weir_tensor_data(reads[0].tensor);
	if (!train_is_right(weir_tensor_data(reads[1].tensor), model->count, made))
		made = UINT64_MAX;
	weir_read_release_many(reads, 2);
	return made;
}

const struct train_contender weir_train_contender = {
	.about = {.name = "weir_op_apply", .lock_free = 1},
	.create = create,
	.destroy = destroy,
	.step = step,
	.steps = steps,
};
