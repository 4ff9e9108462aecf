/*
 * view.h - a view, which is the knowledge of a thread, or the knowledge that a store carries to its
 * readers: for each location the oldest store that may still be read, and for each thread the clock
 * up to which its plain accesses are known.
 */
#ifndef WEIR_MODEL_VIEW_H
#define WEIR_MODEL_VIEW_H

#include <string.h>

#include "model/engine.h"

struct view {
	uint32_t clock[THREADS];
	uint32_t count; /* entries of oldest[] in use; the rest is 0 */
	uint32_t oldest[LOCATIONS];
};

static inline void view_clear(struct view *view)
{
	memset(view, 0, offsetof(struct view, oldest));
}

static inline uint32_t view_get(const struct view *view, uint32_t location)
{
	return location < view->count ? view->oldest[location] : 0;
}

static inline void view_reach(struct view *view, uint32_t count)
{
	while (view->count < count)
		view->oldest[view->count++] = 0;
}

static inline void view_set(struct view *view, uint32_t location, uint32_t number)
{
	view_reach(view, location + 1);
	if (view->oldest[location] < number)
		view->oldest[location] = number;
}

static inline void view_join_stores(struct view *to, const struct view *from)
{
	view_reach(to, from->count);
	for (uint32_t i = 0; i < from->count; i++)
		to->oldest[i] = to->oldest[i] > from->oldest[i] ? to->oldest[i] : from->oldest[i];
}

static inline void view_join(struct view *to, const struct view *from)
{
	for (unsigned t = 0; t < THREADS; t++)
		to->clock[t] = to->clock[t] > from->clock[t] ? to->clock[t] : from->clock[t];
	view_join_stores(to, from);
}

static inline void view_copy(struct view *to, const struct view *from)
{
	memcpy(to, from, offsetof(struct view, oldest));
	for (uint32_t i = 0; i < from->count; i++)
		to->oldest[i] = from->oldest[i];
}

#endif
