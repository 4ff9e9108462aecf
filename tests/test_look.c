/*
 * test_look.c - the looks of a thread before it waits (sync/look.h), and those who look: takers of a turn
 * (data/turn.h) and of elements, and threads at a critical section.
 *
 * This file defines clock_gettime(), so that time passes only by the readings of the clock and as a test
 * says, and sched_yield(), so that the actions of others happen exactly there. The clock of the thread under
 * test lags behind that of the machine, so its deadlines have passed for Linux, and no call sleeps.
 */
#include <criterion/criterion.h>

#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <weir/critical_section.h>
#include <weir/dataset.h>

#include "base/futex.h"
#include "data/turn.h"
#include "reclaim/record.h"
#include "sync/look.h"

enum { MICROSECOND = 1000, MILLISECOND = 1000000, MOST_READINGS = 1000000 };

/* Of the thread under test. */
struct test_clock {
	bool is_set;
	uint64_t now_ns, by_reading_ns, by_yield_ns;
	unsigned readings, yields;
	void (*at_yield)(void);
};
static _Thread_local struct test_clock clock_here;

int clock_gettime(clockid_t clock, struct timespec *now)
{
	struct timespec real = {0, 0}; /* MemorySanitizer does not see what a system call writes */
	int result = (int)syscall(SYS_clock_gettime, clock, &real);

	*now = real;
	if (clock_here.is_set) {
		now->tv_sec = (time_t)(clock_here.now_ns / 1000000000);
		now->tv_nsec = (long)(clock_here.now_ns % 1000000000);
		clock_here.now_ns += clock_here.by_reading_ns;
		cr_assert_lt(++clock_here.readings, MOST_READINGS, "the looks do not end");
	}
	return result;
}

int sched_yield(void)
{
	void (*at_yield)(void) = clock_here.at_yield;

	if (!clock_here.is_set)
		return (int)syscall(SYS_sched_yield);
	clock_here.yields++;
	clock_here.now_ns += clock_here.by_yield_ns;
	if (at_yield != NULL)
		at_yield();
	return 0;
}

static uint64_t begin_time(uint64_t by_reading_ns)
{
	clock_here = (struct test_clock){
		.is_set = true, .now_ns = weir_now_ns() - 1000 * MILLISECOND, .by_reading_ns = by_reading_ns};
	return clock_here.now_ns;
}

static void end_time(void)
{
	clock_here = (struct test_clock){0};
}

/* -- the looks --------------------------------------------------------------------------------- */

enum { NEVER = 1000000 };

/* Looks, each of which takes 10 ns, until there is to be none. Returns how many there were. */
static unsigned looks_of_10_ns(struct weiri_looks *looks)
{
	unsigned count = 0;

	while (weiri_looks_go_on(looks)) {
		clock_here.now_ns += 10;
		cr_assert_lt(++count, NEVER, "the looks do not end");
	}
	return count;
}

Test(look, they_end_when_their_time_is_over)
{
	struct weiri_own own = {0};
	struct weiri_looks looks;

	begin_time(0);
	weiri_looks_begin(&looks, &own, 100, WEIR_NO_DEADLINE, NEVER);
	cr_expect_not(weiri_looks_in_vain(&looks));
	cr_expect_eq(looks_of_10_ns(&looks), 10);
	cr_expect(weiri_looks_in_vain(&looks));
	cr_expect_not(weiri_looks_go_on(&looks), "and they stay ended");
	cr_expect_eq(clock_here.yields, 0);
	end_time();
}

Test(look, they_end_at_the_deadline)
{
	struct weiri_own own = {0};
	struct weiri_looks looks;
	uint64_t now = begin_time(0);

	weiri_looks_begin(&looks, &own, 100, now + 35, NEVER);
	cr_expect_eq(looks_of_10_ns(&looks), 4);
	weiri_looks_begin(&looks, &own, 100, now + 40, NEVER);
	cr_expect_eq(looks_of_10_ns(&looks), 0, "the deadline has passed");
	weiri_looks_begin(&looks, &own, 0, WEIR_NO_DEADLINE, NEVER);
	cr_expect_eq(looks_of_10_ns(&looks), 0, "no time at all");
	end_time();
}

Test(look, the_pauses_between_them_grow_to_a_bound)
{
	static const unsigned expected[] = {64, 128, 256, 256, 256};
	struct weiri_own own = {0};
	struct weiri_looks looks;

	begin_time(0);
	weiri_looks_begin(&looks, &own, 100, WEIR_NO_DEADLINE, NEVER);
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		cr_expect_eq(looks.pauses, expected[i], "look %zu: %u", i, looks.pauses);
		cr_expect(weiri_looks_go_on(&looks));
	}
	end_time();
}

Test(look, after_some_looks_the_thread_yields_once)
{
	struct weiri_own own = {0};
	struct weiri_looks looks;

	begin_time(0);
	weiri_looks_begin(&looks, &own, 100, WEIR_NO_DEADLINE, 3);
	for (unsigned i = 0; i < 10; i++) {
		cr_expect_eq(clock_here.yields, i > 3, "before look %u: %u yields", i, clock_here.yields);
		cr_expect(weiri_looks_go_on(&looks));
		clock_here.now_ns += 10;
	}
	cr_expect_not(weiri_looks_go_on(&looks));
	cr_expect_eq(clock_here.yields, 1);
	end_time();
}

Test(look, they_end_if_another_thread_wants_the_processor)
{
	struct weiri_own own = {0};
	struct weiri_looks looks;

	begin_time(0);
	clock_here.by_yield_ns = WEIRI_SHORT_YIELD_NS;
	weiri_looks_begin(&looks, &own, MILLISECOND, WEIR_NO_DEADLINE, 0);
	cr_expect(weiri_looks_go_on(&looks), "a short yield ran nobody");
	clock_here.by_yield_ns = WEIRI_SHORT_YIELD_NS + 1;
	weiri_looks_begin(&looks, &own, MILLISECOND, WEIR_NO_DEADLINE, 0);
	cr_expect_not(weiri_looks_go_on(&looks));
	cr_expect_not(weiri_looks_in_vain(&looks), "their time was not over");
	cr_expect_eq(own.yields_from_ns, 0);
	end_time();
}

Test(look, after_a_long_yield_they_do_without_one_for_a_while)
{
	struct weiri_own own = {0};
	struct weiri_looks looks;
	uint64_t before, longest = WEIRI_LONG_YIELD_NS + 1;

	begin_time(0);
	clock_here.by_yield_ns = longest;
	before = clock_here.now_ns;
	weiri_looks_begin(&looks, &own, MILLISECOND, WEIR_NO_DEADLINE, 0);
	cr_expect_not(weiri_looks_go_on(&looks));
	cr_expect_eq(own.yields_from_ns, before + longest * (1 + WEIRI_YIELD_REST));
	clock_here.now_ns = own.yields_from_ns - 20;
	weiri_looks_begin(&looks, &own, MILLISECOND, WEIR_NO_DEADLINE, 0);
	cr_expect(weiri_looks_go_on(&looks));
	cr_expect_eq(clock_here.yields, 1, "not yet");
	clock_here.now_ns = own.yields_from_ns;
	clock_here.by_yield_ns = 0;
	weiri_looks_begin(&looks, &own, MILLISECOND, WEIR_NO_DEADLINE, 0);
	cr_expect(weiri_looks_go_on(&looks));
	cr_expect_eq(clock_here.yields, 2);
	end_time();
}

Test(look, what_counts_of_a_yield_is_bounded)
{
	struct weiri_own own = {0};
	uint64_t before = begin_time(0);

	clock_here.by_yield_ns = 1000 * UINT64_C(1000000000);
	cr_expect_eq(weiri_yield(&own), 1000 * UINT64_C(1000000000));
	cr_expect_eq(own.yields_from_ns, before + WEIRI_LONGEST_YIELD_NS * (1 + WEIRI_YIELD_REST));
	own.yields_from_ns = 0;
	clock_here.by_yield_ns = WEIRI_LONG_YIELD_NS;
	cr_expect_eq(weiri_yield(&own), WEIRI_LONG_YIELD_NS);
	cr_expect_eq(own.yields_from_ns, 0, "not a long one");
	end_time();
}

/* -- turns ------------------------------------------------------------------------------------- */

static struct weiri_turn turn;

static void give_the_turn(void)
{
	weiri_turn_give(&turn);
}

static void stick_the_turn(void)
{
	cr_assert(weiri_turn_stick(&turn));
}

Test(look, a_turn_that_is_given_meanwhile_is_taken_at_once)
{
	struct weiri_own own = {0};
	uint64_t begun = begin_time(10);
	bool in_vain = false;

	weiri_turn_init(&turn, WEIRI_TURN_TAKEN);
	clock_here.at_yield = give_the_turn;
	cr_expect(weiri_turn_look(&turn, &own, WEIR_NO_DEADLINE, &in_vain));
	cr_expect_not(in_vain);
	cr_expect_eq(clock_here.yields, 1);
	cr_expect_lt(clock_here.now_ns - begun, 100);
	cr_expect_not(weiri_turn_take(&turn), "this thread has it");
	end_time();
}

Test(look, nobody_looks_for_a_turn_that_is_stuck)
{
	struct weiri_own own = {0};
	uint64_t begun = begin_time(10);
	bool in_vain = false;

	weiri_turn_init(&turn, WEIRI_TURN_TAKEN);
	clock_here.at_yield = stick_the_turn;
	cr_expect_not(weiri_turn_look(&turn, &own, WEIR_NO_DEADLINE, &in_vain));
	cr_expect_not(in_vain);
	cr_expect_lt(clock_here.now_ns - begun, 100);
	end_time();
}

Test(look, a_turn_that_stays_taken_is_looked_for_as_long_as_it_says)
{
	struct weiri_own own = {0};
	uint64_t begun = begin_time(10);
	bool in_vain = false;

	weiri_turn_init(&turn, WEIRI_TURN_TAKEN);
	cr_expect_not(weiri_turn_look(&turn, &own, WEIR_NO_DEADLINE, &in_vain));
	cr_expect(in_vain);
	cr_expect_geq(clock_here.now_ns - begun, weiri_turn_look_ns);
	cr_expect_lt(clock_here.now_ns - begun, weiri_turn_look_ns + 100);
	begun = clock_here.now_ns;
	cr_expect_not(weiri_turn_look(&turn, &own, begun + 5 * MICROSECOND, &in_vain));
	cr_expect_lt(clock_here.now_ns - begun, 5 * MICROSECOND + 100, "the deadline ends the looks");
	end_time();
}

/* -- sections ---------------------------------------------------------------------------------- */

static struct holder {
	weir_critical_section *section;
	pthread_t thread;
	_Atomic(uint32_t) is_inside, may_leave;
} holder;

static void open_latch(_Atomic(uint32_t) *latch)
{
	weiri_store_release(latch, 1u);
	weiri_futex_wake(latch, 1);
}

static void pass_latch(_Atomic(uint32_t) *latch)
{
	uint64_t deadline_ns = weir_deadline_in(UINT64_C(100000000000));

	while (weiri_load_acquire(latch) == 0)
		cr_assert(weiri_futex_wait(latch, 0, deadline_ns), "waited too long");
}

static enum weir_status be_inside(void *context, weir_error *error)
{
	(void)context, (void)error;
	open_latch(&holder.is_inside);
	pass_latch(&holder.may_leave);
	return WEIR_OK;
}

static void *hold(void *context)
{
	(void)context;
	cr_assert_eq(weir_critical_section_execute(holder.section, be_inside, NULL, 0, NULL, NULL), WEIR_OK);
	return NULL;
}

static void hold_in_a_thread(weir_critical_section *section)
{
	holder.section = section;
	weiri_store_relaxed(&holder.is_inside, 0u);
	weiri_store_relaxed(&holder.may_leave, 0u);
	cr_assert_eq(pthread_create(&holder.thread, NULL, hold, NULL), 0);
	pass_latch(&holder.is_inside);
}

static void let_the_holder_leave(void)
{
	clock_here.at_yield = NULL;
	open_latch(&holder.may_leave);
	cr_assert_eq(pthread_join(holder.thread, NULL), 0);
}

static enum weir_status count_up(void *context, weir_error *error)
{
	(void)error;
	++*(int *)context;
	return WEIR_OK;
}

/* Other tests may have run on this thread. */
static void forget_looks(void)
{
	cr_assert_not_null(weiri_record_get());
	weiri_record_mine->own->unlooked = 0;
	weiri_record_mine->own->yields_from_ns = 0;
}

static weir_critical_section *a_section(uint32_t flags)
{
	struct weir_critical_section_options options = {WEIR_CRITICAL_SECTION_OPTIONS_INIT, .flags = flags};
	weir_critical_section *section = NULL;

	cr_assert_eq(weir_critical_section_create(&options, &section, NULL), WEIR_OK);
	forget_looks();
	return section;
}

Test(look, a_section_that_becomes_free_meanwhile_is_entered)
{
	weir_critical_section *section = a_section(0);
	uint64_t begun;
	int calls = 0;

	hold_in_a_thread(section);
	begun = begin_time(10);
	clock_here.at_yield = let_the_holder_leave;
	cr_expect_eq(weir_critical_section_execute(section, count_up, &calls, begun + MILLISECOND, NULL, NULL), WEIR_OK);
	cr_expect_eq(clock_here.yields, 1);
	end_time();
	cr_expect_eq(calls, 1);
	cr_expect_eq(weiri_record_mine->own->unlooked, 0);
	cr_expect_eq(weir_critical_section_destroy(section, NULL), WEIR_OK);
}

/* Waits in vain for a section whose holder stays inside. Returns how many of the next waits do without looks. */
static uint32_t wait_in_vain(weir_critical_section *section, uint64_t wait_ns)
{
	int calls = 0;

	hold_in_a_thread(section);
	cr_expect_eq(weir_critical_section_execute(section, count_up, &calls, begin_time(10) + wait_ns, NULL, NULL),
	             WEIR_DEADLINE_EXCEEDED);
	end_time();
	cr_expect_eq(calls, 0);
	let_the_holder_leave();
	return weiri_record_mine->own->unlooked;
}

Test(look, looks_in_vain_at_one_long_execution_are_saved_afterwards)
{
	weir_critical_section *section = a_section(0);
	uint32_t saved = wait_in_vain(section, MILLISECOND);

	cr_expect_eq(saved, 64);
	for (uint32_t i = 1; i <= saved; i++)
		cr_expect_eq(wait_in_vain(section, 10 * MICROSECOND), saved - i, "without looks");
	cr_expect_eq(wait_in_vain(section, MILLISECOND), saved, "it looks again");
	cr_expect_eq(weir_critical_section_destroy(section, NULL), WEIR_OK);
}

Test(look, nobody_looks_at_a_fair_section)
{
	weir_critical_section *section = a_section(WEIR_CRITICAL_SECTION_FAIR);

	cr_expect_eq(wait_in_vain(section, MILLISECOND), 0);
	cr_expect_eq(weir_critical_section_destroy(section, NULL), WEIR_OK);
}

/* -- iterators --------------------------------------------------------------------------------- */

/* The function of a map, which the thread that has the turn runs. */
static enum weir_status be_inside_a_map(void *context, weir_tensor *const in[], weir_tensor *out[], weir_error *error)
{
	out[0] = weir_tensor_retain(in[0]);
	return be_inside(context, error);
}

static void *take_one(void *context)
{
	weir_tensor *part;

	cr_assert_eq(weir_iterator_next(context, WEIR_NO_DEADLINE, NULL, &part, 1, NULL), WEIR_OK);
	weir_tensor_release(part);
	return NULL;
}

/* Waits in vain for the turn of a thread that takes long. Returns how many of the next waits do without looks. */
static uint32_t wait_in_vain_for_the_turn(weir_iterator *iterator, uint64_t wait_ns)
{
	weir_tensor *part;

	weiri_store_relaxed(&holder.is_inside, 0u);
	weiri_store_relaxed(&holder.may_leave, 0u);
	cr_assert_eq(pthread_create(&holder.thread, NULL, take_one, iterator), 0);
	pass_latch(&holder.is_inside);
	clock_here.at_yield = NULL;
	cr_expect_eq(weir_iterator_next(iterator, begin_time(10) + wait_ns, NULL, &part, 1, NULL), WEIR_DEADLINE_EXCEEDED);
	end_time();
	let_the_holder_leave();
	return weiri_record_mine->own->unlooked;
}

Test(look, looks_in_vain_for_the_turn_of_one_that_takes_long_are_saved_afterwards)
{
	weir_dataset *numbers, *map;
	weir_iterator *iterator;
	uint32_t saved;

	cr_assert_eq(weir_dataset_range(0, 1000, 1, NULL, &numbers, NULL), WEIR_OK);
	cr_assert_eq(weir_dataset_map(numbers, be_inside_a_map, NULL, NULL, &map, NULL), WEIR_OK);
	cr_assert_eq(weir_iterator_create(map, NULL, &iterator, NULL), WEIR_OK);
	forget_looks();
	saved = wait_in_vain_for_the_turn(iterator, MILLISECOND);
	cr_expect_eq(saved, 64);
	for (uint32_t i = 1; i <= saved; i++)
		cr_expect_eq(wait_in_vain_for_the_turn(iterator, 10 * MICROSECOND), saved - i, "without looks");
	cr_expect_eq(wait_in_vain_for_the_turn(iterator, MILLISECOND), saved, "it looks again");
	cr_expect_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
	weir_dataset_release(map);
	weir_dataset_release(numbers);
}
