/*
 * test_deque.c - the work-stealing deque: its two ends, its growth, and that exactly one thread
 * gets each item.
 */
#include <criterion/criterion.h>

#include <pthread.h>
#include <stdlib.h>
#include <weir/time.h>

#include "failing_allocator.h"
#include "run/deque.h"

static int numbers[4096];

static void push(struct weiri_deque *deque, int from, int to)
{
	for (int i = from; i < to; i++)
		cr_assert(weiri_deque_push(deque, &numbers[i]));
}

static int number_of(const void *item)
{
	return item != NULL ? (int)((const int *)item - numbers) : -1;
}

Test(deque, the_owner_takes_the_newest_and_a_thief_the_oldest)
{
	struct weiri_deque deque;
	void *item = NULL;

	cr_assert(weiri_deque_init(&deque, 8, weir_default_allocator()));
	push(&deque, 0, 4);
	cr_expect_eq(weiri_deque_size_approx(&deque), 4);
	cr_expect_eq(number_of(weiri_deque_take(&deque)), 3);
	cr_expect_eq(weiri_deque_steal(&deque, &item), WEIRI_STEAL_TAKEN);
	cr_expect_eq(number_of(item), 0);
	cr_expect_eq(number_of(weiri_deque_take(&deque)), 2);
	cr_expect_eq(number_of(weiri_deque_take(&deque)), 1);
	cr_expect_null(weiri_deque_take(&deque));
	cr_expect_eq(weiri_deque_steal(&deque, &item), WEIRI_STEAL_EMPTY);
	cr_expect_eq(weiri_deque_size_approx(&deque), 0);
	weiri_deque_fini(&deque);
}

Test(deque, an_empty_deque_can_be_used_again)
{
	struct weiri_deque deque;
	void *item;

	cr_assert(weiri_deque_init(&deque, 2, weir_default_allocator()));
	for (int i = 0; i < 100; i++) {
		cr_expect_null(weiri_deque_take(&deque));
		push(&deque, i, i + 1);
		if (i % 2 == 0) {
			cr_expect_eq(number_of(weiri_deque_take(&deque)), i);
		} else {
			cr_expect_eq(weiri_deque_steal(&deque, &item), WEIRI_STEAL_TAKEN);
			cr_expect_eq(number_of(item), i);
		}
	}
	weiri_deque_fini(&deque);
}

Test(deque, growing_keeps_the_items_and_gives_all_arrays_back)
{
	struct failing_allocator memory = {.fail_at = 0};
	weir_allocator allocator = failing_allocator_hooks(&memory);
	struct weiri_deque deque;
	void *item;

	cr_assert(weiri_deque_init(&deque, 2, &allocator));
	push(&deque, 0, 2);
	/* So that the items do not begin at slot 0. */
	cr_expect_eq(weiri_deque_steal(&deque, &item), WEIRI_STEAL_TAKEN);
	push(&deque, 2, 1000);
	for (int i = 1; i < 500; i++) {
		cr_expect_eq(weiri_deque_steal(&deque, &item), WEIRI_STEAL_TAKEN);
		cr_expect_eq(number_of(item), i);
	}
	for (int i = 999; i >= 500; i--)
		cr_expect_eq(number_of(weiri_deque_take(&deque)), i);
	cr_expect_gt(weiri_load_relaxed(&memory.asked), 1);
	weiri_deque_fini(&deque);
	cr_expect_str_eq(failing_allocator_verdict(&memory), "balanced");
}

Test(deque, push_without_memory_changes_nothing)
{
	struct failing_allocator memory = {.fail_at = 2};
	weir_allocator allocator = failing_allocator_hooks(&memory);
	struct weiri_deque deque;

	cr_assert(weiri_deque_init(&deque, 4, &allocator));
	push(&deque, 0, 4);
	cr_expect_not(weiri_deque_push(&deque, &numbers[4]));
	cr_expect_eq(weiri_deque_size_approx(&deque), 4);
	cr_expect(weiri_deque_push(&deque, &numbers[4]), "now there is memory");
	for (int i = 4; i >= 0; i--)
		cr_expect_eq(number_of(weiri_deque_take(&deque)), i);
	weiri_deque_fini(&deque);
	cr_expect_str_eq(failing_allocator_verdict(&memory), "balanced");
}

Test(deque, init_without_memory_fails)
{
	struct failing_allocator memory = {.fail_at = 1};
	weir_allocator allocator = failing_allocator_hooks(&memory);
	struct weiri_deque deque;

	cr_expect_not(weiri_deque_init(&deque, 4, &allocator));
}

/* The members are not atomic, so that a sanitizer sees an item that two threads got. */
struct item {
	int number;
	int taken;
};

enum { ITEMS = 200000, THIEVES = 3 };

struct robbery {
	struct weiri_deque deque;
	struct item *items;
	_Atomic(int) gone;
	_Atomic(int) wrong;
};

static void finish(struct robbery *robbery, struct item *item)
{
	if (item->number != (int)(item - robbery->items) || item->taken++ != 0)
		(void)weiri_fetch_add_relaxed(&robbery->wrong, 1);
	(void)weiri_fetch_add_relaxed(&robbery->gone, 1);
}

static void *rob(void *argument)
{
	struct robbery *robbery = argument;
	uint64_t deadline = weir_deadline_in(100000000000u);

	while (weiri_load_relaxed(&robbery->gone) != ITEMS && weir_now_ns() < deadline) {
		void *item;

		if (weiri_deque_steal(&robbery->deque, &item) == WEIRI_STEAL_TAKEN)
			finish(robbery, item);
	}
	return NULL;
}

/*
 * The owner pushes bursts of items and takes `keep` eighths of each burst back. The thieves steal
 * others.
 */
static void own(struct robbery *robbery, int burst, int keep)
{
	struct item *item;
	int next = 0;

	while (next < ITEMS) {
		for (int i = 0; i < burst && next < ITEMS; i++, next++) {
			robbery->items[next].number = next;
			cr_assert(weiri_deque_push(&robbery->deque, &robbery->items[next]));
		}
		for (int i = 0; i < burst * keep / 8 && (item = weiri_deque_take(&robbery->deque)) != NULL; i++)
			finish(robbery, item);
	}
	while ((item = weiri_deque_take(&robbery->deque)) != NULL)
		finish(robbery, item);
}

static void rob_while_owned(int burst, int keep)
{
	struct robbery robbery = {.gone = 0};
	pthread_t thieves[THIEVES];

	robbery.items = calloc(ITEMS, sizeof(*robbery.items));
	cr_assert_not_null(robbery.items);
	cr_assert(weiri_deque_init(&robbery.deque, 2, weir_default_allocator()));
	for (int i = 0; i < THIEVES; i++)
		cr_assert_eq(pthread_create(&thieves[i], NULL, rob, &robbery), 0);
	own(&robbery, burst, keep);
	for (int i = 0; i < THIEVES; i++)
		cr_assert_eq(pthread_join(thieves[i], NULL), 0);
	cr_expect_eq(weiri_load_relaxed(&robbery.gone), ITEMS);
	cr_expect_eq(weiri_load_relaxed(&robbery.wrong), 0);
	weiri_deque_fini(&robbery.deque);
	free(robbery.items);
}

Test(deque, thieves_and_owner_fight_for_single_items)
{
	rob_while_owned(1, 8);
}

/*
 * Here the owner takes an item without a CAS while thieves come close: the case of two variables in
 * deque.c.
 */
Test(deque, thieves_and_owner_meet_in_the_middle)
{
	for (int burst = 2; burst < 5; burst++)
		rob_while_owned(burst, 8);
}

Test(deque, thieves_and_owner_share_short_bursts)
{
	rob_while_owned(4, 6);
}

Test(deque, thieves_steal_while_it_grows)
{
	rob_while_owned(1000, 2);
}
