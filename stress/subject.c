/*
 * subject.c - the scenarios that <weir/stress.h> makes for a user's structure.
 */
#include <weir/stress.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "burst.h"
#include "command.h"
#include "harness.h"

enum { KINDS = 2, STORM_THREADS = 8, STORM_VALUES = 20000, THREAD_SHIFT = 32, NAME = 64 };

static const struct weir_stress_subject *subjects;
static struct stress_scenario scenarios[WEIR_STRESS_MAX_SUBJECTS * KINDS];
static char names[WEIR_STRESS_MAX_SUBJECTS * KINDS][NAME];

/* The subject of the running scenario. */
static const struct weir_stress_subject *subject(void)
{
	return &subjects[(stress_scenario() - scenarios) / KINDS];
}

static void *create(void)
{
	void *structure = subject()->create();

	STRESS_CHECK(structure != NULL, "create() returned NULL");
	return structure;
}

/* -- the storm: rounds in which each thread puts values of its own, and all threads take ------- */

struct storm {
	void *structure;
	unsigned threads;
	uint64_t each;
	/* by the thread that put the value, and the value's number */
	_Atomic(unsigned char) *came_out[STORM_THREADS];
	WEIRI_ALIGNED_APART _Atomic(uint64_t) out;
};

struct storm_worker {
	struct storm *storm;
	unsigned number;
};

static uint64_t storm_value(unsigned thread, uint64_t number)
{
	return (uint64_t)thread << THREAD_SHIFT | number;
}

/*
 * Counts a value that was taken. after[]: the smallest number that each thread's next value must
 * have, as seen by this taker.
 */
static void count_out(struct storm *storm, uint64_t value, uint64_t after[])
{
	uint64_t thread = value >> THREAD_SHIFT, number = value & UINT32_MAX;

	STRESS_CHECK(thread < storm->threads && number < storm->each, "0x%" PRIx64 " came out but never went in", value);
	/* [relaxed] it only matters which one was first. */
	STRESS_CHECK(weiri_exchange_relaxed(&storm->came_out[thread][number], 1) == 0,
	             "value %" PRIu64 " of thread %" PRIu64 " came out twice", number, thread);
	STRESS_CHECK(subject()->order != WEIR_STRESS_FIFO || number >= after[thread],
	             "value %" PRIu64 " of thread %" PRIu64 " came out after value %" PRIu64, number, thread,
	             after[thread] - 1);
	after[thread] = number + 1;
	/* [relaxed] a count, which is read after all threads have been joined */
	(void)weiri_fetch_add_relaxed(&storm->out, 1u);
}

static void storm_thread(struct stress_thread *self, void *context)
{
	const struct storm_worker *worker = context;
	struct storm *storm = worker->storm;
	unsigned thread = worker->number, spins = 0;
	uint64_t after[STORM_THREADS] = {0}, next = 0, value;

	/*
	 * A thread that has put all of its values stops. The other threads take what is left.
	 */
	while (next < storm->each) {
		int done;

		if (stress_one_in(self, 2)) {
			stress_begin(self, "put");
			done = subject()->put(storm->structure, storm_value(thread, next));
			next += done != 0;
		} else {
			stress_begin(self, "take");
			done = subject()->take(storm->structure, &value);
			if (done)
				count_out(storm, value, after);
		}
		stress_end(self, done != 0);
		if (done)
			spins = 0;
		else
			stress_back_off(&spins);
	}
}

static void drain_storm(struct storm *storm)
{
	uint64_t after[STORM_THREADS] = {0}, value, left = 0;

	for (; subject()->take(storm->structure, &value); left++)
		count_out(storm, value, after);
	STRESS_CHECK(subject()->capacity == 0 || left <= subject()->capacity,
	             "%" PRIu64 " values were inside, but the capacity is %zu", left, subject()->capacity);
	STRESS_CHECK(weiri_load_relaxed(&storm->out) == storm->threads * storm->each,
	             "%" PRIu64 " values went in, but %" PRIu64 " came out", storm->threads * storm->each,
	             weiri_load_relaxed(&storm->out));
}

static void play_storm(struct storm *storm)
{
	struct storm_worker workers[STORM_THREADS];

	storm->structure = create();
	weiri_store_relaxed(&storm->out, UINT64_C(0)); /* [relaxed] no thread yet */
	for (unsigned i = 0; i < storm->threads; i++) {
		storm->came_out[i] = calloc((size_t)storm->each, 1);
		STRESS_CHECK(storm->came_out[i] != NULL, "the harness has no memory");
	}
	for (unsigned i = 0; i < storm->threads; i++) {
		workers[i] = (struct storm_worker){storm, i};
		(void)stress_start("worker", storm_thread, &workers[i]);
	}
	stress_join();
	drain_storm(storm);
	for (unsigned i = 0; i < storm->threads; i++)
		free(storm->came_out[i]);
	subject()->destroy(storm->structure);
}

static void run_storm(void)
{
	static struct storm storm;
	uint64_t rounds = 0;

	storm.threads = stress_threads(2) < STORM_THREADS ? stress_threads(2) : STORM_THREADS;
	storm.each = stress_scaled(STORM_VALUES);
	stress_disturb();
	for (; rounds == 0 || stress_goes_on(); rounds++)
		play_storm(&storm);
	stress_note("rounds", rounds);
}

/* -- histories --------------------------------------------------------------------------------- */

static void *recorded; /* the structure of this round */

static struct history_bounds bounds(void)
{
	return (struct history_bounds){.capacity = subject()->capacity};
}

static void set_up(struct stress_thread *self, void *context)
{
	(void)self, (void)context;
	recorded = create();
}

static void tear_down(struct stress_thread *self, void *context)
{
	uint64_t value;

	(void)self, (void)context;
	while (subject()->take(recorded, &value))
		;
	subject()->destroy(recorded);
}

static void act(struct stress_thread *self, struct history_log *log, uint64_t number, void *context)
{
	uint64_t value = storm_value(log->thread, number + 1), called;
	int done;

	(void)context;
	if (stress_one_in(self, 2)) {
		stress_begin(self, "put");
		called = history_call(log);
		done = subject()->put(recorded, value);
		/* Without a capacity, a refusal says nothing about the contents. */
		if (done || subject()->capacity != 0)
			history_note(log, done ? HISTORY_PUT : HISTORY_PUT_FULL, value, HISTORY_NONE, called,
			             history_return_drained(log));
	} else {
		stress_begin(self, "take");
		called = history_call(log);
		done = subject()->take(recorded, &value);
		history_note(log, done ? HISTORY_TAKE : HISTORY_TAKE_EMPTY, HISTORY_NONE, done ? value : HISTORY_NONE, called,
		             history_return_drained(log));
	}
}

/* A stack is judged as a multiset here. In short rounds the general checker checks its order. */
static enum history_verdict check(const struct history *history, void *context, struct history_finding *finding)
{
	struct history_bounds limits = bounds();

	(void)context;
	return subject()->order == WEIR_STRESS_FIFO ? history_check_fifo(history, &limits, finding)
	                                            : history_check_multiset(history, &limits, finding);
}

static void units(const struct history *history, const struct history_finding *finding, void *context, uint32_t unit[])
{
	struct history_bounds limits = bounds();

	(void)context;
	history_units_of_values(history, &limits, finding, unit);
}

static const void *model_context(void *context)
{
	static struct history_bounds limits;

	(void)context;
	limits = bounds();
	return &limits;
}

/*
 * A stack, one value after the other. The words above `depth` are zero, because equal contents must
 * be one state.
 */
struct stack {
	uint64_t depth, value[];
};

static size_t stack_size(const struct history *history, const void *context)
{
	(void)context;
	return sizeof(struct stack) + history->count * sizeof(uint64_t);
}

static void stack_start(const struct history *history, const void *context, void *state)
{
	memset(state, 0, stack_size(history, context));
}

static int stack_step(const struct history *history, const struct history_op *op, const void *context, void *state)
{
	const struct history_bounds *limits = context;
	struct stack *stack = state;
	int is_full = limits->capacity != 0 && stack->depth == limits->capacity;

	(void)history;
	switch (op->kind) {
	case HISTORY_PUT:
		if (is_full)
			return 0;
		stack->value[stack->depth++] = op->argument;
		return 1;
	case HISTORY_TAKE:
		if (stack->depth == 0 || stack->value[stack->depth - 1] != op->result)
			return 0;
		stack->value[--stack->depth] = 0;
		return 1;
	case HISTORY_PUT_FULL: return is_full;
	case HISTORY_TAKE_EMPTY: return stack->depth == 0;
	default: return 0;
	}
}

static const struct history_model stack_model = {stack_size, stack_start, stack_step};

static void run_history(void)
{
	struct burst burst = {set_up, act, tear_down, NULL, check, units, &history_model_multiset, model_context, NULL};

	if (subject()->order != WEIR_STRESS_ANY)
		burst.model = subject()->order == WEIR_STRESS_FIFO ? &history_model_fifo : &stack_model;
	burst_run(&burst);
}

/* -- the program ------------------------------------------------------------------------------- */

static void add_scenario(size_t place, const char *name, const char *suffix, const char *checks, void (*run)(void))
{
	int length = snprintf(names[place], NAME, "%s_%s", name, suffix);

	STRESS_CHECK(length > 0 && length < NAME, "the name of a subject is too long: %s", name);
	scenarios[place] = (struct stress_scenario){names[place], checks, run};
}

static int is_sound(const struct weir_stress_subject *s)
{
	return s->name != NULL && s->name[0] != '\0' && s->order >= WEIR_STRESS_FIFO && s->order <= WEIR_STRESS_ANY &&
	       s->create != NULL && s->destroy != NULL && s->put != NULL && s->take != NULL;
}

int weir_stress_main(int argc, char *argv[], const struct weir_stress_subject table[], size_t count)
{
	if (table == NULL || count == 0 || count > WEIR_STRESS_MAX_SUBJECTS) {
		(void)fprintf(stderr, "weir_stress_main: there are %zu subjects, but 1 to %d are allowed\n", count,
		              (int)WEIR_STRESS_MAX_SUBJECTS);
		return STRESS_USAGE;
	}
	subjects = table;
	for (size_t i = 0; i < count; i++) {
		if (!is_sound(&table[i])) {
			(void)fprintf(stderr, "weir_stress_main: subject %zu lacks its name, its order or a function\n", i);
			return STRESS_USAGE;
		}
		add_scenario(i * KINDS, table[i].name, "storm", "nothing is lost, duplicated or invented", run_storm);
		add_scenario(i * KINDS + 1, table[i].name, "history", "recorded histories are linearizable", run_history);
	}
	return stress_command(argc, argv, scenarios, count * KINDS);
}
