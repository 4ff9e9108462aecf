/*
 * op.h - what an op is: how its outputs are inferred, and how it runs.
 *
 * Each op is one static struct weiri_op, next to its builder. A math op has `infer` and `compute`,
 * and weiri_math_run allocates its outputs. An op that waits has `start`. Every other op has a
 * `run` of its own.
 */
#ifndef WEIRI_OP_H
#define WEIRI_OP_H

#include <stddef.h>
#include <stdint.h>
#include <weir/flow/gradient.h>
#include <weir/flow/kernel.h>
#include <weir/flow/op.h>

#include "base/compiler.h"
#include "graph/spec.h"
#include "run/trace_buffer.h"
#include "run/trace_format.h"

enum weiri_op_traits {
	WEIRI_OP_PLACEHOLDER = 1, /* never runs */
	WEIRI_OP_CONSTANT = 2,    /* its value is known before the run */
	WEIRI_OP_WAITS = 4,       /* start() instead of run() */
	WEIRI_OP_USER = 8,        /* runs user code */
	WEIRI_OP_HEAVY = 16,      /* may be worth a worker of its own: that is decided by what a run costs */
	WEIRI_OP_IN_PLACE = 32,   /* math: an element of output 0 depends only on the elements at its place in the inputs */
	WEIRI_OP_ENTERS = 64,  /* enters a critical section; a plan with this op has its exit; its output cannot be fed */
	WEIRI_OP_LEAVES = 128, /* the exit: also runs in a step that stops, with NULL for missing inputs */
	WEIRI_OP_SHORT = 256,  /* with USER: not worth a hand-over to a worker */
	WEIRI_OP_CALLS = 512,  /* runs functions, by inner->begin() instead of run() */
	WEIRI_OP_DRAWS = 1024, /* its value depends on call->draws */
	WEIRI_OP_APART = 2048, /* on a worker of its own when there is other work, whatever its inputs are */
	WEIRI_OP_PULLS = 4096  /* with WAITS: a start or an attempt may run user code, of a dataset */
};

/*
 * One run of one node. The frame owns all that the members point to. An output is a reference that
 * passes to the frame. The exceptions are the first node->hold_count outputs: output i is the
 * tensor of holds[i].
 */
struct weiri_call {
	const weir_node *node;
	weir_tensor **inputs;  /* borrowed; see weiri_call_pass() */
	weir_tensor **outputs; /* all NULL at first */
	weir_read *holds;      /* node->hold_count cleared handles */
	uint64_t wanted;       /* bit i: output i is used; outputs from 64 on count as used */
	uint64_t taken;        /* bit i: this node is the last use of input i, and the frame has a reference to it */
	const weir_allocator *allocator;
	weir_cancel *token; /* NULL in a step that neither waits nor runs user code */
	uint64_t deadline_ns;
	bool may_run_functions; /* of elements that are taken: the step has no limit that would have to interrupt them */
	uint64_t draws;         /* with WEIRI_OP_DRAWS: what a draw depends on besides its seed and node */
	weir_error *error;      /* the op fills it on failure, without the node's name */
	const struct weiri_trace_point *trace; /* NULL: the run is not recorded */
};

static inline bool weiri_call_wants(const struct weiri_call *call, uint32_t output)
{
	return output >= 64 || (call->wanted >> output & 1) != 0;
}

/* Tells the trace that the op had this effect on `object`: on the version or item `number`. */
static inline void weiri_call_tell(const struct weiri_call *call, enum weiri_trace_effect_kind kind, const void *object,
                                   uint64_t number)
{
	if (WEIRI_UNLIKELY(call->trace != NULL))
		weiri_trace_effect(call->trace, kind, object, number);
}

/* Returns a reference to input `input`, for an output; NULL if the input is missing. */
static inline weir_tensor *weiri_call_pass(const struct weiri_call *call, uint32_t input)
{
	weir_tensor *value = call->inputs[input];

	if (input >= 64 || (call->taken >> input & 1) == 0)
		return weir_tensor_retain(value);
	call->inputs[input] = NULL; /* the frame's reference passes on */
	return value;
}

/*
 * Computes the outputs' specs from the inputs' specs. When the node is built the inputs' specs may
 * be partial; when the node runs they are those of actual tensors.
 */
typedef enum weir_status weiri_infer_fn(const void *attribute, const struct weiri_spec inputs[],
                                        struct weiri_spec outputs[], weir_error *error);
/*
 * Fills data[i], the bytes of output i. If data[i] is NULL, the output is not wanted. `infer` has
 * accepted the inputs.
 */
typedef enum weir_status weiri_compute_fn(const struct weiri_call *call, void *const data[]);
typedef enum weir_status weiri_run_fn(const struct weiri_call *call);
/*
 * Starts the asynchronous operation. If this succeeds, done(context, ...) is called exactly once;
 * if it fails, never. *operation is NULL if the token of the call is the only way to end it.
 */
typedef enum weir_status weiri_start_fn(const struct weiri_call *call, weir_tensor_queue_done_fn *done, void *context,
                                        weir_pending **operation);
/*
 * Does what start() would, at once. Returns false if it has done nothing, because it would have to wait
 * or would fail: start() then says which.
 */
typedef bool weiri_attempt_fn(const struct weiri_call *call);
/*
 * Returns about how many ns a run of the node takes with these inputs, some of which may be NULL;
 * UINT64_MAX if nobody knows yet.
 */
typedef uint64_t weiri_cost_fn(const weir_node *node, weir_tensor *const inputs[]);
/* Releases the references that the attribute holds. */
typedef void weiri_drop_fn(void *attribute);
/*
 * An object that a node may change or read in addition to its inputs: a variable, a queue, an object
 * of a kernel. Without an object it stands for the effects that no object names.
 */
struct weiri_resource {
	const void *object;
	const char *kind, *name;
	bool writes;
};
/* Sets *resource to the i-th object of the node. Returns false if the node has no more than i. */
typedef bool weiri_touches_fn(const weir_node *node, size_t i, struct weiri_resource *resource);
/* Returns the name of the queue, or of another object, for which the node waits. */
typedef const char *weiri_resource_fn(const void *attribute);
/* Tells whether it is known that nothing serves that wait: no thread has announced that it would. */
typedef bool weiri_starves_fn(const void *attribute);

/*
 * Adds the nodes of a gradient: sets into[i], for each input that is needed, to the gradient by input i,
 * or leaves it without a node, which means 0. See weir/flow/gradient.h.
 */
typedef enum weir_status weiri_gradient_fn(const weir_node *node, const struct weir_gradient_request *request,
                                           weir_output into[], weir_error *error);

struct weiri_inner;

struct weiri_op {
	const char *name;
	uint32_t traits;
	weiri_infer_fn *infer; /* at most WEIRI_MATH_MAX_INPUTS and _OUTPUTS; NULL: the builder gives the specs */
	weiri_compute_fn *compute;
	weiri_run_fn *run;
	weiri_start_fn *start;
	weiri_attempt_fn *attempt;       /* with start; may be NULL */
	weiri_cost_fn *cost;             /* NULL: it follows from the bytes of the inputs */
	weiri_drop_fn *drop;             /* may be NULL */
	weiri_resource_fn *resource;     /* with start */
	const char *resource_kind;       /* NULL: a queue */
	weiri_touches_fn *touches;       /* NULL: none */
	const struct weiri_inner *inner; /* with WEIRI_OP_CALLS; see session/function.h */
	weiri_gradient_fn *gradient;     /* NULL: it has none */
	weiri_starves_fn *starves;       /* with resource; NULL: nothing is known */
};

/*
 * A run that costs less is not worth a hand-over to another thread. An op that only passes over its
 * inputs gets through so many bytes of them in a nanosecond.
 */
enum { WEIRI_WORTH_A_WORKER_NS = 10000, WEIRI_BYTES_PER_NS = 8 };

enum { WEIRI_MATH_MAX_INPUTS = 3, WEIRI_MATH_MAX_OUTPUTS = 2 };

/* The run function of every op that has infer and compute. */
enum weir_status weiri_math_run(const struct weiri_call *call);

/* Builds a node of a math op and returns its outputs: *first, and *second unless it is NULL. */
enum weir_status weiri_math_build(weir_graph *graph, const struct weiri_op *op, const char *name,
                                  const weir_output inputs[], size_t input_count, const void *attribute,
                                  size_t attribute_size, size_t output_count, weir_output *first, weir_error *error);
/* The same for an op of two inputs and one output; the attribute is `which`, an unsigned. */
enum weir_status weiri_math_build_binary(weir_graph *graph, const struct weiri_op *op, unsigned which, const char *name,
                                         weir_output a, weir_output b, weir_output *out, weir_error *error);

/* Returns WEIR_OK if the dtype is i32, i64, f32 or f64, otherwise WEIR_UNIMPLEMENTED. */
enum weir_status weiri_numeric_check(enum weir_dtype dtype, weir_error *error);
/* Returns WEIR_OK if the dtype is f32 or f64, otherwise WEIR_UNIMPLEMENTED. */
enum weir_status weiri_float_check(enum weir_dtype dtype, weir_error *error);

/* Makes an i64 tensor [count], or a scalar if count is 0, from `values`. */
enum weir_status weiri_i64_tensor(const uint64_t values[], size_t count, const weir_allocator *allocator,
                                  weir_tensor **out, weir_error *error);

/* Returns true while a user kernel runs on this thread, otherwise false. */
bool weiri_inside_kernel(void);

#endif
