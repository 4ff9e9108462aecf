/*
 * check_table.c - tables of 8 rows in pages of 2, with nodes of 2 pointers: views see complete
 * updates, no update is lost, and a page that versions share is freed once, after the last of these
 * versions. A transaction changes the table and a variable at one instant. Each update sweeps. A page that is freed too early shows as a use of freed memory, or as
 * a race with its free. A page that is never freed shows as a leak.
 */
#include <string.h>
#include <weir/reclaim.h>
#include <weir/flow/table.h>
#include <weir/time.h>
#include <weir/value.h>

#include "model/scope.h"
#include "model/setup_end.h"
#include "reclaim/collect.h"
#include "base/memory.h"
#include "table/pages.h"

enum { THREADS = 3, ROWS = 8, KINDS = 3 };

/*
 * The two rows to which each kind of update adds 1. They are in one page, in two pages of one
 * node, or in two nodes.
 */
static const int64_t rows_of[KINDS][2] = {{0, 1}, {1, 2}, {3, 4}};

static struct scene {
	weir_table *table;
	weir_var *count; /* how many transactions there were */
	weir_tensor *indices[KINDS], *one;
	const char *calls[THREADS]; /* LETTERS says what each does */
	weir_table_view held[THREADS];
	int before;  /* the setup has made an update of each kind */
	bool counts; /* there is `count`, and only transactions make updates of kind 2 */
} scene;

static weir_tensor *tensor_of(const weir_shape *shape, const void *data)
{
	weir_tensor *tensor;

	weir_model_assert(weir_tensor_copy_of(WEIR_I64, shape, data, NULL, &tensor) == WEIR_OK);
	return tensor;
}

static int64_t row(const weir_table_view *view, int64_t index)
{
	return *(const int64_t *)weir_table_view_row(view, index);
}

static void update(size_t kind)
{
	weir_model_assert(weir_table_scatter(scene.table, WEIR_SCATTER_ADD, scene.indices[kind], scene.one,
	                                     WEIR_NO_DEADLINE, NULL, NULL) == WEIR_OK);
}

/* Tries a transaction with an update of kind 2. */
static enum weir_status try_transaction(void)
{
	weir_table_view view;
	weir_value value;
	weir_txn *txn;
	uint64_t count;
	enum weir_status status;

	weir_model_assert(weir_txn_begin(NULL, &txn, NULL) == WEIR_OK);
	status = weir_txn_read_value(txn, scene.count, &value, NULL);
	if (status == WEIR_OK) {
		count = *(const uint64_t *)value.data + 1;
		status = weir_table_txn_scatter(txn, scene.table, WEIR_SCATTER_ADD, scene.indices[2], scene.one, NULL);
	}
	if (status == WEIR_OK) {
		weir_model_assert(weir_table_txn_read(txn, scene.table, &view, NULL) == WEIR_OK);
		weir_model_assert((uint64_t)row(&view, 3) == count && row(&view, 4) == row(&view, 3));
		weir_model_assert(weir_txn_assign_value(txn, scene.count, WEIR_VALUE_OF(count), NULL) == WEIR_OK);
		return weir_txn_commit(txn, WEIR_NO_DEADLINE, NULL);
	}
	weir_txn_abort(txn);
	return status;
}

static void transaction(void)
{
	enum weir_status status;

	do
		status = try_transaction();
	while (status == WEIR_ABORTED);
	weir_model_assert(status == WEIR_OK);
}

static void look(weir_table_view *view);

/* The table and the count are of one instant. */
static void snapshot(void)
{
	weir_var *vars[2] = {weir_table_var(scene.table), scene.count};
	weir_read reads[2];
	weir_table_view view;

	weir_model_assert(weir_var_snapshot(vars, 2, reads, NULL) == WEIR_OK);
	weir_model_assert(weir_table_view_of(&reads[0], &view) == WEIR_OK);
	weir_model_assert((uint64_t)row(&view, 3) == *(const uint64_t *)reads[1].data);
	weir_read_release(&reads[1]);
	look(&view);
}

static void setup(void *context)
{
	struct weir_var_options counter = {WEIR_VAR_OPTIONS_INIT, .kind = WEIR_VAR_INLINE, .size = sizeof(uint64_t)};
	uint64_t none = 0;
	struct weir_table_options options = {WEIR_TABLE_OPTIONS_INIT, .dtype = WEIR_I64, .rows = ROWS};
	int64_t one = 1;

	(void)context;
	weiri_lineage_sweep_bytes = 0;
	weir_model_assert(weir_table_create(NULL, &options, &scene.table, NULL) == WEIR_OK);
	for (size_t i = 0; i < KINDS; i++)
		scene.indices[i] = tensor_of(&(weir_shape){1, {2}}, rows_of[i]);
	scene.one = tensor_of(&(weir_shape){.rank = 0}, &one);
	if (scene.counts)
		weir_model_assert(weir_var_create_value(WEIR_VALUE_OF(none), &counter, &scene.count, NULL) == WEIR_OK);
	for (size_t i = 0; scene.before && i < KINDS; i++)
		update(i);
	setup_ends();
}

/*
 * Each update adds to two rows. Whatever the order of the updates, the number of updates of one
 * kind is therefore the same in both rows of that kind. The version tells the number of all
 * updates.
 */
static void look(weir_table_view *view)
{
	int64_t first = row(view, 0), second = row(view, 2), third = row(view, 3);

	weir_model_assert(row(view, 1) == first + second);
	weir_model_assert(row(view, 4) == third);
	weir_model_assert(row(view, 5) == 0 && row(view, 6) == 0 && row(view, 7) == 0);
	weir_model_assert((uint64_t)(first + second + third) + 1 == view->version);
	weir_table_view_release(view);
}

static void read_and_look(void)
{
	weir_table_view view;

	weir_model_assert(weir_table_read(scene.table, &view) == WEIR_OK);
	look(&view);
}

#define LETTERS(LETTER) \
	LETTER('0', "add to two rows of one page", update(0)) \
	LETTER('1', "add to rows of two pages of one node", update(1)) \
	LETTER('2', "add to rows of two nodes", update(2)) \
	LETTER('t', "in one transaction, add to rows of two nodes, and to a variable", transaction()) \
	LETTER('s', "look at a snapshot of the table and the variable", snapshot()) \
	LETTER('r', "read, and look at all rows", read_and_look()) \
	LETTER('v', "read, and hold the view until `l` or until the end of the thread", \
	       weir_model_assert(weir_table_read(scene.table, &scene.held[me]) == WEIR_OK)) \
	LETTER('l', "look at all rows of the view that is held", look(&scene.held[me])) \
	LETTER('f', "free what was retired", (void)weir_reclaim_flush(0))

static void call(size_t me, char what)
{
	switch (what) {
		LETTERS(LETTER_CASE)
	default: weir_model_assert(!"a letter of the table");
	}
}

static void thread(void *context, size_t me)
{
	(void)context;
	scope_calls(me, scene.calls[me], call);
	if (scene.held[me].version != 0)
		look(&scene.held[me]);
}

static void finish(void *context)
{
	uint64_t updates = scene.before ? KINDS : 0;
	weir_table_view view;

	(void)context;
	for (size_t i = 0; i < THREADS; i++) {
		for (const char *call = scene.calls[i]; call != NULL && *call != '\0'; call++)
			updates += (*call >= '0' && *call < '0' + KINDS) || *call == 't';
	}
	weir_model_assert(weir_table_read(scene.table, &view) == WEIR_OK);
	weir_model_assert(view.version == updates + 1);
	look(&view);
	weir_table_destroy(scene.table, NULL);
	weir_model_assert(weir_var_destroy(scene.count, NULL) == WEIR_OK);
	for (size_t i = 0; i < KINDS; i++)
		weir_tensor_release(scene.indices[i]);
	weir_tensor_release(scene.one);
	weir_model_assert(weir_reclaim_flush(0) == WEIR_OK);
}

static const struct row {
	const char *name;
	const char *calls[THREADS];
	int before;
	int stops;
	bool counts;
} rows[] = {
	{"table_update_beside_a_read", {"0", "r"}, 0, 1, false},
	{"table_2_updates_of_one_page", {"0", "0"}, 0, 1, false},
	{"table_2_updates_of_one_node", {"0", "1"}, 1, 0, false},
	{"table_2_updates_that_share_a_node", {"1", "2"}, 0, 0, false},
	{"table_update_and_collection_beside_a_view", {"0f", "v"}, 1, 0, false},
	{"table_update_beside_a_view_that_ends_in_a_collection", {"0", "vf"}, 1, 0, false},
	{"table_2_updates_and_a_collection_beside_a_read", {"01f", "r"}, 0, 0, false},
	{"table_2_updates_beside_a_view_and_a_collection", {"0", "2", "vf"}, 0, 0, false},
	{"table_transaction_beside_a_snapshot", {"t", "s"}, 0, 1, true},
	{"table_transaction_beside_an_update", {"t", "0"}, 0, 1, true},
	{"table_2_transactions", {"t", "t"}, 0, 1, true},
	{"table_transaction_and_collection_beside_a_view", {"tf", "v"}, 0, 0, true},
};

static struct scope_plan prepare(size_t index)
{
	const struct row *of = &rows[index];

	scene = (struct scene){.before = of->before, .counts = of->counts};
	memcpy(scene.calls, of->calls, sizeof(scene.calls));
	return (struct scope_plan){
		.program = {of->name, scope_threads(of->calls, THREADS), &scene, sizeof(scene), setup, thread, finish},
		/* A transaction has many steps. */
		.executions = of->counts ? 3000 : 12000,
		.stopped = of->stops ? of->counts ? 15 : 60 : 0};
}

/* -- lineages alone ---------------------------------------------------------------------------- */

enum { GENERATIONS = 4, MOST_PARTS = 8 };

/*
 * Generations without a variable. Generation i + 1 replaced a part of each earlier one. Each thread
 * ends some generations, or sweeps. A part may be dead only when all generations that had it have
 * ended, and it is dead once. In the scopes above, collectors mostly order these steps.
 */
struct made {
	struct weiri_generation generation;
};

static struct lines {
	struct weiri_lineage lineage;
	struct made *made[GENERATIONS];
	const char *calls[THREADS];
	_Atomic(uint32_t) ended[GENERATIONS + 1]; /* by number */
	struct {
		uint64_t birth, death;
		_Atomic(uint32_t) dead;
	} parts[MOST_PARTS];
	size_t count;
	bool is_over; /* a thread has given the last reference */
} lines;

static void made_free(struct weiri_retired *object)
{
	weiri_release(weir_default_allocator(), WEIRI_CONTAINER_OF(object, struct made, generation.retired),
	              sizeof(struct made), _Alignof(struct made));
}

static void part_dead(void *context, void *memory)
{
	size_t part = (size_t)((char *)memory - (char *)&lines.parts[0]) / sizeof(lines.parts[0]);

	weir_model_assert(weiri_fetch_add_relaxed(&lines.parts[part].dead, 1u) == 0);
	for (uint64_t i = lines.parts[part].birth; context == NULL && i < lines.parts[part].death; i++)
		weir_model_assert(weiri_load_relaxed(&lines.ended[i]) != 0);
}

static void parts_dead(void *context, const struct weiri_part parts[], size_t count)
{
	for (size_t i = 0; i < count; i++)
		part_dead(context, parts[i].memory);
}

static void replace_part(struct weiri_generation *generation, uint64_t birth)
{
	lines.parts[lines.count].birth = birth;
	lines.parts[lines.count].death = generation->number;
	weir_model_assert(weiri_replaced_reserve(&generation->replaced, weir_default_allocator()));
	weiri_generation_lacks(generation, (struct weiri_part){&lines.parts[lines.count++], birth}, 1);
}

static void setup_lines(void *context)
{
	(void)context;
	weir_model_assert(weiri_lineage_init(&lines.lineage, weir_default_allocator()));
	for (size_t i = 0; i < GENERATIONS; i++) {
		struct made *made = weiri_allocate(weir_default_allocator(), sizeof(*made), _Alignof(struct made));

		weir_model_assert(made != NULL);
		lines.made[i] = made;
		weiri_generation_init(&made->generation, &lines.lineage, i > 0 ? &lines.made[i - 1]->generation : NULL,
		                      sizeof(*made), made_free);
		for (uint64_t birth = i > 0 ? i : 1; birth <= i; birth++)
			replace_part(&made->generation, birth);
		if (i > 1)
			replace_part(&made->generation, 1);
	}
}

/* Gives a reference of the lineage back. The last one ends it. */
static void give_one(void)
{
	if (!weiri_lineage_give(&lines.lineage))
		return;
	weiri_lineage_end(&lines.lineage, &lines.made[GENERATIONS - 1]->generation, parts_dead, &lines);
	lines.is_over = true;
}

static void end_one(size_t number)
{
	weiri_store_relaxed(&lines.ended[number], 1u); /* [relaxed] the end orders it */
	weiri_generation_end(&lines.made[number - 1]->generation);
	give_one();
}

static void lines_call(size_t me, char what)
{
	(void)me;
	if (what == 's')
		weiri_lineage_sweep(weiri_record_get(), &lines.lineage, &lines.made[GENERATIONS - 1]->generation, parts_dead,
		                    NULL);
	else if (what == 'o')
		weiri_lineage_sweep(weiri_record_get(), &lines.lineage, &lines.made[GENERATIONS - 2]->generation, parts_dead,
		                    NULL);
	else if (what == 'g')
		give_one();
	else
		end_one((size_t)(what - '0'));
}

static void lines_thread(void *context, size_t me)
{
	(void)context;
	scope_calls(me, lines.calls[me], lines_call);
}

/* Ends what is left, and the lineage. Each part must then be dead. */
static void finish_lines(void *context)
{
	(void)context;
	for (size_t i = 1; i <= GENERATIONS; i++) {
		if (weiri_load_relaxed(&lines.ended[i]) == 0)
			end_one(i);
	}
	if (!lines.is_over)
		give_one();
	weir_model_assert(lines.is_over);
	for (size_t i = 0; i < lines.count; i++)
		weir_model_assert(weiri_load_relaxed(&lines.parts[i].dead) == 1);
	weir_model_assert(weir_reclaim_flush(0) == WEIR_OK);
}

static const struct {
	const char *name;
	const char *calls[THREADS];
	int stops;
} line_rows[] = {
	{"lineage_sweep_beside_2_ends", {"s", "12"}, 1},
	{"lineage_2_sweeps", {"s", "s"}, 1},
	{"lineage_2_sweeps_after_an_end", {"2s", "1s"}, 0},
	{"lineage_sweep_of_an_older_version_beside_one", {"1o", "s"}, 0},
	{"lineage_holders_end_beside_sweeps", {"ss", "3s", "21"}, 0},
	{"lineage_2_threads_end_it", {"12g", "34"}, 0},
};

static struct scope_plan prepare_lines(size_t index)
{
	lines = (struct lines){.count = 0};
	memcpy(lines.calls, line_rows[index].calls, sizeof(lines.calls));
	return (struct scope_plan){.program = {line_rows[index].name, scope_threads(lines.calls, THREADS), &lines,
	                                       sizeof(lines), setup_lines, lines_thread, finish_lines},
	                           .executions = 12000,
	                           .stopped = line_rows[index].stops ? 60 : 0};
}

int main(int argc, char **argv)
{
	static const struct scope_letter letters[] = {LETTERS(LETTER_ROW){0, NULL}};

	scope_letters(argc, argv, letters);
	scope_arguments(argc, argv);
	return scope_all(prepare, sizeof(rows) / sizeof(rows[0])) |
	       scope_all(prepare_lines, sizeof(line_rows) / sizeof(line_rows[0]));
}
