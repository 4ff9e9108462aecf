/*
 * fuzz_options.c - any words as the command line of train_digits: accepted values are within their
 * bounds.
 */
#include <getopt.h>

#include "options.h"
#include "words.h"

static void check(const struct options *options)
{
	const struct job_settings *job = &options->job;

	if (job->training.threads < 1 || job->training.threads > 64 || job->trainers < 1 || job->trainers > 64 ||
	    job->training.epochs < 1 || job->training.epochs > 1000 || options->data == NULL || options->data[0] == '\0')
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char name[] = "train_digits";
	char *words[MOST_WORDS + 1] = {name}, *text;
	struct options options;
	int count;

	text = split_words(data, size, words, &count);
	if (text == NULL)
		return 0;
	optind = 0; /* glibc: begin again */
	if (options_parse(count, words, &options) == OPTIONS_RUN)
		check(&options);
	free(text);
	return 0;
}
