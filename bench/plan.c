/*
 * plan.c - asks the suites for their workloads, and keeps those that the options want.
 */
#include "plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crew.h"
#include "statistics.h"

struct bench_workload *bench_plan_workload(struct bench_plan *plan, const struct bench_workload *workload)
{
	struct bench_table *table;
	char name[128];

	(void)snprintf(name, sizeof(name), "%s/%s", workload->suite, workload->name);
	if (plan->options->filter != NULL && strstr(name, plan->options->filter) == NULL)
		return NULL;
	table = calloc(1, sizeof(*table));
	if (table == NULL)
		exit(BENCH_CANNOT);
	table->workload = *workload;
	table->workload.duration_ms = plan->options->duration_ms;
	*plan->last = table;
	plan->last = &table->next;
	plan->tables++;
	return &table->workload;
}

void bench_plan_contender(struct bench_plan *plan, struct bench_workload *workload, const struct bench_about *about,
                          const void *contender)
{
	struct bench_table *table = (struct bench_table *)(void *)workload;
	struct bench_cell *cells;

	if (!bench_rival_wanted(plan->options, about->name))
		return;
	cells = realloc(table->cells, (table->count + 1) * sizeof(*cells));
	if (cells == NULL)
		exit(BENCH_CANNOT);
	table->cells = cells;
	cells[table->count++] = (struct bench_cell){.workload = workload,
	                                            .about = about,
	                                            .contender = contender,
	                                            .ticks = workload->latency ? bench_histogram_create() : NULL};
	plan->cells++;
}

static void refuse(const char *before, const char *value, const char *after)
{
	(void)fprintf(stderr, "weir-bench: %s \"%s\"%s; --list prints the names\n", before, value, after);
	exit(BENCH_USAGE);
}

/* Each name given with --rivals must match a contender. */
static void check_rivals(const struct bench_plan *plan)
{
	const char *at = plan->options->rivals;

	if (at == NULL || strcmp(at, "all") == 0 || strcmp(at, "none") == 0)
		return;
	while (*at != '\0') {
		size_t length = strcspn(at, ",");
		char part[128];
		int found = 0;

		(void)snprintf(part, sizeof(part), "%.*s", (int)length, at);
		for (const struct bench_table *table = plan->first; table != NULL; table = table->next) {
			for (unsigned i = 0; i < table->count; i++)
				found |= length != 0 && strstr(table->cells[i].about->name, part) != NULL;
		}
		if (!found)
			refuse("--rivals: no contender of these workloads has", part, " in its name");
		at += length + (at[length] == ',');
	}
}

static int goes_by(const struct bench_suite *suite, const char *name)
{
	return strcmp(suite->name, name) == 0 || strcmp(suite->group, name) == 0;
}

int bench_suite_wanted(const struct bench_options *options, const struct bench_suite *suite)
{
	int wanted = options->suites[0] == NULL;

	for (size_t i = 0; options->suites[i] != NULL; i++)
		wanted |= goes_by(suite, options->suites[i]);
	return wanted;
}

static void check_suites(const struct bench_options *options)
{
	for (size_t i = 0; options->suites[i] != NULL; i++) {
		int found = 0;

		for (size_t s = 0; bench_suites[s] != NULL; s++)
			found |= goes_by(bench_suites[s], options->suites[i]);
		if (!found)
			refuse("there is no suite", options->suites[i], "");
	}
}

void bench_plan_make(struct bench_plan *plan, const struct bench_options *options)
{
	*plan = (struct bench_plan){.options = options};
	plan->last = &plan->first;
	check_suites(options);
	for (size_t i = 0; bench_suites[i] != NULL; i++) {
		if (bench_suite_wanted(options, bench_suites[i]))
			bench_suites[i]->plan(plan, options);
	}
	if (plan->first == NULL)
		refuse("--filter: no workload has", options->filter, " in its name");
	check_rivals(plan);
}

void bench_plan_free(struct bench_plan *plan)
{
	while (plan->first != NULL) {
		struct bench_table *table = plan->first;

		plan->first = table->next;
		for (unsigned i = 0; i < table->count; i++)
			bench_histogram_destroy(table->cells[i].ticks);
		free(table->cells);
		free(table);
	}
}

int bench_plan_wrong(const struct bench_plan *plan)
{
	for (const struct bench_table *table = plan->first; table != NULL; table = table->next) {
		for (unsigned i = 0; i < table->count; i++) {
			if (table->cells[i].wrong[0] != '\0')
				return 1;
		}
	}
	return 0;
}

int bench_is_ours(const struct bench_about *about)
{
	return strncmp(about->name, "weir", 4) == 0;
}

struct bench_interval bench_advantage(const struct bench_table *table, const struct bench_cell *cell)
{
	const struct bench_cell *ours = &table->cells[0];

	if (table->workload.lower_is_better)
		return bench_paired_ratio(cell->values, cell->count, ours->values, ours->count);
	return bench_paired_ratio(ours->values, ours->count, cell->values, cell->count);
}

int bench_oversubscribed(const struct bench_workload *workload)
{
	return workload->left + workload->right + workload->hogs > bench_processors();
}

double bench_cell_quantile(const struct bench_cell *cell, double q)
{
	return bench_quantile(cell->values, cell->count, q);
}
