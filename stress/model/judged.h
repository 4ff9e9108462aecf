/*
 * judged.h - describes structures and results to the judge, for the checks of this folder
 * (weir_model_judge() in weir/model.h).
 *
 * A call of a collection is bracketed by weir_model_call_begins() and weir_model_call_ends().
 * judged_put() or judged_take() follows with the status. All values are different numbers:
 * judged_number() of a row and a place.
 */
#ifndef WEIR_MODEL_JUDGED_H
#define WEIR_MODEL_JUDGED_H

#include <history/history.h>
#include <weir/model.h>
#include <weir/status.h>

static inline uint64_t judged_number(int row, int place)
{
	return (uint64_t)row * 100 + (uint64_t)place;
}

/* To be called in setup. capacity 0: no bound. */
static inline void judged_as_fifo(size_t capacity)
{
	static struct history_bounds bounds;

	bounds = (struct history_bounds){.capacity = capacity};
	weir_model_judge(&history_model_fifo, &bounds);
}

/* Returns 1 if another put was neither before nor after this call. */
static inline int judged_beside(const struct history *history, const struct history_op *op)
{
	size_t at = (size_t)(op - history->op);

	for (size_t i = 0; i < history->count; i++) {
		if (history->op[i].kind == HISTORY_PUT && i != at && !history_came_before(history, i, at) &&
		    !history_came_before(history, at, i))
			return 1;
	}
	return 0;
}

static inline void judged_as_shuffle(size_t capacity)
{
	static struct history_bounds bounds;

	bounds = (struct history_bounds){.capacity = capacity};
	weir_model_judge(&history_model_multiset, &bounds);
}

/*
 * A put into a priority queue occupies a node before its value is stored, so "full" during another
 * put is not judged.
 */
static inline int judged_priority_step(const struct history *history, const struct history_op *op, const void *context,
                                       void *state)
{
	if (op->kind == HISTORY_PUT_FULL && judged_beside(history, op))
		return 1;
	return history_model_priority.step(history, op, context, state);
}

/* Items with equal keys leave in the order in which they were enqueued. */
static inline void judged_as_priority(size_t capacity)
{
	static struct history_priority priority;
	static struct history_model model;

	model = history_model_priority;
	model.step = judged_priority_step;
	priority = (struct history_priority){{.capacity = capacity}, HISTORY_EQUALS_FIFO};
	weir_model_judge(&model, &priority);
}

/* `key`: for priority queues the key, else 0. */
static inline void judged_put(enum weir_status status, uint64_t value, int64_t key)
{
	switch (status) {
	case WEIR_OK: weir_model_answer(HISTORY_PUT, value, (uint64_t)key); break;
	case WEIR_CANCELLED: weir_model_answer(HISTORY_PUT_CLOSED, value, 0); break;
	case WEIR_WOULD_BLOCK: weir_model_answer(HISTORY_PUT_FULL, value, 0); break;
	default: weir_model_fail("an enqueue returned a status that no enqueue may return");
	}
}

/* `value` counts if the status is WEIR_OK. */
static inline void judged_take(enum weir_status status, uint64_t value)
{
	switch (status) {
	case WEIR_OK: weir_model_answer(HISTORY_TAKE, HISTORY_NONE, value); break;
	case WEIR_OUT_OF_RANGE: weir_model_answer(HISTORY_TAKE_ENDED, 0, 0); break;
	case WEIR_WOULD_BLOCK: weir_model_answer(HISTORY_TAKE_EMPTY, 0, 0); break;
	default: weir_model_fail("a dequeue returned a status that no dequeue may return");
	}
}

/*
 * The variables are numbered; the first version of each is 1. Each answer has a part for each
 * variable that the call read or wrote (history/history.h).
 */
static inline void judged_as_variables(void)
{
	static uint64_t initial;

	initial = 1;
	weir_model_judge(&history_model_variables, &initial);
}

/* HISTORY_NONE: the value is not known. */
static inline void judged_read(uint64_t variable, uint64_t version, uint64_t value)
{
	const struct history_part part = {variable, version, HISTORY_NONE, value};

	weir_model_answer_parts(HISTORY_READ, 0, 0, &part, 1);
}

static inline void judged_write(uint64_t variable, uint64_t version, uint64_t value)
{
	const struct history_part part = {variable, HISTORY_NONE, version, value};

	weir_model_answer_parts(HISTORY_WRITE, 0, 0, &part, 1);
}

/* A planted fault: a take that returns "empty" without reading. */
static inline void judged_wrong_take(void)
{
	weir_model_call_begins(1);
	weir_model_call_ends(1);
	judged_take(WEIR_WOULD_BLOCK, 0);
}

static const char judged_wrong[] = "no order of the calls explains their answers";

static inline void judged_close(uint64_t how)
{
	weir_model_answer(HISTORY_CLOSE, how, 0);
}

static inline void judged_closed(int closed)
{
	weir_model_answer(HISTORY_LOOK_CLOSED, 0, closed != 0);
}

#endif
