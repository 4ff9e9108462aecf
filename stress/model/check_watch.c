/*
 * check_watch.c - threads that wait for newer versions of a variable, or watch it.
 *
 * A scope gives each thread a row of calls, a letter each; LETTERS says what each letter does.
 * `start` is such a row, which runs before the threads begin.
 *
 * Required of every execution: if no commit writes the watched variable, some order of the calls
 * explains which versions the assigns made and which versions the waits and takes saw, including
 * "none newer" (judged.h). Waiters wake, with a newer version. An operation that was started
 * completes once. At the end the descriptor is readable exactly if there is a version that no call
 * took. Nothing leaks, and the variable can be destroyed.
 */
#include <string.h>
#include <weir/txn.h>
#include <weir/watch.h>

#include "model/eventfd.h"
#include "model/judged.h"
#include "model/variable_scopes.h"
#include "reclaim/section.h"

enum { THREADS = 3, BEFORE = THREADS, ROWS = THREADS + 1 };

static const struct scope {
	const char *name;
	const char *start;
	const char *calls[THREADS];
	uint64_t executions; /* in the short form */
	int waits;           /* a thread may be left asleep when another is stopped */
} scopes[] = {
	{"watch_wait_beside_assign", "", {"W", "a"}, 20000, 1},
	{"watch_2_waits_of_1_beside_2_assigns", "", {"WW", "aa"}, 10000, 1},
	{"watch_2_waits_beside_assign", "", {"W", "W", "a"}, 10000, 1},
	{"watch_wait_beside_commit", "", {"W", "c"}, 10000, 1},
	{"watch_wait_beside_2_assigns_of_2", "", {"W", "a", "a"}, 10000, 1},
	{"watch_wait_beside_mark_and_assign", "", {"W", "m", "a"}, 5000, 1},
	{"watch_wait_with_token_beside_assign_and_fire", "", {"T", "a", "F"}, 5000, 1},
	{"watch_wait_with_deadline_beside_assign", "", {"d", "a"}, 5000, 1},
	{"watch_started_wait_beside_assign", "", {"s", "a"}, 20000, 0},
	{"watch_started_wait_beside_assign_and_cancel", "s", {"k", "a"}, 20000, 0},
	{"watch_started_wait_beside_2_assigns", "s", {"a", "a"}, 10000, 0},
	{"watch_begun_beside_assign", "", {"w", "a"}, 10000, 0},
	{"watch_taken_beside_assign", "wa", {"g", "a"}, 20000, 0},
	{"watch_store_buffering_each_assigns_and_one_takes", "w", {"ag", "a"}, 10000, 0},
	{"watch_iriw_2_assigns_taken_and_waited_for", "w", {"a", "a", "gW"}, 5000, 1},
	{"watch_beside_2_assigns", "w", {"a", "a"}, 10000, 0},
	{"watch_polled_beside_assign", "w", {"p", "a"}, 10000, 1},
	{"watch_polled_beside_commit", "w", {"p", "c"}, 10000, 1},
	{"watch_ended_beside_assign", "w", {"D", "a"}, 10000, 0},
	{"watch_ended_beside_assign_and_collection", "w", {"Dn", "a"}, 5000, 0},
};

static struct scene {
	const struct scope *scope;
	weir_var *x, *y;
	weir_cancel *token;
	weir_pending *op;
	weir_watch *watch;
	uint64_t seen[ROWS], taken, last; /* last: the number of x when everything is written */
	int started, ended;
} scene;

static void assign(size_t me)
{
	weir_tensor *tensor = number_of_size((int64_t)me, SMALL_VALUES);
	weir_read published;

	weir_model_call_begins(0);
	weir_model_assert(weir_var_assign(scene.x, tensor, WEIR_NO_DEADLINE, &published, NULL) == WEIR_OK);
	weir_model_call_ends(0);
	judged_write(0, published.version, me);
	weir_read_release(&published);
	weir_tensor_release(tensor);
}

static enum weir_status write_both(void *context, weir_txn *txn, weir_error *error)
{
	weir_tensor *value = number_of_size(7, SMALL_VALUES);

	(void)context;
	weir_model_assert(weir_txn_assign(txn, scene.x, value, error) == WEIR_OK);
	weir_model_assert(weir_txn_assign(txn, scene.y, value, error) == WEIR_OK);
	weir_tensor_release(value);
	return WEIR_OK;
}

static enum weir_status read_x_write_y(void *context, weir_txn *txn, weir_error *error)
{
	weir_tensor *value;
	enum weir_status status = weir_txn_read(txn, scene.x, &value, error);

	(void)context;
	return status == WEIR_OK ? weir_txn_assign(txn, scene.y, value, error) : status;
}

static void transact(weir_txn_fn *fn)
{
	weir_model_assert(weir_txn_run(NULL, fn, NULL, WEIR_NO_DEADLINE, NULL) == WEIR_OK);
}

static void wait(size_t me, uint64_t deadline_ns, weir_cancel *token)
{
	weir_read read;
	enum weir_status status;

	weir_model_call_begins(1);
	status = weir_var_wait(scene.x, scene.seen[me], deadline_ns, token, &read, NULL);
	weir_model_call_ends(1);
	if (status == WEIR_OK) {
		judged_read(0, read.version, (uint64_t)value_of(&read));
		weir_model_assert(read.version > scene.seen[me]);
		(void)value_of(&read);
		scene.seen[me] = read.version;
		weir_read_release(&read);
	} else {
		weir_model_assert(status == (token != NULL ? WEIR_CANCELLED : WEIR_DEADLINE_EXCEEDED) &&
		                  (token != NULL || deadline_ns != WEIR_NO_DEADLINE));
	}
}

static void ended(void *context, enum weir_status status, const weir_error *error, weir_read *read)
{
	(void)context, (void)error;
	scene.ended++;
	weir_model_assert(status == WEIR_OK || status == WEIR_CANCELLED);
	weir_model_assert((status == WEIR_OK) == (read->tensor != NULL));
	if (status == WEIR_OK) {
		weir_model_assert(read->version > 1);
		(void)value_of(read);
	}
	weir_read_release(read);
}

static void take(int certain)
{
	weir_read read;
	enum weir_status status;

	weir_model_call_begins(2);
	status = weir_watch_try_take(scene.watch, &read);
	weir_model_call_ends(2);
	judged_read(0, status == WEIR_OK ? read.version : scene.taken,
	            status == WEIR_OK ? (uint64_t)value_of(&read) : HISTORY_NONE);
	weir_model_assert(status == WEIR_OK || (status == WEIR_WOULD_BLOCK && !certain));
	if (status != WEIR_OK)
		return;
	weir_model_assert(read.version > scene.taken);
	scene.taken = read.version;
	weir_read_release(&read);
}

static void end_watch(void)
{
	weir_watch_destroy(scene.watch, NULL);
	scene.watch = NULL;
}

static void wait_for_newer(size_t me)
{
	if (scene.seen[me] < scene.last) /* The wait before this one may have seen the last version. */
		wait(me, WEIR_NO_DEADLINE, NULL);
}

static void start_wait(void)
{
	scene.started++;
	weir_model_assert(weir_var_start_wait(scene.x, 1, ended, NULL, &scene.op, NULL) == WEIR_OK);
}

static void cancel(void)
{
	weir_pending_cancel(scene.op, NULL);
	weir_pending_release(scene.op);
	scene.op = NULL;
}

static void watch(void)
{
	scene.taken = 1;
	weir_model_assert(weir_watch_create(scene.x, 1, &scene.watch, NULL) == WEIR_OK);
}

static void poll_and_take(void)
{
	weiri_model_poll(weir_watch_fd(scene.watch));
	take(1);
}

static void wrong_take(void)
{
	weir_model_call_begins(2);
	weir_model_call_ends(2);
	judged_read(0, scene.taken, HISTORY_NONE);
}

static void new_era_and_collection(void)
{
	weiri_era_begin();
	(void)weir_reclaim_flush(0);
}

#define LETTERS(LETTER) \
	LETTER('a', "assign", assign(me)) \
	LETTER('c', "commit to it and another variable", transact(write_both)) \
	LETTER('m', "a transaction that only reads it", transact(read_x_write_y)) \
	LETTER('W', "wait for a version newer than the one seen last", wait_for_newer(me)) \
	LETTER('T', "wait for a newer version until the token fires", wait(me, WEIR_NO_DEADLINE, scene.token)) \
	LETTER('d', "wait for a newer version until a deadline", wait(me, 1000, NULL)) \
	LETTER('F', "fire the token", (void)weir_cancel_fire(scene.token, NULL)) \
	LETTER('s', "start a wait for version 2", start_wait()) \
	LETTER('k', "cancel what was started, and release it", cancel()) \
	LETTER('w', "watch the variable", watch()) \
	LETTER('p', "poll the watch, then take: there is a version", poll_and_take()) \
	LETTER('g', "take a version, if there is one", take(0)) \
	LETTER('D', "end the watch", end_watch()) \
	LETTER('n', "a new era begins, and what is retired is collected", new_era_and_collection()) \
	LETTER('z', "a planted fault: a take that returns \"none newer\" without reading", wrong_take())

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

/* A commit does not report which versions it made. */
static int is_committed_to(void)
{
	for (size_t i = 0; i < THREADS && scene.scope->calls[i] != NULL; i++) {
		if (strchr(scene.scope->calls[i], 'c') != NULL)
			return 1;
	}
	return 0;
}

static void setup(void *context)
{
	(void)context;
	for (size_t i = 0; i < ROWS; i++)
		scene.seen[i] = 1;
	scene.x = variable_of_size(0, SMALL_VALUES);
	scene.y = variable_of_size(0, SMALL_VALUES);
	if (!is_committed_to())
		judged_as_variables();
	weir_model_assert(weir_cancel_create(NULL, &scene.token, NULL) == WEIR_OK);
	scope_calls(BEFORE, scene.scope->start, call);
	setup_ends();
}

static void finish(void *context)
{
	(void)context;
	if (scene.op != NULL)
		call(BEFORE, 'k');
	weir_model_assert(scene.ended == scene.started);
	if (scene.watch != NULL) {
		bool newer = weir_var_version(scene.x) > scene.taken;

		weir_model_assert((weiri_model_eventfd_count(weir_watch_fd(scene.watch)) > 0) == newer);
		weir_model_assert(weir_var_destroy(scene.x, NULL) == WEIR_FAILED_PRECONDITION);
		end_watch();
	}
	weir_model_assert(weir_var_destroy(scene.x, NULL) == WEIR_OK && weir_var_destroy(scene.y, NULL) == WEIR_OK);
	weir_cancel_release(scene.token);
	weir_model_assert(weir_reclaim_flush(0) == WEIR_OK);
}

static struct scope_plan prepare(size_t index)
{
	const struct scope *scope = &scopes[index];
	size_t threads = 0;

	scene = (struct scene){.scope = scope, .last = 1};
	for (; threads < THREADS && scope->calls[threads] != NULL; threads++)
		for (const char *at = scope->calls[threads]; (at = strpbrk(at, "ac")) != NULL; at++)
			scene.last++;
	return (struct scope_plan){.program = {scope->name, threads, &scene, sizeof(scene), setup, thread, finish},
	                           .executions = scope->executions,
	                           .stopped = scope->waits ? 0 : 50};
}

static int check_planted(void)
{
	static const struct scope planted = {"watch_a_wrong_none_newer", "w", {"az", "a"}, 0, 0};
	const struct weir_model_program program = {planted.name, 2, &scene, sizeof(scene), setup, thread, finish};

	scene = (struct scene){.scope = &planted, .last = 3};
	return scope_finds(&program, judged_wrong);
}

int main(int argc, char **argv)
{
	static const struct scope_letter letters[] = {LETTERS(LETTER_ROW){0, NULL}};

	scope_letters(argc, argv, letters);
	scope_arguments(argc, argv);
	return scope_all(prepare, sizeof(scopes) / sizeof(scopes[0])) | check_planted();
}
