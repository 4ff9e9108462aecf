/*
 * command.h - the command line of a program that runs scenarios.
 */
#ifndef STRESS_COMMAND_H
#define STRESS_COMMAND_H

#include "options.h"

/*
 * Runs the scenarios of the table that the arguments select. Returns the exit code; a violation, a
 * hang and bad usage end the process.
 */
int stress_command(int argc, char *argv[], const struct stress_scenario table[], size_t count);

#endif
