/*
 * check_queue.c - queues whose calls wait, close and cancel. What lies inside is the subject of check_store.c.
 *
 * A scope gives each thread a row of calls, a letter each; `start` is such a row, made before the threads begin:
 *
 *   t  try_enqueue     g  try_dequeue     c  close, drain     x  close, cancel
 *   G  try_dequeue, which gives what the operation that `start` began gave back, if it has, and nobody else dequeues
 *   a  start a dequeue     A  start an enqueue     B  start a dequeue of 2     k  cancel the operation that `start` began, with a cause
 *   s  statistics     q  closed?     r  give back the handle of the operation that `start` began     f  free what was retired
 *   z  a planted fault: a dequeue that says "empty" without a look
 *   e  enqueue, waits     d  dequeue, waits     b  dequeue 2, waits     u  dequeue up to 2, waits     F  fire the token of those that wait
 *
 * Asked of every execution: of scopes in which nothing is started and no batch waits, some order of the calls explains all answers
 * (judged.h), but for those that a deadline or a token ended; what was accepted comes out once, or goes to drop(); in order, from a FIFO queue (but for batches that give
 * back); nobody sleeps for ever (all threads asleep is a failure of its own), and no operation that was started is left waiting for
 * what is there; each completes once; whoever is told that the queue is closed, or that the operation was cancelled, is told why; no enqueue
 * that begins after that goes in; whoever is told that the queue is drained is right.
 */
#include <string.h>
#include <weir/cancel.h>
#include <weir/queue.h>
#include <weir/reclaim.h>
#include <weir/time.h>

#include "base/atomic.h"
#include "model/judged.h"
#include "model/queue_scopes.h"

/* An operation that holds no thread. */
struct started {
	weir_queue_op *op;
	int used, enqueues, ended; /* ended: times */
	_Atomic(int) over;         /* published by the completion */
	enum weir_status status;
	struct value *value; /* of an enqueue */
	void *items[2];
};

static const struct queue_scope scopes[] = {
	/* Operations that were started: nobody sleeps, so each thread may be stopped, too. */
	{"n1_dequeue_waits_2_try_enqueues", 1, "a", {"t", "t"}, 0, 0},
	{"n2_2_dequeues_wait_2_try_enqueues", 2, "aa", {"t", "t"}, 0, 0},
	{"n1_dequeue_waits_try_enqueue_cancel", 1, "a", {"t", "k"}, 0, 0},
	{"n1_dequeue_waits_2_cancels", 1, "a", {"k", "k"}, 0, 0},
	{"n1_dequeue_waits_try_enqueue_close", 1, "a", {"t", "c"}, 0, 0},
	{"n1_dequeue_waits_2_closes", 1, "a", {"c", "c"}, 0, 0},
	{"n1_dequeue_waits_close_cancel", 1, "a", {"c", "k"}, 0, 0},
	{"n1_enqueue_waits_try_dequeue_try_dequeue", 1, "tA", {"g", "g"}, 0, 0},
	{"n1_enqueue_waits_try_dequeue_close", 1, "tA", {"g", "c"}, 0, 0},
	{"n1_enqueue_waits_try_dequeue_close_cancel", 1, "tA", {"g", "x"}, 0, 0},
	{"n1_enqueue_waits_cancel_close_cancel", 1, "tA", {"k", "x"}, 0, 0},
	{"n1_enqueue_waits_closed_2_try_dequeues", 1, "tAc", {"g", "g"}, 0, 0},
	{"n1_batch_waits_2_try_enqueues", 1, "B", {"t", "t"}, 0, 0},
	{"n1_batch_waits_try_enqueue_cancel", 1, "B", {"t", "k"}, 0, 0},
	{"n1_batch_with_1_of_2_cancel_try_dequeue", 1, "Bt", {"k", "g"}, 0, 0},
	{"n1_batch_with_1_of_2_close_try_dequeue", 1, "Bt", {"c", "g"}, 0, 0},
	{"n2_batch_with_1_of_2_cancel_then_try_dequeue_beside_try_enqueue", 2, "Bt", {"kG", "t"}, 0, 0},
	{"n2_batch_with_1_of_2_cancel_beside_try_dequeue_and_try_enqueue", 2, "Bt", {"k", "G", "t"}, 0, 0},
	{"n2_batch_with_1_of_2_cancel_then_try_dequeue_beside_both", 2, "Bt", {"kg", "tg"}, 0, 0},
	{"n1_batch_waits_try_enqueue_then_cancel_beside_statistics", 1, "tgB", {"tk", "s"}, 0, 0},
	{"n1_batch_with_1_of_2_dequeue_waits_close", 1, "Bta", {"c", "k"}, 0, 0},
	{"n1_batch_with_1_of_2_batch_waits_cancel_try_enqueue", 1, "BtB", {"k", "t"}, 0, 0},
	{"n1_start_dequeue_try_enqueue", 1, "", {"a", "t"}, 0, 0},
	{"n1_start_dequeue_close", 1, "", {"a", "c"}, 0, 0},
	{"n1_start_enqueue_try_dequeue", 1, "t", {"A", "g"}, 0, 0},
	{"n1_start_enqueue_close", 1, "t", {"A", "c"}, 0, 0},
	{"n1_start_enqueue_close_cancel", 1, "t", {"A", "x"}, 0, 0},
	{"n1_start_enqueue_close_2_try_dequeues", 1, "t", {"A", "cgg"}, 0, 0},
	{"n2_batch_waits_2_try_enqueues_flush_handle_given_back", 2, "B", {"ttf", "r"}, 0, 0},
	{"n1_fair_enqueue_waits_start_enqueue_when_closed", 1, "tA", {"qA", "c"}, FAIR, 0},
	{"n1_fair_start_dequeue_try_enqueue", 1, "", {"a", "t"}, FAIR, 0},
	{"n1_fair_dequeue_waits_try_enqueue_try_dequeue", 1, "a", {"t", "g"}, FAIR, 0},
	{"n2_fair_dequeue_waits_start_dequeue_try_enqueue", 2, "a", {"a", "t"}, FAIR, 0},
	{"n1_fair_enqueue_waits_start_enqueue_close", 1, "tA", {"A", "c"}, FAIR, 0},
	{"n1_fair_start_enqueue_close_cancel", 1, "t", {"A", "x"}, FAIR, 0},
	/* What each side looks at, the other has just changed. */
	{"n2_full_beside_empty_1_producer_x3_1_consumer_x2", 2, "", {"ttt", "gg"}, 0, 0},
	{"n2_full_beside_empty_producers_x2_and_x1_1_consumer_x2", 2, "", {"tt", "t", "gg"}, 0, 0},
	{"n2_store_buffering_each_puts_and_takes", 2, "", {"tg", "tg"}, 0, 0},
	{"n2_iriw_2_puts_seen_by_2_who_take", 2, "", {"t", "t", "g", "g"}, 0, 0},
	/* Threads that wait. */
	{"n1_1_enqueue_1_dequeue", 1, "", {"e", "d"}, 0, WEIR_NO_DEADLINE},
	{"n1_2_enqueues_2_dequeues_of_2_threads", 1, "", {"ee", "dd"}, 0, WEIR_NO_DEADLINE},
	{"n1_2_producers_2_consumers", 1, "", {"e", "e", "d", "d"}, 0, WEIR_NO_DEADLINE},
	{"n1_close_beside_dequeue", 1, "", {"d", "c"}, 0, WEIR_NO_DEADLINE},
	{"n1_close_beside_dequeue_and_enqueue", 1, "", {"d", "c", "e"}, 0, WEIR_NO_DEADLINE},
	{"n1_close_beside_enqueue_and_dequeue", 1, "t", {"e", "c", "d"}, 0, WEIR_NO_DEADLINE},
	{"n1_close_cancel_beside_enqueue", 1, "t", {"e", "x"}, 0, WEIR_NO_DEADLINE},
	{"n1_close_twice_beside_enqueue", 1, "t", {"e", "c", "x"}, 0, WEIR_NO_DEADLINE},
	{"n1_cancel_beside_dequeue", 1, "", {"d", "F"}, 0, WEIR_NO_DEADLINE},
	{"n1_cancel_beside_dequeue_and_try_enqueue", 1, "", {"d", "F", "t"}, 0, WEIR_NO_DEADLINE},
	{"n1_deadline_beside_enqueue", 1, "", {"d", "t"}, 0, 2},
	{"n1_deadline_beside_dequeue", 1, "t", {"e", "g"}, 0, 2},
	{"n1_deadline_and_cancel_beside_dequeue", 1, "", {"d", "F"}, 0, 2},
	{"n1_batch_beside_2_enqueues", 1, "", {"b", "ee"}, 0, WEIR_NO_DEADLINE},
	{"n1_batch_beside_dequeue_1_item_close", 1, "", {"b", "d", "tc"}, 0, WEIR_NO_DEADLINE},
	{"n1_batch_up_to_2_beside_1_item_close", 1, "", {"u", "tc"}, 0, WEIR_NO_DEADLINE},
	{"n1_batch_with_deadline_beside_1_item_and_dequeue", 1, "", {"b", "t", "g"}, 0, 2},
	{"n1_fair_2_dequeues_2_enqueues", 1, "", {"d", "d", "ee"}, FAIR, WEIR_NO_DEADLINE},
};

static struct scene {
	const struct queue_scope *scope;
	enum weir_queue_order order;
	weir_queue *queue;
	weir_cancel *token;
	struct values values;
	int last[ROWS][ROWS];  /* [by][of]: the last place that came out */
	int drained[ROWS + 1]; /* was told; the last: by a completion */
	int closed[ROWS];      /* was told */
	struct started started[ROWS][STARTED];
	int finishing;
} scene;

/* -- what is asked ------------------------------------------------------------------------------------------------------------ */

static int calls_of(const char *letters)
{
	return queue_scope_calls(scene.scope, letters);
}

static struct value *have(void *item)
{
	return values_have(&scene.values, item);
}

/* By a thread, in the order of each producer: unless batches may give back. */
static void have_in_order(size_t me, void *item)
{
	const struct value *value = have(item);

	if (scene.order == WEIR_QUEUE_FIFO && calls_of("bBu") == 0)
		weir_model_assert(value->place > scene.last[me][value->row]);
	scene.last[me][value->row] = value->place;
}

static void have_batch(void *const items[], size_t count)
{
	const struct value *first = have(items[0]), *second = count == 2 ? have(items[1]) : NULL;

	if (scene.order == WEIR_QUEUE_FIFO && second != NULL && first->row == second->row)
		weir_model_assert(first->place < second->place);
}

static void drop(void *context, void *item)
{
	(void)context;
	(void)have(item);
	for (size_t i = 0; i <= ROWS; i++)
		weir_model_assert(!scene.drained[i]);
}

/* One of these calls ended it, and the message says so. Of two that tell a cause at once, neither may be told. */
static int ended_by(const char *letters, const weir_error *error, const char *why)
{
	return calls_of(letters) > 1 || (calls_of(letters) == 1 && strstr(error->message, why) != NULL);
}

/* Of a call or operation that did not succeed: it may fail so here, and says why. */
static void check_failure(enum weir_status status, const weir_error *error, int enqueues, size_t row)
{
	switch (status) {
	case WEIR_OUT_OF_RANGE:
		weir_model_assert(!enqueues && (scene.finishing || ended_by("cx", error, "the closer")));
		scene.drained[row] = !scene.finishing;
		break;
	case WEIR_CANCELLED:
		weir_model_assert(scene.finishing || ended_by("F", error, "the firer") ||
		                  ended_by("k", error, "the canceller") || (enqueues && ended_by("cx", error, "the closer")));
		break;
	default:
		weir_model_assert(status == WEIR_DEADLINE_EXCEEDED && scene.scope->deadline != 0 &&
		                  scene.scope->deadline != WEIR_NO_DEADLINE);
	}
}

static uint64_t number_of(const struct value *value)
{
	return judged_number(value->row, value->place);
}

/* By a deadline, or a token: it is as if it had not been called. */
static int is_ended_early(enum weir_status status)
{
	return status == WEIR_DEADLINE_EXCEEDED || (status == WEIR_CANCELLED && calls_of("F") != 0);
}

/* -- the calls ---------------------------------------------------------------------------------------------------------------- */

static void put(size_t me, int waits)
{
	struct value *value = values_offer(&scene.values, me);
	weir_error error = {WEIR_OK, ""};
	enum weir_status status;

	weir_model_call_begins(0);
	status = waits ? weir_queue_enqueue(scene.queue, value, scene.scope->deadline, scene.token, &error)
	               : weir_queue_try_enqueue(scene.queue, value);
	weir_model_call_ends(0);
	if (!is_ended_early(status))
		judged_put(status, number_of(value), 0);
	scene.values.accepted[me][value->place] = status == WEIR_OK;
	weir_model_assert(status == WEIR_CANCELLED || !scene.closed[me]);
	if (waits && status != WEIR_OK)
		check_failure(status, &error, 1, me);
	else
		weir_model_assert(status == WEIR_OK || status == WEIR_WOULD_BLOCK ||
		                  (status == WEIR_CANCELLED && calls_of("cx") != 0));
}

static void take(size_t me, int waits)
{
	void *item;
	weir_error error = {WEIR_OK, ""};
	enum weir_status status;

	weir_model_call_begins(1);
	status = waits ? weir_queue_dequeue(scene.queue, &item, scene.scope->deadline, scene.token, &error)
	               : weir_queue_try_dequeue(scene.queue, &item);
	weir_model_call_ends(1);
	if (!is_ended_early(status))
		judged_take(status, status == WEIR_OK ? number_of(item) : 0);
	if (status == WEIR_OK)
		have_in_order(me, item);
	else if (waits)
		check_failure(status, &error, 0, me);
	else
		weir_model_assert(status == WEIR_WOULD_BLOCK || (status == WEIR_OUT_OF_RANGE && calls_of("cx") != 0));
	scene.drained[me] |= status == WEIR_OUT_OF_RANGE;
}

/* Ahead of all that is newer. */
static void take_given_back(size_t me)
{
	struct started *batch = &scene.started[ROWS - 1][0];
	int gave_back = weiri_load_acquire(&batch->over) && batch->status == WEIR_CANCELLED;
	enum weir_status status;
	void *item;

	if (!gave_back) {
		take(me, 0);
		return;
	}
	status = weir_queue_try_dequeue(scene.queue, &item);
	weir_model_assert(status == WEIR_OK && item == &scene.values.offered[ROWS - 1][1]);
	have_in_order(me, item);
}

static void take_batch(size_t me, int up_to)
{
	void *items[2] = {NULL, NULL};
	size_t done = 2;
	weir_error error = {WEIR_OK, ""};
	enum weir_status status =
		up_to ? weir_queue_dequeue_up_to(scene.queue, items, 2, scene.scope->deadline, scene.token, &done, &error)
			  : weir_queue_dequeue_many(scene.queue, items, 2, scene.scope->deadline, scene.token, &error);

	if (status == WEIR_OK) {
		have_batch(items, done);
		return;
	}
	weir_model_assert(items[0] == NULL && items[1] == NULL);
	check_failure(status, &error, 0, me);
	scene.drained[me] &= up_to; /* else what it gave back is left */
}

static void ended(void *context, enum weir_status status, const weir_error *error, void **items, size_t done)
{
	struct started *started = context;

	weir_model_assert(started->ended++ == 0);
	/* A close that drains ends no enqueue that waited before. */
	if (started->enqueues && started >= scene.started[ROWS - 1] && calls_of("xk") == 0)
		weir_model_assert(status == WEIR_OK || scene.finishing);
	started->status = status;
	if (status != WEIR_OK)
		check_failure(status, error, started->enqueues, ROWS);
	else if (!started->enqueues)
		have_batch(items, done);
	if (status == WEIR_OUT_OF_RANGE && calls_of("B") != 0)
		scene.drained[ROWS] = 0;
	if (started->enqueues)
		scene.values.accepted[started->value->row][started->value->place] = done == 1;
	weiri_store_release(&started->over, 1);
}

static void start(size_t me, int enqueues, size_t count)
{
	struct started *started = scene.started[me];
	enum weir_queue_op_kind kind = enqueues ? WEIR_QUEUE_OP_ENQUEUE : WEIR_QUEUE_OP_DEQUEUE_MANY;

	while (started->used)
		started++;
	started->used = 1;
	started->enqueues = enqueues;
	if (enqueues)
		started->items[0] = started->value = values_offer(&scene.values, me);
	weir_model_assert(weir_queue_start(scene.queue, kind, started->items, count, ended, started, &started->op, NULL) ==
	                  WEIR_OK);
	weir_model_assert(!enqueues || !scene.closed[me] || (started->ended && started->status == WEIR_CANCELLED));
}

static void close_it(enum weir_close_mode mode)
{
	weir_error cause = {WEIR_ABORTED, "the closer"};

	weir_model_call_begins(2);
	weir_model_assert(weir_queue_close(scene.queue, mode, &cause) == WEIR_OK);
	weir_model_call_ends(2);
	judged_close(mode == WEIR_CLOSE_CANCEL ? HISTORY_CANCELS : 0);
}

static void ask(size_t me)
{
	weir_model_call_begins(3);
	scene.closed[me] = weir_queue_closed(scene.queue);
	weir_model_call_ends(3);
	judged_closed(scene.closed[me]);
}

static void cancel(void)
{
	weir_error cause = {WEIR_ABORTED, "the canceller"};

	weir_queue_op_cancel(scene.started[ROWS - 1][0].op, &cause);
}

/* Of the operation that was started first. */
static void give_handle_back(void)
{
	weir_queue_op *op = scene.started[ROWS - 1][0].op;

	scene.started[ROWS - 1][0].op = NULL;
	weir_queue_op_release(op);
}

static void fire(void)
{
	weir_error cause = {WEIR_ABORTED, "the firer"};

	(void)weir_cancel_fire(scene.token, &cause);
}

/* What came out before the threads began, each `g`, stays out: the count does not go back behind it. */
static void look_at_statistics(void)
{
	struct weir_queue_stats stats = {.struct_size = sizeof(stats)};

	weir_model_assert(weir_queue_get_stats(scene.queue, &stats) == WEIR_OK);
	weir_model_assert(stats.items_in >= stats.items_out && stats.items_out >= (uint64_t)calls_of("g"));
}

static void call(size_t me, char what)
{
	switch (what) {
	case 't': put(me, 0); break;
	case 'e': put(me, 1); break;
	case 'g': take(me, 0); break;
	case 'G': take_given_back(me); break;
	case 'd': take(me, 1); break;
	case 'b': take_batch(me, 0); break;
	case 'u': take_batch(me, 1); break;
	case 'a': start(me, 0, 1); break;
	case 'B': start(me, 0, 2); break;
	case 'A': start(me, 1, 1); break;
	case 'c': close_it(WEIR_CLOSE_DRAIN); break;
	case 'x': close_it(WEIR_CLOSE_CANCEL); break;
	case 'k': cancel(); break;
	case 'z': judged_wrong_take(); break;
	case 's': look_at_statistics(); break;
	case 'q': ask(me); break;
	case 'r': give_handle_back(); break;
	case 'f': (void)weir_reclaim_flush(0); break;
	default: fire();
	}
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
	weir_model_assert(weir_queue_create(&options, &scene.queue, NULL) == WEIR_OK);
	/* What is started ends in another thread's call, and a batch may give back. */
	if (calls_of("aABbu") == 0 && scene.order == WEIR_QUEUE_FIFO)
		judged_as_fifo(scene.scope->capacity);
	else if (calls_of("aABbu") == 0)
		judged_as_shuffle(scene.scope->capacity);
	if (calls_of("F") != 0)
		weir_model_assert(weir_cancel_create(NULL, &scene.token) == WEIR_OK);
	scope_calls(ROWS - 1, scene.scope->start, call);
}

/* Nobody is left waiting for what is there. */
static void check_waiting(const struct started *started)
{
	size_t size = weir_queue_size(scene.queue);
	int closed = weir_queue_closed(scene.queue);

	if (!started->used || started->ended)
		return;
	if (started->enqueues)
		weir_model_assert(size >= scene.scope->capacity && calls_of("x") == 0);
	else
		weir_model_assert(size == 0 && !closed);
}

static void end_started(struct started *started)
{
	if (!started->used)
		return;
	weir_model_assert(started->ended == 1);
	weir_queue_op_release(started->op);
}

static void finish(void *context)
{
	(void)context;
	for (size_t i = 0; i < ROWS * STARTED; i++)
		check_waiting(&scene.started[i / STARTED][i % STARTED]);
	scene.finishing = 1;
	(void)weir_queue_close(scene.queue, WEIR_CLOSE_CANCEL, NULL);
	for (size_t i = 0; i < ROWS * STARTED; i++)
		end_started(&scene.started[i / STARTED][i % STARTED]);
	weir_model_assert(weir_queue_destroy(scene.queue, NULL) == WEIR_OK);
	weir_cancel_release(scene.token);
	values_check(&scene.values);
	weir_model_assert(weir_reclaim_flush(0) == WEIR_OK);
}

static void set_scene(const struct queue_scope *scope, enum weir_queue_order order)
{
	scene = (struct scene){.scope = scope, .order = order};
}

static const struct queue_check check = {
	"queue",
	scopes,
	sizeof(scopes) / sizeof(scopes[0]),
	set_scene,
	{.state = &scene, .state_size = sizeof(scene), .setup = setup, .thread = thread, .finish = finish}};

static int check_planted(void)
{
	static const struct queue_scope planted = {"a_wrong_empty", 2, "", {"tz", "tg"}, 0, 0};
	const struct queue_check wrong = {"queue", &planted, 1, set_scene, check.program};
	char name[SCOPE_NAME];
	struct weir_model_program program = queue_check_program(&wrong, 0, WEIR_QUEUE_FIFO, name);

	return scope_finds(&program, judged_wrong);
}

int main(int argc, char **argv)
{
	int bad;

	scope_arguments(argc, argv);
	bad = check_planted() | queue_check_all(&check, WEIR_QUEUE_FIFO, 2500);
	scope_symmetric(1);
	bad |= queue_check_all(&check, WEIR_QUEUE_FIFO, 1250);
	scope_symmetric(0);
	bad |= queue_check_all(&check, WEIR_QUEUE_SHUFFLE, 1500);
	return bad | queue_check_progress(&check, WEIR_QUEUE_FIFO, 50) |
	       queue_check_progress(&check, WEIR_QUEUE_SHUFFLE, 50);
}
