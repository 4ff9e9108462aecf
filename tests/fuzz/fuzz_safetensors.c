/*
 * fuzz_safetensors.c - any bytes as the header of a checkpoint: an accepted header is one that the
 * format allows, and can be written and read again.
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

/* The tensors of a header, in an array. NULL: there are none, or there is no memory. */
static struct weiri_saved_tensor *tensors_of(const struct weiri_saved_header *header)
{
	struct weiri_saved_tensor *tensors = header->count != 0 ? malloc(header->count * sizeof(*tensors)) : NULL;

	for (size_t i = 0; tensors != NULL && i < header->count; i++)
		tensors[i] = weiri_saved_header_at(header, i);
	return tensors;
}

/* Each tensor takes the bytes that its offsets say, and no bytes lie between two tensors. */
static void check_places(struct weiri_saved_tensor tensors[], size_t count, uint64_t data_size)
{
	uint64_t end = 0;

	if (count != 0)
		qsort(tensors, count, sizeof(*tensors), by_begin);
	for (size_t i = 0; i < count; i++) {
		int64_t elements;

		require(tensors[i].shape.rank <= WEIR_MAX_RANK);
		require(weir_shape_element_count(&tensors[i].shape, &elements) == WEIR_OK);
		require(tensors[i].begin == end && tensors[i].end >= end);
		require((uint64_t)elements * tensors[i].dtype->size == tensors[i].end - tensors[i].begin);
		end = tensors[i].end;
	}
	require(end == data_size);
}

/* A search for the name of each tensor finds that tensor. */
static void check_names(const struct weiri_saved_header *header)
{
	for (size_t i = 0; i < header->count; i++) {
		struct weiri_saved_tensor tensor = weiri_saved_header_at(header, i);

		require(weiri_saved_header_find(header, tensor.name) == i);
		require(tensor.name[0] == '\0' || weiri_saved_name_ok(tensor.name));
	}
}

/* The header that our writer makes for these tensors is read as the same tensors. */
static void check_written(const struct weiri_saved_tensor tensors[], size_t count, uint64_t data_size)
{
	size_t size = weiri_saved_header_write(tensors, count, NULL, 0);
	char *text = malloc(size);
	struct weiri_saved_header again;

	if (text == NULL)
		return;
	require(weiri_saved_header_write(tensors, count, text, size) == size);
	require(weiri_saved_header_read(text + LENGTH_BYTES, size - LENGTH_BYTES, data_size, "again", &again, NULL) ==
	        WEIR_OK);
	require(again.count == count);
	for (size_t i = 0; i < count; i++) {
		const struct weiri_saved_tensor *a = &tensors[i], b = weiri_saved_header_at(&again, i);

		require(strcmp(a->name, b.name) == 0 && a->dtype == b.dtype && a->begin == b.begin && a->end == b.end &&
		        weir_shape_equal(&a->shape, &b.shape));
	}
	free(text);
}

/* Checks everything that must be true of an accepted header. */
static void check_accepted(const struct weiri_saved_header *header, uint64_t data_size)
{
	struct weiri_saved_tensor *tensors = tensors_of(header);

	check_names(header);
	if (header->count == 0 || tensors != NULL) {
		check_written(tensors, header->count, data_size);
		check_places(tensors, header->count, data_size);
	}
	free(tensors);
}

/* The first two bytes say how much data the file has behind its header. The rest is the header. */
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
	/* The copy ends where its memory ends, so that AddressSanitizer finds a read past the end. */
	text = malloc(size != 0 ? size : 1);
	if (text == NULL)
		return 0;
	memcpy(text, data + SIZE_BYTES, size);
	if (weiri_saved_header_read(text, size, data_size, "fuzz", &header, &error) == WEIR_OK) {
		check_accepted(&header, data_size);
	} else {
		require(memchr(error.message, '\0', sizeof(error.message)) != NULL && error.message[0] != '\0');
	}
	free(text);
	return 0;
}
