/*
 * test_settle.c - membarriers that settle announcements: threads share them, their rate is bounded
 * whatever the threads do, and one that is stopped under way stops no other thread.
 */
#include "announce_kit.h"

#include <unistd.h>

#include "refuse_membarrier.h"
#include "sandbox.h"
#include "under_tsan.h"

enum { BURST = 16 }; /* as in settle.c */

static uint64_t membarriers(void)
{
	return stats_now().membarriers;
}

/* The most that may have been run in so long: collections of one thread, and all others; see settle.h. */
static uint64_t most_in(uint64_t elapsed_ns)
{
	return 2 * (elapsed_ns / weiri_settle_pause_ns + 1) + BURST;
}

/* An object that the reader's announcement holds is retired: nothing frees it but a membarrier. */
static void retire_what_was_read(struct reader *reader, _Atomic(uint32_t) *freed)
{
	struct thing *thing = make(LARGE / 4, freed);

	read_once(reader);
	weiri_retire(my_record(), &thing->retired);
	(void)weiri_era_begin();
}

enum { OLD = 4 }; /* as in settle.c */

/* Settles for this thread alone what a reader announced so many eras ago. Returns true if that is settled. */
static bool settle_what_is_old(struct reader *reader, int eras)
{
	uint64_t era = 0;

	read_once(reader);
	for (int i = 0; i < eras; i++)
		era = weiri_era_begin();
	weiri_settle_mine(my_record(), era);
	return weiri_announcements_settled() >= era;
}

/* Takes all turns of calls that wait. Returns how many there were. */
static uint32_t turns_left(void)
{
	uint32_t count = 0;

	while (weiri_settle_to_wait(weiri_era_begin()))
		count++;
	return count;
}

/* Settles by a membarrier that takes so long. */
static void settle_in(uint64_t milliseconds)
{
	weiri_store_relaxed(&takes_ns, milliseconds * 1000000);
	cr_assert(weiri_settle_to_wait(weiri_era_begin()));
	weiri_store_relaxed(&takes_ns, 0u);
}

/* -- the rate ---------------------------------------------------------------------------------- */

Test(settle, flushes_in_a_row_are_rationed)
{
	enum { ROUNDS = 200 };
	_Atomic(uint32_t) freed = 0;
	struct reader reader;
	uint64_t before, began;

	begin_with_pauses_of(PAUSE_NS);
	begin(&reader);
	before = membarriers();
	began = weir_now_ns();
	for (uint32_t i = 1; i <= ROUNDS; i++) {
		retire_what_was_read(&reader, &freed);
		flush_all();
		cr_assert_eq(count_of(&freed), i);
	}
	cr_expect_leq(membarriers() - before, most_in(weir_now_ns() - began));
	cr_expect_geq(membarriers() - before, ROUNDS / 4, "a reader that is idle is settled");
	end(&reader);
}

/* Turns that were not used remain for calls that do not wait; when they are used up, such a call does without. */
Test(settle, flushes_that_do_not_wait_have_a_burst_of_turns)
{
	_Atomic(uint32_t) freed = 0;
	struct reader reader;
	uint64_t before;
	uint32_t rounds = 0;

	begin_with_pauses_of(patience_ns);
	begin(&reader);
	before = membarriers();
	do {
		retire_what_was_read(&reader, &freed);
		cr_assert_leq(++rounds, BURST + 3);
	} while (weir_reclaim_flush(0) == WEIR_OK);
	/* The turns of both kinds. */
	cr_expect_geq(membarriers() - before, BURST + 1);
	cr_expect_leq(membarriers() - before, BURST + 2);
	cr_expect_lt(count_of(&freed), rounds);
	begin_with_pauses_of(0);
	flush_all();
	cr_expect_eq(count_of(&freed), rounds);
	end(&reader);
}

enum { WRITERS = 8, EACH = 200 };

static void *write_over_the_budget(void *context)
{
	struct weiri_record *record = my_record();

	for (int i = 0; i < EACH; i++) {
		cr_assert_eq(weiri_reclaim_admit(record, weir_deadline_in(patience_ns)), WEIR_OK);
		weiri_section_leave(record, weiri_section_enter(record));
		retire_things(1, LARGE / 4, context);
	}
	return NULL;
}

Test(settle, eight_writers_over_the_budget_together_run_few_membarriers)
{
	_Atomic(uint32_t) freed = 0;
	pthread_t writers[WRITERS];
	uint64_t before, began;

	begin_with_pauses_of(PAUSE_NS);
	weir_reclaim_set_budget(LARGE);
	before = membarriers();
	began = weir_now_ns();
	for (int i = 0; i < WRITERS; i++)
		writers[i] = start(write_over_the_budget, &freed);
	for (int i = 0; i < WRITERS; i++)
		join(writers[i]);
	cr_expect_leq(membarriers() - before, most_in(weir_now_ns() - began));
	weir_reclaim_set_budget(0);
	flush_all();
	cr_expect_eq(count_of(&freed), WRITERS * EACH);
}

Test(settle, flushes_pay_for_a_slow_membarrier)
{
	enum { SLOW_NS = 2000000, FACTOR = 8, ROUNDS = 30 };
	_Atomic(uint32_t) freed = 0;
	struct reader reader;
	uint64_t before, began;

	begin_with_pauses_of(PAUSE_NS);
	begin(&reader);
	weiri_store_relaxed(&slow_ns, (uint64_t)SLOW_NS);
	before = membarriers();
	began = weir_now_ns();
	for (int i = 0; i < ROUNDS; i++) {
		retire_what_was_read(&reader, &freed);
		flush_all();
	}
	/* The first turns of a burst are paid for by the later ones. */
	cr_expect_leq(membarriers() - before, 3 + BURST * weiri_settle_pause_ns / (SLOW_NS * FACTOR) +
	                                          (weir_now_ns() - began) / (SLOW_NS * FACTOR));
	weiri_store_relaxed(&slow_ns, 0u);
	end(&reader);
}

/* -- sharing ----------------------------------------------------------------------------------- */

/* A thread that begins an era, and then, when the gate is open, settles it. */
struct settler {
	_Atomic(uint32_t) begun, done;
	_Atomic(uint32_t) *gate;
	pthread_t thread;
};

static void *begin_and_settle(void *context)
{
	struct settler *settler = context;
	uint64_t era = my_record() != NULL ? weiri_era_begin() : 0;

	advance(&settler->begun);
	latch_pass(settler->gate);
	while (!weiri_settle_to_wait(era))
		;
	advance(&settler->done);
	return NULL;
}

static void begin_settler(struct settler *settler, _Atomic(uint32_t) *gate)
{
	weiri_store_relaxed(&settler->begun, 0u);
	weiri_store_relaxed(&settler->done, 0u);
	settler->gate = gate;
	settler->thread = start(begin_and_settle, settler);
	wait_until(&settler->begun, 1);
}

/* Returns when the thread is in its membarrier, where it stays until stop_the_next advances. */
static void stop_a_leader(struct settler *leader)
{
	static _Atomic(uint32_t) open = 1;

	weiri_store_relaxed(&stop_the_next, 1u);
	begin_settler(leader, &open);
	wait_until(&stop_the_next, 2);
}

/* Those who come while one is under way are all served by the next. */
Test(settle, who_comes_while_one_is_under_way_shares_the_next)
{
	enum { OTHERS = 6 };
	struct settler leader, others[OTHERS];
	_Atomic(uint32_t) gate = 0;
	uint64_t before;

	begin_with_pauses_of(PAUSE_NS);
	weiri_settle_lost_ns = patience_ns;
	before = membarriers();
	stop_a_leader(&leader);
	for (int i = 0; i < OTHERS; i++)
		begin_settler(&others[i], &gate);
	latch_open(&gate);
	advance(&stop_the_next);
	for (int i = 0; i < OTHERS; i++)
		join(others[i].thread);
	join(leader.thread);
	cr_expect_eq(membarriers() - before, 2);
}

/* The era that the leader settles is not its own, but the newest when it begins. */
Test(settle, a_membarrier_serves_every_era_that_began_before_it)
{
	uint64_t mine, newest;

	begin_with_pauses_of(PAUSE_NS);
	mine = weiri_era_begin();
	newest = weiri_era_begin();
	cr_expect(weiri_settle_to_wait(mine));
	cr_expect_geq(weiri_announcements_settled(), newest);
}

Test(settle, a_leader_that_is_stopped_stops_nobody)
{
	_Atomic(uint32_t) freed = 0;
	struct settler stopped;
	struct reader reader;
	uint64_t began;

	begin_with_pauses_of(PAUSE_NS);
	begin(&reader);
	stop_a_leader(&stopped);
	began = weir_now_ns();
	retire_what_was_read(&reader, &freed);
	/* A flush that does not wait goes on without it, at once. */
	cr_expect(weir_reclaim_flush(0) == WEIR_DEADLINE_EXCEEDED || weir_now_ns() - began >= LOST_NS);
	flush_all();
	cr_expect_eq(count_of(&freed), 1);
	cr_expect_eq(weiri_load_relaxed(&stopped.done), 0u);
	advance(&stop_the_next);
	join(stopped.thread);
	/* It was late, and nothing it does now takes the turn of another. */
	retire_what_was_read(&reader, &freed);
	flush_all();
	cr_expect_eq(count_of(&freed), 2);
	end(&reader);
}

/* Who finds one under way looks for its end, but not for long; a collection of one thread does not look. */
Test(settle, who_finds_a_leader_under_way_goes_on_without)
{
	struct settler stopped;
	struct reader reader;
	uint64_t before;

	begin_with_pauses_of(PAUSE_NS);
	weiri_settle_lost_ns = patience_ns;
	begin(&reader);
	stop_a_leader(&stopped);
	before = membarriers();
	cr_expect_not(weiri_settle_to_wait(weiri_era_begin()));
	cr_expect_not(settle_what_is_old(&reader, OLD));
	cr_expect_eq(membarriers(), before);
	advance(&stop_the_next);
	join(stopped.thread);
	end(&reader);
}

Test(settle, a_leader_counts_as_stopped_after_a_time)
{
	struct settler stopped;

	begin_with_pauses_of(PAUSE_NS);
	freeze_the_clock();
	stop_a_leader(&stopped);
	advance_the_clock(LOST_NS - 1);
	cr_expect_not(weiri_settle_to_wait(weiri_era_begin()));
	advance_the_clock(1);
	cr_expect(weiri_settle_to_wait(weiri_era_begin()));
	advance(&stop_the_next);
	join(stopped.thread);
}

/* -- turns, by a clock that stands still ------------------------------------------------------- */

Test(settle, turns_that_were_not_used_remain_up_to_a_burst)
{
	begin_with_pauses_of(PAUSE_NS);
	freeze_the_clock();
	cr_expect_eq(turns_left(), BURST + 1);
	advance_the_clock(PAUSE_NS - 1);
	cr_expect_eq(turns_left(), 0);
	advance_the_clock(1);
	cr_expect_eq(turns_left(), 1);
	advance_the_clock((uint64_t)PAUSE_NS * 100);
	cr_expect_eq(turns_left(), BURST + 1);
}

Test(settle, collections_of_one_thread_have_turns_of_their_own)
{
	struct reader reader;

	begin_with_pauses_of(PAUSE_NS);
	freeze_the_clock();
	begin(&reader);
	cr_expect_not(settle_what_is_old(&reader, OLD - 1));
	cr_expect(settle_what_is_old(&reader, OLD));
	cr_expect_not(settle_what_is_old(&reader, OLD));
	cr_expect_eq(turns_left(), BURST + 1);
	advance_the_clock(PAUSE_NS - 1);
	cr_expect_not(settle_what_is_old(&reader, OLD));
	advance_the_clock(1);
	cr_expect(settle_what_is_old(&reader, OLD));
	end(&reader);
}

enum { MS = 1000000, LONGEST_MS = 4000 };

/* One that takes 100 ms costs 800 ms, and collections of one thread 4 s. */
Test(settle, a_slow_one_is_paid_for)
{
	struct reader reader;

	begin_with_pauses_of(PAUSE_NS);
	freeze_the_clock();
	begin(&reader);
	settle_in(100);
	cr_expect_eq(turns_left(), 0);
	advance_the_clock((uint64_t)(800 - BURST - 100) * MS - 1);
	cr_expect_eq(turns_left(), 0);
	advance_the_clock(1);
	cr_expect_eq(turns_left(), 1);
	advance_the_clock((uint64_t)(100 + LONGEST_MS - (800 - BURST)) * MS - 1);
	cr_expect_eq(turns_left(), BURST + 1);
	cr_expect_not(settle_what_is_old(&reader, OLD), "what is fast later does not shorten that");
	advance_the_clock(1);
	cr_expect(settle_what_is_old(&reader, OLD));
	end(&reader);
}

Test(settle, a_slow_one_of_a_collection_of_one_thread_costs_the_others_nothing)
{
	struct reader reader;

	begin_with_pauses_of(PAUSE_NS);
	freeze_the_clock();
	begin(&reader);
	cr_expect_eq(turns_left(), BURST + 1);
	weiri_store_relaxed(&takes_ns, (uint64_t)1000 * MS);
	cr_expect(settle_what_is_old(&reader, OLD));
	weiri_store_relaxed(&takes_ns, 0u);
	cr_expect_eq(turns_left(), BURST + 1);
	advance_the_clock((uint64_t)LONGEST_MS * MS - 1);
	cr_expect_not(settle_what_is_old(&reader, OLD));
	advance_the_clock(1);
	cr_expect(settle_what_is_old(&reader, OLD));
	end(&reader);
}

/* With pauses of a second, turns that were used ahead are worth more than the longest pause. */
Test(settle, to_pay_takes_no_turn_back)
{
	begin_with_pauses_of((uint64_t)1000 * MS);
	freeze_the_clock();
	for (int i = 0; i < 10; i++)
		cr_assert(weiri_settle_to_wait(weiri_era_begin()));
	settle_in(1000);
	cr_expect_eq(turns_left(), BURST + 1 - 11 + 1);
}

/* Each of them pays, but the process does not do without for longer than if one had. */
Test(settle, slow_leaders_at_one_time_pay_for_four_seconds_together)
{
	enum { LEADERS = 8 };
	static _Atomic(uint32_t) open = 1;
	struct settler leaders[LEADERS];

	begin_with_pauses_of(PAUSE_NS);
	freeze_the_clock();
	weiri_settle_lost_ns = 0; /* nobody waits for another */
	weiri_store_relaxed(&all_stop, 1u);
	for (int i = 0; i < LEADERS; i++)
		begin_settler(&leaders[i], &open);
	wait_until(&under_way_now, LEADERS);
	advance_the_clock((uint64_t)1000 * MS);
	weiri_store_relaxed(&all_stop, 0u);
	weiri_futex_wake(&all_stop, LEADERS);
	for (int i = 0; i < LEADERS; i++)
		join(leaders[i].thread);
	advance_the_clock((uint64_t)(LONGEST_MS - BURST) * MS - 1);
	cr_expect_eq(turns_left(), 0);
	advance_the_clock(1);
	cr_expect_eq(turns_left(), 1);
}

/* -- needed or not ----------------------------------------------------------------------------- */

Test(settle, where_nobody_has_announced_anything_a_flush_needs_none)
{
	_Atomic(uint32_t) freed = 0;
	uint64_t before;

	begin_with_pauses_of(PAUSE_NS);
	before = membarriers();
	retire_things(1, LARGE / 4, &freed);
	cr_expect_eq(weir_reclaim_flush(0), WEIR_OK);
	cr_expect_eq(count_of(&freed), 1);
	cr_expect_eq(membarriers(), before);
}

/* -- fork -------------------------------------------------------------------------------------- */

static int settle_in_the_child(void)
{
	if (!weiri_settle_to_wait(weiri_era_begin()))
		return 1;
	return weir_reclaim_flush(0) == WEIR_OK ? 0 : 2;
}

Test(settle, the_child_of_a_fork_has_no_leader)
{
	struct settler stopped;
	int status = -1;
	pid_t child;

	begin_with_pauses_of(PAUSE_NS);
	stop_a_leader(&stopped);
	child = fork();
	cr_assert_geq(child, 0);
	if (child == 0)
		_exit(settle_in_the_child());
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect_eq(status, 0);
	advance(&stop_the_next);
	join(stopped.thread);
}

static int settle_with_turns_of_its_own(void)
{
	struct reader reader;

	begin(&reader);
	if (turns_left() != BURST + 1)
		return 1;
	return settle_what_is_old(&reader, OLD) ? 0 : 2;
}

Test(settle, the_child_of_a_fork_has_all_turns)
{
	struct reader reader;
	int status = -1;
	pid_t child;

	if (UNDER_TSAN)
		cr_skip_test("ThreadSanitizer does not support threads in the child of a fork");
	begin_with_pauses_of(PAUSE_NS);
	freeze_the_clock();
	begin(&reader);
	cr_expect_eq(turns_left(), BURST + 1);
	cr_expect(settle_what_is_old(&reader, OLD));
	child = fork();
	cr_assert_geq(child, 0);
	if (child == 0)
		_exit(settle_with_turns_of_its_own());
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect_eq(status, 0);
	end(&reader);
}

/* -- refused ----------------------------------------------------------------------------------- */

static int wait_where_it_is_refused_late(void)
{
	uint64_t era, before;

	if (!has_membarrier() || !refuse_membarrier())
		return SANDBOX_NOT_HERE;
	before = membarriers();
	era = weiri_era_begin();
	if (weiri_settle_to_wait(era) || weiri_announcements_settled() >= era)
		return 1;
	return membarriers() == before + 1 ? SANDBOX_HELD : 2;
}

Test(settle, nothing_is_settled_where_membarrier_is_refused_late)
{
	in_a_sandbox(wait_where_it_is_refused_late);
}

static int wait_where_it_is_refused(void)
{
	/* Where the tests share a process, an earlier one has decided. */
	if (!refuse_membarrier() || has_membarrier())
		return SANDBOX_NOT_HERE;
	/* Such a fence needs no turn. */
	for (int i = 0; i < 2 * BURST; i++) {
		if (!weiri_settle_to_wait(weiri_era_begin()))
			return 1;
	}
	return SANDBOX_HELD;
}

Test(settle, the_fence_of_the_thread_is_enough_where_membarrier_is_refused_from_the_start)
{
	in_a_sandbox(wait_where_it_is_refused);
}
