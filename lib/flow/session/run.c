/*
 * run.c - weir_session_run: checks, starts a step, waits for it, and returns the fetched values.
 */
#include "base/compiler.h"
#include "base/error.h"
#include "reclaim/interrupt.h"
#include "session/session.h"
#include "session/step.h"

static enum weir_status check_arguments(const weir_session *session, const struct weiri_signature *signature,
                                        weir_tensor *results[], weir_error *error)
{
	const char *missing = NULL;

	if (session == NULL)
		missing = "session";
	else if (signature->feeds == NULL && signature->feed_count > 0)
		missing = "feeds";
	else if (signature->fetches == NULL && signature->fetch_count > 0)
		missing = "fetches";
	else if (results == NULL && signature->fetch_count > 0)
		missing = "results";
	else if (signature->targets == NULL && signature->target_count > 0)
		missing = "targets";
	return missing == NULL ? WEIR_OK
	                       : weiri_fail(error, WEIR_INVALID_ARGUMENT, "weir_session_run: %s is NULL", missing);
}

/* Runs the tasks that were handed to this thread. */
static bool run_handed(struct weiri_step *step)
{
	weir_task *task = weiri_handoff_take_all(&step->handoff);
	bool any = task != NULL;

	while (task != NULL) {
		weir_task *next = task->next; /* the task may be submitted again, and then has another one */

		task->run(task);
		task = next;
	}
	return any;
}

/*
 * Waits for the step. Returns true if it has ended; false if the caller leaves it to the workers.
 */
static bool await(struct weiri_step *step)
{
	uint64_t deadline_ns = step->deadline_ns;

	for (;;) {
		uint32_t seen;

		weiri_deliver_due(); /* a run inside a completion may wait for completions that are due on its own thread */
		seen = weiri_signal_now(&step->signal);

		if (weiri_latch_is_set(&step->ended))
			return true;
		if (step->may_be_left && weiri_step_is_stopped(step))
			return false;
		if (step->on_caller && run_handed(step))
			continue;
		/* A task that polls submits itself again, so the clock is looked at here too. */
		if (step->caller_helps && weiri_step_help(step) &&
		    (deadline_ns == WEIR_NO_DEADLINE || weir_now_ns() < deadline_ns))
			continue;
		switch (weiri_signal_wait(&step->signal, seen, deadline_ns)) {
		case WEIRI_PARK_WOKEN: continue;
		case WEIRI_PARK_INTERRUPTED: weiri_step_stop(step, &weiri_interrupt_cause); continue;
		case WEIRI_PARK_TIMEOUT: break;
		}
		weiri_step_stop_for_deadline(step);
		if (step->may_be_left)
			return weiri_latch_is_set(&step->ended);
		/* The stop ends every operation that waits. So the caller now waits without a deadline. */
		deadline_ns = WEIR_NO_DEADLINE;
	}
}

enum weir_status weiri_step_run(const struct weiri_step_request *request, weir_tensor *results[], weir_error *error)
{
	struct weiri_step *step;
	bool here;
	enum weir_status status = weiri_step_create(request, &step, error);

	if (status != WEIR_OK)
		return status;
	here = weiri_step_begin(step);
	status = here || await(step) ? weiri_step_outcome(step, error) : weiri_step_outcome_so_far(step, error);
	if (status == WEIR_OK)
		weiri_frame_take_results(&step->frame, results);
	weiri_step_release(step, here ? 2 : 1);
	return status;
}

/* Inlined at both places, because the request is then built in place. */
static WEIRI_ALWAYS_INLINE enum weir_status run(const char *call, weir_session *session,
                                                struct weiri_signature *signature, struct weiri_step_request *request,
                                                weir_tensor *results[], weir_error *error)
{
	enum weir_status status;

	if (!weiri_gate_enter(&session->gate))
		return weiri_session_refuse(session, call, error);
	request->session = session;
	request->awaited = true;
	/* Before the plan is compiled: the limit is counted from the call. */
	request->deadline_ns = weiri_session_deadline(session, request->deadline_ns);
	status = weiri_session_plan(session, signature, &request->plan, error);
	if (status == WEIR_OK)
		return weiri_step_run(request, results, error);
	weiri_gate_leave(&session->gate);
	return status;
}

enum weir_status weiri_session_run(const char *call, weir_session *session, struct weiri_signature *signature,
                                   struct weiri_step_request *request, weir_tensor *results[], weir_error *error)
{
	return run(call, session, signature, request, results, error);
}

enum weir_status weir_session_run(weir_session *session, const struct weir_feed feeds[], size_t feed_count,
                                  const weir_output fetches[], size_t fetch_count, weir_tensor *results[],
                                  weir_node *const targets[], size_t target_count, uint64_t deadline_ns,
                                  weir_cancel *cancel, weir_error *error)
{
	struct weiri_signature signature = {.feeds = feeds != NULL ? &feeds->output : NULL,
	                                    .feed_stride = sizeof(*feeds),
	                                    .feed_count = feed_count,
	                                    .fetches = fetches,
	                                    .fetch_count = fetch_count,
	                                    .targets = targets,
	                                    .target_count = target_count};
	struct weiri_step_request request = {
		.fed = {feeds != NULL ? &feeds->value : NULL, sizeof(*feeds)}, .deadline_ns = deadline_ns, .cancel = cancel};
	enum weir_status status = check_arguments(session, &signature, results, error);

	return status == WEIR_OK ? run("weir_session_run", session, &signature, &request, results, error) : status;
}
