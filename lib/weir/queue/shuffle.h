/*
 * shuffle.h - a bounded lock-free bag: take() returns an item that is drawn uniformly from the
 * stored ones.
 *
 * Algorithm. n slots, two sets of their numbers (index_set.h) and one word of credits:
 *
 *   credits   items (may be taken) | used (slots not free) | puts (under way) | closed
 *   free      slots that are not in use     a put takes from it; the take that emptied the slot
 *             adds to it
 *   full      slots that hold an item       a put adds to it, a take takes from it
 *
 *   put   credits: used + 1, puts + 1 if used < n; a number from free; write the slot; add it to
 *         full; credits: items + 1, puts - 1
 *   take  credits: items - 1 if items > min (or closed and items > 0); a random number from full;
 *         read the slot; add it to free; credits: used - 1
 *
 * A credit guarantees that there is an item or slot for the caller before the caller searches for
 * it. So a take that has a credit always finds an item, and a put always finds a slot.
 *
 * Source. A credit is a permit of a counting semaphore (Dijkstra, 1965), with several counters in
 * one word. Lock-free bags are known (Sundell et al., SPAA 2011), but they take whichever item is
 * nearest. We know of no publication of a lock-free bag with uniform draws. TensorFlow 1.x's
 * RandomShuffleQueue has the same guarantees under a mutex.
 *
 * Invariants
 *   B1  numbers in full >= items + takes that hold a credit and have not taken a number yet
 *   B2  free is not empty whenever a put that holds a credit searches for a slot
 *   B3  a slot is written only by the put that took its number from free, and read only by the take
 *       that took its number from full
 * Pairs
 *   P1  add to full -> take from full: the item
 *   P2  add to free -> take from free: the previous take has finished with the slot
 *   P3  credits: a take that got a credit sees at least as many numbers in full (B1)
 *   P4  take -> take: a thread that finds the bag empty sees what the threads that took the items
 *       did before (their turn, see contents.c)
 *   P5  close -> put, take, closed: what the closer did before
 * Linearization: put when its item gets its credit, or at an earlier take that gets this item; take
 *   when it takes the number from full. Refusals are exact only if no put or take is under way. "No
 *   item may leave" linearizes at the load of credits. A put adds its number to full before it adds
 *   its item to credits. In between, a take may get that item with the credit of another item. The
 *   other item is then stored without a credit until the put continues. And a take that has its
 *   credit may still get an item that is newer than the refusal. "Full" linearizes at the load of
 *   credits, too. A put or take that is under way counts as an occupied slot. Both refusals are
 *   about one word, so its modification order contains both. So the store buffering between two
 *   words that a ring must prevent (algorithm.h) cannot occur.
 * Progress: lock-free. A stalled put or take holds one slot. No thread waits for it, with one
 *   exception: a closed bag is not drained while a put is under way, because its item is still to
 *   come.
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

/*
 * capacity is 1 .. WEIRI_SHUFFLE_MAX_CAPACITY, min_left < capacity. Returns NULL if there is no
 * memory.
 */
struct weiri_shuffle *weiri_shuffle_create(size_t capacity, size_t min_left, uint64_t seed,
                                           const weir_allocator *allocator);
void weiri_shuffle_destroy(struct weiri_shuffle *shuffle);

/* Returns WEIR_OK, WEIR_WOULD_BLOCK (full), or WEIR_CANCELLED (closed and not `admitted`). */
enum weir_status weiri_shuffle_put(struct weiri_shuffle *shuffle, uint64_t item, bool admitted);
/*
 * Returns WEIR_OK, WEIR_WOULD_BLOCK (no item may leave now), or WEIR_OUT_OF_RANGE (closed, empty,
 * no put under way).
 */
enum weir_status weiri_shuffle_take(struct weiri_shuffle *shuffle, uint64_t *item);
/* Refuses later puts, and sets min_left to 0. */
void weiri_shuffle_close(struct weiri_shuffle *shuffle);
bool weiri_shuffle_closed(const struct weiri_shuffle *shuffle);
size_t weiri_shuffle_size(const struct weiri_shuffle *shuffle);
/* Returns how many items were put and taken: exact while no call is under way, see layout.h. */
struct weiri_ring_counts weiri_shuffle_counts(const struct weiri_shuffle *shuffle);
/*
 * can_take returns true if a take would find an item, can_put if an admitted put would find room.
 * As in a take or put, the load of credits decides.
 */
bool weiri_shuffle_can_take(const struct weiri_shuffle *shuffle);
bool weiri_shuffle_can_put(const struct weiri_shuffle *shuffle);
/* Returns true while a put is under way: its item is still to come. */
bool weiri_shuffle_putting(const struct weiri_shuffle *shuffle);

#endif
