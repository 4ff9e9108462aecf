/*
 * urcu_publish.c - liburcu-bp with large values, in two forms. In one, the writer passes the old
 * value to call_rcu(), whose thread frees it after a grace period. In the other, the writer itself
 * waits for a grace period whenever the retired values reach Weir's budget.
 */
#include <stddef.h>
#include <stdlib.h>
#include <urcu-bp.h>

#include "rivals.h"
#include "urcu_thread.h"

enum { BUDGET = 32 << 20 };

struct value {
	struct rcu_head head;
	struct value *next; /* the next retired value */
	size_t bytes;
	_Alignas(64) uint64_t words[];
};

struct cell {
	struct value *current, *retired;
	size_t bytes, retired_bytes;
};

static struct value *value_of(uint64_t number, size_t bytes)
{
	struct value *value = bench_value_allocate(sizeof(*value) + bytes);

	value->bytes = bytes;
	for (size_t i = 0; i < bytes / sizeof(uint64_t); i++)
		value->words[i] = number;
	return value;
}

static void value_free(struct rcu_head *head)
{
	/* liburcu's macro is not used, because clang warns that it drops a const. */
	struct value *value = (struct value *)(void *)((char *)head - offsetof(struct value, head));

	bench_value_free(value, sizeof(*value) + value->bytes);
}

static void *create(size_t bytes)
{
	struct cell *cell = calloc(1, sizeof(*cell));

	if (cell == NULL)
		exit(3);
	cell->bytes = bytes;
	cell->current = value_of(0, bytes);
	return cell;
}

static void collect(struct cell *cell)
{
	synchronize_rcu();
	while (cell->retired != NULL) {
		struct value *value = cell->retired;

		cell->retired = value->next;
		value_free(&value->head);
	}
	cell->retired_bytes = 0;
}

static void destroy(void *self)
{
	struct cell *cell = self;

	rcu_barrier();
	collect(cell);
	value_free(&cell->current->head);
	free(cell);
}

static uint64_t read_many(void *self, uint64_t count)
{
	struct cell *cell = self;
	size_t last = cell->bytes / sizeof(uint64_t) - 1;
	uint64_t torn = 0;

	for (uint64_t i = 0; i < count; i++) {
		const struct value *value;

		rcu_read_lock();
		value = rcu_dereference(cell->current);
		torn += value->words[0] != value->words[last];
		rcu_read_unlock();
	}
	return torn;
}

static void publish(void *self, uint64_t number)
{
	struct cell *cell = self;
	struct value *old = rcu_xchg_pointer(&cell->current, value_of(number, cell->bytes));

	call_rcu(&old->head, value_free);
}

static void publish_in_budget(void *self, uint64_t number)
{
	struct cell *cell = self;
	struct value *old = rcu_xchg_pointer(&cell->current, value_of(number, cell->bytes));

	old->next = cell->retired;
	cell->retired = old;
	cell->retired_bytes += old->bytes;
	if (cell->retired_bytes >= BUDGET)
		collect(cell);
}

const struct publish_contender urcu_publish_contender = {
	.about = {.name = "liburcu-bp call_rcu",
              .version = "liburcu " WEIR_BENCH_URCU_VERSION,
              .lacks = "takes no reference; memory has no bound"},
	.create = create,
	.destroy = destroy,
	.thread_begin = thread_begin,
	.thread_end = thread_end,
	.read_many = read_many,
	.publish = publish,
};
const struct publish_contender urcu_budget_publish_contender = {
	.about = {.name = "liburcu-bp synchronize_rcu, 32 MiB",
              .version = "liburcu " WEIR_BENCH_URCU_VERSION,
              .lacks = "takes no reference; the writer waits for readers"},
	.create = create,
	.destroy = destroy,
	.thread_begin = thread_begin,
	.thread_end = thread_end,
	.read_many = read_many,
	.publish = publish_in_budget,
};
