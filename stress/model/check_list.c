/*
 * check_list.c - the list of waiters. A walk during removals ends, even if a remover is stopped
 * half way. Each node is removed once, and exists as long as any thread may reach it in a walk.
 */
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <weir/reclaim.h>

#include "base/compiler.h"
#include "model/scope.h"
#include "sync/list.h"

enum { MOST = 3 };

struct entry {
	struct weiri_list_node node;
	int data;    /* written before the entry is appended */
	int removed; /* written by the thread that removes the entry, just before */
};

static struct scene {
	struct weiri_list list;
	struct entry *entries[MOST];
	size_t inside, removers;
	_Atomic(int) gone;       /* entries whose end was reported */
	int seen[MOST];          /* by each thread */
	_Atomic(int) flag;       /* set before a walk */
	int flag_seen, node_met; /* after an append; by the walk */
} scene;

/*
 * Reclaims an entry. It frees the memory, so that the checker detects a thread that still reads the
 * entry.
 */
static void ended(struct weiri_retired *retired)
{
	struct entry *entry = WEIRI_CONTAINER_OF(retired, struct entry, node.retired);

	weir_model_assert(entry->data == 7 && entry->removed == 1);
	weir_model_release(entry);
	weiri_fetch_add_relaxed(&scene.gone, 1);
}

static struct entry *new_entry(void)
{
	struct entry *entry = weir_model_allocate(sizeof(*entry), 16);

	entry->removed = 0;
	entry->data = 7;
	weiri_list_node_init(&entry->node, sizeof(*entry), ended);
	return entry;
}

static void append(struct weiri_scope *scope, size_t number)
{
	scene.entries[number] = new_entry();
	weiri_list_append(scope, &scene.list, &scene.entries[number]->node);
}

static int take_out(struct weiri_scope *scope, size_t number)
{
	scene.entries[number]->removed = 1;
	return weiri_list_remove(scope, &scene.list, &scene.entries[number]->node);
}

static int count(struct weiri_scope *scope)
{
	struct weiri_list_node *node = NULL;
	int found = 0;

	for (; (node = weiri_list_next(scope, &scene.list, node)) != NULL; found++)
		weir_model_assert(WEIRI_CONTAINER_OF(node, struct entry, node)->data == 7);
	return found;
}

static void setup(void *context)
{
	struct weiri_scope scope = weiri_scope_enter(weiri_record_get());

	(void)context;
	for (size_t i = 0; i < scene.inside; i++)
		append(&scope, i);
	weiri_scope_leave(&scope);
}

/* Removes what is left, and checks that every entry ended once. */
static void empty_list(size_t left, size_t all)
{
	struct weiri_scope scope = weiri_scope_enter(weiri_record_get());
	size_t taken = 0;

	for (size_t i = 0; i < MOST; i++) {
		if (scene.entries[i] != NULL && scene.seen[i] == 0)
			taken += (size_t)take_out(&scope, i);
	}
	weir_model_assert(taken == left && count(&scope) == 0);
	weiri_scope_leave(&scope);
	weir_model_assert(weir_reclaim_flush(0) == WEIR_OK && weiri_load_relaxed(&scene.gone) == (int)all);
}

/*
 * Thread 0 walks while each of the other threads removes an entry; the second entry is removed
 * first. seen[] is by entry.
 */
static void walk_beside_removals(void *context, size_t number)
{
	struct weiri_scope scope = weiri_scope_enter(weiri_record_get());

	(void)context;
	if (number == 0)
		(void)count(&scope);
	else
		scene.seen[number == 1] = take_out(&scope, number == 1);
	weiri_scope_leave(&scope);
}

static void others_left(void *context)
{
	(void)context;
	weir_model_assert(scene.seen[1] == 1 && scene.seen[0] == (scene.removers == 2));
	empty_list(scene.inside - scene.removers, scene.inside);
}

/*
 * An era begins meanwhile, as in a collection. The removal must not read an older era than a walk
 * that finds the entry. Otherwise the remover's collection frees the entry during the walk.
 */
static void walk_beside_removal_and_era(void *context, size_t number)
{
	struct weiri_scope scope;

	(void)context;
	if (number == 2) {
		weiri_fetch_add_seq_cst(&weiri_era, 1);
		return;
	}
	scope = weiri_scope_enter(weiri_record_get());
	if (number == 0)
		scene.node_met = count(&scope);
	else
		scene.seen[0] = take_out(&scope, 0);
	weiri_scope_leave(&scope);
	if (number == 1)
		(void)weir_reclaim_flush(0);
}

/*
 * L3: thread 0 is at an entry while thread 1 removes it. Before that, thread 1 has appended another
 * entry behind it, which is younger than the walk and is freed first. If the walk followed the link
 * of the removed entry, it would come to freed memory.
 */
static void walk_on_a_removed_entry(void *context, size_t number)
{
	struct weiri_scope scope;

	(void)context;
	if (number == 1)
		weiri_fetch_add_seq_cst(&weiri_era, 1);
	scope = weiri_scope_enter(weiri_record_get());
	if (number == 0) {
		scene.node_met = count(&scope);
	} else {
		append(&scope, 1);
		scene.seen[0] = take_out(&scope, 0);
		scene.seen[1] = take_out(&scope, 1);
	}
	weiri_scope_leave(&scope);
	if (number == 1)
		(void)weir_reclaim_flush(0);
}

static void both_gone(void *context)
{
	(void)context;
	empty_list(0, 2);
}

static void none_left(void *context)
{
	(void)context;
	empty_list(0, scene.inside);
}

/*
 * A thread appends and then reads a flag; another thread sets the flag and then walks. At least one
 * of them sees the write of the other.
 */
static void append_beside_flag(void *context, size_t number)
{
	struct weiri_scope scope = weiri_scope_enter(weiri_record_get());

	(void)context;
	if (number == 0) {
		append(&scope, 0);
		scene.flag_seen = weiri_load_seq_cst(&scene.flag) != 0;
	} else {
		weiri_store_seq_cst(&scene.flag, 1);
		scene.node_met = count(&scope);
	}
	weiri_scope_leave(&scope);
}

static void one_saw_the_other(void *context)
{
	(void)context;
	weir_model_assert(scene.flag_seen || scene.node_met == 1);
	empty_list(1, 1);
}

/*
 * A walk reads the contents of an entry, which were written before the entry was appended. Two
 * entries are appended at the same place.
 */
static void appends_beside_walk(void *context, size_t number)
{
	struct weiri_scope scope = weiri_scope_enter(weiri_record_get());

	(void)context;
	if (number < 2)
		append(&scope, number);
	else
		scene.node_met = count(&scope);
	weiri_scope_leave(&scope);
}

static void both_appended(void *context)
{
	(void)context;
	weir_model_assert(scene.node_met <= 2);
	empty_list(2, 2);
}

/* Both threads remove the same entry; one of them succeeds, and the entry is retired once. */
static void two_removals(void *context, size_t number)
{
	struct weiri_scope scope = weiri_scope_enter(weiri_record_get());

	(void)context;
	scene.seen[number] = weiri_list_remove(&scope, &scene.list, &scene.entries[0]->node);
	weiri_scope_leave(&scope);
}

static void setup_leaving(void *context)
{
	setup(context);
	scene.entries[0]->removed = 1;
}

static void removed_once(void *context)
{
	(void)context;
	weir_model_assert(scene.seen[0] + scene.seen[1] == 1);
	scene.seen[0] = 1;
	none_left(context);
}

static struct weir_model_program scope_of(const char *name, size_t threads, void (*thread)(void *, size_t),
                                          void (*finish)(void *), size_t inside)
{
	scene = (struct scene){.inside = inside, .removers = threads - 1};
	return (struct weir_model_program){name, threads, &scene, sizeof(scene), setup, thread, finish};
}

static int check_walks(void)
{
	struct weir_model_program program = scope_of("list_walk_beside_1_removal", 2, walk_beside_removals, others_left, 2);
	int bad = scope_as_far_as(&program, 100000);

	bad |= scope_stops(&program, scope_long() ? 0 : 1000, NULL, NULL);
	program = scope_of("list_walk_beside_2_removals", 3, walk_beside_removals, others_left, 2);
	bad |= scope_as_far_as(&program, scope_long() ? 0 : 30000);
	bad |= scope_stops(&program, scope_long() ? 0 : 300, NULL, NULL);
	program = scope_of("list_walk_beside_removal_and_era", 3, walk_beside_removal_and_era, none_left, 1);
	bad |= scope_preemptions(&program, 2);
	bad |= scope_as_far_as(&program, scope_long() ? 0 : 50000);
	program = scope_of("list_walk_on_a_removed_entry", 2, walk_on_a_removed_entry, both_gone, 1);
	return bad | scope_as_far_as(&program, scope_long() ? 0 : 50000);
}

static int check_changes(void)
{
	struct weir_model_program program =
		scope_of("list_append_beside_flag_and_walk", 2, append_beside_flag, one_saw_the_other, 0);
	int bad = scope_complete(&program);

	program = scope_of("list_2_appends_beside_walk", 3, appends_beside_walk, both_appended, 0);
	bad |= scope_as_far_as(&program, 50000);
	program = scope_of("list_2_removals_of_1_entry", 2, two_removals, removed_once, 1);
	program.setup = setup_leaving;
	return bad | scope_complete(&program);
}

int main(int argc, char **argv)
{
	scope_arguments(argc, argv);
	return check_walks() | check_changes();
}
