/*
 * dataset.c - what all datasets share: creating, references, names, messages.
 */
#include <stdalign.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "data/stage.h"

/* -- options ----------------------------------------------------------------------------------- */

/* Returns the name of a field that is set and that the kind does not read, or NULL. */
static const char *foreign_field(const struct weiri_dataset_kind *kind, const struct weir_dataset_options *options)
{
	uint32_t not_used = ~kind->uses;

	if ((not_used & WEIRI_USES_AT_ONCE) != 0 && options->at_once != 0)
		return "at_once";
	if ((not_used & WEIRI_USES_CYCLE) != 0 && (options->cycle != 0 || options->block != 0))
		return options->cycle != 0 ? "cycle" : "block";
	if ((not_used & WEIRI_USES_SEED) != 0 && options->seed != NULL)
		return "seed";
	if ((not_used & WEIRI_USES_TYPES) != 0 && (options->dtypes != NULL || options->width != 0))
		return options->dtypes != NULL ? "dtypes" : "width";
	if ((not_used & WEIRI_USES_DISPOSE) != 0 && options->dispose != NULL)
		return "dispose";
	return NULL;
}

static enum weir_status check_types(const struct weiri_dataset_kind *kind, const struct weir_dataset_options *options,
                                    weir_error *error)
{
	if (options->width > WEIR_DATASET_MAX_WIDTH)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: %zu components, expected at most %d", kind->name,
		                  options->width, WEIR_DATASET_MAX_WIDTH);
	if (options->width != 0 && options->dtypes == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: width is %zu and dtypes is NULL", kind->name,
		                  options->width);
	for (size_t i = 0; i < options->width; i++) {
		if (weir_dtype_size(options->dtypes[i]) == 0)
			return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: component %zu: %d is no dtype", kind->name, i,
			                  (int)options->dtypes[i]);
	}
	return WEIR_OK;
}

static enum weir_status read_options(const struct weiri_dataset_kind *kind, const struct weir_dataset_options *given,
                                     struct weir_dataset_options *options, weir_error *error)
{
	enum weir_status status = weiri_options_read(kind->name, given, options, sizeof(*options), error);
	const char *foreign;

	if (status == WEIR_OK)
		status = weiri_options_flags(kind->name, options->flags, kind->flags, error);
	if (status != WEIR_OK)
		return status;
	foreign = foreign_field(kind, options);
	if (foreign != NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: option %s is set, which this dataset does not have",
		                  kind->name, foreign);
	if (options->at_once > WEIR_DATASET_MAX_AHEAD)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: at_once is %zu, expected at most %d", kind->name,
		                  options->at_once, WEIR_DATASET_MAX_AHEAD);
	return check_types(kind, options, error);
}

/* -- creating ---------------------------------------------------------------------------------- */

enum weir_status weiri_dataset_fail_null(const struct weiri_dataset_kind *kind, const char *what, weir_error *error)
{
	return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: %s is NULL", kind->name, what);
}

static enum weir_status check_inputs(const struct weiri_dataset_kind *kind, weir_dataset *const inputs[], size_t count,
                                     weir_error *error)
{
	if (count > WEIR_DATASET_MAX_INPUTS)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: %zu inputs, expected at most %d", kind->name, count,
		                  WEIR_DATASET_MAX_INPUTS);
	for (size_t i = 0; i < count; i++) {
		if (inputs[i] == NULL)
			return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: input %zu is NULL", kind->name, i);
	}
	return WEIR_OK;
}

static void set_types(weir_dataset *dataset, const enum weir_dtype dtypes[], size_t width)
{
	dataset->width = width;
	memcpy(dataset->dtypes, dtypes, width * sizeof(dtypes[0]));
}

static size_t size_of_block(size_t size, size_t input_count)
{
	size_t aligned = (size + alignof(weir_dataset *) - 1) & ~(alignof(weir_dataset *) - 1);

	return aligned + input_count * sizeof(weir_dataset *);
}

enum weir_status weiri_dataset_create(const struct weiri_dataset_kind *kind, size_t size, weir_dataset *const inputs[],
                                      size_t input_count, void *context, const struct weir_dataset_options *options,
                                      struct weir_dataset_options *used, weir_dataset **out, weir_error *error)
{
	size_t block = size_of_block(size, input_count);
	enum weir_status status = read_options(kind, options, used, error);
	weir_allocator allocator;
	weir_dataset *dataset;

	if (status == WEIR_OK)
		status = check_inputs(kind, inputs, input_count, error);
	if (status != WEIR_OK)
		return status;
	allocator = weiri_allocator_or_default(used->allocator);
	dataset = weiri_allocate_zeroed(&allocator, block, alignof(max_align_t));
	if (dataset == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "%s: no memory for the dataset", kind->name);
	/* [relaxed] not shared yet */
	weiri_store_relaxed(&dataset->references, (size_t)1);
	dataset->kind = kind;
	dataset->size = block;
	dataset->allocator = allocator;
	dataset->dispose = used->dispose;
	dataset->is_short = (used->flags & WEIR_DATASET_SHORT) != 0;
	dataset->context = context;
	dataset->input_count = input_count;
	dataset->inputs = (weir_dataset **)(void *)((char *)dataset + block - input_count * sizeof(weir_dataset *));
	for (size_t i = 0; i < input_count; i++)
		dataset->inputs[i] = weir_dataset_retain(inputs[i]);
	if (used->width != 0)
		set_types(dataset, used->dtypes, used->width);
	else if (input_count != 0)
		set_types(dataset, inputs[0]->dtypes, inputs[0]->width);
	*out = dataset;
	return WEIR_OK;
}

enum weir_status weiri_dataset_derive(const struct weiri_dataset_kind *kind, size_t size, weir_dataset *input,
                                      uint64_t number, const struct weir_dataset_options *options,
                                      struct weir_dataset_options *used, weir_dataset **out, weir_error *error)
{
	enum weir_status status;

	if (out == NULL)
		return weiri_dataset_fail_null(kind, "out", error);
	status = weiri_dataset_create(kind, size, &input, 1, NULL, options, used, out, error);
	if (status != WEIR_OK)
		return status;
	(*out)->number = number;
	(*out)->is_numbered = true;
	return WEIR_OK;
}

weir_dataset *weir_dataset_retain(weir_dataset *dataset)
{
	/* [relaxed] the caller has a reference, so the count is not 0 */
	if (dataset != NULL)
		(void)weiri_fetch_add_relaxed(&dataset->references, (size_t)1);
	return dataset;
}

/* Gives a reference back. Puts the dataset onto the list if it was the last one. */
static void drop(weir_dataset *dataset, weir_dataset **unused)
{
	/* [acq_rel] pairs with itself: the last one sees what every other holder did */
	if (dataset == NULL || weiri_fetch_sub_acq_rel(&dataset->references, (size_t)1) != 1)
		return;
	dataset->next_unused = *unused;
	*unused = dataset;
}

static void free_dataset(weir_dataset *dataset)
{
	weir_allocator allocator = dataset->allocator;

	if (dataset->kind->dispose != NULL)
		dataset->kind->dispose(dataset);
	if (dataset->dispose != NULL)
		dataset->dispose(dataset->context);
	weiri_release(&allocator, dataset, dataset->size, alignof(max_align_t));
}

/* A loop, so that a long pipeline does not take a deep stack. */
void weir_dataset_release(weir_dataset *dataset)
{
	weir_dataset *unused = NULL;

	drop(dataset, &unused);
	while (unused != NULL) {
		weir_dataset *outer = unused;

		unused = outer->next_unused;
		for (size_t i = 0; i < outer->input_count; i++)
			drop(outer->inputs[i], &unused);
		free_dataset(outer);
	}
}

void weiri_dataset_abandon(weir_dataset *dataset)
{
	dataset->dispose = NULL;
	weir_dataset_release(dataset);
}

size_t weir_dataset_width(const weir_dataset *dataset)
{
	return dataset != NULL ? dataset->width : 0;
}

enum weir_dtype weir_dataset_dtype(const weir_dataset *dataset, size_t component)
{
	return dataset != NULL && component < dataset->width ? dataset->dtypes[component] : (enum weir_dtype)0;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the pipeline. */
bool weiri_dataset_is_known(const weir_dataset *dataset, const weir_pool *pool)
{
	uint32_t uses = dataset->kind->uses;
	bool is_known = (uses & WEIRI_IS_BRIEF) != 0 && ((uses & WEIRI_USES_DISPOSE) == 0 || dataset->is_short);

	if (dataset->runs_ahead && pool != NULL)
		return true;
	for (size_t i = 0; i < dataset->input_count && is_known; i++)
		is_known = weiri_dataset_is_known(dataset->inputs[i], pool);
	return is_known;
}

/* -- messages ---------------------------------------------------------------------------------- */

static int name_of(const weir_dataset *dataset, char *text, size_t size)
{
	return dataset->is_numbered
	           ? snprintf(text, size, "%s(%llu)", dataset->kind->name, (unsigned long long)dataset->number)
	           : snprintf(text, size, "%s", dataset->kind->name);
}

char *weir_dataset_text(const weir_dataset *dataset, char *text, size_t size)
{
	static const char of[] = " of ", more[] = " of ...";
	size_t used = 0;

	if (text == NULL || size == 0)
		return text;
	text[0] = '\0';
	while (dataset != NULL) {
		char name[64];
		size_t length = (size_t)name_of(dataset, name, sizeof(name)),
			   needed = length + (used != 0 ? sizeof(of) - 1 : 0);
		bool is_last = dataset->input_count == 0;

		if (used + needed + (is_last ? 0 : sizeof(more) - 1) >= size) {
			if (used != 0 && used + sizeof(more) <= size)
				memcpy(text + used, more, sizeof(more));
			break;
		}
		(void)snprintf(text + used, size - used, "%s%s", used != 0 ? of : "", name);
		used += needed;
		dataset = is_last ? NULL : dataset->inputs[0];
	}
	return text;
}

enum weir_status weiri_dataset_fail(const weir_dataset *dataset, weir_error *error, enum weir_status status,
                                    const char *format, ...)
{
	char name[WEIR_DATASET_TEXT_SIZE], message[WEIR_ERROR_MESSAGE_SIZE];
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	return weiri_fail(error, status, "%s: %.150s", weir_dataset_text(dataset, name, sizeof(name)), message);
}

enum weir_status weiri_dataset_blame(const weir_dataset *dataset, enum weir_status status, weir_error *error)
{
	weir_error theirs;

	if (status == WEIR_OUT_OF_RANGE || status == WEIR_WOULD_BLOCK)
		return weiri_dataset_fail(dataset, error, WEIR_FAILED_PRECONDITION,
		                          "the function returned %s, which means nothing for one element",
		                          weir_status_name(status));
	theirs = weiri_error_kept(error);
	if (theirs.message[0] == '\0')
		return weiri_dataset_fail(dataset, error, status, "the function failed with %s", weir_status_name(status));
	return weiri_dataset_fail(dataset, error, status, "%s", theirs.message);
}

/* -- elements ---------------------------------------------------------------------------------- */

void weiri_parts_release(weir_tensor *parts[], size_t width)
{
	for (size_t i = 0; i < width; i++) {
		weir_tensor_release(parts[i]);
		parts[i] = NULL;
	}
}

enum weir_status weiri_parts_check(const weir_dataset *dataset, weir_tensor *parts[], weir_error *error)
{
	for (size_t i = 0; i < dataset->width; i++) {
		if (parts[i] != NULL && weir_tensor_dtype(parts[i]) == dataset->dtypes[i])
			continue;
		(void)weiri_dataset_fail(dataset, error, WEIR_INVALID_ARGUMENT,
		                         "component %zu: the function gave %s, expected %s", i,
		                         parts[i] == NULL ? "nothing" : weir_dtype_name(weir_tensor_dtype(parts[i])),
		                         weir_dtype_name(dataset->dtypes[i]));
		weiri_parts_release(parts, dataset->width);
		return WEIR_INVALID_ARGUMENT;
	}
	return WEIR_OK;
}

/* -- stages ------------------------------------------------------------------------------------ */

enum weir_status weiri_stage_open(weir_dataset *dataset, const struct weiri_reading *reading,
                                  struct weiri_consumer *consumer, uint64_t pass, struct weiri_stage **out,
                                  weir_error *error)
{
	struct weiri_stage *stage =
		weiri_allocate_zeroed(&reading->allocator, dataset->kind->stage_size, alignof(max_align_t));
	enum weir_status status;

	if (stage == NULL)
		return weiri_dataset_fail(dataset, error, WEIR_RESOURCE_EXHAUSTED, "no memory to read it");
	stage->reading = reading;
	stage->consumer = consumer;
	stage->dataset = weir_dataset_retain(dataset);
	stage->pass = pass;
	status = dataset->kind->open(stage, error);
	if (status != WEIR_OK)
		weiri_stage_close(stage);
	else
		*out = stage;
	return status;
}

enum weir_status weiri_stage_poll(struct weiri_stage *stage, weir_tensor *parts[], weir_error *error)
{
	enum weir_status status = WEIR_OUT_OF_RANGE;

	/* [relaxed] a hint; who sets it resumes the turn afterwards */
	if (weiri_load_relaxed(&stage->consumer->over) != 0)
		return WEIR_WOULD_BLOCK;
	if (!stage->ended)
		status = stage->dataset->kind->poll(stage, parts, error);
	stage->ended = status == WEIR_OUT_OF_RANGE;
	return status;
}

void weiri_stage_close(struct weiri_stage *stage)
{
	weir_dataset *dataset;
	weir_allocator allocator;

	if (stage == NULL)
		return;
	dataset = stage->dataset;
	allocator = stage->reading->allocator;
	dataset->kind->close(stage);
	weiri_release(&allocator, stage, dataset->kind->stage_size, alignof(max_align_t));
	weir_dataset_release(dataset);
}
