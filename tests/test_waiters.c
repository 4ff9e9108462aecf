/*
 * test_waiters.c - on threads: a waiter sees a change, or the thread that made the change sees the
 * waiter; and which of the two runs the fence.
 */
#include <criterion/criterion.h>

#include <pthread.h>
#include <sched.h>
#include <weir/time.h>

#include "sync/park.h"
#include "sync/waiters.h"

/* A list with an entry on it, as far as looks can tell. */
static void occupy(struct weiri_waiters *waiters, uintptr_t somebody)
{
	weiri_store_relaxed(&waiters->list.first, somebody);
}

static int settled(const struct weiri_waiters *waiters)
{
	return (weiri_load_relaxed(&waiters->word) & WEIRI_WAITERS_FENCED) != 0;
}

/* Returns how many looks that find no waiter it takes until nothing is posted. */
static size_t looks_until_quiet(struct weiri_waiters *waiters)
{
	size_t looks = 0;

	for (; weiri_waiters_posted(waiters); looks++) {
		cr_assert_lt(looks, 1000);
		cr_assert_eq(weiri_waiters_look(waiters), 0);
	}
	return looks;
}

Test(waiters, nobody_is_seen_before_anybody_waits)
{
	struct weiri_waiters waiters;

	weiri_waiters_init(&waiters);
	cr_expect_not(weiri_waiters_posted(&waiters));
	cr_expect_not(weiri_waiters_look(&waiters));
	cr_expect_eq(weiri_load_relaxed(&waiters.word), 0, "the post left no trace");
}

Test(waiters, one_who_waits_is_seen_until_he_goes)
{
	struct weiri_waiters waiters;

	weiri_waiters_init(&waiters);
	occupy(&waiters, 64);
	cr_expect(weiri_waiters_post(&waiters));
	for (int i = 0; i < 200000; i++)
		cr_assert(weiri_waiters_posted(&waiters) && weiri_waiters_look(&waiters), "look %d", i);
	occupy(&waiters, 0);
	cr_expect_not(weiri_waiters_look(&waiters));
}

Test(waiters, a_post_stays_for_some_looks_and_then_goes)
{
	struct weiri_waiters waiters;
	size_t looks;

	weiri_waiters_init(&waiters);
	cr_assert(weiri_waiters_post(&waiters));
	cr_expect(settled(&waiters));
	looks = looks_until_quiet(&waiters);
	cr_expect_gt(looks, 1);
	cr_expect_not(settled(&waiters), "the next waiter runs the fence");
	cr_assert(weiri_waiters_post(&waiters));
	for (size_t i = 1; i < looks; i++)
		(void)weiri_waiters_look(&waiters);
	cr_assert(weiri_waiters_post(&waiters));
	cr_expect(settled(&waiters), "since the post before");
	cr_expect_eq(looks_until_quiet(&waiters), looks, "counted from the last post");
}

/* -- threads ----------------------------------------------------------------------------------- */

enum { ROUNDS = 20000, PARTNERS = 2 };

/*
 * Two threads wait for each change that a third thread makes. The third one looks up to 130 more
 * times after a change, so that the post is sometimes withdrawn.
 */
struct game {
	struct weiri_waiters waiters;
	_Atomic(uint32_t) changes, answers;
	_Atomic(uint32_t) woken[PARTNERS];
	uint32_t data;
};

static void wait_for(struct game *game, size_t self, uint32_t changes)
{
	while (weiri_load_acquire(&game->changes) < changes) {
		weiri_store_relaxed(&game->woken[self], 0u);
		(void)weiri_fetch_or_release(&game->waiters.list.first, (uintptr_t)1 << self);
		cr_assert(weiri_waiters_post(&game->waiters));
		if (weiri_load_acquire(&game->changes) < changes)
			cr_assert_eq(weiri_park_wait(&game->woken[self], 0, weir_deadline_in(100000000000u)), WEIRI_PARK_WOKEN,
			             "change %u was missed", changes);
		(void)weiri_fetch_and_acquire(&game->waiters.list.first, ~((uintptr_t)1 << self));
	}
}

static void wake_all(struct game *game)
{
	uintptr_t listed = weiri_load_acquire(&game->waiters.list.first);

	for (size_t i = 0; i < PARTNERS; i++) {
		if ((listed >> i & 1) == 0)
			continue;
		(void)weiri_fetch_and_acquire(&game->waiters.list.first, ~((uintptr_t)1 << i));
		weiri_store_release(&game->woken[i], 1u);
		weiri_park_wake(&game->woken[i], 1);
	}
}

struct partner {
	struct game *game;
	size_t self;
};

static void *answer(void *argument)
{
	const struct partner *partner = argument;
	struct game *game = partner->game;

	for (uint32_t round = 1; round <= ROUNDS; round++) {
		wait_for(game, partner->self, round);
		cr_assert_geq(game->data, round, "the data of the change");
		(void)weiri_fetch_add_release(&game->answers, 1);
	}
	return NULL;
}

Test(waiters, no_change_is_missed)
{
	struct game game = {.data = 0};
	struct partner partners[PARTNERS];
	pthread_t threads[PARTNERS];

	weiri_waiters_init(&game.waiters);
	for (size_t i = 0; i < PARTNERS; i++) {
		partners[i] = (struct partner){&game, i};
		cr_assert_eq(pthread_create(&threads[i], NULL, answer, &partners[i]), 0);
	}
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		uint64_t deadline = weir_deadline_in(100000000000u);

		game.data = round;
		(void)weiri_fetch_add_release(&game.changes, 1);
		while (weiri_waiters_posted(&game.waiters) && weiri_waiters_look(&game.waiters))
			wake_all(&game);
		/* Now and then the post is taken down while they sleep or are about to sleep. */
		for (uint32_t i = 0; i < round % 131; i++)
			(void)weiri_waiters_look(&game.waiters);
		while (weiri_load_acquire(&game.answers) < round * PARTNERS) {
			cr_assert_lt(weir_now_ns(), deadline, "round %u is not answered", round);
			sched_yield();
		}
	}
	for (size_t i = 0; i < PARTNERS; i++)
		cr_assert_eq(pthread_join(threads[i], NULL), 0);
}
