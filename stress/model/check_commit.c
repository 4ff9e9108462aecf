/*
 * check_commit.c - the cell of a commit: the outcome that one thread has read from it never
 * changes.
 *
 * One thread writes a variable by a commit of one part. Other threads find its version, help the
 * commit to its end, as a writer would, and read the stamp. A stamp can be read in the version, in
 * the cell, and in the owner's copy of it. All threads must get the same stamp, however late a
 * helper runs.
 */
#include "model/variable_scopes.h"
#include "reclaim/scope.h"
#include "var/commit.h"
#include "var/install.h"

enum { THREADS = 3 };

static struct scene {
	weir_var *var;
	struct weiri_version *first;
	struct weiri_version *met[THREADS]; /* the version that the thread found in place of the first; or NULL */
	uint64_t stamp[THREADS];            /* the stamp that it read */
} scene;

static void setup(void *context)
{
	(void)context;
	scene.var = variable_of_size(1, SMALL_VALUES);
	scene.first = weiri_load_relaxed(&scene.var->head);
	setup_ends();
}

/* The commit expects version 1. It cannot abort, because no other thread writes. */
static void commit(void)
{
	weir_tensor *value = number_of_size(2, SMALL_VALUES);
	const struct weir_commit_part part = {scene.var, 1, value};

	weir_model_assert(weir_var_commit(&part, 1, WEIR_NO_DEADLINE, NULL, NULL) == WEIR_OK);
	weir_tensor_release(value);
}

static void help(size_t me)
{
	struct weiri_scope scope = weiri_scope_enter(weiri_record_get());
	struct weiri_version *head;

	weiri_section_read(scope.record, &scene.var->head, &head);
	if (head != scene.first) {
		if (weiri_version_resolve(head) == WEIRI_STAMP_NONE)
			weiri_commit_help(&scope, head->commit);
		scene.met[me] = head;
		scene.stamp[me] = weiri_version_resolve(head);
		weir_model_assert(weiri_stamp_is_committed(scene.stamp[me]));
	}
	weiri_scope_leave(&scope);
}

static void thread(void *context, size_t me)
{
	(void)context;
	if (me == 0)
		commit();
	else
		help(me);
}

static void finish(void *context)
{
	(void)context;
	for (size_t me = 0; me < THREADS; me++)
		weir_model_assert(scene.met[me] == NULL || weiri_load_relaxed(&scene.met[me]->stamp) == scene.stamp[me]);
	weir_model_assert(weir_var_destroy(scene.var, NULL) == WEIR_OK);
	weir_model_assert(weir_reclaim_flush(0) == WEIR_OK);
}

static const char *const names[] = {"commit_beside_1_that_helps", "commit_beside_2_that_help"};

static struct scope_plan prepare(size_t index)
{
	scene = (struct scene){.var = NULL};
	return (struct scope_plan){.program = {names[index], 2 + index, &scene, sizeof(scene), setup, thread, finish},
	                           .executions = 20000,
	                           .long_executions = 2000000,
	                           .stopped = 30,
	                           .long_stopped = 1000};
}

int main(int argc, char **argv)
{
	scope_arguments(argc, argv);
	return scope_all(prepare, sizeof(names) / sizeof(names[0]));
}
