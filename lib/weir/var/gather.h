/*
 * gather.h - weir_var_gather() that tells which version it read, for the dataflow layer.
 */
#ifndef WEIRI_VAR_GATHER_H
#define WEIRI_VAR_GATHER_H

#include <weir/scatter.h>

#include "base/compiler.h"

/* Sets *version if it returns WEIR_OK. */
WEIRI_SHARED enum weir_status weiri_var_gather(weir_var *var, const weir_tensor *indices,
                                               const weir_allocator *allocator, weir_tensor **out, uint64_t *version,
                                               weir_error *error);

#endif
