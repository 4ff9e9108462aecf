/*
 * training.h - the input, the graph of a step, and the monitored session that runs it.
 *
 * The input is a dataset: the rows in another order in each epoch, in batches, of which some are ready
 * before they are asked for. The graph has three nodes: the next batch, the learning rate, and a call of
 * the function `train`. Around each run of it there are hooks: one feeds the rate; one keeps a
 * fingerprint of what each step published; and one measures the model when the loop has ended. With the
 * name of a checkpoint, the session saves one now and then, and begins where it says.
 */
#ifndef TRAIN_DIGITS_TRAINING_H
#define TRAIN_DIGITS_TRAINING_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/flow.h>

#include "data.h"
#include "model.h"

enum { BATCH_SIZE = 32, SHUFFLED = 512, READY_BATCHES = 4, STEPS_BETWEEN_SAVES = 250 };

struct training_settings {
	size_t threads; /* of the pool, which prepares batches */
	int64_t epochs;
	uint64_t seed;
	const char *checkpoint; /* NULL: none */
	const char *trace;      /* NULL: none */
};

struct training {
	struct training_settings settings;
	struct model *model;
	weir_pool *pool;
	weir_iterator *batches;
	weir_graph *graph;
	weir_output labels, rate, loss, step, published[PARAMETERS];
	weir_trace *trace; /* NULL: none */
	weir_monitored *monitored;
	int64_t first_step;           /* 0, or that of the checkpoint */
	int64_t last_step, row_count; /* to be made; to be trained on */
	/* by step: the fingerprint of the parameters that it published; 0: none yet */
	_Atomic(uint64_t) *applied;
	struct score final; /* set by training_close() */
};

/* The model must outlive the training. A failure leaves nothing behind. */
enum weir_status training_create(struct training *training, const struct training_settings *settings,
                                 const struct digits *digits, struct model *model, weir_error *error);

struct training_step {
	float loss;       /* mean over the batch, before the step */
	int64_t examples; /* in the batch */
};

/* Takes a batch and makes one step. WEIR_OUT_OF_RANGE: the input has ended. Any number of threads. */
enum weir_status training_step(struct training *training, struct training_step *step, weir_error *error);

/* How many batches were taken. */
int64_t training_batches(const struct training *training);

/*
 * Ends the session with the status of the loop. After a clean end the last values are in the checkpoint,
 * and were measured.
 */
enum weir_status training_close(struct training *training, enum weir_status loop, weir_error *error);
/* Writes the trace, if there is one. After training_close(). */
enum weir_status training_write_trace(const struct training *training, weir_error *error);
/* Accepts a training whose creation failed, and one that is all zero. */
enum weir_status training_destroy(struct training *training, weir_error *error);

#endif
