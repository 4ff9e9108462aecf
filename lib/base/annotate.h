/*
 * annotate.h - telling ThreadSanitizer of an order that it cannot see.
 *
 * For code whose synchronization is inline assembly (Concurrency Kit). An annotation only states a claim; beside each one stands why it is
 * true. WEIRI_TSAN is defined by meson for the files that need it: they are built without instrumentation, so the compiler does
 * not define its own macro there.
 */
#ifndef WEIRI_ANNOTATE_H
#define WEIRI_ANNOTATE_H

#ifdef WEIRI_TSAN
void __tsan_acquire(void *address);
void __tsan_release(void *address);
#define weiri_annotate_release(address) __tsan_release(address)
#define weiri_annotate_acquire(address) __tsan_acquire(address)
#else
#define weiri_annotate_release(address) ((void)(address))
#define weiri_annotate_acquire(address) ((void)(address))
#endif

#endif
