/*
 * check_reduction.c - neither the reduction nor the merging of states loses an outcome. Small
 * random programs are explored with either of the two and with neither.
 *
 * A program is two to four threads of a few instructions on a few cells: loads, stores,
 * read-modify-writes and compare-and-swaps of every order, fences, membarriers, a wait that ends,
 * instructions that are skipped if the last load returned an odd value. An outcome is what each
 * instruction returned and what the cells hold at the end. The outcomes with the reduction must be
 * those without it. If the search without the reduction is cut off, it may have fewer outcomes, but
 * no additional ones. A thread keeps its outcome either on its stack or in memory, so that states
 * which differ in nothing else must be distinguished.
 *
 * In every third program some of the returned values are forgotten, so that only views tell states
 * apart. In every fifth program the first two threads are identical. With states merged the first
 * of them always begins before the second, so the outcome does not tell which of the two is which.
 * Every fourth program also has plain accesses. All three searches must then agree whether any of
 * these accesses race; this is the outcome if they do.
 *
 * Such outcomes distinguish nearly all states, so that merging has little effect. Programs of a
 * second kind, whose seeds begin at FORGETFUL, forget. A thread first performs a few instructions
 * whose results are not kept. Then it adds to a cell to which all threads add, which fixes their
 * order. Then it performs a few more instructions, whose results are kept. After the addition,
 * states therefore differ only in what matters for merging: which stores each thread may still
 * read, and which accesses of other threads it knows. A thread uses only some of the cells, and
 * performs some instructions only if the instruction before returned a certain value. Other threads
 * may therefore decide whether a thread ever accesses a cell, and whether a plain access races.
 * Some programs allocate, release, and read the clock. With states merged, such a program must have
 * the outcomes that it has with the reduction. A program that uses the heap or the clock is
 * compared with the search without the reduction instead, because the reduction ignores the order
 * in which memory is allocated and time passes.
 *
 * Some programs of both kinds are explored once more with each execution beginning at setup. The
 * search with checkpoints (checkpoint.c) must have as many executions, as many pruned ones, as many
 * states, and the same outcomes. `check_reduction checkpoints` does only this.
 *
 * A failure prints the program, reduced to what it needs, and its seed: check_reduction SEED 1
 * tries it again.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/time.h>

#include "base/asymmetric.h"
#include "base/futex.h"
#include "model/checkpoint.h"
#include "model/scope.h"

enum {
	MOST_THREADS = 4,
	LENGTH = 5,
	CELLS = 3,
	TURN = CELLS,
	OUTCOMES = 1 << 14,
	PROGRAMS = 1500,
	PROGRAMS_LONG = 60000
};
enum { FORGETFUL = 1 << 20, FORGETFUL_PROGRAMS = 2000, FORGETFUL_PROGRAMS_LONG = 100000 };
enum { CHECKPOINT_PROGRAMS = 500, CHECKPOINT_PROGRAMS_LONG = 10000 };
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
	WRITE,
	ALLOCATE,
	RELEASE,
	CLOCK
};

struct instruction {
	enum instruction_kind kind;
	memory_order order;
	unsigned cell;
	uint32_t value, expected;
	/* its result is not part of the outcome: only the thread's view shows what it has read */
	int forgotten;
	int guarded; /* performed only if the instruction before returned a certain value */
};

static struct program {
	size_t threads, length[MOST_THREADS];
	int has_plain, first_are_alike, forgets, has_heap;
	struct instruction code[MOST_THREADS][LENGTH];
} generated;

static struct state {
	_Atomic(uint32_t) cells[CELLS + 1];
	uint32_t plain[CELLS];
	void *block[MOST_THREADS]; /* the block that each thread allocated last and did not release */
	uint64_t outcome[MOST_THREADS];
} state;

/* -- programs ---------------------------------------------------------------------------------- */

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

/*
 * Makes the first two threads identical. They do not sleep, because it matters which of two
 * sleepers is woken.
 */
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
	/*
	 * Threads allocate before their first steps in a fixed order, so no two threads are identical
	 * then.
	 */
	generated.first_are_alike =
		!generated.has_heap && generated.length[0] == generated.length[1] &&
		memcmp(generated.code[0], generated.code[1], generated.length[0] * sizeof(generated.code[0][0])) == 0;
}

/* `role`: the kind of instruction that the thread mostly performs. */
static struct instruction generate_forgetful_one(const unsigned cells[2], enum instruction_kind role, int forgotten)
{
	struct instruction made = generate_one(2, CELLS);

	if (made.kind == PASS_IF_ODD || below(2) != 0) {
		made.kind = role;
		made.order = order_for(role);
	}
	if (generated.has_plain && below(3) == 0)
		made.kind = role == STORE ? WRITE : READ;
	if (generated.has_heap && below(3) == 0)
		made.kind = ALLOCATE + (enum instruction_kind)below(3);
	made.cell = cells[below(2)];
	made.value = 1 + below(2);
	made.forgotten = forgotten;
	made.guarded = below(made.kind < READ ? 6 : 2) == 0;
	return made;
}

static void generate_forgetful(void)
{
	generated.forgets = 1;
	generated.threads = 2 + below(2);
	generated.has_plain = below(2) != 0;
	generated.has_heap = generated.threads == 2 && below(3) == 0;
	for (size_t t = 0; t < generated.threads; t++) {
		const unsigned cells[2] = {below(CELLS), below(CELLS)};
		const enum instruction_kind role = below(2) != 0 ? LOAD : STORE;
		const memory_order order = below(2) != 0 ? order_for(ADD) : memory_order_relaxed;
		struct instruction *at = generated.code[t];

		for (unsigned left = 1 + below(2); left != 0; left--)
			*at++ = generate_forgetful_one(cells, role, 1);
		*at++ = (struct instruction){.kind = ADD, .order = order, .cell = TURN, .value = 1u << 2 * t};
		for (unsigned left = 1 + below(2); left != 0; left--)
			*at++ = generate_forgetful_one(cells, role, 0);
		generated.length[t] = (size_t)(at - generated.code[t]);
	}
	if (below(5) == 0)
		repeat_first_thread();
}

static void generate(uint64_t seed)
{
	uint32_t number = 0;
	unsigned cells;

	random_state = seed * UINT64_C(0x9E3779B97F4A7C15);
	memset(&generated, 0, sizeof(generated));
	if (seed >= FORGETFUL) {
		generate_forgetful();
		return;
	}
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
	static const char *const names[] = {"load",  "store",      "add",      "exchange", "cas",
	                                    "fence", "membarrier", "wake",     "wait",     "pass-if-odd",
	                                    "read",  "write",      "allocate", "release",  "clock"};

	for (size_t t = 0; t < generated.threads; t++) {
		(void)printf("  thread %zu:", t);
		for (size_t i = 0; i < generated.length[t]; i++) {
			const struct instruction *at = &generated.code[t][i];

			(void)printf("  %s%s cell %u order %d value %u expected %u%s;", at->guarded ? "if so " : "",
			             names[at->kind], at->cell, (int)at->order, at->value, at->expected,
			             at->forgotten ? " forgotten" : "");
		}
		(void)putchar('\n');
	}
}

/* -- running them ------------------------------------------------------------------------------ */

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

/* The block's number. */
static uint32_t allocate(void **block)
{
	if (*block == NULL)
		*block = weir_model_allocate(16, 16);
	return (uint32_t)((uintptr_t)*block / 16 % 64);
}

static uint32_t release(void **block)
{
	weir_model_release(*block);
	*block = NULL;
	return 0;
}

static uint32_t perform(size_t me, const struct instruction *at)
{
	_Atomic(uint32_t) *cell = &state.cells[at->cell];

	switch (at->kind) {
	case LOAD: return atomic_load_explicit(cell, at->order);
	case STORE: atomic_store_explicit(cell, at->value, at->order); return 0;
	case FENCE: atomic_thread_fence(at->order); return 0;
	case MEMBARRIER: (void)weiri_fence_heavy(); return 0;
	case WAKE: weiri_futex_wake(cell, 1); return 0;
	/*
	 * The wait ends immediately, by a wake, or by its deadline. Which of these happened is not part
	 * of the outcome.
	 */
	case WAIT: (void)weiri_futex_wait(cell, at->expected, 1000); return 0;
	case PASS_IF_ODD: return 0;
	case READ: return state.plain[at->cell];
	case WRITE: state.plain[at->cell] = at->value; return 0;
	case ALLOCATE: return allocate(&state.block[me]);
	case RELEASE: return release(&state.block[me]);
	case CLOCK: return weir_now_ns() >= 1000;
	default: return change(at);
	}
}

/*
 * This variable is outside the state and is never restored, so checkpoints are ruled out, and each
 * execution must perform all of its steps (checkpoint.h).
 */
static int looks_outside;
static uint32_t last_of_first;

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
		if (at->guarded && last == 0)
			continue;
		last = perform(number, at);
		if (looks_outside && number == 0)
			last_of_first = (uint32_t)(8 * i) + last;
		if (!at->forgotten)
			outcome = outcome * 64 + last;
		else if (i + 1 == generated.length[number] || !at[1].guarded)
			last = 0;
		if (in_memory) {
			state.outcome[number] = outcome;
			outcome = 0;
			outcome = state.outcome[number];
		}
	}
	state.outcome[number] = outcome;
}

/* -- outcomes ---------------------------------------------------------------------------------- */

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
	/* The outcome does not tell which of two identical threads is which. */
	if (generated.first_are_alike && state.outcome[1] < first) {
		state.outcome[0] = state.outcome[1];
		state.outcome[1] = first;
	}
	for (size_t t = 0; t < MOST_THREADS; t++)
		(void)release(&state.block[t]);
	for (size_t t = 0; t < MOST_THREADS; t++)
		sum = (sum ^ state.outcome[t]) * UINT64_C(0xBF58476D1CE4E5B9) + (sum >> 29);
	for (size_t i = 0; i <= CELLS; i++)
		sum = (sum ^ atomic_load_explicit(&state.cells[i], memory_order_relaxed)) * UINT64_C(0x94D049BB133111EB) +
		      (sum >> 31);
	sum ^= last_of_first * UINT64_C(0xD6E8FEB86659FD93);
	if (note(current, sum | 1))
		return;
}

/* The number of outcomes of b that are not in a. */
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
	last_of_first = 0;
	current = outcomes;
	(void)weir_model_check(&program, &options, &result);
	free(result.replay);
	return result;
}

static uint64_t executions_with, executions_without, executions_merged, cut_off, racing;

static struct weir_model_result by_states;

/*
 * Compares the outcomes of a search that leaves out executions with those of the full search.
 * `one`, `all`: the results of these searches.
 */
static int same(const struct outcomes *met, const struct weir_model_result *one, const struct weir_model_result *all)
{
	if (one->failed || all->failed)
		return generated.has_plain && (one->failed == all->failed || !(all->failed || all->complete));
	return one->complete && missing(met, &without) == 0 && (!all->complete || missing(&without, met) == 0);
}

/* Explores the generated program in all ways. Returns 0 if all have the same outcomes. */
static int differs(struct weir_model_result *reduced, struct weir_model_result *all)
{
	const struct weir_model_options neither = {.no_reduction = 1,
	                                           .max_executions = scope_long() ? CUT_OFF_LONG : CUT_OFF};

	compare_first_threads();
	by_states =
		explore(&merged, (struct weir_model_options){.merge_states = 1, .alike = generated.first_are_alike ? 2 : 0});
	if (generated.forgets) {
		/*
		 * A program that uses the heap or the clock is not explored with the reduction, which
		 * ignores the order of such operations. Other programs show that the reduction loses
		 * nothing.
		 */
		*all = explore(&without, generated.has_heap ? neither : (struct weir_model_options){0});
		*reduced = *all;
		reduced->complete = 1;
		with = without;
	} else {
		*reduced = explore(&with, (struct weir_model_options){0});
		*all = explore(&without, neither);
	}
	return !same(&with, reduced, all) || !same(&merged, &by_states, all);
}

static void drop(size_t of, size_t at)
{
	memmove(&generated.code[of][at], &generated.code[of][at + 1], (LENGTH - 1 - at) * sizeof(generated.code[of][0]));
	generated.length[of]--;
}

/* Removes what the difference does not need. */
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
	executions_without += generated.forgets ? 0 : all.executions;
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

static int check_all(const char *what, uint64_t first, uint64_t count)
{
	int bad = 0;

	executions_with = executions_merged = executions_without = cut_off = racing = 0;
	for (uint64_t seed = first; seed < first + count; seed++)
		bad += check(seed);
	(void)printf(
		"%s random_programs_%s: %llu programs, %llu executions with the reduction, %llu with states merged, %llu "
		"without either, %llu programs cut off there; %llu programs race\n",
		bad != 0 ? "FAIL" : "PASS", what, (unsigned long long)count, (unsigned long long)executions_with,
		(unsigned long long)executions_merged, (unsigned long long)executions_without, (unsigned long long)cut_off,
		(unsigned long long)racing);
	return bad != 0;
}

/* The programs are divided into this many scopes, so that they can be run separately. */
static int check_in_pieces(const char *what, uint64_t first, uint64_t count)
{
	enum { PIECES = 10 };
	int bad = 0;
	char name[96];

	for (uint64_t piece = 0; piece < PIECES; piece++) {
		(void)snprintf(name, sizeof(name), "%s_%llu_of_%d", what, (unsigned long long)piece + 1, PIECES);
		bad |= scope_chosen(name) && check_all(name, first + piece * (count / PIECES), count / PIECES);
	}
	return bad;
}

/* -- checkpoints ------------------------------------------------------------------------------- */

static int equal(const struct weir_model_result *a, const struct weir_model_result *b)
{
	return a->executions == b->executions && a->pruned == b->pruned && a->states == b->states &&
	       a->complete == b->complete && a->failed == b->failed && a->stopped == b->stopped &&
	       strcmp(a->message, b->message) == 0;
}

/* Adds up the executions in *sum. */
static int differs_from_setup(const struct weir_model_options *options, uint64_t *sum)
{
	struct weir_model_result one, all;

	one = explore(&with, *options);
	checkpoints_left_out = 1;
	all = explore(&without, *options);
	checkpoints_left_out = 0;
	*sum += one.executions;
	return !equal(&one, &all) || missing(&with, &without) != 0 || missing(&without, &with) != 0;
}

static int check_checkpoints(uint64_t seed, uint64_t *sum)
{
	int bad = 0;

	generate(seed);
	compare_first_threads();
	const struct weir_model_options ways[] = {
		{.merge_states = 1, .alike = generated.first_are_alike ? 2 : 0, .max_executions = 5000},
		{.max_executions = 5000},
		{.preemptions = 2, .max_executions = 2000},
		{.no_reduction = 1, .max_executions = 2000},
		{.stop_thread = 1, .stop_after = 1, .max_executions = 2000},
	};

	looks_outside = seed % 3 == 0;
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		bad |= differs_from_setup(&ways[i], sum);
	looks_outside = 0;
	if (bad) {
		(void)printf("FAIL random_program_of_seed_%llu: another search with checkpoints\n", (unsigned long long)seed);
		print_program();
	}
	return bad;
}

static int check_all_checkpoints(void)
{
	static const uint64_t firsts[] = {1, FORGETFUL};
	const uint64_t each = scope_long() ? CHECKPOINT_PROGRAMS_LONG : CHECKPOINT_PROGRAMS;
	uint64_t sum = 0;
	int bad = 0;

	for (size_t i = 0; i < 2; i++) {
		for (uint64_t seed = firsts[i]; seed < firsts[i] + each; seed++)
			bad |= check_checkpoints(seed, &sum);
	}
	(void)printf("%s random_programs_from_checkpoints: %llu programs, %llu executions, the same as from setup\n",
	             bad ? "FAIL" : "PASS", 2 * (unsigned long long)each, (unsigned long long)sum);
	return bad;
}

int main(int argc, char **argv)
{
	int bad;

	if (argc > 1 && strcmp(argv[1], "checkpoints") == 0)
		return check_all_checkpoints();
	if (argc > 1)
		return check_all("of_seeds", strtoull(argv[1], NULL, 0), argc > 2 ? strtoull(argv[2], NULL, 0) : 1);
	bad = check_in_pieces("reduction_loses_nothing", 1, scope_long() ? PROGRAMS_LONG : PROGRAMS);
	bad |= check_in_pieces("that_forget_merging_loses_nothing", FORGETFUL,
	                       scope_long() ? FORGETFUL_PROGRAMS_LONG : FORGETFUL_PROGRAMS);
	return bad | (scope_chosen("random_programs_from_checkpoints") && check_all_checkpoints());
}
