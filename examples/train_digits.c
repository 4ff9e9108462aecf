/*
 * train_digits.c - threads that share variables and a queue, on real data.
 *
 * The images are a dataset, shuffled and put into batches ahead of time. Two trainers take batches. For
 * each they run a function that computes the loss and its gradients, and changes both layers, the slots
 * of Adam and the number of steps by one commit. The session is a monitored one, with hooks and a
 * checkpoint. An evaluator repeatedly takes
 * consistent snapshots. No thread blocks another, no update is lost, and no snapshot is torn. The
 * report at the end shows this, and the exit code depends on it. The parts are in train_digits/.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train_digits/data.h"
#include "train_digits/job.h"
#include "train_digits/model.h"
#include "train_digits/options.h"
#include "train_digits/plot.h"
#include "train_digits/replicas.h"
#include "train_digits/report.h"

static volatile sig_atomic_t interrupted;

/* Setting a flag is all that is safe in a handler; main polls the flag. */
static void on_interrupt(int number)
{
	(void)number;
	interrupted = 1;
}

/* A second Ctrl-C ends the program immediately. */
static void catch_interrupts(void)
{
	struct sigaction action;

	(void)memset(&action, 0, sizeof(action));
	action.sa_handler = on_interrupt;
	action.sa_flags = (int)(SA_RESTART | SA_RESETHAND);
	(void)sigemptyset(&action.sa_mask);
	(void)sigaction(SIGINT, &action, NULL);
	(void)sigaction(SIGTERM, &action, NULL);
}

static int fail(const weir_error *error)
{
	(void)fprintf(stderr, "train_digits: %s (%s)\n", error->message, weir_status_name(error->code));
	return EXIT_FAILURE;
}

/* Shows progress until the job stops, and stops it on Ctrl-C. */
static void accompany(struct job *job)
{
	struct display display = display_start();
	struct progress progress;

	do {
		progress = job_progress(job);
		display_update(&display, job, &progress);
		if (interrupted)
			job_interrupt(job);
	} while (weir_coordinator_wait_for_stop(job->coordinator, weir_deadline_in(display.look_every_ns)) != WEIR_OK);
	display_end(&display);
}

static int draw(const struct evaluator *evaluator, const char *path)
{
	weir_error error;
	enum weir_status status = plot_curve(evaluator->curve, evaluator->curve_count, path, &error);

	if (status == WEIR_OK)
		(void)printf("%-18s %s\n", "Learning curve", path);
	else if (status == WEIR_NOT_FOUND)
		(void)printf("%-18s %s\n", "Learning curve", error.message);
	else
		return fail(&error);
	return EXIT_SUCCESS;
}

static int tell(struct job *job, const struct options *options, FILE *json)
{
	static struct report report;
	weir_error error;
	int code = EXIT_SUCCESS;

	if (report_make(&report, job, interrupted, &error) != WEIR_OK)
		return fail(&error);
	report_print(&report);
	if (json != NULL && !report_write_json(&report, json)) {
		(void)fprintf(stderr, "train_digits: cannot write %s: %s\n", options->json, strerror(errno));
		code = EXIT_FAILURE;
	}
	if (training_write_trace(&job->training, &error) != WEIR_OK)
		return fail(&error);
	if (options->plot != NULL && draw(&job->evaluator, options->plot) != EXIT_SUCCESS)
		code = EXIT_FAILURE;
	return report_check(&report) == 0 ? code : EXIT_FAILURE;
}

static int run_job(struct job *job, const struct options *options, FILE *json)
{
	weir_error error, ending;
	enum weir_status started = job_start(job, &error);
	int code;

	if (started == WEIR_OK)
		accompany(job);
	if (job_join(job, &ending) != WEIR_OK)
		code = fail(&ending);
	else
		code = started == WEIR_OK ? tell(job, options, json) : fail(&error);
	return job_destroy(job, &error) == WEIR_OK ? code : fail(&error);
}

/* No version, held or retired, may remain after the variables are destroyed. */
static int check_nothing_left(void)
{
	struct weir_reclaim_stats stats = {WEIR_RECLAIM_STATS_INIT};

	(void)weir_reclaim_flush(weir_deadline_in(UINT64_C(1000000000)));
	if (weir_reclaim_get_stats(&stats) == WEIR_OK && stats.live_versions == 0 && stats.retired_bytes == 0)
		return EXIT_SUCCESS;
	(void)fprintf(stderr, "train_digits: wrong: %llu versions and %llu bytes were left\n",
	              (unsigned long long)stats.live_versions, (unsigned long long)stats.retired_bytes);
	return EXIT_FAILURE;
}

static int train(const struct digits *training, const struct digits *held_out, const struct options *options,
                 FILE *json)
{
	static struct job job;
	struct model model;
	weir_error error;
	int code;

	(void)printf("%lld images to train on, %lld held out; threads: %zu for the input, %zu trainers, 1 evaluator\n",
	             (long long)training->count, (long long)held_out->count, options->job.training.threads,
	             options->job.trainers);
	if (model_create(&model, held_out, options->job.training.seed, &error) != WEIR_OK)
		return fail(&error);
	if (job_create(&job, &options->job, training, &model, &error) == WEIR_OK)
		code = run_job(&job, options, json);
	else
		code = fail(&error);
	if (model_destroy(&model, &error) != WEIR_OK)
		return fail(&error);
	return check_nothing_left() == EXIT_SUCCESS ? code : EXIT_FAILURE;
}

static int read_and_train(const struct options *options, FILE *json)
{
	struct digits training, held_out;
	weir_error error;
	int code;

	if (digits_read(options->data, &training, &held_out, &error) != WEIR_OK)
		return fail(&error);
	if (digits_stack(&held_out, &error) != WEIR_OK ||
	    (options->by_replicas && digits_stack(&training, &error) != WEIR_OK))
		code = fail(&error);
	else if (options->by_replicas)
		code = replicas_train(&options->replicas, &training, &held_out);
	else
		code = train(&training, &held_out, options, json);
	digits_release(&training);
	digits_release(&held_out);
	return code;
}

int main(int count, char *words[])
{
	struct options options;
	FILE *json = NULL;
	int code;

	switch (options_parse(count, words, &options)) {
	case OPTIONS_RUN: break;
	case OPTIONS_HELP_SHOWN: return EXIT_SUCCESS;
	default: return EXIT_USAGE;
	}
	catch_interrupts();
	/* Opens the file before the work, so that an unwritable path is reported at once. */
	if (options.json != NULL && (json = fopen(options.json, "w")) == NULL) {
		(void)fprintf(stderr, "train_digits: cannot write %s: %s\n", options.json, strerror(errno));
		return EXIT_FAILURE;
	}
	code = read_and_train(&options, json);
	if (json != NULL && fclose(json) != 0)
		code = EXIT_FAILURE;
	return code;
}
