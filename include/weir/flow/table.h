/*
 * table.h - large tables of rows, for updates that change few of the rows.
 *
 * Use it if the value is large and updates are sparse: embeddings, state by key. A version is a
 * tree of pages of 512 bytes, and versions share pages. An update copies the pages that it touches,
 * and the nodes above them. So its cost depends on the number of rows, and not on the size of the
 * table, where a variable (weir/scatter.h) copies the whole value. For small values, or values that
 * are read whole as one tensor, use a variable: it is simpler, and its reads give tensors.
 *
 * | call                | threads   | progress            | blocks on  | allocates  | signal-safe |
 * |---------------------|-----------|---------------------|------------|------------|-------------|
 * | weir_table_create   | any       | lock-free + allocator | allocator | yes       | no          |
 * | weir_table_destroy  | one, last | lock-free + allocator | nothing  | record (2) | no          |
 * | weir_table_read, _view_release | any | wait-free (1)   | nothing    | no         | no          |
 * | weir_table_view_row, _view_rows | any | wait-free       | nothing    | no         | no          |
 * | weir_table_gather, _view_gather | any | wait-free (3) | nothing    | yes        | no          |
 * | weir_table_snapshot | any       | lock-free (3)       | nothing    | yes        | no          |
 * | weir_table_scatter  | any       | lock-free (3)       | budget (4) | yes        | no          |
 * | weir_table_version, _row_count, _dtype | any | wait-free | nothing | no         | no          |
 * | weir_table_row_shape, _name | any | wait-free         | nothing    | no         | no          |
 * | weir_table_var, _view_of | any    | wait-free           | nothing    | no         | no          |
 * | weir_table_txn_read | one at a time (5) | as weir_txn_read() | nothing | to grow  | no          |
 * | weir_table_txn_scatter | one at a time (5) | lock-free (3) | nothing   | yes        | no          |
 *
 * (1) As weir_var_read() and weir_read_release(). A release that drops the last reference to the
 *     last version of a destroyed table frees the table.
 * (2) A thread's first call of Weir allocates its record.
 * (3) After its allocations.
 * (4) While the retired bytes exceed the budget (weir/reclaim.h), up to the deadline.
 * (5) One thread may hand the transaction to another.
 *
 * Ordering. Every call is linearizable. Tables and variables share one order of all versions.
 *
 * Together with variables. weir_table_var() gives the variable that holds the versions of a table,
 * for the calls that read: weir_var_snapshot() of tables and variables at one instant,
 * weir_var_try_read_newer(), watches (weir/watch.h), read sections (weir/read_section.h), caches
 * (weir/var_cache.h). weir_table_view_of() shows what they give. Writes refuse this variable. To
 * change tables and variables at one instant, use a transaction (weir/txn.h):
 * weir_table_txn_scatter(). A checkpoint (weir/flow/checkpoint.h) saves and restores a table if this
 * variable is its part.
 *
 * Memory. The newest version needs all its pages, and 16 bytes of pointers a page. A version that a
 * view holds needs the pages that differ from its successor's, at most the whole table. A version
 * that waits to be freed needs the pages that its successor replaced; in the budget it counts as the
 * pages and nodes that it copied itself. Replaced pages that no version needs any more are found by
 * later updates: up to 1 MiB of them waits for these, and for the destroy of the table. The update
 * after the end of a view examines all that the view kept. All tables
 * together keep free pages of at most an eighth of the budget for later updates. The zeros of the
 * first version are one page. When a table is destroyed while views of it exist, what it has is
 * freed by the first collection after the last view.
 */
#ifndef WEIR_TABLE_H
#define WEIR_TABLE_H

#include <stddef.h>
#include <stdint.h>
#include <weir/scatter.h>
#include <weir/status.h>
#include <weir/tensor.h>
#include <weir/txn.h>
#include <weir/var.h>

WEIR_BEGIN_DECLS

typedef struct weir_table weir_table;

/*
 * A handle on one version, held until weir_table_view_release(). It may be passed to another
 * thread, and may outlive the table.
 */
typedef struct weir_table_view {
	uint64_t version; /* >= 1 */
	weir_read hold;   /* private */
} weir_table_view;

struct weir_table_options {
	size_t struct_size;              /* WEIR_TABLE_OPTIONS_INIT sets it */
	const char *name;                /* copied, for messages; NULL: "table" */
	enum weir_dtype dtype;           /* required; not bytes */
	int64_t rows;                    /* at least 1 */
	const weir_shape *row;           /* the shape of a row, at least one element; NULL: a scalar */
	uint32_t flags;                  /* must be 0 */
	const weir_allocator *allocator; /* NULL: the default allocator */
};
#define WEIR_TABLE_OPTIONS_INIT WEIR_STRUCT_SIZE(struct weir_table_options)

/*
 * Creates a table whose version 1 is a copy of `initial`, of shape [rows, row...], or zeros if that
 * is NULL. Errors: WEIR_INVALID_ARGUMENT if an argument is NULL, the dtype, a shape or a flag is
 * invalid, or initial does not fit. WEIR_UNIMPLEMENTED (bytes). WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_table_create(const weir_tensor *initial,
                                            const struct weir_table_options *options,
                                            weir_table **out, weir_error *error);

/*
 * Destroys the table. No other call on it may be under way. Views stay valid. Accepts NULL. Errors:
 * WEIR_RESOURCE_EXHAUSTED, and nothing happens, if there is no memory for this thread's record.
 * @since 0.1
 */
WEIR_API enum weir_status weir_table_destroy(weir_table *table, weir_error *error);

/* The number of the newest version; 0 for NULL. @since 0.1 */
WEIR_API uint64_t weir_table_version(weir_table *table);

/*
 * Properties as given at creation; the shape and the name are valid as long as the table exists.
 * For NULL: 0, 0, NULL, "(null)".
 * @since 0.1
 */
WEIR_API int64_t weir_table_row_count(const weir_table *table);
WEIR_API enum weir_dtype weir_table_dtype(const weir_table *table);
WEIR_API const weir_shape *weir_table_row_shape(const weir_table *table);
WEIR_API const char *weir_table_name(const weir_table *table);

/*
 * Takes a view of the newest version. Errors: WEIR_INVALID_ARGUMENT (NULL), WEIR_RESOURCE_EXHAUSTED
 * if there is no memory for this thread's record.
 * @since 0.1
 */
WEIR_API enum weir_status weir_table_read(weir_table *table, weir_table_view *view);
/* Releases a view and clears it. Accepts NULL and a cleared view. @since 0.1 */
WEIR_API void weir_table_view_release(weir_table_view *view);

/*
 * Takes views of several tables at one instant. On failure no view is held. Errors:
 * WEIR_INVALID_ARGUMENT (NULL), WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_table_snapshot(weir_table *const tables[], size_t count,
                                              weir_table_view views[], weir_error *error);

/*
 * The elements of a row, row-major, without a copy; valid while the view is held, aligned to the
 * element. NULL if there is no such row, or `view` is NULL or was released.
 * @since 0.1
 */
WEIR_API const void *weir_table_view_row(const weir_table_view *view, int64_t index);

/*
 * The rows from `first` on that lie one behind the other: as weir_table_view_row(), and *count is
 * their number, at least 1. On NULL *count is untouched; NULL also if `count` is. It begins to load
 * the rows that follow, so it is the way to read many rows in order:
 *
 *     for (int64_t i = 0, count; i < rows; i += count) {
 *         const float *row = weir_table_view_rows(&view, i, &count);
 *         ...
 *     }
 *
 * @since 0.1
 */
WEIR_API const void *weir_table_view_rows(const weir_table_view *view, int64_t first,
                                          int64_t *count);

/*
 * Gives a tensor of shape [indices..., row...]; indices are i32 or i64. allocator may be NULL.
 * Errors: WEIR_INVALID_ARGUMENT if an argument is NULL, the dtype is wrong, or an index is not in
 * [0, rows). WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_table_view_gather(const weir_table_view *view,
                                                 const weir_tensor *indices,
                                                 const weir_allocator *allocator, weir_tensor **out,
                                                 weir_error *error);
/*
 * The variable that holds the versions of the table, of kind WEIR_VAR_TABLE; valid as long as the
 * table exists. Every write of it fails with WEIR_INVALID_ARGUMENT, and weir_var_destroy() with
 * WEIR_FAILED_PRECONDITION. NULL for NULL.
 * @since 0.1
 */
WEIR_API weir_var *weir_table_var(weir_table *table);

/*
 * Makes a view of a handle on a version of the variable of a table, or of what a read section or a
 * cache shows of it. A view of a handle takes its place: release one of the two. Any other view needs
 * no release, and is valid as long as what it was made of. Errors: WEIR_INVALID_ARGUMENT if an
 * argument is NULL, or `read` is cleared or shows no table.
 * @since 0.1
 */
WEIR_API enum weir_status weir_table_view_of(const weir_read *read, weir_table_view *view);

/* Like weir_table_view_gather(), of the newest version. @since 0.1 */
WEIR_API enum weir_status weir_table_gather(weir_table *table, const weir_tensor *indices,
                                            const weir_allocator *allocator, weir_tensor **out,
                                            weir_error *error);

/*
 * Changes rows at one instant, or not at all. weir_var_scatter() describes the order, the updates
 * and the errors. *published (may be NULL) is a view of the version that this call published; the
 * caller releases it. If another writer publishes first, the attempt and its copies are discarded
 * and the call tries again.
 * @since 0.1
 */
WEIR_API enum weir_status weir_table_scatter(weir_table *table, enum weir_scatter how,
                                             const weir_tensor *indices, const weir_tensor *updates,
                                             uint64_t deadline_ns, weir_table_view *published,
                                             weir_error *error);

/*
 * As weir_txn_read(), for a table: *view is the version at the instant of the transaction, with what
 * the transaction has scattered. It is borrowed: it needs no release, and is valid until the
 * transaction ends or scatters to this table. Its `version` is that of the version read. The table
 * counts as one variable of the transaction.
 *
 * Errors: as weir_txn_read().
 * @since 0.1
 */
WEIR_API enum weir_status weir_table_txn_read(weir_txn *txn, weir_table *table,
                                              weir_table_view *view, weir_error *error);

/*
 * Changes rows when the transaction commits. weir_var_scatter() describes the order and the updates.
 * The call reads the table first: if another writer changes the table before the commit, the
 * transaction aborts, even if other rows change. The changes of several calls are published as one
 * version.
 *
 * Errors, after which the call has changed nothing: those of weir_txn_read() and weir_var_scatter().
 * @since 0.1
 */
WEIR_API enum weir_status weir_table_txn_scatter(weir_txn *txn, weir_table *table,
                                                 enum weir_scatter how, const weir_tensor *indices,
                                                 const weir_tensor *updates, weir_error *error);

WEIR_END_DECLS

#endif
