/*
 * check_coordinator.c - a coordinator's stop during its join, and members that leave while the
 * joiner frees it.
 *
 * After the join the joiner sees what a member wrote before it left. A leaving member accesses no
 * memory that the joiner may have freed. One of the reported errors reaches the joiner. Each thread
 * that reported another error learns that it came too late.
 */
#include <stdio.h>
#include <string.h>
#include <weir/coordinator.h>
#include <weir/reclaim.h>
#include <weir/time.h>

#include "model/scope.h"
#include "model/threads.h"

enum { MOST = 3 };

static struct scene {
	weir_coordinator *coordinator;
	weir_coordinator_member *members[MOST];
	size_t count;      /* of members */
	uint64_t grace_ns; /* of the join */
	size_t started;    /* threads that thread 0 has started */
	int destroyed;
	int data[MOST];
	enum weir_status requested[MOST + 1], joined;
} scene;

static void setup(void *context)
{
	(void)context;
	weir_model_assert(weir_coordinator_create(NULL, &scene.coordinator, NULL) == WEIR_OK);
	for (size_t i = 0; i < scene.count; i++)
		weir_model_assert(weir_coordinator_enter(scene.coordinator, "member", &scene.members[i], NULL) == WEIR_OK);
}

static void finish(void *context)
{
	(void)context;
	if (!scene.destroyed)
		weir_model_assert(weir_coordinator_destroy(scene.coordinator, NULL) == WEIR_OK);
	weir_model_assert(weir_reclaim_flush(0) == WEIR_OK);
}

static void join(void)
{
	scene.joined = weir_coordinator_join(scene.coordinator, WEIR_NO_DEADLINE, scene.grace_ns, 0, NULL);
}

static void request(size_t who, enum weir_status code)
{
	weir_error cause = {.code = code, .message = "cause"};

	weir_model_call_begins(0);
	scene.requested[who] = weir_coordinator_request_stop(scene.coordinator, code == WEIR_OK ? NULL : &cause);
	weir_model_call_ends(0);
}

/* Thread 0 joins and destroys; the members write and leave. */
static void leave(void *context, size_t who)
{
	(void)context;
	if (who != 0) {
		scene.data[who - 1] = 1;
		weir_coordinator_leave(scene.members[who - 1]);
		return;
	}
	join();
	weir_model_assert(scene.joined == WEIR_OK);
	for (size_t i = 0; i < scene.count; i++)
		weir_model_assert(scene.data[i] == 1);
	weir_model_assert(weir_coordinator_destroy(scene.coordinator, NULL) == WEIR_OK);
	scene.destroyed = 1;
}

/* The first member requests a stop, with a cause, before it leaves. */
static void stop_and_leave(void *context, size_t who)
{
	(void)context;
	if (who == 1) {
		scene.data[0] = 1;
		request(1, WEIR_DATA_LOSS);
		weir_model_assert(scene.requested[1] == WEIR_OK);
	}
	if (who != 0) {
		weir_coordinator_leave(scene.members[who - 1]);
		return;
	}
	join();
	weir_model_assert(scene.joined == WEIR_DATA_LOSS && scene.data[0] == 1);
	weir_model_assert(weir_coordinator_destroy(scene.coordinator, NULL) == WEIR_OK);
	scene.destroyed = 1;
}

/*
 * A thread that is not a member requests a stop during the join. Either the joiner gets the error
 * of that thread, or the request returns the error, because it came too late.
 */
static void stop_beside_join(void *context, size_t who)
{
	(void)context;
	if (who == 0)
		join();
	else if (who == 1)
		request(1, WEIR_DATA_LOSS);
	else
		weir_coordinator_leave(scene.members[0]);
}

static void error_is_somewhere(void *context)
{
	weir_model_assert((scene.joined == WEIR_DATA_LOSS) == (scene.requested[1] == WEIR_OK));
	weir_model_assert(scene.joined == WEIR_OK || scene.joined == WEIR_DATA_LOSS);
	weir_model_assert(scene.requested[1] == WEIR_OK || scene.requested[1] == WEIR_DATA_LOSS);
	finish(context);
}

/*
 * Two threads request a stop, each with a cause. The first cause is kept. A thread that waits for
 * the stop is woken, and sees what was written before the stop.
 */
static void two_causes(void *context, size_t who)
{
	(void)context;
	if (who == 0) {
		weir_model_assert(weir_coordinator_wait_for_stop(scene.coordinator, WEIR_NO_DEADLINE) == WEIR_OK);
		weir_model_assert(weir_coordinator_should_stop(scene.coordinator));
		scene.joined = weir_coordinator_status(scene.coordinator, NULL);
		weir_model_assert(scene.joined == WEIR_DATA_LOSS || scene.joined == WEIR_INTERNAL);
	} else {
		request(who, who == 1 ? WEIR_DATA_LOSS : WEIR_INTERNAL);
		weir_model_assert(scene.requested[who] == WEIR_OK);
		weir_model_assert(weir_coordinator_status(scene.coordinator, NULL) != WEIR_OK);
	}
}

static void one_cause(void *context)
{
	weir_model_assert(weir_coordinator_status(scene.coordinator, NULL) == scene.joined);
	finish(context);
}

/*
 * The coordinator starts thread 1. After the join, thread 0 sees what thread 1 wrote, and the
 * system's thread was joined.
 */
static enum weir_status write_data(weir_coordinator *coordinator, void *context, weir_error *error)
{
	(void)error;
	weir_model_assert(coordinator == scene.coordinator);
	*(int *)context = 1;
	return WEIR_OK;
}

static void start_join_destroy(void *context, size_t who)
{
	(void)context;
	if (who != 0) {
		weiri_model_lend(who - 1);
		return;
	}
	for (size_t i = 0; i < scene.started; i++)
		weir_model_assert(weir_coordinator_start_thread(scene.coordinator, "t", write_data, &scene.data[i], NULL) ==
		                  WEIR_OK);
	join();
	weir_model_assert(scene.joined == WEIR_OK);
	for (size_t i = 0; i < scene.started; i++)
		weir_model_assert(scene.data[i] == 1);
	weir_model_assert(weir_coordinator_destroy(scene.coordinator, NULL) == WEIR_OK);
	scene.destroyed = 1;
}

/* A thread that enters after the stop was cleared sees a coordinator that is not stopped. */
static void clear_and_enter(void *context, size_t who)
{
	(void)context;
	if (who == 1) {
		request(1, WEIR_DATA_LOSS);
		weir_coordinator_leave(scene.members[0]);
		return;
	}
	join();
	weir_model_assert(scene.joined == WEIR_DATA_LOSS);
	weir_model_assert(weir_coordinator_clear_stop(scene.coordinator, NULL) == WEIR_OK);
	weir_model_assert(!weir_coordinator_should_stop(scene.coordinator));
	weir_model_assert(!weir_cancel_fired(weir_coordinator_cancel(scene.coordinator)));
	weir_model_assert(weir_coordinator_status(scene.coordinator, NULL) == WEIR_OK);
}

/* A thread that finds that the join is over sees what the members did. */
static void look_for_the_join(void *context, size_t who)
{
	(void)context;
	if (who == 0) {
		join();
	} else if (who == 1) {
		scene.data[0] = 1;
		weir_coordinator_leave(scene.members[0]);
	} else if (weir_coordinator_joined(scene.coordinator)) {
		weir_model_assert(scene.data[0] == 1);
	}
}

/*
 * Two threads request a stop, and members enter and leave. No call waits, so a thread that the
 * checker stops half way delays no other thread.
 */
static void stop_enter_leave(void *context, size_t who)
{
	weir_coordinator_member *member;

	(void)context;
	if (who < 2) {
		request(who, who == 0 ? WEIR_DATA_LOSS : WEIR_INTERNAL);
		weir_model_assert(weir_cancel_fired(weir_coordinator_cancel(scene.coordinator)));
	} else if (weir_coordinator_enter(scene.coordinator, "member", &member, NULL) == WEIR_OK) {
		weir_coordinator_leave(scene.members[0]);
		weir_coordinator_leave(member);
	}
}

static int check_progress(void)
{
	static const char *const calls[WEIR_MODEL_CALLS + 1] = {"request_stop", NULL};
	static const uint32_t bounds[WEIR_MODEL_CALLS] = {0};
	struct weir_model_program program = {
		"coordinator_2_stops_beside_enter_and_2_leaves", 3, &scene, sizeof(scene), setup, stop_enter_leave, finish};

	scene = (struct scene){.count = 1};
	return scope_stops(&program, scope_long() ? 100000 : 300, calls, bounds);
}

static int check(const char *name, size_t threads, size_t members, void (*thread)(void *, size_t), void (*end)(void *),
                 uint64_t executions)
{
	struct weir_model_program program = {name, threads, &scene, sizeof(scene), setup, thread, end};

	scene = (struct scene){.count = members, .started = threads - 1, .grace_ns = UINT64_MAX};
	return scope_as_far_as(&program, scope_long() ? executions * 100 : executions);
}

int main(int argc, char **argv)
{
	int bad = 0;

	scope_arguments(argc, argv);
	bad |= check("coordinator_join_and_destroy_beside_1_leave", 2, 1, leave, finish, 20000);
	bad |= check("coordinator_join_and_destroy_beside_2_leaves", 3, 2, leave, finish, 20000);
	bad |= check("coordinator_join_and_destroy_beside_stop_and_leave", 2, 1, stop_and_leave, finish, 20000);
	bad |= check("coordinator_join_and_destroy_beside_stop_and_2_leaves", 3, 2, stop_and_leave, finish, 20000);
	bad |= check("coordinator_join_beside_stop_without_members", 2, 0, stop_beside_join, error_is_somewhere, 20000);
	bad |= check("coordinator_join_beside_stop_and_1_leave", 3, 1, stop_beside_join, error_is_somewhere, 20000);
	bad |= check("coordinator_2_causes_1_waits_for_the_stop", 3, 0, two_causes, one_cause, 20000);
	bad |= check("coordinator_join_beside_leave_and_joined", 3, 1, look_for_the_join, finish, 20000);
	bad |= check("coordinator_clear_after_stop_and_leave", 2, 1, clear_and_enter, finish, 20000);
	bad |= check("coordinator_start_1_join_and_destroy", 2, 0, start_join_destroy, finish, 20000);
	bad |= check("coordinator_start_2_join_and_destroy", 3, 0, start_join_destroy, finish, 20000);
	bad |= check_progress();
	return bad;
}
