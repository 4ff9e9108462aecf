/*
 * checker.h - what the parts of a check share.
 */
#ifndef WEIRI_TRACE_CHECKER_H
#define WEIRI_TRACE_CHECKER_H

#include "trace.h"

struct checker {
	const struct trace *trace;
	trace_report_fn *report;
	void *context;
	size_t faults;
	bool no_memory;
};

void trace_fault(struct checker *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* --- parts.c --- */

void trace_check_parts(struct checker *c);

#endif
