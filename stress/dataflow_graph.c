/*
 * dataflow_graph.c - see dataflow_graph.h.
 */
#include "dataflow_graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/flow/kernel.h>

#include "harness.h"

enum { LEAST_NODES = 4, BODY_LEAST = 3, BODY_MOST = 6, PARAMETERS = 2 + FLOW_VARS + 2 };

static uint64_t draw(uint64_t *state)
{
	return stress_mix((*state)++);
}

static uint32_t below(uint64_t *state, uint32_t n)
{
	return (uint32_t)(draw(state) % n);
}

/* -- what the seed says ------------------------------------------------------------------------ */

bool flow_has_value(enum flow_kind kind)
{
	return kind != FLOW_ENQUEUE && kind != FLOW_SECTION;
}

/* The last node before `index` that gives a value, counted back from a drawn one. Node 0 gives one. */
static uint32_t draw_input(const struct flow_body *body, uint64_t *state, uint32_t index)
{
	uint32_t i = below(state, index);

	while (!flow_has_value(body->nodes[i].kind))
		i--;
	return i;
}

static struct flow_body *draw_body(struct flow_plan *plan, uint64_t seed, uint32_t depth, bool is_loop);

/* How many functions a node of this kind runs. */
static uint32_t count_bodies(enum flow_kind kind)
{
	switch (kind) {
	case FLOW_CALL:
	case FLOW_LOOP:
	case FLOW_MAP: return 1;
	case FLOW_COND: return 2;
	case FLOW_CASE: return 3;
	default: return 0;
	}
}

/* Without depth or bodies left, the node adds. */
/* NOLINTNEXTLINE(misc-no-recursion): at most FLOW_DEPTH deep. */
static void draw_bodies(struct flow_plan *plan, struct flow_node *node, uint64_t seed, uint32_t depth)
{
	uint32_t count = count_bodies(node->kind);

	if (count > (depth == 0 ? 0 : FLOW_BODIES - plan->body_count)) {
		node->kind = FLOW_ADD;
		return;
	}
	for (uint32_t i = 0; i < count; i++) {
		node->bodies[i] = draw_body(plan, stress_mix(seed + i), depth - 1, node->kind == FLOW_LOOP);
		/* The bodies inside of it may have used what was left. */
		if (node->bodies[i] == NULL)
			node->kind = FLOW_ADD;
	}
}

/* NOLINTNEXTLINE(misc-no-recursion): at most FLOW_DEPTH deep. */
static void draw_node(struct flow_plan *plan, struct flow_body *body, uint32_t i, uint64_t seed, uint32_t depth)
{
	uint64_t state = stress_mix(seed + i);
	struct flow_node *node = &body->nodes[i];
	bool is_root = body == &plan->bodies[0];

	node->kind = (enum flow_kind)(FLOW_ADD + below(&state, FLOW_KINDS - FLOW_ADD));
	/* A queue in a function that runs often makes most runs wait. */
	if (!is_root && (node->kind == FLOW_ENQUEUE || node->kind == FLOW_DEQUEUE) && below(&state, 4) != 0)
		node->kind = FLOW_KERNEL;
	if (i < 2)
		node->kind = is_root && i == 0 ? FLOW_CONSTANT : FLOW_INPUT;
	node->constant = (int64_t)below(&state, 100);
	node->var = below(&state, FLOW_VARS);
	node->limit = 1 + below(&state, 3);
	node->a = i != 0 ? draw_input(body, &state, i) : 0;
	node->b = i != 0 ? draw_input(body, &state, i) : 0;
	node->after = i > 2 && below(&state, 3) == 0 ? 2 + below(&state, i - 2) : FLOW_NODES;
	draw_bodies(plan, node, draw(&state), depth);
}

/* NOLINTNEXTLINE(misc-no-recursion): at most FLOW_DEPTH deep. */
static struct flow_body *draw_body(struct flow_plan *plan, uint64_t seed, uint32_t depth, bool is_loop)
{
	struct flow_body *body;

	if (plan->body_count == FLOW_BODIES)
		return NULL;
	body = &plan->bodies[plan->body_count];
	body->plan = plan;
	body->number = plan->body_count++;
	body->is_loop = is_loop;
	body->count = BODY_LEAST + (uint32_t)(stress_mix(seed ^ 1) % (BODY_MOST - BODY_LEAST + 1));
	for (uint32_t i = 0; i < body->count; i++)
		draw_node(plan, body, i, seed, depth);
	return body;
}

void flow_draw(struct flow_plan *plan, uint64_t seed, uint32_t most, uint32_t depth)
{
	struct flow_body *root = &plan->bodies[0];

	(void)memset(plan, 0, sizeof(*plan));
	root->plan = plan;
	plan->body_count = 1;
	plan->fed_value = (int64_t)(stress_mix(seed) % 1000);
	root->count = LEAST_NODES + (uint32_t)(stress_mix(seed ^ 1) % (FLOW_NODES - LEAST_NODES + 1));
	if (most < root->count)
		root->count = most;
	for (uint32_t i = 0; i < root->count; i++)
		draw_node(plan, root, i, seed, depth);
}

/* -- the interpreter --------------------------------------------------------------------------- */

static int64_t kernel_value(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a * 3 + (uint64_t)b);
}

static uint32_t branch_of(int64_t value)
{
	return (uint32_t)((uint64_t)value % FLOW_BRANCHES);
}

/* NOLINTNEXTLINE(misc-no-recursion): at most FLOW_DEPTH deep. */
static void interpret_body(const struct flow_body *body, struct flow_value a, struct flow_value b,
                           struct flow_value values[FLOW_NODES]);

static uint32_t last_value(const struct flow_body *body)
{
	uint32_t i = body->count - 1;

	while (!flow_has_value(body->nodes[i].kind))
		i--;
	return i;
}

/* The result of a body: its last value. */
/* NOLINTNEXTLINE(misc-no-recursion): at most FLOW_DEPTH deep. */
static struct flow_value result_of(const struct flow_body *body, struct flow_value a, struct flow_value b)
{
	struct flow_value values[FLOW_NODES];

	interpret_body(body, a, b, values);
	return values[last_value(body)];
}

/* NOLINTNEXTLINE(misc-no-recursion): at most FLOW_DEPTH deep. */
static struct flow_value repeat(const struct flow_node *node, struct flow_value value)
{
	for (uint32_t i = 0; i < node->limit; i++)
		value = result_of(node->bodies[0], (struct flow_value){true, i}, value);
	return value;
}

/* NOLINTNEXTLINE(misc-no-recursion): at most FLOW_DEPTH deep. */
static struct flow_value sum_of_rows(const struct flow_node *node, struct flow_value whole)
{
	struct flow_value sum = {true, 0};

	for (uint32_t i = 0; i < node->limit; i++) {
		struct flow_value row = result_of(node->bodies[0], (struct flow_value){true, node->constant + i}, whole);

		/* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign): each body has a result. */
		sum.determined = sum.determined && row.determined;
		sum.value = (int64_t)((uint64_t)sum.value + (uint64_t)row.value);
	}
	return sum;
}

/* A branch that is not known gives a value that is not known. */
/* NOLINTNEXTLINE(misc-no-recursion): at most FLOW_DEPTH deep. */
static struct flow_value choose(const struct flow_node *node, uint32_t branch, struct flow_value a, struct flow_value b,
                                bool known)
{
	struct flow_value result = result_of(node->bodies[branch], a, b);

	/* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Branch): each body has a result. */
	result.determined = result.determined && known;
	return result;
}

/* NOLINTNEXTLINE(misc-no-recursion): at most FLOW_DEPTH deep. */
static struct flow_value interpret(const struct flow_body *body, uint32_t i, struct flow_value a, struct flow_value b)
{
	const struct flow_node *node = &body->nodes[i];
	uint64_t x = (uint64_t)a.value, y = (uint64_t)b.value;
	struct flow_value result = {a.determined && b.determined, 0};

	switch (node->kind) {
	case FLOW_CONSTANT: return (struct flow_value){true, node->constant};
	case FLOW_ADD: result.value = (int64_t)(x + y); return result;
	case FLOW_SUB: result.value = (int64_t)(x - y); return result;
	case FLOW_MUL: result.value = (int64_t)(x * y); return result;
	case FLOW_LESSER: result.value = a.value < b.value ? a.value : b.value; return result;
	case FLOW_KERNEL: result.value = kernel_value(a.value, b.value); return result;
	case FLOW_CALL: return choose(node, 0, a, b, true);
	case FLOW_CASE: return choose(node, branch_of(a.value), a, b, a.determined);
	case FLOW_COND: return choose(node, a.value < b.value ? 0 : 1, a, b, result.determined);
	case FLOW_LOOP: return repeat(node, a);
	case FLOW_MAP: return sum_of_rows(node, b);
	case FLOW_INPUT:
	case FLOW_READ:
	case FLOW_ADD_TO:
	case FLOW_SNAPSHOT:
	case FLOW_ENQUEUE:
	case FLOW_DEQUEUE:
	case FLOW_SECTION:
	case FLOW_KINDS: break;
	}
	result.determined = false;
	return result;
}

/* NOLINTNEXTLINE(misc-no-recursion): at most FLOW_DEPTH deep. */
static void interpret_body(const struct flow_body *body, struct flow_value a, struct flow_value b,
                           struct flow_value values[FLOW_NODES])
{
	for (uint32_t i = 0; i < body->count; i++) {
		if (body->nodes[i].kind == FLOW_INPUT)
			values[i] = i == 0 ? a : b;
		else
			values[i] = interpret(body, i, values[body->nodes[i].a], values[body->nodes[i].b]);
	}
}

void flow_interpret(const struct flow_plan *plan, struct flow_value values[FLOW_NODES])
{
	struct flow_value fed = {true, plan->fed_value};

	interpret_body(&plan->bodies[0], fed, fed, values);
}

/* -- building ---------------------------------------------------------------------------------- */

static void must(enum weir_status status, const weir_error *error)
{
	STRESS_CHECK(status == WEIR_OK, "a call failed: %s", error->message);
}

weir_tensor *flow_integer(int64_t value)
{
	weir_tensor *tensor;

	STRESS_CHECK(weir_tensor_copy_of(WEIR_I64, &weir_shape_scalar, &value, NULL, &tensor) == WEIR_OK, "no tensor");
	return tensor;
}

int64_t flow_integer_of(const weir_tensor *tensor)
{
	return *(const int64_t *)weir_tensor_data(tensor);
}

static weir_output constant_of(weir_graph *graph, weir_tensor *tensor)
{
	weir_output out;
	weir_error error;

	must(weir_op_constant(graph, NULL, tensor, &out, &error), &error);
	weir_tensor_release(tensor);
	return out;
}

static weir_output constant_node(weir_graph *graph, int64_t value)
{
	return constant_of(graph, flow_integer(value));
}

static enum weir_status run_mixing(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	(void)context;
	(void)error;
	call->outputs[0] = flow_integer(kernel_value(flow_integer_of(call->inputs[0]), flow_integer_of(call->inputs[1])));
	return WEIR_OK;
}

static enum weir_status run_branch(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	(void)context;
	(void)error;
	call->outputs[0] = flow_integer(branch_of(flow_integer_of(call->inputs[0])));
	return WEIR_OK;
}

static enum weir_status run_sum(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	const int64_t *rows = weir_tensor_data(call->inputs[0]);
	uint64_t sum = 0;

	(void)context;
	(void)error;
	for (int64_t i = 0; i < weir_tensor_element_count(call->inputs[0]); i++)
		sum += (uint64_t)rows[i];
	call->outputs[0] = flow_integer((int64_t)sum);
	return WEIR_OK;
}

static const struct weir_kernel mixing = {WEIR_KERNEL_INIT, .name = "kernel", .run = run_mixing};
static const struct weir_kernel branching = {WEIR_KERNEL_INIT, .name = "branch", .flags = WEIR_KERNEL_SHORT,
                                             .run = run_branch};
static const struct weir_kernel summing = {WEIR_KERNEL_INIT, .name = "sum", .flags = WEIR_KERNEL_SHORT, .run = run_sum};

static weir_output add_kernel(weir_graph *graph, const char *name, const struct weir_kernel *kernel,
                              const weir_output inputs[], size_t count)
{
	struct weir_output_type type = {WEIR_I64, &weir_shape_scalar};
	weir_output out;
	weir_error error;

	must(weir_op_kernel(graph, name, kernel, NULL, inputs, count, &type, 1, NULL, 0, &out, NULL, &error), &error);
	return out;
}

/* Reads, adds one and assigns, in three ops: only the section makes that one update. */
static weir_node *add_section(weir_graph *graph, const struct flow_objects *objects)
{
	weir_output now, next, stored;
	weir_node *node;
	weir_error error;

	must(weir_op_read(graph, NULL, objects->inside, &now, &error), &error);
	must(weir_op_add(graph, NULL, now, constant_node(graph, 1), &next, &error), &error);
	must(weir_op_assign(graph, NULL, objects->inside, next, &stored, &error), &error);
	must(weir_op_critical_section(graph, NULL, objects->section, 0, (weir_node *[]){now.node, next.node, stored.node},
	                              3, NULL, 0, NULL, &node, &error),
	     &error);
	return node;
}

/* -- functions --------------------------------------------------------------------------------- */

static void build_nodes(const struct flow_body *body, weir_graph *graph, const weir_output inputs[2],
                        struct flow_built built[FLOW_NODES]);

static enum weir_status build_function(void *context, weir_graph *graph, const struct weir_argument arguments[],
                                       weir_output results[], weir_error *error)
{
	const struct flow_body *body = context;
	struct flow_built built[FLOW_NODES];
	enum weir_status status = WEIR_OK;

	build_nodes(body, graph, (weir_output[]){arguments[0].output, arguments[1].output}, built);
	if (body->is_loop)
		status = weir_op_add(graph, NULL, arguments[0].output, constant_node(graph, 1), &results[0], error);
	results[body->is_loop ? 1 : 0] = built[last_value(body)].out;
	return status;
}

static enum weir_status build_test(void *context, weir_graph *graph, const struct weir_argument arguments[],
                                   weir_output results[], weir_error *error)
{
	const struct flow_node *node = context;

	return weir_op_less(graph, NULL, arguments[0].output, constant_node(graph, node->limit), &results[0], error);
}

static weir_function *new_function(struct flow_plan *plan, weir_function_fn *build, void *context, size_t results)
{
	static const char *const names[FLOW_VARS] = {"v0", "v1", "v2"};
	struct weir_parameter parameters[PARAMETERS];
	struct weir_function_options options = {
		WEIR_FUNCTION_OPTIONS_INIT,    .build = build,         .context = context, .parameters = parameters,
		.parameter_count = PARAMETERS, .result_count = results};
	weir_function *function;
	weir_error error;

	for (size_t i = 0; i < 2; i++)
		parameters[i] =
			(struct weir_parameter){i == 0 ? "a" : "b", WEIR_PARAMETER_TENSOR, WEIR_I64, &weir_shape_scalar};
	for (size_t i = 0; i < FLOW_VARS; i++)
		parameters[2 + i] = (struct weir_parameter){names[i], WEIR_PARAMETER_VAR, WEIR_I64, NULL};
	parameters[2 + FLOW_VARS] = (struct weir_parameter){"inside", WEIR_PARAMETER_VAR, WEIR_I64, NULL};
	parameters[3 + FLOW_VARS] = (struct weir_parameter){"q", WEIR_PARAMETER_QUEUE, 0, NULL};
	must(weir_function_create(&options, &function, &error), &error);
	STRESS_CHECK(plan->function_count < 3 * FLOW_BODIES, "too many functions");
	plan->functions[plan->function_count++] = function;
	return function;
}

static void fill_arguments(const struct flow_plan *plan, weir_output a, weir_output b, struct weir_argument arguments[])
{
	(void)memset(arguments, 0, PARAMETERS * sizeof(arguments[0]));
	arguments[0].output = a;
	arguments[1].output = b;
	for (size_t i = 0; i < FLOW_VARS; i++)
		arguments[2 + i].var = plan->objects.vars[i];
	arguments[2 + FLOW_VARS].var = plan->objects.inside;
	arguments[3 + FLOW_VARS].queue = plan->objects.queue;
}

static weir_output build_loop(struct flow_plan *plan, weir_graph *graph, const char *name, struct flow_node *node,
                              weir_output start)
{
	weir_function *test = new_function(plan, build_test, node, 1);
	weir_function *body = new_function(plan, build_function, node->bodies[0], 2);
	struct weir_argument arguments[PARAMETERS];
	weir_output outs[2];
	weir_error error;

	fill_arguments(plan, constant_node(graph, 0), start, arguments);
	must(weir_op_while(graph, name, test, body, arguments, PARAMETERS, NULL, outs, NULL, &error), &error);
	return outs[1];
}

static weir_output build_map(struct flow_plan *plan, weir_graph *graph, const char *name, struct flow_node *node,
                             weir_output whole)
{
	struct weir_map_options options = {WEIR_MAP_OPTIONS_INIT, .at_once = 1 + node->var, .whole = 1};
	weir_shape shape = {.rank = 1, .dims = {node->limit}};
	int64_t rows[3] = {node->constant, node->constant + 1, node->constant + 2};
	struct weir_argument arguments[PARAMETERS];
	weir_tensor *tensor;
	weir_output out;
	weir_error error;

	STRESS_CHECK(weir_tensor_copy_of(WEIR_I64, &shape, rows, NULL, &tensor) == WEIR_OK, "no tensor");
	fill_arguments(plan, constant_of(graph, tensor), whole, arguments);
	must(weir_op_map(graph, name, new_function(plan, build_function, node->bodies[0], 1), arguments, PARAMETERS,
	                 &options, &out, NULL, &error),
	     &error);
	return add_kernel(graph, NULL, &summing, &out, 1);
}

static weir_output build_choice(struct flow_plan *plan, weir_graph *graph, const char *name, struct flow_node *node,
                                const weir_output inputs[2])
{
	weir_function *functions[FLOW_BRANCHES];
	struct weir_argument arguments[PARAMETERS];
	uint32_t count = count_bodies(node->kind);
	weir_output out, which;
	weir_error error;

	for (uint32_t i = 0; i < count; i++)
		functions[i] = new_function(plan, build_function, node->bodies[i], 1);
	fill_arguments(plan, inputs[0], inputs[1], arguments);
	if (node->kind == FLOW_CALL) {
		must(weir_op_call(graph, name, functions[0], arguments, PARAMETERS, &out, NULL, &error), &error);
	} else if (node->kind == FLOW_COND) {
		must(weir_op_less(graph, NULL, inputs[0], inputs[1], &which, &error), &error);
		/* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): a body has at least one parameter. */
		must(weir_op_cond(graph, name, which, functions[0], functions[1], arguments, PARAMETERS, &out, NULL, &error),
		     &error);
	} else {
		which = add_kernel(graph, NULL, &branching, inputs, 1);
		must(weir_op_case(graph, name, which, functions, count, arguments, PARAMETERS, &out, NULL, &error), &error);
	}
	return out;
}

/* -- nodes ------------------------------------------------------------------------------------- */

static weir_output build_math(weir_graph *graph, const char *name, enum flow_kind kind, const weir_output inputs[2])
{
	weir_output out, less;
	weir_error error;

	if (kind == FLOW_ADD) {
		must(weir_op_add(graph, name, inputs[0], inputs[1], &out, &error), &error);
	} else if (kind == FLOW_SUB) {
		must(weir_op_sub(graph, name, inputs[0], inputs[1], &out, &error), &error);
	} else if (kind == FLOW_MUL) {
		must(weir_op_mul(graph, name, inputs[0], inputs[1], &out, &error), &error);
	} else {
		must(weir_op_less(graph, NULL, inputs[0], inputs[1], &less, &error), &error);
		must(weir_op_select(graph, name, less, inputs[0], inputs[1], &out, &error), &error);
	}
	return out;
}

static void build_node(const struct flow_body *body, weir_graph *graph, uint32_t i, struct flow_built built[])
{
	struct flow_plan *plan = body->plan;
	struct flow_node *node = &plan->bodies[body->number].nodes[i];
	weir_output inputs[2] = {built[node->a].out, built[node->b].out}, all[FLOW_VARS + 1];
	struct flow_built *b = &built[i];
	weir_var *var = plan->objects.vars[node->var];
	weir_error error;
	char name[32];

	(void)snprintf(name, sizeof(name), "n%u.%u", body->number, i);
	switch (node->kind) {
	case FLOW_CONSTANT: b->out = constant_node(graph, node->constant); break;
	case FLOW_ADD:
	case FLOW_SUB:
	case FLOW_MUL:
	case FLOW_LESSER: b->out = build_math(graph, name, node->kind, inputs); break;
	case FLOW_KERNEL: b->out = add_kernel(graph, name, &mixing, inputs, 2); break;
	case FLOW_READ: must(weir_op_read(graph, name, var, &b->out, &error), &error); break;
	case FLOW_ADD_TO:
		must(weir_op_assign_add(graph, name, var, constant_node(graph, node->constant), &b->out, &error), &error);
		break;
	case FLOW_SNAPSHOT:
		must(weir_op_snapshot(graph, name, plan->objects.vars, FLOW_VARS, all, &error), &error);
		b->out = all[node->var];
		break;
	case FLOW_ENQUEUE:
		must(weir_op_enqueue(graph, name, plan->objects.queue, &inputs[0], 1, &b->node, &error), &error);
		break;
	case FLOW_DEQUEUE: must(weir_op_dequeue(graph, name, plan->objects.queue, &b->out, 1, NULL, &error), &error); break;
	case FLOW_SECTION: b->node = add_section(graph, &plan->objects); break;
	case FLOW_LOOP: b->out = build_loop(plan, graph, name, node, inputs[0]); break;
	case FLOW_MAP: b->out = build_map(plan, graph, name, node, inputs[1]); break;
	case FLOW_CALL:
	case FLOW_CASE:
	case FLOW_COND: b->out = build_choice(plan, graph, name, node, inputs); break;
	case FLOW_INPUT:
	case FLOW_KINDS: break;
	}
}

static void build_nodes(const struct flow_body *body, weir_graph *graph, const weir_output inputs[2],
                        struct flow_built built[FLOW_NODES])
{
	(void)memset(built, 0, FLOW_NODES * sizeof(built[0]));
	for (uint32_t i = 0; i < body->count; i++) {
		const struct flow_node *node = &body->nodes[i];
		weir_error error;

		if (node->kind == FLOW_INPUT)
			built[i].out = inputs[i];
		else
			build_node(body, graph, i, built);
		if (built[i].node == NULL)
			built[i].node = built[i].out.node;
		/* The nodes of a section take no edges once it is built. */
		if (node->after != FLOW_NODES && node->kind != FLOW_SECTION && body->nodes[node->after].kind != FLOW_INPUT)
			must(weir_graph_add_control(graph, built[node->after].node, built[i].node, &error), &error);
	}
}

void flow_build(struct flow_plan *plan, weir_graph *graph)
{
	weir_output fed;
	weir_error error;

	must(weir_op_placeholder(graph, "fed", WEIR_I64, &weir_shape_scalar, &fed, &error), &error);
	build_nodes(&plan->bodies[0], graph, (weir_output[]){fed, fed}, plan->built);
}

/* A function that calls another was created before it. */
void flow_destroy_functions(struct flow_plan *plan)
{
	weir_error error;

	for (uint32_t i = 0; i < plan->function_count; i++)
		must(weir_function_destroy(plan->functions[i], &error), &error);
}

int64_t flow_added_by(const struct flow_plan *plan, const char *name)
{
	char *end = NULL;
	unsigned long body = strtoul(name + 1, &end, 10), i = *end == '.' ? strtoul(end + 1, NULL, 10) : 0;

	STRESS_CHECK(body < plan->body_count && i < FLOW_NODES, "an assign_add \"%s\" of no plan", name);
	return plan->bodies[body].nodes[i].constant;
}
