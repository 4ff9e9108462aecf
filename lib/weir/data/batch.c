/*
 * batch.c - elements stacked to batches: batch and padded_batch.
 *
 * A stage collects references to `size` elements, and then stacks each component: one allocation,
 * and one copy of each row. What it has collected stays if the input has nothing now, has an error
 * in the place of an element, or if there is no memory for the batch. If the input can give the next
 * `size` rows as a whole, they are copied at once; a view would keep the tensor of all rows.
 */
#include "base/error.h"
#include "data/elements.h"

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
	size_t held; /* rows */
	/* A list for each component, which grows, since the input may be short. */
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
	for (size_t c = 0; c < mine->stage.dataset->width; c++)
		weiri_elements_clear(&mine->columns[c]);
	mine->held = 0;
}

/* Returns false if there is no memory. */
static bool make_room(struct batch_stage *mine)
{
	for (size_t c = 0; c < mine->stage.dataset->width; c++) {
		if (!weiri_elements_make_room(&mine->columns[c], batch_of(mine)->size, &mine->stage.reading->allocator))
			return false;
	}
	return true;
}

static void add_row(struct batch_stage *mine, weir_tensor *const element[])
{
	for (size_t c = 0; c < mine->stage.dataset->width; c++)
		*weiri_elements_at(&mine->columns[c], mine->columns[c].count++) = element[c];
	mine->held++;
}

static enum weir_status collect(struct batch_stage *mine, weir_error *error)
{
	while (!mine->input_ended && mine->held < batch_of(mine)->size) {
		weir_tensor *element[WEIR_DATASET_MAX_WIDTH];
		enum weir_status status;

		if (!make_room(mine))
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

static bool may_stack(const weir_tensor *a, const weir_tensor *b, bool is_padded)
{
	const weir_shape *first = weir_tensor_shape(a), *other = weir_tensor_shape(b);

	return is_padded ? first->rank == other->rank : weir_shape_equal(first, other);
}

/* Says why rows that were collected cannot be stacked. */
static enum weir_status fail_to_stack(struct batch_stage *mine, size_t component, weir_error *error)
{
	weir_tensor *const *rows = mine->columns[component].parts;
	char first[WEIR_SHAPE_TEXT_SIZE], other[WEIR_SHAPE_TEXT_SIZE];

	for (size_t r = 1; r < mine->held; r++) {
		if (!may_stack(rows[0], rows[r], batch_of(mine)->is_padded))
			return weiri_dataset_fail(mine->stage.dataset, error, WEIR_INVALID_ARGUMENT,
			                          "component %zu: element 0 is %.60s, element %zu is %.60s", component,
			                          weir_shape_text(weir_tensor_shape(rows[0]), first, sizeof(first)), r,
			                          weir_shape_text(weir_tensor_shape(rows[r]), other, sizeof(other)));
	}
	return weiri_dataset_fail(mine->stage.dataset, error, WEIR_INVALID_ARGUMENT,
	                          "component %zu: %zu elements of %.60s do not fit into a tensor", component, mine->held,
	                          weir_shape_text(weir_tensor_shape(rows[0]), first, sizeof(first)));
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
	return mine->held == 0 ? WEIR_OUT_OF_RANGE : stack(mine, parts, error);
}

static void close_batch(struct weiri_stage *stage)
{
	struct batch_stage *mine = (struct batch_stage *)(void *)stage;

	weiri_stage_close(mine->input);
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
