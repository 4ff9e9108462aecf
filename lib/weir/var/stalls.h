/*
 * stalls.h - a search for stalls with the caller's memory, which would be too much for a small
 * stack.
 */
#ifndef WEIRI_VAR_STALLS_H
#define WEIRI_VAR_STALLS_H

#include <weir/stall.h>

#include "reclaim/stall.h"

/* Like weir_stalls_visit(), with its working memory as a parameter. */
enum weir_status weiri_stalls_show(struct weiri_stalls *room, uint64_t limit_ns, weir_stall_fn *visit, void *context,
                                   size_t *found);

#endif
