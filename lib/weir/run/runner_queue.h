/*
 * runner_queue.h - what a queue runner knows about the queue that it is bound to.
 */
#ifndef WEIRI_RUN_RUNNER_QUEUE_H
#define WEIRI_RUN_RUNNER_QUEUE_H

#include <weir/announce.h>
#include <weir/queue_runner.h>

/*
 * Announces that the calling thread feeds the queue, if the runner was bound to it (`close` is the
 * function that a bind sets). NULL: it was not bound, or there is no memory; the run continues in
 * either case.
 */
weir_queue_announcement *weiri_runner_announce(weir_queue_runner_close_fn *close, void *queue, const char *runner_name);

#endif
