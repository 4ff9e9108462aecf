/*
 * status.h - the status and the error message of every call.
 *
 * Check the enum weir_status that a call returns. Pass a weir_error, where a call takes one, to
 * learn which operation, queue or component was involved, what was expected and what was found.
 * Weir does not use errno and never aborts the process. No call is a cancellation point of POSIX
 * threads (docs/embedding.md).
 *
 * | call             | threads | progress  | blocks on | allocates | signal-safe |
 * |------------------|---------|-----------|-----------|-----------|-------------|
 * | weir_status_name | any     | wait-free | nothing   | no        | yes         |
 */
#ifndef WEIR_STATUS_H
#define WEIR_STATUS_H

#include <weir/api.h>

WEIR_BEGIN_DECLS

/* The usual canonical codes. WEIR_OK is 0; the others are stable across releases. */
enum weir_status {
	WEIR_OK = 0,
	WEIR_CANCELLED = 1,           /* by a token or a close, or because the object is closed */
	WEIR_INVALID_ARGUMENT = 2,    /* the call can never succeed with these arguments */
	WEIR_DEADLINE_EXCEEDED = 3,   /* the deadline passed first; nothing was lost */
	WEIR_NOT_FOUND = 4,           /* no such name */
	WEIR_ALREADY_EXISTS = 5,      /* the name is taken */
	WEIR_RESOURCE_EXHAUSTED = 6,  /* out of memory, or above a stated bound */
	WEIR_FAILED_PRECONDITION = 7, /* the object is not in a state for this call */
	WEIR_ABORTED = 8,             /* another thread was first; try again with newer data */
	WEIR_OUT_OF_RANGE = 9,        /* past the end: drained */
	WEIR_UNIMPLEMENTED = 10,      /* this dtype, rank or machine is not supported */
	WEIR_INTERNAL = 11,           /* a fault in Weir or in the system below it */
	WEIR_DATA_LOSS = 12,          /* unrecoverable or corrupt data */
	WEIR_WOULD_BLOCK = 13,        /* a try_ call found it full, empty or busy */
	WEIR_UNAVAILABLE = 14         /* what the call needs is gone for now; make it anew, try again */
};

enum weir_error_sizes { WEIR_ERROR_MESSAGE_SIZE = 252 };

/*
 * The caller owns it. A call writes it only if it fails, so one can serve many calls. message is
 * always terminated; in one that a caller passes in, the last byte is taken as the terminator.
 */
typedef struct weir_error {
	enum weir_status code;
	char message[WEIR_ERROR_MESSAGE_SIZE];
} weir_error;

/*
 * The name of a status, such as "WEIR_ABORTED"; "WEIR_UNKNOWN_STATUS" for any other number. The
 * string is static.
 * @since 0.1
 */
WEIR_API const char *weir_status_name(enum weir_status status);

WEIR_END_DECLS

#endif
