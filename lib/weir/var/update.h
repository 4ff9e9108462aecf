/*
 * update.h - changing a variable's value in the way that suits its size.
 */
#ifndef WEIRI_VAR_UPDATE_H
#define WEIRI_VAR_UPDATE_H

#include "var/change.h"
#include "var/version.h"

/*
 * Makes the change, not fitted yet, to the newest value: as weir_var_update() does, or combined
 * with other updates under way. Outcomes are those of weir_var_update(), of weiri_change_fit(), and
 * WEIR_INVALID_ARGUMENT when var is NULL.
 */
enum weir_status weiri_update_by(weir_var *var, struct weiri_change *change, uint64_t deadline_ns, weir_read *published,
                                 weir_error *error);

#endif
