/*
 * test_list.c - a node leaves the list once and ends once, and it ends after the last walker has
 * gone.
 */
#include <criterion/criterion.h>

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <weir/reclaim.h>
#include <weir/time.h>

#include "base/compiler.h"
#include "sync/list.h"

enum { THREADS = 4, MOST = 64 };

static uint64_t in_good_time(void)
{
	return weir_deadline_in(UINT64_C(100000000000));
}

/* A node that counts when the list has released it. */
struct entry {
	struct weiri_list_node node;
	int number;
	_Atomic(int) *ended;
};

static struct entry *entry_of(struct weiri_list_node *node)
{
	return WEIRI_CONTAINER_OF(node, struct entry, node);
}

static void on_end(struct weiri_retired *retired)
{
	struct entry *entry = entry_of(WEIRI_CONTAINER_OF(retired, struct weiri_list_node, retired));

	(void)weiri_fetch_add_relaxed(entry->ended, 1);
	free(entry);
}

static struct entry *new_entry(int number, _Atomic(int) *ended)
{
	struct entry *entry = calloc(1, sizeof(*entry));

	if (entry != NULL) {
		entry->number = number;
		entry->ended = ended;
		weiri_list_node_init(&entry->node, sizeof(*entry), on_end);
	}
	return entry;
}

static void append(struct weiri_list *list, struct entry *entry)
{
	struct weiri_scope scope = weiri_scope_enter(weiri_record_get());

	weiri_list_append(&scope, list, &entry->node);
	weiri_scope_leave(&scope);
}

static int take_out(struct weiri_list *list, struct entry *entry)
{
	struct weiri_scope scope = weiri_scope_enter(weiri_record_get());
	int removed = weiri_list_remove(&scope, list, &entry->node);

	weiri_scope_leave(&scope);
	return removed;
}

/* Appends entries 0 .. count - 1. */
static void make(struct weiri_list *list, struct entry *entries[], int count, _Atomic(int) *ended)
{
	for (int i = 0; i < count; i++) {
		entries[i] = new_entry(i, ended);
		cr_assert_not_null(entries[i]);
		append(list, entries[i]);
	}
}

/* Reads the numbers on the list, in order. Returns how many there are. */
static int look(struct weiri_list *list, int numbers[MOST])
{
	struct weiri_scope scope = weiri_scope_enter(weiri_record_get());
	struct weiri_list_node *node = NULL;
	int count = 0;

	while (count < MOST && (node = weiri_list_next(&scope, list, node)) != NULL)
		numbers[count++] = entry_of(node)->number;
	weiri_scope_leave(&scope);
	return count;
}

static void expect_numbers(struct weiri_list *list, const int expected[], int count)
{
	int numbers[MOST];
	int found = look(list, numbers);

	cr_assert_eq(found, count, "%d nodes, not %d", found, count);
	for (int i = 0; i < count; i++)
		cr_assert_eq(numbers[i], expected[i], "place %d: %d, not %d", i, numbers[i], expected[i]);
}

static void flush(void)
{
	cr_assert_eq(weir_reclaim_flush(in_good_time()), WEIR_OK);
}

Test(list, nodes_stand_in_arrival_order)
{
	struct weiri_list list = {0};
	struct entry *entries[5];
	_Atomic(int) ended = 0;

	cr_expect_not(weiri_list_occupied(&list));
	make(&list, entries, 5, &ended);
	cr_expect(weiri_list_occupied(&list));
	expect_numbers(&list, (int[]){0, 1, 2, 3, 4}, 5);
	for (int i = 0; i < 5; i++)
		cr_expect_eq(take_out(&list, entries[i]), 1);
	flush();
	cr_expect_eq(ended, 5);
}

Test(list, a_node_can_be_taken_out_anywhere)
{
	struct weiri_list list = {0};
	struct entry *entries[5];
	_Atomic(int) ended = 0;

	make(&list, entries, 5, &ended);
	cr_expect_eq(take_out(&list, entries[2]), 1);
	expect_numbers(&list, (int[]){0, 1, 3, 4}, 4);
	cr_expect_eq(take_out(&list, entries[0]), 1);
	expect_numbers(&list, (int[]){1, 3, 4}, 3);
	cr_expect_eq(take_out(&list, entries[4]), 1);
	expect_numbers(&list, (int[]){1, 3}, 2);
	cr_expect_eq(take_out(&list, entries[3]), 1);
	cr_expect_eq(take_out(&list, entries[1]), 1);
	cr_expect_not(weiri_list_occupied(&list));
	flush();
	cr_expect_eq(ended, 5);
}

Test(list, appending_goes_on_after_the_last_node_was_taken_out)
{
	struct weiri_list list = {0};
	struct entry *entries[2];
	_Atomic(int) ended = 0;

	make(&list, entries, 1, &ended);
	cr_expect_eq(take_out(&list, entries[0]), 1);
	make(&list, entries, 2, &ended);
	expect_numbers(&list, (int[]){0, 1}, 2);
	cr_expect_eq(take_out(&list, entries[1]), 1);
	cr_expect_eq(take_out(&list, entries[0]), 1);
	flush();
	cr_expect_eq(ended, 3);
}

Test(list, a_node_is_taken_out_once)
{
	struct weiri_list list = {0};
	struct entry *entries[3];
	_Atomic(int) ended = 0;
	struct weiri_scope scope;

	make(&list, entries, 3, &ended);
	scope = weiri_scope_enter(weiri_record_get());
	cr_expect_eq(weiri_list_remove(&scope, &list, &entries[1]->node), 1);
	cr_expect_eq(weiri_list_remove(&scope, &list, &entries[1]->node), 0);
	weiri_scope_leave(&scope);
	cr_expect_eq(take_out(&list, entries[0]), 1);
	cr_expect_eq(take_out(&list, entries[2]), 1);
	flush();
	cr_expect_eq(ended, 3, "ended %d times", ended);
}

Test(list, a_node_ends_only_when_no_section_can_see_it)
{
	struct weiri_list list = {0};
	struct entry *entries[1];
	_Atomic(int) ended = 0;
	struct weiri_scope walker;

	make(&list, entries, 1, &ended);
	walker = weiri_scope_enter(weiri_record_get());
	cr_assert_eq(weiri_list_next(&walker, &list, NULL), &entries[0]->node);
	/* A nested walk: what it unlinks is retired when it ends, while the outer walker goes on. */
	cr_expect_eq(take_out(&list, entries[0]), 1);
	cr_expect_eq(weir_reclaim_flush(0), WEIR_DEADLINE_EXCEEDED);
	cr_expect_eq(ended, 0);
	weiri_scope_leave(&walker);
	flush();
	cr_expect_eq(ended, 1);
}

Test(list, a_walker_on_a_node_that_was_taken_out_starts_again)
{
	struct weiri_list list = {0};
	struct entry *entries[4];
	_Atomic(int) ended = 0;
	struct weiri_scope walker;
	struct weiri_list_node *node;

	make(&list, entries, 4, &ended);
	walker = weiri_scope_enter(weiri_record_get());
	node = weiri_list_next(&walker, &list, NULL);
	node = weiri_list_next(&walker, &list, node);
	cr_assert_eq(node, &entries[1]->node);
	/* An entry other than the one on which the walker stands. */
	cr_expect_eq(take_out(&list, entries[2]), 1);
	node = weiri_list_next(&walker, &list, node);
	cr_assert_eq(node, &entries[3]->node);
	cr_expect_eq(take_out(&list, entries[3]), 1);
	node = weiri_list_next(&walker, &list, node);
	cr_expect_eq(node, &entries[0]->node);
	node = weiri_list_next(&walker, &list, node);
	cr_expect_eq(node, &entries[1]->node);
	cr_expect_null(weiri_list_next(&walker, &list, node));
	weiri_scope_leave(&walker);
	cr_expect_eq(take_out(&list, entries[0]), 1);
	cr_expect_eq(take_out(&list, entries[1]), 1);
	flush();
	cr_expect_eq(ended, 4);
}

/* -- many threads ------------------------------------------------------------------------------ */

struct crowd {
	struct weiri_list list;
	_Atomic(int) made;
	_Atomic(int) ended;
	_Atomic(int) taken_out;
	_Atomic(int) wrong;
	_Atomic(int) stop;
	_Atomic(int) number;
	struct entry *shared[MOST]; /* the threads race to remove these */
};

static void count_wrong(struct crowd *crowd, int is_wrong)
{
	(void)weiri_fetch_add_relaxed(&crowd->wrong, is_wrong != 0);
}

/* Appends five entries, removes them in another order, and repeats that. */
static void *come_and_go(void *argument)
{
	struct crowd *crowd = argument;
	int number = weiri_fetch_add_relaxed(&crowd->number, 1) << 24;

	while (!weiri_load_relaxed(&crowd->stop)) {
		struct entry *mine[5];
		static const int order[5] = {2, 4, 0, 3, 1};

		for (int i = 0; i < 5; i++) {
			mine[i] = new_entry(number++, &crowd->ended);
			append(&crowd->list, mine[i]);
		}
		(void)weiri_fetch_add_relaxed(&crowd->made, 5);
		for (int i = 0; i < 5; i++)
			count_wrong(crowd, !take_out(&crowd->list, mine[order[i]]));
	}
	return NULL;
}

/*
 * As long as the walk does not start again, the numbers of one thread only grow. The walk reads
 * each entry, so freed memory would show.
 */
static void walk_and_check(struct crowd *crowd)
{
	struct weiri_scope scope = weiri_scope_enter(weiri_record_get());
	struct weiri_list_node *node = NULL, *before = NULL;
	int last[THREADS] = {-1, -1, -1, -1};

	while ((node = weiri_list_next(&scope, &crowd->list, node)) != NULL) {
		int number = entry_of(node)->number, *last_of_thread = &last[number >> 24];

		if (before != NULL && (weiri_load_relaxed(&before->next) & 1) != 0)
			memset(last, -1, sizeof(last));
		count_wrong(crowd, number <= *last_of_thread);
		*last_of_thread = number;
		before = node;
	}
	weiri_scope_leave(&scope);
}

static void *walk_on(void *argument)
{
	struct crowd *crowd = argument;

	while (!weiri_load_relaxed(&crowd->stop))
		walk_and_check(crowd);
	return NULL;
}

Test(list, a_walk_beside_threads_that_come_and_go_meets_no_freed_node)
{
	struct crowd crowd = {.number = 0};
	pthread_t threads[THREADS];
	uint64_t until = weir_deadline_in(UINT64_C(300000000));

	for (int i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, i == 0 ? walk_on : come_and_go, &crowd), 0);
	while (weir_now_ns() < until)
		(void)sched_yield();
	weiri_store_relaxed(&crowd.stop, 1);
	for (int i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_join(threads[i], NULL), 0);
	flush();
	cr_expect_eq(crowd.wrong, 0);
	cr_expect_gt(crowd.made, 0);
	cr_expect_eq(crowd.ended, crowd.made, "%d made, %d ended", crowd.made, crowd.ended);
	cr_expect_not(weiri_list_occupied(&crowd.list));
}

static void *take_all_out(void *argument)
{
	struct crowd *crowd = argument;
	struct weiri_scope scope = weiri_scope_enter(weiri_record_get());

	/* The scope is older than the first removal, so the nodes stay. */
	(void)weiri_fetch_add_relaxed(&crowd->number, 1);
	while (weiri_load_relaxed(&crowd->number) < THREADS)
		(void)sched_yield();
	for (int i = 0; i < MOST; i++)
		(void)weiri_fetch_add_relaxed(&crowd->taken_out,
		                              weiri_list_remove(&scope, &crowd->list, &crowd->shared[i]->node));
	weiri_scope_leave(&scope);
	return NULL;
}

Test(list, of_threads_that_race_to_take_a_node_out_one_wins)
{
	for (int round = 0; round < 50; round++) {
		struct crowd crowd = {.number = 0};
		pthread_t threads[THREADS];

		make(&crowd.list, crowd.shared, MOST, &crowd.ended);
		for (int i = 0; i < THREADS; i++)
			cr_assert_eq(pthread_create(&threads[i], NULL, take_all_out, &crowd), 0);
		for (int i = 0; i < THREADS; i++)
			cr_assert_eq(pthread_join(threads[i], NULL), 0);
		cr_assert_eq(crowd.taken_out, MOST);
		cr_assert_not(weiri_list_occupied(&crowd.list));
		flush();
		cr_assert_eq(crowd.ended, MOST);
	}
}
