/*
 * cost.c - weir-cost: performs each hot operation several times between two marks.
 *
 * scripts/check_costs runs it under valgrind and counts what happens between the marks:
 * instructions, atomic read-modify-writes, and cache lines written.
 *
 * There is one thread, no contention, and every cache is warm, so that the figures are the cost of
 * an operation alone. The library is linked statically, so that a call is a direct call. A call
 * through the shared library costs one jump more.
 */
#include <link.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/asymmetric.h"
#include "cost.h"

enum { WARM_UP = 64, MEASURED = 64, MAX_OPERATIONS = 96 };

/*
 * The marks. check_costs finds the stores into them in the trace of memory accesses. Each pair has
 * a cache line of its own, so that no mark counts as a line of the operation.
 */
static struct {
	_Alignas(64) volatile char begin, end;
} marks[MAX_OPERATIONS];

/*
 * The first is the cost of a call through these tables; check_costs subtracts it from all others.
 */
static const struct cost_operation first[] = {{"nothing", nothing, nothing, nothing, nothing, nothing}};
static const struct cost_group cost_first = COST_GROUP(first);
static const struct cost_group *const groups[] = {
	&cost_first, &cost_rings, &cost_variables, &cost_steps, &cost_look_ups,
#if defined(WEIR_BENCH_CPP)
	&cost_cpp,
#endif
};
enum { GROUPS = sizeof(groups) / sizeof(groups[0]) };

static void perform(const struct cost_operation *operation, size_t index)
{
	operation->begin();
	for (int i = 0; i < WARM_UP + MEASURED; i++) {
		operation->before();
		if (i >= WARM_UP)
			marks[index].begin = 1;
		operation->call();
		if (i >= WARM_UP)
			marks[index].end = 1;
		operation->after();
	}
	operation->end();
}

/*
 * For dl_iterate_phdr(), which names the program itself first: prints where its code lies, and
 * stops.
 */
static int print_place(struct dl_phdr_info *info, size_t size, void *context)
{
	uint64_t low = UINT64_MAX, high = 0;

	(void)size;
	(void)context;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		uint64_t from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

		if (info->dlpi_phdr[i].p_type != PT_LOAD || !(info->dlpi_phdr[i].p_flags & PF_X))
			continue;
		low = from < low ? from : low;
		high = from + info->dlpi_phdr[i].p_memsz > high ? from + info->dlpi_phdr[i].p_memsz : high;
	}
	(void)printf("code %llx %llx %llx\n", (unsigned long long)info->dlpi_addr, (unsigned long long)low,
	             (unsigned long long)high);
	return 1;
}

static void print_marks(const struct cost_operation *operation, size_t index)
{
	if (index >= MAX_OPERATIONS)
		exit(3); /* each operation has its marks */
	(void)printf("operation %llx %llx %d %s\n", (unsigned long long)(uintptr_t)&marks[index].begin,
	             (unsigned long long)(uintptr_t)&marks[index].end, MEASURED, operation->name);
}

static void for_each(void (*act)(const struct cost_operation *operation, size_t index))
{
	size_t index = 0;

	for (size_t i = 0; i < GROUPS; i++) {
		for (size_t k = 0; k < groups[i]->count; k++)
			act(&groups[i]->operations[k], index++);
	}
}

int main(void)
{
	/*
	 * Decides now which kind of fence the process uses, so that all operations are measured with
	 * it. In other processes the first thread that uses Weir does this.
	 */
	weiri_fence_setup();
	(void)printf("compiler %s %s\n", WEIR_BENCH_COMPILER, WEIR_BENCH_MACHINE);
	(void)dl_iterate_phdr(print_place, NULL);
	(void)printf("stack %llx\n", (unsigned long long)(uintptr_t)__builtin_frame_address(0));
	for_each(print_marks);
	for_each(perform);
	return 0;
}
