/*
 * check_watch.c - who waits for newer versions of a variable, or watches it.
 *
 * A scope gives each thread a row of calls, a letter each; `start` is such a row, made before the threads begin:
 *
 *   a  assign           c  commit to it and another        m  a transaction that only reads it       e  an era begins, and a collection
 *   W  wait for a version newer than the one seen last     T  the same with a token                  f  fire it
 *   d  with a deadline  s  start a wait for version 2       k  cancel it, let go of it
 *   z  a planted fault: a take that says "none newer" without a look
 *   w  watch it         p  poll the watch, then take: there is one       g  take, if there is one       D  end the watch
 *
 * Asked of every execution: where no commit writes what is watched, some order of the calls explains which versions assigns made, and waits
 * and takes saw, "none newer" included (judged.h); who waits wakes, with a version that is newer; an operation that was started completes once; at the end the
 * descriptor is readable exactly if there is a version that was not taken; nothing leaks, and the variable can be destroyed.
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
	{"watch_wait_with_token_beside_assign_and_fire", "", {"T", "a", "f"}, 5000, 1},
	{"watch_wait_with_deadline_beside_assign", "", {"d", "a"}, 5000, 1},
	{"watch_started_wait_beside_assign", "", {"s", "a"}, 20000, 0},
	{"watch_started_wait_beside_assign_and_cancel", "s", {"k", "a"}, 20000, 0},
	{"watch_started_wait_beside_2_assigns", "s", {"a", "a"}, 10000, 0},
	{"watch_begun_beside_assign", "", {"w", "a"}, 10000, 0},
	{"watch_taken_beside_assign", "wa", {"g", "a"}, 10000, 0},
	{"watch_store_buffering_each_assigns_and_one_takes", "w", {"ag", "a"}, 10000, 0},
	{"watch_iriw_2_assigns_taken_and_waited_for", "w", {"a", "a", "gW"}, 5000, 1},
	{"watch_beside_2_assigns", "w", {"a", "a"}, 10000, 0},
	{"watch_polled_beside_assign", "w", {"p", "a"}, 10000, 1},
	{"watch_polled_beside_commit", "w", {"p", "c"}, 10000, 1},
	{"watch_ended_beside_assign", "w", {"D", "a"}, 10000, 0},
	{"watch_ended_beside_assign_and_collection", "w", {"De", "a"}, 5000, 0},
};

static struct scene {
	const struct scope *scope;
	weir_var *x, *y;
	weir_cancel *token;
	weir_var_op *op;
	weir_watch *watch;
	uint64_t seen[ROWS], taken, last; /* the number of x when all is written */
	int started, ended;
} scene;

static void assign(size_t me)
{
	weir_tensor *tensor = number_of_size((int64_t)me, SMALL_VALUES);
	uint64_t version;

	weir_model_call_begins(0);
	weir_model_assert(weir_var_assign(scene.x, tensor, WEIR_NO_DEADLINE, &version, NULL) == WEIR_OK);
	weir_model_call_ends(0);
	judged_write(0, version, me);
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
	status = weir_watch_take(scene.watch, &read);
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
	weir_watch_destroy(scene.watch);
	scene.watch = NULL;
}

static void call(size_t me, char what)
{
	switch (what) {
	case 'a': assign(me); break;
	case 'c': transact(write_both); break;
	case 'm': transact(read_x_write_y); break;
	case 'W':
		if (scene.seen[me] < scene.last) /* the wait before this one may have seen it all */
			wait(me, WEIR_NO_DEADLINE, NULL);
		break;
	case 'T': wait(me, WEIR_NO_DEADLINE, scene.token); break;
	case 'd': wait(me, 1000, NULL); break;
	case 'f': (void)weir_cancel_fire(scene.token, NULL); break;
	case 's':
		scene.started++;
		weir_model_assert(weir_var_start_wait(scene.x, 1, ended, NULL, &scene.op, NULL) == WEIR_OK);
		break;
	case 'k':
		weir_var_op_cancel(scene.op);
		weir_var_op_release(scene.op);
		scene.op = NULL;
		break;
	case 'w':
		scene.taken = 1;
		weir_model_assert(weir_watch_create(scene.x, 1, &scene.watch, NULL) == WEIR_OK);
		break;
	case 'p':
		weiri_model_poll(weir_watch_fd(scene.watch));
		take(1);
		break;
	case 'g': take(0); break;
	case 'z':
		weir_model_call_begins(2);
		weir_model_call_ends(2);
		judged_read(0, scene.taken, HISTORY_NONE);
		break;
	case 'D': end_watch(); break;
	default: weiri_era_begin(); (void)weir_reclaim_flush(0);
	}
}

static void thread(void *context, size_t me)
{
	(void)context;
	scope_calls(me, scene.scope->calls[me], call);
}

/* A commit does not tell which versions it made. */
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
	weir_model_assert(weir_cancel_create(NULL, &scene.token) == WEIR_OK);
	scope_calls(BEFORE, scene.scope->start, call);
}

static void finish(void *context)
{
	(void)context;
	if (scene.op != NULL)
		call(BEFORE, 'k');
	weir_model_assert(scene.ended == scene.started);
	weir_model_assert(!weiri_model_eventfd_fault);
	if (scene.watch != NULL) {
		unsigned newer = weir_var_version(scene.x) > scene.taken;

		weir_model_assert(weiri_model_eventfd_count(weir_watch_fd(scene.watch)) == newer);
		weir_model_assert(weir_var_destroy(scene.x) == WEIR_FAILED_PRECONDITION);
		end_watch();
	}
	weir_model_assert(weir_var_destroy(scene.x) == WEIR_OK && weir_var_destroy(scene.y) == WEIR_OK);
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
	scope_arguments(argc, argv);
	return scope_all(prepare, sizeof(scopes) / sizeof(scopes[0])) | check_planted();
}
