/*
 * index_set.h - a lock-free set of numbers below n. A take removes any one of them, or one at
 * random.
 *
 * Algorithm. A bitmap decides which numbers are in the set. A thread adds a number by setting its
 * bit, and takes it by clearing the bit: the thread that clears the bit has the number. If there
 * are more than 64 words, levels of counts lie above them. A count covers 64 words, or 64 counts of
 * the level below. The top level has at most 64 counts, so 2^24 numbers have two levels of counts.
 * A take descends from the top: to the k-th bit for a random k, or to the first node that is not
 * empty. So it reads about 64 counts per level and 64 words, however few bits are set.
 *
 * Source. Bitmaps below counts, changed by atomic instructions, are known from page allocators
 * (LLFree: Wrenger et al., USENIX ATC 2023). The descent to the k-th element is that of an
 * order-statistic tree. We know of no publication that draws uniformly from such a bitmap while
 * other threads change it.
 *
 * Invariants
 *   S1  a number is in the set from the fetch_or that sets its bit to the change that clears the
 *       bit; each number that was added is taken once
 *   S2  a count is at least the number of bits that are set below it: it is raised before the bit
 *       is set, and lowered after the bit was cleared
 * By S2 every bit can be reached, as long as its counts are seen. A count is too large while an add
 * or a take is under way or stalled. It may lead a take to words with no bit set. The take then
 * draws again. After a few draws it uses only the words, so that no stalled thread and no stale
 * count can delay it further.
 * Pairs: P1 add -> take: what the adder did before.
 * Uniform: a draw that fails tells nothing about the next one. So each number that is in the set
 * throughout is as likely as any other.
 * Progress: lock-free under one condition. The numbers in the set, and the numbers that will be
 *   added without any action of the taker, must be at least as many as the takes under way. Then a
 *   take that finds a bit cleared has been overtaken by another take. A take for which there is no
 *   number never ends; credits (shuffle.c) ensure that there is one.
 * Memory: n bits, and 4 bytes for each 4096 numbers.
 */
#ifndef WEIRI_QUEUE_INDEX_SET_H
#define WEIRI_QUEUE_INDEX_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WEIRI_INDEX_SET_LEVELS = 2 };

struct weiri_index_set {
	size_t limit; /* numbers are below this */
	size_t words;
	unsigned levels;
	_Atomic(uint64_t) *bits;
	_Atomic(uint32_t) *counts[WEIRI_INDEX_SET_LEVELS]; /* [0]: of 64 words each; [1]: of 64 of those each */
};

/*
 * Random numbers for takes by any thread: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). Each take
 * has a sequence of its own, given by the seed and by the number of takes that began before it. So
 * a take that draws often still adds only 1 to `takes`, which thus counts the takes.
 */
struct weiri_draws {
	uint64_t seed;
	_Atomic(uint64_t) takes;
};

/* Returns the bytes needed for numbers below `limit`, 1 .. 2^24; a multiple of 8. */
size_t weiri_index_set_size(size_t limit);
/*
 * Creates the set in `memory`, which is zero and 8-aligned. full: 1 if all numbers are in the set,
 * 0 if none is.
 */
void weiri_index_set_init(struct weiri_index_set *set, void *memory, size_t limit, bool full);

/* Adds a number that is not in the set. [P1 release] */
void weiri_index_set_add(struct weiri_index_set *set, size_t index);
/* Takes a number, if possible one near `near`. [P1 acquire] */
size_t weiri_index_set_take_near(struct weiri_index_set *set, size_t near);
/*
 * Takes a number that is drawn uniformly. `about` is roughly the size of the set; it only
 * determines how to search. [P1 acquire]
 */
size_t weiri_index_set_take_random(struct weiri_index_set *set, struct weiri_draws *draws, size_t about);

#endif
