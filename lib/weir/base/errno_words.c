/*
 * errno_words.c - the two variants of strerror_r.
 *
 * The variant of POSIX returns an int and writes the text to the buffer. musl has this variant, and
 * so has glibc unless _GNU_SOURCE is defined. The variant of glibc returns the text, which may or
 * may not be in the buffer. <string.h> declares one of the two, and the code tells which by the
 * return type.
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
