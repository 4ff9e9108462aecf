/*
 * staging.c - staging areas.
 *
 * Algorithm. An area (area.h) whose content is a version of a sorted collection of tuples by their number (tree.h), and the sum of their
 * bytes. So count, bytes and order are always of one instant. The reference does this under a mutex.
 *
 * Invariants
 *   G1  a tuple in the published version is referenced once for that; who publishes a version without it takes the reference over
 *   G2  a tuple's references never rise from 0: a peek that meets 0 has read a state that was replaced since
 * Pairs: those of area.h; P2 release(references) -> the end of a tuple: what its users did with its tensors.
 * Linearization. A change: its CAS. A look, and what is told to wait: the read of the state. A peek: the read of the last state that it read.
 * Progress: lock-free, but for the allocator: an attempt is repeated when another thread's change was published.
 * Memory: per tuple a header and its node; a change makes about 2 log2 n nodes of 128 bytes and retires as many.
 * Checked: tests/test_staging.c, stress/model/check_staging.c, weir-stress "staging", "history_staging".
 */
#include "queue/staging.h"

#include <stdalign.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "queue/area.h"
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
	struct tuple *next; /* of who took it out */
	weir_allocator allocator;
	size_t count;
	weir_tensor *tensors[];
};

struct weir_staging {
	struct weiri_area area; /* first */
	size_t capacity, memory_limit;
};

enum kind { PUT, GET, PEEK };

struct weir_staging_op {
	struct weiri_await await; /* first */
	weir_staging *staging;
	enum kind kind;
	size_t index;
	struct tuple *tuple; /* put: until it is in; get, peek: what came out */
	weir_staging_done_fn *done;
	void *context;
};

static const char what[] = "staging area";
static const char *const verbs[] = {"put", "get", "peek"};

/* -- tuples ------------------------------------------------------------------------------------------------------------------- */

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

/* With one reference; NULL: no memory. */
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
		tuple->bytes += weir_tensor_nbytes(tensors[i]);
	}
	return tuple;
}

/* Outside of sections: the header waits for those of others. */
static void tuple_release(struct weiri_record *record, struct tuple *tuple)
{
	if (!weiri_references_give(&tuple->references)) /* P2 */
		return;
	for (size_t i = 0; i < tuple->count; i++)
		weir_tensor_release(tuple->tensors[i]);
	weiri_retire(record, &tuple->retired);
}

/* Gives the caller's reference up for references to the tensors. */
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

/* -- states ------------------------------------------------------------------------------------------------------------------- */

static const struct content *content_of(const struct weiri_area_state *state)
{
	return (const struct content *)(const void *)state->content;
}

static int publish(struct weiri_scope *scope, weir_staging *staging, struct weiri_area_state *state,
                   struct content changed, struct weiri_tree_edit *edit, enum weir_status *status)
{
	return weiri_area_publish(scope, &staging->area, state, &changed, edit, status);
}

static int has_room(const weir_staging *staging, const struct content *now, const struct tuple *tuple)
{
	if (staging->capacity != 0 && weiri_tree_count(now->tuples) >= staging->capacity)
		return 0;
	return staging->memory_limit == 0 || tuple->bytes <= staging->memory_limit - now->bytes;
}

static enum weir_status put(struct weiri_scope *scope, weir_staging_op *op)
{
	weir_staging *staging = op->staging;
	struct tuple *tuple = op->tuple;
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
		op->tuple = NULL; /* G1: the area's now */
	return status;
}

static enum weir_status get(struct weiri_scope *scope, weir_staging_op *op)
{
	weir_staging *staging = op->staging;
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
		op->tuple = oldest; /* G1: ours now */
	return status;
}

static enum weir_status peek(struct weiri_scope *scope, weir_staging_op *op)
{
	struct tuple *tuple;

	do {
		tuple = weiri_tree_at(content_of(weiri_area_read(scope, &op->staging->area))->tuples, op->index);
		if (tuple == NULL)
			return WEIR_WOULD_BLOCK;
	} while (!weiri_references_try_take(&tuple->references)); /* G2 */
	op->tuple = tuple;
	return WEIR_OK;
}

static enum weir_status attempt(struct weiri_scope *scope, struct weiri_await *await, weir_error *error)
{
	static enum weir_status (*const attempts[])(struct weiri_scope *, weir_staging_op *) = {put, get, peek};
	weir_staging_op *op = (weir_staging_op *)(void *)await;
	enum weir_status status = attempts[op->kind](scope, op);

	if (status == WEIR_RESOURCE_EXHAUSTED)
		return weiri_area_no_memory(&op->staging->area, verbs[op->kind], error);
	return status;
}

/* -- operations --------------------------------------------------------------------------------------------------------------- */

/* Of an asynchronous operation. */
static void op_done(struct weiri_await *await)
{
	weir_staging_op *op = (weir_staging_op *)(void *)await;
	weir_tensor *tensors[WEIR_TENSOR_QUEUE_MAX_COMPONENTS];
	struct weiri_record *record = weiri_record_get(); /* not NULL: who completes it has one */
	size_t count = 0;

	if (op->tuple != NULL && op->kind != PUT) {
		count = op->tuple->count;
		tuple_open(record, op->tuple, tensors);
	} else if (op->tuple != NULL) {
		tuple_release(record, op->tuple); /* a put that was not to be */
	}
	op->tuple = NULL;
	op->done(op->context, await->status, await->status != WEIR_OK ? &await->error : NULL, tensors, count);
}

/* Takes the tuple over. NULL: no memory, and the tuple is still the caller's. */
static weir_staging_op *op_create(weir_staging *staging, enum kind kind, size_t index, struct tuple *tuple,
                                  weir_staging_done_fn *done, void *context, weir_error *error)
{
	weir_staging_op *op =
		(weir_staging_op *)(void *)weiri_await_create(&staging->area.awaits, sizeof(*op), verbs[kind], attempt,
	                                                  done != NULL ? op_done : NULL, &staging->area.allocator, error);

	if (op == NULL)
		return NULL;
	op->staging = staging;
	op->kind = kind;
	op->index = index;
	op->tuple = tuple;
	op->done = done;
	op->context = context;
	return op;
}

void weir_staging_op_cancel(weir_staging_op *op)
{
	if (op != NULL)
		weiri_await_cancel(&op->await);
}

void weir_staging_op_release(weir_staging_op *op)
{
	if (op != NULL)
		weiri_await_release(&op->await);
}

/* -- checks ------------------------------------------------------------------------------------------------------------------- */

/* Of any call; count is that of its tuple. */
static enum weir_status check(const weir_staging *staging, const void *tuple, size_t count,
                              struct weiri_record **record, weir_error *error)
{
	if (staging == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: NULL", what);
	if (tuple == NULL || count != staging->area.count)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s \"%s\": a tuple has %zu components, got %zu", what,
		                  staging->area.name, staging->area.count, tuple != NULL ? count : 0);
	return weiri_area_record(&staging->area, record, error);
}

/* The tuple to put. */
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
		status = weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "%s \"%s\": a tuple of %zu bytes, the limit of all is %zu",
		                    what, area->name, tuple->bytes, staging->memory_limit);
		tuple_release(record, tuple);
		return status;
	}
	*out = tuple;
	return WEIR_OK;
}

/* -- blocking calls ----------------------------------------------------------------------------------------------------------- */

/* Without waiting: no operation that others could see. */
static enum weir_status run_at_once(struct weiri_record *record, weir_staging *staging, enum kind kind, size_t index,
                                    struct tuple **tuple, weir_error *error)
{
	weir_staging_op op = {.staging = staging, .kind = kind, .index = index, .tuple = *tuple};
	struct weiri_scope scope = weiri_scope_enter(record);
	enum weir_status status = attempt(&scope, &op.await, error);

	weiri_scope_leave(&scope);
	*tuple = op.tuple;
	if (status == WEIR_OK && kind != PEEK)
		weiri_await_pump(record, &staging->area.awaits);
	return status;
}

/* To its end; *tuple is what is put, or came out. */
static enum weir_status run(struct weiri_record *record, weir_staging *staging, enum kind kind, size_t index,
                            struct tuple **tuple, uint64_t deadline_ns, weir_cancel *cancel, weir_error *error)
{
	weir_staging_op *op;
	enum weir_status status = weiri_await_check_token(&staging->area.awaits, verbs[kind], cancel, error);

	if (status == WEIR_OK)
		status = run_at_once(record, staging, kind, index, tuple, error);
	if (status != WEIR_WOULD_BLOCK)
		return status;
	if (deadline_ns == 0)
		return weiri_fail(error, WEIR_DEADLINE_EXCEEDED, "%s \"%s\": %s at once", what, staging->area.name,
		                  kind == PUT ? "no room" : "no tuple");
	op = op_create(staging, kind, index, *tuple, NULL, NULL, error);
	if (op == NULL)
		return WEIR_RESOURCE_EXHAUSTED;
	status = weiri_await_run(record, &op->await, deadline_ns, cancel, error);
	*tuple = op->tuple;
	weiri_await_release(&op->await);
	return status;
}

enum weir_status weir_staging_put(weir_staging *staging, weir_tensor *const tuple[], size_t count, uint64_t deadline_ns,
                                  weir_cancel *cancel, weir_error *error)
{
	struct weiri_record *record;
	enum weir_status status = check(staging, tuple, count, &record, error);
	struct tuple *made = NULL;

	if (status == WEIR_OK)
		status = make_tuple(staging, tuple, record, &made, error);
	if (status != WEIR_OK)
		return status;
	status = run(record, staging, PUT, 0, &made, deadline_ns, cancel, error);
	if (made != NULL)
		tuple_release(record, made);
	return status;
}

static enum weir_status take(weir_staging *staging, enum kind kind, size_t index, weir_tensor *tuple[], size_t count,
                             uint64_t deadline_ns, weir_cancel *cancel, weir_error *error)
{
	struct weiri_record *record;
	enum weir_status status = check(staging, tuple, count, &record, error);
	struct tuple *taken = NULL;

	if (status == WEIR_OK)
		status = run(record, staging, kind, index, &taken, deadline_ns, cancel, error);
	if (taken != NULL)
		tuple_open(record, taken, tuple);
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

/* -- asynchronous ------------------------------------------------------------------------------------------------------------- */

/* Takes the tuple over when it returns WEIR_OK. */
static enum weir_status start(struct weiri_record *record, weir_staging *staging, enum kind kind, size_t index,
                              struct tuple *tuple, weir_staging_done_fn *done, void *context, weir_staging_op **out,
                              weir_error *error)
{
	enum weir_status status = weiri_area_check_done(&staging->area, done != NULL, error);
	weir_staging_op *op;

	if (status != WEIR_OK)
		return status;
	op = op_create(staging, kind, index, tuple, done, context, error);
	if (op == NULL)
		return WEIR_RESOURCE_EXHAUSTED;
	if (out != NULL)
		*out = op;
	weiri_await_begin(record, &op->await, out != NULL);
	return WEIR_OK;
}

enum weir_status weir_staging_start_put(weir_staging *staging, weir_tensor *const tuple[], size_t count,
                                        weir_staging_done_fn *done, void *context, weir_staging_op **op,
                                        weir_error *error)
{
	struct weiri_record *record;
	enum weir_status status = check(staging, tuple, count, &record, error);
	struct tuple *made = NULL;

	if (status == WEIR_OK)
		status = make_tuple(staging, tuple, record, &made, error);
	if (status != WEIR_OK)
		return status;
	status = start(record, staging, PUT, 0, made, done, context, op, error);
	if (status != WEIR_OK)
		tuple_release(record, made);
	return status;
}

static enum weir_status start_take(weir_staging *staging, enum kind kind, size_t index, weir_staging_done_fn *done,
                                   void *context, weir_staging_op **op, weir_error *error)
{
	struct weiri_record *record;
	enum weir_status status;

	if (staging == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: NULL", what);
	status = weiri_area_record(&staging->area, &record, error);
	return status == WEIR_OK ? start(record, staging, kind, index, NULL, done, context, op, error) : status;
}

enum weir_status weir_staging_start_get(weir_staging *staging, weir_staging_done_fn *done, void *context,
                                        weir_staging_op **op, weir_error *error)
{
	return start_take(staging, GET, 0, done, context, op, error);
}

enum weir_status weir_staging_start_peek(weir_staging *staging, size_t index, weir_staging_done_fn *done, void *context,
                                         weir_staging_op **op, weir_error *error)
{
	return start_take(staging, PEEK, index, done, context, op, error);
}

/* -- all at once -------------------------------------------------------------------------------------------------------------- */

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
	weiri_await_pump(record, &staging->area.awaits);
	return status;
}

enum weir_status weir_staging_look(const weir_staging *staging, size_t *size, size_t *bytes)
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

size_t weiri_staging_waiting(const weir_staging *staging)
{
	return weiri_area_waiting(&staging->area);
}

enum weir_status weir_staging_place(const weir_staging *staging, const char *component, size_t *place)
{
	if (staging == NULL || component == NULL || place == NULL)
		return WEIR_INVALID_ARGUMENT;
	return weiri_components_place(staging->area.components, staging->area.count, component, place);
}

/* -- creating and destroying -------------------------------------------------------------------------------------------------- */

static void tell(const struct weiri_area *area, const void *content, char *text, size_t size)
{
	const weir_staging *staging = (const weir_staging *)(const void *)area;
	const struct content *now = content;
	char tuples[WEIRI_AREA_NUMBER_SIZE], bytes[WEIRI_AREA_NUMBER_SIZE];

	(void)snprintf(text, size, "%s tuples, %s bytes",
	               weiri_area_number(tuples, weiri_tree_count(now->tuples), staging->capacity),
	               weiri_area_number(bytes, now->bytes, staging->memory_limit));
}

static void end_tuple(void *context, void *item)
{
	struct tuple *tuple = item;

	(void)context;
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
	enum weir_status status;
	struct weiri_area *area;
	weir_staging *staging;

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
	staging = (weir_staging *)(void *)area;
	staging->capacity = options->capacity;
	staging->memory_limit = options->memory_limit;
	status = weiri_area_enter(area, error);
	if (status == WEIR_OK)
		*out = staging;
	return status;
}

enum weir_status weir_staging_destroy(weir_staging *staging, weir_error *error)
{
	return staging != NULL ? weiri_area_destroy(&staging->area, error) : WEIR_OK;
}
