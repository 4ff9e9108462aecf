/*
 * sandbox.h - makes Linux answer a system call of this process as the test wants, from now on, as
 * a sandbox would.
 *
 * This cannot be undone, so tests do it in the child of a fork.
 */
#ifndef SANDBOX_H
#define SANDBOX_H

#include <criterion/criterion.h>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SANDBOX_HELD = 0, SANDBOX_NOT_HERE = 77, SANDBOX_SECONDS = 300 };

/* Returns 0 if this Linux, or the sandbox around this process, allows no filters. */
static inline int sandbox_enter(struct sock_filter code[], size_t length)
{
	struct sock_fprog program = {.len = (unsigned short)length, .filter = code};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* From now on the call does nothing and fails with the errno `reason`. Returns 0 as above. */
static inline int sandbox_refuses(unsigned call, unsigned reason)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | reason),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	return sandbox_enter(code, sizeof(code) / sizeof(code[0]));
}

/*
 * From now on the call does nothing and returns 0 if its first argument is this file. Returns 0 as
 * above.
 */
static inline int sandbox_makes_nothing_of(unsigned call, int file)
{
	enum { LOW = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4 : 0 };
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + LOW),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)file, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	return sandbox_enter(code, sizeof(code) / sizeof(code[0]));
}

/*
 * Runs `body` in a child. `body` returns SANDBOX_HELD, SANDBOX_NOT_HERE, or the number of the step
 * that failed, below 256.
 */
static inline void in_a_sandbox(int (*body)(void))
{
	int status = 0;
	pid_t child = fork();

	cr_assert_geq(child, 0);
	if (child == 0) {
		(void)alarm(SANDBOX_SECONDS);
		_exit(body());
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status), "the child ended with status %d", status);
	if (WEXITSTATUS(status) == SANDBOX_NOT_HERE)
		cr_skip("the call cannot be refused here, or is refused already");
	cr_expect_eq(WEXITSTATUS(status), SANDBOX_HELD, "step %d failed", WEXITSTATUS(status));
}

#endif
