/*
 * check_critical_section.c - critical sections: exclusion, and that everybody comes in who waits long enough.
 *
 * A scope gives each thread a row of calls, a letter each:
 *
 *   n  execute, at once      x  execute, waiting     t  the same, until a token fires     d  the same, with a deadline     F  fire the token
 *   e  execute, at once, with an error       s  start one for the pool     k  cancel what this thread started last, and give its handle back
 *   h  help the pool once
 *
 * Asked of every execution: nobody is inside with another (what is inside is plain memory, so that a race is a failure, too); who waits comes
 * in, is told of the token or of the deadline (all threads asleep is a failure of its own); an operation that was started completes once, and
 * ran once unless it was cancelled; in the end the section is free.
 */
#include <weir/critical_section.h>
#include <weir/reclaim.h>
#include <weir/time.h>

#include "base/atomic.h"
#include "model/scope.h"

enum { THREADS = 4 };

static const struct scope {
	const char *name;
	uint32_t flags;
	const char *calls[THREADS];
	uint64_t executions; /* in the short form */
	int waits;           /* a thread may be left asleep when another is stopped */
} scopes[] = {
	{"critical_section_2_at_once", 0, {"n", "n"}, 20000, 0},
	{"critical_section_2_at_once_twice", 0, {"nn", "nn"}, 4000, 0},
	{"critical_section_3_at_once", 0, {"n", "n", "n"}, 4000, 0},
	{"critical_section_at_once_beside_error", 0, {"en", "n"}, 60000, 0},
	{"critical_section_start_beside_at_once", 0, {"s", "n"}, 4000, 0},
	{"critical_section_start_and_cancel_beside_at_once", 0, {"sk", "n"}, 4000, 0},
	{"critical_section_start_and_cancel_beside_at_once_and_help", 0, {"sk", "n", "h"}, 4000, 0},
	{"critical_section_2_starts_beside_help", 0, {"s", "s", "h"}, 4000, 0},
	{"critical_section_fair_start_beside_at_once", WEIR_CRITICAL_SECTION_FAIR, {"s", "n"}, 4000, 0},
	{"critical_section_1_waits_beside_at_once", 0, {"x", "n"}, 10000, 1},
	{"critical_section_2_wait", 0, {"x", "x"}, 10000, 1},
	{"critical_section_2_wait_twice", 0, {"xx", "xx"}, 4000, 1},
	{"critical_section_3_wait", 0, {"x", "x", "x"}, 4000, 1},
	{"critical_section_fair_2_wait", WEIR_CRITICAL_SECTION_FAIR, {"x", "x"}, 4000, 1},
	{"critical_section_1_waits_beside_error", 0, {"x", "e"}, 4000, 1},
	{"critical_section_token_beside_1_that_waits", 0, {"t", "x", "F"}, 4000, 1},
	{"critical_section_2_tokens_beside_at_once", 0, {"t", "tF", "n"}, 4000, 1},
	{"critical_section_deadline_beside_1_that_waits", 0, {"d", "x"}, 4000, 1},
	{"critical_section_2_deadlines_beside_1_that_waits", 0, {"d", "d", "x"}, 4000, 1},
	{"critical_section_1_waits_beside_start_and_cancel", 0, {"x", "nskh"}, 4000, 1},
};

static struct scene {
	const struct scope *scope;
	weir_critical_section *section;
	weir_pool *pool;
	weir_cancel *token;
	weir_critical_section_op *op[THREADS];
	int inside, runs, failures;                           /* plain: only who is inside touches them */
	_Atomic(int) wanted, refused, completions, cancelled; /* summed up in finish() */
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

static void give_back(size_t me)
{
	weir_critical_section_op_release(scene.op[me]);
	scene.op[me] = NULL;
}

static void call(size_t me, char what)
{
	switch (what) {
	case 'n': execute(0, NULL, 0); break;
	case 'e': execute(0, NULL, 1); break;
	case 'x': execute(WEIR_NO_DEADLINE, NULL, 0); break;
	case 't': execute(WEIR_NO_DEADLINE, scene.token, 0); break;
	case 'd': execute(1000, NULL, 0); break;
	case 'F': (void)weir_cancel_fire(scene.token, NULL); break;
	case 's': start(me); break;
	case 'h': (void)weir_pool_help(scene.pool, 1); break;
	default: weir_critical_section_op_cancel(scene.op[me]); give_back(me);
	}
}

static void thread(void *context, size_t me)
{
	(void)context;
	scope_calls(me, scene.scope->calls[me], call);
}

static void setup(void *context)
{
	struct weir_critical_section_options options = {.struct_size = sizeof(options), .flags = scene.scope->flags};
	struct weir_pool_options pool = {.struct_size = sizeof(pool), .flags = WEIR_POOL_NO_THREADS};

	(void)context;
	weir_model_assert(weir_critical_section_create(&options, &scene.section, NULL) == WEIR_OK);
	weir_model_assert(weir_pool_create(&pool, &scene.pool, NULL) == WEIR_OK);
	weir_model_assert(weir_cancel_create(NULL, &scene.token) == WEIR_OK);
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
	weir_model_assert(weir_pool_destroy(scene.pool, NULL) == WEIR_OK);
	weir_model_assert(weir_critical_section_execute(scene.section, alone, NULL, 0, NULL, NULL) == WEIR_OK);
	weir_model_assert(weir_critical_section_destroy(scene.section, NULL) == WEIR_OK);
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
	scope_arguments(argc, argv);
	return scope_all(prepare, sizeof(scopes) / sizeof(scopes[0]));
}
