/*
 * keyed.c - sequential maps, joins and names; see keyed.h. The code is simple, so that it is
 * obviously right.
 */
#include "history/keyed.h"

#include <string.h>

#include "history/order.h"

static size_t count_objects(const struct history *history)
{
	size_t objects = 0;

	for (size_t i = 0; i < history->part_count; i++)
		objects += (size_t)history_first_of_object(history, i);
	return objects;
}

static uint64_t bit_of(const struct history_part *part)
{
	return UINT64_C(1) << part->before;
}

/* Returns the components that an operation names. */
static uint64_t mask_of(const struct history *history, const struct history_op *op)
{
	uint64_t mask = 0;

	for (uint32_t i = 0; i < op->parts; i++)
		mask |= bit_of(&history->part[op->part + i]);
	return mask;
}

/* -- maps -------------------------------------------------------------------------------------- */

/*
 * If `have` is 0, the entry is free. The values of missing components are 0, because equal states
 * must be equal bytes.
 */
struct entry {
	uint64_t key, have, complete, value[HISTORY_MOST_COMPONENTS];
};

struct map {
	uint64_t count; /* number of entries; constant */
	uint64_t complete, incomplete, inside;
	struct entry entry[];
};

static size_t map_size(const struct history *history, const void *context)
{
	(void)context;
	return sizeof(struct map) + count_objects(history) * sizeof(struct entry);
}

static void map_start(const struct history *history, const void *context, void *state)
{
	struct map *map = state;

	memset(state, 0, map_size(history, context));
	for (size_t i = 0; i < history->part_count; i++) {
		if (history_first_of_object(history, i))
			map->entry[map->count++].key = history->part[i].object;
	}
}

static struct entry *entry_of(struct map *map, uint64_t key)
{
	uint64_t i = 0;

	while (map->entry[i].key != key)
		i++;
	return &map->entry[i];
}

static struct entry *smallest_complete(struct map *map)
{
	struct entry *smallest = NULL;

	for (uint64_t i = 0; i < map->count; i++) {
		struct entry *entry = &map->entry[i];

		if (entry->complete && (smallest == NULL || (int64_t)entry->key < (int64_t)smallest->key))
			smallest = entry;
	}
	return smallest;
}

static int map_has_room(const struct map *map, const struct history_map *bounds, uint32_t components)
{
	return (bounds->capacity == 0 || map->complete < bounds->capacity) &&
	       (bounds->limit == 0 || map->inside + components <= bounds->limit);
}

static void map_insert(struct map *map, struct entry *entry, const struct history_map *bounds,
                       const struct history_part part[], uint32_t count)
{
	map->incomplete += entry->have == 0;
	map->inside += count;
	for (uint32_t i = 0; i < count; i++) {
		entry->have |= bit_of(&part[i]);
		entry->value[part[i].before] = part[i].value;
	}
	if (entry->have == (UINT64_C(1) << bounds->components) - 1) {
		entry->complete = 1;
		map->complete++;
		map->incomplete--;
	}
}

static int map_put(struct map *map, const struct history *history, const struct history_op *op,
                   const struct history_map *bounds)
{
	const struct history_part *part = &history->part[op->part];
	struct entry *entry = entry_of(map, part->object);
	int refused = entry->complete || (entry->have & mask_of(history, op)) != 0;
	int room = map_has_room(map, bounds, op->parts);

	if (op->result == HISTORY_REFUSED || refused)
		return op->result == HISTORY_REFUSED && refused;
	if (op->result == HISTORY_NOT_NOW)
		return !room || bounds->alone;
	if (!room && !bounds->alone)
		return 0;
	map_insert(map, entry, bounds, part, op->parts);
	return 1;
}

static void map_remove(struct map *map, struct entry *entry, const struct history_part part[], uint32_t count)
{
	map->inside -= count;
	for (uint32_t i = 0; i < count; i++) {
		entry->have &= ~bit_of(&part[i]);
		entry->value[part[i].before] = 0;
	}
	if (entry->have == 0) {
		entry->complete = 0;
		map->complete--;
	}
}

/*
 * Returns 1 if the model explains the result of a get or peek: the entry and the operation's parts
 * agree. The parts may have been taken, or may only have been read.
 */
static int map_take(struct map *map, struct entry *entry, const struct history *history, const struct history_op *op)
{
	const struct history_part *part = &history->part[op->part];
	uint64_t mask = mask_of(history, op);

	if (op->result == HISTORY_NOT_NOW || !entry->complete)
		return op->result == HISTORY_NOT_NOW && !entry->complete;
	if (op->result == HISTORY_REFUSED || (entry->have & mask) != mask)
		return op->result == HISTORY_REFUSED && (entry->have & mask) != mask;
	for (uint32_t i = 0; i < op->parts; i++) {
		if (entry->value[part[i].before] != part[i].value)
			return 0;
	}
	if (op->kind != HISTORY_MAP_PEEK)
		map_remove(map, entry, part, op->parts);
	return 1;
}

static int map_take_any(struct map *map, const struct history *history, const struct history_op *op, int alone)
{
	struct entry *smallest = smallest_complete(map);

	if (op->result == HISTORY_DONE)
		return (alone || (smallest != NULL && smallest->key == history->part[op->part].object)) &&
		       map_take(map, entry_of(map, history->part[op->part].object), history, op);
	if (op->result == HISTORY_NOT_NOW)
		return smallest == NULL;
	return alone || (smallest != NULL && (smallest->have & op->argument) != op->argument);
}

static void map_clear(struct map *map)
{
	for (uint64_t i = 0; i < map->count; i++)
		map->entry[i] = (struct entry){.key = map->entry[i].key};
	map->complete = map->incomplete = map->inside = 0;
}

static int map_step(const struct history *history, const struct history_op *op, const void *context, void *state)
{
	const struct history_map *bounds = context;
	struct map *map = state;

	switch (op->kind) {
	case HISTORY_MAP_PUT: return map_put(map, history, op, bounds);
	case HISTORY_MAP_GET:
	case HISTORY_MAP_PEEK: return map_take(map, entry_of(map, history->part[op->part].object), history, op);
	case HISTORY_MAP_GET_ANY: return map_take_any(map, history, op, bounds->alone);
	case HISTORY_MAP_CLEAR: map_clear(map); return 1;
	case HISTORY_MAP_LOOK:
		return bounds->alone || op->argument == (map->complete << 32 | map->incomplete << 16 | map->inside);
	default: return 0;
	}
}

const struct history_model history_model_map = {map_size, map_start, map_step};

/* -- joins ------------------------------------------------------------------------------------- */

struct tuple {
	uint64_t key, have, index, value[HISTORY_MOST_COMPONENTS];
};

/*
 * The incomplete tuples, one for each key, are followed by the ready tuples in the order in which
 * they leave.
 */
struct join {
	uint64_t keys, room; /* constant */
	uint64_t next_index, closed, incomplete, ready;
	struct tuple tuple[];
};

/*
 * Returns an upper bound on the number of tuples. Each tuple needs at least one insert of its key.
 */
static size_t most_ready(const struct history *history)
{
	size_t most = 0;

	for (size_t i = 0; i < history->count; i++)
		most += history->op[i].kind == HISTORY_JOIN_INSERT ? history->op[i].parts : 0;
	return most;
}

static size_t join_size(const struct history *history, const void *context)
{
	(void)context;
	return sizeof(struct join) + (count_objects(history) + most_ready(history)) * sizeof(struct tuple);
}

static void join_start(const struct history *history, const void *context, void *state)
{
	struct join *join = state;

	memset(state, 0, join_size(history, context));
	join->room = most_ready(history);
	for (size_t i = 0; i < history->part_count; i++) {
		if (history_first_of_object(history, i))
			join->tuple[join->keys++].key = history->part[i].object;
	}
}

static struct tuple *incomplete_of(struct join *join, uint64_t key)
{
	uint64_t i = 0;

	while (join->tuple[i].key != key)
		i++;
	return &join->tuple[i];
}

static struct tuple *ready_at(struct join *join, uint64_t place)
{
	return &join->tuple[join->keys + place];
}

static void make_ready(struct join *join, struct tuple *tuple)
{
	uint64_t place = join->ready;

	while (place > 0 && ready_at(join, place - 1)->index > tuple->index)
		place--;
	memmove(ready_at(join, place + 1), ready_at(join, place), (size_t)(join->ready - place) * sizeof(*tuple));
	*ready_at(join, place) = *tuple;
	join->ready++;
	join->incomplete--;
	*tuple = (struct tuple){.key = tuple->key};
}

/* Returns the result of an insert of these parts. */
static enum history_answer answer_to(struct join *join, const struct history_part part[], uint32_t count)
{
	if (join->closed == HISTORY_JOIN_CANCELLED)
		return HISTORY_CLOSED;
	for (uint32_t i = 0; i < count; i++) {
		const struct tuple *tuple = incomplete_of(join, part[i].object);

		if (tuple->have == 0 && join->closed)
			return HISTORY_CLOSED;
		if ((tuple->have & bit_of(&part[i])) != 0)
			return HISTORY_REFUSED;
	}
	return HISTORY_DONE;
}

static int join_insert(struct join *join, const struct history *history, const struct history_op *op,
                       const struct history_join *shape)
{
	const struct history_part *part = &history->part[op->part];
	enum history_answer answer = answer_to(join, part, op->parts);
	uint64_t index = join->next_index;

	/*
	 * With `alone`, another key may have been the reason of a refusal. A close concerns all keys,
	 * so the model knows it.
	 */
	if (op->result != HISTORY_DONE)
		return op->result == answer || (shape->alone && (op->result == HISTORY_REFUSED || join->closed));
	if (answer != HISTORY_DONE)
		return 0;
	for (uint32_t i = 0; i < op->parts; i++) {
		struct tuple *tuple = incomplete_of(join, part[i].object);

		if (tuple->have == 0) {
			tuple->index = index;
			join->next_index = index + 1;
			join->incomplete++;
		}
		tuple->have |= bit_of(&part[i]);
		tuple->value[part[i].before] = part[i].value;
		if (tuple->have == (UINT64_C(1) << shape->components) - 1)
			make_ready(join, tuple);
	}
	return 1;
}

/* Returns 1 if the parts are the components of the next rows, in the order in which these leave. */
static int rows_fit(struct join *join, const struct history_part part[], uint32_t parts,
                    const struct history_join *shape)
{
	for (uint32_t i = 0; i < parts; i++) {
		uint64_t row = i / shape->components;
		const struct tuple *tuple = ready_at(join, row);

		if (row >= join->ready || tuple->key != part[i].object || tuple->value[part[i].before] != part[i].value ||
		    (!shape->alone && tuple->index != part[i].after))
			return 0;
	}
	return 1;
}

static void join_remove(struct join *join, uint64_t rows)
{
	join->ready -= rows;
	memmove(ready_at(join, 0), ready_at(join, rows), (size_t)join->ready * sizeof(struct tuple));
	memset(ready_at(join, join->ready), 0, (size_t)rows * sizeof(struct tuple));
}

static int join_take(struct join *join, const struct history *history, const struct history_op *op,
                     const struct history_join *shape)
{
	const uint64_t rows = op->parts / shape->components, wanted = op->argument & (HISTORY_JOIN_SMALL - 1);
	const int small = join->closed && (op->argument & HISTORY_JOIN_SMALL) != 0;
	const uint64_t there = small ? join->ready : join->ready + join->incomplete;
	const int over = join->closed && there < (small ? 1 : wanted);

	if (op->result == HISTORY_CLOSED)
		return over || (shape->alone && join->closed);
	if (op->result == HISTORY_NOT_NOW)
		return shape->alone || (!over && !small && join->ready < wanted);
	if (!shape->alone && (over || rows != (small && wanted > join->ready ? join->ready : wanted)))
		return 0;
	if (!rows_fit(join, &history->part[op->part], op->parts, shape))
		return 0;
	join_remove(join, rows);
	return 1;
}

static void join_close(struct join *join, uint64_t how)
{
	if (how > join->closed)
		join->closed = how;
	for (uint64_t i = 0; join->closed == HISTORY_JOIN_CANCELLED && i < join->keys; i++)
		join->tuple[i] = (struct tuple){.key = join->tuple[i].key};
	if (join->closed == HISTORY_JOIN_CANCELLED)
		join->incomplete = 0;
}

static int join_step(const struct history *history, const struct history_op *op, const void *context, void *state)
{
	const struct history_join *shape = context;
	struct join *join = state;

	switch (op->kind) {
	case HISTORY_JOIN_INSERT: return join_insert(join, history, op, shape);
	case HISTORY_JOIN_TAKE: return join_take(join, history, op, shape);
	case HISTORY_JOIN_CLOSE: join_close(join, op->argument); return 1;
	case HISTORY_JOIN_LOOK: return shape->alone || op->argument == (join->ready << 32 | join->incomplete);
	default: return 0;
	}
}

const struct history_model history_model_join = {join_size, join_start, join_step};

/* -- names ------------------------------------------------------------------------------------- */

/* For each name: its object + 1; 0: none. */
struct names {
	uint64_t count;
	struct {
		uint64_t name, object;
	} entry[];
};

static size_t names_size(const struct history *history, const void *context)
{
	(void)context;
	return sizeof(struct names) + 2 * count_objects(history) * sizeof(uint64_t);
}

static void names_start(const struct history *history, const void *context, void *state)
{
	struct names *names = state;

	memset(state, 0, names_size(history, context));
	for (size_t i = 0; i < history->part_count; i++) {
		if (history_first_of_object(history, i))
			names->entry[names->count++].name = history->part[i].object;
	}
}

static int names_step(const struct history *history, const struct history_op *op, const void *context, void *state)
{
	const struct history_part *part = &history->part[op->part];
	struct names *names = state;
	uint64_t i = 0, *there;

	(void)context;
	while (names->entry[i].name != part->object)
		i++;
	there = &names->entry[i].object;
	switch (op->kind) {
	case HISTORY_NAME_ADD:
		if (op->result == HISTORY_REFUSED || *there != 0)
			return op->result == HISTORY_REFUSED && *there != 0;
		*there = part->value + 1;
		return 1;
	case HISTORY_NAME_CREATE:
		if (part->value != op->argument)
			return *there == part->value + 1;
		if (*there != 0)
			return 0;
		*there = part->value + 1;
		return 1;
	case HISTORY_NAME_FIND: return *there == (op->result == HISTORY_REFUSED ? 0 : part->value + 1);
	case HISTORY_NAME_REMOVE:
		if (op->result == HISTORY_REFUSED || *there == 0)
			return op->result == HISTORY_REFUSED && *there == 0;
		*there = 0;
		return 1;
	default: return 0;
	}
}

const struct history_model history_model_names = {names_size, names_start, names_step};

/* -- shrinking --------------------------------------------------------------------------------- */

static int changed(const struct history *history, const struct history_op *op)
{
	switch (op->kind) {
	case HISTORY_MAP_PEEK:
	case HISTORY_MAP_LOOK:
	case HISTORY_JOIN_LOOK:
	case HISTORY_NAME_FIND: return 0;
	case HISTORY_NAME_CREATE: return history->part[op->part].value == op->argument;
	default: return op->result == HISTORY_DONE;
	}
}

void history_units_of_answers(const struct history *history, uint32_t unit[])
{
	for (size_t i = 0; i < history->count; i++)
		unit[i] = changed(history, &history->op[i]) ? HISTORY_STAYS : (uint32_t)i + 1;
}
