/*
 * queue_list.h - a list of queues for the same tuples, and what is known about an item before one
 * of the queues is chosen.
 */
#ifndef WEIRI_QUEUE_LIST_H
#define WEIRI_QUEUE_LIST_H

#include "tuples/components.h"

struct weir_tensor_queue_list {
	weir_allocator allocator;
	size_t queue_count;
	size_t count;                        /* of components */
	char name[96];                       /* "a|b|c", truncated if longer */
	weir_tensor_queue **queues;          /* behind the components */
	struct weiri_component components[]; /* common to all queues; `known` is that of the first queue */
};

#endif
