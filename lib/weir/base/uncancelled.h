/*
 * uncancelled.h - system calls with cancellation disabled. POSIX says that each of them is, or may
 * be, a cancellation point.
 *
 * A cancelled thread ends at its next cancellation point. Inside a call of Weir it would end in the
 * middle of an operation: in a section, with a claim, with half of a file written. So no call of
 * Weir is a cancellation point. A thread that was cancelled before or during a call of Weir ends
 * after the call, at a cancellation point outside Weir.
 *
 * Each function below makes the system call of the same name, with cancellation disabled around it.
 * No other code in the library may make those calls: scripts/check_symbols checks what each object
 * file imports. eventfd.c, which is used inside sections, uses syscall(2) instead.
 */
#ifndef WEIRI_UNCANCELLED_H
#define WEIRI_UNCANCELLED_H

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/compiler.h"

/* errno is as the system call left it. */
WEIRI_SHARED int weiri_open(const char *path, int flags, mode_t mode);
WEIRI_SHARED int weiri_close(int file);
ssize_t weiri_read(int file, void *bytes, size_t count);
ssize_t weiri_readlink(const char *path, char name[], size_t size);
WEIRI_SHARED ssize_t weiri_pread(int file, void *bytes, size_t count, off_t offset);
WEIRI_SHARED ssize_t weiri_write(int file, const void *bytes, size_t count);
ssize_t weiri_pwrite(int file, const void *bytes, size_t count, off_t offset);
WEIRI_SHARED int weiri_fsync(int file);
WEIRI_SHARED int weiri_fstat(int file, struct stat *about);
WEIRI_SHARED int weiri_rename(const char *from, const char *to);
WEIRI_SHARED int weiri_unlink(const char *path);
/* Like getrandom(bytes, count, GRND_NONBLOCK). */
ssize_t weiri_getrandom(void *bytes, size_t count);
/* Like fcntl(file, F_GETFL). */
int weiri_file_mode(int file);
/* Like fcntl(file, F_GET_SEALS), and fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK). */
int weiri_file_seals(int file);
int weiri_file_forbid_shrinking(int file);
/* Like sigtimedwait(2) that does not wait. */
void weiri_take_pending_signal(const sigset_t *signals);
/* Like poll(2) for POLLOUT on one file. */
int weiri_poll_out(int file, int milliseconds);

void weiri_thread_join(pthread_t thread);

/* Makes dlclose() of an object that is loaded leave it in memory. */
void weiri_dlopen_to_stay(const char *path);

/* Returns the system's text for `reason`, an errno. The text is in `room`, or constant. */
WEIRI_SHARED const char *weiri_errno_words(int reason, char room[], size_t size);

#endif
