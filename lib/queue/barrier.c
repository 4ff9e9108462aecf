/*
 * barrier.c - barriers: tuples that are joined by key.
 *
 * Algorithm. An area (area.h) whose content is a version of the incomplete tuples by key and of the ready ones by index (tree.h,
 * barrier_part.h), the next index, and whether it is closed. An insert of many keys, a take and a close are each one change: a transaction
 * over any number of keys without locks.
 *
 * Invariant, beside those of area.h and barrier_part.h
 *   B4  a key is incomplete or its tuple ready, never both for one tuple; `have` of an incomplete one is not full
 * Linearization. A change: its CAS. A look, a refusal, and what is told to wait: the read of the state that it rests on.
 * Progress: lock-free, but for the allocator: an attempt is repeated when another thread's change was published. A take stacks its
 *   tuples before it publishes, so that want of memory loses none; takes that meet may stack in vain.
 * Memory: per component of a key a part (128 bytes and the key); a change makes about 2 log2 n nodes a key and retires as many. Tensors of
 *   tuples that were taken are released by a collection (docs/memory.md), and count in its budget.
 * Checked: tests/test_barrier.c, stress/model/check_barrier.c, weir-stress "barrier", "barrier_stopped", "history_barrier".
 */
#include "queue/barrier.h"

#include <stdalign.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "queue/area.h"
#include "queue/barrier_part.h"

enum closed { OPEN, DRAINS, CANCELLED };

/* What a change copies, changes and publishes. */
struct content {
	struct weiri_tree *incomplete, *ready;
	int64_t next_index;
	uint64_t next_order; /* among ready tuples of one index: as they became ready */
	enum closed closed;
	const weir_error *cause; /* the barrier's, until it is destroyed; or NULL */
};

struct weir_barrier {
	struct weiri_area area; /* first, and all */
};

struct weir_barrier_op {
	struct weiri_await await; /* first */
	weir_barrier *barrier;
	size_t n;
	uint32_t flags;
	struct weir_barrier_batch batch; /* of one that is complete */
	weir_barrier_done_fn *done;
	void *context;
};

static const char what[] = "barrier", take_many[] = "take_many";

_Static_assert((int)WEIR_TENSOR_QUEUE_MAX_COMPONENTS <= 64, "a bit each in `have`");

static uint64_t all_of(const weir_barrier *barrier)
{
	return UINT64_MAX >> (64 - barrier->area.count);
}

static const struct content *content_of(const struct weiri_area_state *state)
{
	return (const struct content *)(const void *)state->content;
}

/* -- inserting ---------------------------------------------------------------------------------------------------------------- */

static enum weir_status fail_closed(const weir_barrier *barrier, const struct content *state,
                                    const struct weiri_barrier_part *part, weir_error *error)
{
	const char *cause = state->cause != NULL ? state->cause->message : "no cause given";

	if (part == NULL)
		return weiri_fail(error, WEIR_CANCELLED, "barrier \"%s\" is closed: %.120s", barrier->area.name, cause);
	return weiri_fail(error, WEIR_CANCELLED, "barrier \"%s\" is closed, and key \"%.*s\" is new: %.120s",
	                  barrier->area.name, (int)(part->key_size < 64 ? part->key_size : 64), part->key, cause);
}

/* One part more, into `next`. */
static enum weir_status add_part(const weir_barrier *barrier, struct weiri_tree_edit *edit, struct content *next,
                                 struct weiri_barrier_part *part, int *is_new, weir_error *error)
{
	struct weiri_barrier_part *there = weiri_tree_find(next->incomplete, weiri_barrier_compare_keys, part);
	uint64_t bit = UINT64_C(1) << part->component;

	if (there == NULL && next->closed != OPEN)
		return fail_closed(barrier, next, part, error);
	if (there != NULL && (there->have & bit) != 0)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "barrier \"%s\": key \"%.*s\" has component %zu (%s) already",
		                  barrier->area.name, (int)(part->key_size < 64 ? part->key_size : 64), part->key,
		                  part->component, barrier->area.components[part->component].name);
	*is_new |= there == NULL;
	part->before = there;
	part->have = bit | (there != NULL ? there->have : 0);
	part->index = there != NULL ? there->index : next->next_index;
	if (part->have == all_of(barrier)) {
		part->order = next->next_order++;
		if (there != NULL)
			next->incomplete = weiri_tree_remove(edit, next->incomplete, weiri_barrier_compare_keys, part);
		next->ready = weiri_tree_insert(edit, next->ready, weiri_barrier_compare_order, part,
		                                weiri_barrier_seed(part) + part->order, part);
	} else if (there != NULL) {
		next->incomplete = weiri_tree_replace(edit, next->incomplete, weiri_barrier_compare_keys, part, part);
	} else {
		next->incomplete =
			weiri_tree_insert(edit, next->incomplete, weiri_barrier_compare_keys, part, weiri_barrier_seed(part), part);
	}
	return WEIR_OK;
}

/* All parts, or none. */
static enum weir_status insert(struct weiri_scope *scope, weir_barrier *barrier, struct weiri_barrier_part *parts,
                               weir_error *error)
{
	struct weiri_tree_edit edit;
	struct content next;
	struct weiri_area_state *state;
	enum weir_status status;
	int is_new;

	do {
		state = weiri_area_read(scope, &barrier->area);
		next = *content_of(state);
		edit = weiri_tree_edit_begin(&barrier->area.allocator);
		is_new = 0;
		status = next.closed == CANCELLED ? fail_closed(barrier, &next, NULL, error) : WEIR_OK;
		for (struct weiri_barrier_part *part = parts; status == WEIR_OK && !edit.failed && part != NULL;
		     part = part->next)
			status = add_part(barrier, &edit, &next, part, &is_new, error);
		if (status != WEIR_OK) {
			weiri_tree_discard(&edit);
			return status;
		}
		next.next_index += is_new;
	} while (parts != NULL && !weiri_area_publish(scope, &barrier->area, state, &next, &edit, &status));
	if (status == WEIR_RESOURCE_EXHAUSTED)
		return weiri_area_no_memory(&barrier->area, "insert", error);
	return status;
}

/* [n] + shape */
static int are_rows_of(const weir_shape *got, const weir_shape *shape, int64_t n)
{
	if (got->rank != shape->rank + 1 || got->dims[0] != n)
		return 0;
	for (uint32_t i = 0; i < shape->rank; i++) {
		if (got->dims[i + 1] != shape->dims[i])
			return 0;
	}
	return 1;
}

static enum weir_status check_insert(const weir_barrier *barrier, size_t component, const weir_tensor *keys,
                                     const weir_tensor *values, weir_error *error)
{
	char want[WEIR_SHAPE_TEXT_SIZE], have[WEIR_SHAPE_TEXT_SIZE];
	const struct weiri_component *of;

	if (barrier == NULL || keys == NULL || values == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "barrier: %s is NULL",
		                  barrier == NULL ? "barrier"
		                  : keys == NULL  ? "keys"
		                                  : "values");
	if (component >= barrier->area.count)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "barrier \"%s\" has %zu components, there is none of index %zu",
		                  barrier->area.name, barrier->area.count, component);
	of = &barrier->area.components[component];
	if (weir_tensor_dtype(keys) != WEIR_BYTES || weir_tensor_shape(keys)->rank != 1)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "barrier \"%s\": keys must be %s [n], got %s %s",
		                  barrier->area.name, weir_dtype_name(WEIR_BYTES), weir_dtype_name(weir_tensor_dtype(keys)),
		                  weir_shape_text(weir_tensor_shape(keys), have, sizeof(have)));
	if (weir_tensor_dtype(values) != of->dtype)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "barrier \"%s\": component %zu (%s): dtype must be %s, got %s",
		                  barrier->area.name, component, of->name, weir_dtype_name(of->dtype),
		                  weir_dtype_name(weir_tensor_dtype(values)));
	if (!are_rows_of(weir_tensor_shape(values), &of->shape, weir_tensor_elements(keys)))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT,
		                  "barrier \"%s\": component %zu (%s): shape must be [%lld] + %s, got %s", barrier->area.name,
		                  component, of->name, (long long)weir_tensor_elements(keys),
		                  weir_shape_text(&of->shape, want, sizeof(want)),
		                  weir_shape_text(weir_tensor_shape(values), have, sizeof(have)));
	return WEIR_OK;
}

/* *parts: one a key, the first first. */
static enum weir_status make_parts(const weir_barrier *barrier, size_t component, const weir_tensor *keys,
                                   weir_tensor *values, struct weiri_barrier_part **parts, weir_error *error)
{
	const weir_bytes *key = weir_tensor_data(keys);
	struct weiri_barrier_part *made = NULL;

	for (int64_t row = weir_tensor_elements(keys) - 1; row >= 0; row--) {
		struct weiri_barrier_part *part =
			weiri_barrier_part_create(&barrier->area.allocator, component, &key[row], values, row);

		if (part == NULL) {
			weiri_barrier_parts_free(made);
			return weiri_area_no_memory(&barrier->area, "insert", error);
		}
		part->next = made;
		made = part;
	}
	*parts = made;
	return WEIR_OK;
}

enum weir_status weir_barrier_insert_many(weir_barrier *barrier, size_t component, weir_tensor *keys,
                                          weir_tensor *values, weir_error *error)
{
	enum weir_status status = check_insert(barrier, component, keys, values, error);
	struct weiri_barrier_part *parts = NULL;
	struct weiri_record *record;
	struct weiri_scope scope;

	if (status == WEIR_OK)
		status = weiri_area_record(&barrier->area, &record, error);
	if (status == WEIR_OK)
		status = make_parts(barrier, component, keys, values, &parts, error);
	if (status != WEIR_OK)
		return status;
	scope = weiri_scope_enter(record);
	status = insert(&scope, barrier, parts, error);
	weiri_scope_leave(&scope);
	if (status != WEIR_OK)
		weiri_barrier_parts_free(parts);
	else
		weiri_await_pump(record, &barrier->area.awaits);
	return status;
}

/* -- taking ------------------------------------------------------------------------------------------------------------------- */

static void batch_release(struct weir_barrier_batch *batch)
{
	weir_tensor_release(batch->indices);
	weir_tensor_release(batch->keys);
	for (size_t i = 0; i < WEIR_TENSOR_QUEUE_MAX_COMPONENTS; i++)
		weir_tensor_release(batch->values[i]);
	*batch = (struct weir_barrier_batch){0};
}

/* Room to gather a batch of n > 0 in. */
struct gathered {
	struct weiri_barrier_part **tuples;
	weir_tensor **column;
	int64_t *indices;
	weir_bytes *keys;
};

enum { GATHERED = sizeof(struct weiri_barrier_part *) + sizeof(weir_tensor *) + sizeof(int64_t) + sizeof(weir_bytes) };

static enum weir_status stack_gathered(const weir_barrier *barrier, const struct gathered *gathered, size_t n,
                                       struct weir_barrier_batch *batch)
{
	const weir_shape shape = {.rank = 1, .dims = {(int64_t)n}};
	enum weir_status status =
		weir_tensor_copy_of(WEIR_I64, &shape, gathered->indices, &barrier->area.allocator, &batch->indices);

	if (status == WEIR_OK)
		status = weir_tensor_copy_of(WEIR_BYTES, &shape, gathered->keys, &barrier->area.allocator, &batch->keys);
	for (size_t i = 0; status == WEIR_OK && i < barrier->area.count; i++) {
		for (size_t row = 0; row < n; row++)
			gathered->column[row] = weiri_barrier_tuple_tensor(gathered->tuples[row], i);
		status = weir_tensor_stack(gathered->column, n, &barrier->area.allocator, &batch->values[i]);
	}
	return status;
}

/* Copies of the first n > 0 ready tuples, and into *next a version without them. */
static enum weir_status gather(weir_barrier *barrier, const struct gathered *gathered, size_t n,
                               struct weiri_tree_edit *edit, struct content *next, struct weir_barrier_batch *batch)
{
	for (size_t row = 0; row < n; row++) {
		struct weiri_barrier_part *tuple = weiri_tree_at(next->ready, 0);

		gathered->tuples[row] = tuple;
		gathered->indices[row] = tuple->index;
		gathered->keys[row] = (weir_bytes){tuple->key, tuple->key_size};
		next->ready = weiri_tree_remove(edit, next->ready, weiri_barrier_compare_order, tuple);
		if (edit->failed)
			return WEIR_RESOURCE_EXHAUSTED;
	}
	batch->count = (int64_t)n;
	return stack_gathered(barrier, gathered, n, batch);
}

/* A batch of none. */
static enum weir_status gather_none(weir_barrier *barrier, struct weir_barrier_batch *batch)
{
	const weir_shape none = {.rank = 1};
	enum weir_status status = weir_tensor_copy_of(WEIR_I64, &none, NULL, &barrier->area.allocator, &batch->indices);

	if (status == WEIR_OK)
		status = weir_tensor_copy_of(WEIR_BYTES, &none, NULL, &barrier->area.allocator, &batch->keys);
	for (size_t i = 0; status == WEIR_OK && i < barrier->area.count; i++) {
		weir_shape shape = {.rank = barrier->area.components[i].shape.rank + 1};

		memcpy(&shape.dims[1], barrier->area.components[i].shape.dims, sizeof(shape.dims[0]) * (shape.rank - 1));
		status = weir_tensor_copy_of(barrier->area.components[i].dtype, &shape, NULL, &barrier->area.allocator,
		                             &batch->values[i]);
	}
	return status;
}

static enum weir_status fail_short(const weir_barrier *barrier, const struct content *state, const weir_barrier_op *op,
                                   weir_error *error)
{
	return weiri_fail(
		error, WEIR_OUT_OF_RANGE,
		"barrier \"%s\" is closed and has insufficient elements (requested %zu, %zu ready, %zu incomplete): "
		"%.100s",
		barrier->area.name, op->n, weiri_tree_count(state->ready), weiri_tree_count(state->incomplete),
		state->cause != NULL ? state->cause->message : "no cause given");
}

/* How many tuples are to be taken from this state; or WEIR_WOULD_BLOCK, or WEIR_OUT_OF_RANGE. */
static enum weir_status decide(const struct content *state, const weir_barrier_op *op, size_t *n)
{
	size_t ready = weiri_tree_count(state->ready), available = ready;

	*n = op->n;
	if (state->closed != OPEN) {
		if ((op->flags & WEIR_BARRIER_ALLOW_SMALL_BATCH) == 0)
			available += weiri_tree_count(state->incomplete);
		else if (*n > ready)
			*n = ready;
		if (available < (*n > 1 ? *n : 1))
			return WEIR_OUT_OF_RANGE;
	}
	return ready < *n ? WEIR_WOULD_BLOCK : WEIR_OK;
}

/* With room for n: 1 when it is over, and *status says how. 0: another change was first. */
static int take_from(struct weiri_scope *scope, weir_barrier_op *op, struct weiri_area_state *state, size_t n,
                     const struct gathered *gathered, enum weir_status *status)
{
	weir_barrier *barrier = op->barrier;
	struct weiri_tree_edit edit = weiri_tree_edit_begin(&barrier->area.allocator);
	struct content next = *content_of(state);
	int over;

	*status = gather(barrier, gathered, n, &edit, &next, &op->batch);
	if (*status != WEIR_OK) {
		weiri_tree_discard(&edit);
		over = 1;
	} else {
		over = weiri_area_publish(scope, &barrier->area, state, &next, &edit, status);
	}
	for (size_t row = 0; over && *status == WEIR_OK && row < n; row++)
		weiri_barrier_tuple_end(scope, gathered->tuples[row]);
	if (!over || *status != WEIR_OK)
		batch_release(&op->batch);
	return over;
}

/* n > 0 */
static int take_some(struct weiri_scope *scope, weir_barrier_op *op, struct weiri_area_state *state, size_t n,
                     enum weir_status *status)
{
	size_t size = n * GATHERED; /* that many are ready, so it is no overflow */
	char *room = weiri_allocate(&op->barrier->area.allocator, size, alignof(max_align_t));
	struct gathered gathered;
	int over;

	if (room == NULL) {
		*status = WEIR_RESOURCE_EXHAUSTED;
		return 1;
	}
	gathered.keys = (weir_bytes *)(void *)room;
	gathered.indices = (int64_t *)(void *)(gathered.keys + n);
	gathered.tuples = (struct weiri_barrier_part **)(void *)(gathered.indices + n);
	gathered.column = (weir_tensor **)(void *)(gathered.tuples + n);
	over = take_from(scope, op, state, n, &gathered, status);
	weiri_release(&op->barrier->area.allocator, room, size, alignof(max_align_t));
	return over;
}

static enum weir_status attempt(struct weiri_scope *scope, struct weiri_await *await, weir_error *error)
{
	weir_barrier_op *op = (weir_barrier_op *)(void *)await;
	enum weir_status status;
	struct weiri_area_state *state;
	size_t n;

	do {
		state = weiri_area_read(scope, &op->barrier->area);
		status = decide(content_of(state), op, &n);
		if (status == WEIR_OUT_OF_RANGE)
			return fail_short(op->barrier, content_of(state), op, error);
		if (status != WEIR_OK)
			return status;
		if (n == 0) {
			status = gather_none(op->barrier, &op->batch);
			break;
		}
	} while (!take_some(scope, op, state, n, &status));
	if (status == WEIR_OK)
		return status;
	batch_release(&op->batch);
	return weiri_fail(error, status, "barrier \"%s\": no memory to take %zu", op->barrier->area.name, n);
}

/* -- operations --------------------------------------------------------------------------------------------------------------- */

static void op_done(struct weiri_await *await)
{
	weir_barrier_op *op = (weir_barrier_op *)(void *)await;

	op->done(op->context, await->status, await->status != WEIR_OK ? &await->error : NULL,
	         await->status == WEIR_OK ? &op->batch : NULL);
}

static enum weir_status check_take(const weir_barrier *barrier, int64_t n, uint32_t flags, weir_error *error)
{
	if (barrier == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "barrier: NULL");
	if (n < 0)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "barrier \"%s\": requested %lld < 0 elements",
		                  barrier->area.name, (long long)n);
	if ((flags & ~(uint32_t)WEIR_BARRIER_ALLOW_SMALL_BATCH) != 0)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "barrier \"%s\": unknown flags %#x", barrier->area.name, flags);
	return WEIR_OK;
}

/* NULL: no memory. */
static weir_barrier_op *op_create(weir_barrier *barrier, int64_t n, uint32_t flags, weir_barrier_done_fn *done,
                                  void *context, weir_error *error)
{
	struct weiri_area *area = &barrier->area;
	weir_barrier_op *op = (weir_barrier_op *)(void *)weiri_await_create(
		&area->awaits, sizeof(*op), take_many, attempt, done != NULL ? op_done : NULL, &area->allocator, error);

	if (op == NULL)
		return NULL;
	op->barrier = barrier;
	op->n = (size_t)n;
	op->flags = flags;
	op->done = done;
	op->context = context;
	return op;
}

enum weir_status weir_barrier_take_many(weir_barrier *barrier, int64_t n, uint32_t flags, uint64_t deadline_ns,
                                        weir_cancel *cancel, struct weir_barrier_batch *batch, weir_error *error)
{
	enum weir_status status = check_take(barrier, n, flags, error);
	struct weiri_record *record;
	weir_barrier_op *op;

	if (status == WEIR_OK && batch == NULL)
		status = weiri_fail(error, WEIR_INVALID_ARGUMENT, "barrier \"%s\": batch is NULL", barrier->area.name);
	if (status == WEIR_OK)
		status = weiri_await_check_token(&barrier->area.awaits, take_many, cancel, error);
	if (status == WEIR_OK)
		status = weiri_area_record(&barrier->area, &record, error);
	if (status != WEIR_OK)
		return status;
	op = op_create(barrier, n, flags, NULL, NULL, error);
	if (op == NULL)
		return WEIR_RESOURCE_EXHAUSTED;
	status = weiri_await_run(record, &op->await, deadline_ns, cancel, error);
	if (status == WEIR_OK)
		*batch = op->batch;
	weiri_await_release(&op->await);
	return status;
}

enum weir_status weir_barrier_start_take_many(weir_barrier *barrier, int64_t n, uint32_t flags,
                                              weir_barrier_done_fn *done, void *context, weir_barrier_op **out,
                                              weir_error *error)
{
	enum weir_status status = check_take(barrier, n, flags, error);
	struct weiri_record *record;
	weir_barrier_op *op;

	if (status == WEIR_OK)
		status = weiri_area_check_done(&barrier->area, done != NULL, error);
	if (status == WEIR_OK)
		status = weiri_area_record(&barrier->area, &record, error);
	if (status != WEIR_OK)
		return status;
	op = op_create(barrier, n, flags, done, context, error);
	if (op == NULL)
		return WEIR_RESOURCE_EXHAUSTED;
	if (out != NULL)
		*out = op;
	weiri_await_begin(record, &op->await, out != NULL);
	return WEIR_OK;
}

void weir_barrier_op_cancel(weir_barrier_op *op)
{
	if (op != NULL)
		weiri_await_cancel(&op->await);
}

void weir_barrier_op_release(weir_barrier_op *op)
{
	if (op != NULL)
		weiri_await_release(&op->await);
}

/* -- closing ------------------------------------------------------------------------------------------------------------------ */

/* `context`: the scope, or NULL. */
static void end_tuple(void *context, void *item)
{
	weiri_barrier_tuple_end(context, item);
}

/* Makes *next the content after the close; 0: nothing changes. */
static int close_state(struct content *next, enum weir_close_mode mode, const weir_error *cause)
{
	enum closed closed = mode == WEIR_CLOSE_CANCEL ? CANCELLED : DRAINS;

	if (next->closed >= closed)
		return 0;
	if (next->closed == OPEN)
		next->cause = cause;
	next->closed = closed;
	if (closed == CANCELLED)
		next->incomplete = NULL;
	return 1;
}

static enum weir_status close_with(struct weiri_scope *scope, weir_barrier *barrier, enum weir_close_mode mode,
                                   weir_error *cause)
{
	struct weiri_tree_edit edit;
	struct content next;
	struct weiri_area_state *state;
	enum weir_status status = WEIR_OK;

	do {
		state = weiri_area_read(scope, &barrier->area);
		next = *content_of(state);
		edit = weiri_tree_edit_begin(&barrier->area.allocator);
		if (!close_state(&next, mode, cause))
			break;
	} while (!weiri_area_publish(scope, &barrier->area, state, &next, &edit, &status));
	if (status == WEIR_OK && next.closed == CANCELLED && next.closed != content_of(state)->closed)
		weiri_tree_end(content_of(state)->incomplete, scope, end_tuple, scope); /* B2 */
	/* Of another close, or of none. */
	if (cause != NULL && (status != WEIR_OK || next.closed == content_of(state)->closed || next.cause != cause))
		weiri_release(&barrier->area.allocator, cause, sizeof(*cause), alignof(weir_error));
	return status;
}

enum weir_status weir_barrier_close(weir_barrier *barrier, enum weir_close_mode mode, const weir_error *cause)
{
	struct weiri_record *record = barrier != NULL ? weiri_record_get() : NULL;
	struct weiri_scope scope;
	weir_error *copy = NULL;
	enum weir_status status;

	if (barrier == NULL || (mode != WEIR_CLOSE_DRAIN && mode != WEIR_CLOSE_CANCEL))
		return WEIR_INVALID_ARGUMENT;
	if (record == NULL)
		return WEIR_RESOURCE_EXHAUSTED;
	if (cause != NULL) {
		copy = weiri_allocate(&barrier->area.allocator, sizeof(*copy), alignof(weir_error));
		if (copy == NULL)
			return WEIR_RESOURCE_EXHAUSTED;
		*copy = weiri_error_kept(cause);
	}
	scope = weiri_scope_enter(record);
	status = close_with(&scope, barrier, mode, copy);
	weiri_scope_leave(&scope);
	weiri_await_pump(record, &barrier->area.awaits);
	return status;
}

enum weir_status weir_barrier_look(const weir_barrier *barrier, size_t *ready, size_t *incomplete)
{
	struct weiri_record *record = barrier != NULL ? weiri_record_get() : NULL;
	struct weiri_scope scope;
	const struct content *now;

	if (record == NULL)
		return barrier == NULL ? WEIR_INVALID_ARGUMENT : WEIR_RESOURCE_EXHAUSTED;
	scope = weiri_scope_enter(record);
	now = content_of(weiri_area_read(&scope, &barrier->area));
	if (ready != NULL)
		*ready = weiri_tree_count(now->ready);
	if (incomplete != NULL)
		*incomplete = weiri_tree_count(now->incomplete);
	weiri_scope_leave(&scope);
	return WEIR_OK;
}

/* -- creating and destroying -------------------------------------------------------------------------------------------------- */

size_t weiri_barrier_waiting(const weir_barrier *barrier)
{
	return weiri_area_waiting(&barrier->area);
}

size_t weir_barrier_component_count(const weir_barrier *barrier)
{
	return barrier != NULL ? barrier->area.count : 0;
}

enum weir_status weir_barrier_component(const weir_barrier *barrier, size_t i, struct weir_tensor_component *out)
{
	if (barrier == NULL || out == NULL)
		return WEIR_INVALID_ARGUMENT;
	if (i >= barrier->area.count)
		return WEIR_OUT_OF_RANGE;
	*out = weiri_component_public(&barrier->area.components[i]);
	return WEIR_OK;
}

enum weir_status weir_barrier_matches(const weir_barrier *barrier, const struct weir_tensor_component components[],
                                      size_t count, weir_error *error)
{
	char want[WEIR_SHAPE_TEXT_SIZE], have[WEIR_SHAPE_TEXT_SIZE];

	if (barrier == NULL || components == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "barrier: %s is NULL",
		                  barrier == NULL ? "barrier" : "components");
	if (count != barrier->area.count)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "barrier \"%s\" must have %zu components, has %zu",
		                  barrier->area.name, count, barrier->area.count);
	for (size_t i = 0; i < count; i++) {
		const struct weiri_component *ours = &barrier->area.components[i];

		if (components[i].dtype != ours->dtype)
			return weiri_fail(error, WEIR_INVALID_ARGUMENT, "barrier \"%s\": component %zu must have dtype %s, has %s",
			                  barrier->area.name, i, weir_dtype_name(components[i].dtype),
			                  weir_dtype_name(ours->dtype));
		if (components[i].shape == NULL || !weir_shape_equal(components[i].shape, &ours->shape))
			return weiri_fail(error, WEIR_INVALID_ARGUMENT, "barrier \"%s\": component %zu must have shape %s, has %s",
			                  barrier->area.name, i,
			                  components[i].shape != NULL ? weir_shape_text(components[i].shape, want, sizeof(want))
			                                              : "unknown",
			                  weir_shape_text(&ours->shape, have, sizeof(have)));
	}
	return WEIR_OK;
}

static enum weir_status check_shapes(const struct weir_barrier_options *options, weir_error *error)
{
	char text[WEIR_SHAPE_TEXT_SIZE];

	for (size_t i = 0; i < options->component_count; i++) {
		const weir_shape *shape = options->components[i].shape;
		int64_t elements;

		if (shape == NULL || weir_shape_elements(shape, &elements) != WEIR_OK || elements == 0)
			return weiri_fail(error, WEIR_INVALID_ARGUMENT,
			                  "barrier: component %zu: the shape must be known and have elements, got %s", i,
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

	weiri_tree_end(last->incomplete, NULL, end_tuple, NULL);
	weiri_tree_end(last->ready, NULL, end_tuple, NULL);
	/* Written once, by the close that published it. */
	weiri_release(&area->allocator, (void *)(uintptr_t)last->cause, sizeof(weir_error), alignof(weir_error));
}

static const struct content nothing = {.next_index = INT64_MIN};
static const struct weiri_area_kind kind_of_area = {what, sizeof(weir_barrier), sizeof(struct content), &nothing, tell,
                                                    empty};

enum weir_status weir_barrier_create(const struct weir_barrier_options *options, weir_barrier **out, weir_error *error)
{
	enum weir_status status;
	struct weiri_area *area;

	if (options == NULL || out == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: %s is NULL", what, options == NULL ? "options" : "out");
	status = weiri_area_check_options(what, options->struct_size, sizeof(*options), options->flags, error);
	if (status == WEIR_OK)
		status = weiri_components_check(what, options->components, options->component_count, error);
	if (status == WEIR_OK)
		status = check_shapes(options, error);
	if (status == WEIR_OK)
		status = weiri_area_create(
			&kind_of_area,
			&(struct weiri_area_plan){options->name, options->components, options->component_count, options->allocator},
			&area, error);
	if (status == WEIR_OK)
		status = weiri_area_enter(area, error);
	if (status == WEIR_OK)
		*out = (weir_barrier *)(void *)area;
	return status;
}

enum weir_status weir_barrier_destroy(weir_barrier *barrier, weir_error *error)
{
	return barrier != NULL ? weiri_area_destroy(&barrier->area, error) : WEIR_OK;
}
