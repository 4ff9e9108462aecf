/*
 * fetch.h - fetching a cache line that will be written.
 */
#ifndef WEIRI_FETCH_H
#define WEIRI_FETCH_H

/*
 * Takes the line from other processors, without waiting for it. gcc emits prefetchw only with -mprfchw, and
 * otherwise a fetch for reading. Each processor of x86-64 executes it, some of the first ones as no operation.
 */
static inline void weiri_fetch_to_write(const volatile void *line)
{
#if defined(__x86_64__)
	__asm__ volatile("prefetchw %0" : : "m"(*(const volatile char *)line));
#else
	__builtin_prefetch((const void *)line, 1);
#endif
}

#endif
