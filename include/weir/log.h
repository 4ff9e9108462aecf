/*
 * log.h - a hook for reports that no caller can receive.
 *
 * Weir prints nothing. Install a hook to get reports that have no caller to return to: a callback
 * that failed, a thread that did not join.
 *
 *     static struct my_log mine;
 *     static const weir_log_hook hook = {.fn = write_line, .context = &mine};
 *
 *     weir_log_set_hook(&hook);
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

/*
 * Called from any thread, on several at once, never inside a section. It must not call a blocking
 * function of Weir. The message is valid during the call.
 */
typedef void weir_log_fn(void *context, enum weir_log_level level, const char *message);

/* A function and what it gets. One pointer installs both, so no report sees one without the other. */
typedef struct weir_log_hook {
	weir_log_fn *fn;
	void *context;
} weir_log_hook;

/*
 * Replaces the hook of the whole process; NULL (the default) disables it. *hook is borrowed. It and
 * its context must stay valid until another hook is set and the calls of Weir that were under way
 * then have returned: such a call may still report to the hook before. A hook that lives as long as
 * the process is always right.
 * @since 0.1
 */
WEIR_API void weir_log_set_hook(const weir_log_hook *hook);

WEIR_END_DECLS

#endif
