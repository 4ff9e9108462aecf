/*
 * api.h - linkage of the public calls, and how option structs begin. Every public header includes
 * it.
 */
#ifndef WEIR_API_H
#define WEIR_API_H

#if defined(__GNUC__)
#define WEIR_API __attribute__((visibility("default")))
#define WEIR_PRINTF(format_at, first_at) __attribute__((format(printf, format_at, first_at)))
#else
#define WEIR_API
#define WEIR_PRINTF(format_at, first_at)
#endif

/*
 * The structs that callers fill begin with their size, so that a later version can add fields. Each
 * has an initialiser for that, which comes first between the braces: in C and C++20
 *     struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .capacity = 64};
 * and before C++20 alone, with assignments for the rest. Fields that are left out are 0: the
 * default. Before C++20, -Wextra warns of fields that the braces leave out, but not of this:
 *     struct weir_queue_options options{};
 *     options.struct_size = sizeof(options);
 */
#if defined(__cplusplus) && __cplusplus < 202002L
#define WEIR_STRUCT_SIZE(type) sizeof(type)
#else
#define WEIR_STRUCT_SIZE(type) .struct_size = sizeof(type)
#endif

/* Private: the casts of inlined code. Programs in C++ may refuse those of C (-Wold-style-cast). */
#ifdef __cplusplus
#define WEIRI_CAST(type, value) static_cast<type>(value)
#define WEIRI_ADDRESS(pointer) reinterpret_cast<uintptr_t>(pointer)
#else
#define WEIRI_CAST(type, value) ((type)(value))
#define WEIRI_ADDRESS(pointer) ((uintptr_t)(pointer))
#endif

#ifdef __cplusplus
#define WEIR_BEGIN_DECLS extern "C" {
#define WEIR_END_DECLS }
#else
#define WEIR_BEGIN_DECLS
#define WEIR_END_DECLS
#endif

#endif
