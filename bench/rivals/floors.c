/*
 * floors.c - what a handle and a snapshot cost at least: the loads and stores that they cannot do
 * without, and none of ours. Neither keeps a value from being written again, and the loads of a
 * snapshot are not of one instant.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "rivals.h"

/* Values go round, as those of a writer whose freed blocks are soon used again. */
enum { BLOCKS = 256, MAX_VARIABLES = 8, WORDS = 8 };

struct version {
	_Alignas(64) _Atomic(uint64_t) stamp;
	_Atomic(uint64_t) words[WORDS];
};

struct variable {
	_Alignas(64) _Atomic(struct version *) head;
};

/* What a handle's accesses touch of the reader's own memory. */
struct record {
	_Alignas(64) _Atomic(uint32_t) picking;
	_Atomic(uint64_t) announced;
	_Atomic(uint32_t) poke;
	_Alignas(64) _Atomic(struct version *) slot;
};

struct scene {
	size_t count;
	size_t words; /* of each value */
	size_t next;  /* the writer's */
	_Alignas(64) _Atomic(uint64_t) era;
	struct record record;
	struct variable variables[MAX_VARIABLES];
	struct version versions[BLOCKS][MAX_VARIABLES];
};

static void set(void *self, uint64_t value)
{
	struct scene *scene = self;
	struct version *versions = scene->versions[scene->next++ % BLOCKS];

	for (size_t i = 0; i < scene->count; i++) {
		for (size_t w = 0; w < scene->words; w++)
			atomic_store_explicit(&versions[i].words[w], value, memory_order_relaxed);
		atomic_store_explicit(&versions[i].stamp, value + 1, memory_order_release);
	}
	for (size_t i = 0; i < scene->count; i++)
		atomic_store_explicit(&scene->variables[i].head, &versions[i], memory_order_release);
}

static void *create(size_t variables, size_t words)
{
	struct scene *scene = aligned_alloc(64, sizeof(*scene));

	if (scene == NULL || variables > MAX_VARIABLES || words > WORDS)
		exit(3);
	scene->count = variables;
	scene->words = words;
	scene->next = 0;
	atomic_init(&scene->era, 1);
	atomic_init(&scene->record.picking, 0);
	atomic_init(&scene->record.announced, 1);
	atomic_init(&scene->record.poke, 0);
	atomic_init(&scene->record.slot, NULL);
	set(scene, 0);
	return scene;
}

/* -- a handle ---------------------------------------------------------------------------------- */

static void *handle_create(size_t bytes)
{
	return create(1, bytes / sizeof(uint64_t));
}

/* The accesses of weir_var_read(), in its order. */
static __attribute__((noinline)) struct version *take(struct scene *scene, struct record *record)
{
	struct version *version;

	if (atomic_load_explicit(&record->picking, memory_order_relaxed) != 0)
		return NULL;
	atomic_store_explicit(&record->picking, 1, memory_order_relaxed);
	if (atomic_load_explicit(&record->slot, memory_order_acquire) != NULL)
		return NULL;
	version = atomic_load_explicit(&scene->variables[0].head, memory_order_relaxed);
	atomic_store_explicit(&record->slot, version, memory_order_release);
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&record->picking, 0, memory_order_relaxed);
	if (atomic_load_explicit(&scene->variables[0].head, memory_order_seq_cst) != version ||
	    atomic_load_explicit(&scene->era, memory_order_relaxed) !=
	        atomic_load_explicit(&record->announced, memory_order_relaxed) ||
	    atomic_load_explicit(&version->stamp, memory_order_acquire) == 0)
		return NULL;
	return version;
}

/* Those of weir_read_release(). */
static __attribute__((noinline)) uint64_t drop(struct record *record)
{
	atomic_store_explicit(&record->slot, NULL, memory_order_release);
	atomic_signal_fence(memory_order_seq_cst);
	return atomic_load_explicit(&record->poke, memory_order_relaxed);
}

static inline __attribute__((always_inline)) struct version *take_or_load(struct scene *scene)
{
	struct version *version = take(scene, &scene->record);

	/* If the head has moved: the value as it is now. */
	return version != NULL ? version : atomic_load_explicit(&scene->variables[0].head, memory_order_acquire);
}

static uint64_t handle_many(void *self, uint64_t count)
{
	struct scene *scene = self;
	uint64_t sum = 0;

	for (uint64_t i = 0; i < count; i++) {
		sum += atomic_load_explicit(&take_or_load(scene)->words[0], memory_order_relaxed);
		sum += drop(&scene->record);
	}
	return sum;
}

/* A value that the writer writes again meanwhile is read torn. That is no fault of a floor, so 0 is returned. */
static uint64_t handle_scan_many(void *self, uint64_t count)
{
	struct scene *scene = self;
	uint64_t differ = 0;

	for (uint64_t i = 0; i < count; i++) {
		struct version *version = take_or_load(scene);
		uint64_t first = atomic_load_explicit(&version->words[0], memory_order_relaxed);

		for (size_t w = 1; w < WORDS; w++)
			differ |= first ^ atomic_load_explicit(&version->words[w], memory_order_relaxed);
		differ |= drop(&scene->record);
	}
	return differ == UINT64_MAX;
}

const struct read_contender handle_floor_contender = {
	.about = {.name = "a handle's accesses, two calls (floor)", .lacks = "keeps nothing", .lock_free = 1},
	.create = handle_create,
	.destroy = free,
	.read_many = handle_many,
	.scan_many = handle_scan_many,
	.write = set,
	.most_bytes = WORDS * sizeof(uint64_t),
};

/* -- a snapshot -------------------------------------------------------------------------------- */

static void *snapshot_create(size_t variables)
{
	return create(variables, 1);
}

static uint64_t take_many(void *self, uint64_t count)
{
	struct scene *scene = self;
	uint64_t wrong = 0;

	for (uint64_t n = 0; n < count; n++) {
		for (size_t i = 0; i < scene->count; i++) {
			struct version *version = atomic_load_explicit(&scene->variables[i].head, memory_order_acquire);

			/* A stamp is never 0, so this only makes the compiler load both. */
			wrong += atomic_load_explicit(&version->stamp, memory_order_acquire) == 0 &&
			         atomic_load_explicit(&version->words[0], memory_order_relaxed) == UINT64_MAX;
		}
	}
	return wrong;
}

const struct snapshot_contender snapshot_floor_contender = {
	.about = {.name = "heads and stamps (floor)", .lacks = "not of one instant; keeps nothing", .lock_free = 1},
	.create = snapshot_create,
	.destroy = free,
	.take_many = take_many,
	.commit = set,
};
