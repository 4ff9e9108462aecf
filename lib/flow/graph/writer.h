/*
 * writer.h - calls of a function of the user's that writes text or bytes.
 */
#ifndef WEIRI_WRITER_H
#define WEIRI_WRITER_H

#include <weir/flow/graph.h>

#include "base/error.h"

/* Writes `size` bytes for the call `what`. The writer's error is never NULL, and a failure has a message. */
static inline enum weir_status weiri_write(weir_write_fn *write, void *context, const char *text, size_t size,
                                           const char *what, weir_error *error)
{
	weir_error said = {WEIR_OK, ""};
	enum weir_status status = write(context, text, size, &said);

	if (status == WEIR_OK)
		return status;
	/* The precision ends a message that its writer did not end. */
	return weiri_fail(error, status, "%s: the writer failed: %.180s", what,
	                  said.message[0] != '\0' ? said.message : weir_status_name(status));
}

#endif
