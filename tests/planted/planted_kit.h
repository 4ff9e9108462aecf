/*
 * planted_kit.h - shared by the programs that look whether the check of a trace names a planted fault.
 */
#ifndef PLANTED_KIT_H
#define PLANTED_KIT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/flow.h>

#include "trace/trace.h"

static inline void must(enum weir_status status, const weir_error *error)
{
	if (status == WEIR_OK)
		return;
	(void)fprintf(stderr, "a call failed: %s\n", error->message);
	exit(1);
}

static inline weir_tensor *number(float value)
{
	weir_tensor *tensor;

	if (weir_tensor_copy_of(WEIR_F32, &weir_shape_scalar, &value, NULL, &tensor) != WEIR_OK)
		exit(1);
	return tensor;
}

/* The bytes of a trace. */
struct planted_file {
	char *bytes;
	size_t size;
};

static inline enum weir_status planted_append(void *context, const char *more, size_t count, weir_error *error)
{
	struct planted_file *file = context;

	(void)error;
	file->bytes = realloc(file->bytes, file->size + count);
	if (file->bytes == NULL)
		exit(1);
	(void)memcpy(file->bytes + file->size, more, count);
	file->size += count;
	return WEIR_OK;
}

/* What is wrong with a run, line by line. */
struct planted_findings {
	const char *expected; /* a line must contain it; "": there must be no line */
	bool failed, found;
};

/* Prints the lines up to the one that is expected. */
static inline void planted_report(void *context, const char *line)
{
	struct planted_findings *findings = context;

	findings->failed = true;
	if (findings->expected[0] != '\0' && strstr(line, findings->expected) != NULL)
		findings->found = true;
	else if (!findings->found)
		(void)puts(line);
}

/* Adds what the check of the trace says. */
static inline void planted_check(const weir_trace *trace, struct planted_findings *findings)
{
	struct planted_file file = {NULL, 0};
	struct trace read;
	weir_error e;

	must(weir_trace_write(trace, planted_append, &file, &e), &e);
	must(trace_read(file.bytes, file.size, &read, &e), &e);
	(void)trace_check(&read, planted_report, findings);
	trace_free(&read);
	free(file.bytes);
}

static inline bool planted_is_missed(const struct planted_findings *findings)
{
	return findings->expected[0] != '\0' && !findings->found;
}

/* Returns the exit status of the program. */
static inline int planted_status(const struct planted_findings *findings)
{
	if (planted_is_missed(findings))
		(void)printf("no line of the check contains: %s\n", findings->expected);
	return findings->expected[0] == '\0' ? findings->failed : !findings->found;
}

#endif
