/*
 * uncancelled.c - see uncancelled.h.
 *
 * pthread_setcancelstate() is not a cancellation point, and it preserves errno. A cancellation that
 * arrives meanwhile stays pending.
 */
#include "base/uncancelled.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

static int off(void)
{
	int before;

	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}

static void restore(int before)
{
	int ours;

	(void)pthread_setcancelstate(before, &ours);
}

int weiri_open(const char *path, int flags, mode_t mode)
{
	int before = off(), file = open(path, flags, mode);

	restore(before);
	return file;
}

int weiri_close(int file)
{
	int before = off(), result = close(file);

	restore(before);
	return result;
}

ssize_t weiri_read(int file, void *bytes, size_t count)
{
	int before = off();
	ssize_t result = read(file, bytes, count);

	restore(before);
	return result;
}

ssize_t weiri_readlink(const char *path, char name[], size_t size)
{
	int before = off();
	ssize_t result = readlink(path, name, size);

	restore(before);
	return result;
}

ssize_t weiri_getrandom(void *bytes, size_t count)
{
	int before = off();
	ssize_t result = getrandom(bytes, count, GRND_NONBLOCK);

	restore(before);
	return result;
}

ssize_t weiri_pread(int file, void *bytes, size_t count, off_t offset)
{
	int before = off();
	ssize_t result = pread(file, bytes, count, offset);

	restore(before);
	return result;
}

ssize_t weiri_write(int file, const void *bytes, size_t count)
{
	int before = off();
	ssize_t result = write(file, bytes, count);

	restore(before);
	return result;
}

ssize_t weiri_pwrite(int file, const void *bytes, size_t count, off_t offset)
{
	int before = off();
	ssize_t result = pwrite(file, bytes, count, offset);

	restore(before);
	return result;
}

int weiri_fsync(int file)
{
	int before = off(), result = fsync(file);

	restore(before);
	return result;
}

int weiri_fstat(int file, struct stat *about)
{
	int before = off(), result = fstat(file, about);

	restore(before);
	return result;
}

int weiri_rename(const char *from, const char *to)
{
	int before = off(), result = rename(from, to);

	restore(before);
	return result;
}

int weiri_unlink(const char *path)
{
	int before = off(), result = unlink(path);

	restore(before);
	return result;
}

int weiri_file_mode(int file)
{
	int before = off(), result = fcntl(file, F_GETFL);

	restore(before);
	return result;
}

int weiri_file_seals(int file)
{
	int before = off(), result = fcntl(file, F_GET_SEALS);

	restore(before);
	return result;
}

int weiri_file_forbid_shrinking(int file)
{
	int before = off(), result = fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK);

	restore(before);
	return result;
}

void weiri_take_pending_signal(const sigset_t *signals)
{
	const struct timespec at_once = {0, 0};
	int before = off();

	(void)sigtimedwait(signals, NULL, &at_once);
	restore(before);
}

int weiri_poll_out(int file, int milliseconds)
{
	struct pollfd room = {.fd = file, .events = POLLOUT};
	int before = off(), result = poll(&room, 1, milliseconds);

	restore(before);
	return result;
}

void weiri_thread_join(pthread_t thread)
{
	int before = off();

	(void)pthread_join(thread, NULL);
	restore(before);
}

/* Weak for the reason in pin.c. */
/* NOLINTNEXTLINE(readability-redundant-declaration): this one makes it weak. */
__attribute__((weak)) extern __typeof__(dlopen) dlopen;

void weiri_dlopen_to_stay(const char *path)
{
	int before = off();

	/* The handle is kept on purpose: it is the pin. */
	if (dlopen != NULL)
		/* cppcheck-suppress leakReturnValNotUsed ; as above */
		(void)dlopen(path, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
	restore(before);
}
