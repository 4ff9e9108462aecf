/*
 * stack_padded.c - stacks tensors of one dtype and rank whose dims differ: copies each into a block
 * that has the largest of each dim.
 *
 * Works for every rank. A run is copied at once: it is contiguous both in the tensor and in its
 * block. It spans the trailing dims in which the shapes of the two agree, and the last dim in which
 * they differ. An odometer over the dims before these finds where each run begins.
 */
#include <string.h>

#include "tensor/object.h"

/*
 * Sets *batch to [count, the largest of each dim]. Returns false if the tensors differ in dtype or
 * rank, or there is no such shape.
 */
static bool padded_shape(weir_tensor *const tensors[], size_t count, weir_shape *batch)
{
	uint32_t rank = tensors[0] != NULL ? tensors[0]->shape.rank : WEIR_MAX_RANK;

	*batch = (weir_shape){.rank = rank + 1, .dims = {(int64_t)count}};
	if (rank == WEIR_MAX_RANK || batch->dims[0] < 0) /* more than INT64_MAX */
		return false;
	for (size_t i = 0; i < count; i++) {
		if (tensors[i] == NULL || tensors[i]->dtype != tensors[0]->dtype || tensors[i]->shape.rank != rank)
			return false;
		for (uint32_t d = 0; d < rank; d++) {
			if (tensors[i]->shape.dims[d] > batch->dims[d + 1])
				batch->dims[d + 1] = tensors[i]->shape.dims[d];
		}
	}
	return true;
}

/* How one tensor lies in its block; in elements. */
struct layout {
	uint32_t outer;                /* the number of dims that the odometer counts */
	int64_t run;                   /* elements that are contiguous in both */
	int64_t stride[WEIR_MAX_RANK]; /* of the dims, in the block */
};

static struct layout layout_of(const weir_shape *own, const int64_t widest[])
{
	struct layout layout = {.outer = own->rank, .run = 1};
	int64_t block = 1;

	for (uint32_t d = own->rank; d-- > 0;) {
		layout.stride[d] = block;
		block *= widest[d];
	}
	while (layout.outer > 0) {
		layout.outer--;
		layout.run *= own->dims[layout.outer];
		if (own->dims[layout.outer] != widest[layout.outer])
			break;
	}
	return layout;
}

/* Advances the odometer by one step, and returns where the next run begins. */
static int64_t next_run(const struct layout *layout, const weir_shape *own, int64_t index[], int64_t at)
{
	for (uint32_t d = layout->outer; d-- > 0;) {
		at += layout->stride[d];
		if (++index[d] < own->dims[d])
			break;
		at -= layout->stride[d] * own->dims[d];
		index[d] = 0;
	}
	return at;
}

/*
 * Copies a tensor into the block that begins at element `block` of the batch, and its strings to
 * `room`. Returns the remaining room.
 */
static char *copy_block(weir_tensor *batch, int64_t block, const weir_tensor *from, char *room)
{
	size_t size = weir_dtype_size(from->dtype);
	int64_t index[WEIR_MAX_RANK] = {0}, at = block;
	struct layout layout;

	if (from->elements == 0)
		return room;
	/* No dim is 0, so no stride is larger than the batch. */
	layout = layout_of(&from->shape, &batch->shape.dims[1]);
	for (int64_t done = 0; done < from->elements; done += layout.run) {
		if (from->dtype == WEIR_BYTES)
			room = weiri_strings_copy((weir_bytes *)batch->data + at, (const weir_bytes *)from->data + done, layout.run,
			                          room);
		else
			memcpy((char *)batch->data + (size_t)at * size, (const char *)from->data + (size_t)done * size,
			       (size_t)layout.run * size);
		at = next_run(&layout, &from->shape, index, at);
	}
	return room;
}

enum weir_status weir_tensor_stack_padded(weir_tensor *const tensors[], size_t count, const weir_allocator *allocator,
                                          weir_tensor **out)
{
	weir_shape shape;
	size_t strings;
	weir_tensor *batch;
	enum weir_status status;
	char *room;

	if (tensors == NULL || count == 0 || out == NULL || !padded_shape(tensors, count, &shape) ||
	    !weiri_strings_of_all(tensors, count, &strings))
		return WEIR_INVALID_ARGUMENT;
	status = weiri_tensor_create(tensors[0]->dtype, &shape, strings, allocator, &batch);
	if (status != WEIR_OK)
		return status;
	memset(batch->data, 0, batch->nbytes);
	room = (char *)batch->data + batch->nbytes;
	for (size_t i = 0; i < count; i++)
		room = copy_block(batch, (int64_t)i * (batch->elements / (int64_t)count), tensors[i], room);
	batch->nbytes += strings;
	*out = batch;
	return WEIR_OK;
}
