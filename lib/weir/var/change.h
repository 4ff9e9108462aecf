/*
 * change.h - what an update does to a value: adds a tensor to all of it, or changes rows of it; and
 * applying many changes at once.
 *
 * A change borrows its operands from the call for which it is made. If other threads may read it
 * after that call ends, it keeps references to them.
 */
#ifndef WEIRI_VAR_CHANGE_H
#define WEIRI_VAR_CHANGE_H

#include "tensor/indices.h"

struct weiri_change {
	enum weiri_combine how;     /* for a whole value: WEIRI_COMBINE_ADD or _SUBTRACT */
	int is_of_rows;             /* 0: the whole value is combined with the operand, element by element */
	const weir_tensor *operand; /* not NULL for a whole value */
	const weir_tensor *indices; /* which rows */
	/* For rows, as weiri_change_fit() computed them. */
	struct weiri_rows rows;
	struct weiri_scatter scatter;
	int keeps; /* it holds a reference to each operand */
};

/*
 * Prepares a change for values of this value's dtype and shape. WEIR_OK: it can be applied to them.
 * WEIR_RESOURCE_EXHAUSTED: no memory. Any other status: it cannot be applied, and `error` says why,
 * with the name of the variable. May be called again for another value. After the first call,
 * weiri_change_fini() must end the change.
 */
enum weir_status weiri_change_fit(struct weiri_change *change, const char *name, const weir_tensor *value,
                                  const weir_allocator *allocator, weir_error *error);
/* Takes a reference to each operand. */
void weiri_change_keep(struct weiri_change *change);
/* How much memory the change keeps alive, besides its own. */
size_t weiri_change_bytes(const struct weiri_change *change);
void weiri_change_fini(struct weiri_change *change, const weir_allocator *allocator);

/* Whether a value is still wanted; called every few microseconds. */
typedef int weiri_wanted_fn(void *context);

/*
 * Applies changes that fit, one after the other, to a copy of `from`, or to the contents of `value`
 * if `from` is NULL; count > 0. Returns 0 if *value is no longer wanted; its contents are then
 * undefined.
 */
int weiri_changes_make(const struct weiri_change *const changes[], size_t count, const weir_tensor *from,
                       weir_tensor *value, weiri_wanted_fn *wanted, void *context);

/*
 * Sets *next to a new tensor: `value` with one change. allocator may be NULL. Fails as
 * weiri_change_fit() does, and when there is no memory for the tensor; *next is untouched then.
 */
enum weir_status weiri_change_value(struct weiri_change *change, const char *name, const weir_tensor *value,
                                    const weir_allocator *allocator, weir_tensor **next, weir_error *error);

#endif
