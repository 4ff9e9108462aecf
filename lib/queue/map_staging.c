/*
 * map_staging.c - map staging areas.
 *
 * Algorithm. An area (area.h) whose content is versions of two sorted collections of entries by key (tree.h, map_entry.h), those that are
 * complete and those that are not yet, and the sum of their bytes. So the completion of a key moves it from one to the other at one instant.
 *
 * Invariants, beside those of map_entry.h
 *   M3  a key is in at most one of the collections; `have` of an incomplete one is neither empty nor full, that of a complete one not empty
 *   M4  bytes is the sum over the parts of both collections
 * Linearization. A change: its CAS. A look, a refusal, and what is told to wait: the read of the state. A peek: the last read of the state.
 * Progress: lock-free, but for the allocator: an attempt is repeated when another thread's change was published.
 * Memory: per component a part, per key an entry and its node; a change makes an entry and about 2 log2 n nodes of 128 bytes, and retires
 *   as many.
 * Checked: tests/test_map_staging.c, stress/model/check_map_staging.c, weir-stress "map_staging", "map_staging_stopped", "history_map_staging".
 */
#include "queue/map_staging.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "queue/area.h"
#include "queue/map_entry.h"

struct content {
	struct weiri_tree *complete, *incomplete;
	size_t bytes;
};

struct weir_map_staging {
	struct weiri_area area; /* first */
	size_t capacity, memory_limit;
};

enum kind { PUT, GET, GET_ANY, PEEK };

struct request {
	weir_map_staging *map;
	enum kind kind;
	int64_t key;                    /* get_any: once it is known */
	struct weiri_map_choice choice; /* put: its parts until they are in; else those that came out */
};

struct weir_map_staging_op {
	struct weiri_await await; /* first */
	struct request request;
	weir_map_staging_done_fn *done;
	void *context;
};

_Static_assert((int)WEIR_TENSOR_QUEUE_MAX_COMPONENTS <= 64, "a bit each in `have`");

static const char what[] = "map staging area";
static const char *const verbs[] = {"put", "get", "get_any", "peek"};

static uint64_t all_of(const weir_map_staging *map)
{
	return UINT64_MAX >> (64 - map->area.count);
}

static const struct content *content_of(const struct weiri_area_state *state)
{
	return (const struct content *)(const void *)state->content;
}

/* -- putting ------------------------------------------------------------------------------------------------------------------ */

/* The first of the places whose bit is, or is not, in `bits`. */
static size_t first_place(const struct request *request, uint64_t bits, int is_in)
{
	size_t i = 0;

	while (((bits & weiri_map_bit(request->choice.places[i])) != 0) != is_in)
		i++;
	return request->choice.places[i];
}

/* WEIR_OK: it may go in now, beside *there, which may be NULL. */
static enum weir_status may_put(const struct content *content, const struct request *put,
                                struct weiri_map_entry **there, weir_error *error)
{
	const weir_map_staging *map = put->map;
	size_t has, place;

	if (weiri_tree_find(content->complete, weiri_map_compare_keys, &put->key) != NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s \"%s\": key %lld is complete, and not all of it taken yet",
		                  what, map->area.name, (long long)put->key);
	*there = weiri_tree_find(content->incomplete, weiri_map_compare_keys, &put->key);
	if (*there != NULL && ((*there)->have & put->choice.mask) != 0) {
		place = first_place(put, (*there)->have, 1);
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s \"%s\": key %lld has component %zu (%s) already", what,
		                  map->area.name, (long long)put->key, place, map->area.components[place].name);
	}
	has = *there != NULL ? (*there)->bytes : 0;
	if (map->memory_limit != 0 && put->choice.bytes > map->memory_limit - has)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED,
		                  "%s \"%s\": key %lld would have %zu bytes, the limit of all is %zu", what, map->area.name,
		                  (long long)put->key, has + put->choice.bytes, map->memory_limit);
	if (map->capacity != 0 && weiri_tree_count(content->complete) >= map->capacity)
		return WEIR_WOULD_BLOCK;
	if (map->memory_limit != 0 && put->choice.bytes > map->memory_limit - content->bytes)
		return WEIR_WOULD_BLOCK;
	return WEIR_OK;
}

static void add_entry(const weir_map_staging *map, struct weiri_tree_edit *edit, struct content *next,
                      const struct weiri_map_entry *there, struct weiri_map_entry *entry)
{
	if (entry->have == all_of(map)) {
		if (there != NULL)
			next->incomplete = weiri_tree_remove(edit, next->incomplete, weiri_map_compare_keys, &entry->key);
		next->complete =
			weiri_tree_insert(edit, next->complete, weiri_map_compare_keys, &entry->key, (uint64_t)entry->key, entry);
	} else if (there != NULL) {
		next->incomplete = weiri_tree_replace(edit, next->incomplete, weiri_map_compare_keys, &entry->key, entry);
	} else {
		next->incomplete =
			weiri_tree_insert(edit, next->incomplete, weiri_map_compare_keys, &entry->key, (uint64_t)entry->key, entry);
	}
}

/* 0: another change came first. */
static int try_put(struct weiri_scope *scope, struct request *put, struct weiri_area_state *state,
                   struct weiri_map_entry *there, enum weir_status *status)
{
	struct weiri_tree_edit edit = weiri_tree_edit_begin(&put->map->area.allocator);
	const struct weiri_area *area = &put->map->area;
	struct weiri_map_entry *entry = weiri_map_entry_with(&put->choice, put->key, area->count, there, &area->allocator);
	struct content next = *content_of(state);
	int over;

	if (entry != NULL)
		add_entry(put->map, &edit, &next, there, entry);
	else
		edit.failed = 1;
	next.bytes += put->choice.bytes;
	over = weiri_area_publish(scope, &put->map->area, state, &next, &edit, status);
	if (!over || *status != WEIR_OK) {
		weiri_map_entry_discard(entry);
		return over;
	}
	put->choice.filled = 0; /* M1: the area's now */
	if (there != NULL)
		weiri_scope_retire(scope, &there->retired);
	return 1;
}

static enum weir_status put(struct weiri_scope *scope, struct request *request, weir_error *error)
{
	struct weiri_map_entry *there;
	struct weiri_area_state *state;
	enum weir_status status;

	do {
		state = weiri_area_read(scope, &request->map->area);
		status = may_put(content_of(state), request, &there, error);
		if (status != WEIR_OK)
			return status;
	} while (!try_put(scope, request, state, there, &status));
	if (status != WEIR_OK)
		return weiri_area_no_memory(&request->map->area, "put", error);
	return WEIR_OK;
}

/* -- taking ------------------------------------------------------------------------------------------------------------------- */

/* WEIR_OK: *entry has what is asked for. */
static enum weir_status may_take(const struct content *content, const struct request *take,
                                 struct weiri_map_entry **entry, weir_error *error)
{
	const weir_map_staging *map = take->map;
	size_t place;

	*entry = take->kind == GET_ANY ? weiri_tree_at(content->complete, 0)
	                               : weiri_tree_find(content->complete, weiri_map_compare_keys, &take->key);
	if (*entry == NULL)
		return WEIR_WOULD_BLOCK;
	if (((*entry)->have & take->choice.mask) == take->choice.mask)
		return WEIR_OK;
	place = first_place(take, (*entry)->have, 0);
	return weiri_fail(error, WEIR_INVALID_ARGUMENT,
	                  "%s \"%s\": component %zu (%s) of key %lld has already been removed", what, map->area.name, place,
	                  map->area.components[place].name, (long long)(*entry)->key);
}

/* 0: another change came first. */
static int try_get(struct weiri_scope *scope, struct request *get, struct weiri_area_state *state,
                   struct weiri_map_entry *entry, enum weir_status *status)
{
	struct weiri_tree_edit edit = weiri_tree_edit_begin(&get->map->area.allocator);
	struct content next = *content_of(state);
	struct weiri_map_entry *rest = NULL;
	int over;

	next.bytes -= weiri_map_choice_bytes(&get->choice, entry);
	if (entry->have == get->choice.mask) {
		next.complete = weiri_tree_remove(&edit, next.complete, weiri_map_compare_keys, &entry->key);
	} else {
		rest = weiri_map_entry_without(&get->choice, entry);
		if (rest != NULL)
			next.complete = weiri_tree_replace(&edit, next.complete, weiri_map_compare_keys, &entry->key, rest);
		else
			edit.failed = 1;
	}
	over = weiri_area_publish(scope, &get->map->area, state, &next, &edit, status);
	if (!over || *status != WEIR_OK) {
		weiri_map_entry_discard(rest);
		return over;
	}
	weiri_map_choice_take(&get->choice, entry); /* M1: ours now */
	get->key = entry->key;
	weiri_scope_retire(scope, &entry->retired);
	return 1;
}

static enum weir_status get(struct weiri_scope *scope, struct request *request, weir_error *error)
{
	struct weiri_map_entry *entry;
	struct weiri_area_state *state;
	enum weir_status status;

	do {
		state = weiri_area_read(scope, &request->map->area);
		status = may_take(content_of(state), request, &entry, error);
		if (status != WEIR_OK)
			return status;
	} while (!try_get(scope, request, state, entry, &status));
	if (status != WEIR_OK)
		return weiri_area_no_memory(&request->map->area, verbs[request->kind], error);
	return WEIR_OK;
}

static enum weir_status peek(struct weiri_scope *scope, struct request *request, weir_error *error)
{
	struct weiri_map_entry *entry;
	enum weir_status status;

	do {
		status = may_take(content_of(weiri_area_read(scope, &request->map->area)), request, &entry, error);
	} while (status == WEIR_OK && !weiri_map_choice_retain(scope, &request->choice, entry));
	return status;
}

static enum weir_status attempt_request(struct weiri_scope *scope, struct request *request, weir_error *error)
{
	switch (request->kind) {
	case PUT: return put(scope, request, error);
	case PEEK: return peek(scope, request, error);
	default: return get(scope, request, error);
	}
}

static enum weir_status attempt(struct weiri_scope *scope, struct weiri_await *await, weir_error *error)
{
	return attempt_request(scope, &((weir_map_staging_op *)(void *)await)->request, error);
}

/* -- requests ----------------------------------------------------------------------------------------------------------------- */

static enum weir_status check_places(const size_t places[], size_t count, struct request *request, weir_error *error)
{
	const weir_map_staging *map = request->map;

	if (count == 0 || count > map->area.count || (places == NULL && count != map->area.count))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s \"%s\": a tuple has %zu components, got %zu", what,
		                  map->area.name, map->area.count, count);
	for (size_t i = 0; i < count; i++) {
		size_t place = places != NULL ? places[i] : i;

		if (place >= map->area.count)
			return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s \"%s\" has %zu components, there is none of index %zu",
			                  what, map->area.name, map->area.count, place);
		if ((request->choice.mask & weiri_map_bit(place)) != 0)
			return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s \"%s\": component %zu (%s) is named twice", what,
			                  map->area.name, place, map->area.components[place].name);
		request->choice.mask |= weiri_map_bit(place);
		request->choice.places[i] = (uint8_t)place;
	}
	return WEIR_OK;
}

static enum weir_status request_init(struct request *request, weir_map_staging *map, enum kind kind, int64_t key,
                                     const size_t places[], size_t count, struct weiri_record **record,
                                     weir_error *error)
{
	enum weir_status status;

	if (map == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: NULL", what);
	*request = (struct request){.map = map, .kind = kind, .key = key, .choice.count = count};
	status = check_places(places, count, request, error);
	if (status != WEIR_OK)
		return status;
	return weiri_area_record(&map->area, record, error);
}

/* The parts of a put, once its places are known. */
static enum weir_status fill_put(struct weiri_record *record, struct request *put, weir_tensor *const tensors[],
                                 weir_error *error)
{
	const weir_map_staging *map = put->map;

	if (tensors == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s \"%s\": tensors is NULL", what, map->area.name);
	for (size_t i = 0; i < put->choice.count; i++) {
		enum weir_status status = weiri_component_check(&map->area.components[put->choice.places[i]],
		                                                put->choice.places[i], tensors[i], what, map->area.name, error);

		if (status != WEIR_OK)
			return status;
	}
	for (size_t i = 0; i < put->choice.count; i++) {
		if (!weiri_map_choice_add(&put->choice, tensors[i], &map->area.allocator)) {
			weiri_map_choice_let_go(record, &put->choice);
			return weiri_area_no_memory(&map->area, "put", error);
		}
	}
	return WEIR_OK;
}

/* -- operations --------------------------------------------------------------------------------------------------------------- */

/* Of an asynchronous operation. */
static void op_done(struct weiri_await *await)
{
	weir_map_staging_op *op = (weir_map_staging_op *)(void *)await;
	weir_tensor *tensors[WEIR_TENSOR_QUEUE_MAX_COMPONENTS];
	struct weiri_record *record = weiri_record_get(); /* not NULL: who completes it has one */
	size_t count = op->request.kind != PUT ? op->request.choice.filled : 0;

	if (count != 0)
		weiri_map_choice_open(record, &op->request.choice, tensors);
	else
		weiri_map_choice_let_go(record, &op->request.choice);
	op->done(op->context, await->status, await->status != WEIR_OK ? &await->error : NULL, op->request.key, tensors,
	         count);
}

/* Takes over what the request holds. NULL: no memory, and it is still the caller's. */
static weir_map_staging_op *op_create(const struct request *request, weir_map_staging_done_fn *done, void *context,
                                      weir_error *error)
{
	struct weiri_area *area = &request->map->area;
	weir_map_staging_op *op =
		(weir_map_staging_op *)(void *)weiri_await_create(&area->awaits, sizeof(*op), verbs[request->kind], attempt,
	                                                      done != NULL ? op_done : NULL, &area->allocator, error);

	if (op == NULL)
		return NULL;
	op->request = *request;
	op->done = done;
	op->context = context;
	return op;
}

void weir_map_staging_op_cancel(weir_map_staging_op *op)
{
	if (op != NULL)
		weiri_await_cancel(&op->await);
}

void weir_map_staging_op_release(weir_map_staging_op *op)
{
	if (op != NULL)
		weiri_await_release(&op->await);
}

/* -- blocking calls ----------------------------------------------------------------------------------------------------------- */

/* Without waiting: no operation that others could see. */
static enum weir_status run_at_once(struct weiri_record *record, struct request *request, weir_error *error)
{
	struct weiri_scope scope = weiri_scope_enter(record);
	enum weir_status status = attempt_request(&scope, request, error);

	weiri_scope_leave(&scope);
	if (status == WEIR_OK && request->kind != PEEK)
		weiri_await_pump(record, &request->map->area.awaits);
	return status;
}

static enum weir_status fail_at_once(const struct request *request, weir_error *error)
{
	const char *name = request->map->area.name;

	if (request->kind == PUT)
		return weiri_fail(error, WEIR_DEADLINE_EXCEEDED, "%s \"%s\": no room at once", what, name);
	if (request->kind == GET_ANY)
		return weiri_fail(error, WEIR_DEADLINE_EXCEEDED, "%s \"%s\": no complete key at once", what, name);
	return weiri_fail(error, WEIR_DEADLINE_EXCEEDED, "%s \"%s\": key %lld is not complete at once", what, name,
	                  (long long)request->key);
}

/* To its end. */
static enum weir_status run(struct weiri_record *record, struct request *request, uint64_t deadline_ns,
                            weir_cancel *cancel, weir_error *error)
{
	enum weir_status status = weiri_await_check_token(&request->map->area.awaits, verbs[request->kind], cancel, error);
	weir_map_staging_op *op;

	if (status == WEIR_OK)
		status = run_at_once(record, request, error);
	if (status != WEIR_WOULD_BLOCK)
		return status;
	if (deadline_ns == 0)
		return fail_at_once(request, error);
	op = op_create(request, NULL, NULL, error);
	if (op == NULL)
		return WEIR_RESOURCE_EXHAUSTED;
	status = weiri_await_run(record, &op->await, deadline_ns, cancel, error);
	*request = op->request;
	weiri_await_release(&op->await);
	return status;
}

enum weir_status weir_map_staging_put(weir_map_staging *map, int64_t key, const size_t places[],
                                      weir_tensor *const tensors[], size_t count, uint64_t deadline_ns,
                                      weir_cancel *cancel, weir_error *error)
{
	struct weiri_record *record;
	struct request request;
	enum weir_status status = request_init(&request, map, PUT, key, places, count, &record, error);

	if (status == WEIR_OK)
		status = fill_put(record, &request, tensors, error);
	if (status != WEIR_OK)
		return status;
	status = run(record, &request, deadline_ns, cancel, error);
	weiri_map_choice_let_go(record, &request.choice);
	return status;
}

/* *key, if not NULL, is that of what came out. */
static enum weir_status take(weir_map_staging *map, enum kind kind, int64_t of, const size_t places[], int64_t *key,
                             weir_tensor *tensors[], size_t count, uint64_t deadline_ns, weir_cancel *cancel,
                             weir_error *error)
{
	struct weiri_record *record;
	struct request request;
	enum weir_status status = request_init(&request, map, kind, of, places, count, &record, error);

	if (status == WEIR_OK && (tensors == NULL || (kind == GET_ANY && key == NULL)))
		status = weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s \"%s\": %s is NULL", what, map->area.name,
		                    tensors == NULL ? "tensors" : "key");
	if (status == WEIR_OK)
		status = run(record, &request, deadline_ns, cancel, error);
	if (status != WEIR_OK)
		return status;
	if (key != NULL)
		*key = request.key;
	weiri_map_choice_open(record, &request.choice, tensors);
	return WEIR_OK;
}

enum weir_status weir_map_staging_get(weir_map_staging *map, int64_t key, const size_t places[], weir_tensor *tensors[],
                                      size_t count, uint64_t deadline_ns, weir_cancel *cancel, weir_error *error)
{
	return take(map, GET, key, places, NULL, tensors, count, deadline_ns, cancel, error);
}

enum weir_status weir_map_staging_get_any(weir_map_staging *map, const size_t places[], int64_t *key,
                                          weir_tensor *tensors[], size_t count, uint64_t deadline_ns,
                                          weir_cancel *cancel, weir_error *error)
{
	return take(map, GET_ANY, 0, places, key, tensors, count, deadline_ns, cancel, error);
}

enum weir_status weir_map_staging_peek(weir_map_staging *map, int64_t key, const size_t places[],
                                       weir_tensor *tensors[], size_t count, uint64_t deadline_ns, weir_cancel *cancel,
                                       weir_error *error)
{
	return take(map, PEEK, key, places, NULL, tensors, count, deadline_ns, cancel, error);
}

/* -- asynchronous ------------------------------------------------------------------------------------------------------------- */

/* Takes over what the request holds when it returns WEIR_OK. */
static enum weir_status start(struct weiri_record *record, const struct request *request,
                              weir_map_staging_done_fn *done, void *context, weir_map_staging_op **out,
                              weir_error *error)
{
	enum weir_status status = weiri_area_check_done(&request->map->area, done != NULL, error);
	weir_map_staging_op *op;

	if (status != WEIR_OK)
		return status;
	op = op_create(request, done, context, error);
	if (op == NULL)
		return WEIR_RESOURCE_EXHAUSTED;
	if (out != NULL)
		*out = op;
	weiri_await_begin(record, &op->await, out != NULL);
	return WEIR_OK;
}

enum weir_status weir_map_staging_start_put(weir_map_staging *map, int64_t key, const size_t places[],
                                            weir_tensor *const tensors[], size_t count, weir_map_staging_done_fn *done,
                                            void *context, weir_map_staging_op **op, weir_error *error)
{
	struct weiri_record *record;
	struct request request;
	enum weir_status status = request_init(&request, map, PUT, key, places, count, &record, error);

	if (status == WEIR_OK)
		status = fill_put(record, &request, tensors, error);
	if (status != WEIR_OK)
		return status;
	status = start(record, &request, done, context, op, error);
	if (status != WEIR_OK)
		weiri_map_choice_let_go(record, &request.choice);
	return status;
}

static enum weir_status start_take(weir_map_staging *map, enum kind kind, int64_t key, const size_t places[],
                                   size_t count, weir_map_staging_done_fn *done, void *context,
                                   weir_map_staging_op **op, weir_error *error)
{
	struct weiri_record *record;
	struct request request;
	enum weir_status status = request_init(&request, map, kind, key, places, count, &record, error);

	return status == WEIR_OK ? start(record, &request, done, context, op, error) : status;
}

enum weir_status weir_map_staging_start_get(weir_map_staging *map, int64_t key, const size_t places[], size_t count,
                                            weir_map_staging_done_fn *done, void *context, weir_map_staging_op **op,
                                            weir_error *error)
{
	return start_take(map, GET, key, places, count, done, context, op, error);
}

enum weir_status weir_map_staging_start_get_any(weir_map_staging *map, const size_t places[], size_t count,
                                                weir_map_staging_done_fn *done, void *context, weir_map_staging_op **op,
                                                weir_error *error)
{
	return start_take(map, GET_ANY, 0, places, count, done, context, op, error);
}

enum weir_status weir_map_staging_start_peek(weir_map_staging *map, int64_t key, const size_t places[], size_t count,
                                             weir_map_staging_done_fn *done, void *context, weir_map_staging_op **op,
                                             weir_error *error)
{
	return start_take(map, PEEK, key, places, count, done, context, op, error);
}

/* -- all at once -------------------------------------------------------------------------------------------------------------- */

struct clearing {
	struct weiri_scope scope;
	struct weiri_map_part *gone;
};

/* M1: its parts are ours now. */
static void clear_entry(void *context, void *item)
{
	struct clearing *clearing = context;
	struct weiri_map_entry *entry = item;

	weiri_map_entry_chain(entry, &clearing->gone);
	weiri_scope_retire(&clearing->scope, &entry->retired);
}

enum weir_status weir_map_staging_clear(weir_map_staging *map)
{
	static const struct content nothing;
	struct weiri_record *record = map != NULL ? weiri_record_get() : NULL;
	struct clearing clearing = {.gone = NULL};
	struct weiri_area_state *state;
	struct weiri_tree_edit edit;
	enum weir_status status;

	if (record == NULL)
		return map == NULL ? WEIR_INVALID_ARGUMENT : WEIR_RESOURCE_EXHAUSTED;
	clearing.scope = weiri_scope_enter(record);
	do {
		state = weiri_area_read(&clearing.scope, &map->area);
		edit = weiri_tree_edit_begin(&map->area.allocator);
	} while (!weiri_area_publish(&clearing.scope, &map->area, state, &nothing, &edit, &status));
	if (status == WEIR_OK) {
		weiri_tree_end(content_of(state)->complete, &clearing.scope, clear_entry, &clearing);
		weiri_tree_end(content_of(state)->incomplete, &clearing.scope, clear_entry, &clearing);
	}
	weiri_scope_leave(&clearing.scope);
	weiri_map_parts_release(record, clearing.gone);
	weiri_await_pump(record, &map->area.awaits);
	return status;
}

enum weir_status weir_map_staging_look(const weir_map_staging *map, size_t *complete, size_t *incomplete, size_t *bytes)
{
	struct weiri_record *record = map != NULL ? weiri_record_get() : NULL;
	const struct content *content;
	struct weiri_scope scope;

	if (record == NULL)
		return map == NULL ? WEIR_INVALID_ARGUMENT : WEIR_RESOURCE_EXHAUSTED;
	scope = weiri_scope_enter(record);
	content = content_of(weiri_area_read(&scope, &map->area));
	if (complete != NULL)
		*complete = weiri_tree_count(content->complete);
	if (incomplete != NULL)
		*incomplete = weiri_tree_count(content->incomplete);
	if (bytes != NULL)
		*bytes = content->bytes;
	weiri_scope_leave(&scope);
	return WEIR_OK;
}

size_t weiri_map_staging_waiting(const weir_map_staging *map)
{
	return weiri_area_waiting(&map->area);
}

enum weir_status weir_map_staging_place(const weir_map_staging *map, const char *component, size_t *place)
{
	if (map == NULL || component == NULL || place == NULL)
		return WEIR_INVALID_ARGUMENT;
	return weiri_components_place(map->area.components, map->area.count, component, place);
}

enum weir_status weir_map_staging_key_of(const weir_map_staging *map, const weir_tensor *tensor, int64_t *key,
                                         weir_error *error)
{
	char have[WEIR_SHAPE_TEXT_SIZE];

	if (map == NULL || tensor == NULL || key == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: %s is NULL", what,
		                  map == NULL      ? "map"
		                  : tensor == NULL ? "the tensor of a key"
		                                   : "key");
	if (weir_tensor_dtype(tensor) != WEIR_I64 || weir_tensor_shape(tensor)->rank != 0)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s \"%s\": a key must be i64 of shape [], got %s of %s", what,
		                  map->area.name, weir_dtype_name(weir_tensor_dtype(tensor)),
		                  weir_shape_text(weir_tensor_shape(tensor), have, sizeof(have)));
	memcpy(key, weir_tensor_data(tensor), sizeof(*key));
	return WEIR_OK;
}

/* -- creating and destroying -------------------------------------------------------------------------------------------------- */

static void tell(const struct weiri_area *area, const void *content, char *text, size_t size)
{
	const weir_map_staging *map = (const weir_map_staging *)(const void *)area;
	const struct content *now = content;
	char complete[WEIRI_AREA_NUMBER_SIZE], bytes[WEIRI_AREA_NUMBER_SIZE];

	(void)snprintf(text, size, "%s complete, %zu incomplete, %s bytes",
	               weiri_area_number(complete, weiri_tree_count(now->complete), map->capacity),
	               weiri_tree_count(now->incomplete), weiri_area_number(bytes, now->bytes, map->memory_limit));
}

static void end_entry(void *context, void *item)
{
	(void)context;
	weiri_map_entry_end(item);
}

static void empty(struct weiri_area *area, const void *content)
{
	const struct content *last = content;

	(void)area;
	weiri_tree_end(last->complete, NULL, end_entry, NULL);
	weiri_tree_end(last->incomplete, NULL, end_entry, NULL);
}

static const struct content nothing;
static const struct weiri_area_kind kind_of_area = {
	what, sizeof(weir_map_staging), sizeof(struct content), &nothing, tell, empty};

enum weir_status weir_map_staging_create(const struct weir_map_staging_options *options, weir_map_staging **out,
                                         weir_error *error)
{
	enum weir_status status;
	struct weiri_area *area;
	weir_map_staging *map;

	if (options == NULL || out == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: %s is NULL", what, options == NULL ? "options" : "out");
	status = weiri_area_check_options(what, options->struct_size, sizeof(*options), options->flags, error);
	if (status == WEIR_OK)
		status = weiri_area_create(
			&kind_of_area,
			&(struct weiri_area_plan){options->name, options->components, options->component_count, options->allocator},
			&area, error);
	if (status != WEIR_OK)
		return status;
	map = (weir_map_staging *)(void *)area;
	map->capacity = options->capacity;
	map->memory_limit = options->memory_limit;
	status = weiri_area_enter(area, error);
	if (status == WEIR_OK)
		*out = map;
	return status;
}

enum weir_status weir_map_staging_destroy(weir_map_staging *map, weir_error *error)
{
	return map != NULL ? weiri_area_destroy(&map->area, error) : WEIR_OK;
}
