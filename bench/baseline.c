/*
 * baseline.c - compares Weir's rows with those of a file that --json wrote.
 *
 * A row is slower when its median is worse by more than the allowed share and the whole confidence
 * interval of the ratio is above 1.
 */
#include "baseline.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine.h"
#include "statistics.h"

struct bench_baseline {
	cJSON *root;
};

static void refuse(const char *path, const char *what)
{
	(void)fprintf(stderr, "weir-bench: --baseline %s: %s\n", path, what);
	exit(BENCH_USAGE);
}

static char *contents(const char *path)
{
	FILE *in = fopen(path, "r");
	char *text = NULL;
	size_t size = 0, room = 0;

	if (in == NULL)
		refuse(path, strerror(errno));
	do {
		if (room - size < 2) {
			room = room * 2 + 65536;
			text = realloc(text, room);
			if (text == NULL)
				exit(BENCH_CANNOT);
		}
		size += fread(text + size, 1, room - size - 1, in);
	} while (!feof(in) && !ferror(in));
	text[size] = '\0';
	if (ferror(in))
		refuse(path, "cannot be read");
	(void)fclose(in);
	return text;
}

struct bench_baseline *bench_baseline_read(const char *path)
{
	struct bench_baseline *baseline = malloc(sizeof(*baseline));
	char *text = contents(path);
	const char *format;

	if (baseline == NULL)
		exit(BENCH_CANNOT);
	baseline->root = cJSON_Parse(text);
	free(text);
	if (baseline->root == NULL)
		refuse(path, "is not JSON");
	format = cJSON_GetStringValue(cJSON_GetObjectItem(baseline->root, "format"));
	if (format == NULL || strcmp(format, "weir-bench 1") != 0 ||
	    !cJSON_IsArray(cJSON_GetObjectItem(baseline->root, "tables")))
		refuse(path, "is not a result of weir-bench --json");
	return baseline;
}

static int says(const cJSON *object, const char *name, const char *value)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(object, name));

	return text != NULL && strcmp(text, value) == 0;
}

/* Copies the samples of the same contender in the same workload, and returns their number. */
static unsigned earlier(const cJSON *root, const struct bench_cell *cell, double values[])
{
	const cJSON *table, *other, *value;
	unsigned count = 0;

	cJSON_ArrayForEach(table, cJSON_GetObjectItem(root, "tables"))
	{
		if (!says(table, "suite", cell->workload->suite) || !says(table, "workload", cell->workload->name) ||
		    !says(table, "unit", cell->workload->unit))
			continue;
		cJSON_ArrayForEach(other, cJSON_GetObjectItem(table, "cells"))
		{
			if (!says(other, "contender", cell->about->name))
				continue;
			cJSON_ArrayForEach(value, cJSON_GetObjectItem(other, "samples"))
			{
				if (count < BENCH_MAX_REPEAT && cJSON_IsNumber(value))
					values[count++] = value->valuedouble;
			}
		}
	}
	return count;
}

static void warn_of_another_machine(const cJSON *root)
{
	cJSON *here = bench_machine();
	const cJSON *there = cJSON_GetObjectItem(root, "machine");
	const char *mine = cJSON_GetStringValue(cJSON_GetObjectItem(here, "processor"));

	if (mine == NULL || !says(there, "processor", mine))
		(void)printf("  WARNING: the baseline was measured on another processor.\n");
	cJSON_Delete(here);
}

/* Returns 1 when the cell is slower than allowed. */
static int compare(const struct bench_cell *cell, const double values[], unsigned count, double slower)
{
	int lower = cell->workload->lower_is_better;
	/* How many times worse the cell is than before. */
	struct bench_interval worse = lower ? bench_ratio(cell->values, cell->count, values, count)
	                                    : bench_ratio(values, count, cell->values, cell->count);
	int fails = slower >= 0 && worse.middle > 1 + slower && worse.low > 1;
	char name[160];

	(void)snprintf(name, sizeof(name), "%s/%s: %s", cell->workload->suite, cell->workload->name, cell->about->name);
	(void)printf("  %-58s %+7.1f %%  (%+.1f .. %+.1f)%s\n", name, 100 * (worse.middle - 1), 100 * (worse.low - 1),
	             100 * (worse.high - 1), fails ? "  SLOWER" : "");
	return fails;
}

unsigned bench_baseline_compare(struct bench_baseline *baseline, const struct bench_plan *plan, double slower)
{
	unsigned compared = 0, fails = 0;

	(void)printf("\nAgainst the baseline: how much longer an operation takes (95 %% interval)\n");
	warn_of_another_machine(baseline->root);
	for (const struct bench_table *table = plan->first; table != NULL; table = table->next) {
		for (unsigned i = 0; i < table->count; i++) {
			const struct bench_cell *cell = &table->cells[i];
			double values[BENCH_MAX_REPEAT];
			unsigned count = bench_is_ours(cell->about) ? earlier(baseline->root, cell, values) : 0;

			if (count == 0 || cell->count == 0)
				continue;
			compared++;
			fails += (unsigned)compare(cell, values, count, slower);
		}
	}
	cJSON_Delete(baseline->root);
	free(baseline);
	if (compared == 0) {
		(void)fprintf(stderr, "weir-bench: the baseline has none of the workloads measured now\n");
		exit(BENCH_USAGE);
	}
	return fails;
}
