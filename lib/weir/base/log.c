/*
 * log.c - the process's log hook.
 */
#include "base/log.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <weir/status.h>

#include "base/atomic.h"

static _Atomic(const weir_log_hook *) log_hook;

void weir_log_set_hook(const weir_log_hook *hook)
{
	/* [release] The acquire in weiri_log() sees what the caller stored in its hook. */
	weiri_store_release(&log_hook, hook);
}

void weiri_log(enum weir_log_level level, const char *format, ...)
{
	/* [acquire] pairs with weir_log_set_hook(). */
	const weir_log_hook *hook = weiri_load_acquire(&log_hook);
	char message[WEIR_ERROR_MESSAGE_SIZE];
	va_list arguments;

	if (hook == NULL)
		return;
	va_start(arguments, format);
	(void)vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	hook->fn(hook->context, level, message);
}
