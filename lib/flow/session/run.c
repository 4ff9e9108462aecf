/*
 * run.c - weir_session_run: checks, starts a step, waits for it, and returns the fetched values.
 */
#include "base/error.h"
#include "session/session.h"
#include "session/step.h"
#include "sync/delivery.h"

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

uint64_t weiri_session_deadline(const weir_session *session, uint64_t deadline_ns)
{
	return deadline_ns == WEIR_NO_DEADLINE && session->operation_timeout_ns != 0
	           ? weir_deadline_in(session->operation_timeout_ns)
	           : deadline_ns;
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
		if (step->may_be_left && weiri_latch_is_set(&step->stopped))
			return false;
		if (step->caller_helps && weir_pool_help(step->session->pool, 1) > 0)
			continue;
		if (weiri_signal_wait(&step->signal, seen, deadline_ns))
			continue;
		weiri_step_stop_for_deadline(step);
		if (step->may_be_left)
			return weiri_latch_is_set(&step->ended);
		/* The stop ends every operation that waits. So the caller now waits without a deadline. */
		deadline_ns = WEIR_NO_DEADLINE;
	}
}

enum weir_status weiri_step_run(weir_session *session, struct weiri_plan *plan, const struct weir_feed feeds[],
                                uint64_t deadline_ns, weir_cancel *cancel, weir_tensor *results[], weir_error *error)
{
	struct weiri_step *step;
	bool here;
	enum weir_status status = weiri_step_create(session, plan, feeds, deadline_ns, cancel, &step, error);

	if (status != WEIR_OK)
		return status;
	here = weiri_step_begin(step);
	status = here || await(step) ? weiri_step_outcome(step, error) : weiri_step_outcome_so_far(step, error);
	if (status == WEIR_OK)
		weiri_frame_take_results(&step->frame, results);
	weiri_step_release(step, here ? 2 : 1);
	return status;
}

enum weir_status weir_session_run(weir_session *session, const struct weir_feed feeds[], size_t feed_count,
                                  const weir_output fetches[], size_t fetch_count, weir_tensor *results[],
                                  weir_node *const targets[], size_t target_count, uint64_t deadline_ns,
                                  weir_cancel *cancel, weir_error *error)
{
	struct weiri_signature signature = {feeds, feed_count, fetches, fetch_count, targets, target_count, 0};
	struct weiri_plan *plan;
	enum weir_status status = check_arguments(session, &signature, results, error);

	if (status != WEIR_OK)
		return status;
	if (!weiri_gate_enter(&session->gate))
		return weiri_session_refuse(session, "weir_session_run", error);
	status = weiri_session_plan(session, &signature, &plan, error);
	if (status == WEIR_OK)
		return weiri_step_run(session, plan, feeds, weiri_session_deadline(session, deadline_ns), cancel, results, error);
	weiri_gate_leave(&session->gate);
	return status;
}
