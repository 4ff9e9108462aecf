/*
 * variable_scopes.h - the common part of the checks of variables and of transactions: values that
 * reveal a read that is too early or too late.
 *
 * Values are tensors that a writer fills immediately before it publishes them. A read of a value
 * that is not yet published, or already freed, therefore shows as a race or as a use of freed
 * memory. If values are large, each write collects.
 */
#ifndef WEIR_MODEL_VARIABLE_SCOPES_H
#define WEIR_MODEL_VARIABLE_SCOPES_H

#include <weir/reclaim.h>
#include <weir/tensor.h>
#include <weir/time.h>
#include <weir/var.h>

#include "model/scope.h"
#include "model/setup_end.h"

/*
 * The number of elements of a large value. It has 64 KiB, so it is large enough to be collected
 * immediately, and is half a share of the budget.
 */
enum { LARGE = 8192 };

enum size { SMALL_VALUES, LARGE_VALUES };

/* Makes a tensor of many elements. The first element is the value, and only that one is read. */
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
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I64, .history = history};
	weir_tensor *initial = number_of_size(value, size);
	weir_var *var;

	weir_model_assert(weir_var_create(initial, &options, &var, NULL) == WEIR_OK);
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

/* Takes over the reference to the tensor. */
static inline void assign_tensor(weir_var *var, weir_tensor *tensor)
{
	weir_model_assert(weir_var_assign(var, tensor, WEIR_NO_DEADLINE, NULL, NULL) == WEIR_OK);
	weir_tensor_release(tensor);
}

#endif
