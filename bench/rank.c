/*
 * rank.c - weir-rank: measures how far the relaxed priority queue departs from strict order.
 *
 * T threads work on a queue that holds N values with distinct keys in random order. Each thread
 * repeatedly dequeues a value and enqueues the next larger key that is unused, so that N values
 * stay inside, less at most one per thread. Each dequeue is recorded with the time after it, and
 * each enqueue with the time before it.
 *
 * Afterwards the program replays these events in the order of their times, and keeps the keys
 * inside in a Fenwick tree. The rank error of a dequeue is the number of smaller keys that were
 * inside. One lane is strict, so its figures show the error of the measurement: a time is not taken
 * at the linearization point, and a preempted thread takes it late.
 *
 * usage: weir-rank [--values N] [--moves M]     (defaults: 10000, 200000)
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/multi_queue.h>
#include <weir/time.h>

enum { MOST_THREADS = 16 };

struct event {
	uint64_t time;
	uint32_t key;
	int put;
};

struct mover {
	pthread_t thread;
	weir_multi_queue *queue;
	struct event *events;
	size_t moves;
	uint32_t next, step; /* keys that it enqueues */
	size_t failed;       /* dequeues that found the queue empty */
};

/* How many keys below each key are inside. */
struct inside {
	uint32_t *tree;
	uint32_t keys;
};

static void add(const struct inside *inside, uint32_t key, uint32_t change)
{
	for (uint32_t i = key + 1; i <= inside->keys; i += i & (~i + 1))
		inside->tree[i] += change;
}

static uint32_t below(const struct inside *inside, uint32_t key)
{
	uint32_t sum = 0;

	for (uint32_t i = key; i != 0; i &= i - 1)
		sum += inside->tree[i];
	return sum;
}

static void *take(size_t size)
{
	void *memory = calloc(1, size);

	if (memory == NULL)
		exit(3);
	return memory;
}

static uint32_t scatter(uint32_t i, uint32_t keys)
{
	/*
	 * Knuth's multiplicative constant is prime, so this is a permutation of 0 .. keys-1 unless keys
	 * is a multiple of it.
	 */
	return (uint32_t)((uint64_t)i * 2654435761u % keys);
}

static void *move(void *argument)
{
	struct mover *mover = argument;
	struct event *event = mover->events;

	for (size_t i = 0; i < mover->moves; i++) {
		uint64_t key;

		if (weir_multi_queue_try_dequeue(mover->queue, NULL, &key) != WEIR_OK) {
			mover->failed++;
			continue;
		}
		*event++ = (struct event){weir_now_ns(), (uint32_t)key, 0};
		/*
		 * The time is taken before the call, so that it is not later than the time of the dequeue
		 * of this key.
		 */
		*event++ = (struct event){weir_now_ns(), mover->next, 1};
		(void)weir_multi_queue_try_enqueue(mover->queue, mover->next, mover->next);
		mover->next += mover->step;
	}
	return NULL;
}

static int by_time(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	return (x->time > y->time) - (x->time < y->time);
}

static int by_size(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void report(struct event *events, size_t count, const struct inside *inside, uint32_t lanes, unsigned threads,
                   uint32_t stickiness)
{
	uint32_t *errors = take((count + 1) * sizeof(errors[0]));
	size_t taken = 0;
	uint64_t sum = 0;

	qsort(events, count, sizeof(events[0]), by_time);
	for (size_t i = 0; i < count; i++) {
		if (!events[i].put) {
			errors[taken] = below(inside, events[i].key);
			sum += errors[taken++];
		}
		add(inside, events[i].key, events[i].put ? 1u : UINT32_MAX);
	}
	qsort(errors, taken, sizeof(errors[0]), by_size);
	if (taken != 0)
		printf("%5u  %7u  %10u  %10.2f  %6u  %6u  %6u\n", lanes, threads, stickiness, (double)sum / (double)taken,
		       errors[taken / 2], errors[taken * 99 / 100], errors[taken - 1]);
	free(errors);
}

static void measure(uint32_t values, uint32_t moves, uint32_t lanes, unsigned threads, uint32_t stickiness)
{
	struct weir_multi_queue_options options = {WEIR_MULTI_QUEUE_OPTIONS_INIT, .lanes = lanes, .stickiness = stickiness};
	uint32_t each = moves / threads, keys = values + each * threads;
	struct inside inside = {take((keys + 1) * sizeof(uint32_t)), keys};
	struct event *events = take(2 * (size_t)each * threads * sizeof(*events));
	struct mover movers[MOST_THREADS];
	weir_multi_queue *queue;
	size_t count = 0;

	if (weir_multi_queue_create(values + lanes * (size_t)threads, &options, &queue, NULL) != WEIR_OK)
		exit(3);
	for (uint32_t i = 0; i < values; i++) {
		add(&inside, scatter(i, values), 1);
		if (weir_multi_queue_try_enqueue(queue, scatter(i, values), scatter(i, values)) != WEIR_OK)
			exit(3);
	}
	for (uint32_t i = 0; i < threads; i++) {
		movers[i] = (struct mover){.queue = queue,
		                           .events = events + 2 * (size_t)each * i,
		                           .moves = each,
		                           .next = values + i,
		                           .step = threads};
		if (pthread_create(&movers[i].thread, NULL, move, &movers[i]) != 0)
			exit(3);
	}
	for (uint32_t i = 0; i < threads; i++) {
		size_t noted;

		(void)pthread_join(movers[i].thread, NULL);
		noted = 2 * (each - movers[i].failed);
		memmove(events + count, movers[i].events, noted * sizeof(*events));
		count += noted;
	}
	report(events, count, &inside, lanes, threads, stickiness);
	weir_multi_queue_destroy(queue, NULL);
	free(events);
	free(inside.tree);
}

int main(int argc, char *argv[])
{
	static const uint32_t lanes[] = {1, 4, 8, 16, 32};
	uint32_t values = 10000, moves = 200000;

	for (int i = 1; i < argc; i += 2) {
		unsigned long number = i + 1 < argc ? strtoul(argv[i + 1], NULL, 10) : 0;

		if (number == 0 || number > 10000000 || (strcmp(argv[i], "--values") != 0 && strcmp(argv[i], "--moves") != 0)) {
			(void)fprintf(stderr, "usage: weir-rank [--values N] [--moves M]\n");
			return 2;
		}
		*(argv[i][2] == 'v' ? &values : &moves) = (uint32_t)number;
	}
	printf("Smaller keys that a dequeue passed over, with %u values inside and %u dequeues.\n", values, moves);
	printf("lanes  threads  stickiness        mean  median     99%%     max\n");
	for (size_t i = 0; i < sizeof(lanes) / sizeof(lanes[0]); i++) {
		measure(values, moves, lanes[i], 1, 1);
		measure(values, moves, lanes[i], 2, 1);
		measure(values, moves, lanes[i], 2, 8);
	}
	return 0;
}
