/*
 * suite_memory.c - writers beside a reader that is stopped in the middle of a read, for the length of the measurement.
 *
 * Weir's reader is stopped by a signal at a random instruction of a loop of snapshots, most of which lie inside a section; the rival's
 * sits inside an rcu_read_lock. This is the evidence for reserving eras instead of waiting for grace periods.
 */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <weir/reclaim.h>
#include <weir/var.h>

#include "measure.h"

enum { VARIABLES = 8, VALUE_BYTES = 64 << 10 };

static weir_var *vars[VARIABLES];
static _Atomic(int) stop_reading, is_stopped;
static sem_t go_on;

static void hold_here(int signal_number)
{
	(void)signal_number;
	atomic_store_explicit(&is_stopped, 1, memory_order_release);
	while (sem_wait(&go_on) != 0)
		;
}

static void *read_on(void *context)
{
	weir_read reads[VARIABLES];

	(void)context;
	while (!atomic_load_explicit(&stop_reading, memory_order_relaxed)) {
		if (weir_var_snapshot(vars, VARIABLES, reads, NULL) == WEIR_OK)
			weir_read_release_many(reads, VARIABLES);
	}
	return NULL;
}

static weir_tensor *new_value(void)
{
	const weir_shape shape = {1, {VALUE_BYTES}};
	weir_tensor_builder *builder;
	weir_tensor *value;

	if (weir_tensor_builder_create(WEIR_U8, &shape, NULL, &builder) != WEIR_OK ||
	    weir_tensor_builder_finish(builder, &value) != WEIR_OK)
		exit(3);
	return value;
}

static void make_variables(void)
{
	struct weir_var_options options = {.struct_size = sizeof(options), .dtype = WEIR_U8};

	for (int i = 0; i < VARIABLES; i++) {
		weir_tensor *value = new_value();

		if (weir_var_create(&options, value, &vars[i], NULL) != WEIR_OK)
			exit(3);
		weir_tensor_release(value);
	}
}

/* Versions published in the duration, in thousands a second. */
static double publish(const struct bench_options *options)
{
	uint64_t start = bench_now_ns(), end = start + options->duration_ms * UINT64_C(1000000), published = 0;

	while (bench_now_ns() < end) {
		weir_tensor *value = new_value();

		published += weir_var_assign(vars[published % VARIABLES], value, end, NULL, NULL) == WEIR_OK;
		weir_tensor_release(value);
	}
	return (double)published * 1e6 / (double)(bench_now_ns() - start);
}

static double ours(const struct bench_options *options)
{
	struct sigaction action = {.sa_handler = hold_here};
	pthread_t reader;
	double rate;

	make_variables();
	(void)sem_init(&go_on, 0, 0);
	(void)sigaction(SIGUSR1, &action, NULL);
	atomic_store_explicit(&stop_reading, 0, memory_order_release);
	atomic_store_explicit(&is_stopped, 0, memory_order_release);
	if (pthread_create(&reader, NULL, read_on, NULL) != 0)
		exit(3);
	(void)pthread_kill(reader, SIGUSR1);
	while (!atomic_load_explicit(&is_stopped, memory_order_acquire))
		;
	rate = publish(options);
	atomic_store_explicit(&stop_reading, 1, memory_order_release);
	(void)sem_post(&go_on);
	(void)pthread_join(reader, NULL);
	for (int i = 0; i < VARIABLES; i++)
		weir_var_destroy(vars[i]);
	return rate;
}

static void run(const struct bench_options *options)
{
	struct weir_reclaim_stats stats = {.struct_size = sizeof(stats)};
	struct bench_cell *mine, *peak;

	if (!bench_wanted(options, "memory", "a reader is stopped"))
		return;
	mine = bench_cell("memory", "a reader is stopped", "weir", "kversions/s", 2, 0);
	peak = bench_cell("memory", "a reader is stopped: the most retired", "weir", "MiB", 2, 1);
	for (unsigned round = 0; round < options->repeat; round++) {
		bench_progress("memory %u/%u", round, options->repeat);
		bench_sample(mine, ours(options));
		(void)weir_reclaim_get_stats(&stats);
		bench_sample(peak, (double)stats.peak_retired_bytes / (1 << 20));
	}
}

const struct bench_suite bench_memory_suite = {
	"memory",
	"  a reader is stopped   One thread replaces 8 variables of 64 KiB in turn, while another is stopped in the middle "
	"of reading them.\n"
	"               Versions published; and the most bytes that ever waited to be freed. The rival waits for a grace "
	"period\n"
	"               after each 128 versions, and so for the reader.",
	run,
};

/* Until the suite takes its contenders from the table. */
void bench_stop_here(void)
{
}

void *bench_value_allocate(size_t bytes)
{
	return aligned_alloc(64, (bytes + 63) / 64 * 64);
}

void bench_value_free(void *value, size_t bytes)
{
	(void)bytes;
	free(value);
}
