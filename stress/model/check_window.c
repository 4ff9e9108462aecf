/*
 * check_window.c - elements that are worked on ahead: a taker polls a window while other threads run
 * the tasks of its pool.
 *
 * - Each element is taken once; in order, if the window is ordered; the end comes last.
 * - The taker sees what the work wrote.
 * - No wake-up is lost: once all tasks have run, the taker's turn is not stuck.
 * - A window that is closed under way is freed once, when its tasks have run, and gives its
 *   consumer and its elements back.
 */
#include <stdio.h>

#include "data/turn.h"
#include "data/window.h"
#include "model/scope.h"

enum { MOST = 3 };

struct scope {
	size_t size, elements, takes, helps;
	bool has_work, is_unordered, closes;
};

static struct scene {
	struct scope scope;
	weir_pool *pool;
	weir_dataset *dataset;
	struct weiri_reading reading;
	struct weiri_consumer consumer;
	struct weiri_turn turn;
	_Atomic(int) held; /* references to the consumer */
	struct weiri_stage stage;
	struct weiri_window *window;
	int taken, numbers[MOST];
	bool ended;
} scene;

/* -- the dataset under the window -------------------------------------------------------------- */

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
	if (mine->next == (int)scene.scope.elements)
		return WEIR_OUT_OF_RANGE;
	weir_model_assert(weir_tensor_scalar_i32(mine->next++, &parts[0]) == WEIR_OK);
	return WEIR_OK;
}

static void source_close(struct weiri_stage *stage)
{
	(void)stage;
}

static const struct weiri_dataset_kind source_kind = {
	"source", WEIRI_USES_TYPES, 0, sizeof(struct source_stage), source_open, source_poll, source_close, NULL};

static int number_of(const weir_tensor *tensor)
{
	return *(const int32_t *)weir_tensor_data(tensor);
}

static enum weir_status add_ten(const weir_dataset *dataset, weir_tensor *parts[], weir_error *error)
{
	int number = number_of(parts[0]);

	(void)dataset, (void)error;
	weir_tensor_release(parts[0]);
	weir_model_assert(weir_tensor_scalar_i32(number + 10, &parts[0]) == WEIR_OK);
	return WEIR_OK;
}

/* -- the consumer ------------------------------------------------------------------------------ */

static void wake(struct weiri_consumer *consumer)
{
	(void)consumer;
	(void)weiri_turn_resume(&scene.turn, WEIRI_TURN_FREE);
}

static void retain(struct weiri_consumer *consumer)
{
	(void)consumer;
	(void)weiri_fetch_add_relaxed(&scene.held, 1);
}

static void release(struct weiri_consumer *consumer)
{
	(void)consumer;
	(void)weiri_fetch_sub_acq_rel(&scene.held, 1);
}

static void have(weir_tensor *part)
{
	int number = number_of(part) - (scene.scope.has_work ? 10 : 0);

	weir_model_assert(number >= 0 && number < (int)scene.scope.elements);
	weir_model_assert(scene.scope.is_unordered || number == scene.taken);
	weir_model_assert(scene.numbers[number]++ == 0);
	scene.taken++;
	weir_tensor_release(part);
}

/* Polls with the turn. Returns false if the turn is stuck. */
static bool poll_once(void)
{
	weir_tensor *part = NULL;
	weir_error error;
	enum weir_status status;

	do {
		status = weiri_window_poll(scene.window, &part, &error);
	} while (status == WEIR_WOULD_BLOCK && !weiri_turn_stick(&scene.turn));
	if (status == WEIR_WOULD_BLOCK)
		return false;
	if (status == WEIR_OK)
		have(part);
	else
		weir_model_assert(status == WEIR_OUT_OF_RANGE && scene.taken == (int)scene.scope.elements);
	scene.ended = status == WEIR_OUT_OF_RANGE;
	weiri_turn_give(&scene.turn);
	return true;
}

static void setup(void *context)
{
	const struct weir_pool_options options = {WEIR_POOL_OPTIONS_INIT, .flags = WEIR_POOL_NO_THREADS};
	const enum weir_dtype dtype = WEIR_I32;
	const struct weir_dataset_options types = {WEIR_DATASET_OPTIONS_INIT, .dtypes = &dtype, .width = 1};
	struct weir_dataset_options used;
	weir_error error;

	(void)context;
	weir_model_assert(weir_pool_create(&options, &scene.pool, NULL) == WEIR_OK);
	weir_model_assert(weiri_dataset_create(&source_kind, sizeof(weir_dataset), NULL, 0, NULL, &types, &used,
	                                       &scene.dataset, &error) == WEIR_OK);
	scene.reading = (struct weiri_reading){NULL, scene.pool, 1, *weir_default_allocator()};
	scene.consumer = (struct weiri_consumer){wake, retain, release, 0};
	weiri_turn_init(&scene.turn, WEIRI_TURN_FREE);
	scene.stage = (struct weiri_stage){&scene.reading, &scene.consumer, scene.dataset, 0, false};
	weir_model_assert(weiri_window_open(&scene.stage,
	                                    &(struct weiri_window_plan){scene.dataset, scene.scope.size,
	                                                                scene.scope.has_work ? add_ten : NULL,
	                                                                scene.scope.is_unordered, 0},
	                                    &scene.window, &error) == WEIR_OK);
}

/* Thread 0 takes, and perhaps closes the window; the others run tasks. */
static void run(void *context, size_t who)
{
	(void)context;
	if (who != 0) {
		for (size_t i = 0; i < scene.scope.helps; i++)
			(void)weir_pool_help(scene.pool, 1);
		return;
	}
	for (size_t i = 0; i < scene.scope.takes && !scene.ended; i++) {
		if (weiri_turn_take(&scene.turn))
			(void)poll_once();
	}
	if (scene.scope.closes) {
		weiri_window_close(scene.window);
		scene.window = NULL;
	}
}

static void finish(void *context)
{
	(void)context;
	while (weir_pool_help(scene.pool, 1) != 0)
		;
	while (scene.window != NULL && !scene.ended) {
		weir_model_assert(weiri_turn_take(&scene.turn)); /* else a wake-up was lost */
		if (!poll_once())
			while (weir_pool_help(scene.pool, 1) != 0)
				;
	}
	if (scene.window != NULL)
		weiri_window_close(scene.window);
	while (weir_pool_help(scene.pool, 1) != 0)
		;
	weir_model_assert(weiri_load_relaxed(&scene.held) == 0); /* the window is free */
	weir_dataset_release(scene.dataset);
	weir_model_assert(weir_pool_destroy(scene.pool, NULL) == WEIR_OK);
}

enum search { COMPLETE, SOME };

static int check(const char *name, size_t threads, enum search search, struct scope scope)
{
	struct weir_model_program program = {name, threads, &scene, sizeof(scene), setup, run, finish};

	scene = (struct scene){.scope = scope};
	return search == COMPLETE ? scope_complete(&program) : scope_preemptions(&program, scope_long() ? 5 : 3);
}

int main(int argc, char **argv)
{
	int failed = 0;

	scope_arguments(argc, argv);
	failed |= check("window_prefetch_1", 2, COMPLETE, (struct scope){.size = 1, .elements = 2, .takes = 3, .helps = 3});
	failed |= check("window_prefetch_2", 2, COMPLETE, (struct scope){.size = 2, .elements = 3, .takes = 3, .helps = 3});
	failed |= check("window_map_1", 2, COMPLETE,
	                (struct scope){.size = 1, .elements = 2, .takes = 3, .helps = 4, .has_work = true});
	failed |= check("window_map_2", 2, COMPLETE,
	                (struct scope){.size = 2, .elements = 2, .takes = 3, .helps = 4, .has_work = true});
	failed |=
		check("window_unordered_2", 2, COMPLETE,
	          (struct scope){.size = 2, .elements = 2, .takes = 3, .helps = 3, .has_work = true, .is_unordered = true});
	failed |= check("window_closed_prefetch", 2, COMPLETE,
	                (struct scope){.size = 2, .elements = 2, .takes = 1, .helps = 2, .closes = true});
	failed |= check("window_closed_map", 2, COMPLETE,
	                (struct scope){.size = 2, .elements = 2, .takes = 1, .helps = 4, .has_work = true, .closes = true});
	failed |=
		check("window_prefetch_2_by_2", 3, SOME, (struct scope){.size = 2, .elements = 2, .takes = 2, .helps = 2});
	failed |= check("window_map_2_by_2", 3, SOME,
	                (struct scope){.size = 2, .elements = 2, .takes = 1, .helps = 2, .has_work = true});
	failed |=
		check("window_unordered_2_by_2", 3, SOME,
	          (struct scope){.size = 2, .elements = 2, .takes = 1, .helps = 2, .has_work = true, .is_unordered = true});
	failed |= check("window_closed_map_by_2", 3, SOME,
	                (struct scope){.size = 2, .elements = 2, .takes = 1, .helps = 2, .has_work = true, .closes = true});
	return failed;
}
