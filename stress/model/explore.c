/*
 * explore.c - running a program again and again, each time another way, until every way is covered.
 *
 * An execution is a path of nodes: at a schedule node a thread was chosen to do its next visible operation, at a value node one of
 * several values. The next execution takes the same path up to the last node that has something left to try.
 * Which threads are worth trying at a schedule node is found on the way (dynamic partial-order reduction): when an operation
 * conflicts with an earlier one of another thread and the two are not ordered by other conflicts, its thread is to be tried at the node of
 * the earlier one. A thread that was tried there sleeps until something conflicts with its operation.
 * Two operations conflict when they are of one location and one of them writes, or one is a fence that concerns everybody.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/engine.h"

enum { PATH = 1 << 16 };

struct node {
	uint8_t is_value;
	/* value node */
	uint32_t count, chosen;
	/* schedule node */
	uint8_t thread;              /* chosen */
	uint8_t enabled, todo, done; /* sets of threads */
	uint8_t asleep;              /* when the node was reached */
	uint8_t preemptions;         /* before it */
	uint32_t number;             /* of this operation among its thread's */
	struct operation operation;
};

enum status { READY, BLOCKED, ENDED };

static struct {
	enum status status;
	struct operation next;
	void *waits_for;
	uint32_t done;          /* operations */
	uint32_t seen[THREADS]; /* by dependence: how many of each thread's operations come before its next */
	uint32_t last_node;     /* of its last operation, + 1 */
} threads[THREADS];

/* By location: the last access and the last write of each thread, as node + 1, and what they had seen. */
enum { LOCATIONS = 512 };
static struct {
	uint32_t access[THREADS], write[THREADS];
} history[LOCATIONS];
static uint32_t history_used;
static uint32_t fence_node[THREADS];

static struct node path[PATH];
static uint32_t seen_at[PATH][THREADS];
static uint32_t path_length, path_at;
static uint64_t steps;
static unsigned last_thread, preemptions;
static uint8_t asleep;

static const struct weir_model_program *program;
static struct weir_model_options options;
static char failure[256];
static int failed, cut;
static uint64_t random_state;
static uint32_t priority[THREADS];
static uint64_t change_at[8];

int model_running;
int model_active;
unsigned model_thread;

uint64_t model_step(void)
{
	return steps;
}

void model_fail(const char *format, ...)
{
	va_list arguments;

	if (!failed) {
		va_start(arguments, format);
		(void)vsnprintf(failure, sizeof(failure), format, arguments);
		va_end(arguments);
		trace_step("FAILED: %s", failure);
	}
	failed = 1;
	/* This stack is given up. */
	for (;;)
		fiber_suspend();
}

void weir_model_fail(const char *message)
{
	model_fail("%s", message);
}

/* -- what conflicts ----------------------------------------------------------------------------------------------------------- */

static int is_global(const struct operation *operation)
{
	return operation->kind == OP_HEAVY || operation->kind == OP_FENCE;
}

static int writes(const struct operation *operation)
{
	return operation->kind != OP_LOAD;
}

static int conflict(const struct operation *a, const struct operation *b)
{
	if (is_global(a) || is_global(b))
		return 1;
	return a->address == b->address && (writes(a) || writes(b));
}

/* The last node of thread `other` whose operation conflicts with `operation`; 0: none; else node + 1. */
static uint32_t last_conflict(unsigned other, const struct operation *operation)
{
	uint32_t node = fence_node[other], mine;

	if (is_global(operation))
		return threads[other].last_node;
	mine = writes(operation) ? history[operation->location].access[other] : history[operation->location].write[other];
	return node > mine ? node : mine;
}

static uint8_t bit(unsigned thread)
{
	return (uint8_t)(1u << thread);
}

/* `thread`'s next operation against all that was done: where else should it have been tried? */
static void add_todo(unsigned thread)
{
	for (unsigned other = 1; other <= program->threads; other++) {
		uint32_t at = other != thread ? last_conflict(other, &threads[thread].next) : 0;
		struct node *node;

		if (at == 0)
			continue;
		node = &path[at - 1];
		if (threads[thread].seen[other] >= node->number)
			continue; /* ordered */
		node->todo |= (node->enabled & bit(thread)) != 0 ? bit(thread) : node->enabled;
	}
}

/* `thread` does its next operation at node `at`: what comes before what. */
static void record(unsigned thread, uint32_t at)
{
	const struct operation *operation = &threads[thread].next;
	uint32_t *seen = threads[thread].seen;

	for (unsigned other = 1; other <= program->threads; other++) {
		uint32_t before = other != thread ? last_conflict(other, operation) : 0;

		for (unsigned t = 1; before != 0 && t <= program->threads; t++)
			seen[t] = seen[t] > seen_at[before - 1][t] ? seen[t] : seen_at[before - 1][t];
	}
	seen[thread] = ++threads[thread].done;
	memcpy(seen_at[at], seen, sizeof(seen_at[at]));
	threads[thread].last_node = at + 1;
	if (is_global(operation)) {
		fence_node[thread] = at + 1;
		return;
	}
	history_used = operation->location >= history_used ? operation->location + 1 : history_used;
	history[operation->location].access[thread] = at + 1;
	if (writes(operation))
		history[operation->location].write[thread] = at + 1;
}

/* -- choosing ----------------------------------------------------------------------------------------------------------------- */

static uint64_t next_random(void)
{
	uint64_t z = random_state += UINT64_C(0x9E3779B97F4A7C15);

	z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
	return z ^ z >> 31;
}

static uint8_t enabled_threads(void)
{
	uint8_t enabled = 0;

	for (unsigned t = 1; t <= program->threads; t++)
		enabled |= threads[t].status == READY ? bit(t) : 0;
	return enabled;
}

static struct node *new_node(void)
{
	if (path_at == PATH)
		model_fail("an execution has more than %d choices", PATH);
	path[path_at] = (struct node){0};
	path_length = path_at + 1;
	return &path[path_at];
}

static unsigned by_priority(uint8_t enabled)
{
	unsigned best = 0;

	for (unsigned i = 0; i < 8; i++) {
		if (change_at[i] == steps)
			priority[last_thread] = i;
	}
	for (unsigned t = 1; t <= program->threads; t++) {
		if ((enabled & bit(t)) != 0 && (best == 0 || priority[t] > priority[best]))
			best = t;
	}
	return best;
}

/* Who runs next, by the path or newly; 0: nobody is left, or all that could is asleep. */
static unsigned choose_thread(void)
{
	uint8_t enabled = enabled_threads(), candidates;
	struct node *node;

	if (enabled == 0)
		return 0;
	for (unsigned t = 1; t <= program->threads; t++) {
		if ((enabled & bit(t)) != 0 && options.random_seed == 0)
			add_todo(t);
	}
	if (path_at < path_length) {
		node = &path[path_at];
		asleep = (uint8_t)(node->asleep | (node->done & ~bit(node->thread)));
	} else {
		node = new_node();
		node->enabled = enabled;
		node->asleep = asleep;
		node->preemptions = (uint8_t)preemptions;
		candidates = enabled & (uint8_t)~asleep;
		if (candidates == 0)
			return 0;
		if (options.random_seed != 0)
			node->thread = (uint8_t)by_priority(enabled);
		else
			node->thread =
				(uint8_t)((candidates & bit(last_thread)) != 0 ? last_thread : (unsigned)__builtin_ctz(candidates));
		node->todo = node->done = bit(node->thread);
	}
	if (node->thread != last_thread && (enabled & bit(last_thread)) != 0)
		preemptions++;
	return node->thread;
}

static void run_operation(unsigned thread)
{
	struct node *node = &path[path_at];

	node->operation = threads[thread].next;
	node->number = threads[thread].done + 1;
	record(thread, path_at);
	path_at++;
	/* Whoever sleeps and conflicts with this wakes. */
	for (unsigned t = 1; t <= program->threads; t++) {
		if ((asleep & bit(t)) != 0 && conflict(&threads[t].next, &node->operation))
			asleep &= (uint8_t)~bit(t);
	}
	last_thread = thread;
	steps++;
}

void model_schedule(const struct operation *operation)
{
	if (!model_running)
		return;
	threads[model_thread].next = *operation;
	fiber_suspend(); /* until the engine has chosen this thread */
}

uint32_t model_choose(uint32_t count)
{
	struct node *node;

	if (count <= 1)
		return 0;
	if (path_at < path_length) {
		node = &path[path_at];
	} else {
		node = new_node();
		node->is_value = 1;
		node->count = count;
		/* At random: mostly the newest. */
		node->chosen = options.random_seed != 0 && next_random() % 4 == 0 ? (uint32_t)(next_random() % count) : 0;
	}
	path_at++;
	return node->chosen;
}

void model_block(void *address)
{
	threads[model_thread].status = BLOCKED;
	threads[model_thread].waits_for = address;
	fiber_suspend();
}

unsigned model_wake(void *address, unsigned count)
{
	unsigned woken = 0;

	for (unsigned t = 1; t <= program->threads && woken < count; t++) {
		if (threads[t].status == BLOCKED && threads[t].waits_for == address) {
			threads[t].status = READY;
			woken++;
		}
	}
	return woken;
}

/* -- one execution ------------------------------------------------------------------------------------------------------------ */

static void thread_main(void)
{
	program->thread(program->state, model_thread - 1);
	system_thread_ends();
	threads[model_thread].status = ENDED;
	fiber_suspend();
}

static void setup_main(void)
{
	if (program->setup != NULL)
		program->setup(program->state);
	threads[0].status = ENDED;
	fiber_suspend();
}

static void finish_main(void)
{
	if (program->finish != NULL)
		program->finish(program->state);
	system_thread_ends();
	heap_check_leaks();
	threads[0].status = ENDED;
	fiber_suspend();
}

static void resume(unsigned thread)
{
	system_switch(model_thread, thread);
	model_thread = thread;
	fiber_resume(thread);
}

static void alone(void (*run)(void))
{
	system_switch(model_thread, 0);
	model_thread = 0;
	threads[0].status = READY;
	fiber_start(0, run);
	fiber_resume(0);
}

static void describe_sleepers(void)
{
	char text[160] = "";
	size_t used = 0;

	for (unsigned t = 1; t <= program->threads; t++) {
		if (threads[t].status == BLOCKED)
			used += (size_t)snprintf(text + used, sizeof(text) - used, " thread %u on %p", t, threads[t].waits_for);
	}
	failed = 1;
	(void)snprintf(failure, sizeof(failure), "all threads sleep:%s", text);
	trace_step("FAILED: %s", failure);
}

static void run_threads(void)
{
	unsigned thread;

	model_running = 1;
	for (unsigned t = 1; t <= program->threads && !failed; t++) {
		memory_thread_starts(t);
		fiber_start(t, thread_main);
		threads[t].status = READY;
		resume(t); /* up to its first visible operation */
	}
	while (!failed && !cut) {
		thread = choose_thread();
		if (thread == 0)
			break;
		if (steps > options.max_steps) {
			failed = 1;
			(void)snprintf(failure, sizeof(failure), "no end after %llu steps", (unsigned long long)steps);
			break;
		}
		run_operation(thread);
		resume(thread);
	}
	model_running = 0;
	if (failed)
		return;
	for (unsigned t = 1; t <= program->threads; t++) {
		if (threads[t].status == READY)
			cut = 1; /* asleep: explored elsewhere */
	}
	if (!cut && enabled_threads() == 0) {
		for (unsigned t = 1; t <= program->threads; t++) {
			if (threads[t].status == BLOCKED) {
				describe_sleepers();
				return;
			}
		}
	}
}

static void *first_state;

static void prepare(void)
{
	memset(history, 0, history_used * sizeof(history[0]));
	history_used = 0;
	memset(fence_node, 0, sizeof(fence_node));
	memset(threads, 0, sizeof(threads));
	path_at = 0;
	steps = 0;
	last_thread = 0;
	preemptions = 0;
	asleep = 0;
	failed = cut = 0;
	heap_restore_globals();
	if (program->state_size != 0)
		memcpy(program->state, first_state, program->state_size);
	heap_reset();
	memory_reset();
	system_reset();
}

static void run_once(void)
{
	prepare();
	model_active = 1;
	alone(setup_main);
	if (!failed)
		run_threads();
	if (!failed && !cut) {
		memory_all_join();
		alone(finish_main);
	}
	model_active = 0;
}

/* -- all executions ----------------------------------------------------------------------------------------------------------- */

/* Takes the path back to the last node with something left; 0: none. */
static int next_path(void)
{
	path_length = path_at;
	while (path_length > 0) {
		struct node *node = &path[path_length - 1];
		uint8_t left;

		if (node->is_value) {
			if (++node->chosen < node->count)
				return 1;
		} else {
			left = node->todo & (uint8_t) ~(node->done | node->asleep);
			if (options.preemptions != 0 && node->preemptions >= options.preemptions)
				left = 0;
			if (left != 0) {
				node->thread = (uint8_t)__builtin_ctz(left);
				node->done |= bit(node->thread);
				return 1;
			}
		}
		path_length--;
	}
	return 0;
}

static char *path_text(void)
{
	char *text = malloc((size_t)path_at * 4 + 1), *at = text;

	if (text == NULL)
		return NULL;
	for (uint32_t i = 0; i < path_at; i++)
		at += sprintf(at, path[i].is_value ? "v%u" : "%u", path[i].is_value ? path[i].chosen % 100 : path[i].thread);
	*at = '\0';
	return text;
}

static void path_from_text(const char *text)
{
	for (path_length = 0; *text != '\0' && path_length < PATH; path_length++) {
		struct node *node = &path[path_length];

		*node = (struct node){.is_value = *text == 'v'};
		if (node->is_value)
			node->chosen = (uint32_t)strtoul(text + 1, (char **)(uintptr_t)&text, 10);
		else
			node->thread = (uint8_t)(*text++ - '0');
	}
}

static void prepare_random(void)
{
	path_length = 0;
	for (unsigned t = 0; t < THREADS; t++)
		priority[t] = 8 + (uint32_t)(next_random() % 1000);
	for (unsigned i = 0; i < 8; i++)
		change_at[i] = i < 3 ? next_random() % 200 : UINT64_MAX;
}

int weir_model_check(const struct weir_model_program *checked, const struct weir_model_options *given,
                     struct weir_model_result *result)
{
	program = checked;
	options = given != NULL ? *given : (struct weir_model_options){0};
	options.max_steps = options.max_steps != 0 ? options.max_steps : 10000;
	random_state = options.random_seed;
	*result = (struct weir_model_result){0};
	heap_remember_globals();
	first_state = malloc(program->state_size + 1);
	if (first_state == NULL)
		return 1;
	memcpy(first_state, program->state, program->state_size);
	path_length = 0;
	trace_on = options.replay != NULL;
	if (options.replay != NULL)
		path_from_text(options.replay);
	do {
		if (options.random_seed != 0)
			prepare_random();
		run_once();
		result->executions++;
		result->pruned += (uint64_t)cut;
		if (failed || options.replay != NULL)
			break;
		result->complete = options.random_seed == 0 && !next_path();
	} while (!result->complete && (options.max_executions == 0 || result->executions < options.max_executions));
	result->complete = result->complete && options.preemptions == 0;
	result->failed = failed;
	if (failed) {
		memcpy(result->message, failure, sizeof(result->message));
		result->replay = path_text();
	}
	heap_restore_globals();
	free(first_state);
	return failed;
}
