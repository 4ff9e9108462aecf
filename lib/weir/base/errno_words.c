/*
 * errno_words.c - the two variants of strerror_r.
 *
 * The one of POSIX returns an int and writes to the buffer (musl; glibc unless _GNU_SOURCE asks for
 * its own). The one of glibc returns the text, which may or may not be in the buffer. The two that
 * <string.h> may declare differ in the return type, so the code selects by that type.
 * Both may be cancellation points (POSIX), so cancellation is disabled around the call.
 */
#include "base/uncancelled.h"

#include <stdio.h>
#include <string.h>

/* After a failure, the variant of POSIX guarantees nothing about the buffer. */
static inline const char *words_from_int(int failure, int reason, char room[], size_t size)
{
	if (failure != 0)
		(void)snprintf(room, size, "errno %d", reason);
	return room;
}

static inline const char *words_from_text(const char *text, int reason, char room[], size_t size)
{
	(void)reason, (void)room, (void)size;
	return text;
}

const char *weiri_errno_words(int reason, char room[], size_t size)
{
	const char *words;
	int before, ours;

	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	words = _Generic(strerror_r(reason, room, size), int
	                 : words_from_int, default
	                 : words_from_text)(strerror_r(reason, room, size), reason, room, size);
	(void)pthread_setcancelstate(before, &ours);
	return words;
}
