/*
 * data.c - contenders of the suite `data`: Weir's datasets; pipelines written by hand with threads, a
 * mutex and condition variables; one thread; memcpy.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <weir/weir.h>

#include "bench.h"
#include "data_work.h"
#include "rivals.h"

static void must(enum weir_status status)
{
	if (status != WEIR_OK)
		exit(3);
}

static void *allocate(size_t bytes)
{
	void *memory = malloc(bytes);

	if (memory == NULL)
		exit(3);
	return memory;
}

/* -- what is worked on ------------------------------------------------------------------------- */

const float *bench_digits(void)
{
	static float *digits;

	if (digits == NULL) {
		digits = allocate(sizeof(float) * DIGIT_ROWS * DIGIT_PIXELS);
		for (size_t i = 0; i < (size_t)DIGIT_ROWS * DIGIT_PIXELS; i++)
			digits[i] = (float)(i / DIGIT_PIXELS);
	}
	return digits;
}

const unsigned char *bench_bytes(void)
{
	static unsigned char *bytes;

	if (bytes == NULL) {
		bytes = allocate((size_t)BYTE_ROWS * BYTE_ROW);
		for (size_t i = 0; i < (size_t)BYTE_ROWS * BYTE_ROW; i++)
			bytes[i] = (unsigned char)i;
	}
	return bytes;
}

static void multiply(uint64_t times)
{
	volatile uint64_t kept;
	uint64_t x = 1;

	for (uint64_t i = 0; i < times; i++)
		x = x * UINT64_C(6364136223846793005) + i;
	kept = x;
	(void)kept;
}

/* How many multiplications take 10 us: by the shortest of several runs, since the machine may be busy. */
static uint64_t times_of_10_us(void)
{
	enum { TRIED = 100000 };
	uint64_t shortest = UINT64_MAX;

	for (int i = 0; i < 20; i++) {
		uint64_t began = weir_now_ns(), took;

		multiply(TRIED);
		took = weir_now_ns() - began;
		shortest = took < shortest ? took : shortest;
	}
	return (uint64_t)TRIED * 10000 / (shortest + 1);
}

void bench_work_10_us(void)
{
	static _Thread_local uint64_t times;
	static uint64_t found; /* by the first create(), before there are threads */

	if (found == 0)
		found = times_of_10_us();
	times = found;
	multiply(times);
}

/* -- Weir -------------------------------------------------------------------------------------- */

struct weir_data {
	enum data_job job;
	weir_pool *pool;
	weir_iterator *iterator;
};

static enum weir_status same(void *context, weir_tensor *const in[], weir_tensor *out[], weir_error *error)
{
	(void)context, (void)error;
	out[0] = weir_tensor_retain(in[0]);
	return WEIR_OK;
}

static enum weir_status work(void *context, weir_tensor *const in[], weir_tensor *out[], weir_error *error)
{
	bench_work_10_us();
	return same(context, in, out, error);
}

static enum weir_status scale(void *context, weir_tensor *const in[], weir_tensor *out[], weir_error *error)
{
	static const weir_shape shape = {2, {28, 28}};
	weir_tensor_builder *builder;

	(void)context, (void)error;
	if (weir_tensor_builder_create_unfilled(WEIR_F32, &shape, NULL, &builder, NULL) != WEIR_OK)
		return WEIR_RESOURCE_EXHAUSTED;
	bench_scale(weir_tensor_data(in[0]), weir_tensor_builder_data(builder));
	return weir_tensor_builder_finish(builder, &out[0]);
}

static weir_dataset *rows_of(enum weir_dtype dtype, weir_shape shape, const void *data)
{
	weir_tensor *tensor;
	weir_dataset *slices, *repeated;

	must(weir_tensor_copy_of(dtype, &shape, data, NULL, &tensor));
	must(weir_dataset_from_slices(&tensor, 1, NULL, &slices, NULL));
	must(weir_dataset_repeat(slices, -1, NULL, &repeated, NULL));
	weir_tensor_release(tensor);
	weir_dataset_release(slices);
	return repeated;
}

static weir_dataset *mapped(weir_dataset *input, weir_dataset_map_fn *fn, size_t at_once)
{
	struct weir_dataset_options options = {WEIR_DATASET_OPTIONS_INIT, .at_once = at_once};
	weir_dataset *out;

	must(weir_dataset_map(input, fn, NULL, &options, &out, NULL));
	weir_dataset_release(input);
	return out;
}

static weir_dataset *batched(weir_dataset *input, size_t size)
{
	weir_dataset *out;

	must(weir_dataset_batch(input, size, NULL, &out, NULL));
	weir_dataset_release(input);
	return out;
}

static weir_dataset *ahead(weir_dataset *input, size_t size)
{
	weir_dataset *out;

	must(weir_dataset_prefetch(input, size, NULL, &out, NULL));
	weir_dataset_release(input);
	return out;
}

static weir_dataset *digits(void)
{
	weir_dataset *rows =
		mapped(rows_of(WEIR_F32, (weir_shape){3, {DIGIT_ROWS, 28, 28}}, bench_digits()), scale, WORKERS);
	weir_dataset *shuffled;

	must(weir_dataset_shuffle(rows, DIGIT_BUFFER, NULL, &shuffled, NULL));
	weir_dataset_release(rows);
	return ahead(batched(shuffled, DIGIT_BATCH), DIGIT_AHEAD);
}

static weir_dataset *dataset_of(enum data_job job)
{
	weir_dataset *numbers;

	if (job == DATA_DIGITS)
		return digits();
	if (job == DATA_ROWS)
		return batched(rows_of(WEIR_U8, (weir_shape){2, {BYTE_ROWS, BYTE_ROW}}, bench_bytes()), BYTE_BATCH);
	must(weir_dataset_range(0, INT64_MAX, 1, NULL, &numbers, NULL));
	switch (job) {
	case DATA_NOTHING: return mapped(numbers, same, 4);
	case DATA_AHEAD: return ahead(numbers, AHEAD);
	case DATA_WORK: return mapped(numbers, work, WORKERS);
	default: return numbers;
	}
}

static void *weir_create(enum data_job job)
{
	struct weir_data *self = allocate(sizeof(*self));
	struct weir_pool_options threads = {WEIR_POOL_OPTIONS_INIT, .threads = WORKERS};
	struct weir_iterator_options options = {WEIR_ITERATOR_OPTIONS_INIT};
	weir_dataset *dataset;

	bench_work_10_us();
	must(weir_pool_create(&threads, &self->pool, NULL));
	options.pool = self->pool;
	dataset = dataset_of(job);
	must(weir_iterator_create(dataset, &options, &self->iterator, NULL));
	weir_dataset_release(dataset);
	self->job = job;
	return self;
}

static void weir_destroy(void *data)
{
	struct weir_data *self = data;

	(void)weir_iterator_destroy(self->iterator, NULL);
	(void)weir_pool_destroy(self->pool, NULL);
	free(self);
}

static unsigned weir_take(void *data, uint64_t *sum)
{
	struct weir_data *self = data;
	weir_tensor *part;
	unsigned rows = 1;

	must(weir_iterator_next(self->iterator, WEIR_NO_DEADLINE, NULL, &part, 1, NULL));
	if (self->job == DATA_DIGITS || self->job == DATA_ROWS)
		rows = (unsigned)weir_tensor_shape(part)->dims[0];
	else
		*sum += *(const uint64_t *)weir_tensor_data(part);
	weir_tensor_release(part);
	return rows;
}

const struct data_contender weir_data_contender = {
	.about = {"weir", NULL, NULL, 1},
	.jobs = 1 << DATA_RANGE | 1 << DATA_NOTHING | 1 << DATA_AHEAD | 1 << DATA_WORK | 1 << DATA_DIGITS | 1 << DATA_ROWS,
	.create = weir_create,
	.destroy = weir_destroy,
	.take = weir_take,
};

/* -- one thread -------------------------------------------------------------------------------- */

struct alone {
	enum data_job job;
	uint64_t next;
	struct bench_shuffler shuffler;
};

static void *alone_create(enum data_job job)
{
	struct alone *self = allocate(sizeof(*self));

	bench_work_10_us();
	(void)bench_digits();
	*self = (struct alone){.job = job};
	return self;
}

static void free_rows(struct bench_shuffler *shuffler)
{
	while (shuffler->count > 0)
		free(shuffler->rows[--shuffler->count]);
}

static void alone_destroy(void *data)
{
	struct alone *self = data;

	free_rows(&self->shuffler);
	free(self);
}

/* A batch of rows that were mapped and shuffled; the caller frees it. */
static float *next_batch(uint64_t *next, struct bench_shuffler *shuffler)
{
	float *batch = allocate(sizeof(float) * DIGIT_BATCH * DIGIT_PIXELS);

	for (size_t filled = 0; filled < DIGIT_BATCH;) {
		float *row = allocate(sizeof(float) * DIGIT_PIXELS), *drawn;

		bench_scale(bench_digits() + (*next)++ % DIGIT_ROWS * DIGIT_PIXELS, row);
		drawn = bench_shuffle(shuffler, row);
		if (drawn == NULL)
			continue;
		memcpy(batch + filled++ * DIGIT_PIXELS, drawn, sizeof(float) * DIGIT_PIXELS);
		free(drawn);
	}
	return batch;
}

static unsigned alone_take(void *data, uint64_t *sum)
{
	struct alone *self = data;

	if (self->job == DATA_DIGITS) {
		free(next_batch(&self->next, &self->shuffler));
		return DIGIT_BATCH;
	}
	bench_work_10_us();
	*sum += self->next++;
	return 1;
}

const struct data_contender alone_data_contender = {
	.about = {"one thread", NULL, "works in the call that takes", 1},
	.jobs = 1 << DATA_WORK | 1 << DATA_DIGITS,
	.create = alone_create,
	.destroy = alone_destroy,
	.take = alone_take,
};

/* -- threads, a mutex and condition variables -------------------------------------------------- */

/* A ring of pointers or numbers, each put into the place of its number, and taken in order. */
struct line {
	enum data_job job;
	pthread_mutex_t mutex;
	pthread_cond_t has_room, has_item;
	bool stops;
	size_t size, threads;
	uint64_t claimed, taken; /* items that a thread works on or has put; items taken */
	bool is_full[AHEAD];
	void *item[AHEAD];
	pthread_t thread[WORKERS];
	struct alone source; /* of digits */
};

/* Returns false at the end. */
static bool line_claim(struct line *line, uint64_t *number)
{
	bool goes_on;

	(void)pthread_mutex_lock(&line->mutex);
	while (!line->stops && line->claimed - line->taken == line->size)
		(void)pthread_cond_wait(&line->has_room, &line->mutex);
	goes_on = !line->stops;
	*number = line->claimed;
	line->claimed += goes_on;
	(void)pthread_mutex_unlock(&line->mutex);
	return goes_on;
}

static void line_put(struct line *line, uint64_t number, void *item)
{
	(void)pthread_mutex_lock(&line->mutex);
	line->item[number % line->size] = item;
	line->is_full[number % line->size] = true;
	if (number == line->taken)
		(void)pthread_cond_signal(&line->has_item);
	(void)pthread_mutex_unlock(&line->mutex);
}

static void *line_work(void *context)
{
	struct line *line = context;
	uint64_t number;

	while (line_claim(line, &number)) {
		void *item = NULL;

		if (line->job == DATA_WORK)
			bench_work_10_us();
		if (line->job == DATA_DIGITS) {
			item = next_batch(&line->source.next, &line->source.shuffler);
		} else {
			item = allocate(sizeof(number));
			memcpy(item, &number, sizeof(number));
		}
		line_put(line, number, item);
	}
	return NULL;
}

static void *line_create(enum data_job job)
{
	struct line *line = allocate(sizeof(*line));

	bench_work_10_us();
	(void)bench_digits();
	*line = (struct line){.job = job, .size = AHEAD, .threads = 1};
	if (job == DATA_WORK)
		line->size = line->threads = WORKERS;
	if (job == DATA_DIGITS)
		line->size = DIGIT_AHEAD;
	(void)pthread_mutex_init(&line->mutex, NULL);
	(void)pthread_cond_init(&line->has_room, NULL);
	(void)pthread_cond_init(&line->has_item, NULL);
	for (size_t i = 0; i < line->threads; i++) {
		if (pthread_create(&line->thread[i], NULL, line_work, line) != 0)
			exit(3);
	}
	return line;
}

static unsigned line_take(void *data, uint64_t *sum)
{
	struct line *line = data;
	bool *is_full;
	void *item;

	(void)pthread_mutex_lock(&line->mutex);
	is_full = &line->is_full[line->taken % line->size];
	while (!*is_full)
		(void)pthread_cond_wait(&line->has_item, &line->mutex);
	*is_full = false;
	item = line->item[line->taken++ % line->size];
	(void)pthread_cond_signal(&line->has_room);
	(void)pthread_mutex_unlock(&line->mutex);
	if (line->job != DATA_DIGITS)
		*sum += *(const uint64_t *)item;
	free(item);
	return line->job == DATA_DIGITS ? DIGIT_BATCH : 1;
}

static void line_destroy(void *data)
{
	struct line *line = data;

	(void)pthread_mutex_lock(&line->mutex);
	line->stops = true;
	(void)pthread_cond_broadcast(&line->has_room);
	(void)pthread_mutex_unlock(&line->mutex);
	for (size_t i = 0; i < line->threads; i++)
		(void)pthread_join(line->thread[i], NULL);
	for (size_t i = 0; i < line->size; i++) {
		if (line->is_full[i])
			free(line->item[i]);
	}
	free_rows(&line->source.shuffler);
	(void)pthread_mutex_destroy(&line->mutex);
	(void)pthread_cond_destroy(&line->has_room);
	(void)pthread_cond_destroy(&line->has_item);
	free(line);
}

const struct data_contender threads_data_contender = {
	.about = {"threads by hand", NULL, NULL, 0},
	.jobs = 1 << DATA_AHEAD | 1 << DATA_STEPS | 1 << DATA_WORK | 1 << DATA_DIGITS,
	.create = line_create,
	.destroy = line_destroy,
	.take = line_take,
};

/* -- memcpy ------------------------------------------------------------------------------------ */

static void *copy_create(enum data_job job)
{
	(void)bench_bytes();
	return alone_create(job);
}

static unsigned copy_take(void *data, uint64_t *sum)
{
	struct alone *self = data;
	unsigned char *batch = allocate((size_t)BYTE_BATCH * BYTE_ROW);

	memcpy(batch, bench_bytes() + self->next, (size_t)BYTE_BATCH * BYTE_ROW);
	self->next = (self->next + (size_t)BYTE_BATCH * BYTE_ROW) % ((size_t)BYTE_ROWS * BYTE_ROW);
	*sum += *(volatile unsigned char *)batch;
	free(batch);
	return BYTE_BATCH;
}

const struct data_contender copy_data_contender = {
	.about = {"memcpy", NULL, "copies all rows at once", 1},
	.jobs = 1 << DATA_ROWS,
	.create = copy_create,
	.destroy = alone_destroy,
	.take = copy_take,
};
