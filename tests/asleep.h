/*
 * asleep.h - tells whether a thread of this process sleeps. A thread that sleeps changes nothing
 * until another thread wakes it.
 */
#ifndef ASLEEP_H
#define ASLEEP_H

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* `number` is what gettid() returns on that thread. Returns 0 also if the thread has ended. */
static inline int thread_is_asleep(int number)
{
	char path[64], text[128] = "";
	const char *state;
	ssize_t length = 0;
	int file;

	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/stat", number);
	file = open(path, O_RDONLY | O_CLOEXEC);
	if (file >= 0) {
		length = read(file, text, sizeof(text) - 1);
		(void)close(file);
	}
	text[length > 0 ? length : 0] = '\0';
	state = strrchr(text, ')'); /* "number (name) S ..." */
	return state != NULL && state[1] == ' ' && state[2] == 'S';
}

#endif
