/*
 * command.h - the command line of a program that runs scenarios.
 */
#ifndef STRESS_COMMAND_H
#define STRESS_COMMAND_H

#include "options.h"

/*
 * Runs the scenarios of the table that the arguments select. Returns the exit code. A violation, a
 * hang or a bad command line ends the process instead.
 */
int stress_command(int argc, char *argv[], const struct stress_scenario table[], size_t count);

#endif
