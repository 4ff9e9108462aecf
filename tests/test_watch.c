/*
 * test_watch.c - waits for newer versions, by threads, callbacks and descriptors; what ends them;
 * and a thread that is stopped in the middle of one.
 */
#include <criterion/criterion.h>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <weir/txn.h>
#include <weir/watch.h>

#include "late_failure.h"
#include "stepped.h"
#include "var/version.h"
#include "variables.h"

static uint64_t in_good_time(void)
{
	return weir_deadline_in(variables_patience_ns);
}

static int64_t value_and_release(weir_read *read)
{
	int64_t value = value_of(read);

	weir_read_release(read);
	return value;
}

static void destroy(weir_var *var)
{
	cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
	expect_nothing_left();
}

/* -- threads that wait ------------------------------------------------------------------------- */

Test(watch, what_is_there_already_is_not_waited_for)
{
	weir_var *var = variable(5);
	weir_read read = {.hold = NULL};
	weir_error error;

	cr_assert_eq(weir_var_wait(var, 0, 0, NULL, &read, NULL), WEIR_OK);
	cr_expect_eq(read.version, 1);
	cr_expect_eq(value_and_release(&read), 5);
	read.version = 42;
	cr_expect_eq(weir_var_wait(var, 1, 0, NULL, &read, &error), WEIR_DEADLINE_EXCEEDED);
	cr_expect_str_eq(error.message, "variable \"v\": no version newer than 1");
	cr_expect_eq(weir_var_wait(var, 1, weir_deadline_in(2000000), NULL, &read, &error), WEIR_DEADLINE_EXCEEDED);
	cr_expect_str_eq(error.message, "variable \"v\": the deadline passed in wait");
	cr_expect_eq(read.version, 42, "untouched");
	cr_expect_eq(weir_var_wait(NULL, 0, 0, NULL, &read, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_var_wait(var, 0, 0, NULL, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "wait for a variable: read is NULL");
	destroy(var);
}

struct waiter {
	weir_var *var;
	weir_cancel *cancel;
	uint64_t newer_than;
	enum weir_status status;
	weir_read read;
	weir_error error;
	pthread_t thread;
};

static void *wait_for_newer(void *context)
{
	struct waiter *waiter = context;

	waiter->status =
		weir_var_wait(waiter->var, waiter->newer_than, in_good_time(), waiter->cancel, &waiter->read, &waiter->error);
	return NULL;
}

/* Returns when a thread waits. While it waits, the variable cannot be destroyed. */
static void expect_waiting(weir_var *var)
{
	uint64_t until = in_good_time();

	while (weiri_load_relaxed(&var->waitable.waiting) == 0)
		cr_assert(weir_now_ns() < until, "no thread comes to wait");
	cr_assert_eq(weir_var_destroy(var, NULL), WEIR_FAILED_PRECONDITION);
}

static void start_waiting(struct waiter *waiter)
{
	cr_assert_eq(pthread_create(&waiter->thread, NULL, wait_for_newer, waiter), 0);
	expect_waiting(waiter->var);
}

static void expect_woken(struct waiter *waiter, int64_t value, uint64_t version)
{
	cr_assert_eq(pthread_join(waiter->thread, NULL), 0);
	cr_assert_eq(waiter->status, WEIR_OK, "%s", waiter->error.message);
	cr_expect_eq(waiter->read.version, version);
	cr_expect_eq(value_and_release(&waiter->read), value);
}

enum { WRITES = 6 };

/* Each kind in turn, from 0 on, beginning at version 1. */
static void write_in_turn(weir_var *const vars[2], int kind, weir_tensor *next)
{
	struct weir_commit_part parts[2] = {{vars[0], (uint64_t)kind + 1, next}, {vars[1], 1, next}};
	weir_txn *txn = NULL;
	weir_read old;

	switch (kind) {
	case 0: cr_assert_eq(weir_var_assign(vars[0], next, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK); break;
	case 1: cr_assert_eq(weir_var_compare_assign(vars[0], 2, next, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK); break;
	case 2:
		cr_assert_eq(weir_var_exchange(vars[0], next, WEIR_NO_DEADLINE, &old, NULL), WEIR_OK);
		weir_read_release(&old);
		break;
	case 3: cr_assert_eq(weir_var_commit(parts, 2, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK); break;
	case 4:
		cr_assert_eq(weir_txn_begin(&variables_memory, &txn, NULL), WEIR_OK);
		cr_assert_eq(weir_txn_assign(txn, vars[1], next, NULL), WEIR_OK);
		cr_assert_eq(weir_txn_assign(txn, vars[0], next, NULL), WEIR_OK);
		cr_assert_eq(weir_txn_commit(txn, WEIR_NO_DEADLINE, NULL), WEIR_OK);
		break;
	default: cr_assert_eq(weir_var_assign_add(vars[0], next, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK); break;
	}
}

Test(watch, every_kind_of_write_wakes_who_waits)
{
	weir_var *vars[2] = {variable(1), variable(1)};
	weir_tensor *next = number(9);

	for (int kind = 0; kind < WRITES; kind++) {
		struct waiter waiter = {.var = vars[0], .newer_than = (uint64_t)kind + 1};

		start_waiting(&waiter);
		write_in_turn(vars, kind, next);
		expect_woken(&waiter, kind < 5 ? 9 : 18, (uint64_t)kind + 2);
	}
	weir_tensor_release(next);
	cr_assert_eq(weir_var_destroy(vars[0], NULL), WEIR_OK);
	destroy(vars[1]);
}

Test(watch, the_first_value_wakes_who_waits_for_one)
{
	weir_var *var = empty_variable("late");
	struct waiter waiter = {.var = var, .newer_than = 0};

	start_waiting(&waiter);
	assign(var, 3);
	expect_woken(&waiter, 3, 1);
	destroy(var);
}

/*
 * Versions up to the one that is waited for end no wait. Neither does a transaction that only read.
 */
Test(watch, who_waits_for_a_later_version_sleeps_on)
{
	weir_var *vars[2] = {variable(0), variable(0)};
	struct waiter waiter = {.var = vars[0], .newer_than = 3};
	weir_txn *txn = NULL;
	weir_tensor *value;

	start_waiting(&waiter);
	assign(vars[0], 2);
	assign(vars[0], 3);
	cr_assert_eq(weir_txn_begin(&variables_memory, &txn, NULL), WEIR_OK);
	cr_assert_eq(weir_txn_read(txn, vars[0], &value, NULL), WEIR_OK);
	cr_assert_eq(weir_txn_assign(txn, vars[1], value, NULL), WEIR_OK);
	cr_assert_eq(weir_txn_commit(txn, WEIR_NO_DEADLINE, NULL), WEIR_OK);
	expect_waiting(vars[0]);
	assign(vars[0], 4);
	expect_woken(&waiter, 4, 4);
	cr_assert_eq(weir_var_destroy(vars[0], NULL), WEIR_OK);
	destroy(vars[1]);
}

Test(watch, a_token_ends_a_wait_and_says_why)
{
	weir_var *var = named_variable("rate", 0);
	struct waiter waiter = {.var = var, .newer_than = 1};
	weir_error cause = {WEIR_ABORTED, "the user went home"}, error;
	weir_read read;

	cr_assert_eq(weir_cancel_create(NULL, &waiter.cancel, NULL), WEIR_OK);
	start_waiting(&waiter);
	cr_expect_eq(weir_cancel_fire(waiter.cancel, &cause), 1);
	cr_assert_eq(pthread_join(waiter.thread, NULL), 0);
	cr_expect_eq(waiter.status, WEIR_CANCELLED);
	cr_expect_str_eq(waiter.error.message, "variable \"rate\": wait was cancelled: the user went home");
	cr_expect_eq(weir_var_wait(var, 1, WEIR_NO_DEADLINE, waiter.cancel, &read, &error), WEIR_CANCELLED, "fired before");
	weir_cancel_release(waiter.cancel);
	destroy(var);
}

enum { CHASERS = 3, CHASE = 400 };

struct chase {
	weir_var *var;
	/* The chaser stops when it has seen this version. */
	uint64_t last;
	pthread_t thread;
};

static void *chase(void *context)
{
	struct chase *chase = context;

	for (uint64_t seen = 1; seen < chase->last;) {
		weir_read read;
		weir_error error = {WEIR_OK, ""};

		cr_assert_eq(weir_var_wait(chase->var, seen, in_good_time(), NULL, &read, &error), WEIR_OK, "%s",
		             error.message);
		cr_assert_gt(read.version, seen);
		seen = read.version;
		cr_assert_eq(value_and_release(&read) + 1, (int64_t)seen);
	}
	return NULL;
}

/* No thread misses the last version, however its write interleaves with their waits. */
Test(watch, many_follow_a_writer_to_its_end)
{
	weir_var *var = variable(0);
	struct chase chases[CHASERS];

	for (size_t i = 0; i < CHASERS; i++) {
		chases[i] = (struct chase){.var = var, .last = CHASE + 1};
		cr_assert_eq(pthread_create(&chases[i].thread, NULL, chase, &chases[i]), 0);
	}
	for (int64_t i = 1; i <= CHASE; i++)
		assign(var, i);
	for (size_t i = 0; i < CHASERS; i++)
		cr_assert_eq(pthread_join(chases[i].thread, NULL), 0);
	destroy(var);
}

/* -- callbacks --------------------------------------------------------------------------------- */

struct outcome {
	int calls;
	enum weir_status status;
	uint64_t version;
	int64_t value;
	char message[WEIR_ERROR_MESSAGE_SIZE];
};

static void note(void *context, enum weir_status status, const weir_error *error, weir_read *read)
{
	struct outcome *outcome = context;

	outcome->calls++;
	outcome->status = status;
	outcome->version = read->version;
	outcome->value = status == WEIR_OK ? value_of(read) : 0;
	(void)snprintf(outcome->message, sizeof(outcome->message), "%s", error != NULL ? error->message : "");
	weir_read_release(read);
}

Test(watch, a_callback_gets_the_newest_once)
{
	weir_var *var = variable(0);
	struct outcome at_once = {0}, later = {0}, unkept = {0};
	weir_pending *op = NULL;

	cr_assert_eq(weir_var_start_wait(var, 0, note, &at_once, NULL, NULL), WEIR_OK);
	cr_expect_eq(at_once.calls, 1);
	cr_expect_eq(at_once.version, 1);
	cr_assert_eq(weir_var_start_wait(var, 1, note, &later, &op, NULL), WEIR_OK);
	cr_assert_eq(weir_var_start_wait(var, 2, note, &unkept, NULL, NULL), WEIR_OK);
	cr_expect_eq(later.calls, 0);
	assign(var, 7);
	cr_expect_eq(later.calls, 1);
	cr_expect_eq(later.value, 7);
	cr_expect_eq(unkept.calls, 0);
	assign(var, 8);
	cr_expect_eq(later.calls, 1);
	cr_expect_eq(unkept.calls, 1);
	cr_expect_eq(unkept.version, 3);
	weir_pending_cancel(op, NULL);
	weir_pending_release(op);
	cr_expect_eq(later.calls, 1, "it had completed");
	weir_pending_cancel(NULL, NULL);
	weir_pending_release(NULL);
	destroy(var);
}

/*
 * context: the number of calls within a section of this thread, which must be 0, and of all calls.
 */
static void look_for_a_section(void *context, enum weir_status status, const weir_error *error, weir_read *read)
{
	int *calls = context;

	(void)error;
	calls[0] += weiri_load_relaxed(&weiri_record_mine->lo) != 0; /* [relaxed] own field */
	calls[1] += status == WEIR_OK;
	weir_read_release(read);
}

/*
 * In a section it could not wait for memory to be freed, and would keep other threads from freeing
 * theirs.
 */
Test(watch, a_callback_runs_outside_of_sections_after_every_kind_of_write)
{
	weir_var *vars[2] = {variable(1), variable(1)};
	weir_tensor *next = number(9);
	int calls[2] = {0, 0};

	for (int kind = 0; kind < WRITES; kind++) {
		cr_assert_eq(weir_var_start_wait(vars[0], (uint64_t)kind + 1, look_for_a_section, calls, NULL, NULL), WEIR_OK);
		write_in_turn(vars, kind, next);
		cr_expect_eq(calls[1], kind + 1);
		cr_expect_eq(calls[0], 0, "write %d", kind);
	}
	weir_tensor_release(next);
	cr_assert_eq(weir_var_destroy(vars[0], NULL), WEIR_OK);
	destroy(vars[1]);
}

Test(watch, a_callback_is_told_of_its_cancellation)
{
	weir_var *var = named_variable("rate", 0);
	struct outcome outcome = {0};
	weir_pending *op = NULL;
	weir_error error;

	cr_assert_eq(weir_var_start_wait(var, 1, note, &outcome, &op, NULL), WEIR_OK);
	cr_expect_eq(weir_var_destroy(var, NULL), WEIR_FAILED_PRECONDITION);
	weir_pending_cancel(op, NULL);
	cr_expect_eq(outcome.calls, 1);
	cr_expect_eq(outcome.status, WEIR_CANCELLED);
	cr_expect_not_null(strstr(outcome.message, "variable \"rate\": wait was cancelled"), "%s", outcome.message);
	weir_pending_release(op);
	assign(var, 2);
	cr_expect_eq(outcome.calls, 1);
	cr_expect_eq(weir_var_start_wait(var, 1, NULL, NULL, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_var_start_wait(NULL, 1, note, NULL, NULL, &error), WEIR_INVALID_ARGUMENT);
	destroy(var);
}

/* A callback may write and wait again, on the thread that published. */
struct relay {
	weir_var *from, *to;
	int hops;
};

static void pass_on(void *context, enum weir_status status, const weir_error *error, weir_read *read)
{
	struct relay *relay = context;
	uint64_t version = read->version;

	(void)error;
	cr_assert_eq(status, WEIR_OK);
	cr_assert_eq(weir_var_assign(relay->to, read->tensor, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	weir_read_release(read);
	if (++relay->hops < 3)
		cr_assert_eq(weir_var_start_wait(relay->from, version, pass_on, relay, NULL, NULL), WEIR_OK);
}

Test(watch, a_callback_may_write_and_wait_again)
{
	struct relay relay = {variable(0), variable(0), 0};

	cr_assert_eq(weir_var_start_wait(relay.from, 1, pass_on, &relay, NULL, NULL), WEIR_OK);
	for (int64_t i = 1; i <= 3; i++) {
		assign(relay.from, 10 * i);
		cr_expect_eq(value_in(relay.to), 10 * i);
	}
	cr_expect_eq(relay.hops, 3);
	cr_assert_eq(weir_var_destroy(relay.from, NULL), WEIR_OK);
	destroy(relay.to);
}

/* -- descriptors ------------------------------------------------------------------------------- */

static int is_lit(const weir_watch *watch)
{
	struct pollfd entry = {weir_watch_fd(watch), POLLIN, 0};

	return poll(&entry, 1, 0) == 1 && (entry.revents & POLLIN) != 0;
}

Test(watch, a_descriptor_is_readable_exactly_while_there_is_something_newer)
{
	weir_var *var = variable(0);
	weir_watch *watch = NULL, *from_the_start = NULL;
	weir_read read = {.version = 42};

	cr_assert_eq(weir_watch_create(var, 1, &watch, NULL), WEIR_OK);
	cr_assert_eq(weir_watch_create(var, 0, &from_the_start, NULL), WEIR_OK);
	cr_expect(is_lit(from_the_start));
	for (int64_t round = 0; round < 5; round++) {
		cr_assert(!is_lit(watch));
		cr_expect_eq(weir_watch_try_take(watch, &read), WEIR_WOULD_BLOCK);
		assign(var, round);
		assign(var, round + 100);
		cr_assert(is_lit(watch));
		cr_assert(is_lit(watch), "level-triggered");
		cr_assert_eq(weir_watch_try_take(watch, &read), WEIR_OK);
		cr_expect_eq(read.version, (uint64_t)(2 * round + 3), "only the newest version is read");
		cr_expect_eq(value_and_release(&read), round + 100);
	}
	cr_expect(!is_lit(watch));
	cr_expect_eq(weir_var_destroy(var, NULL), WEIR_FAILED_PRECONDITION);
	weir_watch_destroy(watch, NULL);
	cr_expect(is_lit(from_the_start));
	weir_watch_destroy(from_the_start, NULL);
	destroy(var);
}

Test(watch, a_descriptor_wakes_who_polls_it)
{
	weir_var *var = variable(0);
	weir_watch *watch = NULL;
	weir_read read;

	cr_assert_eq(weir_watch_create(var, 1, &watch, NULL), WEIR_OK);
	for (int64_t i = 1; i <= 3; i++) {
		struct waiter unrelated = {.var = var, .newer_than = (uint64_t)i};
		struct pollfd entry = {weir_watch_fd(watch), POLLIN, 0};

		cr_assert_eq(pthread_create(&unrelated.thread, NULL, wait_for_newer, &unrelated), 0);
		assign(var, i);
		cr_assert_eq(poll(&entry, 1, 30000), 1);
		cr_assert_eq(weir_watch_try_take(watch, &read), WEIR_OK);
		cr_expect_eq(value_and_release(&read), i);
		expect_woken(&unrelated, i, (uint64_t)i + 1);
	}
	weir_watch_destroy(watch, NULL);
	destroy(var);
}

Test(watch, refuses_bad_arguments)
{
	weir_var *var = variable(0);
	weir_watch *watch = NULL;
	weir_read read;
	weir_error error;

	cr_expect_eq(weir_watch_create(NULL, 0, &watch, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_watch_create(var, 0, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_watch_try_take(NULL, &read), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_watch_fd(NULL), -1);
	weir_watch_destroy(NULL, NULL);
	cr_expect_eq(weir_var_destroy(NULL, NULL), WEIR_OK);
	destroy(var);
}

/* -- memory ------------------------------------------------------------------------------------ */

static enum weir_status wait_with(const weir_allocator *allocator, void *context)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I64, .allocator = allocator};
	weir_var *var;
	weir_watch *watch = NULL;
	weir_read read;
	enum weir_status status = weir_var_create(context, &options, &var, NULL);

	if (status != WEIR_OK)
		return status;
	status = weir_watch_create(var, 1, &watch, NULL);
	if (status == WEIR_OK) {
		status = weir_var_wait(var, 1, weir_deadline_in(1), NULL, &read, NULL);
		status = status == WEIR_DEADLINE_EXCEEDED ? WEIR_OK : status;
	}
	weir_watch_destroy(watch, NULL);
	cr_assert_eq(weir_reclaim_flush(in_good_time()), WEIR_OK);
	cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
	cr_assert_eq(weir_reclaim_flush(in_good_time()), WEIR_OK);
	return status;
}

Test(watch, survives_every_allocation_failing)
{
	weir_tensor *value = number(3);

	/* The variable, its name and version; a watch; a wait. */
	cr_assert_eq(fail_each_allocation(wait_with, value), 5);
	weir_tensor_release(value);
	expect_nothing_left();
}

/* A wait that cannot begin returns an error, and its completion never runs. */
static enum weir_status start_with(const weir_allocator *failing, void *value)
{
	struct late_failure late = {0};
	weir_allocator allocator = late_failure_hooks(&late);
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I64, .allocator = &allocator};
	struct outcome outcome = {0};
	weir_pending *op = NULL;
	weir_var *var;
	enum weir_status status;

	cr_assert_eq(weir_var_create(value, &options, &var, NULL), WEIR_OK);
	late.under_test = failing;
	status = weir_var_start_wait(var, 1, note, &outcome, &op, NULL);
	late.under_test = NULL;
	cr_expect_eq(op != NULL, status == WEIR_OK);
	cr_assert_eq(weir_var_assign(var, value, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	cr_expect_eq(outcome.calls, status == WEIR_OK);
	weir_pending_release(op);
	cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
	cr_assert_eq(weir_reclaim_flush(in_good_time()), WEIR_OK);
	late_failure_end(&late);
	return status;
}

Test(watch, a_wait_that_finds_no_memory_says_so_and_is_never_told)
{
	weir_tensor *value = number(3);

	cr_assert_eq(fail_each_allocation(start_with, value), 1);
	weir_tensor_release(value);
	expect_nothing_left();
}

/* -- stopped at each instruction --------------------------------------------------------------- */

enum { COST = 29 };

struct scene {
	weir_var *var;
	struct outcome outcome;
	weir_watch *watch;
};

static void start_and_watch(void *context)
{
	struct scene *scene = context;

	cr_assert_eq(weir_var_start_wait(scene->var, 1, note, &scene->outcome, NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_watch_create(scene->var, 1, &scene->watch, NULL), WEIR_OK);
}

/*
 * A thread that is stopped anywhere while it begins to wait holds up no writer and misses no
 * version.
 */
Test(watch, stopped_anywhere_who_comes_to_wait_holds_up_no_writer)
{
	struct scene scene;
	struct stepped call = {.prepare = meet_weir, .call = start_and_watch, .context = &scene};
	int stands = 1;

	stepped_or_skip();
	for (size_t at = 0; stands; at += stepped_stride(COST)) {
		weir_read read;

		scene = (struct scene){.var = variable(0)};
		stands = stepped_start(&call, at);
		assign(scene.var, 1);
		assign(scene.var, 2);
		stepped_finish(&call);
		cr_assert_eq(scene.outcome.calls, 1, "stopped at %zu", at);
		cr_assert_eq(scene.outcome.status, WEIR_OK);
		cr_assert(is_lit(scene.watch), "stopped at %zu", at);
		cr_assert_eq(weir_watch_try_take(scene.watch, &read), WEIR_OK);
		cr_assert_eq(value_and_release(&read), 2);
		cr_assert(!is_lit(scene.watch));
		weir_watch_destroy(scene.watch, NULL);
		destroy(scene.var);
	}
}

static void write_once(void *context)
{
	struct scene *scene = context;

	assign(scene->var, 5);
}

/*
 * A writer that is stopped anywhere, even while it wakes waiters, holds up no other writer. It
 * wakes the rest when it goes on.
 */
Test(watch, stopped_anywhere_a_writer_holds_up_no_other)
{
	struct scene scene;
	struct stepped call = {.prepare = meet_weir, .call = write_once, .context = &scene};
	int stands = 1;

	stepped_or_skip();
	for (size_t at = 0; stands; at += stepped_stride(COST)) {
		weir_read read;

		scene = (struct scene){.var = variable(0)};
		start_and_watch(&scene);
		stands = stepped_start(&call, at);
		assign(scene.var, 6);
		stepped_finish(&call);
		cr_assert_eq(scene.outcome.calls, 1, "stopped at %zu", at);
		cr_assert(is_lit(scene.watch), "stopped at %zu", at);
		cr_assert_eq(weir_watch_try_take(scene.watch, &read), WEIR_OK);
		cr_assert_eq(read.version, 3, "stopped at %zu", at);
		weir_read_release(&read);
		cr_assert(!is_lit(scene.watch), "stopped at %zu", at);
		weir_watch_destroy(scene.watch, NULL);
		destroy(scene.var);
	}
}

/*
 * A watch ends while a stopped writer may be about to look at it. At each further step of the
 * writer, all memory that nothing pins is freed, so a sanitizer sees a later use.
 */
Test(watch, stopped_anywhere_a_writer_leaves_alone_a_watch_that_has_ended)
{
	struct scene scene;
	struct stepped call = {.prepare = meet_weir, .call = write_once, .context = &scene};
	int came = 1;

	stepped_or_skip();
	for (size_t at = 0; came; at += stepped_stride(STEPPED_STRIDE == 1 ? COST : 4)) {
		int stands, fd;

		scene = (struct scene){.var = variable(0)};
		cr_assert_eq(weir_watch_create(scene.var, 1, &scene.watch, NULL), WEIR_OK);
		fd = weir_watch_fd(scene.watch);
		stands = came = stepped_start(&call, at);
		weir_watch_destroy(scene.watch, NULL);
		for (size_t steps = 0; stands; steps++) {
			if (steps % STEPPED_STRIDE == 0)
				(void)weir_reclaim_flush(0);
			stands = stepped_next(&call);
		}
		stepped_finish(&call);
		cr_assert_eq(fcntl(fd, F_GETFD), -1, "stopped at %zu: its descriptor is open", at);
		cr_assert_eq(weir_var_version(scene.var), 2);
		destroy(scene.var);
	}
}
