/*
 * collect.c - the byte-budget collector.
 *
 * Algorithm. Each thread pushes the objects that it retires onto stacks of its own, in turn: 64 KiB
 * onto one stack, then 64 KiB onto the next. What one call has unlinked goes onto the stack as a
 * list, by one CAS. A collection begins a new era, runs a fence, reads the announcement, interval and slots of every record, and goes through the stacks in
 * portions. An announcement stands for what is not visible yet (announce.h). A collection frees
 * those objects of a portion that died (were retired) in an earlier era, whose life [birth, death]
 * meets no interval, and that no slot names. An object that died in this era or later may have been
 * unlinked after the scan, so it waits for another collection. The collector pushes survivors back
 * onto the stack that it took last. If that was a stack of pinned objects, it pushes them onto the
 * stack of its own record that has the same number. One exchange takes a whole stack, so any thread
 * may collect what another thread retired. A writer over the budget takes the stacks of all
 * threads, also of idle and ended ones.
 * A section holds its objects until it ends, and the thread in it may be stalled permanently.
 * Examining those objects in every collection would be wasted work. So an object is pinned if a
 * section holds it and an earlier collection of this thread could have seen it. To pin it, the
 * collector pushes it onto a stack of the record whose section holds it, and notes the section's lo
 * there. Collections skip this stack while the lo of the record is the noted one. Afterwards they
 * take it like other stacks. So an object is examined twice, and once more for each section that
 * held it and has ended, however many objects are pinned and however often a writer collects. Only
 * objects that slots name are examined by every collection, and there are no more of them than
 * handles; and those that an announcement alone holds, until it is settled. New objects are not pinned. Mostly the next collection frees them; until then they stay
 * on the stacks of the thread that retired them.
 * The set of slots is a Bloom filter on the C stack, so it needs no allocation. If the filter
 * reports an object, the collector searches all slots for it. The set of intervals has a fixed
 * size. If there were more disjoint intervals, the last one covers all that found no room; for an
 * object that meets it, the collector searches all sections and slots.
 *
 * When to collect. A thread collects what it has retired when that fills a part of a second-level
 * cache, so that its next objects lie in memory that is still there. An object counts OBJECT_BYTES
 * more than its bytes, so that small objects do not pile up in thousands.
 * A thread that reads has announced an era, and the announcement holds what lived then. Mostly that is
 * the era that the last collection began, and everything that was retired since died in it. So a
 * collection would free only what it found the last time. Therefore, the thread begins an era when it
 * has retired three quarters of that. Until the collection, other threads announce this era, and the
 * collection frees what died before it.
 *
 * Source. Eras and the test of intervals are those of 2GE-IBR (see section.h). Handing retired objects to the readers that hold them is
 * known from Hyaline (Nikolaev and Ravindran, PODC 2019, PLDI 2021). There, each batch has a
 * reference count, and the last reader frees it. Here, an object is pinned at only one section,
 * readers free nothing, and the next collector takes it back. We know of no publication of this
 * form, nor of the bound in bytes by portions.
 *
 * Why portions. A stalled collector withholds the objects that it has taken. They still count in
 * the budget, as they should: they use memory. So a collector takes little at a time, and subtracts
 * freed bytes as it proceeds. It never holds more than PORTION_BYTES and one stack. A stack has
 * about an eighth of what one thread retired. One stack can be most of the budget only if the
 * survivors of earlier collections all lie on that stack and are then released. The same is true of
 * stacks of pinned objects, because a pinned object keeps the number of its stack. A collector
 * clears pinned_lo before it takes such a stack. In between, it hides the stack from other
 * collectors, as if it had taken it.
 *
 * Invariants
 *   I4  an object is on one stack, or held by one collector
 *   I5  every retired object is counted in weiri_retired_total, or in unreported_bytes of the record that
 *       retired it, until at most REPORT_BYTES after it is freed
 *   I6  `collecting` of a record is odd from before its owner takes a stack until after the owner
 *       has put the last survivor back
 *   I7  no object pinned on a stack is pinned for a section with a smaller lo than pinned_lo.
 *       Exceptions: one object of each collector that is in pin(), and what a collector is about to
 *       take. Since eras only grow, the lo of a record never returns to an earlier value, with one
 *       exception. A signal handler's section may run between the read of the era and the store of
 *       lo in the section that it interrupts. Collections may then skip what the handler's section
 *       held until the interrupted section has ended too
 * Pairs
 *   P2  push(retire) -> take(collector): the object's fields and what it owns
 *   P3  take(collector) -> a flush that finds the stack empty: the flush sees `collecting` odd
 *   P4  end(collector) -> a flush that finds `collecting` even: the survivors are back
 *   P5  take(collector) -> pin(collector): pinned_lo was cleared; a collector that pins after the
 *       take notes its lo after the clearing
 *   P6  retire(an object that dies late) -> era_begin(collector) -> enter(section): what the
 *       retiring thread wrote before, which tells others not to reach the object. P2 carries it to
 *       the collector that takes the object, and the era that this begins afterwards to each section
 *       that begins in that era or later. So a section that may still reach the object began in an
 *       earlier era than the death that the collector sets, which is that era
 *   F1, P1 of section.h
 * Why pinned objects may be skipped. The object met [lo, hi] of the section, and hi only grows. A
 * later section of the same record with the same lo meets the object as well. For suppose that the
 * earlier section had raised its hi. Then the owner knew a later era, and would have used it as the
 * lo of the later section. (A section of a signal handler may have raised hi for itself. Then its
 * objects are held until the outer section ends; they were alive in the outer section.)
 * Why pinned objects are not skipped for long after the section ends. Consider a stack with an
 * object of a section that has ended. Its pinned_lo is no larger than the lo of that section (I7).
 * The lo of the record is now 0, or that of a later section. If it is the same number, the later
 * section holds the object too, as just shown. Otherwise it differs from pinned_lo.
 * Progress: collecting is lock-free. A collector waits for no reader and for no other collector.
 * Only admissions and flushes wait (admit.h).
 * Bound: docs/memory.md states the terms; the stress scenario "memory_bound" checks them.
 * Checked: stress/model/check_reclaim.c, tests/test_reclaim.c, test_announce.c, test_reclaim_budget.c, test_crowd.c,
 * test_fork.c; stress scenarios memory_bound, variable_stopped, thread_churn, fork.
 */
#include "reclaim/collect.h"

#include <weir/reclaim.h>

#include "base/assert.h"
#include "base/options.h"
#include "base/probe.h"
#include "reclaim/admit.h"
#include "reclaim/announce.h"
#include "reclaim/eras.h"
#include "reclaim/host.h"
#include "reclaim/magazine.h"
#include "reclaim/settle.h"
#include "reclaim/stall.h"

enum {
	REPORT_BYTES = 64 << 10, /* bytes that a thread may retire, or free, before it reports them */
	PORTION_BYTES = 2 * REPORT_BYTES,
	FILTER_BITS = 4096,
#if defined(WEIRI_UNDER_MODEL)
	COLLECT_BYTES = 64 << 10,
	MAX_INTERVALS = 1, /* in stress/model two sections are a crowd */
#else
	/*
	 * That a thread retired since its last collection: a quarter of a second-level cache of today.
	 * So the memory of values that are replaced in a hurry goes round in this cache.
	 */
	COLLECT_BYTES = 256 << 10,
	MAX_INTERVALS = 64,
#endif
	OBJECT_BYTES = 1024,               /* what an object counts for that, in addition to its bytes */
	ERA_BYTES = COLLECT_BYTES / 4 * 3, /* that a thread has retired when it begins an era ahead */
};

_Alignas(WEIRI_APART) _Atomic(uint64_t) weiri_era = 1;

_Alignas(WEIRI_APART) _Atomic(int64_t) weiri_retired_total;
static _Atomic(int64_t) retired_peak;

struct interval {
	uint64_t lo, hi;
};

/* What readers held at one scan. */
struct held {
	/* Of the scan. It tells nothing of objects that died in that era or later. 0: no scan yet. */
	uint64_t era;
	uint64_t settled;                /* announcements of earlier eras do not count: announce.h */
	const struct weiri_record *mine; /* the collector's, whose stores it sees without a fence */
	size_t intervals;
	bool crowded; /* true: there were more; the last one covers them and the gaps between them */
	struct interval interval[MAX_INTERVALS];
	uint64_t filter[FILTER_BITS / 64];
};

static unsigned filter_bit(const void *object)
{
	/* Objects are 64-byte aligned; Fibonacci hashing spreads the remaining bits. */
	return (unsigned)((((uint64_t)(uintptr_t)object >> 6) * UINT64_C(0x9E3779B97F4A7C15)) >> 52);
}

/*
 * Merges an interval into one that overlaps it; the result meets the same lives as the two. Returns
 * 0 if none overlaps it. That is rare: most sections began in the same few eras.
 */
static bool join_one(struct held *held, uint64_t lo, uint64_t hi)
{
	for (size_t i = 0; i < held->intervals; i++) {
		struct interval *one = &held->interval[i];

		if (lo > one->hi || one->lo > hi)
			continue;
		one->lo = lo < one->lo ? lo : one->lo;
		one->hi = hi > one->hi ? hi : one->hi;
		return true;
	}
	return false;
}

static void hold_interval(struct held *held, uint64_t lo, uint64_t hi)
{
	struct interval *last = &held->interval[MAX_INTERVALS - 1];

	if (join_one(held, lo, hi))
		return;
	if (held->intervals < MAX_INTERVALS) {
		held->interval[held->intervals++] = (struct interval){lo, hi};
		return;
	}
	last->lo = lo < last->lo ? lo : last->lo;
	last->hi = hi > last->hi ? hi : last->hi;
	held->crowded = true;
}

static void hold_slots(struct held *held, struct weiri_slot slots[], size_t count)
{
	for (size_t i = 0; i < count; i++) {
		/* [P1 acquire] pairs with weiri_slot_clear(). */
		const void *object = weiri_load_acquire(&slots[i].object);
		unsigned bit = filter_bit(object);

		if (object != NULL)
			held->filter[bit / 64] |= UINT64_C(1) << (bit % 64);
	}
}

static size_t snapshot_slots_used(struct weiri_record *record)
{
	/*
	 * [relaxed] Slots are claimed inside sections. If the section ended before the acquire of lo,
	 * which precedes every call of this function, snapshot_used and the slots are seen. If it still
	 * runs, or is not visible yet, it holds the objects that its slots name, or the announcement
	 * does. If it began after the collector's fence, it cannot reach the object.
	 */
	return weiri_load_relaxed(&record->snapshot_used);
}

/* The eras that a record reserves, as a collector sees it. */
struct reserved {
	uint64_t lo, announced; /* the eras from here to hi. 0: none */
	uint64_t hi;
};

/* Looks at a record. Its slots are looked at afterwards. */
static struct reserved reserved_by(const struct held *held, const struct weiri_record *record)
{
	struct reserved reserved = {.announced = 0};

	/* Before the section: what the thread stored before the announcement is seen below. */
	if (record != held->mine)
		reserved.announced = weiri_announced(record, held->settled);
	/*
	 * [P1 acquire] Pairs with weiri_section_leave(). lo is read before hi, because a host announces nothing: see
	 * host.c. lo is read before the slots, because a snapshot fills its slots inside its section.
	 */
	reserved.lo = weiri_load_acquire(&record->lo);
	/* [P1 acquire] Pairs with weiri_section_enter(): slots that were claimed while hi was larger. */
	reserved.hi = weiri_load_acquire(&record->hi);
	if (reserved.hi < reserved.announced)
		reserved.hi = reserved.announced;
	return reserved;
}

static void hold_record(struct held *held, struct weiri_record *record)
{
	struct reserved reserved = reserved_by(held, record);

	if (reserved.lo != 0)
		hold_interval(held, reserved.lo, reserved.hi);
	if (reserved.announced != 0)
		hold_interval(held, reserved.announced, reserved.hi);
	hold_slots(held, record->slots, WEIRI_SLOTS);
	hold_slots(held, record->snapshot_slots, snapshot_slots_used(record));
}

static void scan(struct held *held)
{
	for (struct weiri_record *record = weiri_record_first(); record != NULL; record = record->next)
		hold_record(held, record);
}

static bool slots_name(struct weiri_slot slots[], size_t count, const void *object)
{
	for (size_t i = 0; i < count; i++) {
		/* [P1 acquire] pairs with weiri_slot_clear(). */
		if (weiri_load_acquire(&slots[i].object) == object)
			return true;
	}
	return false;
}

/* Called when the filter matches. Returns true if a slot really names the object. */
static WEIRI_COLD bool named_by_a_slot(const void *object)
{
	for (struct weiri_record *record = weiri_record_first(); record != NULL; record = record->next) {
		if (slots_name(record->slots, WEIRI_SLOTS, object) ||
		    slots_name(record->snapshot_slots, snapshot_slots_used(record), object))
			return true;
	}
	return false;
}

static bool meets(const struct weiri_retired *object, uint64_t lo, uint64_t hi)
{
	return object->birth <= hi && lo <= object->death;
}

/*
 * Returns a record whose section holds the object now, and sets *lo to the lo of that section.
 * Returns NULL if there is none.
 */
static WEIRI_COLD struct weiri_record *find_section(const struct weiri_retired *object, uint64_t *lo)
{
	for (struct weiri_record *record = weiri_record_first(); record != NULL; record = record->next) {
		/*
		 * [relaxed] Both loads only decide where the object waits; scan() decides what may be
		 * freed. If hi is older than lo, the search may miss this section.
		 */
		*lo = weiri_load_relaxed(&record->lo);
		if (*lo != 0 && meets(object, *lo, weiri_load_relaxed(&record->hi)))
			return record;
	}
	return NULL;
}

/*
 * Called when the crowded interval matches. Returns true if a section holds the object now, or an
 * announcement. Another section may have begun since the scan.
 */
static WEIRI_COLD bool met_by_a_section(const struct held *held, const struct weiri_retired *object)
{
	for (struct weiri_record *record = weiri_record_first(); record != NULL; record = record->next) {
		struct reserved reserved = reserved_by(held, record);

		if (reserved.lo != 0 && meets(object, reserved.lo, reserved.hi))
			return true;
		if (reserved.announced != 0 && meets(object, reserved.announced, reserved.hi))
			return true;
	}
	return false;
}

/*
 * Returns true if a section or slot holds the object now. A section that held it at the scan may
 * still run, and is then seen here. Or it has ended, and may have left a slot that names the
 * object. So the slots are read after the sections; the filter is older and would not do. A section
 * that began after the scan cannot reach any object of this portion.
 */
static WEIRI_COLD bool held_by_the_crowd(const struct held *held, const struct weiri_retired *object)
{
	return met_by_a_section(held, object) || named_by_a_slot(object);
}

static bool is_held(const struct held *held, const struct weiri_retired *object)
{
	unsigned bit = filter_bit(object);

	if (object->death >= held->era)
		return true;
	for (size_t i = 0; i < held->intervals; i++) {
		if (meets(object, held->interval[i].lo, held->interval[i].hi))
			return !(held->crowded && i == MAX_INTERVALS - 1) || held_by_the_crowd(held, object);
	}
	return (held->filter[bit / 64] >> (bit % 64) & 1) != 0 && named_by_a_slot(object);
}

/* -- stacks of retired objects ----------------------------------------------------------------- */

typedef _Atomic(struct weiri_retired *) stack;

static void push(stack *to, struct weiri_retired *first, struct weiri_retired *last)
{
	/* [relaxed] a guess, which the CAS checks. */
	struct weiri_retired *top = weiri_load_relaxed(to);

	do {
		last->next = top;
		/*
		 * [P2 release] Pairs with take(). `top` may have been removed and come back meanwhile
		 * (ABA); this is harmless, since stacks are only taken whole.
		 */
	} while (!weiri_cas_release(to, &top, first));
}

/* Like push(), onto a stack of objects pinned for a section. */
static void push_pinned(stack *to, struct weiri_retired *object)
{
	/* [relaxed] a guess, which the CAS checks. */
	object->next = weiri_load_relaxed(to);
	/* [P2 release] as above. [P5 acquire] pairs with take_pinned(). */
	while (!weiri_cas_acq_rel(to, &object->next, object))
		;
}

static struct weiri_retired *take(stack *from)
{
	/*
	 * [relaxed] The load avoids a write to the cache line of an empty stack. [P2 acquire] pairs
	 * with push(). [P3 release] pairs with no_stack_has_any().
	 */
	return weiri_load_relaxed(from) != NULL ? weiri_exchange_acq_rel(from, NULL) : NULL;
}

/*
 * Takes a stack of pinned objects. pinned_lo is cleared first, so that a collector that pins
 * afterwards notes its lo again (I7). There is no load before the exchange: a load might miss the
 * object for which pinned_lo was noted.
 */
static struct weiri_retired *take_pinned(struct weiri_record *record, size_t number)
{
	/* [relaxed] P5 orders it. */
	weiri_store_relaxed(&record->pinned_lo[number], 0u);
	/* [P2 acquire] [P5 release] pair with push_pinned(). [P3 release] as in take(). */
	return weiri_exchange_acq_rel(&record->pinned[number], NULL);
}

/* -- assertions -------------------------------------------------------------------------------- */

/* Called by the owner. */
static WEIRI_UNSEEN void assert_collecting(const struct weiri_record *record)
{
	WEIR_ASSERT2(I6, weiri_peek(&record->collecting) % 2 != 0);
}

static WEIRI_UNSEEN void assert_not_on(const stack stacks[], const struct weiri_retired *object)
{
	for (size_t i = 0; i < WEIRI_STACKS; i++) {
		for (const struct weiri_retired *other = weiri_peek(&stacks[i]); other != NULL; other = other->next)
			WEIR_ASSERT3(I4, other != object);
	}
}

/* Called just before the object is retired. */
static WEIRI_UNSEEN void assert_on_no_stack(const struct weiri_retired *object)
{
	for (struct weiri_record *record = weiri_peek(&weiri_records); record != NULL; record = record->next) {
		assert_not_on(record->retired, object);
		assert_not_on(record->pinned, object);
	}
}

static WEIRI_UNSEEN int64_t peek_bytes_on(const stack stacks[])
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < WEIRI_STACKS; i++) {
		for (const struct weiri_retired *object = weiri_peek(&stacks[i]); object != NULL; object = object->next)
			bytes += object->bytes;
	}
	return (int64_t)bytes;
}

static WEIRI_UNSEEN void assert_counted(void)
{
	int64_t counted = weiri_peek(&weiri_retired_total), there = 0;

	for (struct weiri_record *record = weiri_peek(&weiri_records); record != NULL; record = record->next) {
		counted += (int64_t)weiri_peek(&record->unreported_bytes);
		there += peek_bytes_on(record->retired) + peek_bytes_on(record->pinned);
	}
	WEIR_ASSERT3(I5, there <= counted);
}

/* -- the budget -------------------------------------------------------------------------------- */

static void note_peak(int64_t total)
{
	/* [relaxed] statistics. */
	int64_t peak = weiri_load_relaxed(&retired_peak);

	while (peak < total && !weiri_cas_relaxed(&retired_peak, &peak, total))
		;
}

static void report(struct weiri_record *record)
{
	/* [relaxed] a sum; the objects travel by P2. */
	int64_t more = (int64_t)weiri_load_relaxed(&record->unreported_bytes);

	note_peak(weiri_fetch_add_relaxed(&weiri_retired_total, more) + more);
	weiri_store_relaxed(&record->unreported_bytes, 0u); /* [relaxed] own fields, both */
	weiri_store_relaxed(&record->stack, (weiri_load_relaxed(&record->stack) + 1) % WEIRI_STACKS);
}

/* -- collecting -------------------------------------------------------------------------------- */

enum scope { MINE, EVERYBODYS };

/* The objects that a collector holds. */
struct portion {
	struct weiri_record *record; /* the collector's */
	enum scope scope;
	struct held held;
	struct weiri_retired *list;
	uint64_t bytes;
	uint64_t last_era;     /* of the collector's last collection */
	uint64_t taken_before; /* an era that began after the objects were taken; 0: none yet */
	size_t number;         /* of the stack that was taken last, and of that to which survivors go */
	stack *home;           /* the stack for survivors that are not pinned */
	bool any_kept;         /* true: some object was held */
	bool any_late;         /* true: some object got its death in this collection */
	/* Called for each survivor, if not NULL. */
	weiri_kept_fn *kept;
	void *context;
};

/*
 * Publishes how many bytes the collector holds, for the child of a fork and for the thread that
 * finds this collection abandoned.
 */
static void say_in_hand(const struct portion *portion)
{
	/* [relaxed] no other thread reads it meanwhile. */
	weiri_store_relaxed(&portion->record->in_hand, portion->bytes);
}

/* Adds a list to the portion; its survivors go to stack `number`, at `home`. */
static void take_more(struct portion *portion, struct weiri_retired *list, size_t number, stack *home)
{
	struct weiri_retired *last = list;

	if (list == NULL)
		return;
	WEIR_ASSERT_LOOK(assert_collecting(portion->record));
	portion->number = number;
	portion->home = home;
	for (;; last = last->next) {
		portion->bytes += last->bytes;
		if (last->next == NULL)
			break;
	}
	last->next = portion->list;
	portion->list = list;
	say_in_hand(portion);
	/* [relaxed] for the thread that finds this collection abandoned. */
	weiri_store_relaxed(&portion->record->own->rest, list);
}

/* Counts bytes that were freed. */
static void count_freed(struct portion *portion, uint64_t bytes)
{
	portion->bytes -= bytes;
	/* [relaxed] a sum. */
	weiri_fetch_sub_relaxed(&weiri_retired_total, (int64_t)bytes);
	say_in_hand(portion);
	weiri_memory_freed();
}

static void put_back(struct portion *portion, struct weiri_retired *first, struct weiri_retired *last)
{
	/*
	 * [relaxed] Both stores are for the child of a fork and for the thread that finds this
	 * collection abandoned. They precede the push, so that objects are leaked rather than put back
	 * twice.
	 */
	WEIR_ASSERT_LOOK(assert_collecting(portion->record));
	weiri_store_relaxed(&portion->record->in_hand, 0u);
	weiri_store_relaxed(&portion->record->own->kept, NULL);
	if (last != NULL)
		push(portion->home, first, last);
	portion->list = NULL;
	portion->bytes = 0;
}

/* Notes that an object was pinned for the section that began at lo. */
static void note_pinned(_Atomic(uint64_t) *oldest, uint64_t lo)
{
	/*
	 * [relaxed] It only tells a collector whether to take the stack. The CAS and the exchange of
	 * the stack order its objects; see P5.
	 */
	uint64_t now = weiri_load_relaxed(oldest);

	while ((now == 0 || now > lo) && !weiri_cas_relaxed(oldest, &now, lo))
		;
}

/* Pins the object for a section that holds it. Returns false if no section holds it. */
static bool pin(struct portion *portion, struct weiri_retired *object)
{
	uint64_t lo;
	struct weiri_record *holder = find_section(object, &lo);

	if (holder == NULL)
		return false;
	portion->bytes -= object->bytes;
	push_pinned(&holder->pinned[portion->number], object);
	note_pinned(&holder->pinned_lo[portion->number], lo); /* I7: after the push */
	say_in_hand(portion);
	portion->any_kept = true;
	return true;
}

/* Returns an era that began after the objects of the portion were taken: P6. */
static uint64_t late_death(struct portion *portion)
{
	if (portion->taken_before == 0)
		portion->taken_before = weiri_era_begin();
	portion->any_late = true;
	return portion->taken_before;
}

/* Frees the objects of the portion that are not held. Pins each other one, or puts it back. */
static void sort_out(struct portion *portion)
{
	struct weiri_retired *kept = NULL, *last_kept = NULL, *next;
	uint64_t examined = 0, freed = 0, freed_bytes = 0;

	for (struct weiri_retired *object = portion->list; object != NULL; object = next) {
		next = object->next;
		examined++;
		/* [relaxed] for the thread that finds this collection abandoned. */
		weiri_store_relaxed(&portion->record->own->rest, next);
		if (object->death == WEIRI_DIES_LATE)
			object->death = late_death(portion);
		if (is_held(&portion->held, object)) {
			if (portion->kept != NULL)
				portion->kept(portion->context, object);
			if (object->death < portion->last_era && pin(portion, object))
				continue;
			last_kept = last_kept != NULL ? last_kept : object;
			object->next = kept;
			kept = object;
			weiri_store_relaxed(&portion->record->own->kept, kept); /* [relaxed] as above */
			continue;
		}
		WEIR_ASSERT2(I1, object->death < portion->held.era);
		freed++;
		freed_bytes += object->bytes;
		object->reclaim(object);
		if (freed_bytes >= REPORT_BYTES) {
			count_freed(portion, freed_bytes);
			freed_bytes = 0;
		}
	}
	weiri_count(&portion->record->examined, examined);
	weiri_count(&portion->record->freed, freed);
	if (freed_bytes != 0)
		count_freed(portion, freed_bytes);
	portion->any_kept |= kept != NULL;
	put_back(portion, kept, last_kept);
}

/*
 * The one scan of a collection: everything that died before its era was unlinked before its fence.
 */
static void look_at_readers(struct portion *portion)
{
	struct held *held = &portion->held;

	held->mine = portion->record;
	held->era = weiri_era_begin();
	weiri_fence_seq_cst(); /* F1 */
	if (portion->scope == MINE)
		weiri_settle_mine(portion->record, held->era);
	else
		weiri_settle_all(portion->record, held->era);
	held->settled = weiri_announcements_settled();
	scan(held);
	weiri_count(&portion->record->collections, 1);
}

static void finish(struct portion *portion)
{
	if (portion->list == NULL)
		return;
	portion->taken_before = 0;
	if (portion->held.era == 0) {
		look_at_readers(portion);
		portion->taken_before = portion->held.era;
	}
	sort_out(portion);
}

static void collect_record(struct portion *portion, struct weiri_record *from)
{
	for (size_t i = 0; i < WEIRI_STACKS; i++) {
		take_more(portion, take(&from->retired[i]), i, &from->retired[i]);
		if (portion->bytes >= PORTION_BYTES)
			finish(portion);
	}
}

/*
 * Takes what was pinned for a section of this record that has ended. If kept() is set, takes all
 * pinned objects.
 */
static void collect_pinned(struct portion *portion, struct weiri_record *from)
{
	for (size_t i = 0; i < WEIRI_STACKS; i++) {
		/*
		 * [relaxed] This load and the next only decide where to look; scan() decides what may be
		 * freed.
		 */
		uint64_t oldest = weiri_load_relaxed(&from->pinned_lo[i]);

		if (oldest == 0)
			continue;
		/* [relaxed] as above. */
		if (oldest == weiri_load_relaxed(&from->lo) && portion->kept == NULL) {
			portion->any_kept = true;
			continue;
		}
		take_more(portion, take_pinned(from, i), i, &portion->record->retired[i]);
		if (portion->bytes >= PORTION_BYTES)
			finish(portion);
	}
}

bool weiri_is_collecting(const struct weiri_record *record)
{
	/* [relaxed] own field. */
	return weiri_load_relaxed(&record->collecting) % 2 != 0;
}

/*
 * Runs one collection, and calls kept(), if not NULL, for each survivor. Returns true if some
 * objects got their death only now, so that another collection may free them (P6).
 */
static bool collect_and_hear(struct weiri_record *record, enum scope scope, weiri_kept_fn *kept, void *context)
{
	struct portion portion = {.record = record,
	                          .scope = scope,
	                          .last_era = weiri_load_relaxed(&record->own->last_era),
	                          .kept = kept,
	                          .context = context};

	/* [relaxed] I6; take() releases it, P3. */
	weiri_store_relaxed(&record->collecting, weiri_load_relaxed(&record->collecting) + 1);
	report(record);
	WEIRI_PROBE2(collect_begin, record, weiri_retired_bytes());
	weiri_store_relaxed(&record->since_collection, 0u); /* [relaxed] own field */
	record->own->is_era_begun = false;
	if (scope == MINE) {
		collect_record(&portion, record);
	} else {
		for (struct weiri_record *from = weiri_record_first(); from != NULL; from = from->next)
			collect_record(&portion, from);
	}
	for (struct weiri_record *from = weiri_record_first(); from != NULL; from = from->next)
		collect_pinned(&portion, from);
	finish(&portion);
	if (portion.held.era != 0)
		weiri_store_relaxed(&record->own->last_era, portion.held.era); /* [relaxed] own field */
	if (portion.any_kept)
		weiri_eras_note(); /* an age may be asked for later */
	WEIRI_PROBE2(collect_end, record, weiri_retired_bytes());
	WEIR_ASSERT_INSTANT(assert_counted());
	/* [P4 release] Pairs with collections_at_rest(). */
	weiri_store_release(&record->collecting, weiri_load_relaxed(&record->collecting) + 1);
	return portion.any_late;
}

void weiri_collect_everybodys(struct weiri_record *record, weiri_kept_fn *kept, void *context)
{
	(void)collect_and_hear(record, EVERYBODYS, kept, context);
}

/* Returns what collect_and_hear() does. */
static bool collect(struct weiri_record *record, enum scope scope)
{
	bool any_late;

	if (weiri_is_collecting(record)) /* a reclaim function retired; this collection is enough */
		return false;
	any_late = collect_and_hear(record, scope, NULL, NULL);
	weiri_stalls_after_collection(record);
	weiri_host_after_collection();
	weiri_magazine_after_collection(record);
	return any_late;
}

bool weiri_collect_for_all(struct weiri_record *record)
{
	return collect(record, EVERYBODYS);
}

/*
 * Gives the objects of a list their deaths, and counts them, up to the one with which there is
 * enough to report. Returns that one, or the last.
 */
static struct weiri_retired *count_some(struct weiri_record *record, struct weiri_retired *first)
{
	/* [seq_cst] after the unlinking; see I1 in section.h. */
	uint64_t era = weiri_load_seq_cst(&weiri_era), bytes = 0, count = 0;
	uint64_t room = REPORT_BYTES - weiri_load_relaxed(&record->unreported_bytes); /* [relaxed] own field */
	struct weiri_retired *object = first;

	for (;; object = object->next) {
		if (object->death != WEIRI_DIES_LATE)
			object->death = era;
		WEIR_ASSERT2(I1, object->birth <= object->death);
		WEIR_ASSERT_INSTANT(assert_on_no_stack(object));
		bytes += object->bytes;
		count++;
		if (bytes >= room || object->next == NULL)
			break;
	}
	weiri_count(&record->unreported_bytes, bytes);
	weiri_count(&record->since_collection, bytes + count * OBJECT_BYTES);
	return object;
}

/* Begins an era ahead of the next collection, or collects. */
static WEIRI_NOINLINE void take_step(struct weiri_record *record)
{
	if (weiri_load_relaxed(&record->since_collection) >= COLLECT_BYTES) { /* [relaxed] own field */
		(void)collect(record, MINE);
	} else if (!record->own->is_era_begun) {
		record->own->is_era_begun = true;
		(void)weiri_era_begin();
	}
}

/* Called after objects of this record were pushed. */
static inline void report_and_collect(struct weiri_record *record)
{
	/* [relaxed] own fields. */
	if (weiri_load_relaxed(&record->unreported_bytes) >= REPORT_BYTES)
		report(record);
	if (WEIRI_UNLIKELY(weiri_load_relaxed(&record->since_collection) >= ERA_BYTES))
		take_step(record);
}

void weiri_retire(struct weiri_record *record, struct weiri_retired *object)
{
	/* [seq_cst] after the unlinking; see I1 in section.h. */
	if (object->death != WEIRI_DIES_LATE)
		object->death = weiri_load_seq_cst(&weiri_era);
	WEIR_ASSERT2(I1, object->birth <= object->death);
	WEIR_ASSERT_INSTANT(assert_on_no_stack(object));
	weiri_count(&record->unreported_bytes, object->bytes);
	weiri_count(&record->since_collection, object->bytes + OBJECT_BYTES);
	push(&record->retired[weiri_load_relaxed(&record->stack)], object, object); /* [relaxed] own field */
	report_and_collect(record);
}

void weiri_retire_list(struct weiri_record *record, struct weiri_retired *list)
{
	while (list != NULL) {
		struct weiri_retired *last = count_some(record, list), *next = last->next;

		push(&record->retired[weiri_load_relaxed(&record->stack)], list, last); /* [relaxed] own field */
		report_and_collect(record);
		list = next;
	}
}

void weiri_retire_unreachable(struct weiri_record *record, struct weiri_retired *object)
{
	/*
	 * [relaxed] A sum; the object travels by P2. unreported_bytes is not used, because the
	 * interrupted code may be adding to it.
	 */
	note_peak(weiri_fetch_add_relaxed(&weiri_retired_total, (int64_t)object->bytes) + (int64_t)object->bytes);
	/* An interval that meets no other. */
	object->birth = UINT64_MAX;
	object->death = 0;
	/* [relaxed] own field. */
	push(&record->retired[weiri_load_relaxed(&record->stack)], object, object);
}

/* -- fork -------------------------------------------------------------------------------------- */

static uint64_t bytes_on(stack stacks[])
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < WEIRI_STACKS; i++) {
		/* [relaxed] the only thread. */
		for (struct weiri_retired *object = weiri_load_relaxed(&stacks[i]); object != NULL; object = object->next)
			bytes += object->bytes;
	}
	return bytes;
}

/*
 * Notes an early era for each stack of pinned objects, so that a collection takes it. The notes may
 * be missing, because threads of the parent may have been in pin(), or about to take a stack (I7).
 * The sections of those threads are over.
 */
static void note_all_pinned(struct weiri_record *record)
{
	for (size_t i = 0; i < WEIRI_STACKS; i++) {
		/* [relaxed] the only thread. */
		if (weiri_load_relaxed(&record->pinned[i]) != NULL)
			weiri_store_relaxed(&record->pinned_lo[i], 1u);
	}
}

/*
 * The objects that collectors on other threads of the parent held are leaked. They must not count
 * permanently: one large object could exceed the budget. Those threads may have been anywhere
 * between taking and publishing, or between adding and subtracting. So everything is counted
 * afresh.
 */
void weiri_collect_after_fork(struct weiri_record *mine)
{
	uint64_t bytes = 0;

	/* [relaxed] the only thread. */
	for (struct weiri_record *record = weiri_record_first(); record != NULL; record = record->next) {
		if (record != mine && weiri_is_collecting(record)) {
			weiri_store_relaxed(&record->collecting, weiri_load_relaxed(&record->collecting) + 1);
			weiri_store_relaxed(&record->in_hand, 0u);
		}
		if (record != mine) {
			weiri_store_relaxed(&record->own->rest, NULL);
			weiri_store_relaxed(&record->own->kept, NULL);
			weiri_store_relaxed(&record->waits, 0u);
		}
		weiri_store_relaxed(&record->unreported_bytes, 0u);
		note_all_pinned(record);
		bytes += bytes_on(record->retired) + bytes_on(record->pinned) + weiri_load_relaxed(&record->in_hand);
	}
	weiri_store_relaxed(&weiri_retired_total, (int64_t)bytes);
	weiri_waits_after_fork(mine);
}

/* -- threads that ended in the middle ---------------------------------------------------------- */

/* Puts back one of the two lists of a collection; returns its bytes. */
static uint64_t put_back_abandoned(struct weiri_record *record, stack *list)
{
	/* [relaxed] the caller owns the record. */
	struct weiri_retired *first = weiri_load_relaxed(list), *last = first;
	uint64_t bytes = 0;

	if (first == NULL)
		return 0;
	weiri_store_relaxed(list, NULL); /* [relaxed] as above */
	for (;; last = last->next) {
		bytes += last->bytes;
		if (last->next == NULL)
			break;
	}
	push(&record->retired[0], first, last);
	return bytes;
}

static void end_collection(struct weiri_record *record)
{
	/* [relaxed] the caller owns the record; a sum. */
	uint64_t lost = weiri_load_relaxed(&record->in_hand);

	lost -= put_back_abandoned(record, &record->own->rest);
	lost -= put_back_abandoned(record, &record->own->kept);
	weiri_store_relaxed(&record->in_hand, 0u);
	weiri_fetch_sub_relaxed(&weiri_retired_total, (int64_t)lost);
	/* [P4 release] pairs with collections_at_rest(). */
	weiri_store_release(&record->collecting, weiri_load_relaxed(&record->collecting) + 1);
	weiri_memory_freed(); /* or may be now, by whoever waits for it */
}

void weiri_collect_abandoned(struct weiri_record *record)
{
	/* [P1 release] As in weiri_section_leave(): the reads of the section come before. */
	weiri_store_release(&record->lo, 0u);
	weiri_store_relaxed(&record->read_sections, 0u); /* [relaxed] for reports */
	weiri_store_relaxed(&record->picking, 0u);       /* [relaxed] for the owner's signal handlers */
	if (weiri_is_collecting(record))
		end_collection(record);
	weiri_wait_abandoned(record);
}

/* -- statistics -------------------------------------------------------------------------------- */

enum weir_status weir_reclaim_get_stats(struct weir_reclaim_stats *stats)
{
	struct weir_reclaim_stats sum = {0};
	uint64_t created = 0, freed_versions = 0;

	if (stats == NULL || !weiri_options_size_ok(stats->struct_size))
		return WEIR_INVALID_ARGUMENT;
	for (struct weiri_record *record = weiri_record_first(); record != NULL; record = record->next) {
		/*
		 * [relaxed] Statistics. `freed` is read before `created`, so that a stale value does not
		 * make the difference negative.
		 */
		freed_versions += weiri_load_relaxed(&record->freed_versions);
		sum.freed_objects += weiri_load_relaxed(&record->freed);
		sum.collections += weiri_load_relaxed(&record->collections);
		sum.slot_misses += weiri_load_relaxed(&record->slot_misses);
		sum.copies += weiri_load_relaxed(&record->copies);
		sum.copies_wasted += weiri_load_relaxed(&record->copies_wasted);
		sum.kept_bytes += weiri_load_relaxed(&record->magazine_bytes);
		sum.threads++;
	}
	for (struct weiri_record *record = weiri_record_first(); record != NULL; record = record->next)
		created += weiri_load_relaxed(&record->created);
	sum.live_versions = created - freed_versions;
	sum.retired_bytes = weiri_retired_bytes();
	sum.membarriers = weiri_fence_membarriers();
	/* [relaxed] statistics. */
	sum.peak_retired_bytes = (uint64_t)weiri_load_relaxed(&retired_peak);
	weiri_statistics_write(stats, &sum, sizeof(sum));
	return WEIR_OK;
}
