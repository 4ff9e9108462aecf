/*
 * test_published.c - the list that only grows: each pushed node is found once, and a sealed list
 * takes no more nodes.
 */
#include <criterion/criterion.h>

#include <pthread.h>
#include <stddef.h>

#include "base/compiler.h"
#include "run/published.h"

struct number {
	struct weiri_published link;
	int value; /* plain: the push publishes it */
};

static int value_of(struct weiri_published *link)
{
	return WEIRI_CONTAINER_OF(link, struct number, link)->value;
}

static int push(struct weiri_published_list *list, struct number *number)
{
	return weiri_published_push_after(list, &number->link, weiri_published_first(list));
}

Test(published, the_newest_comes_first)
{
	struct number numbers[3] = {{.value = 0}, {.value = 1}, {.value = 2}};
	struct weiri_published_list list;
	struct weiri_published *link;

	weiri_published_init(&list);
	cr_expect_null(weiri_published_first(&list));
	for (int i = 0; i < 3; i++)
		cr_expect(push(&list, &numbers[i]));
	link = weiri_published_first(&list);
	for (int i = 2; i >= 0; i--) {
		cr_assert_not_null(link);
		cr_expect_eq(value_of(link), i);
		link = link->next;
	}
	cr_expect_null(link);
}

Test(published, a_push_behind_the_newest_item_fails)
{
	struct number numbers[2] = {{.value = 0}, {.value = 1}};
	struct weiri_published_list list;

	weiri_published_init(&list);
	cr_expect(push(&list, &numbers[0]));
	cr_expect_not(weiri_published_push_after(&list, &numbers[1].link, NULL));
	cr_expect_eq(weiri_published_first(&list), &numbers[0].link);
}

Test(published, a_sealed_list_takes_no_more_and_can_still_be_read)
{
	struct number numbers[2] = {{.value = 0}, {.value = 1}};
	struct weiri_published_list list;

	weiri_published_init(&list);
	cr_expect(push(&list, &numbers[0]));
	cr_expect_not(weiri_published_sealed(&list));
	cr_expect_eq(weiri_published_seal(&list), &numbers[0].link);
	cr_expect_eq(weiri_published_seal(&list), &numbers[0].link);
	cr_expect(weiri_published_sealed(&list));
	cr_expect_not(push(&list, &numbers[1]));
	cr_expect_eq(weiri_published_first(&list), &numbers[0].link);
}

enum { PUSHERS = 4, EACH = 1000 };

struct pusher {
	struct weiri_published_list *list;
	struct number numbers[EACH];
	int pushed;
};

/* Tries again until the node is in or the list is sealed, and now and then walks over the list. */
static void *push_all(void *context)
{
	struct pusher *pusher = context;
	volatile int sum = 0;

	for (int i = 0; i < EACH; i++) {
		while (!push(pusher->list, &pusher->numbers[i])) {
			if (weiri_published_sealed(pusher->list))
				return NULL;
		}
		pusher->pushed++;
		for (struct weiri_published *link = weiri_published_first(pusher->list); i % 100 == 0 && link != NULL;
		     link = link->next)
			sum = sum + value_of(link);
	}
	return NULL;
}

static void push_from_many_threads(int sealed_on_the_way)
{
	static struct pusher pushers[PUSHERS];
	static int found[PUSHERS * EACH];
	struct weiri_published_list list;
	pthread_t threads[PUSHERS];
	struct weiri_published *sealed_at = NULL;
	int total = 0;

	weiri_published_init(&list);
	for (int p = 0; p < PUSHERS; p++) {
		pushers[p].list = &list;
		pushers[p].pushed = 0;
		for (int i = 0; i < EACH; i++) {
			pushers[p].numbers[i].value = p * EACH + i;
			found[p * EACH + i] = 0;
		}
		cr_assert_eq(pthread_create(&threads[p], NULL, push_all, &pushers[p]), 0);
	}
	if (sealed_on_the_way)
		sealed_at = weiri_published_seal(&list);
	for (int p = 0; p < PUSHERS; p++) {
		cr_assert_eq(pthread_join(threads[p], NULL), 0);
		total += pushers[p].pushed;
	}
	if (sealed_on_the_way)
		cr_expect_eq(weiri_published_first(&list), sealed_at);
	else
		cr_expect_eq(total, PUSHERS * EACH);
	for (struct weiri_published *link = weiri_published_first(&list); link != NULL; link = link->next) {
		cr_expect_eq(found[value_of(link)]++, 0, "%d is there twice", value_of(link));
		total--;
	}
	cr_expect_eq(total, 0, "every pushed node is there");
}

Test(published, no_push_of_many_threads_is_lost)
{
	push_from_many_threads(0);
}

Test(published, what_was_pushed_before_the_seal_stays)
{
	push_from_many_threads(1);
}
