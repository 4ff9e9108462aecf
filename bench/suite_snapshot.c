/*
 * suite_snapshot.c - several variables at one instant, beside a thread that commits to all of them.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <weir/var.h>

#include "measure.h"

enum { MAX_VARIABLES = 8, SNAPSHOTS = 256 };

struct scene {
	weir_var *vars[MAX_VARIABLES];
	pthread_mutex_t mutex; /* the rival's: a lock around the reads and around the commits */
	size_t count;
	_Atomic(int) stop;
	int locked;
};

static void *commit_on(void *context)
{
	struct scene *scene = context;
	struct weir_commit_part parts[MAX_VARIABLES];
	weir_tensor *value;
	uint64_t version = 1;

	if (weir_tensor_scalar_i64(1, &value) != WEIR_OK)
		exit(3);
	while (!atomic_load_explicit(&scene->stop, memory_order_relaxed)) {
		for (size_t i = 0; i < scene->count; i++)
			parts[i] = (struct weir_commit_part){scene->vars[i], version, value};
		if (scene->locked)
			(void)pthread_mutex_lock(&scene->mutex);
		version += weir_var_commit(parts, scene->count, WEIR_NO_DEADLINE, NULL, NULL) == WEIR_OK;
		if (scene->locked)
			(void)pthread_mutex_unlock(&scene->mutex);
	}
	weir_tensor_release(value);
	return NULL;
}

static void check(const struct scene *scene, const weir_read reads[])
{
	for (size_t i = 1; i < scene->count; i++) {
		if (reads[i].version != reads[0].version)
			bench_wrong("snapshot of %zu: torn: versions %llu and %llu", scene->count,
			            (unsigned long long)reads[0].version, (unsigned long long)reads[i].version);
	}
}

static void take(struct scene *scene)
{
	weir_read reads[MAX_VARIABLES];

	if (!scene->locked) {
		if (weir_var_snapshot(scene->vars, scene->count, reads, NULL) != WEIR_OK)
			exit(3);
	} else {
		(void)pthread_mutex_lock(&scene->mutex);
		for (size_t i = 0; i < scene->count; i++)
			(void)weir_var_read(scene->vars[i], &reads[i]);
		(void)pthread_mutex_unlock(&scene->mutex);
	}
	check(scene, reads);
	weir_read_release_many(reads, scene->count);
}

/* Nanoseconds a snapshot. */
static double measure(size_t count, int locked, const struct bench_options *options)
{
	struct scene scene = {.count = count, .locked = locked, .mutex = PTHREAD_MUTEX_INITIALIZER};
	struct weir_var_options var = {.struct_size = sizeof(var), .dtype = WEIR_I64};
	uint64_t start, now, end, taken = 0;
	weir_tensor *zero;
	pthread_t writer;

	if (weir_tensor_scalar_i64(0, &zero) != WEIR_OK)
		exit(3);
	for (size_t i = 0; i < count; i++) {
		if (weir_var_create(&var, zero, &scene.vars[i], NULL) != WEIR_OK)
			exit(3);
	}
	if (pthread_create(&writer, NULL, commit_on, &scene) != 0)
		exit(3);
	start = now = bench_now_ns();
	end = start + options->duration_ms * UINT64_C(1000000);
	while (now < end) {
		for (int i = 0; i < SNAPSHOTS; i++)
			take(&scene);
		taken += SNAPSHOTS;
		now = bench_now_ns();
	}
	atomic_store_explicit(&scene.stop, 1, memory_order_release);
	(void)pthread_join(writer, NULL);
	for (size_t i = 0; i < count; i++)
		weir_var_destroy(scene.vars[i]);
	weir_tensor_release(zero);
	return (double)(now - start) / (double)taken;
}

static void run(const struct bench_options *options)
{
	const size_t counts[] = {2, 3, 8};

	for (size_t c = 0; c < 3; c++) {
		struct bench_cell *ours, *mutex = NULL;
		char workload[32];

		(void)snprintf(workload, sizeof(workload), "%zu variables", counts[c]);
		if (!bench_wanted(options, "snapshot", workload))
			continue;
		ours = bench_cell("snapshot", workload, "weir", "ns a snapshot", 2, 1);
		if (bench_rival_wanted(options, "mutex", 0))
			mutex = bench_cell("snapshot", workload, "mutex around reads and commits", "ns a snapshot", 2, 1);
		for (unsigned round = 0; round <= options->repeat; round++) {
			double value = measure(counts[c], 0, options);

			bench_progress("snapshot/%s %u/%u", workload, round, options->repeat);
			if (round != 0)
				bench_sample(ours, value);
			if (mutex == NULL)
				continue;
			value = measure(counts[c], 1, options);
			if (round != 0)
				bench_sample(mutex, value);
		}
	}
}

const struct bench_suite bench_snapshot_suite = {
	"snapshot",
	"  K variables  One thread takes snapshots of K variables, looks that they belong together, and lets go, while "
	"another commits to all\n"
	"               of them as fast as it can. Time of a snapshot.",
	run,
};
