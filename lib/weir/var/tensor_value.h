/*
 * tensor_value.h - variables whose values are tensors. The rest of this layer moves values
 * (reclaim/value.h) and knows no tensor, except where it computes with them: change.c, combine.c,
 * scatter.c, update.c.
 */
#ifndef WEIRI_VAR_TENSOR_VALUE_H
#define WEIRI_VAR_TENSOR_VALUE_H

#include "tensor/object.h"
#include "var/hold.h"

/* Returns WEIR_INVALID_ARGUMENT unless `value` has the variable's dtype and fits its shape. */
enum weir_status weiri_var_check(const weir_var *var, const weir_tensor *value, weir_error *error);

/*
 * Returns a new version, or NULL if there is no memory. `tensor` may be NULL. On success the
 * version takes over the caller's reference of `tensor`.
 */
static inline struct weiri_version *weiri_version_of_tensor(struct weiri_record *record, const weir_var *var,
                                                            weir_tensor *tensor)
{
	return weiri_version_create(record, var, tensor != NULL ? &tensor->value : NULL, tensor);
}

/* Returns the tensor of a version; NULL if it has no value. */
static inline weir_tensor *weiri_version_tensor(const struct weiri_version *version)
{
	return version->shown;
}

/* Returns a handle that has a reference of the tensor, so it pins no version. */
static inline weir_read weiri_hold_tensor(weir_tensor *tensor, uint64_t number)
{
	return weiri_hold_value(&tensor->value, tensor, number);
}

#endif
