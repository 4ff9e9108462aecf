/*
 * queue_scopes.h - the common part of the checks of waiting calls on queues (check_queue.c,
 * check_select.c): what a scope is, the values that its threads offer, and how all scopes are run.
 */
#ifndef WEIR_MODEL_QUEUE_SCOPES_H
#define WEIR_MODEL_QUEUE_SCOPES_H

#include <stdio.h>
#include <string.h>
#include <weir/queue.h>

#include "model/scope.h"

/* the last row belongs to `start` */
enum { THREADS = 4, STARTED = 3, PLACES = 6, ROWS = THREADS + 1 };
enum { FAIR = WEIR_QUEUE_FAIR };

/*
 * Each thread has a row of calls, a letter each; `start` is such a row, which runs before the
 * threads begin.
 */
struct queue_scope {
	const char *name;
	size_t capacity;
	const char *start;
	const char *calls[THREADS];
	uint32_t flags;
	uint64_t deadline; /* of calls that wait; 0: there are none */
};

/* Returns how many calls of the scope are one of these letters. */
static inline int queue_scope_calls(const struct queue_scope *scope, const char *letters)
{
	int count = 0;

	for (size_t i = 0; i < ROWS; i++) {
		const char *at = i < THREADS ? scope->calls[i] : scope->start;

		for (; at != NULL && (at = strpbrk(at, letters)) != NULL; at++)
			count++;
	}
	return count;
}

static inline struct weir_queue_options queue_scope_options(const struct queue_scope *scope,
                                                            enum weir_queue_order order,
                                                            void (*drop)(void *context, void *item))
{
	return (struct weir_queue_options){WEIR_QUEUE_OPTIONS_INIT,
	                                   .capacity = scope->capacity,
	                                   .order = order,
	                                   .flags = scope->flags,
	                                   .seed = 1,
	                                   .drop = drop};
}

/* -- values ------------------------------------------------------------------------------------ */

struct value {
	int row, place; /* place counts from 1 */
};

struct values {
	struct value offered[ROWS][PLACES + 1];
	int had[ROWS][PLACES + 1], accepted[ROWS][PLACES + 1];
	int put[ROWS]; /* values offered */
};

static inline struct value *values_offer(struct values *values, size_t me)
{
	struct value *value = &values->offered[me][++values->put[me]];

	*value = (struct value){(int)me, values->put[me]};
	return value;
}

/* Notes that a value was dequeued, for the first time. */
static inline struct value *values_have(struct values *values, void *item)
{
	struct value *value = item;

	weir_model_assert(values->had[value->row][value->place]++ == 0);
	return value;
}

/* Checks at the end that the values that were dequeued are the values that were accepted. */
static inline void values_check(const struct values *values)
{
	for (size_t i = 0; i < ROWS; i++) {
		for (size_t j = 0; j <= PLACES; j++)
			weir_model_assert(values->had[i][j] == values->accepted[i][j]);
	}
}

/* -- all scopes -------------------------------------------------------------------------------- */

struct queue_check {
	const char *name;
	const struct queue_scope *scopes;
	size_t count;
	/* Sets up the scene again. */
	void (*set_scene)(const struct queue_scope *scope, enum weir_queue_order order);
	/* The program that every scope runs; its name and number of threads are the scope's. */
	struct weir_model_program program;
};

static inline struct weir_model_program queue_check_program(const struct queue_check *check, size_t index,
                                                            enum weir_queue_order order, char name[static SCOPE_NAME])
{
	const struct queue_scope *scope = &check->scopes[index];
	struct weir_model_program program = check->program;

	(void)snprintf(name, SCOPE_NAME, "%s_%s_%s", check->name, order == WEIR_QUEUE_FIFO ? "fifo" : "shuffle",
	               scope->name);
	check->set_scene(scope, order);
	program.name = name;
	program.threads = scope_threads(scope->calls, THREADS);
	return program;
}

static inline int queue_check_all(const struct queue_check *check, enum weir_queue_order order, uint64_t executions)
{
	char name[SCOPE_NAME];
	int bad = 0;

	for (size_t i = 0; i < check->count; i++) {
		struct weir_model_program program = queue_check_program(check, i, order, name);

		bad |= scope_as_far_as(&program, scope_long() ? 1000000 : executions);
	}
	return bad;
}

/*
 * Checks that a stopped thread blocks no other thread. Only scopes in which no call waits are used.
 */
static inline int queue_check_progress(const struct queue_check *check, enum weir_queue_order order, uint64_t stopped)
{
	static const uint32_t bounds[WEIR_MODEL_CALLS] = {0};
	char name[SCOPE_NAME];
	int bad = 0;

	for (size_t i = 0; i < check->count; i++) {
		struct weir_model_program program = queue_check_program(check, i, order, name);

		if (check->scopes[i].deadline == 0)
			bad |= scope_stops(&program, scope_long() ? 20000 : stopped, NULL, bounds);
	}
	return bad;
}

#endif
