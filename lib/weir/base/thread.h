/*
 * thread.h - the calling thread's id in Linux, as outside observers see it.
 */
#ifndef WEIRI_BASE_THREAD_H
#define WEIRI_BASE_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

extern WEIRI_TLS uint32_t weiri_thread_mine; /* 0: not asked for yet */

uint32_t weiri_thread_ask(void);
/*
 * Returns true if this process has no thread of that id now, and none of its instructions can still
 * execute. Returns false if it has one, perhaps a later thread with the same id, or if the kernel
 * does not say.
 */
bool weiri_thread_is_gone(uint32_t thread);
/* Called in the child of a fork, where the thread has another id. */
void weiri_thread_after_fork(void);

/* Like gettid(2), which is called once for each thread. */
static inline uint32_t weiri_thread_id(void)
{
	return WEIRI_LIKELY(weiri_thread_mine != 0) ? weiri_thread_mine : weiri_thread_ask();
}

#endif
