/*
 * scatters.c - large tables: ours, a variable that is copied as a whole, and an array under one lock or
 * under many.
 */
#include <pthread.h>
#include <stdlib.h>
#include <weir/flow/table.h>
#include <weir/time.h>

#include "rivals.h"

/* -- ours -------------------------------------------------------------------------------------- */

static weir_tensor *indices_of(const int64_t *rows, size_t count)
{
	weir_tensor *indices;

	if (weir_tensor_copy_of(WEIR_I64, &(weir_shape){1, {(int64_t)count}}, rows, NULL, &indices) != WEIR_OK)
		exit(3);
	return indices;
}

static weir_tensor *one(void)
{
	weir_tensor *scalar;

	if (weir_tensor_scalar_i64(1, &scalar) != WEIR_OK)
		exit(3);
	return scalar;
}

static void *table_create(uint64_t rows, size_t row_bytes)
{
	struct weir_table_options options = {WEIR_TABLE_OPTIONS_INIT, .dtype = WEIR_I64, .rows = (int64_t)rows,
	                                     .row = &(weir_shape){1, {(int64_t)(row_bytes / sizeof(int64_t))}}};
	weir_table *table;

	if (weir_table_create(NULL, &options, &table, NULL) != WEIR_OK)
		exit(3);
	return table;
}

static void table_destroy(void *self)
{
	weir_table_destroy(self, NULL);
}

static void table_add_one(void *self, const int64_t *rows, size_t count)
{
	weir_tensor *indices = indices_of(rows, count), *scalar = one();

	if (weir_table_scatter(self, WEIR_SCATTER_ADD, indices, scalar, WEIR_NO_DEADLINE, NULL, NULL) != WEIR_OK)
		exit(3);
	weir_tensor_release(indices);
	weir_tensor_release(scalar);
}

static uint64_t table_sum(void *self)
{
	weir_table_view view;
	uint64_t sum = 0;

	if (weir_table_read(self, &view) != WEIR_OK)
		exit(3);
	for (int64_t i = 0; i < weir_table_row_count(self); i++)
		sum += *(const uint64_t *)weir_table_view_row(&view, i);
	weir_table_view_release(&view);
	return sum;
}

static uint64_t sum_words(const uint64_t *words, size_t count)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += words[i];
	return sum;
}

static uint64_t table_sum_all(void *self)
{
	size_t words = (size_t)weir_table_row_shape(self)->dims[0];
	weir_table_view view;
	uint64_t sum = 0;

	if (weir_table_read(self, &view) != WEIR_OK)
		exit(3);
	for (int64_t i = 0, count; i < weir_table_row_count(self); i += count) {
		const uint64_t *rows = weir_table_view_rows(&view, i, &count);

		sum += sum_words(rows, (size_t)count * words);
	}
	weir_table_view_release(&view);
	return sum;
}

const struct scatter_contender weir_table_contender = {
	.about = {.name = "weir_table", .lock_free = 1},
	.most_bytes = SIZE_MAX,
	.create = table_create,
	.destroy = table_destroy,
	.add_one = table_add_one,
	.sum = table_sum,
	.sum_all = table_sum_all,
};

static void *var_create(uint64_t rows, size_t row_bytes)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I64};
	weir_shape shape = {2, {(int64_t)rows, (int64_t)(row_bytes / sizeof(int64_t))}};
	weir_tensor_builder *builder;
	weir_tensor *zeros;
	weir_var *var;

	if (weir_tensor_builder_create(WEIR_I64, &shape, NULL, &builder, NULL) != WEIR_OK ||
	    weir_tensor_builder_finish(builder, &zeros) != WEIR_OK ||
	    weir_var_create(zeros, &options, &var, NULL) != WEIR_OK)
		exit(3);
	weir_tensor_release(zeros);
	return var;
}

static void var_destroy(void *self)
{
	weir_var_destroy(self, NULL);
}

static void var_add_one(void *self, const int64_t *rows, size_t count)
{
	weir_tensor *indices = indices_of(rows, count), *scalar = one();

	if (weir_var_scatter(self, WEIR_SCATTER_ADD, indices, scalar, WEIR_NO_DEADLINE, NULL, NULL) != WEIR_OK)
		exit(3);
	weir_tensor_release(indices);
	weir_tensor_release(scalar);
}

static uint64_t var_sum(void *self)
{
	weir_read read;
	const weir_shape *shape;
	uint64_t sum = 0;

	if (weir_var_read(self, &read) != WEIR_OK)
		exit(3);
	shape = weir_tensor_shape(read.tensor);
	for (int64_t i = 0; i < shape->dims[0]; i++)
		sum += ((const uint64_t *)weir_tensor_data(read.tensor))[i * shape->dims[1]];
	weir_read_release(&read);
	return sum;
}

static uint64_t var_sum_all(void *self)
{
	weir_read read;
	uint64_t sum;

	if (weir_var_read(self, &read) != WEIR_OK)
		exit(3);
	sum = sum_words(weir_tensor_data(read.tensor), weir_tensor_byte_count(read.tensor) / sizeof(uint64_t));
	weir_read_release(&read);
	return sum;
}

const struct scatter_contender weir_var_scatter_contender = {
	.about = {.name = "weir_var_scatter", .lock_free = 1},
	.most_bytes = (size_t)32 << 20,
	.create = var_create,
	.destroy = var_destroy,
	.add_one = var_add_one,
	.sum = var_sum,
	.sum_all = var_sum_all,
};

/* -- an array under locks ---------------------------------------------------------------------- */

/* Row r of an array with many locks is under one of SHARDS locks, by a hash of r. */
enum { SHARDS = 64 };

struct array {
	pthread_rwlock_t lock;
	pthread_mutex_t mutexes[SHARDS];
	uint64_t rows;
	size_t words; /* words of a row */
	uint64_t *data;
};

static void *array_create(uint64_t rows, size_t row_bytes)
{
	struct array *array = malloc(sizeof(*array));

	if (array == NULL)
		exit(3);
	*array =
		(struct array){.rows = rows, .words = row_bytes / sizeof(uint64_t), .data = calloc((size_t)rows, row_bytes)};
	if (array->data == NULL)
		exit(3);
	(void)pthread_rwlock_init(&array->lock, NULL);
	for (size_t i = 0; i < SHARDS; i++)
		(void)pthread_mutex_init(&array->mutexes[i], NULL);
	return array;
}

static void array_destroy(void *self)
{
	struct array *array = self;

	(void)pthread_rwlock_destroy(&array->lock);
	for (size_t i = 0; i < SHARDS; i++)
		(void)pthread_mutex_destroy(&array->mutexes[i]);
	free(array->data);
	free(array);
}

static void add_to_rows(struct array *array, const int64_t *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t *row = array->data + (size_t)rows[i] * array->words;

		for (size_t j = 0; j < array->words; j++)
			row[j]++;
	}
}

static void rwlock_add_one(void *self, const int64_t *rows, size_t count)
{
	struct array *array = self;

	(void)pthread_rwlock_wrlock(&array->lock);
	add_to_rows(array, rows, count);
	(void)pthread_rwlock_unlock(&array->lock);
}

static void mutex_add_one(void *self, const int64_t *rows, size_t count)
{
	struct array *array = self;

	(void)pthread_mutex_lock(&array->mutexes[0]);
	add_to_rows(array, rows, count);
	(void)pthread_mutex_unlock(&array->mutexes[0]);
}

static void sharded_add_one(void *self, const int64_t *rows, size_t count)
{
	struct array *array = self;

	for (size_t i = 0; i < count; i++) {
		/* The rows of the workload are multiples of a power of two. */
		pthread_mutex_t *mutex = &array->mutexes[(uint64_t)rows[i] * UINT64_C(0x9E3779B97F4A7C15) >> 58];

		(void)pthread_mutex_lock(mutex);
		add_to_rows(array, rows + i, 1);
		(void)pthread_mutex_unlock(mutex);
	}
}

static uint64_t array_sum(void *self)
{
	struct array *array = self;
	uint64_t sum = 0;

	for (uint64_t i = 0; i < array->rows; i++)
		sum += array->data[i * array->words];
	return sum;
}

static uint64_t rwlock_sum_all(void *self)
{
	struct array *array = self;
	uint64_t sum;

	(void)pthread_rwlock_rdlock(&array->lock);
	sum = sum_words(array->data, (size_t)array->rows * array->words);
	(void)pthread_rwlock_unlock(&array->lock);
	return sum;
}

const struct scatter_contender rwlock_scatter_contender = {
	.about = {.name = "rwlock, in place", .lacks = "no versions: a reader keeps writers out while it reads"},
	.most_bytes = SIZE_MAX,
	.create = array_create,
	.destroy = array_destroy,
	.add_one = rwlock_add_one,
	.sum = array_sum,
	.sum_all = rwlock_sum_all,
};

const struct scatter_contender mutex_scatter_contender = {
	.about = {.name = "mutex, in place", .lacks = "no versions: a reader keeps writers out while it reads"},
	.most_bytes = SIZE_MAX,
	.create = array_create,
	.destroy = array_destroy,
	.add_one = mutex_add_one,
	.sum = array_sum,
};

const struct scatter_contender sharded_scatter_contender = {
	.about = {.name = "64 mutexes, in place", .lacks = "an update is not of one instant, only each row; no versions"},
	.most_bytes = SIZE_MAX,
	.create = array_create,
	.destroy = array_destroy,
	.add_one = sharded_add_one,
	.sum = array_sum,
};
