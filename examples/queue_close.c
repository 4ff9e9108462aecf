/*
 * queue_close.c - how a queue is closed, and how the waiting consumers learn the reason.
 *
 * Closing refuses later items and keeps the stored ones. Consumers continue until the queue is
 * empty, and then get WEIR_OUT_OF_RANGE with the cause of the close. So no consumer waits for ever,
 * and no item is lost.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <weir/queue.h>

enum { PRODUCERS = 3, CONSUMERS = 2, EACH = 5000, CAPACITY = 16 };

static weir_queue *queue;

struct worker {
	pthread_t thread;
	int first; /* producer: its first item */
	int count; /* consumer: number of items taken */
	long long sum;
	weir_error ending; /* consumer: its last status */
};

static int items[PRODUCERS * EACH];

static void *produce(void *context)
{
	struct worker *worker = context;

	for (int i = worker->first; i < worker->first + EACH; i++) {
		items[i] = i;
		worker->count += weir_queue_enqueue(queue, &items[i], WEIR_NO_DEADLINE, NULL, NULL) == WEIR_OK;
	}
	return NULL;
}

static void *consume(void *context)
{
	struct worker *worker = context;
	void *item;

	while (weir_queue_dequeue(queue, &item, WEIR_NO_DEADLINE, NULL, &worker->ending) == WEIR_OK) {
		worker->sum += *(const int *)item;
		worker->count++;
	}
	return NULL;
}

int main(void)
{
	struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .capacity = CAPACITY, .name = "orders"};
	weir_error cause = {WEIR_OUT_OF_RANGE, "the shop has closed for today"}, error;
	struct worker workers[PRODUCERS + CONSUMERS];
	long long sum = 0, n = PRODUCERS * EACH;
	int count = 0, wrong = 0;

	memset(workers, 0, sizeof(workers));
	if (weir_queue_create(&options, &queue, &error) != WEIR_OK)
		return 1;
	for (int i = 0; i < PRODUCERS + CONSUMERS; i++) {
		workers[i].first = i * EACH;
		if (pthread_create(&workers[i].thread, NULL, i < PRODUCERS ? produce : consume, &workers[i]) != 0)
			return 1;
	}
	for (int i = 0; i < PRODUCERS; i++) {
		(void)pthread_join(workers[i].thread, NULL);
		wrong += workers[i].count != EACH;
	}
	wrong += weir_queue_close(queue, WEIR_CLOSE_DRAIN, &cause) != WEIR_OK;
	wrong += weir_queue_enqueue(queue, &items[0], WEIR_NO_DEADLINE, NULL, &error) != WEIR_CANCELLED;
	printf("a late producer: %s\n", error.message);
	for (int i = PRODUCERS; i < PRODUCERS + CONSUMERS; i++) {
		(void)pthread_join(workers[i].thread, NULL);
		count += workers[i].count;
		sum += workers[i].sum;
		wrong +=
			workers[i].ending.code != WEIR_OUT_OF_RANGE || strstr(workers[i].ending.message, cause.message) == NULL;
		printf("consumer %d: %s\n", i - PRODUCERS, workers[i].ending.message);
	}
	wrong += count != n || sum != n * (n - 1) / 2;
	wrong += weir_queue_destroy(queue, &error) != WEIR_OK;
	printf("%d items, sum %lld%s\n", count, sum, wrong != 0 ? ": wrong" : "");
	return wrong == 0 ? 0 : 1;
}
