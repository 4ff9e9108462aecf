/*
 * model.h - what the threads share: three variables, one queue of examples, one graph and one
 * session.
 *
 * The model is a softmax regression. The variables change together: a training step is a snapshot
 * of all three, a gradient, and a commit that succeeds only if none of them has changed since the
 * snapshot.
 */
#ifndef TRAIN_DIGITS_MODEL_H
#define TRAIN_DIGITS_MODEL_H

#include <stdint.h>
#include <weir/flow.h>

#include "data.h"

enum { WEIGHTS, BIAS, STEP, VARIABLES };
enum { BATCH_SIZE = 32, QUEUE_CAPACITY = 512, QUEUE_MIN_AFTER_DEQUEUE = 256 };

struct model {
	/* f32 [64,10], f32 [10], i64 scalar: the number of training steps */
	weir_var *variables[VARIABLES];
	weir_tensor_queue *queue; /* image f32 [64], label i64 scalar */
	weir_graph *graph;
	weir_session *session;
	int64_t held_out_count;
	weir_tensor *held_out_labels;

	/* The inputs and outputs of the three parts of the graph. */
	struct {
		weir_output images, labels;
	} dequeue;
	struct {
		weir_output images, labels, rate; /* fed */
		weir_output loss, published, weights, bias;
	} train;
	struct {
		weir_output weights, bias; /* fed */
		weir_output loss, predictions;
	} evaluate;
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
	int64_t versions[VARIABLES];
	uint64_t fingerprint; /* of the weights and bias that the step published */
};

/* Makes one attempt. WEIR_ABORTED: another trainer committed first, and nothing was published. */
enum weir_status model_train(struct model *model, const struct batch *batch, float learning_rate,
                             struct training_step *step, weir_error *error);

struct score {
	float loss;
	int64_t right; /* of held_out_count */
};

enum weir_status model_evaluate(struct model *model, weir_tensor *weights, weir_tensor *bias, struct score *score,
                                weir_error *error);

/* Differs almost certainly for different contents. Never 0. */
uint64_t model_fingerprint(const weir_tensor *weights, const weir_tensor *bias);

#endif
