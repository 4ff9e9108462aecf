/*
 * section.h - short read sections inside one public call, and hazard slots that carry a read past it.
 *
 * Algorithm. Sections reserve an interval of eras, as in interval-based reclamation (2GE-IBR: Wen, Izraelevitz, Cai, Beadle,
 * Scott, PPoPP 2018); slots are hazard pointers (Michael 2004). Both leave out the reader's store-load fence: the collector
 * pays it for all with membarrier (base/asymmetric.h).
 *
 * Why intervals and not an RCU grace period (liburcu-bp): a grace period waits for every section that was running, so a thread
 * stopped inside one stops all freeing, and with it, after a budget's worth of memory, all writers; and synchronize_rcu
 * cannot give up at a deadline. An interval pins only what was alive while it was open: a thread stopped in a section for ever
 * costs what existed at that moment, and nobody waits for it. The comparison is a scenario of weir-bench ("memory").
 *
 * Every reclaimable object carries the era of its birth (before it is published) and of its retirement (after it was unlinked).
 *
 * Invariants
 *   I1  an object that a section may touch was born no later than its hi and retired no earlier than its lo
 *   I2  inside a section lo is constant and hi only grows, but that a signal handler's section may raise hi for itself and
 *       that is taken back
 *   I3  eras only grow; a collection begins a new one
 * Pairs
 *   P1  leave(section) or clear(slot) -> scan(collector): the reader's last access comes before the free
 *   F1  reserve(section), claim(slot) <-> scan(collector): asymmetric Dekker; see base/asymmetric.h
 * Why I1 holds. hi: weiri_section_read() acquires the pointer, then reads the era; the object was published after its birth era was
 * read. So the read of the birth happens before the one here, which is of the same variable and cannot return less (coherence): relaxed
 * is enough for both. lo: the section read lo's era before it read the pointer, and the pointer was unlinked after that; all these
 * accesses are seq_cst, so the retiring thread, which reads the era after unlinking, reads at least lo. (A pointer that is read again,
 * after hi was raised, is not older than at the first read, which was seq_cst; so acquire is enough there.) If the collector
 * missed a reservation, F1 says that the section's next read of the pointer comes after the collector's fence, and so after the
 * unlinking: it does not see the object.
 * Signal handlers: what counts for a read is the hi that was reserved before it, not what a handler raised hi to after it: a collector
 * that came in between has missed that. So weiri_section_read() looks at hi first and at the pointer then.
 * Progress: entering and leaving are wait-free, and so is weiri_section_read(): it repeats only when a collection began in between,
 * and asks for twice as many eras ahead each time.
 */
#ifndef WEIRI_RECLAIM_SECTION_H
#define WEIRI_RECLAIM_SECTION_H

#include <stddef.h>
#include <stdint.h>

#include "base/asymmetric.h"
#include "base/atomic.h"
#include "reclaim/record.h"

/* The current era, from 1. Written by collectors only, read by everybody: on a line of its own (see collect.c). */
extern _Atomic(uint64_t) weiri_era;

/*
 * A collection begins: whoever enters from here on reserves a later era than any object died in that was retired before. Returns that era:
 * what died earlier was unlinked before this.
 */
static inline uint64_t weiri_era_begin(void)
{
	/* [seq_cst] I3: a section that began in it has read a pointer; who replaces that afterwards and retires reads it, too. */
	return weiri_fetch_add_seq_cst(&weiri_era, 1u) + 1;
}

/*
 * Enters; returns what weiri_section_leave() must be given. Nests, also in a signal handler that interrupts any of this: the inner
 * one leaves lo as it found it, and may only have raised hi.
 */
static inline uint64_t weiri_section_enter(struct weiri_record *record)
{
	/* [relaxed] own fields. */
	uint64_t outer = weiri_load_relaxed(&record->lo);

	if (outer == 0) {
		/* [seq_cst] lo must not be later than the era that a retirement after our first read sees; see I1. */
		uint64_t era = weiri_load_seq_cst(&weiri_era);

		/* [relaxed] hi first: a collector that acquires lo sees a hi that belongs to it, or a larger one. */
		weiri_store_relaxed(&record->hi, era);
		/* [release] for the collector that reads hi after lo. */
		weiri_store_release(&record->lo, era);
		weiri_fence_light(); /* F1 */
	}
	return outer;
}

static inline void weiri_section_leave(struct weiri_record *record, uint64_t outer)
{
	/* [P1 release] pairs with the collector's acquire of lo. */
	weiri_store_release(&record->lo, outer);
}

/* The last era that is reserved now, looked at before what is read under it. */
static inline uint64_t weiri_section_reserved(const struct weiri_record *record)
{
	/* [relaxed] own field. */
	uint64_t hi = weiri_load_relaxed(&record->hi);

	weiri_compiler_barrier();
	return hi;
}

/*
 * Raises *reserved and hi to the current era and `slack` more when a collection began. Returns 0 when none had, so that what was
 * read after *reserved is protected.
 */
static inline int weiri_section_raise(struct weiri_record *record, uint64_t *reserved, uint64_t slack)
{
	/* [relaxed] after the caller's read of the pointer, an acquire, and so not older than the birth that the pointer brought; see I1. */
	uint64_t era = weiri_load_relaxed(&weiri_era);

	if (WEIRI_LIKELY(era <= *reserved))
		return 0;
	*reserved = era < UINT64_MAX - slack ? era + slack : UINT64_MAX;
	/* [relaxed] a collector either sees it or has run its fence before what is read under it, F1. */
	weiri_store_relaxed(&record->hi, *reserved);
	weiri_fence_light(); /* F1 */
	return 1;
}

/*
 * The pointer or number in *source; a pointer is safe to follow until the section is left. *reserved is the last era that was
 * reserved when it was read. A macro because it serves any type: weiri_section_read(record, &var->head, &head). Wait-free: the
 * slack doubles, so at most 64 rounds, and one in practice.
 */
#define weiri_section_read_reserved(record, source, result, reserved) \
	do { \
		uint64_t weiri_slack_ = 0; \
\
		*(reserved) = weiri_section_reserved(record); \
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

/* A free hazard slot of this thread, or NULL. Between this and the claim a signal handler may take the same one and give it back. */
static inline struct weiri_slot *weiri_slot_find(struct weiri_record *record)
{
	for (size_t i = 0; i < WEIRI_SLOTS; i++) {
		/* [P1 acquire] the slot may have been cleared by another thread: its last access then comes before ours, and before
		 * the free of what it held, since our claim is what the collector may read next. */
		if (weiri_load_acquire(&record->slots[i].object) == NULL)
			return &record->slots[i];
	}
	return NULL;
}

static inline void weiri_slot_claim(struct weiri_slot *slot, void *object)
{
	/* [P1 release] carries on the clear that came before it in this slot. */
	weiri_store_release(&slot->object, object);
	weiri_fence_light(); /* F1 */
}

void weiri_wake_memory_waiters(struct weiri_record *record);

/* Ends a claim; on any thread. Wakes a writer that waits for memory. */
static inline void weiri_slot_clear(struct weiri_slot *slot)
{
	struct weiri_record *record = weiri_record_of(slot);

	/* [P1 release] pairs with the collector's acquire. */
	weiri_store_release(&slot->object, NULL);
	weiri_fence_light(); /* F1: a waiter sets poke, runs the heavy fence, and scans again before it sleeps. */
	/* [relaxed] a flag; the waiter rescans. */
	if (WEIRI_UNLIKELY(weiri_load_relaxed(&record->poke) != 0))
		weiri_wake_memory_waiters(record);
}

#endif
