/*
 * change.h - what an update does to a value. A change combines a tensor with the whole value, or
 * with some of its rows. Many changes can be applied at once.
 *
 * A change borrows its operands from the call for which it is made. If other threads may read the
 * change after that call ends, the change keeps references to its operands.
 */
#ifndef WEIRI_VAR_CHANGE_H
#define WEIRI_VAR_CHANGE_H

#include "tensor/indices.h"

struct weiri_change {
	enum weiri_combine how;     /* for a whole value: WEIRI_COMBINE_ADD or _SUBTRACT */
	bool is_of_rows;            /* false: the operand is combined with the whole value */
	const weir_tensor *operand; /* not NULL for a whole value */
	const weir_tensor *indices; /* which rows */
	/* For rows, as weiri_change_fit() computed them. */
	struct weiri_rows rows;
	struct weiri_scatter scatter;
	bool keeps; /* true: the change holds a reference to each operand */
};

/*
 * Prepares the change for values with the dtype and shape of `value`. Returns WEIR_OK if the change
 * can be applied to such values, and WEIR_RESOURCE_EXHAUSTED if there is no memory. Any other
 * status means that the change cannot be applied; `error` then says why, with the name of the
 * variable. The call may be repeated for another value. After the first call, weiri_change_fini()
 * must end the change.
 */
enum weir_status weiri_change_fit(struct weiri_change *change, const char *name, const weir_tensor *value,
                                  const weir_allocator *allocator, weir_error *error);
/* Takes a reference to each operand. */
void weiri_change_keep(struct weiri_change *change);
/* Returns how many bytes the change keeps alive, besides its own. */
size_t weiri_change_bytes(const struct weiri_change *change);
void weiri_change_fini(struct weiri_change *change, const weir_allocator *allocator);

/* Returns true while a value under construction is still wanted. Called every few microseconds. */
typedef bool weiri_wanted_fn(void *context);

/*
 * Applies changes that fit, one after the other. `value` gets a copy of `from` with the changes. If
 * `from` is NULL, the contents of `value` are changed. `count` must not be 0. Returns true, or
 * false if the value is no longer wanted; its contents are then undefined.
 */
bool weiri_changes_make(const struct weiri_change *const changes[], size_t count, const weir_tensor *from,
                        weir_tensor *value, weiri_wanted_fn *wanted, void *context);

/*
 * Sets *next to a new tensor: `value` with one change applied. `allocator` may be NULL. Fails as
 * weiri_change_fit() does, or if there is no memory for the tensor. A failure leaves *next
 * untouched.
 */
enum weir_status weiri_change_value(struct weiri_change *change, const char *name, const weir_tensor *value,
                                    const weir_allocator *allocator, weir_tensor **next, weir_error *error);

#endif
