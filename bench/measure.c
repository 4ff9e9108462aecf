/*
 * measure.c - cells, samples, tables and files.
 */
#include "measure.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

enum { CELLS = 1024 };

static struct bench_cell cells[CELLS];
static size_t cell_count;
static unsigned wrong_count;

uint64_t bench_now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

unsigned bench_processors(void)
{
	return (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
}

struct bench_cell *bench_cell(const char *suite, const char *workload, const char *contender, const char *unit,
                              unsigned threads, int lower_is_better)
{
	struct bench_cell *cell = &cells[cell_count];

	if (cell_count == CELLS) {
		(void)fprintf(stderr, "weir-bench: more than %d cells\n", CELLS);
		exit(3);
	}
	cell_count++;
	*cell = (struct bench_cell){.suite = suite,
	                            .workload = strdup(workload),
	                            .contender = contender,
	                            .unit = unit,
	                            .threads = threads,
	                            .lower_is_better = lower_is_better};
	return cell;
}

void bench_sample(struct bench_cell *cell, double value)
{
	if (cell->count < sizeof(cell->sample) / sizeof(cell->sample[0]))
		cell->sample[cell->count++] = value;
}

static int by_value(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

static double quantile(const struct bench_cell *cell, double q)
{
	double sorted[sizeof(cell->sample) / sizeof(cell->sample[0])], at = q * (cell->count - 1);
	unsigned low = (unsigned)at;

	if (cell->count == 0)
		return NAN;
	memcpy(sorted, cell->sample, cell->count * sizeof(sorted[0]));
	qsort(sorted, cell->count, sizeof(sorted[0]), by_value);
	return low + 1 < cell->count ? sorted[low] + (at - low) * (sorted[low + 1] - sorted[low]) : sorted[low];
}

double bench_median(const struct bench_cell *cell)
{
	return quantile(cell, 0.5);
}

int bench_wanted(const struct bench_options *options, const char *suite, const char *workload)
{
	char name[128];

	(void)snprintf(name, sizeof(name), "%s/%s", suite, workload);
	return options->filter == NULL || strstr(name, options->filter) != NULL;
}

int bench_rival_wanted(const struct bench_options *options, const char *name, int is_first)
{
	if (is_first || options->rivals == NULL || strcmp(options->rivals, "all") == 0)
		return 1;
	return strcmp(options->rivals, "none") != 0 && strstr(options->rivals, name) != NULL;
}

void bench_progress(const char *format, ...)
{
	va_list arguments;

	if (!isatty(STDERR_FILENO))
		return;
	(void)fputs("\r\033[K", stderr);
	va_start(arguments, format);
	(void)vfprintf(stderr, format, arguments);
	va_end(arguments);
	(void)fflush(stderr);
}

void bench_wrong(const char *format, ...)
{
	va_list arguments;

	(void)fputs("WRONG: ", stdout);
	va_start(arguments, format);
	(void)vprintf(format, arguments);
	va_end(arguments);
	(void)putchar('\n');
	wrong_count++;
}

unsigned bench_wrong_count(void)
{
	return wrong_count;
}

/* -- tables ------------------------------------------------------------------------------------------------------------------- */

static int same_table(const struct bench_cell *a, const struct bench_cell *b)
{
	return strcmp(a->suite, b->suite) == 0 && strcmp(a->workload, b->workload) == 0;
}

/* How many times better the first of the table is than `cell`. */
static double ratio(const struct bench_cell *first, const struct bench_cell *cell)
{
	double ours = bench_median(first), theirs = bench_median(cell);

	return cell->lower_is_better ? theirs / ours : ours / theirs;
}

void bench_print_tables(void)
{
	const struct bench_cell *first = NULL;

	for (size_t i = 0; i < cell_count; i++) {
		const struct bench_cell *cell = &cells[i];

		if (first == NULL || !same_table(first, cell)) {
			first = cell;
			(void)printf("\n%s: %s%s\n  %-34s %12s %22s %12s\n", cell->suite, cell->workload,
			             cell->threads > bench_processors() ? "   (oversubscribed: more threads than processors)" : "",
			             "", cell->unit, "quartiles", "Weir is");
		}
		if (cell->count == 0)
			continue;
		(void)printf("  %-34s %12.2f %10.2f - %9.2f", cell->contender, bench_median(cell), quantile(cell, 0.25),
		             quantile(cell, 0.75));
		if (cell != first)
			(void)printf(" %11.2fx", ratio(first, cell));
		(void)putchar('\n');
	}
}

/* -- files -------------------------------------------------------------------------------------------------------------------- */

static void machine_line(const char *file, const char *key, char *text, size_t size)
{
	FILE *in = fopen(file, "r");
	char line[256];

	(void)snprintf(text, size, "unknown");
	while (in != NULL && fgets(line, sizeof(line), in) != NULL) {
		char *value = strchr(line, ':');

		if (strncmp(line, key, strlen(key)) == 0 && value != NULL) {
			(void)snprintf(text, size, "%s", value + 2);
			text[strcspn(text, "\n")] = '\0';
			break;
		}
	}
	if (in != NULL)
		(void)fclose(in);
}

void bench_describe_machine(char *text, size_t size)
{
	char model[128];
	struct utsname name;

	machine_line("/proc/cpuinfo", "model name", model, sizeof(model));
	(void)uname(&name);
	(void)snprintf(text, size, "%s, %u processors, %s %s, compiler %s", model, bench_processors(), name.sysname,
	               name.release, __VERSION__);
}

int bench_write_csv(const char *path)
{
	FILE *out = fopen(path, "w");

	if (out == NULL)
		return 0;
	(void)fprintf(out, "suite,workload,contender,threads,unit,median,q25,q75,samples\n");
	for (size_t i = 0; i < cell_count; i++) {
		const struct bench_cell *cell = &cells[i];

		(void)fprintf(out, "%s,%s,%s,%u,%s,%.4f,%.4f,%.4f,%u\n", cell->suite, cell->workload, cell->contender,
		              cell->threads, cell->unit, bench_median(cell), quantile(cell, 0.25), quantile(cell, 0.75),
		              cell->count);
	}
	return fclose(out) == 0;
}

int bench_write_json(const char *path)
{
	FILE *out = fopen(path, "w");
	char machine[512];

	if (out == NULL)
		return 0;
	bench_describe_machine(machine, sizeof(machine));
	(void)fprintf(out, "{\n  \"machine\": \"%s\",\n  \"cells\": [\n", machine);
	for (size_t i = 0; i < cell_count; i++) {
		const struct bench_cell *cell = &cells[i];

		(void)fprintf(
			out,
			"    {\"suite\": \"%s\", \"workload\": \"%s\", \"contender\": \"%s\", \"threads\": %u, \"unit\": \"%s\", "
			"\"samples\": [",
			cell->suite, cell->workload, cell->contender, cell->threads, cell->unit);
		for (unsigned s = 0; s < cell->count; s++)
			(void)fprintf(out, "%s%.4f", s != 0 ? ", " : "", cell->sample[s]);
		(void)fprintf(out, "]}%s\n", i + 1 < cell_count ? "," : "");
	}
	(void)fprintf(out, "  ]\n}\n");
	return fclose(out) == 0;
}
