/*
 * command.c - see command.h.
 */
#include "command.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/time.h>

/* What there is to choose from. Set once. */
static const struct stress_scenario *scenarios;
static size_t scenario_count;

static const char help[] = "usage: %s [OPTION]...\n"
						   "\n"
						   "Runs scenarios that try to break things and checks what must hold.\n"
						   "\n"
						   "  --list              name the scenarios, one a line\n"
						   "  --scenario NAME     run this one (may be repeated; default: all)\n"
						   "  --duration SECONDS  time for each (2)\n"
						   "  --threads N         threads at work at once (4)\n"
						   "  --seed N            where randomness comes from (the clock)\n"
						   "  --json FILE         write the results there too\n"
						   "\n"
						   "Exit code: 0 all held, 1 something was wrong, 2 a hang, 3 usage; a crash is its signal.\n";

static _Noreturn void fail_usage(const char *what, const char *value)
{
	(void)fprintf(stderr, "%s: %s%s; --help tells more\n", program_invocation_short_name, what, value);
	exit(STRESS_USAGE);
}

static uint64_t parse_number(const char *option, const char *text, uint64_t least, uint64_t most)
{
	char *end;
	unsigned long long value = strtoull(text, &end, 10);

	if (*text < '0' || *text > '9' || *end != '\0' || value < least || value > most)
		fail_usage(option, text);
	return value;
}

static double parse_seconds(const char *text)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end != '\0' || !(value > 0 && value <= 1e6))
		fail_usage("bad --duration ", text);
	return value;
}

static size_t find_scenario(const char *name)
{
	for (size_t i = 0; i < scenario_count; i++) {
		if (strcmp(scenarios[i].name, name) == 0)
			return i;
	}
	fail_usage("no such scenario: ", name);
}

static _Noreturn void list_and_exit(void)
{
	for (size_t i = 0; i < scenario_count; i++)
		(void)printf("%-18s %s\n", scenarios[i].name, scenarios[i].checks);
	exit(STRESS_FINE);
}

static _Noreturn void help_and_exit(void)
{
	(void)printf(help, program_invocation_short_name);
	exit(STRESS_FINE);
}

enum { LIST = 'l', SCENARIO = 's', DURATION = 'd', THREADS = 't', SEED = 'e', JSON = 'j', HELP = 'h' };

static const struct option long_options[] = {
	{"list", no_argument, NULL, LIST},
	{"scenario", required_argument, NULL, SCENARIO},
	{"duration", required_argument, NULL, DURATION},
	{"threads", required_argument, NULL, THREADS},
	{"seed", required_argument, NULL, SEED},
	{"json", required_argument, NULL, JSON},
	{"help", no_argument, NULL, HELP},
	{NULL, 0, NULL, 0},
};

/* Marks in chosen[] what --scenario names; none at all means all. */
static void parse(int argc, char *argv[], struct stress_options *options, int chosen[])
{
	int option, any = 0;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		switch (option) {
		case LIST: list_and_exit();
		case HELP: help_and_exit();
		case SCENARIO: chosen[find_scenario(optarg)] = any = 1; break;
		case DURATION: options->seconds = parse_seconds(optarg); break;
		case THREADS: options->threads = (unsigned)parse_number("bad --threads ", optarg, 1, 64); break;
		case SEED: options->seed = parse_number("bad --seed ", optarg, 0, UINT64_MAX); break;
		case JSON: options->json = optarg; break;
		default: fail_usage("bad option ", argv[optind - 1]);
		}
	}
	if (optind < argc)
		fail_usage("what is ", argv[optind]);
	for (size_t i = 0; i < scenario_count; i++)
		chosen[i] |= !any;
}

int stress_command(int argc, char *argv[], const struct stress_scenario table[], size_t count)
{
	struct stress_options options = {.seconds = 2, .threads = 4, .seed = weir_now_ns() % 1000000007u};
	int chosen[STRESS_MOST_SCENARIOS] = {0};

	STRESS_CHECK(count <= STRESS_MOST_SCENARIOS, "more than %d scenarios", (int)STRESS_MOST_SCENARIOS);
	scenarios = table;
	scenario_count = count;
	parse(argc, argv, &options, chosen);
	(void)printf("%s --seed %" PRIu64 " --threads %u --duration %g, sanitizer: %s\n", program_invocation_short_name,
	             options.seed, options.threads, options.seconds, STRESS_SANITIZER);
	(void)fflush(stdout);
	for (size_t i = 0; i < scenario_count; i++) {
		if (chosen[i])
			stress_run(&scenarios[i], &options);
	}
	if (!stress_finish(&options)) {
		(void)fprintf(stderr, "%s: %s could not be written\n", program_invocation_short_name, options.json);
		return STRESS_USAGE;
	}
	return STRESS_FINE;
}
