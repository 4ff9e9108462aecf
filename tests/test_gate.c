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

/* What the owner changes while the gate is closed: two numbers that are always equal. */
struct sign {
	struct weiri_gate gate;
	_Atomic(int) stop;
	int left, right;
	int torn; /* written by its reader alone */
};

static void *read_sign(void *context)
{
	struct sign *sign = context;

	while (!weiri_load_acquire(&sign->stop)) {
		if (!weiri_gate_enter(&sign->gate))
			continue;
		sign->torn += sign->left != sign->right;
		weiri_gate_leave(&sign->gate);
	}
	return NULL;
}

Test(gate, the_owner_changes_what_it_guards_and_opens_it_again)
{
	struct sign sign = {.stop = 0};
	pthread_t reader;

	weiri_gate_init(&sign.gate);
	cr_assert_eq(pthread_create(&reader, NULL, read_sign, &sign), 0);
	for (int i = 1; i <= 300; i++) {
		cr_assert(weiri_gate_close(&sign.gate));
		weiri_gate_wait(&sign.gate);
		sign.left = i;
		sign.right = i;
		weiri_gate_open(&sign.gate);
	}
	weiri_store_release(&sign.stop, 1);
	cr_assert_eq(pthread_join(reader, NULL), 0);
	cr_expect_eq(sign.torn, 0);
	cr_expect(weiri_gate_enter(&sign.gate));
	weiri_gate_leave(&sign.gate);
}
