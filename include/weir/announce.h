/*
 * announce.h - a thread declares that it feeds or drains a queue, for weir_dump() and debuggers.
 *
 * | call                | threads | progress              | blocks on | allocates | signal-safe |
 * |---------------------|---------|-----------------------|-----------|-----------|-------------|
 * | weir_queue_announce | any     | lock-free + allocator | nothing   | yes       | no          |
 * | weir_queue_withdraw | any     | lock-free             | nothing   | no        | no          |
 */
#ifndef WEIR_ANNOUNCE_H
#define WEIR_ANNOUNCE_H

#include <stdint.h>
#include <weir/queue.h>
#include <weir/status.h>

WEIR_BEGIN_DECLS

enum weir_queue_role {
	WEIR_QUEUE_PRODUCER = 1, /* enqueues items */
	WEIR_QUEUE_CONSUMER = 2  /* dequeues items */
};

typedef struct weir_queue_announcement weir_queue_announcement;

/*
 * Declares that the calling thread is a producer or a consumer of the queue, for weir_dump() and
 * the debugger; nothing else depends on it. `as` (copied, cut to 31 bytes; may be NULL) describes
 * its purpose. *out must be withdrawn before the queue is destroyed: until then
 * weir_queue_destroy() returns WEIR_FAILED_PRECONDITION. Threads of a queue runner that is bound to
 * a queue are announced automatically. Errors: WEIR_INVALID_ARGUMENT (NULL, unknown role),
 * WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_queue_announce(weir_queue *queue, enum weir_queue_role role,
                                              const char *as, weir_queue_announcement **out,
                                              weir_error *error);
/* Withdraws an announcement; once, by any thread. Accepts NULL. @since 0.1 */
WEIR_API void weir_queue_withdraw(weir_queue_announcement *announcement);

WEIR_END_DECLS

#endif
