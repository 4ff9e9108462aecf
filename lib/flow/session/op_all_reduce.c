/*
 * op_all_reduce.c - sums and means of tensors of one shape: of one graph, or of all ranks.
 *
 * Without a transport a run adds its inputs up, over the first of them if nobody else holds that.
 * With a transport it does the same, and starts a reduction of the sum, which is a crossing. A
 * crossing has two parties, as a wait has (wait.c): the start, and the end that the transport tells.
 * When both have arrived, the crossing is over. A hook on the step's token cancels the reduction. If
 * it runs while the crossing ends, the node ends when the hook has returned: until then the step, the
 * graph and the transport exist.
 *
 * Invariants
 *   R1  the node ends once, when both parties have arrived and no hook runs or will run
 *   R2  the transfer is released and the crossing freed before the node ends: nothing of them is
 *       accessed afterwards
 */
#include <weir/flow/replicas.h>

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "graph/node.h"
#include "run/countdown.h"
#include "tensor/object.h"
#include "tensor/pairs.h"

_Static_assert((int)WEIR_ALL_REDUCE_MAX_INPUTS <= (int)WEIRI_PAIRS_MAX, "the inputs can be added up");

/* The attribute of a node. */
struct reduce {
	uint64_t divisor;
	weir_transport *transport; /* NULL: none */
	uint32_t channel;
};

static const struct reduce *reduce_of(const weir_node *node)
{
	return node->attribute;
}

/* -- adding up --------------------------------------------------------------------------------- */

static enum weir_status check_inputs(const struct weiri_call *call)
{
	const weir_tensor *first = call->inputs[0];

	for (uint32_t i = 1; !call->node->specs_known && i < call->node->input_count; i++) {
		struct weiri_spec expected = weiri_spec_of_tensor(first);
		struct weiri_spec got = weiri_spec_of_tensor(call->inputs[i]);
		char text_expected[WEIRI_SPEC_TEXT_SIZE], text_got[WEIRI_SPEC_TEXT_SIZE];

		if (!weir_shape_equal(&expected.shape, &got.shape))
			return weiri_fail(call->error, WEIR_INVALID_ARGUMENT, "input 0 is %s, and input %u %s",
			                  weiri_spec_text(&expected, text_expected), i, weiri_spec_text(&got, text_got));
	}
	return WEIR_OK;
}

/* The place of input 0, if the sum may be written over it; otherwise NULL. */
static void *spent_place(const struct weiri_call *call)
{
	for (uint32_t i = 1; i < call->node->input_count; i++) {
		if (call->inputs[i] == call->inputs[0])
			return NULL;
	}
	return (call->taken & 1) != 0 ? weiri_tensor_writable(call->inputs[0]) : NULL;
}

/*
 * Sets *sum to a reference to the sum of the inputs of this graph, divided by `divisor`. Writes over
 * input 0 if this node is its last use and nobody else has it.
 */
static enum weir_status add_up(const struct weiri_call *call, uint64_t divisor, weir_tensor **sum)
{
	const uint32_t count = call->node->input_count;
	weir_tensor *first = call->inputs[0];
	const void *arrays[WEIR_ALL_REDUCE_MAX_INPUTS];
	enum weir_status status = check_inputs(call);
	weir_tensor *out = NULL;
	void *place;

	if (status != WEIR_OK)
		return status;
	if (count == 1 && divisor == 1) {
		*sum = weir_tensor_retain(first);
		return WEIR_OK;
	}
	place = spent_place(call);
	if (place == NULL) {
		status = weiri_tensor_create(first->dtype, &first->shape, 0, call->allocator, &out);
		if (status != WEIR_OK)
			return weiri_fail(call->error, status, "no memory for the sum");
		place = out->data;
	}
	for (uint32_t i = 0; i < count; i++)
		arrays[i] = call->inputs[i]->data;
	weiri_pairs_sum(first->dtype, arrays, count, divisor, place, (size_t)first->elements);
	*sum = out != NULL ? out : weir_tensor_retain(first);
	return WEIR_OK;
}

/* All outputs are the sum. The reference passes on. */
static void give_all(weir_tensor *sum, weir_tensor *outputs[], size_t count)
{
	for (size_t i = 0; i < count; i++)
		outputs[i] = i == 0 ? sum : weir_tensor_retain(sum);
}

static enum weir_status run(const struct weiri_call *call)
{
	weir_tensor *sum;
	enum weir_status status = add_up(call, reduce_of(call->node)->divisor, &sum);

	if (status == WEIR_OK)
		give_all(sum, call->outputs, call->node->output_count);
	return status;
}

/* -- across ranks ------------------------------------------------------------------------------ */

struct crossing {
	struct weiri_countdown parties; /* the start and the end */
	struct weiri_countdown users;   /* the parties together, and the hook */
	weir_allocator allocator;
	weir_transport *transport;
	size_t output_count;
	weir_cancel *token;
	weir_cancel_hook *hook;
	weir_transfer *transfer;
	weir_tensor_queue_done_fn *done;
	void *context;
	enum weir_status status;
	weir_tensor *sum;
	weir_error error;
};

/* R1, R2 */
static void end_node(struct crossing *crossing)
{
	const struct crossing ended = *crossing;
	weir_tensor *outputs[WEIR_ALL_REDUCE_MAX_INPUTS];
	size_t count = ended.status == WEIR_OK ? ended.output_count : 0;

	ended.transport->release(ended.transport, ended.transfer);
	weiri_release(&ended.allocator, crossing, sizeof(*crossing), _Alignof(struct crossing));
	if (count != 0)
		give_all(ended.sum, outputs, count);
	ended.done(ended.context, ended.status, ended.status != WEIR_OK ? &ended.error : NULL, outputs, count);
}

static void leave(struct crossing *crossing, uint32_t users)
{
	if (weiri_countdown_finish(&crossing->users, users))
		end_node(crossing);
}

/* Both parties have arrived. */
static void finish(struct crossing *crossing)
{
	bool hook_never_runs = crossing->hook == NULL || weir_cancel_off(crossing->hook);

	leave(crossing, hook_never_runs ? 2 : 1);
}

static void on_reduced(void *context, enum weir_status status, const weir_error *error, weir_tensor *sum)
{
	struct crossing *crossing = context;

	crossing->status = status;
	crossing->sum = sum;
	if (status != WEIR_OK && error != NULL)
		crossing->error = *error;
	if (weiri_countdown_arrive(&crossing->parties))
		finish(crossing);
}

static void on_cancel(void *context)
{
	struct crossing *crossing = context;
	weir_error cause;

	(void)weir_cancel_cause(crossing->token, &cause);
	crossing->transport->cancel(crossing->transport, crossing->transfer, &cause);
	leave(crossing, 1);
}

/* The start has not arrived, so the crossing has not ended. */
static void watch(struct crossing *crossing)
{
	weir_error cause;

	if (weir_cancel_on(crossing->token, on_cancel, crossing, &crossing->hook) == WEIR_OK)
		return;
	crossing->hook = NULL;
	(void)weiri_fail(&cause, WEIR_RESOURCE_EXHAUSTED, "no memory to wait for the other ranks");
	crossing->transport->cancel(crossing->transport, crossing->transfer, &cause);
}

static struct crossing *create_crossing(const struct weiri_call *call, weir_tensor_queue_done_fn *done, void *context)
{
	struct crossing *crossing = weiri_allocate(call->allocator, sizeof(*crossing), _Alignof(struct crossing));

	if (crossing == NULL)
		return NULL;
	weiri_countdown_init(&crossing->parties, 2);
	weiri_countdown_init(&crossing->users, 2);
	crossing->allocator = *call->allocator;
	crossing->transport = reduce_of(call->node)->transport;
	crossing->output_count = call->node->output_count;
	crossing->token = call->token;
	crossing->hook = NULL;
	crossing->transfer = NULL;
	crossing->done = done;
	crossing->context = context;
	crossing->sum = NULL;
	crossing->error.message[0] = '\0';
	return crossing;
}

static enum weir_status start_reduction(const struct weiri_call *call, struct crossing *crossing, weir_tensor *sum)
{
	struct weir_reduction reduction = {
		.channel = reduce_of(call->node)->channel,
		.input = sum,
		.divisor = reduce_of(call->node)->divisor,
		.allocator = call->allocator,
		.done = on_reduced,
		.context = crossing,
	};

	return crossing->transport->start(crossing->transport, &reduction, &crossing->transfer, call->error);
}

static enum weir_status start(const struct weiri_call *call, weir_tensor_queue_done_fn *done, void *context,
                              weir_pending **operation)
{
	weir_tensor *sum;
	struct crossing *crossing;
	enum weir_status status = add_up(call, 1, &sum);

	if (status != WEIR_OK)
		return status;
	*operation = NULL;
	crossing = create_crossing(call, done, context);
	status = crossing != NULL ? start_reduction(call, crossing, sum)
	                          : weiri_fail(call->error, WEIR_RESOURCE_EXHAUSTED, "no memory for a reduction");
	weir_tensor_release(sum);
	if (status != WEIR_OK) {
		if (crossing != NULL)
			weiri_release(call->allocator, crossing, sizeof(*crossing), _Alignof(struct crossing));
		return status;
	}
	/* A reduction that has ended already needs no hook. If this looks too early, it has one. */
	if (weiri_countdown_left(&crossing->parties) != 1)
		watch(crossing);
	if (weiri_countdown_arrive(&crossing->parties))
		finish(crossing);
	return WEIR_OK;
}

/* -- building ---------------------------------------------------------------------------------- */

static void drop(void *attribute)
{
	const struct reduce *reduce = attribute;

	if (reduce->transport != NULL)
		reduce->transport->close(reduce->transport, reduce->channel);
}

static const char *waits_for(const void *attribute)
{
	return ((const struct reduce *)attribute)->transport->name;
}

static const struct weiri_op local_op = {.name = "all_reduce", .traits = WEIRI_OP_HEAVY, .run = run};
static const struct weiri_op ranks_op = {.name = "all_reduce",
                                         .traits = WEIRI_OP_WAITS,
                                         .start = start,
                                         .drop = drop,
                                         .resource = waits_for,
                                         .resource_kind = "transport"};

struct building {
	weir_graph *graph;
	const char *name;
	const weir_output *inputs;
	size_t n;
	struct reduce reduce;
	struct weiri_spec specs[WEIR_ALL_REDUCE_MAX_INPUTS];
	weir_error *error;
};

#define refuse(b, code, ...) weiri_node_fail((b)->error, (code), &local_op, (b)->name, __VA_ARGS__)

static enum weir_status check_transport(const struct building *b)
{
	/* All fields of the first release, without which nothing works. Fields that came later may be missing. */
	const size_t required = offsetof(struct weir_transport, release) + sizeof(weir_transport_release_fn *);
	const weir_transport *t = b->reduce.transport;

	if (t == NULL)
		return WEIR_OK;
	if (t->struct_size < required || t->name == NULL || t->open == NULL || t->close == NULL || t->start == NULL ||
	    t->cancel == NULL || t->release == NULL || t->rank >= t->size)
		return refuse(b, WEIR_INVALID_ARGUMENT, "the transport lacks a function, a name, or a rank below its size");
	return WEIR_OK;
}

static enum weir_status check(const struct building *b, enum weir_reduce how, const weir_output outs[])
{
	if (how != WEIR_REDUCE_SUM && how != WEIR_REDUCE_MEAN)
		return refuse(b, WEIR_INVALID_ARGUMENT, "%d is neither a sum nor a mean", (int)how);
	if (b->inputs == NULL || b->n == 0 || b->n > WEIR_ALL_REDUCE_MAX_INPUTS)
		return refuse(b, WEIR_INVALID_ARGUMENT, "expected 1 to %d inputs, got %zu", WEIR_ALL_REDUCE_MAX_INPUTS,
		              b->inputs != NULL ? b->n : 0);
	if (outs == NULL)
		return refuse(b, WEIR_INVALID_ARGUMENT, "outs is NULL");
	if (b->reduce.transport != NULL && b->name == NULL)
		return refuse(b, WEIR_INVALID_ARGUMENT, "with a transport it needs a name, by which the ranks know it");
	return check_transport(b);
}

/* Adds what `other` tells about the shape to *spec. Returns false if no tensor fits both. */
static bool merge(struct weiri_spec *spec, const struct weiri_spec *other)
{
	if (!weiri_spec_compatible(spec, other))
		return false;
	if (!spec->ranked)
		*spec = *other;
	for (uint32_t i = 0; other->ranked && i < spec->shape.rank; i++)
		spec->shape.dims[i] = weiri_dim_merge(spec->shape.dims[i], other->shape.dims[i]);
	return true;
}

/* The inputs are outputs of the graph. */
static enum weir_status read_specs(struct building *b, enum weir_reduce how)
{
	struct weiri_spec spec = *weiri_output_spec(b->inputs[0]);
	char text[WEIRI_SPEC_TEXT_SIZE], text_other[WEIRI_SPEC_TEXT_SIZE];
	enum weir_status status;
	weir_error inner;

	for (size_t i = 1; i < b->n; i++) {
		const struct weiri_spec *other = weiri_output_spec(b->inputs[i]);

		if (!merge(&spec, other))
			return refuse(b, WEIR_INVALID_ARGUMENT, "expected inputs of one dtype and shape; got %s and %s",
			              weiri_spec_text(&spec, text), weiri_spec_text(other, text_other));
	}
	for (size_t i = 0; i < b->n; i++)
		b->specs[i] = spec;
	status = weiri_pairs_check(spec.dtype, how == WEIR_REDUCE_MEAN, &inner);
	return status == WEIR_OK ? WEIR_OK : refuse(b, status, "%s", inner.message);
}

static enum weir_status open_channel(struct building *b)
{
	struct weir_channel what = {b->name, b->specs[0].dtype, b->specs[0].ranked ? &b->specs[0].shape : NULL};
	weir_error inner;
	enum weir_status status = b->reduce.transport->open(b->reduce.transport, &what, &b->reduce.channel, &inner);

	return status == WEIR_OK ? WEIR_OK : refuse(b, status, "%s", inner.message);
}

static enum weir_status build(struct building *b, weir_output outs[])
{
	struct weiri_node_request request = {
		.op = b->reduce.transport != NULL ? &ranks_op : &local_op,
		.name = b->name,
		.inputs = b->inputs,
		.input_count = b->n,
		.specs = b->specs,
		.output_count = b->n,
		.attribute = &b->reduce,
		.attribute_size = sizeof(b->reduce),
	};
	enum weir_status status = b->reduce.transport != NULL ? open_channel(b) : WEIR_OK;
	weir_node *node;

	if (status != WEIR_OK)
		return status;
	status = weiri_node_build(b->graph, &request, &node, b->error);
	if (status != WEIR_OK)
		drop(&b->reduce);
	for (size_t i = 0; status == WEIR_OK && i < b->n; i++)
		outs[i] = (weir_output){node, (uint32_t)i};
	return status;
}

enum weir_status weir_op_all_reduce(weir_graph *graph, const char *name, enum weir_reduce how,
                                    const weir_output inputs[], size_t n, const struct weir_all_reduce_options *options,
                                    weir_output outs[], weir_error *error)
{
	struct weir_all_reduce_options given;
	struct building b = {.graph = graph, .name = name, .inputs = inputs, .n = n, .error = error};
	struct weiri_node_request request = {.op = &local_op, .name = name, .inputs = inputs, .input_count = n};
	enum weir_status status = weiri_options_read("weir_op_all_reduce", options, &given, sizeof(given), error);

	if (status != WEIR_OK)
		return status;
	b.reduce.transport = given.transport;
	b.reduce.divisor = how != WEIR_REDUCE_MEAN ? 1 : n * (given.transport != NULL ? given.transport->size : 1);
	status = check(&b, how, outs);
	if (status == WEIR_OK)
		status = weiri_node_check(graph, &request, error);
	if (status == WEIR_OK)
		status = read_specs(&b, how);
	return status == WEIR_OK ? build(&b, outs) : status;
}
