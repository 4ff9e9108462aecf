/*
 * queue_runner_bind.c - queue runners for the queues of weir/queue.h.
 */
#include "run/runner_queue.h"

static void close_queue(void *queue, const weir_error *cause)
{
	(void)weir_queue_close(queue, WEIR_CLOSE_DRAIN, cause);
}

static void cancel_queue(void *queue, const weir_error *cause)
{
	(void)weir_queue_close(queue, WEIR_CLOSE_CANCEL, cause);
}

weir_queue_announcement *weiri_runner_announce(weir_queue_runner_close_fn *close, void *queue, const char *runner_name)
{
	weir_queue_announcement *announcement = NULL;

	if (close == close_queue)
		(void)weir_queue_announce(queue, WEIR_QUEUE_PRODUCER, runner_name, &announcement, NULL);
	return announcement;
}

void weir_queue_runner_bind(struct weir_queue_runner_options *options, weir_queue *queue)
{
	options->close = close_queue;
	options->cancel = cancel_queue;
	options->queue = queue;
	if (options->name == NULL)
		options->name = weir_queue_name(queue);
}
