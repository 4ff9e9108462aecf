/*
 * scatter.h - rows of a variable, changed and read by their numbers.
 *
 * Use it if an update concerns some rows of a value: embeddings, counts by key. Each call is one
 * atomic update, like weir_var_update(). It copies the whole value once; from 256 KiB on, one copy
 * serves all scatters and additions under way, as described at weir_var_assign_add(). If a table is
 * so large that this copy is too expensive, use weir/flow/table.h, which takes the same indices and
 * updates and copies only what it touches.
 *
 * | call             | threads | progress      | blocks on            | allocates | signal-safe |
 * |------------------|---------|---------------|----------------------|-----------|-------------|
 * | weir_var_scatter | any     | lock-free (1) | budget (2), copy (3) | yes       | no          |
 * | weir_var_gather  | any     | wait-free (1) | nothing              | yes       | no          |
 *
 * (1) After its allocation.
 * (2) While the retired bytes exceed the budget (weir/reclaim.h), up to the deadline.
 * (3) From 256 KiB on, also for the copy that another thread makes, for a bounded time.
 *
 * Rows are those along the first dimension. Indices are a tensor of i32 or i64 of any shape.
 */
#ifndef WEIR_SCATTER_H
#define WEIR_SCATTER_H

#include <stdint.h>
#include <weir/status.h>
#include <weir/tensor.h>
#include <weir/var.h>

WEIR_BEGIN_DECLS

/*
 * What happens to each element x of a row, given the element y of the update. Integers wrap around;
 * an integer quotient is truncated towards 0. Minimum and maximum of floats: y if it is smaller
 * (larger) than x, else x; so x stays if either is NaN.
 */
enum weir_scatter {
	WEIR_SCATTER_UPDATE = 1, /* y; also for bool and f16 */
	WEIR_SCATTER_ADD = 2,
	WEIR_SCATTER_SUB = 3,
	WEIR_SCATTER_MUL = 4,
	WEIR_SCATTER_DIV = 5,
	WEIR_SCATTER_MIN = 6,
	WEIR_SCATTER_MAX = 7
};

/*
 * Changes the rows that `indices` name, one after the other in row-major order of `indices`. A row
 * that is named twice is changed twice; the last WEIR_SCATTER_UPDATE of a row stays. `updates` has
 * the variable's dtype and the shape [indices..., row...], or is a scalar that stands for each
 * element. Everything happens at one instant, or, on any failure, nothing: no other thread sees
 * some rows changed.
 *
 * Values of 256 KiB and more: a thread that was overtaken may read `indices` and `updates` after
 * the call returned. The library then keeps references to them, and retires these like a replaced
 * version (weir_reclaim_flush() frees them). deadline_ns does not bound the wait for another
 * thread's copy.
 *
 * *published (may be NULL) is a handle on the version that this call published; the caller releases
 * it.
 *
 * Errors: WEIR_INVALID_ARGUMENT if an argument is NULL, `how` is unknown, a dtype or shape does not
 * fit, the value has no rows, an index is not in [0, rows) (the message has both), or an integer is
 * divided by 0. WEIR_UNIMPLEMENTED for bytes, and for arithmetic on bool and f16.
 * WEIR_FAILED_PRECONDITION if the variable is not initialized. And the errors of weir_var_update().
 * @since 0.1
 */
WEIR_API enum weir_status weir_var_scatter(weir_var *var, enum weir_scatter how,
                                           const weir_tensor *indices, const weir_tensor *updates,
                                           uint64_t deadline_ns, weir_read *published,
                                           weir_error *error);

/*
 * Gives a tensor of shape [indices..., row...] with the rows that `indices` name, all of one
 * version. allocator may be NULL. Errors: WEIR_INVALID_ARGUMENT, WEIR_UNIMPLEMENTED (bytes) and
 * WEIR_FAILED_PRECONDITION as weir_var_scatter(), WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_var_gather(weir_var *var, const weir_tensor *indices,
                                          const weir_allocator *allocator, weir_tensor **out,
                                          weir_error *error);

WEIR_END_DECLS

#endif
