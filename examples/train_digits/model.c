/*
 * model.c - see model.h.
 */
#include "model.h"

#include <math.h>
#include <string.h>

#include "failure.h"
#include "random.h"

static const weir_shape images_shape = {2, {-1, DIGIT_PIXELS}};
static const weir_shape labels_shape = {1, {-1}};

static const struct {
	const char *name;
	weir_shape shape;
} parameters[PARAMETERS] = {
	[HIDDEN_WEIGHTS] = {"hidden_weights", {2, {DIGIT_PIXELS, HIDDEN}}},
	[HIDDEN_BIAS] = {"hidden_bias", {1, {HIDDEN}}},
	[WEIGHTS] = {"weights", {2, {HIDDEN, DIGIT_CLASSES}}},
	[BIAS] = {"bias", {1, {DIGIT_CLASSES}}},
};

/* -- variables --------------------------------------------------------------------------------- */

/* As large as keeps the variance from layer to layer (Glorot and Bengio, AISTATS 2010); biases are 0. */
static float first_scale(const weir_shape *shape)
{
	return shape->rank == 2 ? sqrtf(6.0f / (float)(shape->dims[0] + shape->dims[1])) : 0.0f;
}

/* The variable takes a reference of its own; ours is released. */
static enum weir_status create_variable(int which, uint64_t *seed, weir_var **out, weir_error *error)
{
	const weir_shape *shape = &parameters[which].shape;
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .name = parameters[which].name, .dtype = WEIR_F32,
	                                   .shape = shape};
	weir_tensor *initial;
	enum weir_status status = random_tensor(shape, first_scale(shape), seed, &initial);

	if (status != WEIR_OK)
		return failure(error, status, "there is no memory for the first value of \"%s\"", options.name);
	status = weir_var_create(initial, &options, out, error);
	weir_tensor_release(initial);
	return status;
}

static enum weir_status create_variables(struct model *model, uint64_t seed, weir_error *error)
{
	struct weir_optimizer_options options = {WEIR_OPTIMIZER_OPTIONS_INIT, .kind = WEIR_OPTIMIZER_ADAM};
	enum weir_status status = WEIR_OK;

	for (int i = 0; status == WEIR_OK && i < PARAMETERS; i++)
		status = create_variable(i, &seed, &model->variables[i], error);
	if (status == WEIR_OK)
		status = weir_optimizer_create(&options, &model->optimizer, error);
	model->variables[STEP] = weir_optimizer_step(model->optimizer);
	return status;
}

/* -- the functions ----------------------------------------------------------------------------- */

/* logits = relu(images x hidden_weights + hidden_bias) x weights + bias */
static enum weir_status add_logits(weir_graph *graph, weir_output images, const weir_output values[],
                                   weir_output *logits, weir_error *error)
{
	weir_output hidden, product;

	return weir_op_matmul(graph, NULL, images, values[HIDDEN_WEIGHTS], 0, &hidden, error) ||
	               weir_op_add(graph, NULL, hidden, values[HIDDEN_BIAS], &hidden, error) ||
	               weir_op_relu(graph, NULL, hidden, &hidden, error) ||
	               weir_op_matmul(graph, NULL, hidden, values[WEIGHTS], 0, &product, error) ||
	               weir_op_add(graph, NULL, product, values[BIAS], logits, error)
	           ? error->code
	           : WEIR_OK;
}

enum { EVALUATE_INPUTS = RATE };

/* Its arguments are the inputs, and then the variables. */
static enum weir_status build_train(void *context, weir_graph *body, const struct weir_argument arguments[],
                                    weir_output results[], weir_error *error)
{
	struct model *model = context;
	weir_var *const *vars = model->variables;
	weir_output now[PARAMETERS + 1], gradients[PARAMETERS], logits, losses;
	enum weir_status status;
	weir_node *apply;

	if (weir_op_snapshot(body, "now", vars, PARAMETERS, now, error) ||
	    add_logits(body, arguments[IMAGES].output, now, &logits, error) ||
	    weir_op_softmax_cross_entropy(body, NULL, logits, arguments[LABELS].output, &losses, NULL, error) ||
	    weir_op_reduce_mean(body, "loss", losses, &results[TRAIN_LOSS], error) ||
	    weir_gradients(body, &results[TRAIN_LOSS], 1, now, PARAMETERS, gradients, error) ||
	    weir_op_apply_at(body, "apply", model->optimizer, arguments[RATE].output, vars, gradients, PARAMETERS,
	                     &results[TRAIN_STEP], &apply, error))
		return error->code;
	status = WEIR_OK;
	for (uint32_t i = 0; status == WEIR_OK && i < PARAMETERS; i++)
		status = weir_node_output(apply, 1 + i, &results[TRAIN_PUBLISHED + i], error);
	return status;
}

/* Its arguments are the inputs, and then the values of the parameters. */
static enum weir_status build_evaluate(void *context, weir_graph *body, const struct weir_argument arguments[],
                                       weir_output results[], weir_error *error)
{
	weir_output values[PARAMETERS], logits, losses;

	(void)context;
	for (int i = 0; i < PARAMETERS; i++)
		values[i] = arguments[EVALUATE_INPUTS + i].output;
	return add_logits(body, arguments[IMAGES].output, values, &logits, error) ||
	               weir_op_softmax_cross_entropy(body, NULL, logits, arguments[LABELS].output, &losses, NULL, error) ||
	               weir_op_reduce_mean(body, "loss", losses, &results[0], error) ||
	               weir_op_argmax(body, "predictions", logits, &results[1], error)
	           ? error->code
	           : WEIR_OK;
}

static enum weir_status create_functions(struct model *model, weir_error *error)
{
	struct weir_parameter inputs[EVALUATE_INPUTS + PARAMETERS] = {
		[IMAGES] = {"images", WEIR_PARAMETER_TENSOR, WEIR_F32, &images_shape},
		[LABELS] = {"labels", WEIR_PARAMETER_TENSOR, WEIR_I64, &labels_shape},
		[RATE] = {"rate", WEIR_PARAMETER_TENSOR, WEIR_F32, &weir_shape_scalar},
	};
	struct weir_function_options options = {WEIR_FUNCTION_OPTIONS_INIT,   .name = "train",
	                                        .build = build_train,         .context = model,
	                                        .parameters = inputs,         .parameter_count = TRAIN_ARGUMENTS,
	                                        .result_count = TRAIN_RESULTS};
	enum weir_status status = weir_function_create(&options, &model->train, error);

	if (status != WEIR_OK)
		return status;
	for (int i = 0; i < PARAMETERS; i++)
		inputs[EVALUATE_INPUTS + i] =
			(struct weir_parameter){parameters[i].name, WEIR_PARAMETER_TENSOR, WEIR_F32, &parameters[i].shape};
	options.name = "evaluate";
	options.build = build_evaluate;
	options.parameter_count = EVALUATE_INPUTS + PARAMETERS;
	options.result_count = 2;
	return weir_function_create(&options, &model->evaluate, error);
}

enum weir_status model_create(struct model *model, const struct digits *held_out, uint64_t seed, weir_error *error)
{
	enum weir_status status;

	*model = (struct model){.held_out_count = held_out->count};
	model->held_out_images = weir_tensor_retain(held_out->images);
	model->held_out_labels = weir_tensor_retain(held_out->labels);
	status = create_variables(model, seed, error);
	if (status == WEIR_OK)
		status = create_functions(model, error);
	if (status != WEIR_OK)
		(void)model_destroy(model, NULL); /* the first failure is the one to report */
	return status;
}

enum weir_status model_destroy(struct model *model, weir_error *error)
{
	enum weir_status status = weir_function_destroy(model->train, error);

	if (status == WEIR_OK)
		status = weir_function_destroy(model->evaluate, error);
	if (status == WEIR_OK)
		status = weir_optimizer_destroy(model->optimizer, error);
	if (status != WEIR_OK)
		return status;
	for (int i = 0; i < PARAMETERS; i++)
		weir_var_destroy(model->variables[i], NULL);
	weir_tensor_release(model->held_out_images);
	weir_tensor_release(model->held_out_labels);
	*model = (struct model){0};
	return WEIR_OK;
}

/* -- running them ---------------------------------------------------------------------------- */

static int64_t count_equal(const weir_tensor *a, const weir_tensor *b)
{
	const int64_t *left = weir_tensor_data(a), *right = weir_tensor_data(b);
	int64_t equal = 0;

	for (int64_t i = 0; i < weir_tensor_element_count(a); i++)
		equal += left[i] == right[i];
	return equal;
}

enum weir_status model_evaluate(struct model *model, weir_session *session, const weir_read reads[],
                                struct score *score, weir_error *error)
{
	struct weir_argument arguments[EVALUATE_INPUTS + PARAMETERS] = {
		[IMAGES] = {.tensor = model->held_out_images}, [LABELS] = {.tensor = model->held_out_labels}};
	weir_tensor *results[2];
	enum weir_status status;

	for (int i = 0; i < PARAMETERS; i++)
		arguments[EVALUATE_INPUTS + i].tensor = reads[i].tensor;
	status = weir_function_run(model->evaluate, session, arguments, results, WEIR_NO_DEADLINE, NULL, NULL, error);
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

uint64_t model_fingerprint(weir_tensor *const values[])
{
	uint64_t hash = UINT64_C(0xCBF29CE484222325);

	for (int i = 0; i < PARAMETERS; i++)
		hash = mix(hash, values[i]);
	return hash | 1;
}

uint64_t model_fingerprint_of(const weir_read reads[])
{
	weir_tensor *values[PARAMETERS];

	for (int i = 0; i < PARAMETERS; i++)
		values[i] = reads[i].tensor;
	return model_fingerprint(values);
}
