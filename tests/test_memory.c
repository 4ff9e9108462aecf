/*
 * test_memory.c - the default allocator and the functions around allocators.
 */
#include <criterion/criterion.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <weir/alloc.h>

#include "base/memory.h"

/* An allocator that counts its calls and notes what they asked for. */
struct ledger {
	int allocated;
	int released;
	int refuse; /* if it is not 0, every allocation fails */
	size_t size;
	size_t alignment;
};

static void *ledger_allocate(void *context, size_t size, size_t alignment)
{
	struct ledger *ledger = context;
	void *memory = NULL;

	ledger->size = size;
	ledger->alignment = alignment;
	if (ledger->refuse || posix_memalign(&memory, alignment, size) != 0)
		return NULL;
	ledger->allocated++;
	return memset(memory, 0xa5, size);
}

static void ledger_release(void *context, void *memory, size_t size, size_t alignment)
{
	struct ledger *ledger = context;

	cr_expect_eq(size, ledger->size);
	cr_expect_eq(alignment, ledger->alignment);
	ledger->released++;
	free(memory);
}

static weir_allocator allocator_over(struct ledger *ledger)
{
	return (weir_allocator){ledger_allocate, ledger_release, ledger};
}

Test(memory, the_default_allocator_keeps_every_alignment)
{
	const weir_allocator *allocator = weir_default_allocator();

	cr_assert_not_null(allocator);
	for (size_t alignment = sizeof(void *); alignment <= 4096; alignment *= 2) {
		for (size_t size = 1; size <= 5000; size = size * 3 + 1) {
			unsigned char *memory = allocator->allocate(allocator->context, size, alignment);

			cr_assert_not_null(memory);
			cr_expect_eq((uintptr_t)memory % alignment, 0, "%zu bytes at %zu", size, alignment);
			memset(memory, 0xff, size);
			allocator->release(allocator->context, memory, size, alignment);
		}
	}
}

Test(memory, more_than_the_address_space_is_null)
{
	weir_allocator allocator = weiri_allocator_or_default(NULL);

	/* The allocator itself, which looks for room for more than it was asked for. */
	cr_expect_null(allocator.allocate(allocator.context, SIZE_MAX - 16, 64));
	cr_expect_null(weiri_allocate(&allocator, SIZE_MAX, 64));
	cr_expect_null(weiri_allocate(&allocator, (size_t)PTRDIFF_MAX + 1, 64));
	cr_expect_null(weiri_allocate_zeroed(&allocator, SIZE_MAX - 8, 8));
}

/* An allocator need not handle a size that overflows a difference of pointers. */
Test(memory, no_allocator_is_asked_for_more_than_an_object_can_have)
{
	struct ledger ledger = {0};
	weir_allocator allocator = allocator_over(&ledger);

	cr_expect_null(weiri_allocate(&allocator, (size_t)PTRDIFF_MAX + 1, 16));
	cr_expect_null(weiri_allocate_zeroed(&allocator, SIZE_MAX, 16));
	cr_expect_eq(ledger.size, 0, "the allocator was asked for %zu bytes", ledger.size);
}

Test(memory, nothing_is_null_and_asks_nobody)
{
	struct ledger ledger = {0};
	weir_allocator allocator = allocator_over(&ledger);

	cr_expect_null(weiri_allocate(&allocator, 0, 8));
	cr_expect_null(weiri_allocate_zeroed(&allocator, 0, 8));
	weiri_release(&allocator, NULL, 8, 8);
	cr_expect_eq(ledger.size, 0);
	cr_expect_eq(ledger.released, 0);
}

Test(memory, an_allocator_is_copied_and_null_means_the_default)
{
	struct ledger ledger = {0};
	weir_allocator ours = allocator_over(&ledger);
	weir_allocator copy = weiri_allocator_or_default(&ours);
	weir_allocator standard = weiri_allocator_or_default(NULL);

	cr_expect_eq(copy.context, &ledger);
	cr_expect_eq(copy.allocate, ours.allocate);
	cr_expect_eq(standard.allocate, weir_default_allocator()->allocate);
}

Test(memory, release_repeats_size_and_alignment)
{
	struct ledger ledger = {0};
	weir_allocator allocator = allocator_over(&ledger);
	void *memory = weiri_allocate(&allocator, 100, 64);

	cr_assert_not_null(memory);
	weiri_release(&allocator, memory, 100, 64);
	cr_expect_eq(ledger.allocated, 1);
	cr_expect_eq(ledger.released, 1);
}

Test(memory, a_small_alignment_is_raised_to_a_pointers)
{
	struct ledger ledger = {0};
	weir_allocator allocator = allocator_over(&ledger);
	void *memory = weiri_allocate(&allocator, 3, 1);

	cr_assert_not_null(memory);
	cr_expect_eq(ledger.alignment, sizeof(void *));
	weiri_release(&allocator, memory, 3, 1);
	cr_expect_eq(ledger.released, 1);
}

Test(memory, zeroed_memory_is_zero)
{
	static const unsigned char zero[257];
	struct ledger ledger = {0};
	weir_allocator allocator = allocator_over(&ledger);
	void *memory = weiri_allocate_zeroed(&allocator, sizeof(zero), 16);

	cr_assert_not_null(memory);
	cr_expect_arr_eq(memory, zero, sizeof(zero));
	weiri_release(&allocator, memory, sizeof(zero), 16);
}

Test(memory, a_refusing_allocator_is_null)
{
	struct ledger ledger = {.refuse = 1};
	weir_allocator allocator = allocator_over(&ledger);

	cr_expect_null(weiri_allocate(&allocator, 8, 8));
	cr_expect_null(weiri_allocate_zeroed(&allocator, 8, 8));
}

Test(memory, sizes_that_overflow_are_refused)
{
	size_t result = 42;

	cr_expect(weiri_multiply(6, 7, &result));
	cr_expect_eq(result, 42);
	cr_expect_not(weiri_multiply(SIZE_MAX / 2, 3, &result));
	cr_expect(weiri_add(SIZE_MAX - 1, 1, &result));
	cr_expect_eq(result, SIZE_MAX);
	cr_expect_not(weiri_add(SIZE_MAX, 1, &result));
}
