/*
 * prefetch.c - elements that are computed before they are asked for: a window around nothing.
 */
#include "base/error.h"
#include "data/window.h"

struct prefetch {
	weir_dataset dataset; /* first */
	size_t size;
};

struct prefetch_stage {
	struct weiri_stage stage; /* first */
	/* One of the two. */
	struct weiri_window *window;
	struct weiri_stage *input;
};

static enum weir_status open_prefetch(struct weiri_stage *stage, weir_error *error)
{
	struct prefetch_stage *mine = (struct prefetch_stage *)(void *)stage;
	size_t size = ((const struct prefetch *)(const void *)stage->dataset)->size;

	if (size == 0 || stage->reading->pool == NULL)
		return weiri_stage_open_input(stage, stage->pass, &mine->input, error);
	return weiri_window_open(stage,
	                         &(struct weiri_window_plan){stage->dataset->inputs[0], size, NULL, false, stage->pass},
	                         &mine->window, error);
}

static enum weir_status poll_prefetch(struct weiri_stage *stage, weir_tensor *parts[], weir_error *error)
{
	struct prefetch_stage *mine = (struct prefetch_stage *)(void *)stage;

	return mine->window != NULL ? weiri_window_poll(mine->window, parts, error)
	                            : weiri_stage_poll(mine->input, parts, error);
}

static void close_prefetch(struct weiri_stage *stage)
{
	struct prefetch_stage *mine = (struct prefetch_stage *)(void *)stage;

	weiri_window_close(mine->window);
	weiri_stage_close(mine->input);
}

static const struct weiri_dataset_kind prefetch_kind = {
	"prefetch", 0, 0, sizeof(struct prefetch_stage), open_prefetch, poll_prefetch, close_prefetch, NULL, NULL};

enum weir_status weir_dataset_prefetch(weir_dataset *input, size_t size, const struct weir_dataset_options *options,
                                       weir_dataset **out, weir_error *error)
{
	struct weir_dataset_options used;
	enum weir_status status;

	if (size > WEIR_DATASET_MAX_AHEAD)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "prefetch: the size is %zu, expected at most %d", size,
		                  WEIR_DATASET_MAX_AHEAD);
	status = weiri_dataset_derive(&prefetch_kind, sizeof(struct prefetch), input, size, options, &used, out, error);
	if (status != WEIR_OK)
		return status;
	((struct prefetch *)(void *)*out)->size = size;
	(*out)->runs_ahead = size > 0;
	return WEIR_OK;
}
