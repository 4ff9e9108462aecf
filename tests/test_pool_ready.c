/*
 * test_pool_ready.c - the descriptor of a pool without workers: readable exactly while tasks wait.
 */
#include <criterion/criterion.h>

#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <weir/pool.h>

#include "failing_allocator.h"
#include "base/asymmetric.h"
#include "base/atomic.h"
#include "refuse_membarrier.h"

static weir_pool *idle_pool(const weir_allocator *allocator)
{
	struct weir_pool_options options = {WEIR_POOL_OPTIONS_INIT, .flags = WEIR_POOL_NO_THREADS, .allocator = allocator};
	weir_pool *pool = NULL;

	cr_assert_eq(weir_pool_create(&options, &pool, NULL), WEIR_OK);
	return pool;
}

static int descriptor_of(weir_pool *pool)
{
	int fd = -1;
	weir_error error;

	cr_assert_eq(weir_pool_readable_fd(pool, &fd, &error), WEIR_OK, "%s", error.message);
	return fd;
}

static int is_readable(int fd)
{
	struct pollfd pollfd = {fd, POLLIN, 0};

	return poll(&pollfd, 1, 0) == 1;
}

struct job {
	weir_task task; /* first */
	weir_pool *pool;
	int again;
	int seen_readable; /* -1: not run */
	int fd;
};

static void run_job(weir_task *task)
{
	struct job *job = (struct job *)(void *)task;

	job->seen_readable = is_readable(job->fd);
	if (job->again-- > 0)
		(void)weir_pool_submit(job->pool, task);
}

Test(pool_ready, readable_while_a_task_waits)
{
	weir_pool *pool = idle_pool(NULL);
	int fd = descriptor_of(pool);
	struct job jobs[2];

	cr_expect_eq(descriptor_of(pool), fd, "a second request gives the same");
	for (int i = 0; i < 2; i++)
		jobs[i] = (struct job){{run_job, NULL}, pool, 0, -1, fd};
	cr_expect_not(is_readable(fd));
	cr_assert_eq(weir_pool_submit(pool, &jobs[0].task), WEIR_OK);
	cr_expect(is_readable(fd));
	cr_assert_eq(weir_pool_submit(pool, &jobs[1].task), WEIR_OK);
	cr_expect_eq(weir_pool_help(pool, 1), 1);
	cr_expect(is_readable(fd), "one is left");
	cr_expect_eq(weir_pool_help(pool, 1), 1);
	cr_expect_not(is_readable(fd));
	cr_expect_eq(jobs[0].seen_readable, 1, "while the first ran, the second waited");
	cr_expect_eq(jobs[1].seen_readable, 0, "while the last runs, none waits");
	/* A task that submits itself. */
	jobs[0].again = 2;
	cr_assert_eq(weir_pool_submit(pool, &jobs[0].task), WEIR_OK);
	for (int i = 0; i < 3; i++) {
		cr_expect(is_readable(fd));
		cr_expect_eq(weir_pool_help(pool, 1), 1);
	}
	cr_expect_not(is_readable(fd));
	cr_expect_eq(weir_pool_help(pool, 1), 0);
	cr_assert_eq(weir_pool_destroy(pool, NULL), WEIR_OK);
}

Test(pool_ready, tasks_from_before_the_request_count)
{
	weir_pool *pool = idle_pool(NULL);
	struct job job = {{run_job, NULL}, pool, 0, -1, -1};

	cr_assert_eq(weir_pool_submit(pool, &job.task), WEIR_OK);
	job.fd = descriptor_of(pool);
	cr_expect(is_readable(job.fd));
	cr_expect_eq(weir_pool_help(pool, SIZE_MAX), 1);
	cr_expect_not(is_readable(job.fd));
	cr_assert_eq(weir_pool_destroy(pool, NULL), WEIR_OK);
}

Test(pool_ready, a_pool_with_workers_has_none)
{
	struct weir_pool_options options = {WEIR_POOL_OPTIONS_INIT, .threads = 1};
	weir_pool *pool;
	weir_error error;
	int fd = -1;

	cr_assert_eq(weir_pool_create(&options, &pool, NULL), WEIR_OK);
	cr_expect_eq(weir_pool_readable_fd(pool, &fd, &error), WEIR_FAILED_PRECONDITION);
	cr_expect_eq(weir_pool_readable_fd(NULL, &fd, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_pool_readable_fd(pool, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(fd, -1);
	cr_assert_eq(weir_pool_destroy(pool, NULL), WEIR_OK);
}

/* Whoever submits may already run without fences, so a descriptor could miss a task. */
static int ask_where_membarrier_is_refused_late(void)
{
	weir_pool *pool = idle_pool(NULL);
	weir_error error;
	int fd = -1;

	if (weiri_load_relaxed(&weiri_fence_asymmetric) == 0 || !refuse_membarrier())
		return SANDBOX_NOT_HERE;
	if (weir_pool_readable_fd(pool, &fd, &error) != WEIR_FAILED_PRECONDITION || fd != -1)
		return 1;
	if (strstr(error.message, "membarrier(2) was granted and is refused now") == NULL)
		return 2;
	return weir_pool_destroy(pool, NULL) == WEIR_OK ? SANDBOX_HELD : 3;
}

Test(pool_ready, no_descriptor_where_membarrier_is_refused_late)
{
	in_a_sandbox(ask_where_membarrier_is_refused_late);
}

enum { MANY = 2000, SUBMITTERS = 2 };

struct submitter {
	weir_pool *pool;
	struct job *jobs;
};

static void *submit_many(void *context)
{
	const struct submitter *submitter = context;

	for (int i = 0; i < MANY; i++)
		(void)weir_pool_submit(submitter->pool, &submitter->jobs[i].task);
	return NULL;
}

static void count_job(weir_task *task)
{
	((struct job *)(void *)task)->seen_readable = 1;
}

/* A loop that sleeps in poll() finds all that other threads submit. */
Test(pool_ready, a_poller_misses_no_task)
{
	static struct job jobs[SUBMITTERS][MANY];
	weir_pool *pool = idle_pool(NULL);
	struct pollfd pollfd = {descriptor_of(pool), POLLIN, 0};
	struct submitter submitters[SUBMITTERS];
	pthread_t threads[SUBMITTERS];
	size_t done = 0;

	for (int i = 0; i < SUBMITTERS; i++) {
		for (int k = 0; k < MANY; k++)
			jobs[i][k] = (struct job){{count_job, NULL}, pool, 0, 0, -1};
		submitters[i] = (struct submitter){pool, jobs[i]};
		cr_assert_eq(pthread_create(&threads[i], NULL, submit_many, &submitters[i]), 0);
	}
	while (done < (size_t)SUBMITTERS * MANY) {
		cr_assert_eq(poll(&pollfd, 1, 100000), 1, "%zu of %d tasks were found", done, SUBMITTERS * MANY);
		done += weir_pool_help(pool, 7);
	}
	for (int i = 0; i < SUBMITTERS; i++)
		cr_assert_eq(pthread_join(threads[i], NULL), 0);
	(void)weir_pool_help(pool, SIZE_MAX);
	cr_expect_not(is_readable(pollfd.fd));
	cr_expect_eq(done, (size_t)SUBMITTERS * MANY);
	cr_assert_eq(weir_pool_destroy(pool, NULL), WEIR_OK);
}

static enum weir_status request_one(const weir_allocator *allocator, void *context)
{
	struct weir_pool_options options = {WEIR_POOL_OPTIONS_INIT, .flags = WEIR_POOL_NO_THREADS, .allocator = allocator};
	weir_pool *pool;
	int fd;
	enum weir_status status = weir_pool_create(&options, &pool, NULL);

	(void)context;
	if (status != WEIR_OK)
		return status;
	status = weir_pool_readable_fd(pool, &fd, NULL);
	cr_assert_eq(weir_pool_destroy(pool, NULL), WEIR_OK);
	return status;
}

Test(pool_ready, each_allocation_may_fail)
{
	cr_expect_gt(fail_each_allocation(request_one, NULL), 2);
}
