/*
 * extent.c - see extent.h.
 */
#include "graph/extent.h"

#include "base/error.h"

enum weir_status weiri_axis_check(const struct weiri_spec *x, int axis, weir_error *error)
{
	char text[WEIRI_SPEC_TEXT_SIZE];

	if (axis < WEIR_MAX_RANK && (!x->ranked || (uint32_t)axis < x->shape.rank))
		return WEIR_OK;
	return weiri_fail(error, WEIR_INVALID_ARGUMENT, "there is no axis %d in %s", axis, weiri_spec_text(x, text));
}

enum weir_status weiri_spec_without_axis(const struct weiri_spec *x, int axis, struct weiri_spec *out,
                                         weir_error *error)
{
	enum weir_status status;

	if (axis == WEIRI_EVERY_AXIS) {
		*out = weiri_spec_scalar(x->dtype);
		return WEIR_OK;
	}
	status = weiri_axis_check(x, axis, error);
	if (status != WEIR_OK)
		return status;
	*out = *x;
	if (x->ranked)
		weiri_remove_axis(&out->shape, (uint32_t)axis);
	return WEIR_OK;
}
