/*
 * test_table_txn.c - tables beside variables: in transactions, snapshots, read sections, caches and
 * checkpoints. Writes of the variable of a table are refused.
 */
#include <criterion/criterion.h>

#include <pthread.h>
#include <weir/flow/checkpoint.h>
#include <weir/flow/table.h>
#include <weir/read_section.h>
#include <weir/value.h>
#include <weir/var_cache.h>

#include "checkpoint_kit.h"
#include "rows_kit.h"
#include "table/pages.h"

enum { ROWS = 30000 }; /* more pages than a root has pointers */

static weir_table *table_of(int64_t rows)
{
	struct weir_table_options options = {WEIR_TABLE_OPTIONS_INIT, .name = "t", .dtype = WEIR_I64, .rows = rows,
	                                     .allocator = &variables_memory};
	weir_table *table = NULL;

	cr_assert_eq(weir_table_create(NULL, &options, &table, NULL), WEIR_OK);
	return table;
}

static weir_var *counter(void)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .kind = WEIR_VAR_INLINE, .size = sizeof(uint64_t),
	                                   .allocator = &variables_memory};
	uint64_t none = 0;
	weir_var *var = NULL;

	cr_assert_eq(weir_var_create_value(WEIR_VALUE_OF(none), &options, &var, NULL), WEIR_OK);
	return var;
}

static int64_t row_of(const weir_table_view *view, int64_t row)
{
	return *(const int64_t *)weir_table_view_row(view, row);
}

static int64_t newest_row(weir_table *table, int64_t row)
{
	weir_table_view view;
	int64_t value;

	cr_assert_eq(weir_table_read(table, &view), WEIR_OK);
	value = row_of(&view, row);
	weir_table_view_release(&view);
	return value;
}

static weir_txn *begin(void)
{
	weir_txn *txn = NULL;

	cr_assert_eq(weir_txn_begin(&variables_memory, &txn, NULL), WEIR_OK);
	return txn;
}

/* Adds `value` to the row, in the transaction; or outside if that is NULL. */
static enum weir_status add(weir_txn *txn, weir_table *table, int64_t row, int64_t value)
{
	weir_tensor *index = indices_of(&row, 1), *scalar = number(value);
	enum weir_status status =
		txn != NULL ? weir_table_txn_scatter(txn, table, WEIR_SCATTER_ADD, index, scalar, NULL)
					: weir_table_scatter(table, WEIR_SCATTER_ADD, index, scalar, WEIR_NO_DEADLINE, NULL, NULL);

	weir_tensor_release(index);
	weir_tensor_release(scalar);
	return status;
}

/* -- transactions ------------------------------------------------------------------------------ */

Test(table_txn, all_changes_are_published_at_once_as_one_version)
{
	weir_table *table = table_of(ROWS), *other = table_of(7);
	weir_var *var = counter();
	weir_txn *txn = begin();
	uint64_t count = 5;
	weir_table_view view;

	cr_expect_eq(add(txn, table, 3, 10), WEIR_OK);
	cr_expect_eq(add(txn, table, 3, 1), WEIR_OK);
	cr_expect_eq(add(txn, table, ROWS - 1, 2), WEIR_OK);
	cr_expect_eq(add(txn, other, 6, 3), WEIR_OK);
	cr_expect_eq(weir_txn_assign_value(txn, var, WEIR_VALUE_OF(count), NULL), WEIR_OK);
	cr_assert_eq(weir_table_txn_read(txn, table, &view, NULL), WEIR_OK);
	cr_expect_eq(view.version, 1);
	cr_expect(row_of(&view, 3) == 11 && row_of(&view, ROWS - 1) == 2 && row_of(&view, 4) == 0);
	weir_table_view_release(&view);
	cr_expect(newest_row(table, 3) == 0 && newest_row(other, 6) == 0, "no other thread sees it yet");
	cr_expect_eq(weir_txn_commit(txn, WEIR_NO_DEADLINE, NULL), WEIR_OK);
	cr_expect(newest_row(table, 3) == 11 && newest_row(table, ROWS - 1) == 2 && newest_row(other, 6) == 3);
	cr_expect(weir_table_version(table) == 2 && weir_table_version(other) == 2);
	cr_expect_eq(weir_var_version(var), 2);
	weir_table_destroy(table, NULL);
	weir_table_destroy(other, NULL);
	weir_var_destroy(var, NULL);
	expect_nothing_left();
}

Test(table_txn, a_change_of_the_table_meanwhile_aborts_it)
{
	weir_table *table = table_of(ROWS);
	weir_var *var = counter();
	uint64_t count = 5;
	weir_table_view view;

	for (int with_var = 0; with_var < 2; with_var++) {
		weir_txn *txn = begin();

		cr_expect_eq(add(txn, table, 3, 10), WEIR_OK);
		if (with_var)
			cr_expect_eq(weir_txn_assign_value(txn, var, WEIR_VALUE_OF(count), NULL), WEIR_OK);
		cr_expect_eq(add(NULL, table, 20000, 1), WEIR_OK);
		cr_expect_eq(weir_txn_commit(txn, WEIR_NO_DEADLINE, NULL), WEIR_ABORTED);
		/* A table that is only read is a mark of the commit. */
		txn = begin();
		cr_expect_eq(weir_table_txn_read(txn, table, &view, NULL), WEIR_OK);
		cr_expect_eq(row_of(&view, 20000), with_var + 1);
		cr_expect_eq(weir_txn_assign_value(txn, var, WEIR_VALUE_OF(count), NULL), WEIR_OK);
		if (with_var)
			cr_expect_eq(add(NULL, table, 7, 1), WEIR_OK);
		cr_expect_eq(weir_txn_commit(txn, WEIR_NO_DEADLINE, NULL), with_var ? WEIR_ABORTED : WEIR_OK);
	}
	cr_expect(newest_row(table, 3) == 0 && newest_row(table, 20000) == 2);
	cr_expect_eq(weir_table_version(table), 4, "a mark is no version");
	cr_expect_eq(weir_var_version(var), 2);
	weir_table_destroy(table, NULL);
	weir_var_destroy(var, NULL);
	expect_nothing_left();
}

Test(table_txn, an_abort_leaves_nothing)
{
	weir_table *table = table_of(ROWS);
	weir_txn *txn = begin();

	cr_expect_eq(add(txn, table, 3, 10), WEIR_OK);
	cr_expect_eq(add(txn, table, 20000, 10), WEIR_OK);
	weir_txn_abort(txn);
	cr_expect(newest_row(table, 3) == 0 && newest_row(table, 20000) == 0);
	cr_expect_eq(weir_table_version(table), 1);
	weir_table_destroy(table, NULL);
	expect_nothing_left();
}

/* The replaced pages come back while transactions go on, with a view that is held in between. */
Test(table_txn, replaced_pages_are_reused)
{
	enum { TIMES = 300, WARM = 100 };
	weir_table *table = table_of(ROWS);
	uint64_t usual = weiri_lineage_sweep_bytes;
	weir_table_view view = {.version = 0};
	size_t warm = 0;

	weiri_lineage_sweep_bytes = 16 << 10;
	for (int i = 0; i < TIMES; i++) {
		weir_txn *txn = begin();

		cr_expect_eq(add(txn, table, i % 3, 1), WEIR_OK);
		cr_expect_eq(add(txn, table, ROWS - 1, 1), WEIR_OK);
		cr_expect_eq(weir_txn_commit(txn, WEIR_NO_DEADLINE, NULL), WEIR_OK);
		if (i == WARM)
			cr_assert_eq(weir_table_read(table, &view), WEIR_OK);
		if (i == WARM + 1)
			weir_table_view_release(&view);
		if (i % 16 == 0)
			collect_now();
		/* [relaxed] one thread */
		if (i == WARM)
			warm = weiri_load_relaxed(&variables_state.bytes);
	}
	/* Each transaction copies 2 pages and 2 nodes, and makes a root: 1 MiB in all. */
	cr_expect_leq(weiri_load_relaxed(&variables_state.bytes), warm + (128 << 10));
	cr_expect_eq(newest_row(table, ROWS - 1), TIMES);
	weir_table_destroy(table, NULL);
	weiri_lineage_sweep_bytes = usual;
	expect_nothing_left();
}

static weir_txn *to_be_aborted;
static size_t pages_asked_for;

static void *allocate_after_the_abort(void *context, size_t size, size_t alignment)
{
	weir_txn *txn = to_be_aborted;

	to_be_aborted = NULL;
	if (txn != NULL)
		weir_txn_abort(txn);
	pages_asked_for += size == WEIRI_PAGE_BYTES;
	return variables_memory.allocate(context, size, alignment);
}

/* A change finds no block when it begins. Another transaction is aborted before it needs one. */
Test(table_txn, blocks_that_are_given_back_meanwhile_are_reused)
{
	weir_allocator allocator = {allocate_after_the_abort, variables_memory.release, variables_memory.context};
	struct weir_table_options options = {WEIR_TABLE_OPTIONS_INIT, .dtype = WEIR_I64, .rows = ROWS,
	                                     .allocator = &allocator};
	weir_txn *txn = begin(), *other = begin();
	uint64_t usual = weiri_blocks_share;
	weir_table *table = NULL;

	weiri_blocks_share = 8;
	cr_assert_eq(weir_table_create(NULL, &options, &table, NULL), WEIR_OK);
	cr_expect_eq(add(other, table, 20000, 1), WEIR_OK);
	to_be_aborted = other;
	pages_asked_for = 0;
	cr_expect_eq(add(txn, table, 3, 1), WEIR_OK);
	cr_expect_null(to_be_aborted);
	cr_expect_eq(pages_asked_for, 0);
	cr_expect_eq(weir_txn_commit(txn, WEIR_NO_DEADLINE, NULL), WEIR_OK);
	cr_expect(newest_row(table, 3) == 1 && newest_row(table, 20000) == 0);
	weir_table_destroy(table, NULL);
	weiri_blocks_share = usual;
	expect_nothing_left();
}

/* A change that finds no memory leaves the earlier ones of its transaction as they were. */
static enum weir_status change_twice(const weir_allocator *allocator, void *context)
{
	struct weir_table_options options = {WEIR_TABLE_OPTIONS_INIT, .dtype = WEIR_I64, .rows = 20000,
	                                     .allocator = allocator};
	weir_table *table = NULL;
	weir_tensor *first = indices_of((int64_t[]){5}, 1), *second = indices_of((int64_t[]){5, 6, 19000}, 3);
	weir_tensor *one = number(1);
	weir_txn *txn = NULL;
	enum weir_status status = weir_table_create(context, &options, &table, NULL), changed;
	weir_table_view view;

	if (status == WEIR_OK)
		status = weir_txn_begin(allocator, &txn, NULL);
	if (status == WEIR_OK)
		status = weir_table_txn_scatter(txn, table, WEIR_SCATTER_ADD, first, one, NULL);
	if (status == WEIR_OK) {
		changed = status = weir_table_txn_scatter(txn, table, WEIR_SCATTER_ADD, second, one, NULL);
		cr_assert_eq(weir_table_txn_read(txn, table, &view, NULL), WEIR_OK);
		cr_expect_eq(row_of(&view, 5), changed == WEIR_OK ? 2 : 1);
		cr_expect_eq(row_of(&view, 6), changed == WEIR_OK ? 1 : 0);
	}
	if (status == WEIR_OK)
		status = weir_txn_commit(txn, WEIR_NO_DEADLINE, NULL);
	else
		weir_txn_abort(txn);
	weir_table_destroy(table, NULL);
	weir_tensor_release(first);
	weir_tensor_release(second);
	weir_tensor_release(one);
	cr_expect_eq(weir_reclaim_flush(weir_deadline_in(variables_patience_ns)), WEIR_OK);
	return status;
}

Test(table_txn, survives_every_allocation_failing)
{
	cr_expect_gt(fail_each_allocation(change_twice, NULL), 15);
	expect_nothing_left();
}

/* -- many at once ------------------------------------------------------------------------------ */

enum { TIMES = 150 };

struct shared {
	weir_table *from, *to;
	weir_var *count;
};

static enum weir_status move_one(void *context, weir_txn *txn, weir_error *error)
{
	const struct shared *shared = context;
	enum weir_status status = add(txn, shared->from, 1, -1);
	weir_value value;
	uint64_t count;

	(void)error;
	if (status == WEIR_OK)
		status = add(txn, shared->to, 900, 1);
	if (status == WEIR_OK)
		status = weir_txn_read_value(txn, shared->count, &value, NULL);
	if (status != WEIR_OK)
		return status;
	count = *(const uint64_t *)value.data + 1;
	return weir_txn_assign_value(txn, shared->count, WEIR_VALUE_OF(count), NULL);
}

static void *move(void *context)
{
	for (int i = 0; i < TIMES; i++)
		cr_assert_eq(weir_txn_run(&variables_memory, move_one, context, WEIR_NO_DEADLINE, NULL), WEIR_OK);
	return NULL;
}

static void *disturb(void *context)
{
	for (int i = 0; i < TIMES; i++)
		cr_assert_eq(add(NULL, ((struct shared *)context)->to, 2, 1), WEIR_OK);
	return NULL;
}

Test(table_txn, tables_and_variables_change_at_one_instant)
{
	struct shared shared = {table_of(1000), table_of(1000), counter()};
	weir_var *vars[3] = {weir_table_var(shared.from), weir_table_var(shared.to), shared.count};
	pthread_t threads[3];
	uint64_t count = 0;

	for (size_t i = 0; i < 3; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, i < 2 ? move : disturb, &shared), 0);
	while (count < (uint64_t)2 * TIMES) {
		weir_table_view from, to;
		weir_read reads[3];

		cr_assert_eq(weir_var_snapshot(vars, 3, reads, NULL), WEIR_OK);
		cr_assert_eq(weir_table_view_of(&reads[0], &from), WEIR_OK);
		cr_assert_eq(weir_table_view_of(&reads[1], &to), WEIR_OK);
		count = *(const uint64_t *)reads[2].data;
		cr_assert(row_of(&to, 900) == (int64_t)count && row_of(&from, 1) == -(int64_t)count);
		weir_table_view_release(&from);
		weir_table_view_release(&to);
		weir_read_release(&reads[2]);
	}
	for (size_t i = 0; i < 3; i++)
		(void)pthread_join(threads[i], NULL);
	weir_table_destroy(shared.from, NULL);
	weir_table_destroy(shared.to, NULL);
	weir_var_destroy(shared.count, NULL);
	expect_nothing_left();
}

/* -- the variable of a table ------------------------------------------------------------------- */

static enum weir_status never(void *context, const weir_read *current, weir_value *next, weir_error *error)
{
	(void)context, (void)current, (void)next, (void)error;
	cr_expect(false, "the function of a refused update ran");
	return WEIR_OK;
}

Test(table_txn, the_variable_of_a_table_is_read_in_every_way)
{
	weir_table *table = table_of(ROWS);
	weir_var *var = weir_table_var(table);
	weir_read_section section = {WEIR_READ_SECTION_INIT};
	weir_var_cache cache;
	weir_table_view view;
	weir_read read;

	cr_expect_eq(weir_var_kind(var), WEIR_VAR_TABLE);
	cr_expect_eq(add(NULL, table, 9, 4), WEIR_OK);
	cr_assert_eq(weir_var_try_read_newer(var, 1, &read), WEIR_OK);
	cr_assert_eq(weir_table_view_of(&read, &view), WEIR_OK);
	cr_expect(view.version == 2 && row_of(&view, 9) == 4);
	weir_table_view_release(&view);
	cr_assert_eq(weir_read_section_begin(&section), WEIR_OK);
	cr_assert_eq(weir_table_view_of(weir_read_section_peek(&section, var), &view), WEIR_OK);
	cr_expect_eq(row_of(&view, 9), 4);
	weir_table_view_release(&view);
	cr_assert_eq(weir_read_section_end(&section), WEIR_OK);
	weir_var_cache_init(&cache, var);
	cr_assert_eq(weir_table_view_of(weir_var_cache_read(&cache), &view), WEIR_OK);
	cr_expect_eq(row_of(&view, 9), 4);
	weir_var_cache_release(&cache);
	weir_table_destroy(table, NULL);
	expect_nothing_left();
}

static void expect_said(enum weir_status is, enum weir_status status, const weir_error *error, const char *message)
{
	cr_expect_eq(is, status);
	cr_expect_str_eq(error->message, message);
}

Test(table_txn, writes_of_the_variable_of_a_table_are_refused)
{
	weir_table *table = table_of(3);
	weir_var *var = weir_table_var(table), *other = counter(), *none = NULL;
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .kind = WEIR_VAR_TABLE};
	weir_txn *txn = begin();
	weir_tensor *one = number(1);
	weir_error error = {WEIR_OK, ""};
	weir_table_view view;
	weir_value value;
	weir_read read;

	expect_said(weir_var_assign_value(var, weir_value_pointer(table), 0, NULL, &error), WEIR_INVALID_ARGUMENT, &error,
	            "variable \"t\": takes versions of a table, got a pointer");
	cr_expect_eq(weir_txn_assign_value(txn, var, weir_value_pointer(table), NULL), WEIR_INVALID_ARGUMENT);
	/* What a transaction reads can be written elsewhere, and a version of a table has one owner. */
	expect_said(weir_txn_read_value(txn, var, &value, &error), WEIR_INVALID_ARGUMENT, &error,
	            "variable \"t\" has versions of a table: use weir_table_txn_read()");
	expect_said(weir_var_update_value(var, never, NULL, 0, NULL, &error), WEIR_INVALID_ARGUMENT, &error,
	            "variable \"t\" has versions of a table: use weir_table_scatter()");
	cr_expect_eq(weir_var_assign(var, one, 0, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_var_assign_add(var, one, 0, NULL, NULL), WEIR_INVALID_ARGUMENT);
	expect_said(weir_var_destroy(var, &error), WEIR_FAILED_PRECONDITION, &error,
	            "variable \"t\" is that of a table, which destroys it");
	expect_said(weir_var_create(NULL, &options, &none, &error), WEIR_INVALID_ARGUMENT, &error,
	            "variable: only weir_table_create() makes one of kind 3");
	/* What is no table. */
	cr_expect_null(weir_table_var(NULL));
	cr_assert_eq(weir_var_read(other, &read), WEIR_OK);
	cr_expect_eq(weir_table_view_of(&read, &view), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_table_view_of(&read, NULL), WEIR_INVALID_ARGUMENT);
	weir_read_release(&read);
	cr_expect_eq(weir_table_view_of(&read, &view), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_table_view_of(NULL, &view), WEIR_INVALID_ARGUMENT);
	expect_said(weir_table_txn_read(NULL, table, &view, &error), WEIR_INVALID_ARGUMENT, &error,
	            "transaction: it is NULL");
	expect_said(weir_table_txn_read(txn, NULL, &view, &error), WEIR_INVALID_ARGUMENT, &error,
	            "transaction: the table is NULL");
	expect_said(weir_table_txn_read(txn, table, NULL, &error), WEIR_INVALID_ARGUMENT, &error,
	            "transaction: the place for the view is NULL");
	expect_said(weir_table_txn_scatter(NULL, table, WEIR_SCATTER_ADD, one, one, &error), WEIR_INVALID_ARGUMENT, &error,
	            "transaction: it is NULL");
	expect_said(weir_table_txn_scatter(txn, NULL, WEIR_SCATTER_ADD, one, one, &error), WEIR_INVALID_ARGUMENT, &error,
	            "transaction: the table is NULL");
	cr_expect_eq(add(txn, table, 3, 1), WEIR_INVALID_ARGUMENT, "no such row");
	/* A transaction that is doomed. */
	cr_expect_eq(weir_txn_read_value(txn, other, &value, NULL), WEIR_OK);
	cr_expect_eq(weir_var_assign_value(other, value, 0, NULL, NULL), WEIR_OK);
	cr_expect_eq(add(NULL, table, 1, 1), WEIR_OK);
	cr_expect_eq(add(txn, table, 1, 1), WEIR_ABORTED);
	weir_txn_abort(txn);
	cr_expect_eq(newest_row(table, 1), 1);
	weir_tensor_release(one);
	weir_table_destroy(table, NULL);
	weir_var_destroy(other, NULL);
	expect_nothing_left();
}

/* -- checkpoints ------------------------------------------------------------------------------- */

static weir_table *grid(const char *name, enum weir_dtype dtype, int64_t rows, int64_t width)
{
	struct weir_table_options options = {
		WEIR_TABLE_OPTIONS_INIT,       .name = name, .dtype = dtype, .rows = rows, .row = &(weir_shape){1, {width}},
		.allocator = &variables_memory};
	weir_table *table = NULL;

	cr_assert_eq(weir_table_create(NULL, &options, &table, NULL), WEIR_OK);
	return table;
}

Test(table_txn, a_checkpoint_has_the_table_of_one_instant)
{
	enum { WIDTH = 3, COUNT = 20000 };
	struct folder folder = make_folder();
	weir_table *table = grid("grid", WEIR_I64, COUNT, WIDTH), *other = grid("grid", WEIR_I64, COUNT, WIDTH);
	weir_table *wide = grid("wide", WEIR_I64, COUNT, WIDTH + 1);
	weir_var *var = variable(4), *copy = variable(0), *whole = variable(0), *tensor;
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I64, .allocator = &variables_memory};
	struct weir_checkpoint_part from[2] = {{NULL, weir_table_var(table)}, {"x", var}};
	struct weir_checkpoint_part to[2] = {{NULL, weir_table_var(other)}, {"x", copy}};
	weir_table_view view, held;
	weir_read read;
	weir_error error;

	for (int64_t i = 0; i < COUNT; i += 1999)
		cr_assert_eq(add(NULL, table, i, i + 1), WEIR_OK);
	cr_assert_eq(add(NULL, other, 5, 77), WEIR_OK);
	cr_assert_eq(weir_checkpoint_save(from, 2, folder.file, NULL, &error), WEIR_OK, "%s", error.message);
	cr_assert_eq(weir_table_read(other, &held), WEIR_OK);
	cr_assert_eq(weir_checkpoint_restore(to, 2, folder.file, NULL, WEIR_NO_DEADLINE, &error), WEIR_OK, "%s",
	             error.message);
	cr_expect_eq(value_in(copy), 4);
	cr_expect_eq(row_of(&held, 5), 77);
	cr_assert_eq(weir_table_read(other, &view), WEIR_OK);
	cr_expect_eq(view.version, 3);
	for (int64_t i = 0; i < COUNT; i++)
		cr_assert_eq(row_of(&view, i), i % 1999 == 0 ? i + 1 : 0);
	weir_table_view_release(&view);
	weir_table_view_release(&held);
	/* The file is one of tensors: a variable takes it as well. */
	cr_assert_eq(weir_var_create(NULL, &options, &tensor, NULL), WEIR_OK);
	to[0].name = "grid";
	to[0].var = tensor;
	cr_assert_eq(weir_checkpoint_restore(to, 2, folder.file, NULL, WEIR_NO_DEADLINE, NULL), WEIR_OK);
	cr_assert_eq(weir_var_read(tensor, &read), WEIR_OK);
	cr_expect(weir_shape_equal(weir_tensor_shape(read.tensor), &(weir_shape){2, {COUNT, WIDTH}}));
	cr_expect_eq(((const int64_t *)weir_tensor_data(read.tensor))[1999 * WIDTH + 2], 2000);
	weir_read_release(&read);
	/* Tables of another shape or dtype, and one that occurs twice. */
	to[0].var = weir_table_var(wide);
	cr_expect_eq(weir_checkpoint_restore(to, 2, folder.file, NULL, WEIR_NO_DEADLINE, &error), WEIR_FAILED_PRECONDITION);
	cr_expect_not_null(strstr(error.message, "has shape [20000,3], table \"wide\" expects [20000,4]"), "%s",
	                   error.message);
	weir_table_destroy(wide, NULL);
	wide = grid("wide", WEIR_F32, COUNT, WIDTH);
	to[0].var = weir_table_var(wide);
	cr_expect_eq(weir_checkpoint_restore(to, 2, folder.file, NULL, WEIR_NO_DEADLINE, &error), WEIR_FAILED_PRECONDITION);
	cr_expect_not_null(strstr(error.message, "is of I64, table \"wide\" expects f32"), "%s", error.message);
	cr_expect_eq(weir_table_version(wide), 1);
	weir_table_destroy(table, NULL);
	weir_table_destroy(other, NULL);
	weir_table_destroy(wide, NULL);
	weir_var_destroy(var, NULL);
	weir_var_destroy(copy, NULL);
	weir_var_destroy(whole, NULL);
	weir_var_destroy(tensor, NULL);
	remove_folder(&folder);
	expect_nothing_left();
}

static enum weir_status save_and_restore(const weir_allocator *allocator, void *context)
{
	const struct folder *folder = context;
	struct weir_checkpoint_options options = {WEIR_CHECKPOINT_OPTIONS_INIT, .allocator = allocator};
	struct weir_table_options of = {WEIR_TABLE_OPTIONS_INIT, .name = "x", .dtype = WEIR_I64, .rows = 100,
	                                .allocator = allocator};
	weir_table *table = NULL;
	enum weir_status status = weir_table_create(NULL, &of, &table, NULL);
	struct weir_checkpoint_part part = {NULL, weir_table_var(table)};

	if (status == WEIR_OK)
		status = weir_checkpoint_save(&part, 1, folder->file, &options, NULL);
	if (status == WEIR_OK) {
		status = weir_checkpoint_restore(&part, 1, folder->file, &options, WEIR_NO_DEADLINE, NULL);
		cr_expect_eq(weir_table_version(table), status == WEIR_OK ? 2 : 1);
	}
	weir_table_destroy(table, NULL);
	cr_expect_eq(weir_reclaim_flush(weir_deadline_in(variables_patience_ns)), WEIR_OK);
	return status;
}

Test(table_txn, a_checkpoint_survives_every_allocation_failing)
{
	struct folder folder = make_folder();

	cr_expect_gt(fail_each_allocation(save_and_restore, &folder), 15);
	remove_folder(&folder);
	expect_nothing_left();
}
