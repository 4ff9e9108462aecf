/*
 * run_target.c - weir_session_run_target: the step of a queue runner that runs a node.
 */
#include "base/error.h"
#include "session/session.h"

static bool is_closed(weir_session *session)
{
	if (!weiri_gate_enter(&session->gate))
		return true;
	weiri_gate_leave(&session->gate);
	return false;
}

enum weir_status weir_session_run_target(void *session_target, weir_cancel *cancel, weir_error *error)
{
	const struct weir_session_target *what = session_target;
	enum weir_status status;

	if (what == NULL || what->session == NULL || what->target == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "weir_session_run_target: %s is NULL",
		                  what == NULL            ? "session_target"
		                  : what->session == NULL ? "session"
		                                          : "target");
	status = weir_session_run(what->session, NULL, 0, NULL, 0, NULL, &what->target, 1, WEIR_NO_DEADLINE, cancel, error);
	/* A step that a close interrupts reports WEIR_CANCELLED. A later step must report the same. */
	if (status == WEIR_FAILED_PRECONDITION && is_closed(what->session))
		return weiri_fail(error, WEIR_CANCELLED, "the session was closed");
	return status;
}
