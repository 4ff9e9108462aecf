/*
 * table_txn.c - tables in transactions, and the replacement of all rows for checkpoints.
 *
 * A transaction that scatters has a draft of the next version: a root that it alone can reach (T3 of
 * pages.h), which is what it has assigned to the variable of the table. It is built on the version
 * that the transaction has read, and the commit succeeds only if that is still the newest. Later
 * scatters change the same draft. A transaction that ends without a commit ends the draft with it
 * (var/txn.c).
 */
#include <string.h>

#include "base/error.h"
#include "table/table.h"
#include "tensor/object.h"

static enum weir_status fail_memory(const weir_table *table, weir_error *error)
{
	return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "table \"%s\": no memory for the pages that change",
	                  table->geometry->rows.name);
}

static enum weir_status check_not_null(const weir_txn *txn, const weir_table *table, const void *other,
                                       const char *what, weir_error *error)
{
	if (txn != NULL && table != NULL && other != NULL)
		return WEIR_OK;
	return weiri_fail(error, WEIR_INVALID_ARGUMENT, "transaction: %s is NULL",
	                  txn == NULL     ? "it"
	                  : table == NULL ? "the table"
	                                  : what);
}

enum weir_status weir_table_txn_read(weir_txn *txn, weir_table *table, weir_table_view *view, weir_error *error)
{
	enum weir_status status = check_not_null(txn, table, view, "the place for the view", error);
	uint64_t version;
	void *root;

	if (status == WEIR_OK)
		status = weiri_txn_read_root(txn, table->var, &root, error);
	if (status != WEIR_OK)
		return status;
	version = weir_txn_version(txn, table->var);
	*view = (weir_table_view){version, {.pointer = root, .version = version}};
	return WEIR_OK;
}

/*
 * Gives the draft its own blocks for all rows that change. Afterwards, weiri_draft_scatter() cannot
 * fail, so that a draft with earlier changes gets all of the further ones, or none.
 */
static bool own_rows(struct weiri_draft *draft, const struct weiri_scatter *scatter)
{
	for (int64_t i = 0; i < scatter->indices->elements; i++) {
		if (weiri_draft_row(draft, (size_t)weiri_index_at(scatter->indices, i)) == NULL)
			return false;
	}
	return true;
}

/* The transaction has read `newest`, on which the draft is built. */
static enum weir_status scatter_first(weir_txn *txn, weir_table *table, struct weiri_draft *draft,
                                      struct weiri_root *newest, const struct weiri_scatter *scatter, weir_error *error)
{
	enum weir_status status;

	weiri_draft_sweep(draft, newest);
	if (!weiri_draft_from(draft, newest))
		return fail_memory(table, error);
	if (weiri_draft_scatter(draft, &table->geometry->rows, scatter))
		status = weir_txn_assign_value(txn, table->var, weiri_value_of_root(draft->root), error);
	else
		status = fail_memory(table, error);
	if (status != WEIR_OK)
		weiri_root_end(draft->root, false);
	return status;
}

static enum weir_status scatter_again(weir_table *table, struct weiri_draft *draft, const struct weiri_scatter *scatter,
                                      weir_error *error)
{
	if (!own_rows(draft, scatter) || !weiri_draft_scatter(draft, &table->geometry->rows, scatter))
		return fail_memory(table, error);
	return WEIR_OK;
}

static enum weir_status scatter_in(weir_txn *txn, weir_table *table, const struct weiri_scatter *scatter,
                                   weir_error *error)
{
	void *newest;
	enum weir_status status = weiri_txn_read_root(txn, table->var, &newest, error);
	struct weiri_draft draft;

	if (status != WEIR_OK)
		return status;
	weiri_draft_init(&draft, table->geometry);
	draft.root = weiri_txn_table_root(txn, table->var);
	if (draft.root == NULL)
		status = scatter_first(txn, table, &draft, newest, scatter, error);
	else
		status = scatter_again(table, &draft, scatter, error);
	weiri_draft_fini(&draft, table->geometry);
	return status;
}

enum weir_status weir_table_txn_scatter(weir_txn *txn, weir_table *table, enum weir_scatter how,
                                        const weir_tensor *indices, const weir_tensor *updates, weir_error *error)
{
	enum weir_status status = check_not_null(txn, table, txn, "", error);
	const struct weiri_geometry *geometry;
	struct weiri_scatter work;

	if (status != WEIR_OK)
		return status;
	geometry = table->geometry;
	status = weiri_scatter_init(&work, &geometry->rows, (enum weiri_combine)how, indices, updates, &geometry->allocator,
	                            error);
	if (status != WEIR_OK)
		return status;
	status = scatter_in(txn, table, &work, error);
	weiri_scatter_fini(&work, &geometry->rows, &geometry->allocator);
	return status;
}

/* -- for checkpoints --------------------------------------------------------------------------- */

const struct weiri_geometry *weiri_table_geometry(weir_var *var)
{
	const struct weiri_geometry *geometry;
	weir_read read;

	if (weir_var_read(var, &read) != WEIR_OK)
		return NULL;
	geometry = weiri_root_of(&read)->geometry;
	weir_read_release(&read);
	return geometry;
}

static bool replace_rows(struct weiri_draft *draft, const struct weiri_rows *rows, const char *from)
{
	for (int64_t i = 0; i < rows->count; i++, from += rows->bytes) {
		char *row = weiri_draft_row(draft, (size_t)i);

		if (row == NULL)
			return false;
		memcpy(row, from, rows->bytes);
	}
	return true;
}

enum weir_status weiri_table_replace(weir_var *var, const weir_tensor *tensor, weir_value *root, uint64_t *expected)
{
	struct weiri_geometry *geometry;
	struct weiri_draft draft;
	weir_read newest;
	bool made;

	if (weir_var_read(var, &newest) != WEIR_OK)
		return WEIR_RESOURCE_EXHAUSTED;
	geometry = weiri_root_of(&newest)->geometry;
	weiri_draft_init(&draft, geometry);
	weiri_draft_sweep(&draft, newest.pointer);
	made = weiri_draft_from(&draft, newest.pointer);
	if (made && !replace_rows(&draft, &geometry->rows, tensor->data)) {
		weiri_root_end(draft.root, false);
		made = false;
	}
	weiri_draft_fini(&draft, geometry);
	*expected = newest.version;
	weir_read_release(&newest);
	if (!made)
		return WEIR_RESOURCE_EXHAUSTED;
	*root = weiri_value_of_root(draft.root);
	return WEIR_OK;
}
