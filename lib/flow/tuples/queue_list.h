/*
 * queue_list.h - several queues for the same tuples, and what is known about an item before one
 * queue is chosen.
 */
#ifndef WEIRI_QUEUE_LIST_H
#define WEIRI_QUEUE_LIST_H

#include "tuples/components.h"

struct weir_tensor_queue_list {
	weir_allocator allocator;
	size_t queue_count;
	size_t count;                        /* components */
	char name[96];                       /* "a|b|c", cut when longer */
	weir_tensor_queue **queues;          /* behind the components */
	struct weiri_component components[]; /* common to all queues; `known` is the first queue's */
};

#endif
