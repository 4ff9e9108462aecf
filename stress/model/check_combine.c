/*
 * check_combine.c - combined updates: each update takes effect once, in one version, and all
 * threads agree which version that is. This holds whatever other changes of the variable come in
 * between.
 *
 * Values have two elements, which setup() declares large enough for combining. Each thread's
 * updates add to a decimal place of that thread, so that a value shows how many updates of each
 * thread it contains. An assignment restarts at 1000. The second element is always twice the first.
 * So a read of an incomplete value would fail this test, or show as a race. The checker itself
 * finds reads of freed memory and leaks. A thread releases the operand of an update right after the
 * call.
 */
#include <limits.h>
#include <string.h>
#include <weir/scatter.h>

#include "base/futex.h"
#include "model/variable_scopes.h"
#include "reclaim/collect.h"
#include "tensor/object.h"
#include "var/combine.h"
#include "var/give_way.h"
#include "var/spares.h"

enum { THREADS = 3, MOST_CALLS = 3, ASSIGNED = 1000 };

static struct scene {
	weir_var *x, *y;
	weir_tensor *indices, *assigned;
	const char *calls[THREADS]; /* LETTERS says what each does */
	/* the versions of updates, in the order of calls; 0: there was no memory */
	uint64_t versions[THREADS][MOST_CALLS];
	int64_t signs[THREADS][MOST_CALLS];
	_Atomic(int) is_poor; /* there is no memory for values */
	size_t updates[THREADS];
	/* 1: the setup has made an update, so there is a round of a replaced version */
	int before;
	uint64_t spares;      /* weiri_spares_share; with 0, a read of freed memory is detected */
	uint64_t assigned_as; /* the version of the assignment; 0: there was none */
	uint32_t history;
	int endless; /* deadlines never pass: waiters must be woken */
	int asks;    /* updates ask other writes to give way before they were overtaken */
	_Atomic(uint32_t) never_woken[THREADS];
} scene;

static int64_t place_of(size_t thread)
{
	static const int64_t places[THREADS] = {1, 10, 100};

	return places[thread];
}

static weir_tensor *value(int64_t first)
{
	const int64_t values[2] = {first, 2 * first};
	weir_tensor *tensor;

	weir_model_assert(weir_tensor_copy_of(WEIR_I64, &(weir_shape){1, {2}}, values, NULL, &tensor) == WEIR_OK);
	return tensor;
}

static int64_t look_at(const weir_read *read)
{
	const int64_t *values = weir_tensor_data(read->tensor);

	weir_model_assert(values[1] == 2 * values[0]);
	return values[0];
}

static int64_t count_of(int64_t all, size_t thread)
{
	return all / place_of(thread) % 10;
}

static enum weir_status change(char how, weir_tensor *delta, weir_read *published)
{
	enum weir_status status;

	switch (how) {
	case 's': return weir_var_assign_sub(scene.x, delta, WEIR_NO_DEADLINE, published, NULL);
	case 'i':
		return weir_var_scatter(scene.x, WEIR_SCATTER_ADD, scene.indices, delta, WEIR_NO_DEADLINE, published, NULL);
	case 'm':
		weiri_store_relaxed(&scene.is_poor, 1); /* [relaxed] see allocate() */
		status = weir_var_assign_add(scene.x, delta, WEIR_NO_DEADLINE, published, NULL);
		weiri_store_relaxed(&scene.is_poor, 0);
		return status;
	default: return weir_var_assign_add(scene.x, delta, WEIR_NO_DEADLINE, published, NULL);
	}
}

static void update(size_t me, char how)
{
	size_t i = scene.updates[me]++;
	weir_tensor *delta = value(place_of(me));
	weir_read published;
	enum weir_status status = change(how, delta, &published);

	weir_tensor_release(delta);
	scene.signs[me][i] = how == 's' ? -1 : 1;
	if (status != WEIR_OK) {
		weir_model_assert(status == WEIR_RESOURCE_EXHAUSTED);
		return;
	}
	/* The thread's own update is in the value, and its next one is not. */
	if (how != 's')
		weir_model_assert(count_of(look_at(&published), me) >= 1);
	weir_model_assert(i == 0 || published.version > scene.versions[me][i - 1]);
	scene.versions[me][i] = published.version;
	weir_read_release(&published);
}

static void *allocate(void *context, size_t size, size_t alignment)
{
	(void)context;
	/* [relaxed] a call that another thread makes during `m` may find no memory, too. */
	if (size == sizeof(struct weir_tensor) + 2 * sizeof(int64_t) && weiri_load_relaxed(&scene.is_poor))
		return NULL;
	return weir_model_allocate(size, alignment);
}

static void release(void *context, void *memory, size_t size, size_t alignment)
{
	(void)context, (void)size, (void)alignment;
	weir_model_release(memory);
}

static void setup(void *context)
{
	static const weir_allocator memory = {allocate, release, NULL};
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I64, .history = scene.history,
	                                   .allocator = &memory};
	weir_tensor *zero = value(0);

	(void)context;
	weir_reclaim_set_budget(1 << 20);
	weiri_combine_from = 2 * sizeof(int64_t);
	weiri_way_patience = scene.asks ? 0 : UINT_MAX;
	weiri_spares_share = scene.spares;
	weir_model_assert(weir_var_create(zero, &options, &scene.x, NULL) == WEIR_OK);
	weir_model_assert(weir_var_create(zero, &options, &scene.y, NULL) == WEIR_OK);
	weir_tensor_release(zero);
	weir_model_assert(weir_tensor_copy_of(WEIR_I64, &(weir_shape){1, {2}}, (int64_t[]){0, 1}, NULL, &scene.indices) ==
	                  WEIR_OK);
	scene.assigned = value(ASSIGNED);
	if (scene.before)
		update(0, 'a');
	setup_ends();
}

static void commit(void)
{
	weir_read published[2];

	for (;;) {
		struct weir_commit_part parts[] = {{scene.x, weir_var_version(scene.x), scene.assigned},
		                                   {scene.y, weir_var_version(scene.y), scene.assigned}};
		enum weir_status status = weir_var_commit(parts, 2, WEIR_NO_DEADLINE, published, NULL);

		weir_model_assert(status == WEIR_OK || status == WEIR_ABORTED);
		if (status == WEIR_OK)
			break;
	}
	scene.assigned_as = published[0].version;
	weir_read_release_many(published, 2);
}

static void assign(void)
{
	weir_read published;

	weir_model_assert(weir_var_assign(scene.x, scene.assigned, WEIR_NO_DEADLINE, &published, NULL) == WEIR_OK);
	scene.assigned_as = published.version;
	weir_read_release(&published);
}

static void read_once(void)
{
	weir_read read;

	weir_model_assert(weir_var_read(scene.x, &read) == WEIR_OK);
	(void)look_at(&read);
	weir_read_release(&read);
}

#define LETTERS(LETTER) \
	LETTER('a', "add", update(me, 'a')) \
	LETTER('s', "subtract what was added", update(me, 's')) \
	LETTER('i', "add to both rows", update(me, 'i')) \
	LETTER('m', "add, while there is no memory for values", update(me, 'm')) \
	LETTER('w', "assign 1000", assign()) \
	LETTER('c', "commit 1000 to x and y", commit()) \
	LETTER('r', "read", read_once()) \
	LETTER('f', "free what was retired", (void)weir_reclaim_flush(0)) \
	LETTER('n', "a new era begins", weiri_era_begin())

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
	if (scene.endless) /* Advances the clock almost to its end: later deadlines become WEIR_NO_DEADLINE. */
		(void)weiri_futex_wait(&scene.never_woken[me], 0, WEIR_NO_DEADLINE - 1);
	scope_calls(me, scene.calls[me], call);
}

/* The number of different versions that updates published. */
static uint64_t versions_published(void)
{
	uint64_t seen = 0, count = 0;

	for (size_t i = 0; i < THREADS; i++) {
		for (size_t j = 0; j < scene.updates[i]; j++) {
			weir_model_assert(scene.versions[i][j] < 64);
			weir_model_assert(scene.versions[i][j] == 0 || scene.versions[i][j] != scene.assigned_as);
			seen |= UINT64_C(1) << scene.versions[i][j];
		}
	}
	for (seen &= ~UINT64_C(1); seen != 0; seen &= seen - 1)
		count++;
	return count;
}

/* Each version that updates published is a copy that was not wasted. */
static void check_copies(void)
{
	struct weir_reclaim_stats stats = {WEIR_RECLAIM_STATS_INIT};

	weir_model_assert(weir_reclaim_get_stats(&stats) == WEIR_OK);
	weir_model_assert(stats.copies >= stats.copies_wasted + versions_published());
}

/*
 * The final value is the assigned one (0 if none was), plus each update that was published after
 * the assignment, once.
 */
static void finish(void *context)
{
	int64_t expected = scene.assigned_as != 0 ? ASSIGNED : 0;
	weir_read read;

	(void)context;
	check_copies();
	for (size_t i = 0; i < THREADS; i++) {
		for (size_t j = 0; j < scene.updates[i]; j++)
			expected += scene.versions[i][j] > scene.assigned_as ? scene.signs[i][j] * place_of(i) : 0;
	}
	weir_model_assert(weir_var_read(scene.x, &read) == WEIR_OK);
	weir_model_assert(look_at(&read) == expected);
	weir_model_assert(read.version == versions_published() + 1 + (scene.assigned_as != 0 ? 1 : 0));
	weir_read_release(&read);
	weir_model_assert(weiri_load_relaxed(&scene.x->way.asked) == 0); /* [relaxed] the threads have ended */
	weir_var_destroy(scene.x, NULL);
	weir_var_destroy(scene.y, NULL);
	weir_tensor_release(scene.indices);
	weir_tensor_release(scene.assigned);
	weir_model_assert(weir_reclaim_flush(0) == WEIR_OK);
}

static const struct row {
	const char *name;
	const char *calls[THREADS];
	uint32_t history;
	int before;
	uint64_t spares;
	int endless, asks;
} rows[] = {
	{"combine_2_updates", {"a", "a"}, 0, 0, 0, 0, 0},
	{"combine_2_updates_without_deadlines", {"a", "a"}, 0, 0, 0, 1, 0},
	{"combine_3_updates_without_deadlines", {"a", "a", "a"}, 0, 0, 0, 1, 0},
	{"combine_2_updates_beside_assign_without_deadlines", {"a", "a", "w"}, 0, 0, 0, 1, 0},
	{"combine_2_updates_of_one_beside_1", {"as", "a"}, 0, 0, 0, 0, 0},
	{"combine_update_beside_assign", {"a", "w"}, 0, 0, 0, 0, 0},
	{"combine_update_beside_commit", {"a", "c"}, 0, 0, 0, 0, 0},
	{"combine_update_beside_read_and_collection", {"a", "rf"}, 0, 0, 0, 0, 0},
	{"combine_2_updates_and_collection", {"af", "af"}, 0, 0, 0, 0, 0},
	{"combine_2_updates_with_history", {"af", "a"}, 1, 0, 0, 0, 0},
	{"combine_2_updates_beside_assign", {"a", "a", "w"}, 0, 0, 0, 0, 0},
	{"combine_2_updates_beside_commit", {"a", "a", "c"}, 0, 0, 0, 0, 0},
	{"combine_2_updates_beside_assign_and_collection", {"a", "a", "wf"}, 0, 0, 0, 0, 0},
	{"combine_2_updates_and_collection_beside_a_new_era", {"af", "a", "n"}, 0, 0, 0, 0, 0},
	{"combine_2_updates_more_and_collection_beside_a_new_era", {"af", "a", "n"}, 0, 1, 0, 0, 0},
	{"combine_2_updates_more_and_collection_beside_assign_and_a_new_era", {"af", "a", "wn"}, 0, 1, 0, 0, 0},
	{"combine_3_updates_and_collection", {"af", "as", "a"}, 0, 0, 0, 0, 0},
	{"combine_2_updates_more_and_collections_with_spares", {"faf", "af"}, 0, 1, 8, 0, 0},
	{"combine_rows_beside_update", {"i", "a"}, 0, 0, 0, 0, 0},
	{"combine_rows_and_update_beside_rows_and_collection", {"ia", "if"}, 0, 0, 0, 0, 0},
	{"combine_update_without_memory_beside_update", {"m", "a"}, 0, 0, 0, 0, 0},
	{"combine_update_without_memory_and_collection_beside_2_updates", {"mf", "a", "a"}, 0, 0, 0, 0, 0},
	{"combine_assign_gives_way_to_update", {"a", "w"}, 0, 0, 0, 0, 1},
	{"combine_assign_gives_way_to_update_without_deadlines", {"a", "w"}, 0, 0, 0, 1, 1},
	{"combine_assign_gives_way_to_2_updates_without_deadlines", {"a", "a", "w"}, 0, 0, 0, 1, 1},
	{"combine_commit_gives_way_to_update_without_deadlines", {"a", "c"}, 0, 0, 0, 1, 1},
	{"combine_assign_gives_way_to_update_without_memory_without_deadlines", {"m", "w"}, 0, 0, 0, 1, 1},
};

static struct scope_plan prepare(size_t index)
{
	const struct row *of = &rows[index];

	scene = (struct scene){
		.history = of->history, .before = of->before, .spares = of->spares, .endless = of->endless, .asks = of->asks};
	memcpy(scene.calls, of->calls, sizeof(scene.calls));
	return (struct scope_plan){
		.program = {of->name, scope_threads(of->calls, THREADS), &scene, sizeof(scene), setup, thread, finish},
		.executions = 5000,
		/* A thread that waits without a deadline for a stopped thread waits for ever. */
		.stopped = of->endless ? 0 : 25};
}

int main(int argc, char **argv)
{
	static const struct scope_letter letters[] = {LETTERS(LETTER_ROW){0, NULL}};

	scope_letters(argc, argv, letters);
	scope_arguments(argc, argv);
	return scope_all(prepare, sizeof(rows) / sizeof(rows[0]));
}
