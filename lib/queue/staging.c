/*
 * staging.c - staging areas.
 *
 * Algorithm. The area is one atomic pointer to its state: a version of a sorted collection of tuples by their number (tree.h), and the
 * sum of their bytes. A change is made beside it and published by one CAS, so that count, bytes and order are always of one instant; and
 * waiting is attempts of such changes (await.h). The reference does this under a mutex.
 *
 * Invariants
 *   G1  a published state never changes; the pointer never returns to a state while a section may know it
 *   G2  a tuple in the published version is referenced once for that; who publishes a version without it takes the reference over
 *   G3  a tuple's references never rise from 0: a peek that meets 0 has read a state that was replaced since
 * Pairs
 *   P1  publish(state) -> read: the state, the tree, the tuples
 *   P2  release(references) -> the end of a tuple: what its users did with its tensors
 *   S   `state` is read and replaced seq_cst, as reclaim/section.h asks
 * Linearization. A change: its CAS. A look, and what is told to wait: the read of `state`. A peek: the read of the last state that it read.
 * Progress: lock-free, but for the allocator: an attempt is repeated when another thread's change was published.
 * Memory: per tuple a header and its node; a change makes about 2 log2 n nodes of 152 bytes and retires as many.
 * Checked: tests/test_staging.c, stress/model/check_staging.c, weir-stress "staging", "history_staging".
 */
#include "queue/staging.h"

#include <stdalign.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "queue/await.h"
#include "queue/components.h"
#include "queue/tree.h"

struct state {
	struct weiri_retired retired; /* first */
	struct weiri_tree *tuples;
	size_t bytes;
	uint64_t next; /* number of the next tuple */
	weir_allocator allocator;
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
	_Alignas(WEIRI_APART) _Atomic(struct weiri_retired *) state;
	_Alignas(WEIRI_APART) struct weiri_awaits awaits;
	/* Constant. */
	size_t capacity, memory_limit;
	weir_allocator allocator;
	char *name;
	size_t memory_size, count;
	struct weiri_component components[]; /* and behind them the name */
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
	weir_allocator allocator;
};

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
static struct tuple *tuple_create(const weir_staging *staging, weir_tensor *const tensors[])
{
	struct tuple *tuple = weiri_allocate(&staging->allocator, tuple_size(staging->count), alignof(struct tuple));

	if (tuple == NULL)
		return NULL;
	weiri_retired_init(&tuple->retired, tuple_size(staging->count), tuple_reclaim);
	weiri_store_relaxed(&tuple->references, (size_t)1); /* [relaxed] not shared yet */
	tuple->bytes = 0;
	tuple->allocator = staging->allocator;
	tuple->count = staging->count;
	for (size_t i = 0; i < staging->count; i++) {
		tuple->tensors[i] = weir_tensor_retain(tensors[i]);
		tuple->bytes += weir_tensor_nbytes(tensors[i]);
	}
	return tuple;
}

/* G3 */
static int tuple_try_retain(struct tuple *tuple)
{
	/* [relaxed] a count that rises orders nothing; the tuple came by P1. */
	size_t references = weiri_load_relaxed(&tuple->references);

	while (references != 0) {
		if (weiri_cas_relaxed(&tuple->references, &references, references + 1))
			return 1;
	}
	return 0;
}

/* Outside of sections: the header waits for those of others. */
static void tuple_release(struct weiri_record *record, struct tuple *tuple)
{
	/* [P2 acq_rel] */
	if (weiri_fetch_sub_acq_rel(&tuple->references, (size_t)1) != 1)
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
static struct state *state_create(const weir_staging *staging, struct weiri_tree *tuples, size_t bytes, uint64_t next)
{
	struct state *state = weiri_allocate(&staging->allocator, sizeof(*state), alignof(struct state));

	if (state == NULL)
		return NULL;
	weiri_retired_init(&state->retired, sizeof(*state), state_reclaim);
	state->tuples = tuples;
	state->bytes = bytes;
	state->next = next;
	state->allocator = staging->allocator;
	return state;
}

static struct state *read_state(struct weiri_scope *scope, const weir_staging *staging)
{
	struct weiri_retired *state;

	weiri_section_read(scope->record, &staging->state, &state); /* [S, P1] */
	return state_of(state);
}

static int publish(struct weiri_scope *scope, weir_staging *staging, struct state *state, struct state *next,
                   struct weiri_tree_edit *edit, enum weir_status *status)
{
	/* [S, P1] */
	return weiri_tree_publish(edit, scope, &staging->state, &state->retired, next != NULL ? &next->retired : NULL,
	                          status);
}

static int has_room(const weir_staging *staging, const struct state *state, const struct tuple *tuple)
{
	if (staging->capacity != 0 && weiri_tree_count(state->tuples) >= staging->capacity)
		return 0;
	return staging->memory_limit == 0 || tuple->bytes <= staging->memory_limit - state->bytes;
}

static enum weir_status put(struct weiri_scope *scope, weir_staging_op *op)
{
	weir_staging *staging = op->staging;
	struct tuple *tuple = op->tuple;
	struct weiri_tree_edit edit;
	struct weiri_tree *tuples;
	struct state *state;
	enum weir_status status;

	do {
		state = read_state(scope, staging);
		if (!has_room(staging, state, tuple))
			return WEIR_WOULD_BLOCK;
		tuple->number = state->next;
		edit = weiri_tree_edit_begin(&staging->allocator);
		tuples = weiri_tree_insert(&edit, state->tuples, compare_numbers, &tuple->number, tuple->number, tuple);
	} while (!publish(scope, staging, state,
	                  state_create(staging, tuples, state->bytes + tuple->bytes, state->next + 1), &edit, &status));
	if (status == WEIR_OK)
		op->tuple = NULL; /* G2: the area's now */
	return status;
}

static enum weir_status get(struct weiri_scope *scope, weir_staging_op *op)
{
	weir_staging *staging = op->staging;
	struct weiri_tree_edit edit;
	struct weiri_tree *tuples;
	struct tuple *oldest;
	struct state *state;
	enum weir_status status;

	do {
		state = read_state(scope, staging);
		oldest = weiri_tree_at(state->tuples, 0);
		if (oldest == NULL)
			return WEIR_WOULD_BLOCK;
		edit = weiri_tree_edit_begin(&staging->allocator);
		tuples = weiri_tree_remove(&edit, state->tuples, compare_numbers, &oldest->number);
	} while (!publish(scope, staging, state, state_create(staging, tuples, state->bytes - oldest->bytes, state->next),
	                  &edit, &status));
	if (status == WEIR_OK)
		op->tuple = oldest; /* G2: ours now */
	return status;
}

static enum weir_status peek(struct weiri_scope *scope, weir_staging_op *op)
{
	struct tuple *tuple;

	do {
		tuple = weiri_tree_at(read_state(scope, op->staging)->tuples, op->index);
		if (tuple == NULL)
			return WEIR_WOULD_BLOCK;
	} while (!tuple_try_retain(tuple));
	op->tuple = tuple;
	return WEIR_OK;
}

static enum weir_status attempt(struct weiri_scope *scope, struct weiri_await *await, weir_error *error)
{
	static enum weir_status (*const attempts[])(struct weiri_scope *, weir_staging_op *) = {put, get, peek};
	weir_staging_op *op = (weir_staging_op *)(void *)await;
	enum weir_status status = attempts[op->kind](scope, op);

	if (status == WEIR_RESOURCE_EXHAUSTED)
		return weiri_fail(error, status, "staging area \"%s\": no memory to %s", op->staging->name, verbs[op->kind]);
	return status;
}

/* -- operations --------------------------------------------------------------------------------------------------------------- */

static void op_end(struct weiri_await *await)
{
	weir_staging_op *op = (weir_staging_op *)(void *)await;
	weir_allocator allocator = op->allocator;

	weiri_release(&allocator, op, sizeof(*op), alignof(weir_staging_op));
}

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
                                  weir_staging_done_fn *done, void *context)
{
	weir_staging_op *op = weiri_allocate(&staging->allocator, sizeof(*op), alignof(weir_staging_op));

	if (op == NULL)
		return NULL;
	weiri_await_init(&op->await, &staging->awaits, verbs[kind], attempt, done != NULL ? op_done : NULL, op_end);
	op->staging = staging;
	op->kind = kind;
	op->index = index;
	op->tuple = tuple;
	op->done = done;
	op->context = context;
	op->allocator = staging->allocator;
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
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "staging area: NULL");
	if (tuple == NULL || count != staging->count)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "staging area \"%s\": a tuple has %zu components, got %zu",
		                  staging->name, staging->count, tuple != NULL ? count : 0);
	*record = weiri_record_get();
	if (*record == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "staging area \"%s\": no memory for this thread's record",
		                  staging->name);
	return WEIR_OK;
}

/* The tuple to put. */
static enum weir_status make_tuple(const weir_staging *staging, weir_tensor *const tensors[],
                                   struct weiri_record *record, struct tuple **out, weir_error *error)
{
	enum weir_status status = WEIR_OK;
	struct tuple *tuple;

	for (size_t i = 0; status == WEIR_OK && i < staging->count; i++)
		status = weiri_component_check(&staging->components[i], i, tensors[i], "staging area", staging->name, error);
	if (status != WEIR_OK)
		return status;
	tuple = tuple_create(staging, tensors);
	if (tuple == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "staging area \"%s\": no memory to put", staging->name);
	if (staging->memory_limit != 0 && tuple->bytes > staging->memory_limit) {
		status = weiri_fail(error, WEIR_RESOURCE_EXHAUSTED,
		                    "staging area \"%s\": a tuple of %zu bytes, the limit of all is %zu", staging->name,
		                    tuple->bytes, staging->memory_limit);
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
		weiri_await_pump(record, &staging->awaits);
	return status;
}

/* To its end; *tuple is what is put, or came out. */
static enum weir_status run(struct weiri_record *record, weir_staging *staging, enum kind kind, size_t index,
                            struct tuple **tuple, uint64_t deadline_ns, weir_cancel *cancel, weir_error *error)
{
	weir_staging_op *op;
	enum weir_status status = weiri_await_check_token(&staging->awaits, verbs[kind], cancel, error);

	if (status == WEIR_OK)
		status = run_at_once(record, staging, kind, index, tuple, error);
	if (status != WEIR_WOULD_BLOCK)
		return status;
	if (deadline_ns == 0)
		return weiri_fail(error, WEIR_DEADLINE_EXCEEDED, "staging area \"%s\": %s at once", staging->name,
		                  kind == PUT ? "no room" : "no tuple");
	op = op_create(staging, kind, index, *tuple, NULL, NULL);
	if (op == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "staging area \"%s\": no memory to %s", staging->name,
		                  verbs[kind]);
	op->await.token = cancel;
	weiri_await_start(record, &op->await);
	weiri_await_wait(record, &op->await, deadline_ns, cancel);
	status = op->await.status;
	*tuple = op->tuple;
	if (status != WEIR_OK)
		(void)weiri_fail(error, status, "%s", op->await.error.message);
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
	weir_staging_op *op;

	if (done == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "staging area \"%s\": done is NULL", staging->name);
	op = op_create(staging, kind, index, tuple, done, context);
	if (op == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "staging area \"%s\": no memory to %s", staging->name,
		                  verbs[kind]);
	if (out != NULL)
		*out = op;
	else
		weiri_await_release(&op->await); /* the completion's reference is left */
	weiri_await_start(record, &op->await);
	return WEIR_OK;
}

enum weir_status weir_staging_start_put(weir_staging *staging, weir_tensor *const tuple[], size_t count,
                                        weir_staging_done_fn *done, void *context, weir_staging_op **op,
                                        weir_error *error)
{
	struct weiri_record *record;
	enum weir_status status = check(staging, tuple, count, &record, error);
	struct tuple *made;

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
	enum weir_status status = check(staging, &record, staging != NULL ? staging->count : 0, &record, error);

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
	struct tuple *gone = NULL;
	struct weiri_tree_edit edit;
	struct weiri_scope scope;
	struct state *state;
	enum weir_status status;

	if (record == NULL)
		return staging == NULL ? WEIR_INVALID_ARGUMENT : WEIR_RESOURCE_EXHAUSTED;
	scope = weiri_scope_enter(record);
	do {
		state = read_state(&scope, staging);
		edit = weiri_tree_edit_begin(&staging->allocator);
	} while (!publish(&scope, staging, state, state_create(staging, NULL, 0, state->next), &edit, &status));
	if (status == WEIR_OK)
		weiri_tree_end(state->tuples, &scope, chain, &gone); /* G2 */
	weiri_scope_leave(&scope);
	while (gone != NULL) {
		struct tuple *tuple = gone;

		gone = tuple->next;
		tuple_release(record, tuple);
	}
	weiri_await_pump(record, &staging->awaits);
	return status;
}

enum weir_status weir_staging_look(const weir_staging *staging, size_t *size, size_t *bytes)
{
	struct weiri_record *record = staging != NULL ? weiri_record_get() : NULL;
	struct weiri_scope scope;
	const struct state *state;

	if (record == NULL)
		return staging == NULL ? WEIR_INVALID_ARGUMENT : WEIR_RESOURCE_EXHAUSTED;
	scope = weiri_scope_enter(record);
	state = read_state(&scope, staging);
	if (size != NULL)
		*size = weiri_tree_count(state->tuples);
	if (bytes != NULL)
		*bytes = state->bytes;
	weiri_scope_leave(&scope);
	return WEIR_OK;
}

size_t weiri_staging_waiting(const weir_staging *staging)
{
	return weiri_load_relaxed(&staging->awaits.waiting); /* [relaxed] a count */
}

enum weir_status weir_staging_place(const weir_staging *staging, const char *component, size_t *place)
{
	if (staging == NULL || component == NULL || place == NULL)
		return WEIR_INVALID_ARGUMENT;
	return weiri_components_place(staging->components, staging->count, component, place);
}

/* -- creating and destroying -------------------------------------------------------------------------------------------------- */

static enum weir_status check_options(const struct weir_staging_options *options, weir_staging **out, weir_error *error)
{
	struct weir_tensor_queue_options of_queue = {.struct_size = sizeof(of_queue)};

	if (options == NULL || out == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "staging area: %s is NULL",
		                  options == NULL ? "options" : "out");
	if (options->struct_size != sizeof(*options) || options->flags != 0)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "staging area: struct_size must be %zu and flags 0",
		                  sizeof(*options));
	of_queue.components = options->components;
	of_queue.component_count = options->component_count;
	return weiri_components_check(&of_queue, error);
}

static void staging_free(weir_staging *staging)
{
	weir_allocator allocator = staging->allocator;

	weiri_release(&allocator, staging, staging->memory_size, WEIRI_APART);
}

enum weir_status weir_staging_create(const struct weir_staging_options *options, weir_staging **out, weir_error *error)
{
	enum weir_status status = check_options(options, out, error);
	weir_allocator allocator;
	weir_staging *staging;
	struct state *state;
	const char *name;
	size_t size;

	if (status != WEIR_OK)
		return status;
	name = options->name != NULL ? options->name : "staging area";
	allocator = weiri_allocator_or_default(options->allocator);
	size = sizeof(*staging) + options->component_count * sizeof(struct weiri_component) + strlen(name) + 1;
	staging = weiri_record_get() != NULL ? weiri_allocate_zeroed(&allocator, size, WEIRI_APART) : NULL;
	if (staging == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "staging area \"%s\": no memory", name);
	staging->capacity = options->capacity;
	staging->memory_limit = options->memory_limit;
	staging->allocator = allocator;
	staging->memory_size = size;
	staging->count = options->component_count;
	for (size_t i = 0; i < staging->count; i++)
		weiri_component_fill(&staging->components[i], &options->components[i], i);
	staging->name = (char *)&staging->components[staging->count];
	memcpy(staging->name, name, strlen(name) + 1);
	weiri_awaits_init(&staging->awaits, "staging area", staging->name);
	state = state_create(staging, NULL, 0, 0);
	if (state == NULL) {
		staging_free(staging);
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "staging area \"%s\": no memory", name);
	}
	weiri_store_relaxed(&staging->state, &state->retired); /* [relaxed] not shared yet */
	*out = staging;
	return WEIR_OK;
}

static void end_tuple(void *context, void *item)
{
	struct tuple *tuple = item;

	(void)context;
	for (size_t i = 0; i < tuple->count; i++)
		weir_tensor_release(tuple->tensors[i]);
	tuple_reclaim(&tuple->retired);
}

enum weir_status weir_staging_destroy(weir_staging *staging, weir_error *error)
{
	enum weir_status status;
	struct state *state;

	if (staging == NULL)
		return WEIR_OK;
	status = weiri_awaits_check_idle(&staging->awaits, error);
	if (status != WEIR_OK)
		return status;
	state =
		state_of(weiri_load_relaxed(&staging->state)); /* [relaxed] the caller has ordered all calls before this one */
	weiri_tree_end(state->tuples, NULL, end_tuple, NULL);
	state_reclaim(&state->retired);
	staging_free(staging);
	return WEIR_OK;
}
