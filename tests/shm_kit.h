/*
 * shm_kit.h - for the tests of shared memory: files, other processes, and kill -9 before a given
 * instruction.
 *
 * A child may not use the test framework: its body returns 0, or the line of the check that failed.
 */
#ifndef SHM_KIT_H
#define SHM_KIT_H

#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weir/time.h>

#include "under_tsan.h"

#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer) || defined(__SANITIZE_THREAD__) || \
	__has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
enum { SHM_STEP_STRIDE = 9 }; /* a sanitizer makes several instructions of each one */
#else
enum { SHM_STEP_STRIDE = 1 };
#endif

enum { SHM_CHILD_SECONDS = 300 };

static const uint64_t shm_patience_ns = UINT64_C(100000000000);

#define CHILD_CHECK(condition) \
	do { \
		if (!(condition)) \
			return __LINE__; \
	} while (0)

static inline int shm_file(void)
{
	int file = memfd_create("weir-test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	cr_assert_geq(file, 0);
	return file;
}

/* Starts a child that runs `body` and exits with 0, or with 1 and a line on stderr. */
static inline pid_t shm_child(int (*body)(void *context), void *context)
{
	pid_t child = fork();
	int line;

	cr_assert_geq(child, 0);
	if (child != 0)
		return child;
	(void)alarm(SHM_CHILD_SECONDS);
	line = body(context);
	if (line != 0)
		(void)dprintf(2, "a check of a child failed in line %d\n", line);
	_exit(line != 0);
}

/* Waits for a child that must have ended by itself, without a fault. */
static inline void shm_join(pid_t child)
{
	int status = 0;

	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with status %d", status);
}

static inline void shm_kill(pid_t child)
{
	int status = 0;

	cr_assert_eq(kill(child, SIGKILL), 0);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFSIGNALED(status), "the child ended before it was killed, with status %d", status);
}

/* A child that stops itself where the steps begin, and again where they end. */
static inline pid_t shm_stepped_child(int (*body)(void *context), void *context)
{
	pid_t child = shm_child(body, context);
	int status = 0;

	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP, "the child has status %d", status);
	return child;
}

/* For the child. */
static inline int shm_begin_steps(void)
{
	CHILD_CHECK(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0);
	CHILD_CHECK(raise(SIGSTOP) == 0);
	return 0;
}

static inline int shm_end_steps(void)
{
	CHILD_CHECK(raise(SIGSTOP) == 0);
	return 0;
}

/* Lets the child execute one instruction. Returns 0 if it came to the end of its steps. */
static inline int shm_step(pid_t child)
{
	int status = 0;

	cr_assert_eq(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL), 0);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFSTOPPED(status), "the child ended with status %d", status);
	return WSTOPSIG(status) == SIGTRAP;
}

/*
 * Lets the child execute `count` instructions and kills it. Returns 0 if it came to the end before;
 * it is killed there.
 */
static inline int shm_kill_after(pid_t child, size_t count)
{
	int goes_on = 1;

	for (size_t i = 0; i < count && goes_on; i++)
		goes_on = shm_step(child);
	shm_kill(child);
	return goes_on;
}

/* Whether this machine lets a process step through its children. */
static inline void shm_steps_or_skip(void)
{
#if !defined(__x86_64__)
	cr_skip_test("single steps are tested on x86-64");
#else
	const char *preloaded = getenv("LD_PRELOAD");

	if (UNDER_TSAN || (preloaded != NULL && strstr(preloaded, "vgpreload") != NULL))
		cr_skip_test("no single steps here");
#endif
}

#endif
