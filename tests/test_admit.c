/*
 * test_admit.c - how a thread that waits for memory sleeps: for how long, what ends it, and who wakes it.
 *
 * This program defines syscall(2) and clock_gettime(2). For a thread that simulates its sleeps, the clock stands
 * still, and a sleep takes no time: it sets the clock to its end.
 */
#include "reclaim_kit.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <weir/thread.h>

#include "base/asymmetric.h"
#include "libc_calls.h"
#include "reclaim/settle.h"

enum { MS = 1000000, MOST_SLEEPS = 1000 };

/* Called in each simulated sleep; returns 0, or the error of futex(2) that ends it before its time. */
typedef int in_sleep_fn(unsigned number);

/* What a thread that simulates its sleeps keeps. */
struct simulated {
	uint64_t now_ns; /* 0: it does not simulate */
	in_sleep_fn *in_sleep;
	void (*in_membarrier)(void), (*in_wake)(void);
	unsigned sleeps;
	uint64_t ends_ns[MOST_SLEEPS];
	uint32_t wakes;
};

static _Thread_local struct simulated mine;

int clock_gettime(clockid_t clock, struct timespec *time)
{
	if (clock == CLOCK_MONOTONIC && mine.now_ns != 0) {
		*time = (struct timespec){(time_t)(mine.now_ns / 1000000000u), (long)(mine.now_ns % 1000000000u)};
		return 0;
	}
	return libc_clock_gettime(clock, time);
}

static long simulate_a_sleep(const struct timespec *until)
{
	uint64_t end = (uint64_t)until->tv_sec * 1000000000u + (uint64_t)until->tv_nsec;
	unsigned number = mine.sleeps++;
	int why;

	cr_assert_lt(number, MOST_SLEEPS);
	mine.ends_ns[number] = end;
	why = mine.in_sleep != NULL ? mine.in_sleep(number) : 0;
	if (why == 0 && mine.now_ns < end)
		mine.now_ns = end;
	errno = why != 0 ? why : ETIMEDOUT;
	return -1;
}

static void hear(void (*hearer)(void))
{
	if (hearer != NULL)
		hearer();
}

long syscall(long number, ...);

long syscall(long number, ...)
{
	long arguments[6];
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		arguments[i] = va_arg(list, long);
	va_end(list);
	if (mine.now_ns != 0 && number == SYS_futex && arguments[1] == FUTEX_WAIT_BITSET_PRIVATE && arguments[3] != 0)
		return simulate_a_sleep((const struct timespec *)arguments[3]);
	if (number == SYS_futex && arguments[1] == FUTEX_WAKE_PRIVATE) {
		mine.wakes++;
		hear(mine.in_wake);
	}
	if (number == SYS_membarrier && arguments[0] == MEMBARRIER_CMD_PRIVATE_EXPEDITED)
		hear(mine.in_membarrier);
	return libc_syscall(number, arguments);
}

/* This thread simulates its sleeps from now on; each turn to settle is there. */
static struct weiri_record *simulate(in_sleep_fn *in_sleep)
{
	struct weiri_record *record = my_record();

	mine = (struct simulated){.in_sleep = in_sleep};
	weiri_settle_pause_ns = 0;
	weiri_settle_after_fork();
	mine.now_ns = weir_now_ns() | 1;
	return record;
}

static void stop_to_simulate(void)
{
	mine = (struct simulated){0};
	weiri_settle_pause_ns = MS;
	weiri_settle_after_fork();
	weiri_reclaim_look_again_ns = MS;
}

static _Atomic(uint32_t) freed;

/* This thread holds what exceeds the budget. */
static void exceed_the_budget(void)
{
	struct weiri_record *record = my_record();
	struct thing *held = make(LARGE, &freed);

	weiri_slot_claim(&record->slots[0], held);
	weiri_retire(record, &held->retired);
	weir_reclaim_set_budget(LARGE - 1);
}

static void make_room(void)
{
	weiri_slot_clear(&my_record()->slots[0]);
	weir_reclaim_set_budget(0);
	flush_all();
}

/* Returns true if a thread waits, as far as those know that free memory. */
static bool someone_is_woken(void)
{
	uint32_t before = mine.wakes;

	weiri_memory_freed();
	return mine.wakes != before;
}

/* -- pauses ------------------------------------------------------------------------------------ */

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The sleeps of a wait of a second: between two looks a pause, and then a sleep that a wake-up ends. */
static void expect_the_sleeps_of(uint64_t look_again_ns)
{
	uint64_t began = mine.now_ns, now = began, deadline = began + (uint64_t)1000 * MS;
	unsigned number = 0;

	cr_expect_eq(weiri_reclaim_admit(my_record(), deadline), WEIR_RESOURCE_EXHAUSTED);
	while (now < deadline) {
		uint64_t pause = least((now - began) / 8, (uint64_t)10 * MS);
		uint64_t listen = pause < look_again_ns ? look_again_ns : pause;

		if (pause != 0) {
			now = least(now + pause, deadline);
			cr_assert_eq(mine.ends_ns[number++], now, "the pause after %lu ns", (unsigned long)(now - began));
		}
		now = least(now + listen, deadline);
		cr_assert_eq(mine.ends_ns[number++], now, "the sleep after %lu ns", (unsigned long)(now - began));
	}
	cr_expect_eq(mine.sleeps, number);
	cr_expect_eq(mine.now_ns, deadline);
}

Test(admit, a_pause_is_an_eighth_of_the_wait_and_ten_milliseconds_at_most)
{
	exceed_the_budget();
	(void)simulate(NULL);
	weiri_reclaim_look_again_ns = (uint64_t)3 * MS;
	expect_the_sleeps_of((uint64_t)3 * MS);
	stop_to_simulate();
	make_room();
}

Test(admit, who_is_not_sure_to_be_woken_looks_again_after_a_millisecond)
{
	exceed_the_budget();
	(void)simulate(NULL);
	weiri_settle_pause_ns = patience_ns;
	while (weiri_settle_to_wait(weiri_era_begin())) {
		if (weiri_load_relaxed(&weiri_fence_asymmetric) == 0) {
			stop_to_simulate();
			make_room();
			cr_skip_test("membarrier is refused here");
		}
	}
	weiri_reclaim_look_again_ns = (uint64_t)3 * MS;
	expect_the_sleeps_of(MS);
	stop_to_simulate();
	make_room();
}

/* -- signals ----------------------------------------------------------------------------------- */

static unsigned signal_in, asked;
static int answers;

static int answer(void *unused)
{
	(void)unused;
	return ++asked > 3 ? 1 : answers;
}

static int be_signalled(unsigned number)
{
	return number == signal_in ? EINTR : 0;
}

static int be_signalled_and_get_room(unsigned number)
{
	(void)number;
	weir_reclaim_set_budget(0);
	return EINTR;
}

static void expect_signal(unsigned number, int answer_then, enum weir_status status, unsigned sleeps_then)
{
	struct weiri_record *record = simulate(be_signalled);

	signal_in = number;
	asked = 0;
	answers = answer_then;
	cr_expect_eq(weiri_reclaim_admit(record, mine.now_ns + (uint64_t)50 * MS), status, "a signal in sleep %u", number);
	cr_expect_eq(asked, number < MOST_SLEEPS ? 1 : 0, "a signal in sleep %u: asked %u times", number, asked);
	cr_expect(sleeps_then == 0 || mine.sleeps == sleeps_then, "a signal in sleep %u: it sleeps on", number);
	stop_to_simulate();
}

/* The first sleep has no pause before it. */
Test(admit, a_signal_in_any_sleep_ends_the_wait_if_the_interrupt_wants_it)
{
	exceed_the_budget();
	cr_assert_eq(weir_thread_set_interrupt(answer, NULL), WEIR_OK);
	for (unsigned number = 0; number < 4; number++) {
		expect_signal(number, 1, WEIR_CANCELLED, number + 1);
		expect_signal(MOST_SLEEPS, 1, WEIR_RESOURCE_EXHAUSTED, 0);
		expect_signal(number, 0, WEIR_RESOURCE_EXHAUSTED, 0);
	}
	cr_assert_eq(weir_thread_set_interrupt(NULL, NULL), WEIR_OK);
	make_room();
}

Test(admit, who_gets_room_is_not_interrupted)
{
	struct weiri_record *record;

	exceed_the_budget();
	cr_assert_eq(weir_thread_set_interrupt(answer, NULL), WEIR_OK);
	record = simulate(be_signalled_and_get_room);
	asked = 0;
	answers = 1;
	cr_expect_eq(weiri_reclaim_admit(record, mine.now_ns + (uint64_t)50 * MS), WEIR_OK);
	cr_expect_eq(asked, 0);
	cr_expect_eq(mine.sleeps, 1);
	stop_to_simulate();
	cr_assert_eq(weir_thread_set_interrupt(NULL, NULL), WEIR_OK);
	make_room();
}

/* -- looks ------------------------------------------------------------------------------------- */

static size_t late_bytes;

/* A collection frees the first object; the second one dies only after that collection has looked at the readers. */
static void retire_two(void)
{
	struct weiri_record *record = my_record();
	struct thing *late = make(late_bytes, &freed);

	weiri_store_relaxed(&record->stack, 0u);
	retire_things(1, LARGE, &freed);
	weiri_store_relaxed(&record->stack, 1u);
	late->retired.death = WEIRI_DIES_LATE;
	weiri_retire(record, &late->retired);
}

/* Retires the two in a collection that has already looked at their stacks: no other one begins meanwhile. */
static void retire_one_and_a_late_one(size_t bytes_of_the_late_one)
{
	struct weiri_record *record = my_record();
	struct thing *first = make(1, &freed);

	flush_all();
	late_bytes = bytes_of_the_late_one;
	first->also = retire_two;
	weiri_store_relaxed(&record->stack, (uint32_t)WEIRI_STACKS - 1);
	weiri_retire(record, &first->retired);
	cr_assert_not(weiri_collect_for_all(record));
}

static uint64_t collections_to_be_admitted(enum weir_status status)
{
	uint64_t before = stats_now().collections;

	cr_expect_eq(weiri_reclaim_admit(my_record(), 0), status);
	return stats_now().collections - before;
}

Test(admit, a_look_collects_again_only_if_that_may_make_room)
{
	weir_reclaim_set_budget(LARGE - 1);
	retire_one_and_a_late_one(LARGE);
	cr_expect_eq(collections_to_be_admitted(WEIR_OK), 2);
	retire_one_and_a_late_one(1);
	cr_expect_eq(collections_to_be_admitted(WEIR_OK), 1, "there is room already");
	exceed_the_budget();
	cr_expect_eq(collections_to_be_admitted(WEIR_RESOURCE_EXHAUSTED), 1, "nothing died in it");
	make_room();
}

static struct weiri_record *waits;
static unsigned membarriers_of_the_wait;

static void let_go(void)
{
	if (weiri_load_relaxed(&waits->waits) == 0)
		return;
	membarriers_of_the_wait++;
	cr_expect_eq(weiri_load_relaxed(&waits->poke), 1, "it asks to be woken before its fence");
	weiri_slot_drop(&waits->slots[0]);
}

/* F1: a slot that was cleared before the fence, by a thread that saw no waiter, is seen by the look behind it. */
Test(admit, a_waiter_asks_to_be_woken_then_runs_the_fence_then_looks)
{
	exceed_the_budget();
	waits = simulate(NULL);
	weiri_store_relaxed(&waits->poke, 0u);
	if (weiri_load_relaxed(&weiri_fence_asymmetric) == 0) {
		stop_to_simulate();
		make_room();
		cr_skip_test("membarrier is refused here");
	}
	mine.in_membarrier = let_go;
	membarriers_of_the_wait = 0;
	cr_expect_eq(weiri_reclaim_admit(waits, mine.now_ns + (uint64_t)50 * MS), WEIR_OK);
	cr_expect_eq(membarriers_of_the_wait, 1);
	cr_expect_eq(mine.sleeps, 0);
	stop_to_simulate();
	make_room();
}

/* -- wake-ups ---------------------------------------------------------------------------------- */

static uint64_t budget_at_the_wake;
static uint32_t poke_at_the_wake;

static void look_at_the_wake(void)
{
	budget_at_the_wake = weir_reclaim_budget();
	poke_at_the_wake = weiri_load_relaxed(&waits->poke);
}

/* In each sleep something else may have made room. */
static int make_some_room(unsigned number)
{
	uint32_t before = mine.wakes;

	mine.in_wake = look_at_the_wake;
	if (number == 0)
		cr_expect(someone_is_woken());
	if (number == 1)
		weir_reclaim_set_budget(LARGE - 2);
	cr_expect(number != 1 || budget_at_the_wake == LARGE - 2);
	if (number == 2)
		weiri_budget_give(WEIRI_KEPT_MAGAZINES, 0);
	if (number == 3) {
		weiri_slot_claim(&waits->slots[1], waits);
		cr_expect_eq(weiri_load_relaxed(&waits->poke), 1);
		weiri_slot_clear(&waits->slots[1]);
		cr_expect_eq(poke_at_the_wake, 0, "a poke that comes while it wakes remains");
		cr_expect_eq(weiri_load_relaxed(&waits->poke), 0);
	}
	if (number == 4) {
		retire_things(1, LARGE, &freed);
		(void)weiri_collect_for_all(waits);
	}
	cr_expect(number > 4 || mine.wakes != before, "sleep %u", number);
	return 0;
}

Test(admit, a_waiter_is_woken_by_all_that_may_make_room)
{
	exceed_the_budget();
	cr_expect_not(someone_is_woken());
	waits = simulate(make_some_room);
	cr_expect_eq(weiri_reclaim_admit(waits, mine.now_ns + (uint64_t)50 * MS), WEIR_RESOURCE_EXHAUSTED);
	cr_expect_gt(mine.sleeps, 5);
	stop_to_simulate();
	cr_expect_not(someone_is_woken(), "it waits no more");
	make_room();
}

/* -- threads that end -------------------------------------------------------------------------- */

static void end_the_thread(struct weiri_retired *unused)
{
	(void)unused;
	pthread_exit(NULL);
}

static struct last {
	_Alignas(64) struct weiri_retired retired;
} last[2];
static _Atomic(uint32_t) next_last;

static int retire_the_last(unsigned number)
{
	struct weiri_retired *retired = &last[weiri_fetch_add_relaxed(&next_last, 1u)].retired;

	cr_assert_eq(number, 0);
	cr_expect(someone_is_woken());
	weiri_retired_init(retired, 1, end_the_thread);
	weiri_retire(my_record(), retired);
	return 0;
}

static void *end_in_a_wait(void *unused)
{
	struct weiri_record *record = simulate(retire_the_last);

	(void)weiri_reclaim_admit(record, mine.now_ns + (uint64_t)50 * MS);
	cr_expect_fail("it has not ended");
	return unused;
}

static void *end_without_a_wait(void *unused)
{
	(void)my_record();
	return unused;
}

Test(admit, a_thread_that_ends_waits_no_more)
{
	exceed_the_budget();
	join(start(end_without_a_wait, NULL));
	cr_expect_not(someone_is_woken());
	for (int i = 0; i < 2; i++) {
		join(start(end_in_a_wait, NULL));
		cr_expect_not(someone_is_woken());
		join(start(end_without_a_wait, NULL)); /* it takes the record over */
		cr_expect_not(someone_is_woken());
	}
	stop_to_simulate();
	make_room();
}

static _Atomic(uint32_t) wakes_at_the_end;

static void count_a_wake(void)
{
	weiri_fetch_add_relaxed(&wakes_at_the_end, 1u);
}

static void *end_in_a_collection(void *unused)
{
	static struct last of_this_thread;
	struct weiri_record *record = my_record();

	weiri_retired_init(&of_this_thread.retired, 1, end_the_thread);
	weiri_retire(record, &of_this_thread.retired);
	mine.in_wake = count_a_wake;
	(void)weiri_collect_for_all(record);
	cr_expect_fail("it has not ended");
	return unused;
}

static int end_another_thread(unsigned number)
{
	if (number == 0)
		join(start(end_in_a_collection, NULL));
	return 0;
}

/* What it had in hand may be collected by others from then on. */
Test(admit, a_thread_that_ends_in_a_collection_wakes_who_waits)
{
	struct weiri_record *record;

	flush_all();
	exceed_the_budget();
	weiri_store_relaxed(&wakes_at_the_end, 0u);
	record = simulate(end_another_thread);
	cr_expect_eq(weiri_reclaim_admit(record, mine.now_ns + (uint64_t)50 * MS), WEIR_RESOURCE_EXHAUSTED);
	cr_expect_gt(weiri_load_relaxed(&wakes_at_the_end), 0);
	stop_to_simulate();
	make_room();
}

/* -- fork -------------------------------------------------------------------------------------- */

/* Forks; the child has someone who waits, or has not. */
static void expect_in_a_child(bool waiter)
{
	pid_t child = fork();
	int status = -1;

	cr_assert_geq(child, 0);
	if (child == 0) {
		(void)alarm(100);
		_exit(someone_is_woken() == waiter ? 0 : 1);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect_eq(status, 0);
}

static int fork_in_a_sleep(unsigned number)
{
	if (number == 0)
		expect_in_a_child(true);
	return 0;
}

Test(admit, who_forks_while_it_waits_waits_in_the_child_too)
{
	struct weiri_record *record;

	exceed_the_budget();
	record = simulate(fork_in_a_sleep);
	cr_expect_eq(weiri_reclaim_admit(record, mine.now_ns + (uint64_t)5 * MS), WEIR_RESOURCE_EXHAUSTED);
	stop_to_simulate();
	make_room();
}

static _Atomic(uint32_t) asleep, forked;

static int stay_asleep(unsigned number)
{
	if (number != 0)
		return 0;
	mine.now_ns = 0; /* the latches use the clock */
	latch_open(&asleep);
	latch_pass(&forked);
	mine.now_ns = weir_now_ns() + 100 * MS; /* past its deadline */
	return 0;
}

static void *wait_meanwhile(void *unused)
{
	struct weiri_record *record = simulate(stay_asleep);

	cr_expect_eq(weiri_reclaim_admit(record, mine.now_ns + (uint64_t)5 * MS), WEIR_RESOURCE_EXHAUSTED);
	mine.now_ns = 0;
	return unused;
}

static void *fork_without_a_record(void *unused)
{
	cr_expect_null(weiri_record_mine);
	expect_in_a_child(false);
	return unused;
}

Test(admit, nobody_else_waits_in_the_child_of_a_fork)
{
	pthread_t waiter;

	weiri_store_relaxed(&asleep, 0u);
	weiri_store_relaxed(&forked, 0u);
	exceed_the_budget();
	waiter = start(wait_meanwhile, NULL);
	latch_pass(&asleep);
	cr_expect(someone_is_woken());
	expect_in_a_child(false);
	join(start(fork_without_a_record, NULL));
	latch_open(&forked);
	join(waiter);
	stop_to_simulate();
	make_room();
}
