/*
 * refuse_membarrier.h - a process in which the kernel refuses membarrier(2) from now on, as a sandbox would.
 *
 * It cannot be taken back, so tests do it in the child of a fork.
 */
#ifndef REFUSE_MEMBARRIER_H
#define REFUSE_MEMBARRIER_H

#include <criterion/criterion.h>

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REFUSE_HELD = 0, REFUSE_NOT_HERE = 77, REFUSE_SECONDS = 300 };

/* 0: this kernel, or the sandbox that we are in, knows no filters. */
static inline int refuse_membarrier(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* Runs body in a child; it returns REFUSE_HELD, REFUSE_NOT_HERE or the line of what failed, below 256. */
static inline void in_a_sandbox(int (*body)(void))
{
	int status = 0;
	pid_t child = fork();

	cr_assert_geq(child, 0);
	if (child == 0) {
		(void)alarm(REFUSE_SECONDS);
		_exit(body());
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status), "the child ended with status %d", status);
	if (WEXITSTATUS(status) == REFUSE_NOT_HERE)
		cr_skip("membarrier cannot be refused here, or is already");
	cr_expect_eq(WEXITSTATUS(status), REFUSE_HELD, "step %d failed", WEXITSTATUS(status));
}

#endif
