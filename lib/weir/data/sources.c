/*
 * sources.c - datasets without inputs: rows of tensors, numbers, a generator of the user.
 */
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "data/stage.h"
#include "tensor/object.h"

/* The statuses of a user's function that gives elements are judged by the caller; this clears what it may write. */
static void expect_nothing(weir_tensor *parts[], size_t width, weir_error *error)
{
	for (size_t i = 0; i < width; i++)
		parts[i] = NULL;
	error->message[0] = '\0';
}

/* -- rows of tensors --------------------------------------------------------------------------- */

struct slices {
	weir_dataset dataset; /* first */
	int64_t rows;
	weir_tensor *tensors[WEIR_DATASET_MAX_WIDTH];
};

struct slices_stage {
	struct weiri_stage stage; /* first */
	int64_t next;
	/* The views that were given last. A map has released them when the next ones are asked for. */
	weir_tensor *given[WEIR_DATASET_MAX_WIDTH];
};

static enum weir_status open_nothing(struct weiri_stage *stage, weir_error *error)
{
	(void)stage, (void)error;
	return WEIR_OK;
}

static void close_nothing(struct weiri_stage *stage)
{
	(void)stage;
}

/*
 * Returns the view that was given last, now of the next row, if nobody else has it any more; else NULL.
 * Memory for a view and its return would cost more than many a map.
 */
static weir_tensor *move_view(struct slices_stage *mine, const weir_tensor *tensor, size_t component)
{
	weir_tensor *view = mine->given[component];

	if (view == NULL || view->dtype == WEIR_BYTES || !weiri_value_is_sole(&view->value))
		return NULL;
	if (view->nbytes != 0)
		view->data = (char *)tensor->data + (size_t)mine->next * view->nbytes;
	return view;
}

static enum weir_status poll_slices(struct weiri_stage *stage, weir_tensor *parts[], weir_error *error)
{
	struct slices_stage *mine = (struct slices_stage *)(void *)stage;
	struct slices *slices = (struct slices *)(void *)stage->dataset;

	if (mine->next == slices->rows)
		return WEIR_OUT_OF_RANGE;
	for (size_t i = 0; i < stage->dataset->width; i++) {
		weir_tensor *row = move_view(mine, slices->tensors[i], i);

		if (row == NULL && weir_tensor_row(slices->tensors[i], mine->next, &row) != WEIR_OK) {
			weiri_parts_release(parts, i);
			return weiri_dataset_again(stage->dataset, error, "no memory for row %lld; it comes again",
			                           (long long)mine->next);
		}
		if (row != mine->given[i]) {
			weir_tensor_release(mine->given[i]);
			mine->given[i] = row;
		}
		parts[i] = weir_tensor_retain(row);
	}
	mine->next++;
	return WEIR_OK;
}

static void close_slices(struct weiri_stage *stage)
{
	weiri_parts_release(((struct slices_stage *)(void *)stage)->given, stage->dataset->width);
}

static bool poll_slice_rows(struct weiri_stage *stage, size_t count, weir_tensor *parts[])
{
	struct slices_stage *mine = (struct slices_stage *)(void *)stage;
	struct slices *slices = (struct slices *)(void *)stage->dataset;

	if (count > (uint64_t)(slices->rows - mine->next))
		return false;
	for (size_t i = 0; i < stage->dataset->width; i++) {
		if (weir_tensor_slice(slices->tensors[i], mine->next, (int64_t)count, &parts[i]) != WEIR_OK) {
			weiri_parts_release(parts, i);
			return false;
		}
	}
	mine->next += (int64_t)count;
	return true;
}

static void dispose_slices(weir_dataset *dataset)
{
	weiri_parts_release(((struct slices *)(void *)dataset)->tensors, dataset->width);
}

static const struct weiri_dataset_kind slices_kind = {
	"slices",       WEIRI_IS_BRIEF, 0, sizeof(struct slices_stage), open_nothing, poll_slices, close_slices,
	dispose_slices, poll_slice_rows};

static enum weir_status check_slices(weir_tensor *const tensors[], size_t count, weir_error *error)
{
	const char *name = slices_kind.name;

	if (count == 0 || count > WEIR_DATASET_MAX_WIDTH)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: %zu tensors, expected 1 to %d", name, count,
		                  WEIR_DATASET_MAX_WIDTH);
	for (size_t i = 0; i < count; i++) {
		if (tensors[i] == NULL)
			return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: tensor %zu is NULL", name, i);
		if (weir_tensor_shape(tensors[i])->rank == 0)
			return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: tensor %zu is a scalar, which has no rows", name, i);
		if (weir_tensor_shape(tensors[i])->dims[0] != weir_tensor_shape(tensors[0])->dims[0])
			return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: tensor %zu has %lld rows, tensor 0 has %lld", name, i,
			                  (long long)weir_tensor_shape(tensors[i])->dims[0],
			                  (long long)weir_tensor_shape(tensors[0])->dims[0]);
	}
	return WEIR_OK;
}

enum weir_status weir_dataset_from_slices(weir_tensor *const tensors[], size_t count,
                                          const struct weir_dataset_options *options, weir_dataset **out,
                                          weir_error *error)
{
	struct weir_dataset_options used;
	enum weir_status status;
	weir_dataset *dataset;
	struct slices *slices;

	if (tensors == NULL || out == NULL)
		return weiri_dataset_fail_null(&slices_kind, tensors == NULL ? "tensors" : "out", error);
	status = check_slices(tensors, count, error);
	if (status == WEIR_OK)
		status =
			weiri_dataset_create(&slices_kind, sizeof(struct slices), NULL, 0, NULL, options, &used, &dataset, error);
	if (status != WEIR_OK)
		return status;
	slices = (struct slices *)(void *)dataset;
	slices->rows = weir_tensor_shape(tensors[0])->dims[0];
	dataset->width = count;
	for (size_t i = 0; i < count; i++) {
		slices->tensors[i] = weir_tensor_retain(tensors[i]);
		dataset->dtypes[i] = weir_tensor_dtype(tensors[i]);
	}
	*out = dataset;
	return WEIR_OK;
}

/* -- numbers ----------------------------------------------------------------------------------- */

struct range {
	weir_dataset dataset; /* first */
	int64_t first, step;
	uint64_t count;
};

struct range_stage {
	struct weiri_stage stage; /* first */
	uint64_t given;
};

static enum weir_status poll_range(struct weiri_stage *stage, weir_tensor *parts[], weir_error *error)
{
	struct range_stage *mine = (struct range_stage *)(void *)stage;
	const struct range *range = (const struct range *)(const void *)stage->dataset;
	enum weir_status status;

	if (mine->given == range->count)
		return WEIR_OUT_OF_RANGE;
	/* Unsigned, since a product on the way may not fit; the sum does. */
	status = weir_tensor_scalar_i64((int64_t)((uint64_t)range->first + mine->given * (uint64_t)range->step), &parts[0]);
	if (status != WEIR_OK)
		return weiri_dataset_again(stage->dataset, error, "no memory for a number; it comes again");
	mine->given++;
	return WEIR_OK;
}

static const struct weiri_dataset_kind range_kind = {
	"range", WEIRI_IS_BRIEF, 0, sizeof(struct range_stage), open_nothing, poll_range, close_nothing, NULL, NULL};

/* How many numbers there are from first, in steps, before last. */
static uint64_t count_of(int64_t first, int64_t last, int64_t step)
{
	uint64_t distance = step > 0 ? (uint64_t)last - (uint64_t)first : (uint64_t)first - (uint64_t)last;
	uint64_t stride = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;

	if (step > 0 ? first >= last : first <= last)
		return 0;
	return (distance - 1) / stride + 1;
}

enum weir_status weir_dataset_range(int64_t first, int64_t last, int64_t step,
                                    const struct weir_dataset_options *options, weir_dataset **out, weir_error *error)
{
	struct weir_dataset_options used;
	enum weir_status status;
	weir_dataset *dataset;
	struct range *range;

	if (out == NULL)
		return weiri_dataset_fail_null(&range_kind, "out", error);
	if (step == 0)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "range: step is 0");
	status = weiri_dataset_create(&range_kind, sizeof(struct range), NULL, 0, NULL, options, &used, &dataset, error);
	if (status != WEIR_OK)
		return status;
	range = (struct range *)(void *)dataset;
	range->first = first;
	range->step = step;
	range->count = count_of(first, last, step);
	dataset->width = 1;
	dataset->dtypes[0] = WEIR_I64;
	*out = dataset;
	return WEIR_OK;
}

/* -- a generator of the user ------------------------------------------------------------------- */

struct generated {
	weir_dataset dataset; /* first */
	struct weir_dataset_generator generator;
};

struct generated_stage {
	struct weiri_stage stage; /* first */
	void *state;
	bool is_open, has_failed;
};

static const struct weir_dataset_generator *generator_of(const struct weiri_stage *stage)
{
	return &((const struct generated *)(const void *)stage->dataset)->generator;
}

/* Opens at the first poll, so that an error takes the place of the first element. */
static enum weir_status begin_generating(struct generated_stage *mine, weir_error *error)
{
	const struct weir_dataset_generator *generator = generator_of(&mine->stage);
	enum weir_status status = WEIR_OK;

	error->message[0] = '\0';
	if (generator->open != NULL)
		status = generator->open(generator->context, &mine->state, error);
	mine->is_open = status == WEIR_OK;
	mine->has_failed = status != WEIR_OK;
	return status == WEIR_OK ? status : weiri_dataset_blame(mine->stage.dataset, status, error);
}

static enum weir_status poll_generated(struct weiri_stage *stage, weir_tensor *parts[], weir_error *error)
{
	struct generated_stage *mine = (struct generated_stage *)(void *)stage;
	const struct weir_dataset_generator *generator = generator_of(stage);
	enum weir_status status;

	if (mine->has_failed)
		return WEIR_OUT_OF_RANGE;
	if (!mine->is_open) {
		status = begin_generating(mine, error);
		if (status != WEIR_OK)
			return status;
	}
	expect_nothing(parts, stage->dataset->width, error);
	status = generator->next(generator->context, mine->state, parts, error);
	if (status == WEIR_OK)
		return weiri_parts_check(stage->dataset, parts, error);
	weiri_parts_release(parts, stage->dataset->width);
	return status == WEIR_OUT_OF_RANGE ? status : weiri_dataset_blame(stage->dataset, status, error);
}

static void close_generated(struct weiri_stage *stage)
{
	struct generated_stage *mine = (struct generated_stage *)(void *)stage;
	const struct weir_dataset_generator *generator = generator_of(stage);

	if (mine->is_open && generator->close != NULL)
		generator->close(generator->context, mine->state);
}

static const struct weiri_dataset_kind generated_kind = {"generate",
                                                         WEIRI_USES_TYPES | WEIRI_USES_DISPOSE | WEIRI_IS_BRIEF,
                                                         WEIR_DATASET_SHORT,
                                                         sizeof(struct generated_stage),
                                                         open_nothing,
                                                         poll_generated,
                                                         close_generated,
                                                         NULL,
                                                         NULL};

enum weir_status weir_dataset_generate(const struct weir_dataset_generator *given,
                                       const struct weir_dataset_options *options, weir_dataset **out,
                                       weir_error *error)
{
	struct weir_dataset_generator generator;
	struct weir_dataset_options used;
	enum weir_status status;
	weir_dataset *dataset;

	if (given == NULL || out == NULL)
		return weiri_dataset_fail_null(&generated_kind, given == NULL ? "generator" : "out", error);
	status = weiri_options_read(generated_kind.name, given, &generator, sizeof(generator), error);
	if (status != WEIR_OK)
		return status;
	if (generator.next == NULL)
		return weiri_dataset_fail_null(&generated_kind, "next", error);
	status = weiri_dataset_create(&generated_kind, sizeof(struct generated), NULL, 0, generator.context, options, &used,
	                              &dataset, error);
	if (status != WEIR_OK)
		return status;
	if (used.width == 0) {
		weiri_dataset_abandon(dataset);
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "generate: width is 0; say which dtypes the generator gives");
	}
	((struct generated *)(void *)dataset)->generator = generator;
	*out = dataset;
	return WEIR_OK;
}
