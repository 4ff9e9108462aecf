/*
 * options.h - what creating one of the metrics has in common with creating another.
 */
#ifndef WEIRI_METRICS_OPTIONS_H
#define WEIRI_METRICS_OPTIONS_H

#include "metrics/stripes.h"

/* WEIR_INVALID_ARGUMENT unless `out` is there, the options have the size expected, and no flags. */
enum weir_status weiri_metrics_check(const char *what, const void *out, size_t size, size_t expected, uint32_t flags,
                                     weir_error *error);
/* Of counters and means: checks the options and `out`, which must not be NULL, and makes stripes of `words`. */
enum weir_status weiri_metrics_create(const char *what, const struct weir_metrics_options *options, size_t words,
                                      const void *out, struct weiri_stripes **stripes, weir_error *error);

#endif
