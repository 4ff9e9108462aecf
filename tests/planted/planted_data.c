/*
 * planted_data.c - reads a dataset through a parallel map, and says what is wrong with the elements.
 *
 * usage: planted_NAME right|twice|lost|order|ends|wide: what is expected to be found. Exit status: 0 as
 * expected, 1 not. The pool has no threads, so all is the same each time.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/weir.h>

enum { ELEMENTS = 40, AT_ONCE = 4, FAILS = 3, MOST = 2 * ELEMENTS };

static int64_t reads; /* elements that the source has given */

static void must(enum weir_status status)
{
	if (status == WEIR_OK)
		return;
	(void)fprintf(stderr, "a call failed: %s\n", weir_status_name(status));
	exit(1);
}

static enum weir_status give(void *context, void *state, weir_tensor *out[], weir_error *error)
{
	(void)context, (void)state, (void)error;
	return reads == ELEMENTS ? WEIR_OUT_OF_RANGE : weir_tensor_scalar_i64(reads++, &out[0]);
}

static enum weir_status same(void *context, weir_tensor *const in[], weir_tensor *out[], weir_error *error)
{
	(void)context, (void)error;
	out[0] = weir_tensor_retain(in[0]);
	return *(const int64_t *)weir_tensor_data(in[0]) == FAILS ? WEIR_DATA_LOSS : WEIR_OK;
}

static weir_iterator *iterate(weir_pool *pool)
{
	static const enum weir_dtype dtype = WEIR_I64;
	struct weir_dataset_generator generator = {WEIR_DATASET_GENERATOR_INIT, .next = give};
	struct weir_dataset_options numbers = {WEIR_DATASET_OPTIONS_INIT, .dtypes = &dtype, .width = 1};
	struct weir_dataset_options ahead = {WEIR_DATASET_OPTIONS_INIT, .at_once = AT_ONCE};
	struct weir_iterator_options options = {WEIR_ITERATOR_OPTIONS_INIT, .pool = pool};
	weir_dataset *source, *mapped;
	weir_iterator *iterator;

	must(weir_dataset_generate(&generator, &numbers, &source, NULL));
	must(weir_dataset_map(source, same, NULL, &ahead, &mapped, NULL));
	must(weir_iterator_create(mapped, &options, &iterator, NULL));
	weir_dataset_release(source);
	weir_dataset_release(mapped);
	return iterator;
}

/*
 * How many elements the source has given when a call that must not wait has begun the work: those that are
 * worked on, and as many that are finished. The faults are among them; those behind them may pass.
 */
static int64_t reads_ahead(weir_iterator *iterator, weir_pool *pool)
{
	weir_tensor *part;

	if (weir_iterator_next(iterator, 0, NULL, &part, 1, NULL) != WEIR_DEADLINE_EXCEEDED)
		exit(1);
	while (weir_pool_help(pool, 1) != 0)
		;
	return reads;
}

/* Takes all elements into `taken`; an error stands as -1. Returns their number. */
static size_t take_all(weir_pool *pool, int64_t taken[MOST], bool *is_wide)
{
	weir_iterator *iterator = iterate(pool);
	enum weir_status status = WEIR_OK;
	size_t count = 0;

	*is_wide = reads_ahead(iterator, pool) != 2 * AT_ONCE;
	while (count < MOST) {
		weir_tensor *part = NULL;

		status = weir_iterator_next(iterator, WEIR_NO_DEADLINE, NULL, &part, 1, NULL);
		if (status == WEIR_OUT_OF_RANGE)
			break;
		taken[count++] = status == WEIR_OK ? *(const int64_t *)weir_tensor_data(part) : -1;
		weir_tensor_release(part);
	}
	must(weir_iterator_destroy(iterator, NULL));
	return count;
}

static const char *verdict(const int64_t taken[], size_t count, bool is_wide)
{
	bool is_ordered = true;

	if (is_wide)
		return "wide";
	if (count == FAILS)
		return "ends";
	for (size_t i = 1; i < count; i++) {
		if (taken[i] == taken[i - 1])
			return "twice";
		is_ordered &= taken[i] > taken[i - 1] || taken[i] < 0 || taken[i - 1] < 0;
	}
	if (!is_ordered)
		return "order";
	return count == ELEMENTS ? "right" : "lost";
}

int main(int count, char *words[])
{
	struct weir_pool_options options = {WEIR_POOL_OPTIONS_INIT, .flags = WEIR_POOL_NO_THREADS};
	static int64_t taken[MOST];
	bool is_wide = false;
	const char *found;
	weir_pool *pool;
	size_t all;

	if (count != 2)
		return 1;
	must(weir_pool_create(&options, &pool, NULL));
	all = take_all(pool, taken, &is_wide);
	must(weir_pool_destroy(pool, NULL));
	found = verdict(taken, all, is_wide);
	(void)printf("%s\n", found);
	return strcmp(found, words[1]) != 0;
}
