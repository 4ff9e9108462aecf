/*
 * rows_kit.h - tensors of numbers for the tests of scatter and gather, and the expected result of a
 * scatter, element by element.
 */
#ifndef ROWS_KIT_H
#define ROWS_KIT_H

#include <criterion/criterion.h>

#include <string.h>
#include <weir/scatter.h>
#include <weir/tensor.h>

#include "variables.h"

static inline weir_tensor *tensor_of(enum weir_dtype dtype, weir_shape shape, const void *data)
{
	weir_tensor *tensor = NULL;

	cr_assert_eq(weir_tensor_copy_of(dtype, &shape, data, &variables_memory, &tensor), WEIR_OK);
	return tensor;
}

static inline weir_tensor *indices_of(const int64_t *values, int64_t count)
{
	return tensor_of(WEIR_I64, (weir_shape){1, {count}}, values);
}

/* Plain arithmetic, with which the tests compare. */
static inline double combined(enum weir_scatter how, double x, double y)
{
	switch (how) {
	case WEIR_SCATTER_UPDATE: return y;
	case WEIR_SCATTER_ADD: return x + y;
	case WEIR_SCATTER_SUB: return x - y;
	case WEIR_SCATTER_MUL: return x * y;
	case WEIR_SCATTER_DIV: return x / y;
	case WEIR_SCATTER_MIN: return y < x ? y : x;
	case WEIR_SCATTER_MAX: return y > x ? y : x;
	}
	return 0;
}

/* Returns element i of data, of any dtype with arithmetic. */
static inline double element(enum weir_dtype dtype, const void *data, size_t i)
{
	switch (dtype) {
	case WEIR_U8: return ((const uint8_t *)data)[i];
	case WEIR_I8: return ((const int8_t *)data)[i];
	case WEIR_I16: return ((const int16_t *)data)[i];
	case WEIR_I32: return ((const int32_t *)data)[i];
	case WEIR_I64: return (double)((const int64_t *)data)[i];
	case WEIR_U16: return ((const uint16_t *)data)[i];
	case WEIR_U32: return ((const uint32_t *)data)[i];
	case WEIR_U64: return (double)((const uint64_t *)data)[i];
	case WEIR_F32: return (double)((const float *)data)[i];
	case WEIR_F64: return ((const double *)data)[i];
	default: cr_assert_fail("no number"); return 0;
	}
}

static inline void set_element(enum weir_dtype dtype, void *data, size_t i, double value)
{
	switch (dtype) {
	case WEIR_U8: ((uint8_t *)data)[i] = (uint8_t)value; break;
	case WEIR_I8: ((int8_t *)data)[i] = (int8_t)value; break;
	case WEIR_I16: ((int16_t *)data)[i] = (int16_t)value; break;
	case WEIR_I32: ((int32_t *)data)[i] = (int32_t)value; break;
	case WEIR_I64: ((int64_t *)data)[i] = (int64_t)value; break;
	case WEIR_U16: ((uint16_t *)data)[i] = (uint16_t)value; break;
	case WEIR_U32: ((uint32_t *)data)[i] = (uint32_t)value; break;
	case WEIR_U64: ((uint64_t *)data)[i] = (uint64_t)value; break;
	case WEIR_F32: ((float *)data)[i] = (float)value; break;
	case WEIR_F64: ((double *)data)[i] = value; break;
	default: cr_assert_fail("no number");
	}
}

#endif
