/*
 * check_priority.c - the strict priority queue: order, towers, reused nodes, and the end.
 *
 * A scope gives each thread a row of calls, a character each; LETTERS says what each character
 * does. `inside` is such a row, which runs before the threads begin. Each value is the address of
 * plain data that is written immediately before, so a missing order shows as a race.
 *
 * Required of every execution:
 * - Some order of the calls explains all results (judged.h), except "full" during another put,
 *   because a put occupies a node before its value is stored.
 * - What was accepted is dequeued once.
 * - If a thread knows that a value is stored, its dequeues return no value that must leave later,
 *   and do not return "empty". A thread knows this if the value was there from the start, if the
 *   thread enqueued the value, or if it dequeued a later value of the same producer.
 * - No call returns "full" as long as all values ever enqueued fit.
 * - A call that returns "closed" or "drained" sees what the closer wrote, and its result is true.
 */
#include <stdio.h>
#include <string.h>
#include <weir/priority_queue.h>

#include "model/judged.h"
#include "model/scope.h"
#include "ring/priority_queue.h"

/* The last row belongs to setup and finish. */
enum { THREADS = 4, CALLS = 20, ROWS = THREADS + 1, MOST = ROWS * CALLS };

struct value {
	int row, place; /* place counts from 1 */
	int64_t key;
};

static const struct scope {
	const char *name;
	size_t capacity;
	const char *inside;
	const char *calls[THREADS];
} scopes[] = {
	{"n1_1_put_1_take", 1, "", {"1", "d"}},
	{"n1_2_puts_2_takes", 1, "", {"11", "dd"}},
	{"n1_put_take_beside_put_take", 1, "", {"1d", "2d"}},
	{"n2_smaller_put_beside_2_takes", 2, "2", {"1", "dd"}},
	{"n2_equal_puts_beside_2_takes", 2, "", {"11", "dd"}},
	{"n2_2_takes_of_2_threads_beside_put", 2, "1", {"d", "d", "2"}},
	{"n2_take_put_beside_take_put", 2, "12", {"d3", "d1"}},
	{"n2_take_beside_head_that_moves", 2, "", {"12d3", "d"}},
	{"n3_2_puts_in_one_place", 3, "2", {"1", "1"}},
	{"n3_2_puts_in_one_place_beside_take", 3, "2", {"1", "1", "d"}},
	{"n3_put_behind_what_is_taken", 3, "13", {"2", "dd"}},
	{"n3_puts_and_takes_at_both_ends", 3, "12", {"3d", "d0"}},
	{"n3_4_laps", 3, "123", {"dd", "d1"}},
	{"n3_put_beside_2_takes_2_puts", 3, "12", {"3", "dd00"}},
	{"n3_put_beside_2_takes_2_puts_beside_put", 3, "12", {"3", "dd00", "0"}},
	{"n3_put_beside_2_takes_2_larger_puts", 3, "12", {"3", "dd99"}},
	{"n3_put_beside_refills", 3, "517", {"6", "d9dd99"}},
	{"n3_put_beside_take_2_smaller_puts", 3, "3", {"8", "d00"}},
	{"n4_put_in_front_of_refills", 4, "35", {"3", "dd959"}},
	{"n5_put_beside_refills_and_cleaning", 5, "63", {"6", "d990d9"}},
	{"n4_2_threads_refill", 4, "1234", {"d5", "d0"}},
	{"n4_3_threads", 4, "13", {"2", "0", "dd"}},
	{"n1_1_put_1_take_close", 1, "", {"1", "d", "c"}},
	{"n2_put_close_put_beside_2_takes", 2, "", {"1c1", "dd"}},
	{"n2_take_below_2_beside_refills", 2, "11", {"l", "d0d5"}},
	{"n2_peek_beside_refills", 2, "11", {"v", "d0d5"}},
	{"n1_close_beside_closed_then_put", 1, "", {"c", "q1"}},
	{"n1_put_beside_close_and_look_and_take", 1, "", {"1", "c", "o", "d"}},
	{"n1_2_puts_beside_take", 1, "1", {"d", "1", "1"}},
	{"n1_2_takers_refill_beside_put", 1, "1", {"d1", "d", "1"}},
	{"n2_put_beside_close_then_take", 2, "1", {"0", "cd"}},
	{"n2_full_beside_empty_1_producer_x3_1_consumer_x2", 2, "", {"111", "dd"}},
	{"n2_full_beside_empty_producers_x2_and_x1_1_consumer_x2", 2, "", {"11", "1", "dd"}},
	{"n2_store_buffering_each_puts_and_takes", 2, "", {"1d", "2d"}},
	{"n2_iriw_2_puts_seen_by_2_who_peek_and_take", 2, "", {"1", "2", "vd", "vd"}},
};

/* A take is delayed while tags, which have 4 bits here, advance by more than half their range. */
static const struct scope long_sleep = {"n1_take_sleeps_over_9_laps", 1, "1", {"d", "2d2d2d2d2d2d2d2d2d2"}};

enum answer { NOTHING_YET, PUT, TOOK, EMPTY, NONE_BELOW, SAW, FULL, CLOSED, DRAINED };

static const int64_t limit = 2;

struct event {
	enum answer answer;
	const struct value *value;
	int64_t key; /* SAW */
};

static struct scene {
	const struct scope *scope;
	weir_priority_queue *queue;
	struct value values[ROWS][CALLS + 1];
	int places[ROWS];
	/* The events of each row, in their order. */
	struct event events[ROWS][MOST];
	int count[ROWS];
	int put_inside; /* events of setup */
	int note;       /* written by the closer before the close */
} scene;

static void note(size_t me, enum answer answer, const struct value *value)
{
	scene.events[me][scene.count[me]++] = (struct event){answer, value, 0};
}

static void know_closed(size_t me, enum answer answer)
{
	weir_model_assert(scene.note == 1);
	note(me, answer, NULL);
}

static void put(size_t me, int64_t key)
{
	struct value *value = &scene.values[me][++scene.places[me]];
	enum weir_status status;

	*value = (struct value){(int)me, scene.places[me], key};
	weir_model_call_begins(0);
	status = weir_priority_queue_try_enqueue(scene.queue, key, (uint64_t)(uintptr_t)value);
	weir_model_call_ends(0);
	judged_put(status, judged_number((int)me, value->place), key);
	if (status == WEIR_OK)
		note(me, PUT, value);
	else if (status == WEIR_CANCELLED)
		know_closed(me, CLOSED);
	else
		note(me, FULL, NULL);
}

static uint64_t number_of(const struct value *value)
{
	return judged_number(value->row, value->place);
}

static enum weir_status take(size_t me)
{
	int64_t key = -1;
	uint64_t value;
	enum weir_status status;

	weir_model_call_begins(1);
	status = weir_priority_queue_try_dequeue(scene.queue, &key, &value);
	weir_model_call_ends(1);
	judged_take(status, status == WEIR_OK ? number_of((const struct value *)(uintptr_t)value) : 0);
	if (status == WEIR_OK) {
		note(me, TOOK, (const struct value *)(uintptr_t)value);
		weir_model_assert(((const struct value *)(uintptr_t)value)->key == key);
	} else if (status == WEIR_OUT_OF_RANGE) {
		know_closed(me, DRAINED);
	} else {
		note(me, EMPTY, NULL);
	}
	return status;
}

static void take_below(size_t me)
{
	static const _Atomic(void *) nothing_beside;
	const struct weiri_priority_beside beside = {&nothing_beside, NULL, &limit};
	int64_t key = -1;
	uint64_t value;
	enum weir_status status;

	weir_model_call_begins(2);
	status = weiri_priority_queue_take(scene.queue, &beside, &key, &value);
	weir_model_call_ends(2);
	if (status == WEIR_OK)
		judged_take(status, number_of((const struct value *)(uintptr_t)value));
	else
		weir_model_answer(HISTORY_TAKE_BELOW, (uint64_t)limit, 0);
	if (status != WEIR_OK) {
		note(me, NONE_BELOW, NULL);
		return;
	}
	note(me, TOOK, (const struct value *)(uintptr_t)value);
	weir_model_assert(((const struct value *)(uintptr_t)value)->key == key && key < limit);
}

static void peek(size_t me)
{
	int64_t key = INT64_MAX;
	int saw;

	weir_model_call_begins(3);
	saw = weiri_priority_queue_peek(scene.queue, &key);
	weir_model_call_ends(3);
	weir_model_answer(saw ? HISTORY_PEEK : HISTORY_TAKE_EMPTY, 0, (uint64_t)key);
	note(me, saw ? SAW : EMPTY, NULL);
	scene.events[me][scene.count[me] - 1].key = key;
}

static void close_it(size_t me)
{
	scene.note = 1;
	weir_model_call_begins(4);
	weir_priority_queue_close(scene.queue);
	weir_model_call_ends(4);
	judged_close(0);
	know_closed(me, CLOSED);
}

static void ask(size_t me)
{
	int closed;

	weir_model_call_begins(5);
	closed = weir_priority_queue_closed(scene.queue);
	weir_model_call_ends(5);
	judged_closed(closed);
	if (closed)
		know_closed(me, CLOSED);
}

#define LETTERS(LETTER) \
	LETTER('0', "enqueue a value with key 0", put(me, 0)) \
	LETTER('1', "enqueue a value with key 1", put(me, 1)) \
	LETTER('2', "enqueue a value with key 2", put(me, 2)) \
	LETTER('3', "enqueue a value with key 3", put(me, 3)) \
	LETTER('4', "enqueue a value with key 4", put(me, 4)) \
	LETTER('5', "enqueue a value with key 5", put(me, 5)) \
	LETTER('6', "enqueue a value with key 6", put(me, 6)) \
	LETTER('7', "enqueue a value with key 7", put(me, 7)) \
	LETTER('8', "enqueue a value with key 8", put(me, 8)) \
	LETTER('9', "enqueue a value with key 9", put(me, 9)) \
	LETTER('d', "dequeue", (void)take(me)) \
	LETTER('v', "peek", peek(me)) \
	LETTER('l', "dequeue a key below 2", take_below(me)) \
	LETTER('c', "close", close_it(me)) \
	LETTER('q', "ask whether the queue is closed", ask(me)) \
	LETTER('o', "ask whether the queue is closed and drained", (void)weiri_priority_queue_is_ended(scene.queue)) \
	LETTER('z', "a planted fault: a dequeue that returns \"empty\" without reading", judged_wrong_take())

static void call(size_t me, char what)
{
	switch (what) {
		LETTERS(LETTER_CASE)
	default: weir_model_assert(!"a letter of the table");
	}
}

static void setup(void *context)
{
	(void)context;
	weir_model_assert(weir_priority_queue_create(scene.scope->capacity, NULL, &scene.queue, NULL) == WEIR_OK);
	judged_as_priority(scene.scope->capacity);
	scope_calls(ROWS - 1, scene.scope->inside, call);
	scene.put_inside = scene.count[ROWS - 1];
}

static void thread(void *context, size_t me)
{
	(void)context;
	scope_calls(me, scene.scope->calls[me], call);
}

/* -- requirements ------------------------------------------------------------------------------ */

/* Returns 1 if row `me` dequeued `value` in its event `from` or in a later one. */
static int is_taken_later(size_t me, int from, const struct value *value)
{
	for (int i = from; i < scene.count[me]; i++) {
		if (scene.events[me][i].answer == TOOK && scene.events[me][i].value == value)
			return 1;
	}
	return 0;
}

/*
 * Returns 1 if `value`, once it was put, is certainly still stored at event `at` of row `me`: that
 * thread dequeues it later, or finish() does.
 */
static int is_still_inside(size_t me, int at, const struct value *value)
{
	return is_taken_later(me, at + 1, value) || (me != ROWS - 1 && is_taken_later(ROWS - 1, 0, value));
}

static int was_put_before(size_t me, int at, const struct value *value)
{
	for (int i = 0; i < at; i++) {
		if (scene.events[me][i].answer == PUT && scene.events[me][i].value == value)
			return 1;
	}
	return value->row == ROWS - 1;
}

/*
 * Returns 1 if `a` was certainly put before `b`: by the same thread, or because only `a` was there
 * from the start.
 */
static int came_before(const struct value *a, const struct value *b)
{
	return a->row == b->row ? a->place < b->place : a->row == ROWS - 1;
}

static void judge_take(size_t me, int at, const struct value *taken, const struct value *other)
{
	int at_the_end = me == ROWS - 1 && at >= scene.put_inside;
	int known = at_the_end || was_put_before(me, at, other) || came_before(other, taken);

	if (other != taken && known && is_still_inside(me, at, other))
		weir_model_assert(other->key > taken->key || (other->key == taken->key && !came_before(other, taken)));
}

static size_t puts_in(const char *calls)
{
	size_t count = 0;

	for (; *calls != '\0'; calls++)
		count += *calls >= '0' && *calls <= '9';
	return count;
}

static size_t puts_in_scope(void)
{
	size_t count = puts_in(scene.scope->inside);

	for (size_t i = 0; i < THREADS && scene.scope->calls[i] != NULL; i++)
		count += puts_in(scene.scope->calls[i]);
	return count;
}

static void judge(size_t me, int at, const struct value *other)
{
	const struct event *event = &scene.events[me][at];

	switch (event->answer) {
	case TOOK: judge_take(me, at, event->value, other); break;
	case EMPTY: weir_model_assert(!was_put_before(me, at, other) || !is_still_inside(me, at, other)); break;
	case NONE_BELOW:
		weir_model_assert(other->key >= limit || !was_put_before(me, at, other) || !is_still_inside(me, at, other));
		break;
	case SAW:
		weir_model_assert(other->key >= event->key || !was_put_before(me, at, other) ||
		                  !is_still_inside(me, at, other));
		break;
	case FULL: weir_model_assert(puts_in_scope() > scene.scope->capacity); break;
	case DRAINED: weir_model_assert(!is_still_inside(me, at, other)); break;
	default: break;
	}
}

static int outcomes(enum answer answer, const struct value *value)
{
	int count = 0;

	for (size_t me = 0; me < ROWS; me++) {
		for (int i = 0; i < scene.count[me]; i++)
			count += scene.events[me][i].answer == answer && scene.events[me][i].value == value;
	}
	return count;
}

static void finish(void *context)
{
	(void)context;
	while (take(ROWS - 1) == WEIR_OK)
		;
	for (size_t row = 0; row < ROWS; row++) {
		for (int place = 1; place <= scene.places[row]; place++) {
			const struct value *value = &scene.values[row][place];

			weir_model_assert(outcomes(TOOK, value) == outcomes(PUT, value));
			for (size_t me = 0; me < ROWS; me++) {
				for (int at = 0; outcomes(PUT, value) != 0 && at < scene.count[me]; at++)
					judge(me, at, value);
			}
		}
	}
	for (size_t me = 0; me < ROWS; me++) {
		/* nothing is enqueued after the thread's own "closed" */
		for (int at = 1; at < scene.count[me]; at++)
			weir_model_assert(scene.events[me][at].answer != PUT || (scene.events[me][at - 1].answer != CLOSED &&
			                                                         scene.events[me][at - 1].answer != DRAINED));
	}
	weir_model_assert(weir_priority_queue_size_approx(scene.queue) == 0);
	weir_priority_queue_destroy(scene.queue, NULL);
}

static struct weir_model_program prepare(const struct scope *scope, char name[static SCOPE_NAME])
{
	(void)snprintf(name, SCOPE_NAME, "priority_%s", scope->name);
	scene = (struct scene){.scope = scope};
	return (struct weir_model_program){
		name, scope_threads(scope->calls, THREADS), &scene, sizeof(scene), setup, thread, finish};
}

static int check(const struct scope *scope, uint64_t executions)
{
	char name[SCOPE_NAME];
	struct weir_model_program program = prepare(scope, name);

	return scope_as_far_as(&program, executions);
}

static int check_planted(void)
{
	static const struct scope planted = {"a_wrong_empty", 2, "", {"1z", "2"}};
	char name[SCOPE_NAME];
	struct weir_model_program program = prepare(&planted, name);

	return scope_finds(&program, judged_wrong);
}

static int check_progress(const struct scope *scope)
{
	static const char *const calls[WEIR_MODEL_CALLS + 1] = {"enqueue", "dequeue", NULL};
	static const uint32_t bounds[WEIR_MODEL_CALLS] = {0};
	char name[SCOPE_NAME];
	struct weir_model_program program = prepare(scope, name);

	return scope_stops(&program, scope_long() ? 0 : 200, calls, bounds);
}

/* -- what the end costs ------------------------------------------------------------------------ */

enum { MANY = 20, TAKE_AFTER_THE_END = 9 }; /* the latter in accesses, for every capacity */

static void setup_the_end(void *context)
{
	(void)context;
	weir_model_assert(weir_priority_queue_create(MANY, NULL, &scene.queue, NULL) == WEIR_OK);
	weir_priority_queue_close(scene.queue);
}

/* The first take may walk the whole chain to find the end. */
static void meet_the_end(void *context, size_t me)
{
	uint64_t value;

	(void)context, (void)me;
	for (uint32_t i = 0; i < 2; i++) {
		weir_model_call_begins(i);
		weir_model_assert(weir_priority_queue_try_dequeue(scene.queue, NULL, &value) == WEIR_OUT_OF_RANGE);
		weir_model_call_ends(i);
	}
}

static void finish_the_end(void *context)
{
	(void)context;
	weir_priority_queue_destroy(scene.queue, NULL);
}

static int check_the_end(void)
{
	static const char *const calls[WEIR_MODEL_CALLS + 1] = {"take that finds the end", "take after the end", NULL};
	static const uint32_t bounds[WEIR_MODEL_CALLS] = {0, TAKE_AFTER_THE_END};
	struct weir_model_program program = {
		"priority_n20_the_end_is_told_twice", 2, &scene, sizeof(scene), setup_the_end, meet_the_end, finish_the_end};

	scene = (struct scene){0};
	return scope_within(&program, scope_long() ? 0 : 20000, calls, bounds);
}

int main(int argc, char **argv)
{
	static const struct scope_letter letters[] = {LETTERS(LETTER_ROW){0, NULL}};
	int bad = 0;

	scope_letters(argc, argv, letters);
	scope_arguments(argc, argv);
	/* Scopes with room for one item come to an end. */
	for (size_t i = 0; i < sizeof(scopes) / sizeof(scopes[0]); i++)
		bad |= check(&scopes[i], scope_long() ? 0 : scopes[i].capacity == 1 ? 80000 : 20000);
	bad |= check(&long_sleep, scope_long() ? 200000 : 2000);
	bad |= check_the_end();
	bad |= check_planted();
	for (size_t i = 0; i < sizeof(scopes) / sizeof(scopes[0]); i++)
		bad |= check_progress(&scopes[i]);
	return bad;
}
