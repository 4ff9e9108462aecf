/*
 * check_commit.c - the cell of a commit: what it has told somebody stays so.
 *
 * One writes a variable by a commit of one part; others meet its version, help the commit to its end, as a writer would, and look at its
 * stamp. The version, the cell and the owner's copy must all say the same to everybody, however late a helper is.
 */
#include "model/variable_scopes.h"
#include "reclaim/scope.h"
#include "var/commit.h"
#include "var/install.h"

enum { THREADS = 3 };

static struct scene {
	weir_var *var;
	struct weiri_version *first;
	struct weiri_version *met[THREADS]; /* a version that was not the first */
	uint64_t stamp[THREADS];            /* that it had */
} scene;

static void setup(void *context)
{
	(void)context;
	scene.var = variable_of_size(1, SMALL_VALUES);
	scene.first = weiri_load_relaxed(&scene.var->head);
}

/* The call asks what the version is, and takes it for granted that nobody writes meanwhile. */
static void commit(size_t me)
{
	weir_tensor *value = number_of_size(2, SMALL_VALUES);
	const struct weir_commit_part part = {scene.var, 1, value};

	(void)me;
	weir_model_assert(weir_var_commit(&part, 1, WEIR_NO_DEADLINE, NULL, NULL) == WEIR_OK);
	weir_tensor_release(value);
}

static void help(size_t me)
{
	struct weiri_scope scope = weiri_scope_enter(weiri_record_get());
	struct weiri_version *head;

	weiri_section_read(scope.record, &scene.var->head, &head);
	if (head != scene.first) {
		if (weiri_version_settle(head) == WEIRI_STAMP_NONE)
			weiri_commit_help(&scope, head->commit);
		scene.met[me] = head;
		scene.stamp[me] = weiri_version_settle(head);
		weir_model_assert(weiri_stamp_is_committed(scene.stamp[me]));
	}
	weiri_scope_leave(&scope);
}

static const struct scope {
	const char *name;
	void (*threads[THREADS])(size_t me);
} scopes[] = {
	{"commit_beside_1_that_helps", {commit, help}},
	{"commit_beside_2_that_help", {commit, help, help}},
};

static const struct scope *current;

static void thread(void *context, size_t me)
{
	(void)context;
	current->threads[me](me);
}

static void finish(void *context)
{
	(void)context;
	for (size_t me = 0; me < THREADS; me++)
		weir_model_assert(scene.met[me] == NULL || weiri_load_relaxed(&scene.met[me]->stamp) == scene.stamp[me]);
	weir_model_assert(weir_var_destroy(scene.var) == WEIR_OK);
	weir_model_assert(weir_reclaim_flush(0) == WEIR_OK);
}

int main(int argc, char **argv)
{
	int bad = 0;

	scope_arguments(argc, argv);
	for (size_t i = 0; i < sizeof(scopes) / sizeof(scopes[0]); i++) {
		struct weir_model_program program = {scopes[i].name, 2, &scene, sizeof(scene), setup, thread, finish};

		program.threads += scopes[i].threads[2] != NULL;
		current = &scopes[i];
		scene = (struct scene){.var = NULL};
		bad |= scope_as_far_as(&program, scope_long() ? 2000000 : 20000) |
		       scope_stops(&program, scope_long() ? 1000 : 30, NULL, NULL);
	}
	return bad;
}
