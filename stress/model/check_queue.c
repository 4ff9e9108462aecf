/*
 * check_queue.c - queues whose calls wait, close and cancel. The stores are the subject of
 * check_store.c.
 *
 * A scope gives each thread a row of calls, a letter each; LETTERS says what each letter does.
 * `start` is such a row, which runs before the threads begin.
 *
 * Required of every execution:
 * - If a scope starts no operation and has no batch, some order of the calls explains all results
 *   (judged.h). Calls that a deadline or a token ended are left out.
 * - Each item that was accepted is dequeued once or given to drop(). In a FIFO queue each
 *   producer's items leave in order, unless batches may return items.
 * - No thread sleeps permanently (the checker reports a failure if all threads sleep). No started
 *   operation is left waiting for an item that is stored. Each operation completes once.
 * - A call that returns "closed", or that was cancelled, gives the reason. After a "closed" result
 *   no enqueue that begins later succeeds. After "drained" nothing is left.
 */
#include <string.h>
#include <weir/cancel.h>
#include <weir/queue.h>
#include <weir/reclaim.h>
#include <weir/time.h>

#include "base/atomic.h"
#include "model/judged.h"
#include "model/queue_scopes.h"

/* An asynchronous operation. */
struct started {
	weir_pending *op;
	int used, enqueues, ended; /* ended: how many times */
	_Atomic(int) over;         /* published by the completion */
	enum weir_status status;
	struct value *value; /* of an enqueue */
	void *items[2];
};

static const struct queue_scope scopes[] = {
	/* Asynchronous operations: no thread sleeps, so each thread may be stopped, too. */
	{"n1_dequeue_waits_2_try_enqueues", 1, "a", {"e", "e"}, 0, 0},
	{"n2_2_dequeues_wait_2_try_enqueues", 2, "aa", {"e", "e"}, 0, 0},
	{"n1_dequeue_waits_try_enqueue_cancel", 1, "a", {"e", "k"}, 0, 0},
	{"n1_dequeue_waits_2_cancels", 1, "a", {"k", "k"}, 0, 0},
	{"n1_dequeue_waits_try_enqueue_close", 1, "a", {"e", "c"}, 0, 0},
	{"n1_dequeue_waits_2_closes", 1, "a", {"c", "c"}, 0, 0},
	{"n1_dequeue_waits_close_cancel", 1, "a", {"c", "k"}, 0, 0},
	{"n1_enqueue_waits_try_dequeue_try_dequeue", 1, "eA", {"d", "d"}, 0, 0},
	{"n1_enqueue_waits_try_dequeue_close", 1, "eA", {"d", "c"}, 0, 0},
	{"n1_enqueue_waits_try_dequeue_close_cancel", 1, "eA", {"d", "C"}, 0, 0},
	{"n1_enqueue_waits_cancel_close_cancel", 1, "eA", {"k", "C"}, 0, 0},
	{"n1_enqueue_waits_closed_2_try_dequeues", 1, "eAc", {"d", "d"}, 0, 0},
	{"n1_batch_waits_2_try_enqueues", 1, "B", {"e", "e"}, 0, 0},
	{"n1_batch_waits_try_enqueue_cancel", 1, "B", {"e", "k"}, 0, 0},
	{"n1_batch_with_1_of_2_cancel_try_dequeue", 1, "Be", {"k", "d"}, 0, 0},
	{"n1_batch_with_1_of_2_close_try_dequeue", 1, "Be", {"c", "d"}, 0, 0},
	{"n2_batch_with_1_of_2_cancel_then_try_dequeue_beside_try_enqueue", 2, "Be", {"kG", "e"}, 0, 0},
	{"n2_batch_with_1_of_2_cancel_beside_try_dequeue_and_try_enqueue", 2, "Be", {"k", "G", "e"}, 0, 0},
	{"n2_batch_with_1_of_2_cancel_then_try_dequeue_beside_both", 2, "Be", {"kd", "ed"}, 0, 0},
	{"n1_batch_waits_try_enqueue_then_cancel_beside_statistics", 1, "edB", {"ek", "s"}, 0, 0},
	{"n1_batch_with_1_of_2_dequeue_waits_close", 1, "Bea", {"c", "k"}, 0, 0},
	{"n1_batch_with_1_of_2_batch_waits_cancel_try_enqueue", 1, "BeB", {"k", "e"}, 0, 0},
	{"n1_start_dequeue_try_enqueue", 1, "", {"a", "e"}, 0, 0},
	{"n1_start_dequeue_close", 1, "", {"a", "c"}, 0, 0},
	{"n1_start_enqueue_try_dequeue", 1, "e", {"A", "d"}, 0, 0},
	{"n1_start_enqueue_close", 1, "e", {"A", "c"}, 0, 0},
	{"n1_start_enqueue_close_cancel", 1, "e", {"A", "C"}, 0, 0},
	{"n1_start_enqueue_close_2_try_dequeues", 1, "e", {"A", "cdd"}, 0, 0},
	{"n2_batch_waits_2_try_enqueues_flush_handle_given_back", 2, "B", {"eef", "r"}, 0, 0},
	{"n1_fair_enqueue_waits_start_enqueue_when_closed", 1, "eA", {"qA", "c"}, FAIR, 0},
	{"n1_fair_start_dequeue_try_enqueue", 1, "", {"a", "e"}, FAIR, 0},
	{"n1_fair_dequeue_waits_try_enqueue_try_dequeue", 1, "a", {"e", "d"}, FAIR, 0},
	{"n2_fair_dequeue_waits_start_dequeue_try_enqueue", 2, "a", {"a", "e"}, FAIR, 0},
	{"n1_fair_enqueue_waits_start_enqueue_close", 1, "eA", {"A", "c"}, FAIR, 0},
	{"n1_fair_start_enqueue_close_cancel", 1, "e", {"A", "C"}, FAIR, 0},
	/* Each side reads what the other side has just changed. */
	{"n2_full_beside_empty_1_producer_x3_1_consumer_x2", 2, "", {"eee", "dd"}, 0, 0},
	{"n2_full_beside_empty_producers_x2_and_x1_1_consumer_x2", 2, "", {"ee", "e", "dd"}, 0, 0},
	{"n2_store_buffering_each_puts_and_takes", 2, "", {"ed", "ed"}, 0, 0},
	{"n2_iriw_2_puts_seen_by_2_who_take", 2, "", {"e", "e", "d", "d"}, 0, 0},
	/* Threads that wait. */
	{"n1_1_enqueue_1_dequeue", 1, "", {"E", "D"}, 0, WEIR_NO_DEADLINE},
	{"n1_2_enqueues_2_dequeues_of_2_threads", 1, "", {"EE", "DD"}, 0, WEIR_NO_DEADLINE},
	{"n1_2_producers_2_consumers", 1, "", {"E", "E", "D", "D"}, 0, WEIR_NO_DEADLINE},
	{"n1_close_beside_dequeue", 1, "", {"D", "c"}, 0, WEIR_NO_DEADLINE},
	{"n1_close_beside_dequeue_and_enqueue", 1, "", {"D", "c", "E"}, 0, WEIR_NO_DEADLINE},
	{"n1_close_beside_enqueue_and_dequeue", 1, "e", {"E", "c", "D"}, 0, WEIR_NO_DEADLINE},
	{"n1_close_cancel_beside_enqueue", 1, "e", {"E", "C"}, 0, WEIR_NO_DEADLINE},
	{"n1_close_twice_beside_enqueue", 1, "e", {"E", "c", "C"}, 0, WEIR_NO_DEADLINE},
	{"n1_cancel_beside_dequeue", 1, "", {"D", "F"}, 0, WEIR_NO_DEADLINE},
	{"n1_cancel_beside_dequeue_and_try_enqueue", 1, "", {"D", "F", "e"}, 0, WEIR_NO_DEADLINE},
	{"n1_cancel_beside_dequeue_then_destroy", 1, "", {"X", "F"}, 0, WEIR_NO_DEADLINE},
	{"n1_deadline_beside_enqueue", 1, "", {"D", "e"}, 0, 2},
	{"n1_deadline_beside_dequeue", 1, "e", {"E", "d"}, 0, 2},
	{"n1_deadline_and_cancel_beside_dequeue", 1, "", {"D", "F"}, 0, 2},
	{"n1_batch_beside_2_enqueues", 1, "", {"b", "EE"}, 0, WEIR_NO_DEADLINE},
	{"n1_batch_beside_dequeue_1_item_close", 1, "", {"b", "D", "ec"}, 0, WEIR_NO_DEADLINE},
	{"n1_batch_up_to_2_beside_1_item_close", 1, "", {"u", "ec"}, 0, WEIR_NO_DEADLINE},
	{"n1_batch_with_deadline_beside_1_item_and_dequeue", 1, "", {"b", "e", "d"}, 0, 2},
	{"n1_fair_2_dequeues_2_enqueues", 1, "", {"D", "D", "EE"}, FAIR, WEIR_NO_DEADLINE},
};

static struct scene {
	const struct queue_scope *scope;
	enum weir_queue_order order;
	weir_queue *queue;
	weir_cancel *token;
	struct values values;
	int last[ROWS][ROWS];  /* [by][of]: the last place that was dequeued */
	int drained[ROWS + 1]; /* 1: this thread (the last entry: a completion) got "drained" */
	int closed[ROWS];      /* 1: this thread got "closed" */
	struct started started[ROWS][STARTED];
	int finishing;
} scene;

/* -- requirements ------------------------------------------------------------------------------ */

static int calls_of(const char *letters)
{
	return queue_scope_calls(scene.scope, letters);
}

static struct value *have(void *item)
{
	return values_have(&scene.values, item);
}

/* Checks the order of each producer's values at one thread, unless batches may return items. */
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

/*
 * Returns 1 if one of these calls may have ended the operation and the message names the cause. If
 * several calls give a cause at the same time, the message may name none.
 */
static int ended_by(const char *letters, const weir_error *error, const char *why)
{
	return calls_of(letters) > 1 || (calls_of(letters) == 1 && strstr(error->message, why) != NULL);
}

/*
 * For a call or operation that failed: checks that it may fail in this way here, and gives the
 * reason.
 */
static void check_failure(enum weir_status status, const weir_error *error, int enqueues, size_t row)
{
	switch (status) {
	case WEIR_OUT_OF_RANGE:
		weir_model_assert(!enqueues && (scene.finishing || ended_by("cC", error, "the closer")));
		scene.drained[row] = !scene.finishing;
		break;
	case WEIR_CANCELLED:
		weir_model_assert(scene.finishing || ended_by("F", error, "the firer") ||
		                  ended_by("k", error, "the canceller") || (enqueues && ended_by("cC", error, "the closer")));
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

/* A deadline or a token ended the call, so it counts as if it had not been made. */
static int is_ended_early(enum weir_status status)
{
	return status == WEIR_DEADLINE_EXCEEDED || (status == WEIR_CANCELLED && calls_of("F") != 0);
}

/* -- the calls --------------------------------------------------------------------------------- */

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
		                  (status == WEIR_CANCELLED && calls_of("cC") != 0));
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
		weir_model_assert(status == WEIR_WOULD_BLOCK || (status == WEIR_OUT_OF_RANGE && calls_of("cC") != 0));
	scene.drained[me] |= status == WEIR_OUT_OF_RANGE;
}

/* An item that was returned to the queue leaves before all newer items. */
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

static void take_and_destroy(size_t me)
{
	take(me, 1);
	weir_model_assert(weir_queue_destroy(scene.queue, NULL) == WEIR_OK);
	scene.queue = NULL;
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
	scene.drained[me] &= up_to; /* otherwise the items that it returned are still inside */
}

static void ended(void *context, enum weir_status status, const weir_error *error, void **items, size_t done)
{
	struct started *started = context;

	weir_model_assert(started->ended++ == 0);
	/* A close that drains does not end an enqueue that waited before it. */
	if (started->enqueues && started >= scene.started[ROWS - 1] && calls_of("Ck") == 0)
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

	weir_pending_cancel(scene.started[ROWS - 1][0].op, &cause);
}

/* Only for the operation that was started first. */
static void give_handle_back(void)
{
	weir_pending *op = scene.started[ROWS - 1][0].op;

	scene.started[ROWS - 1][0].op = NULL;
	weir_pending_release(op);
}

static void fire(void)
{
	weir_error cause = {WEIR_ABORTED, "the firer"};

	(void)weir_cancel_fire(scene.token, &cause);
}

/*
 * Each `d` in `start` dequeues an item before the threads begin. The statistics never show fewer
 * dequeued items than that.
 */
static void look_at_statistics(void)
{
	struct weir_queue_stats stats = {WEIR_QUEUE_STATS_INIT};

	weir_model_assert(weir_queue_get_stats(scene.queue, &stats) == WEIR_OK);
	weir_model_assert(stats.items_in >= stats.items_out && stats.items_out >= (uint64_t)calls_of("d"));
}

#define LETTERS(LETTER) \
	LETTER('e', "enqueue", put(me, 0)) \
	LETTER('E', "enqueue, waiting", put(me, 1)) \
	LETTER('d', "dequeue", take(me, 0)) \
	LETTER('D', "dequeue, waiting", take(me, 1)) \
	LETTER( \
		'X', \
		"dequeue, waiting, and then destroy the queue, although the thread that fires the token may still be in its " \
		"call", \
		take_and_destroy(me)) \
	LETTER('G', "dequeue; if the operation of `start` returned its item to the queue, this must be that item", \
	       take_given_back(me)) \
	LETTER('b', "dequeue 2, waiting", take_batch(me, 0)) \
	LETTER('u', "dequeue up to 2, waiting", take_batch(me, 1)) \
	LETTER('a', "start a dequeue", start(me, 0, 1)) \
	LETTER('B', "start a dequeue of 2", start(me, 0, 2)) \
	LETTER('A', "start an enqueue", start(me, 1, 1)) \
	LETTER('k', "cancel the operation that `start` began, with a cause", cancel()) \
	LETTER('r', "release the handle of the operation that `start` began", give_handle_back()) \
	LETTER('c', "close, drain", close_it(WEIR_CLOSE_DRAIN)) \
	LETTER('C', "close, cancel", close_it(WEIR_CLOSE_CANCEL)) \
	LETTER('q', "ask whether the queue is closed", ask(me)) \
	LETTER('s', "read the statistics", look_at_statistics()) \
	LETTER('F', "fire the token of waiting calls", fire()) \
	LETTER('f', "free what was retired", (void)weir_reclaim_flush(0)) \
	LETTER('z', "a planted fault: a dequeue that returns \"empty\" without reading", judged_wrong_take())

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
	weir_model_assert(weir_queue_create(&options, &scene.queue, NULL) == WEIR_OK);
	/*
	 * Scopes with started operations and batches are not judged: a call of another thread completes
	 * a started operation, and a batch may return items.
	 */
	if (calls_of("aABbu") == 0 && scene.order == WEIR_QUEUE_FIFO)
		judged_as_fifo(scene.scope->capacity);
	else if (calls_of("aABbu") == 0)
		judged_as_shuffle(scene.scope->capacity);
	if (calls_of("F") != 0)
		weir_model_assert(weir_cancel_create(NULL, &scene.token, NULL) == WEIR_OK);
	scope_calls(ROWS - 1, scene.scope->start, call);
}

/* No call is left waiting for an item that is stored. */
static void check_waiting(const struct started *started)
{
	size_t size = weir_queue_size_approx(scene.queue);
	int closed = weir_queue_closed(scene.queue);

	if (!started->used || started->ended)
		return;
	if (started->enqueues)
		weir_model_assert(size >= scene.scope->capacity && calls_of("C") == 0);
	else
		weir_model_assert(size == 0 && !closed);
}

static void end_started(struct started *started)
{
	if (!started->used)
		return;
	weir_model_assert(started->ended == 1);
	weir_pending_release(started->op);
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
	static const struct queue_scope planted = {"a_wrong_empty", 2, "", {"ez", "ed"}, 0, 0};
	const struct queue_check wrong = {"queue", &planted, 1, set_scene, check.program};
	char name[SCOPE_NAME];
	struct weir_model_program program = queue_check_program(&wrong, 0, WEIR_QUEUE_FIFO, name);

	return scope_finds(&program, judged_wrong);
}

int main(int argc, char **argv)
{
	static const struct scope_letter letters[] = {LETTERS(LETTER_ROW){0, NULL}};
	int bad;

	scope_letters(argc, argv, letters);
	scope_arguments(argc, argv);
	bad = check_planted() | queue_check_all(&check, WEIR_QUEUE_FIFO, 2500);
	scope_symmetric(1);
	bad |= queue_check_all(&check, WEIR_QUEUE_FIFO, 2000);
	scope_symmetric(0);
	bad |= queue_check_all(&check, WEIR_QUEUE_SHUFFLE, 1500);
	return bad | queue_check_progress(&check, WEIR_QUEUE_FIFO, 50) |
	       queue_check_progress(&check, WEIR_QUEUE_SHUFFLE, 50);
}
