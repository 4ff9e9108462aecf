/*
 * putback.c - see putback.h.
 */
#include "queue/putback.h"

#include <stdalign.h>
#include <string.h>

#include "base/memory.h"

/* Items and their keys, while they are sorted. */
struct run {
	uint64_t *items;
	int64_t *keys;
};

static size_t segment_size(size_t room, enum weiri_segment_kind kind)
{
	size_t bytes, size;

	return weiri_multiply(room, (size_t)kind * sizeof(uint64_t), &bytes) &&
	               weiri_add(bytes, sizeof(struct weiri_segment), &size)
	           ? size
	           : 0;
}

struct weiri_segment *weiri_segment_create(size_t room, enum weiri_segment_kind kind, const weir_allocator *allocator)
{
	struct weiri_segment *segment = weiri_allocate(allocator, segment_size(room, kind), alignof(struct weiri_segment));

	if (segment != NULL) {
		*segment = (struct weiri_segment){.room = room, .kind = kind, .allocator = *allocator};
	}
	return segment;
}

void weiri_segment_free(struct weiri_segment *segment)
{
	if (segment != NULL) {
		weir_allocator allocator = segment->allocator;

		weiri_release(&allocator, segment, segment_size(segment->room, segment->kind), alignof(struct weiri_segment));
	}
}

static void segment_reclaim(struct weiri_retired *object)
{
	weiri_segment_free(WEIRI_CONTAINER_OF(object, struct weiri_segment, retired));
}

/*
 * Merges from[start .. middle) and from[middle .. end) to to[start .. end). The keys move with
 * their items.
 */
static void merge_runs(const struct run *from, const struct run *to, size_t start, size_t middle, size_t end)
{
	size_t a = start, b = middle;

	for (size_t i = start; i < end; i++) {
		size_t next = b == end || (a < middle && from->keys[a] <= from->keys[b]) ? a++ : b++;

		to->items[i] = from->items[next];
		to->keys[i] = from->keys[next];
	}
}

void weiri_segment_sort(struct weiri_segment *segment, size_t count)
{
	struct run sorted = {segment->items, weiri_segment_keys(segment)};
	struct run spare = {segment->items + 2 * segment->room, weiri_segment_keys(segment) + 2 * segment->room};
	size_t ordered = 1;

	while (ordered < count && sorted.keys[ordered - 1] <= sorted.keys[ordered])
		ordered++;
	for (size_t width = 1; ordered < count && width < count; width *= 2) {
		struct run swapped = spare;

		for (size_t i = 0; i < count; i += 2 * width)
			merge_runs(&sorted, &spare, i, i + width < count ? i + width : count,
			           i + 2 * width < count ? i + 2 * width : count);
		spare = sorted;
		sorted = swapped;
	}
	if (sorted.items != segment->items) {
		memcpy(segment->items, sorted.items, count * sizeof(segment->items[0]));
		memcpy(weiri_segment_keys(segment), sorted.keys, count * sizeof(sorted.keys[0]));
	}
}

void weiri_putback_push(struct weiri_scope *scope, struct weiri_putback *putback, struct weiri_segment *segment,
                        size_t count)
{
	void *top;

	segment->count = count;
	weiri_retired_init(&segment->retired, segment_size(segment->room, segment->kind), segment_reclaim);
	/*
	 * [P3 release] publishes that the items were dequeued. The count changes only by
	 * read-modify-writes, so each later reader acquires this, too.
	 */
	(void)weiri_fetch_add_release(&putback->items, count);
	weiri_section_read(scope->record, &putback->top, &top);
	do {
		segment->next = top;
		/*
		 * [P1 release] No acquire is needed: this thread does not follow `top`. A thread that
		 * follows it has P1 from the push of that segment, through the head.
		 */
	} while (!weiri_cas_release(&putback->top, &top, segment));
}

static size_t take_from(struct weiri_segment *segment, uint64_t items[], size_t count)
{
	/* [P2 acquire] pairs with the CAS below. The items came with P1. */
	size_t taken = weiri_load_acquire(&segment->taken), more;

	do {
		more = segment->count - taken < count ? segment->count - taken : count;
		if (more == 0)
			return 0;
		/*
		 * [P2 release] Only a failure has to acquire. The index only grows, so a CAS that succeeds
		 * reads the same store that was acquired before.
		 */
	} while (!weiri_cas_release_or_acquire(&segment->taken, &taken, taken + more));
	memcpy(items, segment->items + taken, more * sizeof(items[0]));
	return more;
}

/* Unlinks the segment `top`, which is empty. No item returns to it. */
static void unlink_empty(struct weiri_scope *scope, struct weiri_putback *putback, struct weiri_segment *top)
{
	void *expected = top;

	/*
	 * [seq_cst] P1 continues through the head. The segment is unlinked before its retirement era is
	 * read: I1 of section.h.
	 */
	if (weiri_cas_seq_cst(&putback->top, &expected, top->next))
		weiri_scope_retire(scope, &top->retired);
}

struct weiri_segment *weiri_putback_first(struct weiri_scope *scope, struct weiri_putback *putback, size_t *place)
{
	struct weiri_segment *top;

	for (;;) {
		weiri_section_read(scope->record, &putback->top, &top); /* [P1 acquire] */
		if (top == NULL)
			return NULL;
		/*
		 * [P2 acquire] pairs with take_from(): a thread that finds items gone sees what the taker
		 * did before.
		 */
		*place = weiri_load_acquire(&top->taken);
		if (*place < top->count)
			return top;
		unlink_empty(scope, putback, top);
	}
}

bool weiri_putback_take_this(struct weiri_putback *putback, struct weiri_segment *segment, size_t place, uint64_t *item)
{
	/* [P2 release] as in take_from(); weiri_putback_first() has acquired `place`. */
	if (!weiri_cas_release(&segment->taken, &place, place + 1))
		return false;
	*item = segment->items[place];
	weiri_fetch_sub_relaxed(&putback->items, 1u); /* [relaxed] a count */
	return true;
}

size_t weiri_putback_take(struct weiri_scope *scope, struct weiri_putback *putback, uint64_t items[], size_t count)
{
	size_t done = 0;

	while (done < count) {
		struct weiri_segment *top;
		size_t more;

		weiri_section_read(scope->record, &putback->top, &top); /* [P1 acquire] */
		if (top == NULL)
			break;
		more = take_from(top, items + done, count - done);
		done += more;
		if (more == 0) /* other threads have emptied it */
			unlink_empty(scope, putback, top);
	}
	if (done != 0)
		weiri_fetch_sub_relaxed(&putback->items, done); /* [relaxed] a count */
	return done;
}
