/*
 * map_staging.c - map staging areas.
 *
 * Algorithm. A map staging area is an area (area.h). Its content is two collections of entries
 * sorted by key (tree.h, map_entry.h), and the sum of their bytes. One collection has the complete
 * entries, the other the incomplete ones. Since both are in one content, an entry that becomes
 * complete moves from one to the other at one instant.
 *
 * Invariants, in addition to those of map_entry.h
 *   M3  a key is in at most one of the collections; `have` of an incomplete entry is neither empty
 *       nor full; `have` of a complete entry is not empty (a get may have taken some parts)
 *   M4  `bytes` is the sum over the parts of both collections
 * Linearization. A change takes effect at its CAS. A look, a refusal, and a decision to wait take
 * effect at the read of the state. A peek takes effect at its last read of the state.
 * Progress: lock-free, except for the allocator: an attempt is repeated only if another thread's
 *   change was published.
 * Memory: a part for each component; an entry and its node for each key. A change makes an entry
 *   and about 2 log2 n nodes of 128 bytes, and retires as many.
 * Checked: tests/test_map_staging.c, stress/model/check_map_staging.c, weir-stress "map_staging",
 *   "map_staging_stopped", "history_map_staging".
 */
#include <weir/flow/map_staging.h>

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/options.h"
#include "areas/area.h"
#include "sync/request.h"
#include "areas/map_entry.h"

struct content {
	struct weiri_tree *complete, *incomplete;
	size_t bytes;
};

struct weir_map_staging {
	struct weiri_area area; /* the first member */
	size_t capacity, memory_limit;
};

enum kind { PUT, GET, GET_ANY, PEEK };

struct request {
	weir_map_staging *map;
	enum kind kind;
	int64_t key;                    /* of a get_any: set when it has taken an entry */
	struct weiri_map_choice choice; /* put: its parts until they are stored; otherwise the parts that were taken */
	weir_map_staging_done_fn *done; /* only if the request is asynchronous */
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

/* -- assertions -------------------------------------------------------------------------------- */

static WEIRI_UNSEEN size_t assert_entry(const weir_map_staging *map, const struct content *content,
                                        const struct weiri_map_entry *entry, bool is_complete)
{
	size_t bytes = 0;

	WEIR_ASSERT3(M3, entry->have != 0 && (is_complete || entry->have != all_of(map)));
	WEIR_ASSERT3(M3, !is_complete || weiri_tree_find(content->incomplete, weiri_map_compare_keys, &entry->key) == NULL);
	for (size_t i = 0; i < entry->count; i++)
		bytes += entry->parts[i] != NULL ? entry->parts[i]->bytes : 0;
	WEIR_ASSERT3(M4, bytes == entry->bytes);
	return bytes;
}

/* Called for the last content, when the area is destroyed: nothing changes any more. */
static WEIRI_UNSEEN void assert_content(const weir_map_staging *map, const struct content *content)
{
	size_t bytes = 0;

	for (size_t i = 0; i < weiri_tree_count(content->complete); i++)
		bytes += assert_entry(map, content, weiri_tree_at(content->complete, i), true);
	for (size_t i = 0; i < weiri_tree_count(content->incomplete); i++)
		bytes += assert_entry(map, content, weiri_tree_at(content->incomplete, i), false);
	WEIR_ASSERT3(M4, bytes == content->bytes);
}

/* -- putting ----------------------------------------------------------------------------------- */

/*
 * Returns the first requested component whose bit in `bits` is set, if is_in is 1; otherwise the
 * first whose bit is not set. There must be one.
 */
static size_t first_place(const struct request *request, uint64_t bits, bool is_in)
{
	size_t i = 0;

	while (((bits & weiri_map_bit(request->choice.places[i])) != 0) != is_in)
		i++;
	return request->choice.places[i];
}

/* Returns WEIR_OK if the parts may be put now. Then *there is the key's entry, or NULL. */
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
		place = first_place(put, (*there)->have, true);
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s \"%s\": key %lld has component %zu (%s) already", what,
		                  map->area.name, (long long)put->key, place, map->area.components[place].name);
	}
	has = *there != NULL ? (*there)->bytes : 0;
	if (map->memory_limit != 0 && put->choice.bytes > map->memory_limit - has)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED,
		                  "%s \"%s\": key %lld would have %zu byte%s, the limit of all is %zu", what, map->area.name,
		                  (long long)put->key, has + put->choice.bytes, WEIRI_S(has + put->choice.bytes),
		                  map->memory_limit);
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

/* Returns true if the put is over, with *status; false if another change was published first. */
static bool try_put(struct weiri_scope *scope, struct request *put, struct weiri_area_state *state,
                    struct weiri_map_entry *there, enum weir_status *status)
{
	struct weiri_tree_edit edit = weiri_tree_edit_begin(&put->map->area.allocator);
	const struct weiri_area *area = &put->map->area;
	struct weiri_map_entry *entry = weiri_map_entry_with(&put->choice, put->key, area->count, there, &area->allocator);
	struct content next = *content_of(state);
	bool over;

	if (entry != NULL)
		add_entry(put->map, &edit, &next, there, entry);
	else
		edit.failed = true;
	next.bytes += put->choice.bytes;
	over = weiri_area_publish(scope, &put->map->area, state, &next, &edit, status);
	if (!over || *status != WEIR_OK) {
		weiri_map_entry_discard(entry);
		return over;
	}
	put->choice.filled = 0; /* M1: the area owns the parts now */
	if (there != NULL)
		weiri_scope_retire(scope, &there->retired);
	return true;
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

/* -- taking ------------------------------------------------------------------------------------ */

/* Returns WEIR_OK if the requested parts may be taken now. Then *entry is the entry with them. */
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
	place = first_place(take, (*entry)->have, false);
	return weiri_fail(error, WEIR_INVALID_ARGUMENT,
	                  "%s \"%s\": component %zu (%s) of key %lld has already been removed", what, map->area.name, place,
	                  map->area.components[place].name, (long long)(*entry)->key);
}

/* Returns true if the get is over, with *status; false if another change was published first. */
static bool try_get(struct weiri_scope *scope, struct request *get, struct weiri_area_state *state,
                    struct weiri_map_entry *entry, enum weir_status *status)
{
	struct weiri_tree_edit edit = weiri_tree_edit_begin(&get->map->area.allocator);
	struct content next = *content_of(state);
	struct weiri_map_entry *rest = NULL;
	bool over;

	next.bytes -= weiri_map_choice_bytes(&get->choice, entry);
	if (entry->have == get->choice.mask) {
		next.complete = weiri_tree_remove(&edit, next.complete, weiri_map_compare_keys, &entry->key);
	} else {
		rest = weiri_map_entry_without(&get->choice, entry);
		if (rest != NULL)
			next.complete = weiri_tree_replace(&edit, next.complete, weiri_map_compare_keys, &entry->key, rest);
		else
			edit.failed = true;
	}
	over = weiri_area_publish(scope, &get->map->area, state, &next, &edit, status);
	if (!over || *status != WEIR_OK) {
		weiri_map_entry_discard(rest);
		return over;
	}
	weiri_map_choice_take(&get->choice, entry); /* M1: this call owns the parts now */
	get->key = entry->key;
	weiri_scope_retire(scope, &entry->retired);
	return true;
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

static enum weir_status attempt(struct weiri_scope *scope, void *asked, weir_error *error)
{
	struct request *request = asked;

	switch (request->kind) {
	case PUT: return put(scope, request, error);
	case PEEK: return peek(scope, request, error);
	default: return get(scope, request, error);
	}
}

/* -- requests ---------------------------------------------------------------------------------- */

static enum weir_status check_places(const size_t places[], size_t count, struct request *request, weir_error *error)
{
	const weir_map_staging *map = request->map;

	if (count == 0 || count > map->area.count || (places == NULL && count != map->area.count))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s \"%s\": a tuple has %zu component%s, got %zu", what,
		                  map->area.name, map->area.count, WEIRI_S(map->area.count), count);
	for (size_t i = 0; i < count; i++) {
		size_t place = places != NULL ? places[i] : i;

		if (place >= map->area.count)
			return weiri_fail(error, WEIR_INVALID_ARGUMENT,
			                  "%s \"%s\" has %zu component%s, so there is no component %zu", what, map->area.name,
			                  map->area.count, WEIRI_S(map->area.count), place);
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

/* Makes the parts of a put. Its components have been checked. */
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

/* -- running a request ------------------------------------------------------------------------- */

static enum weir_status fail_at_once(const void *asked, weir_error *error)
{
	const struct request *request = asked;
	const char *name = request->map->area.name;

	if (request->kind == PUT)
		return weiri_fail(error, WEIR_DEADLINE_EXCEEDED, "%s \"%s\": no room at once", what, name);
	if (request->kind == GET_ANY)
		return weiri_fail(error, WEIR_DEADLINE_EXCEEDED, "%s \"%s\": no complete key at once", what, name);
	return weiri_fail(error, WEIR_DEADLINE_EXCEEDED, "%s \"%s\": key %lld is not complete at once", what, name,
	                  (long long)request->key);
}

static const char *verb_of(const void *asked)
{
	return verbs[((const struct request *)asked)->kind];
}

static bool is_peek(const void *asked)
{
	return ((const struct request *)asked)->kind == PEEK;
}

static void answer(void *asked, enum weir_status status, const weir_error *error)
{
	struct request *request = asked;
	weir_tensor *tensors[WEIR_TENSOR_QUEUE_MAX_COMPONENTS];
	struct weiri_record *record = weiri_record_get(); /* not NULL: a thread that runs completions has a record */
	size_t count = request->kind != PUT ? request->choice.filled : 0;

	if (count != 0)
		weiri_map_choice_open(record, &request->choice, tensors);
	else
		weiri_map_choice_let_go(record, &request->choice);
	request->done(request->context, status, error, request->key, tensors, count);
}

static const struct weiri_request_kind request_kind = {
	sizeof(struct request), attempt, fail_at_once, verb_of, is_peek, answer};

static enum weir_status run(struct weiri_record *record, struct request *request, uint64_t deadline_ns,
                            weir_cancel *cancel, weir_error *error)
{
	struct weiri_area *area = &request->map->area;

	return weiri_request_run(record, &area->waitable, &request_kind, request, deadline_ns, cancel, &area->allocator,
	                         error);
}

/* Starts a request. If it returns WEIR_OK, it has taken over the parts that the request holds. */
static enum weir_status start(struct weiri_record *record, struct request *request, weir_map_staging_done_fn *done,
                              void *context, weir_pending **handle, weir_error *error)
{
	struct weiri_area *area = &request->map->area;
	enum weir_status status = weiri_area_check_done(area, done != NULL, error);

	request->done = done;
	request->context = context;
	if (status != WEIR_OK)
		return status;
	return weiri_request_start(record, &area->waitable, &request_kind, request, &area->allocator, handle, error);
}

/* -- blocking calls ---------------------------------------------------------------------------- */

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

/* Gets or peeks. If `key` is not NULL, *key is set to the key of the entry. */
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

/* -- asynchronous ------------------------------------------------------------------------------ */

enum weir_status weir_map_staging_start_put(weir_map_staging *map, int64_t key, const size_t places[],
                                            weir_tensor *const tensors[], size_t count, weir_map_staging_done_fn *done,
                                            void *context, weir_pending **handle, weir_error *error)
{
	struct weiri_record *record;
	struct request request;
	enum weir_status status = request_init(&request, map, PUT, key, places, count, &record, error);

	if (status == WEIR_OK)
		status = fill_put(record, &request, tensors, error);
	if (status != WEIR_OK)
		return status;
	status = start(record, &request, done, context, handle, error);
	if (status != WEIR_OK)
		weiri_map_choice_let_go(record, &request.choice);
	return status;
}

static enum weir_status start_take(weir_map_staging *map, enum kind kind, int64_t key, const size_t places[],
                                   size_t count, weir_map_staging_done_fn *done, void *context, weir_pending **handle,
                                   weir_error *error)
{
	struct weiri_record *record;
	struct request request;
	enum weir_status status = request_init(&request, map, kind, key, places, count, &record, error);

	return status == WEIR_OK ? start(record, &request, done, context, handle, error) : status;
}

enum weir_status weir_map_staging_start_get(weir_map_staging *map, int64_t key, const size_t places[], size_t count,
                                            weir_map_staging_done_fn *done, void *context, weir_pending **handle,
                                            weir_error *error)
{
	return start_take(map, GET, key, places, count, done, context, handle, error);
}

enum weir_status weir_map_staging_start_get_any(weir_map_staging *map, const size_t places[], size_t count,
                                                weir_map_staging_done_fn *done, void *context, weir_pending **handle,
                                                weir_error *error)
{
	return start_take(map, GET_ANY, 0, places, count, done, context, handle, error);
}

enum weir_status weir_map_staging_start_peek(weir_map_staging *map, int64_t key, const size_t places[], size_t count,
                                             weir_map_staging_done_fn *done, void *context, weir_pending **handle,
                                             weir_error *error)
{
	return start_take(map, PEEK, key, places, count, done, context, handle, error);
}

/* -- all at once ------------------------------------------------------------------------------- */

struct clearing {
	struct weiri_scope scope;
	struct weiri_map_part *gone;
};

/* Retires a removed entry, and chains its parts: the clear owns them now (M1). */
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
	weiri_waitable_pump(record, &map->area.waitable);
	return status;
}

enum weir_status weir_map_staging_size(const weir_map_staging *map, size_t *complete, size_t *incomplete, size_t *bytes)
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

/* -- creating and destroying ------------------------------------------------------------------- */

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
	WEIR_ASSERT_WALK(assert_content((const weir_map_staging *)(const void *)area, last));
	weiri_tree_end(last->complete, NULL, end_entry, NULL);
	weiri_tree_end(last->incomplete, NULL, end_entry, NULL);
}

static const struct content nothing;
static const struct weiri_area_kind kind_of_area = {
	what, sizeof(weir_map_staging), sizeof(struct content), &nothing, tell, empty};

enum weir_status weir_map_staging_create(const struct weir_map_staging_options *options, weir_map_staging **out,
                                         weir_error *error)
{
	struct weir_map_staging_options given;
	enum weir_status status;
	struct weiri_area *area;
	weir_map_staging *map;

	if (options == NULL || out == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: %s is NULL", what, options == NULL ? "options" : "out");
	status = weiri_options_read(what, options, &given, sizeof(given), error);
	if (status == WEIR_OK)
		status = weiri_options_flags(what, given.flags, 0, error);
	if (status == WEIR_OK)
		status = weiri_area_create(
			&kind_of_area,
			&(struct weiri_area_plan){given.name, given.components, given.component_count, given.allocator}, &area,
			error);
	if (status != WEIR_OK)
		return status;
	map = (weir_map_staging *)(void *)area;
	map->capacity = given.capacity;
	map->memory_limit = given.memory_limit;
	status = weiri_area_enter(area, error);
	if (status == WEIR_OK)
		*out = map;
	return status;
}

enum weir_status weir_map_staging_destroy(weir_map_staging *map, weir_error *error)
{
	return map != NULL ? weiri_area_destroy(&map->area, error) : WEIR_OK;
}
