/*
 * check_urcu.c - variables in sections of a flavour of liburcu: attaching, grace periods that are
 * started and that are waited for, detaching, beside peeks and collections.
 *
 * The flavour is a table of functions of this program, so all of lib/urcu is under test. Its sections are
 * those of foreign_sections.h. Its call_rcu() puts the callback into a place, from which the thread that runs
 * callbacks takes it. In half of the scopes that exchange orders nothing: then only what Weir orders
 * counts. In the other half it orders what liburcu's orders, and both ends touch the callback's head, as
 * there: then the next use of the head must come after the end of the callback.
 *
 * A thread that yields goes on when all others have ended or sleep, so that loops end.
 */
#include <urcu/call-rcu.h>
#include <urcu/flavor.h>
#include <weir/reclaim.h>
#include <weir/time.h>
#include <weir/urcu.h>
#include <weir/value.h>

#include "base/atomic.h"
#include "base/futex.h"
#include "model/foreign_sections.h"
#include "model/scope.h"

enum { THREADS = 3, PLACES = 2 * WEIR_URCU_STARTED };

struct words {
	int64_t left, right;
};

enum first { NOTHING, ATTACHED, ATTACHED_WITH_CALL_RCU, DETACHED };

static struct scene {
	const char *calls[THREADS];
	enum first first;
	bool orders; /* call_rcu() orders what comes before it and the callback */
	weir_var *var;
	int64_t next[THREADS];
	_Atomic(weir_urcu *) host;
	_Atomic(uint32_t) inside[THREADS]; /* the reader is in a section */
	_Atomic(struct rcu_head *) places[PLACES];
	_Atomic(uint32_t) not_woken;
	_Atomic(uint32_t) flag; /* of the program, which uses it beside the variable */
	bool asks;              /* two threads look whether the other came first */
	bool saw, saw_flag;     /* it did */
} scene;

/* -- the flavour ------------------------------------------------------------------------------- */

int sched_yield(void);

/* The deadline passes when no thread can run. */
int sched_yield(void)
{
	(void)weiri_futex_wait_shared(&scene.not_woken, 0, weir_deadline_in(1));
	return 0;
}

static void synchronize(void)
{
	while (!foreign_grace_period(scene.inside, THREADS))
		(void)sched_yield();
}

static void place(struct rcu_head *head)
{
	for (size_t i = 0; i < PLACES; i++) {
		struct rcu_head *none = NULL;

		if (scene.orders ? weiri_cas_release(&scene.places[i], &none, head)
		                 : weiri_cas_relaxed(&scene.places[i], &none, head))
			return;
	}
	weir_model_assert(!"a place");
}

static _Atomic(uintptr_t) function; /* of all callbacks */

static void call(struct rcu_head *head, void (*callback)(struct rcu_head *head))
{
	weiri_store_relaxed(&function, (uintptr_t)callback);
	if (scene.orders)
		head->func = callback;
	place(head);
}

static void run_callback(struct rcu_head *head)
{
	if (scene.orders)
		weir_model_assert((uintptr_t)head->func == weiri_load_relaxed(&function));
	((void (*)(struct rcu_head *))weiri_load_relaxed(&function))(head);
}

/* Runs those whose grace period ends now, or waits for its end. */
static void run_callbacks(bool waits)
{
	for (size_t i = 0; i < PLACES; i++) {
		struct rcu_head *head;

		if (weiri_load_relaxed(&scene.places[i]) == NULL)
			continue;
		head = scene.orders ? weiri_exchange_acquire(&scene.places[i], NULL)
		                    : weiri_exchange_relaxed(&scene.places[i], NULL);
		if (head == NULL)
			continue;
		if (waits)
			synchronize();
		if (waits || foreign_grace_period(scene.inside, THREADS))
			run_callback(head);
		else
			place(head);
	}
}

static void barrier(void)
{
	run_callbacks(true);
}

static const struct rcu_flavor_struct flavour = {
	.update_call_rcu = call, .update_synchronize_rcu = synchronize, .barrier = barrier};

/* -- calls ------------------------------------------------------------------------------------- */

static void attach(uint32_t flags)
{
	struct weir_urcu_options options = {WEIR_URCU_OPTIONS_INIT, .flags = flags};
	weir_urcu *host;

	weir_model_assert(weir_urcu_attach(&flavour, &options, &host, NULL) == WEIR_OK);
	weiri_store_release(&scene.host, host); /* the program lets its readers begin */
}

static void detach(void)
{
	weir_model_assert(weir_urcu_detach(weiri_exchange_acquire(&scene.host, NULL), NULL) == WEIR_OK);
}

/* Two looks, so that the second one shows whether the value of the first is still there. */
static void peek_twice(size_t me)
{
	const struct words *first, *second;

	foreign_enter(&scene.inside[me]);
	/* In the section, so that a detach, which takes the host away first, waits for it. */
	if (weiri_load_acquire(&scene.host) != NULL) {
		first = weir_urcu_peek(scene.var)->data;
		weir_model_assert(first->left == first->right);
		second = weir_urcu_peek(scene.var)->data;
		weir_model_assert(second->left == second->right && first->left == first->right);
	}
	foreign_leave(&scene.inside[me]);
}

static void write(size_t me)
{
	int64_t number = (int64_t)(10 * (me + 1)) + scene.next[me]++;
	struct words next = {number, number};

	weir_model_assert(weir_var_assign_value(scene.var, WEIR_VALUE_OF(next), WEIR_NO_DEADLINE, NULL, NULL) == WEIR_OK);
}

static void peek_after_the_flag(size_t me)
{
	const weir_read *read;

	scene.asks = true;
	weiri_store_seq_cst(&scene.flag, 1u);
	foreign_enter(&scene.inside[me]);
	read = weir_urcu_peek(scene.var);
	if (read->version > 2) /* that of setup() */
		scene.saw = true;
	foreign_leave(&scene.inside[me]);
}

static void write_before_the_flag(size_t me)
{
	write(me);
	if (weiri_load_seq_cst(&scene.flag) != 0)
		scene.saw_flag = true;
}

static void start(void)
{
	weir_urcu *host = weiri_load_acquire(&scene.host);

	if (host != NULL)
		weir_model_assert(weir_urcu_try_start(host) == WEIR_OK);
}

#define LETTERS(LETTER) \
	LETTER('o', "attach the flavour", attach(0)) \
	LETTER('O', "attach it, with call_rcu() by collections", attach(WEIR_URCU_CALL_RCU)) \
	LETTER('d', "detach it", detach()) \
	LETTER('r', "peek twice in a section of it", peek_twice(me)) \
	LETTER('w', "write the variable", write(me)) \
	LETTER('y', "set the flag, and peek", peek_after_the_flag(me)) \
	LETTER('j', "write, and look at the flag", write_before_the_flag(me)) \
	LETTER('s', "start a grace period", start()) \
	LETTER('g', "wait for a grace period", weir_urcu_synchronize(weiri_load_acquire(&scene.host))) \
	LETTER('c', "run the callbacks whose grace period ends", run_callbacks(false)) \
	LETTER('f', "free what was retired", (void)weir_reclaim_flush(0))

static void make_call(size_t me, char what)
{
	switch (what) {
		LETTERS(LETTER_CASE)
	default: weir_model_assert(!"a letter of the table");
	}
}

static void thread(void *context, size_t me)
{
	(void)context;
	scope_calls(me, scene.calls[me], make_call);
}

static void setup(void *context)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .kind = WEIR_VAR_INLINE, .size = sizeof(struct words)};
	struct words first = {0, 0};

	(void)context;
	weir_model_assert(weir_var_create_value(WEIR_VALUE_OF(first), &options, &scene.var, NULL) == WEIR_OK);
	if (scene.first != NOTHING)
		attach(scene.first == ATTACHED ? 0 : WEIR_URCU_CALL_RCU);
	if (scene.first == DETACHED)
		detach();
	write(0); /* so that there is something to collect */
}

/* After one more grace period nothing is kept. */
static void finish(void *context)
{
	weir_urcu *host = weiri_exchange_acquire(&scene.host, NULL);

	(void)context;
	weir_model_assert(!scene.asks || scene.saw || scene.saw_flag);
	weir_model_assert(weir_urcu_detach(host, NULL) == WEIR_OK);
	weir_model_assert(weir_var_destroy(scene.var, NULL) == WEIR_OK);
	weir_model_assert(weir_reclaim_flush(0) == WEIR_OK);
}

static const struct row {
	const char *name;
	const char *calls[THREADS];
	enum first first;
	bool orders;
	uint64_t stopped; /* see struct scope_plan; 0: a call may wait for the stopped thread */
} rows[] = {
	{"urcu_start_beside_callbacks", {"os", "c"}, NOTHING, false, 30},
	{"urcu_2_starts_beside_callbacks_that_are_ordered", {"s", "s", "cc"}, ATTACHED, true, 30},
	{"urcu_detach_beside_callbacks", {"sd", "c"}, ATTACHED, false, 0},
	{"urcu_detach_beside_collection", {"d", "f"}, ATTACHED_WITH_CALL_RCU, true, 0},
	{"urcu_detach_beside_collection_that_orders_nothing", {"d", "f"}, ATTACHED_WITH_CALL_RCU, false, 0},
	{"urcu_attach_beside_collection", {"O", "f"}, NOTHING, true, 30},
	{"urcu_attach_after_a_detach_beside_collection_and_callbacks", {"O", "fc"}, DETACHED, true, 30},
	{"urcu_attach_again_beside_collection", {"dO", "f"}, ATTACHED_WITH_CALL_RCU, true, 0},
	{"urcu_peek_and_write_around_a_flag", {"y", "j"}, ATTACHED, true, 30},
	{"urcu_peek_beside_write_and_grace_period", {"r", "wgf"}, ATTACHED, true, 0},
	{"urcu_detach_beside_peek_beside_write_and_collection", {"r", "d", "wf"}, ATTACHED, true, 0},
	{"urcu_peek_beside_write_beside_callbacks", {"r", "wsf", "cf"}, ATTACHED, true, 30},
	{"urcu_peek_beside_write_and_collection_that_starts", {"r", "wf", "cf"}, ATTACHED_WITH_CALL_RCU, true, 30},
};

static struct scope_plan prepare(size_t index)
{
	const struct row *row = &rows[index];

	scene = (struct scene){
		.calls = {row->calls[0], row->calls[1], row->calls[2]}, .first = row->first, .orders = row->orders};
	return (struct scope_plan){
		.program = {row->name, scope_threads(row->calls, THREADS), &scene, sizeof(scene), setup, thread, finish},
		.executions = 25000,
		.long_executions = 2000000,
		.stopped = row->stopped,
		.long_stopped = 3000};
}

int main(int argc, char **argv)
{
	static const struct scope_letter letters[] = {LETTERS(LETTER_ROW){0, NULL}};

	scope_letters(argc, argv, letters);
	scope_arguments(argc, argv);
	return scope_all(prepare, sizeof(rows) / sizeof(rows[0]));
}
