/*
 * check_published.c - a list that grows at its front. Walks see complete items, each pushed item is
 * in the list once, and no push succeeds after the seal.
 */
#include <stdio.h>

#include "model/scope.h"
#include "run/published.h"

enum { MOST = 2 };

struct item {
	struct weiri_published link;
	int data;
};

static struct scene {
	struct weiri_published_list list;
	struct item items[MOST];
	int pushed[MOST];
	size_t pushers;
	int sealed_with; /* items that the seal returned */
} scene;

static void setup(void *context)
{
	(void)context;
	weiri_published_init(&scene.list);
}

static int count(const struct weiri_published *link)
{
	int found = 0;

	for (; link != NULL; link = link->next, found++)
		weir_model_assert(((const struct item *)link)->data == 7);
	return found;
}

static void push(size_t who)
{
	struct weiri_published *first;

	scene.items[who].data = 7;
	do {
		first = weiri_published_first(&scene.list);
		(void)count(first); /* as a search for a name does */
		scene.pushed[who] = weiri_published_push_after(&scene.list, &scene.items[who].link, first);
	} while (!scene.pushed[who] && !weiri_published_sealed(&scene.list));
}

static void walk_beside_pushes(void *context, size_t who)
{
	(void)context;
	if (who < scene.pushers)
		push(who);
	else
		(void)count(weiri_published_first(&scene.list));
}

static void seal_beside_pushes(void *context, size_t who)
{
	(void)context;
	if (who < scene.pushers)
		push(who);
	else
		scene.sealed_with = count(weiri_published_seal(&scene.list));
}

/* A thread that walks a sealed list sees the items that the sealing thread saw. */
static void seal_and_walk(void *context, size_t who)
{
	(void)context;
	if (who == 0)
		push(who);
	else if (who == 1)
		(void)count(weiri_published_seal(&scene.list));
	else if (weiri_published_sealed(&scene.list))
		(void)count(weiri_published_first(&scene.list));
}

static void all_there(void *context)
{
	(void)context;
	weir_model_assert(scene.pushed[0] + scene.pushed[1] == (int)scene.pushers);
	weir_model_assert(count(weiri_published_first(&scene.list)) == (int)scene.pushers);
}

static void none_after_the_seal(void *context)
{
	(void)context;
	weir_model_assert(scene.pushed[0] + scene.pushed[1] == scene.sealed_with);
	weir_model_assert(count(weiri_published_first(&scene.list)) == scene.sealed_with);
}

static int check(const char *name, size_t threads, size_t pushers, void (*thread)(void *, size_t),
                 void (*finish)(void *))
{
	struct weir_model_program program = {name, threads, &scene, sizeof(scene), setup, thread, finish};

	scene = (struct scene){.pushers = pushers};
	return scope_complete(&program) | scope_stops(&program, 0, NULL, NULL);
}

int main(int argc, char **argv)
{
	int bad = 0;

	scope_arguments(argc, argv);
	bad |= check("published_push_beside_walk", 2, 1, walk_beside_pushes, all_there);
	bad |= check("published_2_pushes_beside_walk", 3, 2, walk_beside_pushes, all_there);
	bad |= check("published_2_pushes_beside_seal", 3, 2, seal_beside_pushes, none_after_the_seal);
	bad |= check("published_push_beside_seal_and_walk", 3, 1, seal_and_walk, NULL);
	return bad;
}
