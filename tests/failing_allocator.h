/*
 * failing_allocator.h - an allocator that fails when told to, and checks what is released.
 *
 * One test with it shows that a call survives the failure of each of its allocations and leaks
 * nothing:
 *
 *     static enum weir_status make_a_ring(const weir_allocator *allocator, void *context)
 *     {
 *         weir_ring *ring;
 *         struct weir_ring_options options = {WEIR_RING_OPTIONS_INIT, .allocator = allocator};
 *         enum weir_status status = weir_ring_create(8, &options, &ring, NULL);
 *
 *         if (status == WEIR_OK)
 *             weir_ring_destroy(ring, NULL);
 *         return status;
 *     }
 *
 *     Test(ring, create_survives_every_allocation_failing)
 *     {
 *         cr_assert_eq(fail_each_allocation(make_a_ring, NULL), 1, "a ring is one allocation");
 *     }
 *
 * For more control, give failing_allocator_hooks() to the calls under test, and compare
 * failing_allocator_verdict() with "balanced" at the end.
 *
 * It finds a block that is not released, is released twice, is released with another size or
 * alignment than it was allocated with, or is written past its end. It finds an allocation of no
 * bytes, and an alignment that is not a power of two >= sizeof(void *). Fresh memory is filled with
 * 0xa5 and released memory with 0xdd, so that a read of either shows. Blocks are allocated one by
 * one, so that ASan and LSan see everything that they would see without it. Any number of threads
 * may use it. Its counters are relaxed, so that it hides no race from a race detector. Read the
 * verdict after these threads have ended.
 */
#ifndef FAILING_ALLOCATOR_H
#define FAILING_ALLOCATOR_H

#include <criterion/criterion.h>

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <weir/alloc.h>
#include <weir/status.h>

#include "base/atomic.h"

/*
 * A struct of zeros is ready for use, and then no allocation fails. Set the first two fields before
 * use; the other fields are counters.
 */
struct failing_allocator {
	size_t fail_at;    /* the number of the first allocation that fails, from 1; 0: none */
	size_t fail_count; /* how many fail from there on; 0 means 1, SIZE_MAX means all */

	_Atomic(size_t) asked;       /* allocations asked for, including refused ones */
	_Atomic(size_t) refused;     /* how many of them were refused */
	_Atomic(size_t) outstanding; /* blocks that are not released yet */
	_Atomic(size_t) bytes;       /* bytes that are not released yet */
	_Atomic(const char *) fault; /* the first fault; NULL: none */
};

/* Stands right before the block, behind as many bytes as the alignment needs. */
struct failing_block {
	struct failing_allocator *owner;
	size_t size;
	size_t alignment;
	uint64_t mark;
};

#define FAILING_BLOCK_LIVE UINT64_C(0x5ca1ab1e0ddba11e)
#define FAILING_BLOCK_DEAD UINT64_C(0xdeadb10cdeadb10c)

static inline void failing_allocator_note(struct failing_allocator *state, const char *fault)
{
	const char *none = NULL;

	/* [relaxed] read after the threads were joined. */
	(void)weiri_cas_relaxed(&state->fault, &none, fault);
}

/* Bytes before a block: room for failing_block, and a multiple of the alignment. */
static inline size_t failing_block_offset(size_t alignment)
{
	return (sizeof(struct failing_block) + alignment - 1) / alignment * alignment;
}

static inline int failing_allocator_refuses(struct failing_allocator *state)
{
	/* [relaxed] a ticket number; it orders nothing. */
	size_t number = weiri_fetch_add_relaxed(&state->asked, 1) + 1;
	size_t count = state->fail_count != 0 ? state->fail_count : 1;

	if (state->fail_at == 0 || number < state->fail_at || number - state->fail_at >= count)
		return 0;
	/* [relaxed] a count. */
	(void)weiri_fetch_add_relaxed(&state->refused, 1);
	return 1;
}

static inline void *failing_allocate(void *context, size_t size, size_t alignment)
{
	struct failing_allocator *state = context;
	struct failing_block block = {state, size, alignment, FAILING_BLOCK_LIVE};
	void *raw = NULL;
	unsigned char *memory;

	if (size == 0)
		failing_allocator_note(state, "an allocation of no bytes");
	if (alignment < sizeof(void *) || (alignment & (alignment - 1)) != 0) {
		failing_allocator_note(state, "an allocation with an impossible alignment");
		return NULL;
	}
	if (failing_allocator_refuses(state) || size > PTRDIFF_MAX / 2)
		return NULL;
	if (posix_memalign(&raw, alignment, failing_block_offset(alignment) + size + sizeof(block.mark)) != 0)
		return NULL;
	memory = (unsigned char *)raw + failing_block_offset(alignment);
	memcpy(memory - sizeof(block), &block, sizeof(block));
	memset(memory, 0xa5, size);
	memcpy(memory + size, &block.mark, sizeof(block.mark));
	/* [relaxed] counts, read after the threads were joined. */
	(void)weiri_fetch_add_relaxed(&state->outstanding, 1);
	(void)weiri_fetch_add_relaxed(&state->bytes, size);
	return memory;
}

/*
 * Returns what is wrong with this release, or NULL. Without a live mark the rest of *block cannot
 * be trusted.
 */
static inline const char *failing_release_fault(const struct failing_allocator *state, const unsigned char *memory,
                                                size_t size, size_t alignment, const struct failing_block *block)
{
	if (block->mark == FAILING_BLOCK_DEAD)
		return "a block was released twice";
	if (block->mark != FAILING_BLOCK_LIVE)
		return "a pointer that is not a block was released, or a block was written before its start";
	if (block->owner != state)
		return "a block was released to another allocator";
	if (block->size != size)
		return "a block was released with another size";
	if (block->alignment != alignment)
		return "a block was released with another alignment";
	if (memcmp(memory + size, &block->mark, sizeof(block->mark)) != 0)
		return "a block was written past its end";
	return NULL;
}

static inline void failing_release(void *context, void *memory, size_t size, size_t alignment)
{
	struct failing_allocator *state = context;
	unsigned char *bytes = memory;
	struct failing_block block;
	const char *fault;

	if (memory == NULL) {
		failing_allocator_note(state, "NULL was released");
		return;
	}
	memcpy(&block, bytes - sizeof(block), sizeof(block));
	fault = failing_release_fault(state, bytes, size, alignment, &block);
	if (fault != NULL)
		failing_allocator_note(state, fault);
	/* A block without a live mark cannot be freed, because its beginning is unknown. */
	if (block.mark != FAILING_BLOCK_LIVE)
		return;
	memset(bytes, 0xdd, block.size);
	block.mark = FAILING_BLOCK_DEAD;
	memcpy(bytes - sizeof(block), &block, sizeof(block));
	/* [relaxed] counts, read after the threads were joined. */
	(void)weiri_fetch_sub_relaxed(&block.owner->outstanding, 1);
	(void)weiri_fetch_sub_relaxed(&block.owner->bytes, block.size);
	free(bytes - failing_block_offset(block.alignment));
}

static inline weir_allocator failing_allocator_hooks(struct failing_allocator *state)
{
	return (weir_allocator){failing_allocate, failing_release, state};
}

/* Returns "balanced" if each block was released as it was allocated, else the first fault. */
static inline const char *failing_allocator_verdict(struct failing_allocator *state)
{
	/* [relaxed] the threads that used the allocator were joined. */
	const char *fault = weiri_load_relaxed(&state->fault);

	if (fault != NULL)
		return fault;
	/* [relaxed] as above */
	return weiri_load_relaxed(&state->outstanding) == 0 ? "balanced" : "a block was not released";
}

/*
 * Does something that allocates through `allocator`, and cleans up after itself whatever the
 * outcome is.
 */
typedef enum weir_status failing_scenario(const weir_allocator *allocator, void *context);

/*
 * Runs `scenario` without a failure, then with its first allocation failing, its second, and so on
 * to the last. The first run must end in WEIR_OK, and each other run in WEIR_RESOURCE_EXHAUSTED.
 * All runs must be balanced. Otherwise the test fails here and names the allocation. Returns how
 * many allocations the first run made. The scenario must make the same allocations in each run.
 */
static inline size_t fail_each_allocation(failing_scenario *scenario, void *context)
{
	size_t allocations = 0;

	for (size_t at = 0; at <= allocations; at++) {
		struct failing_allocator state = {.fail_at = at};
		weir_allocator allocator = failing_allocator_hooks(&state);
		enum weir_status status = scenario(&allocator, context);
		enum weir_status expected = at == 0 ? WEIR_OK : WEIR_RESOURCE_EXHAUSTED;

		cr_assert_eq(status, expected, "allocation %zu failing: %s, not %s", at, weir_status_name(status),
		             weir_status_name(expected));
		cr_assert_str_eq(failing_allocator_verdict(&state), "balanced", "allocation %zu failing: %s", at,
		                 failing_allocator_verdict(&state));
		if (at == 0)
			allocations = weiri_load_relaxed(&state.asked);
		else
			cr_assert_eq(weiri_load_relaxed(&state.refused), 1, "allocation %zu was never reached", at);
	}
	return allocations;
}

/*
 * The same for a scenario with threads, whose allocations depend on their timing: a run whose
 * allocation failed may also end in WEIR_OK, if what it was for had ended meanwhile. Goes on until no
 * allocation fails any more. Returns how many runs ended in WEIR_RESOURCE_EXHAUSTED.
 */
static inline size_t fail_each_allocation_in_time(failing_scenario *scenario, void *context)
{
	size_t failures = 0, refused = 1;

	for (size_t at = 1; refused != 0; at++) {
		struct failing_allocator state = {.fail_at = at};
		weir_allocator allocator = failing_allocator_hooks(&state);
		enum weir_status status = scenario(&allocator, context);

		refused = weiri_load_relaxed(&state.refused);
		cr_assert(status == WEIR_RESOURCE_EXHAUSTED || status == WEIR_OK, "allocation %zu failing: %s", at,
		          weir_status_name(status));
		cr_assert(refused != 0 || status == WEIR_OK, "a run without a failure: %s", weir_status_name(status));
		cr_assert_str_eq(failing_allocator_verdict(&state), "balanced", "allocation %zu failing: %s", at,
		                 failing_allocator_verdict(&state));
		failures += status == WEIR_RESOURCE_EXHAUSTED;
	}
	return failures;
}

#endif
