/*
 * check_keyed_join.c - keyed joins: inserts of many keys are atomic, each key is completed once,
 * and takers that wait are completed.
 *
 * A scope gives each thread a row of calls, a letter each; LETTERS says what each letter does.
 *
 * Required of every execution: a look sees both keys of an insert or neither (if no other call
 * changes them); a batch has the right values for each key; each completed tuple is taken or left;
 * waiters wake; nothing leaks or is freed early.
 */
#include <weir/flow/keyed_join.h>
#include <weir/reclaim.h>

#include "base/atomic.h"
#include "model/scope.h"
#include "reclaim/section.h"

enum { THREADS = 3, KEYS = 2, ROWS = THREADS + 1 };
enum { EVEN = 1 }; /* the numbers of ready and incomplete keys are even in every look */

static const struct scope {
	const char *name, *before; /* calls of the setup */
	const char *calls[THREADS];
	int flags;
	uint64_t executions; /* in the short form */
	int waits;           /* a thread may be left asleep when another is stopped */
} scopes[] = {
	{"keyed_join_2_components_of_1_key", "", {"a", "b"}, 0, 20000, 0},
	{"keyed_join_the_same_component_twice", "", {"a", "a"}, 0, 20000, 0},
	{"keyed_join_2_components_of_2_keys_beside_look", "", {"A", "B", "ll"}, EVEN, 5000, 0},
	{"keyed_join_second_components_of_2_keys_beside_1", "A", {"B", "b"}, 0, 20000, 0},
	{"keyed_join_2_takes_of_1", "ab", {"t", "t"}, 0, 20000, 0},
	{"keyed_join_2_takes_of_2", "AB", {"t", "t"}, 0, 20000, 0},
	{"keyed_join_take_beside_take_and_collection", "AB", {"t", "tn"}, 0, 10000, 0},
	{"keyed_join_take_beside_insert", "ABa", {"t", "b"}, 0, 20000, 0},
	{"keyed_join_take_of_nothing_beside_insert", "a", {"t", "b"}, 0, 20000, 0},
	{"keyed_join_insert_beside_close", "a", {"B", "c"}, 0, 20000, 0},
	{"keyed_join_insert_beside_cancel", "A", {"b", "C"}, 0, 20000, 0},
	{"keyed_join_2_closes", "A", {"c", "C"}, 0, 20000, 0},
	{"keyed_join_take_waits_beside_insert", "a", {"T", "b"}, 0, 5000, 1},
	{"keyed_join_take_waits_beside_close", "", {"T", "c"}, 0, 5000, 1},
	{"keyed_join_take_of_2_waits_beside_another_that_takes_1", "A", {"U", "ct", "B"}, 0, 5000, 1},
	{"keyed_join_take_of_2_waits_before_one_of_1", "A", {"U", "T", "cb"}, 0, 5000, 1},
	{"keyed_join_take_waits_beside_cancel", "a", {"T", "C"}, 0, 5000, 1},
};

static struct scene {
	const struct scope *scope;
	weir_keyed_join *join;
	weir_tensor *keys[KEYS + 1], *values[2][KEYS + 1]; /* the tensors for each number of keys */
	/* rows of each component that were inserted */
	int inserted[ROWS][2];
	int out[ROWS];
} scene;

static int32_t value_of(size_t component, int key)
{
	return (int32_t)(100 * (component + 1)) + key;
}

static void insert(size_t me, size_t component, int count)
{
	enum weir_status status =
		weir_keyed_join_insert_many(scene.join, component, scene.keys[count], scene.values[component][count], NULL);

	weir_model_assert(status == WEIR_OK || status == WEIR_INVALID_ARGUMENT || status == WEIR_CANCELLED);
	scene.inserted[me][component] += status == WEIR_OK ? count : 0;
}

static void check_batch(const struct weir_keyed_join_batch *batch)
{
	for (int64_t row = 0; row < (int64_t)batch->count; row++) {
		const weir_bytes *key = (const weir_bytes *)weir_tensor_data(batch->keys) + row;
		int number = ((const char *)key->data)[0] - 'x';

		weir_model_assert(key->size == 1 && (number == 0 || number == 1));
		for (size_t i = 0; i < 2; i++)
			weir_model_assert(((const int32_t *)weir_tensor_data(batch->values[i]))[row] == value_of(i, number));
	}
}

static enum weir_status take(size_t me, size_t n, uint64_t deadline_ns)
{
	struct weir_keyed_join_batch batch;
	enum weir_status status = weir_keyed_join_take_many(scene.join, n, 0, deadline_ns, NULL, &batch, NULL);

	if (status != WEIR_OK) {
		weir_model_assert(status == (deadline_ns == 0 ? WEIR_DEADLINE_EXCEEDED : WEIR_OUT_OF_RANGE) ||
		                  status == WEIR_OUT_OF_RANGE);
		return status;
	}
	weir_model_assert(batch.count == n);
	check_batch(&batch);
	scene.out[me] += (int)n;
	weir_tensor_release(batch.indices);
	weir_tensor_release(batch.keys);
	for (size_t i = 0; i < 2; i++)
		weir_tensor_release(batch.values[i]);
	return status;
}

static void look(void)
{
	size_t ready, incomplete;

	weir_model_assert(weir_keyed_join_size(scene.join, &ready, &incomplete) == WEIR_OK);
	weir_model_assert((scene.scope->flags & EVEN) == 0 || (ready % 2 == 0 && incomplete % 2 == 0));
}

static void close_it(enum weir_close_mode mode)
{
	weir_model_assert(weir_keyed_join_close(scene.join, mode, NULL) == WEIR_OK);
}

static void new_era_and_collection(void)
{
	(void)weiri_fetch_add_seq_cst(&weiri_era, 1);
	(void)weir_reclaim_flush(0);
}

#define LETTERS(LETTER) \
	LETTER('a', "insert component 0 of key x", insert(me, 0, 1)) \
	LETTER('A', "insert component 0 of keys x and y", insert(me, 0, 2)) \
	LETTER('b', "insert component 1 of key x", insert(me, 1, 1)) \
	LETTER('B', "insert component 1 of keys x and y", insert(me, 1, 2)) \
	LETTER('t', "take 1", (void)take(me, 1, 0)) \
	LETTER('T', "take 1, waiting", (void)take(me, 1, WEIR_NO_DEADLINE)) \
	LETTER('U', "take 2, waiting", (void)take(me, 2, WEIR_NO_DEADLINE)) \
	LETTER('c', "close, drain", close_it(WEIR_CLOSE_DRAIN)) \
	LETTER('C', "close, cancel", close_it(WEIR_CLOSE_CANCEL)) \
	LETTER('l', "look", look()) \
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

static void make_tensors(int count)
{
	static const weir_bytes keys[KEYS] = {{"x", 1}, {"y", 1}};
	const weir_shape shape = {.rank = 1, .dims = {count}};

	weir_model_assert(weir_tensor_copy_of(WEIR_BYTES, &shape, keys, NULL, &scene.keys[count]) == WEIR_OK);
	for (size_t i = 0; i < 2; i++) {
		int32_t values[KEYS] = {value_of(i, 0), value_of(i, 1)};

		weir_model_assert(weir_tensor_copy_of(WEIR_I32, &shape, values, NULL, &scene.values[i][count]) == WEIR_OK);
	}
}

static void setup(void *context)
{
	static const weir_shape scalar = {.rank = 0};
	struct weir_tensor_component components[] = {{WEIR_I32, &scalar, NULL}, {WEIR_I32, &scalar, NULL}};
	struct weir_keyed_join_options options = {WEIR_KEYED_JOIN_OPTIONS_INIT, .components = components,
	                                          .component_count = 2};

	(void)context;
	weir_model_assert(weir_keyed_join_create(&options, &scene.join, NULL) == WEIR_OK);
	make_tensors(1);
	make_tensors(2);
	for (const char *calls = scene.scope->before; *calls != '\0'; calls++)
		call(ROWS - 1, *calls);
}

static void release_tensors(void)
{
	for (size_t i = 1; i <= KEYS; i++) {
		weir_tensor_release(scene.keys[i]);
		weir_tensor_release(scene.values[0][i]);
		weir_tensor_release(scene.values[1][i]);
	}
}

/* Takes what is left. Each tuple has consumed one row of each component. */
static void finish(void *context)
{
	int rows[2] = {0, 0}, out = 0;
	size_t incomplete;

	(void)context;
	while (take(ROWS - 1, 1, 0) == WEIR_OK)
		;
	weir_model_assert(weir_keyed_join_size(scene.join, NULL, &incomplete) == WEIR_OK);
	for (size_t i = 0; i < ROWS; i++) {
		rows[0] += scene.inserted[i][0];
		rows[1] += scene.inserted[i][1];
		out += scene.out[i];
	}
	weir_model_assert(out <= rows[0] && out <= rows[1] && rows[0] + rows[1] - 2 * out >= (int)incomplete);
	weir_model_assert(weir_keyed_join_destroy(scene.join, NULL) == WEIR_OK);
	release_tensors();
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
