/*
 * execute.c - runs the nodes of a step.
 *
 * A thread that brings a node's pending count to zero puts the node into its own ready list. So a
 * chain of cheap nodes stays on one thread. A costly node goes to the pool if the thread has other
 * work. User code also goes to the pool if the thread is not a worker.
 */
#include "session/step.h"

#include "base/assert.h"
#include "base/compiler.h"
#include "base/error.h"
#include "session/session.h"
#include "run/critical_section.h"

/*
 * A costly node whose inputs have at least this size is handed to another thread: that gains more
 * than it costs.
 */
enum { WORTH_A_WORKER_BYTES = 64 * 1024 };

/*
 * A reference keeps the step, and so the session and its pool, alive until the submission is over.
 * Without it, the step could end on a worker earlier, and its caller could destroy the session.
 */
void weiri_step_submit(struct weiri_step *step, weir_task *task)
{
	weiri_step_retain(step);
	(void)weir_pool_submit(step->session->pool, task);
	/* The caller may be the only thread that runs tasks. */
	if (step->caller_helps)
		weiri_signal_raise(&step->signal);
	weiri_step_release(step);
}

static void end_step(struct weiri_step *step)
{
	weiri_step_disconnect(step);
	WEIR_ASSERT1(S1, !weiri_latch_is_set(&step->ended));
	weiri_latch_set(&step->ended);
	weiri_signal_raise(&step->signal);
	weiri_step_release(step);
}

/*
 * Runs user code in a critical section. The mark keeps that code from entering the section again.
 */
static enum weir_status run_within(const struct weiri_plan_node *p, const struct weiri_call *call)
{
	struct weiri_inside inside;
	enum weir_status status;

	weiri_inside_begin(&inside, p->within);
	status = p->node->op->run(call);
	weiri_inside_end(&inside);
	return status;
}

/* Returns true if the node has ended; false if it waits, and then the step may have been freed. */
static bool run_node(struct weiri_step *step, uint32_t index)
{
	const struct weiri_plan *plan = step->plan;
	const struct weiri_plan_node *p = &plan->nodes[index];
	struct weiri_call call;
	weir_error error;
	enum weir_status status;

	if (weiri_step_stopping(step)) {
		weiri_latch_set(&step->incomplete);
		if (WEIRI_LIKELY((p->node->op->traits & WEIRI_OP_LEAVES) == 0))
			return true;
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
	return true;
}

/* Puts the successors that became ready in front of `list`. Returns the new list. */
static uint32_t release_successors(struct weiri_step *step, uint32_t index, uint32_t list)
{
	const struct weiri_plan *plan = step->plan;
	const struct weiri_plan_node *p = &plan->nodes[index];

	for (uint32_t i = 0; i < p->successor_count; i++) {
		uint32_t next = plan->successors[p->successors + i];

		/* A node with one incoming edge needs no count, since no other thread arrives at it. */
		if (plan->nodes[next].pending != 1 && !weiri_countdown_arrive(&step->nodes[next].pending))
			continue;
		step->nodes[next].next = list;
		list = next;
	}
	return list;
}

/* splitmix64 (Steele, Lea and Flood, OOPSLA 2014). */
static uint64_t draw(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);

	z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
	return z ^ z >> 31;
}

/* Moves a random node of `list`, which is not empty, to its front. Returns the new list. */
static WEIRI_COLD uint32_t shuffle(struct weiri_step *step, uint32_t list, uint64_t *state)
{
	uint32_t before = list;
	uint64_t count = 1;
	uint64_t skipped;
	uint32_t drawn;

	for (uint32_t i = step->nodes[list].next; i != WEIRI_NO_NODE; i = step->nodes[i].next)
		count++;
	skipped = draw(state) % count;
	if (skipped == 0)
		return list;
	while (--skipped > 0)
		before = step->nodes[before].next;
	drawn = step->nodes[before].next;
	step->nodes[before].next = step->nodes[drawn].next;
	step->nodes[drawn].next = list;
	return drawn;
}

static bool belongs_to_pool(struct weiri_step *step, uint32_t index, bool other_work, bool on_worker)
{
	const struct weiri_plan_node *p = &step->plan->nodes[index];
	uint32_t traits = p->node->op->traits;
	size_t bytes = 0;

	/* Without workers, a task would run only after all nodes of this list, not in drawn order. */
	if (step->shuffle != 0 && step->session->workers == 0)
		return false;
	if (traits & WEIRI_OP_USER)
		return !on_worker || other_work;
	if (!(traits & WEIRI_OP_HEAVY) || !other_work || step->session->workers == 0)
		return false;
	for (uint32_t i = 0; i < p->node->input_count; i++) {
		const weir_tensor *input = step->values[step->plan->input_slots[p->inputs + i]];

		bytes += input != NULL ? weir_tensor_byte_count(input) : 0;
	}
	return bytes >= WORTH_A_WORKER_BYTES;
}

/*
 * Runs the nodes of `list` and the nodes that become ready. `ended` nodes had ended before and are
 * not yet counted. After this call the step may have been freed.
 */
static void execute(struct weiri_step *step, uint32_t list, uint32_t ended, bool on_worker)
{
	/* Each list has its own draws, so threads share no state. A single thread repeats them all. */
	uint64_t draws = step->shuffle + ((uint64_t)list << 32);

	while (list != WEIRI_NO_NODE) {
		uint32_t index;

		if (WEIRI_UNLIKELY(step->shuffle != 0))
			list = shuffle(step, list, &draws);
		index = list;
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
	/* S1: the nodes that this thread ended are counted only here, which keeps the step alive. */
	if (ended != 0 && weiri_countdown_arrive_many(&step->remaining, ended))
		end_step(step);
}

static void run_task(weir_task *task)
{
	struct weiri_step_node *node = WEIRI_CONTAINER_OF(task, struct weiri_step_node, task);

	node->next = WEIRI_NO_NODE;
	execute(node->step, node->index, 0, true);
}

void weiri_step_resume(struct weiri_step *step, uint32_t index)
{
	execute(step, release_successors(step, index, WEIRI_NO_NODE), 1, true);
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
