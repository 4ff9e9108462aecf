/*
 * multiset.c - histories of pools and shuffle queues: any value may come out, so values.c says it all.
 *
 * Without "full" answers and with nothing that must stay, no answer wants anything to be inside for longer than it
 * surely is. So every put may come as late and every take as early as possible, which serves all answers at once:
 * counting is exact.
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
