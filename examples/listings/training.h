/*
 * training.h - shared by 003_4 to 003_6: the training graph of the listings.
 *
 * An example is a number, and the model is their sum: each example that is made must be trained on
 * once, and the sum tells.
 *
 *     example = ...ops to create one example...
 *     queue = tf.RandomShuffleQueue(...)
 *     enqueue_op = queue.enqueue(example)
 *     inputs = queue.dequeue_many(batch_size)
 *     train_op = ...use 'inputs' to build the training part of the graph...
 */
#ifndef TRAINING_H
#define TRAINING_H

#include "listing.h"

enum { BATCH_SIZE = 8, CAPACITY = 64, RUNNER_THREADS = 4 };

struct training {
	weir_graph *graph;
	weir_tensor_queue *queue;
	weir_node *enqueue_op, *train_op;
	weir_output trained; /* the output of train_op: the model after the step */
	weir_var *model;
	weir_iterator *examples;
};

/* `examples`: there are so many; 0: no end. */
static inline void build_training(struct training *training, int examples)
{
	weir_output example, inputs, sum;
	weir_dataset *numbers;

	must(weir_dataset_range(0, examples > 0 ? examples : INT64_MAX, 1, NULL, &numbers, &listing_error));
	must(weir_iterator_create(numbers, NULL, &training->examples, &listing_error));
	weir_dataset_release(numbers);
	training->model = variable("model", i64(0));
	training->queue = queue_of(WEIR_I64, &weir_shape_scalar, CAPACITY, WEIR_QUEUE_SHUFFLE, CAPACITY / 2);
	must(weir_graph_create(NULL, &training->graph, &listing_error));
	must(weir_op_next(training->graph, "example", training->examples, &example, 1, NULL, &listing_error));
	must(weir_op_enqueue(training->graph, "enqueue_op", training->queue, &example, 1, &training->enqueue_op,
	                     &listing_error));
	must(weir_op_dequeue_many(training->graph, "inputs", training->queue, constant(training->graph, i32(BATCH_SIZE)),
	                          &inputs, 1, NULL, &listing_error));
	must(weir_op_reduce_sum(training->graph, "sum", inputs, &sum, &listing_error));
	must(weir_op_assign_add(training->graph, "train_op", training->model, sum, &training->trained, &listing_error));
	training->train_op = training->trained.node;
}

static inline int64_t model_of(struct training *training)
{
	int64_t value;

	value_of(training->model, &value, sizeof(value));
	return value;
}

static inline void end_training(struct training *training)
{
	must(weir_graph_destroy(training->graph, &listing_error));
	must(weir_tensor_queue_destroy(training->queue, &listing_error));
	must(weir_iterator_destroy(training->examples, &listing_error));
	weir_var_destroy(training->model, NULL);
}

/* A session, a coordinator, and a queue runner on four threads. */
struct training_run {
	weir_session *session;
	weir_coordinator *coordinator;
	weir_queue_runner *runner;
};

static inline void begin_training(struct training_run *run, struct training *training)
{
	must(weir_session_create(training->graph, NULL, &run->session, &listing_error));
	must(weir_queue_runner_from_nodes(run->session, &training->enqueue_op, 1, RUNNER_THREADS, training->queue, NULL,
	                                  &run->runner, &listing_error));
	must(weir_coordinator_create(NULL, &run->coordinator, &listing_error));
	must(weir_queue_runner_start(run->runner, run->coordinator, &listing_error));
}

static inline enum weir_status join_training(struct training_run *run, weir_error *error)
{
	return weir_coordinator_join(run->coordinator, WEIR_NO_DEADLINE, WEIR_COORDINATOR_GRACE_NS, 0, error);
}

static inline void close_training(struct training_run *run)
{
	must(weir_queue_runner_destroy(run->runner, &listing_error));
	must(weir_coordinator_destroy(run->coordinator, &listing_error));
	must(weir_session_destroy(run->session, &listing_error));
}

#endif
