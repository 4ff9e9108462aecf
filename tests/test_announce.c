/*
 * test_announce.c - readers that announce eras: what an idle one holds, how often a collection runs
 * a membarrier, and what happens where membarrier is slow or refused.
 */
#include "announce_kit.h"
#include "reclaim/host.h"
#include "refuse_membarrier.h"

/* Uses up the turn of the collections to settle. */
static void settle_for_long(struct reader *reader)
{
	_Atomic(uint32_t) freed = 0;

	begin_with_pauses_of(patience_ns);
	read_once(reader);
	retire_things(20, LARGE, &freed);
	flush_all();
	cr_assert_eq(count_of(&freed), 20);
}

Test(announce, an_idle_reader_holds_what_lived_when_it_last_read_until_a_flush)
{
	_Atomic(uint32_t) freed = 0, others = 0;
	struct reader reader;
	struct thing *thing;
	uint64_t before;

	skip_without_membarrier();
	begin(&reader);
	settle_for_long(&reader);
	thing = make(LARGE, &freed);
	read_once(&reader);
	before = stats_now().membarriers;
	weiri_retire(my_record(), &thing->retired);
	(void)weiri_era_begin();
	retire_things(20, LARGE, &others);
	cr_expect_eq(count_of(&freed), 0);
	cr_expect_geq(count_of(&others), 19, "born after the announcement");
	cr_expect_eq(stats_now().membarriers, before);
	flush_all();
	cr_expect_eq(count_of(&freed), 1);
	cr_expect_gt(stats_now().membarriers, before);
	end(&reader);
}

Test(announce, an_idle_reader_holds_nothing_for_long)
{
	_Atomic(uint32_t) freed = 0, others = 0;
	uint64_t deadline = weir_deadline_in(patience_ns);
	struct reader reader;
	struct thing *thing;

	begin_with_pauses_of(1000);
	begin(&reader);
	thing = make(LARGE, &freed);
	read_once(&reader);
	weiri_retire(my_record(), &thing->retired);
	while (count_of(&freed) == 0 && weir_now_ns() < deadline)
		retire_things(1, LARGE, &others);
	cr_expect_eq(count_of(&freed), 1);
	end(&reader);
	flush_all();
}

Test(announce, a_reader_that_goes_on_reading_holds_nothing_without_a_membarrier)
{
	_Atomic(uint32_t) freed = 0;
	struct reader reader;
	uint64_t before;

	skip_without_membarrier();
	begin(&reader);
	settle_for_long(&reader);
	before = stats_now().membarriers;
	for (int i = 0; i < 100; i++) {
		read_once(&reader);
		retire_things(1, LARGE, &freed);
	}
	cr_expect_geq(count_of(&freed), 97);
	cr_expect_eq(stats_now().membarriers, before);
	end(&reader);
	flush_all();
}

/* -- the rate ---------------------------------------------------------------------------------- */

enum { WRITERS = 8, EACH = 400 };

static void *read_and_retire(void *context)
{
	struct weiri_record *record = my_record();

	for (int i = 0; i < EACH; i++) {
		weiri_section_leave(record, weiri_section_enter(record));
		retire_things(1, LARGE, context);
	}
	return NULL;
}

Test(announce, eight_writers_together_run_few_membarriers)
{
	_Atomic(uint32_t) freed = 0;
	pthread_t writers[WRITERS];
	uint64_t before, began, collections, most;

	begin_with_pauses_of(PAUSE_NS);
	weir_reclaim_set_budget((uint64_t)LARGE * WRITERS * EACH); /* none waits for memory */
	before = stats_now().membarriers;
	collections = stats_now().collections;
	began = weir_now_ns();
	for (int i = 0; i < WRITERS; i++)
		writers[i] = start(read_and_retire, &freed);
	for (int i = 0; i < WRITERS; i++)
		join(writers[i]);
	most = (weir_now_ns() - began) / weiri_settle_pause_ns + 1;
	cr_expect_leq(stats_now().membarriers - before, most);
	cr_expect_geq(stats_now().collections - collections, WRITERS * EACH);
	weir_reclaim_set_budget(0);
	flush_all();
	cr_expect_eq(count_of(&freed), WRITERS * EACH);
}

Test(announce, a_slow_membarrier_is_left_alone_for_long)
{
	enum { SLOW_NS = 4000000, FACTOR = 256 };
	_Atomic(uint32_t) freed = 0;
	struct reader reader;
	uint64_t before, began;

	begin_with_pauses_of(0);
	begin(&reader);
	read_once(&reader);
	weiri_store_relaxed(&slow_ns, (uint64_t)SLOW_NS);
	before = stats_now().membarriers;
	began = weir_now_ns();
	for (int i = 0; i < 100; i++) {
		read_once(&reader);
		retire_things(10, LARGE, &freed);
	}
	cr_expect_leq(stats_now().membarriers - before, 1 + (weir_now_ns() - began) / (SLOW_NS * FACTOR));
	cr_expect_geq(count_of(&freed), 900, "readers go on without");
	weiri_store_relaxed(&slow_ns, 0u);
	end(&reader);
	flush_all();
}

/* -- membarrier refused late ------------------------------------------------------------------- */

static int hold_when_it_is_refused_late(void)
{
	_Atomic(uint32_t) freed = 0, others = 0;
	struct reader reader;
	struct thing *thing;

	begin(&reader);
	thing = make(LARGE, &freed);
	read_once(&reader);
	if (!has_membarrier() || !refuse_membarrier())
		return SANDBOX_NOT_HERE;
	weiri_retire(my_record(), &thing->retired);
	(void)weiri_era_begin();
	retire_things(20, LARGE, &others);
	if (weir_reclaim_flush(0) != WEIR_DEADLINE_EXCEEDED || count_of(&freed) != 0)
		return 1;
	if (count_of(&others) != 20)
		return 2;
	read_once(&reader);
	if (weir_reclaim_flush(weir_deadline_in(patience_ns)) != WEIR_OK || count_of(&freed) != 1)
		return 3;
	end(&reader);
	return SANDBOX_HELD;
}

Test(announce, where_membarrier_is_refused_late_a_reader_holds_what_lived_until_it_reads_again)
{
	in_a_sandbox(hold_when_it_is_refused_late);
}

/* -- records that pass on ---------------------------------------------------------------------- */

static void *read_and_end(void *unused)
{
	struct weiri_record *record = my_record();

	weiri_section_leave(record, weiri_section_enter(record));
	return unused;
}

/* Announces an era and enters no section, as a thread that only takes handles. */
struct announcer {
	struct weiri_record *record;
	_Atomic(uint32_t) has_announced, may_end;
};

static void *announce_and_wait(void *context)
{
	struct announcer *announcer = context;

	announcer->record = my_record();
	(void)weiri_slot_counts(announcer->record);
	advance(&announcer->has_announced);
	wait_until(&announcer->may_end, 1);
	return NULL;
}

/* A host reserves all eras to come. */
Test(announce, a_thread_in_the_record_of_a_host_that_is_gone_holds_only_what_lived)
{
	_Atomic(uint32_t) freed = 0, others = 0;
	struct announcer announcer = {.record = NULL};
	struct weiri_record *host;
	struct reader reader;
	struct thing *thing;
	pthread_t thread;

	skip_without_membarrier();
	begin(&reader);
	settle_for_long(&reader);
	host = weiri_host_open();
	cr_assert_not_null(host);
	weiri_host_close(host);
	thing = make(LARGE, &freed);
	thread = start(announce_and_wait, &announcer);
	wait_until(&announcer.has_announced, 1);
	cr_assert_eq(announcer.record, host);
	weiri_retire(my_record(), &thing->retired);
	(void)weiri_era_begin();
	retire_things(20, LARGE, &others);
	cr_expect_eq(count_of(&freed), 0);
	cr_expect_geq(count_of(&others), 19, "born after the announcement");
	advance(&announcer.may_end);
	join(thread);
	end(&reader);
	flush_all();
}

Test(announce, a_thread_that_has_ended_holds_nothing)
{
	_Atomic(uint32_t) freed = 0;
	struct reader reader;
	struct thing *thing;
	uint64_t before;

	skip_without_membarrier();
	begin(&reader);
	settle_for_long(&reader);
	end(&reader);
	thing = make(LARGE, &freed);
	join(start(read_and_end, NULL));
	before = stats_now().membarriers;
	weiri_retire(my_record(), &thing->retired);
	retire_things(1, LARGE, &freed);
	cr_expect_geq(count_of(&freed), 1);
	cr_expect_eq(stats_now().membarriers, before);
	flush_all();
}
