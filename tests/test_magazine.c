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
#include "reclaim_kit.h"
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
	cr_expect_eq(weiri_load_relaxed(&weiri_budget.kept), 0);
	cr_expect_eq(weiri_load_relaxed(&weiri_budget.of_kind[WEIRI_KEPT_MAGAZINES]), 0);
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
	cr_expect_leq(kept_bytes(), (1 << 20) / WEIRI_MAGAZINES_SHARE / 2);
	cr_expect_gt(kept_bytes(), 0);
	weir_reclaim_set_budget(0);
	end();
}

enum { BLOCK = 256 };

/* Has so many bytes at one time, and then frees them. */
static void free_bytes(size_t bytes)
{
	struct weiri_record *record = my_record();
	const weir_allocator *allocator = weir_default_allocator();
	void **blocks = calloc(bytes / BLOCK, sizeof(*blocks));

	cr_assert_not_null(blocks);
	for (size_t i = 0; i < bytes / BLOCK; i++) {
		blocks[i] = weiri_block_allocate(record, allocator, BLOCK);
		cr_assert_not_null(blocks[i]);
	}
	for (size_t i = 0; i < bytes / BLOCK; i++)
		weiri_block_release(allocator, blocks[i], BLOCK);
	free(blocks);
}

static uint64_t my_grant(void)
{
	return weiri_load_relaxed(&my_record()->magazine_grant);
}

enum { CROWD = 64, SMALL_BUDGET = 4 << 20, SMALL_SHARE = SMALL_BUDGET / WEIRI_MAGAZINES_SHARE };

/* Threads that keep what they can get, and end when they are told to. */
static struct crowd {
	_Atomic(uint32_t) kept, may_end;
	pthread_t threads[CROWD];
} crowd;

static void *keep_and_wait(void *unused)
{
	free_bytes(2 * MOST);
	advance(&crowd.kept);
	latch_pass(&crowd.may_end);
	return unused;
}

static void begin_crowd(size_t count)
{
	crowd = (struct crowd){.kept = 0};
	for (size_t i = 0; i < count; i++)
		crowd.threads[i] = start(keep_and_wait, NULL);
	wait_until(&crowd.kept, (uint32_t)count);
}

static void end_crowd(size_t count)
{
	latch_open(&crowd.may_end);
	for (size_t i = 0; i < count; i++)
		join(crowd.threads[i]);
}

Test(magazine, those_of_64_threads_have_an_eighth_of_the_budget)
{
	begin();
	weir_reclaim_set_budget(SMALL_BUDGET);
	begin_crowd(CROWD);
	cr_expect_leq(kept_bytes(), SMALL_SHARE);
	cr_expect_gt(kept_bytes(), SMALL_SHARE / 2);
	cr_expect_geq(weiri_load_relaxed(&weiri_budget.kept), (int64_t)kept_bytes(), "it is counted in the budget");
	end_crowd(CROWD);
	cr_expect_eq(kept_bytes(), 0);
	weir_reclaim_set_budget(0);
	end();
}

enum { SHARERS = 8, ROUNDS = 10 };

static struct sharers {
	pthread_barrier_t barrier;
	size_t grants[SHARERS];
} sharers;

/* Each thread in its turn frees more than it may keep, and is told that it has collected. */
static void *share_by_turns(void *me)
{
	size_t *grant = me;

	for (int turn = 0; turn < SHARERS * ROUNDS; turn++) {
		pthread_barrier_wait(&sharers.barrier);
		if (&sharers.grants[turn % SHARERS] != grant)
			continue;
		free_bytes(2 * MOST);
		weiri_magazine_after_collection(my_record());
	}
	pthread_barrier_wait(&sharers.barrier);
	*grant = my_grant();
	pthread_barrier_wait(&sharers.barrier);
	return NULL;
}

Test(magazine, threads_that_want_more_than_there_is_get_about_as_much_each)
{
	pthread_t threads[SHARERS];

	begin();
	weir_reclaim_set_budget(SMALL_BUDGET);
	cr_assert_eq(pthread_barrier_init(&sharers.barrier, NULL, SHARERS), 0);
	for (size_t i = 0; i < SHARERS; i++)
		threads[i] = start(share_by_turns, &sharers.grants[i]);
	for (size_t i = 0; i < SHARERS; i++)
		join(threads[i]);
	for (size_t i = 0; i < SHARERS; i++) {
		cr_expect_geq(sharers.grants[i], SMALL_SHARE / (SHARERS + 1) - WEIRI_MAGAZINE_UNIT, "thread %zu", i);
		cr_expect_leq(sharers.grants[i], SMALL_SHARE / (SHARERS + 1) + WEIRI_MAGAZINE_UNIT, "thread %zu", i);
	}
	pthread_barrier_destroy(&sharers.barrier);
	weir_reclaim_set_budget(0);
	end();
}

/* -- in the budget ----------------------------------------------------------------------------- */

/* A retired object that a slot of this thread holds. */
static void hold(size_t bytes, _Atomic(uint32_t) *freed)
{
	struct thing *thing = make(bytes, freed);

	weiri_slot_claim(&my_record()->slots[0], thing);
	weiri_retire(my_record(), &thing->retired);
}

static void let_go(void)
{
	weiri_slot_clear(&my_record()->slots[0]);
	flush_all();
}

Test(magazine, what_others_keep_counts_in_the_budget)
{
	_Atomic(uint32_t) freed = 0;

	begin();
	weir_reclaim_set_budget(SMALL_BUDGET);
	begin_crowd(1);
	cr_expect_eq(kept_bytes(), SMALL_SHARE / 2, "there is as much left");
	hold(SMALL_BUDGET - SMALL_SHARE / 2, &freed);
	cr_expect_eq(weiri_reclaim_admit(my_record(), 0), WEIR_OK);
	weir_reclaim_set_budget(SMALL_BUDGET - 1);
	cr_expect_eq(weiri_reclaim_admit(my_record(), 0), WEIR_RESOURCE_EXHAUSTED);
	end_crowd(1);
	cr_expect_eq(weiri_reclaim_admit(my_record(), 0), WEIR_OK);
	let_go();
	weir_reclaim_set_budget(0);
	end();
}

Test(magazine, a_writer_gives_its_own_back_before_it_is_refused)
{
	_Atomic(uint32_t) freed = 0;

	begin();
	weir_reclaim_set_budget(SMALL_BUDGET);
	free_bytes(2 * MOST);
	cr_expect_eq(kept_bytes(), SMALL_SHARE / 2);
	hold(SMALL_BUDGET, &freed);
	cr_expect_eq(weiri_reclaim_admit(my_record(), 0), WEIR_OK);
	cr_expect_eq(kept_bytes(), 0);
	free_bytes(MOST);
	cr_expect_eq(kept_bytes(), 0, "nothing is kept that would exceed the budget");
	let_go();
	free_bytes(MOST);
	cr_expect_gt(kept_bytes(), 0);
	weir_reclaim_set_budget(0);
	end();
}

Test(magazine, half_of_a_lowered_budget_is_there_for_what_is_retired)
{
	_Atomic(uint32_t) freed = 0;

	begin();
	begin_crowd(1);
	cr_expect_eq(kept_bytes(), MOST);
	hold(MOST / 2, &freed);
	weir_reclaim_set_budget(MOST);
	cr_expect_eq(weiri_reclaim_admit(my_record(), 0), WEIR_OK);
	weir_reclaim_set_budget(MOST - 2);
	cr_expect_eq(weiri_reclaim_admit(my_record(), 0), WEIR_RESOURCE_EXHAUSTED);
	end_crowd(1);
	let_go();
	weir_reclaim_set_budget(0);
	end();
}

static void expect_all_counted(void)
{
	const struct weiri_record *record = my_record();
	uint64_t bytes = 0;

	for (size_t list = 0; list < WEIRI_MAGAZINE_LISTS; list++) {
		const struct weiri_kept_block *block = weiri_load_relaxed(&record->magazine[list]);

		for (; block != NULL; block = block->next)
			bytes += (list + 1) * WEIRI_LINE;
	}
	cr_expect_eq(weiri_load_relaxed(&record->magazine_bytes), bytes);
}

Test(magazine, a_collection_gives_back_what_a_lowered_budget_leaves_no_room_for)
{
	begin();
	free_bytes(2 * MOST);
	cr_expect_eq(my_grant(), MOST);
	weir_reclaim_set_budget(SMALL_BUDGET / 2);
	cr_expect_eq(weir_reclaim_flush(WEIR_NO_DEADLINE), WEIR_OK);
	cr_expect_eq(my_grant(), MOST, "nothing was there to collect");
	assign_words();
	cr_expect_eq(weir_reclaim_flush(WEIR_NO_DEADLINE), WEIR_OK);
	cr_expect_eq(my_grant(), SMALL_SHARE / 2 / 2);
	cr_expect_leq(kept_bytes(), my_grant());
	cr_expect_gt(kept_bytes(), my_grant() - WEIRI_MAGAZINE_UNIT);
	expect_all_counted();
	weir_reclaim_set_budget(0);
	end();
}

Test(magazine, the_block_for_which_a_grant_grows_is_kept)
{
	enum { SIZE = 2 * WEIRI_LINE };
	struct weiri_record *record = my_record();

	begin();
	weiri_magazine_end(record);
	weiri_block_release(weir_default_allocator(), weiri_block_allocate(record, weir_default_allocator(), SIZE), SIZE);
	cr_expect_eq(weiri_load_relaxed(&record->magazine_bytes), SIZE);
	end();
}

Test(magazine, what_the_rest_of_a_grant_holds_is_kept)
{
	enum { COUNT = WEIRI_MAGAZINE_UNIT / WEIRI_LINE + 1 };
	struct weiri_record *record = my_record();
	static void *blocks[COUNT];

	begin();
	weiri_magazine_end(record);
	for (int i = 0; i < COUNT; i++)
		blocks[i] = weiri_block_allocate(record, weir_default_allocator(), WEIRI_LINE);
	for (int i = 0; i < COUNT; i++)
		weiri_block_release(weir_default_allocator(), blocks[i], WEIRI_LINE);
	blocks[0] = weiri_block_allocate(record, weir_default_allocator(), WEIRI_LINE);
	cr_expect_eq(my_grant(), 2 * WEIRI_MAGAZINE_UNIT);
	cr_expect_eq(weiri_load_relaxed(&record->magazine_bytes), WEIRI_MAGAZINE_UNIT);
	weir_reclaim_set_budget(3 * WEIRI_MAGAZINE_UNIT * WEIRI_MAGAZINES_SHARE);
	weiri_magazine_after_collection(record);
	cr_expect_eq(my_grant(), WEIRI_MAGAZINE_UNIT);
	cr_expect_eq(weiri_load_relaxed(&record->magazine_bytes), WEIRI_MAGAZINE_UNIT);
	weir_reclaim_set_budget(0);
	weiri_block_release(weir_default_allocator(), blocks[0], WEIRI_LINE);
	end();
}

Test(magazine, what_is_kept_may_fill_the_budget_and_not_exceed_it)
{
	begin();
	flush_all();
	weir_reclaim_set_budget(SMALL_BUDGET);
	cr_expect(weiri_budget_keep(WEIRI_KEPT_SPARES, SMALL_BUDGET, SMALL_BUDGET));
	cr_expect_not(weiri_budget_keep(WEIRI_KEPT_MAGAZINES, 1, SMALL_BUDGET));
	weiri_budget_give(WEIRI_KEPT_SPARES, SMALL_BUDGET);
	weir_reclaim_set_budget(0);
	end();
}

Test(magazine, a_budget_too_small_for_a_unit_keeps_nothing)
{
	begin();
	weir_reclaim_set_budget(2 * WEIRI_MAGAZINE_UNIT * WEIRI_MAGAZINES_SHARE - 1);
	free_bytes(MOST);
	cr_expect_eq(kept_bytes(), 0);
	weir_reclaim_set_budget(2 * WEIRI_MAGAZINE_UNIT * WEIRI_MAGAZINES_SHARE);
	free_bytes(MOST);
	cr_expect_eq(kept_bytes(), WEIRI_MAGAZINE_UNIT);
	weir_reclaim_set_budget(0);
	end();
}

/* -- threads and processes that end ------------------------------------------------------------ */

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

/* As if a thread had ended between a count and what it counts, and another were not in the child. */
Test(magazine, the_child_of_a_fork_frees_what_threads_of_its_parent_kept_and_counts_anew)
{
	int status = -1;
	pid_t child;

	begin();
	begin_crowd(2);
	free_bytes(MOST);
	weiri_fetch_add_relaxed(&weiri_budget.kept, 1000);
	weiri_fetch_add_relaxed(&weiri_budget.of_kind[WEIRI_KEPT_MAGAZINES], 100);
	child = fork();
	if (child == 0) {
		int64_t counted = weiri_load_relaxed(&weiri_budget.kept);

		assign_words();
		(void)weir_reclaim_flush(WEIR_NO_DEADLINE);
		if (counted != 3 * MOST)
			_exit(1);
		if (kept_bytes() > MOST || my_grant() != MOST)
			_exit(2);
		_exit(weiri_load_relaxed(&weiri_budget.kept) == MOST ? 0 : 3);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect_eq(status, 0);
	weiri_fetch_sub_relaxed(&weiri_budget.kept, 1000);
	weiri_fetch_sub_relaxed(&weiri_budget.of_kind[WEIRI_KEPT_MAGAZINES], 100);
	end_crowd(2);
	end();
}
