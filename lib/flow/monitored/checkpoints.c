/*
 * checkpoints.c - the checkpoint of a monitored session: restored when a life begins, saved when due.
 *
 * A thread that finds that a save is due takes the turn `saves`. If another thread has it, that may have
 * read the variables already: a save that is due by the count of runs then is left to it, by a seize
 * (data/turn.h). It saves again before it gives the turn up, so the save is not lost and no thread
 * waits. If runs make saves due faster than one is written, the thread with the turn goes on saving. What
 * is due by time is due at the next run still, and is not left to anybody. A clean end saves once more.
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

/* With the turn, which it gives up. Returns the first failure. */
static enum weir_status save_while_due(weir_monitored *monitored, bool due, weir_error *error)
{
	enum weir_status first = WEIR_OK;

	do {
		weir_error why = {WEIR_OK, ""};
		enum weir_status status = WEIR_OK;

		if (due || weir_now_ns() >= monitored->next_save_ns)
			status = weiri_checkpoints_save(monitored, &why);
		if (first == WEIR_OK && status != WEIR_OK) {
			first = status;
			*error = why;
		}
		due = true; /* if the turn was seized meanwhile */
	} while (!weiri_turn_yield(&monitored->saves));
	return first;
}

enum weir_status weiri_checkpoints_run(weir_monitored *monitored, weir_error *error)
{
	const struct weiri_settings *settings = &monitored->settings;
	bool due = false, has_turn;

	if (settings->save_every_runs != 0)
		due = (weiri_serial_take(&monitored->runs) + 1) % settings->save_every_runs == 0;
	if (!due && settings->save_every_ns == 0)
		return WEIR_OK;
	has_turn = due ? weiri_turn_seize(&monitored->saves) : weiri_turn_take(&monitored->saves);
	return has_turn ? save_while_due(monitored, due, error) : WEIR_OK;
}
