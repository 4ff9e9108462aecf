/*
 * check_pending.c - operations that wait on an object: no operation misses a change.
 *
 * The object orders as little as sync/pending.h allows: it is a count that is changed and read
 * relaxed. That an attempt sees a change therefore depends on the list, the claim and AGAIN alone
 * (O2, P1). Areas and variables read their states seq_cst, which would hide a fault. Required of
 * every execution: each wait ends, with an item.
 *
 * In some scopes a take is started before the threads begin, and threads wait with its handle and a
 * token. Required then: each wait ends when the take has ended or the token was fired, and its
 * status says which of the two; the take ends once.
 */
#include <weir/alloc.h>
#include <weir/cancel.h>
#include <weir/pending.h>
#include <weir/reclaim.h>
#include <weir/time.h>

#include "base/atomic.h"
#include "model/scope.h"
#include "reclaim/scope.h"
#include "sync/waitable.h"

enum { THREADS = 3 };

static struct scene {
	struct weiri_waitable waitable;
	_Atomic(int) items;
	int taken[THREADS];
	weir_pending *handle; /* of the take that was started */
	weir_cancel *token;
	int told;
} scene;

/* Takes one item. */
static enum weiri_pending_outcome attempt(struct weiri_scope *scope, weir_pending *pending, bool *moved)
{
	/* [relaxed] see above; the CAS decides. */
	int items = weiri_load_relaxed(&scene.items);

	(void)scope;
	while (items != 0) {
		if (weiri_cas_relaxed(&scene.items, &items, items - 1))
			return weiri_waitable_outcome(pending, WEIR_OK, moved);
	}
	return weiri_waitable_outcome(pending, WEIR_WOULD_BLOCK, moved);
}

static const struct weiri_pending_kind kind = WEIRI_WAITABLE_KIND(attempt, NULL);

static void take(size_t me)
{
	struct weiri_record *record = weiri_record_get();
	struct weiri_waitable_op *op =
		weiri_waitable_op_create(&scene.waitable, &kind, sizeof(*op), "take", weir_default_allocator(), NULL);

	weir_model_assert(weiri_pending_run(record, &op->pending, WEIR_NO_DEADLINE, NULL, NULL) == WEIR_OK);
	weiri_pending_release(&op->pending);
	scene.taken[me]++;
	weiri_waitable_pump(record, &scene.waitable);
}

static void take_ended(weir_pending *pending)
{
	scene.told++;
	weiri_pending_told(pending);
}

static const struct weiri_pending_kind started_kind = WEIRI_WAITABLE_KIND(attempt, take_ended);

static void start_take(void)
{
	struct weiri_waitable_op *op =
		weiri_waitable_op_create(&scene.waitable, &started_kind, sizeof(*op), "take", weir_default_allocator(), NULL);

	weiri_pending_begin(weiri_record_get(), &op->pending, &scene.handle);
}

/* What the callback wrote is plain memory, so that a race is a failure, too. */
static void look_with_handle(void)
{
	enum weir_status status = weir_pending_try_wait(scene.handle, NULL);

	weir_model_assert(status == WEIR_OK || status == WEIR_WOULD_BLOCK);
	if (status == WEIR_OK)
		weir_model_assert(scene.told == 1);
}

static void wait_with_handle(void)
{
	enum weir_status status = weir_pending_wait(scene.handle, WEIR_NO_DEADLINE, scene.token, NULL);

	weir_model_assert(status == WEIR_CANCELLED || (status == WEIR_OK && scene.told == 1));
	weir_model_assert(status == WEIR_OK || weir_cancel_fired(scene.token) ||
	                  weir_pending_try_wait(scene.handle, NULL) == WEIR_CANCELLED);
}

static void put(void)
{
	(void)weiri_fetch_add_relaxed(&scene.items, 1);
	weiri_waitable_pump(weiri_record_get(), &scene.waitable);
}

static const struct scope {
	const char *name;
	const char *calls[THREADS]; /* LETTERS says what each does */
	int puts;
	int starts; /* a take, before the threads begin */
} scopes[] = {
	{"pending_take_beside_put", {"t", "p"}, 1, 0},
	{"pending_2_takes_beside_2_puts", {"tt", "pp"}, 2, 0},
	{"pending_take_beside_2_puts", {"t", "p", "p"}, 2, 0},
	{"pending_2_takes_of_2_beside_2_puts", {"t", "t", "pp"}, 2, 0},
	{"pending_wait_with_handle_beside_put", {"w", "p"}, 1, 1},
	{"pending_wait_with_handle_beside_fire", {"w", "F"}, 0, 1},
	{"pending_wait_with_handle_beside_fire_and_put", {"w", "F", "p"}, 1, 1},
	{"pending_2_waits_with_handle_beside_put", {"w", "w", "p"}, 1, 1},
	{"pending_2_waits_with_handle_beside_fire", {"w", "w", "F"}, 0, 1},
	{"pending_look_with_handle_beside_put", {"l", "p"}, 1, 1},
	{"pending_wait_with_handle_beside_cancel_and_put", {"w", "k", "p"}, 1, 1},
};

static const struct scope *current;

#define LETTERS(LETTER) \
	LETTER('t', "take, waiting", take(me)) \
	LETTER('p', "put", put()) \
	LETTER('w', "wait with the handle of the take that was started", wait_with_handle()) \
	LETTER('l', "check whether the take that was started has ended", look_with_handle()) \
	LETTER('k', "cancel that take", weir_pending_cancel(scene.handle, NULL)) \
	LETTER('F', "fire the token of waits with the handle", (void)weir_cancel_fire(scene.token, NULL))

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
	weiri_waitable_init(&scene.waitable, "items", "model");
	if (current->starts) {
		weir_model_assert(weir_cancel_create(NULL, &scene.token, NULL) == WEIR_OK);
		start_take();
	}
}

static void thread(void *context, size_t me)
{
	(void)context;
	scope_calls(me, current->calls[me], call);
}

static void finish(void *context)
{
	(void)context;
	if (current->starts) {
		weir_pending_cancel(scene.handle, NULL); /* unless it has ended */
		weir_model_assert(scene.told == 1);
		scene.taken[0] += weir_pending_try_wait(scene.handle, NULL) == WEIR_OK;
		weir_pending_release(scene.handle);
		weir_cancel_release(scene.token);
	}
	weir_model_assert(weiri_waitable_check_idle(&scene.waitable, NULL) == WEIR_OK);
	for (size_t i = 0; i < THREADS; i++)
		scene.taken[0] += i != 0 ? scene.taken[i] : 0;
	weir_model_assert(scene.taken[0] + weiri_load_relaxed(&scene.items) == current->puts);
	weir_model_assert(weir_reclaim_flush(0) == WEIR_OK);
}

static struct scope_plan prepare(size_t index)
{
	current = &scopes[index];
	scene = (struct scene){.taken = {0}};
	return (struct scope_plan){.program = {current->name, scope_threads(current->calls, THREADS), &scene, sizeof(scene),
	                                       setup, thread, finish},
	                           .executions = 10000,
	                           .long_executions = 2000000};
}

int main(int argc, char **argv)
{
	static const struct scope_letter letters[] = {LETTERS(LETTER_ROW){0, NULL}};

	scope_letters(argc, argv, letters);
	scope_arguments(argc, argv);
	return scope_all(prepare, sizeof(scopes) / sizeof(scopes[0]));
}
