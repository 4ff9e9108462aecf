/*
 * open_run.c - runs that are fed and fetched while they run.
 *
 * A feed that comes is an arrival at each unit that uses it, as the end of a predecessor is (plan.h,
 * late_units). The thread that brings the last arrival runs the unit. A latch for each feed says who
 * brings it: the first thread that claims it, in a feed or in the close, makes its arrivals. So each
 * is made exactly once, and a run that is closed ends although feeds are missing: the close has
 * stopped the step before, so the nodes that lack a value are skipped. A fetch is taken once: by the
 * call that claims its latch, once the value is there.
 *
 * Invariants
 *   N1  the arrivals of a feed are made by the thread that claimed its latch, after the value is in
 *       its slot, or after the step was stopped
 *   N2  `told` of a node is set only after its outputs are stored, and nobody clears a
 *       slot that can be fetched before the step is freed (WEIRI_ENDS_NOTHING)
 * Pairs
 *   P1  arrivals -> the last one: the value of the feed (P1 of run/countdown.h)
 *   P2  `told`, `given` -> fetch: the value (P2 of run/countdown.h)
 *   P3  raise of the step's signal -> the wait of a fetch (P1 of run/signal.h)
 * Progress: feed and close are lock-free. A thread that stops in a feed, between its claim and its
 *   arrivals, keeps the units back that need this feed, and no other.
 * Checked: tests/test_open_run.c.
 */
#include "base/compiler.h"
#include "base/error.h"
#include "reclaim/interrupt.h"
#include "session/session.h"
#include "session/step.h"
#include "sync/delivery.h"

static struct weiri_step *step_of(weir_run *run)
{
	return WEIRI_CONTAINER_OF(run, struct weiri_step, run);
}

/* -- open -------------------------------------------------------------------------------------- */

static enum weir_status check_open(const weir_callable *callable, weir_run **run, weir_error *error)
{
	if (callable == NULL || run == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "weir_run_open: %s is NULL",
		                  callable == NULL ? "callable" : "run");
	if (!callable->plan->late)
		return weiri_fail(error, WEIR_FAILED_PRECONDITION,
		                  "weir_run_open: the callable was compiled without WEIR_CALLABLE_LATE_FEEDS");
	return WEIR_OK;
}

enum weir_status weir_run_open(weir_callable *callable, weir_cancel *cancel, const struct weir_run_options *given,
                               weir_run **run, weir_error *error)
{
	struct weiri_step_request request = {.deadline_ns = WEIR_NO_DEADLINE, .cancel = cancel, .open = true};
	struct weir_run_options options;
	struct weiri_step *step;
	enum weir_status status = weiri_run_options("weir_run_open", given, 0, &options, error);

	if (status == WEIR_OK)
		status = check_open(callable, run, error);
	if (status == WEIR_OK)
		status = weiri_callable_enter(callable, "weir_run_open", error);
	if (status != WEIR_OK)
		return status;
	request.session = callable->session;
	request.plan = callable->plan;
	request.pool = options.pool;
	request.trace = options.trace;
	request.random_step = options.random_step;
	status = weiri_step_create(&request, &step, error);
	if (status != WEIR_OK)
		return status;
	weiri_countdown_join(&request.session->handles);
	*run = &step->run;
	if (weiri_step_begin(step))
		weiri_step_release(step, 1);
	return WEIR_OK;
}

/* -- feed and close ---------------------------------------------------------------------------- */

static enum weir_status check_run(const char *call, weir_run *run, weir_error *error)
{
	if (run == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: run is NULL", call);
	if (!step_of(run)->is_open)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: the run was started, not opened", call);
	return WEIR_OK;
}

/* Returns true if the step has failed or was stopped, and its status can be told. */
static bool is_over(const struct weiri_step *step)
{
	return weiri_latch_is_set(&step->failed) || weiri_step_is_stopped(step);
}

static enum weir_status check_feed(weir_run *run, size_t feed, const weir_tensor *value, weir_error *error)
{
	enum weir_status status = check_run("weir_run_feed", run, error);
	const struct weiri_plan *plan;

	if (status != WEIR_OK)
		return status;
	plan = step_of(run)->plan;
	if (feed >= plan->feed_count)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "weir_run_feed: feed %zu of %zu", feed, plan->feed_count);
	return weiri_step_check_feed(plan, feed, value, error);
}

enum weir_status weir_run_feed(weir_run *run, size_t feed, weir_tensor *value, weir_error *error)
{
	enum weir_status status = check_feed(run, feed, value, error);
	struct weiri_step *step;

	if (status != WEIR_OK)
		return status;
	step = step_of(run);
	if (is_over(step))
		return weiri_step_outcome_so_far(step, error);
	if (!weiri_latch_claim(&step->frame.given[feed]))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "weir_run_feed: \"%s\" has been fed, or the run was closed",
		                  step->plan->feeds[feed].node->name);
	if (!step->plan->slots[feed].unused)
		step->frame.values[feed] = weir_tensor_retain(value);
	weiri_latch_set(&step->frame.given[feed]);
	weiri_signal_raise(&step->signal); /* the feed itself may be fetched */
	weiri_step_arrive_feed(step, feed);
	return WEIR_OK;
}

static void close_run(struct weiri_step *step, const weir_error *cause)
{
	weir_error kept;

	if (weiri_is_cause(cause))
		kept = weiri_error_kept(cause);
	else
		(void)weiri_fail(&kept, WEIR_CANCELLED, "the run was closed");
	if (!weiri_latch_is_set(&step->ended))
		weiri_step_stop(step, &kept);
	/* N1: nodes that lack a value are skipped from here on. */
	for (size_t i = 0; i < step->plan->feed_count; i++) {
		if (weiri_latch_claim(&step->frame.given[i]))
			weiri_step_arrive_feed(step, i);
	}
}

enum weir_status weir_run_close(weir_run *run, const weir_error *cause)
{
	enum weir_status status = check_run("weir_run_close", run, NULL);

	if (status == WEIR_OK)
		close_run(step_of(run), cause);
	return status;
}

/* -- fetch and wait ---------------------------------------------------------------------------- */

/* What a call waits for; true once it is there. */
typedef bool reached_fn(const struct weiri_step *step, size_t fetch);

static bool is_there(const struct weiri_step *step, size_t fetch)
{
	const struct weiri_fetch *of = &step->plan->fetched[fetch];

	/* N2 */
	if (of->node != WEIRI_NO_NODE)
		return weiri_latch_is_set(&step->frame.told[of->node]);
	return of->slot >= step->plan->feed_count || weiri_latch_is_set(&step->frame.given[of->slot]);
}

static bool has_ended(const struct weiri_step *step, size_t unused)
{
	(void)unused;
	return weiri_latch_is_set(&step->ended);
}

static enum weir_status tell_late(const struct weiri_step *step, const char *call, weir_error *error)
{
	for (size_t i = 0; i < step->plan->feed_count; i++) {
		if (!weiri_latch_is_set(&step->frame.given[i]))
			return weiri_fail(error, WEIR_DEADLINE_EXCEEDED, "%s: not in time; \"%s\" has not been fed", call,
			                  step->plan->feeds[i].node->name);
	}
	return weiri_fail(error, WEIR_DEADLINE_EXCEEDED, "%s: not in time", call);
}

static enum weir_status await(struct weiri_step *step, const char *call, reached_fn *reached, size_t fetch,
                              uint64_t deadline_ns, weir_error *error)
{
	for (;;) {
		uint32_t seen;

		weiri_deliver_due();
		seen = weiri_signal_now(&step->signal);
		if (reached(step, fetch))
			return WEIR_OK;
		/* What was reached before the step was stopped counts. */
		if (is_over(step))
			return reached(step, fetch) ? WEIR_OK : weiri_step_outcome_so_far(step, error);
		/* A task that polls submits itself again, so the deadline is looked at while there are tasks, too. */
		if ((step->workers == 0 || weiri_inside_kernel()) && weiri_step_help(step) &&
		    (deadline_ns == WEIR_NO_DEADLINE || weir_now_ns() < deadline_ns))
			continue;
		switch (weiri_signal_wait(&step->signal, seen, deadline_ns)) {
		case WEIRI_PARK_WOKEN: continue;
		case WEIRI_PARK_INTERRUPTED:
			/* The call ends, and the run goes on. */
			return weiri_fail(error, weiri_interrupt_cause.code, "%s: %s", call, weiri_interrupt_cause.message);
		case WEIRI_PARK_TIMEOUT: return reached(step, fetch) ? WEIR_OK : tell_late(step, call, error);
		}
	}
}

enum weir_status weir_run_fetch(weir_run *run, size_t fetch, uint64_t deadline_ns, weir_tensor **result,
                                weir_error *error)
{
	enum weir_status status = check_run("weir_run_fetch", run, error);
	struct weiri_step *step;

	if (status == WEIR_OK && result == NULL)
		status = weiri_fail(error, WEIR_INVALID_ARGUMENT, "weir_run_fetch: result is NULL");
	if (status != WEIR_OK)
		return status;
	step = step_of(run);
	if (fetch >= step->plan->fetch_count)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "weir_run_fetch: fetch %zu of %zu", fetch,
		                  step->plan->fetch_count);
	status = await(step, "weir_run_fetch", is_there, fetch, deadline_ns, error);
	if (status == WEIR_OK && !weiri_latch_claim(&step->frame.taken[fetch]))
		status = weiri_fail(error, WEIR_INVALID_ARGUMENT, "weir_run_fetch: \"%s\" has been fetched",
		                    step->plan->fetches[fetch].node->name);
	if (status == WEIR_OK)
		*result = weir_tensor_retain(step->frame.values[step->plan->fetched[fetch].slot]);
	return status;
}

enum weir_status weir_run_wait(weir_run *run, uint64_t deadline_ns, weir_error *error)
{
	enum weir_status status = check_run("weir_run_wait", run, error);
	struct weiri_step *step;

	if (status != WEIR_OK)
		return status;
	step = step_of(run);
	status = await(step, "weir_run_wait", has_ended, 0, deadline_ns, error);
	return status == WEIR_OK ? weiri_step_outcome(step, error) : status;
}

/* -- the end ----------------------------------------------------------------------------------- */

void weir_run_release(weir_run *run)
{
	struct weiri_step *step;

	if (run == NULL)
		return;
	step = step_of(run);
	if (step->is_open)
		close_run(step, NULL);
	(void)weiri_countdown_arrive(&step->session->handles);
	weiri_step_release(step, 1);
}
