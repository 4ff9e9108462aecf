/*
 * loops.c - queues, and newest values, for an event loop that sleeps in epoll: ours with their
 * descriptors, and an array and a value behind a mutex with an eventfd.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <weir/queue.h>
#include <weir/value.h>
#include <weir/watch.h>

#include "rivals.h"

static int epoll_of(int fd)
{
	struct epoll_event event = {.events = EPOLLIN};
	int set = epoll_create1(EPOLL_CLOEXEC);

	if (set < 0 || epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) != 0)
		exit(3);
	return set;
}

static void sleep_in(int set)
{
	struct epoll_event event;

	(void)epoll_wait(set, &event, 1, -1);
}

/* -- ours -------------------------------------------------------------------------------------- */

struct weir_loop {
	weir_queue *queue;
	int set;
};

static void *weir_create(size_t capacity)
{
	struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .capacity = capacity};
	struct weir_loop *loop = malloc(sizeof(*loop));
	int fd;

	if (loop == NULL || weir_queue_create(&options, &loop->queue, NULL) != WEIR_OK ||
	    weir_queue_readable_fd(loop->queue, &fd, NULL) != WEIR_OK)
		exit(3);
	loop->set = epoll_of(fd);
	return loop;
}

static void weir_destroy(void *self)
{
	struct weir_loop *loop = self;

	(void)close(loop->set);
	(void)weir_queue_destroy(loop->queue, NULL);
	free(loop);
}

static int weir_enqueue(void *self, uint64_t value)
{
	const struct weir_loop *loop = self;

	return weir_queue_try_enqueue(loop->queue, (void *)(uintptr_t)value) == WEIR_OK;
}

static size_t weir_poll_and_take(void *self, uint64_t *values, size_t most)
{
	const struct weir_loop *loop = self;
	void *items[256];
	size_t done = 0;

	sleep_in(loop->set);
	(void)weir_queue_try_dequeue_many(loop->queue, items, most < 256 ? most : 256, &done);
	for (size_t i = 0; i < done; i++)
		values[i] = (uint64_t)(uintptr_t)items[i];
	return done;
}

const struct loop_contender weir_loop_contender = {
	.about = {.name = "weir, epoll", .lock_free = 1},
	.create = weir_create,
	.destroy = weir_destroy,
	.enqueue = weir_enqueue,
	.poll_and_take = weir_poll_and_take,
};

/* -- an array behind a mutex; the eventfd counts 1 while the array is not empty ---------------- */

struct mutex_loop {
	pthread_mutex_t mutex;
	size_t capacity, head, tail;
	int event, set;
	uint64_t values[];
};

static void *mutex_create(size_t capacity)
{
	struct mutex_loop *loop = calloc(1, sizeof(*loop) + capacity * sizeof(loop->values[0]));

	if (loop == NULL || pthread_mutex_init(&loop->mutex, NULL) != 0)
		exit(3);
	loop->capacity = capacity;
	loop->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	loop->set = epoll_of(loop->event);
	return loop;
}

static void mutex_destroy(void *self)
{
	struct mutex_loop *loop = self;

	(void)close(loop->set);
	(void)close(loop->event);
	(void)pthread_mutex_destroy(&loop->mutex);
	free(loop);
}

static int mutex_enqueue(void *self, uint64_t value)
{
	struct mutex_loop *loop = self;
	const uint64_t one = 1;
	size_t before;

	(void)pthread_mutex_lock(&loop->mutex);
	before = loop->tail - loop->head;
	if (before < loop->capacity)
		loop->values[loop->tail++ % loop->capacity] = value;
	(void)pthread_mutex_unlock(&loop->mutex);
	if (before == 0 && write(loop->event, &one, sizeof(one)) < 0)
		exit(3);
	return before < loop->capacity;
}

static size_t mutex_poll_and_take(void *self, uint64_t *values, size_t most)
{
	struct mutex_loop *loop = self;
	uint64_t count = 1;
	size_t done = 0, left;

	sleep_in(loop->set);
	(void)!read(loop->event, &count, sizeof(count));
	(void)pthread_mutex_lock(&loop->mutex);
	while (done < most && loop->head != loop->tail)
		values[done++] = loop->values[loop->head++ % loop->capacity];
	left = loop->tail - loop->head;
	(void)pthread_mutex_unlock(&loop->mutex);
	count = 1;
	if (left != 0 && write(loop->event, &count, sizeof(count)) < 0)
		exit(3);
	return done;
}

const struct loop_contender mutex_loop_contender = {
	.about = {.name = "mutex and eventfd, epoll"},
	.create = mutex_create,
	.destroy = mutex_destroy,
	.enqueue = mutex_enqueue,
	.poll_and_take = mutex_poll_and_take,
};

/* -- the newest value: a watch ----------------------------------------------------------------- */

struct weir_newest {
	weir_var *var;
	weir_watch *watch;
	int set;
};

static void *weir_newest_create(size_t capacity)
{
	const uint64_t first = 0;
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .kind = WEIR_VAR_INLINE, .size = sizeof(first)};
	struct weir_newest *newest = malloc(sizeof(*newest));

	(void)capacity;
	if (newest == NULL || weir_var_create_value(WEIR_VALUE_OF(first), &options, &newest->var, NULL) != WEIR_OK ||
	    weir_watch_create(newest->var, 1, &newest->watch, NULL) != WEIR_OK)
		exit(3);
	newest->set = epoll_of(weir_watch_fd(newest->watch));
	return newest;
}

static void weir_newest_destroy(void *self)
{
	struct weir_newest *newest = self;

	(void)close(newest->set);
	(void)weir_watch_destroy(newest->watch, NULL);
	(void)weir_var_destroy(newest->var, NULL);
	free(newest);
}

static int weir_newest_write(void *self, uint64_t value)
{
	const struct weir_newest *newest = self;

	return weir_var_assign_value(newest->var, WEIR_VALUE_OF(value), WEIR_NO_DEADLINE, NULL, NULL) == WEIR_OK;
}

static size_t weir_newest_poll_and_take(void *self, uint64_t *value, size_t most)
{
	const struct weir_newest *newest = self;
	weir_read read;

	(void)most;
	sleep_in(newest->set);
	if (weir_watch_try_take(newest->watch, &read) != WEIR_OK)
		return 0;
	*value = *(const uint64_t *)read.data;
	weir_read_release(&read);
	return 1;
}

const struct loop_contender weir_watch_contender = {
	.about = {.name = "weir_watch, epoll", .lock_free = 1},
	.create = weir_newest_create,
	.destroy = weir_newest_destroy,
	.enqueue = weir_newest_write,
	.poll_and_take = weir_newest_poll_and_take,
};

/* -- a value behind a mutex; the eventfd counts 1 from a write to the next take ---------------- */

struct mutex_newest {
	pthread_mutex_t mutex;
	uint64_t value;
	int is_new;
	int event, set;
};

static void *mutex_newest_create(size_t capacity)
{
	struct mutex_newest *newest = calloc(1, sizeof(*newest));

	(void)capacity;
	if (newest == NULL || pthread_mutex_init(&newest->mutex, NULL) != 0)
		exit(3);
	newest->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	newest->set = epoll_of(newest->event);
	return newest;
}

static void mutex_newest_destroy(void *self)
{
	struct mutex_newest *newest = self;

	(void)close(newest->set);
	(void)close(newest->event);
	(void)pthread_mutex_destroy(&newest->mutex);
	free(newest);
}

static int mutex_newest_write(void *self, uint64_t value)
{
	struct mutex_newest *newest = self;
	const uint64_t one = 1;
	int was_new;

	(void)pthread_mutex_lock(&newest->mutex);
	was_new = newest->is_new;
	newest->value = value;
	newest->is_new = 1;
	(void)pthread_mutex_unlock(&newest->mutex);
	if (!was_new && write(newest->event, &one, sizeof(one)) < 0)
		exit(3);
	return 1;
}

static size_t mutex_newest_poll_and_take(void *self, uint64_t *value, size_t most)
{
	struct mutex_newest *newest = self;
	uint64_t count;
	int was_new;

	(void)most;
	sleep_in(newest->set);
	(void)!read(newest->event, &count, sizeof(count));
	(void)pthread_mutex_lock(&newest->mutex);
	was_new = newest->is_new;
	newest->is_new = 0;
	*value = was_new ? newest->value : *value;
	(void)pthread_mutex_unlock(&newest->mutex);
	return was_new != 0;
}

const struct loop_contender mutex_watch_contender = {
	.about = {.name = "mutex and eventfd, epoll"},
	.create = mutex_newest_create,
	.destroy = mutex_newest_destroy,
	.enqueue = mutex_newest_write,
	.poll_and_take = mutex_newest_poll_and_take,
};
