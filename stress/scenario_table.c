/*
 * scenario_table.c - tables: updates move amounts between rows, so that the sum of all rows is 0 in
 * every version; and views that are held while other threads write and collect do not change. Freed
 * memory is poisoned.
 *
 * Each round uses a new table. Each mover repeatedly changes some rows by one scatter. Readers hold
 * a few views at a time, of one table or of a snapshot of both tables, and read their rows again
 * before they release them. After each round all memory must be free.
 */
#include "harness.h"

#include <inttypes.h>
#include <weir/reclaim.h>
#include <weir/flow/table.h>
#include <weir/time.h>

#include "poison.h"
#include "scenarios.h"

enum { TABLES = 2, MOST_ROWS = 30000, MOVES = 300, MOST_CHANGES = 8, HELD = 4, MOST_MOVERS = 6, READERS = 2 };

static const uint64_t patience_ns = 100000000000u;

static struct {
	weir_table *tables[TABLES];
	int64_t rows;
	_Atomic(uint32_t) moving;
} now;

static void open_tables(struct stress_thread *self)
{
	struct weir_table_options options = {WEIR_TABLE_OPTIONS_INIT, .dtype = WEIR_I64, .allocator = stress_poison()};

	/* From a part of a page to several levels of nodes. */
	now.rows = 2 + (int64_t)stress_below(self, stress_one_in(self, 2) ? 50 : MOST_ROWS);
	options.rows = now.rows;
	for (size_t i = 0; i < TABLES; i++)
		STRESS_CHECK(weir_table_create(NULL, &options, &now.tables[i], NULL) == WEIR_OK, "no table");
}

static weir_tensor *vector(const int64_t *values, int64_t count)
{
	weir_tensor *tensor;

	STRESS_CHECK(weir_tensor_copy_of(WEIR_I64, &(weir_shape){1, {count}}, values, stress_poison(), &tensor) == WEIR_OK,
	             "no memory");
	return tensor;
}

/* Adds an amount to a row and takes it from another, a few times in one update. */
static void move_once(struct stress_thread *self)
{
	int64_t rows[2 * MOST_CHANGES], amounts[2 * MOST_CHANGES], changes = 1 + (int64_t)stress_below(self, MOST_CHANGES);
	weir_tensor *indices, *updates;

	for (int64_t i = 0; i < changes; i++) {
		rows[2 * i] = (int64_t)stress_below(self, (uint64_t)now.rows);
		rows[2 * i + 1] = (int64_t)stress_below(self, (uint64_t)now.rows);
		amounts[2 * i] = (int64_t)stress_below(self, 1000);
		amounts[2 * i + 1] = -amounts[2 * i];
	}
	indices = vector(rows, 2 * changes);
	updates = vector(amounts, 2 * changes);
	STRESS_CHECK(weir_table_scatter(now.tables[stress_below(self, TABLES)], WEIR_SCATTER_ADD, indices, updates,
	                                weir_deadline_in(patience_ns), NULL, NULL) == WEIR_OK,
	             "scatter");
	weir_tensor_release(indices);
	weir_tensor_release(updates);
}

static void mover(struct stress_thread *self, void *context)
{
	(void)context;
	for (uint64_t i = 0; i < stress_scaled(MOVES); i++) {
		stress_begin(self, "scatter");
		move_once(self);
		stress_end(self, 1);
	}
	(void)weiri_fetch_sub_release(&now.moving, 1u); /* pairs with reader() */
}

static uint64_t digest(const weir_table_view *view)
{
	uint64_t digest = 0;
	int64_t sum = 0;

	for (int64_t i = 0; i < now.rows; i++) {
		int64_t row = *(const int64_t *)weir_table_view_row(view, i);

		sum += row;
		digest = stress_mix(digest ^ (uint64_t)row);
	}
	STRESS_CHECK(sum == 0, "version %" PRIu64 " contains only a part of an update: the sum is %" PRIi64, view->version,
	             sum);
	return digest;
}

struct held {
	weir_table_view views[TABLES];
	uint64_t digests[TABLES];
};

static void take(struct stress_thread *self, struct held *held)
{
	if (stress_one_in(self, 2)) {
		STRESS_CHECK(weir_table_snapshot(now.tables, TABLES, held->views, NULL) == WEIR_OK, "snapshot");
	} else {
		for (size_t i = 0; i < TABLES; i++)
			STRESS_CHECK(weir_table_read(now.tables[i], &held->views[i]) == WEIR_OK, "read");
	}
	for (size_t i = 0; i < TABLES; i++)
		held->digests[i] = digest(&held->views[i]);
}

static void let_go(struct held *held)
{
	for (size_t i = 0; i < TABLES; i++) {
		if (held->views[i].version == 0)
			continue;
		STRESS_CHECK(digest(&held->views[i]) == held->digests[i], "version %" PRIu64 " changed while it was held",
		             held->views[i].version);
		weir_table_view_release(&held->views[i]);
	}
}

static void reader(struct stress_thread *self, void *context)
{
	struct held held[HELD] = {0};

	(void)context;
	while (weiri_load_acquire(&now.moving) != 0) { /* pairs with mover() */
		struct held *one = &held[stress_below(self, HELD)];

		stress_begin(self, "view");
		let_go(one);
		take(self, one);
		stress_end(self, 1);
	}
	for (size_t i = 0; i < HELD; i++)
		let_go(&held[i]);
}

static void play(struct stress_thread *self)
{
	unsigned movers = 1 + (unsigned)stress_below(self, stress_threads(READERS + MOST_MOVERS) - READERS);
	uint64_t versions = 0;

	weiri_store_relaxed(&now.moving, movers); /* [relaxed] before the threads */
	for (unsigned i = 0; i < READERS; i++)
		(void)stress_start("reader", reader, NULL);
	for (unsigned i = 0; i < movers; i++)
		(void)stress_start("mover", mover, NULL);
	stress_join();
	for (size_t i = 0; i < TABLES; i++)
		versions += weir_table_version(now.tables[i]) - 1;
	STRESS_CHECK(versions == movers * stress_scaled(MOVES), "there are %" PRIu64 " versions after %" PRIu64 " updates",
	             versions, movers * stress_scaled(MOVES));
}

void scenario_table(void)
{
	struct stress_thread *self = stress_self();
	uint64_t rounds = 0;

	stress_disturb();
	for (; rounds == 0 || stress_goes_on(); rounds++) {
		open_tables(self);
		play(self);
		for (size_t i = 0; i < TABLES; i++)
			weir_table_destroy(now.tables[i], NULL);
		STRESS_CHECK(weir_reclaim_flush(weir_deadline_in(patience_ns)) == WEIR_OK,
		             "the flush failed: memory is still held");
		stress_poison_check_empty();
	}
	stress_note("rounds", rounds);
}
