/*
 * queue_kit.h - queues for tests: made in one line, called from threads of their own, and watched
 * until they are in a state.
 *
 * Only the thread of the test makes assertions. An item is a small number that is cast to a
 * pointer.
 */
#ifndef QUEUE_KIT_H
#define QUEUE_KIT_H

#include <criterion/criterion.h>

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <weir/queue.h>
#include <weir/reclaim.h>

#include "asleep.h"
#include "queue/operation.h"

enum { KIT_MOST_ITEMS = 16 };

/* A deadline later than any state that a test waits for, however slow the build is. */
static inline uint64_t in_good_time(void)
{
	return weir_deadline_in(UINT64_C(100000000000));
}

/* Waits until the condition holds. Fails the test if it does not hold in good time. */
#define await(condition) \
	do { \
		uint64_t await_until_ = in_good_time(); \
\
		while (!(condition)) { \
			cr_assert(weir_now_ns() < await_until_, "waited in vain for: %s", #condition); \
			(void)sched_yield(); \
		} \
	} while (0)

static inline void *item(size_t number)
{
	return (void *)(uintptr_t)number;
}

static inline size_t number_of(const void *any)
{
	return (size_t)(uintptr_t)any;
}

/* -- queues ------------------------------------------------------------------------------------ */

static inline weir_queue *queue_with(struct weir_queue_options options)
{
	weir_queue *queue = NULL;
	weir_error error = {0};

	options.struct_size = sizeof(options);
	cr_assert_eq(weir_queue_create(&options, &queue, &error), WEIR_OK, "%s", error.message);
	return queue;
}

static inline weir_queue *fifo(size_t capacity)
{
	return queue_with((struct weir_queue_options){.capacity = capacity, .name = "test"});
}

static inline void destroy(weir_queue *queue)
{
	weir_error error = {0};

	cr_assert_eq(weir_queue_destroy(queue, &error), WEIR_OK, "%s", error.message);
}

/* Enqueues first, first + 1, ... without waiting. */
static inline void put(weir_queue *queue, size_t first, size_t count)
{
	for (size_t i = first; i < first + count; i++)
		cr_assert_eq(weir_queue_try_enqueue(queue, item(i)), WEIR_OK, "item %zu", i);
}

/* The next items, which come without waiting, are first, first + 1, ... */
static inline void expect_next(weir_queue *queue, size_t first, size_t count)
{
	for (size_t i = first; i < first + count; i++) {
		void *got = NULL;

		cr_assert_eq(weir_queue_try_dequeue(queue, &got), WEIR_OK, "item %zu", i);
		cr_assert_eq(number_of(got), i);
	}
}

static inline void expect_nothing(weir_queue *queue)
{
	void *untouched = item(4711);

	cr_assert_eq(weir_queue_try_dequeue(queue, &untouched), WEIR_WOULD_BLOCK);
	cr_assert_eq(number_of(untouched), 4711);
	cr_assert_eq(weir_queue_size_approx(queue), 0);
}

static inline void expect_drained(weir_queue *queue)
{
	void *untouched = item(4711);

	cr_assert_eq(weir_queue_try_dequeue(queue, &untouched), WEIR_OUT_OF_RANGE);
	cr_assert_eq(number_of(untouched), 4711);
}

static inline void expect_numbers(void *const items[], size_t first, size_t count)
{
	for (size_t i = 0; i < count; i++)
		cr_assert_eq(number_of(items[i]), first + i, "place %zu holds %zu", i, number_of(items[i]));
}

/* Counts the operations on the list that no thread has claimed. Each of them really waits. */
static inline size_t idle_on(struct weiri_list *list)
{
	struct weiri_scope scope = weiri_scope_enter(weiri_record_get());
	struct weiri_list_node *node = NULL;
	size_t count = 0;

	while ((node = weiri_list_next(&scope, list, node)) != NULL) {
		const weir_pending *pending = weiri_pending_entry_of(node)->pending;

		/* [acquire] as in every claimer */
		count += pending != NULL && weiri_load_acquire(&pending->state) == 0;
	}
	weiri_scope_leave(&scope);
	return count;
}

static inline size_t idle_in(weir_queue *queue)
{
	return idle_on(&queue->producers.list) + idle_on(&queue->consumers.list);
}

/* -- calls on threads of their own ------------------------------------------------------------- */

enum call_kind { ENQUEUE, ENQUEUE_MANY, DEQUEUE, DEQUEUE_MANY, DEQUEUE_UP_TO };

struct call {
	enum call_kind kind;
	weir_queue *queue;
	size_t count; /* for the kinds that have a count */
	void *items[KIT_MOST_ITEMS];
	uint64_t deadline_ns; /* 0: in_good_time() */
	weir_cancel *token;
	/* The outcome. */
	enum weir_status status;
	size_t done;
	weir_error error;
	_Atomic(int) ended;
	_Atomic(int) number_of_thread; /* what gettid() returned on it */
	pthread_t thread;
};

static inline enum weir_status call_now(struct call *call)
{
	uint64_t deadline_ns = call->deadline_ns != 0 ? call->deadline_ns : in_good_time();

	switch (call->kind) {
	case ENQUEUE: return weir_queue_enqueue(call->queue, call->items[0], deadline_ns, call->token, &call->error);
	case ENQUEUE_MANY:
		return weir_queue_enqueue_many(call->queue, call->items, call->count, deadline_ns, call->token, &call->done,
		                               &call->error);
	case DEQUEUE: return weir_queue_dequeue(call->queue, &call->items[0], deadline_ns, call->token, &call->error);
	case DEQUEUE_MANY:
		return weir_queue_dequeue_many(call->queue, call->items, call->count, deadline_ns, call->token, &call->error);
	case DEQUEUE_UP_TO:
		return weir_queue_dequeue_up_to(call->queue, call->items, call->count, deadline_ns, call->token, &call->done,
		                                &call->error);
	}
	return WEIR_INTERNAL;
}

static inline void *call_main(void *argument)
{
	struct call *call = argument;

	weiri_store_relaxed(&call->number_of_thread, gettid());
	call->status = call_now(call);
	/* [release] the outcome; pairs with end_call(). */
	weiri_store_release(&call->ended, 1);
	return NULL;
}

static inline void begin_call(struct call *call)
{
	cr_assert_eq(pthread_create(&call->thread, NULL, call_main, call), 0);
}

/* Returns 1 if the call has returned. */
static inline int has_ended(struct call *call)
{
	/* [acquire] pairs with call_main(). */
	return weiri_load_acquire(&call->ended);
}

/*
 * Returns 1 if the thread of the call sleeps. Before it sleeps it may serve other operations, so a
 * test of the order of service waits until it sleeps.
 */
static inline int is_asleep(struct call *call)
{
	return thread_is_asleep(weiri_load_relaxed(&call->number_of_thread));
}

/* Begins a call, and returns when its thread sleeps and `waiting` operations wait in the queue. */
static inline void begin_waiting_call(struct call *call, size_t waiting)
{
	begin_call(call);
	await(idle_in(call->queue) == waiting && is_asleep(call));
}

static inline enum weir_status end_call(struct call *call)
{
	await(has_ended(call));
	cr_assert_eq(pthread_join(call->thread, NULL), 0);
	return call->status;
}

#endif
