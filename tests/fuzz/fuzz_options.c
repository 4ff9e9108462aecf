/*
 * fuzz_options.c - any words at all as the command line of train_digits: what is accepted is within its bounds.
 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"

enum { MOST_WORDS = 64 };

static void check(const struct options *options)
{
	const struct job_settings *job = &options->job;

	if (job->feeders < 1 || job->feeders > 64 || job->trainers < 1 || job->trainers > 64 || job->epochs < 1 ||
	    job->epochs > 1000 || options->data == NULL || options->data[0] == '\0')
		abort();
}

/* Words end with a zero byte. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char name[] = "train_digits";
	char *text = malloc(size + 1), *words[MOST_WORDS + 1] = {name};
	struct options options;
	int count = 1;

	if (text == NULL)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	for (char *word = text; word < text + size && count < MOST_WORDS; word += strlen(word) + 1)
		words[count++] = word;
	optind = 0; /* glibc: begin anew */
	if (options_parse(count, words, &options) == OPTIONS_RUN)
		check(&options);
	free(text);
	return 0;
}
