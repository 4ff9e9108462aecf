/*
 * test_asymmetric.c - Dekker's pattern on the asymmetric fence: at least one of the light side and
 * the heavy side sees the other.
 */
#include <criterion/criterion.h>

#include <pthread.h>

#include "base/asymmetric.h"
#include "refuse_membarrier.h"

enum { ROUNDS = 20000 };

static _Atomic(int) light_flag;
static _Atomic(int) heavy_flag;
static int light_saw;
static int heavy_saw;
static pthread_barrier_t gate;

static void *light_side(void *argument)
{
	(void)argument;
	for (int i = 0; i < ROUNDS; i++) {
		(void)pthread_barrier_wait(&gate);
		weiri_store_relaxed(&light_flag, 1);
		weiri_fence_light();
		light_saw = weiri_load_relaxed(&heavy_flag);
		(void)pthread_barrier_wait(&gate);
		(void)pthread_barrier_wait(&gate);
	}
	return NULL;
}

/* Returns the number of rounds in which neither side saw the other. */
static int play_heavy_side(void)
{
	int missed = 0;

	for (int i = 0; i < ROUNDS; i++) {
		(void)pthread_barrier_wait(&gate);
		weiri_store_relaxed(&heavy_flag, 1);
		weiri_fence_heavy();
		heavy_saw = weiri_load_relaxed(&light_flag);
		(void)pthread_barrier_wait(&gate);
		missed += !light_saw && !heavy_saw;
		weiri_store_relaxed(&light_flag, 0);
		weiri_store_relaxed(&heavy_flag, 0);
		(void)pthread_barrier_wait(&gate);
	}
	return missed;
}

static int play(void)
{
	pthread_t light;
	int missed;

	cr_assert_eq(pthread_barrier_init(&gate, NULL, 2), 0);
	cr_assert_eq(pthread_create(&light, NULL, light_side, NULL), 0);
	missed = play_heavy_side();
	cr_assert_eq(pthread_join(light, NULL), 0);
	cr_assert_eq(pthread_barrier_destroy(&gate), 0);
	return missed;
}

Test(asymmetric, at_least_one_side_sees_the_other)
{
	weiri_fence_setup();
	cr_expect_eq(play(), 0);
}

Test(asymmetric, setup_twice_changes_nothing)
{
	int first;

	weiri_fence_setup();
	first = weiri_load_relaxed(&weiri_fence_asymmetric);
	weiri_fence_setup();
	cr_expect_eq(weiri_load_relaxed(&weiri_fence_asymmetric), first);
}

/* If Linux refuses membarrier at the setup, both sides use plain fences from then on. */
static int refused_from_the_start(void)
{
	if (!refuse_membarrier())
		return SANDBOX_NOT_HERE;
	/*
	 * The fork handler would call this, but it is not installed, because this process has not used
	 * Weir.
	 */
	weiri_fence_after_fork();
	if (weiri_load_relaxed(&weiri_fence_asymmetric) != 0)
		return 1;
	if (weiri_fence_heavy() != 1)
		return 2;
	weiri_fence_setup();
	return weiri_load_relaxed(&weiri_fence_asymmetric) != 0 ? 3 : SANDBOX_HELD;
}

Test(asymmetric, refused_from_the_start_both_sides_run_plain_fences)
{
	in_a_sandbox(refused_from_the_start);
}

static int refused_later(void)
{
	weiri_fence_after_fork();
	if (weiri_load_relaxed(&weiri_fence_asymmetric) == 0)
		return SANDBOX_NOT_HERE;
	if (weiri_fence_heavy() != 1)
		return 1;
	if (!refuse_membarrier())
		return SANDBOX_NOT_HERE;
	/*
	 * Other threads may already be past their light fences, so nothing may be concluded, now or
	 * later.
	 */
	for (int i = 0; i < 2; i++) {
		if (weiri_fence_heavy() != 0)
			return 2;
	}
	return weiri_load_relaxed(&weiri_fence_asymmetric) != 1 ? 3 : SANDBOX_HELD;
}

Test(asymmetric, refused_later_nothing_is_concluded)
{
	in_a_sandbox(refused_later);
}
