/*
 * fuzz_stress_options.c - any words as the command line of weir-stress: accepted values are within
 * their bounds, and a refusal says why.
 */
#include "options.h"
#include "words.h"

enum { SCENARIOS = 3 };

static const struct stress_scenario table[SCENARIOS] = {
	{"ring", "rings", NULL}, {"ring_two", "other rings", NULL}, {"selftest", NULL, NULL}};

static void check(int condition)
{
	if (!condition)
		abort();
}

static void check_run(const struct stress_command_line *line)
{
	const struct stress_options *options = &line->options;
	int any = 0;

	check(options->seconds > 0 && options->seconds <= 1e6);
	check(options->hang_seconds > 0 && options->hang_seconds <= 1e6);
	check(options->live_seconds >= 0 && options->live_seconds <= 1e6);
	check(options->threads >= 1 && options->threads <= 64);
	for (size_t i = 0; i < STRESS_MOST_SCENARIOS; i++) {
		check(i < SCENARIOS || !line->chosen[i]);
		any |= line->chosen[i];
	}
	check(any);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char name[] = "weir-stress";
	struct stress_command_line line = {.options = {.seconds = 2, .hang_seconds = 10, .threads = 4}};
	char *words[MOST_WORDS + 1] = {name}, *text;
	int count;

	text = split_words(data, size, words, &count);
	if (text == NULL)
		return 0;
	switch (stress_parse(count, words, table, SCENARIOS, &line)) {
	case STRESS_RUN: check_run(&line); break;
	case STRESS_REFUSE: check(line.fault[0] != '\0' && memchr(line.fault, '\0', sizeof(line.fault)) != NULL); break;
	case STRESS_LIST:
	case STRESS_HELP: break;
	}
	free(text);
	return 0;
}
