/*
 * check_spsc.c - the ring of one producer and one consumer.
 *
 * A scope gives each thread a row of calls, a letter each; LETTERS says what each letter does. The
 * thread that enqueues first has the role of producer from the start, the thread that dequeues
 * first that of consumer. A thread can hand its role over, by a release store, and the next thread
 * has it from an acquire load on; a thread that has not got the role yet leaves out its calls.
 *
 * Required of every execution:
 * - Some order of the calls explains all results, "full" and "empty" included (weir_model_judge()).
 * - Each value that was accepted is dequeued once, in order.
 * - A size is at most the capacity, and at most the number of values that the scope enqueues.
 *
 * In scopes named full_beside_empty each result is possible by itself; both together would be store
 * buffering between the two indices. Each value is the address of plain data that is written
 * immediately before, and slots are plain memory, so a missing order shows as a race. The indices
 * begin right before they wrap around, so every scope with two values crosses that.
 */
#include <stdio.h>
#include <string.h>
#include <weir/spsc.h>

#include "base/atomic.h"
#include "model/judged.h"
#include "model/scope.h"
#include "ring/layout.h"

enum { THREADS = 4, VALUES = 16, BATCH = 3 };
enum { IN_STEP = 2 }; /* a time that is not 0, and not odd: all refusals are soon after each other */

static const struct scope {
	const char *name;
	size_t capacity;
	const char *calls[THREADS];
	unsigned passed, inside; /* values that have passed through the ring, and that are inside */
} scopes[] =
	{
		{"n1_put_x1_take_x1", 1, {"e", "d"}, 0, 0},
		{"n1_put_x2_take_x2", 1, {"ee", "dd"}, 0, 0},
		{"n1_put_x3_take_x3", 1, {"eee", "ddd"}, 0, 0},
		{"n2_put_x2_take_x2", 2, {"ee", "dd"}, 0, 0},
		{"n2_put_x3_take_x3", 2, {"eee", "ddd"}, 0, 0},
		{"n2_put_x4_take_x4", 2, {"eeee", "dddd"}, 0, 0},
		{"n3_put_x4_take_x4", 3, {"eeee", "dddd"}, 0, 0},
		{"n3_put_x4_take_x4_after_5", 3, {"eeee", "dddd"}, 5, 2},
		{"n2_put_x6_take_x6", 2, {"eeeeee", "dddddd"}, 0, 0},
		{"n3_put_x6_take_x6", 3, {"eeeeee", "dddddd"}, 0, 0},
		{"n1_batch_of_2_take_batch_of_2", 1, {"mm", "bb"}, 0, 0},
		{"n2_batch_of_2_take_x3", 2, {"mm", "ddd"}, 0, 0},
		{"n2_put_x3_take_batch_of_2", 2, {"eee", "bb"}, 0, 0},
		{"n2_batches_of_2_take_batches_of_2", 2, {"mmm", "bbb"}, 0, 0},
		{"n3_batches_of_2_take_batches_of_2", 3, {"mmm", "bbb"}, 0, 0},
		{"n3_batches_of_3_take_batches_of_3", 3, {"MMM", "BBB"}, 2, 0},
		{"n3_batches_of_2_take_batches_of_3_inside_2", 3, {"mm", "BB"}, 4, 2},
		{"n3_puts_and_batches_take_batches_and_single_values", 3, {"emeM", "bdBd"}, 0, 1},
		/* Each side reads what the other side has just changed. */
		{"n1_full_beside_empty", 1, {"ee", "ddd"}, 0, 1},
		{"n2_full_beside_empty", 2, {"ee", "dd"}, 0, 1},
		{"n2_full_beside_empty_from_0", 2, {"eee", "dd"}, 0, 0},
		{"n3_full_beside_empty", 3, {"eee", "dd"}, 0, 1},
		{"n2_full_beside_empty_twice", 2, {"eeee", "dddd"}, 0, 1},
		{"n2_full_beside_empty_behind_refusals", 2, {"eee", "ddd"}, 0, 2},
		{"n2_full_beside_empty_batches", 2, {"mm", "bb"}, 0, 1},
		{"n3_full_beside_empty_batches", 3, {"mm", "bb"}, 1, 2},
		/* A role goes to another thread. */
		{"n2_handover_of_the_producer", 2, {"eg", "dd", "aee"}, 0, 1},
		{"n2_handover_of_the_producer_after_full", 2, {"eeg", "dd", "ae"}, 0, 1},
		{"n2_handover_of_the_consumer", 2, {"ee", "dh", "tdd"}, 0, 1},
		{"n2_handover_of_the_consumer_after_empty", 2, {"ee", "ddh", "td"}, 0, 1},
		{"n1_handover_of_both_roles", 1, {"eeg", "ddh", "aee", "tdd"}, 0, 1},
		{"n2_handover_of_both_roles", 2, {"eeg", "ddh", "aee", "tdd"}, 0, 1},
		/* Two threads change an index each, and two others get the roles and look. */
		{"n2_iriw_a_put_and_a_take_seen_by_the_next_of_each_role", 2, {"eg", "dh", "ae", "td"}, 0, 1},
		{"n3_size_beside_put_x1_take_x1", 3, {"e", "d", "ss"}, 0, 0},
		{"n1_size_beside_put_x3_take_x3", 1, {"eee", "ddd", "s"}, 0, 0},
		{"n3_size_beside_batches", 3, {"m", "b", "s"}, 0, 1},
},
  /* A refused call of one value pauses and looks again. After a look in vain the side rests. */
	in_step[] =
		{
			{"n1_in_step_put_x1_take_x1", 1, {"pe", "pd"}, 1, 0},
			{"n1_in_step_put_x3_take_x3", 1, {"peee", "pddd"}, 1, 0},
			{"n2_in_step_put_x4_take_x4", 2, {"peeee", "pdddd"}, 1, 0},
			{"n2_in_step_put_x3_take_x3_inside_2", 2, {"peee", "pddd"}, 1, 2},
			{"n1_in_step_full_beside_empty", 1, {"pee", "pddd"}, 1, 1},
			{"n2_in_step_full_beside_empty", 2, {"pee", "pdd"}, 1, 1},
			{"n2_in_step_full_beside_empty_behind_refusals", 2, {"peee", "pddd"}, 1, 2},
			{"n2_in_step_beside_batches", 2, {"peme", "pdbd"}, 1, 0},
			{"n1_in_step_handover_of_both_roles", 1, {"peeg", "pddh", "paee", "ptdd"}, 1, 1},
},
  planted = {"a_wrong_empty", 2, {"ez", "d"}, 0, 0};

static struct scene {
	const struct scope *scope;
	weir_spsc *ring;
	_Atomic(int) producer_is_free, consumer_is_free; /* the role was handed over */
	int without[THREADS];                            /* the thread did not get a role */
	/* Belong to the roles. */
	int put, taken;    /* values that went in and came out */
	int value[VALUES]; /* what the values point to, in the order of the enqueues */
} scene;

/* Writes what the next `count` values point to. A value that is refused is offered again. */
static void make(uint64_t values[], int count)
{
	weir_model_assert(scene.put + count <= VALUES);
	for (int i = 0; i < count; i++) {
		scene.value[scene.put + i] = scene.put + i;
		values[i] = (uint64_t)(uintptr_t)&scene.value[scene.put + i];
	}
}

/*
 * The judge gets each value of a batch as a call of its own. A batch that moved a part says neither
 * "full" nor "empty".
 */
static void put(int count)
{
	uint64_t values[BATCH];
	enum weir_status status;
	size_t done = 1;

	make(values, count);
	weir_model_call_begins(0);
	status = count == 1 ? weir_spsc_try_enqueue(scene.ring, values[0])
	                    : weir_spsc_try_enqueue_many(scene.ring, values, (size_t)count, &done);
	weir_model_call_ends(0);
	if (status != WEIR_OK) {
		judged_put(status, judged_number(0, scene.put), 0);
		return;
	}
	weir_model_assert(done >= 1 && done <= (size_t)count);
	for (size_t i = 0; i < done; i++)
		judged_put(WEIR_OK, judged_number(0, scene.put++), 0);
}

static void have(uint64_t bits)
{
	const int *value = (const int *)(uintptr_t)bits;

	weir_model_assert(*value == scene.taken); /* a race, if the enqueue did not happen before */
	judged_take(WEIR_OK, judged_number(0, scene.taken++));
}

static enum weir_status take(int count)
{
	uint64_t values[BATCH];
	enum weir_status status;
	size_t done = 1;

	weir_model_call_begins(1);
	status = count == 1 ? weir_spsc_try_dequeue(scene.ring, values)
	                    : weir_spsc_try_dequeue_many(scene.ring, values, (size_t)count, &done);
	weir_model_call_ends(1);
	if (status != WEIR_OK) {
		judged_take(status, 0);
		return status;
	}
	weir_model_assert(done >= 1 && done <= (size_t)count);
	for (size_t i = 0; i < done; i++)
		have(values[i]);
	return WEIR_OK;
}

/* Returns how many values the scope enqueues at most. */
static size_t most_inside(void)
{
	size_t most = scene.scope->inside;

	for (size_t i = 0; i < THREADS && scene.scope->calls[i] != NULL; i++) {
		for (const char *call = scene.scope->calls[i]; *call != '\0'; call++)
			most += *call == 'e' ? 1 : *call == 'm' ? 2 : *call == 'M' ? 3 : 0;
	}
	return most < scene.scope->capacity ? most : scene.scope->capacity;
}

static void look_at_size(void)
{
	size_t size;

	weir_model_call_begins(2);
	size = weir_spsc_size_approx(scene.ring);
	weir_model_call_ends(2);
	weir_model_assert(size <= most_inside());
}

/* [acquire] pairs with the release of the thread that hands the role over */
static void accept(size_t me, const _Atomic(int) *is_free)
{
	scene.without[me] = !weiri_load_acquire(is_free);
}

/* [release] pairs with accept() */
#define LETTERS(LETTER) \
	LETTER('e', "enqueue", put(1)) \
	LETTER('d', "dequeue", (void)take(1)) \
	LETTER('m', "enqueue 2 in a batch", put(2)) \
	LETTER('M', "enqueue 3 in a batch", put(3)) \
	LETTER('b', "dequeue up to 2 in a batch", (void)take(2)) \
	LETTER('B', "dequeue up to 3 in a batch", (void)take(3)) \
	LETTER('s', "read the size", look_at_size()) \
	LETTER('g', "hand the role of producer over", weiri_store_release(&scene.producer_is_free, 1)) \
	LETTER('a', "accept the role of producer; without it, end", accept(me, &scene.producer_is_free)) \
	LETTER('h', "hand the role of consumer over", weiri_store_release(&scene.consumer_is_free, 1)) \
	LETTER('t', "accept the role of consumer; without it, end", accept(me, &scene.consumer_is_free)) \
	LETTER('p', \
	       "from here on, pause once when refused, and look again, as beside a side that runs in step (in_step.h)", \
	       weiri_ring_step_time = IN_STEP) \
	LETTER('z', "a planted fault: a dequeue that returns \"empty\" without reading", judged_wrong_take())

static void call(size_t me, char what)
{
	switch (what) {
		LETTERS(LETTER_CASE)
	default: weir_model_assert(!"a letter of the table");
	}
}

static void thread(void *context, size_t me)
{
	(void)context;
	for (const char *calls = scene.scope->calls[me]; *calls != '\0' && !scene.without[me]; calls++)
		call(me, *calls);
}

static void setup(void *context)
{
	uint64_t value;

	(void)context;
	weir_model_assert(weir_spsc_create(scene.scope->capacity, NULL, &scene.ring, NULL) == WEIR_OK);
	judged_as_fifo(scene.scope->capacity);
	for (unsigned i = 0; i < scene.scope->passed; i++)
		weir_model_assert(weir_spsc_try_enqueue(scene.ring, i) == WEIR_OK &&
		                  weir_spsc_try_dequeue(scene.ring, &value) == WEIR_OK && value == i);
	for (unsigned i = 0; i < scene.scope->inside; i++)
		put(1);
}

static void finish(void *context)
{
	(void)context;
	weir_model_assert(weir_spsc_size_approx(scene.ring) == (size_t)(scene.put - scene.taken));
	while (take(1) == WEIR_OK)
		;
	weir_model_assert(scene.put == scene.taken);
	weir_spsc_destroy(scene.ring, NULL);
}

static struct weir_model_program prepare(const struct scope *scope, char name[static SCOPE_NAME])
{
	(void)snprintf(name, SCOPE_NAME, "spsc_%s", scope->name);
	scene = (struct scene){.scope = scope};
	return (struct weir_model_program){
		name, scope_threads(scope->calls, THREADS), &scene, sizeof(scene), setup, thread, finish};
}

static int check_scopes(const struct scope of[], size_t count)
{
	int bad = 0;
	char name[SCOPE_NAME];

	for (size_t i = 0; i < count; i++) {
		struct weir_model_program program = prepare(&of[i], name);

		bad |= scope_as_far_as(&program, scope_long() ? 0 : 500000);
	}
	return bad;
}

static int check_planted(void)
{
	char name[SCOPE_NAME];
	struct weir_model_program program = prepare(&planted, name);

	return scope_finds(&program, judged_wrong);
}

/* A thread that is stopped at any of its steps delays no other thread. */
static int check_progress(const struct scope of[], size_t count, const uint32_t bounds[static WEIR_MODEL_CALLS])
{
	static const char *const calls[WEIR_MODEL_CALLS + 1] = {"enqueue", "dequeue", "size", NULL};
	int bad = 0;
	char name[SCOPE_NAME];

	for (size_t i = 0; i < count; i++) {
		struct weir_model_program program = prepare(&of[i], name);

		bad |= scope_stops(&program, scope_long() ? 0 : 2000, calls, bounds);
	}
	return bad;
}

int main(int argc, char **argv)
{
	static const struct scope_letter letters[] = {LETTERS(LETTER_ROW){0, NULL}};

	/* Those of the essay. A pause adds a look and at most 5 accesses to the word of in_step.h. */
	static const uint32_t bounds[WEIR_MODEL_CALLS] = {5, 5, 2}, bounds_in_step[WEIR_MODEL_CALLS] = {11, 11, 2};
	const size_t count = sizeof(scopes) / sizeof(scopes[0]), count_in_step = sizeof(in_step) / sizeof(in_step[0]);
	int bad;

	scope_letters(argc, argv, letters);
	scope_arguments(argc, argv);
	bad = check_scopes(scopes, count) | check_scopes(in_step, count_in_step) | check_planted();
	return bad | check_progress(scopes, count, bounds) | check_progress(in_step, count_in_step, bounds_in_step);
}
