/*
 * json.c - writes every sample, histogram and series, and the machine.
 */
#include "json.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "events.h"
#include "machine.h"

static void add_values(cJSON *object, const char *name, const double values[], unsigned count)
{
	cJSON *list = cJSON_AddArrayToObject(object, name);

	for (unsigned i = 0; i < count; i++) {
		/* Six significant digits are more than any clock provides. */
		double magnitude = values[i] > 0 ? pow(10, floor(log10(values[i])) - 5) : 1;

		(void)cJSON_AddItemToArray(list, cJSON_CreateNumber(round(values[i] / magnitude) * magnitude));
	}
}

/* Writes pairs [longest ns of the bucket, count] for the buckets that are not empty. */
static void add_histogram(cJSON *object, const struct bench_histogram *histogram)
{
	static const struct {
		const char *name;
		double q;
	} shares[] = {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}, {"p99.99", 0.9999}, {"max", 1}};
	cJSON *percentiles = cJSON_AddObjectToObject(object, "percentiles_ns");
	cJSON *list = cJSON_AddArrayToObject(object, "histogram");

	for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++)
		(void)cJSON_AddNumberToObject(percentiles, shares[i].name,
		                              (double)bench_histogram_quantile(histogram, shares[i].q));
	for (unsigned i = 0; i < BENCH_BUCKETS; i++) {
		double pair[2] = {(double)bench_bucket_top(i), (double)histogram->buckets[i]};

		if (histogram->buckets[i] != 0)
			(void)cJSON_AddItemToArray(list, cJSON_CreateDoubleArray(pair, 2));
	}
}

static cJSON *cell_of(const struct bench_table *table, const struct bench_cell *cell)
{
	cJSON *object = cJSON_CreateObject();
	struct bench_interval ratio = bench_advantage(table, cell);
	double interval[3] = {ratio.low, ratio.middle, ratio.high}, switches[BENCH_MAX_REPEAT];

	(void)cJSON_AddStringToObject(object, "contender", cell->about->name);
	(void)cJSON_AddStringToObject(object, "version", cell->about->version != NULL ? cell->about->version : "");
	(void)cJSON_AddBoolToObject(object, "lock_free", cell->about->lock_free);
	(void)cJSON_AddStringToObject(object, "lacks", cell->about->lacks != NULL ? cell->about->lacks : "");
	if (cell->wrong[0] != '\0') {
		(void)cJSON_AddStringToObject(object, "wrong", cell->wrong);
		return object;
	}
	add_values(object, "samples", cell->values, cell->count);
	if (table->workload.beside != NULL)
		add_values(object, "beside", cell->beside, cell->count);
	if (bench_events_name() != NULL)
		add_values(object, "events", cell->events, cell->count);
	for (unsigned i = 0; i < cell->count; i++)
		switches[i] = (double)cell->switches[i];
	add_values(object, "others", cell->others, cell->count);
	add_values(object, "involuntary_switches", switches, cell->count);
	(void)cJSON_AddNumberToObject(object, "disturbed", cell->disturbed);
	(void)cJSON_AddNumberToObject(object, "repeated", cell->repeated);
	if (!isnan(ratio.middle))
		add_values(object, "weir_is", interval, 3);
	if (cell->ticks != NULL)
		add_histogram(object, cell->ticks);
	if (table->workload.series != NULL) {
		(void)cJSON_AddNumberToObject(object, "series_ms", cell->series.interval_ms);
		add_values(object, "series", cell->series.values, cell->series.count);
	}
	return object;
}

static cJSON *table_of(const struct bench_table *table)
{
	const struct bench_workload *w = &table->workload;
	cJSON *object = cJSON_CreateObject(), *cells;

	(void)cJSON_AddStringToObject(object, "suite", w->suite);
	(void)cJSON_AddStringToObject(object, "workload", w->name);
	(void)cJSON_AddStringToObject(object, "unit", w->unit);
	(void)cJSON_AddStringToObject(object, "better", w->lower_is_better ? "lower" : "higher");
	if (w->beside != NULL)
		(void)cJSON_AddStringToObject(object, "beside_unit", w->beside);
	if (w->series != NULL)
		(void)cJSON_AddStringToObject(object, "series_unit", w->series);
	(void)cJSON_AddNumberToObject(object, "left", w->left);
	(void)cJSON_AddNumberToObject(object, "right", w->right);
	(void)cJSON_AddNumberToObject(object, "hogs", w->hogs);
	(void)cJSON_AddNumberToObject(object, "capacity", (double)w->capacity);
	(void)cJSON_AddNumberToObject(object, "batch", (double)w->batch);
	(void)cJSON_AddNumberToObject(object, "rate", (double)w->rate);
	(void)cJSON_AddBoolToObject(object, "oversubscribed", bench_oversubscribed(w));
	cells = cJSON_AddArrayToObject(object, "cells");
	for (unsigned i = 0; i < table->count; i++)
		(void)cJSON_AddItemToArray(cells, cell_of(table, &table->cells[i]));
	return object;
}

int bench_write_json(const struct bench_plan *plan, const char *path)
{
	cJSON *root = cJSON_CreateObject(), *tables, *absent;
	FILE *out = fopen(path, "w");
	char *text;
	int written;

	if (out == NULL) {
		cJSON_Delete(root);
		return 0;
	}
	(void)cJSON_AddStringToObject(root, "format", "weir-bench 1");
	(void)cJSON_AddItemToObject(root, "machine", bench_machine());
	(void)cJSON_AddNumberToObject(root, "repeat", plan->options->repeat);
	(void)cJSON_AddNumberToObject(root, "duration_ms", plan->options->duration_ms);
	(void)cJSON_AddStringToObject(root, "pin",
	                              plan->options->pin == BENCH_PIN_NONE      ? "none"
	                              : plan->options->pin == BENCH_PIN_COMPACT ? "compact"
	                                                                        : "spread");
	(void)cJSON_AddStringToObject(root, "events", bench_events_name() != NULL ? bench_events_name() : "none");
	absent = cJSON_AddArrayToObject(root, "absent");
	for (size_t i = 0; bench_absent[i] != NULL; i++)
		(void)cJSON_AddItemToArray(absent, cJSON_CreateString(bench_absent[i]));
	tables = cJSON_AddArrayToObject(root, "tables");
	for (const struct bench_table *table = plan->first; table != NULL; table = table->next)
		(void)cJSON_AddItemToArray(tables, table_of(table));
	text = cJSON_PrintUnformatted(root);
	cJSON_Delete(root);
	written = text != NULL && fputs(text, out) >= 0 && fputc('\n', out) == '\n';
	free(text);
	return fclose(out) == 0 && written;
}
