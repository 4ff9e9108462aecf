/*
 * weir_update.c - our variables with large values, called as a user calls them: additions, and
 * publishing beside readers.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <weir/reclaim.h>
#include <weir/var.h>

#include "rivals.h"
#include "weir_value.h"

struct large {
	weir_var *var;
	weir_tensor **deltas; /* one per thread; all elements are 1 */
	unsigned threads;
	size_t bytes;
	uint64_t wasted_before;
	_Atomic(uint64_t) wasted; /* by retries */
};

static uint64_t copies_wasted(void)
{
	struct weir_reclaim_stats stats = {WEIR_RECLAIM_STATS_INIT};

	if (weir_reclaim_get_stats(&stats) != WEIR_OK)
		exit(3);
	return stats.copies_wasted;
}

static struct large *create_with(size_t bytes, unsigned threads, const weir_allocator *allocator)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I64, .allocator = allocator};
	weir_tensor *first = tensor_of(0, bytes, allocator);
	struct large *large = calloc(1, sizeof(*large));

	if (large == NULL || weir_var_create(first, &options, &large->var, NULL) != WEIR_OK)
		exit(3);
	weir_tensor_release(first);
	large->threads = threads;
	large->deltas = malloc((threads + 1) * sizeof(weir_tensor *));
	if (large->deltas == NULL)
		exit(3);
	for (unsigned i = 0; i < threads; i++)
		large->deltas[i] = tensor_of(1, bytes, NULL);
	large->bytes = bytes;
	large->wasted_before = copies_wasted();
	return large;
}

static void *create(size_t bytes, unsigned threads)
{
	return create_with(bytes, threads, NULL);
}

static void destroy(void *self)
{
	struct large *large = self;

	weir_var_destroy(large->var, NULL);
	for (unsigned i = 0; i < large->threads; i++)
		weir_tensor_release(large->deltas[i]);
	free(large->deltas);
	free(large);
	(void)weir_reclaim_flush(WEIR_NO_DEADLINE);
}

/* -- additions --------------------------------------------------------------------------------- */

static void add(void *self, unsigned thread)
{
	struct large *large = self;

	if (weir_var_assign_add(large->var, large->deltas[thread], WEIR_NO_DEADLINE, NULL, NULL) != WEIR_OK)
		exit(3);
}

static uint64_t value(void *self)
{
	struct large *large = self;
	weir_read read;
	uint64_t value;

	if (weir_var_read(large->var, &read) != WEIR_OK)
		exit(3);
	value = *(const uint64_t *)weir_tensor_data(read.tensor);
	if (bench_torn(weir_tensor_data(read.tensor), large->bytes))
		value = UINT64_MAX;
	weir_read_release(&read);
	return value;
}

static uint64_t wasted(void *self)
{
	return copies_wasted() - ((struct large *)self)->wasted_before;
}

const struct addition_contender weir_addition_contender = {
	.about = {.name = "weir_var_assign_add", .lock_free = 1},
	.create = create,
	.destroy = destroy,
	.add_one = add,
	.value = value,
	.wasted = wasted,
};

struct attempts {
	const struct large *large;
	const weir_tensor *delta;
	uint64_t made;
};

/* Works in blocks of a constant size, because gcc -O2 vectorises only such loops. */
static enum weir_status add_one(void *context, const weir_read *current, weir_tensor **next, weir_error *error)
{
	enum { BLOCK = 64 };
	struct attempts *attempts = context;
	const int64_t *from = weir_tensor_data(current->tensor), *delta = weir_tensor_data(attempts->delta);
	weir_tensor_builder *builder;
	int64_t *restrict to;

	(void)error;
	if (weir_tensor_builder_create(WEIR_I64, weir_tensor_shape(current->tensor), NULL, &builder, NULL) != WEIR_OK)
		exit(3);
	to = weir_tensor_builder_data(builder);
	for (size_t i = 0; i < attempts->large->bytes / sizeof(*to); i += BLOCK) {
		for (size_t j = 0; j < BLOCK; j++)
			to[i + j] = from[i + j] + delta[i + j];
	}
	attempts->made++;
	return weir_tensor_builder_finish(builder, next);
}

static void retry(void *self, unsigned thread)
{
	struct large *large = self;
	struct attempts attempts = {large, large->deltas[thread], 0};

	if (weir_var_update(large->var, add_one, &attempts, WEIR_NO_DEADLINE, NULL, NULL) != WEIR_OK)
		exit(3);
	atomic_fetch_add_explicit(&large->wasted, attempts.made - 1, memory_order_relaxed);
}

static uint64_t retry_wasted(void *self)
{
	return atomic_load_explicit(&((struct large *)self)->wasted, memory_order_relaxed);
}

const struct addition_contender weir_retry_contender = {
	.about = {.name = "weir_var_update (copy, compare-and-swap, retry)", .lock_free = 1},
	.create = create,
	.destroy = destroy,
	.add_one = retry,
	.value = value,
	.wasted = retry_wasted,
};

/* -- publishing -------------------------------------------------------------------------------- */

static void *counted_allocate(void *context, size_t size, size_t alignment)
{
	(void)context, (void)alignment;
	return bench_value_allocate(size);
}

static void counted_release(void *context, void *memory, size_t size, size_t alignment)
{
	(void)context, (void)alignment;
	bench_value_free(memory, size);
}

static const weir_allocator counted = {counted_allocate, counted_release, NULL};

static void *publish_create(size_t bytes)
{
	return create_with(bytes, 0, &counted);
}

static uint64_t read_many(void *self, uint64_t count)
{
	struct large *large = self;
	size_t last = large->bytes / sizeof(uint64_t) - 1;
	uint64_t torn = 0;

	for (uint64_t i = 0; i < count; i++) {
		const uint64_t *words;
		weir_read read;

		if (weir_var_read(large->var, &read) != WEIR_OK)
			exit(3);
		words = weir_tensor_data(read.tensor);
		torn += words[0] != words[last];
		weir_read_release(&read);
	}
	return torn;
}

static void publish(void *self, uint64_t value)
{
	struct large *large = self;
	weir_tensor *tensor = tensor_of(value, large->bytes, &counted);

	if (weir_var_assign(large->var, tensor, WEIR_NO_DEADLINE, NULL, NULL) != WEIR_OK)
		exit(3);
	weir_tensor_release(tensor);
}

const struct publish_contender weir_publish_contender = {
	.about = {.name = "weir", .lock_free = 1},
	.create = publish_create,
	.destroy = destroy,
	.read_many = read_many,
	.publish = publish,
};
