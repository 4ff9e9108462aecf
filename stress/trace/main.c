/*
 * main.c - weir-trace: checks and draws the traces that weir_trace_write() writes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace.h"

static const char usage[] =
	"usage: weir-trace check FILE     decides whether the recorded runs kept the rules of a dataflow\n"
	"       weir-trace chrome FILE    writes JSON for chrome://tracing and Perfetto to the standard output\n"
	"       weir-trace hidden FILE OP tells how much of the time of all ops of the kind OP, such as all_reduce, "
	"passed\n"
	"                                 beside other ops\n"
	"FILE is a trace of weir_trace_write(); \"-\" is the standard input. check exits with 0 if there is no fault,\n"
	"1 if there is one, and 2 if the file is not a trace.\n";

static void *read_file(const char *name, size_t *size)
{
	FILE *file = strcmp(name, "-") == 0 ? stdin : fopen(name, "rb");
	size_t room = 1 << 16;
	char *bytes = malloc(room);

	*size = 0;
	while (file != NULL && bytes != NULL) {
		size_t got = fread(bytes + *size, 1, room - *size, file);
		char *more = bytes;

		*size += got;
		if (got == 0)
			break;
		if (*size == room)
			more = realloc(bytes, room *= 2);
		if (more == NULL)
			free(bytes);
		bytes = more;
	}
	if (file == NULL || bytes == NULL || ferror(file)) {
		(void)fprintf(stderr, "weir-trace: %s cannot be read\n", name);
		free(bytes);
		bytes = NULL;
	}
	if (file != NULL && file != stdin)
		(void)fclose(file);
	return bytes;
}

static void report(void *context, const char *line)
{
	(void)context;
	(void)puts(line);
}

static void put(void *context, const char *text)
{
	(void)context;
	(void)fputs(text, stdout);
}

static int check(const struct trace *trace)
{
	size_t faults = trace_check(trace, report, NULL);

	if (faults == SIZE_MAX) {
		(void)fprintf(stderr, "weir-trace: no memory\n");
		return 2;
	}
	(void)printf("%s: %zu ops in %zu frames, %zu fault%s\n", faults == 0 ? "PASS" : "FAIL", trace->event_count,
	             trace->frame_count, faults, faults == 1 ? "" : "s");
	return faults != 0;
}

static int hidden(const struct trace *trace, const char *op)
{
	struct trace_hiding hiding;

	if (!trace_hidden(trace, op, &hiding)) {
		(void)fprintf(stderr, "weir-trace: no memory\n");
		return 2;
	}
	(void)printf("%s: %zu ops, %.3f ms; %.3f ms (%.0f %%) beside other ops\n", op, hiding.ops,
	             (double)hiding.total_ns / 1e6, (double)hiding.hidden_ns / 1e6,
	             hiding.total_ns != 0 ? 100.0 * (double)hiding.hidden_ns / (double)hiding.total_ns : 0.0);
	return 0;
}

int main(int argc, char *argv[])
{
	bool checks = argc == 3 && strcmp(argv[1], "check") == 0;
	bool hides = argc == 4 && strcmp(argv[1], "hidden") == 0;
	struct trace trace;
	weir_error error;
	size_t size;
	void *bytes;
	int result = 0;

	if (argc == 2 && strcmp(argv[1], "--help") == 0) {
		(void)fputs(usage, stdout);
		return 0;
	}
	if (!checks && !hides && (argc != 3 || strcmp(argv[1], "chrome") != 0)) {
		(void)fputs(usage, stderr);
		return 2;
	}
	bytes = read_file(argv[2], &size);
	if (bytes == NULL)
		return 2;
	if (trace_read(bytes, size, &trace, &error) != WEIR_OK) {
		(void)fprintf(stderr, "weir-trace: %s: %s\n", argv[2], error.message);
		free(bytes);
		return 2;
	}
	free(bytes);
	if (checks)
		result = check(&trace);
	else if (hides)
		result = hidden(&trace, argv[3]);
	else
		trace_chrome(&trace, put, NULL);
	trace_free(&trace);
	return result;
}
