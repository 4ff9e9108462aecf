/*
 * worker.h - the contents of a pool: its workers, and how a thread finds the next task.
 */
#ifndef WEIRI_WORKER_H
#define WEIRI_WORKER_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/pool.h>

#include "base/compiler.h"
#include "run/deque.h"
#include "run/gate.h"
#include "run/mark.h"
#include "run/inbox.h"
#include "sync/eventcount.h"

struct weiri_pool_ready;

struct weiri_worker {
	struct weiri_deque deque;
	weir_pool *pool; /* constant */
	size_t index;    /* constant: the index in pool->workers */
	/* this worker only */
	unsigned ticks;
	uint32_t random;
	/* pool_create and pool_destroy only */
	pthread_t thread;
};

struct weir_pool {
	struct weiri_worker *workers; /* constant */
	size_t thread_count;          /* constant */
	size_t processors;            /* constant: that the creator may use */
	weir_allocator allocator;     /* constant */
	struct weiri_inbox inbox;
	WEIRI_ALIGNED_APART struct weiri_eventcount idle; /* workers with nothing to do sleep here */
	_Atomic(uint32_t) searching;    /* workers that look for a task and will look once more before they sleep */
	_Atomic(uint64_t) search_began; /* when the latest of these searches began; weir_now_ns() */
	_Atomic(uint32_t) stopping;     /* 1: a worker that finds nothing ends */
	_Atomic(uint32_t) helped;       /* how often a thread without a record looked for a task */
	struct weiri_gate submissions;  /* those of run/pool_submission.h are inside */
	_Atomic(uint32_t) holders;      /* runs that may submit at any moment (run/pool_submission.h) */
	_Atomic(struct weiri_pool_ready *) ready; /* the newest descriptor; NULL: never requested (pool_ready.c) */
};

/*
 * Records that a thread runs tasks of a pool, as a worker or as a helper (worker is NULL). The
 * record is on the stack of the thread.
 */
struct weiri_pool_place {
	struct weiri_mark mark; /* of the pool */
	struct weiri_worker *worker;
};

void weiri_pool_enter(struct weiri_pool_place *place, const weir_pool *pool, struct weiri_worker *worker);
void weiri_pool_leave(struct weiri_pool_place *place);
/* Returns the innermost place of this thread in `pool`, or NULL. */
struct weiri_pool_place *weiri_pool_place_here(const weir_pool *pool);

/*
 * Must be called after a task was put into a deque or the inbox. Ensures that a worker runs the
 * task, even if all workers are asleep.
 */
void weiri_pool_announce(weir_pool *pool);
/*
 * Returns true if the caller is a worker, and another worker of the pool sleeps: then, as far as the caller
 * can see, no task waits for a worker, and a task that goes on keeps no other one from running.
 */
bool weiri_pool_has_rest(const weir_pool *pool);
/*
 * Returns the next task for this thread, or NULL if the call saw the inbox and every deque empty.
 * worker: the worker of the calling thread, or NULL for a helper. Never waits.
 */
weir_task *weiri_pool_next_task(weir_pool *pool, struct weiri_worker *worker);
/*
 * The main function of a worker's thread: runs tasks until the pool is stopping and no task is
 * left.
 */
void weiri_worker_run(struct weiri_worker *worker);

#endif
