/*
 * seats.c - asks /proc who a process is and whether it is gone.
 */
#include "shm/seats.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/uncancelled.h"

enum { PID_BITS = 22, STAT_BYTES = 1024, FIELD_STATE = 3, FIELD_THREADS = 20, FIELD_START = 22 };

/* What /proc says about a process. */
struct about {
	char state;
	uint64_t threads, start;
};

/* Returns the text behind the blank before field `number`; `text` begins with field 3. */
static const char *field(const char *text, int number)
{
	for (int at = FIELD_STATE; at < number && text != NULL; at++) {
		text = strchr(text, ' ');
		if (text != NULL)
			text++;
	}
	return text;
}

/* Returns false if the text is not that of /proc/PID/stat. */
static bool understand(const char *text, struct about *about)
{
	/* The name of the program stands in brackets, and may contain anything. */
	const char *end = strrchr(text, ')'), *threads, *start;

	if (end == NULL || end[1] != ' ' || end[2] == '\0')
		return false;
	threads = field(end + 2, FIELD_THREADS);
	start = field(end + 2, FIELD_START);
	if (threads == NULL || start == NULL)
		return false;
	*about = (struct about){end[2], strtoull(threads, NULL, 10), strtoull(start, NULL, 10)};
	return true;
}

/* Returns 0, or the errno with which the system refused. */
static int ask(uint64_t pid, struct about *about)
{
	char path[48], text[STAT_BYTES];
	int saved_errno = errno, refused = 0, file;
	ssize_t size;

	(void)snprintf(path, sizeof(path), "/proc/%llu/stat", (unsigned long long)pid);
	file = weiri_open(path, O_RDONLY | O_CLOEXEC, 0);
	if (file < 0) {
		refused = errno;
	} else {
		size = weiri_read(file, text, sizeof(text) - 1);
		refused = size < 0 ? errno : 0;
		text[size < 0 ? 0 : size] = '\0';
		(void)weiri_close(file);
		if (refused == 0 && !understand(text, about))
			refused = EIO;
	}
	errno = saved_errno;
	return refused;
}

/* Returns true if /proc is that of this process's pid namespace. */
static bool is_our_proc(uint64_t pid)
{
	int saved_errno = errno;
	char name[24] = "";
	ssize_t size = weiri_readlink("/proc/self", name, sizeof(name) - 1);

	errno = saved_errno;
	return size > 0 && strtoull(name, NULL, 10) == pid;
}

uint64_t weiri_seats_self(void)
{
	uint64_t pid = (uint64_t)getpid();
	struct about about = {0};

	return is_our_proc(pid) && ask(pid, &about) == 0 ? about.start << PID_BITS | pid : 0;
}

/* The directory of the process is missing; so is all of /proc, if it is not mounted. */
static bool is_missing(uint64_t pid)
{
	int saved_errno = errno;
	bool missing = kill((pid_t)pid, 0) != 0 && errno == ESRCH;

	errno = saved_errno;
	return missing;
}

bool weiri_seats_is_gone(uint64_t identity)
{
	uint64_t pid = identity & ((UINT64_C(1) << PID_BITS) - 1);
	struct about about = {0};
	int refused = ask(pid, &about);

	if (refused == ENOENT || refused == ESRCH)
		return is_missing(pid);
	if (refused != 0)
		return false;
	/* A zombie with threads is one whose main thread has ended, and others have not. */
	return about.start != identity >> PID_BITS || ((about.state == 'Z' || about.state == 'X') && about.threads <= 1);
}

/* Returns the number of one of this process's namespaces; 0: it is not known. */
static uint64_t number_of(const char *path)
{
	int saved_errno = errno, file = weiri_open(path, O_RDONLY | O_CLOEXEC, 0);
	struct stat about;
	uint64_t number = 0;

	if (file >= 0) {
		if (weiri_fstat(file, &about) == 0)
			number = (uint64_t)about.st_ino;
		(void)weiri_close(file);
	}
	errno = saved_errno;
	return number;
}

uint64_t weiri_seats_namespace(void)
{
	uint64_t pids = number_of("/proc/self/ns/pid");

	/* The start of a process, as /proc shows it, depends on the time namespace of the one that reads. */
	return pids != 0 ? pids << 32 ^ number_of("/proc/self/ns/time") : 0;
}
