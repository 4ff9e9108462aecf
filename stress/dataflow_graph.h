/*
 * dataflow_graph.h - random graphs with functions, drawn from a seed: what they compute, and how they
 * are built.
 *
 * A plan is a tree of bodies. The root becomes the graph; the others become functions, which a call, a
 * case, a loop or a map of another body runs. A node depends only on earlier nodes of its body, and
 * the draws of a body come from its own seed. So the first n nodes of the root are a graph too, and a
 * plan that is cut at a depth has the same nodes above it. That is how a fault is made smaller.
 */
#ifndef STRESS_DATAFLOW_GRAPH_H
#define STRESS_DATAFLOW_GRAPH_H

#include <stdbool.h>
#include <stdint.h>
#include <weir/critical_section.h>
#include <weir/flow/function.h>
#include <weir/flow/graph.h>
#include <weir/flow/op.h>
#include <weir/flow/tensor_queue.h>
#include <weir/var.h>

enum { FLOW_NODES = 28, FLOW_BODIES = 48, FLOW_VARS = 3, FLOW_DEPTH = 3, FLOW_BRANCHES = 3 };

enum flow_kind {
	FLOW_CONSTANT,
	FLOW_INPUT, /* of the root: fed; of a body: a parameter */
	FLOW_ADD,
	FLOW_SUB,
	FLOW_MUL,
	FLOW_LESSER, /* select(less(a, b), a, b) */
	FLOW_KERNEL,
	FLOW_READ,
	FLOW_ADD_TO,
	FLOW_SNAPSHOT,
	FLOW_ENQUEUE,
	FLOW_DEQUEUE,
	FLOW_SECTION, /* reads, adds one and assigns, in a critical section */
	FLOW_CALL,
	FLOW_CASE, /* of the branch `a` modulo 3 */
	FLOW_COND, /* of a < b */
	FLOW_LOOP, /* `limit` times */
	FLOW_MAP,  /* of `limit` rows */
	FLOW_KINDS
};

struct flow_node {
	enum flow_kind kind;
	uint32_t a, b; /* earlier nodes that give a value */
	uint32_t var;
	int64_t constant;
	uint32_t limit;
	uint32_t after; /* an earlier node that must run before; FLOW_NODES: none */
	struct flow_body *bodies[FLOW_BRANCHES];
};

/* What a node became in a graph. */
struct flow_built {
	weir_output out;
	weir_node *node;
};

struct flow_body {
	struct flow_plan *plan;
	uint32_t number;
	uint32_t count;
	bool is_loop; /* its first result is its first parameter plus 1 */
	struct flow_node nodes[FLOW_NODES];
};

/* What the nodes use. */
struct flow_objects {
	weir_var *vars[FLOW_VARS];
	weir_var *inside; /* only the critical section uses it */
	weir_critical_section *section;
	weir_tensor_queue *queue;
};

struct flow_plan {
	struct flow_body bodies[FLOW_BODIES]; /* the first is the root */
	uint32_t body_count;
	int64_t fed_value;
	struct flow_objects objects;
	weir_function *functions[3 * FLOW_BODIES];
	uint32_t function_count;
	struct flow_built built[FLOW_NODES]; /* of the root */
};

/* The value of a node, if the seed determines it: no variable and no queue has a part in it. */
struct flow_value {
	bool determined;
	int64_t value;
};

/* Draws a plan whose root has at most `most` nodes, and whose functions nest at most `depth` deep. */
void flow_draw(struct flow_plan *plan, uint64_t seed, uint32_t most, uint32_t depth);
/* Returns true if a node of this kind has an output. */
bool flow_has_value(enum flow_kind kind);
/* The interpreter: computes the nodes of the root, one after the other. */
void flow_interpret(const struct flow_plan *plan, struct flow_value values[FLOW_NODES]);
/* Builds the root. The objects are there. */
void flow_build(struct flow_plan *plan, weir_graph *graph);
/* After the graph was destroyed. */
void flow_destroy_functions(struct flow_plan *plan);
/* The number that an assign_add of this name adds to its variable. */
int64_t flow_added_by(const struct flow_plan *plan, const char *name);

weir_tensor *flow_integer(int64_t value);
int64_t flow_integer_of(const weir_tensor *tensor);

#endif
