/*
 * op_kernel.c - nodes that run functions of the user, and the promises of those that only start.
 *
 * A promise has two users: the kernel, with every thread to which it passed the promise on, and the
 * start. The last reference frees it. The node ends by the first of: a call that fulfills or fails
 * the promise, the release of the last reference, a start that returns a failure. A latch tells
 * which one was first; the others change nothing. So a kernel that completes twice, or never, does
 * not touch a frame that has gone.
 */
#include "graph/node.h"

#include <string.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "run/measured.h"

/* The attribute of a node, which ends after its uses. */
struct kernel {
	struct weir_kernel kind;
	void *context;
	struct weiri_measured measured; /* unless the kind declares its cost */
	size_t use_count;
	struct weir_use uses[WEIR_KERNEL_MAX_USES];
};

struct weir_promise {
	struct weiri_countdown references;
	struct weiri_latch ended; /* claimed by the call that ends the node */
	const weir_node *node;
	weir_tensor_queue_done_fn *done;
	void *context;
	weir_allocator allocator;
};

/*
 * The number of kernels on this thread's stack. It may be above 1: a kernel may run a session, and
 * a thread that helps a session may run another kernel.
 */
static WEIRI_TLS int kernel_depth;

bool weiri_inside_kernel(void)
{
	return kernel_depth != 0;
}

/* -- running ----------------------------------------------------------------------------------- */

static enum weir_status check_outputs(const weir_node *node, weir_tensor *const outputs[], weir_error *error)
{
	for (uint32_t i = 0; i < node->output_count; i++) {
		struct weiri_spec got;
		char text_expected[WEIRI_SPEC_TEXT_SIZE];
		char text_got[WEIRI_SPEC_TEXT_SIZE];

		if (outputs[i] == NULL)
			return weiri_fail(error, WEIR_INVALID_ARGUMENT, "the kernel did not set output %u", i);
		if (weiri_spec_fits(&node->specs[i], outputs[i]))
			continue;
		got = weiri_spec_of_tensor(outputs[i]);
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "the kernel promised %s as output %u, and gave %s",
		                  weiri_spec_text(&node->specs[i], text_expected), i, weiri_spec_text(&got, text_got));
	}
	return WEIR_OK;
}

static struct weir_kernel_call describe_call(const struct weiri_call *call)
{
	return (struct weir_kernel_call){
		.node = call->node->name,
		.inputs = call->inputs,
		.input_count = call->node->input_count,
		.output_count = call->node->output_count,
		.cancel = call->token,
		.deadline_ns = call->deadline_ns,
	};
}

static enum weir_status run(const struct weiri_call *call)
{
	struct kernel *kernel = call->node->attribute;
	struct weir_kernel_call user = describe_call(call);
	bool measures = (call->node->op->traits & WEIRI_OP_SHORT) == 0 && kernel->kind.cost_ns == 0;
	uint64_t began_ns = measures ? weir_now_ns() : 0;
	enum weir_status status;

	user.outputs = call->outputs;
	kernel_depth++;
	status = kernel->kind.run(kernel->context, &user, call->error);
	kernel_depth--;
	if (measures)
		weiri_measured_add(&kernel->measured, weir_now_ns() - began_ns);
	return status == WEIR_OK ? check_outputs(call->node, call->outputs, call->error) : status;
}

static uint64_t cost(const weir_node *node, weir_tensor *const inputs[])
{
	const struct kernel *kernel = node->attribute;

	(void)inputs;
	return kernel->kind.cost_ns != 0 ? kernel->kind.cost_ns : weiri_measured_ns(&kernel->measured);
}

/* -- promises ---------------------------------------------------------------------------------- */

static void release(weir_promise *promise, uint32_t count)
{
	weir_allocator allocator;

	if (!weiri_countdown_finish(&promise->references, count))
		return;
	if (weiri_latch_claim(&promise->ended)) {
		weir_error error;

		(void)weiri_fail(&error, WEIR_INVALID_ARGUMENT, "the kernel released its promise and had not fulfilled it");
		promise->done(promise->context, error.code, &error, NULL, 0);
	}
	allocator = promise->allocator;
	weiri_release(&allocator, promise, sizeof(*promise), _Alignof(weir_promise));
}

static enum weir_status start(const struct weiri_call *call, weir_tensor_queue_done_fn *done, void *context,
                              weir_pending **operation)
{
	const struct kernel *kernel = call->node->attribute;
	struct weir_kernel_call user = describe_call(call);
	weir_promise *promise = weiri_allocate(call->allocator, sizeof(*promise), _Alignof(weir_promise));
	enum weir_status status;
	bool failed;

	if (promise == NULL)
		return weiri_fail(call->error, WEIR_RESOURCE_EXHAUSTED, "no memory for a promise");
	weiri_countdown_init(&promise->references, 2);
	weiri_latch_init(&promise->ended);
	promise->node = call->node;
	promise->done = done;
	promise->context = context;
	promise->allocator = *call->allocator;
	*operation = NULL;
	kernel_depth++;
	status = kernel->kind.start(kernel->context, &user, promise, call->error);
	kernel_depth--;
	/* A kernel may have fulfilled its promise and then return a failure, which is too late. */
	failed = status != WEIR_OK && weiri_latch_claim(&promise->ended);
	release(promise, status == WEIR_OK ? 1 : 2);
	return failed ? status : WEIR_OK;
}

static enum weir_status refuse_second(const char *call, weir_error *error)
{
	return weiri_fail(error, WEIR_FAILED_PRECONDITION, "%s: the promise has already been fulfilled or failed", call);
}

/* Returns WEIR_OK if the outputs are what the node promised. */
static enum weir_status check_gift(const weir_node *node, weir_tensor *const outputs[], size_t count, weir_error *error)
{
	if (count != node->output_count || (outputs == NULL && count != 0))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "the kernel gave %zu output%s, expected %u",
		                  outputs != NULL ? count : 0, WEIRI_S(outputs != NULL ? count : 0), node->output_count);
	return check_outputs(node, outputs, error);
}

enum weir_status weir_promise_fulfill(weir_promise *promise, weir_tensor *const outputs[], size_t count,
                                      weir_error *error)
{
	enum weir_status status;
	weir_error why;

	if (promise == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "weir_promise_fulfill: promise is NULL");
	if (!weiri_latch_claim(&promise->ended))
		return refuse_second("weir_promise_fulfill", error);
	status = check_gift(promise->node, outputs, count, &why);
	/* After this call the node may have gone. */
	promise->done(promise->context, status, status != WEIR_OK ? &why : NULL, outputs, status == WEIR_OK ? count : 0);
	if (status != WEIR_OK && error != NULL)
		*error = why;
	return status;
}

enum weir_status weir_promise_fail(weir_promise *promise, const weir_error *cause, weir_error *error)
{
	weir_error why;

	if (promise == NULL || !weiri_is_cause(cause))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "weir_promise_fail: %s",
		                  promise == NULL ? "promise is NULL" : "the cause is no failure");
	if (!weiri_latch_claim(&promise->ended))
		return refuse_second("weir_promise_fail", error);
	why = weiri_error_kept(cause);
	promise->done(promise->context, why.code, &why, NULL, 0);
	return WEIR_OK;
}

weir_promise *weir_promise_retain(weir_promise *promise)
{
	if (promise != NULL)
		weiri_countdown_join(&promise->references);
	return promise;
}

void weir_promise_release(weir_promise *promise)
{
	if (promise != NULL)
		release(promise, 1);
}

/* -- building ---------------------------------------------------------------------------------- */

static bool touches(const weir_node *node, size_t i, struct weiri_resource *resource)
{
	const struct kernel *kernel = node->attribute;

	if (i == kernel->use_count && (kernel->kind.flags & WEIR_KERNEL_STATEFUL) != 0) {
		*resource = (struct weiri_resource){.kind = "state", .name = kernel->kind.name, .writes = true};
		return true;
	}
	if (i >= kernel->use_count)
		return false;
	*resource = (struct weiri_resource){.object = kernel->uses[i].object,
	                                    .kind = "object",
	                                    .name = kernel->uses[i].name,
	                                    .writes = (kernel->uses[i].access & WEIR_ACCESS_WRITE) != 0};
	return true;
}

/* Calls the rule of the user. */
static enum weir_status gradient(const weir_node *node, const struct weir_gradient_request *request, weir_output into[],
                                 weir_error *error)
{
	const struct kernel *kernel = node->attribute;
	weir_error why = {WEIR_OK, ""};
	enum weir_status status;

	if (kernel->kind.gradient == NULL)
		return weiri_fail(error, WEIR_UNIMPLEMENTED, "kernel %s \"%s\" has no gradient rule", node->kind, node->name);
	status = kernel->kind.gradient(kernel->context, request, into, &why);
	if (status != WEIR_OK)
		return weiri_fail(error, status, "the gradient rule of %s \"%s\": %s", node->kind, node->name,
		                  why.message[0] != '\0' ? why.message : weir_status_name(status));
	return WEIR_OK;
}

static const struct weiri_op kernel_op = {.name = "kernel",
                                          .traits = WEIRI_OP_USER | WEIRI_OP_HEAVY,
                                          .run = run,
                                          .cost = cost,
                                          .touches = touches,
                                          .gradient = gradient};
static const struct weiri_op short_op = {
	.name = "kernel", .traits = WEIRI_OP_USER | WEIRI_OP_SHORT, .run = run, .touches = touches, .gradient = gradient};
static const struct weiri_op start_op = {.name = "kernel",
                                         .traits = WEIRI_OP_USER | WEIRI_OP_SHORT | WEIRI_OP_WAITS,
                                         .start = start,
                                         .touches = touches,
                                         .gradient = gradient};

struct building {
	weir_graph *graph;
	const char *name;
	const weir_output *inputs;
	size_t input_count;
	const struct weir_output_type *types;
	size_t output_count;
	struct kernel kernel;
	struct weiri_spec specs[WEIR_KERNEL_MAX_OUTPUTS];
	weir_error *error;
};

#define refuse(b, code, ...) weiri_node_fail((b)->error, (code), &kernel_op, (b)->name, __VA_ARGS__)

static enum weir_status read_kind(struct building *b, const struct weir_kernel *kernel)
{
	struct weir_kernel *kind = &b->kernel.kind;
	const uint32_t flags = WEIR_KERNEL_SHORT | WEIR_KERNEL_STATEFUL;
	enum weir_status status;
	weir_error inner;

	if (kernel == NULL)
		return refuse(b, WEIR_INVALID_ARGUMENT, "kernel is NULL");
	status = weiri_options_read("weir_op_kernel", kernel, kind, sizeof(*kind), &inner);
	if (status != WEIR_OK)
		return refuse(b, status, "%s", inner.message);
	if (kind->name == NULL || kind->name[0] == '\0')
		return refuse(b, WEIR_INVALID_ARGUMENT, "the kernel has no name");
	if ((kind->run == NULL) == (kind->start == NULL))
		return refuse(b, WEIR_INVALID_ARGUMENT, "kernel \"%s\" must have either run or start", kind->name);
	if ((kind->flags & ~flags) != 0)
		return refuse(b, WEIR_INVALID_ARGUMENT, "kernel \"%s\" has unknown flags 0x%x", kind->name, kind->flags);
	return WEIR_OK;
}

static enum weir_status read_uses(struct building *b, const struct weir_use uses[], size_t count)
{
	if (count > WEIR_KERNEL_MAX_USES)
		return refuse(b, WEIR_INVALID_ARGUMENT, "%zu uses; at most %d are possible", count, WEIR_KERNEL_MAX_USES);
	if (count > 0 && uses == NULL)
		return refuse(b, WEIR_INVALID_ARGUMENT, "uses is NULL");
	b->kernel.use_count = count;
	for (size_t i = 0; i < count; i++) {
		if (uses[i].object == NULL)
			return refuse(b, WEIR_INVALID_ARGUMENT, "use %zu has no object", i);
		if (uses[i].access != WEIR_ACCESS_READ && uses[i].access != WEIR_ACCESS_WRITE)
			return refuse(b, WEIR_INVALID_ARGUMENT, "use %zu: %d is not an access", i, (int)uses[i].access);
		b->kernel.uses[i] = uses[i];
		if (uses[i].name == NULL)
			b->kernel.uses[i].name = "";
	}
	return WEIR_OK;
}

static enum weir_status check_counts(const struct building *b, const weir_output outs[])
{
	bool needs_types = b->kernel.kind.infer == NULL;

	if (b->output_count > WEIR_KERNEL_MAX_OUTPUTS)
		return refuse(b, WEIR_INVALID_ARGUMENT, "%zu output%s; at most %d are possible", b->output_count,
		              WEIRI_S(b->output_count), WEIR_KERNEL_MAX_OUTPUTS);
	if (b->output_count > 0 && ((b->types == NULL && needs_types) || outs == NULL))
		return refuse(b, WEIR_INVALID_ARGUMENT, "%s is NULL", outs == NULL ? "outs" : "types");
	return WEIR_OK;
}

static enum weir_status check_spec(const struct building *b, size_t i, enum weir_dtype dtype, const weir_shape *shape)
{
	if (weir_dtype_size(dtype) == 0)
		return refuse(b, WEIR_INVALID_ARGUMENT, "output %zu: %d is not a dtype", i, (int)dtype);
	if (shape != NULL && !weiri_partial_shape_ok(shape))
		return refuse(b, WEIR_INVALID_ARGUMENT, "output %zu: rank %u is above %d", i, shape->rank, WEIR_MAX_RANK);
	return WEIR_OK;
}

static enum weir_status read_types(struct building *b)
{
	enum weir_status status = WEIR_OK;

	for (size_t i = 0; status == WEIR_OK && b->types != NULL && i < b->output_count; i++) {
		status = check_spec(b, i, b->types[i].dtype, b->types[i].shape);
		if (status == WEIR_OK)
			b->specs[i] = weiri_spec_of(b->types[i].dtype, b->types[i].shape);
	}
	return status;
}

static struct weir_kernel_spec public_spec(const struct weiri_spec *spec)
{
	return (struct weir_kernel_spec){spec->dtype, spec->ranked, spec->shape};
}

static enum weir_status call_infer(struct building *b, struct weir_kernel_spec inputs[])
{
	struct weir_kernel_spec outputs[WEIR_KERNEL_MAX_OUTPUTS];
	weir_error why = {WEIR_OK, ""};
	enum weir_status status;

	for (size_t i = 0; i < b->input_count; i++)
		inputs[i] = public_spec(weiri_output_spec(b->inputs[i]));
	for (size_t i = 0; i < b->output_count; i++)
		outputs[i] = public_spec(&b->specs[i]);
	status = b->kernel.kind.infer(b->kernel.context, inputs, b->input_count, outputs, b->output_count, &why);
	if (status != WEIR_OK)
		return refuse(b, status, "%s", why.message[0] != '\0' ? why.message : weir_status_name(status));
	for (size_t i = 0; status == WEIR_OK && i < b->output_count; i++) {
		status = check_spec(b, i, outputs[i].dtype, outputs[i].ranked ? &outputs[i].shape : NULL);
		b->specs[i] = weiri_spec_of(outputs[i].dtype, outputs[i].ranked ? &outputs[i].shape : NULL);
	}
	return status;
}

/* The inputs are outputs of the graph. */
static enum weir_status infer(struct building *b)
{
	const weir_allocator *allocator = &b->graph->allocator;
	size_t bytes = (b->input_count + 1) * sizeof(struct weir_kernel_spec);
	struct weir_kernel_spec *inputs = weiri_allocate(allocator, bytes, _Alignof(struct weir_kernel_spec));
	enum weir_status status;

	if (inputs == NULL)
		return refuse(b, WEIR_RESOURCE_EXHAUSTED, "no memory");
	status = call_infer(b, inputs);
	weiri_release(allocator, inputs, bytes, _Alignof(struct weir_kernel_spec));
	return status;
}

static bool is_short(const struct weir_kernel *kind)
{
	return (kind->flags & WEIR_KERNEL_SHORT) != 0 || (kind->cost_ns != 0 && kind->cost_ns < WEIRI_WORTH_A_WORKER_NS);
}

static enum weir_status build(struct building *b, weir_node **out)
{
	const struct weir_kernel *kind = &b->kernel.kind;
	struct weiri_node_request request = {
		.op = kind->start != NULL ? &start_op
	          : is_short(kind)    ? &short_op
	                              : &kernel_op,
		.kind = kind->name,
		.name = b->name,
		.inputs = b->inputs,
		.input_count = b->input_count,
		.specs = b->specs,
		.output_count = b->output_count,
		.attribute = &b->kernel,
		.attribute_size = offsetof(struct kernel, uses) + b->kernel.use_count * sizeof(struct weir_use),
	};
	enum weir_status status = weiri_node_check(b->graph, &request, b->error);

	if (status == WEIR_OK && kind->infer != NULL)
		status = infer(b);
	return status == WEIR_OK ? weiri_node_build(b->graph, &request, out, b->error) : status;
}

enum weir_status weir_op_kernel(weir_graph *graph, const char *name, const struct weir_kernel *kernel, void *context,
                                const weir_output inputs[], size_t input_count, const struct weir_output_type types[],
                                size_t output_count, const struct weir_use uses[], size_t use_count, weir_output outs[],
                                weir_node **node, weir_error *error)
{
	struct building b;
	enum weir_status status;
	weir_node *built;

	(void)memset(&b, 0, sizeof(b));
	b.graph = graph;
	b.name = name;
	b.inputs = inputs;
	b.input_count = input_count;
	b.types = types;
	b.output_count = output_count;
	b.kernel.context = context;
	b.error = error;
	status = read_kind(&b, kernel);
	if (status == WEIR_OK)
		status = read_uses(&b, uses, use_count);
	if (status == WEIR_OK)
		status = check_counts(&b, outs);
	if (status == WEIR_OK)
		status = read_types(&b);
	if (status == WEIR_OK)
		status = build(&b, &built);
	for (size_t i = 0; status == WEIR_OK && i < output_count; i++)
		outs[i] = (weir_output){built, (uint32_t)i};
	if (status == WEIR_OK && node != NULL)
		*node = built;
	return status;
}
