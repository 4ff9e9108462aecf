/*
 * check_window.c - elements that are worked on ahead: takers poll a window while other threads run
 * the tasks of its pool.
 *
 * - Each element is taken once; in order, if the window is ordered; the end comes last.
 * - The takers see what the work wrote.
 * - No more elements are worked on at a time than there may be calls.
 * - No wake-up is lost: once all tasks have run, the takers' turn is not stuck.
 * - A window that is closed under way is freed once, when its tasks have run, and gives its
 *   consumer and its elements back.
 * - A thread that is stopped anywhere lets the others return.
 * - Elements may pass without a slot, while the window has none that is filled.
 */
#include <stdio.h>

#include "data/turn.h"
#include "data/window.h"
#include "model/scope.h"

enum { MOST = 3, RESUMER = 2 };

struct scope {
	size_t size, elements, takers, takes, helps;
	enum weiri_help help; /* of the takers */
	bool has_work, is_unordered, closes, counts, hurries;
	bool passes;      /* the taker may give elements without a slot */
	bool begun;       /* a helper is summoned before */
	size_t run;       /* elements that a helper reads in a row; 0: as many as there are */
	bool looks;       /* a taker that finds the turn taken looks once (sync/look.h) */
	bool resumes;     /* thread RESUMER runs no tasks, but resumes the takers' turn once */
	bool helps_first; /* of two threads, the first is the one that runs tasks: and so it is stopped first */
};

static struct scene {
	struct scope scope;
	weir_pool *pool;
	weir_dataset *dataset;
	struct weiri_reading reading;
	struct weiri_consumer consumer;
	struct weiri_turn turn;
	_Atomic(int) held; /* references to the consumer */
	_Atomic(size_t) working;
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
	"source", WEIRI_USES_TYPES, 0, sizeof(struct source_stage), source_open, source_poll, source_close, NULL, NULL};

static int number_of(const weir_tensor *tensor)
{
	return *(const int32_t *)weir_tensor_data(tensor);
}

static enum weir_status add_ten(const weir_dataset *dataset, weir_tensor *parts[], weir_error *error)
{
	int number = number_of(parts[0]);

	(void)dataset, (void)error;
	if (scene.scope.counts)
		weir_model_assert(weiri_fetch_add_relaxed(&scene.working, (size_t)1) < scene.scope.size);
	weir_tensor_release(parts[0]);
	weir_model_assert(weir_tensor_scalar_i32(number + 10, &parts[0]) == WEIR_OK);
	if (scene.scope.counts)
		(void)weiri_fetch_sub_relaxed(&scene.working, (size_t)1);
	return WEIR_OK;
}

/* -- the consumer ------------------------------------------------------------------------------ */

static void wake(struct weiri_consumer *consumer)
{
	(void)consumer;
	(void)weiri_turn_resume(&scene.turn);
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

/* As take_turn() of iterator.c. */
static bool take_turn(void)
{
	struct weiri_own own = {0};
	bool in_vain;

	if (weiri_turn_take(&scene.turn))
		return true;
	return scene.scope.looks && weiri_turn_take_soon(&scene.turn, &own, WEIR_NO_DEADLINE, &in_vain);
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
	scene.reading = (struct weiri_reading){NULL, scene.pool, 1, *weir_default_allocator(), NULL};
	scene.consumer = (struct weiri_consumer){wake, retain, release, 0, scene.scope.help};
	weiri_turn_init(&scene.turn, WEIRI_TURN_FREE);
	scene.stage = (struct weiri_stage){&scene.reading, &scene.consumer, scene.dataset, 0, false};
	weir_model_assert(weiri_window_open(&scene.stage,
	                                    &(struct weiri_window_plan){scene.dataset, scene.scope.size,
	                                                                scene.scope.has_work ? add_ten : NULL,
	                                                                scene.scope.is_unordered, 0},
	                                    &scene.window, &error) == WEIR_OK);
	if (scene.scope.begun)
		weiri_window_begin(scene.window);
}

/*
 * The first threads take, and perhaps the first one closes the window; the others run tasks. One may stand for
 * whatever else wakes the takers: another window of their iterator, a thread that looks again after a while.
 */
static void run(void *context, size_t who)
{
	(void)context;
	if (scene.scope.helps_first)
		who = 1 - who;
	if (scene.scope.resumes && who == RESUMER) {
		(void)weiri_turn_resume(&scene.turn);
		return;
	}
	if (who >= scene.scope.takers) {
		for (size_t i = 0; i < scene.scope.helps; i++)
			(void)weir_pool_help(scene.pool, 1);
		return;
	}
	weiri_looks_once = scene.scope.looks;
	for (size_t i = 0; i < scene.scope.takes; i++) {
		if (take_turn())
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

enum search { COMPLETE, SOME, LONG, ONLY_LONG }; /* LONG: complete in the long form only */

static struct weir_model_program program_of(const char *name, size_t threads, struct scope scope)
{
	scene = (struct scene){.scope = scope};
	weiri_window_hurries = scope.hurries;
	weiri_window_passes = scope.passes;
	weiri_window_run = scope.run != 0 ? scope.run : SIZE_MAX;
	return (struct weir_model_program){name, threads, &scene, sizeof(scene), setup, run, finish};
}

static int check(const char *name, size_t threads, enum search search, struct scope scope)
{
	struct weir_model_program program = program_of(name, threads, scope);

	if (search == ONLY_LONG && !scope_long())
		return 0;
	if (search == COMPLETE || (search == LONG && scope_long()))
		return scope_merged(&program, scope_long() ? 0 : 300000);
	return scope_preemptions(&program, scope_long() ? 5 : 1);
}

static int check_stops(const char *name, size_t threads, struct scope scope)
{
	struct weir_model_program program = program_of(name, threads, scope);

	return scope_stops(&program, scope_long() ? 2000 : 30, NULL, NULL);
}

/* One taker, and one thread that runs tasks. */
static int check_two(void)
{
	const struct scope prefetch_1 = {.size = 1, .elements = 2, .takers = 1, .takes = 3, .helps = 3};
	const struct scope prefetch_2 = {.size = 2, .elements = 3, .takers = 1, .takes = 3, .helps = 3};
	struct scope scope = prefetch_1;
	int failed = 0;

	failed |= check("window_prefetch_1", 2, COMPLETE, prefetch_1);
	failed |= check("window_prefetch_2", 2, LONG, prefetch_2);
	scope.help = WEIRI_HELP_ALWAYS;
	failed |= check("window_prefetch_1_shared", 2, COMPLETE, scope);
	scope = (struct scope){.size = 1, .elements = 2, .takers = 1, .takes = 3, .helps = 3, .has_work = true};
	failed |= check("window_map_1", 2, LONG, scope);
	scope.size = 2;
	failed |= check("window_map_2", 2, LONG, scope);
	scope.help = WEIRI_HELP_ALWAYS;
	scope.counts = true;
	failed |= check("window_map_2_shared", 2, LONG, scope);
	scope.is_unordered = true;
	failed |= check("window_unordered_2_shared", 2, ONLY_LONG, scope);
	scope.help = WEIRI_HELP_NEVER;
	scope.counts = false;
	failed |= check("window_unordered_2", 2, LONG, scope);
	/* Nothing is done to the elements. */
	scope.has_work = false;
	scope.size = 1;
	failed |= check("window_unordered_prefetch_1", 2, COMPLETE, scope);
	return failed;
}

/* The taker closes the window under way. */
static int check_closed(void)
{
	struct scope scope = {.size = 2, .elements = 2, .takers = 1, .takes = 1, .helps = 2, .closes = true};
	int failed = check("window_closed_prefetch", 2, COMPLETE, scope);

	scope.has_work = true;
	failed |= check("window_closed_map_2", 2, LONG, scope);
	scope.size = 1;
	failed |= check("window_closed_map_1", 2, COMPLETE, scope);
	scope.help = WEIRI_HELP_ALWAYS;
	failed |= check("window_closed_map_1_shared", 2, LONG, scope);
	scope.size = 2;
	scope.helps = 1;
	failed |= check("window_closed_map_by_2", 3, ONLY_LONG, scope);
	return failed;
}

/* The taker works, too, and one more element is read than may be worked on at a time. */
static int check_limit(void)
{
	struct scope scope = {.size = 1, .elements = 2, .takers = 1, .takes = 3, .helps = 2, .has_work = true};
	struct weir_model_program program;
	int failed = 0;

	scope.help = WEIRI_HELP_ALWAYS;
	scope.counts = true;
	failed |= check("window_limit_1", 2, LONG, scope);
	/* The helper reads the end while the taker works, and leaves it because of the limit. */
	scope.begun = true;
	scope.elements = 1;
	program = program_of("window_limit_end", 2, scope);
	failed |= scope_merged(&program, scope_long() ? 0 : 400000);
	scope.begun = false;
	/* With the taker, one helper of two is of use. */
	scope.size = 2;
	scope.elements = 3;
	scope.hurries = true;
	failed |= check("window_limit_2_by_2", 3, ONLY_LONG, scope);
	return failed;
}

/* The taker reads, works on and gives elements itself while nothing is under way, beside a helper that does so. */
static int check_passed(void)
{
	struct scope scope = {.size = 1, .elements = 2, .takers = 1, .takes = 2, .helps = 1, .has_work = true};
	int failed = 0;

	scope.help = WEIRI_HELP_ALWAYS;
	scope.passes = scope.begun = scope.counts = true;
	/* The second element passes while the helper is stopped anywhere, also right behind its finish of the first. */
	scope.helps_first = true;
	failed |= check_stops("window_passed_behind", 2, scope);
	scope.helps_first = false;
	scope.takes = 3;
	scope.helps = 2;
	failed |= check("window_passed_1", 2, SOME, scope);
	scope.closes = true;
	scope.takes = 1;
	failed |= check("window_passed_closed", 2, SOME, scope);
	scope.closes = false;
	scope.size = scope.takers = 2;
	failed |= check("window_passed_2_takers", 3, ONLY_LONG, scope);
	scope.takers = 1;
	scope.takes = 2;
	failed |= check_stops("window_passed_stopped", 2, scope);
	return failed;
}

/* Helpers leave free turns to the taker; nobody else waits for it. */
static int check_hurried(void)
{
	struct scope scope = {.size = 1, .elements = 2, .takers = 1, .takes = 3, .helps = 3, .hurries = true};
	int failed = 0;

	scope.help = WEIRI_HELP_IF_SHORT;
	failed |= check("window_hurried_1", 2, COMPLETE, scope);
	scope.help = WEIRI_HELP_NEVER;
	failed |= check("window_hurried_1_never", 2, LONG, scope);
	scope.help = WEIRI_HELP_ALWAYS;
	failed |= check("window_hurried_1_shared", 2, LONG, scope);
	scope.size = 2;
	scope.elements = 3;
	scope.help = WEIRI_HELP_IF_SHORT;
	failed |= check("window_hurried_2", 2, ONLY_LONG, scope);
	scope.takers = 2;
	scope.takes = scope.elements = 2;
	failed |= check("window_2_takers_hurried", 3, ONLY_LONG, scope);
	return failed;
}

/*
 * A taker that something else wakes waits again, for a later element, while the helper that finished the
 * element before still has to wake it.
 */
static int check_woken(void)
{
	struct scope scope = {.size = 2, .elements = 2, .takers = 1, .takes = 3, .helps = 1, .run = 1};
	struct weir_model_program program;

	scope.help = WEIRI_HELP_IF_SHORT;
	scope.hurries = scope.resumes = true;
	program = program_of("window_hurried_woken", 3, scope);
	return scope_preemptions(&program, scope_long() ? 3 : 2);
}

static int check_three(void)
{
	struct scope scope = {.size = 2, .elements = 2, .takers = 1, .takes = 2, .helps = 2};
	int failed = check("window_prefetch_2_by_2", 3, SOME, scope);

	scope.takers = 2;
	scope.takes = 1;
	failed |= check("window_2_takers_prefetch", 3, SOME, scope);
	scope.has_work = true;
	failed |= check("window_2_takers_map", 3, SOME, scope);
	scope.looks = true;
	failed |= check("window_2_takers_look", 3, SOME, scope);
	scope.looks = false;
	scope.help = WEIRI_HELP_ALWAYS;
	failed |= check("window_2_takers_map_shared", 3, SOME, scope);
	scope.takers = 1;
	scope.counts = true;
	failed |= check("window_map_2_by_2", 3, ONLY_LONG, scope);
	scope.is_unordered = true;
	failed |= check("window_unordered_2_by_2", 3, ONLY_LONG, scope);
	/* Slots come back in another order. */
	scope.elements = 4;
	scope.takes = 3;
	failed |= check("window_unordered_2_again", 3, SOME, scope);
	return failed;
}

static int check_stopped(void)
{
	struct scope scope = {.size = 2, .elements = 2, .takers = 1, .takes = 2, .helps = 2};
	int failed = check_stops("window_prefetch_stopped", 2, scope);

	scope.hurries = true;
	failed |= check_stops("window_hurried_stopped", 2, scope);
	scope.hurries = false;
	scope.has_work = true;
	scope.help = WEIRI_HELP_ALWAYS;
	failed |= check_stops("window_map_stopped", 2, scope);
	scope.closes = true;
	failed |= check_stops("window_closed_stopped", 2, scope);
	scope.closes = false;
	scope.takers = 2;
	scope.takes = 1;
	failed |= check_stops("window_2_takers_stopped", 3, scope);
	scope.looks = true;
	failed |= check_stops("window_2_takers_look_stopped", 3, scope);
	return failed;
}

int main(int argc, char **argv)
{
	int failed = 0;

	scope_arguments(argc, argv);
	failed |= check_two();
	failed |= check_closed();
	failed |= check_limit();
	failed |= check_passed();
	failed |= check_hurried();
	failed |= check_woken();
	failed |= check_three();
	failed |= check_stopped();
	return failed;
}
