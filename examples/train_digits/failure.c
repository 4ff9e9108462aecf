/*
 * failure.c - see failure.h.
 */
#include "failure.h"

#include <stdarg.h>
#include <stdio.h>

enum weir_status failure(weir_error *error, enum weir_status status, const char *format, ...)
{
	va_list arguments;

	if (error != NULL) {
		error->code = status;
		va_start(arguments, format);
		(void)vsnprintf(error->message, sizeof(error->message), format, arguments);
		va_end(arguments);
	}
	return status;
}
