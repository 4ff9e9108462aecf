/*
 * op_while.c - a node that repeats a body while a condition holds.
 *
 * Two frames, one of the condition and one of the body, take turns from the first iteration to the
 * last. Between them the values are in the state of the node: the condition shares them, the body
 * takes them, and its results replace them. So an elementwise op writes over the value of the last
 * iteration, and an iteration allocates nothing.
 */
#include "session/child.h"

#include "base/error.h"
#include "base/options.h"

struct loop {
	struct weiri_frame *condition, *body;
	uint64_t iteration;
	weir_tensor *values[]; /* one for each tensor */
};

static size_t state_size(const weir_node *node)
{
	return sizeof(struct loop) + node->input_count * sizeof(weir_tensor *);
}

/* Ends the node. The values become its outputs, if the loop has ended as it should. */
static bool end(const struct weiri_site *site, struct loop *loop, bool complete)
{
	const struct weiri_plan_node *p = &site->frame->plan->nodes[site->index];

	weiri_child_destroy(loop->condition);
	weiri_child_destroy(loop->body);
	for (uint32_t i = 0; i < p->input_count; i++) {
		if (complete)
			site->frame->values[p->outputs + i] = loop->values[i];
		else
			weir_tensor_release(loop->values[i]);
	}
	return true;
}

static const struct weiri_calls *calls_at(const struct weiri_site *site)
{
	return weiri_calls_of(site->frame->plan->nodes[site->index].node);
}

/* Begins a test of the condition. Returns false if the node fails, or must stop. */
static bool begin_test(const struct weiri_site *site, struct loop *loop)
{
	const struct weiri_calls *calls = calls_at(site);

	if (weiri_site_must_stop(site))
		return false;
	for (uint32_t i = 0; calls->check && i < calls->body_count; i++) {
		if (!weiri_site_accepts(site, calls->bodies[i], loop->values))
			return false;
	}
	loop->condition->number = loop->iteration;
	weiri_frame_begin(loop->condition, &(struct weiri_fed){loop->values, sizeof(loop->values[0])});
	weiri_child_begun(loop->condition, WEIRI_TRACE_TEST, loop->iteration);
	return true;
}

/* Reads the result of the condition. Returns false if the node fails, or must stop. */
static bool take_verdict(const struct weiri_site *site, struct weiri_frame *condition, bool *holds)
{
	weir_tensor *verdict;
	bool is_scalar;

	if (!weiri_child_take_results(condition, &verdict))
		return false;
	is_scalar = weir_tensor_element_count(verdict) == 1;
	*holds = is_scalar && *(const bool *)weir_tensor_data(verdict);
	weir_tensor_release(verdict);
	weiri_site_tell(site, WEIRI_TRACE_TESTED, condition->number, *holds);
	if (!is_scalar)
		(void)weiri_site_failed(site, WEIR_INVALID_ARGUMENT, "the condition did not give a scalar");
	return is_scalar;
}

/* Begins iteration loop->iteration. Returns false if the node fails. */
static bool begin_iteration(const struct weiri_site *site, struct loop *loop)
{
	const struct weiri_calls *calls = calls_at(site);

	if (calls->limit != 0 && loop->iteration == calls->limit) {
		(void)weiri_site_failed(site, WEIR_RESOURCE_EXHAUSTED, "the loop did not end within %llu iterations",
		                        (unsigned long long)calls->limit);
		return false;
	}
	loop->body->number = loop->iteration++;
	weiri_frame_begin_with(loop->body, loop->values);
	weiri_child_begun(loop->body, WEIRI_TRACE_ITERATION, loop->body->number);
	return true;
}

/*
 * Goes on with the loop. `child` is the frame that has ended; NULL: the condition is to be tested
 * first.
 */
static bool advance(const struct weiri_site *site, struct loop *loop, const struct weiri_frame *child)
{
	for (;;) {
		bool holds = false;

		if (child == loop->body && !weiri_child_take_results(loop->body, loop->values))
			return end(site, loop, false);
		if (child != loop->condition) {
			if (!begin_test(site, loop))
				return end(site, loop, false);
			if (!weiri_site_run(site, loop->condition))
				return false;
		}
		if (!take_verdict(site, loop->condition, &holds))
			return end(site, loop, false);
		if (!holds)
			return end(site, loop, true);
		if (!begin_iteration(site, loop))
			return end(site, loop, false);
		if (!weiri_site_run(site, loop->body))
			return false;
		child = loop->body;
	}
}

static bool begin(const struct weiri_site *site, const struct weiri_call *call)
{
	const struct weiri_calls *calls = weiri_calls_of(call->node);
	struct loop *loop = weiri_site_state(site);

	loop->iteration = 0;
	for (uint32_t i = 0; i < call->node->input_count; i++)
		loop->values[i] = NULL;
	loop->condition = weiri_child_create(site, calls->bodies[0]);
	loop->body = loop->condition != NULL ? weiri_child_create(site, calls->bodies[1]) : NULL;
	if (loop->body == NULL) {
		(void)weiri_site_failed(site, WEIR_RESOURCE_EXHAUSTED, "no memory for frames");
		return end(site, loop, false);
	}
	for (uint32_t i = 0; i < call->node->input_count; i++)
		loop->values[i] = weiri_call_pass(call, i);
	return advance(site, loop, NULL);
}

static bool child_ended(const struct weiri_site *site, struct weiri_frame *child)
{
	return advance(site, weiri_site_state(site), child);
}

static const struct weiri_inner while_inner = {.parts = WEIRI_TRACE_ITERATION,
                                               .stays = true,
                                               .state_size = state_size,
                                               .begin = begin,
                                               .child_ended = child_ended};
static const struct weiri_op while_op = {.name = "while",
                                         .traits = WEIRI_OP_CALLS,
                                         .drop = weiri_calls_drop,
                                         .touches = weiri_calls_touch,
                                         .inner = &while_inner};

/* -- building ---------------------------------------------------------------------------------- */

#define refuse(r, code, ...) weiri_node_fail((r)->error, (code), (r)->op, (r)->name, __VA_ARGS__)

static enum weir_status check_condition(const struct weiri_call_request *r, const struct weiri_body *condition)
{
	char text[WEIRI_SPEC_TEXT_SIZE];
	const struct weiri_spec *result;

	if (condition->plan->fetch_count != 1)
		return refuse(r, WEIR_INVALID_ARGUMENT, "the condition \"%s\" must have one result, and has %zu",
		              condition->function->name, condition->plan->fetch_count);
	result = weiri_body_result(condition, 0);
	if (result->dtype == WEIR_BOOL && (!result->ranked || result->shape.rank == 0))
		return WEIR_OK;
	return refuse(r, WEIR_INVALID_ARGUMENT, "the condition \"%s\" must give a bool scalar, and gives %s",
	              condition->function->name, weiri_spec_text(result, text));
}

/* What is known of the outputs: what the body knows of its tensors, because any iteration may be the last. */
static enum weir_status loop_specs(const struct weiri_call_request *r, struct weiri_calls *calls,
                                   struct weiri_spec specs[], size_t *count)
{
	const struct weiri_body *condition = calls->bodies[0], *body = calls->bodies[1];
	enum weir_status status = check_condition(r, condition);

	if (status != WEIR_OK)
		return status;
	*count = body->plan->feed_count;
	if (body->plan->fetch_count != *count)
		return refuse(r, WEIR_INVALID_ARGUMENT, "the body \"%s\" has %zu result%s for %zu tensor%s",
		              body->function->name, body->plan->fetch_count, WEIRI_S(body->plan->fetch_count), *count,
		              WEIRI_S(*count));
	for (size_t i = 0; i < *count; i++) {
		const struct weiri_spec *result = weiri_body_result(body, i);
		char text_expected[WEIRI_SPEC_TEXT_SIZE];
		char text_got[WEIRI_SPEC_TEXT_SIZE];

		specs[i] = *weiri_body_tensor(body, i);
		if (!weiri_spec_compatible(&specs[i], result))
			return refuse(r, WEIR_INVALID_ARGUMENT, "result %zu of the body \"%s\" is %s, and becomes \"%s\", %s", i,
			              body->function->name, weiri_spec_text(result, text_got), weiri_body_parameter(body, i)->name,
			              weiri_spec_text(&specs[i], text_expected));
		calls->check |= !weiri_spec_implies(result, &specs[i]);
		calls->check |= !weiri_spec_implies(result, weiri_body_tensor(condition, i));
	}
	return WEIR_OK;
}

enum weir_status weir_op_while(weir_graph *graph, const char *name, weir_function *condition, weir_function *body,
                               const struct weir_argument arguments[], size_t count,
                               const struct weir_while_options *options, weir_output outs[], weir_node **node,
                               weir_error *error)
{
	weir_function *const functions[] = {condition, body};
	struct weir_while_options given;
	struct weiri_call_request request = {.graph = graph,
	                                     .op = &while_op,
	                                     .name = name,
	                                     .functions = functions,
	                                     .function_count = 2,
	                                     .arguments = arguments,
	                                     .count = count,
	                                     .error = error};
	enum weir_status status = weiri_options_read("weir_op_while", options, &given, sizeof(given), error);

	if (status != WEIR_OK)
		return status;
	request.limit = given.max_iterations;
	return weiri_call_build(&request, loop_specs, outs, node);
}
