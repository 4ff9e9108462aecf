/*
 * stalls.h - a look at stalls with room that the caller has: it is too much for a small stack.
 */
#ifndef WEIRI_VAR_STALLS_H
#define WEIRI_VAR_STALLS_H

#include <weir/stall.h>

#include "reclaim/stall.h"

/* As weir_stalls_look(), with its room. */
enum weir_status weiri_stalls_show(struct weiri_stalls *room, uint64_t limit_ns, weir_stall_fn *visit, void *context,
                                   size_t *found);

#endif
