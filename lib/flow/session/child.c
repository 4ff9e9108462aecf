/*
 * child.c - child frames: where their memory comes from, and where their results go.
 *
 * A child runs on the thread of its node as far as that goes. If it must wait, or a part of it goes
 * to the pool, the node has not ended, and the thread goes on with other units of the parent. The
 * thread that ends the last unit of a frame, and only this one, learns that the frame has ended (S1
 * of step.h). It takes the results to the parent, and continues the parent behind the node.
 *
 * A parent does not end before its children: the unit of the node has not ended. So a child may
 * access the parent, the step and the body without a reference of its own.
 *
 * Invariants
 *   H1  each child ends once, and its node learns of it on the thread that ended it, by
 *       weiri_frame_run(), weiri_site_run() or child_ended()
 *   H2  the thread that began a child does not touch it after one of the first two returned false
 *   H3  a stopped step lets each child end: its nodes are skipped, its waits cancelled
 *   H4  the memory of a child stays while a hook of one of its waits may run, although the child has
 *       ended. No activation begins meanwhile: a hook runs only in a step that is halted, and loops
 *       and maps look at that before they begin another one
 *   H5  one child at a time is in the room of its parent: a thread that runs the parent straight
 *       begins and ends it in one call
 */
#include "session/child.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/memory.h"
#include "graph/layout.h"

/* Makes an empty frame of the memory. */
static void lay_out(struct weiri_frame *child, struct weiri_plan *plan)
{
	(void)memset(child, 0, plan->child.counts);
	weiri_frame_lay_out(child, child, &plan->child, plan);
	child->empty = true;
}

/* Returns an empty frame; or NULL. */
static struct weiri_frame *find_memory(struct weiri_plan *plan)
{
	struct weiri_frame *child = weiri_spare_take(&plan->spare_child);

	if (child != NULL)
		return child;
	child = weiri_allocate(&plan->allocator, plan->child.size, WEIRI_FRAME_ALIGNMENT);
	if (child != NULL)
		lay_out(child, plan);
	return child;
}

/* H5: returns the room of the parent, as an empty frame, whose number, owner and trace are 0. */
static WEIRI_ALWAYS_INLINE struct weiri_frame *find_room(struct weiri_frame *parent, struct weiri_plan *plan)
{
	struct weiri_frame *child = parent->room;

	WEIR_ASSERT1(H5, plan->child.size <= parent->plan->room && (child->plan == NULL || child->empty));
	if (WEIRI_UNLIKELY(child->plan != plan)) {
		lay_out(child, plan);
		child->in_room = true;
	}
	return child;
}

static WEIRI_ALWAYS_INLINE void place(struct weiri_frame *child, const struct weiri_site *site)
{
	struct weiri_frame *parent = site->frame;
	const weir_critical_section *within = parent->plan->nodes[site->index].within;

	child->step = parent->step;
	child->parent = parent;
	child->unit = site->unit;
	child->index = site->index;
	child->within = within != NULL ? within : parent->within;
}

struct weiri_frame *weiri_child_create(const struct weiri_site *site, const struct weiri_body *body)
{
	struct weiri_frame *child = find_memory(body->plan);

	if (child == NULL)
		return NULL;
	place(child, site);
	child->number = 0;
	child->owner = NULL;
	child->trace = NULL;
	weiri_countdown_init(&child->users, 1);
	return child;
}

struct weiri_frame *weiri_child_create_only(const struct weiri_site *site, const struct weiri_body *body)
{
	struct weiri_frame *child;

	if (!site->is_straight || WEIRI_UNLIKELY(body->plan->child.size > site->frame->plan->room))
		return weiri_child_create(site, body);
	child = find_room(site->frame, body->plan);
	place(child, site);
	return child;
}

void weiri_child_destroy(struct weiri_frame *child)
{
	if (child == NULL)
		return;
	weiri_frame_clear(child);
	if (WEIRI_UNLIKELY(child->trace != NULL))
		weiri_trace_frame_free(child);
	if (!child->in_room)
		weiri_child_leave(child);
}

void weiri_child_leave(struct weiri_frame *child)
{
	struct weiri_plan *plan = child->plan;

	if (!weiri_countdown_finish(&child->users, 1))
		return;
	if (!weiri_spare_put(&plan->spare_child, child))
		weiri_release(&plan->allocator, child, plan->child.size, WEIRI_FRAME_ALIGNMENT);
}

bool weiri_child_take_results(struct weiri_frame *child, weir_tensor *results[])
{
	/*
	 * A node that failed in this frame has marked the step before its unit ended. If another part of
	 * the step failed, nobody needs the results.
	 */
	bool complete = !weiri_latch_is_set(&child->step->incomplete);

	if (WEIRI_UNLIKELY(child->trace != NULL))
		weiri_trace_child_ended(child, complete);
	if (!complete) {
		weiri_frame_clear(child);
		return false;
	}
	weiri_frame_take_results(child, results);
	return true;
}

void *weiri_site_state(const struct weiri_site *site)
{
	return (char *)site->frame->states + site->frame->plan->nodes[site->index].state;
}

bool weiri_site_failed(const struct weiri_site *site, enum weir_status status, const char *format, ...)
{
	char message[WEIR_ERROR_MESSAGE_SIZE];
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	weiri_step_node_failed(site->frame, site->index, status, message);
	return true;
}

bool weiri_site_accepts(const struct weiri_site *site, const struct weiri_body *body, weir_tensor *const values[])
{
	for (size_t i = 0; i < body->plan->feed_count; i++) {
		const struct weiri_spec *expected = weiri_body_tensor(body, i);
		struct weiri_spec got;
		char text_expected[WEIRI_SPEC_TEXT_SIZE];
		char text_got[WEIRI_SPEC_TEXT_SIZE];

		if (weiri_spec_fits(expected, values[i]))
			continue;
		got = weiri_spec_of_tensor(values[i]);
		(void)weiri_site_failed(site, WEIR_INVALID_ARGUMENT, "parameter \"%s\" of \"%s\" must be %s, got %s",
		                        weiri_body_parameter(body, i)->name, body->function->name,
		                        weiri_spec_text(expected, text_expected), weiri_spec_text(&got, text_got));
		return false;
	}
	return true;
}
