/*
 * thread.h - the kernel's number of the calling thread, for those who look from outside.
 */
#ifndef WEIRI_BASE_THREAD_H
#define WEIRI_BASE_THREAD_H

#include <stdint.h>

#include "base/compiler.h"

extern WEIRI_TLS uint32_t weiri_thread_mine; /* 0: not asked for yet */

uint32_t weiri_thread_ask(void);
/*
 * 1: this process has no thread of that number now, nor one that could still run an instruction of it. 0: it has one, perhaps another
 * that was given the number since; or the kernel does not say.
 */
int weiri_thread_is_gone(uint32_t thread);
/* In the child of a fork, where its thread has another. */
void weiri_thread_after_fork(void);

/* As gettid(2), which is asked once. */
static inline uint32_t weiri_thread_id(void)
{
	return WEIRI_LIKELY(weiri_thread_mine != 0) ? weiri_thread_mine : weiri_thread_ask();
}

#endif
