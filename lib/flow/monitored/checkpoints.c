/*
 * checkpoints.c - the checkpoint of a monitored session: restored when a life begins, saved when due.
 *
 * Whoever finds that a save is due tries to enter `saves`. If another thread is inside, a save with
 * later values than those of this thread's last run is under way or follows, so it does not wait. A
 * clean end saves once more.
 */
#include <stdio.h>

#include "base/error.h"
#include "monitored/monitored.h"

static struct weir_checkpoint_options options_of(const weir_monitored *monitored)
{
	return (struct weir_checkpoint_options){WEIR_CHECKPOINT_OPTIONS_INIT, .allocator = &monitored->allocator};
}

static void set_next(weir_monitored *monitored)
{
	if (monitored->settings.save_every_ns != 0)
		monitored->next_save_ns = weir_deadline_in(monitored->settings.save_every_ns);
}

enum weir_status weiri_checkpoints_save(weir_monitored *monitored, weir_error *error)
{
	const struct weiri_settings *settings = &monitored->settings;
	struct weir_checkpoint_options options = options_of(monitored);
	enum weir_status status;

	if (settings->path == NULL)
		return WEIR_OK;
	status = weir_checkpoint_save(settings->variables, settings->variable_count, settings->path, &options, error);
	if (status == WEIR_OK)
		set_next(monitored);
	return status;
}

enum weir_status weiri_checkpoints_begin(weir_monitored *monitored, weir_error *error)
{
	const struct weiri_settings *settings = &monitored->settings;
	struct weir_checkpoint_options options = options_of(monitored);
	enum weir_status status;

	if (settings->path == NULL)
		return WEIR_OK;
	status = weir_checkpoint_restore(settings->variables, settings->variable_count, settings->path, &options,
	                                 WEIR_NO_DEADLINE, error);
	if (status == WEIR_NOT_FOUND)
		return weiri_checkpoints_save(monitored, error);
	set_next(monitored);
	return status;
}

struct save {
	weir_monitored *monitored;
	bool due;    /* by the count of runs; else the time decides */
	bool inside; /* it has been the one that may save */
};

/* In `saves`. */
static enum weir_status save_if_due(void *context, weir_error *error)
{
	struct save *save = context;
	weir_monitored *monitored = save->monitored;

	save->inside = true;
	if (!save->due && weir_now_ns() < monitored->next_save_ns)
		return WEIR_OK;
	return weiri_checkpoints_save(monitored, error);
}

enum weir_status weiri_checkpoints_run(weir_monitored *monitored, weir_error *error)
{
	const struct weiri_settings *settings = &monitored->settings;
	struct save save = {.monitored = monitored};
	enum weir_status status;

	if (settings->save_every_runs != 0)
		save.due = (weiri_serial_take(&monitored->runs) + 1) % settings->save_every_runs == 0;
	if (!save.due && settings->save_every_ns == 0)
		return WEIR_OK;
	status = weir_critical_section_execute(monitored->saves, save_if_due, &save, 0, NULL, error);
	return status == WEIR_DEADLINE_EXCEEDED && !save.inside ? WEIR_OK : status;
}
