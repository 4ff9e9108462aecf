/*
 * report.c - see report.h.
 */
#include "report.h"

#include <inttypes.h>

#include "failure.h"
#include "options.h"

static const double least_accuracy = 0.95;

enum { CLOCK_LOOKS = 1000 };

/* The median of the time between two readings of the clock. */
static uint64_t clock_cost(void)
{
	static struct latency looks;

	for (int i = 0; i < CLOCK_LOOKS; i++) {
		uint64_t start = weir_now_ns();

		latency_add(&looks, weir_now_ns() - start);
	}
	return latency_percentile(&looks, 0.5);
}

enum weir_status report_make(struct report *report, struct job *job, int interrupted, weir_error *error)
{
	weir_read reads[VARIABLES];
	enum weir_status status = weir_var_snapshot(job->model->variables, VARIABLES, reads, error);

	if (status != WEIR_OK)
		return status;
	*report = (struct report){
		.job = job,
		.progress = job_progress(job),
		.final = job->training.final,
		.steps = *(const int64_t *)weir_tensor_data(reads[STEP].tensor) - job->training.first_step,
		.torn = job_torn_snapshots(job),
		.interrupted = interrupted,
		.threshold_applies = !interrupted && job->settings.training.epochs >= DEFAULT_EPOCHS,
		.seconds = (double)(job->ended_ns - job->started_ns) / 1e9,
		.clock_ns = clock_cost(),
		.reclaim = {WEIR_RECLAIM_STATS_INIT},
	};
	weir_read_release_many(reads, VARIABLES);
	status = weir_reclaim_get_stats(&report->reclaim);
	return status == WEIR_OK ? WEIR_OK : failure(error, status, "cannot read the statistics of reclamation");
}

static double accuracy(const struct report *report)
{
	return (double)report->final.right / (double)report->job->model->held_out_count;
}

/* -- for the user ------------------------------------------------------------------------------ */

static void print_latency(const char *title, const struct latency *latency, const char *what)
{
	(void)printf("%-18s p50 %" PRIu64 " ns, p99 %" PRIu64 " ns, p99.9 %" PRIu64 " ns: %" PRIu64 " times %s\n", title,
	             latency_percentile(latency, 0.5), latency_percentile(latency, 0.99),
	             latency_percentile(latency, 0.999), latency->count, what);
}

static void print_memory(const struct report *report)
{
	(void)printf("%-18s %.1f KiB of replaced versions not yet freed; the budget is %.1f MiB; %" PRIu64 " collections\n",
	             "Peak retired", (double)report->reclaim.peak_retired_bytes / 1024,
	             (double)weir_reclaim_budget() / (1024 * 1024), report->reclaim.collections);
}

void report_print(const struct report *report)
{
	const struct job *job = report->job;
	const struct progress *progress = &report->progress;

	(void)printf("%s%.1f of %" PRId64 " epochs in %.2f s\n", report->interrupted ? "Interrupted: " : "",
	             progress->epoch, job->settings.training.epochs, report->seconds);
	(void)printf("%-18s %.4f: %" PRId64 " of %" PRId64 " images that it was not trained on\n", "Held-out accuracy",
	             accuracy(report), report->final.right, job->model->held_out_count);
	(void)printf("%-18s %.0f examples/s\n", "Speed", progress->examples_per_second);
	(void)printf("%-18s %" PRId64 " applied, from step %" PRId64 " on; %" PRId64 " batches taken\n", "Training steps",
	             report->steps, job->training.first_step, progress->batches);
	(void)printf("%-18s %" PRId64 " of %" PRId64 " forward and backward passes computed again\n", "Conflicts",
	             progress->batches - progress->steps, progress->batches);
	(void)printf("%-18s %" PRId64 " taken, %" PRId64 " evaluated, %" PRId64
	             " torn (versions, step and contents compared)\n",
	             "Snapshots", job->evaluator.snapshots, job->evaluator.evaluations, report->torn);
	print_latency("Read latency", &job->evaluator.read, "weir_var_read of the hidden weights");
	print_latency("Snapshot latency", &job->evaluator.snapshot, "weir_var_snapshot of the five variables");
	(void)printf("%-18s both measured by the evaluator beside the trainers; the clock takes %" PRIu64 " ns of each\n",
	             "", report->clock_ns);
	print_memory(report);
}

static int complain(int wrong, const char *what, int64_t got, int64_t expected)
{
	if (wrong)
		(void)fprintf(stderr, "train_digits: wrong: %s: %" PRId64 ", expected %" PRId64 "\n", what, got, expected);
	return wrong;
}

int report_check(const struct report *report)
{
	const struct job *job = report->job;
	const struct progress *progress = &report->progress;
	int64_t before = job->training.first_step * BATCH_SIZE, total = job->training.row_count;
	int64_t expected = before < total ? total - before : 0, dropped = (int64_t)weir_trace_dropped(job->training.trace);
	int wrong = 0;

	wrong += complain(report->torn != 0, "torn snapshots", report->torn, 0);
	wrong += complain(report->steps != progress->batches, "training steps applied", report->steps, progress->batches);
	wrong +=
		complain(progress->steps != progress->batches, "training steps counted", progress->steps, progress->batches);
	if (!report->interrupted)
		wrong += complain(progress->examples != expected, "examples trained on", progress->examples, expected);
	if (job->training.trace != NULL)
		wrong += complain(dropped != 0, "records of the trace dropped", dropped, 0);
	if (report->threshold_applies && !(accuracy(report) >= least_accuracy)) {
		(void)fprintf(stderr, "train_digits: wrong: held-out accuracy: %.4f, expected at least %.2f\n",
		              accuracy(report), least_accuracy);
		wrong++;
	}
	return wrong;
}

/* -- for programs ------------------------------------------------------------------------------ */

static void write_latency(FILE *file, const char *name, const struct latency *latency)
{
	(void)fprintf(file,
	              "  \"%s\": {\"count\": %" PRIu64 ", \"p50\": %" PRIu64 ", \"p99\": %" PRIu64 ", \"p99.9\": %" PRIu64
	              ", \"longest\": %" PRIu64 "},\n",
	              name, latency->count, latency_percentile(latency, 0.5), latency_percentile(latency, 0.99),
	              latency_percentile(latency, 0.999), latency->longest);
}

static void write_curve(FILE *file, const struct evaluator *evaluator)
{
	(void)fputs("  \"curve\": [", file);
	for (size_t i = 0; i < evaluator->curve_count; i++) {
		const struct curve_point *point = &evaluator->curve[i];

		(void)fprintf(file, "%s\n    {\"step\": %" PRId64 ", \"epoch\": %.4f, \"loss\": %.6f, \"accuracy\": %.6f}",
		              i != 0 ? "," : "", point->step, point->epoch, point->loss, point->accuracy);
	}
	(void)fputs("\n  ]\n", file);
}

static void write_settings(FILE *file, const struct job_settings *settings)
{
	const struct training_settings *training = &settings->training;

	(void)fprintf(file,
	              "  \"settings\": {\"threads\": %zu, \"trainers\": %zu, \"epochs\": %" PRId64 ", \"seed\": %" PRIu64
	              ", \"batch\": %d},\n",
	              training->threads, settings->trainers, training->epochs, training->seed, BATCH_SIZE);
}

int report_write_json(const struct report *report, FILE *file)
{
	const struct job *job = report->job;
	const struct progress *progress = &report->progress;

	(void)fputs("{\n  \"program\": \"train_digits\",\n", file);
	write_settings(file, &job->settings);
	(void)fprintf(file, "  \"interrupted\": %s,\n  \"seconds\": %.6f,\n  \"examples\": %" PRId64 ",\n",
	              report->interrupted ? "true" : "false", report->seconds, progress->examples);
	(void)fprintf(file,
	              "  \"examples_per_second\": %.1f,\n  \"held_out_accuracy\": %.6f,\n  \"held_out_loss\": %.6f,\n",
	              progress->examples_per_second, accuracy(report), (double)report->final.loss);
	(void)fprintf(file, "  \"batches_taken\": %" PRId64 ",\n  \"steps_applied\": %" PRId64 ",\n", progress->batches,
	              report->steps);
	(void)fprintf(file, "  \"passes_again\": %" PRId64 ",\n  \"snapshots\": %" PRId64 ",\n",
	              progress->batches - progress->steps, job->evaluator.snapshots);
	(void)fprintf(file, "  \"snapshots_evaluated\": %" PRId64 ",\n  \"snapshots_torn\": %" PRId64 ",\n",
	              job->evaluator.evaluations, report->torn);
	write_latency(file, "read_ns", &job->evaluator.read);
	write_latency(file, "snapshot_ns", &job->evaluator.snapshot);
	(void)fprintf(file, "  \"clock_ns\": %" PRIu64 ",\n  \"peak_retired_bytes\": %" PRIu64 ",\n", report->clock_ns,
	              report->reclaim.peak_retired_bytes);
	(void)fprintf(file, "  \"collections\": %" PRIu64 ",\n", report->reclaim.collections);
	write_curve(file, &job->evaluator);
	(void)fputs("}\n", file);
	return fflush(file) == 0 && !ferror(file);
}
