/*
 * job.h - the threads of the training job, and what each of them did.
 *
 *   feeders    a queue runner: put every training image into the queue, once per epoch; the last one closes the queue
 *   trainers   take batches and apply a step for each, computed again as often as another trainer was faster
 *   evaluator  takes snapshots of all three variables and measures them on the held-out images
 *
 * A coordinator ends them: when the last trainer has found the queue closed and empty, when one fails, or when job_interrupt is called.
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
	/* Its own thread writes, whoever shows progress reads. */
	_Atomic(int64_t) batches, examples, steps, retries;
	_Atomic(float) loss; /* a moving average */
};

struct evaluator {
	struct job *job;
	_Atomic(int64_t) right; /* of the last evaluation; -1: none yet */
	/* Its own thread; others after the join. */
	int64_t snapshots, evaluations, torn;
	uint64_t *seen; /* by step: the fingerprint of its weights and bias in a snapshot; 0: not seen */
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
	int64_t total;              /* examples to feed */
	_Atomic(int64_t) position;  /* the next example; feeders */
	_Atomic(size_t) at_work;    /* trainers that have not come to the end */
	_Atomic(uint64_t) *applied; /* by step: the fingerprint that its trainer published; 0: not yet */
	struct trainer *trainers;
	struct evaluator evaluator;
	uint64_t started_ns, ended_ns;
};

/* training and model must outlive the job. On failure nothing is left. */
enum weir_status job_create(struct job *job, const struct job_settings *settings, const struct digits *training,
                            struct model *model, weir_error *error);
/* Starts all threads. On failure they have been asked to stop; job_join still has to follow. */
enum weir_status job_start(struct job *job, weir_error *error);
void job_interrupt(struct job *job);
/* Waits until all threads have ended; the first failure of any of them. */
enum weir_status job_join(struct job *job, weir_error *error);
/* After job_join, or when no thread was started. */
enum weir_status job_destroy(struct job *job, weir_error *error);

struct progress {
	int64_t batches, examples, steps, retries;
	double epoch, examples_per_second;
	double loss;     /* of training, a moving average */
	double accuracy; /* on the held-out images; below 0: not measured yet */
	size_t queued;
	uint64_t live_versions;
};
struct progress job_progress(struct job *job);

/*
 * After job_join: compares every snapshot that was evaluated with what the trainers published. Returns how many snapshots were
 * torn, those included that were found so at once.
 */
int64_t job_torn_snapshots(struct job *job);

#endif
