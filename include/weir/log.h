/*
 * log.h - a hook for reports that no caller can receive.
 *
 * Weir prints nothing. Install a hook to get reports that have no caller to return to: a callback
 * that failed, a thread that did not join.
 *
 * | call              | threads | progress  | blocks on | allocates | signal-safe |
 * |-------------------|---------|-----------|-----------|-----------|-------------|
 * | weir_log_set_hook | any     | wait-free | nothing   | no        | yes         |
 */
#ifndef WEIR_LOG_H
#define WEIR_LOG_H

#include <weir/api.h>

WEIR_BEGIN_DECLS

enum weir_log_level { WEIR_LOG_INFO = 1, WEIR_LOG_WARNING = 2, WEIR_LOG_ERROR = 3 };

/* Called from any thread, never inside a section. It must not call a blocking function of Weir. */
typedef void weir_log_hook(enum weir_log_level level, const char *message);

/* Replaces the hook of the whole process; NULL (the default) disables it. @since 0.1 */
WEIR_API void weir_log_set_hook(weir_log_hook *hook);

WEIR_END_DECLS

#endif
