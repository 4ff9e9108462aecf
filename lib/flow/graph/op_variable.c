/*
 * op_variable.c - reading and writing variables: one at a time, or many at one instant.
 *
 * A read keeps its handle, which the frame releases at the last use of the value. So the value that
 * was read needs no reference of its own. Outputs for version numbers are allocated before the write. So a write that
 * took effect is never reported as out of memory.
 */
#include "graph/node.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "var/gather.h"

enum { VALUE = 0, VERSION = 1, FEW_PARTS = 16 };

/* The attribute of a node on one variable. */
struct use {
	weir_var *var;
	enum weir_scatter how; /* only for a scatter */
};

static weir_var *var_of(const weir_node *node)
{
	return ((const struct use *)node->attribute)->var;
}

static struct weiri_spec spec_of_var(const weir_var *var)
{
	return weiri_spec_of(weir_var_dtype(var), weir_var_shape(var));
}

static bool describe_var(weir_var *var, bool writes, struct weiri_resource *resource)
{
	*resource = (struct weiri_resource){var, "variable", weir_var_name(var), writes};
	return true;
}

static bool reads_one(const weir_node *node, size_t i, struct weiri_resource *resource)
{
	return i == 0 && describe_var(var_of(node), false, resource);
}

static bool writes_one(const weir_node *node, size_t i, struct weiri_resource *resource)
{
	return i == 0 && describe_var(var_of(node), true, resource);
}

/* The attribute of a snapshot or commit is an array of variables. */
static bool touches_many(const weir_node *node, bool writes, size_t i, struct weiri_resource *resource)
{
	weir_var *const *vars = node->attribute;

	return i < node->attribute_size / sizeof(weir_var *) && describe_var(vars[i], writes, resource);
}

static bool reads_many(const weir_node *node, size_t i, struct weiri_resource *resource)
{
	return touches_many(node, false, i, resource);
}

static bool writes_many(const weir_node *node, size_t i, struct weiri_resource *resource)
{
	return touches_many(node, true, i, resource);
}

/*
 * Sets *builder to a builder for `count` numbers, or for a scalar if count is 0; or to NULL if the
 * output is not wanted.
 */
static enum weir_status prepare_numbers(const struct weiri_call *call, uint32_t output, size_t count,
                                        weir_tensor_builder **builder)
{
	struct weiri_spec spec = count != 0 ? weiri_spec_vector(WEIR_I64, (int64_t)count) : weiri_spec_scalar(WEIR_I64);

	*builder = NULL;
	if (!weiri_call_wants(call, output))
		return WEIR_OK;
	if (weir_tensor_builder_create(WEIR_I64, &spec.shape, call->allocator, builder, NULL) != WEIR_OK)
		return weiri_fail(call->error, WEIR_RESOURCE_EXHAUSTED, "no memory for the version numbers");
	return WEIR_OK;
}

/*
 * Fills the output from a builder of prepare_numbers(), unless `status` is a failure. Returns
 * `status`.
 */
static enum weir_status publish_numbers(const struct weiri_call *call, uint32_t output, weir_tensor_builder *builder,
                                        const uint64_t numbers[], size_t count, enum weir_status status)
{
	if (builder == NULL)
		return status;
	if (status != WEIR_OK) {
		weir_tensor_builder_discard(builder);
		return status;
	}
	(void)memcpy(weir_tensor_builder_data(builder), numbers, count * sizeof(numbers[0]));
	return weir_tensor_builder_finish(builder, &call->outputs[output]);
}

/* Builds a node on one variable, whose outputs have `specs`. */
static enum weir_status build_use(weir_graph *graph, const struct weiri_op *op, const char *name, struct use use,
                                  const weir_output inputs[], size_t input_count, const struct weiri_spec specs[],
                                  size_t output_count, size_t hold_count, weir_output *out, weir_error *error)
{
	struct weiri_node_request request;
	enum weir_status status;
	weir_node *node;

	(void)memset(&request, 0, sizeof(request));
	request.op = op;
	request.name = name;
	request.inputs = inputs;
	request.input_count = input_count;
	request.specs = specs;
	request.output_count = output_count;
	request.attribute = &use;
	request.attribute_size = sizeof(use);
	request.hold_count = hold_count;
	status = weiri_node_build(graph, &request, &node, error);
	if (status == WEIR_OK) {
		out->node = node;
		out->index = VALUE;
	}
	return status;
}

static enum weir_status check_has_tensors(const struct weiri_op *op, const char *name, const weir_var *var,
                                          weir_error *error)
{
	enum weir_var_kind kind = weir_var_kind(var);

	if (kind == WEIR_VAR_TENSOR)
		return WEIR_OK;
	return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, op, name, "variable \"%s\" has %s, not tensors",
	                       weir_var_name(var),
	                       kind == WEIR_VAR_INLINE  ? "inline values"
	                       : kind == WEIR_VAR_TABLE ? "versions of a table"
	                                                : "pointers");
}

static enum weir_status check_use(const struct weiri_op *op, const char *name, const weir_var *var,
                                  const weir_output *out, weir_error *error)
{
	if (var == NULL || out == NULL)
		return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, op, name, "%s is NULL", var == NULL ? "variable" : "out");
	return check_has_tensors(op, name, var, error);
}

/* Builds a node with the outputs value and version, and with `input` or no input. */
static enum weir_status build_single(weir_graph *graph, const struct weiri_op *op, const char *name, weir_var *var,
                                     const weir_output *input, size_t hold_count, weir_output *out, weir_error *error)
{
	enum weir_status status = check_use(op, name, var, out, error);
	struct weiri_spec specs[2];

	if (status != WEIR_OK)
		return status;
	specs[VALUE] = spec_of_var(var);
	specs[VERSION] = weiri_spec_scalar(WEIR_I64);
	return build_use(graph, op, name, (struct use){.var = var}, input, input != NULL ? 1 : 0, specs, 2, hold_count, out,
	                 error);
}

static enum weir_status run_read(const struct weiri_call *call)
{
	weir_read *hold = &call->holds[0];
	weir_var *var = var_of(call->node);
	enum weir_status status = weir_var_read(var, hold);

	if (status == WEIR_FAILED_PRECONDITION)
		return weiri_fail(call->error, status, "variable \"%s\" is not initialized", weir_var_name(var));
	if (status != WEIR_OK)
		return weiri_fail(call->error, status, "variable \"%s\" cannot be read: no memory", weir_var_name(var));
	weiri_call_tell(call, WEIRI_TRACE_READ, var, hold->version);
	call->outputs[VALUE] = hold->tensor;
	if (weiri_call_wants(call, VERSION))
		return weiri_i64_tensor(&hold->version, 0, call->allocator, &call->outputs[VERSION], call->error);
	return WEIR_OK;
}

static const struct weiri_op read_op = {.name = "read", .run = run_read, .touches = reads_one};

enum weir_status weir_op_read(weir_graph *graph, const char *name, weir_var *var, weir_output *out, weir_error *error)
{
	return build_single(graph, &read_op, name, var, NULL, 1, out, error);
}

/* Checks that `value`, as far as its spec is known, is one that `var` accepts. */
static enum weir_status check_value(const weir_graph *graph, const struct weiri_op *op, const char *name,
                                    const weir_var *var, weir_output value, weir_error *error)
{
	struct weiri_spec expected;
	char text_expected[WEIRI_SPEC_TEXT_SIZE];
	char text_got[WEIRI_SPEC_TEXT_SIZE];

	/* The build of the node reports these. */
	if (var == NULL || graph == NULL || weiri_output_check(graph, value, "value", NULL) != WEIR_OK)
		return WEIR_OK;
	expected = spec_of_var(var);
	if (weiri_spec_compatible(&expected, weiri_output_spec(value)))
		return WEIR_OK;
	return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, op, name, "variable \"%s\" expects %s, got %s",
	                       weir_var_name(var), weiri_spec_text(&expected, text_expected),
	                       weiri_spec_text(weiri_output_spec(value), text_got));
}

static enum weir_status run_assign(const struct weiri_call *call)
{
	weir_tensor_builder *builder;
	weir_read published = {.hold = NULL};
	uint64_t version;
	enum weir_status status = prepare_numbers(call, VERSION, 0, &builder);

	if (status != WEIR_OK)
		return status;
	status = weir_var_assign(var_of(call->node), call->inputs[0], call->deadline_ns, &published, call->error);
	version = published.version;
	weir_read_release(&published);
	if (status == WEIR_OK)
		weiri_call_tell(call, WEIRI_TRACE_PUBLISH, var_of(call->node), version);
	if (status == WEIR_OK && weiri_call_wants(call, VALUE))
		call->outputs[VALUE] = weiri_call_pass(call, 0);
	return publish_numbers(call, VERSION, builder, &version, 1, status);
}

static const struct weiri_op assign_op = {.name = "assign", .run = run_assign, .touches = writes_one};

enum weir_status weir_op_assign(weir_graph *graph, const char *name, weir_var *var, weir_output value, weir_output *out,
                                weir_error *error)
{
	enum weir_status status = check_value(graph, &assign_op, name, var, value, error);

	return status != WEIR_OK ? status : build_single(graph, &assign_op, name, var, &value, 0, out, error);
}

typedef enum weir_status update_fn(weir_var *var, weir_tensor *delta, uint64_t deadline_ns, weir_read *published,
                                   weir_error *error);

static enum weir_status run_update(const struct weiri_call *call, update_fn *update)
{
	weir_read *hold = &call->holds[0];
	weir_tensor_builder *builder;
	enum weir_status status = prepare_numbers(call, VERSION, 0, &builder);

	if (status != WEIR_OK)
		return status;
	status = update(var_of(call->node), call->inputs[0], call->deadline_ns, hold, call->error);
	if (status == WEIR_OK) {
		weiri_call_tell(call, WEIRI_TRACE_PUBLISH, var_of(call->node), hold->version);
		call->outputs[VALUE] = hold->tensor;
	}
	return publish_numbers(call, VERSION, builder, &hold->version, 1, status);
}

static enum weir_status run_assign_add(const struct weiri_call *call)
{
	return run_update(call, weir_var_assign_add);
}

static enum weir_status run_assign_sub(const struct weiri_call *call)
{
	return run_update(call, weir_var_assign_sub);
}

static const struct weiri_op assign_add_op = {.name = "assign_add", .run = run_assign_add, .touches = writes_one};
static const struct weiri_op assign_sub_op = {.name = "assign_sub", .run = run_assign_sub, .touches = writes_one};

static enum weir_status build_update(weir_graph *graph, const struct weiri_op *op, const char *name, weir_var *var,
                                     weir_output delta, weir_output *out, weir_error *error)
{
	enum weir_status status = check_value(graph, op, name, var, delta, error);

	return status != WEIR_OK ? status : build_single(graph, op, name, var, &delta, 1, out, error);
}

enum weir_status weir_op_assign_add(weir_graph *graph, const char *name, weir_var *var, weir_output delta,
                                    weir_output *out, weir_error *error)
{
	return build_update(graph, &assign_add_op, name, var, delta, out, error);
}

enum weir_status weir_op_assign_sub(weir_graph *graph, const char *name, weir_var *var, weir_output delta,
                                    weir_output *out, weir_error *error)
{
	return build_update(graph, &assign_sub_op, name, var, delta, out, error);
}

/* -- rows -------------------------------------------------------------------------------------- */

static enum weir_status run_scatter(const struct weiri_call *call)
{
	const struct use *use = call->node->attribute;
	weir_read *hold = &call->holds[0];
	weir_tensor_builder *builder;
	enum weir_status status = prepare_numbers(call, VERSION, 0, &builder);

	if (status != WEIR_OK)
		return status;
	status =
		weir_var_scatter(use->var, use->how, call->inputs[0], call->inputs[1], call->deadline_ns, hold, call->error);
	if (status == WEIR_OK) {
		weiri_call_tell(call, WEIRI_TRACE_PUBLISH, use->var, hold->version);
		call->outputs[VALUE] = hold->tensor;
	}
	return publish_numbers(call, VERSION, builder, &hold->version, 1, status);
}

/* The index is an enum weir_scatter. */
static const struct weiri_op scatter_ops[] = {
	[0] = {.name = "scatter"},
	[WEIR_SCATTER_UPDATE] = {.name = "scatter_update", .run = run_scatter, .touches = writes_one},
	[WEIR_SCATTER_ADD] = {.name = "scatter_add", .run = run_scatter, .touches = writes_one},
	[WEIR_SCATTER_SUB] = {.name = "scatter_sub", .run = run_scatter, .touches = writes_one},
	[WEIR_SCATTER_MUL] = {.name = "scatter_mul", .run = run_scatter, .touches = writes_one},
	[WEIR_SCATTER_DIV] = {.name = "scatter_div", .run = run_scatter, .touches = writes_one},
	[WEIR_SCATTER_MIN] = {.name = "scatter_min", .run = run_scatter, .touches = writes_one},
	[WEIR_SCATTER_MAX] = {.name = "scatter_max", .run = run_scatter, .touches = writes_one},
};

/*
 * Sets *joined to [indices..., row...], as far as it is known. `rows` is the spec of the variable.
 * Fails with WEIR_INVALID_ARGUMENT if no tensor can fit. weir_var_scatter() and weir_var_gather()
 * apply the same rules to actual tensors.
 */
static enum weir_status join_rows(const struct weiri_op *op, const char *name, const struct weiri_spec *rows,
                                  const struct weiri_spec *indices, struct weiri_spec *joined, weir_error *error)
{
	char text[WEIRI_SPEC_TEXT_SIZE];

	*joined = weiri_spec_of(rows->dtype, NULL);
	if (indices->dtype != WEIR_I32 && indices->dtype != WEIR_I64)
		return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, op, name, "expected indices of i32 or i64, got %s",
		                       weiri_spec_text(indices, text));
	if (rows->ranked && rows->shape.rank == 0)
		return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, op, name, "a scalar variable has no rows");
	if (!rows->ranked || !indices->ranked)
		return WEIR_OK;
	joined->ranked = true;
	joined->shape = indices->shape;
	if (indices->shape.rank + rows->shape.rank - 1 > WEIR_MAX_RANK)
		return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, op, name, "the rows' rank would be above %d",
		                       WEIR_MAX_RANK);
	for (uint32_t d = 1; d < rows->shape.rank; d++)
		joined->shape.dims[joined->shape.rank++] = rows->shape.dims[d];
	return WEIR_OK;
}

/* Returns true if `output` belongs to `graph`. The build of the node reports other outputs. */
static bool known(const weir_graph *graph, weir_output output)
{
	return graph != NULL && weiri_output_check(graph, output, "input", NULL) == WEIR_OK;
}

static enum weir_status check_scatter(const weir_graph *graph, const struct weiri_op *op, const char *name,
                                      const weir_var *var, weir_output indices, weir_output updates, weir_error *error)
{
	struct weiri_spec rows = spec_of_var(var), scalar = weiri_spec_scalar(rows.dtype), expected;
	char text_expected[WEIRI_SPEC_TEXT_SIZE], text_got[WEIRI_SPEC_TEXT_SIZE];
	enum weir_status status;

	if (!known(graph, indices) || !known(graph, updates))
		return WEIR_OK;
	status = join_rows(op, name, &rows, weiri_output_spec(indices), &expected, error);
	if (status != WEIR_OK || weiri_spec_compatible(&expected, weiri_output_spec(updates)) ||
	    weiri_spec_compatible(&scalar, weiri_output_spec(updates)))
		return status;
	return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, op, name, "variable \"%s\" expects updates %s, got %s",
	                       weir_var_name(var), weiri_spec_text(&expected, text_expected),
	                       weiri_spec_text(weiri_output_spec(updates), text_got));
}

enum weir_status weir_op_scatter(weir_graph *graph, const char *name, weir_var *var, enum weir_scatter how,
                                 weir_output indices, weir_output updates, weir_output *out, weir_error *error)
{
	weir_output inputs[2] = {indices, updates};
	struct weiri_spec specs[2];
	const struct weiri_op *op;
	enum weir_status status;

	if ((int)how < WEIR_SCATTER_UPDATE || (int)how > WEIR_SCATTER_MAX)
		return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, &scatter_ops[0], name, "%d is not a way to scatter",
		                       (int)how);
	op = &scatter_ops[how];
	status = check_use(op, name, var, out, error);
	if (status == WEIR_OK)
		status = check_scatter(graph, op, name, var, indices, updates, error);
	if (status != WEIR_OK)
		return status;
	specs[VALUE] = spec_of_var(var);
	specs[VERSION] = weiri_spec_scalar(WEIR_I64);
	return build_use(graph, op, name, (struct use){var, how}, inputs, 2, specs, 2, 1, out, error);
}

static enum weir_status run_gather(const struct weiri_call *call)
{
	weir_var *var = var_of(call->node);
	uint64_t version;
	enum weir_status status =
		weiri_var_gather(var, call->inputs[0], call->allocator, &call->outputs[VALUE], &version, call->error);

	if (status == WEIR_OK)
		weiri_call_tell(call, WEIRI_TRACE_READ, var, version);
	return status;
}

static const struct weiri_op gather_op = {.name = "gather", .run = run_gather, .touches = reads_one};

enum weir_status weir_op_gather(weir_graph *graph, const char *name, weir_var *var, weir_output indices,
                                weir_output *out, weir_error *error)
{
	enum weir_status status = check_use(&gather_op, name, var, out, error);
	struct weiri_spec rows, joined;

	if (status != WEIR_OK)
		return status;
	rows = joined = spec_of_var(var);
	if (known(graph, indices))
		status = join_rows(&gather_op, name, &rows, weiri_output_spec(indices), &joined, error);
	if (status != WEIR_OK)
		return status;
	return build_use(graph, &gather_op, name, (struct use){.var = var}, &indices, 1, &joined, 1, 0, out, error);
}

/* -- many at one instant ----------------------------------------------------------------------- */

static enum weir_status check_vars(const struct weiri_op *op, const char *name, weir_var *const vars[], size_t count,
                                   weir_error *error)
{
	if (vars == NULL || count == 0 || count > WEIR_COMMIT_MAX_PARTS)
		return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, op, name, "expected 1 to %d variables, got %zu",
		                       WEIR_COMMIT_MAX_PARTS, vars == NULL ? (size_t)0 : count);
	for (size_t i = 0; i < count; i++) {
		enum weir_status status;

		if (vars[i] == NULL)
			return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, op, name, "variable %zu is NULL", i);
		status = check_has_tensors(op, name, vars[i], error);
		if (status != WEIR_OK)
			return status;
	}
	return WEIR_OK;
}

static enum weir_status run_snapshot(const struct weiri_call *call)
{
	weir_var *const *vars = call->node->attribute;
	size_t count = call->node->hold_count;
	weir_tensor_builder *builder;
	enum weir_status status = prepare_numbers(call, (uint32_t)count, count, &builder);

	if (status == WEIR_OK)
		status = weir_var_snapshot(vars, count, call->holds, call->error);
	if (status != WEIR_OK) {
		weir_tensor_builder_discard(builder);
		return status;
	}
	for (size_t i = 0; i < count; i++) {
		weiri_call_tell(call, WEIRI_TRACE_READ, vars[i], call->holds[i].version);
		call->outputs[i] = call->holds[i].tensor;
		if (builder != NULL)
			((uint64_t *)weir_tensor_builder_data(builder))[i] = call->holds[i].version;
	}
	return builder != NULL ? weir_tensor_builder_finish(builder, &call->outputs[count]) : WEIR_OK;
}

static const struct weiri_op snapshot_op = {.name = "snapshot", .run = run_snapshot, .touches = reads_many};

/* `specs` has room for count + 1 specs. */
static enum weir_status build_snapshot(weir_graph *graph, const char *name, weir_var *const vars[], size_t count,
                                       struct weiri_spec specs[], weir_output outs[], weir_error *error)
{
	struct weiri_node_request request;
	enum weir_status status;
	weir_node *node;

	for (size_t i = 0; i < count; i++)
		specs[i] = spec_of_var(vars[i]);
	specs[count] = weiri_spec_vector(WEIR_I64, (int64_t)count);
	(void)memset(&request, 0, sizeof(request));
	request.op = &snapshot_op;
	request.name = name;
	request.specs = specs;
	request.output_count = count + 1;
	request.attribute = vars;
	request.attribute_size = count * sizeof(vars[0]);
	request.hold_count = count;
	status = weiri_node_build(graph, &request, &node, error);
	for (size_t i = 0; status == WEIR_OK && i <= count; i++) {
		outs[i].node = node;
		outs[i].index = (uint32_t)i;
	}
	return status;
}

enum weir_status weir_op_snapshot(weir_graph *graph, const char *name, weir_var *const vars[], size_t count,
                                  weir_output outs[], weir_error *error)
{
	enum weir_status status = check_vars(&snapshot_op, name, vars, count, error);
	size_t size = (count + 1) * sizeof(struct weiri_spec);
	struct weiri_spec *specs;

	if (status == WEIR_OK && (graph == NULL || outs == NULL))
		status = weiri_node_fail(error, WEIR_INVALID_ARGUMENT, &snapshot_op, name, "%s is NULL",
		                         graph == NULL ? "graph" : "outs");
	if (status != WEIR_OK)
		return status;
	specs = weiri_allocate(&graph->allocator, size, _Alignof(struct weiri_spec));
	if (specs == NULL)
		return weiri_node_fail(error, WEIR_RESOURCE_EXHAUSTED, &snapshot_op, name, "no memory");
	status = build_snapshot(graph, name, vars, count, specs, outs, error);
	weiri_release(&graph->allocator, specs, size, _Alignof(struct weiri_spec));
	return status;
}

static enum weir_status commit_parts(const struct weiri_call *call, struct weir_commit_part parts[], size_t count)
{
	weir_var *const *vars = call->node->attribute;
	const weir_tensor *versions = call->inputs[count];
	struct weiri_spec expected = weiri_spec_vector(WEIR_I64, (int64_t)count);
	struct weiri_spec got = weiri_spec_of_tensor(versions);
	char text_expected[WEIRI_SPEC_TEXT_SIZE];
	char text_got[WEIRI_SPEC_TEXT_SIZE];
	weir_tensor_builder *builder;
	enum weir_status status;

	if (!weiri_spec_compatible(&expected, &got))
		return weiri_fail(call->error, WEIR_INVALID_ARGUMENT, "expected versions %s, got %s",
		                  weiri_spec_text(&expected, text_expected), weiri_spec_text(&got, text_got));
	for (size_t i = 0; i < count; i++) {
		parts[i].var = vars[i];
		parts[i].expected = ((const uint64_t *)weir_tensor_data(versions))[i];
		parts[i].value = call->inputs[i];
	}
	status = prepare_numbers(call, 0, count, &builder);
	if (status != WEIR_OK)
		return status;
	status = weir_var_commit(parts, count, call->deadline_ns, NULL, call->error);
	for (size_t i = 0; status == WEIR_OK && i < count; i++)
		weiri_call_tell(call, WEIRI_TRACE_PUBLISH, vars[i], parts[i].expected + 1);
	if (builder == NULL)
		return status;
	if (status == WEIR_OK) {
		/* A commit that succeeds gives each variable the number after the expected one. */
		for (size_t i = 0; i < count; i++)
			((uint64_t *)weir_tensor_builder_data(builder))[i] = parts[i].expected + 1;
		return weir_tensor_builder_finish(builder, &call->outputs[0]);
	}
	weir_tensor_builder_discard(builder);
	return status;
}

static enum weir_status run_commit(const struct weiri_call *call)
{
	struct weir_commit_part few[FEW_PARTS];
	struct weir_commit_part *many;
	size_t count = call->node->input_count - 1;
	enum weir_status status;

	if (count <= FEW_PARTS)
		return commit_parts(call, few, count);
	many = weiri_allocate(call->allocator, count * sizeof(*many), _Alignof(struct weir_commit_part));
	if (many == NULL)
		return weiri_fail(call->error, WEIR_RESOURCE_EXHAUSTED, "no memory");
	status = commit_parts(call, many, count);
	weiri_release(call->allocator, many, count * sizeof(*many), _Alignof(struct weir_commit_part));
	return status;
}

static const struct weiri_op commit_op = {.name = "commit", .run = run_commit, .touches = writes_many};

static enum weir_status check_commit(const weir_graph *graph, const char *name, weir_var *const vars[],
                                     const weir_output values[], size_t count, weir_error *error)
{
	enum weir_status status = check_vars(&commit_op, name, vars, count, error);

	for (size_t i = 0; status == WEIR_OK && i < count; i++) {
		for (size_t j = 0; j < i; j++) {
			if (vars[i] == vars[j])
				return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, &commit_op, name, "variable \"%s\" occurs twice",
				                       weir_var_name(vars[i]));
		}
		status = check_value(graph, &commit_op, name, vars[i], values[i], error);
	}
	return status;
}

enum weir_status weir_op_commit(weir_graph *graph, const char *name, weir_var *const vars[], const weir_output values[],
                                size_t count, weir_output versions, weir_output *out, weir_error *error)
{
	struct weiri_node_request request;
	weir_output inputs[WEIR_COMMIT_MAX_PARTS + 1];
	struct weiri_spec spec = weiri_spec_vector(WEIR_I64, (int64_t)count);
	enum weir_status status;
	weir_node *node;

	if (values == NULL || out == NULL)
		return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, &commit_op, name, "%s is NULL",
		                       values == NULL ? "values" : "out");
	status = check_commit(graph, name, vars, values, count, error);
	if (status != WEIR_OK)
		return status;
	if (graph != NULL && weiri_output_check(graph, versions, "versions", NULL) == WEIR_OK &&
	    !weiri_spec_compatible(&spec, weiri_output_spec(versions)))
		return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, &commit_op, name, "expected versions i64 [%zu]", count);
	(void)memcpy(inputs, values, count * sizeof(values[0]));
	inputs[count] = versions;
	(void)memset(&request, 0, sizeof(request));
	request.op = &commit_op;
	request.name = name;
	request.inputs = inputs;
	request.input_count = count + 1;
	request.specs = &spec;
	request.output_count = 1;
	request.attribute = vars;
	request.attribute_size = count * sizeof(vars[0]);
	status = weiri_node_build(graph, &request, &node, error);
	if (status == WEIR_OK) {
		out->node = node;
		out->index = 0;
	}
	return status;
}
