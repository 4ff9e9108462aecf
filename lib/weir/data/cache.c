/*
 * cache.c - elements that are kept for later passes.
 *
 * A stage that reads the input keeps a reference to each element. If it reaches the end without an
 * error, it publishes the list in the dataset; the first one wins. A stage that finds a list when
 * it opens reads that and never opens the input.
 *
 * Pairs
 *   P1  publish -> open: the list
 * Progress: lock-free, apart from the input. Memory: references to all elements, until the dataset
 * is freed.
 */
#include <stdalign.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/elements.h"

struct list {
	weir_allocator allocator;
	struct weiri_elements elements;
};

struct cache {
	weir_dataset dataset; /* first */
	_Atomic(struct list *) kept;
};

struct cache_stage {
	struct weiri_stage stage; /* first */
	struct weiri_stage *input;
	const struct list *kept; /* what this stage gives; NULL: it reads the input */
	size_t next;
	struct list *gathered; /* NULL: an error came, or memory was missing */
};

static struct cache *cache_of(const struct weiri_stage *stage)
{
	return (struct cache *)(void *)stage->dataset;
}

static void free_list(struct list *list)
{
	weir_allocator allocator;

	if (list == NULL)
		return;
	allocator = list->allocator;
	weiri_elements_fini(&list->elements, &allocator);
	weiri_release(&allocator, list, sizeof(*list), alignof(struct list));
}

static struct list *create_list(const weir_allocator *allocator, size_t width)
{
	struct list *list = weiri_allocate_zeroed(allocator, sizeof(*list), alignof(struct list));

	if (list == NULL)
		return NULL;
	list->allocator = *allocator;
	list->elements.width = width;
	return list;
}

/* Returns false if there is no memory. */
static bool append(struct list *list, weir_tensor *const parts[])
{
	struct weiri_elements *elements = &list->elements;
	weir_tensor **kept;

	if (!weiri_elements_make_room(elements, SIZE_MAX, &list->allocator))
		return false;
	kept = weiri_elements_at(elements, elements->count++);
	for (size_t c = 0; c < elements->width; c++)
		kept[c] = weir_tensor_retain(parts[c]);
	return true;
}

static enum weir_status open_cache(struct weiri_stage *stage, weir_error *error)
{
	struct cache_stage *mine = (struct cache_stage *)(void *)stage;

	/* [P1 acquire] pairs with publish() */
	mine->kept = weiri_load_acquire(&cache_of(stage)->kept);
	if (mine->kept != NULL)
		return WEIR_OK;
	/* It outlives the iterator, so it has the dataset's allocator. */
	mine->gathered = create_list(&stage->dataset->allocator, stage->dataset->width);
	return weiri_stage_open_input(stage, stage->pass, &mine->input, error);
}

static void publish(struct cache_stage *mine)
{
	struct list *none = NULL;

	/* [P1 release] pairs with open_cache() */
	if (mine->gathered != NULL && weiri_cas_release(&cache_of(&mine->stage)->kept, &none, mine->gathered))
		mine->gathered = NULL;
}

static void give_up(struct cache_stage *mine)
{
	free_list(mine->gathered);
	mine->gathered = NULL;
}

static enum weir_status poll_cache(struct weiri_stage *stage, weir_tensor *parts[], weir_error *error)
{
	struct cache_stage *mine = (struct cache_stage *)(void *)stage;
	enum weir_status status;

	if (mine->kept != NULL) {
		weir_tensor **kept;

		if (mine->next == mine->kept->elements.count)
			return WEIR_OUT_OF_RANGE;
		kept = weiri_elements_at(&mine->kept->elements, mine->next++);
		for (size_t c = 0; c < stage->dataset->width; c++)
			parts[c] = weir_tensor_retain(kept[c]);
		return WEIR_OK;
	}
	status = weiri_stage_poll(mine->input, parts, error);
	if (status == WEIR_OUT_OF_RANGE)
		publish(mine);
	else if (status != WEIR_WOULD_BLOCK && status != WEIRI_POLL_AGAIN && mine->gathered != NULL &&
	         (status != WEIR_OK || !append(mine->gathered, parts)))
		give_up(mine);
	return status;
}

static void close_cache(struct weiri_stage *stage)
{
	struct cache_stage *mine = (struct cache_stage *)(void *)stage;

	give_up(mine);
	weiri_stage_close(mine->input);
}

static void dispose_cache(weir_dataset *dataset)
{
	/* [relaxed] the last reference: all publishers gave theirs back before */
	free_list(weiri_load_relaxed(&((struct cache *)(void *)dataset)->kept));
}

static const struct weiri_dataset_kind cache_kind = {
	"cache", 0, 0, sizeof(struct cache_stage), open_cache, poll_cache, close_cache, dispose_cache, NULL};

enum weir_status weir_dataset_cache(weir_dataset *input, const struct weir_dataset_options *options, weir_dataset **out,
                                    weir_error *error)
{
	struct weir_dataset_options used;

	if (input == NULL || out == NULL)
		return weiri_dataset_fail_null(&cache_kind, input == NULL ? "input" : "out", error);
	return weiri_dataset_create(&cache_kind, sizeof(struct cache), &input, 1, NULL, options, &used, out, error);
}
