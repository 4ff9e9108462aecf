/*
 * glib_loop.c - queues for GLib's main loop: ours with its descriptor, and a GAsyncQueue whose
 * producers wake the loop.
 */
#include <glib-unix.h>
#include <glib.h>
#include <stdlib.h>
#include <weir/queue.h>

#include "rivals.h"

#define GLIB_TEXT_OF(major, minor, micro) "GLib " #major "." #minor "." #micro
#define GLIB_TEXT(major, minor, micro) GLIB_TEXT_OF(major, minor, micro)
#define GLIB_VERSION GLIB_TEXT(GLIB_MAJOR_VERSION, GLIB_MINOR_VERSION, GLIB_MICRO_VERSION)

struct loop {
	GMainContext *context;
	GSource *source;
	weir_queue *queue;  /* ours */
	GAsyncQueue *async; /* GLib's */
	/* What the source's callback fills. */
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
	(void)g_main_context_iteration(loop->context, TRUE);
	return loop->done;
}

static struct loop *create(GSource *source)
{
	struct loop *loop = calloc(1, sizeof(*loop));

	if (loop == NULL)
		exit(3);
	loop->context = g_main_context_new();
	loop->source = source;
	return loop;
}

static void attach(struct loop *loop)
{
	(void)g_source_attach(loop->source, loop->context);
}

static void destroy(void *self)
{
	struct loop *loop = self;

	g_source_destroy(loop->source);
	g_source_unref(loop->source);
	g_main_context_unref(loop->context);
	if (loop->async != NULL)
		g_async_queue_unref(loop->async);
	(void)weir_queue_destroy(loop->queue, NULL);
	free(loop);
}

/* -- ours -------------------------------------------------------------------------------------- */

static gboolean take_items(gint fd, GIOCondition condition, gpointer data)
{
	struct loop *loop = data;
	void *items[256];

	(void)fd, (void)condition;
	(void)weir_queue_try_dequeue_many(loop->queue, items, loop->most < 256 ? loop->most : 256, &loop->done);
	for (size_t i = 0; i < loop->done; i++)
		loop->values[i] = (uint64_t)(uintptr_t)items[i];
	return G_SOURCE_CONTINUE;
}

static void *weir_create(size_t capacity)
{
	struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .capacity = capacity};
	struct loop *loop;
	weir_queue *queue;
	int fd;

	if (weir_queue_create(&options, &queue, NULL) != WEIR_OK || weir_queue_readable_fd(queue, &fd, NULL) != WEIR_OK)
		exit(3);
	loop = create(g_unix_fd_source_new(fd, G_IO_IN));
	loop->queue = queue;
	g_source_set_callback(loop->source, (GSourceFunc)(void (*)(void))take_items, loop, NULL);
	attach(loop);
	return loop;
}

static int weir_enqueue(void *self, uint64_t value)
{
	const struct loop *loop = self;

	return weir_queue_try_enqueue(loop->queue, (void *)(uintptr_t)value) == WEIR_OK;
}

const struct loop_contender weir_glib_loop_contender = {
	.about = {.name = "weir, GLib", .version = GLIB_VERSION, .lock_free = 1},
	.create = weir_create,
	.destroy = destroy,
	.enqueue = weir_enqueue,
	.poll_and_take = poll_and_take,
};

/* -- GAsyncQueue ------------------------------------------------------------------------------- */

struct async_source {
	GSource source;
	struct loop *loop;
};

static gboolean has_items(const struct loop *loop)
{
	return g_async_queue_length(loop->async) > 0;
}

static gboolean prepare(GSource *source, gint *timeout)
{
	*timeout = -1;
	return has_items(((struct async_source *)(void *)source)->loop);
}

static gboolean check(GSource *source)
{
	return has_items(((struct async_source *)(void *)source)->loop);
}

static gboolean dispatch(GSource *source, GSourceFunc callback, gpointer data)
{
	struct loop *loop = ((struct async_source *)(void *)source)->loop;
	void *item;

	(void)callback, (void)data;
	g_async_queue_lock(loop->async);
	while (loop->done < loop->most && (item = g_async_queue_try_pop_unlocked(loop->async)) != NULL)
		loop->values[loop->done++] = (uint64_t)(uintptr_t)item;
	g_async_queue_unlock(loop->async);
	return G_SOURCE_CONTINUE;
}

static GSourceFuncs async_functions = {.prepare = prepare, .check = check, .dispatch = dispatch};
static size_t async_capacity;

static void *async_create(size_t capacity)
{
	GSource *source = g_source_new(&async_functions, sizeof(struct async_source));
	struct loop *loop = create(source);

	((struct async_source *)(void *)source)->loop = loop;
	loop->async = g_async_queue_new();
	async_capacity = capacity;
	attach(loop);
	return loop;
}

/* GAsyncQueue is unbounded: its length stands for a bound, so that the backlogs are alike. */
static int async_enqueue(void *self, uint64_t value)
{
	const struct loop *loop = self;
	int was_empty;

	g_async_queue_lock(loop->async);
	if (g_async_queue_length_unlocked(loop->async) >= (gint)async_capacity) {
		g_async_queue_unlock(loop->async);
		return 0;
	}
	was_empty = g_async_queue_length_unlocked(loop->async) <= 0;
	g_async_queue_push_unlocked(loop->async, (void *)(uintptr_t)value);
	g_async_queue_unlock(loop->async);
	if (was_empty)
		g_main_context_wakeup(loop->context);
	return 1;
}

const struct loop_contender glib_loop_contender = {
	.about = {.name = "GAsyncQueue and GSource", .version = GLIB_VERSION},
	.create = async_create,
	.destroy = destroy,
	.enqueue = async_enqueue,
	.poll_and_take = poll_and_take,
};
