/*
 * contents.c - the items of a queue of any order: the items in its store, and the items that
 * batches returned. This file also decides when the end of the queue is reached.
 *
 * The end of a queue is reached when it is closed, no admitted enqueue waits, the store is
 * permanently empty (a ring then gets its tombstone), and no batch holds items that it may return.
 * Because of the last condition a dequeue reads the turn before and after the others: if the turn
 * is even and unchanged, no batch took or returned an item in between. (A batch takes the turn
 * before it takes an item, and both ways of taking an item release. So a thread that finds an item
 * gone sees the turn under which it was taken.)
 *
 * Refusals. A FIFO queue or a shuffle queue is "full" or "empty" when its ring is, which is exact in
 * C11 (algorithm.h, draw.h). A priority queue has the refusals of priority_queue.c. All this holds
 * while no batch returns items. The return of
 * items is a step of its own: with the push, the items that a batch had taken are stored again.
 * They exceed the capacity if other threads have filled the room. Then "full" may count an item
 * whose taker looked for returned items before the push but drains the slot of the item after the
 * push. Also, the slots have seq_cst accesses, but the push and the look at the top of the stack do
 * not. So "empty" may miss a pushed item although the thread that pushed it got "full" afterwards.
 * This can happen on POWER and RISC-V (not on x86-64, nor on AArch64 with ldar), unless something
 * else orders the push before the call that returns "empty".
 */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "queue/queue.h"

/* Returns where to store the next key; NULL: the caller wants no keys. */
static int64_t *keys_from(int64_t keys[], size_t done)
{
	return keys != NULL ? keys + done : NULL;
}

static WEIRI_COLD size_t take_beside_put_back(struct weiri_scope *scope, weir_queue *queue, uint64_t items[],
                                              int64_t keys[], size_t count, enum weiri_ring_at_end at_end,
                                              enum weir_status *status)
{
	uint64_t outer = weiri_section_enter(scope->record);
	size_t done = queue->store->take_beside_put_back(scope, queue, items, keys, count, at_end, status);

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
	done = queue->store->take(queue, items, keys, count, at_end, status);
	if (WEIRI_UNLIKELY(*status == WEIR_ABORTED))
		done += take_beside_put_back(scope, queue, items + done, keys_from(keys, done), count - done, at_end, status);
	return done;
}

/*
 * Returns true if the queue is closed and no admitted enqueue is still to come. The answer 1 is
 * final.
 */
static bool closed_for_all(const weir_queue *queue)
{
	/*
	 * [acquire] pairs with the last admitted enqueue, which stored its items before it left the
	 * admission word.
	 */
	uint64_t admission = weiri_load_acquire(&queue->admission);

	return (admission & WEIRI_ADMISSION_CLOSED) != 0 && (admission & WEIRI_ADMISSION_PENDING) == 0;
}

/*
 * Decides between WOULD_BLOCK and OUT_OF_RANGE after a take found too few items, and may find more
 * items after all.
 */
static WEIRI_COLD size_t look_for_the_end(struct weiri_scope *scope, weir_queue *queue, uint64_t items[],
                                          int64_t keys[], size_t count, bool holds_turn, enum weir_status *status)
{
	size_t done = 0, more;

	do {
		/* [acquire] pairs with the release of the turn: what that batch returned is seen below. */
		uint64_t turn = weiri_load_acquire(&queue->turn);

		*status = WEIR_WOULD_BLOCK;
		if (!closed_for_all(queue) || ((turn & 1) != 0 && !holds_turn))
			return done;
		more = take_inside(scope, queue, items + done, keys_from(keys, done), count - done, WEIRI_RING_SEAL, status);
		done += more;
		/*
		 * [relaxed] if the turn is the same, this was the end. If a batch took an item that this
		 * thread found gone, the thread acquired the turn of that batch with it.
		 */
		if (more == 0 && (*status != WEIR_OUT_OF_RANGE || weiri_load_relaxed(&queue->turn) == turn))
			return done;
	} while (done < count);
	*status = WEIR_OK;
	return done;
}

static WEIRI_ALWAYS_INLINE size_t take(struct weiri_scope *scope, weir_queue *queue, uint64_t items[], int64_t keys[],
                                       size_t count, bool holds_turn, enum weir_status *status)
{
	size_t done = take_inside(scope, queue, items, keys, count, WEIRI_RING_LEAVE, status);

	/*
	 * The end of the store is not yet the end of the queue: admitted enqueues may be still to come.
	 */
	if (WEIRI_UNLIKELY(done < count))
		done += look_for_the_end(scope, queue, items + done, keys_from(keys, done), count - done, holds_turn, status);
	return done;
}

size_t weiri_queue_take(struct weiri_scope *scope, weir_queue *queue, uint64_t items[], size_t count, bool holds_turn,
                        enum weir_status *status)
{
	return take(scope, queue, items, NULL, count, holds_turn, status);
}

size_t weiri_queue_take_with_keys(struct weiri_scope *scope, weir_queue *queue, uint64_t items[], int64_t keys[],
                                  size_t count, bool holds_turn, enum weir_status *status)
{
	return take(scope, queue, items, keys, count, holds_turn, status);
}

enum weir_status weiri_queue_take_on(struct weiri_record *record, weir_queue *queue, uint64_t *item,
                                     enum weir_status status)
{
	struct weiri_scope scope = weiri_queue_unentered(record);
	size_t done = 0;

	if (status == WEIR_ABORTED)
		done = take_beside_put_back(&scope, queue, item, NULL, 1, WEIRI_RING_LEAVE, &status);
	if (done == 0)
		(void)look_for_the_end(&scope, queue, item, NULL, 1, false, &status);
	weiri_queue_retire_gathered(&scope);
	return status;
}

/* Returns true if look_for_the_end() would return OUT_OF_RANGE for an empty store. */
static bool end_is_in_sight(const weir_queue *queue)
{
	/* [relaxed] the turn: the batch that releases it settles the ready descriptor afterwards. */
	return closed_for_all(queue) && (weiri_load_relaxed(&queue->turn) & 1) == 0 && !queue->store->is_putting(queue);
}

static bool put_back_is_there(struct weiri_record *record, weir_queue *queue)
{
	struct weiri_scope scope;
	size_t place;
	bool there;

	if (WEIRI_LIKELY(!weiri_putback_occupied(&queue->putback)))
		return false;
	scope = weiri_scope_enter(record);
	there = weiri_putback_first(&scope, &queue->putback, &place) != NULL;
	weiri_scope_leave(&scope);
	return there;
}

bool weiri_queue_can_give(struct weiri_record *record, weir_queue *queue)
{
	return queue->store->can_take(queue) || put_back_is_there(record, queue) || end_is_in_sight(queue);
}

bool weiri_queue_can_take_in(const weir_queue *queue)
{
	return weiri_queue_store_closed(queue) || queue->store->can_put(queue);
}

bool weiri_queue_store_closed(const weir_queue *queue)
{
	return queue->store->closed(queue);
}

size_t weiri_queue_size(const weir_queue *queue)
{
	return queue->store->size(queue) + weiri_putback_size(&queue->putback);
}

struct weiri_ring_counts weiri_queue_counts(const weir_queue *queue)
{
	return queue->store->counts(queue);
}

void weiri_queue_sort_batch(const weir_queue *queue, struct weiri_segment *segment, size_t count)
{
	if (segment->kind != WEIRI_SEGMENT_KEYED)
		return;
	for (size_t i = 0; i < count; i++)
		weiri_segment_keys(segment)[i] = weiri_queue_key(queue, weiri_item_pointer(segment->items[i]));
	weiri_segment_sort(segment, count);
}

bool weiri_queue_turn_take(weir_queue *queue)
{
	/* [relaxed] the CAS decides. */
	uint64_t turn = weiri_load_relaxed(&queue->turn);

	/* [acquire] what the last batch returned. */
	return (turn & 1) == 0 && weiri_cas_acquire(&queue->turn, &turn, turn + 1);
}

bool weiri_queue_turn_held(const weir_queue *queue)
{
	/*
	 * [relaxed] a dequeue that was refused because of the turn has read the turn in
	 * look_for_the_end(), so this value is no older. A batch that releases the turn later pumps
	 * after that.
	 */
	return (weiri_load_relaxed(&queue->turn) & 1) != 0;
}

void weiri_queue_turn_give(weir_queue *queue)
{
	/* [release] after the items that the caller returned. */
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
		return weiri_fail(error, status, "queue \"%s\" is closed: %zu of %zu item%s went in%s", queue->name, done,
		                  count, WEIRI_S(count), cause);
	return weiri_fail(error, status, "queue \"%s\" is closed%s: %zu item%s asked for, %zu left%s", queue->name,
	                  done == 0 ? " and drained" : "", count, WEIRI_S(count), done, cause);
}

enum weir_status weiri_queue_fail_cancelled(const weir_queue *queue, const char *verb, const weir_error *cause,
                                            weir_error *error)
{
	return weiri_fail(error, WEIR_CANCELLED, "queue \"%s\": %s was cancelled by its token; %s: %.120s", queue->name,
	                  verb, weir_status_name(cause->code), cause->message);
}
