/*
 * test_time.c - the clock of deadlines.
 */
#include <criterion/criterion.h>

#include <time.h>
#include <weir/time.h>

Test(time, is_clock_monotonic_in_nanoseconds)
{
	struct timespec reference;
	uint64_t before = weir_now_ns(), between, after;

	cr_assert_eq(clock_gettime(CLOCK_MONOTONIC, &reference), 0);
	after = weir_now_ns();
	between = (uint64_t)reference.tv_sec * 1000000000u + (uint64_t)reference.tv_nsec;
	cr_expect_leq(before, between);
	cr_expect_leq(between, after);
}

Test(time, a_deadline_is_that_far_from_now)
{
	uint64_t before = weir_now_ns();
	uint64_t deadline = weir_deadline_in(5000000000u);
	uint64_t after = weir_now_ns();

	cr_expect_geq(deadline, before + 5000000000u);
	cr_expect_leq(deadline, after + 5000000000u);
}

Test(time, a_deadline_beyond_the_clock_never_passes)
{
	cr_expect_eq(weir_deadline_in(WEIR_NO_DEADLINE), WEIR_NO_DEADLINE);
	cr_expect_eq(weir_deadline_in(WEIR_NO_DEADLINE - 1), WEIR_NO_DEADLINE);
}

Test(time, a_deadline_of_no_time_is_now_and_not_never)
{
	cr_expect_lt(weir_deadline_in(0), WEIR_NO_DEADLINE);
	cr_expect_leq(weir_deadline_in(0), weir_now_ns());
}
