/*
 * stalls.h - a search for stalls in memory of the caller. A small stack would not have enough
 * memory for it.
 */
#ifndef WEIRI_VAR_STALLS_H
#define WEIRI_VAR_STALLS_H

#include <weir/stall.h>

#include "reclaim/stall.h"

/* Like weir_stalls_visit(), but `room` is its working memory. */
enum weir_status weiri_stalls_show(struct weiri_stalls *room, uint64_t limit_ns, weir_stall_fn *visit, void *context,
                                   size_t *found);

#endif
