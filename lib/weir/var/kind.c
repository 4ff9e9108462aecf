/*
 * kind.c - see kind.h.
 */
#include "var/kind.h"

#include <stdio.h>

#include "base/assert.h"
#include "base/error.h"
#include "tensor/object.h"
#include "var/box.h"
#include "var/hold.h"
#include "var/tensor_value.h"

struct held_pointer {
	void *pointer;
	union { /* NULL: none, or disowned */
		weir_pointer_release_fn *release;
		weiri_table_end_fn *end;
	};
	void *context;
	size_t bytes; /* in the budget, besides the block */
};

static struct weiri_box *box_of(struct weiri_value *value)
{
	return WEIRI_CONTAINER_OF(value, struct weiri_box, value);
}

static struct held_pointer *pointer_in(struct weiri_box *box)
{
	return (struct held_pointer *)(void *)(box + 1);
}

/* -- the ends of values in boxes --------------------------------------------------------------- */

WEIRI_UNSEEN void weiri_box_assert_has_reference(const struct weiri_box *box)
{
	WEIR_ASSERT2(B1, weiri_peek(&box->value.references) >= 1);
}

static void end_bytes(struct weiri_value *value)
{
	weiri_box_free(weiri_record_mine, box_of(value));
}

static void end_pointer(struct weiri_value *value)
{
	struct weiri_box *box = box_of(value);
	struct held_pointer *held = pointer_in(box);

	WEIR_ASSERT2(B2, held->pointer != NULL);
	if (held->release != NULL)
		held->release(held->context, held->pointer);
	held->pointer = NULL;
	weiri_box_free(weiri_record_mine, box);
}

static void end_root(struct weiri_value *value)
{
	struct weiri_box *box = box_of(value);
	struct held_pointer *held = pointer_in(box);
	/*
	 * [relaxed] The thread that retired the version had found its stamp (B2). P2 of collect.c and the
	 * count of references order this load after that.
	 */
	uint64_t stamp = weiri_load_relaxed(&box->version.stamp);

	WEIR_ASSERT2(B2, held->pointer != NULL);
	if (held->end != NULL)
		held->end(held->context, held->pointer, weiri_stamp_is_committed(stamp));
	held->pointer = NULL;
	weiri_box_free(weiri_record_mine, box);
}

/* The last reference was dropped in a signal handler; a collection runs this. */
static void end_later(struct weiri_retired *retired)
{
	struct weiri_box *box = (struct weiri_box *)(void *)WEIRI_CONTAINER_OF(retired, struct weiri_version, retired);

	box->value.kind->end(&box->value);
}

/* The version was reclaimed before (B1), so its part for retiring is free. */
static void retire_box(struct weiri_record *record, struct weiri_value *value)
{
	struct weiri_retired *retired = &box_of(value)->version.retired;

	retired->reclaim = end_later;
	retired->bytes = value->kind->footprint(value);
	weiri_retire_unreachable(record, retired);
}

/* A handle or mark keeps the whole block. */
static size_t bytes_footprint(const struct weiri_value *value)
{
	return weiri_box_size(
		(const struct weiri_box *)(const void *)((const char *)value - offsetof(struct weiri_box, value)));
}

static size_t pointer_footprint(const struct weiri_value *value)
{
	const struct weiri_box *box =
		(const struct weiri_box *)(const void *)((const char *)value - offsetof(struct weiri_box, value));

	return weiri_box_size(box) + ((const struct held_pointer *)(const void *)(box + 1))->bytes;
}

const struct weiri_value_kind weiri_bytes_kind = {end_bytes, retire_box, bytes_footprint};
static const struct weiri_value_kind pointer_kind = {end_pointer, retire_box, pointer_footprint};
static const struct weiri_value_kind root_kind = {end_root, retire_box, pointer_footprint};

/* -- making versions --------------------------------------------------------------------------- */

struct weiri_version *weiri_version_of_bytes(struct weiri_record *record, const weir_var *var, const void *bytes)
{
	return weiri_box_of_bytes(record, var, bytes);
}

/* Returns what counts in the budget; no more than may be given as a size. */
static size_t measured(const weir_var *var, void *pointer)
{
	size_t bytes = var->pointers.measure != NULL ? var->pointers.measure(var->pointers.context, pointer) : var->size;

	return bytes < WEIRI_MAX_POINTER_BYTES ? bytes : WEIRI_MAX_POINTER_BYTES;
}

static struct weiri_version *version_of_pointer(struct weiri_record *record, const weir_var *var, void *pointer)
{
	size_t bytes = measured(var, pointer);
	bool is_root = var->kind == WEIR_VAR_TABLE;
	struct weiri_box *box =
		weiri_box_create(record, var, sizeof(struct held_pointer), bytes, is_root ? &root_kind : &pointer_kind);

	if (box == NULL)
		return NULL;
	*pointer_in(box) = (struct held_pointer){.pointer = pointer, .context = var->pointers.context, .bytes = bytes};
	if (is_root)
		pointer_in(box)->end = var->pointers.end;
	else
		pointer_in(box)->release = var->pointers.release;
	box->version.shown = pointer;
	return &box->version;
}

static struct weiri_version *version_of_tensor(struct weiri_record *record, const weir_var *var, weir_tensor *tensor)
{
	struct weiri_version *version = weiri_version_of_tensor(record, var, tensor);

	if (version != NULL)
		(void)weir_tensor_retain(tensor);
	return version;
}

struct weiri_version *weiri_version_of_value(struct weiri_record *record, const weir_var *var, const weir_value *value)
{
	switch (var->kind) {
	case WEIR_VAR_INLINE: return weiri_box_of_bytes(record, var, value->data);
	case WEIR_VAR_POINTER:
	case WEIR_VAR_TABLE: return version_of_pointer(record, var, value->pointer);
	default: return version_of_tensor(record, var, value->tensor);
	}
}

void weiri_version_disown(struct weiri_version *version)
{
	struct weiri_box *box = (struct weiri_box *)(void *)version;

	if (version->box_lines == 0)
		return;
	if (box->value.kind == &pointer_kind)
		pointer_in(box)->release = NULL; /* B2 */
	else if (box->value.kind == &root_kind)
		pointer_in(box)->end = NULL; /* B2 */
}

void weiri_value_drop(const weir_var *var, const weir_value *value)
{
	if (weiri_value_is_none(value))
		return;
	if (value->kind == WEIR_VAR_TENSOR)
		weir_tensor_release(value->tensor);
	else if (value->kind == WEIR_VAR_TABLE)
		var->pointers.end(var->pointers.context, value->pointer, false);
	else if (value->kind == WEIR_VAR_POINTER && var->pointers.release != NULL)
		var->pointers.release(var->pointers.context, value->pointer);
}

/* Returns the value that a handle, or what a read section shows, is on; NULL for a cleared handle. */
static const struct weiri_value *value_of(const weir_read *read)
{
	const struct weiri_version *version;

	if (read->hold == NULL)
		return NULL;
	if (!weiri_hold_has_slot(read))
		return weiri_hold_value_of(read) != NULL ? weiri_hold_value_of(read) : read->hold;
	version = weiri_load_relaxed(&weiri_hold_slot_of(read)->object); /* [relaxed] the handle's own */
	return version->value;
}

bool weiri_read_is_of_table(const weir_read *read)
{
	const struct weiri_value *value = value_of(read);

	return value != NULL && value->kind == &root_kind;
}

/* -- checks ------------------------------------------------------------------------------------ */

const char *weiri_kind_text(const weir_var *var, char text[WEIRI_KIND_TEXT_SIZE])
{
	static const char *const plural[] = {"tensors", "inline values", "pointers", "versions of a table"};

	if (var->kind == WEIR_VAR_INLINE)
		(void)snprintf(text, WEIRI_KIND_TEXT_SIZE, "inline values of %zu byte%s", var->size, WEIRI_S(var->size));
	else
		(void)snprintf(text, WEIRI_KIND_TEXT_SIZE, "%s", plural[var->kind]);
	return text;
}

/* Describes a value that a caller gave. */
static const char *given_text(const weir_value *value, char text[WEIRI_KIND_TEXT_SIZE])
{
	switch (value->kind) {
	case WEIR_VAR_TENSOR: return "a tensor";
	case WEIR_VAR_POINTER: return "a pointer";
	case WEIR_VAR_INLINE:
		(void)snprintf(text, WEIRI_KIND_TEXT_SIZE, "%u inline byte%s", value->size, WEIRI_S(value->size));
		return text;
	default: (void)snprintf(text, WEIRI_KIND_TEXT_SIZE, "a value of kind %d", (int)value->kind); return text;
	}
}

static WEIRI_COLD enum weir_status fail_kind(const weir_var *var, const weir_value *value, weir_error *error)
{
	char takes[WEIRI_KIND_TEXT_SIZE], given[WEIRI_KIND_TEXT_SIZE];

	return weiri_fail(error, WEIR_INVALID_ARGUMENT, "variable \"%s\": takes %s, got %s", var->name,
	                  weiri_kind_text(var, takes), given_text(value, given));
}

enum weir_status weiri_value_check(const weir_var *var, const weir_value *value, weir_error *error)
{
	if (WEIRI_UNLIKELY(value->kind != var->kind))
		return fail_kind(var, value, error);
	if (value->kind == WEIR_VAR_TENSOR)
		return weiri_var_check(var, value->tensor, error);
	if (WEIRI_UNLIKELY(weiri_value_is_none(value)))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "variable \"%s\": value is NULL", var->name);
	if (WEIRI_UNLIKELY(value->kind == WEIR_VAR_INLINE && value->size != var->size))
		return fail_kind(var, value, error);
	return WEIR_OK;
}

enum weir_status weiri_kind_check_tensors(const weir_var *var, const char *call, weir_error *error)
{
	char has[WEIRI_KIND_TEXT_SIZE];

	if (WEIRI_LIKELY(var->kind == WEIR_VAR_TENSOR))
		return WEIR_OK;
	return weiri_fail(error, WEIR_INVALID_ARGUMENT, "variable \"%s\" has %s: %s needs tensors", var->name,
	                  weiri_kind_text(var, has), call);
}
