/*
 * report.c - lines and JSON; see report.h.
 */
#include "report.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void stress_print_result(const struct stress_result *result)
{
	double rate = result->seconds > 0 ? (double)result->operations / result->seconds : 0;

	printf("%-7s %-18s %6.2f s %11" PRIu64 " operations %9.0f/s", result->outcome, result->scenario, result->seconds,
	       result->operations, rate);
	for (size_t i = 0; i < result->notes; i++)
		printf("%s %" PRIu64 " %s", i == 0 ? " " : ",", result->note[i].value, result->note[i].name);
	if (result->message[0] != '\0')
		printf("  (%s)", result->message);
	printf("\n");
	(void)fflush(stdout);
}

static void write_all(int fd, const char *text)
{
	size_t left = strlen(text);

	while (left != 0) {
		ssize_t written = write(fd, text, left);

		if (written <= 0)
			return;
		text += written;
		left -= (size_t)written;
	}
}

static void describe_replay(const struct stress_result *result, const struct stress_options *options, char *text,
                            size_t size)
{
	(void)snprintf(text, size, "%s --scenario %s --seed %" PRIu64 " --duration %g --threads %u",
	               program_invocation_short_name, result->scenario, options->seed, options->seconds, options->threads);
}

void stress_print_failure(const struct stress_result *result, const struct stress_options *options)
{
	char text[STRESS_MESSAGE + 1024], replay[512];

	describe_replay(result, options, replay, sizeof(replay));
	(void)snprintf(text, sizeof(text),
	               "\nFAILED  %s: %s\n"
	               "  what    %s\n"
	               "  after   %.2f s, %" PRIu64 " operations; sanitizer: %s\n"
	               "  seed    %" PRIu64 "\n"
	               "  replay  %s\n",
	               result->scenario, result->outcome, result->message, result->seconds, result->operations,
	               STRESS_SANITIZER, options->seed, replay);
	write_all(STDERR_FILENO, text);
}

/* dprintf() and not a FILE: a crash may have interrupted malloc. */
static void write_string(int file, const char *text)
{
	(void)dprintf(file, "\"");
	for (; *text != '\0'; text++) {
		unsigned char byte = (unsigned char)*text;

		if (byte == '"' || byte == '\\')
			(void)dprintf(file, "\\%c", byte);
		else if (byte < 0x20)
			(void)dprintf(file, "\\u%04x", byte);
		else
			(void)dprintf(file, "%c", byte);
	}
	(void)dprintf(file, "\"");
}

static void write_result(int file, const struct stress_result *result, const struct stress_options *options)
{
	char replay[512];

	(void)dprintf(file, "    {\"scenario\": ");
	write_string(file, result->scenario);
	(void)dprintf(file,
	              ", \"outcome\": \"%s\", \"seconds\": %.3f, \"operations\": %" PRIu64
	              ", \"longest_stall_seconds\": %.3f, \"most_live_versions\": %" PRIu64
	              ", \"most_retired_bytes\": %" PRIu64 ", \"most_resident_bytes\": %" PRIu64 ", \"notes\": {",
	              result->outcome, result->seconds, result->operations, (double)result->longest_stall_ns * 1e-9,
	              result->most_versions, result->most_retired, result->most_resident);
	for (size_t i = 0; i < result->notes; i++) {
		(void)dprintf(file, "%s", i == 0 ? "" : ", ");
		write_string(file, result->note[i].name);
		(void)dprintf(file, ": %" PRIu64, result->note[i].value);
	}
	(void)dprintf(file, "}, \"message\": ");
	write_string(file, result->message);
	describe_replay(result, options, replay, sizeof(replay));
	(void)dprintf(file, ", \"replay\": ");
	write_string(file, replay);
	(void)dprintf(file, "}");
}

int stress_write_json(const char *path, const struct stress_options *options, const struct stress_result results[],
                      size_t count)
{
	int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666), good;

	if (file < 0)
		return 0;
	(void)dprintf(file, "{\n  \"seed\": %" PRIu64 ", \"threads\": %u, \"duration\": %g, \"sanitizer\": \"%s\",\n",
	              options->seed, options->threads, options->seconds, STRESS_SANITIZER);
	(void)dprintf(file, "  \"scenarios\": [\n");
	for (size_t i = 0; i < count; i++) {
		write_result(file, &results[i], options);
		(void)dprintf(file, "%s\n", i + 1 < count ? "," : "");
	}
	good = dprintf(file, "  ]\n}\n") > 0;
	return close(file) == 0 && good;
}
