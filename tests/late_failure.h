/*
 * late_failure.h - memory that fails only during the call under test, and not while the test makes
 * the objects around the call.
 *
 *     static enum weir_status take(const weir_allocator *failing, void *context)
 *     {
 *         struct late_failure late = {0};
 *         weir_allocator allocator = late_failure_hooks(&late);
 *         weir_queue *queue = a_queue_from(&allocator);
 *
 *         late.under_test = failing;
 *         status = weir_queue_dequeue(queue, ...);
 *         late.under_test = NULL;
 *         ...
 *         late_failure_end(&late);
 *         return status;
 *     }
 *
 * This is a scenario for fail_each_allocation() of failing_allocator.h, whose allocator is
 * `failing`.
 */
#ifndef LATE_FAILURE_H
#define LATE_FAILURE_H

#include "failing_allocator.h"

struct late_failure {
	struct failing_allocator surroundings; /* never fails */
	const weir_allocator *under_test;      /* NULL, or asked instead */
};

static inline void *late_failure_allocate(void *context, size_t size, size_t alignment)
{
	struct late_failure *late = context;

	if (late->under_test != NULL)
		return late->under_test->allocate(late->under_test->context, size, alignment);
	return failing_allocate(&late->surroundings, size, alignment);
}

/* A block knows which of the two allocators it came from. */
static inline void late_failure_release(void *context, void *memory, size_t size, size_t alignment)
{
	struct failing_block block;

	(void)context;
	memcpy(&block, (unsigned char *)memory - sizeof(block), sizeof(block));
	failing_release(block.owner, memory, size, alignment);
}

static inline weir_allocator late_failure_hooks(struct late_failure *late)
{
	return (weir_allocator){late_failure_allocate, late_failure_release, late};
}

/* Expects that everything that was allocated around the call has been released. */
static inline void late_failure_end(struct late_failure *late)
{
	cr_assert_str_eq(failing_allocator_verdict(&late->surroundings), "balanced", "around the call: %s",
	                 failing_allocator_verdict(&late->surroundings));
}

#endif
