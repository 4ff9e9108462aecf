/*
 * selftest.c - tests with known outcomes, which scripts/check_runner compares with the output of
 * the runner.
 */
#include <criterion/criterion.h>

#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int fixtures;

static void set_up(void)
{
	fixtures++;
}

static void tear_down(void)
{
	fixtures--;
}

Test(good, checks_that_hold)
{
	const char *nothing = NULL;

	cr_assert(1);
	cr_assert(1, "with a message");
	cr_expect_not(0, "and an argument: %d", 1);
	cr_assert_eq(2, 2);
	cr_assert_neq(2, 3, "two is not %s", "three");
	cr_assert_lt(1, 2);
	cr_assert_leq(2, 2);
	cr_assert_gt(3, 2);
	cr_assert_geq(3, 3);
	cr_assert_null(nothing);
	cr_assert_not_null("x");
	cr_assert_str_eq("a", "a");
	cr_assert_str_neq("a", "b");
	cr_assert_arr_eq("abc", "abd", 2);
	cr_assert_arr_neq("abc", "abd", 3);
	cr_assert_float_eq(1.0, 1.05, 0.1);
	cr_assert_float_neq(1.0, 1.5, 0.1, "%g apart", 0.5);
	cr_log_info("said %d", 1);
}

Test(good, fixture_runs_before, .init = set_up, .fini = tear_down)
{
	cr_assert_eq(fixtures, 1);
}

Test(good, fixture_ran_after)
{
	cr_assert_eq(fixtures, 0);
}

Test(bad, assert_leaves_the_test)
{
	cr_assert_eq(1, 2, "marker-%s", "assert");
	cr_log_info("marker-after-assert");
}

Test(bad, expect_goes_on)
{
	cr_expect(0);
	cr_log_info("marker-after-expect");
}

Test(bad, string_differs)
{
	cr_assert_str_eq("a", "b");
}

Test(bad, nan_is_not_near)
{
	double zero = 0.0;

	cr_assert_float_eq(zero / zero, 1.0, 0.5);
}

static void *assert_elsewhere(void *argument)
{
	(void)argument;
	cr_assert(0, "marker-thread");
	cr_log_info("marker-after-thread");
	return NULL;
}

Test(bad, assert_on_another_thread)
{
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, assert_elsewhere, NULL), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
}

Test(other, skips)
{
	cr_skip("marker-%s", "skip");
	cr_log_info("marker-after-skip");
}

Test(other, disabled, .disabled = true)
{
	cr_log_info("marker-disabled");
}

Test(end, hangs, .timeout = 0.1)
{
	for (;;)
		(void)pause();
}

static volatile int spinning = 1;

Test(end, spins, .timeout = 0.1)
{
	while (spinning)
		;
}

/* It is long by the clock. How much processor time it uses depends on how busy the machine is. */
Test(late, spins_for_seconds, .timeout = 0.4)
{
	time_t until = time(NULL) + 5;

	while (time(NULL) < until)
		;
}

Test(end, crashes)
{
	abort();
}

Test(end, leaves_with_code_7)
{
	_exit(7);
}

/* A sanitizer must find the faults below. */

static void *volatile forgotten;

Test(end, leaks)
{
	forgotten = malloc(100);
	cr_assert_not_null(forgotten);
	forgotten = NULL;
}

Test(end, overflows)
{
	volatile int big = 2147483647;

	big = big + 1;
	cr_assert_neq(big, 0);
}

/* Volatile, so that the compiler does not see what the sanitizer must see. */
static char *volatile kept;

Test(end, uses_after_free)
{
	kept = calloc(1, 100);
	cr_assert_not_null(kept);
	free(kept);
	cr_expect_neq(kept[0], 2);
}

Test(end, decides_by_what_was_never_set)
{
	char *memory = malloc(100);

	cr_assert_not_null(memory);
	kept = memory;
	if (kept[0] == 2)
		cr_log_info("two");
	free(memory);
}

static int raced;

static void *race(void *argument)
{
	(void)argument;
	for (int i = 0; i < 1000; i++)
		*(volatile int *)&raced += 1;
	return NULL;
}

Test(end, races)
{
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, race, NULL), 0);
	(void)race(NULL);
	cr_assert_eq(pthread_join(thread, NULL), 0);
}
