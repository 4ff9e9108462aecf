/*
 * check_ring.c - the ring (LTQ64) under the checker, in scopes that are explored completely.
 *
 * Each value is the address of plain data written just before: a missing order shows as a race. LTQ16 mixes access sizes, which the
 * checker's memory does not know; its walk is the same code.
 */
#include <stdio.h>
#include <stdlib.h>
#include <weir/ring.h>

#include "model/model.h"

enum { MOST = 4 };

static struct scene {
	weir_ring *ring;
	size_t capacity, producers, each;
	int closes; /* the last thread closes the ring */
	uint64_t data[MOST];
	uint64_t got[MOST];
	int accepted[MOST];
	int ended[MOST];
} scene;

static void setup(void *context)
{
	struct weir_ring_options options = {.struct_size = sizeof(options), .format = WEIR_RING_FORMAT_LTQ64};

	(void)context;
	weir_model_assert(weir_ring_create(scene.capacity, &options, &scene.ring) == WEIR_OK);
}

static void produce(size_t me)
{
	for (size_t i = me * scene.each; i < (me + 1) * scene.each; i++) {
		scene.data[i] = i + 1;
		scene.accepted[i] = weir_ring_try_enqueue(scene.ring, (uint64_t)(uintptr_t)&scene.data[i]) == WEIR_OK;
	}
}

static void consume(size_t me)
{
	for (size_t i = me * scene.each; i < (me + 1) * scene.each; i++) {
		uint64_t value;
		enum weir_status status = weir_ring_try_dequeue(scene.ring, &value);

		if (status == WEIR_OK)
			scene.got[i] = *(const uint64_t *)(uintptr_t)value;
		scene.ended[i] = status == WEIR_OUT_OF_RANGE;
	}
}

static void thread(void *context, size_t number)
{
	(void)context;
	if (number < scene.producers)
		produce(number);
	else if (!scene.closes || number == scene.producers)
		consume(number - scene.producers);
	else
		weir_ring_close(scene.ring);
}

static void finish(void *context)
{
	size_t in = 0, out = 0, left = 0;
	uint64_t value;

	(void)context;
	while (weir_ring_try_dequeue(scene.ring, &value) == WEIR_OK)
		left++;
	for (size_t i = 0; i < MOST; i++) {
		in += scene.accepted[i] != 0;
		out += scene.got[i] != 0;
		/* Once a dequeue saw the end, nothing is accepted any more, and nothing is left. */
		weir_model_assert(!scene.ended[i] || left == 0);
		for (size_t j = 0; j < i; j++)
			weir_model_assert(scene.got[i] == 0 || scene.got[i] != scene.got[j]);
	}
	weir_model_assert(in == out + left);
	weir_model_assert(left <= scene.capacity);
	weir_ring_destroy(scene.ring);
}

static int check(const char *name, size_t threads, size_t capacity, size_t producers, size_t each, int closes)
{
	struct weir_model_program program = {name, threads, &scene, sizeof(scene), setup, thread, finish};
	struct weir_model_result result;
	int right;

	scene = (struct scene){.capacity = capacity, .producers = producers, .each = each, .closes = closes};
	(void)weir_model_check(&program, NULL, &result);
	right = !result.failed && result.complete;
	(void)printf("%s %s: %llu executions, %llu pruned%s%s\n", right ? "PASS" : "FAIL", name,
	             (unsigned long long)result.executions, (unsigned long long)result.pruned, result.failed ? ", " : "",
	             result.message);
	if (result.failed)
		(void)printf("  path %s\n", result.replay);
	return !right;
}

int main(void)
{
	int bad = 0;

	bad |= check("ring_n1_1_producer_x1_1_consumer_x1", 2, 1, 1, 1, 0);
	bad |= check("ring_n1_1_producer_x2_1_consumer_x2", 2, 1, 1, 2, 0);
	bad |= check("ring_n2_1_producer_x2_1_consumer_x2", 2, 2, 1, 2, 0);
	bad |= check("ring_n1_2_producers_x1_1_consumer_x1", 3, 1, 2, 1, 0);
	bad |= check("ring_n2_2_producers_x1_1_consumer_x1", 3, 2, 2, 1, 0);
	bad |= check("ring_n1_2_producers_x1_2_consumers_x1", 4, 1, 2, 1, 0);
	bad |= check("ring_close_n1_1_producer_x1_1_consumer_x1", 3, 1, 1, 1, 1);
	bad |= check("ring_close_n1_1_producer_x2_1_consumer_x2", 3, 1, 1, 2, 1);
	bad |= check("ring_close_n2_1_producer_x2_1_consumer_x2", 3, 2, 1, 2, 1);
	return bad;
}
