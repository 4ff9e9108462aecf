/*
 * model.h - the model: five variables, the slots of an optimizer, and two functions.
 *
 * The model has a hidden layer of HIDDEN units. The function `train` takes a snapshot of the parameters,
 * computes the loss and its gradients, and makes a step of Adam. The step changes the parameters, its
 * slots and the number of steps at one instant. If another trainer was first, it starts from what that
 * one published; the loss and the gradients are not computed again.
 */
#ifndef TRAIN_DIGITS_MODEL_H
#define TRAIN_DIGITS_MODEL_H

#include <stdint.h>
#include <weir/flow.h>

#include "data.h"

enum { HIDDEN_WEIGHTS, HIDDEN_BIAS, WEIGHTS, BIAS, PARAMETERS, STEP = PARAMETERS, VARIABLES };
enum { HIDDEN = 64 };

/* The arguments of `train`, and its results: the values that the step published come last. */
enum { IMAGES, LABELS, RATE, TRAIN_ARGUMENTS };
enum { TRAIN_LOSS, TRAIN_STEP, TRAIN_PUBLISHED, TRAIN_RESULTS = TRAIN_PUBLISHED + PARAMETERS };

struct model {
	/* f32 [64,HIDDEN], [HIDDEN], [HIDDEN,10], [10]; the optimizer's number of steps, an i64 scalar */
	weir_var *variables[VARIABLES];
	weir_optimizer *optimizer;
	weir_function *train, *evaluate;
	int64_t held_out_count;
	weir_tensor *held_out_images, *held_out_labels;
};

enum weir_status model_create(struct model *model, const struct digits *held_out, uint64_t seed, weir_error *error);
/*
 * No thread may be using the model. Accepts a model whose creation failed, and a model that is all
 * zero.
 */
enum weir_status model_destroy(struct model *model, weir_error *error);

struct score {
	float loss;
	int64_t right; /* of held_out_count */
};

/* Runs `evaluate` in the session. reads[] begins with the parameters. */
enum weir_status model_evaluate(struct model *model, weir_session *session, const weir_read reads[],
                                struct score *score, weir_error *error);

/* Of parameters; differs almost certainly for different contents. Never 0. */
uint64_t model_fingerprint(weir_tensor *const parameters[]);
/* The same for handles that begin with the parameters. */
uint64_t model_fingerprint_of(const weir_read reads[]);

#endif
