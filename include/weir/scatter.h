/*
 * scatter.h - rows of a variable changed and read by their numbers.
 *
 * Use it where an update concerns some rows of a value: embeddings, counts by key. Each call is one atomic update, like
 * weir_var_update(): it copies the whole value once, and from 256 KiB on once for all scatters and additions that are under
 * way, as weir_var_assign_add() says. For tables so large that the copy is what costs, use weir/table.h, which takes the same
 * indices and updates and copies only what it touches.
 *
 * | call             | threads | progress                         | blocks on                           | allocates | signal-safe |
 * |------------------|---------|----------------------------------|-------------------------------------|-----------|-------------|
 * | weir_var_scatter | any     | lock-free after its allocation   | the retire budget, up to the deadline; from 256 KiB on another's copy, a bounded time | yes | no |
 * | weir_var_gather  | any     | wait-free but for its allocation | nothing                             | yes       | no          |
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
 * What becomes of each element x of a row, with the element y of the update. Integers wrap around; an integer's quotient is cut
 * towards 0. Minimum and maximum of floats: y if it is smaller (larger) than x, else x; so what is there stays when one of both
 * is NaN.
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
 * Changes the rows that `indices` name, one after the other in row-major order of `indices`: a row that is named twice is
 * changed twice, and the last WEIR_SCATTER_UPDATE of a row stays. `updates` has the variable's dtype and the shape [indices...,
 * row...], or is a scalar, which stands for each element. All happens at one instant, or, on any failure, nothing: no other
 * thread sees some rows changed.
 *
 * A value of 256 KiB or more: a thread that was overtaken may go on reading `indices` and `updates` after the call; then references
 * are kept, as of a replaced version (weir_reclaim_flush() sees to it). deadline_ns is not asked for the wait for another's copy.
 *
 * *published (may be NULL) is a handle on the version that this call published, the caller's to release.
 * WEIR_INVALID_ARGUMENT (NULL, no such way, dtypes or shapes that do not fit, a value without rows, an index that is not in [0,
 * rows): the message has the index and the rows, an integer divided by 0), WEIR_UNIMPLEMENTED (bytes; arithmetic on bool and
 * f16), WEIR_FAILED_PRECONDITION (not initialized), and the failures of weir_var_update. @since 0.1
 */
WEIR_API enum weir_status weir_var_scatter(weir_var *var, enum weir_scatter how, const weir_tensor *indices,
                                           const weir_tensor *updates, uint64_t deadline_ns, weir_read *published,
                                           weir_error *error);
/*
 * *out gets a tensor of shape [indices..., row...] with the rows that `indices` name, all of one version. allocator may be NULL.
 * WEIR_INVALID_ARGUMENT, WEIR_UNIMPLEMENTED (bytes), WEIR_FAILED_PRECONDITION as above, WEIR_RESOURCE_EXHAUSTED. @since 0.1
 */
WEIR_API enum weir_status weir_var_gather(weir_var *var, const weir_tensor *indices, const weir_allocator *allocator,
                                          weir_tensor **out, weir_error *error);

WEIR_END_DECLS

#endif
