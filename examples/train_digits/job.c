/*
 * job.c - see job.h.
 */
#include "job.h"

#include <stdio.h>
#include <stdlib.h>

#include "failure.h"

enum { READS_PER_SNAPSHOT = 4, STALE_LOOKS = 32 };
/* How long the evaluator sleeps after STALE_LOOKS snapshots in a row without a new step. */
static const uint64_t nap_ns = 20000;

/* A counter that one thread writes, and that other threads read for display. */
static void add(_Atomic(int64_t) *counter, int64_t more)
{
	atomic_fetch_add_explicit(counter, more, memory_order_relaxed);
}

static int64_t value_of(const _Atomic(int64_t) *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

/* -- trainers ---------------------------------------------------------------------------------- */

static void note_loss(struct trainer *trainer, float loss)
{
	float average = atomic_load_explicit(&trainer->loss, memory_order_relaxed);

	average = value_of(&trainer->steps) == 0 ? loss : average + 0.05f * (loss - average);
	atomic_store_explicit(&trainer->loss, average, memory_order_relaxed);
}

/* The last trainer that reaches the end of the input ends the job. */
static void finish(struct job *job)
{
	if (atomic_fetch_sub_explicit(&job->at_work, 1, memory_order_acq_rel) == 1)
		(void)weir_coordinator_request_stop(job->coordinator, NULL);
}

static enum weir_status train(weir_coordinator *coordinator, void *context, weir_error *error)
{
	struct trainer *trainer = context;
	struct training_step step;
	enum weir_status status = WEIR_OK;

	while (status == WEIR_OK && !weir_coordinator_should_stop(coordinator)) {
		status = training_step(&trainer->job->training, &step, error);
		if (status != WEIR_OK)
			break;
		note_loss(trainer, step.loss);
		add(&trainer->examples, step.examples);
		add(&trainer->steps, 1);
	}
	if (status != WEIR_OUT_OF_RANGE)
		return status;
	finish(trainer->job);
	return WEIR_OK;
}

/* -- evaluator --------------------------------------------------------------------------------- */

static int64_t step_of(const weir_read reads[])
{
	return *(const int64_t *)weir_tensor_data(reads[STEP].tensor);
}

/*
 * Checks that all values are of one commit: each step publishes the next version of each variable, and
 * only steps change them. job_torn_snapshots() checks the contents.
 */
static int is_whole(const struct job *job, const weir_read reads[])
{
	int64_t step = step_of(reads);
	int whole = step >= job->training.first_step && step <= job->training.last_step;

	for (int i = 0; whole && i < VARIABLES; i++)
		whole = reads[i].version == job->first_versions[i] + (uint64_t)(step - job->training.first_step);
	return whole;
}

static void note_on_curve(struct evaluator *evaluator, int64_t step, const struct score *score)
{
	struct job *job = evaluator->job;
	size_t count = evaluator->curve_count;
	int64_t apart = job->training.last_step / (CURVE_POINTS - 2) + 1;

	if (count == CURVE_POINTS || (count != 0 && step - evaluator->curve[count - 1].step < apart))
		return;
	evaluator->curve[evaluator->curve_count++] = (struct curve_point){
		.step = step,
		.epoch = (double)(step * BATCH_SIZE) / (double)job->examples_per_epoch,
		.loss = (double)score->loss,
		.accuracy = (double)score->right / (double)job->model->held_out_count,
	};
}

static enum weir_status evaluate(struct evaluator *evaluator, weir_session *session, const weir_read reads[],
                                 weir_error *error)
{
	int64_t step = step_of(reads);
	struct score score;
	enum weir_status status = model_evaluate(evaluator->job->model, session, reads, &score, error);

	if (status != WEIR_OK)
		return status;
	evaluator->seen[step] = model_fingerprint_of(reads);
	evaluator->evaluations++;
	atomic_store_explicit(&evaluator->right, score.right, memory_order_relaxed);
	note_on_curve(evaluator, step, &score);
	return WEIR_OK;
}

static enum weir_status take_snapshot(struct evaluator *evaluator, weir_read reads[], weir_error *error)
{
	uint64_t start = weir_now_ns();
	enum weir_status status = weir_var_snapshot(evaluator->job->model->variables, VARIABLES, reads, error);

	latency_add(&evaluator->snapshot, weir_now_ns() - start);
	return status;
}

/* Reads the largest variable alone several times, to measure the latency. */
static enum weir_status read_weights(struct evaluator *evaluator, weir_error *error)
{
	for (int i = 0; i < READS_PER_SNAPSHOT; i++) {
		uint64_t start = weir_now_ns();
		weir_read read;
		enum weir_status status = weir_var_read(evaluator->job->model->variables[HIDDEN_WEIGHTS], &read);

		latency_add(&evaluator->read, weir_now_ns() - start);
		if (status != WEIR_OK)
			return failure(error, status, "cannot read the hidden weights: %s", weir_status_name(status));
		weir_read_release(&read);
	}
	return WEIR_OK;
}

/*
 * Takes one snapshot, and evaluates it if its step has not been evaluated yet; it is then fresh. A step
 * of the monitored session, whose hooks are not concerned.
 */
static enum weir_status look(void *context, weir_session *session, weir_error *error)
{
	struct evaluator *evaluator = context;
	weir_read reads[VARIABLES];
	enum weir_status status = take_snapshot(evaluator, reads, error);

	evaluator->is_fresh = false;
	if (status != WEIR_OK)
		return status;
	evaluator->snapshots++;
	if (!is_whole(evaluator->job, reads)) {
		evaluator->torn++;
	} else if (evaluator->seen[step_of(reads)] == 0) {
		evaluator->is_fresh = true;
		status = evaluate(evaluator, session, reads, error);
	} else if (evaluator->seen[step_of(reads)] != model_fingerprint_of(reads)) {
		evaluator->torn++;
	}
	weir_read_release_many(reads, VARIABLES);
	return status;
}

static enum weir_status watch(weir_coordinator *coordinator, void *context, weir_error *error)
{
	struct evaluator *evaluator = context;
	enum weir_status status = WEIR_OK;
	int stale = 0;

	do { /* at least once, even if the job is short */
		status = weir_monitored_step(evaluator->job->training.monitored, look, evaluator, error);
		if (status == WEIR_OK)
			status = read_weights(evaluator, error);
		stale = evaluator->is_fresh ? 0 : stale + 1;
		if (stale == STALE_LOOKS) {
			(void)weir_coordinator_wait_for_stop(coordinator, weir_deadline_in(nap_ns));
			stale = 0;
		}
	} while (status == WEIR_OK && !weir_coordinator_should_stop(coordinator));
	return status;
}

int64_t job_torn_snapshots(struct job *job)
{
	int64_t torn = job->evaluator.torn;

	for (int64_t step = 0; step <= job->training.last_step; step++) {
		uint64_t seen = job->evaluator.seen[step];

		if (seen != 0 && seen != atomic_load_explicit(&job->training.applied[step], memory_order_relaxed))
			torn++;
	}
	return torn;
}

/* -- the job ----------------------------------------------------------------------------------- */

/* What the variables hold before the first step counts as published by the step before it. */
static enum weir_status note_start(struct job *job, weir_error *error)
{
	weir_read reads[VARIABLES];
	enum weir_status status = weir_var_snapshot(job->model->variables, VARIABLES, reads, error);

	if (status != WEIR_OK)
		return status;
	for (int i = 0; i < VARIABLES; i++)
		job->first_versions[i] = reads[i].version;
	atomic_init(&job->training.applied[step_of(reads)], model_fingerprint_of(reads));
	weir_read_release_many(reads, VARIABLES);
	return WEIR_OK;
}

static enum weir_status allocate(struct job *job, weir_error *error)
{
	size_t steps = (size_t)job->training.last_step + 1;

	job->evaluator.seen = calloc(steps, sizeof(*job->evaluator.seen));
	job->trainers = calloc(job->settings.trainers, sizeof(*job->trainers));
	if (job->evaluator.seen == NULL || job->trainers == NULL)
		return failure(error, WEIR_RESOURCE_EXHAUSTED, "there is no memory for the records of %zu steps", steps);
	for (size_t i = 0; i < job->settings.trainers; i++)
		job->trainers[i].job = job;
	return WEIR_OK;
}

enum weir_status job_create(struct job *job, const struct job_settings *settings, const struct digits *digits,
                            struct model *model, weir_error *error)
{
	struct weir_coordinator_options options = {WEIR_COORDINATOR_OPTIONS_INIT, .name = "train_digits"};
	enum weir_status status;

	*job = (struct job){.settings = *settings, .examples_per_epoch = digits->count, .model = model};
	job->evaluator.job = job;
	atomic_init(&job->evaluator.right, -1);
	atomic_init(&job->at_work, settings->trainers);
	status = training_create(&job->training, &settings->training, digits, model, error);
	if (status != WEIR_OK)
		return status;
	if (allocate(job, error) || note_start(job, error) || weir_coordinator_create(&options, &job->coordinator, error)) {
		(void)job_destroy(job, NULL); /* the first failure is the one to report */
		return error->code;
	}
	return WEIR_OK;
}

static enum weir_status start_threads(struct job *job, weir_error *error)
{
	enum weir_status status =
		weir_coordinator_start_thread(job->coordinator, "evaluator", watch, &job->evaluator, error);

	for (size_t i = 0; i < job->settings.trainers && status == WEIR_OK; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "trainer-%zu", i % 1000);
		status = weir_coordinator_start_thread(job->coordinator, name, train, &job->trainers[i], error);
	}
	return status;
}

enum weir_status job_start(struct job *job, weir_error *error)
{
	enum weir_status status;

	job->started_ns = weir_now_ns();
	status = start_threads(job, error);
	if (status != WEIR_OK)
		job_interrupt(job);
	return status;
}

void job_interrupt(struct job *job)
{
	(void)weir_coordinator_request_stop(job->coordinator, NULL);
}

enum weir_status job_join(struct job *job, weir_error *error)
{
	enum weir_status status =
		weir_coordinator_join(job->coordinator, WEIR_NO_DEADLINE, WEIR_COORDINATOR_GRACE_NS, 0, error);

	job->ended_ns = weir_now_ns();
	return training_close(&job->training, status, error);
}

enum weir_status job_destroy(struct job *job, weir_error *error)
{
	enum weir_status status = training_destroy(&job->training, error);

	if (status == WEIR_OK)
		status = weir_coordinator_destroy(job->coordinator, error);
	if (status != WEIR_OK)
		return status;
	free(job->evaluator.seen);
	free(job->trainers);
	*job = (struct job){0};
	return WEIR_OK;
}

struct progress job_progress(struct job *job)
{
	struct weir_reclaim_stats stats = {WEIR_RECLAIM_STATS_INIT};
	struct progress sum = {.accuracy = -1, .batches = training_batches(&job->training)};
	int64_t before = job->training.first_step * BATCH_SIZE;
	int64_t right = atomic_load_explicit(&job->evaluator.right, memory_order_relaxed);
	uint64_t until = job->ended_ns != 0 ? job->ended_ns : weir_now_ns();

	for (size_t i = 0; i < job->settings.trainers; i++) {
		const struct trainer *trainer = &job->trainers[i];

		sum.examples += value_of(&trainer->examples);
		sum.steps += value_of(&trainer->steps);
		/* Weighted by the number of steps of each trainer. */
		sum.loss +=
			(double)value_of(&trainer->steps) * (double)atomic_load_explicit(&trainer->loss, memory_order_relaxed);
	}
	if (sum.steps != 0)
		sum.loss /= (double)sum.steps;
	sum.epoch = (double)(before + sum.examples) / (double)job->examples_per_epoch;
	if (until > job->started_ns)
		sum.examples_per_second = (double)sum.examples * 1e9 / (double)(until - job->started_ns);
	if (right >= 0)
		sum.accuracy = (double)right / (double)job->model->held_out_count;
	if (weir_reclaim_get_stats(&stats) == WEIR_OK)
		sum.live_versions = stats.live_versions;
	return sum;
}
