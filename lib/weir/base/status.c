/*
 * status.c - names of status codes, and filling a weir_error.
 */
#include <weir/status.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

const char *weir_status_name(enum weir_status status)
{
	switch (status) {
	case WEIR_OK: return "WEIR_OK";
	case WEIR_CANCELLED: return "WEIR_CANCELLED";
	case WEIR_INVALID_ARGUMENT: return "WEIR_INVALID_ARGUMENT";
	case WEIR_DEADLINE_EXCEEDED: return "WEIR_DEADLINE_EXCEEDED";
	case WEIR_NOT_FOUND: return "WEIR_NOT_FOUND";
	case WEIR_ALREADY_EXISTS: return "WEIR_ALREADY_EXISTS";
	case WEIR_RESOURCE_EXHAUSTED: return "WEIR_RESOURCE_EXHAUSTED";
	case WEIR_FAILED_PRECONDITION: return "WEIR_FAILED_PRECONDITION";
	case WEIR_ABORTED: return "WEIR_ABORTED";
	case WEIR_OUT_OF_RANGE: return "WEIR_OUT_OF_RANGE";
	case WEIR_UNIMPLEMENTED: return "WEIR_UNIMPLEMENTED";
	case WEIR_INTERNAL: return "WEIR_INTERNAL";
	case WEIR_DATA_LOSS: return "WEIR_DATA_LOSS";
	case WEIR_WOULD_BLOCK: return "WEIR_WOULD_BLOCK";
	case WEIR_UNAVAILABLE: return "WEIR_UNAVAILABLE";
	}
	return "WEIR_UNKNOWN_STATUS";
}

void weiri_describe(weir_error *error, enum weir_status code, const char *format, ...)
{
	if (error != NULL) {
		va_list arguments;

		error->code = code;
		va_start(arguments, format);
		(void)vsnprintf(error->message, sizeof(error->message), format, arguments);
		va_end(arguments);
	}
}

bool weiri_error_explains(weir_error *said, enum weir_status status)
{
	weiri_error_end(said);
	if (said->message[0] == '\0' || (said->code != status && said->code != WEIR_OK))
		return false;
	said->code = status;
	return true;
}

void weiri_error_name(weir_error *error, const char *what, const char *name)
{
	size_t size = strlen(what);
	weir_error plain;

	if (error == NULL || name == NULL || strncmp(error->message, what, size) != 0 || error->message[size] != ':')
		return;
	plain = *error;
	weiri_describe(error, plain.code, "%s \"%.80s\"%s", what, name, plain.message + size);
}
