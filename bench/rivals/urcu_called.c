/*
 * urcu_called.c - liburcu-bp by calls into its library: a section without retaining, and a section that takes a shared reference count.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "urcu_section.h"

void urcu_release(struct urcu_value *value)
{
	if (atomic_fetch_sub_explicit(&value->references, 1, memory_order_acq_rel) == 1)
		free(value);
}

void *urcu_create(size_t bytes)
{
	struct urcu_cell *cell = calloc(1, sizeof(*cell));

	if (cell == NULL)
		exit(3);
	cell->bytes = bytes;
	urcu_write(cell, 0);
	return cell;
}

static void drain(struct urcu_cell *cell)
{
	synchronize_rcu();
	while (cell->waiting != 0)
		urcu_release(cell->retired[--cell->waiting]);
}

void urcu_destroy(void *self)
{
	struct urcu_cell *cell = self;

	drain(cell);
	urcu_release(cell->current);
	free(cell);
}

void urcu_thread_begin(void *self)
{
	(void)self;
	rcu_register_thread();
}

void urcu_thread_end(void *self)
{
	(void)self;
	rcu_unregister_thread();
}

void urcu_write(void *self, uint64_t value)
{
	struct urcu_cell *cell = self;
	struct urcu_value *next = aligned_alloc(64, 64 + (cell->bytes + 63) / 64 * 64), *old;

	if (next == NULL)
		exit(3);
	for (size_t i = 0; i < cell->bytes / sizeof(uint64_t); i++)
		next->words[i] = value;
	atomic_init(&next->references, 1);
	old = rcu_xchg_pointer(&cell->current, next);
	if (old != NULL)
		cell->retired[cell->waiting++] = old;
	if (cell->waiting == 256)
		drain(cell);
}

const struct read_contender urcu_called_read_contender = {
	.about = {.name = "liburcu-bp section (called)", .version = "liburcu", .lacks = "retains nothing"},
	.create = urcu_create,
	.destroy = urcu_destroy,
	.thread_begin = urcu_thread_begin,
	.thread_end = urcu_thread_end,
	.read_many = urcu_section_read_many,
	.scan_many = urcu_section_scan_many,
	.write = urcu_write,
};

static struct urcu_value *retain(struct urcu_cell *cell)
{
	struct urcu_value *value;

	rcu_read_lock();
	value = rcu_dereference(cell->current);
	(void)atomic_fetch_add_explicit(&value->references, 1, memory_order_relaxed);
	rcu_read_unlock();
	return value;
}

static uint64_t count_read_many(void *self, uint64_t count)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < count; i++) {
		struct urcu_value *value = retain(self);

		sum += value->words[0];
		urcu_release(value);
	}
	return sum;
}

static uint64_t count_scan_many(void *self, uint64_t count)
{
	struct urcu_cell *cell = self;
	uint64_t torn = 0;

	for (uint64_t i = 0; i < count; i++) {
		struct urcu_value *value = retain(cell);

		torn += (uint64_t)bench_torn(value->words, cell->bytes);
		urcu_release(value);
	}
	return torn;
}

const struct read_contender urcu_count_read_contender = {
	.about = {.name = "liburcu-bp + shared reference count", .version = "liburcu"},
	.create = urcu_create,
	.destroy = urcu_destroy,
	.thread_begin = urcu_thread_begin,
	.thread_end = urcu_thread_end,
	.read_many = count_read_many,
	.scan_many = count_scan_many,
	.write = urcu_write,
};
