/*
 * check_ring.c - the ring, in every format.
 *
 * A scope gives each thread a row of calls, a letter each; LETTERS says what each letter does.
 *
 * Required of every execution:
 * - Some order of the calls explains all results, including "full", "empty" and "closed"
 *   (weir_model_judge()).
 * - Each value that was accepted is dequeued once. The values of one producer are dequeued in their
 *   order.
 * - A call that returns "closed" sees what the closer wrote before, and its thread enqueues nothing
 *   afterwards. After OUT_OF_RANGE nothing is left.
 * - Hints are never beyond what is done.
 *
 * In scopes with NEVER_EMPTY no dequeue is refused, because in every order of the calls there is an
 * item for it. In scopes with NEVER_FULL no enqueue is refused, because there is always room for
 * it. In scopes named full_beside_empty each result is possible by itself; both together would be
 * store buffering between two slots.
 *
 * Scopes named port_ use the calls that are inlined in programs: the header's own code, since this file
 * is instrumented like the library.
 *
 * Each value is the address of plain data that is written immediately before, so a missing order
 * shows as a race. For LTQ16 and SPAN16 the checker's memory treats a slot as one location whose halves
 * can be accessed (memory.c).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/ring_port.h>

#include "model/judged.h"
#include "model/scope.h"
#include "ring/layout.h"
#include "ring/span16.h"

enum { THREADS = 5, CALLS = 6, ROWS = THREADS + 1 }; /* the last row belongs to setup */
enum { NEVER_EMPTY = 1, NEVER_FULL = 2 };
enum { REDUCED = 4 }; /* this many scopes, from the first, are also run without reduction */
/* How many of the scopes with states merged are in the short form. */
enum { QUICK_16 = 8, QUICK_64 = 6, QUICK_APART = 1, QUICK_SPANS = 3, QUICK_PORTS = 1 };
enum { BATCH = 3 };
enum { IN_STEP = 2 }; /* a time that is not 0, and not odd: all refusals are soon after each other */

struct value {
	int row, place; /* place counts from 1 */
};

static const struct scope {
	const char *name;
	size_t capacity;
	const char *calls[THREADS];
	int never;
	/*
	 * At the start: the number of values that have passed through the ring, the number of values
	 * inside, and the value of both hints (at most `passed`; 0: the hints are left unchanged).
	 */
	unsigned passed, inside, hint;
	/* Before all this, so many batches of 2 have passed. */
	unsigned batches;
} scopes[] =
	{
		{"n1_1_producer_x1_1_consumer_x1", 1, {"e", "d"}, 0, 0, 0, 0, 0},
		{"n1_1_producer_x2_1_consumer_x2", 1, {"ee", "dd"}, 0, 0, 0, 0, 0},
		{"n2_1_producer_x2_1_consumer_x2", 2, {"ee", "dd"}, 0, 0, 0, 0, 0},
		{"close_n1_1_producer_x1_1_consumer_x1", 1, {"e", "d", "c"}, 0, 0, 0, 0, 0},
		{"n1_2_producers_x1_1_consumer_x1", 1, {"e", "e", "d"}, 0, 0, 0, 0, 0},
		{"n2_2_producers_x1_1_consumer_x1", 2, {"e", "e", "d"}, 0, 0, 0, 0, 0},
		{"n1_2_producers_x1_2_consumers_x1", 1, {"e", "e", "d", "d"}, 0, 0, 0, 0, 0},
		{"close_n1_1_producer_x2_1_consumer_x2", 1, {"ee", "dd", "c"}, 0, 0, 0, 0, 0},
		{"close_n2_1_producer_x2_1_consumer_x2", 2, {"ee", "dd", "c"}, 0, 0, 0, 0, 0},
		{"close_n1_2_producers_x1_1_consumer_x1", 1, {"e", "e", "d", "c"}, 0, 0, 0, 0, 0},
		{"close_n1_2_consumers_x1_then_1_enqueue_each", 1, {"de", "de", "c"}, 0, 0, 0, 0, 0},
		{"close_n2_enqueue_close_enqueue_1_consumer_x2", 2, {"ece", "dd"}, 0, 0, 0, 0, 0},
		{"n2_batch_of_2_1_consumer_x2", 2, {"m", "dd"}, 0, 0, 0, 0, 0},
		{"n1_batch_of_2_1_consumer_batch_of_2", 1, {"m", "b"}, 0, 0, 0, 0, 0},
		{"n2_batches_of_2_1_consumer_batch_of_2", 2, {"m", "m", "b"}, 0, 0, 0, 0, 0},
		{"n2_batch_of_2_2_consumers_batch_of_2", 2, {"m", "b", "b"}, 0, 0, 0, 0, 0},
		{"close_n2_batch_of_2_1_consumer_batch_of_2", 2, {"m", "b", "c"}, 0, 0, 0, 0, 0},
		{"n2_never_empty_2_threads", 2, {"ed", "d"}, NEVER_EMPTY, 0, 1, 0, 0},
		{"n2_never_empty_3_threads", 2, {"ed", "d", "e"}, NEVER_EMPTY, 0, 1, 0, 0},
		{"n2_never_full_2_threads", 2, {"de", "e"}, NEVER_FULL, 0, 1, 0, 0},
		{"n2_never_full_3_threads", 2, {"de", "e", "d"}, NEVER_FULL, 0, 1, 0, 0},
		{"n2_never_empty_hints_behind", 2, {"ed", "d"}, NEVER_EMPTY, 7, 1, 6, 0},
		{"n2_never_full_hints_behind", 2, {"de", "e"}, NEVER_FULL, 7, 1, 7, 0},
		{"n2_never_full_hints_behind_beside_a_batch", 2, {"b", "e", "e"}, 0, 6, 2, 6, 0},
		{"n4_hints_behind_2_producers", 4, {"e", "m"}, 0, 7, 0, 7, 0},
		{"n4_hints_behind_2_consumers", 4, {"d", "b"}, 0, 7, 3, 7, 0},
		{"n2_close_enqueue_hints_behind", 2, {"e", "ce"}, 0, 7, 0, 7, 0},
		{"n2_never_empty_hints_far_behind", 2, {"ed", "d"}, NEVER_EMPTY, 14, 1, 1, 0},
		{"n2_never_full_hints_far_behind", 2, {"de", "e"}, NEVER_FULL, 14, 1, 1, 0},
		{"n3_hints_far_behind_2_producers", 3, {"e", "e"}, 0, 14, 1, 1, 0},
		{"n3_hints_far_behind_2_consumers", 3, {"d", "d"}, 0, 14, 2, 1, 0},
		{"n1_close_beside_closed", 1, {"c", "q"}, 0, 0, 0, 0, 0},
		{"n1_size_beside_2_enqueues_2_dequeues", 1, {"ee", "dd", "s"}, 0, 0, 0, 0, 0},
		/* Each side reads what the other side has just changed. */
		{"n2_full_beside_empty_1_producer_x3_1_consumer_x2", 2, {"eee", "dd"}, 0, 0, 0, 0, 0},
		{"n2_full_beside_empty_producers_x2_and_x1_1_consumer_x2", 2, {"ee", "e", "dd"}, 0, 0, 0, 0, 0},
		{"n1_store_buffering_each_puts_and_takes", 1, {"ed", "ed"}, 0, 0, 0, 0, 0},
		{"n2_store_buffering_each_takes_and_puts", 2, {"de", "ed"}, 0, 0, 1, 0, 0},
		{"n2_iriw_2_puts_seen_by_2_who_take_and_put", 2, {"e", "e", "d", "d"}, 0, 0, 0, 0, 0},
},
  /* With states merged; the largest last. */
	merged[] =
		{
			{"n1_2_producers_x1_2_consumers_x1", 1, {"e", "e", "d", "d"}, 0, 0, 0, 0, 0},
			{"n1_2_producers_x2_1_consumer_x2", 1, {"ee", "ee", "dd"}, 0, 0, 0, 0, 0},
			{"n2_2_producers_x2_1_consumer_x2", 2, {"ee", "ee", "dd"}, 0, 0, 0, 0, 0},
			{"n1_1_producer_x2_2_consumers_x2", 1, {"ee", "dd", "dd"}, 0, 0, 0, 0, 0},
			{"n2_1_producer_x2_2_consumers_x2", 2, {"ee", "dd", "dd"}, 0, 0, 0, 0, 0},
			{"n1_producers_x2_and_x1_2_consumers_x1", 1, {"ee", "e", "d", "d"}, 0, 0, 0, 0, 0},
			{"n2_producers_x2_and_x1_2_consumers_x1", 2, {"ee", "e", "d", "d"}, 0, 0, 0, 0, 0},
			{"n1_producers_and_consumers_x2_and_x1", 1, {"ee", "e", "dd", "d"}, 0, 0, 0, 0, 0},
			{"n2_producers_and_consumers_x2_and_x1", 2, {"ee", "e", "dd", "d"}, 0, 0, 0, 0, 0},
			{"n1_2_producers_x2_2_consumers_x2", 1, {"ee", "ee", "dd", "dd"}, 0, 0, 0, 0, 0},
			{"n2_2_producers_x2_2_consumers_x2", 2, {"ee", "ee", "dd", "dd"}, 0, 0, 0, 0, 0},
},
  /* The same for LTQ64, with threads that do not contend for a place for spare cells. */
	apart[] =
		{
			{"apart_n1_2_producers_x2_2_consumers_x1", 1, {"oee", "oee", "d", "d"}, 0, 0, 0, 0, 0},
			{"apart_n1_producers_and_consumers_x2_and_x1", 1, {"oee", "oe", "dd", "d"}, 0, 0, 0, 0, 0},
			{"apart_n2_producers_and_consumers_x2_and_x1", 2, {"oee", "oe", "dd", "d"}, 0, 0, 0, 0, 0},
			{"apart_n1_2_producers_x2_2_consumers_x2", 1, {"oee", "oee", "dd", "dd"}, 0, 0, 0, 0, 0},
			{"apart_n2_2_producers_x2_2_consumers_x2", 2, {"oee", "oee", "dd", "dd"}, 0, 0, 0, 0, 0},
},
  /* With states merged. */
	both_answers[] =
		{
			{"apart_n2_full_beside_empty_producers_x2_and_x1_1_consumer_x2", 2, {"oee", "oe", "dd"}, 0, 0, 0, 0, 0},
},
  /* Threads that go on at the hint, and threads that pause in step. */
	hinted[] =
		{
			{"n1_hint_again_1_producer_x2_1_consumer_x2", 1, {"hee", "hdd"}, 0, 0, 0, 0, 0},
			{"n1_hint_again_2_producers_x1_1_consumer_x2", 1, {"he", "he", "hdd"}, 0, 0, 0, 0, 0},
			{"n2_hint_again_2_producers_x1_2_consumers_x1", 2, {"he", "he", "hd", "hd"}, 0, 0, 1, 0, 0},
			{"n2_hint_again_batch_beside_enqueue_and_dequeues", 2, {"hm", "he", "hdd"}, 0, 0, 0, 0, 0},
			{"n2_hint_again_never_empty_hints_behind", 2, {"hed", "hd"}, NEVER_EMPTY, 7, 1, 6, 0},
			{"n2_hint_again_never_full_hints_behind", 2, {"hde", "he"}, NEVER_FULL, 7, 1, 7, 0},
			{"n2_hint_again_never_empty_hints_far_behind", 2, {"hed", "hd"}, NEVER_EMPTY, 14, 1, 1, 0},
			{"n2_hint_again_full_beside_empty", 2, {"hee", "he", "hdd"}, 0, 0, 0, 0, 0},
			{"close_n1_hint_again_1_producer_x2_1_consumer_x2", 1, {"hee", "hdd", "c"}, 0, 0, 0, 0, 0},
},
  in_step[] =
	  {
		  {"n1_in_step_1_producer_x1_1_consumer_x1", 1, {"te", "td"}, 0, 1, 0, 0, 0},
		  {"n1_in_step_1_producer_x2_1_consumer_x2", 1, {"tee", "tdd"}, 0, 1, 0, 0, 0},
		  {"n2_in_step_1_producer_x2_1_consumer_x2", 2, {"tee", "tdd"}, 0, 3, 0, 0, 0},
		  {"n1_in_step_2_producers_x1_1_consumer_x1", 1, {"te", "te", "td"}, 0, 1, 0, 0, 0},
		  {"n1_in_step_1_producer_x1_2_consumers_x1", 1, {"te", "td", "td"}, 0, 1, 0, 0, 0},
		  {"n1_in_step_consumer_goes_on_at_the_hint", 1, {"ee", "thdd"}, 0, 1, 0, 0, 0},
		  {"close_n1_in_step_1_producer_x1_1_consumer_x1", 1, {"te", "td", "c"}, 0, 1, 0, 0, 0},
		  {"n2_in_step_never_empty", 2, {"ted", "td"}, NEVER_EMPTY, 3, 1, 0, 0},
		  {"n2_in_step_full_beside_empty", 2, {"teee", "tdd"}, 0, 3, 0, 0, 0},
},
  /* SPAN16: an arena of n = 2 has 6 cells, so the fourth batch of 2 is written over the first. */
	spans[] =
		{
			{"n2_cells_written_over", 2, {"m", "mb", "b"}, 0, 0, 0, 0, 3},
			{"n2_cells_written_over_beside_a_slow_dequeue", 2, {"bmm", "b", "d"}, 0, 0, 0, 0, 2},
			{"n3_cells_skipped_at_the_end_of_an_arena", 3, {"Mm", "Bb", "d"}, 0, 0, 0, 0, 3},
			{"n2_batches_longer_than_the_ring", 2, {"M", "mb"}, 0, 0, 0, 0, 2},
			{"n2_batches_longer_than_the_ring_beside_a_dequeue", 2, {"M", "mbm", "b"}, 0, 0, 0, 0, 2},
			{"n2_payload_newer_than_its_state", 2, {"b", "mbmbe"}, 0, 0, 0, 0, 0},
			{"n2_batches_and_single_values", 2, {"me", "db", "d"}, 0, 1, 0, 0, 0},
			{"n3_batches_of_3_and_2_taken_in_part", 3, {"M", "m", "b", "b"}, 0, 0, 0, 0, 0},
			{"n3_slot_of_a_span_taken_in_part", 3, {"Mee", "dd", "d"}, 0, 0, 0, 0, 0},
			{"n4_hints_behind_spans", 4, {"m", "e", "B"}, 0, 0, 0, 4, 7},
			{"close_n2_batches_2_consumers", 2, {"m", "b", "d", "c"}, 0, 0, 0, 0, 1},
			{"n2_empty_beside_full_in_batches", 2, {"mb", "bm"}, 0, 0, 0, 0, 0},
			{"n3_empty_beside_full_in_batches", 3, {"Mb", "bM"}, 0, 1, 0, 0, 0},
},
  /* With states merged; the largest last. */
	merged_spans[] =
		{
			{"n2_2_batches_of_2_and_2_batches", 2, {"m", "m", "b", "b"}, 0, 0, 0, 0, 0},
			{"n2_cells_written_over_2_producers_2_consumers", 2, {"m", "m", "b", "b"}, 0, 0, 0, 0, 3},
			{"n2_1_producer_batches_x2_2_consumers_batches_x2", 2, {"mm", "bb", "bb"}, 0, 0, 0, 0, 0},
			{"n4_3_producers_2_arenas", 4, {"m", "m", "m", "B"}, 0, 0, 0, 0, 0},
			{"n3_batches_of_3_and_2", 3, {"M", "m", "B", "b"}, 0, 0, 0, 0, 0},
			{"n2_2_producers_batches_x2_1_consumer_batches_x2", 2, {"mm", "mm", "bb"}, 0, 0, 0, 0, 0},
			{"n2_2_batches_of_2_beside_single_values", 2, {"me", "m", "bd", "b"}, 0, 0, 0, 0, 0},
			{"n2_2_producers_batches_x2_2_consumers_batches_x2", 2, {"mm", "mm", "bb", "bb"}, 0, 0, 0, 0, 0},
			{"n3_2_producers_batches_x2_2_consumers_batches_x2", 3, {"mM", "Mm", "bB", "Bb"}, 0, 0, 0, 0, 0},
},
  /* LTQ16, by ports and by calls. */
	ports[] =
		{
			{"port_n1_1_producer_x2_1_consumer_x2", 1, {"xx", "yy"}, 0, 0, 0, 0, 0},
			{"port_n2_1_producer_x2_1_consumer_x2", 2, {"xx", "yy"}, 0, 0, 0, 0, 0},
			{"port_n1_2_producers_2_consumers_one_of_each_by_calls", 1, {"x", "e", "y", "d"}, 0, 0, 0, 0, 0},
			{"port_close_n1_1_producer_x2_1_consumer_x2", 1, {"xx", "yy", "c"}, 0, 0, 0, 0, 0},
			{"port_close_n2_enqueue_close_enqueue_1_consumer_x2", 2, {"xcx", "yy"}, 0, 0, 0, 0, 0},
			{"port_n2_never_empty_hints_behind", 2, {"xy", "y"}, NEVER_EMPTY, 7, 1, 6, 0},
			{"port_n2_never_full_hints_behind", 2, {"yx", "x"}, NEVER_FULL, 7, 1, 7, 0},
			{"port_n1_store_buffering_each_puts_and_takes", 1, {"xy", "xy"}, 0, 0, 0, 0, 0},
			{"port_n2_store_buffering_each_takes_and_puts", 2, {"yx", "xy"}, 0, 0, 1, 0, 0},
			{"port_n2_iriw_2_puts_seen_by_2_who_take_and_put", 2, {"x", "x", "y", "y"}, 0, 0, 0, 0, 0},
			{"port_n2_full_beside_empty_1_producer_x3_1_consumer_x2", 2, {"xxx", "yy"}, 0, 0, 0, 0, 0},
			{"port_n3_without_inlined_form", 3, {"x", "y"}, 0, 0, 0, 0, 0},
},
  /* With states merged; the largest last. */
	merged_ports[] =
		{
			{"port_n2_2_producers_x2_1_consumer_x2_by_both", 2, {"xe", "ex", "yd"}, 0, 0, 0, 0, 0},
			{"port_n1_2_producers_x2_1_consumer_x2", 1, {"xx", "xx", "yy"}, 0, 0, 0, 0, 0},
			{"port_n1_2_producers_x1_2_consumers_x1", 1, {"x", "x", "y", "y"}, 0, 0, 0, 0, 0},
			{"port_n1_2_producers_x2_2_consumers_x2", 1, {"xx", "xx", "yy", "yy"}, 0, 0, 0, 0, 0},
			{"port_n2_2_producers_x2_2_consumers_x2", 2, {"xx", "xx", "yy", "yy"}, 0, 0, 0, 0, 0},
},
  planted = {"a_wrong_empty", 2, {"ez", "ed"}, 0, 0, 0, 0, 0},
  large[] = {
	  {"n1_2_producers_x2_2_consumers_x2", 1, {"ee", "ee", "dd", "dd"}, 0, 0, 0, 0, 0},
	  {"n2_2_producers_x2_2_consumers_x2", 2, {"ee", "ee", "dd", "dd"}, 0, 0, 0, 0, 0},
	  {"close_n1_2_producers_x1_2_consumers_x1", 1, {"e", "e", "d", "d", "c"}, 0, 0, 0, 0, 0},
};

static struct scene {
	const struct scope *scope;
	enum weir_ring_format format;
	weir_ring *ring;
	weir_ring_port port;
	struct value values[ROWS][CALLS + 1];
	/* Written by each thread for itself. */
	int put[ROWS], accepted[ROWS]; /* values offered; the last place that was enqueued */
	int got[ROWS][ROWS];           /* [by][of]: the last place that was dequeued */
	int out[ROWS];                 /* number of values that were dequeued */
	int closed[ROWS];              /* got this result, or closed the ring */
	int drained[ROWS];             /* got this result: nothing is left, and no enqueue succeeds */
	uint64_t said[ROWS];           /* what its calls answered */
	int note;                      /* written by the closer before the close */
} scene;

static int comparing; /* outcomes are compared */

static void know_closed(size_t me)
{
	weir_model_assert(scene.note == 1);
	scene.closed[me] = 1;
}

static uint64_t next_value(size_t me)
{
	int place = ++scene.put[me];

	scene.values[me][place] = (struct value){(int)me, place};
	return (uint64_t)(uintptr_t)&scene.values[me][place];
}

static void note_answer(size_t me, enum weir_status status, size_t done)
{
	if (comparing)
		scene.said[me] = scene.said[me] * 50 + (uint64_t)status * 3 + done;
}

/*
 * Returns 1 if a thread of the scope closes the ring. The judge gets each value of a batch as a
 * call of its own. If a batch ended early, one more call gives the reason. This is left out if the
 * ring may have been closed, because it is then not known whether it was closed or full.
 */
static int may_close(void)
{
	int closes = 0;

	for (size_t i = 0; i < THREADS && scene.scope->calls[i] != NULL; i++)
		closes |= strchr(scene.scope->calls[i], 'c') != NULL;
	return closes;
}

static void judge_put(size_t me, enum weir_status status, size_t count, size_t done)
{
	int first = scene.put[me] - (int)count + 1;

	if (status != WEIR_OK)
		judged_put(status, judged_number((int)me, first), 0);
	for (size_t i = 0; status == WEIR_OK && i < done; i++)
		judged_put(WEIR_OK, judged_number((int)me, first + (int)i), 0);
	if (status == WEIR_OK && done < count && !may_close())
		judged_put(WEIR_WOULD_BLOCK, judged_number((int)me, first + (int)done), 0);
}

static uint64_t number_at(uint64_t bits)
{
	const struct value *value = (const struct value *)(uintptr_t)bits;

	return judged_number(value->row, value->place);
}

static void judge_take(enum weir_status status, const uint64_t values[], size_t count, size_t done)
{
	if (status != WEIR_OK)
		judged_take(status, 0);
	for (size_t i = 0; status == WEIR_OK && i < done; i++)
		judged_take(WEIR_OK, number_at(values[i]));
	if (status == WEIR_OK && done < count && !may_close())
		judged_take(WEIR_WOULD_BLOCK, 0);
}

/* How a call reaches the ring. */
enum way { CALLED, BY_PORT };

static enum weir_status enqueue(const uint64_t values[], size_t count, enum way way, size_t *done)
{
	if (count != 1)
		return weir_ring_try_enqueue_many(scene.ring, values, count, done);
	return way == BY_PORT ? weir_ring_port_try_enqueue(&scene.port, values[0])
	                      : weir_ring_try_enqueue(scene.ring, values[0]);
}

static enum weir_status dequeue(uint64_t values[], size_t count, enum way way, size_t *done)
{
	if (count != 1)
		return weir_ring_try_dequeue_many(scene.ring, values, count, done);
	return way == BY_PORT ? weir_ring_port_try_dequeue(&scene.port, &values[0])
	                      : weir_ring_try_dequeue(scene.ring, &values[0]);
}

static void put(size_t me, size_t count, enum way way)
{
	uint64_t values[BATCH] = {0};
	enum weir_status status;
	size_t done = 1;

	for (size_t i = 0; i < count; i++)
		values[i] = next_value(me);

	weir_model_call_begins(0);
	status = enqueue(values, count, way, &done);
	weir_model_call_ends(0);
	note_answer(me, status, done);
	judge_put(me, status, count, done);
	if (status == WEIR_OK) {
		weir_model_assert(!scene.closed[me]);
		scene.accepted[me] = scene.put[me] - (int)count + (int)done;
	} else if (status == WEIR_CANCELLED) {
		know_closed(me);
	} else {
		weir_model_assert(status == WEIR_WOULD_BLOCK && (scene.scope->never & NEVER_FULL) == 0 && !scene.closed[me]);
	}
	/* a refused value is offered again, under the same number */
	scene.put[me] = scene.accepted[me];
}

static void have(size_t me, uint64_t bits)
{
	const struct value *value = (const struct value *)(uintptr_t)bits;

	/* Checks the order of its producer. */
	weir_model_assert(value->place > scene.got[me][value->row]);
	scene.got[me][value->row] = value->place;
	scene.out[me]++;
}

static void take(size_t me, size_t count, enum way way)
{
	uint64_t values[BATCH];
	enum weir_status status;
	size_t done = 1;

	weir_model_call_begins(1);
	status = dequeue(values, count, way, &done);
	weir_model_call_ends(1);
	note_answer(me, status, done);
	judge_take(status, values, count, done);
	for (size_t i = 0; status == WEIR_OK && i < done; i++)
		have(me, values[i]);
	scene.drained[me] |= status == WEIR_OUT_OF_RANGE;
	if (status == WEIR_OUT_OF_RANGE) {
		know_closed(me);
	} else if (status != WEIR_OK) {
		weir_model_assert(status == WEIR_WOULD_BLOCK && (scene.scope->never & NEVER_EMPTY) == 0);
	}
}

static void ask(size_t me)
{
	int closed;

	weir_model_call_begins(2);
	closed = weir_ring_closed(scene.ring);
	weir_model_call_ends(2);
	judged_closed(closed);
	if (closed)
		know_closed(me);
}

static void close_it(size_t me)
{
	scene.note = 1;
	weir_model_call_begins(3);
	weir_ring_close(scene.ring);
	weir_model_call_ends(3);
	judged_close(0);
	know_closed(me);
}

static void look_at_size(void)
{
	weir_model_assert(weir_ring_size_approx(scene.ring) <= scene.scope->capacity);
}

#define LETTERS(LETTER) \
	LETTER('e', "enqueue", put(me, 1, CALLED)) \
	LETTER('d', "dequeue", take(me, 1, CALLED)) \
	LETTER('m', "enqueue 2 in a batch", put(me, 2, CALLED)) \
	LETTER('b', "dequeue up to 2 in a batch", take(me, 2, CALLED)) \
	LETTER('M', "enqueue 3 in a batch", put(me, 3, CALLED)) \
	LETTER('B', "dequeue up to 3 in a batch", take(me, 3, CALLED)) \
	LETTER('x', "enqueue by a port", put(me, 1, BY_PORT)) \
	LETTER('y', "dequeue by a port", take(me, 1, BY_PORT)) \
	LETTER('c', "close", close_it(me)) \
	LETTER('q', "ask whether the ring is closed", ask(me)) \
	LETTER('s', "read the size", look_at_size()) \
	LETTER('o', \
	       "begin at a place for spare cells (LTQ64) or an arena (SPAN16) of this thread alone, as threads mostly " \
	       "do; otherwise all begin at " \
	       "one place", \
	       weiri_ring_first_place = (uint32_t)me) \
	LETTER('h', "from here on, go on at the hint when another thread came first (back_off.h)", \
	       weiri_ring_hint_again = true) \
	LETTER('t', \
	       "from here on, pause once when refused, and look again, as beside a thread that runs in step (in_step.h)", \
	       weiri_ring_step_time = IN_STEP) \
	LETTER('z', "a planted fault: a dequeue that returns \"empty\" without reading", judged_wrong_take())

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
	for (const char *calls = scene.scope->calls[me]; *calls != '\0'; calls++)
		call(me, *calls);
}

static void pass_a_batch(void)
{
	uint64_t values[2] = {1, 2};
	size_t done;

	weir_model_assert(weir_ring_try_enqueue_many(scene.ring, values, 2, &done) == WEIR_OK && done == 2);
	weir_model_assert(weir_ring_try_dequeue_many(scene.ring, values, 2, &done) == WEIR_OK && done == 2);
}

/* The ticket of the first value. */
static uint64_t begins_with(void)
{
	return scene.format == WEIR_RING_FORMAT_SPAN16 ? first_ticket(scene.ring) : 0;
}

/* Stores old hints, as if threads had been stopped before they stored newer ones. */
static void make_hints_old(uint64_t hint)
{
	if (scene.format != WEIR_RING_FORMAT_SPAN16) /* which has no hint of its head */
		weiri_store_relaxed(&scene.ring->head_hint, hint);
	weiri_store_relaxed(&scene.ring->tail_hint, begins_with() + hint);
}

static void setup(void *context)
{
	struct weir_ring_options options = {WEIR_RING_OPTIONS_INIT, .format = scene.format};
	uint64_t value;

	(void)context;
	weir_model_assert(weir_ring_create(scene.scope->capacity, &options, &scene.ring, NULL) == WEIR_OK);
	weir_ring_port_init(&scene.port, scene.ring);
	judged_as_fifo(scene.scope->capacity);
	for (unsigned i = 0; i < scene.scope->batches; i++)
		pass_a_batch();
	for (unsigned i = 0; i < scene.scope->passed; i++)
		weir_model_assert(weir_ring_try_enqueue(scene.ring, i) == WEIR_OK &&
		                  weir_ring_try_dequeue(scene.ring, &value) == WEIR_OK && value == i);
	for (unsigned i = 0; i < scene.scope->inside; i++)
		put(ROWS - 1, 1, CALLED);
	if (scene.scope->hint != 0)
		make_hints_old(scene.scope->hint);
}

/* The outcomes, as numbers: what each call returned, and which thread got what. */
enum { OUTCOMES = 256 };
static uint64_t outcomes[OUTCOMES];
static size_t outcome_count;

static void note_outcome(void)
{
	uint64_t outcome = 0;

	for (size_t i = 0; i < ROWS; i++) {
		outcome = outcome * 1000003 + scene.said[i];
		for (size_t j = 0; j < ROWS; j++)
			outcome = outcome * 5 + (uint64_t)scene.got[i][j]; /* overflows: it is a hash */
	}
	for (size_t i = 0; i < outcome_count; i++) {
		if (outcomes[i] == outcome)
			return;
	}
	weir_model_assert(outcome_count < OUTCOMES);
	outcomes[outcome_count++] = outcome;
}

static int take_left(uint64_t *value)
{
	enum weir_status status;

	weir_model_call_begins(1);
	status = weir_ring_try_dequeue(scene.ring, value);
	weir_model_call_ends(1);
	judge_take(status, value, 1, 1);
	return status == WEIR_OK;
}

/*
 * Dequeues the values that are left. They are newer than those that were dequeued before, and in
 * order. All of them together are the values that were enqueued.
 */
static void drain(void)
{
	int in = 0, out = 0, drained = 0;
	uint64_t value;

	for (size_t i = 0; i < ROWS; i++) {
		drained |= scene.drained[i];
		out += scene.out[i];
		for (size_t j = 0; j < THREADS; j++) {
			if (scene.got[ROWS - 1][i] < scene.got[j][i])
				scene.got[ROWS - 1][i] = scene.got[j][i];
		}
	}
	for (size_t left = 0; take_left(&value); left++) {
		weir_model_assert(!drained && left < scene.scope->capacity);
		have(ROWS - 1, value);
		out++;
	}
	for (size_t i = 0; i < ROWS; i++)
		in += scene.accepted[i];
	weir_model_assert(in == out);
}

/* Returns how many tickets are done according to a hint. */
static uint64_t said_by(const _Atomic(uint64_t) *hint)
{
	uint64_t ticket = weiri_load_relaxed(hint);

	return (ticket >> scene.ring->shape.shift) * scene.scope->capacity + (ticket & scene.ring->shape.mask);
}

static void check_hints(void)
{
	uint64_t head = said_by(&scene.ring->head_hint), tail = said_by(&scene.ring->tail_hint);
	uint64_t in = scene.scope->passed + 2 * scene.scope->batches, out = in;

	for (size_t i = 0; i < ROWS; i++) {
		in += (uint64_t)scene.accepted[i];
		out += (uint64_t)scene.out[i];
	}
	if (scene.format == WEIR_RING_FORMAT_SPAN16) {
		head = weiri_load_relaxed(&scene.ring->head);
		weir_model_assert(ticket_in(head) + offset_in(head) == begins_with() + out);         /* N3 */
		weir_model_assert(weiri_load_relaxed(&scene.ring->tail_hint) <= begins_with() + in); /* N5 */
		weir_model_assert(weiri_load_relaxed(&scene.ring->limit) <= begins_with() + out + scene.scope->capacity);
		return;
	}
	weir_model_assert(tail <= in && head <= out); /* I4 */
}

static void finish(void *context)
{
	(void)context;
	if (comparing)
		note_outcome();
	check_hints();
	drain();
	weir_ring_destroy(scene.ring, NULL);
}

static struct weir_model_program prepare(const struct scope *scope, enum weir_ring_format format,
                                         char name[static SCOPE_NAME])
{
	static const char *const formats[] = {
		[WEIR_RING_FORMAT_LTQ16] = "ltq16", [WEIR_RING_FORMAT_LTQ64] = "ltq64", [WEIR_RING_FORMAT_SPAN16] = "span16"};

	(void)snprintf(name, SCOPE_NAME, "ring_%s_%s", formats[format], scope->name);
	scene = (struct scene){.scope = scope, .format = format};
	return (struct weir_model_program){
		name, scope_threads(scope->calls, THREADS), &scene, sizeof(scene), setup, thread, finish};
}

/* The reduction loses no outcome: the outcomes with it are those without it. */
static int check_reduction(const struct scope *scope, enum weir_ring_format format)
{
	char name[SCOPE_NAME];
	struct weir_model_program program = prepare(scope, format, name);
	struct weir_model_result reduced, all;
	uint64_t met[OUTCOMES];
	size_t count, same = 0;
	int right;

	if (!scope_chosen(name))
		return 0;
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
	/* A search that did not end may have fewer outcomes, never additional ones. */
	right = right && same == outcome_count && (same == count || !all.complete);
	(void)printf("%s %s_reduction_loses_nothing: %zu outcomes in %llu executions, %zu in %llu%s without reduction\n",
	             right ? "PASS" : "FAIL", name, count, (unsigned long long)reduced.executions, outcome_count,
	             (unsigned long long)all.executions, all.complete ? "" : " of more");
	free(reduced.replay);
	free(all.replay);
	return !right;
}

/* A thread that is stopped at any of its steps blocks no other thread. */
static int check_progress(const struct scope *scope, enum weir_ring_format format)
{
	static const char *const calls[WEIR_MODEL_CALLS + 1] = {"enqueue", "dequeue", NULL};
	static const uint32_t bounds[WEIR_MODEL_CALLS] = {0};
	char name[SCOPE_NAME];
	struct weir_model_program program = prepare(scope, format, name);

	return scope_stops(&program, scope_long() ? 0 : 2000, calls, bounds);
}

/*
 * A short program, for the rate: 500,000 executions per second are required, on an otherwise idle
 * machine.
 */
static int measure(enum weir_ring_format format)
{
	char name[SCOPE_NAME];
	struct weir_model_program program = prepare(&scopes[0], format, name);

	return scope_random(&program, 500000);
}

static int check_small(enum weir_ring_format format)
{
	int bad = 0;
	char name[SCOPE_NAME];

	for (size_t i = 0; i < sizeof(scopes) / sizeof(scopes[0]); i++) {
		struct weir_model_program program = prepare(&scopes[i], format, name);

		bad |= scope_as_far_as(&program, scope_long() ? 0 : 500000);
	}
	return bad;
}

/* What most scopes leave out: the hint that is read again, and the pauses in step. */
static int check_paused(enum weir_ring_format format)
{
	int bad = 0;
	char name[SCOPE_NAME];

	for (size_t i = 0; i < sizeof(hinted) / sizeof(hinted[0]); i++) {
		struct weir_model_program program = prepare(&hinted[i], format, name);

		bad |= scope_as_far_as(&program, scope_long() ? 0 : 500000);
		bad |= check_progress(&hinted[i], format);
	}
	for (size_t i = 0; i < sizeof(in_step) / sizeof(in_step[0]); i++) {
		struct weir_model_program program = prepare(&in_step[i], format, name);

		bad |= scope_as_far_as(&program, scope_long() ? 0 : 500000);
		bad |= check_progress(&in_step[i], format);
	}
	return bad;
}

static int check_large(enum weir_ring_format format)
{
	int bad = 0;
	char name[SCOPE_NAME];

	for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++) {
		struct weir_model_program program = prepare(&large[i], format, name);

		bad |= scope_preemptions(&program, 0);
		bad |= scope_as_far_as(&program, 100000);
	}
	return bad;
}

/* `alike`: the threads with the same calls that are interchangeable. */
static int check_states(const struct scope of[], size_t count, enum weir_ring_format format, uint64_t most,
                        unsigned alike)
{
	int bad = 0;
	char name[SCOPE_NAME];

	for (size_t i = 0; i < count; i++) {
		struct weir_model_program program = prepare(&of[i], format, name);

		bad |= scope_merged_alike(&program, most, alike & scope_alike(of[i].calls, program.threads));
	}
	return bad;
}

/*
 * Each scope takes up to ten times as long as the scope before it, and LTQ64 takes longer than
 * LTQ16. In the long form a limit ends a scope before memory runs out.
 */
static int check_merged(enum weir_ring_format format)
{
	int narrow = format == WEIR_RING_FORMAT_LTQ64;
	size_t quick = narrow ? QUICK_64 : QUICK_16;
	uint64_t most = scope_long() ? narrow ? 600000000 : 400000000 : narrow ? 150000 : 1200000;

	return check_states(merged, scope_long() ? sizeof(merged) / sizeof(merged[0]) : quick, format, most, ~0u);
}

static int check_both_answers(enum weir_ring_format format)
{
	return check_states(both_answers, sizeof(both_answers) / sizeof(both_answers[0]), format, scope_long() ? 0 : 500000,
	                    0);
}

/* Producers are not identical, because each has its own place for spare cells. */
static int check_apart(void)
{
	return check_states(apart, scope_long() ? sizeof(apart) / sizeof(apart[0]) : QUICK_APART, WEIR_RING_FORMAT_LTQ64,
	                    scope_long() ? 600000000 : 1000000, ~2u);
}

/* What only a ring of spans has: cells. */
static int check_spans(void)
{
	int bad = 0;
	char name[SCOPE_NAME];

	for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++) {
		struct weir_model_program program = prepare(&spans[i], WEIR_RING_FORMAT_SPAN16, name);

		bad |= scope_as_far_as(&program, scope_long() ? 0 : 300000);
		bad |= check_progress(&spans[i], WEIR_RING_FORMAT_SPAN16);
	}
	return bad | check_states(merged_spans, scope_long() ? sizeof(merged_spans) / sizeof(merged_spans[0]) : QUICK_SPANS,
	                          WEIR_RING_FORMAT_SPAN16, scope_long() ? 400000000 : 1200000, ~0u);
}

/* The calls that are inlined in programs. */
static int check_ports(void)
{
	int bad = 0;
	char name[SCOPE_NAME];

	for (size_t i = 0; i < sizeof(ports) / sizeof(ports[0]); i++) {
		struct weir_model_program program = prepare(&ports[i], WEIR_RING_FORMAT_LTQ16, name);

		bad |= scope_as_far_as(&program, scope_long() ? 0 : 60000);
		bad |= check_progress(&ports[i], WEIR_RING_FORMAT_LTQ16);
	}
	return bad | check_states(merged_ports, scope_long() ? sizeof(merged_ports) / sizeof(merged_ports[0]) : QUICK_PORTS,
	                          WEIR_RING_FORMAT_LTQ16, scope_long() ? 400000000 : 1200000, ~0u);
}

static int check_planted(enum weir_ring_format format)
{
	char name[SCOPE_NAME];
	struct weir_model_program program = prepare(&planted, format, name);

	return scope_finds(&program, judged_wrong);
}

static int check_all_progress(enum weir_ring_format format)
{
	int bad = 0;

	for (size_t i = 0; i < sizeof(scopes) / sizeof(scopes[0]); i++)
		bad |= check_progress(&scopes[i], format);
	return bad;
}

/* Tests the checker rather than the ring, so one format suffices. */
static int check_all_reductions(enum weir_ring_format format)
{
	int bad = 0;

	for (size_t i = 0; i < REDUCED; i++)
		bad |= check_reduction(&scopes[i], format);
	return bad;
}

int main(int argc, char **argv)
{
	static const struct scope_letter letters[] = {LETTERS(LETTER_ROW){0, NULL}};
	static const enum weir_ring_format ltq64 = WEIR_RING_FORMAT_LTQ64, ltq16 = WEIR_RING_FORMAT_LTQ16,
									   span16 = WEIR_RING_FORMAT_SPAN16;
	int bad;

	scope_letters(argc, argv, letters);
	scope_arguments(argc, argv);
	/* the quickest first */
	bad = check_small(ltq64) | check_small(ltq16);
	bad |= check_small(span16) | check_both_answers(span16);
	bad |= check_all_progress(span16) | check_spans() | check_planted(span16) | check_ports();
	bad |= check_both_answers(ltq64) | check_both_answers(ltq16);
	bad |= check_paused(ltq16) | check_paused(ltq64) | check_paused(span16);
	bad |= check_planted(ltq64) | check_planted(ltq16);
	bad |= check_all_progress(ltq64) | check_all_progress(ltq16);
	bad |= check_merged(ltq16) | check_merged(ltq64) | check_merged(span16) | check_apart();
	bad |= check_large(ltq64) | check_large(ltq16) | check_large(span16);
	bad |= check_all_reductions(ltq16) | (scope_long() ? check_all_reductions(ltq64) : 0);
	return bad | measure(ltq64) | measure(ltq16);
}
