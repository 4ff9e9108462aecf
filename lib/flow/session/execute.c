/*
 * execute.c - runs the nodes of a step.
 *
 * A thread that brings the count of a unit to zero puts the unit into its own ready list. So a
 * chain of cheap nodes stays on one thread. A costly node goes to the pool if the thread has other
 * work. User code also goes to the pool if the thread is not a worker. The rest of its unit goes
 * with it.
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

/* One thread that runs units of a frame. */
struct runner {
	struct weiri_frame *frame;
	uint32_t list;  /* ready units */
	uint32_t roots; /* units 0 .. roots - 1 are ready too */
	uint32_t ended; /* units that have ended and are not yet counted */
	int32_t credit; /* the weight of the nodes that may run before the next look */
	bool on_worker;
	uint64_t draws;
	struct weiri_call call;
	weir_error error;
};

/*
 * A reference keeps the step, and so the session and its pool, alive until the submission is over.
 * Without it, the step could end on a worker earlier, and its caller could destroy the session.
 */
void weiri_step_submit(struct weiri_step *step, weir_task *task)
{
	weiri_step_retain(step);
	if (step->on_caller)
		weiri_handoff_put(&step->handoff, task);
	else
		(void)weir_pool_submit(step->pool, task);
	/* The caller may be the only thread that runs tasks. */
	if (step->on_caller || step->caller_helps)
		weiri_signal_raise(&step->signal);
	weiri_step_release(step, 1);
}

static void end_step(struct weiri_step *step)
{
	weiri_step_disconnect(step);
	WEIR_ASSERT1(S1, !weiri_latch_is_set(&step->ended));
	weiri_latch_set(&step->ended);
}

/* Ends a step on a thread other than its caller's, or on its caller's while that waits. */
static void end_and_tell(struct weiri_step *step)
{
	end_step(step);
	if (step->run.done != NULL) {
		weiri_step_tell(step);
		return;
	}
	weiri_signal_raise(&step->signal);
	weiri_step_release(step, 1);
}

/* -- nodes ------------------------------------------------------------------------------------- */

/*
 * Runs user code in a critical section. The mark keeps that code from entering the section again.
 */
static enum weir_status run_within(const struct weiri_plan_node *p, const struct weiri_call *call)
{
	struct weiri_inside inside;
	enum weir_status status;

	weiri_inside_begin(&inside, p->within);
	status = p->run(call);
	weiri_inside_end(&inside);
	return status;
}

/* Returns true if the node must be skipped. */
static bool must_skip(struct runner *r, const struct weiri_plan_node *p)
{
	struct weiri_step *step = r->frame->step;

	r->credit -= (int32_t)p->weight;
	if (WEIRI_UNLIKELY(r->credit < 0)) {
		weiri_step_look(step);
		r->credit = WEIRI_LOOK_WEIGHT - (int32_t)p->weight;
	}
	/* A section is left in any case. What was left out of it has made the step incomplete. */
	if (WEIRI_LIKELY(!weiri_latch_is_set(&step->halted)) || (p->flags & WEIRI_OP_LEAVES) != 0)
		return false;
	weiri_latch_set(&step->incomplete);
	return true;
}

static void find_inputs(struct runner *r, const struct weiri_plan_node *p)
{
	const struct weiri_use *uses = r->frame->plan->uses + p->inputs;
	weir_tensor **inputs = r->frame->inputs + p->inputs;

	for (uint32_t i = 0; i < p->input_count; i++) {
		inputs[i] = r->frame->values[uses[i].slot];
		WEIR_ASSERT1(plan L2, inputs[i] != NULL || (p->flags & WEIRI_OP_LEAVES) != 0);
	}
	r->error.message[0] = '\0';
	r->call.node = p->node;
	r->call.inputs = inputs;
	r->call.outputs = r->frame->values + p->outputs;
	r->call.holds = r->frame->holds + p->holds;
	r->call.wanted = p->wanted;
	r->call.taken = p->taken;
}

static void run_node(struct runner *r, const struct weiri_plan_node *p)
{
	struct weiri_frame *frame = r->frame;
	enum weir_status status = WEIRI_LIKELY(p->within == NULL) ? p->run(&r->call) : run_within(p, &r->call);

	if (WEIRI_UNLIKELY(status != WEIR_OK))
		weiri_step_node_failed(frame->step, (uint32_t)(p - frame->plan->nodes), status, r->error.message);
	if ((p->flags & (WEIRI_NODE_ENDS_USES | WEIRI_NODE_SPILLS)) != 0)
		weiri_frame_node_ended(frame, p);
}

static bool belongs_to_pool(const struct runner *r, const struct weiri_plan_node *p)
{
	const struct weiri_frame *frame = r->frame;
	const struct weiri_step *step = frame->step;
	bool other_work = r->list != WEIRI_NO_UNIT || r->roots != 0;
	size_t bytes = 0;

	/* Without workers, a task would run only after all units of this list, not in drawn order. */
	if (step->on_caller || (step->shuffle != 0 && step->workers == 0))
		return false;
	if (p->flags & WEIRI_OP_USER)
		return !r->on_worker || other_work;
	/* A caller that does not wait is not held up either. */
	if ((!other_work && (r->on_worker || step->run.done == NULL)) || step->workers == 0)
		return false;
	for (uint32_t i = 0; i < p->input_count; i++) {
		const weir_tensor *input = frame->values[frame->plan->uses[p->inputs + i].slot];

		bytes += input != NULL ? weir_tensor_byte_count(input) : 0;
	}
	return bytes >= WORTH_A_WORKER_BYTES;
}

/* -- units ------------------------------------------------------------------------------------- */

static void run_task(weir_task *task);

/* After this call the step may have been freed. */
static void submit_unit(struct weiri_frame *frame, uint32_t unit, uint32_t at)
{
	struct weiri_frame_unit *state = &frame->units[unit];

	state->task.run = run_task;
	state->frame = frame;
	state->at = at;
	weiri_step_submit(frame->step, &state->task);
}

/*
 * Runs the nodes of the unit from `at` on. Returns true if the unit has ended; false if a task or a
 * completion continues it, and then the step may have been freed. may_submit is false if the unit
 * was submitted for the sake of its first node.
 */
static bool run_unit(struct runner *r, uint32_t unit, uint32_t at, bool may_submit)
{
	struct weiri_frame *frame = r->frame;
	const struct weiri_plan_node *nodes = frame->plan->nodes;
	uint32_t end = frame->plan->units[unit].end;

	for (uint32_t i = at; i < end; i++) {
		const struct weiri_plan_node *p = &nodes[i];

		if (WEIRI_UNLIKELY((p->flags & (WEIRI_OP_USER | WEIRI_OP_HEAVY)) != 0) && may_submit && belongs_to_pool(r, p)) {
			submit_unit(frame, unit, i);
			return false;
		}
		may_submit = true;
		if (WEIRI_UNLIKELY(must_skip(r, p)))
			continue;
		find_inputs(r, p);
		if (WEIRI_LIKELY((p->flags & WEIRI_OP_WAITS) == 0))
			run_node(r, p);
		else if (!weiri_wait_start(frame, unit, i, &r->call))
			return false;
	}
	return true;
}

/* Puts the successors that became ready in front of the list. */
static void release_successors(struct runner *r, uint32_t unit)
{
	struct weiri_frame *frame = r->frame;
	const struct weiri_plan *plan = frame->plan;
	const uint32_t *successors = plan->successors + plan->units[unit].successors;

	for (uint32_t i = 0; i < plan->units[unit].successor_count; i++) {
		uint32_t count = plan->units[successors[i]].count;

		if (count != WEIRI_NO_COUNT && !weiri_countdown_finish(&frame->counts[count], 1))
			continue;
		frame->units[successors[i]].next = r->list;
		r->list = successors[i];
	}
}

/* splitmix64 (Steele, Lea and Flood, OOPSLA 2014). */
static uint64_t draw(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);

	z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
	return z ^ z >> 31;
}

/* Moves a random unit of the list, which is not empty, to its front. */
static WEIRI_COLD void shuffle(struct runner *r)
{
	struct weiri_frame_unit *units = r->frame->units;
	uint32_t before = r->list;
	uint64_t count = 1;
	uint64_t skipped;
	uint32_t drawn;

	for (uint32_t i = units[r->list].next; i != WEIRI_NO_UNIT; i = units[i].next)
		count++;
	skipped = draw(&r->draws) % count;
	if (skipped == 0)
		return;
	while (--skipped > 0)
		before = units[before].next;
	drawn = units[before].next;
	units[before].next = units[drawn].next;
	units[drawn].next = r->list;
	r->list = drawn;
}

/* Takes the unit that runs next out of the list, or of the roots. Returns false if there is none. */
static bool take_ready(struct runner *r, uint32_t *unit)
{
	/* If nothing is ready, the step may have been freed. */
	if (r->list != WEIRI_NO_UNIT) {
		if (WEIRI_UNLIKELY(r->frame->step->shuffle != 0))
			shuffle(r);
		*unit = r->list;
		r->list = r->frame->units[r->list].next;
		return true;
	}
	if (r->roots == 0)
		return false;
	*unit = --r->roots;
	return true;
}

static void begin_runner(struct runner *r, struct weiri_frame *frame, bool on_worker)
{
	r->frame = frame;
	r->list = WEIRI_NO_UNIT;
	r->roots = 0;
	r->ended = 0;
	r->credit = 0;
	r->on_worker = on_worker;
	r->call.allocator = &frame->step->session->allocator;
	r->call.token = frame->step->token;
	r->call.deadline_ns = frame->step->deadline_ns;
	r->call.error = &r->error;
}

/*
 * Runs the ready units and those that become ready. Returns true if the frame has ended; otherwise
 * the step may have been freed.
 */
static bool run_ready(struct runner *r)
{
	uint32_t unit;

	while (take_ready(r, &unit)) {
		if (!run_unit(r, unit, r->frame->plan->units[unit].first, true))
			continue;
		release_successors(r, unit);
		r->ended++;
	}
	/* S1: the units that this thread ended are counted only here, which keeps the step alive. */
	return r->ended != 0 && weiri_countdown_finish(&r->frame->remaining, r->ended);
}

/* Runs the unit from `at` on, and then what becomes ready. */
static void run_from(struct weiri_frame *frame, uint32_t unit, uint32_t at, bool may_submit)
{
	struct weiri_step *step = frame->step;
	struct runner r;

	begin_runner(&r, frame, true);
	/* Each thread has its own draws, so threads share no state. A single thread repeats them all. */
	r.draws = step->shuffle + ((uint64_t)unit << 32);
	if (!run_unit(&r, unit, at, may_submit))
		return;
	release_successors(&r, unit);
	r.ended = 1;
	if (run_ready(&r))
		end_and_tell(step);
}

static void run_task(weir_task *task)
{
	struct weiri_frame_unit *state = WEIRI_CONTAINER_OF(task, struct weiri_frame_unit, task);

	run_from(state->frame, (uint32_t)(state - state->frame->units), state->at, false);
}

void weiri_step_resume(struct weiri_frame *frame, uint32_t unit, uint32_t index)
{
	run_from(frame, unit, index + 1, true);
}

bool weiri_step_begin(struct weiri_step *step)
{
	struct weiri_frame *frame = &step->frame;
	struct runner r;
	bool ended;

	begin_runner(&r, frame, step->caller_helps || step->on_caller);
	r.roots = frame->plan->root_count;
	r.draws = step->shuffle;
	/* Roots are drawn as the others are. */
	while (WEIRI_UNLIKELY(step->shuffle != 0) && r.roots != 0) {
		frame->units[--r.roots].next = r.list;
		r.list = r.roots;
	}
	ended = frame->plan->unit_count == 0 || run_ready(&r);
	if (ended)
		end_step(step);
	return ended;
}
