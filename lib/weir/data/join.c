/*
 * join.c - datasets of several inputs: zip and concatenate.
 */
#include <stdalign.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/stage.h"

/* -- zip --------------------------------------------------------------------------------------- */

struct zip_stage {
	struct weiri_stage stage; /* first */
	struct weiri_stage **inputs;
	/* What the first `polled` inputs have given of the element under way. */
	size_t polled, gathered;
	weir_tensor *parts[WEIR_DATASET_MAX_WIDTH];
	/* The first error among the inputs of the element under way. */
	enum weir_status failed;
	weir_error error;
};

static enum weir_status open_zip(struct weiri_stage *stage, weir_error *error)
{
	struct zip_stage *mine = (struct zip_stage *)(void *)stage;
	size_t count = stage->dataset->input_count;
	enum weir_status status = WEIR_OK;

	mine->inputs = weiri_allocate_zeroed(&stage->reading->allocator, count * sizeof(mine->inputs[0]),
	                                     alignof(struct weiri_stage *));
	if (mine->inputs == NULL)
		return weiri_dataset_fail(stage->dataset, error, WEIR_RESOURCE_EXHAUSTED, "no memory to read its inputs");
	for (size_t i = 0; status == WEIR_OK && i < count; i++)
		status = weiri_stage_open(stage->dataset->inputs[i], stage->reading, stage->consumer, stage->pass,
		                          &mine->inputs[i], error);
	return status;
}

/* Polls the inputs that have not given their part of the element yet. Returns WEIR_OK when all have. */
static enum weir_status gather(struct zip_stage *mine, weir_error *again)
{
	while (mine->polled < mine->stage.dataset->input_count) {
		struct weiri_stage *input = mine->inputs[mine->polled];
		weir_error error;
		enum weir_status status = weiri_stage_poll(input, mine->parts + mine->gathered, &error);

		if (status == WEIRI_POLL_AGAIN)
			*again = error;
		if (status == WEIR_WOULD_BLOCK || status == WEIR_OUT_OF_RANGE || status == WEIRI_POLL_AGAIN)
			return status;
		if (status != WEIR_OK && mine->failed == WEIR_OK) {
			mine->failed = status;
			mine->error = error;
		}
		mine->gathered += input->dataset->width;
		mine->polled++;
	}
	return WEIR_OK;
}

static enum weir_status poll_zip(struct weiri_stage *stage, weir_tensor *parts[], weir_error *error)
{
	struct zip_stage *mine = (struct zip_stage *)(void *)stage;
	enum weir_status status = gather(mine, error);

	if (status != WEIR_OK)
		return status;
	status = mine->failed;
	if (status == WEIR_OK) {
		weiri_parts_move(parts, mine->parts, stage->dataset->width);
	} else {
		*error = mine->error;
		weiri_parts_release(mine->parts, stage->dataset->width);
	}
	mine->polled = mine->gathered = 0;
	mine->failed = WEIR_OK;
	return status;
}

static void close_zip(struct weiri_stage *stage)
{
	struct zip_stage *mine = (struct zip_stage *)(void *)stage;
	size_t count = stage->dataset->input_count;

	for (size_t i = 0; mine->inputs != NULL && i < count; i++)
		weiri_stage_close(mine->inputs[i]);
	weiri_parts_release(mine->parts, stage->dataset->width);
	weiri_release(&stage->reading->allocator, mine->inputs, count * sizeof(mine->inputs[0]),
	              alignof(struct weiri_stage *));
}

static const struct weiri_dataset_kind zip_kind = {"zip",     0,    0,   sizeof(struct zip_stage), open_zip, poll_zip,
                                                   close_zip, NULL, NULL};

static enum weir_status set_zipped_types(weir_dataset *dataset, weir_error *error)
{
	size_t width = 0;

	for (size_t i = 0; i < dataset->input_count; i++) {
		for (size_t c = 0; c < dataset->inputs[i]->width; c++, width++) {
			if (width < WEIR_DATASET_MAX_WIDTH)
				dataset->dtypes[width] = dataset->inputs[i]->dtypes[c];
		}
	}
	dataset->width = width;
	if (width <= WEIR_DATASET_MAX_WIDTH)
		return WEIR_OK;
	dataset->width = 0;
	return weiri_fail(error, WEIR_INVALID_ARGUMENT, "zip: %zu components, expected at most %d", width,
	                  WEIR_DATASET_MAX_WIDTH);
}

/* -- concatenate ------------------------------------------------------------------------------- */

struct chain_stage {
	struct weiri_stage stage;  /* first */
	struct weiri_stage *input; /* of dataset->inputs[next - 1]; NULL before it is opened */
	size_t next;
};

static enum weir_status open_chain(struct weiri_stage *stage, weir_error *error)
{
	(void)stage, (void)error;
	return WEIR_OK;
}

static enum weir_status poll_chain(struct weiri_stage *stage, weir_tensor *parts[], weir_error *error)
{
	struct chain_stage *mine = (struct chain_stage *)(void *)stage;

	for (;;) {
		enum weir_status status = WEIR_OK;

		if (mine->input == NULL && mine->next == stage->dataset->input_count)
			return WEIR_OUT_OF_RANGE;
		if (mine->input == NULL)
			status = weiri_stage_open(stage->dataset->inputs[mine->next], stage->reading, stage->consumer, stage->pass,
			                          &mine->input, error);
		status = status == WEIR_OK ? weiri_stage_poll(mine->input, parts, error) : WEIRI_POLL_AGAIN;
		if (status != WEIR_OUT_OF_RANGE)
			return status;
		weiri_stage_close(mine->input);
		mine->input = NULL;
		mine->next++;
	}
}

static void close_chain(struct weiri_stage *stage)
{
	weiri_stage_close(((struct chain_stage *)(void *)stage)->input);
}

static const struct weiri_dataset_kind chain_kind = {
	"concatenate", 0, 0, sizeof(struct chain_stage), open_chain, poll_chain, close_chain, NULL, NULL};

static enum weir_status check_alike(const weir_dataset *dataset, weir_error *error)
{
	const weir_dataset *first = dataset->inputs[0];

	for (size_t i = 1; i < dataset->input_count; i++) {
		const weir_dataset *other = dataset->inputs[i];

		if (other->width != first->width)
			return weiri_fail(error, WEIR_INVALID_ARGUMENT,
			                  "concatenate: input %zu has %zu component%s, input 0 has %zu", i, other->width,
			                  WEIRI_S(other->width), first->width);
		for (size_t c = 0; c < first->width; c++) {
			if (other->dtypes[c] != first->dtypes[c])
				return weiri_fail(error, WEIR_INVALID_ARGUMENT,
				                  "concatenate: component %zu of input %zu is %s, that of input 0 is %s", c, i,
				                  weir_dtype_name(other->dtypes[c]), weir_dtype_name(first->dtypes[c]));
		}
	}
	return WEIR_OK;
}

/* -- creating ---------------------------------------------------------------------------------- */

static enum weir_status create(const struct weiri_dataset_kind *kind, weir_dataset *const inputs[], size_t count,
                               const struct weir_dataset_options *options, weir_dataset **out, weir_error *error)
{
	struct weir_dataset_options used;
	enum weir_status status;
	weir_dataset *dataset;

	if (inputs == NULL || out == NULL)
		return weiri_dataset_fail_null(kind, inputs == NULL ? "inputs" : "out", error);
	if (count == 0)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: no inputs", kind->name);
	status = weiri_dataset_create(kind, sizeof(weir_dataset), inputs, count, NULL, options, &used, &dataset, error);
	if (status != WEIR_OK)
		return status;
	dataset->number = count;
	dataset->is_numbered = true;
	status = kind == &zip_kind ? set_zipped_types(dataset, error) : check_alike(dataset, error);
	if (status == WEIR_OK)
		*out = dataset;
	else
		weiri_dataset_abandon(dataset);
	return status;
}

enum weir_status weir_dataset_zip(weir_dataset *const inputs[], size_t count,
                                  const struct weir_dataset_options *options, weir_dataset **out, weir_error *error)
{
	return create(&zip_kind, inputs, count, options, out, error);
}

enum weir_status weir_dataset_concatenate(weir_dataset *const inputs[], size_t count,
                                          const struct weir_dataset_options *options, weir_dataset **out,
                                          weir_error *error)
{
	return create(&chain_kind, inputs, count, options, out, error);
}
