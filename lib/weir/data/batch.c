/*
 * batch.c - elements stacked to batches: batch and padded_batch.
 *
 * There are three ways, by what the batch will be:
 * - If the input can give the next `size` rows as a whole, they are copied at once; a view would keep
 *   the tensor of all rows.
 * - Each row of a small batch is copied into it when it comes, and released at once. So the stages
 *   below get memory for the next row that is still in the cache. The first row decides the shape. A
 *   row of another shape is noted; the batch is refused when it is complete. A last batch with fewer
 *   rows is copied again, to its size.
 * - Of a large batch, of one whose rows are padded, and of strings, references to all rows are
 *   collected, and then stacked.
 * Either way it is one allocation and one copy of each row for each full batch. What a stage has
 * collected stays if the input has nothing now, has an error in the place of an element, or if there is
 * no memory for the batch.
 */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/elements.h"
#include "tensor/object.h"

enum { SMALL = 1 << 20 }; /* bytes of a component of a batch that is copied row by row */

typedef enum weir_status stack_fn(weir_tensor *const tensors[], size_t count, const weir_allocator *allocator,
                                  weir_tensor **out);

struct batch {
	weir_dataset dataset; /* first */
	size_t size;
	stack_fn *stack;
	bool is_padded, drops_remainder;
};

struct batch_stage {
	struct weiri_stage stage; /* first */
	struct weiri_stage *input;
	bool input_ended;
	size_t held;     /* rows */
	bool is_decided; /* of this batch: whether its rows are copied */
	/* The batch that rows are copied into, by component; NULL: they are collected. */
	weir_tensor *copies[WEIR_DATASET_MAX_WIDTH];
	/* Of the copied rows: the first whose shape is not that of row 0; 0: none. */
	size_t odd[WEIR_DATASET_MAX_WIDTH];
	weir_shape odd_shape[WEIR_DATASET_MAX_WIDTH];
	/* Or a list for each component, which grows, since the input may be short. */
	struct weiri_elements columns[WEIR_DATASET_MAX_WIDTH];
};

static const struct batch *batch_of(const struct batch_stage *mine)
{
	return (const struct batch *)(const void *)mine->stage.dataset;
}

static enum weir_status open_batch(struct weiri_stage *stage, weir_error *error)
{
	struct batch_stage *mine = (struct batch_stage *)(void *)stage;

	for (size_t c = 0; c < stage->dataset->width; c++)
		mine->columns[c].width = 1;
	return weiri_stage_open_input(stage, stage->pass, &mine->input, error);
}

static void release_rows(struct batch_stage *mine)
{
	for (size_t c = 0; c < mine->stage.dataset->width; c++) {
		weiri_elements_clear(&mine->columns[c]);
		mine->odd[c] = 0;
	}
	weiri_parts_release(mine->copies, mine->stage.dataset->width);
	mine->held = 0;
	mine->is_decided = false;
}

/* -- rows that are copied ---------------------------------------------------------------------- */

/* The shape of `count` rows. */
static weir_shape shape_of_rows(const weir_tensor *row, size_t count)
{
	weir_shape shape = {.rank = row->shape.rank + 1, .dims = {(int64_t)count}};

	memcpy(&shape.dims[1], row->shape.dims, row->shape.rank * sizeof(shape.dims[0]));
	return shape;
}

/* Whether rows like this one are copied as they come. */
static bool is_copied(const struct batch *batch, const weir_tensor *row)
{
	size_t bytes;

	/* Rows without elements have nothing to copy, and any number of them would be small. */
	return !batch->is_padded && row->nbytes != 0 && row->dtype != WEIR_BYTES && row->shape.rank < WEIR_MAX_RANK &&
	       weiri_multiply(batch->size, row->nbytes, &bytes) && bytes <= SMALL;
}

/* Whether a row has the shape of the rows of a batch. */
static bool is_row_of(const weir_tensor *batch, const weir_tensor *row)
{
	uint32_t rank = row->shape.rank;

	if (batch->shape.rank != rank + 1)
		return false;
	for (uint32_t i = 0; i < rank; i++) {
		if (batch->shape.dims[i + 1] != row->shape.dims[i])
			return false;
	}
	return true;
}

/* Copies row `held`, and takes the references. */
static void copy_row(struct batch_stage *mine, size_t width, weir_tensor *element[])
{
	for (size_t c = 0; c < width; c++) {
		const weir_tensor *row = element[c];
		bool is_odd = !is_row_of(mine->copies[c], row);

		if (is_odd && mine->odd[c] == 0) {
			mine->odd[c] = mine->held;
			mine->odd_shape[c] = row->shape;
		}
		if (!is_odd)
			memcpy((char *)mine->copies[c]->data + mine->held * row->nbytes, row->data, row->nbytes);
	}
	weiri_parts_release(element, width);
}

/*
 * Decides by the first row, which was collected, whether those of this batch are copied. Returns
 * WEIRI_POLL_AGAIN if there is no memory for the batch.
 */
static enum weir_status decide(struct batch_stage *mine, weir_error *error)
{
	size_t width = mine->stage.dataset->width;
	weir_tensor *row[WEIR_DATASET_MAX_WIDTH];

	mine->is_decided = true;
	for (size_t c = 0; c < width; c++) {
		row[c] = mine->columns[c].parts[0];
		if (!is_copied(batch_of(mine), row[c]))
			return WEIR_OK;
	}
	for (size_t c = 0; c < width; c++) {
		weir_shape shape = shape_of_rows(row[c], batch_of(mine)->size);

		if (weiri_tensor_create(row[c]->dtype, &shape, 0, &mine->stage.reading->allocator, &mine->copies[c]) == WEIR_OK)
			continue;
		weiri_parts_release(mine->copies, c);
		mine->is_decided = false;
		return weiri_dataset_again(mine->stage.dataset, error, "no memory for a batch of %zu; try again",
		                           batch_of(mine)->size);
	}
	mine->held = 0;
	copy_row(mine, width, row);
	mine->held = 1;
	for (size_t c = 0; c < width; c++)
		mine->columns[c].count = 0;
	return WEIR_OK;
}

/* -- rows -------------------------------------------------------------------------------------- */

/* Returns false if there is no memory. */
static bool make_room(struct batch_stage *mine)
{
	for (size_t c = 0; c < mine->stage.dataset->width; c++) {
		if (!weiri_elements_make_room(&mine->columns[c], batch_of(mine)->size, &mine->stage.reading->allocator))
			return false;
	}
	return true;
}

static void add_row(struct batch_stage *mine, weir_tensor *element[])
{
	size_t width = mine->stage.dataset->width;

	if (mine->copies[0] != NULL) {
		copy_row(mine, width, element);
	} else {
		for (size_t c = 0; c < width; c++)
			*weiri_elements_at(&mine->columns[c], mine->columns[c].count++) = element[c];
	}
	mine->held++;
}

static enum weir_status collect(struct batch_stage *mine, weir_error *error)
{
	while (!mine->input_ended && mine->held < batch_of(mine)->size) {
		weir_tensor *element[WEIR_DATASET_MAX_WIDTH];
		enum weir_status status = mine->held == 1 && !mine->is_decided ? decide(mine, error) : WEIR_OK;

		if (status != WEIR_OK)
			return status;
		if (mine->copies[0] == NULL && !make_room(mine))
			return weiri_dataset_again(mine->stage.dataset, error, "no memory for the rows; try again");
		status = weiri_stage_poll(mine->input, element, error);
		mine->input_ended = status == WEIR_OUT_OF_RANGE;
		if (status != WEIR_OK && !mine->input_ended)
			return status;
		if (status == WEIR_OK)
			add_row(mine, element);
	}
	return WEIR_OK;
}

/* -- batches ----------------------------------------------------------------------------------- */

static enum weir_status fail_for_shapes(struct batch_stage *mine, size_t component, const weir_shape *first, size_t row,
                                        const weir_shape *other, weir_error *error)
{
	char text[WEIR_SHAPE_TEXT_SIZE], other_text[WEIR_SHAPE_TEXT_SIZE];

	return weiri_dataset_fail(mine->stage.dataset, error, WEIR_INVALID_ARGUMENT,
	                          "component %zu: element 0 is %.60s, element %zu is %.60s", component,
	                          weir_shape_text(first, text, sizeof(text)), row,
	                          weir_shape_text(other, other_text, sizeof(other_text)));
}

/* The batch that rows were copied into: to its size. */
static enum weir_status finish_copies(struct batch_stage *mine, weir_tensor *parts[], weir_error *error)
{
	size_t width = mine->stage.dataset->width;

	for (size_t c = 0; c < width; c++) {
		weir_shape shape = mine->copies[c]->shape;
		enum weir_status status = WEIR_OK;

		if (mine->odd[c] != 0) {
			memmove(&shape.dims[0], &shape.dims[1], --shape.rank * sizeof(shape.dims[0]));
			status = fail_for_shapes(mine, c, &shape, mine->odd[c], &mine->odd_shape[c], error);
			weiri_parts_release(parts, c);
			release_rows(mine);
			return status;
		}
		shape.dims[0] = (int64_t)mine->held;
		if (mine->held == batch_of(mine)->size)
			parts[c] = weir_tensor_retain(mine->copies[c]);
		else
			status = weir_tensor_copy_of(mine->copies[c]->dtype, &shape, mine->copies[c]->data,
			                             &mine->stage.reading->allocator, &parts[c]);
		if (status != WEIR_OK) {
			weiri_parts_release(parts, c);
			return weiri_dataset_again(mine->stage.dataset, error, "no memory for a batch of %zu; try again",
			                           mine->held);
		}
	}
	release_rows(mine);
	return WEIR_OK;
}

static bool may_stack(const weir_tensor *a, const weir_tensor *b, bool is_padded)
{
	const weir_shape *first = weir_tensor_shape(a), *other = weir_tensor_shape(b);

	return is_padded ? first->rank == other->rank : weir_shape_equal(first, other);
}

/* Says why rows that were collected cannot be stacked. */
static enum weir_status fail_to_stack(struct batch_stage *mine, size_t component, weir_error *error)
{
	weir_tensor *const *rows = mine->columns[component].parts;
	char text[WEIR_SHAPE_TEXT_SIZE];

	for (size_t r = 1; r < mine->held; r++) {
		if (!may_stack(rows[0], rows[r], batch_of(mine)->is_padded))
			return fail_for_shapes(mine, component, &rows[0]->shape, r, &rows[r]->shape, error);
	}
	return weiri_dataset_fail(mine->stage.dataset, error, WEIR_INVALID_ARGUMENT,
	                          "component %zu: %zu elements of %.60s do not fit into a tensor", component, mine->held,
	                          weir_shape_text(weir_tensor_shape(rows[0]), text, sizeof(text)));
}

static enum weir_status stack(struct batch_stage *mine, weir_tensor *parts[], weir_error *error)
{
	size_t width = mine->stage.dataset->width;

	for (size_t c = 0; c < width; c++) {
		enum weir_status status =
			batch_of(mine)->stack(mine->columns[c].parts, mine->held, &mine->stage.reading->allocator, &parts[c]);

		if (status == WEIR_OK)
			continue;
		weiri_parts_release(parts, c);
		if (status == WEIR_RESOURCE_EXHAUSTED)
			return weiri_dataset_again(mine->stage.dataset, error, "no memory for a batch of %zu; try again",
			                           mine->held);
		status = fail_to_stack(mine, c, error);
		release_rows(mine);
		return status;
	}
	release_rows(mine);
	return WEIR_OK;
}

/* Returns false if there is nothing to be copied as a whole. If there is no memory, the rows are as they come. */
static bool copy_rows(struct batch_stage *mine, weir_tensor *parts[])
{
	weir_tensor *rows[WEIR_DATASET_MAX_WIDTH];
	size_t width = mine->stage.dataset->width;

	if (mine->held != 0 || mine->input_ended || !weiri_stage_poll_rows(mine->input, batch_of(mine)->size, rows))
		return false;
	for (size_t c = 0; c < width; c++) {
		if (weir_tensor_copy_of(weir_tensor_dtype(rows[c]), weir_tensor_shape(rows[c]), weir_tensor_data(rows[c]),
		                        &mine->stage.reading->allocator, &parts[c]) != WEIR_OK)
			parts[c] = weir_tensor_retain(rows[c]);
	}
	weiri_parts_release(rows, width);
	return true;
}

static enum weir_status poll_batch(struct weiri_stage *stage, weir_tensor *parts[], weir_error *error)
{
	struct batch_stage *mine = (struct batch_stage *)(void *)stage;
	enum weir_status status;

	if (copy_rows(mine, parts))
		return WEIR_OK;
	status = collect(mine, error);
	if (status != WEIR_OK)
		return status;
	if (mine->held < batch_of(mine)->size && batch_of(mine)->drops_remainder)
		release_rows(mine);
	if (mine->held == 0)
		return WEIR_OUT_OF_RANGE;
	return mine->copies[0] != NULL ? finish_copies(mine, parts, error) : stack(mine, parts, error);
}

static void close_batch(struct weiri_stage *stage)
{
	struct batch_stage *mine = (struct batch_stage *)(void *)stage;

	weiri_stage_close(mine->input);
	weiri_parts_release(mine->copies, stage->dataset->width);
	for (size_t c = 0; c < stage->dataset->width; c++)
		weiri_elements_fini(&mine->columns[c], &stage->reading->allocator);
}

static const struct weiri_dataset_kind batch_kind = {
	"batch", 0,   WEIR_DATASET_DROP_REMAINDER, sizeof(struct batch_stage), open_batch, poll_batch, close_batch,
	NULL,    NULL};
static const struct weiri_dataset_kind padded_kind = {
	"padded_batch", 0,   WEIR_DATASET_DROP_REMAINDER, sizeof(struct batch_stage), open_batch, poll_batch, close_batch,
	NULL,           NULL};

static enum weir_status create(const struct weiri_dataset_kind *kind, stack_fn *stack_rows, weir_dataset *input,
                               size_t size, const struct weir_dataset_options *options, weir_dataset **out,
                               weir_error *error)
{
	struct weir_dataset_options used;
	enum weir_status status;
	struct batch *batch;

	if (size == 0)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: the size is 0, expected at least 1", kind->name);
	status = weiri_dataset_derive(kind, sizeof(struct batch), input, size, options, &used, out, error);
	if (status != WEIR_OK)
		return status;
	batch = (struct batch *)(void *)*out;
	batch->size = size;
	batch->stack = stack_rows;
	batch->is_padded = kind == &padded_kind;
	batch->drops_remainder = (used.flags & WEIR_DATASET_DROP_REMAINDER) != 0;
	return WEIR_OK;
}

enum weir_status weir_dataset_batch(weir_dataset *input, size_t size, const struct weir_dataset_options *options,
                                    weir_dataset **out, weir_error *error)
{
	return create(&batch_kind, weir_tensor_stack, input, size, options, out, error);
}

enum weir_status weir_dataset_padded_batch(weir_dataset *input, size_t size, const struct weir_dataset_options *options,
                                           weir_dataset **out, weir_error *error)
{
	return create(&padded_kind, weir_tensor_stack_padded, input, size, options, out, error);
}
