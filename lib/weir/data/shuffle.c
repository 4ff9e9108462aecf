/*
 * shuffle.c - elements in random order, through a buffer.
 *
 * Algorithm. The buffer is topped up to its size; one of its elements, drawn uniformly, is given,
 * and the last one takes its place. So each element of the buffer is equally likely at each draw,
 * and an element comes at most size - 1 places before its turn. A repetition opens a new stage for
 * each pass, so no buffer holds elements of two passes.
 *
 * Draw n of a pass is a function of the seed, the pass and n, without a state that advances. With
 * SAME_EACH_TIME the pass does not count. So the seed, the iteration and the position say which
 * elements are still to come.
 */

#include "base/compiler.h"
#include "base/error.h"
#include "base/uncancelled.h"
#include "data/elements.h"
#include "tensor/object.h"

struct shuffle {
	weir_dataset dataset; /* first */
	size_t buffer;
	uint64_t seed;
	bool same_each_time;
};

struct shuffle_stage {
	struct weiri_stage stage; /* first */
	struct weiri_stage *input;
	uint64_t stream, draws;
	uint64_t number; /* that of draw `draws` */
	bool input_ended;
	struct weiri_elements held; /* it grows, since the input may be short */
};

struct product {
	uint64_t high, low;
};

/* SplitMix64: the n-th number of the stream that begins at `stream`. */
static uint64_t number_of(uint64_t stream, uint64_t n)
{
	uint64_t x = stream + (n + 1) * UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

/* Scales a number to one below `bound`, in the high half of the product. */
static struct product scale(uint64_t number, uint64_t bound)
{
#if defined(__SIZEOF_INT128__)
	__extension__ unsigned __int128 product = (unsigned __int128)number * bound;

	return (struct product){(uint64_t)(product >> 64), (uint64_t)product};
#else /* i386: by halves, as on paper */
	uint64_t a = number >> 32, b = (uint32_t)number, c = bound >> 32, d = (uint32_t)bound;
	uint64_t middle = a * d + (b * d >> 32), carry = b * c + (uint32_t)middle;

	return (struct product){a * c + (middle >> 32) + (carry >> 32), number * bound};
#endif
}

/*
 * A number below `bound`. A number whose low half would make some results likelier is drawn again: one below
 * 2^64 mod bound, which is less than bound, so that hardly any draw needs the division (Lemire, TOMACS 2019).
 */
static size_t draw_below(struct shuffle_stage *mine, uint64_t bound)
{
	struct product product;

	do {
		product = scale(mine->number, bound);
		mine->number = number_of(mine->stream, ++mine->draws);
	} while (WEIRI_UNLIKELY(product.low < bound) && product.low < (0 - bound) % bound);
	return (size_t)product.high;
}

static enum weir_status open_shuffle(struct weiri_stage *stage, weir_error *error)
{
	struct shuffle_stage *mine = (struct shuffle_stage *)(void *)stage;
	const struct shuffle *shuffle = (const struct shuffle *)(const void *)stage->dataset;

	mine->held.width = stage->dataset->width;
	mine->stream = number_of(shuffle->seed, 0);
	if (!shuffle->same_each_time)
		mine->stream = number_of(number_of(mine->stream, stage->reading->iteration), stage->pass);
	mine->number = number_of(mine->stream, 0);
	return weiri_stage_open_input(stage, stage->pass, &mine->input, error);
}

static enum weir_status top_up(struct shuffle_stage *mine, weir_error *error)
{
	size_t buffer = ((const struct shuffle *)(const void *)mine->stage.dataset)->buffer;

	while (!mine->input_ended && mine->held.count < buffer) {
		enum weir_status status;

		if (!weiri_elements_make_room(&mine->held, buffer, &mine->stage.reading->allocator))
			return weiri_dataset_again(mine->stage.dataset, error, "no memory for the buffer; try again");
		status = weiri_stage_poll(mine->input, weiri_elements_at(&mine->held, mine->held.count), error);
		mine->input_ended = status == WEIR_OUT_OF_RANGE;
		if (status == WEIR_OK)
			mine->held.count++;
		else if (!mine->input_ended)
			return status;
	}
	return WEIR_OK;
}

/*
 * Brings the element that the next draw will give closer to the processor: a large buffer is not in its
 * near caches, and by then the caller has used the one before. A hint: a number that will be drawn again is
 * taken here as it is.
 */
static void fetch_next(const struct shuffle_stage *mine)
{
	size_t buffer = ((const struct shuffle *)(const void *)mine->stage.dataset)->buffer;
	size_t bound = mine->input_ended ? mine->held.count : buffer;
	size_t next = (size_t)scale(mine->number, bound).high;

	if (next >= mine->held.count)
		return; /* it has not come yet */
	for (size_t c = 0; c < mine->held.width; c++)
		weiri_tensor_fetch(weiri_elements_at(&mine->held, next)[c]);
}

static enum weir_status poll_shuffle(struct weiri_stage *stage, weir_tensor *parts[], weir_error *error)
{
	struct shuffle_stage *mine = (struct shuffle_stage *)(void *)stage;
	size_t width = stage->dataset->width;
	enum weir_status status = top_up(mine, error);
	weir_tensor **drawn, **last;

	if (status != WEIR_OK)
		return status;
	if (mine->held.count == 0)
		return WEIR_OUT_OF_RANGE;
	drawn = weiri_elements_at(&mine->held, draw_below(mine, mine->held.count));
	weiri_parts_move(parts, drawn, width);
	last = weiri_elements_at(&mine->held, --mine->held.count);
	if (drawn != last)
		weiri_parts_move(drawn, last, width);
	fetch_next(mine);
	return WEIR_OK;
}

static void close_shuffle(struct weiri_stage *stage)
{
	struct shuffle_stage *mine = (struct shuffle_stage *)(void *)stage;

	weiri_stage_close(mine->input);
	weiri_elements_fini(&mine->held, &stage->reading->allocator);
}

static const struct weiri_dataset_kind shuffle_kind = {"shuffle",
                                                       WEIRI_USES_SEED,
                                                       WEIR_DATASET_SAME_EACH_TIME,
                                                       sizeof(struct shuffle_stage),
                                                       open_shuffle,
                                                       poll_shuffle,
                                                       close_shuffle,
                                                       NULL,
                                                       NULL};

static uint64_t random_seed(const weir_dataset *dataset)
{
	uint64_t seed;

	/* Without the system's random numbers: the time and an address, so that two datasets still differ. */
	if (weiri_getrandom(&seed, sizeof(seed)) != (ssize_t)sizeof(seed))
		seed = number_of(weir_now_ns(), (uint64_t)(uintptr_t)dataset);
	return seed;
}

enum weir_status weir_dataset_shuffle(weir_dataset *input, size_t buffer, const struct weir_dataset_options *options,
                                      weir_dataset **out, weir_error *error)
{
	struct weir_dataset_options used;
	enum weir_status status;
	struct shuffle *shuffle;

	if (buffer == 0)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "shuffle: the buffer is 0, expected at least 1");
	status = weiri_dataset_derive(&shuffle_kind, sizeof(struct shuffle), input, buffer, options, &used, out, error);
	if (status != WEIR_OK)
		return status;
	shuffle = (struct shuffle *)(void *)*out;
	shuffle->buffer = buffer;
	shuffle->seed = used.seed != NULL ? *used.seed : random_seed(*out);
	shuffle->same_each_time = (used.flags & WEIR_DATASET_SAME_EACH_TIME) != 0;
	return WEIR_OK;
}

enum weir_status weir_dataset_seed(const weir_dataset *dataset, uint64_t *seed)
{
	if (dataset == NULL || seed == NULL)
		return WEIR_INVALID_ARGUMENT;
	if (dataset->kind != &shuffle_kind)
		return WEIR_NOT_FOUND;
	*seed = ((const struct shuffle *)(const void *)dataset)->seed;
	return WEIR_OK;
}
