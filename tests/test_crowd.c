/*
 * test_crowd.c - sections in more eras than a scan has room for, as when many threads stall one
 * after the other. Each section pins what was alive during it, and nothing else.
 */
#include <criterion/criterion.h>

#include <pthread.h>
#include <stdlib.h>
#include <weir/reclaim.h>
#include <weir/time.h>

#include "base/futex.h"
#include "reclaim/collect.h"

enum { CROWD = 80 };

static const uint64_t patience_ns = UINT64_C(100000000000);

/*
 * A thread that has a record and stands still, so that the test can enter and leave sections in its
 * place.
 */
struct member {
	pthread_t thread;
	struct weiri_record *record;
	_Atomic(uint32_t) ready;
	_Atomic(uint32_t) *go_home;
};

struct thing {
	struct weiri_retired retired;
	int *freed;
	void (*also)(void); /* what its reclaim function also does */
};

static struct member members[CROWD];

static void pass(_Atomic(uint32_t) *latch)
{
	uint64_t deadline = weir_deadline_in(patience_ns);

	while (weiri_load_acquire(latch) == 0)
		cr_assert(weiri_futex_wait(latch, 0, deadline), "the latch was not opened");
}

static void open_latch(_Atomic(uint32_t) *latch)
{
	weiri_store_release(latch, 1u);
	weiri_futex_wake(latch, CROWD);
}

static void *stand(void *context)
{
	struct member *member = context;

	member->record = weiri_record_get();
	open_latch(&member->ready);
	pass(member->go_home);
	return NULL;
}

static void gather(_Atomic(uint32_t) *go_home)
{
	for (size_t i = 0; i < CROWD; i++) {
		members[i] = (struct member){.go_home = go_home};
		cr_assert_eq(pthread_create(&members[i].thread, NULL, stand, &members[i]), 0);
		pass(&members[i].ready);
		cr_assert_not_null(members[i].record);
	}
}

static void disperse(_Atomic(uint32_t) *go_home)
{
	open_latch(go_home);
	for (size_t i = 0; i < CROWD; i++)
		cr_assert_eq(pthread_join(members[i].thread, NULL), 0);
}

static void thing_reclaim(struct weiri_retired *object)
{
	struct thing *thing = (struct thing *)object;

	if (thing->also != NULL)
		thing->also();
	*thing->freed = 1;
	free(thing);
}

/* Retires a thing that lives in this era only. */
static struct thing *retire_thing(int *freed, void (*also)(void))
{
	struct weiri_record *record = weiri_record_get();
	void *memory = NULL;
	struct thing *thing;

	cr_assert_not_null(record);
	cr_assert_eq(posix_memalign(&memory, 64, sizeof(*thing)), 0);
	thing = memory;
	*freed = 0;
	thing->freed = freed;
	thing->also = also;
	weiri_retired_init(&thing->retired, 100, thing_reclaim);
	weiri_retire(record, &thing->retired);
	return thing;
}

static void next_era(void)
{
	(void)weiri_fetch_add_seq_cst(&weiri_era, 1u);
}

/*
 * Each section has an era of its own. One thing lives in it, and one lives between it and the next.
 */
static void enter_all(int held[], int between[], struct thing *things[])
{
	for (size_t i = 0; i < CROWD; i++) {
		cr_assert_eq(weiri_section_enter(members[i].record), 0);
		things[i] = retire_thing(&held[i], NULL);
		next_era();
		(void)retire_thing(&between[i], NULL);
		next_era();
	}
}

Test(crowd, what_lives_between_the_sections_is_freed)
{
	_Atomic(uint32_t) go_home = 0;
	int held[CROWD], between[CROWD];
	struct thing *things[CROWD];

	gather(&go_home);
	enter_all(held, between, things);
	cr_expect_eq(weir_reclaim_flush(0), WEIR_DEADLINE_EXCEEDED);
	for (size_t i = 0; i < CROWD; i++) {
		cr_expect_eq(held[i], 0, "thing %zu was in use", i);
		cr_expect_eq(between[i], 1, "no section could reach thing %zu", i);
	}
	/* The sections are left from both ends of the list of records. */
	for (size_t i = 0; i < CROWD; i++) {
		size_t which = i % 2 == 0 ? i / 2 : CROWD - 1 - i / 2;

		weiri_section_leave(members[which].record, 0);
		(void)weir_reclaim_flush(0);
		cr_expect_eq(held[which], 1, "section %zu is over", which);
	}
	cr_expect_eq(weir_reclaim_flush(0), WEIR_OK);
	disperse(&go_home);
}

/*
 * Each section has two eras. In the second one it reaches a thing that was born after the section
 * began.
 */
Test(crowd, what_a_section_came_to_later_is_held)
{
	_Atomic(uint32_t) go_home = 0;
	_Atomic(uint64_t) source = 7;
	int held[CROWD], between[CROWD];
	uint64_t value;

	gather(&go_home);
	for (size_t i = 0; i < CROWD; i++) {
		cr_assert_eq(weiri_section_enter(members[i].record), 0);
		next_era();
		weiri_section_read(members[i].record, &source, &value);
		(void)retire_thing(&held[i], NULL);
		next_era();
		(void)retire_thing(&between[i], NULL);
		next_era();
	}
	cr_expect_eq(weir_reclaim_flush(0), WEIR_DEADLINE_EXCEEDED);
	for (size_t i = 0; i < CROWD; i++) {
		cr_expect_eq(held[i], 0, "thing %zu was in use", i);
		cr_expect_eq(between[i], 1, "no section could reach thing %zu", i);
	}
	for (size_t i = 0; i < CROWD; i++)
		weiri_section_leave(members[i].record, 0);
	cr_expect_eq(weir_reclaim_flush(0), WEIR_OK);
	disperse(&go_home);
}

static struct member *leaver;
static struct weiri_slot *left_slot;
static struct thing *left_thing;

static void leave_with_a_slot(void)
{
	left_slot = weiri_slot_find(leaver->record);
	if (left_slot == NULL)
		return;
	weiri_slot_claim(left_slot, left_thing);
	weiri_section_leave(leaver->record, 0);
}

static void play_leaver(size_t which)
{
	_Atomic(uint32_t) go_home = 0;
	int held[CROWD], between[CROWD], first;
	struct thing *things[CROWD];

	gather(&go_home);
	enter_all(held, between, things);
	leaver = &members[which];
	left_thing = things[which];
	left_slot = NULL;
	/* The thing that is retired last is the first that the collection frees. */
	(void)retire_thing(&first, leave_with_a_slot);
	cr_expect_eq(weir_reclaim_flush(0), WEIR_DEADLINE_EXCEEDED);
	cr_expect_eq(first, 1);
	cr_assert_not_null(left_slot);
	cr_expect_eq(held[which], 0, "a slot names thing %zu", which);
	weiri_slot_clear(left_slot);
	for (size_t i = 0; i < CROWD; i++)
		weiri_section_leave(members[i].record, 0);
	cr_expect_eq(weir_reclaim_flush(0), WEIR_OK);
	disperse(&go_home);
}

/*
 * A snapshot, too, ends its section when a hazard slot holds the object. Here this happens between
 * the scan and the moment at which the collection examines the thing.
 */
Test(crowd, a_section_that_ends_with_a_slot_goes_on_holding)
{
	play_leaver(0);
	play_leaver(CROWD - 1);
}
