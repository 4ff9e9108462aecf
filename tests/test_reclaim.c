/*
 * test_reclaim.c - what pins a retired object, and what frees it.
 */
#include "reclaim_kit.h"

#include <inttypes.h>

#include "reclaim/scope.h"
#include "var/hold.h"
#include "variables.h"

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
	 * The section belongs to this thread. A collection treats the sections of all threads alike.
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

/* -- collections pass over what a section pins ------------------------------------------------- */

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
	/*
	 * There are so many, at so many addresses, that some share a bit of the filter with the held
	 * object.
	 */
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
	cr_assert_not_null(weiri_hold_value_of(&reads[HELD - 1]), "there was a slot for each");
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
