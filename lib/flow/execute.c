/*
 * execute.c - runs the nodes of a step.
 *
 * Whoever brings a node's pending count to zero has it in his own ready list, so that a chain of cheap nodes stays on one thread.
 * What is worth it goes to the pool when there is other work, and user code always does unless this is a worker.
 */
#include "flow/step.h"

#include "base/compiler.h"
#include "base/error.h"
#include "flow/session.h"
#include "run/critical_section.h"

/* Inputs of a node from which handing it to another thread costs less than it gains. */
enum { WORTH_A_WORKER_BYTES = 64 * 1024 };

/*
 * Our reference keeps the session, and so its pool, alive until the submission is over: the step may end on a worker before that,
 * and its caller may then destroy the session.
 */
void weiri_step_submit(struct weiri_step *step, weir_task *task)
{
	weiri_step_retain(step);
	(void)weir_pool_submit(step->session->pool, task);
	/* The caller may be the only one who runs tasks. */
	if (step->caller_helps)
		weiri_signal_raise(&step->signal);
	weiri_step_release(step);
}

static void end_step(struct weiri_step *step)
{
	weiri_step_disconnect(step);
	weiri_latch_set(&step->ended);
	weiri_signal_raise(&step->signal);
	weiri_step_release(step);
}

/* User code in a critical section, which it is refused to enter again. */
static enum weir_status run_within(const struct weiri_plan_node *p, const struct weiri_call *call)
{
	struct weiri_inside inside;
	enum weir_status status;

	weiri_inside_begin(&inside, p->within);
	status = p->node->op->run(call);
	weiri_inside_end(&inside);
	return status;
}

/* 1 when the node has ended, 0 when it waits and the step may be gone. */
static int run_node(struct weiri_step *step, uint32_t index)
{
	const struct weiri_plan *plan = step->plan;
	const struct weiri_plan_node *p = &plan->nodes[index];
	struct weiri_call call;
	weir_error error;
	enum weir_status status;

	if (weiri_step_stopping(step)) {
		weiri_latch_set(&step->incomplete);
		if (WEIRI_LIKELY((p->node->op->traits & WEIRI_OP_LEAVES) == 0))
			return 1;
	}
	for (uint32_t i = 0; i < p->node->input_count; i++)
		step->inputs[p->inputs + i] = step->values[plan->input_slots[p->inputs + i]];
	error.message[0] = '\0';
	call.node = p->node;
	call.inputs = step->inputs + p->inputs;
	call.outputs = step->values + p->outputs;
	call.holds = step->holds + p->holds;
	call.wanted = p->wanted;
	call.allocator = &step->session->allocator;
	call.token = step->token;
	call.deadline_ns = step->deadline_ns;
	call.error = &error;
	if (p->node->op->traits & WEIRI_OP_WAITS)
		return weiri_wait_start(step, index, &call);
	status = p->within == NULL ? p->node->op->run(&call) : run_within(p, &call);
	if (status != WEIR_OK)
		weiri_step_node_failed(step, index, status, error.message);
	return 1;
}

/* Puts the successors that became ready in front of `list` and returns it. */
static uint32_t release_successors(struct weiri_step *step, uint32_t index, uint32_t list)
{
	const struct weiri_plan *plan = step->plan;
	const struct weiri_plan_node *p = &plan->nodes[index];

	for (uint32_t i = 0; i < p->successor_count; i++) {
		uint32_t next = plan->successors[p->successors + i];

		/* The only edge: nobody else arrives. */
		if (plan->nodes[next].pending != 1 && !weiri_countdown_arrive(&step->nodes[next].pending))
			continue;
		step->nodes[next].next = list;
		list = next;
	}
	return list;
}

static int belongs_to_pool(struct weiri_step *step, uint32_t index, int other_work, int on_worker)
{
	const struct weiri_plan_node *p = &step->plan->nodes[index];
	uint32_t traits = p->node->op->traits;
	size_t bytes = 0;

	if (traits & WEIRI_OP_USER)
		return !on_worker || other_work;
	if (!(traits & WEIRI_OP_HEAVY) || !other_work || step->session->workers == 0)
		return 0;
	for (uint32_t i = 0; i < p->node->input_count; i++) {
		const weir_tensor *input = step->values[step->plan->input_slots[p->inputs + i]];

		bytes += input != NULL ? weir_tensor_nbytes(input) : 0;
	}
	return bytes >= WORTH_A_WORKER_BYTES;
}

/* Runs the nodes of `list` and what becomes ready; `ended` nodes had ended before. The step may be gone afterwards. */
static void execute(struct weiri_step *step, uint32_t list, uint32_t ended, int on_worker)
{
	while (list != WEIRI_NO_NODE) {
		uint32_t index = list;

		list = step->nodes[index].next;
		if (belongs_to_pool(step, index, list != WEIRI_NO_NODE, on_worker)) {
			weiri_step_submit(step, &step->nodes[index].task);
			continue;
		}
		if (!run_node(step, index))
			continue;
		list = release_successors(step, index, list);
		ended++;
	}
	/* S1: nodes that we ended keep the step alive until here. */
	if (ended != 0 && weiri_countdown_arrive_many(&step->remaining, ended))
		end_step(step);
}

static void run_task(weir_task *task)
{
	struct weiri_step_node *node = WEIRI_CONTAINER_OF(task, struct weiri_step_node, task);

	node->next = WEIRI_NO_NODE;
	execute(node->step, node->index, 0, 1);
}

void weiri_step_resume(struct weiri_step *step, uint32_t index)
{
	execute(step, release_successors(step, index, WEIRI_NO_NODE), 1, 1);
}

void weiri_step_begin(struct weiri_step *step)
{
	uint32_t list = WEIRI_NO_NODE;

	for (uint32_t i = 0; i < step->plan->node_count; i++) {
		step->nodes[i].task.run = run_task;
		if (step->plan->nodes[i].pending == 0) {
			step->nodes[i].next = list;
			list = i;
		}
	}
	if (list == WEIRI_NO_NODE)
		end_step(step);
	else
		execute(step, list, 0, step->caller_helps);
}
