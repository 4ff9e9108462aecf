/*
 * test_gate.c - entering a gate, closing it, and waiting for the threads inside.
 */
#include <criterion/criterion.h>

#include <pthread.h>
#include <stdlib.h>

#include "run/gate.h"

enum { VISITORS = 4, VISITS = 3000 };

Test(gate, a_closed_gate_lets_nobody_in)
{
	struct weiri_gate gate;

	weiri_gate_init(&gate);
	cr_expect(weiri_gate_enter(&gate));
	cr_expect(weiri_gate_close(&gate));
	cr_expect_not(weiri_gate_close(&gate), "only the first call closes");
	cr_expect_not(weiri_gate_enter(&gate));
	weiri_gate_leave(&gate);
	weiri_gate_wait(&gate);
	cr_expect_not(weiri_gate_enter(&gate));
}

Test(gate, an_empty_gate_is_drained_when_it_is_closed)
{
	struct weiri_gate gate;

	weiri_gate_init(&gate);
	cr_expect(weiri_gate_close(&gate));
	weiri_gate_wait(&gate);
}

struct house {
	struct weiri_gate gate;
	int rooms[VISITORS]; /* plain: the thread that waits for the gate sees them all */
};

struct visitor {
	struct house *house;
	int number;
	int visits;
};

static void *visit(void *context)
{
	struct visitor *visitor = context;

	while (visitor->visits < VISITS && weiri_gate_enter(&visitor->house->gate)) {
		visitor->visits++;
		visitor->house->rooms[visitor->number]++;
		weiri_gate_leave(&visitor->house->gate);
	}
	return NULL;
}

/*
 * The test enters for each visitor before the visitor's thread starts, so none comes too late. The
 * owner frees the house as soon as all have left.
 */
static void *stay_once(void *context)
{
	struct visitor *visitor = context;

	visitor->house->rooms[visitor->number]++;
	weiri_gate_leave(&visitor->house->gate);
	return NULL;
}

Test(gate, who_waits_sees_what_all_did_inside)
{
	struct visitor visitors[VISITORS];
	pthread_t threads[VISITORS];
	struct house house = {.rooms = {0}};

	weiri_gate_init(&house.gate);
	for (int i = 0; i < VISITORS; i++) {
		visitors[i] = (struct visitor){&house, i, 0};
		cr_assert_eq(pthread_create(&threads[i], NULL, visit, &visitors[i]), 0);
	}
	(void)weiri_gate_close(&house.gate);
	weiri_gate_wait(&house.gate);
	/* No thread is inside any more, though the threads may still run. */
	for (int i = 0; i < VISITORS; i++) {
		int rooms = house.rooms[i];

		cr_assert_eq(pthread_join(threads[i], NULL), 0);
		cr_expect_eq(rooms, visitors[i].visits);
	}
}

Test(gate, the_owner_may_free_it_as_soon_as_it_is_drained)
{
	for (int round = 0; round < 300; round++) {
		struct house *house = calloc(1, sizeof(*house));
		struct visitor visitors[VISITORS];
		pthread_t threads[VISITORS];

		cr_assert_not_null(house);
		weiri_gate_init(&house->gate);
		for (int i = 0; i < VISITORS; i++) {
			visitors[i] = (struct visitor){house, i, 0};
			cr_assert(weiri_gate_enter(&house->gate));
			cr_assert_eq(pthread_create(&threads[i], NULL, stay_once, &visitors[i]), 0);
		}
		(void)weiri_gate_close(&house->gate);
		weiri_gate_wait(&house->gate);
		for (int i = 0; i < VISITORS; i++)
			cr_expect_eq(house->rooms[i], 1);
		free(house);
		for (int i = 0; i < VISITORS; i++)
			cr_assert_eq(pthread_join(threads[i], NULL), 0);
	}
}
