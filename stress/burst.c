/*
 * burst.c - rounds of recorded operations; see burst.h.
 */
#include "burst.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHORT_EACH = 10, LONG_EACH = 3000, MOST_PER_CALL = 8, LONG_ONE_IN = 64, BUDGET = 30000, SLOTS = 16 };

/* The current round. The scenario's thread owns the fields; all threads use the atomics. */
static struct {
	const struct burst *burst;
	struct history_recorder *recorder;
	unsigned threads;
	uint64_t each; /* calls per thread */
	int is_long;
	/*
	 * yields sometimes between calls: a short round would otherwise end before the next thread has
	 * started
	 */
	int yields;
	WEIRI_ALIGNED_APART _Atomic(uint64_t) round; /* the number of the round; 0: the scenario ends */
	WEIRI_ALIGNED_APART _Atomic(uint32_t) ready, done;
	/* Figures. */
	uint64_t operations, overlapping, undecided, rounds;
} state;

/* -- workers ----------------------------------------------------------------------------------- */

static void wait_for_all(_Atomic(uint32_t) *count)
{
	unsigned spins = 0;

	/*
	 * [acq_rel] pairs with those of other threads: all threads see afterwards what each thread did
	 * before.
	 */
	(void)weiri_fetch_add_acq_rel(count, 1u);
	while (weiri_load_acquire(count) < state.threads)
		stress_back_off(&spins);
}

static void work_one_round(struct stress_thread *self, struct history_log *log)
{
	wait_for_all(&state.ready);
	for (uint64_t i = 0; i < state.each; i++) {
		state.burst->act(self, log, i, state.burst->context);
		stress_end(self, 1);
		if (state.yields && stress_one_in(self, 8))
			(void)sched_yield();
	}
	stress_begin(self, "(between rounds)");
	/* [acq_rel] pairs with the acquire in play(): the log is complete. */
	(void)weiri_fetch_add_acq_rel(&state.done, 1u);
}

/* Thread n takes part in the rounds that have more than n. */
static void work(struct stress_thread *self, void *context)
{
	unsigned number = (unsigned)(uintptr_t)context, spins = 0;
	uint64_t seen = 1, round;

	/* [acquire] pairs with the release in play(): the round is set up. */
	while ((round = weiri_load_acquire(&state.round)) != 0) {
		if (round == seen) {
			stress_back_off(&spins);
			continue;
		}
		seen = round;
		spins = 0;
		/*
		 * The low bits tell how many threads take part. If this thread does not, state.threads may
		 * already belong to the next round.
		 */
		if (number < round % SLOTS)
			work_one_round(self, history_recorder_log(state.recorder, number));
	}
}

/* -- judging ----------------------------------------------------------------------------------- */

static enum history_verdict search(const struct history *history, struct history_finding *finding)
{
	const struct burst *burst = state.burst;

	return history_check_general(history, burst->model, burst->model_context(burst->context), BUDGET, NULL, finding);
}

/*
 * The smaller history must fail with the same pattern. Removing operations may cause a failure of
 * another kind.
 */
static int fails_fast(const struct history *history, void *first_finding)
{
	const struct history_finding *first = first_finding;
	struct history_finding finding;

	return state.burst->check(history, state.burst->context, &finding) == HISTORY_VIOLATED &&
	       strcmp(finding.pattern, first->pattern) == 0;
}

static int fails_search(const struct history *history, void *first_finding)
{
	struct history_finding finding;

	(void)first_finding;
	return search(history, &finding) == HISTORY_VIOLATED;
}

static void print(const struct history *history, const struct history_finding *finding)
{
	(void)fprintf(stderr, "%s: %s\n", finding->pattern, finding->what);
	history_print(stderr, history, finding, NULL);
}

/* Makes a smaller history with the same fault. Returns 0 if it cannot be made smaller. */
static int shrink(const struct history *history, struct history_finding *finding, int by_search, struct history *small)
{
	uint32_t *unit = calloc(history->count + 1, sizeof(*unit));
	int shrunk;

	STRESS_CHECK(unit != NULL, "the harness has no memory");
	state.burst->units(history, finding, state.burst->context, unit);
	shrunk = history_shrink(history, unit, by_search ? fails_search : fails_fast, finding, small);
	free(unit);
	return shrunk;
}

static int shares_variable(const struct history *history, const struct history_op *a, const struct history_op *b)
{
	for (uint32_t i = 0; i < a->parts; i++) {
		for (uint32_t k = 0; k < b->parts; k++) {
			if (history->part[a->part + i].object == history->part[b->part + k].object)
				return 1;
		}
	}
	return 0;
}

/*
 * Some faults consist in something that is absent: a missing version, or an abort without a reason.
 * Shrinking cannot show them. The result is therefore the first witness, and all writes to its
 * variables.
 */
static int select_writes(const struct history *history, struct history_finding *finding, struct history *out)
{
	const struct history_op *witness = &history->op[finding->witness[0]];

	history_init(out);
	for (size_t i = 0; i < history->count; i++) {
		const struct history_op *op = &history->op[i];

		if (op == witness)
			finding->witness[0] = out->count;
		else if (op->kind != HISTORY_WRITE || !shares_variable(history, op, witness))
			continue;
		if (!history_add(out, op, &history->part[op->part]))
			return 0;
	}
	finding->witnesses = 1;
	return 1;
}

static _Noreturn void report(const struct history *history, const struct history_finding *finding, int by_search)
{
	struct history_finding first = *finding, smaller = *finding;
	struct history alone, small, smallest;
	const struct history *shown = history;

	if (strcmp(finding->pattern, "object") == 0 && history_project(history, finding->object, &alone)) {
		shown = history = &alone;
		(void)state.burst->check(history, state.burst->context, &smaller);
	}

	/*
	 * The remaining history of variables is partial. Only the fast checker can judge such a
	 * history.
	 */
	if ((!by_search || state.burst->model != &history_model_variables) && shrink(history, &first, by_search, &small)) {
		/*
		 * Shrinks once more: some items had to stay because results needed them. These results are
		 * gone now.
		 */
		shown = shrink(&small, &first, by_search, &smallest) ? &smallest : &small;
		if (by_search)
			(void)search(shown, &smaller);
		else
			(void)state.burst->check(shown, state.burst->context, &smaller);
	}
	if ((strcmp(first.pattern, "abort") == 0 || strcmp(first.pattern, "version missing") == 0) &&
	    select_writes(history, &smaller, &smallest))
		shown = &smallest;
	(void)fprintf(stderr, "\nnot linearizable; %zu of %zu operations show it:\n", shown->count, history->count);
	print(shown, &smaller);
	stress_fail("round %" PRIu64 ": not linearizable: %s: %s", state.rounds, finding->pattern, finding->what);
}

/* Operations are in the order of their calls. One overlaps when an earlier one has not returned. */
static void count_overlaps(const struct history *history)
{
	uint64_t latest = 0;

	for (size_t i = 0; i < history->count; i++) {
		state.overlapping += i != 0 && history->op[i].called <= latest;
		latest = history->op[i].returned > latest ? history->op[i].returned : latest;
	}
	state.operations += history->count;
}

static void judge(void)
{
	struct history history;
	struct history_finding finding;
	enum history_verdict verdict;

	history_init(&history);
	STRESS_CHECK(history_recorder_collect(state.recorder, &history), "the log of a round was too small");
	count_overlaps(&history);
	if (state.burst->prepare != NULL)
		state.burst->prepare(&history, state.burst->context);
	verdict = state.burst->check(&history, state.burst->context, &finding);
	if (verdict == HISTORY_VIOLATED)
		report(&history, &finding, 0);
	STRESS_CHECK(verdict == HISTORY_HOLDS || verdict == HISTORY_UNDECIDED, "%s: %s", finding.pattern, finding.what);
	state.undecided += verdict == HISTORY_UNDECIDED;
	verdict = !state.is_long ? search(&history, &finding) : HISTORY_HOLDS;
	if (verdict == HISTORY_VIOLATED)
		report(&history, &finding, 1);
	state.undecided += verdict == HISTORY_UNDECIDED;
	history_fini(&history);
}

int burst_is_long(void)
{
	return state.is_long;
}

/* -- rounds ------------------------------------------------------------------------------------ */

static void play(struct stress_thread *self, unsigned most)
{
	const struct burst *burst = state.burst;
	unsigned spins = 0;

	state.threads = 2 + (unsigned)stress_below(self, most - 1);
	state.is_long = stress_one_in(self, LONG_ONE_IN);
	state.each =
		state.is_long ? 1 + stress_below(self, stress_scaled(LONG_EACH)) : 2 + stress_below(self, SHORT_EACH - 1);
	state.yields = stress_one_in(self, 2);
	burst->set_up(self, burst->context);
	history_recorder_reset(state.recorder);
	weiri_store_relaxed(&state.ready, 0u); /* [relaxed] published with the round */
	weiri_store_relaxed(&state.done, 0u);
	stress_begin(self, "waiting for the round's end");
	/* [release] pairs with the acquire in work(). */
	weiri_store_release(&state.round, ++state.rounds * SLOTS + state.threads);
	/* [acquire] pairs with the release in work_one_round(). */
	while (weiri_load_acquire(&state.done) < state.threads)
		stress_back_off(&spins);
	stress_begin(self, "judging");
	judge();
	stress_end(self, 1);
	burst->tear_down(self, burst->context);
}

void burst_run(const struct burst *burst)
{
	unsigned most = stress_threads(3) < BURST_MOST_THREADS ? stress_threads(3) : BURST_MOST_THREADS;

	state.burst = burst;
	state.rounds = state.operations = state.overlapping = state.undecided = 0;
	state.recorder = history_recorder_create(most, (size_t)LONG_EACH * MOST_PER_CALL, (size_t)LONG_EACH * MOST_PER_CALL,
	                                         HISTORY_CLOCK_BEST);
	STRESS_CHECK(state.recorder != NULL, "the harness has no memory for a history");
	/* [relaxed] no thread yet; no round has this number */
	weiri_store_relaxed(&state.round, UINT64_C(1));
	stress_disturb();
	for (unsigned i = 0; i < most; i++)
		(void)stress_start("worker", work, (void *)(uintptr_t)i);
	while (stress_goes_on())
		play(stress_self(), most);
	weiri_store_release(&state.round, UINT64_C(0)); /* [release] pairs with the acquire in work() */
	stress_join();
	stress_note("rounds", state.rounds);
	stress_note("recorded", state.operations);
	stress_note("overlapping", state.overlapping);
	stress_note("left undecided by the search", state.undecided);
	history_recorder_destroy(state.recorder);
}
