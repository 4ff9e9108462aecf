/*
 * trace.c - an execution as a table, a column for each thread.
 */
#include <stdarg.h>
#include <stdio.h>

#include "model/engine.h"

int trace_on;

void trace_step(const char *format, ...)
{
	va_list arguments;

	if (!trace_on || !(model_running || model_thread == 0))
		return;
	(void)printf("%4llu %*s", (unsigned long long)model_step(), (int)(model_thread * 28), "");
	va_start(arguments, format);
	(void)vprintf(format, arguments);
	va_end(arguments);
	(void)putchar('\n');
}
