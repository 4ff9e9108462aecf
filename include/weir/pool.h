/*
 * pool.h - a work-stealing pool of worker threads that runs small tasks.
 *
 * Use it to run continuations and short computations. A task should not block, because it then
 * holds a worker: start an asynchronous operation instead, and submit the rest as a task from its
 * completion.
 *
 * | call             | threads   | progress           | blocks on       | allocates | signal-safe |
 * |------------------|-----------|--------------------|-----------------|-----------|-------------|
 * | weir_pool_create | any       | system             | thread creation | yes       | no          |
 * | weir_pool_destroy | one, last | blocking          | tasks and runs under way | no | no        |
 * | weir_pool_submit | any       | lock-free          | nothing (1)     | no (1)    | no          |
 * | weir_pool_help   | any       | lock-free + the tasks it runs | nothing | no     | no          |
 * | weir_pool_readable_fd | any  | lock-free + system | nothing         | first time | no         |
 * | weir_pool_thread_count | any | wait-free          | nothing         | no        | yes         |
 *
 * (1) When more tasks wait than ever before, the deque of the submitting worker, or the inbox of
 *     all other threads, grows through the allocator. If there is no memory, the task goes where
 *     none is needed: submitting never fails for lack of memory.
 *
 * Tasks run in no particular order, but none is passed over for ever. A stalled worker keeps the
 * task that it runs and no other.
 *
 * Ordering. What a thread wrote before weir_pool_submit() is visible to the task.
 */
#ifndef WEIR_POOL_H
#define WEIR_POOL_H

#include <stddef.h>
#include <stdint.h>
#include <weir/alloc.h>
#include <weir/status.h>

WEIR_BEGIN_DECLS

typedef struct weir_pool weir_pool;
typedef struct weir_task weir_task;

/*
 * Runs once per submission. It may submit tasks, including this one, and may free the memory of the
 * task.
 */
typedef void weir_task_fn(weir_task *task);

/*
 * Embed it in your own struct; the pool never allocates one. Set run. From submit until run is
 * called, the rest belongs to the pool.
 */
struct weir_task {
	weir_task_fn *run;
	void *next; /* private */
};

enum weir_pool_limits { WEIR_POOL_MAX_THREADS = 1024 };

struct weir_pool_options {
	size_t struct_size; /* WEIR_POOL_OPTIONS_INIT sets it */
	size_t threads;     /* workers; 0: one per online processor. See WEIR_POOL_NO_THREADS */
	uint32_t flags;
	/* threads are named NAME-0, NAME-1, ..., with NAME cut to fit 15 bytes in all; NULL: "weir" */
	const char *name;
	const weir_allocator *allocator;
};
#define WEIR_POOL_OPTIONS_INIT WEIR_STRUCT_SIZE(struct weir_pool_options)
/* flags: no workers; tasks run in weir_pool_help() */
enum weir_pool_flags { WEIR_POOL_NO_THREADS = 1 };

/*
 * Creates a pool. options may be NULL. The workers block all signals. Errors: WEIR_INVALID_ARGUMENT
 * if out is NULL, threads exceeds WEIR_POOL_MAX_THREADS or is given together with
 * WEIR_POOL_NO_THREADS, a flag is unknown, or struct_size is wrong. WEIR_RESOURCE_EXHAUSTED
 * (memory, or the system gave no threads).
 * @since 0.1
 */
WEIR_API enum weir_status weir_pool_create(const struct weir_pool_options *options, weir_pool **out,
                                           weir_error *error);

/*
 * Runs all submitted tasks, and those that they submit, then ends the workers and waits for them.
 * It waits for runs in this pool that have not ended (weir/flow/callable.h), and runs their tasks,
 * and for calls of other threads that are submitting a task of a run or of a critical section.
 * From now on only these and tasks of the pool may use it. Accepts NULL. Errors:
 * WEIR_FAILED_PRECONDITION, and nothing happens, if called by such a task. A function that a run of this
 * pool calls on the run's own caller must not make this call: it would wait for itself.
 * @since 0.1
 */
WEIR_API enum weir_status weir_pool_destroy(weir_pool *pool, weir_error *error);

/*
 * Submits a task; if all workers sleep, one is woken. *task must not be submitted again before run
 * has been called. Errors: WEIR_INVALID_ARGUMENT if task is NULL or run is not set.
 * @since 0.1
 */
WEIR_API enum weir_status weir_pool_submit(weir_pool *pool, weir_task *task);

/*
 * Runs up to `budget` tasks on this thread, for event loops and for callers that wait. Returns the
 * number of tasks run. A result below `budget` means that some thread has run or taken every task
 * whose submission ended before this call looked last. A task may make this call. Returns 0 for
 * NULL.
 * @since 0.1
 */
WEIR_API size_t weir_pool_help(weir_pool *pool, size_t budget);
/*
 * Gives a level-triggered descriptor for poll(), select() or epoll, of a pool without workers: it is
 * readable (POLLIN) exactly while tasks wait for weir_pool_help(). So one thread can wait for tasks
 * and for other events together. When it is readable, call weir_pool_help(), and poll again. A result
 * of 0 then means that another thread was faster, or that its call has not returned yet.
 *
 * The pool owns the descriptor. It makes it at the first request; weir_pool_destroy() and exec close
 * it. Do not read, write or close it. From the first request on, each submission and each look for a
 * task pays a fence and some loads, and a system call if the answer changes. In the child of a fork
 * the descriptor no longer changes: request one of the child's own there.
 *
 * Errors: WEIR_INVALID_ARGUMENT (NULL). WEIR_RESOURCE_EXHAUSTED (memory or file descriptors).
 * WEIR_FAILED_PRECONDITION if the pool has workers, or Linux granted membarrier(2) earlier and
 * refuses it now.
 * @since 0.1
 */
WEIR_API enum weir_status weir_pool_readable_fd(weir_pool *pool, int *fd, weir_error *error);
/* The number of workers; 0 for NULL. @since 0.1 */
WEIR_API size_t weir_pool_thread_count(const weir_pool *pool);

WEIR_END_DECLS

#endif
