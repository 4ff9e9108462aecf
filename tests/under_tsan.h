/*
 * under_tsan.h - whether a test runs under ThreadSanitizer, of gcc or of clang.
 */
#ifndef UNDER_TSAN_H
#define UNDER_TSAN_H

#ifndef __has_feature
#define __has_feature(name) 0
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
enum { UNDER_TSAN = 1 };
#else
enum { UNDER_TSAN = 0 };
#endif

#endif
