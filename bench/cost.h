/*
 * cost.h - shared by the parts of weir-cost: an operation, a group of operations, and what they all
 * use.
 *
 * Each group is a file with one table. cost.c performs the groups in the order of their
 * declarations here, which is that of bench/costs.tsv.
 */
#ifndef COST_H
#define COST_H

#include <stdlib.h>
#include <weir/weir.h>

struct cost_operation {
	const char *name;
	void (*begin)(void);
	void (*before)(void);
	void (*call)(void); /* runs between the marks */
	void (*after)(void);
	void (*end)(void);
};

struct cost_group {
	const struct cost_operation *operations;
	size_t count;
};

#define COST_GROUP(table) \
	{ \
		(table), sizeof(table) / sizeof((table)[0]) \
	}

extern const struct cost_group cost_rings, cost_variables, cost_steps, cost_look_ups, cost_cpp;

/* The variables of the group of that name. The look-ups read them, too. */
enum { VARIABLES = 8 };
extern weir_var *cost_vars[VARIABLES];
void cost_vars_begin(void);
void cost_vars_end(void);

static inline void must(enum weir_status status)
{
	if (status != WEIR_OK)
		exit(3);
}

static inline void nothing(void)
{
}

#endif
