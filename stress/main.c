/*
 * main.c - weir-stress: the command line and the table of scenarios.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/time.h>

#include "harness.h"
#include "scenarios.h"

static const struct stress_scenario scenarios[] = {
	{"ring_ltq16", "no loss, duplicate or reordering; exact capacity; closing is final", scenario_ring_ltq16},
	{"ring_ltq64", "the same, slots of one word", scenario_ring_ltq64},
	{"ring_stopped", "a thread stopped anywhere stops nobody else", scenario_ring_stopped},
	{"variable_read", "handles stay valid; versions never go back", scenario_variable_read},
	{"variable_counter", "no increment is lost; each gets its own version", scenario_variable_counter},
	{"variable_stopped", "a thread stopped anywhere stops no reader, writer or commit", scenario_variable_stopped},
	{"variable_handles", "handles beyond the slots, passed on, outliving thread and variable",
     scenario_variable_handles},
	{"snapshot_torn", "snapshots are of one instant and agree with real time", scenario_snapshot_torn},
	{"commit_conflict", "conflicting commits keep a total", scenario_commit_conflict},
	{"queue_fifo", "queues lose, double and reorder nothing, and hold what they say", scenario_queue_fifo},
	{"queue_shuffle", "the same of shuffle queues; the minimum stays behind", scenario_queue_shuffle},
	{"queue_batch", "batches that give up put back what they hold, in order", scenario_queue_batch},
	{"queue_close", "closes at any moment: each item is delivered or dropped once, each call ends once",
     scenario_queue_close},
	{"queue_cancel", "tokens fired at any moment: the same", scenario_queue_cancel},
	{"queue_deadline", "deadlines at any moment: the same", scenario_queue_deadline},
	{"queue_stopped", "a thread stopped anywhere holds up the call that it carries on, and no other",
     scenario_queue_stopped},
	{"history_ring", "recorded histories of rings are linearizable", scenario_history_ring},
	{"history_queue_fifo", "the same of queues, beside calls that wait", scenario_history_queue_fifo},
	{"history_shuffle", "the same of shuffle queues: a pool with bounds", scenario_history_shuffle},
	{"history_variable", "the same of variables, by their versions", scenario_history_variable},
	{"history_snapshot", "the same of snapshots beside commits: strictly serializable", scenario_history_snapshot},
	{"history_commit", "the same of commits that conflict", scenario_history_commit},
	{"allocation_failures", "a call that found no memory has done nothing, and nothing leaks",
     scenario_allocation_failures},
	{"destroy_in_use", "destroying what is in use is refused, or safe", scenario_destroy_in_use},
	{"memory_bound", "memory keeps its bound beside a stalled reader and hoarded handles", scenario_memory_bound},
	{"thread_churn", "short-lived threads: records are used again, nothing is lost", scenario_thread_churn},
	{"signal_read", "signal handlers that interrupt anything read whole values", scenario_signal_read},
	{"fork", "the child of a process whose threads are anywhere goes on", scenario_fork},
};
enum { SCENARIOS = sizeof(scenarios) / sizeof(scenarios[0]) };

static const char help[] = "usage: weir-stress [OPTION]...\n"
						   "\n"
						   "Runs scenarios that try to break Weir and checks what must hold.\n"
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
	(void)fprintf(stderr, "weir-stress: %s%s; --help tells more\n", what, value);
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
	for (size_t i = 0; i < SCENARIOS; i++) {
		if (strcmp(scenarios[i].name, name) == 0)
			return i;
	}
	fail_usage("no such scenario: ", name);
}

static _Noreturn void list_and_exit(void)
{
	for (size_t i = 0; i < SCENARIOS; i++)
		(void)printf("%-18s %s\n", scenarios[i].name, scenarios[i].checks);
	exit(STRESS_FINE);
}

static _Noreturn void help_and_exit(void)
{
	(void)fputs(help, stdout);
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
static void parse(int argc, char *argv[], struct stress_options *options, int chosen[SCENARIOS])
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
	for (size_t i = 0; i < SCENARIOS; i++)
		chosen[i] |= !any;
}

int main(int argc, char *argv[])
{
	struct stress_options options = {.seconds = 2, .threads = 4, .seed = weir_now_ns() % 1000000007u};
	int chosen[SCENARIOS] = {0};

	parse(argc, argv, &options, chosen);
	(void)printf("weir-stress --seed %" PRIu64 " --threads %u --duration %g, sanitizer: %s\n", options.seed,
	             options.threads, options.seconds, STRESS_SANITIZER);
	(void)fflush(stdout);
	for (size_t i = 0; i < SCENARIOS; i++) {
		if (chosen[i])
			stress_run(&scenarios[i], &options);
	}
	if (!stress_finish(&options)) {
		(void)fprintf(stderr, "weir-stress: %s could not be written\n", options.json);
		return STRESS_USAGE;
	}
	return STRESS_FINE;
}
