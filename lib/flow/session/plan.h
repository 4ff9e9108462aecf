/*
 * plan.h - what a step executes: the ancestors of the fetches and targets, with numbers instead of
 * pointers.
 *
 * A plan is immutable once compiled. Its session keeps it until the session is destroyed. The
 * values of a step are in numbered slots:
 *
 *     0 .. feed_count-1 | constant_count constants | the outputs of plan node 0, 1, ...
 */
#ifndef WEIRI_PLAN_H
#define WEIRI_PLAN_H

#include <stddef.h>
#include <stdint.h>
#include <weir/critical_section.h>
#include <weir/flow/session.h>

#include "graph/node.h"
#include "run/published.h"

/* The feeds, fetches and targets of a run: the key of a plan. */
struct weiri_signature {
	const struct weir_feed *feeds;
	size_t feed_count;
	const weir_output *fetches;
	size_t fetch_count;
	weir_node *const *targets;
	size_t target_count;
	uint64_t hash;
};

struct weiri_plan_node {
	const weir_node *node;
	uint64_t wanted;     /* bit i: output i is used */
	uint32_t pending;    /* incoming edges; 0: ready at the start */
	uint32_t successors; /* where its successors begin in plan->successors */
	uint32_t successor_count;
	uint32_t inputs;                     /* where its input slots begin in plan->input_slots */
	uint32_t outputs;                    /* the slot of output 0 */
	uint32_t holds;                      /* where its handles begin */
	uint32_t wait;                       /* which of the step's waits it uses, if it waits */
	const weir_critical_section *within; /* which user code of the node must not enter; or NULL */
};

/* The offsets of the parts of a step's one allocation. */
struct weiri_step_layout {
	size_t size;
	size_t values;
	size_t inputs;
	size_t holds;
	size_t nodes;
	size_t waits;
};

struct weiri_plan {
	struct weiri_published link; /* in a bucket of the session */
	size_t bytes;
	uint64_t hash;

	weir_output *feeds; /* feeds, fetches and targets: a copy of the key */
	weir_output *fetches;
	weir_node **targets;
	size_t feed_count, fetch_count, target_count;

	struct weiri_plan_node *nodes;
	uint32_t node_count;
	uint32_t *successors;
	uint32_t *input_slots;
	uint32_t input_count;
	uint32_t *fetch_slots;
	weir_tensor **constants;
	uint32_t constant_count;
	uint32_t slot_count;
	uint32_t hold_count;
	uint32_t wait_count;
	bool has_user_code; /* true: a step of the plan may outlive its run */
	struct weiri_step_layout step;
};

uint64_t weiri_signature_hash(const struct weiri_signature *signature);
/* Returns true if the plan was compiled for this signature. */
bool weiri_plan_matches(const struct weiri_plan *plan, const struct weiri_signature *signature);

/*
 * Checks the signature, finds the ancestors and numbers them. Seals their lists of control edges.
 * Fails with WEIR_INVALID_ARGUMENT as weir_session_run() does, with WEIR_FAILED_PRECONDITION (a
 * critical section was not finished), or with WEIR_RESOURCE_EXHAUSTED.
 */
enum weir_status weiri_plan_compile(weir_graph *graph, const weir_allocator *allocator,
                                    const struct weiri_signature *signature, struct weiri_plan **out,
                                    weir_error *error);
void weiri_plan_free(struct weiri_plan *plan, const weir_allocator *allocator);

/* Returns true if the step owns a reference to output `index` of the node. */
static inline bool weiri_output_owned(const weir_node *node, uint32_t index)
{
	if (node->op->traits & WEIRI_OP_BORROWS)
		return false;
	return (node->op->traits & WEIRI_OP_BORROWS_ALL_BUT_LAST) == 0 || index + 1 == node->output_count;
}

#endif
