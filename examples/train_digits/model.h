/*
 * model.h - what the threads share: five variables and the slots of an optimizer, two functions, one
 * queue of examples, one graph and one session.
 *
 * The model has a hidden layer of HIDDEN units. A training step is a call of a function: a snapshot of
 * the parameters, the loss, its gradients, and a step of Adam. That step changes the parameters, its
 * slots and the number of steps at one instant. If another trainer was first, it starts from what that
 * one published; the loss and the gradients are not computed again.
 */
#ifndef TRAIN_DIGITS_MODEL_H
#define TRAIN_DIGITS_MODEL_H

#include <stdint.h>
#include <weir/flow.h>

#include "data.h"

enum { HIDDEN_WEIGHTS, HIDDEN_BIAS, WEIGHTS, BIAS, PARAMETERS, STEP = PARAMETERS, VARIABLES };
enum { HIDDEN = 64, BATCH_SIZE = 32, QUEUE_CAPACITY = 512, QUEUE_MIN_AFTER_DEQUEUE = 256 };

struct model {
	/* f32 [64,HIDDEN], [HIDDEN], [HIDDEN,10], [10]; the optimizer's number of steps, an i64 scalar */
	weir_var *variables[VARIABLES];
	weir_optimizer *optimizer;
	weir_function *train, *evaluate;
	weir_tensor_queue *queue; /* image f32 [64], label i64 scalar */
	weir_graph *graph;        /* only takes batches from the queue */
	weir_session *session;
	weir_output images, labels; /* of a batch */
	int64_t held_out_count;
	weir_tensor *held_out_images, *held_out_labels;
};

enum weir_status model_create(struct model *model, const struct digits *held_out, uint64_t seed, weir_error *error);
/*
 * No thread may be using the model. Accepts a model whose creation failed, and a model that is all
 * zero.
 */
enum weir_status model_destroy(struct model *model, weir_error *error);

struct batch {
	weir_tensor *images; /* f32 [n,64], 1 <= n <= BATCH_SIZE */
	weir_tensor *labels; /* i64 [n] */
};

/*
 * Waits for a batch of BATCH_SIZE examples; it has fewer only when the queue is closed and has no
 * more. WEIR_OUT_OF_RANGE: the queue is closed and empty. WEIR_CANCELLED: the token fired, and no
 * example was lost.
 */
enum weir_status model_dequeue(struct model *model, weir_cancel *cancel, struct batch *batch, weir_error *error);
void batch_release(struct batch *batch);
int64_t batch_count(const struct batch *batch);

struct training_step {
	float loss; /* mean over the batch, before the step */
	int64_t number;
	uint64_t fingerprint; /* of the parameters that the step published */
};

/* Computes the loss and its gradients once, and makes one step. */
enum weir_status model_train(struct model *model, const struct batch *batch, float learning_rate,
                             struct training_step *step, weir_error *error);

struct score {
	float loss;
	int64_t right; /* of held_out_count */
};

/* reads[] begins with the parameters. */
enum weir_status model_evaluate(struct model *model, const weir_read reads[], struct score *score, weir_error *error);

/* Of parameters; differs almost certainly for different contents. Never 0. */
uint64_t model_fingerprint(weir_tensor *const parameters[]);
/* The same for handles that begin with the parameters. */
uint64_t model_fingerprint_of(const weir_read reads[]);

#endif
