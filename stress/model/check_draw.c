/*
 * check_draw.c - draws from a ring (ring/draw.h), in both formats that have them.
 *
 * A scope gives each thread a row of calls, a letter each; LETTERS says what each letter does. The
 * seed of a scope decides which of the values inside each draw chooses.
 *
 * Required of every execution: Some order of the calls explains all answers, as of a bag with a
 * capacity (judged.h); so "full" and "empty" are exact. Each value that was accepted is drawn
 * exactly once. Each value is the address of plain data that is written immediately before, so a
 * missing order shows as a race.
 */
#include <stdio.h>
#include <string.h>

#include "model/judged.h"
#include "model/scope.h"
#include "ring/ring.h"

enum { THREADS = 4, CALLS = 4, ROWS = THREADS + 1 }; /* the last row belongs to setup */

struct value {
	int row, place; /* place counts from 1 */
};

static const struct scope {
	const char *name;
	size_t capacity;
	const char *calls[THREADS];
	/* The ring at the start: values that have passed, values inside. */
	unsigned passed, inside;
	size_t min_left;
	uint64_t seed; /* of 2 values the first draw chooses the first (1) or the other (4) */
} scopes[] = {
	{"n1_1_put_1_draw", 1, {"e", "r"}, 0, 0, 0, 1},
	{"n2_2_draws_of_2", 2, {"r", "r"}, 0, 2, 0, 4},
	{"n2_2_draws_of_2_the_head", 2, {"r", "r"}, 0, 2, 0, 1},
	{"n2_draw_beside_draw_and_put", 2, {"r", "re"}, 0, 2, 0, 4},
	{"n2_put_draw_beside_put_draw", 2, {"er", "er"}, 0, 0, 0, 4},
	{"n2_full_beside_empty", 2, {"eee", "rr"}, 0, 0, 0, 4},
	{"n2_store_buffering_each_draws_and_puts", 2, {"re", "re"}, 0, 1, 0, 4},
	{"n2_2_draws_of_2_beside_a_put", 2, {"r", "r", "e"}, 0, 2, 0, 4},
	{"n3_2_draws_of_3", 3, {"r", "r"}, 0, 3, 0, 2},
	{"n3_draws_x2_and_x1_of_3", 3, {"rr", "r"}, 0, 3, 0, 2},
	{"n3_3_draws_of_3", 3, {"r", "r", "r"}, 0, 3, 0, 2},
	{"n3_draw_beside_draws_and_puts_across_the_end", 3, {"r", "ere"}, 2, 2, 0, 4},
	{"n3_min_1_draw_beside_draw_and_put", 3, {"r", "re"}, 0, 2, 1, 4},
	{"n2_min_1_draw_beside_close", 2, {"rr", "c"}, 0, 1, 1, 4},
	{"n2_close_draws_beside_put", 2, {"rr", "e", "c"}, 0, 1, 0, 4},
	{"n2_draws_beside_size", 2, {"rr", "es"}, 0, 2, 0, 4},
};

static struct scene {
	const struct scope *scope;
	enum weir_ring_format format;
	weir_ring *ring;
	struct value values[ROWS][CALLS + 1];
	/* Written by each thread for itself. */
	int accepted[ROWS], out[ROWS], closed[ROWS], drained[ROWS];
	int had[ROWS][CALLS + 1];
	int note; /* written by the closer before the close */
} scene;

static void know_closed(size_t me)
{
	weir_model_assert(scene.note == 1);
	scene.closed[me] = 1;
}

static void put(size_t me)
{
	int place = scene.accepted[me] + 1;
	enum weir_status status;

	scene.values[me][place] = (struct value){(int)me, place};
	weir_model_call_begins(0);
	status = weir_ring_try_enqueue(scene.ring, (uint64_t)(uintptr_t)&scene.values[me][place]);
	weir_model_call_ends(0);
	judged_put(status, judged_number((int)me, place), 0);
	weir_model_assert(status == WEIR_CANCELLED || !scene.closed[me]);
	if (status == WEIR_OK)
		scene.accepted[me] = place;
	else if (status == WEIR_CANCELLED)
		know_closed(me);
}

static void have(size_t me, const struct value *value)
{
	/* Not atomic, so a value that two threads have is also found as a race. */
	weir_model_assert(scene.had[value->row][value->place]++ == 0);
	weir_model_assert(!scene.drained[me]);
	scene.out[me]++;
}

static enum weir_status draw_one(size_t me)
{
	const struct weiri_draw draw = {scene.scope->seed, scene.scope->min_left, WEIRI_RING_SEAL};
	const struct value *value = NULL;
	enum weir_status status;
	uint64_t bits = 0;

	weir_model_call_begins(1);
	status = weiri_ring_draw(scene.ring, &draw, &bits);
	weir_model_call_ends(1);
	if (status == WEIR_OK)
		value = (const struct value *)(uintptr_t)bits;
	/* That the minimum stays inside is no answer of a bag: see finish(). */
	if (status != WEIR_WOULD_BLOCK || scene.scope->min_left == 0)
		judged_take(status, value != NULL ? judged_number(value->row, value->place) : 0);
	if (value != NULL)
		have(me, value);
	if (status == WEIR_OUT_OF_RANGE) {
		know_closed(me);
		scene.drained[me] = 1;
	}
	return status;
}

static void draw(size_t me)
{
	enum weir_status status = draw_one(me);

	weir_model_assert(status == WEIR_OK || status == WEIR_WOULD_BLOCK || status == WEIR_OUT_OF_RANGE);
}

static void close_it(size_t me)
{
	scene.note = 1;
	weir_model_call_begins(2);
	weir_ring_close(scene.ring);
	weir_model_call_ends(2);
	judged_close(0);
	know_closed(me);
}

static void look_at_size(void)
{
	weir_model_assert(weir_ring_size_approx(scene.ring) <= scene.scope->capacity);
	(void)weiri_ring_can_draw(scene.ring, scene.scope->min_left);
}

#define LETTERS(LETTER) \
	LETTER('e', "enqueue", put(me)) \
	LETTER('r', "draw", draw(me)) \
	LETTER('c', "close", close_it(me)) \
	LETTER('s', "read the size, and whether a draw would find a value", look_at_size()) \
	LETTER('z', "a planted fault: a draw that returns \"empty\" without reading", judged_wrong_take())

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
	scope_calls(me, scene.scope->calls[me], call);
}

static void setup(void *context)
{
	struct weir_ring_options options = {WEIR_RING_OPTIONS_INIT, .format = scene.format};
	const struct weiri_draw any = {1, 0, WEIRI_RING_SEAL};
	uint64_t value;

	(void)context;
	weir_model_assert(weir_ring_create(scene.scope->capacity, &options, &scene.ring, NULL) == WEIR_OK);
	judged_as_shuffle(scene.scope->capacity);
	for (unsigned i = 0; i < scene.scope->passed; i++)
		weir_model_assert(weir_ring_try_enqueue(scene.ring, i) == WEIR_OK &&
		                  weiri_ring_draw(scene.ring, &any, &value) == WEIR_OK && value == i);
	for (unsigned i = 0; i < scene.scope->inside; i++)
		put(ROWS - 1);
}

/* Draws what is left. All values together are those that went in, and the minimum stays while the ring is open. */
static void finish(void *context)
{
	int in = 0, out = 0, drained = 0, closed = 0, left;

	(void)context;
	for (size_t i = 0; i < ROWS; i++) {
		in += scene.accepted[i];
		out += scene.out[i];
		drained |= scene.drained[i];
		closed |= scene.closed[i];
	}
	left = in - out;
	weir_model_assert(weir_ring_size_approx(scene.ring) == (size_t)left && !(drained && left != 0));
	weir_model_assert(closed || out == 0 || left >= (int)scene.scope->min_left);
	if (!closed && left <= (int)scene.scope->min_left)
		weir_model_assert(!weiri_ring_can_draw(scene.ring, scene.scope->min_left) && draw_one(ROWS - 1) != WEIR_OK);
	if (!closed)
		close_it(ROWS - 1);
	while (left-- > 0)
		weir_model_assert(draw_one(ROWS - 1) == WEIR_OK);
	weir_model_assert(draw_one(ROWS - 1) == WEIR_OUT_OF_RANGE);
	weir_ring_destroy(scene.ring, NULL);
}

static struct weir_model_program prepare(const struct scope *scope, enum weir_ring_format format,
                                         char name[static SCOPE_NAME])
{
	(void)snprintf(name, SCOPE_NAME, "draw_%s_%s", format == WEIR_RING_FORMAT_LTQ16 ? "ltq16" : "ltq64", scope->name);
	scene = (struct scene){.scope = scope, .format = format};
	return (struct weir_model_program){
		name, scope_threads(scope->calls, THREADS), &scene, sizeof(scene), setup, thread, finish};
}

static int check(const struct scope *scope, enum weir_ring_format format)
{
	static const char *const calls[WEIR_MODEL_CALLS + 1] = {"enqueue", "draw", NULL};
	static const uint32_t bounds[WEIR_MODEL_CALLS] = {0};
	char name[SCOPE_NAME];
	struct weir_model_program program = prepare(scope, format, name);
	int bad = scope_as_far_as(&program, scope_long() ? 0 : 30000);

	program = prepare(scope, format, name);
	return bad | scope_stops(&program, scope_long() ? 0 : 300, calls, bounds);
}

int main(int argc, char **argv)
{
	static const struct scope_letter letters[] = {LETTERS(LETTER_ROW){0, NULL}};
	static const struct scope planted = {"a_wrong_empty", 2, {"ez", "er"}, 0, 0, 0, 1};
	char name[SCOPE_NAME];
	struct weir_model_program program;
	int bad;

	scope_letters(argc, argv, letters);
	scope_arguments(argc, argv);
	program = prepare(&planted, WEIR_RING_FORMAT_LTQ16, name);
	bad = scope_finds(&program, judged_wrong);
	for (size_t i = 0; i < sizeof(scopes) / sizeof(scopes[0]); i++)
		bad |= check(&scopes[i], WEIR_RING_FORMAT_LTQ64) | check(&scopes[i], WEIR_RING_FORMAT_LTQ16);
	return bad;
}
