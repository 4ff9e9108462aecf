/*
 * snapshot_pair.c - two variables that belong together, changed by commits and read by snapshots.
 *
 * The writer keeps `debit` at minus `credit`. A reader that read one after the other could see a
 * sum that never existed. A snapshot shows both at one instant, and neither the writer nor a reader
 * ever waits or retries.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <weir/var.h>

enum { READERS = 3, CHANGES = 20000, CREDIT = 0, DEBIT = 1 };

static weir_var *pair[2];
static _Atomic(int) over;

static enum weir_status create(const char *name, weir_var **out)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .name = name, .dtype = WEIR_I64};
	weir_tensor *zero;
	enum weir_status status = weir_tensor_scalar_i64(0, &zero);

	if (status != WEIR_OK)
		return status;
	status = weir_var_create(zero, &options, out, NULL);
	weir_tensor_release(zero);
	return status;
}

static int64_t value_of(const weir_read *read)
{
	return *(const int64_t *)weir_tensor_data(read->tensor);
}

/* This thread is the only writer, so it knows the version numbers: change i makes version i + 1. */
static enum weir_status change(int64_t i)
{
	weir_tensor *credit = NULL, *debit = NULL;
	enum weir_status status = weir_tensor_scalar_i64(i, &credit);

	if (status == WEIR_OK)
		status = weir_tensor_scalar_i64(-i, &debit);
	if (status == WEIR_OK) {
		struct weir_commit_part parts[] = {{pair[CREDIT], (uint64_t)i, credit}, {pair[DEBIT], (uint64_t)i, debit}};

		status = weir_var_commit(parts, 2, WEIR_NO_DEADLINE, NULL, NULL);
	}
	weir_tensor_release(credit);
	weir_tensor_release(debit);
	return status;
}

static void *watch(void *wrong)
{
	weir_read now[2];

	while (!atomic_load_explicit(&over, memory_order_relaxed)) {
		if (weir_var_snapshot(pair, 2, now, NULL) != WEIR_OK || value_of(&now[CREDIT]) + value_of(&now[DEBIT]) != 0 ||
		    now[CREDIT].version != now[DEBIT].version)
			++*(int *)wrong;
		weir_read_release_many(now, 2);
	}
	return NULL;
}

int main(void)
{
	int wrong[READERS] = {0}, sum = 0;
	pthread_t threads[READERS];

	if (create("credit", &pair[CREDIT]) || create("debit", &pair[DEBIT]))
		return 1;
	for (int i = 0; i < READERS; i++) {
		if (pthread_create(&threads[i], NULL, watch, &wrong[i]) != 0)
			return 1;
	}
	for (int64_t i = 1; i <= CHANGES; i++) {
		if (change(i) != WEIR_OK)
			return 1;
	}
	atomic_store_explicit(&over, 1, memory_order_relaxed);
	for (int i = 0; i < READERS; i++) {
		(void)pthread_join(threads[i], NULL);
		sum += wrong[i];
	}
	weir_var_destroy(pair[CREDIT], NULL);
	weir_var_destroy(pair[DEBIT], NULL);
	printf("%d changes, %d snapshots were wrong\n", CHANGES, sum);
	return sum == 0 ? 0 : 1;
}
