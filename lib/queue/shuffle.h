/*
 * shuffle.h - a bounded lock-free bag: take() gives an item drawn uniformly from those inside.
 *
 * Algorithm (ours). n slots, two sets of their numbers (places.h) and one word of credits:
 *
 *   credits   items (may be taken) | used (slots not free) | puts (under way) | closed
 *   free      slots that belong to nobody     taken from by a put, added to by the take that emptied the slot
 *   full      slots that hold an item         added to by a put, taken from by a take
 *
 *   put   credits: used + 1, puts + 1 if used < n; a number from free; write the slot; add it to full; credits: items + 1, puts - 1
 *   take  credits: items - 1 if items > min (or closed and items > 0); a random number from full; read the slot; add it to free;
 *         credits: used - 1
 *
 * A credit makes "there is one for me" certain before it is looked for, so a take never comes back empty-handed, and a put always
 * finds a slot.
 *
 * Invariants
 *   B1  numbers in full >= items + takes that hold a credit and have taken none yet
 *   B2  free is not empty whenever a put that holds a credit looks for a slot
 *   B3  a slot is written only by the put that took its number from free, read only by the take that took it from full
 * Pairs
 *   P1  add to full -> take from full: the item.  P2  add to free -> take from free: the slot is finished with.
 *   P3  credits: a taker that got a credit sees at least as many numbers in full (B1)
 *   P4  take -> take: whoever finds the bag empty sees what those did before who took the items (their turn, see store.c)
 *   P5  close -> put, take, closed: what the closer did before
 * Linearization: put at the credit for its item, or at the take that got the item before that; take when it takes the number from full.
 *   Refusals are exact only when no put or take is under way. "Nothing may leave" (the load of credits): between a put's number in
 *   full and its credit, a take may get its item by another's credit, and that one's item is inside without a credit until the
 *   put goes on; and a take that has its credit may yet get an item newer than the refusal. "Full" (the load of credits): a put
 *   or a take under way counts as an occupied slot. Both are said of one word, so its changes' own order has them both: no
 *   store buffering between two words, as in a ring (walk.h).
 * Progress: lock-free. A put or take that is stopped holds one slot; nobody waits for it, but the end of a closed bag: it is not
 *   "drained" while a put is under way, because its item is still to come.
 * The same seed and the same calls on one thread give the same order.
 */
#ifndef WEIRI_QUEUE_SHUFFLE_H
#define WEIRI_QUEUE_SHUFFLE_H

#include <stddef.h>
#include <stdint.h>
#include <weir/alloc.h>
#include <weir/status.h>

#include "ring/layout.h"

struct weiri_shuffle;

enum { WEIRI_SHUFFLE_MAX_CAPACITY = (1 << 24) - 1 };

/* capacity 1 .. WEIRI_SHUFFLE_MAX_CAPACITY, min_left < capacity. NULL: no memory. */
struct weiri_shuffle *weiri_shuffle_create(size_t capacity, size_t min_left, uint64_t seed,
                                           const weir_allocator *allocator);
void weiri_shuffle_destroy(struct weiri_shuffle *shuffle);

/* WEIR_OK, WEIR_WOULD_BLOCK (full), WEIR_CANCELLED (closed and not `admitted`). */
enum weir_status weiri_shuffle_put(struct weiri_shuffle *shuffle, uint64_t item, int admitted);
/* WEIR_OK, WEIR_WOULD_BLOCK (nothing may leave now), WEIR_OUT_OF_RANGE (closed, empty, no put under way). */
enum weir_status weiri_shuffle_take(struct weiri_shuffle *shuffle, uint64_t *item);
/* Later puts are refused, and min_left is lifted. */
void weiri_shuffle_close(struct weiri_shuffle *shuffle);
int weiri_shuffle_closed(const struct weiri_shuffle *shuffle);
size_t weiri_shuffle_size(const struct weiri_shuffle *shuffle);
/* Items that went in and came out, exact while nothing is under way: see layout.h. */
struct weiri_ring_counts weiri_shuffle_counts(const struct weiri_shuffle *shuffle);
/* 1 when a take would find an item, a put (admitted) room: at the load of credits, as those. */
int weiri_shuffle_can_take(const struct weiri_shuffle *shuffle);
int weiri_shuffle_can_put(const struct weiri_shuffle *shuffle);
/* 1 while a put is under way, whose item is still to come. */
int weiri_shuffle_putting(const struct weiri_shuffle *shuffle);

#endif
