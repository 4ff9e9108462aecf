/*
 * kind.h - the kinds of values: what a write may give to a variable, and how it becomes a version.
 *
 * A tensor is an object of its own, to which a version has a reference. A value of another kind is a
 * part of its version's block, a *box*: bytes, or a pointer with its release function. Such a write
 * makes one block. Handles and marks count references of the value, as of a tensor, and the block is
 * freed with the last one.
 *
 * Invariants
 *   B1  the version of a box has one reference of its own value until it is reclaimed. So the
 *       fields of the version are valid as long as the version may be read, and those of the value
 *       as long as it has references
 *   B2  the release function of a pointer runs once, when the value has no references, unless the
 *       write failed; then the pointer is its caller's. For the root of a table the same is true of
 *       its end, which is told whether the version was committed. The stamp says so: a version is
 *       stamped before it is retired (V5 of version.h)
 * Why a failed commit can still disown its pointers. Its versions may have been installed and
 * replaced. But they were born before the section of the owner, and die in it or later, so they are
 * not freed before the owner leaves it. No thread has taken a reference of their values, because no
 * handle shows an aborted version and no mark is built on one.
 * Checked: tests/test_value.c, stress/model/check_value.c, stress scenario value.
 */
#ifndef WEIRI_VAR_KIND_H
#define WEIRI_VAR_KIND_H

#include <weir/value.h>

#include "var/version.h"

/* Returns WEIR_INVALID_ARGUMENT unless the variable can have this value. */
enum weir_status weiri_value_check(const weir_var *var, const weir_value *value, weir_error *error);
/* Returns WEIR_INVALID_ARGUMENT, with `call` in the message, unless the variable's values are tensors. */
enum weir_status weiri_kind_check_tensors(const weir_var *var, const char *call, weir_error *error);
/* Describes what the variable takes, in `text`, which is returned. */
enum { WEIRI_KIND_TEXT_SIZE = 48 };
/* What a pointer may count in the budget: sums of some of them stay far from the end of 64 bits. */
#define WEIRI_MAX_POINTER_BYTES (SIZE_MAX / 8)
const char *weiri_kind_text(const weir_var *var, char text[WEIRI_KIND_TEXT_SIZE]);

/*
 * Returns a version with a value that was checked, or NULL if there is no memory. The version has
 * its own reference of a tensor, its own copy of bytes, and takes over a pointer.
 */
struct weiri_version *weiri_version_of_value(struct weiri_record *record, const weir_var *var, const weir_value *value);
/* Returns a version with a copy of these bytes, which it shows; `var` is inline. NULL: no memory. */
struct weiri_version *weiri_version_of_bytes(struct weiri_record *record, const weir_var *var, const void *bytes);
/*
 * Called when a write failed and before its version is discarded or retired: a pointer in it is the
 * caller's again. `version` may have any kind of value.
 */
void weiri_version_disown(struct weiri_version *version);

/* Returns the value that a handle or version shows, borrowed. */
static inline weir_value weiri_value_shown(const weir_var *var, const void *shown)
{
	weir_value value;

	value.kind = var->kind;
	value.size = var->kind == WEIR_VAR_INLINE ? (uint32_t)var->size : 0;
	value.data = shown;
	return value;
}

static inline bool weiri_value_is_none(const weir_value *value)
{
	return value->data == NULL;
}

/* Returns true if weiri_value_check() accepts the value of an inline variable. False: ask that function. */
static inline bool weiri_value_fits_inline(const weir_var *var, const weir_value *value)
{
	return WEIRI_LIKELY(var->kind == WEIR_VAR_INLINE && value->kind == WEIR_VAR_INLINE && value->size == var->size &&
	                    !weiri_value_is_none(value));
}

/* Drops what a caller gave up: a reference of a tensor, or a pointer. Bytes have no end. */
void weiri_value_drop(const weir_var *var, const weir_value *value);

#endif
