/*
 * data.c - see data.h.
 */
#include "data.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "failure.h"

enum { COLUMNS = DIGIT_PIXELS + 1, LINE_BYTES = 1024, SHOWN_BYTES = 16 };

struct row {
	float pixels[DIGIT_PIXELS];
	int64_t label;
};

struct rows {
	struct row *row;
	size_t count, room;
};

struct reader {
	const char *path;
	gzFile file;
	unsigned long line;
	char text[LINE_BYTES];
	weir_error *error;
};

static enum weir_status fail_to_read(const struct reader *reader)
{
	size_t path_length = strlen(reader->path);
	int code;
	const char *why = gzerror(reader->file, &code);

	if (strncmp(why, reader->path, path_length) == 0 && strncmp(why + path_length, ": ", 2) == 0)
		why += path_length + 2; /* zlib names the file, and so does our message */
	if (code == Z_ERRNO)
		return failure(reader->error, WEIR_DATA_LOSS, "%s: line %lu: cannot be read: %s", reader->path, reader->line,
		               strerror(errno));
	return failure(reader->error, WEIR_DATA_LOSS, "%s: line %lu: the compressed data are damaged: %s", reader->path,
	               reader->line, why);
}

/* Sets *got to 1 when there was a line, and to 0 at the end of the file. */
static enum weir_status read_line(struct reader *reader, int *got)
{
	const char *text = gzgets(reader->file, reader->text, LINE_BYTES);
	size_t length = text != NULL ? strlen(text) : 0;
	int code;

	reader->line++;
	(void)gzerror(reader->file, &code);
	if (code != Z_OK && code != Z_STREAM_END)
		return fail_to_read(reader);
	*got = text != NULL;
	if (length == LINE_BYTES - 1 && text[length - 1] != '\n')
		return failure(reader->error, WEIR_DATA_LOSS, "%s: line %lu: longer than %d bytes; is this a table of digits?",
		               reader->path, reader->line, LINE_BYTES - 2);
	return WEIR_OK;
}

/* Copies what the file contains there, shortened and printable. */
static void show(const char *text, char shown[SHOWN_BYTES + 1])
{
	size_t length = strcspn(text, ",\r\n");

	if (length > SHOWN_BYTES)
		length = SHOWN_BYTES;
	for (size_t i = 0; i < length; i++)
		shown[i] = isprint((unsigned char)text[i]) ? text[i] : '?';
	shown[length] = '\0';
}

/* Reads a number of one or two digits at *text and moves past it. Returns -1 when there is none. */
static int take_number(const char **text)
{
	const char *at = *text;
	int number = 0;

	while (isdigit((unsigned char)*at) && at - *text < 2)
		number = 10 * number + (*at++ - '0');
	if (at == *text || isdigit((unsigned char)*at))
		return -1;
	*text = at;
	return number;
}

/*
 * Checks what follows the number in `column`: a comma, or the end of the line after the last one.
 */
static enum weir_status check_end(const struct reader *reader, const char *at, int column)
{
	int ends = at[strspn(at, "\r\n")] == '\0';

	if (column == COLUMNS)
		return ends ? WEIR_OK
		            : failure(reader->error, WEIR_DATA_LOSS, "%s: line %lu: more than %d columns", reader->path,
		                      reader->line, COLUMNS);
	if (ends)
		return failure(reader->error, WEIR_DATA_LOSS, "%s: line %lu: %d columns, expected %d", reader->path,
		               reader->line, column, COLUMNS);
	return *at == ',' ? WEIR_OK
	                  : failure(reader->error, WEIR_DATA_LOSS, "%s: line %lu, column %d: no comma after the number",
	                            reader->path, reader->line, column);
}

static enum weir_status parse(const struct reader *reader, struct row *row)
{
	const char *at = reader->text;
	enum weir_status status = WEIR_OK;

	for (int column = 1; column <= COLUMNS && status == WEIR_OK; column++) {
		int limit = column == COLUMNS ? DIGIT_CLASSES - 1 : DIGIT_MAX_PIXEL;
		const char *start = at;
		int number = take_number(&at);
		char shown[SHOWN_BYTES + 1];

		if (number < 0 || number > limit) {
			show(start, shown);
			return failure(reader->error, WEIR_DATA_LOSS,
			               "%s: line %lu, column %d: expected a number from 0 to %d, got \"%s\"", reader->path,
			               reader->line, column, limit, shown);
		}
		if (column == COLUMNS)
			row->label = number;
		else
			row->pixels[column - 1] = (float)number / (float)DIGIT_MAX_PIXEL;
		status = check_end(reader, at, column);
		at++;
	}
	return status;
}

static struct row *add_row(struct rows *rows)
{
	if (rows->count == rows->room) {
		size_t room = rows->room != 0 ? 2 * rows->room : 1024;
		struct row *larger = realloc(rows->row, room * sizeof(*larger));

		if (larger == NULL)
			return NULL;
		rows->row = larger;
		rows->room = room;
	}
	return &rows->row[rows->count++];
}

static enum weir_status read_rows(struct reader *reader, struct rows *rows)
{
	for (;;) {
		int got = 0;
		struct row *row;
		enum weir_status status = read_line(reader, &got);

		if (status != WEIR_OK || !got)
			return status;
		row = add_row(rows);
		if (row == NULL)
			return failure(reader->error, WEIR_RESOURCE_EXHAUSTED, "%s: there is no memory for %zu rows", reader->path,
			               rows->room);
		status = parse(reader, row);
		if (status != WEIR_OK)
			return status;
	}
}

/* -- rows to tensors --------------------------------------------------------------------------- */

static int is_held_out(size_t index)
{
	return index % HELD_OUT_EVERY == HELD_OUT_EVERY - 1;
}

static enum weir_status build(const struct rows *rows, int held_out, struct digits *digits)
{
	size_t held = rows->count / HELD_OUT_EVERY, count = held_out ? held : rows->count - held, at = 0;
	weir_shape images_shape = {2, {(int64_t)count, DIGIT_PIXELS}}, labels_shape = {1, {(int64_t)count}};
	weir_tensor_builder *images = NULL, *labels = NULL;
	enum weir_status status;
	float *pixels;
	int64_t *numbers;

	status = weir_tensor_builder_create(WEIR_F32, &images_shape, NULL, &images, NULL);
	if (status == WEIR_OK)
		status = weir_tensor_builder_create(WEIR_I64, &labels_shape, NULL, &labels, NULL);
	if (status != WEIR_OK) {
		weir_tensor_builder_discard(images);
		return status;
	}
	pixels = weir_tensor_builder_data(images);
	numbers = weir_tensor_builder_data(labels);
	for (size_t i = 0; i < rows->count; i++) {
		if (is_held_out(i) != held_out)
			continue;
		memcpy(pixels + at * DIGIT_PIXELS, rows->row[i].pixels, sizeof(rows->row[i].pixels));
		numbers[at++] = rows->row[i].label;
	}
	digits->count = (int64_t)count;
	(void)weir_tensor_builder_finish(images, &digits->images); /* cannot fail for a builder */
	(void)weir_tensor_builder_finish(labels, &digits->labels);
	return WEIR_OK;
}

static enum weir_status split(const char *path, const struct rows *rows, struct digits *training,
                              struct digits *held_out, weir_error *error)
{
	if (rows->count < HELD_OUT_EVERY)
		return failure(error, WEIR_DATA_LOSS, "%s: line %zu: the file ends; at least %d rows are needed", path,
		               rows->count + 1, HELD_OUT_EVERY);
	if (build(rows, 0, training) != WEIR_OK || build(rows, 1, held_out) != WEIR_OK) {
		digits_release(training);
		return failure(error, WEIR_RESOURCE_EXHAUSTED, "%s: there is no memory for %zu rows", path, rows->count);
	}
	return WEIR_OK;
}

enum weir_status digits_read(const char *path, struct digits *training, struct digits *held_out, weir_error *error)
{
	struct reader reader = {.path = path, .error = error};
	struct rows rows = {NULL, 0, 0};
	enum weir_status status;

	*training = *held_out = (struct digits){0, NULL, NULL};
	errno = 0;
	reader.file = gzopen(path, "rb");
	if (reader.file == NULL)
		return failure(error, WEIR_NOT_FOUND, "cannot open %s: %s", path, errno != 0 ? strerror(errno) : "no memory");
	status = read_rows(&reader, &rows);
	(void)gzclose(reader.file);
	if (status == WEIR_OK)
		status = split(path, &rows, training, held_out, error);
	free(rows.row);
	return status;
}

void digits_release(struct digits *digits)
{
	weir_tensor_release(digits->images);
	weir_tensor_release(digits->labels);
	*digits = (struct digits){0, NULL, NULL};
}
