/*
 * extent.h - a tensor as [outer, axis, inner], for ops along one axis. For all axes at once, outer and
 * inner are 1.
 */
#ifndef WEIRI_EXTENT_H
#define WEIRI_EXTENT_H

#include "graph/gradient.h"

struct weiri_extent {
	size_t outer, axis, inner;
};

/* The axis is one of the shape, or WEIRI_EVERY_AXIS. */
static inline struct weiri_extent weiri_extent_of(const weir_shape *shape, int axis)
{
	struct weiri_extent e = {1, 1, 1};

	for (uint32_t i = 0; i < shape->rank; i++) {
		size_t dim = (size_t)shape->dims[i];

		if (axis == WEIRI_EVERY_AXIS || (int)i == axis)
			e.axis *= dim;
		else if ((int)i < axis)
			e.outer *= dim;
		else
			e.inner *= dim;
	}
	return e;
}

/* Converts an axis to int. An axis that no tensor can have becomes WEIR_MAX_RANK, which is refused. */
static inline int weiri_axis(uint32_t axis)
{
	return axis < WEIR_MAX_RANK ? (int)axis : WEIR_MAX_RANK;
}

static inline void weiri_remove_axis(weir_shape *shape, uint32_t axis)
{
	shape->rank--;
	for (uint32_t i = axis; i < shape->rank; i++)
		shape->dims[i] = shape->dims[i + 1];
	shape->dims[shape->rank] = 0;
}

/* Refuses an axis, as weiri_axis() gives it, that x does not have. */
enum weir_status weiri_axis_check(const struct weiri_spec *x, int axis, weir_error *error);

/* Sets *out to x without the axis; for WEIRI_EVERY_AXIS to a scalar. Refuses an axis that x does not have. */
enum weir_status weiri_spec_without_axis(const struct weiri_spec *x, int axis, struct weiri_spec *out,
                                         weir_error *error);

#endif
