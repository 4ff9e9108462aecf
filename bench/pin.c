/*
 * pin.c - pins threads: with hwloc, which knows the cores, caches and packages of the machine, or by what
 * Linux says of cores and packages, in a build without hwloc.
 */
#include "pin.h"

#include <stdio.h>
#include <stdlib.h>

#ifdef WEIR_BENCH_HWLOC
#include <hwloc.h>

static hwloc_topology_t topology;
static hwloc_bitmap_t places[BENCH_MAX_THREADS];
static unsigned place_count;

/*
 * Takes the processors in the machine's order: those that share a core or a cache are next to each
 * other.
 */
static void compact(unsigned processors)
{
	for (unsigned i = 0; i < place_count; i++)
		places[i] = hwloc_bitmap_dup(hwloc_get_obj_by_type(topology, HWLOC_OBJ_PU, i % processors)->cpuset);
}

/* Spreads the threads so that as few as possible share anything. */
static void spread(void)
{
	hwloc_obj_t root = hwloc_get_root_obj(topology);

	if (hwloc_distrib(topology, &root, 1, places, place_count, INT_MAX, 0) != 0) {
		(void)fprintf(stderr, "weir-bench: hwloc cannot spread %u threads\n", place_count);
		exit(BENCH_CANNOT);
	}
	for (unsigned i = 0; i < place_count; i++)
		hwloc_bitmap_singlify(places[i]);
}

void bench_pin_prepare(enum bench_pin pin, unsigned threads)
{
	int processors;

	if (pin == BENCH_PIN_NONE)
		return;
	if (topology == NULL && (hwloc_topology_init(&topology) != 0 || hwloc_topology_load(topology) != 0)) {
		(void)fprintf(stderr, "weir-bench: hwloc cannot read the topology of this machine\n");
		exit(BENCH_CANNOT);
	}
	for (unsigned i = 0; i < place_count; i++)
		hwloc_bitmap_free(places[i]);
	processors = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);
	place_count = threads > BENCH_MAX_THREADS ? BENCH_MAX_THREADS : threads;
	if (pin == BENCH_PIN_SPREAD) {
		spread();
	} else {
		compact(processors > 0 ? (unsigned)processors : 1);
	}
}

void bench_pin_thread(unsigned index)
{
	if (place_count != 0 && hwloc_set_cpubind(topology, places[index % place_count], HWLOC_CPUBIND_THREAD) != 0) {
		perror("weir-bench: cannot pin a thread");
		exit(BENCH_CANNOT);
	}
}
#else
#include <sched.h>

struct processor {
	unsigned number, package, core; /* as Linux numbers them */
	unsigned sibling, place;        /* its rank in its core, and that of its core in the package */
};

static struct processor processors[CPU_SETSIZE];
static unsigned processor_count, pinned;

/* Returns what Linux says of a processor, or `otherwise` if it does not say it. */
static unsigned topology(unsigned processor, const char *what, unsigned otherwise)
{
	char path[96];
	unsigned found;
	FILE *in;

	(void)snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/topology/%s", processor, what);
	in = fopen(path, "r");
	if (in == NULL)
		return otherwise;
	if (fscanf(in, "%u", &found) != 1)
		found = otherwise;
	(void)fclose(in);
	return found;
}

static int in_order(const unsigned a[], const unsigned b[], int count)
{
	for (int i = 0; i < count; i++) {
		if (a[i] != b[i])
			return a[i] < b[i] ? -1 : 1;
	}
	return 0;
}

/* Those that share a core or a package are next to each other. */
static int by_nearness(const void *left, const void *right)
{
	const struct processor *a = left, *b = right;

	return in_order((const unsigned[]){a->package, a->core, a->number},
	                (const unsigned[]){b->package, b->core, b->number}, 3);
}

/* Those that share as little as possible are next to each other. */
static int by_distance(const void *left, const void *right)
{
	const struct processor *a = left, *b = right;

	return in_order((const unsigned[]){a->sibling, a->place, a->package, a->number},
	                (const unsigned[]){b->sibling, b->place, b->package, b->number}, 4);
}

static void find_processors(void)
{
	cpu_set_t allowed;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) {
		perror("weir-bench: cannot find the processors");
		exit(BENCH_CANNOT);
	}
	for (unsigned i = 0; i < CPU_SETSIZE; i++) {
		if (CPU_ISSET(i, &allowed))
			processors[processor_count++] = (struct processor){
				.number = i, .package = topology(i, "physical_package_id", 0), .core = topology(i, "core_id", i)};
	}
	qsort(processors, processor_count, sizeof(processors[0]), by_nearness);
	for (unsigned i = 1; i < processor_count; i++) {
		const struct processor *before = &processors[i - 1];
		int same_package = before->package == processors[i].package;
		int same_core = same_package && before->core == processors[i].core;

		processors[i].sibling = same_core ? before->sibling + 1 : 0;
		processors[i].place = same_core ? before->place : same_package ? before->place + 1 : 0;
	}
}

void bench_pin_prepare(enum bench_pin pin, unsigned threads)
{
	(void)threads;
	pinned = pin != BENCH_PIN_NONE;
	if (!pinned)
		return;
	if (processor_count == 0)
		find_processors();
	qsort(processors, processor_count, sizeof(processors[0]), pin == BENCH_PIN_SPREAD ? by_distance : by_nearness);
}

void bench_pin_thread(unsigned index)
{
	cpu_set_t place;

	if (!pinned)
		return;
	CPU_ZERO(&place);
	CPU_SET(processors[index % processor_count].number, &place);
	if (sched_setaffinity(0, sizeof(place), &place) != 0) {
		perror("weir-bench: cannot pin a thread");
		exit(BENCH_CANNOT);
	}
}
#endif
