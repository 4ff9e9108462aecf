/*
 * urcu_memory.c - liburcu-bp with a reader that is stopped inside its section. The writer's next
 * grace period waits for the reader.
 */
#include <stdlib.h>
#include <string.h>
#include <urcu-bp.h>

#include "rivals.h"
#include "urcu_thread.h"

enum { EVERY = 128 }; /* values per grace period */

struct cell {
	void *current;
	void *retired[EVERY];
	size_t bytes;
	unsigned waiting;
};

static void *new_value(size_t bytes)
{
	return memset(bench_value_allocate(bytes), 0, bytes);
}

static void *create(size_t bytes)
{
	struct cell *cell = calloc(1, sizeof(*cell));

	if (cell == NULL)
		exit(3);
	cell->bytes = bytes;
	cell->current = new_value(bytes);
	return cell;
}

static void drain(struct cell *cell)
{
	synchronize_rcu();
	while (cell->waiting != 0)
		bench_value_free(cell->retired[--cell->waiting], cell->bytes);
}

static void destroy(void *self)
{
	struct cell *cell = self;

	drain(cell);
	bench_value_free(cell->current, cell->bytes);
	free(cell);
}

static void read_once(void *self)
{
	struct cell *cell = self;

	rcu_read_lock();
	(void)rcu_dereference(cell->current);
	bench_stop_here();
	rcu_read_unlock();
}

static int publish(void *self, uint64_t deadline_ns)
{
	struct cell *cell = self;

	(void)deadline_ns; /* a grace period has no deadline */
	cell->retired[cell->waiting++] = rcu_xchg_pointer(&cell->current, new_value(cell->bytes));
	if (cell->waiting == EVERY)
		drain(cell);
	return 1;
}

const struct memory_contender urcu_memory_contender = {
	.about = {.name = "liburcu-bp synchronize_rcu", .version = "liburcu " WEIR_BENCH_URCU_VERSION},
	.create = create,
	.destroy = destroy,
	.thread_begin = thread_begin,
	.thread_end = thread_end,
	.read = read_once,
	.publish = publish,
};
