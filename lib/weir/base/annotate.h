/*
 * annotate.h - telling ThreadSanitizer of an order that it cannot see.
 *
 * Code that synchronizes by inline assembly (Concurrency Kit) needs it. An annotation only claims
 * an order; a comment beside each one says why the claim is true. The build defines WEIRI_TSAN for
 * the files that need annotations. These files are built without instrumentation, so the compiler
 * does not define its own macro there.
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
