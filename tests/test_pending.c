/*
 * test_pending.c - the handle of a started operation (weir/pending.h): its status, waiting for its
 * end, cancelling it with a cause.
 */
#include "queue_kit.h"

#include <weir/flow/keyed_join.h>
#include <weir/critical_section.h>
#include <weir/pool.h>
#include <weir/select.h>
#include <weir/flow/staging.h>
#include <weir/flow/tensor_queue.h>
#include <weir/var.h>
#include <weir/watch.h>

struct told {
	_Atomic(int) times;
	enum weir_status status;
	char message[sizeof(((weir_error *)NULL)->message)];
};

static void note(void *context, enum weir_status status, const weir_error *error, void **items, size_t done)
{
	struct told *told = context;

	(void)items, (void)done;
	told->status = status;
	if (error != NULL)
		memcpy(told->message, error->message, sizeof(told->message));
	weiri_fetch_add_release(&told->times, 1);
}

static weir_pending *start_dequeue(weir_queue *queue, void *items[], struct told *told)
{
	weir_pending *pending = NULL;

	cr_assert_eq(weir_queue_start(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, items, 1, note, told, &pending, NULL), WEIR_OK);
	return pending;
}

Test(pending, status_says_would_block_until_it_has_ended)
{
	weir_queue *queue = fifo(2);
	struct told told = {0};
	void *items[1];
	weir_error error = {0};
	weir_pending *pending = start_dequeue(queue, items, &told);

	cr_expect_eq(weir_pending_try_wait(pending, &error), WEIR_WOULD_BLOCK);
	cr_expect_str_eq(error.message, "the operation has not ended");
	put(queue, 1, 1);
	cr_expect_eq(weir_pending_try_wait(pending, &error), WEIR_OK);
	cr_expect_eq(weir_pending_wait(pending, 0, NULL, &error), WEIR_OK);
	cr_expect_eq(told.status, WEIR_OK);
	weir_pending_release(pending);
	destroy(queue);
}

Test(pending, a_status_tells_why_it_failed_as_the_callback_was_told)
{
	weir_queue *queue = fifo(2);
	struct told told = {0};
	void *items[1];
	weir_error error = {0}, cause = {WEIR_ABORTED, "the user left"};
	weir_pending *pending = start_dequeue(queue, items, &told);

	weir_pending_cancel(pending, &cause);
	weir_pending_cancel(pending, NULL);
	cr_expect_eq(weir_pending_try_wait(pending, &error), WEIR_CANCELLED);
	cr_expect_not_null(strstr(error.message, "the user left"), "%s", error.message);
	cr_expect_str_eq(error.message, told.message);
	cr_expect_eq(weir_pending_wait(pending, WEIR_NO_DEADLINE, NULL, NULL), WEIR_CANCELLED);
	weir_pending_release(pending);
	destroy(queue);
}

Test(pending, a_wait_ends_with_its_deadline_and_the_operation_goes_on)
{
	weir_queue *queue = fifo(2);
	struct told told = {0};
	void *items[1];
	weir_error error = {0};
	weir_pending *pending = start_dequeue(queue, items, &told);

	cr_expect_eq(weir_pending_wait(pending, 0, NULL, &error), WEIR_DEADLINE_EXCEEDED);
	cr_expect_eq(weir_pending_wait(pending, weir_deadline_in(2000000), NULL, &error), WEIR_DEADLINE_EXCEEDED);
	cr_expect_str_eq(error.message, "the deadline passed before the operation ended");
	cr_expect_eq(weir_pending_try_wait(pending, NULL), WEIR_WOULD_BLOCK);
	put(queue, 1, 1);
	cr_expect_eq(weir_pending_wait(pending, WEIR_NO_DEADLINE, NULL, &error), WEIR_OK);
	weir_pending_release(pending);
	destroy(queue);
}

/* -- threads that wait ------------------------------------------------------------------------- */

struct waiter {
	weir_pending *pending;
	weir_cancel *token;
	enum weir_status status;
	weir_error error;
	/* Read when the wait has ended. */
	int times_told;
	struct told *told;
	pthread_t thread;
};

static void *wait_for_it(void *argument)
{
	struct waiter *waiter = argument;

	waiter->status = weir_pending_wait(waiter->pending, in_good_time(), waiter->token, &waiter->error);
	waiter->times_told = weiri_load_relaxed(&waiter->told->times);
	return NULL;
}

static void begin_waiter(struct waiter *waiter)
{
	cr_assert_eq(pthread_create(&waiter->thread, NULL, wait_for_it, waiter), 0);
}

/* A thread marks the word before it sleeps. */
static int some_thread_sleeps(const weir_pending *pending)
{
	return (weiri_load_relaxed(&pending->finished) & WEIRI_PENDING_ASLEEP) == WEIRI_PENDING_ASLEEP;
}

Test(pending, all_threads_that_wait_are_woken_after_the_callback)
{
	enum { WAITERS = 3 };
	weir_queue *queue = fifo(2);
	struct told told = {0};
	struct waiter waiters[WAITERS];
	void *items[1];
	weir_pending *pending = start_dequeue(queue, items, &told);

	for (int i = 0; i < WAITERS; i++) {
		waiters[i] = (struct waiter){.pending = pending, .told = &told};
		begin_waiter(&waiters[i]);
	}
	await(some_thread_sleeps(pending));
	put(queue, 1, 1);
	for (int i = 0; i < WAITERS; i++) {
		cr_assert_eq(pthread_join(waiters[i].thread, NULL), 0);
		cr_expect_eq(waiters[i].status, WEIR_OK, "%s", waiters[i].error.message);
		cr_expect_eq(waiters[i].times_told, 1);
	}
	weir_pending_release(pending);
	destroy(queue);
}

Test(pending, a_token_ends_the_wait_that_has_it_and_no_other)
{
	weir_queue *queue = fifo(2);
	struct told told = {0};
	struct waiter waiters[2];
	void *items[1];
	weir_error cause = {WEIR_ABORTED, "no patience"};
	weir_pending *pending = start_dequeue(queue, items, &told);

	for (int i = 0; i < 2; i++)
		waiters[i] = (struct waiter){.pending = pending, .told = &told};
	cr_assert_eq(weir_cancel_create(NULL, &waiters[0].token, NULL), WEIR_OK);
	begin_waiter(&waiters[0]);
	begin_waiter(&waiters[1]);
	await(some_thread_sleeps(pending));
	(void)weir_cancel_fire(waiters[0].token, &cause);
	cr_assert_eq(pthread_join(waiters[0].thread, NULL), 0);
	cr_expect_eq(waiters[0].status, WEIR_CANCELLED);
	cr_expect_not_null(strstr(waiters[0].error.message, "no patience"), "%s", waiters[0].error.message);
	cr_expect_eq(weir_pending_try_wait(pending, NULL), WEIR_WOULD_BLOCK);
	/* The token has fired before. */
	cr_expect_eq(weir_pending_wait(pending, WEIR_NO_DEADLINE, waiters[0].token, NULL), WEIR_CANCELLED);
	put(queue, 1, 1);
	cr_assert_eq(pthread_join(waiters[1].thread, NULL), 0);
	cr_expect_eq(waiters[1].status, WEIR_OK);
	weir_cancel_release(waiters[0].token);
	weir_pending_release(pending);
	destroy(queue);
}

/* -- each kind --------------------------------------------------------------------------------- */

static void note_select(void *context, enum weir_status status, const weir_error *error,
                        struct weir_select_case cases[], size_t chosen)
{
	(void)cases, (void)chosen;
	note(context, status, error, NULL, 0);
}

Test(pending, a_select_whose_case_was_refused_has_succeeded)
{
	weir_queue *queue = fifo(1);
	struct weir_select_case cases[1] = {{.queue = queue, .kind = WEIR_SELECT_DEQUEUE}};
	struct told told = {0};
	weir_pending *pending = NULL;

	cr_assert_eq(weir_select_start(cases, 1, note_select, &told, &pending, NULL), WEIR_OK);
	cr_expect_eq(weir_pending_try_wait(pending, NULL), WEIR_WOULD_BLOCK);
	cr_assert_eq(weir_queue_close(queue, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
	cr_expect_eq(told.status, WEIR_OK);
	cr_expect_eq(cases[0].status, WEIR_OUT_OF_RANGE);
	cr_expect_eq(weir_pending_try_wait(pending, NULL), WEIR_OK);
	weir_pending_release(pending);
	destroy(queue);
}

static void note_read(void *context, enum weir_status status, const weir_error *error, weir_read *read)
{
	if (status == WEIR_OK)
		weir_read_release(read);
	note(context, status, error, NULL, 0);
}

Test(pending, a_wait_for_a_variable_can_be_cancelled_with_a_cause)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .name = "v", .dtype = WEIR_I32};
	weir_tensor *value;
	weir_var *var;
	struct told told = {0};
	weir_error error = {0}, cause = {WEIR_ABORTED, "not wanted"};
	weir_pending *pending = NULL;

	cr_assert_eq(weir_tensor_scalar_i32(1, &value), WEIR_OK);
	cr_assert_eq(weir_var_create(value, &options, &var, NULL), WEIR_OK);
	weir_tensor_release(value);
	cr_assert_eq(weir_var_start_wait(var, 100, note_read, &told, &pending, NULL), WEIR_OK);
	cr_expect_eq(weir_pending_try_wait(pending, NULL), WEIR_WOULD_BLOCK);
	weir_pending_cancel(pending, &cause);
	cr_expect_eq(weir_pending_try_wait(pending, &error), WEIR_CANCELLED);
	cr_expect_str_eq(error.message, "variable \"v\": wait was cancelled: not wanted");
	weir_pending_release(pending);
	cr_expect_eq(weir_var_destroy(var, NULL), WEIR_OK);
}

struct gate {
	_Atomic(int) inside, may_leave;
	struct told told;
};

static enum weir_status stay_inside(void *context, weir_error *error)
{
	struct gate *gate = context;

	weiri_store_release(&gate->inside, 1);
	while (!weiri_load_acquire(&gate->may_leave))
		(void)sched_yield();
	*error = (weir_error){WEIR_DATA_LOSS, "it went wrong inside"};
	return WEIR_DATA_LOSS;
}

static void note_section(void *context, enum weir_status status, const weir_error *error)
{
	note(&((struct gate *)context)->told, status, error, NULL, 0);
}

/* The execution entered the section long before. Its handle stands for the whole execution. */
Test(pending, an_execution_in_a_critical_section_ends_when_it_has_left)
{
	weir_critical_section *section;
	weir_pool *pool;
	struct gate gate = {0};
	weir_error error = {0};
	weir_pending *pending = NULL;

	cr_assert_eq(weir_critical_section_create(NULL, &section, NULL), WEIR_OK);
	cr_assert_eq(weir_pool_create(NULL, &pool, NULL), WEIR_OK);
	cr_assert_eq(weir_critical_section_start(section, pool, stay_inside, &gate, note_section, &pending, NULL), WEIR_OK);
	await(weiri_load_acquire(&gate.inside));
	cr_expect_eq(weir_pending_try_wait(pending, NULL), WEIR_WOULD_BLOCK);
	/* The cancellation comes too late. */
	weir_pending_cancel(pending, NULL);
	weiri_store_release(&gate.may_leave, 1);
	cr_expect_eq(weir_pending_wait(pending, in_good_time(), NULL, &error), WEIR_DATA_LOSS);
	cr_expect_str_eq(error.message, "it went wrong inside");
	cr_expect_eq(gate.told.times, 1);
	cr_expect_eq(gate.told.status, WEIR_DATA_LOSS);
	weir_pending_release(pending);
	cr_expect_eq(weir_pool_destroy(pool, NULL), WEIR_OK);
	cr_expect_eq(weir_critical_section_destroy(section, NULL), WEIR_OK);
}

Test(pending, a_handle_outlives_what_it_waited_for)
{
	weir_queue *queue = fifo(1);
	struct told told = {0};
	void *items[1];
	weir_pending *pending = start_dequeue(queue, items, &told);

	weir_pending_cancel(pending, NULL);
	destroy(queue);
	cr_expect_eq(weir_reclaim_flush(in_good_time()), WEIR_OK);
	cr_expect_eq(weir_pending_try_wait(pending, NULL), WEIR_CANCELLED);
	weir_pending_cancel(pending, NULL);
	weir_pending_release(pending);
}

Test(pending, null_is_refused_or_nothing)
{
	weir_error error = {0};

	weir_pending_cancel(NULL, NULL);
	weir_pending_release(NULL);
	cr_expect_eq(weir_pending_try_wait(NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "pending is NULL");
	cr_expect_eq(weir_pending_wait(NULL, 0, NULL, &error), WEIR_INVALID_ARGUMENT);
}
