/*
 * main.c - weir-bench: the command line.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "measure.h"

static const struct bench_suite *const suites[] = {&bench_ring_suite, &bench_variable_suite, &bench_snapshot_suite,
                                                   &bench_memory_suite};
enum { SUITES = sizeof(suites) / sizeof(suites[0]) };

static const char help[] = "usage: weir-bench [OPTIONS]\n"
						   "  --list              suites, contenders and rivals that are not installed\n"
						   "  --explain           each workload in words\n"
						   "  --suite NAME        that suite only\n"
						   "  --filter TEXT       workloads with TEXT in suite/workload\n"
						   "  --rivals all|none|NAME,...\n"
						   "  --capacity N        of rings (1024)\n"
						   "  --repeat N          repetitions, interleaved over the contenders (5; at most 32)\n"
						   "  --duration MS       of one repetition (100)\n"
						   "  --quick             --repeat 3 --duration 30\n"
						   "  --csv FILE, --json FILE   medians and quartiles; all samples and the machine\n";

static const char *version(const struct bench_about *about)
{
	return about->version != NULL ? about->version : "";
}

static void list(void)
{
	for (size_t i = 0; i < SUITES; i++)
		(void)printf("suite %s\n", suites[i]->name);
	for (size_t i = 0; bench_rings[i] != NULL; i++)
		(void)printf("ring %-34s %s%s\n", bench_rings[i]->about.name, version(&bench_rings[i]->about),
		             bench_rings[i]->about.lock_free ? " (lock-free)" : "");
	for (size_t i = 0; bench_readers[i] != NULL; i++)
		(void)printf("variable %-30s %s%s\n", bench_readers[i]->about.name, version(&bench_readers[i]->about),
		             bench_readers[i]->about.lacks == NULL ? " (retains)" : "");
	for (size_t i = 0; bench_absent[i] != NULL; i++)
		(void)printf("absent %s\n", bench_absent[i]);
}

static unsigned long number(const char *text, unsigned long low, unsigned long high, const char *what)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end != '\0' || value < low || value > high) {
		(void)fprintf(stderr, "weir-bench: %s must be a number from %lu to %lu, got \"%s\"\n", what, low, high, text);
		exit(2);
	}
	return value;
}

static void run(const struct bench_options *options)
{
	int found = 0;

	for (size_t i = 0; i < SUITES; i++) {
		if (options->suite != NULL && strcmp(options->suite, suites[i]->name) != 0)
			continue;
		found = 1;
		suites[i]->run(options);
	}
	if (!found) {
		(void)fprintf(stderr, "weir-bench: no suite \"%s\"; see --list\n", options->suite);
		exit(2);
	}
}

static int finish(const char *csv, const char *json)
{
	char machine[512];

	bench_progress("%s", "");
	bench_describe_machine(machine, sizeof(machine));
	(void)printf("%s\n", machine);
	bench_print_tables();
	for (size_t i = 0; bench_absent[i] != NULL; i++)
		(void)printf("%s%s", i == 0 ? "\nnot installed: " : ", ", bench_absent[i]);
	(void)putchar('\n');
	if ((csv != NULL && !bench_write_csv(csv)) || (json != NULL && !bench_write_json(json))) {
		perror("weir-bench: cannot write the results");
		return 3;
	}
	return bench_wrong_count() != 0;
}

int main(int argc, char **argv)
{
	static const struct option names[] = {
		{"list", no_argument, NULL, 'l'},
		{"explain", no_argument, NULL, 'e'},
		{"suite", required_argument, NULL, 's'},
		{"filter", required_argument, NULL, 'f'},
		{"rivals", required_argument, NULL, 'r'},
		{"capacity", required_argument, NULL, 'c'},
		{"repeat", required_argument, NULL, 'n'},
		{"duration", required_argument, NULL, 'd'},
		{"quick", no_argument, NULL, 'q'},
		{"csv", required_argument, NULL, 'C'},
		{"json", required_argument, NULL, 'J'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	struct bench_options options = {.repeat = 5, .duration_ms = 100};
	const char *csv = NULL, *json = NULL;
	int name;

	while ((name = getopt_long(argc, argv, "h", names, NULL)) != -1) {
		switch (name) {
		case 'l': list(); return 0;
		case 'e':
			for (size_t i = 0; i < SUITES; i++)
				(void)printf("%s\n%s\n", suites[i]->name, suites[i]->explain);
			return 0;
		case 's': options.suite = optarg; break;
		case 'f': options.filter = optarg; break;
		case 'r': options.rivals = optarg; break;
		case 'c': options.capacity = number(optarg, 1, 1 << 24, "--capacity"); break;
		case 'n': options.repeat = (unsigned)number(optarg, 1, 32, "--repeat"); break;
		case 'd': options.duration_ms = (unsigned)number(optarg, 1, 60000, "--duration"); break;
		case 'q': options.repeat = 3, options.duration_ms = 30; break;
		case 'C': csv = optarg; break;
		case 'J': json = optarg; break;
		case 'h': (void)fputs(help, stdout); return 0;
		default: (void)fputs(help, stderr); return 2;
		}
	}
	if (optind < argc) {
		(void)fprintf(stderr, "weir-bench: what is \"%s\"?\n%s", argv[optind], help);
		return 2;
	}
	run(&options);
	return finish(csv, json);
}
