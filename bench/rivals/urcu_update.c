/*
 * urcu_update.c - a small value behind a pointer that a compare-and-swap replaces; the old value
 * goes to call_rcu() of liburcu-bp.
 */
#include <stddef.h>
#include <stdlib.h>
#include <urcu-bp.h>

#include "rivals.h"
#include "urcu_thread.h"

struct value {
	struct shared_value shared;
	struct rcu_head head;
};

struct cell {
	struct value *current;
};

static void value_free(struct rcu_head *head)
{
	free((char *)head - offsetof(struct value, head));
}

static struct value *new_value(void)
{
	struct value *value = calloc(1, sizeof(*value));

	if (value == NULL)
		exit(3);
	return value;
}

static void *create(void)
{
	struct cell *cell = malloc(sizeof(*cell));

	if (cell == NULL)
		exit(3);
	cell->current = new_value();
	return cell;
}

static void destroy(void *self)
{
	struct cell *cell = self;

	rcu_barrier();
	free(cell->current);
	free(cell);
}

static void update(struct cell *cell)
{
	struct value *next = new_value(), *old;

	rcu_read_lock();
	do {
		old = rcu_dereference(cell->current);
		for (size_t i = 0; i < 8; i++)
			next->shared.words[i] = old->shared.words[i] + 1;
	} while (rcu_cmpxchg_pointer(&cell->current, old, next) != old);
	rcu_read_unlock();
	call_rcu(&old->head, value_free);
}

static void update_many(void *self, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		update(self);
}

static uint64_t value(void *self)
{
	const struct value *current;
	uint64_t value;

	rcu_read_lock();
	current = rcu_dereference(((struct cell *)self)->current);
	value = current->shared.words[0];
	rcu_read_unlock();
	return value;
}

const struct update_contender urcu_update_contender = {
	.about = {.name = "liburcu-bp, compare-and-swap, call_rcu",
              .version = "liburcu " WEIR_BENCH_URCU_VERSION,
              .lacks = "takes no reference; memory has no bound"},
	.create = create,
	.destroy = destroy,
	.thread_begin = thread_begin,
	.thread_end = thread_end,
	.update_many = update_many,
	.value = value,
};
