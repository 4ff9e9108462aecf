/*
 * wait.c - asynchronous operations of nodes, which hold no thread while they wait.
 *
 * A node that need not wait makes no operation: it first attempts what it does, as a direct call of
 * the queue would. Only if that does nothing, for whatever reason, it starts an operation, which tells
 * the reason.
 *
 * The start of an operation and its completion are two parties. The second to arrive continues the
 * step. Usually the start arrives second, because the queue had room or items, and the step goes on
 * on the same thread. Otherwise the completion arrives second. It continues the step through the
 * pool, because it must not do the step's work on the thread that made the operation possible.
 *
 * A hook on the step's token cancels the operation. The hook may run at the same time as the
 * completion. So both use the operation's handle, and the last user releases it. The hook also uses
 * the memory of the wait: it holds a reference to the step, and to the frame if that is a child, which
 * may end while the hook runs (H4 of child.c). If there is no
 * memory for the hook, the starter cancels the operation, whose status then tells of the lack of
 * memory, unless the operation ended earlier for another reason.
 */
#include "session/child.h"

#include <string.h>

#include "base/compiler.h"
#include "run/critical_section.h"
#include "session/trace.h"
#include "sync/pending.h"

/* A hook holds the step, and the memory of a child frame. */
static void hold(struct weiri_frame *frame)
{
	weiri_step_retain(frame->step);
	if (frame->parent != NULL)
		weiri_countdown_join(&frame->users);
}

static void let_go(struct weiri_frame *frame)
{
	struct weiri_step *step = frame->step;

	if (frame->parent != NULL)
		weiri_child_leave(frame);
	weiri_step_release(step, 1);
}

static void release_operation(struct weiri_wait *wait, uint32_t users)
{
	if (weiri_countdown_arrive_many(&wait->users, users))
		weir_pending_release(wait->operation);
}

static void on_cancel(void *context)
{
	struct weiri_wait *wait = context;
	struct weiri_frame *frame = wait->frame;
	weir_error cause;

	(void)weir_cancel_cause(frame->step->token, &cause);
	weir_pending_cancel(wait->operation, &cause);
	release_operation(wait, 1);
	let_go(frame);
}

/* Lets the token cancel the operation. The starter has not arrived, so the wait is not over. */
static void watch(struct weiri_wait *wait)
{
	wait->since_ns = weir_now_ns();
	if (wait->operation == NULL)
		return;
	hold(wait->frame);
	if (weir_cancel_on(wait->frame->step->token, on_cancel, wait, &wait->hook) == WEIR_OK)
		return;
	let_go(wait->frame);
	weiri_pending_cancel(wait->operation, WEIRI_PENDING_FOR_MEMORY);
}

static WEIRI_COLD void record_end(const struct weiri_frame *frame, uint32_t index,
                                  const struct weiri_trace_point *point, enum weir_status status)
{
	weiri_trace_outputs(frame, index, point);
	weiri_trace_inputs(frame, index, point, true);
	(void)weiri_trace_end(frame, index, weiri_trace_writer(frame), point, status);
}

/* Ends the wait. Both parties have arrived. */
static void finish(struct weiri_wait *wait)
{
	bool hook_never_runs = wait->hook == NULL || weir_cancel_off(wait->hook);
	bool watched = wait->hook != NULL;

	/* H4: the hook was told of it by another thread; this one's next look must see it, too. */
	if (!hook_never_runs)
		weiri_latch_set(&wait->frame->step->halted);
	if (wait->status != WEIR_OK)
		weiri_step_node_failed(wait->frame, wait->index, wait->status, wait->error.message);
	if (WEIRI_UNLIKELY(wait->point.set != NULL))
		record_end(wait->frame, wait->index, &wait->point, wait->status);
	weiri_frame_node_ended(wait->frame, &wait->frame->plan->nodes[wait->index]);
	release_operation(wait, hook_never_runs ? 2 : 1);
	if (watched && hook_never_runs)
		let_go(wait->frame); /* S3 */
}

static void finish_and_resume(weir_task *task)
{
	struct weiri_wait *wait = WEIRI_CONTAINER_OF(task, struct weiri_wait, task);

	finish(wait);
	weiri_step_resume(wait->frame, wait->unit, wait->index);
}

static void on_done(void *context, enum weir_status status, const weir_error *error, weir_tensor *const tuple[],
                    size_t count)
{
	struct weiri_wait *wait = context;
	struct weiri_frame *frame = wait->frame;
	weir_tensor **outputs = frame->values + frame->plan->nodes[wait->index].outputs;

	wait->status = status;
	if (status != WEIR_OK && error != NULL)
		wait->error = *error;
	for (size_t i = 0; i < count; i++)
		outputs[i] = tuple[i];
	weiri_latch_set(&wait->done);
	if (weiri_countdown_arrive(&wait->parties))
		weiri_step_submit(frame->step, &wait->task);
}

/* The mark keeps user code in a critical section from entering it again: completions that the op runs. */
static enum weir_status start(const struct weiri_plan_node *p, const struct weiri_call *call, struct weiri_wait *wait)
{
	const weir_critical_section *within = p->within != NULL ? p->within : wait->frame->within;
	struct weiri_inside inside;
	enum weir_status status;

	if (within != NULL)
		weiri_inside_begin(&inside, within);
	status = call->node->op->start(call, on_done, wait, &wait->operation);
	if (within != NULL)
		weiri_inside_end(&inside);
	return status;
}

/* Returns true if the node has succeeded without an operation. */
static bool attempt(struct weiri_frame *frame, const struct weiri_plan_node *p, const struct weiri_call *call)
{
	const weir_critical_section *within = p->within != NULL ? p->within : frame->within;
	struct weiri_inside inside;
	bool ended;

	if (within != NULL)
		weiri_inside_begin(&inside, within);
	ended = p->node->op->attempt(call);
	if (within != NULL)
		weiri_inside_end(&inside);
	if (!ended)
		return false;
	if (WEIRI_UNLIKELY(call->trace != NULL))
		record_end(frame, (uint32_t)(p - frame->plan->nodes), call->trace, WEIR_OK);
	weiri_frame_node_ended(frame, p);
	return true;
}

bool weiri_wait_start(struct weiri_frame *frame, uint32_t unit, uint32_t index, const struct weiri_call *call)
{
	const struct weiri_plan_node *p = &frame->plan->nodes[index];
	struct weiri_wait *wait = &frame->waits[p->wait];
	enum weir_status status;

	if (p->node->op->attempt != NULL && attempt(frame, p, call))
		return true;
	weiri_step_connect(frame->step);
	wait->task.run = finish_and_resume;
	wait->frame = frame;
	wait->unit = unit;
	wait->index = index;
	wait->operation = NULL;
	wait->hook = NULL;
	wait->since_ns = 0;
	wait->point = call->trace != NULL ? *call->trace : (struct weiri_trace_point){NULL, 0};
	wait->error.message[0] = '\0';
	weiri_countdown_init(&wait->parties, 2);
	weiri_countdown_init(&wait->users, 2);
	weiri_latch_init(&wait->done);
	status = start(p, call, wait);
	if (status != WEIR_OK) {
		wait->status = status;
		if (WEIRI_UNLIKELY(wait->point.set != NULL))
			record_end(frame, index, &wait->point, status);
		weiri_step_node_failed(frame, index, status, call->error->message);
		weiri_frame_node_ended(frame, p);
		return true;
	}
	if (!weiri_latch_is_set(&wait->done))
		watch(wait);
	if (!weiri_countdown_arrive(&wait->parties))
		return false;
	finish(wait);
	return true;
}
