/*
 * check_named_store.c - objects by name: a name belongs to one object at a time, each object is
 * destroyed once and not before its last reference is released, and no object is lost when its
 * neighbours are added and removed.
 *
 * A scope gives each thread a row of calls, two letters each: the call, which LETTERS explains, and
 * the name.
 *
 * The names' hashes end in ..00 (a, c), ..10 (b) and ..11 (d, e). Under the checker a table grows
 * if there are more names than buckets. The names of "adb" were therefore inserted before bucket 3
 * had its mark. The first call for such a name makes the mark, also a find.
 *
 * Required of every execution: a find or walk gives objects that are complete; every find and walk
 * finds the names that stay; the number of objects at the end is the number of objects that were
 * added or created, less the number that were removed; each object is destroyed once.
 */
#include <weir/reclaim.h>
#include <weir/store.h>

#include "base/atomic.h"
#include "model/scope.h"
#include "model/setup_end.h"
#include "reclaim/section.h"

enum { THREADS = 3, CALLS = 4, NAMES = 5, MOST = 16 };

struct object {
	int name, whole; /* plain, so that a missing order shows as a race */
};

static const struct scope {
	const char *name;
	const char *inside; /* names that are in the store */
	const char *calls[THREADS];
	const char *stay; /* names that no thread removes */
} scopes[] = {
	{"named_store_2_create_or_get_of_1_name", "", {"ga", "ga"}, ""},
	{"named_store_2_adds_of_1_name", "", {"aa", "aa"}, ""},
	{"named_store_2_removals_of_1_name", "a", {"ra", "ra"}, ""},
	{"named_store_find_beside_removal", "a", {"fa", "ra"}, ""},
	{"named_store_create_or_get_beside_removal", "a", {"ga", "ra"}, ""},
	{"named_store_create_and_remove_beside_create_or_get", "", {"gara", "ga"}, ""},
	{"named_store_removals_of_neighbours", "ab", {"ra", "rb"}, ""},
	{"named_store_add_beside_removal_of_a_neighbour", "a", {"ab", "ra"}, ""},
	{"named_store_add_beside_removal_of_the_other_neighbour", "b", {"aa", "rb"}, ""},
	{"named_store_removals_around_one_that_stays", "abc", {"ra", "rc", "fb"}, "b"},
	{"named_store_walk_beside_removal", "ab", {"wa", "ra"}, "b"},
	{"named_store_walk_beside_removal_and_add", "a", {"wa", "ra", "ab"}, ""},
	{"named_store_adds_that_grow_the_table_beside_find", "a", {"ab", "ac", "fa"}, "a"},
	{"named_store_2_adds_that_grow_the_table", "ab", {"ac", "ad"}, "ab"},
	{"named_store_find_beside_removal_and_collection", "ab", {"fb", "rana"}, "b"},
	{"named_store_walk_beside_removals_and_collection", "abc", {"wa", "rbrcna"}, "a"},
	{"named_store_2_adds_that_make_the_same_mark", "abc", {"ad", "ae"}, ""},
	{"named_store_find_from_a_mark_that_is_made", "adb", {"ae", "fd"}, "d"},
	{"named_store_2_finds_that_make_the_same_mark", "adb", {"fd", "fd"}, "d"},
	{"named_store_find_that_makes_a_mark_beside_removal", "adb", {"fd", "rb"}, "d"},
	{"named_store_find_that_makes_a_mark_beside_walk", "adb", {"fd", "wa"}, "abd"},
	{"named_store_find_in_a_table_that_grows_and_gets_a_mark", "ad", {"abae", "fd"}, "d"},
	{"named_store_walk_past_a_mark_that_is_made", "adb", {"ae", "wa"}, "abd"},
	{"named_store_reference_beside_2_removals", "a", {"ha", "ra", "ra"}, ""},
	{"named_store_find_beside_add_and_removals_and_collection", "a", {"fc", "naabraacrbna"}, ""},
};

static struct scene {
	const struct scope *scope;
	weir_store *store;
	struct object objects[MOST];
	int made[THREADS + 1]; /* of the thread's own objects */
	int in[THREADS + 1], out[THREADS + 1];
	weir_resource *held[THREADS];
	_Atomic(int) destroyed;
} scene;

static void destroy(void *context)
{
	struct object *object = context;

	weir_model_assert(object->whole == 1);
	object->whole = 0;
	weiri_fetch_add_relaxed(&scene.destroyed, 1);
}

static const struct weir_resource_type type = {"object", destroy};
static const char *const names[NAMES] = {"d", "t", "k", "g", "c"};

struct caller {
	size_t me;
	int name;
	struct object *made;
};

static struct object *new_object(struct caller *caller)
{
	struct object *object = &scene.objects[(int)caller->me * CALLS + scene.made[caller->me]++];

	*object = (struct object){caller->name, 1};
	return object;
}

static enum weir_status create(void *context, void **object, weir_error *error)
{
	struct caller *caller = context;

	(void)error;
	*object = caller->made = new_object(caller);
	return WEIR_OK;
}

static void look_at(const weir_resource *resource, int name)
{
	const struct object *object = weir_resource_object(resource);

	weir_model_assert(object->whole == 1 && object->name == name && weir_resource_name(resource)[0] == names[name][0]);
}

static int stays(int name)
{
	for (const char *stay = scene.scope->stay; *stay != '\0'; stay++) {
		if (*stay == 'a' + name)
			return 1;
	}
	return 0;
}

static void add(struct caller *caller)
{
	struct object *object = new_object(caller);
	enum weir_status status = weir_store_add(scene.store, NULL, names[caller->name], &type, object, NULL, NULL);

	weir_model_assert(status == WEIR_OK || status == WEIR_ALREADY_EXISTS);
	scene.in[caller->me] += status == WEIR_OK;
	if (status != WEIR_OK)
		destroy(object);
}

static void create_or_get(struct caller *caller)
{
	struct weir_store_maker maker = {create, NULL, caller};
	weir_resource *resource;

	weir_model_assert(
		weir_store_find_or_create(scene.store, NULL, names[caller->name], &type, &maker, &resource, NULL) == WEIR_OK);
	look_at(resource, caller->name);
	scene.in[caller->me] += weir_resource_object(resource) == caller->made;
	weir_resource_release(resource);
}

static void find(const struct caller *caller, weir_resource **held)
{
	weir_resource *resource;

	if (weir_store_find(scene.store, NULL, names[caller->name], &type, &resource, NULL) == WEIR_OK) {
		look_at(resource, caller->name);
		if (held != NULL)
			*held = resource;
		else
			weir_resource_release(resource);
	} else {
		weir_model_assert(!stays(caller->name));
	}
}

static void walk(void)
{
	weir_resource *at = NULL, *next;
	int met[NAMES] = {0};

	for (; weir_store_next(scene.store, at, &next) == WEIR_OK; at = next) {
		int name = ((const struct object *)weir_resource_object(next))->name;

		look_at(next, name);
		weir_resource_release(at);
		met[name]++;
	}
	weir_resource_release(at);
	for (int name = 0; name < NAMES; name++)
		weir_model_assert(met[name] <= 1 && (met[name] == 1 || !stays(name)));
}

static void remove_it(const struct caller *caller)
{
	scene.out[caller->me] += weir_store_remove(scene.store, NULL, names[caller->name], NULL) == WEIR_OK;
}

static void new_era_and_collection(void)
{
	(void)weiri_fetch_add_seq_cst(&weiri_era, 1);
	(void)weir_reclaim_flush(0);
}

#define LETTERS(LETTER) \
	LETTER('a', "add", add(caller)) \
	LETTER('g', "create or get", create_or_get(caller)) \
	LETTER('f', "find", find(caller, NULL)) \
	LETTER('h', "find, and hold it to the end", find(caller, &scene.held[caller->me])) \
	LETTER('r', "remove", remove_it(caller)) \
	LETTER('w', "walk over all", walk()) \
	LETTER('n', "a new era begins, and what is retired is collected", new_era_and_collection())

static void call(struct caller *caller, char what)
{
	switch (what) {
		LETTERS(LETTER_CASE)
	default: weir_model_assert(!"a letter of the table");
	}
}

static void thread(void *context, size_t me)
{
	weir_resource *held;

	(void)context;
	for (const char *calls = scene.scope->calls[me]; *calls != '\0'; calls += 2) {
		struct caller caller = {me, calls[1] - 'a', NULL};

		call(&caller, calls[0]);
	}
	held = scene.held[me];
	if (held != NULL)
		look_at(held, ((const struct object *)weir_resource_object(held))->name);
	weir_resource_release(held);
}

static void setup(void *context)
{
	(void)context;
	weir_model_assert(weir_store_create(NULL, &scene.store, NULL) == WEIR_OK);
	for (const char *name = scene.scope->inside; *name != '\0'; name++)
		add(&(struct caller){THREADS, *name - 'a', NULL});
	setup_ends();
}

static void finish(void *context)
{
	int in = 0, out = 0, made = 0, there = 0;
	weir_resource *resource;

	(void)context;
	for (size_t i = 0; i <= THREADS; i++) {
		in += scene.in[i];
		out += scene.out[i];
		made += scene.made[i];
	}
	for (int name = 0; name < NAMES; name++) {
		if (weir_store_find(scene.store, NULL, names[name], &type, &resource, NULL) != WEIR_OK)
			continue;
		there++;
		weir_resource_release(resource);
	}
	weir_model_assert(in - out == there && weir_store_size_approx(scene.store) == (size_t)there);
	weir_model_assert(weiri_load_relaxed(&scene.destroyed) == made - there);
	weir_store_destroy(scene.store, NULL);
	weir_model_assert(weiri_load_relaxed(&scene.destroyed) == made);
	weir_model_assert(weir_reclaim_flush(0) == WEIR_OK);
}

static struct scope_plan prepare(size_t index)
{
	const struct scope *scope = &scopes[index];

	scene = (struct scene){.scope = scope};
	return (struct scope_plan){
		.program = {scope->name, scope_threads(scope->calls, THREADS), &scene, sizeof(scene), setup, thread, finish},
		.executions = 20000,
		.stopped = 100};
}

int main(int argc, char **argv)
{
	static const struct scope_letter letters[] = {LETTERS(LETTER_ROW){0, NULL}};

	scope_letters(argc, argv, letters);
	scope_arguments(argc, argv);
	return scope_all(prepare, sizeof(scopes) / sizeof(scopes[0]));
}
