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
 * | weir_pool_submit    | any            | lock-free | nothing (1)        | no (1)    | no          |
 * | weir_pool_help      | any            | lock-free + the tasks it runs | nothing | no | no         |
 * | weir_pool_threads   | any            | wait-free | nothing            | no        | yes         |
 *
 * (1) When more tasks wait than ever before, the submitting worker's deque, or the inbox of all other threads, grows through the
 * allocator. When there is no memory the task goes where none is needed: submitting never fails for lack of it.
 * Tasks run in no particular order, but none is passed over for ever. Ordering: what was written before weir_pool_submit is
 * visible to the task. A worker that is stopped (by a debugger, say) keeps the task that it runs and no other.
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
	const char *name; /* threads are named NAME-0, NAME-1, ..., NAME cut to fit 15 bytes in all; NULL: "weir" */
	const weir_allocator *allocator;
};
enum { WEIR_POOL_NO_THREADS = 1 }; /* flags: no workers at all; tasks run in weir_pool_help() */

/*
 * options may be NULL. The workers block all signals. WEIR_INVALID_ARGUMENT (out NULL, more than WEIR_POOL_MAX_THREADS, threads
 * together with WEIR_POOL_NO_THREADS, unknown flag, bad struct_size), WEIR_RESOURCE_EXHAUSTED (memory, or the system gave no
 * threads).
 * @since 0.1
 */
WEIR_API enum weir_status weir_pool_create(const struct weir_pool_options *options, weir_pool **out, weir_error *error);
/*
 * Runs what is still submitted, what those tasks submit included, then ends the workers and waits for them. From now on only
 * tasks of the pool may use it. WEIR_FAILED_PRECONDITION, and nothing happens: called by such a task. NULL: WEIR_OK.
 * @since 0.1
 */
WEIR_API enum weir_status weir_pool_destroy(weir_pool *pool, weir_error *error);

/*
 * Hands the task over; if all workers sleep, one is woken. *task must not be submitted again before run has been called.
 * WEIR_INVALID_ARGUMENT: NULL, or run not set.
 * @since 0.1
 */
WEIR_API enum weir_status weir_pool_submit(weir_pool *pool, weir_task *task);
/*
 * Runs up to `budget` tasks on the caller's thread, for event loops and for callers who wait. Returns how many it ran. Fewer than
 * `budget` means that every task whose submission ended before the last look was run or taken by some thread. A task may call it.
 * NULL: 0.
 * @since 0.1
 */
WEIR_API size_t weir_pool_help(weir_pool *pool, size_t budget);
/* The number of workers; 0 for NULL. @since 0.1 */
WEIR_API size_t weir_pool_threads(const weir_pool *pool);

WEIR_END_DECLS

#endif
