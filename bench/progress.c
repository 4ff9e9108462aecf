/*
 * progress.c - prints the progress line, no wider than the terminal.
 */
#include "progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

void bench_progress(const char *format, ...)
{
	struct winsize size;
	char line[256] = "";
	va_list arguments;
	int columns = 79;

	if (!isatty(STDERR_FILENO))
		return;
	if (format != NULL) {
		va_start(arguments, format);
		(void)vsnprintf(line, sizeof(line), format, arguments);
		va_end(arguments);
	}
	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1)
		columns = size.ws_col - 1;
	(void)fprintf(stderr, "\r%.*s\033[K%s", columns, line, format == NULL ? "\r" : "");
	(void)fflush(stderr);
}
