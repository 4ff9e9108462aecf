/*
 * report.c - lines and JSON; see report.h.
 */
#include "report.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The longest piece of a JSON file. */
enum { STRESS_LINE = 1024 };

static void print_stops(const struct stress_stops *stops)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < STRESS_FROZEN; i++)
		sum += stops->froze[i];
	printf("        stopped in %-8s %-20s %6" PRIu64 " times: froze no thread %" PRIu64, stops->structure,
	       stops->operation, sum, stops->froze[0]);
	for (unsigned i = 1; i < STRESS_FROZEN; i++) {
		if (stops->froze[i] != 0)
			printf(", %u other%s %" PRIu64, i, i == 1 ? "" : "s", stops->froze[i]);
	}
	printf("\n");
}

void stress_print_result(const struct stress_result *result)
{
	double rate = result->seconds > 0 ? (double)result->operations / result->seconds : 0;

	printf("%-7s %-20s %6.2f s %11" PRIu64 " operations %9.0f/s", result->outcome, result->scenario, result->seconds,
	       result->operations, rate);
	for (size_t i = 0; i < result->notes; i++)
		printf("%s %s: %" PRIu64, i == 0 ? " " : ",", result->note[i].name, result->note[i].value);
	if (result->message[0] != '\0')
		printf("  (%s)", result->message);
	printf("\n");
	for (size_t i = 0; i < result->stop_lines; i++)
		print_stops(&result->stops[i]);
	(void)fflush(stdout);
}

static int write_all(int fd, const char *text, size_t left)
{
	while (left != 0) {
		ssize_t written = write(fd, text, left);

		if (written <= 0)
			return 0;
		text += written;
		left -= (size_t)written;
	}
	return 1;
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
	(void)write_all(STDERR_FILENO, text, strlen(text));
}

/*
 * Output to the file. It uses no FILE, and no dprintf(), which creates one, because a crash may
 * have interrupted malloc().
 */
static struct {
	int file, failed;
	size_t used;
	char bytes[8192];
} out;

static void flush(void)
{
	out.failed |= !write_all(out.file, out.bytes, out.used);
	out.used = 0;
}

static void put(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void put(const char *format, ...)
{
	va_list arguments;

	if (sizeof(out.bytes) - out.used < STRESS_LINE)
		flush();
	va_start(arguments, format);
	out.used += (size_t)vsnprintf(out.bytes + out.used, STRESS_LINE, format, arguments);
	va_end(arguments);
}

static void write_string(const char *text)
{
	put("\"");
	for (; *text != '\0'; text++) {
		unsigned char byte = (unsigned char)*text;

		if (byte == '"' || byte == '\\')
			put("\\%c", byte);
		else if (byte < 0x20)
			put("\\u%04x", byte);
		else
			put("%c", byte);
	}
	put("\"");
}

/* "froze": counts by the number of other threads that stood still, from 0. */
static void write_stops(const struct stress_stops *stops, const char *separator)
{
	put("%s{\"structure\": \"%s\", \"operation\": \"%s\", \"froze\": [", separator, stops->structure, stops->operation);
	for (unsigned i = 0; i < STRESS_FROZEN; i++)
		put("%s%" PRIu64, i == 0 ? "" : ", ", stops->froze[i]);
	put("]}");
}

static void write_result(const struct stress_result *result, const struct stress_options *options)
{
	char replay[512];

	put("    {\"scenario\": ");
	write_string(result->scenario);
	put(", \"outcome\": \"%s\", \"seconds\": %.3f, \"operations\": %" PRIu64
	    ", \"longest_stall_seconds\": %.3f, \"most_live_versions\": %" PRIu64 ", \"most_retired_bytes\": %" PRIu64
	    ", \"most_resident_bytes\": %" PRIu64 ", \"notes\": {",
	    result->outcome, result->seconds, result->operations,
	    (double)weiri_load_relaxed(&result->longest_stall_ns) * 1e-9, weiri_load_relaxed(&result->most_versions),
	    weiri_load_relaxed(&result->most_retired), weiri_load_relaxed(&result->most_resident));
	for (size_t i = 0; i < result->notes; i++) {
		put("%s", i == 0 ? "" : ", ");
		write_string(result->note[i].name);
		put(": %" PRIu64, result->note[i].value);
	}
	put("}, \"stops\": [");
	for (size_t i = 0; i < result->stop_lines; i++)
		write_stops(&result->stops[i], i == 0 ? "" : ", ");
	put("], \"message\": ");
	write_string(result->message);
	describe_replay(result, options, replay, sizeof(replay));
	put(", \"replay\": ");
	write_string(replay);
	put("}");
}

int stress_write_json(const char *path, const struct stress_options *options, const struct stress_result results[],
                      size_t count)
{
	out.file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (out.file < 0)
		return 0;
	out.failed = 0;
	put("{\n  \"seed\": %" PRIu64 ", \"threads\": %u, \"duration\": %g, \"sanitizer\": \"%s\",\n", options->seed,
	    options->threads, options->seconds, STRESS_SANITIZER);
	put("  \"scenarios\": [\n");
	for (size_t i = 0; i < count; i++) {
		write_result(&results[i], options);
		put("%s\n", i + 1 < count ? "," : "");
	}
	put("  ]\n}\n");
	flush();
	return close(out.file) == 0 && !out.failed;
}
