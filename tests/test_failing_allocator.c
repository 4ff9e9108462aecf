/*
 * test_failing_allocator.c - the allocator of the other tests finds each fault that it claims to
 * find.
 */
#include <criterion/criterion.h>

#include <weir/alloc.h>

#include "failing_allocator.h"

static size_t asked(struct failing_allocator *state)
{
	return weiri_load_relaxed(&state->asked);
}

Test(failing_allocator, a_sound_user_is_balanced)
{
	struct failing_allocator state = {0};
	weir_allocator allocator = failing_allocator_hooks(&state);

	for (size_t alignment = sizeof(void *); alignment <= 4096; alignment *= 2) {
		unsigned char *memory = allocator.allocate(allocator.context, 100, alignment);

		cr_assert_not_null(memory);
		cr_expect_eq((uintptr_t)memory % alignment, 0);
		cr_expect_eq(memory[0], 0xa5);
		cr_expect_eq(memory[99], 0xa5);
		cr_expect_str_eq(failing_allocator_verdict(&state), "a block was not released");
		allocator.release(allocator.context, memory, 100, alignment);
	}
	cr_expect_str_eq(failing_allocator_verdict(&state), "balanced");
}

Test(failing_allocator, only_the_chosen_allocations_fail)
{
	struct failing_allocator state = {.fail_at = 3, .fail_count = 2};
	weir_allocator allocator = failing_allocator_hooks(&state);

	for (int i = 1; i <= 6; i++) {
		void *memory = allocator.allocate(allocator.context, 8, 8);

		cr_expect_eq(memory == NULL, i == 3 || i == 4, "allocation %d", i);
		if (memory != NULL)
			allocator.release(allocator.context, memory, 8, 8);
	}
	cr_expect_eq(asked(&state), 6);
	cr_expect_eq(weiri_load_relaxed(&state.refused), 2);
	cr_expect_str_eq(failing_allocator_verdict(&state), "balanced");
}

Test(failing_allocator, a_leak_is_found)
{
	struct failing_allocator state = {0};
	void *memory = failing_allocate(&state, 8, 8);

	cr_assert_not_null(memory);
	cr_expect_str_eq(failing_allocator_verdict(&state), "a block was not released");
	cr_expect_eq(weiri_load_relaxed(&state.bytes), 8);
	failing_release(&state, memory, 8, 8);
}

Test(failing_allocator, another_size_is_found)
{
	struct failing_allocator state = {0};

	failing_release(&state, failing_allocate(&state, 16, 8), 8, 8);
	cr_expect_str_eq(failing_allocator_verdict(&state), "a block was released with another size");
}

Test(failing_allocator, another_alignment_is_found)
{
	struct failing_allocator state = {0};

	failing_release(&state, failing_allocate(&state, 64, 64), 64, 32);
	cr_expect_str_eq(failing_allocator_verdict(&state), "a block was released with another alignment");
}

Test(failing_allocator, another_allocator_is_found)
{
	struct failing_allocator one = {0};
	struct failing_allocator other = {0};

	failing_release(&other, failing_allocate(&one, 64, 64), 64, 64);
	cr_expect_str_eq(failing_allocator_verdict(&other), "a block was released to another allocator");
}

/*
 * The block is forged, because a sanitizer would stop a real second release before the allocator
 * sees it.
 */
Test(failing_allocator, a_second_release_is_found)
{
	struct failing_allocator state = {0};
	struct {
		struct failing_block block;
		char memory[64];
	} dead = {.block = {&state, sizeof(dead.memory), 8, FAILING_BLOCK_DEAD}};

	failing_release(&state, dead.memory, sizeof(dead.memory), 8);
	cr_expect_str_eq(failing_allocator_verdict(&state), "a block was released twice");
}

Test(failing_allocator, a_write_past_the_end_is_found)
{
	struct failing_allocator state = {0};
	char *memory = failing_allocate(&state, 13, 8);

	cr_assert_not_null(memory);
	/* This is a guard of the allocator, which no sanitizer sees. */
	memory[13] = 0;
	failing_release(&state, memory, 13, 8);
	cr_expect_str_eq(failing_allocator_verdict(&state), "a block was written past its end");
}

Test(failing_allocator, impossible_requests_are_found)
{
	struct failing_allocator none = {0};
	struct failing_allocator odd = {0};
	struct failing_allocator null = {0};

	failing_release(&none, failing_allocate(&none, 0, 8), 0, 8);
	cr_expect_str_eq(failing_allocator_verdict(&none), "an allocation of no bytes");
	cr_expect_null(failing_allocate(&odd, 8, 24));
	cr_expect_str_eq(failing_allocator_verdict(&odd), "an allocation with an impossible alignment");
	failing_release(&null, NULL, 8, 8);
	cr_expect_str_eq(failing_allocator_verdict(&null), "NULL was released");
}

static enum weir_status three_blocks(const weir_allocator *allocator, void *context)
{
	void *blocks[3] = {NULL, NULL, NULL};
	enum weir_status status = WEIR_OK;

	for (int i = 0; i < 3 && status == WEIR_OK; i++) {
		blocks[i] = allocator->allocate(allocator->context, 32, 16);
		if (blocks[i] == NULL)
			status = WEIR_RESOURCE_EXHAUSTED;
	}
	for (int i = 0; i < 3; i++)
		if (blocks[i] != NULL)
			allocator->release(allocator->context, blocks[i], 32, 16);
	++*(int *)context;
	return status;
}

Test(failing_allocator, each_allocation_fails_in_turn)
{
	int runs = 0;

	cr_expect_eq(fail_each_allocation(three_blocks, &runs), 3);
	cr_expect_eq(runs, 4);
}
