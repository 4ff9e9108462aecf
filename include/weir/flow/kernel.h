/*
 * kernel.h - nodes that run functions of yours.
 *
 * A struct weir_kernel describes a kind of op. weir_op_kernel() adds a node of that kind to a graph.
 * A kernel computes in one call (`run`), or only starts its work there and fulfills a promise later,
 * on any thread (`start`). Use `start` for what waits for a device, a socket or another library,
 * because it holds no thread of the pool.
 *
 * | call             | threads | progress             | blocks on | allocates | signal-safe |
 * |------------------|---------|----------------------|-----------|-----------|-------------|
 * | weir_op_kernel   | any     | allocator, lock-free | allocator | yes       | no          |
 * | weir_promise_fulfill, _fail | any | lock-free (1) | nothing  | record (2) | no         |
 * | weir_promise_retain, _release | any | wait-free (3) | nothing | no      | no          |
 *
 * (1) It submits the rest of the step to the pool of the session.
 * (2) A thread's first call of Weir allocates its record.
 * (3) Dropping the last reference frees the promise, and fails it if it was not fulfilled.
 */
#ifndef WEIR_KERNEL_H
#define WEIR_KERNEL_H

#include <stddef.h>
#include <stdint.h>
#include <weir/cancel.h>
#include <weir/flow/gradient.h>
#include <weir/flow/graph.h>
#include <weir/status.h>
#include <weir/tensor.h>

WEIR_BEGIN_DECLS

struct weir_kernel_call {
	const char *node;           /* the node's name */
	weir_tensor *const *inputs; /* borrowed for the call; retain those that must outlive it */
	size_t input_count;
	/*
	 * Of `run`: all NULL at first. On WEIR_OK each must be set, and the step owns the references. On
	 * failure those that are set are released. Of `start`: NULL; weir_promise_fulfill() takes them.
	 */
	weir_tensor **outputs;
	size_t output_count;
	/* never NULL; fires when the step must end; poll it in long computations, or hook it */
	weir_cancel *cancel;
	uint64_t deadline_ns; /* of the step, or WEIR_NO_DEADLINE */
};

/*
 * Computes the outputs. Several steps may run it at the same time. Any status except WEIR_OK fails the
 * step with that status.
 *
 * It runs on a worker of the session's pool, unless that costs more than it gains: a kernel that is
 * short, by its flag or its cost_ns, runs on the thread on which its inputs ended. So does a node of
 * which at least 8 runs took less than 10 us, on a worker or in a run whose caller waits without a
 * deadline or token. If it takes longer after all, that caller cannot leave it.
 */
typedef enum weir_status weir_kernel_fn(void *context, const struct weir_kernel_call *call,
                                        weir_error *error);

/* What a started kernel owes: its outputs, or an error. */
typedef struct weir_promise weir_promise;

/*
 * Starts the work and returns; it must not wait. `promise` is a reference that the kernel gives back
 * with weir_promise_release(), after it has called weir_promise_fulfill() or weir_promise_fail(),
 * which it may do inside this call. With any status except WEIR_OK the node has failed with that
 * status, and Weir takes the reference back. call->inputs and *call end with the call; call->cancel
 * exists until the promise is fulfilled. Whoever fires the token waits for nothing: to react, hook
 * it (weir_cancel_on()) or poll it. A step whose kernel does not react ends for its caller at the
 * deadline, as with a kernel that runs on; weir_session_destroy() waits for the promise.
 */
typedef enum weir_status weir_kernel_start_fn(void *context, const struct weir_kernel_call *call,
                                              weir_promise *promise, weir_error *error);

/* What is known of a tensor before it exists. */
struct weir_kernel_spec {
	enum weir_dtype dtype;
	bool ranked;      /* false: not even the rank is known */
	weir_shape shape; /* if ranked; a negative dim is not known */
};

/*
 * Tells the outputs' specs from those of the inputs, when a node is built. outputs[] has the types
 * that weir_op_kernel() was given, or zeros. Any status except WEIR_OK refuses the node.
 */
typedef enum weir_status weir_kernel_infer_fn(void *context, const struct weir_kernel_spec inputs[],
                                              size_t input_count, struct weir_kernel_spec outputs[],
                                              size_t output_count, weir_error *error);

/*
 * Adds to request->graph the nodes of the gradient: see struct weir_gradient_request. Sets
 * gradients[i] for each input that is needed, or leaves it as it is, without a node, which means 0.
 * Any status except WEIR_OK fails weir_gradients() with it.
 */
typedef enum weir_status weir_kernel_gradient_fn(void *context,
                                                 const struct weir_gradient_request *request,
                                                 weir_output gradients[], weir_error *error);

enum weir_kernel_flags {
	/* It takes less than a microsecond or so: it runs on the thread on which its inputs ended, which
	   may be the caller's. A deadline cannot interrupt a run on its caller's thread. */
	WEIR_KERNEL_SHORT = 1,
	/* It has effects that no use names. In a function, such nodes run in the order in which they were
	   built, and always (weir/flow/function.h). */
	WEIR_KERNEL_STATEFUL = 2
};

struct weir_kernel {
	size_t struct_size;                /* WEIR_KERNEL_INIT sets it */
	const char *name;                  /* of the kind, for weir_node_op() and messages; borrowed */
	uint32_t flags;                    /* enum weir_kernel_flags */
	weir_kernel_fn *run;               /* either this */
	weir_kernel_start_fn *start;       /* or this */
	weir_kernel_infer_fn *infer;       /* NULL: the types come with the node */
	weir_kernel_gradient_fn *gradient; /* NULL: none; see weir/flow/gradient.h */
	uint64_t cost_ns; /* of `run`: about how long it takes; 0: the runs of each node are measured */
};
#define WEIR_KERNEL_INIT WEIR_STRUCT_SIZE(struct weir_kernel)

enum weir_access { WEIR_ACCESS_READ = 1, WEIR_ACCESS_WRITE = 2 };

/*
 * Something that a kernel uses besides its inputs: a variable, a queue, or any object of yours,
 * which is known by its address. Critical sections take uses into account, and so do the automatic
 * control edges of functions (weir/flow/function.h).
 */
struct weir_use {
	const void *object;
	enum weir_access access;
	const char *name; /* for messages; borrowed */
};

struct weir_output_type {
	enum weir_dtype dtype;
	const weir_shape *shape; /* may have unknown dims; NULL: any */
};
enum weir_kernel_limits { WEIR_KERNEL_MAX_OUTPUTS = 64, WEIR_KERNEL_MAX_USES = 64 };

/*
 * Adds a node that calls kernel->run(context, ...), or ->start. *kernel is copied. Its outputs are
 * checked against `types` (copied; may be NULL if the kernel has `infer`); one that does not match
 * fails the step with WEIR_INVALID_ARGUMENT. Each step calls the kernel at most once, and only if
 * the node or one of its outputs is needed. uses[0 .. use_count-1] are copied. outs has room for
 * output_count (0 .. WEIR_KERNEL_MAX_OUTPUTS); *node (may be NULL) is the node. Errors: the common
 * ones of weir/flow/op.h. WEIR_INVALID_ARGUMENT if the kernel has no name, neither `run` nor
 * `start` or both, or an unknown flag; if a use has no object or no access; or if there are too many
 * outputs or uses. And the status of `infer`.
 * @since 0.1
 */
WEIR_API enum weir_status weir_op_kernel(weir_graph *graph, const char *name,
                                         const struct weir_kernel *kernel, void *context,
                                         const weir_output inputs[], size_t input_count,
                                         const struct weir_output_type types[], size_t output_count,
                                         const struct weir_use uses[], size_t use_count,
                                         weir_output outs[], weir_node **node, weir_error *error);

/*
 * Ends the node with success. outputs[0 .. count-1] are references that pass to the step, if the
 * status is WEIR_OK; otherwise they stay the caller's. The step continues on the pool. Errors:
 * WEIR_FAILED_PRECONDITION if the promise was fulfilled or failed before: nothing happens.
 * WEIR_INVALID_ARGUMENT if count is not the number of outputs, or an output is NULL or does not
 * match its type: the node has then failed with that status and message. Ordering: what the caller
 * did before happens before the nodes that run after this one.
 * @since 0.1
 */
WEIR_API enum weir_status weir_promise_fulfill(weir_promise *promise, weir_tensor *const outputs[],
                                               size_t count, weir_error *error);

/*
 * Ends the node with cause->code and the message of the cause; the code must not be WEIR_OK. Errors:
 * WEIR_FAILED_PRECONDITION as above. WEIR_INVALID_ARGUMENT (NULL, or a cause without a failure).
 * @since 0.1
 */
WEIR_API enum weir_status weir_promise_fail(weir_promise *promise, const weir_error *cause,
                                            weir_error *error);

/* Takes another reference, for another thread. Returns `promise`. @since 0.1 */
WEIR_API weir_promise *weir_promise_retain(weir_promise *promise);

/*
 * Gives a reference back. If it is the last, and the promise was neither fulfilled nor failed, the
 * node fails with WEIR_INVALID_ARGUMENT. Accepts NULL.
 * @since 0.1
 */
WEIR_API void weir_promise_release(weir_promise *promise);

WEIR_END_DECLS

#endif
