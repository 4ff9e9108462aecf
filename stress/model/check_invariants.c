/*
 * check_invariants.c - the assertions that examine a structure at one instant, which only this
 * checker can do (lib/weir/base/assert.h). Each of them must find the fault in a structure that was
 * spoiled. tests/test_invariants_*.c test the other assertions.
 */
#include <weir/reclaim.h>

#include "model/scope.h"
#include "reclaim/scope.h"
#include "ring/layout.h"
#include "sync/list.h"
#include "var/spares.h"

enum { ALIGNMENT = 64, BLOCK = 256 };

static struct scene {
	struct weiri_list list;
	struct weiri_list_node node;
	struct weiri_retired object;
	struct weiri_spares *spares;
	weir_ring *ring;
} scene;

static void ended(struct weiri_retired *object)
{
	(void)object;
}

static void append_twice(void *context, size_t me)
{
	struct weiri_scope scope = weiri_scope_enter(weiri_record_get());

	(void)context, (void)me;
	weiri_list_node_init(&scene.node, sizeof(scene.node), ended);
	weiri_list_append(&scope, &scene.list, &scene.node);
	weiri_list_append(&scope, &scene.list, &scene.node);
}

static void retire_twice(void *context, size_t me)
{
	struct weiri_record *record = weiri_record_get();

	(void)context, (void)me;
	weiri_retired_init(&scene.object, 1, ended);
	weiri_retire(record, &scene.object);
	weiri_retire(record, &scene.object);
}

static void keep_twice(void *context, size_t me)
{
	const weir_allocator *allocator = weiri_spares_allocator(scene.spares);
	void *block = allocator->allocate(allocator->context, BLOCK, ALIGNMENT);

	(void)context, (void)me;
	allocator->release(allocator->context, block, BLOCK, ALIGNMENT);
	allocator->release(allocator->context, block, BLOCK, ALIGNMENT);
}

/* The first slot is three laps ahead of the second, which is then filled. */
static void go_laps_ahead(void *context, size_t me)
{
	_Atomic(uint64_t) *words = scene.ring->slots;

	(void)context, (void)me;
	weiri_store_relaxed(&words[0], 6);
	(void)weir_ring_try_enqueue(scene.ring, 1);
}

static void setup(void *context)
{
	(void)context;
	weir_model_assert(weir_ring_create(2, NULL, &scene.ring, NULL) == WEIR_OK);
	scene.spares = weiri_spares_create(weir_default_allocator(), BLOCK);
	weiri_store_relaxed(&scene.list.first, 0u);
	weir_model_assert(scene.spares != NULL && weiri_record_get() != NULL);
}

static const struct row {
	const char *name;
	void (*thread)(void *context, size_t me);
	const char *finds;
} rows[] = {
	{"invariants_a_node_is_appended_twice", append_twice, "invariant L2 broken"},
	{"invariants_an_object_is_retired_twice", retire_twice, "invariant I4 broken"},
	{"invariants_a_block_is_released_twice", keep_twice, "invariant K1 broken"},
	{"invariants_a_slot_is_laps_ahead", go_laps_ahead, "invariant I2 broken"},
};

int main(int argc, char **argv)
{
	int wrong = 0;

	scope_arguments(argc, argv);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct weir_model_program program = {rows[i].name, 1, &scene, sizeof(scene), setup, rows[i].thread, NULL};

		wrong |= scope_finds(&program, rows[i].finds);
	}
	return wrong;
}
