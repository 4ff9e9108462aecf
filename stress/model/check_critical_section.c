/*
 * check_critical_section.c - critical sections: exclusion, and every thread that waits long enough
 * enters.
 *
 * A scope gives each thread a row of calls, a letter each; LETTERS says what each letter does.
 *
 * Required of every execution:
 * - At most one execution is inside at a time. Executions access plain memory, so two that overlap
 *   also show as a race.
 * - A waiter enters, or returns because of the token or the deadline. (The checker reports a
 *   failure if all threads sleep.)
 * - A started operation completes once. Its function has run once, unless the operation was
 *   cancelled.
 * - At the end the section is free.
 * - If `l` and `r` both entered their first section, at least one of them enters its second
 *   section: refusals in two sections have one order.
 */
#include <weir/critical_section.h>
#include <weir/reclaim.h>
#include <weir/time.h>

#include "base/atomic.h"
#include "model/scope.h"
#include "sync/look.h"

enum { THREADS = 4 };

static const struct scope {
	const char *name;
	uint32_t flags;
	const char *calls[THREADS];
	uint64_t executions; /* in the short form */
	int waits;           /* a thread may stay asleep if another thread is stopped */
} scopes[] = {
	{"critical_section_2_at_once", 0, {"x", "x"}, 20000, 0},
	{"critical_section_2_at_once_twice", 0, {"xx", "xx"}, 4000, 0},
	{"critical_section_3_at_once", 0, {"x", "x", "x"}, 4000, 0},
	{"critical_section_at_once_beside_error", 0, {"ex", "x"}, 60000, 0},
	{"critical_section_start_beside_at_once", 0, {"s", "x"}, 4000, 0},
	{"critical_section_start_and_cancel_beside_at_once", 0, {"sk", "x"}, 4000, 0},
	{"critical_section_start_and_cancel_beside_at_once_and_help", 0, {"sk", "x", "h"}, 4000, 0},
	{"critical_section_2_starts_beside_help", 0, {"s", "s", "h"}, 4000, 0},
	{"critical_section_start_and_destroy_the_pool_beside_at_once", 0, {"x", "sD"}, 4000, 0},
	{"critical_section_fair_start_beside_at_once", WEIR_CRITICAL_SECTION_FAIR, {"s", "x"}, 4000, 0},
	{"critical_section_left_and_tried_across", 0, {"l", "r"}, 20000, 0},
	{"critical_section_1_waits_beside_at_once", 0, {"X", "x"}, 10000, 1},
	{"critical_section_2_wait", 0, {"X", "X"}, 10000, 1},
	{"critical_section_2_wait_twice", 0, {"XX", "XX"}, 4000, 1},
	{"critical_section_3_wait", 0, {"X", "X", "X"}, 4000, 1},
	{"critical_section_fair_2_wait", WEIR_CRITICAL_SECTION_FAIR, {"X", "X"}, 4000, 1},
	{"critical_section_1_waits_beside_error", 0, {"X", "e"}, 4000, 1},
	{"critical_section_token_beside_1_that_waits", 0, {"t", "X", "F"}, 4000, 1},
	{"critical_section_2_tokens_beside_at_once", 0, {"t", "tF", "x"}, 4000, 1},
	{"critical_section_deadline_beside_1_that_waits", 0, {"d", "X"}, 4000, 1},
	{"critical_section_2_deadlines_beside_1_that_waits", 0, {"d", "d", "X"}, 4000, 1},
	{"critical_section_look_beside_at_once", 0, {"LX", "x"}, 20000, 1},
	{"critical_section_2_look", 0, {"LX", "LX"}, 20000, 1},
	{"critical_section_2_look_twice", 0, {"LXX", "LXX"}, 4000, 1},
	{"critical_section_look_beside_1_that_waits_and_at_once", 0, {"LX", "X", "x"}, 4000, 1},
	{"critical_section_look_and_deadline_beside_1_that_waits", 0, {"Ld", "X"}, 4000, 1},
	{"critical_section_look_beside_start", 0, {"LX", "sh"}, 4000, 1},
	{"critical_section_fair_nobody_looks", WEIR_CRITICAL_SECTION_FAIR, {"LX", "X"}, 4000, 1},
	{"critical_section_1_waits_beside_start_and_cancel", 0, {"X", "xskh"}, 4000, 1},
};

static struct scene {
	const struct scope *scope;
	weir_critical_section *section, *second;
	weir_pool *pool;
	weir_cancel *token;
	weir_pending *op[THREADS];
	/* plain: only the execution inside accesses them */
	int inside, runs, failures;
	_Atomic(int) wanted, refused, completions, cancelled; /* added up by finish() */
	_Atomic(int) refused_across;
} scene;

static void count(_Atomic(int) *sum)
{
	(void)weiri_fetch_add_relaxed(sum, 1);
}

static int counted(_Atomic(int) *sum)
{
	return weiri_load_relaxed(sum);
}

static enum weir_status alone(void *context, weir_error *error)
{
	enum weir_status status = context != NULL ? WEIR_ABORTED : WEIR_OK;

	(void)error;
	weir_model_assert(scene.inside == 0);
	scene.inside = 1;
	scene.runs++;
	scene.failures += status != WEIR_OK;
	scene.inside = 0;
	return status;
}

static void execute(uint64_t deadline_ns, weir_cancel *token, int fails)
{
	enum weir_status status =
		weir_critical_section_execute(scene.section, alone, fails ? &scene : NULL, deadline_ns, token, NULL);

	count(&scene.wanted);
	if (status == (fails ? WEIR_ABORTED : WEIR_OK))
		return;
	count(&scene.refused);
	weir_model_assert(status == (token != NULL ? WEIR_CANCELLED : WEIR_DEADLINE_EXCEEDED));
	weir_model_assert(token != NULL || deadline_ns != WEIR_NO_DEADLINE);
}

static enum weir_status nothing(void *context, weir_error *error)
{
	(void)context, (void)error;
	return WEIR_OK;
}

static int enters(weir_critical_section *section)
{
	return weir_critical_section_execute(section, nothing, NULL, 0, NULL, NULL) == WEIR_OK;
}

static void execute_across(weir_critical_section *first, weir_critical_section *second)
{
	if (enters(first) && !enters(second))
		count(&scene.refused_across);
}

static void completed(void *context, enum weir_status status, const weir_error *error)
{
	(void)context, (void)error;
	weir_model_assert(status == WEIR_OK || status == WEIR_CANCELLED);
	count(&scene.completions);
	if (status != WEIR_OK)
		count(&scene.cancelled);
}

static void start(size_t me)
{
	weir_model_assert(
		weir_critical_section_start(scene.section, scene.pool, alone, NULL, completed, &scene.op[me], NULL) == WEIR_OK);
}

/* The thread that left the section may still be submitting. */
static void destroy_when_done(void)
{
	if (weir_pool_help(scene.pool, 1) == 0)
		return;
	weir_model_assert(weir_pool_destroy(scene.pool, NULL) == WEIR_OK);
	scene.pool = NULL;
}

static void give_back(size_t me)
{
	weir_pending_release(scene.op[me]);
	scene.op[me] = NULL;
}

static void cancel(size_t me)
{
	weir_pending_cancel(scene.op[me], NULL);
	give_back(me);
}

#define LETTERS(LETTER) \
	LETTER('x', "execute", execute(0, NULL, 0)) \
	LETTER('X', "execute, waiting", execute(WEIR_NO_DEADLINE, NULL, 0)) \
	LETTER('t', "execute, waiting until the token fires", execute(WEIR_NO_DEADLINE, scene.token, 0)) \
	LETTER('d', "execute, waiting until a deadline", execute(1000, NULL, 0)) \
	LETTER('F', "fire the token", (void)weir_cancel_fire(scene.token, NULL)) \
	LETTER('e', "execute, with an error", execute(0, NULL, 1)) \
	LETTER('s', "start an execution for the pool", start(me)) \
	LETTER('k', "cancel what this thread started last, and release its handle", cancel(me)) \
	LETTER('h', "help the pool once", (void)weir_pool_help(scene.pool, 1)) \
	LETTER('D', "help the pool once; if that ran what this thread started, destroy the pool", destroy_when_done()) \
	LETTER('L', "from here on, look once before a wait (sync/look.h)", weiri_looks_once = true) \
	LETTER('l', "execute in the section; if it was entered, then in the second", \
	       execute_across(scene.section, scene.second)) \
	LETTER('r', "execute in the second section; if it was entered, then in the first", \
	       execute_across(scene.second, scene.section))

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
	scope_calls(me, scene.scope->calls[me], call);
}

static void setup(void *context)
{
	struct weir_critical_section_options options = {WEIR_CRITICAL_SECTION_OPTIONS_INIT, .flags = scene.scope->flags};
	struct weir_pool_options pool = {WEIR_POOL_OPTIONS_INIT, .flags = WEIR_POOL_NO_THREADS};

	(void)context;
	weir_model_assert(weir_critical_section_create(&options, &scene.section, NULL) == WEIR_OK);
	weir_model_assert(weir_critical_section_create(&options, &scene.second, NULL) == WEIR_OK);
	weir_model_assert(weir_pool_create(&pool, &scene.pool, NULL) == WEIR_OK);
	weir_model_assert(weir_cancel_create(NULL, &scene.token, NULL) == WEIR_OK);
}

static int starts(void)
{
	int sum = 0;

	for (size_t i = 0; i < THREADS && scene.scope->calls[i] != NULL; i++) {
		for (const char *at = scene.scope->calls[i]; *at != '\0'; at++)
			sum += *at == 's';
	}
	return sum;
}

static void finish(void *context)
{
	(void)context;
	while (weir_pool_help(scene.pool, 1) != 0)
		;
	for (size_t i = 0; i < THREADS; i++)
		give_back(i);
	weir_model_assert(counted(&scene.completions) == starts());
	weir_model_assert(scene.runs ==
	                  counted(&scene.wanted) - counted(&scene.refused) + starts() - counted(&scene.cancelled));
	weir_model_assert(counted(&scene.refused_across) < 2);
	weir_model_assert(weir_pool_destroy(scene.pool, NULL) == WEIR_OK);
	weir_model_assert(weir_critical_section_execute(scene.section, alone, NULL, 0, NULL, NULL) == WEIR_OK);
	weir_model_assert(weir_critical_section_destroy(scene.section, NULL) == WEIR_OK);
	weir_model_assert(weir_critical_section_destroy(scene.second, NULL) == WEIR_OK);
	weir_cancel_release(scene.token);
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
