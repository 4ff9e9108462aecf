/*
 * check_select.c - one of several operations, on two queues, X and Y.
 *
 * A scope gives each thread a row of calls, a letter each; `start` is such a row, made before the threads begin:
 *
 *   t  try_enqueue X     g  try_dequeue X     x  close X, drain     z  close X, cancel     a  start a dequeue of X
 *   T  try_enqueue Y     G  try_dequeue Y     y  close Y, drain                            b  start a dequeue of Y
 *   d  dequeue X, waits  F  fire the token of those that wait
 *
 *   1  select: dequeue X or dequeue Y     2  enqueue X or enqueue Y     3  enqueue X or dequeue Y
 *   4  dequeue Y or dequeue X             5  enqueue Y or dequeue X     6  dequeue X or dequeue X     7  enqueue X or dequeue X
 *   8  dequeue Y or dequeue Y
 *   s  the next call is a select that is started, and holds no thread     k  cancel the first that `start` started
 *
 * Asked of every execution: what was accepted comes out once, what was not never; a select moves the item of one case or of none; it says which;
 * nobody sleeps for ever (all threads asleep is a failure of its own), and no operation that was started is left waiting for what is
 * there; each completes once.
 */
#include <weir/cancel.h>
#include <weir/reclaim.h>
#include <weir/select.h>
#include <weir/time.h>

#include "model/queue_scopes.h"

enum { X = 0, Y = 1 };

/* Holds no thread. */
struct started {
	weir_queue_op *op;
	int used, is_select, ended; /* ended: times */
	struct weir_select_case cases[2];
	int queue; /* of a dequeue */
	void *item;
	size_t me;
};

static const struct queue_scope scopes[] = {
	/* Nobody sleeps, so each thread may be stopped, too. */
	{"n1_dequeues_wait_item_in_each", 1, "s1", {"t", "T"}, 0, 0},
	{"n1_dequeues_wait_item_cancel", 1, "s1", {"t", "k"}, 0, 0},
	{"n1_dequeues_wait_item_close_of_the_other", 1, "s1", {"t", "y"}, 0, 0},
	{"n1_dequeues_wait_2_closes", 1, "s1", {"x", "y"}, 0, 0},
	{"n1_dequeues_wait_2_cancels", 1, "s1", {"k", "k"}, 0, 0},
	{"n1_enqueues_wait_room_in_each", 1, "tTs2", {"g", "G"}, 0, 0},
	{"n1_enqueues_wait_room_close_cancel_of_the_other", 1, "tTs2", {"z", "G"}, 0, 0},
	{"n1_enqueues_wait_room_close_drain_of_the_same", 1, "tTs2", {"x", "g"}, 0, 0},
	{"n1_2_selects_crossed_item_in_each", 1, "s1s4", {"t", "T"}, 0, 0},
	{"n1_2_selects_crossed_1_item_cancel", 1, "s1s4", {"t", "k"}, 0, 0},
	{"n1_2_selects_both_directions", 1, "ts3", {"s5", "G"}, 0, 0},
	{"n1_enqueue_or_dequeue_waits_both_possible_at_once", 1, "ts3", {"g", "T"}, 0, 0},
	{"n1_enqueue_or_dequeue_waits_a_dequeue_waits_too", 1, "Ts5", {"t", "Gb"}, 0, 0},
	{"n1_same_queue_twice_2_items", 1, "s6", {"t", "t"}, 0, 0},
	{"n1_same_queue_both_directions", 1, "", {"s7", "g"}, 0, 0},
	{"n1_start_dequeues_beside_items", 1, "", {"s1", "tT"}, 0, 0},
	{"n1_start_enqueues_beside_room", 1, "tT", {"s2", "gG"}, 0, 0},
	{"n1_start_enqueues_beside_close_cancel", 1, "tT", {"s2", "z"}, 0, 0},
	{"n1_2_starts_crossed", 1, "", {"s1", "s4", "tT"}, 0, 0},
	{"n1_2_starts_both_directions", 1, "t", {"s3", "s5"}, 0, 0},
	{"n1_dequeue_waits_start_select_item", 1, "a", {"s1", "t"}, 0, 0},
	{"n1_fair_dequeue_waits_start_select_items", 1, "a", {"s1", "tT"}, FAIR, 0},
	{"n1_fair_2_selects_crossed_item_in_each", 1, "s1s4", {"t", "T"}, FAIR, 0},
	{"n1_fair_select_behind_a_select_item_in_each", 1, "s1s8", {"t", "T"}, FAIR, 0},
	{"n1_fair_select_behind_a_select_cancel_item", 1, "s1s8", {"k", "T"}, FAIR, 0},
	/* Threads that wait. */
	{"n1_select_beside_item", 1, "", {"1", "t"}, 0, WEIR_NO_DEADLINE},
	{"n1_select_beside_item_in_each", 1, "", {"1", "t", "T"}, 0, WEIR_NO_DEADLINE},
	{"n1_2_selects_crossed_beside_item_in_each", 1, "", {"1", "4", "tT"}, 0, WEIR_NO_DEADLINE},
	{"n1_2_selects_of_enqueues_beside_room_in_each", 1, "tT", {"2", "2", "gG"}, 0, WEIR_NO_DEADLINE},
	{"n1_select_feeds_a_dequeue", 1, "tTs2", {"g", "d"}, 0, WEIR_NO_DEADLINE},
	{"n1_select_and_dequeue_of_2_items", 1, "", {"1", "d", "tT", "t"}, 0, 3},
	{"n1_select_beside_token_and_item", 1, "", {"1", "F", "t"}, 0, WEIR_NO_DEADLINE},
	{"n1_select_with_deadline_beside_item", 1, "", {"1", "T"}, 0, 2},
	{"n1_select_of_enqueues_with_deadline_beside_room", 1, "tT", {"2", "G"}, 0, 2},
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

/* -- what is asked ------------------------------------------------------------------------------------------------------------ */

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

static void check_chosen(const struct weir_select_case cases[], size_t chosen)
{
	const struct weir_select_case *one = &cases[chosen];
	int enqueues = one->kind == WEIR_SELECT_ENQUEUE;

	weir_model_assert(chosen < 2);
	if (one->status == WEIR_OK && enqueues)
		accept_value(one->item);
	else if (one->status == WEIR_OK)
		have(one->item);
	else
		weir_model_assert(one->status == (enqueues ? WEIR_CANCELLED : WEIR_OUT_OF_RANGE) &&
		                  (weir_queue_closed(one->queue) || scene.finishing));
	for (size_t i = 0; i < 2; i++) /* what was not chosen is untouched */
		weir_model_assert(i == chosen || cases[i].kind == WEIR_SELECT_ENQUEUE || cases[i].item == NULL);
}

static void check_failure(enum weir_status status)
{
	weir_model_assert((status == WEIR_CANCELLED && calls_of("Fk") != 0) ||
	                  (status == WEIR_DEADLINE_EXCEEDED && scene.scope->deadline != WEIR_NO_DEADLINE));
}

/* -- the calls ---------------------------------------------------------------------------------------------------------------- */

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
	enum weir_status status;

	set_cases(me, what, cases);
	status = weir_select(cases, 2, scene.scope->deadline, scene.token, &chosen, NULL);
	if (status == WEIR_OK)
		check_chosen(cases, chosen);
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

	(void)error;
	weir_model_assert(started->ended++ == 0 && cases == started->cases);
	if (status == WEIR_OK)
		check_chosen(cases, chosen);
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
	if (status == WEIR_OK && done == 1)
		have(items[0]);
}

static void start_dequeue(size_t me, int queue)
{
	struct started *started = next_started(me);

	started->queue = queue;
	weir_model_assert(weir_queue_start(scene.queues[queue], WEIR_QUEUE_OP_DEQUEUE_MANY, &started->item, 1,
	                                   dequeue_ended, started, &started->op, NULL) == WEIR_OK);
}

static void call(size_t me, char what)
{
	switch (what) {
	case 't': put(me, X); break;
	case 'T': put(me, Y); break;
	case 'g': take(X); break;
	case 'G': take(Y); break;
	case 'd': take_waiting(); break;
	case 'a': start_dequeue(me, X); break;
	case 'b': start_dequeue(me, Y); break;
	case 'x': (void)weir_queue_close(scene.queues[X], WEIR_CLOSE_DRAIN, NULL); break;
	case 'y': (void)weir_queue_close(scene.queues[Y], WEIR_CLOSE_DRAIN, NULL); break;
	case 'z': (void)weir_queue_close(scene.queues[X], WEIR_CLOSE_CANCEL, NULL); break;
	case 'k': weir_queue_op_cancel(scene.started[ROWS - 1][0].op, NULL); break;
	case 'F': (void)weir_cancel_fire(scene.token, NULL); break;
	case 's': scene.start_next[me] = 1; return;
	default:
		if (scene.start_next[me])
			start_select(me, what);
		else
			select_waiting(me, what);
	}
	scene.start_next[me] = 0;
}

/* -- an execution ------------------------------------------------------------------------------------------------------------- */

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
		weir_model_assert(weir_cancel_create(NULL, &scene.token) == WEIR_OK);
	scope_calls(ROWS - 1, scene.scope->start, call);
}

static int can_proceed(const weir_queue *queue, enum weir_select_kind kind)
{
	size_t size = weir_queue_size(queue);

	if (kind == WEIR_SELECT_ENQUEUE)
		return size < scene.scope->capacity || (queue == scene.queues[X] && calls_of("z") != 0);
	return size != 0 || weir_queue_closed(queue);
}

/* Nobody is left waiting for what is there. */
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
		weir_queue_op_release(started->op);
	}
	for (int i = 0; i < 2; i++)
		weir_model_assert(weir_queue_destroy(scene.queues[i], NULL) == WEIR_OK);
	weir_cancel_release(scene.token);
	values_check(&scene.values);
	weir_model_assert(weir_reclaim_flush(0) == WEIR_OK);
}

/* -- all ---------------------------------------------------------------------------------------------------------------------- */

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
	int bad;

	scope_arguments(argc, argv);
	bad = queue_check_all(&check, WEIR_QUEUE_FIFO, 1500);
	scope_symmetric(1);
	bad |= queue_check_all(&check, WEIR_QUEUE_FIFO, 400);
	scope_symmetric(0);
	return bad | queue_check_all(&check, WEIR_QUEUE_SHUFFLE, 500) | queue_check_progress(&check, WEIR_QUEUE_FIFO, 30);
}
