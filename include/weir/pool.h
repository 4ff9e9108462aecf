/*
 * pool.h - a work-stealing pool of worker threads that runs small tasks.
 *
 * Use it to run continuations and short computations. Not for code that blocks: a task that sleeps holds a worker; start an
 * asynchronous operation instead and submit the rest as a task from its completion.
 *
 * | call                | threads        | progress  | blocks on          | allocates | signal-safe |
 * |---------------------|----------------|-----------|--------------------|-----------|-------------|
 * | weir_pool_create    | any            | system    | thread creation    | yes       | no          |
 * | weir_pool_destroy   | one, last      | blocking  | tasks under way    | no        | no          |
 * | weir_pool_submit    | any            | lock-free | nothing            | no (1)    | no          |
 * | weir_pool_help      | any            | lock-free + the tasks it runs | nothing | no | no         |
 * | weir_pool_threads   | any            | wait-free | nothing            | no        | yes         |
 *
 * (1) A worker's own deque may grow; when there is no memory the task goes through the shared inbox instead.
 * Ordering: what was written before weir_pool_submit is visible to the task.
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

/* Runs once per submission. It may submit tasks, itself included, and may free the memory that holds the task. */
typedef void weir_task_fn(weir_task *task);

/* Embed it in your own struct; the pool never allocates one. Set run; the rest is the pool's from submit until run is called. */
struct weir_task {
	weir_task_fn *run;
	void *next; /* private */
};

enum { WEIR_POOL_MAX_THREADS = 1024 };

struct weir_pool_options {
	size_t struct_size; /* sizeof(struct weir_pool_options) */
	size_t threads;     /* workers; 0: one per online processor. See WEIR_POOL_NO_THREADS */
	uint32_t flags;
	const char *name; /* threads are named NAME-0, NAME-1, ...; NULL: "weir" */
	const weir_allocator *allocator;
};
enum { WEIR_POOL_NO_THREADS = 1 }; /* flags: no workers at all; tasks run in weir_pool_help() */

/* options may be NULL. WEIR_INVALID_ARGUMENT, WEIR_RESOURCE_EXHAUSTED (memory, or the system gave no threads). @since 0.1 */
WEIR_API enum weir_status weir_pool_create(const struct weir_pool_options *options, weir_pool **out, weir_error *error);
/*
 * Runs what is still submitted, then ends the workers and waits for them. Not from a worker of this pool
 * (WEIR_FAILED_PRECONDITION). NULL: WEIR_OK. @since 0.1
 */
WEIR_API enum weir_status weir_pool_destroy(weir_pool *pool, weir_error *error);

/* Hands the task over; a worker that sleeps is woken. WEIR_INVALID_ARGUMENT: NULL, or run not set. @since 0.1 */
WEIR_API enum weir_status weir_pool_submit(weir_pool *pool, weir_task *task);
/*
 * Runs up to `budget` tasks on the caller's thread, for event loops and for callers who wait. Returns how many it ran; 0 means
 * that nothing was there to run at some moment during the call. @since 0.1
 */
WEIR_API size_t weir_pool_help(weir_pool *pool, size_t budget);
/* The number of workers. @since 0.1 */
WEIR_API size_t weir_pool_threads(const weir_pool *pool);

WEIR_END_DECLS

#endif
