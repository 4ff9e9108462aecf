/*
 * test_park.c - waiting for a word: the wait ends when the word changes or at the deadline, and
 * never otherwise.
 */
#include <criterion/criterion.h>

#include <pthread.h>
#include <weir/time.h>

#include "sync/park.h"

static const uint64_t long_ns = 100000000000u;

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
		/* [release] pairs with the wait of the other side, which then reads payload */
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
		/* [release] pairs with the wait in answer() */
		weiri_store_release(&game.word, turn);
		weiri_park_wake(&game.word, 1);
		timeouts += weiri_park_wait(&game.word, turn, weir_deadline_in(long_ns)) == WEIRI_PARK_TIMEOUT;
		wrong += game.payload != 2 * i + 1;
	}
	cr_assert_eq(pthread_join(other, NULL), 0);
	cr_expect_eq(wrong, 0);
	cr_expect_eq(timeouts + game.timeouts, 0);
}

/* -- with a mark ------------------------------------------------------------------------------- */

enum { EXPECTED = 0, CHANGED = 1, ASLEEP = 3 };

Test(park, the_mark_is_taken_back_at_the_deadline)
{
	_Atomic(uint32_t) word = EXPECTED;
	uint64_t deadline = weir_deadline_in(5000000);

	cr_expect_eq(weiri_park_wait_marked(&word, EXPECTED, ASLEEP, deadline), WEIRI_PARK_TIMEOUT);
	cr_expect_geq(weir_now_ns(), deadline);
	cr_expect_eq(weiri_load_relaxed(&word), (uint32_t)EXPECTED);
	cr_expect_eq(weiri_park_wait_marked(&word, EXPECTED, ASLEEP, 0), WEIRI_PARK_TIMEOUT);
	cr_expect_eq(weiri_load_relaxed(&word), (uint32_t)EXPECTED);
}

Test(park, a_word_that_differs_already_gets_no_mark)
{
	_Atomic(uint32_t) word = CHANGED;

	cr_expect_eq(weiri_park_wait_marked(&word, EXPECTED, ASLEEP, WEIR_NO_DEADLINE), WEIRI_PARK_WOKEN);
	cr_expect_eq(weiri_park_wait_marked(&word, EXPECTED, ASLEEP, 0), WEIRI_PARK_WOKEN);
	cr_expect_eq(weiri_load_relaxed(&word), (uint32_t)CHANGED);
}

struct marked {
	_Atomic(uint32_t) word;
	int payload;
	enum weiri_park_result result;
};

static void *sleep_marked(void *argument)
{
	struct marked *marked = argument;

	marked->result = weiri_park_wait_marked(&marked->word, EXPECTED, ASLEEP, weir_deadline_in(long_ns));
	marked->payload++;
	return NULL;
}

Test(park, whoever_finds_the_mark_has_somebody_to_wake)
{
	for (int i = 0; i < 300; i++) {
		struct marked marked = {.word = EXPECTED};
		uint64_t until = weir_deadline_in(long_ns);
		pthread_t other;

		cr_assert_eq(pthread_create(&other, NULL, sleep_marked, &marked), 0);
		while (weiri_load_relaxed(&marked.word) != ASLEEP)
			cr_assert_lt(weir_now_ns(), until);
		marked.payload = 41;
		/* [release] pairs with the wait, after which payload is written */
		weiri_store_release(&marked.word, (uint32_t)CHANGED);
		weiri_park_wake(&marked.word, 1);
		cr_assert_eq(pthread_join(other, NULL), 0);
		cr_assert_eq(marked.result, WEIRI_PARK_WOKEN);
		cr_assert_eq(marked.payload, 42);
	}
}
