/*
 * table.h - large tables of rows, of which an update changes few.
 *
 * Use it where the value is large and updates are sparse: embeddings, state by key. A version is a tree of chunks of 64 KiB
 * that versions share; an update copies the chunks that it touches, and pointers. So 100 rows of a table of 1 GiB cost 100
 * chunks at most, where a variable (weir/scatter.h) copies 1 GiB. Not for values that are read whole as one tensor, nor for
 * small ones: a variable is simpler, and its reads give tensors.
 *
 * | call                                | threads | progress                         | blocks on                             | allocates | signal-safe |
 * |-------------------------------------|---------|----------------------------------|---------------------------------------|-----------|-------------|
 * | weir_table_create                   | any     | lock-free + allocator            | allocator                             | yes       | no          |
 * | weir_table_destroy                  | one, last | lock-free + allocator          | nothing                               | at a thread's first use of Weir | no |
 * | weir_table_read, _view_release, _view_row | any | wait-free (1)                  | nothing                               | no        | no          |
 * | weir_table_gather, _view_gather     | any     | wait-free but for the allocation | nothing                               | yes       | no          |
 * | weir_table_snapshot                 | any     | lock-free but for the allocation | nothing                               | yes       | no          |
 * | weir_table_scatter                  | any     | lock-free after its allocations  | the retire budget, up to the deadline | yes       | no          |
 * | weir_table_version, _rows, _dtype, _row_shape, _name | any | wait-free           | nothing                               | no        | no          |
 *
 * (1) As weir_var_read and weir_read_release; a release that drops the last reference to a version frees its chunks.
 *
 * Ordering: as for variables, with which tables share the order of all versions: every call is linearizable.
 *
 * Memory: the chunks of the newest version; of each version that a view holds, those chunks that differ from its successor's,
 * which is at most the whole table; of a version that waits to be freed, the chunks that its successor replaced, which count in
 * the retire budget as those that it copied itself. The first version's chunks of zeros are one chunk.
 */
#ifndef WEIR_TABLE_H
#define WEIR_TABLE_H

#include <stddef.h>
#include <stdint.h>
#include <weir/scatter.h>
#include <weir/status.h>
#include <weir/tensor.h>
#include <weir/var.h>

WEIR_BEGIN_DECLS

typedef struct weir_table weir_table;

/* A handle on one version, held until weir_table_view_release; it may be passed to another thread, and may outlive the table. */
typedef struct weir_table_view {
	uint64_t version; /* >= 1 */
	weir_read hold;   /* private */
} weir_table_view;

struct weir_table_options {
	size_t struct_size;              /* sizeof(struct weir_table_options) */
	const char *name;                /* copied, for messages; NULL: "table" */
	enum weir_dtype dtype;           /* required; not bytes */
	int64_t rows;                    /* at least 1 */
	const weir_shape *row;           /* the shape of a row, at least one element; NULL: a scalar */
	uint32_t flags;                  /* must be 0 */
	const weir_allocator *allocator; /* NULL: the default one */
};

/*
 * A table whose version 1 is a copy of `initial`, of shape [rows, row...], or zeros when that is NULL. WEIR_INVALID_ARGUMENT
 * (NULL, no such dtype, bad shapes, flags, initial does not fit), WEIR_UNIMPLEMENTED (bytes), WEIR_RESOURCE_EXHAUSTED. @since 0.1
 */
WEIR_API enum weir_status weir_table_create(const struct weir_table_options *options, const weir_tensor *initial,
                                            weir_table **out, weir_error *error);
/*
 * No other call on this table may be under way. Views stay valid. Accepts NULL. On a thread that never used Weir, and has no
 * memory for its record, the versions are never given back. @since 0.1
 */
WEIR_API void weir_table_destroy(weir_table *table);

/* The number of the newest version; 0 for NULL. @since 0.1 */
WEIR_API uint64_t weir_table_version(weir_table *table);
/* As given at creation; what is pointed to lives as long as the table. For NULL: 0, 0, NULL, "(null)". @since 0.1 */
WEIR_API int64_t weir_table_rows(const weir_table *table);
WEIR_API enum weir_dtype weir_table_dtype(const weir_table *table);
WEIR_API const weir_shape *weir_table_row_shape(const weir_table *table);
WEIR_API const char *weir_table_name(const weir_table *table);

/* The newest version. WEIR_INVALID_ARGUMENT (NULL), WEIR_RESOURCE_EXHAUSTED (this thread's first use of Weir). @since 0.1 */
WEIR_API enum weir_status weir_table_read(weir_table *table, weir_table_view *view);
/* Ends a view and clears it. Accepts NULL and a cleared view. @since 0.1 */
WEIR_API void weir_table_view_release(weir_table_view *view);
/*
 * The versions of several tables at one instant. On failure no view is held. WEIR_INVALID_ARGUMENT (NULL),
 * WEIR_RESOURCE_EXHAUSTED. @since 0.1
 */
WEIR_API enum weir_status weir_table_snapshot(weir_table *const tables[], size_t count, weir_table_view views[],
                                              weir_error *error);

/*
 * The elements of a row, row-major, without a copy, while the view is held; aligned to the element. NULL: no such row, or
 * `view` is NULL or was released. @since 0.1
 */
WEIR_API const void *weir_table_view_row(const weir_table_view *view, int64_t index);
/*
 * *out gets a tensor of shape [indices..., row...]; indices are i32 or i64. allocator may be NULL. WEIR_INVALID_ARGUMENT (NULL,
 * dtype, an index that is not in [0, rows)), WEIR_RESOURCE_EXHAUSTED. @since 0.1
 */
WEIR_API enum weir_status weir_table_view_gather(const weir_table_view *view, const weir_tensor *indices,
                                                 const weir_allocator *allocator, weir_tensor **out, weir_error *error);
/* The same of the newest version. @since 0.1 */
WEIR_API enum weir_status weir_table_gather(weir_table *table, const weir_tensor *indices,
                                            const weir_allocator *allocator, weir_tensor **out, weir_error *error);

/*
 * Changes rows, at one instant or not at all: as weir_var_scatter(), which says in what order, what of updates is expected, and
 * what is refused. *published (may be NULL) is a view of the version that this call published, the caller's to release. An
 * attempt that lost to another writer is thrown away, with its copies, and made again. @since 0.1
 */
WEIR_API enum weir_status weir_table_scatter(weir_table *table, enum weir_scatter how, const weir_tensor *indices,
                                             const weir_tensor *updates, uint64_t deadline_ns,
                                             weir_table_view *published, weir_error *error);

WEIR_END_DECLS

#endif
