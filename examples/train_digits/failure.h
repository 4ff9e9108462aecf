/*
 * failure.h - a status with a message for the user.
 */
#ifndef TRAIN_DIGITS_FAILURE_H
#define TRAIN_DIGITS_FAILURE_H

#include <weir/status.h>

/* Fills *error (may be NULL) and returns `status`, so that a function can `return failure(...)`. */
enum weir_status failure(weir_error *error, enum weir_status status, const char *format, ...) WEIR_PRINTF(3, 4);

#endif
