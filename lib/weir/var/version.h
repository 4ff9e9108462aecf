/*
 * version.h - the versions of which a variable consists, and the clock that orders them.
 *
 * Algorithm. A variable is a pointer to its newest version; each version points to the committed
 * version on which it was built. A write is one CAS of the head. Then the version gets its stamp:
 * the writer reads the clock, and writes the value read plus one into the version by CAS. Writers
 * do not advance the clock. A snapshot reads the clock as T and takes, in each variable, the newest
 * version whose stamp is not above T. If it finds the stamp T + 1, the write may have ended before
 * the snapshot began. Then it advances the clock by one and starts again at the new T. (After that,
 * the next snapshots of the thread advance the clock at once: snapshot.c.) Creating a variable
 * advances the clock too: the stamp of its first version is the new value. Several variables change
 * together by a commit (commit.c): their versions share one cell, from which they get their stamp.
 *
 * Source. This is versioned CAS (Wei, Ben-David, Blelloch, Fatourou, Ruppert, Sun, PPoPP 2021) with
 * one difference. There, every snapshot advances the clock. Here, a snapshot does so only if it
 * finds a version that is newer than the clock. The idea is that of the fifth global clock of TL2
 * (Dice, Shalev, Shavit, DISC 2006): a stamp may be one ahead of the clock, and the thread that
 * finds it advances the clock.
 *
 * States of a version
 *   stamp          commit cell          meaning
 *   0              none                 not stamped yet: any thread that finds it stamps it
 *   0              INSTALLING, PASSED   undecided: readers mark the cell PASSED and take `base`,
 *                                       writers help
 *   0              READY                all parts installed: any finder stamps the cell
 *   0              a stamp / ABORTED    decided: any thread that finds it copies that here
 *   s              (not read)           committed at s
 *   ABORTED        (not read)           never took effect: `base` counts instead
 *
 * Invariants
 *   V1  a version is at the head of its variable at most once, and a head never returns
 *   V2  `base` is committed and stamped before a version is built on it. So stamps never fall
 *       along a chain. Positions grow by one with every version, and numbers with each value. A
 *       mark (commit.c) repeats the number and value of its base
 *   V3  no stamp is above the clock by more than one
 *   V4  the clock value s - 1, from which stamp s comes, was read after the version, or every part
 *       of the cell, was at its head. This read is the instant of the version
 *   V5  a version is retired once. A committed version is retired by the thread that committed its
 *       successor, after the successor was stamped; with a history (history.c), only when that many
 *       more versions are committed. An aborted version is retired by the thread that replaced it
 *       at the head, or by its owner if it never got there
 * Pairs
 *   P1  install(head) -> read(head): the version's fields
 *   P2  stamp(version) -> resolve(version): the clock was read (V3), and for commits: the cell is
 *       no longer needed
 *   P3  abort(cell) -> resolve(cell): that a head has moved. An owner of a request (combine.c) that
 *       finds the cell aborted retires its request, which so dies after the head has moved in the order S
 *   S   clock, head, cell: seq_cst. Two-variable reason: the stamper reads the clock after the
 *       installs, the snapshot reads the heads after the clock. With acquire and release each may
 *       miss the other, and the snapshot tears.
 *   S2  the owner of a commit ends the use of its cell by the stamps of the versions, and then
 *       retires the cell. A thread that finds a version reads the era of its section, then the
 *       stamp, and the cell only if there is no stamp. The stores and loads of the stamps are
 *       release and acquire, so a stamp may be invisible for a while. Therefore the cell dies late
 *       (WEIRI_DIES_LATE of reclaim/collect.h, P6 of collect.c): not in an era that the owner reads,
 *       but in one that a collector begins after it has taken the cell. The stamps are visible to
 *       every section that begins in that era or later. Each earlier section that may find no stamp
 *       holds the cell (I1 of reclaim/section.h).
 * Why a snapshot at time T is one instant: the moment at which the snapshot read the clock as T or,
 * if it advanced the clock first, the moment during its call at which the clock became T. Let a
 * version have stamp s.
 *   s <= T: the clock was s - 1 when it was read after the install (V4), and at least s at the
 *   snapshot's instant. So in the order S the install comes before the snapshot's read of the head.
 *   The snapshot sees the version, and includes it by its stamp.
 *   s > T: the snapshot excludes the version by its stamp. If the snapshot did not advance the
 *   clock, and found s = T + 1, the instant of the version may be earlier than that of the
 *   snapshot, since both read the clock as T. So the snapshot starts again, and advances the clock.
 *   In every other case the clock was read as T or more after the snapshot's instant.
 *   No stamp when found: if the cell was undecided, the snapshot has left it PASSED, so its stamp will
 *   come from a clock that is read after T was (commit.c). Then s > T, and the version is excluded. Otherwise the snapshot stamps the version before it
 *   compares; the CAS makes one stamp final for all threads.
 *   So a snapshot consists exactly of the versions whose instants are before its own; the parts of
 *   one commit share their instant. Of two versions with one stamp a snapshot includes both or none.
 * Why a read agrees with snapshots: a read returns a version only if that is stamped. So the
 * instant of the version has passed, and snapshots that begin later include it. A read takes the
 * base of an undecided version only after it has found or left the cell PASSED: the instant is still to
 * come.
 * Memory: let b be the base of a committed version v with stamp s. b is retired. Yet a snapshot
 * that excludes v must look at b, and may have found v at the head long after b was retired. Let H
 * be the end of the snapshot's reservation when it read the clock, before it advanced it
 * (weiri_section_read on the clock makes H reach the era of that moment).
 *   If birth(b) <= H, b is pinned. It is retired after v was stamped. The snapshot excludes v, so
 *   the instant of v is later than that of the snapshot, and the death of b is not before the
 *   section's lo. If a collector missed the reservation, its fence came before the clock was read,
 *   and it frees only what was retired before that. If b was, the instant of v came before the clock
 *   was read, and the snapshot would have included v or started again. (H must not be taken after
 *   the clock was advanced: between the two, v may be published and b be freed.)
 *   If birth(b) > H, b was born after the clock was read, and it may have been freed: the snapshot
 *   starts again. It reads birth(b) in v (base_birth), not in b.
 * Progress: stamping is wait-free: one load of the clock, one CAS of the version, not retried.
 */
#ifndef WEIRI_VAR_VERSION_H
#define WEIRI_VAR_VERSION_H

#include <weir/var.h>

#include "base/assert.h"
#include "base/memory.h"
#include "reclaim/collect.h"
#include "reclaim/value.h"
#include "sync/waitable.h"
#include "sync/id_set.h"
#include "var/table_var.h"

#define WEIRI_STAMP_NONE UINT64_C(0)
#define WEIRI_STAMP_ABORTED UINT64_MAX

enum { WEIRI_VERSION_APART = 2 };

struct weiri_commit;
struct weiri_round;
struct weiri_spares;

/*
 * Readers touch the line of the stamp, and behind it the bytes of an inline value (box.h). The lines in
 * front of it are of the threads that write: such a thread retires a version, or makes one in the memory
 * of an old one, while readers have the line of the stamp in their caches, and it would wait for each
 * line that it has to take from them.
 */
struct weiri_version {
	struct weiri_retired retired;
	/* The rest is constant once published, except stamp and seen_at_head. */
	uint64_t position;           /* one more than that of base: two committed versions share none */
	struct weiri_version *older; /* with the next smaller number, or NULL; see history.h */
	struct weiri_version *base;
	uint64_t base_birth;         /* era; see Memory */
	struct weiri_commit *commit; /* NULL: a single write */
	/*
	 * Set before an aborted version is replaced at the head: then its owner must not install it
	 * again.
	 */
	_Atomic(uint16_t) seen_at_head;
	bool is_mark;
	uint8_t box_lines; /* not 0: the value is in this block, of so many lines (kind.h) */
	uint32_t variable; /* its label, for reports: the variable may be gone */
	weir_allocator allocator;
	uint64_t apart[WEIRI_VERSION_APART];
	_Atomic(uint64_t) stamp;
	union {
		weir_read read; /* what a read section shows; not a handle, since `hold` has no tag (hold.h) */
		struct {
			/*
			 * By handles: a tensor, the bytes of an inline value, a pointer, a root. NULL if there is
			 * no value. It is on the line of the stamp, so readers ask it, and not `value`.
			 */
			void *shown;
			uint64_t number;           /* one more than that of base; that of base in a mark */
			struct weiri_value *value; /* one reference; NULL in version 0 and in marks on it */
		};
	};
};

_Static_assert(sizeof(void *) != 8 || offsetof(struct weiri_version, stamp) % WEIRI_LINE == 0,
               "the stamp begins a line");

struct weir_var {
	_Atomic(struct weiri_version *) head; /* never NULL */
	/*
	 * On the line of the head: a thread that has just published a version has that line already,
	 * and reads the list next (watch.c).
	 */
	struct weiri_waitable waitable;
	/* Constant. */
	struct weiri_id_entry id_entry; /* among all variables; retires the variable, see var.c */
	uint32_t label;                 /* its number; 0 beyond 2^32 */
	enum weir_var_kind kind;
	size_t size; /* of inline values; of pointers: in the budget */
	struct {
		union {
			weir_pointer_release_fn *release;
			weiri_table_end_fn *end; /* of a table's variable */
		};
		weir_pointer_size_fn *measure;
		void *context;
	} pointers;
	enum weir_dtype dtype;
	bool has_shape;
	weir_shape shape;
	size_t history; /* how many versions are kept behind the newest */
	char *name;
	weir_allocator allocator;
	/* For combined updates of large values: combine.c. NULL before the first. */
	_Atomic(struct weiri_round *) round;
	_Atomic(struct weiri_spares *) spares;
	/* give_way.h; zero until a slow write asks. */
	struct {
		_Atomic(uint64_t) until_ns;
		_Atomic(uint32_t) asked;
	} way;
};

/* In place of an expected number: any version is accepted. */
#define WEIRI_ANY_VERSION UINT64_MAX

/* The clock of the whole process, from 1. */
extern _Atomic(uint64_t) weiri_clock;

/* All existing variables, for reports. */
extern struct weiri_id_set weiri_variables;

/*
 * Returns a new version of a variable, or NULL if there is no memory. On success it takes over the
 * caller's reference of `value`; handles will show `shown`.
 */
struct weiri_version *weiri_version_create(struct weiri_record *record, const weir_var *var, struct weiri_value *value,
                                           void *shown);
/* Frees a version that no thread can reach. */
void weiri_version_reclaim(struct weiri_retired *object);
/* Initializes the version in a block that counts so many bytes in the budget. */
static inline void weiri_version_init(struct weiri_record *record, struct weiri_version *version, const weir_var *var,
                                      struct weiri_value *value, size_t bytes)
{
	/* Field by field: a compiler clears so many bytes with an instruction that takes long to begin. */
	weiri_retired_init(&version->retired, bytes, weiri_version_reclaim);
	weiri_store_relaxed(&version->stamp, WEIRI_STAMP_NONE); /* [relaxed] not published, here and below */
	version->shown = NULL;
	version->number = 0;
	version->value = value;
	version->position = 0;
	version->base = NULL;
	version->base_birth = 0;
	version->older = NULL;
	version->commit = NULL;
	weiri_store_relaxed(&version->seen_at_head, (uint16_t)0);
	version->is_mark = false;
	version->box_lines = 0;
	version->variable = var->label;
	version->allocator = var->allocator;
	weiri_count(&record->created, 1);
}
/* Returns the version of which `object` is a part, or NULL if it belongs to no version. */
struct weiri_version *weiri_version_of_retired(struct weiri_retired *object);
/* Frees a version that was never published. */
void weiri_version_discard(struct weiri_version *version);

/*
 * Advances the clock to at least now + 1, where `now` was read from it during the call that needs
 * this. Afterwards every write that ended before that read has a stamp of at most the clock.
 */
static inline void weiri_clock_advance(uint64_t now)
{
	/* [S] If this fails, another thread has advanced the clock. */
	(void)weiri_cas_seq_cst(&weiri_clock, &now, now + 1);
}

/*
 * For assertions (version_invariants.c). In this order: `version` is about to replace `base`; it
 * has just become the head; its base is about to be retired; `stamp` is final.
 */
void weiri_version_assert_fits(const struct weiri_version *version, const struct weiri_version *base);
void weiri_version_assert_first_time(const struct weiri_version *version);
void weiri_version_assert_stamped(const struct weiri_version *version);
void weiri_stamp_assert_near(uint64_t stamp);

/* Fixes *stamp, whose value was `unstamped`. Returns the final *stamp, which another thread may have fixed. */
static inline uint64_t weiri_stamp_now(_Atomic(uint64_t) *stamp, uint64_t unstamped)
{
	/* [S] after the install, V4. */
	uint64_t now = weiri_load_seq_cst(&weiri_clock);

	WEIR_ASSERT_LOOK(weiri_stamp_assert_near(now + 1));
	/* [S, P2 release] the first stamper wins. */
	return weiri_cas_seq_cst(stamp, &unstamped, now + 1) ? now + 1 : unstamped;
}

/* The slow half of weiri_version_resolve. */
WEIRI_SHARED uint64_t weiri_version_resolve_slowly(struct weiri_version *version);

/*
 * Called in a section. Returns the version's stamp, WEIRI_STAMP_ABORTED, or WEIRI_STAMP_NONE while
 * it is undecided.
 */
static inline uint64_t weiri_version_resolve(struct weiri_version *version)
{
	/* [P2 acquire] pairs with the CAS that stamped it. */
	uint64_t stamp = weiri_load_acquire(&version->stamp);

	return WEIRI_LIKELY(stamp != WEIRI_STAMP_NONE) ? stamp : weiri_version_resolve_slowly(version);
}

static inline bool weiri_stamp_is_committed(uint64_t stamp)
{
	/* Neither NONE, which is 0, nor ABORTED, which is -1. The clock never gets to 2^63. */
	return (int64_t)stamp > 0;
}

#endif
