/*
 * shared_config.c - a table that many threads read all the time and one thread replaces
 * occasionally.
 *
 * A read costs a few nanoseconds. A reader never waits for the writer, and the writer never waits
 * for a reader. A reader that keeps an old version for long keeps only that version alive.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <weir/var.h>

enum { READERS = 4, FIELDS = 16, REPLACEMENTS = 2000 };

static weir_var *config;
static _Atomic(int) over;

/* All fields of version v hold v, so that a reader can detect a mixture. */
static enum weir_status make_table(int64_t value, weir_tensor **out)
{
	weir_shape shape = {1, {FIELDS}};
	int64_t fields[FIELDS];

	for (int i = 0; i < FIELDS; i++)
		fields[i] = value;
	return weir_tensor_copy_of(WEIR_I64, &shape, fields, NULL, out);
}

static int is_whole(const weir_read *read)
{
	const int64_t *fields = weir_tensor_data(read->tensor);

	for (int i = 0; i < FIELDS; i++) {
		if (fields[i] != (int64_t)read->version)
			return 0;
	}
	return 1;
}

/* Counts errors in *wrong. */
static void *read_often(void *wrong)
{
	uint64_t last = 0;
	weir_read read;

	while (!atomic_load_explicit(&over, memory_order_relaxed)) {
		if (weir_var_read(config, &read) != WEIR_OK || !is_whole(&read) || read.version < last)
			++*(int *)wrong;
		last = read.version;
		weir_read_release(&read);
	}
	return NULL;
}

int main(void)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .name = "config", .dtype = WEIR_I64};
	int wrong[READERS + 1] = {0}, sum = 0;
	pthread_t threads[READERS];
	weir_tensor *table;
	weir_read first;

	if (make_table(1, &table) || weir_var_create(table, &options, &config, NULL) || weir_var_read(config, &first))
		return 1;
	weir_tensor_release(table);
	for (int i = 0; i < READERS; i++) {
		if (pthread_create(&threads[i], NULL, read_often, &wrong[i]) != 0)
			return 1;
	}
	for (int64_t i = 2; i <= REPLACEMENTS; i++) {
		if (make_table(i, &table) || weir_var_assign(config, table, WEIR_NO_DEADLINE, NULL, NULL))
			return 1;
		weir_tensor_release(table);
	}
	atomic_store_explicit(&over, 1, memory_order_relaxed);
	for (int i = 0; i < READERS; i++)
		(void)pthread_join(threads[i], NULL);
	wrong[READERS] = first.version != 1 || !is_whole(&first); /* held during the whole run */
	weir_read_release(&first);
	for (int i = 0; i <= READERS; i++)
		sum += wrong[i];
	printf("version %llu after %d replacements; %d reads were wrong\n", (unsigned long long)weir_var_version(config),
	       REPLACEMENTS - 1, sum);
	sum += weir_var_version(config) != REPLACEMENTS;
	weir_var_destroy(config, NULL);
	return sum == 0 ? 0 : 1;
}
