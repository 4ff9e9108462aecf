/*
 * trace.c - prints an execution as a table, with a column for each thread.
 */
#include <stdarg.h>
#include <stdio.h>

#include "model/engine.h"

enum { WIDTH = 44, LINES = 250 };

int trace_on;

void trace_begin(void)
{
	(void)printf("step ");
	for (unsigned t = 1; t <= model_program->threads; t++)
		(void)printf("%-*s", WIDTH, (char[]){'t', 'h', 'r', 'e', 'a', 'd', ' ', (char)('0' + t), '\0'});
	(void)putchar('\n');
}

void trace_step(const char *format, ...)
{
	va_list arguments;
	unsigned column = model_thread != 0 ? model_thread - 1 : 0;

	if (!trace_on || (model_running && model_steps > LINES))
		return;
	if (model_running && model_steps == LINES)
		(void)printf("     and so on\n");
	else if (model_running)
		(void)printf("%4llu %*s", (unsigned long long)model_steps, (int)(column * WIDTH), "");
	else
		(void)printf("     after all: ");
	va_start(arguments, format);
	(void)vprintf(format, arguments);
	va_end(arguments);
	(void)putchar('\n');
}
