/*
 * plan_compiler.h - the state between the parts of the plan compiler: plan.c collects the nodes,
 * plan_order.c puts them into an order, and plan_values.c finds the last uses of their values.
 */
#ifndef WEIRI_PLAN_COMPILER_H
#define WEIRI_PLAN_COMPILER_H

#include "graph/node_map.h"
#include "session/plan.h"

/* Finds the feed of an output in constant time. */
struct weiri_feed_index {
	struct weiri_node_map nodes;
	uint32_t *first; /* by the number of the node: one of its feeds */
	uint32_t *next;  /* by the number of the feed: another feed of its node */
	size_t count;
};

enum { WEIRI_NO_FEED = INT32_MAX };

/*
 * The order of the nodes, before the plan exists. Nodes have two numbers: the one under which they
 * were collected, which the compiler's map gives, and the one of the plan.
 */
struct weiri_order {
	uint32_t *numbers;     /* by collected number: the number in the plan; or that of the constant */
	uint32_t *collected;   /* by number in the plan */
	uint32_t *unit_firsts; /* by unit: its first node */
	uint32_t *unit_of;     /* by number in the plan */
	uint32_t *arrivals;    /* by collected number: how many nodes are its predecessors */
	uint32_t *starts;      /* by collected number: where its successors begin; one more ends the last */
	uint32_t *successors;  /* collected numbers; no successor occurs twice */
	uint32_t *scratch;     /* by collected number */
	uint32_t *late_feeds;  /* by collected number: how many inputs are fed late */
	uint32_t *is_fetched;  /* by collected number: 1 for a node whose value can be fetched before the end */
	void *block;
	size_t bytes;
	uint32_t node_count, constant_count, unit_count, root_count, edge_count;
};

struct weiri_compiler {
	weir_graph *graph;
	const weir_allocator *allocator;
	const struct weiri_signature *signature;
	uint32_t flags; /* enum weiri_plan_flags */
	struct weiri_feed_index feeds;
	struct weiri_node_map nodes;
	struct weiri_order order;
	struct weiri_plan *plan;
	weir_error *error;
};

enum weir_status weiri_compiler_no_memory(const struct weiri_compiler *c);
/* Sets *feed and returns true if the output is fed. */
bool weiri_compiler_is_fed(const struct weiri_compiler *c, weir_output output, uint32_t *feed);
/* Returns true for a constant that waits for nothing: it is a value and no node of the plan. */
static inline bool weiri_needs_no_run(const weir_node *node)
{
	return (node->op->traits & WEIRI_OP_CONSTANT) != 0 && weiri_published_first(&node->controls) == NULL;
}

/* --- plan_order.c --- */

/*
 * Fills c->order; weiri_order_free() frees it, also after a failure. Fails with
 * WEIR_INVALID_ARGUMENT if the control edges have a cycle, or with WEIR_RESOURCE_EXHAUSTED.
 */
enum weir_status weiri_order_nodes(struct weiri_compiler *c);
void weiri_order_free(struct weiri_compiler *c);
/* Fills the units of the plan, and their successors. */
void weiri_order_connect(struct weiri_compiler *c);
/*
 * Fills plan->straight: the order in which one thread runs the units, each time the one that became
 * ready last, as execute.c does. Afterwards the arrivals of the order are no more what they were.
 */
void weiri_order_straight(struct weiri_compiler *c);

/* --- plan_values.c --- */

/*
 * Decides, for each use of a value, what it ends. The nodes of the plan are filled in, and plan
 * has room for a count for each slot.
 */
enum weir_status weiri_find_last_uses(struct weiri_compiler *c);

#endif
