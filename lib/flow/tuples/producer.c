/*
 * producer.c - the producers, consumers and queue runners of a tensor queue. They are those of the
 * pointer queue inside it.
 */
#include <weir/flow/tensor_queue.h>

#include "tuples/tuple.h"

enum weir_status weir_tensor_queue_announce(weir_tensor_queue *queue, enum weir_queue_role role, const char *as,
                                            weir_queue_announcement **out, weir_error *error)
{
	return weir_queue_announce(queue != NULL ? queue->queue : NULL, role, as, out, error);
}

void weir_tensor_queue_bind_runner(weir_tensor_queue *queue, struct weir_queue_runner_options *options)
{
	weir_queue_runner_bind(options, queue->queue);
}
