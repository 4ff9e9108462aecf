/*
 * map.c - functions of the user for each element: map and filter.
 */
#include "base/compiler.h"
#include "base/error.h"
#include "data/window.h"
#include "tensor/object.h"

/* -- map --------------------------------------------------------------------------------------- */

struct map {
	weir_dataset dataset; /* first */
	weir_dataset_map_fn *fn;
	size_t at_once;
	bool is_unordered;
};

struct map_stage {
	struct weiri_stage stage; /* first */
	/* One of the two. */
	struct weiri_window *window;
	struct weiri_stage *input;
};

/* Refuses an element with more components than promised. */
static enum weir_status check_width(const weir_dataset *dataset, weir_tensor *const given[], weir_error *error)
{
	size_t width = WEIR_DATASET_MAX_WIDTH;

	while (width > dataset->width && given[width - 1] == NULL)
		width--;
	if (width <= dataset->width)
		return WEIR_OK;
	return weiri_dataset_fail(dataset, error, WEIR_INVALID_ARGUMENT, "the function gave %zu components, expected %zu",
	                          width, dataset->width);
}

/* The function failed, or gave something that was not promised. */
static WEIRI_COLD enum weir_status refuse(const weir_dataset *dataset, enum weir_status status, weir_tensor *given[],
                                          weir_error *error)
{
	status = status == WEIR_OK ? check_width(dataset, given, error) : weiri_dataset_blame(dataset, status, error);
	if (status == WEIR_OK)
		status = weiri_parts_check(dataset, given, error);
	weiri_parts_release(given, WEIR_DATASET_MAX_WIDTH);
	return status;
}

/*
 * What a function gives: as many components as an element may have, although not more than promised. In two
 * halves, each of which gcc clears by a few stores; all at once it would clear by a string instruction, 11 ns
 * instead of 2 (Zen 4).
 */
enum { HALF = WEIR_DATASET_MAX_WIDTH / 2 };
_Static_assert(WEIR_DATASET_MAX_WIDTH % 4 == 0, "halves, and groups of four, have no rest");
union given {
	weir_tensor *parts[WEIR_DATASET_MAX_WIDTH];
	struct half {
		weir_tensor *parts[HALF];
	} halves[2];
};

static inline void clear(union given *given)
{
	given->halves[0] = (struct half){{NULL}};
	given->halves[1] = (struct half){{NULL}};
}

/* Four at a time, since most functions promise one component, and all others are looked at, too. */
static inline bool is_clear(const union given *given)
{
	uintptr_t left = 0;

	for (size_t i = 0; i < WEIR_DATASET_MAX_WIDTH; i += 4)
		left |= (uintptr_t)given->parts[i] | (uintptr_t)given->parts[i + 1] | (uintptr_t)given->parts[i + 2] |
		        (uintptr_t)given->parts[i + 3];
	return left == 0;
}

/* Moves what the function gave. Returns false, and has moved nothing, if it is not as promised. */
static inline bool move_promised(const weir_dataset *dataset, weir_tensor *parts[], union given *given)
{
	size_t i = 0;

	for (; i < dataset->width; i++) {
		weir_tensor *part = given->parts[i];

		if (WEIRI_UNLIKELY(part == NULL || part->dtype != dataset->dtypes[i]))
			break;
		parts[i] = part;
		given->parts[i] = NULL;
	}
	if (WEIRI_LIKELY(i == dataset->width && is_clear(given)))
		return true;
	weiri_parts_move(given->parts, parts, i);
	return false;
}

/* Replaces an element of the input by one of the map. */
static enum weir_status apply(const weir_dataset *dataset, weir_tensor *parts[], weir_error *error)
{
	union given given;
	enum weir_status status;

	clear(&given);
	error->message[0] = '\0';
	status = ((const struct map *)(const void *)dataset)->fn(dataset->context, parts, given.parts, error);
	weiri_parts_release(parts, dataset->inputs[0]->width);
	if (WEIRI_LIKELY(status == WEIR_OK && move_promised(dataset, parts, &given)))
		return WEIR_OK;
	return refuse(dataset, status, given.parts, error);
}

static enum weir_status open_map(struct weiri_stage *stage, weir_error *error)
{
	struct map_stage *mine = (struct map_stage *)(void *)stage;
	const struct map *map = (const struct map *)(const void *)stage->dataset;

	if (map->at_once <= 1 || stage->reading->pool == NULL)
		return weiri_stage_open_input(stage, stage->pass, &mine->input, error);
	return weiri_window_open(
		stage,
		&(struct weiri_window_plan){stage->dataset->inputs[0], map->at_once, apply, map->is_unordered, stage->pass},
		&mine->window, error);
}

static enum weir_status poll_map(struct weiri_stage *stage, weir_tensor *parts[], weir_error *error)
{
	struct map_stage *mine = (struct map_stage *)(void *)stage;
	weir_tensor *element[WEIR_DATASET_MAX_WIDTH];
	enum weir_status status;

	if (mine->window != NULL)
		return weiri_window_poll(mine->window, parts, error);
	/* The input may be wider than the map, and than the caller's array. */
	status = weiri_stage_poll(mine->input, element, error);
	if (status == WEIR_OK)
		status = apply(stage->dataset, element, error);
	if (status == WEIR_OK)
		weiri_parts_move(parts, element, stage->dataset->width);
	return status;
}

static void close_map(struct weiri_stage *stage)
{
	struct map_stage *mine = (struct map_stage *)(void *)stage;

	weiri_window_close(mine->window);
	weiri_stage_close(mine->input);
}

static const struct weiri_dataset_kind map_kind = {"map",
                                                   WEIRI_USES_AT_ONCE | WEIRI_USES_TYPES | WEIRI_USES_DISPOSE |
                                                       WEIRI_IS_BRIEF,
                                                   WEIR_DATASET_UNORDERED | WEIR_DATASET_SHORT,
                                                   sizeof(struct map_stage),
                                                   open_map,
                                                   poll_map,
                                                   close_map,
                                                   NULL,
                                                   NULL};

enum weir_status weir_dataset_map(weir_dataset *input, weir_dataset_map_fn *fn, void *context,
                                  const struct weir_dataset_options *options, weir_dataset **out, weir_error *error)
{
	struct weir_dataset_options used;
	enum weir_status status;
	struct map *map;

	if (input == NULL || fn == NULL || out == NULL)
		return weiri_dataset_fail_null(&map_kind, input == NULL ? "input" : fn == NULL ? "fn" : "out", error);
	status = weiri_dataset_create(&map_kind, sizeof(struct map), &input, 1, context, options, &used, out, error);
	if (status != WEIR_OK)
		return status;
	map = (struct map *)(void *)*out;
	map->fn = fn;
	map->at_once = used.at_once;
	map->is_unordered = (used.flags & WEIR_DATASET_UNORDERED) != 0;
	map->dataset.number = used.at_once;
	map->dataset.is_numbered = map->dataset.runs_ahead = used.at_once > 1;
	return WEIR_OK;
}

/* -- filter ------------------------------------------------------------------------------------ */

struct filter {
	weir_dataset dataset; /* first */
	weir_dataset_filter_fn *fn;
};

struct filter_stage {
	struct weiri_stage stage; /* first */
	struct weiri_stage *input;
};

static enum weir_status open_filter(struct weiri_stage *stage, weir_error *error)
{
	return weiri_stage_open_input(stage, stage->pass, &((struct filter_stage *)(void *)stage)->input, error);
}

static enum weir_status poll_filter(struct weiri_stage *stage, weir_tensor *parts[], weir_error *error)
{
	struct filter_stage *mine = (struct filter_stage *)(void *)stage;
	const struct filter *filter = (const struct filter *)(const void *)stage->dataset;

	for (;;) {
		enum weir_status status = weiri_stage_poll(mine->input, parts, error);
		bool keep = false;

		if (status != WEIR_OK)
			return status;
		error->message[0] = '\0';
		status = filter->fn(stage->dataset->context, parts, &keep, error);
		if (status == WEIR_OK && keep)
			return WEIR_OK;
		weiri_parts_release(parts, stage->dataset->width);
		if (status != WEIR_OK)
			return weiri_dataset_blame(stage->dataset, status, error);
	}
}

static void close_filter(struct weiri_stage *stage)
{
	weiri_stage_close(((struct filter_stage *)(void *)stage)->input);
}

static const struct weiri_dataset_kind filter_kind = {
	"filter", WEIRI_USES_DISPOSE, 0, sizeof(struct filter_stage), open_filter, poll_filter, close_filter, NULL, NULL};

enum weir_status weir_dataset_filter(weir_dataset *input, weir_dataset_filter_fn *fn, void *context,
                                     const struct weir_dataset_options *options, weir_dataset **out, weir_error *error)
{
	struct weir_dataset_options used;
	enum weir_status status;

	if (input == NULL || fn == NULL || out == NULL)
		return weiri_dataset_fail_null(&filter_kind, input == NULL ? "input" : fn == NULL ? "fn" : "out", error);
	status = weiri_dataset_create(&filter_kind, sizeof(struct filter), &input, 1, context, options, &used, out, error);
	if (status == WEIR_OK)
		((struct filter *)(void *)*out)->fn = fn;
	return status;
}
