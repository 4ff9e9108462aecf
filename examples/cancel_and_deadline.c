/*
 * cancel_and_deadline.c - two ways out of a call that waits: a deadline and a cancel token.
 *
 * Either way no item is lost: the batch that had gathered three of five items returns them, in
 * order.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <weir/queue.h>

enum { WANTED = 5, THERE = 3 };

static weir_queue *queue;
static weir_cancel *token;

/* Fires the token once the batch has taken the stored items and the queue is empty. */
static void *fire(void *unused)
{
	weir_error cause = {WEIR_CANCELLED, "the user has seen enough"};

	while (weir_queue_size_approx(queue) != 0)
		(void)sched_yield();
	(void)weir_cancel_fire(token, &cause);
	return unused;
}

static int say(const char *what, enum weir_status got, enum weir_status expected, const weir_error *error)
{
	printf("%s: %s: %s\n", what, weir_status_name(got), error->message);
	return got != expected;
}

int main(void)
{
	struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .capacity = 8, .name = "work"};
	int items[THERE] = {0, 1, 2}, wrong = 0;
	void *batch[WANTED], *item;
	pthread_t thread;
	weir_error error;
	uint64_t before;

	if (weir_queue_create(&options, &queue, &error) || weir_cancel_create(NULL, &token, NULL))
		return 1;

	before = weir_now_ns();
	wrong += say("no item in time", weir_queue_dequeue(queue, &item, weir_deadline_in(20000000), token, &error),
	             WEIR_DEADLINE_EXCEEDED, &error);
	wrong += weir_now_ns() - before < 20000000;

	for (int i = 0; i < THERE; i++)
		wrong += weir_queue_try_enqueue(queue, &items[i]) != WEIR_OK;
	if (pthread_create(&thread, NULL, fire, NULL) != 0)
		return 1;
	/* One deadline can bound a chain of calls, because it is a moment and not a length of time. */
	wrong += say("cancelled", weir_queue_dequeue_many(queue, batch, WANTED, WEIR_NO_DEADLINE, token, &error),
	             WEIR_CANCELLED, &error);
	(void)pthread_join(thread, NULL);

	for (int i = 0; i < THERE; i++)
		wrong += weir_queue_try_dequeue(queue, &item) != WEIR_OK || item != &items[i];
	wrong += weir_queue_try_dequeue(queue, &item) != WEIR_WOULD_BLOCK;
	weir_cancel_release(token);
	wrong += weir_queue_destroy(queue, &error) != WEIR_OK;
	printf("%s\n", wrong == 0 ? "nothing was lost" : "wrong");
	return wrong == 0 ? 0 : 1;
}
