/*
 * delivery.h - running the completions of asynchronous operations, one after the other on each
 * thread.
 *
 * A completion may start the next operation. If there is a backlog, that operation ends at once. If
 * its completion ran inside the start, each completion would run inside the one before, and the
 * stack would be used up before the backlog. So an operation that ends while a completion runs
 * takes effect at once, but its own completion goes onto a list of the thread. The outermost call,
 * in which the first completion ran, works the list off.
 *
 * Invariants
 *   D1  only the thread itself reads or writes its list, so the list needs no atomics. The list is
 *       linked through the operations, and the completion's reference keeps each of them alive. So
 *       delivery allocates nothing and cannot fail
 *   D2  a completion runs exactly once: its operation ends once (pending.h O3), goes onto one list
 *       once, and leaves that list before its owner is told
 *   D3  while a list is not empty, its thread is working it off and has not returned from the
 *       outermost call. So no completion stays behind
 *   D4  a completion goes onto the list outside of sections, and runs outside of sections
 * Order: the operations that end on one thread while a completion runs are delivered in the order
 * in
 *   which they ended.
 * Progress: no thread waits here. A thread that stalls inside a completion delays the completions
 *   that are due on it. Their operations ended in calls that this completion, or an earlier one in
 *   the same outermost call, has made. The completion of an operation that ends in a call made
 *   outside completions is delivered immediately, and delays no later one.
 * A wait inside a completion: headers forbid it, but programs do it. Before a call of Weir puts the
 *   thread to sleep for an operation, it delivers what is due on the thread, since the call may
 *   wait for just that. Other waits do not know of the list.
 * The end of a thread inside a completion (pthread_exit, pthread_cancel): a cleanup handler
 * delivers
 *   the rest of the thread's list first, and then does what the calls under way still had to do for
 *   other operations (visits). The operation whose completion ended the thread keeps its memory.
 *   longjmp and exceptions out of a completion are not allowed (docs/embedding.md).
 * Fork inside a completion: the child has the list and the stack of the forking thread, and
 * delivers
 *   what is due in its copy, as the parent does. The lists of other threads belong to threads that
 *   the child does not have.
 * Signal handlers never complete an operation.
 *
 * Visits. A call that continues with an object after a completion may find that the completion has
 * destroyed it. So the call visits the object around such places: it puts a struct weiri_visit on
 * the list of the thread's visits, which lies on its stack. A destroy marks the visits that its own
 * thread makes to the object, and the call looks at the mark before it touches the object again. No
 * other thread destroys the object meanwhile, since the call has not returned.
 *
 * A call that cannot do without the object visits it as well, and a destroy of the visited object
 * refuses (tensor queues). A call that serves several objects holds completions back until it has
 * served all of them. A completion that is held back is due. It is delivered when the call needs
 * none of the objects any more (commits).
 *
 * A visit also says what its call still has to do for other operations: to serve the operations
 * that wait for the object, or to complete an operation that the call has ended. So neither is lost
 * when a completion ends the thread.
 *
 * Checked: tests/test_completions.c, test_completion_chains.c, test_completion_ends.c.
 */
#ifndef WEIRI_SYNC_DELIVERY_H
#define WEIRI_SYNC_DELIVERY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"
#include "reclaim/record.h"

struct weiri_delivery;

/*
 * Calls the completion. The operation, and every object that it belongs to, may be gone afterwards.
 */
typedef void weiri_tell_fn(struct weiri_delivery *delivery);

/* Embedded in an operation; written by the thread that completes it. */
struct weiri_delivery {
	struct weiri_delivery *next;
	weiri_tell_fn *tell;
};

struct weiri_served;

/*
 * Serves the operations that wait for an object, until none can proceed (pending.h). Called outside
 * of sections. It may run callbacks.
 */
typedef void weiri_serve_fn(struct weiri_record *record, void *object, struct weiri_served *served);

struct weiri_visit {
	const void *object;    /* NULL: it was destroyed */
	weiri_serve_fn *serve; /* what is left to be done if the thread ends here; NULL: nothing */
	struct weiri_visit *outer;
};

/*
 * What this thread keeps for delivery. A thread without a record has nothing there: no operation of
 * it has completed another one. weiri_deliveries_mine() is for functions that it calls with a
 * record.
 */
static inline struct weiri_deliveries *weiri_deliveries_mine(void)
{
	return &weiri_record_mine->own->deliveries;
}

/*
 * Called outside of sections. Returns true if tell() has run, and so has all that became due
 * meanwhile; the operation may then be gone. Returns false if a completion runs on this thread, or
 * completions are held back: tell() runs after that.
 */
WEIRI_SHARED bool weiri_deliver(struct weiri_delivery *delivery, weiri_tell_fn *tell);

WEIRI_SHARED WEIRI_COLD void weiri_deliver_rest(void);

/*
 * Runs what is due on this thread. Called before it sleeps for an operation, outside of sections.
 */
static inline void weiri_deliver_due(void)
{
	if (weiri_record_mine != NULL && WEIRI_UNLIKELY(weiri_deliveries_mine()->first != NULL))
		weiri_deliver_rest();
}

/*
 * Holds completions back: they become due on this thread, and none runs before weiri_deliver_held()
 * is called with the value that this call returned. No user code runs, and the thread does not
 * sleep, between the two calls.
 */
static inline bool weiri_deliver_hold(void)
{
	bool outer = weiri_deliveries_mine()->under_way;

	weiri_deliveries_mine()->under_way = true;
	return outer;
}

/* Ends the holding back; the outermost one delivers what is due. Called outside of sections. */
static inline void weiri_deliver_held(bool outer)
{
	weiri_deliveries_mine()->under_way = outer;
	if (!outer)
		weiri_deliver_due();
}

/*
 * This call uses the object, until the visit ends or the object is destroyed. The thread has a
 * record.
 */
static inline void weiri_visit_begin(struct weiri_visit *visit, const void *object, weiri_serve_fn *serve)
{
	*visit = (struct weiri_visit){object, serve, weiri_deliveries_mine()->visits};
	weiri_deliveries_mine()->visits = visit;
}

/*
 * Called by the cleanup handler of a function when the thread ends. `outer` is the innermost visit
 * at the time when the function pushed its handler. The functions that it called have ended. If
 * they had visits, these are gone with the stack. In that case no completion has ended the thread,
 * but an allocator or a release function.
 */
static inline void weiri_visits_cut(struct weiri_visit *outer)
{
	struct weiri_deliveries *mine = weiri_deliveries_mine();

	if (mine->visits == NULL || mine->visits == outer)
		return;
	mine->visits = outer;
	mine->has_lost = true;
}

/* Returns true if a completion destroyed the object. */
static inline bool weiri_visit_is_over(const struct weiri_visit *visit)
{
	return visit->object == NULL;
}

static inline void weiri_visit_end(const struct weiri_visit *visit)
{
	weiri_deliveries_mine()->visits = visit->outer;
}

/* Returns true if a call of this thread visits the object. */
static inline bool weiri_visits_any(const void *object)
{
	const struct weiri_visit *visit = weiri_record_mine != NULL ? weiri_deliveries_mine()->visits : NULL;

	while (visit != NULL && visit->object != object)
		visit = visit->outer;
	return visit != NULL;
}

/* Marks this thread's visits to the object, which this thread is about to destroy. */
static inline void weiri_visits_end_of(const void *object)
{
	struct weiri_visit *visit = weiri_record_mine != NULL ? weiri_deliveries_mine()->visits : NULL;

	for (; visit != NULL; visit = visit->outer) {
		if (visit->object == object)
			visit->object = NULL;
	}
}

#endif
