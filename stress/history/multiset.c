/*
 * multiset.c - histories of pools and shuffle queues: any value may be next, so values.c checks
 * everything.
 *
 * If there are no "full" results and no values that must stay, no result requires that a value is
 * inside for longer than it certainly is. Every put may therefore take effect as late as possible
 * and every take as early as possible, which suits all results at the same time. Counting is then
 * exact.
 */
#include "history/values.h"

enum history_verdict history_check_multiset(const struct history *history, const struct history_bounds *bounds,
                                            struct history_finding *finding)
{
	struct history_values values;
	enum history_verdict verdict = history_values_init(&values, history, finding);

	if (verdict == HISTORY_HOLDS)
		verdict = history_check_counts(history, &values, bounds, finding);
	history_values_fini(&values);
	return verdict;
}
