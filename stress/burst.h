/*
 * burst.h - rounds in which threads work on one structure, every operation is recorded, and the
 * history is judged.
 *
 * Most rounds are short: a few threads make a few operations each, so that the general checker can
 * judge them, too. Some rounds are long, for the fast checker alone. The threads stay from round to
 * round, and start each round together.
 */
#ifndef STRESS_BURST_H
#define STRESS_BURST_H

#include "harness.h"
#include "history/history.h"

enum { BURST_MOST_THREADS = 8 };

struct burst {
	/* Runs before a round on the scenario's thread, and prepares the structure. */
	void (*set_up)(struct stress_thread *self, void *context);
	/*
	 * Makes one operation and records it in the log (a call may record no operation, or several).
	 * `number` counts within the round.
	 */
	void (*act)(struct stress_thread *self, struct history_log *log, uint64_t number, void *context);
	/* Runs after a round on the scenario's thread. */
	void (*tear_down)(struct stress_thread *self, void *context);
	/* May drop operations about which the structure guarantees nothing; NULL: none. */
	void (*prepare)(struct history *history, void *context);
	/*
	 * The fast checker, which may be undecided; the units that may be removed from a failing
	 * history; and a model for short rounds. After a failure of history_check_each(), only the part
	 * that concerns its object is examined further.
	 */
	enum history_verdict (*check)(const struct history *history, void *context, struct history_finding *finding);
	void (*units)(const struct history *history, const struct history_finding *finding, void *context, uint32_t unit[]);
	const struct history_model *model;
	const void *(*model_context)(void *context);
	void *context;
};

/* Returns 1, in set_up and act, in a long round. The search does not judge long rounds. */
int burst_is_long(void);

/*
 * Runs rounds until the scenario's time is up. The first history that fails is shrunk and printed,
 * and ends the process.
 */
void burst_run(const struct burst *burst);

#endif
