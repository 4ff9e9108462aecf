/*
 * op_replicate.c - n calls of one function, each with a mirror and a shard of the inputs.
 *
 * Everything is made of nodes of the graph: for each mirror a view of its rows of each input, and a
 * call that takes a thread of its own if there is other work (WEIRI_OP_APART); and a node that ends
 * after all calls.
 */
#include <weir/flow/replicas.h>

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "session/child.h"

/* The longest name of a call: that of the whole, "/", and the number of a mirror. */
enum { CALL_NAME_SIZE = 256 };

/* -- shards ------------------------------------------------------------------------------------ */

/* The attribute of a shard. */
struct shard {
	int64_t number, count;
};

static int64_t rows_of_shard(int64_t rows, const struct shard *shard)
{
	return rows / shard->count + (shard->number < rows % shard->count ? 1 : 0);
}

static int64_t first_row(int64_t rows, const struct shard *shard)
{
	int64_t longer = rows % shard->count;

	return shard->number * (rows / shard->count) + (shard->number < longer ? shard->number : longer);
}

static enum weir_status run_shard(const struct weiri_call *call)
{
	const struct shard *shard = call->node->attribute;
	const weir_shape *shape = weir_tensor_shape(call->inputs[0]);
	enum weir_status status;

	if (shape->rank == 0 || shape->dims[0] < shard->count)
		return weiri_fail(call->error, WEIR_INVALID_ARGUMENT, "there are %lld rows for %lld mirrors",
		                  shape->rank == 0 ? 0LL : (long long)shape->dims[0], (long long)shard->count);
	status = weir_tensor_slice(call->inputs[0], first_row(shape->dims[0], shard), rows_of_shard(shape->dims[0], shard),
	                           &call->outputs[0]);
	return status == WEIR_OK ? WEIR_OK : weiri_fail(call->error, status, "no memory for a view of the rows");
}

static const struct weiri_op shard_op = {.name = "shard", .run = run_shard};

static enum weir_status build_shard(weir_graph *graph, weir_output input, const struct shard *shard, weir_output *out,
                                    weir_error *error)
{
	struct weiri_spec spec = *weiri_output_spec(input);
	struct weiri_node_request request = {
		.op = &shard_op,
		.inputs = &input,
		.input_count = 1,
		.specs = &spec,
		.output_count = 1,
		.attribute = shard,
		.attribute_size = sizeof(*shard),
	};
	weir_node *node;
	enum weir_status status;

	if (spec.ranked)
		spec.shape.dims[0] = spec.shape.dims[0] >= 0 ? rows_of_shard(spec.shape.dims[0], shard) : -1;
	status = weiri_node_build(graph, &request, &node, error);
	if (status == WEIR_OK)
		*out = (weir_output){node, 0};
	return status;
}

/* -- calls ------------------------------------------------------------------------------------- */

static const struct weiri_op replica_op = {.name = "replicate",
                                           .traits = WEIRI_OP_CALLS | WEIRI_OP_APART,
                                           .drop = weiri_calls_drop,
                                           .touches = weiri_calls_touch,
                                           .inner = &weiri_call_inner};

struct replicating {
	weir_graph *graph;
	const char *name;
	weir_function *function;
	weir_mirrors *mirrors;
	const weir_output *inputs;
	size_t count, size;
	weir_error *error;
};

#define refuse(r, code, ...) weiri_node_fail((r)->error, (code), &replica_op, (r)->name, __VA_ARGS__)

static enum weir_status check_parameters(const struct replicating *r)
{
	const weir_function *f = r->function;
	size_t vars = f->parameter_count - f->tensor_count;

	for (size_t i = 0; i < f->parameter_count; i++) {
		if (f->parameters[i].kind == WEIR_PARAMETER_QUEUE)
			return refuse(r, WEIR_INVALID_ARGUMENT, "parameter \"%s\" of \"%s\" is a queue; mirrors have none",
			              f->parameters[i].name, f->name);
	}
	if (vars != weir_mirrors_variable_count(r->mirrors) || f->tensor_count != r->count)
		return refuse(r, WEIR_INVALID_ARGUMENT,
		              "\"%s\" has %zu variable%s and %zu tensor%s; got mirrors of %zu variable%s, and %zu input%s",
		              f->name, vars, WEIRI_S(vars), f->tensor_count, WEIRI_S(f->tensor_count),
		              weir_mirrors_variable_count(r->mirrors), WEIRI_S(weir_mirrors_variable_count(r->mirrors)),
		              r->count, WEIRI_S(r->count));
	return WEIR_OK;
}

static enum weir_status check_rows(const struct replicating *r)
{
	for (size_t i = 0; i < r->count; i++) {
		const struct weiri_spec *spec = weiri_output_spec(r->inputs[i]);

		if (spec->ranked && spec->shape.rank == 0)
			return refuse(r, WEIR_INVALID_ARGUMENT, "input %zu, \"%s\", is a scalar", i, r->inputs[i].node->name);
		if (spec->ranked && spec->shape.dims[0] >= 0 && (size_t)spec->shape.dims[0] < r->size)
			return refuse(r, WEIR_INVALID_ARGUMENT, "input %zu, \"%s\", has %lld rows for %zu mirrors", i,
			              r->inputs[i].node->name, (long long)spec->shape.dims[0], r->size);
	}
	return WEIR_OK;
}

static enum weir_status check(const struct replicating *r, const weir_output outs[])
{
	struct weiri_node_request request = {
		.op = &replica_op, .name = r->name, .inputs = r->inputs, .input_count = r->count};
	enum weir_status status = weiri_node_check(r->graph, &request, r->error);

	if (status != WEIR_OK)
		return status;
	if (r->function == NULL || r->mirrors == NULL)
		return refuse(r, WEIR_INVALID_ARGUMENT, "%s is NULL", r->function == NULL ? "function" : "mirrors");
	if (outs == NULL && r->function->result_count > 0)
		return refuse(r, WEIR_INVALID_ARGUMENT, "outs is NULL");
	if (r->name != NULL && strlen(r->name) > CALL_NAME_SIZE - sizeof("/1024"))
		return refuse(r, WEIR_INVALID_ARGUMENT, "the name is too long");
	status = check_parameters(r);
	return status == WEIR_OK ? check_rows(r) : status;
}

/* The arguments of the call for mirror i: its variables, and shards of the inputs. */
static enum weir_status fill_arguments(const struct replicating *r, size_t i, struct weir_argument arguments[])
{
	const struct shard shard = {(int64_t)i, (int64_t)r->size};
	enum weir_status status = WEIR_OK;
	size_t tensor = 0, variable = 0;

	for (size_t p = 0; status == WEIR_OK && p < r->function->parameter_count; p++) {
		arguments[p] = (struct weir_argument){.var = NULL};
		if (r->function->parameters[p].kind == WEIR_PARAMETER_VAR)
			arguments[p].var = weir_mirrors_var(r->mirrors, i, variable++);
		else
			status = build_shard(r->graph, r->inputs[tensor++], &shard, &arguments[p].output, r->error);
	}
	return status;
}

/* Builds the call for mirror i, and the edge from it to the end of all. */
static enum weir_status build_call(const struct replicating *r, size_t i, weir_node *end, weir_output results[])
{
	struct weir_argument arguments[WEIR_FUNCTION_MAX_PARAMETERS];
	struct weiri_call_request request = {.graph = r->graph,
	                                     .op = &replica_op,
	                                     .functions = &r->function,
	                                     .function_count = 1,
	                                     .arguments = arguments,
	                                     .count = r->function->parameter_count,
	                                     .error = r->error};
	char name[CALL_NAME_SIZE];
	enum weir_status status = fill_arguments(r, i, arguments);
	weir_node *call;

	if (status != WEIR_OK)
		return status;
	if (r->name != NULL) {
		(void)snprintf(name, sizeof(name), "%s/%zu", r->name, i);
		request.name = name;
	}
	status = weiri_call_build(&request, weiri_call_specs, results, &call);
	return status == WEIR_OK ? weir_graph_add_control(r->graph, call, end, r->error) : status;
}

enum weir_status weir_op_replicate(weir_graph *graph, const char *name, weir_function *function, weir_mirrors *mirrors,
                                   const weir_output inputs[], size_t count, weir_output outs[], weir_node **node,
                                   weir_error *error)
{
	const struct replicating r = {graph, name, function, mirrors, inputs, count, weir_mirrors_size(mirrors), error};
	weir_output results[WEIR_FUNCTION_MAX_RESULTS];
	enum weir_status status = check(&r, outs);
	weir_node *end;

	if (status == WEIR_OK)
		status = weir_op_no_op(graph, name, &end, error);
	for (size_t i = 0; status == WEIR_OK && i < r.size; i++) {
		status = build_call(&r, i, end, results);
		for (size_t j = 0; status == WEIR_OK && j < function->result_count; j++)
			outs[j * r.size + i] = results[j];
	}
	if (status == WEIR_OK && node != NULL)
		*node = end;
	return status;
}
