/*
 * starpu.c - tasks of StarPU, on processors only. Their order comes from the data that they write.
 *
 * There is no graph to keep: each run makes its tasks again. StarPU keeps what it has measured of the
 * machine in a folder, which is a new one here and goes with the program.
 */
#include <starpu.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rivals.h"

enum { MOST_NODES = 1000, BUFFER_FLOATS = 1 << 18 };

struct tasks {
	enum bench_dataflow kind;
	unsigned nodes;
	uint64_t ran;
	float *values; /* one, or a buffer */
	size_t count;
	starpu_data_handle_t shared;            /* values */
	starpu_data_handle_t apart[MOST_NODES]; /* of nodes without edges */
	uint64_t marks[MOST_NODES];
};

static char folder[] = "/tmp/weir-starpu-XXXXXX";

static void remove_folder(void)
{
	char command[64];

	(void)snprintf(command, sizeof(command), "rm -rf %s", folder);
	if (system(command) != 0)
		(void)fprintf(stderr, "weir-bench: %s remains\n", folder);
}

static void begin(unsigned threads)
{
	static int made;
	struct starpu_conf conf;

	if (!made++) {
		if (mkdtemp(folder) == NULL || setenv("STARPU_HOME", folder, 1) != 0 || setenv("STARPU_SILENT", "1", 1) != 0)
			exit(3);
		(void)atexit(remove_folder);
	}
	if (starpu_conf_init(&conf) != 0)
		exit(3);
	conf.ncpus = (int)threads;
	conf.ncuda = 0;
	conf.nopencl = 0;
	if (starpu_init(&conf) != 0)
		exit(3);
}

static void *create(enum bench_dataflow kind, unsigned nodes, unsigned threads)
{
	struct tasks *t = calloc(1, sizeof(*t));

	if (t == NULL)
		exit(3);
	begin(threads);
	t->kind = kind;
	t->nodes = nodes;
	t->count = kind == BENCH_BUFFERS ? BUFFER_FLOATS : 1;
	t->values = calloc(t->count, sizeof(float));
	if (t->values == NULL)
		exit(3);
	starpu_vector_data_register(&t->shared, STARPU_MAIN_RAM, (uintptr_t)t->values, (uint32_t)t->count, sizeof(float));
	for (unsigned i = 0; kind == BENCH_WIDE && i < nodes; i++)
		starpu_variable_data_register(&t->apart[i], STARPU_MAIN_RAM, (uintptr_t)&t->marks[i], sizeof(t->marks[i]));
	return t;
}

static void destroy(void *self)
{
	struct tasks *t = self;

	for (unsigned i = 0; t->kind == BENCH_WIDE && i < t->nodes; i++)
		starpu_data_unregister(t->apart[i]);
	starpu_data_unregister(t->shared);
	starpu_shutdown();
	free(t->values);
	free(t);
}

static void mark(void *buffers[], void *argument)
{
	(void)buffers;
	++*(uint64_t *)argument;
}

static void add(void *buffers[], void *argument)
{
	float *values = (float *)STARPU_VECTOR_GET_PTR(buffers[0]);
	size_t count = STARPU_VECTOR_GET_NX(buffers[0]);

	(void)argument;
	for (size_t i = 0; i < count; i++)
		values[i] += 1;
}

static struct starpu_codelet marking = {.cpu_funcs = {mark}, .nbuffers = 1, .modes = {STARPU_RW}, .name = "mark"};
static struct starpu_codelet adding = {.cpu_funcs = {add}, .nbuffers = 1, .modes = {STARPU_RW}, .name = "add"};

static int submit(struct tasks *t, unsigned i)
{
	if (t->kind == BENCH_ADDS || t->kind == BENCH_BUFFERS)
		return starpu_task_insert(&adding, STARPU_RW, t->shared, 0);
	return starpu_task_insert(&marking, STARPU_RW, t->kind == BENCH_WIDE ? t->apart[i] : t->shared,
	                          STARPU_CL_ARGS_NFREE, &t->marks[i], sizeof(t->marks[i]), 0);
}

static void run(void *self)
{
	struct tasks *t = self;

	(void)memset(t->values, 0, t->count * sizeof(float));
	for (unsigned i = 0; i < t->nodes; i++) {
		if (submit(t, i) != 0)
			exit(3);
	}
	if (starpu_task_wait_for_all() != 0)
		exit(3);
	t->ran += (uint64_t)t->values[t->count - 1];
}

static uint64_t ran(void *self)
{
	struct tasks *t = self;
	uint64_t sum = t->ran;

	for (unsigned i = 0; i < t->nodes; i++)
		sum += t->marks[i];
	return sum;
}

static uint64_t bytes(void *self)
{
	(void)self;
	return BUFFER_FLOATS * sizeof(float);
}

#define TASKS(kind_) \
	{ \
		.about = {.name = "StarPU", \
		          .version = WEIR_BENCH_STARPU_VERSION, \
		          .lacks = "makes its tasks again in each run"}, \
		.kind = (kind_), .create = create, .destroy = destroy, .run = run, .ran = ran, \
		.most_bytes = (kind_) == BENCH_BUFFERS ? bytes : NULL \
	}

const struct dataflow_contender starpu_chain_contender = TASKS(BENCH_CHAIN);
const struct dataflow_contender starpu_wide_contender = TASKS(BENCH_WIDE);
const struct dataflow_contender starpu_one_contender = TASKS(BENCH_ONE);
const struct dataflow_contender starpu_kernel_contender = TASKS(BENCH_KERNEL);
const struct dataflow_contender starpu_adds_contender = TASKS(BENCH_ADDS);
const struct dataflow_contender starpu_buffers_contender = TASKS(BENCH_BUFFERS);
