/*
 * queue_list.h - several queues for the same tuples, and what is known of an item before one of them is chosen.
 */
#ifndef WEIRI_QUEUE_LIST_H
#define WEIRI_QUEUE_LIST_H

#include "queue/components.h"

struct weir_tensor_queue_list {
	weir_allocator allocator;
	size_t queue_count;
	size_t count;                        /* components */
	char name[96];                       /* "a|b|c", cut when longer */
	weir_tensor_queue **queues;          /* behind the components */
	struct weiri_component components[]; /* what those of all queues have in common; `known` is the first's */
};

#endif
