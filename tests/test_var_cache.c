/*
 * test_var_cache.c - handles that follow a variable: what a read gives, what a cache pins, and
 * which memory comes back.
 */
#include <criterion/criterion.h>

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <weir/stall.h>
#include <weir/var_cache.h>

#include "reclaim/admit.h"
#include "var/hold.h"
#include "variables.h"

static void destroy(weir_var *var)
{
	cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
	expect_nothing_left();
}

/* Reads by the cache, and expects this value and version. */
static const weir_read *expect_read(weir_var_cache *cache, int64_t value, uint64_t version)
{
	const weir_read *read = weir_var_cache_read(cache);

	cr_assert_not_null(read);
	cr_expect_eq(value_of(read), value);
	cr_expect_eq(read->version, version);
	return read;
}

Test(var_cache, follows_each_version)
{
	weir_var *var = variable(10);
	weir_var_cache cache;

	weir_var_cache_init(&cache, var);
	for (int64_t i = 0; i < 100; i++) {
		(void)expect_read(&cache, 10 + i, (uint64_t)i + 1);
		(void)expect_read(&cache, 10 + i, (uint64_t)i + 1);
		assign(var, 11 + i);
	}
	weir_var_cache_release(&cache);
	destroy(var);
}

Test(var_cache, takes_no_new_handle_while_nothing_changes)
{
	weir_var *var = variable(1);
	weir_var_cache cache;
	const void *hold;

	weir_var_cache_init(&cache, var);
	hold = expect_read(&cache, 1, 1)->hold;
	weir_read_release(&cache.read); /* as if it held nothing */
	cr_expect_eq(weir_var_cache_read(&cache), &cache.read);
	cr_expect_null(cache.read.hold, "nothing was read anew");
	cache.seen = NULL;
	cr_expect_eq(expect_read(&cache, 1, 1)->hold, hold, "the slot is free again");
	weir_var_cache_release(&cache);
	destroy(var);
}

Test(var_cache, reads_nothing_before_there_is_a_value)
{
	weir_var *var = empty_variable("empty");
	weir_var_cache cache;

	weir_var_cache_init(&cache, var);
	cr_expect_null(weir_var_cache_read(&cache));
	cr_expect_null(weir_var_cache_read(&cache));
	assign(var, 5);
	(void)expect_read(&cache, 5, 1);
	weir_var_cache_release(&cache);
	destroy(var);
}

Test(var_cache, accepts_what_holds_nothing)
{
	weir_var_cache none = {.var = NULL};

	weir_var_cache_init(NULL, NULL);
	weir_var_cache_release(NULL);
	cr_expect_null(weir_var_cache_refresh(NULL));
	weir_var_cache_release(&none);
	cr_expect_null(weir_var_cache_read(&none)); /* released */
	weir_var_cache_init(&none, NULL);
	cr_expect_null(weir_var_cache_read(&none)); /* without a variable */
	weir_var_cache_release(&none);
}

/* One version, however many come and go. */
Test(var_cache, pins_one_version)
{
	weir_var *var = variable(0);
	weir_var_cache cache;
	size_t before;

	weir_var_cache_init(&cache, var);
	(void)expect_read(&cache, 0, 1);
	cr_assert_eq(weir_reclaim_flush(0), WEIR_OK);
	before = weiri_load_relaxed(&variables_state.outstanding);
	for (int64_t i = 1; i <= 1000; i++)
		assign(var, i);
	cr_expect_eq(weir_reclaim_flush(0), WEIR_DEADLINE_EXCEEDED, "the cache holds version 1");
	cr_expect_eq(weiri_load_relaxed(&variables_state.outstanding), before + 2, "version 1 and its tensor");
	(void)expect_read(&cache, 1000, 1001);
	cr_expect_eq(weir_reclaim_flush(0), WEIR_OK);
	cr_expect_eq(weiri_load_relaxed(&variables_state.outstanding), before);
	weir_var_cache_release(&cache);
	destroy(var);
}

/* A released cache pins nothing, and can be used again. */
Test(var_cache, can_be_used_again)
{
	weir_var *var = variable(1), *other = variable(2);
	weir_var_cache cache;

	weir_var_cache_init(&cache, var);
	(void)expect_read(&cache, 1, 1);
	weir_var_cache_release(&cache);
	cr_expect_null(weir_var_cache_read(&cache));
	weir_var_cache_init(&cache, other);
	(void)expect_read(&cache, 2, 1);
	weir_var_cache_release(&cache);
	cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
	destroy(other);
}

/* More caches than there are slots: those beyond read anew, and are right. */
Test(var_cache, is_right_without_a_slot)
{
	enum { CACHES = WEIRI_SNAPSHOT_SLOTS + 3 };
	weir_var *var = variable(1);
	weir_var_cache caches[CACHES];

	for (size_t i = 0; i < CACHES; i++) {
		weir_var_cache_init(&caches[i], var);
		(void)expect_read(&caches[i], 1, 1);
	}
	cr_expect_not_null(caches[WEIRI_SNAPSHOT_SLOTS - 1].seen);
	cr_expect_null(caches[WEIRI_SNAPSHOT_SLOTS].seen);
	cr_expect_not_null(weiri_hold_value_of(&caches[CACHES - 1].read), "it has a reference");
	for (int64_t i = 2; i < 5; i++) {
		assign(var, i);
		for (size_t k = 0; k < CACHES; k++)
			(void)expect_read(&caches[k], i, (uint64_t)i);
	}
	for (size_t i = 0; i < CACHES; i++)
		weir_var_cache_release(&caches[i]);
	destroy(var);
}

/* The slots of single reads stay free, so that reads beside caches stay fast. */
Test(var_cache, leaves_the_slots_of_reads_alone)
{
	weir_var *var = variable(1);
	weir_var_cache caches[WEIRI_SLOTS + 1];
	weir_read read;

	for (size_t i = 0; i < WEIRI_SLOTS + 1; i++) {
		weir_var_cache_init(&caches[i], var);
		(void)expect_read(&caches[i], 1, 1);
	}
	cr_assert_eq(weir_var_read(var, &read), WEIR_OK);
	cr_expect_null(weiri_hold_value_of(&read), "it has a slot");
	weir_read_release(&read);
	for (size_t i = 0; i < WEIRI_SLOTS + 1; i++)
		weir_var_cache_release(&caches[i]);
	destroy(var);
}

static void *follow(void *var)
{
	weir_var_cache cache;
	int64_t last = 0;

	weir_var_cache_init(&cache, var);
	while (last < 20000) {
		const weir_read *read = weir_var_cache_read(&cache);

		cr_assert_not_null(read);
		cr_assert_geq(value_of(read), last, "a read never goes back");
		cr_assert_eq((uint64_t)value_of(read) + 1, read->version);
		last = value_of(read);
	}
	weir_var_cache_release(&cache);
	return NULL;
}

Test(var_cache, follows_beside_a_writer)
{
	weir_var *var = variable(0);
	pthread_t readers[2];

	for (size_t i = 0; i < 2; i++)
		cr_assert_eq(pthread_create(&readers[i], NULL, follow, var), 0);
	for (int64_t i = 1; i <= 20000; i++)
		assign(var, i);
	for (size_t i = 0; i < 2; i++)
		cr_assert_eq(pthread_join(readers[i], NULL), 0);
	destroy(var);
}

/* -- what a cache pins is found, and a writer that waits for it is woken ------------------------- */

static void count_handle(void *context, const struct weir_stall *stall)
{
	size_t *count = context;

	cr_expect_eq(stall->kind, WEIR_STALL_HANDLE);
	cr_expect_str_eq(stall->variable, "cached");
	cr_expect_eq(stall->version, 1);
	cr_expect_eq(stall->thread, weiri_record_thread(weiri_record_mine));
	++*count;
}

/* A cache that is not read any more is a stall, with the name of its variable. */
Test(var_cache, is_a_stall_once_its_version_is_replaced)
{
	weir_var *var = named_variable("cached", 1), *passing = named_variable("passing", 1);
	uint64_t until = weir_deadline_in(variables_patience_ns);
	weir_var_cache cache;
	size_t count = 0;

	weir_var_cache_init(&cache, var);
	(void)expect_read(&cache, 1, 1);
	assign(var, 2);
	for (int64_t i = 2; count == 0; i++) {
		cr_assert_lt(weir_now_ns(), until);
		assign(passing, i);
		cr_assert_eq(weir_stalls_visit(1000000, count_handle, &count, NULL), WEIR_OK);
	}
	(void)expect_read(&cache, 2, 2);
	count = 0;
	cr_assert_eq(weir_stalls_visit(0, count_handle, &count, NULL), WEIR_OK);
	cr_expect_eq(count, 0, "it has followed");
	weir_var_cache_release(&cache);
	cr_assert_eq(weir_var_destroy(passing, NULL), WEIR_OK);
	destroy(var);
}

struct left {
	weir_var *var;
	weir_var_cache cache;
};

static void *read_and_end(void *context)
{
	struct left *left = context;

	weir_var_cache_init(&left->cache, left->var);
	(void)expect_read(&left->cache, 1, 1);
	return NULL;
}

static void count_version_1(void *context, const struct weir_stall *stall)
{
	*(size_t *)context +=
		stall->kind == WEIR_STALL_HANDLE && strcmp(stall->variable, "left") == 0 && stall->version == 1;
}

/* A thread ends without a release: the cache goes on pinning its version, is a stall, and can be released by another. */
Test(var_cache, outlives_its_thread)
{
	struct left left = {.var = named_variable("left", 1)};
	pthread_t thread;
	size_t count = 0;

	cr_assert_eq(pthread_create(&thread, NULL, read_and_end, &left), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	assign(left.var, 2);
	cr_expect_eq(weir_reclaim_flush(0), WEIR_DEADLINE_EXCEEDED, "the cache holds version 1");
	cr_assert_eq(weir_stalls_visit(0, count_version_1, &count, NULL), WEIR_OK);
	cr_expect_eq(count, 1);
	weir_var_cache_release(&left.cache);
	cr_expect_eq(weir_reclaim_flush(0), WEIR_OK);
	destroy(left.var);
}

static void ignore(void *context, const struct weir_stall *stall)
{
	(void)context, (void)stall;
}

static void *write_over_the_budget(void *var)
{
	weir_tensor *tensor = number(3);

	cr_assert_eq(weir_var_assign(var, tensor, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	weir_tensor_release(tensor);
	return NULL;
}

/* A read that follows the variable gives up the old version, and wakes the writer that waits for it. */
Test(var_cache, wakes_a_writer_when_it_follows)
{
	weir_var *var = variable(1);
	uint64_t look_again = weiri_reclaim_look_again_ns, until = weir_deadline_in(variables_patience_ns);
	weir_var_cache cache;
	pthread_t writer;

	weiri_reclaim_look_again_ns = UINT64_C(1000000000000);
	weir_var_cache_init(&cache, var);
	(void)expect_read(&cache, 1, 1);
	assign(var, 2);
	cr_assert_eq(weir_stalls_visit(0, ignore, NULL, NULL), WEIR_OK); /* collects, so the bytes are reported */
	weir_reclaim_set_budget(1);
	cr_assert_eq(pthread_create(&writer, NULL, write_over_the_budget, var), 0);
	while (weiri_load_acquire(&weiri_record_mine->poke) == 0) {
		(void)sched_yield();
		cr_assert_lt(weir_now_ns(), until);
	}
	cr_expect_not_null(weir_var_cache_read(&cache));
	cr_assert_eq(pthread_join(writer, NULL), 0);
	weir_reclaim_set_budget(0);
	weiri_reclaim_look_again_ns = look_again;
	weir_var_cache_release(&cache);
	destroy(var);
}
