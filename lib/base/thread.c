/*
 * thread.c - see thread.h.
 */
#include "base/thread.h"

#include <unistd.h>

WEIRI_TLS uint32_t weiri_thread_mine;

uint32_t weiri_thread_ask(void)
{
	weiri_thread_mine = (uint32_t)gettid();
	return weiri_thread_mine;
}

void weiri_thread_after_fork(void)
{
	weiri_thread_mine = 0;
}
