/*
 * callable.c - a plan that a program holds, and runs of it.
 *
 * A callable is inside the session's gate, and its steps have references to it. So a step enters and
 * leaves only the callable, and a step that user code keeps going may outlive the owner's handle.
 */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "session/session.h"
#include "session/step.h"

static enum weir_status refuse_null(const char *call, const char *what, weir_error *error)
{
	return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: %s is NULL", call, what);
}

/* -- compiling --------------------------------------------------------------------------------- */

static enum weir_status check_arguments(const weir_session *session, const struct weiri_signature *signature,
                                        weir_callable **out, weir_error *error)
{
	const char *missing = NULL;

	if (session == NULL)
		missing = "session";
	else if (signature->feeds == NULL && signature->feed_count > 0)
		missing = "feeds";
	else if (signature->fetches == NULL && signature->fetch_count > 0)
		missing = "fetches";
	else if (signature->targets == NULL && signature->target_count > 0)
		missing = "targets";
	else if (out == NULL)
		missing = "out";
	return missing == NULL ? WEIR_OK : refuse_null("weir_session_compile", missing, error);
}

/* The caller is inside the session's gate, and has left it if the call fails. */
static enum weir_status compile(weir_session *session, struct weiri_signature *signature, bool late,
                                weir_callable **out, weir_error *error)
{
	weir_callable *callable = weiri_allocate(&session->allocator, sizeof(*callable), _Alignof(weir_callable));
	enum weir_status status;

	if (callable == NULL) {
		weiri_gate_leave(&session->gate);
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "weir_session_compile: no memory");
	}
	signature->hash = weiri_signature_hash(signature);
	status = weiri_plan_compile(session->graph, &session->allocator, signature,
	                            (session->shuffle_seed != 0 ? WEIRI_PLAN_SEPARATE : 0u) | (late ? WEIRI_PLAN_LATE : 0u),
	                            &callable->plan, error);
	if (status != WEIR_OK) {
		weiri_release(&session->allocator, callable, sizeof(*callable), _Alignof(weir_callable));
		weiri_gate_leave(&session->gate);
		return status;
	}
	callable->session = session;
	callable->plan->callable = callable;
	weiri_countdown_init(&callable->users, 1);
	weiri_countdown_join(&session->handles);
	*out = callable;
	return WEIR_OK;
}

enum weir_status weir_session_compile(weir_session *session, const weir_output feeds[], size_t feed_count,
                                      const weir_output fetches[], size_t fetch_count, weir_node *const targets[],
                                      size_t target_count, const struct weir_callable_options *options,
                                      weir_callable **out, weir_error *error)
{
	struct weiri_signature signature = {.feeds = feeds,
	                                    .feed_stride = sizeof(*feeds),
	                                    .feed_count = feed_count,
	                                    .fetches = fetches,
	                                    .fetch_count = fetch_count,
	                                    .targets = targets,
	                                    .target_count = target_count};
	struct weir_callable_options given;
	enum weir_status status = check_arguments(session, &signature, out, error);

	if (status == WEIR_OK)
		status = weiri_options_read("weir_session_compile", options, &given, sizeof(given), error);
	if (status == WEIR_OK)
		status = weiri_options_flags("weir_session_compile", given.flags, WEIR_CALLABLE_LATE_FEEDS, error);
	if (status != WEIR_OK)
		return status;
	if (!weiri_gate_enter(&session->gate))
		return weiri_session_refuse(session, "weir_session_compile", error);
	return compile(session, &signature, (given.flags & WEIR_CALLABLE_LATE_FEEDS) != 0, out, error);
}

void weiri_callable_leave(weir_callable *callable)
{
	weir_session *session = callable->session;

	if (!weiri_countdown_finish(&callable->users, 1))
		return;
	weiri_plan_free(callable->plan, &session->allocator);
	weiri_release(&session->allocator, callable, sizeof(*callable), _Alignof(weir_callable));
	weiri_gate_leave(&session->gate);
}

void weir_callable_release(weir_callable *callable)
{
	if (callable == NULL)
		return;
	(void)weiri_countdown_arrive(&callable->session->handles);
	weiri_callable_leave(callable);
}

/* -- running ----------------------------------------------------------------------------------- */

enum weir_status weiri_run_options(const char *call, const struct weir_run_options *given, uint32_t flags,
                                   struct weir_run_options *options, weir_error *error)
{
	enum weir_status status;

	if (given == NULL) {
		*options = (struct weir_run_options){WEIR_RUN_OPTIONS_INIT};
		return WEIR_OK;
	}
	status = weiri_options_read(call, given, options, sizeof(*options), error);
	if (status == WEIR_OK)
		status = weiri_options_flags(call, options->flags, flags, error);
	if (status == WEIR_OK && (options->flags & WEIR_RUN_ON_CALLER) != 0 && options->pool != NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: a pool together with WEIR_RUN_ON_CALLER", call);
	return status;
}

enum weir_status weiri_callable_enter(weir_callable *callable, const char *call, weir_error *error)
{
	if (weir_cancel_fired(callable->session->token))
		return weiri_session_refuse(callable->session, call, error);
	weiri_countdown_join(&callable->users);
	return WEIR_OK;
}

enum weir_status weir_callable_run(weir_callable *callable, weir_tensor *const tensors[], weir_tensor *results[],
                                   uint64_t deadline_ns, weir_cancel *cancel, const struct weir_run_options *given,
                                   weir_error *error)
{
	struct weiri_step_request request = {.fed = {tensors, sizeof(tensors[0])}, .cancel = cancel, .awaited = true};
	struct weir_run_options options;
	enum weir_status status;

	if (callable == NULL)
		return refuse_null("weir_callable_run", "callable", error);
	if (tensors == NULL && callable->plan->feed_count > 0)
		return refuse_null("weir_callable_run", "tensors", error);
	if (results == NULL && callable->plan->fetch_count > 0)
		return refuse_null("weir_callable_run", "results", error);
	status = weiri_run_options("weir_callable_run", given, WEIR_RUN_ON_CALLER, &options, error);
	if (status == WEIR_OK)
		status = weiri_callable_enter(callable, "weir_callable_run", error);
	if (status != WEIR_OK)
		return status;
	request.session = callable->session;
	request.plan = callable->plan;
	request.deadline_ns = weiri_session_deadline(callable->session, deadline_ns);
	request.pool = options.pool;
	request.flags = options.flags;
	request.trace = options.trace;
	request.random_step = options.random_step;
	return weiri_step_run(&request, results, error);
}
