/*
 * disturb.h - included before the source of a rival: before some of its atomic operations the thread
 * yields, so that the operations of the threads interleave also on one processor.
 */
#ifndef WEIR_BENCH_DISTURB_H
#define WEIR_BENCH_DISTURB_H

#include <stdatomic.h>

void bench_disturb(void);

#undef atomic_load_explicit
#undef atomic_store_explicit
#undef atomic_compare_exchange_strong_explicit
#undef atomic_compare_exchange_weak_explicit
#undef atomic_fetch_add_explicit
#undef atomic_fetch_sub_explicit
#undef atomic_fetch_or_explicit

#if defined(__clang__)
#define atomic_load_explicit(place, order) (bench_disturb(), __c11_atomic_load(place, order))
#define atomic_store_explicit(place, value, order) (bench_disturb(), __c11_atomic_store(place, value, order))
#define atomic_compare_exchange_strong_explicit(place, old, value, order, order_on_failure) \
	(bench_disturb(), __c11_atomic_compare_exchange_strong(place, old, value, order, order_on_failure))
#define atomic_fetch_add_explicit(place, value, order) (bench_disturb(), __c11_atomic_fetch_add(place, value, order))
#define atomic_fetch_sub_explicit(place, value, order) (bench_disturb(), __c11_atomic_fetch_sub(place, value, order))
#define atomic_fetch_or_explicit(place, value, order) (bench_disturb(), __c11_atomic_fetch_or(place, value, order))
#else
#define atomic_load_explicit(place, order) \
	__extension__({ \
		__auto_type disturb_place = (place); \
		__typeof__((void)0, *disturb_place) disturb_value; \
		bench_disturb(); \
		__atomic_load(disturb_place, &disturb_value, order); \
		disturb_value; \
	})
#define atomic_store_explicit(place, value, order) \
	__extension__({ \
		__auto_type disturb_place = (place); \
		__typeof__((void)0, *disturb_place) disturb_value = (value); \
		bench_disturb(); \
		__atomic_store(disturb_place, &disturb_value, order); \
	})
#define atomic_compare_exchange_strong_explicit(place, old, value, order, order_on_failure) \
	__extension__({ \
		__auto_type disturb_place = (place); \
		__typeof__((void)0, *disturb_place) disturb_value = (value); \
		bench_disturb(); \
		__atomic_compare_exchange(disturb_place, old, &disturb_value, 0, order, order_on_failure); \
	})
#define atomic_fetch_add_explicit(place, value, order) (bench_disturb(), __atomic_fetch_add(place, value, order))
#define atomic_fetch_sub_explicit(place, value, order) (bench_disturb(), __atomic_fetch_sub(place, value, order))
#define atomic_fetch_or_explicit(place, value, order) (bench_disturb(), __atomic_fetch_or(place, value, order))
#endif
#define atomic_compare_exchange_weak_explicit atomic_compare_exchange_strong_explicit
/* The name inside is not expanded again. */
#define __sync_bool_compare_and_swap(place, old, value) \
	(bench_disturb(), __sync_bool_compare_and_swap(place, old, value))

#endif
