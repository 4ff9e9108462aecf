/*
 * pool_ready.c - a file descriptor that is readable while tasks wait for weir_pool_help().
 *
 * Only for pools without workers. In others the workers take the tasks, and a descriptor would tell
 * of tasks that are gone when its poller looks. Without workers no thread has a deque, so all tasks
 * that wait are in the inbox.
 *
 * Algorithm. The ready descriptor (sync/ready_fd.h) shows whether the inbox has a task. It is made at
 * the first request. From then on each submission, and each look of weir_pool_help(), settles it.
 *
 * Invariants
 *   R1  no change of the inbox is missed: if the thread that made it does not settle after it, the
 *       requester saw the change. The requester publishes the ready descriptor, runs the heavy fence,
 *       and settles. A thread that changes the inbox runs a light fence and reads the pointer. So
 *       either it finds the ready descriptor; or its change precedes the heavy fence
 *   R2  a ready descriptor stays until the pool is destroyed, because the caller has its descriptor
 * Pairs
 *   P1  publication -> settle: the fields of the ready descriptor
 *   F1  of ready_fd.h: the fence in weiri_pool_settle_ready()
 * Fork: as in queue/readiness.c: the child skips the ready descriptors from before the fork.
 * Progress: lock-free. If a thread stalls between its put and the settle, the descriptor stays as it
 *   was until another call settles.
 * Checked: tests/test_pool_ready.c; stress/model/check_readiness.c.
 */
#include "run/pool_ready.h"

#include <stdalign.h>

#include "base/asymmetric.h"
#include "base/error.h"
#include "base/memory.h"
#include "sync/ready_fd.h"

struct weiri_pool_ready {
	struct weiri_ready_fd ready_fd;
	struct weiri_pool_ready *older; /* from before a fork */
};

static bool has_task(void *pool)
{
	return weiri_inbox_has_task(&((weir_pool *)pool)->inbox);
}

static bool is_current(const struct weiri_pool_ready *ready)
{
	return ready != NULL && weiri_eventfd_is_ours(&ready->ready_fd.event);
}

void weiri_pool_settle_ready(weir_pool *pool)
{
	/* [P1 acquire] pairs with get(). */
	struct weiri_pool_ready *ready = weiri_load_acquire(&pool->ready);

	if (!is_current(ready))
		return;
	weiri_fence_seq_cst(); /* F1 */
	weiri_ready_fd_settle(&ready->ready_fd, has_task, pool);
}

static void ready_free(weir_pool *pool, struct weiri_pool_ready *ready)
{
	weiri_ready_fd_fini(&ready->ready_fd);
	weiri_release(&pool->allocator, ready, sizeof(*ready), alignof(struct weiri_pool_ready));
}

static struct weiri_pool_ready *ready_create(weir_pool *pool)
{
	struct weiri_pool_ready *ready =
		weiri_allocate_zeroed(&pool->allocator, sizeof(*ready), alignof(struct weiri_pool_ready));

	if (ready == NULL)
		return NULL;
	weiri_ready_fd_init(&ready->ready_fd);
	if (ready->ready_fd.event.fd >= 0)
		return ready;
	ready_free(pool, ready);
	return NULL;
}

/*
 * Returns the ready descriptor of this process; creates it if there is none. NULL: there is no
 * memory or no file descriptor left.
 */
static struct weiri_pool_ready *get(weir_pool *pool)
{
	/* [P1 acquire] as in weiri_pool_settle_ready(). */
	struct weiri_pool_ready *there = weiri_load_acquire(&pool->ready), *made;

	if (is_current(there))
		return there;
	made = ready_create(pool);
	if (made == NULL)
		return NULL;
	made->older = there;
	/* [P1 release] the fields. Those of one that another thread published first are acquired by the settle. */
	if (weiri_cas_release(&pool->ready, &there, made))
		return made;
	ready_free(pool, made);
	return there;
}

enum weir_status weir_pool_readable_fd(weir_pool *pool, int *fd, weir_error *error)
{
	struct weiri_pool_ready *ready;

	if (pool == NULL || fd == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "pool: %s is NULL", pool == NULL ? "pool" : "fd");
	if (pool->thread_count != 0)
		return weiri_fail(error, WEIR_FAILED_PRECONDITION,
		                  "pool: it has %zu worker%s to take the tasks, and no descriptor", pool->thread_count,
		                  WEIRI_S(pool->thread_count));
	ready = get(pool);
	if (ready == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED,
		                  "pool: no memory or no file descriptor left for its readiness");
	if (!weiri_fence_heavy()) /* R1 */
		return weiri_fail(error, WEIR_FAILED_PRECONDITION,
		                  "pool: membarrier(2) was granted and is refused now: tasks could be overlooked");
	weiri_pool_settle_ready(pool);
	*fd = ready->ready_fd.event.fd;
	return WEIR_OK;
}

void weiri_pool_put_out(weir_pool *pool)
{
	/* [relaxed] no other thread uses the pool. */
	struct weiri_pool_ready *ready = weiri_load_relaxed(&pool->ready);

	while (ready != NULL) {
		struct weiri_pool_ready *older = ready->older;

		ready_free(pool, ready);
		ready = older;
	}
}
