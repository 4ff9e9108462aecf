/*
 * check_ring.c - the ring, in both slot formats, under the checker.
 *
 * Each value is the address of plain data written just before: a missing order shows as a race. For LTQ16 the checker's memory
 * takes a slot as one location whose halves can be accessed (memory.c).
 */
#include <stdio.h>
#include <stdlib.h>
#include <weir/ring.h>

#include "model/scope.h"

enum { MOST = 4 };

static struct scene {
	weir_ring *ring;
	size_t capacity, producers, each;
	int closes; /* the last thread closes the ring */
	enum weir_ring_format format;
	uint64_t data[MOST];
	uint64_t got[MOST];
	int accepted[MOST];
	int ended[MOST];
} scene;

static void setup(void *context)
{
	struct weir_ring_options options = {.struct_size = sizeof(options), .format = scene.format};

	(void)context;
	weir_model_assert(weir_ring_create(scene.capacity, &options, &scene.ring) == WEIR_OK);
}

static void produce(size_t me)
{
	for (size_t i = me * scene.each; i < (me + 1) * scene.each; i++) {
		scene.data[i] = i + 1;
		weir_model_call_begins(0);
		scene.accepted[i] = weir_ring_try_enqueue(scene.ring, (uint64_t)(uintptr_t)&scene.data[i]) == WEIR_OK;
		weir_model_call_ends(0);
	}
}

static void consume(size_t me)
{
	for (size_t i = me * scene.each; i < (me + 1) * scene.each; i++) {
		uint64_t value;
		enum weir_status status;

		weir_model_call_begins(1);
		status = weir_ring_try_dequeue(scene.ring, &value);
		weir_model_call_ends(1);
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

/* The outcomes met, as numbers: what was accepted, what was got, who saw the end. */
enum { OUTCOMES = 256 };
static uint32_t outcomes[OUTCOMES];
static size_t outcome_count;
static int comparing;

static void note_outcome(void)
{
	uint32_t outcome = 0;

	for (size_t i = 0; i < MOST; i++)
		outcome = outcome * 20 + (uint32_t)(scene.accepted[i] + 2 * scene.ended[i] + 4 * (int)scene.got[i]);
	for (size_t i = 0; i < outcome_count; i++) {
		if (outcomes[i] == outcome)
			return;
	}
	weir_model_assert(outcome_count < OUTCOMES);
	outcomes[outcome_count++] = outcome;
}

static void finish(void *context)
{
	size_t in = 0, out = 0, left = 0;
	uint64_t value;

	(void)context;
	if (comparing)
		note_outcome();
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

static const struct scope {
	const char *name;
	size_t threads, capacity, producers, each;
	int closes;
} scopes[] =
	{
		{"n1_1_producer_x1_1_consumer_x1", 2, 1, 1, 1, 0},
		{"n1_1_producer_x2_1_consumer_x2", 2, 1, 1, 2, 0},
		{"n2_1_producer_x2_1_consumer_x2", 2, 2, 1, 2, 0},
		{"n1_2_producers_x1_1_consumer_x1", 3, 1, 2, 1, 0},
		{"n2_2_producers_x1_1_consumer_x1", 3, 2, 2, 1, 0},
		{"n1_2_producers_x1_2_consumers_x1", 4, 1, 2, 1, 0},
		{"close_n1_1_producer_x1_1_consumer_x1", 3, 1, 1, 1, 1},
		{"close_n1_1_producer_x2_1_consumer_x2", 3, 1, 1, 2, 1},
		{"close_n2_1_producer_x2_1_consumer_x2", 3, 2, 1, 2, 1},
		{"close_n1_2_producers_x1_1_consumer_x1", 4, 1, 2, 1, 1},
},
  large[] = {
	  {"n1_2_producers_x2_2_consumers_x2", 4, 1, 2, 2, 0},
	  {"n2_2_producers_x2_2_consumers_x2", 4, 2, 2, 2, 0},
	  {"close_n1_2_producers_x1_2_consumers_x1", 5, 1, 2, 1, 1},
};

static struct weir_model_program prepare(const struct scope *scope, enum weir_ring_format format, char name[static 96])
{
	(void)snprintf(name, 96, "ring_%s_%s", format == WEIR_RING_FORMAT_LTQ16 ? "ltq16" : "ltq64", scope->name);
	scene = (struct scene){.capacity = scope->capacity,
	                       .producers = scope->producers,
	                       .each = scope->each,
	                       .closes = scope->closes,
	                       .format = format};
	return (struct weir_model_program){name, scope->threads, &scene, sizeof(scene), setup, thread, finish};
}

/* The reduction loses no outcome: those met with it are those met without. */
static int check_reduction(const struct scope *scope, enum weir_ring_format format)
{
	char name[96];
	struct weir_model_program program = prepare(scope, format, name);
	struct weir_model_result reduced, all;
	uint32_t met[OUTCOMES];
	size_t count, same = 0;
	int right;

	comparing = 1;
	outcome_count = 0;
	right = !weir_model_check(&program, NULL, &reduced);
	count = outcome_count;
	for (size_t i = 0; i < count; i++)
		met[i] = outcomes[i];
	outcome_count = 0;
	right &= !weir_model_check(
		&program, &(struct weir_model_options){.no_reduction = 1, .max_executions = scope_long() ? 0 : 1000000}, &all);
	for (size_t i = 0; i < count; i++) {
		for (size_t j = 0; j < outcome_count; j++)
			same += met[i] == outcomes[j];
	}
	comparing = 0;
	/* What was not explored to the end may have met less, never more. */
	right = right && same == outcome_count && (same == count || !all.complete);
	(void)printf("%s %s_reduction_loses_nothing: %zu outcomes in %llu executions, %zu in %llu%s without reduction\n",
	             right ? "PASS" : "FAIL", name, count, (unsigned long long)reduced.executions, outcome_count,
	             (unsigned long long)all.executions, all.complete ? "" : " of more");
	free(reduced.replay);
	free(all.replay);
	return !right;
}

/* Stopping any thread at any of its steps stops nobody else. */
static int check_progress(const struct scope *scope, enum weir_ring_format format)
{
	static const char *const calls[WEIR_MODEL_CALLS + 1] = {"enqueue", "dequeue", NULL};
	static const uint32_t bounds[WEIR_MODEL_CALLS] = {0};
	char name[96];
	struct weir_model_program program = prepare(scope, format, name);

	return scope_stops(&program, scope_long() ? 0 : 2000, calls, bounds);
}

/* A short program, for the rate: 500,000 a second are asked for, on a machine that does nothing else. */
static int measure(enum weir_ring_format format)
{
	char name[96];
	struct weir_model_program program = prepare(&scopes[0], format, name);

	return scope_random(&program, 500000);
}

static int check_format(enum weir_ring_format format)
{
	int bad = 0;
	char name[96];

	for (size_t i = 0; i < sizeof(scopes) / sizeof(scopes[0]); i++) {
		struct weir_model_program program = prepare(&scopes[i], format, name);

		bad |= scope_as_far_as(&program, scope_long() ? 0 : 400000);
	}
	for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++) {
		struct weir_model_program program = prepare(&large[i], format, name);

		bad |= scope_preemptions(&program, scope_long() ? 2 : 0);
		bad |= scope_long() ? scope_complete(&program) : scope_as_far_as(&program, 100000);
	}
	for (size_t i = 0; i < 3; i++)
		bad |= check_reduction(&scopes[i], format);
	bad |= check_reduction(&scopes[6], format);
	for (size_t i = 0; i < sizeof(scopes) / sizeof(scopes[0]); i++)
		bad |= check_progress(&scopes[i], format);
	return bad | measure(format);
}

int main(int argc, char **argv)
{
	scope_arguments(argc, argv);
	return check_format(WEIR_RING_FORMAT_LTQ64) | check_format(WEIR_RING_FORMAT_LTQ16);
}
