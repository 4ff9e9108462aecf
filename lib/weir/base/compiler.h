/*
 * compiler.h - what C11 cannot say: likely paths, cold functions, cache lines.
 */
#ifndef WEIRI_COMPILER_H
#define WEIRI_COMPILER_H

#define WEIRI_LIKELY(x) __builtin_expect(!!(x), 1)
#define WEIRI_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define WEIRI_MUST_CHECK __attribute__((warn_unused_result))
#define WEIRI_COLD __attribute__((cold, noinline))
#define WEIRI_NOINLINE __attribute__((noinline))
/* For the shortest functions that are called most: how many lines their code touches counts (docs/profiling.md). */
#define WEIRI_AT_LINE __attribute__((aligned(64)))
/*
 * Hides from the compiler how a local variable got its value. So an address or a constant is computed
 * once, into a register, instead of being a part of each instruction that uses it.
 */
#define WEIRI_KEEP(variable) __asm__("" : "+r"(variable))
#define WEIRI_ALWAYS_INLINE inline __attribute__((always_inline))

/*
 * Marks a private function or variable of libweir that libweir-flow uses. scripts/check_symbols
 * lists all of these. Inside libweir the visibility is "protected", so that calls stay direct, like
 * calls of a hidden function.
 */
#if defined(WEIRI_OUTSIDE_LIBWEIR)
#define WEIRI_SHARED __attribute__((visibility("default")))
#else
#define WEIRI_SHARED __attribute__((visibility("protected")))
#endif
/* The same for a function that only assertions call. */
#if defined(WEIR_ASSERT_LEVEL) && WEIR_ASSERT_LEVEL > 0
#define WEIRI_SHARED_BY_ASSERTIONS WEIRI_SHARED
#else
#define WEIRI_SHARED_BY_ASSERTIONS
#endif

/*
 * WEIRI_APART is two lines: x86 fetches lines in pairs, so fields 64 bytes apart still disturb each
 * other.
 */
enum { WEIRI_LINE = 64, WEIRI_APART = 128 };
#define WEIRI_ALIGNED_APART _Alignas(128)

/*
 * Thread-locals. With the initial-exec model an access costs one load, even if the library was
 * loaded by dlopen(). But then all thread-locals of the library lie in a small reserve of the
 * loader, for which all objects in the process compete. So there are two of them, 16 bytes
 * (scripts/check_loading): the thread's record, and the list of what it is in the middle of
 * (run/mark.h). What else a thread keeps is in reclaim/own.h. The loader never has to allocate
 * for them, so no call can fail there. -Dtls=dynamic is for loaders without a reserve: an access
 * then costs a call.
 */
#if defined(WEIRI_TLS_ALL_DYNAMIC)
#define WEIRI_TLS _Thread_local
#else
#define WEIRI_TLS _Thread_local __attribute__((tls_model("initial-exec")))
#endif

/* From a member to the object that contains it. */
/* clang-format takes the minus for a sign. */
/* clang-format off */
#define WEIRI_CONTAINER_OF(member_pointer, type, member) \
	((type *)(void *)((char *)(member_pointer) - offsetof(type, member)))
/* clang-format on */

#endif
