/*
 * entry.c - the calls that -fsanitize=thread inserts, implemented by the checker.
 *
 * The names and orders are those of the sanitizer's public interface for atomics.
 */
#include <string.h>

#include "model/engine.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

void __tsan_init(void)
{
}
void __tsan_func_entry(void *caller)
{
	(void)caller;
}
void __tsan_func_exit(void)
{
}

#define PLAIN(size) \
	void __tsan_read##size(void *address) \
	{ \
		memory_plain(address, size, 0); \
	} \
	void __tsan_write##size(void *address) \
	{ \
		memory_plain(address, size, 1); \
	} \
	void __tsan_unaligned_read##size(void *address) \
	{ \
		memory_plain(address, size, 0); \
	} \
	void __tsan_unaligned_write##size(void *address) \
	{ \
		memory_plain(address, size, 1); \
	}
PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)

void __tsan_read_range(void *address, unsigned long size)
{
	memory_plain(address, size, 0);
}
void __tsan_write_range(void *address, unsigned long size)
{
	memory_plain(address, size, 1);
}
void __tsan_vptr_update(void **address, void *value)
{
	(void)value;
	memory_plain(address, sizeof(void *), 1);
}

static value_t add(value_t a, value_t b)
{
	return a + b;
}
static value_t sub(value_t a, value_t b)
{
	return a - b;
}
static value_t and (value_t a, value_t b)
{
	return a & b;
}
static value_t or (value_t a, value_t b)
{
	return a | b;
}
static value_t xor (value_t a, value_t b) { return a ^ b; } static value_t nand(value_t a, value_t b)
{
	return ~(a & b);
}
static value_t replace(value_t a, value_t b)
{
	(void)a;
	return b;
}

/* The arguments of an access of this many bits: an operand, and a second one. */
static uint64_t given(uint64_t bits, value_t operand, value_t other)
{
	uint64_t state = state_mix(state_mix(bits, (uint64_t)operand), (uint64_t)(operand >> 64));

	return state_mix(state_mix(state, (uint64_t)other), (uint64_t)(other >> 64));
}

/*
 * Records the plain access by which a compare-and-swap reads the expected value or writes the value
 * found. On the thread's own stack, where it mostly is, nothing is recorded.
 */
static void look_at_expected(const void *expected, size_t size, int is_write)
{
	if (fiber_of(expected) != (int)model_thread)
		memory_plain(expected, size, is_write);
}

#define UPDATE(bits, type, name, function) \
	type __tsan_atomic##bits##_##name(type *address, type operand, int order) \
	{ \
		type old; \
		STATE_ENTER(given(bits, operand, (uintptr_t)(function))); \
		old = (type)memory_update(address, bits / 8, function, operand, (enum order)order); \
		state_leave(); \
		return old; \
	}
#define ATOMIC(bits, type) \
	type __tsan_atomic##bits##_load(const type *address, int order) \
	{ \
		type old; \
		STATE_ENTER(bits); \
		old = (type)memory_load((void *)(uintptr_t)address, bits / 8, (enum order)order); \
		state_leave(); \
		return old; \
	} \
	void __tsan_atomic##bits##_store(type *address, type value, int order) \
	{ \
		STATE_ENTER(given(bits, value, 0)); \
		memory_store(address, bits / 8, value, (enum order)order); \
		state_leave(); \
	} \
	int __tsan_atomic##bits##_compare_exchange_strong(type *address, type *expected, type desired, int success, \
	                                                  int failure) \
	{ \
		value_t old; \
		int done; \
		look_at_expected(expected, bits / 8, 0); \
		STATE_ENTER(state_mix(given(bits, desired, *expected), (uintptr_t)expected)); \
		done = memory_cas(address, bits / 8, *expected, desired, (enum order)success, (enum order)failure, &old); \
		if (!done) \
			look_at_expected(expected, bits / 8, 1); \
		*expected = (type)old; \
		state_leave(); \
		return done; \
	} \
	int __tsan_atomic##bits##_compare_exchange_weak(type *address, type *expected, type desired, int success, \
	                                                int failure) \
	{ \
		return __tsan_atomic##bits##_compare_exchange_strong(address, expected, desired, success, failure); \
	} \
	type __tsan_atomic##bits##_compare_exchange_val(type *address, type expected, type desired, int success, \
	                                                int failure) \
	{ \
		(void)__tsan_atomic##bits##_compare_exchange_strong(address, &expected, desired, success, failure); \
		return expected; \
	} \
	UPDATE(bits, type, exchange, replace) \
	UPDATE(bits, type, fetch_add, add) \
	UPDATE(bits, type, fetch_sub, sub) \
	UPDATE(bits, type, fetch_and, and) \
	UPDATE(bits, type, fetch_or, or) \
	UPDATE(bits, type, fetch_xor, xor) \
	UPDATE(bits, type, fetch_nand, nand)
ATOMIC(8, uint8_t)
ATOMIC(16, uint16_t)
ATOMIC(32, uint32_t)
ATOMIC(64, uint64_t)
ATOMIC(128, value_t)

void __tsan_atomic_thread_fence(int order)
{
	STATE_ENTER(5);
	memory_fence((enum order)order);
	state_leave();
}
void __tsan_atomic_signal_fence(int order)
{
	(void)order;
}
