/*
 * urcu_stalled.c - liburcu-bp with a reader stopped inside its section: the writer's next grace period waits for it.
 */
#include "stalled.h"

#ifdef WEIR_BENCH_URCU
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <urcu-bp.h>

#include "../bench.h"

enum { EVERY = 128 };

static sem_t inside, leave;
static _Atomic(uint64_t) published;
static _Atomic(int) stop;
static size_t value_bytes;

static void *reader(void *context)
{
	(void)context;
	rcu_read_lock();
	(void)sem_post(&inside);
	while (sem_wait(&leave) != 0)
		;
	rcu_read_unlock();
	return NULL;
}

static void *writer(void *context)
{
	static void *current;
	void *retired[EVERY];
	unsigned waiting = 0;

	(void)context;
	while (!atomic_load_explicit(&stop, memory_order_acquire)) {
		void *value = malloc(value_bytes);

		if (value == NULL)
			exit(3);
		memset(value, 0, value_bytes);
		retired[waiting++] = rcu_xchg_pointer(&current, value);
		atomic_fetch_add_explicit(&published, 1, memory_order_acq_rel);
		if (waiting == EVERY) {
			synchronize_rcu();
			while (waiting != 0)
				free(retired[--waiting]);
		}
	}
	synchronize_rcu();
	while (waiting != 0)
		free(retired[--waiting]);
	return NULL;
}

static double publish(size_t bytes, unsigned duration_ms)
{
	struct timespec nap = {duration_ms / 1000, (long)(duration_ms % 1000) * 1000000};
	pthread_t threads[2];
	uint64_t start, in_time;

	value_bytes = bytes;
	(void)sem_init(&inside, 0, 0);
	(void)sem_init(&leave, 0, 0);
	atomic_store_explicit(&published, 0, memory_order_release);
	atomic_store_explicit(&stop, 0, memory_order_release);
	if (pthread_create(&threads[0], NULL, reader, NULL) != 0)
		exit(3);
	while (sem_wait(&inside) != 0)
		;
	start = bench_now_ns();
	if (pthread_create(&threads[1], NULL, writer, NULL) != 0)
		exit(3);
	(void)nanosleep(&nap, NULL);
	in_time = atomic_load_explicit(&published, memory_order_acquire);
	start = bench_now_ns() - start;
	atomic_store_explicit(&stop, 1, memory_order_release);
	(void)sem_post(&leave);
	(void)pthread_join(threads[0], NULL);
	(void)pthread_join(threads[1], NULL);
	return (double)in_time * 1e6 / (double)start;
}

static const struct stalled_contender contender = {"liburcu-bp synchronize_rcu", publish};

const struct stalled_contender *bench_stalled_urcu(void)
{
	return &contender;
}
#else
const struct stalled_contender *bench_stalled_urcu(void)
{
	return NULL;
}
#endif
