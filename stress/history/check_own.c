/*
 * check_own.c - a worked example: a user's own stack is recorded, and judged by the user's own
 * model.
 *
 * Three threads push and pop. The model describes a stack in a few lines. The general checker looks
 * for an order of the recorded operations that such a stack could have performed. To see a failure,
 * let pop() read its value after the unlock, behind a sched_yield().
 */
#include "history/history.h"

#include <pthread.h>
#include <string.h>

enum { THREADS = 3, EACH = 8, ROUNDS = 50, BUDGET = 1000000 };

/* -- the structure under test ------------------------------------------------------------------ */

static struct {
	pthread_mutex_t lock;
	uint64_t value[THREADS * EACH];
	size_t count;
} stack = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void push(uint64_t value)
{
	(void)pthread_mutex_lock(&stack.lock);
	stack.value[stack.count++] = value;
	(void)pthread_mutex_unlock(&stack.lock);
}

/* Returns 0 when the stack was empty. */
static int pop(uint64_t *value)
{
	int any;

	(void)pthread_mutex_lock(&stack.lock);
	any = stack.count != 0;
	if (any)
		*value = stack.value[--stack.count];
	(void)pthread_mutex_unlock(&stack.lock);
	return any;
}

/* -- the model of a stack ---------------------------------------------------------------------- */

/*
 * The model's state: state[0] is the number of values, state[1] the oldest value. Unused words are
 * 0, so that equal stacks are equal bytes.
 */
static size_t state_size(const struct history *history, const void *context)
{
	(void)context;
	return (history->count + 1) * sizeof(uint64_t);
}

static void start(const struct history *history, const void *context, void *state)
{
	memset(state, 0, state_size(history, context));
}

static int step(const struct history *history, const struct history_op *op, const void *context, void *state)
{
	uint64_t *values = state;

	(void)history;
	(void)context;
	if (op->kind == HISTORY_PUT) {
		values[++values[0]] = op->argument;
		return 1;
	}
	if (op->kind == HISTORY_TAKE_EMPTY)
		return values[0] == 0;
	if (values[0] == 0 || values[values[0]] != op->result)
		return 0;
	values[values[0]--] = 0;
	return 1;
}

static const struct history_model stack_model = {state_size, start, step};

/* -- recording --------------------------------------------------------------------------------- */

static void push_and_note(struct history_log *log, uint64_t value)
{
	uint64_t called = history_call(log);

	push(value);
	history_note(log, HISTORY_PUT, value, HISTORY_NONE, called, history_return(log));
}

static void pop_and_note(struct history_log *log)
{
	uint64_t value = HISTORY_NONE, called = history_call(log);
	int any = pop(&value);
	uint64_t returned = history_return(log);

	history_note(log, any ? HISTORY_TAKE : HISTORY_TAKE_EMPTY, HISTORY_NONE, value, called, returned);
}

static void *work(void *argument)
{
	struct history_log *log = argument;

	for (uint64_t i = 0; i < EACH; i++) {
		if ((i + log->thread) % 2 == 0)
			push_and_note(log, UINT64_C(100) * (log->thread + 1) + i);
		else
			pop_and_note(log);
	}
	return NULL;
}

static int play(struct history_recorder *recorder)
{
	pthread_t thread[THREADS];

	stack.count = 0;
	history_recorder_reset(recorder);
	for (unsigned i = 0; i < THREADS; i++) {
		if (pthread_create(&thread[i], NULL, work, history_recorder_log(recorder, i)) != 0)
			return 0;
	}
	for (unsigned i = 0; i < THREADS; i++)
		(void)pthread_join(thread[i], NULL);
	return 1;
}

/* -- judging ----------------------------------------------------------------------------------- */

static int judge(const struct history_recorder *recorder)
{
	struct history_finding finding;
	struct history history;
	int holds = 0;

	history_init(&history);
	if (history_recorder_collect(recorder, &history)) {
		holds = history_check_general(&history, &stack_model, NULL, BUDGET, NULL, &finding) == HISTORY_HOLDS;
		if (!holds) {
			printf("%s: %s\n", finding.pattern, finding.what);
			history_print(stdout, &history, &finding, NULL);
		}
	}
	history_fini(&history);
	return holds;
}

int main(void)
{
	struct history_recorder *recorder = history_recorder_create(THREADS, EACH, 0, HISTORY_CLOCK_BEST);
	int fine = recorder != NULL;

	for (unsigned round = 0; fine && round < ROUNDS; round++)
		fine = play(recorder) && judge(recorder);
	history_recorder_destroy(recorder);
	printf("%s\n", fine ? "all histories are linearizable" : "failed");
	return !fine;
}
