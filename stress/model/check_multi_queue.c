/*
 * check_multi_queue.c - a relaxed priority queue of two lanes: nothing is lost, and all lanes agree
 * on a close.
 */
#include <weir/multi_queue.h>

#include "model/scope.h"

enum { THREADS = 3 };

static struct scene {
	weir_multi_queue *queue;
	const char *calls[THREADS]; /* LETTERS says what each does */
	int inside;                 /* at the start */
	int must_find;              /* 1: there is an item for each dequeue */
	uint64_t data[2 * THREADS];
	int accepted[THREADS + 1], got[THREADS + 1], closed[THREADS + 1], drained[THREADS + 1];
} scene;

static void put(size_t me)
{
	uint64_t *item = &scene.data[2 * me + (size_t)scene.accepted[me] % 2];
	enum weir_status status;

	*item = me + 1;
	weir_model_call_begins(0);
	status = weir_multi_queue_try_enqueue(scene.queue, (int64_t)me, (uint64_t)(uintptr_t)item);
	weir_model_call_ends(0);
	weir_model_assert(status != WEIR_OK || !scene.closed[me]);
	scene.accepted[me] += status == WEIR_OK;
	scene.closed[me] |= status == WEIR_CANCELLED;
}

static enum weir_status take(size_t me)
{
	int64_t key;
	uint64_t value;
	enum weir_status status;

	weir_model_call_begins(1);
	status = weir_multi_queue_try_dequeue(scene.queue, &key, &value);
	weir_model_call_ends(1);
	if (status == WEIR_OK) {
		weir_model_assert(*(const uint64_t *)(uintptr_t)value == (uint64_t)key + 1 && !scene.drained[me]);
		scene.got[me]++;
	}
	scene.drained[me] |= status == WEIR_OUT_OF_RANGE;
	weir_model_assert(status == WEIR_OK || !scene.must_find || me == THREADS);
	return status;
}

static void setup(void *context)
{
	struct weir_multi_queue_options options = {WEIR_MULTI_QUEUE_OPTIONS_INIT, .lanes = 2};

	(void)context;
	weir_model_assert(weir_multi_queue_create(4, &options, &scene.queue, NULL) == WEIR_OK);
	for (int i = 0; i < scene.inside; i++)
		put(0);
}

static void close_it(size_t me)
{
	weir_multi_queue_close(scene.queue);
	scene.closed[me] = 1;
}

static void ask(size_t me)
{
	scene.closed[me] |= weir_multi_queue_closed(scene.queue);
}

#define LETTERS(LETTER) \
	LETTER('e', "enqueue", put(me)) \
	LETTER('d', "dequeue", (void)take(me)) \
	LETTER('c', "close", close_it(me)) \
	LETTER('q', "ask whether the queue is closed", ask(me))

static void call(size_t me, char what)
{
	switch (what) {
		LETTERS(LETTER_CASE)
	default: weir_model_assert(!"a letter of the table");
	}
}

static void thread(void *context, size_t me)
{
	(void)context;
	scope_calls(me, scene.calls[me], call);
}

static void finish(void *context)
{
	int in = 0, out = 0, left = 0, drained = 0;

	(void)context;
	while (take(THREADS) == WEIR_OK)
		left++;
	for (size_t i = 0; i < THREADS; i++) {
		in += scene.accepted[i];
		out += scene.got[i];
		drained |= scene.drained[i];
	}
	weir_model_assert(in == out + left);
	weir_model_assert(!drained || left == 0);
	weir_multi_queue_destroy(scene.queue, NULL);
}

static int check(const char *name, size_t threads, struct scene start)
{
	struct weir_model_program program = {name, threads, &scene, sizeof(scene), setup, thread, finish};

	scene = start;
	return scope_as_far_as(&program, scope_long() ? 0 : 30000);
}

static int check_progress(const char *name, size_t threads, struct scene start)
{
	static const char *const calls[WEIR_MODEL_CALLS + 1] = {"enqueue", "dequeue", NULL};
	static const uint32_t bounds[WEIR_MODEL_CALLS] = {0};
	struct weir_model_program program = {name, threads, &scene, sizeof(scene), setup, thread, finish};

	scene = start;
	return scope_stops(&program, scope_long() ? 0 : 100, calls, bounds);
}

int main(int argc, char **argv)
{
	static const struct scope_letter letters[] = {LETTERS(LETTER_ROW){0, NULL}};
	int bad = 0;

	scope_letters(argc, argv, letters);
	scope_arguments(argc, argv);
	bad |= check("multi_queue_put_beside_take", 2, (struct scene){.calls = {"e", "d"}});
	bad |= check("multi_queue_put_take_beside_put_take", 2, (struct scene){.calls = {"ed", "ed"}});
	bad |= check("multi_queue_2_takes_of_2", 2, (struct scene){.calls = {"d", "d"}, .inside = 2, .must_find = 1});
	bad |= check("multi_queue_close_beside_put_and_closed_then_put", 3, (struct scene){.calls = {"c", "e", "qe"}});
	bad |= check("multi_queue_close_beside_2_puts_and_2_takes", 3, (struct scene){.calls = {"c", "ee", "dd"}});
	bad |= check_progress("multi_queue_put_take_beside_put_take", 2, (struct scene){.calls = {"ed", "ed"}});
	return bad;
}
