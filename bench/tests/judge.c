/*
 * judge.c - judges the queues that are written "by the book" for linearizability: in many short rounds
 * a few threads enqueue and dequeue at random, and the history of each round must have an explanation
 * (stress/history/history.h). The harness of the benchmarks judges only counts and sums.
 *
 * usage: bench-judge [ROUNDS]
 *
 * The rivals call bench_disturb() before most of their atomic operations (disturb.h). There a thread yields
 * at times, and rarely it *stalls*: it comes back after the others have ended some operations. A helper
 * that comes too late, and a thread that is overtaken in the middle of an operation, are found so.
 *
 * "Full" and "empty" are judged only where the queue promises that they are exact: SCQ says
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

enum { THREADS = 4, OPERATIONS = 24, ROUNDS = 100, BUDGET = 1 << 20, SHORT = 6 };
/* A thread stalls until the others have ended so many operations, or it has yielded so often. */
enum { LONGEST_STALL = 12, MOST_YIELDS = 20 };
enum { AT_REST = 9 /* more than a queue holds */ };

static const size_t capacities[] = {2, 4};
/* One step in so many yields, and one in so many stalls. */
static const struct disturbance {
	unsigned yields, stalls;
} disturbances[] = {{8, 64}, {2, 32}, {64, 16}, {8, 256}};

static _Thread_local uint64_t random_state;

void bench_disturb(void); /* disturb.h: the rivals call it */

static const struct candidate {
	const struct ring_contender *ring;
	int exact_full, exact_empty, exact_capacity;
} candidates[] = {
	{&scq_ring_contender, 0, 1, 1},
	{&bbq_ring_contender, 0, 0, 0},
#ifdef WEIR_BENCH_CAS2
	{&nblfq_ring_contender, 1, 1, 1},
	{&wcq_ring_contender, 0, 1, 1},
#endif
};

struct round {
	const struct ring_contender *ring;
	void *queue;
	struct history_recorder *recorder;
	unsigned number, operations;
	size_t capacity;
	struct disturbance disturbance;
	_Atomic(unsigned) arrived, ended; /* threads; operations */
};

struct player {
	struct round *round;
	unsigned index;
};

static _Thread_local struct round *playing;

static uint64_t below(uint64_t n)
{
	random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (random_state >> 33) % n;
}

/* Lets the others end some operations. They may have ended all. */
static void stall(struct round *round)
{
	unsigned until = atomic_load_explicit(&round->ended, memory_order_relaxed) + 1 + (unsigned)below(LONGEST_STALL);

	for (int i = 0; i < MOST_YIELDS && atomic_load_explicit(&round->ended, memory_order_relaxed) < until; i++)
		(void)sched_yield();
}

void bench_disturb(void)
{
	if (playing == NULL)
		return;
	if (below(playing->disturbance.stalls) == 0)
		stall(playing);
	else if (below(playing->disturbance.yields) == 0)
		(void)sched_yield();
}

static void act(struct round *round, struct history_log *log, uint64_t value, int puts)
{
	uint64_t called = history_call(log), got = 0;
	int done = puts ? round->ring->enqueue(round->queue, value) : round->ring->dequeue(round->queue, &got);
	uint64_t returned = history_return(log);

	(void)atomic_fetch_add_explicit(&round->ended, 1, memory_order_relaxed);
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
	playing = round;
	for (unsigned i = 0; i < round->operations; i++)
		act(round, log, 1 + player->index * OPERATIONS + i, (int)below(2));
	playing = NULL;
	if (round->ring->thread_end != NULL)
		round->ring->thread_end(round->queue);
	return NULL;
}

/*
 * At rest "full" and "empty" are exact: takes what is left, which the history judges, and then a queue
 * takes in as many values as it holds. Returns 0 if it does not.
 */
static int comes_to_rest(const struct candidate *candidate, struct round *round)
{
	struct history_log *log = history_recorder_log(round->recorder, 0);
	uint64_t value = 0;
	size_t in = 0;

	if (round->ring->thread_begin != NULL)
		round->ring->thread_begin(round->queue);
	for (unsigned i = 0; i < AT_REST; i++)
		act(round, log, 0, 0);
	while (in < AT_REST && round->ring->enqueue(round->queue, 1 + in))
		in++;
	for (size_t i = 1; i <= in; i++) {
		if (!round->ring->dequeue(round->queue, &value) || value != i)
			in = 0;
	}
	if (round->ring->thread_end != NULL)
		round->ring->thread_end(round->queue);
	return candidate->exact_capacity ? in == round->capacity : in != 0;
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
	const struct history_bounds bounds = {candidate->exact_full ? round->capacity : 0, 0};
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
	round.capacity = capacities[number / 2 % (sizeof(capacities) / sizeof(capacities[0]))];
	round.disturbance = disturbances[number / 4 % (sizeof(disturbances) / sizeof(disturbances[0]))];
	round.queue = candidate->ring->create(round.capacity);
	history_recorder_reset(recorder);
	for (unsigned i = 0; i < THREADS; i++) {
		players[i] = (struct player){&round, i};
		if (pthread_create(&threads[i], NULL, play, &players[i]) != 0)
			exit(3);
	}
	for (unsigned i = 0; i < THREADS; i++)
		(void)pthread_join(threads[i], NULL);
	holds = comes_to_rest(candidate, &round);
	if (!holds)
		printf("%s, round %u: at rest it does not hold %zu values in order\n", candidate->ring->about.name, number,
		       round.capacity);
	holds &= judge(candidate, &round);
	candidate->ring->destroy(round.queue);
	return holds;
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : ROUNDS, failed = 0;
	struct history_recorder *recorder = history_recorder_create(THREADS, OPERATIONS + AT_REST, 1, HISTORY_CLOCK_BEST);

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
