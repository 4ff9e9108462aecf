/*
 * test_table.c - tables of pages: they have the values of a variable with the same scatters, their
 * views never change, and an update costs memory only for the rows that it touches.
 */
#include <criterion/criterion.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <weir/flow/table.h>

#include "rows_kit.h"
#include "table/pages.h"

static weir_table *table_of(enum weir_dtype dtype, int64_t rows, const weir_shape *row, const weir_tensor *initial)
{
	struct weir_table_options options = {
		WEIR_TABLE_OPTIONS_INIT, .name = "t", .dtype = dtype, .rows = rows, .row = row, .allocator = &variables_memory};
	weir_table *table = NULL;
	weir_error error = {WEIR_OK, ""};

	cr_assert_eq(weir_table_create(initial, &options, &table, &error), WEIR_OK, "%s", error.message);
	return table;
}

static void scatter_one(weir_table *table, enum weir_scatter how, int64_t row, int64_t value)
{
	weir_tensor *index = tensor_of(WEIR_I64, (weir_shape){.rank = 0}, &row), *scalar = number(value);

	cr_assert_eq(weir_table_scatter(table, how, index, scalar, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	weir_tensor_release(index);
	weir_tensor_release(scalar);
}

static int64_t row_of(const weir_table_view *view, int64_t row)
{
	const int64_t *elements = weir_table_view_row(view, row);

	cr_assert_not_null(elements);
	return *elements;
}

/* -- compared with a variable ------------------------------------------------------------------ */

enum { UPDATES = 40, MOST_INDICES = 20 };

/* All rows of the table and of the variable are equal. */
static void expect_equal(weir_table *table, weir_var *var)
{
	weir_table_view view;
	weir_read read;

	cr_assert_eq(weir_table_read(table, &view), WEIR_OK);
	cr_assert_eq(weir_var_read(var, &read), WEIR_OK);
	cr_expect_eq(view.version, read.version);
	for (int64_t i = 0; i < weir_table_row_count(table); i++) {
		size_t bytes = weir_tensor_byte_count(read.tensor) / (size_t)weir_table_row_count(table);

		cr_assert_arr_eq(weir_table_view_row(&view, i), (const char *)weir_tensor_data(read.tensor) + (size_t)i * bytes,
		                 bytes, "row %" PRIi64, i);
	}
	weir_read_release(&read);
	weir_table_view_release(&view);
}

/* Makes random scatters to a table and to a variable of the same values. */
static void check_beside_variable(int64_t rows, const weir_shape *row)
{
	weir_shape shape = {.rank = 1 + row->rank, .dims = {rows, row->dims[0], row->dims[1]}};
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I32, .allocator = &variables_memory};
	uint64_t seed = (uint64_t)rows * 2654435761u + 1;
	weir_tensor_builder *builder;
	weir_tensor *initial, *gathered, *wanted;
	weir_table *table;
	weir_var *var;

	cr_assert_eq(weir_tensor_builder_create(WEIR_I32, &shape, &variables_memory, &builder, NULL), WEIR_OK);
	for (int64_t i = 0; i < rows; i++)
		((int32_t *)weir_tensor_builder_data(builder))[i] = (int32_t)i;
	cr_assert_eq(weir_tensor_builder_finish(builder, &initial), WEIR_OK);
	table = table_of(WEIR_I32, rows, row, initial);
	cr_assert_eq(weir_var_create(initial, &options, &var, NULL), WEIR_OK);
	weir_tensor_release(initial);
	for (int i = 0; i < UPDATES; i++) {
		int64_t indices[MOST_INDICES], count;
		weir_tensor *index, *scalar;

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		count = (int64_t)(seed >> 59) % MOST_INDICES;
		for (int64_t j = 0; j < count; j++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			indices[j] = (int64_t)((seed >> 20) % (uint64_t)rows);
		}
		index = indices_of(indices, count);
		scalar = tensor_of(WEIR_I32, (weir_shape){.rank = 0}, &(int32_t){i % 5 + 1});
		cr_assert_eq(
			weir_table_scatter(table, (enum weir_scatter)(1 + i % 7), index, scalar, WEIR_NO_DEADLINE, NULL, NULL),
			WEIR_OK);
		cr_assert_eq(weir_var_scatter(var, (enum weir_scatter)(1 + i % 7), index, scalar, WEIR_NO_DEADLINE, NULL, NULL),
		             WEIR_OK);
		cr_assert_eq(weir_table_gather(table, index, &variables_memory, &gathered, NULL), WEIR_OK);
		cr_assert_eq(weir_var_gather(var, index, &variables_memory, &wanted, NULL), WEIR_OK);
		cr_expect(weir_shape_equal(weir_tensor_shape(gathered), weir_tensor_shape(wanted)));
		cr_expect_arr_eq(weir_tensor_data(gathered), weir_tensor_data(wanted), weir_tensor_byte_count(wanted));
		weir_tensor_release(gathered);
		weir_tensor_release(wanted);
		weir_tensor_release(index);
		weir_tensor_release(scalar);
	}
	expect_equal(table, var);
	weir_table_destroy(table, NULL);
	weir_var_destroy(var, NULL);
	expect_nothing_left();
}

/*
 * One page that is not full; many pages with a remainder; rows that do not divide a page; rows
 * larger than a page; more pages than a root has pointers, so that there are 1 and 2 levels.
 */
Test(table, is_what_a_variable_is_for_every_shape_of_pages)
{
	check_beside_variable(1, &(weir_shape){.rank = 0});
	check_beside_variable(300000, &(weir_shape){1, {5}});
	check_beside_variable(1, &(weir_shape){1, {1}});
	check_beside_variable(100, &(weir_shape){2, {3, 5}});
	check_beside_variable(5000, &(weir_shape){1, {17}});
	check_beside_variable(33, &(weir_shape){1, {20000}});
	check_beside_variable(300, &(weir_shape){1, {9000}});
}

/* -- views ------------------------------------------------------------------------------------- */

Test(table, a_view_stays_as_it_was_and_outlives_its_table)
{
	enum { ROWS = 30000, STEP = 997 };
	weir_table *table = table_of(WEIR_I64, ROWS, NULL, NULL);
	weir_table_view zeros, ones, published;
	weir_tensor *index = indices_of((int64_t[]){5}, 1), *seven = number(7);

	cr_expect_eq(weir_table_row_count(table), ROWS);
	cr_expect_eq(weir_table_dtype(table), WEIR_I64);
	cr_expect_eq(weir_table_row_shape(table)->rank, 0);
	cr_expect_str_eq(weir_table_name(table), "t");
	cr_assert_eq(weir_table_read(table, &zeros), WEIR_OK);
	for (int64_t i = 0; i < ROWS; i += STEP)
		scatter_one(table, WEIR_SCATTER_ADD, i, 1);
	cr_assert_eq(weir_table_read(table, &ones), WEIR_OK);
	cr_expect_eq(ones.version, 1 + (ROWS + STEP - 1) / STEP);
	cr_assert_eq(weir_table_scatter(table, WEIR_SCATTER_UPDATE, index, seven, WEIR_NO_DEADLINE, &published, NULL),
	             WEIR_OK);
	cr_expect_eq(published.version, ones.version + 1);
	cr_expect_eq(weir_table_version(table), published.version);
	weir_table_destroy(table, NULL);
	collect_now();
	for (int64_t i = 0; i < ROWS; i++) {
		cr_assert_eq(row_of(&zeros, i), 0);
		cr_assert_eq(row_of(&ones, i), i % STEP == 0);
		cr_assert_eq(row_of(&published, i), i == 5 ? 7 : i % STEP == 0);
	}
	cr_expect_null(weir_table_view_row(&ones, ROWS));
	cr_expect_null(weir_table_view_row(&ones, -1));
	weir_table_view_release(&zeros);
	weir_table_view_release(&ones);
	cr_expect_eq(ones.version, 0);
	weir_table_view_release(&ones);
	weir_table_view_release(&published);
	weir_tensor_release(index);
	weir_tensor_release(seven);
	expect_nothing_left();
}

/* -- memory ------------------------------------------------------------------------------------ */

static size_t bytes_now(void)
{
	collect_now();
	/* [relaxed] one thread */
	return weiri_load_relaxed(&variables_state.bytes);
}

/* What an update of one row may cost besides its page: a node for each of four levels, notes. */
enum { PATH = WEIRI_PAGE_BYTES + 4 * sizeof(struct weiri_node) };

/*
 * A table of 1 GiB of zeros costs one page and its pointers. An update of 100 rows costs 100 pages,
 * at most four nodes for each, and a root; and the same for 2^31 rows.
 */
static void check_costs_of_rows(int64_t rows, const weir_shape *row)
{
	enum { TOUCHED = 100, ROOT = 8192 };
	size_t empty = bytes_now(), created, changed;
	weir_table *table = table_of(WEIR_I64, rows, row, NULL);
	int64_t indices[TOUCHED];
	weir_tensor *index, *one = number(1);

	created = bytes_now();
	cr_expect_lt(created - empty, 2 * PATH + ROOT, "%zu bytes", created - empty);
	for (int64_t i = 0; i < TOUCHED; i++)
		indices[i] = i * (rows / TOUCHED);
	index = indices_of(indices, TOUCHED);
	cr_assert_eq(weir_table_scatter(table, WEIR_SCATTER_ADD, index, one, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	changed = bytes_now();
	cr_expect_geq(changed - created, TOUCHED * WEIRI_PAGE_BYTES);
	cr_expect_lt(changed - created, TOUCHED * PATH + ROOT, "%zu bytes", changed - created);
	weir_tensor_release(index);
	weir_tensor_release(one);
	weir_table_destroy(table, NULL);
	expect_nothing_left();
}

Test(table, costs_by_the_rows_that_are_touched)
{
	check_costs_of_rows((int64_t)1 << 22, &(weir_shape){1, {32}});
	check_costs_of_rows((int64_t)1 << 31, NULL);
}

static void scatter_many(weir_table *table, int64_t first, int64_t step, int64_t count)
{
	weir_tensor *one = number(1), *index;
	int64_t *indices = calloc((size_t)count, sizeof(*indices));

	cr_assert_not_null(indices);
	for (int64_t i = 0; i < count; i++)
		indices[i] = first + i * step;
	index = indices_of(indices, count);
	free(indices);
	cr_assert_eq(weir_table_scatter(table, WEIR_SCATTER_ADD, index, one, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	weir_tensor_release(index);
	weir_tensor_release(one);
}

/* However many updates there are, a table needs itself, what waits for a sweep, and the budget. */
Test(table, replaced_pages_are_reused_or_freed)
{
	enum { TIMES_OVER = 400, ROWS = 20000, MOST = (12 << 20) };
	weir_table *table = table_of(WEIR_I64, ROWS, &(weir_shape){1, {32}}, NULL);
	size_t most = 0;

	for (int64_t i = 0; i < TIMES_OVER; i++) {
		scatter_many(table, i % 97, 97, 100);
		/* [relaxed] one thread */
		if (weiri_load_relaxed(&variables_state.bytes) > most)
			most = weiri_load_relaxed(&variables_state.bytes);
	}
	/* 200 MiB were copied. The table is 5 MiB, and an eighth of the budget of 32 MiB is retired. */
	cr_expect_lt(most, MOST + (size_t)ROWS * 256, "%zu bytes", most);
	weir_table_destroy(table, NULL);
	expect_nothing_left();
}

/*
 * Views of many versions, which end in any order: each row stays as it was in each view, and each
 * page is freed with the last version that has it.
 */
static void check_views_that_end(size_t step)
{
	enum { VIEWS = 13, ROWS = 400, ROUNDS = 4 };
	weir_table *table = table_of(WEIR_I64, ROWS, &(weir_shape){1, {40}}, NULL);
	weir_table_view views[VIEWS];

	for (int64_t round = 0; round < ROUNDS; round++) {
		for (int64_t i = 0; i < VIEWS; i++) {
			scatter_many(table, i, VIEWS, ROWS / VIEWS);
			cr_assert_eq(weir_table_read(table, &views[i]), WEIR_OK);
			scatter_many(table, 0, 7, ROWS / 7);
		}
		for (size_t n = 0, i = 0; n < VIEWS; n++, i = (i + step) % VIEWS) {
			for (int64_t other = 0; other < VIEWS; other++) {
				/* Rows whose index is no multiple of 7 change once a round. */
				if ((other + VIEWS) % 7 != 0)
					cr_assert_eq(row_of(&views[i], other + VIEWS), round + (other <= (int64_t)i));
			}
			weir_table_view_release(&views[i]);
			scatter_many(table, 0, 7, ROWS / 7);
			collect_now();
		}
	}
	weir_table_destroy(table, NULL);
	expect_nothing_left();
}

Test(table, views_end_in_any_order)
{
	uint64_t usual = weiri_lineage_sweep_bytes;

	for (uint64_t bytes = 1; bytes <= 100000; bytes *= 100) {
		weiri_lineage_sweep_bytes = bytes;
		check_views_that_end(1);
		check_views_that_end(5);
		check_views_that_end(12);
	}
	weiri_lineage_sweep_bytes = usual;
}

/* A view that is held for ever keeps at most its own table, whatever is updated meanwhile. */
Test(table, a_view_holds_no_more_than_its_version)
{
	enum { TIMES_OVER = 300, ROWS = 8192 }; /* 2 MiB */
	weir_table *table = table_of(WEIR_I64, ROWS, &(weir_shape){1, {32}}, NULL);
	uint64_t usual = weiri_lineage_sweep_bytes;
	weir_table_view view;
	size_t whole, most = 0;

	weiri_lineage_sweep_bytes = 1 << 16;
	scatter_many(table, 0, 1, ROWS);
	whole = bytes_now();
	cr_assert_eq(weir_table_read(table, &view), WEIR_OK);
	for (int64_t i = 0; i < TIMES_OVER; i++) {
		scatter_many(table, i % 32, 32, ROWS / 32);
		if (bytes_now() > most)
			most = bytes_now();
	}
	/* The view's rows, the newest rows, and free blocks. */
	cr_expect_lt(most, 2 * whole + (5 << 20), "%zu bytes, the table has %zu", most, whole);
	for (int64_t i = 0; i < ROWS; i++)
		cr_assert_eq(row_of(&view, i), 1);
	weir_table_view_release(&view);
	weir_table_destroy(table, NULL);
	weiri_lineage_sweep_bytes = usual;
	expect_nothing_left();
}

Test(table, rows_in_order_come_in_runs)
{
	enum { ROWS = 1000 };
	weir_table *table = table_of(WEIR_I64, ROWS, &(weir_shape){1, {3}}, NULL);
	weir_table_view view;
	int64_t count = -1, seen = 0;

	scatter_many(table, 0, 9, ROWS / 9);
	cr_assert_eq(weir_table_read(table, &view), WEIR_OK);
	for (int64_t i = 0; i < ROWS; i += count) {
		const int64_t *rows = weir_table_view_rows(&view, i, &count);

		cr_assert_not_null(rows);
		cr_assert(count >= 1 && i + count <= ROWS);
		for (int64_t j = 0; j < count; j++, seen++)
			cr_assert_arr_eq(rows + 3 * j, weir_table_view_row(&view, i + j), 3 * sizeof(*rows));
	}
	cr_expect_eq(seen, ROWS);
	cr_expect_eq(*(const int64_t *)weir_table_view_rows(&view, ROWS - 1, &count), 0);
	cr_expect_eq(count, 1);
	count = -1;
	cr_expect_null(weir_table_view_rows(&view, ROWS, &count));
	cr_expect_null(weir_table_view_rows(&view, -1, &count));
	cr_expect_null(weir_table_view_rows(NULL, 0, &count));
	cr_expect_null(weir_table_view_rows(&view, 0, NULL));
	cr_expect_eq(count, -1);
	weir_table_view_release(&view);
	cr_expect_null(weir_table_view_rows(&view, 0, &count));
	weir_table_destroy(table, NULL);
	expect_nothing_left();
}

Test(table, an_empty_update_and_one_of_one_row_many_times)
{
	weir_table *table = table_of(WEIR_I64, 5000, NULL, NULL);
	weir_table_view view;

	scatter_many(table, 0, 0, 0);
	scatter_many(table, 4999, 0, 1000);
	cr_assert_eq(weir_table_read(table, &view), WEIR_OK);
	cr_expect_eq(view.version, 3);
	cr_expect_eq(row_of(&view, 4999), 1000);
	cr_expect_eq(row_of(&view, 4998), 0);
	weir_table_view_release(&view);
	weir_table_destroy(table, NULL);
	expect_nothing_left();
}

/* Retired memory counts: one page and its nodes for each version that was replaced. */
Test(table, replaced_pages_count_in_the_retire_budget)
{
	enum { VERSIONS = 5 };
	struct weir_reclaim_stats stats = {WEIR_RECLAIM_STATS_INIT};
	weir_table *table = table_of(WEIR_I64, 1000000, NULL, NULL);
	weir_table_view views[VERSIONS];

	for (int i = 0; i < VERSIONS; i++) {
		cr_assert_eq(weir_table_read(table, &views[i]), WEIR_OK);
		scatter_one(table, WEIR_SCATTER_ADD, 7, 1);
	}
	collect_now();
	cr_assert_eq(weir_reclaim_get_stats(&stats), WEIR_OK);
	cr_expect_geq(stats.retired_bytes, (VERSIONS - 1) * WEIRI_PAGE_BYTES);
	cr_expect_leq(stats.retired_bytes, VERSIONS * (PATH + 8192));
	for (int i = 0; i < VERSIONS; i++)
		weir_table_view_release(&views[i]);
	weir_table_destroy(table, NULL);
	expect_nothing_left();
}

static enum weir_status make_and_scatter(const weir_allocator *allocator, void *context)
{
	struct weir_table_options options = {WEIR_TABLE_OPTIONS_INIT, .dtype = WEIR_I64, .rows = 20000,
	                                     .row = &(weir_shape){1, {2}}, .allocator = allocator};
	weir_table *table = NULL;
	weir_tensor *index = indices_of((int64_t[]){5, 19000, 6}, 3), *one = number(1);
	enum weir_status status = weir_table_create(context, &options, &table, NULL);

	if (status == WEIR_OK) {
		weir_table_view view;

		status = weir_table_scatter(table, WEIR_SCATTER_ADD, index, one, WEIR_NO_DEADLINE, NULL, NULL);
		cr_assert_eq(weir_table_read(table, &view), WEIR_OK);
		cr_expect_eq(row_of(&view, 19000), status == WEIR_OK ? 1 : 0);
		weir_table_view_release(&view);
	}
	weir_table_destroy(table, NULL);
	weir_tensor_release(index);
	weir_tensor_release(one);
	cr_expect_eq(weir_reclaim_flush(weir_deadline_in(variables_patience_ns)), WEIR_OK);
	return status;
}

Test(table, survives_every_allocation_failing)
{
	enum { PAGES = 20000 / (WEIRI_PAGE_BYTES / 16), NODES = (PAGES - 1) / WEIRI_NODE_PARTS + 1 };
	weir_tensor *initial;
	weir_tensor_builder *builder;

	cr_assert_eq(weir_tensor_builder_create(WEIR_I64, &(weir_shape){2, {20000, 2}}, &variables_memory, &builder, NULL),
	             WEIR_OK);
	cr_assert_eq(weir_tensor_builder_finish(builder, &initial), WEIR_OK);
	/*
	 * table, geometry, ledger, root, variable and its name, version; then the blocks of the first
	 * version; row, root, 2 nodes, 2 pages, version; a list of the blocks that are replaced, unless
	 * they are the common zeros
	 */
	cr_expect_eq(fail_each_allocation(make_and_scatter, NULL), 7 + 2 + 7);
	cr_expect_eq(fail_each_allocation(make_and_scatter, initial), 7 + PAGES + NODES + 7 + 1);
	weir_tensor_release(initial);
	expect_nothing_left();
}

/* -- refusals ---------------------------------------------------------------------------------- */

static void expect_not_made(struct weir_table_options options, const weir_tensor *initial, enum weir_status status,
                            const char *message)
{
	weir_table *table = NULL;
	weir_error error = {WEIR_OK, ""};

	cr_expect_eq(weir_table_create(initial, &options, &table, &error), status);
	cr_expect_str_eq(error.message, message);
	cr_expect_null(table);
}

Test(table, what_cannot_be_a_table_is_refused)
{
	weir_shape none = {1, {0}}, deep = {8, {1}}, unknown = {1, {-1}}, huge = {1, {INT64_MAX / 2}};
	weir_tensor *three = indices_of((int64_t[]){1, 2, 3}, 3);

	expect_not_made(
		(struct weir_table_options){.struct_size = 1}, NULL, WEIR_INVALID_ARGUMENT,
		"table: struct_size of the options is 1, expected 56, or another from 8 to 4096; begin the struct with "
		"its initialiser, WEIR_..._INIT");
	expect_not_made((struct weir_table_options){WEIR_TABLE_OPTIONS_INIT, .flags = 2}, NULL, WEIR_INVALID_ARGUMENT,
	                "table: unknown flags 0x2");
	expect_not_made((struct weir_table_options){WEIR_TABLE_OPTIONS_INIT, .dtype = WEIR_I64}, NULL,
	                WEIR_INVALID_ARGUMENT, "table \"table\": 0 rows, expected at least 1");
	expect_not_made((struct weir_table_options){WEIR_TABLE_OPTIONS_INIT, .name = "n", .rows = 1}, NULL,
	                WEIR_INVALID_ARGUMENT, "table \"n\": dtype is 0; set dtype");
	expect_not_made((struct weir_table_options){WEIR_TABLE_OPTIONS_INIT, .dtype = WEIR_I64, .rows = 1, .row = &deep},
	                NULL, WEIR_INVALID_ARGUMENT, "table \"table\": rows of rank 8, expected at most 7");
	expect_not_made(
		(struct weir_table_options){WEIR_TABLE_OPTIONS_INIT, .name = "e", .dtype = WEIR_I64, .rows = 2, .row = &none},
		NULL, WEIR_INVALID_ARGUMENT,
		"table \"e\": shape [2,0] of i64, expected at least one element, and no more than fit");
	expect_not_made((struct weir_table_options){WEIR_TABLE_OPTIONS_INIT, .dtype = WEIR_I64, .rows = 2, .row = &unknown},
	                NULL, WEIR_INVALID_ARGUMENT,
	                "table \"table\": shape [2,?] of i64, expected at least one element, and no more than fit");
	expect_not_made(
		(struct weir_table_options){WEIR_TABLE_OPTIONS_INIT, .dtype = WEIR_I64, .rows = 2, .row = &huge}, NULL,
		WEIR_INVALID_ARGUMENT,
		"table \"table\": shape [2,4611686018427387903] of i64, expected at least one element, and no more than fit");
	expect_not_made((struct weir_table_options){WEIR_TABLE_OPTIONS_INIT, .dtype = WEIR_BYTES, .rows = 2}, NULL,
	                WEIR_UNIMPLEMENTED, "table \"table\" is of bytes, whose rows cannot be scattered or gathered");
	expect_not_made((struct weir_table_options){WEIR_TABLE_OPTIONS_INIT, .dtype = WEIR_I64, .rows = 4}, three,
	                WEIR_INVALID_ARGUMENT, "table \"table\": initial is i64 [3], expected i64 [4]");
	cr_expect_eq(weir_table_create(NULL, NULL, NULL, NULL), WEIR_INVALID_ARGUMENT);
	weir_tensor_release(three);
	weir_table_destroy(NULL, NULL);
	weir_table_view_release(NULL);
	expect_nothing_left();
}

Test(table, nothing_is_asked_of_no_table_and_no_view)
{
	weir_table_view released = {0};

	cr_expect_eq(weir_table_version(NULL), 0);
	cr_expect_eq(weir_table_row_count(NULL), 0);
	cr_expect_eq(weir_table_dtype(NULL), (enum weir_dtype)0);
	cr_expect_null(weir_table_row_shape(NULL));
	cr_expect_str_eq(weir_table_name(NULL), "(null)");
	cr_expect_null(weir_table_view_row(NULL, 0));
	cr_expect_null(weir_table_view_row(&released, 0));
}

Test(table, an_index_out_of_bounds_changes_nothing)
{
	weir_table *table = table_of(WEIR_I64, 10, NULL, NULL);
	weir_tensor *indices = indices_of((int64_t[]){1, 10}, 2), *one = number(1), *out = NULL;
	weir_table_view none = {0, {.hold = NULL}}, view;
	weir_error error;

	cr_expect_eq(weir_table_scatter(table, WEIR_SCATTER_ADD, indices, one, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "table \"t\": index 1 is 10, expected one of [0, 10)");
	cr_expect_eq(weir_table_gather(table, indices, NULL, &out, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_table_gather(NULL, indices, NULL, &out, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_table_view_gather(&none, indices, NULL, &out, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_table_scatter(NULL, WEIR_SCATTER_ADD, indices, one, 0, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_table_read(NULL, &view), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_table_version(table), 1);
	cr_assert_eq(weir_table_read(table, &view), WEIR_OK);
	cr_expect_eq(row_of(&view, 1), 0);
	weir_table_view_release(&view);
	weir_tensor_release(indices);
	weir_tensor_release(one);
	weir_table_destroy(table, NULL);
	expect_nothing_left();
}

/* -- many at once ------------------------------------------------------------------------------ */

enum { THREADS = 4, TIMES = 200, ACCOUNTS = 20000 };

/* Moves an amount from one row to another, so the sum of all rows stays 0. */
static void *move(void *table)
{
	uint64_t seed = (uint64_t)(uintptr_t)&seed;
	weir_tensor *amounts = tensor_of(WEIR_I64, (weir_shape){1, {2}}, (int64_t[]){1, -1});

	for (int i = 0; i < TIMES; i++) {
		int64_t rows[2];
		weir_tensor *indices;

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		rows[0] = (int64_t)((seed >> 33) % ACCOUNTS);
		rows[1] = (int64_t)((seed >> 13) % ACCOUNTS);
		indices = indices_of(rows, 2);
		cr_assert_eq(weir_table_scatter(table, WEIR_SCATTER_ADD, indices, amounts, WEIR_NO_DEADLINE, NULL, NULL),
		             WEIR_OK);
		weir_tensor_release(indices);
	}
	weir_tensor_release(amounts);
	return NULL;
}

Test(table, updates_of_many_threads_are_each_of_one_instant)
{
	weir_table *table = table_of(WEIR_I64, ACCOUNTS, NULL, NULL);
	pthread_t threads[THREADS];
	uint64_t version = 0;

	for (size_t i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, move, table), 0);
	while (version <= THREADS * TIMES) {
		weir_table_view view;
		int64_t sum = 0;

		cr_assert_eq(weir_table_read(table, &view), WEIR_OK);
		version = view.version;
		for (int64_t i = 0; i < ACCOUNTS; i++)
			sum += row_of(&view, i);
		cr_assert_eq(sum, 0);
		weir_table_view_release(&view);
	}
	for (size_t i = 0; i < THREADS; i++)
		(void)pthread_join(threads[i], NULL);
	weir_table_destroy(table, NULL);
	expect_nothing_left();
}

Test(table, a_snapshot_is_of_one_instant_and_of_any_number)
{
	enum { TABLES = 70 };
	weir_table *tables[TABLES];
	weir_table_view views[TABLES];
	weir_error error;

	for (int64_t i = 0; i < TABLES; i++) {
		tables[i] = table_of(WEIR_I64, 3, NULL, NULL);
		scatter_one(tables[i], WEIR_SCATTER_UPDATE, 2, i);
	}
	cr_assert_eq(weir_table_snapshot(tables, TABLES, views, NULL), WEIR_OK);
	for (int64_t i = 0; i < TABLES; i++) {
		scatter_one(tables[i], WEIR_SCATTER_UPDATE, 2, -1);
		cr_expect_eq(views[i].version, 2);
		cr_expect_eq(row_of(&views[i], 2), i);
		weir_table_view_release(&views[i]);
	}
	cr_expect_eq(weir_table_snapshot(NULL, 0, NULL, NULL), WEIR_OK);
	cr_expect_eq(weir_table_snapshot(NULL, 1, views, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_table_snapshot((weir_table *[]){tables[0], NULL}, 2, views, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "snapshot: table 1 is NULL");
	for (int64_t i = 0; i < TABLES; i++)
		weir_table_destroy(tables[i], NULL);
	expect_nothing_left();
}
