/*
 * status.h - how every call of Weir says what happened.
 *
 * Use enum weir_status for the outcome; pass a weir_error where a call takes one to learn which operation, queue,
 * component, expected and actual value were involved. Nothing in Weir uses errno, and nothing aborts the process. No call is
 * a cancellation point of POSIX threads (docs/embedding.md).
 *
 * | call              | threads | progress  | blocks on | allocates | signal-safe |
 * |-------------------|---------|-----------|-----------|-----------|-------------|
 * | weir_status_name  | any     | wait-free | nothing   | no        | yes         |
 */
#ifndef WEIR_STATUS_H
#define WEIR_STATUS_H

#include <weir/api.h>

WEIR_BEGIN_DECLS

/* The field's canonical codes. WEIR_OK is 0; the others are stable across releases. */
enum weir_status {
	WEIR_OK = 0,
	WEIR_CANCELLED = 1,           /* by a token, by close, or because the object is closed */
	WEIR_INVALID_ARGUMENT = 2,    /* the call can never succeed with these arguments */
	WEIR_DEADLINE_EXCEEDED = 3,   /* the deadline passed first; nothing was lost */
	WEIR_NOT_FOUND = 4,           /* no such name */
	WEIR_ALREADY_EXISTS = 5,      /* the name is taken */
	WEIR_RESOURCE_EXHAUSTED = 6,  /* out of memory, or over a stated bound */
	WEIR_FAILED_PRECONDITION = 7, /* the object is not in a state for this call */
	WEIR_ABORTED = 8,             /* another thread won; retry on fresh data */
	WEIR_OUT_OF_RANGE = 9,        /* past the end: closed and drained */
	WEIR_UNIMPLEMENTED = 10,      /* this dtype, rank or machine is not supported */
	WEIR_INTERNAL = 11,           /* a fault in Weir or in the system below it */
	WEIR_DATA_LOSS = 12,          /* unrecoverable or corrupt data */
	WEIR_WOULD_BLOCK = 13         /* a try_ call found it full, empty or busy */
};

enum { WEIR_ERROR_MESSAGE_SIZE = 252 };

/* Caller-owned. Written only when a call fails, so one may serve many calls. message is always terminated: of one that a
 * caller passes in, the last byte is taken for the end. */
typedef struct weir_error {
	enum weir_status code;
	char message[WEIR_ERROR_MESSAGE_SIZE];
} weir_error;

/*
 * The name of a status, such as "WEIR_ABORTED"; "WEIR_UNKNOWN_STATUS" for a number that is none. The string is static.
 * @since 0.1
 */
WEIR_API const char *weir_status_name(enum weir_status status);

WEIR_END_DECLS

#endif
