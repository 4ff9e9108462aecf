/*
 * map_staging.c - map staging areas.
 *
 * Algorithm. The area is one atomic pointer to its state: versions of two sorted collections of entries by key (tree.h), those that are
 * complete and those that are not yet, and the sum of their bytes. A change is made beside it and published by one CAS, so that the
 * completion of a key moves it from one collection to the other at one instant; and waiting is attempts of such changes (await.h).
 *
 * An entry is immutable as well, and refers to a part for each component that is there. A put of some components, or a get of some,
 * makes another entry in the place of the old, with the same parts but for those that came or went.
 *
 * Invariants
 *   M1  a published state never changes, nor does an entry that it leads to; the pointer never returns to a state while a section may
 *       know it
 *   M2  a part in the published version is referenced once for that; who publishes a version without it takes the reference over
 *   M3  a part's references never rise from 0: a peek that meets 0 has read a state that was replaced since
 *   M4  a key is in at most one of the collections; `have` of an incomplete one is neither empty nor full, that of a complete one not empty
 *   M5  bytes is the sum over the parts of both collections
 * Pairs
 *   P1  publish(state) -> read: the state, the trees, the entries, the parts
 *   P2  release(references) -> the end of a part: what its users did with its tensor
 *   S   `state` is read and replaced seq_cst, as reclaim/section.h asks
 * Linearization. A change: its CAS. A look, a refusal, and what is told to wait: the read of `state`. A peek: the last read of `state`.
 * Progress: lock-free, but for the allocator: an attempt is repeated when another thread's change was published.
 * Memory: per component a part, per key an entry and its node; a change makes an entry and about 2 log2 n nodes of 152 bytes, and retires
 *   as many.
 * Checked: tests/test_map_staging.c, stress/model/check_map_staging.c, weir-stress "map_staging", "map_staging_stopped".
 */
#include "queue/map_staging.h"

#include <stdalign.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "queue/await.h"
#include "queue/components.h"
#include "queue/tree.h"

struct content {
	struct weiri_tree *complete, *incomplete;
	size_t bytes;
};

struct state {
	struct weiri_retired retired; /* first */
	struct content content;
	weir_allocator allocator;
};

/* One component of one key. */
struct part {
	struct weiri_retired retired; /* first */
	_Atomic(size_t) references;
	weir_tensor *tensor; /* NULL: released before the part is reclaimed */
	size_t bytes;
	struct part *next; /* of who took it out */
	weir_allocator allocator;
};

struct entry {
	struct weiri_retired retired; /* first */
	int64_t key;
	uint64_t have; /* a bit for each component that is there */
	size_t bytes, count;
	weir_allocator allocator;
	struct part *parts[]; /* NULL: not there */
};

struct weir_map_staging {
	_Alignas(WEIRI_APART) _Atomic(struct weiri_retired *) state;
	_Alignas(WEIRI_APART) struct weiri_awaits awaits;
	/* Constant. */
	size_t capacity, memory_limit;
	weir_allocator allocator;
	char *name;
	size_t memory_size, count;
	struct weiri_component components[]; /* and behind them the name */
};

enum kind { PUT, GET, GET_ANY, PEEK };

struct request {
	weir_map_staging *map;
	enum kind kind;
	int64_t key; /* get_any: once it is known */
	uint64_t mask;
	size_t bytes;         /* put */
	size_t count, filled; /* filled: of `parts` */
	uint8_t places[WEIR_TENSOR_QUEUE_MAX_COMPONENTS];
	struct part
		*parts[WEIR_TENSOR_QUEUE_MAX_COMPONENTS]; /* put: until they are in; else what came out. A reference each */
};

struct weir_map_staging_op {
	struct weiri_await await; /* first */
	struct request request;
	weir_map_staging_done_fn *done;
	void *context;
	weir_allocator allocator;
};

_Static_assert((int)WEIR_TENSOR_QUEUE_MAX_COMPONENTS <= 64, "a bit each in `have`");

static const char what[] = "map staging area";
static const char *const verbs[] = {"put", "get", "get_any", "peek"};

static uint64_t bit_of(size_t place)
{
	return UINT64_C(1) << place;
}

static uint64_t all_of(const weir_map_staging *map)
{
	return UINT64_MAX >> (64 - map->count);
}

/* -- parts -------------------------------------------------------------------------------------------------------------------- */

static void part_reclaim(struct weiri_retired *retired)
{
	struct part *part = WEIRI_CONTAINER_OF(retired, struct part, retired);
	weir_allocator allocator = part->allocator;

	weir_tensor_release(part->tensor);
	weiri_release(&allocator, part, sizeof(*part), alignof(struct part));
}

/* With one reference; NULL: no memory. */
static struct part *part_create(const weir_map_staging *map, weir_tensor *tensor)
{
	struct part *part = weiri_allocate(&map->allocator, sizeof(*part), alignof(struct part));

	if (part == NULL)
		return NULL;
	weiri_retired_init(&part->retired, sizeof(*part), part_reclaim);
	weiri_store_relaxed(&part->references, (size_t)1); /* [relaxed] not shared yet */
	part->tensor = weir_tensor_retain(tensor);
	part->bytes = weir_tensor_nbytes(tensor);
	part->allocator = map->allocator;
	return part;
}

/* M3 */
static int part_try_retain(struct part *part)
{
	/* [relaxed] a count that rises orders nothing; the part came by P1. */
	size_t references = weiri_load_relaxed(&part->references);

	while (references != 0) {
		if (weiri_cas_relaxed(&part->references, &references, references + 1))
			return 1;
	}
	return 0;
}

/* Outside of sections: the end of a tensor may run its owner's code. The part itself waits for the sections of others. */
static void part_release(struct weiri_record *record, struct part *part)
{
	/* [P2 acq_rel] */
	if (weiri_fetch_sub_acq_rel(&part->references, (size_t)1) != 1)
		return;
	weir_tensor_release(part->tensor);
	part->tensor = NULL;
	weiri_retire(record, &part->retired);
}

/* In a section: the tensor ends with the part. */
static void part_release_later(struct weiri_scope *scope, struct part *part)
{
	/* [P2 acq_rel] */
	if (weiri_fetch_sub_acq_rel(&part->references, (size_t)1) == 1)
		weiri_scope_retire(scope, &part->retired);
}

/* -- entries ------------------------------------------------------------------------------------------------------------------ */

static size_t entry_size(size_t count)
{
	return sizeof(struct entry) + count * sizeof(struct part *);
}

/* Its parts are not its own. */
static void entry_reclaim(struct weiri_retired *retired)
{
	struct entry *entry = WEIRI_CONTAINER_OF(retired, struct entry, retired);
	weir_allocator allocator = entry->allocator;

	weiri_release(&allocator, entry, entry_size(entry->count), alignof(struct entry));
}

static void entry_discard(struct entry *entry)
{
	if (entry != NULL)
		entry_reclaim(&entry->retired);
}

/* As `from`, or without parts if that is NULL. NULL: no memory. */
static struct entry *entry_create(const weir_map_staging *map, int64_t key, const struct entry *from)
{
	struct entry *entry = weiri_allocate_zeroed(&map->allocator, entry_size(map->count), alignof(struct entry));

	if (entry == NULL)
		return NULL;
	weiri_retired_init(&entry->retired, entry_size(map->count), entry_reclaim);
	entry->key = key;
	entry->count = map->count;
	entry->allocator = map->allocator;
	if (from != NULL) {
		entry->have = from->have;
		entry->bytes = from->bytes;
		memcpy(entry->parts, from->parts, map->count * sizeof(struct part *));
	}
	return entry;
}

/* What is put as well; `there` may be NULL. NULL: no memory. */
static struct entry *entry_with(const struct request *put, const struct entry *there)
{
	struct entry *entry = entry_create(put->map, put->key, there);

	if (entry == NULL)
		return NULL;
	for (size_t i = 0; i < put->count; i++)
		entry->parts[put->places[i]] = put->parts[i];
	entry->have |= put->mask;
	entry->bytes += put->bytes;
	return entry;
}

/* Without what is taken, of `bytes`. NULL: no memory. */
static struct entry *entry_without(const struct request *get, const struct entry *there, size_t bytes)
{
	struct entry *entry = entry_create(get->map, there->key, there);

	if (entry == NULL)
		return NULL;
	for (size_t i = 0; i < get->count; i++)
		entry->parts[get->places[i]] = NULL;
	entry->have &= ~get->mask;
	entry->bytes -= bytes;
	return entry;
}

static int compare_keys(const void *key, const void *item)
{
	int64_t ours = *(const int64_t *)key, other = ((const struct entry *)item)->key;

	return ours < other ? -1 : ours > other;
}

/* -- states ------------------------------------------------------------------------------------------------------------------- */

static struct state *state_of(struct weiri_retired *retired)
{
	return WEIRI_CONTAINER_OF(retired, struct state, retired);
}

static void state_reclaim(struct weiri_retired *retired)
{
	struct state *state = state_of(retired);
	weir_allocator allocator = state->allocator;

	weiri_release(&allocator, state, sizeof(*state), alignof(struct state));
}

/* NULL: no memory. */
static struct state *state_create(const weir_map_staging *map, const struct content *content)
{
	struct state *state = weiri_allocate(&map->allocator, sizeof(*state), alignof(struct state));

	if (state == NULL)
		return NULL;
	weiri_retired_init(&state->retired, sizeof(*state), state_reclaim);
	state->content = *content;
	state->allocator = map->allocator;
	return state;
}

static struct state *read_state(struct weiri_scope *scope, const weir_map_staging *map)
{
	struct weiri_retired *state;

	weiri_section_read(scope->record, &map->state, &state); /* [S, P1] */
	return state_of(state);
}

/* As weiri_tree_publish(). */
static int publish(struct weiri_scope *scope, weir_map_staging *map, struct state *state, const struct content *changed,
                   struct weiri_tree_edit *edit, enum weir_status *status)
{
	struct state *next = state_create(map, changed);

	/* [S, P1] */
	return weiri_tree_publish(edit, scope, &map->state, &state->retired, next != NULL ? &next->retired : NULL, status);
}

/* -- putting ------------------------------------------------------------------------------------------------------------------ */

/* The first of the places whose bit is, or is not, in `bits`. */
static size_t first_place(const struct request *request, uint64_t bits, int is_in)
{
	size_t i = 0;

	while (((bits & bit_of(request->places[i])) != 0) != is_in)
		i++;
	return request->places[i];
}

/* WEIR_OK: it may go in now, beside *there, which may be NULL. */
static enum weir_status may_put(const struct content *content, const struct request *put, struct entry **there,
                                weir_error *error)
{
	const weir_map_staging *map = put->map;
	size_t has, place;

	if (weiri_tree_find(content->complete, compare_keys, &put->key) != NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s \"%s\": key %lld is complete, and not all of it taken yet",
		                  what, map->name, (long long)put->key);
	*there = weiri_tree_find(content->incomplete, compare_keys, &put->key);
	if (*there != NULL && ((*there)->have & put->mask) != 0) {
		place = first_place(put, (*there)->have, 1);
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s \"%s\": key %lld has component %zu (%s) already", what,
		                  map->name, (long long)put->key, place, map->components[place].name);
	}
	has = *there != NULL ? (*there)->bytes : 0;
	if (map->memory_limit != 0 && put->bytes > map->memory_limit - has)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED,
		                  "%s \"%s\": key %lld would have %zu bytes, the limit of all is %zu", what, map->name,
		                  (long long)put->key, has + put->bytes, map->memory_limit);
	if (map->capacity != 0 && weiri_tree_count(content->complete) >= map->capacity)
		return WEIR_WOULD_BLOCK;
	if (map->memory_limit != 0 && put->bytes > map->memory_limit - content->bytes)
		return WEIR_WOULD_BLOCK;
	return WEIR_OK;
}

static void add_entry(const weir_map_staging *map, struct weiri_tree_edit *edit, struct content *next,
                      const struct entry *there, struct entry *entry)
{
	if (entry->have == all_of(map)) {
		if (there != NULL)
			next->incomplete = weiri_tree_remove(edit, next->incomplete, compare_keys, &entry->key);
		next->complete =
			weiri_tree_insert(edit, next->complete, compare_keys, &entry->key, (uint64_t)entry->key, entry);
	} else if (there != NULL) {
		next->incomplete = weiri_tree_replace(edit, next->incomplete, compare_keys, &entry->key, entry);
	} else {
		next->incomplete =
			weiri_tree_insert(edit, next->incomplete, compare_keys, &entry->key, (uint64_t)entry->key, entry);
	}
}

/* 0: another change came first. */
static int try_put(struct weiri_scope *scope, struct request *put, struct state *state, struct entry *there,
                   enum weir_status *status)
{
	struct weiri_tree_edit edit = weiri_tree_edit_begin(&put->map->allocator);
	struct entry *entry = entry_with(put, there);
	struct content next = state->content;
	int over;

	if (entry != NULL)
		add_entry(put->map, &edit, &next, there, entry);
	else
		edit.failed = 1;
	next.bytes += put->bytes;
	over = publish(scope, put->map, state, &next, &edit, status);
	if (!over || *status != WEIR_OK) {
		entry_discard(entry);
		return over;
	}
	put->filled = 0; /* M2: the area's now */
	if (there != NULL)
		weiri_scope_retire(scope, &there->retired);
	return 1;
}

static enum weir_status put(struct weiri_scope *scope, struct request *request, weir_error *error)
{
	struct entry *there;
	struct state *state;
	enum weir_status status;

	do {
		state = read_state(scope, request->map);
		status = may_put(&state->content, request, &there, error);
		if (status != WEIR_OK)
			return status;
	} while (!try_put(scope, request, state, there, &status));
	if (status != WEIR_OK)
		return weiri_fail(error, status, "%s \"%s\": no memory to put", what, request->map->name);
	return WEIR_OK;
}

/* -- taking ------------------------------------------------------------------------------------------------------------------- */

/* WEIR_OK: *entry has what is asked for. */
static enum weir_status may_take(const struct content *content, const struct request *take, struct entry **entry,
                                 weir_error *error)
{
	const weir_map_staging *map = take->map;
	size_t place;

	*entry = take->kind == GET_ANY ? weiri_tree_at(content->complete, 0)
	                               : weiri_tree_find(content->complete, compare_keys, &take->key);
	if (*entry == NULL)
		return WEIR_WOULD_BLOCK;
	if (((*entry)->have & take->mask) == take->mask)
		return WEIR_OK;
	place = first_place(take, (*entry)->have, 0);
	return weiri_fail(error, WEIR_INVALID_ARGUMENT,
	                  "%s \"%s\": component %zu (%s) of key %lld has already been removed", what, map->name, place,
	                  map->components[place].name, (long long)(*entry)->key);
}

static size_t bytes_of(const struct request *get, const struct entry *entry)
{
	size_t bytes = 0;

	for (size_t i = 0; i < get->count; i++)
		bytes += entry->parts[get->places[i]]->bytes;
	return bytes;
}

/* 0: another change came first. */
static int try_get(struct weiri_scope *scope, struct request *get, struct state *state, struct entry *entry,
                   enum weir_status *status)
{
	struct weiri_tree_edit edit = weiri_tree_edit_begin(&get->map->allocator);
	struct content next = state->content;
	size_t bytes = bytes_of(get, entry);
	struct entry *rest = NULL;
	int over;

	next.bytes -= bytes;
	if (entry->have == get->mask) {
		next.complete = weiri_tree_remove(&edit, next.complete, compare_keys, &entry->key);
	} else {
		rest = entry_without(get, entry, bytes);
		if (rest != NULL)
			next.complete = weiri_tree_replace(&edit, next.complete, compare_keys, &entry->key, rest);
		else
			edit.failed = 1;
	}
	over = publish(scope, get->map, state, &next, &edit, status);
	if (!over || *status != WEIR_OK) {
		entry_discard(rest);
		return over;
	}
	for (size_t i = 0; i < get->count; i++)
		get->parts[i] = entry->parts[get->places[i]]; /* M2: ours now */
	get->filled = get->count;
	get->key = entry->key;
	weiri_scope_retire(scope, &entry->retired);
	return 1;
}

static enum weir_status get(struct weiri_scope *scope, struct request *request, weir_error *error)
{
	struct entry *entry;
	struct state *state;
	enum weir_status status;

	do {
		state = read_state(scope, request->map);
		status = may_take(&state->content, request, &entry, error);
		if (status != WEIR_OK)
			return status;
	} while (!try_get(scope, request, state, entry, &status));
	if (status != WEIR_OK)
		return weiri_fail(error, status, "%s \"%s\": no memory to %s", what, request->map->name, verbs[request->kind]);
	return WEIR_OK;
}

/* All that it asks for, or nothing: M3. */
static int retain_parts(struct weiri_scope *scope, struct request *peek, const struct entry *entry)
{
	while (peek->filled < peek->count) {
		struct part *part = entry->parts[peek->places[peek->filled]];

		if (!part_try_retain(part)) {
			while (peek->filled > 0)
				part_release_later(scope, peek->parts[--peek->filled]);
			return 0;
		}
		peek->parts[peek->filled++] = part;
	}
	return 1;
}

static enum weir_status peek(struct weiri_scope *scope, struct request *request, weir_error *error)
{
	struct entry *entry;
	enum weir_status status;

	do {
		status = may_take(&read_state(scope, request->map)->content, request, &entry, error);
	} while (status == WEIR_OK && !retain_parts(scope, request, entry));
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

/* Gives up what it holds: a put that was not to be. */
static void let_go(struct weiri_record *record, struct request *request)
{
	while (request->filled > 0)
		part_release(record, request->parts[--request->filled]);
}

/* What came out, as references to the tensors. */
static void open_parts(struct weiri_record *record, struct request *request, weir_tensor *tensors[])
{
	for (size_t i = 0; i < request->filled; i++)
		tensors[i] = weir_tensor_retain(request->parts[i]->tensor);
	let_go(record, request);
}

static enum weir_status check_places(const size_t places[], size_t count, struct request *request, weir_error *error)
{
	const weir_map_staging *map = request->map;

	if (count == 0 || count > map->count || (places == NULL && count != map->count))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s \"%s\": a tuple has %zu components, got %zu", what,
		                  map->name, map->count, count);
	for (size_t i = 0; i < count; i++) {
		size_t place = places != NULL ? places[i] : i;

		if (place >= map->count)
			return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s \"%s\" has %zu components, there is none of index %zu",
			                  what, map->name, map->count, place);
		if ((request->mask & bit_of(place)) != 0)
			return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s \"%s\": component %zu (%s) is named twice", what,
			                  map->name, place, map->components[place].name);
		request->mask |= bit_of(place);
		request->places[i] = (uint8_t)place;
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
	request->map = map;
	request->kind = kind;
	request->key = key;
	request->mask = 0;
	request->bytes = 0;
	request->count = count;
	request->filled = 0;
	status = check_places(places, count, request, error);
	if (status != WEIR_OK)
		return status;
	*record = weiri_record_get();
	if (*record == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "%s \"%s\": no memory for this thread's record", what,
		                  map->name);
	return WEIR_OK;
}

/* The parts of a put, once its places are known. */
static enum weir_status fill_put(struct weiri_record *record, struct request *put, weir_tensor *const tensors[],
                                 weir_error *error)
{
	const weir_map_staging *map = put->map;

	if (tensors == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s \"%s\": tensors is NULL", what, map->name);
	for (size_t i = 0; i < put->count; i++) {
		enum weir_status status =
			weiri_component_check(&map->components[put->places[i]], put->places[i], tensors[i], what, map->name, error);

		if (status != WEIR_OK)
			return status;
	}
	for (size_t i = 0; i < put->count; i++) {
		struct part *part = part_create(map, tensors[i]);

		if (part == NULL) {
			let_go(record, put);
			return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "%s \"%s\": no memory to put", what, map->name);
		}
		put->parts[put->filled++] = part;
		put->bytes += part->bytes;
	}
	return WEIR_OK;
}

/* -- operations --------------------------------------------------------------------------------------------------------------- */

static void op_end(struct weiri_await *await)
{
	weir_map_staging_op *op = (weir_map_staging_op *)(void *)await;
	weir_allocator allocator = op->allocator;

	weiri_release(&allocator, op, sizeof(*op), alignof(weir_map_staging_op));
}

/* Of an asynchronous operation. */
static void op_done(struct weiri_await *await)
{
	weir_map_staging_op *op = (weir_map_staging_op *)(void *)await;
	weir_tensor *tensors[WEIR_TENSOR_QUEUE_MAX_COMPONENTS];
	struct weiri_record *record = weiri_record_get(); /* not NULL: who completes it has one */
	size_t count = op->request.kind != PUT ? op->request.filled : 0;

	if (count != 0)
		open_parts(record, &op->request, tensors);
	else
		let_go(record, &op->request);
	op->done(op->context, await->status, await->status != WEIR_OK ? &await->error : NULL, op->request.key, tensors,
	         count);
}

/* Takes over what the request holds. NULL: no memory, and it is still the caller's. */
static weir_map_staging_op *op_create(const struct request *request, weir_map_staging_done_fn *done, void *context,
                                      weir_error *error)
{
	weir_map_staging *map = request->map;
	weir_map_staging_op *op = weiri_allocate(&map->allocator, sizeof(*op), alignof(weir_map_staging_op));

	if (op == NULL) {
		(void)weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "%s \"%s\": no memory to %s", what, map->name,
		                 verbs[request->kind]);
		return NULL;
	}
	weiri_await_init(&op->await, &map->awaits, verbs[request->kind], attempt, done != NULL ? op_done : NULL, op_end);
	op->request = *request;
	op->done = done;
	op->context = context;
	op->allocator = map->allocator;
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
		weiri_await_pump(record, &request->map->awaits);
	return status;
}

static enum weir_status fail_at_once(const struct request *request, weir_error *error)
{
	const char *name = request->map->name;

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
	enum weir_status status = weiri_await_check_token(&request->map->awaits, verbs[request->kind], cancel, error);
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
	op->await.token = cancel;
	weiri_await_start(record, &op->await);
	weiri_await_wait(record, &op->await, deadline_ns, cancel);
	status = op->await.status;
	*request = op->request;
	if (status != WEIR_OK)
		(void)weiri_fail(error, status, "%s", op->await.error.message);
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
	let_go(record, &request);
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
		status = weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s \"%s\": %s is NULL", what, map->name,
		                    tensors == NULL ? "tensors" : "key");
	if (status == WEIR_OK)
		status = run(record, &request, deadline_ns, cancel, error);
	if (status != WEIR_OK)
		return status;
	if (key != NULL)
		*key = request.key;
	open_parts(record, &request, tensors);
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
	weir_map_staging_op *op;

	if (done == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s \"%s\": done is NULL", what, request->map->name);
	op = op_create(request, done, context, error);
	if (op == NULL)
		return WEIR_RESOURCE_EXHAUSTED;
	if (out != NULL)
		*out = op;
	else
		weiri_await_release(&op->await); /* the completion's reference is left */
	weiri_await_start(record, &op->await);
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
		let_go(record, &request);
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
	struct part *gone;
};

/* M2: its parts are ours now. */
static void clear_entry(void *context, void *item)
{
	struct clearing *clearing = context;
	struct entry *entry = item;

	for (size_t i = 0; i < entry->count; i++) {
		if (entry->parts[i] == NULL)
			continue;
		entry->parts[i]->next = clearing->gone;
		clearing->gone = entry->parts[i];
	}
	weiri_scope_retire(&clearing->scope, &entry->retired);
}

enum weir_status weir_map_staging_clear(weir_map_staging *map)
{
	static const struct content nothing;
	struct weiri_record *record = map != NULL ? weiri_record_get() : NULL;
	struct clearing clearing = {.gone = NULL};
	struct weiri_tree_edit edit;
	struct state *state;
	enum weir_status status;

	if (record == NULL)
		return map == NULL ? WEIR_INVALID_ARGUMENT : WEIR_RESOURCE_EXHAUSTED;
	clearing.scope = weiri_scope_enter(record);
	do {
		state = read_state(&clearing.scope, map);
		edit = weiri_tree_edit_begin(&map->allocator);
	} while (!publish(&clearing.scope, map, state, &nothing, &edit, &status));
	if (status == WEIR_OK) {
		weiri_tree_end(state->content.complete, &clearing.scope, clear_entry, &clearing);
		weiri_tree_end(state->content.incomplete, &clearing.scope, clear_entry, &clearing);
	}
	weiri_scope_leave(&clearing.scope);
	while (clearing.gone != NULL) {
		struct part *part = clearing.gone;

		clearing.gone = part->next;
		part_release(record, part);
	}
	weiri_await_pump(record, &map->awaits);
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
	content = &read_state(&scope, map)->content;
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
	return weiri_load_relaxed(&map->awaits.waiting); /* [relaxed] a count */
}

enum weir_status weir_map_staging_place(const weir_map_staging *map, const char *component, size_t *place)
{
	if (map == NULL || component == NULL || place == NULL)
		return WEIR_INVALID_ARGUMENT;
	return weiri_components_place(map->components, map->count, component, place);
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
		                  map->name, weir_dtype_name(weir_tensor_dtype(tensor)),
		                  weir_shape_text(weir_tensor_shape(tensor), have, sizeof(have)));
	memcpy(key, weir_tensor_data(tensor), sizeof(*key));
	return WEIR_OK;
}

/* -- creating and destroying -------------------------------------------------------------------------------------------------- */

static enum weir_status check_options(const struct weir_map_staging_options *options, weir_map_staging **out,
                                      weir_error *error)
{
	struct weir_tensor_queue_options of_queue = {.struct_size = sizeof(of_queue)};

	if (options == NULL || out == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: %s is NULL", what, options == NULL ? "options" : "out");
	if (options->struct_size != sizeof(*options) || options->flags != 0)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: struct_size must be %zu and flags 0", what,
		                  sizeof(*options));
	of_queue.components = options->components;
	of_queue.component_count = options->component_count;
	return weiri_components_check(&of_queue, error);
}

static void map_free(weir_map_staging *map)
{
	weir_allocator allocator = map->allocator;

	weiri_release(&allocator, map, map->memory_size, WEIRI_APART);
}

enum weir_status weir_map_staging_create(const struct weir_map_staging_options *options, weir_map_staging **out,
                                         weir_error *error)
{
	static const struct content nothing;
	enum weir_status status = check_options(options, out, error);
	weir_allocator allocator;
	weir_map_staging *map;
	struct state *state;
	const char *name;
	size_t size;

	if (status != WEIR_OK)
		return status;
	name = options->name != NULL ? options->name : what;
	allocator = weiri_allocator_or_default(options->allocator);
	size = sizeof(*map) + options->component_count * sizeof(struct weiri_component) + strlen(name) + 1;
	map = weiri_record_get() != NULL ? weiri_allocate_zeroed(&allocator, size, WEIRI_APART) : NULL;
	if (map == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "%s \"%s\": no memory", what, name);
	map->capacity = options->capacity;
	map->memory_limit = options->memory_limit;
	map->allocator = allocator;
	map->memory_size = size;
	map->count = options->component_count;
	for (size_t i = 0; i < map->count; i++)
		weiri_component_fill(&map->components[i], &options->components[i], i);
	map->name = (char *)&map->components[map->count];
	memcpy(map->name, name, strlen(name) + 1);
	weiri_awaits_init(&map->awaits, what, map->name);
	state = state_create(map, &nothing);
	if (state == NULL) {
		map_free(map);
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "%s \"%s\": no memory", what, name);
	}
	weiri_store_relaxed(&map->state, &state->retired); /* [relaxed] not shared yet */
	*out = map;
	return WEIR_OK;
}

static void end_entry(void *context, void *item)
{
	struct entry *entry = item;

	(void)context;
	for (size_t i = 0; i < entry->count; i++) {
		if (entry->parts[i] != NULL)
			part_reclaim(&entry->parts[i]->retired);
	}
	entry_reclaim(&entry->retired);
}

enum weir_status weir_map_staging_destroy(weir_map_staging *map, weir_error *error)
{
	enum weir_status status;
	struct state *state;

	if (map == NULL)
		return WEIR_OK;
	status = weiri_awaits_check_idle(&map->awaits, error);
	if (status != WEIR_OK)
		return status;
	state = state_of(weiri_load_relaxed(&map->state)); /* [relaxed] the caller has ordered all calls before this one */
	weiri_tree_end(state->content.complete, NULL, end_entry, NULL);
	weiri_tree_end(state->content.incomplete, NULL, end_entry, NULL);
	state_reclaim(&state->retired);
	map_free(map);
	return WEIR_OK;
}
