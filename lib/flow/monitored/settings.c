/*
 * settings.c - the options of a monitored session, checked, and copied into one block.
 */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/options.h"
#include "graph/layout.h"
#include "monitored/monitored.h"

static const char create_call[] = "weir_monitored_create";

/* -- checks ------------------------------------------------------------------------------------ */

static enum weir_status check_hooks(const struct weir_monitored_options *options, weir_error *error)
{
	enum weir_status status = WEIR_OK;

	for (size_t i = 0; status == WEIR_OK && i < options->hook_count; i++) {
		struct weir_monitored_hook hook;

		if (options->hooks[i] == NULL)
			return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: hook %zu is NULL", create_call, i);
		status = weiri_options_read("weir_monitored_create: a hook", options->hooks[i], &hook, sizeof(hook), error);
	}
	return status;
}

static enum weir_status check_runners(const struct weir_monitored_options *options, weir_error *error)
{
	for (size_t i = 0; i < options->runner_count; i++) {
		const struct weir_monitored_runner *runner = &options->runners[i];

		if (runner->nodes == NULL || runner->node_count == 0 || runner->queue == NULL)
			return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: runner %zu has no %s", create_call, i,
			                  runner->queue == NULL ? "queue" : "nodes");
	}
	return WEIR_OK;
}

static enum weir_status check_checkpoint(const struct weir_monitored_options *options, weir_error *error)
{
	if ((options->path != NULL) != (options->variable_count > 0))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: a checkpoint needs both a path and variables, got only %s",
		                  create_call, options->path != NULL ? "a path" : "variables");
	if (options->path == NULL && (options->save_every_runs != 0 || options->save_every_ns != 0))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: checkpoints are to be saved, but there is no path",
		                  create_call);
	for (size_t i = 0; i < options->variable_count; i++) {
		if (options->variables[i].var == NULL)
			return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: variable %zu is NULL", create_call, i);
	}
	return WEIR_OK;
}

static enum weir_status check_codes(const struct weir_monitored_options *options, weir_error *error)
{
	const uint64_t clean = WEIR_COORDINATOR_CLEAN(WEIR_OK) | WEIR_COORDINATOR_CLEAN(WEIR_OUT_OF_RANGE);

	if ((options->recover_codes & clean) != 0)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT,
		                  "%s: recover_codes has a clean end, WEIR_OK or WEIR_OUT_OF_RANGE", create_call);
	if ((options->flags & WEIR_MONITORED_NO_RECOVERY) != 0 && options->recover_codes != 0)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: recover_codes together with WEIR_MONITORED_NO_RECOVERY",
		                  create_call);
	return WEIR_OK;
}

static enum weir_status check_arrays(const struct weir_monitored_options *options, weir_error *error)
{
	const char *missing = NULL;

	if (options->hooks == NULL && options->hook_count > 0)
		missing = "hooks";
	else if (options->runners == NULL && options->runner_count > 0)
		missing = "runners";
	else if (options->variables == NULL && options->variable_count > 0)
		missing = "variables";
	else if (options->make == NULL)
		missing = "make";
	return missing == NULL ? WEIR_OK : weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: %s is NULL", create_call, missing);
}

static enum weir_status check(const struct weir_monitored_options *options, weir_error *error)
{
	enum weir_status status = weiri_options_flags(create_call, options->flags, WEIR_MONITORED_NO_RECOVERY, error);

	if (status == WEIR_OK)
		status = check_arrays(options, error);
	if (status == WEIR_OK)
		status = check_hooks(options, error);
	if (status == WEIR_OK)
		status = check_runners(options, error);
	if (status == WEIR_OK)
		status = check_checkpoint(options, error);
	if (status == WEIR_OK)
		status = check_codes(options, error);
	return status;
}

/* -- the copy ---------------------------------------------------------------------------------- */

/* Where the parts are in the block. */
struct parts {
	size_t hooks, runners, made, nodes, variables, text;
	size_t size;
};

static size_t text_size(const char *text)
{
	return text != NULL ? strlen(text) + 1 : 0;
}

static struct parts lay_out(const struct weir_monitored_options *options)
{
	struct weiri_layout layout = {0};
	size_t nodes = 0, text = text_size(options->path);
	struct parts parts;

	for (size_t i = 0; i < options->runner_count; i++)
		nodes += options->runners[i].node_count;
	for (size_t i = 0; i < options->variable_count; i++)
		text += text_size(options->variables[i].name);
	parts.hooks = weiri_layout_add(&layout, options->hook_count, sizeof(struct weiri_hook));
	parts.runners = weiri_layout_add(&layout, options->runner_count, sizeof(struct weir_monitored_runner));
	parts.made = weiri_layout_add(&layout, options->runner_count, sizeof(weir_queue_runner *));
	parts.nodes = weiri_layout_add(&layout, nodes, sizeof(weir_node *));
	parts.variables = weiri_layout_add(&layout, options->variable_count, sizeof(struct weir_checkpoint_part));
	parts.text = weiri_layout_add(&layout, text, 1);
	parts.size = layout.size;
	return parts;
}

static void copy_hooks(struct weiri_hook *hooks, const struct weir_monitored_options *options)
{
	for (size_t i = 0; i < options->hook_count; i++) {
		struct weiri_hook *hook = &hooks[i];

		/* It was read before without an error. */
		(void)weiri_options_read(create_call, options->hooks[i], &hook->calls, sizeof(hook->calls), NULL);
		if (hook->calls.name != NULL)
			(void)snprintf(hook->name, sizeof(hook->name), "%s", hook->calls.name);
		else
			(void)snprintf(hook->name, sizeof(hook->name), "%zu", i);
		hook->calls.name = hook->name;
	}
}

static void copy_runners(struct weir_monitored_runner *runners, weir_node **nodes,
                         const struct weir_monitored_options *options)
{
	for (size_t i = 0; i < options->runner_count; i++) {
		runners[i] = options->runners[i];
		(void)memcpy(nodes, runners[i].nodes, runners[i].node_count * sizeof(nodes[0]));
		runners[i].nodes = nodes;
		nodes += runners[i].node_count;
	}
}

/* Copies a string to *at, which moves behind it. Returns the copy; NULL for NULL. */
static const char *copy_text(char **at, const char *text)
{
	char *copy = *at;

	if (text == NULL)
		return NULL;
	(void)memcpy(copy, text, text_size(text));
	*at += text_size(text);
	return copy;
}

static void copy_into(weir_monitored *monitored, void *block, const struct parts *parts,
                      const struct weir_monitored_options *options)
{
	struct weiri_settings *settings = &monitored->settings;
	char *text = weiri_layout_at(block, parts->text);

	settings->hooks = weiri_layout_at(block, parts->hooks);
	copy_hooks(settings->hooks, options);
	settings->runners = weiri_layout_at(block, parts->runners);
	copy_runners(settings->runners, weiri_layout_at(block, parts->nodes), options);
	settings->variables = weiri_layout_at(block, parts->variables);
	for (size_t i = 0; i < options->variable_count; i++)
		settings->variables[i] =
			(struct weir_checkpoint_part){copy_text(&text, options->variables[i].name), options->variables[i].var};
	settings->path = copy_text(&text, options->path);
	monitored->life.runners = weiri_layout_at(block, parts->made);
}

static enum weir_status destroy_session(void *context, weir_session *session, weir_error *error)
{
	(void)context;
	return weir_session_destroy(session, error);
}

static void set_plain(struct weiri_settings *settings, const struct weir_monitored_options *options)
{
	settings->flags = options->flags;
	settings->make = options->make;
	settings->unmake = options->unmake != NULL ? options->unmake : destroy_session;
	settings->context = options->context;
	settings->hook_count = options->hook_count;
	settings->runner_count = options->runner_count;
	settings->variable_count = options->variable_count;
	settings->save_every_runs = options->save_every_runs;
	settings->save_every_ns = options->save_every_ns;
	settings->recover_limit = options->recover_limit;
	settings->grace_ns = options->grace_ns != 0 ? options->grace_ns : WEIR_COORDINATOR_GRACE_NS;
	settings->recover_codes = options->recover_codes;
	if (options->recover_codes == 0 && (options->flags & WEIR_MONITORED_NO_RECOVERY) == 0)
		settings->recover_codes = WEIR_COORDINATOR_CLEAN(WEIR_UNAVAILABLE);
	(void)snprintf(settings->name, sizeof(settings->name), "%s",
	               options->name != NULL ? options->name : "monitored session");
}

enum weir_status weiri_settings_read(const struct weir_monitored_options *options, weir_monitored *monitored,
                                     weir_error *error)
{
	enum weir_status status = check(options, error);
	struct parts parts;
	void *block = NULL;

	if (status != WEIR_OK)
		return status;
	parts = lay_out(options);
	if (parts.size > 0) {
		block = weiri_allocate_zeroed(&monitored->allocator, parts.size, WEIRI_LAYOUT_ALIGNMENT);
		if (block == NULL)
			return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "%s: no memory", create_call);
		copy_into(monitored, block, &parts, options);
	}
	monitored->settings.block = block;
	monitored->settings.block_size = parts.size;
	set_plain(&monitored->settings, options);
	return WEIR_OK;
}

void weiri_settings_free(weir_monitored *monitored)
{
	weiri_release(&monitored->allocator, monitored->settings.block, monitored->settings.block_size,
	              WEIRI_LAYOUT_ALIGNMENT);
}
