/*
 * test_queue_races.c - interleavings that once went wrong, or might: provoked many times within a bounded time.
 */
#include "queue_kit.h"

#include <stdlib.h>

/* How long each test provokes its race. */
static uint64_t a_while(void)
{
	return weir_deadline_in(UINT64_C(300000000));
}

/* -- a token that fires while the operation ends, and the queue is destroyed right after ---------------------------------------- */

struct owner {
	weir_cancel *token;
	_Atomic(weir_queue *) queue; /* set: waits, or is about to */
	_Atomic(int) stop;
	enum weir_status status;
};

/* Makes a queue, waits in it, and destroys it as soon as the wait is over: nobody else knows the queue. */
static void *wait_and_destroy(void *argument)
{
	struct owner *owner = argument;
	struct weir_queue_options options = {.struct_size = sizeof(options), .capacity = 1, .name = "short-lived"};
	weir_queue *queue;
	void *got;

	if (weir_queue_create(&options, &queue, NULL) != WEIR_OK)
		return NULL;
	weiri_store_release(&owner->queue, queue);
	owner->status = weir_queue_dequeue(queue, &got, in_good_time(), owner->token, NULL);
	(void)weir_queue_destroy(queue, NULL);
	return NULL;
}

Test(queue_races, a_fired_token_leaves_the_queue_alone_once_its_operation_has_ended)
{
	uint64_t until = a_while();

	while (weir_now_ns() < until) {
		struct owner owner = {0};
		pthread_t thread;

		cr_assert_eq(weir_cancel_create(NULL, &owner.token), WEIR_OK);
		cr_assert_eq(pthread_create(&thread, NULL, wait_and_destroy, &owner), 0);
		await(weiri_load_acquire(&owner.queue) != NULL);
		cr_assert_eq(weir_cancel_fire(owner.token, NULL), 1);
		cr_assert_eq(pthread_join(thread, NULL), 0);
		cr_assert_eq(owner.status, WEIR_CANCELLED);
		weir_cancel_release(owner.token);
	}
}
