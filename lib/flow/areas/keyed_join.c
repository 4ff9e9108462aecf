/*
 * keyed_join.c - keyed joins: tuples that are joined by key.
 *
 * Algorithm. A keyed join is an area (area.h). Its content has four parts: a version of the
 * incomplete tuples, sorted by key; a version of the ready tuples, sorted by index (tree.h,
 * keyed_join_part.h); the next index; and whether the keyed join is closed. An insert of many keys,
 * a take, and a close are each one change. So each is atomic over any number of keys, without
 * locks.
 *
 * Invariant, in addition to those of area.h and keyed_join_part.h
 *   B4  a tuple is incomplete or ready, never both; `have` of an incomplete tuple is not full
 * Linearization. A change takes effect at its CAS. A look, a refusal, and a decision to wait take
 * effect at the read of the state from which they follow.
 * Progress: lock-free, except for the allocator: an attempt is repeated only if another thread's
 *   change was published. A take stacks its tuples before it publishes, so that no tuple is lost if
 *   there is no memory. If several takes run at once, some stack tuples that another take removes;
 *   they discard the result and repeat the attempt.
 * Memory: a part for each component of a key (128 bytes and the key). A change makes about 2 log2 n
 *   nodes per key and retires as many. A collection releases the tensors of tuples that were taken
 *   (docs/memory.md); until then they count in the budget.
 * Checked: tests/test_keyed_join.c, stress/model/check_keyed_join.c, weir-stress "keyed_join",
 *   "keyed_join_stopped", "history_keyed_join".
 */
#include <weir/flow/keyed_join.h>

#include <stdalign.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "areas/area.h"
#include "areas/keyed_join_part.h"
#include "sync/request.h"

enum closed { OPEN, DRAINS, CANCELLED };

/* The content of a state: a change copies it, edits the copy and publishes that. */
struct content {
	struct weiri_tree *incomplete, *ready;
	int64_t next_index;
	uint64_t next_order; /* ready tuples of one index are ordered as they became ready */
	enum closed closed;
	const weir_error *cause; /* of the close, or NULL; the keyed join owns it until it is destroyed */
};

struct weir_keyed_join {
	struct weiri_area area; /* the only member */
};

/* A request to take tuples. */
struct request {
	weir_keyed_join *join;
	size_t n;
	uint32_t flags;
	struct weir_keyed_join_batch batch; /* the result */
	weir_keyed_join_done_fn *done;      /* only if the request is asynchronous */
	void *context;
};

static const char what[] = "keyed join";

_Static_assert((int)WEIR_TENSOR_QUEUE_MAX_COMPONENTS <= 64, "a bit each in `have`");

static uint64_t all_of(const weir_keyed_join *join)
{
	return UINT64_MAX >> (64 - join->area.count);
}

static const struct content *content_of(const struct weiri_area_state *state)
{
	return (const struct content *)(const void *)state->content;
}

/* -- assertions -------------------------------------------------------------------------------- */

/* Called for the last content, when the keyed join is destroyed: nothing changes any more. */
static WEIRI_UNSEEN void assert_content(const weir_keyed_join *join, const struct content *content)
{
	for (size_t i = 0; i < weiri_tree_count(content->incomplete); i++) {
		const struct weiri_keyed_join_part *part = weiri_tree_at(content->incomplete, i);

		WEIR_ASSERT3(B4, part->have != 0 && part->have != all_of(join));
		WEIR_ASSERT3(keyed_join_part B2,
		             weiri_tree_find(content->incomplete, weiri_keyed_join_compare_keys, part) == part);
	}
	for (size_t i = 0; i < weiri_tree_count(content->ready); i++) {
		const struct weiri_keyed_join_part *part = weiri_tree_at(content->ready, i);

		WEIR_ASSERT3(B4, part->have == all_of(join));
		WEIR_ASSERT3(B4, weiri_tree_find(content->incomplete, weiri_keyed_join_compare_keys, part) != part);
	}
}

/* -- inserting --------------------------------------------------------------------------------- */

enum { CAUSE_SIZE = 192 };

/* Writes the cause of the close in the same words as messages of a queue; "" if there is none. */
static void tell_cause(const struct content *state, char text[CAUSE_SIZE])
{
	if (state->cause != NULL)
		(void)snprintf(text, CAUSE_SIZE, "; closed because of %s: %.120s", weir_status_name(state->cause->code),
		               state->cause->message);
	else
		text[0] = '\0';
}

static enum weir_status fail_closed(const weir_keyed_join *join, const struct content *state,
                                    const struct weiri_keyed_join_part *part, weir_error *error)
{
	char cause[CAUSE_SIZE];

	tell_cause(state, cause);
	if (part == NULL)
		return weiri_fail(error, WEIR_CANCELLED, "keyed join \"%s\" is closed%s", join->area.name, cause);
	return weiri_fail(error, WEIR_CANCELLED, "keyed join \"%s\" is closed, and key \"%.*s\" is new%s", join->area.name,
	                  (int)(part->key_size < 64 ? part->key_size : 64), part->key, cause);
}

/* Adds one part to `next`. */
static enum weir_status add_part(const weir_keyed_join *join, struct weiri_tree_edit *edit, struct content *next,
                                 struct weiri_keyed_join_part *part, bool *is_new, weir_error *error)
{
	struct weiri_keyed_join_part *there = weiri_tree_find(next->incomplete, weiri_keyed_join_compare_keys, part);
	uint64_t bit = UINT64_C(1) << part->component;

	if (there == NULL && next->closed != OPEN)
		return fail_closed(join, next, part, error);
	if (there != NULL && (there->have & bit) != 0)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT,
		                  "keyed join \"%s\": key \"%.*s\" has component %zu (%s) already", join->area.name,
		                  (int)(part->key_size < 64 ? part->key_size : 64), part->key, part->component,
		                  join->area.components[part->component].name);
	*is_new |= there == NULL;
	part->before = there;
	part->have = bit | (there != NULL ? there->have : 0);
	part->index = there != NULL ? there->index : next->next_index;
	if (part->have == all_of(join)) {
		part->order = next->next_order++;
		if (there != NULL)
			next->incomplete = weiri_tree_remove(edit, next->incomplete, weiri_keyed_join_compare_keys, part);
		next->ready = weiri_tree_insert(edit, next->ready, weiri_keyed_join_compare_order, part,
		                                weiri_keyed_join_seed(part) + part->order, part);
	} else if (there != NULL) {
		next->incomplete = weiri_tree_replace(edit, next->incomplete, weiri_keyed_join_compare_keys, part, part);
	} else {
		next->incomplete = weiri_tree_insert(edit, next->incomplete, weiri_keyed_join_compare_keys, part,
		                                     weiri_keyed_join_seed(part), part);
	}
	return WEIR_OK;
}

/* Inserts all parts, or none. */
static enum weir_status insert(struct weiri_scope *scope, weir_keyed_join *join, struct weiri_keyed_join_part *parts,
                               weir_error *error)
{
	struct weiri_tree_edit edit;
	struct content next;
	struct weiri_area_state *state;
	enum weir_status status;
	bool is_new;

	do {
		state = weiri_area_read(scope, &join->area);
		next = *content_of(state);
		edit = weiri_tree_edit_begin(&join->area.allocator);
		is_new = false;
		status = next.closed == CANCELLED ? fail_closed(join, &next, NULL, error) : WEIR_OK;
		for (struct weiri_keyed_join_part *part = parts; status == WEIR_OK && !edit.failed && part != NULL;
		     part = part->next)
			status = add_part(join, &edit, &next, part, &is_new, error);
		if (status != WEIR_OK) {
			weiri_tree_discard(&edit);
			return status;
		}
		next.next_index += is_new;
	} while (parts != NULL && !weiri_area_publish(scope, &join->area, state, &next, &edit, &status));
	if (status == WEIR_RESOURCE_EXHAUSTED)
		return weiri_area_no_memory(&join->area, "insert", error);
	return status;
}

/* Returns true if the shape that was given is [n] followed by `shape`. */
static bool are_rows_of(const weir_shape *got, const weir_shape *shape, int64_t n)
{
	if (got->rank != shape->rank + 1 || got->dims[0] != n)
		return false;
	for (uint32_t i = 0; i < shape->rank; i++) {
		if (got->dims[i + 1] != shape->dims[i])
			return false;
	}
	return true;
}

static enum weir_status check_insert(const weir_keyed_join *join, size_t component, const weir_tensor *keys,
                                     const weir_tensor *values, weir_error *error)
{
	char want[WEIR_SHAPE_TEXT_SIZE], have[WEIR_SHAPE_TEXT_SIZE];
	const struct weiri_component *of;

	if (join == NULL || keys == NULL || values == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "keyed join: %s is NULL",
		                  join == NULL   ? "keyed join"
		                  : keys == NULL ? "keys"
		                                 : "values");
	if (component >= join->area.count)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT,
		                  "keyed join \"%s\" has %zu component%s, so there is no component %zu", join->area.name,
		                  join->area.count, WEIRI_S(join->area.count), component);
	of = &join->area.components[component];
	if (weir_tensor_dtype(keys) != WEIR_BYTES || weir_tensor_shape(keys)->rank != 1)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "keyed join \"%s\": keys must be %s [n], got %s %s",
		                  join->area.name, weir_dtype_name(WEIR_BYTES), weir_dtype_name(weir_tensor_dtype(keys)),
		                  weir_shape_text(weir_tensor_shape(keys), have, sizeof(have)));
	if (weir_tensor_dtype(values) != of->dtype)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT,
		                  "keyed join \"%s\": component %zu (%s): dtype must be %s, got %s", join->area.name, component,
		                  of->name, weir_dtype_name(of->dtype), weir_dtype_name(weir_tensor_dtype(values)));
	if (!are_rows_of(weir_tensor_shape(values), &of->shape, weir_tensor_element_count(keys)))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT,
		                  "keyed join \"%s\": component %zu (%s): shape must be [%lld] + %s, got %s", join->area.name,
		                  component, of->name, (long long)weir_tensor_element_count(keys),
		                  weir_shape_text(&of->shape, want, sizeof(want)),
		                  weir_shape_text(weir_tensor_shape(values), have, sizeof(have)));
	return WEIR_OK;
}

/* Sets *parts to a list with one part for each key, in the order of the keys. */
static enum weir_status make_parts(const weir_keyed_join *join, size_t component, const weir_tensor *keys,
                                   weir_tensor *values, struct weiri_keyed_join_part **parts, weir_error *error)
{
	const weir_bytes *key = weir_tensor_data(keys);
	struct weiri_keyed_join_part *made = NULL;

	for (int64_t row = weir_tensor_element_count(keys) - 1; row >= 0; row--) {
		struct weiri_keyed_join_part *part =
			weiri_keyed_join_part_create(&join->area.allocator, component, &key[row], values, row);

		if (part == NULL) {
			weiri_keyed_join_parts_free(made);
			return weiri_area_no_memory(&join->area, "insert", error);
		}
		part->next = made;
		made = part;
	}
	*parts = made;
	return WEIR_OK;
}

enum weir_status weir_keyed_join_insert_many(weir_keyed_join *join, size_t component, weir_tensor *keys,
                                             weir_tensor *values, weir_error *error)
{
	enum weir_status status = check_insert(join, component, keys, values, error);
	struct weiri_keyed_join_part *parts = NULL;
	struct weiri_record *record;
	struct weiri_scope scope;

	if (status == WEIR_OK)
		status = weiri_area_record(&join->area, &record, error);
	if (status == WEIR_OK)
		status = make_parts(join, component, keys, values, &parts, error);
	if (status != WEIR_OK)
		return status;
	scope = weiri_scope_enter(record);
	status = insert(&scope, join, parts, error);
	weiri_scope_leave(&scope);
	if (status != WEIR_OK)
		weiri_keyed_join_parts_free(parts);
	else
		weiri_waitable_pump(record, &join->area.waitable);
	return status;
}

/* -- taking ------------------------------------------------------------------------------------ */

static void batch_release(struct weir_keyed_join_batch *batch)
{
	weir_tensor_release(batch->indices);
	weir_tensor_release(batch->keys);
	for (size_t i = 0; i < WEIR_TENSOR_QUEUE_MAX_COMPONENTS; i++)
		weir_tensor_release(batch->values[i]);
	*batch = (struct weir_keyed_join_batch){0};
}

/* Room to gather a batch of n > 0. */
struct gathered {
	struct weiri_keyed_join_part **tuples;
	weir_tensor **column;
	int64_t *indices;
	weir_bytes *keys;
};

enum {
	GATHERED = sizeof(struct weiri_keyed_join_part *) + sizeof(weir_tensor *) + sizeof(int64_t) + sizeof(weir_bytes)
};

static enum weir_status stack_gathered(const weir_keyed_join *join, const struct gathered *gathered, size_t n,
                                       struct weir_keyed_join_batch *batch)
{
	const weir_shape shape = {.rank = 1, .dims = {(int64_t)n}};
	enum weir_status status =
		weir_tensor_copy_of(WEIR_I64, &shape, gathered->indices, &join->area.allocator, &batch->indices);

	if (status == WEIR_OK)
		status = weir_tensor_copy_of(WEIR_BYTES, &shape, gathered->keys, &join->area.allocator, &batch->keys);
	for (size_t i = 0; status == WEIR_OK && i < join->area.count; i++) {
		for (size_t row = 0; row < n; row++)
			gathered->column[row] = weiri_keyed_join_tuple_tensor(gathered->tuples[row], i);
		status = weir_tensor_stack(gathered->column, n, &join->area.allocator, &batch->values[i]);
	}
	return status;
}

/* Stacks the first n > 0 ready tuples into *batch, and removes them from *next. */
static enum weir_status gather(weir_keyed_join *join, const struct gathered *gathered, size_t n,
                               struct weiri_tree_edit *edit, struct content *next, struct weir_keyed_join_batch *batch)
{
	for (size_t row = 0; row < n; row++) {
		struct weiri_keyed_join_part *tuple = weiri_tree_at(next->ready, 0);

		gathered->tuples[row] = tuple;
		gathered->indices[row] = tuple->index;
		gathered->keys[row] = (weir_bytes){tuple->key, tuple->key_size};
		next->ready = weiri_tree_remove(edit, next->ready, weiri_keyed_join_compare_order, tuple);
		if (edit->failed)
			return WEIR_RESOURCE_EXHAUSTED;
	}
	batch->count = n;
	return stack_gathered(join, gathered, n, batch);
}

/* Makes an empty batch. */
static enum weir_status gather_none(weir_keyed_join *join, struct weir_keyed_join_batch *batch)
{
	const weir_shape none = {.rank = 1};
	enum weir_status status = weir_tensor_copy_of(WEIR_I64, &none, NULL, &join->area.allocator, &batch->indices);

	if (status == WEIR_OK)
		status = weir_tensor_copy_of(WEIR_BYTES, &none, NULL, &join->area.allocator, &batch->keys);
	for (size_t i = 0; status == WEIR_OK && i < join->area.count; i++) {
		weir_shape shape = {.rank = join->area.components[i].shape.rank + 1};

		memcpy(&shape.dims[1], join->area.components[i].shape.dims, sizeof(shape.dims[0]) * (shape.rank - 1));
		status =
			weir_tensor_copy_of(join->area.components[i].dtype, &shape, NULL, &join->area.allocator, &batch->values[i]);
	}
	return status;
}

static enum weir_status fail_short(const weir_keyed_join *join, const struct content *state,
                                   const struct request *request, weir_error *error)
{
	char cause[CAUSE_SIZE];

	tell_cause(state, cause);
	return weiri_fail(
		error, WEIR_OUT_OF_RANGE,
		"keyed join \"%s\" is closed and has insufficient elements (requested %zu, %zu ready, %zu incomplete)%s",
		join->area.name, request->n, weiri_tree_count(state->ready), weiri_tree_count(state->incomplete), cause);
}

/*
 * Sets *n to the number of tuples to take from this state. Returns WEIR_WOULD_BLOCK if the take has
 * to wait, and WEIR_OUT_OF_RANGE if it can never succeed.
 */
static enum weir_status decide(const struct content *state, const struct request *request, size_t *n)
{
	size_t ready = weiri_tree_count(state->ready), available = ready;

	*n = request->n;
	if (state->closed != OPEN) {
		if ((request->flags & WEIR_KEYED_JOIN_ALLOW_SMALL_BATCH) == 0)
			available += weiri_tree_count(state->incomplete);
		else if (*n > ready)
			*n = ready;
		if (available < (*n > 1 ? *n : 1))
			return WEIR_OUT_OF_RANGE;
	}
	return ready < *n ? WEIR_WOULD_BLOCK : WEIR_OK;
}

/*
 * Takes n tuples; `gathered` has room for them. Returns true if the take is over, with *status as
 * its result; false if another change was published first.
 */
static bool take_from(struct weiri_scope *scope, struct request *request, struct weiri_area_state *state, size_t n,
                      const struct gathered *gathered, enum weir_status *status)
{
	weir_keyed_join *join = request->join;
	struct weiri_tree_edit edit = weiri_tree_edit_begin(&join->area.allocator);
	struct content next = *content_of(state);
	bool over;

	*status = gather(join, gathered, n, &edit, &next, &request->batch);
	if (*status != WEIR_OK) {
		weiri_tree_discard(&edit);
		over = true;
	} else {
		over = weiri_area_publish(scope, &join->area, state, &next, &edit, status);
	}
	for (size_t row = 0; over && *status == WEIR_OK && row < n; row++)
		weiri_keyed_join_tuple_end(scope, gathered->tuples[row]);
	if (!over || *status != WEIR_OK)
		batch_release(&request->batch);
	return over;
}

/* Takes n > 0 tuples. Returns as take_from() does. */
static bool take_some(struct weiri_scope *scope, struct request *request, struct weiri_area_state *state, size_t n,
                      enum weir_status *status)
{
	size_t size = n * GATHERED; /* n tuples are ready, so this does not overflow */
	char *room = weiri_allocate(&request->join->area.allocator, size, alignof(max_align_t));
	struct gathered gathered;
	bool over;

	if (room == NULL) {
		*status = WEIR_RESOURCE_EXHAUSTED;
		return true;
	}
	gathered.keys = (weir_bytes *)(void *)room;
	gathered.indices = (int64_t *)(void *)(gathered.keys + n);
	gathered.tuples = (struct weiri_keyed_join_part **)(void *)(gathered.indices + n);
	gathered.column = (weir_tensor **)(void *)(gathered.tuples + n);
	over = take_from(scope, request, state, n, &gathered, status);
	weiri_release(&request->join->area.allocator, room, size, alignof(max_align_t));
	return over;
}

static enum weir_status attempt(struct weiri_scope *scope, void *asked, weir_error *error)
{
	struct request *request = asked;
	enum weir_status status;
	struct weiri_area_state *state;
	size_t n;

	do {
		state = weiri_area_read(scope, &request->join->area);
		status = decide(content_of(state), request, &n);
		if (status == WEIR_OUT_OF_RANGE)
			return fail_short(request->join, content_of(state), request, error);
		if (status != WEIR_OK)
			return status;
		if (n == 0) {
			status = gather_none(request->join, &request->batch);
			break;
		}
	} while (!take_some(scope, request, state, n, &status));
	if (status == WEIR_OK)
		return status;
	batch_release(&request->batch);
	return weiri_fail(error, status, "keyed join \"%s\": no memory to take %zu", request->join->area.name, n);
}

/* -- running a request ------------------------------------------------------------------------- */

static enum weir_status fail_at_once(const void *asked, weir_error *error)
{
	const struct request *request = asked;

	return weiri_fail(error, WEIR_DEADLINE_EXCEEDED, "keyed join \"%s\": fewer than %zu ready tuple%s at once",
	                  request->join->area.name, request->n, WEIRI_S(request->n));
}

static const char *verb_of(const void *asked)
{
	(void)asked;
	return "take_many";
}

static void answer(void *asked, enum weir_status status, const weir_error *error)
{
	struct request *request = asked;

	request->done(request->context, status, error, status == WEIR_OK ? &request->batch : NULL);
}

static const struct weiri_request_kind request_kind = {
	sizeof(struct request), attempt, fail_at_once, verb_of, NULL, answer};

static enum weir_status check_take(const weir_keyed_join *join, size_t n, uint32_t flags, weir_error *error)
{
	uint64_t wide = n; /* a size_t of 32 bits is below any INT64_MAX, and gcc warns of the comparison */

	if (join == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "keyed join: NULL");
	if (wide > INT64_MAX)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT,
		                  "keyed join \"%s\": requested %zu elements, must be at most %lld", join->area.name, n,
		                  (long long)INT64_MAX);
	if ((flags & ~(uint32_t)WEIR_KEYED_JOIN_ALLOW_SMALL_BATCH) != 0)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "keyed join \"%s\": unknown flags %#x", join->area.name, flags);
	return WEIR_OK;
}

enum weir_status weir_keyed_join_take_many(weir_keyed_join *join, size_t n, uint32_t flags, uint64_t deadline_ns,
                                           weir_cancel *cancel, struct weir_keyed_join_batch *batch, weir_error *error)
{
	struct request request = {.join = join, .n = n, .flags = flags};
	enum weir_status status = check_take(join, n, flags, error);
	struct weiri_record *record;

	if (status == WEIR_OK && batch == NULL)
		status = weiri_fail(error, WEIR_INVALID_ARGUMENT, "keyed join \"%s\": batch is NULL", join->area.name);
	if (status == WEIR_OK)
		status = weiri_area_record(&join->area, &record, error);
	if (status == WEIR_OK)
		status = weiri_request_run(record, &join->area.waitable, &request_kind, &request, deadline_ns, cancel,
		                           &join->area.allocator, error);
	if (status == WEIR_OK)
		*batch = request.batch;
	return status;
}

enum weir_status weir_keyed_join_start_take_many(weir_keyed_join *join, size_t n, uint32_t flags,
                                                 weir_keyed_join_done_fn *done, void *context, weir_pending **handle,
                                                 weir_error *error)
{
	struct request request = {.join = join, .n = n, .flags = flags, .done = done, .context = context};
	enum weir_status status = check_take(join, n, flags, error);
	struct weiri_record *record;

	if (status == WEIR_OK)
		status = weiri_area_check_done(&join->area, done != NULL, error);
	if (status == WEIR_OK)
		status = weiri_area_record(&join->area, &record, error);
	if (status != WEIR_OK)
		return status;
	return weiri_request_start(record, &join->area.waitable, &request_kind, &request, &join->area.allocator, handle,
	                           error);
}

/* -- closing ----------------------------------------------------------------------------------- */

/* `context` is the scope, or NULL. */
static void end_tuple(void *context, void *item)
{
	weiri_keyed_join_tuple_end(context, item);
}

/* Changes *next to the content after the close. Returns false if the close changes nothing. */
static bool close_state(struct content *next, enum weir_close_mode mode, const weir_error *cause)
{
	enum closed closed = mode == WEIR_CLOSE_CANCEL ? CANCELLED : DRAINS;

	if (next->closed >= closed && (next->cause != NULL || cause == NULL))
		return false;
	if (next->cause == NULL)
		next->cause = cause;
	if (next->closed >= closed)
		return true;
	next->closed = closed;
	if (closed == CANCELLED)
		next->incomplete = NULL;
	return true;
}

static enum weir_status close_with(struct weiri_scope *scope, weir_keyed_join *join, enum weir_close_mode mode,
                                   weir_error *cause)
{
	struct weiri_tree_edit edit;
	struct content next;
	struct weiri_area_state *state;
	enum weir_status status = WEIR_OK;

	do {
		state = weiri_area_read(scope, &join->area);
		next = *content_of(state);
		edit = weiri_tree_edit_begin(&join->area.allocator);
		if (!close_state(&next, mode, cause))
			break;
	} while (!weiri_area_publish(scope, &join->area, state, &next, &edit, &status));
	if (status == WEIR_OK && next.closed == CANCELLED && next.closed != content_of(state)->closed)
		weiri_tree_end(content_of(state)->incomplete, scope, end_tuple, scope); /* B2 */
	/* The content has the cause of another close, or none. So this copy is not needed. */
	if (cause != NULL && (status != WEIR_OK || next.cause != cause))
		weiri_release(&join->area.allocator, cause, sizeof(*cause), alignof(weir_error));
	return status;
}

enum weir_status weir_keyed_join_close(weir_keyed_join *join, enum weir_close_mode mode, const weir_error *cause)
{
	struct weiri_record *record = join != NULL ? weiri_record_get() : NULL;
	struct weiri_scope scope;
	weir_error *copy = NULL;
	enum weir_status status;

	if (join == NULL || (mode != WEIR_CLOSE_DRAIN && mode != WEIR_CLOSE_CANCEL))
		return WEIR_INVALID_ARGUMENT;
	if (record == NULL)
		return WEIR_RESOURCE_EXHAUSTED;
	if (weiri_is_cause(cause)) {
		copy = weiri_allocate(&join->area.allocator, sizeof(*copy), alignof(weir_error));
		if (copy == NULL)
			return WEIR_RESOURCE_EXHAUSTED;
		*copy = weiri_error_kept(cause);
	}
	scope = weiri_scope_enter(record);
	status = close_with(&scope, join, mode, copy);
	weiri_scope_leave(&scope);
	weiri_waitable_pump(record, &join->area.waitable);
	return status;
}

enum weir_status weir_keyed_join_size(const weir_keyed_join *join, size_t *ready, size_t *incomplete)
{
	struct weiri_record *record = join != NULL ? weiri_record_get() : NULL;
	struct weiri_scope scope;
	const struct content *now;

	if (record == NULL)
		return join == NULL ? WEIR_INVALID_ARGUMENT : WEIR_RESOURCE_EXHAUSTED;
	scope = weiri_scope_enter(record);
	now = content_of(weiri_area_read(&scope, &join->area));
	if (ready != NULL)
		*ready = weiri_tree_count(now->ready);
	if (incomplete != NULL)
		*incomplete = weiri_tree_count(now->incomplete);
	weiri_scope_leave(&scope);
	return WEIR_OK;
}

/* -- creating and destroying ------------------------------------------------------------------- */

size_t weir_keyed_join_component_count(const weir_keyed_join *join)
{
	return join != NULL ? join->area.count : 0;
}

enum weir_status weir_keyed_join_component(const weir_keyed_join *join, size_t i, struct weir_tensor_component *out)
{
	if (join == NULL || out == NULL)
		return WEIR_INVALID_ARGUMENT;
	if (i >= join->area.count)
		return WEIR_OUT_OF_RANGE;
	*out = weiri_component_public(&join->area.components[i]);
	return WEIR_OK;
}

enum weir_status weir_keyed_join_matches(const weir_keyed_join *join, const struct weir_tensor_component components[],
                                         size_t count, weir_error *error)
{
	char want[WEIR_SHAPE_TEXT_SIZE], have[WEIR_SHAPE_TEXT_SIZE];

	if (join == NULL || components == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "keyed join: %s is NULL",
		                  join == NULL ? "keyed join" : "components");
	if (count != join->area.count)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "keyed join \"%s\" must have %zu component%s, has %zu",
		                  join->area.name, count, WEIRI_S(count), join->area.count);
	for (size_t i = 0; i < count; i++) {
		const struct weiri_component *ours = &join->area.components[i];

		if (components[i].dtype != ours->dtype)
			return weiri_fail(error, WEIR_INVALID_ARGUMENT,
			                  "keyed join \"%s\": component %zu must have dtype %s, has %s", join->area.name, i,
			                  weir_dtype_name(components[i].dtype), weir_dtype_name(ours->dtype));
		if (components[i].shape == NULL || !weir_shape_equal(components[i].shape, &ours->shape))
			return weiri_fail(error, WEIR_INVALID_ARGUMENT,
			                  "keyed join \"%s\": component %zu must have shape %s, has %s", join->area.name, i,
			                  components[i].shape != NULL ? weir_shape_text(components[i].shape, want, sizeof(want))
			                                              : "unknown",
			                  weir_shape_text(&ours->shape, have, sizeof(have)));
	}
	return WEIR_OK;
}

static enum weir_status check_shapes(const struct weir_keyed_join_options *options, weir_error *error)
{
	char text[WEIR_SHAPE_TEXT_SIZE];

	for (size_t i = 0; i < options->component_count; i++) {
		const weir_shape *shape = options->components[i].shape;
		int64_t elements;

		if (shape == NULL || weir_shape_element_count(shape, &elements) != WEIR_OK || elements == 0)
			return weiri_fail(error, WEIR_INVALID_ARGUMENT,
			                  "keyed join: component %zu: the shape must be known and have elements, got %s", i,
			                  shape != NULL ? weir_shape_text(shape, text, sizeof(text)) : "none");
	}
	return WEIR_OK;
}

static void tell(const struct weiri_area *area, const void *content, char *text, size_t size)
{
	static const char *const closed[] = {[OPEN] = "open", [DRAINS] = "closed", [CANCELLED] = "closed and cancelled"};
	const struct content *now = content;

	(void)area;
	(void)snprintf(text, size, "%zu ready, %zu incomplete, %s", weiri_tree_count(now->ready),
	               weiri_tree_count(now->incomplete), closed[now->closed]);
}

static void empty(struct weiri_area *area, const void *content)
{
	const struct content *last = content;

	WEIR_ASSERT_WALK(assert_content((const weir_keyed_join *)(const void *)area, last));
	weiri_tree_end(last->incomplete, NULL, end_tuple, NULL);
	weiri_tree_end(last->ready, NULL, end_tuple, NULL);
	/* The cause is const since its close published it. Here is its end, so the cast is safe. */
	weiri_release(&area->allocator, (void *)(uintptr_t)last->cause, sizeof(weir_error), alignof(weir_error));
}

static const struct content nothing = {.next_index = INT64_MIN};
static const struct weiri_area_kind kind_of_area = {
	what, sizeof(weir_keyed_join), sizeof(struct content), &nothing, tell, empty};

enum weir_status weir_keyed_join_create(const struct weir_keyed_join_options *options, weir_keyed_join **out,
                                        weir_error *error)
{
	struct weir_keyed_join_options given;
	enum weir_status status;
	struct weiri_area *area;

	if (options == NULL || out == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: %s is NULL", what, options == NULL ? "options" : "out");
	status = weiri_options_read(what, options, &given, sizeof(given), error);
	if (status == WEIR_OK)
		status = weiri_options_flags(what, given.flags, 0, error);
	if (status == WEIR_OK)
		status = weiri_components_check(what, given.components, given.component_count, error);
	if (status == WEIR_OK)
		status = check_shapes(&given, error);
	if (status == WEIR_OK)
		status = weiri_area_create(
			&kind_of_area,
			&(struct weiri_area_plan){given.name, given.components, given.component_count, given.allocator}, &area,
			error);
	if (status == WEIR_OK)
		status = weiri_area_enter(area, error);
	if (status == WEIR_OK)
		*out = (weir_keyed_join *)(void *)area;
	return status;
}

enum weir_status weir_keyed_join_destroy(weir_keyed_join *join, weir_error *error)
{
	return join != NULL ? weiri_area_destroy(&join->area, error) : WEIR_OK;
}
