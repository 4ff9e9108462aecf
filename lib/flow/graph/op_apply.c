/*
 * op_apply.c - the op that makes one step of an optimizer, as one commit.
 *
 * Algorithm. A step reads all its variables, their slots and the number of steps by one snapshot. From
 * these values and the gradients, which do not change, it computes the next values. It publishes all of
 * them by one commit, on the condition that each variable still has the version of the snapshot. If the
 * commit finds that a variable has moved, nothing was published, and the step begins again with another
 * snapshot. So a step reads and writes at one instant, that of its commit.
 *
 * Why no transaction of txn.h: the set of variables is known, and all that is read is written. So one
 * snapshot and one commit do the same with less.
 *
 * Turns. Two steps of one optimizer that compute at the same time collide for certain, as both change
 * the number of steps. If a computation takes long, the work of one is lost. So a large step (from
 * WEIRI_LARGE_STEP bytes on) first tries to take the turn, a token of the optimizer. If another step has
 * it, the step waits until the number of steps moves, and tries again. It waits in all for as long as
 * several computations take, and then computes without the turn. The turn is given back before the
 * commit, since the commit wakes the threads that wait. A large step also looks at the number of steps
 * after each part of its computation, and begins again at once if it has moved.
 * The turn is a hint: it excludes nothing, and only commits decide. If a thread stalls with the turn,
 * the others lose a bounded time for each step. Small steps take no turn, because the wait would cost
 * more than a computation.
 *
 * Invariants
 *   A1  the versions that a commit expects are those of one snapshot, and the values that it publishes
 *       were computed from that snapshot alone
 *   A2  a commit publishes the number of steps of its snapshot plus one. So without other writes, step n
 *       is computed from the values that step n - 1 published
 *   A3  no handle is held while a step waits, for the turn or in its commit for the budget: what the
 *       steps under way hold could be all that the budget has
 * Linearization: the commit (var/commit.c). A step that fails has none, and has changed nothing.
 * Progress: lock-free after its allocations. A step begins again only if a commit found a moved variable,
 * or if the number of steps has moved: another write succeeded. A single step may starve beside writers
 * that do not take turns; the deadline of its run bounds that. The wait for the turn is bounded. A stalled
 * thread stops no other: if it stalls within its commit, the others complete that (helping, commit.c).
 * Memory: the next values of each variable under way. Large values are in spare blocks (var/spares.h).
 * Checked: tests/test_optimizer.c (threads beside snapshots that compare all variables with a replay);
 * the snapshot and the commit by stress/model/check_var.c.
 */
#include <math.h>
#include <string.h>
#include <weir/watch.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/memory.h"
#include "graph/layout.h"
#include "graph/node.h"
#include "graph/optimizer.h"
#include "tensor/object.h"

/* The attribute. */
struct apply {
	weir_optimizer *optimizer;
	bool has_rate; /* the last input is the rate */
	size_t count;
	struct weiri_slots *slots[]; /* by variable */
};

static const struct apply *apply_of(const weir_node *node)
{
	return node->attribute;
}

/* A large step computes so many bytes of a variable between two looks at the number of steps. */
enum { PART_BYTES = 128 << 10 };

/* -- one step ------------------------------------------------------------------------------------ */

/* The variables of a step: first the number of steps, then each variable with its slots behind it. */
struct step {
	const struct weiri_call *call;
	const struct apply *apply;
	size_t arrays; /* of each variable: itself and its slots */
	size_t count;  /* of all variables */
	weir_var **vars;
	weir_read *reads;
	struct weir_commit_part *parts;
	void *block;
	size_t bytes;
	uint64_t patience_ns; /* how long it may yet wait for the turn; 0: it takes none */
	uint64_t number;      /* of the step that is computed */
};

static bool allocate(struct step *s)
{
	struct weiri_layout layout = {0};
	size_t at_vars, at_reads, at_parts;

	s->arrays = 1 + s->apply->optimizer->slot_count;
	s->count = 1 + s->apply->count * s->arrays;
	at_vars = weiri_layout_add(&layout, s->count, sizeof(weir_var *));
	at_reads = weiri_layout_add(&layout, s->count, sizeof(weir_read));
	at_parts = weiri_layout_add(&layout, s->count, sizeof(struct weir_commit_part));
	s->bytes = layout.size;
	s->block = weiri_allocate_zeroed(s->call->allocator, s->bytes, WEIRI_LAYOUT_ALIGNMENT);
	if (s->block == NULL)
		return false;
	s->vars = weiri_layout_at(s->block, at_vars);
	s->reads = weiri_layout_at(s->block, at_reads);
	s->parts = weiri_layout_at(s->block, at_parts);
	s->vars[0] = s->apply->optimizer->step;
	for (size_t v = 0; v < s->apply->count; v++) {
		s->vars[1 + v * s->arrays] = s->apply->slots[v]->var;
		for (size_t i = 1; i < s->arrays; i++)
			s->vars[1 + v * s->arrays + i] = s->apply->slots[v]->slots[i - 1];
	}
	return true;
}

static enum weir_status no_memory(const struct step *s)
{
	return weiri_fail(s->call->error, WEIR_RESOURCE_EXHAUSTED, "no memory for the next values");
}

/* Checks that a tensor has dtype and shape of the variable's value. */
static enum weir_status check_like(const struct step *s, size_t v, const weir_tensor *tensor, const char *what)
{
	const weir_tensor *value = s->reads[1 + v * s->arrays].tensor;
	struct weiri_spec expected, got;
	char text_expected[WEIRI_SPEC_TEXT_SIZE];
	char text_got[WEIRI_SPEC_TEXT_SIZE];

	if (weir_tensor_dtype(tensor) == weir_tensor_dtype(value) &&
	    weir_shape_equal(weir_tensor_shape(tensor), weir_tensor_shape(value)))
		return WEIR_OK;
	expected = weiri_spec_of_tensor(value);
	got = weiri_spec_of_tensor(tensor);
	return weiri_fail(s->call->error, WEIR_INVALID_ARGUMENT, "variable \"%s\" is %s, and its %s is %s",
	                  weir_var_name(s->apply->slots[v]->var), weiri_spec_text(&expected, text_expected), what,
	                  weiri_spec_text(&got, text_got));
}

static enum weir_status check_values(const struct step *s)
{
	enum weir_status status = WEIR_OK;

	for (size_t v = 0; status == WEIR_OK && v < s->apply->count; v++) {
		status = check_like(s, v, s->call->inputs[v], "gradient");
		for (size_t i = 1; status == WEIR_OK && i < s->arrays; i++)
			status =
				check_like(s, v, s->reads[1 + v * s->arrays + i].tensor, weir_var_name(s->vars[1 + v * s->arrays + i]));
	}
	return status;
}

/* Makes the tensors for the next values. Those of an attempt that was in vain serve again, if they can. */
static enum weir_status make_values(struct step *s)
{
	for (size_t k = 0; k < s->count; k++) {
		const weir_tensor *old = s->reads[k].tensor;
		weir_tensor *next = s->parts[k].value;
		const weir_allocator *allocator = &s->apply->optimizer->allocator;

		if (next != NULL && (weiri_tensor_writable(next) == NULL || !weir_shape_equal(&next->shape, &old->shape))) {
			weir_tensor_release(next);
			next = NULL;
		}
		if (k > 0)
			allocator = weiri_spares_allocator(s->apply->slots[(k - 1) / s->arrays]->spares[(k - 1) % s->arrays]);
		if (next == NULL && weiri_tensor_create(old->dtype, &old->shape, 0, allocator, &next) != WEIR_OK) {
			s->parts[k].value = NULL;
			return no_memory(s);
		}
		s->parts[k] = (struct weir_commit_part){s->vars[k], s->reads[k].version, next};
	}
	return WEIR_OK;
}

/* The rate of step t; of Adam, with the factor that makes up for slots that begin with 0. */
static double rate_of(const struct step *s, uint64_t t)
{
	const struct weir_optimizer_options *o = &s->apply->optimizer->options;
	const weir_tensor *given = s->apply->has_rate ? s->call->inputs[s->apply->count] : NULL;
	double rate = o->rate;

	if (given != NULL)
		rate = weir_tensor_dtype(given) == WEIR_F32 ? (double)*(const float *)weir_tensor_data(given)
		                                            : *(const double *)weir_tensor_data(given);
	if (o->kind != WEIR_OPTIMIZER_ADAM)
		return rate;
	return rate * sqrt(1 - pow(o->beta2, (double)t)) / (1 - pow(o->beta1, (double)t));
}

static bool is_large(const struct step *s)
{
	return s->patience_ns != 0;
}

/* Returns true if another step was first, so that this one is in vain. */
static bool is_in_vain(const struct step *s)
{
	return is_large(s) && weir_var_version(s->vars[0]) != s->reads[0].version;
}

/* Computes the next values. Returns false if that is in vain. */
static bool compute(struct step *s)
{
	uint64_t t = (uint64_t) * (const int64_t *)weir_tensor_data(s->reads[0].tensor) + 1;
	struct weiri_rule_step rule = {.rate = rate_of(s, t)};

	s->number = t;
	*(int64_t *)s->parts[0].value->data = (int64_t)t;
	for (size_t v = 0; v < s->apply->count; v++) {
		const weir_tensor *value = s->reads[1 + v * s->arrays].tensor;
		size_t n = (size_t)value->elements, part = PART_BYTES / weir_dtype_size(value->dtype);

		rule.dtype = value->dtype;
		rule.gradient = weir_tensor_data(s->call->inputs[v]);
		for (size_t i = 0; i < s->arrays; i++) {
			rule.from[i] = s->reads[1 + v * s->arrays + i].tensor->data;
			rule.to[i] = s->parts[1 + v * s->arrays + i].value->data;
		}
		for (size_t at = 0; at < n; at += part) {
			if (at != 0 && is_in_vain(s))
				return false;
			weiri_rule_apply(&s->apply->optimizer->options, &rule, at, n - at < part ? n : at + part);
		}
	}
	return true;
}

/* -- turns --------------------------------------------------------------------------------------- */

/* As long as several computations take, and the system may need to let a thread run. */
static uint64_t patience_of(const struct step *s)
{
	size_t bytes = 0;

	for (size_t v = 0; v < s->apply->count; v++)
		bytes += weir_tensor_byte_count(s->call->inputs[v]);
	return bytes < WEIRI_LARGE_STEP ? 0 : UINT64_C(2000000) + 16 * (uint64_t)bytes;
}

/* Returns true if the step has the turn; false if it has waited enough, or needs none. */
static bool take_turn(struct step *s)
{
	weir_optimizer *optimizer = s->apply->optimizer;

	while (is_large(s)) {
		uint64_t seen = weir_var_version(optimizer->step), now = weir_now_ns();
		uint64_t until = now + (s->patience_ns > 1 ? s->patience_ns : 0);
		weir_read read;

		if (weiri_try_token_take(&optimizer->turn))
			return true;
		if (until == now)
			return false;
		if (until > s->call->deadline_ns)
			until = s->call->deadline_ns;
		if (weir_var_wait(optimizer->step, seen, until, s->call->token, &read, NULL) == WEIR_OK)
			weir_read_release(&read);
		else
			s->patience_ns = 1;
		now = weir_now_ns() - now;
		s->patience_ns = s->patience_ns > now ? s->patience_ns - now : 1;
	}
	return false;
}

/* -- attempts ------------------------------------------------------------------------------------ */

/*
 * WEIR_ABORTED: another write was first. The commit may wait for the budget of retired bytes, which the
 * values of the snapshot count in once they are replaced. So no handle on them is held here.
 */
static enum weir_status try_commit(struct step *s)
{
	enum weir_status status = weir_var_commit(s->parts, s->count, s->call->deadline_ns, NULL, s->call->error);

	for (size_t k = 0; status == WEIR_OK && k < s->count; k++)
		weiri_call_tell(s->call, WEIRI_TRACE_PUBLISH, s->vars[k], s->parts[k].expected + 1);
	return status;
}

/* Computes the next values from a snapshot, whose handles are released. */
static enum weir_status compute_values(struct step *s)
{
	enum weir_status status = weir_var_snapshot(s->vars, s->count, s->reads, s->call->error);

	if (status != WEIR_OK)
		return status;
	status = check_values(s);
	if (status == WEIR_OK)
		status = make_values(s);
	if (status == WEIR_OK && !compute(s))
		status = WEIR_ABORTED;
	for (size_t k = 0; status == WEIR_OK && k < s->count; k++)
		WEIR_ASSERT2(A1, s->parts[k].expected == s->reads[k].version);
	WEIR_ASSERT2(A2, status != WEIR_OK || *(const int64_t *)s->parts[0].value->data ==
	                                          *(const int64_t *)weir_tensor_data(s->reads[0].tensor) + 1);
	weir_read_release_many(s->reads, s->count);
	return status;
}

static enum weir_status attempt(struct step *s)
{
	bool has_turn = take_turn(s);
	enum weir_status status = compute_values(s);

	/* Before the commit, which wakes the threads that wait. */
	if (has_turn)
		weiri_try_token_give(&s->apply->optimizer->turn);
	return status == WEIR_OK ? try_commit(s) : status;
}

static enum weir_status make_step(struct step *s)
{
	enum weir_status status;

	s->patience_ns = patience_of(s);
	while ((status = attempt(s)) == WEIR_ABORTED) {
		if (weir_cancel_fired(s->call->token))
			return weir_cancel_cause(s->call->token, s->call->error);
		if (weir_now_ns() >= s->call->deadline_ns)
			return weiri_fail(s->call->error, WEIR_DEADLINE_EXCEEDED, "other writes were first until the deadline");
	}
	return status;
}

static enum weir_status run_apply(const struct weiri_call *call)
{
	struct step s = {.call = call, .apply = apply_of(call->node)};
	enum weir_status status;

	if (s.apply->has_rate && weir_tensor_element_count(call->inputs[s.apply->count]) != 1)
		return weiri_fail(call->error, WEIR_INVALID_ARGUMENT, "the rate must be a scalar");
	/* The output is made before the step: a step that was made does not fail. */
	status = weiri_tensor_create(WEIR_I64, &weir_shape_scalar, 0, call->allocator, &call->outputs[0]);
	if (status != WEIR_OK || !allocate(&s))
		return no_memory(&s);
	status = make_step(&s);
	for (size_t v = 0; status == WEIR_OK && v < s.apply->count; v++) {
		if (weiri_call_wants(call, (uint32_t)(1 + v)))
			call->outputs[1 + v] = weir_tensor_retain(s.parts[1 + v * s.arrays].value);
	}
	for (size_t k = 0; k < s.count; k++)
		weir_tensor_release(s.parts[k].value);
	weiri_release(call->allocator, s.block, s.bytes, WEIRI_LAYOUT_ALIGNMENT);
	*(int64_t *)call->outputs[0]->data = (int64_t)s.number;
	return status;
}

/* -- building ------------------------------------------------------------------------------------ */

/* The number of steps, and then each variable with its slots behind it. */
static bool touches(const weir_node *node, size_t i, struct weiri_resource *resource)
{
	const struct apply *apply = apply_of(node);
	size_t arrays = 1 + apply->optimizer->slot_count;
	weir_var *var = apply->optimizer->step;

	if (i > apply->count * arrays)
		return false;
	if (i > 0) {
		const struct weiri_slots *slots = apply->slots[(i - 1) / arrays];

		var = (i - 1) % arrays == 0 ? slots->var : slots->slots[(i - 1) % arrays - 1];
	}
	*resource = (struct weiri_resource){var, "variable", weir_var_name(var), true};
	return true;
}

static void drop(void *attribute)
{
	(void)weiri_countdown_arrive(&((struct apply *)attribute)->optimizer->users);
}

static const struct weiri_op apply_op = {
	.name = "apply", .traits = WEIRI_OP_HEAVY, .run = run_apply, .touches = touches, .drop = drop};

struct building {
	weir_graph *graph;
	const char *name;
	weir_optimizer *optimizer;
	weir_var *const *vars;
	const weir_output *inputs; /* the gradients, and perhaps the rate behind them */
	size_t count;
	struct apply *apply;
	size_t bytes;
	weir_error *error;
};

#define refuse(b, code, ...) weiri_node_fail((b)->error, (code), &apply_op, (b)->name, __VA_ARGS__)

static enum weir_status check_variable(const struct building *b, size_t i)
{
	const weir_var *var = b->vars[i];
	const struct weiri_spec *gradient = weiri_output_spec(b->inputs[i]);
	struct weiri_spec expected;
	char text_expected[WEIRI_SPEC_TEXT_SIZE];
	char text_got[WEIRI_SPEC_TEXT_SIZE];

	if (var == NULL)
		return refuse(b, WEIR_INVALID_ARGUMENT, "variable %zu is NULL", i);
	for (size_t j = 0; j < i; j++) {
		if (b->vars[j] == var)
			return refuse(b, WEIR_INVALID_ARGUMENT, "variable \"%s\" occurs twice", weir_var_name(var));
	}
	if (weir_var_kind(var) != WEIR_VAR_TENSOR)
		return refuse(b, WEIR_INVALID_ARGUMENT, "variable \"%s\" has no tensors", weir_var_name(var));
	if (weiri_float_check(weir_var_dtype(var), NULL) != WEIR_OK)
		return refuse(b, WEIR_UNIMPLEMENTED, "variable \"%s\" is %s, expected f32 or f64", weir_var_name(var),
		              weir_dtype_name(weir_var_dtype(var)));
	expected = weiri_spec_of(weir_var_dtype(var), weir_var_shape(var));
	if (weiri_spec_compatible(&expected, gradient))
		return WEIR_OK;
	return refuse(b, WEIR_INVALID_ARGUMENT, "variable \"%s\" is %s, and its gradient is %s", weir_var_name(var),
	              weiri_spec_text(&expected, text_expected), weiri_spec_text(gradient, text_got));
}

static enum weir_status check(const struct building *b, size_t input_count)
{
	struct weiri_node_request request = {.op = &apply_op, .name = b->name, .inputs = b->inputs};
	enum weir_status status;
	weir_error inner;

	request.input_count = input_count;
	status = weiri_node_check(b->graph, &request, b->error);
	for (size_t i = 0; status == WEIR_OK && i < b->count; i++)
		status = check_variable(b, i);
	if (status != WEIR_OK || input_count == b->count)
		return status;
	status = weiri_float_check(weiri_output_spec(b->inputs[b->count])->dtype, &inner);
	return status == WEIR_OK ? WEIR_OK : refuse(b, status, "rate: %s", inner.message);
}

static enum weir_status find_slots(struct building *b)
{
	enum weir_status status = WEIR_OK;
	weir_error inner;

	for (size_t i = 0; status == WEIR_OK && i < b->count; i++) {
		status = weiri_optimizer_slots(b->optimizer, b->vars[i], &b->apply->slots[i], &inner);
		if (status != WEIR_OK)
			return refuse(b, status, "%s", inner.message);
	}
	return status;
}

static enum weir_status build(struct building *b, size_t input_count, weir_output *step, weir_node **node)
{
	struct weiri_spec specs[1 + WEIR_APPLY_MAX_VARIABLES];
	struct weiri_node_request request = {.op = &apply_op,
	                                     .name = b->name,
	                                     .inputs = b->inputs,
	                                     .input_count = input_count,
	                                     .specs = specs,
	                                     .output_count = 1 + b->count,
	                                     .attribute = b->apply,
	                                     .attribute_size = b->bytes};
	enum weir_status status;
	weir_node *built;

	specs[0] = weiri_spec_scalar(WEIR_I64);
	for (size_t i = 0; i < b->count; i++)
		specs[1 + i] = weiri_spec_of(weir_var_dtype(b->vars[i]), weir_var_shape(b->vars[i]));
	b->apply->optimizer = b->optimizer;
	b->apply->has_rate = input_count > b->count;
	b->apply->count = b->count;
	status = find_slots(b);
	if (status != WEIR_OK)
		return status;
	weiri_countdown_join(&b->optimizer->users);
	status = weiri_node_build(b->graph, &request, &built, b->error);
	if (status != WEIR_OK) {
		(void)weiri_countdown_arrive(&b->optimizer->users);
		return status;
	}
	*step = (weir_output){built, 0};
	if (node != NULL)
		*node = built;
	return WEIR_OK;
}

static enum weir_status add(weir_graph *graph, const char *name, weir_optimizer *optimizer, const weir_output *rate,
                            weir_var *const vars[], const weir_output gradients[], size_t count, weir_output *step,
                            weir_node **node, weir_error *error)
{
	weir_output inputs[WEIR_APPLY_MAX_VARIABLES + 1];
	struct building b = {.graph = graph,
	                     .name = name,
	                     .optimizer = optimizer,
	                     .vars = vars,
	                     .inputs = inputs,
	                     .count = count,
	                     .error = error};
	size_t input_count = count + (rate != NULL);
	enum weir_status status;

	if (optimizer == NULL || vars == NULL || gradients == NULL || step == NULL)
		return refuse(&b, WEIR_INVALID_ARGUMENT, "%s is NULL",
		              optimizer == NULL ? "optimizer"
		              : vars == NULL    ? "vars"
		              : step == NULL    ? "step"
		                                : "gradients");
	if (count == 0 || count > WEIR_APPLY_MAX_VARIABLES)
		return refuse(&b, WEIR_INVALID_ARGUMENT, "expected 1 to %d variables, got %zu", WEIR_APPLY_MAX_VARIABLES,
		              count);
	(void)memcpy(inputs, gradients, count * sizeof(inputs[0]));
	if (rate != NULL)
		inputs[count] = *rate;
	status = check(&b, input_count);
	if (status != WEIR_OK)
		return status;
	b.bytes = offsetof(struct apply, slots) + count * sizeof(struct weiri_slots *);
	b.apply = weiri_allocate_zeroed(&graph->allocator, b.bytes, _Alignof(struct apply));
	if (b.apply == NULL)
		return refuse(&b, WEIR_RESOURCE_EXHAUSTED, "no memory");
	status = build(&b, input_count, step, node);
	weiri_release(&graph->allocator, b.apply, b.bytes, _Alignof(struct apply));
	return status;
}

enum weir_status weir_op_apply(weir_graph *graph, const char *name, weir_optimizer *optimizer, weir_var *const vars[],
                               const weir_output gradients[], size_t count, weir_output *step, weir_node **node,
                               weir_error *error)
{
	return add(graph, name, optimizer, NULL, vars, gradients, count, step, node, error);
}

enum weir_status weir_op_apply_at(weir_graph *graph, const char *name, weir_optimizer *optimizer, weir_output rate,
                                  weir_var *const vars[], const weir_output gradients[], size_t count,
                                  weir_output *step, weir_node **node, weir_error *error)
{
	return add(graph, name, optimizer, &rate, vars, gradients, count, step, node, error);
}
