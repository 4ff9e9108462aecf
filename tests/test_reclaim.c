/*
 * test_reclaim.c - what pins a retired object, what frees it, and the budget.
 */
#include <criterion/criterion.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <weir/reclaim.h>
#include <weir/time.h>
#include <weir/var.h>

#include "base/futex.h"
#include "failing_allocator.h"
#include "reclaim/collect.h"
#include "reclaim/scope.h"
#include "refuse_membarrier.h"
#include "variables.h"

static const uint64_t patience_ns = UINT64_C(100000000000);

enum { LARGE = 256 << 10 };

/* A retired object that notes when it is freed. */
struct thing {
	struct weiri_retired retired;
	_Atomic(uint32_t) *freed;
	/* What its reclaim function also does. */
	void (*also)(void);
};

/*
 * The number of reclaim functions that this thread is inside of. If another thread began a
 * collection inside of one, they would nest without a bound.
 */
static _Thread_local int nested;

static void thing_reclaim(struct weiri_retired *object)
{
	struct thing *thing = (struct thing *)object;
	_Atomic(uint32_t) *freed = thing->freed;

	cr_assert_eq(nested++, 0);
	if (thing->also != NULL)
		thing->also();
	free(thing);
	nested--;
	(void)weiri_fetch_add_release(freed, 1u);
}

static struct thing *make(size_t bytes, _Atomic(uint32_t) *freed)
{
	void *memory = NULL;
	struct thing *thing;

	cr_assert_eq(posix_memalign(&memory, 64, sizeof(*thing)), 0);
	thing = memory;
	thing->freed = freed;
	thing->also = NULL;
	weiri_retired_init(&thing->retired, bytes, thing_reclaim);
	return thing;
}

static struct weiri_record *my_record(void)
{
	struct weiri_record *record = weiri_record_get();

	cr_assert_not_null(record);
	return record;
}

static void retire_things(unsigned count, size_t bytes, _Atomic(uint32_t) *freed)
{
	for (unsigned i = 0; i < count; i++)
		weiri_retire(my_record(), &make(bytes, freed)->retired);
}

static uint32_t count_of(_Atomic(uint32_t) *freed)
{
	return weiri_load_acquire(freed);
}

static struct weir_reclaim_stats stats_now(void)
{
	struct weir_reclaim_stats stats = {WEIR_RECLAIM_STATS_INIT};

	cr_assert_eq(weir_reclaim_get_stats(&stats), WEIR_OK);
	return stats;
}

static void flush_all(void)
{
	cr_assert_eq(weir_reclaim_flush(weir_deadline_in(patience_ns)), WEIR_OK);
}

static pthread_t start(void *(*body)(void *), void *context)
{
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, body, context), 0);
	return thread;
}

static void join(pthread_t thread)
{
	cr_assert_eq(pthread_join(thread, NULL), 0);
}

/* A latch: opened once, by any thread. */
static void latch_open(_Atomic(uint32_t) *latch)
{
	weiri_store_release(latch, 1u);
	weiri_futex_wake(latch, 1000);
}

static void latch_pass(_Atomic(uint32_t) *latch)
{
	uint64_t deadline = weir_deadline_in(patience_ns);

	while (weiri_load_acquire(latch) == 0)
		cr_assert(weiri_futex_wait(latch, 0, deadline), "nobody opened it");
}

/* -- intervals --------------------------------------------------------------------------------- */

Test(reclaim, what_nobody_holds_is_freed_by_a_flush)
{
	_Atomic(uint32_t) freed = 0;

	retire_things(3, 100, &freed);
	flush_all();
	cr_expect_eq(count_of(&freed), 3);
}

Test(reclaim, a_section_keeps_what_was_alive_in_it_and_nothing_born_later)
{
	struct weiri_record *record = my_record();
	_Atomic(uint32_t) old_freed = 0, new_freed = 0;
	struct thing *old = make(100, &old_freed);
	uint64_t outer;

	/*
	 * The section belongs to this thread. A collection does not care which thread a section belongs
	 * to.
	 */
	outer = weiri_section_enter(record);
	weiri_retire(record, &old->retired);
	cr_expect_eq(weir_reclaim_flush(0), WEIR_DEADLINE_EXCEEDED);
	retire_things(1, 100, &new_freed);
	cr_expect_eq(weir_reclaim_flush(0), WEIR_DEADLINE_EXCEEDED);
	cr_expect_eq(count_of(&old_freed), 0, "alive when the section began");
	cr_expect_eq(count_of(&new_freed), 1, "born after a later era had begun");
	weiri_section_leave(record, outer);
	flush_all();
	cr_expect_eq(count_of(&old_freed), 1);
}

Test(reclaim, a_read_extends_the_interval_to_the_present)
{
	struct weiri_record *record = my_record();
	_Atomic(uint32_t) freed = 0;
	_Atomic(uint64_t) source = 7;
	uint64_t outer = weiri_section_enter(record), value = 0;

	retire_things(1, 100, &freed);
	cr_expect_eq(weir_reclaim_flush(0), WEIR_DEADLINE_EXCEEDED);
	weiri_section_read(record, &source, &value);
	cr_expect_eq(value, 7);
	/*
	 * Born before the next collection begins, so it lies within the interval that the read has
	 * reserved.
	 */
	retire_things(1, 100, &freed);
	cr_expect_eq(weir_reclaim_flush(0), WEIR_DEADLINE_EXCEEDED);
	cr_expect_eq(count_of(&freed), 0);
	weiri_section_leave(record, outer);
	flush_all();
	cr_expect_eq(count_of(&freed), 2);
}

Test(reclaim, what_died_before_a_section_began_is_not_its_concern)
{
	struct weiri_record *record = my_record();
	_Atomic(uint32_t) kept = 0, freed = 0;
	struct thing *held = make(100, &kept);
	uint64_t outer;

	weiri_slot_claim(&record->slots[0], held);
	weiri_retire(record, &held->retired);
	retire_things(1, 100, &freed);
	cr_expect_eq(weir_reclaim_flush(0), WEIR_DEADLINE_EXCEEDED);
	outer = weiri_section_enter(record);
	weiri_slot_clear(&record->slots[0]);
	cr_expect_eq(weir_reclaim_flush(weir_deadline_in(patience_ns)), WEIR_OK);
	cr_expect_eq(count_of(&kept), 1);
	cr_expect_eq(count_of(&freed), 1);
	weiri_section_leave(record, outer);
}

Test(reclaim, sections_nest)
{
	struct weiri_record *record = my_record();
	_Atomic(uint32_t) freed = 0;
	uint64_t outer = weiri_section_enter(record), inner = weiri_section_enter(record);

	retire_things(1, 100, &freed);
	weiri_section_leave(record, inner);
	cr_expect_eq(weir_reclaim_flush(0), WEIR_DEADLINE_EXCEEDED);
	cr_expect_eq(count_of(&freed), 0, "the outer section goes on");
	weiri_section_leave(record, outer);
	flush_all();
	cr_expect_eq(count_of(&freed), 1);
}

Test(reclaim, a_scope_retires_after_its_section)
{
	struct weiri_record *record = my_record();
	_Atomic(uint32_t) freed = 0;
	struct weiri_scope scope = weiri_scope_enter(record);

	weiri_scope_retire(&scope, &make(100, &freed)->retired);
	weiri_scope_retire(&scope, &make(100, &freed)->retired);
	cr_expect_eq(weiri_load_relaxed(&record->retired[weiri_load_relaxed(&record->stack)]), NULL,
	             "nothing is retired inside the section");
	weiri_scope_leave(&scope);
	flush_all();
	cr_expect_eq(count_of(&freed), 2);
}

/* -- more sections than a scan has room for ---------------------------------------------------- */

enum { CROWD = 80 };

struct crowd {
	_Atomic(uint32_t) registered;
	/* The number of the thread that enters next. */
	_Atomic(uint32_t) turn;
	_Atomic(uint32_t) inside;
	_Atomic(uint32_t) leave;
};

struct member {
	struct crowd *crowd;
	uint32_t turn;
	pthread_t thread;
};

static void wait_until(_Atomic(uint32_t) *word, uint32_t value)
{
	uint64_t deadline = weir_deadline_in(patience_ns);
	uint32_t now;

	while ((now = weiri_load_acquire(word)) != value)
		cr_assert(weiri_futex_wait(word, now, deadline), "waited for %u, it is %u", value, now);
}

static void advance(_Atomic(uint32_t) *word)
{
	(void)weiri_fetch_add_acq_rel(word, 1u);
	weiri_futex_wake(word, 1000);
}

static void *stay_in_a_section(void *context)
{
	struct member *member = context;
	struct crowd *crowd = member->crowd;
	struct weiri_record *record = my_record();
	uint64_t outer;

	advance(&crowd->registered);
	wait_until(&crowd->turn, member->turn);
	outer = weiri_section_enter(record);
	advance(&crowd->inside);
	latch_pass(&crowd->leave);
	weiri_section_leave(record, outer);
	return NULL;
}

/*
 * `first` enters first, then the others in that direction. So a scan meets older sections first, or
 * younger ones.
 */
static void play_crowd(uint32_t first)
{
	struct crowd crowd = {0};
	struct member members[CROWD];
	_Atomic(uint32_t) freed[CROWD], later = 0;

	for (uint32_t i = 0; i < CROWD; i++) {
		members[i] = (struct member){.crowd = &crowd, .turn = 1 + (first == 0 ? i : first - i)};
		members[i].thread = start(stay_in_a_section, &members[i]);
		wait_until(&crowd.registered, i + 1);
	}
	/* Each era has one object. The sections that began in it and before pin it. */
	for (uint32_t i = 0; i < CROWD; i++) {
		struct thing *thing;

		weiri_store_relaxed(&freed[i], 0u);
		thing = make(100, &freed[i]);
		advance(&crowd.turn);
		wait_until(&crowd.inside, i + 1);
		weiri_retire(my_record(), &thing->retired);
		cr_expect_eq(weir_reclaim_flush(0), WEIR_DEADLINE_EXCEEDED);
	}
	for (uint32_t i = 0; i < CROWD; i++)
		cr_expect_eq(count_of(&freed[i]), 0, "object %u was in use", i);
	retire_things(1, 100, &later);
	cr_expect_eq(weir_reclaim_flush(0), WEIR_DEADLINE_EXCEEDED);
	cr_expect_eq(count_of(&later), 1, "born after all sections began");
	latch_open(&crowd.leave);
	for (uint32_t i = 0; i < CROWD; i++)
		join(members[i].thread);
	flush_all();
	for (uint32_t i = 0; i < CROWD; i++)
		cr_expect_eq(count_of(&freed[i]), 1);
}

Test(reclaim, more_sections_than_a_scan_has_room_for_all_count)
{
	play_crowd(0);
	/* New threads adopt records from the other end of the list. */
	play_crowd(0);
	play_crowd(CROWD - 1);
}

/*
 * -- collections do not look again and again at what a section pins -----------------------------
 */

static uint64_t examined(void)
{
	return weiri_load_relaxed(&my_record()->examined);
}

/* The objects are retired within this section, or within any open section. */
static void retire_and_collect_twice(unsigned count, _Atomic(uint32_t) *freed)
{
	retire_things(count, 100, freed);
	/* The last collection shows that these objects are passed over. */
	for (int i = 0; i < 3; i++)
		cr_expect_eq(weir_reclaim_flush(0), WEIR_DEADLINE_EXCEEDED);
}

/* The section begins. If it `reads`, it then also reads and pins what was made since. */
static void play_stopped_section(int reads)
{
	enum { HELD = 20000, MORE = 40000 };
	static struct thing *things[HELD];
	struct weiri_record *record = my_record();
	_Atomic(uint32_t) held = 0, freed = 0;
	_Atomic(uint64_t) source = 7;
	uint64_t outer, before, value;

	outer = weiri_section_enter(record);
	if (reads)
		weiri_era_begin();
	for (unsigned i = 0; i < HELD; i++)
		things[i] = make(100, &held);
	if (reads)
		weiri_section_read(record, &source, &value);
	before = examined();
	for (unsigned i = 0; i < HELD; i++)
		weiri_retire(record, &things[i]->retired);
	retire_things(MORE, 100, &freed);
	cr_expect_leq(examined() - before, 2 * HELD + MORE + 2 * 256, "%d retired: %" PRIu64 " looks at objects",
	              HELD + MORE, examined() - before);
	cr_expect_geq(examined() - before, HELD + MORE - 2 * 256, "a collection looks at each object at least once");
	cr_expect_eq(count_of(&held), 0);
	cr_expect_geq(count_of(&freed), MORE - 2 * 256);
	weiri_section_leave(record, outer);
	retire_things(2 * 256, 100, &freed);
	cr_expect_eq(count_of(&held), HELD, "an ordinary collection frees them when the section has ended");
	flush_all();
}

Test(reclaim, what_a_stopped_section_holds_is_not_looked_at_by_each_collection)
{
	play_stopped_section(0);
}

Test(reclaim, what_a_stopped_section_came_to_later_is_not_looked_at_by_each_collection)
{
	play_stopped_section(1);
}

Test(reclaim, what_two_sections_hold_stays_until_both_have_ended)
{
	struct weiri_record *record = my_record();
	struct crowd crowd = {0};
	struct member other = {.crowd = &crowd};
	_Atomic(uint32_t) both = 0, later = 0;
	uint64_t outer;

	other.thread = start(stay_in_a_section, &other);
	wait_until(&crowd.inside, 1);
	outer = weiri_section_enter(record);
	retire_and_collect_twice(3, &both);
	cr_expect_eq(count_of(&both), 0);
	weiri_section_leave(record, outer);
	retire_and_collect_twice(1, &later);
	cr_expect_eq(count_of(&later), 1, "born after both had begun");
	cr_expect_eq(count_of(&both), 0, "the other section goes on");
	latch_open(&crowd.leave);
	join(other.thread);
	flush_all();
	cr_expect_eq(count_of(&both), 3);
}

Test(reclaim, the_next_section_of_a_thread_holds_nothing_of_the_one_before)
{
	struct weiri_record *record = my_record();
	_Atomic(uint32_t) first = 0, second = 0;
	uint64_t outer = weiri_section_enter(record);

	retire_and_collect_twice(3, &first);
	weiri_section_leave(record, outer);
	outer = weiri_section_enter(record);
	cr_expect_eq(count_of(&first), 0);
	retire_and_collect_twice(3, &second);
	cr_expect_eq(count_of(&first), 3);
	cr_expect_eq(count_of(&second), 0);
	weiri_section_leave(record, outer);
	flush_all();
	cr_expect_eq(count_of(&second), 3);
}

Test(reclaim, a_slot_goes_on_holding_when_a_section_that_held_it_too_has_ended)
{
	struct weiri_record *record = my_record();
	_Atomic(uint32_t) freed = 0;
	struct thing *thing = make(100, &freed);
	uint64_t outer = weiri_section_enter(record);

	weiri_slot_claim(&record->slots[0], thing);
	weiri_retire(record, &thing->retired);
	retire_and_collect_twice(0, &freed);
	weiri_section_leave(record, outer);
	retire_and_collect_twice(0, &freed);
	cr_expect_eq(count_of(&freed), 0);
	weiri_slot_clear(&record->slots[0]);
	flush_all();
	cr_expect_eq(count_of(&freed), 1);
}

/* -- slots ------------------------------------------------------------------------------------- */

enum { OTHERS = 20000 };

Test(reclaim, a_slot_keeps_the_one_object_that_it_names)
{
	struct weiri_record *record = my_record();
	_Atomic(uint32_t) held_freed = 0, others_freed = 0;
	struct thing *held = make(100, &held_freed);
	struct weiri_slot *slot = weiri_slot_find(record);
	static struct thing *others[OTHERS];

	cr_assert_not_null(slot);
	weiri_slot_claim(slot, held);
	weiri_retire(record, &held->retired);
	/* There are so many, at so many addresses, that some share a bit of the filter with it. */
	for (unsigned i = 0; i < OTHERS; i++)
		others[i] = make(1, &others_freed);
	for (unsigned i = 0; i < OTHERS; i++)
		weiri_retire(record, &others[i]->retired);
	cr_expect_eq(weir_reclaim_flush(0), WEIR_DEADLINE_EXCEEDED);
	cr_expect_eq(count_of(&held_freed), 0);
	cr_expect_eq(count_of(&others_freed), OTHERS);
	weiri_slot_clear(slot);
	flush_all();
	cr_expect_eq(count_of(&held_freed), 1);
}

Test(reclaim, every_slot_of_a_record_counts)
{
	struct weiri_record *record = my_record();

	weiri_store_relaxed(&record->snapshot_used, (uint32_t)WEIRI_SNAPSHOT_SLOTS);
	for (unsigned i = 0; i < WEIRI_SLOTS + WEIRI_SNAPSHOT_SLOTS; i++) {
		struct weiri_slot *slot = i < WEIRI_SLOTS ? &record->slots[i] : &record->snapshot_slots[i - WEIRI_SLOTS];
		_Atomic(uint32_t) freed = 0;
		struct thing *thing = make(100, &freed);

		cr_assert_eq(weiri_record_of(slot), record);
		weiri_slot_claim(slot, thing);
		weiri_retire(record, &thing->retired);
		cr_expect_eq(weir_reclaim_flush(0), WEIR_DEADLINE_EXCEEDED);
		cr_expect_eq(count_of(&freed), 0, "slot %u", i);
		weiri_slot_clear(slot);
		flush_all();
		cr_expect_eq(count_of(&freed), 1, "slot %u", i);
	}
}

Test(reclaim, no_slot_is_found_when_all_are_taken)
{
	struct weiri_record *record = my_record();

	for (unsigned i = 0; i < WEIRI_SLOTS; i++)
		weiri_slot_claim(weiri_slot_find(record), record);
	cr_expect_null(weiri_slot_find(record));
	weiri_slot_clear(&record->slots[5]);
	cr_expect_eq(weiri_slot_find(record), &record->slots[5]);
	for (unsigned i = 0; i < WEIRI_SLOTS; i++)
		weiri_slot_clear(&record->slots[i]);
}

/* -- the budget -------------------------------------------------------------------------------- */

Test(reclaim, the_budget_is_set_and_restored)
{
	cr_expect_eq(weir_reclaim_budget(), WEIR_RECLAIM_DEFAULT_BUDGET);
	weir_reclaim_set_budget(12345);
	cr_expect_eq(weir_reclaim_budget(), 12345);
	weir_reclaim_set_budget(0);
	cr_expect_eq(weir_reclaim_budget(), WEIR_RECLAIM_DEFAULT_BUDGET);
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

/* PILE large objects are retired. A collector comes to one of them and stops there. */
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
	cr_expect_geq(count_of(&freed), 100 + PILE - PILE / WEIRI_STACKS, "the stopped collector had taken one stack");
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

/* -- reclaim functions ------------------------------------------------------------------------- */

static _Atomic(uint32_t) offspring_freed;
static enum weir_status inner_status;

static void retire_more(void)
{
	retire_things(600, 1, &offspring_freed);
}

Test(reclaim, a_reclaim_function_may_retire_more)
{
	_Atomic(uint32_t) freed = 0;
	struct thing *parent = make(100, &freed);

	weiri_store_relaxed(&offspring_freed, 0u);
	parent->also = retire_more;
	weiri_retire(my_record(), &parent->retired);
	flush_all();
	cr_expect_eq(count_of(&freed), 1);
	cr_expect_eq(count_of(&offspring_freed), 600);
}

static void flush_inside(void)
{
	inner_status = weir_reclaim_flush(WEIR_NO_DEADLINE);
}

Test(reclaim, a_flush_inside_a_collection_is_refused)
{
	_Atomic(uint32_t) freed = 0;
	struct thing *thing = make(100, &freed);

	inner_status = WEIR_OK;
	thing->also = flush_inside;
	weiri_retire(my_record(), &thing->retired);
	flush_all();
	cr_expect_eq(inner_status, WEIR_FAILED_PRECONDITION);
}

static void be_admitted_inside(void)
{
	inner_status = weiri_reclaim_admit(my_record(), weir_deadline_in(patience_ns));
}

Test(reclaim, a_write_inside_a_collection_does_not_wait_for_itself)
{
	_Atomic(uint32_t) freed = 0;
	struct thing *thing = make(LARGE, &freed);

	inner_status = WEIR_INTERNAL;
	thing->also = be_admitted_inside;
	weir_reclaim_set_budget(1000);
	weiri_retire(my_record(), &thing->retired);
	flush_all();
	cr_expect_eq(inner_status, WEIR_OK);
	weir_reclaim_set_budget(0);
}

/* -- handles ----------------------------------------------------------------------------------- */

/*
 * The release of a handle may be in a signal handler, where free() is not allowed. A read in a
 * handler takes a reference.
 */
Test(reclaim, the_last_release_of_a_handle_frees_nothing_by_itself)
{
	enum { HELD = WEIRI_SLOTS + 1 };
	weir_var *var = variable(1);
	weir_read reads[HELD];
	size_t blocks;

	for (size_t i = 0; i < HELD; i++)
		cr_assert_eq(weir_var_read(var, &reads[i]), WEIR_OK);
	cr_assert_null(reads[HELD - 1].hold, "there was a slot for each");
	assign(var, 2);
	weir_read_release_many(reads, HELD - 1);
	collect_now();
	blocks = weiri_load_relaxed(&variables_state.outstanding);
	weir_read_release(&reads[HELD - 1]);
	cr_expect_eq(weiri_load_relaxed(&variables_state.outstanding), blocks, "it was freed at once");
	collect_now();
	cr_expect_eq(weiri_load_relaxed(&variables_state.outstanding), blocks - 1, "a collection frees it");
	weir_var_destroy(var, NULL);
	expect_nothing_left();
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
 * The destructor of a key that was made before the library made its own, and the destructor of one
 * made after it.
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
	if (weir_reclaim_flush(0) != WEIR_DEADLINE_EXCEEDED || count_of(&freed) != 0)
		return 1;
	weir_reclaim_set_budget(LARGE / 2);
	return weiri_reclaim_admit(weiri_record_get(), 0) == WEIR_RESOURCE_EXHAUSTED ? SANDBOX_HELD : 2;
}

Test(reclaim, when_membarrier_is_refused_late_nothing_is_freed)
{
	in_a_sandbox(reclaim_when_it_is_refused_late);
}

/* -- no memory for a record -------------------------------------------------------------------- */

/*
 * Records come from the default allocator, which uses the sized calls of jemalloc if the process
 * has them. Here this file defines these calls. The low bits of flags are the logarithm of the
 * alignment.
 */
static _Atomic(uint32_t) no_memory;

void *mallocx(size_t size, int flags);
void sdallocx(void *memory, size_t size, int flags);

void *mallocx(size_t size, int flags)
{
	size_t alignment = (size_t)1 << (flags & 63);
	void *memory = NULL;

	/* [relaxed] a setting */
	if (weiri_load_relaxed(&no_memory) != 0)
		return NULL;
	return posix_memalign(&memory, alignment < sizeof(void *) ? sizeof(void *) : alignment, size) == 0 ? memory : NULL;
}

void sdallocx(void *memory, size_t size, int flags)
{
	(void)size, (void)flags;
	free(memory);
}

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

/* -- statistics -------------------------------------------------------------------------------- */

Test(reclaim, statistics_want_a_struct_of_the_right_size)
{
	struct weir_reclaim_stats stats = {.struct_size = 1, .threads = 77};

	cr_expect_eq(weir_reclaim_get_stats(NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_reclaim_get_stats(&stats), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(stats.threads, 77);
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
