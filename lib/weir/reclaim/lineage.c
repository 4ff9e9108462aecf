/*
 * lineage.c - see lineage.h.
 */
#include "reclaim/lineage.h"

#include <stdalign.h>

#include "base/assert.h"
#include "base/memory.h"
#include "reclaim/scope.h"

uint64_t weiri_lineage_sweep_bytes = 128 << 10;

struct weiri_ledger {
	struct weiri_retired retired;
	size_t size; /* bytes of this allocation */
	weir_allocator allocator;
	size_t capacity;                 /* pointers in `live` */
	uint64_t last;                   /* L1 */
	size_t count;                    /* of the generations in `live` */
	struct weiri_generation *live[]; /* L1. Behind them, for the maker, those that it leaves out */
};

/* Pinned to a generation that has left the ledger. */
static struct weiri_replaced closed;

/* -- lists of parts ---------------------------------------------------------------------------- */

bool weiri_replaced_grow(struct weiri_replaced **list, const weir_allocator *allocator)
{
	struct weiri_replaced *more = weiri_allocate(allocator, sizeof(*more), alignof(struct weiri_replaced));

	if (more == NULL)
		return false;
	more->next = *list;
	more->count = 0;
	*list = more;
	return true;
}

void weiri_replaced_release(struct weiri_replaced *list, const weir_allocator *allocator)
{
	while (list != NULL) {
		struct weiri_replaced *next = list->next;

		weiri_release(allocator, list, sizeof(*list), alignof(struct weiri_replaced));
		list = next;
	}
}

/* Moves parts from one segment into another until that is full or this is empty. */
static void pour(struct weiri_replaced *from, struct weiri_replaced *to)
{
	while (from->count > 0 && to->count < WEIRI_PARTS)
		to->part[to->count++] = from->part[--from->count];
}

/* Pushes the first segment of a list, which has no parts, onto *empty. Returns the rest. */
static struct weiri_replaced *drop_first(struct weiri_replaced *list, struct weiri_replaced **empty)
{
	struct weiri_replaced *rest = list->next;

	list->next = *empty;
	*empty = list;
	return rest;
}

/*
 * Joins two lists so that only the first segment has room. Pushes a segment that becomes empty onto
 * *empty. Walks through `list` only.
 */
static struct weiri_replaced *join(struct weiri_replaced *list, struct weiri_replaced *other,
                                   struct weiri_replaced **empty)
{
	struct weiri_replaced *first, *rest, *last;

	if (list == NULL || other == NULL)
		return list != NULL ? list : other;
	pour(list, other);
	/* One of the first segments is now full or empty; the other comes first. */
	if (list->count == 0) {
		first = other;
		rest = other->next;
		list = drop_first(list, empty);
		first->next = list;
	} else {
		first = list;
		rest = other;
	}
	for (last = first; last->next != NULL; last = last->next)
		;
	last->next = rest;
	return first;
}

/* -- a lineage --------------------------------------------------------------------------------- */

static void ledger_free(struct weiri_ledger *ledger)
{
	weir_allocator allocator = ledger->allocator;

	weiri_release(&allocator, ledger, ledger->size, alignof(struct weiri_ledger));
}

static void ledger_reclaim(struct weiri_retired *object)
{
	ledger_free(WEIRI_CONTAINER_OF(object, struct weiri_ledger, retired));
}

static struct weiri_ledger *ledger_create(size_t capacity, const weir_allocator *allocator)
{
	struct weiri_ledger *ledger;
	size_t size;

	if (!weiri_multiply(capacity, 2 * sizeof(struct weiri_generation *), &size) ||
	    !weiri_add(size, sizeof(*ledger), &size))
		return NULL;
	ledger = weiri_allocate(allocator, size, alignof(struct weiri_ledger));
	if (ledger == NULL)
		return NULL;
	*ledger = (struct weiri_ledger){.size = size, .allocator = *allocator, .capacity = capacity};
	weiri_retired_init(&ledger->retired, size, ledger_reclaim);
	return ledger;
}

bool weiri_lineage_init(struct weiri_lineage *lineage, const weir_allocator *allocator)
{
	struct weiri_ledger *ledger = ledger_create(0, allocator);

	if (ledger == NULL)
		return false;
	lineage->allocator = *allocator;
	/* [relaxed] not shared yet, all three */
	weiri_store_relaxed(&lineage->ledger, ledger);
	weiri_store_relaxed(&lineage->due, weiri_lineage_sweep_bytes);
	weiri_store_relaxed(&lineage->references, (size_t)1);
	return true;
}

void weiri_generation_init(struct weiri_generation *generation, struct weiri_lineage *lineage,
                           struct weiri_generation *older, size_t bytes, void (*reclaim)(struct weiri_retired *object))
{
	/* [relaxed] The caller has a reference, or holds a version that has one. */
	size_t before = weiri_fetch_add_relaxed(&lineage->references, (size_t)1);

	WEIR_ASSERT1(L5, before != 0);
	(void)before;
	weiri_retired_init(&generation->retired, bytes, reclaim);
	generation->number = older != NULL ? older->number + 1 : 1;
	generation->older = older;
	generation->replaced = NULL;
	/* With the root and its first list of replaced parts, which wait for a sweep as the parts do. */
	generation->garbage = (older != NULL ? older->garbage : 0) + bytes + sizeof(struct weiri_replaced);
	/* [relaxed] not shared yet, both */
	weiri_store_relaxed(&generation->ended, false);
	weiri_store_relaxed(&generation->pinned, NULL);
}

/* Called by the only thread that may end it. */
static WEIRI_UNSEEN void assert_not_ended(const struct weiri_generation *generation)
{
	WEIR_ASSERT2(L5, !weiri_peek(&generation->ended));
}

void weiri_generation_end(struct weiri_generation *generation)
{
	WEIR_ASSERT_LOOK(assert_not_ended(generation));
	/* [P2 release] pairs with the sweep. */
	weiri_store_release(&generation->ended, true);
}

bool weiri_lineage_give(struct weiri_lineage *lineage)
{
	/* [P5 acq_rel] pairs with itself. */
	size_t before = weiri_fetch_sub_acq_rel(&lineage->references, (size_t)1);

	WEIR_ASSERT1(L5, before != 0);
	return before == 1;
}

/* -- a sweep ----------------------------------------------------------------------------------- */

struct sweep {
	struct weiri_record *record;
	struct weiri_lineage *lineage;
	weiri_parts_dead_fn *dead;
	void *context;
	struct weiri_replaced *empty; /* segments to free */
};

static struct weiri_ledger *read_ledger(struct sweep *sweep)
{
	struct weiri_ledger *ledger;

	weiri_section_read(sweep->record, &sweep->lineage->ledger, &ledger); /* [P1] */
	return ledger;
}

/* Returns the last generation with a number below `below`, or NULL. */
static struct weiri_generation *holder_below(const struct weiri_ledger *ledger, uint64_t below)
{
	size_t low = 0, high = ledger->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (ledger->live[middle]->number < below)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 ? ledger->live[low - 1] : NULL;
}

/* Removes the dead parts from one segment: those that were born after `holder`. */
static void sift(struct sweep *sweep, struct weiri_replaced *segment, uint64_t holder)
{
	size_t kept = 0, count = segment->count;

	for (size_t i = 0, end; i < count; i = end) {
		for (end = i; end < count && segment->part[end].birth > holder; end++)
			;
		if (end > i)
			sweep->dead(sweep->context, &segment->part[i], end - i);
		for (; end < count && segment->part[end].birth <= holder; end++)
			segment->part[kept++] = segment->part[end];
	}
	segment->count = kept;
}

/* Removes the dead parts from a list. Returns what is left of it. */
static struct weiri_replaced *sift_all(struct sweep *sweep, struct weiri_replaced *list, uint64_t holder)
{
	struct weiri_replaced *kept = NULL, *next;

	for (; list != NULL; list = next) {
		next = list->next;
		list->next = NULL;
		sift(sweep, list, holder);
		if (list->count == 0)
			(void)drop_first(list, &sweep->empty);
		else
			kept = join(list, kept, &sweep->empty);
	}
	return kept;
}

/* Pins a list to a generation. Returns what could not be pinned, if that was closed; else NULL. */
static struct weiri_replaced *pin(struct sweep *sweep, struct weiri_generation *holder, struct weiri_replaced *list)
{
	/* [P4 acquire] If it is closed, read_ledger() finds a ledger without the holder. */
	struct weiri_replaced *there = weiri_load_acquire(&holder->pinned);

	while (there != &closed) {
		if (there == NULL) {
			/* [P3 release] pairs with close() and with the take below. [P4 acquire] as above. */
			if (weiri_cas_release_or_acquire(&holder->pinned, &there, list))
				return NULL;
			/*
			 * [P3 acquire] Another list is there: takes it, to fill up the segments of both. No release:
			 * what is left there leads nowhere. [P4 acquire] as above.
			 */
		} else if (weiri_cas_acquire_or_acquire(&holder->pinned, &there, NULL)) {
			list = join(list, there, &sweep->empty);
			there = NULL;
		}
	}
	return list;
}

/* Takes what is pinned to a generation that has left the ledger. */
static struct weiri_replaced *close(struct weiri_generation *removed)
{
	/* [P3 acquire, P4 release] pair with pin(). */
	struct weiri_replaced *list = weiri_exchange_acq_rel(&removed->pinned, &closed);

	WEIR_ASSERT1(L4, list != &closed);
	return list;
}

/* Asserts that the parts of a list may be pinned to this generation. */
static WEIRI_UNSEEN void assert_born(const struct weiri_replaced *list, uint64_t holder)
{
	for (; list != NULL; list = list->next) {
		for (size_t i = 0; i < list->count; i++)
			WEIR_ASSERT3(L3, list->part[i].birth <= holder);
	}
}

/* Places a list of parts that died at `death` and were born no later than `latest`. */
static void place(struct sweep *sweep, struct weiri_replaced *list, uint64_t death, uint64_t latest)
{
	while (list != NULL) {
		struct weiri_generation *holder = holder_below(read_ledger(sweep), death);
		uint64_t number = holder != NULL ? holder->number : 0;

		/* Most lists are of parts that the holder has, all of them: those go as they are. */
		if (number < latest)
			list = sift_all(sweep, list, number);
		WEIR_ASSERT_WALK(assert_born(list, number));
		if (holder == NULL || list == NULL)
			return;
		list = pin(sweep, holder, list);
	}
}

/* Returns how many pointers the next ledger needs. */
static size_t measure(struct sweep *sweep, const struct weiri_generation *newest)
{
	uint64_t outer = weiri_section_enter(sweep->record);
	const struct weiri_ledger *ledger = read_ledger(sweep);
	size_t count = ledger->count;

	if (newest->number > ledger->last)
		count += (size_t)(newest->number - ledger->last);
	weiri_section_leave(sweep->record, outer);
	return count;
}

static WEIRI_UNSEEN void assert_in_order(const struct weiri_ledger *ledger)
{
	for (size_t i = 0; i < ledger->count; i++) {
		/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): the ledger has `count` generations. */
		WEIR_ASSERT2(L1, ledger->live[i]->number <= ledger->last);
		WEIR_ASSERT2(L1, i == 0 || ledger->live[i - 1]->number < ledger->live[i]->number);
	}
}

/*
 * Puts into `next` all generations of `now`, and those published since, up to `newest`. Returns
 * how many, or 0 if there is no room.
 */
static size_t gather(const struct weiri_ledger *now, struct weiri_generation *newest, struct weiri_ledger *next)
{
	size_t more = newest->number > now->last ? (size_t)(newest->number - now->last) : 0;
	size_t count = now->count + more;

	if (count > next->capacity)
		return 0;
	next->last = now->last + more;
	for (size_t i = 0; i < now->count; i++)
		next->live[i] = now->live[i];
	for (size_t i = count; i > now->count; i--, newest = newest->older) {
		WEIR_ASSERT1(L1, newest->number == now->last + (i - now->count));
		next->live[i - 1] = newest;
	}
	return count;
}

/* Moves the generations that have ended behind the others. Returns how many have. */
static size_t leave_out_ended(struct weiri_ledger *next, size_t count)
{
	struct weiri_generation **out = next->live + next->capacity;
	size_t ended = 0;

	for (size_t i = 0; i < count; i++) {
		/* [P2 acquire] pairs with weiri_generation_end(). */
		if (weiri_load_acquire(&next->live[i]->ended))
			out[ended++] = next->live[i];
		else
			next->live[next->count++] = next->live[i];
	}
	WEIR_ASSERT_LOOK(assert_in_order(next));
	return ended;
}

/* Places the list of a generation that `next` was the first to enter. */
static void place_entered(struct sweep *sweep, struct weiri_generation *generation, uint64_t last)
{
	struct weiri_replaced *list;

	/* The sweep that entered an earlier one may still have its list. */
	if (generation->number <= last)
		return;
	list = generation->replaced;
	generation->replaced = NULL;
	place(sweep, list, generation->number, generation->number - 1);
}

/* The ledger `next` has replaced one whose last generation was `last`, and left `ended` out. */
static void place_all(struct sweep *sweep, struct weiri_scope *scope, struct weiri_ledger *next, uint64_t last,
                      size_t ended)
{
	struct weiri_generation **out = next->live + next->capacity;

	for (size_t i = 0; i < next->count; i++)
		place_entered(sweep, next->live[i], last);
	for (size_t i = 0; i < ended; i++) {
		place_entered(sweep, out[i], last);
		place(sweep, close(out[i]), out[i]->number, out[i]->number);
		weiri_scope_retire(scope, &out[i]->retired);
	}
}

static uint64_t next_due(uint64_t garbage, size_t count)
{
	enum { BYTES_PER_GENERATION = 256 }; /* so that walks through the generations cost little */
	uint64_t walk = (uint64_t)count * BYTES_PER_GENERATION;

	return garbage + (walk > weiri_lineage_sweep_bytes ? walk : weiri_lineage_sweep_bytes);
}

/* Installs `next`, if there is anything new. Returns false if not; the caller then frees it. */
static bool replace_ledger(struct sweep *sweep, struct weiri_scope *scope, struct weiri_generation *newest,
                           struct weiri_ledger *next)
{
	struct weiri_lineage *lineage = sweep->lineage;
	struct weiri_ledger *now = read_ledger(sweep);
	size_t count = gather(now, newest, next), ended = leave_out_ended(next, count);
	uint64_t last = now->last;

	if (count == 0 || (ended == 0 && next->last == last))
		return false;
	/*
	 * [seq_cst P1] It unlinks the old ledger and those that ended; see I1 of section.h. If it
	 * fails, another sweep came first.
	 */
	if (!weiri_cas_seq_cst(&lineage->ledger, &now, next))
		return false;
	/* [relaxed] a hint */
	weiri_store_relaxed(&lineage->due, next_due(newest->garbage, next->count));
	weiri_scope_retire(scope, &now->retired);
	place_all(sweep, scope, next, last, ended);
	return true;
}

void weiri_lineage_sweep(struct weiri_record *record, struct weiri_lineage *lineage, struct weiri_generation *newest,
                         weiri_parts_dead_fn *dead, void *context)
{
	struct sweep sweep = {record, lineage, dead, context, NULL};
	struct weiri_ledger *next = ledger_create(measure(&sweep, newest), &lineage->allocator);
	struct weiri_scope scope;
	bool replaced;

	if (next == NULL)
		return;
	scope = weiri_scope_enter(record);
	replaced = replace_ledger(&sweep, &scope, newest, next);
	weiri_scope_leave(&scope);
	if (!replaced)
		ledger_free(next);
	weiri_replaced_release(sweep.empty, &lineage->allocator);
}

/* -- the end ----------------------------------------------------------------------------------- */

static void end_parts(struct weiri_replaced *list, const weir_allocator *allocator, weiri_parts_dead_fn *dead,
                      void *context)
{
	for (struct weiri_replaced *segment = list; segment != NULL; segment = segment->next) {
		dead(context, segment->part, segment->count);
	}
	weiri_replaced_release(list, allocator);
}

void weiri_lineage_end(struct weiri_lineage *lineage, struct weiri_generation *newest, weiri_parts_dead_fn *dead,
                       void *context)
{
	/* [relaxed] P5 ordered everything before; here and below. */
	struct weiri_ledger *ledger = weiri_load_relaxed(&lineage->ledger);
	/* How many are newer than the ledger. Generation `last` may have been freed: a late sweep leaves it out. */
	uint64_t newer = newest != NULL && newest->number > ledger->last ? newest->number - ledger->last : 0;
	struct weiri_generation *older;

	for (; newer > 0; newer--, newest = older) {
		older = newest->older;
		end_parts(newest->replaced, &lineage->allocator, dead, context);
		newest->retired.reclaim(&newest->retired);
	}
	for (size_t i = 0; i < ledger->count; i++) {
		struct weiri_generation *generation = ledger->live[i];

		WEIR_ASSERT1(L4, generation->replaced == NULL);
		end_parts(weiri_load_relaxed(&generation->pinned), &lineage->allocator, dead, context);
		generation->retired.reclaim(&generation->retired);
	}
	ledger_free(ledger);
}
