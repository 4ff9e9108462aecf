/*
 * blocks.c - see blocks.h.
 *
 * Sizes are powers of two from 64 bytes to 128 KiB. Each size has a stack of free blocks (Treiber
 * 1986) whose head has a counter against the ABA problem. Links are stored apart from the blocks. A
 * thread that reads the link of a block that was taken meanwhile therefore reads an old link, and
 * no user data.
 */
#include "blocks.h"

#include <stdint.h>

#include "harness.h"

enum { UNIT = 64, MAX_ALIGNMENT = 1024, CLASSES = 12, ARENA = 64 << 20, UNITS = ARENA / UNIT };

static _Alignas(MAX_ALIGNMENT) unsigned char arena[ARENA];
/* by first unit; 0 ends a stack, so unit 0 is never allocated */
static _Atomic(uint32_t) next_free[UNITS];
/* Counter in the upper half, first unit of the top block in the lower. */
static WEIRI_ALIGNED_APART _Atomic(uint64_t) top[CLASSES];
/* the first unit that was never allocated */
static WEIRI_ALIGNED_APART _Atomic(uint32_t) fresh = MAX_ALIGNMENT / UNIT;
static _Atomic(uint64_t) bytes;

static unsigned class_of(size_t size, size_t alignment)
{
	size_t wanted = size > alignment ? size : alignment;
	unsigned class = 0;

	while ((size_t)UNIT << class < wanted)
		class ++;
	return class;
}

static uint32_t pop(unsigned class)
{
	/* [acquire] the link of the block that was pushed */
	uint64_t seen = weiri_load_acquire(&top[class]);

	while ((uint32_t)seen != 0) {
		/* [relaxed] an old link makes the CAS fail */
		uint32_t link = weiri_load_relaxed(&next_free[(uint32_t)seen]);
		uint64_t after = ((seen >> 32) + 1) << 32 | link;

		if (weiri_cas_acq_rel_or_acquire(&top[class], &seen,
		                                 /* [acquire] what the last owner did to it is over */
		                                 after))
			return (uint32_t)seen;
	}
	return 0;
}

static void push(unsigned class, uint32_t unit)
{
	uint64_t seen = weiri_load_relaxed(&top[class]); /* [relaxed] the CAS decides */

	do {
		/* [relaxed] published by the CAS, a [release] that pairs with pop(). */
		weiri_store_relaxed(&next_free[unit], (uint32_t)seen);
	} while (!weiri_cas_acq_rel(&top[class], &seen, ((seen >> 32) + 1) << 32 | unit));
}

static uint32_t carve(unsigned class)
{
	uint32_t units = 1u << class, align = units < MAX_ALIGNMENT / UNIT ? units : MAX_ALIGNMENT / UNIT;
	uint32_t seen = weiri_load_relaxed(&fresh), first; /* [relaxed] new units belong to no thread */

	do {
		first = (seen + align - 1) & ~(align - 1);
		if (first + units > UNITS)
			return 0;
	} while (!weiri_cas_relaxed(&fresh, &seen, first + units));
	return first;
}

static void *allocate(void *context, size_t size, size_t alignment)
{
	unsigned class = class_of(size, alignment);
	uint32_t unit;

	(void)context;
	if (class >= CLASSES || alignment > MAX_ALIGNMENT)
		return NULL;
	unit = pop(class);
	if (unit == 0)
		unit = carve(class);
	if (unit == 0)
		return NULL;
	(void)weiri_fetch_add_relaxed(&bytes, (uint64_t)UNIT << class); /* [relaxed] a figure */
	return arena + (size_t)unit * UNIT;
}

static void release(void *context, void *memory, size_t size, size_t alignment)
{
	unsigned class = class_of(size, alignment);

	(void)context;
	(void)weiri_fetch_sub_relaxed(&bytes, (uint64_t)UNIT << class); /* [relaxed] a figure */
	push(class, (uint32_t)((size_t)((unsigned char *)memory - arena) / UNIT));
}

const weir_allocator *stress_blocks(void)
{
	static const weir_allocator allocator = {allocate, release, NULL};

	return &allocator;
}

unsigned long long stress_blocks_bytes(void)
{
	return weiri_load_relaxed(&bytes); /* [relaxed] a figure */
}
