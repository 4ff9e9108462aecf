/*
 * check_waiters.c - no waiter stays asleep after a change: either the thread that makes the change
 * sees that there is a waiter, or the waiter sees the change. This must hold in three cases: the
 * waiter runs the fence, the threads that make changes run it, or the duty to run it is being
 * handed back.
 *
 * Here the list is one bit for each waiter, because it only matters whether the list is empty.
 * check_list.c checks the algorithm of the real list.
 */
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <weir/time.h>

#include "model/scope.h"
#include "sync/park.h"
#include "sync/waiters.h"

enum { MOST = 4 };

/*
 * waits[i]: thread i waits this many times, first for one change, then for two, and so on.
 * makes[i]: thread i makes this many changes. If `all` is not 0, each wait is for that many
 * changes, and the setup has posted the word, which settles it, and looked at it once.
 */
struct scope {
	const char *name;
	int waits[MOST], makes[MOST], all;
};

static const struct scope scopes[] = {
	{"waiters_1_change_1_waiter", {0, 1}, {1, 0}, 0},
	{"waiters_2_changes_1_waiter", {0, 1}, {2, 0}, 0},
	{"waiters_2_changes_1_waiter_x2", {0, 2}, {2, 0}, 0},
	{"waiters_3_changes_1_waiter_x2", {0, 2}, {3, 0}, 0},
	{"waiters_1_change_2_waiters", {0, 1, 1}, {1, 0, 0}, 0},
	{"waiters_2_changes_2_waiters", {0, 1, 1}, {2, 0, 0}, 0},
	{"waiters_2_changers_1_waiter_x2", {0, 0, 2}, {1, 1, 0}, 0},
	{"waiters_2_changes_2_waiters_x2", {0, 2, 2}, {2, 0, 0}, 0},
	{"waiters_1_and_3_changes_1_waiter_while_a_post_ends", {1, 0, 0}, {0, 1, 3}, 4},
};

static struct scene {
	const struct scope *scope;
	struct weiri_waiters waiters;
	_Atomic(int) changes;
	_Atomic(int) needs[MOST];
	_Atomic(uint32_t) woken[MOST];
} scene;

/* -- a waiter ---------------------------------------------------------------------------------- */

static uintptr_t bit(size_t number)
{
	return (uintptr_t)1 << number;
}

static void wait_for(size_t number, int changes)
{
	/* [relaxed] the value tells nothing about other changes. */
	if (weiri_load_relaxed(&scene.changes) >= changes)
		return;
	weiri_store_relaxed(&scene.woken[number], 0u);
	weiri_store_relaxed(&scene.needs[number], changes);
	(void)weiri_fetch_or_release(&scene.waiters.list.first, bit(number));
	weir_model_assert(weiri_waiters_post(&scene.waiters));
	if (weiri_load_relaxed(&scene.changes) < changes)
		(void)weiri_park_wait(&scene.woken[number], 0, WEIR_NO_DEADLINE);
	(void)weiri_fetch_and_acquire(&scene.waiters.list.first, ~bit(number));
}

/* -- a notifier -------------------------------------------------------------------------------- */

/* Serves the waiters that need no more changes than there are. */
static int serve(void)
{
	uintptr_t listed = weiri_load_acquire(&scene.waiters.list.first);
	int served = 0;

	for (size_t i = 0; i < MOST; i++) {
		if ((listed & bit(i)) == 0 || weiri_load_relaxed(&scene.changes) < weiri_load_relaxed(&scene.needs[i]))
			continue;
		(void)weiri_fetch_and_acquire(&scene.waiters.list.first, ~bit(i));
		weiri_store_release(&scene.woken[i], 1u);
		weiri_park_wake(&scene.woken[i], 1);
		served = 1;
	}
	return served;
}

static void change(void)
{
	(void)weiri_fetch_add_relaxed(&scene.changes, 1);
	if (!weiri_waiters_posted(&scene.waiters))
		return;
	while (weiri_waiters_look(&scene.waiters)) {
		if (!serve())
			break;
	}
}

/* -- scopes ------------------------------------------------------------------------------------ */

static void thread(void *context, size_t number)
{
	(void)context;
	for (int i = 1; i <= scene.scope->waits[number]; i++)
		wait_for(number, scene.scope->all != 0 ? scene.scope->all : i);
	for (int i = 0; i < scene.scope->makes[number]; i++)
		change();
}

static void setup(void *context)
{
	(void)context;
	if (scene.scope->all == 0)
		return;
	(void)weiri_waiters_post(&scene.waiters);
	(void)weiri_waiters_look(&scene.waiters);
}

static void no_thread_waits(void *context)
{
	(void)context;
	weir_model_assert(weiri_load_relaxed(&scene.waiters.list.first) == 0);
}

static struct scope_plan prepare(size_t index)
{
	const struct scope *scope = &scopes[index];
	size_t threads = 0;

	while (threads < MOST && scope->waits[threads] + scope->makes[threads] != 0)
		threads++;
	scene = (struct scene){.scope = scope};
	return (struct scope_plan){.program = {scope->name, threads, &scene, sizeof(scene), setup, thread, no_thread_waits},
	                           .executions = 100000};
}

int main(int argc, char **argv)
{
	const size_t count = sizeof(scopes) / sizeof(scopes[0]);
	int bad;

	scope_arguments(argc, argv);
	bad = scope_all(prepare, count);
	scope_symmetric(1);
	return bad | scope_all(prepare, count);
}
