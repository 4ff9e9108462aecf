/*
 * cost_look_ups.c - weir-cost: variables in a read section, names in a store, and the next of an
 * iterator.
 */
#include <stdio.h>

#if defined(WEIR_BENCH_URCU_PEEK)
#include <weir/urcu.h>
#endif

#include "cost.h"

enum { NAMES = 1024 };

static _Alignas(64) weir_read_section reading = {WEIR_READ_SECTION_INIT};
static weir_store *store;
static weir_iterator *iterator;
static volatile uint64_t sink;

/* -- read sections ----------------------------------------------------------------------------- */

static void reading_begin(void)
{
	cost_vars_begin();
	must(weir_read_section_begin(&reading));
}

static void reading_end(void)
{
	must(weir_read_section_end(&reading));
	cost_vars_end();
}

static void read_peek(void)
{
	sink = weir_read_section_peek(&reading, cost_vars[0])->version;
}

/* Begun again: the thread has begun and ended it before. */
static void read_section_of_1(void)
{
	must(weir_read_section_begin(&reading));
	sink = weir_read_section_peek(&reading, cost_vars[0])->version;
	must(weir_read_section_end(&reading));
}

static void read_section_of_16(void)
{
	uint64_t sum = 0;

	must(weir_read_section_begin(&reading));
	for (int i = 0; i < 16; i++)
		sum += weir_read_section_peek(&reading, cost_vars[i % VARIABLES])->version;
	must(weir_read_section_end(&reading));
	sink = sum;
}

#if defined(WEIR_BENCH_URCU_PEEK)
/* No other thread is there, so it needs no flavour. What rcu_read_lock() costs is liburcu's. */
static void urcu_peek(void)
{
	sink = weir_urcu_peek(cost_vars[0])->version;
}
#endif

/* -- names ------------------------------------------------------------------------------------- */

static const struct weir_resource_type things = {"thing", NULL};

static void names_begin(void)
{
	char name[16];

	must(weir_store_create(NULL, &store, NULL));
	for (int i = 0; i < NAMES; i++) {
		(void)snprintf(name, sizeof(name), "variable/%d", i);
		must(weir_store_add(store, NULL, name, &things, &store, NULL, NULL));
	}
}

static void names_end(void)
{
	weir_store_destroy(store, NULL);
}

static void find_release(void)
{
	weir_resource *resource;

	must(weir_store_find(store, NULL, "variable/523", &things, &resource, NULL));
	weir_resource_release(resource);
}

/* -- datasets ---------------------------------------------------------------------------------- */

static void range_begin(void)
{
	weir_dataset *range;

	must(weir_dataset_range(0, INT64_MAX, 1, NULL, &range, NULL));
	must(weir_iterator_create(range, NULL, &iterator, NULL));
	weir_dataset_release(range);
}

static void range_end(void)
{
	must(weir_iterator_destroy(iterator, NULL));
}

static void next_release(void)
{
	weir_tensor *part;

	must(weir_iterator_next(iterator, WEIR_NO_DEADLINE, NULL, &part, 1, NULL));
	weir_tensor_release(part);
}

/* -- the table --------------------------------------------------------------------------------- */

static const struct cost_operation operations[] = {
	{"variable read in a section", reading_begin, nothing, read_peek, nothing, reading_end},
	{"section of 1 read", cost_vars_begin, nothing, read_section_of_1, nothing, cost_vars_end},
	{"section of 16 reads", cost_vars_begin, nothing, read_section_of_16, nothing, cost_vars_end},
#if defined(WEIR_BENCH_URCU_PEEK)
	{"variable read in a section of liburcu", cost_vars_begin, nothing, urcu_peek, nothing, cost_vars_end},
#endif
	{"name look-up, release", names_begin, nothing, find_release, nothing, names_end},
	{"iterator next of a range, release", range_begin, nothing, next_release, nothing, range_end},
};

const struct cost_group cost_look_ups = COST_GROUP(operations);
