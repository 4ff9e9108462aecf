/*
 * model.c - see model.h.
 */
#include "model.h"

#include <string.h>

#include "failure.h"

static const weir_shape image_shape = {1, {DIGIT_PIXELS}};
static const weir_shape images_shape = {2, {-1, DIGIT_PIXELS}};
static const weir_shape labels_shape = {1, {-1}};
static const weir_shape weights_shape = {2, {DIGIT_PIXELS, DIGIT_CLASSES}};
static const weir_shape bias_shape = {1, {DIGIT_CLASSES}};

/* -- variables and queue ----------------------------------------------------------------------- */

/* SplitMix64: small, and the same on all machines. */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);

	z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
	return z ^ z >> 31;
}

/* Uniform in (-scale, scale). */
static enum weir_status random_tensor(const weir_shape *shape, float scale, uint64_t *state, weir_tensor **out)
{
	weir_tensor_builder *builder;
	int64_t elements;
	enum weir_status status = weir_shape_element_count(shape, &elements);
	float *data;

	if (status == WEIR_OK)
		status = weir_tensor_builder_create(WEIR_F32, shape, NULL, &builder, NULL);
	if (status != WEIR_OK)
		return status;
	data = weir_tensor_builder_data(builder);
	for (int64_t i = 0; i < elements; i++)
		data[i] = scale * ((float)(next_random(state) >> 40) / (float)(1 << 23) - 1.0f);
	return weir_tensor_builder_finish(builder, out);
}

/* The variable takes a reference of its own; ours is released. */
static enum weir_status create_variable(const char *name, enum weir_dtype dtype, const weir_shape *shape,
                                        enum weir_status status, weir_tensor *initial, weir_var **out,
                                        weir_error *error)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .name = name, .dtype = dtype, .shape = shape};

	if (status != WEIR_OK)
		return failure(error, status, "there is no memory for the first value of \"%s\"", name);
	status = weir_var_create(initial, &options, out, error);
	weir_tensor_release(initial);
	return status;
}

static enum weir_status create_variables(struct model *model, uint64_t seed, weir_error *error)
{
	weir_tensor *initial = NULL;
	enum weir_status status;

	status = random_tensor(&weights_shape, 0.01f, &seed, &initial);
	status = create_variable("weights", WEIR_F32, &weights_shape, status, initial, &model->variables[WEIGHTS], error);
	if (status != WEIR_OK)
		return status;
	status = random_tensor(&bias_shape, 0.01f, &seed, &initial);
	status = create_variable("bias", WEIR_F32, &bias_shape, status, initial, &model->variables[BIAS], error);
	if (status != WEIR_OK)
		return status;
	status = weir_tensor_scalar_i64(0, &initial);
	return create_variable("step", WEIR_I64, &weir_shape_scalar, status, initial, &model->variables[STEP], error);
}

static enum weir_status create_queue(struct model *model, uint64_t seed, weir_error *error)
{
	struct weir_tensor_component components[] = {{WEIR_F32, &image_shape, "image"},
	                                             {WEIR_I64, &weir_shape_scalar, "label"}};
	struct weir_tensor_queue_options options = {
		WEIR_TENSOR_QUEUE_OPTIONS_INIT,
		.capacity = QUEUE_CAPACITY,
		.order = WEIR_QUEUE_SHUFFLE,
		.min_after_dequeue = QUEUE_MIN_AFTER_DEQUEUE,
		.seed = seed,
		.name = "examples",
		.components = components,
		.component_count = 2,
	};

	return weir_tensor_queue_create(&options, &model->queue, error);
}

/* -- the graph --------------------------------------------------------------------------------- */

static enum weir_status add_constant_i64(struct model *model, const char *name, int64_t value, weir_output *out,
                                         weir_error *error)
{
	weir_tensor *tensor;
	enum weir_status status = weir_tensor_scalar_i64(value, &tensor);

	if (status != WEIR_OK)
		return failure(error, status, "there is no memory for the constant \"%s\"", name);
	status = weir_op_constant(model->graph, name, tensor, out, error);
	weir_tensor_release(tensor);
	return status;
}

static enum weir_status add_dequeue(struct model *model, weir_error *error)
{
	weir_output size, outs[2];
	enum weir_status status = add_constant_i64(model, "batch_size", BATCH_SIZE, &size, error);

	if (status == WEIR_OK)
		status = weir_op_dequeue_up_to(model->graph, "next_batch", model->queue, size, outs, 2, NULL, error);
	if (status == WEIR_OK) {
		model->dequeue.images = outs[0];
		model->dequeue.labels = outs[1];
	}
	return status;
}

/* logits = images x weights + bias */
static enum weir_status add_logits(weir_graph *graph, weir_output images, weir_output weights, weir_output bias,
                                   weir_output *logits, weir_error *error)
{
	weir_output product;

	return weir_op_matmul(graph, NULL, images, weights, 0, &product, error) ||
	               weir_op_add(graph, NULL, product, bias, logits, error)
	           ? error->code
	           : WEIR_OK;
}

/* Adds the new values: each old one less its gradient times the rate, and one more step. */
static enum weir_status add_new_values(struct model *model, const weir_output now[], weir_output slope,
                                       weir_output next[], weir_error *error)
{
	weir_graph *graph = model->graph;
	weir_output images = model->train.images, rate = model->train.rate, weights, bias, one;

	return weir_op_matmul(graph, NULL, images, slope, WEIR_MATMUL_TRANSPOSE_A, &weights, error) ||
	               weir_op_mul(graph, NULL, weights, rate, &weights, error) ||
	               weir_op_sub(graph, "new_weights", now[WEIGHTS], weights, &next[WEIGHTS], error) ||
	               weir_op_reduce_sum_axis(graph, NULL, slope, 0, &bias, error) ||
	               weir_op_mul(graph, NULL, bias, rate, &bias, error) ||
	               weir_op_sub(graph, "new_bias", now[BIAS], bias, &next[BIAS], error) ||
	               add_constant_i64(model, "one", 1, &one, error) ||
	               weir_op_add(graph, "new_step", now[STEP], one, &next[STEP], error)
	           ? error->code
	           : WEIR_OK;
}

static enum weir_status add_train(struct model *model, weir_error *error)
{
	weir_graph *graph = model->graph;
	weir_output now[VARIABLES + 1], next[VARIABLES], logits, losses, slope;

	if (weir_op_placeholder(graph, "images", WEIR_F32, &images_shape, &model->train.images, error) ||
	    weir_op_placeholder(graph, "labels", WEIR_I64, &labels_shape, &model->train.labels, error) ||
	    weir_op_placeholder(graph, "rate", WEIR_F32, &weir_shape_scalar, &model->train.rate, error) ||
	    weir_op_snapshot(graph, "now", model->variables, VARIABLES, now, error) ||
	    add_logits(graph, model->train.images, now[WEIGHTS], now[BIAS], &logits, error) ||
	    weir_op_softmax_cross_entropy(graph, NULL, logits, model->train.labels, &losses, &slope, error) ||
	    weir_op_reduce_mean(graph, "loss", losses, &model->train.loss, error) ||
	    add_new_values(model, now, slope, next, error) ||
	    weir_op_commit(graph, "commit", model->variables, next, VARIABLES, now[VARIABLES], &model->train.published,
	                   error))
		return error->code;
	model->train.weights = next[WEIGHTS];
	model->train.bias = next[BIAS];
	return WEIR_OK;
}

static enum weir_status add_evaluate(struct model *model, const struct digits *held_out, weir_error *error)
{
	weir_graph *graph = model->graph;
	weir_output images, labels, logits, losses;

	return weir_op_constant(graph, "held_out_images", held_out->images, &images, error) ||
	               weir_op_constant(graph, "held_out_labels", held_out->labels, &labels, error) ||
	               weir_op_placeholder(graph, "weights", WEIR_F32, &weights_shape, &model->evaluate.weights, error) ||
	               weir_op_placeholder(graph, "bias", WEIR_F32, &bias_shape, &model->evaluate.bias, error) ||
	               add_logits(graph, images, model->evaluate.weights, model->evaluate.bias, &logits, error) ||
	               weir_op_softmax_cross_entropy(graph, NULL, logits, labels, &losses, NULL, error) ||
	               weir_op_reduce_mean(graph, "held_out_loss", losses, &model->evaluate.loss, error) ||
	               weir_op_argmax(graph, "predictions", logits, &model->evaluate.predictions, error)
	           ? error->code
	           : WEIR_OK;
}

static enum weir_status create_parts(struct model *model, const struct digits *held_out, uint64_t seed,
                                     weir_error *error)
{
	return create_variables(model, seed, error) || create_queue(model, seed, error) ||
	               weir_graph_create(NULL, &model->graph, error) || add_dequeue(model, error) ||
	               add_train(model, error) || add_evaluate(model, held_out, error) ||
	               weir_session_create(model->graph, NULL, &model->session, error)
	           ? error->code
	           : WEIR_OK;
}

enum weir_status model_create(struct model *model, const struct digits *held_out, uint64_t seed, weir_error *error)
{
	enum weir_status status;

	*model = (struct model){.held_out_count = held_out->count};
	status = create_parts(model, held_out, seed, error);
	if (status == WEIR_OK)
		model->held_out_labels = weir_tensor_retain(held_out->labels);
	else
		(void)model_destroy(model, NULL); /* the first failure is the one to report */
	return status;
}

enum weir_status model_destroy(struct model *model, weir_error *error)
{
	enum weir_status status = weir_session_destroy(model->session, error);

	if (status == WEIR_OK)
		status = weir_graph_destroy(model->graph, error);
	if (status == WEIR_OK)
		status = weir_tensor_queue_destroy(model->queue, error);
	if (status != WEIR_OK)
		return status;
	for (int i = 0; i < VARIABLES; i++)
		weir_var_destroy(model->variables[i], NULL);
	weir_tensor_release(model->held_out_labels);
	*model = (struct model){0};
	return WEIR_OK;
}

/* -- running the graph ------------------------------------------------------------------------- */

enum weir_status model_dequeue(struct model *model, weir_cancel *cancel, struct batch *batch, weir_error *error)
{
	weir_output fetches[] = {model->dequeue.images, model->dequeue.labels};
	weir_tensor *results[2];
	enum weir_status status =
		weir_session_run(model->session, NULL, 0, fetches, 2, results, NULL, 0, WEIR_NO_DEADLINE, cancel, error);

	if (status == WEIR_OK)
		*batch = (struct batch){results[0], results[1]};
	return status;
}

void batch_release(struct batch *batch)
{
	weir_tensor_release(batch->images);
	weir_tensor_release(batch->labels);
	*batch = (struct batch){NULL, NULL};
}

int64_t batch_count(const struct batch *batch)
{
	return weir_tensor_element_count(batch->labels);
}

enum weir_status model_train(struct model *model, const struct batch *batch, float learning_rate,
                             struct training_step *step, weir_error *error)
{
	weir_output fetches[] = {model->train.loss, model->train.published, model->train.weights, model->train.bias};
	weir_tensor *rate, *results[4];
	enum weir_status status = weir_tensor_scalar_f32(learning_rate / (float)batch_count(batch), &rate);

	if (status != WEIR_OK)
		return failure(error, status, "there is no memory for the learning rate");
	/* There is no cancel token: a batch that was dequeued is always trained on. */
	status = weir_session_run(model->session,
	                          (struct weir_feed[]){{model->train.images, batch->images},
	                                               {model->train.labels, batch->labels},
	                                               {model->train.rate, rate}},
	                          3, fetches, 4, results, NULL, 0, WEIR_NO_DEADLINE, NULL, error);
	weir_tensor_release(rate);
	if (status != WEIR_OK)
		return status;
	step->loss = *(const float *)weir_tensor_data(results[0]);
	memcpy(step->versions, weir_tensor_data(results[1]), sizeof(step->versions));
	step->fingerprint = model_fingerprint(results[2], results[3]);
	for (int i = 0; i < 4; i++)
		weir_tensor_release(results[i]);
	return WEIR_OK;
}

static int64_t count_equal(const weir_tensor *a, const weir_tensor *b)
{
	const int64_t *left = weir_tensor_data(a), *right = weir_tensor_data(b);
	int64_t equal = 0;

	for (int64_t i = 0; i < weir_tensor_element_count(a); i++)
		equal += left[i] == right[i];
	return equal;
}

enum weir_status model_evaluate(struct model *model, weir_tensor *weights, weir_tensor *bias, struct score *score,
                                weir_error *error)
{
	struct weir_feed feeds[] = {{model->evaluate.weights, weights}, {model->evaluate.bias, bias}};
	weir_output fetches[] = {model->evaluate.loss, model->evaluate.predictions};
	weir_tensor *results[2];
	enum weir_status status =
		weir_session_run(model->session, feeds, 2, fetches, 2, results, NULL, 0, WEIR_NO_DEADLINE, NULL, error);

	if (status != WEIR_OK)
		return status;
	score->loss = *(const float *)weir_tensor_data(results[0]);
	score->right = count_equal(results[1], model->held_out_labels);
	weir_tensor_release(results[0]);
	weir_tensor_release(results[1]);
	return WEIR_OK;
}

static uint64_t mix(uint64_t hash, const weir_tensor *tensor)
{
	const unsigned char *bytes = weir_tensor_data(tensor);
	size_t words = weir_tensor_byte_count(tensor) / sizeof(uint32_t);

	for (size_t i = 0; i < words; i++) {
		uint32_t word;

		memcpy(&word, bytes + i * sizeof(word), sizeof(word));
		hash = (hash ^ word) * UINT64_C(0x100000001B3); /* FNV-1a, by words */
		hash ^= hash >> 29;
	}
	return hash;
}

uint64_t model_fingerprint(const weir_tensor *weights, const weir_tensor *bias)
{
	return mix(mix(UINT64_C(0xCBF29CE484222325), weights), bias) | 1;
}
