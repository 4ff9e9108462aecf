/*
 * test_signal.c - a raise is never missed, whenever it comes.
 */
#include <criterion/criterion.h>

#include <pthread.h>
#include <weir/time.h>

#include "run/signal.h"

enum { RAISES = 3000 };
static const uint64_t patience_ns = UINT64_C(100000000000);

Test(signal, waiting_for_what_has_happened_returns_at_once)
{
	struct weiri_signal signal;
	uint32_t seen;

	weiri_signal_init(&signal);
	seen = weiri_signal_now(&signal);
	weiri_signal_raise(&signal);
	cr_expect_eq(weiri_signal_wait(&signal, seen, 0), WEIRI_PARK_WOKEN);
	cr_expect_neq(weiri_signal_now(&signal), seen);
}

Test(signal, a_deadline_ends_the_wait)
{
	struct weiri_signal signal;

	weiri_signal_init(&signal);
	cr_expect_eq(weiri_signal_wait(&signal, weiri_signal_now(&signal), 0), WEIRI_PARK_TIMEOUT);
	cr_expect_eq(weiri_signal_wait(&signal, weiri_signal_now(&signal), weir_deadline_in(5000000)), WEIRI_PARK_TIMEOUT);
	/* The mark of a sleeper must not look like a raise. */
	cr_expect_eq(weiri_signal_wait(&signal, weiri_signal_now(&signal), 0), WEIRI_PARK_TIMEOUT);
}

/* Two threads hand a plain number back and forth. */
struct rally {
	struct weiri_signal ping, pong;
	int ball;
	int missed;
};

static int await(struct weiri_signal *signal, uint32_t *seen)
{
	int raised = weiri_signal_wait(signal, *seen, weir_deadline_in(patience_ns)) == WEIRI_PARK_WOKEN;

	*seen = weiri_signal_now(signal);
	return raised;
}

static void *return_ball(void *context)
{
	struct rally *rally = context;
	uint32_t seen = 0;

	for (int i = 0; i < RAISES && rally->missed == 0; i++) {
		if (!await(&rally->ping, &seen))
			rally->missed = 1;
		rally->ball++;
		weiri_signal_raise(&rally->pong);
	}
	return NULL;
}

Test(signal, a_rally_of_two_threads_never_stops)
{
	struct rally rally = {.ball = 0, .missed = 0};
	uint32_t seen = 0;
	pthread_t thread;

	weiri_signal_init(&rally.ping);
	weiri_signal_init(&rally.pong);
	cr_assert_eq(pthread_create(&thread, NULL, return_ball, &rally), 0);
	for (int i = 0; i < RAISES; i++) {
		rally.ball++;
		weiri_signal_raise(&rally.ping);
		cr_assert(await(&rally.pong, &seen), "raise %d was missed", i);
	}
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_expect_eq(rally.missed, 0);
	cr_expect_eq(rally.ball, 2 * RAISES);
}

static void *wait_once(void *context)
{
	struct weiri_signal *signal = context;

	return weiri_signal_wait(signal, 0, weir_deadline_in(patience_ns)) == WEIRI_PARK_WOKEN ? signal : NULL;
}

Test(signal, one_raise_wakes_all_who_wait)
{
	enum { WAITERS = 4 };
	struct weiri_signal signal;
	pthread_t threads[WAITERS];

	weiri_signal_init(&signal);
	for (int i = 0; i < WAITERS; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, wait_once, &signal), 0);
	weiri_signal_raise(&signal);
	for (int i = 0; i < WAITERS; i++) {
		void *woken = NULL;

		cr_assert_eq(pthread_join(threads[i], &woken), 0);
		cr_expect_not_null(woken);
	}
}
