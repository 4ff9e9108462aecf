/*
 * errno_words.c - strerror_r, of which there are two.
 *
 * POSIX's returns an int and writes to the buffer (musl; glibc unless _GNU_SOURCE asks for its own); glibc's returns the text, which may
 * be in the buffer or not. Which of them <string.h> declares is a matter of its return type, so the type chooses.
 * Both may be cancellation points (POSIX): cancellation is disabled around them.
 */
#include "base/uncancelled.h"

#include <stdio.h>
#include <string.h>

/* POSIX's, after a failure, promises nothing of the buffer. */
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
