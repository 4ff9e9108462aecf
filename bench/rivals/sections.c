/*
 * sections.c - one execution at a time: our critical sections, and the usual alternative, a mutex.
 */
#include <pthread.h>
#include <stdlib.h>
#include <weir/critical_section.h>
#include <weir/time.h>

#include "rivals.h"

/* -- ours -------------------------------------------------------------------------------------- */

struct call {
	void (*body)(void *context);
	void *context;
};

static enum weir_status run(void *context, weir_error *error)
{
	const struct call *call = context;

	(void)error;
	call->body(call->context);
	return WEIR_OK;
}

static void *section_of(uint32_t flags)
{
	struct weir_critical_section_options options = {WEIR_CRITICAL_SECTION_OPTIONS_INIT, .flags = flags};
	weir_critical_section *section;

	if (weir_critical_section_create(&options, &section, NULL) != WEIR_OK)
		exit(3);
	return section;
}

static void *section_create(void)
{
	return section_of(0);
}

static void *fair_create(void)
{
	return section_of(WEIR_CRITICAL_SECTION_FAIR);
}

static void section_destroy(void *self)
{
	if (weir_critical_section_destroy(self, NULL) != WEIR_OK)
		exit(3);
}

static void section_execute(void *self, void (*body)(void *context), void *context)
{
	struct call call = {body, context};

	if (weir_critical_section_execute(self, run, &call, WEIR_NO_DEADLINE, NULL, NULL) != WEIR_OK)
		exit(3);
}

const struct section_contender weir_section_contender = {
	.about = {.name = "weir_critical_section"},
	.create = section_create,
	.destroy = section_destroy,
	.execute = section_execute,
};

const struct section_contender fair_section_contender = {
	.about = {.name = "weir_critical_section, fair"},
	.create = fair_create,
	.destroy = section_destroy,
	.execute = section_execute,
};

/* -- a mutex ----------------------------------------------------------------------------------- */

static void *mutex_create(void)
{
	pthread_mutex_t *mutex = malloc(sizeof(*mutex));

	if (mutex == NULL || pthread_mutex_init(mutex, NULL) != 0)
		exit(3);
	return mutex;
}

static void mutex_destroy(void *self)
{
	(void)pthread_mutex_destroy(self);
	free(self);
}

static void mutex_execute(void *self, void (*body)(void *context), void *context)
{
	(void)pthread_mutex_lock(self);
	body(context);
	(void)pthread_mutex_unlock(self);
}

const struct section_contender mutex_section_contender = {
	.about = {.name = "mutex", .lacks = "deadlines, tokens, asynchronous executions, the check for nested ones"},
	.create = mutex_create,
	.destroy = mutex_destroy,
	.execute = mutex_execute,
};
