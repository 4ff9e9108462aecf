/*
 * step.c - creating and ending a step, and the two ways in which it fails.
 */
#include "session/step.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/memory.h"
#include "graph/layout.h"
#include "run/pool_submission.h"
#include "session/session.h"
#include "session/trace.h"
#include "sync/cancel.h"

/* Gives back what a step has of the session and the plan. */
static void leave(weir_session *session, struct weiri_plan *plan)
{
	if (plan->callable != NULL) {
		weiri_callable_leave(plan->callable);
		return;
	}
	if (plan->function != NULL)
		weiri_function_leave(plan->function);
	else if (!plan->kept)
		weiri_plan_free(plan, &session->allocator);
	weiri_gate_leave(&session->gate);
}

/* Frees the memory of a step, whose frame is empty. Accepts NULL. */
static void free_memory(struct weiri_plan *plan, struct weiri_step *step)
{
	if (step == NULL)
		return;
	weir_cancel_release(step->token);
	weiri_release(&plan->allocator, step, plan->step.size, WEIRI_FRAME_ALIGNMENT);
}

void weiri_step_free_spare(struct weiri_plan *plan)
{
	free_memory(plan, weiri_spare_take(&plan->spare));
}

/* The memory of a step is the spare one of its plan, if the plan has none. */
static void free_step(struct weiri_step *step)
{
	weir_session *session = step->session;
	struct weiri_plan *plan = step->plan;

	weiri_frame_clear(&step->frame);
	if (step->frame.trace != NULL)
		weiri_trace_frame_free(&step->frame);
	weir_cancel_release(step->user_token);
	/* A kernel may still have the token, and it may have fired. */
	if (step->token != NULL && !weiri_cancel_is_unused(step->token)) {
		weir_cancel_release(step->token);
		step->token = NULL;
	}
	if (!weiri_spare_put(&plan->spare, step))
		free_memory(plan, step);
	leave(session, plan);
}

void weiri_step_release(struct weiri_step *step, uint32_t count)
{
	if (weiri_countdown_finish(&step->references, count))
		free_step(step);
}

/* --- Creation --- */

enum weir_status weiri_step_check_feed(const struct weiri_plan *plan, size_t i, const weir_tensor *value,
                                       weir_error *error)
{
	weir_output output = plan->feeds[i];
	const struct weiri_spec *expected = weiri_output_spec(output);
	struct weiri_spec got;
	char text_expected[WEIRI_SPEC_TEXT_SIZE];
	char text_got[WEIRI_SPEC_TEXT_SIZE];

	if (value == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "the feed of \"%s\" is NULL", output.node->name);
	if (weiri_spec_fits(expected, value))
		return WEIR_OK;
	got = weiri_spec_of_tensor(value);
	return weiri_fail(error, WEIR_INVALID_ARGUMENT, "the feed of \"%s\" must be %s, got %s", output.node->name,
	                  weiri_spec_text(expected, text_expected), weiri_spec_text(&got, text_got));
}

/* Returns memory for a step, whose frame is empty; or NULL. */
static struct weiri_step *find_memory(struct weiri_plan *plan)
{
	struct weiri_step *step = weiri_spare_take(&plan->spare);

	if (step != NULL)
		return step;
	step = weiri_allocate(&plan->allocator, plan->step.size, WEIRI_FRAME_ALIGNMENT);
	if (step == NULL)
		return NULL;
	/* Counts, units and waits come last. Each is initialized before it is used. */
	(void)memset(step, 0, plan->step.counts);
	step->run.results = weiri_layout_at(step, plan->step.results);
	weiri_frame_lay_out(&step->frame, step, &plan->step, plan);
	step->frame.step = step;
	return step;
}

static struct weiri_step *make_step(weir_session *session, struct weiri_plan *plan)
{
	struct weiri_step *step = find_memory(plan);

	if (step == NULL)
		return NULL;
	step->session = session;
	step->plan = plan;
	weiri_countdown_init(&step->references, 2);
	weiri_signal_init(&step->signal);
	weiri_latch_init(&step->halted);
	weiri_latch_init(&step->incomplete);
	weiri_latch_init(&step->ended);
	weiri_latch_init(&step->failed);
	weiri_latch_init(&step->stopped);
	weiri_latch_init(&step->blamed);
	weiri_latch_init(&step->connected);
	step->is_started = false;
	step->user_token = NULL;
	step->session_hook = NULL;
	step->user_hook = NULL;
	step->culprit_waited_ns = 0;
	return step;
}

/*
 * Stores what a run says that `token` stopped. Returns WEIR_OK if the token has not fired. The session's token has
 * a cause that names the session already.
 */
static enum weir_status cause_of(const struct weiri_step *step, const weir_cancel *token, weir_error *cause)
{
	weir_error given;

	if (token == NULL || token != step->user_token)
		return weir_cancel_cause(token, cause);
	if (weir_cancel_cause(token, &given) == WEIR_OK)
		return WEIR_OK;
	return weiri_fail(cause, given.code, "the run was cancelled by its token; %s: %.120s", weir_status_name(given.code),
	                  given.message);
}

/* Stops the step with the cause of `token`, if it has fired. The caller keeps the step alive. */
static void stop_with_cause_of(struct weiri_step *step, const weir_cancel *token)
{
	weir_error cause;

	WEIR_ASSERT1(S3, weiri_countdown_left(&step->references) != 0);
	if (cause_of(step, token, &cause) != WEIR_OK)
		weiri_step_stop(step, &cause);
}

static void on_session_closed(void *context)
{
	struct weiri_step *step = context;

	stop_with_cause_of(step, step->session->token);
	weiri_step_release(step, 1);
}

static void on_user_cancel(void *context)
{
	struct weiri_step *step = context;

	stop_with_cause_of(step, step->user_token);
	weiri_step_release(step, 1);
}

static enum weir_status watch(struct weiri_step *step, weir_cancel *token, weir_cancel_fn *fn, weir_cancel_hook **hook)
{
	enum weir_status status;

	if (token == NULL)
		return WEIR_OK;
	weiri_step_retain(step);
	status = weir_cancel_on(token, fn, step, hook);
	if (status != WEIR_OK)
		weiri_step_release(step, 1);
	return status;
}

void weiri_step_connect(struct weiri_step *step)
{
	enum weir_status status;
	weir_error cause;

	/* A plan without a token neither waits nor has user code: its threads look at the tokens between nodes. */
	if (step->token == NULL || weiri_latch_is_set(&step->connected) || !weiri_latch_claim(&step->connected))
		return;
	WEIR_ASSERT1(S5, !weiri_latch_is_set(&step->ended));
	status = watch(step, step->session->token, on_session_closed, &step->session_hook);
	if (status == WEIR_OK)
		status = watch(step, step->user_token, on_user_cancel, &step->user_hook);
	if (status != WEIR_OK) {
		(void)weiri_fail(&cause, status, "no memory for a step");
		weiri_step_stop(step, &cause);
	}
	weiri_latch_set(&step->connected);
}

/*
 * Only a step whose ops may wait or read the token needs one. It stays with the spare memory of the plan,
 * which may outlast the session: the plan of a function does.
 */
static bool find_token(struct weiri_step *step)
{
	bool needs_none = !step->plan->may_wait && !step->plan->has_user_code;

	return needs_none || step->token != NULL ||
	       weir_cancel_create(&step->plan->allocator, &step->token, NULL) == WEIR_OK;
}

/* Returns the seed of the draws of a new step, never 0; or 0 if ready nodes are not shuffled. */
static uint64_t shuffle_of(weir_session *session)
{
	if (session->shuffle_seed == 0)
		return 0;
	return (session->shuffle_seed * UINT64_C(0x9E3779B97F4A7C15) + weiri_serial_take(&session->steps) * 2) | 1;
}

/* Removes a hook, before the step ends or is discarded (S3). */
static void disconnect(struct weiri_step *step, weir_cancel_hook *hook)
{
	if (hook != NULL && weir_cancel_off(hook))
		weiri_step_release(step, 1);
}

/* Decides who runs the nodes. */
static void choose_threads(struct weiri_step *step, const struct weiri_step_request *request)
{
	weir_session *session = step->session;

	step->on_caller = request->flags == WEIR_RUN_ON_CALLER;
	if (step->on_caller)
		weiri_handoff_init(&step->handoff);
	step->pool = request->pool != NULL ? request->pool : session->pool;
	step->pool_is_foreign = step->pool != session->pool;
	step->workers = step->on_caller               ? 0
	                : step->pool == session->pool ? session->workers
	                                              : weir_pool_thread_count(step->pool);
	/* Any call that waits for an open run may have to help. */
	step->caller_helps =
		request->open || (request->awaited && ((step->workers == 0 && !step->on_caller) || weiri_inside_kernel()));
	step->may_be_left = request->open || (step->plan->has_user_code && step->workers != 0);
	step->is_open = request->open;
}

enum weir_status weiri_step_create(const struct weiri_step_request *request, struct weiri_step **out, weir_error *error)
{
	weir_session *session = request->session;
	struct weiri_plan *plan = request->plan;
	enum weir_status status = WEIR_OK;
	struct weiri_step *step;

	for (size_t i = 0; status == WEIR_OK && !request->open && i < plan->feed_count; i++)
		status = weiri_step_check_feed(plan, i, weiri_fed_value(&request->fed, i), error);
	step = status == WEIR_OK ? make_step(session, plan) : NULL;
	if (step == NULL) {
		leave(session, plan);
		return status != WEIR_OK ? status : weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "no memory for a step");
	}
	weiri_frame_begin(&step->frame, request->open ? NULL : &request->fed);
	if (WEIRI_UNLIKELY(request->trace != NULL || session->trace != NULL))
		weiri_trace_frame(request->trace != NULL ? request->trace : session->trace, &step->frame, plan,
		                  WEIRI_TRACE_STEP, 0, 0);
	step->deadline_ns = request->deadline_ns;
	step->started_ns = step->deadline_ns != WEIR_NO_DEADLINE ? weir_now_ns() : 0;
	choose_threads(step, request);
	step->shuffle = shuffle_of(session);
	step->random_step = request->random_step;
	if (WEIRI_UNLIKELY(plan->draws) && step->random_step == 0)
		step->random_step = weiri_serial_take(&session->draws) + 1;
	if (request->cancel != NULL)
		step->user_token = weir_cancel_retain(request->cancel);
	if (!find_token(step)) {
		weiri_step_release(step, 2);
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "no memory for a step");
	}
	/* Until it ends: it may go on after its call has returned. */
	if (step->pool_is_foreign) {
		weiri_countdown_init(&step->pool_users, 1);
		weiri_pool_hold(step->pool);
	}
	/* Its caller may wait while no thread runs a part of it. */
	if (step->is_open)
		weiri_step_connect(step);
	*out = step;
	return WEIR_OK;
}

void weiri_step_disconnect(struct weiri_step *step)
{
	disconnect(step, step->session_hook);
	disconnect(step, step->user_hook);
}

/* --- Failing --- */

void weiri_step_stop(struct weiri_step *step, const weir_error *cause)
{
	/*
	 * The rest is done by each thread that stops the step: the one that came first may stall in it,
	 * and a deadline must still end the waits.
	 */
	if (weiri_latch_claim(&step->stopped)) {
		step->stop = *cause;
		weiri_latch_set(&step->stopped);
	}
	weiri_latch_set(&step->halted);
	if (step->token != NULL)
		(void)weir_cancel_fire(step->token, cause);
	if (step->may_be_left)
		weiri_signal_raise(&step->signal);
}

void weiri_step_stop_for_deadline(struct weiri_step *step)
{
	weir_error cause;

	if (step->deadline_ns <= step->started_ns)
		(void)weiri_fail(&cause, WEIR_DEADLINE_EXCEEDED,
		                 "the deadline had passed when the run began (a deadline is a moment: weir_deadline_in())");
	else
		(void)weiri_fail(&cause, WEIR_DEADLINE_EXCEEDED, "the step did not end within %.3f s",
		                 (double)(weir_now_ns() - step->started_ns) / 1e9);
	weiri_step_stop(step, &cause);
}

/* Puts `name` and a slash in front of what begins at path[at], if there is room. Returns where it begins then. */
static size_t prepend(char path[WEIRI_PATH_SIZE], size_t at, const char *name)
{
	size_t size = strlen(name) + 1;

	if (size > at)
		return at;
	path[at - 1] = '/';
	(void)memcpy(path + at - size, name, size - 1);
	return at - size;
}

/* Writes the names of the nodes that called the frame, each with a slash: "train/loop/". */
static void write_path(const struct weiri_frame *frame, char path[WEIRI_PATH_SIZE])
{
	size_t at = WEIRI_PATH_SIZE - 1;

	path[at] = '\0';
	for (; frame->parent != NULL; frame = frame->parent)
		at = prepend(path, at, frame->parent->plan->nodes[frame->index].node->name);
	if (frame->plan->function != NULL)
		at = prepend(path, at, frame->plan->function->name);
	(void)memmove(path, path + at, WEIRI_PATH_SIZE - at);
}

static void blame(struct weiri_frame *frame, uint32_t index)
{
	const struct weiri_plan_node *p = &frame->plan->nodes[index];
	struct weiri_step *step = frame->step;

	if (!weiri_latch_claim(&step->blamed))
		return;
	step->culprit = p->node;
	write_path(frame, step->culprit_path);
	if ((p->flags & WEIRI_OP_WAITS) != 0 && frame->waits[p->wait].since_ns != 0)
		step->culprit_waited_ns = weir_now_ns() - frame->waits[p->wait].since_ns;
	weiri_latch_set(&step->blamed);
}

void weiri_step_node_failed(struct weiri_frame *frame, uint32_t index, enum weir_status status, const char *message)
{
	const weir_node *node = frame->plan->nodes[index].node;
	struct weiri_step *step = frame->step;
	char path[WEIRI_PATH_SIZE];

	weiri_latch_set(&step->halted); /* S4 */
	weiri_latch_set(&step->incomplete);
	if (weiri_latch_is_set(&step->stopped)) {
		blame(frame, index);
		/* The thread that stopped the step may have stalled before it told the waits. */
		if (step->token != NULL)
			(void)weir_cancel_fire(step->token, &step->stop);
		if (step->may_be_left)
			weiri_signal_raise(&step->signal);
		return;
	}
	if (!weiri_latch_claim(&step->failed))
		return;
	write_path(frame, path);
	(void)weiri_fail(&step->failure, status, "%s%s \"%s\": %s", path, node->kind, node->name,
	                 message[0] != '\0' ? message : weir_status_name(status));
	weiri_latch_set(&step->failed);
	if (step->token != NULL)
		(void)weir_cancel_fire(step->token, &step->failure);
	if (step->is_open)
		weiri_signal_raise(&step->signal);
}

/* Stops the step for what was seen, unless it has been stopped before. */
static WEIRI_COLD void stop_if_due(struct weiri_step *step)
{
	if (weiri_latch_is_set(&step->halted))
		return;
	if (weir_cancel_fired(step->session->token))
		stop_with_cause_of(step, step->session->token);
	if (weir_cancel_fired(step->user_token))
		stop_with_cause_of(step, step->user_token);
	if (step->deadline_ns != WEIR_NO_DEADLINE && weir_now_ns() >= step->deadline_ns)
		weiri_step_stop_for_deadline(step);
}

void weiri_step_look(struct weiri_step *step)
{
	if (WEIRI_UNLIKELY(weir_cancel_fired(step->session->token) ||
	                   (step->user_token != NULL && weir_cancel_fired(step->user_token)) ||
	                   (step->deadline_ns != WEIR_NO_DEADLINE && weir_now_ns() >= step->deadline_ns)))
		stop_if_due(step);
}

/* Writes what was under way when the stop came: the node that waited or ran, or kernels. */
static void tell_culprit(struct weiri_step *step, char *text, size_t size)
{
	const weir_node *node;

	if (!weiri_latch_is_set(&step->blamed)) {
		if (step->plan->has_user_code && !weiri_latch_is_set(&step->ended))
			(void)snprintf(text, size, "; kernels that still run are left to end by themselves");
		return;
	}
	node = step->culprit;
	if (node->op->resource != NULL)
		(void)snprintf(text, size, "; %s%s \"%s\" of %s \"%s\" had waited %.3f s%s", step->culprit_path, node->kind,
		               node->name, node->op->resource_kind != NULL ? node->op->resource_kind : "queue",
		               node->op->resource(node->attribute), (double)step->culprit_waited_ns / 1e9,
		               node->op->starves != NULL && node->op->starves(node->attribute)
		                   ? "; no queue runner and no announced thread fills it"
		                   : "");
	else
		(void)snprintf(text, size, "; %s%s \"%s\" was under way", step->culprit_path, node->kind, node->name);
}

static enum weir_status tell_stop(struct weiri_step *step, const weir_error *cause, weir_error *error)
{
	size_t used;

	if (error != NULL) {
		*error = *cause;
		used = strlen(error->message);
		tell_culprit(step, error->message + used, sizeof(error->message) - used);
	}
	return cause->code;
}

/*
 * The thread that stopped the step first has not stored its cause. If it came from a token or from the
 * clock, it is still there. Otherwise the run was cancelled or closed.
 */
static WEIRI_COLD enum weir_status tell_unstored_stop(struct weiri_step *step, weir_error *error)
{
	weir_error cause;

	if (weir_cancel_cause(step->token, &cause) == WEIR_OK &&
	    weir_cancel_cause(step->session->token, &cause) == WEIR_OK &&
	    cause_of(step, step->user_token, &cause) == WEIR_OK) {
		if (step->deadline_ns != WEIR_NO_DEADLINE && weir_now_ns() >= step->deadline_ns)
			(void)weiri_fail(&cause, WEIR_DEADLINE_EXCEEDED, "the step did not end in time");
		else
			(void)weiri_fail(&cause, WEIR_CANCELLED, "the run was cancelled");
	}
	return tell_stop(step, &cause, error);
}

enum weir_status weiri_step_outcome_so_far(struct weiri_step *step, weir_error *error)
{
	if (weiri_latch_is_set(&step->failed)) {
		if (error != NULL)
			*error = step->failure;
		return step->failure.code;
	}
	return weiri_latch_is_set(&step->stopped) ? tell_stop(step, &step->stop, error) : tell_unstored_stop(step, error);
}

enum weir_status weiri_step_outcome(struct weiri_step *step, weir_error *error)
{
	WEIR_ASSERT1(S4, !weiri_latch_is_set(&step->incomplete) || weiri_latch_is_set(&step->halted));
	return weiri_latch_is_set(&step->incomplete) ? weiri_step_outcome_so_far(step, error) : WEIR_OK;
}
