/*
 * ring_pipeline.c - three stages joined by two rings: count, square, sum.
 *
 * A ring never waits: full and empty are statuses, and the caller decides what to do then (here it
 * yields). If threads should sleep instead, use weir/queue.h. Closing a ring tells the next stage
 * that no more values come.
 */
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <weir/ring.h>

enum { COUNTERS = 2, SQUARERS = 2, EACH = 20000, CAPACITY = 64 };

static weir_ring *numbers, *squares;
static _Atomic(int) counters_left = COUNTERS, squarers_left = SQUARERS;

static void put(weir_ring *ring, uint64_t value)
{
	while (weir_ring_try_enqueue(ring, value) == WEIR_WOULD_BLOCK)
		(void)sched_yield();
}

/* Returns 0 when the ring is closed and empty. */
static int take(weir_ring *ring, uint64_t *value)
{
	enum weir_status status;

	while ((status = weir_ring_try_dequeue(ring, value)) == WEIR_WOULD_BLOCK)
		(void)sched_yield();
	return status == WEIR_OK;
}

static void leave(_Atomic(int) *left, weir_ring *ring)
{
	if (atomic_fetch_sub_explicit(left, 1, memory_order_acq_rel) == 1)
		weir_ring_close(ring);
}

static void *count(void *unused)
{
	for (uint64_t i = 1; i <= EACH; i++)
		put(numbers, i);
	leave(&counters_left, numbers);
	return unused;
}

static void *square(void *unused)
{
	uint64_t value;

	while (take(numbers, &value))
		put(squares, value * value);
	leave(&squarers_left, squares);
	return unused;
}

int main(void)
{
	uint64_t n = EACH, expected = COUNTERS * (n * (n + 1) * (2 * n + 1) / 6), sum = 0, value;
	pthread_t threads[COUNTERS + SQUARERS];

	if (weir_ring_create(CAPACITY, NULL, &numbers, NULL) || weir_ring_create(CAPACITY, NULL, &squares, NULL))
		return 1;
	for (int i = 0; i < COUNTERS + SQUARERS; i++) {
		if (pthread_create(&threads[i], NULL, i < COUNTERS ? count : square, NULL) != 0)
			return 1;
	}
	while (take(squares, &value))
		sum += value;
	for (int i = 0; i < COUNTERS + SQUARERS; i++)
		(void)pthread_join(threads[i], NULL);
	weir_ring_destroy(numbers, NULL);
	weir_ring_destroy(squares, NULL);
	printf("sum of squares: %" PRIu64 ", expected %" PRIu64 "\n", sum, expected);
	return sum == expected ? 0 : 1;
}
