/*
 * weir.c - our rings and queues, called as a user calls them: through the shared library.
 */
#include <stdlib.h>
#include <weir/queue.h>
#include <weir/ring_port.h>
#include <weir/spsc.h>

#include "rivals.h"

static void *ring_create(size_t capacity, enum weir_ring_format format)
{
	struct weir_ring_options options = {WEIR_RING_OPTIONS_INIT, .format = format};
	weir_ring *ring;

	if (weir_ring_create(capacity, &options, &ring, NULL) != WEIR_OK)
		exit(3);
	return ring;
}

static void *ring_create_16(size_t capacity)
{
	return ring_create(capacity, WEIR_RING_FORMAT_BEST);
}

static void *ring_create_spans(size_t capacity)
{
	return ring_create(capacity, WEIR_RING_FORMAT_SPAN16);
}

static void *ring_create_64(size_t capacity)
{
	return ring_create(capacity, WEIR_RING_FORMAT_LTQ64);
}

static void ring_destroy(void *self)
{
	weir_ring_destroy(self, NULL);
}

static int ring_enqueue(void *self, uint64_t value)
{
	return weir_ring_try_enqueue(self, value) == WEIR_OK;
}

static int ring_dequeue(void *self, uint64_t *value)
{
	return weir_ring_try_dequeue(self, value) == WEIR_OK;
}

static size_t ring_enqueue_many(void *self, const uint64_t *values, size_t count)
{
	size_t done = 0;

	return weir_ring_try_enqueue_many(self, values, count, &done) == WEIR_OK ? done : 0;
}

static size_t ring_dequeue_many(void *self, uint64_t *values, size_t count)
{
	size_t done = 0;

	return weir_ring_try_dequeue_many(self, values, count, &done) == WEIR_OK ? done : 0;
}

static uint64_t ring_pairs(void *self, uint64_t count)
{
	return bench_pairs(self, count, ring_enqueue, ring_dequeue);
}

const struct ring_contender weir_ltq16_contender = {
	.about = {.name = "weir", .version = "LTQ16, or the best of this machine", .lock_free = 1},
	.create = ring_create_16,
	.destroy = ring_destroy,
	.enqueue = ring_enqueue,
	.dequeue = ring_dequeue,
	.enqueue_many = ring_enqueue_many,
	.dequeue_many = ring_dequeue_many,
	.pairs = ring_pairs,
};
const struct ring_contender weir_span16_contender = {
	.about = {.name = "weir SPAN16", .version = "for batches", .lock_free = 1},
	.create = ring_create_spans,
	.destroy = ring_destroy,
	.enqueue = ring_enqueue,
	.dequeue = ring_dequeue,
	.enqueue_many = ring_enqueue_many,
	.dequeue_many = ring_dequeue_many,
	.pairs = ring_pairs,
};
const struct ring_contender weir_ltq64_contender = {
	.about = {.name = "weir LTQ64", .lock_free = 1},
	.create = ring_create_64,
	.destroy = ring_destroy,
	.enqueue = ring_enqueue,
	.dequeue = ring_dequeue,
	.enqueue_many = ring_enqueue_many,
	.dequeue_many = ring_dequeue_many,
	.pairs = ring_pairs,
};

/* -- the same, inlined ------------------------------------------------------------------------- */

static void *port_create(size_t capacity)
{
	weir_ring_port *port = malloc(sizeof(*port));

	if (port == NULL)
		exit(3);
	weir_ring_port_init(port, ring_create_16(capacity));
	return port;
}

static void port_destroy(void *self)
{
	weir_ring_port *port = self;

	weir_ring_destroy(port->ring, NULL);
	free(port);
}

static int port_enqueue(void *self, uint64_t value)
{
	return weir_ring_port_try_enqueue(self, value) == WEIR_OK;
}

static int port_dequeue(void *self, uint64_t *value)
{
	return weir_ring_port_try_dequeue(self, value) == WEIR_OK;
}

static uint64_t port_pairs(void *self, uint64_t count)
{
	return bench_pairs(self, count, port_enqueue, port_dequeue);
}

const struct ring_contender weir_port_contender = {
	.about = {.name = "weir port", .version = "LTQ16, inlined", .lock_free = 1},
	.create = port_create,
	.destroy = port_destroy,
	.enqueue = port_enqueue,
	.dequeue = port_dequeue,
	.pairs = port_pairs,
};

/* -- one producer, one consumer ---------------------------------------------------------------- */

static void *spsc_create(size_t capacity)
{
	weir_spsc *spsc;

	if (weir_spsc_create(capacity, NULL, &spsc, NULL) != WEIR_OK)
		exit(3);
	return spsc;
}

static void spsc_destroy(void *self)
{
	weir_spsc_destroy(self, NULL);
}

static int spsc_enqueue(void *self, uint64_t value)
{
	return weir_spsc_try_enqueue(self, value) == WEIR_OK;
}

static int spsc_dequeue(void *self, uint64_t *value)
{
	return weir_spsc_try_dequeue(self, value) == WEIR_OK;
}

static size_t spsc_enqueue_many(void *self, const uint64_t *values, size_t count)
{
	size_t done = 0;

	return weir_spsc_try_enqueue_many(self, values, count, &done) == WEIR_OK ? done : 0;
}

static size_t spsc_dequeue_many(void *self, uint64_t *values, size_t count)
{
	size_t done = 0;

	return weir_spsc_try_dequeue_many(self, values, count, &done) == WEIR_OK ? done : 0;
}

static uint64_t spsc_pairs(void *self, uint64_t count)
{
	return bench_pairs(self, count, spsc_enqueue, spsc_dequeue);
}

const struct ring_contender weir_spsc_contender = {
	.about = {.name = "weir spsc", .version = "for one producer and one consumer", .lock_free = 1},
	.producers = 1,
	.consumers = 1,
	.create = spsc_create,
	.destroy = spsc_destroy,
	.enqueue = spsc_enqueue,
	.dequeue = spsc_dequeue,
	.enqueue_many = spsc_enqueue_many,
	.dequeue_many = spsc_dequeue_many,
	.pairs = spsc_pairs,
};

static void *queue_create_in(size_t capacity, enum weir_queue_order order)
{
	struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .capacity = capacity, .order = order};
	weir_queue *queue;

	if (weir_queue_create(&options, &queue, NULL) != WEIR_OK)
		exit(3);
	return queue;
}

static void *queue_create(size_t capacity)
{
	return queue_create_in(capacity, WEIR_QUEUE_FIFO);
}

static void *shuffle_create(size_t capacity)
{
	return queue_create_in(capacity, WEIR_QUEUE_SHUFFLE);
}

static void queue_destroy(void *self)
{
	(void)weir_queue_destroy(self, NULL);
}

static void queue_enqueue(void *self, uint64_t value)
{
	if (weir_queue_enqueue(self, (void *)(uintptr_t)value, WEIR_NO_DEADLINE, NULL, NULL) != WEIR_OK)
		exit(3);
}

static int queue_dequeue(void *self, uint64_t *value)
{
	void *item;

	if (weir_queue_dequeue(self, &item, WEIR_NO_DEADLINE, NULL, NULL) != WEIR_OK)
		return 0;
	*value = (uint64_t)(uintptr_t)item;
	return 1;
}

static void queue_close(void *self)
{
	(void)weir_queue_close(self, WEIR_CLOSE_DRAIN, NULL);
}

static int queue_try_enqueue(void *self, uint64_t value)
{
	return weir_queue_try_enqueue(self, (void *)(uintptr_t)value) == WEIR_OK;
}

static int queue_try_dequeue(void *self, uint64_t *value)
{
	void *item;

	if (weir_queue_try_dequeue(self, &item) != WEIR_OK)
		return 0;
	*value = (uint64_t)(uintptr_t)item;
	return 1;
}

const struct queue_contender weir_queue_contender = {
	.about = {.name = "weir", .lock_free = 1},
	.create = queue_create,
	.destroy = queue_destroy,
	.enqueue = queue_enqueue,
	.dequeue = queue_dequeue,
	.close = queue_close,
};
const struct queue_contender weir_shuffle_contender = {
	.about = {.name = "weir", .lock_free = 1},
	.create = shuffle_create,
	.destroy = queue_destroy,
	.enqueue = queue_enqueue,
	.dequeue = queue_dequeue,
	.close = queue_close,
};

const struct ring_contender weir_shuffle_try_contender = {
	.about = {.name = "weir", .lock_free = 1},
	.create = shuffle_create,
	.destroy = queue_destroy,
	.enqueue = queue_try_enqueue,
	.dequeue = queue_try_dequeue,
};

static void *wake_create(void)
{
	return queue_create(1024);
}

static void wake_wait(void *self)
{
	uint64_t value;

	if (!queue_dequeue(self, &value))
		exit(3);
}

static void wake_wake(void *self)
{
	queue_enqueue(self, 1);
}

const struct wake_contender weir_wake_contender = {
	.about = {.name = "weir queue", .lock_free = 1},
	.create = wake_create,
	.destroy = queue_destroy,
	.wait = wake_wait,
	.wake = wake_wake,
};
