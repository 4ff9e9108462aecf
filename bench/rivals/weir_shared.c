/*
 * weir_shared.c - a ring and a variable in the shared library, while the rest of the program has
 * Weir inside. A call from a program to a shared library is a jump over half of the address space, and
 * some processors pay for that (docs/profiling.md).
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <weir/ring.h>
#include <weir/var.h>

#include "rivals.h"

/* The functions of the shared library, with the types of the headers. */
#define FUNCTIONS(X) \
	X(weir_ring_create) \
	X(weir_ring_destroy) \
	X(weir_ring_try_enqueue) \
	X(weir_ring_try_dequeue) \
	X(weir_tensor_scalar_i64) \
	X(weir_tensor_release) \
	X(weir_var_create) \
	X(weir_var_destroy) \
	X(weir_var_assign) \
	X(weir_var_read) \
	X(weir_read_release)

#define MEMBER(name) __typeof__(name) *name;

static struct {
	FUNCTIONS(MEMBER)
} shared;

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void *find(void *library, const char *name)
{
	void *function = dlsym(library, name);

	if (function == NULL) {
		(void)fprintf(stderr, "weir-bench: %s\n", dlerror());
		exit(3);
	}
	return function;
}

/* RTLD_LOCAL: its names do not mix with those that the program has inside. */
static void load(void)
{
	void *library = dlopen(WEIR_BENCH_SHARED, RTLD_NOW | RTLD_LOCAL);

	if (library == NULL) {
		(void)fprintf(stderr, "weir-bench: %s\n", dlerror());
		exit(3);
	}
	/* The one way in POSIX from an object pointer to one of a function. */
#define FIND(name) *(void **)&shared.name = find(library, #name);
	FUNCTIONS(FIND)
#undef FIND
}

/* -- ring -------------------------------------------------------------------------------------- */

static void *ring_create(size_t capacity)
{
	struct weir_ring_options options = {WEIR_RING_OPTIONS_INIT, .format = WEIR_RING_FORMAT_BEST};
	weir_ring *ring;

	(void)pthread_once(&once, load);
	if (shared.weir_ring_create(capacity, &options, &ring, NULL) != WEIR_OK)
		exit(3);
	return ring;
}

static void ring_destroy(void *self)
{
	shared.weir_ring_destroy(self, NULL);
}

static int ring_enqueue(void *self, uint64_t value)
{
	return shared.weir_ring_try_enqueue(self, value) == WEIR_OK;
}

static int ring_dequeue(void *self, uint64_t *value)
{
	return shared.weir_ring_try_dequeue(self, value) == WEIR_OK;
}

static uint64_t ring_pairs(void *self, uint64_t count)
{
	return bench_pairs(self, count, ring_enqueue, ring_dequeue);
}

const struct ring_contender weir_shared_ring_contender = {
	.about = {.name = "weir, shared library", .lock_free = 1},
	.create = ring_create,
	.destroy = ring_destroy,
	.enqueue = ring_enqueue,
	.dequeue = ring_dequeue,
	.pairs = ring_pairs,
};

/* -- variable ---------------------------------------------------------------------------------- */

static weir_tensor *tensor_with(uint64_t value)
{
	weir_tensor *tensor;

	if (shared.weir_tensor_scalar_i64((int64_t)value, &tensor) != WEIR_OK)
		exit(3);
	return tensor;
}

/* The harness writes single words to a contender without scan_many. */
static void *read_create(size_t bytes)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I64};
	weir_tensor *first;
	weir_var *var;

	(void)bytes;
	(void)pthread_once(&once, load);
	first = tensor_with(0);
	if (shared.weir_var_create(first, &options, &var, NULL) != WEIR_OK)
		exit(3);
	shared.weir_tensor_release(first);
	return var;
}

static void read_destroy(void *self)
{
	shared.weir_var_destroy(self, NULL);
}

static uint64_t handle_many(void *self, uint64_t count)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < count; i++) {
		weir_read read;

		if (shared.weir_var_read(self, &read) != WEIR_OK)
			exit(3);
		sum += read.version - 1;
		shared.weir_read_release(&read);
	}
	return sum;
}

static void read_write(void *self, uint64_t value)
{
	weir_tensor *tensor = tensor_with(value);

	if (shared.weir_var_assign(self, tensor, WEIR_NO_DEADLINE, NULL, NULL) != WEIR_OK)
		exit(3);
	shared.weir_tensor_release(tensor);
}

const struct read_contender weir_shared_read_contender = {
	.about = {.name = "weir handle, shared library", .lock_free = 1},
	.create = read_create,
	.destroy = read_destroy,
	.read_many = handle_many,
	.write = read_write,
};
