/*
 * check_await.c - operations that wait on an object: what a change carries to them.
 *
 * The object is as weak as sync/await.h lets it be: a count that is changed and read relaxed. So that an attempt sees a change is for the
 * list, the claim and AGAIN to bring about (A2, P1). Areas and variables read their states seq_cst, which hides that. Asked of every
 * execution: each wait ends, and with an item.
 */
#include <weir/alloc.h>
#include <weir/reclaim.h>

#include "base/atomic.h"
#include "model/scope.h"
#include "reclaim/scope.h"
#include "sync/await.h"

enum { THREADS = 3 };

static struct scene {
	struct weiri_awaits awaits;
	_Atomic(int) items;
	int taken[THREADS];
} scene;

/* Takes one. */
static enum weir_status attempt(struct weiri_scope *scope, struct weiri_await *await, weir_error *error)
{
	/* [relaxed] see above; the CAS decides. */
	int items = weiri_load_relaxed(&scene.items);

	(void)scope, (void)await, (void)error;
	while (items != 0) {
		if (weiri_cas_relaxed(&scene.items, &items, items - 1))
			return WEIR_OK;
	}
	return WEIR_WOULD_BLOCK;
}

static void take(size_t me)
{
	struct weiri_record *record = weiri_record_get();
	struct weiri_await *await =
		weiri_await_create(&scene.awaits, sizeof(*await), "take", attempt, NULL, weir_default_allocator(), NULL);

	weir_model_assert(weiri_await_run(record, await, WEIR_NO_DEADLINE, NULL, NULL) == WEIR_OK);
	weiri_await_release(await);
	scene.taken[me]++;
	weiri_await_pump(record, &scene.awaits);
}

static void put(size_t me)
{
	(void)me;
	(void)weiri_fetch_add_relaxed(&scene.items, 1);
	weiri_await_pump(weiri_record_get(), &scene.awaits);
}

static const struct scope {
	const char *name;
	const char *calls[THREADS]; /* t takes, p puts */
	int puts;
} scopes[] = {
	{"await_take_beside_put", {"t", "p"}, 1},
	{"await_2_takes_beside_2_puts", {"tt", "pp"}, 2},
	{"await_take_beside_2_puts", {"t", "p", "p"}, 2},
	{"await_2_takes_of_2_beside_2_puts", {"t", "t", "pp"}, 2},
};

static const struct scope *current;

static void call(size_t me, char what)
{
	(what == 't' ? take : put)(me);
}

static void setup(void *context)
{
	(void)context;
	weiri_awaits_init(&scene.awaits, "items", "model");
}

static void thread(void *context, size_t me)
{
	(void)context;
	scope_calls(me, current->calls[me], call);
}

static void finish(void *context)
{
	(void)context;
	weir_model_assert(weiri_awaits_check_idle(&scene.awaits, NULL) == WEIR_OK);
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
	scope_arguments(argc, argv);
	return scope_all(prepare, sizeof(scopes) / sizeof(scopes[0]));
}
