/*
 * check_map_staging.c - map staging areas.
 *
 * A tuple has two components. A scope gives each thread a row of calls, a letter each, for keys 1
 * and 2; LETTERS says what each letter does.
 *
 * Required of every execution: each component that was put is taken once, with its key, or is
 * cleared, or is left; no call gets a component of an incomplete key; no look counts a key as both
 * complete and incomplete; in every look bytes and numbers agree and are within the bounds; waiters
 * wake; a started operation completes once; no tensor leaks or is freed early.
 */
#include <weir/flow/map_staging.h>
#include <weir/reclaim.h>

#include "base/atomic.h"
#include "model/scope.h"
#include "reclaim/section.h"

enum { THREADS = 3, ROWS = THREADS + 1, KEYS = 2, COMPONENTS = 2 };

static const struct scope {
	const char *name;
	size_t capacity;
	const char *before; /* calls that are done at the start */
	const char *calls[THREADS];
	uint64_t executions; /* in the short form */
	int waits;           /* a thread may be left asleep when another is stopped */
} scopes[] = {
	{"map_staging_put_beside_get", 0, "", {"p", "g"}, 5000, 0},
	{"map_staging_2_gets_of_one_key", 0, "p", {"g", "g"}, 5000, 0},
	{"map_staging_get_beside_get_any", 0, "pq", {"g", "a"}, 5000, 0},
	{"map_staging_2_puts_of_one_key", 0, "", {"p", "p"}, 5000, 0},
	{"map_staging_2_puts_of_one_part", 0, "", {"1", "1"}, 5000, 0},
	{"map_staging_2_puts_n1", 1, "", {"p", "q"}, 5000, 0},
	{"map_staging_parts_put_beside_get", 0, "", {"1", "2", "g"}, 5000, 0},
	{"map_staging_parts_put_beside_each_other", 0, "", {"1", "2"}, 5000, 0},
	{"map_staging_parts_taken_beside_each_other", 0, "p", {"x", "y"}, 5000, 0},
	{"map_staging_part_taken_beside_get", 0, "p", {"x", "g"}, 5000, 0},
	{"map_staging_peek_beside_get", 0, "p", {"v", "g"}, 5000, 0},
	{"map_staging_peek_beside_parts_taken_and_collection", 0, "p", {"v", "xyn"}, 5000, 0},
	{"map_staging_clear_beside_get", 0, "pq", {"c", "g"}, 5000, 0},
	{"map_staging_clear_beside_put_that_completes", 0, "1", {"c", "2"}, 5000, 0},
	{"map_staging_clear_beside_peek", 0, "p", {"c", "v"}, 5000, 0},
	{"map_staging_look_beside_parts", 0, "1", {"l", "2g"}, 5000, 0},
	{"map_staging_get_waits_beside_parts", 0, "", {"G", "1", "2"}, 3000, 1},
	{"map_staging_get_any_waits_beside_put", 0, "", {"A", "p"}, 3000, 1},
	{"map_staging_peek_waits_beside_put", 0, "", {"V", "p"}, 3000, 1},
	{"map_staging_put_waits_beside_get_n1", 1, "p", {"Q", "g"}, 3000, 1},
	{"map_staging_put_waits_beside_clear_n1", 1, "p", {"Q", "c"}, 3000, 1},
	{"map_staging_started_get_beside_put_and_cancel", 0, "", {"sk", "p"}, 3000, 0},
};

static struct scene {
	const struct scope *scope;
	weir_map_staging *map;
	weir_pending *op;
	int in[ROWS][KEYS][COMPONENTS], out[ROWS][KEYS][COMPONENTS];
	int cleared[ROWS];
	int completions;
} scene;

static const size_t both[COMPONENTS] = {0, 1};

static void put(size_t me, int64_t key, size_t first, size_t count, uint64_t deadline_ns)
{
	weir_tensor *tensors[COMPONENTS];
	enum weir_status status;

	for (size_t i = 0; i < count; i++)
		weir_model_assert(weir_tensor_scalar_i32((int32_t)(key * 10 + (int64_t)(first + i)), &tensors[i]) == WEIR_OK);
	status = weir_map_staging_put(scene.map, key, &both[first], tensors, count, deadline_ns, NULL, NULL);
	/* The area is full, or has the key already. */
	weir_model_assert(status == WEIR_OK || status == WEIR_INVALID_ARGUMENT ||
	                  (status == WEIR_DEADLINE_EXCEEDED && deadline_ns == 0 && scene.scope->capacity != 0));
	for (size_t i = 0; i < count; i++) {
		weir_tensor_release(tensors[i]);
		scene.in[me][key - 1][first + i] += status == WEIR_OK;
	}
}

static void have(size_t me, int64_t key, size_t first, weir_tensor *tensors[], size_t count, int taken)
{
	for (size_t i = 0; i < count; i++) {
		weir_model_assert(*(const int32_t *)weir_tensor_data(tensors[i]) == key * 10 + (int64_t)(first + i));
		scene.out[me][key - 1][first + i] += taken;
		weir_tensor_release(tensors[i]);
	}
}

/*
 * Checks the status of a call that failed. It may be refused, if another call took a component of
 * the key.
 */
static void check_failure(enum weir_status status, uint64_t deadline_ns)
{
	weir_model_assert(status == WEIR_INVALID_ARGUMENT || (status == WEIR_DEADLINE_EXCEEDED && deadline_ns == 0));
}

static void get(size_t me, size_t first, size_t count, uint64_t deadline_ns)
{
	weir_tensor *tensors[COMPONENTS];
	enum weir_status status = weir_map_staging_get(scene.map, 1, &both[first], tensors, count, deadline_ns, NULL, NULL);

	if (status == WEIR_OK)
		have(me, 1, first, tensors, count, 1);
	else
		check_failure(status, deadline_ns);
}

static void get_any(size_t me, uint64_t deadline_ns)
{
	weir_tensor *tensors[COMPONENTS];
	int64_t key;
	enum weir_status status =
		weir_map_staging_get_any(scene.map, NULL, &key, tensors, COMPONENTS, deadline_ns, NULL, NULL);

	if (status == WEIR_OK)
		have(me, key, 0, tensors, COMPONENTS, 1);
	else
		check_failure(status, deadline_ns);
}

static void peek(size_t me, uint64_t deadline_ns)
{
	weir_tensor *tensors[COMPONENTS];
	enum weir_status status = weir_map_staging_peek(scene.map, 1, NULL, tensors, COMPONENTS, deadline_ns, NULL, NULL);

	if (status == WEIR_OK)
		have(me, 1, 0, tensors, COMPONENTS, 0);
	else
		check_failure(status, deadline_ns);
}

/* Keys of which a part was taken are not checked here. */
static void look(void)
{
	size_t complete, incomplete, bytes;

	weir_model_assert(weir_map_staging_size(scene.map, &complete, &incomplete, &bytes) == WEIR_OK);
	weir_model_assert(complete + incomplete <= KEYS &&
	                  (scene.scope->capacity == 0 || complete <= scene.scope->capacity));
	weir_model_assert(bytes >= (complete + incomplete) * sizeof(int32_t) &&
	                  bytes <= (complete * COMPONENTS + incomplete) * sizeof(int32_t));
}

static void completed(void *context, enum weir_status status, const weir_error *error, int64_t key,
                      weir_tensor **tensors, size_t count)
{
	(void)context, (void)error;
	scene.completions++;
	weir_model_assert(status == (count == COMPONENTS ? WEIR_OK : WEIR_CANCELLED));
	have(ROWS - 1, key, 0, tensors, count, 1);
}

static void start_get(void)
{
	weir_model_assert(weir_map_staging_start_get(scene.map, 1, NULL, COMPONENTS, completed, NULL, &scene.op, NULL) ==
	                  WEIR_OK);
}

static void clear(size_t me)
{
	scene.cleared[me] = 1;
	weir_model_assert(weir_map_staging_clear(scene.map) == WEIR_OK);
}

static void cancel(void)
{
	weir_pending_cancel(scene.op, NULL);
	weir_pending_release(scene.op);
}

static void new_era_and_collection(void)
{
	(void)weiri_fetch_add_seq_cst(&weiri_era, 1);
	(void)weir_reclaim_flush(0);
}

#define LETTERS(LETTER) \
	LETTER('p', "put key 1 whole", put(me, 1, 0, 2, 0)) \
	LETTER('P', "put key 1 whole, waiting", put(me, 1, 0, 2, WEIR_NO_DEADLINE)) \
	LETTER('q', "put key 2 whole", put(me, 2, 0, 2, 0)) \
	LETTER('Q', "put key 2 whole, waiting", put(me, 2, 0, 2, WEIR_NO_DEADLINE)) \
	LETTER('1', "put component 0 of key 1", put(me, 1, 0, 1, 0)) \
	LETTER('2', "put component 1 of key 1", put(me, 1, 1, 1, 0)) \
	LETTER('g', "get key 1", get(me, 0, 2, 0)) \
	LETTER('G', "get key 1, waiting", get(me, 0, 2, WEIR_NO_DEADLINE)) \
	LETTER('x', "get component 0 of key 1", get(me, 0, 1, 0)) \
	LETTER('y', "get component 1 of key 1", get(me, 1, 1, 0)) \
	LETTER('a', "get any key", get_any(me, 0)) \
	LETTER('A', "get any key, waiting", get_any(me, WEIR_NO_DEADLINE)) \
	LETTER('v', "peek at key 1", peek(me, 0)) \
	LETTER('V', "peek at key 1, waiting", peek(me, WEIR_NO_DEADLINE)) \
	LETTER('l', "look", look()) \
	LETTER('c', "clear", clear(me)) \
	LETTER('s', "start a get of key 1", start_get()) \
	LETTER('k', "cancel what was started", cancel()) \
	LETTER('n', "a new era begins, and what is retired is collected", new_era_and_collection())

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
	for (const char *calls = scene.scope->calls[me]; *calls != '\0'; calls++)
		call(me, *calls);
}

static void setup(void *context)
{
	struct weir_tensor_component components[COMPONENTS] = {{WEIR_I32, NULL, NULL}, {WEIR_I32, NULL, NULL}};
	struct weir_map_staging_options options = {WEIR_MAP_STAGING_OPTIONS_INIT, .capacity = scene.scope->capacity,
	                                           .components = components, .component_count = COMPONENTS};

	(void)context;
	weir_model_assert(weir_map_staging_create(&options, &scene.map, NULL) == WEIR_OK);
	for (const char *calls = scene.scope->before; *calls != '\0'; calls++)
		call(ROWS - 1, *calls);
}

/* Returns the number of components that were put and not taken. They are left, or were cleared. */
static int left_of(size_t key, size_t component)
{
	int left = 0;

	for (size_t i = 0; i < ROWS; i++)
		left += scene.in[i][key][component] - scene.out[i][key][component];
	return left;
}

static void finish(void *context)
{
	int left = 0, clears = 0;
	size_t bytes;

	(void)context;
	look();
	weir_model_assert(weir_map_staging_size(scene.map, NULL, NULL, &bytes) == WEIR_OK);
	for (size_t i = 0; i < ROWS; i++)
		clears += scene.cleared[i];
	for (size_t i = 0; i < KEYS * COMPONENTS; i++) {
		int of = left_of(i / COMPONENTS, i % COMPONENTS);

		weir_model_assert(of >= 0 && of <= 1 + clears);
		left += of;
	}
	weir_model_assert(clears != 0 ? (int)(bytes / sizeof(int32_t)) <= left : (int)(bytes / sizeof(int32_t)) == left);
	weir_model_assert(scene.completions == (scene.op != NULL));
	weir_model_assert(weir_map_staging_destroy(scene.map, NULL) == WEIR_OK);
	weir_model_assert(weir_reclaim_flush(0) == WEIR_OK);
}

static struct scope_plan prepare(size_t index)
{
	const struct scope *scope = &scopes[index];

	scene = (struct scene){.scope = scope};
	return (struct scope_plan){
		.program = {scope->name, scope_threads(scope->calls, THREADS), &scene, sizeof(scene), setup, thread, finish},
		.executions = scope->executions,
		.stopped = scope->waits ? 0 : 30};
}

int main(int argc, char **argv)
{
	static const struct scope_letter letters[] = {LETTERS(LETTER_ROW){0, NULL}};

	scope_letters(argc, argv, letters);
	scope_arguments(argc, argv);
	return scope_all(prepare, sizeof(scopes) / sizeof(scopes[0]));
}
