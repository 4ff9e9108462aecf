/*
 * check_queue.c - FIFO and shuffle queues that block, close and cancel.
 *
 * An item is the address of plain data written just before its enqueue. Each accepted item is had once; nobody sleeps for ever (all
 * threads asleep is a failure of its own); what is left after a close goes to drop().
 */
#include <stdio.h>
#include <string.h>
#include <weir/cancel.h>
#include <weir/queue.h>
#include <weir/reclaim.h>
#include <weir/time.h>

#include "model/scope.h"

enum { MOST = 4 };

static struct scene {
	weir_queue *queue;
	weir_cancel *token;
	enum weir_queue_order order;
	size_t capacity, each;
	uint64_t deadline;
	int data[MOST], had[MOST], accepted[MOST];
	enum weir_status ended[MOST];
} scene;

static void have(void *context, void *item)
{
	size_t i = (size_t)((int *)item - scene.data);

	(void)context;
	weir_model_assert(*(int *)item == (int)i + 1);
	scene.had[i]++;
}

static void setup(void *context)
{
	struct weir_queue_options options = {
		.struct_size = sizeof(options), .capacity = scene.capacity, .order = scene.order, .seed = 1, .drop = have};

	(void)context;
	weir_model_assert(weir_queue_create(&options, &scene.queue, NULL) == WEIR_OK);
	weir_model_assert(weir_cancel_create(NULL, &scene.token) == WEIR_OK);
}

static void finish(void *context)
{
	(void)context;
	weir_model_assert(weir_queue_destroy(scene.queue, NULL) == WEIR_OK);
	weir_cancel_release(scene.token);
	for (size_t i = 0; i < MOST; i++)
		weir_model_assert(scene.had[i] == scene.accepted[i]);
	weir_model_assert(weir_reclaim_flush(0) == WEIR_OK);
}

static enum weir_status put(size_t i)
{
	enum weir_status status;

	scene.data[i] = (int)i + 1;
	status = weir_queue_enqueue(scene.queue, &scene.data[i], scene.deadline, scene.token, NULL);
	scene.accepted[i] = status == WEIR_OK;
	return status;
}

static enum weir_status take(void)
{
	void *item;
	enum weir_status status = weir_queue_dequeue(scene.queue, &item, scene.deadline, scene.token, NULL);

	if (status == WEIR_OK)
		have(NULL, item);
	return status;
}

/* Thread 0 enqueues, thread 1 dequeues as many. */
static void pass(void *context, size_t who)
{
	(void)context;
	for (size_t i = 0; i < scene.each; i++)
		weir_model_assert((who == 0 ? put(i) : take()) == WEIR_OK);
}

/* Two of each, one item. */
static void pass_2_2(void *context, size_t who)
{
	(void)context;
	weir_model_assert((who < 2 ? put(who) : take()) == WEIR_OK);
}

/* A consumer waits; the queue is closed beside it, or an item comes first. */
static void close_beside_dequeue(void *context, size_t who)
{
	(void)context;
	if (who == 0)
		scene.ended[0] = take();
	else if (who == 1)
		(void)weir_queue_close(scene.queue, WEIR_CLOSE_DRAIN, NULL);
	else
		scene.ended[2] = put(0);
}

static void closed(void *context)
{
	int had = scene.had[0];

	weir_model_assert(scene.ended[0] == WEIR_OK || scene.ended[0] == WEIR_OUT_OF_RANGE);
	weir_model_assert(scene.ended[2] == WEIR_OK || scene.ended[2] == WEIR_CANCELLED);
	/* Whoever saw the end is right: nothing is left and nothing comes. */
	weir_model_assert(scene.ended[0] == WEIR_OK || !scene.accepted[0]);
	weir_model_assert(had == (scene.ended[0] == WEIR_OK));
	finish(context);
}

/* A dequeue waits for an item that does not come, or comes: the token ends it. */
static void cancel_beside_dequeue(void *context, size_t who)
{
	(void)context;
	if (who == 0)
		scene.ended[0] = take();
	else if (who == 1)
		(void)weir_cancel_fire(scene.token, NULL);
	else
		weir_model_assert(weir_queue_try_enqueue(scene.queue, &scene.data[0]) == WEIR_OK);
}

static void cancelled(void *context)
{
	weir_model_assert(scene.ended[0] == WEIR_OK || scene.ended[0] == WEIR_CANCELLED);
	finish(context);
}

/* The deadline passes, or an item comes. */
static void deadline_beside_enqueue(void *context, size_t who)
{
	(void)context;
	if (who == 0)
		scene.ended[0] = take();
	else
		weir_model_assert(put(0) == WEIR_OK);
}

static void in_time_or_not(void *context)
{
	weir_model_assert(scene.ended[0] == WEIR_OK || scene.ended[0] == WEIR_DEADLINE_EXCEEDED);
	finish(context);
}

static const struct scope {
	const char *name;
	size_t threads, capacity, each;
	void (*thread)(void *, size_t);
	void (*finish)(void *);
	uint64_t deadline;
	int filled; /* data[0] is there from the start */
} scopes[] = {
	{"n1_1_enqueue_1_dequeue", 2, 1, 1, pass, finish, WEIR_NO_DEADLINE, 0},
	{"n1_2_enqueues_2_dequeues_of_2_threads", 2, 1, 2, pass, finish, WEIR_NO_DEADLINE, 0},
	{"n1_2_producers_2_consumers", 4, 1, 1, pass_2_2, finish, WEIR_NO_DEADLINE, 0},
	{"n1_close_beside_dequeue", 2, 1, 1, close_beside_dequeue, closed, WEIR_NO_DEADLINE, 0},
	{"n1_close_beside_dequeue_and_enqueue", 3, 1, 1, close_beside_dequeue, closed, WEIR_NO_DEADLINE, 0},
	{"n1_cancel_beside_dequeue", 2, 1, 1, cancel_beside_dequeue, cancelled, WEIR_NO_DEADLINE, 1},
	{"n1_cancel_beside_dequeue_and_try_enqueue", 3, 1, 1, cancel_beside_dequeue, cancelled, WEIR_NO_DEADLINE, 1},
	{"n1_deadline_beside_enqueue", 2, 1, 1, deadline_beside_enqueue, in_time_or_not, 2, 0},
};

static int check(const struct scope *scope, enum weir_queue_order order, uint64_t executions)
{
	char name[96];
	struct weir_model_program program = {name,  scope->threads, &scene,       sizeof(scene),
	                                     setup, scope->thread,  scope->finish};

	(void)snprintf(name, sizeof(name), "queue_%s_%s", order == WEIR_QUEUE_FIFO ? "fifo" : "shuffle", scope->name);
	scene =
		(struct scene){.order = order, .capacity = scope->capacity, .each = scope->each, .deadline = scope->deadline};
	if (scope->filled) {
		scene.data[0] = 1;
		scene.accepted[0] = scope->threads == 3;
	}
	return scope_as_far_as(&program, executions);
}

int main(int argc, char **argv)
{
	int bad = 0;

	scope_arguments(argc, argv);
	for (size_t i = 0; i < sizeof(scopes) / sizeof(scopes[0]); i++) {
		bad |= check(&scopes[i], WEIR_QUEUE_FIFO, scope_long() ? 1000000 : 10000);
		bad |= check(&scopes[i], WEIR_QUEUE_SHUFFLE, scope_long() ? 1000000 : 10000);
	}
	scope_symmetric(1);
	for (size_t i = 0; i < sizeof(scopes) / sizeof(scopes[0]); i++)
		bad |= check(&scopes[i], WEIR_QUEUE_FIFO, scope_long() ? 1000000 : 5000);
	return bad;
}
