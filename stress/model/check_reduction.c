/*
 * check_reduction.c - the reduction loses nothing, nor does merging states: small random programs, explored with either and with neither.
 *
 * A program is two to four threads of a few instructions on a few cells: loads, stores, read-modify-writes and compare-and-swaps
 * of every order, fences, membarriers, a wait that ends, instructions that are passed over if the last load returned something odd. An
 * outcome is what each instruction returned and what the cells hold at the end. The outcomes met with the reduction must be those met
 * without it; when the latter is cut off, it may have met fewer, never others. Each thread also keeps its outcome on its stack
 * only, or in memory only, so that states which differ in nothing else must be told apart.
 *
 * In every third program some of what is returned is forgotten, so that views alone tell. In every fifth the first two threads do
 * the same: with states merged one begins before the other then, and which was which is no outcome. Every fourth program also has
 * plain accesses; whether some of them race must be found by each of the three alike, and is the outcome.
 *
 * A failure prints the program, less what it does not need, and its seed: check_reduction SEED 1 tries it again.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/asymmetric.h"
#include "base/futex.h"
#include "model/scope.h"

enum { MOST_THREADS = 4, LENGTH = 4, CELLS = 3, OUTCOMES = 1 << 14, PROGRAMS = 1500, PROGRAMS_LONG = 60000 };
enum { CUT_OFF = 100000, CUT_OFF_LONG = 1000000 };

enum instruction_kind {
	LOAD,
	STORE,
	ADD,
	EXCHANGE,
	CAS,
	FENCE,
	MEMBARRIER,
	WAKE,
	WAIT,
	PASS_IF_ODD,
	KINDS,
	READ = KINDS,
	WRITE
};

struct instruction {
	enum instruction_kind kind;
	memory_order order;
	unsigned cell;
	uint32_t value, expected;
	int forgotten; /* what it returned is no part of the outcome: what the thread has read shows in its view alone */
};

static struct program {
	size_t threads, length[MOST_THREADS];
	int has_plain, first_are_alike;
	struct instruction code[MOST_THREADS][LENGTH];
} generated;

static struct state {
	_Atomic(uint32_t) cells[CELLS];
	uint32_t plain[CELLS];
	uint64_t outcome[MOST_THREADS];
} state;

/* -- programs ----------------------------------------------------------------------------------------------------------------- */

static uint64_t random_state;

static uint32_t below(uint32_t limit)
{
	uint64_t z = random_state += UINT64_C(0x9E3779B97F4A7C15);

	z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
	return (uint32_t)((z ^ z >> 31) % limit);
}

static memory_order order_for(enum instruction_kind kind)
{
	static const memory_order of_load[] = {memory_order_relaxed, memory_order_acquire, memory_order_seq_cst};
	static const memory_order of_store[] = {memory_order_relaxed, memory_order_release, memory_order_seq_cst};
	static const memory_order of_fence[] = {memory_order_acquire, memory_order_release, memory_order_seq_cst};
	static const memory_order of_rmw[] = {memory_order_relaxed, memory_order_acquire, memory_order_release,
	                                      memory_order_acq_rel, memory_order_seq_cst};

	switch (kind) {
	case LOAD: return of_load[below(3)];
	case STORE: return of_store[below(3)];
	case FENCE: return of_fence[below(3)];
	default: return of_rmw[below(5)];
	}
}

/* Mostly loads, stores and compare-and-swaps. */
static struct instruction generate_one(uint32_t number, unsigned cells)
{
	static const enum instruction_kind often[] = {LOAD, LOAD, LOAD, STORE, STORE, CAS, CAS};
	struct instruction made = {.kind = below(3) != 0 ? often[below(7)] : (enum instruction_kind)below(KINDS)};

	if (made.kind == MEMBARRIER && below(2) != 0)
		made.kind = FENCE;
	made.order = order_for(made.kind);
	made.cell = below(cells);
	made.value = number;
	made.expected = below(3) != 0 ? 0 : 1 + below(number);
	return made;
}

/* Which of two sleepers is woken is not all the same, so the two do not sleep. */
static void repeat_first_thread(void)
{
	for (size_t i = 0; i < generated.length[0]; i++) {
		struct instruction *at = &generated.code[0][i];

		at->kind = at->kind == WAIT ? LOAD : at->kind;
		generated.code[1][i] = *at;
	}
	generated.length[1] = generated.length[0];
}

static void compare_first_threads(void)
{
	generated.first_are_alike =
		generated.length[0] == generated.length[1] &&
		memcmp(generated.code[0], generated.code[1], generated.length[0] * sizeof(generated.code[0][0])) == 0;
}

static void generate(uint64_t seed)
{
	uint32_t number = 0;
	unsigned cells;

	random_state = seed * UINT64_C(0x9E3779B97F4A7C15);
	memset(&generated, 0, sizeof(generated));
	generated.threads = 2 + below(3);
	cells = 1 + below(CELLS);
	for (size_t t = 0; t < generated.threads; t++) {
		generated.length[t] = 1 + below(generated.threads == 2 ? 4 : generated.threads == 3 ? 3 : 2);
		for (size_t i = 0; i < generated.length[t]; i++)
			generated.code[t][i] = generate_one(++number, cells);
	}
	generated.has_plain = seed % 4 == 3;
	for (size_t t = 0; generated.has_plain && t < generated.threads; t++) {
		for (size_t i = 0; i < generated.length[t]; i++) {
			if (below(4) == 0)
				generated.code[t][i].kind = below(2) != 0 ? READ : WRITE;
		}
	}
	for (size_t t = 0; seed % 3 == 0 && t < generated.threads; t++) {
		for (size_t i = 0; i + 1 < generated.length[t]; i++)
			generated.code[t][i].forgotten = below(2) != 0;
	}
	if (seed % 5 == 3)
		repeat_first_thread();
}

static void print_program(void)
{
	static const char *const names[] = {"load",       "store", "add",  "exchange",    "cas",  "fence",
	                                    "membarrier", "wake",  "wait", "pass-if-odd", "read", "write"};

	for (size_t t = 0; t < generated.threads; t++) {
		(void)printf("  thread %zu:", t);
		for (size_t i = 0; i < generated.length[t]; i++) {
			const struct instruction *at = &generated.code[t][i];

			(void)printf("  %s cell %u order %d value %u expected %u%s;", names[at->kind], at->cell, (int)at->order,
			             at->value, at->expected, at->forgotten ? " forgotten" : "");
		}
		(void)putchar('\n');
	}
}

/* -- running them ------------------------------------------------------------------------------------------------------------- */

static memory_order on_failure(memory_order order)
{
	switch (order) {
	case memory_order_acq_rel: return memory_order_acquire;
	case memory_order_release: return memory_order_relaxed;
	default: return order;
	}
}

static uint32_t change(const struct instruction *at)
{
	_Atomic(uint32_t) *cell = &state.cells[at->cell];
	uint32_t expected = at->expected;

	switch (at->kind) {
	case ADD: return atomic_fetch_add_explicit(cell, at->value, at->order);
	case EXCHANGE: return atomic_exchange_explicit(cell, at->value, at->order);
	default: break;
	}
	(void)atomic_compare_exchange_strong_explicit(cell, &expected, at->value, at->order, on_failure(at->order));
	return expected;
}

static uint32_t perform(const struct instruction *at)
{
	_Atomic(uint32_t) *cell = &state.cells[at->cell];

	switch (at->kind) {
	case LOAD: return atomic_load_explicit(cell, at->order);
	case STORE: atomic_store_explicit(cell, at->value, at->order); return 0;
	case FENCE: atomic_thread_fence(at->order); return 0;
	case MEMBARRIER: (void)weiri_fence_heavy(); return 0;
	case WAKE: weiri_futex_wake(cell, 1); return 0;
	/* Ends at once, when it is woken, or when a deadline passes: which of these is no outcome. */
	case WAIT: (void)weiri_futex_wait(cell, at->expected, 1000); return 0;
	case PASS_IF_ODD: return 0;
	case READ: return state.plain[at->cell];
	case WRITE: state.plain[at->cell] = at->value; return 0;
	default: return change(at);
	}
}

static void thread(void *context, size_t number)
{
	const int in_memory = number % 2 == 0 || (number == 1 && generated.first_are_alike);
	uint64_t outcome = 1;
	uint32_t last = 0;

	(void)context;
	for (size_t i = 0; i < generated.length[number]; i++) {
		const struct instruction *at = &generated.code[number][i];

		if (at->kind == PASS_IF_ODD && last % 2 != 0) {
			i++;
			continue;
		}
		last = perform(at);
		last = at->forgotten ? 0 : last;
		outcome = outcome * 64 + last;
		if (in_memory) {
			state.outcome[number] = outcome;
			outcome = 0;
			outcome = state.outcome[number];
		}
	}
	state.outcome[number] = outcome;
}

/* -- outcomes ----------------------------------------------------------------------------------------------------------------- */

static struct outcomes {
	size_t count;
	uint64_t met[OUTCOMES]; /* 0: none; by hash */
} with, without, merged, *current;

static int note(struct outcomes *outcomes, uint64_t outcome)
{
	for (size_t i = outcome % OUTCOMES;; i = (i + 1) % OUTCOMES) {
		if (outcomes->met[i] == outcome)
			return 0;
		if (outcomes->met[i] == 0) {
			outcomes->met[i] = outcome;
			return ++outcomes->count < OUTCOMES / 2;
		}
	}
}

static void finish(void *context)
{
	uint64_t sum = 0, first = state.outcome[0];

	(void)context;
	/* Of two that are alike it is no outcome which was which. */
	if (generated.first_are_alike && state.outcome[1] < first) {
		state.outcome[0] = state.outcome[1];
		state.outcome[1] = first;
	}
	for (size_t t = 0; t < MOST_THREADS; t++)
		sum = (sum ^ state.outcome[t]) * UINT64_C(0xBF58476D1CE4E5B9) + (sum >> 29);
	for (size_t i = 0; i < CELLS; i++)
		sum = (sum ^ atomic_load_explicit(&state.cells[i], memory_order_relaxed)) * UINT64_C(0x94D049BB133111EB) +
		      (sum >> 31);
	if (note(current, sum | 1))
		return;
}

/* How many outcomes of b are not in a. */
static size_t missing(const struct outcomes *a, const struct outcomes *b)
{
	static struct outcomes both;
	size_t before;

	both = *a;
	before = both.count;
	for (size_t i = 0; i < OUTCOMES; i++) {
		if (b->met[i] != 0)
			(void)note(&both, b->met[i]);
	}
	return both.count - before;
}

static struct weir_model_result explore(struct outcomes *outcomes, struct weir_model_options options)
{
	struct weir_model_program program = {"random", generated.threads, &state, sizeof(state), NULL, thread, finish};
	struct weir_model_result result;

	memset(outcomes, 0, sizeof(*outcomes));
	memset(&state, 0, sizeof(state));
	current = outcomes;
	(void)weir_model_check(&program, &options, &result);
	free(result.replay);
	return result;
}

static uint64_t executions_with, executions_without, executions_merged, cut_off, racing;

static struct weir_model_result by_states;

/* Is what was met with less work what was met with all? `one`, `all`: what these searches said. */
static int same(const struct outcomes *met, const struct weir_model_result *one, const struct weir_model_result *all)
{
	if (one->failed || all->failed)
		return generated.has_plain && (one->failed == all->failed || !(all->failed || all->complete));
	return one->complete && missing(met, &without) == 0 && (!all->complete || missing(&without, met) == 0);
}

/* Explores what was generated in all ways; 0: the same was met. */
static int differs(struct weir_model_result *reduced, struct weir_model_result *all)
{
	compare_first_threads();
	*reduced = explore(&with, (struct weir_model_options){0});
	by_states =
		explore(&merged, (struct weir_model_options){.merge_states = 1, .alike = generated.first_are_alike ? 2 : 0});
	*all = explore(&without, (struct weir_model_options){.no_reduction = 1,
	                                                     .max_executions = scope_long() ? CUT_OFF_LONG : CUT_OFF});
	return !same(&with, reduced, all) || !same(&merged, &by_states, all);
}

static void drop(size_t of, size_t at)
{
	memmove(&generated.code[of][at], &generated.code[of][at + 1], (LENGTH - 1 - at) * sizeof(generated.code[of][0]));
	generated.length[of]--;
}

/* Leaves out what the difference does not need. */
static void shrink(void)
{
	struct weir_model_result reduced, all;

	for (size_t t = 0; t < generated.threads; t++) {
		for (size_t i = generated.length[t]; i-- > 0;) {
			struct program before = generated;

			drop(t, i);
			if (!differs(&reduced, &all))
				generated = before;
		}
	}
}

static int check(uint64_t seed)
{
	struct weir_model_result reduced, all;
	int bad;

	generate(seed);
	bad = differs(&reduced, &all);
	executions_with += reduced.executions;
	executions_without += all.executions;
	executions_merged += by_states.executions;
	racing += (uint64_t)by_states.failed;
	cut_off += !all.complete && !all.failed;
	if (!bad)
		return 0;
	shrink();
	(void)differs(&reduced, &all);
	(void)printf(
		"FAIL random_program_of_seed_%llu: %zu outcomes lost, %zu made up; with states merged %zu, %zu; %s / %s / %s\n",
		(unsigned long long)seed, missing(&with, &without), missing(&without, &with), missing(&merged, &without),
		missing(&without, &merged), reduced.message, by_states.message, all.message);
	print_program();
	return 1;
}

int main(int argc, char **argv)
{
	uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 0) : scope_long() ? PROGRAMS_LONG : PROGRAMS;
	int bad = 0;

	for (uint64_t seed = first; seed < first + count; seed++)
		bad += check(seed);
	(void)printf(
		"%s random_programs_reduction_loses_nothing: %llu programs, %llu executions with the reduction, %llu with "
		"states merged, %llu without either, %llu programs cut off there; %llu programs race\n",
		bad != 0 ? "FAIL" : "PASS", (unsigned long long)count, (unsigned long long)executions_with,
		(unsigned long long)executions_merged, (unsigned long long)executions_without, (unsigned long long)cut_off,
		(unsigned long long)racing);
	return bad != 0;
}
