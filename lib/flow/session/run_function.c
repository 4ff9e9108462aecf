/*
 * run_function.c - weir_function_run: runs the body of a function as a step of a session.
 */
#include "base/error.h"
#include "base/memory.h"
#include "session/function.h"
#include "session/session.h"
#include "session/step.h"

static enum weir_status check_arguments(const weir_function *function, const weir_session *session,
                                        const struct weir_argument arguments[], weir_tensor *results[],
                                        weir_error *error)
{
	const char *missing = NULL;

	if (function == NULL)
		missing = "function";
	else if (session == NULL)
		missing = "session";
	else if (arguments == NULL && function->parameter_count > 0)
		missing = "arguments";
	else if (results == NULL && function->result_count > 0)
		missing = "results";
	return missing == NULL ? WEIR_OK
	                       : weiri_fail(error, WEIR_INVALID_ARGUMENT, "weir_function_run: %s is NULL", missing);
}

/* Describes the arguments in given[], and stores the tensors among them in feeds[]. */
static enum weir_status describe(const weir_function *f, const struct weir_argument arguments[],
                                 struct weiri_given given[], weir_tensor *feeds[], weir_error *error)
{
	enum weir_status status = WEIR_OK;
	size_t feed = 0;

	for (size_t i = 0; status == WEIR_OK && i < f->parameter_count; i++) {
		given[i].object = NULL;
		switch (f->parameters[i].kind) {
		case WEIR_PARAMETER_QUEUE: given[i].object = arguments[i].queue; break;
		case WEIR_PARAMETER_VAR:
			given[i].object = arguments[i].var;
			if (arguments[i].var != NULL)
				given[i].spec = weiri_spec_of(weir_var_dtype(arguments[i].var), weir_var_shape(arguments[i].var));
			break;
		default:
			if (arguments[i].tensor == NULL)
				return weiri_fail(error, WEIR_INVALID_ARGUMENT, "parameter \"%s\" of \"%s\" must be a tensor, got NULL",
				                  f->parameters[i].name, f->name);
			given[i].spec = weiri_spec_of_tensor(arguments[i].tensor);
			feeds[feed++] = arguments[i].tensor;
			break;
		}
		status = weiri_parameter_check(f, i, &given[i], error);
	}
	return status;
}

enum weir_status weir_function_run(weir_function *function, weir_session *session,
                                   const struct weir_argument arguments[], weir_tensor *results[], uint64_t deadline_ns,
                                   weir_cancel *cancel, const struct weir_run_options *options, weir_error *error)
{
	enum weir_status status = check_arguments(function, session, arguments, results, error);
	struct weiri_given given[WEIR_FUNCTION_MAX_PARAMETERS];
	weir_tensor *feeds[WEIR_FUNCTION_MAX_PARAMETERS];
	struct weiri_step_request request = {
		.session = session, .fed = {feeds, sizeof(feeds[0])}, .cancel = cancel, .awaited = true};
	struct weir_run_options run;
	struct weiri_body *body = NULL;
	weir_error inner;

	if (status == WEIR_OK)
		status = weiri_run_options("weir_function_run", options, WEIR_RUN_ON_CALLER, &run, error);
	if (status != WEIR_OK)
		return status;
	status = describe(function, arguments, given, feeds, &inner);
	if (status == WEIR_OK)
		status = weiri_function_body(function, NULL, given, &body, &inner);
	if (status != WEIR_OK)
		return weiri_fail(error, status, "weir_function_run: %s", inner.message);
	if (!weiri_gate_enter(&session->gate))
		return weiri_session_refuse(session, "weir_function_run", error);
	weiri_function_enter(function);
	request.plan = body->plan;
	request.pool = run.pool;
	request.flags = run.flags;
	request.random_step = run.random_step;
	request.trace = run.trace;
	request.deadline_ns = weiri_session_deadline(session, deadline_ns);
	return weiri_step_run(&request, results, error);
}
