/*
 * pin.c - pins threads with hwloc, which knows the cores, caches and packages of the machine.
 */
#include "pin.h"

#include <stdio.h>
#include <stdlib.h>

#ifdef WEIR_BENCH_HWLOC
#include <hwloc.h>

static hwloc_topology_t topology;
static hwloc_bitmap_t places[BENCH_MAX_THREADS];
static unsigned place_count;

int bench_can_pin(void)
{
	return 1;
}

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
int bench_can_pin(void)
{
	return 0;
}

void bench_pin_prepare(enum bench_pin pin, unsigned threads)
{
	(void)pin;
	(void)threads;
}

void bench_pin_thread(unsigned index)
{
	(void)index;
}
#endif
