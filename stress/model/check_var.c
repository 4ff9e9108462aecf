/*
 * check_var.c - variables and reclamation: reads beside writers and collectors, snapshots beside writers and commits.
 *
 * Values are tensors that a writer fills just before it publishes them, so a read of a value that is not published, or is freed
 * already, shows as a race or as a use of freed memory. In finish() everything must be freed.
 */
#include <stdio.h>
#include <string.h>
#include <weir/reclaim.h>
#include <weir/tensor.h>
#include <weir/time.h>
#include <weir/var.h>

#include "model/scope.h"

enum { MOST = 4 };

static struct scene {
	weir_var *x, *y, *z; /* z: something to collect */
	enum weir_status status[MOST];
	uint64_t version[MOST];
	int64_t saw[MOST][2];
	size_t writes; /* of the writer */
	int collects;  /* the writer collects after each */
} scene;

static weir_tensor *number(int64_t value)
{
	weir_tensor *tensor;

	weir_model_assert(weir_tensor_scalar_i64(value, &tensor) == WEIR_OK);
	return tensor;
}

static weir_var *variable(int64_t value)
{
	struct weir_var_options options = {.struct_size = sizeof(options), .dtype = WEIR_I64};
	weir_tensor *initial = number(value);
	weir_var *var;

	weir_model_assert(weir_var_create(&options, initial, &var, NULL) == WEIR_OK);
	weir_tensor_release(initial);
	return var;
}

static void setup(void *context)
{
	(void)context;
	scene.x = variable(0);
	scene.y = variable(0);
	scene.z = variable(0);
}

static void finish(void *context)
{
	(void)context;
	weir_var_destroy(scene.x);
	weir_var_destroy(scene.y);
	weir_var_destroy(scene.z);
	weir_model_assert(weir_reclaim_flush(0) == WEIR_OK);
}

static int64_t value_of(const weir_read *read)
{
	return *(const int64_t *)weir_tensor_data(read->tensor);
}

static void assign(weir_var *var, int64_t value)
{
	weir_tensor *tensor = number(value);

	weir_model_assert(weir_var_assign(var, tensor, WEIR_NO_DEADLINE, NULL, NULL) == WEIR_OK);
	weir_tensor_release(tensor);
}

static int64_t read_once(weir_var *var)
{
	weir_read read;
	int64_t value;

	weir_model_call_begins(0);
	weir_model_assert(weir_var_read(var, &read) == WEIR_OK);
	weir_model_call_ends(0);
	value = value_of(&read);
	weir_model_assert((int64_t)read.version == value + 1);
	weir_model_call_begins(1);
	weir_read_release(&read);
	weir_model_call_ends(1);
	return value;
}

/* -- read beside assign -------------------------------------------------------------------------------------------------------- */

static void write_and_collect(void)
{
	for (size_t i = 1; i <= scene.writes; i++) {
		assign(scene.x, (int64_t)i);
		if (scene.collects)
			(void)weir_reclaim_flush(0);
	}
}

static void read_beside_assign(void *context, size_t who)
{
	(void)context;
	if (who == 0) {
		write_and_collect();
	} else {
		int64_t first = read_once(scene.x);

		weir_model_assert(read_once(scene.x) >= first);
	}
}

/* A handle that is kept while the versions after it come and go, and is released by another thread's record owner. */
static void read_kept(void *context, size_t who)
{
	weir_read read;

	(void)context;
	if (who == 0) {
		write_and_collect();
		return;
	}
	weir_model_assert(weir_var_read(scene.x, &read) == WEIR_OK);
	scene.saw[who][0] = value_of(&read);
	weir_model_assert(weir_var_version(scene.x) >= read.version);
	weir_model_assert(value_of(&read) == scene.saw[who][0]);
	weir_read_release(&read);
}

/* With no budget a writer waits until the reader's handle is gone, and is poked then. */
static void over_the_budget(void *context, size_t who)
{
	if (who == 0)
		weir_reclaim_set_budget(1);
	read_kept(context, who);
}

/* Two writers that expect version 1: one wins. */
static void compare_assign(void *context, size_t who)
{
	weir_tensor *tensor = number(1);

	(void)context;
	scene.status[who] = weir_var_compare_assign(scene.x, 1, tensor, WEIR_NO_DEADLINE, &scene.version[who], NULL);
	weir_tensor_release(tensor);
}

static void one_won(void *context)
{
	weir_model_assert((scene.status[0] == WEIR_OK) + (scene.status[1] == WEIR_OK) == 1);
	weir_model_assert((scene.status[0] == WEIR_ABORTED) + (scene.status[1] == WEIR_ABORTED) == 1);
	weir_model_assert(scene.version[0] == 2 && scene.version[1] == 2);
	finish(context);
}

static void two_assigns(void *context, size_t who)
{
	(void)context;
	if (who < 2)
		assign(scene.x, 7);
	else
		scene.version[2] = weir_var_version(scene.x);
}

static void three_versions(void *context)
{
	weir_model_assert(weir_var_version(scene.x) == 3 && scene.version[2] <= 3);
	finish(context);
}

/* -- snapshots ---------------------------------------------------------------------------------------------------------------- */

static void snapshot(size_t who)
{
	weir_var *const vars[] = {scene.x, scene.y};
	weir_read reads[2];

	weir_model_call_begins(2);
	weir_model_assert(weir_var_snapshot(vars, 2, reads, NULL) == WEIR_OK);
	weir_model_call_ends(2);
	for (size_t i = 0; i < 2; i++)
		scene.saw[who][i] = value_of(&reads[i]);
	weir_read_release_many(reads, 2);
}

/* x before y: a snapshot with the new y has the new x. */
static void snapshot_beside_writer(void *context, size_t who)
{
	(void)context;
	if (who == 0) {
		assign(scene.x, 1);
		assign(scene.y, 1);
	} else {
		snapshot(who);
		weir_model_assert(scene.saw[who][1] <= scene.saw[who][0]);
	}
}

/* Two writers, two snapshots: they agree about which write came first. */
static void snapshots_beside_writers(void *context, size_t who)
{
	(void)context;
	if (who == 0)
		assign(scene.x, 1);
	else if (who == 1)
		assign(scene.y, 1);
	else
		snapshot(who);
}

static void snapshots_agree(void *context)
{
	int apart = scene.saw[2][0] > scene.saw[3][0] && scene.saw[2][1] < scene.saw[3][1];

	apart |= scene.saw[2][0] < scene.saw[3][0] && scene.saw[2][1] > scene.saw[3][1];
	weir_model_assert(!apart);
	finish(context);
}

/* -- commits ------------------------------------------------------------------------------------------------------------------ */

static void commit_both(size_t who)
{
	weir_tensor *one = number((int64_t)who + 1), *two = number((int64_t)who + 1);
	struct weir_commit_part parts[] = {{scene.x, 1, one}, {scene.y, 1, two}};

	weir_model_call_begins(3);
	scene.status[who] = weir_var_commit(parts, 2, WEIR_NO_DEADLINE, NULL, NULL);
	weir_model_call_ends(3);
	weir_tensor_release(one);
	weir_tensor_release(two);
}

static void commit_beside_snapshot(void *context, size_t who)
{
	(void)context;
	if (who == 0) {
		commit_both(who);
		weir_model_assert(scene.status[0] == WEIR_OK);
	} else {
		snapshot(who);
		weir_model_assert(scene.saw[who][0] == scene.saw[who][1]);
	}
}

static void commit_beside_commit(void *context, size_t who)
{
	(void)context;
	if (who < 2) {
		commit_both(who);
	} else {
		snapshot(who);
		weir_model_assert(scene.saw[who][0] == scene.saw[who][1]);
	}
}

static void one_committed(void *context)
{
	weir_model_assert((scene.status[0] == WEIR_OK) + (scene.status[1] == WEIR_OK) == 1);
	snapshot(3);
	weir_model_assert(scene.saw[3][0] == scene.saw[3][1]);
	weir_model_assert(scene.saw[3][0] == (scene.status[0] == WEIR_OK ? 1 : 2));
	finish(context);
}

static void commit_beside_assign(void *context, size_t who)
{
	(void)context;
	if (who == 0)
		commit_both(0);
	else
		assign(scene.y, 7);
}

static void commit_or_assign(void *context)
{
	snapshot(3);
	/* The assign is in; the commit is whole before it, or not at all. */
	weir_model_assert(scene.saw[3][0] == (scene.status[0] == WEIR_OK));
	weir_model_assert(scene.saw[3][1] == 7);
	finish(context);
}

/*
 * Somebody meets the commit's part without a stamp and looks into the cell, in a section that begins in a new era, while the owner ends the
 * use of the cell: it must not have died before that section began (pair S2 of var/version.h).
 */
static void commit_beside_look_and_collector(void *context, size_t who)
{
	(void)context;
	if (who == 0) {
		commit_both(0);
		weir_model_assert(scene.status[0] == WEIR_OK);
	} else if (who == 1) {
		uint64_t version = weir_var_version(scene.x);

		weir_model_assert(version == 1 || version == 2);
	} else {
		assign(scene.z, 1);
		(void)weir_reclaim_flush(0);
		(void)weir_reclaim_flush(0);
	}
}

static const struct scope {
	const char *name;
	size_t threads;
	void (*thread)(void *, size_t);
	void (*finish)(void *);
	size_t writes;
	int collects;
} scopes[] = {
	{"var_1_assign_1_reader_x2", 2, read_beside_assign, finish, 1, 0},
	{"var_1_assign_and_collect_1_reader_x2", 2, read_beside_assign, finish, 1, 1},
	{"var_2_assigns_and_collects_1_reader_x1", 2, read_kept, finish, 2, 1},
	{"var_1_assign_and_collect_2_readers_x1", 3, read_kept, finish, 1, 1},
	{"var_3_assigns_over_the_budget_1_reader_pokes", 2, over_the_budget, finish, 3, 0},
	{"var_2_compare_assigns", 2, compare_assign, one_won, 0, 0},
	{"var_2_assigns_1_look_at_the_version", 3, two_assigns, three_versions, 0, 0},
	{"snapshot_of_2_beside_2_assigns_in_order", 2, snapshot_beside_writer, finish, 0, 0},
	{"snapshots_of_2_x2_beside_2_writers", 4, snapshots_beside_writers, snapshots_agree, 0, 0},
	{"commit_of_2_beside_snapshot", 2, commit_beside_snapshot, finish, 0, 0},
	{"commit_of_2_beside_commit_of_2", 2, commit_beside_commit, one_committed, 0, 0},
	{"commit_of_2_beside_commit_of_2_and_snapshot", 3, commit_beside_commit, one_committed, 0, 0},
	{"commit_of_2_beside_look_and_collector", 3, commit_beside_look_and_collector, finish, 0, 0},
	{"commit_of_2_beside_assign", 2, commit_beside_assign, commit_or_assign, 0, 0},
};

static struct weir_model_program prepare(const struct scope *scope)
{
	scene = (struct scene){.writes = scope->writes, .collects = scope->collects};
	return (struct weir_model_program){scope->name, scope->threads, &scene,       sizeof(scene),
	                                   setup,       scope->thread,  scope->finish};
}

/* What stops nobody: stopped readers, assigns, snapshots, commits. */
static int check_progress(const struct scope *scope)
{
	static const char *const calls[WEIR_MODEL_CALLS + 1] = {"read", "read_release", "snapshot", "commit", NULL};
	static const uint32_t bounds[WEIR_MODEL_CALLS] = {0};
	struct weir_model_program program = prepare(scope);

	return scope_stops(&program, scope_long() ? 5000 : 50, calls, bounds);
}

int main(int argc, char **argv)
{
	int bad = 0;

	scope_arguments(argc, argv);
	for (size_t i = 0; i < sizeof(scopes) / sizeof(scopes[0]); i++) {
		struct weir_model_program program = prepare(&scopes[i]);

		/* A cell that dies too early was found in the 50,311th. */
		uint64_t wanted = scopes[i].thread == commit_beside_look_and_collector ? 60000 : 20000;

		bad |= scope_as_far_as(&program, scope_long() ? 10000000 : wanted);
	}
	/* A writer over the budget waits for a stopped reader, as is documented: that scope is left out. */
	for (size_t i = 0; i < sizeof(scopes) / sizeof(scopes[0]); i++)
		bad |= scopes[i].thread != over_the_budget && check_progress(&scopes[i]);
	scope_symmetric(1);
	for (size_t i = 0; i < 5; i++) {
		struct weir_model_program program = prepare(&scopes[i]);

		bad |= scope_as_far_as(&program, scope_long() ? 10000000 : 10000);
	}
	return bad;
}
