/*
 * data.c - see data.h.
 *
 * The file is a dataset: a generator gives its lines, and a map makes an image and a label of each. The
 * rows are kept (cache), so that only the first reading opens the file. Each part is a filter of them.
 */
#include "data.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "failure.h"

enum { COLUMNS = DIGIT_PIXELS + 1, LINE_BYTES = 1024, SHOWN_BYTES = 16 };
/* The components of a line, and those of a row of the file. */
enum { LINE_TEXT, LINE_NUMBER, LINE_WIDTH };
enum { ROW_IMAGE, ROW_LABEL, ROW_NUMBER, ROW_WIDTH, PART_WIDTH = ROW_NUMBER };

static const enum weir_dtype line_dtypes[LINE_WIDTH] = {WEIR_BYTES, WEIR_I64};
static const enum weir_dtype row_dtypes[ROW_WIDTH] = {WEIR_F32, WEIR_I64, WEIR_I64};

/* -- the lines of a file ----------------------------------------------------------------------- */

/* A reading of the file. */
struct reader {
	const char *path;
	gzFile file;
	int64_t line; /* the number of the last one, from 1 */
	char text[LINE_BYTES];
};

static enum weir_status fail_to_read(const struct reader *reader, weir_error *error)
{
	size_t path_length = strlen(reader->path);
	int code;
	const char *why = gzerror(reader->file, &code);

	if (strncmp(why, reader->path, path_length) == 0 && strncmp(why + path_length, ": ", 2) == 0)
		why += path_length + 2; /* zlib names the file, and so does our message */
	if (code == Z_ERRNO)
		return failure(error, WEIR_DATA_LOSS, "%s: line %lld: cannot be read: %s", reader->path,
		               (long long)reader->line, strerror(errno));
	return failure(error, WEIR_DATA_LOSS, "%s: line %lld: the compressed data are damaged: %s", reader->path,
	               (long long)reader->line, why);
}

static enum weir_status open_file(void *context, void **state, weir_error *error)
{
	struct reader *reader = calloc(1, sizeof(*reader));

	if (reader == NULL)
		return failure(error, WEIR_RESOURCE_EXHAUSTED, "there is no memory to read a file");
	reader->path = context;
	errno = 0;
	reader->file = gzopen(reader->path, "rb");
	if (reader->file == NULL) {
		free(reader);
		return failure(error, WEIR_NOT_FOUND, "cannot open %s: %s", (const char *)context,
		               errno != 0 ? strerror(errno) : "no memory");
	}
	*state = reader;
	return WEIR_OK;
}

static void close_file(void *context, void *state)
{
	struct reader *reader = state;

	(void)context;
	(void)gzclose(reader->file);
	free(reader);
}

/* WEIR_OUT_OF_RANGE at the end of the file. */
static enum weir_status read_line(struct reader *reader, weir_error *error)
{
	const char *text = gzgets(reader->file, reader->text, LINE_BYTES);
	size_t length = text != NULL ? strlen(text) : 0;
	int code;

	reader->line++;
	(void)gzerror(reader->file, &code);
	if (code != Z_OK && code != Z_STREAM_END)
		return fail_to_read(reader, error);
	if (text == NULL && reader->line <= HELD_OUT_EVERY)
		return failure(error, WEIR_DATA_LOSS, "%s: line %lld: the file ends; at least %d rows are needed", reader->path,
		               (long long)reader->line, HELD_OUT_EVERY);
	if (length == LINE_BYTES - 1 && text[length - 1] != '\n')
		return failure(error, WEIR_DATA_LOSS, "%s: line %lld: longer than %d bytes; is this a table of digits?",
		               reader->path, (long long)reader->line, LINE_BYTES - 2);
	return text != NULL ? WEIR_OK : WEIR_OUT_OF_RANGE;
}

static enum weir_status next_line(void *context, void *state, weir_tensor *out[], weir_error *error)
{
	struct reader *reader = state;
	enum weir_status status = read_line(reader, error);

	(void)context;
	if (status != WEIR_OK)
		return status;
	if (weir_tensor_scalar_bytes(reader->text, strlen(reader->text), &out[LINE_TEXT]) != WEIR_OK ||
	    weir_tensor_scalar_i64(reader->line, &out[LINE_NUMBER]) != WEIR_OK)
		return failure(error, WEIR_RESOURCE_EXHAUSTED, "%s: there is no memory for line %lld", reader->path,
		               (long long)reader->line);
	return WEIR_OK;
}

/* -- a line to a row --------------------------------------------------------------------------- */

/* A line, and where its faults are reported. */
struct line {
	const char *path;
	long long number;
	char text[LINE_BYTES];
	weir_error *error;
};

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
static enum weir_status check_end(const struct line *line, const char *at, int column)
{
	int ends = at[strspn(at, "\r\n")] == '\0';

	if (column == COLUMNS)
		return ends ? WEIR_OK
		            : failure(line->error, WEIR_DATA_LOSS, "%s: line %lld: more than %d columns", line->path,
		                      line->number, COLUMNS);
	if (ends)
		return failure(line->error, WEIR_DATA_LOSS, "%s: line %lld: %d columns, expected %d", line->path, line->number,
		               column, COLUMNS);
	return *at == ',' ? WEIR_OK
	                  : failure(line->error, WEIR_DATA_LOSS, "%s: line %lld, column %d: no comma after the number",
	                            line->path, line->number, column);
}

static enum weir_status parse(const struct line *line, float pixels[], int64_t *label)
{
	const char *at = line->text;
	enum weir_status status = WEIR_OK;

	for (int column = 1; column <= COLUMNS && status == WEIR_OK; column++) {
		int limit = column == COLUMNS ? DIGIT_CLASSES - 1 : DIGIT_MAX_PIXEL;
		const char *start = at;
		int number = take_number(&at);
		char shown[SHOWN_BYTES + 1];

		if (number < 0 || number > limit) {
			show(start, shown);
			return failure(line->error, WEIR_DATA_LOSS,
			               "%s: line %lld, column %d: expected a number from 0 to %d, got \"%s\"", line->path,
			               line->number, column, limit, shown);
		}
		if (column == COLUMNS)
			*label = number;
		else
			pixels[column - 1] = (float)number / (float)DIGIT_MAX_PIXEL;
		status = check_end(line, at, column);
		at++;
	}
	return status;
}

static enum weir_status make_row(void *context, weir_tensor *const in[], weir_tensor *out[], weir_error *error)
{
	static const weir_shape image = {1, {DIGIT_PIXELS}};
	const weir_bytes *text = weir_tensor_data(in[LINE_TEXT]);
	int64_t number = *(const int64_t *)weir_tensor_data(in[LINE_NUMBER]), label = 0;
	struct line line = {.path = context, .number = number, .error = error};
	float pixels[DIGIT_PIXELS];
	enum weir_status status;

	if (text->size != 0) /* a text without bytes has no data */
		memcpy(line.text, text->data, text->size);
	status = parse(&line, pixels, &label);
	if (status != WEIR_OK)
		return status;
	if (weir_tensor_copy_of(WEIR_F32, &image, pixels, NULL, &out[ROW_IMAGE]) != WEIR_OK ||
	    weir_tensor_scalar_i64(label, &out[ROW_LABEL]) != WEIR_OK)
		return failure(error, WEIR_RESOURCE_EXHAUSTED, "%s: there is no memory for row %lld", line.path, line.number);
	out[ROW_NUMBER] = weir_tensor_retain(in[LINE_NUMBER]);
	return WEIR_OK;
}

/* -- the rows as datasets ---------------------------------------------------------------------- */

enum weir_status dataset_become(weir_dataset **dataset, enum weir_status status, weir_dataset *const *outer)
{
	weir_dataset_release(*dataset);
	*dataset = status == WEIR_OK ? *outer : NULL;
	return status;
}

static enum weir_status describe_file(const char *path, weir_dataset **file, weir_error *error)
{
	char *own = strdup(path); /* freed with the lines, which are freed behind the rows */
	const struct weir_dataset_generator reader = {WEIR_DATASET_GENERATOR_INIT, open_file, next_line, close_file, own};
	const struct weir_dataset_options lines = {WEIR_DATASET_OPTIONS_INIT, .dtypes = line_dtypes, .width = LINE_WIDTH,
	                                           .dispose = free};
	const struct weir_dataset_options rows = {WEIR_DATASET_OPTIONS_INIT, .dtypes = row_dtypes, .width = ROW_WIDTH};
	weir_dataset *outer = NULL;
	enum weir_status status;

	*file = NULL;
	if (own == NULL)
		return failure(error, WEIR_RESOURCE_EXHAUSTED, "there is no memory for the name of a file");
	status = weir_dataset_generate(&reader, &lines, file, error);
	if (status != WEIR_OK) {
		free(own);
		return status;
	}
	status = weir_dataset_map(*file, make_row, own, &rows, &outer, error);
	if (dataset_become(file, status, &outer) != WEIR_OK)
		return status;
	status = weir_dataset_cache(*file, NULL, &outer, error);
	return dataset_become(file, status, &outer);
}

/* Reads the file, so that its rows are kept, or the first fault is reported. */
static enum weir_status count_rows(weir_dataset *file, int64_t *count, weir_error *error)
{
	weir_tensor *row[ROW_WIDTH];
	weir_iterator *iterator;
	enum weir_status status = weir_iterator_create(file, NULL, &iterator, error);

	if (status != WEIR_OK)
		return status;
	for (*count = 0;; ++*count) {
		status = weir_iterator_next(iterator, WEIR_NO_DEADLINE, NULL, row, ROW_WIDTH, error);
		if (status != WEIR_OK)
			break;
		for (int i = 0; i < ROW_WIDTH; i++)
			weir_tensor_release(row[i]);
	}
	(void)weir_iterator_destroy(iterator, NULL); /* cannot fail here */
	return status == WEIR_OUT_OF_RANGE ? WEIR_OK : status;
}

/* -- two parts --------------------------------------------------------------------------------- */

static bool is_held_out(weir_tensor *const row[])
{
	return *(const int64_t *)weir_tensor_data(row[ROW_NUMBER]) % HELD_OUT_EVERY == 0;
}

static enum weir_status keep_held_out(void *context, weir_tensor *const in[], bool *keep, weir_error *error)
{
	(void)context, (void)error;
	*keep = is_held_out(in);
	return WEIR_OK;
}

static enum weir_status keep_training(void *context, weir_tensor *const in[], bool *keep, weir_error *error)
{
	(void)context, (void)error;
	*keep = !is_held_out(in);
	return WEIR_OK;
}

static enum weir_status drop_number(void *context, weir_tensor *const in[], weir_tensor *out[], weir_error *error)
{
	(void)context, (void)error;
	for (int i = 0; i < PART_WIDTH; i++)
		out[i] = weir_tensor_retain(in[i]);
	return WEIR_OK;
}

static enum weir_status take_part(weir_dataset *file, weir_dataset_filter_fn *keep, weir_dataset **part,
                                  weir_error *error)
{
	const struct weir_dataset_options options = {WEIR_DATASET_OPTIONS_INIT, .dtypes = row_dtypes, .width = PART_WIDTH};
	weir_dataset *outer = NULL;
	enum weir_status status = weir_dataset_filter(file, keep, NULL, NULL, part, error);

	if (status != WEIR_OK)
		return status;
	status = weir_dataset_map(*part, drop_number, NULL, &options, &outer, error);
	return dataset_become(part, status, &outer);
}

enum weir_status digits_read(const char *path, struct digits *training, struct digits *held_out, weir_error *error)
{
	weir_dataset *file;
	int64_t count = 0;
	enum weir_status status = describe_file(path, &file, error);

	*training = *held_out = (struct digits){.count = 0};
	if (status == WEIR_OK)
		status = count_rows(file, &count, error);
	if (status == WEIR_OK)
		status = take_part(file, keep_training, &training->rows, error);
	if (status == WEIR_OK)
		status = take_part(file, keep_held_out, &held_out->rows, error);
	weir_dataset_release(file);
	if (status != WEIR_OK) {
		digits_release(training);
		return status;
	}
	held_out->count = count / HELD_OUT_EVERY;
	training->count = count - held_out->count;
	return WEIR_OK;
}

/* -- rows to tensors --------------------------------------------------------------------------- */

enum weir_status digits_stack(struct digits *digits, weir_error *error)
{
	weir_tensor *parts[PART_WIDTH];
	weir_dataset *whole;
	weir_iterator *iterator = NULL;
	enum weir_status status = weir_dataset_batch(digits->rows, (size_t)digits->count, NULL, &whole, error);

	if (status != WEIR_OK)
		return status;
	status = weir_iterator_create(whole, NULL, &iterator, error);
	if (status == WEIR_OK)
		status = weir_iterator_next(iterator, WEIR_NO_DEADLINE, NULL, parts, PART_WIDTH, error);
	if (status == WEIR_OK) {
		digits->images = parts[ROW_IMAGE];
		digits->labels = parts[ROW_LABEL];
	}
	(void)weir_iterator_destroy(iterator, NULL); /* cannot fail here */
	weir_dataset_release(whole);
	return status;
}

void digits_release(struct digits *digits)
{
	weir_dataset_release(digits->rows);
	weir_tensor_release(digits->images);
	weir_tensor_release(digits->labels);
	*digits = (struct digits){.count = 0};
}
