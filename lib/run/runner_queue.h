/*
 * runner_queue.h - what a queue runner knows of the queue that it is bound to.
 */
#ifndef WEIRI_RUN_RUNNER_QUEUE_H
#define WEIRI_RUN_RUNNER_QUEUE_H

#include <weir/dump.h>
#include <weir/queue_runner.h>

/*
 * The calling thread announces that it feeds the queue, where the runner was bound to it (`close` is what a bind sets). NULL: it was not, or
 * there is no memory, which is no reason not to work.
 */
weir_queue_announcement *weiri_runner_announce(weir_queue_runner_close_fn *close, void *queue, const char *runner_name);

#endif
