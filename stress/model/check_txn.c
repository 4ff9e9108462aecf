/*
 * check_txn.c - transactions: the reads of a transaction belong to one instant, transactions are
 * serializable, and a stopped transaction blocks no other thread.
 */
#include <weir/txn.h>

#include "base/atomic.h"
#include "model/variable_scopes.h"

enum { VARIABLES = 3, MOST = 3 };

enum { X, Y, Z };

static struct scene {
	weir_var *vars[VARIABLES]; /* x, y, z; all 0 */
	enum weir_status status[MOST];
	int64_t saw[MOST][2];
	enum size size;
	uint32_t history; /* of x */
	_Atomic(weir_var *) made;
} scene;

static weir_tensor *number(int64_t value)
{
	return number_of_size(value, scene.size);
}

static void setup(void *context)
{
	(void)context;
	weir_reclaim_set_budget(8 * LARGE * sizeof(int64_t));
	for (size_t i = 0; i < VARIABLES; i++)
		scene.vars[i] = variable_that_keeps(0, scene.size, i == X ? scene.history : 0);
	setup_ends();
}

static void finish(void *context)
{
	(void)context;
	for (size_t i = 0; i < VARIABLES; i++)
		weir_var_destroy(scene.vars[i], NULL);
	weir_model_assert(weir_reclaim_flush(0) == WEIR_OK);
}

static int64_t final_value(size_t which)
{
	weir_read read;
	int64_t value;

	weir_model_assert(weir_var_read(scene.vars[which], &read) == WEIR_OK);
	value = value_of(&read);
	weir_read_release(&read);
	return value;
}

static void assign(size_t which, int64_t value)
{
	assign_tensor(scene.vars[which], number(value));
}

static weir_txn *begin(void)
{
	weir_txn *txn;

	weir_model_assert(weir_txn_begin(NULL, &txn, NULL) == WEIR_OK);
	return txn;
}

static enum weir_status read_in(weir_txn *txn, size_t which, int64_t *value)
{
	weir_tensor *tensor = NULL;
	enum weir_status status = weir_txn_read(txn, scene.vars[which], &tensor, NULL);

	weir_model_assert(status == WEIR_OK || status == WEIR_ABORTED);
	if (status == WEIR_OK)
		*value = value_in(tensor);
	return status;
}

static void assign_in(weir_txn *txn, size_t which, int64_t value)
{
	weir_tensor *tensor = number(value);

	weir_model_assert(weir_txn_assign(txn, scene.vars[which], tensor, NULL) == WEIR_OK);
	weir_tensor_release(tensor);
}

static void commit(weir_txn *txn, size_t who)
{
	scene.status[who] = weir_txn_commit(txn, WEIR_NO_DEADLINE, NULL);
	weir_model_assert(scene.status[who] == WEIR_OK || scene.status[who] == WEIR_ABORTED);
}

/*
 * Reads x and y, in this order. Returns 0 if the transaction is doomed. The values belong to one
 * instant, whatever the transaction's result.
 */
static int read_both(weir_txn *txn, size_t who)
{
	return read_in(txn, X, &scene.saw[who][0]) == WEIR_OK && read_in(txn, Y, &scene.saw[who][1]) == WEIR_OK;
}

static void give_up(weir_txn *txn, size_t who)
{
	scene.status[who] = WEIR_ABORTED;
	weir_txn_abort(txn);
}

/* -- opacity ----------------------------------------------------------------------------------- */

static void read_beside_commit(void *context, size_t who)
{
	(void)context;
	if (who == 0) {
		weir_txn *txn = begin();

		assign_in(txn, X, 1);
		assign_in(txn, Y, 1);
		commit(txn, who);
		weir_model_assert(scene.status[0] == WEIR_OK);
	} else {
		weir_txn *txn = begin();

		if (!read_both(txn, who)) {
			give_up(txn, who);
			return;
		}
		weir_model_assert(scene.saw[who][0] == scene.saw[who][1]);
		commit(txn, who);
		weir_model_assert(scene.status[who] == WEIR_OK);
	}
}

/* x is assigned before y: a transaction that reads the new y reads the new x. */
static void read_beside_assigns_in_order(void *context, size_t who)
{
	(void)context;
	if (who == 0) {
		assign(X, 1);
		assign(Y, 1);
	} else {
		weir_txn *txn = begin();

		if (read_both(txn, who))
			weir_model_assert(scene.saw[who][1] <= scene.saw[who][0]);
		weir_txn_abort(txn);
	}
}

/*
 * x is assigned before another variable is made: a transaction that reads the new variable has not
 * read the old x.
 */
static void read_beside_assign_and_create(void *context, size_t who)
{
	(void)context;
	if (who == 0) {
		assign(X, 1);
		weiri_store_release(&scene.made, variable_of_size(1, scene.size));
	} else {
		weir_txn *txn = begin();
		weir_tensor *tensor = NULL;
		weir_var *made;

		weir_model_assert(read_in(txn, X, &scene.saw[who][0]) == WEIR_OK);
		made = weiri_load_acquire(&scene.made);
		if (made != NULL && weir_txn_read(txn, made, &tensor, NULL) == WEIR_OK)
			weir_model_assert(scene.saw[who][0] == 1);
		weir_txn_abort(txn);
	}
}

static void finish_made(void *context)
{
	weir_var_destroy(weiri_load_acquire(&scene.made), NULL);
	finish(context);
}

/* -- serializability --------------------------------------------------------------------------- */

/* Each thread reads both variables, and takes one of them if neither was taken. */
static void take_one_of_two(void *context, size_t who)
{
	weir_txn *txn = begin();

	(void)context;
	if (!read_both(txn, who)) {
		give_up(txn, who);
		return;
	}
	if (scene.saw[who][0] == 0 && scene.saw[who][1] == 0)
		assign_in(txn, who == 0 ? X : Y, (int64_t)who + 1);
	commit(txn, who);
}

static void one_was_taken(void *context)
{
	weir_model_assert((final_value(X) == 1) + (final_value(Y) == 2) == 1);
	weir_model_assert((final_value(X) == 0) + (final_value(Y) == 0) == 1);
	weir_model_assert(scene.status[0] == WEIR_OK || scene.status[1] == WEIR_OK);
	finish(context);
}

/*
 * One thread sets y to 5 if x is still 0, while another assigns to x. A snapshot may see the two
 * writes in one order only.
 */
static void mark_beside_assign_and_snapshot(void *context, size_t who)
{
	(void)context;
	if (who == 0) {
		weir_txn *txn = begin();
		int64_t x = 0;

		if (read_in(txn, X, &x) == WEIR_OK)
			assign_in(txn, Y, x == 0 ? 5 : 6);
		commit(txn, who);
	} else if (who == 1) {
		assign(X, 1);
	} else {
		weir_var *const vars[] = {scene.vars[X], scene.vars[Y]};
		weir_read reads[2];

		weir_model_assert(weir_var_snapshot(vars, 2, reads, NULL) == WEIR_OK);
		scene.saw[who][0] = value_of(&reads[0]);
		scene.saw[who][1] = value_of(&reads[1]);
		weir_read_release_many(reads, 2);
	}
}

static void seen_in_one_order(void *context)
{
	int64_t y = final_value(Y);
	const int64_t *saw = scene.saw[2];

	weir_model_assert(y == (scene.status[0] != WEIR_OK ? 0 : 5) || (scene.status[0] == WEIR_OK && y == 6));
	/*
	 * If y is 5, the transaction came before the assign, so a snapshot that contains the assign
	 * also contains the transaction. If y is 6, it is the other way round.
	 */
	weir_model_assert(!(y == 5 && saw[0] == 1 && saw[1] == 0));
	weir_model_assert(!(saw[1] == 6 && saw[0] == 0));
	finish(context);
}

/* Both threads read z and write different variables, so neither conflicts with the other. */
static void read_the_same(void *context, size_t who)
{
	weir_txn *txn = begin();
	int64_t z;

	(void)context;
	weir_model_assert(read_in(txn, Z, &z) == WEIR_OK && z == 0);
	assign_in(txn, who == 0 ? X : Y, 1);
	commit(txn, who);
	weir_model_assert(scene.status[who] == WEIR_OK);
}

static void both_committed(void *context)
{
	weir_model_assert(final_value(X) == 1 && final_value(Y) == 1);
	weir_model_assert(weir_var_version(scene.vars[Z]) == 1);
	finish(context);
}

/* A transaction that only writes its variables commits, whatever writes come in between. */
static void assign_both_beside_assign(void *context, size_t who)
{
	(void)context;
	if (who == 0) {
		weir_txn *txn = begin();

		assign_in(txn, X, 2);
		assign_in(txn, Y, 2);
		commit(txn, who);
		weir_model_assert(scene.status[0] == WEIR_OK);
	} else {
		assign(X, 1);
	}
}

static void both_are_in(void *context)
{
	weir_model_assert(weir_var_version(scene.vars[X]) == 3 && weir_var_version(scene.vars[Y]) == 2);
	weir_model_assert(final_value(Y) == 2);
	finish(context);
}

static enum weir_status increment_both(void *context, weir_txn *txn, weir_error *error)
{
	int64_t x, y;

	(void)context;
	(void)error;
	if (read_in(txn, X, &x) != WEIR_OK || read_in(txn, Y, &y) != WEIR_OK)
		return WEIR_ABORTED;
	weir_model_assert(x == y);
	assign_in(txn, X, x + 1);
	assign_in(txn, Y, y + 1);
	return WEIR_OK;
}

static void run_increment(void *context, size_t who)
{
	scene.status[who] = weir_txn_run(NULL, increment_both, context, WEIR_NO_DEADLINE, NULL);
	weir_model_assert(scene.status[who] == WEIR_OK);
}

static void incremented_twice(void *context)
{
	weir_model_assert(final_value(X) == 2 && final_value(Y) == 2);
	finish(context);
}

/* A mark stands for version 1 of x while another thread reads that version from the history. */
static void mark_beside_assign_and_history(void *context, size_t who)
{
	weir_read read;

	if (who < 2) {
		mark_beside_assign_and_snapshot(context, who);
		return;
	}
	weir_model_assert(weir_var_read_version(scene.vars[X], 1, &read) == WEIR_OK);
	weir_model_assert(read.version == 1 && value_of(&read) == 0);
	weir_read_release(&read);
}

/* A mark is on a version of x while x is assigned, collected and read. */
static void mark_beside_collections(void *context, size_t who)
{
	(void)context;
	if (who == 0) {
		weir_txn *txn = begin();
		int64_t x;

		if (read_in(txn, X, &x) == WEIR_OK)
			assign_in(txn, Y, 2 + x); /* each value is made by one thread */
		commit(txn, who);
	} else if (who == 1) {
		assign(X, 1);
	} else {
		weir_model_assert(final_value(X) <= 1);
	}
}

static const struct scope {
	const char *name;
	size_t threads;
	void (*thread)(void *, size_t);
	void (*finish)(void *);
	enum size size;
	uint32_t history;
} scopes[] = {
	{"txn_reads_2_beside_txn_that_writes_2", 2, read_beside_commit, finish, SMALL_VALUES, 0},
	{"txn_reads_2_beside_2_assigns_in_order", 2, read_beside_assigns_in_order, finish, SMALL_VALUES, 0},
	{"txn_reads_2_beside_assign_and_create", 2, read_beside_assign_and_create, finish_made, SMALL_VALUES, 0},
	{"txns_of_2_that_skew", 2, take_one_of_two, one_was_taken, SMALL_VALUES, 0},
	{"txn_reads_1_writes_1_beside_assign", 2, mark_beside_assign_and_snapshot, seen_in_one_order, SMALL_VALUES, 0},
	{"txn_reads_1_writes_1_beside_assign_and_snapshot", 3, mark_beside_assign_and_snapshot, seen_in_one_order,
     SMALL_VALUES, 0},
	{"txns_that_read_1_and_write_others", 2, read_the_same, both_committed, SMALL_VALUES, 0},
	{"txn_writes_2_beside_assign", 2, assign_both_beside_assign, both_are_in, SMALL_VALUES, 0},
	{"txns_that_increment_2", 2, run_increment, incremented_twice, SMALL_VALUES, 0},
	{"txn_reads_1_of_history_1_writes_1_beside_assign_and_read_version", 3, mark_beside_assign_and_history, finish,
     SMALL_VALUES, 1},
	{"txns_of_2_that_skew_and_collect", 2, take_one_of_two, one_was_taken, LARGE_VALUES, 0},
	{"txn_reads_1_writes_1_and_collects_beside_assign_and_read", 3, mark_beside_collections, finish, LARGE_VALUES, 0},
};

static struct scope_plan prepare(size_t index)
{
	const struct scope *scope = &scopes[index];

	scene = (struct scene){.size = scope->size, .history = scope->history};
	return (struct scope_plan){
		.program = {scope->name, scope->threads, &scene, sizeof(scene), setup, scope->thread, scope->finish},
		.executions = 23000,
		.stopped = 50};
}

int main(int argc, char **argv)
{
	scope_arguments(argc, argv);
	return scope_all(prepare, sizeof(scopes) / sizeof(scopes[0]));
}
