/*
 * atomic.h - C11 atomics with the order in the name.
 *
 * Every atomic access of the library uses these names, for two reasons. A reader of the code sees
 * the order at the call, and a checker can compile the same sources with the names mapped to a
 * controlled scheduler. scripts/check_style refuses the plain atomic_load() family, whose order is
 * implied.
 *
 * The first order in the name of a CAS is that of success. A CAS that fails is relaxed, unless the
 * name has a second order; but weiri_cas_seq_cst() is always seq_cst.
 */
#ifndef WEIRI_ATOMIC_H
#define WEIRI_ATOMIC_H

#include <stdatomic.h>

#define weiri_load_relaxed(p) atomic_load_explicit((p), memory_order_relaxed)
#define weiri_load_acquire(p) atomic_load_explicit((p), memory_order_acquire)
#define weiri_load_seq_cst(p) atomic_load_explicit((p), memory_order_seq_cst)

/* For assertions: base/assert.h. */
#define weiri_peek(p) atomic_load_explicit((p), memory_order_relaxed)

#define weiri_store_relaxed(p, v) atomic_store_explicit((p), (v), memory_order_relaxed)
#define weiri_store_release(p, v) atomic_store_explicit((p), (v), memory_order_release)
#define weiri_store_seq_cst(p, v) atomic_store_explicit((p), (v), memory_order_seq_cst)

#define weiri_exchange_relaxed(p, v) atomic_exchange_explicit((p), (v), memory_order_relaxed)
#define weiri_exchange_acquire(p, v) atomic_exchange_explicit((p), (v), memory_order_acquire)
#define weiri_exchange_release(p, v) atomic_exchange_explicit((p), (v), memory_order_release)
#define weiri_exchange_acq_rel(p, v) atomic_exchange_explicit((p), (v), memory_order_acq_rel)
#define weiri_exchange_seq_cst(p, v) atomic_exchange_explicit((p), (v), memory_order_seq_cst)

#define weiri_fetch_add_relaxed(p, v) atomic_fetch_add_explicit((p), (v), memory_order_relaxed)
#define weiri_fetch_add_acquire(p, v) atomic_fetch_add_explicit((p), (v), memory_order_acquire)
#define weiri_fetch_add_release(p, v) atomic_fetch_add_explicit((p), (v), memory_order_release)
#define weiri_fetch_add_acq_rel(p, v) atomic_fetch_add_explicit((p), (v), memory_order_acq_rel)
#define weiri_fetch_add_seq_cst(p, v) atomic_fetch_add_explicit((p), (v), memory_order_seq_cst)
#define weiri_fetch_sub_relaxed(p, v) atomic_fetch_sub_explicit((p), (v), memory_order_relaxed)
#define weiri_fetch_sub_release(p, v) atomic_fetch_sub_explicit((p), (v), memory_order_release)
#define weiri_fetch_sub_acq_rel(p, v) atomic_fetch_sub_explicit((p), (v), memory_order_acq_rel)
#define weiri_fetch_sub_seq_cst(p, v) atomic_fetch_sub_explicit((p), (v), memory_order_seq_cst)
#define weiri_fetch_or_relaxed(p, v) atomic_fetch_or_explicit((p), (v), memory_order_relaxed)
#define weiri_fetch_or_acquire(p, v) atomic_fetch_or_explicit((p), (v), memory_order_acquire)
#define weiri_fetch_or_release(p, v) atomic_fetch_or_explicit((p), (v), memory_order_release)
#define weiri_fetch_or_acq_rel(p, v) atomic_fetch_or_explicit((p), (v), memory_order_acq_rel)
#define weiri_fetch_or_seq_cst(p, v) atomic_fetch_or_explicit((p), (v), memory_order_seq_cst)
#define weiri_fetch_and_acquire(p, v) atomic_fetch_and_explicit((p), (v), memory_order_acquire)
#define weiri_fetch_and_seq_cst(p, v) atomic_fetch_and_explicit((p), (v), memory_order_seq_cst)

#define weiri_cas_relaxed(p, expected, v) \
	atomic_compare_exchange_strong_explicit((p), (expected), (v), memory_order_relaxed, memory_order_relaxed)
#define weiri_cas_acquire(p, expected, v) \
	atomic_compare_exchange_strong_explicit((p), (expected), (v), memory_order_acquire, memory_order_relaxed)
#define weiri_cas_release(p, expected, v) \
	atomic_compare_exchange_strong_explicit((p), (expected), (v), memory_order_release, memory_order_relaxed)
#define weiri_cas_acq_rel(p, expected, v) \
	atomic_compare_exchange_strong_explicit((p), (expected), (v), memory_order_acq_rel, memory_order_relaxed)
/* The failed CAS reads with acquire, for callers that use the value found. */
#define weiri_cas_acquire_or_acquire(p, expected, v) \
	atomic_compare_exchange_strong_explicit((p), (expected), (v), memory_order_acquire, memory_order_acquire)
#define weiri_cas_release_or_acquire(p, expected, v) \
	atomic_compare_exchange_strong_explicit((p), (expected), (v), memory_order_release, memory_order_acquire)
#define weiri_cas_acq_rel_or_acquire(p, expected, v) \
	atomic_compare_exchange_strong_explicit((p), (expected), (v), memory_order_acq_rel, memory_order_acquire)
#define weiri_cas_seq_cst(p, expected, v) \
	atomic_compare_exchange_strong_explicit((p), (expected), (v), memory_order_seq_cst, memory_order_seq_cst)

#define weiri_fence_seq_cst() atomic_thread_fence(memory_order_seq_cst)
/*
 * Orders this thread's accesses for its own signal handlers. Together with a membarrier on another
 * thread, it orders them for that thread too.
 */
#define weiri_compiler_barrier() atomic_signal_fence(memory_order_seq_cst)

/*
 * One round of a short spin. What spins counts on some 15 to 40 ns.
 *
 * AArch64: "yield" is for processors that run several threads on a core. Others, and so nearly all, take it
 * as "nop": 0.4 ns on a Neoverse N1, where "isb" takes 13 ns, about as long as "pause" on x86. (The figures are
 * of rust-lang/rust pull request 84725, which changed spin_loop() for this reason. We have no such
 * processor, and did not measure.) An "isb" waits until the instructions before it are done, and orders
 * nothing that C11 speaks of.
 */
static inline void weiri_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ __volatile__("isb" ::: "memory");
#elif defined(__arm__)
	__asm__ __volatile__("yield" ::: "memory");
#else
	weiri_compiler_barrier();
#endif
}

#endif
