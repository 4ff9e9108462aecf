/*
 * test_reclaim_budget.c - the bytes that are retired: how they are counted, the budget that bounds
 * them, and a collector that stops.
 */
#include "reclaim_kit.h"

#include <inttypes.h>
#include <time.h>

#include "variables.h"

/* -- the budget -------------------------------------------------------------------------------- */

Test(reclaim, the_budget_is_set_and_restored)
{
	cr_expect_eq(weir_reclaim_budget(), WEIR_RECLAIM_DEFAULT_BUDGET);
	weir_reclaim_set_budget(12345);
	cr_expect_eq(weir_reclaim_budget(), 12345);
	weir_reclaim_set_budget(0);
	cr_expect_eq(weir_reclaim_budget(), WEIR_RECLAIM_DEFAULT_BUDGET);
	weir_reclaim_set_budget(UINT64_MAX);
	cr_expect_eq(weir_reclaim_budget(), INT64_MAX);
	cr_expect_eq(weiri_reclaim_admit(my_record(), 0), WEIR_OK);
	weir_reclaim_set_budget(0);
}

Test(reclaim, admission_is_refused_over_the_budget_and_comes_back)
{
	struct weiri_record *record = my_record();
	_Atomic(uint32_t) freed = 0;
	struct thing *held = make(LARGE, &freed);

	weir_reclaim_set_budget(LARGE - 1);
	cr_expect_eq(weiri_reclaim_admit(record, 0), WEIR_OK);
	weiri_slot_claim(&record->slots[0], held);
	weiri_retire(record, &held->retired);
	cr_expect_eq(weiri_reclaim_admit(record, 0), WEIR_RESOURCE_EXHAUSTED);
	cr_expect_eq(weiri_reclaim_admit(record, weir_deadline_in(3000000)), WEIR_RESOURCE_EXHAUSTED);
	weir_reclaim_set_budget(LARGE);
	cr_expect_eq(weiri_reclaim_admit(record, 0), WEIR_OK, "exactly the budget is not over it");
	weir_reclaim_set_budget(LARGE - 1);
	weiri_slot_clear(&record->slots[0]);
	cr_expect_eq(weiri_reclaim_admit(record, 0), WEIR_OK, "it collects by itself");
	cr_expect_eq(count_of(&freed), 1);
	weir_reclaim_set_budget(0);
}

enum { KEEPERS = 4, TIMES = 300000 };

static _Atomic(uint32_t) keepers_begin;

static void *keep_many_times(void *unused)
{
	latch_pass(&keepers_begin);
	for (int i = 0; i < TIMES; i++)
		cr_assert(weiri_budget_keep(WEIRI_KEPT_MAGAZINES, 1, UINT32_MAX));
	return unused;
}

Test(reclaim, what_threads_keep_at_one_time_is_all_counted)
{
	int64_t of_all = weiri_load_relaxed(&weiri_budget.kept);
	int64_t of_kind = weiri_load_relaxed(&weiri_budget.of_kind[WEIRI_KEPT_MAGAZINES]);
	const int64_t more = (int64_t)KEEPERS * TIMES;
	pthread_t keepers[KEEPERS];

	weiri_store_relaxed(&keepers_begin, 0u);
	for (int i = 0; i < KEEPERS; i++)
		keepers[i] = start(keep_many_times, NULL);
	latch_open(&keepers_begin);
	for (int i = 0; i < KEEPERS; i++)
		join(keepers[i]);
	cr_expect_eq(weiri_load_relaxed(&weiri_budget.kept), of_all + more);
	cr_expect_eq(weiri_load_relaxed(&weiri_budget.of_kind[WEIRI_KEPT_MAGAZINES]), of_kind + more);
	weiri_budget_give(WEIRI_KEPT_MAGAZINES, (uint64_t)more);
}

struct waiting {
	_Atomic(uint32_t) begun;
	enum weir_status status;
};

static void *wait_for_admission(void *context)
{
	struct waiting *waiting = context;
	struct weiri_record *record = weiri_record_get();

	cr_assert_not_null(record);
	latch_open(&waiting->begun);
	waiting->status = weiri_reclaim_admit(record, weir_deadline_in(patience_ns));
	return NULL;
}

static int is_poked(struct weiri_record *record)
{
	return weiri_load_relaxed(&record->poke) != 0;
}

Test(reclaim, a_released_slot_lets_a_waiting_writer_in)
{
	struct waiting waiting = {.status = WEIR_INTERNAL};
	struct weiri_record *record = my_record();
	_Atomic(uint32_t) freed = 0;
	struct thing *held = make(LARGE, &freed);
	uint64_t deadline = weir_deadline_in(patience_ns);
	pthread_t writer;

	weir_reclaim_set_budget(1000);
	weiri_slot_claim(&record->slots[0], held);
	weiri_retire(record, &held->retired);
	writer = start(wait_for_admission, &waiting);
	latch_pass(&waiting.begun);
	while (!is_poked(record))
		cr_assert_lt(weir_now_ns(), deadline, "the writer asks no thread to wake it");
	weiri_slot_clear(&record->slots[0]);
	join(writer);
	cr_expect_eq(waiting.status, WEIR_OK);
	cr_expect_eq(count_of(&freed), 1);
	weir_reclaim_set_budget(0);
}

/* A writer that waits until its deadline. */
struct late {
	uint64_t deadline_ns;
	enum weir_status status;
};

static void *wait_until_a_deadline(void *context)
{
	struct late *late = context;

	late->status = weiri_reclaim_admit(my_record(), late->deadline_ns);
	return NULL;
}

/* Its pauses grow, and no wake-up ends them. */
Test(reclaim, a_writer_is_admitted_by_room_that_came_in_its_last_pause)
{
	enum { ROUNDS = 5, BEFORE_NS = 2000000 };
	struct weiri_record *record = my_record();
	_Atomic(uint32_t) freed = 0;

	weiri_slot_claim(&record->slots[0], make(LARGE, &freed));
	weiri_retire(record, weiri_load_relaxed(&record->slots[0].object));
	for (int i = 0; i < ROUNDS; i++) {
		struct late late = {.deadline_ns = weir_deadline_in(100000000)};
		pthread_t writer;
		bool in_time;

		weir_reclaim_set_budget(LARGE - 1);
		writer = start(wait_until_a_deadline, &late);
		while (weir_now_ns() + BEFORE_NS < late.deadline_ns)
			;
		weir_reclaim_set_budget(LARGE);
		in_time = weir_now_ns() < late.deadline_ns;
		join(writer);
		cr_expect(!in_time || late.status == WEIR_OK);
	}
	weiri_slot_clear(&record->slots[0]);
	weir_reclaim_set_budget(0);
	flush_all();
	cr_expect_eq(count_of(&freed), 1);
}

/*
 * Wakes the threads that wait for memory, over and over. It does not release what the writer waits
 * for.
 */
static void *clear_slots(void *context)
{
	struct waiting *waiting = context;
	struct weiri_record *record = my_record();

	while (weiri_load_acquire(&waiting->begun) == 0) {
		struct weiri_slot *slot = weiri_slot_find(record);

		weiri_slot_claim(slot, record);
		weiri_slot_clear(slot);
	}
	return NULL;
}

static uint64_t own_processor_ns(void)
{
	struct timespec now;

	cr_assert_eq(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now), 0);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

Test(reclaim, a_writer_that_waits_for_memory_backs_off)
{
	const uint64_t wait_ns = 500000000, look_ns = 5000000, first_looks = 150;
	struct waiting waiting = {.status = WEIR_INTERNAL};
	struct weiri_record *record = my_record();
	_Atomic(uint32_t) freed = 0;
	uint64_t began, took, processor, looks;
	pthread_t waker;

	retire_things(1, LARGE, &freed);
	weiri_slot_claim(&record->slots[0], make(LARGE, &freed));
	weiri_retire(record, weiri_load_relaxed(&record->slots[0].object));
	weir_reclaim_set_budget(1000);
	waker = start(clear_slots, &waiting);
	looks = stats_now().collections;
	began = weir_now_ns();
	processor = own_processor_ns();
	cr_expect_eq(weiri_reclaim_admit(record, weir_deadline_in(wait_ns)), WEIR_RESOURCE_EXHAUSTED);
	took = weir_now_ns() - began;
	processor = own_processor_ns() - processor;
	looks = stats_now().collections - looks;
	weiri_store_release(&waiting.begun, 1u);
	join(waker);
	cr_expect_leq(looks, first_looks + took / look_ns, "%" PRIu64 " looks in %" PRIu64 " ms", looks, took / 1000000);
	cr_expect_leq(processor, took / 4, "%" PRIu64 " of %" PRIu64 " ns on the processor", processor, took);
	weiri_slot_clear(&record->slots[0]);
	flush_all();
	weir_reclaim_set_budget(0);
}

Test(reclaim, large_objects_are_freed_without_being_asked)
{
	_Atomic(uint32_t) freed = 0;

	weir_reclaim_set_budget((uint64_t)LARGE * 8);
	retire_things(100, LARGE, &freed);
	cr_expect_geq(count_of(&freed), 98, "an eighth of the budget is one of them");
	flush_all();
	weir_reclaim_set_budget(0);
}

Test(reclaim, small_objects_are_freed_without_being_asked)
{
	_Atomic(uint32_t) freed = 0;

	retire_things(1000, 1, &freed);
	cr_expect_geq(count_of(&freed), 1000 - 256);
	flush_all();
	cr_expect_eq(count_of(&freed), 1000);
}

/* -- a collector that stops -------------------------------------------------------------------- */

static _Atomic(uint32_t) standing, go_on;

static void stand_still(void)
{
	latch_open(&standing);
	latch_pass(&go_on);
}

static void *flush_once(void *unused)
{
	(void)weir_reclaim_flush(0);
	return unused;
}

enum { PILE = 40 };

/* Retires PILE large objects and starts a collector, which stops at one of them. */
static pthread_t stop_a_collector(_Atomic(uint32_t) *freed)
{
	struct weiri_record *record = my_record();
	struct thing *things[PILE];
	pthread_t collector;
	uint64_t outer = weiri_section_enter(record);

	weiri_store_relaxed(&standing, 0u);
	weiri_store_relaxed(&go_on, 0u);
	for (unsigned i = 0; i < PILE; i++)
		things[i] = make(LARGE, freed);
	things[PILE / 2]->also = stand_still;
	for (unsigned i = 0; i < PILE; i++)
		weiri_retire(record, &things[i]->retired);
	cr_assert_eq(count_of(freed), 0, "the section holds them all");
	weiri_section_leave(record, outer);
	collector = start(flush_once, NULL);
	latch_pass(&standing);
	return collector;
}

Test(reclaim, a_stopped_collector_keeps_little_from_the_others)
{
	_Atomic(uint32_t) freed = 0;
	pthread_t collector;

	weir_reclaim_set_budget((uint64_t)LARGE * 2 * PILE);
	collector = stop_a_collector(&freed);
	weir_reclaim_set_budget((uint64_t)LARGE * PILE / 4);
	cr_expect_eq(weiri_reclaim_admit(my_record(), weir_deadline_in(patience_ns)), WEIR_OK);
	retire_things(100, LARGE, &freed);
	cr_expect_eq(weiri_reclaim_admit(my_record(), weir_deadline_in(patience_ns)), WEIR_OK);
	(void)weir_reclaim_flush(0);
	cr_expect_geq(count_of(&freed), 100 + PILE - 2 * PILE / WEIRI_STACKS,
	              "it had taken one stack; what survives collections lies on half of the stacks or more");
	latch_open(&go_on);
	join(collector);
	flush_all();
	cr_expect_eq(count_of(&freed), 100 + PILE);
	weir_reclaim_set_budget(0);
}

Test(reclaim, a_flush_does_not_say_ok_while_a_collector_has_something_in_hand)
{
	_Atomic(uint32_t) freed = 0;
	pthread_t collector = stop_a_collector(&freed);

	for (int i = 0; i < 5; i++)
		cr_expect_eq(weir_reclaim_flush(weir_deadline_in(1000000)), WEIR_DEADLINE_EXCEEDED);
	latch_open(&go_on);
	join(collector);
	flush_all();
	cr_expect_eq(count_of(&freed), PILE);
}

/* -- what is counted --------------------------------------------------------------------------- */

static weir_tensor *text_of_chunks(void)
{
	weir_shape shape = {.rank = 1, .dims = {40}};
	weir_tensor_builder *builder;
	weir_tensor *text;
	char word[100] = {0};

	cr_assert_eq(weir_tensor_builder_create(WEIR_BYTES, &shape, &variables_memory, &builder, NULL), WEIR_OK);
	for (int64_t i = 0; i < 40; i++)
		cr_assert_eq(weir_tensor_builder_set_bytes(builder, i, word, sizeof(word)), WEIR_OK);
	cr_assert_eq(weir_tensor_builder_finish(builder, &text), WEIR_OK);
	return text;
}

static void assign_text(weir_var *var)
{
	weir_tensor *text = text_of_chunks();

	cr_assert_eq(weir_var_assign(var, text, weir_deadline_in(patience_ns), NULL, NULL), WEIR_OK);
	weir_tensor_release(text);
}

static uint64_t allocated(void)
{
	return weiri_load_relaxed(&variables_state.bytes);
}

static uint64_t retired_now(void)
{
	/* So that everything is reported. */
	cr_expect_eq(weir_reclaim_flush(0), WEIR_DEADLINE_EXCEEDED);
	return stats_now().retired_bytes;
}

Test(reclaim, retired_bytes_are_those_that_were_allocated)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_BYTES, .allocator = &variables_memory};
	struct weiri_record *record = my_record();
	weir_var *var = named_variable("the name of a variable is allocated too", 1), *other = variable(1), *texts;
	uint64_t outer, live = allocated(), texts_live;

	/* The section belongs to this thread, and pins everything until the end. */
	outer = weiri_section_enter(record);
	/* [relaxed] the section also pins what is born later */
	weiri_store_relaxed(&record->hi, UINT64_MAX);
	for (int64_t i = 0; i < 1000; i++)
		assign(var, i);
	cr_expect_eq(retired_now(), allocated() - live, "numbers: %" PRIu64 " bytes are allocated", allocated() - live);
	weir_var_destroy(var, NULL);
	weir_var_destroy(other, NULL);
	cr_expect_eq(retired_now(), allocated(), "variables: %" PRIu64 " bytes are allocated", allocated());
	cr_assert_eq(weir_var_create(NULL, &options, &texts, NULL), WEIR_OK);
	assign_text(texts);
	texts_live = allocated() - retired_now();
	for (int i = 0; i < 10; i++)
		assign_text(texts);
	cr_expect_eq(retired_now(), allocated() - texts_live, "strings: %" PRIu64 " bytes are allocated",
	             allocated() - texts_live);
	weir_var_destroy(texts, NULL);
	weiri_section_leave(record, outer);
	flush_all();
	expect_nothing_left();
}

/* -- statistics -------------------------------------------------------------------------------- */

Test(reclaim, statistics_want_a_struct_of_the_right_size)
{
	struct weir_reclaim_stats stats = {.struct_size = 1, .threads = 77};

	cr_expect_eq(weir_reclaim_get_stats(NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_reclaim_get_stats(&stats), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(stats.threads, 77);
}

/* It is negative while objects are freed that were not reported yet. */
Test(reclaim, a_total_below_0_counts_as_nothing)
{
	int64_t total = weiri_load_relaxed(&weiri_retired_total);

	weiri_store_relaxed(&weiri_retired_total, (int64_t)1);
	cr_expect_eq(stats_now().retired_bytes, 1);
	weiri_store_relaxed(&weiri_retired_total, (int64_t)0);
	cr_expect_eq(stats_now().retired_bytes, 0);
	weiri_store_relaxed(&weiri_retired_total, (int64_t)-1);
	cr_expect_eq(stats_now().retired_bytes, 0);
	weiri_store_relaxed(&weiri_retired_total, total);
}

/* The size that they claim to have. */
static const size_t huge_bytes = SIZE_MAX / 16;

Test(reclaim, statistics_add_up)
{
	struct weir_reclaim_stats before, during, after;
	struct weiri_record *record = my_record();
	_Atomic(uint32_t) freed = 0;
	uint64_t outer;

	flush_all();
	before = stats_now();
	outer = weiri_section_enter(record);
	retire_things(1, huge_bytes, &freed);
	during = stats_now();
	weiri_section_leave(record, outer);
	flush_all();
	after = stats_now();
	/*
	 * Threads of other tests may have freed objects that they had not reported, up to 64 KiB each.
	 */
	cr_expect_leq(during.retired_bytes, before.retired_bytes + huge_bytes);
	cr_expect_geq(during.retired_bytes + during.threads * (64 << 10), before.retired_bytes + huge_bytes);
	cr_expect_geq(during.peak_retired_bytes, during.retired_bytes);
	cr_expect_eq(after.retired_bytes, 0);
	cr_expect_eq(after.peak_retired_bytes, during.peak_retired_bytes);
	retire_things(1, 16, &freed);
	/* It is counted when the collection begins. */
	flush_all();
	cr_expect_eq(stats_now().peak_retired_bytes, during.peak_retired_bytes, "less than the maximum is no new maximum");
	cr_expect_eq(after.freed_objects - before.freed_objects, 1);
	cr_expect_gt(after.collections, before.collections);
	cr_expect_geq(after.threads, 1);
}
