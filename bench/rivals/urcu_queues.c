/*
 * urcu_queues.c - liburcu's two queues, inlined. Both are unbounded linked lists; each value is in
 * a node of its own from malloc().
 *
 * wfcqueue: enqueue is wait-free. A dequeue takes the queue's mutex, and waits for an enqueue that
 * has begun.
 *
 * rculfqueue: lock-free, inside read sections. call_rcu() frees a node: its thread waits for
 * readers.
 */
#define _LGPL_SOURCE
#include <stddef.h>
#include <stdlib.h>
#include <urcu-bp.h>
#include <urcu/rculfqueue.h>
#include <urcu/wfcqueue.h>

#include "rivals.h"

struct wait_free {
	_Alignas(64) struct cds_wfcq_head head;
	_Alignas(64) struct cds_wfcq_tail tail;
};

struct wait_free_node {
	struct cds_wfcq_node node; /* first, so that both have the same address */
	uint64_t value;
};

static void *wait_free_create(size_t capacity)
{
	struct wait_free *queue = aligned_alloc(64, sizeof(*queue));

	(void)capacity;
	if (queue == NULL)
		exit(3);
	cds_wfcq_init(&queue->head, &queue->tail);
	return queue;
}

static int wait_free_enqueue(void *self, uint64_t value)
{
	struct wait_free *queue = self;
	struct wait_free_node *node = malloc(sizeof(*node));

	if (node == NULL)
		exit(3);
	node->value = value;
	cds_wfcq_node_init(&node->node);
	(void)cds_wfcq_enqueue(&queue->head, &queue->tail, &node->node);
	return 1;
}

static int wait_free_dequeue(void *self, uint64_t *value)
{
	struct wait_free *queue = self;
	struct cds_wfcq_node *head = cds_wfcq_dequeue_blocking(&queue->head, &queue->tail);
	struct wait_free_node *node;

	if (head == NULL)
		return 0;
	node = (struct wait_free_node *)head;
	*value = node->value;
	free(node);
	return 1;
}

static uint64_t wait_free_pairs(void *self, uint64_t count)
{
	return bench_pairs(self, count, wait_free_enqueue, wait_free_dequeue);
}

static void wait_free_destroy(void *self)
{
	struct wait_free *queue = self;
	uint64_t value;

	while (wait_free_dequeue(queue, &value))
		;
	cds_wfcq_destroy(&queue->head, &queue->tail);
	free(queue);
}

const struct ring_contender urcu_wfcqueue_contender = {
	.about = {.name = "liburcu wfcqueue", .version = "liburcu " WEIR_BENCH_URCU_VERSION},
	.unbounded = 1,
	.create = wait_free_create,
	.destroy = wait_free_destroy,
	.enqueue = wait_free_enqueue,
	.dequeue = wait_free_dequeue,
	.pairs = wait_free_pairs,
};

struct rcu_node {
	struct cds_lfq_node_rcu node; /* first */
	struct rcu_head head;
	uint64_t value;
};

static void *rcu_create(size_t capacity)
{
	struct cds_lfq_queue_rcu *queue = aligned_alloc(64, 64);

	(void)capacity;
	if (queue == NULL)
		exit(3);
	cds_lfq_init_rcu(queue, call_rcu);
	return queue;
}

static int rcu_enqueue(void *self, uint64_t value)
{
	struct rcu_node *node = malloc(sizeof(*node));

	if (node == NULL)
		exit(3);
	node->value = value;
	cds_lfq_node_init_rcu(&node->node);
	rcu_read_lock();
	cds_lfq_enqueue_rcu(self, &node->node);
	rcu_read_unlock();
	return 1;
}

static void rcu_free(struct rcu_head *head)
{
	free((char *)head - offsetof(struct rcu_node, head));
}

static int rcu_dequeue(void *self, uint64_t *value)
{
	struct cds_lfq_node_rcu *first;
	struct rcu_node *node;

	rcu_read_lock();
	first = cds_lfq_dequeue_rcu(self);
	rcu_read_unlock();
	if (first == NULL)
		return 0;
	node = (struct rcu_node *)first;
	*value = node->value;
	call_rcu(&node->head, rcu_free);
	return 1;
}

static uint64_t rcu_pairs(void *self, uint64_t count)
{
	return bench_pairs(self, count, rcu_enqueue, rcu_dequeue);
}

static void rcu_destroy(void *self)
{
	uint64_t value;

	while (rcu_dequeue(self, &value))
		;
	rcu_barrier();
	if (cds_lfq_destroy_rcu(self) != 0)
		exit(3);
	free(self);
}

const struct ring_contender urcu_rculfqueue_contender = {
	.about = {.name = "liburcu rculfqueue", .version = "liburcu " WEIR_BENCH_URCU_VERSION, .lock_free = 1},
	.unbounded = 1,
	.create = rcu_create,
	.destroy = rcu_destroy,
	.enqueue = rcu_enqueue,
	.dequeue = rcu_dequeue,
	.pairs = rcu_pairs,
};
