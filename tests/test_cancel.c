/*
 * test_cancel.c - a token fires once, and each hook runs once or never. A caller that is told which
 * of the two can rely on it.
 */
#include <criterion/criterion.h>

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <weir/cancel.h>
#include <weir/reclaim.h>
#include <weir/time.h>

#include "base/atomic.h"
#include "failing_allocator.h"
#include "reclaim/record.h"
#include "stepped.h"
#include "sync/cancel.h"

static weir_cancel *new_token(void)
{
	weir_cancel *token = NULL;

	cr_assert_eq(weir_cancel_create(NULL, &token, NULL), WEIR_OK);
	return token;
}

static void flush(void)
{
	cr_assert_eq(weir_reclaim_flush(weir_deadline_in(UINT64_C(100000000000))), WEIR_OK);
}

/* What a hook saw. */
struct seen {
	_Atomic(int) runs;
	pthread_t thread;
	weir_cancel *token;
	weir_cancel_hook *hook; /* removed or added inside */
	int off;
};

static void note(void *context)
{
	struct seen *seen = context;

	seen->thread = pthread_self();
	(void)weiri_fetch_add_acq_rel(&seen->runs, 1);
}

/* -- the token --------------------------------------------------------------------------------- */

Test(cancel, a_new_token_has_not_fired)
{
	weir_cancel *token = new_token();
	weir_error error = {.code = WEIR_INTERNAL};

	cr_expect_eq(weir_cancel_fired(token), 0);
	cr_expect_eq(weir_cancel_cause(token, &error), WEIR_OK);
	cr_expect_eq(error.code, WEIR_INTERNAL, "the error is written only if the token has fired");
	weir_cancel_release(token);
}

Test(cancel, null_is_a_token_that_never_fires)
{
	cr_expect_eq(weir_cancel_fired(NULL), 0);
	cr_expect_eq(weir_cancel_cause(NULL, NULL), WEIR_OK);
	cr_expect_eq(weir_cancel_fire(NULL, NULL), 0);
	cr_expect_null(weir_cancel_retain(NULL));
	weir_cancel_release(NULL);
	cr_expect_eq(weir_cancel_off(NULL), 1);
}

Test(cancel, bad_arguments_are_refused)
{
	weir_cancel *token = new_token();
	weir_cancel_hook *hook = NULL;
	struct seen seen = {0};

	cr_expect_eq(weir_cancel_create(NULL, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_cancel_on(NULL, note, &seen, &hook), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_cancel_on(token, NULL, &seen, &hook), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_cancel_on(token, note, &seen, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_null(hook);
	cr_expect_eq(weir_cancel_fire(token, NULL), 1);
	cr_expect_eq(seen.runs, 0);
	weir_cancel_release(token);
}

Test(cancel, only_the_first_fire_counts_and_its_cause_is_kept)
{
	weir_cancel *token = new_token();
	weir_error first = {WEIR_ABORTED, "the first"}, second = {WEIR_INTERNAL, "the second"}, cause = {0};

	cr_expect_eq(weir_cancel_fire(token, &first), 1);
	cr_expect_eq(weir_cancel_fire(token, &second), 0);
	cr_expect_eq(weir_cancel_fired(token), 1);
	cr_expect_eq(weir_cancel_cause(token, &cause), WEIR_ABORTED);
	cr_expect_eq(weir_cancel_cause(token, NULL), WEIR_ABORTED);
	cr_expect_eq(cause.code, WEIR_ABORTED);
	cr_expect_str_eq(cause.message, "the first");
	weir_cancel_release(token);
}

Test(cancel, a_cause_whose_message_is_not_terminated_is_cut)
{
	weir_cancel *token = new_token();
	weir_error endless = {.code = WEIR_ABORTED}, told = {0};

	memset(endless.message, 'x', sizeof(endless.message));
	memset(told.message, 'y', sizeof(told.message));
	cr_assert_eq(weir_cancel_fire(token, &endless), 1);
	cr_expect_eq(weir_cancel_cause(token, &told), WEIR_ABORTED);
	cr_assert_not_null(memchr(told.message, '\0', sizeof(told.message)));
	cr_expect_eq(strlen(told.message), WEIR_ERROR_MESSAGE_SIZE - 1);
	weir_cancel_release(token);
}

Test(cancel, a_fire_without_a_cause_means_cancelled)
{
	weir_error ok = {WEIR_OK, "no error at all"}, cause = {0};
	const weir_error *causes[] = {NULL, &ok};

	for (int i = 0; i < 2; i++) {
		weir_cancel *token = new_token();

		cr_expect_eq(weir_cancel_fire(token, causes[i]), 1);
		cr_expect_eq(weir_cancel_cause(token, &cause), WEIR_CANCELLED);
		cr_expect_eq(cause.code, WEIR_CANCELLED);
		cr_expect_str_eq(cause.message, "cancelled");
		weir_cancel_release(token);
	}
}

Test(cancel, a_token_lives_until_its_last_reference_goes)
{
	struct failing_allocator state = {0};
	weir_allocator allocator = failing_allocator_hooks(&state);
	weir_cancel *token;

	cr_assert_eq(weir_cancel_create(&allocator, &token, NULL), WEIR_OK);
	cr_expect_eq(weir_cancel_retain(token), token);
	weir_cancel_release(token);
	cr_expect_eq(weiri_load_relaxed(&state.outstanding), 1);
	cr_expect_eq(weir_cancel_fired(token), 0);
	weir_cancel_release(token);
	cr_expect_str_eq(failing_allocator_verdict(&state), "balanced");
}

/* -- hooks ------------------------------------------------------------------------------------- */

Test(cancel, each_hook_runs_once_on_the_firing_thread_before_fire_returns)
{
	weir_cancel *token = new_token();
	struct seen seen[5] = {0};
	weir_cancel_hook *hooks[5];

	for (int i = 0; i < 5; i++)
		cr_assert_eq(weir_cancel_on(token, note, &seen[i], &hooks[i]), WEIR_OK);
	cr_expect_eq(weir_cancel_fire(token, NULL), 1);
	for (int i = 0; i < 5; i++) {
		cr_expect_eq(seen[i].runs, 1);
		cr_expect(pthread_equal(seen[i].thread, pthread_self()));
	}
	cr_expect_eq(weir_cancel_fire(token, NULL), 0);
	for (int i = 0; i < 5; i++) {
		cr_expect_eq(seen[i].runs, 1);
		cr_expect_eq(weir_cancel_off(hooks[i]), 0, "it has run");
	}
	weir_cancel_release(token);
}

Test(cancel, a_hook_on_a_fired_token_runs_before_on_returns)
{
	weir_cancel *token = new_token();
	struct seen seen = {0};
	weir_cancel_hook *hook = NULL;

	cr_expect_eq(weir_cancel_fire(token, NULL), 1);
	cr_expect_eq(weir_cancel_on(token, note, &seen, &hook), WEIR_OK);
	cr_expect_eq(seen.runs, 1);
	cr_assert_not_null(hook);
	cr_expect_eq(weir_cancel_off(hook), 0);
	weir_cancel_release(token);
}

Test(cancel, a_hook_that_was_taken_off_never_runs)
{
	weir_cancel *token = new_token();
	struct seen seen[3] = {0};
	weir_cancel_hook *hooks[3];

	for (int i = 0; i < 3; i++)
		cr_assert_eq(weir_cancel_on(token, note, &seen[i], &hooks[i]), WEIR_OK);
	cr_expect_eq(weir_cancel_off(hooks[1]), 1);
	cr_expect_eq(weir_cancel_fire(token, NULL), 1);
	cr_expect_eq(seen[0].runs, 1);
	cr_expect_eq(seen[1].runs, 0);
	cr_expect_eq(seen[2].runs, 1);
	cr_expect_eq(weir_cancel_off(hooks[0]), 0);
	cr_expect_eq(weir_cancel_off(hooks[2]), 0);
	weir_cancel_release(token);
}

Test(cancel, a_hook_sees_the_token_fired_and_its_cause)
{
	weir_cancel *token = new_token();
	weir_error why = {WEIR_DATA_LOSS, "row 7"};
	weir_cancel_hook *hook;
	struct seen seen = {0};

	cr_assert_eq(weir_cancel_on(token, note, &seen, &hook), WEIR_OK);
	cr_expect_eq(weir_cancel_fire(token, &why), 1);
	cr_expect_eq(weir_cancel_cause(token, &why), WEIR_DATA_LOSS);
	cr_expect_eq(weir_cancel_off(hook), 0);
	weir_cancel_release(token);
}

static void take_off_inside(void *context)
{
	struct seen *seen = context;

	seen->off = weir_cancel_off(seen->hook);
	note(context);
}

Test(cancel, a_hook_may_take_itself_off)
{
	weir_cancel *token = new_token();
	struct seen seen = {.off = -1};

	cr_assert_eq(weir_cancel_on(token, take_off_inside, &seen, &seen.hook), WEIR_OK);
	cr_expect_eq(weir_cancel_fire(token, NULL), 1);
	cr_expect_eq(seen.runs, 1);
	cr_expect_eq(seen.off, 0);
	weir_cancel_release(token);
	flush();
}

static void put_on_inside(void *context)
{
	struct seen *seen = context;

	seen->off = weir_cancel_on(seen->token, note, seen, &seen->hook) == WEIR_OK;
}

Test(cancel, a_hook_that_is_put_on_inside_a_hook_runs_at_once)
{
	weir_cancel *token = new_token();
	struct seen seen = {.token = token};
	weir_cancel_hook *outer;

	cr_assert_eq(weir_cancel_on(token, put_on_inside, &seen, &outer), WEIR_OK);
	cr_expect_eq(weir_cancel_fire(token, NULL), 1);
	cr_expect_eq(seen.off, 1);
	cr_expect_eq(seen.runs, 1);
	cr_expect_eq(weir_cancel_off(seen.hook), 0);
	cr_expect_eq(weir_cancel_off(outer), 0);
	weir_cancel_release(token);
}

Test(cancel, a_registered_hook_keeps_its_token_alive)
{
	weir_cancel *token = new_token();
	struct seen seen = {0};
	weir_cancel_hook *hook;

	cr_assert_eq(weir_cancel_on(token, note, &seen, &hook), WEIR_OK);
	weir_cancel_release(token);
	flush();
	/* Only the reference of the hook is left. */
	cr_expect_eq(weir_cancel_fired(token), 0);
	cr_expect_eq(weir_cancel_off(hook), 1);
	flush();
	cr_expect_eq(seen.runs, 0);
}

/* -- a fire that is stopped -------------------------------------------------------------------- */

enum { CROWD = 6 };

/* The hook that runs first blocks its thread until the test releases it. The others only count. */
struct crowd {
	weir_cancel *token;
	weir_cancel_hook *hooks[CROWD];
	_Atomic(int) begun;
	_Atomic(int) let_go;
	_Atomic(int) ended;
	pthread_t thread;
};

static void stop_the_first(void *context)
{
	struct crowd *crowd = context;

	if (weiri_fetch_add_acq_rel(&crowd->begun, 1) == 0) {
		while (!weiri_load_acquire(&crowd->let_go))
			(void)sched_yield();
	}
	(void)weiri_fetch_add_acq_rel(&crowd->ended, 1);
}

static void *fire_the_crowd(void *argument)
{
	struct crowd *crowd = argument;
	weir_error cause = {WEIR_ABORTED, "stopped"};

	(void)weir_cancel_fire(crowd->token, &cause);
	return NULL;
}

/* Returns when another thread has fired the token and stands in the first hook. */
static void begin_stopped_fire(struct crowd *crowd, int waits)
{
	uint64_t until = weir_deadline_in(UINT64_C(100000000000));

	*crowd = (struct crowd){.token = new_token()};
	for (int i = 0; i < CROWD; i++)
		cr_assert_eq(
			(waits ? weiri_cancel_on_wait : weir_cancel_on)(crowd->token, stop_the_first, crowd, &crowd->hooks[i]),
			WEIR_OK);
	cr_assert_eq(pthread_create(&crowd->thread, NULL, fire_the_crowd, crowd), 0);
	while (weiri_load_acquire(&crowd->begun) == 0) {
		cr_assert(weir_now_ns() < until, "no hook has begun");
		(void)sched_yield();
	}
}

static void end_stopped_fire(struct crowd *crowd)
{
	weiri_store_release(&crowd->let_go, 1);
	cr_assert_eq(pthread_join(crowd->thread, NULL), 0);
	cr_expect_eq(weiri_load_acquire(&crowd->begun), CROWD, "each hook runs once");
	cr_expect_eq(weiri_load_acquire(&crowd->ended), CROWD);
	for (int i = 0; i < CROWD; i++)
		cr_expect_eq(weir_cancel_off(crowd->hooks[i]), 0);
	weir_cancel_release(crowd->token);
}

Test(cancel, a_second_fire_runs_what_a_stopped_one_has_left)
{
	struct crowd crowd;

	begin_stopped_fire(&crowd, 0);
	cr_expect_eq(weir_cancel_fire(crowd.token, NULL), 0, "another fire came first");
	cr_expect_eq(weiri_load_acquire(&crowd.ended), CROWD - 1);
	cr_expect_eq(weir_cancel_cause(crowd.token, NULL), WEIR_ABORTED);
	end_stopped_fire(&crowd);
}

Test(cancel, whoever_registers_late_ends_waits_that_a_stopped_fire_has_left)
{
	struct crowd crowd;
	struct seen seen = {0};
	weir_cancel_hook *hook;

	begin_stopped_fire(&crowd, 1);
	cr_assert_eq(weir_cancel_on(crowd.token, note, &seen, &hook), WEIR_OK);
	cr_expect_eq(seen.runs, 1);
	cr_expect_eq(weiri_load_acquire(&crowd.ended), CROWD - 1);
	cr_expect_eq(weir_cancel_off(hook), 0);
	end_stopped_fire(&crowd);
}

Test(cancel, hooks_of_users_run_on_threads_that_fire_only)
{
	struct crowd crowd;
	struct seen seen = {0};
	weir_cancel_hook *hook;

	begin_stopped_fire(&crowd, 0);
	cr_assert_eq(weir_cancel_on(crowd.token, note, &seen, &hook), WEIR_OK);
	weiri_cancel_help(crowd.token);
	cr_expect_eq(weiri_load_acquire(&crowd.begun), 1);
	cr_expect_eq(weir_cancel_off(hook), 0);
	end_stopped_fire(&crowd);
}

/*
 * A fire stands before one of its instructions while another thread fires. When the second fire
 * returns, all hooks have run except at most one, which the first fire runs.
 */
struct stepped_fire {
	weir_cancel *token;
	struct seen seen[3];
	weir_cancel_hook *hooks[3];
	weir_error cause;
};

static void fire_step_by_step(void *context)
{
	struct stepped_fire *fire = context;

	(void)weir_cancel_fire(fire->token, &fire->cause);
}

static void set_up_stepped_fire(struct stepped_fire *fire)
{
	*fire = (struct stepped_fire){.token = new_token(), .cause = {WEIR_ABORTED, "stepped"}};
	for (int i = 0; i < 3; i++)
		cr_assert_eq(weir_cancel_on(fire->token, note, &fire->seen[i], &fire->hooks[i]), WEIR_OK);
}

static void judge_stepped_fire(struct stepped_fire *fire)
{
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(weiri_load_acquire(&fire->seen[i].runs), 1, "hook %d ran %d times", i,
		             weiri_load_acquire(&fire->seen[i].runs));
		cr_assert_eq(weir_cancel_off(fire->hooks[i]), 0);
	}
	weir_cancel_release(fire->token);
}

Test(cancel, a_fire_that_is_stopped_at_any_instruction_keeps_no_other_from_firing)
{
	struct stepped_fire fire;
	struct stepped call = {.call = fire_step_by_step, .context = &fire};
	size_t firsts = 0, at = 0;

	stepped_or_skip();
	set_up_stepped_fire(&fire);
	while (stepped_start(&call, at)) {
		weir_error cause = {WEIR_DATA_LOSS, "overtaken"}, told = {0};
		int first = weir_cancel_fire(fire.token, &cause), ran = 0;

		for (int i = 0; i < 3; i++)
			ran += weiri_load_acquire(&fire.seen[i].runs);
		cr_assert_geq(ran, 2, "stopped at %zu, %d of 3 hooks ran", at, ran);
		cr_assert_eq(weir_cancel_cause(fire.token, &told), first ? WEIR_DATA_LOSS : WEIR_ABORTED);
		cr_assert_str_eq(told.message, first ? "overtaken" : "stepped");
		firsts += (size_t)first;
		stepped_finish(&call);
		judge_stepped_fire(&fire);
		set_up_stepped_fire(&fire);
		at += stepped_stride(1);
	}
	stepped_finish(&call);
	judge_stepped_fire(&fire);
	cr_expect(firsts != 0 && firsts < at, "%zu of %zu", firsts, at);
}

static void *fire_without_a_record(void *argument)
{
	struct crowd *crowd = argument;

	(void)weir_cancel_fire(crowd->token, NULL);
	weiri_store_release(&crowd->let_go, weiri_record_mine == NULL ? 1 : 2);
	return NULL;
}

Test(cancel, a_fire_needs_no_record_and_no_memory)
{
	struct crowd crowd = {.token = new_token()};
	struct seen seen = {0};
	weir_cancel_hook *hook;
	pthread_t thread;

	cr_assert_eq(weir_cancel_on(crowd.token, note, &seen, &hook), WEIR_OK);
	cr_assert_eq(pthread_create(&thread, NULL, fire_without_a_record, &crowd), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_expect_eq(seen.runs, 1);
	cr_expect_eq(weiri_load_acquire(&crowd.let_go), 1, "the thread has a record now");
	cr_expect_eq(weir_cancel_off(hook), 0);
	weir_cancel_release(crowd.token);
}

static void give_back_token(void *context)
{
	weir_cancel_release(context);
}

Test(cancel, a_hook_may_give_back_the_last_reference)
{
	weir_cancel *token = new_token();
	struct seen seen[2] = {{.off = -1}, {.off = -1}};
	weir_cancel_hook *hook;

	/*
	 * Hooks are put on before and after the one that gives the reference back. Each takes itself
	 * off, so that nothing else holds the token.
	 */
	cr_assert_eq(weir_cancel_on(token, take_off_inside, &seen[0], &seen[0].hook), WEIR_OK);
	cr_assert_eq(weir_cancel_on(token, give_back_token, token, &hook), WEIR_OK);
	cr_assert_eq(weir_cancel_on(token, take_off_inside, &seen[1], &seen[1].hook), WEIR_OK);
	cr_expect_eq(weir_cancel_fire(token, NULL), 1);
	cr_expect_eq(seen[0].runs + seen[1].runs, 2);
	cr_expect_eq(weir_cancel_off(hook), 0);
}

static void take_off_and_give_back_token(void *context)
{
	struct seen *seen = context;

	take_off_inside(seen);
	weir_cancel_release(seen->token);
}

Test(cancel, a_hook_that_is_put_on_late_may_give_back_the_last_reference)
{
	weir_cancel *token = new_token();
	struct seen seen = {.token = token, .off = -1};

	cr_expect_eq(weir_cancel_fire(token, NULL), 1);
	cr_expect_eq(weir_cancel_on(token, take_off_and_give_back_token, &seen, &seen.hook), WEIR_OK);
	cr_expect_eq(seen.runs, 1);
}

Test(cancel, places_of_hooks_are_used_again)
{
	struct failing_allocator state = {0};
	weir_allocator allocator = failing_allocator_hooks(&state);
	struct seen seen = {0};
	weir_cancel_hook *hooks[3];
	weir_cancel *token;

	cr_assert_eq(weir_cancel_create(&allocator, &token, NULL), WEIR_OK);
	for (int round = 0; round < 100; round++) {
		for (int i = 0; i < 3; i++)
			cr_assert_eq(weir_cancel_on(token, note, &seen, &hooks[i]), WEIR_OK);
		for (int i = 0; i < 3; i++)
			cr_assert_eq(weir_cancel_off(hooks[(i + round) % 3]), 1);
	}
	cr_expect_eq(weiri_load_relaxed(&state.asked), 4, "the token, and three hooks in one block");
	weir_cancel_release(token);
	cr_expect_str_eq(failing_allocator_verdict(&state), "balanced");
}

/* -- no memory --------------------------------------------------------------------------------- */

static enum weir_status use_a_token(const weir_allocator *allocator, void *context)
{
	struct seen seen[2] = {0};
	weir_cancel_hook *hooks[2] = {NULL, NULL};
	weir_cancel *token = NULL;
	enum weir_status status = weir_cancel_create(allocator, &token, NULL);
	int registered = 0;

	(void)context;
	for (int i = 0; status == WEIR_OK && i < 2; i++) {
		status = weir_cancel_on(token, note, &seen[i], &hooks[i]);
		registered += status == WEIR_OK;
	}
	(void)weir_cancel_fire(token, NULL);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(seen[i].runs, i < registered, "only a hook that was registered runs");
		cr_assert_eq(weir_cancel_off(hooks[i]), i >= registered);
	}
	weir_cancel_release(token);
	flush();
	return status;
}

Test(cancel, every_allocation_may_fail)
{
	cr_expect_eq(fail_each_allocation(use_a_token, NULL), 3, "a token and two hooks");
}

/* -- races ------------------------------------------------------------------------------------- */

static uint64_t a_while(void)
{
	return weir_deadline_in(UINT64_C(200000000));
}

struct race {
	weir_cancel *token;
	_Atomic(int) ready;
	_Atomic(int) first_fires;
	_Atomic(int) wrong;
	weir_error cause;
};

/* Both sides begin at about the same time. */
static void meet(struct race *race)
{
	(void)weiri_fetch_add_acq_rel(&race->ready, 1);
	while (weiri_load_acquire(&race->ready) < 2)
		(void)sched_yield();
}

static void *fire_it(void *argument)
{
	struct race *race = argument;

	meet(race);
	(void)weiri_fetch_add_relaxed(&race->first_fires, weir_cancel_fire(race->token, &race->cause));
	return NULL;
}

Test(cancel, a_hook_that_races_with_the_fire_runs_or_was_taken_off)
{
	uint64_t until = a_while();
	int ran = 0, off = 0;

	while (weir_now_ns() < until) {
		struct race race = {.token = new_token()};
		struct seen seen = {0};
		weir_cancel_hook *hook;
		pthread_t thread;
		int never_runs;

		cr_assert_eq(weir_cancel_on(race.token, note, &seen, &hook), WEIR_OK);
		cr_assert_eq(pthread_create(&thread, NULL, fire_it, &race), 0);
		meet(&race);
		never_runs = weir_cancel_off(hook);
		cr_assert_eq(pthread_join(thread, NULL), 0);
		cr_assert_eq(seen.runs, !never_runs);
		ran += !never_runs;
		off += never_runs;
		weir_cancel_release(race.token);
	}
	cr_log_info("it ran %d times and was removed %d times", ran, off);
}

Test(cancel, a_hook_that_is_put_on_while_the_token_fires_runs_once)
{
	uint64_t until = a_while();

	while (weir_now_ns() < until) {
		struct race race = {.token = new_token()};
		struct seen seen = {0};
		weir_cancel_hook *hook;
		pthread_t thread;

		cr_assert_eq(pthread_create(&thread, NULL, fire_it, &race), 0);
		meet(&race);
		cr_assert_eq(weir_cancel_on(race.token, note, &seen, &hook), WEIR_OK);
		cr_assert_eq(pthread_join(thread, NULL), 0);
		cr_assert_eq(seen.runs, 1);
		cr_assert_eq(weir_cancel_off(hook), 0);
		weir_cancel_release(race.token);
	}
}

/* Puts a hook on while the token is fired, and returns when the hook has run. */
static void *put_one_on(void *argument)
{
	struct race *race = argument;
	struct seen late = {0};
	weir_cancel_hook *hook;

	meet(race);
	if (weir_cancel_on(race->token, note, &late, &hook) != WEIR_OK) {
		weiri_store_relaxed(&race->wrong, 1);
		return NULL;
	}
	while (weiri_load_acquire(&late.runs) == 0)
		(void)sched_yield();
	(void)weir_cancel_off(hook);
	return NULL;
}

Test(cancel, hooks_registered_before_the_fire_run_on_its_thread_though_others_come_late)
{
	enum { HOOKS = 20 };
	uint64_t until = a_while();

	while (weir_now_ns() < until) {
		struct race race = {.token = new_token()};
		struct seen seen[HOOKS] = {0};
		weir_cancel_hook *hooks[HOOKS];
		pthread_t thread;

		for (int i = 0; i < HOOKS; i++)
			cr_assert_eq(weir_cancel_on(race.token, note, &seen[i], &hooks[i]), WEIR_OK);
		cr_assert_eq(pthread_create(&thread, NULL, put_one_on, &race), 0);
		meet(&race);
		cr_assert_eq(weir_cancel_fire(race.token, NULL), 1);
		for (int i = 0; i < HOOKS; i++) {
			cr_assert_eq(weiri_load_acquire(&seen[i].runs), 1, "hook %d has not run although the fire is over", i);
			cr_assert(pthread_equal(seen[i].thread, pthread_self()), "hook %d ran on another thread", i);
		}
		cr_assert_eq(pthread_join(thread, NULL), 0);
		cr_assert_eq(race.wrong, 0);
		for (int i = 0; i < HOOKS; i++)
			cr_assert_eq(weir_cancel_off(hooks[i]), 0);
		weir_cancel_release(race.token);
	}
}

Test(cancel, of_two_fires_one_is_the_first_and_the_cause_is_whole)
{
	uint64_t until = a_while();

	while (weir_now_ns() < until) {
		struct race race = {.token = new_token(), .cause = {WEIR_ABORTED, "theirs"}};
		weir_error mine = {WEIR_DATA_LOSS, "mine"}, cause = {0};
		struct seen seen = {0};
		weir_cancel_hook *hook;
		pthread_t thread;
		int first;

		cr_assert_eq(weir_cancel_on(race.token, note, &seen, &hook), WEIR_OK);
		cr_assert_eq(pthread_create(&thread, NULL, fire_it, &race), 0);
		meet(&race);
		first = weir_cancel_fire(race.token, &mine);
		cr_assert_eq(pthread_join(thread, NULL), 0);
		cr_assert_eq(first + race.first_fires, 1);
		cr_assert_eq(seen.runs, 1);
		cr_assert_eq(weir_cancel_cause(race.token, &cause), first ? WEIR_DATA_LOSS : WEIR_ABORTED);
		cr_assert_str_eq(cause.message, first ? "mine" : "theirs");
		(void)weir_cancel_off(hook);
		weir_cancel_release(race.token);
	}
}

static void *look_for_the_cause(void *argument)
{
	struct race *race = argument;
	weir_error cause = {0};

	meet(race);
	while (!weir_cancel_fired(race->token))
		weiri_pause();
	if (weir_cancel_cause(race->token, &cause) != WEIR_ABORTED || strcmp(cause.message, "why") != 0)
		weiri_store_relaxed(&race->wrong, 1);
	return NULL;
}

Test(cancel, whoever_sees_the_token_fired_sees_its_cause)
{
	uint64_t until = a_while();

	while (weir_now_ns() < until) {
		struct race race = {.token = new_token()};
		weir_error why = {WEIR_ABORTED, "why"};
		pthread_t thread;

		cr_assert_eq(pthread_create(&thread, NULL, look_for_the_cause, &race), 0);
		meet(&race);
		cr_assert_eq(weir_cancel_fire(race.token, &why), 1);
		cr_assert_eq(pthread_join(thread, NULL), 0);
		cr_assert_eq(race.wrong, 0);
		weir_cancel_release(race.token);
	}
}

enum { RIVALS = 6 };

struct rival {
	struct race *race;
	weir_error cause;
	int first;
	pthread_t thread;
};

static void *fire_as_a_rival(void *argument)
{
	struct rival *rival = argument;

	(void)weiri_fetch_add_acq_rel(&rival->race->ready, 1);
	while (weiri_load_acquire(&rival->race->ready) < RIVALS)
		weiri_pause();
	rival->first = weir_cancel_fire(rival->race->token, &rival->cause);
	return NULL;
}

/*
 * There are more rivals than places for messages. The cause still has the code of the fire that
 * won, and its message or, without a place, a standard one.
 */
Test(cancel, of_many_fires_the_cause_is_the_winners)
{
	uint64_t until = a_while();

	while (weir_now_ns() < until) {
		struct race race = {.token = new_token()};
		struct rival rivals[RIVALS];
		weir_error cause = {0};
		int winner = -1, winners = 0;

		for (int i = 0; i < RIVALS; i++) {
			rivals[i] = (struct rival){.race = &race, .cause = {(enum weir_status)(WEIR_NOT_FOUND + i), "mine"}};
			cr_assert_eq(pthread_create(&rivals[i].thread, NULL, fire_as_a_rival, &rivals[i]), 0);
		}
		for (int i = 0; i < RIVALS; i++) {
			cr_assert_eq(pthread_join(rivals[i].thread, NULL), 0);
			winners += rivals[i].first;
			winner = rivals[i].first ? i : winner;
		}
		cr_assert_eq(winners, 1);
		cr_assert_eq(weir_cancel_cause(race.token, &cause), rivals[winner].cause.code);
		cr_assert_eq(cause.code, rivals[winner].cause.code);
		cr_assert(strcmp(cause.message, "mine") == 0 || strncmp(cause.message, "cancelled: WEIR_", 16) == 0, "%s",
		          cause.message);
		weir_cancel_release(race.token);
	}
}
