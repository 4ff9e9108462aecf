/*
 * header_read.c - a safetensors header, which may come from anywhere, read into a table and checked.
 *
 * Bound on memory: a tensor takes at least 45 bytes of header and sizeof(struct weiri_saved_tensor) here, twice that while the table
 * grows. Time: one pass over the text, and two sorts of the table.
 */
#include "checkpoint/header.h"

#include <stdalign.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/sort.h"
#include "checkpoint/json.h"
#include "checkpoint/plain.h"

static const char metadata[] = "__metadata__";

int weiri_saved_name_ok(const char *name)
{
	const char *end = name + strlen(name);

	if (name == end || strcmp(name, metadata) == 0)
		return 0;
	while (name < end) {
		size_t length = weiri_utf8_length(name, end);

		if (length == 0)
			return 0;
		name += length;
	}
	return 1;
}

struct reader {
	struct weiri_json json;
	struct weiri_saved_header *header;
	int no_memory;
	int metadata_seen;
	const char *tensor; /* the one that the fault is in; NULL: none */
};

/* -- syntax ------------------------------------------------------------------------------------------------------------------- */

/* Room for one more. */
static struct weiri_saved_tensor *add(struct reader *reader)
{
	enum { FIRST_ROOM = 16 };
	struct weiri_saved_header *header = reader->header;
	const size_t each = sizeof(*header->tensors);
	size_t room = header->room != 0 ? header->room * 2 : FIRST_ROOM, bytes;
	struct weiri_saved_tensor *larger;

	if (header->count == header->room) {
		larger = weiri_multiply(room, each, &bytes)
		             ? weiri_allocate(&header->allocator, bytes, alignof(struct weiri_saved_tensor))
		             : NULL;
		if (larger == NULL) {
			reader->no_memory = 1;
			return NULL;
		}
		if (header->count != 0)
			memcpy(larger, header->tensors, header->count * each);
		weiri_release(&header->allocator, header->tensors, header->room * each, alignof(struct weiri_saved_tensor));
		header->tensors = larger;
		header->room = room;
	}
	return memset(&header->tensors[header->count++], 0, each);
}

/* After an element of a list or an object: 1, another one follows; 0, the end, or a fault. */
static int more(struct weiri_json *json, char end)
{
	if (weiri_json_take(json, ','))
		return 1;
	(void)weiri_json_need(json, end);
	return 0;
}

static int read_dtype(struct weiri_json *json, struct weiri_saved_tensor *tensor)
{
	char *name;

	if (!weiri_json_string(json, &name))
		return 0;
	tensor->dtype = weiri_saved_dtype_named(name);
	return tensor->dtype != NULL || weiri_json_wrong(json, "a dtype of whole bytes that is known");
}

static int read_shape(struct weiri_json *json, struct weiri_saved_tensor *tensor)
{
	uint64_t dim;

	if (!weiri_json_need(json, '[') || weiri_json_take(json, ']'))
		return json->wanted == NULL;
	do {
		if (tensor->shape.rank == WEIR_MAX_RANK)
			return weiri_json_wrong(json, "at most 8 dims");
		if (!weiri_json_number(json, &dim))
			return 0;
		if (dim > INT64_MAX)
			return weiri_json_wrong(json, "a dim below 2^63");
		tensor->shape.dims[tensor->shape.rank++] = (int64_t)dim;
	} while (more(json, ']'));
	return json->wanted == NULL;
}

static int read_offsets(struct weiri_json *json, struct weiri_saved_tensor *tensor)
{
	return weiri_json_need(json, '[') && weiri_json_number(json, &tensor->begin) && weiri_json_need(json, ',') &&
	       weiri_json_number(json, &tensor->end) && weiri_json_need(json, ']');
}

struct field {
	const char *name;
	int (*read)(struct weiri_json *json, struct weiri_saved_tensor *tensor);
};
static const struct field fields[] = {{"dtype", read_dtype}, {"shape", read_shape}, {"data_offsets", read_offsets}};
enum { FIELDS = sizeof(fields) / sizeof(fields[0]), ALL_FIELDS = (1 << FIELDS) - 1 };

static int read_field(struct weiri_json *json, struct weiri_saved_tensor *tensor, unsigned *seen)
{
	size_t i = 0;
	char *name;

	if (!weiri_json_string(json, &name))
		return 0;
	while (i < FIELDS && strcmp(fields[i].name, name) != 0)
		i++;
	if (i == FIELDS)
		return weiri_json_wrong(json, "\"dtype\", \"shape\" or \"data_offsets\"");
	if ((*seen & 1U << i) != 0)
		return weiri_json_wrong(json, "each field once");
	*seen |= 1U << i;
	return weiri_json_need(json, ':') && fields[i].read(json, tensor);
}

static int read_tensor(struct weiri_json *json, struct weiri_saved_tensor *tensor)
{
	unsigned seen = 0;

	if (!weiri_json_need(json, '{'))
		return 0;
	do {
		if (!read_field(json, tensor, &seen))
			return 0;
	} while (more(json, '}'));
	return json->wanted == NULL &&
	       (seen == ALL_FIELDS || weiri_json_wrong(json, "a dtype, a shape and data_offsets before"));
}

/* Names and texts, for people: only their form matters here. */
static int read_metadata(struct reader *reader)
{
	struct weiri_json *json = &reader->json;
	char *text;

	if (reader->metadata_seen)
		return weiri_json_wrong(json, "one \"__metadata__\"");
	reader->metadata_seen = 1;
	if (!weiri_json_need(json, '{') || weiri_json_take(json, '}'))
		return json->wanted == NULL;
	do {
		if (!weiri_json_string(json, &text) || !weiri_json_need(json, ':') || !weiri_json_string(json, &text))
			return 0;
	} while (more(json, '}'));
	return json->wanted == NULL;
}

static int read_entry(struct reader *reader)
{
	struct weiri_saved_tensor *tensor;
	char *name;

	reader->tensor = NULL;
	if (!weiri_json_string(&reader->json, &name) || !weiri_json_need(&reader->json, ':'))
		return 0;
	if (strcmp(name, metadata) == 0)
		return read_metadata(reader);
	reader->tensor = name;
	tensor = add(reader);
	if (tensor == NULL)
		return 0;
	tensor->name = name;
	return read_tensor(&reader->json, tensor);
}

static int read_entries(struct reader *reader)
{
	struct weiri_json *json = &reader->json;

	/* The format wants it to be the first byte. */
	if (json->at == json->end || *json->at != '{')
		return weiri_json_wrong(json, "'{'");
	json->at++;
	if (!weiri_json_take(json, '}')) {
		do {
			if (!read_entry(reader))
				return 0;
		} while (more(json, '}'));
	}
	return weiri_json_at_end(json);
}

static enum weir_status read_all(struct reader *reader, const char *file, weir_error *error)
{
	struct weiri_plain name;

	if (read_entries(reader))
		return WEIR_OK;
	if (reader->no_memory)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "checkpoint %s: no memory for the table of its tensors",
		                  file);
	if (reader->tensor == NULL)
		return weiri_fail(error, WEIR_DATA_LOSS, "checkpoint %s: header: expected %s at byte %zu", file,
		                  reader->json.wanted, weiri_json_offset(&reader->json));
	name = weiri_plain_name(reader->tensor);
	return weiri_fail(error, WEIR_DATA_LOSS, "checkpoint %s: header: tensor \"%s\": expected %s at byte %zu", file,
	                  name.text, reader->json.wanted, weiri_json_offset(&reader->json));
}

/* -- meaning ------------------------------------------------------------------------------------------------------------------ */

static int by_place(const void *a, const void *b)
{
	const struct weiri_saved_tensor *x = a, *y = b;

	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	return x->end == y->end ? 0 : x->end < y->end ? -1 : 1;
}

static int by_name(const void *a, const void *b)
{
	const struct weiri_saved_tensor *x = a, *y = b;

	return strcmp(x->name, y->name);
}

/* That the offsets are of as many bytes as dtype and shape take. */
static enum weir_status check_size(const struct weiri_saved_tensor *tensor, const char *file, weir_error *error)
{
	struct weiri_plain name = weiri_plain_name(tensor->name);
	char shape[WEIR_SHAPE_TEXT_SIZE];
	int64_t elements;
	uint64_t bytes;

	(void)weir_shape_text(&tensor->shape, shape, sizeof(shape));
	if (weir_shape_elements(&tensor->shape, &elements) != WEIR_OK ||
	    __builtin_mul_overflow((uint64_t)elements, (uint64_t)tensor->dtype->size, &bytes))
		return weiri_fail(error, WEIR_DATA_LOSS, "checkpoint %s: tensor \"%s\": %s %s has too many bytes", file,
		                  name.text, tensor->dtype->name, shape);
	if (tensor->end < tensor->begin || tensor->end - tensor->begin != bytes)
		return weiri_fail(error, WEIR_DATA_LOSS,
		                  "checkpoint %s: tensor \"%s\": %s %s takes %llu bytes, its offsets are [%llu,%llu]", file,
		                  name.text, tensor->dtype->name, shape, (unsigned long long)bytes,
		                  (unsigned long long)tensor->begin, (unsigned long long)tensor->end);
	return WEIR_OK;
}

/* That each byte of the data belongs to one tensor. */
static enum weir_status check_places(struct weiri_saved_header *header, uint64_t data_size, const char *file,
                                     weir_error *error)
{
	uint64_t end = 0;

	weiri_sort(header->tensors, header->count, sizeof(*header->tensors), by_place);
	for (size_t i = 0; i < header->count; i++) {
		const struct weiri_saved_tensor *tensor = &header->tensors[i];
		struct weiri_plain name = weiri_plain_name(tensor->name);

		if (tensor->begin != end)
			return weiri_fail(error, WEIR_DATA_LOSS,
			                  "checkpoint %s: tensor \"%s\" begins at byte %llu of the data, expected %llu: %s", file,
			                  name.text, (unsigned long long)tensor->begin, (unsigned long long)end,
			                  tensor->begin > end ? "a gap" : "two tensors overlap");
		end = tensor->end;
	}
	if (end != data_size)
		return weiri_fail(error, WEIR_DATA_LOSS, "checkpoint %s: %llu bytes of data, its tensors take %llu", file,
		                  (unsigned long long)data_size, (unsigned long long)end);
	return WEIR_OK;
}

static enum weir_status check_names(struct weiri_saved_header *header, const char *file, weir_error *error)
{
	weiri_sort(header->tensors, header->count, sizeof(*header->tensors), by_name);
	for (size_t i = 1; i < header->count; i++) {
		struct weiri_plain name = weiri_plain_name(header->tensors[i].name);

		if (by_name(&header->tensors[i - 1], &header->tensors[i]) == 0)
			return weiri_fail(error, WEIR_DATA_LOSS, "checkpoint %s: two tensors are called \"%s\"", file, name.text);
	}
	return WEIR_OK;
}

enum weir_status weiri_saved_header_read(char *text, size_t size, uint64_t data_size, const char *file,
                                         const weir_allocator *allocator, struct weiri_saved_header *header,
                                         weir_error *error)
{
	struct weiri_saved_header read = {NULL, 0, 0, weiri_allocator_or_default(allocator)};
	struct reader reader = {.json = weiri_json_over(text, size), .header = &read};
	enum weir_status status = read_all(&reader, file, error);

	for (size_t i = 0; status == WEIR_OK && i < read.count; i++)
		status = check_size(&read.tensors[i], file, error);
	if (status == WEIR_OK)
		status = check_places(&read, data_size, file, error);
	if (status == WEIR_OK)
		status = check_names(&read, file, error);
	if (status == WEIR_OK)
		*header = read;
	else
		weiri_saved_header_fini(&read);
	return status;
}

void weiri_saved_header_fini(struct weiri_saved_header *header)
{
	weiri_release(&header->allocator, header->tensors, header->room * sizeof(*header->tensors),
	              alignof(struct weiri_saved_tensor));
}

const struct weiri_saved_tensor *weiri_saved_header_find(const struct weiri_saved_header *header, const char *name)
{
	size_t first = 0, last = header->count;

	while (first < last) {
		size_t middle = first + (last - first) / 2;
		int order = strcmp(name, header->tensors[middle].name);

		if (order == 0)
			return &header->tensors[middle];
		if (order < 0)
			last = middle;
		else
			first = middle + 1;
	}
	return NULL;
}
