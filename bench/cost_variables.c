/*
 * cost_variables.c - weir-cost: variables of tensors and of bytes, snapshots, commits, and tables of
 * rows.
 */
#include <weir/flow/table.h>

#include "cost.h"

enum {
	KEPT = 1024 /* writes until a thread keeps enough blocks */
};

weir_var *cost_vars[VARIABLES];
static _Alignas(64) weir_read reads[VARIABLES];
static _Alignas(64) weir_read_section section = {WEIR_READ_SECTION_INIT};
static _Alignas(64) const weir_read *shown[VARIABLES];
static weir_var_cache cache;
static weir_tensor *value;
static uint64_t inline_version;
static weir_watch *watch;
static volatile uint64_t sink;

/* -- variables --------------------------------------------------------------------------------- */

void cost_vars_begin(void)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I64};

	must(weir_tensor_scalar_i64(1, &value));
	for (int i = 0; i < VARIABLES; i++)
		must(weir_var_create(value, &options, &cost_vars[i], NULL));
	weir_var_cache_init(&cache, cost_vars[0]);
}

void cost_vars_end(void)
{
	weir_var_cache_release(&cache);
	for (int i = 0; i < VARIABLES; i++)
		weir_var_destroy(cost_vars[i], NULL);
	weir_tensor_release(value);
}

static void read_release(void)
{
	must(weir_var_read(cost_vars[0], &reads[0]));
	weir_read_release(&reads[0]);
}

static void read_cached(void)
{
	sink = weir_var_cache_read(&cache)->version;
}

static void read_look_release(void)
{
	must(weir_var_read(cost_vars[0], &reads[0]));
	sink = *(const uint64_t *)weir_tensor_data(reads[0].tensor);
	weir_read_release(&reads[0]);
}

static void assign(void)
{
	must(weir_var_assign(cost_vars[0], value, WEIR_NO_DEADLINE, NULL, NULL));
}

static void snapshot(size_t count)
{
	must(weir_var_snapshot(cost_vars, count, reads, NULL));
	weir_read_release_many(reads, count);
}

static void snapshot_2(void)
{
	snapshot(2);
}

static void snapshot_8(void)
{
	snapshot(8);
}

/* The section's begin and end are counted, too. */
static void section_snapshot(size_t count)
{
	must(weir_read_section_begin(&section));
	must(weir_read_section_snapshot(&section, cost_vars, count, shown, NULL));
	must(weir_read_section_end(&section));
}

static void section_snapshot_2(void)
{
	section_snapshot(2);
}

static void section_snapshot_8(void)
{
	section_snapshot(8);
}

static void commit_2(void)
{
	struct weir_commit_part parts[2];

	for (int i = 0; i < 2; i++)
		parts[i] = (struct weir_commit_part){cost_vars[i], weir_var_version(cost_vars[i]), value};
	must(weir_var_commit(parts, 2, WEIR_NO_DEADLINE, NULL, NULL));
}

/* -- tables of rows of 256 bytes --------------------------------------------------------------- */

enum { ROWS = 100 };

static weir_table *rows;
static weir_tensor *plus_one, *few, *many;

static void rows_begin(int64_t count)
{
	struct weir_table_options options = {WEIR_TABLE_OPTIONS_INIT, .dtype = WEIR_I64, .rows = count,
	                                     .row = &(weir_shape){1, {32}}};
	int64_t indices[ROWS];

	for (int64_t i = 0; i < ROWS; i++)
		indices[i] = i * (count / ROWS);
	must(weir_table_create(NULL, &options, &rows, NULL));
	must(weir_tensor_scalar_i64(1, &plus_one));
	must(weir_tensor_copy_of(WEIR_I64, &(weir_shape){1, {1}}, indices, NULL, &few));
	must(weir_tensor_copy_of(WEIR_I64, &(weir_shape){1, {ROWS}}, indices, NULL, &many));
}

static void rows_begin_32_mib(void)
{
	rows_begin((int64_t)1 << 17);
}

static void rows_begin_1_gib(void)
{
	rows_begin((int64_t)1 << 22);
}

static void rows_end(void)
{
	weir_tensor_release(plus_one);
	weir_tensor_release(few);
	weir_tensor_release(many);
	must(weir_table_destroy(rows, NULL));
}

static void update_1_row(void)
{
	must(weir_table_scatter(rows, WEIR_SCATTER_ADD, few, plus_one, WEIR_NO_DEADLINE, NULL, NULL));
}

static void update_100_rows(void)
{
	must(weir_table_scatter(rows, WEIR_SCATTER_ADD, many, plus_one, WEIR_NO_DEADLINE, NULL, NULL));
}

/* -- variables of bytes ------------------------------------------------------------------------ */

struct words {
	uint64_t word[8];
};

static void inline_assign(void)
{
	struct words next = {{1}};

	must(weir_var_assign_value(cost_vars[0], WEIR_VALUE_OF(next), WEIR_NO_DEADLINE, NULL, NULL));
}

static enum weir_status add_one(void *context, const weir_read *current, weir_value *next, weir_error *error)
{
	(void)context, (void)current, (void)error;
	((struct words *)next->room)->word[0]++;
	return WEIR_OK;
}

static void inline_update(void)
{
	must(weir_var_update_value(cost_vars[0], add_one, NULL, WEIR_NO_DEADLINE, NULL, NULL));
}

static void inline_copy(void)
{
	struct words copy;

	must(weir_var_read_into(cost_vars[0], &copy, sizeof(copy), NULL, NULL));
	sink = copy.word[0];
}

static void commit_values(size_t count)
{
	struct words next = {{1}};
	struct weir_value_part parts[VARIABLES];

	for (size_t i = 0; i < count; i++)
		parts[i] = (struct weir_value_part){cost_vars[i], inline_version, WEIR_VALUE_OF(next)};
	must(weir_var_commit_values(parts, count, WEIR_NO_DEADLINE, NULL, NULL));
	inline_version++;
}

static void inline_commit(void)
{
	commit_values(2);
}

/* At most k + 2 read-modify-writes for k variables, besides those of collections, which many commits share. */
static void inline_commit_of_8(void)
{
	commit_values(8);
}

static enum weir_status read_and_assign(void *context, weir_txn *txn, weir_error *error)
{
	struct words next = {{1}};
	weir_value found;

	(void)context;
	must(weir_txn_read_value(txn, cost_vars[0], &found, error));
	must(weir_txn_assign_value(txn, cost_vars[0], WEIR_VALUE_OF(next), error));
	return weir_txn_assign_value(txn, cost_vars[1], WEIR_VALUE_OF(next), error);
}

static void inline_transaction(void)
{
	must(weir_txn_run(NULL, read_and_assign, NULL, WEIR_NO_DEADLINE, NULL));
}

/* Writes until the thread keeps enough blocks, so that the allocator has no part in what follows. */
static void inline_begin_of(void (*write)(void))
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .kind = WEIR_VAR_INLINE, .size = sizeof(struct words)};
	struct words first = {{0}};

	for (int i = 0; i < VARIABLES; i++)
		must(weir_var_create_value(WEIR_VALUE_OF(first), &options, &cost_vars[i], NULL));
	inline_version = 1;
	for (int i = 0; i < KEPT; i++)
		write();
}

static void inline_begin(void)
{
	inline_begin_of(inline_commit);
}

static void inline_begin_8(void)
{
	inline_begin_of(inline_commit_of_8);
}

static void inline_begin_transaction(void)
{
	inline_begin_of(inline_transaction);
}

static void inline_end(void)
{
	for (int i = 0; i < VARIABLES; i++)
		weir_var_destroy(cost_vars[i], NULL);
}

static void pointer_assign(void)
{
	must(weir_var_assign_value(cost_vars[0], weir_value_pointer(cost_vars), WEIR_NO_DEADLINE, NULL, NULL));
}

static void pointer_begin(void)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .kind = WEIR_VAR_POINTER};

	must(weir_var_create(NULL, &options, &cost_vars[0], NULL));
	for (int i = 0; i < KEPT; i++)
		pointer_assign();
}

static void pointer_end(void)
{
	weir_var_destroy(cost_vars[0], NULL);
}

/* The descriptor is readable from the first assign on, and no thread takes. */
static void watched_begin(void)
{
	inline_begin();
	must(weir_watch_create(cost_vars[0], weir_var_version(cost_vars[0]), &watch, NULL));
}

static void watched_end(void)
{
	must(weir_watch_destroy(watch, NULL));
	inline_end();
}

/* -- the table --------------------------------------------------------------------------------- */

static const struct cost_operation operations[] = {
	{"variable read, release", cost_vars_begin, nothing, read_release, nothing, cost_vars_end},
	{"variable read, look, release", cost_vars_begin, nothing, read_look_release, nothing, cost_vars_end},
	{"variable read by a cache", cost_vars_begin, nothing, read_cached, nothing, cost_vars_end},
	{"variable assign", cost_vars_begin, nothing, assign, nothing, cost_vars_end},
	{"snapshot of 2, release", cost_vars_begin, nothing, snapshot_2, nothing, cost_vars_end},
	{"snapshot of 8, release", cost_vars_begin, nothing, snapshot_8, nothing, cost_vars_end},
	{"section with a snapshot of 2", cost_vars_begin, nothing, section_snapshot_2, nothing, cost_vars_end},
	{"section with a snapshot of 8", cost_vars_begin, nothing, section_snapshot_8, nothing, cost_vars_end},
	{"commit of 2", cost_vars_begin, nothing, commit_2, nothing, cost_vars_end},
	{"table of 1 GiB, update of a row", rows_begin_1_gib, nothing, update_1_row, nothing, rows_end},
	{"table of 32 MiB, update of 100 rows", rows_begin_32_mib, nothing, update_100_rows, nothing, rows_end},
	{"table of 1 GiB, update of 100 rows", rows_begin_1_gib, nothing, update_100_rows, nothing, rows_end},
	{"inline assign of 64 bytes", inline_begin, nothing, inline_assign, nothing, inline_end},
	{"inline assign of 64 bytes, watched", watched_begin, nothing, inline_assign, nothing, watched_end},
	{"inline update of 64 bytes", inline_begin, nothing, inline_update, nothing, inline_end},
	{"inline copy of 64 bytes", inline_begin, nothing, inline_copy, nothing, inline_end},
	{"inline commit of 2 x 64 bytes", inline_begin, nothing, inline_commit, nothing, inline_end},
	{"inline commit of 8 x 64 bytes", inline_begin_8, nothing, inline_commit_of_8, nothing, inline_end},
	{"inline transaction, 1 read, 2 x 64 bytes", inline_begin_transaction, nothing, inline_transaction, nothing,
     inline_end},
	{"pointer assign", pointer_begin, nothing, pointer_assign, nothing, pointer_end},
};

const struct cost_group cost_variables = COST_GROUP(operations);
