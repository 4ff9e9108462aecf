/*
 * models.c - sequential queues, pools, priority queues and variables, for the general checker.
 *
 * The code is simple, so that it is obviously right. Tests compare the results of the fast checkers
 * with it.
 */
#include "history/order.h"

#include <stdlib.h>
#include <string.h>

/* -- collections ------------------------------------------------------------------------------- */

/* The values in the order in which they leave, if there is one. Unused words are 0. */
struct stock {
	uint64_t count;
	uint64_t closed; /* 0; CLOSING; ENDED: a take returned the end, and no later put succeeds */
	struct item {
		int64_t key;
		uint64_t value;
	} item[];
};

enum { CLOSING = 1, ENDED = 2 };

static size_t stock_size(const struct history *history, const void *context)
{
	size_t puts = 0;

	(void)context;
	for (size_t i = 0; i < history->count; i++)
		puts += history->op[i].kind == HISTORY_PUT;
	return sizeof(struct stock) + puts * sizeof(struct item);
}

static void stock_start(const struct history *history, const void *context, void *state)
{
	memset(state, 0, stock_size(history, context));
}

static void insert(struct stock *stock, uint64_t place, int64_t key, uint64_t value)
{
	memmove(&stock->item[place + 1], &stock->item[place], (size_t)(stock->count - place) * sizeof(struct item));
	stock->item[place] = (struct item){key, value};
	stock->count++;
}

static void remove_at(struct stock *stock, uint64_t place)
{
	stock->count--;
	memmove(&stock->item[place], &stock->item[place + 1], (size_t)(stock->count - place) * sizeof(struct item));
	memset(&stock->item[stock->count], 0, sizeof(struct item));
}

/* Returns the value's index, or the count. */
static uint64_t place_of(const struct stock *stock, uint64_t value)
{
	uint64_t place = 0;

	while (place < stock->count && stock->item[place].value != value)
		place++;
	return place;
}

static int has_room(const struct stock *stock, const struct history_bounds *bounds)
{
	return bounds->capacity == 0 || stock->count < bounds->capacity;
}

static int is_behind_a_close(const struct history *history, const struct history_op *op)
{
	size_t at = (size_t)(op - history->op);

	for (size_t i = 0; i < history->count; i++) {
		if (history->op[i].kind == HISTORY_CLOSE && history_came_before(history, i, at))
			return 1;
	}
	return 0;
}

static int may_go_in(const struct history *history, const struct history_op *op, const struct stock *stock,
                     const struct history_bounds *bounds)
{
	if (op->kind != HISTORY_PUT || !has_room(stock, bounds))
		return 0;
	return stock->closed == 0 || (stock->closed == CLOSING && !is_behind_a_close(history, op));
}

static int step_clear(struct stock *stock)
{
	memset(stock->item, 0, (size_t)stock->count * sizeof(stock->item[0]));
	stock->count = 0;
	return 1;
}

static int step_close(struct stock *stock, const struct history_op *op)
{
	if (op->argument == HISTORY_CANCELS)
		(void)step_clear(stock);
	stock->closed = stock->closed != 0 ? stock->closed : CLOSING;
	return 1;
}

static int step_end(struct stock *stock)
{
	if (stock->closed == 0 || stock->count != 0)
		return 0;
	stock->closed = ENDED;
	return 1;
}

/* The part that all three collections have in common: results that move nothing, and closing. */
static int step_others(struct stock *stock, const struct history_bounds *bounds, const struct history_op *op)
{
	switch (op->kind) {
	case HISTORY_PUT_FULL: return !has_room(stock, bounds);
	case HISTORY_TAKE_EMPTY: return stock->closed == 0 ? stock->count <= bounds->stays : stock->count == 0;
	case HISTORY_CLOSE: return step_close(stock, op);
	case HISTORY_CLEAR: return step_clear(stock);
	case HISTORY_PUT_CLOSED: return stock->closed != 0;
	case HISTORY_TAKE_ENDED: return step_end(stock);
	case HISTORY_LOOK_CLOSED: return (stock->closed != 0) == (op->result != 0);
	case HISTORY_PEEK: return stock->count != 0 && stock->item[0].value == op->result;
	default: return 0;
	}
}

static int fifo_step(const struct history *history, const struct history_op *op, const void *context, void *state)
{
	struct stock *stock = state;

	if (may_go_in(history, op, stock, context)) {
		insert(stock, stock->count, 0, op->argument);
		return 1;
	}
	if (op->kind == HISTORY_TAKE && stock->count != 0 && stock->item[0].value == op->result) {
		remove_at(stock, 0);
		return 1;
	}
	return step_others(stock, context, op);
}

/* The values are sorted, because equal contents must be one state. */
static int multiset_step(const struct history *history, const struct history_op *op, const void *context, void *state)
{
	const struct history_bounds *bounds = context;
	struct stock *stock = state;
	uint64_t place = 0;

	if (may_go_in(history, op, stock, bounds)) {
		while (place < stock->count && stock->item[place].value < op->argument)
			place++;
		insert(stock, place, 0, op->argument);
		return 1;
	}
	if (op->kind == HISTORY_TAKE && (stock->count > bounds->stays || stock->closed != 0)) {
		place = place_of(stock, op->result);
		if (place == stock->count)
			return 0;
		remove_at(stock, place);
		return 1;
	}
	return step_others(stock, bounds, op);
}

/* The values are sorted by key; equal keys by arrival, or by value if any of them may be next. */
static int priority_step(const struct history *history, const struct history_op *op, const void *context, void *state)
{
	const struct history_priority *priority = context;
	struct stock *stock = state;
	uint64_t place = 0;

	if (may_go_in(history, op, stock, &priority->bounds)) {
		int64_t key = (int64_t)op->result;

		while (place < stock->count && (stock->item[place].key < key ||
		                                (stock->item[place].key == key && (priority->equals == HISTORY_EQUALS_FIFO ||
		                                                                   stock->item[place].value < op->argument))))
			place++;
		insert(stock, place, key, op->argument);
		return 1;
	}
	if (op->kind == HISTORY_TAKE) {
		place = place_of(stock, op->result);
		if (place == stock->count || stock->item[place].key != stock->item[0].key ||
		    (priority->equals == HISTORY_EQUALS_FIFO && place != 0))
			return 0;
		remove_at(stock, place);
		return 1;
	}
	if (op->kind == HISTORY_TAKE_BELOW)
		return stock->count == 0 || stock->item[0].key >= (int64_t)op->argument;
	if (op->kind == HISTORY_PEEK)
		return stock->count != 0 && stock->item[0].key == (int64_t)op->result;
	return step_others(stock, &priority->bounds, op);
}

const struct history_model history_model_fifo = {stock_size, stock_start, fifo_step};
const struct history_model history_model_multiset = {stock_size, stock_start, multiset_step};
const struct history_model history_model_priority = {stock_size, stock_start, priority_step};

/* -- variables --------------------------------------------------------------------------------- */

/*
 * The value of a version is unknown until an operation has read or published it. `known` is 1 + the
 * version whose value is in `value`; 0: none.
 */
struct cell {
	uint64_t object, version, known, value;
};

struct cells {
	uint64_t count;
	struct cell cell[];
};

static struct cell *cell_of(struct cells *cells, uint64_t object)
{
	uint64_t i = 0;

	while (i < cells->count && cells->cell[i].object != object)
		i++;
	return &cells->cell[i];
}

/* Returns the number of variables. Each is counted at its first occurrence. */
static size_t cells_size(const struct history *history, const void *context)
{
	size_t objects = 0;

	(void)context;
	for (size_t i = 0; i < history->part_count; i++)
		objects += (size_t)history_first_of_object(history, i);
	return sizeof(struct cells) + objects * sizeof(struct cell);
}

static void cells_start(const struct history *history, const void *context, void *state)
{
	const uint64_t *initial = context;
	struct cells *cells = state;

	memset(state, 0, cells_size(history, context));
	for (size_t i = 0; i < history->part_count; i++) {
		uint64_t object = history->part[i].object;

		/* A variable that is not in the state yet gets the index after the last. */
		if (cell_of(cells, object) == &cells->cell[cells->count])
			cells->cell[cells->count++] = (struct cell){object, *initial, 0, 0};
	}
}

static int part_fits(const struct cell *cell, const struct history_part *part)
{
	if (part->before != HISTORY_NONE && part->before != cell->version)
		return 0;
	if (part->after != HISTORY_NONE)
		return part->after == cell->version + 1;
	return part->value == HISTORY_NONE || cell->known != cell->version + 1 || cell->value == part->value;
}

static void apply_part(struct cell *cell, const struct history_part *part)
{
	if (part->after != HISTORY_NONE)
		cell->version = part->after;
	if (part->value != HISTORY_NONE && (part->after != HISTORY_NONE || part->before != HISTORY_NONE)) {
		cell->known = cell->version + 1;
		cell->value = part->value;
	}
}

static int variables_step(const struct history *history, const struct history_op *op, const void *context, void *state)
{
	const struct history_part *part = &history->part[op->part];
	int overtaken = 0;

	(void)context;
	for (uint32_t i = 0; i < op->parts; i++) {
		const struct cell *cell = cell_of(state, part[i].object);

		overtaken |= cell->version > part[i].before;
		if (op->kind != HISTORY_ABORTED && !part_fits(cell, &part[i]))
			return 0;
	}
	if (op->kind == HISTORY_ABORTED)
		return overtaken;
	for (uint32_t i = 0; i < op->parts; i++)
		apply_part(cell_of(state, part[i].object), &part[i]);
	return 1;
}

const struct history_model history_model_variables = {cells_size, cells_start, variables_step};
