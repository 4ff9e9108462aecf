/*
 * trace_kit.h - shared by the tests of traces: sessions with a trace; writes a trace to memory, reads and
 * checks it.
 *
 * Everything here asserts, so only the thread of the test may call it.
 */
#ifndef TRACE_KIT_H
#define TRACE_KIT_H

#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>
#include <weir/flow/session.h>
#include <weir/flow/trace.h>

#include "trace/trace.h"

/* With `threads` 0 there are no workers. */
static inline weir_session *trace_kit_session(weir_graph *graph, weir_trace *trace, size_t threads, uint64_t shuffle)
{
	struct weir_session_options options = {WEIR_SESSION_OPTIONS_INIT, .trace = trace, .threads = threads,
	                                       .flags = threads == 0 ? WEIR_SESSION_NO_THREADS : 0,
	                                       .shuffle_seed = shuffle};
	weir_session *session = NULL;

	cr_assert_eq(weir_session_create(graph, &options, &session, NULL), WEIR_OK);
	return session;
}

/* The bytes of a file. */
struct trace_file {
	char *bytes;
	size_t size, room;
};

static inline enum weir_status trace_file_write(void *context, const char *bytes, size_t size, weir_error *error)
{
	struct trace_file *file = context;

	(void)error;
	if (file->size + size > file->room) {
		file->room = (file->size + size) * 2;
		file->bytes = realloc(file->bytes, file->room);
		cr_assert_not_null(file->bytes);
	}
	(void)memcpy(file->bytes + file->size, bytes, size);
	file->size += size;
	return WEIR_OK;
}

/* The lines of a check, each with a newline; what does not fit is left out. */
struct trace_page {
	char text[8192];
	size_t faults;
};

static inline void trace_page_add(void *context, const char *line)
{
	struct trace_page *page = context;

	(void)strncat(page->text, line, sizeof(page->text) - strlen(page->text) - 1);
	(void)strncat(page->text, "\n", sizeof(page->text) - strlen(page->text) - 1);
}

static inline void trace_kit_read(const struct trace_file *file, struct trace *out)
{
	weir_error error;

	cr_assert_eq(trace_read(file->bytes, file->size, out, &error), WEIR_OK, "%s", error.message);
}

static inline void trace_kit_check_file(const struct trace_file *file, struct trace_page *page)
{
	struct trace trace;

	page->text[0] = '\0';
	trace_kit_read(file, &trace);
	page->faults = trace_check(&trace, trace_page_add, page);
	trace_free(&trace);
}

/* Reads back what `trace` has so far. */
static inline void trace_kit_load(const weir_trace *trace, struct trace *out)
{
	struct trace_file file = {NULL, 0, 0};

	cr_assert_eq(weir_trace_write(trace, trace_file_write, &file, NULL), WEIR_OK);
	trace_kit_read(&file, out);
	free(file.bytes);
}

/* Asserts that what the trace has is right. */
static inline void trace_kit_expect_right(const weir_trace *trace)
{
	struct trace_file file = {NULL, 0, 0};
	struct trace_page page;

	cr_assert_eq(weir_trace_write(trace, trace_file_write, &file, NULL), WEIR_OK);
	trace_kit_check_file(&file, &page);
	free(file.bytes);
	cr_expect_eq(page.faults, 0, "%s", page.text);
}

#endif
