/*
 * asymmetric.h - a store-load fence whose cost falls on the rare side.
 *
 * Dekker's pattern (one side announces, then looks; the other changes, then looks) needs a
 * store-load fence on both sides. Here, one side is hot (a reader, a notifier), and the other rare
 * (a collector, a waiter). The rare side runs membarrier(2), which makes every running thread of
 * the process execute a full fence. On the hot side it then suffices that the compiler keeps the
 * order. Where the kernel refuses membarrier (seccomp, gVisor), both sides run a real fence. Which
 * of the two applies is decided once, before the first use.
 *
 * Source: asymmetric Dekker synchronization (Dice, Huang, Yang, 2001); liburcu uses membarrier in
 * the same way.
 *
 * Guarantee: of a light side "store x; weiri_fence_light(); load y" and a heavy side "store y;
 * weiri_fence_heavy(); load x", at least one load sees the other side's store.
 */
#ifndef WEIRI_ASYMMETRIC_H
#define WEIRI_ASYMMETRIC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"

/* 1 if membarrier works. 0 until weiri_fence_setup() has run, which is safe. */
WEIRI_SHARED extern _Atomic(int) weiri_fence_asymmetric;

/*
 * Decides which kind of fence this process uses. Idempotent; weiri_fence_heavy() does the same
 * first. The light sides of a process change at most once, from plain fences to none. They do so
 * before any heavy side relies on the decision.
 */
void weiri_fence_setup(void);

static inline void weiri_fence_light(void)
{
	/* [relaxed] a thread that still reads 0 runs an unnecessary fence. */
	if (WEIRI_LIKELY(weiri_load_relaxed(&weiri_fence_asymmetric)))
		weiri_compiler_barrier();
	else
		weiri_fence_seq_cst();
}

/*
 * The heavy side. Returns true if the fence was run. Returns false if the kernel refuses membarrier
 * now although it granted it before (a seccomp filter was installed late). After a false the caller may
 * conclude nothing; a collector must keep all its objects.
 */
bool weiri_fence_heavy(void);

/* How many times this process has called membarrier for a heavy fence. */
uint64_t weiri_fence_membarriers(void);

/*
 * Called in the child of a fork, before it has a second thread. Registers the child and decides
 * anew.
 */
void weiri_fence_after_fork(void);

#endif
