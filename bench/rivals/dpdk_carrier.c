/*
 * dpdk_carrier.c - rte_ring with elements of the size of a message, in memory that processes share at
 * the same address.
 */
#include <rte_ring.h>
#include <rte_ring_elem.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "rivals.h"

#define DPDK_TEXT_OF(year, month, minor) "DPDK " #year "." #month "." #minor
#define DPDK_TEXT(year, month, minor) DPDK_TEXT_OF(year, month, minor)

struct carrier {
	unsigned bytes;
	size_t size;
	struct rte_ring *ring;
};

static void *create(size_t capacity, size_t bytes)
{
	struct carrier *self = calloc(1, sizeof(*self));
	ssize_t size = rte_ring_get_memsize_elem((unsigned)bytes, (unsigned)rte_align32pow2((uint32_t)capacity + 1));

	if (self == NULL || size < 0)
		exit(3);
	self->bytes = (unsigned)bytes;
	self->size = (size_t)size;
	self->ring = mmap(NULL, self->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (self->ring == MAP_FAILED || rte_ring_init(self->ring, "weir-bench", (unsigned)capacity, RING_F_EXACT_SZ) != 0)
		exit(3);
	return self;
}

static void destroy(void *context)
{
	struct carrier *self = context;

	(void)munmap(self->ring, self->size);
	free(self);
}

static void send(void *context, const void *message)
{
	struct carrier *self = context;

	while (rte_ring_mp_enqueue_bulk_elem(self->ring, message, self->bytes, 1, NULL) == 0)
		(void)sched_yield();
}

static void receive(void *context, void *message)
{
	struct carrier *self = context;

	while (rte_ring_mc_dequeue_bulk_elem(self->ring, message, self->bytes, 1, NULL) == 0)
		(void)sched_yield();
}

const struct carrier_contender dpdk_carrier_contender = {
	.about = {.name = "rte_ring (MP/MC)",
              .version = DPDK_TEXT(RTE_VER_YEAR, RTE_VER_MONTH, RTE_VER_MINOR),
              .lacks = "does not sleep: it yields"},
	.create = create,
	.destroy = destroy,
	.send = send,
	.receive = receive,
};
