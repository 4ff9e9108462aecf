/*
 * additions.c - adds to a large value under a mutex: either to a copy that then replaces the value,
 * so that readers could keep the old one, or in place, so that they could not.
 */
#include <pthread.h>
#include <stdlib.h>

#include "rivals.h"

struct cell {
	pthread_mutex_t mutex;
	size_t count; /* number of elements */
	unsigned threads;
	int64_t **deltas; /* one per thread; all elements are 1 */
	int64_t *value;
};

static int64_t *elements_of(size_t count, int64_t value)
{
	int64_t *elements = aligned_alloc(64, (count * sizeof(*elements) + 63) / 64 * 64);

	if (elements == NULL)
		exit(3);
	for (size_t i = 0; i < count; i++)
		elements[i] = value;
	return elements;
}

static void *create(size_t bytes, unsigned threads)
{
	struct cell *cell = malloc(sizeof(*cell));
	size_t count = bytes / sizeof(int64_t);

	if (cell == NULL)
		exit(3);
	*cell = (struct cell){.count = count, .threads = threads, .value = elements_of(count, 0)};
	cell->deltas = malloc(threads * sizeof(*cell->deltas));
	if (cell->deltas == NULL)
		exit(3);
	for (unsigned i = 0; i < threads; i++)
		cell->deltas[i] = elements_of(count, 1);
	(void)pthread_mutex_init(&cell->mutex, NULL);
	return cell;
}

static void destroy(void *self)
{
	struct cell *cell = self;

	for (unsigned i = 0; i < cell->threads; i++)
		free(cell->deltas[i]);
	free(cell->deltas);
	free(cell->value);
	free(cell);
}

/*
 * Works in blocks of a constant size, because gcc -O2 vectorises only such loops. The values here
 * are multiples of 512 bytes.
 */
static void add(const int64_t *a, const int64_t *b, int64_t *restrict out, size_t count)
{
	enum { BLOCK = 64 };

	for (size_t i = 0; i < count; i += BLOCK) {
		for (size_t j = 0; j < BLOCK; j++)
			out[i + j] = a[i + j] + b[i + j];
	}
}

static void add_in_place(int64_t *restrict value, const int64_t *delta, size_t count)
{
	enum { BLOCK = 64 };

	for (size_t i = 0; i < count; i += BLOCK) {
		for (size_t j = 0; j < BLOCK; j++)
			value[i + j] += delta[i + j];
	}
}

static void add_to_copy(void *self, unsigned thread)
{
	struct cell *cell = self;
	int64_t *next = aligned_alloc(64, cell->count * sizeof(*next)), *old;

	if (next == NULL)
		exit(3);
	(void)pthread_mutex_lock(&cell->mutex);
	old = cell->value;
	add(old, cell->deltas[thread], next, cell->count);
	cell->value = next;
	(void)pthread_mutex_unlock(&cell->mutex);
	free(old);
}

static void add_to_value(void *self, unsigned thread)
{
	struct cell *cell = self;

	(void)pthread_mutex_lock(&cell->mutex);
	add_in_place(cell->value, cell->deltas[thread], cell->count);
	(void)pthread_mutex_unlock(&cell->mutex);
}

static uint64_t value(void *self)
{
	const struct cell *cell = self;

	return bench_torn((const uint64_t *)cell->value, cell->count * sizeof(uint64_t)) ? UINT64_MAX
	                                                                                 : (uint64_t)cell->value[0];
}

const struct addition_contender mutex_copy_contender = {
	.about = {.name = "mutex, copy", .lacks = "readers cannot keep an old value"},
	.create = create,
	.destroy = destroy,
	.add_one = add_to_copy,
	.value = value,
};
const struct addition_contender mutex_in_place_contender = {
	.about = {.name = "mutex, in place", .lacks = "readers cannot keep an old value"},
	.create = create,
	.destroy = destroy,
	.add_one = add_to_value,
	.value = value,
};
