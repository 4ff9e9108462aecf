/*
 * attempt.h - taking an element without an operation, for nodes of graphs.
 */
#ifndef WEIRI_DATA_ATTEMPT_H
#define WEIRI_DATA_ATTEMPT_H

#include <stdbool.h>
#include <weir/dataset.h>

#include "base/compiler.h"

/*
 * Takes the next element into parts[0 .. width-1], if it is there, or if what is undone for it may be
 * done by this thread. Returns false if it has taken nothing, for whatever reason;
 * weir_iterator_start_next() then waits for the element, or says why there is none.
 * may_run_functions: a function of the user that was measured to be short may hold the caller up.
 */
WEIRI_SHARED bool weiri_iterator_attempt(weir_iterator *iterator, bool may_run_functions, weir_tensor *parts[]);

#endif
