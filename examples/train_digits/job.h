/*
 * job.h - the threads of the training job, and what each of them did.
 *
 * Trainers make one step for each batch of the input (training.h).
 *
 * The evaluator takes snapshots of all five variables and measures them on the held-out images.
 *
 * A coordinator ends the threads when the last trainer finds that the input has ended, when a thread
 * fails, or when job_interrupt() is called.
 */
#ifndef TRAIN_DIGITS_JOB_H
#define TRAIN_DIGITS_JOB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/weir.h>

#include "data.h"
#include "latency.h"
#include "model.h"
#include "training.h"

struct job_settings {
	struct training_settings training;
	size_t trainers;
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
	_Atomic(int64_t) examples, steps;
	_Atomic(float) loss; /* a moving average */
};

struct evaluator {
	struct job *job;
	_Atomic(int64_t) right; /* correct answers in the last evaluation; -1: none yet */
	/* Used by the evaluator's own thread; by others only after the join. */
	int64_t snapshots, evaluations, torn;
	bool is_fresh; /* the last snapshot was of a new step */
	/* by step: the fingerprint of the parameters in a snapshot; 0: not seen */
	uint64_t *seen;
	struct latency read, snapshot;
	struct curve_point curve[CURVE_POINTS];
	size_t curve_count;
};

struct job {
	struct job_settings settings;
	int64_t examples_per_epoch;
	struct model *model;
	weir_coordinator *coordinator;
	struct training training;
	_Atomic(size_t) at_work; /* trainers that have not reached the end of the input */
	struct trainer *trainers;
	struct evaluator evaluator;
	uint64_t first_versions[VARIABLES]; /* of the variables, before the first step */
	uint64_t started_ns, ended_ns;
};

/* The model must outlive the job. A failure leaves nothing behind. */
enum weir_status job_create(struct job *job, const struct job_settings *settings, const struct digits *digits,
                            struct model *model, weir_error *error);
/*
 * Starts all threads. If it fails, the threads have been requested to stop, and the caller must
 * still call job_join().
 */
enum weir_status job_start(struct job *job, weir_error *error);
void job_interrupt(struct job *job);
/* Waits until all threads have ended, and ends the session. Returns the first failure. */
enum weir_status job_join(struct job *job, weir_error *error);
/* Must be called after job_join(), or when no thread was started. */
enum weir_status job_destroy(struct job *job, weir_error *error);

struct progress {
	int64_t batches, examples, steps; /* of this run of the program */
	double epoch;                     /* since the first step, that of a checkpoint included */
	double examples_per_second;
	double loss;     /* of training, a moving average */
	double accuracy; /* on the held-out images; below 0: not measured yet */
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
