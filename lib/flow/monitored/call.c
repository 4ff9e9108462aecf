/*
 * call.c - one run of a monitored session: the hooks before it, the run, the hooks after it.
 *
 * As long as no hook adds a feed or a fetch, the run uses the caller's arrays. The first that does
 * has them copied into arrays of the call.
 */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "monitored/monitored.h"
#include "session/session.h"
#include "session/step.h"

/* A feed, and which hook has added it. */
struct fed {
	struct weir_feed feed;
	const struct weiri_hook *by; /* NULL: the caller */
};

enum { FEW_RESULTS = 8, FIRST_ROOM = 8 };

struct weir_monitored_call {
	weir_monitored *monitored;
	const struct weiri_hook *hook; /* whose turn it is */
	bool has_run;
	enum weir_status refused; /* WEIR_OK; or why a call of a hook failed, with its message */
	weir_error refusal;
	uint64_t deadline_ns;
	/* Of the caller. */
	const struct weir_feed *feeds;
	const weir_output *fetches;
	size_t caller_feeds, caller_fetches;
	weir_node *const *targets;
	size_t target_count;
	weir_cancel *cancel;
	const struct weir_run_options *options;
	/* All feeds and fetches, once a hook has added one; else NULL. */
	struct fed *all_feeds;
	weir_output *all_fetches;
	size_t feed_count, feed_room, fetch_count, fetch_room;
	weir_tensor **results; /* fetch_count of them, once it has run */
	weir_tensor *few[FEW_RESULTS];
};

/* -- what hooks add ---------------------------------------------------------------------------- */

/* Returns an array with room for one more element than `count`, or NULL. *room is updated. */
static void *grow(const weir_allocator *allocator, void *array, size_t size, size_t count, size_t *room)
{
	size_t more = *room == 0 ? count + FIRST_ROOM : *room * 2;
	size_t bytes;
	void *grown;

	if (count < *room)
		return array;
	if (!weiri_multiply(more, size, &bytes))
		return NULL;
	grown = weiri_allocate(allocator, bytes, _Alignof(max_align_t));
	if (grown == NULL)
		return NULL;
	if (array != NULL)
		(void)memcpy(grown, array, count * size);
	weiri_release(allocator, array, *room * size, _Alignof(max_align_t));
	*room = more;
	return grown;
}

static bool make_room_for_feed(weir_monitored_call *call)
{
	bool first = call->all_feeds == NULL;
	struct fed *grown =
		grow(&call->monitored->allocator, call->all_feeds, sizeof(struct fed), call->feed_count, &call->feed_room);

	if (grown == NULL)
		return false;
	call->all_feeds = grown;
	for (size_t i = 0; first && i < call->caller_feeds; i++)
		grown[i] = (struct fed){call->feeds[i], NULL};
	return true;
}

static bool make_room_for_fetch(weir_monitored_call *call)
{
	bool first = call->all_fetches == NULL;
	weir_output *grown =
		grow(&call->monitored->allocator, call->all_fetches, sizeof(weir_output), call->fetch_count, &call->fetch_room);

	if (grown == NULL)
		return false;
	call->all_fetches = grown;
	for (size_t i = 0; first && i < call->caller_fetches; i++)
		grown[i] = call->fetches[i];
	return true;
}

/* Keeps a failure, so that the run fails even if the hook ignores it. The message is in *error, too. */
static enum weir_status refuse(weir_monitored_call *call, const weir_error *why, weir_error *error)
{
	if (call->refused == WEIR_OK) {
		call->refused = why->code;
		call->refusal = *why;
	}
	if (error != NULL)
		*error = *why;
	return why->code;
}

/* Checks that a hook may add something to a run that has not begun. */
static enum weir_status check_turn(weir_monitored_call *call, const char *what, const weir_node *node,
                                   weir_error *error)
{
	weir_error why;

	if (call == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: call is NULL", what);
	if (node != NULL && !call->has_run)
		return WEIR_OK;
	if (node == NULL)
		(void)weiri_fail(&why, WEIR_INVALID_ARGUMENT, "%s: the output is NULL", what);
	else
		(void)weiri_fail(&why, WEIR_FAILED_PRECONDITION, "%s: the run is over", what);
	return refuse(call, &why, error);
}

static const struct weiri_hook *who_feeds(const weir_monitored_call *call, weir_output output, bool *found)
{
	for (size_t i = 0; i < call->feed_count; i++) {
		weir_output fed = call->all_feeds != NULL ? call->all_feeds[i].feed.output : call->feeds[i].output;

		if (fed.node != output.node || fed.index != output.index)
			continue;
		*found = true;
		return call->all_feeds != NULL ? call->all_feeds[i].by : NULL;
	}
	*found = false;
	return NULL;
}

enum weir_status weir_monitored_call_feed(weir_monitored_call *call, weir_output output, weir_tensor *value,
                                          weir_error *error)
{
	static const char what[] = "weir_monitored_call_feed";
	enum weir_status status = check_turn(call, what, output.node, error);
	const struct weiri_hook *other;
	weir_error why;
	bool found;

	if (status != WEIR_OK)
		return status;
	if (value == NULL) {
		(void)weiri_fail(&why, WEIR_INVALID_ARGUMENT, "%s: the value for \"%s\" is NULL", what, output.node->name);
		return refuse(call, &why, error);
	}
	other = who_feeds(call, output, &found);
	if (found) {
		(void)weiri_fail(&why, WEIR_INVALID_ARGUMENT, "output %u of \"%s\" is fed by hook \"%s\" and by %s%s%s",
		                 (unsigned)output.index, output.node->name, call->hook->name,
		                 other != NULL ? "hook \"" : "the caller", other != NULL ? other->name : "",
		                 other != NULL ? "\"" : "");
		return refuse(call, &why, error);
	}
	if (!make_room_for_feed(call)) {
		(void)weiri_fail(&why, WEIR_RESOURCE_EXHAUSTED, "%s: no memory", what);
		return refuse(call, &why, error);
	}
	call->all_feeds[call->feed_count++] = (struct fed){{output, weir_tensor_retain(value)}, call->hook};
	return WEIR_OK;
}

enum weir_status weir_monitored_call_fetch(weir_monitored_call *call, weir_output output, size_t *index,
                                           weir_error *error)
{
	enum weir_status status = check_turn(call, "weir_monitored_call_fetch", output.node, error);
	weir_error why;

	if (status != WEIR_OK)
		return status;
	if (!make_room_for_fetch(call)) {
		(void)weiri_fail(&why, WEIR_RESOURCE_EXHAUSTED, "weir_monitored_call_fetch: no memory");
		return refuse(call, &why, error);
	}
	if (index != NULL)
		*index = call->fetch_count - call->caller_fetches;
	call->all_fetches[call->fetch_count++] = output;
	return WEIR_OK;
}

enum weir_status weir_monitored_call_limit(weir_monitored_call *call, uint64_t deadline_ns, weir_error *error)
{
	if (call == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "weir_monitored_call_limit: call is NULL");
	if (call->has_run)
		return weiri_fail(error, WEIR_FAILED_PRECONDITION, "weir_monitored_call_limit: the run is over");
	if (deadline_ns < call->deadline_ns)
		call->deadline_ns = deadline_ns;
	return WEIR_OK;
}

weir_tensor *weir_monitored_call_result(const weir_monitored_call *call, size_t index)
{
	if (call == NULL || !call->has_run || index >= call->fetch_count - call->caller_fetches)
		return NULL;
	return call->results[call->caller_fetches + index];
}

weir_session *weir_monitored_call_session(const weir_monitored_call *call)
{
	return call != NULL ? call->monitored->life.session : NULL;
}

weir_monitored *weir_monitored_call_owner(const weir_monitored_call *call)
{
	return call != NULL ? call->monitored : NULL;
}

/* -- the run ----------------------------------------------------------------------------------- */

enum weir_status weiri_hook_failed(const struct weiri_hook *hook, const char *place, enum weir_status status,
                                   weir_error *error)
{
	weir_error why = weiri_error_kept(error);

	return weiri_fail(error, status, "hook \"%s\": %s: %s", hook->name, place,
	                  why.message[0] != '\0' ? why.message : weir_status_name(status));
}

static enum weir_status run_hook(weir_monitored_call *call, weir_monitored_call_fn *fn, const char *place,
                                 weir_error *error)
{
	enum weir_status status;

	error->message[0] = '\0';
	status = fn(call->hook->calls.context, call, error);
	if (call->refused != WEIR_OK) {
		status = call->refused;
		*error = call->refusal;
	}
	return status == WEIR_OK ? WEIR_OK : weiri_hook_failed(call->hook, place, status, error);
}

/* Calls before_run or after_run of each hook. */
static enum weir_status run_hooks(weir_monitored_call *call, weir_error *error)
{
	const struct weiri_settings *settings = &call->monitored->settings;
	enum weir_status status = WEIR_OK;
	struct weiri_monitored_mark mark;

	if (settings->hook_count == 0)
		return WEIR_OK;
	weiri_monitored_mark(&mark, call->monitored, WEIRI_IN_HOOK);
	for (size_t i = 0; status == WEIR_OK && i < settings->hook_count; i++) {
		weir_monitored_call_fn *fn;

		call->hook = &settings->hooks[i];
		fn = call->has_run ? call->hook->calls.after_run : call->hook->calls.before_run;
		if (fn != NULL)
			status = run_hook(call, fn, call->has_run ? "after_run" : "before_run", error);
	}
	weiri_monitored_unmark(&mark);
	return status;
}

static enum weir_status make_results(weir_monitored_call *call, weir_error *error)
{
	call->results = call->few; /* of this copy */
	if (call->fetch_count <= FEW_RESULTS)
		return WEIR_OK;
	call->results = weiri_allocate_zeroed(&call->monitored->allocator, call->fetch_count * sizeof(weir_tensor *),
	                                      _Alignof(weir_tensor *));
	return call->results != NULL ? WEIR_OK
	                             : weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "weir_monitored_run: no memory");
}

static enum weir_status run_step(weir_monitored_call *call, weir_error *error)
{
	const struct weir_feed *feeds = call->all_feeds != NULL ? &call->all_feeds[0].feed : call->feeds;
	size_t stride = call->all_feeds != NULL ? sizeof(struct fed) : sizeof(struct weir_feed);
	struct weiri_signature signature = {.feeds = feeds != NULL ? &feeds->output : NULL,
	                                    .feed_stride = stride,
	                                    .feed_count = call->feed_count,
	                                    .fetches = call->all_fetches != NULL ? call->all_fetches : call->fetches,
	                                    .fetch_count = call->fetch_count,
	                                    .targets = call->targets,
	                                    .target_count = call->target_count};
	struct weiri_step_request request = {.fed = {feeds != NULL ? &feeds->value : NULL, stride},
	                                     .deadline_ns = call->deadline_ns,
	                                     .cancel = call->cancel,
	                                     .pool = call->options->pool,
	                                     .flags = call->options->flags,
	                                     .trace = call->options->trace,
	                                     .random_step = call->options->random_step};
	enum weir_status status = make_results(call, error);

	if (status == WEIR_OK)
		status = weiri_session_run("weir_monitored_run", call->monitored->life.session, &signature, &request,
		                           call->results, error);
	call->has_run = status == WEIR_OK;
	return status;
}

/* Gives the caller its results, if the status is WEIR_OK, and releases all that is left. */
static void end_call(weir_monitored_call *call, enum weir_status status, weir_tensor *results[])
{
	const weir_allocator *allocator = &call->monitored->allocator;
	size_t given = status == WEIR_OK ? call->caller_fetches : 0;

	for (size_t i = 0; i < given; i++)
		results[i] = call->results[i];
	for (size_t i = given; call->has_run && i < call->fetch_count; i++)
		weir_tensor_release(call->results[i]);
	if (call->results != call->few)
		weiri_release(allocator, call->results, call->fetch_count * sizeof(weir_tensor *), _Alignof(weir_tensor *));
	for (size_t i = call->caller_feeds; i < call->feed_count; i++)
		weir_tensor_release(call->all_feeds[i].feed.value);
	weiri_release(allocator, call->all_feeds, call->feed_room * sizeof(struct fed), _Alignof(max_align_t));
	weiri_release(allocator, call->all_fetches, call->fetch_room * sizeof(weir_output), _Alignof(max_align_t));
}

/* What weir_monitored_run() was given. */
struct run {
	weir_monitored_call call;
	weir_tensor **results;
};

/* Inside a life. The call is a copy, as a repetition needs it anew. */
static enum weir_status run_once(weir_monitored *monitored, void *context, weir_error *error)
{
	const struct run *run = context;
	weir_monitored_call call = run->call;
	enum weir_status status = run_hooks(&call, error);

	if (status == WEIR_OK)
		status = run_step(&call, error);
	if (status == WEIR_OK)
		status = run_hooks(&call, error);
	if (status == WEIR_OK)
		status = weiri_checkpoints_run(monitored, error);
	end_call(&call, status, run->results);
	return status;
}

static enum weir_status check_arguments(const struct run *run, weir_error *error)
{
	const char *missing = NULL;

	if (run->call.monitored == NULL)
		missing = "monitored";
	else if (run->call.feeds == NULL && run->call.caller_feeds > 0)
		missing = "feeds";
	else if (run->call.fetches == NULL && run->call.caller_fetches > 0)
		missing = "fetches";
	else if (run->results == NULL && run->call.caller_fetches > 0)
		missing = "results";
	else if (run->call.targets == NULL && run->call.target_count > 0)
		missing = "targets";
	return missing == NULL ? WEIR_OK
	                       : weiri_fail(error, WEIR_INVALID_ARGUMENT, "weir_monitored_run: %s is NULL", missing);
}

enum weir_status weir_monitored_run(weir_monitored *monitored, const struct weir_feed feeds[], size_t feed_count,
                                    const weir_output fetches[], size_t fetch_count, weir_tensor *results[],
                                    weir_node *const targets[], size_t target_count, uint64_t deadline_ns,
                                    weir_cancel *cancel, const struct weir_run_options *given, weir_error *error)
{
	struct weir_run_options options;
	struct run run = {.call = {.monitored = monitored,
	                           .deadline_ns = deadline_ns,
	                           .feeds = feeds,
	                           .fetches = fetches,
	                           .caller_feeds = feed_count,
	                           .caller_fetches = fetch_count,
	                           .feed_count = feed_count,
	                           .fetch_count = fetch_count,
	                           .targets = targets,
	                           .target_count = target_count,
	                           .cancel = cancel,
	                           .options = &options},
	                  .results = results};
	enum weir_status status = check_arguments(&run, error);
	weir_error why = {WEIR_OK, ""};

	if (status == WEIR_OK)
		status = weiri_run_options("weir_monitored_run", given, WEIR_RUN_ON_CALLER, &options, error);
	if (status != WEIR_OK)
		return status;
	switch (weiri_monitored_inside(monitored)) {
	case WEIRI_IN_HOOK:
		return weiri_fail(error, WEIR_FAILED_PRECONDITION, "weir_monitored_run: called inside a hook of \"%s\"",
		                  monitored->settings.name);
	case WEIRI_IN_STEP:
		if (weiri_latch_is_set(&monitored->stop))
			return weiri_fail(error, WEIR_FAILED_PRECONDITION, "monitored session \"%s\": a stop was requested",
			                  monitored->settings.name);
		status = run_once(monitored, &run, &why);
		if (status != WEIR_OK && error != NULL)
			*error = why;
		return status;
	case WEIRI_OUTSIDE: break;
	}
	return weiri_visit(monitored, run_once, &run, deadline_ns, cancel, error);
}
