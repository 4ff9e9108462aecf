/*
 * announce.h - announcements: threads register with a queue as its producers or consumers.
 */
#ifndef WEIRI_QUEUE_ANNOUNCE_H
#define WEIRI_QUEUE_ANNOUNCE_H

#include <stdbool.h>
#include <weir/announce.h>

#include "base/compiler.h"
#include "sync/list.h"

enum { WEIRI_ANNOUNCED_AS_SIZE = 32 };

/*
 * One announcement. It stays on the queue's list until it is withdrawn. It is freed when no section
 * can see it any longer, or with the queue.
 */
struct weir_queue_announcement {
	struct weiri_list_node node;
	_Atomic(uint32_t) withdrawn;
	/* Constant. */
	weir_queue *queue;
	enum weir_queue_role role;
	uint32_t thread; /* the system's number of the thread */
	char as[WEIRI_ANNOUNCED_AS_SIZE];
	weir_allocator allocator;
};

/* Returns the number of announcements that are not withdrawn. */
size_t weiri_queue_announced(struct weiri_record *record, weir_queue *queue);
/* Returns true if a thread is announced as a producer of the queue; also if there is no memory to look. */
WEIRI_SHARED bool weiri_queue_is_fed(weir_queue *queue);
/*
 * Returns the next announcement after `after` that is not withdrawn, or NULL. after NULL: the
 * first. Use as weiri_list_next().
 */
weir_queue_announcement *weiri_announced_next(struct weiri_scope *scope, weir_queue *queue,
                                              const weir_queue_announcement *after);
/*
 * Frees the announcements that are left on the list. Called when the queue is freed; all of them
 * are withdrawn then.
 */
void weiri_announced_free(weir_queue *queue);

#endif
