/*
 * table.c - prints the contenders of a workload as a table; uses colour only on a terminal.
 */
#include "table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "crew.h"
#include "events.h"
#include "statistics.h"

enum { NAME_WIDTH = 38 };

enum style { PLAIN, BOLD, DIM, RED, GREEN, YELLOW };

/* https://no-color.org: any value except an empty one turns colour off. */
static int coloured(void)
{
	const char *no = getenv("NO_COLOR");

	return isatty(STDOUT_FILENO) && (no == NULL || *no == '\0');
}

static const char *style(enum style which)
{
	static const char *const codes[] = {"\033[0m", "\033[1m", "\033[2m", "\033[31m", "\033[32m", "\033[33m"};

	return coloured() ? codes[which] : "";
}

/* Prints three significant digits, without an exponent. */
static const char *figure(double value, char *text, size_t size)
{
	int decimals = value >= 99.95 ? 0 : value >= 9.995 ? 1 : value >= 0.9995 ? 2 : 3;

	if (isnan(value)) {
		(void)snprintf(text, size, "-");
	} else {
		(void)snprintf(text, size, "%.*f", decimals, value);
	}
	return text;
}

static const char *duration(uint64_t ns, char *text, size_t size)
{
	double value = (double)ns;
	const char *unit = "ns";
	char number[32];

	if (value >= 1e9) {
		value /= 1e9;
		unit = "s ";
	} else if (value >= 1e6) {
		value /= 1e6;
		unit = "ms";
	} else if (value >= 1e4) {
		value /= 1e3;
		unit = "us";
	}
	(void)snprintf(text, size, "%s %s", figure(value, number, sizeof(number)), unit);
	return text;
}

static void print_heading(const struct bench_workload *w)
{
	(void)printf("\n%s%s/%s%s   ", style(BOLD), w->suite, w->name, style(PLAIN));
	if (w->latency) {
		(void)printf("time of an operation");
	} else {
		(void)printf("%s, %s is better", w->unit, w->lower_is_better ? "less" : "more");
	}
	if (bench_oversubscribed(w))
		(void)printf("   %soversubscribed: %u threads on %u processors%s", style(YELLOW), w->left + w->right + w->hogs,
		             bench_processors(), style(PLAIN));
	(void)printf("\n%s  %-*s", style(DIM), NAME_WIDTH, "");
	if (w->latency) {
		(void)printf(" %9s %9s %9s %9s %9s %9s", "p50", "p90", "p99", "p99.9", "p99.99", "max");
	} else {
		(void)printf(" %9s %19s", "median", "quartiles");
		if (w->beside != NULL)
			(void)printf(" %18s", w->beside);
	}
	if (bench_events_name() != NULL)
		(void)printf(" %16s", bench_events_name());
	(void)printf("   %s%s\n", w->latency ? "p99: Weir is" : "Weir is", style(PLAIN));
}

static void print_latencies(const struct bench_cell *cell)
{
	static const double shares[] = {0.5, 0.9, 0.99, 0.999, 0.9999, 1};
	char text[48];

	for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++)
		(void)printf(" %9s", duration(bench_histogram_quantile(cell->ticks, shares[i]), text, sizeof(text)));
}

static void print_values(const struct bench_cell *cell)
{
	char text[48], low[48], high[48];

	(void)printf(" %9s", figure(bench_cell_quantile(cell, 0.5), text, sizeof(text)));
	(void)printf(" %9s-%-9s", figure(bench_cell_quantile(cell, 0.25), low, sizeof(low)),
	             figure(bench_cell_quantile(cell, 0.75), high, sizeof(high)));
	if (cell->workload->beside != NULL)
		(void)printf(" %18s", figure(bench_quantile(cell->beside, cell->count, 0.5), text, sizeof(text)));
}

static void print_advantage(const struct bench_table *table, const struct bench_cell *cell)
{
	struct bench_interval ratio = bench_advantage(table, cell);
	char low[48], middle[48], high[48];
	enum style colour = ratio.low > 1 ? GREEN : ratio.high < 1 ? RED : PLAIN;

	if (isnan(ratio.middle))
		return;
	(void)printf("   %s%sx%s (%s-%s)", style(colour), figure(ratio.middle, middle, sizeof(middle)), style(PLAIN),
	             figure(ratio.low, low, sizeof(low)), figure(ratio.high, high, sizeof(high)));
}

static void print_row(const struct bench_table *table, const struct bench_cell *cell)
{
	char text[48];

	(void)printf("%s %-*.*s%s", cell->about->lock_free ? "*" : " ", NAME_WIDTH, NAME_WIDTH, cell->about->name, " ");
	if (cell->wrong[0] != '\0') {
		(void)printf(" %sWRONG: %s%s\n", style(RED), cell->wrong, style(PLAIN));
		return;
	}
	if (cell->count == 0) {
		(void)printf(" no figure: nothing moved\n");
		return;
	}
	if (cell->workload->latency) {
		print_latencies(cell);
	} else {
		print_values(cell);
	}
	if (bench_events_name() != NULL)
		(void)printf(" %16s", figure(bench_quantile(cell->events, cell->count, 0.5), text, sizeof(text)));
	if (cell != &table->cells[0])
		print_advantage(table, cell);
	if (cell->disturbed != 0)
		(void)printf("  %sdisturbed: %u of %u%s", style(YELLOW), cell->disturbed, cell->count, style(PLAIN));
	if (cell->about->lacks != NULL)
		(void)printf("  %s%s%s", style(DIM), cell->about->lacks, style(PLAIN));
	(void)putchar('\n');
}

void bench_table_print(const struct bench_table *table)
{
	print_heading(&table->workload);
	for (unsigned i = 0; i < table->count; i++)
		print_row(table, &table->cells[i]);
	(void)fflush(stdout);
}

int bench_write_csv(const struct bench_plan *plan, const char *path)
{
	FILE *out = fopen(path, "w");

	if (out == NULL)
		return 0;
	(void)fprintf(out, "suite,workload,contender,threads,unit,median,q25,q75,samples,disturbed\n");
	for (const struct bench_table *table = plan->first; table != NULL; table = table->next) {
		for (unsigned i = 0; i < table->count; i++) {
			const struct bench_cell *cell = &table->cells[i];

			(void)fprintf(out, "%s,\"%s\",\"%s\",%u,%s,", table->workload.suite, table->workload.name,
			              cell->about->name, table->workload.left + table->workload.right, table->workload.unit);
			if (cell->wrong[0] != '\0') {
				(void)fprintf(out, "WRONG,,,0,0\n");
			} else if (cell->count == 0) {
				(void)fprintf(out, ",,,0,0\n");
			} else {
				(void)fprintf(out, "%.4f,%.4f,%.4f,%u,%u\n", bench_cell_quantile(cell, 0.5),
				              bench_cell_quantile(cell, 0.25), bench_cell_quantile(cell, 0.75), cell->count,
				              cell->disturbed);
			}
		}
	}
	return fclose(out) == 0;
}
