/*
 * fuzz_trace.c - any bytes as a trace: they are refused, and the message says at which word; or they
 * are read, checked and drawn.
 */
#include <stdlib.h>
#include <string.h>

#include "trace/trace.h"

static void check(int condition)
{
	if (!condition)
		abort();
}

static void count_line(void *context, const char *line)
{
	check(strlen(line) < 2048);
	++*(size_t *)context;
}

static void count_text(void *context, const char *text)
{
	*(size_t *)context += strlen(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct trace_hiding hiding;
	struct trace trace;
	weir_error error;
	size_t lines = 0, drawn = 0, faults;
	enum weir_status status = trace_read(data, size, &trace, &error);

	if (status != WEIR_OK) {
		check(status == WEIR_DATA_LOSS || status == WEIR_UNIMPLEMENTED);
		check(error.code == status && strncmp(error.message, "word ", 5) == 0);
		return 0;
	}
	for (size_t i = 0; i < trace.event_count; i++) {
		check(trace_find_event(&trace, trace.events[i].number) == i);
		check(trace.events[i].frame == TRACE_NONE || trace.events[i].frame < trace.frame_count);
	}
	faults = trace_check(&trace, count_line, &lines);
	check((faults == 0) == (lines == 0));
	check(trace_hidden(&trace, "op", &hiding) && hiding.ops <= trace.event_count);
	trace_chrome(&trace, count_text, &drawn);
	check(drawn != 0);
	trace_free(&trace);
	return 0;
}
