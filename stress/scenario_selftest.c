/*
 * scenario_selftest.c - scenarios that fail on purpose, so that scripts/check_stress can check the
 * reports. They are not listed.
 *
 *   selftest_hang   three threads wait for an item that never arrives, because the producer has
 *                   ended; and two threads move items between two full queues, each waiting for
 *                   the other
 *   selftest_wrong  a check fails
 *   selftest_crash  calls abort()
 */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <weir/queue.h>

#include "scenarios.h"
#include "waiting.h"

static weir_queue *queues[3];
static struct stress_object objects[3];

enum { STARVED, LEFT, RIGHT };

static void consume(struct stress_thread *self, void *context)
{
	void *item;

	(void)context;
	for (;;) {
		stress_begin_on(self, "dequeue", &objects[STARVED], STRESS_AN_ITEM);
		(void)weir_queue_dequeue(queues[STARVED], &item, WEIR_NO_DEADLINE, NULL, NULL);
		stress_end(self, 1);
	}
}

static void produce_one(struct stress_thread *self, void *context)
{
	stress_gives(self, &objects[STARVED], STRESS_AN_ITEM);
	(void)weir_queue_enqueue(queues[STARVED], context, WEIR_NO_DEADLINE, NULL, NULL);
	stress_end(self, 1);
}

/* Gives room in its own queue once there is room in the other queue. */
static void move(struct stress_thread *self, void *context)
{
	size_t from = (size_t)((weir_queue **)context - queues), to = LEFT + RIGHT - from;

	stress_gives(self, &objects[from], STRESS_ROOM);
	stress_begin_on(self, "enqueue", &objects[to], STRESS_ROOM);
	(void)weir_queue_enqueue(queues[to], context, WEIR_NO_DEADLINE, NULL, NULL);
}

void scenario_selftest_hang(void)
{
	static const char *const names[] = {"starved", "left", "right"};
	struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .capacity = 1};

	for (size_t i = 0; i < 3; i++) {
		STRESS_CHECK(weir_queue_create(&options, &queues[i], NULL) == WEIR_OK, "no queue");
		objects[i] = stress_queue_object(names[i], queues[i]);
	}
	for (size_t i = LEFT; i <= RIGHT; i++)
		STRESS_CHECK(weir_queue_try_enqueue(queues[i], queues) == WEIR_OK, "no room");
	for (int i = 0; i < 3; i++)
		(void)stress_start("consumer", consume, NULL);
	(void)stress_start("producer", produce_one, queues);
	(void)stress_start("mover", move, &queues[LEFT]);
	(void)stress_start("mover", move, &queues[RIGHT]);
	stress_begin(stress_self(), "joining");
	stress_join();
}

void scenario_selftest_wrong(void)
{
	stress_fail("as it was meant to be, \"%d\"", 1);
}

static void crash(struct stress_thread *self, void *context)
{
	(void)context;
	stress_begin(self, "something bad");
	abort();
}

void scenario_selftest_crash(void)
{
	(void)stress_start("victim", crash, NULL);
	stress_join();
}
