/*
 * judge.c - judges the queues that are written "by the book" for linearizability: in many short rounds
 * a few threads enqueue and dequeue at random, and the history of each round must have an explanation
 * (stress/history/history.h). The harness of the benchmarks judges only counts and sums.
 *
 * usage: bench-judge [ROUNDS]
 *
 * "Full" and "empty" are judged only where the queue promises that they are exact: SCQ and wCQ say
 * "full" beside a thread that stands between their two rings, BBQ also says "empty" beside a thread that
 * is about to count its entry.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "../rivals/rivals.h"
#include "history/history.h"

enum { THREADS = 4, OPERATIONS = 24, CAPACITY = 4, ROUNDS = 100, BUDGET = 1 << 20, SHORT = 6, YIELD_ONE_IN = 8 };

static _Thread_local uint64_t random_state;

void bench_disturb(void); /* disturb.h: the rivals call it */

/* wCQ all of whose operations are slow. */
extern const struct ring_contender impatient_wcq_ring_contender;

static const struct candidate {
	const struct ring_contender *ring;
	int exact_full, exact_empty;
} candidates[] = {
	{&scq_ring_contender, 0, 1}, {&bbq_ring_contender, 0, 0},
#ifdef WEIR_BENCH_CAS2
	{&wcq_ring_contender, 0, 1}, {&impatient_wcq_ring_contender, 0, 1}, {&nblfq_ring_contender, 1, 1},
#endif
};

struct round {
	const struct ring_contender *ring;
	void *queue;
	struct history_recorder *recorder;
	unsigned number, operations;
	_Atomic(unsigned) arrived;
};

struct player {
	struct round *round;
	unsigned index;
};

static uint64_t below(uint64_t n)
{
	random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (random_state >> 33) % n;
}

void bench_disturb(void)
{
	if (random_state != 0 && below(YIELD_ONE_IN) == 0)
		(void)sched_yield();
}

static void act(struct round *round, struct history_log *log, uint64_t value, int puts)
{
	uint64_t called = history_call(log), got = 0;
	int done = puts ? round->ring->enqueue(round->queue, value) : round->ring->dequeue(round->queue, &got);
	uint64_t returned = history_return(log);

	if (puts)
		history_note(log, done ? HISTORY_PUT : HISTORY_PUT_FULL, value, HISTORY_NONE, called, returned);
	else
		history_note(log, done ? HISTORY_TAKE : HISTORY_TAKE_EMPTY, HISTORY_NONE, done ? got : HISTORY_NONE, called,
		             returned);
}

static void *play(void *context)
{
	struct player *player = context;
	struct round *round = player->round;
	struct history_log *log = history_recorder_log(round->recorder, player->index);

	random_state = (uint64_t)round->number * THREADS + player->index + 1;
	if (round->ring->thread_begin != NULL)
		round->ring->thread_begin(round->queue);
	(void)atomic_fetch_add_explicit(&round->arrived, 1, memory_order_relaxed);
	while (atomic_load_explicit(&round->arrived, memory_order_relaxed) < THREADS)
		(void)sched_yield();
	for (unsigned i = 0; i < round->operations; i++)
		act(round, log, 1 + player->index * OPERATIONS + i, (int)below(2));
	if (round->ring->thread_end != NULL)
		round->ring->thread_end(round->queue);
	return NULL;
}

/* Leaves out the refusals that the queue does not promise to be exact. */
static void drop_refusals(const struct candidate *candidate, struct history *history)
{
	size_t kept = 0;

	for (size_t i = 0; i < history->count; i++) {
		if ((history->op[i].kind != HISTORY_PUT_FULL || candidate->exact_full) &&
		    (history->op[i].kind != HISTORY_TAKE_EMPTY || candidate->exact_empty))
			history->op[kept++] = history->op[i];
	}
	history->count = kept;
}

/* Returns 1 if the round has an explanation. */
static int judge(const struct candidate *candidate, const struct round *round)
{
	const struct history_bounds bounds = {candidate->exact_full ? CAPACITY : 0, 0};
	struct history_finding finding = {0};
	struct history history;
	enum history_verdict verdict;

	history_init(&history);
	if (!history_recorder_collect(round->recorder, &history))
		exit(3);
	drop_refusals(candidate, &history);
	verdict = history_check_fifo(&history, &bounds, &finding);
	if (verdict == HISTORY_HOLDS && round->operations <= SHORT)
		verdict = history_check_general(&history, &history_model_fifo, &bounds, BUDGET, NULL, &finding);
	if (verdict == HISTORY_VIOLATED || verdict == HISTORY_MALFORMED) {
		printf("%s, round %u: %s\n", round->ring->about.name, round->number, finding.what);
		history_print(stdout, &history, &finding, NULL);
	}
	history_fini(&history);
	return verdict == HISTORY_HOLDS || verdict == HISTORY_UNDECIDED;
}

/* Every second round is short, for the checker that misses nothing. */
static int run_round(const struct candidate *candidate, struct history_recorder *recorder, unsigned number)
{
	struct round round = {.ring = candidate->ring, .recorder = recorder, .number = number};
	struct player players[THREADS];
	pthread_t threads[THREADS];
	int holds;

	round.operations = number % 2 == 0 ? SHORT : OPERATIONS;
	round.queue = candidate->ring->create(CAPACITY);
	history_recorder_reset(recorder);
	for (unsigned i = 0; i < THREADS; i++) {
		players[i] = (struct player){&round, i};
		if (pthread_create(&threads[i], NULL, play, &players[i]) != 0)
			exit(3);
	}
	for (unsigned i = 0; i < THREADS; i++)
		(void)pthread_join(threads[i], NULL);
	holds = judge(candidate, &round);
	candidate->ring->destroy(round.queue);
	return holds;
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : ROUNDS, failed = 0;
	struct history_recorder *recorder = history_recorder_create(THREADS, OPERATIONS, 1, HISTORY_CLOCK_BEST);

	if (recorder == NULL)
		return 3;
	for (size_t i = 0; i < sizeof(candidates) / sizeof(candidates[0]); i++) {
		unsigned number = 1;

		while (number <= rounds && run_round(&candidates[i], recorder, number))
			number++;
		failed += number <= rounds;
	}
	history_recorder_destroy(recorder);
	return failed == 0 ? 0 : 1;
}
