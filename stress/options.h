/*
 * options.h - reads and checks the command line of weir-stress; runs and prints nothing.
 */
#ifndef STRESS_OPTIONS_H
#define STRESS_OPTIONS_H

#include "harness.h"

enum { STRESS_MOST_SCENARIOS = 96, STRESS_FAULT = 256 };
enum stress_request { STRESS_RUN, STRESS_LIST, STRESS_HELP, STRESS_REFUSE };

struct stress_command_line {
	struct stress_options options;
	int chosen[STRESS_MOST_SCENARIOS]; /* by index in the table */
	char fault[STRESS_FAULT];          /* set for STRESS_REFUSE */
};

/*
 * `line` contains the defaults on entry. The first --list, --help or fault decides. The table has
 * at most STRESS_MOST_SCENARIOS entries.
 */
enum stress_request stress_parse(int argc, char *argv[], const struct stress_scenario table[], size_t count,
                                 struct stress_command_line *line);

#endif
