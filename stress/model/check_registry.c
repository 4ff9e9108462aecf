/*
 * check_registry.c - queues that are created and destroyed while a walk reads all of them.
 *
 * A scope gives each thread a row of calls, a letter each; LETTERS says what each letter does.
 *
 * Required of every execution: a walk finds each queue at most once, and finds every queue that no
 * thread destroys. A queue that a walk reads is complete, even if its owner destroys it meanwhile;
 * the walk then frees the queue. (The checker itself finds double frees and uses of freed memory.)
 */
#include <string.h>
#include <weir/announce.h>
#include <weir/reclaim.h>

#include "base/atomic.h"
#include "model/scope.h"
#include "queue/announce.h"
#include "queue/queue.h"
#include "sync/registry.h"
#include "reclaim/section.h"

enum { THREADS = 3, MOST = 16 };

static const struct scope {
	const char *name;
	int stays; /* number of queues that no thread destroys */
	const char *calls[THREADS];
} scopes[] = {
	{"registry_walk_beside_destroy", 0, {"w", "d"}},
	{"registry_walk_beside_create", 1, {"w", "c"}},
	{"registry_walk_beside_destroy_and_create", 1, {"w", "dc"}},
	{"registry_walk_beside_destroy_and_collection", 1, {"w", "dn"}},
	{"registry_create_beside_destroy_and_collection", 1, {"c", "dn"}},
	{"registry_2_walks_beside_destroy", 0, {"w", "w", "d"}},
	{"registry_walk_beside_2_destroys", 0, {"w", "d", "d"}},
	{"registry_walk_beside_announcement", 0, {"w", "a"}},
	{"registry_walk_beside_announcement_and_destroy", 0, {"w", "adn"}},
};

static struct scene {
	const struct scope *scope;
	weir_queue *staying[MOST];
	weir_queue *own[THREADS];
} scene;

static weir_queue *make(void)
{
	struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .capacity = 1, .name = "q"};
	weir_queue *queue = NULL;

	weir_model_assert(weir_queue_create(&options, &queue, NULL) == WEIR_OK);
	return queue;
}

static void look_at(struct weiri_scope *scope, weir_queue *queue)
{
	weir_queue_announcement *one = NULL;

	weir_model_assert(queue->capacity == 1 && queue->name[0] == 'q' && weiri_queue_size(queue) == 0);
	for (int i = 0; i < 2 && (one = weiri_announced_next(scope, queue, one)) != NULL; i++)
		weir_model_assert(one->role == WEIR_QUEUE_CONSUMER && one->as[0] == 'x');
}

/* Finds and reads the next queue. Returns 0 if there is none. */
static int step(struct weiri_registry_place *place, weir_queue **met)
{
	struct weiri_scope scope = weiri_scope_enter(weiri_record_get());
	struct weiri_registered *entry = weiri_registry_next(&scope, place);
	int ours = 0;

	if (entry != NULL) {
		*met = weiri_registered_object(entry);
		look_at(&scope, *met);
		ours = weiri_registry_let_go(entry);
	}
	weiri_scope_leave(&scope);
	if (ours)
		weiri_queue_free(*met);
	return entry != NULL;
}

static void walk(void)
{
	struct weiri_registry_place place = {0};
	uint64_t numbers[MOST];
	int stays = 0;
	size_t count = 0;
	weir_queue *met = NULL;

	while (step(&place, &met)) {
		for (size_t i = 0; i < count; i++)
			weir_model_assert(numbers[i] != place.number);
		weir_model_assert(count < MOST);
		numbers[count++] = place.number;
		for (int i = 0; i < scene.scope->stays; i++)
			stays += met == scene.staying[i];
	}
	weir_model_assert(stays == scene.scope->stays);
}

static void announce(weir_queue *queue)
{
	weir_queue_announcement *announcement;

	weir_model_assert(weir_queue_announce(queue, WEIR_QUEUE_CONSUMER, "x", &announcement, NULL) == WEIR_OK);
	weir_queue_withdraw(announcement);
}

static void destroy(size_t me)
{
	weir_model_assert(weir_queue_destroy(scene.own[me], NULL) == WEIR_OK);
	scene.own[me] = NULL;
}

static void new_era_and_collection(void)
{
	(void)weiri_fetch_add_seq_cst(&weiri_era, 1);
	(void)weir_reclaim_flush(0);
}

#define LETTERS(LETTER) \
	LETTER('c', "create a queue", scene.own[me] = make()) \
	LETTER('d', "destroy the queue that this thread created last, or else the one that setup created for it", \
	       destroy(me)) \
	LETTER('a', "announce, and withdraw", announce(scene.own[me])) \
	LETTER('w', "walk: hold each queue in turn and read it", walk()) \
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
	scope_calls(me, scene.scope->calls[me], call);
}

static void setup(void *context)
{
	(void)context;
	for (int i = 0; i < scene.scope->stays; i++)
		scene.staying[i] = make();
	for (size_t i = 0; i < THREADS; i++) {
		const char *calls = scene.scope->calls[i];

		if (calls != NULL && strpbrk(calls, "da") != NULL)
			scene.own[i] = make();
	}
}

static void finish(void *context)
{
	(void)context;
	for (int i = 0; i < scene.scope->stays; i++)
		weir_model_assert(weir_queue_destroy(scene.staying[i], NULL) == WEIR_OK);
	for (size_t i = 0; i < THREADS; i++)
		weir_model_assert(weir_queue_destroy(scene.own[i], NULL) == WEIR_OK);
	weir_model_assert(weir_reclaim_flush(0) == WEIR_OK);
}

static struct scope_plan prepare(size_t index)
{
	const struct scope *scope = &scopes[index];

	scene = (struct scene){.scope = scope};
	return (struct scope_plan){
		.program = {scope->name, scope_threads(scope->calls, THREADS), &scene, sizeof(scene), setup, thread, finish},
		.executions = 5000,
		.stopped = 100};
}

int main(int argc, char **argv)
{
	static const struct scope_letter letters[] = {LETTERS(LETTER_ROW){0, NULL}};

	scope_letters(argc, argv, letters);
	scope_arguments(argc, argv);
	return scope_all(prepare, sizeof(scopes) / sizeof(scopes[0]));
}
