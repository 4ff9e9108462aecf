/*
 * runner_queue.h - what a queue runner knows about the queue that it is bound to.
 */
#ifndef WEIRI_RUN_RUNNER_QUEUE_H
#define WEIRI_RUN_RUNNER_QUEUE_H

#include <weir/announce.h>
#include <weir/queue_runner.h>

/*
 * Announces the calling thread as a producer of the queue, if the runner was bound to a queue
 * (`close` is then the function that the bind has set). Returns NULL if the runner was not bound,
 * or if there is no memory. The run continues in either case.
 */
weir_queue_announcement *weiri_runner_announce(weir_queue_runner_close_fn *close, void *queue, const char *runner_name);

#endif
