/*
 * invariants_kit.h - shared by the tests of assertions: a violation is planted in a child, which the
 * assertion must end with the invariant's name.
 *
 * For builds with assertions (assert_level 3) only.
 */
#ifndef INVARIANTS_KIT_H
#define INVARIANTS_KIT_H

#include <criterion/criterion.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "reclaim/scope.h"

#if WEIR_ASSERT_LEVEL < 3
#error "for builds with -Dassert_level=3"
#endif

enum { SAID = 4096, LONGEST_S = 60 };

/* Runs a child. Returns its status and what it printed before it ended. */
static inline int run_child(void (*plant)(void), char said[SAID])
{
	int ends[2], status = 0;
	size_t length = 0;
	ssize_t more;
	pid_t child;

	cr_assert_eq(pipe(ends), 0);
	child = fork();
	cr_assert_geq(child, 0);
	if (child == 0) {
		(void)alarm(LONGEST_S);
		(void)signal(SIGABRT, SIG_DFL);
		(void)dup2(ends[1], STDERR_FILENO);
		plant();
		_exit(0);
	}
	(void)close(ends[1]);
	while (length < SAID - 1 && (more = read(ends[0], said + length, SAID - 1 - length)) > 0)
		length += (size_t)more;
	said[length] = '\0';
	(void)close(ends[0]);
	cr_assert_eq(waitpid(child, &status, 0), child);
	return status;
}

static inline void expect_broken(const char *invariant, void (*plant)(void))
{
	char said[SAID], wanted[64];
	int status = run_child(plant, said);

	(void)snprintf(wanted, sizeof(wanted), "invariant %s broken", invariant);
	cr_expect_not_null(strstr(said, wanted), "%s was not found broken: %s", invariant, said);
	cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "%s: the child ended with status %d", invariant,
	          status);
}

static inline struct weiri_scope enter(void)
{
	return weiri_scope_enter(weiri_record_get());
}

static inline void do_nothing(struct weiri_retired *object)
{
	(void)object;
}

#endif
