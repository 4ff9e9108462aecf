/*
 * check_sync.c - sleeping and waking: no wake-up is lost, the woken thread sees what the waker
 * wrote, and the memory of the word may be freed when the wait has returned.
 */
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <weir/cancel.h>
#include <weir/time.h>

#include "model/scope.h"
#include "run/countdown.h"
#include "run/gate.h"
#include "run/signal.h"
#include "sync/reader_count.h"
#include "sync/cancel.h"
#include "sync/eventcount.h"
#include "sync/park.h"

static struct scene {
	struct weiri_eventcount event;
	_Atomic(uint32_t) items, other;
	uint64_t deadline; /* of the waiters */
	int count;         /* for notify */
	int data;
	weir_cancel *token;
	struct weiri_signal signal;
	struct weiri_gate *gate;
	struct weiri_countdown *left;
	struct weiri_latch latch;
	_Atomic(uint32_t) shut, readers;
	int gone;
	int seen[4];
} scene;

/* -- eventcount: waiters take one item each; a notifier makes one available and notifies ------- */

static void setup_event(void *context)
{
	(void)context;
	weiri_eventcount_init(&scene.event);
}

static int take_item(void)
{
	uint32_t items = weiri_load_acquire(&scene.items);

	while (items != 0) {
		if (weiri_cas_acquire(&scene.items, &items, items - 1)) {
			weir_model_assert(scene.data == 7);
			return 1;
		}
	}
	return 0;
}

static void wait_for_item(void)
{
	enum weiri_park_result result = WEIRI_PARK_WOKEN;

	while (!take_item() && result == WEIRI_PARK_WOKEN) {
		struct weiri_eventcount_key key = weiri_eventcount_prepare(&scene.event);

		if (take_item()) {
			weiri_eventcount_cancel(&scene.event);
			/* The thread has an item without this wake-up, so it passes the wake-up on. */
			weiri_eventcount_notify(&scene.event, 1);
			return;
		}
		result = weiri_eventcount_wait(&scene.event, key, scene.deadline);
	}
	if (result == WEIRI_PARK_TIMEOUT)
		weiri_eventcount_notify(&scene.event, 1);
}

static void make_item(void)
{
	weiri_fetch_add_release(&scene.items, 1);
	weir_model_call_begins(0);
	weiri_eventcount_notify(&scene.event, scene.count);
	weir_model_call_ends(0);
}

static void one_waiter(void *context, size_t number)
{
	(void)context;
	if (number == 0) {
		scene.data = 7;
		make_item();
	} else {
		while (!weiri_load_acquire(&scene.items)) {
			struct weiri_eventcount_key key = weiri_eventcount_prepare(&scene.event);

			if (weiri_load_acquire(&scene.items)) {
				weiri_eventcount_cancel(&scene.event);
				break;
			}
			if (weiri_eventcount_wait(&scene.event, key, scene.deadline) == WEIRI_PARK_TIMEOUT)
				return;
		}
		weir_model_assert(scene.data == 7);
	}
}

/* One thread produces two items, and two other threads take one each. */
static void two_waiters(void *context, size_t number)
{
	(void)context;
	if (number == 0) {
		make_item();
		make_item();
	} else {
		wait_for_item();
	}
}

static void no_waiter_left(void *context)
{
	(void)context;
	weir_model_assert(weiri_load_relaxed(&scene.event.waiters) == 0);
}

/* The notifier looks for waiters before it makes the condition true. */
static void notify_too_early(void *context, size_t number)
{
	if (number == 0) {
		weiri_eventcount_notify(&scene.event, 1);
		weiri_fetch_add_release(&scene.items, 1);
	} else {
		scene.deadline = WEIR_NO_DEADLINE;
		one_waiter(context, number);
	}
}

static int check_eventcount(void)
{
	struct weir_model_program program = {
		"eventcount_1_notifier_1_waiter", 2, &scene, sizeof(scene), setup_event, one_waiter, no_waiter_left};
	int bad = 0;

	scene = (struct scene){.deadline = WEIR_NO_DEADLINE, .count = 1};
	bad |= scope_complete(&program);
	program.threads = 3;
	program.name = "eventcount_notify_all_2_waiters";
	scene.count = INT_MAX;
	bad |= scope_as_far_as(&program, 200000);
	program.name = "eventcount_deadline_racing_notify_2_waiters";
	scene.deadline = 2;
	scene.count = 1;
	bad |= scope_as_far_as(&program, 200000);
	scene.deadline = WEIR_NO_DEADLINE;
	scene.data = 7;
	program.name = "eventcount_1_notifier_x2_2_waiters";
	program.thread = two_waiters;
	bad |= scope_as_far_as(&program, 200000);
	scene = (struct scene){.deadline = WEIR_NO_DEADLINE, .count = 1, .data = 7};
	program = (struct weir_model_program){
		"eventcount_notify_before_the_change", 2, &scene, sizeof(scene), setup_event, notify_too_early, NULL};
	bad |= scope_finds(&program, "all threads sleep");
	return bad;
}

/* -- a wait that a cancel token, an item or its deadline ends ---------------------------------- */

static void setup_cancellable(void *context)
{
	setup_event(context);
	weir_model_assert(weir_cancel_create(NULL, &scene.token, NULL) == WEIR_OK);
}

static void wake_all(void *context)
{
	weiri_eventcount_notify_all(context);
}

/* The steps of the library's waits: look, prepare, look again, sleep. */
static enum weir_status wait_cancellable(void)
{
	for (;;) {
		struct weiri_eventcount_key key;

		if (take_item())
			return WEIR_OK;
		if (weir_cancel_fired(scene.token))
			return WEIR_CANCELLED;
		key = weiri_eventcount_prepare(&scene.event);
		if (weiri_load_acquire(&scene.items) != 0 || weir_cancel_fired(scene.token))
			weiri_eventcount_cancel(&scene.event);
		else if (weiri_eventcount_wait(&scene.event, key, scene.deadline) == WEIRI_PARK_TIMEOUT)
			return WEIR_DEADLINE_EXCEEDED;
	}
}

/* Thread 0 waits, thread 1 fires, thread 2 makes an item. */
static void cancellable_thread(void *context, size_t number)
{
	weir_cancel_hook *hook;

	(void)context;
	if (number == 1) {
		weir_model_assert(weir_cancel_fire(scene.token, NULL) == 1);
	} else if (number == 2) {
		make_item();
	} else {
		weir_model_assert(weiri_cancel_on_wait(scene.token, wake_all, &scene.event, &hook) == WEIR_OK);
		scene.seen[0] = (int)wait_cancellable();
		(void)weir_cancel_off(hook);
	}
}

static void ended_for_a_reason(void *context)
{
	uint32_t left = weiri_load_relaxed(&scene.items);

	no_waiter_left(context);
	weir_model_assert(scene.seen[0] == WEIR_OK ? left == 0 : left == (uint32_t)scene.count);
	weir_model_assert(scene.seen[0] != WEIR_DEADLINE_EXCEEDED || scene.deadline != WEIR_NO_DEADLINE);
	weir_cancel_release(scene.token);
}

static int check_cancellable(void)
{
	struct weir_model_program program = {
		"wait_beside_fire", 2, &scene, sizeof(scene), setup_cancellable, cancellable_thread, ended_for_a_reason};
	int bad = 0;

	scene = (struct scene){.deadline = WEIR_NO_DEADLINE, .data = 7};
	bad |= scope_complete(&program);
	program.name = "wait_with_deadline_beside_fire";
	scene.deadline = 2;
	bad |= scope_complete(&program);
	program.threads = 3;
	program.name = "wait_beside_fire_and_notify";
	scene.deadline = WEIR_NO_DEADLINE;
	scene.count = 1;
	bad |= scope_as_far_as(&program, scope_long() ? 0 : 50000);
	program.name = "wait_with_deadline_beside_fire_and_notify";
	scene.deadline = 2;
	return bad | scope_as_far_as(&program, scope_long() ? 0 : 50000);
}

/* -- park alone -------------------------------------------------------------------------------- */

static void park_thread(void *context, size_t number)
{
	(void)context;
	if (number == 0) {
		scene.data = 7;
		weiri_store_release(&scene.items, 1);
		weiri_park_wake(&scene.items, INT_MAX);
	} else if (weiri_park_wait(&scene.items, 0, scene.deadline) == WEIRI_PARK_WOKEN) {
		weir_model_assert(scene.data == 7);
	} else {
		weir_model_assert(scene.deadline != WEIR_NO_DEADLINE);
	}
}

enum { EXPECTED = 0, CHANGED = 1, ASLEEP = 3 };

/* The waiter marks the word before it sleeps. A thread that finds the mark wakes it. */
static void marked_thread(void *context, size_t number)
{
	uint32_t seen = EXPECTED;

	(void)context;
	if (number == 0) {
		scene.data = 7;
		/* [release] and below: pairs with the wait. */
		if (weiri_cas_release(&scene.items, &seen, (uint32_t)CHANGED))
			return;
		weir_model_assert(seen == ASLEEP);
		weiri_store_release(&scene.items, (uint32_t)CHANGED);
		weiri_park_wake(&scene.items, 1);
	} else if (weiri_park_wait_marked(&scene.items, EXPECTED, ASLEEP, scene.deadline) == WEIRI_PARK_WOKEN) {
		weir_model_assert(scene.data == 7);
	}
}

/* No waiter has overwritten the change. */
static void change_stands(void *context)
{
	(void)context;
	weir_model_assert(weiri_load_relaxed(&scene.items) == CHANGED);
}

static int check_marked(void)
{
	struct weir_model_program program = {"park_marked", 2, &scene, sizeof(scene), NULL, marked_thread, change_stands};
	int bad;

	scene = (struct scene){.deadline = WEIR_NO_DEADLINE};
	bad = scope_complete(&program);
	program.name = "park_marked_with_deadline";
	scene.deadline = 2;
	bad |= scope_complete(&program);
	program.name = "park_marked_that_only_looks";
	scene.deadline = 0;
	return bad | scope_complete(&program);
}

static int check_park(void)
{
	struct weir_model_program program = {"park_1_wake_2_waits", 3, &scene, sizeof(scene), NULL, park_thread, NULL};
	int bad = 0;

	scene = (struct scene){.deadline = WEIR_NO_DEADLINE};
	bad |= scope_complete(&program);
	program.name = "park_with_deadline_1_wake_2_waits";
	scene.deadline = 2;
	bad |= scope_complete(&program);
	program.name = "park_that_only_looks_1_wake_2_looks";
	scene.deadline = 0;
	return bad | scope_complete(&program);
}

/* -- signal ------------------------------------------------------------------------------------ */

static void setup_signal(void *context)
{
	(void)context;
	weiri_signal_init(&scene.signal);
}

static void signal_thread(void *context, size_t number)
{
	(void)context;
	if (number > 0) {
		if (number == 1)
			scene.data = 7;
		weiri_store_relaxed(number == 1 ? &scene.items : &scene.other, 1);
		weiri_signal_raise(&scene.signal);
		return;
	}
	for (;;) {
		uint32_t seen = weiri_signal_now(&scene.signal);

		if (weiri_load_relaxed(&scene.items) != 0 && weiri_load_relaxed(&scene.other) != 0)
			break;
		(void)weiri_signal_wait(&scene.signal, seen, WEIR_NO_DEADLINE);
	}
}

/* One thread raises, and the raise publishes its data. */
static void signal_data(void *context, size_t number)
{
	(void)context;
	if (number == 1) {
		scene.data = 7;
		weiri_signal_raise(&scene.signal);
	} else {
		(void)weiri_signal_wait(&scene.signal, 0, WEIR_NO_DEADLINE);
		weir_model_assert(scene.data == 7);
	}
}

/*
 * A wait that its deadline ended leaves its bit in the signal. The next wait must not take this bit
 * for a raise.
 */
static void wait_again(void *context, size_t number)
{
	uint32_t seen;

	(void)context;
	if (number == 1) {
		weiri_signal_raise(&scene.signal);
		return;
	}
	seen = weiri_signal_now(&scene.signal);
	for (uint64_t deadline = 2; deadline < 4; deadline++)
		weir_model_assert(weiri_signal_wait(&scene.signal, seen, deadline) != WEIRI_PARK_WOKEN ||
		                  weiri_signal_now(&scene.signal) != seen);
}

static int check_signal(void)
{
	struct weir_model_program program = {"signal_1_raiser", 2, &scene, sizeof(scene), setup_signal, signal_data, NULL};
	int bad = 0;

	scene = (struct scene){0};
	bad |= scope_complete(&program);
	program.name = "signal_2_waits_with_deadline_beside_raise";
	program.thread = wait_again;
	bad |= scope_complete(&program);
	program.name = "signal_2_raisers";
	program.threads = 3;
	program.thread = signal_thread;
	return bad | scope_as_far_as(&program, 200000);
}

/* -- gate and countdown: they may be freed when the last user has left ------------------------- */

static void setup_gate(void *context)
{
	(void)context;
	scene.gate = weir_model_allocate(sizeof(*scene.gate), 16);
	weiri_gate_init(scene.gate);
	scene.left = weir_model_allocate(sizeof(*scene.left), 16);
	weiri_countdown_init(scene.left, 3);
}

/* A user that is inside from the start leaves while the owner closes. */
static void leave_thread(void *context, size_t number)
{
	(void)context;
	if (number == 0) {
		(void)weiri_gate_close(scene.gate);
		weiri_gate_wait(scene.gate);
		weir_model_assert(scene.seen[1] == 1 && scene.seen[2] == 1);
		weir_model_release(scene.gate);
	} else {
		scene.seen[number] = 1;
		weiri_gate_leave(scene.gate);
	}
}

static void setup_inside(void *context)
{
	setup_gate(context);
	(void)weiri_gate_enter(scene.gate);
	(void)weiri_gate_enter(scene.gate);
}

static void free_left(void *context)
{
	(void)context;
	weir_model_release(scene.left);
}

static void countdown_thread(void *context, size_t number)
{
	struct weiri_countdown *left = scene.left;

	(void)context;
	scene.seen[number] = 1;
	if (weiri_countdown_arrive(left)) {
		weir_model_assert(scene.seen[0] + scene.seen[1] + scene.seen[2] == 3);
		weir_model_release(left);
	}
}

/* The same with a last call that only looks. */
static void finish_thread(void *context, size_t number)
{
	struct weiri_countdown *left = scene.left;

	(void)context;
	scene.seen[number] = 1;
	if (weiri_countdown_finish(left, 1)) {
		weir_model_assert(scene.seen[0] + scene.seen[1] + scene.seen[2] == 3);
		weir_model_release(left);
	}
}

static void free_gate(void *context)
{
	(void)context;
	weir_model_release(scene.gate);
}

static void free_both(void *context)
{
	free_gate(context);
	free_left(context);
}

/*
 * One thread closes the gate, and another thread waits and frees it. When the wait has returned,
 * its thread sees what was done before the close, and the closing thread no longer accesses the
 * gate.
 */
static void close_elsewhere(void *context, size_t number)
{
	(void)context;
	scene.seen[number] = 1;
	if (number == 0) {
		(void)weiri_gate_close(scene.gate);
	} else if (number == 1) {
		weiri_gate_leave(scene.gate);
	} else {
		weiri_gate_wait(scene.gate);
		weir_model_assert(scene.seen[0] == 1 && scene.seen[1] == 1);
		weir_model_release(scene.gate);
	}
}

static void setup_one_inside(void *context)
{
	setup_gate(context);
	(void)weiri_gate_enter(scene.gate);
}

/* A late user stays out. The owner waits for each user that entered. */
static void enter_beside_close(void *context, size_t number)
{
	(void)context;
	if (number == 0) {
		weir_model_assert(weiri_gate_close(scene.gate) == 1);
		weiri_gate_wait(scene.gate);
		scene.gone = 1;
	} else if (weiri_gate_enter(scene.gate)) {
		weir_model_assert(scene.gone == 0);
		weiri_gate_leave(scene.gate);
	}
}

/* The owner changes what the gate guards and opens it again. A user inside sees it whole, and no change. */
static void change_beside_enters(void *context, size_t number)
{
	(void)context;
	if (number == 0) {
		weir_model_assert(weiri_gate_close(scene.gate) == 1);
		weiri_gate_wait(scene.gate);
		scene.seen[0] = 1;
		scene.seen[3] = 1;
		weiri_gate_open(scene.gate);
		weir_model_assert(weiri_gate_close(scene.gate) == 1);
		weiri_gate_wait(scene.gate);
		scene.seen[0] = 2;
		scene.seen[3] = 2;
	} else if (weiri_gate_enter(scene.gate)) {
		int before = scene.seen[0];

		weir_model_assert(scene.seen[3] == before && before != 2);
		weiri_gate_leave(scene.gate);
	}
}

/* Who finds the gate drained sees what was done inside. */
static void look_beside_leave(void *context, size_t number)
{
	(void)context;
	if (number == 0) {
		scene.seen[0] = 1;
		weiri_gate_leave(scene.gate);
	} else {
		(void)weiri_gate_close(scene.gate);
		weir_model_assert(!weiri_gate_is_drained(scene.gate) || scene.seen[0] == 1);
	}
}

static int check_gate(void)
{
	struct weir_model_program inside = {
		"gate_close_beside_2_leaves", 3, &scene, sizeof(scene), setup_inside, leave_thread, free_left};
	struct weir_model_program countdown = {"countdown_3_arrive", 3,        &scene, sizeof(scene), setup_gate,
	                                       countdown_thread,     free_gate};
	struct weir_model_program finish = countdown;
	int bad = 0;

	scene = (struct scene){0};
	bad |= scope_as_far_as(&inside, 200000);
	bad |= scope_stops(&countdown, 0, NULL, NULL);
	finish.name = "countdown_3_finish";
	finish.thread = finish_thread;
	bad |= scope_complete(&finish) | scope_stops(&finish, 0, NULL, NULL);
	inside.name = "gate_closed_and_waited_for_by_two";
	inside.setup = setup_one_inside;
	inside.thread = close_elsewhere;
	bad |= scope_complete(&inside);
	inside.name = "gate_close_beside_2_enters";
	inside.setup = setup_gate;
	inside.thread = enter_beside_close;
	inside.finish = free_both;
	bad |= scope_complete(&inside);
	inside.name = "gate_opened_again_beside_2_enters";
	inside.thread = change_beside_enters;
	bad |= scope_complete(&inside);
	inside.name = "gate_close_and_look_beside_a_leave";
	inside.threads = 2;
	inside.setup = setup_one_inside;
	inside.thread = look_beside_leave;
	bad |= scope_complete(&inside);
	return bad | scope_complete(&countdown);
}

/* -- latch: the winner's data ------------------------------------------------------------------ */

static void setup_latch(void *context)
{
	(void)context;
	weiri_latch_init(&scene.latch);
}

static void latch_thread(void *context, size_t number)
{
	(void)context;
	if (weiri_latch_claim(&scene.latch)) {
		scene.data = (int)number + 1;
		weiri_latch_set(&scene.latch);
		scene.seen[number] = 1;
	} else if (weiri_latch_is_set(&scene.latch)) {
		weir_model_assert(scene.data != 0 && scene.data != (int)number + 1);
	}
}

static void one_winner(void *context)
{
	(void)context;
	weir_model_assert(scene.seen[0] + scene.seen[1] + scene.seen[2] == 1);
}

static int check_latch(void)
{
	struct weir_model_program program = {"latch_3_claim", 3,         &scene, sizeof(scene), setup_latch,
	                                     latch_thread,    one_winner};

	scene = (struct scene){0};
	return scope_complete(&program);
}

/* -- reader count: the owner writes again when no thread reads any longer ---------------------- */

static void lend(void)
{
	if (weiri_load_acquire(&scene.shut) != 0 && !weiri_has_readers(&scene.readers))
		scene.data = 0;
}

static void read_what_is_lent(void)
{
	weiri_reader_begin(&scene.readers);
	if (weiri_load_relaxed(&scene.shut) == 0)
		weir_model_assert(scene.data == 7);
	weiri_reader_end(&scene.readers);
}

static void reader_count_thread(void *context, size_t number)
{
	(void)context;
	if (number == 0)
		lend();
	else if (number == 1)
		weiri_store_release(&scene.shut, 1u);
	else
		read_what_is_lent();
}

static int check_reader_count(void)
{
	struct weir_model_program program = {"reader_count_1_owner", 3,   &scene, sizeof(scene), NULL,
	                                     reader_count_thread,    NULL};
	int bad;

	scene = (struct scene){.data = 7};
	bad = scope_complete(&program);
	program.name = "reader_count_1_owner_2_readers";
	program.threads = 4;
	return bad | scope_complete(&program);
}

int main(int argc, char **argv)
{
	int bad;

	scope_arguments(argc, argv);
	bad = check_eventcount() | check_cancellable() | check_park() | check_marked() | check_signal() | check_gate() |
	      check_latch() | check_reader_count();
	scope_symmetric(1);
	return bad | check_eventcount() | check_cancellable();
}
