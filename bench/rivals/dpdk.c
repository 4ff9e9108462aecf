/*
 * dpdk.c - DPDK's rte_ring on memory of our own, without DPDK's environment layer.
 *
 * There is one contender for each of its three ways to synchronise many threads: heads that move
 * independently and tails that move in turn (MP/MC), relaxed tails (RTS), and heads and tails that
 * move together (HTS). In each of them, a thread that stops between reserving and finishing blocks
 * the others.
 */
#include <rte_ring.h>
#include <stdlib.h>

#include "rivals.h"

#define DPDK_TEXT_OF(year, month, minor) "DPDK " #year "." #month "." #minor
#define DPDK_TEXT(year, month, minor) DPDK_TEXT_OF(year, month, minor)
#define DPDK_VERSION DPDK_TEXT(RTE_VER_YEAR, RTE_VER_MONTH, RTE_VER_MINOR)

static void *create(size_t capacity, unsigned flags)
{
	ssize_t bytes = rte_ring_get_memsize((unsigned)rte_align32pow2((uint32_t)capacity + 1));
	struct rte_ring *ring = bytes < 0 ? NULL : aligned_alloc(RTE_CACHE_LINE_SIZE, (size_t)bytes);

	if (ring == NULL || rte_ring_init(ring, "weir-bench", (unsigned)capacity, flags | RING_F_EXACT_SZ) != 0)
		exit(3);
	return ring;
}

static void *create_mt(size_t capacity)
{
	return create(capacity, 0);
}

static void *create_rts(size_t capacity)
{
	return create(capacity, RING_F_MP_RTS_ENQ | RING_F_MC_RTS_DEQ);
}

static void *create_hts(size_t capacity)
{
	return create(capacity, RING_F_MP_HTS_ENQ | RING_F_MC_HTS_DEQ);
}

static int mt_enqueue(void *self, uint64_t value)
{
	return rte_ring_mp_enqueue(self, (void *)(uintptr_t)value) == 0;
}

static int mt_dequeue(void *self, uint64_t *value)
{
	return rte_ring_mc_dequeue(self, (void **)value) == 0;
}

static size_t mt_enqueue_many(void *self, const uint64_t *values, size_t count)
{
	return rte_ring_mp_enqueue_burst(self, (void *const *)values, (unsigned)count, NULL);
}

static size_t mt_dequeue_many(void *self, uint64_t *values, size_t count)
{
	return rte_ring_mc_dequeue_burst(self, (void **)values, (unsigned)count, NULL);
}

static uint64_t mt_pairs(void *self, uint64_t count)
{
	return bench_pairs(self, count, mt_enqueue, mt_dequeue);
}

static int rts_enqueue(void *self, uint64_t value)
{
	return (int)rte_ring_mp_rts_enqueue_bulk(self, (void *const *)&value, 1, NULL);
}

static int rts_dequeue(void *self, uint64_t *value)
{
	return (int)rte_ring_mc_rts_dequeue_bulk(self, (void **)value, 1, NULL);
}

static size_t rts_enqueue_many(void *self, const uint64_t *values, size_t count)
{
	return rte_ring_mp_rts_enqueue_burst(self, (void *const *)values, (unsigned)count, NULL);
}

static size_t rts_dequeue_many(void *self, uint64_t *values, size_t count)
{
	return rte_ring_mc_rts_dequeue_burst(self, (void **)values, (unsigned)count, NULL);
}

static uint64_t rts_pairs(void *self, uint64_t count)
{
	return bench_pairs(self, count, rts_enqueue, rts_dequeue);
}

static int hts_enqueue(void *self, uint64_t value)
{
	return (int)rte_ring_mp_hts_enqueue_bulk(self, (void *const *)&value, 1, NULL);
}

static int hts_dequeue(void *self, uint64_t *value)
{
	return (int)rte_ring_mc_hts_dequeue_bulk(self, (void **)value, 1, NULL);
}

static size_t hts_enqueue_many(void *self, const uint64_t *values, size_t count)
{
	return rte_ring_mp_hts_enqueue_burst(self, (void *const *)values, (unsigned)count, NULL);
}

static size_t hts_dequeue_many(void *self, uint64_t *values, size_t count)
{
	return rte_ring_mc_hts_dequeue_burst(self, (void **)values, (unsigned)count, NULL);
}

static uint64_t hts_pairs(void *self, uint64_t count)
{
	return bench_pairs(self, count, hts_enqueue, hts_dequeue);
}

const struct ring_contender dpdk_mt_ring_contender = {
	.about = {.name = "rte_ring (MP/MC)", .version = DPDK_VERSION},
	.create = create_mt,
	.destroy = free,
	.enqueue = mt_enqueue,
	.dequeue = mt_dequeue,
	.enqueue_many = mt_enqueue_many,
	.dequeue_many = mt_dequeue_many,
	.pairs = mt_pairs,
};

const struct ring_contender dpdk_rts_ring_contender = {
	.about = {.name = "rte_ring (RTS)", .version = DPDK_VERSION},
	.create = create_rts,
	.destroy = free,
	.enqueue = rts_enqueue,
	.dequeue = rts_dequeue,
	.enqueue_many = rts_enqueue_many,
	.dequeue_many = rts_dequeue_many,
	.pairs = rts_pairs,
};

const struct ring_contender dpdk_hts_ring_contender = {
	.about = {.name = "rte_ring (HTS)", .version = DPDK_VERSION},
	.create = create_hts,
	.destroy = free,
	.enqueue = hts_enqueue,
	.dequeue = hts_dequeue,
	.enqueue_many = hts_enqueue_many,
	.dequeue_many = hts_dequeue_many,
	.pairs = hts_pairs,
};
