/*
 * waiting.c - see waiting.h.
 */
#include "waiting.h"

#include <stdio.h>

static void describe_queue(const void *structure, char *text, size_t size)
{
	const weir_queue *queue = structure;

	(void)snprintf(text, size, "%zu of %zu inside, %s", weir_queue_size_approx(queue), weir_queue_capacity(queue),
	               weir_queue_closed(queue) ? "closed" : "open");
}

struct stress_object stress_queue_object(const char *name, const weir_queue *queue)
{
	return (struct stress_object){"queue", name, {"an item", "room"}, describe_queue, queue};
}
