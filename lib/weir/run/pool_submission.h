/*
 * pool_submission.h - a submission that may still be under way when its task has run.
 *
 * Once a task is in the pool, another thread may run it, and what the task was a part of may end. Its
 * owner then destroys the pool, while the thread that submitted the task is still about to wake a
 * worker. Where the owner cannot know of that thread, the submission is counted in the pool, and
 * weir_pool_destroy() waits for it.
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

#endif
