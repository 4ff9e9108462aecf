/*
 * tensor_value.c - see tensor_value.h.
 */
#include "var/tensor_value.h"

#include "base/error.h"
#include "var/kind.h"

enum weir_status weiri_var_check(const weir_var *var, const weir_tensor *value, weir_error *error)
{
	char expected[96], got[96];

	if (var->kind != WEIR_VAR_TENSOR)
		return weiri_kind_check_tensors(var, "a write of a tensor", error);
	if (value == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "variable \"%s\": value is NULL", var->name);
	if (weir_tensor_dtype(value) != var->dtype)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "variable \"%s\": dtype must be %s, got %s", var->name,
		                  weir_dtype_name(var->dtype), weir_dtype_name(weir_tensor_dtype(value)));
	if (var->has_shape && !weir_shape_fits(&var->shape, weir_tensor_shape(value)))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "variable \"%s\": shape must fit %s, got %s", var->name,
		                  weir_shape_text(&var->shape, expected, sizeof(expected)),
		                  weir_shape_text(weir_tensor_shape(value), got, sizeof(got)));
	return WEIR_OK;
}
