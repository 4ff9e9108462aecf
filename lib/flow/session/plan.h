/*
 * plan.h - what a step executes: the ancestors of the fetches and targets, in an order in which
 * they can run, with numbers instead of pointers.
 *
 * A plan is immutable once compiled, except for its spare memory. It belongs to a callable; or the
 * session keeps it until the session is destroyed; or the one step that uses it does, if the session
 * keeps enough plans.
 *
 * Nodes. A unit is a chain of nodes: each but the last has one successor, and each but the first
 * has one predecessor. The nodes of a unit have consecutive numbers, and run as a loop. Only units
 * have counts and lists. The units without a predecessor, the roots, come first.
 *
 * Values. The values of a frame are in numbered slots:
 *
 *     0 .. feed_count-1 | constant_count constants | the outputs of plan node 0, 1, ...
 *
 * The compiler knows for each slot what keeps its value alive, and which use of it is the last one.
 *
 * Straight plans. In many small graphs, and bodies on scalars, no node holds an operation that waits, or
 * is worth another thread. Then one thread runs all units, and the order in which it does is known beforehand. Such a plan stays on
 * its thread: its units are run in this order, and nothing is counted. Bodies that its nodes call are
 * straight, too, and a call has ended when it returns. So calls and cases of small bodies use the same
 * room, in the memory of the frame, for their child frames.
 *
 * Invariants
 *   L1  each node is after its predecessors
 *   L2  no use of a slot comes after one that ends it: it is the only use; or all uses are in one
 *       unit, and it is the last of them; or the uses count down, and it is the one that reaches 0
 *   L3  the order of a straight plan has each unit once, after its predecessors
 *   L4  the bodies that a straight plan calls are straight
 */
#ifndef WEIRI_PLAN_H
#define WEIRI_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/critical_section.h>
#include <weir/flow/callable.h>
#include <weir/flow/function.h>
#include <weir/flow/session.h>

#include "graph/node.h"
#include "run/published.h"
#include "run/spare.h"

/* The feeds, fetches and targets of a run: the key of a plan. */
struct weiri_signature {
	const weir_output *feeds; /* each `feed_stride` bytes behind the one before */
	size_t feed_stride;
	size_t feed_count;
	const weir_output *fetches;
	size_t fetch_count;
	weir_node *const *targets;
	size_t target_count;
	uint64_t hash;
};

/* Numbers of a plan are at most this, so that the constants below are none of them. */
enum { WEIRI_PLAN_MOST = INT32_MAX - 2 };

/* What keeps the value of a slot alive; any other value is the number of the hold that does. */
enum {
	WEIRI_OWNER_OUTSIDE = INT32_MAX,  /* the caller or the graph */
	WEIRI_OWNER_FRAME = INT32_MAX - 1 /* the frame has a reference to it */
};

struct weiri_plan_slot {
	uint32_t owner;
	bool unused; /* no node uses it and it is not fetched */
};

/* What a use of a slot ends; any other value is the number of the count that tells. */
enum {
	WEIRI_ENDS_NOTHING = INT32_MAX, /* the value stays, or another input of the same node ends it */
	WEIRI_ENDS_VALUE = INT32_MAX - 1
};

/* An input of a plan node. */
struct weiri_use {
	uint32_t slot;
	uint32_t ends;
};

/* In addition to the traits of the op. */
enum {
	WEIRI_NODE_ENDS_USES = 1 << 16, /* some input is not WEIRI_ENDS_NOTHING, and not in `taken` */
	WEIRI_NODE_SPILLS = 1 << 17,    /* some output is unused */
	WEIRI_NODE_TELLS = 1 << 18,     /* late feeds: its end is told, because an output can be fetched */
	WEIRI_NODE_COMPUTES = 1 << 19   /* it has no effects, runs no user code, and does not wait */
};

struct weiri_plan_node {
	const weir_node *node;
	weiri_run_fn *run; /* of the op */
	uint64_t wanted;   /* bit i: output i is used */
	uint64_t taken;    /* bit i: input i ends a value that the frame owns */
	uint32_t flags;    /* the traits of the op, and WEIRI_NODE_ */
	uint32_t weight;   /* how long it may run, for the next look at clock and tokens (WEIRI_LOOK_WEIGHT) */
	uint32_t input_count;
	uint32_t inputs;                     /* where its inputs begin in plan->uses */
	uint32_t outputs;                    /* the slot of output 0 */
	uint32_t holds;                      /* where its handles begin */
	uint32_t wait;                       /* which of the frame's waits it uses, if it waits */
	uint32_t state;                      /* where its state begins in the frame's states, if it calls functions */
	const weir_critical_section *within; /* which user code of the node must not enter; or NULL */
};

/* A thread that runs nodes looks at the clock and the tokens after nodes of this weight together. */
enum { WEIRI_LOOK_WEIGHT = 64 };

enum { WEIRI_NO_COUNT = INT32_MAX };

struct weiri_unit {
	uint32_t first, end; /* its nodes */
	uint32_t successors; /* where its successors, which are units, begin in plan->successors */
	uint32_t successor_count;
	uint32_t count; /* the number of the count of its predecessors; WEIRI_NO_COUNT: at most one */
};

/* In place of a node: the value is that of a feed or a constant. */
enum { WEIRI_NO_NODE = INT32_MAX };

struct weiri_fetch {
	uint32_t slot;
	uint32_t node; /* at whose end it is there */
	bool last;     /* no later fetch is of the same slot */
};

/* The offsets of the parts of a step's one allocation. */
struct weiri_step_layout {
	size_t size;
	size_t values;
	size_t inputs;
	size_t holds;
	size_t counts;
	size_t units;
	size_t waits;
	size_t states;
	size_t results;
	size_t given;
	size_t told;
	size_t taken;
	size_t room;
};

struct weiri_plan {
	struct weiri_published link; /* in a bucket of the session */
	size_t bytes;
	uint64_t hash;
	bool kept;                      /* by the session or a function */
	weir_callable *callable;        /* to which it belongs; NULL: none */
	weir_function *function;        /* of whose body it is the plan; NULL: of none */
	weir_allocator allocator;       /* of the plan and its frames */
	struct weiri_spare spare;       /* the memory of a step that has ended */
	struct weiri_spare spare_child; /* the memory of a child frame that has ended */
	uint64_t id;                    /* of no other plan of this process */

	weir_output *feeds; /* feeds, fetches and targets: a copy of the key */
	weir_output *fetches;
	weir_node **targets;
	size_t feed_count, fetch_count, target_count;

	struct weiri_plan_node *nodes;
	struct weiri_unit *units;
	uint32_t *successors;
	struct weiri_use *uses;
	struct weiri_plan_slot *slots;
	uint32_t *counts; /* what they begin with: the predecessors of a unit, or the uses of a slot */
	struct weiri_fetch *fetched;
	weir_tensor **constants;
	uint32_t node_count, unit_count, root_count, use_count, slot_count, count_count, constant_count, hold_count,
		wait_count;
	uint32_t state_bytes; /* of all nodes that call functions */
	uint32_t weight;      /* of all nodes, bodies included */
	bool may_wait;
	bool has_user_code; /* true: a step of the plan may outlive its run */
	bool late;          /* feeds may come while a step runs */
	bool draws;         /* a node draws random numbers */
	bool stays;         /* it is straight: no node of it, or of a body that it calls, leaves its thread */
	bool heavy;         /* straight, unless its step is begun by a call that does not wait for it */
	uint32_t *straight; /* the units in the order in which one thread runs them */
	size_t room;        /* bytes of the largest child frame that a call of a straight plan needs */
	/* late: the units that use feed i: [late_starts[i] .. late_starts[i + 1] - 1], one entry for each use */
	uint32_t *late_starts;
	uint32_t *late_units;
	struct weiri_step_layout step;
	struct weiri_step_layout child; /* of a child frame */
};

static inline weir_output weiri_signature_feed(const struct weiri_signature *signature, size_t i)
{
	return *(const weir_output *)(const void *)((const char *)signature->feeds + i * signature->feed_stride);
}

uint64_t weiri_signature_hash(const struct weiri_signature *signature);
/* Returns true if the plan was compiled for this signature. */
bool weiri_plan_matches(const struct weiri_plan *plan, const struct weiri_signature *signature);

/*
 * SEPARATE: each node is a unit of its own. OWNS_FEEDS: the frame gets references to the feeds. LATE:
 * feeds may come while a step runs, and fetches be taken.
 */
enum weiri_plan_flags { WEIRI_PLAN_SEPARATE = 1, WEIRI_PLAN_OWNS_FEEDS = 2, WEIRI_PLAN_LATE = 4 };

/*
 * Checks the signature, finds the ancestors and numbers them. Seals their lists of control edges.
 * Takes time linear in the nodes and edges that it finds. Fails with WEIR_INVALID_ARGUMENT as
 * weir_session_run() does, with WEIR_FAILED_PRECONDITION (a critical section was not finished), or
 * with WEIR_RESOURCE_EXHAUSTED.
 */
enum weir_status weiri_plan_compile(weir_graph *graph, const weir_allocator *allocator,
                                    const struct weiri_signature *signature, uint32_t flags, struct weiri_plan **out,
                                    weir_error *error);
/* Accepts NULL. No step uses the plan. */
void weiri_plan_free(struct weiri_plan *plan, const weir_allocator *allocator);

#endif
