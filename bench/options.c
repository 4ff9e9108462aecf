/*
 * options.c - reads the command line, and reports what is wrong with it.
 */
#include "options.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
	"usage: weir-bench [OPTIONS] [SUITE...]\n"
	"\n"
	"What to measure:\n"
	"  --list                suites, workloads, contenders, and rivals that are not installed\n"
	"  --explain             describes each workload in words\n"
	"  SUITE, --suite SUITE  only this suite, or group of suites (\"queues\" or \"variables\")\n"
	"  --filter TEXT         only workloads with TEXT in suite/workload\n"
	"  --rivals all|none|NAME,...   contenders with NAME in their names, besides Weir\n"
	"  --threads LIST        such as 1,2,4/1: N or LEFT/RIGHT; left: producers, readers or updaters;\n"
	"                        right: consumers, or writers beside readers. For a queue N is N/N\n"
	"  --capacity LIST       capacities of rings and queues (1024)\n"
	"  --batch LIST          items per batch of rings (32)\n"
	"How:\n"
	"  --repeat N            repetitions, interleaved over the contenders (9; at most 64)\n"
	"  --duration MS         milliseconds of one repetition (100)\n"
	"  --quick               --repeat 3 --duration 20\n"
	"  --pin none|compact|spread   does not pin threads, or pins them close together or far apart\n"
	"  --count EVENT         also counts an event per operation: cache-misses (the default, if the\n"
	"                        machine counts them), cycles, instructions, switches (of threads),\n"
	"                        migrations, page-faults; or none\n"
	"What to keep:\n"
	"  --json FILE           writes every sample, the histograms and the machine\n"
	"  --csv FILE            writes medians and quartiles\n"
	"  --baseline FILE       compares with an earlier file of --json\n"
	"  --fail-if-slower 10%  exits with code 4 when a row of Weir is that much worse\n"
	"scripts/bench_compare FILE lists the rows in which the winner differs from the kept result:\n"
	"Weir there and the contender in FILE, or the contender there and Weir in FILE.\n"
	"\n"
	"Exit codes: 0 success, 1 a contender gave wrong results, 2 a bad command line,\n"
	"3 something could not be done, 4 slower than the baseline.\n";

static void refuse(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
static void refuse(const char *format, ...)
{
	va_list arguments;

	(void)fputs("weir-bench: ", stderr);
	va_start(arguments, format);
	(void)vfprintf(stderr, format, arguments);
	va_end(arguments);
	(void)fputs("; --help lists the options\n", stderr);
	exit(BENCH_USAGE);
}

/* Reads digits at *text and moves past them. Refuses anything but a number from low to high. */
static unsigned long digits(const char **text, unsigned long low, unsigned long high, const char *option,
                            const char *whole)
{
	char *end;
	unsigned long value = strtoul(*text, &end, 10);

	if (**text < '0' || **text > '9' || value < low || value > high)
		refuse("%s takes numbers from %lu to %lu, not \"%s\"", option, low, high, whole);
	*text = end;
	return value;
}

static unsigned long number(const char *text, unsigned long low, unsigned long high, const char *option)
{
	const char *at = text;
	unsigned long value = digits(&at, low, high, option, text);

	if (*at != '\0')
		refuse("%s takes a number from %lu to %lu, not \"%s\"", option, low, high, text);
	return value;
}

/* Moves past the comma between entries. Returns 0 at the end. */
static int next_entry(const char **at, const char *option, const char *whole)
{
	if (**at == '\0')
		return 0;
	if (**at != ',')
		refuse("%s: \"%s\" is not a list separated by commas", option, whole);
	++*at;
	return 1;
}

static struct bench_sizes sizes(const char *text, unsigned long high, const char *option)
{
	struct bench_sizes list = {0};
	const char *at = text;

	do {
		if (list.count == sizeof(list.size) / sizeof(list.size[0]))
			refuse("%s: more than %zu entries", option, sizeof(list.size) / sizeof(list.size[0]));
		list.size[list.count++] = digits(&at, 1, high, option, text);
	} while (next_entry(&at, option, text));
	return list;
}

static struct bench_shapes shapes(const char *text)
{
	struct bench_shapes list = {0};
	const char *at = text, *option = "--threads";

	do {
		struct bench_shape *shape = &list.shape[list.count];

		if (list.count++ == sizeof(list.shape) / sizeof(list.shape[0]))
			refuse("%s: more than %zu entries", option, sizeof(list.shape) / sizeof(list.shape[0]));
		shape->left = (unsigned)digits(&at, 1, BENCH_MAX_THREADS / 2, option, text);
		shape->plain = *at != '/';
		if (*at == '/') {
			at++;
			shape->right = (unsigned)digits(&at, 0, BENCH_MAX_THREADS / 2, option, text);
		}
	} while (next_entry(&at, option, text));
	return list;
}

static enum bench_pin pin(const char *text)
{
	static const char *const names[] = {"none", "compact", "spread"};

	for (int i = 0; i < 3; i++) {
		if (strcmp(text, names[i]) == 0)
			return (enum bench_pin)i;
	}
	refuse("--pin takes none, compact or spread, not \"%s\"", text);
}

static double percentage(const char *text)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || !(value >= 0 && value <= 1000) || (strcmp(end, "%") != 0 && *end != '\0'))
		refuse("--fail-if-slower takes a percentage such as 10%%, not \"%s\"", text);
	return value / 100;
}

enum {
	LIST = 256,
	EXPLAIN,
	SUITE,
	FILTER,
	RIVALS,
	THREADS,
	CAPACITY,
	BATCH,
	REPEAT,
	DURATION,
	QUICK,
	PIN,
	COUNT,
	JSON,
	CSV,
	BASELINE,
	SLOWER
};

static const struct option names[] = {
	{"list", no_argument, NULL, LIST},
	{"explain", no_argument, NULL, EXPLAIN},
	{"suite", required_argument, NULL, SUITE},
	{"filter", required_argument, NULL, FILTER},
	{"rivals", required_argument, NULL, RIVALS},
	{"threads", required_argument, NULL, THREADS},
	{"capacity", required_argument, NULL, CAPACITY},
	{"batch", required_argument, NULL, BATCH},
	{"repeat", required_argument, NULL, REPEAT},
	{"duration", required_argument, NULL, DURATION},
	{"quick", no_argument, NULL, QUICK},
	{"pin", required_argument, NULL, PIN},
	{"count", required_argument, NULL, COUNT},
	{"json", required_argument, NULL, JSON},
	{"csv", required_argument, NULL, CSV},
	{"baseline", required_argument, NULL, BASELINE},
	{"fail-if-slower", required_argument, NULL, SLOWER},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

/* bench_plan_make() checks that the suite exists. */
static void add_suite(struct bench_options *options, const char *name)
{
	size_t count = 0;

	while (options->suites[count] != NULL)
		count++;
	if (count + 1 == sizeof(options->suites) / sizeof(options->suites[0]))
		refuse("there are too many suites; the first one too many is \"%s\"", name);
	options->suites[count] = name;
}

static void apply(struct bench_options *options, int name, const char *argument)
{
	switch (name) {
	case LIST: options->list = 1; break;
	case EXPLAIN: options->explain = 1; break;
	case SUITE: add_suite(options, argument); break;
	case FILTER: options->filter = argument; break;
	case RIVALS: options->rivals = argument; break;
	case THREADS: options->threads = shapes(argument); break;
	case CAPACITY: options->capacities = sizes(argument, 1 << 24, "--capacity"); break;
	case BATCH: options->batches = sizes(argument, 1024, "--batch"); break;
	case REPEAT: options->repeat = (unsigned)number(argument, 1, BENCH_MAX_REPEAT, "--repeat"); break;
	case DURATION: options->duration_ms = (unsigned)number(argument, 1, 60000, "--duration"); break;
	case QUICK: options->repeat = 3, options->duration_ms = 20; break;
	case PIN: options->pin = pin(argument); break;
	case COUNT: options->count = argument; break;
	case JSON: options->json = argument; break;
	case CSV: options->csv = argument; break;
	case BASELINE: options->baseline = argument; break;
	case SLOWER: options->slower = percentage(argument); break;
	default: break;
	}
}

void bench_read_options(int argc, char **argv, struct bench_options *options)
{
	int name;

	*options = (struct bench_options){.repeat = 9, .duration_ms = 100, .slower = -1};
	opterr = 0;
	while ((name = getopt_long(argc, argv, ":h", names, NULL)) != -1) {
		if (name == 'h') {
			(void)fputs(help, stdout);
			exit(BENCH_FINE);
		}
		if (name == '?')
			refuse("there is no option \"%s\"", argv[optind - 1]);
		if (name == ':')
			refuse("%s needs a value", argv[optind - 1]);
		apply(options, name, optarg);
	}
	while (optind < argc)
		add_suite(options, argv[optind++]);
	if (options->slower >= 0 && options->baseline == NULL)
		refuse("--fail-if-slower needs a --baseline to compare with");
}

int bench_rival_wanted(const struct bench_options *options, const char *name)
{
	const char *at = options->rivals;

	if (strncmp(name, "weir", 4) == 0 || at == NULL || strcmp(at, "all") == 0)
		return 1;
	if (strcmp(at, "none") == 0)
		return 0;
	while (*at != '\0') {
		size_t length = strcspn(at, ",");
		char part[128];

		(void)snprintf(part, sizeof(part), "%.*s", (int)length, at);
		if (length != 0 && strstr(name, part) != NULL)
			return 1;
		at += length + (at[length] == ',');
	}
	return 0;
}
