/*
 * header_write.c - the header of a safetensors file.
 *
 * A caller writes the header twice: first to learn its length, then into memory of that length.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "checkpoint/header.h"

/* Where the header is written. Bytes that do not fit are counted, but not stored. */
struct sink {
	char *out;
	size_t room;
	size_t size;
};

static void put(struct sink *sink, const char *bytes, size_t count)
{
	if (sink->size < sink->room)
		memcpy(sink->out + sink->size, bytes, count < sink->room - sink->size ? count : sink->room - sink->size);
	sink->size += count;
}

static void put_text(struct sink *sink, const char *text)
{
	put(sink, text, strlen(text));
}

static void put_number(struct sink *sink, uint64_t number)
{
	char text[24];

	put(sink, text, (size_t)snprintf(text, sizeof(text), "%" PRIu64, number));
}

static void put_string(struct sink *sink, const char *text)
{
	put_text(sink, "\"");
	for (; *text != '\0'; text++) {
		char escaped[8];

		if (*text == '"' || *text == '\\')
			put_text(sink, "\\");
		if ((unsigned char)*text >= ' ')
			put(sink, text, 1);
		else
			put(sink, escaped, (size_t)snprintf(escaped, sizeof(escaped), "\\u%04x", (unsigned)(unsigned char)*text));
	}
	put_text(sink, "\"");
}

static void put_tensor(struct sink *sink, const struct weiri_saved_tensor *tensor)
{
	put_text(sink, ",");
	put_string(sink, tensor->name);
	put_text(sink, ":{\"dtype\":");
	put_string(sink, tensor->dtype->name);
	put_text(sink, ",\"shape\":[");
	for (uint32_t i = 0; i < tensor->shape.rank; i++) {
		if (i != 0)
			put_text(sink, ",");
		put_number(sink, (uint64_t)tensor->shape.dims[i]);
	}
	put_text(sink, "],\"data_offsets\":[");
	put_number(sink, tensor->begin);
	put_text(sink, ",");
	put_number(sink, tensor->end);
	put_text(sink, "]}");
}

size_t weiri_saved_header_write(const struct weiri_saved_tensor tensors[], size_t count, char *out, size_t room)
{
	enum { LENGTH_BYTES = 8, BITS = 8 };
	struct sink sink = {out, room, LENGTH_BYTES};
	uint64_t length;

	put_text(&sink, "{\"__metadata__\":{\"writer\":\"weir\"}");
	for (size_t i = 0; i < count; i++)
		put_tensor(&sink, &tensors[i]);
	put_text(&sink, "}");
	while (sink.size % WEIR_TENSOR_ALIGNMENT != 0)
		put_text(&sink, " ");
	length = sink.size - LENGTH_BYTES;
	for (size_t i = 0; i < LENGTH_BYTES && i < room; i++)
		out[i] = (char)(length >> (BITS * i) & 0xff);
	return sink.size;
}
