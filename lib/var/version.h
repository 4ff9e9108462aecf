/*
 * version.h - the versions that a variable is made of, and the clock that orders them.
 *
 * Algorithm. A variable is a pointer to its newest version; each version points to the committed one it was built on. A write is
 * one CAS of the head; then the version gets its stamp: the clock is read, moved on by one, and the value read plus one is
 * written into the version by CAS. A snapshot reads the clock once and takes, in each variable, the newest version whose stamp
 * is not above it. This is versioned CAS (Wei, Ben-David, Blelloch, Fatourou, Ruppert, Sun, PPoPP 2021) with the clock moved
 * by writers, so that a snapshot writes nothing shared. Several variables change together by a commit (commit.c): their
 * versions share one cell, and are stamped by it.
 *
 * States of a version
 *   stamp          commit cell          is
 *   0              none                 written, not stamped yet: whoever meets it stamps it
 *   0              INSTALLING           undecided: readers take `base`, writers help
 *   0              READY                all parts in: whoever meets it stamps the cell
 *   0              a stamp / ABORTED    decided: whoever meets it copies that here
 *   s              (not looked at)      committed at s
 *   ABORTED        (not looked at)      never was: `base` is what counts
 *
 * Invariants
 *   V1  a version is at the head of its variable at most once, and a head never returns
 *   V2  `base` is committed and stamped before it is built on, so stamps grow strictly along a chain, and numbers with each value: a
 *       mark (commit.c) says again what its base says, number and tensor, at a later stamp
 *   V3  the clock is at least s before any version or cell shows stamp s
 *   V4  the clock value s - 1 was read after the version, or every part of the cell, was at its head
 *   V5  a version is retired once: a committed one by whoever committed its successor, after that was stamped; an aborted one
 *       by whoever replaced it at the head, or by its owner if it never got there. With a history (history.c) a committed one waits until
 *       so many more are
 * Pairs
 *   P1  install(head) -> read(head): the version's fields
 *   P2  stamp(version) -> settle(version): the clock has moved (V3), and for commits: the cell is not needed any more
 *   S   clock, head, cell: seq_cst. Two-variable reason: the stamper reads the clock after the installs, the snapshot reads
 *       heads after the clock; with acquire/release both may miss each other, and a snapshot is torn.
 *   S2  the stamps by which the owner of a commit ends the use of its cell, and the look at the stamp before the cell: seq_cst. The
 *       owner writes the stamps and then reads the era in which the cell dies; whoever comes by a version reads the era of its
 *       section and then the stamp. With release and acquire the stamps may still be on their way when the owner reads the
 *       era: the cell then died before a section began that looks into it (I1 of reclaim/section.h), and is freed under it.
 * Why a snapshot at time T is one instant. Let a version have stamp s.
 *   s <= T: the clock was s - 1 when it was read after the install (V4), and at least s when T was read: in the order S the
 *           install comes before the snapshot's read of the head, so the version is seen, and its stamp decides: it is in.
 *   s > T:  it is out, by its stamp.
 *   no stamp when met: INSTALLING - its stamp will come from a clock read later than ours, so s > T: out. Otherwise we stamp it
 *           ourselves before we compare; the CAS makes one stamp final for everybody.
 *   So a snapshot is exactly the versions with stamps up to T; parts of one commit share their stamp. Real time agrees: a write
 *   that ended before has s <= clock (V3) <= T; one that starts later reads a clock >= T, so s > T.
 * Why a read agrees with snapshots: it returns a version only when that is stamped (V3: later snapshots include it), or takes
 * `base` only under INSTALLING (the stamp is still to come).
 * Memory: `base` b of a committed version with stamp s is retired, and yet a snapshot with T < s must look behind that version, which
 * it may have met as a head only much later. Let H be the end of its reservation when T was read (weiri_section_read on the clock
 * makes H reach the era of that moment). If birth(b) <= H, b is pinned: it is retired after the clock was at s > T, so its death is not
 * before the section's lo; and a collector that missed the reservation ran its fence before T was read, so what it may free was
 * retired with the clock already at s, and T >= s. If birth(b) > H, b was born after T, so it is not the version looked for, and it
 * may be gone: the snapshot starts again with a later T. It reads birth(b) in the version above (base_birth), not in b.
 * Progress: stamping is wait-free (one clock CAS, one version CAS, neither retried).
 */
#ifndef WEIRI_VAR_VERSION_H
#define WEIRI_VAR_VERSION_H

#include <weir/var.h>

#include "base/memory.h"
#include "reclaim/collect.h"
#include "sync/await.h"
#include "sync/numbered.h"

#define WEIRI_STAMP_NONE UINT64_C(0)
#define WEIRI_STAMP_ABORTED UINT64_MAX

struct weiri_commit;
struct weiri_round;
struct weiri_spares;

struct weiri_version {
	struct weiri_retired retired;
	_Atomic(uint64_t) stamp;
	/* The rest is constant once published, but for seen_at_head. */
	uint64_t number;     /* one more than base's; a mark's is the same */
	weir_tensor *tensor; /* one reference; NULL in version 0, and what is built on that as a mark */
	struct weiri_version *base;
	uint64_t base_birth;         /* era; see Memory */
	struct weiri_version *older; /* what has the next smaller number, or NULL; see history.h */
	struct weiri_commit *commit; /* NULL: a single write */
	/* An aborted version is about to be replaced at the head: its owner must not install it again. */
	_Atomic(uint16_t) seen_at_head;
	uint16_t is_mark;
	uint32_t variable; /* its label, for reports: the variable may be gone */
	weir_allocator allocator;
};

struct weir_var {
	_Atomic(struct weiri_version *) head; /* never NULL */
	/* Beside the head: who has published has the line already, and looks at the list (watch.c). */
	struct weiri_awaits awaits;
	/* Constant. */
	struct weiri_numbered numbered; /* among all variables; it is retired by this, see var.c */
	uint32_t label;                 /* its number; 0 beyond 2^32 */
	enum weir_dtype dtype;
	int has_shape;
	weir_shape shape;
	uint32_t history; /* so many versions are kept behind the newest */
	char *name;
	weir_allocator allocator;
	/* Who adds to large values: combine.c. NULL before the first. */
	_Atomic(struct weiri_round *) round;
	_Atomic(struct weiri_spares *) spares;
};

/* Where a number is expected: whatever is there. */
#define WEIRI_ANY_VERSION UINT64_MAX

/* The time of the whole process; from 1. */
extern _Atomic(uint64_t) weiri_clock;

/* All variables that there are, for reports. */
extern struct weiri_numbering weiri_variables;

/* The next version of a variable; takes over the caller's reference of tensor. NULL: no memory. */
struct weiri_version *weiri_version_create(struct weiri_record *record, const weir_var *var, weir_tensor *tensor);
/* The version that `object` is a part of; NULL: it is no version. */
struct weiri_version *weiri_version_of_retired(struct weiri_retired *object);
/* Throws away a version that was never published. */
void weiri_version_discard(struct weiri_version *version);

/* The final stamp that `clock` gives: moves the clock, then fixes *stamp. Returns what *stamp is in the end. */
uint64_t weiri_stamp_now(_Atomic(uint64_t) *stamp, uint64_t unstamped);

/* The slow half of weiri_version_settle. */
uint64_t weiri_version_settle_slowly(struct weiri_version *version);

/* In a section. The version's stamp, WEIRI_STAMP_ABORTED, or WEIRI_STAMP_NONE while it is undecided. */
static inline uint64_t weiri_version_settle(struct weiri_version *version)
{
	/* [P2 acquire] pairs with the CAS that stamped it. */
	uint64_t stamp = weiri_load_acquire(&version->stamp);

	return WEIRI_LIKELY(stamp != WEIRI_STAMP_NONE) ? stamp : weiri_version_settle_slowly(version);
}

static inline int weiri_stamp_is_committed(uint64_t stamp)
{
	/* Neither NONE (wraps to the largest) nor ABORTED. */
	return stamp - 1 < WEIRI_STAMP_ABORTED - 1;
}

#endif
