/*
 * check_pending.c - operations that wait on an object: what they receive from a change, and what
 * threads with the handle of an operation receive from its end.
 *
 * The object is as weak as sync/pending.h allows: a count that is changed and read relaxed. So it
 * depends only on the list, the claim and AGAIN that an attempt sees a change (O2, P1). Areas and
 * variables read their states seq_cst, which would hide a fault. Required of every execution: each
 * wait ends, with an item. A thread that is told that an operation has ended sees what its callback
 * wrote (plain memory, so that a race is a failure, too).
 */
#include <weir/alloc.h>
#include <weir/reclaim.h>

#include "base/atomic.h"
#include "model/scope.h"
#include "reclaim/scope.h"
#include "sync/waitable.h"

enum { THREADS = 3 };

static struct scene {
	struct weiri_waitable waitable;
	_Atomic(int) items;
	int taken[THREADS];
	weir_pending *started; /* NULL: none */
	int told;              /* plain: written by the callback of `started` */
} scene;

/* Takes one item. */
static enum weiri_pending_outcome attempt(struct weiri_scope *scope, weir_pending *pending, int *moved)
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

/* Of one that was started. */
static void tell(weir_pending *pending)
{
	scene.told++;
	weiri_pending_told(pending);
}

static const struct weiri_pending_kind kind = WEIRI_WAITABLE_KIND(attempt, tell);

static struct weiri_waitable_op *create(void)
{
	return weiri_waitable_op_create(&scene.waitable, &kind, sizeof(struct weiri_waitable_op), "take",
	                                weir_default_allocator(), NULL);
}

static void take(size_t me)
{
	struct weiri_record *record = weiri_record_get();
	struct weiri_waitable_op *op = create();

	weir_model_assert(weiri_pending_run(record, &op->pending, WEIR_NO_DEADLINE, NULL, NULL) == WEIR_OK);
	weiri_pending_release(&op->pending);
	scene.taken[me]++;
	weiri_waitable_pump(record, &scene.waitable);
}

static void put(void)
{
	(void)weiri_fetch_add_relaxed(&scene.items, 1);
	weiri_waitable_pump(weiri_record_get(), &scene.waitable);
}

static void wait_for_started(void)
{
	weir_model_assert(weir_pending_wait(scene.started, WEIR_NO_DEADLINE, NULL, NULL) == WEIR_OK);
	weir_model_assert(scene.told == 1);
}

static void look_at_started(void)
{
	enum weir_status status = weir_pending_try_wait(scene.started, NULL);

	weir_model_assert(status == WEIR_OK || status == WEIR_WOULD_BLOCK);
	if (status == WEIR_OK)
		weir_model_assert(scene.told == 1);
}

static const struct scope {
	const char *name;
	const char *calls[THREADS]; /* LETTERS says what each does */
	int puts;
	int starts; /* 1: a take is started before the threads begin */
} scopes[] = {
	{"pending_take_beside_put", {"t", "p"}, 1, 0},
	{"pending_2_takes_beside_2_puts", {"tt", "pp"}, 2, 0},
	{"pending_take_beside_2_puts", {"t", "p", "p"}, 2, 0},
	{"pending_2_takes_of_2_beside_2_puts", {"t", "t", "pp"}, 2, 0},
	{"pending_wait_with_handle_beside_put", {"w", "p"}, 1, 1},
	{"pending_2_waits_with_handle_beside_put", {"w", "w", "p"}, 1, 1},
	{"pending_look_with_handle_beside_put", {"l", "p"}, 1, 1},
};

static const struct scope *current;

#define LETTERS(LETTER) \
	LETTER('t', "take, waiting", take(me)) \
	LETTER('p', "put", put()) \
	LETTER('w', "wait for the take that was started", wait_for_started()) \
	LETTER('l', "look whether the take that was started has ended", look_at_started())

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
	if (current->starts)
		weiri_pending_begin(weiri_record_get(), &create()->pending, &scene.started);
}

static void thread(void *context, size_t me)
{
	(void)context;
	scope_calls(me, current->calls[me], call);
}

static void finish(void *context)
{
	(void)context;
	weir_pending_release(scene.started);
	weir_model_assert(weiri_waitable_check_idle(&scene.waitable, NULL) == WEIR_OK);
	for (size_t i = 0; i < THREADS; i++)
		scene.taken[0] += i != 0 ? scene.taken[i] : 0;
	weir_model_assert(scene.taken[0] + scene.told + weiri_load_relaxed(&scene.items) == current->puts);
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
