/*
 * worker.c - finding tasks, and sleeping when there are none.
 *
 * Algorithm. A worker's own tasks are in its deque, and it runs the newest first, for the sake of
 * the caches. Tasks of other threads are in the inbox. A worker that finds neither steals the
 * oldest task of another worker. Once in TURN tasks it first looks at the tasks of other threads,
 * or at its own oldest task, so a task that submits itself again and again starves no other task.
 *
 * Waking. A submitter wakes a sleeping worker only if no worker is searching, since a searcher will
 * find the task. Without this rule every submit to a half-idle pool would be a system call. In
 * return, the last searcher that found a task wakes another worker if there is more to do. A search
 * counts for at most SEARCH_TRUST_NS, so that a stalled searcher (preempted, or stopped by a
 * debugger) does not keep other workers asleep.
 *
 * Source. The rule for waking is that of the Go scheduler (Vyukov, "Scalable Go scheduler design",
 * 2012: spinning threads). Asymmetric fences are known inside the deque (Ladan-Mozes, Lee and
 * Vyukov, SPAA 2011). Here they serve waking: submitters and searchers have light fences. And a
 * searcher is trusted only for a bounded time. We know of no publication of either in such a pool.
 *
 * Invariant I1: a task that no thread is running or moving is in exactly one deque, or in the
 *   inbox.
 * Pairs (deque.c and inbox.c hand over the tasks themselves)
 *   F1  announce or pass_search_on: a task put or taken; light fence; searching and idle.waiters
 *   F2  sleep_until_task: searching - 1 and idle.waiters + 1; heavy fence; all places
 *   F3  pass_search_on: searching - 1; heavy fence; all places
 *
 * No task waits while a worker sleeps, if no thread stalls for longer than SEARCH_TRUST_NS. Let X
 * announce task T.
 *  (a) X saw no waiter. Then each worker that goes to sleep later finds T, by F1 and F2.
 *  (b) X saw a waiter but no search. Then X notifies, so a worker wakes and becomes a searcher, or
 *      a worker's second look found T (eventcount.c).
 *  (c) X saw a waiter and a search. Let S be the next worker, in the modification order of
 *      `searching`, that brings it to 0. X did not see that change, so by F1 with F2 or F3, S sees
 *      T after it (or T was taken). If S found nothing, it looks again in sleep_until_task(). If S
 *      found another task, then in pass_search_on() it wakes a worker for T; or it sees no sleeper,
 *      and then (a) holds for workers that go to sleep later.
 * If a worker that is woken for T finds another task first, it finds that task as a searcher, and
 * so passes the search on.
 * With stalled threads: T waits only if the worker that was woken for it, or that is searching,
 * stalls before it takes T. Then the next submit, a helper, or a worker that ends its task finds T.
 *
 * Progress: next_task and announce are lock-free: the search starts over only if another thread
 *   took a task.
 * Checked: tests/test_pool.c (plain, TSan, ASan); stress/model/check_pool.c.
 */
#include "run/worker.h"

#include <weir/time.h>

#include "reclaim/record.h"

#if defined(WEIRI_UNDER_MODEL)
/*
 * stress/model: a second look multiplies the executions, and shows nothing that one look does not.
 */
enum { SEARCH_ROUNDS = 1 };
#else
enum { SEARCH_ROUNDS = 32 }; /* looks at everything before going to sleep */
#endif
enum {
	TURN = 64,          /* a power of two */
	SEARCH_PAUSES = 16, /* between two looks */
	SEARCH_TRUST_NS = 1000000
};

void weiri_pool_enter(struct weiri_pool_place *place, const weir_pool *pool, struct weiri_worker *worker)
{
	place->worker = worker;
	weiri_mark_begin(&place->mark, WEIRI_MARK_POOL, pool);
}

void weiri_pool_leave(struct weiri_pool_place *place)
{
	weiri_mark_end(&place->mark);
}

struct weiri_pool_place *weiri_pool_place_here(const weir_pool *pool)
{
	struct weiri_mark *mark = weiri_mark_of(WEIRI_MARK_POOL, pool);

	return mark != NULL ? WEIRI_CONTAINER_OF(mark, struct weiri_pool_place, mark) : NULL;
}

/* xorshift32 (Marsaglia 2003). */
static uint32_t next_random(uint32_t *state)
{
	uint32_t x = *state != 0 ? *state : (uint32_t)(uintptr_t)state | 1u;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	*state = x;
	return x;
}

static weir_task *steal_from(struct weiri_worker *victim, bool *contended)
{
	void *item;

	switch (weiri_deque_steal(&victim->deque, &item)) {
	case WEIRI_STEAL_TAKEN: return item;
	case WEIRI_STEAL_LOST: *contended = true; return NULL;
	case WEIRI_STEAL_EMPTY: break;
	}
	return NULL;
}

static weir_task *steal(weir_pool *pool, uint32_t *random)
{
	size_t count = pool->thread_count;
	bool contended = count != 0;

	while (contended) {
		size_t first = next_random(random) % count;

		contended = false;
		for (size_t i = 0; i < count; i++) {
			size_t index = first + i < count ? first + i : first + i - count;
			weir_task *task = steal_from(&pool->workers[index], &contended);

			if (task != NULL)
				return task;
		}
	}
	return NULL;
}

/* Looks into the inbox and every deque, including the caller's own. */
static weir_task *look_everywhere(weir_pool *pool, uint32_t *random)
{
	bool moved = false;
	weir_task *task = weiri_inbox_take(&pool->inbox, next_random(random), &moved);

	if (WEIRI_UNLIKELY(moved))
		weiri_pool_announce(pool);
	return task != NULL ? task : steal(pool, random);
}

/* Returns the task that this worker should run for the sake of fairness, or NULL. */
static WEIRI_COLD weir_task *take_turn(struct weiri_worker *worker)
{
	bool contended;

	if ((worker->ticks / TURN) % 2 == 0)
		return look_everywhere(worker->pool, &worker->random);
	return steal_from(worker, &contended);
}

static weir_task *own_task(struct weiri_worker *worker)
{
	weir_task *task = NULL;

	if (WEIRI_UNLIKELY(++worker->ticks % TURN == 0))
		task = take_turn(worker);
	return task != NULL ? task : weiri_deque_take(&worker->deque);
}

weir_task *weiri_pool_next_task(weir_pool *pool, struct weiri_worker *worker)
{
	weir_task *task = worker != NULL ? own_task(worker) : NULL;
	struct weiri_own *own;
	uint32_t without;

	if (task != NULL)
		return task;
	if (worker != NULL)
		return look_everywhere(pool, &worker->random);
	own = weiri_own_mine();
	if (own != NULL)
		return look_everywhere(pool, &own->helper);
	/* [relaxed] a number for draws, of helpers that have no record to keep one in. With the same one again and
	   again, they would pass over the same tasks. */
	without = 2 * weiri_fetch_add_relaxed(&pool->helped, 1) + 1;
	return look_everywhere(pool, &without);
}

static bool search_is_on(weir_pool *pool)
{
	/* [relaxed] orders nothing; F1 keeps it after the caller's earlier accesses. */
	if (weiri_load_relaxed(&pool->searching) == 0)
		return false;
	/*
	 * [relaxed] a stale time wakes at most one worker too many; a newer time belongs to a newer
	 * search.
	 */
	return weir_now_ns() - weiri_load_relaxed(&pool->search_began) < SEARCH_TRUST_NS;
}

void weiri_pool_announce(weir_pool *pool)
{
	/*
	 * [light fence F1] the task is stored; now look for searchers and sleepers: Dekker with F2 and
	 * F3.
	 */
	weiri_fence_light();
	/*
	 * [relaxed] as in weiri_eventcount_notify(), which looks again. This look avoids reading the
	 * clock while all workers are busy.
	 */
	if (weiri_load_relaxed(&pool->idle.waiters) != 0 && !search_is_on(pool))
		weiri_eventcount_notify(&pool->idle, 1);
}

bool weiri_pool_has_rest(const weir_pool *pool)
{
	const struct weiri_pool_place *place = weiri_pool_place_here(pool);

	/* [relaxed] a hint */
	return place != NULL && place->worker != NULL && weiri_load_relaxed(&pool->idle.waiters) != 0;
}

static void begin_search(weir_pool *pool)
{
	/* [relaxed] a hint for search_is_on(). */
	weiri_store_relaxed(&pool->search_began, weir_now_ns());
	/* [relaxed] publishes nothing: if a thread misses the count, it wakes a worker needlessly. */
	(void)weiri_fetch_add_relaxed(&pool->searching, 1);
}

static void end_search(weir_pool *pool)
{
	/* [relaxed] ordered by the fences F2 and F3 after it. */
	(void)weiri_fetch_sub_relaxed(&pool->searching, 1);
}

/*
 * Returns true if there may be a task for another worker. A task of the inbox is moved to the deque
 * of this worker, from which other workers can steal it.
 */
static bool offer_another_task(struct weiri_worker *worker)
{
	weir_pool *pool = worker->pool;
	bool moved = false;
	weir_task *task = weiri_inbox_take(&pool->inbox, next_random(&worker->random), &moved);

	if (task != NULL) {
		if (!weiri_deque_push(&worker->deque, task))
			weiri_inbox_put(&pool->inbox, task);
		return true;
	}
	for (size_t i = 0; i < pool->thread_count; i++) {
		if (weiri_deque_size_approx(&pool->workers[i].deque) != 0)
			return true;
	}
	return moved;
}

/*
 * Called by a worker that has stopped searching because it found a task. Wakes another worker if
 * there are more tasks.
 */
static void pass_search_on(struct weiri_worker *worker)
{
	weir_pool *pool = worker->pool;

	/* [light fence F1] a task was taken; now look for searchers and sleepers: Dekker with F2. */
	weiri_fence_light();
	/* [relaxed] kept in order by F1. */
	if (weiri_load_relaxed(&pool->idle.waiters) == 0 || search_is_on(pool))
		return;
	/* [heavy fence F3] no longer searching; now look for tasks: Dekker with F1 in announce(). */
	if (!weiri_fence_heavy() || offer_another_task(worker))
		weiri_eventcount_notify(&pool->idle, 1);
}

static weir_task *search(struct weiri_worker *worker)
{
	weir_task *task = NULL;

	begin_search(worker->pool);
	for (int round = 0; round < SEARCH_ROUNDS && task == NULL; round++) {
		for (int i = 0; round != 0 && i < SEARCH_PAUSES; i++)
			weiri_pause();
		task = look_everywhere(worker->pool, &worker->random);
	}
	end_search(worker->pool);
	if (task != NULL)
		pass_search_on(worker);
	return task;
}

static bool stopping(weir_pool *pool)
{
	/*
	 * [relaxed] after the heavy fence F2. If the look that follows overlooks a task,
	 * weir_pool_destroy() runs it.
	 */
	return weiri_load_relaxed(&pool->stopping) != 0;
}

enum outcome { FOUND, WOKEN, ENDED };

/*
 * Sleeps unless a second look finds a task or the pool is stopping. Returns FOUND with a task in
 * *task, WOKEN, or ENDED if the worker must end.
 */
static enum outcome sleep_until_task(struct weiri_worker *worker, weir_task **task)
{
	weir_pool *pool = worker->pool;
	/*
	 * [heavy fence F2] in prepare: counted as asleep, not as searching; now look again: Dekker with
	 * F1 in announce().
	 */
	struct weiri_eventcount_key key = weiri_eventcount_prepare(&pool->idle);
	bool ending = stopping(pool);

	*task = look_everywhere(pool, &worker->random);
	if (*task == NULL && !ending) {
		(void)weiri_eventcount_wait(&pool->idle, key, WEIR_NO_DEADLINE);
		return WOKEN;
	}
	weiri_eventcount_cancel(&pool->idle);
	if (*task == NULL)
		return ENDED;
	pass_search_on(worker);
	return FOUND;
}

/* Returns a task for a worker whose own deque is empty, or NULL if the worker must end. */
static weir_task *wait_for_task(struct weiri_worker *worker)
{
	weir_task *task = search(worker);

	while (task == NULL) {
		enum outcome outcome = sleep_until_task(worker, &task);

		if (outcome == ENDED)
			return NULL;
		if (outcome == WOKEN)
			task = search(worker);
	}
	return task;
}

void weiri_worker_run(struct weiri_worker *worker)
{
	struct weiri_pool_place place;
	weir_task *task;

	weiri_pool_enter(&place, worker->pool, worker);
	while ((task = own_task(worker)) != NULL || (task = wait_for_task(worker)) != NULL)
		task->run(task);
	weiri_pool_leave(&place);
}
