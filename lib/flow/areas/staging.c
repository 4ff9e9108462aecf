/*
 * staging.c - staging areas.
 *
 * Algorithm. A staging area is an area (area.h). Its content is a version of a collection of tuples
 * sorted by number (tree.h), and the sum of their bytes. So count, bytes and order always belong to
 * one instant. TensorFlow 1.x does this under a mutex.
 *
 * Invariants
 *   G1  the published version holds one reference to each of its tuples; a thread that publishes a
 *       version without a tuple takes over that reference
 *   G2  a tuple's references never rise from 0. So a peek that finds 0 has read a state that has
 *       been replaced since
 * Pairs: those of area.h; P2 release(references) -> the end of a tuple: what its users did with its
 *   tensors.
 * Linearization. A change takes effect at its CAS. A look, and a decision to wait, take effect at
 * the read of the state. A peek takes effect at its last read of the state.
 * Progress: lock-free, except for the allocator: an attempt is repeated only if another thread's
 *   change was published.
 * Memory: a header and its node for each tuple; a change makes about 2 log2 n nodes of 128 bytes
 *   and retires as many.
 * Checked: tests/test_staging.c, stress/model/check_staging.c, weir-stress "staging",
 *   "history_staging".
 */
#include <weir/flow/staging.h>

#include <stdalign.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "areas/area.h"
#include "sync/request.h"
#include "sync/references.h"

struct content {
	struct weiri_tree *tuples;
	size_t bytes;
	uint64_t next; /* number of the next tuple */
};

struct tuple {
	struct weiri_retired retired; /* first */
	_Atomic(size_t) references;
	uint64_t number;
	size_t bytes;
	struct tuple *next; /* for the thread that took the tuple out */
	weir_allocator allocator;
	size_t count;
	weir_tensor *tensors[];
};

struct weir_staging {
	struct weiri_area area; /* first */
	size_t capacity, memory_limit;
};

enum kind { PUT, GET, PEEK };

struct request {
	weir_staging *staging;
	enum kind kind;
	size_t index;               /* only for a peek */
	struct tuple *tuple;        /* put: its tuple until that is stored; otherwise the tuple that was taken */
	weir_staging_done_fn *done; /* only if the request is asynchronous */
	void *context;
};

static const char what[] = "staging area";
static const char *const verbs[] = {"put", "get", "peek"};

/* -- tuples ------------------------------------------------------------------------------------ */

static size_t tuple_size(size_t count)
{
	return sizeof(struct tuple) + count * sizeof(weir_tensor *);
}

static void tuple_reclaim(struct weiri_retired *retired)
{
	struct tuple *tuple = WEIRI_CONTAINER_OF(retired, struct tuple, retired);
	weir_allocator allocator = tuple->allocator;

	weiri_release(&allocator, tuple, tuple_size(tuple->count), alignof(struct tuple));
}

/* Creates a tuple with one reference. Returns NULL if there is no memory. */
static struct tuple *tuple_create(const struct weiri_area *area, weir_tensor *const tensors[])
{
	struct tuple *tuple = weiri_allocate(&area->allocator, tuple_size(area->count), alignof(struct tuple));

	if (tuple == NULL)
		return NULL;
	weiri_retired_init(&tuple->retired, tuple_size(area->count), tuple_reclaim);
	weiri_store_relaxed(&tuple->references, (size_t)1); /* [relaxed] not shared yet */
	tuple->bytes = 0;
	tuple->allocator = area->allocator;
	tuple->count = area->count;
	for (size_t i = 0; i < area->count; i++) {
		tuple->tensors[i] = weir_tensor_retain(tensors[i]);
		tuple->bytes += weir_tensor_byte_count(tensors[i]);
	}
	return tuple;
}

/*
 * Releases a reference; not to be called in a section. The last one releases the tensors at once,
 * and retires the header, which stays in memory until no section of another thread can see it.
 */
static void tuple_release(struct weiri_record *record, struct tuple *tuple)
{
	if (!weiri_references_give(&tuple->references)) /* P2 */
		return;
	for (size_t i = 0; i < tuple->count; i++)
		weir_tensor_release(tuple->tensors[i]);
	weiri_retire(record, &tuple->retired);
}

/* Exchanges the caller's reference to the tuple for references to its tensors. */
static void tuple_open(struct weiri_record *record, struct tuple *tuple, weir_tensor *tensors[])
{
	for (size_t i = 0; i < tuple->count; i++)
		tensors[i] = weir_tensor_retain(tuple->tensors[i]);
	tuple_release(record, tuple);
}

static int compare_numbers(const void *key, const void *item)
{
	uint64_t number = *(const uint64_t *)key, other = ((const struct tuple *)item)->number;

	return number < other ? -1 : number > other;
}

/* -- states ------------------------------------------------------------------------------------ */

static const struct content *content_of(const struct weiri_area_state *state)
{
	return (const struct content *)(const void *)state->content;
}

static bool publish(struct weiri_scope *scope, weir_staging *staging, struct weiri_area_state *state,
                    struct content changed, struct weiri_tree_edit *edit, enum weir_status *status)
{
	return weiri_area_publish(scope, &staging->area, state, &changed, edit, status);
}

static bool has_room(const weir_staging *staging, const struct content *now, const struct tuple *tuple)
{
	if (staging->capacity != 0 && weiri_tree_count(now->tuples) >= staging->capacity)
		return false;
	return staging->memory_limit == 0 || tuple->bytes <= staging->memory_limit - now->bytes;
}

static enum weir_status put(struct weiri_scope *scope, struct request *request)
{
	weir_staging *staging = request->staging;
	struct tuple *tuple = request->tuple;
	struct weiri_area_state *state;
	const struct content *now;
	struct weiri_tree_edit edit;
	struct weiri_tree *tuples;
	enum weir_status status;

	do {
		state = weiri_area_read(scope, &staging->area);
		now = content_of(state);
		if (!has_room(staging, now, tuple))
			return WEIR_WOULD_BLOCK;
		tuple->number = now->next;
		edit = weiri_tree_edit_begin(&staging->area.allocator);
		tuples = weiri_tree_insert(&edit, now->tuples, compare_numbers, &tuple->number, tuple->number, tuple);
	} while (!publish(scope, staging, state, (struct content){tuples, now->bytes + tuple->bytes, now->next + 1}, &edit,
	                  &status));
	if (status == WEIR_OK)
		request->tuple = NULL; /* G1: the area owns the tuple now */
	return status;
}

static enum weir_status get(struct weiri_scope *scope, struct request *request)
{
	weir_staging *staging = request->staging;
	struct weiri_area_state *state;
	const struct content *now;
	struct weiri_tree_edit edit;
	struct weiri_tree *tuples;
	struct tuple *oldest;
	enum weir_status status;

	do {
		state = weiri_area_read(scope, &staging->area);
		now = content_of(state);
		oldest = weiri_tree_at(now->tuples, 0);
		if (oldest == NULL)
			return WEIR_WOULD_BLOCK;
		edit = weiri_tree_edit_begin(&staging->area.allocator);
		tuples = weiri_tree_remove(&edit, now->tuples, compare_numbers, &oldest->number);
	} while (!publish(scope, staging, state, (struct content){tuples, now->bytes - oldest->bytes, now->next}, &edit,
	                  &status));
	if (status == WEIR_OK)
		request->tuple = oldest; /* G1: this call owns the tuple now */
	return status;
}

static enum weir_status peek(struct weiri_scope *scope, struct request *request)
{
	struct tuple *tuple;

	do {
		tuple = weiri_tree_at(content_of(weiri_area_read(scope, &request->staging->area))->tuples, request->index);
		if (tuple == NULL)
			return WEIR_WOULD_BLOCK;
	} while (!weiri_references_try_take(&tuple->references)); /* G2 */
	request->tuple = tuple;
	return WEIR_OK;
}

static enum weir_status attempt(struct weiri_scope *scope, void *asked, weir_error *error)
{
	static enum weir_status (*const attempts[])(struct weiri_scope *, struct request *) = {put, get, peek};
	struct request *request = asked;
	enum weir_status status = attempts[request->kind](scope, request);

	if (status == WEIR_RESOURCE_EXHAUSTED)
		return weiri_area_no_memory(&request->staging->area, verbs[request->kind], error);
	return status;
}

/* -- running a request ------------------------------------------------------------------------- */

static enum weir_status fail_at_once(const void *asked, weir_error *error)
{
	const struct request *request = asked;

	return weiri_fail(error, WEIR_DEADLINE_EXCEEDED, "%s \"%s\": %s at once", what, request->staging->area.name,
	                  request->kind == PUT ? "no room" : "no tuple");
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
	size_t count = 0;

	if (request->tuple != NULL && request->kind != PUT) {
		count = request->tuple->count;
		tuple_open(record, request->tuple, tensors);
	} else if (request->tuple != NULL) {
		tuple_release(record, request->tuple); /* a put that did not succeed */
	}
	request->done(request->context, status, error, tensors, count);
}

static const struct weiri_request_kind request_kind = {
	sizeof(struct request), attempt, fail_at_once, verb_of, is_peek, answer};

static enum weir_status run(struct weiri_record *record, struct request *request, uint64_t deadline_ns,
                            weir_cancel *cancel, weir_error *error)
{
	struct weiri_area *area = &request->staging->area;

	return weiri_request_run(record, &area->waitable, &request_kind, request, deadline_ns, cancel, &area->allocator,
	                         error);
}

/* Starts a request. If it returns WEIR_OK, it has taken over the request's tuple. */
static enum weir_status start(struct weiri_record *record, const struct request *request, weir_pending **handle,
                              weir_error *error)
{
	struct weiri_area *area = &request->staging->area;
	enum weir_status status = weiri_area_check_done(area, request->done != NULL, error);

	if (status != WEIR_OK)
		return status;
	return weiri_request_start(record, &area->waitable, &request_kind, request, &area->allocator, handle, error);
}

/* -- checks ------------------------------------------------------------------------------------ */

/* Checks the arguments of any call. `count` is the number of tensors in its tuple. */
static enum weir_status check(const weir_staging *staging, const void *tuple, size_t count,
                              struct weiri_record **record, weir_error *error)
{
	if (staging == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: NULL", what);
	if (tuple == NULL || count != staging->area.count)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s \"%s\": a tuple has %zu component%s, got %zu", what,
		                  staging->area.name, staging->area.count, WEIRI_S(staging->area.count),
		                  tuple != NULL ? count : 0);
	return weiri_area_record(&staging->area, record, error);
}

/* Makes the tuple of a put. */
static enum weir_status make_tuple(const weir_staging *staging, weir_tensor *const tensors[],
                                   struct weiri_record *record, struct tuple **out, weir_error *error)
{
	const struct weiri_area *area = &staging->area;
	enum weir_status status = WEIR_OK;
	struct tuple *tuple;

	for (size_t i = 0; status == WEIR_OK && i < area->count; i++)
		status = weiri_component_check(&area->components[i], i, tensors[i], what, area->name, error);
	if (status != WEIR_OK)
		return status;
	tuple = tuple_create(area, tensors);
	if (tuple == NULL)
		return weiri_area_no_memory(area, "put", error);
	if (staging->memory_limit != 0 && tuple->bytes > staging->memory_limit) {
		status = weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "%s \"%s\": a tuple of %zu byte%s, the limit of all is %zu",
		                    what, area->name, tuple->bytes, WEIRI_S(tuple->bytes), staging->memory_limit);
		tuple_release(record, tuple);
		return status;
	}
	*out = tuple;
	return WEIR_OK;
}

/* -- blocking calls ---------------------------------------------------------------------------- */

enum weir_status weir_staging_put(weir_staging *staging, weir_tensor *const tuple[], size_t count, uint64_t deadline_ns,
                                  weir_cancel *cancel, weir_error *error)
{
	struct request request = {.staging = staging, .kind = PUT};
	struct weiri_record *record;
	enum weir_status status = check(staging, tuple, count, &record, error);

	if (status == WEIR_OK)
		status = make_tuple(staging, tuple, record, &request.tuple, error);
	if (status != WEIR_OK)
		return status;
	status = run(record, &request, deadline_ns, cancel, error);
	if (request.tuple != NULL)
		tuple_release(record, request.tuple);
	return status;
}

static enum weir_status take(weir_staging *staging, enum kind kind, size_t index, weir_tensor *tuple[], size_t count,
                             uint64_t deadline_ns, weir_cancel *cancel, weir_error *error)
{
	struct request request = {.staging = staging, .kind = kind, .index = index};
	struct weiri_record *record;
	enum weir_status status = check(staging, tuple, count, &record, error);

	if (status == WEIR_OK)
		status = run(record, &request, deadline_ns, cancel, error);
	if (status == WEIR_OK)
		tuple_open(record, request.tuple, tuple);
	return status;
}

enum weir_status weir_staging_get(weir_staging *staging, weir_tensor *tuple[], size_t count, uint64_t deadline_ns,
                                  weir_cancel *cancel, weir_error *error)
{
	return take(staging, GET, 0, tuple, count, deadline_ns, cancel, error);
}

enum weir_status weir_staging_peek(weir_staging *staging, size_t index, weir_tensor *tuple[], size_t count,
                                   uint64_t deadline_ns, weir_cancel *cancel, weir_error *error)
{
	return take(staging, PEEK, index, tuple, count, deadline_ns, cancel, error);
}

/* -- asynchronous ------------------------------------------------------------------------------ */

enum weir_status weir_staging_start_put(weir_staging *staging, weir_tensor *const tuple[], size_t count,
                                        weir_staging_done_fn *done, void *context, weir_pending **handle,
                                        weir_error *error)
{
	struct request request = {.staging = staging, .kind = PUT, .done = done, .context = context};
	struct weiri_record *record;
	enum weir_status status = check(staging, tuple, count, &record, error);

	if (status == WEIR_OK)
		status = make_tuple(staging, tuple, record, &request.tuple, error);
	if (status != WEIR_OK)
		return status;
	status = start(record, &request, handle, error);
	if (status != WEIR_OK)
		tuple_release(record, request.tuple);
	return status;
}

static enum weir_status start_take(weir_staging *staging, enum kind kind, size_t index, weir_staging_done_fn *done,
                                   void *context, weir_pending **handle, weir_error *error)
{
	struct request request = {.staging = staging, .kind = kind, .index = index, .done = done, .context = context};
	struct weiri_record *record;
	enum weir_status status;

	if (staging == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: NULL", what);
	status = weiri_area_record(&staging->area, &record, error);
	return status == WEIR_OK ? start(record, &request, handle, error) : status;
}

enum weir_status weir_staging_start_get(weir_staging *staging, weir_staging_done_fn *done, void *context,
                                        weir_pending **handle, weir_error *error)
{
	return start_take(staging, GET, 0, done, context, handle, error);
}

enum weir_status weir_staging_start_peek(weir_staging *staging, size_t index, weir_staging_done_fn *done, void *context,
                                         weir_pending **handle, weir_error *error)
{
	return start_take(staging, PEEK, index, done, context, handle, error);
}

/* -- all at once ------------------------------------------------------------------------------- */

static void chain(void *context, void *item)
{
	struct tuple **first = context, *tuple = item;

	tuple->next = *first;
	*first = tuple;
}

enum weir_status weir_staging_clear(weir_staging *staging)
{
	struct weiri_record *record = staging != NULL ? weiri_record_get() : NULL;
	struct weiri_area_state *state;
	struct tuple *gone = NULL;
	struct weiri_tree_edit edit;
	struct weiri_scope scope;
	enum weir_status status;

	if (record == NULL)
		return staging == NULL ? WEIR_INVALID_ARGUMENT : WEIR_RESOURCE_EXHAUSTED;
	scope = weiri_scope_enter(record);
	do {
		state = weiri_area_read(&scope, &staging->area);
		edit = weiri_tree_edit_begin(&staging->area.allocator);
	} while (!publish(&scope, staging, state, (struct content){.next = content_of(state)->next}, &edit, &status));
	if (status == WEIR_OK)
		weiri_tree_end(content_of(state)->tuples, &scope, chain, &gone); /* G1 */
	weiri_scope_leave(&scope);
	while (gone != NULL) {
		struct tuple *tuple = gone;

		gone = tuple->next;
		tuple_release(record, tuple);
	}
	weiri_waitable_pump(record, &staging->area.waitable);
	return status;
}

enum weir_status weir_staging_size(const weir_staging *staging, size_t *size, size_t *bytes)
{
	struct weiri_record *record = staging != NULL ? weiri_record_get() : NULL;
	struct weiri_scope scope;
	const struct content *now;

	if (record == NULL)
		return staging == NULL ? WEIR_INVALID_ARGUMENT : WEIR_RESOURCE_EXHAUSTED;
	scope = weiri_scope_enter(record);
	now = content_of(weiri_area_read(&scope, &staging->area));
	if (size != NULL)
		*size = weiri_tree_count(now->tuples);
	if (bytes != NULL)
		*bytes = now->bytes;
	weiri_scope_leave(&scope);
	return WEIR_OK;
}

enum weir_status weir_staging_place(const weir_staging *staging, const char *component, size_t *place)
{
	if (staging == NULL || component == NULL || place == NULL)
		return WEIR_INVALID_ARGUMENT;
	return weiri_components_place(staging->area.components, staging->area.count, component, place);
}

/* -- creating and destroying ------------------------------------------------------------------- */

static void tell(const struct weiri_area *area, const void *content, char *text, size_t size)
{
	const weir_staging *staging = (const weir_staging *)(const void *)area;
	const struct content *now = content;
	char tuples[WEIRI_AREA_NUMBER_SIZE], bytes[WEIRI_AREA_NUMBER_SIZE];

	(void)snprintf(text, size, "%s tuples, %s bytes",
	               weiri_area_number(tuples, weiri_tree_count(now->tuples), staging->capacity),
	               weiri_area_number(bytes, now->bytes, staging->memory_limit));
}

/* All calls have ended, so only the area has a reference to the tuple. */
static WEIRI_UNSEEN void assert_last(const struct tuple *tuple)
{
	WEIR_ASSERT2(G1, weiri_peek(&tuple->references) == 1);
}

static void end_tuple(void *context, void *item)
{
	struct tuple *tuple = item;

	(void)context;
	WEIR_ASSERT_LOOK(assert_last(tuple));
	for (size_t i = 0; i < tuple->count; i++)
		weir_tensor_release(tuple->tensors[i]);
	tuple_reclaim(&tuple->retired);
}

static void empty(struct weiri_area *area, const void *content)
{
	(void)area;
	weiri_tree_end(((const struct content *)content)->tuples, NULL, end_tuple, NULL);
}

static const struct content nothing;
static const struct weiri_area_kind kind_of_area = {what, sizeof(weir_staging), sizeof(struct content), &nothing, tell,
                                                    empty};

enum weir_status weir_staging_create(const struct weir_staging_options *options, weir_staging **out, weir_error *error)
{
	struct weir_staging_options given;
	enum weir_status status;
	struct weiri_area *area;
	weir_staging *staging;

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
	staging = (weir_staging *)(void *)area;
	staging->capacity = given.capacity;
	staging->memory_limit = given.memory_limit;
	status = weiri_area_enter(area, error);
	if (status == WEIR_OK)
		*out = staging;
	return status;
}

enum weir_status weir_staging_destroy(weir_staging *staging, weir_error *error)
{
	return staging != NULL ? weiri_area_destroy(&staging->area, error) : WEIR_OK;
}
