/*
 * execute.c - one execution of the program, and the loop over executions.
 *
 * A thread runs until its next visible operation, names it, and asks explore.c which thread runs
 * next. If that is the thread itself, it continues immediately; otherwise it switches to the other
 * thread's stack. Executions begin and end on the engine's own stack.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model/checkpoint.h"
#include "model/engine.h"
#include "model/threads.h"

const struct weir_model_program *model_program;
struct weir_model_options model_options;
struct thread model_threads[THREADS];
int model_running;
int model_active;
unsigned model_thread;
uint64_t model_steps;

static char failure[256];
static int failed, cut, again, stopped;
static int looking;    /* this execution only learns what the program does */
static int leaving;    /* a fiber leaves so that the engine takes a checkpoint */
static uint32_t begun; /* number of executions */
static int starting;   /* threads run up to their first visible operation, one after the other */
static struct {
	uint32_t begin[THREADS], longest;
} calls[WEIR_MODEL_CALLS];

/*
 * Once in this many executions, an execution begins at setup although there is a checkpoint, and
 * the contents of memory are compared there.
 */
enum { COMPARE_EVERY = 4096 };

enum { ENGINE = 0 }; /* in place of a thread: it makes the first choice */

/*
 * For each execution that was explored in vain, look_around() makes LOOK_TIMES random executions
 * with LOOK_DEPTH changes of priority; it makes at most LOOK_MOST in all.
 */
enum { LOOK_TIMES = 10, LOOK_MOST = 200000, LOOK_DEPTH = 16 };

static unsigned threads(void)
{
	return (unsigned)model_program->threads;
}

/* -- ends -------------------------------------------------------------------------------------- */

/* Abandons this stack. */
static __attribute__((noreturn)) void give_up(void)
{
	for (;;)
		fiber_leave(model_thread);
}

static void note_failure(const char *format, va_list arguments)
{
	if (failed)
		return;
	(void)vsnprintf(failure, sizeof(failure), format, arguments);
	trace_step("FAILED: %s", failure);
	failed = 1;
}

void model_note_failure(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	note_failure(format, arguments);
	va_end(arguments);
}

void model_fail(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	note_failure(format, arguments);
	va_end(arguments);
	give_up();
}

void weir_model_fail(const char *message)
{
	model_fail("%s", message);
}

void model_begin_again(void)
{
	again = 1;
	give_up();
}

/* -- switching --------------------------------------------------------------------------------- */

static int is_stopped(unsigned thread)
{
	return thread == model_options.stop_thread && model_threads[thread].done >= model_options.stop_after;
}

/*
 * Identical threads begin one after the other. An execution in which they begin in another order
 * equals one of these executions with the threads' numbers exchanged.
 */
static int is_before_its_turn(unsigned thread)
{
	const struct thread *other = &model_threads[thread - 1];

	return (model_options.alike >> (thread - 1) & 1) != 0 && other->done == 0 && other->status != ENDED;
}

static unsigned enabled_threads(void)
{
	unsigned enabled = 0;

	for (unsigned t = 1; t <= threads(); t++)
		enabled |= model_threads[t].status == READY && !is_before_its_turn(t) ? 1u << t : 0;
	if (model_options.stop_thread != 0 && is_stopped(model_options.stop_thread)) {
		stopped |= (enabled >> model_options.stop_thread & 1) != 0;
		enabled &= ~(1u << model_options.stop_thread);
	}
	return enabled;
}

/* All threads sleep, so time passes until a deadline. */
static unsigned pass_time(void)
{
	for (unsigned t = 1; t <= threads(); t++) {
		if (model_threads[t].status == BLOCKED && model_threads[t].timed) {
			model_threads[t].status = READY;
			return 1u << t;
		}
	}
	return 0;
}

static int is_to_be_kept(void)
{
	return explore_is_at_turn() && checkpoint_may_be_taken() && !checkpoint_is_at(explore_turn());
}

/*
 * Returns the thread that runs next, or 0 if the execution is over: it has ended, has failed, or is
 * cut off.
 */
static unsigned next_thread(void)
{
	unsigned enabled = enabled_threads(), thread;

	if (enabled == 0)
		enabled = pass_time();
	if (enabled == 0)
		return 0;
	if (model_steps >= model_options.max_steps) {
		model_note_failure("no end after %llu steps", (unsigned long long)model_steps);
		return 0;
	}
	thread = explore_thread(enabled);
	cut = thread == 0;
	model_steps++;
	return thread;
}

/* Switches to the thread that runs next. Returns when this thread is chosen. */
static void go_on(void)
{
	unsigned me = model_thread, thread;

	if (is_to_be_kept()) {
		leaving = 1;
		fiber_leave(me); /* each execution that begins at this checkpoint goes on from here */
	}
	thread = next_thread();
	if (thread == me)
		return;
	if (thread == 0) {
		fiber_leave(me);
		return;
	}
	system_switch(me, thread);
	model_thread = thread;
	fiber_switch_to(me, thread);
}

void weir_model_interrupt(void (*handler)(void))
{
	explore_shows();
	model_threads[model_thread].handler = handler;
}

/*
 * The choice is the thread's own, as that of what a load returns: it is made when the thread comes to an operation,
 * and other threads learn of it by the operations that follow. The interrupted call has entered the checker before
 * those of the handler, and is there again afterwards.
 */
void model_may_be_interrupted(void)
{
	struct thread *me = &model_threads[model_thread];
	void (*handler)(void) = me->handler;
	const char *stack = me->stack;
	uint64_t given = me->given;

	if (handler == NULL || !model_running || starting || explore_value(2) == 0)
		return;
	explore_shows();
	me->handler = NULL;
	trace_step("a signal handler begins");
	handler();
	trace_step("the signal handler ends");
	me->stack = stack;
	me->given = given;
	me->where = 0;
}

void model_schedule(const struct operation *operation)
{
	if (!model_running)
		return;
	model_threads[model_thread].next = *operation;
	state_check_entered();
	if (starting)
		fiber_leave(model_thread);
	else if (explore_goes_on())
		model_steps++;
	else
		go_on();
}

int model_block(void *address, int timed)
{
	struct thread *me = &model_threads[model_thread];

	me->status = BLOCKED;
	me->waits_for = address;
	me->timed = timed;
	me->woken = 0;
	/*
	 * Continuing after sleep is an operation of its own, which does not conflict with operations of
	 * other threads.
	 */
	me->next = (struct operation){.kind = OP_WAKE, .address = me};
	go_on();
	return me->woken;
}

unsigned model_wake(void *address, unsigned count)
{
	unsigned woken = 0;

	for (unsigned t = 1; t <= threads() && woken < count; t++) {
		if (model_threads[t].status == BLOCKED && model_threads[t].waits_for == address) {
			model_threads[t].status = READY;
			model_threads[t].woken = 1;
			woken++;
		}
	}
	return woken;
}

/* -- one execution ----------------------------------------------------------------------------- */

static void end_thread(void)
{
	model_threads[model_thread].status = ENDED;
	if (starting)
		fiber_leave(model_thread);
	else
		go_on();
}

/* See threads.h. */
void weiri_model_end_thread(void)
{
	end_thread();
	give_up();
}

uint32_t weiri_model_thread_number(void)
{
	return model_thread;
}

static void thread_main(void)
{
	state_leave();
	model_program->thread(model_program->state, model_thread - 1);
	system_thread_ends();
	end_thread();
}

static void setup_main(void)
{
	system_begin();
	heap_keep();
	if (model_program->setup != NULL)
		model_program->setup(model_program->state);
}

static void finish_main(void)
{
	if (model_program->finish != NULL)
		model_program->finish(model_program->state);
	system_thread_ends();
	heap_check_leaks();
}

static void enter(unsigned thread, void (*run)(void))
{
	system_switch(model_thread, thread);
	model_thread = thread;
	if (run != NULL)
		fiber_start(thread, run);
	fiber_enter(thread);
}

static void alone(void (*run)(void))
{
	model_active = 1;
	enter(0, run);
	model_active = 0;
}

static void describe_sleepers(void)
{
	char text[200] = "", name[32];
	size_t used = 0;

	for (unsigned t = 1; t <= threads(); t++) {
		if (model_threads[t].status == BLOCKED)
			used += (size_t)snprintf(text + used, sizeof(text) - used, " thread %u on %s", t,
			                         heap_name(model_threads[t].waits_for, name));
	}
	model_note_failure("all threads sleep:%s", text);
}

static void look_for_sleepers(void)
{
	for (unsigned t = 1; t <= threads(); t++) {
		if (model_threads[t].status == BLOCKED) {
			describe_sleepers();
			return;
		}
	}
}

static void start_threads(void)
{
	starting = 1;
	for (unsigned t = 1; t <= threads() && !failed && !again; t++) {
		memory_thread_starts(t);
		enter(t, thread_main);
	}
	starting = 0;
}

static void choose_first(void)
{
	unsigned first;

	if (failed || again)
		return;
	if (is_to_be_kept())
		checkpoint_take(explore_turn(), ENGINE);
	first = next_thread();
	if (first != 0)
		enter(first, NULL);
}

/* `chooser`: the thread at whose choice the execution continues, or ENGINE. */
static void run_threads(unsigned chooser)
{
	if (chooser == ENGINE)
		choose_first();
	else
		fiber_enter(chooser);
	while (leaving) {
		leaving = 0;
		checkpoint_take(explore_turn(), model_thread);
		fiber_enter(model_thread);
	}
	model_running = model_active = 0;
	if (!failed && !again && !cut)
		look_for_sleepers();
}

static void begin_at_setup(int with_comparison)
{
	checkpoint_drop_all();
	memset(model_threads, 0, (threads() + 1) * sizeof(model_threads[0]));
	model_steps = 0;
	heap_restore(with_comparison);
	system_restore();
	memory_reset();
	answers_reset();
	start_threads();
}

static void run_once(void)
{
	int with_comparison = begun++ % COMPARE_EVERY == 0;
	unsigned chooser = ENGINE;

	failed = cut = again = 0;
	explore_execution();
	model_running = model_active = 1;
	if (with_comparison || !explore_goes_back() || !checkpoint_restore(explore_turn(), &chooser))
		begin_at_setup(with_comparison);
	run_threads(chooser);
	if (!failed && !cut && !again && !stopped && !looking) {
		memory_all_join();
		alone(finish_main);
		if (!failed)
			answers_judge();
	}
}

void execute_parts(struct checkpoint *checkpoint)
{
	checkpoint_part(checkpoint, model_threads, (threads() + 1) * sizeof(model_threads[0]));
	checkpoint_part(checkpoint, &model_thread, sizeof(model_thread));
	checkpoint_part(checkpoint, &model_steps, sizeof(model_steps));
	checkpoint_part(checkpoint, &stopped, sizeof(stopped));
	for (unsigned i = 0; i < WEIR_MODEL_CALLS; i++)
		checkpoint_part(checkpoint, calls[i].begin, sizeof(calls[i].begin));
}

/* -- calls ------------------------------------------------------------------------------------- */

void weir_model_call_begins(unsigned call)
{
	calls[call].begin[model_thread] = model_threads[model_thread].done;
	answers_call_begins();
	state_leave();
}

/*
 * `done` does not count the operation that a thread is about to perform. The difference is
 * therefore the number of operations that the call has performed.
 */
void weir_model_call_ends(unsigned call)
{
	uint32_t length = model_threads[model_thread].done - calls[call].begin[model_thread];

	calls[call].longest = length > calls[call].longest ? length : calls[call].longest;
	answers_call_ends();
}

/* -- all executions ---------------------------------------------------------------------------- */

/* The processor time of this process, because the machine may be busy with other processes. */
static uint64_t now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/*
 * Makes random executions, so that memory.c learns about the program before the search. The later
 * it learns something, the more is explored twice. These executions have no other effect: what they
 * miss is found by the search.
 */
static void look_around(uint64_t executions)
{
	model_options.random_seed = 1;
	model_options.random_depth = LOOK_DEPTH;
	looking = 1;
	explore_begin();
	for (uint64_t i = 0; i < executions && !again; i++)
		run_once();
	looking = failed = 0;
	model_options.random_seed = model_options.random_depth = 0;
}

static void search(struct weir_model_result *result)
{
	int begins_again = again;

	again = 0;
	if (begins_again && model_options.merge_states && model_options.random_seed == 0 && model_options.replay == NULL)
		look_around(result->executions < LOOK_MOST / LOOK_TIMES ? LOOK_TIMES * result->executions : LOOK_MOST);
	if (again)
		return;
	explore_begin();
	if (model_options.replay != NULL)
		explore_follow(model_options.replay);
	result->executions = result->pruned = 0;
	state_begin();
	do {
		stopped = 0;
		run_once();
		if (again)
			return;
		result->executions++;
		result->pruned += (uint64_t)cut;
		result->stopped |= stopped;
		if (failed || model_options.replay != NULL)
			return;
		again = model_options.random_seed == 0 && memory_has_learned();
		if (again)
			return;
		if (model_options.random_seed == 0)
			result->complete = !explore_next();
	} while (!result->complete &&
	         (model_options.max_executions == 0 || result->executions < model_options.max_executions));
}

static void sum_up(struct weir_model_result *result)
{
	result->failed = failed;
	for (unsigned i = 0; i < WEIR_MODEL_CALLS; i++)
		result->longest_call[i] = calls[i].longest;
	if (failed) {
		memcpy(result->message, failure, sizeof(result->message));
		result->replay = explore_path();
	}
}

int weir_model_check(const struct weir_model_program *program, const struct weir_model_options *given,
                     struct weir_model_result *result)
{
	uint64_t begin;

	model_program = program;
	model_options = given != NULL ? *given : (struct weir_model_options){0};
	/* A state does not tell how many preemptions led to it. */
	model_options.merge_states = model_options.merge_states && STATE_SUPPORTED && model_options.preemptions == 0;
	model_options.alike = model_options.merge_states && model_options.stop_thread == 0 ? model_options.alike & ~1u : 0;
	model_options.max_steps = model_options.max_steps != 0 ? model_options.max_steps : 10000;
	*result = (struct weir_model_result){0};
	memset(calls, 0, sizeof(calls));
	failed = again = 0;
	heap_begin();
	memory_begin();
	explore_learns_nothing();
	memory_reset();
	answers_begin();
	alone(setup_main);
	while (again) { /* Only the width of a location was learned. */
		again = 0;
		heap_end();
		heap_begin();
		memory_reset();
		answers_begin();
		alone(setup_main);
	}
	answers_remember();
	heap_remember();
	system_remember();
	trace_on = model_options.replay != NULL;
	if (trace_on)
		trace_begin();
	begun = 0;
	model_steps = 0;
	checkpoint_begin();
	begin = now_ns();
	do {
		if (!failed)
			search(result);
	} while (again);
	result->nanoseconds = now_ns() - begin;
	result->states = state_count();
	state_begin();
	sum_up(result);
	if (trace_on)
		answers_print();
	trace_on = 0;
	heap_end();
	checkpoint_end();
	return failed;
}

static void add_up(struct weir_model_result *sum, const struct weir_model_result *one)
{
	sum->executions += one->executions;
	sum->pruned += one->pruned;
	sum->states += one->states;
	sum->nanoseconds += one->nanoseconds;
	sum->complete &= one->complete;
	for (unsigned i = 0; i < WEIR_MODEL_CALLS; i++)
		sum->longest_call[i] =
			sum->longest_call[i] > one->longest_call[i] ? sum->longest_call[i] : one->longest_call[i];
	sum->stopped += one->stopped;
}

int weir_model_check_stops(const struct weir_model_program *program, const struct weir_model_options *given,
                           struct weir_model_result *result)
{
	struct weir_model_options options = given != NULL ? *given : (struct weir_model_options){0};
	struct weir_model_result sum = {.complete = 1};

	for (options.stop_thread = 1; options.stop_thread <= program->threads; options.stop_thread++) {
		for (options.stop_after = 0;; options.stop_after++) {
			struct weir_model_result one;

			if (weir_model_check(program, &options, &one)) {
				add_up(&sum, &one);
				sum.failed = 1;
				sum.replay = one.replay;
				(void)snprintf(sum.message, sizeof(sum.message), "thread %u stopped after %u steps: %.200s",
				               options.stop_thread, options.stop_after, one.message);
				*result = sum;
				return 1;
			}
			add_up(&sum, &one);
			if (!one.stopped)
				break;
		}
	}
	*result = sum;
	return 0;
}
