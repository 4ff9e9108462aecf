/*
 * monitored.c - creating, stopping and closing a monitored session, and its step functions.
 */
#include "monitored/monitored.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "graph/op.h"

/* -- creating ---------------------------------------------------------------------------------- */

static void free_monitored(weir_monitored *monitored)
{
	weir_allocator allocator = monitored->allocator;

	/* Nobody is inside. */
	(void)weir_critical_section_destroy(monitored->changes, NULL);
	weiri_settings_free(monitored);
	weiri_release(&allocator, monitored, sizeof(*monitored), _Alignof(weir_monitored));
}

static enum weir_status make_section(weir_monitored *monitored, weir_error *error)
{
	struct weir_critical_section_options options = {
		WEIR_CRITICAL_SECTION_OPTIONS_INIT, .name = monitored->settings.name, .allocator = &monitored->allocator};

	return weir_critical_section_create(&options, &monitored->changes, error);
}

static enum weir_status begin_hooks(weir_monitored *monitored, weir_error *error)
{
	const struct weiri_settings *settings = &monitored->settings;
	enum weir_status status = WEIR_OK;
	weir_error why = {WEIR_OK, ""};

	for (size_t i = 0; status == WEIR_OK && i < settings->hook_count; i++) {
		const struct weiri_hook *hook = &settings->hooks[i];

		if (hook->calls.begin != NULL)
			status = hook->calls.begin(hook->calls.context, &why);
		if (status != WEIR_OK)
			(void)weiri_hook_failed(hook, "begin", status, &why);
	}
	if (status != WEIR_OK && error != NULL)
		*error = why;
	return status;
}

/* Begins the first life. No other thread knows the monitored session. */
static enum weir_status begin_first(weir_monitored *monitored, weir_error *error)
{
	uint64_t recovered = 0;
	enum weir_status status;

	do
		status = weiri_life_begin(monitored, error);
	while (status != WEIR_OK && weiri_settings_recover(&monitored->settings, status) &&
	       (monitored->settings.recover_limit == 0 || recovered++ < monitored->settings.recover_limit));
	return status;
}

static enum weir_status create(const struct weir_monitored_options *options, weir_monitored **out, weir_error *error)
{
	weir_allocator allocator = weiri_allocator_or_default(options->allocator);
	weir_monitored *monitored = weiri_allocate_zeroed(&allocator, sizeof(*monitored), _Alignof(weir_monitored));
	enum weir_status status;

	if (monitored == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "weir_monitored_create: no memory");
	monitored->allocator = allocator;
	weiri_latch_init(&monitored->stop);
	weiri_latch_init(&monitored->closed);
	weiri_turn_init(&monitored->saves, WEIRI_TURN_FREE);
	weiri_serial_init(&monitored->runs);
	weiri_gate_init(&monitored->life.gate);
	(void)weiri_gate_close(&monitored->life.gate);
	status = weiri_settings_read(options, monitored, error);
	if (status == WEIR_OK)
		status = make_section(monitored, error);
	if (status == WEIR_OK)
		status = begin_hooks(monitored, error);
	if (status == WEIR_OK)
		status = begin_first(monitored, error);
	if (status == WEIR_OK)
		*out = monitored;
	else
		free_monitored(monitored);
	return status;
}

enum weir_status weir_monitored_create(const struct weir_monitored_options *given, weir_monitored **out,
                                       weir_error *error)
{
	struct weir_monitored_options options;
	weir_error why = {WEIR_OK, ""};
	enum weir_status status;

	if (given == NULL || out == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "weir_monitored_create: %s is NULL",
		                  given == NULL ? "options" : "out");
	status = weiri_options_read("weir_monitored_create", given, &options, sizeof(options), error);
	if (status != WEIR_OK)
		return status;
	/* A life that a retry replaces may have failed before the one that begins. */
	status = create(&options, out, &why);
	if (status != WEIR_OK && error != NULL)
		*error = why;
	return status;
}

/* -- stopping ---------------------------------------------------------------------------------- */

enum weir_status weir_monitored_request_stop(weir_monitored *monitored)
{
	if (monitored == NULL)
		return WEIR_INVALID_ARGUMENT;
	weiri_latch_set(&monitored->stop);
	return WEIR_OK;
}

bool weir_monitored_should_stop(weir_monitored *monitored)
{
	struct weiri_life *life;
	bool stops;

	if (monitored == NULL || weiri_latch_is_set(&monitored->stop) || weiri_latch_is_set(&monitored->closed))
		return true;
	life = &monitored->life;
	if (!weiri_gate_enter(&life->gate))
		return false; /* a recovery is under way */
	stops = weir_coordinator_should_stop(life->coordinator) && !weiri_latch_is_set(&life->replaced) &&
	        !weiri_settings_recover(&monitored->settings, weir_coordinator_status(life->coordinator, NULL));
	weiri_gate_leave(&life->gate);
	return stops;
}

/* -- steps ------------------------------------------------------------------------------------- */

struct step {
	weir_monitored_session_fn *fn;
	void *context;
};

static enum weir_status run_step_function(weir_monitored *monitored, void *context, weir_error *error)
{
	const struct step *step = context;

	return step->fn(step->context, monitored->life.session, error);
}

enum weir_status weir_monitored_step(weir_monitored *monitored, weir_monitored_session_fn *fn, void *context,
                                     weir_error *error)
{
	struct step step = {fn, context};

	if (monitored == NULL || fn == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "weir_monitored_step: %s is NULL",
		                  monitored == NULL ? "monitored" : "fn");
	if (weiri_monitored_inside(monitored) != WEIRI_OUTSIDE)
		return weiri_fail(error, WEIR_FAILED_PRECONDITION,
		                  "weir_monitored_step: called inside a hook or step of \"%s\"", monitored->settings.name);
	return weiri_visit(monitored, run_step_function, &step, WEIR_NO_DEADLINE, NULL, error);
}

/* -- closing ----------------------------------------------------------------------------------- */

static bool is_clean(enum weir_status loop)
{
	return loop == WEIR_OK || loop == WEIR_OUT_OF_RANGE;
}

/* Calls `end` of all hooks. Returns the first failure. */
static enum weir_status end_hooks(weir_monitored *monitored, weir_error *error)
{
	const struct weiri_settings *settings = &monitored->settings;
	enum weir_status first = WEIR_OK;
	struct weiri_monitored_mark mark;

	weiri_monitored_mark(&mark, monitored, WEIRI_IN_HOOK);
	for (size_t i = 0; i < settings->hook_count; i++) {
		const struct weiri_hook *hook = &settings->hooks[i];
		weir_error why = {WEIR_OK, ""};
		enum weir_status status =
			hook->calls.end != NULL ? hook->calls.end(hook->calls.context, monitored->life.session, &why) : WEIR_OK;

		if (status != WEIR_OK && first == WEIR_OK) {
			first = weiri_hook_failed(hook, "end", status, &why);
			*error = why;
		}
	}
	weiri_monitored_unmark(&mark);
	return first;
}

/* Ends the loop: the runs and steps, and after a clean end the hooks. Once. */
static void end_loop(weir_monitored *monitored, enum weir_status loop)
{
	struct weiri_life *life = &monitored->life;
	weir_error *failure = &monitored->end_failure;
	weir_error cause;

	monitored->loop = loop;
	monitored->loop_told = true;
	failure->code = WEIR_OK;
	if (!life->open)
		return;
	if (!is_clean(loop)) {
		(void)weiri_fail(&cause, WEIR_CANCELLED, "monitored session \"%s\" was closed", monitored->settings.name);
		(void)weir_session_close(life->session, &cause);
	}
	weiri_life_drain(monitored);
	if (!is_clean(loop))
		return;
	failure->code = end_hooks(monitored, failure);
	if (failure->code == WEIR_OK)
		failure->code = weiri_checkpoints_save(monitored, failure);
}

/* The outcome of a close, once everything has ended. */
static enum weir_status tell_outcome(const weir_monitored *monitored, weir_error *error)
{
	const weir_error *told = &monitored->reported;

	if (told->code == WEIR_OK && !is_clean(monitored->loop))
		return monitored->loop;
	if (told->code == WEIR_OK)
		told = &monitored->end_failure;
	if (told->code != WEIR_OK && error != NULL)
		*error = *told;
	return told->code;
}

struct closing {
	weir_monitored *monitored;
	enum weir_status loop;
	bool begun;
	weir_error *error;
};

/* In `changes`. */
static enum weir_status close_all(void *context, weir_error *error)
{
	struct closing *closing = context;
	weir_monitored *monitored = closing->monitored;
	enum weir_status status;

	closing->begun = true;
	weiri_latch_set(&monitored->closed);
	if (!monitored->loop_told)
		end_loop(monitored, closing->loop);
	if (!monitored->has_ended) {
		if (monitored->life.coordinator != NULL) {
			(void)weir_coordinator_request_stop(monitored->life.coordinator, NULL);
			monitored->reported.code = weir_coordinator_status(monitored->life.coordinator, &monitored->reported);
		}
		status = weiri_life_end(monitored, error);
		if (status != WEIR_OK)
			return status;
		/* A stop that was to recover, and a recovery that failed, have left them open. */
		weiri_life_close_queues(monitored);
		monitored->has_ended = true;
	}
	return WEIR_OK;
}

static enum weir_status close(weir_monitored *monitored, enum weir_status loop, weir_error *error)
{
	struct closing closing = {.monitored = monitored, .loop = loop};
	weir_error why = {WEIR_OK, ""};
	enum weir_status status;

	/* An interrupt of the thread does not end the wait for another one that closes or recovers. */
	do
		status = weir_critical_section_execute(monitored->changes, close_all, &closing, WEIR_NO_DEADLINE, NULL, &why);
	while (status == WEIR_CANCELLED && !closing.begun);
	if (status != WEIR_OK && error != NULL)
		*error = why;
	return status;
}

static enum weir_status check_outside(const char *call, const weir_monitored *monitored, weir_error *error)
{
	if (weiri_monitored_inside(monitored) != WEIRI_OUTSIDE)
		return weiri_fail(error, WEIR_FAILED_PRECONDITION, "%s: called inside a hook or step of \"%s\"", call,
		                  monitored->settings.name);
	if (!weiri_belongs_to_life(monitored))
		return WEIR_OK;
	return weiri_fail(error, WEIR_FAILED_PRECONDITION, "%s: called %s", call,
	                  weiri_inside_kernel() ? "inside a kernel"
	                                        : "by a thread of the coordinator, which it would join");
}

enum weir_status weir_monitored_close(weir_monitored *monitored, enum weir_status loop, weir_error *error)
{
	enum weir_status status;

	if (monitored == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "weir_monitored_close: monitored is NULL");
	status = check_outside("weir_monitored_close", monitored, error);
	if (status == WEIR_OK)
		status = close(monitored, loop, error);
	return status == WEIR_OK ? tell_outcome(monitored, error) : status;
}

enum weir_status weir_monitored_destroy(weir_monitored *monitored, weir_error *error)
{
	enum weir_status status;

	if (monitored == NULL)
		return WEIR_OK;
	status = check_outside("weir_monitored_destroy", monitored, error);
	if (status != WEIR_OK)
		return status;
	if (close(monitored, WEIR_CANCELLED, error) != WEIR_OK) {
		if (error != NULL)
			error->code = WEIR_FAILED_PRECONDITION;
		return WEIR_FAILED_PRECONDITION;
	}
	free_monitored(monitored);
	return WEIR_OK;
}
