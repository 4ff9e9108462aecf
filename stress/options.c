/*
 * options.c - see options.h.
 */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	SCENARIO = 's',
	DURATION = 'd',
	THREADS = 't',
	SEED = 'e',
	JSON = 'j',
	HANG = 'a',
	LIVE = 'v',
	LIST = 'l',
	HELP = 'h'
};

static const struct option long_options[] = {
	{"list", no_argument, NULL, LIST},
	{"scenario", required_argument, NULL, SCENARIO},
	{"duration", required_argument, NULL, DURATION},
	{"threads", required_argument, NULL, THREADS},
	{"seed", required_argument, NULL, SEED},
	{"json", required_argument, NULL, JSON},
	{"hang", required_argument, NULL, HANG},
	{"live", required_argument, NULL, LIVE},
	{"help", no_argument, NULL, HELP},
	{NULL, 0, NULL, 0},
};

static int refuse(struct stress_command_line *line, const char *what, const char *value)
{
	(void)snprintf(line->fault, sizeof(line->fault), "%s%s", what, value);
	return 0;
}

static int parse_number(const char *text, uint64_t least, uint64_t most, uint64_t *number)
{
	char *end;

	if (*text < '0' || *text > '9')
		return 0;
	errno = 0;
	*number = strtoull(text, &end, 10);
	return errno == 0 && *end == '\0' && *number >= least && *number <= most;
}

/* Accepts plain decimals: no sign, no exponent, no other characters. */
static int parse_seconds(const char *text, double least, double *seconds)
{
	char *end;

	if (text[strspn(text, "0123456789.")] != '\0')
		return 0;
	*seconds = strtod(text, &end);
	return end != text && *end == '\0' && *seconds >= least && *seconds <= 1e6;
}

static int parse_threads(struct stress_command_line *line, const char *text)
{
	uint64_t threads = 0;
	int good = parse_number(text, 1, 64, &threads);

	line->options.threads = (unsigned)threads;
	return good || refuse(line, "bad --threads ", text);
}

static int choose(struct stress_command_line *line, const struct stress_scenario table[], size_t count,
                  const char *name)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(table[i].name, name) == 0)
			return line->chosen[i] = 1;
	}
	return refuse(line, "no such scenario: ", name);
}

static int take(struct stress_command_line *line, int option, const struct stress_scenario table[], size_t count,
                char *argv[])
{
	struct stress_options *options = &line->options;

	switch (option) {
	case SCENARIO: return choose(line, table, count, optarg);
	case DURATION: return parse_seconds(optarg, 0.001, &options->seconds) || refuse(line, "bad --duration ", optarg);
	case HANG: return parse_seconds(optarg, 0.1, &options->hang_seconds) || refuse(line, "bad --hang ", optarg);
	case LIVE: return parse_seconds(optarg, 0, &options->live_seconds) || refuse(line, "bad --live ", optarg);
	case THREADS: return parse_threads(line, optarg);
	case SEED: return parse_number(optarg, 0, UINT64_MAX, &options->seed) || refuse(line, "bad --seed ", optarg);
	case JSON: options->json = optarg; return 1;
	default: return refuse(line, "bad option ", argv[optind - 1]);
	}
}

enum stress_request stress_parse(int argc, char *argv[], const struct stress_scenario table[], size_t count,
                                 struct stress_command_line *line)
{
	int option, any = 0;

	opterr = 0;
	optind = 0; /* glibc: begin again */
	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		if (option == LIST)
			return STRESS_LIST;
		if (option == HELP)
			return STRESS_HELP;
		if (!take(line, option, table, count, argv))
			return STRESS_REFUSE;
		any |= option == SCENARIO;
	}
	if (optind < argc) {
		(void)refuse(line, "unknown argument ", argv[optind]);
		return STRESS_REFUSE;
	}
	for (size_t i = 0; i < count && !any; i++)
		line->chosen[i] = table[i].checks != NULL;
	return STRESS_RUN;
}
