/*
 * check_store.c - which items a queue has, and when its end is reached: with the store of each
 * order, FIFO also for batches, with items that batches returned, and with the turns of batches.
 *
 * No thread waits here (that is the subject of check_queue.c), so most scopes are small enough to
 * be explored completely. A scope gives each thread a row of calls. Each call is a letter, and
 * LETTERS says what it does.
 *
 * Required of every execution: If the scope has no batch, some order of the calls explains all
 * results (judged.h). Each item that was accepted is dequeued exactly once. A batch has its items
 * in order (FIFO, priority). A thread that gets "closed" sees what the closer wrote before, and
 * enqueues nothing afterwards. A thread that gets "drained" is right: nothing is left, and no batch
 * returns an item later. With ITEM_STAYS there are fewer items than a batch wants, and at most one
 * dequeue. So an item is left for that dequeue, in the queue or in a batch that will return it, and
 * the dequeue may not return "drained".
 */
#include <stdio.h>
#include <string.h>
#include <weir/queue.h>
#include <weir/reclaim.h>

#include "model/judged.h"
#include "model/scope.h"
#include "model/setup_end.h"
#include "queue/queue.h"

enum { THREADS = 4, CALLS = 4, ROWS = THREADS + 1 };   /* the last row belongs to setup */
enum { FIFO = 1, SHUFFLE = 2, PRIORITY = 4, ALL = 7 }; /* bits of `orders` */
/*
 * ITEM_STAYS: see above. TAKEN: setup dequeues the returned item again; its segment is empty, and
 * not freed yet.
 */
enum { ITEM_STAYS = 1, TAKEN = 2 };

struct value {
	int row, place; /* place counts from 1 */
};

static const struct scope {
	const char *name;
	int orders;
	size_t capacity;
	const char *calls[THREADS];
	int flags;
	/*
	 * The queue at the start: items in the store, items that batches returned, whether it is
	 * closed.
	 */
	int inside, given_back, closed;
	/*
	 * The most atomic accesses of an enqueue and of a dequeue while another thread is stopped; 0:
	 * no bound
	 */
	uint32_t bounds[2];
} scopes[] = {
	{"n1_1_put_1_take", SHUFFLE, 1, {"e", "d"}, 0, 0, 0, 0, {16, 18}},
	{"n1_1_take_1_put", SHUFFLE, 1, {"d", "e"}, 0, 1, 0, 0, {16, 18}},
	{"n1_put_beside_put_then_take", SHUFFLE, 1, {"e", "ed"}, 0, 0, 0, 0, {18, 12}},
	{"n1_take_beside_take_then_put", SHUFFLE, 1, {"d", "de"}, 0, 1, 0, 0, {9, 28}},
	{"n1_2_puts_2_takes_of_2_threads", SHUFFLE, 1, {"ee", "dd"}, 0, 0, 0, 0, {0}},
	{"n2_2_puts_2_takes_of_2_threads", SHUFFLE, 2, {"ee", "dd"}, 0, 0, 0, 0, {0}},
	{"n2_put_take_beside_put_take", SHUFFLE, 2, {"ed", "ed"}, 0, 0, 0, 0, {0}},
	{"n1_2_puts_1_take", SHUFFLE, 1, {"e", "e", "d"}, 0, 0, 0, 0, {0}},
	{"n2_1_put_2_takes", SHUFFLE, 2, {"e", "d", "d"}, 0, 1, 0, 0, {0}},
	{"n1_1_put_1_take_close", ALL, 1, {"e", "d", "c"}, 0, 0, 0, 0, {0}},
	{"n1_close_beside_closed", ALL, 1, {"c", "q"}, 0, 0, 0, 0, {0}},
	{"n1_put_close_put_beside_2_takes", ALL, 1, {"ece", "dd"}, 0, 0, 0, 0, {0}},
	{"n1_closed_2_takes_of_1_item", ALL, 1, {"d", "d"}, 0, 1, 0, 1, {0}},
	{"n1_closed_2_takes_of_1_item_from_the_bag", SHUFFLE | PRIORITY, 1, {"x", "x"}, 0, 1, 0, 1, {0}},
	{"n2_batch_beside_take_of_1_item_at_the_end", ALL, 2, {"b", "d"}, ITEM_STAYS, 1, 0, 1, {0}},
	{"n2_batch_beside_take_of_1_given_back_at_the_end", ALL, 2, {"b", "d"}, ITEM_STAYS, 0, 1, 1, {0}},
	{"n2_batch_beside_take_of_1_item_and_1_given_back_at_the_end", ALL, 2, {"b", "d"}, 0, 1, 1, 1, {0}},
	{"n2_batch_beside_batch_of_1_item_at_the_end", ALL, 2, {"b", "b"}, ITEM_STAYS, 1, 0, 1, {0}},
	{"n2_batch_beside_take_of_1_item_close", ALL, 2, {"b", "d", "c"}, ITEM_STAYS, 1, 0, 0, {0}},
	{"n2_batch_beside_take_and_put_then_close", ALL, 2, {"b", "d", "ec"}, ITEM_STAYS, 0, 0, 0, {0}},
	{"n2_batch_beside_put_then_batch", FIFO | PRIORITY, 2, {"b", "eb"}, 0, 1, 0, 0, {0}},
	{"n2_2_takes_of_2_given_back", ALL, 2, {"d", "d"}, 0, 0, 2, 0, {0}},
	{"n2_2_takes_of_2_given_back_beside_flush", FIFO | PRIORITY, 2, {"d", "d", "f"}, 0, 0, 2, 0, {0}},
	{"n3_take_beside_2_puts_2_takes_of_1_given_back", FIFO, 3, {"d", "eedd"}, 0, 0, 1, 0, {0}},
	{"n2_full_beside_empty_1_producer_x3_1_consumer_x2", ALL, 2, {"eee", "dd"}, 0, 0, 0, 0, {0}},
	{"n2_store_buffering_each_puts_and_takes", FIFO | PRIORITY, 2, {"ed", "ed"}, 0, 0, 0, 0, {0}},
	{"n2_iriw_2_puts_seen_by_2_who_take", ALL, 2, {"e", "e", "d", "d"}, 0, 0, 0, 0, {0}},
	{"n1_2_takes_of_what_is_gone_beside_2_flushes", FIFO | PRIORITY, 1, {"d", "d", "ff"}, TAKEN, 0, 1, 0, {0}},
};

static struct scene {
	const struct scope *scope;
	enum weir_queue_order order;
	uint32_t flags;
	weir_queue *queue;
	struct value values[ROWS][CALLS + 1];
	/* Written by each thread for itself. */
	int accepted[ROWS], out[ROWS], closed[ROWS], drained[ROWS];
	int had[ROWS][CALLS + 1];
	int note;        /* written by the closer before the close */
	int takes[ROWS]; /* written before a take from the store */
} scene;

/* In priority queues all keys are equal, so they are FIFO, too. */
static int64_t key_of(void *context, void *item)
{
	(void)context;
	(void)item;
	return 7;
}

static int is_in_order(void)
{
	return scene.order != WEIR_QUEUE_SHUFFLE;
}

static void know_closed(size_t me)
{
	weir_model_assert(scene.note == 1);
	scene.closed[me] = 1;
}

static void know_drained(size_t me)
{
	know_closed(me);
	scene.drained[me] = 1;
}

static const struct value *have(size_t me, void *item)
{
	const struct value *value = item;

	/* Not atomic, so an item that two threads have is also found as a race. */
	weir_model_assert(scene.had[value->row][value->place]++ == 0);
	weir_model_assert(!scene.drained[me]);
	scene.out[me]++;
	return value;
}

static void put(size_t me)
{
	int place = scene.accepted[me] + 1;
	enum weir_status status;

	scene.values[me][place] = (struct value){(int)me, place};
	weir_model_call_begins(0);
	status = weir_queue_try_enqueue(scene.queue, &scene.values[me][place]);
	weir_model_call_ends(0);
	judged_put(status, judged_number((int)me, place), 7);
	weir_model_assert(status == WEIR_CANCELLED || !scene.closed[me]);
	if (status == WEIR_OK)
		scene.accepted[me] = place;
	else if (status == WEIR_CANCELLED)
		know_closed(me);
	else
		weir_model_assert(status == WEIR_WOULD_BLOCK);
}

static uint64_t number_of(const struct value *value)
{
	return judged_number(value->row, value->place);
}

static void take(size_t me)
{
	void *item;
	enum weir_status status;

	weir_model_call_begins(1);
	status = weir_queue_try_dequeue(scene.queue, &item);
	weir_model_call_ends(1);
	judged_take(status, status == WEIR_OK ? number_of(item) : 0);
	if (status == WEIR_OK)
		(void)have(me, item);
	weir_model_assert(status == WEIR_OK || status == WEIR_WOULD_BLOCK ||
	                  (status == WEIR_OUT_OF_RANGE && (scene.scope->flags & ITEM_STAYS) == 0));
	if (status == WEIR_OUT_OF_RANGE)
		know_drained(me);
}

/*
 * Two threads take one item. By contents.c, a thread that finds the item gone sees what the taker
 * wrote before it took the item. In batches that is the turn.
 */
static void take_from_store(size_t me)
{
	uint64_t item;
	enum weir_status status;

	scene.takes[me] = 1;
	if (scene.queue->store->take(scene.queue, &item, NULL, 1, WEIRI_RING_LEAVE, &status) != 0)
		(void)have(me, weiri_item_pointer(item));
	else
		weir_model_assert(scene.takes[1 - me] == 1);
}

static struct weiri_segment *segment_of_2(void)
{
	struct weiri_segment *segment = weiri_queue_segment(scene.queue, 2);

	weir_model_assert(segment != NULL);
	return segment;
}

static void give_back(struct weiri_segment *segment, size_t count)
{
	struct weiri_scope scope = weiri_scope_enter(weiri_record_get());

	weiri_queue_sort_batch(scene.queue, segment, count);
	weiri_putback_push(&scope, &scene.queue->putback, segment, count);
	weiri_scope_leave(&scope);
}

static void have_both(size_t me, const struct weiri_segment *segment)
{
	const struct value *first = have(me, weiri_item_pointer(segment->items[0]));
	const struct value *second = have(me, weiri_item_pointer(segment->items[1]));

	/*
	 * What was stored at the start is older than what threads enqueue. The rest is in its
	 * producer's order.
	 */
	if (is_in_order() && second->row == ROWS - 1)
		weir_model_assert(first->row == ROWS - 1);
	if (is_in_order() && first->row == second->row)
		weir_model_assert(first->place < second->place);
}

/* Does the same as operation.c. */
static void batch(size_t me)
{
	struct weiri_segment *segment = segment_of_2();
	struct weiri_scope scope;
	enum weir_status status;
	size_t taken;

	if (!weiri_queue_turn_take(scene.queue)) {
		weiri_segment_free(segment);
		return;
	}
	scope = weiri_scope_enter(weiri_record_get());
	taken = weiri_queue_take(&scope, scene.queue, segment->items, 2, 1, &status);
	weiri_scope_leave(&scope);
	if (taken == 2)
		have_both(me, segment);
	else if (taken == 1)
		give_back(segment, taken);
	if (taken != 1)
		weiri_segment_free(segment);
	weiri_queue_turn_give(scene.queue);
	if (taken == 0 && status == WEIR_OUT_OF_RANGE)
		know_drained(me);
}

static void close_it(size_t me)
{
	scene.note = 1;
	weir_model_call_begins(2);
	(void)weir_queue_close(scene.queue, WEIR_CLOSE_DRAIN, NULL);
	weir_model_call_ends(2);
	judged_close(0);
	know_closed(me);
}

static void ask(size_t me)
{
	int closed;

	weir_model_call_begins(3);
	closed = weir_queue_closed(scene.queue);
	weir_model_call_ends(3);
	judged_closed(closed);
	if (closed)
		know_closed(me);
}

#define LETTERS(LETTER) \
	LETTER('e', "enqueue", put(me)) \
	LETTER('d', "dequeue", take(me)) \
	LETTER('b', "a batch takes its turn and up to 2 items; if there are fewer than 2 it returns them", batch(me)) \
	LETTER('c', "close", close_it(me)) \
	LETTER('q', "ask whether the queue is closed", ask(me)) \
	LETTER('f', "free what was retired", (void)weir_reclaim_flush(0)) \
	LETTER('x', \
	       "take from the store alone; a call that finds it empty sees what the thread that emptied it wrote before", \
	       take_from_store(me)) \
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
	scope_calls(me, scene.scope->calls[me], call);
}

static void give_back_one(int place)
{
	struct weiri_segment *segment = segment_of_2();

	scene.values[ROWS - 1][place] = (struct value){ROWS - 1, place};
	segment->items[0] = weiri_item_bits(&scene.values[ROWS - 1][place]);
	give_back(segment, 1);
	scene.accepted[ROWS - 1]++;
}

static int calls_of(const struct scope *scope, char what)
{
	int count = 0;

	for (size_t i = 0; i < THREADS && scope->calls[i] != NULL; i++)
		count += strchr(scope->calls[i], what) != NULL;
	return count;
}

/*
 * Lets the judge check the results, unless the scope has a batch. A batch that takes an item and
 * returns it has no instant: other threads find the item missing in between.
 */
static void be_judged(void)
{
	if (calls_of(scene.scope, 'b') + calls_of(scene.scope, 'x') != 0)
		return;
	if (scene.order == WEIR_QUEUE_FIFO)
		judged_as_fifo(scene.scope->capacity);
	else if (scene.order == WEIR_QUEUE_SHUFFLE)
		judged_as_shuffle(scene.scope->capacity);
	else
		judged_as_priority(scene.scope->capacity);
}

static void setup(void *context)
{
	struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .capacity = scene.scope->capacity,
	                                     .order = scene.order, .flags = scene.flags, .seed = 1};

	(void)context;
	options.key = scene.order == WEIR_QUEUE_PRIORITY ? key_of : NULL;
	weir_model_assert(weir_queue_create(&options, &scene.queue, NULL) == WEIR_OK);
	be_judged();
	for (int i = scene.scope->given_back; i > 0; i--) /* the last one returned leaves first */
		give_back_one(i);
	for (int i = 1; i <= scene.scope->given_back; i++)
		judged_put(WEIR_OK, judged_number(ROWS - 1, i), 7);
	if ((scene.scope->flags & TAKEN) != 0)
		take(ROWS - 1);
	for (int i = 0; i < scene.scope->inside; i++)
		put(ROWS - 1);
	if (scene.scope->closed)
		close_it(ROWS - 1);
	setup_ends();
}

static int take_left(void **item)
{
	enum weir_status status;

	weir_model_call_begins(1);
	status = weir_queue_try_dequeue(scene.queue, item);
	weir_model_call_ends(1);
	judged_take(status, status == WEIR_OK ? number_of(*item) : 0);
	return status == WEIR_OK;
}

static void finish(void *context)
{
	int in = 0, out = 0, drained = 0, newer = 0;
	void *item;

	(void)context;
	for (size_t i = 0; i < ROWS; i++) {
		in += scene.accepted[i];
		out += scene.out[i];
		drained |= scene.drained[i];
	}
	while (take_left(&item)) {
		weir_model_assert(!drained);
		/*
		 * In order, all items of the start, returned ones included, leave before those that threads
		 * enqueued.
		 */
		if (have(ROWS - 1, item)->row != ROWS - 1)
			newer = 1;
		else
			weir_model_assert(!newer || !is_in_order());
		out++;
	}
	weir_model_assert(in == out);
	weir_model_assert(weir_queue_size_approx(scene.queue) == 0);
	weir_model_assert(weir_queue_destroy(scene.queue, NULL) == WEIR_OK);
	weir_model_assert(weir_reclaim_flush(0) == WEIR_OK);
}

/*
 * What a store is made for; each is checked with the scopes of its order. `most`: the executions of
 * a scope in the short form. The ring for batches has many scopes of its own in check_ring.c; here it
 * has those in which batches take turns.
 */
struct kind {
	const char *name;
	enum weir_queue_order order;
	uint32_t flags;
	uint64_t most;
};
static const struct kind kinds[] = {{"fifo", WEIR_QUEUE_FIFO, 0, 20000},
                                    {"fifo_batches", WEIR_QUEUE_FIFO, WEIR_QUEUE_BATCHES, 5000},
                                    {"shuffle", WEIR_QUEUE_SHUFFLE, 0, 20000},
                                    {"priority", WEIR_QUEUE_PRIORITY, 0, 20000}};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static struct weir_model_program prepare(const struct scope *scope, const struct kind *kind,
                                         char name[static SCOPE_NAME])
{
	(void)snprintf(name, SCOPE_NAME, "store_%s_%s", kind->name, scope->name);
	scene = (struct scene){.scope = scope, .order = kind->order, .flags = kind->flags};
	return (struct weir_model_program){
		name, scope_threads(scope->calls, THREADS), &scene, sizeof(scene), setup, thread, finish};
}

static bool suits(const struct scope *scope, const struct kind *kind)
{
	return (scope->orders & 1 << kind->order) != 0 &&
	       ((kind->flags & WEIR_QUEUE_BATCHES) == 0 || calls_of(scope, 'b') != 0);
}

static int check(const struct scope *scope, const struct kind *kind)
{
	char name[SCOPE_NAME];
	struct weir_model_program program = prepare(scope, kind, name);

	return scope_as_far_as(&program, scope_long() ? 0 : kind->most);
}

static int check_progress(const struct scope *scope, const struct kind *kind)
{
	static const char *const calls[WEIR_MODEL_CALLS + 1] = {"enqueue", "dequeue", NULL};
	static const uint32_t no_bounds[WEIR_MODEL_CALLS] = {0};
	char name[SCOPE_NAME];
	struct weir_model_program program = prepare(scope, kind, name);

	return scope_stops(&program, scope_long() ? 0 : kind->most / 100, calls,
	                   kind->order == WEIR_QUEUE_PRIORITY ? no_bounds : scope->bounds);
}

static int check_planted(const struct kind *kind)
{
	static const struct scope planted = {"a_wrong_empty", ALL, 2, {"ez"}, 0, 0, 0, 0, {0}};
	char name[SCOPE_NAME];
	struct weir_model_program program = prepare(&planted, kind, name);

	return scope_finds(&program, judged_wrong);
}

int main(int argc, char **argv)
{
	static const struct scope_letter letters[] = {LETTERS(LETTER_ROW){0, NULL}};
	int bad = 0;

	scope_letters(argc, argv, letters);
	scope_arguments(argc, argv);
	for (int k = 0; k < KINDS; k++) {
		bad |= check_planted(&kinds[k]);
		for (size_t i = 0; i < sizeof(scopes) / sizeof(scopes[0]); i++) {
			if (suits(&scopes[i], &kinds[k]))
				bad |= check(&scopes[i], &kinds[k]);
		}
	}
	for (int k = 0; k < KINDS; k++) {
		for (size_t i = 0; i < sizeof(scopes) / sizeof(scopes[0]); i++) {
			/* Of the scopes that free memory, check_reclaim.c stops smaller ones. */
			if (suits(&scopes[i], &kinds[k]) && calls_of(&scopes[i], 'f') == 0)
				bad |= check_progress(&scopes[i], &kinds[k]);
		}
	}
	return bad;
}
