/*
 * resident.c - measures how much memory stays resident while large values are replaced, with one
 * setting of the allocator. Its output is a row of the table in docs/memory.md.
 *
 * Four threads replace four variables of 1 MiB, and four threads read them, under a budget of 8
 * MiB.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <weir/reclaim.h>
#include <weir/tensor.h>
#include <weir/time.h>
#include <weir/var.h>

enum {
	VARIABLES = 4,
	WRITERS = 4,
	READERS = 4,
	VALUE_BYTES = 1 << 20,
	BUDGET = 8 << 20,
	LARGE = 128 << 10,
	PAGE = 4096
};

static weir_var *variables[VARIABLES];
static const weir_allocator *values; /* NULL: the default allocator */
static _Atomic(int) is_over;
static _Atomic(unsigned long) written;

static void must(int holds, const char *what)
{
	if (holds)
		return;
	(void)fprintf(stderr, "weir-resident: %s\n", what);
	exit(1);
}

/* -- an allocator that maps large blocks ------------------------------------------------------- */

static void *map(void *context, size_t size, size_t alignment)
{
	void *memory = NULL;

	(void)context;
	if (size < LARGE || alignment > PAGE)
		return posix_memalign(&memory, alignment, size) == 0 ? memory : NULL;
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return memory != MAP_FAILED ? memory : NULL;
}

static void unmap(void *context, void *memory, size_t size, size_t alignment)
{
	(void)context;
	if (size < LARGE || alignment > PAGE)
		free(memory);
	else
		(void)munmap(memory, size);
}

static const weir_allocator maps = {map, unmap, NULL};

/* Returns 0 if the setting is unknown, or the C library refuses it. */
static int set(const char *setting)
{
	if (strcmp(setting, "default") == 0)
		return 1;
	if (strcmp(setting, "maps") == 0) {
		values = &maps;
		return 1;
	}
#if defined(__GLIBC__)
	if (strcmp(setting, "one-arena") == 0)
		return mallopt(M_ARENA_MAX, 1);
	if (strcmp(setting, "trim-threshold") == 0)
		return mallopt(M_TRIM_THRESHOLD, VALUE_BYTES);
	if (strcmp(setting, "mmap-threshold") == 0)
		return mallopt(M_MMAP_THRESHOLD, LARGE);
#endif
	return 0;
}

/* -- threads ----------------------------------------------------------------------------------- */

static weir_tensor *value_of(int byte)
{
	static _Thread_local unsigned char bytes[VALUE_BYTES];
	weir_shape shape = {.rank = 1, .dims = {VALUE_BYTES}};
	weir_tensor *tensor = NULL;

	(void)memset(bytes, byte, sizeof(bytes));
	must(weir_tensor_copy_of(WEIR_U8, &shape, bytes, values, &tensor) == WEIR_OK, "there is no memory for a value");
	return tensor;
}

static void *write_on(void *unused)
{
	for (unsigned i = 0; !atomic_load_explicit(&is_over, memory_order_relaxed); i++) {
		weir_tensor *value = value_of((int)(i % 256));

		if (weir_var_assign(variables[i % VARIABLES], value, weir_deadline_in(100000000), NULL, NULL) == WEIR_OK)
			(void)atomic_fetch_add_explicit(&written, 1, memory_order_relaxed);
		weir_tensor_release(value);
	}
	return unused;
}

static void *read_on(void *unused)
{
	for (unsigned i = 0; !atomic_load_explicit(&is_over, memory_order_relaxed); i++) {
		weir_read read;
		const unsigned char *bytes;

		must(weir_var_read(variables[i % VARIABLES], &read) == WEIR_OK, "a read failed");
		bytes = weir_tensor_data(read.tensor);
		for (size_t at = 0; at < VALUE_BYTES; at += 64)
			must(bytes[at] == bytes[0], "a value is torn");
		weir_read_release(&read);
	}
	return unused;
}

static double resident_mib(void)
{
	unsigned long size = 0, resident = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	must(file != NULL && fscanf(file, "%lu %lu", &size, &resident) == 2, "cannot read /proc/self/statm");
	(void)fclose(file);
	return (double)resident * (double)sysconf(_SC_PAGESIZE) / (1 << 20);
}

static double watch(uint64_t until_ns)
{
	double peak = 0;

	while (weir_now_ns() < until_ns) {
		double now = resident_mib();

		peak = now > peak ? now : peak;
		(void)usleep(2000);
	}
	return peak;
}

int main(int argc, char **argv)
{
	const char *setting = argc > 1 ? argv[1] : "default";
	unsigned milliseconds = argc > 2 ? (unsigned)atoi(argv[2]) : 2000;
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_U8};
	pthread_t threads[WRITERS + READERS];
	double before = resident_mib(), peak;

	if (!set(setting)) {
		(void)fputs("usage: weir-resident [default|maps|one-arena|trim-threshold|mmap-threshold] [MILLISECONDS]\n",
		            stderr);
		return 2;
	}
	weir_reclaim_set_budget(BUDGET);
	for (size_t i = 0; i < VARIABLES; i++) {
		weir_tensor *value = value_of(0);

		must(weir_var_create(value, &options, &variables[i], NULL) == WEIR_OK, "cannot create a variable");
		weir_tensor_release(value);
	}
	for (size_t i = 0; i < WRITERS + READERS; i++)
		must(pthread_create(&threads[i], NULL, i < WRITERS ? write_on : read_on, NULL) == 0, "cannot start a thread");
	peak = watch(weir_deadline_in((uint64_t)milliseconds * 1000000));
	atomic_store_explicit(&is_over, 1, memory_order_relaxed);
	for (size_t i = 0; i < WRITERS + READERS; i++)
		(void)pthread_join(threads[i], NULL);
	must(weir_reclaim_flush(weir_deadline_in(UINT64_C(30000000000))) == WEIR_OK, "the flush did not free everything");
	(void)printf("%s: %.1f MiB resident at the peak, %.1f MiB after a flush, %.0f writes/s\n", setting, peak - before,
	             resident_mib() - before,
	             (double)atomic_load_explicit(&written, memory_order_relaxed) * 1000 / milliseconds);
	for (size_t i = 0; i < VARIABLES; i++)
		weir_var_destroy(variables[i], NULL);
	return 0;
}
