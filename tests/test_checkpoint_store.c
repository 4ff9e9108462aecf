/*
 * test_checkpoint_store.c - variables that are found by name, and a whole store that is saved and
 * restored.
 */
#include <criterion/criterion.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <weir/flow/checkpoint.h>
#include <weir/log.h>
#include <weir/store.h>
#include <weir/watch.h>

#include "checkpoint_kit.h"

static weir_store *make_store(void)
{
	weir_store *store = NULL;

	cr_assert_eq(weir_store_create(NULL, &store, NULL), WEIR_OK);
	return store;
}

static struct weir_var_options scalar_options(void)
{
	static const weir_shape scalar = {.rank = 0};

	return (struct weir_var_options){WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I64, .shape = &scalar,
	                                 .allocator = &variables_memory};
}

/*
 * Returns the variable of that name, made with this value if it does not exist. Only the store
 * keeps a reference.
 */
static weir_var *shared(weir_store *store, const char *container, const char *name, int64_t value)
{
	struct weir_var_options options = scalar_options();
	weir_tensor *initial = number(value);
	weir_resource *resource = NULL;
	weir_var *var;
	weir_error error;

	cr_assert_eq(weir_var_find_or_create(store, container, name, initial, &options, &resource, &error), WEIR_OK, "%s",
	             error.message);
	weir_tensor_release(initial);
	var = weir_resource_object(resource);
	weir_resource_release(resource);
	return var;
}

/* -- by name ----------------------------------------------------------------------------------- */

Test(checkpoint_store, the_first_makes_it_and_all_others_get_the_same)
{
	weir_store *store = make_store();
	weir_var *var = shared(store, NULL, "step", 7);

	cr_assert_str_eq(weir_var_name(var), "step");
	assign(var, 8);
	cr_assert_eq(shared(store, NULL, "step", 7), var);
	cr_assert_eq(value_in(var), (int64_t)8);
	cr_assert_neq(shared(store, "other", "step", 9), var);
	cr_assert_eq(value_in(var), (int64_t)8);
	weir_store_destroy(store, NULL);
}

static void expect_other(weir_store *store, const struct weir_var_options *options, const char *message)
{
	weir_resource *resource = NULL;
	weir_error error;

	cr_assert_eq(weir_var_find_or_create(store, NULL, "step", NULL, options, &resource, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_null(resource);
	cr_assert_not_null(strstr(error.message, message), "%s", error.message);
}

Test(checkpoint_store, one_that_was_made_otherwise_is_refused_by_the_property)
{
	weir_store *store = make_store();
	struct weir_var_options options = scalar_options();
	weir_shape vector = {1, {-1}};

	(void)shared(store, NULL, "step", 7);
	options.dtype = WEIR_F32;
	expect_other(store, &options, "variable \"step\": dtype is i64, asked for f32");
	options = scalar_options();
	options.shape = &vector;
	expect_other(store, &options, "shape is [], asked for [?]");
	options.shape = NULL;
	expect_other(store, &options, "shape is [], asked for any");
	options = scalar_options();
	options.history = 3;
	expect_other(store, &options, "history is 0, asked for 3");
	options.flags = 1;
	expect_other(store, &options, "unknown flags");
	weir_store_destroy(store, NULL);
}

static _Atomic(uint32_t) complaints;

static void hear(void *context, enum weir_log_level level, const char *message)
{
	(void)context;
	cr_assert_eq(level, WEIR_LOG_ERROR);
	cr_assert_not_null(strstr(message, "\"watched\""), "%s", message);
	(void)weiri_fetch_add_relaxed(&complaints, 1u);
}

static const weir_log_hook hear_hook = {hear, NULL};

Test(checkpoint_store, one_that_is_still_waited_for_is_kept_and_told_of)
{
	weir_store *store = make_store();
	weir_var *var = shared(store, NULL, "watched", 1);
	weir_watch *watch = NULL;

	cr_assert_eq(weir_watch_create(var, 1, &watch, NULL), WEIR_OK);
	weir_log_set_hook(&hear_hook);
	weir_store_destroy(store, NULL);
	weir_log_set_hook(NULL);
	cr_assert_eq(weiri_load_relaxed(&complaints), 1u);
	cr_assert_eq(value_in(var), (int64_t)1);
	weir_watch_destroy(watch, NULL);
	cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
}

/* -- a store in a file ------------------------------------------------------------------------- */

static int not_a_variable;
static const struct weir_resource_type other_type = {"other", NULL};

Test(checkpoint_store, what_is_saved_comes_back_under_the_same_names)
{
	struct folder folder = make_folder();
	weir_store *store = make_store();
	weir_var *a = shared(store, NULL, "a", 1), *b = shared(store, "layer", "a", 2), *c = shared(store, "layer", "b", 3);
	weir_error error;

	cr_assert_eq(weir_store_add(store, NULL, "no variable", &other_type, &not_a_variable, NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_checkpoint_save_store(store, folder.file, NULL, &error), WEIR_OK, "%s", error.message);
	weir_store_destroy(store, NULL);

	store = make_store();
	a = shared(store, NULL, "a", 0);
	b = shared(store, "layer", "a", 0);
	c = shared(store, "layer", "b", 0);
	cr_assert_eq(weir_checkpoint_restore_store(store, folder.file, NULL, WEIR_NO_DEADLINE, &error), WEIR_OK, "%s",
	             error.message);
	cr_assert_eq(value_in(a), (int64_t)1);
	cr_assert_eq(value_in(b), (int64_t)2);
	cr_assert_eq(value_in(c), (int64_t)3);
	/* The file has these names, for a program that restores it with a list of parts. */
	cr_assert_eq(weir_checkpoint_restore((struct weir_checkpoint_part[]){{"layer/a", a}, {"layer/b", b}, {"a", c}}, 3,
	                                     folder.file, NULL, WEIR_NO_DEADLINE, &error),
	             WEIR_OK, "%s", error.message);
	cr_assert_eq(value_in(a), (int64_t)2);
	cr_assert_eq(value_in(c), (int64_t)1);
	weir_store_destroy(store, NULL);
	remove_folder(&folder);
}

Test(checkpoint_store, what_does_not_fit_is_refused_and_changes_nothing)
{
	struct weir_checkpoint_options lenient = {WEIR_CHECKPOINT_OPTIONS_INIT, .flags = WEIR_CHECKPOINT_ALLOW_OTHERS};
	struct folder folder = make_folder();
	weir_store *store = make_store();
	weir_var *a;
	weir_error error;

	cr_assert_eq(weir_checkpoint_save_store(store, folder.file, NULL, &error), WEIR_NOT_FOUND);
	cr_assert_not_null(strstr(error.message, "no variables in the store"), "%s", error.message);
	cr_assert_eq(weir_checkpoint_save_store(NULL, folder.file, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_checkpoint_save_store(store, folder.file, &lenient, &error), WEIR_INVALID_ARGUMENT);
	(void)shared(store, NULL, "a", 1);
	(void)shared(store, NULL, "b", 2);
	cr_assert_eq(weir_checkpoint_save_store(store, folder.file, NULL, &error), WEIR_OK, "%s", error.message);
	/* A variable that is not in the file. */
	(void)shared(store, NULL, "c", 3);
	cr_assert_eq(weir_checkpoint_restore_store(store, folder.file, NULL, 0, &error), WEIR_FAILED_PRECONDITION);
	cr_assert_not_null(strstr(error.message, "no tensor \"c\""), "%s", error.message);
	weir_store_destroy(store, NULL);

	/* A tensor that is not in the store. */
	store = make_store();
	a = shared(store, NULL, "a", 0);
	cr_assert_eq(weir_checkpoint_restore_store(store, folder.file, NULL, 0, &error), WEIR_FAILED_PRECONDITION);
	cr_assert_not_null(strstr(error.message, "nothing takes its tensor \"b\""), "%s", error.message);
	cr_assert_eq(value_in(a), (int64_t)0);
	cr_assert_eq(weir_checkpoint_restore_store(store, folder.file, &lenient, 0, &error), WEIR_OK, "%s", error.message);
	cr_assert_eq(value_in(a), (int64_t)1);

	/* Two variables of the same name in the file. */
	(void)shared(store, "x", "y/z", 1);
	(void)shared(store, "x/y", "z", 1);
	cr_assert_eq(weir_checkpoint_save_store(store, folder.file, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_not_null(strstr(error.message, "two parts are called \"x/y/z\""), "%s", error.message);
	weir_store_destroy(store, NULL);
	remove_folder(&folder);
}

Test(checkpoint_store, more_than_a_commit_can_have_is_refused)
{
	struct folder folder = make_folder();
	weir_store *store = make_store();
	weir_error error;

	for (int i = 0; i < WEIR_COMMIT_MAX_PARTS; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "v%d", i);
		(void)shared(store, NULL, name, i);
	}
	cr_assert_eq(weir_checkpoint_save_store(store, folder.file, NULL, &error), WEIR_OK, "%s", error.message);
	cr_assert_eq(weir_checkpoint_restore_store(store, folder.file, NULL, WEIR_NO_DEADLINE, &error), WEIR_OK, "%s",
	             error.message);
	(void)shared(store, NULL, "one more", 0);
	cr_assert_eq(weir_checkpoint_save_store(store, folder.file, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_not_null(strstr(error.message, "1025 parts"), "%s", error.message);
	weir_store_destroy(store, NULL);
	remove_folder(&folder);
}

/* -- memory ------------------------------------------------------------------------------------ */

static enum weir_status make_save_and_restore(const weir_allocator *allocator, void *context)
{
	const struct folder *folder = context;
	struct weir_checkpoint_options options = {WEIR_CHECKPOINT_OPTIONS_INIT, .allocator = allocator};
	struct weir_var_options variable_options = scalar_options();
	weir_store *store = make_store();
	weir_tensor *initial = number(5);
	weir_resource *resource = NULL;
	enum weir_status status;

	variable_options.allocator = allocator;
	status = weir_var_find_or_create(store, NULL, "a", initial, &variable_options, &resource, NULL);
	weir_tensor_release(initial);
	weir_resource_release(resource);
	if (status == WEIR_OK)
		status = weir_checkpoint_save_store(store, folder->file, &options, NULL);
	if (status == WEIR_OK)
		status = weir_checkpoint_restore_store(store, folder->file, &options, WEIR_NO_DEADLINE, NULL);
	weir_store_destroy(store, NULL);
	collect_now();
	return status;
}

Test(checkpoint_store, every_allocation_may_fail)
{
	struct folder folder = make_folder();

	cr_expect_geq(fail_each_allocation(make_save_and_restore, &folder), (size_t)12);
	remove_folder(&folder);
	expect_nothing_left();
}

/* -- several threads --------------------------------------------------------------------------- */

enum { NAMES = 4, MAKERS = 4, ROUNDS = 50 };

static void *make_all(void *context)
{
	for (int i = 0; i < NAMES; i++) {
		char name[2] = {(char)('a' + i), '\0'};

		(void)shared(context, NULL, name, i);
	}
	return NULL;
}

Test(checkpoint_store, who_asks_at_once_gets_one_variable_and_saves_go_on_meanwhile)
{
	struct folder folder = make_folder();

	for (int round = 0; round < ROUNDS; round++) {
		weir_store *store = make_store();
		pthread_t threads[MAKERS];
		enum weir_status status;

		(void)shared(store, NULL, "first", 1);
		for (int i = 0; i < MAKERS; i++)
			cr_assert_eq(pthread_create(&threads[i], NULL, make_all, store), 0);
		status = weir_checkpoint_save_store(store, folder.file, NULL, NULL);
		cr_assert_eq(status, WEIR_OK);
		for (int i = 0; i < MAKERS; i++)
			cr_assert_eq(pthread_join(threads[i], NULL), 0);
		cr_assert_eq(weir_store_size_approx(store), (size_t)NAMES + 1);
		for (int i = 0; i < NAMES; i++) {
			char name[2] = {(char)('a' + i), '\0'};

			cr_assert_eq(value_in(shared(store, NULL, name, -1)), (int64_t)i);
		}
		weir_store_destroy(store, NULL);
	}
	remove_folder(&folder);
}
