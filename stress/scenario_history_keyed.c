/*
 * scenario_history_keyed.c - recorded histories of map staging areas, keyed joins and named stores.
 *
 * Short rounds have few keys, so that calls contend. The search judges the whole history, key by
 * key first. Long rounds have many keys, each of which is judged alone, and leave out what concerns
 * all keys: clears, looks, closes, and results that name no key.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/flow/keyed_join.h>
#include <weir/flow/map_staging.h>
#include <weir/store.h>
#include <weir/time.h>

#include "burst.h"
#include "history/keyed.h"
#include "scenarios.h"

enum {
	COMPONENTS = 2,
	MOST_KEYS = 3, /* of an insert or a take */
	MANY = 512,
	NUMBERS = 100000,
	TEXT = 12,
	BUDGET = 100000
};

static const uint64_t patience_ns = 50000;

static struct {
	uint64_t keys; /* number of keys in this round */
	weir_map_staging *map;
	weir_keyed_join *join;
	weir_store *store;
	struct history_map map_whole, map_alone;
} now;

static void choose_keys(struct stress_thread *self)
{
	now.keys = burst_is_long() ? MANY : 1 + stress_below(self, 4);
}

static uint64_t value_of(const struct history_log *log, uint64_t number, uint64_t component)
{
	return ((uint64_t)log->thread * NUMBERS + number) * MOST_KEYS + component + 1;
}

static struct history_part part_of(uint64_t key, uint64_t component, uint64_t value)
{
	return (struct history_part){key, component, HISTORY_NONE, value};
}

/* Sets the result of a call. Returns 0 if a deadline ended the call. */
static int answer_of(enum weir_status status, uint64_t deadline, enum history_answer *answer)
{
	switch (status) {
	case WEIR_OK: *answer = HISTORY_DONE; return 1;
	case WEIR_INVALID_ARGUMENT:
	case WEIR_ALREADY_EXISTS:
	case WEIR_NOT_FOUND: *answer = HISTORY_REFUSED; return 1;
	case WEIR_OUT_OF_RANGE:
	case WEIR_CANCELLED: *answer = HISTORY_CLOSED; return 1;
	case WEIR_DEADLINE_EXCEEDED: *answer = HISTORY_NOT_NOW; return deadline == 0;
	default: stress_fail("the call returned %s", weir_status_name(status));
	}
}

static uint64_t draw_deadline(struct stress_thread *self)
{
	return stress_one_in(self, 8) ? weir_deadline_in(patience_ns) : 0;
}

static void units(const struct history *history, const struct history_finding *finding, void *context, uint32_t unit[])
{
	(void)finding;
	(void)context;
	history_units_of_answers(history, unit);
}

/* -- map staging areas ------------------------------------------------------------------------- */

static void set_up_map(struct stress_thread *self, void *context)
{
	struct weir_tensor_component components[COMPONENTS] = {{WEIR_I64, NULL, NULL}, {WEIR_I64, NULL, NULL}};
	struct weir_map_staging_options options = {WEIR_MAP_STAGING_OPTIONS_INIT, .components = components,
	                                           .component_count = COMPONENTS};

	(void)context;
	choose_keys(self);
	now.map_whole = (struct history_map){.components = COMPONENTS};
	if (!burst_is_long() && stress_one_in(self, 2))
		now.map_whole.capacity = 1 + stress_below(self, 3);
	if (!burst_is_long() && stress_one_in(self, 2))
		now.map_whole.limit = COMPONENTS + stress_below(self, 4);
	now.map_alone = now.map_whole;
	now.map_alone.alone = 1;
	options.capacity = (size_t)now.map_whole.capacity;
	options.memory_limit = (size_t)now.map_whole.limit * sizeof(uint64_t);
	STRESS_CHECK(weir_map_staging_create(&options, &now.map, NULL) == WEIR_OK, "no map staging area");
}

static void tear_down_map(struct stress_thread *self, void *context)
{
	(void)self;
	(void)context;
	STRESS_CHECK(weir_map_staging_destroy(now.map, NULL) == WEIR_OK,
	             "an operation still waits in the map staging area");
}

/* Draws some components of a key. Returns their number, and fills places[] and their parts. */
static uint32_t draw_places(struct stress_thread *self, uint64_t key, size_t places[], struct history_part part[])
{
	places[0] = (size_t)stress_below(self, COMPONENTS);
	places[1] = 1 - places[0];
	for (uint32_t i = 0; i < COMPONENTS; i++)
		part[i] = part_of(key, places[i], HISTORY_NONE);
	return stress_one_in(self, 2) ? 1 : COMPONENTS;
}

static void put_in_map(struct stress_thread *self, struct history_log *log, uint64_t number)
{
	static const weir_shape scalar = {.rank = 0};
	uint64_t key = stress_below(self, now.keys), deadline = draw_deadline(self), called, returned;
	struct history_part part[COMPONENTS];
	weir_tensor *tensors[COMPONENTS] = {NULL, NULL};
	enum history_answer answer;
	enum weir_status status;
	size_t places[COMPONENTS];
	uint32_t count = draw_places(self, key, places, part);

	for (uint32_t i = 0; i < count; i++) {
		part[i].value = value_of(log, number, i);
		STRESS_CHECK(weir_tensor_copy_of(WEIR_I64, &scalar, &part[i].value, NULL, &tensors[i]) == WEIR_OK, "no memory");
	}
	called = history_call(log);
	status = weir_map_staging_put(now.map, (int64_t)key, places, tensors, count, deadline, NULL, NULL);
	returned = history_return(log);
	for (uint32_t i = 0; i < count; i++)
		weir_tensor_release(tensors[i]);
	if (answer_of(status, deadline, &answer))
		history_note_keyed(log, HISTORY_MAP_PUT, HISTORY_NONE, part, count, answer, called, returned);
}

static void take_from_map(struct stress_thread *self, struct history_log *log, enum history_kind kind)
{
	uint64_t deadline = draw_deadline(self), argument = HISTORY_NONE, called, returned;
	int64_t key = (int64_t)stress_below(self, now.keys);
	struct history_part part[COMPONENTS];
	weir_tensor *tensors[COMPONENTS] = {NULL, NULL};
	enum history_answer answer;
	enum weir_status status;
	size_t places[COMPONENTS];
	uint32_t count = draw_places(self, (uint64_t)key, places, part);

	called = history_call(log);
	if (kind == HISTORY_MAP_GET)
		status = weir_map_staging_get(now.map, key, places, tensors, count, deadline, NULL, NULL);
	else if (kind == HISTORY_MAP_PEEK)
		status = weir_map_staging_peek(now.map, key, places, tensors, count, deadline, NULL, NULL);
	else
		status = weir_map_staging_get_any(now.map, places, &key, tensors, count, deadline, NULL, NULL);
	returned = history_return(log);
	if (!answer_of(status, deadline, &answer))
		return;
	for (uint32_t i = 0; answer == HISTORY_DONE && i < count; i++) {
		part[i] = part_of((uint64_t)key, places[i], *(const uint64_t *)weir_tensor_data(tensors[i]));
		weir_tensor_release(tensors[i]);
	}
	if (kind == HISTORY_MAP_GET_ANY) {
		argument = count == COMPONENTS ? (1 << COMPONENTS) - 1 : UINT64_C(1) << places[0];
		if (answer != HISTORY_DONE && burst_is_long())
			return;
		count = answer == HISTORY_DONE ? count : 0;
	}
	history_note_keyed(log, kind, argument, part, count, answer, called, returned);
}

static void look_at_map(struct history_log *log)
{
	size_t complete = 0, incomplete = 0, bytes = 0;
	uint64_t called = history_call(log), returned;
	enum weir_status status = weir_map_staging_size(now.map, &complete, &incomplete, &bytes);

	returned = history_return(log);
	STRESS_CHECK(status == WEIR_OK, "look: %s", weir_status_name(status));
	history_note_keyed(log, HISTORY_MAP_LOOK,
	                   (uint64_t)complete << 32 | (uint64_t)incomplete << 16 | bytes / sizeof(uint64_t), NULL, 0,
	                   HISTORY_DONE, called, returned);
}

static void clear_map(struct history_log *log)
{
	uint64_t called = history_call(log), returned;
	enum weir_status status = weir_map_staging_clear(now.map);

	returned = history_return(log);
	STRESS_CHECK(status == WEIR_OK, "clear: %s", weir_status_name(status));
	history_note_keyed(log, HISTORY_MAP_CLEAR, HISTORY_NONE, NULL, 0, HISTORY_DONE, called, returned);
}

static void act_on_map(struct stress_thread *self, struct history_log *log, uint64_t number, void *context)
{
	uint64_t what = stress_below(self, burst_is_long() ? 14 : 16);

	(void)context;
	stress_begin(self, "map staging area");
	if (what < 6)
		put_in_map(self, log, number);
	else if (what < 14)
		take_from_map(self, log, what < 9 ? HISTORY_MAP_GET : what < 12 ? HISTORY_MAP_GET_ANY : HISTORY_MAP_PEEK);
	else if (what == 14 || !stress_one_in(self, 4))
		look_at_map(log);
	else
		clear_map(log);
}

static enum history_verdict check_map(const struct history *history, void *context, struct history_finding *finding)
{
	(void)context;
	return history_check_each(history, &history_model_map, &now.map_alone, BUDGET, finding);
}

static const void *map_context(void *context)
{
	(void)context;
	return &now.map_whole;
}

void scenario_history_map_staging(void)
{
	const struct burst burst = {.set_up = set_up_map,
	                            .act = act_on_map,
	                            .tear_down = tear_down_map,
	                            .check = check_map,
	                            .units = units,
	                            .model = &history_model_map,
	                            .model_context = map_context};

	burst_run(&burst);
}

/* -- keyed joins ------------------------------------------------------------------------------- */

static const struct history_join join_whole = {COMPONENTS, 0}, join_alone = {COMPONENTS, 1};

static void set_up_keyed_join(struct stress_thread *self, void *context)
{
	static const weir_shape scalar = {.rank = 0};
	struct weir_tensor_component components[COMPONENTS] = {{WEIR_I64, &scalar, NULL}, {WEIR_I64, &scalar, NULL}};
	struct weir_keyed_join_options options = {WEIR_KEYED_JOIN_OPTIONS_INIT, .components = components,
	                                          .component_count = COMPONENTS};

	(void)context;
	choose_keys(self);
	STRESS_CHECK(weir_keyed_join_create(&options, &now.join, NULL) == WEIR_OK, "no keyed join");
}

static void tear_down_keyed_join(struct stress_thread *self, void *context)
{
	(void)self;
	(void)context;
	STRESS_CHECK(weir_keyed_join_destroy(now.join, NULL) == WEIR_OK, "an operation still waits in the keyed join");
}

static void insert(struct stress_thread *self, struct history_log *log, uint64_t number)
{
	const uint64_t most = now.keys < MOST_KEYS ? now.keys : MOST_KEYS, first = stress_below(self, now.keys);
	const uint64_t count = 1 + stress_below(self, most), component = stress_below(self, COMPONENTS);
	const weir_shape shape = {.rank = 1, .dims = {(int64_t)count}};
	struct history_part part[MOST_KEYS];
	uint64_t value[MOST_KEYS], called, returned;
	char text[MOST_KEYS][TEXT];
	weir_bytes name[MOST_KEYS];
	weir_tensor *keys, *values;
	enum history_answer answer;
	enum weir_status status;

	for (uint64_t i = 0; i < count; i++) {
		uint64_t key = (first + i) % now.keys;

		value[i] = value_of(log, number, i);
		part[i] = part_of(key, component, value[i]);
		(void)snprintf(text[i], TEXT, "%u", (unsigned)key);
		name[i] = (weir_bytes){text[i], strlen(text[i])};
	}
	STRESS_CHECK(weir_tensor_copy_of(WEIR_BYTES, &shape, name, NULL, &keys) == WEIR_OK &&
	                 weir_tensor_copy_of(WEIR_I64, &shape, value, NULL, &values) == WEIR_OK,
	             "no memory");
	called = history_call(log);
	status = weir_keyed_join_insert_many(now.join, (size_t)component, keys, values, NULL);
	returned = history_return(log);
	weir_tensor_release(keys);
	weir_tensor_release(values);
	if (answer_of(status, 0, &answer))
		history_note_keyed(log, HISTORY_JOIN_INSERT, HISTORY_NONE, part, (size_t)count, answer, called, returned);
}

static uint64_t key_at(const struct weir_keyed_join_batch *batch, int64_t row)
{
	const weir_bytes *key = (const weir_bytes *)weir_tensor_data(batch->keys) + row;
	char text[TEXT + 1] = {0};

	STRESS_CHECK(key->size <= TEXT, "a key of %zu bytes", key->size);
	memcpy(text, key->data, key->size);
	return strtoull(text, NULL, 10);
}

/* Turns the rows of a batch into parts, and releases the batch. */
static size_t parts_of(struct weir_keyed_join_batch *batch, struct history_part part[])
{
	size_t count = 0;

	for (int64_t row = 0; row < (int64_t)batch->count; row++) {
		for (size_t i = 0; i < COMPONENTS; i++) {
			part[count] = part_of(key_at(batch, row), i, ((const uint64_t *)weir_tensor_data(batch->values[i]))[row]);
			part[count++].after =
				(uint64_t)((const int64_t *)weir_tensor_data(batch->indices))[row] - (uint64_t)INT64_MIN;
		}
	}
	weir_tensor_release(batch->indices);
	weir_tensor_release(batch->keys);
	for (size_t i = 0; i < COMPONENTS; i++)
		weir_tensor_release(batch->values[i]);
	return count;
}

static void take(struct stress_thread *self, struct history_log *log)
{
	uint64_t n = 1 + stress_below(self, MOST_KEYS), small = stress_below(self, 2), deadline = draw_deadline(self);
	uint64_t called = history_call(log), returned;
	struct history_part part[MOST_KEYS * COMPONENTS];
	struct weir_keyed_join_batch batch;
	enum weir_status status = weir_keyed_join_take_many(
		now.join, (size_t)n, small ? WEIR_KEYED_JOIN_ALLOW_SMALL_BATCH : 0, deadline, NULL, &batch, NULL);
	enum history_answer answer;

	returned = history_return(log);
	if (!answer_of(status, deadline, &answer) || (answer != HISTORY_DONE && burst_is_long()))
		return;
	STRESS_CHECK(answer != HISTORY_DONE || batch.count <= MOST_KEYS, "a take returned more than it asked for");
	history_note_keyed(log, HISTORY_JOIN_TAKE, n | (small ? HISTORY_JOIN_SMALL : 0), part,
	                   answer == HISTORY_DONE ? parts_of(&batch, part) : 0, answer, called, returned);
}

static void look_at_keyed_join(struct history_log *log)
{
	size_t ready = 0, incomplete = 0;
	uint64_t called = history_call(log), returned;
	enum weir_status status = weir_keyed_join_size(now.join, &ready, &incomplete);

	returned = history_return(log);
	STRESS_CHECK(status == WEIR_OK, "look: %s", weir_status_name(status));
	history_note_keyed(log, HISTORY_JOIN_LOOK, (uint64_t)ready << 32 | incomplete, NULL, 0, HISTORY_DONE, called,
	                   returned);
}

static void close_keyed_join(struct stress_thread *self, struct history_log *log)
{
	int drains = stress_one_in(self, 2);
	uint64_t called = history_call(log), returned;
	enum weir_status status = weir_keyed_join_close(now.join, drains ? WEIR_CLOSE_DRAIN : WEIR_CLOSE_CANCEL, NULL);

	returned = history_return(log);
	STRESS_CHECK(status == WEIR_OK, "close: %s", weir_status_name(status));
	history_note_keyed(log, HISTORY_JOIN_CLOSE, drains ? HISTORY_JOIN_DRAINS : HISTORY_JOIN_CANCELLED, NULL, 0,
	                   HISTORY_DONE, called, returned);
}

static void act_on_keyed_join(struct stress_thread *self, struct history_log *log, uint64_t number, void *context)
{
	uint64_t what = stress_below(self, burst_is_long() ? 14 : 16);

	(void)context;
	stress_begin(self, "keyed_join");
	if (what < 9)
		insert(self, log, number);
	else if (what < 14)
		take(self, log);
	else if (what == 14 || !stress_one_in(self, 4))
		look_at_keyed_join(log);
	else
		close_keyed_join(self, log);
}

static enum history_verdict check_keyed_join(const struct history *history, void *context,
                                             struct history_finding *finding)
{
	(void)context;
	return history_check_each(history, &history_model_join, &join_alone, BUDGET, finding);
}

static const void *join_context(void *context)
{
	(void)context;
	return &join_whole;
}

void scenario_history_keyed_join(void)
{
	const struct burst burst = {.set_up = set_up_keyed_join,
	                            .act = act_on_keyed_join,
	                            .tear_down = tear_down_keyed_join,
	                            .check = check_keyed_join,
	                            .units = units,
	                            .model = &history_model_join,
	                            .model_context = join_context};

	burst_run(&burst);
}

/* -- stores ------------------------------------------------------------------------------------ */

/* Objects are numbers. */
static const struct weir_resource_type type = {"number", NULL};

static void set_up_store(struct stress_thread *self, void *context)
{
	(void)context;
	choose_keys(self);
	STRESS_CHECK(weir_store_create(NULL, &now.store, NULL) == WEIR_OK, "no store");
}

static void tear_down_store(struct stress_thread *self, void *context)
{
	(void)self;
	(void)context;
	weir_store_destroy(now.store, NULL);
}

/* Returns the number of a resource, and releases the reference. */
static uint64_t number_in(weir_resource *resource)
{
	uint64_t number = (uintptr_t)weir_resource_object(resource);

	weir_resource_release(resource);
	return number;
}

static enum weir_status give(void *context, void **object, weir_error *error)
{
	(void)error;
	*object = context;
	return WEIR_OK;
}

static void act_on_store(struct stress_thread *self, struct history_log *log, uint64_t number, void *context)
{
	static const enum history_kind kinds[] = {HISTORY_NAME_ADD, HISTORY_NAME_FIND, HISTORY_NAME_CREATE,
	                                          HISTORY_NAME_REMOVE};
	const enum history_kind kind = kinds[stress_below(self, 4)];
	const uint64_t key = stress_below(self, now.keys), mine = value_of(log, number, 0);
	const struct weir_store_maker maker = {.create = give, .context = (void *)(uintptr_t)mine};
	struct history_part part = part_of(key, 0, HISTORY_NONE);
	weir_resource *found = NULL;
	enum history_answer answer;
	enum weir_status status;
	uint64_t called, returned;
	char name[TEXT];

	(void)context;
	stress_begin(self, "named store");
	(void)snprintf(name, sizeof(name), "%u", (unsigned)key);
	called = history_call(log);
	switch (kind) {
	case HISTORY_NAME_ADD: status = weir_store_add(now.store, NULL, name, &type, maker.context, &found, NULL); break;
	case HISTORY_NAME_FIND: status = weir_store_find(now.store, NULL, name, &type, &found, NULL); break;
	case HISTORY_NAME_CREATE:
		status = weir_store_find_or_create(now.store, NULL, name, &type, &maker, &found, NULL);
		break;
	default: status = weir_store_remove(now.store, NULL, name, NULL);
	}
	returned = history_return(log);
	STRESS_CHECK(answer_of(status, 0, &answer) && answer <= HISTORY_REFUSED, "the call returned %s",
	             weir_status_name(status));
	if (found != NULL)
		part.value = number_in(found);
	history_note_keyed(log, kind, kind == HISTORY_NAME_CREATE ? mine : HISTORY_NONE, &part, 1, answer, called,
	                   returned);
}

static enum history_verdict check_store(const struct history *history, void *context, struct history_finding *finding)
{
	(void)context;
	return history_check_each(history, &history_model_names, NULL, BUDGET, finding);
}

static const void *no_context(void *context)
{
	return context;
}

void scenario_history_store(void)
{
	const struct burst burst = {.set_up = set_up_store,
	                            .act = act_on_store,
	                            .tear_down = tear_down_store,
	                            .check = check_store,
	                            .units = units,
	                            .model = &history_model_names,
	                            .model_context = no_context};

	burst_run(&burst);
}
