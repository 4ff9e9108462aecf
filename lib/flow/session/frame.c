/*
 * frame.c - the values of a frame: where they come from, and who releases them.
 */
#include "session/frame.h"

#include "base/assert.h"
#include "session/step.h"

void weiri_frame_lay_out(struct weiri_frame *frame, void *block, const struct weiri_step_layout *layout,
                         struct weiri_plan *plan)
{
	frame->plan = plan;
	frame->values = weiri_layout_at(block, layout->values);
	frame->inputs = weiri_layout_at(block, layout->inputs);
	frame->holds = weiri_layout_at(block, layout->holds);
	frame->counts = weiri_layout_at(block, layout->counts);
	frame->units = weiri_layout_at(block, layout->units);
	frame->waits = weiri_layout_at(block, layout->waits);
	frame->states = weiri_layout_at(block, layout->states);
	frame->given = weiri_layout_at(block, layout->given);
	frame->told = weiri_layout_at(block, layout->told);
	frame->taken = weiri_layout_at(block, layout->taken);
	if (plan->room != 0) {
		frame->room = weiri_layout_at(block, layout->room);
		frame->room->plan = NULL;
	}
	for (uint32_t i = 0; i < plan->constant_count; i++)
		frame->values[plan->feed_count + i] = plan->constants[i];
}

static WEIRI_UNSEEN void assert_empty(const struct weiri_frame *frame)
{
	for (uint32_t slot = 0; slot < frame->plan->slot_count; slot++)
		WEIR_ASSERT3(F2, frame->plan->slots[slot].owner == WEIRI_OWNER_OUTSIDE || frame->values[slot] == NULL);
	for (uint32_t hold = 0; hold < frame->plan->hold_count; hold++)
		WEIR_ASSERT3(F2, frame->holds[hold].tensor == NULL);
}

static void begin_late(struct weiri_frame *frame)
{
	for (uint32_t i = 0; i < frame->plan->feed_count; i++)
		weiri_latch_init(&frame->given[i]);
	for (uint32_t i = 0; i < frame->plan->node_count; i++)
		weiri_latch_init(&frame->told[i]);
	for (uint32_t i = 0; i < frame->plan->fetch_count; i++)
		weiri_latch_init(&frame->taken[i]);
}

static void reset(struct weiri_frame *frame)
{
	const struct weiri_plan *plan = frame->plan;

	WEIR_ASSERT_WALK(assert_empty(frame));
	frame->empty = false;
	weiri_countdown_init(&frame->remaining, plan->unit_count);
	for (uint32_t i = 0; i < plan->count_count; i++)
		weiri_countdown_init(&frame->counts[i], plan->counts[i]);
}

void weiri_frame_begin_with(struct weiri_frame *frame, weir_tensor *values[])
{
	const struct weiri_plan *plan = frame->plan;

	reset(frame);
	for (uint32_t i = 0; i < plan->feed_count; i++) {
		if (!plan->slots[i].unused)
			frame->values[i] = values[i];
		else
			weir_tensor_release(values[i]);
		values[i] = NULL;
	}
}

void weiri_frame_begin_passing(struct weiri_frame *frame, const struct weiri_call *call, uint32_t first)
{
	const struct weiri_plan *plan = frame->plan;

	reset(frame);
	for (uint32_t i = 0; i < plan->feed_count; i++) {
		if (!plan->slots[i].unused)
			frame->values[i] = weiri_call_pass(call, first + i);
	}
}

void weiri_frame_begin(struct weiri_frame *frame, const struct weiri_fed *fed)
{
	const struct weiri_plan *plan = frame->plan;

	reset(frame);
	if (plan->late)
		begin_late(frame);
	if (fed == NULL)
		return;
	/*
	 * In a plan without user code the caller's references suffice, since no node outlives the run.
	 */
	for (uint32_t i = 0; i < plan->feed_count; i++) {
		if (plan->slots[i].owner == WEIRI_OWNER_OUTSIDE)
			frame->values[i] = weiri_fed_value(fed, i);
		else if (!plan->slots[i].unused)
			frame->values[i] = weir_tensor_retain(weiri_fed_value(fed, i));
	}
}

/* F1: releases what the slot holds. */
static void release_value(struct weiri_frame *frame, uint32_t slot)
{
	uint32_t owner = frame->plan->slots[slot].owner;

	if (owner == WEIRI_OWNER_FRAME)
		weir_tensor_release(frame->values[slot]);
	else if (owner != WEIRI_OWNER_OUTSIDE)
		weir_read_release(&frame->holds[owner]);
	if (owner != WEIRI_OWNER_OUTSIDE)
		frame->values[slot] = NULL;
}

void weiri_frame_clear(struct weiri_frame *frame)
{
	if (frame->empty)
		return;
	for (uint32_t slot = 0; slot < frame->plan->slot_count; slot++)
		release_value(frame, slot);
	frame->empty = true;
}

void weiri_frame_take_results(struct weiri_frame *frame, weir_tensor *results[])
{
	const struct weiri_plan *plan = frame->plan;

	for (size_t i = 0; i < plan->fetch_count; i++) {
		const struct weiri_fetch *fetch = &plan->fetched[i];
		bool moves = fetch->last && plan->slots[fetch->slot].owner == WEIRI_OWNER_FRAME;

		results[i] = moves ? frame->values[fetch->slot] : weir_tensor_retain(frame->values[fetch->slot]);
		if (moves)
			frame->values[fetch->slot] = NULL;
		else if (fetch->last)
			release_value(frame, fetch->slot);
	}
	frame->empty = true;
	WEIR_ASSERT_WALK(assert_empty(frame));
}

static void end_use(struct weiri_frame *frame, const struct weiri_use *use)
{
	if (use->ends == WEIRI_ENDS_NOTHING)
		return;
	if (use->ends == WEIRI_ENDS_VALUE || weiri_countdown_finish(&frame->counts[use->ends], 1))
		release_value(frame, use->slot);
}

/* S4: a node that failed or was skipped has said so. */
static WEIRI_COLD void tell_end(struct weiri_frame *frame, const struct weiri_plan_node *p)
{
	if (weiri_latch_is_set(&frame->step->incomplete))
		return;
	weiri_latch_set(&frame->told[p - frame->plan->nodes]);
	weiri_signal_raise(&frame->step->signal);
}

void weiri_frame_end_rest(struct weiri_frame *frame, const struct weiri_plan_node *p)
{
	const struct weiri_plan *plan = frame->plan;

	if ((p->flags & WEIRI_NODE_ENDS_USES) != 0) {
		for (uint32_t i = 0; i < p->input_count; i++) {
			if (i >= 64 || (p->taken >> i & 1) == 0)
				end_use(frame, &plan->uses[p->inputs + i]);
		}
	}
	if ((p->flags & WEIRI_NODE_SPILLS) != 0) {
		for (uint32_t i = 0; i < p->node->output_count; i++) {
			if (plan->slots[p->outputs + i].unused)
				release_value(frame, p->outputs + i);
		}
	}
	if (WEIRI_UNLIKELY((p->flags & WEIRI_NODE_TELLS) != 0))
		tell_end(frame, p);
}
