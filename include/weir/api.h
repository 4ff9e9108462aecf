/*
 * api.h - linkage of the public calls. Included by every other public header; holds nothing else.
 */
#ifndef WEIR_API_H
#define WEIR_API_H

#if defined(__GNUC__)
#define WEIR_API __attribute__((visibility("default")))
#define WEIR_MUST_CHECK __attribute__((warn_unused_result))
#define WEIR_PRINTF(format_at, first_at) __attribute__((format(printf, format_at, first_at)))
#else
#define WEIR_API
#define WEIR_MUST_CHECK
#define WEIR_PRINTF(format_at, first_at)
#endif

#ifdef __cplusplus
#define WEIR_BEGIN_DECLS extern "C" {
#define WEIR_END_DECLS }
#else
#define WEIR_BEGIN_DECLS
#define WEIR_END_DECLS
#endif

#endif
