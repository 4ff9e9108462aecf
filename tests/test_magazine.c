/*
 * test_magazine.c - the freed blocks that threads keep: writes in the steady state do not call the
 * allocator, and what is kept is bounded, counted, and freed when its thread ends.
 *
 * This program defines the two calls of jemalloc that the default allocator uses, and counts them.
 * Each test sets the limit of the magazines itself, also in sanitizer builds, where it is 0.
 */
#include <criterion/criterion.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/wait.h>
#include <weir/value.h>

#include "reclaim/magazine.h"
#include "variables.h"

static _Atomic(uint64_t) allocations;

void *mallocx(size_t size, int flags);
void sdallocx(void *memory, size_t size, int flags);

void *mallocx(size_t size, int flags)
{
	size_t alignment = (size_t)1 << (flags & 63);

	weiri_fetch_add_relaxed(&allocations, 1u);
	return aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

void sdallocx(void *memory, size_t size, int flags)
{
	(void)size, (void)flags;
	free(memory);
}

enum { MOST = 256 << 10, WARM_UP = 3000, MEASURED = 3000 };

struct words {
	uint64_t word[8];
};

static weir_var *words_variable(size_t history, const weir_allocator *allocator)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .kind = WEIR_VAR_INLINE, .size = sizeof(struct words),
	                                   .history = history, .allocator = allocator};
	struct words first = {{0}};
	weir_var *var = NULL;

	cr_assert_eq(weir_var_create_value(WEIR_VALUE_OF(first), &options, &var, NULL), WEIR_OK);
	return var;
}

static weir_var *vars[2];

static void begin(void)
{
	weiri_magazine_most = MOST;
	for (int i = 0; i < 2; i++)
		vars[i] = words_variable(0, NULL);
}

static void end(void)
{
	for (int i = 0; i < 2; i++)
		cr_assert_eq(weir_var_destroy(vars[i], NULL), WEIR_OK);
	expect_nothing_left();
	weiri_magazine_end(weiri_record_get());
}

static uint64_t kept_bytes(void)
{
	struct weir_reclaim_stats stats = {WEIR_RECLAIM_STATS_INIT};

	cr_assert_eq(weir_reclaim_get_stats(&stats), WEIR_OK);
	return stats.kept_bytes;
}

/* -- the steady state -------------------------------------------------------------------------- */

static void assign_words(void)
{
	struct words next = {{1}};

	cr_assert_eq(weir_var_assign_value(vars[0], WEIR_VALUE_OF(next), WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
}

static void compare_assign_words(void)
{
	struct words next = {{2}};

	cr_assert_eq(weir_var_compare_assign_value(vars[0], weir_var_version(vars[0]), WEIR_VALUE_OF(next),
	                                           WEIR_NO_DEADLINE, NULL, NULL),
	             WEIR_OK);
}

static enum weir_status add_one(void *context, const weir_read *current, weir_value *next, weir_error *error)
{
	(void)context, (void)current, (void)error;
	((struct words *)next->room)->word[0]++;
	return WEIR_OK;
}

static void update_words(void)
{
	cr_assert_eq(weir_var_update_value(vars[0], add_one, NULL, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
}

static void exchange_words(void)
{
	struct words next = {{3}};
	weir_read replaced;

	cr_assert_eq(weir_var_exchange_value(vars[0], WEIR_VALUE_OF(next), WEIR_NO_DEADLINE, &replaced, NULL), WEIR_OK);
	weir_read_release(&replaced);
}

static void commit_words(void)
{
	struct words next = {{4}};
	struct weir_value_part parts[2] = {{vars[0], weir_var_version(vars[0]), WEIR_VALUE_OF(next)},
	                                   {vars[1], weir_var_version(vars[1]), WEIR_VALUE_OF(next)}};

	cr_assert_eq(weir_var_commit_values(parts, 2, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
}

static enum weir_status move_words(void *context, weir_txn *txn, weir_error *error)
{
	struct words next = {{5}};
	weir_value found;

	(void)context;
	cr_assert_eq(weir_txn_read_value(txn, vars[0], &found, error), WEIR_OK);
	return weir_txn_assign_value(txn, vars[1], WEIR_VALUE_OF(next), error);
}

static void run_transaction(void)
{
	cr_assert_eq(weir_txn_run(NULL, move_words, NULL, WEIR_NO_DEADLINE, NULL), WEIR_OK);
}

static weir_var *pointer;

static void assign_a_pointer(void)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .kind = WEIR_VAR_POINTER};

	if (pointer == NULL)
		cr_assert_eq(weir_var_create(NULL, &options, &pointer, NULL), WEIR_OK);
	cr_assert_eq(weir_var_assign_value(pointer, weir_value_pointer(&options), WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
}

static void expect_no_allocation(void (*write)(void), const char *what)
{
	uint64_t before;

	for (int i = 0; i < WARM_UP; i++)
		write();
	before = weiri_load_relaxed(&allocations);
	for (int i = 0; i < MEASURED; i++)
		write();
	cr_expect_eq(weiri_load_relaxed(&allocations) - before, 0, "%s", what);
}

Test(magazine, writes_in_the_steady_state_do_not_call_the_allocator)
{
	begin();
	cr_expect_gt(weiri_load_relaxed(&allocations), 0, "the default allocator is counted");
	expect_no_allocation(assign_words, "assign");
	expect_no_allocation(compare_assign_words, "compare_assign");
	expect_no_allocation(update_words, "update");
	expect_no_allocation(exchange_words, "exchange");
	expect_no_allocation(commit_words, "commit");
	expect_no_allocation(run_transaction, "transaction");
	expect_no_allocation(assign_a_pointer, "a pointer");
	cr_assert_eq(weir_var_destroy(pointer, NULL), WEIR_OK);
	end();
}

/* -- bounds ------------------------------------------------------------------------------------ */

/* Frees more versions at once than a magazine keeps. */
static void free_many(void)
{
	enum { MANY = 3 };
	weir_var *many[MANY];

	for (int i = 0; i < MANY; i++) {
		many[i] = words_variable(WEIR_VAR_MAX_HISTORY, NULL);
		for (int j = 0; j < WEIR_VAR_MAX_HISTORY; j++) {
			struct words next = {{(uint64_t)j}};

			cr_assert_eq(weir_var_assign_value(many[i], WEIR_VALUE_OF(next), WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
		}
	}
	for (int i = 0; i < MANY; i++)
		cr_assert_eq(weir_var_destroy(many[i], NULL), WEIR_OK);
	collect_now();
}

Test(magazine, what_is_kept_is_bounded_and_counted)
{
	begin();
	free_many();
	cr_expect_leq(kept_bytes(), MOST);
	cr_expect_gt(kept_bytes(), MOST / 2);
	end();
	cr_expect_eq(kept_bytes(), 0);
}

Test(magazine, a_small_budget_keeps_less)
{
	begin();
	weir_reclaim_set_budget(1 << 20);
	free_many();
	cr_expect_leq(kept_bytes(), (1 << 20) / WEIRI_MAGAZINE_SHARE);
	weir_reclaim_set_budget(0);
	end();
}

Test(magazine, blocks_of_another_size_take_the_place_of_unused_ones)
{
	begin();
	free_many();
	expect_no_allocation(commit_words, "commit after many writes of one variable");
	end();
}

Test(magazine, blocks_of_another_allocator_are_not_kept)
{
	weir_var *var;
	uint64_t before;

	begin();
	collect_now();
	before = kept_bytes();
	var = words_variable(0, &variables_memory);
	for (int i = 0; i < 100; i++) {
		struct words next = {{7}};

		cr_assert_eq(weir_var_assign_value(var, WEIR_VALUE_OF(next), WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	}
	cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
	collect_now();
	cr_expect_eq(kept_bytes(), before);
	end();
}

static void *write_and_end(void *context)
{
	for (int i = 0; i < 1000; i++)
		assign_words();
	collect_now();
	*(uint64_t *)context = kept_bytes();
	return NULL;
}

Test(magazine, a_thread_that_ends_frees_what_it_keeps)
{
	uint64_t before, during = 0;
	pthread_t thread;

	begin();
	before = kept_bytes();
	cr_assert_eq(pthread_create(&thread, NULL, write_and_end, &during), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_expect_gt(during, before);
	cr_expect_eq(kept_bytes(), before);
	end();
}

/* The child goes on with the blocks of its thread, and another thread adopts the record of one that is gone. */
Test(magazine, the_child_of_a_fork_writes_on)
{
	int status = -1;
	pid_t child;

	begin();
	for (int i = 0; i < 1000; i++)
		assign_words();
	child = fork();
	if (child == 0) {
		for (int i = 0; i < 1000; i++) {
			assign_words();
			commit_words();
		}
		_exit(kept_bytes() <= MOST ? 0 : 1);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect_eq(status, 0);
	end();
}
