/*
 * area.c - see area.h.
 */
#include "areas/area.h"

#include <stdalign.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "sync/registry.h"

static size_t state_size(size_t content_size)
{
	return sizeof(struct weiri_area_state) + content_size;
}

static void state_reclaim(struct weiri_retired *retired)
{
	struct weiri_area_state *state = WEIRI_CONTAINER_OF(retired, struct weiri_area_state, retired);
	weir_allocator allocator = state->allocator;

	weiri_release(&allocator, state, state->size, alignof(struct weiri_area_state));
}

/* Returns NULL if there is no memory. */
static struct weiri_area_state *state_create(const weir_allocator *allocator, const void *content, size_t content_size)
{
	size_t size = state_size(content_size);
	struct weiri_area_state *state = weiri_allocate(allocator, size, alignof(struct weiri_area_state));

	if (state == NULL)
		return NULL;
	weiri_retired_init(&state->retired, size, state_reclaim);
	state->size = size;
	state->allocator = *allocator;
	memcpy(state->content, content, content_size);
	return state;
}

bool weiri_area_publish(struct weiri_scope *scope, struct weiri_area *area, struct weiri_area_state *state,
                        const void *content, struct weiri_tree_edit *edit, enum weir_status *status)
{
	struct weiri_area_state *next = state_create(&area->allocator, content, area->kind->content_size);

	/* [S, P1] */
	return weiri_tree_publish(edit, scope, &area->state, &state->retired, next != NULL ? &next->retired : NULL, status);
}

/* -- messages ---------------------------------------------------------------------------------- */

enum weir_status weiri_area_record(const struct weiri_area *area, struct weiri_record **record, weir_error *error)
{
	*record = weiri_record_get();
	if (*record != NULL)
		return WEIR_OK;
	return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "%s \"%s\": no memory for this thread's record", area->kind->name,
	                  area->name);
}

enum weir_status weiri_area_no_memory(const struct weiri_area *area, const char *verb, weir_error *error)
{
	return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "%s \"%s\": no memory to %s", area->kind->name, area->name, verb);
}

enum weir_status weiri_area_check_done(const struct weiri_area *area, bool has_done, weir_error *error)
{
	if (has_done)
		return WEIR_OK;
	return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s \"%s\": done is NULL", area->kind->name, area->name);
}

const char *weiri_area_number(char text[WEIRI_AREA_NUMBER_SIZE], size_t number, size_t most)
{
	if (most != 0)
		(void)snprintf(text, WEIRI_AREA_NUMBER_SIZE, "%zu of %zu", number, most);
	else
		(void)snprintf(text, WEIRI_AREA_NUMBER_SIZE, "%zu", number);
	return text;
}

/* -- creating and destroying ------------------------------------------------------------------- */

static void release(struct weiri_area *area)
{
	weir_allocator allocator = area->allocator;

	weiri_release(&allocator, area, area->memory_size, WEIRI_APART);
}

/* Allocates the object with its components and its name. Returns NULL if there is no memory. */
static struct weiri_area *allocate(const struct weiri_area_kind *kind, const struct weiri_area_plan *plan,
                                   const char *name)
{
	weir_allocator allocator = weiri_allocator_or_default(plan->allocator);
	size_t size = kind->size + plan->count * sizeof(struct weiri_component) + strlen(name) + 1;
	char *memory = weiri_allocate_zeroed(&allocator, size, WEIRI_APART);
	struct weiri_area *area = (struct weiri_area *)(void *)memory;

	if (area == NULL)
		return NULL;
	area->kind = kind;
	area->count = plan->count;
	area->memory_size = size;
	area->components = (struct weiri_component *)(void *)(memory + kind->size);
	area->allocator = allocator;
	for (size_t i = 0; i < plan->count; i++)
		weiri_component_fill(&area->components[i], &plan->components[i], i);
	area->name = memcpy(&area->components[plan->count], name, strlen(name) + 1);
	weiri_waitable_init(&area->waitable, kind->name, area->name);
	return area;
}

enum weir_status weiri_area_create(const struct weiri_area_kind *kind, const struct weiri_area_plan *plan,
                                   struct weiri_area **out, weir_error *error)
{
	const char *name = plan->name != NULL ? plan->name : kind->name;
	enum weir_status status = weiri_components_check(kind->name, plan->components, plan->count, error);
	struct weiri_area_state *state = NULL;
	struct weiri_area *area;

	if (status != WEIR_OK)
		return status;
	area = weiri_record_get() != NULL ? allocate(kind, plan, name) : NULL;
	if (area != NULL)
		state = state_create(&area->allocator, kind->content, kind->content_size);
	if (state == NULL) {
		if (area != NULL)
			release(area);
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "%s \"%s\": no memory", kind->name, name);
	}
	weiri_store_relaxed(&area->state, &state->retired); /* [relaxed] not shared yet */
	*out = area;
	return WEIR_OK;
}

static void free_registered(void *area)
{
	weiri_area_free(area);
}

static struct weiri_waitable *waitable_of(void *area)
{
	return &((struct weiri_area *)area)->waitable;
}

static void tell(const struct weiri_scope *scope, const void *object, char *text, size_t size)
{
	const struct weiri_area *area = object;

	area->kind->tell(area, weiri_area_read(scope, area)->content, text, size);
}

static const struct weiri_registered_kind area_registered = {
	.free = free_registered, .waitable = waitable_of, .tell = tell};

enum weir_status weiri_area_enter(struct weiri_area *area, weir_error *error)
{
	enum weir_status status;

	area->registered =
		weiri_registry_add(weiri_record_get(), &area_registered, area); /* creating the area has found a record */
	if (area->registered != NULL)
		return WEIR_OK;
	status = weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "%s \"%s\": no memory", area->kind->name, area->name);
	weiri_area_free(area);
	return status;
}

void weiri_area_free(struct weiri_area *area)
{
	/* [relaxed] all other calls happen before this one. */
	struct weiri_area_state *last =
		WEIRI_CONTAINER_OF(weiri_load_relaxed(&area->state), struct weiri_area_state, retired);

	area->kind->empty(area, last->content);
	state_reclaim(&last->retired);
	release(area);
}

enum weir_status weiri_area_destroy(struct weiri_area *area, weir_error *error)
{
	enum weir_status status = weiri_waitable_check_idle(&area->waitable, error);
	struct weiri_record *record;

	if (status == WEIR_OK)
		status = weiri_area_record(area, &record, error);
	if (status != WEIR_OK)
		return status;
	weiri_visits_end_of(&area->waitable); /* a completion may destroy the area; the call that runs it goes on */
	if (weiri_registry_remove(record, area->registered)) /* false: a dump reads it, and frees it */
		weiri_area_free(area);
	return WEIR_OK;
}
