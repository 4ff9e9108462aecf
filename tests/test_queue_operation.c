/*
 * test_queue_operation.c - the states of a waiting operation: what happens to it while a thread
 * holds the claim (lib/weir/sync/pending.h).
 */
#include "queue_kit.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <weir/select.h>

#include "base/asymmetric.h"

static void note(void *context, enum weir_status status, const weir_error *error, void **items, size_t done)
{
	(void)error, (void)items, (void)done;
	*(enum weir_status *)context = status;
}

static const enum weir_status not_yet = WEIR_INTERNAL;

static uint32_t state_of(weir_pending *op)
{
	return weiri_load_acquire(&op->state);
}

/* Starts an operation that waits, and takes its claim for the test. */
static weir_pending *claimed(weir_queue *queue, enum weir_queue_op_kind kind, void *items[], size_t count,
                             enum weir_status *status)
{
	weir_pending *op;

	*status = not_yet;
	cr_assert_eq(weir_queue_start(queue, kind, items, count, note, status, &op, NULL), WEIR_OK);
	cr_assert_eq(state_of(op), 0);
	cr_assert_eq(weiri_pending_claim(op), 1);
	cr_assert_eq(state_of(op), WEIRI_PENDING_CLAIMED);
	return op;
}

/* Does what a claimer does. */
static enum weiri_pending_outcome carry_on(weir_queue *queue, weir_pending *op)
{
	struct weiri_record *record = weiri_record_get();
	struct weiri_scope scope = weiri_scope_enter(record);
	bool moved = false;
	enum weiri_pending_outcome outcome = weiri_pending_drive(&scope, op, &moved);

	if (outcome == WEIRI_PENDING_COMPLETE)
		weiri_pending_finish(&scope, op);
	weiri_scope_leave(&scope);
	if (outcome == WEIRI_PENDING_COMPLETE)
		weiri_pending_complete(op);
	weiri_queue_pump(record, queue);
	return outcome;
}

Test(queue_operation, one_claim_at_a_time)
{
	weir_queue *queue = fifo(2);
	void *items[1];
	enum weir_status status;
	weir_pending *op = claimed(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, items, 1, &status);

	cr_expect_eq(weiri_pending_claim(op), 0);
	cr_expect_eq(state_of(op), WEIRI_PENDING_CLAIMED | WEIRI_PENDING_AGAIN);
	/* The claimer looks again, and the operation then waits. */
	cr_expect_eq(carry_on(queue, op), WEIRI_PENDING_STUCK);
	cr_expect_eq(state_of(op), 0);
	weir_pending_cancel(op, NULL);
	cr_expect_eq(status, WEIR_CANCELLED);
	cr_expect_eq(state_of(op), WEIRI_PENDING_DONE);
	cr_expect_eq(weiri_pending_claim(op), 0);
	cr_expect_eq(state_of(op), WEIRI_PENDING_DONE);
	weir_pending_release(op);
	destroy(queue);
}

Test(queue_operation, an_item_that_comes_meanwhile_makes_the_claimer_look_again)
{
	weir_queue *queue = fifo(2);
	void *items[1];
	enum weir_status status;
	weir_pending *op = claimed(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, items, 1, &status);

	put(queue, 1, 1);
	cr_expect_eq(status, not_yet);
	cr_expect_eq(state_of(op), WEIRI_PENDING_CLAIMED | WEIRI_PENDING_AGAIN);
	cr_expect_eq(carry_on(queue, op), WEIRI_PENDING_COMPLETE);
	cr_expect_eq(status, WEIR_OK);
	cr_expect_eq(number_of(items[0]), 1);
	weir_pending_release(op);
	destroy(queue);
}

Test(queue_operation, an_item_that_comes_meanwhile_goes_to_the_next_who_waits)
{
	weir_queue *queue = fifo(2);
	void *items[2][1] = {{NULL}};
	enum weir_status statuses[2];
	weir_pending *op = claimed(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, items[0], 1, &statuses[0]);

	statuses[1] = not_yet;
	cr_assert_eq(weir_queue_start(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, items[1], 1, note, &statuses[1], NULL, NULL),
	             WEIR_OK);
	put(queue, 1, 1);
	cr_expect_eq(statuses[1], WEIR_OK, "a thread that stops with the claim blocks no other thread");
	cr_expect_eq(number_of(items[1][0]), 1);
	cr_expect_eq(carry_on(queue, op), WEIRI_PENDING_STUCK);
	put(queue, 2, 1);
	cr_expect_eq(statuses[0], WEIR_OK);
	weir_pending_release(op);
	destroy(queue);
}

Test(queue_operation, a_close_that_comes_meanwhile_makes_the_claimer_look_again)
{
	weir_queue *queue = fifo(2);
	void *items[3];
	enum weir_status status;
	weir_pending *op;

	put(queue, 1, 2);
	op = claimed(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, items, 3, &status);
	cr_expect_eq(weir_queue_close(queue, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
	cr_expect_eq(state_of(op), WEIRI_PENDING_CLAIMED | WEIRI_PENDING_AGAIN);
	/* The batch has two items and has not decided, so no call may be told the end. */
	cr_expect_eq(weir_queue_try_dequeue(queue, &items[2]), WEIR_WOULD_BLOCK);
	cr_expect_eq(carry_on(queue, op), WEIRI_PENDING_COMPLETE);
	cr_expect_eq(status, WEIR_OUT_OF_RANGE);
	expect_next(queue, 1, 2);
	expect_drained(queue);
	weir_pending_release(op);
	destroy(queue);
}

Test(queue_operation, a_cancel_that_comes_meanwhile_is_the_claimers_to_carry_out)
{
	weir_queue *queue = fifo(2);
	void *items[3];
	enum weir_status status;
	weir_pending *op;
	weir_error cause = {WEIR_ABORTED, "why"};

	put(queue, 1, 2);
	op = claimed(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, items, 3, &status);
	weir_pending_cancel(op, &cause);
	weir_pending_cancel(op, NULL);
	cr_expect_eq(status, not_yet);
	cr_expect_eq(state_of(op), WEIRI_PENDING_CLAIMED | WEIRI_PENDING_CANCEL | WEIRI_PENDING_FOR_A_CAUSE,
	             "the first one counts");
	cr_expect_eq(carry_on(queue, op), WEIRI_PENDING_COMPLETE);
	cr_expect_eq(status, WEIR_CANCELLED);
	cr_expect_not_null(strstr(op->error.message, "why"), "%s", op->error.message);
	expect_next(queue, 1, 2);
	weir_pending_release(op);
	destroy(queue);
}

Test(queue_operation, a_cancel_that_comes_after_a_close_changes_nothing)
{
	weir_queue *queue = fifo(1);
	void *items[1] = {item(2)};
	enum weir_status status;
	weir_pending *op;
	weir_error cause = {WEIR_ABORTED, "why"};

	put(queue, 1, 1);
	op = claimed(queue, WEIR_QUEUE_OP_ENQUEUE, items, 1, &status);
	cr_expect_eq(weir_queue_close(queue, WEIR_CLOSE_CANCEL, &cause), WEIR_OK);
	weir_pending_cancel(op, NULL);
	cr_expect_eq(status, not_yet);
	cr_expect_eq(carry_on(queue, op), WEIRI_PENDING_COMPLETE);
	cr_expect_eq(status, WEIR_CANCELLED);
	cr_expect_not_null(strstr(op->error.message, "why"), "%s", op->error.message);
	expect_next(queue, 1, 1);
	weir_pending_release(op);
	destroy(queue);
}

Test(queue_operation, room_that_comes_meanwhile_makes_the_claimer_look_again)
{
	weir_queue *queue = fifo(1);
	void *items[1] = {item(2)};
	enum weir_status status;
	weir_pending *op;

	put(queue, 1, 1);
	op = claimed(queue, WEIR_QUEUE_OP_ENQUEUE, items, 1, &status);
	expect_next(queue, 1, 1);
	cr_expect_eq(state_of(op), WEIRI_PENDING_CLAIMED | WEIRI_PENDING_AGAIN);
	cr_expect_eq(carry_on(queue, op), WEIRI_PENDING_COMPLETE);
	cr_expect_eq(status, WEIR_OK);
	expect_next(queue, 2, 1);
	weir_pending_release(op);
	destroy(queue);
}

Test(queue_operation, a_turn_that_comes_free_meanwhile_makes_the_next_batch_look_again)
{
	weir_queue *queue = fifo(4);
	void *first_items[3], *second_items[2];
	enum weir_status first_status = not_yet, second_status;
	weir_pending *first, *second;

	cr_assert_eq(weir_queue_start(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, first_items, 3, note, &first_status, &first, NULL),
	             WEIR_OK);
	second = claimed(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, second_items, 2, &second_status);
	put(queue, 1, 2);
	weir_pending_cancel(first, NULL);
	cr_expect_eq(first_status, WEIR_CANCELLED);
	cr_expect_neq(state_of(second) & WEIRI_PENDING_AGAIN, 0);
	cr_expect_eq(carry_on(queue, second), WEIRI_PENDING_COMPLETE);
	cr_expect_eq(second_status, WEIR_OK);
	expect_numbers(second_items, 1, 2);
	weir_pending_release(first);
	weir_pending_release(second);
	destroy(queue);
}

Test(queue_operation, nobody_is_told_the_end_while_an_admitted_enqueue_is_being_worked_on)
{
	weir_queue *queue = fifo(1);
	void *items[1] = {item(2)}, *got;
	enum weir_status status;
	weir_pending *op;

	put(queue, 1, 1);
	op = claimed(queue, WEIR_QUEUE_OP_ENQUEUE, items, 1, &status);
	cr_expect_eq(weir_queue_close(queue, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
	expect_next(queue, 1, 1);
	cr_expect_eq(weir_queue_try_dequeue(queue, &got), WEIR_WOULD_BLOCK);
	cr_expect_eq(carry_on(queue, op), WEIRI_PENDING_COMPLETE);
	expect_next(queue, 2, 1);
	expect_drained(queue);
	weir_pending_release(op);
	destroy(queue);
}

static void note_chosen(void *context, enum weir_status status, const weir_error *error,
                        struct weir_select_case cases[], size_t chosen)
{
	(void)error, (void)cases, (void)chosen;
	*(enum weir_status *)context = status;
}

Test(queue_operation, a_select_takes_nothing_ahead_of_one_in_a_fair_queue_that_is_being_worked_on)
{
	weir_queue *queue =
		queue_with((struct weir_queue_options){.capacity = 2, .flags = WEIR_QUEUE_FAIR, .name = "fair"});
	struct weir_select_case cases[1] = {{.queue = queue, .kind = WEIR_SELECT_DEQUEUE}};
	enum weir_status status, chosen = not_yet;
	void *items[1];
	weir_pending *op = claimed(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, items, 1, &status);

	put(queue, 1, 1);
	cr_assert_eq(weir_select_start(cases, 1, note_chosen, &chosen, NULL, NULL), WEIR_OK);
	cr_expect_eq(chosen, not_yet);
	cr_expect_eq(carry_on(queue, op), WEIRI_PENDING_COMPLETE);
	cr_assert_eq(status, WEIR_OK);
	cr_expect_eq(number_of(items[0]), 1);
	put(queue, 2, 1);
	cr_assert_eq(chosen, WEIR_OK);
	cr_expect_eq(number_of(cases[0].item), 2);
	weir_pending_release(op);
	destroy(queue);
}

/* While a section of this thread is open, no thread could free what is retired. */
Test(queue_operation, a_start_leaves_no_section_open_whether_it_waits_or_ends)
{
	weir_queue *queue = fifo(1);
	enum weir_status status = not_yet;
	void *items[1];

	cr_assert_eq(weir_queue_start(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, items, 1, note, &status, NULL, NULL), WEIR_OK);
	/* [relaxed] own field */
	cr_expect_eq(weiri_load_relaxed(&weiri_record_get()->lo), 0);
	put(queue, 1, 1);
	cr_expect_eq(status, WEIR_OK);
	cr_assert_eq(weir_queue_start(queue, WEIR_QUEUE_OP_ENQUEUE, items, 1, note, &status, NULL, NULL), WEIR_OK);
	/* [relaxed] own field */
	cr_expect_eq(weiri_load_relaxed(&weiri_record_get()->lo), 0);
	expect_next(queue, 1, 1);
	destroy(queue);
}

/* -- membarrier is refused after it was granted ------------------------------------------------ */

enum { FOUND = 0, NOT_FOUND = 1, CANNOT_TRY = 2 };

/*
 * Makes Linux refuse membarrier from now on, as in a sandbox that is entered late. Returns 0 if
 * that is not possible here.
 */
static int refuse_membarrier(void)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(rules) / sizeof(rules[0]), rules};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 &&
	       !weiri_fence_heavy();
}

/* An item goes in without a look for waiters, as if the notifier had looked too early. */
static int be_overlooked(void)
{
	weir_queue *queue = NULL;
	struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .capacity = 2};
	struct call call = {.kind = DEQUEUE};
	uint64_t until = in_good_time();

	if (weir_queue_create(&options, &queue, NULL) != WEIR_OK || !weiri_fence_heavy() || !refuse_membarrier())
		return CANNOT_TRY;
	call.queue = queue;
	if (pthread_create(&call.thread, NULL, call_main, &call) != 0)
		return CANNOT_TRY;
	while (idle_in(queue) != 1 || !is_asleep(&call)) {
		if (weir_now_ns() > until)
			return NOT_FOUND;
		(void)sched_yield();
	}
	if (weir_ring_try_enqueue(queue->ring, 1) != WEIR_OK)
		return CANNOT_TRY;
	while (!has_ended(&call)) {
		if (weir_now_ns() > until)
			return NOT_FOUND;
		(void)sched_yield();
	}
	(void)pthread_join(call.thread, NULL);
	return call.status == WEIR_OK && number_of(call.items[0]) == 1 ? FOUND : NOT_FOUND;
}

/* A select on a thread of its own. */
struct selecting {
	struct weir_select_case cases[2];
	/* Its thread, and the status of the select. */
	struct call call;
	size_t chosen;
	/* 1: the thread believes that a call of its own still uses an object. */
	int visits;
};

static void *select_main(void *context)
{
	struct selecting *selecting = context;

	weiri_store_relaxed(&selecting->call.number_of_thread, gettid());
	selecting->call.status = weir_select(selecting->cases, 2, in_good_time(), NULL, &selecting->chosen, NULL);
	selecting->visits = weiri_deliveries_mine()->visits != NULL;
	return NULL;
}

static int be_overlooked_in_a_select(void)
{
	struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .capacity = 2};
	struct selecting selecting = {.chosen = 9};
	uint64_t until = in_good_time();

	for (int i = 0; i < 2; i++) {
		selecting.cases[i] = (struct weir_select_case){.kind = WEIR_SELECT_DEQUEUE};
		if (weir_queue_create(&options, &selecting.cases[i].queue, NULL) != WEIR_OK)
			return CANNOT_TRY;
	}
	if (!weiri_fence_heavy() || !refuse_membarrier() ||
	    pthread_create(&selecting.call.thread, NULL, select_main, &selecting) != 0)
		return CANNOT_TRY;
	while (idle_in(selecting.cases[1].queue) != 1 || !is_asleep(&selecting.call)) {
		if (weir_now_ns() > until)
			return NOT_FOUND;
		(void)sched_yield();
	}
	if (weir_ring_try_enqueue(selecting.cases[1].queue->ring, 1) != WEIR_OK)
		return CANNOT_TRY;
	(void)pthread_join(selecting.call.thread, NULL);
	for (int i = 0; i < 2; i++) {
		if (weir_queue_destroy(selecting.cases[i].queue, NULL) != WEIR_OK)
			return NOT_FOUND;
	}
	return selecting.call.status == WEIR_OK && selecting.chosen == 1 && !selecting.visits ? FOUND : NOT_FOUND;
}

static void expect_found_in_a_child(int (*find)(void))
{
	int status = 0;
	pid_t child = fork();

	cr_assert(child >= 0);
	if (child == 0)
		_exit(find());
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status));
	if (WEXITSTATUS(status) == CANNOT_TRY)
		cr_skip("membarrier cannot be refused here");
	cr_expect_eq(WEXITSTATUS(status), FOUND);
}

Test(queue_operation, a_call_that_may_be_overlooked_looks_for_itself)
{
	expect_found_in_a_child(be_overlooked);
}

Test(queue_operation, a_select_that_may_be_overlooked_looks_for_itself_and_leaves_nothing_behind)
{
	expect_found_in_a_child(be_overlooked_in_a_select);
}
