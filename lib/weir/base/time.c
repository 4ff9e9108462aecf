/*
 * time.c - CLOCK_MONOTONIC in nanoseconds.
 */
#include <weir/time.h>

#include <time.h>

uint64_t weir_now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t weir_deadline_in(uint64_t nanoseconds)
{
	uint64_t now = weir_now_ns();

	return nanoseconds < WEIR_NO_DEADLINE - now ? now + nanoseconds : WEIR_NO_DEADLINE;
}
