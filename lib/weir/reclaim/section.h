/*
 * section.h - short read sections inside one public call, and hazard slots, which protect an object
 * after the section.
 *
 * Algorithm. A section reserves an interval of eras, as in interval-based reclamation (2GE-IBR:
 * Wen, Izraelevitz, Cai, Beadle, Scott, PPoPP 2018). Slots are hazard pointers (Michael 2004).
 * Readers of neither kind execute a store-load fence for each read: announce.h says what they do
 * instead.
 *
 * Why intervals and not an RCU grace period (liburcu-bp). A grace period waits for every section
 * that was running. So a thread stalled inside a section stops all reclamation and, once the budget
 * is spent, all writers. Besides, synchronize_rcu() cannot give up at a deadline. An interval pins
 * only what was alive while the section was open. A thread stalled permanently in a section costs
 * the memory that existed at that moment, and no thread waits for it. weir-bench compares the two
 * in its scenario "memory".
 *
 * Every reclaimable object carries the era of its birth (read before it is published) and the era
 * of its retirement (read after it was unlinked).
 *
 * Invariants
 *   I1  an object that a section may access was born no later than its hi and retired no earlier
 *       than its lo
 *   I2  inside a section lo is constant and hi only grows, with one exception: a signal handler's
 *       section may raise hi for itself, and the interrupted code may then store its own, lower hi
 *   I3  eras only grow; a collection begins a new one, and threads that retire begin more
 * Pairs
 *   P1  leave(section) or clear(slot) -> scan(collector): the reader's last access comes before the
 *       free
 *   F1  reserve(section), claim(slot) <-> scan(collector): Dekker. The collector fences in each
 *       collection, the reader when it announces an era or raises hi (announce.h). The reader's part
 *       towards a writer that waits for memory is asymmetric; see base/asymmetric.h
 * Why I1 holds.
 *   hi: weiri_section_read() acquires the pointer, then reads the era. The object was published
 *   after its birth era was read. So the read of the birth era happens before the read here. Both
 *   read the same variable, and by coherence the later read cannot return less. Relaxed order is
 *   enough for both.
 *   lo: the section reads the era for lo before it reads the pointer, and the object is unlinked
 *   after that read of the pointer. The retiring thread reads the era after the unlinking. All
 *   these accesses are seq_cst, so the retiring thread reads at least lo. (A second read of the
 *   pointer, after hi was raised, returns nothing older than the first, which was seq_cst. Acquire
 *   is enough there.)
 *   If the collector missed a reservation that is followed by a fence, F1 says that the section's
 *   next read of the pointer comes after the collector's fence, and so after the unlinking. The
 *   section does not see the object. If no fence follows, the announcement stands for it.
 * Signal handlers. A read is protected by the hi that was reserved before it. It is not protected
 * by a value to which a handler raised hi afterwards: a collector that scanned in between missed
 * that value. So weiri_section_read() reads hi first and then the pointer.
 *   A handler may come between the store of lo, or of a higher hi, and the fence behind it, which is F1. It
 * finds itself in a section, or the era reserved, and reads without that fence. C11 lets its reads overtake
 * the store, so that a collector misses it; the machines do not. x86-64 empties the store buffer at each
 * interrupt. POWER, RISC-V and 32-bit arm have a fence in front of each seq_cst load, such as that of a
 * pointer. arm64 does not let such a load (ldar) overtake an earlier store of release order (stlr).
 * The store of lo is one, and so is the kernel's unlock of the thread's pending signals, which comes
 * after any other store of the interrupted code. A compiler barrier would add nothing to this. A
 * comparison of `fenced` with lo in each inner section would close the first case in C11, but not the
 * second, for which hi would need a copy that only the owner reads and that it stores after the fence,
 * so one more store in every section.
 * Progress: entering and leaving a section are wait-free. So is weiri_section_read(): it repeats
 * only when a collection began in between, and each time doubles the number of eras that it
 * reserves ahead.
 */
#ifndef WEIRI_RECLAIM_SECTION_H
#define WEIRI_RECLAIM_SECTION_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/assert.h"
#include "base/asymmetric.h"
#include "base/atomic.h"
#include "reclaim/announce.h"
#include "reclaim/record.h"

/*
 * The current era, from 1. Written by collectors, and by threads that are about to collect, and read by all threads, so it has a line of
 * its own (see collect.c).
 */
WEIRI_SHARED extern _Atomic(uint64_t) weiri_era;

/*
 * Begins an era, for a collection or ahead of one, and returns it. A section that is entered from here on reserves a later
 * era than the death of every object that was already retired. An object that died in an earlier
 * era than the returned one was unlinked before this call.
 */
static inline uint64_t weiri_era_begin(void)
{
	/*
	 * [seq_cst] I3. Suppose that a section that began in the new era has read a pointer. A thread
	 * that replaces this pointer afterwards, and retires the object, reads at least this era.
	 */
	return weiri_fetch_add_seq_cst(&weiri_era, 1u) + 1;
}

/* Writes the reservation of an outermost section from now on, and returns its era. The caller announces it, F1. */
static inline uint64_t weiri_section_write(struct weiri_record *record)
{
	/*
	 * [seq_cst] A retirement after the section's first read must see an era that is not earlier
	 * than lo; see I1.
	 */
	uint64_t era = weiri_load_seq_cst(&weiri_era);

	/*
	 * hi is stored first for I2: a handler finds lo at most hi. [P1 release] It may lower a hi with which a
	 * handler has claimed slots: a collector that sees the lower hi sees the slots.
	 */
	weiri_store_release(&record->hi, era);
	/*
	 * [P1 release] A collector may see this lo and not the 0 before it. It must see the end of the section before.
	 * If it sees an older hi beside it, the announcement covers the rest, or the fence of its owner comes later (F1).
	 */
	weiri_store_release(&record->lo, era);
	return era;
}

/*
 * The first step into a section. *before will be the argument for weiri_section_leave(). Returns 0 if the section is
 * entered, or the era that the caller must announce to have entered it.
 */
static inline uint64_t weiri_section_reserve(struct weiri_record *record, uint64_t *before)
{
	*before = weiri_load_relaxed(&record->lo); /* [relaxed] own fields, here and below. */
	if (*before == 0) {
		uint64_t era = weiri_section_write(record);

		return WEIRI_LIKELY(weiri_is_announced(record, era)) ? 0 : era;
	}
	return 0;
}

/*
 * Enters a section; returns the argument for weiri_section_leave(). Sections nest, also in a signal
 * handler that interrupts this function anywhere: the inner section restores lo and can only have
 * raised hi. Not by weiri_section_reserve(): where this is inlined, what that returns would be compared once more.
 */
static inline uint64_t weiri_section_enter(struct weiri_record *record)
{
	uint64_t outer = weiri_load_relaxed(&record->lo);

	if (outer == 0) {
		uint64_t era = weiri_section_write(record);

		if (WEIRI_UNLIKELY(!weiri_is_announced(record, era)))
			weiri_announce(record, era); /* F1 */
	}
	return outer;
}

static inline void weiri_section_leave(struct weiri_record *record, uint64_t outer)
{
	/* [P1 release] pairs with the collector's acquire of lo. */
	weiri_store_release(&record->lo, outer);
}

/*
 * Leaves the sections of calls that a function of the user has ended with its thread. A read section
 * that the program has open (var/read_section.c) stays: its lo is theirs, too.
 */
static inline void weiri_section_abandon(struct weiri_record *record)
{
	/* [relaxed] own field. */
	if (weiri_load_relaxed(&record->read_sections) == 0)
		weiri_section_leave(record, 0);
}

/*
 * Returns the last era that is reserved now. Must be called before the read that this era protects.
 */
static inline uint64_t weiri_section_reserved(const struct weiri_record *record)
{
	/* [relaxed] own field. */
	uint64_t hi = weiri_load_relaxed(&record->hi);

	weiri_compiler_barrier();
	return hi;
}

/*
 * Raises *reserved and hi to the current era plus `slack` if a collection has begun. Returns false
 * if none has begun; then every read since *reserved was read is protected.
 */
static inline bool weiri_section_raise(struct weiri_record *record, uint64_t *reserved, uint64_t slack)
{
	/*
	 * [relaxed] Comes after the caller's acquire load of the pointer. So it is not older than the
	 * birth era of the object that the pointer leads to; see I1.
	 */
	uint64_t era = weiri_load_relaxed(&weiri_era);

	if (WEIRI_LIKELY(era <= *reserved))
		return false;
	*reserved = era < UINT64_MAX - slack ? era + slack : UINT64_MAX;
	/*
	 * [relaxed] F1: a collector either sees this hi, or has run its fence before the read that this
	 * hi protects.
	 */
	weiri_store_relaxed(&record->hi, *reserved);
	weiri_fence_seq_cst(); /* F1 */
	return true;
}

/* For assertions: asserts that the owner is in a section. In section_invariants.c. */
WEIRI_SHARED_BY_ASSERTIONS void weiri_section_assert_entered(const struct weiri_record *record);

/*
 * Reads the pointer or number in *source. A pointer is safe to follow until the section is left.
 * *reserved is the last era that was reserved when the value was read. A macro, because it serves
 * any type: weiri_section_read(record, &var->head, &head). Wait-free: the slack doubles, so there
 * are at most 64 rounds, and one in practice.
 */
#define weiri_section_read_reserved(record, source, result, reserved) \
	do { \
		*(reserved) = weiri_section_reserved(record); \
		weiri_section_read_after(record, source, result, reserved); \
	} while (0)

/*
 * The same for one of several reads in a row: *reserved is weiri_section_reserved(), or what the read before left there. hi only
 * grows in between, apart from what a handler does for itself (I2), so it is reserved still.
 */
#define weiri_section_read_after(record, source, result, reserved) \
	do { \
		uint64_t weiri_slack_ = 0; \
\
		WEIR_ASSERT_LOOK(weiri_section_assert_entered(record)); \
		*(result) = weiri_load_seq_cst(source); \
		while (WEIRI_UNLIKELY(weiri_section_raise((record), (reserved), weiri_slack_))) { \
			weiri_slack_ = 2 * weiri_slack_ + 1; \
			*(result) = weiri_load_acquire(source); \
		} \
	} while (0)

#define weiri_section_read(record, source, result) \
	do { \
		uint64_t weiri_reserved_; \
\
		weiri_section_read_reserved((record), (source), (result), &weiri_reserved_); \
	} while (0)

static inline bool weiri_slot_is_free(const struct weiri_slot *slot)
{
	/*
	 * [P1 acquire] Another thread may have cleared the slot, and the collector may see only the new
	 * claim. The acquire here and the release of the claim pass that thread's last access on to the
	 * collector, so it comes before the free of the object that the slot held.
	 */
	return weiri_load_acquire(&slot->object) == NULL;
}

/*
 * Returns a free hazard slot of this thread, from the given one on, or NULL. Before the claim, a
 * signal handler may claim the same slot and clear it again.
 */
static inline struct weiri_slot *weiri_slot_find_from(struct weiri_record *record, size_t first)
{
	for (size_t i = first; i < WEIRI_SLOTS; i++) {
		if (weiri_slot_is_free(&record->slots[i]))
			return &record->slots[i];
	}
	return NULL;
}

static inline struct weiri_slot *weiri_slot_find(struct weiri_record *record)
{
	return weiri_slot_find_from(record, 0);
}

/*
 * Claims a slot for an object that a section protects. Outside a section, the caller loads the
 * pointer to the object once more afterwards, and then asks weiri_slot_counts().
 */
static inline void weiri_slot_claim(struct weiri_slot *slot, void *object)
{
	/* [P1 release] Passes on the clear that preceded this claim in the slot. */
	weiri_store_release(&slot->object, object);
	weiri_compiler_barrier(); /* before the caller's loads */
}

/*
 * Called after a claim outside a section, and after an acquire load that still found the object
 * linked. Returns true if the object is protected. Otherwise a fence has been run: the caller loads
 * the pointer again, and the object is protected if it is still linked.
 */
static inline bool weiri_slot_counts(struct weiri_record *record)
{
	/*
	 * [relaxed] Comes after the caller's acquire load. So it is not older than the birth era of the
	 * object; see announce.h.
	 */
	uint64_t era = weiri_load_relaxed(&weiri_era);

	if (WEIRI_LIKELY(weiri_is_announced(record, era)))
		return true;
	weiri_announce(record, era); /* F1 */
	return false;
}

void weiri_wake_memory_waiters(struct weiri_record *record);

/*
 * Ends a claim; any thread may call this. weiri_look_for_memory_waiters() of the slot's record must follow. `none` is
 * NULL; a caller may have it in a register.
 */
static inline void weiri_slot_drop_by(struct weiri_slot *slot, void *none)
{
	/* [P1 release] pairs with the collector's acquire. */
	weiri_store_release(&slot->object, none);
}

/* The same. */
static inline void weiri_slot_drop(struct weiri_slot *slot)
{
	weiri_slot_drop_by(slot, NULL);
}

/* Wakes the writers that wait for memory. Called after slots of this record were dropped or a read section ended. */
static inline void weiri_look_for_memory_waiters(struct weiri_record *record)
{
	/* F1: a waiter sets poke, runs the heavy fence, and scans again before it sleeps. */
	weiri_fence_light();
	/* [relaxed] a flag; the waiter rescans. */
	if (WEIRI_UNLIKELY(weiri_load_relaxed(&record->poke) != 0))
		weiri_wake_memory_waiters(record);
}

/* Ends a claim; any thread may call this. Wakes the writers that wait for memory. */
static inline void weiri_slot_clear(struct weiri_slot *slot)
{
	weiri_slot_drop(slot);
	weiri_look_for_memory_waiters(weiri_record_of(slot));
}

#endif
