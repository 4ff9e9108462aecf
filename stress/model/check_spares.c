/*
 * check_spares.c - spare memory of values: at most one thread at a time has a block, and every
 * block is released, whichever thread ends last.
 *
 * A block is written when it is taken and read when it is released, so two threads that have the
 * same block race. The checker itself finds leaks and double frees.
 */
#include <string.h>
#include <weir/reclaim.h>

#include "model/scope.h"
#include "reclaim/budget.h"
#include "var/spares.h"

enum { THREADS = 2, SIZE = 64, OTHER_SIZE = 128, SMALL_SIZE = 32, ALIGNMENT = 64 };

static struct scene {
	struct weiri_spares *spares;
	weir_allocator of_values;
	const char *calls[THREADS]; /* LETTERS says what each does */
	size_t kept;                /* number of blocks that are kept at the start */
	struct held {
		uint64_t *block;
		size_t size;
	} held[THREADS];
} scene;

static void get(size_t me, size_t size)
{
	struct held *held = &scene.held[me];

	held->block = scene.of_values.allocate(scene.of_values.context, size, ALIGNMENT);
	weir_model_assert(held->block != NULL);
	held->size = size;
	held->block[size / sizeof(uint64_t) - 1] = me;
}

static void put(size_t me)
{
	struct held *held = &scene.held[me];

	weir_model_assert(held->block[held->size / sizeof(uint64_t) - 1] == me);
	scene.of_values.release(scene.of_values.context, held->block, held->size, ALIGNMENT);
	held->block = NULL;
}

/* Blocks this small are not kept. A view of a held value allocates such a block. */
static void get_and_put_a_small_one(void)
{
	uint64_t *small = scene.of_values.allocate(scene.of_values.context, SMALL_SIZE, ALIGNMENT);

	weir_model_assert(small != NULL);
	small[0] = 0;
	scene.of_values.release(scene.of_values.context, small, SMALL_SIZE, ALIGNMENT);
}

static void setup(void *context)
{
	void *blocks[THREADS];

	(void)context;
	weir_reclaim_set_budget(UINT64_C(8) * 4 * SIZE); /* four blocks */
	scene.spares = weiri_spares_create(weir_default_allocator(), SIZE);
	weir_model_assert(scene.spares != NULL);
	scene.of_values = *weiri_spares_allocator(scene.spares);
	for (size_t i = 0; i < scene.kept; i++)
		blocks[i] = scene.of_values.allocate(scene.of_values.context, SIZE, ALIGNMENT);
	for (size_t i = 0; i < scene.kept; i++)
		scene.of_values.release(scene.of_values.context, blocks[i], SIZE, ALIGNMENT);
	for (size_t i = 0; i < THREADS; i++) {
		if (scene.calls[i] != NULL && strchr("pv", scene.calls[i][0]) != NULL)
			get(i, SIZE);
	}
}

static void end_variable(void)
{
	weiri_spares_end(scene.spares);
	scene.spares = NULL;
}

#define LETTERS(LETTER) \
	LETTER('g', "get a block", get(me, SIZE)) \
	LETTER('o', "get a block of another size", get(me, OTHER_SIZE)) \
	LETTER('v', "get a block that is not kept, and release it", get_and_put_a_small_one()) \
	LETTER('p', "release the block that was got last", put(me)) \
	LETTER('e', "the variable ends", end_variable())

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
	scope_calls(me, scene.calls[me], call);
}

static void finish(void *context)
{
	(void)context;
	for (size_t i = 0; i < THREADS; i++) {
		if (scene.held[i].block != NULL)
			put(i);
	}
	if (scene.spares != NULL)
		weiri_spares_end(scene.spares);
	scene.spares = NULL;
	weir_model_assert(weiri_load_relaxed(&weiri_budget.of_kind[WEIRI_KEPT_SPARES]) == 0);
}

static const struct row {
	const char *name;
	const char *calls[THREADS];
	size_t kept;
} rows[] = {
	{"spares_2_gets_and_puts", {"gp", "gp"}, 0},
	{"spares_2_gets_of_1", {"g", "g"}, 1},
	{"spares_put_beside_get", {"p", "g"}, 0},
	{"spares_2_puts", {"p", "p"}, 0},
	{"spares_gets_and_puts_of_2_sizes", {"gp", "op"}, 1},
	{"spares_get_and_put_beside_a_view", {"gp", "vp"}, 1},
	{"spares_put_beside_the_end", {"p", "e"}, 1},
	{"spares_view_beside_the_end", {"vp", "e"}, 1},
	{"spares_2_puts_and_the_end", {"p", "pe"}, 1},
};

static struct scope_plan prepare(size_t index)
{
	scene = (struct scene){.kept = rows[index].kept};
	memcpy(scene.calls, rows[index].calls, sizeof(scene.calls));
	return (struct scope_plan){.program = {rows[index].name, THREADS, &scene, sizeof(scene), setup, thread, finish},
	                           .executions = 100000,
	                           .stopped = 100};
}

int main(int argc, char **argv)
{
	static const struct scope_letter letters[] = {LETTERS(LETTER_ROW){0, NULL}};

	scope_letters(argc, argv, letters);
	scope_arguments(argc, argv);
	return scope_all(prepare, sizeof(rows) / sizeof(rows[0]));
}
