/*
 * sparse_table.c - a table of counts by key; each update changes a few rows, each view is
 * consistent.
 *
 * A variable would copy the whole value for each update. A version of a table shares with the
 * previous one all pages except those that the update touched. A view is one version, and does not
 * change while it is held.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <weir/flow/table.h>

enum { ROWS = 50000, WRITERS = 3, UPDATES = 300, TOUCHED = 8 };

static weir_table *counts;

/* Returns 1, and prints a message, unless the call succeeded. */
static int failed(const char *what, enum weir_status status, const weir_error *error)
{
	if (status != WEIR_OK)
		(void)fprintf(stderr, "%s: %s: %s\n", what, weir_status_name(status), error->message);
	return status != WEIR_OK;
}

/* Adds 1 to the rows of these keys; a key that occurs twice gets 2. */
static enum weir_status count_keys(const int64_t keys[TOUCHED], weir_tensor *one, weir_error *error)
{
	weir_shape shape = {1, {TOUCHED}};
	weir_tensor *indices;
	enum weir_status status = weir_tensor_copy_of(WEIR_I64, &shape, keys, NULL, &indices);

	if (status != WEIR_OK) {
		(void)snprintf(error->message, sizeof(error->message), "there is no memory for indices");
		return status;
	}
	/* Retired memory has a budget; a writer that exceeds it waits at most until the deadline. */
	status = weir_table_scatter(counts, WEIR_SCATTER_ADD, indices, one, WEIR_NO_DEADLINE, NULL, error);
	weir_tensor_release(indices);
	return status;
}

/* Returns its argument, or NULL on failure. */
static void *write_often(void *number)
{
	uint64_t random = *(const uint64_t *)number;
	int64_t keys[TOUCHED];
	weir_tensor *one;
	weir_error error;
	int wrong = 0;

	if (weir_tensor_scalar_i64(1, &one) != WEIR_OK)
		return NULL;
	for (int i = 0; i < UPDATES && !wrong; i++) {
		for (int k = 0; k < TOUCHED; k++) {
			random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
			keys[k] = (int64_t)((random >> 33) % ROWS);
		}
		wrong = failed("count", count_keys(keys, one, &error), &error);
	}
	weir_tensor_release(one);
	return wrong ? NULL : number;
}

/* Checks that a view has TOUCHED for each update before it. Version 1 was all zeros. */
static int adds_up(const weir_table_view *view)
{
	int64_t sum = 0;

	for (int64_t i = 0; i < ROWS; i++)
		sum += *(const int64_t *)weir_table_view_row(view, i); /* in place; nothing is copied */
	return sum == (int64_t)(view->version - 1) * TOUCHED;
}

int main(void)
{
	struct weir_table_options options = {WEIR_TABLE_OPTIONS_INIT, .name = "counts", .dtype = WEIR_I64, .rows = ROWS};
	const uint64_t last = 1 + WRITERS * UPDATES;
	uint64_t numbers[WRITERS];
	pthread_t threads[WRITERS];
	weir_table_view first, view = {0};
	int looks = 0, wrong = 0, all_written = 1;
	weir_error error;

	if (failed("table", weir_table_create(NULL, &options, &counts, &error), &error) ||
	    weir_table_read(counts, &first) != WEIR_OK)
		return 1;
	for (int i = 0; i < WRITERS; i++) {
		numbers[i] = (uint64_t)i;
		if (pthread_create(&threads[i], NULL, write_often, &numbers[i]) != 0)
			return 1;
	}
	for (looks = 0; looks < 20 && wrong == 0; looks++) {
		if (weir_table_read(counts, &view) != WEIR_OK)
			return 1;
		wrong += !adds_up(&view);
		weir_table_view_release(&view);
	}
	for (int i = 0; i < WRITERS; i++) {
		void *outcome;

		(void)pthread_join(threads[i], &outcome);
		all_written &= outcome != NULL;
	}
	wrong += !adds_up(&first) || first.version != 1; /* held during the whole run */
	weir_table_view_release(&first);
	if (weir_table_read(counts, &view) != WEIR_OK)
		return 1;
	wrong += !all_written || view.version != last || !adds_up(&view);
	weir_table_view_release(&view);
	printf("version %" PRIu64 " of %" PRIu64 "; %d views beside the writers, %d wrong\n", weir_table_version(counts),
	       last, looks, wrong);
	weir_table_destroy(counts, NULL);
	return wrong == 0 ? 0 : 1;
}
