/*
 * history.h - the versions that a variable keeps behind its newest.
 *
 * Algorithm. The versions of a variable with a history of N hang together by `older`, one of each number: a value's is its base, a mark's
 * (commit.c) is that of its base, which the mark replaces. Whoever commits number n retires number n - 1 - N, which he finds
 * N steps behind his base, instead of the base itself.
 *
 * Invariants
 *   H1  number k is retired once, by whoever committed number k + 1 + N, after that was stamped; a version that a mark stands on is, as ever, by
 *       who committed the mark. So V5 holds
 *   H2  from a version of number n that is, or was in this section, the newest, N steps behind it lead over versions that the section protects:
 *       number n - N is retired only after number n + 1 was committed. If the collector missed our reservation, its fence came before our
 *       look at the head (F1 of section.h), and so did that commit: we would have found number n + 1. Else what we walk over
 *       died, if it did, after the section began, and was born before the head that we read
 * Why walking while committing is safe: number n - 1 - N is retired by nobody else (H1), and the ones passed on the way to it only by who commits
 * number n or later, after our own section began, as our version was installed in it.
 * Progress: wait-free; N steps.
 * Memory: N + 1 versions of a variable, the aborted one of docs/memory.md besides.
 * Checked: stress/model/check_var.c (var_history), tests/test_var_history.c, stress/scenario_history_variable.c.
 */
#ifndef WEIRI_VAR_HISTORY_H
#define WEIRI_VAR_HISTORY_H

#include "reclaim/scope.h"
#include "var/version.h"

/* The slow half of weiri_history_retire. */
void weiri_history_retire_oldest(struct weiri_scope *scope, const weir_var *var, struct weiri_version *base);

/* `version` was committed on `base`: retires the base, or what goes instead of it. */
static inline void weiri_history_retire(struct weiri_scope *scope, const weir_var *var,
                                        const struct weiri_version *version, struct weiri_version *base)
{
	if (WEIRI_LIKELY(var->history == 0) || version->is_mark)
		weiri_scope_retire(scope, &base->retired);
	else
		weiri_history_retire_oldest(scope, var, base);
}

/* At the end of the variable: retires the newest version and what is kept behind it. */
void weiri_history_end(struct weiri_record *record, const weir_var *var, struct weiri_version *newest);

#endif
