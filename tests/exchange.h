/*
 * exchange.h - threads that put values into a queue and take as many out of it, and the sum that says whether any was lost or doubled.
 */
#ifndef EXCHANGE_H
#define EXCHANGE_H

#include <criterion/criterion.h>

#include <pthread.h>

#include "base/atomic.h"

enum { THREADS = 4, EACH = 20000 };

/*
 * Each of THREADS threads is given its number: it puts 0 .. EACH - 1, takes as many values, of whomever, and adds those to *sum.
 */
static inline void expect_exchanged(void *(*put_and_take)(void *number), _Atomic(uint64_t) *sum)
{
	pthread_t threads[THREADS];

	weiri_store_relaxed(sum, 0u); /* [relaxed] before the threads */
	for (uintptr_t i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, put_and_take, (void *)i), 0);
	for (size_t i = 0; i < THREADS; i++)
		(void)pthread_join(threads[i], NULL);
	cr_assert_eq(weiri_load_relaxed(sum), (uint64_t)THREADS * EACH * (EACH - 1) / 2);
}

#endif
