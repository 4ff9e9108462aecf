/*
 * thread.h - the calling thread's id in Linux, as outside observers see it.
 */
#ifndef WEIRI_BASE_THREAD_H
#define WEIRI_BASE_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

/* Like gettid(2), a system call. A thread that has a record knows its id: weiri_record_my_thread(). */
uint32_t weiri_thread_ask(void);
/*
 * Returns true if this process has no thread of that id now, and none of its instructions can still
 * execute. Returns false if it has one, perhaps a later thread with the same id, or if the kernel
 * does not say.
 */
bool weiri_thread_is_gone(uint32_t thread);

#endif
