/*
 * tensor_select.c - a select of tensor queues. It makes a tuple for each enqueue, and frees the
 * tuples that were not enqueued.
 */
#include <weir/flow/tensor_select.h>

#include <stdalign.h>

#include "base/error.h"
#include "base/memory.h"
#include "tuples/tuple.h"
#include "sync/delivery.h"

static enum weir_status fail_in_case(weir_error *error, size_t i, enum weir_status status, const weir_error *why)
{
	return weiri_fail(error, status, "select: case %zu: %s", i, why->message);
}

/* Converts a case to one of the pointer queue. An enqueue gets a tuple of its own. */
static enum weir_status prepare(const struct weir_tensor_select_case *from, struct weir_select_case *to,
                                weir_error *why)
{
	enum weir_status status;

	if (from->queue == NULL)
		return weiri_fail(why, WEIR_INVALID_ARGUMENT, "queue is NULL");
	*to = (struct weir_select_case){.queue = from->queue->queue, .kind = from->kind};
	if (from->kind == WEIR_SELECT_DEQUEUE)
		return from->tuple != NULL && from->count == from->queue->count
		           ? WEIR_OK
		           : weiri_fail(why, WEIR_INVALID_ARGUMENT, "queue \"%s\": a tuple has %zu component%s, room for %zu",
		                        weir_tensor_queue_name(from->queue), from->queue->count, WEIRI_S(from->queue->count),
		                        from->tuple != NULL ? from->count : 0);
	if (from->kind != WEIR_SELECT_ENQUEUE)
		return weiri_fail(why, WEIR_INVALID_ARGUMENT, "%d is not a kind", (int)from->kind);
	status = weiri_tuple_check(from->queue, from->tuple, from->count, false, NULL, why);
	if (status != WEIR_OK)
		return status;
	to->item = weiri_tuple_create(from->queue, from->tuple);
	return to->item != NULL ? WEIR_OK
	                        : weiri_fail(why, WEIR_RESOURCE_EXHAUSTED, "queue \"%s\": no memory",
	                                     weir_tensor_queue_name(from->queue));
}

/*
 * Frees the tuples that the select still owns: those of the enqueues among the first `count` cases,
 * without case `gone`, whose tuple was enqueued. If no tuple was, `gone` is at least `count`.
 */
static void free_tuples(const struct weir_tensor_select_case cases[], const struct weir_select_case inner[],
                        size_t count, size_t gone)
{
	for (size_t i = 0; i < count; i++) {
		if (cases[i].kind == WEIR_SELECT_ENQUEUE && i != gone)
			weiri_tuple_free(cases[i].queue, inner[i].item);
	}
}

/*
 * Runs the select with a visit to each queue. The visits keep completions that run in the select
 * from destroying the queues, which the caller still uses afterwards.
 */
static enum weir_status select_visited(const struct weir_tensor_select_case cases[], struct weir_select_case inner[],
                                       struct weiri_visit visits[], size_t count, uint64_t deadline_ns,
                                       weir_cancel *cancel, size_t *winner, weir_error *error)
{
	enum weir_status status;

	if (weiri_record_get() == NULL) /* a visit needs one */
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "select: no memory for this thread's record");
	for (size_t i = 0; i < count; i++)
		weiri_visit_begin(&visits[i], cases[i].queue, NULL);
	status = weir_select(inner, count, deadline_ns, cancel, winner, error);
	weiri_visit_end(&visits[0]);
	return status;
}

static enum weir_status run(struct weir_tensor_select_case cases[], struct weir_select_case inner[],
                            struct weiri_visit visits[], size_t count, uint64_t deadline_ns, weir_cancel *cancel,
                            size_t *chosen, weir_error *error)
{
	enum weir_status status = WEIR_OK;
	size_t made = 0, winner = count, gone = count;
	weir_error why;

	while (made < count && (status = prepare(&cases[made], &inner[made], &why)) == WEIR_OK)
		made++;
	if (status != WEIR_OK) {
		free_tuples(cases, inner, made, count);
		return fail_in_case(error, made, status, &why);
	}
	status = select_visited(cases, inner, visits, count, deadline_ns, cancel, &winner, error);
	if (status == WEIR_OK) {
		*chosen = winner;
		cases[winner].status = inner[winner].status;
		if (inner[winner].status == WEIR_OK)
			gone = winner;
	}
	if (gone != count && cases[gone].kind == WEIR_SELECT_DEQUEUE)
		weiri_tuple_move(cases[gone].queue, inner[gone].item, cases[gone].tuple);
	free_tuples(cases, inner, count, gone);
	return status;
}

enum weir_status weir_tensor_select(struct weir_tensor_select_case cases[], size_t count, uint64_t deadline_ns,
                                    weir_cancel *cancel, size_t *chosen, weir_error *error)
{
	weir_allocator allocator;
	struct weir_select_case *inner;
	struct weiri_visit *visits;
	enum weir_status status;
	size_t size;

	if (cases == NULL || count == 0 || chosen == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "select: %s",
		                  chosen == NULL ? "chosen is NULL" : "there are no cases");
	if (cases[0].queue == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "select: case 0: queue is NULL");
	allocator = cases[0].queue->allocator;
	inner = weiri_multiply(count, sizeof(*inner) + sizeof(*visits), &size)
	            ? weiri_allocate(&allocator, size, alignof(struct weir_select_case))
	            : NULL;
	if (inner == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "select: no memory for %zu case%s", count, WEIRI_S(count));
	visits = (struct weiri_visit *)(void *)(inner + count);
	status = run(cases, inner, visits, count, deadline_ns, cancel, chosen, error);
	weiri_release(&allocator, inner, size, alignof(struct weir_select_case));
	return status;
}
