/*
 * conformance_kit.h - shared by the tests of conformance rows: the kinds of tensor queues, items
 * that are numbers, and calls on threads.
 *
 * A row of one kind often holds for another kind too. conformance_queue.h has each of these
 * behaviours once, for any kind.
 */
#ifndef CONFORMANCE_KIT_H
#define CONFORMANCE_KIT_H

#include "tensor_queue_kit.h"

enum { KIT_MOST_TAKEN = 1024, KIT_THREADS = 10 };

struct kind {
	enum weir_queue_order order;
	uint32_t flags;
	int ordered; /* first in, first out */
};

static const struct kind fifo_kind = {WEIR_QUEUE_FIFO, 0, 1};
static const struct kind shuffle_kind = {WEIR_QUEUE_SHUFFLE, 0, 0};
static const struct kind padding_kind = {WEIR_QUEUE_FIFO, WEIR_TENSOR_QUEUE_PADDING, 1};

/* -- queues ------------------------------------------------------------------------------------ */

static inline weir_tensor_queue *queue_of(const struct kind *kind, size_t capacity,
                                          const struct weir_tensor_component components[], size_t count)
{
	return tensor_queue_with((struct weir_tensor_queue_options){.capacity = capacity,
	                                                            .order = kind->order,
	                                                            .flags = kind->flags,
	                                                            .components = components,
	                                                            .component_count = count,
	                                                            .name = "test"});
}

/* Items are i32 scalars. */
static inline weir_tensor_queue *numbers_queue(const struct kind *kind, size_t capacity)
{
	return queue_of(kind, capacity, &(struct weir_tensor_component){WEIR_I32, &scalar_shape, "number"}, 1);
}

/* Items are an i32 scalar and an i32 vector [2]. */
static inline weir_tensor_queue *pairs_queue(const struct kind *kind, size_t capacity)
{
	weir_shape shape = vector_shape(2);

	return queue_of(kind, capacity,
	                (struct weir_tensor_component[]){{WEIR_I32, &scalar_shape, "number"}, {WEIR_I32, &shape, "vector"}},
	                2);
}

/* -- numbers out ------------------------------------------------------------------------------- */

struct taken {
	int32_t values[KIT_MOST_TAKEN];
	size_t count;
};

/* Appends the elements of a tensor, and releases it. Asserts nothing, so any thread may call it. */
static inline void note_taken(struct taken *taken, weir_tensor *tensor)
{
	for (int64_t i = 0; i < weir_tensor_element_count(tensor) && taken->count < KIT_MOST_TAKEN; i++)
		taken->values[taken->count++] = ((const int32_t *)weir_tensor_data(tensor))[i];
	weir_tensor_release(tensor);
}

static inline int compare_numbers(const void *a, const void *b)
{
	int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

	return (x > y) - (x < y);
}

/* The taken numbers are first, first + 1, ..., `count` of them, in any order. */
static inline void expect_all(const struct taken *taken, int32_t first, size_t count)
{
	struct taken sorted = *taken;

	cr_assert_eq(taken->count, count);
	qsort(sorted.values, count, sizeof(sorted.values[0]), compare_numbers);
	for (size_t i = 0; i < count; i++)
		cr_assert_eq(sorted.values[i], first + (int32_t)i);
}

/* The same, and in that order if the kind is ordered. */
static inline void expect_taken(const struct kind *kind, const struct taken *taken, int32_t first, size_t count)
{
	expect_all(taken, first, count);
	for (size_t i = 0; kind->ordered && i < count; i++)
		cr_assert_eq(taken->values[i], first + (int32_t)i, "place %zu", i);
}

/* -- calls on the thread of the test ----------------------------------------------------------- */

static inline void take(weir_tensor_queue *queue, struct taken *taken)
{
	weir_tensor *got = NULL;
	weir_error error = {0};

	cr_assert_eq(weir_tensor_queue_dequeue(queue, &got, 1, in_good_time(), NULL, &error), WEIR_OK, "%s", error.message);
	note_taken(taken, got);
}

/* Dequeues a batch of n, and returns how many items came. */
static inline size_t take_batch(weir_tensor_queue *queue, enum call_kind how, size_t n, struct taken *taken)
{
	size_t before = taken->count;
	weir_tensor *got = NULL;
	weir_error error = {0};

	if (how == DEQUEUE_MANY)
		cr_assert_eq(weir_tensor_queue_dequeue_many(queue, n, &got, 1, in_good_time(), NULL, &error), WEIR_OK, "%s",
		             error.message);
	else
		cr_assert_eq(weir_tensor_queue_dequeue_up_to(queue, n, &got, 1, in_good_time(), NULL, &error), WEIR_OK, "%s",
		             error.message);
	cr_assert_eq(weir_tensor_shape(got)->rank, 1);
	note_taken(taken, got);
	return taken->count - before;
}

static inline void put_rows(weir_tensor_queue *queue, int32_t first, int64_t count)
{
	weir_tensor *rows = numbers_of(vector_shape(count), first);
	weir_error error = {0};
	size_t done = 0;

	cr_assert_eq(weir_tensor_queue_enqueue_many(queue, &rows, 1, in_good_time(), NULL, &done, &error), WEIR_OK, "%s",
	             error.message);
	cr_assert_eq(done, (size_t)count);
	weir_tensor_release(rows);
}

static inline void close_queue(weir_tensor_queue *queue)
{
	cr_assert_eq(weir_tensor_queue_close(queue, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
}

/* A dequeue of the closed queue is refused, and the message says that the queue is closed. */
static inline void expect_exhausted(weir_tensor_queue *queue)
{
	weir_tensor *got = NULL;
	weir_error error = {0};

	cr_assert_eq(weir_tensor_queue_dequeue(queue, &got, 1, in_good_time(), NULL, &error), WEIR_OUT_OF_RANGE);
	cr_assert_null(got);
	cr_assert_not_null(strstr(error.message, "closed"), "%s", error.message);
}

static inline void end_queue(weir_tensor_queue *queue)
{
	destroy_tensors(queue);
	expect_no_tensor_left();
}

/* -- calls on threads of their own ------------------------------------------------------------- */

/* A call on a queue of numbers. */
struct errand {
	enum call_kind kind;
	weir_tensor_queue *queue;
	size_t n;
	weir_tensor *given; /* of an enqueue; the errand owns it */
	/* The outcome. */
	enum weir_status status;
	weir_error error;
	struct taken taken;
	_Atomic(int) ended;
	pthread_t thread;
};

static inline enum weir_status run_errand(struct errand *errand, weir_tensor **got)
{
	weir_tensor_queue *queue = errand->queue;
	uint64_t deadline_ns = in_good_time();

	switch (errand->kind) {
	case ENQUEUE: return weir_tensor_queue_enqueue(queue, &errand->given, 1, deadline_ns, NULL, &errand->error);
	case ENQUEUE_MANY:
		return weir_tensor_queue_enqueue_many(queue, &errand->given, 1, deadline_ns, NULL, NULL, &errand->error);
	case DEQUEUE: return weir_tensor_queue_dequeue(queue, got, 1, deadline_ns, NULL, &errand->error);
	case DEQUEUE_MANY:
		return weir_tensor_queue_dequeue_many(queue, errand->n, got, 1, deadline_ns, NULL, &errand->error);
	case DEQUEUE_UP_TO:
		return weir_tensor_queue_dequeue_up_to(queue, errand->n, got, 1, deadline_ns, NULL, &errand->error);
	}
	return WEIR_INTERNAL;
}

static inline void *errand_main(void *argument)
{
	struct errand *errand = argument;
	weir_tensor *got = NULL;

	errand->status = run_errand(errand, &got);
	if (got != NULL)
		note_taken(&errand->taken, got);
	weir_tensor_release(errand->given);
	/* [release] the outcome; pairs with end_errand(). */
	weiri_store_release(&errand->ended, 1);
	return NULL;
}

/*
 * `first` is the number that an enqueue puts; `n` is the number of rows, for the kinds that have
 * one.
 */
static inline void begin_errand(struct errand *errand, enum call_kind kind, weir_tensor_queue *queue, int32_t first,
                                size_t n)
{
	(void)memset(errand, 0, sizeof(*errand));
	errand->kind = kind;
	errand->queue = queue;
	errand->n = n;
	if (kind == ENQUEUE)
		errand->given = number(first);
	else if (kind == ENQUEUE_MANY)
		errand->given = numbers_of(vector_shape((int64_t)n), first);
	cr_assert_eq(pthread_create(&errand->thread, NULL, errand_main, errand), 0);
}

/* Begins an errand, and returns when `waiting` calls wait in the queue. */
static inline void begin_blocked(struct errand *errand, enum call_kind kind, weir_tensor_queue *queue, int32_t first,
                                 size_t n, size_t waiting)
{
	begin_errand(errand, kind, queue, first, n);
	await(idle_in(queue->queue) == waiting);
}

static inline int errand_has_ended(struct errand *errand)
{
	/* [acquire] pairs with errand_main(). */
	return weiri_load_acquire(&errand->ended);
}

static inline void end_errand(struct errand *errand, enum weir_status status)
{
	await(errand_has_ended(errand));
	cr_assert_eq(pthread_join(errand->thread, NULL), 0);
	cr_assert_eq(errand->status, status, "%s: %s", weir_status_name(errand->status), errand->error.message);
}

#endif
