/*
 * check_combine.c - updates that go together: each is in one version, once, and all agree which; beside whatever else changes the variable.
 *
 * Values have two elements, which is large here. A thread's updates add to a decimal place of its own, so that a value shows how
 * many of whose updates are in it; an assignment starts at 1000 anew. In the second element everything is doubled: a value that was
 * read before it was complete shows, besides as a race. What reads freed memory, or is never freed, the checker finds by itself; also what
 * a thread adds goes right after the call.
 */
#include <string.h>
#include <weir/scatter.h>

#include "model/variable_scopes.h"
#include "reclaim/collect.h"
#include "tensor/object.h"
#include "var/combine.h"
#include "var/spares.h"

enum { THREADS = 3, MOST_CALLS = 3, ASSIGNED = 1000 };

static struct scene {
	weir_var *x, *y;
	weir_tensor *indices, *assigned;
	/*
	 * a: add; s: subtract what was added; i: add to both rows; m: add, while there is no memory for values; w: assign; c: commit to x and y what w
	 * assigns; r: read; k: collect; e: an era begins
	 */
	const char *calls[THREADS];
	uint64_t versions[THREADS][MOST_CALLS]; /* of updates, in this order; 0: had no memory */
	int64_t signs[THREADS][MOST_CALLS];
	_Atomic(int) is_poor; /* there is no memory for values */
	size_t updates[THREADS];
	int before;           /* the setup has made an update: there is a round, of a version that was replaced */
	uint64_t spares;      /* weiri_spares_share; with 0, what is read after it was freed shows */
	uint64_t assigned_as; /* 0: not */
	uint32_t history;
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
	/* Its own is in, and its next one not yet. */
	if (how != 's')
		weir_model_assert(count_of(look_at(&published), me) >= 1);
	weir_model_assert(i == 0 || published.version > scene.versions[me][i - 1]);
	scene.versions[me][i] = published.version;
	weir_read_release(&published);
}

static void *allocate(void *context, size_t size, size_t alignment)
{
	(void)context;
	/* [relaxed] a call beside `m` may find nothing, too. */
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
	struct weir_var_options options = {
		.struct_size = sizeof(options), .dtype = WEIR_I64, .history = scene.history, .allocator = &memory};
	weir_tensor *zero = value(0);

	(void)context;
	weir_reclaim_set_budget(1 << 20);
	weiri_combine_from = 2 * sizeof(int64_t);
	weiri_spares_share = scene.spares;
	weir_model_assert(weir_var_create(&options, zero, &scene.x, NULL) == WEIR_OK);
	weir_model_assert(weir_var_create(&options, zero, &scene.y, NULL) == WEIR_OK);
	weir_tensor_release(zero);
	weir_model_assert(weir_tensor_copy_of(WEIR_I64, &(weir_shape){1, {2}}, (int64_t[]){0, 1}, NULL, &scene.indices) ==
	                  WEIR_OK);
	scene.assigned = value(ASSIGNED);
	if (scene.before)
		update(0, 'a');
}

static void commit(void)
{
	uint64_t versions[2];

	for (;;) {
		struct weir_commit_part parts[] = {{scene.x, weir_var_version(scene.x), scene.assigned},
		                                   {scene.y, weir_var_version(scene.y), scene.assigned}};
		enum weir_status status = weir_var_commit(parts, 2, WEIR_NO_DEADLINE, versions, NULL);

		weir_model_assert(status == WEIR_OK || status == WEIR_ABORTED);
		if (status == WEIR_OK)
			break;
	}
	scene.assigned_as = versions[0];
}

static void read_once(void)
{
	weir_read read;

	weir_model_assert(weir_var_read(scene.x, &read) == WEIR_OK);
	(void)look_at(&read);
	weir_read_release(&read);
}

static void call(size_t me, char what)
{
	switch (what) {
	case 'a':
	case 's':
	case 'i':
	case 'm': update(me, what); break;
	case 'w':
		weir_model_assert(weir_var_assign(scene.x, scene.assigned, WEIR_NO_DEADLINE, &scene.assigned_as, NULL) ==
		                  WEIR_OK);
		break;
	case 'c': commit(); break;
	case 'r': read_once(); break;
	case 'k': (void)weir_reclaim_flush(0); break;
	default: weiri_era_begin(); break;
	}
}

static void thread(void *context, size_t me)
{
	(void)context;
	scope_calls(me, scene.calls[me], call);
}

/* So many different versions were published by updates. */
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

/* What is there in the end is what was assigned last, and each update that was published after it, once. */
static void finish(void *context)
{
	int64_t expected = scene.assigned_as != 0 ? ASSIGNED : 0;
	weir_read read;

	(void)context;
	for (size_t i = 0; i < THREADS; i++) {
		for (size_t j = 0; j < scene.updates[i]; j++)
			expected += scene.versions[i][j] > scene.assigned_as ? scene.signs[i][j] * place_of(i) : 0;
	}
	weir_model_assert(weir_var_read(scene.x, &read) == WEIR_OK);
	weir_model_assert(look_at(&read) == expected);
	weir_model_assert(read.version == versions_published() + 1 + (scene.assigned_as != 0 ? 1 : 0));
	weir_read_release(&read);
	weir_var_destroy(scene.x);
	weir_var_destroy(scene.y);
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
} rows[] = {
	{"combine_2_updates", {"a", "a"}, 0, 0, 0},
	{"combine_2_updates_of_one_beside_1", {"as", "a"}, 0, 0, 0},
	{"combine_update_beside_assign", {"a", "w"}, 0, 0, 0},
	{"combine_update_beside_commit", {"a", "c"}, 0, 0, 0},
	{"combine_update_beside_read_and_collection", {"a", "rk"}, 0, 0, 0},
	{"combine_2_updates_and_collection", {"ak", "ak"}, 0, 0, 0},
	{"combine_2_updates_with_history", {"ak", "a"}, 1, 0, 0},
	{"combine_2_updates_beside_assign", {"a", "a", "w"}, 0, 0, 0},
	{"combine_2_updates_beside_commit", {"a", "a", "c"}, 0, 0, 0},
	{"combine_2_updates_beside_assign_and_collection", {"a", "a", "wk"}, 0, 0, 0},
	{"combine_2_updates_and_collection_beside_a_new_era", {"ak", "a", "e"}, 0, 0, 0},
	{"combine_2_updates_more_and_collection_beside_a_new_era", {"ak", "a", "e"}, 0, 1, 0},
	{"combine_2_updates_more_and_collection_beside_assign_and_a_new_era", {"ak", "a", "we"}, 0, 1, 0},
	{"combine_3_updates_and_collection", {"ak", "as", "a"}, 0, 0, 0},
	{"combine_2_updates_more_and_collections_with_spares", {"kak", "ak"}, 0, 1, 8},
	{"combine_rows_beside_update", {"i", "a"}, 0, 0, 0},
	{"combine_rows_and_update_beside_rows_and_collection", {"ia", "ik"}, 0, 0, 0},
	{"combine_update_without_memory_beside_update", {"m", "a"}, 0, 0, 0},
	{"combine_update_without_memory_and_collection_beside_2_updates", {"mk", "a", "a"}, 0, 0, 0},
};

static struct scope_plan prepare(size_t index)
{
	const struct row *of = &rows[index];

	scene = (struct scene){.history = of->history, .before = of->before, .spares = of->spares};
	memcpy(scene.calls, of->calls, sizeof(scene.calls));
	return (struct scope_plan){
		.program = {of->name, scope_threads(of->calls, THREADS), &scene, sizeof(scene), setup, thread, finish},
		.executions = 20000,
		.stopped = 50};
}

int main(int argc, char **argv)
{
	scope_arguments(argc, argv);
	return scope_all(prepare, sizeof(rows) / sizeof(rows[0]));
}
