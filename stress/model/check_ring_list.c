/*
 * check_ring_list.c - rings in a list. Each ring has room for one value, so that every operation
 * links or unlinks a ring.
 *
 * Each value is the address of plain data that is written immediately before, so a missing order
 * shows as a race. A segment that is freed too early shows as a use after free. A producer that
 * dequeues afterwards would reveal a wrong "empty". Some order of the calls explains all results
 * (judged.h).
 */
#include <weir/reclaim.h>
#include <weir/ring_list.h>

#include "model/judged.h"
#include "model/scope.h"

enum { MOST = 4 };

static struct scene {
	weir_ring_list *list;
	size_t producers, each;
	int closes;              /* the last thread closes the list */
	int filled;              /* the last value is in it from the start */
	size_t back;             /* how often a producer dequeues after its enqueues */
	const char *calls[MOST]; /* NULL: not used; LETTERS says what each letter does */
	/* thread 0 puts, and collects what was retired; thread 1 takes two and puts */
	int trades;
	uint64_t data[MOST];
	uint64_t got[MOST];
	int accepted[MOST], ended[MOST];
} scene;

static void put(size_t i)
{
	enum weir_status status;

	scene.data[i] = i + 1;
	weir_model_call_begins(0);
	status = weir_ring_list_enqueue(scene.list, (uint64_t)(uintptr_t)&scene.data[i]);
	weir_model_call_ends(0);
	judged_put(status, i + 1, 0);
	weir_model_assert(status == WEIR_OK || (scene.closes && status == WEIR_CANCELLED));
	scene.accepted[i] = status == WEIR_OK;
}

static void setup(void *context)
{
	struct weir_ring_list_options options = {WEIR_RING_LIST_OPTIONS_INIT, .segment = 1};

	(void)context;
	weir_model_assert(weir_ring_list_create(&options, &scene.list, NULL) == WEIR_OK);
	judged_as_fifo(0);
	if (scene.filled)
		put(MOST - 1);
}

static void have(uint64_t value)
{
	size_t i = (size_t)((const uint64_t *)(uintptr_t)value - scene.data);

	weir_model_assert(i < MOST && *(const uint64_t *)(uintptr_t)value == i + 1);
	scene.got[i]++;
}

static enum weir_status take_any(void)
{
	uint64_t value;
	enum weir_status status;

	weir_model_call_begins(1);
	status = weir_ring_list_try_dequeue(scene.list, &value);
	weir_model_call_ends(1);
	judged_take(status, status == WEIR_OK ? *(const uint64_t *)(uintptr_t)value : 0);
	if (status == WEIR_OK)
		have(value);
	return status;
}

static enum weir_status take(size_t i)
{
	enum weir_status status = take_any();

	scene.ended[i] = status == WEIR_OUT_OF_RANGE;
	return status;
}

static void close_and_try(void)
{
	weir_model_call_begins(2);
	weir_model_assert(weir_ring_list_close(scene.list) == WEIR_OK);
	weir_model_call_ends(2);
	judged_close(0);
	weir_model_assert(weir_ring_list_closed(scene.list));
	put(MOST - 1);
	weir_model_assert(!scene.accepted[MOST - 1]);
}

static void produce(size_t first)
{
	for (size_t i = first; i < first + scene.each; i++)
		put(i);
}

static void consume(size_t first, size_t count)
{
	for (size_t i = first; i < first + count; i++) {
		enum weir_status status = take(i);

		/*
		 * Each thread enqueues before it dequeues, so there are enough values for all dequeues so
		 * far.
		 */
		weir_model_assert(scene.back == 0 || status == WEIR_OK);
	}
}

static void trade(size_t number)
{
	if (number != 0) {
		consume(0, 2);
		/* If the tail were behind the head, the size would wrap around. */
		weir_model_assert(weir_ring_list_size_approx(scene.list) <= 1);
	}
	put(number);
	if (number == 0)
		(void)weir_reclaim_flush(0);
}

#define LETTERS(LETTER) \
	LETTER('e', "enqueue the number of the thread", put(me)) \
	LETTER('d', "dequeue", (void)take(me)) \
	LETTER('q', "ask whether the list is closed: it is not", weir_model_assert(!weir_ring_list_closed(scene.list))) \
	LETTER('f', "free what was retired", (void)weir_reclaim_flush(0)) \
	LETTER('z', "a planted fault: a dequeue that returns \"empty\" without reading", judged_wrong_take())

static void call(size_t me, char what)
{
	switch (what) {
		LETTERS(LETTER_CASE)
	default: weir_model_assert(!"a letter of the table");
	}
}

static void thread(void *context, size_t number)
{
	(void)context;
	if (scene.calls[0] != NULL)
		scope_calls(number, scene.calls[number], call);
	else if (scene.trades)
		trade(number);
	else if (scene.closes && number == 2 * scene.producers)
		close_and_try();
	else if (number >= scene.producers)
		consume((number - scene.producers) * scene.each, scene.each);
	else
		produce(number * scene.each);
	if (number + 1 == scene.producers && scene.back != 0)
		consume(0, scene.back);
}

static void finish(void *context)
{
	size_t in = 0, left = 0;

	(void)context;
	while (take_any() == WEIR_OK)
		left++;
	for (size_t i = 0; i < MOST; i++) {
		in += scene.accepted[i] != 0;
		weir_model_assert(scene.got[i] == (uint64_t)scene.accepted[i]);
		/* Once a dequeue saw the end, nothing is accepted any longer, and nothing is left. */
		weir_model_assert(!scene.ended[i] || left == 0);
	}
	weir_model_assert(left <= in);
	weir_ring_list_destroy(scene.list, NULL);
	weir_model_assert(weir_reclaim_flush(0) == WEIR_OK);
}

static int check(const char *name, size_t threads, struct scene start)
{
	struct weir_model_program program = {name, threads, &scene, sizeof(scene), setup, thread, finish};

	scene = start;
	return scope_as_far_as(&program, scope_long() ? 0 : 70000);
}

static int check_progress(const char *name, size_t producers, size_t each)
{
	static const char *const calls[WEIR_MODEL_CALLS + 1] = {"enqueue", "dequeue", NULL};
	static const uint32_t bounds[WEIR_MODEL_CALLS] = {0};
	struct weir_model_program program = {name, 2 * producers, &scene, sizeof(scene), setup, thread, finish};

	scene = (struct scene){.producers = producers, .each = each};
	return scope_stops(&program, scope_long() ? 0 : 500, calls, bounds);
}

static int check_planted(void)
{
	struct weir_model_program program = {"ring_list_a_wrong_empty", 2, &scene, sizeof(scene), setup, thread, finish};

	scene = (struct scene){.calls = {"ez", "ed"}};
	return scope_finds(&program, judged_wrong);
}

int main(int argc, char **argv)
{
	static const struct scope_letter letters[] = {LETTERS(LETTER_ROW){0, NULL}};
	int bad = 0;

	scope_letters(argc, argv, letters);
	scope_arguments(argc, argv);
	bad |= check("ring_list_1_producer_x1_1_consumer_x1", 2, (struct scene){.producers = 1, .each = 1});
	bad |= check("ring_list_1_producer_x2_1_consumer_x2", 2, (struct scene){.producers = 1, .each = 2});
	bad |= check("ring_list_filled_1_producer_x1_1_producer_who_takes_2", 2,
	             (struct scene){.producers = 2, .each = 1, .filled = 1, .back = 2});
	bad |= check("ring_list_filled_1_who_puts_and_collects_1_who_takes_2_and_puts", 2,
	             (struct scene){.filled = 1, .trades = 1});
	bad |= check("ring_list_2_producers_x1_2_consumers_x1", 4, (struct scene){.producers = 2, .each = 1});
	bad |=
		check("ring_list_close_1_producer_x1_1_consumer_x1", 3, (struct scene){.producers = 1, .each = 1, .closes = 1});
	bad |=
		check("ring_list_close_1_producer_x2_1_consumer_x2", 3, (struct scene){.producers = 1, .each = 2, .closes = 1});
	bad |= check("ring_list_store_buffering_each_puts_and_takes", 2, (struct scene){.calls = {"ed", "ed"}});
	bad |= check("ring_list_store_buffering_each_puts_and_takes_2", 2, (struct scene){.calls = {"edd", "ed"}});
	bad |= check("ring_list_iriw_2_puts_seen_by_2_who_take_2", 4, (struct scene){.calls = {"e", "e", "dd", "dd"}});
	bad |= check("ring_list_filled_1_who_asks_if_it_is_closed_1_who_puts_takes_2_and_frees", 2,
	             (struct scene){.filled = 1, .calls = {"q", "eddf"}});
	bad |= check_planted();
	bad |= check_progress("ring_list_1_producer_x2_1_consumer_x2", 1, 2);
	return bad;
}
