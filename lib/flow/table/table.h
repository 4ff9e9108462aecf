/*
 * table.h - what the sources of tables share.
 */
#ifndef WEIRI_TABLE_TABLE_H
#define WEIRI_TABLE_TABLE_H

#include <weir/flow/table.h>

#include "table/pages.h"
#include "var/table_var.h"

struct weir_table {
	weir_var *var;                   /* its values are roots: var/table_var.h */
	struct weiri_geometry *geometry; /* one reference */
};

static inline const struct weiri_root *weiri_root_of(const weir_read *read)
{
	return read->pointer;
}

/* Of type weir_pointer_size_fn: the bytes of a root in the budget. Seals the root. */
size_t weiri_root_seal(void *context, const void *root);

/*
 * Changes the rows of the draft. Returns false if there is no memory; then it has made copies of
 * blocks, but may have changed only some of the rows.
 */
bool weiri_draft_scatter(struct weiri_draft *draft, const struct weiri_rows *rows, const struct weiri_scatter *scatter);

/* Sets *shape to [rows, row...]. */
void weiri_table_shape(const struct weiri_rows *rows, weir_shape *shape);

/*
 * For checkpoints. `var` is that of a table. The geometry is valid while the table exists; NULL if
 * there is no memory for this thread's record.
 */
const struct weiri_geometry *weiri_table_geometry(weir_var *var);
/*
 * Makes a root, built on the newest version, in which all rows are those of `tensor`, which has the
 * dtype and the shape of the table. *root is its value for a write that expects the version
 * *expected. Returns WEIR_OK or WEIR_RESOURCE_EXHAUSTED.
 */
enum weir_status weiri_table_replace(weir_var *var, const weir_tensor *tensor, weir_value *root, uint64_t *expected);

#endif
