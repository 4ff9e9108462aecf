/*
 * check_published.c - a list that grows at its front: walks see complete items, each pushed item is
 * in the list once, and no push succeeds after the seal. A tree that grows at its leaves: a look-up
 * sees complete items, none is lost, and no key is there twice. A spare block: no two threads have
 * it, and it comes whole. A handoff: each task is taken once, in the order of the thread that put it.
 */
#include <stdio.h>

#include "model/scope.h"
#include "run/handoff.h"
#include "run/published.h"
#include "run/published_tree.h"
#include "run/spare.h"

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

/* -- the tree ---------------------------------------------------------------------------------- */

struct leaf {
	struct weiri_branch branch;
	int key;
};

static struct garden {
	struct weiri_published_tree tree;
	struct leaf leaves[MOST + 1];
	int keys[MOST + 1]; /* the last leaf is there from the beginning */
	int inserted[MOST];
	int looked_for;
} garden;

static bool has_key(const void *key, const struct weiri_branch *branch)
{
	return *(const int *)key == ((const struct leaf *)(const void *)branch)->key;
}

/* Keys 0 and 4 have equal hashes. Keys 0 and 1 part at the root. */
static uint64_t hash_of(int key)
{
	return (uint64_t)key % 4;
}

static bool insert(size_t who)
{
	struct leaf *leaf = &garden.leaves[who];

	leaf->key = garden.keys[who];
	weiri_branch_init(&leaf->branch, hash_of(leaf->key));
	return weiri_published_tree_insert(&garden.tree, &leaf->branch, has_key, &leaf->key) == NULL;
}

static bool is_there(int key)
{
	return weiri_published_tree_find(&garden.tree, hash_of(key), has_key, &key) != NULL;
}

static void setup_tree(void *context)
{
	(void)context;
	weiri_published_tree_init(&garden.tree);
	if (garden.keys[MOST] >= 0)
		(void)insert(MOST);
}

static void insert_or_find(void *context, size_t who)
{
	(void)context;
	if (who < MOST)
		garden.inserted[who] = insert(who);
	else if (is_there(garden.looked_for))
		weir_model_assert(is_there(garden.looked_for)); /* an item stays */
}

static void each_key_once(void *context)
{
	int first = garden.keys[0], second = garden.keys[1], old = garden.keys[MOST];

	(void)context;
	weir_model_assert(is_there(first) && is_there(second) && (old < 0 || is_there(old)));
	weir_model_assert(garden.inserted[0] + garden.inserted[1] ==
	                  (first != old) + (second != old) - (first == second && first != old));
}

/* Two inserts, and perhaps a look-up of the first key beside them. `old` is there before; -1: nothing is. */
static int check_tree(const char *name, size_t threads, int first, int second, int old)
{
	struct weir_model_program program = {name,       threads,        &garden,      sizeof(garden),
	                                     setup_tree, insert_or_find, each_key_once};

	garden = (struct garden){.keys = {first, second, old}, .looked_for = first};
	return scope_complete(&program) | scope_stops(&program, 0, NULL, NULL);
}

/* -- the spare block --------------------------------------------------------------------------- */

static struct kept {
	struct weiri_spare spare;
	int blocks[3]; /* plain: put and take hand them over */
	int own[3];    /* which block each thread has at its end, plus 1 */
} kept;

static void setup_spare(void *context)
{
	(void)context;
	weiri_spare_init(&kept.spare);
	kept.blocks[0] = 1;
	(void)weiri_spare_put(&kept.spare, &kept.blocks[0]);
}

/* Takes the spare block, or uses its own; and puts it back. */
static void take_and_put(void *context, size_t who)
{
	int *block = weiri_spare_take(&kept.spare);

	(void)context;
	if (block == NULL) {
		block = &kept.blocks[who + 1];
		*block = 1;
	}
	weir_model_assert(*block == 1);
	*block = 2; /* a second thread with this block would race */
	*block = 1;
	if (!weiri_spare_put(&kept.spare, block))
		kept.own[who] = 1 + (int)(block - kept.blocks);
}

static void no_block_is_lost(void *context)
{
	int *block = weiri_spare_take(&kept.spare);

	(void)context;
	weir_model_assert(block != NULL && *block == 1);
	for (int i = 0; i < 3; i++)
		weir_model_assert(kept.own[i] == 0 || &kept.blocks[kept.own[i] - 1] != block);
	weir_model_assert(kept.own[0] == 0 || kept.own[0] != kept.own[1]);
}

static int check_spare(const char *name, size_t threads)
{
	struct weir_model_program program = {name,        threads,      &kept,           sizeof(kept),
	                                     setup_spare, take_and_put, no_block_is_lost};

	kept = (struct kept){.own = {0}};
	return scope_complete(&program) | scope_stops(&program, 0, NULL, NULL);
}

/* -- the handoff ------------------------------------------------------------------------------- */

enum { TASKS = 3 };

struct handed {
	weir_task task;
	int data; /* plain: the put hands it over */
	int taken;
};

static struct relay {
	struct weiri_handoff handoff;
	struct handed tasks[TASKS];
	int last; /* of those of thread 0: the one that was taken last, plus 1 */
} relay;

static void setup_handoff(void *context)
{
	(void)context;
	weiri_handoff_init(&relay.handoff);
}

static void take_handed(void)
{
	weir_task *task = weiri_handoff_take_all(&relay.handoff);

	while (task != NULL) {
		struct handed *handed = (struct handed *)(void *)task;
		int number = (int)(handed - relay.tasks);

		task = task->next;
		weir_model_assert(handed->data == 7 && handed->taken++ == 0);
		if (number < 2) {
			weir_model_assert(number == relay.last);
			relay.last = number + 1;
		}
	}
}

/* Thread 0 puts two tasks, thread 1 one, and thread 2 takes twice. */
static void put_or_take(void *context, size_t who)
{
	(void)context;
	if (who == 2) {
		take_handed();
		take_handed();
		return;
	}
	for (size_t i = who == 0 ? 0 : 2; i < (who == 0 ? 2 : 3); i++) {
		relay.tasks[i].data = 7;
		weiri_handoff_put(&relay.handoff, &relay.tasks[i].task);
	}
}

static void each_task_once(void *context)
{
	(void)context;
	take_handed();
	for (int i = 0; i < TASKS; i++)
		weir_model_assert(relay.tasks[i].taken == 1);
}

static int check_handoff(const char *name)
{
	struct weir_model_program program = {name, 3, &relay, sizeof(relay), setup_handoff, put_or_take, each_task_once};

	relay = (struct relay){.last = 0};
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
	bad |= check_tree("published_tree_2_inserts_of_one_key", 2, 0, 0, -1);
	bad |= check_tree("published_tree_2_inserts_of_equal_hashes_beside_find", 3, 0, 4, -1);
	bad |= check_tree("published_tree_2_inserts_below_a_leaf_beside_find", 3, 0, 1, 4);
	bad |= check_tree("published_tree_insert_of_a_key_that_is_there", 3, 4, 0, 4);
	bad |= check_spare("published_spare_2_users", 2);
	bad |= check_handoff("published_handoff_2_putters_beside_a_taker");
	return bad;
}
