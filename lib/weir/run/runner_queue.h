/*
 * runner_queue.h - what a queue runner knows about the queue that it is bound to, and memory that it
 * keeps for the contexts of its steps.
 */
#ifndef WEIRI_RUN_RUNNER_QUEUE_H
#define WEIRI_RUN_RUNNER_QUEUE_H

#include <weir/announce.h>
#include <weir/queue_runner.h>

#include "base/compiler.h"

/*
 * Announces the calling thread as a producer of the queue, if the runner was bound to a queue
 * (`close` is then the function that the bind has set). Returns NULL if the runner was not bound,
 * or if there is no memory. The run continues in either case.
 */
weir_queue_announcement *weiri_runner_announce(weir_queue_runner_close_fn *close, void *queue, const char *runner_name);

/*
 * Creates a runner that owns `kept`, `size` bytes of the allocator of the options: the contexts of
 * its steps. They are freed with the runner. If the call fails, they stay the caller's.
 */
WEIRI_SHARED enum weir_status weiri_queue_runner_create_keeping(const struct weir_queue_runner_options *options,
                                                                void *kept, size_t size, weir_queue_runner **out,
                                                                weir_error *error);

#endif
