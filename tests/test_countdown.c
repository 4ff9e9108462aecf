/*
 * test_countdown.c - countdowns, latches and serial numbers: exactly one thread is the last, the
 * first, or the owner of a number.
 */
#include <criterion/criterion.h>

#include <pthread.h>

#include "run/countdown.h"
#include "run/measured.h"

enum { PARTIES = 4, ROUNDS = 2000 };

Test(countdown, the_last_to_arrive_is_told)
{
	struct weiri_countdown countdown;

	weiri_countdown_init(&countdown, 3);
	cr_expect_not(weiri_countdown_arrive(&countdown));
	weiri_countdown_join(&countdown);
	cr_expect_not(weiri_countdown_arrive_many(&countdown, 2));
	cr_expect(weiri_countdown_arrive(&countdown));
}

Test(countdown, the_last_to_finish_is_told)
{
	struct weiri_countdown countdown;

	weiri_countdown_init(&countdown, 3);
	cr_expect_not(weiri_countdown_finish(&countdown, 1));
	cr_expect_not(weiri_countdown_arrive(&countdown));
	weiri_countdown_join(&countdown);
	cr_expect(weiri_countdown_finish(&countdown, 2));
}

Test(countdown, the_first_to_claim_a_latch_wins)
{
	struct weiri_latch latch;

	weiri_latch_init(&latch);
	cr_expect_not(weiri_latch_is_set(&latch));
	cr_expect(weiri_latch_claim(&latch));
	cr_expect_not(weiri_latch_claim(&latch));
	cr_expect_not(weiri_latch_is_set(&latch), "a claimed latch is not set yet");
	weiri_latch_set(&latch);
	cr_expect(weiri_latch_is_set(&latch));
	cr_expect_not(weiri_latch_claim(&latch));
}

struct round {
	struct weiri_countdown countdown;
	struct weiri_latch latch;
	int written[PARTIES]; /* plain: the countdown publishes it to the last thread */
	int spoken;           /* plain: the latch publishes it to readers */
	int sum;              /* written by the last thread */
};

struct party {
	struct round *rounds;
	struct weiri_serial *serial;
	int number;
	int lasts, claims;
	int heard_wrong;
	uint64_t serials;
};

static void *take_part(void *context)
{
	struct party *party = context;

	for (int i = 0; i < ROUNDS; i++) {
		struct round *round = &party->rounds[i];

		round->written[party->number] = i + party->number;
		party->serials += weiri_serial_take(party->serial);
		if (weiri_latch_claim(&round->latch)) {
			party->claims++;
			round->spoken = i;
			weiri_latch_set(&round->latch);
		}
		if (weiri_latch_is_set(&round->latch))
			party->heard_wrong += round->spoken != i;
		/* Every other round is not used again. */
		if (i % 2 == 0 ? !weiri_countdown_arrive(&round->countdown) : !weiri_countdown_finish(&round->countdown, 1))
			continue;
		party->lasts++;
		for (int p = 0; p < PARTIES; p++)
			round->sum += round->written[p];
	}
	return NULL;
}

Test(countdown, one_of_many_threads_is_last_and_sees_what_all_wrote)
{
	static struct round rounds[ROUNDS];
	struct weiri_serial serial;
	struct party parties[PARTIES];
	pthread_t threads[PARTIES];
	int lasts = 0;
	int claims = 0;
	uint64_t serials = 0;

	weiri_serial_init(&serial);
	for (int i = 0; i < ROUNDS; i++) {
		weiri_countdown_init(&rounds[i].countdown, PARTIES);
		weiri_latch_init(&rounds[i].latch);
		rounds[i].sum = 0;
	}
	for (int p = 0; p < PARTIES; p++) {
		parties[p] = (struct party){.rounds = rounds, .serial = &serial, .number = p};
		cr_assert_eq(pthread_create(&threads[p], NULL, take_part, &parties[p]), 0);
	}
	for (int p = 0; p < PARTIES; p++) {
		cr_assert_eq(pthread_join(threads[p], NULL), 0);
		lasts += parties[p].lasts;
		claims += parties[p].claims;
		serials += parties[p].serials;
		cr_expect_eq(parties[p].heard_wrong, 0);
	}
	cr_expect_eq(lasts, ROUNDS);
	cr_expect_eq(claims, ROUNDS);
	cr_expect_eq(serials, (uint64_t)(PARTIES * ROUNDS) * (PARTIES * ROUNDS - 1) / 2, "each number once");
	for (int i = 0; i < ROUNDS; i++)
		cr_expect_eq(rounds[i].sum, PARTIES * i + PARTIES * (PARTIES - 1) / 2, "round %d", i);
}

/* -- what takes how long ----------------------------------------------------------------------- */

Test(countdown, what_was_measured_seldom_is_not_known)
{
	struct weiri_measured measured = {0};

	for (int i = 0; i < WEIRI_MEASURED_ENOUGH; i++) {
		cr_expect_eq(weiri_measured_ns(&measured), UINT64_MAX);
		weiri_measured_add(&measured, 100);
	}
	cr_expect_eq(weiri_measured_ns(&measured), 100);
}

Test(countdown, a_long_run_counts_at_once_and_is_forgotten_slowly)
{
	struct weiri_measured measured = {0};

	for (int i = 0; i < 100; i++)
		weiri_measured_add(&measured, 100);
	weiri_measured_add(&measured, 900);
	cr_expect_eq(weiri_measured_ns(&measured), 900);
	weiri_measured_add(&measured, 100);
	cr_expect_eq(weiri_measured_ns(&measured), 800);
	for (int i = 0; i < 100; i++)
		weiri_measured_add(&measured, 100);
	cr_expect_eq(weiri_measured_ns(&measured), 100);
	weiri_measured_add(&measured, UINT64_MAX);
	cr_expect_eq(weiri_measured_ns(&measured), UINT32_MAX);
}
