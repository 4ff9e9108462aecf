/*
 * check_iterator.c - an element that was asked for by an operation, beside a task that polls for it, a
 * cancel, and another taker. The end of an iterator is not here: its last call runs tasks and yields
 * until the others have left, which a scheduler without fairness never ends.
 *
 * - The operation ends exactly once.
 * - Each element is given once, in order: one that came for an operation that was cancelled goes to the
 *   next call.
 * - A thread that must help does not wait for a task that only it might run: it steals the turn.
 * - A thread that is stopped anywhere lets the others return.
 */
#include <string.h>
#include <weir/dataset.h>

#include "data/stage.h"
#include "model/scope.h"
#include "reclaim/scope.h"

enum { ELEMENTS = 2 };

struct scope {
	void (*acts)(void); /* of thread 0 */
	size_t helps;       /* of thread 1 */
	bool starts;        /* thread 1 takes an element, if one is ready, and starts the operation */
	bool takes;         /* thread 2 takes an element, if one is ready */
	bool begun;         /* the operation is started before the threads */
	bool ahead;         /* through a window; what is above it is known, so no task polls */
};

static struct scene {
	struct scope scope;
	weir_pool *pool;
	weir_iterator *iterator;
	weir_pending *operation;
	_Atomic(int) ended;
	enum weir_status status;
	int number, other, first; /* what the operation, thread 2 or a thief, and a starter got; -1: nothing */
} scene;

/* -- the dataset ------------------------------------------------------------------------------- */

struct source_stage {
	struct weiri_stage stage;
	int next;
};

static enum weir_status source_open(struct weiri_stage *stage, weir_error *error)
{
	(void)stage, (void)error;
	return WEIR_OK;
}

static enum weir_status source_poll(struct weiri_stage *stage, weir_tensor *parts[], weir_error *error)
{
	struct source_stage *mine = (struct source_stage *)(void *)stage;

	(void)error;
	if (mine->next == ELEMENTS)
		return WEIR_OUT_OF_RANGE;
	weir_model_assert(weir_tensor_scalar_i32(mine->next++, &parts[0]) == WEIR_OK);
	return WEIR_OK;
}

static void source_close(struct weiri_stage *stage)
{
	(void)stage;
}

/* As if it called functions of the user: a task polls it. */
static const struct weiri_dataset_kind source_kind = {"source",
                                                      WEIRI_USES_TYPES | WEIRI_USES_DISPOSE,
                                                      0,
                                                      sizeof(struct source_stage),
                                                      source_open,
                                                      source_poll,
                                                      source_close,
                                                      NULL,
                                                      NULL};

static int number_of(weir_tensor *part)
{
	int number = *(const int32_t *)weir_tensor_data(part);

	weir_tensor_release(part);
	return number;
}

/* -- what the threads do ----------------------------------------------------------------------- */

static void done(void *context, enum weir_status status, const weir_error *error, weir_tensor *const parts[],
                 size_t count)
{
	(void)context, (void)error;
	scene.status = status;
	if (count != 0)
		scene.number = number_of(parts[0]);
	weir_model_assert(weiri_fetch_add_relaxed(&scene.ended, 1) == 0);
}

static void start(void)
{
	weir_model_assert(weir_iterator_start_next(scene.iterator, done, NULL, &scene.operation, NULL) == WEIR_OK);
}

static void start_and_cancel(void)
{
	start();
	weir_pending_cancel(scene.operation, NULL);
}

static void cancel(void)
{
	weir_pending_cancel(scene.operation, NULL);
}

static void take(uint64_t deadline_ns, int *number)
{
	weir_tensor *part;

	if (weir_iterator_next(scene.iterator, deadline_ns, NULL, &part, 1, NULL) == WEIR_OK)
		*number = number_of(part);
}

/* It may wait, and nobody else might run the task: it takes the turn that was passed to the task. */
static void steal(void)
{
	take(weir_deadline_in(1), &scene.other);
}

/* The fence of a thread's first section would order what it took before what it starts. */
static void take_and_start(void)
{
	struct weiri_scope section = weiri_scope_enter(weiri_record_get());

	weiri_scope_leave(&section);
	take(0, &scene.first);
	start();
}

static void setup(void *context)
{
	const struct weir_pool_options options = {WEIR_POOL_OPTIONS_INIT, .flags = WEIR_POOL_NO_THREADS};
	const enum weir_dtype dtype = WEIR_I32;
	const struct weir_dataset_options types = {WEIR_DATASET_OPTIONS_INIT, .dtypes = &dtype, .width = 1};
	struct weir_iterator_options reading = {WEIR_ITERATOR_OPTIONS_INIT};
	struct weir_dataset_options used;
	weir_dataset *dataset, *ahead = NULL;

	(void)context;
	weir_model_assert(weir_pool_create(&options, &scene.pool, NULL) == WEIR_OK);
	weir_model_assert(weiri_dataset_create(&source_kind, sizeof(weir_dataset), NULL, 0, NULL, &types, &used, &dataset,
	                                       NULL) == WEIR_OK);
	reading.pool = scene.pool;
	if (scene.scope.ahead)
		weir_model_assert(weir_dataset_prefetch(dataset, 1, NULL, &ahead, NULL) == WEIR_OK);
	weir_model_assert(weir_iterator_create(ahead != NULL ? ahead : dataset, &reading, &scene.iterator, NULL) ==
	                  WEIR_OK);
	weir_dataset_release(dataset);
	weir_dataset_release(ahead);
	if (scene.scope.begun)
		start();
}

static void run(void *context, size_t who)
{
	(void)context;
	if (who == 0) {
		scene.scope.acts();
	} else if (who == 1) {
		for (size_t i = 0; i < scene.scope.helps; i++)
			(void)weir_pool_help(scene.pool, 1);
		if (scene.scope.starts)
			take_and_start();
	} else {
		take(0, &scene.other);
	}
}

/* The elements that nobody has got, in order. */
static void take_the_rest(void)
{
	int next = 0;
	enum weir_status status;
	weir_tensor *part;

	if (scene.status == WEIR_OK)
		weir_model_assert(scene.number != scene.other);
	for (;;) {
		while (next == scene.number || next == scene.other || next == scene.first)
			next++;
		status = weir_iterator_next(scene.iterator, 0, NULL, &part, 1, NULL);
		if (status == WEIR_DEADLINE_EXCEEDED) { /* a task reads it ahead */
			weir_model_assert(weir_pool_help(scene.pool, 1) != 0);
			continue;
		}
		if (status != WEIR_OK)
			break;
		weir_model_assert(number_of(part) == next++);
	}
	weir_model_assert(next == ELEMENTS);
}

static void finish(void *context)
{
	(void)context;
	while (weir_pool_help(scene.pool, 1) != 0)
		;
	weir_model_assert(weiri_load_relaxed(&scene.ended) == 1);
	if (scene.status == WEIR_OUT_OF_RANGE)
		weir_model_assert(scene.other >= 0 && scene.first >= 0); /* they have all elements */
	else
		weir_model_assert(scene.status == WEIR_OK || scene.status == WEIR_CANCELLED);
	weir_pending_release(scene.operation);
	take_the_rest();
	weir_model_assert(weir_iterator_destroy(scene.iterator, NULL) == WEIR_OK);
	weir_model_assert(weir_pool_destroy(scene.pool, NULL) == WEIR_OK);
}

/* -- scopes ------------------------------------------------------------------------------------ */

static struct weir_model_program program_of(const char *name, size_t threads, struct scope scope)
{
	scene = (struct scene){.scope = scope, .number = -1, .other = -1, .first = -1};
	return (struct weir_model_program){name, threads, &scene, sizeof(scene), setup, run, finish};
}

static int check(const char *name, size_t threads, struct scope scope)
{
	struct weir_model_program program = program_of(name, threads, scope);

	return scope_long() ? scope_as_far_as(&program, 1000000) : scope_preemptions(&program, 1);
}

int main(int argc, char **argv)
{
	const struct scope started = {start, 2, .begun = false}, cancelled = {start_and_cancel, 2, .begun = false};
	const struct scope beside = {cancel, 2, .begun = true}, taken = {cancel, 1, .takes = true, .begun = true};
	const struct scope ahead = {start, 2, .ahead = true};
	const struct scope taken_ahead = {cancel, 1, .takes = true, .begun = true, .ahead = true};
	const struct scope stolen = {steal, 1, .begun = true}, beside_start = {steal, 0, .starts = true, .begun = false};
	struct weir_model_program program;
	int failed = 0;

	scope_arguments(argc, argv);
	failed |= check("iterator_start_beside_help", 2, started);
	failed |= check("iterator_start_and_cancel_beside_help", 2, cancelled);
	failed |= check("iterator_cancel_beside_help", 2, beside);
	failed |= check("iterator_cancel_beside_help_and_taker", 3, taken);
	failed |= check("iterator_start_ahead_beside_help", 2, ahead);
	if (scope_long())
		failed |= check("iterator_cancel_ahead_beside_help_and_taker", 3, taken_ahead);
	program = program_of("iterator_steal_beside_start", 2, beside_start);
	failed |= scope_random(&program, scope_long() ? 1000000 : 20000);
	/* The task begins to run between a theft and the next loan. */
	program = program_of("iterator_steal_beside_help", 2, stolen);
	failed |= scope_preemptions(&program, scope_long() ? 3 : 2);
	program = program_of("iterator_cancel_stopped", 3, taken);
	failed |= scope_stops(&program, scope_long() ? 2000 : 20, NULL, NULL);
	program = program_of("iterator_cancel_ahead_stopped", 3, taken_ahead);
	failed |= scope_stops(&program, scope_long() ? 2000 : 20, NULL, NULL);
	return failed;
}
