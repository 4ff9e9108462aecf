/*
 * glib.c - GLib's GAsyncQueue: an unbounded list behind a mutex and a condition variable. It holds
 * pointers other than NULL.
 */
#include <glib.h>

#include "rivals.h"

#define GLIB_TEXT_OF(major, minor, micro) "GLib " #major "." #minor "." #micro
#define GLIB_TEXT(major, minor, micro) GLIB_TEXT_OF(major, minor, micro)
#define GLIB_VERSION GLIB_TEXT(GLIB_MAJOR_VERSION, GLIB_MINOR_VERSION, GLIB_MICRO_VERSION)

static void *create(size_t capacity)
{
	(void)capacity;
	return g_async_queue_new();
}

static void destroy(void *self)
{
	g_async_queue_unref(self);
}

static int try_enqueue(void *self, uint64_t value)
{
	g_async_queue_push(self, (void *)(uintptr_t)value);
	return 1;
}

static int try_dequeue(void *self, uint64_t *value)
{
	*value = (uint64_t)(uintptr_t)g_async_queue_try_pop(self);
	return *value != 0;
}

static uint64_t pairs(void *self, uint64_t count)
{
	return bench_pairs(self, count, try_enqueue, try_dequeue);
}

/*
 * In this table of calls 0 is a value too: it tells a consumer to end. GAsyncQueue cannot hold
 * NULL, so it holds the value plus 1.
 */
static void enqueue(void *self, uint64_t value)
{
	g_async_queue_push(self, (void *)(uintptr_t)(value + 1));
}

static int dequeue(void *self, uint64_t *value)
{
	*value = (uint64_t)(uintptr_t)g_async_queue_pop(self) - 1;
	return 1;
}

const struct ring_contender glib_ring_contender = {
	.about = {.name = "GAsyncQueue", .version = GLIB_VERSION},
	.unbounded = 1,
	.create = create,
	.destroy = destroy,
	.enqueue = try_enqueue,
	.dequeue = try_dequeue,
	.pairs = pairs,
};

const struct queue_contender glib_queue_contender = {
	.about = {.name = "GAsyncQueue", .version = GLIB_VERSION},
	.unbounded = 1,
	.create = create,
	.destroy = destroy,
	.enqueue = enqueue,
	.dequeue = dequeue,
};
