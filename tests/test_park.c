/*
 * test_park.c - waiting for a word: it ends with the change, at the deadline, and at no other time.
 */
#include <criterion/criterion.h>

#include <pthread.h>
#include <weir/time.h>

#include "sync/park.h"

static const uint64_t long_ns = 20000000000u;

Test(park, a_word_that_differs_already_needs_no_wake)
{
	_Atomic(uint32_t) word = 1;

	cr_expect_eq(weiri_park_wait(&word, 0, WEIR_NO_DEADLINE), WEIRI_PARK_WOKEN);
	cr_expect_eq(weiri_park_wait(&word, 0, 0), WEIRI_PARK_WOKEN);
}

Test(park, deadline_zero_looks_once)
{
	_Atomic(uint32_t) word = 0;

	cr_expect_eq(weiri_park_wait(&word, 0, 0), WEIRI_PARK_TIMEOUT);
}

Test(park, the_deadline_ends_the_wait_and_not_before)
{
	_Atomic(uint32_t) word = 0;
	uint64_t deadline = weir_deadline_in(5000000);

	cr_expect_eq(weiri_park_wait(&word, 0, deadline), WEIRI_PARK_TIMEOUT);
	cr_expect_geq(weir_now_ns(), deadline);
}

struct ping_pong {
	_Atomic(uint32_t) word;
	int payload;
	int rounds;
	int timeouts;
};

/* Waits for each odd value and answers with the next even one. */
static void *answer(void *argument)
{
	struct ping_pong *game = argument;

	for (int i = 0; i < game->rounds; i++) {
		uint32_t turn = (uint32_t)(2 * i);

		game->timeouts += weiri_park_wait(&game->word, turn, weir_deadline_in(long_ns)) == WEIRI_PARK_TIMEOUT;
		game->payload++;
		/* [release] pairs with the wait of the other side, which reads payload. */
		weiri_store_release(&game->word, turn + 2);
		weiri_park_wake(&game->word, 1);
	}
	return NULL;
}

Test(park, hands_data_over_in_both_directions)
{
	struct ping_pong game = {.rounds = 20000};
	pthread_t other;
	int wrong = 0;
	int timeouts = 0;

	cr_assert_eq(pthread_create(&other, NULL, answer, &game), 0);
	for (int i = 0; i < game.rounds; i++) {
		uint32_t turn = (uint32_t)(2 * i + 1);

		game.payload = 2 * i;
		/* [release] pairs with the wait in answer(). */
		weiri_store_release(&game.word, turn);
		weiri_park_wake(&game.word, 1);
		timeouts += weiri_park_wait(&game.word, turn, weir_deadline_in(long_ns)) == WEIRI_PARK_TIMEOUT;
		wrong += game.payload != 2 * i + 1;
	}
	cr_assert_eq(pthread_join(other, NULL), 0);
	cr_expect_eq(wrong, 0);
	cr_expect_eq(timeouts + game.timeouts, 0);
}
