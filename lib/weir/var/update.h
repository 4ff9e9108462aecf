/*
 * update.h - changing the value of a variable in the way that suits the size of the value.
 */
#ifndef WEIRI_VAR_UPDATE_H
#define WEIRI_VAR_UPDATE_H

#include "var/change.h"
#include "var/version.h"

/*
 * Applies `change`, which is not fitted yet, to the newest value. Does so as weir_var_update()
 * does, or combined with other updates under way. The outcomes are those of weir_var_update() and
 * of weiri_change_fit(), and WEIR_INVALID_ARGUMENT if `var` is NULL.
 */
enum weir_status weiri_update_by(weir_var *var, struct weiri_change *change, uint64_t deadline_ns, weir_read *published,
                                 weir_error *error);

#endif
