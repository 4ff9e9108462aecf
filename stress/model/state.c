/*
 * state.c - represents the state of an execution as a number, and keeps the set of states that were
 * reached.
 *
 * With weir_model_options.merge_states an execution ends where it reaches a state that another
 * execution has reached, because what can follow is explored from that other execution. The state
 * consists of what memory, views, heap and system hold (memory_state.c, heap.c, system.c). It
 * leaves out what no thread can notice any longer. It also leaves out what, according to the
 * executions so far, no thread looks at. The state contains the stack of each thread down to the
 * frame that called the checker, with the registers that the compiler saved there. The hash of a
 * stack is computed again if another thread writes to the stack. A stack also contains dead values.
 * States that are equal otherwise may differ in these, which only costs time. To reduce this, the
 * checker wipes the memory below the frame before it returns.
 *
 * check_state.c shows that each part is needed, by leaving out one part at a time.
 *
 * Hashes of 64 bits are compared. The probability that two of n states share a hash is about n^2 /
 * 2^64 (5 in a million for ten million states). In that case the executions that continue from one
 * of the two states are left out.
 */
#include <stdlib.h>
#include <string.h>

#include "model/engine.h"

/* BELOW: what the checker's own frames use of a stack */
enum { FIRST_ROOM = 1 << 16, BELOW = 1536 };

unsigned state_left_out;

static uint64_t *been; /* by hash; 0: none */
static size_t room, count;

void state_begin(void)
{
	free(been);
	been = NULL;
	room = count = 0;
}

uint64_t state_count(void)
{
	return count;
}

/* Returns the place where the state is, or belongs. */
static uint64_t *place_of(uint64_t state)
{
	size_t at = (size_t)(state >> 7) & (room - 1);

	while (been[at] != 0 && been[at] != state)
		at = (at + 1) & (room - 1);
	return &been[at];
}

static void grow(void)
{
	uint64_t *before = been;
	size_t room_before = room;

	room = room != 0 ? 2 * room : FIRST_ROOM;
	been = calloc(room, sizeof(been[0]));
	if (been == NULL)
		abort();
	for (size_t i = 0; i < room_before; i++) {
		if (before[i] != 0)
			*place_of(before[i]) = before[i];
	}
	free(before);
}

/* -- stacks ------------------------------------------------------------------------------------ */

void state_enter(const char *stack, uint64_t given)
{
	struct thread *me = &model_threads[model_thread];

	me->stack = stack;
	me->given = given;
	me->where = 0;
}

__attribute__((noinline)) void state_leave(void)
{
	char below[BELOW];

	if (!model_options.merge_states)
		return;
	memset(below, 0, sizeof(below));
	__asm__ volatile("" : : "r"(below) : "memory");
}

/* In a call without STATE_ENTER() the thread's position would be unknown. */
void state_check_entered(void)
{
	if (model_options.merge_states && model_threads[model_thread].where != 0)
		model_fail("an operation whose caller's stack is not known");
}

/* Called when another thread has written to a thread's stack. */
void state_forgets(const char *address)
{
	int owner;

	if (!model_running || !model_options.merge_states)
		return;
	owner = fiber_of(address);
	if (owner > 0 && (unsigned)owner != model_thread)
		model_threads[owner].where = 0;
}

/*
 * Hashes the words from `at` on, two at a time, because stacks are most of what is hashed. The
 * method is that of wyhash.
 */
static uint64_t number_of(const char *at, const char *end)
{
	uint64_t number = (uint64_t)(end - at);

	for (; at < end; at += 2 * sizeof(uint64_t)) {
		uint64_t word[2] = {0, 0};
		unsigned __int128 product;

		memcpy(word, at, (size_t)(end - at) < sizeof(word) ? sizeof(word[0]) : sizeof(word));
		product = (unsigned __int128)(number ^ word[0] ^ UINT64_C(0xA0761D6478BD642F)) *
		          (word[1] ^ UINT64_C(0xE7037ED1A0B428DB));
		number = (uint64_t)product ^ (uint64_t)(product >> 64);
	}
	return number;
}

static uint64_t where_is(unsigned thread)
{
	struct thread *at = &model_threads[thread];

	if (at->where != 0)
		return at->where;
	at->where = state_mix(4, state_part(STATE_OPERATIONS, at->given));
	at->where = state_mix(at->where, state_part(STATE_STACKS, number_of(at->stack, fiber_stack_end(thread))));
	return at->where |= 1;
}

/* -- the state --------------------------------------------------------------------------------- */

static uint64_t state_of_thread(unsigned thread)
{
	const struct thread *at = &model_threads[thread];
	uint64_t state = state_mix(5, thread);

	if (at->status == ENDED)
		return state;
	state = state_mix(state, where_is(thread));
	state = state_mix(state, state_part(STATE_OPERATIONS, (uintptr_t)at->next.address));
	state = state_mix(state, state_part(STATE_OPERATIONS, (uint64_t)at->next.kind << 16 |
	                                                          (uint64_t)at->next.order << 8 | at->next.failure));
	state = state_mix(
		state, state_part(STATE_SLEEP, (uint64_t)at->status << 2 | (uint64_t)at->timed << 1 | (uint64_t)at->woken));
	if (at->status == BLOCKED)
		state = state_mix(state, state_part(STATE_SLEEP, (uintptr_t)at->waits_for));
	if (model_options.alike != 0)
		state = state_mix(state, at->done != 0);
	if (at->handler != NULL)
		state = state_mix(state, state_part(STATE_OPERATIONS, (uintptr_t)at->handler));
	if (thread == model_options.stop_thread && at->done < model_options.stop_after)
		state = state_mix(state, model_options.stop_after - at->done);
	return state_mix(state, state_part(STATE_SYSTEM, system_state(thread)));
}

int state_is_new(void)
{
	uint64_t state = memory_state(), *place;

	state += state_part(STATE_HEAP, heap_state()) + state_part(STATE_SYSTEM, system_state(0));
	state += state_part(STATE_ANSWERS, answers_state());
	for (unsigned t = 1; t <= model_program->threads; t++)
		state += state_of_thread(t);
	state |= 1;
	if (2 * count >= room)
		grow();
	place = place_of(state);
	if (*place == state)
		return 0;
	*place = state;
	count++;
	return 1;
}
