/*
 * exchange.h - threads that put values into a queue and take as many out of it. The sum shows
 * whether a value was lost or duplicated.
 */
#ifndef EXCHANGE_H
#define EXCHANGE_H

#include <criterion/criterion.h>

#include <pthread.h>

#include "base/atomic.h"

enum { THREADS = 4, EACH = 20000 };

/*
 * Each of THREADS threads gets its number. It puts 0 .. EACH - 1, takes as many values that any
 * threads put, and adds those to *sum.
 */
static inline void expect_exchanged(void *(*put_and_take)(void *number), _Atomic(uint64_t) *sum)
{
	pthread_t threads[THREADS];

	/* [relaxed] no other thread exists yet */
	weiri_store_relaxed(sum, 0u);
	for (uintptr_t i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, put_and_take, (void *)i), 0);
	for (size_t i = 0; i < THREADS; i++)
		(void)pthread_join(threads[i], NULL);
	cr_assert_eq(weiri_load_relaxed(sum), (uint64_t)THREADS * EACH * (EACH - 1) / 2);
}

#endif
