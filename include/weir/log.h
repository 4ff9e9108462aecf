/*
 * log.h - the only way in which Weir speaks without being asked.
 *
 * Weir prints nothing. Install a hook to hear of what no caller is there to be told of: a callback that failed, a thread
 * that did not join.
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

/* Called from any thread, never inside a read section; must not call back into Weir's blocking functions. */
typedef void weir_log_hook(enum weir_log_level level, const char *message);

/* Replaces the hook for the whole process; NULL (the start) silences it. @since 0.1 */
WEIR_API void weir_log_set_hook(weir_log_hook *hook);

WEIR_END_DECLS

#endif
