/*
 * answers.c - records what the calls of an execution returned, and finds out whether some order of
 * them explains it.
 *
 * In its setup the program describes its structure as a sequential model (history/history.h). Then
 * it notes what each call returned. At the end of each execution the general search looks for an
 * order of the calls in which one thread could have got the same results.
 *
 * Two kinds of order must be kept. The first is the order of the calls of one thread. The second is
 * happens-before (C11): call a precedes call b if the end of a happens before the begin of b. In
 * other words, if a wrote a plain word at its end and b read that word at its begin, the two
 * accesses would not race. The thread that calls b has then acquired from a release that the thread
 * of a performed after a. It may have acquired directly or through other threads. The release may
 * belong to a later call or to the program itself. A release inside a comes before the end of a, so
 * an acquire from it does not order the two calls. The order of seq_cst operations is not a part of
 * happens-before, and neither is the order of steps in the checker. A program that needs two calls
 * to be ordered must therefore make one of them happen before the other.
 *
 * A call that is ordered after another call is also ordered after everything before that call. So
 * one number for each thread tells which of its calls came before a given call: the first n. Such
 * an order need not be an order of intervals (general.c). The calls of setup come before all other
 * calls, and the calls of finish come after all other calls.
 *
 * Searches that leave out executions miss no wrong result. The results and the order of the calls
 * follow from the values that each thread read and from the stores that it read them from.
 * Executions that the reduction treats as one agree in both, so they have the same results and the
 * same happens-before. An execution with a stopped thread is not judged. Its results are judged in
 * an execution in which the thread continues, and no later call explains a result that no order
 * explains. With states merged, the results and their order are a part of the state. The ends of
 * calls that each view knows are a part of it, too. Two executions are merged only if what follows
 * will be judged in the same way (memory_state.c).
 *
 * Millions of executions have only a few different histories. Histories that were judged are
 * therefore kept and looked up. They are kept whole, because a hash alone might accept another
 * history.
 */
#include "model/answers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/checkpoint.h"
#include "model/memory.h"

enum { BUDGET = 1 << 20 }; /* pairs of a set and a state per search */

struct answer model_answers[ANSWERS];
uint32_t model_answer_count;

static const struct history_model *model; /* NULL: nothing is judged */
static const void *model_context;
static uint32_t of_setup;         /* number of answers of setup, which are the first */
static uint32_t numbers[THREADS]; /* answers of each thread */
static uint64_t content;          /* of all answers, as a number */
/* A call that has begun, and may have ended before its result is noted. */
static struct {
	uint8_t after[THREADS];
	int open;
	uint32_t end;
} calls[THREADS];

void weir_model_judge(const struct history_model *of, const void *context)
{
	model = of;
	model_context = context;
}

/* -- what is noted ----------------------------------------------------------------------------- */

static int is_known(const struct answer *answer)
{
	/* Thread 0 runs alone: before all other threads, or after them. */
	return answer->thread == 0 || model_thread == 0 || answer->thread == model_thread ||
	       answer->end <= memory_now[model_thread].clock[answer->thread];
}

void answers_call_begins(void)
{
	uint8_t *after = calls[model_thread].after;

	if (model == NULL)
		return;
	memset(after, 0, sizeof(calls[0].after));
	for (uint32_t i = 0; i < model_answer_count; i++) {
		if (is_known(&model_answers[i]))
			after[model_answers[i].thread] = (uint8_t)(model_answers[i].number + 1);
	}
	calls[model_thread].open = 1;
}

void answers_call_ends(void)
{
	calls[model_thread].open = 0;
	calls[model_thread].end = memory_now[model_thread].clock[model_thread];
}

static uint64_t number_of(const struct answer *answer)
{
	uint64_t number = state_mix(answer->thread, answer->number), after;

	memcpy(&after, answer->after, sizeof(after));
	number = state_mix(number, after);
	number = state_mix(number, (uint64_t)answer->kind << 8 | answer->parts);
	number = state_mix(state_mix(number, answer->argument), answer->result);
	for (unsigned i = 0; i < answer->parts; i++) {
		const struct history_part *part = &answer->part[i];

		number = state_mix(state_mix(number, part->object), part->before);
		number = state_mix(state_mix(number, part->after), part->value);
	}
	return number;
}
_Static_assert(THREADS == sizeof(uint64_t), "a byte for each");

void weir_model_answer_parts(unsigned kind, uint64_t argument, uint64_t result, const struct history_part *parts,
                             size_t count)
{
	struct answer *answer = &model_answers[model_answer_count];

	if (model == NULL)
		return;
	if (model_answer_count == ANSWERS || count > ANSWER_PARTS)
		model_fail("more than %d answers in one execution, or %d parts", ANSWERS, ANSWER_PARTS);
	*answer = (struct answer){.argument = argument,
	                          .result = result,
	                          .kind = (uint16_t)kind,
	                          .parts = (uint8_t)count,
	                          .thread = (uint8_t)model_thread,
	                          .number = numbers[model_thread]++,
	                          .end = calls[model_thread].end};
	for (size_t i = 0; i < count; i++)
		answer->part[i] = parts[i];
	memcpy(answer->after, calls[model_thread].after, sizeof(answer->after));
	answer->after[model_thread] = (uint8_t)answer->number; /* also the answers of the same call */
	content += number_of(answer);
	model_answer_count++;
}

void weir_model_answer(unsigned kind, uint64_t argument, uint64_t result)
{
	weir_model_answer_parts(kind, argument, result, NULL, 0);
}

/* -- executions -------------------------------------------------------------------------------- */

static void forget(uint32_t count)
{
	model_answer_count = count;
	content = 0;
	memset(numbers, 0, sizeof(numbers));
	memset(calls, 0, sizeof(calls));
	numbers[0] = count;
}

static void forget_judged(void);

void answers_begin(void)
{
	model = NULL;
	of_setup = 0;
	forget(0);
	forget_judged();
}

void answers_remember(void)
{
	of_setup = model_answer_count;
}

void answers_reset(void)
{
	forget(of_setup);
}

/* The list only grows, so its count suffices. */
void answers_parts(struct checkpoint *checkpoint)
{
	if (model == NULL)
		return;
	checkpoint_part(checkpoint, &model_answer_count, sizeof(model_answer_count));
	checkpoint_part(checkpoint, numbers, sizeof(numbers));
	checkpoint_part(checkpoint, &content, sizeof(content));
	checkpoint_part(checkpoint, calls, sizeof(calls));
}

uint64_t answers_state(void)
{
	uint64_t state = content;

	for (unsigned t = 1; t <= model_program->threads && model != NULL; t++) {
		uint64_t after;

		memcpy(&after, calls[t].after, sizeof(after));
		if (calls[t].open)
			state += state_mix(t, after);
	}
	return state;
}

/* -- what was judged --------------------------------------------------------------------------- */

enum { KEY = 5 + 4 * ANSWER_PARTS, FIRST_ROOM = 1 << 10 };

/*
 * The histories that hold. Each history is a count, followed by that many words; the first of these
 * words is a hash. slots[] is a hash table of the histories' indices + 1.
 */
static uint64_t *judged;
static size_t judged_used, judged_room, judged_count;
static size_t *slots, slot_count;
static uint64_t key[2 + ANSWERS * KEY];

static void forget_judged(void)
{
	free(judged);
	free(slots);
	judged = NULL;
	slots = NULL;
	judged_used = judged_room = judged_count = slot_count = 0;
}

static size_t add_to_key(size_t at, const struct answer *answer)
{
	key[at++] = (uint64_t)answer->thread << 32 | (uint64_t)answer->kind << 8 | answer->parts;
	memcpy(&key[at++], answer->after, sizeof(answer->after));
	key[at++] = answer->argument;
	key[at++] = answer->result;
	for (unsigned i = 0; i < answer->parts; i++) {
		const struct history_part *part = &answer->part[i];

		key[at++] = part->object;
		key[at++] = part->before;
		key[at++] = part->after;
		key[at++] = part->value;
	}
	return at;
}

/*
 * The key has one thread after the other, so that the order in which calls ended makes no
 * difference.
 */
static size_t make_key(void)
{
	size_t at = 2;

	for (unsigned t = 0; t <= model_program->threads; t++) {
		for (uint32_t i = of_setup; i < model_answer_count; i++)
			at = model_answers[i].thread == t ? add_to_key(at, &model_answers[i]) : at;
	}
	key[0] = at - 1;
	key[1] = content;
	return at;
}

static size_t *slot_of(const uint64_t words[])
{
	size_t at;

	for (at = words[1] >> 7 & (slot_count - 1); slots[at] != 0; at = (at + 1) & (slot_count - 1)) {
		const uint64_t *there = &judged[slots[at] - 1];

		if (there[0] == words[0] && memcmp(there, words, (words[0] + 1) * sizeof(words[0])) == 0)
			break;
	}
	return &slots[at];
}

static void make_room(size_t words)
{
	if (judged_used + words > judged_room) {
		judged_room = 2 * (judged_room + words);
		judged = realloc(judged, judged_room * sizeof(judged[0]));
	}
	if (2 * judged_count >= slot_count) {
		free(slots);
		slot_count = slot_count != 0 ? 2 * slot_count : FIRST_ROOM;
		slots = calloc(slot_count, sizeof(slots[0]));
		if (judged == NULL || slots == NULL)
			abort();
		for (size_t at = 0; at < judged_used; at += judged[at] + 1)
			*slot_of(&judged[at]) = at + 1;
	}
	if (judged == NULL || slots == NULL)
		abort();
}

/* Remembers the history in key[], which is new and holds. */
static void remember(size_t words, size_t *slot)
{
	memcpy(judged + judged_used, key, words * sizeof(key[0]));
	*slot = judged_used + 1;
	judged_used += words;
	judged_count++;
}

/* -- judging ----------------------------------------------------------------------------------- */

static struct history_op ops[ANSWERS];
static struct history_part all_parts[ANSWERS * ANSWER_PARTS];
static uint64_t before[ANSWERS];
_Static_assert(ANSWERS == 64, "a set of them is a word");

static struct history make_history(void)
{
	size_t parts = 0;

	for (uint32_t i = 0; i < model_answer_count; i++) {
		const struct answer *answer = &model_answers[i];

		ops[i] = (struct history_op){.called = i,
		                             .returned = i,
		                             .argument = answer->argument,
		                             .result = answer->result,
		                             .thread = answer->thread,
		                             .kind = answer->kind,
		                             .parts = answer->parts,
		                             .part = (uint32_t)parts};
		for (unsigned j = 0; j < answer->parts; j++)
			all_parts[parts++] = answer->part[j];
		before[i] = 0;
		for (uint32_t j = 0; j < model_answer_count; j++) {
			if (model_answers[j].number < answer->after[model_answers[j].thread])
				before[i] |= UINT64_C(1) << j;
		}
	}
	return (struct history){
		.op = ops, .count = model_answer_count, .part = all_parts, .part_count = parts, .before = before};
}

void answers_judge(void)
{
	struct history history;
	struct history_finding finding;
	size_t words, *slot;

	if (model == NULL)
		return;
	words = make_key();
	make_room(words);
	slot = slot_of(key);
	if (*slot != 0)
		return;
	history = make_history();
	switch (history_check_general(&history, model, model_context, BUDGET, NULL, &finding)) {
	case HISTORY_HOLDS: remember(words, slot); return;
	case HISTORY_VIOLATED: model_note_failure("no order of the calls explains their answers"); return;
	default: model_note_failure("answers are not judged: %.200s", finding.what);
	}
}

/* -- printing ---------------------------------------------------------------------------------- */

enum { WIDTH = 44 };

static void print_answer(const struct history *history, uint32_t at)
{
	char called[64], returned[64];
	const struct answer *answer = &model_answers[at];
	unsigned column = answer->thread != 0 ? answer->thread - 1u : 0u;

	history_describe(history, &ops[at], 0, called, sizeof(called));
	history_describe(history, &ops[at], 1, returned, sizeof(returned));
	if (answer->thread == 0)
		(void)printf("%4u at the %s: ", at + 1, at < of_setup ? "begin" : "end");
	else
		(void)printf("%4u %*s", at + 1, (int)(column * WIDTH), "");
	(void)printf("%s: %s", called, returned);
	for (uint32_t i = 0; i < at && answer->thread != 0; i++) {
		const struct answer *other = &model_answers[i];

		if (other->thread != 0 && other->thread != answer->thread && other->number + 1u == answer->after[other->thread])
			(void)printf(", after %u", i + 1);
	}
	(void)putchar('\n');
}

void answers_print(void)
{
	struct history history;

	if (model == NULL || model_answer_count == 0)
		return;
	history = make_history();
	(void)printf("calls ");
	for (unsigned t = 1; t <= model_program->threads; t++)
		(void)printf("%-*s", WIDTH, (char[]){'t', 'h', 'r', 'e', 'a', 'd', ' ', (char)('0' + t), '\0'});
	(void)putchar('\n');
	for (uint32_t i = 0; i < model_answer_count; i++)
		print_answer(&history, i);
}
