/*
 * announce.h - the threads that announced that they feed or drain a queue.
 */
#ifndef WEIRI_QUEUE_ANNOUNCE_H
#define WEIRI_QUEUE_ANNOUNCE_H

#include <weir/announce.h>

#include "sync/list.h"

enum { WEIRI_ANNOUNCED_AS_SIZE = 32 };

/*
 * One announcement. It is on the queue's list until it is withdrawn. Then it is freed when no
 * section can see it, or with the queue.
 */
struct weir_queue_announcement {
	struct weiri_list_node node;
	_Atomic(uint32_t) withdrawn;
	/* Constant. */
	weir_queue *queue;
	enum weir_queue_role role;
	uint32_t thread; /* the system's number */
	char as[WEIRI_ANNOUNCED_AS_SIZE];
	weir_allocator allocator;
};

/* The number of announcements that are not withdrawn. */
size_t weiri_queue_announced(struct weiri_record *record, weir_queue *queue);
/* The next announcement that is not withdrawn, starting from NULL; as weiri_list_next(). */
weir_queue_announcement *weiri_announced_next(struct weiri_scope *scope, weir_queue *queue,
                                              const weir_queue_announcement *after);
/* With the queue, when every announcement is withdrawn. */
void weiri_announced_free(weir_queue *queue);

#endif
