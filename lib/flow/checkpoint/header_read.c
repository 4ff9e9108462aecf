/*
 * header_read.c - reading and checking a safetensors header, which may come from an untrusted
 * source.
 *
 * Memory: only that of the text, which the table replaces while the text is read (packed.h).
 * Time: one pass over the text, one over the records, and two sorts of the index by a number. The
 * first sort is by place, and is left out if the file has that order already. The second is by the
 * hash of the name. Names that were made to share a hash are compared as strings, at most n log n
 * times.
 */
#include "checkpoint/header.h"

#include <string.h>

#include "base/error.h"
#include "base/sort.h"
#include "checkpoint/json.h"
#include "checkpoint/packed.h"
#include "checkpoint/plain.h"

static const char metadata[] = "__metadata__";

bool weiri_saved_name_ok(const char *name)
{
	const char *end = name + strlen(name);

	if (name == end || strcmp(name, metadata) == 0)
		return false;
	while (name < end) {
		size_t length = weiri_utf8_length(name, end);

		if (length == 0)
			return false;
		name += length;
	}
	return true;
}

struct reader {
	struct weiri_json json;
	char *packed; /* the end of the records so far, never past json.at */
	size_t count; /* number of records */
	bool metadata_seen;
	const char *tensor; /* the tensor that contains the fault; NULL: none */
};

/* -- syntax ------------------------------------------------------------------------------------ */

/*
 * Called after an element of a list or an object. Returns true if another element follows; false at
 * the end, or after a fault.
 */
static bool more(struct weiri_json *json, char end)
{
	if (weiri_json_take(json, ','))
		return true;
	(void)weiri_json_need(json, end);
	return false;
}

static bool read_dtype(struct weiri_json *json, struct weiri_saved_tensor *tensor)
{
	char *name;

	if (!weiri_json_string(json, &name))
		return false;
	tensor->dtype = weiri_saved_dtype_named(name);
	return tensor->dtype != NULL || weiri_json_wrong(json, "a dtype of whole bytes that is known");
}

static bool read_shape(struct weiri_json *json, struct weiri_saved_tensor *tensor)
{
	uint64_t dim;

	if (!weiri_json_need(json, '[') || weiri_json_take(json, ']'))
		return json->wanted == NULL;
	do {
		if (tensor->shape.rank == WEIR_MAX_RANK)
			return weiri_json_wrong(json, "at most 8 dims");
		if (!weiri_json_number(json, &dim))
			return false;
		if (dim > INT64_MAX)
			return weiri_json_wrong(json, "a dim below 2^63");
		tensor->shape.dims[tensor->shape.rank++] = (int64_t)dim;
	} while (more(json, ']'));
	return json->wanted == NULL;
}

static bool read_offsets(struct weiri_json *json, struct weiri_saved_tensor *tensor)
{
	return weiri_json_need(json, '[') && weiri_json_number(json, &tensor->begin) && weiri_json_need(json, ',') &&
	       weiri_json_number(json, &tensor->end) && weiri_json_need(json, ']');
}

struct field {
	const char *name;
	bool (*read)(struct weiri_json *json, struct weiri_saved_tensor *tensor);
};
static const struct field fields[] = {{"dtype", read_dtype}, {"shape", read_shape}, {"data_offsets", read_offsets}};
enum { FIELDS = sizeof(fields) / sizeof(fields[0]), ALL_FIELDS = (1 << FIELDS) - 1 };

static bool read_field(struct weiri_json *json, struct weiri_saved_tensor *tensor, unsigned *seen)
{
	size_t i = 0;
	char *name;

	if (!weiri_json_string(json, &name))
		return false;
	while (i < FIELDS && strcmp(fields[i].name, name) != 0)
		i++;
	if (i == FIELDS)
		return weiri_json_wrong(json, "\"dtype\", \"shape\" or \"data_offsets\"");
	if ((*seen & 1U << i) != 0)
		return weiri_json_wrong(json, "each field once");
	*seen |= 1U << i;
	return weiri_json_need(json, ':') && fields[i].read(json, tensor);
}

static bool read_tensor(struct weiri_json *json, struct weiri_saved_tensor *tensor)
{
	unsigned seen = 0;

	if (!weiri_json_need(json, '{'))
		return false;
	do {
		if (!read_field(json, tensor, &seen))
			return false;
	} while (more(json, '}'));
	return json->wanted == NULL &&
	       (seen == ALL_FIELDS || weiri_json_wrong(json, "a dtype, a shape and data_offsets before"));
}

/* Reads the metadata, which are names and texts for users. Only their syntax is checked. */
static bool read_metadata(struct reader *reader)
{
	struct weiri_json *json = &reader->json;
	char *text;

	if (reader->metadata_seen)
		return weiri_json_wrong(json, "one \"__metadata__\"");
	reader->metadata_seen = true;
	if (!weiri_json_need(json, '{') || weiri_json_take(json, '}'))
		return json->wanted == NULL;
	do {
		if (!weiri_json_string(json, &text) || !weiri_json_need(json, ':') || !weiri_json_string(json, &text))
			return false;
	} while (more(json, '}'));
	return json->wanted == NULL;
}

static bool read_entry(struct reader *reader)
{
	struct weiri_saved_tensor tensor = {.name = NULL};
	char *name;

	reader->tensor = NULL;
	if (!weiri_json_string(&reader->json, &name) || !weiri_json_need(&reader->json, ':'))
		return false;
	if (strcmp(name, metadata) == 0)
		return read_metadata(reader);
	reader->tensor = tensor.name = name;
	if (!read_tensor(&reader->json, &tensor))
		return false;
	reader->tensor = reader->packed; /* weiri_pack() moves the name there */
	reader->packed = weiri_pack(reader->packed, &tensor);
	reader->count++;
	return true;
}

static bool read_entries(struct reader *reader)
{
	struct weiri_json *json = &reader->json;

	/* The format requires '{' to be the first byte. */
	if (json->at == json->end || *json->at != '{')
		return weiri_json_wrong(json, "'{'");
	json->at++;
	if (!weiri_json_take(json, '}')) {
		do {
			if (!read_entry(reader))
				return false;
		} while (more(json, '}'));
	}
	return weiri_json_at_end(json);
}

static enum weir_status read_all(struct reader *reader, const char *file, weir_error *error)
{
	struct weiri_plain name;

	if (read_entries(reader))
		return WEIR_OK;
	if (reader->tensor == NULL)
		return weiri_fail(error, WEIR_DATA_LOSS, "checkpoint %s: header: expected %s at byte %zu", file,
		                  reader->json.wanted, weiri_json_offset(&reader->json));
	name = weiri_plain_name(reader->tensor);
	return weiri_fail(error, WEIR_DATA_LOSS, "checkpoint %s: header: tensor \"%s\": expected %s at byte %zu", file,
	                  name.text, reader->json.wanted, weiri_json_offset(&reader->json));
}

/* -- semantics --------------------------------------------------------------------------------- */

/* FNV-1a (Fowler, Noll, Vo). */
static uint64_t hash_of(const char *name)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (; *name != '\0'; name++)
		hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
	return hash;
}

/*
 * Returns the number by which the first sort orders a tensor; the index has it in place of the
 * hash. Of two tensors that begin at the same byte, the one without bytes comes first, since it
 * overlaps no other.
 */
static uint64_t place_of(const struct weiri_saved_tensor *tensor)
{
	return tensor->begin << 1 | (tensor->end != tensor->begin);
}

static int by_number(const void *a, const void *b)
{
	const struct weiri_saved_key *x = a, *y = b;

	return x->hash < y->hash ? -1 : x->hash > y->hash;
}

/* A record begins with its name. */
static int by_name(const void *a, const void *b)
{
	const struct weiri_saved_key *x = a, *y = b;
	int order = by_number(x, y);

	return order != 0 ? order : strcmp(x->record, y->record);
}

/*
 * Checks that the offsets span as many bytes as dtype and shape require, and begin inside the data.
 */
static enum weir_status check_size(const struct weiri_saved_tensor *tensor, uint64_t data_size, const char *file,
                                   weir_error *error)
{
	char shape[WEIR_SHAPE_TEXT_SIZE];
	int64_t elements;
	uint64_t bytes;

	if (weir_shape_element_count(&tensor->shape, &elements) != WEIR_OK ||
	    __builtin_mul_overflow((uint64_t)elements, (uint64_t)tensor->dtype->size, &bytes))
		return weiri_fail(error, WEIR_DATA_LOSS, "checkpoint %s: tensor \"%s\": %s %s has too many bytes", file,
		                  weiri_plain_name(tensor->name).text, tensor->dtype->name,
		                  weir_shape_text(&tensor->shape, shape, sizeof(shape)));
	if (tensor->end < tensor->begin || tensor->end - tensor->begin != bytes)
		return weiri_fail(error, WEIR_DATA_LOSS,
		                  "checkpoint %s: tensor \"%s\": %s %s takes %llu byte%s, its offsets are [%llu,%llu]", file,
		                  weiri_plain_name(tensor->name).text, tensor->dtype->name,
		                  weir_shape_text(&tensor->shape, shape, sizeof(shape)), (unsigned long long)bytes,
		                  WEIRI_S(bytes), (unsigned long long)tensor->begin, (unsigned long long)tensor->end);
	if (tensor->begin > data_size)
		return weiri_fail(error, WEIR_DATA_LOSS,
		                  "checkpoint %s: tensor \"%s\" begins at byte %llu of the data, of which there are %llu", file,
		                  weiri_plain_name(tensor->name).text, (unsigned long long)tensor->begin,
		                  (unsigned long long)data_size);
	return WEIR_OK;
}

/* Builds the index over the records, sorted by place. */
static enum weir_status index_places(const char *record, struct weiri_saved_header *header, uint64_t data_size,
                                     const char *file, weir_error *error)
{
	enum weir_status status = WEIR_OK;
	bool in_order = true;

	for (size_t i = 0; status == WEIR_OK && i < header->count; i++) {
		struct weiri_saved_tensor tensor;

		header->keys[i].record = record;
		record = weiri_unpack(record, &tensor);
		header->keys[i].hash = place_of(&tensor);
		in_order &= i == 0 || header->keys[i - 1].hash <= header->keys[i].hash;
		status = check_size(&tensor, data_size, file, error);
	}
	if (status == WEIR_OK && !in_order)
		weiri_sort(header->keys, header->count, sizeof(*header->keys), by_number);
	return status;
}

/* Checks that each byte of the data belongs to one tensor. */
static enum weir_status check_places(const struct weiri_saved_header *header, uint64_t data_size, const char *file,
                                     weir_error *error)
{
	uint64_t end = 0;

	for (size_t i = 0; i < header->count; i++) {
		struct weiri_saved_tensor tensor = weiri_saved_header_at(header, i);

		if (tensor.begin != end)
			return weiri_fail(error, WEIR_DATA_LOSS,
			                  "checkpoint %s: tensor \"%s\" begins at byte %llu of the data, expected %llu: %s", file,
			                  weiri_plain_name(tensor.name).text, (unsigned long long)tensor.begin,
			                  (unsigned long long)end, tensor.begin > end ? "a gap" : "two tensors overlap");
		end = tensor.end;
	}
	if (end != data_size)
		return weiri_fail(error, WEIR_DATA_LOSS, "checkpoint %s: %llu byte%s of data, its tensors take %llu", file,
		                  (unsigned long long)data_size, WEIRI_S(data_size), (unsigned long long)end);
	return WEIR_OK;
}

/* Sorts the index by the hash of the name, and checks that no name occurs twice. */
static enum weir_status index_names(struct weiri_saved_header *header, const char *file, weir_error *error)
{
	for (size_t i = 0; i < header->count; i++)
		header->keys[i].hash = hash_of(header->keys[i].record);
	weiri_sort(header->keys, header->count, sizeof(*header->keys), by_name);
	for (size_t i = 1; i < header->count; i++) {
		if (by_name(&header->keys[i - 1], &header->keys[i]) == 0)
			return weiri_fail(error, WEIR_DATA_LOSS, "checkpoint %s: two tensors are called \"%s\"", file,
			                  weiri_plain_name(header->keys[i].record).text);
	}
	return WEIR_OK;
}

enum weir_status weiri_saved_header_read(char *text, size_t size, uint64_t data_size, const char *file,
                                         struct weiri_saved_header *header, weir_error *error)
{
	struct reader reader = {.json = weiri_json_over(text, size), .packed = text};
	struct weiri_saved_header read;
	enum weir_status status = read_all(&reader, file, error);

	if (status != WEIR_OK)
		return status;
	read = (struct weiri_saved_header){weiri_packed_keys(reader.packed), reader.count};
	status = index_places(text, &read, data_size, file, error);
	if (status == WEIR_OK)
		status = check_places(&read, data_size, file, error);
	if (status == WEIR_OK)
		status = index_names(&read, file, error);
	if (status == WEIR_OK)
		*header = read;
	return status;
}

struct weiri_saved_tensor weiri_saved_header_at(const struct weiri_saved_header *header, size_t i)
{
	struct weiri_saved_tensor tensor;

	(void)weiri_unpack(header->keys[i].record, &tensor);
	return tensor;
}

size_t weiri_saved_header_find(const struct weiri_saved_header *header, const char *name)
{
	const struct weiri_saved_key wanted = {hash_of(name), name};
	size_t first = 0, last = header->count;

	while (first < last) {
		size_t middle = first + (last - first) / 2;
		int order = by_name(&wanted, &header->keys[middle]);

		if (order == 0)
			return middle;
		if (order < 0)
			last = middle;
		else
			first = middle + 1;
	}
	return header->count;
}
