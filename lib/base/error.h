/*
 * error.h - filling a caller's weir_error.
 */
#ifndef WEIRI_ERROR_H
#define WEIRI_ERROR_H

#include <stddef.h>
#include <weir/status.h>

/*
 * Writes code and message into *error when error is not NULL, and returns code, so that a failing call ends with
 * `return weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue \"%s\": ...", name);`.
 */
#define weiri_fail(error, code, ...) (weiri_describe((error), (code), __VA_ARGS__), (enum weir_status)(code))
/* A function apart, so that compilers and analysers see at the call that what was refused is not WEIR_OK. */
void weiri_describe(weir_error *error, enum weir_status code, const char *format, ...) WEIR_PRINTF(3, 4);

/* What a user's function wrote there need not be terminated. */
static inline void weiri_error_end(weir_error *error)
{
	error->message[WEIR_ERROR_MESSAGE_SIZE - 1] = '\0';
}

/* A user's error, to keep. */
static inline weir_error weiri_error_kept(const weir_error *given)
{
	weir_error kept = *given;

	weiri_error_end(&kept);
	return kept;
}

/* 1 when an options struct of `size` bytes, as its caller knew it, can be read: it holds struct_size and is no larger than ours. */
static inline int weiri_options_size_ok(size_t struct_size, size_t ours)
{
	return struct_size >= sizeof(size_t) && struct_size <= ours;
}

#endif
