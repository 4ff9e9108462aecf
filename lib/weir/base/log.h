/*
 * log.h - logging through the hook of weir/log.h; without a hook nothing is logged.
 */
#ifndef WEIRI_LOG_H
#define WEIRI_LOG_H

#include <weir/log.h>

#include "base/compiler.h"

WEIRI_SHARED void weiri_log(enum weir_log_level level, const char *format, ...) WEIR_PRINTF(2, 3);

#endif
