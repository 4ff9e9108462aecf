/*
 * readiness.c - file descriptors that are readable while a dequeue, or an enqueue, would not wait.
 *
 * Algorithm. Each direction has a ready descriptor (sync/ready_fd.h), created when it is first
 * requested. It shows weiri_queue_can_give() or weiri_queue_can_take_in(). Calls of both kinds may
 * change both answers, so every call settles both ready descriptors. A call that changed the store
 * reads the word of the other side's waiters in any case (sync/waiters.h). So a request sets a bit
 * there, FOLLOWED, and a call that finds it settles. As long as no descriptor was requested, calls
 * read nothing that they would not read anyway.
 *
 * A call that put items in cannot have made a dequeue impossible, so it only raises the readable
 * descriptor: while that is lit, this is one load. In the same way, a dequeue raises the writable one.
 *
 * A call that took the last item yields before it settles (calls.c). Without that a poller that is
 * faster than its producers sleeps after every few items (weir-bench readiness).
 *
 * Source. We know of no publication of level-triggered descriptors for a lock-free queue.
 *
 * Invariants
 *   R1  no change of the store is missed: if the thread that made a change does not settle after
 *       it, the thread that published or requested the ready descriptor saw the change in a look.
 *       The requester publishes the ready descriptor, sets FOLLOWED on both sides, runs the heavy
 *       fence, and settles. A thread that changes the store runs a light fence and reads the word of
 *       a side (a pump that changes more does so after its last change). So either this thread finds
 *       FOLLOWED, and after its own fence the ready descriptor; or its change precedes the heavy
 *       fence, and the settle of the requester sees it. A requester that finds a ready descriptor
 *       cannot know how far its creator has come, so it does the same
 *   R2  each change of an answer is followed by a settle on the same thread: an item is enqueued,
 *       dequeued or returned; the turn is released; the queue is closed; an admitted enqueue gives
 *       up. So B3 of ready_fd.h holds for the queue. A try_ call that finds nothing, or no room,
 *       settles too, so that its thread does not find the descriptor readable for nothing again,
 *       unless a taker is stopped. An operation that another thread completed settles once more for
 *       its owner
 *   R3  a ready descriptor stays until the queue is destroyed, because the caller has its file
 *       descriptor
 * Fork: the child has the parent's file descriptors and must not change their counts. So it skips
 * the ready descriptors from before the fork, and its first request creates another one
 * (base/eventfd.h). The older ones are linked behind the newest.
 * Progress: lock-free. If a thread stalls between its change of the store and the settle, the
 *   descriptors stay as they were until another call settles; the same holds for operations that
 *   wait for the item itself.
 * Checked: stress/model/check_readiness.c, tests/test_queue_readiness.c.
 */
#include <stdalign.h>

#include "base/error.h"
#include "queue/operation.h"
#include "sync/ready_fd.h"

struct weiri_readiness {
	struct weiri_ready_fd ready_fd;
	struct weiri_readiness *older; /* from before a fork */
};

/* The arguments of a look. */
struct view {
	struct weiri_record *record;
	weir_queue *queue;
};

typedef void settle_fn(struct weiri_ready_fd *ready_fd, weiri_ready_fd_look_fn *look, void *context);

static bool can_give(void *context)
{
	const struct view *view = context;

	return weiri_queue_can_give(view->record, view->queue);
}

static bool can_take_in(void *context)
{
	const struct view *view = context;

	return weiri_queue_can_take_in(view->queue);
}

static bool is_current(const struct weiri_readiness *readiness)
{
	return readiness != NULL && weiri_eventfd_is_ours(&readiness->ready_fd.event);
}

static void raise(struct weiri_ready_fd *ready_fd, weiri_ready_fd_look_fn *look, void *context)
{
	weiri_ready_fd_raise(ready_fd, look, context);
}

/* Called after a seq_cst fence, if the caller has changed the condition. */
static WEIRI_ALWAYS_INLINE void settle_one(struct weiri_record *record, weir_queue *queue,
                                           _Atomic(struct weiri_readiness *) *place, settle_fn *settle,
                                           weiri_ready_fd_look_fn *look)
{
	/* [acquire] the ready descriptor's fields; pairs with publish(). */
	struct weiri_readiness *readiness = weiri_load_acquire(place);
	struct view view = {record, queue};

	if (is_current(readiness))
		settle(&readiness->ready_fd, look, &view);
}

static WEIRI_ALWAYS_INLINE void settle_both(struct weiri_record *record, weir_queue *queue, settle_fn *readable,
                                            settle_fn *writable)
{
	weiri_fence_seq_cst(); /* F1 of ready_fd.h; R1 */
	settle_one(record, queue, &queue->readable, readable, can_give);
	settle_one(record, queue, &queue->writable, writable, can_take_in);
}

void weiri_queue_settle_after_put(struct weiri_record *record, weir_queue *queue)
{
	settle_both(record, queue, raise, weiri_ready_fd_settle);
}

void weiri_queue_settle_after_take(struct weiri_record *record, weir_queue *queue)
{
	settle_both(record, queue, weiri_ready_fd_settle, raise);
}

void weiri_queue_settle(struct weiri_record *record, weir_queue *queue)
{
	/* Both sides are FOLLOWED or neither. */
	if ((weiri_waiters_flags(&queue->consumers) & WEIRI_WAITERS_FOLLOWED) != 0)
		settle_both(record, queue, weiri_ready_fd_settle, weiri_ready_fd_settle);
}

bool weiri_queue_shows_too_much(struct weiri_record *record, weir_queue *queue)
{
	/* [acquire] as in settle_one(). */
	const struct weiri_readiness *readiness = weiri_load_acquire(&queue->readable);

	return is_current(readiness) && !weiri_ready_fd_is_dark(&readiness->ready_fd) &&
	       !weiri_queue_can_give(record, queue);
}

/* After a call that found the condition of the ready descriptor in `place` false. */
static void settle_in_vain(struct weiri_record *record, weir_queue *queue, _Atomic(struct weiri_readiness *) *place,
                           weiri_ready_fd_look_fn *look)
{
	/* [acquire] as in settle_one(). */
	const struct weiri_readiness *readiness = weiri_load_acquire(place);

	if (WEIRI_LIKELY(!is_current(readiness)) || weiri_ready_fd_is_dark(&readiness->ready_fd))
		return;
	/* No fence: if the call has changed something, it settles once more, with the fence. */
	settle_one(record, queue, place, weiri_ready_fd_settle, look);
}

void weiri_queue_settle_found_empty(struct weiri_record *record, weir_queue *queue)
{
	settle_in_vain(record, queue, &queue->readable, can_give);
}

void weiri_queue_settle_found_full(struct weiri_record *record, weir_queue *queue)
{
	settle_in_vain(record, queue, &queue->writable, can_take_in);
}

/* -- creating ready descriptors ---------------------------------------------------------------- */

static void readiness_free(weir_queue *queue, struct weiri_readiness *readiness)
{
	weiri_ready_fd_fini(&readiness->ready_fd);
	weiri_release(&queue->allocator, readiness, sizeof(*readiness), alignof(struct weiri_readiness));
}

static struct weiri_readiness *readiness_create(weir_queue *queue)
{
	struct weiri_readiness *readiness =
		weiri_allocate_zeroed(&queue->allocator, sizeof(*readiness), alignof(struct weiri_readiness));

	if (readiness == NULL)
		return NULL;
	weiri_ready_fd_init(&readiness->ready_fd);
	if (readiness->ready_fd.event.fd >= 0)
		return readiness;
	readiness_free(queue, readiness);
	return NULL;
}

/*
 * Returns the ready descriptor of this process; creates it if there is none. NULL: there is no
 * memory or no file descriptor left.
 */
static struct weiri_readiness *get(weir_queue *queue, _Atomic(struct weiri_readiness *) *place)
{
	/* [acquire] as in settle_one(). */
	struct weiri_readiness *there = weiri_load_acquire(place), *made;

	if (is_current(there))
		return there;
	made = readiness_create(queue);
	if (made == NULL)
		return NULL;
	made->older = there;
	/*
	 * [release] the fields of the ready descriptor. [acquire] those of the one that another thread
	 * of this process published first.
	 */
	if (weiri_cas_release_or_acquire(place, &there, made))
		return made;
	readiness_free(queue, made);
	return there;
}

static enum weir_status request(weir_queue *queue, _Atomic(struct weiri_readiness *) *place, int *fd, weir_error *error)
{
	struct weiri_record *record = weiri_record_get();
	struct weiri_readiness *readiness = record != NULL ? get(queue, place) : NULL;

	if (readiness == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED,
		                  "queue \"%s\": no memory or no file descriptor left for its readiness", queue->name);
	weiri_waiters_follow(&queue->producers);
	weiri_waiters_follow(&queue->consumers);
	if (!weiri_fence_heavy()) /* R1 */
		return weiri_fail(error, WEIR_FAILED_PRECONDITION,
		                  "queue \"%s\": membarrier(2) was granted and is refused now: readiness could be overlooked",
		                  queue->name);
	weiri_queue_settle(record, queue);
	*fd = readiness->ready_fd.event.fd;
	return WEIR_OK;
}

enum weir_status weir_queue_readable_fd(weir_queue *queue, int *fd, weir_error *error)
{
	if (queue == NULL || fd == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s is NULL", queue == NULL ? "queue" : "fd");
	return request(queue, &queue->readable, fd, error);
}

enum weir_status weir_queue_writable_fd(weir_queue *queue, int *fd, weir_error *error)
{
	if (queue == NULL || fd == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s is NULL", queue == NULL ? "queue" : "fd");
	return request(queue, &queue->writable, fd, error);
}

static void put_out(weir_queue *queue, struct weiri_readiness *readiness)
{
	while (readiness != NULL) {
		struct weiri_readiness *older = readiness->older;

		readiness_free(queue, readiness);
		readiness = older;
	}
}

void weiri_queue_put_out(weir_queue *queue)
{
	/* [relaxed] no other thread uses the queue. */
	put_out(queue, weiri_load_relaxed(&queue->readable));
	put_out(queue, weiri_load_relaxed(&queue->writable));
}
