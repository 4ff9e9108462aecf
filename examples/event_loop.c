/*
 * event_loop.c - one thread sleeps in poll(2) for a job in a queue or a newer configuration.
 *
 * Both have descriptors, which a program can poll together with its sockets. A readable descriptor
 * only says that a call is worthwhile. The call itself then returns an item, "drained", or nothing
 * because another thread was faster.
 */
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <weir/queue.h>
#include <weir/watch.h>

enum { JOBS = 2000, CHANGES = 300, PATIENCE_MS = 20000 };

static weir_queue *jobs;
static weir_var *config; /* version v holds v */
static int job_numbers[JOBS];
static weir_error error; /* used by the main thread */

struct loop {
	weir_watch *watch;
	struct pollfd fds[2]; /* for the queue of jobs and for the watch */
	int done, over;
	int64_t in_force;
};

/* Returns 1, and prints a message, unless the call succeeded. */
static int failed(const char *what, enum weir_status status, const weir_error *why)
{
	if (status != WEIR_OK)
		(void)fprintf(stderr, "%s: %s: %s\n", what, weir_status_name(status), why != NULL ? why->message : "");
	return status != WEIR_OK;
}

static void *send_jobs(void *unused)
{
	weir_error why;

	for (int i = 0; i < JOBS; i++) {
		job_numbers[i] = i;
		if (failed("send", weir_queue_enqueue(jobs, &job_numbers[i], WEIR_NO_DEADLINE, NULL, &why), &why))
			break;
	}
	(void)failed("close", weir_queue_close(jobs, WEIR_CLOSE_DRAIN, NULL), NULL);
	return unused;
}

static void *change_config(void *unused)
{
	weir_error why;

	for (int64_t i = 2; i <= CHANGES; i++) {
		weir_tensor *value;

		if (failed("make", weir_tensor_scalar_i64(i, &value), NULL))
			break;
		(void)failed("change", weir_var_assign(config, value, WEIR_NO_DEADLINE, NULL, &why), &why);
		weir_tensor_release(value);
	}
	return unused;
}

/* Takes a limited number of items without waiting, so that the other descriptor gets its turn. */
static int take_jobs(struct loop *loop)
{
	void *job;

	for (int i = 0; i < 64; i++) {
		enum weir_status status = weir_queue_try_dequeue(jobs, &job);

		if (status == WEIR_WOULD_BLOCK)
			return 1;
		/* drained; the descriptor stays readable, so do not poll it again */
		if (status == WEIR_OUT_OF_RANGE) {
			loop->fds[0].fd = -1;
			loop->over = 1;
			return 1;
		}
		if (failed("take a job", status, NULL) || *(const int *)job != loop->done)
			return 0;
		loop->done++;
	}
	return 1;
}

/* Takes the newest version; versions that were replaced meanwhile are skipped. */
static int take_config(struct loop *loop)
{
	weir_read read;
	enum weir_status status = weir_watch_try_take(loop->watch, &read);

	if (status == WEIR_WOULD_BLOCK)
		return 1;
	if (failed("take the configuration", status, NULL))
		return 0;
	loop->in_force = *(const int64_t *)weir_tensor_data(read.tensor);
	weir_read_release(&read);
	return 1;
}

/* Runs until all jobs are done and the last configuration is in force; returns 1 on success. */
static int run(struct loop *loop)
{
	while (!loop->over || loop->in_force != CHANGES) {
		if (poll(loop->fds, 2, PATIENCE_MS) <= 0)
			return 0;
		if (loop->fds[0].fd >= 0 && (loop->fds[0].revents & POLLIN) != 0 && !take_jobs(loop))
			return 0;
		if ((loop->fds[1].revents & POLLIN) != 0 && !take_config(loop))
			return 0;
	}
	return 1;
}

static int prepare(struct loop *loop)
{
	struct weir_queue_options queue = {WEIR_QUEUE_OPTIONS_INIT, .capacity = 16, .name = "jobs"};
	struct weir_var_options var = {WEIR_VAR_OPTIONS_INIT, .name = "config", .dtype = WEIR_I64};
	weir_tensor *first;

	if (failed("make", weir_tensor_scalar_i64(1, &first), NULL) ||
	    failed("queue", weir_queue_create(&queue, &jobs, &error), &error) ||
	    failed("variable", weir_var_create(first, &var, &config, &error), &error) ||
	    failed("watch", weir_watch_create(config, 0, &loop->watch, &error), &error) ||
	    failed("descriptor", weir_queue_readable_fd(jobs, &loop->fds[0].fd, &error), &error))
		return 0;
	weir_tensor_release(first);
	loop->fds[1].fd = weir_watch_fd(loop->watch);
	loop->fds[0].events = loop->fds[1].events = POLLIN;
	return 1;
}

int main(void)
{
	struct loop loop = {0};
	pthread_t sender, changer;
	int right;

	if (!prepare(&loop) || pthread_create(&sender, NULL, send_jobs, NULL) != 0 ||
	    pthread_create(&changer, NULL, change_config, NULL) != 0)
		return 1;
	right = run(&loop) && loop.done == JOBS;
	if (!right)
		/* otherwise the sender would wait for ever */
		(void)weir_queue_close(jobs, WEIR_CLOSE_CANCEL, NULL);
	(void)pthread_join(sender, NULL);
	(void)pthread_join(changer, NULL);
	printf("%d of %d jobs, configuration %" PRId64 " of %d\n", loop.done, JOBS, loop.in_force, CHANGES);
	/* must come first: a watched variable cannot be destroyed */
	weir_watch_destroy(loop.watch, NULL);
	return failed("variable", weir_var_destroy(config, NULL), NULL) ||
	       failed("queue", weir_queue_destroy(jobs, &error), &error) || !right;
}
