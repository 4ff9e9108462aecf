/*
 * error.h - filling a caller's weir_error.
 */
#ifndef WEIRI_ERROR_H
#define WEIRI_ERROR_H

#include <stdbool.h>
#include <stddef.h>
#include <weir/status.h>

#include "base/compiler.h"

/*
 * Writes code and message into *error if error is not NULL. Returns code, so that a failing call
 * can end with `return weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue \"%s\": ...", name);`.
 */
#define weiri_fail(error, code, ...) (weiri_describe((error), (code), __VA_ARGS__), (enum weir_status)(code))
/* The plural ending of a counted noun, for a "%s" right after the noun: "1 item", "4 items". */
#define WEIRI_S(count) ((count) == 1 ? "" : "s")
/*
 * A separate function, so that compilers and analysers see at the call that the returned code is
 * not WEIR_OK.
 */
WEIRI_SHARED void weiri_describe(weir_error *error, enum weir_status code, const char *format, ...) WEIR_PRINTF(3, 4);

/*
 * Names the object of which a message tells: "queue: capacity is 0" becomes "queue \"frames\": capacity is 0".
 * Does nothing if error or name is NULL, or if the message does not begin with `what` and a colon.
 */
void weiri_error_name(weir_error *error, const char *what, const char *name);

/* Empties an error for a function of the user's, which may explain there why it fails. */
static inline void weiri_error_begin(weir_error *said)
{
	said->code = WEIR_OK;
	said->message[0] = '\0';
}

/*
 * Returns true if *said, which the function was given empty, has a message about the status that it
 * returned; completes *said. An error of another code is left by a call whose failure it got over.
 */
bool weiri_error_explains(weir_error *said, enum weir_status status);

/* Terminates a message that a user function wrote, which may be unterminated. */
static inline void weiri_error_end(weir_error *error)
{
	error->message[WEIR_ERROR_MESSAGE_SIZE - 1] = '\0';
}

/*
 * Returns true if *cause says something: a code, or a message without a code ("the reader ended").
 */
static inline bool weiri_is_cause(const weir_error *cause)
{
	return cause != NULL && (cause->code != WEIR_OK || cause->message[0] != '\0');
}

/* Returns a copy of a user's error whose message is terminated. */
static inline weir_error weiri_error_kept(const weir_error *given)
{
	weir_error kept = *given;

	weiri_error_end(&kept);
	return kept;
}

#endif
