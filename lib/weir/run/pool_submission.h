/*
 * pool_submission.h - submissions of which the owner of the pool cannot know.
 *
 * Once a task is in the pool, another thread may run it, and what the task was a part of may end. Its
 * owner then destroys the pool, while the thread that submitted the task is still about to wake a
 * worker. Where the owner cannot know of that thread, the submission is counted in the pool, and
 * weir_pool_destroy() waits for it.
 *
 * A run whose call returned at its deadline may not have begun a submission that it will make: an
 * enqueue of another thread has claimed its dequeue, and is about to let it go on. Such a run holds
 * the pool until it ends. weir_pool_destroy() waits for its end, and runs its tasks.
 */
#ifndef WEIRI_POOL_SUBMISSION_H
#define WEIRI_POOL_SUBMISSION_H

#include <weir/pool.h>

#include "base/compiler.h"

/*
 * As weir_pool_submit() of a correct task. The caller only knows that the pool exists until the task
 * has run. Lock-free.
 */
WEIRI_SHARED void weiri_pool_submit_counted(weir_pool *pool, weir_task *task);

/*
 * The caller will submit tasks, at moments of which the pool's owner does not know, until it lets go.
 * The hold comes before the destroy begins, or is made by a task of the pool. Wait-free.
 */
WEIRI_SHARED void weiri_pool_hold(weir_pool *pool);
/* All tasks of the holder have run, or run now. It does not access the pool any more. Lock-free. */
WEIRI_SHARED void weiri_pool_let_go(weir_pool *pool);

#endif
