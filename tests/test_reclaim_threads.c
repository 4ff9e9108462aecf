/*
 * test_reclaim_threads.c - reclamation beside other threads: the era that is begun ahead of a
 * collection, threads that end, membarrier that Linux refuses, and no memory for a record.
 */
#include "no_memory.h"
#include "reclaim_kit.h"

#include "refuse_membarrier.h"
#include "variables.h"

/* -- the era that is begun ahead of a collection ----------------------------------------------- */

enum { THING_BYTES = 1024, A_ROUND = 10000 };

static uint64_t era_now(void)
{
	return weiri_load_seq_cst(&weiri_era);
}

static uint64_t since_collection(void)
{
	return weiri_load_relaxed(&my_record()->since_collection);
}

/* A thing, the eras after its retirement, and what the thread had then retired since its last collection. */
static uint64_t retire_one(_Atomic(uint32_t) *freed, uint64_t *since)
{
	uint64_t era = era_now();

	retire_things(1, THING_BYTES, freed);
	*since = since_collection();
	return era_now() - era;
}

/* Retires things until the thread begins an era ahead. Returns how many. */
static uint32_t retire_until_an_era_begins(_Atomic(uint32_t) *freed)
{
	uint64_t since;

	for (uint32_t count = 1; count < A_ROUND; count++) {
		if (retire_one(freed, &since) != 0) {
			cr_assert_neq(since, 0, "a collection, and no era before it");
			return count;
		}
	}
	cr_assert_fail("no era begins");
	return 0;
}

/* Retires things until this thread collects. Returns how many. No era begins before the collection. */
static uint32_t retire_until_a_collection(_Atomic(uint32_t) *freed)
{
	uint64_t since;

	for (uint32_t count = 1; count < A_ROUND; count++) {
		uint64_t begun = retire_one(freed, &since);

		cr_assert_eq(begun, since == 0, "%u eras begin with %u bytes", (unsigned)begun, (unsigned)since);
		if (since == 0)
			return count;
	}
	cr_assert_fail("no collection");
	return 0;
}

Test(reclaim, a_thread_begins_one_era_ahead_of_each_collection)
{
	_Atomic(uint32_t) freed = 0;

	flush_all();
	cr_assert_eq(since_collection(), 0);
	for (int round = 0; round < 3; round++) {
		uint32_t before = retire_until_an_era_begins(&freed), after = retire_until_a_collection(&freed);

		cr_expect_eq(before, 3 * after, "at three quarters, not at %u of %u", before, before + after);
	}
	flush_all();
}

struct reading {
	_Atomic(uint32_t) is_inside, may_leave;
};

static void *be_in_a_section(void *context)
{
	struct reading *reading = context;
	struct weiri_record *record = my_record();
	uint64_t outer = weiri_section_enter(record);

	latch_open(&reading->is_inside);
	latch_pass(&reading->may_leave);
	weiri_section_leave(record, outer);
	return NULL;
}

Test(reclaim, a_section_that_begins_after_that_era_does_not_hold_what_died_before)
{
	struct reading reading = {0};
	_Atomic(uint32_t) freed = 0;
	uint32_t before, after;
	pthread_t reader;

	flush_all();
	before = retire_until_an_era_begins(&freed);
	reader = start(be_in_a_section, &reading);
	latch_pass(&reading.is_inside);
	after = retire_until_a_collection(&freed);
	cr_expect_eq(count_of(&freed), before, "freed %u, not %u", count_of(&freed), before);
	latch_open(&reading.may_leave);
	join(reader);
	flush_all();
	cr_expect_eq(count_of(&freed), before + after);
}

/* -- threads that end -------------------------------------------------------------------------- */

static void *retire_and_end(void *context)
{
	retire_things(10, 1000, context);
	return NULL;
}

Test(reclaim, what_a_thread_left_is_freed_by_others)
{
	_Atomic(uint32_t) freed = 0;

	join(start(retire_and_end, &freed));
	flush_all();
	cr_expect_eq(count_of(&freed), 10);
	cr_expect_eq(stats_now().retired_bytes, 0);
}

Test(reclaim, a_new_thread_takes_over_the_record_of_one_that_ended)
{
	_Atomic(uint32_t) freed = 0;
	uint64_t threads;

	join(start(retire_and_end, &freed));
	threads = stats_now().threads;
	for (int i = 0; i < 50; i++)
		join(start(retire_and_end, &freed));
	cr_expect_eq(stats_now().threads, threads);
	flush_all();
	cr_expect_eq(count_of(&freed), 510);
}

static void *occupy_all_slots(void *context)
{
	struct weiri_record *record = my_record();

	for (unsigned i = 0; i < WEIRI_SLOTS; i++)
		weiri_slot_claim(weiri_slot_find(record), context);
	return record;
}

static void *find_no_slot(void *context)
{
	cr_expect_eq(my_record(), context, "the record was not taken over");
	cr_expect_null(weiri_slot_find(my_record()), "slots were lost with the thread that claimed them");
	return NULL;
}

Test(reclaim, slots_outlive_their_thread)
{
	_Atomic(uint32_t) freed = 0;
	struct thing *thing = make(100, &freed);
	struct weiri_record *record;
	void *left = NULL;

	(void)my_record();
	cr_assert_eq(pthread_join(start(occupy_all_slots, thing), &left), 0);
	record = left;
	join(start(find_no_slot, record));
	weiri_retire(my_record(), &thing->retired);
	for (unsigned i = 0; i < WEIRI_SLOTS; i++) {
		cr_expect_eq(weir_reclaim_flush(0), WEIR_DEADLINE_EXCEEDED);
		weiri_slot_clear(&record->slots[i]);
	}
	flush_all();
	cr_expect_eq(count_of(&freed), 1);
}

/*
 * Keys with destructors. One is created before the library's own key, one after it.
 */
static pthread_key_t early_key, late_key;
static _Atomic(uint32_t) destroyed_freed;

static void use_in_a_destructor(void *unused)
{
	(void)unused;
	retire_things(1, 100, &destroyed_freed);
}

static void *end_with_destructors(void *unused)
{
	(void)my_record();
	cr_assert_eq(pthread_setspecific(early_key, &early_key), 0);
	cr_assert_eq(pthread_setspecific(late_key, &late_key), 0);
	return unused;
}

Test(reclaim, destructors_of_an_ending_thread_may_go_on)
{
	uint64_t threads;

	cr_assert_eq(pthread_key_create(&early_key, use_in_a_destructor), 0);
	(void)my_record();
	cr_assert_eq(pthread_key_create(&late_key, use_in_a_destructor), 0);
	weiri_store_relaxed(&destroyed_freed, 0u);
	join(start(end_with_destructors, NULL));
	threads = stats_now().threads;
	for (int i = 0; i < 20; i++)
		join(start(end_with_destructors, NULL));
	cr_expect_eq(stats_now().threads, threads, "a record was not given up");
	flush_all();
	cr_expect_eq(count_of(&destroyed_freed), 42);
	cr_assert_eq(pthread_key_delete(early_key), 0);
	cr_assert_eq(pthread_key_delete(late_key), 0);
}

/* -- membarrier refused ------------------------------------------------------------------------ */

static int reclaim_without_membarrier(void)
{
	_Atomic(uint32_t) freed = 0;

	if (!refuse_membarrier())
		return SANDBOX_NOT_HERE;
	weiri_fence_after_fork();
	retire_things(1, 100, &freed);
	if (weir_reclaim_flush(weir_deadline_in(patience_ns)) != WEIR_OK)
		return 1;
	return count_of(&freed) == 1 ? SANDBOX_HELD : 2;
}

Test(reclaim, membarrier_is_not_needed)
{
	in_a_sandbox(reclaim_without_membarrier);
}

static int reclaim_when_it_is_refused_late(void)
{
	_Atomic(uint32_t) freed = 0;

	if (weiri_record_get() == NULL || weiri_load_relaxed(&weiri_fence_asymmetric) == 0 || !refuse_membarrier())
		return SANDBOX_NOT_HERE;
	retire_things(1, LARGE, &freed);
	return weir_reclaim_flush(0) == WEIR_OK && count_of(&freed) == 1 ? SANDBOX_HELD : 1;
}

Test(reclaim, when_membarrier_is_refused_late_readers_go_on_without)
{
	in_a_sandbox(reclaim_when_it_is_refused_late);
}

/* -- no memory for a record -------------------------------------------------------------------- */

struct occupants {
	_Atomic(uint32_t) registered, leave;
};

static void *occupy_a_record(void *context)
{
	struct occupants *occupants = context;

	(void)my_record();
	advance(&occupants->registered);
	latch_pass(&occupants->leave);
	return NULL;
}

static void *use_without_memory(void *context)
{
	weir_var *var = context;
	weir_read read;

	weiri_store_relaxed(&no_memory, 1u);
	cr_expect_eq(weir_var_read(var, &read), WEIR_RESOURCE_EXHAUSTED);
	cr_expect_eq(weir_var_snapshot(&var, 1, &read, NULL), WEIR_RESOURCE_EXHAUSTED);
	cr_expect_eq(weir_reclaim_flush(0), WEIR_RESOURCE_EXHAUSTED);
	cr_expect_null(weiri_record_get());
	weiri_store_relaxed(&no_memory, 0u);
	cr_expect_eq(weir_var_read(var, &read), WEIR_OK, "memory has come back");
	cr_expect_eq(value_of(&read), 3);
	weir_read_release(&read);
	return NULL;
}

Test(reclaim, no_memory_for_a_record_is_a_status)
{
	enum { MOST = 300 };
	struct occupants occupants = {.registered = 0};
	weir_var *var = variable(3);
	uint64_t records = stats_now().threads;
	pthread_t threads[MOST];
	uint32_t count = 0;

	/* Until there is no record left that a new thread could adopt. */
	while (stats_now().threads == records) {
		cr_assert_lt(count, MOST);
		threads[count] = start(occupy_a_record, &occupants);
		wait_until(&occupants.registered, ++count);
	}
	join(start(use_without_memory, var));
	latch_open(&occupants.leave);
	while (count != 0)
		join(threads[--count]);
	weir_var_destroy(var, NULL);
	expect_nothing_left();
}
