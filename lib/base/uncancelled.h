/*
 * uncancelled.h - the system's calls that POSIX makes, or lets be, cancellation points, without that.
 *
 * A cancelled thread ends at the next cancellation point. Inside a call of Weir's that would be in the middle of things: in a section,
 * with a claim, with a half of a file written. So no call of Weir's is a cancellation point: a thread that was cancelled before or
 * during one ends at a point of its own, after the call has returned.
 *
 * Each of these is the call of the same name with cancellation disabled around it. Nothing else in the library may use those calls:
 * scripts/check_symbols looks at what each object file imports. eventfd.c, which is used inside of sections, does without the switch,
 * by syscall(2).
 */
#ifndef WEIRI_UNCANCELLED_H
#define WEIRI_UNCANCELLED_H

#include <pthread.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

/* errno is that of the call. */
int weiri_open(const char *path, int flags, mode_t mode);
int weiri_close(int file);
ssize_t weiri_read(int file, void *bytes, size_t count);
ssize_t weiri_pread(int file, void *bytes, size_t count, off_t offset);
ssize_t weiri_write(int file, const void *bytes, size_t count);
int weiri_fsync(int file);
int weiri_fstat(int file, struct stat *about);
int weiri_rename(const char *from, const char *to);
int weiri_unlink(const char *path);
/* As fcntl(file, F_GETFL). */
int weiri_file_mode(int file);
/* As poll(2) for POLLOUT on one file. */
int weiri_poll_out(int file, int milliseconds);

void weiri_thread_join(pthread_t thread);

/* The system's words for `reason`, an errno; in `room`, or constant. */
const char *weiri_errno_words(int reason, char room[], size_t size);

#endif
