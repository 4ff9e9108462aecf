/*
 * store.c - what is inside a queue, and when its end is reached.
 *
 * The end of a queue: it is closed, no admitted enqueue waits, the store is empty for good (a ring then gets its tombstone), and no
 * batch holds items that it may give back. The last is why the turn is read before and after the others: if it is even and
 * unchanged, no batch took or gave anything in between. (A batch takes the turn before it takes anything, and both ways to take release:
 * who finds something gone sees the turn of whoever has it.)
 *
 * Refusals. Of FIFO queues "full" and "empty" are the ring's and exact in C11 (walk.h); by
 * priority, as in priority_queue.c; shuffled, as in shuffle.h, by one word. That is so while no
 * batch gives back. To give back is a step of its own: what a batch has taken is inside again once
 * it is pushed, beyond the capacity if others have filled the room. Then "full" may count an item
 * whose taker had looked for what was put back before the push, and drains its slot after it. And
 * the top of the stack is not seq_cst as the slots are: on POWER and RISC-V (not on x86-64, nor on
 * AArch64 with ldar) "empty" may miss what was pushed by a thread that was told "full" afterwards,
 * unless something else orders the push before the call that says "empty".
 */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "queue/queue.h"

enum { CHUNK = 64 };

static size_t put_in_ring(weir_queue *queue, void *const items[], size_t count, int admitted, enum weir_status *status)
{
	uint64_t chunk[CHUNK];
	size_t done = 0, more, n;

	*status = WEIR_OK;
	while (done < count && *status == WEIR_OK) {
		n = count - done < CHUNK ? count - done : CHUNK;
		for (size_t i = 0; i < n; i++)
			chunk[i] = weiri_item_bits(items[done + i]);
		more = weiri_ring_ops_of(queue->ring)->enqueue(queue->ring, chunk, n, admitted, status);
		done += more;
	}
	return done;
}

static size_t put_in_bag(weir_queue *queue, void *const items[], const int64_t keys[], size_t count, int admitted,
                         enum weir_status *status)
{
	size_t done = 0;

	*status = WEIR_OK;
	while (done < count) {
		int64_t key = keys != NULL ? keys[done] : weiri_queue_key(queue, items[done]);

		*status = queue->bag->put(queue, items[done], key, admitted);
		if (*status != WEIR_OK)
			break;
		done++;
	}
	return done;
}

size_t weiri_queue_put(weir_queue *queue, void *const items[], const int64_t keys[], size_t count, int admitted,
                       enum weir_status *status)
{
	return queue->order == WEIR_QUEUE_FIFO ? put_in_ring(queue, items, count, admitted, status)
	                                       : put_in_bag(queue, items, keys, count, admitted, status);
}

/* The place of the next key; NULL: nobody asks. */
static int64_t *keys_from(int64_t keys[], size_t done)
{
	return keys != NULL ? keys + done : NULL;
}

static size_t take_from_bag(weir_queue *queue, uint64_t items[], int64_t keys[], size_t count, enum weir_status *status)
{
	size_t done = 0;
	int64_t key = 0;

	*status = WEIR_OK;
	while (done < count) {
		*status = queue->bag->take(queue, &items[done], &key);
		if (*status != WEIR_OK)
			break;
		if (keys != NULL)
			keys[done] = key;
		done++;
	}
	return done;
}

/*
 * What was put back goes first; by priority, before its equals. But for shuffled items it is looked for twice. Before the ring: or else "empty" could be
 * said of a ring to which an item came before the last that was put back left. And by the ring, between its look at an item and its
 * taking: the one that comes out was there while nothing was put back. Without that a newer item, which went in since the first look,
 * would go before an older one, which came back since.
 */
static WEIRI_COLD size_t take_beside_put_back(struct weiri_scope *scope, weir_queue *queue, uint64_t items[],
                                              int64_t keys[], size_t count, enum weiri_ring_at_end at_end,
                                              enum weir_status *status)
{
	uint64_t outer = weiri_section_enter(scope->record);
	size_t done = 0;

	if (queue->bag != NULL)
		done = queue->bag->take_beside_put_back(scope, queue, items, keys, count, status);
	else
		do {
			*status = WEIR_OK;
			done += weiri_putback_take(scope, &queue->putback, items + done, count - done);
			if (done < count)
				done +=
					weiri_ring_dequeue(queue->ring, items + done, count - done, at_end, &queue->putback.top, status);
		} while (*status == WEIR_ABORTED); /* another batch gave back */
	weiri_section_leave(scope->record, outer);
	return done;
}

static WEIRI_ALWAYS_INLINE size_t take_inside(struct weiri_scope *scope, weir_queue *queue, uint64_t items[],
                                              int64_t keys[], size_t count, enum weiri_ring_at_end at_end,
                                              enum weir_status *status)
{
	size_t done;

	if (WEIRI_UNLIKELY(weiri_putback_occupied(&queue->putback)))
		return take_beside_put_back(scope, queue, items, keys, count, at_end, status);
	done = queue->bag != NULL ? take_from_bag(queue, items, keys, count, status)
	                          : weiri_ring_dequeue(queue->ring, items, count, at_end, &queue->putback.top, status);
	if (WEIRI_UNLIKELY(*status == WEIR_ABORTED))
		done += take_beside_put_back(scope, queue, items + done, keys_from(keys, done), count - done, at_end, status);
	return done;
}

/* Closed, and nothing admitted is still to come. Stays so. */
static int closed_for_all(const weir_queue *queue)
{
	/* [acquire] pairs with the last admitted enqueue, which put its items before it left the gate. */
	uint64_t gate = weiri_load_acquire(&queue->gate);

	return (gate & WEIRI_GATE_CLOSED) != 0 && (gate & WEIRI_GATE_PENDING) == 0;
}

/* Found too little. Tells WOULD_BLOCK from OUT_OF_RANGE; may find more after all. */
static WEIRI_COLD size_t look_for_the_end(struct weiri_scope *scope, weir_queue *queue, uint64_t items[],
                                          int64_t keys[], size_t count, int holds_turn, enum weir_status *status)
{
	size_t done = 0, more;

	do {
		/* [acquire] pairs with the release of the turn: what that batch gave back is seen below. */
		uint64_t turn = weiri_load_acquire(&queue->turn);

		*status = WEIR_WOULD_BLOCK;
		if (!closed_for_all(queue) || ((turn & 1) != 0 && !holds_turn))
			return done;
		more = take_inside(scope, queue, items + done, keys_from(keys, done), count - done, WEIRI_RING_SEAL, status);
		done += more;
		/* [relaxed] the same turn: it was the end. If a batch took something that we found gone, we acquired its turn with that. */
		if (more == 0 && (*status != WEIR_OUT_OF_RANGE || weiri_load_relaxed(&queue->turn) == turn))
			return done;
	} while (done < count);
	*status = WEIR_OK;
	return done;
}

static WEIRI_ALWAYS_INLINE size_t take(struct weiri_scope *scope, weir_queue *queue, uint64_t items[], int64_t keys[],
                                       size_t count, int holds_turn, enum weir_status *status)
{
	size_t done = take_inside(scope, queue, items, keys, count, WEIRI_RING_LEAVE, status);

	/* What the store says of its end is not the last word: admitted enqueues may be still to come. */
	if (WEIRI_UNLIKELY(done < count))
		done += look_for_the_end(scope, queue, items + done, keys_from(keys, done), count - done, holds_turn, status);
	return done;
}

size_t weiri_queue_take(struct weiri_scope *scope, weir_queue *queue, uint64_t items[], size_t count, int holds_turn,
                        enum weir_status *status)
{
	return take(scope, queue, items, NULL, count, holds_turn, status);
}

size_t weiri_queue_take_with_keys(struct weiri_scope *scope, weir_queue *queue, uint64_t items[], int64_t keys[],
                                  size_t count, int holds_turn, enum weir_status *status)
{
	return take(scope, queue, items, keys, count, holds_turn, status);
}

/* 1 when look_for_the_end() would say OUT_OF_RANGE of an empty store. */
static int end_is_in_sight(const weir_queue *queue)
{
	/* [relaxed] the turn: who gives it settles the beacon afterwards. */
	return closed_for_all(queue) && (weiri_load_relaxed(&queue->turn) & 1) == 0 &&
	       (queue->bag == NULL || !queue->bag->is_putting(queue));
}

static int put_back_is_there(struct weiri_record *record, weir_queue *queue)
{
	struct weiri_scope scope;
	size_t place;
	int there;

	if (WEIRI_LIKELY(!weiri_putback_occupied(&queue->putback)))
		return 0;
	scope = weiri_scope_enter(record);
	there = weiri_putback_first(&scope, &queue->putback, &place) != NULL;
	weiri_scope_leave(&scope);
	return there;
}

int weiri_queue_can_give(struct weiri_record *record, weir_queue *queue)
{
	int in_store =
		queue->bag == NULL ? weiri_ring_ops_of(queue->ring)->has_value(queue->ring) : queue->bag->can_take(queue);

	return in_store || put_back_is_there(record, queue) || end_is_in_sight(queue);
}

int weiri_queue_can_take_in(const weir_queue *queue)
{
	if (weiri_queue_store_closed(queue))
		return 1;
	return queue->bag == NULL ? weiri_ring_ops_of(queue->ring)->has_room(queue->ring) : queue->bag->can_put(queue);
}

int weiri_queue_store_closed(const weir_queue *queue)
{
	return queue->bag == NULL ? weir_ring_closed(queue->ring) : queue->bag->closed(queue);
}

size_t weiri_queue_size(const weir_queue *queue)
{
	size_t inside = queue->bag == NULL ? weir_ring_size_approx(queue->ring) : queue->bag->size(queue);

	return inside + weiri_putback_size(&queue->putback);
}

struct weiri_ring_counts weiri_queue_counts(const weir_queue *queue)
{
	return queue->bag == NULL ? weiri_ring_counts(queue->ring) : queue->bag->counts(queue);
}

void weiri_queue_sort_batch(const weir_queue *queue, struct weiri_segment *segment, size_t count)
{
	if (segment->kind != WEIRI_SEGMENT_KEYED)
		return;
	for (size_t i = 0; i < count; i++)
		weiri_segment_keys(segment)[i] = weiri_queue_key(queue, weiri_item_pointer(segment->items[i]));
	weiri_segment_sort(segment, count);
}

int weiri_queue_turn_take(weir_queue *queue)
{
	/* [relaxed] the CAS counts. */
	uint64_t turn = weiri_load_relaxed(&queue->turn);

	/* [acquire] what the last batch gave back. */
	return (turn & 1) == 0 && weiri_cas_acquire(&queue->turn, &turn, turn + 1);
}

int weiri_queue_turn_held(const weir_queue *queue)
{
	/* [relaxed] who was stopped by the turn has read it in look_for_the_end(), so this is no older; who gives it later pumps later. */
	return (weiri_load_relaxed(&queue->turn) & 1) != 0;
}

void weiri_queue_turn_give(weir_queue *queue)
{
	/* [release] after what we gave back. */
	(void)weiri_fetch_add_release(&queue->turn, 1u);
}

void weiri_queue_cause(const weir_queue *queue, char *text, size_t size)
{
	/* [acquire] pairs with the closer's release. */
	if (weiri_load_acquire(&queue->cause_ready))
		(void)snprintf(text, size, "; closed because of %s: %.120s", weir_status_name(queue->cause.code),
		               queue->cause.message);
	else
		(void)snprintf(text, size, "%s", "");
}

enum weir_status weiri_queue_fail_closed(const weir_queue *queue, enum weir_status status, size_t count, size_t done,
                                         weir_error *error)
{
	char cause[192];

	weiri_queue_cause(queue, cause, sizeof(cause));
	if (status == WEIR_CANCELLED)
		return weiri_fail(error, status, "queue \"%s\" is closed: %zu of %zu items went in%s", queue->name, done, count,
		                  cause);
	return weiri_fail(error, status, "queue \"%s\" is closed and drained: %zu items asked for, %zu left%s", queue->name,
	                  count, done, cause);
}

enum weir_status weiri_queue_fail_cancelled(const weir_queue *queue, const char *verb, const weir_error *cause,
                                            weir_error *error)
{
	return weiri_fail(error, WEIR_CANCELLED, "queue \"%s\": %s was cancelled by its token; %s: %.120s", queue->name,
	                  verb, weir_status_name(cause->code), cause->message);
}
