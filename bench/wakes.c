/*
 * wakes.c - weir-wakes: counts how often the threads of a queue wait for each other and are woken,
 * if the queue is repeatedly empty or full.
 *
 * usage: weir-wakes [ITEMS]
 *
 * One thread enqueues items, and another dequeues them. One of the two is busy for a while between
 * its calls, so the other waits each time. An item that finds its consumer asleep costs a system
 * call, and so does room that finds its producer asleep. The program prints how many such calls
 * there are per item, beside how many operations waited at all. A queue that woke whenever a waiter
 * is registered would pay for each of these.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <weir/queue.h>

enum { CAPACITY = 64, ITEMS = 20000 };

static struct run {
	weir_queue *queue;
	size_t items;
	uint64_t think_ns[2]; /* of the producer and of the consumer */
} run;

static void think(uint64_t nanoseconds)
{
	uint64_t until = weir_now_ns() + nanoseconds;

	while (nanoseconds != 0 && weir_now_ns() < until)
		;
}

static void *produce(void *context)
{
	for (size_t i = 0; i < run.items; i++) {
		think(run.think_ns[0]);
		if (weir_queue_enqueue(run.queue, &run, WEIR_NO_DEADLINE, NULL, NULL) != WEIR_OK)
			abort();
	}
	return context;
}

static void *consume(void *context)
{
	for (size_t i = 0; i < run.items; i++) {
		void *item;

		if (weir_queue_dequeue(run.queue, &item, WEIR_NO_DEADLINE, NULL, NULL) != WEIR_OK)
			abort();
		think(run.think_ns[1]);
	}
	return context;
}

/* Returns 0 on failure. */
static int measure(size_t items, uint64_t producer_ns, uint64_t consumer_ns)
{
	struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .capacity = CAPACITY};
	struct weir_queue_stats stats = {WEIR_QUEUE_STATS_INIT};
	void *(*const bodies[2])(void *) = {produce, consume};
	pthread_t threads[2];
	uint64_t start;

	run = (struct run){.items = items, .think_ns = {producer_ns, consumer_ns}};
	if (weir_queue_create(&options, &run.queue, NULL) != WEIR_OK)
		return 0;
	start = weir_now_ns();
	for (int i = 0; i < 2; i++) {
		if (pthread_create(&threads[i], NULL, bodies[i], NULL) != 0)
			return 0;
	}
	for (int i = 0; i < 2; i++)
		(void)pthread_join(threads[i], NULL);
	(void)weir_queue_get_stats(run.queue, &stats);
	(void)printf("%9llu ns %9llu ns %8.0f ns %8.4f %8.4f %8.4f\n", (unsigned long long)producer_ns,
	             (unsigned long long)consumer_ns, (double)(weir_now_ns() - start) / (double)items,
	             (double)stats.dequeue_waits / (double)items, (double)stats.enqueue_waits / (double)items,
	             (double)stats.wakes / (double)items);
	return weir_queue_destroy(run.queue, NULL) == WEIR_OK && stats.wakes <= stats.dequeue_waits + stats.enqueue_waits;
}

int main(int argc, char **argv)
{
	static const uint64_t thoughts[] = {0, 100, 300, 1000, 3000, 10000, 30000};
	size_t items = argc > 1 ? strtoul(argv[1], NULL, 10) : ITEMS;
	int good = 1;

	if (items == 0) {
		(void)fprintf(stderr, "usage: weir-wakes [ITEMS]\n");
		return 2;
	}
	(void)printf("  producer     consumer      an item  dequeue  enqueue   wakes\n"
	             "    thinks       thinks        takes    waits    waits\n");
	for (size_t i = 0; i < sizeof(thoughts) / sizeof(thoughts[0]); i++)
		good &= measure(items, thoughts[i], 0);
	for (size_t i = 1; i < sizeof(thoughts) / sizeof(thoughts[0]); i++)
		good &= measure(items, 0, thoughts[i]);
	return !good;
}
