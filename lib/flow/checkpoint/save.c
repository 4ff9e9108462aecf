/*
 * save.c - writing tensors, and the values of variables at one instant, to a safetensors file.
 */
#include "checkpoint/save.h"

#include <stdalign.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/sort.h"
#include "checkpoint/header.h"
#include "checkpoint/plain.h"
#include "table/table.h"

enum weir_status weiri_checkpoint_check(const struct weir_checkpoint_options *options, uint32_t allowed,
                                        const void *array, size_t count, const char *path,
                                        struct weir_checkpoint_options *given, weir_error *error)
{
	char what[sizeof("checkpoint ") + sizeof(struct weiri_plain)];
	struct weiri_plain file;
	enum weir_status status;

	if (path == NULL || path[0] == '\0')
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "checkpoint: path is %s", path == NULL ? "NULL" : "empty");
	file = weiri_plain_path(path);
	(void)snprintf(what, sizeof(what), "checkpoint %s", file.text);
	status = weiri_options_read(what, options, given, sizeof(*given), error);
	if (status == WEIR_OK)
		status = weiri_options_flags(what, given->flags, allowed, error);
	if (status != WEIR_OK)
		return status;
	if (array == NULL || count == 0 || count > WEIR_COMMIT_MAX_PARTS)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "checkpoint %s: %zu parts%s, expected 1 to %d", file.text,
		                  count, array == NULL ? " at NULL" : "", WEIR_COMMIT_MAX_PARTS);
	return WEIR_OK;
}

/* -- a file of tensors ------------------------------------------------------------------------- */

/* An entry of the header, and what has its bytes. */
struct row {
	struct weiri_saved_tensor saved; /* copied to an array of these for weiri_saved_header_write() */
	const weir_tensor *tensor;       /* NULL: a table */
	const weir_table_view *table;
};

static bool is_table(const weir_table_view *table)
{
	return table != NULL && table->hold.pointer != NULL;
}

static size_t row_bytes(const struct row *row)
{
	const struct weiri_rows *rows;

	if (row->tensor != NULL)
		return weir_tensor_byte_count(row->tensor);
	rows = &weiri_root_of(&row->table->hold)->geometry->rows;
	return (size_t)rows->count * rows->bytes;
}

static int by_name(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return strcmp(x->saved.name, y->saved.name);
}

/*
 * The order of the tensors in the file: by the size of their elements, the largest first, so that
 * all are aligned without gaps; then by name.
 */
static int by_element(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	size_t first = x->saved.dtype->size, second = y->saved.dtype->size;

	return first == second ? by_name(a, b) : first > second ? -1 : 1;
}

/* Fills the row with what is to be saved. Returns its dtype. */
static enum weir_dtype describe(const struct weir_checkpoint_tensor *from, const weir_table_view *table,
                                struct row *row)
{
	const struct weiri_rows *rows;

	*row = (struct row){.saved = {.name = from->name}, .tensor = from->tensor, .table = table};
	if (from->tensor != NULL) {
		row->saved.shape = *weir_tensor_shape(from->tensor);
		return weir_tensor_dtype(from->tensor);
	}
	rows = &weiri_root_of(&table->hold)->geometry->rows;
	weiri_table_shape(rows, &row->saved.shape);
	return rows->dtype;
}

static enum weir_status make_row(const struct weir_checkpoint_tensor *from, const weir_table_view *table, size_t index,
                                 const char *file, struct row *row, weir_error *error)
{
	struct weiri_plain name;
	enum weir_dtype dtype;

	if (from->name == NULL || (from->tensor == NULL && !is_table(table)))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "checkpoint %s: part %zu has no %s", file, index,
		                  from->name == NULL ? "name" : "tensor");
	name = weiri_plain_name(from->name);
	if (!weiri_saved_name_ok(from->name))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT,
		                  "checkpoint %s: part %zu is called \"%s\", expected UTF-8, not empty, not __metadata__", file,
		                  index, name.text);
	dtype = describe(from, table, row);
	row->saved.dtype = weiri_saved_dtype_of(dtype);
	if (row->saved.dtype == NULL)
		return weiri_fail(error, WEIR_UNIMPLEMENTED, "checkpoint %s: tensor \"%s\" is of %s, which safetensors lacks",
		                  file, name.text, weir_dtype_name(dtype));
	return WEIR_OK;
}

/* Makes the rows, in the order of the file, and sets their offsets. */
static enum weir_status make_rows(const struct weir_checkpoint_tensor tensors[], const weir_table_view tables[],
                                  size_t count, const char *file, struct row rows[], weir_error *error)
{
	uint64_t end = 0;

	for (size_t i = 0; i < count; i++) {
		const weir_table_view *table = tables != NULL ? &tables[i] : NULL;
		enum weir_status status = make_row(&tensors[i], table, i, file, &rows[i], error);

		if (status != WEIR_OK)
			return status;
	}
	weiri_sort(rows, count, sizeof(*rows), by_name);
	for (size_t i = 1; i < count; i++) {
		struct weiri_plain name = weiri_plain_name(rows[i].saved.name);

		if (by_name(&rows[i - 1], &rows[i]) == 0)
			return weiri_fail(error, WEIR_INVALID_ARGUMENT, "checkpoint %s: two parts are called \"%s\"", file,
			                  name.text);
	}
	weiri_sort(rows, count, sizeof(*rows), by_element);
	for (size_t i = 0; i < count; i++) {
		rows[i].saved.begin = end;
		/* No overflow: at most 1,024 tensors are in memory, though some may be views of one. */
		end += row_bytes(&rows[i]);
		rows[i].saved.end = end;
	}
	return WEIR_OK;
}

/* The working memory of a save: one allocation for the tables, one for the header. */
struct work {
	struct row *rows;
	struct weiri_saved_tensor *saved;
	struct weiri_span *spans; /* the header, then one for each row */
	char *header;
	size_t header_size;
};

static enum weir_status write_header(struct work *work, size_t count, const char *file, const weir_allocator *allocator,
                                     weir_error *error)
{
	for (size_t i = 0; i < count; i++)
		work->saved[i] = work->rows[i].saved;
	work->header_size = weiri_saved_header_write(work->saved, count, NULL, 0);
	if (work->header_size > WEIR_CHECKPOINT_MAX_HEADER)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "checkpoint %s: a header of %zu bytes, expected at most %d",
		                  file, work->header_size, WEIR_CHECKPOINT_MAX_HEADER);
	work->header = weiri_allocate(allocator, work->header_size, 1);
	if (work->header == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "checkpoint %s: no memory for a header of %zu bytes", file,
		                  work->header_size);
	(void)weiri_saved_header_write(work->saved, count, work->header, work->header_size);
	return WEIR_OK;
}

/* Of type weiri_run_fn. */
static const char *rows_at(const void *view, size_t at, size_t *count)
{
	const weir_table_view *table = view;
	size_t bytes = weiri_root_of(&table->hold)->geometry->rows.bytes;
	int64_t rows;
	const char *run = weir_table_view_rows(table, (int64_t)(at / bytes), &rows);

	*count = (size_t)rows * bytes - at % bytes;
	return run + at % bytes;
}

static void list_spans(struct work *work, size_t count)
{
	work->spans[0] = (struct weiri_span){.bytes = work->header, .count = work->header_size, .element = 1};
	for (size_t i = 0; i < count; i++) {
		const struct row *row = &work->rows[i];
		struct weiri_span *span = &work->spans[i + 1];

		*span = (struct weiri_span){.count = row_bytes(row), .element = row->saved.dtype->size};
		span->bytes = row->tensor != NULL ? weir_tensor_data(row->tensor) : (const void *)row->table;
		span->run = row->tensor != NULL ? NULL : rows_at;
	}
}

enum weir_status weiri_checkpoint_save_on(const struct weiri_disk *disk, const struct weir_checkpoint_tensor tensors[],
                                          const weir_table_view tables[], size_t count,
                                          const struct weir_checkpoint_options *options, const char *path,
                                          weir_error *error)
{
	struct weiri_plain file;
	struct work work = {.header = NULL};
	struct weir_checkpoint_options given;
	weir_allocator allocator;
	enum weir_status status = weiri_checkpoint_check(options, 0, tensors, count, path, &given, error);
	size_t size = count * (sizeof(*work.rows) + sizeof(*work.saved)) + (count + 1) * sizeof(*work.spans);

	if (status != WEIR_OK)
		return status;
	file = weiri_plain_path(path);
	allocator = weiri_allocator_or_default(given.allocator);
	work.rows = weiri_allocate(&allocator, size, alignof(struct row));
	if (work.rows == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "checkpoint %s: no memory for a table of %zu tensor%s",
		                  file.text, count, WEIRI_S(count));
	work.saved = (void *)(work.rows + count);
	work.spans = (void *)(work.saved + count);
	status = make_rows(tensors, tables, count, file.text, work.rows, error);
	if (status == WEIR_OK)
		status = write_header(&work, count, file.text, &allocator, error);
	if (status == WEIR_OK) {
		list_spans(&work, count);
		status = weiri_disk_replace(disk, path, work.spans, count + 1, &allocator, error);
	}
	weiri_release(&allocator, work.header, work.header_size, 1);
	weiri_release(&allocator, work.rows, size, alignof(struct row));
	return status;
}

enum weir_status weir_checkpoint_save_tensors(const struct weir_checkpoint_tensor tensors[], size_t count,
                                              const char *path, const struct weir_checkpoint_options *options,
                                              weir_error *error)
{
	return weiri_checkpoint_save_on(&weiri_real_disk, tensors, NULL, count, options, path, error);
}

enum weir_status weiri_checkpoint_check_kind(const weir_var *var, const char *file, weir_error *error)
{
	enum weir_var_kind kind = weir_var_kind(var);

	if (kind == WEIR_VAR_TENSOR || kind == WEIR_VAR_TABLE)
		return WEIR_OK;
	return weiri_fail(error, WEIR_INVALID_ARGUMENT, "checkpoint %s: variable \"%s\" has %s, not tensors", file,
	                  weiri_plain_name(weir_var_name(var)).text,
	                  kind == WEIR_VAR_INLINE ? "inline values" : "pointers");
}

/* -- a file of variables ----------------------------------------------------------------------- */

struct cut {
	weir_read *reads;
	weir_table_view *tables; /* cleared: a tensor */
	struct weir_checkpoint_tensor *tensors;
	weir_var **vars;
};

/* Takes a snapshot of all variables. The caller releases the handles. */
static enum weir_status take(const struct weir_checkpoint_part parts[], size_t count, const char *file, struct cut *cut,
                             weir_error *error)
{
	enum weir_status status;

	for (size_t i = 0; i < count; i++) {
		cut->vars[i] = parts[i].var;
		status = weiri_checkpoint_check_kind(parts[i].var, file, error);
		if (status != WEIR_OK)
			return status;
	}
	status = weir_var_snapshot(cut->vars, count, cut->reads, error);
	if (status != WEIR_OK)
		return status;
	for (size_t i = 0; i < count; i++) {
		bool is_table = weir_var_kind(parts[i].var) == WEIR_VAR_TABLE;

		cut->tensors[i] =
			(struct weir_checkpoint_tensor){weiri_checkpoint_name(&parts[i]), is_table ? NULL : cut->reads[i].tensor};
		cut->tables[i] = (weir_table_view){0, {.hold = NULL}};
		if (is_table) /* the handle stays that of cut->reads */
			cut->tables[i].hold.pointer = cut->reads[i].pointer;
	}
	return WEIR_OK;
}

enum weir_status weir_checkpoint_save(const struct weir_checkpoint_part parts[], size_t count, const char *path,
                                      const struct weir_checkpoint_options *options, weir_error *error)
{
	const size_t each =
		sizeof(weir_read) + sizeof(weir_table_view) + sizeof(struct weir_checkpoint_tensor) + sizeof(weir_var *);
	struct weiri_plain file;
	struct cut cut;
	struct weir_checkpoint_options given;
	weir_allocator allocator;
	enum weir_status status = weiri_checkpoint_check(options, 0, parts, count, path, &given, error);

	if (status != WEIR_OK)
		return status;
	file = weiri_plain_path(path);
	allocator = weiri_allocator_or_default(given.allocator);
	cut.reads = weiri_allocate(&allocator, count * each, alignof(weir_read));
	if (cut.reads == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "checkpoint %s: no memory for a snapshot of %zu variable%s",
		                  file.text, count, WEIRI_S(count));
	cut.tables = (void *)(cut.reads + count);
	cut.tensors = (void *)(cut.tables + count);
	cut.vars = (void *)(cut.tensors + count);
	status = take(parts, count, file.text, &cut, error);
	if (status == WEIR_OK) {
		status = weiri_checkpoint_save_on(&weiri_real_disk, cut.tensors, cut.tables, count, options, path, error);
		weir_read_release_many(cut.reads, count);
	}
	weiri_release(&allocator, cut.reads, count * each, alignof(weir_read));
	return status;
}
