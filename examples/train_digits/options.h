/*
 * options.h - the command line of train_digits.
 */
#ifndef TRAIN_DIGITS_OPTIONS_H
#define TRAIN_DIGITS_OPTIONS_H

#include <stdbool.h>

#include "job.h"
#include "replicas.h"

struct options {
	struct job_settings job;
	const char *data;
	const char *json; /* NULL: none */
	const char *plot; /* NULL: none */
	bool by_replicas;
	struct replicas_settings replicas; /* if by_replicas */
};

enum { DEFAULT_EPOCHS = 30, EXIT_USAGE = 2 };

enum options_outcome { OPTIONS_RUN, OPTIONS_HELP_SHOWN, OPTIONS_BAD };

/* Prints on standard error what is wrong with the options. */
enum options_outcome options_parse(int count, char *words[], struct options *options);

#endif
