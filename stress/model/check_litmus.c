/*
 * check_litmus.c - the checker is checked: small programs whose outcomes C11 allows or forbids are known.
 *
 * Each program writes what it saw into its outcome; all executions are explored, and the set of outcomes that were met is compared with
 * the set that C11 allows (less what model.h says is not explored).
 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "model/model.h"

static struct state {
	_Atomic(int) x, y;
	int plain;
	int saw[4];
} state;

static unsigned met; /* bit i: outcome i was seen in some execution */

#define RLX memory_order_relaxed
#define ACQ memory_order_acquire
#define REL memory_order_release
#define SC memory_order_seq_cst
#define LOAD(v, order) atomic_load_explicit(&state.v, order)
#define STORE(v, value, order) atomic_store_explicit(&state.v, value, order)

static void two_bits(void *context)
{
	(void)context;
	met |= 1u << (state.saw[0] * 2 + state.saw[1]);
}

/* x = 1; y = 1  ||  a = y; b = x.  Outcome 2a + b; a = 1, b = 0 is the one in question. */
static void message(size_t number, memory_order store, memory_order load)
{
	if (number == 0) {
		STORE(x, 1, RLX);
		STORE(y, 1, store);
	} else {
		state.saw[0] = LOAD(y, load);
		state.saw[1] = LOAD(x, RLX);
	}
}

static void message_relaxed(void *context, size_t number)
{
	(void)context;
	message(number, RLX, RLX);
}

static void message_acquire(void *context, size_t number)
{
	(void)context;
	message(number, REL, ACQ);
}

/* x = 1; a = y  ||  y = 1; b = x.  a = b = 0 is the one in question. */
static void buffering(size_t number, memory_order store, memory_order load, int fence)
{
	if (number == 0)
		STORE(x, 1, store);
	else
		STORE(y, 1, store);
	if (fence)
		atomic_thread_fence(SC);
	if (number == 0)
		state.saw[0] = LOAD(y, load);
	else
		state.saw[1] = LOAD(x, load);
}

static void buffering_acquire(void *context, size_t number)
{
	(void)context;
	buffering(number, REL, ACQ, 0);
}

static void buffering_seq_cst(void *context, size_t number)
{
	(void)context;
	buffering(number, SC, SC, 0);
}

static void buffering_fences(void *context, size_t number)
{
	(void)context;
	buffering(number, RLX, RLX, 1);
}

/* x = 1  ||  x = 2  ||  a = x; b = x: never 1 then 0, or new then old of one thread. Outcome: whether a > 0 and b = 0. */
static void coherence(void *context, size_t number)
{
	(void)context;
	if (number < 2) {
		STORE(x, (int)number + 1, RLX);
	} else {
		state.saw[0] = LOAD(x, RLX) != 0;
		state.saw[1] = LOAD(x, RLX) != 0;
	}
}

/* Two writers, two readers that look in opposite orders: do they disagree about which came first? */
static void iriw(size_t number, memory_order order)
{
	switch (number) {
	case 0: STORE(x, 1, order); break;
	case 1: STORE(y, 1, order); break;
	case 2: state.saw[0] = LOAD(x, order), state.saw[1] = LOAD(y, order); break;
	default: state.saw[2] = LOAD(y, order), state.saw[3] = LOAD(x, order); break;
	}
}

static void iriw_acquire(void *context, size_t number)
{
	(void)context;
	iriw(number, number < 2 ? REL : ACQ);
}

static void iriw_seq_cst(void *context, size_t number)
{
	(void)context;
	iriw(number, SC);
}

static void disagree(void *context)
{
	(void)context;
	met |= 1u << (state.saw[0] == 1 && state.saw[1] == 0 && state.saw[2] == 1 && state.saw[3] == 0);
}

/* Plain data behind a flag. */
static void race(size_t number, memory_order store, memory_order load)
{
	if (number == 0) {
		state.plain = 1;
		STORE(x, 1, store);
	} else if (LOAD(x, load) == 1) {
		state.saw[0] = state.plain;
	}
}

static void race_relaxed(void *context, size_t number)
{
	(void)context;
	race(number, RLX, RLX);
}

static void race_acquire(void *context, size_t number)
{
	(void)context;
	race(number, REL, ACQ);
}

static void release_sequence(void *context, size_t number)
{
	(void)context;
	if (number == 0) {
		state.plain = 1;
		STORE(x, 1, REL);
	} else if (number == 1) {
		(void)atomic_fetch_add_explicit(&state.x, 1, RLX);
	} else if (LOAD(x, ACQ) == 2) { /* 0 + 1 = 1 is the other thread's own; 2 continues the release */
		state.saw[0] = state.plain;
	}
}

static const struct litmus {
	const char *name;
	size_t threads;
	void (*thread)(void *, size_t);
	void (*finish)(void *);
	unsigned allowed; /* outcomes that must all be met, and no others */
	int fails;        /* an execution must fail (a race) */
} tests[] = {
	{"message_passing_relaxed", 2, message_relaxed, two_bits, 0xF, 0},
	{"message_passing_acquire", 2, message_acquire, two_bits, 0xB, 0},
	{"store_buffering_acquire", 2, buffering_acquire, two_bits, 0xF, 0},
	{"store_buffering_seq_cst", 2, buffering_seq_cst, two_bits, 0xE, 0},
	{"store_buffering_fences", 2, buffering_fences, two_bits, 0xE, 0},
	{"coherence", 3, coherence, two_bits, 0xB, 0},
	{"iriw_acquire", 4, iriw_acquire, disagree, 0x3, 0},
	{"iriw_seq_cst", 4, iriw_seq_cst, disagree, 0x1, 0},
	{"plain_data_behind_a_relaxed_flag_races", 2, race_relaxed, NULL, 0, 1},
	{"plain_data_behind_an_acquire_flag", 2, race_acquire, NULL, 0, 0},
	{"a_relaxed_rmw_continues_a_release_sequence", 3, release_sequence, NULL, 0, 0},
};

int main(void)
{
	int bad = 0;

	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		const struct litmus *test = &tests[i];
		struct weir_model_program program = {test->name, test->threads, &state,      sizeof(state),
		                                     NULL,       test->thread,  test->finish};
		struct weir_model_result result;
		int right;

		met = 0;
		memset(&state, 0, sizeof(state));
		(void)weir_model_check(&program, NULL, &result);
		right = result.failed == test->fails && (test->fails || (result.complete && met == test->allowed));
		(void)printf("%s %s: %llu executions, outcomes %x%s%s\n", right ? "PASS" : "FAIL", test->name,
		             (unsigned long long)result.executions, met, result.failed ? ", " : "", result.message);
		bad |= !right;
	}
	return bad;
}
