/*
 * check_staging.c - staging areas, and with them operations that wait for an object
 * (sync/pending.h) and versions of a sorted collection (tree.c).
 *
 * A scope gives each thread a row of calls, a letter each; LETTERS says what each letter does.
 *
 * Required of every execution:
 * - If nothing is started in a scope, some order of the calls explains all results (judged.h).
 * - Each tuple that was put is taken once or is cleared. The tuples of one thread are taken in
 *   their order.
 * - Waiters wake.
 * - Bytes and number agree in every look, within the bounds.
 * - An operation that was started completes once.
 * - No tensor leaks or is freed early.
 */
#include <string.h>
#include <weir/reclaim.h>
#include <weir/flow/staging.h>

#include "base/atomic.h"
#include "model/judged.h"
#include "model/scope.h"
#include "reclaim/section.h"

enum { THREADS = 4, CALLS = 5, ROWS = THREADS + 1 };

static const struct scope {
	const char *name;
	size_t capacity;
	int inside; /* tuples that are stored at the start */
	const char *calls[THREADS];
	uint64_t executions; /* in the short form */
	int waits;           /* a thread may be left asleep when another is stopped */
} scopes[] = {
	{"staging_put_beside_get", 0, 0, {"p", "g"}, 20000, 0},
	{"staging_2_puts_n1", 1, 0, {"p", "p"}, 20000, 0},
	{"staging_2_gets_of_1", 0, 1, {"g", "g"}, 20000, 0},
	{"staging_2_gets_of_3", 0, 3, {"g", "g"}, 20000, 0},
	{"staging_put_and_get_beside_get", 0, 1, {"pg", "g"}, 20000, 0},
	{"staging_peek_beside_get", 0, 2, {"v", "g"}, 20000, 0},
	{"staging_peek_beside_2_gets_and_collection", 0, 2, {"v", "ggn"}, 10000, 0},
	{"staging_clear_beside_put", 0, 1, {"c", "p"}, 20000, 0},
	{"staging_clear_beside_get", 0, 2, {"c", "g"}, 20000, 0},
	{"staging_clear_beside_clear", 0, 2, {"c", "c"}, 20000, 0},
	{"staging_put_beside_get_and_collections", 0, 0, {"p", "ngn"}, 25000, 0},
	{"staging_full_beside_empty_n2_1_putter_x3_1_getter_x2", 2, 0, {"ppp", "gg"}, 10000, 0},
	{"staging_store_buffering_each_puts_and_gets", 0, 0, {"pg", "pg"}, 10000, 0},
	{"staging_iriw_2_puts_seen_by_2_who_peek_and_get", 0, 0, {"p", "p", "vg", "vg"}, 5000, 0},
	{"staging_look_beside_put_and_get", 2, 1, {"ll", "p", "g"}, 10000, 0},
	{"staging_get_waits_beside_put", 0, 0, {"G", "p"}, 10000, 1},
	{"staging_peek_waits_beside_put", 0, 0, {"V", "p"}, 10000, 1},
	{"staging_put_waits_beside_get_n1", 1, 1, {"P", "g"}, 10000, 1},
	{"staging_put_waits_beside_clear_n1", 1, 1, {"P", "c"}, 10000, 1},
	{"staging_2_gets_wait_beside_2_puts", 0, 0, {"G", "G", "pp"}, 5000, 1},
	{"staging_get_waits_beside_put_that_waits_n1", 1, 0, {"GG", "PP"}, 5000, 1},
	{"staging_get_with_token_beside_put_and_fire", 0, 0, {"t", "p", "F"}, 5000, 1},
	{"staging_get_with_deadline_beside_put", 0, 0, {"d", "p"}, 5000, 1},
	{"staging_get_with_deadline_beside_peek", 0, 0, {"d", "v"}, 2000, 1},
	{"staging_started_get_beside_put_and_cancel_and_collection", 0, 0, {"skn", "p"}, 10000, 0},
	{"staging_started_get_beside_put_and_cancel", 0, 0, {"sk", "p"}, 5000, 0},
};

static struct scene {
	const struct scope *scope;
	weir_staging *staging;
	weir_cancel *token;
	weir_pending *op;
	int put[ROWS], accepted[ROWS]; /* tuples offered; tuples that were put */
	int got[ROWS][ROWS];           /* [by][of]: the last number that was taken */
	int out[ROWS];
	int cleared[ROWS]; /* some values may have been cleared */
	int completions;
} scene;

/* Makes a tensor of a row and a number within it. */
static weir_tensor *value(size_t row, int number)
{
	weir_tensor *tensor;

	weir_model_assert(weir_tensor_scalar_i32((int32_t)row * 100 + number, &tensor) == WEIR_OK);
	return tensor;
}

static void have(size_t me, weir_tensor *tensor, int taken)
{
	int32_t content = *(const int32_t *)weir_tensor_data(tensor), row = content / 100, number = content % 100;

	weir_model_assert(number > scene.got[me][row] || !taken);
	if (taken) {
		scene.got[me][row] = number;
		scene.out[me]++;
	}
	weir_tensor_release(tensor);
}

/* Turns the status of a call that may not wait, but would have to, into WEIR_WOULD_BLOCK. */
static enum weir_status at_once(enum weir_status status, uint64_t deadline_ns)
{
	return status == WEIR_DEADLINE_EXCEEDED && deadline_ns == 0 ? WEIR_WOULD_BLOCK : status;
}

/* Returns the number in a tensor of value(). */
static uint64_t number_in(const weir_tensor *tensor)
{
	return (uint64_t) * (const int32_t *)weir_tensor_data(tensor);
}

static void put(size_t me, uint64_t deadline_ns)
{
	weir_tensor *tensor = value(me, ++scene.put[me]);
	enum weir_status status;

	weir_model_call_begins(0);
	status = weir_staging_put(scene.staging, &tensor, 1, deadline_ns, NULL, NULL);
	weir_model_call_ends(0);
	judged_put(at_once(status, deadline_ns), judged_number((int)me, scene.put[me]), 0);
	weir_tensor_release(tensor);
	weir_model_assert(status == WEIR_OK ||
	                  (status == WEIR_DEADLINE_EXCEEDED && deadline_ns == 0 && scene.scope->capacity != 0));
	scene.accepted[me] += status == WEIR_OK;
}

static void get(size_t me, uint64_t deadline_ns, weir_cancel *token)
{
	weir_tensor *tensor;
	enum weir_status status;

	weir_model_call_begins(1);
	status = weir_staging_get(scene.staging, &tensor, 1, deadline_ns, token, NULL);
	weir_model_call_ends(1);
	status = at_once(status, deadline_ns);
	if (status == WEIR_OK || status == WEIR_WOULD_BLOCK)
		judged_take(status, status == WEIR_OK ? number_in(tensor) : 0);
	if (status == WEIR_WOULD_BLOCK)
		return;
	if (status == WEIR_OK)
		have(me, tensor, 1);
	else
		weir_model_assert(status == (token != NULL ? WEIR_CANCELLED : WEIR_DEADLINE_EXCEEDED) &&
		                  (token != NULL || deadline_ns != WEIR_NO_DEADLINE));
}

static void peek(size_t me, uint64_t deadline_ns)
{
	weir_tensor *tensor;
	enum weir_status status;

	weir_model_call_begins(2);
	status = weir_staging_peek(scene.staging, 0, &tensor, 1, deadline_ns, NULL, NULL);
	weir_model_call_ends(2);
	if (status == WEIR_OK)
		weir_model_answer(HISTORY_PEEK, 0, number_in(tensor));
	else
		judged_take(at_once(status, deadline_ns), 0);
	if (status == WEIR_OK)
		have(me, tensor, 0);
	else
		weir_model_assert(status == WEIR_DEADLINE_EXCEEDED && deadline_ns == 0);
}

static void look(void)
{
	size_t size, bytes;

	weir_model_assert(weir_staging_size(scene.staging, &size, &bytes) == WEIR_OK);
	weir_model_assert(bytes == size * 4 && (scene.scope->capacity == 0 || size <= scene.scope->capacity));
}

static void completed(void *context, enum weir_status status, const weir_error *error, weir_tensor **tuple,
                      size_t count)
{
	(void)context, (void)error;
	scene.completions++;
	weir_model_assert(status == (count == 1 ? WEIR_OK : WEIR_CANCELLED));
	if (count == 1)
		have(ROWS - 1, tuple[0], 1);
}

static void start_get(void)
{
	weir_model_assert(weir_staging_start_get(scene.staging, completed, NULL, &scene.op, NULL) == WEIR_OK);
}

static void cancel(void)
{
	weir_pending_cancel(scene.op, NULL);
	weir_pending_release(scene.op);
}

static void clear(size_t me)
{
	scene.cleared[me] = 1;
	weir_model_call_begins(3);
	weir_model_assert(weir_staging_clear(scene.staging) == WEIR_OK);
	weir_model_call_ends(3);
	weir_model_answer(HISTORY_CLEAR, 0, 0);
}

static void new_era_and_collection(void)
{
	(void)weiri_fetch_add_seq_cst(&weiri_era, 1);
	(void)weir_reclaim_flush(0);
}

#define LETTERS(LETTER) \
	LETTER('p', "put", put(me, 0)) \
	LETTER('P', "put, waiting", put(me, WEIR_NO_DEADLINE)) \
	LETTER('g', "get", get(me, 0, NULL)) \
	LETTER('G', "get, waiting", get(me, WEIR_NO_DEADLINE, NULL)) \
	LETTER('t', "get, waiting until the token fires", get(me, WEIR_NO_DEADLINE, scene.token)) \
	LETTER('d', "get, waiting until a deadline", get(me, 1000, NULL)) \
	LETTER('v', "peek at the oldest", peek(me, 0)) \
	LETTER('V', "peek at the oldest, waiting", peek(me, WEIR_NO_DEADLINE)) \
	LETTER('l', "look", look()) \
	LETTER('c', "clear", clear(me)) \
	LETTER('F', "fire the token", (void)weir_cancel_fire(scene.token, NULL)) \
	LETTER('s', "start a get", start_get()) \
	LETTER('k', "cancel what was started", cancel()) \
	LETTER('n', "a new era begins, and what is retired is collected", new_era_and_collection()) \
	LETTER('z', "a planted fault: a get that returns \"empty\" without reading", judged_wrong_take())

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
	struct weir_tensor_component component = {WEIR_I32, NULL, NULL};
	struct weir_staging_options options = {WEIR_STAGING_OPTIONS_INIT, .capacity = scene.scope->capacity,
	                                       .components = &component, .component_count = 1};
	int starts = 0;

	(void)context;
	weir_model_assert(weir_staging_create(&options, &scene.staging, NULL) == WEIR_OK);
	for (size_t i = 0; i < THREADS && scene.scope->calls[i] != NULL; i++)
		starts |= strchr(scene.scope->calls[i], 's') != NULL;
	if (!starts)
		judged_as_fifo(scene.scope->capacity);
	weir_model_assert(weir_cancel_create(NULL, &scene.token, NULL) == WEIR_OK);
	for (int i = 0; i < scene.scope->inside; i++)
		put(ROWS - 1, 0);
}

static void finish(void *context)
{
	int in = 0, out = 0, cleared = 0;
	size_t left;

	(void)context;
	weir_model_assert(weir_staging_size(scene.staging, &left, NULL) == WEIR_OK);
	look();
	for (size_t i = 0; i < ROWS; i++) {
		in += scene.accepted[i];
		out += scene.out[i];
		cleared |= scene.cleared[i];
	}
	weir_model_assert(cleared ? (int)left + out <= in : (int)left + out == in);
	weir_model_assert(scene.completions == (scene.op != NULL));
	while (left-- > 0)
		get(ROWS - 1, 0, NULL);
	weir_model_assert(weir_staging_destroy(scene.staging, NULL) == WEIR_OK);
	weir_cancel_release(scene.token);
	weir_model_assert(weir_reclaim_flush(0) == WEIR_OK);
}

static int check_planted(void)
{
	static const struct scope planted = {"staging_a_wrong_empty", 0, 0, {"pz", "pg"}, 0, 0};
	const struct weir_model_program program = {planted.name, 2, &scene, sizeof(scene), setup, thread, finish};

	scene = (struct scene){.scope = &planted};
	return scope_finds(&program, judged_wrong);
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

/*
 * If membarrier is refused, the light fences are full fences. This checks them between a change and
 * the look at the list on one side, and an append and the attempt on the other side.
 */
static int check_fences(void)
{
	int bad = 0;

	scope_symmetric(1);
	for (size_t i = 0; i < sizeof(scopes) / sizeof(scopes[0]); i++) {
		struct scope_plan plan = prepare(i);

		if (scopes[i].waits)
			bad |= scope_as_far_as(&plan.program, scope_long() ? 0 : plan.executions / 2);
	}
	scope_symmetric(0);
	return bad;
}

int main(int argc, char **argv)
{
	static const struct scope_letter letters[] = {LETTERS(LETTER_ROW){0, NULL}};

	scope_letters(argc, argv, letters);
	scope_arguments(argc, argv);
	return scope_all(prepare, sizeof(scopes) / sizeof(scopes[0])) | check_fences() | check_planted();
}
