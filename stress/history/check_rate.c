/*
 * check_rate.c - measures the cost of recording and the speed of the checkers: a million operations
 * each.
 *
 * The histories are those of a structure under a lock: eight threads have operations that overlap,
 * and the effects have one order. The program fails if a verdict is wrong, or if a million
 * operations take more than 10 s of processor time.
 */
#include "history/history.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

enum { OPERATIONS = 1000000, THREADS = 8, DEPTH = 64, VARIABLES = 16, RECORDED = 1000000 };

static const double most_seconds = 10;

static double seconds(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Operation i takes effect at 100 * i and overlaps some operations before and after it. */
static void place(struct history_op *op, uint64_t i)
{
	uint64_t scatter = i * UINT64_C(0x9e3779b97f4a7c15) >> 40;

	op->called = 100 * (i + 10) - scatter % 700;
	op->returned = 100 * (i + 10) + scatter / 7 % 700;
	op->thread = (uint32_t)(i % THREADS);
}

static int add(struct history *history, struct history_op *op, const struct history_part parts[])
{
	place(op, history->count);
	return history_add(history, op, parts);
}

/*
 * Half of the operations are puts, half are takes. They alternate at a depth of DEPTH, with "empty"
 * at the beginning and "full" sometimes.
 */
static int make_queue(struct history *history)
{
	uint64_t in = 0, out = 0;
	int fine = 1;

	while (fine && history->count < OPERATIONS) {
		struct history_op op = {.argument = HISTORY_NONE, .result = HISTORY_NONE};
		uint64_t i = history->count;

		if (i < 10) {
			op.kind = HISTORY_TAKE_EMPTY;
		} else if (in - out < DEPTH && (i % 2 == 0 || in - out < DEPTH / 2)) {
			op.kind = HISTORY_PUT;
			op.argument = op.result = in++;
		} else if (in - out == DEPTH && i % 3 == 0) {
			op.kind = HISTORY_PUT_FULL;
		} else {
			op.kind = HISTORY_TAKE;
			op.result = out++;
		}
		fine = add(history, &op, NULL);
	}
	return fine;
}

/*
 * Half of the operations are reads, a quarter writes, a quarter both, on `width` variables at once.
 */
static int make_variables(struct history *history, uint16_t width)
{
	uint64_t version[VARIABLES];
	int fine = 1;

	for (unsigned v = 0; v < VARIABLES; v++)
		version[v] = 1;
	while (fine && history->count < OPERATIONS) {
		struct history_op op = {.argument = HISTORY_NONE, .result = history->count, .parts = width};
		struct history_part parts[VARIABLES];
		uint64_t i = history->count, first = i * 7 / 3;

		op.kind = i % 2 == 0 ? HISTORY_READ : HISTORY_WRITE;
		for (unsigned k = 0; k < width; k++) {
			uint64_t v = (first + k) % VARIABLES;

			parts[k] = (struct history_part){v, i % 4 == 3 ? HISTORY_NONE : version[v], HISTORY_NONE, HISTORY_NONE};
			if (op.kind == HISTORY_WRITE)
				parts[k].after = ++version[v];
		}
		fine = add(history, &op, parts);
	}
	return fine;
}

static int failures;

static void report(const char *name, enum history_verdict verdict, const struct history_finding *finding, double took)
{
	int fine = verdict == HISTORY_HOLDS && took <= most_seconds;

	printf("%s %-28s %5.2f s per million operations, %5.2f million per second%s%s\n", fine ? "PASS" : "FAIL", name,
	       took, 1 / took, verdict == HISTORY_HOLDS ? "" : "  ", verdict == HISTORY_HOLDS ? "" : finding->what);
	failures += !fine;
}

static void time_queues(void)
{
	const struct history_bounds bounds = {DEPTH, 0};
	struct history_finding finding;
	struct history history;
	enum history_verdict verdict;
	double start;

	history_init(&history);
	if (!make_queue(&history)) {
		printf("FAIL there is no memory\n");
		failures++;
		return;
	}
	start = seconds();
	history_sort(&history);
	report("sorting by call", HISTORY_HOLDS, &finding, seconds() - start);
	start = seconds();
	verdict = history_check_fifo(&history, &bounds, &finding);
	report("fifo", verdict, &finding, seconds() - start);
	start = seconds();
	verdict = history_check_multiset(&history, &bounds, &finding);
	report("multiset", verdict, &finding, seconds() - start);
	start = seconds();
	verdict = history_check_priority(&history, &bounds, HISTORY_EQUALS_FIFO, &finding);
	report("priority", verdict, &finding, seconds() - start);
	history_fini(&history);
}

static void time_variables(uint16_t width)
{
	struct history_finding finding;
	struct history history;
	enum history_verdict verdict;
	char name[40];
	double start;

	history_init(&history);
	if (!make_variables(&history, width)) {
		printf("FAIL there is no memory\n");
		failures++;
		return;
	}
	if (width == 1) {
		start = seconds();
		verdict = history_check_register(&history, 1, &finding);
		report("register", verdict, &finding, seconds() - start);
	}
	(void)snprintf(name, sizeof(name), "serial, parts: %u", (unsigned)width);
	start = seconds();
	verdict = history_check_serial(&history, 1, NULL, &finding);
	report(name, verdict, &finding, seconds() - start);
	(void)snprintf(name, sizeof(name), "stamps, parts: %u", (unsigned)width);
	start = seconds();
	verdict = history_check_stamps(&history, 1, &finding);
	report(name, verdict, &finding, seconds() - start);
	history_fini(&history);
}

static void time_clock(const char *name, enum history_clock clock, int drained)
{
	struct history_recorder *recorder = history_recorder_create(1, RECORDED, 0, clock);
	struct history_log *log;
	double start, took;

	if (recorder == NULL) {
		printf("FAIL there is no memory\n");
		failures++;
		return;
	}
	log = history_recorder_log(recorder, 0);
	start = seconds();
	for (uint64_t i = 0; i < RECORDED; i++) {
		uint64_t called = history_call(log), returned = drained ? history_return_drained(log) : history_return(log);

		history_note(log, HISTORY_PUT, i, HISTORY_NONE, called, returned);
	}
	took = seconds() - start;
	printf("PASS recording, %-25s %5.1f ns per operation\n", name, took / RECORDED * 1e9);
	history_recorder_destroy(recorder);
}

int main(void)
{
	printf("best clock here: %s\n",
	       history_clock_best() == HISTORY_CLOCK_CYCLES ? "the processor's counter" : "a shared counter");
	time_clock("processor's counter", HISTORY_CLOCK_CYCLES, 0);
	time_clock("the same, drained", HISTORY_CLOCK_CYCLES, 1);
	time_clock("shared counter", HISTORY_CLOCK_COUNTER, 0);
	time_clock("system clock", HISTORY_CLOCK_SYSTEM, 0);
	time_queues();
	time_variables(1);
	time_variables(4);
	return failures != 0;
}
