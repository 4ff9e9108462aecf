/*
 * asymmetric.h - a store-load fence whose cost falls on the rare side.
 *
 * Dekker's pattern ("I announce, then look; you change, then look") needs a store-load fence on both sides. One side here is
 * hot (a reader, a notifier), the other rare (a collector, a waiter). The rare side runs membarrier(2), which makes every running
 * thread of the process execute a full fence; the hot side then needs only that its compiler keeps the order. Where the kernel
 * refuses membarrier (seccomp, gVisor) both sides run a real fence; that is settled once, before the first use.
 *
 * Guarantee: of a light side "store x; weiri_fence_light(); load y" and a heavy side "store y; weiri_fence_heavy(); load x",
 * at least one load sees the other side's store.
 */
#ifndef WEIRI_ASYMMETRIC_H
#define WEIRI_ASYMMETRIC_H

#include "base/atomic.h"
#include "base/compiler.h"

/* 1 when membarrier works. 0 until weiri_fence_setup() has run, which is the safe side. */
extern _Atomic(int) weiri_fence_asymmetric;

/*
 * Settles which kind of fence this process uses. Idempotent; every heavy side calls it first. A process changes at most
 * once, from symmetric to asymmetric, and only before any heavy side relied on it.
 */
void weiri_fence_setup(void);

static inline void weiri_fence_light(void)
{
	/* [relaxed] a thread that still reads 0 runs a fence it did not need. */
	if (WEIRI_LIKELY(weiri_load_relaxed(&weiri_fence_asymmetric)))
		weiri_compiler_barrier();
	else
		weiri_fence_seq_cst();
}

/*
 * The other side. Returns 1; 0 when the kernel, having granted membarrier once, refuses it now (a seccomp filter installed
 * late): then nothing may be concluded, and a collector must keep what it has.
 */
int weiri_fence_heavy(void);

/* In the child of a fork, before it has a second thread: registers anew. */
void weiri_fence_after_fork(void);

#endif
