/*
 * wakes.c - the ways in which the operating system lets a thread sleep until it is woken: futex,
 * eventfd, condition variable.
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rivals.h"

/* -- a bare futex: the number of wakes that are left; sleepers wait until it is not 0 ---------- */

struct futex_gate {
	_Atomic(uint32_t) wakes;
	_Atomic(uint32_t) sleepers;
};

static void *futex_create(void)
{
	struct futex_gate *gate = aligned_alloc(64, 64);

	if (gate == NULL)
		exit(3);
	atomic_init(&gate->wakes, 0);
	atomic_init(&gate->sleepers, 0);
	return gate;
}

static void futex_wait(void *self)
{
	struct futex_gate *gate = self;
	uint32_t wakes = atomic_load_explicit(&gate->wakes, memory_order_acquire);

	for (;;) {
		if (wakes != 0) {
			if (atomic_compare_exchange_weak_explicit(&gate->wakes, &wakes, wakes - 1, memory_order_acquire,
			                                          memory_order_acquire))
				return;
			continue;
		}
		/*
		 * seq_cst: a sleeper announces itself, and the kernel then checks the word again. The waker
		 * counts the wake and then looks for sleepers.
		 */
		atomic_fetch_add_explicit(&gate->sleepers, 1, memory_order_seq_cst);
		(void)syscall(SYS_futex, &gate->wakes, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
		atomic_fetch_sub_explicit(&gate->sleepers, 1, memory_order_relaxed);
		wakes = atomic_load_explicit(&gate->wakes, memory_order_acquire);
	}
}

static void futex_wake(void *self)
{
	struct futex_gate *gate = self;

	atomic_fetch_add_explicit(&gate->wakes, 1, memory_order_seq_cst);
	if (atomic_load_explicit(&gate->sleepers, memory_order_seq_cst) != 0)
		(void)syscall(SYS_futex, &gate->wakes, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

const struct wake_contender futex_wake_contender = {
	.about = {.name = "bare futex", .lacks = "hands over no item"},
	.create = futex_create,
	.destroy = free,
	.wait = futex_wait,
	.wake = futex_wake,
};

/* -- eventfd as a semaphore -------------------------------------------------------------------- */

static void *eventfd_create(void)
{
	int *made = malloc(sizeof(*made));

	if (made == NULL || (*made = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC)) < 0)
		exit(3);
	return made;
}

static void eventfd_destroy(void *self)
{
	(void)close(*(int *)self);
	free(self);
}

static void eventfd_wait(void *self)
{
	eventfd_t value;

	while (eventfd_read(*(int *)self, &value) != 0) {
		if (errno != EINTR)
			exit(3);
	}
}

static void eventfd_wake(void *self)
{
	if (eventfd_write(*(int *)self, 1) != 0)
		exit(3);
}

const struct wake_contender eventfd_wake_contender = {
	.about = {.name = "eventfd", .lacks = "hands over no item"},
	.create = eventfd_create,
	.destroy = eventfd_destroy,
	.wait = eventfd_wait,
	.wake = eventfd_wake,
};

/* -- mutex and condition variable -------------------------------------------------------------- */

struct condition {
	pthread_mutex_t mutex;
	pthread_cond_t woken;
	unsigned wakes;
};

static void *condition_create(void)
{
	struct condition *condition = malloc(sizeof(*condition));

	if (condition == NULL)
		exit(3);
	(void)pthread_mutex_init(&condition->mutex, NULL);
	(void)pthread_cond_init(&condition->woken, NULL);
	condition->wakes = 0;
	return condition;
}

static void condition_wait(void *self)
{
	struct condition *condition = self;

	(void)pthread_mutex_lock(&condition->mutex);
	while (condition->wakes == 0)
		(void)pthread_cond_wait(&condition->woken, &condition->mutex);
	condition->wakes--;
	(void)pthread_mutex_unlock(&condition->mutex);
}

static void condition_wake(void *self)
{
	struct condition *condition = self;

	(void)pthread_mutex_lock(&condition->mutex);
	condition->wakes++;
	(void)pthread_mutex_unlock(&condition->mutex);
	(void)pthread_cond_signal(&condition->woken);
}

const struct wake_contender condition_wake_contender = {
	.about = {.name = "condition variable", .lacks = "hands over no item"},
	.create = condition_create,
	.destroy = free,
	.wait = condition_wait,
	.wake = condition_wake,
};
