/*
 * readiness.c - file descriptors that are readable while a dequeue, or an enqueue, would not wait.
 *
 * Algorithm. Each direction has a ready descriptor (sync/ready_fd.h), created when it is first
 * requested. It shows weiri_queue_can_give() or weiri_queue_can_take_in(). Calls of both kinds may
 * change both answers, so every call has to settle both ready descriptors. But a call that changed
 * the store reads the list of the other side in any case, to see whether there are waiters. So the
 * first ready descriptor appends a bell to both lists: an entry that is never completed, and stays.
 * The lists are then always occupied, so each such call goes through weiri_queue_pump(), which
 * settles. As long as no descriptor was requested, calls read nothing that they would not read
 * anyway.
 *
 * Source. We know of no publication of level-triggered descriptors for a lock-free queue.
 *
 * Invariants
 *   R1  no change of the store is missed: if the thread that made a change does not settle after
 *       it, the thread that published or requested the ready descriptor saw the change in a look.
 *       The requester appends bells, publishes the ready descriptor, posts on both sides, and
 *       settles. A thread that changes the store checks whether a side is posted, reads the list,
 *       and then looks for the ready descriptor (a pump that changes more does so before its last
 *       look at the lists). So either this thread finds the posted side and the ready descriptor,
 *       and settles, or the settle of the requester sees the change (sync/waiters.h). A requester
 *       that finds a ready descriptor cannot know how far its creator has come, so it posts and
 *       settles as well
 *   R2  each change of an answer is followed by a pump on the same thread: an item is enqueued,
 *       dequeued or returned; the turn is released; the queue is closed; an admitted enqueue gives
 *       up. So B3 of ready_fd.h holds for the queue
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

enum { SIDES = 2 };

struct bell {
	struct weiri_pending_entry entry; /* of no operation */
	weir_allocator allocator;
};

struct weiri_readiness {
	struct weiri_ready_fd ready_fd;
	struct bell *bells[SIDES];     /* NULL: not created, or left to the list to free */
	struct weiri_readiness *older; /* from before a fork */
};

/* The arguments of a look. */
struct view {
	struct weiri_record *record;
	weir_queue *queue;
};

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

static void settle_one(struct weiri_record *record, weir_queue *queue, _Atomic(struct weiri_readiness *) *place,
                       weiri_ready_fd_look_fn *look)
{
	/* [acquire] the ready descriptor's fields; pairs with publish(). */
	struct weiri_readiness *readiness = weiri_load_acquire(place);
	struct view view = {record, queue};

	if (readiness != NULL && weiri_eventfd_is_ours(&readiness->ready_fd.event))
		weiri_ready_fd_settle(&readiness->ready_fd, look, &view);
}

void weiri_queue_settle(struct weiri_record *record, weir_queue *queue)
{
	settle_one(record, queue, &queue->readable, can_give);
	settle_one(record, queue, &queue->writable, can_take_in);
}

/* -- creating ready descriptors ---------------------------------------------------------------- */

static void bell_free(struct bell *bell)
{
	weir_allocator allocator = bell->allocator;

	weiri_release(&allocator, bell, sizeof(*bell), alignof(struct bell));
}

/* Frees a bell that was removed from its list. No walker can see it any longer. */
static void bell_reclaim(struct weiri_retired *retired)
{
	struct weiri_list_node *node = WEIRI_CONTAINER_OF(retired, struct weiri_list_node, retired);

	bell_free(WEIRI_CONTAINER_OF(weiri_pending_entry_of(node), struct bell, entry));
}

static struct bell *bell_create(weir_queue *queue)
{
	struct bell *bell = weiri_allocate_zeroed(&queue->allocator, sizeof(*bell), alignof(struct bell));

	if (bell == NULL)
		return NULL;
	weiri_list_node_init(&bell->entry.node, sizeof(*bell), bell_reclaim);
	bell->allocator = queue->allocator;
	return bell;
}

/* Frees a ready descriptor whose bells are on no list, or whose queue is being destroyed. */
static void readiness_free(weir_queue *queue, struct weiri_readiness *readiness)
{
	for (int i = 0; i < SIDES; i++) {
		if (readiness->bells[i] != NULL)
			bell_free(readiness->bells[i]);
	}
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
	for (int i = 0; i < SIDES; i++)
		readiness->bells[i] = bell_create(queue);
	if (readiness->ready_fd.event.fd >= 0 && readiness->bells[0] != NULL && readiness->bells[1] != NULL)
		return readiness;
	readiness_free(queue, readiness);
	return NULL;
}

static struct weiri_waiters *side(weir_queue *queue, int i)
{
	return i == 0 ? &queue->producers : &queue->consumers;
}

static void hang_bells(struct weiri_record *record, weir_queue *queue, struct weiri_readiness *readiness)
{
	struct weiri_scope scope = weiri_scope_enter(record);

	for (int i = 0; i < SIDES; i++)
		weiri_list_append(&scope, &side(queue, i)->list, &readiness->bells[i]->entry.node);
	weiri_scope_leave(&scope);
}

/*
 * Removes `readiness`, because another ready descriptor was published first. The lists free the
 * bells when no walker can see them any longer.
 */
static void take_back(struct weiri_record *record, weir_queue *queue, struct weiri_readiness *readiness)
{
	struct weiri_scope scope = weiri_scope_enter(record);

	for (int i = 0; i < SIDES; i++) {
		(void)weiri_list_remove(&scope, &side(queue, i)->list, &readiness->bells[i]->entry.node);
		readiness->bells[i] = NULL;
	}
	weiri_scope_leave(&scope);
	readiness_free(queue, readiness);
}

static bool is_current(const struct weiri_readiness *readiness)
{
	return readiness != NULL && weiri_eventfd_is_ours(&readiness->ready_fd.event);
}

/*
 * Returns the ready descriptor of this process; creates it if there is none. NULL: there is no
 * memory or no file descriptor left.
 */
static struct weiri_readiness *get(struct weiri_record *record, weir_queue *queue,
                                   _Atomic(struct weiri_readiness *) *place)
{
	/* [acquire] as in settle_one(). */
	struct weiri_readiness *there = weiri_load_acquire(place), *made;

	if (is_current(there))
		return there;
	made = readiness_create(queue);
	if (made == NULL)
		return NULL;
	hang_bells(record, queue, made);
	made->older = there;
	/*
	 * [release] the fields of the ready descriptor. If the CAS fails, another thread of this
	 * process was first; the settle that follows acquires what that thread published.
	 */
	if (weiri_cas_release(place, &there, made))
		return made;
	take_back(record, queue, made);
	return there;
}

static enum weir_status request(weir_queue *queue, _Atomic(struct weiri_readiness *) *place, int *fd, weir_error *error)
{
	struct weiri_record *record = weiri_record_get();
	struct weiri_readiness *readiness = record != NULL ? get(record, queue, place) : NULL;

	if (readiness == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED,
		                  "queue \"%s\": no memory or no file descriptor left for its readiness", queue->name);
	if (!weiri_waiters_post(&queue->producers) || !weiri_waiters_post(&queue->consumers)) /* R1 */
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
