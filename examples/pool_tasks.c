/*
 * pool_tasks.c - a sum that splits itself into tasks of a work-stealing pool.
 *
 * A task is a struct of the program; the pool allocates none. The main thread does not just wait:
 * it runs tasks, too.
 */
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <weir/pool.h>

enum { NUMBERS = 1 << 18, SMALL = 1 << 12, MAX_TASKS = 2 * NUMBERS / SMALL };

struct part {
	weir_task task; /* first, so that the task's address is the part's */
	int begin, end;
};

static weir_pool *pool;
static struct part parts[MAX_TASKS];
static _Atomic(int) parts_used, numbers_left = NUMBERS;
static _Atomic(long long) sum;

static void add_up(weir_task *task);

static int submit(int begin, int end)
{
	struct part *part = &parts[atomic_fetch_add_explicit(&parts_used, 1, memory_order_relaxed)];

	*part = (struct part){.task = {.run = add_up}, .begin = begin, .end = end};
	return weir_pool_submit(pool, &part->task) == WEIR_OK;
}

static void add_up(weir_task *task)
{
	struct part *part = (struct part *)(void *)task;
	int end = part->end;
	long long mine = 0;

	/* Submits halves until the rest is small. Submitting does not fail. */
	while (end - part->begin > SMALL) {
		int middle = part->begin + (end - part->begin) / 2;

		(void)submit(middle, end);
		end = middle;
	}
	for (int i = part->begin; i < end; i++)
		mine += i;
	atomic_fetch_add_explicit(&sum, mine, memory_order_relaxed);
	atomic_fetch_sub_explicit(&numbers_left, end - part->begin, memory_order_release);
}

int main(void)
{
	struct weir_pool_options options = {WEIR_POOL_OPTIONS_INIT, .threads = 3, .name = "sum"};
	long long expected = (long long)NUMBERS * (NUMBERS - 1) / 2, got;

	if (weir_pool_create(&options, &pool, NULL) != WEIR_OK || !submit(0, NUMBERS))
		return 1;
	while (atomic_load_explicit(&numbers_left, memory_order_acquire) != 0)
		(void)weir_pool_help(pool, 1);
	if (weir_pool_destroy(pool, NULL) != WEIR_OK)
		return 1;
	got = atomic_load_explicit(&sum, memory_order_relaxed);
	printf("%d tasks, sum %lld, expected %lld\n", atomic_load_explicit(&parts_used, memory_order_relaxed), got,
	       expected);
	return got == expected ? 0 : 1;
}
