/*
 * repeat.c - how often, and how much of, the input is read: repeat, take, skip.
 */
#include "base/error.h"
#include "data/stage.h"

struct counted {
	weir_dataset dataset; /* first */
	uint64_t count;
};

struct counted_stage {
	struct weiri_stage stage; /* first */
	struct weiri_stage *input;
	uint64_t done;  /* passes, or elements */
	bool pass_gave; /* repeat: the pass has given an element */
};

#define FOR_EVER UINT64_MAX

static uint64_t count_of(const struct counted_stage *mine)
{
	return ((const struct counted *)(const void *)mine->stage.dataset)->count;
}

static void close_counted(struct weiri_stage *stage)
{
	weiri_stage_close(((struct counted_stage *)(void *)stage)->input);
}

static enum weir_status open_counted(struct weiri_stage *stage, weir_error *error)
{
	return weiri_stage_open_input(stage, stage->pass, &((struct counted_stage *)(void *)stage)->input, error);
}

/* -- repeat ------------------------------------------------------------------------------------ */

/* The input is opened by the polls. */
static enum weir_status open_repeat(struct weiri_stage *stage, weir_error *error)
{
	(void)stage, (void)error;
	return WEIR_OK;
}

/* Returns WEIR_OUT_OF_RANGE after the last pass. */
static enum weir_status begin_pass(struct counted_stage *mine, weir_error *error)
{
	enum weir_status status;

	if (mine->done == count_of(mine))
		return WEIR_OUT_OF_RANGE;
	/* Passes of nested repetitions get different numbers, so that their shuffles differ. */
	status = weiri_stage_open_input(&mine->stage, mine->stage.pass * UINT64_C(0x100000001b3) + mine->done, &mine->input,
	                                error);
	mine->pass_gave = false;
	return status == WEIR_OK ? status : WEIRI_POLL_AGAIN; /* an open fails for memory only */
}

static enum weir_status poll_repeat(struct weiri_stage *stage, weir_tensor *parts[], weir_error *error)
{
	struct counted_stage *mine = (struct counted_stage *)(void *)stage;

	for (;;) {
		enum weir_status status = mine->input == NULL ? begin_pass(mine, error) : WEIR_OK;

		if (status != WEIR_OK)
			return status;
		status = weiri_stage_poll(mine->input, parts, error);
		if (status != WEIR_OUT_OF_RANGE) {
			mine->pass_gave |= status != WEIR_WOULD_BLOCK && status != WEIRI_POLL_AGAIN;
			return status;
		}
		weiri_stage_close(mine->input);
		mine->input = NULL;
		mine->done++;
		if (count_of(mine) == FOR_EVER && !mine->pass_gave)
			return WEIR_OUT_OF_RANGE;
	}
}

/* Rows of one pass. */
static bool poll_repeated_rows(struct weiri_stage *stage, size_t count, weir_tensor *parts[])
{
	struct counted_stage *mine = (struct counted_stage *)(void *)stage;
	bool has_rows = mine->input != NULL && weiri_stage_poll_rows(mine->input, count, parts);

	mine->pass_gave |= has_rows;
	return has_rows;
}

static const struct weiri_dataset_kind repeat_kind = {
	"repeat", 0, 0, sizeof(struct counted_stage), open_repeat, poll_repeat, close_counted, NULL, poll_repeated_rows};

/* -- take and skip ----------------------------------------------------------------------------- */

static enum weir_status poll_take(struct weiri_stage *stage, weir_tensor *parts[], weir_error *error)
{
	struct counted_stage *mine = (struct counted_stage *)(void *)stage;
	enum weir_status status;

	if (mine->done == count_of(mine))
		return WEIR_OUT_OF_RANGE;
	status = weiri_stage_poll(mine->input, parts, error);
	mine->done += status != WEIR_WOULD_BLOCK && status != WEIRI_POLL_AGAIN;
	return status;
}

static enum weir_status poll_skip(struct weiri_stage *stage, weir_tensor *parts[], weir_error *error)
{
	struct counted_stage *mine = (struct counted_stage *)(void *)stage;

	for (;;) {
		enum weir_status status = weiri_stage_poll(mine->input, parts, error);

		if (status == WEIR_WOULD_BLOCK || status == WEIRI_POLL_AGAIN || status == WEIR_OUT_OF_RANGE ||
		    mine->done == count_of(mine))
			return status;
		if (status == WEIR_OK)
			weiri_parts_release(parts, stage->dataset->width);
		mine->done++;
	}
}

static const struct weiri_dataset_kind take_kind = {
	"take", 0, 0, sizeof(struct counted_stage), open_counted, poll_take, close_counted, NULL, NULL};
static const struct weiri_dataset_kind skip_kind = {
	"skip", 0, 0, sizeof(struct counted_stage), open_counted, poll_skip, close_counted, NULL, NULL};

/* -- creating ---------------------------------------------------------------------------------- */

static enum weir_status create(const struct weiri_dataset_kind *kind, weir_dataset *input, uint64_t count,
                               const struct weir_dataset_options *options, weir_dataset **out, weir_error *error)
{
	struct weir_dataset_options used;
	enum weir_status status =
		weiri_dataset_derive(kind, sizeof(struct counted), input, count, options, &used, out, error);

	if (status == WEIR_OK)
		((struct counted *)(void *)*out)->count = count;
	return status;
}

enum weir_status weir_dataset_repeat(weir_dataset *input, int64_t times, const struct weir_dataset_options *options,
                                     weir_dataset **out, weir_error *error)
{
	enum weir_status status;

	if (times < -1)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "repeat: %lld times, expected -1 (for ever), 0 or more",
		                  (long long)times);
	status = create(&repeat_kind, input, times < 0 ? FOR_EVER : (uint64_t)times, options, out, error);
	if (status == WEIR_OK)
		(*out)->is_numbered = times >= 0;
	return status;
}

enum weir_status weir_dataset_take(weir_dataset *input, uint64_t count, const struct weir_dataset_options *options,
                                   weir_dataset **out, weir_error *error)
{
	return create(&take_kind, input, count, options, out, error);
}

enum weir_status weir_dataset_skip(weir_dataset *input, uint64_t count, const struct weir_dataset_options *options,
                                   weir_dataset **out, weir_error *error)
{
	return create(&skip_kind, input, count, options, out, error);
}
