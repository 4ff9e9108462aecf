/*
 * plan_values.c - which use of a value is the last one.
 *
 * If a slot has one use, that use ends the value. If all uses are in one unit, whose nodes run one
 * after the other, the last of them does. Otherwise a count of the frame tells which use comes
 * last. Values that are fetched stay. So do values that the frame does not own: those of constants,
 * and of feeds whose caller waits for the step.
 */
#include "session/plan_compiler.h"

#include "base/memory.h"

/* What is known of the uses of one slot. A node that takes the value twice uses it once. */
struct uses {
	uint32_t nodes;
	uint32_t newest; /* the node that was counted last, plus 1 */
	uint32_t last;   /* its use: an index in plan->uses */
	uint32_t unit;   /* of the nodes that were counted */
	bool scattered;  /* they are in more than one unit */
	bool fetched;
};

/* A use that may end its value; what it ends is decided when all are known. */
enum { CANDIDATE = 0 };

/* Counts the uses by plan node `number`. The last input that takes a value stands for all that do. */
static void count_uses(struct weiri_compiler *c, struct uses uses[], uint32_t number)
{
	struct weiri_plan_node *p = &c->plan->nodes[number];
	uint32_t unit = c->order.unit_of[number];

	for (uint32_t i = p->input_count; i-- > 0;) {
		struct weiri_use *use = &c->plan->uses[p->inputs + i];
		struct uses *of_slot = &uses[use->slot];

		c->plan->slots[use->slot].unused = false;
		use->ends = WEIRI_ENDS_NOTHING;
		if (c->plan->slots[use->slot].owner == WEIRI_OWNER_OUTSIDE || of_slot->fetched || of_slot->newest == number + 1)
			continue;
		of_slot->scattered |= of_slot->nodes != 0 && of_slot->unit != unit;
		of_slot->unit = unit;
		of_slot->newest = number + 1;
		of_slot->last = p->inputs + i;
		of_slot->nodes++;
		use->ends = CANDIDATE;
	}
}

/* Gives each slot whose uses are scattered a count, and stores its number in `last`. */
static void make_counts(struct weiri_plan *plan, struct uses uses[])
{
	for (uint32_t slot = 0; slot < plan->slot_count; slot++) {
		if (!uses[slot].scattered)
			continue;
		uses[slot].last = plan->count_count++;
		plan->counts[uses[slot].last] = uses[slot].nodes;
	}
}

static void decide(struct weiri_plan *plan, const struct uses uses[], struct weiri_plan_node *p)
{
	for (uint32_t i = 0; i < p->input_count; i++) {
		struct weiri_use *use = &plan->uses[p->inputs + i];
		const struct uses *of_slot = &uses[use->slot];

		if (use->ends == WEIRI_ENDS_NOTHING)
			continue;
		if (of_slot->scattered)
			use->ends = of_slot->last;
		else
			use->ends = of_slot->last == p->inputs + i ? WEIRI_ENDS_VALUE : WEIRI_ENDS_NOTHING;
		if (use->ends == WEIRI_ENDS_VALUE && plan->slots[use->slot].owner == WEIRI_OWNER_FRAME && i < 64)
			p->taken |= UINT64_C(1) << i;
		else if (use->ends != WEIRI_ENDS_NOTHING)
			p->flags |= WEIRI_NODE_ENDS_USES;
	}
}

static void find_fetches(struct weiri_plan *plan, struct uses uses[])
{
	for (size_t i = plan->fetch_count; i-- > 0;) {
		plan->fetched[i].last = !uses[plan->fetched[i].slot].fetched;
		plan->slots[plan->fetched[i].slot].unused = false;
		uses[plan->fetched[i].slot].fetched = true;
	}
}

static void find_spills(const struct weiri_plan *plan, struct weiri_plan_node *p)
{
	for (uint32_t i = 0; i < p->node->output_count; i++) {
		if (plan->slots[p->outputs + i].unused)
			p->flags |= WEIRI_NODE_SPILLS;
	}
}

enum weir_status weiri_find_last_uses(struct weiri_compiler *c)
{
	struct weiri_plan *plan = c->plan;
	size_t bytes;
	struct uses *uses;

	if (!weiri_multiply((size_t)plan->slot_count + 1, sizeof(*uses), &bytes))
		return weiri_compiler_no_memory(c);
	uses = weiri_allocate_zeroed(c->allocator, bytes, _Alignof(struct uses));
	if (uses == NULL)
		return weiri_compiler_no_memory(c);
	find_fetches(plan, uses);
	for (uint32_t number = 0; number < plan->node_count; number++)
		count_uses(c, uses, number);
	make_counts(plan, uses);
	for (uint32_t number = 0; number < plan->node_count; number++) {
		decide(plan, uses, &plan->nodes[number]);
		find_spills(plan, &plan->nodes[number]);
	}
	weiri_release(c->allocator, uses, bytes, _Alignof(struct uses));
	return WEIR_OK;
}
