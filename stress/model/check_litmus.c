/*
 * check_litmus.c - tests the checker: small programs of which it is known which outcomes C11
 * allows.
 *
 * Each program writes what it saw into state.saw. The set of outcomes of all executions must be the
 * set that C11 allows, without the outcomes that the checker does not explore according to model.h
 * (load buffering; 2+2W with both inner stores last). Each program is explored in four ways: with
 * the reduction; without it, which must give the same set; with a bound on preemptions; and at
 * random. The last two must give no additional outcome. Planted faults follow. Each must be
 * reported, and its replay string must lead to it again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/alloc.h>
#include <weir/time.h>

#include "base/asymmetric.h"
#include "base/futex.h"
#include "model/orders.h"
#include "model/scope.h"

static struct state {
	_Atomic(int) x, y, z;
	_Atomic(uint32_t) word, other_word;
	_Atomic(void *) pointer;
	int plain;
	char bytes[4];
	int saw[4];
} state;

static uint64_t met; /* bit i: outcome i was seen in some execution */

/* saw[] as a number of base 4: the first two entries, or all four. */
static void two(void *context)
{
	(void)context;
	met |= UINT64_C(1) << (state.saw[0] * 4 + state.saw[1]);
}

#define CASE(a, b) (UINT64_C(1) << ((a)*4 + (b)))
#define ALL_BITS (CASE(0, 0) | CASE(0, 1) | CASE(1, 0) | CASE(1, 1))

/* -- message passing: x = 1; y = 1  ||  a = y; b = x.  a = 1, b = 0 is the one in question. ---- */

static void message(size_t number, memory_order store, memory_order load, memory_order fence_store,
                    memory_order fence_load)
{
	if (number == 0) {
		STORE(x, 1, RLX);
		if (fence_store != RLX)
			FENCE(fence_store);
		STORE(y, 1, store);
	} else {
		state.saw[0] = LOAD(y, load);
		if (fence_load != RLX)
			FENCE(fence_load);
		state.saw[1] = LOAD(x, RLX);
	}
}

static void mp_relaxed(void *context, size_t number)
{
	(void)context;
	message(number, RLX, RLX, RLX, RLX);
}
static void mp_acquire(void *context, size_t number)
{
	(void)context;
	message(number, REL, ACQ, RLX, RLX);
}
static void mp_release_only(void *context, size_t number)
{
	(void)context;
	message(number, REL, RLX, RLX, RLX);
}
static void mp_fences(void *context, size_t number)
{
	(void)context;
	message(number, RLX, RLX, REL, ACQ);
}
static void mp_one_fence(void *context, size_t number)
{
	(void)context;
	message(number, RLX, RLX, REL, RLX);
}

/* -- store buffering: x = 1; a = y  ||  y = 1; b = x.  a = b = 0 is the one in question. ------- */

enum between { NOTHING, FULL_FENCE, RMW_OF_A_THIRD, LIGHT_FENCE, HEAVY_FENCE };

static void pass(enum between between)
{
	switch (between) {
	case NOTHING: break;
	case FULL_FENCE: FENCE(SC); break;
	case RMW_OF_A_THIRD: (void)ADD(z, 1, SC); break;
	case LIGHT_FENCE: atomic_signal_fence(SC); break;
	default: (void)weiri_fence_heavy(); break;
	}
}

static void buffering(size_t number, memory_order store, memory_order load, enum between first, enum between second)
{
	if (number == 0) {
		STORE(x, 1, store);
		pass(first);
		state.saw[0] = LOAD(y, load);
	} else {
		STORE(y, 1, store);
		pass(second);
		state.saw[1] = LOAD(x, load);
	}
}

static void sb_acquire(void *context, size_t number)
{
	(void)context;
	buffering(number, REL, ACQ, NOTHING, NOTHING);
}
static void sb_seq_cst(void *context, size_t number)
{
	(void)context;
	buffering(number, SC, SC, NOTHING, NOTHING);
}
static void sb_fences(void *context, size_t number)
{
	(void)context;
	buffering(number, RLX, RLX, FULL_FENCE, FULL_FENCE);
}
static void sb_one_fence(void *context, size_t number)
{
	(void)context;
	buffering(number, RLX, RLX, FULL_FENCE, NOTHING);
}
static void sb_rmw(void *context, size_t number)
{
	(void)context;
	buffering(number, RLX, RLX, RMW_OF_A_THIRD, FULL_FENCE);
}
static void sb_membarrier(void *context, size_t number)
{
	(void)context;
	buffering(number, RLX, RLX, LIGHT_FENCE, HEAVY_FENCE);
}
static void sb_light_fences(void *context, size_t number)
{
	(void)context;
	buffering(number, RLX, RLX, LIGHT_FENCE, LIGHT_FENCE);
}
/* A seq_cst store on one side, a relaxed store and a fence on the other. */
static void sb_mixed(void *context, size_t number)
{
	(void)context;
	if (number == 0)
		buffering(number, SC, SC, NOTHING, NOTHING);
	else
		buffering(number, RLX, RLX, NOTHING, FULL_FENCE);
}

/* -- coherence --------------------------------------------------------------------------------- */

/*
 * CoRR: x = 1 || x = 2 || a = x; b = x. The reader never sees a later value and then the initial
 * value.
 */
static void corr(void *context, size_t number)
{
	(void)context;
	if (number < 2) {
		STORE(x, (int)number + 1, RLX);
	} else {
		state.saw[0] = LOAD(x, RLX) != 0;
		state.saw[1] = LOAD(x, RLX) != 0;
	}
}

/* CoWR: x = 1; a = x  ||  x = 2.  a is never 0. */
static void cowr(void *context, size_t number)
{
	(void)context;
	if (number == 0) {
		STORE(x, 1, RLX);
		state.saw[1] = LOAD(x, RLX);
	} else {
		STORE(x, 2, RLX);
	}
}

/* Coherence with two readers: both see the two stores in the same order. */
static void two_readers(void *context, size_t number)
{
	(void)context;
	if (number < 2) {
		STORE(x, (int)number + 1, RLX);
		return;
	}
	int first = LOAD(x, RLX), second = LOAD(x, RLX);

	state.saw[number - 2] = first != 0 && second != 0 && first != second ? first : 0;
}

/* Two additions add up to two. */
static void rmw(void *context, size_t number)
{
	(void)context;
	(void)number;
	(void)ADD(x, 1, RLX);
}
static void sum(void *context)
{
	(void)context;
	state.saw[1] = LOAD(x, RLX);
	two(context);
}

/* One of two compare-and-swaps succeeds. */
static void cas(void *context, size_t number)
{
	int expected = 0;

	(void)context;
	state.saw[number] = atomic_compare_exchange_strong_explicit(&state.x, &expected, (int)number + 1, RLX, RLX);
}

/* A CAS that fails may have read an old value: y = 1 was seen, but x = 1 was not. */
static void stale_failure(void *context, size_t number)
{
	int expected = 7;

	(void)context;
	if (number == 0) {
		STORE(x, 1, RLX);
		STORE(y, 1, RLX);
		return;
	}
	state.saw[0] = LOAD(y, RLX);
	(void)atomic_compare_exchange_strong_explicit(&state.x, &expected, 8, RLX, RLX);
	state.saw[1] = expected;
}

/* -- more than two threads --------------------------------------------------------------------- */

/*
 * IRIW: there are two writers, and two readers that read in opposite orders. Can the readers
 * disagree about which write was first?
 */
static void iriw(size_t number, memory_order store, memory_order load, int fence)
{
	switch (number) {
	case 0: STORE(x, 1, store); break;
	case 1: STORE(y, 1, store); break;
	case 2:
		state.saw[0] = LOAD(x, load);
		pass(fence ? FULL_FENCE : NOTHING);
		state.saw[1] = LOAD(y, load);
		break;
	default:
		state.saw[2] = LOAD(y, load);
		pass(fence ? FULL_FENCE : NOTHING);
		state.saw[3] = LOAD(x, load);
		break;
	}
}

static void iriw_acquire(void *context, size_t number)
{
	(void)context;
	iriw(number, REL, ACQ, 0);
}
static void iriw_seq_cst(void *context, size_t number)
{
	(void)context;
	iriw(number, SC, SC, 0);
}
static void iriw_fences(void *context, size_t number)
{
	(void)context;
	iriw(number, RLX, RLX, 1);
}
static void disagree(void *context)
{
	int apart = state.saw[0] == 1 && state.saw[1] == 0 && state.saw[2] == 1 && state.saw[3] == 0;

	state.saw[0] = 0;
	state.saw[1] = apart;
	two(context);
}

/*
 * WRC: x = 1 || a = x; y = 1 || b = y; c = x. The outcome in question is a = b = 1, c = 0. It is
 * excluded if happens-before passes from thread 1 through thread 2 to thread 3.
 */
static void wrc(size_t number, memory_order store, memory_order load)
{
	switch (number) {
	case 0: STORE(x, 1, RLX); break;
	case 1:
		if (LOAD(x, RLX) == 1)
			STORE(y, 1, store);
		break;
	default:
		state.saw[0] = LOAD(y, load);
		state.saw[1] = LOAD(x, RLX);
		break;
	}
}

static void wrc_relaxed(void *context, size_t number)
{
	(void)context;
	wrc(number, RLX, RLX);
}
static void wrc_acquire(void *context, size_t number)
{
	(void)context;
	wrc(number, REL, ACQ);
}

/*
 * 2+2W: x = 1; y = 2  ||  y = 1; x = 2.  The final values x = 1, y = 1 are allowed by C11; the
 * checker does not explore this outcome.
 */
static void two_two_w(void *context, size_t number)
{
	(void)context;
	if (number == 0) {
		STORE(x, 1, RLX);
		STORE(y, 2, RLX);
	} else {
		STORE(y, 1, RLX);
		STORE(x, 2, RLX);
	}
}
static void last_values(void *context)
{
	(void)context;
	state.saw[0] = LOAD(x, RLX);
	state.saw[1] = LOAD(y, RLX);
	two(context);
}

/* -- plain data -------------------------------------------------------------------------------- */

static void flag(size_t number, memory_order store, memory_order load)
{
	if (number == 0) {
		state.plain = 1;
		STORE(x, 1, store);
	} else if (LOAD(x, load) == 1) {
		state.saw[1] = state.plain;
	}
}

static void relaxed_flag(void *context, size_t number)
{
	(void)context;
	flag(number, RLX, RLX);
}
static void acquire_flag(void *context, size_t number)
{
	(void)context;
	flag(number, REL, ACQ);
}
/* Two fences alone order nothing: a load must read the store. */
static void fences_alone(void *context, size_t number)
{
	(void)context;
	if (number == 0)
		state.plain = 1;
	FENCE(SC);
	if (number == 1)
		state.saw[1] = state.plain;
}

/* A relaxed RMW continues a release sequence; a relaxed store by another thread ends it. */
static void release_sequence(size_t number, int by_rmw)
{
	if (number == 0) {
		state.plain = 1;
		STORE(x, 1, REL);
	} else if (number == 1 && by_rmw) {
		(void)ADD(x, 1, RLX);
	} else if (number == 1) {
		if (LOAD(x, RLX) == 1)
			STORE(x, 2, RLX);
	} else if (LOAD(x, ACQ) == 2) {
		/*
		 * The value 1 is the sum of 0 and the other thread's own addition. The value 2 continues
		 * the release sequence.
		 */
		state.saw[1] = state.plain;
	}
}

static void rmw_continues(void *context, size_t number)
{
	(void)context;
	release_sequence(number, 1);
}
static void store_ends(void *context, size_t number)
{
	(void)context;
	release_sequence(number, 0);
}
/*
 * The head of the sequence is a fence and a relaxed store. Its reader is a relaxed load and a
 * fence.
 */
static void fence_heads(void *context, size_t number)
{
	(void)context;
	if (number == 0) {
		state.plain = 1;
		FENCE(REL);
		STORE(x, 1, RLX);
	} else if (number == 1) {
		(void)ADD(x, 1, RLX);
	} else if (LOAD(x, RLX) == 2) {
		FENCE(ACQ);
		state.saw[1] = state.plain;
	}
}

/* -- a signal handler: where it may come, and what it and others see ---------------------------- */

static void look_from_a_handler(void)
{
	state.saw[0] = 1 + LOAD(x, RLX);
	state.saw[1] = 1 + LOAD(y, RLX);
}

/* It sees what the thread did before, all of it and no more. It may not come. */
static void handler_sees(void *context, size_t number)
{
	(void)context, (void)number;
	STORE(z, 1, RLX);
	weir_model_interrupt(look_from_a_handler);
	STORE(x, 1, RLX);
	STORE(y, 1, RLX);
	FENCE(SC);
	weir_model_interrupt(NULL);
	STORE(y, 2, RLX);
}

static void store_from_a_handler(void)
{
	STORE(x, 2, RLX);
}

/* A release of the thread has what the handler stored before it. */
static void handler_stores(void *context, size_t number)
{
	(void)context;
	if (number == 0) {
		STORE(x, 1, RLX);
		weir_model_interrupt(store_from_a_handler);
		STORE(y, 1, REL);
		STORE(z, 1, RLX);
		weir_model_interrupt(NULL);
	} else {
		state.saw[0] = LOAD(y, ACQ);
		state.saw[1] = LOAD(x, RLX);
	}
}

static const struct litmus {
	const char *name;
	size_t threads;
	void (*thread)(void *, size_t);
	void (*finish)(void *);
	uint64_t allowed; /* outcomes that must all occur, and no others */
} tests[] = {
	{"mp_relaxed", 2, mp_relaxed, two, ALL_BITS},
	{"mp_release_acquire", 2, mp_acquire, two, ALL_BITS ^ CASE(1, 0)},
	{"mp_release_relaxed", 2, mp_release_only, two, ALL_BITS},
	{"mp_fences", 2, mp_fences, two, ALL_BITS ^ CASE(1, 0)},
	{"mp_fence_on_one_side", 2, mp_one_fence, two, ALL_BITS},
	{"sb_release_acquire", 2, sb_acquire, two, ALL_BITS},
	{"sb_seq_cst", 2, sb_seq_cst, two, ALL_BITS ^ CASE(0, 0)},
	{"sb_fences", 2, sb_fences, two, ALL_BITS ^ CASE(0, 0)},
	{"sb_fence_on_one_side", 2, sb_one_fence, two, ALL_BITS},
	{"sb_seq_cst_rmw_elsewhere_is_no_fence", 2, sb_rmw, two, ALL_BITS},
	{"sb_seq_cst_accesses_against_a_fence", 2, sb_mixed, two, ALL_BITS ^ CASE(0, 0)},
	{"sb_compiler_barrier_against_membarrier", 2, sb_membarrier, two, ALL_BITS ^ CASE(0, 0)},
	{"sb_compiler_barriers", 2, sb_light_fences, two, ALL_BITS},
	{"corr", 3, corr, two, ALL_BITS ^ CASE(1, 0)},
	{"cowr", 2, cowr, two, CASE(0, 1) | CASE(0, 2)},
	{"readers_agree_on_the_order_of_stores", 4, two_readers, two,
     CASE(0, 0) | CASE(0, 1) | CASE(0, 2) | CASE(1, 0) | CASE(1, 1) | CASE(2, 0) | CASE(2, 2)},
	{"rmw_is_atomic", 3, rmw, sum, CASE(0, 3)},
	{"one_cas_wins", 2, cas, two, CASE(0, 1) | CASE(1, 0)},
	{"a_failed_cas_may_read_an_old_value", 2, stale_failure, two, ALL_BITS},
	{"iriw_release_acquire", 4, iriw_acquire, disagree, CASE(0, 0) | CASE(0, 1)},
	{"iriw_seq_cst", 4, iriw_seq_cst, disagree, CASE(0, 0)},
	{"iriw_fences", 4, iriw_fences, disagree, CASE(0, 0)},
	{"wrc_relaxed", 3, wrc_relaxed, two, ALL_BITS},
	{"wrc_release_acquire", 3, wrc_acquire, two, ALL_BITS ^ CASE(1, 0)},
	{"2_2w_less_the_unexplored_outcome", 2, two_two_w, last_values, CASE(1, 2) | CASE(2, 1) | CASE(2, 2)},
	{"plain_data_behind_an_acquire_flag", 2, acquire_flag, two, CASE(0, 0) | CASE(0, 1)},
	{"a_relaxed_rmw_continues_a_release_sequence", 3, rmw_continues, two, CASE(0, 0) | CASE(0, 1)},
	{"a_fence_heads_a_release_sequence", 3, fence_heads, two, CASE(0, 0) | CASE(0, 1)},
	{"a_handler_sees_what_came_before", 1, handler_sees, two, CASE(0, 0) | CASE(1, 1) | CASE(2, 1) | CASE(2, 2)},
	{"a_release_has_what_a_handler_stored", 2, handler_stores, two,
     CASE(0, 0) | CASE(0, 1) | CASE(0, 2) | CASE(1, 1) | CASE(1, 2)},
};

/* -- planted faults ---------------------------------------------------------------------------- */

/* The waker looks for the sleeper before it changes the word. */
static void lost_wake_up(void *context, size_t number)
{
	(void)context;
	if (number == 0) {
		STORE(x, 1, SC);
		if (LOAD(word, SC) == 0)
			(void)weiri_futex_wait(&state.word, 0, WEIR_NO_DEADLINE);
	} else {
		int sleeper = LOAD(x, SC);

		STORE(word, 1, SC);
		if (sleeper)
			weiri_futex_wake(&state.word, 1);
	}
}

/* Two locks are taken in two orders. */
static void deadlock(void *context, size_t number)
{
	_Atomic(uint32_t) *const locks[] = {&state.word, &state.other_word};

	(void)context;
	for (int i = 0; i < 2; i++) {
		_Atomic(uint32_t) *lock = locks[number == 0 ? i : 1 - i];

		while (atomic_exchange_explicit(lock, 1, ACQ) != 0)
			(void)weiri_futex_wait(lock, 1, WEIR_NO_DEADLINE);
	}
	for (int i = 0; i < 2; i++) {
		atomic_store_explicit(locks[i], 0, REL);
		weiri_futex_wake(locks[i], 1);
	}
}

static void make(void *context)
{
	(void)context;
	STORE(pointer, weir_model_allocate(16, 16), RLX);
	*(int *)LOAD(pointer, RLX) = 1;
}
static void use_after_free(void *context, size_t number)
{
	int *object;

	(void)context;
	if (number == 0) {
		object = LOAD(pointer, ACQ);
		state.saw[0] = *object;
		STORE(x, 1, RLX); /* should release */
	} else if (LOAD(x, ACQ) == 1) {
		weir_model_release((void *)(uintptr_t)LOAD(pointer, ACQ));
	}
}
static void use_freed(void *context, size_t number)
{
	(void)context;
	if (number == 0)
		weir_model_release((void *)(uintptr_t)LOAD(pointer, ACQ));
	else
		state.saw[0] = atomic_load_explicit((_Atomic(int) *)(void *)LOAD(pointer, ACQ), RLX);
}
static void double_free(void *context, size_t number)
{
	(void)context;
	(void)number;
	if (LOAD(x, SC) == 0) {
		STORE(x, 1, SC);
		weir_model_release((void *)(uintptr_t)LOAD(pointer, ACQ));
	}
}
static void leak(void *context, size_t number)
{
	(void)context;
	/* The second thread forgets what the first one allocated. */
	STORE(pointer, weir_model_allocate(8 + number, 8), RLX);
}
static void free_last(void *context)
{
	(void)context;
	weir_model_release((void *)(uintptr_t)LOAD(pointer, RLX));
}
static void free_nothing(void *context)
{
	(void)context;
}
static void livelock(void *context, size_t number)
{
	(void)context;
	if (number == 0)
		STORE(x, 1, RLX);
	else
		while (LOAD(y, RLX) == 0) {
		}
}
static void assertion(void *context, size_t number)
{
	mp_relaxed(context, number);
	if (number == 1)
		weir_model_assert(state.saw[0] == 0 || state.saw[1] == 1);
}

/*
 * Both threads write one byte of the word, which is a race. Each thread then writes another byte of
 * the word, which only this thread accesses. The second write must not hide the race.
 */
static void shared_byte(void *context, size_t number)
{
	(void)context;
	state.bytes[0] = 1;
	state.bytes[1 + number] = 1;
}

/*
 * Both threads use one variable for the expected value of their exchanges. An exchange that fails
 * writes the value found to that variable, and races with the other exchange, which reads it.
 */
static void shared_expectation(void *context, size_t number)
{
	(void)context;
	(void)atomic_compare_exchange_strong_explicit(&state.x, &state.plain, 1 + (int)number, RLX, RLX);
}

/*
 * Only a switch between the last two of 70 steps reveals the fault, so changes of priority must
 * also occur that late.
 */
static void late_step(void *context, size_t number)
{
	(void)context;
	for (int i = 0; number == 0 && i < 68; i++)
		STORE(y, i, RLX);
	if (number == 0) {
		(void)atomic_fetch_add_explicit(&state.x, 1, memory_order_relaxed);
		(void)atomic_fetch_add_explicit(&state.x, 1, memory_order_relaxed);
	} else {
		weir_model_assert(atomic_fetch_add_explicit(&state.x, 0, memory_order_relaxed) != 1);
	}
}

/*
 * The second thread reads late what the first one writes, so at first the location seems to belong
 * to the first thread alone.
 */
static void looked_at_late(void *context, size_t number)
{
	(void)context;
	if (number == 0) {
		STORE(x, 1, RLX);
		STORE(y, 1, RLX);
		STORE(x, 2, RLX);
	} else {
		state.saw[0] = LOAD(y, SC);
		state.saw[1] = LOAD(x, SC);
		weir_model_assert(state.saw[0] != 1 || state.saw[1] != 1);
	}
}

static void load_before_the_fence(void)
{
	state.saw[0] = LOAD(y, RLX);
}

/* Store buffering, but for a handler that loads between the first thread's store and its fence. */
static void handler_is_buffered(void *context, size_t number)
{
	(void)context;
	if (number == 0) {
		STORE(x, 1, RLX);
		weir_model_interrupt(load_before_the_fence);
		FENCE(SC);
		weir_model_interrupt(NULL);
	} else {
		STORE(y, 1, RLX);
		FENCE(SC);
		state.saw[1] = LOAD(x, RLX);
	}
}

static void nothing_seen_yet(void *context)
{
	(void)context;
	state.saw[0] = 1;
}

static void one_saw_the_other(void *context)
{
	(void)context;
	weir_model_assert(state.saw[0] == 1 || state.saw[1] == 1);
}

static void release_less(void *context, size_t number)
{
	const weir_allocator *allocator = weir_default_allocator();
	void *memory = allocator->allocate(allocator->context, 64, 16);

	(void)context, (void)number;
	allocator->release(allocator->context, memory, 32, 16);
}

static const struct fault {
	const char *name;
	size_t threads;
	void (*setup)(void *);
	void (*thread)(void *, size_t);
	void (*finish)(void *);
	const char *message;
} faults[] = {
	{"plain_data_behind_a_relaxed_flag", 2, NULL, relaxed_flag, NULL, "data race"},
	{"plain_data_around_two_fences", 2, NULL, fences_alone, NULL, "data race"},
	{"a_store_that_ends_a_release_sequence", 3, NULL, store_ends, NULL, "data race"},
	{"a_byte_that_both_write_of_a_word", 2, NULL, shared_byte, NULL, "data race"},
	{"what_a_cas_expects_is_shared", 2, NULL, shared_expectation, NULL, "data race"},
	{"lost_wake_up", 2, NULL, lost_wake_up, NULL, "all threads sleep"},
	{"deadlock", 2, NULL, deadlock, NULL, "all threads sleep"},
	{"free_beside_an_unordered_use", 2, make, use_after_free, NULL, "data race"},
	{"use_after_free", 2, make, use_freed, NULL, "was freed"},
	{"double_free", 2, make, double_free, NULL, "double free"},
	{"release_of_less_than_was_allocated", 1, NULL, release_less, NULL, "is released as"},
	{"leak", 2, NULL, leak, free_last, "leak"},
	{"livelock", 2, NULL, livelock, NULL, "no end after"},
	{"assertion_that_a_stale_load_breaks", 2, NULL, assertion, NULL, "assertion failed"},
	{"assertion_that_a_late_step_breaks", 2, NULL, late_step, NULL, "assertion failed"},
	{"assertion_on_what_is_looked_at_late", 2, NULL, looked_at_late, NULL, "assertion failed"},
	{"assertion_that_a_handler_breaks", 2, nothing_seen_yet, handler_is_buffered, one_saw_the_other,
     "assertion failed"},
};

/* -- running them ------------------------------------------------------------------------------ */

static uint64_t meet(const struct litmus *test, const struct weir_model_options *options,
                     struct weir_model_result *result)
{
	struct weir_model_program program = {test->name, test->threads, &state,      sizeof(state),
	                                     NULL,       test->thread,  test->finish};

	met = 0;
	memset(&state, 0, sizeof(state));
	(void)weir_model_check(&program, options, result);
	free(result->replay);
	return met;
}

static int check_litmus(const struct litmus *test)
{
	struct weir_model_result reduced, all, bounded, random, merged;
	uint64_t with = meet(test, NULL, &reduced);
	uint64_t without = meet(test, &(struct weir_model_options){.no_reduction = 1}, &all);
	uint64_t one_preemption = meet(test, &(struct weir_model_options){.preemptions = 2}, &bounded);
	uint64_t tried = meet(test, &(struct weir_model_options){.random_seed = 1, .max_executions = 2000}, &random);
	uint64_t by_states = meet(test, &(struct weir_model_options){.merge_states = 1}, &merged);
	int right = !reduced.failed && !all.failed && !bounded.failed && !random.failed && reduced.complete && all.complete;

	right = right && !merged.failed && merged.complete && by_states == test->allowed;
	right = right && with == test->allowed && without == test->allowed;
	right = right && (one_preemption & ~test->allowed) == 0 && tried != 0 && (tried & ~test->allowed) == 0;
	(void)printf(
		"%s litmus_%s: %llu executions, %llu pruned; without reduction %llu; with one preemption %llu; by %llu states "
		"%llu; outcomes %llx, %llx, %llx, %llx, at random %llx%s\n",
		right ? "PASS" : "FAIL", test->name, (unsigned long long)reduced.executions, (unsigned long long)reduced.pruned,
		(unsigned long long)all.executions, (unsigned long long)bounded.executions, (unsigned long long)merged.states,
		(unsigned long long)merged.executions, (unsigned long long)with, (unsigned long long)without,
		(unsigned long long)one_preemption, (unsigned long long)by_states, (unsigned long long)tried, reduced.message);
	return !right;
}

static int check_fault(const struct fault *fault)
{
	struct weir_model_program program = {fault->name,  fault->threads, &state,       sizeof(state),
	                                     fault->setup, fault->thread,  fault->finish};

	memset(&state, 0, sizeof(state));
	return scope_finds(&program, fault->message);
}

static struct weir_model_result try_fault(const struct fault *fault, struct weir_model_options options)
{
	struct weir_model_program program = {fault->name,  fault->threads, &state,       sizeof(state),
	                                     fault->setup, fault->thread,  fault->finish};
	struct weir_model_result result;

	memset(&state, 0, sizeof(state));
	options.max_steps = 100;
	(void)weir_model_check(&program, &options, &result);
	/* The replay string that it printed leads there again. */
	if (options.merge_states && options.replay == NULL && result.failed) {
		struct weir_model_result again;

		options.replay = result.replay;
		(void)weir_model_check(&program, &options, &again);
		if (!again.failed || strcmp(again.message, result.message) != 0)
			(void)snprintf(result.message, sizeof(result.message), "a replay that ends otherwise: %.200s",
			               again.message);
		free(again.replay);
	}
	free(result.replay);
	return result;
}

/*
 * The same seed tries the same executions, and finds the fault in the same one. Another seed finds
 * it in another execution, or in the first.
 */
static int check_random(const struct fault *fault)
{
	struct weir_model_options options = {.random_seed = 7, .max_executions = 10000};
	struct weir_model_result one = try_fault(fault, options), two = try_fault(fault, options);
	int right = one.failed && strstr(one.message, fault->message) != NULL && one.executions == two.executions;

	(void)printf("%s %s_is_found_at_random: execution %llu of seed 7, again %llu\n", right ? "PASS" : "FAIL",
	             fault->name, (unsigned long long)one.executions, (unsigned long long)two.executions);
	return !right;
}

/* Checks all faults except the livelock, which returns to a state that was reached before. */
static int check_merged(const struct fault *fault)
{
	struct weir_model_result result = try_fault(fault, (struct weir_model_options){.merge_states = 1});
	int endless = fault->thread == livelock;
	int right =
		endless ? !result.failed && result.complete : result.failed && strstr(result.message, fault->message) != NULL;

	(void)printf("%s %s_is_%sfound_with_states_merged: %llu states, %llu executions %s\n", right ? "PASS" : "FAIL",
	             fault->name, endless ? "not_" : "", (unsigned long long)result.states,
	             (unsigned long long)result.executions, result.message);
	return !right;
}

/*
 * To find the fault, both threads must read before one of them marks, which takes one preemption.
 */
static int check_preemptions(void)
{
	static const struct fault fault = {"double_free", 2, make, double_free, free_nothing, "double free"};
	struct weir_model_result none = try_fault(&fault, (struct weir_model_options){.preemptions = 1});
	struct weir_model_result one = try_fault(&fault, (struct weir_model_options){.preemptions = 2});
	int right = !none.failed && none.complete && one.failed;

	(void)printf("%s a_fault_that_takes_1_preemption: %s with none, %s with one\n", right ? "PASS" : "FAIL",
	             none.failed ? none.message : "not found", one.failed ? "found" : "not found");
	return !right;
}

/* The rate is printed, not required: the machine may be busy. */
static int measure(const struct litmus *test)
{
	struct weir_model_program program = {test->name, test->threads, &state, sizeof(state), NULL, test->thread, NULL};

	memset(&state, 0, sizeof(state));
	return scope_random(&program, 500000);
}

int main(int argc, char **argv)
{
	int bad = 0;

	scope_arguments(argc, argv);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		bad |= scope_chosen(tests[i].name) && check_litmus(&tests[i]);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		bad |= check_fault(&faults[i]) |
		       (scope_chosen(faults[i].name) && (check_random(&faults[i]) | check_merged(&faults[i])));
	bad |= scope_chosen("a_fault_that_takes_1_preemption") && check_preemptions();
	return bad | measure(&tests[1]) | measure(&tests[7]);
}
