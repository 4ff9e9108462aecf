/*
 * table.c - tables: variables whose values are trees of pages.
 *
 * The value of a version is the root of its tree (pages.h, var/table_var.h). So the variable provides
 * reads, versions, snapshots, transactions, retries, and the reclamation of versions that no thread
 * reads. They are proved in the sources of the variable.
 */
#include "table/table.h"

#include <weir/reclaim.h>

#include <stdalign.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "tensor/object.h"

/* Of type weiri_table_end_fn. */
static void end_of_root(void *context, void *root, bool published)
{
	(void)context;
	weiri_root_end(root, published);
}

size_t weiri_root_seal(void *context, const void *root)
{
	struct weiri_root *made = (struct weiri_root *)(uintptr_t)root; /* the caller's, and not const yet */

	(void)context;
	made->sealed = true; /* T3 */
	return made->own_bytes;
}

/* -- creating ---------------------------------------------------------------------------------- */

static enum weir_status check_options(const struct weir_table_options *options, const char *name, weir_shape *shape,
                                      weir_error *error)
{
	enum weir_status status = weiri_options_flags("table", options->flags, 0, error);

	if (status != WEIR_OK)
		return status;
	if (options->rows < 1)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "table \"%s\": %lld row%s, expected at least 1", name,
		                  (long long)options->rows, WEIRI_S(options->rows));
	if (options->dtype == 0)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "table \"%s\": dtype is 0; set dtype", name);
	*shape = (weir_shape){.rank = 1, .dims = {options->rows}};
	if (options->row != NULL) {
		if (options->row->rank >= WEIR_MAX_RANK)
			return weiri_fail(error, WEIR_INVALID_ARGUMENT, "table \"%s\": rows of rank %u, expected at most %d", name,
			                  options->row->rank, WEIR_MAX_RANK - 1);
		shape->rank += options->row->rank;
		memcpy(shape->dims + 1, options->row->dims, options->row->rank * sizeof(shape->dims[0]));
	}
	return WEIR_OK;
}

/* Computes the rows that the options describe, and checks that `initial` has these rows. */
static enum weir_status check_rows(const struct weir_table_options *options, const weir_tensor *initial,
                                   struct weiri_rows *rows, weir_error *error)
{
	const char *name = options->name != NULL ? options->name : "table";
	char here[WEIR_SHAPE_TEXT_SIZE / 2], there[WEIR_SHAPE_TEXT_SIZE / 2];
	weir_shape shape;
	int64_t elements;
	size_t nbytes;
	enum weir_status status = check_options(options, name, &shape, error);

	if (status != WEIR_OK)
		return status;
	if (weiri_tensor_measure(options->dtype, &shape, &elements, &nbytes) != WEIR_OK || elements == 0)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT,
		                  "table \"%s\": shape %s of %s, expected at least one element, and no more than fit", name,
		                  weir_shape_text(&shape, here, sizeof(here)), weir_dtype_name(options->dtype));
	if (initial != NULL && (initial->dtype != options->dtype || !weir_shape_equal(&initial->shape, &shape)))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "table \"%s\": initial is %s %s, expected %s %s", name,
		                  weir_dtype_name(initial->dtype), weir_shape_text(&initial->shape, there, sizeof(there)),
		                  weir_dtype_name(options->dtype), weir_shape_text(&shape, here, sizeof(here)));
	return weiri_rows_of("table", name, options->dtype, &shape, rows, error);
}

/* Creates the variable with its first version. Fails with WEIR_RESOURCE_EXHAUSTED. */
static enum weir_status make_var(weir_table *table, const weir_tensor *initial, weir_error *error)
{
	static const struct weiri_table_roots roots = {end_of_root, weiri_root_seal, NULL};
	struct weiri_root *root = weiri_root_create(table->geometry, initial != NULL ? initial->data : NULL);
	enum weir_status status;

	if (root == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "table \"%s\": no memory for its pages",
		                  table->geometry->rows.name);
	status = weiri_table_var_create(root, &roots, table->geometry->rows.name, &table->geometry->allocator, &table->var,
	                                error);
	if (status != WEIR_OK)
		weiri_root_end(root, false);
	return status;
}

static void table_free(weir_table *table)
{
	weir_allocator allocator = table->geometry->allocator;

	weiri_geometry_release(table->geometry);
	weiri_release(&allocator, table, sizeof(*table), alignof(weir_table));
}

enum weir_status weir_table_create(const weir_tensor *initial, const struct weir_table_options *options,
                                   weir_table **out, weir_error *error)
{
	struct weir_table_options given;
	weir_allocator allocator;
	struct weiri_rows rows;
	enum weir_status status;
	weir_table *table;

	if (options == NULL || out == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "table: %s is NULL", options == NULL ? "options" : "out");
	status = weiri_options_read("table", options, &given, sizeof(given), error);
	if (status == WEIR_OK)
		status = check_rows(&given, initial, &rows, error);
	if (status != WEIR_OK)
		return status;
	allocator = weiri_allocator_or_default(given.allocator);
	table = weiri_allocate_zeroed(&allocator, sizeof(*table), alignof(weir_table));
	if (table != NULL)
		table->geometry = weiri_geometry_create(&rows, &allocator);
	if (table == NULL || table->geometry == NULL) {
		weiri_release(&allocator, table, sizeof(*table), alignof(weir_table));
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "table \"%s\": no memory", rows.name);
	}
	status = make_var(table, initial, error);
	if (status == WEIR_OK)
		*out = table;
	else
		table_free(table);
	return status;
}

/* Tells the geometry which version is the last one. */
static enum weir_status note_newest(weir_table *table, weir_error *error)
{
	enum weir_status status;
	weir_read read;

	status = weir_var_read(table->var, &read);
	if (status != WEIR_OK)
		return weiri_fail(error, status, "table \"%s\": no memory for this thread's record",
		                  table->geometry->rows.name);
	table->geometry->newest = read.pointer;
	weir_read_release(&read);
	return WEIR_OK;
}

enum weir_status weir_table_destroy(weir_table *table, weir_error *error)
{
	enum weir_status status;

	if (table == NULL)
		return WEIR_OK;
	status = note_newest(table, error);
	if (status == WEIR_OK)
		status = weiri_table_var_destroy(table->var, error);
	if (status != WEIR_OK)
		return status;
	table_free(table);
	/* The last version counts little in the budget, and the whole table is freed with it. */
	(void)weir_reclaim_flush(0);
	return WEIR_OK;
}

uint64_t weir_table_version(weir_table *table)
{
	return table != NULL ? weir_var_version(table->var) : 0;
}

int64_t weir_table_row_count(const weir_table *table)
{
	return table != NULL ? table->geometry->rows.count : 0;
}

enum weir_dtype weir_table_dtype(const weir_table *table)
{
	return table != NULL ? table->geometry->rows.dtype : (enum weir_dtype)0;
}

const weir_shape *weir_table_row_shape(const weir_table *table)
{
	return table != NULL ? &table->geometry->rows.shape : NULL;
}

const char *weir_table_name(const weir_table *table)
{
	return table != NULL ? table->geometry->rows.name : "(null)";
}

weir_var *weir_table_var(weir_table *table)
{
	return table != NULL ? table->var : NULL;
}

void weiri_table_shape(const struct weiri_rows *rows, weir_shape *shape)
{
	*shape = (weir_shape){.rank = 1 + rows->shape.rank, .dims = {rows->count}};
	memcpy(shape->dims + 1, rows->shape.dims, rows->shape.rank * sizeof(shape->dims[0]));
}

/* -- reading ----------------------------------------------------------------------------------- */

enum weir_status weir_table_read(weir_table *table, weir_table_view *view)
{
	enum weir_status status;
	weir_read read;

	if (table == NULL || view == NULL)
		return WEIR_INVALID_ARGUMENT;
	status = weir_var_read(table->var, &read);
	if (status == WEIR_OK)
		*view = (weir_table_view){read.version, read};
	return status;
}

enum weir_status weir_table_view_of(const weir_read *read, weir_table_view *view)
{
	if (read == NULL || view == NULL || !weiri_read_is_of_table(read))
		return WEIR_INVALID_ARGUMENT;
	*view = (weir_table_view){read->version, *read};
	return WEIR_OK;
}

void weir_table_view_release(weir_table_view *view)
{
	if (view != NULL) {
		weir_read_release(&view->hold);
		view->version = 0;
	}
}

/* Takes a snapshot. `vars` and `reads` are working memory. */
static enum weir_status snapshot(weir_table *const tables[], size_t count, weir_var *vars[], weir_read reads[],
                                 weir_table_view views[], weir_error *error)
{
	enum weir_status status;

	for (size_t i = 0; i < count; i++) {
		if (tables[i] == NULL)
			return weiri_fail(error, WEIR_INVALID_ARGUMENT, "snapshot: table %zu is NULL", i);
		vars[i] = tables[i]->var;
	}
	status = weir_var_snapshot(vars, count, reads, error);
	for (size_t i = 0; status == WEIR_OK && i < count; i++)
		views[i] = (weir_table_view){reads[i].version, reads[i]};
	return status;
}

enum weir_status weir_table_snapshot(weir_table *const tables[], size_t count, weir_table_view views[],
                                     weir_error *error)
{
	const weir_allocator *allocator = weir_default_allocator();
	size_t size;
	weir_read *reads;
	enum weir_status status;

	if (count == 0)
		return WEIR_OK;
	if (tables == NULL || views == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "snapshot: %s is NULL", tables == NULL ? "tables" : "views");
	reads = weiri_multiply(count, sizeof(weir_read) + sizeof(weir_var *), &size)
	            ? weiri_allocate(allocator, size, alignof(weir_read))
	            : NULL;
	if (reads == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "snapshot: no memory for %zu tables", count);
	status = snapshot(tables, count, (void *)(reads + count), reads, views, error);
	weiri_release(allocator, reads, size, alignof(weir_read));
	return status;
}

const void *weir_table_view_row(const weir_table_view *view, int64_t index)
{
	const struct weiri_root *root;

	if (view == NULL || view->hold.pointer == NULL)
		return NULL;
	root = weiri_root_of(&view->hold);
	return index >= 0 && index < root->geometry->rows.count ? weiri_root_row(root, (size_t)index) : NULL;
}

const void *weir_table_view_rows(const weir_table_view *view, int64_t first, int64_t *count)
{
	const struct weiri_root *root;
	const char *rows;
	size_t found;

	if (view == NULL || view->hold.pointer == NULL || count == NULL)
		return NULL;
	root = weiri_root_of(&view->hold);
	if (first < 0 || first >= root->geometry->rows.count)
		return NULL;
	rows = weiri_root_rows(root, (size_t)first, &found);
	*count = (int64_t)found;
	return rows;
}

enum weir_status weir_table_view_gather(const weir_table_view *view, const weir_tensor *indices,
                                        const weir_allocator *allocator, weir_tensor **out, weir_error *error)
{
	const struct weiri_root *root;
	const struct weiri_rows *rows;
	enum weir_status status;

	if (view == NULL || view->hold.pointer == NULL || out == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "gather: %s", out == NULL ? "out is NULL" : "there is no view");
	root = weiri_root_of(&view->hold);
	rows = &root->geometry->rows;
	status = weiri_indices_check(rows, indices, error);
	if (status == WEIR_OK)
		status = weiri_gather_create(rows, indices, allocator, out, error);
	for (int64_t i = 0; status == WEIR_OK && i < indices->elements; i++)
		memcpy((char *)(*out)->data + (size_t)i * rows->bytes, weiri_root_row(root, (size_t)weiri_index_at(indices, i)),
		       rows->bytes);
	return status;
}

enum weir_status weir_table_gather(weir_table *table, const weir_tensor *indices, const weir_allocator *allocator,
                                   weir_tensor **out, weir_error *error)
{
	weir_table_view view;
	enum weir_status status = weir_table_read(table, &view);

	if (status != WEIR_OK)
		return weiri_fail(error, status, "gather: the table could not be read");
	status = weir_table_view_gather(&view, indices, allocator, out, error);
	weir_table_view_release(&view);
	return status;
}

/* -- scatter ----------------------------------------------------------------------------------- */

/* One call of weir_table_scatter(), with all its attempts. */
struct writing {
	const struct weiri_scatter *scatter;
	struct weiri_draft draft;
};

bool weiri_draft_scatter(struct weiri_draft *draft, const struct weiri_rows *rows, const struct weiri_scatter *scatter)
{
	const char *update = scatter->from;

	for (int64_t i = 0; i < scatter->indices->elements; i++, update += scatter->step) {
		char *row = weiri_draft_row(draft, (size_t)weiri_index_at(scatter->indices, i));

		if (row == NULL)
			return false;
		weiri_row_combine(scatter->how, rows->dtype, row, update, rows->elements);
	}
	return true;
}

/* The function of the update. The arguments were checked before, so only memory can be missing. */
static enum weir_status scatter(void *context, const weir_read *current, weir_value *next, weir_error *error)
{
	const struct weiri_root *from = weiri_root_of(current);
	const struct weiri_rows *rows = &from->geometry->rows;
	struct writing *writing = context;

	if (weiri_draft_from(&writing->draft, from)) {
		if (weiri_draft_scatter(&writing->draft, rows, writing->scatter))
			next->pointer = writing->draft.root;
		else
			weiri_root_end(writing->draft.root, false);
	}
	if (next->pointer == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "table \"%s\": no memory for the pages that change",
		                  rows->name);
	return WEIR_OK;
}

/* Publishes a version with the changes. The handle keeps it for the sweep. */
static enum weir_status publish(weir_table *table, const struct weiri_scatter *work, uint64_t deadline_ns,
                                weir_read *handle, weir_error *error)
{
	struct writing writing = {.scatter = work};
	enum weir_status status;

	weiri_draft_init(&writing.draft, table->geometry);
	status = weiri_table_var_update(table->var, scatter, &writing, deadline_ns, handle, error);
	if (status == WEIR_OK)
		weiri_draft_sweep(&writing.draft, handle->pointer);
	weiri_draft_fini(&writing.draft, table->geometry);
	return status;
}

enum weir_status weir_table_scatter(weir_table *table, enum weir_scatter how, const weir_tensor *indices,
                                    const weir_tensor *updates, uint64_t deadline_ns, weir_table_view *published,
                                    weir_error *error)
{
	const struct weiri_geometry *geometry;
	struct weiri_scatter work;
	enum weir_status status;
	weir_read handle;

	if (table == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "scatter: table is NULL");
	geometry = table->geometry;
	status = weiri_scatter_init(&work, &geometry->rows, (enum weiri_combine)how, indices, updates, &geometry->allocator,
	                            error);
	if (status != WEIR_OK)
		return status;
	status = publish(table, &work, deadline_ns, &handle, error);
	if (status == WEIR_OK && published != NULL)
		*published = (weir_table_view){handle.version, handle};
	else if (status == WEIR_OK)
		weir_read_release(&handle);
	weiri_scatter_fini(&work, &geometry->rows, &geometry->allocator);
	return status;
}
