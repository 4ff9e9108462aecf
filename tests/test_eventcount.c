/*
 * test_eventcount.c - no wake-up is lost, with the asymmetric fence and with the symmetric one.
 */
#include <criterion/criterion.h>

#include <pthread.h>
#include <weir/time.h>

#include "sync/eventcount.h"

static const uint64_t long_ns = 100000000000u;

Test(eventcount, notify_without_waiters_leaves_no_trace)
{
	struct weiri_eventcount event;

	weiri_eventcount_init(&event);
	weiri_eventcount_notify(&event, 1);
	weiri_eventcount_notify_all(&event);
	cr_expect_eq(weiri_load_relaxed(&event.epoch), 0);
}

Test(eventcount, notify_between_prepare_and_wait_is_not_lost)
{
	struct weiri_eventcount event;
	struct weiri_eventcount_key key;

	weiri_eventcount_init(&event);
	key = weiri_eventcount_prepare(&event);
	weiri_eventcount_notify(&event, 1);
	cr_expect_eq(weiri_eventcount_wait(&event, key, 0), WEIRI_PARK_WOKEN);
	cr_expect_eq(weiri_load_relaxed(&event.waiters), 0);
}

Test(eventcount, wait_ends_at_the_deadline)
{
	struct weiri_eventcount event;
	uint64_t deadline = weir_deadline_in(5000000);

	weiri_eventcount_init(&event);
	cr_expect_eq(weiri_eventcount_wait(&event, weiri_eventcount_prepare(&event), deadline), WEIRI_PARK_TIMEOUT);
	cr_expect_geq(weir_now_ns(), deadline);
	cr_expect_eq(weiri_load_relaxed(&event.waiters), 0);
}

Test(eventcount, cancel_takes_the_announcement_back)
{
	struct weiri_eventcount event;

	weiri_eventcount_init(&event);
	(void)weiri_eventcount_prepare(&event);
	weiri_eventcount_cancel(&event);
	weiri_eventcount_notify(&event, 1);
	cr_expect_eq(weiri_load_relaxed(&event.epoch), 0);
}

Test(eventcount, a_waiter_whose_fence_was_refused_sleeps_briefly)
{
	struct weiri_eventcount event;
	struct weiri_eventcount_key key;

	weiri_eventcount_init(&event);
	key = weiri_eventcount_prepare(&event);
	key.blind = 1;
	/* It returns long before the deadline, as if it had been woken. */
	cr_expect_eq(weiri_eventcount_wait(&event, key, weir_deadline_in(UINT64_C(100000000000))), WEIRI_PARK_WOKEN);
}

/* A counting semaphore of permits, on an eventcount. */
struct shop {
	struct weiri_eventcount event;
	_Atomic(int) permits;
	_Atomic(int) timeouts;
	int rounds; /* the permits to put or to take, for each thread */
};

static int try_take(struct shop *shop)
{
	/* [relaxed] the CAS decides */
	int permits = weiri_load_relaxed(&shop->permits);

	while (permits > 0) {
		if (weiri_cas_acq_rel(&shop->permits, &permits, permits - 1))
			return 1;
	}
	return 0;
}

static int take_or_wait(struct shop *shop)
{
	uint64_t deadline = weir_deadline_in(long_ns);

	while (!try_take(shop)) {
		struct weiri_eventcount_key key = weiri_eventcount_prepare(&shop->event);

		if (try_take(shop)) {
			weiri_eventcount_cancel(&shop->event);
			return 1;
		}
		if (weiri_eventcount_wait(&shop->event, key, deadline) == WEIRI_PARK_TIMEOUT)
			return 0;
	}
	return 1;
}

static void *consume(void *argument)
{
	struct shop *shop = argument;

	for (int i = 0; i < shop->rounds; i++) {
		if (!take_or_wait(shop)) {
			(void)weiri_fetch_add_relaxed(&shop->timeouts, 1);
			break;
		}
	}
	return NULL;
}

static void *produce(void *argument)
{
	struct shop *shop = argument;

	for (int i = 0; i < shop->rounds; i++) {
		(void)weiri_fetch_add_acq_rel(&shop->permits, 1);
		weiri_eventcount_notify(&shop->event, 1);
	}
	return NULL;
}

/*
 * Each permit wakes one waiter. A lost wake-up would leave a consumer asleep beside a permit until
 * its deadline.
 */
static void trade(int pairs, int rounds)
{
	struct shop shop = {.rounds = rounds};
	pthread_t threads[8];

	weiri_eventcount_init(&shop.event);
	for (int i = 0; i < pairs; i++) {
		cr_assert_eq(pthread_create(&threads[2 * i], NULL, consume, &shop), 0);
		cr_assert_eq(pthread_create(&threads[2 * i + 1], NULL, produce, &shop), 0);
	}
	for (int i = 0; i < 2 * pairs; i++)
		cr_assert_eq(pthread_join(threads[i], NULL), 0);
	cr_expect_eq(weiri_load_relaxed(&shop.timeouts), 0, "a wake-up was lost");
	cr_expect_eq(weiri_load_relaxed(&shop.permits), 0);
	cr_expect_eq(weiri_load_relaxed(&shop.event.waiters), 0);
}

Test(eventcount, one_waiter_misses_no_notify)
{
	trade(1, 30000);
}

Test(eventcount, four_waiters_miss_no_notify)
{
	trade(4, 10000);
}

Test(eventcount, no_notify_is_missed_where_membarrier_is_refused)
{
	int before = weiri_load_relaxed(&weiri_fence_asymmetric);

	/*
	 * 0 is also the state before the setup. A machine without membarrier stays in it, and notifiers
	 * run a fence of their own.
	 */
	weiri_store_relaxed(&weiri_fence_asymmetric, 0);
	trade(2, 10000);
	weiri_store_relaxed(&weiri_fence_asymmetric, before);
}

/*
 * A mailbox whose sender uses plain stores. Only the fences of the eventcount keep the order: the
 * sender posts first and then looks for waiters. (The semaphore above would not show a missing
 * fence everywhere: its read-modify-writes are fences themselves on some machines.)
 */
struct mailbox {
	struct weiri_eventcount event;
	_Atomic(int) posted; /* written by the sender only */
	_Atomic(int) taken;  /* written by the receiver only */
	int rounds;
};

static void *send_mail(void *argument)
{
	struct mailbox *box = argument;
	uint64_t deadline = weir_deadline_in(long_ns);

	for (int i = 1; i <= box->rounds; i++) {
		/* [release] pairs with receive_mail(). */
		weiri_store_release(&box->posted, i);
		weiri_eventcount_notify(&box->event, 1);
		/*
		 * The pauses differ in length, so that sooner or later a letter comes at each of the steps
		 * by which the receiver falls asleep.
		 */
		while (weiri_load_acquire(&box->taken) != i && weir_now_ns() < deadline)
			weiri_pause();
		for (int pause = 0; pause < i % 97; pause++)
			weiri_pause();
	}
	return NULL;
}

/* Returns the number of letters that arrived only at the deadline. */
static int receive_mail(struct mailbox *box)
{
	int late = 0;

	for (int i = 1; i <= box->rounds && late == 0; i++) {
		uint64_t deadline = weir_deadline_in(long_ns / 10);

		while (weiri_load_acquire(&box->posted) != i) {
			struct weiri_eventcount_key key = weiri_eventcount_prepare(&box->event);

			if (weiri_load_acquire(&box->posted) == i)
				weiri_eventcount_cancel(&box->event);
			else if (weiri_eventcount_wait(&box->event, key, deadline) == WEIRI_PARK_TIMEOUT)
				late++;
		}
		weiri_store_release(&box->taken, i);
	}
	weiri_store_release(&box->taken, box->rounds);
	return late;
}

Test(eventcount, a_sender_that_only_stores_is_heard)
{
	struct mailbox box = {.rounds = 30000};
	pthread_t sender;

	weiri_eventcount_init(&box.event);
	/* From here on the light fence is a compiler barrier, if Linux has membarrier. */
	weiri_fence_setup();
	cr_assert_eq(pthread_create(&sender, NULL, send_mail, &box), 0);
	cr_expect_eq(receive_mail(&box), 0, "a wake-up was lost");
	cr_assert_eq(pthread_join(sender, NULL), 0);
}

static void *wait_once(void *argument)
{
	struct shop *shop = argument;
	struct weiri_eventcount_key key = weiri_eventcount_prepare(&shop->event);

	if (weiri_eventcount_wait(&shop->event, key, weir_deadline_in(long_ns)) == WEIRI_PARK_TIMEOUT)
		(void)weiri_fetch_add_relaxed(&shop->timeouts, 1);
	return NULL;
}

Test(eventcount, notify_all_wakes_everybody)
{
	enum { WAITERS = 5 };
	struct shop shop = {.rounds = 0};
	uint64_t deadline = weir_deadline_in(long_ns);
	pthread_t threads[WAITERS];

	weiri_eventcount_init(&shop.event);
	for (int i = 0; i < WAITERS; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, wait_once, &shop), 0);
	while (weiri_load_relaxed(&shop.event.waiters) != WAITERS && weir_now_ns() < deadline)
		weiri_pause();
	cr_assert_eq(weiri_load_relaxed(&shop.event.waiters), WAITERS, "the waiters did not arrive");
	/*
	 * A waiter that is counted may not have read the epoch for its key yet. It would sleep through
	 * a notification that came before that. So notify until all have left.
	 */
	while (weiri_load_relaxed(&shop.event.waiters) != 0 && weir_now_ns() < deadline)
		weiri_eventcount_notify_all(&shop.event);
	for (int i = 0; i < WAITERS; i++)
		cr_assert_eq(pthread_join(threads[i], NULL), 0);
	cr_expect_eq(weiri_load_relaxed(&shop.timeouts), 0);
}
