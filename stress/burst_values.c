/*
 * burst_values.c - bursts whose context is the bounds that judge them.
 */
#include "burst_values.h"

uint64_t burst_draw_capacity(struct stress_thread *self)
{
	return stress_one_in(self, 4) ? 1 + stress_below(self, 40) : 1 + stress_below(self, 4);
}

/* -- verdicts ---------------------------------------------------------------------------------- */

static enum history_verdict check_fifo(const struct history *history, void *context, struct history_finding *finding)
{
	return history_check_fifo(history, context, finding);
}

static enum history_verdict check_multiset(const struct history *history, void *context,
                                           struct history_finding *finding)
{
	return history_check_multiset(history, context, finding);
}

static void units(const struct history *history, const struct history_finding *finding, void *context, uint32_t unit[])
{
	history_units_of_values(history, context, finding, unit);
}

static const void *bounds_of(void *context)
{
	return context;
}

static void run(struct burst burst, struct history_bounds *bounds)
{
	burst.units = units;
	burst.model_context = bounds_of;
	burst.context = bounds;
	burst_run(&burst);
}

void burst_run_fifo(struct burst burst, struct history_bounds *bounds)
{
	burst.check = check_fifo;
	burst.model = &history_model_fifo;
	run(burst, bounds);
}

void burst_run_multiset(struct burst burst, struct history_bounds *bounds)
{
	burst.check = check_multiset;
	burst.model = &history_model_multiset;
	run(burst, bounds);
}

/* -- weak refusals ----------------------------------------------------------------------------- */

static int is_of(const struct history_op *op, uint32_t kinds)
{
	return (kinds >> op->kind & 1) != 0;
}

/* latest_return: the latest return of the strong operations that were called before. */
static int beside_a_strong(const struct history *history, size_t refusal, uint64_t latest_return, uint32_t strong)
{
	const struct history_op *op = &history->op[refusal];

	if (latest_return >= op->called)
		return 1;
	for (size_t i = refusal + 1; i < history->count && history->op[i].called <= op->returned; i++) {
		if (is_of(&history->op[i], strong))
			return 1;
	}
	return 0;
}

void burst_drop_weak(struct history *history, uint32_t weak, uint32_t strong)
{
	uint64_t latest = 0;
	size_t kept = 0;

	/*
	 * An operation that is kept moves to a position that the walk has passed, so the operations
	 * ahead do not change.
	 */
	for (size_t i = 0; i < history->count; i++) {
		const struct history_op op = history->op[i];

		if (is_of(&op, strong) && op.returned > latest)
			latest = op.returned;
		if (!is_of(&op, weak) || !beside_a_strong(history, i, latest, strong))
			history->op[kept++] = op;
	}
	history->count = kept;
}
