/*
 * readiness.c - file descriptors that are readable while a dequeue, or an enqueue, would not wait.
 *
 * Each direction has a beacon (sync/beacon.h), made when it is first asked for; what it shows is weiri_queue_can_give() or
 * weiri_queue_can_take_in(). Both may be changed by both kinds of call, so every call has to settle it. A call that changed the store looks
 * at the list of the other side anyway, to see whether somebody waits: with the first beacon an entry that nobody serves, a bell,
 * goes on both lists and stays. The lists are then always occupied, so each such call goes through weiri_queue_pump(),
 * and that settles. While nobody has asked for a descriptor there is nothing new to look at.
 *
 * Invariants
 *   R1  a change of the store that no settle follows was seen by a look of the one who published the beacon, or asked for it. He appends
 *       bells, publishes, posts on both sides, and settles; who changes the store looks whether a side is posted, at the list, and then for
 *       the beacon (a pump that changes more does so before its last look at the lists). So either he finds both, and settles, or
 *       that settle sees his change (sync/waiters.h). Who finds a beacon there cannot know how far its maker has come: he
 *       posts and settles as well
 *   R2  whatever changes an answer is followed by a pump on the same thread: an item that goes in, comes out, is given back; the turn
 *       given; a close; an admitted enqueue that leaves. So B3 of beacon.h holds of the queue
 *   R3  a beacon stays until the queue is destroyed: the descriptor was given to the caller
 * The child of a fork has the parent's descriptors, whose counts it must not move: beacons of before the fork are passed over there, and
 *   the first request makes another (base/eventfd.h). The older ones are kept behind the newest.
 * Progress: lock-free. A thread that is stopped between its change of the store and the settle leaves the descriptors as they were, until
 *   another call settles; as with those who wait for the item itself.
 * Checked: stress/model/check_readiness.c, tests/test_queue_readiness.c.
 */
#include <stdalign.h>

#include "base/error.h"
#include "queue/op.h"
#include "sync/beacon.h"

enum { SIDES = 2 };

struct weiri_readiness {
	struct weiri_beacon beacon;
	weir_queue_op *bells[SIDES];
	struct weiri_readiness *older; /* of before a fork */
};

/* What a look needs. */
struct view {
	struct weiri_record *record;
	weir_queue *queue;
};

static int can_give(void *context)
{
	const struct view *view = context;

	return weiri_queue_can_give(view->record, view->queue);
}

static int can_take_in(void *context)
{
	const struct view *view = context;

	return weiri_queue_can_take_in(view->queue);
}

static void settle_one(struct weiri_record *record, weir_queue *queue, _Atomic(struct weiri_readiness *) *place,
                       weiri_beacon_look_fn *look)
{
	/* [acquire] the beacon's fields; pairs with publish(). */
	struct weiri_readiness *readiness = weiri_load_acquire(place);
	struct view view = {record, queue};

	if (readiness != NULL && weiri_eventfd_is_ours(&readiness->beacon.event))
		weiri_beacon_settle(&readiness->beacon, look, &view);
}

void weiri_queue_settle(struct weiri_record *record, weir_queue *queue)
{
	settle_one(record, queue, &queue->readable, can_give);
	settle_one(record, queue, &queue->writable, can_take_in);
}

/* -- making them -------------------------------------------------------------------------------------------------------------- */

/* Not on the lists, or with the queue at its end. */
static void readiness_free(weir_queue *queue, struct weiri_readiness *readiness)
{
	for (int i = 0; i < SIDES; i++) {
		if (readiness->bells[i] == NULL)
			continue;
		weiri_op_release(readiness->bells[i]);
		weiri_op_release(readiness->bells[i]); /* the list's */
	}
	weiri_beacon_fini(&readiness->beacon);
	weiri_release(&queue->allocator, readiness, sizeof(*readiness), alignof(struct weiri_readiness));
}

static struct weiri_readiness *readiness_create(weir_queue *queue)
{
	struct weiri_readiness *readiness =
		weiri_allocate_zeroed(&queue->allocator, sizeof(*readiness), alignof(struct weiri_readiness));

	if (readiness == NULL)
		return NULL;
	weiri_beacon_init(&readiness->beacon);
	for (int i = 0; i < SIDES; i++)
		readiness->bells[i] = weiri_op_create_bell(queue);
	if (readiness->beacon.event.fd >= 0 && readiness->bells[0] != NULL && readiness->bells[1] != NULL)
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
		weiri_list_append(&scope, &side(queue, i)->list, &readiness->bells[i]->node);
	weiri_scope_leave(&scope);
}

/* Another was published first. The lists let go of the bells when no walker can see them any more. */
static void take_back(struct weiri_record *record, weir_queue *queue, struct weiri_readiness *readiness)
{
	struct weiri_scope scope = weiri_scope_enter(record);

	for (int i = 0; i < SIDES; i++) {
		(void)weiri_list_remove(&scope, &side(queue, i)->list, &readiness->bells[i]->node);
		weiri_op_release(readiness->bells[i]);
		readiness->bells[i] = NULL;
	}
	weiri_scope_leave(&scope);
	readiness_free(queue, readiness);
}

static int is_current(const struct weiri_readiness *readiness)
{
	return readiness != NULL && weiri_eventfd_is_ours(&readiness->beacon.event);
}

/* The one of this process, made if need be. NULL: no memory, or no descriptor. */
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
	/* [release] its fields. A failure: another thread of this process was first; the settle to come acquires what it published. */
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
	if (!(weiri_waiters_post(&queue->producers) & weiri_waiters_post(&queue->consumers))) /* R1 */
		return weiri_fail(error, WEIR_FAILED_PRECONDITION,
		                  "queue \"%s\": membarrier(2) was granted and is refused now: readiness could be overlooked",
		                  queue->name);
	weiri_queue_settle(record, queue);
	*fd = readiness->beacon.event.fd;
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
	/* [relaxed] nobody else uses the queue. */
	put_out(queue, weiri_load_relaxed(&queue->readable));
	put_out(queue, weiri_load_relaxed(&queue->writable));
}
