/*
 * start.c - runs for which no call waits: their completion, and the handle to cancel them with.
 *
 * The step's two references are that of the execution, which goes with the completion, and that of
 * the handle.
 */
#include <pthread.h>

#include "base/compiler.h"
#include "base/error.h"
#include "reclaim/record.h"
#include "session/session.h"
#include "session/step.h"

/* -- the end ----------------------------------------------------------------------------------- */

/* Cleanup handler too, for a completion that ends its thread. */
static void told(void *step)
{
	weiri_step_release(step, 1);
}

static void tell(struct weiri_delivery *delivery)
{
	struct weir_run *run = WEIRI_CONTAINER_OF(delivery, struct weir_run, delivery);
	struct weiri_step *step = WEIRI_CONTAINER_OF(run, struct weiri_step, run);
	weir_error error;
	enum weir_status status = weiri_step_outcome(step, &error);

	if (status == WEIR_OK)
		weiri_frame_take_results(&step->frame, run->results);
	pthread_cleanup_push(told, step);
	if (status == WEIR_OK)
		run->done(run->context, status, NULL, run->results, step->plan->fetch_count);
	else
		run->done(run->context, status, &error, run->results, 0);
	pthread_cleanup_pop(1);
}

void weiri_step_tell(struct weiri_step *step)
{
	/* A thread without a record, and without memory for one, is inside no completion. */
	if (weiri_record_get() == NULL)
		tell(&step->run.delivery);
	else
		(void)weiri_deliver(&step->run.delivery, tell);
}

/* -- the start --------------------------------------------------------------------------------- */

static enum weir_status check_arguments(const weir_callable *callable, weir_tensor *const tensors[],
                                        weir_run_done_fn *done, const struct weir_run_options *options,
                                        weir_error *error)
{
	const char *missing = NULL;

	if (callable == NULL)
		missing = "callable";
	else if (tensors == NULL && callable->plan->feed_count > 0)
		missing = "tensors";
	else if (done == NULL)
		missing = "done";
	if (missing != NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "weir_callable_start: %s is NULL", missing);
	if (options->pool == NULL && callable->session->owns_pool && callable->session->workers == 0)
		return weiri_fail(error, WEIR_FAILED_PRECONDITION,
		                  "weir_callable_start: the session has no workers, and no pool is given");
	return WEIR_OK;
}

static enum weir_status start(const struct weiri_step_request *request, weir_run_done_fn *done, void *context,
                              weir_run **run, weir_error *error)
{
	struct weiri_step *step;
	enum weir_status status = weiri_step_create(request, &step, error);
	bool ended;

	if (status != WEIR_OK)
		return status;
	step->is_started = true;
	step->run.done = done;
	step->run.context = context;
	/* First the handle: the completion may run inside this call, and may be given it by the caller. */
	if (run != NULL) {
		weiri_countdown_join(&request->session->handles);
		*run = &step->run;
	}
	ended = weiri_step_begin(step);
	/* The completion comes last, as it may end the thread. */
	if (run == NULL)
		weiri_step_release(step, 1);
	if (ended)
		weiri_step_tell(step);
	return WEIR_OK;
}

enum weir_status weir_callable_start(weir_callable *callable, weir_tensor *const tensors[], weir_cancel *cancel,
                                     const struct weir_run_options *given, weir_run_done_fn *done, void *context,
                                     weir_run **run, weir_error *error)
{
	struct weiri_step_request request = {
		.fed = {tensors, sizeof(tensors[0])}, .cancel = cancel, .deadline_ns = WEIR_NO_DEADLINE};
	struct weir_run_options options;
	enum weir_status status = weiri_run_options("weir_callable_start", given, 0, &options, error);

	if (status == WEIR_OK)
		status = check_arguments(callable, tensors, done, &options, error);
	if (status == WEIR_OK && weiri_record_get() == NULL)
		status = weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "weir_callable_start: no memory for this thread's record");
	if (status == WEIR_OK)
		status = weiri_callable_enter(callable, "weir_callable_start", error);
	if (status != WEIR_OK)
		return status;
	request.session = callable->session;
	request.plan = callable->plan;
	request.pool = options.pool;
	request.trace = options.trace;
	request.random_step = options.random_step;
	return start(&request, done, context, run, error);
}

/* -- the handle -------------------------------------------------------------------------------- */

void weir_run_cancel(weir_run *run, const weir_error *cause)
{
	weir_error kept;

	if (run == NULL)
		return;
	if (weiri_is_cause(cause))
		kept = weiri_error_kept(cause);
	else
		(void)weiri_fail(&kept, WEIR_CANCELLED, "the run was cancelled");
	weiri_step_stop(WEIRI_CONTAINER_OF(run, struct weiri_step, run), &kept);
}
