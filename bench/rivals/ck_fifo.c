/*
 * ck_fifo.c - Concurrency Kit's ck_fifo for many producers and consumers: Michael and Scott's queue
 * with counted pointers.
 *
 * A thread may read a node after it has left the queue, so the memory must remain a node. Nodes
 * therefore come from an array, through a ck_stack of free nodes, which makes the queue bounded.
 */
#include <ck_fifo.h>
#include <ck_stack.h>
#include <stdlib.h>

#include "rivals.h"

#ifdef CK_F_FIFO_MPMC

struct node {
	_Alignas(64) struct ck_fifo_mpmc_entry entry;
	ck_stack_entry_t is_free;
};

struct fifo {
	_Alignas(64) struct ck_fifo_mpmc fifo;
	_Alignas(64) ck_stack_t free;
	struct node *nodes;
};

CK_STACK_CONTAINER(struct node, is_free, node_of)

static void *create(size_t capacity)
{
	struct fifo *fifo = aligned_alloc(64, sizeof(*fifo));

	if (fifo == NULL || (fifo->nodes = aligned_alloc(64, (capacity + 1) * sizeof(struct node))) == NULL)
		exit(3);
	ck_stack_init(&fifo->free);
	for (size_t i = 1; i <= capacity; i++)
		ck_stack_push_spnc(&fifo->free, &fifo->nodes[i].is_free);
	ck_fifo_mpmc_init(&fifo->fifo, &fifo->nodes[0].entry);
	return fifo;
}

static void destroy(void *self)
{
	struct fifo *fifo = self;

	free(fifo->nodes);
	free(fifo);
}

static int enqueue(void *self, uint64_t value)
{
	struct fifo *fifo = self;
	ck_stack_entry_t *unused = ck_stack_pop_mpmc(&fifo->free);

	if (unused == NULL)
		return 0;
	ck_fifo_mpmc_enqueue(&fifo->fifo, &node_of(unused)->entry, (void *)(uintptr_t)value);
	return 1;
}

static int dequeue(void *self, uint64_t *value)
{
	struct fifo *fifo = self;
	struct ck_fifo_mpmc_entry *left;

	if (!ck_fifo_mpmc_dequeue(&fifo->fifo, value, &left))
		return 0;
	ck_stack_push_mpmc(&fifo->free, &((struct node *)left)->is_free);
	return 1;
}

static uint64_t pairs(void *self, uint64_t count)
{
	return bench_pairs(self, count, enqueue, dequeue);
}

const struct ring_contender ck_fifo_ring_contender = {
	.about = {.name = "ck_fifo (mpmc)", .version = "Concurrency Kit " CK_VERSION, .lock_free = 1},
	.create = create,
	.destroy = destroy,
	.enqueue = enqueue,
	.dequeue = dequeue,
	.pairs = pairs,
};

#endif
