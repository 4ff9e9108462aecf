/*
 * test_invariants_run.c - the assertions that guard what threads wait for, meet in and run by each
 * fail on a damaged structure.
 */
#include <weir/cancel.h>
#include <weir/coordinator.h>
#include <weir/critical_section.h>
#include <weir/queue_runner.h>
#include <weir/tensor.h>
#include <weir/var.h>
#include <weir/watch.h>

#include "run/countdown.h"
#include "run/critical_section.h"
#include "run/deque.h"
#include "run/inbox.h"
#include "run/members.h"
#include "sync/delivery.h"
#include "sync/eventcount.h"
#include "sync/hash_list.h"
#include "sync/pending.h"
#include "sync/references.h"
#include "sync/waiters.h"
#include "invariants_kit.h"

/* -- operations that wait ---------------------------------------------------------------------- */

static void ignore_read(void *context, enum weir_status status, const weir_error *error, weir_read *read)
{
	(void)context, (void)status, (void)error, (void)read;
}

static weir_pending *pending_wait(void)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I32};
	weir_pending *pending = NULL;
	weir_var *var;

	if (weir_var_create(NULL, &options, &var, NULL) != WEIR_OK ||
	    weir_var_start_wait(var, 0, ignore_read, NULL, &pending, NULL) != WEIR_OK)
		_exit(1);
	return pending;
}

static void plant_attempt_without_claim(void)
{
	struct weiri_scope scope = enter();
	bool moved = false;

	(void)weiri_pending_drive(&scope, pending_wait(), &moved);
}

static void plant_second_completion(void)
{
	weir_pending *pending = pending_wait();

	weir_pending_cancel(pending, NULL);
	weiri_pending_complete(pending);
}

static void plant_uncounted_wait(void)
{
	weir_pending *pending = pending_wait();

	pending->entries->counted = 0;
	weir_pending_cancel(pending, NULL);
}

Test(invariants_run, pending)
{
	expect_broken("O1", plant_attempt_without_claim);
	expect_broken("O3", plant_second_completion);
	expect_broken("O4", plant_uncounted_wait);
}

/* -- sync -------------------------------------------------------------------------------------- */

static int compare_none(const void *key, struct weiri_hash_node *node)
{
	(void)key, (void)node;
	return 0;
}

static void end_none(struct weiri_hash_node *node)
{
	(void)node;
}

static void unsort(void)
{
	static struct weiri_hash_list list;
	static struct weiri_hash_node nodes[2];
	struct weiri_scope scope = enter();

	weiri_hash_list_init(&list, compare_none, weir_default_allocator());
	for (uint64_t i = 0; i < 2; i++) {
		weiri_hash_node_init(&nodes[i], i, sizeof(nodes[i]), do_nothing);
		(void)weiri_hash_list_insert(&scope, &list, &nodes[i], i, &nodes[i]);
	}
	weiri_store_relaxed(&nodes[0].link.order, UINT64_MAX);
	weiri_scope_leave(&scope);
	weiri_hash_list_fini(&list, end_none);
}

static void fence_without_a_post(void)
{
	static struct weiri_waiters waiters;

	weiri_waiters_init(&waiters);
	weiri_store_relaxed(&waiters.word, WEIRI_WAITERS_FENCED);
	(void)weiri_waiters_post(&waiters);
}

static void cancel_without_prepare(void)
{
	struct weiri_eventcount event;

	weiri_eventcount_init(&event);
	weiri_eventcount_cancel(&event);
}

static void tell_none(struct weiri_delivery *delivery)
{
	(void)delivery;
}

static void deliver_twice(void)
{
	static struct weiri_delivery delivery;

	(void)weiri_record_get();
	(void)weiri_deliver_hold();
	(void)weiri_deliver(&delivery, tell_none);
	(void)weiri_deliver(&delivery, tell_none);
}

static void deliver_in_a_section(void)
{
	static struct weiri_delivery delivery;

	(void)enter();
	(void)weiri_deliver(&delivery, tell_none);
}

static void give_back_twice(void)
{
	_Atomic(size_t) references = 1;

	(void)weiri_references_give(&references);
	(void)weiri_references_give(&references);
}

/* The first members are those of cancel.c. */
struct token {
	_Atomic(uint32_t) references, word;
};

static void fire_by_halves(void)
{
	weir_cancel *token = NULL;

	if (weir_cancel_create(NULL, &token, NULL) == WEIR_OK) {
		weiri_store_relaxed(&((struct token *)(void *)token)->word, 1);
		(void)weir_cancel_fire(token, NULL);
	}
}

Test(invariants_run, hash_list)
{
	expect_broken("H1", unsort);
}

Test(invariants_run, waiters)
{
	expect_broken("W3", fence_without_a_post);
}

Test(invariants_run, eventcount)
{
	expect_broken("I1", cancel_without_prepare);
}

Test(invariants_run, delivery)
{
	expect_broken("D2", deliver_twice);
	expect_broken("D4", deliver_in_a_section);
}

Test(invariants_run, references)
{
	expect_broken("R1", give_back_twice);
}

Test(invariants_run, cancel)
{
	expect_broken("C2", fire_by_halves);
}

/* -- run --------------------------------------------------------------------------------------- */

static void push_beyond_capacity(void)
{
	struct weiri_deque deque;

	if (!weiri_deque_init(&deque, 2, weir_default_allocator()))
		_exit(1);
	weiri_store_relaxed(&deque.bottom, 9);
	(void)weiri_deque_push(&deque, &deque);
}

static void end_with_a_member(void)
{
	struct weiri_members members;

	weiri_members_init(&members, weir_default_allocator());
	(void)weiri_members_claim(&members, "who");
	weiri_members_fini(&members);
}

static void arrive_twice(void)
{
	struct weiri_countdown countdown;

	weiri_countdown_init(&countdown, 1);
	(void)weiri_countdown_arrive(&countdown);
	(void)weiri_countdown_arrive(&countdown);
}

static void leave_a_gap(void)
{
	struct weiri_inbox inbox;

	if (!weiri_inbox_init(&inbox, weir_default_allocator()))
		_exit(1);
	weiri_store_relaxed(&inbox.rings[2], weiri_load_relaxed(&inbox.rings[0]));
	weiri_inbox_fini(&inbox);
}

static weir_critical_section *section(void)
{
	weir_critical_section *made = NULL;

	if (weir_critical_section_create(NULL, &made, NULL) != WEIR_OK)
		_exit(1);
	return made;
}

static void return_the_right_twice(void)
{
	weiri_critical_section_leave(section());
}

static void be_inside_twice(void)
{
	weir_critical_section *made = section();
	struct weiri_inside outer, inner;

	weiri_inside_begin(&outer, made);
	weiri_inside_begin(&inner, made);
}

/* The first members are those of coordinator.c. */
struct coordinator {
	_Atomic(uintptr_t) outcome;
	_Atomic(uint32_t) crowd;
};

static void leave_when_all_have_left(void)
{
	weir_coordinator *coordinator;
	weir_coordinator_member *member;

	if (weir_coordinator_create(NULL, &coordinator, NULL) != WEIR_OK ||
	    weir_coordinator_enter(coordinator, "one", &member, NULL) != WEIR_OK)
		_exit(1);
	weiri_store_relaxed(&((struct coordinator *)(void *)coordinator)->crowd, 0);
	weir_coordinator_leave(member);
}

/* The members are those of queue_runner.c. */
struct queue_runner {
	weir_allocator allocator;
	void *threads;
	size_t thread_count;
	uint64_t end_codes;
	weir_queue_runner_close_fn *close, *cancel;
	void *queue, *own, *kept;
	size_t kept_size;
	char name[32];
	void *coordinator, *hook;
	_Atomic(uint32_t) running, left;
};

static enum weir_status forget_who_runs(void *context, weir_cancel *cancel, weir_error *error)
{
	struct queue_runner **runner = context;

	(void)cancel, (void)error;
	weiri_store_relaxed(&(*runner)->running, 0);
	return WEIR_OUT_OF_RANGE;
}

static enum weir_status forget_who_is_left(void *context, weir_cancel *cancel, weir_error *error)
{
	struct queue_runner **runner = context;

	(void)cancel, (void)error;
	weiri_store_relaxed(&(*runner)->left, 0);
	return WEIR_OUT_OF_RANGE;
}

static void run_once(weir_queue_runner_fn *step)
{
	static weir_queue_runner *runner;
	struct weir_queue_runner_step only = {step, &runner, "only"};
	struct weir_queue_runner_options options = {WEIR_QUEUE_RUNNER_OPTIONS_INIT, .steps = &only, .step_count = 1};

	if (weir_queue_runner_create(&options, &runner, NULL) != WEIR_OK ||
	    weir_queue_runner_start(runner, NULL, NULL) != WEIR_OK)
		_exit(1);
	(void)weir_queue_runner_join(runner, WEIR_NO_DEADLINE);
	for (;;)
		(void)pause(); /* the thread violates the invariant, which ends the process */
}

static void end_a_run_twice(void)
{
	run_once(forget_who_runs);
}

static void be_left_twice(void)
{
	run_once(forget_who_is_left);
}

Test(invariants_run, coordinator)
{
	expect_broken("I3", leave_when_all_have_left);
}

Test(invariants_run, queue_runner)
{
	expect_broken("I1", end_a_run_twice);
	expect_broken("I2", be_left_twice);
}

Test(invariants_run, deque)
{
	expect_broken("I2", push_beyond_capacity);
}

Test(invariants_run, members)
{
	expect_broken("I3", end_with_a_member);
}

Test(invariants_run, countdown)
{
	expect_broken("C1", arrive_twice);
}

Test(invariants_run, inbox)
{
	expect_broken("I1", leave_a_gap);
}

Test(invariants_run, critical_section)
{
	expect_broken("C2", return_the_right_twice);
	expect_broken("C3", be_inside_twice);
}

static void break_nothing(void)
{
}

Test(invariants_run, a_sound_structure_breaks_none)
{
	char said[SAID];

	cr_assert_eq(run_child(break_nothing, said), 0, "%s", said);
}
