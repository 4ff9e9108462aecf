/*
 * options.h - what the creation of all metrics has in common.
 */
#ifndef WEIRI_METRICS_OPTIONS_H
#define WEIRI_METRICS_OPTIONS_H

#include "metrics/stripes.h"

/*
 * For counters and means: checks the options and `out`, which must not be NULL, and makes stripes
 * of `words`.
 */
enum weir_status weiri_metrics_create(const char *what, const struct weir_metrics_options *options, size_t words,
                                      const void *out, struct weiri_stripes **stripes, weir_error *error);

#endif
