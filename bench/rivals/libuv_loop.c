/*
 * libuv_loop.c - queues for libuv's loop: ours with its descriptor, and a ring whose producers call
 * uv_async_send().
 */
#include <stdlib.h>
#include <uv.h>
#include <weir/queue.h>
#include <weir/ring.h>

#include "rivals.h"

#define LIBUV_TEXT_OF(major, minor, patch) "libuv " #major "." #minor "." #patch
#define LIBUV_TEXT(major, minor, patch) LIBUV_TEXT_OF(major, minor, patch)
#define LIBUV_VERSION LIBUV_TEXT(UV_VERSION_MAJOR, UV_VERSION_MINOR, UV_VERSION_PATCH)

struct loop {
	uv_loop_t uv;
	uv_poll_t poll;   /* ours */
	uv_async_t async; /* the rival's */
	weir_queue *queue;
	weir_ring *ring;
	/* What the callback fills. */
	uint64_t *values;
	size_t most, done;
};

/* Called by the thread that polls. One iteration of the loop is one poll. */
static size_t poll_and_take(void *self, uint64_t *values, size_t most)
{
	struct loop *loop = self;

	loop->values = values;
	loop->most = most;
	loop->done = 0;
	(void)uv_run(&loop->uv, UV_RUN_ONCE);
	return loop->done;
}

static struct loop *create(void)
{
	struct loop *loop = calloc(1, sizeof(*loop));

	if (loop == NULL || uv_loop_init(&loop->uv) != 0)
		exit(3);
	return loop;
}

static void destroy(struct loop *loop, uv_handle_t *handle)
{
	uv_close(handle, NULL);
	(void)uv_run(&loop->uv, UV_RUN_DEFAULT);
	(void)uv_loop_close(&loop->uv);
	(void)weir_queue_destroy(loop->queue, NULL);
	(void)weir_ring_destroy(loop->ring, NULL);
	free(loop);
}

/* -- ours -------------------------------------------------------------------------------------- */

static void take_items(uv_poll_t *poll, int status, int events)
{
	struct loop *loop = poll->data;
	void *items[256];

	(void)status, (void)events;
	(void)weir_queue_try_dequeue_many(loop->queue, items, loop->most < 256 ? loop->most : 256, &loop->done);
	for (size_t i = 0; i < loop->done; i++)
		loop->values[i] = (uint64_t)(uintptr_t)items[i];
}

static void *weir_create(size_t capacity)
{
	struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .capacity = capacity};
	struct loop *loop = create();
	int fd;

	if (weir_queue_create(&options, &loop->queue, NULL) != WEIR_OK ||
	    weir_queue_readable_fd(loop->queue, &fd, NULL) != WEIR_OK || uv_poll_init(&loop->uv, &loop->poll, fd) != 0)
		exit(3);
	loop->poll.data = loop;
	if (uv_poll_start(&loop->poll, UV_READABLE, take_items) != 0)
		exit(3);
	return loop;
}

static void weir_destroy(void *self)
{
	struct loop *loop = self;

	destroy(loop, (uv_handle_t *)(void *)&loop->poll);
}

static int weir_enqueue(void *self, uint64_t value)
{
	const struct loop *loop = self;

	return weir_queue_try_enqueue(loop->queue, (void *)(uintptr_t)value) == WEIR_OK;
}

const struct loop_contender weir_libuv_loop_contender = {
	.about = {.name = "weir, libuv", .version = LIBUV_VERSION, .lock_free = 1},
	.create = weir_create,
	.destroy = weir_destroy,
	.enqueue = weir_enqueue,
	.poll_and_take = poll_and_take,
};

/* -- a ring and uv_async_send() ---------------------------------------------------------------- */

static void take_from_ring(uv_async_t *async)
{
	struct loop *loop = async->data;

	(void)weir_ring_try_dequeue_many(loop->ring, loop->values, loop->most, &loop->done);
	/* Sends are merged, so the callback itself asks for the rest. */
	if (loop->done == loop->most)
		(void)uv_async_send(async);
}

static void *ring_create(size_t capacity)
{
	struct loop *loop = create();

	if (weir_ring_create(capacity, NULL, &loop->ring, NULL) != WEIR_OK ||
	    uv_async_init(&loop->uv, &loop->async, take_from_ring) != 0)
		exit(3);
	loop->async.data = loop;
	return loop;
}

static void ring_destroy(void *self)
{
	struct loop *loop = self;

	destroy(loop, (uv_handle_t *)(void *)&loop->async);
}

static int ring_enqueue(void *self, uint64_t value)
{
	struct loop *loop = self;

	if (weir_ring_try_enqueue(loop->ring, value) != WEIR_OK)
		return 0;
	return uv_async_send(&loop->async) == 0;
}

const struct loop_contender libuv_loop_contender = {
	.about = {.name = "weir_ring and uv_async_send", .version = LIBUV_VERSION},
	.create = ring_create,
	.destroy = ring_destroy,
	.enqueue = ring_enqueue,
	.poll_and_take = poll_and_take,
};
