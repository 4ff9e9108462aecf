/*
 * collect.c - the byte-budget collector.
 *
 * Algorithm. Each thread pushes what it retires on stacks of its own, 64 KiB on one, the next on another, in turn. A collection
 * begins a new era, runs the heavy fence, reads every record's interval and slots, and goes through the stacks in portions. Of each portion
 * it frees the objects that died in an earlier era, whose life [birth, death] meets no interval and that no slot names. What died in
 * this era or later may have been unlinked after the scan: it waits for another. Survivors go back on a stack of the portion. A stack is
 * taken whole by one exchange, so any thread may collect for another: a writer over the budget takes everybody's, and an idle or
 * ended thread's garbage is nobody's problem.
 * What a section holds it holds until it ends, and a section may be stopped for ever: to look at that in each collection would be in
 * vain. So what a section holds, and what an earlier collection of this thread could have seen, is pinned: put on a stack of the
 * record whose section it is, with the section's lo. A collection passes these stacks by while the record's lo is that one, and takes
 * them like its own when it is not. So an object is looked at twice, and once more for each section that held it and has ended,
 * however many are pinned and however often a writer collects. Only what slots name is looked at each time: no more than
 * there are handles. What is new is not pinned: mostly it goes the next time, and stays with the thread that retired it until then.
 * The set of slots is a Bloom filter on the stack (no allocation); an object that it reports is looked for exactly. So is one that
 * meets the last of the intervals, when there were more of them, apart from each other, than there is room for.
 *
 * Why portions. A collector that is stopped keeps from the others what it has in its hands, and that still counts in the budget,
 * as it should: it is memory. So it takes little at a time, and what it has freed is subtracted as it goes. It never has more
 * than PORTION_BYTES and one stack: an eighth of what one thread retired, about. Only when the survivors of earlier collections
 * all lie on one stack, and what held them lets go, can one stack be most of the budget. The same goes for stacks of what is pinned: an
 * object keeps the number of its stack. Between taking back its lo and taking such a stack a collector hides it, as if it had it.
 *
 * Invariants
 *   I4  an object is on one stack, or in the hands of one collector
 *   I5  every retired object is counted in retired_total, or in unreported_bytes of the record that retired it, until at most
 *       REPORT_BYTES after it is freed
 *   I6  `collecting` of a record is odd from before it takes a stack until after it put the last survivor back
 *   I7  of what is pinned on a stack no section has a smaller lo than pinned_lo, but for one object of each collector that is in pin(), and
 *       what a collector is about to take. An lo never comes back after a later one: eras only grow. Except where a signal handler's section ran
 *       between the read of the era and the store of lo: then what it held may be passed by until the interrupted section has ended, too
 * Pairs
 *   P2  push(retire) -> take(collector): the object's fields and what it owns
 *   P3  take(collector) -> a flush that finds the stack empty: `collecting` is odd
 *   P4  end(collector) -> a flush that finds `collecting` even: the survivors are back
 *   P5  take(collector) -> pin(collector): pinned_lo was taken back; who pins after the stack was taken notes its lo after that
 *   F1, P1 of section.h
 * Why what is pinned may be passed by: the object met [lo, hi] of the section, and hi grows. A section of the same record with the same lo
 * meets it as well: if an earlier one had raised its hi, its owner knew a later era, and so would the next one's lo be. (Where a signal
 * handler's section had raised hi for itself, its objects are held until the outer one ends; they were alive in it.) Why it is not
 * passed by for long after that: a stack with an object of a section that has ended has a pinned_lo no larger than that section's (I7), and
 * so not the record's lo, which is 0 or larger.
 * Progress: collecting is lock-free: it waits for no reader and for no other collector. Only admit() waits, and only when the
 * budget is spent.
 * Bound: see docs/memory.md; the terms are stated there and held by the stress scenario "memory_bound".
 * Checked: stress/model/check_reclaim.c, tests/test_reclaim.c, test_crowd.c, test_fork.c; stress scenarios memory_bound, variable_stopped,
 *   thread_churn, fork.
 */
#include "reclaim/collect.h"

#include <limits.h>
#include <weir/reclaim.h>
#include <weir/time.h>

#include "base/futex.h"
#include "base/probe.h"
#include "reclaim/eras.h"
#include "reclaim/stall.h"

enum {
	COLLECT_EVERY = 256,     /* objects */
	COLLECT_SHARE = 8,       /* and budget / this, bytes */
	REPORT_BYTES = 64 << 10, /* bytes that a thread may retire, or free, before it says so */
	PORTION_BYTES = 2 * REPORT_BYTES,
	FILTER_BITS = 4096,
	PAUSE_SHARE = 8, /* of the time that a wait for memory has lasted */
	LONGEST_PAUSE_NS = 10000000,
#if defined(WEIRI_UNDER_MODEL) /* stress/model: there two sections make a crowd */
	MAX_INTERVALS = 1
#else
	MAX_INTERVALS = 64
#endif
};

_Alignas(WEIRI_APART) _Atomic(uint64_t) weiri_era = 1;

/* Bytes. Signed: another thread may free, and subtract, what its owner has not reported yet. */
static _Alignas(WEIRI_APART) _Atomic(int64_t) retired_total;
static _Atomic(int64_t) retired_peak;
static _Alignas(WEIRI_APART) _Atomic(uint64_t) budget = WEIR_RECLAIM_DEFAULT_BUDGET;
static _Atomic(uint32_t) memory_waiters; /* writers inside wait_for_memory() */
static _Atomic(uint32_t) memory_freed;   /* futex word: changes when a waiter should look again */

struct interval {
	uint64_t lo, hi;
};

/* What readers held at one scan. */
struct held {
	uint64_t era; /* it says nothing about what died in this one or later; 0: there was no scan yet */
	size_t intervals;
	int crowded; /* there were more: the last one covers what lies between them too */
	struct interval interval[MAX_INTERVALS];
	uint64_t filter[FILTER_BITS / 64];
};

static unsigned filter_bit(const void *object)
{
	/* Objects are 64-byte aligned; Fibonacci hashing spreads what is left. */
	return (unsigned)((((uint64_t)(uintptr_t)object >> 6) * UINT64_C(0x9E3779B97F4A7C15)) >> 52);
}

/* One that touches another becomes a part of it: together they meet the same lives. Most sections began in the same few eras. */
static int join_one(struct held *held, uint64_t lo, uint64_t hi)
{
	for (size_t i = 0; i < held->intervals; i++) {
		struct interval *one = &held->interval[i];

		if (lo > one->hi || one->lo > hi)
			continue;
		one->lo = lo < one->lo ? lo : one->lo;
		one->hi = hi > one->hi ? hi : one->hi;
		return 1;
	}
	return 0;
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
	held->crowded = 1;
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
	 * [relaxed] Slots are claimed inside sections. Of one that was left before the acquire of lo, which comes before every call of
	 * this, mark and slots are seen; one that goes on holds what its slots name; one that began after our fence cannot reach it.
	 */
	return weiri_load_relaxed(&record->snapshot_used);
}

static void hold_record(struct held *held, struct weiri_record *record)
{
	/* [P1 acquire] pairs with leave. lo before hi, see enter; lo before the slots: a snapshot fills its slots inside its section. */
	uint64_t lo = weiri_load_acquire(&record->lo);

	/* [relaxed] hi is not older than lo, which is acquired; it carries nothing: what it admits to is not freed. */
	if (lo != 0)
		hold_interval(held, lo, weiri_load_relaxed(&record->hi));
	hold_slots(held, record->slots, WEIRI_SLOTS);
	hold_slots(held, record->snapshot_slots, snapshot_slots_used(record));
}

static struct weiri_record *first_record(void)
{
	/* [acquire] pairs with publish() in record.c. */
	return weiri_load_acquire(&weiri_records);
}

static void scan(struct held *held)
{
	for (struct weiri_record *record = first_record(); record != NULL; record = record->next)
		hold_record(held, record);
}

static int slots_name(struct weiri_slot slots[], size_t count, const void *object)
{
	for (size_t i = 0; i < count; i++) {
		/* [P1 acquire] pairs with weiri_slot_clear(). */
		if (weiri_load_acquire(&slots[i].object) == object)
			return 1;
	}
	return 0;
}

/* The filter said yes: does a slot really name it? */
static WEIRI_COLD int named_by_a_slot(const void *object)
{
	for (struct weiri_record *record = first_record(); record != NULL; record = record->next) {
		if (slots_name(record->slots, WEIRI_SLOTS, object) ||
		    slots_name(record->snapshot_slots, snapshot_slots_used(record), object))
			return 1;
	}
	return 0;
}

static int meets(const struct weiri_retired *object, uint64_t lo, uint64_t hi)
{
	return object->birth <= hi && lo <= object->death;
}

/* A record whose section holds the object now, and that section's lo; NULL: there is none. */
static WEIRI_COLD struct weiri_record *find_section(const struct weiri_retired *object, uint64_t *lo)
{
	for (struct weiri_record *record = first_record(); record != NULL; record = record->next) {
		/* [relaxed] both: they say where the object waits; scan() decides what may be freed. An hi that is older than lo finds less. */
		*lo = weiri_load_relaxed(&record->lo);
		if (*lo != 0 && meets(object, *lo, weiri_load_relaxed(&record->hi)))
			return record;
	}
	return NULL;
}

/* The interval of a crowd said yes: does a section hold it now? */
static WEIRI_COLD int met_by_a_section(const struct weiri_retired *object)
{
	for (struct weiri_record *record = first_record(); record != NULL; record = record->next) {
		/* [P1 acquire] pairs with leave, also when another section has begun since; lo before hi, see enter. */
		uint64_t lo = weiri_load_acquire(&record->lo);

		/* [relaxed] hi: see hold_record(). */
		if (lo != 0 && meets(object, lo, weiri_load_relaxed(&record->hi)))
			return 1;
	}
	return 0;
}

/*
 * A section that held it at the scan either goes on, then we see it, or has ended, maybe with a slot that names it now: so the slots
 * come after, and the filter, which is older, is not asked. A section that began since reaches nothing of this portion.
 */
static WEIRI_COLD int held_by_the_crowd(const struct weiri_retired *object)
{
	return met_by_a_section(object) || named_by_a_slot(object);
}

static int is_held(const struct held *held, const struct weiri_retired *object)
{
	unsigned bit = filter_bit(object);

	if (object->death >= held->era)
		return 1;
	for (size_t i = 0; i < held->intervals; i++) {
		if (meets(object, held->interval[i].lo, held->interval[i].hi))
			return !(held->crowded && i == MAX_INTERVALS - 1) || held_by_the_crowd(object);
	}
	return (held->filter[bit / 64] >> (bit % 64) & 1) != 0 && named_by_a_slot(object);
}

/* -- stacks of retired objects ------------------------------------------------------------------------------------------------ */

typedef _Atomic(struct weiri_retired *) stack;

static void push(stack *to, struct weiri_retired *first, struct weiri_retired *last)
{
	/* [relaxed] only the CAS counts. */
	struct weiri_retired *top = weiri_load_relaxed(to);

	do {
		last->next = top;
		/* [P2 release] pairs with take(). That `top` may have come back meanwhile does no harm: stacks are only taken whole. */
	} while (!weiri_cas_release(to, &top, first));
}

/* The same on a stack of a section's. */
static void push_pinned(stack *to, struct weiri_retired *object)
{
	/* [relaxed] only the CAS counts. */
	object->next = weiri_load_relaxed(to);
	/* [P2 release] as above. [P5 acquire] pairs with take_pinned(). */
	while (!weiri_cas_acq_rel(to, &object->next, object))
		;
}

static struct weiri_retired *take(stack *from)
{
	/* [relaxed] a look that spares the line. [P2 acquire] pairs with push(). [P3 release] pairs with no_stack_has_any(). */
	return weiri_load_relaxed(from) != NULL ? weiri_exchange_acq_rel(from, NULL) : NULL;
}

/*
 * What is pinned there. The lo is taken back first, so that who pins after this says so again (I7). No look before the exchange: it might
 * not see what the lo told of.
 */
static struct weiri_retired *take_pinned(struct weiri_record *record, size_t number)
{
	/* [relaxed] P5 orders it. */
	weiri_store_relaxed(&record->pinned_lo[number], 0u);
	/* [P2 acquire] pairs with push_pinned(). [P3 release] as in take(). [P5 release] pairs with push_pinned(). */
	return weiri_exchange_acq_rel(&record->pinned[number], NULL);
}

/* -- the budget --------------------------------------------------------------------------------------------------------------- */

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

	note_peak(weiri_fetch_add_relaxed(&retired_total, more) + more);
	weiri_store_relaxed(&record->unreported_bytes, 0u); /* [relaxed] own fields, both */
	weiri_store_relaxed(&record->stack, (weiri_load_relaxed(&record->stack) + 1) % WEIRI_STACKS);
}

void weir_reclaim_set_budget(uint64_t bytes)
{
	/* [relaxed] a setting; a late reader collects a little later. */
	weiri_store_relaxed(&budget, bytes != 0 ? bytes : WEIR_RECLAIM_DEFAULT_BUDGET);
}

uint64_t weir_reclaim_budget(void)
{
	/* [relaxed] a setting. */
	return weiri_load_relaxed(&budget);
}

static uint64_t retired_bytes(void)
{
	/* [relaxed] a threshold or a statistic; a stale value only shifts the moment. */
	int64_t total = weiri_load_relaxed(&retired_total);

	return total > 0 ? (uint64_t)total : 0;
}

static int over_budget(void)
{
	return retired_bytes() > weir_reclaim_budget();
}

static void wake_all(void)
{
	/* [relaxed] a waiter that reads the new value runs a heavy fence before it looks again. */
	weiri_fetch_add_relaxed(&memory_freed, 1u);
	weiri_futex_wake(&memory_freed, INT_MAX);
}

WEIRI_COLD void weiri_wake_memory_waiters(struct weiri_record *record)
{
	/* [relaxed] cleared before the wake: a poke that comes later is for a later scan. */
	weiri_store_relaxed(&record->poke, 0u);
	wake_all();
}

/* -- collecting --------------------------------------------------------------------------------------------------------------- */

/* What a collector has in its hands. */
struct portion {
	struct weiri_record *record; /* the collector's */
	struct held held;
	struct weiri_retired *list;
	uint64_t bytes;
	uint64_t last_era; /* of the collector's last collection */
	size_t number;     /* of the stack that survivors go to */
	stack *home;       /* that stack, for those that are not pinned */
	int any_kept;      /* something was held */
	/* Hears of survivors, if not NULL. */
	weiri_kept_fn *kept;
	void *context;
};

/* How much the collector has in its hands: for the child of a fork. */
static void say_in_hand(const struct portion *portion)
{
	weiri_store_relaxed(&portion->record->in_hand, portion->bytes); /* [relaxed] the only thread reads it */
}

/* Adds a list; what of it survives goes to stack `number`, at `home`. */
static void take_more(struct portion *portion, struct weiri_retired *list, size_t number, stack *home)
{
	struct weiri_retired *last = list;

	if (list == NULL)
		return;
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
	weiri_store_relaxed(&portion->record->rest, list); /* [relaxed] for who finds this abandoned */
}

/* So many bytes more were freed. */
static void count_freed(struct portion *portion, uint64_t bytes)
{
	portion->bytes -= bytes;
	/* [relaxed] a sum. */
	weiri_fetch_sub_relaxed(&retired_total, (int64_t)bytes);
	say_in_hand(portion);
	weiri_fence_light(); /* F1: a waiter counts itself, runs the heavy fence, and collects once more before it sleeps. */
	/* [relaxed] see above; whoever is missed looks again by itself. */
	if (weiri_load_relaxed(&memory_waiters) != 0)
		wake_all();
}

static void put_back(struct portion *portion, struct weiri_retired *first, struct weiri_retired *last)
{
	/* [relaxed] both, for the child of a fork, and for who finds this abandoned: rather lost than put back twice. */
	weiri_store_relaxed(&portion->record->in_hand, 0u);
	weiri_store_relaxed(&portion->record->kept, NULL);
	if (last != NULL)
		push(portion->home, first, last);
	portion->list = NULL;
	portion->bytes = 0;
}

/* Says that something was pinned for the section that began at lo. */
static void note_pinned(_Atomic(uint64_t) *oldest, uint64_t lo)
{
	/* [relaxed] what a collector decides by is taken, or left, by the stack itself; see P5. */
	uint64_t now = weiri_load_relaxed(oldest);

	while ((now == 0 || now > lo) && !weiri_cas_relaxed(oldest, &now, lo))
		;
}

/* Hands the object over to a section that holds it: 0 when none does. */
static int pin(struct portion *portion, struct weiri_retired *object)
{
	uint64_t lo;
	struct weiri_record *holder = find_section(object, &lo);

	if (holder == NULL)
		return 0;
	portion->bytes -= object->bytes;
	push_pinned(&holder->pinned[portion->number], object);
	note_pinned(&holder->pinned_lo[portion->number], lo); /* I7: after the push */
	say_in_hand(portion);
	portion->any_kept = 1;
	return 1;
}

/* Frees what of the portion is not held, pins or puts back the rest. */
static void sort_out(struct portion *portion)
{
	struct weiri_retired *kept = NULL, *last_kept = NULL, *next;
	uint64_t examined = 0, freed = 0, freed_bytes = 0;

	for (struct weiri_retired *object = portion->list; object != NULL; object = next) {
		next = object->next;
		examined++;
		weiri_store_relaxed(&portion->record->rest, next); /* [relaxed] for who finds this abandoned */
		if (is_held(&portion->held, object)) {
			if (portion->kept != NULL)
				portion->kept(portion->context, object);
			if (object->death < portion->last_era && pin(portion, object))
				continue;
			last_kept = last_kept != NULL ? last_kept : object;
			object->next = kept;
			kept = object;
			weiri_store_relaxed(&portion->record->kept, kept); /* [relaxed] as above */
			continue;
		}
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

/* One scan for a collection: all that died before its era was unlinked before its fence. */
static void look_at_readers(struct portion *portion)
{
	struct held *held = &portion->held;

	held->era = weiri_era_begin();
	if (weiri_fence_heavy()) /* F1 */
		scan(held);
	else
		/* Nothing may be concluded: hold all eras. */
		hold_interval(held, 0, UINT64_MAX);
	weiri_count(&portion->record->collections, 1);
}

static void finish(struct portion *portion)
{
	if (portion->list == NULL)
		return;
	if (portion->held.era == 0)
		look_at_readers(portion);
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

/* What was pinned for a section of this record that has ended; for who wants to hear of what is kept, all that is pinned. */
static void collect_pinned(struct portion *portion, struct weiri_record *from)
{
	for (size_t i = 0; i < WEIRI_STACKS; i++) {
		/* [relaxed] what is decided by these two is where to look; scan() decides what may be freed. */
		uint64_t oldest = weiri_load_relaxed(&from->pinned_lo[i]);

		if (oldest == 0)
			continue;
		if (oldest == weiri_load_relaxed(&from->lo) && portion->kept == NULL) { /* [relaxed] as above */
			portion->any_kept = 1;
			continue;
		}
		take_more(portion, take_pinned(from, i), i, &portion->record->retired[i]);
		if (portion->bytes >= PORTION_BYTES)
			finish(portion);
	}
}

int weiri_is_collecting(const struct weiri_record *record)
{
	/* [relaxed] own field. */
	return weiri_load_relaxed(&record->collecting) % 2 != 0;
}

enum scope { MINE, EVERYBODYS };

/* One collection. */
static void collect_and_hear(struct weiri_record *record, enum scope scope, weiri_kept_fn *kept, void *context)
{
	struct portion portion = {
		.record = record, .last_era = weiri_load_relaxed(&record->last_era), .kept = kept, .context = context};

	/* [relaxed] I6; take() releases it, P3. */
	weiri_store_relaxed(&record->collecting, weiri_load_relaxed(&record->collecting) + 1);
	report(record);
	WEIRI_PROBE2(collect_begin, record, retired_bytes());
	weiri_store_relaxed(&record->since_collection, 0u); /* [relaxed] own field */
	if (scope == MINE) {
		collect_record(&portion, record);
	} else {
		for (struct weiri_record *from = first_record(); from != NULL; from = from->next)
			collect_record(&portion, from);
	}
	for (struct weiri_record *from = first_record(); from != NULL; from = from->next)
		collect_pinned(&portion, from);
	finish(&portion);
	if (portion.held.era != 0)
		weiri_store_relaxed(&record->last_era, portion.held.era); /* [relaxed] own field */
	if (portion.any_kept)
		weiri_eras_note(); /* somebody may ask for how long */
	WEIRI_PROBE2(collect_end, record, retired_bytes());
	/* [P4 release] pairs with collections_at_rest(). */
	weiri_store_release(&record->collecting, weiri_load_relaxed(&record->collecting) + 1);
}

void weiri_collect_everybodys(struct weiri_record *record, weiri_kept_fn *kept, void *context)
{
	collect_and_hear(record, EVERYBODYS, kept, context);
}

static void collect(struct weiri_record *record, enum scope scope)
{
	if (weiri_is_collecting(record)) /* a reclaim function retired something: the collection under way is enough */
		return;
	collect_and_hear(record, scope, NULL, NULL);
	weiri_stalls_after_collection(record);
}

void weiri_retire(struct weiri_record *record, struct weiri_retired *object)
{
	int large = object->bytes >= REPORT_BYTES;

	/* [seq_cst] after the unlinking; see I1 in section.h. */
	object->death = weiri_load_seq_cst(&weiri_era);
	weiri_count(&record->unreported_bytes, object->bytes);
	weiri_count(&record->since_collection, 1);
	push(&record->retired[weiri_load_relaxed(&record->stack)], object,
	     object); /* [relaxed] own fields, here and below */
	if (weiri_load_relaxed(&record->unreported_bytes) >= REPORT_BYTES)
		report(record);
	if (weiri_load_relaxed(&record->since_collection) >= COLLECT_EVERY ||
	    (large && retired_bytes() > weir_reclaim_budget() / COLLECT_SHARE))
		collect(record, MINE);
}

void weiri_retire_unreachable(struct weiri_record *record, struct weiri_retired *object)
{
	/* [relaxed] a sum; the object travels by P2. Not through unreported_bytes, which the interrupted code may be adding to. */
	note_peak(weiri_fetch_add_relaxed(&retired_total, (int64_t)object->bytes) + (int64_t)object->bytes);
	/* A life that meets no interval. */
	object->birth = UINT64_MAX;
	object->death = 0;
	push(&record->retired[weiri_load_relaxed(&record->stack)], object, object); /* [relaxed] own field */
}

/* -- waiting for memory ------------------------------------------------------------------------------------------------------- */

static void poke_everybody(void)
{
	for (struct weiri_record *record = first_record(); record != NULL; record = record->next)
		/* [relaxed] a flag; the heavy fence that follows orders it (F1). */
		weiri_store_relaxed(&record->poke, 1u);
}

/* The end of a section wakes nobody. */
uint64_t weiri_reclaim_look_again_ns = 1000000;

/*
 * How long a wait that began at since_ns leaves between two looks: a part of what it has lasted. A look may be for nothing: readers that
 * clear other slots wake the waiter, too. So the looks of a wait take a small part of its time, however many wake it, unless one look
 * takes longer than LONGEST_PAUSE_NS; and a wake-up is heard a small part too late.
 */
static uint64_t pause_ns(uint64_t since_ns)
{
	uint64_t pause = (weir_now_ns() - since_ns) / PAUSE_SHARE;

	return pause < LONGEST_PAUSE_NS ? pause : LONGEST_PAUSE_NS;
}

/* Sleeps, whoever clears a slot. */
static void rest_until(uint64_t until_ns)
{
	_Atomic(uint32_t) not_woken = 0;

	(void)weiri_futex_wait(&not_woken, 0, until_ns);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* After a look that was in vain; `seen` was read before it. */
static void sleep_after_look(uint64_t since_ns, uint32_t seen, uint64_t deadline_ns)
{
	uint64_t pause = pause_ns(since_ns);
	uint64_t listen = pause > weiri_reclaim_look_again_ns ? pause : weiri_reclaim_look_again_ns;

	if (pause != 0)
		rest_until(earlier(weir_deadline_in(pause), deadline_ns));
	(void)weiri_futex_wait(&memory_freed, seen, earlier(weir_deadline_in(listen), deadline_ns));
}

typedef int condition(void);

static int ended(condition *holds, struct weiri_record *record)
{
	if (!holds())
		return 1;
	collect(record, EVERYBODYS);
	return !holds();
}

/* Collects and sleeps while the condition holds, until the deadline. Returns whether it has ended. */
static WEIRI_COLD int wait_while(condition *holds, struct weiri_record *record, uint64_t deadline_ns)
{
	uint64_t since = weir_now_ns();
	int done = ended(holds, record);

	WEIRI_PROBE1(memory_block, deadline_ns);
	/* [relaxed] counted before the heavy fence, F1. A release function may end the thread: `waits` tells who cleans up. */
	weiri_store_relaxed(&record->waits, 1u);
	weiri_fetch_add_relaxed(&memory_waiters, 1u);
	while (!done && weir_now_ns() < deadline_ns) {
		/* [relaxed] the heavy fence comes before what is looked at: all that came before a change that was seen here is seen there. */
		uint32_t seen = weiri_load_relaxed(&memory_freed);

		poke_everybody();
		/*
		 * F1: who frees or clears without having seen us is seen by the look below. Not left to the collection: that runs no fence when
		 * there is nothing to take, all being in another collector's hands. Refused: we look again by the clock.
		 */
		(void)weiri_fence_heavy();
		done = ended(holds, record);
		if (!done)
			sleep_after_look(since, seen, deadline_ns);
	}
	weiri_fetch_sub_relaxed(&memory_waiters, 1u);
	weiri_store_relaxed(&record->waits, 0u);
	WEIRI_PROBE1(memory_wake, done);
	return done;
}

enum weir_status weiri_reclaim_admit(struct weiri_record *record, uint64_t deadline_ns)
{
	if (WEIRI_LIKELY(!over_budget()))
		return WEIR_OK;
	/* A write by a release function, in a collection of this thread: what it would wait for is itself. */
	if (weiri_is_collecting(record) || wait_while(over_budget, record, deadline_ns))
		return WEIR_OK;
	return WEIR_RESOURCE_EXHAUSTED;
}

/* 1 when nobody collects; *sum changes with every collection. */
static int collections_at_rest(uint64_t *sum)
{
	*sum = 0;
	for (struct weiri_record *record = first_record(); record != NULL; record = record->next) {
		/* [P4 acquire] pairs with the end of collect(). */
		uint64_t collecting = weiri_load_acquire(&record->collecting);

		if (collecting % 2 != 0)
			return 0;
		*sum += collecting;
	}
	return 1;
}

static int no_stack_has_any(void)
{
	for (struct weiri_record *record = first_record(); record != NULL; record = record->next) {
		for (size_t i = 0; i < WEIRI_STACKS; i++) {
			/* [P3 acquire] empty because a collector took it: then collections_at_rest() sees that one at work. */
			if (weiri_load_acquire(&record->retired[i]) != NULL)
				return 0;
			/* [P3 acquire] the same. */
			if (weiri_load_acquire(&record->pinned[i]) != NULL)
				return 0;
		}
	}
	return 1;
}

/* Empty stacks say nothing while a collector has in its hands what was on them: as with a seqlock, none may have been at work. */
static int anything_retired(void)
{
	uint64_t before, after;

	return !collections_at_rest(&before) || !no_stack_has_any() || !collections_at_rest(&after) || before != after;
}

enum weir_status weir_reclaim_flush(uint64_t deadline_ns)
{
	struct weiri_record *record = weiri_record_get();

	if (record == NULL)
		return WEIR_RESOURCE_EXHAUSTED;
	if (weiri_is_collecting(record))
		return WEIR_FAILED_PRECONDITION;
	return wait_while(anything_retired, record, deadline_ns) ? WEIR_OK : WEIR_DEADLINE_EXCEEDED;
}

/* -- fork --------------------------------------------------------------------------------------------------------------------- */

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

/* Threads that are gone may have been in pin(), or about to take a stack; and their sections are over (I7). */
static void note_all_pinned(struct weiri_record *record)
{
	for (size_t i = 0; i < WEIRI_STACKS; i++) {
		/* [relaxed] the only thread. */
		if (weiri_load_relaxed(&record->pinned[i]) != NULL)
			weiri_store_relaxed(&record->pinned_lo[i], 1u);
	}
}

/*
 * What threads that are gone had in their hands is lost, and must not count for ever: one large object could be more than the
 * budget. They may have been anywhere between taking and saying so, or between adding and subtracting, so all is counted anew.
 */
void weiri_collect_after_fork(struct weiri_record *mine)
{
	uint64_t bytes = 0;

	/* [relaxed] the only thread. */
	for (struct weiri_record *record = first_record(); record != NULL; record = record->next) {
		if (record != mine && weiri_is_collecting(record)) {
			weiri_store_relaxed(&record->collecting, weiri_load_relaxed(&record->collecting) + 1);
			weiri_store_relaxed(&record->in_hand, 0u);
		}
		if (record != mine) {
			weiri_store_relaxed(&record->rest, NULL);
			weiri_store_relaxed(&record->kept, NULL);
			weiri_store_relaxed(&record->waits, 0u);
		}
		weiri_store_relaxed(&record->unreported_bytes, 0u);
		note_all_pinned(record);
		bytes += bytes_on(record->retired) + bytes_on(record->pinned) + weiri_load_relaxed(&record->in_hand);
	}
	weiri_store_relaxed(&retired_total, (int64_t)bytes);
	/* A reclaim function that forked may have been called by a writer that waits. */
	weiri_store_relaxed(&memory_waiters, mine != NULL ? weiri_load_relaxed(&mine->waits) : 0u);
}

/* -- threads that ended in the middle ----------------------------------------------------------------------------------------- */

/* Puts back one of the two lists of a collection; the bytes on it. */
static uint64_t put_back_abandoned(struct weiri_record *record, stack *list)
{
	struct weiri_retired *first = weiri_load_relaxed(list), *last = first; /* [relaxed] the caller owns the record */
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

	lost -= put_back_abandoned(record, &record->rest);
	lost -= put_back_abandoned(record, &record->kept);
	weiri_store_relaxed(&record->in_hand, 0u);
	weiri_fetch_sub_relaxed(&retired_total, (int64_t)lost);
	/* [P4 release] pairs with collections_at_rest(). */
	weiri_store_release(&record->collecting, weiri_load_relaxed(&record->collecting) + 1);
}

void weiri_collect_abandoned(struct weiri_record *record)
{
	/* [P1 release] as in weiri_section_leave(): what was read in the section was read before. */
	weiri_store_release(&record->lo, 0u);
	weiri_store_relaxed(&record->picking, 0u); /* [relaxed] for the owner's signal handlers */
	if (weiri_is_collecting(record))
		end_collection(record);
	/* [relaxed] the caller owns the record; a count. */
	if (weiri_load_relaxed(&record->waits) != 0) {
		weiri_store_relaxed(&record->waits, 0u);
		weiri_fetch_sub_relaxed(&memory_waiters, 1u);
	}
}

/* -- statistics --------------------------------------------------------------------------------------------------------------- */

enum weir_status weir_reclaim_get_stats(struct weir_reclaim_stats *stats)
{
	struct weir_reclaim_stats sum = {.struct_size = sizeof(sum)};
	uint64_t created = 0, freed_versions = 0;

	if (stats == NULL || stats->struct_size != sizeof(sum))
		return WEIR_INVALID_ARGUMENT;
	for (struct weiri_record *record = first_record(); record != NULL; record = record->next) {
		/* [relaxed] statistics. Freed before created: the difference does not go below zero by a stale read. */
		freed_versions += weiri_load_relaxed(&record->freed_versions);
		sum.freed_objects += weiri_load_relaxed(&record->freed);
		sum.collections += weiri_load_relaxed(&record->collections);
		sum.slot_misses += weiri_load_relaxed(&record->slot_misses);
		sum.copies += weiri_load_relaxed(&record->copies);
		sum.copies_wasted += weiri_load_relaxed(&record->copies_wasted);
		sum.threads++;
	}
	for (struct weiri_record *record = first_record(); record != NULL; record = record->next)
		created += weiri_load_relaxed(&record->created);
	sum.live_versions = created - freed_versions;
	sum.retired_bytes = retired_bytes();
	/* [relaxed] statistics. */
	sum.peak_retired_bytes = (uint64_t)weiri_load_relaxed(&retired_peak);
	*stats = sum;
	return WEIR_OK;
}
