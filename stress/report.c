/*
 * report.c - lines and JSON; see report.h.
 */
#include "report.h"

#include <errno.h>
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

void stress_print_failure(const struct stress_result *result, const struct stress_options *options)
{
	char text[STRESS_MESSAGE + 512];

	(void)snprintf(text, sizeof(text),
	               "\nFAILED  %s: %s\n"
	               "  what    %s\n"
	               "  after   %.2f s, %" PRIu64 " operations; sanitizer: %s\n"
	               "  seed    %" PRIu64 "\n"
	               "  replay  %s --scenario %s --seed %" PRIu64 " --duration %g --threads %u\n",
	               result->scenario, result->outcome, result->message, result->seconds, result->operations,
	               STRESS_SANITIZER, options->seed, program_invocation_short_name, result->scenario, options->seed,
	               options->seconds, options->threads);
	write_all(STDERR_FILENO, text);
}

static void write_string(FILE *file, const char *text)
{
	(void)fputc('"', file);
	for (; *text != '\0'; text++) {
		unsigned char byte = (unsigned char)*text;

		if (byte == '"' || byte == '\\')
			(void)fprintf(file, "\\%c", byte);
		else if (byte < 0x20)
			(void)fprintf(file, "\\u%04x", byte);
		else
			(void)fputc(byte, file);
	}
	(void)fputc('"', file);
}

static void write_result(FILE *file, const struct stress_result *result)
{
	(void)fprintf(file, "    {\"scenario\": ");
	write_string(file, result->scenario);
	(void)fprintf(file, ", \"outcome\": \"%s\", \"seconds\": %.3f, \"operations\": %" PRIu64 ", \"notes\": {",
	              result->outcome, result->seconds, result->operations);
	for (size_t i = 0; i < result->notes; i++) {
		(void)fprintf(file, "%s", i == 0 ? "" : ", ");
		write_string(file, result->note[i].name);
		(void)fprintf(file, ": %" PRIu64, result->note[i].value);
	}
	(void)fprintf(file, "}, \"message\": ");
	write_string(file, result->message);
	(void)fprintf(file, "}");
}

int stress_write_json(const char *path, const struct stress_options *options, const struct stress_result results[],
                      size_t count)
{
	FILE *file = fopen(path, "w");
	int bad;

	if (file == NULL)
		return 0;
	(void)fprintf(file, "{\n  \"seed\": %" PRIu64 ", \"threads\": %u, \"duration\": %g, \"sanitizer\": \"%s\",\n",
	              options->seed, options->threads, options->seconds, STRESS_SANITIZER);
	(void)fprintf(file, "  \"scenarios\": [\n");
	for (size_t i = 0; i < count; i++) {
		write_result(file, &results[i]);
		(void)fprintf(file, "%s\n", i + 1 < count ? "," : "");
	}
	(void)fprintf(file, "  ]\n}\n");
	bad = ferror(file);
	return fclose(file) == 0 && !bad;
}
