/*
 * table_var.h - what a table (weir/flow/table.h) needs of the variable that holds its versions.
 *
 * The value of such a version is a *root*: a pointer to what the table made. Programs get the
 * variable from weir_table_var(), and may read it in every way. They have no value that suits it, so
 * only the table writes it. A root belongs to the thread that makes it until a write takes it over. If
 * the write fails, the root is that thread's again, as the pointer of a pointer variable is (B2 of
 * kind.h).
 */
#ifndef WEIRI_VAR_TABLE_VAR_H
#define WEIRI_VAR_TABLE_VAR_H

#include <stdbool.h>
#include <weir/value.h>

#include "base/compiler.h"

/*
 * Ends a root, which no thread can reach any more. `published`: false if it was never the newest
 * version. Called on any thread, outside sections.
 */
typedef void weiri_table_end_fn(void *context, void *root, bool published);

/* How roots end, and what they count in the budget. */
struct weiri_table_roots {
	weiri_table_end_fn *end;
	weir_pointer_size_fn *measure; /* called once for each write; afterwards the root is constant */
	void *context;
};

/* Creates a variable with version 1. It has a root, which stays the caller's on failure. */
WEIRI_SHARED enum weir_status weiri_table_var_create(void *root, const struct weiri_table_roots *roots,
                                                     const char *name, const weir_allocator *allocator, weir_var **out,
                                                     weir_error *error);
/* weir_var_destroy(), which refuses such a variable. */
WEIRI_SHARED enum weir_status weiri_table_var_destroy(weir_var *var, weir_error *error);
/* weir_var_update_value(), which refuses such a variable; fn() stores a root in next->pointer. */
WEIRI_SHARED enum weir_status weiri_table_var_update(weir_var *var, weir_update_value_fn *fn, void *context,
                                                     uint64_t deadline_ns, weir_read *published, weir_error *error);
/* weir_txn_read_value(), which refuses such a variable: *root is the newest, or what was assigned. */
WEIRI_SHARED enum weir_status weiri_txn_read_root(weir_txn *txn, weir_var *var, void **root, weir_error *error);
/* Returns the root that the transaction would publish, or NULL if it would publish none. */
WEIRI_SHARED void *weiri_txn_table_root(const weir_txn *txn, const weir_var *var);
/* Returns true if the handle, or what a read section shows, is a version of a table's variable. */
WEIRI_SHARED bool weiri_read_is_of_table(const weir_read *read);

/* Returns the value of a root, for a write. */
static inline weir_value weiri_value_of_root(void *root)
{
	weir_value value = weir_value_pointer(root);

	value.kind = WEIR_VAR_TABLE;
	return value;
}

#endif
