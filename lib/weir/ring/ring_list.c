/*
 * ring_list.c - rings linked in a list: a FIFO that grows.
 *
 * Algorithm. A segment is a ring and a link to the next segment. Values go into the ring at `tail`
 * and come out of the ring at `head`. An enqueue that finds the tail's ring full makes a segment
 * with its value inside, closes the full ring, and links the segment behind it. A dequeue that
 * finds the head's ring closed and drained, which is final (algorithm.h), advances head and retires
 * the segment. The end of a closed list is a link to END. The ring is closed before the link is
 * set. Otherwise a value could stand behind an open ring, and a dequeue that finds this ring empty
 * would call the list empty. Memory is allocated before the close. So if there is none, the list
 * stays as it was: full.
 *
 * Source. Linked array segments come from LCRQ (Morrison and Afek, PPoPP 2013) and its successors.
 * The segment here is LTQ, whose closing is exact.
 *
 * Invariants
 *   I1  a link is set once, after the ring before it was closed
 *   I2  head is never ahead of tail, and both move along links only
 *   I3  head leaves a segment only when its ring is sealed: nothing enters it any more
 *   I4  a segment is retired by the one CAS that moves head off it; tail was moved off it before
 * Closing the list: close the tail's ring, then link END to it. If another segment was linked
 * first, do the same with that one.
 *
 * Pairs
 *   P1  link -> successor(), and then move -> read of head or tail: the segment, and the values
 *       with which it begins
 *   S   head, tail: seq_cst, as weiri_section_read() requires
 * The ring carries what is written before an enqueue (weir/ring.h).
 *
 * Protection. Only pointers read from head or tail by weiri_section_read() are followed. The value
 * of a link is compared and stored, not followed. A second read of a link could not tell that the
 * segment has been retired meanwhile; a second read of head or tail can. The CAS from `segment`
 * cannot succeed by ABA, since the section keeps that address from being reused.
 *
 * Linearization
 *   Enqueue: that of the ring, or, with a new segment, the CAS of the link. Order: a value in a
 *     ring comes before the values behind the ring's link. If it was enqueued after one of those,
 *     its call began before the ring was closed, and so before the call that enqueued the other
 *     value ended. The two overlap, and either order is correct.
 *   Dequeue: that of the ring.
 *   "Empty" of an open ring: that of the ring. The ring was not closed then, so nothing was linked
 *     behind it (I1).
 *   "Empty" of a sealed ring: the load of the link that was NULL.
 *   "Closed": the load that saw END; for an enqueue, the load of its ring's `closed`, of its
 *     tombstone, or of the link.
 *   No two answers contradict each other, as "full" and "empty" of a bounded ring could
 *   (algorithm.h). A list is never full, and a thread that finds it empty at one segment has
 *   acquired all enqueues before that segment, including those that another thread missed when it
 *   found the list empty at an earlier one.
 * Progress: lock-free. A call repeats a step only if another thread linked a segment, moved head,
 *   or moved tail. Each of these happens once per segment. The ring is lock-free, and a sealed ring
 *   refuses at its first tombstone.
 * Memory: the segments from head to tail, of which at most the first and the last are not full; one
 *   more for each enqueue that lost the race to link; and the retired segments (docs/memory.md).
 * Checked: tests/test_ring_list.c, stress/model/check_ring_list.c.
 */
#include <weir/ring_list.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/options.h"
#include "ring/layout.h"
#include "ring/ring_list.h"

enum { RING_OFFSET = (sizeof(struct weiri_ring_segment) + WEIRI_APART - 1) / WEIRI_APART * WEIRI_APART };

static struct weiri_ring_segment end_mark;
#define END (&end_mark)

static WEIRI_ALWAYS_INLINE weir_ring *ring_of(struct weiri_ring_segment *segment)
{
	return (weir_ring *)(void *)((char *)segment + RING_OFFSET);
}

/* -- segments ---------------------------------------------------------------------------------- */

static void segment_free(struct weiri_ring_segment *segment)
{
	weir_allocator allocator = segment->allocator;

	(void)weir_ring_destroy(ring_of(segment), NULL);
	weiri_release(&allocator, segment, segment->memory_size, WEIRI_APART);
}

static void segment_reclaim(struct weiri_retired *object)
{
	segment_free(WEIRI_CONTAINER_OF(object, struct weiri_ring_segment, retired));
}

/* Creates a segment that is not linked yet. Returns NULL without memory. */
static WEIRI_COLD struct weiri_ring_segment *segment_create(const weir_ring_list *list)
{
	struct weiri_ring_segment *segment = weiri_allocate(&list->allocator, list->segment_size, WEIRI_APART);
	weir_ring *ring;

	if (segment == NULL)
		return NULL;
	weiri_retired_init(&segment->retired, list->segment_size, segment_reclaim);
	segment->memory_size = list->segment_size;
	segment->allocator = list->allocator;
	weiri_store_relaxed(&segment->next, NULL); /* [relaxed] not published */
	(void)weir_ring_init((char *)segment + RING_OFFSET, list->segment_size - RING_OFFSET, list->segment_capacity,
	                     &list->ring_options, &ring, NULL);
	return segment;
}

static struct weiri_ring_segment *successor(struct weiri_ring_segment *segment)
{
	/* [P1 acquire] pairs with link_behind(). */
	return weiri_load_acquire(&segment->next);
}

/* Returns true if it linked `next` behind `segment`, false if another segment was linked there. */
static bool link_behind(struct weiri_ring_segment *segment, struct weiri_ring_segment *next)
{
	struct weiri_ring_segment *expected = NULL;

	/* [P1 release] pairs with successor(), which the loser calls. */
	return weiri_cas_release(&segment->next, &expected, next);
}

/*
 * Moves `end` from `segment` to `next`, unless another thread has done it. Returns true if this
 * call did it.
 */
static bool move(_Atomic(struct weiri_ring_segment *) *end, struct weiri_ring_segment *segment,
                 struct weiri_ring_segment *next)
{
	return weiri_cas_seq_cst(end, &segment, next); /* [S, P1] */
}

/* -- assertions -------------------------------------------------------------------------------- */

/* Follows the links from head: each ring before a link is closed, and the walk meets tail. */
static WEIRI_UNSEEN void assert_segments(const weir_ring_list *list)
{
	struct weiri_ring_segment *segment = weiri_peek(&list->head), *next;
	const struct weiri_ring_segment *tail = weiri_peek(&list->tail);
	bool met_tail = false;

	for (; segment != NULL && segment != END; segment = next) {
		next = weiri_peek(&segment->next);
		met_tail |= segment == tail;
		WEIR_ASSERT3(I1, next == NULL || weiri_peek(&ring_of(segment)->closed) != 0);
		WEIR_ASSERT3(I2, next == NULL || next == END || next->number == segment->number + 1);
	}
	WEIR_ASSERT3(I2, met_tail);
}

/* The caller's section protects the segment, and the end of its ring is final. */
static WEIRI_UNSEEN void assert_sealed(struct weiri_ring_segment *segment)
{
	WEIR_ASSERT3(I3, weiri_ring_is_sealed(ring_of(segment)));
}

/* Tail never returns, so this holds from the move on. */
static WEIRI_UNSEEN void assert_tail_has_left(const weir_ring_list *list, const struct weiri_ring_segment *segment)
{
	WEIR_ASSERT2(I4, weiri_peek(&list->tail) != segment);
}

/* -- creating and destroying ------------------------------------------------------------------- */

enum weir_status weir_ring_list_create(const struct weir_ring_list_options *options, weir_ring_list **out,
                                       weir_error *error)
{
	struct weir_ring_list_options given;
	struct weir_ring_options ring_options = {WEIR_RING_OPTIONS_INIT};
	enum weir_status status;
	size_t capacity;
	weir_allocator allocator;
	weir_ring *trial;
	weir_ring_list *list;
	struct weiri_ring_segment *first;

	if (out == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "ring list: out is NULL");
	status = weiri_options_read("ring list", options, &given, sizeof(given), error);
	if (status == WEIR_OK)
		status = weiri_options_flags("ring list", given.flags, 0, error);
	if (status != WEIR_OK)
		return status;
	ring_options.format = given.format;
	capacity = given.segment != 0 ? given.segment : WEIR_RING_LIST_DEFAULT_SEGMENT;
	allocator = weiri_allocator_or_default(given.allocator);
	/* A size of 0: the options are wrong, or the capacity is. This call says what is wrong. */
	if (weir_ring_memsize(capacity, &ring_options) == 0)
		return weir_ring_init(NULL, 0, capacity, &ring_options, &trial, error);
	list = weiri_record_get() != NULL ? weiri_allocate(&allocator, sizeof(*list), WEIRI_APART) : NULL;
	if (list == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "ring list: no memory for a ring of %zu values", capacity);
	list->segment_capacity = capacity;
	list->segment_size = RING_OFFSET + weir_ring_memsize(capacity, &ring_options);
	list->ring_options = ring_options;
	list->allocator = allocator;
	first = segment_create(list);
	if (first == NULL) {
		weiri_release(&allocator, list, sizeof(*list), WEIRI_APART);
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "ring list: no memory for a ring of %zu values", capacity);
	}
	first->number = 0;
	weiri_store_relaxed(&list->head, first); /* [relaxed] not published */
	weiri_store_relaxed(&list->tail, first);
	*out = list;
	return WEIR_OK;
}

enum weir_status weir_ring_list_destroy(weir_ring_list *list, weir_error *error)
{
	struct weiri_ring_segment *segment;
	weir_allocator allocator;

	(void)error; /* it never fails */
	if (list == NULL)
		return WEIR_OK;
	WEIR_ASSERT_WALK(assert_segments(list));
	segment = weiri_load_relaxed(&list->head); /* [relaxed] the caller has ordered all calls before this one */
	while (segment != NULL && segment != END) {
		struct weiri_ring_segment *next = successor(segment);

		segment_free(segment);
		segment = next;
	}
	allocator = list->allocator;
	weiri_release(&allocator, list, sizeof(*list), WEIRI_APART);
	return WEIR_OK;
}

/* -- enqueueing -------------------------------------------------------------------------------- */

/*
 * Called when the ring of `segment`, the tail, is full or closed. Moves tail on. If this call links
 * the new segment, it has put *done of the `count` values into it. Unless it returns WEIR_OK, it
 * has enqueued nothing.
 */
static WEIRI_COLD enum weir_status extend(weir_ring_list *list, struct weiri_ring_segment *segment,
                                          const uint64_t values[], size_t count, size_t *done)
{
	struct weiri_ring_segment *next = successor(segment);

	*done = 0;
	if (next == NULL) {
		struct weiri_ring_segment *mine = segment_create(list);

		if (mine == NULL)
			return WEIR_RESOURCE_EXHAUSTED;
		mine->number = segment->number + 1;
		(void)weir_ring_try_enqueue_many(ring_of(mine), values, count, done);
		weir_ring_close(ring_of(segment)); /* I1 */
		if (link_behind(segment, mine)) {
			next = mine;
		} else {
			segment_free(mine);
			*done = 0;
			next = successor(segment);
		}
	}
	if (next == END)
		return WEIR_CANCELLED;
	(void)move(&list->tail, segment, next);
	return WEIR_OK;
}

/* Called in a section. */
static enum weir_status enqueue(weir_ring_list *list, struct weiri_record *record, const uint64_t values[],
                                size_t count, size_t *done)
{
	enum weir_status status = WEIR_OK;

	*done = 0;
	while (*done < count && status == WEIR_OK) {
		struct weiri_ring_segment *segment;
		size_t more;

		weiri_section_read(record, &list->tail, &segment); /* [S, P1] */
		if (weir_ring_try_enqueue_many(ring_of(segment), values + *done, count - *done, &more) != WEIR_OK)
			status = extend(list, segment, values + *done, count - *done, &more);
		*done += more;
	}
	return status;
}

enum weir_status weir_ring_list_enqueue_many(weir_ring_list *list, const uint64_t values[], size_t count, size_t *done)
{
	struct weiri_record *record;
	enum weir_status status;
	uint64_t outer;

	if (list == NULL || done == NULL || (values == NULL && count != 0))
		return WEIR_INVALID_ARGUMENT;
	*done = 0;
	record = weiri_record_get();
	if (record == NULL)
		return WEIR_RESOURCE_EXHAUSTED;
	outer = weiri_section_enter(record);
	status = enqueue(list, record, values, count, done);
	weiri_section_leave(record, outer);
	return status;
}

enum weir_status weir_ring_list_enqueue(weir_ring_list *list, uint64_t value)
{
	struct weiri_record *record = weiri_record_get();
	enum weir_status status = WEIR_OK;
	struct weiri_ring_segment *segment;
	uint64_t outer;
	size_t done;

	if (WEIRI_UNLIKELY(list == NULL))
		return WEIR_INVALID_ARGUMENT;
	if (WEIRI_UNLIKELY(record == NULL))
		return WEIR_RESOURCE_EXHAUSTED;
	outer = weiri_section_enter(record);
	weiri_section_read(record, &list->tail, &segment); /* [S, P1] */
	if (WEIRI_UNLIKELY(weir_ring_try_enqueue(ring_of(segment), value) != WEIR_OK))
		status = enqueue(list, record, &value, 1, &done);
	weiri_section_leave(record, outer);
	return status;
}

/* -- dequeueing -------------------------------------------------------------------------------- */

/*
 * Called when the ring of `segment`, which was the head, is sealed. Returns WEIR_OK if head has
 * moved on, WEIR_WOULD_BLOCK if there is nothing behind the segment yet, and WEIR_OUT_OF_RANGE if
 * there never will be.
 */
static WEIRI_COLD enum weir_status drop_first(weir_ring_list *list, struct weiri_scope *scope,
                                              struct weiri_ring_segment *segment)
{
	struct weiri_ring_segment *next = successor(segment);

	if (next == NULL)
		return WEIR_WOULD_BLOCK;
	if (next == END)
		return WEIR_OUT_OF_RANGE;
	(void)move(&list->tail, segment, next); /* I2 */
	WEIR_ASSERT_WALK(assert_sealed(segment));
	if (move(&list->head, segment, next)) {
		WEIR_ASSERT_LOOK(assert_tail_has_left(list, segment));
		WEIR_ASSERT_INSTANT(assert_segments(list));
		weiri_scope_retire(scope, &segment->retired);
	}
	return WEIR_OK;
}

static size_t dequeue(weir_ring_list *list, struct weiri_scope *scope, uint64_t values[], size_t count,
                      enum weir_status *status)
{
	size_t done = 0;

	*status = WEIR_OK;
	while (done < count && *status == WEIR_OK) {
		struct weiri_ring_segment *segment;
		size_t more;

		weiri_section_read(scope->record, &list->head, &segment); /* [S, P1] */
		*status = weir_ring_try_dequeue_many(ring_of(segment), values + done, count - done, &more);
		done += more;
		if (*status == WEIR_OUT_OF_RANGE)
			*status = drop_first(list, scope, segment);
	}
	return done;
}

enum weir_status weir_ring_list_try_dequeue_many(weir_ring_list *list, uint64_t values[], size_t count, size_t *done)
{
	enum weir_status status;
	struct weiri_record *record;
	struct weiri_scope scope;

	if (list == NULL || done == NULL || (values == NULL && count != 0))
		return WEIR_INVALID_ARGUMENT;
	*done = 0;
	record = weiri_record_get();
	if (record == NULL)
		return WEIR_RESOURCE_EXHAUSTED;
	scope = weiri_scope_enter(record);
	*done = dequeue(list, &scope, values, count, &status);
	weiri_scope_leave(&scope);
	return *done != 0 ? WEIR_OK : status;
}

enum weir_status weir_ring_list_try_dequeue(weir_ring_list *list, uint64_t *value)
{
	struct weiri_record *record = weiri_record_get();
	struct weiri_scope scope;
	struct weiri_ring_segment *segment;
	enum weir_status status;

	if (WEIRI_UNLIKELY(list == NULL || value == NULL))
		return WEIR_INVALID_ARGUMENT;
	if (WEIRI_UNLIKELY(record == NULL))
		return WEIR_RESOURCE_EXHAUSTED;
	scope = weiri_scope_enter(record);
	weiri_section_read(record, &list->head, &segment); /* [S, P1] */
	status = weir_ring_try_dequeue(ring_of(segment), value);
	if (WEIRI_UNLIKELY(status == WEIR_OUT_OF_RANGE))
		(void)dequeue(list, &scope, value, 1, &status);
	weiri_scope_leave(&scope);
	return status;
}

/* -- closing and looking ----------------------------------------------------------------------- */

enum weir_status weir_ring_list_close(weir_ring_list *list)
{
	struct weiri_record *record = weiri_record_get();
	struct weiri_ring_segment *segment, *next;
	uint64_t outer;

	if (list == NULL)
		return WEIR_INVALID_ARGUMENT;
	if (record == NULL)
		return WEIR_RESOURCE_EXHAUSTED;
	outer = weiri_section_enter(record);
	do {
		weiri_section_read(record, &list->tail, &segment); /* [S, P1] */
		weir_ring_close(ring_of(segment));
		(void)link_behind(segment, END);
		next = successor(segment);
		if (next != END)
			(void)move(&list->tail, segment, next);
	} while (next != END);
	weiri_section_leave(record, outer);
	return WEIR_OK;
}

bool weir_ring_list_closed(const weir_ring_list *list)
{
	struct weiri_record *record = weiri_record_get();
	struct weiri_ring_segment *segment;
	uint64_t outer;
	bool closed;

	if (list == NULL || record == NULL)
		return false;
	outer = weiri_section_enter(record);
	weiri_section_read(record, &list->tail, &segment); /* [S, P1] */
	closed = successor(segment) == END;
	weiri_section_leave(record, outer);
	return closed;
}

size_t weir_ring_list_size_approx(const weir_ring_list *list)
{
	struct weiri_record *record = weiri_record_get();
	struct weiri_ring_segment *first, *last;
	uint64_t outer;
	size_t size;

	if (list == NULL || record == NULL)
		return 0;
	outer = weiri_section_enter(record);
	weiri_section_read(record, &list->head, &first); /* [S, P1] */
	weiri_section_read(record, &list->tail, &last);  /* I2: not before the head that was read */
	size = weir_ring_size_approx(ring_of(first));
	if (last != first)
		size +=
			(size_t)(last->number - first->number - 1) * list->segment_capacity + weir_ring_size_approx(ring_of(last));
	weiri_section_leave(record, outer);
	return size;
}
