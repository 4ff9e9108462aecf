/*
 * check_table.c - tables of 8 rows in chunks of 2 and nodes of 2 chunks: views see complete
 * updates, no update is lost, and a chunk that versions share is freed once, with the last of these
 * versions. A chunk that is freed too early shows as a use of freed memory, or as a race with its
 * free. A chunk that is never freed shows as a leak.
 */
#include <string.h>
#include <weir/reclaim.h>
#include <weir/flow/table.h>
#include <weir/time.h>

#include "model/scope.h"
#include "reclaim/collect.h"
#include "table/chunks.h"

enum { THREADS = 3, ROWS = 8, KINDS = 3 };

/*
 * The two rows to which each kind of update adds 1. They are in one chunk, in two chunks of one
 * node, or in two nodes.
 */
static const int64_t rows_of[KINDS][2] = {{0, 1}, {1, 2}, {3, 4}};

static struct scene {
	weir_table *table;
	weir_tensor *indices[KINDS], *one;
	const char *calls[THREADS]; /* LETTERS says what each does */
	weir_table_view held[THREADS];
	int before; /* the setup has made an update of each kind */
} scene;

static weir_tensor *tensor_of(const weir_shape *shape, const void *data)
{
	weir_tensor *tensor;

	weir_model_assert(weir_tensor_copy_of(WEIR_I64, shape, data, NULL, &tensor) == WEIR_OK);
	return tensor;
}

static void update(size_t kind)
{
	weir_model_assert(weir_table_scatter(scene.table, WEIR_SCATTER_ADD, scene.indices[kind], scene.one,
	                                     WEIR_NO_DEADLINE, NULL, NULL) == WEIR_OK);
}

static void setup(void *context)
{
	struct weir_table_options options = {WEIR_TABLE_OPTIONS_INIT, .dtype = WEIR_I64, .rows = ROWS};
	int64_t one = 1;

	(void)context;
	weir_model_assert(weir_table_create(NULL, &options, &scene.table, NULL) == WEIR_OK);
	for (size_t i = 0; i < KINDS; i++)
		scene.indices[i] = tensor_of(&(weir_shape){1, {2}}, rows_of[i]);
	scene.one = tensor_of(&(weir_shape){.rank = 0}, &one);
	for (size_t i = 0; scene.before && i < KINDS; i++)
		update(i);
}

static int64_t row(const weir_table_view *view, int64_t index)
{
	return *(const int64_t *)weir_table_view_row(view, index);
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
	LETTER('0', "add to two rows of one chunk", update(0)) \
	LETTER('1', "add to rows of two chunks of one node", update(1)) \
	LETTER('2', "add to rows of two nodes", update(2)) \
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
			updates += *call >= '0' && *call < '0' + KINDS;
	}
	weir_model_assert(weir_table_read(scene.table, &view) == WEIR_OK);
	weir_model_assert(view.version == updates + 1);
	look(&view);
	weir_table_destroy(scene.table, NULL);
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
} rows[] = {
	{"table_update_beside_a_read", {"0", "r"}, 0, 1},
	{"table_2_updates_of_one_chunk", {"0", "0"}, 0, 1},
	{"table_2_updates_of_one_node", {"0", "1"}, 1, 0},
	{"table_2_updates_that_share_a_node", {"1", "2"}, 0, 0},
	{"table_update_and_collection_beside_a_view", {"0f", "v"}, 1, 0},
	{"table_update_beside_a_view_that_ends_in_a_collection", {"0", "vf"}, 1, 0},
	{"table_2_updates_and_a_collection_beside_a_read", {"01f", "r"}, 0, 0},
	{"table_2_updates_beside_a_view_and_a_collection", {"0", "2", "vf"}, 0, 0},
};

static struct scope_plan prepare(size_t index)
{
	const struct row *of = &rows[index];

	scene = (struct scene){.before = of->before};
	memcpy(scene.calls, of->calls, sizeof(scene.calls));
	return (struct scope_plan){
		.program = {of->name, scope_threads(of->calls, THREADS), &scene, sizeof(scene), setup, thread, finish},
		.executions = 12000,
		.stopped = of->stops ? 60 : 0};
}

/* -- trees alone ------------------------------------------------------------------------------- */

/*
 * Each thread has a tree, reads a row in a chunk that all trees share, and ends its tree. In the
 * scopes above, collectors mostly order these steps. Here only the reference counts do.
 */
static struct trees {
	struct weiri_geometry *geometry;
	struct weiri_root *roots[THREADS];
	size_t count;
} trees;

static void setup_trees(void *context)
{
	struct weiri_rows of = {.what = "table", .name = "t", .dtype = WEIR_I64, .count = ROWS, .elements = 1, .bytes = 8};

	(void)context;
	trees.geometry = weiri_geometry_create(&of, weir_default_allocator());
	weir_model_assert(trees.geometry != NULL);
	trees.roots[0] = weiri_root_create(trees.geometry, NULL);
	for (size_t i = 1; i < trees.count; i++) {
		trees.roots[i] = weiri_root_branch(trees.roots[i - 1]);
		/*
		 * This row is in the first node, which is copied; its chunk of rows 2 and 3 stays shared.
		 * The second node itself is shared.
		 */
		*(int64_t *)(void *)weiri_root_row_to_write(trees.roots[i], trees.roots[i - 1], 0) = (int64_t)i;
	}
	weiri_geometry_release(trees.geometry);
}

static void end_tree(void *context, size_t me)
{
	(void)context;
	for (size_t i = 0; i < ROWS; i += 2)
		weir_model_assert(*(const int64_t *)(const void *)weiri_root_row(trees.roots[me], i) ==
		                  (i == 0 ? (int64_t)me : 0));
	weiri_root_destroy(trees.roots[me]);
}

static int check_trees(const char *name, size_t threads)
{
	struct weir_model_program program = {name, threads, &trees, sizeof(trees), setup_trees, end_tree, NULL};

	trees = (struct trees){.count = threads};
	return scope_as_far_as(&program, scope_long() ? 0 : 20000);
}

int main(int argc, char **argv)
{
	static const struct scope_letter letters[] = {LETTERS(LETTER_ROW){0, NULL}};

	scope_letters(argc, argv, letters);
	scope_arguments(argc, argv);
	return check_trees("table_2_trees_end", 2) | check_trees("table_3_trees_end", 3) |
	       scope_all(prepare, sizeof(rows) / sizeof(rows[0]));
}
