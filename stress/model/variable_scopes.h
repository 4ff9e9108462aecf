/*
 * variable_scopes.h - what the checks of variables and of transactions share: values that show when they are read too early or too late.
 *
 * Values are tensors that a writer fills just before it publishes them, so a read of a value that is not published, or is freed
 * already, shows as a race or as a use of freed memory. Where values are large, each write collects.
 */
#ifndef WEIR_MODEL_VARIABLE_SCOPES_H
#define WEIR_MODEL_VARIABLE_SCOPES_H

#include <weir/reclaim.h>
#include <weir/tensor.h>
#include <weir/time.h>
#include <weir/var.h>

#include "model/scope.h"

enum { LARGE = 8192 /* elements: 64 KiB, as large as is collected at once; half a budget's share */ };

enum size { SMALL_VALUES, LARGE_VALUES };

/* A tensor of many elements whose first one is the value; only that one is looked at. */
static inline weir_tensor *large_number(int64_t value)
{
	static int64_t values[16][LARGE];
	weir_shape shape = {.rank = 1, .dims = {LARGE}};
	weir_tensor *tensor;

	values[value][0] = value;
	weir_model_assert(weir_tensor_wrap(WEIR_I64, &shape, values[value], NULL, NULL, NULL, &tensor) == WEIR_OK);
	return tensor;
}

static inline weir_tensor *number_of_size(int64_t value, enum size size)
{
	weir_tensor *tensor;

	if (size == LARGE_VALUES)
		return large_number(value);
	weir_model_assert(weir_tensor_scalar_i64(value, &tensor) == WEIR_OK);
	return tensor;
}

static inline weir_var *variable_that_keeps(int64_t value, enum size size, uint32_t history)
{
	struct weir_var_options options = {.struct_size = sizeof(options), .dtype = WEIR_I64, .history = history};
	weir_tensor *initial = number_of_size(value, size);
	weir_var *var;

	weir_model_assert(weir_var_create(&options, initial, &var, NULL) == WEIR_OK);
	weir_tensor_release(initial);
	return var;
}

static inline weir_var *variable_of_size(int64_t value, enum size size)
{
	return variable_that_keeps(value, size, 0);
}

static inline int64_t value_in(const weir_tensor *tensor)
{
	return *(const int64_t *)weir_tensor_data(tensor);
}

static inline int64_t value_of(const weir_read *read)
{
	return value_in(read->tensor);
}

/* Takes over the reference. */
static inline void assign_tensor(weir_var *var, weir_tensor *tensor)
{
	weir_model_assert(weir_var_assign(var, tensor, WEIR_NO_DEADLINE, NULL, NULL) == WEIR_OK);
	weir_tensor_release(tensor);
}

#endif
