/*
 * test_critical_section.c - one execution at a time: by threads, by tasks, by name; what ends a
 * wait, and what may not wait.
 */
#include <criterion/criterion.h>

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <weir/critical_section.h>
#include <weir/reclaim.h>
#include <weir/time.h>

#include "base/atomic.h"
#include "failing_allocator.h"
#include "late_failure.h"
#include "sync/pending.h"

#define PATIENCE_NS UINT64_C(100000000000)

static weir_critical_section *a_section(const char *name, uint32_t flags)
{
	struct weir_critical_section_options options = {WEIR_CRITICAL_SECTION_OPTIONS_INIT, .flags = flags, .name = name};
	weir_critical_section *section = NULL;
	weir_error error;

	cr_assert_eq(weir_critical_section_create(&options, &section, &error), WEIR_OK, "%s", error.message);
	return section;
}

static void end(weir_critical_section *section)
{
	weir_error error;

	cr_expect_eq(weir_critical_section_destroy(section, &error), WEIR_OK, "%s", error.message);
}

static weir_pool *a_pool(size_t threads)
{
	struct weir_pool_options options = {WEIR_POOL_OPTIONS_INIT, .threads = threads,
	                                    .flags = threads == 0 ? WEIR_POOL_NO_THREADS : 0};
	weir_pool *pool = NULL;

	cr_assert_eq(weir_pool_create(&options, &pool, NULL), WEIR_OK);
	return pool;
}

static void wait_until(_Atomic(int) *number, int wanted)
{
	uint64_t deadline_ns = weir_deadline_in(PATIENCE_NS);

	while (weiri_load_acquire(number) < wanted) {
		cr_assert(weir_now_ns() < deadline_ns, "waited too long: %d of %d", weiri_load_acquire(number), wanted);
		(void)sched_yield();
	}
}

/* -- one execution ----------------------------------------------------------------------------- */

static enum weir_status count_up(void *context, weir_error *error)
{
	(void)error;
	++*(int *)context;
	return WEIR_OK;
}

static enum weir_status fail_with_a_word(void *context, weir_error *error)
{
	(void)context;
	(void)strcpy(error->message, "the disk is full");
	return WEIR_DATA_LOSS;
}

static enum weir_status fail_without_a_word(void *context, weir_error *error)
{
	(void)context, (void)error;
	return WEIR_NOT_FOUND;
}

Test(critical_section, execute_returns_what_fn_returned)
{
	weir_critical_section *section = a_section("s", 0);
	weir_error error;
	int calls = 0;

	cr_expect_str_eq(weir_critical_section_name(section), "s");
	/* A function that fails also leaves the section. */
	for (int i = 0; i < 100; i++) {
		cr_expect_eq(weir_critical_section_execute(section, count_up, &calls, 0, NULL, &error), WEIR_OK);
		cr_expect_eq(weir_critical_section_execute(section, fail_with_a_word, NULL, 0, NULL, &error), WEIR_DATA_LOSS);
		cr_expect_eq(error.code, WEIR_DATA_LOSS);
		cr_expect_str_eq(error.message, "the disk is full");
		cr_expect_eq(weir_critical_section_execute(section, fail_without_a_word, NULL, 0, NULL, &error),
		             WEIR_NOT_FOUND);
		cr_expect_eq(error.code, WEIR_NOT_FOUND);
		cr_expect_neq(error.message[0], '\0');
		cr_expect_eq(weir_critical_section_execute(section, count_up, &calls, 0, NULL, &error), WEIR_OK);
		cr_expect_eq(error.code, WEIR_NOT_FOUND, "a call that succeeds leaves the error alone");
		cr_expect_neq(error.message[0], '\0');
		cr_expect_eq(weir_critical_section_execute(section, fail_without_a_word, NULL, 0, NULL, NULL), WEIR_NOT_FOUND);
	}
	cr_expect_eq(calls, 200);
	end(section);
}

Test(critical_section, what_makes_no_sense_is_refused)
{
	struct weir_critical_section_options options = {WEIR_CRITICAL_SECTION_OPTIONS_INIT, .flags = 2};
	weir_critical_section *section;
	weir_error error;
	int calls = 0;

	cr_expect_eq(weir_critical_section_create(&options, &section, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "flags"));
	options.flags = 0;
	options.struct_size = SIZE_MAX;
	cr_expect_eq(weir_critical_section_create(&options, &section, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_critical_section_create(NULL, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_critical_section_create(NULL, &section, &error), WEIR_OK);
	cr_expect_str_eq(weir_critical_section_name(section), "critical section");
	cr_expect_eq(weir_critical_section_execute(NULL, count_up, &calls, 0, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_critical_section_execute(section, NULL, NULL, 0, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_critical_section_start(section, NULL, count_up, &calls, NULL, NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "pool"));
	cr_expect_str_eq(weir_critical_section_name(NULL), "(null)");
	weir_pending_cancel(NULL, NULL);
	weir_pending_release(NULL);
	end(section);
	end(NULL);
}

static enum weir_status make_a_section(const weir_allocator *allocator, void *context)
{
	struct weir_critical_section_options options = {WEIR_CRITICAL_SECTION_OPTIONS_INIT, .allocator = allocator};
	weir_critical_section *section;
	enum weir_status status = weir_critical_section_create(&options, &section, NULL);

	(void)context;
	if (status == WEIR_OK)
		end(section);
	return status;
}

Test(critical_section, create_survives_every_allocation_failing)
{
	cr_assert_gt(fail_each_allocation(make_a_section, NULL), 2);
}

/* -- threads ----------------------------------------------------------------------------------- */

enum { THREADS = 4 };

struct crowd {
	weir_critical_section *section;
	int executions;
	int inside;   /* not atomic: the section protects it */
	uint64_t sum; /* as above */
};

static enum weir_status add_alone(void *context, weir_error *error)
{
	struct crowd *crowd = context;

	(void)error;
	cr_assert_eq(crowd->inside++, 0);
	crowd->sum++;
	if (crowd->sum % 64 == 0)
		(void)sched_yield();
	crowd->inside--;
	return WEIR_OK;
}

static void *execute_often(void *context)
{
	struct crowd *crowd = context;

	for (int i = 0; i < crowd->executions; i++)
		cr_assert_eq(weir_critical_section_execute(crowd->section, add_alone, crowd, WEIR_NO_DEADLINE, NULL, NULL),
		             WEIR_OK);
	return NULL;
}

static void run_crowd(uint32_t flags, int executions)
{
	struct crowd crowd = {.section = a_section("crowd", flags), .executions = executions};
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, execute_often, &crowd), 0);
	for (int i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_join(threads[i], NULL), 0);
	cr_expect_eq(crowd.sum, (uint64_t)executions * THREADS);
	end(crowd.section);
}

Test(critical_section, one_thread_at_a_time)
{
	run_crowd(0, 5000);
}

Test(critical_section, one_thread_at_a_time_fair)
{
	run_crowd(WEIR_CRITICAL_SECTION_FAIR, 500);
}

/* -- waiting ----------------------------------------------------------------------------------- */

/* A thread that is inside until the test releases it. */
struct holder {
	weir_critical_section *section;
	_Atomic(int) inside, let_go;
	pthread_t thread;
};

static enum weir_status hold(void *context, weir_error *error)
{
	struct holder *holder = context;

	(void)error;
	weiri_store_release(&holder->inside, 1);
	wait_until(&holder->let_go, 1);
	return WEIR_OK;
}

static void *run_holder(void *context)
{
	struct holder *holder = context;

	cr_assert_eq(weir_critical_section_execute(holder->section, hold, holder, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	return NULL;
}

static void begin_holding(struct holder *holder, weir_critical_section *section)
{
	holder->section = section;
	weiri_store_relaxed(&holder->inside, 0);
	weiri_store_relaxed(&holder->let_go, 0);
	cr_assert_eq(pthread_create(&holder->thread, NULL, run_holder, holder), 0);
	wait_until(&holder->inside, 1);
}

static void end_holding(struct holder *holder)
{
	weiri_store_release(&holder->let_go, 1);
	cr_assert_eq(pthread_join(holder->thread, NULL), 0);
}

Test(critical_section, a_deadline_ends_the_wait_and_not_the_section)
{
	weir_critical_section *section = a_section("slow", 0);
	struct holder holder;
	weir_error error;
	int calls = 0;

	begin_holding(&holder, section);
	cr_expect_eq(weir_critical_section_execute(section, count_up, &calls, 0, NULL, &error), WEIR_DEADLINE_EXCEEDED);
	cr_expect_eq(weir_critical_section_execute(section, count_up, &calls, weir_deadline_in(2000000), NULL, &error),
	             WEIR_DEADLINE_EXCEEDED);
	cr_expect_not_null(strstr(error.message, "\"slow\""), "%s", error.message);
	cr_expect_eq(weir_critical_section_destroy(section, &error), WEIR_FAILED_PRECONDITION);
	cr_expect_not_null(strstr(error.message, "\"slow\""), "%s", error.message);
	end_holding(&holder);
	cr_expect_eq(weir_critical_section_execute(section, count_up, &calls, 0, NULL, &error), WEIR_OK);
	cr_expect_eq(calls, 1);
	end(section);
}

struct token_wait {
	weir_critical_section *section;
	weir_cancel *token;
	_Atomic(int) begun;
	enum weir_status status;
	weir_error error;
	int calls;
};

static void *wait_with_token(void *context)
{
	struct token_wait *wait = context;

	weiri_store_release(&wait->begun, 1);
	wait->status = weir_critical_section_execute(wait->section, count_up, &wait->calls, WEIR_NO_DEADLINE, wait->token,
	                                             &wait->error);
	return NULL;
}

Test(critical_section, a_token_ends_the_wait_and_tells_why)
{
	struct token_wait wait = {.section = a_section("slow", 0)};
	weir_error cause = {WEIR_ABORTED, "the user went home"}, error;
	struct holder holder;
	pthread_t thread;

	cr_assert_eq(weir_cancel_create(NULL, &wait.token, NULL), WEIR_OK);
	begin_holding(&holder, wait.section);
	cr_assert_eq(pthread_create(&thread, NULL, wait_with_token, &wait), 0);
	wait_until(&wait.begun, 1);
	cr_expect_eq(weir_cancel_fire(wait.token, &cause), 1);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_expect_eq(wait.status, WEIR_CANCELLED);
	cr_expect_not_null(strstr(wait.error.message, "the user went home"), "%s", wait.error.message);
	cr_expect_not_null(strstr(wait.error.message, "\"slow\""), "%s", wait.error.message);
	/* A token that has fired lets no execution begin. */
	end_holding(&holder);
	cr_expect_eq(weir_critical_section_execute(wait.section, count_up, &wait.calls, 0, wait.token, &error),
	             WEIR_CANCELLED);
	cr_expect_eq(wait.calls, 0);
	weir_cancel_release(wait.token);
	end(wait.section);
}

/* -- nesting ----------------------------------------------------------------------------------- */

struct nest {
	weir_critical_section *inner, *outer;
	int calls;
};

static enum weir_status execute_outer_again(void *context, weir_error *error)
{
	struct nest *nest = context;

	/* The outer section is refused through another section, too. */
	return weir_critical_section_execute(nest->outer, count_up, &nest->calls, WEIR_NO_DEADLINE, NULL, error);
}

static enum weir_status execute_inner(void *context, weir_error *error)
{
	struct nest *nest = context;

	nest->calls++;
	return weir_critical_section_execute(nest->inner, execute_outer_again, nest, WEIR_NO_DEADLINE, NULL, error);
}

Test(critical_section, a_section_inside_of_itself_is_refused)
{
	struct nest nest = {.inner = a_section("inner", 0), .outer = a_section("outer", 0)};
	weir_error error;
	int calls = 0;

	cr_expect_eq(weir_critical_section_execute(nest.outer, execute_inner, &nest, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_FAILED_PRECONDITION);
	cr_expect_not_null(strstr(error.message, "\"outer\""), "%s", error.message);
	cr_expect_eq(nest.calls, 1);
	/* Both sections were left. */
	cr_expect_eq(weir_critical_section_execute(nest.outer, count_up, &calls, 0, NULL, &error), WEIR_OK);
	cr_expect_eq(weir_critical_section_execute(nest.inner, count_up, &calls, 0, NULL, &error), WEIR_OK);
	end(nest.inner);
	end(nest.outer);
}

static enum weir_status destroy_mine(void *context, weir_error *error)
{
	return weir_critical_section_destroy(context, error);
}

Test(critical_section, is_not_destroyed_from_inside)
{
	weir_critical_section *section = a_section("s", 0);

	cr_expect_eq(weir_critical_section_execute(section, destroy_mine, section, 0, NULL, NULL),
	             WEIR_FAILED_PRECONDITION);
	end(section);
}

/* -- asynchronous executions ------------------------------------------------------------------- */

struct started {
	weir_critical_section *section;
	weir_pool *pool;
	_Atomic(int) runs, completions, order;
	int place; /* its place in the order of execution */
	enum weir_status status;
	weir_error error;
	struct started *first; /* its `order` counts executions */
};

static enum weir_status run_started(void *context, weir_error *error)
{
	struct started *started = context;

	(void)error;
	weiri_fetch_add_acq_rel(&started->runs, 1);
	if (started->first != NULL)
		started->place = weiri_fetch_add_acq_rel(&started->first->order, 1);
	return WEIR_OK;
}

static void completed(void *context, enum weir_status status, const weir_error *error)
{
	struct started *started = context;

	started->status = status;
	started->error = *error;
	weiri_fetch_add_acq_rel(&started->completions, 1);
}

static weir_pending *start(struct started *started, weir_critical_section_fn *fn)
{
	weir_pending *op = NULL;
	weir_error error;

	cr_assert_eq(weir_critical_section_start(started->section, started->pool, fn, started, completed, &op, &error),
	             WEIR_OK, "%s", error.message);
	return op;
}

Test(critical_section, an_operation_runs_in_the_pool_once_it_may)
{
	struct started one = {.section = a_section("s", 0), .pool = a_pool(2)}, failing = one;
	weir_pending *op, *other;
	struct holder holder;

	begin_holding(&holder, one.section);
	op = start(&one, run_started);
	other = start(&failing, fail_with_a_word);
	weir_pending_release(other);
	cr_expect_eq(weiri_load_acquire(&one.runs), 0);
	cr_expect_eq(weir_critical_section_destroy(one.section, NULL), WEIR_FAILED_PRECONDITION);
	end_holding(&holder);
	wait_until(&one.completions, 1);
	wait_until(&failing.completions, 1);
	cr_expect_eq(one.status, WEIR_OK);
	cr_expect_eq(weiri_load_acquire(&one.runs), 1);
	cr_expect_eq(failing.status, WEIR_DATA_LOSS);
	cr_expect_str_eq(failing.error.message, "the disk is full");
	weir_pending_cancel(op, NULL); /* too late */
	weir_pending_release(op);
	cr_assert_eq(weir_pool_destroy(one.pool, NULL), WEIR_OK);
	cr_expect_eq(weiri_load_acquire(&one.completions), 1);
	end(one.section);
}

Test(critical_section, an_operation_that_waits_is_cancelled_once)
{
	struct started one = {.section = a_section("slow", 0), .pool = a_pool(1)};
	weir_pending *op;
	struct holder holder;

	begin_holding(&holder, one.section);
	op = start(&one, run_started);
	weir_pending_cancel(op, NULL);
	weir_pending_cancel(op, NULL);
	cr_expect_eq(weiri_load_acquire(&one.completions), 1);
	cr_expect_eq(one.status, WEIR_CANCELLED);
	cr_expect_not_null(strstr(one.error.message, "\"slow\""), "%s", one.error.message);
	end_holding(&holder);
	weir_pending_release(op);
	cr_assert_eq(weir_pool_destroy(one.pool, NULL), WEIR_OK);
	cr_expect_eq(weiri_load_acquire(&one.runs), 0);
	cr_expect_eq(weiri_load_acquire(&one.completions), 1);
	end(one.section);
}

/*
 * Starts an execution with memory that may fail. If it fails, nothing runs and nothing completes.
 */
static enum weir_status start_and_run(const weir_allocator *failing, void *context)
{
	struct late_failure late = {0};
	weir_allocator allocator = late_failure_hooks(&late);
	struct weir_critical_section_options options = {WEIR_CRITICAL_SECTION_OPTIONS_INIT, .allocator = &allocator};
	struct started one = {.pool = a_pool(0)};
	enum weir_status status;

	(void)context;
	cr_assert_eq(weir_critical_section_create(&options, &one.section, NULL), WEIR_OK);
	late.under_test = failing;
	status = weir_critical_section_start(one.section, one.pool, run_started, &one, completed, NULL, &one.error);
	late.under_test = NULL;
	if (status != WEIR_OK)
		cr_expect_not_null(strstr(one.error.message, "no memory to enter"), "%s", one.error.message);
	cr_expect_eq(weir_pool_help(one.pool, SIZE_MAX), status == WEIR_OK ? 1 : 0);
	cr_expect_eq(weiri_load_acquire(&one.runs), status == WEIR_OK);
	cr_expect_eq(weiri_load_acquire(&one.completions), status == WEIR_OK);
	cr_assert_eq(weir_pool_destroy(one.pool, NULL), WEIR_OK);
	end(one.section);
	cr_assert_eq(weir_reclaim_flush(weir_deadline_in(PATIENCE_NS)), WEIR_OK);
	late_failure_end(&late);
	return status;
}

Test(critical_section, a_start_survives_every_allocation_failing)
{
	cr_expect_geq(fail_each_allocation(start_and_run, NULL), 2);
}

/*
 * The waiting operations hold no thread of the pool. Its one thread runs all of them, however many
 * wait.
 */
Test(critical_section, a_long_line_of_operations_runs_in_the_order_of_arrival)
{
	enum { MANY = 3000 };
	static struct started line[MANY];
	weir_critical_section *section = a_section("line", WEIR_CRITICAL_SECTION_FAIR);
	weir_pool *pool = a_pool(1);
	struct holder holder;

	begin_holding(&holder, section);
	for (int i = 0; i < MANY; i++) {
		line[i].section = section;
		line[i].pool = pool;
		line[i].first = &line[0];
		cr_assert_eq(weir_critical_section_start(section, pool, run_started, &line[i], completed, NULL, NULL), WEIR_OK);
	}
	end_holding(&holder);
	for (int i = 0; i < MANY; i++) {
		wait_until(&line[i].completions, 1);
		cr_expect_eq(line[i].place, i);
	}
	cr_assert_eq(weir_pool_destroy(pool, NULL), WEIR_OK);
	end(section);
}

/* Attempts the operation, as the claimer does. */
static enum weiri_pending_outcome let_in(weir_pending *op)
{
	struct weiri_scope scope = weiri_scope_enter(weiri_record_get());
	bool moved = false;
	enum weiri_pending_outcome outcome = weiri_pending_drive(&scope, op, &moved);

	if (outcome == WEIRI_PENDING_COMPLETE)
		weiri_pending_finish(&scope, op);
	weiri_scope_leave(&scope);
	if (outcome == WEIRI_PENDING_COMPLETE)
		weiri_pending_complete(op);
	return outcome;
}

/* The section is free, and the operation is about to be let in. */
Test(critical_section, a_newcomer_goes_behind_an_operation_that_waits_if_the_section_is_fair)
{
	struct started one = {.section = a_section("fair", WEIR_CRITICAL_SECTION_FAIR), .pool = a_pool(0)};
	struct holder holder;
	weir_pending *op;
	int calls = 0;

	begin_holding(&holder, one.section);
	op = start(&one, run_started);
	cr_assert_eq(weiri_pending_claim(op), 1);
	end_holding(&holder);
	cr_expect_eq(weir_critical_section_execute(one.section, count_up, &calls, 0, NULL, NULL), WEIR_DEADLINE_EXCEEDED);
	cr_expect_eq(let_in(op), WEIRI_PENDING_COMPLETE);
	weir_pending_release(op);
	cr_expect_eq(weir_pool_help(one.pool, 1), 1);
	cr_expect_eq(one.status, WEIR_OK);
	cr_expect_eq(weir_critical_section_execute(one.section, count_up, &calls, 0, NULL, NULL), WEIR_OK);
	cr_expect_eq(calls, 1);
	cr_assert_eq(weir_pool_destroy(one.pool, NULL), WEIR_OK);
	end(one.section);
}

static enum weir_status start_another(void *context, weir_error *error)
{
	struct started *started = context;

	(void)error;
	weir_pending_release(start(started, run_started));
	cr_expect_eq(weiri_load_acquire(&started->runs), 0);
	return WEIR_OK;
}

Test(critical_section, started_inside_runs_after_it_was_left)
{
	struct started one = {.section = a_section("s", 0), .pool = a_pool(1)};

	cr_expect_eq(weir_critical_section_execute(one.section, start_another, &one, 0, NULL, NULL), WEIR_OK);
	wait_until(&one.completions, 1);
	cr_expect_eq(weiri_load_acquire(&one.runs), 1);
	cr_assert_eq(weir_pool_destroy(one.pool, NULL), WEIR_OK);
	end(one.section);
}

static enum weir_status execute_nested(void *context, weir_error *error)
{
	struct started *started = context;
	int calls = 0;

	return weir_critical_section_execute(started->section, count_up, &calls, WEIR_NO_DEADLINE, NULL, error);
}

Test(critical_section, a_task_inside_is_refused_to_wait_for_itself)
{
	struct started one = {.section = a_section("s", 0), .pool = a_pool(1)};

	weir_pending_release(start(&one, execute_nested));
	wait_until(&one.completions, 1);
	cr_expect_eq(one.status, WEIR_FAILED_PRECONDITION);
	cr_assert_eq(weir_pool_destroy(one.pool, NULL), WEIR_OK);
	end(one.section);
}

/* -- by name ----------------------------------------------------------------------------------- */

Test(critical_section, one_name_is_one_section)
{
	struct weir_critical_section_options fair = {WEIR_CRITICAL_SECTION_OPTIONS_INIT,
	                                             .flags = WEIR_CRITICAL_SECTION_FAIR};
	weir_resource *one = NULL, *other = NULL, *third = NULL;
	weir_store *store = NULL;
	struct nest nest = {0};
	weir_error error;

	cr_assert_eq(weir_store_create(NULL, &store, NULL), WEIR_OK);
	cr_assert_eq(weir_critical_section_find_or_create(store, "box", "shared", NULL, &one, &error), WEIR_OK);
	cr_assert_eq(weir_critical_section_find_or_create(store, "box", "shared", NULL, &other, &error), WEIR_OK);
	cr_expect_eq(weir_resource_object(one), weir_resource_object(other));
	cr_expect_eq(weir_resource_type_of(one), weir_critical_section_type());
	cr_expect_str_eq(weir_critical_section_name(weir_resource_object(one)), "shared");
	cr_expect_eq(weir_critical_section_find_or_create(store, "box", "shared", &fair, &third, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "flags"), "%s", error.message);
	/* A nested execution under the same name. */
	nest.outer = weir_resource_object(one);
	cr_expect_eq(weir_critical_section_execute(weir_resource_object(other), execute_outer_again, &nest,
	                                           WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_FAILED_PRECONDITION);
	cr_expect_not_null(strstr(error.message, "\"shared\""), "%s", error.message);
	weir_store_destroy(store, NULL);
	weir_resource_release(one);
	weir_resource_release(other);
	cr_assert_eq(weir_reclaim_flush(weir_deadline_in(PATIENCE_NS)), WEIR_OK);
}

/* -- messages ---------------------------------------------------------------------------------- */

static enum weir_status fail_without_an_end(void *context, weir_error *error)
{
	(void)context;
	memset(error->message, 'x', sizeof(error->message));
	return WEIR_ABORTED;
}

Test(critical_section, a_message_that_is_not_terminated_is_cut)
{
	struct weir_critical_section_options options = {WEIR_CRITICAL_SECTION_OPTIONS_INIT};
	weir_critical_section *section = NULL;
	weir_error error;

	cr_assert_eq(weir_critical_section_create(&options, &section, NULL), WEIR_OK);
	cr_expect_eq(weir_critical_section_execute(section, fail_without_an_end, NULL, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_ABORTED);
	cr_expect_not_null(memchr(error.message, '\0', sizeof(error.message)));
	cr_assert_eq(weir_critical_section_destroy(section, NULL), WEIR_OK);
}
