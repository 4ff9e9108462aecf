/*
 * check_list.c - the list of waiters: a walk beside removals comes to its end, also while a remover is stopped half way; each node is
 * taken out once, and lives as long as anybody walks over it.
 */
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <weir/reclaim.h>

#include "model/scope.h"
#include "sync/list.h"

static struct scene {
	struct weiri_list list;
	struct weiri_list_node nodes[2];
	size_t removers;
	int gone;          /* nodes whose end was reported */
	int data[2];       /* of the nodes, written before they are appended */
	int seen[3];       /* by each thread */
	_Atomic(int) flag; /* set before a walk */
	int flag_seen;     /* after an append */
} scene;

static void ended(struct weiri_retired *retired)
{
	scene.gone++;
	(void)retired;
}

static void setup_list(void *context)
{
	struct weiri_scope scope = weiri_scope_enter(weiri_record_get());

	(void)context;
	for (size_t i = 0; i < 2; i++) {
		weiri_list_node_init(&scene.nodes[i], ended);
		weiri_list_append(&scope, &scene.list, &scene.nodes[i]);
	}
	weiri_scope_leave(&scope);
}

static void list_thread(void *context, size_t number)
{
	struct weiri_scope scope = weiri_scope_enter(weiri_record_get());
	struct weiri_list_node *node = NULL;

	(void)context;
	if (number == 0) {
		while ((node = weiri_list_next(&scope, &scene.list, node)) != NULL)
			weir_model_assert(node == &scene.nodes[0] || node == &scene.nodes[1]);
	} else {
		scene.seen[number] = weiri_list_remove(&scope, &scene.list, &scene.nodes[number == 2]);
	}
	weiri_scope_leave(&scope);
}

static void all_gone(void *context)
{
	(void)context;
	weir_model_assert(scene.seen[1] == 1 && scene.seen[2] == (scene.removers == 2));
	weir_model_assert(weir_reclaim_flush(0) == WEIR_OK && scene.gone == (int)scene.removers);
}

/* Whoever appends and then reads a flag is seen by whoever sets it and then walks. */
static void announce_thread(void *context, size_t number)
{
	struct weiri_scope scope = weiri_scope_enter(weiri_record_get());
	struct weiri_list_node *node = NULL;

	(void)context;
	if (number == 0) {
		weiri_list_append(&scope, &scene.list, &scene.nodes[0]);
		scene.flag_seen = weiri_load_seq_cst(&scene.flag) != 0;
	} else {
		weiri_store_seq_cst(&scene.flag, 1);
		while ((node = weiri_list_next(&scope, &scene.list, node)) != NULL)
			scene.seen[number] = 1;
	}
	weiri_scope_leave(&scope);
}

static void setup_node(void *context)
{
	(void)context;
	weiri_list_node_init(&scene.nodes[0], ended);
}

static void one_saw_the_other(void *context)
{
	(void)context;
	weir_model_assert(scene.flag_seen || scene.seen[1]);
}

/* What the node holds is written before it is appended, and read by a walk; two are appended at the same place. */
static void append_thread(void *context, size_t number)
{
	struct weiri_scope scope = weiri_scope_enter(weiri_record_get());
	struct weiri_list_node *node = NULL;

	(void)context;
	if (number < 2) {
		weiri_list_node_init(&scene.nodes[number], ended);
		scene.data[number] = 7;
		weiri_list_append(&scope, &scene.list, &scene.nodes[number]);
	} else {
		for (; (node = weiri_list_next(&scope, &scene.list, node)) != NULL; scene.seen[2]++)
			weir_model_assert(scene.data[node - scene.nodes] == 7);
	}
	weiri_scope_leave(&scope);
}

static void both_appended(void *context)
{
	struct weiri_scope scope = weiri_scope_enter(weiri_record_get());
	struct weiri_list_node *node = NULL;
	int found = 0;

	(void)context;
	while ((node = weiri_list_next(&scope, &scene.list, node)) != NULL)
		found++;
	weir_model_assert(found == 2 && scene.seen[2] <= 2);
	weiri_scope_leave(&scope);
}

/* Both want the same node out; one of them does it, and it is retired once. */
static void remove_thread(void *context, size_t number)
{
	struct weiri_scope scope = weiri_scope_enter(weiri_record_get());

	(void)context;
	scene.seen[number] = weiri_list_remove(&scope, &scene.list, &scene.nodes[0]);
	weiri_scope_leave(&scope);
}

static void removed_once(void *context)
{
	(void)context;
	weir_model_assert(scene.seen[0] + scene.seen[1] == 1);
	weir_model_assert(weir_reclaim_flush(0) == WEIR_OK && scene.gone == 1);
}

static int check_list_ends(void)
{
	struct weir_model_program announce = {
		"list_append_beside_flag_and_walk", 2, &scene, sizeof(scene), setup_node, announce_thread, one_saw_the_other};
	struct weir_model_program append = {
		"list_2_appends_beside_walk", 3, &scene, sizeof(scene), NULL, append_thread, both_appended};
	struct weir_model_program remove = {
		"list_2_removals_of_1_node", 2, &scene, sizeof(scene), setup_list, remove_thread, removed_once};
	int bad = 0;

	scene = (struct scene){0};
	bad |= scope_complete(&announce);
	bad |= scope_as_far_as(&append, 50000);
	return bad | scope_complete(&remove);
}

static int check_list(void)
{
	struct weir_model_program program = {
		"list_walk_beside_1_removal", 2, &scene, sizeof(scene), setup_list, list_thread, all_gone};
	int bad = 0;

	scene = (struct scene){.removers = 1};
	bad |= scope_as_far_as(&program, 100000);
	bad |= scope_stops(&program, scope_long() ? 0 : 1000, NULL, NULL);
	program.name = "list_walk_beside_2_removals";
	program.threads = 3;
	scene.removers = 2;
	bad |= scope_as_far_as(&program, 50000);
	return bad | scope_stops(&program, 1000, NULL, NULL);
}

int main(int argc, char **argv)
{
	scope_arguments(argc, argv);
	return check_list() | check_list_ends();
}
