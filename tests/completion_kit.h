/*
 * completion_kit.h - areas, keyed joins and variables of one i32 scalar, for the tests of
 * completions.
 */
#ifndef COMPLETION_KIT_H
#define COMPLETION_KIT_H

#include "tensor_queue_kit.h"

#include <weir/flow/keyed_join.h>
#include <weir/flow/map_staging.h>
#include <weir/flow/staging.h>
#include <weir/var.h>

static const struct weir_tensor_component one_number = {.dtype = WEIR_I32, .shape = &scalar_shape};
static const size_t first_place[] = {0};

static inline weir_staging *staging_area(void)
{
	struct weir_staging_options options = {WEIR_STAGING_OPTIONS_INIT, .capacity = 1, .components = &one_number,
	                                       .component_count = 1};
	weir_staging *staging = NULL;

	cr_assert_eq(weir_staging_create(&options, &staging, NULL), WEIR_OK);
	return staging;
}

static inline weir_map_staging *map_area(void)
{
	struct weir_map_staging_options options = {WEIR_MAP_STAGING_OPTIONS_INIT, .components = &one_number,
	                                           .component_count = 1};
	weir_map_staging *map = NULL;

	cr_assert_eq(weir_map_staging_create(&options, &map, NULL), WEIR_OK);
	return map;
}

static inline weir_keyed_join *a_keyed_join(void)
{
	struct weir_keyed_join_options options = {WEIR_KEYED_JOIN_OPTIONS_INIT, .components = &one_number,
	                                          .component_count = 1};
	weir_keyed_join *join = NULL;

	cr_assert_eq(weir_keyed_join_create(&options, &join, NULL), WEIR_OK);
	return join;
}

static inline weir_var *a_variable(void)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I32};
	weir_tensor *first = number(0);
	weir_var *var = NULL;

	cr_assert_eq(weir_var_create(first, &options, &var, NULL), WEIR_OK);
	weir_tensor_release(first);
	return var;
}

#endif
