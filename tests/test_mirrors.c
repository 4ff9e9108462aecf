/*
 * test_mirrors.c - mirrors: copies of variables that change together, what is refused, and snapshots
 * beside writers.
 */
#include <criterion/criterion.h>

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <weir/mirrors.h>
#include <weir/reclaim.h>

#include "failing_allocator.h"
#include "graph_kit.h"

enum { MIRRORS = 3 };

/* Two variables, w [2] and step. */
static weir_mirrors *some_mirrors(const weir_allocator *allocator, enum weir_status *status, weir_error *error)
{
	weir_tensor *w = kit_tensor(WEIR_F32, kit_shape(1, 2), (const float[]){1, 2});
	weir_tensor *step = kit_i64(0);
	struct weir_mirrored variables[2] = {{"w", w, NULL}, {"step", step, NULL}};
	struct weir_mirrors_options options = {WEIR_MIRRORS_OPTIONS_INIT, .variables = variables, .variable_count = 2,
	                                       .allocator = allocator};
	weir_mirrors *mirrors = NULL;

	*status = weir_mirrors_create(MIRRORS, &options, &mirrors, error);
	weir_tensor_release(w);
	weir_tensor_release(step);
	return mirrors;
}

static weir_mirrors *good_mirrors(void)
{
	enum weir_status status;
	weir_error error;
	weir_mirrors *mirrors = some_mirrors(NULL, &status, &error);

	cr_assert_eq(status, WEIR_OK, "%s", error.message);
	return mirrors;
}

static void end_mirrors(weir_mirrors *mirrors)
{
	weir_error error;

	cr_assert_eq(weir_mirrors_destroy(mirrors, &error), WEIR_OK, "%s", error.message);
}

Test(mirrors, copies_have_names_and_the_initial_value)
{
	weir_mirrors *mirrors = good_mirrors();

	cr_assert_eq(weir_mirrors_size(mirrors), MIRRORS);
	cr_assert_eq(weir_mirrors_variable_count(mirrors), 2);
	cr_expect_str_eq(weir_var_name(weir_mirrors_var(mirrors, 0, 1)), "step");
	cr_expect_str_eq(weir_var_name(weir_mirrors_var(mirrors, 2, 0)), "w/mirror_2");
	cr_expect_null(weir_mirrors_var(mirrors, MIRRORS, 0));
	cr_expect_null(weir_mirrors_var(mirrors, 0, 2));
	for (size_t i = 0; i < MIRRORS; i++) {
		float second = kit_var_f32(weir_mirrors_var(mirrors, i, 0), 1);

		cr_expect_eq(second, 2.0f);
		cr_expect_eq(weir_mirrors_vars(mirrors)[MIRRORS + i], weir_mirrors_var(mirrors, i, 1));
	}
	end_mirrors(mirrors);
	cr_expect_eq(weir_mirrors_size(NULL) + weir_mirrors_variable_count(NULL), 0);
	cr_expect(weir_mirrors_var(NULL, 0, 0) == NULL && weir_mirrors_vars(NULL) == NULL);
	end_mirrors(NULL);
}

Test(mirrors, an_assign_changes_all_or_none)
{
	weir_mirrors *mirrors = good_mirrors();
	weir_tensor *values[2] = {kit_tensor(WEIR_F32, kit_shape(1, 2), (const float[]){5, 6}), kit_i64(1)};
	weir_tensor *unfit[2] = {values[0], kit_f32(1)}, *missing[2] = {values[0], NULL};
	weir_error error;

	cr_assert_eq(weir_mirrors_assign(mirrors, values, WEIR_NO_DEADLINE, &error), WEIR_OK, "%s", error.message);
	cr_expect_eq(weir_mirrors_assign(mirrors, unfit, WEIR_NO_DEADLINE, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_mirrors_assign(mirrors, missing, WEIR_NO_DEADLINE, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_mirrors_assign(mirrors, NULL, WEIR_NO_DEADLINE, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_mirrors_assign(NULL, values, WEIR_NO_DEADLINE, &error), WEIR_INVALID_ARGUMENT);
	for (size_t i = 0; i < MIRRORS; i++) {
		float first = kit_var_f32(weir_mirrors_var(mirrors, i, 0), 0);

		cr_expect_eq(first, 5.0f);
		cr_expect_eq(weir_var_version(weir_mirrors_var(mirrors, i, 0)), 2);
		cr_expect_eq(weir_var_version(weir_mirrors_var(mirrors, i, 1)), 2);
	}
	for (int i = 0; i < 2; i++)
		weir_tensor_release(values[i]);
	weir_tensor_release(unfit[1]);
	end_mirrors(mirrors);
}

static void refused(size_t n, struct weir_mirrored variables[], size_t count, const char *words)
{
	struct weir_mirrors_options options = {WEIR_MIRRORS_OPTIONS_INIT, .variables = variables, .variable_count = count};
	weir_mirrors *mirrors = NULL;
	weir_error error;

	cr_expect_eq(weir_mirrors_create(n, &options, &mirrors, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, words), "%s", error.message);
	cr_expect_null(mirrors);
}

Test(mirrors, bad_input)
{
	weir_tensor *one = kit_f32(1);
	const weir_shape vector = kit_shape(1, 3);
	struct weir_mirrored twice[2] = {{"w", one, NULL}, {"w", one, NULL}}, nameless = {NULL, one, NULL},
						 empty = {"w", NULL, NULL}, unfit = {"w", one, &vector};
	struct weir_mirrors_options options = {WEIR_MIRRORS_OPTIONS_INIT, .variables = twice, .variable_count = 1};
	weir_error error;

	refused(0, twice, 1, "no mirrors");
	refused(2, twice, 0, "no variables");
	refused(2, twice, 2, "two variables have the name \"w\"");
	refused(2, &nameless, 1, "name of variable 0 is missing");
	refused(2, &empty, 1, "\"w\" has no initial value");
	refused(2, &unfit, 1, "\"w\"");
	refused(WEIR_COMMIT_MAX_PARTS + 1, twice, 1, "more than the 1024 parts");
	cr_expect_eq(weir_mirrors_create(2, NULL, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_mirrors_create(2, &options, NULL, &error), WEIR_INVALID_ARGUMENT);
	weir_tensor_release(one);
}

static enum weir_status create_and_assign(const weir_allocator *allocator, void *context)
{
	weir_tensor **values = context;
	enum weir_status status;
	weir_mirrors *mirrors = some_mirrors(allocator, &status, NULL);

	if (status == WEIR_OK)
		status = weir_mirrors_assign(mirrors, values, WEIR_NO_DEADLINE, NULL);
	end_mirrors(mirrors);
	(void)weir_reclaim_flush(weir_deadline_in(KIT_PATIENCE_NS));
	return status;
}

Test(mirrors, each_allocation_may_fail)
{
	weir_tensor *values[2] = {kit_tensor(WEIR_F32, kit_shape(1, 2), (const float[]){5, 6}), kit_i64(1)};
	size_t allocations = fail_each_allocation(create_and_assign, values);

	cr_expect(allocations > 3 * MIRRORS, "%zu", allocations);
	for (int i = 0; i < 2; i++)
		weir_tensor_release(values[i]);
}

/* -- snapshots beside writers ------------------------------------------------------------------ */

enum { WRITES = 200, WRITERS = 2 };

static struct {
	weir_mirrors *mirrors;
	_Atomic(int) writing;
	_Atomic(int) failed;
} shared;

static void *write_many(void *context)
{
	int64_t mine = *(const int *)context;

	for (int64_t i = 0; i < WRITES; i++) {
		const float w[2] = {(float)(mine * WRITES + i), -(float)(mine * WRITES + i)};
		const weir_shape two = {.rank = 1, .dims = {2}};
		weir_tensor *values[2] = {NULL, NULL};

		if (weir_tensor_copy_of(WEIR_F32, &two, w, NULL, &values[0]) != WEIR_OK ||
		    weir_tensor_scalar_i64(mine * WRITES + i, &values[1]) != WEIR_OK ||
		    weir_mirrors_assign(shared.mirrors, values, WEIR_NO_DEADLINE, NULL) != WEIR_OK)
			atomic_store_explicit(&shared.failed, 1, memory_order_relaxed);
		weir_tensor_release(values[0]);
		weir_tensor_release(values[1]);
	}
	atomic_fetch_sub_explicit(&shared.writing, 1, memory_order_release);
	return NULL;
}

/* All copies of one instant must be of one version, and show one write. */
static void expect_equal(const weir_read reads[])
{
	for (size_t k = 0; k < 2 * MIRRORS; k++) {
		cr_assert_eq(reads[k].version, reads[0].version);
		cr_assert_eq(reads[k].tensor, reads[k / MIRRORS * MIRRORS].tensor);
	}
	if (reads[0].version > 1) {
		cr_assert_eq(kit_f32_at(reads[0].tensor, 0), (float)kit_i64_at(reads[MIRRORS].tensor, 0));
		cr_assert_eq(kit_f32_at(reads[0].tensor, 1), -(float)kit_i64_at(reads[MIRRORS].tensor, 0));
	}
}

Test(mirrors, no_snapshot_shows_two_that_differ)
{
	static const int numbers[WRITERS] = {0, 1};
	pthread_t threads[WRITERS];
	weir_read reads[2 * MIRRORS];
	bool more = true;

	shared.mirrors = good_mirrors();
	atomic_init(&shared.writing, WRITERS);
	for (int i = 0; i < WRITERS; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, write_many, (void *)(uintptr_t)&numbers[i]), 0);
	while (more) {
		more = atomic_load_explicit(&shared.writing, memory_order_acquire) != 0;
		cr_assert_eq(weir_var_snapshot(weir_mirrors_vars(shared.mirrors), 2 * MIRRORS, reads, NULL), WEIR_OK);
		expect_equal(reads);
		weir_read_release_many(reads, 2 * MIRRORS);
	}
	for (int i = 0; i < WRITERS; i++)
		cr_assert_eq(pthread_join(threads[i], NULL), 0);
	cr_expect_not(atomic_load_explicit(&shared.failed, memory_order_relaxed));
	cr_expect_eq(weir_var_version(weir_mirrors_var(shared.mirrors, 1, 1)), 1 + WRITERS * WRITES);
	end_mirrors(shared.mirrors);
}
