/*
 * job.h - the threads of the training job, and what each of them did.
 *
 * Feeders (a queue runner) put every training image into the queue, once per epoch. The last one
 * closes the queue.
 *
 * Trainers take batches and make one step for each.
 *
 * The evaluator takes snapshots of all five variables and measures them on the held-out images.
 *
 * A coordinator ends the threads when the last trainer finds the queue closed and empty, when a
 * thread fails, or when job_interrupt() is called.
 */
#ifndef TRAIN_DIGITS_JOB_H
#define TRAIN_DIGITS_JOB_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/weir.h>

#include "data.h"
#include "latency.h"
#include "model.h"

struct job_settings {
	size_t feeders, trainers;
	int64_t epochs;
	uint64_t seed;
};

/* A point of the learning curve. */
struct curve_point {
	int64_t step;
	double epoch, loss, accuracy;
};
enum { CURVE_POINTS = 256 };

struct job;

struct trainer {
	struct job *job;
	/* Written by the trainer's own thread, read by the thread that shows the progress. */
	_Atomic(int64_t) batches, examples, steps;
	_Atomic(int64_t) passes; /* forward and backward */
	_Atomic(float) loss;     /* a moving average */
};

struct evaluator {
	struct job *job;
	_Atomic(int64_t) right; /* correct answers in the last evaluation; -1: none yet */
	/* Used by the evaluator's own thread; by others only after the join. */
	int64_t snapshots, evaluations, torn;
	/* by step: the fingerprint of the parameters in a snapshot; 0: not seen */
	uint64_t *seen;
	struct latency read, snapshot;
	struct curve_point curve[CURVE_POINTS];
	size_t curve_count;
};

struct job {
	struct job_settings settings;
	const struct digits *training;
	struct model *model;
	weir_coordinator *coordinator;
	weir_queue_runner *runner;
	int64_t total;             /* examples to feed */
	_Atomic(int64_t) position; /* the next example; used by the feeders */
	_Atomic(size_t) at_work;   /* trainers that have not reached the end of the queue */
	/* by step: the fingerprint that its trainer published; 0: none yet */
	_Atomic(uint64_t) *applied;
	struct trainer *trainers;
	struct evaluator evaluator;
	uint64_t started_ns, ended_ns;
};

/* `training` and `model` must outlive the job. A failure leaves nothing behind. */
enum weir_status job_create(struct job *job, const struct job_settings *settings, const struct digits *training,
                            struct model *model, weir_error *error);
/*
 * Starts all threads. If it fails, the threads have been requested to stop, and the caller must
 * still call job_join().
 */
enum weir_status job_start(struct job *job, weir_error *error);
void job_interrupt(struct job *job);
/* Waits until all threads have ended. Returns the first failure of a thread. */
enum weir_status job_join(struct job *job, weir_error *error);
/* Must be called after job_join(), or when no thread was started. */
enum weir_status job_destroy(struct job *job, weir_error *error);

struct progress {
	int64_t batches, examples, steps, passes;
	double epoch, examples_per_second;
	double loss;     /* of training, a moving average */
	double accuracy; /* on the held-out images; below 0: not measured yet */
	size_t queued;
	uint64_t live_versions;
};
struct progress job_progress(struct job *job);

/*
 * Must be called after job_join(). Compares every snapshot that was evaluated with what the
 * trainers published. Returns how many snapshots were torn, including those that were found during
 * the run.
 */
int64_t job_torn_snapshots(struct job *job);

#endif
