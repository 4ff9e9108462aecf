/*
 * restore.c - restoring variables from a safetensors file: all at one instant, or none.
 */
#include <stdalign.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "checkpoint/header.h"
#include "checkpoint/plain.h"
#include "checkpoint/save.h"
#include "table/table.h"

enum { LENGTH_BYTES = 8, BITS = 8 };

/* A file being read, with its header. */
struct source {
	struct weiri_input input;
	struct weiri_plain file; /* its path, for messages */
	char *text;              /* memory of the header */
	size_t text_size;
	struct weiri_saved_header header;
	weir_allocator allocator;
};

/* -- the header -------------------------------------------------------------------------------- */

/*
 * Reads the length of the header. Checks that this length is allowed, and that the file has as many
 * bytes.
 */
static enum weir_status read_length(struct source *source, weir_error *error)
{
	unsigned char bytes[LENGTH_BYTES];
	uint64_t length = 0, rest;
	enum weir_status status;

	if (source->input.size < LENGTH_BYTES)
		return weiri_fail(error, WEIR_DATA_LOSS, "checkpoint %s: %llu byte%s, expected at least 8", source->file.text,
		                  (unsigned long long)source->input.size, WEIRI_S(source->input.size));
	status = weiri_input_read(&source->input, 0, bytes, sizeof(bytes), error);
	if (status != WEIR_OK)
		return status;
	for (size_t i = 0; i < LENGTH_BYTES; i++)
		length |= (uint64_t)bytes[i] << (BITS * i);
	rest = source->input.size - LENGTH_BYTES;
	if (length > rest || length > WEIR_CHECKPOINT_MAX_HEADER)
		return weiri_fail(error, WEIR_DATA_LOSS,
		                  "checkpoint %s: a header of %llu bytes, expected at most %d and the %llu that the file has",
		                  source->file.text, (unsigned long long)length, WEIR_CHECKPOINT_MAX_HEADER,
		                  (unsigned long long)rest);
	source->text_size = (size_t)length;
	return WEIR_OK;
}

static enum weir_status read_header(struct source *source, weir_error *error)
{
	enum weir_status status = read_length(source, error);

	if (status != WEIR_OK)
		return status;
	if (source->text_size == 0)
		return weiri_fail(error, WEIR_DATA_LOSS, "checkpoint %s: the header is empty", source->file.text);
	source->text = weiri_allocate(&source->allocator, source->text_size, 1);
	if (source->text == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "checkpoint %s: no memory for a header of %zu bytes",
		                  source->file.text, source->text_size);
	status = weiri_input_read(&source->input, LENGTH_BYTES, source->text, source->text_size, error);
	if (status == WEIR_OK)
		status = weiri_saved_header_read(source->text, source->text_size,
		                                 source->input.size - LENGTH_BYTES - source->text_size, source->file.text,
		                                 &source->header, error);
	if (status != WEIR_OK)
		weiri_release(&source->allocator, source->text, source->text_size, 1);
	return status;
}

static enum weir_status open_source(const char *path, const weir_allocator *allocator, struct source *source,
                                    weir_error *error)
{
	enum weir_status status;

	*source = (struct source){.file = weiri_plain_path(path), .allocator = *allocator};
	status = weiri_input_open(path, &source->input, error);
	if (status != WEIR_OK)
		return status;
	status = read_header(source, error);
	if (status != WEIR_OK)
		weiri_input_close(&source->input);
	return status;
}

static void close_source(struct source *source)
{
	weiri_release(&source->allocator, source->text, source->text_size, 1);
	weiri_input_close(&source->input);
}

/* -- the tensors ------------------------------------------------------------------------------- */

/* What a variable or a table takes. */
struct taken {
	const char *what, *name;
	enum weir_dtype dtype;
	const weir_shape *shape; /* NULL: any */
};

/* Checks that the tensor in the file is what is taken. */
static enum weir_status check_fit(const struct source *source, const struct weiri_saved_tensor *saved,
                                  const struct taken *taken, weir_error *error)
{
	struct weiri_plain name = weiri_plain_name(saved->name);
	char here[WEIR_SHAPE_TEXT_SIZE], there[WEIR_SHAPE_TEXT_SIZE];

	if (saved->dtype->dtype != taken->dtype)
		return weiri_fail(error, WEIR_FAILED_PRECONDITION,
		                  "checkpoint %s: tensor \"%s\" is of %s, %s \"%s\" expects %s", source->file.text, name.text,
		                  saved->dtype->name, taken->what, taken->name, weir_dtype_name(taken->dtype));
	if (taken->shape != NULL && !weir_shape_fits(taken->shape, &saved->shape))
		return weiri_fail(error, WEIR_FAILED_PRECONDITION,
		                  "checkpoint %s: tensor \"%s\" has shape %s, %s \"%s\" expects %s", source->file.text,
		                  name.text, weir_shape_text(&saved->shape, there, sizeof(there)), taken->what, taken->name,
		                  weir_shape_text(taken->shape, here, sizeof(here)));
	return WEIR_OK;
}

static enum weir_status check_fits_var(const struct source *source, const struct weiri_saved_tensor *saved,
                                       weir_var *var, weir_error *error)
{
	struct taken taken = {"variable", weir_var_name(var), weir_var_dtype(var), weir_var_shape(var)};
	const struct weiri_geometry *geometry;
	weir_shape shape;

	if (weir_var_kind(var) == WEIR_VAR_TABLE) {
		geometry = weiri_table_geometry(var);
		if (geometry == NULL)
			return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "checkpoint %s: no memory for this thread's record",
			                  source->file.text);
		weiri_table_shape(&geometry->rows, &shape);
		taken = (struct taken){"table", weir_var_name(var), geometry->rows.dtype, &shape};
	}
	return check_fit(source, saved, &taken, error);
}

static enum weir_status find_part(const struct source *source, const struct weir_checkpoint_part *part, size_t index,
                                  size_t *wanted, weir_error *error)
{
	const char *name = weiri_checkpoint_name(part);
	struct weiri_saved_tensor saved;
	enum weir_status status;

	if (part->var == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "checkpoint %s: part %zu has no variable", source->file.text,
		                  index);
	status = weiri_checkpoint_check_kind(part->var, source->file.text, error);
	if (status != WEIR_OK)
		return status;
	*wanted = weiri_saved_header_find(&source->header, name);
	if (*wanted == source->header.count)
		return weiri_fail(error, WEIR_FAILED_PRECONDITION, "checkpoint %s: no tensor \"%s\" among its %zu",
		                  source->file.text, weiri_plain_name(name).text, source->header.count);
	saved = weiri_saved_header_at(&source->header, *wanted);
	return check_fits_var(source, &saved, part->var, error);
}

/*
 * Checks that the elements of a bool tensor are 0 or 1. To read another byte as bool would be
 * undefined behaviour.
 */
static enum weir_status check_bytes(const struct source *source, const struct weiri_saved_tensor *saved,
                                    const unsigned char *bytes, size_t count, weir_error *error)
{
	for (size_t i = 0; saved->dtype->dtype == WEIR_BOOL && i < count; i++) {
		struct weiri_plain name = weiri_plain_name(saved->name);

		if (bytes[i] > 1)
			return weiri_fail(error, WEIR_DATA_LOSS, "checkpoint %s: tensor \"%s\": element %zu is %d, expected 0 or 1",
			                  source->file.text, name.text, i, bytes[i]);
	}
	return WEIR_OK;
}

static enum weir_status fill(const struct source *source, const struct weiri_saved_tensor *saved, void *bytes,
                             weir_error *error)
{
	size_t count = (size_t)(saved->end - saved->begin);
	enum weir_status status = weiri_input_read(
		&source->input, LENGTH_BYTES + (uint64_t)source->text_size + saved->begin, bytes, count, error);

	if (status != WEIR_OK)
		return status;
	weiri_little_endian(bytes, count, saved->dtype->size);
	return check_bytes(source, saved, bytes, count, error);
}

static enum weir_status read_tensor(const struct source *source, const struct weiri_saved_tensor *saved,
                                    weir_tensor **out, weir_error *error)
{
	struct weiri_plain name = weiri_plain_name(saved->name);
	weir_tensor_builder *builder;
	enum weir_status status =
		weir_tensor_builder_create_unfilled(saved->dtype->dtype, &saved->shape, &source->allocator, &builder, NULL);

	if (status != WEIR_OK)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "checkpoint %s: tensor \"%s\": no memory for %llu byte%s",
		                  source->file.text, name.text, (unsigned long long)(saved->end - saved->begin),
		                  WEIRI_S(saved->end - saved->begin));
	status = fill(source, saved, weir_tensor_builder_data(builder), error);
	if (status == WEIR_OK)
		return weir_tensor_builder_finish(builder, out);
	weir_tensor_builder_discard(builder);
	return status;
}

/* -- all of them ------------------------------------------------------------------------------- */

/* Checks that every tensor of the file is wanted. Called unless the caller's flags allow others. */
static enum weir_status check_others(const struct source *source, const size_t wanted[], size_t count,
                                     weir_error *error)
{
	for (size_t i = 0; i < source->header.count; i++) {
		size_t j = 0;

		while (j < count && wanted[j] != i)
			j++;
		if (j == count)
			return weiri_fail(error, WEIR_FAILED_PRECONDITION,
			                  "checkpoint %s: nothing takes its tensor \"%s\" (of %zu)", source->file.text,
			                  weiri_plain_name(weiri_saved_header_at(&source->header, i).name).text,
			                  source->header.count);
	}
	return WEIR_OK;
}

/* The working memory of a restore. */
struct work {
	struct weir_value_part *commit;
	weir_tensor **tensors;
	size_t *wanted; /* positions in the header */
};

/* Reads every wanted tensor. A failure leaves those that were read before in work->tensors. */
static enum weir_status read_parts(const struct source *source, const struct weir_checkpoint_part parts[], size_t count,
                                   uint32_t flags, struct work *work, weir_error *error)
{
	enum weir_status status = WEIR_OK;

	/*
	 * All checks of the header come first, so that no large data is read for a header that is
	 * refused.
	 */
	for (size_t i = 0; status == WEIR_OK && i < count; i++)
		status = find_part(source, &parts[i], i, &work->wanted[i], error);
	if (status == WEIR_OK && (flags & WEIR_CHECKPOINT_ALLOW_OTHERS) == 0)
		status = check_others(source, work->wanted, count, error);
	for (size_t i = 0; status == WEIR_OK && i < count; i++) {
		struct weiri_saved_tensor saved = weiri_saved_header_at(&source->header, work->wanted[i]);

		work->commit[i].var = parts[i].var;
		status = read_tensor(source, &saved, &work->tensors[i], error);
	}
	return status;
}

/* The commit failed, or is not made: ends the first `count` of the versions of tables. */
static void discard(struct weir_value_part commit[], size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (commit[i].value.kind == WEIR_VAR_TABLE)
			weiri_root_end(commit[i].value.pointer, false);
	}
}

/* Makes the parts of the commit, on the newest versions. */
static enum weir_status make_parts(const struct work *work, size_t count, const char *file, weir_error *error)
{
	for (size_t i = 0; i < count; i++) {
		struct weir_value_part *part = &work->commit[i];

		if (weir_var_kind(part->var) != WEIR_VAR_TABLE) {
			part->expected = weir_var_version(part->var);
			part->value = weir_value_tensor(work->tensors[i]);
		} else if (weiri_table_replace(part->var, work->tensors[i], &part->value, &part->expected) != WEIR_OK) {
			discard(work->commit, i);
			return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "checkpoint %s: no memory for the pages of table \"%s\"",
			                  file, weir_var_name(part->var));
		}
	}
	return WEIR_OK;
}

/* Commits the values over any versions. An attempt aborts only if another writer was faster. */
static enum weir_status publish(const struct work *work, size_t count, const char *file, uint64_t deadline_ns,
                                weir_error *error)
{
	for (;;) {
		enum weir_status status = make_parts(work, count, file, error);

		if (status != WEIR_OK)
			return status;
		status = weir_var_commit_values(work->commit, count, deadline_ns, NULL, error);
		if (status != WEIR_OK)
			discard(work->commit, count);
		if (status != WEIR_ABORTED)
			return status;
		if (weir_now_ns() >= deadline_ns)
			return weiri_fail(error, WEIR_DEADLINE_EXCEEDED,
			                  "checkpoint %s: other writers moved a variable during each attempt", file);
	}
}

static enum weir_status restore(const struct source *source, const struct weir_checkpoint_part parts[], size_t count,
                                uint32_t flags, uint64_t deadline_ns, weir_error *error)
{
	const size_t each = sizeof(struct weir_value_part) + sizeof(weir_tensor *) + sizeof(size_t);
	struct work work;
	enum weir_status status;

	work.commit = weiri_allocate_zeroed(&source->allocator, count * each, alignof(struct weir_value_part));
	if (work.commit == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "checkpoint %s: no memory for a commit of %zu variable%s",
		                  source->file.text, count, WEIRI_S(count));
	work.tensors = (void *)(work.commit + count);
	work.wanted = (void *)(work.tensors + count);
	status = read_parts(source, parts, count, flags, &work, error);
	if (status == WEIR_OK)
		status = publish(&work, count, source->file.text, deadline_ns, error);
	for (size_t i = 0; i < count; i++)
		weir_tensor_release(work.tensors[i]);
	weiri_release(&source->allocator, work.commit, count * each, alignof(struct weir_value_part));
	return status;
}

enum weir_status weir_checkpoint_restore(const struct weir_checkpoint_part parts[], size_t count, const char *path,
                                         const struct weir_checkpoint_options *options, uint64_t deadline_ns,
                                         weir_error *error)
{
	struct weir_checkpoint_options given;
	weir_allocator allocator;
	struct source source;
	enum weir_status status =
		weiri_checkpoint_check(options, WEIR_CHECKPOINT_ALLOW_OTHERS, parts, count, path, &given, error);

	if (status != WEIR_OK)
		return status;
	allocator = weiri_allocator_or_default(given.allocator);
	status = open_source(path, &allocator, &source, error);
	if (status != WEIR_OK)
		return status;
	status = restore(&source, parts, count, given.flags, deadline_ns, error);
	close_source(&source);
	return status;
}
