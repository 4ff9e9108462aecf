/*
 * delivery.h - telling the owners of asynchronous operations that these have ended: one completion
 * after the other on each thread.
 *
 * A completion may start the next operation, and with a backlog that ends at once. Were its
 * completion called inside the start, each would run inside the one before, and the stack would end
 * before the backlog does. So whatever ends while a completion runs is done at once, but its own
 * completion is put on a list of the thread, and the call in which the first one ran, the
 * outermost, works the list off.
 *
 * Invariants
 *   D1  a thread's list is its own: only that thread reads or writes it, so it needs no atomics. It
 *       is linked through the operations, which the reference of the completion keeps alive; so
 *       nothing is allocated, and delivery cannot fail
 *   D2  exactly once: an operation ends once (pending.h O3), is put on one list once, and
 *       leaves it before it is told
 *   D3  a list that is not empty is being worked off by its thread, which has not returned from the
 *       outermost call: nothing stays behind
 *   D4  what is told is told outside of sections; what is due was put on the list outside of them,
 *       too
 * Order: the operations that end on one thread while a completion runs are delivered in the order in
 *   which they ended.
 * Progress: no thread waits here. A thread that stalls inside a completion delays what is due on it.
 *   That is what ended in calls that this completion, or an earlier one in the same outermost call,
 *   has made. An operation that ends in a call made outside completions is delivered immediately,
 *   and delays none after it.
 * A wait inside a completion, which headers forbid and programs do: before a call of Weir puts the
 *   thread to sleep for an operation, it delivers what is due on the thread, since it may wait for
 *   that. Other waits do not know of the list.
 * The end of a thread inside a completion (pthread_exit, pthread_cancel): a cleanup handler delivers
 *   the rest of the thread's list first, and then does what the calls under way still had to do for
 *   others (visits). The operation whose completion ended the thread keeps its memory. longjmp and
 *   exceptions out of a completion are not allowed (docs/embedding.md).
 * Fork inside a completion: the child has the list and the stack of the forking thread, and delivers
 *   what is due in its copy, as the parent does. The lists of other threads belong to threads that
 *   the child does not have.
 * Signal handlers never complete an operation.
 *
 * Visits. A call that continues with an object after a completion may find that the completion has
 * destroyed it. So around such places the call visits the object, on a list on the thread's stack. A
 * destroy marks the visits of its own thread, and the call looks at the mark before it touches the
 * object again. No other thread destroys the object meanwhile, since the call has not returned.
 *
 * A call that cannot do without the object visits it as well, and the destroy refuses (tensor
 * queues). A call that serves several objects holds completions back until it has served all. They
 * are due, and are delivered when the call needs none of the objects any more (commits).
 *
 * A visit also says what its call still has to do for others: to serve those that wait for the object,
 * or to complete an operation that it has ended. So a completion that ends the thread loses neither.
 *
 * Checked: tests/test_completions.c.
 */
#ifndef WEIRI_SYNC_DELIVERY_H
#define WEIRI_SYNC_DELIVERY_H

#include <stddef.h>

#include "base/compiler.h"

struct weiri_delivery;

/* Calls the completion. It may end everything that the operation belongs to, and the operation. */
typedef void weiri_tell_fn(struct weiri_delivery *delivery);

/* Embedded in an operation; written by the thread that completes it. */
struct weiri_delivery {
	struct weiri_delivery *next;
	weiri_tell_fn *tell;
};

struct weiri_record;
struct weiri_served;

/*
 * Serves the operations that wait for an object, until none can proceed (pending.h). Outside of
 * sections. It may run callbacks.
 */
typedef void weiri_serve_fn(struct weiri_record *record, void *object, struct weiri_served *served);

struct weiri_visit {
	const void *object;    /* NULL: it was destroyed */
	weiri_serve_fn *serve; /* what is left to be done if the thread ends here; NULL: nothing */
	struct weiri_visit *outer;
};

/* Of the thread. */
struct weiri_deliveries {
	struct weiri_delivery *first, *last; /* due; last: while there is a first */
	struct weiri_visit *visits;
	int under_way; /* a completion runs, or completions are held back */
	int has_lost;  /* the thread ends, and some visits are gone: what they had claimed stays claimed */
};

WEIRI_SHARED extern WEIRI_TLS struct weiri_deliveries weiri_deliveries_mine;

/*
 * Outside of sections. 1: it was told, and so was what became due meanwhile; the operation may be
 * gone. 0: a completion runs on this thread, and it will be told after that has returned.
 */
int weiri_deliver(struct weiri_delivery *delivery, weiri_tell_fn *tell);

WEIRI_SHARED WEIRI_COLD void weiri_deliver_rest(void);

/* Before this thread sleeps for an operation: tells what is due on it. Outside of sections. */
static inline void weiri_deliver_due(void)
{
	if (WEIRI_UNLIKELY(weiri_deliveries_mine.first != NULL))
		weiri_deliver_rest();
}

/*
 * What ends on this thread from here on is due, until weiri_deliver_held() is given what this
 * returned. No user code, and no sleep, between.
 */
static inline int weiri_deliver_hold(void)
{
	int outer = weiri_deliveries_mine.under_way;

	weiri_deliveries_mine.under_way = 1;
	return outer;
}

/* Outside of sections. */
static inline void weiri_deliver_held(int outer)
{
	weiri_deliveries_mine.under_way = outer;
	if (!outer)
		weiri_deliver_due();
}

/* The object is in use by this call, up to the end of the visit or of the object. */
static inline void weiri_visit_begin(struct weiri_visit *visit, const void *object, weiri_serve_fn *serve)
{
	*visit = (struct weiri_visit){object, serve, weiri_deliveries_mine.visits};
	weiri_deliveries_mine.visits = visit;
}

/*
 * The thread ends, and so have the functions inside of the one whose handler this is, in which the
 * visits were `outer`. If some of those had visits, these are gone with the stack. Then no completion
 * has ended the thread, but an allocator or a release function.
 */
static inline void weiri_visits_cut(struct weiri_visit *outer)
{
	struct weiri_deliveries *mine = &weiri_deliveries_mine;

	if (mine->visits == NULL || mine->visits == outer)
		return;
	mine->visits = outer;
	mine->has_lost = 1;
}

/* 1: a completion destroyed the object. */
static inline int weiri_visit_is_over(const struct weiri_visit *visit)
{
	return visit->object == NULL;
}

static inline void weiri_visit_end(const struct weiri_visit *visit)
{
	weiri_deliveries_mine.visits = visit->outer;
}

/* 1: a call of this thread visits the object. */
static inline int weiri_visits_any(const void *object)
{
	const struct weiri_visit *visit = weiri_deliveries_mine.visits;

	while (visit != NULL && visit->object != object)
		visit = visit->outer;
	return visit != NULL;
}

/* The object is about to be destroyed, by this thread. */
static inline void weiri_visits_end_of(const void *object)
{
	for (struct weiri_visit *visit = weiri_deliveries_mine.visits; visit != NULL; visit = visit->outer) {
		if (visit->object == object)
			visit->object = NULL;
	}
}

#endif
