/*
 * check_deque.c - the work-stealing deque: the owner or a thief gets each item once, and sees what
 * was written before the push. Some order of the calls explains which thread got which item, and
 * which thread found none. (A steal that lost a race is not judged.)
 */
#include <stdio.h>
#include <string.h>

#include "model/judged.h"
#include "model/scope.h"
#include "run/deque.h"

enum { ITEMS = 4, THIEVES = 2 };

static struct scene {
	struct weiri_deque deque;
	size_t capacity, thieves, tries;
	const char *script; /* the owner's row; LETTERS says what each letter does */
	int data[ITEMS];    /* what the items point to */
	int had[ITEMS][1 + THIEVES];
	size_t pushed;    /* by the owner */
	int empty_handed; /* takes of the owner that found nothing */
} scene;

/* -- the sequential deque ---------------------------------------------------------------------- */

enum { PUSHED = HISTORY_USER, TOOK, STOLE, NOTHING };

struct row {
	uint64_t count, item[ITEMS];
};

static size_t row_size(const struct history *history, const void *context)
{
	(void)history, (void)context;
	return sizeof(struct row);
}

static void row_start(const struct history *history, const void *context, void *state)
{
	(void)history, (void)context;
	*(struct row *)state = (struct row){0};
}

static int row_step(const struct history *history, const struct history_op *op, const void *context, void *state)
{
	struct row *row = state;

	(void)history, (void)context;
	if (op->kind == PUSHED) {
		row->item[row->count++] = op->argument;
		return 1;
	}
	if (op->kind == NOTHING || row->count == 0)
		return op->kind == NOTHING && row->count == 0;
	if (row->item[op->kind == TOOK ? row->count - 1 : 0] != op->result)
		return 0;
	row->count--;
	for (size_t i = 0; i < row->count && op->kind == STOLE; i++)
		row->item[i] = row->item[i + 1];
	row->item[row->count] = 0;
	return 1;
}

static const struct history_model row_model = {row_size, row_start, row_step};

/* `item` is NULL if there was none. */
static void answer(unsigned kind, const int *item)
{
	if (item != NULL)
		weir_model_answer(kind, 0, (uint64_t)(item - scene.data) + 1);
	else
		weir_model_answer(NOTHING, 0, 0);
}

/* -- an execution ------------------------------------------------------------------------------ */

static void setup(void *context)
{
	(void)context;
	weir_model_judge(&row_model, NULL);
	weir_model_assert(weiri_deque_init(&scene.deque, scene.capacity, NULL));
}

static void have(const int *item, size_t who)
{
	size_t i = (size_t)(item - scene.data);

	weir_model_assert(*item == (int)i + 1); /* This races unless the push happened before it. */
	scene.had[i][who]++;
}

static void push(void)
{
	size_t pushed = scene.pushed++;

	scene.data[pushed] = (int)pushed + 1;
	weir_model_call_begins(0);
	weir_model_assert(weiri_deque_push(&scene.deque, &scene.data[pushed]));
	weir_model_call_ends(0);
	weir_model_answer(PUSHED, pushed + 1, 0);
}

/* If `really` is 0, the take returns "empty" without reading. */
static void take(int really)
{
	int *item;

	weir_model_call_begins(1);
	item = really ? weiri_deque_take(&scene.deque) : NULL;
	weir_model_call_ends(1);
	answer(TOOK, item);
	if (item != NULL)
		have(item, 0);
	else
		scene.empty_handed++;
}

#define LETTERS(LETTER) \
	LETTER('p', "push", push()) \
	LETTER('t', "take", take(1)) \
	LETTER('z', "a planted fault: a take that returns \"empty\" without reading", take(0))

static void call(size_t me, char what)
{
	(void)me;
	switch (what) {
		LETTERS(LETTER_CASE)
	default: weir_model_assert(!"a letter of the table");
	}
}

static void steal(size_t who)
{
	for (size_t i = 0; i < scene.tries; i++) {
		void *item;
		enum weiri_steal outcome;

		weir_model_call_begins(2);
		outcome = weiri_deque_steal(&scene.deque, &item);
		weir_model_call_ends(2);
		if (outcome != WEIRI_STEAL_LOST)
			answer(STOLE, outcome == WEIRI_STEAL_TAKEN ? item : NULL);
		if (outcome == WEIRI_STEAL_TAKEN)
			have(item, who);
	}
}

static void thread(void *context, size_t number)
{
	(void)context;
	if (number == 0)
		scope_calls(0, scene.script, call);
	else
		steal(number);
}

static void finish(void *context)
{
	size_t pushed = 0;
	int *item;

	(void)context;
	do {
		weir_model_call_begins(1);
		item = weiri_deque_take(&scene.deque);
		weir_model_call_ends(1);
		answer(TOOK, item);
		if (item != NULL)
			have(item, 0);
	} while (item != NULL);
	for (const char *step = scene.script; *step != '\0'; step++)
		pushed += *step == 'p';
	for (size_t i = 0; i < ITEMS; i++) {
		int times = 0;

		for (size_t who = 0; who <= THIEVES; who++)
			times += scene.had[i][who];
		weir_model_assert(times == (i < pushed));
	}
	weiri_deque_fini(&scene.deque);
}

static struct weir_model_program prepare(const char *name, const char *script, size_t capacity, size_t thieves,
                                         size_t tries)
{
	scene = (struct scene){.script = script, .capacity = capacity, .thieves = thieves, .tries = tries};
	return (struct weir_model_program){name, 1 + thieves, &scene, sizeof(scene), setup, thread, finish};
}

static int check(const char *name, const char *script, size_t capacity, size_t thieves, size_t tries)
{
	struct weir_model_program program = prepare(name, script, capacity, thieves, tries);

	return scope_as_far_as(&program, scope_long() ? 0 : 300000);
}

static int check_planted(void)
{
	struct weir_model_program program = prepare("deque_a_wrong_nothing", "ppz", 2, 1, 1);

	return scope_finds(&program, judged_wrong);
}

static int check_progress(void)
{
	static const char *const calls[WEIR_MODEL_CALLS + 1] = {"push", "take", "steal", NULL};
	static const uint32_t bounds[WEIR_MODEL_CALLS] = {5, 7, 5};
	struct weir_model_program program = prepare("deque_pptt_2_thieves_x1", "pptt", 2, 2, 1);

	return scope_stops(&program, 0, calls, bounds);
}

int main(int argc, char **argv)
{
	static const struct scope_letter letters[] = {LETTERS(LETTER_ROW){0, NULL}};
	int bad = 0;

	scope_letters(argc, argv, letters);
	scope_arguments(argc, argv);
	bad |= check("deque_push_take_1_thief_x1", "pt", 2, 1, 1);
	bad |= check("deque_push_take_2_thieves_x1", "pt", 2, 2, 1);
	bad |= check("deque_push_push_take_take_1_thief_x2", "pptt", 2, 1, 2);
	bad |= check("deque_push_push_take_take_2_thieves_x1", "pptt", 2, 2, 1);
	bad |= check("deque_push_push_take_take_2_thieves_x2", "pptt", 2, 2, 2);
	bad |= check("deque_take_push_push_1_thief_x2", "ptppt", 2, 1, 2);
	bad |= check("deque_slots_reused_n1_1_thief_x2", "ptptp", 1, 1, 2);
	bad |= check("deque_grows_n1_1_thief_x2", "pppt", 1, 1, 2);
	bad |= check("deque_grows_n1_2_thieves_x1", "pppt", 1, 2, 1);
	/* The owner's take of the last item and a theft each write one end and read the other. */
	bad |= check("deque_store_buffering_push_take_push_take_1_thief_x2", "ptpt", 2, 1, 2);
	bad |= check("deque_iriw_push_push_2_thieves_x2", "pp", 2, 2, 2);
	bad |= check_planted();
	bad |= check_progress();
	return bad;
}
