/*
 * command.c - see command.h.
 */
#include "command.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>
#include <weir/time.h>

#include "run.h"

static const char help[] = "usage: %s [OPTION]...\n"
						   "\n"
						   "Runs stress scenarios and checks what must hold.\n"
						   "\n"
						   "  --list              list the scenarios, one per line\n"
						   "  --scenario NAME     run this scenario (may be repeated; default: all)\n"
						   "  --duration SECONDS  time per scenario (2)\n"
						   "  --threads N         number of threads (4)\n"
						   "  --seed N            seed of all random choices (default: from the clock)\n"
						   "  --json FILE         also write the results to this file\n"
						   "  --hang SECONDS      longest time without a completed operation (10)\n"
						   "  --live SECONDS      interval of the progress line on standard error; 0: none\n"
						   "                      (0.25 on a terminal, else 0)\n"
						   "\n"
						   "Exit code:\n"
						   "  0   all checks passed\n"
						   "  1   a check failed: a value lost, a snapshot torn, a bound exceeded\n"
						   "  2   a hang: nothing completed; the report says which thread waits for which\n"
						   "  3   a bad command line, or the JSON file could not be written\n"
						   "  66  a sanitizer's report\n"
						   "A crash ends the process by its signal (a shell shows 128 + the signal's number).\n"
						   "Each failure prints its seed and one command that repeats the run.\n";

static int list(const struct stress_scenario table[], size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (table[i].checks != NULL)
			(void)printf("%-20s %s\n", table[i].name, table[i].checks);
	}
	return STRESS_FINE;
}

static int run_chosen(const struct stress_command_line *line, const struct stress_scenario table[], size_t count)
{
	const struct stress_options *options = &line->options;

	(void)printf("%s --seed %" PRIu64 " --threads %u --duration %g, sanitizer: %s\n", program_invocation_short_name,
	             options->seed, options->threads, options->seconds, STRESS_SANITIZER);
	(void)fflush(stdout);
	stress_catch_crashes();
	for (size_t i = 0; i < count; i++) {
		if (line->chosen[i])
			stress_run(&table[i], options);
	}
	if (stress_finish(options))
		return STRESS_FINE;
	(void)fprintf(stderr, "%s: %s could not be written\n", program_invocation_short_name, options->json);
	return STRESS_USAGE;
}

int stress_command(int argc, char *argv[], const struct stress_scenario table[], size_t count)
{
	struct stress_command_line line = {.options = {.seconds = 2,
	                                               .hang_seconds = 10,
	                                               .live_seconds = isatty(STDERR_FILENO) ? 0.25 : 0,
	                                               .threads = 4,
	                                               .seed = weir_now_ns() % 1000000007u}};

	STRESS_CHECK(count <= STRESS_MOST_SCENARIOS, "more than %d scenarios", (int)STRESS_MOST_SCENARIOS);
	switch (stress_parse(argc, argv, table, count, &line)) {
	case STRESS_LIST: return list(table, count);
	case STRESS_HELP: (void)printf(help, program_invocation_short_name); return STRESS_FINE;
	case STRESS_REFUSE: break;
	case STRESS_RUN: return run_chosen(&line, table, count);
	}
	(void)fprintf(stderr, "%s: %s; --help lists the options\n", program_invocation_short_name, line.fault);
	return STRESS_USAGE;
}
