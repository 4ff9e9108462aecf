/*
 * check_cancel.c - cancel tokens: a hook runs once or is removed, it sees what was done before the
 * fire, and its slot is reused.
 */
#include <stdio.h>
#include <string.h>
#include <weir/cancel.h>

#include "model/scope.h"
#include "sync/cancel.h"

enum { MOST = 3, ROUNDS = 2 };

static struct scene {
	weir_cancel *token;
	weir_cancel_hook *hooks[MOST];
	int data; /* written before a fire */
	/* [thread][round] of the hook. One count each, because two hooks may run at the same time */
	int called[MOST][ROUNDS];
	int rounds;      /* how often each thread adds and removes a hook */
	int off[MOST];   /* how often off returned that fn never runs */
	int fired[MOST]; /* what fire returned */
	bool unused;     /* what a thread was told of the token */
} scene;

static void setup(void *context)
{
	(void)context;
	weir_model_assert(weir_cancel_create(NULL, &scene.token, NULL) == WEIR_OK);
}

static void called(void *context)
{
	/*
	 * This read races unless the fire happened before it, also if the hook is added after the fire.
	 */
	weir_model_assert(scene.data == 7);
	++*(int *)context;
}

static void fire(size_t who)
{
	weir_model_call_begins(3);
	scene.fired[who] = weir_cancel_fire(scene.token, NULL);
	weir_model_call_ends(3);
}

static void put_on(size_t who, int round)
{
	weir_model_assert(weir_cancel_on(scene.token, called, &scene.called[who][round], &scene.hooks[who]) == WEIR_OK);
}

/* Thread 0 fires; the other threads add a hook and remove it, `rounds` times. */
static void on_off_beside_fire(void *context, size_t who)
{
	(void)context;
	if (who == 0) {
		scene.data = 7;
		fire(0);
		return;
	}
	for (int i = 0; i < scene.rounds; i++) {
		put_on(who, i);
		scene.off[who] += weir_cancel_off(scene.hooks[who]);
	}
	if (weir_cancel_fired(scene.token))
		weir_model_assert(scene.data == 7);
}

/*
 * off() returns true if the callback has not run and will not run. Otherwise the callback has run
 * once when all threads are done.
 */
static void called_unless_off(void *context)
{
	(void)context;
	weir_model_assert(weir_cancel_fired(scene.token) && weir_cancel_cause(scene.token, NULL) == WEIR_CANCELLED);
	for (size_t i = 1; i < MOST; i++)
		weir_model_assert(scene.hooks[i] == NULL ||
		                  scene.called[i][0] + scene.called[i][1] == scene.rounds - scene.off[i]);
	weir_cancel_release(scene.token);
}

/* Threads 0 and 1 fire. The hook of thread 2 reads data, which is set from the start. */
static void two_fires(void *context, size_t who)
{
	(void)context;
	if (who < 2)
		fire(who);
	else
		on_off_beside_fire(context, who);
}

/* Three threads fire, but a token has room for two causes only. */
static void three_fires(void *context, size_t who)
{
	(void)context;
	fire(who);
}

static void first_of_three(void *context)
{
	weir_model_assert(scene.fired[0] + scene.fired[1] + scene.fired[2] == 1);
	called_unless_off(context);
}

static void first_once(void *context)
{
	weir_model_assert(scene.fired[0] + scene.fired[1] == 1);
	called_unless_off(context);
}

/*
 * A hook that is not removed has run when all threads have ended, whether it was added before the
 * fire or after it.
 */
static void on_beside_fire(void *context, size_t who)
{
	(void)context;
	if (who == 0) {
		scene.data = 7;
		fire(0);
	} else {
		put_on(who, 0);
	}
}

static void all_called(void *context)
{
	(void)context;
	for (size_t i = 1; i < MOST; i++) {
		if (scene.hooks[i] != NULL)
			weir_model_assert(scene.called[i][0] == 1 && weir_cancel_off(scene.hooks[i]) == 0);
	}
	weir_cancel_release(scene.token);
}

/* No thread fires. This checks that the slot of a removed hook can pass to another thread. */
static void slots_change_hands(void *context, size_t who)
{
	(void)context;
	for (int i = 0; i < scene.rounds; i++) {
		put_on(who, i);
		weir_model_assert(weir_cancel_off(scene.hooks[who]) == 1);
	}
}

static void none_called(void *context)
{
	(void)context;
	for (size_t i = 0; i < MOST; i++)
		weir_model_assert(scene.called[i][0] + scene.called[i][1] == 0);
	weir_cancel_release(scene.token);
}

/*
 * Each thread has a reference. If the token reports that it was fired, its cause can be read. The
 * last release frees the token.
 */
static void setup_held(void *context)
{
	setup(context);
	(void)weir_cancel_retain(scene.token);
}

static void cause_and_release(void *context, size_t who)
{
	static const weir_error cause = {WEIR_DATA_LOSS, "lost"};
	weir_error seen;

	(void)context;
	if (who == 0) {
		(void)weir_cancel_fire(scene.token, &cause);
	} else if (weir_cancel_cause(scene.token, &seen) != WEIR_OK) {
		weir_model_assert(seen.code == WEIR_DATA_LOSS && strcmp(seen.message, "lost") == 0);
	}
	weir_cancel_release(scene.token);
}

/* Whoever is told that a token is unused may use it again: no other thread has fired it, or will. */
static void fire_and_release_beside_a_question(void *context, size_t who)
{
	(void)context;
	if (who == 0) {
		fire(0);
		weir_cancel_release(scene.token);
	} else {
		scene.unused = weiri_cancel_is_unused(scene.token);
	}
}

static void not_unused(void *context)
{
	(void)context;
	weir_model_assert(!scene.unused && !weiri_cancel_is_unused(scene.token));
	weir_cancel_release(scene.token);
}

static struct weir_model_program scope(const char *name, size_t threads, void (*thread)(void *, size_t),
                                       void (*finish)(void *))
{
	scene = (struct scene){.rounds = 1};
	return (struct weir_model_program){name, threads, &scene, sizeof(scene), setup, thread, finish};
}

static int check_fire(void)
{
	static const char *const calls[WEIR_MODEL_CALLS + 1] = {"", "", "", "fire", NULL};
	static const uint32_t bounds[WEIR_MODEL_CALLS] = {0};
	struct weir_model_program program = scope("cancel_1_fire_1_hook_on_off", 2, on_off_beside_fire, called_unless_off);
	int bad = 0;

	bad |= scope_as_far_as(&program, 200000);
	bad |= scope_stops(&program, scope_long() ? 0 : 1000, calls, bounds);
	program = scope("cancel_1_fire_1_hook_on_off_x2", 2, on_off_beside_fire, called_unless_off);
	scene.rounds = 2;
	bad |= scope_as_far_as(&program, 100000);
	program = scope("cancel_1_fire_2_hooks_on_off", 3, on_off_beside_fire, called_unless_off);
	bad |= scope_as_far_as(&program, scope_long() ? 0 : 50000);
	program = scope("cancel_1_fire_1_hook_on", 2, on_beside_fire, all_called);
	bad |= scope_complete(&program);
	program = scope("cancel_1_fire_2_hooks_on", 3, on_beside_fire, all_called);
	bad |= scope_as_far_as(&program, scope_long() ? 0 : 50000);
	program = scope("cancel_2_fires", 2, two_fires, first_once);
	bad |= scope_complete(&program);
	program = scope("cancel_3_fires", 3, three_fires, first_of_three);
	bad |= scope_complete(&program);
	program = scope("cancel_2_fires_1_hook_on_off", 3, two_fires, first_once);
	scene.data = 7;
	bad |= scope_as_far_as(&program, scope_long() ? 0 : 50000);
	return bad;
}

static int check_slots_and_end(void)
{
	struct weir_model_program program = scope("cancel_2_hooks_on_off_x2", 2, slots_change_hands, none_called);
	int bad = 0;

	scene.rounds = 2;
	bad |= scope_as_far_as(&program, 100000);
	program = scope("cancel_3_hooks_on_off", 3, slots_change_hands, none_called);
	bad |= scope_as_far_as(&program, scope_long() ? 0 : 50000);
	program = scope("cancel_fire_and_release_beside_cause_and_release", 2, cause_and_release, NULL);
	program.setup = setup_held;
	bad |= scope_complete(&program);
	program = scope("cancel_fire_and_release_beside_a_question", 2, fire_and_release_beside_a_question, not_unused);
	program.setup = setup_held;
	return bad | scope_complete(&program);
}

int main(int argc, char **argv)
{
	scope_arguments(argc, argv);
	return check_fire() | check_slots_and_end();
}
