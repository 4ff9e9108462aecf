/*
 * fuzz_safetensors.c - any bytes at all as the header of a checkpoint: what is accepted is what the format allows, and can be written
 * and read again.
 */
#include <stdlib.h>
#include <string.h>

#include "checkpoint/header.h"

enum { LENGTH_BYTES = 8 };

static void require(int holds)
{
	if (!holds)
		abort();
}

static int by_begin(const void *a, const void *b)
{
	const struct weiri_saved_tensor *x = a, *y = b;

	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	return x->end == y->end ? 0 : x->end < y->end ? -1 : 1;
}

/* Each tensor takes what its offsets say, and nothing lies between two. */
static void check_places(struct weiri_saved_tensor tensors[], size_t count, uint64_t data_size)
{
	uint64_t end = 0;

	if (count != 0)
		qsort(tensors, count, sizeof(*tensors), by_begin);
	for (size_t i = 0; i < count; i++) {
		int64_t elements;

		require(tensors[i].shape.rank <= WEIR_MAX_RANK);
		require(weir_shape_elements(&tensors[i].shape, &elements) == WEIR_OK);
		require(tensors[i].begin == end && tensors[i].end >= end);
		require((uint64_t)elements * tensors[i].dtype->size == tensors[i].end - tensors[i].begin);
		end = tensors[i].end;
	}
	require(end == data_size);
}

static void check_names(const struct weiri_saved_header *header)
{
	for (size_t i = 0; i < header->count; i++) {
		require(i == 0 || strcmp(header->tensors[i - 1].name, header->tensors[i].name) < 0);
		require(weiri_saved_header_find(header, header->tensors[i].name) == &header->tensors[i]);
		require(header->tensors[i].name[0] == '\0' || weiri_saved_name_ok(header->tensors[i].name));
	}
}

/* What our writer makes of these tensors reads as the same tensors. */
static void check_written(const struct weiri_saved_header *header, uint64_t data_size)
{
	size_t size = weiri_saved_header_write(header->tensors, header->count, NULL, 0);
	char *text = malloc(size);
	struct weiri_saved_header again;

	if (text == NULL)
		return;
	require(weiri_saved_header_write(header->tensors, header->count, text, size) == size);
	require(weiri_saved_header_read(text + LENGTH_BYTES, size - LENGTH_BYTES, data_size, "again", NULL, &again, NULL) ==
	        WEIR_OK);
	require(again.count == header->count);
	for (size_t i = 0; i < again.count; i++) {
		const struct weiri_saved_tensor *a = &header->tensors[i], *b = &again.tensors[i];

		require(strcmp(a->name, b->name) == 0 && a->dtype == b->dtype && a->begin == b->begin && a->end == b->end &&
		        weir_shape_equal(&a->shape, &b->shape));
	}
	weiri_saved_header_fini(&again);
	free(text);
}

/* Two bytes: how much data the file has behind its header; then the header. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum { SIZE_BYTES = 2 };
	struct weiri_saved_header header;
	weir_error error;
	uint64_t data_size;
	char *text;

	if (size < SIZE_BYTES)
		return 0;
	data_size = data[0] | (uint64_t)data[1] << 8;
	size -= SIZE_BYTES;
	/* Ends where its memory ends. */
	text = malloc(size != 0 ? size : 1);
	if (text == NULL)
		return 0;
	memcpy(text, data + SIZE_BYTES, size);
	if (weiri_saved_header_read(text, size, data_size, "fuzz", NULL, &header, &error) == WEIR_OK) {
		check_names(&header);
		check_written(&header, data_size);
		check_places(header.tensors, header.count, data_size);
		weiri_saved_header_fini(&header);
	} else {
		require(memchr(error.message, '\0', sizeof(error.message)) != NULL && error.message[0] != '\0');
	}
	free(text);
	return 0;
}
