/*
 * interleave.c - several datasets, made from the elements of the input, that take turns.
 *
 * Algorithm. A stage has `cycle` places. Each place has the stage of one sub-dataset. The place
 * whose turn it is gives `block` elements, then the turn goes on. If its sub-dataset ends, the turn
 * goes on at once, and the place is empty. An empty place gets the sub-dataset of the next input
 * element when its turn comes. An error of the input or of the function takes one turn; its place is
 * then empty.
 *
 * With at_once > 1 and a pool, each sub-dataset is read through a window of `block` elements, and
 * empty places are filled early: the one whose turn comes first gets the next input element, as it
 * would at its turn. An error on the way is kept for the turn of its place. So the order is that of
 * reading one after the other. Unordered, a place that has an element may overtake the one whose
 * turn it is.
 */
#include <stdalign.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/window.h"

struct interleave {
	weir_dataset dataset; /* first */
	weir_dataset_flat_fn *fn;
	size_t cycle, block;
	bool is_ahead, is_unordered;
};

struct place {
	/* At most one of the two. */
	struct weiri_stage *stage;
	struct weiri_window *window;
	enum weir_status failed; /* WEIR_OK: nothing failed */
	weir_error error;
};

struct interleave_stage {
	struct weiri_stage stage; /* first */
	struct weiri_stage *input;
	bool input_ended, is_ahead;
	struct place *places;
	size_t turn, given; /* whose turn it is, and how many elements it has given in it */
	size_t full;        /* places that are not empty */
	uint64_t made;      /* sub-datasets */
};

static const struct interleave *interleave_of(const struct interleave_stage *mine)
{
	return (const struct interleave *)(const void *)mine->stage.dataset;
}

static bool is_empty(const struct place *place)
{
	return place->stage == NULL && place->window == NULL && place->failed == WEIR_OK;
}

static void empty(struct interleave_stage *mine, struct place *place)
{
	weiri_stage_close(place->stage);
	weiri_window_close(place->window);
	place->stage = NULL;
	place->window = NULL;
	place->failed = WEIR_OK;
	mine->full--;
}

/* -- filling a place --------------------------------------------------------------------------- */

static enum weir_status check_types(const weir_dataset *dataset, const weir_dataset *sub, weir_error *error)
{
	if (sub == NULL)
		return weiri_dataset_fail(dataset, error, WEIR_INVALID_ARGUMENT, "the function gave no dataset");
	if (sub->width != dataset->width)
		return weiri_dataset_fail(dataset, error, WEIR_INVALID_ARGUMENT,
		                          "the function gave a dataset of %zu component%s, expected %zu", sub->width,
		                          WEIRI_S(sub->width), dataset->width);
	for (size_t c = 0; c < sub->width; c++) {
		if (sub->dtypes[c] != dataset->dtypes[c])
			return weiri_dataset_fail(dataset, error, WEIR_INVALID_ARGUMENT,
			                          "component %zu: the function gave a dataset of %s, expected %s", c,
			                          weir_dtype_name(sub->dtypes[c]), weir_dtype_name(dataset->dtypes[c]));
	}
	return WEIR_OK;
}

static enum weir_status open_place(struct interleave_stage *mine, struct place *place, weir_dataset *sub,
                                   weir_error *error)
{
	struct weiri_stage *stage = &mine->stage;
	uint64_t pass = stage->pass * UINT64_C(0x100000001b3) + mine->made++;
	enum weir_status status = check_types(stage->dataset, sub, error);

	if (status != WEIR_OK)
		return status;
	if (!mine->is_ahead)
		return weiri_stage_open(sub, stage->reading, stage->consumer, pass, &place->stage, error);
	status = weiri_window_open(stage, &(struct weiri_window_plan){sub, interleave_of(mine)->block, NULL, false, pass},
	                           &place->window, error);
	if (status == WEIR_OK)
		weiri_window_begin(place->window);
	return status;
}

/*
 * Gives the next input element to an empty place. Returns WEIR_WOULD_BLOCK, WEIR_OUT_OF_RANGE or
 * WEIRI_POLL_AGAIN if there is none. An error is kept in the place.
 */
static enum weir_status fill(struct interleave_stage *mine, struct place *place)
{
	const weir_dataset *dataset = mine->stage.dataset;
	weir_tensor *element[WEIR_DATASET_MAX_WIDTH];
	weir_dataset *sub = NULL;
	enum weir_status status = weiri_stage_poll(mine->input, element, &place->error);

	if (status == WEIR_WOULD_BLOCK || status == WEIR_OUT_OF_RANGE || status == WEIRI_POLL_AGAIN)
		return status;
	if (status == WEIR_OK) {
		place->error.message[0] = '\0';
		status = interleave_of(mine)->fn(dataset->context, element, &sub, &place->error);
		weiri_parts_release(element, dataset->inputs[0]->width);
		if (status == WEIR_OK)
			status = open_place(mine, place, sub, &place->error);
		else
			status = weiri_dataset_blame(dataset, status, &place->error);
		weir_dataset_release(sub);
	}
	place->failed = status;
	mine->full++;
	return WEIR_OK;
}

/* Fills empty places, those first whose turn comes first. */
static void fill_ahead(struct interleave_stage *mine)
{
	size_t cycle = interleave_of(mine)->cycle;

	for (size_t i = 0; i < cycle && mine->full < cycle && !mine->input_ended; i++) {
		struct place *place = &mine->places[(mine->turn + i) % cycle];
		enum weir_status status = is_empty(place) ? fill(mine, place) : WEIR_OK;

		mine->input_ended = status == WEIR_OUT_OF_RANGE;
		if (status != WEIR_OK)
			return;
	}
}

/* -- giving elements --------------------------------------------------------------------------- */

static void pass_the_turn(struct interleave_stage *mine)
{
	mine->turn = (mine->turn + 1) % interleave_of(mine)->cycle;
	mine->given = 0;
}

/* A place that ends is emptied. */
static enum weir_status poll_place(struct interleave_stage *mine, struct place *place, weir_tensor *parts[],
                                   weir_error *error)
{
	enum weir_status status = place->failed;

	if (status != WEIR_OK) {
		*error = place->error;
		empty(mine, place);
		return status;
	}
	status = place->window != NULL ? weiri_window_poll(place->window, parts, error)
	                               : weiri_stage_poll(place->stage, parts, error);
	if (status == WEIR_OUT_OF_RANGE)
		empty(mine, place);
	return status;
}

/* The place whose turn it is has nothing now: another one may overtake it. */
static enum weir_status poll_others(struct interleave_stage *mine, weir_tensor *parts[], weir_error *error)
{
	size_t cycle = interleave_of(mine)->cycle, full = mine->full;

	for (size_t i = 1; i < cycle; i++) {
		struct place *place = &mine->places[(mine->turn + i) % cycle];
		enum weir_status status = is_empty(place) ? WEIR_WOULD_BLOCK : poll_place(mine, place, parts, error);

		if (status != WEIR_WOULD_BLOCK && status != WEIR_OUT_OF_RANGE)
			return status;
	}
	return mine->is_ahead && mine->full < full && !mine->input_ended ? WEIR_OUT_OF_RANGE : WEIR_WOULD_BLOCK;
}

/* Polls the place whose turn it is. Returns WEIR_OUT_OF_RANGE if it gives nothing in this turn. */
static enum weir_status poll_turn(struct interleave_stage *mine, weir_tensor *parts[], weir_error *error)
{
	struct place *place = &mine->places[mine->turn];
	bool had_failed;
	enum weir_status status = WEIR_OK;

	if (is_empty(place) && !mine->input_ended) {
		status = fill(mine, place);
		mine->input_ended = status == WEIR_OUT_OF_RANGE;
	}
	if (status == WEIRI_POLL_AGAIN)
		*error = place->error;
	if (status == WEIR_WOULD_BLOCK || status == WEIRI_POLL_AGAIN)
		return status;
	if (is_empty(place))
		return WEIR_OUT_OF_RANGE;
	had_failed = place->failed != WEIR_OK;
	status = poll_place(mine, place, parts, error);
	if (had_failed)
		mine->given = interleave_of(mine)->block; /* the turn goes on */
	else if (status != WEIR_WOULD_BLOCK && status != WEIR_OUT_OF_RANGE && status != WEIRI_POLL_AGAIN)
		mine->given++;
	return status;
}

static enum weir_status poll_interleave(struct weiri_stage *stage, weir_tensor *parts[], weir_error *error)
{
	struct interleave_stage *mine = (struct interleave_stage *)(void *)stage;

	for (;;) {
		enum weir_status status;

		if (mine->is_ahead)
			fill_ahead(mine);
		if (mine->input_ended && mine->full == 0)
			return WEIR_OUT_OF_RANGE;
		status = poll_turn(mine, parts, error);
		if (status == WEIR_WOULD_BLOCK) {
			if (interleave_of(mine)->is_unordered)
				status = poll_others(mine, parts, error);
			if (status == WEIR_OUT_OF_RANGE)
				continue; /* a place was emptied: fill it */
			return status;
		}
		if (status == WEIR_OUT_OF_RANGE || mine->given == interleave_of(mine)->block)
			pass_the_turn(mine);
		if (status != WEIR_OUT_OF_RANGE)
			return status;
	}
}

/* -- opening and creating ---------------------------------------------------------------------- */

static enum weir_status open_interleave(struct weiri_stage *stage, weir_error *error)
{
	struct interleave_stage *mine = (struct interleave_stage *)(void *)stage;
	const struct interleave *interleave = interleave_of(mine);

	mine->is_ahead = interleave->is_ahead && stage->reading->pool != NULL;
	mine->places = weiri_allocate_zeroed(&stage->reading->allocator, interleave->cycle * sizeof(struct place),
	                                     alignof(struct place));
	if (mine->places == NULL)
		return weiri_dataset_fail(stage->dataset, error, WEIR_RESOURCE_EXHAUSTED, "no memory for %zu inputs",
		                          interleave->cycle);
	return weiri_stage_open_input(stage, stage->pass, &mine->input, error);
}

static void close_interleave(struct weiri_stage *stage)
{
	struct interleave_stage *mine = (struct interleave_stage *)(void *)stage;
	size_t cycle = interleave_of(mine)->cycle;

	for (size_t i = 0; mine->places != NULL && i < cycle; i++) {
		if (!is_empty(&mine->places[i]))
			empty(mine, &mine->places[i]);
	}
	weiri_release(&stage->reading->allocator, mine->places, cycle * sizeof(struct place), alignof(struct place));
	weiri_stage_close(mine->input);
}

static const struct weiri_dataset_kind interleave_kind = {"interleave",
                                                          WEIRI_USES_AT_ONCE | WEIRI_USES_CYCLE | WEIRI_USES_TYPES |
                                                              WEIRI_USES_DISPOSE,
                                                          WEIR_DATASET_UNORDERED,
                                                          sizeof(struct interleave_stage),
                                                          open_interleave,
                                                          poll_interleave,
                                                          close_interleave,
                                                          NULL,
                                                          NULL};

static enum weir_status check_cycle(const struct weir_dataset_options *options, weir_error *error)
{
	const size_t most = WEIR_DATASET_MAX_AHEAD;

	if (options == NULL || (options->cycle <= most && options->block <= most))
		return WEIR_OK;
	return weiri_fail(error, WEIR_INVALID_ARGUMENT, "interleave: %s is %zu, expected at most %zu",
	                  options->cycle > most ? "cycle" : "block",
	                  options->cycle > most ? options->cycle : options->block, most);
}

enum weir_status weir_dataset_interleave(weir_dataset *input, weir_dataset_flat_fn *fn, void *context,
                                         const struct weir_dataset_options *options, weir_dataset **out,
                                         weir_error *error)
{
	struct weir_dataset_options used;
	enum weir_status status;
	struct interleave *interleave;
	weir_dataset *dataset;

	if (input == NULL || fn == NULL || out == NULL)
		return weiri_dataset_fail_null(&interleave_kind, input == NULL ? "input" : fn == NULL ? "fn" : "out", error);
	status = weiri_dataset_create(&interleave_kind, sizeof(struct interleave), &input, 1, context, options, &used,
	                              &dataset, error);
	if (status == WEIR_OK) {
		status = check_cycle(&used, error);
		if (status != WEIR_OK)
			weiri_dataset_abandon(dataset);
	}
	if (status != WEIR_OK)
		return status;
	interleave = (struct interleave *)(void *)dataset;
	interleave->fn = fn;
	interleave->cycle = used.cycle != 0 ? used.cycle : 1;
	interleave->block = used.block != 0 ? used.block : 1;
	interleave->is_ahead = used.at_once > 1;
	interleave->is_unordered = (used.flags & WEIR_DATASET_UNORDERED) != 0;
	dataset->number = interleave->cycle;
	dataset->is_numbered = true;
	*out = dataset;
	return WEIR_OK;
}
