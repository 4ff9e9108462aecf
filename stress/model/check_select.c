/*
 * check_select.c - selects: one of several operations, on two queues, X and Y.
 *
 * A scope gives each thread a row of calls, a letter each; LETTERS says what each letter does.
 * `start` is such a row, which runs before the threads begin.
 *
 * Required of every execution: an item that was accepted is dequeued once, and an item that was not
 * accepted is never dequeued. A select moves the item of one case or of none, and reports which. No
 * thread sleeps permanently (the checker reports a failure if all threads sleep). No started
 * operation is left waiting for an item that is stored. Each operation completes once. An operation
 * that a close ended reports the closer's cause.
 */
#include <weir/cancel.h>
#include <weir/reclaim.h>
#include <weir/select.h>
#include <weir/time.h>

#include "model/queue_scopes.h"

enum { X = 0, Y = 1 };

/* An asynchronous operation. */
struct started {
	weir_pending *op;
	int used, is_select, ended; /* ended: how many times */
	struct weir_select_case cases[2];
	int queue; /* the queue of a dequeue */
	void *items[2];
	size_t me;
};

static const struct queue_scope scopes[] = {
	/* No thread sleeps, so each thread may be stopped, too. */
	{"n1_dequeues_wait_item_in_each", 1, "s1", {"e", "t"}, 0, 0},
	{"n1_dequeues_wait_item_cancel", 1, "s1", {"e", "k"}, 0, 0},
	{"n1_dequeues_wait_item_close_of_the_other", 1, "s1", {"e", "y"}, 0, 0},
	{"n1_dequeues_wait_2_closes", 1, "s1", {"c", "y"}, 0, 0},
	{"n1_dequeues_wait_2_cancels", 1, "s1", {"k", "k"}, 0, 0},
	{"n1_enqueues_wait_room_in_each", 1, "ets2", {"d", "g"}, 0, 0},
	{"n1_enqueues_wait_room_close_cancel_of_the_other", 1, "ets2", {"C", "g"}, 0, 0},
	{"n1_enqueues_wait_room_close_drain_of_the_same", 1, "ets2", {"c", "d"}, 0, 0},
	/*
	 * The batch takes the item in X. X had admitted the select before the close, so the batch
	 * learns only when the select leaves X that nothing more comes.
	 */
	{"n1_enqueue_or_dequeue_waits_closed_item_batch_of_2", 1, "es3c", {"B", "t"}, 0, 0},
	{"n1_2_selects_crossed_item_in_each", 1, "s1s4", {"e", "t"}, 0, 0},
	{"n1_2_selects_crossed_1_item_cancel", 1, "s1s4", {"e", "k"}, 0, 0},
	{"n1_2_selects_both_directions", 1, "es3", {"s5", "g"}, 0, 0},
	{"n1_enqueue_or_dequeue_waits_both_possible_at_once", 1, "es3", {"d", "t"}, 0, 0},
	{"n1_enqueue_or_dequeue_waits_a_dequeue_waits_too", 1, "ts5", {"e", "gb"}, 0, 0},
	{"n1_same_queue_twice_2_items", 1, "s6", {"e", "e"}, 0, 0},
	{"n1_same_queue_both_directions", 1, "", {"s7", "d"}, 0, 0},
	{"n1_start_dequeues_beside_items", 1, "", {"s1", "et"}, 0, 0},
	{"n1_start_enqueues_beside_room", 1, "et", {"s2", "dg"}, 0, 0},
	{"n1_start_enqueues_beside_close_cancel", 1, "et", {"s2", "C"}, 0, 0},
	{"n1_2_starts_crossed", 1, "", {"s1", "s4", "et"}, 0, 0},
	{"n1_2_starts_both_directions", 1, "e", {"s3", "s5"}, 0, 0},
	{"n1_dequeue_waits_start_select_item", 1, "a", {"s1", "e"}, 0, 0},
	{"n1_fair_dequeue_waits_start_select_items", 1, "a", {"s1", "et"}, FAIR, 0},
	{"n1_fair_2_selects_crossed_item_in_each", 1, "s1s4", {"e", "t"}, FAIR, 0},
	{"n1_fair_select_behind_a_select_item_in_each", 1, "s1s8", {"e", "t"}, FAIR, 0},
	{"n1_fair_select_behind_a_select_cancel_item", 1, "s1s8", {"k", "t"}, FAIR, 0},
	/* Threads that wait. */
	{"n1_select_beside_item", 1, "", {"1", "e"}, 0, WEIR_NO_DEADLINE},
	{"n1_select_beside_item_in_each", 1, "", {"1", "e", "t"}, 0, WEIR_NO_DEADLINE},
	{"n1_2_selects_crossed_beside_item_in_each", 1, "", {"1", "4", "et"}, 0, WEIR_NO_DEADLINE},
	{"n1_2_selects_of_enqueues_beside_room_in_each", 1, "et", {"2", "2", "dg"}, 0, WEIR_NO_DEADLINE},
	{"n1_select_feeds_a_dequeue", 1, "ets2", {"d", "D"}, 0, WEIR_NO_DEADLINE},
	{"n1_select_and_dequeue_of_2_items", 1, "", {"1", "D", "et", "e"}, 0, 3},
	{"n1_select_beside_token_and_item", 1, "", {"1", "F", "e"}, 0, WEIR_NO_DEADLINE},
	{"n1_select_with_deadline_beside_item", 1, "", {"1", "t"}, 0, 2},
	{"n1_select_of_enqueues_with_deadline_beside_room", 1, "et", {"2", "g"}, 0, 2},
};

static struct scene {
	const struct queue_scope *scope;
	enum weir_queue_order order;
	weir_queue *queues[2];
	weir_cancel *token;
	struct values values;
	int start_next[ROWS];
	struct started started[ROWS][STARTED];
	int finishing;
} scene;

static int calls_of(const char *letters)
{
	return queue_scope_calls(scene.scope, letters);
}

/* -- requirements ------------------------------------------------------------------------------ */

static void have(void *item)
{
	(void)values_have(&scene.values, item);
}

static void accept_value(void *item)
{
	const struct value *value = item;

	weir_model_assert(scene.values.accepted[value->row][value->place]++ == 0);
}

static void drop(void *context, void *item)
{
	(void)context;
	have(item);
}

static void check_chosen(const struct weir_select_case cases[], size_t chosen, const weir_error *error)
{
	const struct weir_select_case *one = &cases[chosen];
	int enqueues = one->kind == WEIR_SELECT_ENQUEUE;

	weir_model_assert(chosen < 2);
	if (one->status == WEIR_OK && enqueues)
		accept_value(one->item);
	else if (one->status == WEIR_OK)
		have(one->item);
	else
		weir_model_assert(
			one->status == (enqueues ? WEIR_CANCELLED : WEIR_OUT_OF_RANGE) &&
			(scene.finishing || (weir_queue_closed(one->queue) && strstr(error->message, "the closer") != NULL)));
	for (size_t i = 0; i < 2; i++) /* a case that was not chosen is unchanged */
		weir_model_assert(i == chosen || cases[i].kind == WEIR_SELECT_ENQUEUE || cases[i].item == NULL);
}

static void check_failure(enum weir_status status)
{
	weir_model_assert((status == WEIR_CANCELLED && calls_of("Fk") != 0) ||
	                  (status == WEIR_DEADLINE_EXCEEDED && scene.scope->deadline != WEIR_NO_DEADLINE));
}

/* -- the calls --------------------------------------------------------------------------------- */

static void put(size_t me, int queue)
{
	struct value *value = values_offer(&scene.values, me);

	if (weir_queue_try_enqueue(scene.queues[queue], value) == WEIR_OK)
		accept_value(value);
}

static void take(int queue)
{
	void *item;

	if (weir_queue_try_dequeue(scene.queues[queue], &item) == WEIR_OK)
		have(item);
}

static void take_waiting(void)
{
	void *item;
	enum weir_status status = weir_queue_dequeue(scene.queues[X], &item, scene.scope->deadline, scene.token, NULL);

	if (status == WEIR_OK)
		have(item);
	else
		check_failure(status);
}

static struct weir_select_case one_case(size_t me, int queue, enum weir_select_kind kind)
{
	return (struct weir_select_case){
		scene.queues[queue], kind, kind == WEIR_SELECT_ENQUEUE ? values_offer(&scene.values, me) : NULL, WEIR_INTERNAL};
}

static void set_cases(size_t me, char what, struct weir_select_case cases[2])
{
	static const struct {
		int queue;
		enum weir_select_kind kind;
	} pairs[9][2] = {
		{{X, WEIR_SELECT_DEQUEUE}, {X, WEIR_SELECT_DEQUEUE}}, {{X, WEIR_SELECT_DEQUEUE}, {Y, WEIR_SELECT_DEQUEUE}},
		{{X, WEIR_SELECT_ENQUEUE}, {Y, WEIR_SELECT_ENQUEUE}}, {{X, WEIR_SELECT_ENQUEUE}, {Y, WEIR_SELECT_DEQUEUE}},
		{{Y, WEIR_SELECT_DEQUEUE}, {X, WEIR_SELECT_DEQUEUE}}, {{Y, WEIR_SELECT_ENQUEUE}, {X, WEIR_SELECT_DEQUEUE}},
		{{X, WEIR_SELECT_DEQUEUE}, {X, WEIR_SELECT_DEQUEUE}}, {{X, WEIR_SELECT_ENQUEUE}, {X, WEIR_SELECT_DEQUEUE}},
		{{Y, WEIR_SELECT_DEQUEUE}, {Y, WEIR_SELECT_DEQUEUE}},
	};

	for (int i = 0; i < 2; i++)
		cases[i] = one_case(me, pairs[what - '0'][i].queue, pairs[what - '0'][i].kind);
}

static void select_waiting(size_t me, char what)
{
	struct weir_select_case cases[2];
	size_t chosen = 99;
	weir_error error = {WEIR_OK, ""};
	enum weir_status status;

	set_cases(me, what, cases);
	status = weir_select(cases, 2, scene.scope->deadline, scene.token, &chosen, &error);
	if (status == WEIR_OK)
		check_chosen(cases, chosen, &error);
	else
		check_failure(status);
}

static struct started *next_started(size_t me)
{
	struct started *started = scene.started[me];

	while (started->used)
		started++;
	started->used = 1;
	started->me = me;
	return started;
}

static void select_ended(void *context, enum weir_status status, const weir_error *error,
                         struct weir_select_case cases[], size_t chosen)
{
	struct started *started = context;

	weir_model_assert(started->ended++ == 0 && cases == started->cases);
	if (status == WEIR_OK)
		check_chosen(cases, chosen, error);
	else
		weir_model_assert(status == WEIR_CANCELLED && (scene.finishing || calls_of("k") != 0));
}

static void start_select(size_t me, char what)
{
	struct started *started = next_started(me);

	started->is_select = 1;
	set_cases(me, what, started->cases);
	weir_model_assert(weir_select_start(started->cases, 2, select_ended, started, &started->op, NULL) == WEIR_OK);
}

static void dequeue_ended(void *context, enum weir_status status, const weir_error *error, void **items, size_t done)
{
	struct started *started = context;

	(void)error;
	weir_model_assert(started->ended++ == 0);
	for (size_t i = 0; status == WEIR_OK && i < done; i++)
		have(items[i]);
}

static void start_dequeue(size_t me, int queue, size_t count)
{
	struct started *started = next_started(me);

	started->queue = queue;
	weir_model_assert(weir_queue_start(scene.queues[queue], WEIR_QUEUE_OP_DEQUEUE_MANY, started->items, count,
	                                   dequeue_ended, started, &started->op, NULL) == WEIR_OK);
}

static void select_now(size_t me, char what)
{
	if (scene.start_next[me])
		start_select(me, what);
	else
		select_waiting(me, what);
	scene.start_next[me] = 0;
}

static void close_it(int queue, enum weir_close_mode mode)
{
	weir_error cause = {WEIR_ABORTED, "the closer"};

	(void)weir_queue_close(scene.queues[queue], mode, &cause);
}

#define LETTERS(LETTER) \
	LETTER('e', "enqueue X", put(me, X)) \
	LETTER('d', "dequeue X", take(X)) \
	LETTER('D', "dequeue X, waiting", take_waiting()) \
	LETTER('c', "close X, drain", close_it(X, WEIR_CLOSE_DRAIN)) \
	LETTER('C', "close X, cancel", close_it(X, WEIR_CLOSE_CANCEL)) \
	LETTER('t', "enqueue Y", put(me, Y)) \
	LETTER('g', "dequeue Y", take(Y)) \
	LETTER('y', "close Y, drain", close_it(Y, WEIR_CLOSE_DRAIN)) \
	LETTER('a', "start a dequeue of X", start_dequeue(me, X, 1)) \
	LETTER('b', "start a dequeue of Y", start_dequeue(me, Y, 1)) \
	LETTER('B', "start a dequeue of 2 of X", start_dequeue(me, X, 2)) \
	LETTER('1', "select: dequeue X or dequeue Y", select_now(me, '1')) \
	LETTER('2', "select: enqueue X or enqueue Y", select_now(me, '2')) \
	LETTER('3', "select: enqueue X or dequeue Y", select_now(me, '3')) \
	LETTER('4', "select: dequeue Y or dequeue X", select_now(me, '4')) \
	LETTER('5', "select: enqueue Y or dequeue X", select_now(me, '5')) \
	LETTER('6', "select: dequeue X or dequeue X", select_now(me, '6')) \
	LETTER('7', "select: enqueue X or dequeue X", select_now(me, '7')) \
	LETTER('8', "select: dequeue Y or dequeue Y", select_now(me, '8')) \
	LETTER('s', "the next select is started, and holds no thread", scene.start_next[me] = 1) \
	LETTER('k', "cancel the first operation that `start` started", \
	       weir_pending_cancel(scene.started[ROWS - 1][0].op, NULL)) \
	LETTER('F', "fire the token of waiting calls", (void)weir_cancel_fire(scene.token, NULL))

static void call(size_t me, char what)
{
	switch (what) {
		LETTERS(LETTER_CASE)
	default: weir_model_assert(!"a letter of the table");
	}
}

/* -- an execution ------------------------------------------------------------------------------ */

static void thread(void *context, size_t me)
{
	(void)context;
	scope_calls(me, scene.scope->calls[me], call);
}

static void setup(void *context)
{
	struct weir_queue_options options = queue_scope_options(scene.scope, scene.order, drop);

	(void)context;
	for (int i = 0; i < 2; i++)
		weir_model_assert(weir_queue_create(&options, &scene.queues[i], NULL) == WEIR_OK);
	if (calls_of("F") != 0)
		weir_model_assert(weir_cancel_create(NULL, &scene.token, NULL) == WEIR_OK);
	scope_calls(ROWS - 1, scene.scope->start, call);
}

static int can_proceed(const weir_queue *queue, enum weir_select_kind kind)
{
	size_t size = weir_queue_size_approx(queue);

	if (kind == WEIR_SELECT_ENQUEUE)
		return size < scene.scope->capacity || (queue == scene.queues[X] && calls_of("C") != 0);
	return size != 0 || weir_queue_closed(queue);
}

/* No call is left waiting for an item that is stored. */
static void check_waiting(const struct started *started)
{
	if (!started->used || started->ended)
		return;
	if (!started->is_select)
		weir_model_assert(!can_proceed(scene.queues[started->queue], WEIR_SELECT_DEQUEUE));
	for (int i = 0; started->is_select && i < 2; i++)
		weir_model_assert(!can_proceed(started->cases[i].queue, started->cases[i].kind));
}

static void finish(void *context)
{
	(void)context;
	for (size_t i = 0; i < ROWS * STARTED; i++)
		check_waiting(&scene.started[i / STARTED][i % STARTED]);
	scene.finishing = 1;
	for (int i = 0; i < 2; i++)
		(void)weir_queue_close(scene.queues[i], WEIR_CLOSE_CANCEL, NULL);
	for (size_t i = 0; i < ROWS * STARTED; i++) {
		struct started *started = &scene.started[i / STARTED][i % STARTED];

		weir_model_assert(!started->used || started->ended == 1);
		weir_pending_release(started->op);
	}
	for (int i = 0; i < 2; i++)
		weir_model_assert(weir_queue_destroy(scene.queues[i], NULL) == WEIR_OK);
	weir_cancel_release(scene.token);
	values_check(&scene.values);
	weir_model_assert(weir_reclaim_flush(0) == WEIR_OK);
}

/* -- all --------------------------------------------------------------------------------------- */

static void set_scene(const struct queue_scope *scope, enum weir_queue_order order)
{
	scene = (struct scene){.scope = scope, .order = order};
}

static const struct queue_check check = {
	"select",
	scopes,
	sizeof(scopes) / sizeof(scopes[0]),
	set_scene,
	{.state = &scene, .state_size = sizeof(scene), .setup = setup, .thread = thread, .finish = finish}};

int main(int argc, char **argv)
{
	static const struct scope_letter letters[] = {LETTERS(LETTER_ROW){0, NULL}};
	int bad;

	scope_letters(argc, argv, letters);
	scope_arguments(argc, argv);
	bad = queue_check_all(&check, WEIR_QUEUE_FIFO, 1500);
	scope_symmetric(1);
	bad |= queue_check_all(&check, WEIR_QUEUE_FIFO, 1600);
	scope_symmetric(0);
	return bad | queue_check_all(&check, WEIR_QUEUE_SHUFFLE, 500) | queue_check_progress(&check, WEIR_QUEUE_FIFO, 30);
}
