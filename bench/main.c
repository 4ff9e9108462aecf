/*
 * main.c - weir-bench: plan, measure, report.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "baseline.h"
#include "crew.h"
#include "events.h"
#include "json.h"
#include "machine.h"
#include "plan.h"
#include "table.h"

enum { COLUMNS = 110, INDENT = 2 };

/* Prints a markdown item, broken into lines. */
static void print_item(const char *name, const char *words)
{
	int column = printf("* **%s**:", name);

	while (*words != '\0') {
		int length = (int)strcspn(words, " ");

		if (column + 1 + length > COLUMNS)
			column = printf("\n%*s", INDENT - 1, "") - 1;
		column += printf(" %.*s", length, words);
		words += length + (words[length] == ' ');
	}
	(void)putchar('\n');
}

static void explain(const struct bench_options *options)
{
	int first = 1;

	for (size_t i = 0; bench_suites[i] != NULL; i++) {
		const struct bench_suite *suite = bench_suites[i];

		if (!bench_suite_wanted(options, suite))
			continue;
		(void)printf("%s### %s\n\n", first ? "" : "\n", suite->name);
		first = 0;
		for (size_t w = 0; suite->explain[w][0] != NULL; w++)
			print_item(suite->explain[w][0], suite->explain[w][1]);
	}
}

static void list_contenders(const struct bench_table *table)
{
	for (unsigned i = 0; i < table->count; i++) {
		const struct bench_about *about = table->cells[i].about;

		(void)printf("    %-38s %-26s %s%s%s\n", about->name, about->version != NULL ? about->version : "",
		             about->lock_free ? "lock-free" : "", about->lock_free && about->lacks != NULL ? "; " : "",
		             about->lacks != NULL ? about->lacks : "");
	}
}

/*
 * Prints the workloads, one suite at a time, and below them the contenders of the suite's largest
 * table.
 */
static void list(const struct bench_plan *plan)
{
	for (const struct bench_table *table = plan->first; table != NULL;) {
		const struct bench_table *largest = table;
		const char *suite = table->workload.suite;

		(void)printf("suite %s\n", suite);
		for (; table != NULL && strcmp(table->workload.suite, suite) == 0; table = table->next) {
			(void)printf("  %s/%s\n", suite, table->workload.name);
			if (table->count > largest->count)
				largest = table;
		}
		list_contenders(largest);
	}
	for (size_t i = 0; bench_absent[i] != NULL; i++)
		(void)printf("not installed: %s\n", bench_absent[i]);
}

/* Only the rivals that the options want. */
static void name_absent(const struct bench_options *options)
{
	const char *before = "Not installed: ";

	for (size_t i = 0; bench_absent[i] != NULL; i++) {
		if (!bench_rival_wanted(options, bench_absent[i]))
			continue;
		(void)printf("%s%s", before, bench_absent[i]);
		before = ", ";
	}
	if (*before == ',')
		(void)putchar('\n');
}

static void introduce(const struct bench_plan *plan)
{
	char machine[512];
	unsigned oversubscribed = 0;

	bench_machine_line(machine, sizeof(machine));
	(void)printf("%s\n", machine);
	bench_machine_warn();
	for (const struct bench_table *table = plan->first; table != NULL; table = table->next)
		oversubscribed += (unsigned)bench_oversubscribed(&table->workload);
	if (oversubscribed != 0)
		(void)printf(
			"WARNING: %u of %u workloads have more threads than the %u processors. They are marked.\n"
			"They show how a contender behaves when threads are preempted in an operation, and not how it scales.\n",
			oversubscribed, plan->tables, bench_processors());
	(void)printf("* lock-free: a thread that is stopped anywhere blocks no other. Ratios have a 95 %% interval.\n");
	name_absent(plan->options);
	(void)fflush(stdout);
}

static int keep(const struct bench_plan *plan)
{
	const struct bench_options *options = plan->options;

	if (options->csv != NULL && !bench_write_csv(plan, options->csv)) {
		perror(options->csv);
		return 0;
	}
	if (options->json != NULL && !bench_write_json(plan, options->json)) {
		perror(options->json);
		return 0;
	}
	return 1;
}

static const struct bench_plan *running;

static void keep_the_rest(void)
{
	(void)keep(running);
}

/* A long run must not find out only at its end that it cannot write the file. */
static void try_to_write(const char *path)
{
	FILE *out = path != NULL ? fopen(path, "a") : NULL;

	if (path != NULL && out == NULL) {
		(void)fprintf(stderr, "weir-bench: cannot write ");
		perror(path);
		exit(BENCH_USAGE);
	}
	if (out != NULL)
		(void)fclose(out);
}

static int measure(struct bench_plan *plan)
{
	const struct bench_options *options = plan->options;
	struct bench_baseline *baseline = options->baseline != NULL ? bench_baseline_read(options->baseline) : NULL;
	unsigned slower = 0;

	bench_events_open(options);
	try_to_write(options->json);
	try_to_write(options->csv);
	introduce(plan);
	running = plan;
	bench_give_up = keep_the_rest;
	bench_run(plan);
	if (baseline != NULL)
		slower = bench_baseline_compare(baseline, plan, options->slower);
	if (!keep(plan))
		return BENCH_CANNOT;
	if (bench_plan_wrong(plan))
		return BENCH_WRONG;
	return slower != 0 ? BENCH_SLOWER : BENCH_FINE;
}

int main(int argc, char **argv)
{
	struct bench_options options;
	struct bench_plan plan;
	int code = BENCH_FINE;

	bench_read_options(argc, argv, &options);
	bench_plan_make(&plan, &options);
	if (options.explain) {
		explain(&options);
	} else if (options.list) {
		list(&plan);
	} else {
		code = measure(&plan);
	}
	bench_plan_free(&plan);
	return code;
}
