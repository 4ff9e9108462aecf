/*
 * options.c - see options.h.
 */
#include "options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_THREADS = 64, MAX_TRAINERS = 64, MAX_EPOCHS = 1000, MAX_REPLICAS = 16 };

static const char help[] =
	"usage: train_digits [OPTION]...\n"
	"\n"
	"Learns to tell handwritten digits apart. The images are a dataset, shuffled and put\n"
	"into batches of 32 ahead of time. Trainer threads take them, and change two layers\n"
	"together by steps of Adam. An evaluator repeatedly takes snapshots of the variables.\n"
	"No thread waits for a lock. Ctrl-C ends the training early.\n"
	"\n"
	"  --threads N    threads that prepare batches, 1 to 64 (1)\n"
	"  --trainers N   trainer threads, 1 to 64 (2)\n"
	"  --epochs N     how often every image is trained on, 1 to 1000 (30)\n"
	"  --seed N       of the first weights and of the shuffling (1); threads still race\n"
	"  --data FILE    rows of 64 pixels (0 to 16) and a digit, plain or gzip\n"
	"                 (examples/data/digits.csv.gz)\n"
	"  --json FILE    write the report and the learning curve there\n"
	"  --plot FILE    draw the learning curve there as SVG, with gnuplot\n"
	"  --replicas N   instead, N mirrors of the model learn from shards of each batch, and\n"
	"                 change together (1 to 16); or `mpi`: the processes that mpirun started\n"
	"                 (--trainers: threads that compute, 1 for each mirror)\n"
	"  --checkpoint FILE  saved now and then, and at the end; if it exists, the training goes on\n"
	"                 from it (of replicas after each step). After a kill, as many batches as\n"
	"                 there are other trainers may come twice, and as many not at all\n"
	"  --trace FILE   write what each op did there, for weir-trace\n"
	"  --help         this text\n"
	"\n"
	"Exit code: 0 success; 1 something failed, or a run of 30 epochs or more stayed\n"
	"below 95 % on images that it was not trained on; 2 bad options.\n";

static enum options_outcome bad(const char *what, const char *word, const char *expected)
{
	(void)fprintf(stderr, "train_digits: %s \"%s\"%s%s; see train_digits --help\n", what, word,
	              expected[0] != '\0' ? ": expected " : "", expected);
	return OPTIONS_BAD;
}

static enum options_outcome parse_number(const char *name, const char *word, uint64_t least, uint64_t most,
                                         uint64_t *out)
{
	char *end, expected[80];
	unsigned long long value;

	errno = 0;
	value = strtoull(word, &end, 10);
	if (isdigit((unsigned char)word[0]) && *end == '\0' && errno == 0 && value >= least && value <= most) {
		*out = value;
		return OPTIONS_RUN;
	}
	(void)snprintf(expected, sizeof(expected), "a number from %" PRIu64 " to %" PRIu64, least, most);
	return bad(name, word, expected);
}

static enum options_outcome parse_size(const char *name, const char *word, size_t most, size_t *out)
{
	uint64_t value = 0;
	enum options_outcome outcome = parse_number(name, word, 1, most, &value);

	*out = (size_t)value;
	return outcome;
}

static enum options_outcome parse_path(const char *name, const char *word, const char **out)
{
	*out = word;
	return word[0] != '\0' ? OPTIONS_RUN : bad(name, word, "the name of a file");
}

static enum options_outcome parse_epochs(const char *word, int64_t *out)
{
	uint64_t value = 0;
	enum options_outcome outcome = parse_number("--epochs", word, 1, MAX_EPOCHS, &value);

	*out = (int64_t)value;
	return outcome;
}

static enum options_outcome parse_replicas(const char *word, struct options *options)
{
	options->by_replicas = true;
	options->replicas.count = 0;
	return strcmp(word, "mpi") == 0 ? OPTIONS_RUN
	                                : parse_size("--replicas", word, MAX_REPLICAS, &options->replicas.count);
}

static enum options_outcome apply(int option, const char *word, struct options *options)
{
	enum options_outcome outcome;

	switch (option) {
	case 't': return parse_size("--threads", word, MAX_THREADS, &options->job.training.threads);
	case 'T':
		outcome = parse_size("--trainers", word, MAX_TRAINERS, &options->job.trainers);
		options->replicas.threads = options->job.trainers;
		return outcome;
	case 'e': return parse_epochs(word, &options->job.training.epochs);
	case 's': return parse_number("--seed", word, 0, UINT64_MAX, &options->job.training.seed);
	case 'd': return parse_path("--data", word, &options->data);
	case 'j': return parse_path("--json", word, &options->json);
	case 'p': return parse_path("--plot", word, &options->plot);
	case 'r': return parse_replicas(word, options);
	case 'c': return parse_path("--checkpoint", word, &options->job.training.checkpoint);
	case 'R': return parse_path("--trace", word, &options->job.training.trace);
	case 'h': (void)fputs(help, stdout); return OPTIONS_HELP_SHOWN;
	/* getopt has said why */
	default: (void)fputs("see train_digits --help\n", stderr); return OPTIONS_BAD;
	}
}

enum options_outcome options_parse(int count, char *words[], struct options *options)
{
	static const struct option known[] = {
		{"threads", required_argument, NULL, 't'},
		{"trainers", required_argument, NULL, 'T'},
		{"epochs", required_argument, NULL, 'e'},
		{"seed", required_argument, NULL, 's'},
		{"data", required_argument, NULL, 'd'},
		{"json", required_argument, NULL, 'j'},
		{"plot", required_argument, NULL, 'p'},
		{"replicas", required_argument, NULL, 'r'},
		{"checkpoint", required_argument, NULL, 'c'},
		{"trace", required_argument, NULL, 'R'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int option;

	*options = (struct options){
		.job = {.training = {.threads = 1, .epochs = DEFAULT_EPOCHS, .seed = 1}, .trainers = 2},
		.data = "examples/data/digits.csv.gz",
	};
	while ((option = getopt_long(count, words, "h", known, NULL)) != -1) {
		enum options_outcome outcome = apply(option, optarg, options);

		if (outcome != OPTIONS_RUN)
			return outcome;
	}
	options->replicas.epochs = options->job.training.epochs;
	options->replicas.seed = options->job.training.seed;
	options->replicas.checkpoint = options->job.training.checkpoint;
	options->replicas.trace = options->job.training.trace;
	return optind == count ? OPTIONS_RUN : bad("not an option:", words[optind], "");
}
