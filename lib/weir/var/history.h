/*
 * history.h - the versions that a variable keeps behind its newest.
 *
 * Algorithm. The versions of a variable with a history of N are linked by `older`, one version for
 * each number. For a version with a value, `older` is its base. For a mark (commit.c), `older` is
 * that of its base, since the mark takes the place of its base. The thread that commits number n
 * retires number n - 1 - N instead of the base. It finds that version N steps behind the base.
 *
 * Invariants
 *   H1  number k is retired once, by the thread that committed number k + 1 + N, after that version
 *       was stamped. The base of a mark is retired, as without a history, by the thread that
 *       committed the mark. So V5 holds
 *   H2  if a version of number n is the newest, or was so in this section, the section protects the
 *       versions on the N steps back from it. Number n-N is retired only after number n+1 was
 *       committed. If a collector missed the reservation, its fence came before the section's read
 *       of the head (F1 of section.h), and so did that commit: the read would have found number
 *       n+1. Otherwise, the versions on the walk died, if at all, after the section began, and were
 *       born before the head that was read
 * Why the walk of a committing thread is safe: no other thread retires number n - 1 - N (H1). The
 * versions on the way are retired only by threads that commit number n or later. That is after the
 * walking thread's section began, since the thread installed its version in that section.
 * Progress: wait-free; N steps.
 * Memory: N + 1 versions of a variable, and the aborted one of docs/memory.md.
 * Checked: stress/model/check_var.c (var_history), tests/test_var_history.c,
 * stress/scenario_history_variable.c.
 */
#ifndef WEIRI_VAR_HISTORY_H
#define WEIRI_VAR_HISTORY_H

#include "base/assert.h"
#include "reclaim/scope.h"
#include "var/version.h"

/* The slow half of weiri_history_retire(). */
void weiri_history_retire_oldest(struct weiri_scope *scope, const weir_var *var, struct weiri_version *base);

/*
 * Called when `version` was committed on `base`. Retires the version that leaves the history.
 * Without a history, or if `version` is a mark, that is `base`.
 */
static inline void weiri_history_retire(struct weiri_scope *scope, const weir_var *var,
                                        const struct weiri_version *version, struct weiri_version *base)
{
	WEIR_ASSERT_LOOK(weiri_version_assert_stamped(version));
	if (WEIRI_LIKELY(var->history == 0) || version->is_mark)
		weiri_scope_retire(scope, &base->retired);
	else
		weiri_history_retire_oldest(scope, var, base);
}

/* Called when the variable is destroyed: retires the newest version and the history behind it. */
void weiri_history_end(struct weiri_record *record, const weir_var *var, struct weiri_version *newest);

#endif
