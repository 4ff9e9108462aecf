/*
 * recorder.c - the logs of threads, and the choice of a clock; see clock.h for what the clocks
 * guarantee.
 */
#include "history/keyed.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

enum { APART = 128, MOST_THREADS = 64, ROUNDS = 2000 };

struct history_recorder {
	unsigned threads;
	size_t stride; /* from one log to the next; no two logs share a cache line */
	unsigned char *logs;
	_Alignas(APART) _Atomic(uint64_t) counter;
};

struct history_log *history_recorder_log(struct history_recorder *recorder, unsigned thread)
{
	return (struct history_log *)(void *)(recorder->logs + thread * recorder->stride);
}

static const struct history_log *log_of(const struct history_recorder *recorder, unsigned thread)
{
	return (const struct history_log *)(const void *)(recorder->logs + thread * recorder->stride);
}

/* The memory is written completely, so that recording never touches a page for the first time. */
static void *touched(size_t count, size_t size)
{
	void *memory = NULL;
	size_t bytes;

	if (count > (SIZE_MAX - APART) / size)
		return NULL;
	bytes = (count * size + APART) / APART * APART;
	if (posix_memalign(&memory, APART, bytes) != 0)
		return NULL;
	memset(memory, 1, bytes);
	return memory;
}

static int set_up_log(struct history_recorder *recorder, unsigned thread, size_t operations, size_t parts,
                      enum history_clock clock)
{
	struct history_log *log = history_recorder_log(recorder, thread);

	memset(log, 0, sizeof(*log));
	log->op = touched(operations, sizeof(*log->op));
	log->part = touched(parts, sizeof(*log->part));
	log->room = operations;
	log->part_room = parts;
	log->thread = thread;
	log->clock = clock;
	log->counter = &recorder->counter;
	return log->op != NULL && log->part != NULL;
}

struct history_recorder *history_recorder_create(unsigned threads, size_t operations, size_t parts,
                                                 enum history_clock clock)
{
	struct history_recorder *recorder = touched(1, sizeof(*recorder));
	int fine;

	if (recorder == NULL)
		return NULL;
	recorder->threads = 0;
	recorder->stride = (sizeof(struct history_log) + APART - 1) / APART * APART;
	recorder->logs = touched(threads, recorder->stride);
	atomic_init(&recorder->counter, 1);
	if (clock == HISTORY_CLOCK_BEST)
		clock = history_clock_best();
	fine = recorder->logs != NULL;
	while (fine && recorder->threads < threads)
		fine = set_up_log(recorder, recorder->threads++, operations, parts, clock);
	if (!fine) {
		history_recorder_destroy(recorder);
		return NULL;
	}
	return recorder;
}

void history_recorder_destroy(struct history_recorder *recorder)
{
	if (recorder == NULL)
		return;
	for (unsigned i = 0; i < recorder->threads; i++) {
		free(history_recorder_log(recorder, i)->op);
		free(history_recorder_log(recorder, i)->part);
	}
	free(recorder->logs);
	free(recorder);
}

void history_recorder_reset(struct history_recorder *recorder)
{
	for (unsigned i = 0; i < recorder->threads; i++) {
		struct history_log *log = history_recorder_log(recorder, i);

		log->count = log->part_count = 0;
		log->lost = 0;
	}
}

static void note(struct history_log *log, struct history_op op, const struct history_part parts[], size_t count)
{
	op.thread = log->thread;
	op.parts = (uint16_t)count;
	op.part = (uint32_t)log->part_count;
	if (log->count == log->room || count > log->part_room - log->part_count || count > UINT16_MAX) {
		log->lost++;
		return;
	}
	if (count != 0)
		memcpy(&log->part[log->part_count], parts, count * sizeof(*parts));
	log->part_count += count;
	log->op[log->count++] = op;
}

void history_note_parts(struct history_log *log, enum history_kind kind, const struct history_part parts[],
                        size_t count, uint64_t stamp, uint64_t called, uint64_t returned)
{
	note(log, (struct history_op){called, returned, HISTORY_NONE, stamp, 0, (uint16_t)kind, 0, 0}, parts, count);
}

void history_note_keyed(struct history_log *log, enum history_kind kind, uint64_t argument,
                        const struct history_part parts[], size_t count, enum history_answer answer, uint64_t called,
                        uint64_t returned)
{
	note(log, (struct history_op){called, returned, argument, answer, 0, (uint16_t)kind, 0, 0}, parts, count);
}

int history_recorder_collect(const struct history_recorder *recorder, struct history *out)
{
	for (unsigned i = 0; i < recorder->threads; i++) {
		const struct history_log *log = log_of(recorder, i);

		if (log->lost != 0)
			return 0;
		for (size_t k = 0; k < log->count; k++) {
			if (!history_add(out, &log->op[k], &log->part[log->op[k].part]))
				return 0;
		}
	}
	history_sort(out);
	return 1;
}

/* -- tests whether the processors agree -------------------------------------------------------- */

/*
 * The last value that any thread saw. `last` passes from thread to thread by release and acquire,
 * so each value is taken after the previous one.
 */
struct relay {
	_Atomic(uint32_t) held;
	uint64_t last;
	int went_back;
	enum history_clock clock;
	unsigned rounds;
	_Atomic(uint64_t) counter;
};

struct runner {
	struct relay *relay;
	int processor; /* -1: the system chooses */
	pthread_t thread;
};

static void stay_on(int processor)
{
	cpu_set_t set;

	if (processor < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET((size_t)processor, &set);
	(void)pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

static void *run_relay(void *argument)
{
	struct runner *runner = argument;
	struct relay *relay = runner->relay;

	stay_on(runner->processor);
	for (unsigned i = 0; i < relay->rounds; i++) {
		uint64_t now;

		/* [acquire] pairs with the release below: `last` is what the previous holder stored. */
		while (atomic_exchange_explicit(&relay->held, 1, memory_order_acquire) != 0)
			(void)sched_yield();
		now = history_clock_before(relay->clock, &relay->counter);
		if (now < relay->last)
			relay->went_back = 1;
		relay->last = history_clock_after(relay->clock, &relay->counter);
		/* [release] pairs with the acquire above. */
		atomic_store_explicit(&relay->held, 0, memory_order_release);
	}
	return NULL;
}

/* Returns the n-th processor that the process may use, or -1. */
static int nth_processor(unsigned n)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) != 0 || CPU_COUNT(&set) == 0)
		return -1;
	n %= (unsigned)CPU_COUNT(&set);
	for (int i = 0; i < CPU_SETSIZE; i++) {
		if (CPU_ISSET((size_t)i, &set) && n-- == 0)
			return i;
	}
	return -1;
}

int history_clock_agrees(enum history_clock clock, unsigned threads, unsigned rounds)
{
	struct relay relay = {.clock = clock, .rounds = rounds};
	struct runner runners[MOST_THREADS] = {0};
	unsigned started = 0;

	if (threads > MOST_THREADS)
		threads = MOST_THREADS;
	for (; started < threads; started++) {
		runners[started] = (struct runner){.relay = &relay, .processor = nth_processor(started)};
		if (pthread_create(&runners[started].thread, NULL, run_relay, &runners[started]) != 0)
			break;
	}
	for (unsigned i = 0; i < started; i++)
		(void)pthread_join(runners[i].thread, NULL);
	return started == threads && !relay.went_back;
}

/*
 * Returns 1 if the counter's rate does not depend on the processor's rate, and the program can read
 * the counter.
 */
static int cycles_are_invariant(void)
{
#if defined(__x86_64__)
	unsigned a, b, c, d;
	const unsigned rdtscp = 1u << 27, invariant = 1u << 8;

	if (!__get_cpuid(0x80000001u, &a, &b, &c, &d) || (d & rdtscp) == 0)
		return 0;
	return __get_cpuid(0x80000007u, &a, &b, &c, &d) && (d & invariant) != 0;
#else
	/* arm64 has one counter for the system by definition; CLOCK_MONOTONIC belongs to the system */
	return 1;
#endif
}

enum history_clock history_clock_best(void)
{
	/* 0: not tested yet. Two threads may both test; they get the same result. */
	static _Atomic(int) found;
	/* [relaxed] one number; it publishes nothing else */
	int clock = atomic_load_explicit(&found, memory_order_relaxed);
	cpu_set_t set;

	if (clock != 0)
		return (enum history_clock)clock;
	clock = HISTORY_CLOCK_COUNTER;
	if (cycles_are_invariant() && sched_getaffinity(0, sizeof(set), &set) == 0 &&
	    history_clock_agrees(HISTORY_CLOCK_CYCLES, (unsigned)CPU_COUNT(&set), ROUNDS))
		clock = HISTORY_CLOCK_CYCLES;
	atomic_store_explicit(&found, clock, memory_order_relaxed);
	return (enum history_clock)clock;
}
