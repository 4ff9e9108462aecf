/*
 * pool.c - creating and destroying a pool, and its public calls. The algorithm is in worker.c,
 * deque.c and inbox.c.
 */
#include <weir/pool.h>
#include <weir/time.h>

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/asymmetric.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/uncancelled.h"
#include "run/pool_ready.h"
#include "run/pool_submission.h"
#include "run/worker.h"
#include "sync/delivery.h"

#if defined(WEIRI_UNDER_MODEL) /* stress/model: less to restore before each execution */
enum { FIRST_DEQUE_CAPACITY = 2 };
#else
enum { FIRST_DEQUE_CAPACITY = 256 };
#endif

static size_t processors(void)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN);

	if (online < 1)
		return 1;
	return online < WEIR_POOL_MAX_THREADS ? (size_t)online : WEIR_POOL_MAX_THREADS;
}

/* On which this thread may run. */
static size_t usable_processors(void)
{
#if defined(WEIRI_UNDER_MODEL)
	return 2; /* stress/model: the same executions on each machine */
#else
	cpu_set_t set;

	/* It fails on a machine with more processors than the set has room for. */
	return sched_getaffinity(0, sizeof(set), &set) == 0 ? (size_t)CPU_COUNT(&set) : processors();
#endif
}

static enum weir_status check_options(struct weir_pool_options *options, weir_error *error)
{
	enum weir_status status = weiri_options_flags("pool", options->flags, WEIR_POOL_NO_THREADS, error);

	if (status != WEIR_OK)
		return status;
	if (options->threads > WEIR_POOL_MAX_THREADS)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "pool: %zu threads, expected at most %d", options->threads,
		                  WEIR_POOL_MAX_THREADS);
	if ((options->flags & WEIR_POOL_NO_THREADS) == 0) {
		if (options->threads == 0)
			options->threads = processors();
	} else if (options->threads != 0) {
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "pool: %zu thread%s with WEIR_POOL_NO_THREADS",
		                  options->threads, WEIRI_S(options->threads));
	}
	if (options->name == NULL)
		options->name = "weir";
	return WEIR_OK;
}

static void release_workers(weir_pool *pool, size_t with_deques)
{
	for (size_t i = 0; i < with_deques; i++)
		weiri_deque_fini(&pool->workers[i].deque);
	weiri_release(&pool->allocator, pool->workers, pool->thread_count * sizeof(*pool->workers),
	              _Alignof(struct weiri_worker));
}

/* Returns false if there is no memory. */
static bool create_workers(weir_pool *pool)
{
	size_t count = pool->thread_count;

	if (count == 0)
		return true;
	pool->workers =
		weiri_allocate_zeroed(&pool->allocator, count * sizeof(*pool->workers), _Alignof(struct weiri_worker));
	if (pool->workers == NULL)
		return false;
	for (size_t i = 0; i < count; i++) {
		struct weiri_worker *worker = &pool->workers[i];

		worker->pool = pool;
		worker->index = i;
		if (!weiri_deque_init(&worker->deque, FIRST_DEQUE_CAPACITY, &pool->allocator)) {
			release_workers(pool, i);
			return false;
		}
	}
	return true;
}

/* Creates the pool without its threads. Returns NULL if there is no memory. */
static weir_pool *create_idle(const struct weir_pool_options *options)
{
	weir_allocator allocator = weiri_allocator_or_default(options->allocator);
	weir_pool *pool = weiri_allocate_zeroed(&allocator, sizeof(*pool), _Alignof(weir_pool));

	if (pool == NULL)
		return NULL;
	pool->allocator = allocator;
	pool->thread_count = options->threads;
	pool->processors = usable_processors();
	weiri_eventcount_init(&pool->idle);
	weiri_gate_init(&pool->submissions);
	if (!weiri_inbox_init(&pool->inbox, &pool->allocator))
		goto no_inbox;
	if (!create_workers(pool))
		goto no_workers;
	return pool;
no_workers:
	weiri_inbox_fini(&pool->inbox);
no_inbox:
	weiri_release(&allocator, pool, sizeof(*pool), _Alignof(weir_pool));
	return NULL;
}

static void *worker_main(void *argument)
{
	weiri_worker_run(argument);
	return NULL;
}

/*
 * Names the thread "NAME-index". NAME is cut so that the whole fits into the length that the system
 * keeps of a name.
 */
static void name_thread(pthread_t thread, const char *name, size_t index)
{
	char number[8];
	char full[16];
	int digits = snprintf(number, sizeof(number), "-%u", (unsigned)(index % 10000));

	(void)snprintf(full, sizeof(full), "%.*s%s", (int)sizeof(full) - 1 - digits, name, number);
	(void)pthread_setname_np(thread, full);
}

/*
 * Starts the workers and returns how many there are. Workers block all signals, so signals go to
 * the program's own threads. The kind of fence is decided first: while the process has one thread,
 * that takes a microsecond. Later the kernel waits for a grace period of its own, which was measured
 * at 7 to 23 ms, and the first worker would begin its first task so much later.
 */
static size_t start_workers(weir_pool *pool, const char *name)
{
	sigset_t all;
	sigset_t before;
	size_t started = 0;

	weiri_fence_setup();
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	while (started < pool->thread_count &&
	       pthread_create(&pool->workers[started].thread, NULL, worker_main, &pool->workers[started]) == 0) {
		name_thread(pool->workers[started].thread, name, started);
		started++;
	}
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return started;
}

/*
 * Runs the tasks that are left, and those of the runs that hold the pool, until no run does. The workers
 * have ended, so all tasks come to the inbox. Pairs
 *   F4  let_go: holders - 1; light fence; stopping and idle.waiters. Here, in prepare: stopping and
 *       idle.waiters + 1; heavy fence; holders
 *   P1  let_go -> the look that finds no holder: what the run did with the pool
 * The look at the inbox has F1 and F2 of worker.c.
 */
static void run_what_is_left(weir_pool *pool)
{
	for (;;) {
		/* [P1 acquire] pairs with weiri_pool_let_go(). Before the help: a run submits, and then lets go. */
		bool is_held = weiri_load_acquire(&pool->holders) != 0;
		struct weiri_eventcount_key key;

		if (weir_pool_help(pool, SIZE_MAX) != 0)
			continue;
		if (!is_held)
			return;
		weiri_deliver_due(); /* the end of a run may wait for a completion that is due on this thread */
		/* [heavy fence F4] in prepare */
		key = weiri_eventcount_prepare(&pool->idle);
		/* [relaxed] only to sleep or not; the loop acquires. */
		if (weiri_load_relaxed(&pool->holders) == 0 || weiri_inbox_has_task(&pool->inbox))
			weiri_eventcount_cancel(&pool->idle);
		else
			(void)weiri_eventcount_wait(&pool->idle, key, WEIR_NO_DEADLINE);
	}
}

/* Ends the first `count` workers, which run the remaining tasks, and releases all memory. */
static void stop_and_release(weir_pool *pool, size_t count)
{
	weir_allocator allocator = pool->allocator;

	/*
	 * [relaxed] publishes nothing: if a worker ends and overlooks a task, the task is run below.
	 * The light fence in notify_all orders this store before the look for sleepers: Dekker with F2
	 * in worker.c.
	 */
	weiri_store_relaxed(&pool->stopping, 1);
	weiri_eventcount_notify_all(&pool->idle);
	for (size_t i = 0; i < count; i++)
		weiri_thread_join(pool->workers[i].thread);
	run_what_is_left(pool);
	(void)weiri_gate_close(&pool->submissions);
	weiri_gate_wait(&pool->submissions); /* their tasks have run */
	for (size_t i = 0; i < pool->thread_count; i++)
		WEIR_ASSERT1(worker I1, weiri_deque_size_approx(&pool->workers[i].deque) == 0);
	release_workers(pool, pool->thread_count);
	weiri_inbox_fini(&pool->inbox);
	weiri_pool_put_out(pool);
	weiri_release(&allocator, pool, sizeof(*pool), _Alignof(weir_pool));
}

enum weir_status weir_pool_create(const struct weir_pool_options *given, weir_pool **out, weir_error *error)
{
	struct weir_pool_options options;
	enum weir_status status = weiri_options_read("pool", given, &options, sizeof(options), error);
	weir_pool *pool;
	size_t started;

	if (status == WEIR_OK)
		status = check_options(&options, error);
	if (status != WEIR_OK) {
		weiri_error_name(error, "pool", options.name);
		return status;
	}
	if (out == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "pool: out is NULL");
	pool = create_idle(&options);
	if (pool == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "pool \"%s\": no memory", options.name);
	started = start_workers(pool, options.name);
	if (started < options.threads) {
		stop_and_release(pool, started);
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "pool \"%s\": the system gave only %zu of %zu thread%s",
		                  options.name, started, options.threads, WEIRI_S(options.threads));
	}
	*out = pool;
	return WEIR_OK;
}

enum weir_status weir_pool_destroy(weir_pool *pool, weir_error *error)
{
	if (pool == NULL)
		return WEIR_OK;
	if (weiri_pool_place_here(pool) != NULL)
		return weiri_fail(error, WEIR_FAILED_PRECONDITION, "pool: destroy was called by a task of the same pool");
	stop_and_release(pool, pool->thread_count);
	return WEIR_OK;
}

enum weir_status weir_pool_submit(weir_pool *pool, weir_task *task)
{
	struct weiri_pool_place *place;

	if (pool == NULL || task == NULL || task->run == NULL)
		return WEIR_INVALID_ARGUMENT;
	place = weiri_pool_place_here(pool);
	if (place == NULL || place->worker == NULL || !weiri_deque_push(&place->worker->deque, task))
		weiri_inbox_put(&pool->inbox, task);
	weiri_pool_announce(pool);
	weiri_pool_settle(pool);
	return WEIR_OK;
}

void weiri_pool_submit_counted(weir_pool *pool, weir_task *task)
{
	/* It is closed when all tasks have run, so this one comes before. */
	bool is_counted = weiri_gate_enter(&pool->submissions);

	(void)weir_pool_submit(pool, task); /* fails only for invalid arguments */
	if (is_counted)
		weiri_gate_leave(&pool->submissions);
}

void weiri_pool_hold(weir_pool *pool)
{
	/* [relaxed] publishes nothing: whatever lets the owner destroy the pool comes after it. */
	(void)weiri_fetch_add_relaxed(&pool->holders, 1);
}

void weiri_pool_let_go(weir_pool *pool)
{
	/* It is closed only when nobody holds the pool. Inside, the pool stays although the last hold is gone. */
	bool is_inside = weiri_gate_enter(&pool->submissions);

	/* [P1 release] pairs with run_what_is_left() */
	if (weiri_fetch_sub_release(&pool->holders, 1) == 1) {
		/* [light fence F4] the last hold is gone; now look for the thread that destroys the pool */
		weiri_fence_light();
		/* [relaxed] kept in order by F4. Otherwise only workers sleep, for which there is nothing new. */
		if (weiri_load_relaxed(&pool->stopping) != 0)
			weiri_eventcount_notify_all(&pool->idle);
	}
	if (is_inside)
		weiri_gate_leave(&pool->submissions);
}

static size_t help(weir_pool *pool, struct weiri_worker *worker, size_t budget)
{
	size_t done = 0;
	weir_task *task;

	while (done < budget) {
		task = weiri_pool_next_task(pool, worker);
		weiri_pool_settle(pool);
		if (task == NULL)
			break;
		task->run(task);
		done++;
	}
	return done;
}

size_t weir_pool_help(weir_pool *pool, size_t budget)
{
	struct weiri_pool_place *here;
	struct weiri_pool_place place;
	size_t done;

	if (pool == NULL)
		return 0;
	here = weiri_pool_place_here(pool);
	if (here != NULL)
		return help(pool, here->worker, budget);
	weiri_pool_enter(&place, pool, NULL);
	done = help(pool, NULL, budget);
	weiri_pool_leave(&place);
	return done;
}

size_t weir_pool_thread_count(const weir_pool *pool)
{
	return pool != NULL ? pool->thread_count : 0;
}
