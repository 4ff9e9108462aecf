/*
 * change.h - what an update does to a value: adds a tensor to all of it, or changes rows of it; and many of them at once.
 *
 * A change borrows its operands from the call that it is made for. Where others may go on reading it when that is over, it keeps them.
 */
#ifndef WEIRI_VAR_CHANGE_H
#define WEIRI_VAR_CHANGE_H

#include "tensor/indices.h"

struct weiri_change {
	enum weiri_combine how;     /* for all of a value: WEIRI_COMBINE_ADD or _SUBTRACT */
	int is_of_rows;             /* else all of a value is combined with the operand, element by element */
	const weir_tensor *operand; /* not NULL where it is for all of a value */
	const weir_tensor *indices; /* which rows */
	/* Of rows, as weiri_change_fit() found them. */
	struct weiri_rows rows;
	struct weiri_scatter scatter;
	int keeps; /* a reference of each operand */
};

/*
 * WEIR_OK: it can be made to values of this one's dtype and shape. WEIR_RESOURCE_EXHAUSTED: there is no memory for that. Any other: it cannot, and
 * `error` says why, with the name of the variable. May be called again, for another value. A change that was fitted once is ended by
 * weiri_change_fini().
 */
enum weir_status weiri_change_fit(struct weiri_change *change, const char *name, const weir_tensor *value,
                                  const weir_allocator *allocator, weir_error *error);
/* Takes a reference of each operand. */
void weiri_change_keep(struct weiri_change *change);
/* How much memory it keeps, besides its own. */
size_t weiri_change_bytes(const struct weiri_change *change);
void weiri_change_fini(struct weiri_change *change, const weir_allocator *allocator);

/* Whether a value is still wanted; asked every few microseconds. */
typedef int weiri_wanted_fn(void *context);

/*
 * Makes changes that fit, one after the other, to a copy of `from`, or to what `value` is when that is NULL; count > 0. 0: *value is not wanted
 * any more, and may be anything.
 */
int weiri_changes_make(const struct weiri_change *const changes[], size_t count, const weir_tensor *from,
                       weir_tensor *value, weiri_wanted_fn *wanted, void *context);

/*
 * *next = `value` with one change, in a tensor of its own. allocator may be NULL. Fails as weiri_change_fit() does, and when there is no memory for
 * the tensor; *next is untouched then.
 */
enum weir_status weiri_change_value(struct weiri_change *change, const char *name, const weir_tensor *value,
                                    const weir_allocator *allocator, weir_tensor **next, weir_error *error);

#endif
