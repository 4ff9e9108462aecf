/*
 * run.c - decides in which order contenders are measured, and which runs are discarded.
 *
 * Every workload starts with a warm-up round. In each of the repetitions that follow, every
 * contender has one run. The contender that starts moves on by one each time, so that neither a
 * drift of the machine nor a place in the order favours a contender.
 *
 * A run that other load disturbed is repeated, up to TRIES times, and the least disturbed run
 * counts. All repeated runs together take at most half of the planned time, so that the program
 * also ends on a machine that is never idle.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crew.h"
#include "noise.h"
#include "pin.h"
#include "plan.h"
#include "progress.h"
#include "table.h"

enum { TRIES = 4, WARM_UP_MS = 20 };

struct progress {
	struct bench_plan *plan;
	uint64_t start_ns, repeats_allowed;
	unsigned done, all; /* counts of runs */
};

static void show_progress(const struct progress *progress, const struct bench_cell *cell)
{
	double spent = (double)(bench_now_ns() - progress->start_ns) / 1e9;
	double planned = progress->plan->options->duration_ms / 1e3;
	double each = progress->done == 0 ? planned : spent / progress->done;
	unsigned left = (unsigned)(each * (progress->all - progress->done)) + 1;

	bench_progress("%3u %%  about %u:%02u left  %s/%s: %s", 100 * progress->done / progress->all, left / 60, left % 60,
	               cell->workload->suite, cell->workload->name, cell->about->name);
}

static struct bench_noise run_once(const struct bench_cell *cell, struct bench_sample *sample)
{
	struct bench_noise_mark mark = bench_noise_begin();

	*sample = (struct bench_sample){.ticks = cell->ticks != NULL ? bench_histogram_create() : NULL};
	cell->workload->measure(cell->workload, cell->contender, sample);
	return bench_noise_end(&mark, cell->workload, cell->about, sample);
}

/* Runs the contender up to TRIES times, and keeps the run that was disturbed the least. */
static struct bench_noise run_quietly(struct progress *progress, struct bench_cell *cell, struct bench_sample *best)
{
	struct bench_noise noise = run_once(cell, best);

	for (int i = 1; i < TRIES && noise.disturbed && best->wrong[0] == '\0' && progress->repeats_allowed != 0; i++) {
		struct bench_sample again;
		struct bench_noise other = run_once(cell, &again);
		int better = !other.disturbed || other.others < noise.others || again.wrong[0] != '\0';

		progress->repeats_allowed--;
		cell->repeated++;
		bench_histogram_destroy(better ? best->ticks : again.ticks);
		if (better) {
			*best = again;
			noise = other;
		}
	}
	return noise;
}

static void keep(struct bench_cell *cell, const struct bench_sample *sample, const struct bench_noise *noise)
{
	unsigned at = cell->count++;

	cell->values[at] = cell->workload->latency ? (double)bench_histogram_quantile(sample->ticks, 0.99) : sample->value;
	cell->beside[at] = sample->beside;
	cell->events[at] = sample->operations > 0 ? sample->events / sample->operations : 0;
	cell->others[at] = noise->others;
	cell->switches[at] = noise->switches;
	cell->disturbed += (unsigned)noise->disturbed;
	cell->series = sample->series;
	if (sample->ticks != NULL)
		bench_histogram_merge(cell->ticks, sample->ticks);
}

static void measure_cell(struct progress *progress, struct bench_cell *cell, int counts)
{
	struct bench_sample sample;
	struct bench_noise noise;

	if (cell->wrong[0] != '\0')
		return;
	show_progress(progress, cell);
	noise = counts ? run_quietly(progress, cell, &sample) : run_once(cell, &sample);
	if (sample.wrong[0] != '\0') {
		memcpy(cell->wrong, sample.wrong, sizeof(cell->wrong));
	} else if (counts && !sample.idle) {
		keep(cell, &sample, &noise);
	}
	bench_histogram_destroy(sample.ticks);
}

static void run_table(struct progress *progress, struct bench_table *table)
{
	unsigned full = table->workload.duration_ms;

	bench_pin_prepare(progress->plan->options->pin,
	                  table->workload.left + table->workload.right + table->workload.hogs);
	for (unsigned round = 0; round <= progress->plan->options->repeat; round++) {
		table->workload.duration_ms = round != 0 || full < WARM_UP_MS ? full : WARM_UP_MS;
		for (unsigned i = 0; i < table->count; i++) {
			measure_cell(progress, &table->cells[(i + round) % table->count], round != 0);
			progress->done++;
		}
	}
	table->workload.duration_ms = full;
}

void bench_run(struct bench_plan *plan)
{
	unsigned runs = plan->cells * plan->options->repeat;
	struct progress progress = {.plan = plan,
	                            .start_ns = bench_now_ns(),
	                            .repeats_allowed = runs / 2,
	                            .all = plan->cells * (plan->options->repeat + 1)};

	for (struct bench_table *table = plan->first; table != NULL; table = table->next) {
		run_table(&progress, table);
		bench_progress(NULL);
		bench_table_print(table);
	}
	if (progress.repeats_allowed == 0 && runs >= 2)
		(void)printf("\nThis machine is busy with other programs: the time for repeating disturbed runs is used up.\n");
}
