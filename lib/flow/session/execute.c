/*
 * execute.c - runs the nodes of a step.
 *
 * A thread that brings the count of a unit to zero puts the unit into its own ready list. So a
 * chain of cheap nodes stays on one thread. A node that costs more than a hand-over goes to the pool
 * if the thread has other work. So does user code that may be left behind, if the thread is not a
 * worker. The rest of its unit goes with it. A straight plan (plan.h) needs none of this.
 */
#include "session/step.h"

#include "base/assert.h"
#include "base/compiler.h"
#include "base/error.h"
#include "session/session.h"
#include "session/trace.h"
#include "run/critical_section.h"
#include "run/pool_submission.h"

/* One thread that runs units of a frame. */
struct weiri_runner {
	struct weiri_frame *frame;
	uint32_t list;  /* ready units */
	uint32_t roots; /* units 0 .. roots - 1 are ready too */
	uint32_t ended; /* units that have ended and are not yet counted */
	int32_t credit; /* the weight of the nodes that may run before the next look */
	bool on_worker;
	uint64_t draws;
	struct weiri_trace_buffer *buffer; /* of a frame that is recorded: of this thread */
	uint64_t now_ns;                   /* of a frame that is recorded: when the last node ended; 0: not known */
	struct weiri_call call;
	weir_error error;
};

/*
 * A reference keeps the step, and so the session and its pool, alive until the submission is over.
 * Without it, the step could end on a worker earlier, and its caller could destroy the session. The
 * caller may also destroy a pool that it gave to this run alone. The step holds that pool until it ends;
 * as it may end before the submission does, that is counted, too.
 */
void weiri_step_submit(struct weiri_step *step, weir_task *task)
{
	weiri_step_retain(step);
	if (step->on_caller)
		weiri_handoff_put(&step->handoff, task);
	else if (step->pool_is_foreign)
		weiri_pool_submit_counted(step->pool, task);
	else
		(void)weir_pool_submit(step->pool, task);
	/* The caller may be the only thread that runs tasks. */
	if (step->on_caller || step->caller_helps)
		weiri_signal_raise(&step->signal);
	weiri_step_release(step, 1);
}

static void leave_pool(struct weiri_step *step)
{
	weir_pool *pool = step->pool;

	if (weiri_countdown_arrive(&step->pool_users))
		weiri_pool_let_go(pool);
}

bool weiri_step_help(struct weiri_step *step)
{
	size_t ran;

	if (!step->pool_is_foreign)
		return weir_pool_help(step->pool, 1) > 0;
	if (!weiri_countdown_try_join(&step->pool_users))
		return false;
	ran = weir_pool_help(step->pool, 1);
	leave_pool(step);
	return ran > 0;
}

static void end_step(struct weiri_step *step)
{
	weiri_step_disconnect(step);
	WEIR_ASSERT1(S1, !weiri_latch_is_set(&step->ended));
	if (WEIRI_UNLIKELY(step->frame.trace != NULL))
		weiri_trace_frame_ended(&step->frame, !weiri_latch_is_set(&step->incomplete));
	weiri_latch_set(&step->ended);
	/*
	 * Each of its tasks runs or has run. Its memory, and a handle on it, may stay longer than the pool. Last:
	 * the pool's owner may wait for the run once the pool is gone, and then finds that it has ended.
	 */
	if (step->pool_is_foreign)
		leave_pool(step);
}

/* Ends a step on a thread other than its caller's, or on its caller's while that waits. */
static void end_and_tell(struct weiri_step *step)
{
	end_step(step);
	if (step->is_started) {
		weiri_step_tell(step);
		return;
	}
	weiri_signal_raise(&step->signal);
	weiri_step_release(step, 1);
}

/* -- nodes ------------------------------------------------------------------------------------- */

/*
 * Runs user code, which may be in a critical section. The mark keeps that code from entering the
 * section again. Code that may take long is to hear of a stop.
 */
static enum weir_status run_user(const struct weiri_frame *frame, const struct weiri_plan_node *p,
                                 const struct weiri_call *call)
{
	const weir_critical_section *within = p->within != NULL ? p->within : frame->within;
	struct weiri_inside inside;
	enum weir_status status;

	if ((p->flags & WEIRI_OP_SHORT) == 0)
		weiri_step_connect(frame->step);
	if (within == NULL)
		return p->run(call);
	weiri_inside_begin(&inside, within);
	status = p->run(call);
	weiri_inside_end(&inside);
	return status;
}

/* Looks at the clock and the tokens, if it is time to, before work of this weight. */
static WEIRI_ALWAYS_INLINE void spend(struct weiri_step *step, int32_t *credit, uint32_t weight)
{
	*credit -= (int32_t)weight;
	if (WEIRI_UNLIKELY(*credit < 0)) {
		weiri_step_look(step);
		*credit = WEIRI_LOOK_WEIGHT - (int32_t)weight;
	}
}

bool weiri_site_must_stop(const struct weiri_site *site)
{
	struct weiri_step *step = site->frame->step;

	spend(step, site->credit, 1);
	if (!weiri_latch_is_set(&step->halted))
		return false;
	weiri_latch_set(&step->incomplete);
	return true;
}

/* Returns true if the node must be skipped. */
static WEIRI_ALWAYS_INLINE bool must_skip(struct weiri_runner *r, struct weiri_step *step,
                                          const struct weiri_plan_node *p)
{
	spend(step, &r->credit, p->weight);
	/* A section is left in any case. What was left out of it has made the step incomplete. */
	if (WEIRI_LIKELY(!weiri_latch_is_set(&step->halted)) || (p->flags & WEIRI_OP_LEAVES) != 0)
		return false;
	weiri_latch_set(&step->incomplete);
	return true;
}

static WEIRI_ALWAYS_INLINE void find_inputs(struct weiri_runner *r, const struct weiri_frame *frame,
                                            const struct weiri_plan_node *p)
{
	const struct weiri_use *uses = frame->plan->uses + p->inputs;
	weir_tensor **inputs = frame->inputs + p->inputs;

	for (uint32_t i = 0; i < p->input_count; i++) {
		inputs[i] = frame->values[uses[i].slot];
		WEIR_ASSERT1(plan L2, inputs[i] != NULL || (p->flags & WEIRI_OP_LEAVES) != 0);
	}
	r->error.message[0] = '\0';
	r->call.node = p->node;
	r->call.inputs = inputs;
	r->call.outputs = frame->values + p->outputs;
	r->call.holds = frame->holds + p->holds;
	r->call.wanted = p->wanted;
	r->call.taken = p->taken;
}

static WEIRI_ALWAYS_INLINE void run_node(struct weiri_runner *r, struct weiri_frame *frame,
                                         const struct weiri_plan_node *p)
{
	enum weir_status status =
		WEIRI_LIKELY((p->flags & WEIRI_OP_USER) == 0) ? p->run(&r->call) : run_user(frame, p, &r->call);

	if (WEIRI_UNLIKELY(status != WEIR_OK))
		weiri_step_node_failed(frame, (uint32_t)(p - frame->plan->nodes), status, r->error.message);
	weiri_frame_node_ended(frame, p);
}

/* A node that runs functions has ended on this thread. */
static void call_ended(struct weiri_frame *frame, const struct weiri_plan_node *p)
{
	if (WEIRI_UNLIKELY(frame->trace != NULL))
		weiri_trace_call_ended(frame, (uint32_t)(p - frame->plan->nodes));
	weiri_frame_node_ended(frame, p);
}

/* Begins a node that runs functions. Returns true if it has ended. */
static WEIRI_ALWAYS_INLINE bool begin_call(struct weiri_runner *r, uint32_t unit, const struct weiri_plan_node *p,
                                           bool is_straight)
{
	struct weiri_frame *frame = r->frame;
	struct weiri_site site = {.frame = frame,
	                          .unit = unit,
	                          .index = (uint32_t)(p - frame->plan->nodes),
	                          .credit = &r->credit,
	                          .on_worker = r->on_worker,
	                          .runner = r,
	                          .is_straight = is_straight};

	if (!p->node->op->inner->begin(&site, &r->call))
		return false;
	call_ended(frame, p);
	return true;
}

/* As run_node(), for a node that only computes. Returns false if the node must be recorded in full, and then has done nothing. */
static bool run_briefly_traced(struct weiri_runner *r, const struct weiri_plan_node *p, uint32_t index,
                               uint64_t start_ns)
{
	struct weiri_frame *frame = r->frame;
	struct weiri_trace_brief brief;
	enum weir_status status;

	if ((p->flags & WEIRI_NODE_COMPUTES) == 0 || !weiri_trace_start_brief(frame, index, r->buffer, start_ns, &brief))
		return false;
	status = p->run(&r->call);
	r->now_ns = weiri_trace_end_brief(frame, index, r->buffer, &brief, status);
	if (WEIRI_UNLIKELY(status != WEIR_OK))
		weiri_step_node_failed(frame, index, status, r->error.message);
	weiri_frame_node_ended(frame, p);
	return true;
}

/* As run_node(), weiri_wait_start() or begin_call(), and records it. Returns false if the node has not ended. */
static WEIRI_NOINLINE bool run_traced(struct weiri_runner *r, uint32_t unit, uint32_t index, bool is_straight)
{
	struct weiri_frame *frame = r->frame;
	const struct weiri_plan_node *p = &frame->plan->nodes[index];
	uint64_t start_ns = r->now_ns != 0 ? r->now_ns : weir_now_ns();
	struct weiri_trace_point point;
	enum weir_status status;
	bool ended;

	if (run_briefly_traced(r, p, index, start_ns))
		return true;
	point = weiri_trace_start(frame, index, r->buffer, start_ns);

	weiri_trace_inputs(frame, index, &point, false);
	r->call.trace = &point;
	if ((p->flags & (WEIRI_OP_WAITS | WEIRI_OP_CALLS)) != 0) {
		if ((p->flags & WEIRI_OP_CALLS) != 0)
			weiri_trace_passed(frame, index);
		ended = (p->flags & WEIRI_OP_CALLS) != 0 ? begin_call(r, unit, p, is_straight)
		                                         : weiri_wait_start(frame, unit, index, &r->call);
		r->call.trace = NULL;
		r->now_ns = 0;
		return ended;
	}
	status = (p->flags & WEIRI_OP_USER) == 0 ? p->run(&r->call) : run_user(frame, p, &r->call);
	r->call.trace = NULL;
	weiri_trace_outputs(frame, index, &point);
	weiri_trace_inputs(frame, index, &point, true);
	r->now_ns = weiri_trace_end(frame, index, r->buffer, &point, status);
	if (status != WEIR_OK)
		weiri_step_node_failed(frame, index, status, r->error.message);
	weiri_frame_node_ended(frame, p);
	return true;
}

/* Nodes that may go to the pool. */
enum { MAY_MOVE = WEIRI_OP_USER | WEIRI_OP_HEAVY | WEIRI_OP_APART };

/* Returns true if a hand-over of the node to another thread costs less than a run of it. */
static bool is_worth_a_worker(const struct weiri_frame *frame, const struct weiri_plan_node *p)
{
	uint64_t ns = 0;

	if (p->node->op->cost == NULL) {
		for (uint32_t i = 0; i < p->input_count; i++) {
			const weir_tensor *input = frame->values[frame->plan->uses[p->inputs + i].slot];

			ns += input != NULL ? weir_tensor_byte_count(input) / WEIRI_BYTES_PER_NS : 0;
		}
		return ns >= WEIRI_WORTH_A_WORKER_NS;
	}
	for (uint32_t i = 0; i < p->input_count; i++)
		frame->inputs[p->inputs + i] = frame->values[frame->plan->uses[p->inputs + i].slot];
	return p->node->op->cost(p->node, frame->inputs + p->inputs) >= WEIRI_WORTH_A_WORKER_NS;
}

/* A caller waits, until the step has ended. */
static bool has_no_limit(const struct weiri_step *step)
{
	return !step->is_started && !step->is_open && step->deadline_ns == WEIR_NO_DEADLINE && step->user_token == NULL;
}

/* A caller that does not wait, or has a limit, leaves user code to others: it must be able to go on. */
static bool is_held_up_by_user_code(const struct weiri_runner *r)
{
	return !r->on_worker && !has_no_limit(r->frame->step);
}

static bool belongs_to_pool(const struct weiri_runner *r, const struct weiri_plan_node *p)
{
	const struct weiri_frame *frame = r->frame;
	const struct weiri_step *step = frame->step;
	bool other_work = r->list != WEIRI_NO_UNIT || r->roots != 0;

	/* Without workers, a task would run only after all units of this list, not in drawn order. */
	if (step->on_caller || (step->shuffle != 0 && step->workers == 0))
		return false;
	if (p->flags & WEIRI_OP_SHORT)
		return false;
	if (p->flags & WEIRI_OP_USER)
		return (!r->on_worker || other_work) && (is_held_up_by_user_code(r) || is_worth_a_worker(frame, p));
	/* A caller that does not wait is not held up either. */
	if ((!other_work && (r->on_worker || (!step->is_started && !step->is_open))) || step->workers == 0)
		return false;
	if (p->flags & WEIRI_OP_APART)
		return true;
	return is_worth_a_worker(frame, p);
}

/* -- units ------------------------------------------------------------------------------------- */

static void run_task(weir_task *task);

/* After this call the step may have been freed. */
static void submit_unit(struct weiri_frame *frame, uint32_t unit, uint32_t at)
{
	struct weiri_frame_unit *state = &frame->units[unit];

	weiri_step_connect(frame->step);
	state->task.run = run_task;
	state->frame = frame;
	state->at = at;
	weiri_step_submit(frame->step, &state->task);
}

/* As run_unit(), for a frame that is recorded: no other frame pays for it at each node. */
static WEIRI_NOINLINE bool run_traced_unit(struct weiri_runner *r, uint32_t unit, uint32_t at, bool may_submit,
                                           bool is_straight)
{
	const struct weiri_plan_node *nodes = r->frame->plan->nodes;
	uint32_t end = r->frame->plan->units[unit].end;

	for (uint32_t i = at; i < end; i++) {
		const struct weiri_plan_node *p = &nodes[i];

		if ((p->flags & MAY_MOVE) != 0 && may_submit && belongs_to_pool(r, p)) {
			submit_unit(r->frame, unit, i);
			return false;
		}
		may_submit = true;
		if (must_skip(r, r->frame->step, p))
			continue;
		find_inputs(r, r->frame, p);
		if (!run_traced(r, unit, i, is_straight))
			return false;
	}
	return true;
}

/*
 * Runs the nodes of the unit from `at` on. Returns true if the unit has ended; false if a task or a
 * completion continues it, and then the step may have been freed. may_submit is false if the unit
 * was submitted for the sake of its first node.
 */
static WEIRI_ALWAYS_INLINE bool run_unit(struct weiri_runner *r, uint32_t unit, uint32_t at, bool may_submit)
{
	struct weiri_frame *frame = r->frame;
	const struct weiri_plan_node *nodes = frame->plan->nodes;
	uint32_t end = frame->plan->units[unit].end;

	if (WEIRI_UNLIKELY(frame->trace != NULL))
		return run_traced_unit(r, unit, at, may_submit, false);
	for (uint32_t i = at; i < end; i++) {
		const struct weiri_plan_node *p = &nodes[i];

		if (WEIRI_UNLIKELY((p->flags & MAY_MOVE) != 0) && may_submit && belongs_to_pool(r, p)) {
			submit_unit(frame, unit, i);
			return false;
		}
		may_submit = true;
		if (WEIRI_UNLIKELY(must_skip(r, frame->step, p)))
			continue;
		find_inputs(r, frame, p);
		if (WEIRI_LIKELY((p->flags & (WEIRI_OP_WAITS | WEIRI_OP_CALLS)) == 0))
			run_node(r, frame, p);
		else if ((p->flags & WEIRI_OP_WAITS) != 0 ? !weiri_wait_start(frame, unit, i, &r->call)
		                                          : !begin_call(r, unit, p, false))
			return false;
	}
	return true;
}

/* One of the arrivals for which the unit waits. Puts a unit that became ready in front of the list. */
static WEIRI_ALWAYS_INLINE void arrive(struct weiri_runner *r, uint32_t unit)
{
	struct weiri_frame *frame = r->frame;
	uint32_t count = frame->plan->units[unit].count;

	if (count != WEIRI_NO_COUNT && !weiri_countdown_finish(&frame->counts[count], 1))
		return;
	frame->units[unit].next = r->list;
	r->list = unit;
}

static WEIRI_ALWAYS_INLINE void release_successors(struct weiri_runner *r, uint32_t unit)
{
	const struct weiri_plan *plan = r->frame->plan;
	const uint32_t *successors = plan->successors + plan->units[unit].successors;

	for (uint32_t i = 0; i < plan->units[unit].successor_count; i++)
		arrive(r, successors[i]);
}

static void arrive_feed(struct weiri_runner *r, size_t feed)
{
	const struct weiri_plan *plan = r->frame->plan;

	for (uint32_t i = plan->late_starts[feed]; i < plan->late_starts[feed + 1]; i++)
		arrive(r, plan->late_units[i]);
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
static WEIRI_COLD void shuffle(struct weiri_runner *r)
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
static bool take_ready(struct weiri_runner *r, uint32_t *unit)
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

/* Returns what the random numbers of a frame depend on: the step, and the way to the frame. */
static WEIRI_COLD uint64_t draws_of(const struct weiri_frame *frame)
{
	uint64_t draws = frame->step->random_step;

	for (; frame->parent != NULL; frame = frame->parent) {
		draws += frame->parent->plan->nodes[frame->index].node->id;
		draws = draw(&draws) + frame->number;
		draws = draw(&draws);
	}
	return draws;
}

static void begin_runner(struct weiri_runner *r, struct weiri_frame *frame, bool on_worker)
{
	r->frame = frame;
	r->list = WEIRI_NO_UNIT;
	r->roots = 0;
	r->ended = 0;
	r->credit = 0;
	r->now_ns = 0;
	r->buffer = WEIRI_UNLIKELY(frame->trace != NULL) ? weiri_trace_writer(frame) : NULL;
	r->on_worker = on_worker;
	r->call.allocator = &frame->step->session->allocator;
	r->call.token = frame->step->token;
	r->call.deadline_ns = frame->step->deadline_ns;
	r->call.may_run_functions = has_no_limit(frame->step);
	r->call.draws = WEIRI_UNLIKELY(frame->plan->draws) ? draws_of(frame) : 0;
	r->call.error = &r->error;
	r->call.trace = NULL;
}

/*
 * Runs the ready units and those that become ready. Returns true if the frame has ended; otherwise
 * the step may have been freed.
 */
static bool run_ready(struct weiri_runner *r)
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

/*
 * Runs the unit from `at` on, and then what becomes ready. Returns true if the frame has ended;
 * otherwise the step may have been freed.
 */
static bool run_rest(struct weiri_frame *frame, uint32_t unit, uint32_t at, bool may_submit)
{
	struct weiri_runner r;

	begin_runner(&r, frame, true);
	/* Each thread has its own draws, so threads share no state. A single thread repeats them all. */
	r.draws = frame->step->shuffle + frame->number + ((uint64_t)unit << 32);
	if (!run_unit(&r, unit, at, may_submit))
		return false;
	release_successors(&r, unit);
	r.ended = 1;
	return run_ready(&r);
}

/*
 * A child has ended on this thread, which is not the one that began it. Returns true if the node
 * that waits for it has ended too.
 */
static bool child_ended(struct weiri_frame *child)
{
	struct weiri_frame *parent = child->parent;
	const struct weiri_plan_node *p = &parent->plan->nodes[child->index];
	int32_t credit = 0;
	struct weiri_site site = {
		.frame = parent, .unit = child->unit, .index = child->index, .credit = &credit, .on_worker = true};

	if (!p->node->op->inner->child_ended(&site, child))
		return false;
	call_ended(parent, p);
	return true;
}

/* Runs the unit from `at` on, what becomes ready, and then what waits for the frame. */
static void run_from(struct weiri_frame *frame, uint32_t unit, uint32_t at, bool may_submit)
{
	while (run_rest(frame, unit, at, may_submit)) {
		struct weiri_frame *parent = frame->parent;

		if (parent == NULL) {
			end_and_tell(frame->step);
			return;
		}
		unit = frame->unit;
		at = frame->index + 1;
		may_submit = true;
		if (!child_ended(frame))
			return;
		frame = parent;
	}
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

void weiri_step_arrive_feed(struct weiri_step *step, size_t feed)
{
	struct weiri_runner r;

	begin_runner(&r, &step->frame, false);
	r.draws = step->shuffle + ((uint64_t)feed << 32);
	arrive_feed(&r, feed);
	if (run_ready(&r))
		end_and_tell(step);
}

void weiri_step_call_ended(const struct weiri_site *site)
{
	call_ended(site->frame, &site->frame->plan->nodes[site->index]);
	run_from(site->frame, site->unit, site->index + 1, true);
}

/* -- straight plans ---------------------------------------------------------------------------- */

/* Returns true if no node of the frame leaves this thread, and the order of the units is that of the plan. */
static WEIRI_ALWAYS_INLINE bool is_straight(const struct weiri_frame *frame, bool on_worker)
{
	const struct weiri_plan *plan = frame->plan;
	const struct weiri_step *step = frame->step;

	if (!plan->stays || step->shuffle != 0)
		return false;
	return !plan->heavy || on_worker || step->workers == 0 || (!step->is_started && !step->is_open);
}

static WEIRI_NOINLINE void run_straight_traced(struct weiri_runner *r)
{
	const struct weiri_plan *plan = r->frame->plan;

	for (uint32_t i = 0; i < plan->unit_count; i++)
		(void)run_traced_unit(r, plan->straight[i], plan->units[plan->straight[i]].first, true, true);
}

static void run_straight(struct weiri_runner *r)
{
	struct weiri_frame *frame = r->frame;
	const struct weiri_plan *plan = frame->plan;
	struct weiri_step *step = frame->step;

	if (WEIRI_UNLIKELY(frame->trace != NULL)) {
		run_straight_traced(r);
		return;
	}
	for (uint32_t i = 0; i < plan->unit_count; i++) {
		uint32_t unit = plan->straight[i];
		const struct weiri_plan_node *end = plan->nodes + plan->units[unit].end;

		for (const struct weiri_plan_node *p = plan->nodes + plan->units[unit].first; p < end; p++) {
			if (WEIRI_UNLIKELY(must_skip(r, step, p)))
				continue;
			find_inputs(r, frame, p);
			if (WEIRI_LIKELY((p->flags & WEIRI_OP_CALLS) == 0))
				run_node(r, frame, p);
			else
				(void)begin_call(r, unit, p, true);
		}
	}
}

bool weiri_site_run(const struct weiri_site *site, struct weiri_frame *child)
{
	struct weiri_runner *r = site->runner;
	uint64_t draws;

	/* The runner of a node that is recorded is for this frame only. The child of a straight frame is straight. */
	if (WEIRI_UNLIKELY(site->frame->trace != NULL || r == NULL) ||
	    (!site->is_straight && !is_straight(child, site->on_worker)))
		return weiri_frame_run(child, site->credit, site->on_worker);
	WEIR_ASSERT1(plan L4, is_straight(child, site->on_worker));
	r->frame = child;
	if (WEIRI_UNLIKELY(child->plan->draws)) {
		draws = r->call.draws;
		r->call.draws = draws_of(child);
		run_straight(r);
		r->call.draws = draws;
	} else {
		run_straight(r);
	}
	r->frame = site->frame;
	return true;
}

/* -- frames ------------------------------------------------------------------------------------ */

bool weiri_frame_run(struct weiri_frame *frame, int32_t *credit, bool on_worker)
{
	const struct weiri_step *step = frame->step;
	struct weiri_runner r;
	bool ended;

	begin_runner(&r, frame, on_worker);
	r.credit = *credit;
	if (is_straight(frame, on_worker)) {
		run_straight(&r);
		*credit = r.credit;
		return true;
	}
	r.roots = frame->plan->root_count;
	r.draws = step->shuffle + frame->number;
	/* Roots are drawn as the others are. */
	while (WEIRI_UNLIKELY(step->shuffle != 0) && r.roots != 0) {
		frame->units[--r.roots].next = r.list;
		r.list = r.roots;
	}
	for (size_t i = 0; frame->plan->late && !step->is_open && i < frame->plan->feed_count; i++)
		arrive_feed(&r, i);
	ended = frame->plan->unit_count == 0 || run_ready(&r);
	*credit = r.credit;
	return ended;
}

/* -- steps ------------------------------------------------------------------------------------- */

bool weiri_step_begin(struct weiri_step *step)
{
	int32_t credit = 0;
	/* The call that opens a run only begins it, so kernels go to the pool. */
	bool ended = weiri_frame_run(&step->frame, &credit, (step->caller_helps && !step->is_open) || step->on_caller);

	if (ended)
		end_step(step);
	return ended;
}
