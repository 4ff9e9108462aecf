/*
 * life.c - how a life of a monitored session begins and ends.
 *
 * Each step of the end undoes one step of the begin, if that has happened, and leaves NULL or 0. So
 * a begin that fails ends what there is, and an end that fails can be tried again.
 *
 * A stop of the coordinator, whoever requests it, comes first to on_stop(). If the reason recovers,
 * the session is closed, so that the runs under way notice; the queues stay as they are, for the next
 * life. Otherwise the queues of the runners are closed, so that their consumers end. This is why the
 * runners themselves cancel nothing.
 */
#include "base/assert.h"
#include "base/error.h"
#include "monitored/monitored.h"
#include "run/coordinator.h"
#include "session/runner.h"

#include <stdio.h>
#include <string.h>

/* -- the stop ---------------------------------------------------------------------------------- */

static void close_queues(const struct weiri_settings *settings, const weir_error *cause)
{
	for (size_t i = 0; i < settings->runner_count; i++)
		(void)weir_tensor_queue_close(settings->runners[i].queue, WEIR_CLOSE_CANCEL, cause);
}

void weiri_life_close_queues(weir_monitored *monitored)
{
	weir_error cause = {WEIR_CANCELLED, ""};

	(void)weiri_fail(&cause, WEIR_CANCELLED, "monitored session \"%s\" is closed", monitored->settings.name);
	close_queues(&monitored->settings, &cause);
}

/* Runs once, on the thread that stops the coordinator. */
static void on_stop(void *context)
{
	weir_monitored *monitored = context;
	struct weiri_life *life = &monitored->life;
	weir_error cause = {WEIR_OK, ""};
	enum weir_status status = weir_coordinator_status(life->coordinator, &cause);

	if (weiri_latch_is_set(&life->replaced) || weiri_settings_recover(&monitored->settings, status)) {
		(void)weir_session_close(life->session, &cause);
	} else {
		if (status == WEIR_OK)
			(void)weir_cancel_cause(weir_coordinator_cancel(life->coordinator), &cause);
		close_queues(&monitored->settings, &cause);
	}
	/* From here on the life may have ended. */
	weiri_gate_leave(&life->stop_told);
}

static enum weir_status watch_stop(weir_monitored *monitored, weir_error *error)
{
	struct weiri_life *life = &monitored->life;
	enum weir_status status;

	weiri_gate_init(&life->stop_told);
	(void)weiri_gate_enter(&life->stop_told);
	status = weir_coordinator_on_stop(life->coordinator, on_stop, monitored, &life->stop_hook);
	return status == WEIR_OK
	           ? WEIR_OK
	           : weiri_fail(error, status, "monitored session \"%s\": no memory", monitored->settings.name);
}

/* Waits until on_stop() has ended. The coordinator has stopped. */
static void await_stop_told(struct weiri_life *life)
{
	if (life->stop_hook == NULL)
		return;
	if (weir_cancel_off(life->stop_hook))
		weiri_gate_leave(&life->stop_told);
	(void)weiri_gate_close(&life->stop_told);
	weiri_gate_wait(&life->stop_told);
	life->stop_hook = NULL;
}

/* -- the end ----------------------------------------------------------------------------------- */

/* Ends the threads that the coordinator knows. */
static enum weir_status end_threads(weir_monitored *monitored, weir_error *error)
{
	struct weiri_life *life = &monitored->life;
	weir_error why = {WEIR_OK, ""};
	enum weir_status status = WEIR_OK;

	(void)weir_coordinator_request_stop(life->coordinator, NULL);
	(void)weir_coordinator_join(life->coordinator, WEIR_NO_DEADLINE, monitored->settings.grace_ns, 0, NULL);
	await_stop_told(life);
	while (status == WEIR_OK && life->runner_count > 0) {
		status = weir_queue_runner_destroy(life->runners[life->runner_count - 1], &why);
		if (status == WEIR_OK)
			life->runner_count--;
	}
	if (status == WEIR_OK)
		status = weir_coordinator_destroy(life->coordinator, &why);
	if (status != WEIR_OK)
		return weiri_fail(error, WEIR_DEADLINE_EXCEEDED, "monitored session \"%s\": %s", monitored->settings.name,
		                  why.message);
	life->coordinator = NULL;
	return WEIR_OK;
}

enum weir_status weiri_life_end(weir_monitored *monitored, weir_error *error)
{
	const struct weiri_settings *settings = &monitored->settings;
	struct weiri_life *life = &monitored->life;
	weir_error why = {WEIR_OK, ""};
	enum weir_status status;

	WEIR_ASSERT1(M1, weiri_gate_is_drained(&life->gate));
	if (life->coordinator != NULL) {
		status = end_threads(monitored, error);
		if (status != WEIR_OK)
			return status;
	}
	if (life->session == NULL)
		return WEIR_OK;
	status = settings->unmake(settings->context, life->session, &why);
	weiri_error_end(&why);
	if (status != WEIR_OK)
		return weiri_fail(error, status, "monitored session \"%s\": unmake: %s", settings->name,
		                  why.message[0] != '\0' ? why.message : weir_status_name(status));
	life->session = NULL;
	return WEIR_OK;
}

void weiri_life_drain(weir_monitored *monitored)
{
	(void)weiri_gate_close(&monitored->life.gate);
	weiri_gate_wait(&monitored->life.gate);
	monitored->life.open = false;
}

/* -- the begin --------------------------------------------------------------------------------- */

static enum weir_status make_session(weir_monitored *monitored, weir_error *error)
{
	const struct weiri_settings *settings = &monitored->settings;
	weir_session *session = NULL;
	weir_error why = {WEIR_OK, ""};
	enum weir_status status = settings->make(settings->context, &session, &why);

	weiri_error_end(&why);
	if (status == WEIR_OK && session == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "monitored session \"%s\": make made no session",
		                  settings->name);
	if (status != WEIR_OK)
		return weiri_fail(error, status, "monitored session \"%s\": make: %s", settings->name,
		                  why.message[0] != '\0' ? why.message : weir_status_name(status));
	monitored->life.session = session;
	return WEIR_OK;
}

static enum weir_status make_coordinator(weir_monitored *monitored, weir_error *error)
{
	struct weir_coordinator_options options = {WEIR_COORDINATOR_OPTIONS_INIT, .name = monitored->settings.name,
	                                           .allocator = &monitored->allocator};
	enum weir_status status = weir_coordinator_create(&options, &monitored->life.coordinator, error);

	if (status != WEIR_OK)
		return status;
	weiri_coordinator_set_group(monitored->life.coordinator, monitored);
	return watch_stop(monitored, error);
}

static enum weir_status start_runners(weir_monitored *monitored, weir_error *error)
{
	const struct weiri_settings *settings = &monitored->settings;
	struct weiri_life *life = &monitored->life;
	enum weir_status status = WEIR_OK;

	for (size_t i = 0; status == WEIR_OK && i < settings->runner_count; i++) {
		const struct weir_monitored_runner *runner = &settings->runners[i];
		struct weir_queue_runner_options options = {WEIR_QUEUE_RUNNER_OPTIONS_INIT, .allocator = &monitored->allocator};

		status = weiri_node_runner_create("weir_monitored_create", life->session, runner->nodes, runner->node_count,
		                                  runner->threads, runner->queue, &options, false, &life->runners[i], error);
		if (status == WEIR_OK) {
			life->runner_count++;
			status = weir_queue_runner_start(life->runners[i], life->coordinator, error);
		}
	}
	return status;
}

static enum weir_status tell_hooks(weir_monitored *monitored, weir_error *error)
{
	const struct weiri_settings *settings = &monitored->settings;
	enum weir_status status = WEIR_OK;
	weir_error why = {WEIR_OK, ""};
	struct weiri_monitored_mark mark;

	weiri_monitored_mark(&mark, monitored, WEIRI_IN_HOOK);
	for (size_t i = 0; status == WEIR_OK && i < settings->hook_count; i++) {
		const struct weiri_hook *hook = &settings->hooks[i];

		if (hook->calls.after_create == NULL)
			continue;
		status =
			hook->calls.after_create(hook->calls.context, monitored->life.session, monitored->life.coordinator, &why);
		if (status != WEIR_OK)
			status = weiri_hook_failed(hook, "after_create", status, &why);
	}
	weiri_monitored_unmark(&mark);
	if (status != WEIR_OK && error != NULL)
		*error = why;
	return status;
}

enum weir_status weiri_life_begin(weir_monitored *monitored, weir_error *error)
{
	struct weiri_life *life = &monitored->life;
	enum weir_status status = weiri_life_end(monitored, error); /* of what an earlier begin has left */

	if (status != WEIR_OK)
		return status;
	WEIR_ASSERT1(M3, life->session == NULL && life->coordinator == NULL && life->runner_count == 0);
	life->number++;
	weiri_latch_init(&life->replaced);
	status = make_session(monitored, error);
	if (status == WEIR_OK)
		status = weiri_checkpoints_begin(monitored, error);
	if (status == WEIR_OK)
		status = make_coordinator(monitored, error);
	if (status == WEIR_OK)
		status = start_runners(monitored, error);
	if (status == WEIR_OK)
		status = tell_hooks(monitored, error);
	if (status != WEIR_OK) {
		weiri_latch_set(&life->replaced); /* the queues stay open for the next try */
		(void)weiri_life_end(monitored, NULL);
		return status;
	}
	life->open = true;
	weiri_gate_open(&life->gate);
	return WEIR_OK;
}
